/* VM code for expressions. One call computes one lane of a vector dtype; scalars have lane 0. Pure integer expressions are
 * computed once in a scope (g->cache, by value number). SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

enum { MAX_CACHED = 200 }; /* entries: more rows would push the frame out of the processor's cache */

tx_val
tx_code_unsupported(tx_code *g, const char *what, tx_dtype t)
{
    uint32_t text = tx_code_outside(g, what, 0, NULL, TX_VOID);
    uint32_t at = tx_code_emit(g, V_UNSUP, 0, 0, 0, 0, 0, text);
    g->code.at[at].site = tx_code_site(g, 0, NULL, "", 0, 0);
    tx_val v = {.form = VF_CONST, .vt = (uint8_t)tx_vt_of(t), .t = t};
    if (v.vt == VT_NONE)
        v.vt = VT_I32, v.t = TX_I32;
    return v;
}

tx_val
tx_code_copy(tx_code *g, tx_val v)
{
    if (!v.cell)
        return v;
    tx_val r = tx_val_new(g, v.t, v.form == VF_ROW);
    r.lo = v.lo, r.hi = v.hi;
    tx_code_move_to(g, r.reg, v.form == VF_ROW, false, v);
    return r;
}

/* The value of the first active lane, for values that do not differ. */
tx_val
tx_code_uniform(tx_code *g, tx_val v)
{
    if (v.form != VF_ROW)
        return v;
    tx_val r = tx_val_new(g, v.t, false);
    r.lo = v.lo, r.hi = v.hi;
    bool wide = v.vt == VT_I64 || v.vt == VT_U64 || v.vt == VT_F64;
    tx_code_emit(g, v.vt == VT_B ? V_LANEB : wide ? V_LANE64 : V_LANE32, 0, r.reg, v.reg, 0, 0, 0);
    return r;
}

/* ---- what may be computed although nobody asks ---------------------------------------------------------------------- */

static bool
can_fault(const tx_node *n)
{
    int64_t k = 0;
    switch (n->op) {
    case TX_OP_DIV:
    case TX_OP_MOD:
        if (tx_is_float(n->dtype))
            return false;
        return !tx_const_i64(n->arg[1], &k) || k == 0;
    case TX_OP_FLOORDIV:
    case TX_OP_FLOORMOD: return !tx_const_i64(n->arg[1], &k) || k == 0;
    case TX_OP_SHL:
    case TX_OP_SHR: return !tx_const_i64(n->arg[1], &k);
    default: return !tx_has(n->op, TX_PROP_PURE);
    }
}

static bool
code_expr_plain(const tx_node *n, int depth)
{
    if (depth > TX_MAX_DEPTH || can_fault(n))
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->op != TX_OP_ADDRESS_OF && n->arg[i] && !code_expr_plain(n->arg[i], depth + 1))
            return false;
    return true;
}

