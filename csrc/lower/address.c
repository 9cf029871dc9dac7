/* FlattenBuffer: every element access of a device region gets one element index into its data, offset included
 * (lowering.md 4.3, 4.7, 4.9). The declared indices stay behind it for the emulator's bounds check; an access whose
 * indices are proved to lie inside the declared shape is marked TX_NF_INBOUNDS. The index is computed in int32 when it
 * provably stays below 2^31 (an access outside the declared shape has no meaning, so constant extents count as proof),
 * else in int64. Loop bounds that read memory are taken once, before the loop. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct address {
    tx_scoped s;
    tx_map flat; /* buffer as declared -> flat buffer */
    bool on_device;
} address;

static address *
address_of(tx_rewriter *r)
{
    return ((tx_scoped *)r->self)->pass;
}

/* ---- buffers -------------------------------------------------------------------------------------------------------- */

static bool
stays(const tx_buffer *b)
{
    return b->flags & TX_BUF_FLAT || b->scope == TX_TMEM || b->layout;
}

/* Elements from the first to one past the last that the shape reaches; int32 where that is the declared extent or a
 * constant that fits. */
static const tx_node *
span_of(tx_ctx *c, const tx_buffer *b)
{
    const tx_node *span = tx_int(c, TX_I64, 1), *one = span;

    if (!b->strides && b->rank == 1)
        return b->shape[0];
    if (!b->strides) {
        span = tx_buffer_numel(c, b);
        return span && span->op == TX_OP_INT && span->u.i <= INT32_MAX ? tx_int(c, TX_I32, span->u.i) : span;
    }
    for (int d = 0; d < b->rank; d++) {
        const tx_node *last = tx_binary(c, TX_OP_SUB, tx_i64(c, b->shape[d]), one);
        span = tx_binary(c, TX_OP_ADD, span, tx_binary(c, TX_OP_MUL, last, tx_i64(c, b->strides[d])));
    }
    return span;
}

/* The span with what a constant offset puts before it: the indices of a flat buffer count from its pointer. */
static const tx_node *
span_from_pointer(tx_ctx *c, const tx_buffer *b)
{
    const tx_node *span = span_of(c, b);
    int64_t offset = 0;

    if (b->byte_offset && tx_const_i64(b->byte_offset, &offset))
        offset /= tx_dtype_bytes(b->dtype);
    else if (b->elem_offset)
        tx_const_i64(b->elem_offset, &offset);
    if (!span || offset <= 0)
        return span;
    span = tx_binary(c, TX_OP_ADD, tx_i64(c, span), tx_int(c, TX_I64, offset));
    return span && span->op == TX_OP_INT && span->u.i <= INT32_MAX ? tx_int(c, TX_I32, span->u.i) : span;
}

static tx_buffer *
flat_of(tx_rewriter *r, tx_buffer *b)
{
    address *a = address_of(r);
    tx_buffer *flat = tx_map_ptr(&a->flat, b);
    const tx_node *span;

    if (stays(b) || flat)
        return flat ? flat : b;
    span = span_from_pointer(r->c, b);
    flat = span ? tx_copy_buffer(r->c, b) : NULL;
    if (!flat)
        return NULL;
    flat->flags |= TX_BUF_FLAT;
    flat->origin = b;
    flat->rank = 1;
    flat->shape = tx_new(r->c, const tx_node *, 1);
    flat->strides = NULL;
    flat->elem_offset = flat->byte_offset = NULL;
    if (!flat->shape)
        return NULL;
    flat->shape[0] = span;
    return tx_map_put_ptr(&a->flat, b, flat) ? flat : tx_fail(r->c, 0, TX_E_NO_MEMORY);
}

static const tx_node *
with_buffer(tx_rewriter *r, const tx_node *n, tx_buffer *b, const tx_node *const *args)
{
    if (!b)
        return NULL;
    if (b == n->u.buf)
        return tx_with_args(r->c, n, args);
    return tx_make_at(r->c, n->span, n->op, n->dtype, (tx_payload){.buf = b}, args, n->nargs);
}

