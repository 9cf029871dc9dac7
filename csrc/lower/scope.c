/* What holds at a statement: ranges of loop variables and coordinates, values of bindings, conditions of the branches
 * around and of the early exits before it. A rewriter that keeps these facts current, and small helpers of all passes.
 * Every fact is pushed before and popped after the part it holds for. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* ---- helpers ------------------------------------------------------------------------------------------------------ */

tx_module *
tx_map_funcs(tx_ctx *c, tx_module *m, const tx_target *t, tx_func_pass pass)
{
    tx_module *out = tx_new_module(c, m->nfuncs);
    bool changed = false;

    if (!out)
        return NULL;
    out->nattrs = m->nattrs;
    out->attrs = m->attrs;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        out->names[i] = m->names[i];
        out->funcs[i] = pass(c, m->funcs[i], t);
        if (!out->funcs[i])
            return NULL;
        changed |= out->funcs[i] != m->funcs[i];
    }
    return changed ? tx_link_module(c, out) : m;
}

tx_func *
tx_copy_func(tx_ctx *c, const tx_func *f)
{
    tx_func *copy = tx_new(c, tx_func, 1);

    if (copy)
        *copy = *f;
    return copy;
}

tx_func *
tx_func_with_body(tx_ctx *c, tx_func *f, const tx_node *body)
{
    tx_func *copy;

    if (!body)
        return NULL;
    if (body == f->body)
        return f;
    copy = tx_copy_func(c, f);
    if (copy)
        copy->body = body;
    return copy;
}

const char *
tx_expr_text(tx_ctx *c, const tx_node *e)
{
    tx_sb text = {0};
    const tx_str *s;

    tx_print_node(e, &text);
    s = tx_intern(c, text.text ? text.text : "", text.text ? text.n : 0);
    tx_sb_free(&text);
    return s ? s->text : "?";
}

void
tx_diag_other(tx_ctx *c, tx_span span)
{
    if (c->diags.n > 0)
        c->diags.at[c->diags.n - 1].other = span;
}

const tx_node *
tx_nothing(tx_ctx *c)
{
    return tx_seq(c, NULL, 0);
}

const tx_node *
tx_bind(tx_ctx *c, tx_var *v, const tx_node *value)
{
    const tx_node *n;

    if (!v || !value)
        return NULL;
    n = tx_make(c, TX_OP_BIND, TX_VOID, (tx_payload){.var = v}, &value, 1);
    return n ? tx_with_flags(c, n, n->flags | TX_NF_COND) : NULL;
}

const tx_node *
tx_i64(tx_ctx *c, const tx_node *e)
{
    return e ? tx_cast(c, tx_with_lanes(TX_I64, tx_lanes(e->dtype)), e) : NULL;
}

const tx_node *
tx_leave_alone(tx_rewriter *r, const tx_node *n)
{
    (void)r;
    return n;
}

bool
tx_exits(const tx_node *stmt)
{
    switch (stmt->op) {
    case TX_OP_BREAK:
    case TX_OP_CONTINUE:
    case TX_OP_RETURN: return true;
    case TX_OP_EVAL: return stmt->arg[0]->op == TX_OP_THREAD_RETURN;
    case TX_OP_SEQ: return stmt->nargs > 0 && tx_exits(stmt->arg[stmt->nargs - 1]);
    case TX_OP_IF: return stmt->arg[2] && tx_exits(stmt->arg[1]) && tx_exits(stmt->arg[2]);
    default: return false;
    }
}

bool
tx_has_device(const tx_node *n)
{
    if (n->op == TX_OP_DEVICE)
        return true;
    if (!tx_is_stmt(n))
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && tx_has_device(n->arg[i]))
            return true;
    return false;
}

bool
tx_loop_turns(const tx_node *loop, int64_t *start, int64_t *step, int64_t *turns)
{
    int64_t stop;

    if (!tx_const_i64(loop->arg[0], start) || !tx_const_i64(loop->arg[1], &stop) || !tx_const_i64(loop->arg[2], step) ||
        *step == 0)
        return false;
    if (*step > 0 ? *start >= stop : *start <= stop) {
        *turns = 0;
        return true;
    }
    /* the distance fits in 64 bits unsigned, whatever the signs */
    uint64_t span = *step > 0 ? (uint64_t)stop - (uint64_t)*start : (uint64_t)*start - (uint64_t)stop;
    uint64_t by = *step > 0 ? (uint64_t)*step : (uint64_t)0 - (uint64_t)*step;
    uint64_t n = (span - 1) / by + 1;
    *turns = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    return true;
}

