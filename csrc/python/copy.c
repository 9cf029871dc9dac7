/* Stores into a region of a buffer that is no vector: of any length, of several dimensions, or of a length that is known at
 * run time. The value is a number, which is spread, or a region or buffer of the same shape; both are written as loops over
 * the elements. The value is taken as it was before the first store: a number is bound, and where both sides are parts of
 * one buffer the loops run in the direction in which nothing is overwritten before it is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/builder.h"

typedef struct part { /* a region: of every dimension where it starts, how long it is, its step */
    tx_buffer *buf;
    const tx_node *const *start, *const *extent;
    uint32_t kept;
    int64_t step; /* of the last dimension */
} part;

static unsigned
part_rank(const part *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->buf->rank; i++)
        n += p->kept >> i & 1;
    return n;
}

/* The n-th dimension that has an extent. */
static unsigned
part_dim(const part *p, unsigned n)
{
    for (unsigned i = 0;; i++)
        if (p->kept >> i & 1 && n-- == 0)
            return i;
}

static const char *
part_shape(tx_ctx *c, const part *p)
{
    tx_sb sb = {0};
    const tx_str *s = NULL;
    unsigned n = part_rank(p);

    tx_sb_putc(&sb, '(');
    for (unsigned i = 0; i < n; i++) {
        tx_sb_puts(&sb, i ? ", " : "");
        tx_print_node(p->extent[part_dim(p, i)], &sb);
    }
    tx_sb_puts(&sb, n == 1 ? ",)" : ")");
    if (!sb.failed)
        s = tx_intern(c, sb.text, sb.n);
    tx_sb_free(&sb);
    return s ? s->text : "?";
}

/* ---- the two sides ----------------------------------------------------------------------------------------------- */

static bool
copy_same_extent(tx_ctx *c, const tx_node *a, const tx_node *b)
{
    const tx_node *d = a && b ? tx_py_distance(c, a, b) : NULL;

    return d && tx_is_const(d, 0);
}

/* What a value is, where it is more than a number: 1 and *p; 0: a number. */
static int
part_of(tx_py_context *ctx, PyObject *value, part *p)
{
    if (tx_py_is_region(value)) {
        tx_py_region *r = (tx_py_region *)value;
        *p = (part){r->buffer->buf, r->start, r->extent, r->kept, 1};
        return 1;
    }
    if (tx_py_is_buffer(value)) {
        tx_buffer *b = ((tx_py_buffer *)value)->buf;
        const tx_node **zero = tx_new(ctx->c, const tx_node *, b->rank + 1u);
        bool one = true;

        for (unsigned i = 0; zero && i < b->rank; i++) {
            one = one && tx_is_const(b->shape[i], 1);
            if (!(zero[i] = tx_int(ctx->c, TX_I32, 0)))
                zero = NULL;
        }
        if (!zero)
            return tx_py_raise(ctx), -1;
        *p = (part){b, zero, b->shape, (1u << b->rank) - 1u, 1};
        return !one;
    }
    return 0;
}

/* A number for many elements, or for several that do not follow each other, is better stored by a loop. */
static bool
is_spread_far(PyObject *value, const tx_node *index, int64_t step)
{
    unsigned lanes = tx_lanes(index->dtype);

    if (tx_py_is_region(value) || lanes <= 4 || (step == 1 && lanes <= 16))
        return false;
    if (tx_py_is_buffer(value))
        return tx_lanes(((tx_py_buffer *)value)->buf->dtype) == 1;
    return !tx_py_is_expr(value) || tx_lanes(((tx_py_expr *)value)->node->dtype) == 1;
}

bool
tx_py_is_vector_value(PyObject *value, const tx_node *index, int64_t step)
{
    if (is_spread_far(value, index, step))
        return false;
    if (tx_py_is_buffer(value)) {
        const tx_buffer *b = ((tx_py_buffer *)value)->buf;
        for (unsigned i = 0; i < b->rank; i++)
            if (!tx_is_const(b->shape[i], 1))
                return false;
        return true;
    }
    if (!tx_py_is_region(value))
        return true;
    const tx_py_region *r = (const tx_py_region *)value;
    for (unsigned i = 0; i + 1 < r->buffer->buf->rank; i++)
        if (!tx_is_const(r->extent[i], 1))
            return false;
    return true;
}

