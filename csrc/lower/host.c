/* The host zone of LowerTIRx: a cell that is set once, where it stands, becomes a binding, so that launch shapes and kernel
 * arguments are expressions over immutable values. Any other cell of the host zone is refused: the launch plan has no
 * memory. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct host_cell {
    const tx_buffer *buf;
    const tx_node *alloc, *block; /* the ALLOC and the SEQ that holds it */
    uint32_t nstores, nstores_here;
    bool escapes;
    tx_var *var;
} host_cell;

typedef struct host_cells {
    tx_visitor v;
    tx_ctx *c;
    tx_map at; /* buffer -> cell */
    const tx_node *block;
    int device;
    bool failed;
} host_cells;

static host_cell *
host_cell_of(host_cells *s, const tx_buffer *b)
{
    return tx_map_ptr(&s->at, b);
}

static bool
host_new_cell(host_cells *s, const tx_node *alloc, const tx_node *block)
{
    host_cell *k = tx_new(s->c, host_cell, 1);

    if (!k)
        return false;
    *k = (host_cell){.buf = alloc->u.buf, .alloc = alloc, .block = block};
    return tx_map_put_ptr(&s->at, alloc->u.buf, k) || tx_fail(s->c, 0, TX_E_NO_MEMORY);
}

/* The cells of the host zone: allocations of one local element that stand in a block. */
static bool
find_cells(host_cells *s, const tx_node *n)
{
    if (n->op == TX_OP_DEVICE || !tx_is_stmt(n))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++) {
        const tx_node *a = n->arg[i];
        if (!a)
            continue;
        if (n->op == TX_OP_SEQ && a->op == TX_OP_ALLOC && a->u.buf->scope == TX_LOCAL && !host_new_cell(s, a, n))
            return false;
        if (!find_cells(s, a))
            return false;
    }
    return true;
}

static bool
host_count_uses(tx_visitor *v, const tx_node *n)
{
    host_cells *s = (host_cells *)v;
    host_cell *k;

    if (n->op == TX_OP_SEQ)
        for (uint32_t i = 0; i < n->nargs; i++)
            if (n->arg[i]->op == TX_OP_STORE && (k = host_cell_of(s, n->arg[i]->u.buf)) && k->block == n)
                k->nstores_here++;
    if (n->op == TX_OP_STORE && (k = host_cell_of(s, n->u.buf)))
        k->nstores++;
    if ((n->op == TX_OP_BUFFER_DATA && (k = host_cell_of(s, n->u.buf))) ||
        (n->op == TX_OP_ADDRESS_OF && (k = host_cell_of(s, n->arg[0]->u.buf))))
        k->escapes = true;
    return true;
}

static const tx_node *
host_alloc(tx_rewriter *r, const tx_node *n)
{
    host_cell *k = host_cell_of(r->self, n->u.buf);

    if (!k)
        return n;
    if (k->nstores != 1 || k->nstores_here != 1 || k->escapes)
        return tx_fail(r->c, n->span, TX_E_HOST_CELL, k->buf->name->text);
    k->var = tx_new_var(r->c, TX_VAR_LET, k->buf->name, k->buf->dtype);
    return k->var ? tx_nothing(r->c) : NULL;
}

static const tx_node *
host_store(tx_rewriter *r, const tx_node *n)
{
    host_cell *k = host_cell_of(r->self, n->u.buf);
    const tx_node *value;

    if (!k)
        return tx_rewrite_children(r, n);
    value = tx_cast(r->c, k->buf->dtype, tx_rewrite(r, n->arg[0]));
    return value ? tx_make_at(r->c, n->span, TX_OP_BIND, TX_VOID, (tx_payload){.var = k->var}, &value, 1) : NULL;
}

static const tx_node *
host_load(tx_rewriter *r, const tx_node *n)
{
    host_cell *k = host_cell_of(r->self, n->u.buf);

    return k && k->var ? k->var->node : tx_rewrite_children(r, n);
}

tx_func *
tx_host_func(tx_ctx *c, tx_func *f)
{
    host_cells s = {.v = {host_count_uses, NULL}, .c = c};
    const tx_node *body = f->body;

    if (!tx_has_device(body))
        return f;
    if (!find_cells(&s, body)) {
        body = NULL;
    } else if (s.at.n > 0) {
        tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
        tx_rewriter r = {.c = c, .fn = fn, .self = &s, .refold = true};
        if (!fn)
            return NULL;
        tx_walk(&s.v, body);
        fn[TX_OP_ALLOC] = host_alloc;
        fn[TX_OP_STORE] = host_store;
        fn[TX_OP_LOAD] = host_load;
        body = tx_rewrite(&r, body);
        tx_rewriter_free(&r);
    }
    tx_map_free(&s.at);
    return tx_func_with_body(c, f, body);
}
