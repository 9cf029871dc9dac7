/* VM code for calls: barriers, exchange between lanes, atomics, printing, injected functions, functions of the module.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

static const tx_val NOTHING = {.form = VF_NONE};

static tx_val
arg(tx_code *g, const tx_node *n, uint32_t i)
{
    return tx_code_expr(g, n->arg[i], 0);
}

static tx_val
arg_as(tx_code *g, const tx_node *n, uint32_t i, tx_dtype t)
{
    return tx_code_cast(g, t, arg(g, n, i));
}

/* A member mask: one value for all lanes that execute the instruction. */
static uint32_t
member_mask(tx_code *g, const tx_node *n, uint32_t i)
{
    tx_val v = i < n->nargs ? tx_code_uniform(g, arg_as(g, n, i, TX_U32)) : tx_val_int(TX_U32, UINT32_MAX);
    return tx_code_operand(g, &v);
}

static void
at_site(tx_code *g, uint32_t at, const tx_node *n, const char *buffer, const char *role)
{
    g->code.at[at].site = tx_code_site(g, n->span, buffer, role, 0, 0);
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

static tx_val
code_call_barrier(tx_code *g, const tx_node *n)
{
    tx_val r = NOTHING, a = NOTHING;
    unsigned aux = TX_BAR_CTA;
    const char *name = "barrier 0";
    uint32_t d = 0;

    switch (n->op) {
    case TX_OP_WARPGROUP_SYNC:
        aux = TX_BAR_GROUP, name = "", g->partial_barriers = true;
        a = tx_code_uniform(g, arg_as(g, n, 0, TX_I32));
        break;
    case TX_OP_GRID_SYNC: aux = TX_BAR_GRID, name = "grid barrier", g->meets_ctas = true; break;
    case TX_OP_SYNC_AND:
    case TX_OP_SYNC_OR:
        aux = n->op == TX_OP_SYNC_AND ? TX_BAR_AND : TX_BAR_OR;
        a = arg_as(g, n, 0, TX_BOOL);
        r = tx_val_new(g, TX_I32, false);
        d = r.reg, r.lo = 0, r.hi = 1;
        break;
    default: break;
    }
    uint32_t live = tx_code_live(g);
    uint32_t at = tx_code_emit(g, V_BAR, aux, d, tx_code_operand(g, &a), 0, 0, live);
    at_site(g, at, n, name, "waits at");
    return r;
}

/* ---- exchange ---------------------------------------------------------------------------------------------------- */

static tx_val
code_call_shuffle(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    bool flag = tx_is_bool(t);
    tx_val v = tx_code_expr(g, n->arg[1], lane);
    if (flag)
        v = tx_code_cast(g, TX_I32, v);
    v = tx_code_to_row(g, v);
    tx_val at_lane = tx_code_to_row(g, arg_as(g, n, 2, TX_I32));
    tx_val width = tx_code_uniform(g, arg_as(g, n, 3, TX_I32));
    uint32_t mask = member_mask(g, n, 0);
    if (v.form == VF_NONE || at_lane.form == VF_NONE)
        return v.form == VF_NONE ? v : at_lane;
    if (v.vt == VT_NONE)
        return tx_code_unsupported(g, "a shuffle of this type", t);
    tx_val r = tx_val_new(g, v.t, true);
    bool wide = v.vt == VT_I64 || v.vt == VT_U64 || v.vt == VT_F64;
    unsigned mode = n->op == TX_OP_SHFL        ? TX_SHFL_IDX
                    : n->op == TX_OP_SHFL_UP   ? TX_SHFL_UP
                    : n->op == TX_OP_SHFL_DOWN ? TX_SHFL_DOWN
                                               : TX_SHFL_XOR;
    uint32_t at = tx_code_emit(g, V_SHFL, mode | (wide ? 16 : 0), r.reg, tx_code_operand(g, &v), mask,
                               tx_code_operand(g, &at_lane), tx_code_operand(g, &width));
    at_site(g, at, n, "", "shuffle");
    return flag ? tx_code_cast(g, TX_BOOL, r) : r;
}

static tx_val
code_call_vote(tx_code *g, const tx_node *n)
{
    static const uint8_t what[] = {TX_VOTE_BALLOT, TX_VOTE_ANY, TX_VOTE_ADD, TX_VOTE_MIN, TX_VOTE_ELECT};
    unsigned aux = what[n->op - TX_OP_BALLOT];
    tx_val a = NOTHING, r;
    if (aux == TX_VOTE_BALLOT || aux == TX_VOTE_ANY)
        a = arg_as(g, n, 1, TX_BOOL);
    else if (aux != TX_VOTE_ELECT)
        a = tx_code_to_row(g, arg_as(g, n, 1, TX_U32));
    uint32_t mask = aux == TX_VOTE_ELECT ? tx_code_const(g, TX_FULL) : member_mask(g, n, 0);
    r = tx_val_new(g, aux == TX_VOTE_ELECT ? TX_BOOL : aux == TX_VOTE_ANY ? TX_I32 : TX_U32, aux == TX_VOTE_ELECT);
    uint32_t at = tx_code_emit(g, V_VOTE, aux, r.reg, tx_code_operand(g, &a), mask, 0, 0);
    at_site(g, at, n, "", aux == TX_VOTE_ELECT ? "elect" : "vote");
    return aux == TX_VOTE_ELECT ? tx_code_cast(g, tx_scalar_of(n->dtype), r) : r;
}

static int
reduction(const tx_node *op)
{
    const char *s = op->op == TX_OP_STR ? op->u.s->text : "";
    return strcmp(s, "sum") == 0   ? TX_RED_SUM
           : strcmp(s, "min") == 0 ? TX_RED_MIN
           : strcmp(s, "max") == 0 ? TX_RED_MAX
                                   : -1;
}

static unsigned
reduction_op(int red)
{
    return red == TX_RED_SUM ? TX_OP_ADD : red == TX_RED_MIN ? TX_OP_MIN : TX_OP_MAX;
}

/* The butterfly of T.cuda.warp_reduce: shuffles and operations, in the order in which the GPU does them. */
static tx_val
butterfly(tx_code *g, const tx_node *n, tx_val v, int red, int width)
{
    tx_dtype t = v.t;
    bool wide = v.vt == VT_I64 || v.vt == VT_U64 || v.vt == VT_F64;
    for (int m = width >> 1; m; m >>= 1) {
        tx_val lanes = tx_code_to_row(g, tx_val_int(TX_I32, m)), w = tx_val_int(TX_I32, TX_LANES);
        v = tx_code_to_row(g, v);
        tx_val o = tx_val_new(g, t, true);
        uint32_t at = tx_code_emit(g, V_SHFL, TX_SHFL_XOR | (wide ? 16 : 0), o.reg, v.reg, tx_code_const(g, TX_FULL),
                                   lanes.reg, tx_code_operand(g, &w));
        at_site(g, at, n, "", "reduction");
        v = tx_code_bin(g, reduction_op(red), t, v, o);
    }
    return v;
}

static tx_val
warp_reduce(tx_code *g, const tx_node *n)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    int64_t width = TX_LANES;
    int red = reduction(n->arg[1]);
    tx_val v = arg_as(g, n, 0, t);
    if (red < 0 || !tx_const_i64(n->arg[2], &width) || tx_is_bool(t) || tx_vt_of(t) == VT_NONE)
        return tx_code_unsupported(g, "this T.cuda.warp_reduce", t);
    if (v.form == VF_NONE)
        return v;
    return butterfly(g, n, v, red, (int)width);
}