/* ---- element index -------------------------------------------------------------------------------------------------- */

typedef struct dims {
    const tx_node *stride[TX_MAX_RANK]; /* any integer dtype */
    const tx_node *offset;              /* elements, or NULL */
} dims;

static bool
address_dims_of(tx_ctx *c, const tx_buffer *b, dims *out)
{
    const tx_node *step = tx_int(c, TX_I32, 1);
    int64_t extent, whole;

    if (!step)
        return false;
    out->offset = tx_buffer_elem_offset(c, b);
    for (int d = b->rank - 1; d >= 0; d--) {
        if (b->strides) {
            out->stride[d] = b->strides[d];
            continue;
        }
        out->stride[d] = step;
        if (d == 0)
            break;
        /* a product of extents may pass 2^31 */
        if (tx_const_i64(step, &whole) && tx_const_i64(b->shape[d], &extent)) {
            if (!tx_mul_i64(whole, extent, &whole)) {
                tx_fail(c, b->span, TX_E_BUFFER_TOO_LARGE, b->name->text);
                return false;
            }
            step = tx_int(c, whole <= INT32_MAX ? TX_I32 : TX_I64, whole);
        } else {
            step =
                tx_is_const(step, 1) ? b->shape[d] : tx_binary(c, TX_OP_MUL, tx_i64(c, step), tx_i64(c, b->shape[d]));
        }
        if (!step)
            return false;
    }
    return !b->byte_offset || out->offset;
}

static bool
fits32(int64_t lo, int64_t hi)
{
    return lo >= INT32_MIN && hi <= INT32_MAX;
}

/* All extents, strides and the offset are constant, and no element lies at or past 2^31. */
static bool
small_shape(const tx_buffer *b, const dims *k)
{
    int64_t extent, stride, reach = 0, part;

    if (k->offset) {
        if (!tx_const_i64(k->offset, &reach) || reach < 0)
            return false;
    }
    for (int d = 0; d < b->rank; d++) {
        if (!tx_const_i64(b->shape[d], &extent) || !tx_const_i64(k->stride[d], &stride) || stride < 0 || extent < 0)
            return false;
        if (!tx_mul_i64(extent, stride, &part) || !tx_add_i64(reach, part, &reach) || reach > INT32_MAX)
            return false;
    }
    return true;
}

/* Interval arithmetic over the sum: every partial product and sum stays inside int32. */
static bool
small_sum(tx_facts *f, const tx_buffer *b, const dims *k, const tx_node *const *idx)
{
    int64_t lo = 0, hi = 0;

    if (k->offset) {
        tx_bounds o = tx_bounds_of(f, k->offset);
        if (!fits32(o.lo, o.hi))
            return false;
        lo = o.lo;
        hi = o.hi;
    }
    for (int d = 0; d < b->rank; d++) {
        tx_bounds x = tx_bounds_of(f, idx[d]), s = tx_bounds_of(f, k->stride[d]);
        if (!fits32(x.lo, x.hi) || !fits32(s.lo, s.hi))
            return false;
        int64_t p[4] = {x.lo * s.lo, x.lo * s.hi, x.hi * s.lo, x.hi * s.hi}, least = p[0], most = p[0];
        for (int i = 1; i < 4; i++) {
            least = p[i] < least ? p[i] : least;
            most = p[i] > most ? p[i] : most;
        }
        if (!fits32(least, most) || !fits32(lo + least, hi + most))
            return false;
        lo += least;
        hi += most;
    }
    return true;
}

static bool
address_is_wide(const tx_node *e)
{
    return tx_bits(e->dtype) > 32 && e->op != TX_OP_INT;
}

