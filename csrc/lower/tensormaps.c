/* Identical tensor maps become one: the host zone often encodes the same map for several uses, and a kernel has
 * only 4 KB of parameters. Of LowerTIRx. Takes a function whose host zone is plain statements; two encodings are the same
 * when they are alike but for the map, and each is the only one of its map. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct tm_encoding {
    const tx_node *call; /* CALL_PACKED */
    tx_var *map;
    uint32_t ncalls; /* packed calls of the function that get the map */
} tm_encoding;

typedef struct tm_merger {
    tx_visitor v;
    TX_VEC(tm_encoding) all;
    tx_map dropped; /* tx_var of a map that another one stands for -> its encoding call */
} tm_merger;

static const tx_node *
tm_call_of(const tx_node *statement)
{
    const tx_node *n = statement->op == TX_OP_EVAL ? statement->arg[0] : NULL;
    const char *name = n && n->op == TX_OP_CALL_PACKED ? n->u.call->name->text : "";

    return strcmp(name, "runtime.cuTensorMapEncodeTiled") == 0 || strcmp(name, "runtime.cuTensorMapEncodeIm2col") == 0
               ? n
               : NULL;
}

/* Encodings that surely run, in their order. */
static bool
tm_collect(tx_ctx *c, tm_merger *m, const tx_node *body)
{
    for (uint32_t i = 0; body->op == TX_OP_SEQ && i < body->nargs && body->arg[i]->op != TX_OP_DEVICE; i++) {
        const tx_node *call = tm_call_of(body->arg[i]);
        if (call && call->nargs > 0 && call->arg[0]->op == TX_OP_VAR && tx_is_tensormap(call->arg[0]->u.var) &&
            !tx_push(c, &m->all, ((tm_encoding){.call = call, .map = call->arg[0]->u.var})))
            return false;
    }
    return true;
}

static bool
tm_count(tx_visitor *v, const tx_node *n)
{
    tm_merger *m = (tm_merger *)v;

    for (uint32_t k = 0; n->op == TX_OP_CALL_PACKED && k < n->nargs; k++)
        for (uint32_t i = 0; n->arg[k]->op == TX_OP_VAR && i < m->all.n; i++)
            m->all.at[i].ncalls += m->all.at[i].map == n->arg[k]->u.var;
    return n->op != TX_OP_DEVICE;
}

static bool
tm_alike(const tx_node *a, const tx_node *b)
{
    if (a->u.call->name != b->u.call->name || a->nargs != b->nargs)
        return false;
    for (uint32_t k = 1; k < a->nargs; k++)
        if (!tx_same_expr(a->arg[k], b->arg[k]))
            return false;
    return true;
}

static const tx_node *
tm_eval(tx_rewriter *r, const tx_node *n)
{
    const tm_merger *m = r->self;
    const tx_node *call = tm_call_of(n);

    if (call && call->nargs > 0 && call->arg[0]->op == TX_OP_VAR &&
        tx_map_ptr(&m->dropped, call->arg[0]->u.var) == call)
        return tx_nothing(r->c);
    return tx_rewrite_children(r, n);
}

static const tx_node *
tm_bind(tx_rewriter *r, const tx_node *n)
{
    const tm_merger *m = r->self;

    return tx_map_ptr(&m->dropped, n->u.var) ? tx_nothing(r->c) : tx_rewrite_children(r, n);
}

tx_func *
tx_merge_tensormaps(tx_ctx *c, tx_func *f)
{
    tm_merger m = {.v = {tm_count, NULL}};
    tx_rewrite_fn *fn;
    tx_rewriter r = {.c = c, .self = &m};
    const tx_node *body = f->body;

    if (!tm_collect(c, &m, body))
        return NULL;
    if (m.all.n < 2)
        return f;
    tx_walk(&m.v, body);
    if (!(fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT)))
        return NULL;
    fn[TX_OP_EVAL] = tm_eval;
    fn[TX_OP_BIND] = tm_bind;
    r.fn = fn;
    for (uint32_t i = 1; i < m.all.n; i++) {
        tm_encoding *e = &m.all.at[i];
        for (uint32_t k = 0; k < i && e->ncalls == 1; k++) {
            tm_encoding *first = &m.all.at[k];
            if (first->ncalls != 1 || first->map == e->map || !tm_alike(first->call, e->call))
                continue;
            if (!tx_map_put_ptr(&m.dropped, e->map, e->call) || !tx_map_put_ptr(&r.vars, e->map, first->map->node)) {
                tx_fail(c, 0, TX_E_NO_MEMORY);
                body = NULL;
            }
            e->ncalls = 0; /* gone: nothing else may stand for it */
        }
    }
    if (body && m.dropped.n > 0)
        body = tx_rewrite(&r, body);
    tx_rewriter_free(&r);
    tx_map_free(&m.dropped);
    return tx_func_with_body(c, f, body);
}