static tx_val
identity(tx_dtype t, int red)
{
    int64_t lo;
    uint64_t hi;
    if (tx_is_float(t)) {
        double x = red == TX_RED_SUM ? 0 : red == TX_RED_MIN ? (double)__builtin_inff() : -(double)__builtin_inff();
        tx_val v = {.form = VF_CONST, .vt = (uint8_t)tx_vt_of(t), .t = t};
        if (v.vt == VT_F32)
            v.k.f32 = (float)x;
        else if (v.vt == VT_F64)
            v.k.f64 = x;
        else
            v.k.u32 = (uint32_t)tx_encode(t, x);
        return v;
    }
    tx_int_limits(t, &lo, &hi);
    return tx_val_int(t, red == TX_RED_SUM ? 0 : red == TX_RED_MIN ? (int64_t)hi : lo);
}

/* T.cuda.cta_reduce as the GPU does it: each warp to a cell of the scratch array, barrier, warp 0 over the cells, barrier. */
static tx_val
cta_reduce(tx_code *g, const tx_node *n)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    int red = reduction(n->arg[1]);
    int64_t nwarps;
    tx_val v = arg_as(g, n, 0, t), scratch = tx_code_uniform(g, arg(g, n, 3));
    if (red < 0 || !tx_const_i64(n->arg[2], &nwarps) || tx_is_bool(t) || tx_vt_of(t) == VT_NONE)
        return tx_code_unsupported(g, "this T.cuda.cta_reduce", t);
    if (v.form == VF_NONE || scratch.form == VF_NONE)
        return NOTHING;
    int64_t size = tx_dtype_bytes(t);
    unsigned scope = n->arg[3]->scope;
    uint32_t site = tx_code_site(g, n->span, "", "reduction", 0, 0);
    tx_val warp = tx_code_coord(g, TX_OP_WARP_ID, 0, false), lane = tx_code_coord(g, TX_OP_LANE_ID, 0, true);
    tx_val first = tx_code_bin(g, TX_OP_EQ, TX_I32, lane, tx_val_int(TX_I32, 0));

    v = tx_code_to_row(g, butterfly(g, n, v, red, TX_LANES));
    uint32_t at = tx_code_if_at(g, first);
    tx_code_store_ptr(g, tx_code_ptr_add(g, scratch, warp, size), v, site);
    tx_code_endif_at(g, at, false);
    at = tx_code_emit(g, V_BAR, TX_BAR_CTA, 0, 0, 0, 0, tx_code_live(g));
    at_site(g, at, n, "barrier 0", "waits at");

    at = tx_code_if_at(g, tx_code_bin(g, TX_OP_EQ, TX_I32, warp, tx_val_int(TX_I32, 0)));
    tx_val w = tx_val_new(g, t, true);
    tx_code_move_to(g, w.reg, true, false, identity(t, red));
    uint32_t inner = tx_code_if_at(g, tx_code_bin(g, TX_OP_LT, TX_I32, lane, tx_val_int(TX_I32, nwarps)));
    tx_val cell = tx_code_deref(g, tx_code_ptr_add(g, scratch, lane, size), t, scope, site);
    tx_code_move_to(g, w.reg, true, true, cell);
    tx_code_endif_at(g, inner, false);
    w = tx_code_to_row(g, butterfly(g, n, w, red, TX_LANES));
    inner = tx_code_if_at(g, first);
    tx_code_store_ptr(g, scratch, w, site);
    tx_code_endif_at(g, inner, false);
    tx_code_endif_at(g, at, false);
    at = tx_code_emit(g, V_BAR, TX_BAR_CTA, 0, 0, 0, 0, tx_code_live(g));
    at_site(g, at, n, "barrier 0", "waits at");
    return tx_code_deref(g, scratch, t, scope, site);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static tx_val
