/* Checker: 32-bit arithmetic that wraps on its way to an address, a warning. An index is computed in the types that the kernel
 * gives it, and becomes an offset of 64 bits afterwards: what has wrapped until then leads elsewhere, often to a place inside.
 *
 * Looked at are sums, differences, products and shifts by constants of int32 whose bounds do not exclude it, where an index or the
 * offset of a pointer is made of them: directly, or through variables and local arrays. A remainder by a power of two is right
 * after sums and products that wrap too, unsigned arithmetic wraps on purpose, bit operations make hashes: what is under them does not count.
 * Instructions stand where the value is computed for its own sake, so nothing is looked at that no active thread asked for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

enum { ROUNDS = 16 };

/* ---- what leads to an address ---------------------------------------------------------------------------------------- */

unsigned
tx_overflow_leads(const tx_code *g, const void *var)
{
    uint64_t v;
    return tx_map_get(&g->leading, (uint64_t)(uintptr_t)var, &v) ? (unsigned)v : LEADS_NOWHERE;
}

static bool
overflow_add(tx_code *g, const void *var, unsigned how)
{
    unsigned old = tx_overflow_leads(g, var);
    if (old == LEADS || old == how)
        return false;
    if (!tx_map_put(&g->leading, (uint64_t)(uintptr_t)var, how))
        g->failed = true;
    return true;
}

static bool
is_signed(tx_dtype t)
{
    return tx_kind(t) == TX_KIND_I32 || tx_kind(t) == TX_KIND_I64;
}

/* How the operands of n lead to an address, when n itself leads there so. */
unsigned
tx_overflow_passes(const tx_node *n, unsigned how)
{
    int64_t k;
    if (!is_signed(n->dtype) || how == LEADS_NOWHERE)
        return LEADS_NOWHERE;
    switch (n->op) {
    case TX_OP_ADD:
    case TX_OP_SUB:
    case TX_OP_MUL:
    case TX_OP_RAMP:
    case TX_OP_BROADCAST: return how;
    case TX_OP_SHL: return tx_const_i64(n->arg[1], &k) ? how : LEADS_NOWHERE;
    case TX_OP_CAST: return is_signed(n->arg[0]->dtype) ? how : LEADS_NOWHERE;
    case TX_OP_DIV:
    case TX_OP_FLOORDIV:
    case TX_OP_MOD:
    case TX_OP_MIN:
    case TX_OP_MAX: return LEADS;
    case TX_OP_BAND: return LEADS_BY_LOW_BITS;
    case TX_OP_FLOORMOD: return tx_const_i64(n->arg[1], &k) && k > 0 && (k & (k - 1)) == 0 ? LEADS_BY_LOW_BITS : LEADS;
    default: return LEADS_NOWHERE;
    }
}

/* Gives true when there is something new. */
static bool
overflow_walk(tx_code *g, const tx_node *n, unsigned how, int depth)
{
    bool found = false;
    if (!n || depth > TX_MAX_DEPTH)
        return false;
    bool access = n->op == TX_OP_LOAD || n->op == TX_OP_STORE;
    if (how && n->op == TX_OP_VAR)
        return is_signed(n->dtype) && overflow_add(g, n->u.var, how);
    if (how && n->op == TX_OP_LOAD && n->u.buf->scope == TX_LOCAL && is_signed(n->dtype))
        found = overflow_add(g, n->u.buf->data, how);
    unsigned down = access ? LEADS : n->op == TX_OP_BIND ? tx_overflow_leads(g, n->u.var) : tx_overflow_passes(n, how);
    for (uint32_t i = 0; i < n->nargs; i++) {
        unsigned to = down;
        if (n->op == TX_OP_STORE && i == 0)
            to = n->u.buf->scope == TX_LOCAL ? tx_overflow_leads(g, n->u.buf->data) : LEADS_NOWHERE;
        else if (n->op == TX_OP_PTR_OFFSET && i == 1)
            to = LEADS;
        found |= overflow_walk(g, n->arg[i], to, depth + 1);
    }
    return found;
}

void
tx_overflow_note(tx_code *g, const tx_node *body)
{
    for (int i = 0; i < ROUNDS && overflow_walk(g, body, LEADS_NOWHERE, 0); i++)
        ;
}

/* ---- code ---------------------------------------------------------------------------------------------------------- */

