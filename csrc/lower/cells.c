/* Cells of the device zone that are never changed: `x = e` makes a cell in g1, and where its first value is its only one
 * and its address is not taken, it becomes a binding. Its value is then known to the proofs of what follows, and it costs
 * no memory. Part of LowerTIRx. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct cells_cell {
    const tx_node *init; /* the store right behind the allocation */
    uint32_t nstores;
    bool escapes;
    tx_var *var;
} cells_cell;

typedef struct cells_cells {
    tx_visitor v;
    tx_ctx *c;
    tx_map at; /* buffer -> cell */
    uint32_t nfound;
    bool failed;
} cells_cells;

static cells_cell *
cells_cell_of(cells_cells *s, const tx_buffer *b)
{
    return tx_map_ptr(&s->at, b);
}

typedef struct reader {
    tx_visitor v;
    const tx_buffer *of;
    bool found;
} reader;

static bool
read_node(tx_visitor *v, const tx_node *n)
{
    reader *r = (reader *)v;

    r->found |= (n->op == TX_OP_LOAD || n->op == TX_OP_BUFFER_DATA) && n->u.buf == r->of;
    return !r->found;
}

/* ALLOC x; x[0] = value, where the value does not read x. */
static bool
is_initialised(const tx_node *alloc, const tx_node *store)
{
    const tx_buffer *b = alloc->u.buf;
    reader r = {{read_node, NULL}, b, false};

    if (alloc->op != TX_OP_ALLOC || store->op != TX_OP_STORE || store->u.buf != b || !(b->flags & TX_BUF_CELL) ||
        b->scope != TX_LOCAL || b->rank != 1 || !tx_is_const(store->arg[1], 0) || store->arg[0]->dtype != b->dtype)
        return false;
    tx_walk(&r.v, store->arg[0]);
    return !r.found;
}

static bool
find(tx_visitor *v, const tx_node *n)
{
    cells_cells *s = (cells_cells *)v;

    for (uint32_t i = 0; n->op == TX_OP_SEQ && i + 1 < n->nargs; i++) {
        cells_cell *k;
        if (!is_initialised(n->arg[i], n->arg[i + 1]))
            continue;
        k = tx_new(s->c, cells_cell, 1);
        if (!k || !tx_map_put_ptr(&s->at, n->arg[i]->u.buf, k)) {
            s->failed = true;
            return false;
        }
        k->init = n->arg[i + 1];
        s->nfound++;
    }
    return tx_is_stmt(n);
}

static bool
cells_count_uses(tx_visitor *v, const tx_node *n)
{
    cells_cells *s = (cells_cells *)v;
    cells_cell *k = NULL;

    if (n->op == TX_OP_STORE && (k = cells_cell_of(s, n->u.buf)))
        k->nstores++;
    else if (n->op == TX_OP_LOAD && (k = cells_cell_of(s, n->u.buf)))
        k->escapes |= !tx_is_const(n->arg[0], 0);
    else if ((n->op == TX_OP_BUFFER_DATA && (k = cells_cell_of(s, n->u.buf))) ||
             (n->op == TX_OP_ADDRESS_OF && n->arg[0]->op == TX_OP_LOAD && (k = cells_cell_of(s, n->arg[0]->u.buf))) ||
             (n->op == TX_OP_VAR && n->u.var->buffer && (k = cells_cell_of(s, n->u.var->buffer))))
        k->escapes = true;
    return true;
}

static bool
is_constant(const cells_cell *k)
{
    return k && k->nstores == 1 && !k->escapes;
}

static const tx_node *
cells_alloc(tx_rewriter *r, const tx_node *n)
{
    return is_constant(cells_cell_of(r->self, n->u.buf)) ? tx_nothing(r->c) : n;
}

static const tx_node *
cells_store(tx_rewriter *r, const tx_node *n)
{
    cells_cell *k = cells_cell_of(r->self, n->u.buf);
    const tx_node *value;

    if (!is_constant(k))
        return tx_rewrite_children(r, n);
    value = tx_rewrite(r, n->arg[0]);
    k->var = value ? tx_new_var(r->c, TX_VAR_LET, n->u.buf->name, n->u.buf->dtype) : NULL;
    if (!k->var)
        return NULL;
    k->var->span = n->u.buf->span;
    return tx_make_at(r->c, n->span, TX_OP_BIND, TX_VOID, (tx_payload){.var = k->var}, &value, 1);
}

static const tx_node *
cells_load(tx_rewriter *r, const tx_node *n)
{
    cells_cell *k = cells_cell_of(r->self, n->u.buf);

    return is_constant(k) && k->var ? k->var->node : tx_rewrite_children(r, n);
}

tx_func *
tx_constant_cells(tx_ctx *c, tx_func *f)
{
    cells_cells s = {.v = {find, NULL}, .c = c};
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn, .self = &s, .refold = true};
    const tx_node *body = NULL;

    if (fn)
        tx_walk(&s.v, f->body);
    if (!fn || s.failed) {
        tx_map_free(&s.at);
        return tx_fail(c, 0, TX_E_NO_MEMORY);
    }
    s.v.enter = cells_count_uses;
    if (s.nfound)
        tx_walk(&s.v, f->body);
    fn[TX_OP_ALLOC] = cells_alloc;
    fn[TX_OP_STORE] = cells_store;
    fn[TX_OP_LOAD] = cells_load;
    body = s.nfound ? tx_rewrite(&r, f->body) : f->body;
    tx_rewriter_free(&r);
    tx_map_free(&s.at);
    return body ? tx_func_with_body(c, f, body) : NULL;
}