static tx_dtype
index_dtype(tx_facts *f, const tx_buffer *b, const dims *k, const tx_node *const *idx)
{
    bool wide = k->offset && address_is_wide(k->offset);

    if (small_sum(f, b, k, idx))
        return TX_I32;
    for (int d = 0; d < b->rank; d++)
        wide |= address_is_wide(idx[d]) || address_is_wide(k->stride[d]);
    if (wide)
        return TX_I64;
    if (small_shape(b, k))
        return TX_I32;
    return b->rank == 1 && !k->offset && tx_is_const(k->stride[0], 1) && tx_kind(idx[0]->dtype) != TX_KIND_U32 ? TX_I32
                                                                                                               : TX_I64;
}

/* idx holds scalars, or vectors that are all broadcast to `lanes`. */
static const tx_node *
weighted_sum(tx_ctx *c, const tx_buffer *b, const dims *k, const tx_node *const *idx, tx_dtype t, unsigned lanes)
{
    tx_dtype vt = tx_with_lanes(t, lanes);
    const tx_node *sum = NULL, *term, *stride;

    for (int d = 0; d <= b->rank; d++) {
        if (d == b->rank) {
            if (!k->offset || tx_is_const(k->offset, 0))
                break;
            term = tx_cast(c, t, k->offset);
        } else {
            term = tx_cast(c, tx_with_lanes(t, tx_lanes(idx[d]->dtype)), idx[d]);
            if (term && !tx_is_const(k->stride[d], 1)) {
                stride = tx_cast(c, t, k->stride[d]);
                if (tx_lanes(term->dtype) > 1)
                    stride = tx_broadcast(c, stride, lanes);
                term = tx_binary(c, TX_OP_MUL, term, stride);
            }
        }
        if (!term)
            return NULL;
        if (lanes > 1 && tx_lanes(term->dtype) == 1)
            term = tx_broadcast(c, term, lanes);
        sum = sum ? tx_binary(c, TX_OP_ADD, sum, term) : term;
        if (!sum)
            return NULL;
    }
    return sum ? sum : tx_int(c, vt, 0);
}

static const tx_node *
address_flat_index(tx_ctx *c, tx_facts *f, const tx_buffer *b, const dims *k, const tx_node *const *idx)
{
    const tx_node *base[TX_MAX_RANK], *last = b->rank ? idx[b->rank - 1] : NULL, *sum, *step;
    unsigned lanes = last ? tx_lanes(last->dtype) : 1;
    bool plain = true;

    for (int d = 0; d + 1 < b->rank; d++)
        plain &= tx_lanes(idx[d]->dtype) == 1;
    if (lanes == 1 || !plain || last->op != TX_OP_RAMP) {
        for (int d = 0; d < b->rank; d++)
            lanes = tx_lanes(idx[d]->dtype) > lanes ? tx_lanes(idx[d]->dtype) : lanes;
        return weighted_sum(c, b, k, idx, lanes > 1 ? TX_I64 : index_dtype(f, b, k, idx), lanes);
    }
    memcpy(base, idx, sizeof *base * b->rank);
    base[b->rank - 1] = last->arg[0];
    sum = weighted_sum(c, b, k, base, index_dtype(f, b, k, base), 1);
    if (!sum)
        return NULL;
    step =
        tx_binary(c, TX_OP_MUL, tx_cast(c, sum->dtype, last->arg[1]), tx_cast(c, sum->dtype, k->stride[b->rank - 1]));
    return step ? tx_ramp(c, sum, step, lanes) : NULL;
}

static bool
in_range(tx_ctx *c, tx_facts *f, const tx_node *idx, const tx_node *extent)
{
    int64_t step;
    const tx_node *last;

    if (tx_lanes(idx->dtype) == 1)
        return tx_prove_in_range(f, idx, extent);
    if (idx->op == TX_OP_BROADCAST)
        return tx_prove_in_range(f, idx->arg[0], extent);
    if (idx->op != TX_OP_RAMP || !tx_const_i64(idx->arg[1], &step))
        return false;
    last =
        tx_binary(c, TX_OP_ADD, idx->arg[0], tx_int(c, idx->arg[0]->dtype, step * (int64_t)(tx_lanes(idx->dtype) - 1)));
    return last && tx_prove_in_range(f, idx->arg[0], extent) && tx_prove_in_range(f, last, extent);
}

