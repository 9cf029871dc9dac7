/* The builder: a stack of open blocks, each a growing list of statements. A head node (FOR, WHILE, IF, DEVICE, ATTR) waits
 * without its body until its block is closed. SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"

typedef TX_VEC(const tx_node *) node_vec;

typedef struct build_frame {
    const tx_node *head; /* NULL: the function's own block */
    uint32_t slot;       /* child of head that the block becomes */
    bool device, in_loop;
    node_vec stmts;
} build_frame;

struct tx_builder {
    tx_ctx *c;
    tx_func *func;
    TX_VEC(build_frame) frames;
    TX_VEC(tx_var *) droppable;
};

static build_frame *
top_frame(tx_builder *b)
{
    return &b->frames.at[b->frames.n - 1];
}

tx_builder *
tx_builder_new(tx_ctx *c, const tx_str *name, enum tx_dialect dialect)
{
    tx_builder *b = tx_new(c, tx_builder, 1);

    if (!b || !(b->func = tx_new_func(c, name, dialect)) || !tx_push(c, &b->frames, (build_frame){0}))
        return NULL;
    b->c = c;
    return b;
}

tx_func *
tx_builder_func(tx_builder *b)
{
    return b->func;
}

static bool
frame_push(tx_ctx *c, node_vec *v, const tx_node *stmt)
{
    if (!stmt)
        return false;
    if (stmt->op != TX_OP_SEQ)
        return tx_push(c, v, stmt);
    for (uint32_t i = 0; i < stmt->nargs; i++)
        if (!tx_push(c, v, stmt->arg[i]))
            return false;
    return true;
}

bool
tx_emit_at(tx_builder *b, int level, const tx_node *stmt)
{
    if (level < 0 || (uint32_t)level >= b->frames.n)
        return false;
    if (stmt && !tx_is_stmt(stmt))
        stmt = tx_make_at(b->c, stmt->span, TX_OP_EVAL, TX_VOID, (tx_payload){0}, &stmt, 1);
    return frame_push(b->c, &b->frames.at[level].stmts, stmt);
}

bool
tx_emit(tx_builder *b, const tx_node *stmt)
{
    return tx_emit_at(b, (int)b->frames.n - 1, stmt);
}

static uint32_t
body_slot(unsigned op)
{
    switch (op) {
    case TX_OP_FOR: return 3;
    case TX_OP_DEVICE: return TX_L_BODY;
    default: return 1; /* WHILE, IF (then), ATTR */
    }
}

static bool
open_frame(tx_builder *b, const tx_node *head, uint32_t slot)
{
    const build_frame *outer = top_frame(b);
    build_frame f = {.head = head,
                     .slot = slot,
                     .device = outer->device || head->op == TX_OP_DEVICE,
                     .in_loop = outer->in_loop || head->op == TX_OP_FOR || head->op == TX_OP_WHILE};

    if (b->frames.n >= TX_MAX_DEPTH)
        return tx_fail(b->c, head->span, TX_E_TOO_DEEP, TX_MAX_DEPTH) != NULL;
    return tx_push(b->c, &b->frames, f);
}

bool
tx_open(tx_builder *b, const tx_node *head)
{
    return head && b->frames.n && open_frame(b, head, body_slot(head->op));
}

bool
tx_open_else(tx_builder *b)
{
    node_vec *v = &top_frame(b)->stmts;
    const tx_node *last = v->n ? v->at[v->n - 1] : NULL;

    if (!last || last->op != TX_OP_IF || last->arg[2])
        return false;
    v->n--;
    return open_frame(b, last, 2);
}

const tx_node *
tx_seq(tx_ctx *c, const tx_node *const *stmts, uint32_t n)
{
    bool nested = false;
    node_vec flat = {0};

    for (uint32_t i = 0; i < n; i++) {
        if (!stmts[i])
            return NULL;
        nested |= stmts[i]->op == TX_OP_SEQ;
    }
    if (nested) {
        for (uint32_t i = 0; i < n; i++)
            if (!frame_push(c, &flat, stmts[i]))
                return NULL;
        return tx_seq(c, flat.at, flat.n);
    }
    for (uint32_t i = 0; i + 1 < n; i++) /* nothing runs behind a jump */
        if (stmts[i]->op == TX_OP_BREAK || stmts[i]->op == TX_OP_CONTINUE || stmts[i]->op == TX_OP_RETURN)
            n = i + 1;
    if (n == 1)
        return stmts[0];
    return tx_make_at(c, n ? stmts[0]->span : c->span, TX_OP_SEQ, TX_VOID, (tx_payload){0}, stmts, n);
}

