/* T.unroll: the body is copied once a turn, with the loop variable's value in its place and variables and buffers of its
 * own (lowering.md 4.11). A loop that breaks or continues stays a loop with #pragma unroll, so that the jump keeps its
 * meaning. Innermost loops first. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* Everything the body binds. */
typedef struct binders {
    tx_visitor v;
    tx_ctx *c;
    TX_VEC(tx_var *) vars;
    TX_VEC(tx_buffer *) bufs;
    bool failed;
} binders;

static bool
unroll_collect(tx_visitor *v, const tx_node *n)
{
    binders *b = (binders *)v;

    switch (n->op) {
    case TX_OP_BIND:
    case TX_OP_LET: b->failed |= !tx_push(b->c, &b->vars, n->u.var); break;
    case TX_OP_FOR: b->failed |= !tx_push(b->c, &b->vars, n->u.loop->var); break;
    case TX_OP_ALLOC:
    case TX_OP_DECL: b->failed |= !tx_push(b->c, &b->bufs, n->u.buf); break;
    case TX_OP_SCOPE_ID:
        for (int i = 0; i < n->u.scope_id->nvars; i++)
            b->failed |= !tx_push(b->c, &b->vars, n->u.scope_id->var[i]);
        break;
    default: break;
    }
    return !b->failed;
}

static tx_var *
fresh_var(tx_ctx *c, const tx_var *v)
{
    tx_var *made = tx_is_handle(v->dtype) ? tx_new_ptr_var(c, v->kind, v->name, v->elem, v->scope)
                                          : tx_new_var(c, v->kind, v->name, v->dtype);
    if (made)
        made->span = v->span;
    return made;
}

static bool
map_var(tx_rewriter *r, const tx_var *from, tx_var *to)
{
    return to && tx_map_put_ptr(&r->vars, from, to->node);
}

/* A buffer of this turn. A view that shares the data of a buffer outside the body keeps it. */
static bool
map_buffer(tx_rewriter *r, const tx_buffer *b)
{
    const tx_node *data = tx_map_ptr(&r->vars, b->data);
    tx_buffer *made = tx_copy_buffer(r->c, b);
    tx_var *v;

    if (!made)
        return false;
    if (data) {
        made->data = data->u.var;
    } else if (b->data->buffer == b || b->data->buffer == b->origin) {
        v = tx_new_ptr_var(r->c, TX_VAR_DATA, b->data->name, b->data->elem, b->data->scope);
        if (!map_var(r, b->data, v))
            return false;
        v->buffer = made;
        made->data = v;
    }
    return tx_map_put_ptr(&r->bufs, b, made);
}

bool
tx_map_fresh(tx_rewriter *r, const tx_node *body)
{
    binders b = {.v = {unroll_collect, NULL}, .c = r->c};
    bool ok;

    tx_walk(&b.v, body);
    ok = !b.failed;
    for (uint32_t i = 0; ok && i < b.vars.n; i++)
        ok = map_var(r, b.vars.at[i], fresh_var(r->c, b.vars.at[i]));
    for (uint32_t i = 0; ok && i < b.bufs.n; i++)
        ok = map_buffer(r, b.bufs.at[i]);
    return ok || (!r->c->nerrors && tx_fail(r->c, body->span, TX_E_NO_MEMORY) != NULL);
}

static const tx_node *
copy_body(tx_ctx *c, const tx_node *loop, int64_t value, const binders *b, bool first)
{
    static const tx_rewrite_fn none[TX_OP__COUNT];
    tx_rewriter r = {.c = c, .fn = none, .refold = true};
    const tx_var *v = loop->u.loop->var;
    const tx_node *now = tx_int(c, v->dtype, value), *out = NULL;
    bool ok = now && tx_map_put_ptr(&r.vars, v, now);

    for (uint32_t i = 0; ok && !first && i < b->vars.n; i++)
        ok = map_var(&r, b->vars.at[i], fresh_var(c, b->vars.at[i]));
    for (uint32_t i = 0; ok && !first && i < b->bufs.n; i++)
        ok = map_buffer(&r, b->bufs.at[i]);
    if (ok)
        out = tx_rewrite(&r, loop->arg[3]);
    else if (!c->nerrors)
        tx_fail(c, loop->span, TX_E_NO_MEMORY);
    tx_rewriter_free(&r);
    return out;
}

static const tx_node *
as_pragma(tx_ctx *c, const tx_node *n)
{
    tx_loop *loop = tx_new(c, tx_loop, 1);

    if (!loop)
        return NULL;
    *loop = *n->u.loop;
    loop->kind = TX_LOOP_SERIAL;
    loop->unroll = -1;
    return tx_make_at(c, n->span, TX_OP_FOR, TX_VOID, (tx_payload){.loop = loop}, n->arg, 4);
}

static const tx_node *
expand(tx_ctx *c, const tx_node *n)
{
    binders b = {.v = {unroll_collect, NULL}, .c = c};
    int64_t start, step, turns;
    const tx_node **copies;

    if (!tx_loop_turns(n, &start, &step, &turns))
        return tx_fail(c, n->span, TX_E_UNROLL_DYNAMIC);
    if (turns > TX_MAX_UNROLL)
        return tx_fail(c, n->span, TX_E_UNROLL_LIMIT, TX_MAX_UNROLL, (long long)turns);
    copies = tx_new(c, const tx_node *, turns ? turns : 1);
    tx_walk(&b.v, n->arg[3]);
    if (!copies || b.failed)
        return NULL;
    for (int64_t i = 0; i < turns; i++) {
        copies[i] = copy_body(c, n, start + i * step, &b, i == 0);
        if (!copies[i])
            return NULL;
    }
    return tx_seq(c, copies, (uint32_t)turns);
}

static const tx_node *
unroll_loop(tx_rewriter *r, const tx_node *n)
{
    n = tx_rewrite_children(r, n);
    if (!n || n->u.loop->kind != TX_LOOP_UNROLL)
        return n;
    return tx_loop_jumps(n->arg[3]) ? as_pragma(r->c, n) : expand(r->c, n);
}

tx_func *
tx_unroll_func(tx_ctx *c, tx_func *f)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn};
    const tx_node *body;

    if (!fn)
        return NULL;
    for (unsigned op = 0; op < TX_OP__COUNT; op++)
        if (!tx_has(op, TX_PROP_STMT))
            fn[op] = tx_leave_alone;
    fn[TX_OP_FOR] = unroll_loop;
    body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    return tx_func_with_body(c, f, body);
}