/* LOAD (first 0) or STORE (first 1: the value): the same access with the element index first. */
static const tx_node *
flatten(tx_rewriter *r, const tx_node *n, uint32_t first)
{
    address *a = address_of(r);
    tx_facts *f = a->s.facts;
    const tx_buffer *b = n->u.buf;
    const tx_node *args[TX_MAX_RANK + 2], *flat, *out;
    tx_buffer *to;
    bool inside = true;
    dims k;

    if (!a->on_device || stays(b))
        return tx_rewrite_children(r, n);
    if (first && !(args[0] = tx_rewrite(r, n->arg[0])))
        return NULL;
    for (uint32_t d = first; d < n->nargs; d++)
        if (!(args[d + 1] = tx_rewrite(r, n->arg[d])))
            return NULL;
    if (TX_NEVER(n->nargs - first != b->rank))
        return tx_fail(r->c, n->span, TX_E_INTERNAL, "an access has another rank than its buffer");
    r->c->span = n->span;
    if (!address_dims_of(r->c, b, &k))
        return NULL;
    flat = address_flat_index(r->c, f, b, &k, args + first + 1);
    to = flat_of(r, n->u.buf);
    if (!flat || !to)
        return NULL;
    args[first] = flat;
    for (int d = 0; inside && d < b->rank; d++)
        inside = in_range(r->c, f, args[first + 1 + d], b->shape[d]);
    out = tx_make_at(r->c, n->span, n->op, n->dtype, (tx_payload){.buf = to}, args, n->nargs + 1);
    return out && inside ? tx_with_flags(r->c, out, out->flags | TX_NF_INBOUNDS) : out;
}

static const tx_node *
address_load(tx_rewriter *r, const tx_node *n)
{
    return flatten(r, n, 0);
}

static const tx_node *
address_store(tx_rewriter *r, const tx_node *n)
{
    return flatten(r, n, 1);
}

/* ---- declarations --------------------------------------------------------------------------------------------------- */

static const tx_node *
address_alloc(tx_rewriter *r, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    const tx_node *offset = tx_buffer_elem_offset(r->c, b);
    tx_buffer *flat;
    int64_t total = 1, extent;

    if (!address_of(r)->on_device)
        return n;
    if (b->scope == TX_GLOBAL)
        return tx_fail(r->c, n->span, TX_E_ALLOC_GLOBAL);
    for (int d = 0; d < b->rank; d++) {
        if (!tx_const_i64(b->shape[d], &extent))
            return tx_fail(r->c, n->span, TX_E_ALLOC_DYNAMIC, b->name->text, tx_expr_text(r->c, b->shape[d]));
        if (extent < 0 || (extent == 0 && b->scope != TX_SHARED_DYN))
            return tx_fail(r->c, n->span, TX_E_ALLOC_SIZE, b->name->text, (long long)extent);
        if (!tx_mul_i64(total, extent, &total) || total > INT32_MAX)
            return tx_fail(r->c, n->span, TX_E_BUFFER_TOO_LARGE, b->name->text);
    }
    flat = flat_of(r, n->u.buf);
    if (flat && offset && flat != b) { /* what lies before the first element is part of the storage */
        if (!tx_const_i64(offset, &extent) || extent < 0)
            return tx_fail(r->c, n->span, TX_E_ALLOC_DYNAMIC, b->name->text, tx_expr_text(r->c, offset));
        flat->shape[0] = tx_binary(r->c, TX_OP_ADD, span_of(r->c, b), tx_int(r->c, TX_I32, extent));
        if (!flat->shape[0])
            return NULL;
    }
    return with_buffer(r, n, flat, n->arg);
}

static const tx_node *
decl(tx_rewriter *r, const tx_node *n)
{
    const tx_node *data = tx_rewrite(r, n->arg[0]);

    if (!data)
        return NULL;
    return address_of(r)->on_device ? with_buffer(r, n, flat_of(r, n->u.buf), &data) : tx_with_args(r->c, n, &data);
}

