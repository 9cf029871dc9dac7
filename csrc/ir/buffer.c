/* Variables and buffers: the records, made and copied. A buffer's data is a variable; views share it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

static tx_var *
make_var(tx_ctx *c, tx_var_kind kind, const tx_str *name, tx_dtype dtype, tx_dtype elem, tx_scope scope)
{
    tx_var *v = name ? tx_new(c, tx_var, 1) : NULL;

    if (!v)
        return NULL;
    v->name = name;
    v->id = c->next_id++;
    v->kind = (uint8_t)kind;
    v->scope = (uint8_t)scope;
    v->dtype = dtype;
    v->elem = elem;
    v->span = c->span;
    v->node = tx_make(c, TX_OP_VAR, dtype, (tx_payload){.var = v}, NULL, 0);
    return v->node ? v : NULL;
}

tx_var *
tx_new_var(tx_ctx *c, tx_var_kind kind, const tx_str *name, tx_dtype dtype)
{
    return make_var(c, kind, name, dtype, TX_VOID, TX_GLOBAL);
}

tx_var *
tx_new_ptr_var(tx_ctx *c, tx_var_kind kind, const tx_str *name, tx_dtype elem, tx_scope scope)
{
    return make_var(c, kind, name, TX_HANDLE, elem, scope);
}

tx_buffer *
tx_new_buffer(tx_ctx *c, const tx_str *name, tx_dtype dtype, tx_scope scope, const tx_node *const *shape, uint32_t rank,
              tx_var *data)
{
    tx_buffer *b;

    if (rank > TX_MAX_RANK)
        return tx_fail(c, c->span, TX_E_RANK_LIMIT, name ? name->text : "?", (int)rank, TX_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++)
        if (!shape[i])
            return NULL;
    if (!name || !(b = tx_new(c, tx_buffer, 1)) || !(b->shape = tx_new(c, const tx_node *, rank)))
        return NULL;
    b->name = name;
    b->dtype = dtype;
    b->scope = (uint8_t)scope;
    b->rank = (uint8_t)rank;
    b->span = c->span;
    if (rank)
        memcpy(b->shape, shape, rank * sizeof *shape);
    if (!data) {
        if (!(data = tx_new_ptr_var(c, TX_VAR_DATA, name, dtype, scope)))
            return NULL;
        data->buffer = b;
    }
    b->data = data;
    b->id = c->next_id++;
    return b;
}

tx_buffer *
tx_copy_buffer(tx_ctx *c, const tx_buffer *b)
{
    tx_buffer *copy = tx_new(c, tx_buffer, 1);

    if (!copy)
        return NULL;
    *copy = *b;
    copy->id = c->next_id++;
    if (!(copy->shape = tx_new(c, const tx_node *, b->rank)))
        return NULL;
    if (b->rank)
        memcpy(copy->shape, b->shape, b->rank * sizeof *b->shape);
    if (b->strides) {
        if (!(copy->strides = tx_new(c, const tx_node *, b->rank)))
            return NULL;
        if (b->rank)
            memcpy(copy->strides, b->strides, b->rank * sizeof *b->strides);
    }
    return copy;
}

const tx_node *
tx_buffer_numel(tx_ctx *c, const tx_buffer *b)
{
    const tx_node *n = tx_int(c, TX_I64, 1);

    for (uint32_t i = 0; i < b->rank; i++)
        n = tx_binary(c, TX_OP_MUL, n, tx_cast(c, TX_I64, b->shape[i]));
    return n;
}

const tx_node *
tx_buffer_elem_offset(tx_ctx *c, const tx_buffer *b)
{
    const tx_node *n = b->byte_offset;

    if (!n)
        return b->elem_offset;
    if (tx_bits(b->dtype) == 4 && tx_lanes(b->dtype) == 1) /* two elements a byte */
        return tx_binary(c, TX_OP_MUL, n, tx_int(c, n->dtype, 2));
    return tx_binary(c, TX_OP_FLOORDIV, n, tx_int(c, n->dtype, tx_dtype_bytes(b->dtype)));
}

const tx_node *
tx_buffer_start(tx_ctx *c, tx_buffer *b)
{
    const tx_node *offset = tx_buffer_elem_offset(c, b), *idx[TX_MAX_RANK];
    int64_t n;

    if (!offset || (tx_const_i64(offset, &n) && n == 0))
        return tx_buffer_data(c, b);
    for (uint32_t d = 0; d < b->rank; d++)
        idx[d] = tx_int(c, TX_I32, 0);
    return tx_address_of(c, tx_load(c, b, idx, b->rank));
}