/* Every dimension of `from`, counted from the last one, is as long as that of `to`, or 1. */
static bool
shapes_agree(tx_py_context *ctx, const part *to, const part *from)
{
    unsigned n = part_rank(to), m = part_rank(from);
    bool ok = true;

    for (unsigned i = 0; ok && i < m; i++) {
        const tx_node *e = from->extent[part_dim(from, m - 1 - i)];
        if (i >= n)
            ok = tx_is_const(e, 1);
        else
            ok = tx_is_const(e, 1) || copy_same_extent(ctx->c, e, to->extent[part_dim(to, n - 1 - i)]);
    }
    if (!ok && !ctx->c->nerrors)
        tx_py_fail(ctx, TX_E_COPY_SHAPES, part_shape(ctx->c, from), to->buf->name->text, part_shape(ctx->c, to));
    return ok;
}

/* Constant elements are reached only: where the first and one past the last of them are. */
static bool
byte_range(tx_ctx *c, const part *p, int64_t *lo, int64_t *hi)
{
    const tx_node *offset = tx_buffer_elem_offset(c, p->buf);
    int64_t at = 0, first = 0, last = 0, stride = 1, e, s, size = tx_dtype_bytes(p->buf->dtype);

    if (offset && !tx_const_i64(offset, &at))
        return false;
    for (int i = p->buf->rank - 1; i >= 0; i--) {
        int64_t by;
        if (!tx_const_i64(p->start[i], &s) || !tx_const_i64(p->extent[i], &e) ||
            (p->buf->strides && !tx_const_i64(p->buf->strides[i], &stride)) || stride < 0 || s < 0 || e < 1)
            return false;
        if (!tx_mul_i64(s, stride, &by) || !tx_add_i64(first, by, &first) || !tx_mul_i64(s + e - 1, stride, &by) ||
            !tx_add_i64(last, by, &last))
            return false;
        if (!p->buf->strides && (!tx_const_i64(p->buf->shape[i], &e) || !tx_mul_i64(stride, e, &stride)))
            return false;
    }
    return tx_mul_i64(at + first, size, lo) && tx_mul_i64(at + last + 1, size, hi);
}

/* Whether the loops have to run backwards; false with an error recorded when that cannot be said. Dimensions with one index
 * select the same part or quite another one, so only those with an extent decide. */