static const tx_node *
buffer_data(tx_rewriter *r, const tx_node *n)
{
    tx_buffer *b;

    if (!address_of(r)->on_device)
        return n;
    b = flat_of(r, n->u.buf);
    if (!b || b == n->u.buf)
        return b ? n : NULL;
    r->c->span = n->span;
    return tx_buffer_data(r->c, b);
}

/* ---- statements ------------------------------------------------------------------------------------------------------ */

/* A bound that depends on memory is bound to a value before the loop. */
static const tx_node *
address_loop(tx_rewriter *r, const tx_node *n)
{
    static const char *const names[3] = {"start", "stop", "step"};
    const tx_node *all[4], *args[4] = {n->arg[0], n->arg[1], n->arg[2], n->arg[3]};
    uint32_t k = 0;
    tx_bounds step;

    for (int i = 0; i < 3; i++) {
        tx_var *v;
        if (!(n->arg[i]->flags & TX_NF_IMPURE))
            continue;
        r->c->span = n->span;
        v = tx_new_var(r->c, TX_VAR_LET, tx_intern_f(r->c, "%s_%s", n->u.loop->var->name->text, names[i]),
                       n->arg[i]->dtype);
        all[k] = tx_bind(r->c, v, n->arg[i]);
        if (!all[k++])
            return NULL;
        args[i] = v->node;
    }
    if (k > 0) {
        all[k] = tx_with_args(r->c, n, args);
        return all[k] ? tx_rewrite(r, tx_seq(r->c, all, k + 1)) : NULL;
    }
    step = tx_bounds_of(address_of(r)->s.facts, n->arg[2]);
    if (step.lo <= 0 && step.hi >= 0)
        return tx_is_const(n->arg[2], 0) ? tx_fail(r->c, n->span, TX_E_LOOP_STEP_ZERO)
                                         : tx_fail(r->c, n->span, TX_E_LOOP_STEP_SIGN, tx_expr_text(r->c, n->arg[2]));
    return tx_scoped_for(r, n);
}

static const tx_node *
address_device(tx_rewriter *r, const tx_node *n)
{
    address *a = address_of(r);
    const tx_node *args[TX_L__COUNT], *out;
    uint32_t mark = tx_facts_push(a->s.facts);

    memcpy(args, n->arg, sizeof args);
    tx_facts_launch(a->s.facts, args);
    a->on_device = true;
    args[TX_L_BODY] = tx_rewrite(r, n->arg[TX_L_BODY]);
    a->on_device = false;
    tx_facts_pop(a->s.facts, mark);
    out = args[TX_L_BODY] ? tx_with_args(r->c, n, args) : NULL;
    return out;
}

tx_func *
tx_address_func(tx_ctx *c, tx_func *f, const tx_target *t)
{
    address a = {.on_device = (f->flags & TX_FUNC_DEVICE) != 0};
    const tx_node *body = NULL;
    tx_span saved = c->span;

    (void)t;
    if (f->flags & TX_FUNC_KERNEL)
        return f;
    if (tx_scoped_init(&a.s, c)) {
        a.s.pass = &a;
        a.s.fn[TX_OP_LOAD] = address_load;
        a.s.fn[TX_OP_STORE] = address_store;
        a.s.fn[TX_OP_ALLOC] = address_alloc;
        a.s.fn[TX_OP_DECL] = decl;
        a.s.fn[TX_OP_BUFFER_DATA] = buffer_data;
        a.s.fn[TX_OP_FOR] = address_loop;
        a.s.fn[TX_OP_DEVICE] = address_device;
        tx_scoped_symbols(&a.s, f);
        body = tx_rewrite(&a.s.r, f->body);
    }
    tx_scoped_free(&a.s);
    tx_map_free(&a.flat);
    c->span = saved;
    return tx_func_with_body(c, f, body);
}
