/* Walking and rewriting. A rewriter gives the node itself where nothing changed, so that unchanged trees are shared; what
 * is rebuilt keeps the place of the node it replaces. Depth is bounded by the depth of nodes (TX_MAX_DEPTH).
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"

enum { WALK_LOCAL_ARGS = 12 }; /* children kept on the stack; more go to scratch */

void
tx_walk(tx_visitor *v, const tx_node *n)
{
    if (!n)
        return;
    if (v->enter(v, n))
        for (uint32_t i = 0; i < n->nargs; i++)
            tx_walk(v, n->arg[i]);
    if (v->leave)
        v->leave(v, n);
}

void
tx_walk_buffer(tx_visitor *v, const tx_buffer *b)
{
    for (unsigned i = 0; i < b->rank; i++) {
        tx_walk(v, b->shape[i]);
        if (b->strides)
            tx_walk(v, b->strides[i]);
    }
    tx_walk(v, b->elem_offset);
    tx_walk(v, b->byte_offset);
    tx_walk(v, b->allocated_addr);
}

/* ---- what a node refers to ------------------------------------------------------------------------------------- */

/* The variable that takes v's place where it is defined. */
static tx_var *
mapped_var(tx_rewriter *r, tx_var *v)
{
    const tx_node *to = v ? tx_map_ptr(&r->vars, v) : NULL;

    return to && to->op == TX_OP_VAR ? to->u.var : v;
}

static bool
rewrite_list(tx_rewriter *r, const tx_node **at, uint32_t n, bool *changed)
{
    for (uint32_t i = 0; i < n; i++) {
        const tx_node *e = at[i] ? tx_rewrite(r, at[i]) : NULL;

        if (at[i] && !e)
            return false;
        *changed |= e != at[i];
        at[i] = e;
    }
    return true;
}

static bool
rewrite_buffer_fields(tx_rewriter *r, tx_buffer *b, bool *changed)
{
    tx_var *data = mapped_var(r, b->data);
    tx_buffer *origin = b->origin ? tx_rewrite_buffer(r, b->origin) : NULL;

    if (b->origin && !origin)
        return false;
    *changed |= data != b->data || origin != b->origin;
    b->data = data;
    b->origin = origin;
    return rewrite_list(r, b->shape, b->rank, changed) &&
           (!b->strides || rewrite_list(r, b->strides, b->rank, changed)) &&
           rewrite_list(r, &b->elem_offset, 1, changed) && rewrite_list(r, &b->byte_offset, 1, changed) &&
           rewrite_list(r, &b->allocated_addr, 1, changed);
}

tx_buffer *
tx_rewrite_buffer(tx_rewriter *r, tx_buffer *b)
{
    tx_buffer *to = b ? tx_map_ptr(&r->bufs, b) : NULL, trial;
    const tx_node *shape[TX_MAX_RANK], *strides[TX_MAX_RANK];
    bool changed = false;

    if (to || !b)
        return to;
    trial = *b;
    trial.shape = shape;
    memcpy(shape, b->shape, b->rank * sizeof *shape);
    if (b->strides) {
        trial.strides = strides;
        memcpy(strides, b->strides, b->rank * sizeof *strides);
    }
    if (!rewrite_buffer_fields(r, &trial, &changed))
        return NULL;
    to = changed ? tx_copy_buffer(r->c, &trial) : b;
    if (to && !tx_map_put_ptr(&r->bufs, b, to))
        return tx_fail(r->c, r->c->span, TX_E_NO_MEMORY);
    return to;
}

static const tx_attr *
rewrite_attrs(tx_rewriter *r, const tx_attr *attrs, uint32_t n)
{
    tx_attr *copy = NULL;

    for (uint32_t i = 0; i < n; i++) {
        const tx_node *v = tx_rewrite(r, attrs[i].value);

        if (attrs[i].value && !v)
            return NULL;
        if (v == attrs[i].value)
            continue;
        if (!copy) {
            if (!(copy = tx_new(r->c, tx_attr, n)))
                return NULL;
            memcpy(copy, attrs, n * sizeof *copy);
        }
        copy[i].value = v;
    }
    return copy ? copy : attrs;
}

static bool
rewrite_loop(tx_rewriter *r, tx_payload *u)
{
    tx_var *v = mapped_var(r, u->loop->var);
    const tx_attr *attrs = u->loop->nattrs ? rewrite_attrs(r, u->loop->attrs, u->loop->nattrs) : u->loop->attrs;
    tx_loop *copy;

    if (u->loop->nattrs && !attrs)
        return false;
    if (v == u->loop->var && attrs == u->loop->attrs)
        return true;
    if (!(copy = tx_new(r->c, tx_loop, 1)))
        return false;
    *copy = *u->loop;
    copy->var = v;
    copy->attrs = attrs;
    u->loop = copy;
    return true;
}

static bool
rewrite_scope_id(tx_rewriter *r, tx_payload *u)
{
    tx_scope_id trial = *u->scope_id, *copy;
    bool changed = false;

    for (int i = 0; i < trial.nvars; i++) {
        trial.var[i] = mapped_var(r, trial.var[i]);
        changed |= trial.var[i] != u->scope_id->var[i];
    }
    if (!changed)
        return true;
    if (!(copy = tx_new(r->c, tx_scope_id, 1)))
        return false;
    *copy = trial;
    u->scope_id = copy;
    return true;
}

