/* The host zone of LowerTIRx: a cell that is set once, where it stands, becomes a binding. Any other cell stays a variable
 * of the host half, a register of the launch plan; device code gets the value that it holds when the region is launched, so
 * that launch shapes and kernel arguments are expressions over immutable values. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct host_cell {
    const tx_buffer *buf;
    const tx_node *alloc, *block; /* the ALLOC and the SEQ that holds it */
    uint32_t nstores, nstores_here;
    bool escapes;
    tx_var *var; /* bound once: what it became */
    tx_var *now; /* in a device region: its value there */
} host_cell;

typedef struct host_cells {
    tx_visitor v;
    tx_ctx *c;
    tx_map at;                     /* buffer -> cell */
    TX_VEC(const tx_node *) binds; /* before the device region that is being rewritten */
    bool on_device;
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

bool
tx_is_host_variable(const tx_buffer *b)
{
    return b->scope == TX_LOCAL && b->rank == 1 && tx_is_const(b->shape[0], 1);
}

/* The cells of the host zone. */
static bool
find_cells(host_cells *s, const tx_node *n)
{
    if (n->op == TX_OP_DEVICE || !tx_is_stmt(n))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++) {
        const tx_node *a = n->arg[i];
        if (!a)
            continue;
        if (n->op == TX_OP_SEQ && a->op == TX_OP_ALLOC && tx_is_host_variable(a->u.buf) && !host_new_cell(s, a, n))
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

static bool
is_set_once(const host_cell *k)
{
    return k->nstores == 1 && k->nstores_here == 1;
}

static const tx_node *
host_alloc(tx_rewriter *r, const tx_node *n)
{
    host_cell *k = host_cell_of(r->self, n->u.buf);

    if (!k)
        return n;
    if (k->escapes)
        return tx_fail(r->c, n->span, TX_E_HOST_CELL, k->buf->name->text);
    if (!is_set_once(k))
        return n;
    k->var = tx_new_var(r->c, TX_VAR_LET, k->buf->name, k->buf->dtype);
    return k->var ? tx_nothing(r->c) : NULL;
}

static const tx_node *
host_store(tx_rewriter *r, const tx_node *n)
{
    host_cells *s = r->self;
    host_cell *k = host_cell_of(s, n->u.buf);
    const tx_node *value;

    if (!k)
        return tx_rewrite_children(r, n);
    if (s->on_device)
        return tx_fail(r->c, n->span, TX_E_HOST_CELL_STORE, k->buf->name->text);
    if (!k->var)
        return tx_rewrite_children(r, n);
    value = tx_cast(r->c, k->buf->dtype, tx_rewrite(r, n->arg[0]));
    return value ? tx_make_at(r->c, n->span, TX_OP_BIND, TX_VOID, (tx_payload){.var = k->var}, &value, 1) : NULL;
}

static const tx_node *
host_load(tx_rewriter *r, const tx_node *n)
{
    host_cells *s = r->self;
    host_cell *k = host_cell_of(s, n->u.buf);
    const tx_node *bind;

    if (!k)
        return tx_rewrite_children(r, n);
    if (k->var)
        return k->var->node;
    if (!s->on_device)
        return n;
    if (!k->now) {
        if (!(k->now = tx_new_var(r->c, TX_VAR_LET, k->buf->name, k->buf->dtype)))
            return NULL;
        bind = tx_make_at(r->c, n->span, TX_OP_BIND, TX_VOID, (tx_payload){.var = k->now}, &n, 1);
        if (!bind || !tx_push(r->c, &s->binds, bind))
            return NULL;
    }
    return k->now->node;
}

/* Variables that the region reads are bound before it. */
static const tx_node *
host_region(tx_rewriter *r, const tx_node *n)
{
    host_cells *s = r->self;
    const tx_node *made;
    host_cell *k;

    s->binds.n = 0;
    s->on_device = true;
    made = tx_rewrite_children(r, n);
    s->on_device = false;
    for (uint32_t i = 0; i < s->binds.n; i++)
        if ((k = host_cell_of(s, s->binds.at[i]->arg[0]->u.buf)))
            k->now = NULL;
    if (!made || s->binds.n == 0)
        return made;
    return tx_push(r->c, &s->binds, made) ? tx_seq(r->c, s->binds.at, s->binds.n) : NULL;
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
        fn[TX_OP_DEVICE] = host_region;
        body = tx_rewrite(&r, body);
        tx_rewriter_free(&r);
    }
    tx_map_free(&s.at);
    return tx_func_with_body(c, f, body);
}
