/* Declarations that a method of a buffer makes, in the method's form: `V = A.view(4, 16)`. Only where the method gives
 * exactly the declaration again; anything else is printed as T.decl_buffer. SPDX-License-Identifier: Apache-2.0 */
#include "ir/print.h"

static bool
view_same(const tx_node *a, const tx_node *b)
{
    return a == b || (a && b && tx_equal_nodes(a, b)) || (!a && tx_is_const(b, 0)) || (!b && tx_is_const(a, 0));
}

/* Constant extents and, where they are given, strides. */
static bool
view_is_constant(const tx_buffer *b)
{
    for (unsigned i = 0; i < b->rank; i++)
        if (b->shape[i]->op != TX_OP_INT || (b->strides && b->strides[i]->op != TX_OP_INT))
            return false;
    return b->rank > 0;
}

/* The dense stride of dimension d; the product of what stands behind it. */
static int64_t
view_dense(const tx_buffer *b, unsigned d)
{
    int64_t n = 1;

    for (unsigned i = d + 1; i < b->rank; i++)
        if (!tx_mul_i64(n, b->shape[i]->u.i, &n))
            return -1;
    return n;
}

static int64_t
view_stride(const tx_buffer *b, unsigned d)
{
    return b->strides ? b->strides[d]->u.i : view_dense(b, d);
}

/* A.view(4, 16) */
static bool
view_reshaped(tx_printer *p, const tx_buffer *b, const tx_buffer *from)
{
    if (b->strides || from->strides || b->dtype != from->dtype || !view_same(b->elem_offset, from->elem_offset))
        return false;
    if (view_dense(b, 0) < 0 || view_dense(from, 0) < 0 ||
        view_dense(b, 0) * b->shape[0]->u.i != view_dense(from, 0) * from->shape[0]->u.i)
        return false;
    tx_sb_f(p->out, "%s.view(", tx_print_known(p, from));
    for (unsigned i = 0; i < b->rank; i++)
        tx_sb_f(p->out, "%s%lld", i ? ", " : "", (long long)b->shape[i]->u.i);
    tx_sb_putc(p->out, ')');
    return true;
}

/* A.view("float16") */
static bool
view_retyped(tx_printer *p, const tx_buffer *b, const tx_buffer *from)
{
    int64_t a = tx_dtype_bytes(from->dtype), z = tx_dtype_bytes(b->dtype);

    if (b->strides || from->strides || b->dtype == from->dtype || b->rank != from->rank || b->elem_offset ||
        from->elem_offset || tx_bits(b->dtype) == 4 || tx_bits(from->dtype) == 4 || (a % z && z % a))
        return false;
    for (unsigned i = 0; i + 1 < b->rank; i++)
        if (b->shape[i]->u.i != from->shape[i]->u.i)
            return false;
    if (b->shape[b->rank - 1]->u.i * z != from->shape[b->rank - 1]->u.i * a)
        return false;
    tx_sb_f(p->out, "%s.view(", tx_print_known(p, from));
    tx_print_dtype(p, b->dtype);
    tx_sb_putc(p->out, ')');
    return true;
}

/* A.permute(1, 0) */
static bool
view_permuted(tx_printer *p, const tx_buffer *b, const tx_buffer *from)
{
    unsigned order[TX_MAX_RANK], used = 0;
    bool dense = true;

    if (!b->strides || b->dtype != from->dtype || b->rank != from->rank ||
        !view_same(b->elem_offset, from->elem_offset))
        return false;
    for (unsigned i = 0; i < b->rank; i++) {
        unsigned d = 0;
        while (d < b->rank &&
               (used >> d & 1 || b->shape[i]->u.i != from->shape[d]->u.i || b->strides[i]->u.i != view_stride(from, d)))
            d++;
        if (d == b->rank)
            return false;
        used |= 1u << d;
        order[i] = d;
        dense = dense && b->strides[i]->u.i == view_dense(b, i);
    }
    if (dense)
        return false; /* the method would leave the strides out */
    tx_sb_f(p->out, "%s.permute(", tx_print_known(p, from));
    for (unsigned i = 0; i < b->rank; i++)
        tx_sb_f(p->out, "%s%u", i ? ", " : "", order[i]);
    tx_sb_putc(p->out, ')');
    return true;
}

bool
tx_print_view(tx_printer *p, const tx_buffer *b, const tx_node *pointer)
{
    const tx_buffer *from = pointer->op == TX_OP_BUFFER_DATA ? pointer->u.buf : NULL;
    unsigned kept = TX_BUF_NO_LAYOUT | TX_BUF_FLAT | TX_BUF_VOLATILE | TX_BUF_ALIGNED | TX_BUF_G2 | TX_BUF_CELL;

    if (!from || b->data != from->data || b->scope != from->scope || !tx_print_known(p, from) || b->flags & kept ||
        from->flags & (TX_BUF_NO_LAYOUT | TX_BUF_FLAT) || b->align || b->offset_factor > 1 || b->allocated_addr ||
        b->nattrs || b->byte_offset || from->byte_offset || !view_is_constant(b) || !view_is_constant(from))
        return false;
    return view_reshaped(p, b, from) || view_retyped(p, b, from) || view_permuted(p, b, from);
}