static bool
rewrite_launch(tx_rewriter *r, tx_payload *u)
{
    const tx_attr *attrs = u->launch->nattrs ? rewrite_attrs(r, u->launch->attrs, u->launch->nattrs) : u->launch->attrs;
    tx_launch *copy;

    if (u->launch->nattrs && !attrs)
        return false;
    if (attrs == u->launch->attrs)
        return true;
    if (!(copy = tx_new(r->c, tx_launch, 1)))
        return false;
    *copy = *u->launch;
    copy->attrs = attrs;
    u->launch = copy;
    return true;
}

static bool
rewrite_payload(tx_rewriter *r, unsigned op, tx_payload *u)
{
    switch (tx_payload_kind_of(op)) {
    case TX_P_VAR: u->var = mapped_var(r, u->var); return true;
    case TX_P_BUF: u->buf = tx_rewrite_buffer(r, u->buf); return u->buf != NULL;
    case TX_P_LOOP: return rewrite_loop(r, u);
    case TX_P_SCOPE_ID: return rewrite_scope_id(r, u);
    case TX_P_LAUNCH: return u->launch == NULL || rewrite_launch(r, u);
    default: return true;
    }
}

/* ---- the rewriter ---------------------------------------------------------------------------------------------- */

/* A variable stands for the expression it is mapped to, in the variable's dtype and at the place of its use. */
static const tx_node *
rewrite_var(tx_rewriter *r, const tx_node *n)
{
    const tx_node *to = tx_map_ptr(&r->vars, n->u.var);

    if (!to || to == n)
        return n;
    if (to->dtype != n->dtype)
        to = tx_cast(r->c, n->dtype, to);
    return tx_with_span(r->c, to, n->span);
}

static const tx_node *
rebuild(tx_rewriter *r, const tx_node *n, tx_payload u, const tx_node *const *args)
{
    tx_node head = *n;

    head.u = u;
    if (n->op == TX_OP_SEQ) {
        const tx_node *seq = tx_seq(r->c, args, n->nargs);

        return seq && seq->op == TX_OP_SEQ ? tx_with_span(r->c, seq, n->span) : seq;
    }
    if (r->refold && tx_has(n->op, TX_PROP_FOLDS))
        return tx_refold(r->c, n, args);
    if (tx_is_handle(n->dtype) && n->op != TX_OP_PTR_OFFSET && n->op != TX_OP_CAST && n->op != TX_OP_REINTERPRET)
        head.elem = 0; /* follows from the children again */
    return tx_make_node(r->c, &head, args);
}

const tx_node *
tx_rewrite_children(tx_rewriter *r, const tx_node *n)
{
    const tx_node *local[WALK_LOCAL_ARGS], **args = local, *out = NULL;
    tx_mark mark = tx_arena_mark(&r->c->scratch);
    tx_payload u = n->u;
    bool changed = false;

    if (n->op == TX_OP_VAR)
        return rewrite_var(r, n);
    if (n->nargs > WALK_LOCAL_ARGS && !(args = tx_scratch(r->c, const tx_node *, n->nargs)))
        return NULL;
    if (n->nargs)
        memcpy(args, n->arg, n->nargs * sizeof *args);
    if (rewrite_payload(r, n->op, &u) && rewrite_list(r, args, n->nargs, &changed))
        out = changed || u.bits != n->u.bits ? rebuild(r, n, u, args) : n;
    tx_arena_release(&r->c->scratch, mark);
    return out;
}

const tx_node *
tx_rewrite(tx_rewriter *r, const tx_node *n)
{
    tx_rewrite_fn fn = n && r->fn ? r->fn[n->op] : NULL;
    tx_span span = r->c->span;
    const tx_node *out;

    if (!n)
        return NULL;
    if (r->depth > 4 * TX_MAX_DEPTH)
        return tx_fail(r->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
    r->depth++;
    r->c->span = n->span;
    out = fn ? fn(r, n) : tx_rewrite_children(r, n);
    r->c->span = span;
    r->depth--;
    return out;
}

void
tx_rewriter_free(tx_rewriter *r)
{
    tx_map_free(&r->vars);
    tx_map_free(&r->bufs);
}

const tx_node *
tx_substitute(tx_ctx *c, const tx_node *n, tx_var *const *vars, const tx_node *const *values, uint32_t n_vars)
{
    tx_rewriter r = {.c = c, .refold = true};
    const tx_node *out = NULL;

    for (uint32_t i = 0; i < n_vars; i++)
        if (!values[i] || !tx_map_put_ptr(&r.vars, vars[i], values[i])) {
            if (values[i])
                tx_fail(c, c->span, TX_E_NO_MEMORY);
            goto out;
        }
    out = tx_rewrite(&r, n);
out:
    tx_rewriter_free(&r);
    return out;
}

const tx_node *
tx_refold(tx_ctx *c, const tx_node *n, const tx_node *const *args)
{
    tx_span span = c->span;
    bool folded = false;
    const tx_node *out;

    for (uint32_t i = 0; i < n->nargs; i++)
        if (!args[i])
            return NULL;
    c->span = n->span;
    if (n->op == TX_OP_CAST && args[0]->dtype == n->dtype)
        out = args[0];
    else if (tx_has(n->op, TX_PROP_FOLDS) &&
             ((out = tx_fold(c, n->op, n->dtype, args, n->nargs, false, &folded)) || folded))
        ;
    else
        out = tx_with_args(c, n, args);
    c->span = span;
    return out;
}