bool
tx_loop_jumps(const tx_node *n)
{
    if (n->op == TX_OP_BREAK || n->op == TX_OP_CONTINUE)
        return true;
    if (n->op == TX_OP_FOR || n->op == TX_OP_WHILE || !tx_is_stmt(n))
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && tx_loop_jumps(n->arg[i]))
            return true;
    return false;
}

/* ---- facts -------------------------------------------------------------------------------------------------------- */

static int64_t
one_less(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX ? v : v - 1;
}

static int64_t
one_more(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX ? v : v + 1;
}

void
tx_facts_loop(tx_ctx *c, tx_facts *f, const tx_var *v, const tx_node *start, const tx_node *stop, const tx_node *step)
{
    tx_bounds a = tx_bounds_of(f, start), b = tx_bounds_of(f, stop), s = tx_bounds_of(f, step);
    int64_t by, from, m;

    if (s.lo > 0)
        tx_facts_range_i64(f, v, a.lo, one_less(b.hi));
    else if (s.hi < 0)
        tx_facts_range_i64(f, v, one_more(b.lo), a.hi);
    else
        return;
    /* inside the body the variable has not reached the end */
    if (!(stop->flags & TX_NF_IMPURE) && v->dtype == stop->dtype && stop->op != TX_OP_INT)
        tx_facts_assume(f, tx_binary(c, s.lo > 0 ? TX_OP_LT : TX_OP_GT, v->node, stop));
    if (!(start->flags & TX_NF_IMPURE) && v->dtype == start->dtype && start->op != TX_OP_INT)
        tx_facts_assume(f, tx_binary(c, s.lo > 0 ? TX_OP_GE : TX_OP_LE, v->node, start));
    if (tx_const_i64(step, &by) && (by > 1 || by < -1) && by != INT64_MIN && tx_const_i64(start, &from)) {
        m = by < 0 ? -by : by;
        tx_facts_multiple(f, v, m, ((from % m) + m) % m);
    }
}

static void
coord_range(tx_facts *f, unsigned index_op, unsigned dim_op, int axis, const tx_node *extent, int64_t most)
{
    int64_t n = 0;

    if (!tx_const_i64(extent, &n) || n < 1 || n > most) {
        tx_facts_coord(f, index_op, axis, 0, most - 1);
        if (dim_op)
            tx_facts_coord(f, dim_op, axis, 1, most);
        return;
    }
    tx_facts_coord(f, index_op, axis, 0, n - 1);
    if (dim_op)
        tx_facts_coord(f, dim_op, axis, n, n);
}

void
tx_facts_launch(tx_facts *f, const tx_node *const *args)
{
    static const int64_t most_grid[3] = {INT32_MAX, 65535, 65535}, most_block[3] = {1024, 1024, 64};
    int64_t n, ctas = 1;

    for (int i = 0; i < 3; i++) {
        coord_range(f, TX_OP_BLOCK_IDX, TX_OP_GRID_DIM, i, args[TX_L_GRID_X + i], most_grid[i]);
        coord_range(f, TX_OP_THREAD_IDX, TX_OP_BLOCK_DIM, i, args[TX_L_BLOCK_X + i], most_block[i]);
        /* with a preferred size the hardware chooses; an axis that is not given has extent 1 */
        const tx_node *cluster = args[TX_L_PREFERRED_X] ? NULL : args[TX_L_CLUSTER_X + i];
        coord_range(f, TX_OP_CLUSTER_CTA, TX_OP_CLUSTER_DIM, i, cluster, TX_MAX_CLUSTER);
        coord_range(f, TX_OP_CLUSTER_ID, 0, i, NULL, most_grid[i]);
        if (args[TX_L_CLUSTER_X + i] && ctas < TX_MAX_CLUSTER)
            ctas *= tx_const_i64(cluster, &n) && n >= 1 && n <= TX_MAX_CLUSTER ? n : TX_MAX_CLUSTER;
    }
    tx_facts_coord(f, TX_OP_CLUSTER_RANK, 0, 0, (ctas < TX_MAX_CLUSTER ? ctas : TX_MAX_CLUSTER) - 1);
}

