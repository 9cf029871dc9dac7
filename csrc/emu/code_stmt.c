/* VM code for statements: blocks, bindings, conditionals, loops, returns. A conditional or loop whose condition is uniform
 * becomes jumps; else lanes are set aside on the control stack (IF, LOOP). A level of the control stack is also a level of
 * divergence: what is written there is written under the mask. SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

enum { UNROLL_TURNS = 16, UNROLL_NODES = 1500, UNROLL_ASKED = 64 };

/* ---- conditionals ------------------------------------------------------------------------------------------------ */

void
tx_code_enter(tx_code *g)
{
    g->div++;
    if (++g->ctl > g->max_ctl)
        g->max_ctl = g->ctl;
}

void
tx_code_leave(tx_code *g)
{
    g->div--, g->ctl--;
    tx_code_here(g);
}

uint32_t
tx_code_if_at(tx_code *g, tx_val cond)
{
    uint32_t at;
    if (cond.form != VF_ROW)
        return tx_code_emit(g, V_JZ, 0, 0, tx_code_operand(g, &cond), 0, 0, 0);
    at = tx_code_emit(g, V_IF, 1, 0, cond.reg, 0, 0, 0);
    tx_code_enter(g);
    return at;
}

void
tx_code_else_at(tx_code *g, uint32_t *at)
{
    bool jumps = g->code.at[*at].op == V_JZ;
    uint32_t next = tx_code_emit(g, jumps ? V_JMP : V_ELSE, 0, 0, 0, 0, 0, 0);
    g->code.at[*at].aux = 0;
    g->code.at[*at].imm = jumps ? next + 1 : next;
    tx_code_here(g);
    *at = next;
}

void
tx_code_endif_at(tx_code *g, uint32_t at, bool had_else)
{
    (void)had_else;
    if (g->code.at[at].op == V_JZ || g->code.at[at].op == V_JMP) {
        tx_code_target(g, at);
        return;
    }
    g->code.at[at].imm = tx_code_emit(g, V_ENDIF, 0, 0, 0, 0, 0, 0);
    tx_code_leave(g);
}

static void
if_stmt(tx_code *g, const tx_node *n)
{
    tx_val c = tx_code_expr(g, n->arg[0], 0);
    uint32_t at;
    if (c.form == VF_NONE)
        return;
    c = tx_code_cast(g, TX_BOOL, c);
    if (c.form == VF_CONST) {
        if (c.k.u32)
            tx_code_block(g, n->arg[1]);
        else if (n->arg[2])
            tx_code_block(g, n->arg[2]);
        return;
    }
    at = tx_code_if_at(g, c);
    tx_code_block(g, n->arg[1]);
    if (n->arg[2]) {
        tx_code_else_at(g, &at);
        tx_code_block(g, n->arg[2]);
    }
    tx_code_endif_at(g, at, n->arg[2] != NULL);
}

/* ---- what a loop body contains ----------------------------------------------------------------------------------- */

static uint32_t
count_nodes(const tx_node *n, uint32_t most)
{
    uint32_t sum = 1;
    if (!n)
        return 0;
    for (uint32_t i = 0; i < n->nargs && sum < most; i++)
        sum += count_nodes(n->arg[i], most - sum);
    return sum;
}

/* break and continue of this loop, not of an inner one */
static bool
has_break(const tx_node *n)
{
    if (!n)
        return false;
    if (n->op == TX_OP_BREAK || n->op == TX_OP_CONTINUE)
        return true;
    if (n->op == TX_OP_FOR || n->op == TX_OP_WHILE || !tx_is_stmt(n))
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (has_break(n->arg[i]))
            return true;
    return false;
}

/* Computes, ahead of a loop, the largest pure integer expressions in its body that do not depend on it. Gives true when n
 * itself could be computed (its user decides). */
