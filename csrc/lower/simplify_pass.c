/* StmtSimplify: one simplification of every expression under the facts in force, then what follows for statements: loops of
 * no or one turn, branches decided at compile time, stores of an element to itself, evaluations without effect, and
 * bindings that nothing reads (lowering.md 4.5, 4.6). Binding names are kept; loads and calls are never moved, doubled or
 * dropped. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

static const tx_node *
expression(tx_rewriter *r, const tx_node *n)
{
    return tx_simplify(((tx_scoped *)r->self)->facts, n);
}

static const tx_node *
simplify_pass_loop(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[4] = {NULL, NULL, NULL, n->arg[3]}, *value;
    tx_var *v = n->u.loop->var;
    int64_t start, step, turns;

    for (int i = 0; i < 3; i++)
        if (!(args[i] = tx_rewrite(r, n->arg[i])))
            return NULL;
    n = tx_with_args(r->c, n, args);
    if (!n)
        return NULL;
    if (tx_loop_turns(n, &start, &step, &turns)) {
        if (turns == 0)
            return tx_nothing(r->c);
        if (turns == 1 && !n->u.loop->nattrs && !tx_loop_jumps(n->arg[3])) {
            value = tx_int(r->c, v->dtype, start);
            return value ? tx_rewrite(r, tx_substitute(r->c, n->arg[3], &v, &value, 1)) : NULL;
        }
    }
    n = tx_scoped_for(r, n);
    return n && n->op == TX_OP_FOR && tx_is_empty(n->arg[3]) ? tx_nothing(r->c) : n;
}

static const tx_node *
simplify_pass_branch(tx_rewriter *r, const tx_node *n)
{
    const tx_node *args[3] = {tx_rewrite(r, n->arg[0]), n->arg[1], n->arg[2]};
    int64_t taken;

    if (!args[0])
        return NULL;
    if (tx_const_i64(args[0], &taken)) {
        if (taken)
            return tx_rewrite(r, n->arg[1]);
        return n->arg[2] ? tx_rewrite(r, n->arg[2]) : tx_nothing(r->c);
    }
    n = tx_scoped_branches(r, tx_with_args(r->c, n, args));
    if (n && n->arg[2] && tx_is_empty(n->arg[2])) {
        const tx_node *one[3] = {n->arg[0], n->arg[1], NULL};
        n = tx_with_args(r->c, n, one);
    }
    if (n && !n->arg[2] && tx_is_empty(n->arg[1]) && !(n->arg[0]->flags & TX_NF_IMPURE))
        return tx_nothing(r->c);
    return n;
}

static const tx_node *
repeat(tx_rewriter *r, const tx_node *n)
{
    const tx_node *cond = tx_rewrite(r, n->arg[0]);

    if (!cond)
        return NULL;
    return tx_is_const(cond, 0) ? tx_nothing(r->c) : tx_rewrite_children(r, n);
}

static bool
same_element(const tx_node *store, const tx_node *value)
{
    if (value->op != TX_OP_LOAD || value->u.buf != store->u.buf || value->nargs != store->nargs - 1 ||
        store->u.buf->flags & TX_BUF_VOLATILE || value->dtype != store->arg[0]->dtype)
        return false;
    for (uint32_t i = 0; i < value->nargs; i++)
        if (value->arg[i]->flags & TX_NF_IMPURE || !tx_same_expr(value->arg[i], store->arg[i + 1]))
            return false;
    return true;
}

static const tx_node *
simplify_pass_store(tx_rewriter *r, const tx_node *n)
{
    n = tx_scoped_children(r, n);
    return n && same_element(n, n->arg[0]) && n->flags & TX_NF_INBOUNDS ? tx_nothing(r->c) : n;
}

static const tx_node *
evaluate(tx_rewriter *r, const tx_node *n)
{
    n = tx_rewrite_children(r, n);
    return n && !(n->arg[0]->flags & TX_NF_IMPURE) && tx_has(n->arg[0]->op, TX_PROP_PURE) ? tx_nothing(r->c) : n;
}

/* A condition that always holds. */
static const tx_node *
simplify_pass_assertion(tx_rewriter *r, const tx_node *n)
{
    n = tx_scoped_children(r, n);
    return n && tx_is_const(n->arg[0], 1) ? tx_nothing(r->c) : n;
}

/* ---- bindings that nothing reads ------------------------------------------------------------------------------------ */