code_call_atomic(tx_code *g, const tx_node *n)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    bool cas = n->op == TX_OP_ATOMIC_CAS;
    tx_val p = arg(g, n, 0), v = arg_as(g, n, cas ? 2 : 1, t), expect = cas ? arg_as(g, n, 1, t) : NOTHING;
    if (p.form == VF_NONE || v.form == VF_NONE)
        return p.form == VF_NONE ? p : v;
    if (tx_vt_of(t) == VT_NONE || tx_bits(t) < 16)
        return tx_code_unsupported(g, "an atomic operation on this type", t);
    tx_val r = tx_val_new(g, t, true);
    unsigned aux = tx_kind(t) | (p.form == VF_ROW ? TX_ACC_ADDR_V : 0) | (v.form == VF_ROW ? TX_ACC_VAL_V : 0) |
                   (cas ? TX_ACC_CAS : 0) | (expect.form == VF_ROW ? TX_ACC_CMP_V : 0);
    uint32_t at = tx_code_emit(g, V_ATOM, aux, r.reg, tx_code_operand(g, &p), tx_code_operand(g, &v),
                               tx_code_operand(g, &expect), 0);
    at_site(g, at, n, "", "atomic");
    return r;
}

static tx_val
cvta(tx_code *g, const tx_node *n)
{
    tx_val p = arg(g, n, 0);
    if (p.form == VF_NONE)
        return p;
    bool row = p.form == VF_ROW;
    tx_val r = tx_val_new(g, TX_U32, row);
    tx_code_emit(g, V_CVTA, row, r.reg, tx_code_operand(g, &p), 0, 0, 0);
    return r;
}