/* ---- the rewriter ------------------------------------------------------------------------------------------------- */

static tx_facts *
facts_of(tx_rewriter *r)
{
    return ((tx_scoped *)r->self)->facts;
}

/* What holds after `n` for the rest of its block: a branch that leaves was not taken. Nothing is learned from an assertion,
 * which may be compiled out. */
static void
learn_from(tx_rewriter *r, const tx_node *n)
{
    tx_facts *f = facts_of(r);

    if (n->op == TX_OP_IF && !(n->arg[0]->flags & TX_NF_IMPURE)) {
        bool then_leaves = tx_exits(n->arg[1]), else_leaves = n->arg[2] && tx_exits(n->arg[2]);
        if (then_leaves && !else_leaves)
            tx_facts_assume(f, tx_not(r->c, n->arg[0]));
        else if (else_leaves && !then_leaves)
            tx_facts_assume(f, n->arg[0]);
    }
}

static const tx_node *
scoped_seq(tx_rewriter *r, const tx_node *n)
{
    tx_facts *f = facts_of(r);
    uint32_t mark = tx_facts_push(f);
    const tx_node **out = tx_new(r->c, const tx_node *, n->nargs ? n->nargs : 1);
    bool changed = false;

    if (!out)
        return NULL;
    for (uint32_t i = 0; i < n->nargs; i++) {
        out[i] = tx_rewrite(r, n->arg[i]);
        if (!out[i]) {
            tx_facts_pop(f, mark);
            return NULL;
        }
        changed |= out[i] != n->arg[i];
        learn_from(r, out[i]);
    }
    tx_facts_pop(f, mark);
    return changed ? tx_seq(r->c, out, n->nargs) : n;
}

/* Value of lane 0 or of any other lane of a full warp: whatever holds for the operand in every lane holds for it. */
static const tx_node *
exchanged(const tx_node *value)
{
    return value->op >= TX_OP_SHFL && value->op <= TX_OP_SHFL_XOR ? value->arg[1] : NULL;
}

const tx_node *
tx_scoped_bind(tx_rewriter *r, const tx_node *n)
{
    const tx_node *out = tx_rewrite_children(r, n), *value, *same;
    tx_facts *f = facts_of(r);
    tx_bounds b;

    if (!out || out->op != TX_OP_BIND)
        return out;
    value = out->arg[0];
    if (!tx_is_int(value->dtype) && !tx_is_bool(value->dtype))
        return out;
    same = exchanged(value);
    if (same && !(same->flags & TX_NF_IMPURE)) {
        b = tx_bounds_of(f, same);
        tx_facts_range_i64(f, out->u.var, b.lo, b.hi);
    } else if (!(value->flags & TX_NF_IMPURE)) {
        tx_facts_equal(f, out->u.var, value);
    } else {
        b = tx_bounds_of(f, value);
        tx_facts_range_i64(f, out->u.var, b.lo, b.hi);
    }
    return out;
}

const tx_node *
tx_scoped_for(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[4];
    tx_facts *f = facts_of(r);
    uint32_t mark;

    for (int i = 0; i < 3; i++) {
        args[i] = tx_rewrite(r, n->arg[i]);
        if (!args[i])
            return NULL;
    }
    mark = tx_facts_push(f);
    tx_facts_loop(r->c, f, n->u.loop->var, args[0], args[1], args[2]);
    args[3] = tx_rewrite(r, n->arg[3]);
    tx_facts_pop(f, mark);
    return args[3] ? tx_with_args(r->c, n, args) : NULL;
}

const tx_node *
tx_scoped_children(tx_rewriter *r, const tx_node *n)
{
    const tx_node *local[TX_MAX_RANK + 2], **args = local;

    if (n->nargs > TX_MAX_RANK + 2 && !(args = tx_new(r->c, const tx_node *, n->nargs)))
        return NULL;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (!(args[i] = tx_rewrite(r, n->arg[i])))
            return NULL;
    return tx_with_args(r->c, n, args);
}

