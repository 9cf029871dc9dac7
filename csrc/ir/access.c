/* Construction of vectors, lets, loads, stores, pointers and coordinates, with the checks of language.md 6.4, 7.1, 9.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"

/* ---- vectors --------------------------------------------------------------------------------------------------- */

static bool
lanes_in_range(tx_ctx *c, uint64_t lanes)
{
    if (lanes >= 1 && lanes <= TX_MAX_LANES)
        return true;
    return tx_fail(c, c->span, TX_E_LANES_RANGE, TX_MAX_LANES, (int)lanes) != NULL;
}

static bool
is_scalar_value(tx_ctx *c, const tx_node *n)
{
    unsigned cls = tx_class(n->dtype);

    if (tx_lanes(n->dtype) != 1)
        return tx_fail(c, tx_place_of(c, n), TX_E_LANES_MISMATCH, tx_dtype_name(c, n->dtype),
                       tx_dtype_name(c, tx_scalar_of(n->dtype))) != NULL;
    if (cls == TX_CLS_V || cls == TX_CLS_P || cls == TX_CLS_O)
        return tx_fail(c, tx_place_of(c, n), TX_E_BAD_OPERAND, "vector", tx_dtype_name(c, n->dtype)) != NULL;
    return true;
}

const tx_node *
tx_ramp(tx_ctx *c, const tx_node *base, const tx_node *stride, unsigned lanes)
{
    const tx_node *args[2];

    if (!base || !stride || !(args[0] = tx_typed(c, base)) || !is_scalar_value(c, args[0]) || !lanes_in_range(c, lanes))
        return NULL;
    if (!tx_is_int(args[0]->dtype))
        return tx_fail(c, tx_place_of(c, base), TX_E_BAD_OPERAND, "T.Ramp", tx_dtype_name(c, args[0]->dtype));
    if (!(args[1] = tx_cast(c, args[0]->dtype, stride)) || !is_scalar_value(c, args[1]))
        return NULL;
    if (lanes == 1)
        return args[0];
    return tx_make(c, TX_OP_RAMP, tx_with_lanes(args[0]->dtype, lanes), (tx_payload){0}, args, 2);
}

const tx_node *
tx_broadcast(tx_ctx *c, const tx_node *value, unsigned lanes)
{
    if (!(value = tx_typed(c, value)) || !is_scalar_value(c, value) || !lanes_in_range(c, lanes))
        return NULL;
    if (lanes == 1)
        return value;
    return tx_make(c, TX_OP_BROADCAST, tx_with_lanes(value->dtype, lanes), (tx_payload){0}, &value, 1);
}

const tx_node *
tx_shuffle(tx_ctx *c, const tx_node *const *vecs, uint32_t nvecs, const int *idx, uint32_t nidx)
{
    tx_mark mark = tx_arena_mark(&c->scratch);
    const tx_node **args, *r = NULL;
    uint64_t total = 0;
    uint32_t i;

    if (nvecs == 0 || nvecs > TX_MAX_LANES || !lanes_in_range(c, nidx))
        return nvecs >= 1 && nvecs <= TX_MAX_LANES ? NULL
                                                   : tx_fail(c, c->span, TX_E_LANES_RANGE, TX_MAX_LANES, (int)nvecs);
    if (!(args = tx_scratch(c, const tx_node *, nvecs + nidx)))
        return NULL;
    for (i = 0; i < nvecs; i++) {
        if (!(args[i] = tx_typed(c, vecs[i])))
            goto out;
        if (tx_kind(args[i]->dtype) != tx_kind(args[0]->dtype)) {
            tx_fail(c, tx_place_of(c, args[i]), TX_E_BAD_OPERAND, "T.Shuffle", tx_dtype_name(c, args[i]->dtype));
            goto out;
        }
        total += tx_lanes(args[i]->dtype);
    }
    for (i = 0; i < nidx; i++) {
        if (idx[i] < 0 || (uint64_t)idx[i] >= total) {
            tx_fail(c, c->span, TX_E_SHUFFLE_INDEX, idx[i], (int)total - 1);
            goto out;
        }
        if (!(args[nvecs + i] = tx_int(c, TX_I32, idx[i])))
            goto out;
    }
    r = tx_make(c, TX_OP_SHUFFLE, tx_with_lanes(args[0]->dtype, nidx), (tx_payload){.i = nvecs}, args, nvecs + nidx);
out:
    tx_arena_release(&c->scratch, mark);
    return r;
}