/* ---- the outside ------------------------------------------------------------------------------------------------- */

static tx_val
outside(tx_code *g, const tx_node *n, unsigned op, const char *text, uint32_t first, const char *role)
{
    uint32_t nargs = n->nargs - first;
    tx_vreg *args = nargs ? tx_new(g->c, tx_vreg, nargs) : NULL;
    tx_val r = NOTHING;
    if (nargs && !args)
        return r;
    for (uint32_t i = 0; i < nargs; i++) {
        tx_val v = arg(g, n, first + i);
        if (op == V_PRINTF && v.vt == VT_X)
            v = tx_code_cast(g, TX_F64, v);
        if (v.form == VF_NONE || v.vt == VT_NONE)
            return tx_code_unsupported(g, "an argument of this type", TX_I32);
        args[i] = tx_code_vreg(g, v);
    }
    if (tx_kind(n->dtype) != TX_KIND_VOID && op == V_EXTERN) {
        if (tx_vt_of(n->dtype) == VT_NONE || tx_lanes(n->dtype) != 1)
            return tx_code_unsupported(g, text, TX_I32);
        r = tx_val_new(g, n->dtype, true);
    }
    uint32_t which = tx_code_outside(g, text, nargs, args, n->dtype);
    uint32_t at = tx_code_emit(g, op, 0, r.form == VF_NONE ? 0 : r.reg, 0, 0, 0, which);
    at_site(g, at, n, "", role);
    return r;
}