/* Does the interval reach beyond int32? */
static bool
may_wrap(unsigned op, const tx_val *a, const tx_val *b)
{
    int64_t alo = a->lo < INT32_MIN ? INT32_MIN : a->lo, ahi = a->hi > INT32_MAX ? INT32_MAX : a->hi;
    int64_t blo = b->lo < INT32_MIN ? INT32_MIN : b->lo, bhi = b->hi > INT32_MAX ? INT32_MAX : b->hi;
    int64_t r[4] = {alo * blo, alo * bhi, ahi * blo, ahi * bhi}, lo, hi;
    if (op == TX_OP_MUL) {
        lo = hi = r[0];
        for (int i = 1; i < 4; i++)
            lo = r[i] < lo ? r[i] : lo, hi = r[i] > hi ? r[i] : hi;
    } else
        lo = op == TX_OP_ADD ? alo + blo : alo - bhi, hi = op == TX_OP_ADD ? ahi + bhi : ahi - blo;
    return lo < INT32_MIN || hi > INT32_MAX;
}

void
tx_overflow_check(tx_code *g, const tx_node *n, unsigned lane, const tx_val *a, const tx_val *b)
{
    unsigned op = n->op;
    uint64_t key = 1ull << 63 | (uint64_t)n->vn << 8 | (lane + 1), at;
    tx_val factor;
    if (g->leads != LEADS || tx_kind(n->dtype) != TX_KIND_I32 || a->form == VF_NONE || b->form == VF_NONE)
        return;
    if (op == TX_OP_SHL && b->lo == b->hi && b->lo > 0 && b->lo < 31) {
        factor = tx_val_int(TX_I32, (int64_t)1 << b->lo);
        op = TX_OP_MUL, b = &factor;
    }
    if ((op != TX_OP_ADD && op != TX_OP_SUB && op != TX_OP_MUL) || !may_wrap(op, a, b) ||
        (n->vn && tx_map_get(&g->cache, key, &at) && at))
        return;
    unsigned first = op == TX_OP_ADD ? V_WADD_I32_SS : op == TX_OP_SUB ? V_WSUB_I32_SS : V_WMUL_I32_SS;
    unsigned form = a->form == VF_ROW ? b->form == VF_ROW ? 1 : 2 : b->form == VF_ROW ? 3 : 0;
    const tx_val *row = a->form == VF_ROW ? a : b;
    int64_t lo = row->lo < INT32_MIN ? INT32_MIN : row->lo, hi = row->hi > INT32_MAX ? INT32_MAX : row->hi;
    uint32_t insn = tx_code_emit(g, first + form, 0, 0, tx_code_operand(g, a), tx_code_operand(g, b), 0,
                                 (int64_t)((uint64_t)hi << 32 | (uint32_t)lo));
    g->code.at[insn].site = tx_code_site(g, n->span, NULL, "arithmetic", 0, 0);
    if (n->vn)
        tx_code_remember(g, key, tx_val_int(TX_I32, 1));
}

void
tx_overflow_again(tx_code *g, const tx_node *n, unsigned lane)
{
    unsigned how = g->leads, down = tx_overflow_passes(n, how);
    if (!down || g->depth >= TX_MAX_DEPTH)
        return;
    g->depth++;
    g->leads = down;
    lane = tx_lanes(n->dtype) <= 1 ? 0 : lane;
    if (n->nargs == 2 && n->op != TX_OP_RAMP) {
        tx_val a = tx_code_expr(g, n->arg[0], lane), b = tx_code_expr(g, n->arg[1], lane);
        tx_overflow_check(g, n, lane, &a, &b);
    } else
        tx_code_expr(g, n->arg[0], n->op == TX_OP_CAST ? lane : 0);
    g->leads = how;
    g->depth--;
}

/* ---- the report ---------------------------------------------------------------------------------------------------- */

int
tx_vm_overflow(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad)
{
    unsigned form = (in->op - V_WADD_I32_SS) & 3, op = (in->op - V_WADD_I32_SS) / 4;
    uint32_t lane = tx_first_lane(bad);
    int32_t a, b;
    memcpy(&a, f->R + in->a + (form == 1 || form == 2 ? lane * 4 : 0), 4);
    memcpy(&b, f->R + in->b + (form & 1 ? lane * 4 : 0), 4);
    int64_t exact = op == 0 ? (int64_t)a + b : op == 1 ? (int64_t)a - b : (int64_t)a * b;
    tx_emu_report *r = tx_report_begin(vm, "overflow", in->site);
    tx_report_agent(vm, r, f, lane, in->site, "arithmetic");
    r->warning = true;
    tx_report_text(r, "%d %c %d on the way to an address leaves int32: %lld has become %d; compute it in int64", a,
                   "+-*"[op], b, (long long)exact, (int)(uint32_t)exact);
    return tx_report_end(vm, r);
}