const tx_node *
tx_let(tx_ctx *c, tx_var *v, const tx_node *value, const tx_node *body)
{
    const tx_node *args[2];

    if (!v || !value || !body || !(args[0] = tx_cast(c, v->dtype, value)) || !(args[1] = tx_typed(c, body)))
        return NULL;
    return tx_make(c, TX_OP_LET, args[1]->dtype, (tx_payload){.var = v}, args, 2);
}

/* ---- indices --------------------------------------------------------------------------------------------------- */

static bool
index_in_range(tx_ctx *c, const tx_buffer *b, uint32_t dim, const tx_node *idx, int64_t value)
{
    int64_t extent;
    bool known = tx_const_i64(b->shape[dim], &extent);

    if (value >= 0 && (!known || value < extent))
        return true;
    if (known)
        tx_fail_help(c, tx_place_of(c, idx), value < 0 ? tx_diag_help(TX_E_INDEX_NEGATIVE) : NULL, TX_E_INDEX_RANGE,
                     (long long)value, (long long)extent - 1, (int)dim, b->name->text);
    else
        tx_fail(c, tx_place_of(c, idx), TX_E_INDEX_NEGATIVE, (long long)value, (int)dim, b->name->text);
    return false;
}

/* One index: an integer, with constants inside the shape; of a ramp of constants both ends. */
static const tx_node *
check_index(tx_ctx *c, const tx_buffer *b, uint32_t dim, const tx_node *idx)
{
    int64_t first, stride, last;

    if (!(idx = tx_typed(c, idx)))
        return NULL;
    if (tx_is_bool(idx->dtype))
        return tx_fail(c, tx_place_of(c, idx), TX_E_INDEX_BOOL, (int)dim, b->name->text);
    if (!tx_is_int(idx->dtype) || tx_bits(idx->dtype) > 64)
        return tx_fail(c, tx_place_of(c, idx), TX_E_INDEX_NOT_INT, (int)dim, b->name->text,
                       tx_dtype_name(c, idx->dtype));
    if (tx_const_i64(idx, &first))
        return index_in_range(c, b, dim, idx, first) ? idx : NULL;
    if (idx->op == TX_OP_RAMP && tx_const_i64(idx->arg[0], &first) && tx_const_i64(idx->arg[1], &stride) &&
        tx_mul_i64(stride, tx_lanes(idx->dtype) - 1, &last) && tx_add_i64(first, last, &last))
        return index_in_range(c, b, dim, idx, first) && index_in_range(c, b, dim, idx, last) ? idx : NULL;
    return idx;
}

/* Checks the indices of an access into out and gives the dtype of the element or vector; VOID after an error. */
static tx_dtype
check_indices(tx_ctx *c, const tx_buffer *b, const tx_node *const *idx, uint32_t nidx, const tx_node **out)
{
    unsigned lanes = 1;

    if (!(b->flags & TX_BUF_FLAT) && nidx != b->rank) {
        tx_fail(c, c->span, TX_E_RANK_MISMATCH, b->name->text, (int)b->rank, (int)nidx);
        return TX_VOID;
    }
    for (uint32_t i = 0; i < nidx; i++) {
        unsigned n;

        if (!idx[i] || !(out[i] = b->flags & TX_BUF_FLAT ? idx[i] : check_index(c, b, i, idx[i])))
            return TX_VOID;
        n = tx_lanes(out[i]->dtype);
        if (n > 1 && lanes > 1 && n != lanes) {
            tx_fail(c, c->span, TX_E_LANES_MISMATCH, tx_dtype_name(c, tx_with_lanes(TX_I32, lanes)),
                    tx_dtype_name(c, out[i]->dtype));
            return TX_VOID;
        }
        lanes = n > lanes ? n : lanes;
    }
    if (!lanes_in_range(c, (uint64_t)lanes * tx_lanes(b->dtype)))
        return TX_VOID;
    return tx_with_lanes(b->dtype, lanes * tx_lanes(b->dtype));
}

const tx_node *
tx_load(tx_ctx *c, tx_buffer *b, const tx_node *const *idx, uint32_t nidx)
{
    tx_mark mark = tx_arena_mark(&c->scratch);
    const tx_node **own, *r = NULL;
    tx_dtype t;

    if (!b || !(own = tx_scratch(c, const tx_node *, nidx)))
        return NULL;
    if ((t = check_indices(c, b, idx, nidx, own)) != TX_VOID)
        r = tx_make(c, TX_OP_LOAD, t, (tx_payload){.buf = b}, own, nidx);
    tx_arena_release(&c->scratch, mark);
    return r;
}