/* A function of the module, generated in place; its returns leave a region made like a loop of one turn. */
static tx_val
call_func(tx_code *g, const tx_node *n)
{
    const tx_func *f = n->u.call->func;
    tx_inlined in = {.result = NOTHING, .outer = g->inlined, .call = tx_code_called(g, n->span, f ? f->name : NULL)};
    tx_scope_mark m = tx_code_push(g);
    int depth = 0;

    for (const tx_inlined *o = g->inlined; o; o = o->outer)
        depth++;
    if (++g->ncalls > TX_MAX_CALLS) {
        if (g->ncalls == TX_MAX_CALLS + 1)
            tx_fail(g->c, n->span, TX_E_CALL_MANY, TX_MAX_CALLS);
        return NOTHING;
    }
    if (!f || f->nparams != n->nargs || depth > TX_MAX_INLINE_DEPTH)
        return tx_code_unsupported(g, f ? f->name->text : "a call", n->dtype);
    if (tx_kind(n->dtype) != TX_KIND_VOID)
        in.result = tx_val_new(g, n->dtype, true);
    for (uint32_t i = 0; i < f->nparams; i++) {
        tx_val v = tx_code_copy(g, arg(g, n, i));
        if (v.form != VF_CONST && v.form != VF_NONE)
            tx_code_keep(g, v.reg);
        tx_code_bind(g, f->params[i].var, v);
        if (f->params[i].buffer) {
            tx_storage st = {.kind = ST_PTR, .ptr = v};
            tx_code_bind_storage(g, f->params[i].buffer->data, st);
        }
    }
    if (in.result.form != VF_NONE)
        tx_code_keep(g, in.result.reg);
    tx_code_inline(g, f, &in);
    for (uint32_t i = m.live; i < g->live.n; i++)
        g->live.at[i].keep = false;
    m.live = g->live.n;
    tx_code_pop(g, m);
    return in.result;
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

tx_val
tx_code_call(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_val r = NOTHING, v;
    uint32_t at;

    switch (n->op) {
    case TX_OP_CLUSTER_SYNC: tx_code_cluster_sync(g, n); return r;
    case TX_OP_CTA_SYNC:
    case TX_OP_WARPGROUP_SYNC:
    case TX_OP_GRID_SYNC:
    case TX_OP_SYNC_AND:
    case TX_OP_SYNC_OR: return code_call_barrier(g, n);
    case TX_OP_WARP_SYNC:
        at = tx_code_emit(g, V_WSYNC, 0, 0, 0, member_mask(g, n, 0), 0, 0);
        g->code.at[at].imm = tx_code_live(g);
        at_site(g, at, n, "", "waits at");
        return r;
    case TX_OP_FENCE_OPERAND: return r; /* the emulator moves nothing */
    case TX_OP_THREAD_FENCE: tx_code_thread_fence(g, n); return r;
    case TX_OP_SHFL:
    case TX_OP_SHFL_UP:
    case TX_OP_SHFL_DOWN:
    case TX_OP_SHFL_XOR: return code_call_shuffle(g, n, lane);
    case TX_OP_ACTIVEMASK:
        r = tx_val_new(g, TX_U32, false);
        tx_code_emit(g, V_ACTIVE, 0, r.reg, 0, 0, 0, 0);
        return r;
    case TX_OP_BALLOT:
    case TX_OP_ANY_SYNC:
    case TX_OP_REDUX_ADD:
    case TX_OP_REDUX_MIN:
    case TX_OP_ELECT_SYNC: return code_call_vote(g, n);
    case TX_OP_WARP_REDUCE: return warp_reduce(g, n);
    case TX_OP_CTA_REDUCE: return cta_reduce(g, n);
    case TX_OP_ATOMIC_ADD:
    case TX_OP_ATOMIC_CAS: return code_call_atomic(g, n);
    case TX_OP_LDG:
        v = arg(g, n, 0);
        if (v.form == VF_NONE)
            return v;
        v = tx_code_ptr_add(g, v, tx_val_int(TX_I64, lane), tx_dtype_bytes(tx_scalar_of(n->dtype)));
        return tx_code_deref(g, v, tx_scalar_of(n->dtype), TX_GLOBAL, tx_code_site(g, n->span, "", "load", 0, 0));
    case TX_OP_NANO_SLEEP: tx_code_emit(g, V_SLEEP, 0, 0, 0, 0, 0, 0); return r;
    case TX_OP_CLOCK64:
        r = tx_val_new(g, tx_scalar_of(n->dtype), false);
        tx_code_emit(g, V_CLOCK, 0, r.reg, 0, 0, 0, 0);
        return r;
    case TX_OP_THREAD_RETURN: tx_code_emit(g, V_RET, 0, 0, 0, 0, 0, 0); return r;
    case TX_OP_TRAP_UNLESS:
        v = arg_as(g, n, 0, TX_BOOL);
        at =
            tx_code_emit(g, V_ASSERT, 0, 0, tx_code_operand(g, &v), 0, 0, tx_code_outside(g, "trap", 0, NULL, TX_VOID));
        at_site(g, at, n, "", "assertion");
        return r;
    case TX_OP_PRINTF:
        return outside(g, n, V_PRINTF, n->arg[0]->op == TX_OP_STR ? n->arg[0]->u.s->text : "", 1, "printf");
    case TX_OP_FUNC_CALL:
    case TX_OP_CALL_EXTERN:
    case TX_OP_CALL_PURE_EXTERN: return outside(g, n, V_EXTERN, n->u.call->name->text, 0, "call");
    case TX_OP_CALL_FUNC: return call_func(g, n);
    case TX_OP_ISNULLPTR:
        v = arg(g, n, 0);
        return v.form == VF_NONE ? v : tx_code_bin(g, TX_OP_EQ, TX_U64, v, tx_val_int(TX_U64, 0));
    case TX_OP_PTX: tx_code_ptx(g, n); return r;
    case TX_OP_MBAR_WAIT: tx_code_mbar_wait(g, n); return r;
    case TX_OP_CVTA_SHARED: return cvta(g, n);
    default: return tx_code_unsupported(g, tx_ops[n->op].spelling, tx_scalar_of(n->dtype));
    }
}
