/* setmaxnreg: a kernel that moves registers between its warpgroups starts with a known number of them, so it gets launch
 * bounds with one block an SM, and what its warpgroups hold in the end must fit into the SM (kernels without the bounds
 * lose the instruction silently). Conditions are evaluated for each warp; where one is not known, nothing is claimed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower/registers.h"

#include "ir/ptx.h"

enum { SM_REGISTERS = 65536, GROUP_THREADS = 128, MOST_GROUPS = 8 };

typedef struct register_budget {
    tx_ctx *c;
    tx_map vars; /* tx_var* -> the BIND's value */
    int64_t tid; /* of the first thread of the warp that is followed */
    int64_t now; /* registers of one of its threads */
    bool unknown, failed;
} register_budget;

static bool
is_setmaxnreg(const tx_node *n)
{
    uint32_t nrows;
    const tx_ptx_row *rows = n->op == TX_OP_PTX ? tx_ptx_rows(&nrows) : NULL;

    return rows && strcmp(rows[n->u.ptx->row].emu, "setmaxnreg") == 0;
}

static bool
registers_moved(const tx_node *n)
{
    if (!n)
        return false;
    if (n->op == TX_OP_EVAL)
        return is_setmaxnreg(n->arg[0]);
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && tx_is_stmt(n->arg[i]) && registers_moved(n->arg[i]))
            return true;
    return false;
}

static bool value_in_warp(register_budget *b, const tx_node *n, int64_t *out);

static bool
binary_in_warp(register_budget *b, const tx_node *n, int64_t *out)
{
    int64_t x, y;

    if (n->nargs != 2 || !value_in_warp(b, n->arg[0], &x))
        return false;
    if (n->op == TX_OP_AND || n->op == TX_OP_OR) {
        if ((x != 0) == (n->op == TX_OP_OR)) {
            *out = x != 0;
            return true;
        }
    }
    if (!value_in_warp(b, n->arg[1], &y))
        return false;
    switch (n->op) {
    case TX_OP_ADD: return tx_add_i64(x, y, out);
    case TX_OP_SUB: return tx_sub_i64(x, y, out);
    case TX_OP_MUL: return tx_mul_i64(x, y, out);
    case TX_OP_FLOORDIV:
    case TX_OP_DIV: *out = y > 0 && x >= 0 ? x / y : 0; return y > 0 && x >= 0;
    case TX_OP_FLOORMOD:
    case TX_OP_MOD: *out = y > 0 && x >= 0 ? x % y : 0; return y > 0 && x >= 0;
    case TX_OP_SHR: *out = x >> (y & 63); return x >= 0;
    case TX_OP_BAND: *out = x & y; return true;
    case TX_OP_EQ: *out = x == y; return true;
    case TX_OP_NE: *out = x != y; return true;
    case TX_OP_LT: *out = x < y; return true;
    case TX_OP_LE: *out = x <= y; return true;
    case TX_OP_GT: *out = x > y; return true;
    case TX_OP_GE: *out = x >= y; return true;
    case TX_OP_AND:
    case TX_OP_OR: *out = y != 0; return true;
    default: return false;
    }
}

/* What the expression is in the first thread of the warp, as far as the place in the block decides it. */
static bool
value_in_warp(register_budget *b, const tx_node *n, int64_t *out)
{
    const tx_node *bound;

    switch (n->op) {
    case TX_OP_INT: *out = n->u.i; return true;
    case TX_OP_VAR: bound = tx_map_ptr(&b->vars, n->u.var); return bound && value_in_warp(b, bound, out);
    case TX_OP_THREAD_IDX: *out = b->tid; return n->u.i == 0;
    case TX_OP_LINEAR_TID:
    case TX_OP_THREAD_RANK: *out = b->tid; return true;
    case TX_OP_WARP_ID: *out = b->tid / 32; return true;
    case TX_OP_WARPGROUP_ID: *out = b->tid / GROUP_THREADS; return true;
    case TX_OP_SHFL:
    case TX_OP_CAST:
    case TX_OP_LIKELY: return value_in_warp(b, n->arg[n->op == TX_OP_SHFL], out);
    case TX_OP_NOT:
        if (!value_in_warp(b, n->arg[0], out))
            return false;
        *out = !*out;
        return true;
    default: return binary_in_warp(b, n, out);
    }
}