bool
tx_code_plain(const tx_code *g, const tx_node *n)
{
    (void)g;
    return !(n->flags & TX_NF_IMPURE) && code_expr_plain(n, 0);
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

static tx_val
code_expr_constant(tx_code *g, const tx_node *n)
{
    tx_val v = {.form = VF_CONST, .t = tx_scalar_of(n->dtype)};
    v.vt = (uint8_t)tx_vt_of(v.t);
    if (v.vt == VT_NONE)
        return tx_code_unsupported(g, "a constant of this type", v.t);
    if (n->op == TX_OP_INT)
        return tx_val_int(v.t, n->u.i);
    if (v.vt == VT_F32)
        v.k.f32 = (float)n->u.f;
    else if (v.vt == VT_F64)
        v.k.f64 = n->u.f;
    else
        v.k.u32 = (uint32_t)tx_encode(v.t, n->u.f);
    return v;
}

static tx_val
code_expr_range(tx_val v, int64_t lo, int64_t hi)
{
    v.lo = lo, v.hi = hi;
    return v;
}

static tx_val
thread_idx(tx_code *g, int axis)
{
    int64_t bx = g->block[0], n = g->block[axis];
    bool flat = g->block[1] == 1 && g->block[2] == 1, lined = bx > 0 && bx % TX_LANES == 0;
    if (n == 1)
        return tx_val_int(TX_I32, 0);
    tx_val v = tx_code_coord(g, TX_OP_THREAD_IDX, axis, !(axis > 0 && lined));
    v = code_expr_range(v, 0, (n ? n : TX_MAX_THREADS) - 1);
    if (axis == 0 && (lined || flat))
        v.stride = 1, v.align = TX_LANES;
    return v;
}

static tx_val
linear_tid(tx_code *g)
{
    int64_t n = g->block[0] && g->block[1] && g->block[2] ? g->block[0] * g->block[1] * g->block[2] : TX_MAX_THREADS;
    tx_val v = code_expr_range(tx_code_coord(g, TX_OP_LINEAR_TID, 0, true), 0, n - 1);
    v.stride = 1, v.align = TX_LANES;
    return v;
}

static tx_val
code_expr_coordinate(tx_code *g, const tx_node *n)
{
    int axis = tx_has(n->op, TX_PROP_COORD) ? (int)n->u.i : 0;
    tx_val v;
    switch (n->op) {
    case TX_OP_THREAD_IDX: return thread_idx(g, axis);
    case TX_OP_BLOCK_DIM:
        return g->block[axis] ? tx_val_int(TX_I32, g->block[axis])
                              : code_expr_range(tx_code_coord(g, n->op, axis, false), 1, TX_MAX_THREADS);
    case TX_OP_LINEAR_TID:
    case TX_OP_THREAD_RANK: return linear_tid(g);
    case TX_OP_LANE_ID:
        v = code_expr_range(tx_code_coord(g, n->op, 0, true), 0, TX_LANES - 1);
        v.stride = 1, v.align = TX_LANES;
        return v;
    case TX_OP_THREAD_IN_WG:
        return tx_code_bin(g, TX_OP_FLOORMOD, TX_I32, linear_tid(g), tx_val_int(TX_I32, 4 * TX_LANES));
    case TX_OP_WARP_ID: return code_expr_range(tx_code_coord(g, n->op, 0, false), 0, TX_MAX_WARPS - 1);
    case TX_OP_WARPGROUP_ID: return code_expr_range(tx_code_coord(g, n->op, 0, false), 0, TX_MAX_WARPS / 4 - 1);
    case TX_OP_WARP_IN_WG: return code_expr_range(tx_code_coord(g, n->op, 0, false), 0, 3);
    default: return tx_code_coord(g, n->op, axis, false);
    }
}

static tx_val
code_expr_variable(tx_code *g, const tx_node *n, unsigned lane)
{
    code_binding *b = tx_code_find(g, n->u.var);
    if (b && !b->is_storage) {
        tx_val v = b->val;
        v.reg += lane; /* the lanes of a vector stand in consecutive rows */
        return v;
    }
    if (b && tx_is_handle(n->dtype))
        return tx_code_pointer(g, n, 0);
    return tx_fail(g->c, n->span ? n->span : g->span, TX_E_INTERNAL, n->u.var->name->text), (tx_val){.form = VF_NONE};
}

/* ---- choice ------------------------------------------------------------------------------------------------------ */

static tx_val
select_masks(tx_code *g, tx_val c, tx_val a, tx_val b)
{
    tx_val taken = tx_code_bin(g, TX_OP_BAND, TX_BOOL, c, a);
    return tx_code_bin(g, TX_OP_BOR, TX_BOOL, taken, tx_code_bin(g, TX_OP_BAND, TX_BOOL, tx_code_not(g, c), b));
}

static tx_val
code_expr_choose(tx_code *g, tx_dtype t, tx_val c, tx_val a, tx_val b)
{
    bool ar = a.form == VF_ROW, br = b.form == VF_ROW;
    tx_val r;
    if (c.form == VF_NONE || a.form == VF_NONE || b.form == VF_NONE)
        return c.form == VF_NONE ? c : a;
    if (c.form == VF_CONST)
        return c.k.u32 ? a : b;
    if (a.vt == VT_B)
        return select_masks(g, c, a, b);
    bool row = ar || br || c.form == VF_ROW;
    r = tx_val_new(g, t, row);
    if (tx_is_int(t))
        r.lo = a.lo < b.lo ? a.lo : b.lo, r.hi = a.hi > b.hi ? a.hi : b.hi;
    if (!row) {
        tx_code_emit(g, V_SELS, 0, r.reg, tx_code_operand(g, &a), tx_code_operand(g, &b), tx_code_operand(g, &c), 0);
        return r;
    }
    bool wide = r.vt == VT_I64 || r.vt == VT_U64 || r.vt == VT_F64;
    unsigned form = ar ? br ? 1 : 2 : br ? 3 : 0;
    tx_code_emit(g, (wide ? V_SEL_I64_SS : V_SEL_I32_SS) + form, 0, r.reg, tx_code_operand(g, &a),
                 tx_code_operand(g, &b), tx_code_operand(g, &c), 0);
    return r;
}

/* Only the taken side is evaluated: under a narrowed mask, or behind a jump where the condition is uniform. Whether the
 * result is uniform is known afterwards only: a fact for the next generation. */
static tx_val
lazy(tx_code *g, const tx_node *key, tx_dtype t, tx_val c, const tx_node *a, const tx_node *b, tx_val b_val,
     unsigned lane)
{
    if (c.form == VF_CONST)
        return c.k.u32 ? tx_code_expr(g, a, lane) : b ? tx_code_expr(g, b, lane) : b_val;
    bool varying = c.form == VF_ROW, row = varying || (tx_code_facts(g, key) & FACT_ROW);
    tx_val r = tx_val_new(g, t, row), v;
    tx_scope_mark m;
    uint32_t at;

    if (!b) {
        bool same = c.form == b_val.form && c.reg == b_val.reg;
        tx_code_move_to(g, r.reg, row, varying, b_val);
        if (same && !row)
            c.reg = r.reg; /* what computed both may write the result's register now */
    }
    at = tx_code_if_at(g, c);
    m = tx_code_push(g);
    v = tx_code_expr(g, a, lane);
    if (v.form == VF_ROW && !row)
        tx_code_learn(g, key, FACT_ROW);
    tx_code_move_to(g, r.reg, row, varying, v);
    tx_code_pop(g, m);
    if (b) {
        tx_code_else_at(g, &at);
        m = tx_code_push(g);
        v = tx_code_expr(g, b, lane);
        if (v.form == VF_ROW && !row)
            tx_code_learn(g, key, FACT_ROW);
        tx_code_move_to(g, r.reg, row, varying, v);
        tx_code_pop(g, m);
    } else if (b_val.form == VF_ROW && !row)
        tx_code_learn(g, key, FACT_ROW);
    tx_code_endif_at(g, at, b != NULL);
    return r;
}

static tx_val
logic(tx_code *g, const tx_node *n, unsigned lane)
{
    bool is_and = n->op == TX_OP_AND;
    tx_val a = tx_code_expr(g, n->arg[0], lane);
    if (a.form == VF_CONST)
        return (a.k.u32 != 0) == is_and ? tx_code_expr(g, n->arg[1], lane) : a;
    if (tx_code_plain(g, n->arg[1]))
        return tx_code_bin(g, is_and ? TX_OP_BAND : TX_OP_BOR, TX_BOOL, a, tx_code_expr(g, n->arg[1], lane));
    return lazy(g, n, TX_BOOL, is_and ? a : tx_code_not(g, a), n->arg[1], NULL, a, lane);
}

static tx_val
choice(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    tx_val c = tx_code_expr(g, n->arg[0], tx_lanes(n->arg[0]->dtype) > 1 ? lane : 0);
    if (n->op == TX_OP_IF_THEN_ELSE && !(tx_code_plain(g, n->arg[1]) && tx_code_plain(g, n->arg[2])))
        return lazy(g, n, t, c, n->arg[1], n->arg[2], c, lane);
    tx_val a = tx_code_expr(g, n->arg[1], lane);
    return code_expr_choose(g, t, c, a, tx_code_expr(g, n->arg[2], lane));
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

static tx_val
code_expr_shuffle(tx_code *g, const tx_node *n, unsigned lane)
{
    int64_t nvec = n->u.i, at;
    if (!tx_const_i64(n->arg[nvec + lane], &at))
        return tx_code_unsupported(g, "T.Shuffle with run-time indices", tx_scalar_of(n->dtype));
    for (int64_t i = 0; i < nvec; i++) {
        int64_t lanes = tx_lanes(n->arg[i]->dtype);
        if (at < lanes)
            return tx_code_expr(g, n->arg[i], (unsigned)at);
        at -= lanes;
    }
    return tx_code_unsupported(g, "T.Shuffle with an index outside", tx_scalar_of(n->dtype));
}

static tx_val
code_expr_ramp(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    tx_val base = tx_code_cast(g, t, tx_code_expr(g, n->arg[0], 0));
    tx_val step = tx_code_cast(g, t, tx_code_expr(g, n->arg[1], 0));
    return tx_code_bin(g, TX_OP_ADD, t, base, tx_code_bin(g, TX_OP_MUL, t, step, tx_val_int(t, lane)));
}

static tx_val
code_expr_vector(tx_code *g, const tx_node *n, unsigned lane)
{
    for (uint32_t i = 0; i < n->nargs; i++) {
        unsigned lanes = tx_lanes(n->arg[i]->dtype);
        if (lane < lanes)
            return tx_code_expr(g, n->arg[i], lane);
        lane -= lanes;
    }
    return tx_code_unsupported(g, tx_ops[n->op].spelling, tx_scalar_of(n->dtype));
}

static tx_val
let(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_scope_mark m = tx_code_push(g);
    tx_code_bind(g, n->u.var, tx_code_copy(g, tx_code_expr(g, n->arg[0], 0)));
    tx_val v = tx_code_expr(g, n->arg[1], lane);
    /* the names go, the registers stay until the statement ends */
    for (uint32_t i = m.live; i < g->live.n; i++)
        g->live.at[i].keep = false;
    m.live = g->live.n;
    tx_code_pop(g, m);
    return v;
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

static tx_val
code_expr_expr(tx_code *g, const tx_node *n, unsigned lane)
{
    unsigned op = n->op;
    if (tx_lanes(n->dtype) <= 1)
        lane = 0;
    switch (op) {
    case TX_OP_INT:
    case TX_OP_FLOAT: return code_expr_constant(g, n);
    case TX_OP_VAR: return code_expr_variable(g, n, lane);
    case TX_OP_AND:
    case TX_OP_OR: return logic(g, n, lane);
    case TX_OP_NOT: return tx_code_not(g, tx_code_expr(g, n->arg[0], lane));
    case TX_OP_CAST: return tx_code_cast(g, tx_scalar_of(n->dtype), tx_code_expr(g, n->arg[0], lane));
    case TX_OP_REINTERPRET: return tx_code_reinterpret(g, n, lane);
    case TX_OP_SELECT:
    case TX_OP_IF_THEN_ELSE: return choice(g, n, lane);
    case TX_OP_LET: return let(g, n, lane);
    case TX_OP_RAMP: return code_expr_ramp(g, n, lane);
    case TX_OP_BROADCAST: return tx_code_expr(g, n->arg[0], 0);
    case TX_OP_SHUFFLE: return code_expr_shuffle(g, n, lane);
    case TX_OP_VECTOR: return code_expr_vector(g, n, lane);
    case TX_OP_LIKELY: return tx_code_expr(g, n->arg[0], lane);
    case TX_OP_FMA: {
        tx_val a = tx_code_expr(g, n->arg[0], lane), b = tx_code_expr(g, n->arg[1], lane);
        return tx_code_fma(g, tx_scalar_of(n->dtype), a, b, tx_code_expr(g, n->arg[2], lane));
    }
    case TX_OP_LOAD: return tx_code_load(g, n, lane);
    case TX_OP_ADDRESS_OF:
    case TX_OP_BUFFER_DATA:
    case TX_OP_PTR_OFFSET: return tx_code_pointer(g, n, lane);
    default: break;
    }
    if (op >= TX_OP_EQ && op <= TX_OP_SHR) {
        tx_val a = tx_code_expr(g, n->arg[0], lane), b = tx_code_expr(g, n->arg[1], lane);
        if (g->leads)
            tx_overflow_check(g, n, lane, &a, &b);
        return tx_code_bin(g, op, tx_scalar_of(n->arg[0]->dtype), a, b);
    }
    if (op >= TX_OP_THREAD_IDX && op <= TX_OP_THREAD_IN_WG)
        return code_expr_coordinate(g, n);
    if (tx_ops[op].rule == TX_RULE_FLOAT2 || op == TX_OP_LDEXP)
        return tx_code_math2(g, n, lane);
    if ((op >= TX_OP_EXP && op <= TX_OP_CLZ) || op == TX_OP_FFS || op == TX_OP_NEG || op == TX_OP_BNOT ||
        op == TX_OP_ABS)
        return tx_code_unary(g, n, lane);
    return tx_code_call(g, n, lane);
}

static bool
worth_caching(const tx_node *n)
{
    return n->nargs > 0 && n->vn && !(n->flags & TX_NF_IMPURE) && tx_has(n->op, TX_PROP_PURE) &&
           (tx_is_int(n->dtype) || tx_is_bool(n->dtype) || tx_is_handle(n->dtype)) && n->op != TX_OP_LET;
}

void
tx_code_remember(tx_code *g, uint64_t key, tx_val v)
{
    uint64_t before = 0;
    if (v.cell || v.form == VF_NONE || (v.form == VF_ROW && g->cached.n >= MAX_CACHED))
        return;
    tx_map_get(&g->cache, key, &before);
    tx_cached e = {key, before, v};
    if (!tx_push(g->c, &g->cached, e) || !tx_map_put(&g->cache, key, g->cached.n))
        g->failed = true;
    if (v.form != VF_CONST)
        tx_code_keep(g, v.reg);
}

tx_val
tx_code_expr(tx_code *g, const tx_node *n, unsigned lane)
{
    uint64_t at, key = (uint64_t)n->vn << 8 | (lane + 1);
    bool cache = worth_caching(n);
    tx_val v;

    if (g->failed)
        return (tx_val){.form = VF_NONE};
    if (cache && tx_map_get(&g->cache, key, &at) && at) {
        v = g->cached.at[at - 1].val;
        if (g->leads)
            tx_overflow_again(g, n, lane);
        return v;
    }
    if (++g->depth > TX_MAX_DEPTH) {
        g->depth--;
        return tx_fail(g->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH), (tx_val){.form = VF_NONE};
    }
    unsigned leads = g->leads;
    g->leads = tx_overflow_passes(n, leads);
    v = code_expr_expr(g, n, lane);
    g->leads = leads;
    g->depth--;
    if (cache)
        tx_code_remember(g, key, v);
    return v;
}