const tx_node *
tx_take_block(tx_builder *b)
{
    node_vec *v = &top_frame(b)->stmts;
    uint32_t n = v->n;

    v->n = 0;
    return tx_seq(b->c, v->at, n);
}

const tx_node *
tx_close(tx_builder *b)
{
    const tx_node *body, *args[TX_L__COUNT], *stmt;
    build_frame f;

    if (b->frames.n <= 1)
        return NULL;
    body = tx_take_block(b);
    f = b->frames.at[--b->frames.n];
    if (!body)
        return NULL;
    memcpy(args, f.head->arg, f.head->nargs * sizeof *args); /* no head has more children than DEVICE */
    args[f.slot] = body;
    stmt = tx_with_args(b->c, f.head, args);
    return tx_emit(b, stmt) ? stmt : NULL;
}

int
tx_builder_depth(const tx_builder *b)
{
    return (int)b->frames.n;
}

unsigned
tx_builder_zone(const tx_builder *b)
{
    return (b->func->flags & (TX_FUNC_KERNEL | TX_FUNC_DEVICE)) ||
           (b->frames.n && b->frames.at[b->frames.n - 1].device);
}

bool
tx_builder_in_loop(const tx_builder *b)
{
    return b->frames.n && b->frames.at[b->frames.n - 1].in_loop;
}

uint32_t
tx_builder_count(const tx_builder *b)
{
    return b->frames.at[b->frames.n - 1].stmts.n;
}

/* ---- bindings that nothing reads --------------------------------------------------------------------------------- */

bool
tx_builder_droppable(tx_builder *b, tx_var *v)
{
    return tx_push(b->c, &b->droppable, v);
}

typedef struct use_finder {
    tx_visitor v;
    tx_map unread; /* droppable variables that no use was found of */
    tx_map buffers;
} use_finder;

static void
find_buffer_uses(use_finder *f, const tx_buffer *b)
{
    uint64_t known;

    if (!b || tx_map_get(&f->buffers, (uint64_t)(uintptr_t)b, &known))
        return;
    tx_map_put(&f->buffers, (uint64_t)(uintptr_t)b, 1);
    tx_map_put_ptr(&f->unread, b->data, NULL);
    for (unsigned i = 0; i < b->rank; i++) {
        tx_walk(&f->v, b->shape[i]);
        tx_walk(&f->v, b->strides ? b->strides[i] : NULL);
    }
    tx_walk(&f->v, b->elem_offset);
    tx_walk(&f->v, b->byte_offset);
    tx_walk(&f->v, b->allocated_addr);
    find_buffer_uses(f, b->origin);
}

static bool
find_uses(tx_visitor *v, const tx_node *n)
{
    use_finder *f = (use_finder *)v;

    if (n->op == TX_OP_VAR)
        tx_map_put_ptr(&f->unread, n->u.var, NULL);
    else if (tx_payload_kind_of(n->op) == TX_P_BUF)
        find_buffer_uses(f, n->u.buf);
    for (uint32_t i = 0; n->op == TX_OP_FOR && i < n->u.loop->nattrs; i++)
        tx_walk(v, n->u.loop->attrs[i].value);
    return true;
}

static const tx_node *
drop_binding(tx_rewriter *r, const tx_node *n)
{
    if (!tx_map_ptr(r->self, n->u.var))
        return tx_rewrite_children(r, n);
    return tx_make_at(r->c, n->span, TX_OP_EVAL, TX_VOID, (tx_payload){0}, n->arg, 1);
}

/* A call whose result was bound only because plain Python code may drop it, and did: it stands for its effect. */
static const tx_node *
drop_bindings(tx_builder *b, const tx_node *body)
{
    static const tx_rewrite_fn rules[TX_OP__COUNT] = {[TX_OP_BIND] = drop_binding};
    use_finder f = {.v = {.enter = find_uses}};
    tx_rewriter r = {.c = b->c, .fn = rules, .self = &f.unread};
    bool ok = true;

    for (uint32_t i = 0; i < b->droppable.n; i++)
        ok = ok && tx_map_put_ptr(&f.unread, b->droppable.at[i], b);
    tx_walk(&f.v, body);
    body = ok ? tx_rewrite(&r, body) : tx_fail(b->c, b->c->span, TX_E_NO_MEMORY);
    tx_map_free(&f.unread);
    tx_map_free(&f.buffers);
    tx_rewriter_free(&r);
    return body;
}

tx_func *
tx_builder_finish(tx_builder *b)
{
    const tx_node *body;

    while (b->frames.n > 1)
        if (!tx_close(b))
            return NULL;
    body = tx_take_block(b);
    if (body && b->droppable.n)
        body = drop_bindings(b, body);
    return (b->func->body = body) ? b->func : NULL;
}