static bool
runs_backwards(tx_py_context *ctx, const part *to, const part *from)
{
    int64_t a, b, c, d;

    if (to->buf->data != from->buf->data)
        return false;
    if (byte_range(ctx->c, to, &a, &b) && byte_range(ctx->c, from, &c, &d) && (b <= c || d <= a))
        return false;
    if (to->buf == from->buf && to->kept == from->kept && to->step == 1 && !to->buf->strides) {
        bool back = false, decided = false, known = true;
        for (unsigned i = 0; known && !decided && i < to->buf->rank; i++) {
            if (!(to->kept >> i & 1))
                continue;
            const tx_node *n = tx_py_distance(ctx->c, from->start[i], to->start[i]);
            known = n && tx_const_i64(n, &a) && copy_same_extent(ctx->c, to->extent[i], from->extent[i]);
            decided = known && a != 0;
            back = decided && a > 0;
        }
        if (known)
            return back;
    }
    if (!ctx->c->nerrors)
        tx_py_fail(ctx, TX_E_COPY_OVERLAP, to->buf->name->text, from->buf->name->text);
    return false;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A value that is taken once, before the loops. */
static const tx_node *
taken_once(tx_py_builder *b, const char *name, const tx_node *n)
{
    tx_ctx *c = b->ctx->c;
    tx_var *v;

    if (!n || !(n->flags & TX_NF_IMPURE))
        return n;
    v = tx_new_var(c, TX_VAR_LET, tx_intern_z(c, name), n->dtype);
    return v && tx_emit(b->b, tx_py_stmt(b, TX_OP_BIND, (tx_payload){.var = v}, &n, 1)) ? v->node : NULL;
}

/* Opens a loop over `extent` turns; gives the variable. */
static const tx_node *
open_turns(tx_py_builder *b, const tx_node *extent, unsigned k, bool back)
{
    static const char *const names[] = {"i", "j", "k"};
    tx_ctx *c = b->ctx->c;
    tx_dtype t = extent->dtype;
    tx_loop *loop = tx_new(c, tx_loop, 1);
    const tx_node *args[4] = {tx_int(c, t, 0), extent, tx_int(c, t, back ? -1 : 1), NULL};
    const tx_str *name = k < 3 ? tx_intern_z(c, names[k]) : tx_intern_f(c, "i%u", k);

    if (back) {
        args[0] = tx_binary(c, TX_OP_SUB, extent, tx_int(c, t, 1));
        args[1] = tx_int(c, t, -1);
    }
    if (!loop || !name || !args[0] || !args[1] || !args[2] || !(loop->var = tx_new_var(c, TX_VAR_LOOP, name, t)))
        return NULL;
    if (!tx_open(b->b, tx_py_stmt(b, TX_OP_FOR, (tx_payload){.loop = loop}, args, 4)))
        return NULL;
    return loop->var->node;
}

static bool
ends_inside(tx_py_context *ctx, const part *p)
{
    int64_t s, e, d;

    for (unsigned i = 0; i < p->buf->rank; i++) {
        if (!tx_const_i64(p->start[i], &s) || !tx_const_i64(p->extent[i], &e) || e < 1)
            continue;
        bool known = tx_const_i64(p->buf->shape[i], &d);
        if (s < 0)
            return tx_py_fail(ctx, TX_E_INDEX_NEGATIVE, (long long)s, (int)i, p->buf->name->text), false;
        if (known && s + e > d)
            return tx_py_fail(ctx, TX_E_INDEX_RANGE, (long long)(s + e - 1), (long long)d - 1, (int)i,
                              p->buf->name->text),
                   false;
    }
    return true;
}

static bool
copy_elements(tx_py_builder *builder, const part *to, const part *from, const tx_node *value)
{
    tx_py_context *ctx = builder->ctx;
    tx_ctx *c = ctx->c;
    const tx_node *at[TX_MAX_RANK], *src[TX_MAX_RANK];
    unsigned n = part_rank(to), m = from ? part_rank(from) : 0, opened = 0;
    bool back = from && runs_backwards(ctx, to, from), ok = !c->nerrors && !PyErr_Occurred();

    for (unsigned i = 0; ok && i < to->buf->rank; i++)
        ok = (at[i] = taken_once(builder, "start", to->start[i])) != NULL;
    for (unsigned i = 0; ok && from && i < from->buf->rank; i++)
        ok = (src[i] = taken_once(builder, "start", from->start[i])) != NULL;
    for (unsigned k = 0; ok && k < n; k++) {
        unsigned d = part_dim(to, k), j = k + m - n; /* the dimension of `from` with the same number from the end */
        bool last = d + 1u == to->buf->rank;
        const tx_node *extent = to->extent[d], *turn, *by = NULL;

        if (last && to->step != 1)
            extent = tx_binary(c, TX_OP_CEILDIV, extent, tx_int(c, extent->dtype, to->step));
        extent = taken_once(builder, "extent", extent);
        turn = extent ? tx_is_const(extent, 1) ? tx_int(c, extent->dtype, 0) : open_turns(builder, extent, opened, back)
                      : NULL;
        if (!turn)
            return false;
        opened += turn->op != TX_OP_INT;
        by = last && to->step != 1 ? tx_binary(c, TX_OP_MUL, turn, tx_int(c, turn->dtype, to->step)) : turn;
        at[d] = tx_binary(c, TX_OP_ADD, at[d], by);
        ok = at[d] != NULL;
        if (ok && from && k + m >= n && !tx_is_const(from->extent[part_dim(from, j)], 1)) {
            d = part_dim(from, j);
            src[d] = tx_binary(c, TX_OP_ADD, src[d], turn);
            ok = src[d] != NULL;
        }
    }
    if (ok && from)
        value = tx_load(c, from->buf, src, from->buf->rank);
    ok = ok && value && tx_emit(builder->b, tx_store(c, to->buf, at, to->buf->rank, value));
    while (ok && opened-- > 0)
        ok = tx_close(builder->b) != NULL;
    return ok;
}

bool
tx_py_store_region(tx_py_builder *builder, tx_buffer *buf, const tx_node *const *start, const tx_node *const *extent,
                   uint32_t kept, int64_t step, PyObject *value)
{
    tx_py_context *ctx = builder->ctx;
    part to = {buf, start, extent, kept, step}, from;
    const tx_node *v = NULL;
    int r;

    if (!ends_inside(ctx, &to) || (r = part_of(ctx, value, &from)) < 0)
        return false;
    if (r && step != 1)
        return tx_py_fail(ctx, TX_E_SLICE_STEP), false;
    if (r && (!ends_inside(ctx, &from) || !shapes_agree(ctx, &to, &from)))
        return false;
    if (!r) {
        if (!(v = tx_py_as_stored(ctx, value, buf->dtype)) || !tx_py_builder_open(builder))
            return false;
        if (!(v->flags & TX_NF_WEAK) && !(v = taken_once(builder, "v", tx_typed(ctx->c, v))))
            return tx_py_raise(ctx), false;
    }
    if (!copy_elements(builder, &to, r ? &from : NULL, v))
        return PyErr_Occurred() ? false : (tx_py_raise(ctx), false);
    return true;
}
