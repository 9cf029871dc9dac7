/* Cells that count. i = i + 1 in a loop is index arithmetic, though a cell could hold anything: a cell that only ever
 * receives index arithmetic (coordinates, sizes, constants) or itself a little more, less or divided is taken to stay in
 * range like a loop counter, so that its text is plain. Everything else that is stored makes it data: sums of what was
 * read, products of itself, scalar arguments, and a cell whose address is known to someone.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

enum { COUNTER_STEP = 65536, COUNTER_CONSTANT = 1 << 24, COUNTER_DEPTH = 24 };

typedef struct counter_scan {
    tx_visitor v;
    em *e;
    tx_map lets; /* variables bound to data */
} counter_scan;

static bool
counter_cell(const tx_buffer *b)
{
    return (b->flags & TX_BUF_CELL) && b->scope == TX_LOCAL && tx_lanes(b->dtype) == 1;
}

static void
counter_is_data(counter_scan *s, const tx_var *data)
{
    if (!tx_map_put(&s->e->data_cells, (uint64_t)(uintptr_t)data, 1))
        tx_fail(s->e->c, 0, TX_E_NO_MEMORY);
}

/* Made of coordinates, sizes, counters of loops, bindings of such, and constants that are far from the ends of int32. */
static bool
counter_index_only(const counter_scan *s, const tx_node *n)
{
    uint64_t ignored;

    if ((n->flags & TX_NF_IMPURE) || n->depth > COUNTER_DEPTH)
        return false;
    if (n->op == TX_OP_INT)
        return n->u.i >= -COUNTER_CONSTANT && n->u.i <= COUNTER_CONSTANT;
    if (n->op == TX_OP_VAR)
        return n->u.var->kind != TX_VAR_PARAM && !tx_map_get(&s->lets, (uint64_t)(uintptr_t)n->u.var, &ignored);
    for (uint32_t i = 0; i < n->nargs; i++)
        if (!counter_index_only(s, n->arg[i]))
            return false;
    return true;
}

static bool
counter_is_itself(const tx_node *n, const tx_var *data)
{
    return n->op == TX_OP_LOAD && n->u.buf->data == data;
}

static bool
counter_steps(const tx_node *n, const tx_var *data)
{
    int64_t k;

    if (n->nargs != 2 || !counter_is_itself(n->arg[0], data) || !tx_const_i64(n->arg[1], &k))
        return false;
    switch (n->op) {
    case TX_OP_ADD:
    case TX_OP_SUB: return k >= -COUNTER_STEP && k <= COUNTER_STEP;
    case TX_OP_FLOORDIV:
    case TX_OP_FLOORMOD:
    case TX_OP_DIV:
    case TX_OP_MOD:
    case TX_OP_BAND:
    case TX_OP_SHR: return k > 0;
    default: return false;
    }
}

static bool
counter_enter(tx_visitor *v, const tx_node *n)
{
    counter_scan *s = (counter_scan *)v;

    switch (n->op) {
    case TX_OP_BIND:
    case TX_OP_LET:
        if (!counter_index_only(s, n->arg[0]))
            tx_map_put(&s->lets, (uint64_t)(uintptr_t)n->u.var, 1);
        return true;
    case TX_OP_STORE:
        if (counter_cell(n->u.buf) && !counter_index_only(s, n->arg[0]) && !counter_steps(n->arg[0], n->u.buf->data))
            counter_is_data(s, n->u.buf->data);
        return true;
    case TX_OP_BUFFER_DATA: counter_is_data(s, n->u.buf->data); return true;
    case TX_OP_ADDRESS_OF: counter_is_data(s, n->arg[0]->u.buf->data); return true;
    case TX_OP_PTX:
    case TX_OP_FUNC_CALL:
    case TX_OP_CALL_EXTERN: /* may take its argument by reference */
        for (uint32_t i = 0; i < n->nargs; i++)
            if (n->arg[i]->op == TX_OP_LOAD)
                counter_is_data(s, n->arg[i]->u.buf->data);
        return true;
    default: return tx_is_stmt(n) || (n->flags & TX_NF_IMPURE) || n->op == TX_OP_PTR_OFFSET || tx_is_handle(n->dtype);
    }
}

void
em_scan_counters(em *e, const tx_node *body)
{
    counter_scan s = {{counter_enter, NULL}, e, {0}};

    tx_walk(&s.v, body);
    tx_map_free(&s.lets);
}

bool
em_is_counter(em *e, const tx_buffer *b)
{
    uint64_t ignored;

    return counter_cell(b) && tx_is_int(b->dtype) &&
           !tx_map_get(&e->data_cells, (uint64_t)(uintptr_t)b->data, &ignored);
}