/* The value as it will be stored: cast to the element type, a scalar spread over a vector (language.md 6.4). */
static const tx_node *
value_to_store(tx_ctx *c, tx_dtype t, const tx_node *value)
{
    tx_dtype from = value->dtype;
    bool weak = (value->flags & TX_NF_WEAK) != 0;

    if (tx_lanes(from) != 1 && tx_lanes(from) != tx_lanes(t))
        return tx_fail(c, c->span, TX_E_STORE_LANES, tx_dtype_name(c, t), tx_dtype_name(c, from));
    if (tx_is_float(from) && (tx_is_int(t) || tx_is_bool(t)) &&
        !(value->op == TX_OP_FLOAT && (double)tx_float_to_int(t, value->u.f) == value->u.f))
        tx_warn(c, tx_place_of(c, value), TX_E_STORE_PRECISION, tx_dtype_name(c, from), tx_dtype_name(c, t));
    if (weak && value->op == TX_OP_INT && tx_is_int(t)) { /* a literal must fit */
        tx_span span = c->span;
        const tx_node *r;

        c->span = tx_place_of(c, value);
        r = tx_literal_int(c, t, value->u.i < 0, value->u.i < 0 ? 0 - (uint64_t)value->u.i : (uint64_t)value->u.i);
        c->span = span;
        return r;
    }
    return tx_cast(c, t, value);
}

const tx_node *
tx_store(tx_ctx *c, tx_buffer *b, const tx_node *const *idx, uint32_t nidx, const tx_node *value)
{
    tx_mark mark = tx_arena_mark(&c->scratch);
    const tx_node **args, *r = NULL;
    tx_dtype t;

    if (!b || !value || !(args = tx_scratch(c, const tx_node *, nidx + 1)))
        return NULL;
    if ((t = check_indices(c, b, idx, nidx, args + 1)) != TX_VOID && (args[0] = value_to_store(c, t, value)))
        r = tx_make(c, TX_OP_STORE, TX_VOID, (tx_payload){.buf = b}, args, nidx + 1);
    tx_arena_release(&c->scratch, mark);
    return r;
}

/* ---- pointers and coordinates ---------------------------------------------------------------------------------- */

const tx_node *
tx_address_of(tx_ctx *c, const tx_node *load)
{
    if (!load)
        return NULL;
    if (load->op == TX_OP_VAR && tx_is_handle(load->dtype) && tx_kind(load->elem) == TX_KIND_TENSORMAP)
        return load; /* the name of a tensor map is its address already */
    if (load->op != TX_OP_LOAD && !(load->op == TX_OP_VAR && tx_class(load->dtype) == TX_CLS_O))
        return tx_fail(c, tx_place_of(c, load), TX_E_NOT_A_LOAD, tx_dtype_name(c, load->dtype));
    return tx_make(c, TX_OP_ADDRESS_OF, TX_HANDLE, (tx_payload){0}, &load, 1);
}

const tx_node *
tx_buffer_data(tx_ctx *c, tx_buffer *b)
{
    return b ? tx_make(c, TX_OP_BUFFER_DATA, TX_HANDLE, (tx_payload){.buf = b}, NULL, 0) : NULL;
}

const tx_node *
tx_ptr_offset(tx_ctx *c, const tx_node *ptr, const tx_node *nbytes, tx_dtype elem)
{
    const tx_node *args[] = {ptr, tx_typed(c, nbytes)};

    if (!args[0] || !args[1])
        return NULL;
    if (!tx_is_handle(ptr->dtype))
        return tx_fail(c, tx_place_of(c, ptr), TX_E_NOT_A_POINTER, tx_dtype_name(c, ptr->dtype));
    if (!tx_is_int(args[1]->dtype))
        return tx_fail(c, tx_place_of(c, args[1]), TX_E_BAD_OPERAND, "T.ptr_byte_offset",
                       tx_dtype_name(c, args[1]->dtype));
    return tx_make_pointer(c, TX_OP_PTR_OFFSET, elem, (tx_scope)ptr->scope, (tx_payload){0}, args, 2);
}

const tx_node *
tx_coord(tx_ctx *c, unsigned op, int axis)
{
    if (tx_has(op, TX_PROP_COORD) && (axis < 0 || axis > 2))
        return tx_fail(c, c->span, TX_E_AXIS);
    return tx_make(c, op, TX_I32, (tx_payload){.i = tx_has(op, TX_PROP_COORD) ? axis : 0}, NULL, 0);
}
