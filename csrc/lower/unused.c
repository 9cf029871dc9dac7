/* Warnings of what a function sets and never reads, and of parameters that nothing uses, at the end of parsing. Nothing is
 * removed for it. Names that begin with an underscore are meant so. SPDX-License-Identifier: Apache-2.0 */
#include "lower/lower.h"

typedef struct unused_walk {
    tx_visitor v;
    tx_ctx *c;
    tx_map read;                     /* variables, and data pointers of buffers, that something reads */
    TX_VEC(const tx_node *) defined; /* ALLOCs of local memory and BINDs, in the order of the text */
    TX_VEC(const tx_node *) stored;  /* STOREs: their buffers are written, not read */
    bool failed;
} unused_walk;

static void
unused_reads(unused_walk *w, const tx_var *v)
{
    w->failed |= v && !tx_map_put_ptr(&w->read, v, v);
}

static bool unused_visit(tx_visitor *v, const tx_node *n);

static void
unused_walk_buffer(unused_walk *w, const tx_buffer *b)
{
    const tx_node *const extra[] = {b->elem_offset, b->byte_offset, b->allocated_addr};

    for (int d = 0; d < b->rank; d++) {
        tx_walk(&w->v, b->shape[d]);
        if (b->strides)
            tx_walk(&w->v, b->strides[d]);
    }
    for (int i = 0; i < 3; i++)
        if (extra[i])
            tx_walk(&w->v, extra[i]);
}

static bool
unused_visit(tx_visitor *v, const tx_node *n)
{
    unused_walk *w = (unused_walk *)v;

    switch (n->op) {
    case TX_OP_VAR: unused_reads(w, n->u.var); return true;
    case TX_OP_LOAD:
    case TX_OP_BUFFER_DATA: unused_reads(w, n->u.buf->data); return true;
    case TX_OP_STORE: w->failed |= !tx_push(w->c, &w->stored, n); return true;
    case TX_OP_BIND: w->failed |= !tx_push(w->c, &w->defined, n); return true;
    case TX_OP_ALLOC: w->failed |= !tx_push(w->c, &w->defined, n); break;
    case TX_OP_DECL: /* a view: what reads or writes it reads or writes through the pointer */
        unused_reads(w, n->u.buf->data);
        break;
    case TX_OP_DEVICE:
        for (uint32_t i = 0; n->u.launch && i < n->u.launch->nattrs; i++)
            tx_walk(&w->v, n->u.launch->attrs[i].value);
        return true;
    default: return true;
    }
    unused_walk_buffer(w, n->u.buf);
    return true;
}

static bool
unused_names_a_read_size(unused_walk *w, const tx_node *e)
{
    if (e->op == TX_OP_VAR)
        return tx_map_ptr(&w->read, e->u.var) != NULL;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->arg[i] && unused_names_a_read_size(w, e->arg[i]))
            return true;
    return false;
}

/* A tensor also serves by telling a size. */
static bool
unused_param(unused_walk *w, const tx_param *p)
{
    const tx_var *v = p->buffer ? p->buffer->data : p->var;

    if (!v || tx_map_ptr(&w->read, v) || p->flags & (TX_PARAM_OPTIONAL_ABSENT | TX_PARAM_TENSORMAP))
        return false;
    for (uint32_t i = 0; i < w->stored.n; i++)
        if (w->stored.at[i]->u.buf->data == v)
            return false;
    for (int d = 0; p->buffer && d < p->buffer->rank; d++)
        if (unused_names_a_read_size(w, p->buffer->shape[d]) ||
            (p->buffer->strides && unused_names_a_read_size(w, p->buffer->strides[d])))
            return false;
    return true;
}

static bool
unused_is_meant(const tx_str *name)
{
    return !name || name->len == 0 || name->text[0] == '_';
}

static void
unused_variables(unused_walk *w)
{
    for (uint32_t i = 0; i < w->defined.n; i++) {
        const tx_node *n = w->defined.at[i];
        bool alloc = n->op == TX_OP_ALLOC, stored = !alloc;
        const tx_var *v = alloc ? n->u.buf->data : n->u.var;
        const tx_str *name = alloc ? n->u.buf->name : v->name;

        if (tx_map_ptr(&w->read, v) || unused_is_meant(name) || (alloc && n->u.buf->scope != TX_LOCAL) ||
            (!alloc && (n->flags & TX_NF_COND || n->arg[0]->flags & TX_NF_IMPURE)))
            continue;
        for (uint32_t k = 0; k < w->stored.n && !stored; k++)
            stored = w->stored.at[k]->u.buf->data == v;
        if (stored && tx_map_put_ptr(&w->read, v, v)) /* told once */
            tx_warn(w->c, n->span, TX_E_UNUSED_VARIABLE, name->text);
    }
}

void
tx_warn_unused(tx_ctx *c, const tx_func *f)
{
    unused_walk w = {.v = {unused_visit, NULL}, .c = c};

    if (f->flags & TX_FUNC_KERNEL || (f->body->op == TX_OP_SEQ && f->body->nargs == 0))
        return;
    tx_walk(&w.v, f->body);
    if (!w.failed)
        unused_variables(&w);
    for (int scalars = 0; scalars < 2; scalars++) { /* tensors first: a scalar that a shape names is used */
        for (uint32_t i = 0; i < f->nparams && !w.failed; i++) {
            const tx_param *p = &f->params[i];
            if ((p->buffer == NULL) == scalars && !unused_is_meant(p->name) && unused_param(&w, p))
                tx_warn(c, p->span, TX_E_UNUSED_PARAMETER, p->name->text);
        }
        for (uint32_t i = 0; i < f->nparams; i++)
            if (f->params[i].buffer)
                unused_walk_buffer(&w, f->params[i].buffer);
    }
    tx_map_free(&w.read);
}