static const tx_node *
under(tx_rewriter *r, const tx_node *n, const tx_node *cond, bool holds)
{
    tx_facts *f = facts_of(r);
    uint32_t mark = tx_facts_push(f);
    const tx_node *out;

    if (!(cond->flags & TX_NF_IMPURE) && tx_lanes(cond->dtype) == 1)
        tx_facts_assume(f, holds ? cond : tx_not(r->c, cond));
    out = tx_rewrite(r, n);
    tx_facts_pop(f, mark);
    return out;
}

const tx_node *
tx_scoped_if(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[3] = {tx_rewrite(r, n->arg[0]), n->arg[1], n->arg[2]};

    return args[0] ? tx_scoped_branches(r, tx_with_args(r->c, n, args)) : NULL;
}

const tx_node *
tx_scoped_branches(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[3] = {n ? n->arg[0] : NULL, NULL, NULL};

    if (!n)
        return NULL;
    args[1] = under(r, n->arg[1], args[0], true);
    if (!args[1])
        return NULL;
    if (n->arg[2]) {
        args[2] = under(r, n->arg[2], args[0], false);
        if (!args[2])
            return NULL;
    }
    return tx_with_args(r->c, n, args);
}

/* The condition holds on entry to each turn, but only of values that the body cannot change, so nothing is learned that
 * tx_facts_assume would not refuse. */
static const tx_node *
scoped_while(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[2] = {tx_rewrite(r, n->arg[0]), NULL};

    if (!args[0])
        return NULL;
    args[1] = under(r, n->arg[1], args[0], true);
    return args[1] ? tx_with_args(r->c, n, args) : NULL;
}

static const tx_node *
scoped_lazy(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[2] = {tx_rewrite(r, n->arg[0]), NULL};

    if (!args[0])
        return NULL;
    args[1] = under(r, n->arg[1], args[0], n->op == TX_OP_AND);
    return args[1] ? tx_with_args(r->c, n, args) : NULL;
}

static const tx_node *
scoped_device(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[TX_L__COUNT];
    tx_facts *f = facts_of(r);
    uint32_t mark;

    for (int i = 0; i < TX_L__COUNT; i++) {
        args[i] = n->arg[i];
        if (i != TX_L_BODY && n->arg[i] && !(args[i] = tx_rewrite(r, n->arg[i])))
            return NULL;
    }
    mark = tx_facts_push(f);
    tx_facts_launch(f, args);
    args[TX_L_BODY] = tx_rewrite(r, n->arg[TX_L_BODY]);
    tx_facts_pop(f, mark);
    return args[TX_L_BODY] ? tx_with_args(r->c, n, args) : NULL;
}

bool
tx_scoped_init(tx_scoped *s, tx_ctx *c)
{
    memset(s, 0, sizeof *s);
    s->facts = tx_facts_new(c);
    s->r = (tx_rewriter){.c = c, .fn = s->fn, .self = s, .refold = true};
    s->fn[TX_OP_SEQ] = scoped_seq;
    s->fn[TX_OP_BIND] = tx_scoped_bind;
    s->fn[TX_OP_FOR] = tx_scoped_for;
    s->fn[TX_OP_IF] = tx_scoped_if;
    s->fn[TX_OP_WHILE] = scoped_while;
    s->fn[TX_OP_IF_THEN_ELSE] = tx_scoped_if;
    s->fn[TX_OP_AND] = scoped_lazy;
    s->fn[TX_OP_OR] = scoped_lazy;
    s->fn[TX_OP_DEVICE] = scoped_device;
    if (!s->facts)
        tx_fail(c, 0, TX_E_NO_MEMORY);
    return s->facts != NULL;
}

void
tx_scoped_free(tx_scoped *s)
{
    tx_rewriter_free(&s->r);
    if (s->facts)
        tx_facts_free(s->facts);
}

void
tx_scoped_symbols(tx_scoped *s, const tx_func *f)
{
    int64_t lo;
    uint64_t hi;

    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (tx_int_limits(f->symbols[i]->dtype, &lo, &hi))
            tx_facts_range_i64(s->facts, f->symbols[i], 0, hi > INT64_MAX ? INT64_MAX : (int64_t)hi);
}