typedef struct sweep {
    tx_visitor v;
    tx_ctx *c;
    tx_map used;
    bool failed;
} sweep;

static void
use(sweep *s, const tx_node *e)
{
    if (e)
        tx_walk(&s->v, e);
}

static void
use_shape(sweep *s, const tx_buffer *b)
{
    for (int d = 0; d < b->rank; d++) {
        if (b->shape[d]->op != TX_OP_INT)
            use(s, b->shape[d]);
        if (b->strides && b->strides[d]->op != TX_OP_INT)
            use(s, b->strides[d]);
    }
    use(s, b->elem_offset);
    use(s, b->byte_offset);
    if (b->origin && b->flags & TX_BUF_FLAT)
        use_shape(s, b->origin);
}

static bool
mark(tx_visitor *v, const tx_node *n)
{
    sweep *s = (sweep *)v;

    if (n->op == TX_OP_VAR)
        s->failed |= !tx_map_put_ptr(&s->used, n->u.var, n);
    else if (n->op == TX_OP_LOAD || n->op == TX_OP_STORE || n->op == TX_OP_ALLOC || n->op == TX_OP_DECL)
        use_shape(s, n->u.buf);
    return true;
}

/* Statements from last to first, so that every use has been seen before its binding. */
static const tx_node *
swept(sweep *s, const tx_node *n)
{
    const tx_node **args;

    if (!tx_is_stmt(n)) {
        use(s, n);
        return n;
    }
    if (n->op == TX_OP_BIND && !(n->arg[0]->flags & TX_NF_IMPURE) && !tx_map_ptr(&s->used, n->u.var))
        return tx_nothing(s->c);
    if (n->op == TX_OP_BIND && n->flags & TX_NF_COND && n->arg[0]->op == TX_OP_SHFL && !tx_map_ptr(&s->used, n->u.var))
        return tx_nothing(s->c);
    if (n->op == TX_OP_LOAD || n->op == TX_OP_STORE || n->op == TX_OP_ALLOC || n->op == TX_OP_DECL)
        use_shape(s, n->u.buf);
    uint32_t reached = n->nargs; /* statements; none behind one that leaves the block */
    args = tx_new(s->c, const tx_node *, n->nargs ? n->nargs : 1);
    if (!args)
        return NULL;
    if (n->op == TX_OP_SEQ)
        for (uint32_t i = 0; i < reached; i++)
            if (tx_exits(n->arg[i]))
                reached = i + 1;
    for (uint32_t i = reached; i-- > 0;) {
        args[i] = n->arg[i] ? swept(s, n->arg[i]) : NULL;
        if (n->arg[i] && !args[i])
            return NULL;
    }
    if (n->op == TX_OP_SEQ) {
        bool changed = reached < n->nargs;
        for (uint32_t i = 0; i < reached; i++)
            changed |= args[i] != n->arg[i];
        return changed ? tx_seq(s->c, args, reached) : n;
    }
    return tx_with_args(s->c, n, args);
}

tx_func *
tx_simplify_func(tx_ctx *c, tx_func *f)
{
    tx_scoped s;
    const tx_node *body = NULL;
    tx_span saved = c->span;

    if (f->flags & TX_FUNC_KERNEL)
        return f;
    if (tx_scoped_init(&s, c)) {
        for (unsigned op = 0; op < TX_OP__COUNT; op++)
            if (!tx_has(op, TX_PROP_STMT))
                s.fn[op] = expression;
        s.fn[TX_OP_FOR] = simplify_pass_loop;
        s.fn[TX_OP_IF] = simplify_pass_branch;
        s.fn[TX_OP_WHILE] = repeat;
        s.fn[TX_OP_STORE] = simplify_pass_store;
        s.fn[TX_OP_ALLOC] = s.fn[TX_OP_DECL] = s.fn[TX_OP_MATCH] = tx_scoped_children;
        s.fn[TX_OP_EVAL] = evaluate;
        s.fn[TX_OP_ASSERT] = simplify_pass_assertion;
        tx_scoped_symbols(&s, f);
        body = tx_rewrite(&s.r, f->body);
    }
    tx_scoped_free(&s);
    c->span = saved;
    if (body) {
        sweep w = {.v = {mark, NULL}, .c = c};
        body = swept(&w, body);
        tx_map_free(&w.used);
        if (w.failed)
            return tx_fail(c, 0, TX_E_NO_MEMORY);
    }
    return tx_func_with_body(c, f, body);
}