static void
set_registers(register_budget *b, const tx_node *n)
{
    int64_t to = n->arg[0]->u.i;
    const char *op = tx_ptx_choice(n->u.ptx, "op");
    bool more = strcmp(op, "inc") == 0;

    if (n->arg[0]->op != TX_OP_INT)
        return;
    if (more ? to < b->now : to > b->now) {
        tx_fail(b->c, n->span, TX_E_SETMAXNREG_WAY, op, (long long)to, (long long)b->now);
        b->failed = true;
    }
    b->now = to;
}

static void
follow_warp(register_budget *b, const tx_node *n)
{
    int64_t taken;

    if (!n || b->failed || b->unknown)
        return;
    if (n->op == TX_OP_BIND) {
        tx_map_put_ptr(&b->vars, n->u.var, n->arg[0]);
    } else if (n->op == TX_OP_EVAL) {
        if (is_setmaxnreg(n->arg[0]))
            set_registers(b, n->arg[0]);
    } else if (n->op == TX_OP_IF) {
        if (value_in_warp(b, n->arg[0], &taken))
            follow_warp(b, taken ? n->arg[1] : n->arg[2]);
        else
            b->unknown = registers_moved(n->arg[1]) || registers_moved(n->arg[2]);
    } else {
        for (uint32_t i = 0; i < n->nargs; i++)
            if (n->arg[i] && tx_is_stmt(n->arg[i]))
                follow_warp(b, n->arg[i]);
    }
}

/* The place of the instruction that asks for most, to blame. */
static const tx_node *
greediest(const tx_node *n, const tx_node *best)
{
    if (!n)
        return best;
    if (n->op == TX_OP_EVAL && is_setmaxnreg(n->arg[0]) && n->arg[0]->arg[0]->op == TX_OP_INT)
        return !best || n->arg[0]->arg[0]->u.i > best->arg[0]->u.i ? n->arg[0] : best;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && tx_is_stmt(n->arg[i]))
            best = greediest(n->arg[i], best);
    return best;
}

static bool
register_budget_holds(tx_ctx *c, const tx_node *body, int64_t threads)
{
    int64_t groups = threads / GROUP_THREADS, sum = 0;
    register_budget b = {.c = c};
    tx_sb each = {0};

    for (int64_t w = 0; w < groups && !b.failed && !b.unknown; w++) {
        int64_t first = 0;
        for (int64_t warp = 4 * w; warp < 4 * w + 4; warp++) {
            b.tid = 32 * warp;
            b.now = SM_REGISTERS / threads / 8 * 8;
            follow_warp(&b, body);
            b.unknown |= warp % 4 && b.now != first; /* only a part of the warpgroup: not for us to judge */
            first = b.now;
        }
        sum += first * GROUP_THREADS;
        tx_sb_f(&each, "%s%lld", w ? " + " : "", (long long)first);
    }
    tx_map_free(&b.vars);
    if (!b.failed && !b.unknown && sum > SM_REGISTERS) {
        tx_fail(c, greediest(body, NULL)->span, TX_E_SETMAXNREG_BUDGET, each.text ? each.text : "",
                (long long)(sum / GROUP_THREADS), SM_REGISTERS / GROUP_THREADS);
        b.failed = true;
    }
    tx_sb_free(&each);
    return !b.failed;
}

bool
tx_register_budget(tx_ctx *c, tx_func *kernel)
{
    tx_launch *l = &kernel->launch;
    int64_t threads = 1, d;

    if (!registers_moved(kernel->body))
        return true;
    if (l->max_registers == 0 && l->min_blocks == 0)
        l->min_blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (!kernel->block[i] || !tx_const_i64(kernel->block[i], &d) || (i && d != 1))
            return true;
        threads *= d;
    }
    if (l->max_registers || l->min_blocks != 1 || threads % GROUP_THREADS != 0 || threads <= 2 * GROUP_THREADS ||
        threads > MOST_GROUPS * GROUP_THREADS)
        return true; /* the number at the start is another one, or more than a thread can have */
    return register_budget_holds(c, kernel->body, threads);
}