static bool
hoist(tx_code *g, const tx_node *n, int depth)
{
    bool all = true, movable;
    bool ready[8];

    if (!n || depth > TX_MAX_DEPTH)
        return false;
    if (n->op == TX_OP_VAR) {
        const code_binding *b = tx_code_find(g, n->u.var);
        return b && !b->is_storage && tx_is_int(n->dtype);
    }
    if (n->op == TX_OP_INT)
        return true;
    if (n->op >= TX_OP_THREAD_IDX && n->op <= TX_OP_THREAD_IN_WG)
        return true;
    movable = n->nargs > 0 && n->nargs <= 8 && tx_has(n->op, TX_PROP_PURE) && !tx_has(n->op, TX_PROP_LAZY) &&
              !(n->flags & TX_NF_IMPURE) && n->vn && tx_is_int(n->dtype) && tx_lanes(n->dtype) == 1 &&
              n->op != TX_OP_LET && n->op != TX_OP_ADDRESS_OF;
    for (uint32_t i = 0; i < n->nargs; i++) {
        bool r = hoist(g, n->arg[i], depth + 1);
        if (i < 8)
            ready[i] = r;
        all = all && r;
    }
    if (movable && all && tx_code_plain(g, n))
        return true;
    for (uint32_t i = 0; i < n->nargs && i < 8; i++)
        if (ready[i] && n->arg[i]->nargs > 0 && tx_code_plain(g, n->arg[i]))
            tx_code_expr(g, n->arg[i], 0);
    return false;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static void
open_loop(tx_code *g, const tx_node *n, bool entry)
{
    tx_loop_ctx l = {.node = n, .div = g->div, .ctl = g->ctl, .entry = entry};
    if (!tx_push(g->c, &g->loops, l))
        g->failed = true;
}

/* Jumps that `break` or `continue` of the innermost loop left behind lead to `to`. */
static void
patch(tx_code *g, bool is_break, uint32_t to)
{
    uint32_t loop = g->loops.n, n = 0;
    for (uint32_t i = 0; i < g->jumps.n; i++) {
        tx_jump j = g->jumps.at[i];
        if (j.loop == loop && j.is_break == is_break)
            g->code.at[j.at].imm = to;
        else
            g->jumps.at[n++] = j;
    }
    g->jumps.n = n;
}

static void
leave_turn(tx_code *g, const tx_node *n)
{
    bool is_break = n->op == TX_OP_BREAK;
    if (!g->loops.n) {
        tx_fail(g->c, n->span, TX_E_INTERNAL, "break outside a loop");
        return;
    }
    tx_loop_ctx l = g->loops.at[g->loops.n - 1];
    if (l.entry) {
        tx_code_emit(g, is_break ? V_BREAK : V_CONTINUE, 0, 0, 0, 0, 0, g->ctl - l.ctl);
        return;
    }
    if (g->div > l.div)
        tx_code_learn(g, l.node, FACT_ENTRY);
    tx_jump j = {tx_code_emit(g, V_JMP, 0, 0, 0, 0, 0, 0), is_break, g->loops.n};
    if (!tx_push(g->c, &g->jumps, j))
        g->failed = true;
}

static bool
const_turns(const tx_val *start, const tx_val *stop, const tx_val *step, int64_t *turns)
{
    int64_t s = step->lo, span;
    if (start->form != VF_CONST || stop->form != VF_CONST || step->form != VF_CONST || s == 0)
        return false;
    if (!tx_sub_i64(stop->lo, start->lo, &span))
        return false;
    *turns = s > 0 ? span > 0 ? (span - 1) / s + 1 : 0 : span < 0 ? (-span - 1) / -s + 1 : 0;
    return true;
}

static bool
unrolled(tx_code *g, const tx_node *n, const tx_val *start, const tx_val *stop, const tx_val *step)
{
    const tx_loop *l = n->u.loop;
    int64_t turns;
    bool asked = l->unroll == -1 || l->kind == TX_LOOP_UNROLL || l->kind == TX_LOOP_VECTOR;
    if (!const_turns(start, stop, step, &turns) || turns > (asked ? UNROLL_ASKED : UNROLL_TURNS) || l->unroll == 1)
        return false;
    if (has_break(n->arg[3]))
        return false;
    if (turns > 1 && count_nodes(n->arg[3], UNROLL_NODES) * (uint64_t)turns > UNROLL_NODES)
        return false;
    for (int64_t i = 0; i < turns; i++) {
        tx_scope_mark m = tx_code_push(g);
        tx_code_bind(g, l->var, tx_val_int(l->var->dtype, start->lo + i * step->lo));
        tx_code_block(g, n->arg[3]);
        tx_code_pop(g, m);
    }
    return true;
}

static bool
code_stmt_wide(unsigned vt)
{
    return vt == VT_I64 || vt == VT_U64;
}

/* A uniform counter is a slot that holds the value in 64 bits, whatever its type: no step can wrap past the stop. */
static void
counted(tx_code *g, const tx_node *n, tx_val start, tx_val stop, tx_val step)
{
    const tx_loop *l = n->u.loop;
    tx_dtype t = l->var->dtype;
    bool rows = start.form == VF_ROW || stop.form == VF_ROW || step.form == VF_ROW;
    bool entry = rows || (tx_code_facts(g, n) & FACT_ENTRY);
    unsigned aux = step.form != VF_CONST ? 2 : step.lo < 0;
    uint32_t at = 0, test, next, body, end;
    tx_val v;

    hoist(g, n->arg[3], 0);
    if (rows) {
        tx_val from = tx_code_to_row(g, start);
        v = tx_val_new(g, t, true);
        tx_code_emit(g, code_stmt_wide(v.vt) ? V_MOV64 : V_MOV32, 0, v.reg, from.reg, 0, 0, 0);
        stop = tx_code_to_row(g, stop), step = tx_code_to_row(g, step);
        aux |= (unsigned)v.vt << 4;
    } else {
        tx_val from = tx_code_cast(g, TX_I64, start);
        v = tx_val_new(g, t, false);
        tx_code_emit(g, V_MOVS, 0, v.reg, tx_code_operand(g, &from), 0, 0, 0);
        stop = tx_code_cast(g, TX_I64, stop), step = tx_code_cast(g, TX_I64, step);
    }
    if ((aux & 3) == 0) { /* upwards */
        v.lo = start.lo;
        v.hi = stop.hi > start.lo ? stop.hi - 1 : start.lo;
    } else if ((aux & 3) == 1) {
        v.hi = start.hi;
        v.lo = stop.lo < start.hi ? stop.lo + 1 : start.hi;
    }
    if (tx_kind(t) == TX_KIND_U64)
        v.lo = INT64_MIN, v.hi = INT64_MAX;
    tx_val *keep[] = {&v, &stop, &step};
    for (int i = 0; i < 3; i++)
        if (keep[i]->form != VF_CONST)
            tx_code_keep(g, keep[i]->reg);
    uint32_t ra = tx_code_operand(g, &stop), rb = tx_code_operand(g, &step);
    if (entry) {
        at = tx_code_emit(g, V_LOOP, 0, 0, 0, 0, 0, 0);
        tx_code_enter(g);
    }
    test = tx_code_emit(g, rows ? V_FORT_V : V_FORT_S, aux, v.reg, ra, rb, 0, 0);
    body = tx_code_here(g);
    open_loop(g, n, entry);
    tx_scope_mark m = tx_code_push(g);
    tx_code_bind(g, l->var, v);
    tx_code_block(g, n->arg[3]);
    tx_code_pop(g, m);
    patch(g, false, tx_code_here(g));
    if (entry)
        g->code.at[at].imm = tx_code_emit(g, V_LCONT, 0, 0, 0, 0, 0, g->code.n + 2);
    next = tx_code_emit(g, rows ? V_FORN_V : V_FORN_S, aux, v.reg, ra, rb, 0, body);
    g->code.at[next].site = tx_code_site(g, n->span, "", "loops at", 0, 0);
    end = tx_code_here(g);
    g->code.at[test].imm = end;
    if (entry) {
        tx_code_emit(g, V_LEND, 0, 0, 0, 0, 0, 0);
        tx_code_leave(g);
    }
    patch(g, true, tx_code_here(g));
    g->loops.n--;
}

static void
for_stmt(tx_code *g, const tx_node *n)
{
    tx_dtype t = n->u.loop->var->dtype;
    tx_val b[3];
    for (int i = 0; i < 3; i++) {
        b[i] = n->arg[i] ? tx_code_cast(g, t, tx_code_expr(g, n->arg[i], 0)) : tx_val_int(t, i == 2);
        if (b[i].form == VF_NONE)
            return;
        b[i] = tx_code_copy(g, b[i]);
        if (b[i].form != VF_CONST)
            tx_code_keep(g, b[i].reg);
    }
    if (!unrolled(g, n, &b[0], &b[1], &b[2]))
        counted(g, n, b[0], b[1], b[2]);
}

static void
while_stmt(tx_code *g, const tx_node *n)
{
    bool entry = tx_code_facts(g, n) & FACT_ENTRY;
    uint32_t at = 0, head, out = 0, cont = 0;
    tx_scope_mark m;
    tx_val c;

    hoist(g, n->arg[0], 0);
    hoist(g, n->arg[1], 0);
    if (entry) {
        at = tx_code_emit(g, V_LOOP, 0, 0, 0, 0, 0, 0);
        tx_code_enter(g);
    }
    head = tx_code_here(g);
    m = tx_code_push(g);
    c = tx_code_expr(g, n->arg[0], 0);
    if (c.form == VF_NONE)
        return;
    c = tx_code_cast(g, TX_BOOL, c);
    if (c.form == VF_ROW && !entry)
        tx_code_learn(g, n, FACT_ENTRY);
    out = tx_code_emit(g, entry ? V_LTEST : V_JZ, 0, 0, tx_code_operand(g, &c), 0, 0, 0);
    tx_code_pop(g, m);
    open_loop(g, n, entry);
    tx_code_block(g, n->arg[1]);
    patch(g, false, tx_code_here(g));
    if (entry)
        g->code.at[at].imm = cont = tx_code_emit(g, V_LCONT, 0, 0, 0, 0, 0, 0);
    uint32_t back = tx_code_emit(g, V_LOOPJ, 0, 0, 0, 0, 0, head);
    g->code.at[back].site = tx_code_site(g, n->span, "", "loops at", 0, 0);
    g->code.at[out].imm = tx_code_here(g);
    if (entry) {
        g->code.at[cont].imm = g->code.n;
        tx_code_emit(g, V_LEND, 0, 0, 0, 0, 0, 0);
        tx_code_leave(g);
    }
    patch(g, true, tx_code_here(g));
    g->loops.n--;
}

/* ---- functions of the module ------------------------------------------------------------------------------------- */

void
tx_code_inline(tx_code *g, const tx_func *f, tx_inlined *frame)
{
    uint32_t at = tx_code_emit(g, V_LOOP, 0, 0, 0, 0, 0, 0), cont;
    tx_code_enter(g);
    open_loop(g, f->body, true);
    frame->loop = g->loops.n - 1;
    g->inlined = frame;
    tx_code_block(g, f->body);
    g->inlined = frame->outer;
    g->code.at[at].imm = cont = tx_code_emit(g, V_LCONT, 0, 0, 0, 0, 0, 0);
    g->code.at[cont].imm = tx_code_emit(g, V_LEND, 0, 0, 0, 0, 0, 0);
    tx_code_leave(g);
    g->loops.n--;
}

static void
return_stmt(tx_code *g, const tx_node *n)
{
    if (!g->inlined) {
        tx_code_emit(g, V_RET, 0, 0, 0, 0, 0, 0);
        return;
    }
    tx_inlined *f = g->inlined;
    if (n->nargs && n->arg[0] && f->result.form != VF_NONE)
        tx_code_move_to(g, f->result.reg, true, true, tx_code_cast(g, f->result.t, tx_code_expr(g, n->arg[0], 0)));
    tx_code_emit(g, V_BREAK, 0, 0, 0, 0, 0, g->ctl - g->loops.at[f->loop].ctl);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void
bind_stmt(tx_code *g, const tx_node *n)
{
    unsigned lanes = tx_lanes(n->u.var->dtype);
    tx_val v, first = {.form = VF_NONE};
    if (lanes <= 1) {
        g->leads = tx_overflow_leads(g, n->u.var);
        v = tx_code_expr(g, n->arg[0], 0);
        g->leads = LEADS_NOWHERE;
        if (v.form == VF_NONE)
            return;
        v = tx_code_copy(g, tx_code_cast(g, n->u.var->dtype, v));
        if (v.form != VF_CONST)
            tx_code_keep(g, v.reg);
        tx_code_bind(g, n->u.var, v);
        return;
    }
    for (unsigned i = 0; i < lanes; i++) {
        v = tx_code_expr(g, n->arg[0], i);
        if (v.form == VF_NONE)
            return;
        if (i == 0) {
            first = tx_val_new(g, v.t, true);
            first.reg = tx_code_regs(g, rc_class(first.reg), lanes);
        }
        tx_code_move_to(g, first.reg + i, true, false, v);
    }
    tx_code_bind(g, n->u.var, first);
}

static void
assert_stmt(tx_code *g, const tx_node *n)
{
    const tx_assertion *a = n->u.assertion;
    tx_val c = tx_code_cast(g, TX_BOOL, tx_code_expr(g, n->arg[0], 0));
    tx_sb text = {0};
    if (c.form == VF_NONE || (c.form == VF_CONST && c.k.u32))
        return;
    for (uint32_t i = 0; a && i < a->nparts; i++)
        tx_sb_puts(&text, a->parts[i]->text);
    uint32_t which = tx_code_outside(g, text.n ? text.text : "", 0, NULL, TX_VOID);
    tx_sb_free(&text);
    uint32_t at = tx_code_emit(g, V_ASSERT, 0, 0, tx_code_operand(g, &c), 0, 0, which);
    g->code.at[at].site = tx_code_site(g, n->span, "", "assertion", 0, 0);
}

static void
code_stmt_stmt(tx_code *g, const tx_node *n, const tx_node *const *rest, uint32_t nrest)
{
    switch (n->op) {
    case TX_OP_SEQ:
        for (uint32_t i = 0; i < n->nargs; i++) {
            uint32_t mark = g->live.n;
            if (n->arg[i]->op == TX_OP_ALLOC) {
                g->span = n->arg[i]->span;
                tx_code_alloc(g, n->arg[i], n->arg + i + 1, n->nargs - i - 1);
                tx_code_free_temps(g, mark);
            } else
                tx_code_stmt(g, n->arg[i]);
        }
        return;
    case TX_OP_BIND: bind_stmt(g, n); return;
    case TX_OP_STORE: tx_code_store(g, n); return;
    case TX_OP_ALLOC: tx_code_alloc(g, n, rest, nrest); return;
    case TX_OP_DECL: tx_code_decl(g, n); return;
    case TX_OP_FOR: for_stmt(g, n); return;
    case TX_OP_WHILE: while_stmt(g, n); return;
    case TX_OP_IF: if_stmt(g, n); return;
    case TX_OP_BREAK:
    case TX_OP_CONTINUE: leave_turn(g, n); return;
    case TX_OP_RETURN: return_stmt(g, n); return;
    case TX_OP_EVAL: tx_code_expr(g, n->arg[0], 0); return;
    case TX_OP_ASSERT: assert_stmt(g, n); return;
    case TX_OP_ATTR:
        if (n->arg[1])
            tx_code_stmt(g, n->arg[1]);
        return;
    default:
        tx_code_unsupported(g, tx_ops[n->op].spelling[0] ? tx_ops[n->op].spelling : tx_ops[n->op].name, TX_I32);
        return;
    }
}

void
tx_code_stmt(tx_code *g, const tx_node *n)
{
    uint32_t mark = g->live.n;
    tx_span outer = g->span;
    if (g->failed || !n)
        return;
    if (++g->depth > TX_MAX_DEPTH) {
        tx_fail(g->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
        g->depth--;
        return;
    }
    if (n->span)
        g->span = n->span;
    code_stmt_stmt(g, n, NULL, 0);
    tx_code_free_temps(g, mark);
    g->span = outer;
    g->depth--;
}

void
tx_code_block(tx_code *g, const tx_node *n)
{
    tx_scope_mark m = tx_code_push(g);
    tx_code_stmt(g, n);
    tx_code_pop(g, m);
}
