/* Buffer and Region: tensors, arrays, views and cells as Python sees them. A Buffer of one element acts as a number,
 * and a Region of one row as a vector: the operators of expr.c load them.
 *
 * One Buffer object exists for a tx_buffer as long as it is alive (the context's wrapper map), so identity means
 * what users expect. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

static void pybuf_dealloc(PyObject *self);

bool
tx_py_is_buffer(PyObject *x)
{
    return PyType_GetSlot(Py_TYPE(x), Py_tp_dealloc) == (void *)pybuf_dealloc;
}

PyObject *
tx_py_new_buffer(tx_py_context *ctx, tx_buffer *b)
{
    PyObject *known = tx_py_find_wrapper(ctx, b);

    if (known)
        return known;
    tx_py_buffer *self = (tx_py_buffer *)PyType_GenericAlloc(ctx->state->Buffer, 0);
    if (!self)
        return NULL;
    self->ctx = TX_PY_HOLD(ctx);
    self->buf = b;
    self->layout = Py_NewRef((b->flags & TX_BUF_NO_LAYOUT) ? Py_None : ctx->state->s_default);
    if (!tx_py_keep_wrapper(ctx, b, (PyObject *)self)) {
        TX_PY_DROP(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
pybuf_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((tx_py_buffer *)self)->layout);
    return 0;
}

static int
pybuf_clear(PyObject *self)
{
    Py_CLEAR(((tx_py_buffer *)self)->layout);
    return 0;
}

static void
pybuf_dealloc(PyObject *self)
{
    tx_py_buffer *b = (tx_py_buffer *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (b->ctx && tx_map_ptr(&b->ctx->wrappers, b->buf) == self)
        tx_py_keep_wrapper(b->ctx, b->buf, NULL);
    Py_XDECREF(b->layout);
    TX_PY_DROP(b->ctx);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

/* "(n, 4)", "(4,)" */
static const char *
shape_text(tx_py_context *ctx, const tx_buffer *b)
{
    tx_sb sb = {0};
    const tx_str *s = NULL;

    tx_sb_putc(&sb, '(');
    for (unsigned i = 0; i < b->rank; i++) {
        tx_sb_puts(&sb, i ? ", " : "");
        tx_print_node(b->shape[i], &sb);
    }
    tx_sb_puts(&sb, b->rank == 1 ? ",)" : ")");
    if (!sb.failed)
        s = tx_intern(ctx->c, sb.text, sb.n);
    tx_sb_free(&sb);
    return s ? s->text : "?";
}

static const char *
zeros_text(tx_py_context *ctx, unsigned rank)
{
    char text[3 * TX_MAX_RANK + 1] = "";
    size_t n = 0;

    for (unsigned i = 0; i < rank && i < TX_MAX_RANK; i++, n += i < rank ? 3 : 1)
        memcpy(text + n, i + 1 < rank ? "0, " : "0", i + 1 < rank ? 4 : 2);
    const tx_str *s = tx_intern_z(ctx->c, text);
    return s ? s->text : "0";
}

static bool
has_one_element(const tx_buffer *b)
{
    for (unsigned i = 0; i < b->rank; i++)
        if (!tx_is_const(b->shape[i], 1))
            return false;
    return true;
}

const tx_node *
tx_py_load_scalar(tx_py_buffer *self)
{
    tx_py_context *ctx = self->ctx;
    const tx_buffer *b = self->buf;
    const tx_node *idx[TX_MAX_RANK], *zero, *n;

    if (!has_one_element(b))
        return tx_py_fail(ctx, TX_E_BUFFER_AS_VALUE, b->name->text, shape_text(ctx, b), b->name->text,
                          zeros_text(ctx, b->rank));
    zero = tx_int(ctx->c, TX_I32, 0);
    for (unsigned i = 0; i < b->rank; i++)
        idx[i] = zero;
    n = zero ? tx_load(ctx->c, self->buf, idx, b->rank) : NULL;
    return n ? n : tx_py_raise(ctx);
}

/* ---- subscripts -------------------------------------------------------------------------------------------------- */

/* n = x + c1 + c2...: x, and the sum of the constants in *c. */
static const tx_node *
split_constant(const tx_node *n, int64_t *c)
{
    *c = 0;
    for (int64_t k; n->op == TX_OP_ADD; *c += k) {
        bool right = tx_const_i64(n->arg[1], &k);
        if (!right && !tx_const_i64(n->arg[0], &k))
            break;
        if (k != (int32_t)k || *c != (int32_t)*c) /* far from any overflow */
            break;
        n = n->arg[right ? 0 : 1];
    }
    return n;
}

/* Evaluating it twice gives the same value and does nothing else. */
static bool
only_reads(const tx_node *n)
{
    if (!(n->flags & TX_NF_IMPURE))
        return true;
    if (tx_has(n->op, TX_PROP_EFFECT))
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && !only_reads(n->arg[i]))
            return false;
    return true;
}

/* stop - start, as a constant node where that can be seen. */
const tx_node *
tx_py_distance(tx_ctx *c, const tx_node *start, const tx_node *stop)
{
    int64_t a, b;
    const tx_node *n, *x = split_constant(start, &a), *y = split_constant(stop, &b);

    if (tx_is_const(start, 0))
        return stop;
    /* both are evaluated at the same time, so equal loads give equal values */
    if (x == y || tx_equal_nodes(x, y))
        return tx_int(c, stop->dtype, b - a);
    n = tx_binary(c, TX_OP_SUB, stop, start);
    if (!n || n->op == TX_OP_INT)
        return n;
    tx_facts *f = tx_facts_new(c);
    n = f ? tx_simplify(f, n) : NULL;
    if (f)
        tx_facts_free(f);
    return n;
}

/* start and extent of a slice of dimension i, which is `end` long; *step is 1 where none was written, *has_step says
 * whether one was. */
bool
tx_py_slice_bounds(tx_py_context *ctx, tx_buffer *b, unsigned i, PyObject *slice, const tx_node *end,
                   const tx_node **start, const tx_node **extent, int64_t *step, bool *has_step)
{
    const tx_py_state *s = ctx->state;
    PyObject *from = PyObject_GetAttr(slice, s->s_start), *to = PyObject_GetAttr(slice, s->s_stop),
             *by = PyObject_GetAttr(slice, s->s_step);
    const tx_node *stop = NULL, *n = NULL;
    bool ok = false;

    *step = 1;
    if (!from || !to || !by)
        goto out;
    *start = from == Py_None ? tx_int(ctx->c, TX_I32, 0) : tx_py_as_index(ctx, from);
    stop = !*start ? NULL : to == Py_None ? end : tx_py_as_index(ctx, to);
    *has_step = by != Py_None;
    if (!*start || !stop)
        goto out;
    if (*has_step) {
        n = tx_py_as_index(ctx, by);
        if (!n)
            goto out;
        if (!tx_const_i64(n, step) || *step < 1) {
            tx_fail(ctx->c, ctx->c->span, TX_E_SLICE_STEP);
            goto out;
        }
    }
    if (!tx_is_int((*start)->dtype) || !tx_is_int(stop->dtype)) {
        const tx_node *bad = tx_is_int((*start)->dtype) ? stop : *start;
        tx_fail(ctx->c, ctx->c->span, TX_E_INDEX_NOT_INT, (int)i, b->name->text, tx_dtype_name(ctx->c, bad->dtype));
        goto out;
    }
    if (!only_reads(*start) || !only_reads(stop)) { /* the bounds are used more than once */
        tx_fail(ctx->c, ctx->c->span, TX_E_SLICE_LENGTH, (int)i, b->name->text);
        goto out;
    }
    *extent = tx_py_distance(ctx->c, *start, stop);
    ok = *extent != NULL;
out:
    Py_XDECREF(from);
    Py_XDECREF(to);
    Py_XDECREF(by);
    if (!ok)
        tx_py_raise(ctx);
    return ok;
}

/* The index of a vector access: lanes elements from start. NULL: raised. */
const tx_node *
tx_py_vector_index(tx_py_context *ctx, const tx_buffer *b, unsigned i, const tx_node *start, const tx_node *extent,
                   int64_t step)
{
    int64_t length;

    if (!tx_const_i64(extent, &length))
        return tx_py_fail(ctx, TX_E_SLICE_LENGTH, (int)i, b->name->text);
    length = (length + (length > 0 ? step - 1 : 0)) / step;
    if (length < 1 || length > TX_MAX_LANES)
        return tx_py_fail(ctx, TX_E_SLICE_LANES, (long long)length, b->name->text, TX_MAX_LANES);
    if (length == 1)
        return start;
    const tx_node *by = tx_int(ctx->c, start->dtype, step),
                  *n = by ? tx_ramp(ctx->c, start, by, (unsigned)length) : NULL;
    return n ? n : tx_py_raise(ctx);
}

int
tx_py_subscript(tx_py_context *ctx, tx_buffer *b, PyObject *indices, bool store, const tx_node ***start,
                const tx_node ***extent, uint32_t *kept, int64_t *last_step)
{
    bool tuple = PyTuple_Check(indices), has_step = false, is_last_slice = false;
    Py_ssize_t n = tuple ? PyTuple_Size(indices) : 1;
    const tx_node **at, **len;
    unsigned nslices = 0;
    int64_t step = 1;

    *start = at = tx_new(ctx->c, const tx_node *, 2 * (b->rank + 1u));
    if (!at)
        return tx_py_raise(ctx), -1;
    *extent = len = at + b->rank + 1;
    *kept = 0;
    if (n > b->rank || (store && n < b->rank))
        return tx_py_fail(ctx, TX_E_RANK_MISMATCH, b->name->text, (int)b->rank, (int)n), -1;
    for (unsigned i = 0; i < n; i++) {
        PyObject *x = tuple ? PyTuple_GetItem(indices, i) : indices;
        if (PySlice_Check(x)) {
            int64_t by;
            bool stepped;
            if (!tx_py_slice_bounds(ctx, b, i, x, b->shape[i], &at[i], &len[i], &by, &stepped))
                return -1;
            is_last_slice = i + 1u == b->rank;
            if (by != 1 && !is_last_slice)
                return tx_py_fail(ctx, TX_E_SLICE_STEP), -1;
            if (is_last_slice) {
                step = by;
                has_step = stepped;
            }
            nslices++;
            *kept |= 1u << i;
        } else if (!(at[i] = tx_py_as_index(ctx, x)) || !(len[i] = tx_int(ctx->c, TX_I32, 1))) {
            return tx_py_raise(ctx), -1;
        }
    }
    if (n == b->rank && nslices == 0)
        return 1;
    *last_step = step;
    if (n == b->rank && nslices == 1 && is_last_slice && (store || has_step)) {
        int64_t length;
        if (step != 1 && !store)
            return tx_py_fail(ctx, TX_E_SLICE_STEP), -1;
        if (store && (!tx_const_i64(len[b->rank - 1], &length) || (length + step - 1) / step > TX_MAX_LANES))
            return 0; /* longer than a vector */
        at[b->rank - 1] = tx_py_vector_index(ctx, b, b->rank - 1u, at[b->rank - 1], len[b->rank - 1], step);
        return at[b->rank - 1] ? 1 : -1;
    }
    for (unsigned i = (unsigned)n; i < b->rank; i++) {
        if (!(at[i] = tx_int(ctx->c, b->shape[i]->dtype, 0)))
            return tx_py_raise(ctx), -1;
        len[i] = b->shape[i];
        *kept |= 1u << i;
    }
    return 0;
}

static PyObject *
pybuf_subscript(PyObject *self, PyObject *indices)
{
    tx_py_buffer *b = (tx_py_buffer *)self;
    const tx_node **start, **extent;
    uint32_t kept;
    int64_t step;

    tx_py_here(b->ctx);
    int r = tx_py_subscript(b->ctx, b->buf, indices, false, &start, &extent, &kept, &step);
    if (r < 0)
        return NULL;
    return r ? tx_py_new_expr(b->ctx, tx_load(b->ctx->c, b->buf, start, b->buf->rank))
             : tx_py_new_region(b, start, extent, kept);
}

static int
pybuf_ass_subscript(PyObject *self, PyObject *indices, PyObject *value)
{
    tx_py_buffer *b = (tx_py_buffer *)self;
    tx_py_builder *builder = tx_py_current(b->ctx->state);

    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a buffer cannot be deleted");
        return -1;
    }
    if (!builder) {
        if (b->ctx->frozen)
            b->ctx->c->span = 0; /* the place where building ended says nothing */
        return tx_py_fail(b->ctx, TX_E_NO_BUILDER), -1;
    }
    tx_py_here(builder->ctx);
    if (builder->ctx != b->ctx)
        return tx_py_fail(builder->ctx, TX_E_OTHER_CONTEXT, b->buf->name->text), -1;
    return tx_py_store(builder, b->buf, indices, value) ? 0 : -1;
}

static PyObject *
pybuf_load(PyObject *self, PyObject *args)
{
    tx_py_buffer *b = (tx_py_buffer *)self;
    const tx_node **idx;
    uint32_t n;

    tx_py_here(b->ctx);
    if (!tx_py_as_nodes(b->ctx, args, &idx, &n))
        return NULL;
    return tx_py_new_expr(b->ctx, tx_load(b->ctx->c, b->buf, idx, n));
}

static PyObject *
pybuf_ptr_to(PyObject *self, PyObject *indices)
{
    tx_py_buffer *b = (tx_py_buffer *)self;
    const tx_node **idx;
    uint32_t n;

    tx_py_here(b->ctx);
    if (!tx_py_as_nodes(b->ctx, indices, &idx, &n))
        return NULL;
    const tx_node *load = tx_load(b->ctx->c, b->buf, idx, n);
    return tx_py_new_expr(b->ctx, load ? tx_address_of(b->ctx->c, load) : NULL);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

#define BUF(self) (((tx_py_buffer *)(self))->buf)
#define BCTX(self) (((tx_py_buffer *)(self))->ctx)

PyObject *
tx_py_tuple_of(tx_py_context *ctx, const tx_node *const *at, uint32_t n)
{
    PyObject *t = PyTuple_New((Py_ssize_t)n);

    for (uint32_t i = 0; t && i < n; i++) {
        PyObject *x = tx_py_int_or_expr(ctx, at[i]);
        if (!x || PyTuple_SetItem(t, (Py_ssize_t)i, x) < 0)
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *
pybuf_get_ctx(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(BCTX(self));
}

static PyObject *
pybuf_get_name(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_str(BUF(self)->name);
}

static PyObject *
pybuf_get_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_dtype_str(BCTX(self)->state, BUF(self)->dtype);
}

static PyObject *
pybuf_get_shape(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_tuple_of(BCTX(self), BUF(self)->shape, BUF(self)->rank);
}

static PyObject *
pybuf_get_given_strides(PyObject *self, void *Py_UNUSED(closure))
{
    return BUF(self)->strides ? tx_py_tuple_of(BCTX(self), BUF(self)->strides, BUF(self)->rank) : Py_NewRef(Py_None);
}

/* Those of a dense buffer are products of its extents. */
static PyObject *
pybuf_get_strides(PyObject *self, void *Py_UNUSED(closure))
{
    tx_py_context *ctx = BCTX(self);
    const tx_buffer *b = BUF(self);
    const tx_node *dense[TX_MAX_RANK], *n;

    if (b->strides)
        return tx_py_tuple_of(ctx, b->strides, b->rank);
    for (uint32_t i = b->rank; i-- > 0;) {
        n = i + 1 == b->rank ? tx_int(ctx->c, b->shape[i]->dtype, 1)
                             : tx_binary(ctx->c, TX_OP_MUL, dense[i + 1], b->shape[i + 1]);
        if (!(dense[i] = n))
            return tx_py_raise(ctx);
    }
    return tx_py_tuple_of(ctx, dense, b->rank);
}

/* Where the other kind of offset was given, it is found from that. */
static PyObject *
pybuf_get_elem_offset(PyObject *self, void *Py_UNUSED(closure))
{
    tx_py_context *ctx = BCTX(self);
    const tx_node *n = tx_buffer_elem_offset(ctx->c, BUF(self));

    if (!n && BUF(self)->byte_offset)
        return tx_py_raise(ctx);
    return tx_py_int_or_expr(ctx, n);
}

static PyObject *
pybuf_get_byte_offset(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_buffer *b = BUF(self);
    tx_ctx *c = BCTX(self)->c;
    const tx_node *n = b->byte_offset;

    if (!n && b->elem_offset) {
        bool nibbles = tx_bits(b->dtype) == 4 && tx_lanes(b->dtype) == 1;
        n = tx_cast(c, TX_I64, b->elem_offset);
        n = nibbles ? tx_binary(c, TX_OP_FLOORDIV, n, tx_int(c, TX_I64, 2))
                    : tx_binary(c, TX_OP_MUL, n, tx_int(c, TX_I64, tx_dtype_bytes(b->dtype)));
        if (!n)
            return tx_py_raise(BCTX(self));
    }
    return tx_py_int_or_expr(BCTX(self), n);
}

static PyObject *
pybuf_get_start(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_new_expr(BCTX(self), tx_buffer_start(BCTX(self)->c, BUF(self)));
}

static PyObject *
pybuf_get_data(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_new_expr(BCTX(self), tx_buffer_data(BCTX(self)->c, BUF(self)));
}

static PyObject *
pybuf_get_align(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(BUF(self)->align);
}

static PyObject *
pybuf_get_offset_factor(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(BUF(self)->offset_factor ? BUF(self)->offset_factor : 1);
}

static PyObject *
pybuf_get_is_cell(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(BUF(self)->flags & TX_BUF_CELL);
}

static PyObject *
pybuf_get_flags(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(BUF(self)->flags);
}

static PyObject *
pybuf_get_origin(PyObject *self, void *Py_UNUSED(closure))
{
    return BUF(self)->origin ? tx_py_new_buffer(BCTX(self), BUF(self)->origin) : Py_NewRef(Py_None);
}

static PyObject *
pybuf_get_self(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self);
}

static PyObject *
pybuf_get_layout(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((tx_py_buffer *)self)->layout);
}

static int
pybuf_set_layout(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    PyObject *old = ((tx_py_buffer *)self)->layout;

    ((tx_py_buffer *)self)->layout = Py_NewRef(value ? value : Py_None);
    Py_XDECREF(old);
    return 0;
}

static PyObject *
pybuf_get_allocated_addr(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_node *n = BUF(self)->allocated_addr;
    PyObject *list = PyList_New(0), *x = list && n ? tx_py_int_or_expr(BCTX(self), n) : NULL;

    if (list && n && (!x || PyList_Append(list, x) < 0))
        Py_CLEAR(list);
    Py_XDECREF(x);
    return list;
}

static PyObject *
pybuf_scope(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyUnicode_FromString(tx_scope_name((tx_scope)BUF(self)->scope));
}

static PyObject *
pybuf_repr(PyObject *self)
{
    PyObject *dtype = pybuf_get_dtype(self, NULL), *r = NULL;

    if (dtype)
        r = PyUnicode_FromFormat("Buffer(%s: %s, %U, %s)", BUF(self)->name->text, shape_text(BCTX(self), BUF(self)),
                                 dtype, tx_scope_name((tx_scope)BUF(self)->scope));
    Py_XDECREF(dtype);
    return r;
}

static PyMethodDef pybuf_methods[] = {
    {"scope", pybuf_scope, METH_NOARGS, "memory space"},
    {"load", pybuf_load, METH_VARARGS, "the element at indices"},
    {"ptr_to", pybuf_ptr_to, METH_O, "pointer to the element at indices"},
    {"__round__", TX_PY_FAST(tx_py_round), METH_FASTCALL, "nearest integer of the one element, ties to even"},
    {0},
};

static PyGetSetDef pybuf_getset[] = {
    {"ctx", pybuf_get_ctx, NULL, "the Context that it belongs to", NULL},
    {"name", pybuf_get_name, NULL, "its name", NULL},
    {"dtype", pybuf_get_dtype, NULL, "dtype of an element", NULL},
    {"shape", pybuf_get_shape, NULL, "extents: int where constant, else Expr", NULL},
    {"strides", pybuf_get_strides, NULL, "strides in elements, computed for dense row-major", NULL},
    {"given_strides", pybuf_get_given_strides, NULL, "strides that were given, or None for dense row-major", NULL},
    {"elem_offset", pybuf_get_elem_offset, NULL, "offset of the first element, in elements", NULL},
    {"byte_offset", pybuf_get_byte_offset, NULL, "offset of the first element, in bytes", NULL},
    {"data", pybuf_get_data, NULL, "base pointer", NULL},
    {"start", pybuf_get_start, NULL, "pointer to the first element: `data`, moved by the buffer's offset", NULL},
    {"align", pybuf_get_align, NULL, "alignment in bytes, 0 not said", NULL},
    {"data_alignment", pybuf_get_align, NULL, "alignment in bytes, 0 not said", NULL},
    {"offset_factor", pybuf_get_offset_factor, NULL, "what the offset is a multiple of", NULL},
    {"is_cell", pybuf_get_is_cell, NULL, "True for a mutable scalar", NULL},
    {"flags", pybuf_get_flags, NULL, "enum tx_buffer_flag", NULL},
    {"origin", pybuf_get_origin, NULL, "views: the buffer viewed, or None", NULL},
    {"value", pybuf_get_self, NULL, "the buffer itself", NULL},
    {"buffer", pybuf_get_self, NULL, "the buffer itself", NULL},
    {"layout", pybuf_get_layout, pybuf_set_layout, "\"default\", None or a layout", NULL},
    {"allocated_addr", pybuf_get_allocated_addr, NULL, "list with the tensor memory column, where given", NULL},
    {0},
};

static PyType_Slot pybuf_slots[] = {
    TX_PY_NUMBER_TABLE,
    {Py_tp_dealloc, pybuf_dealloc},
    {Py_tp_traverse, pybuf_traverse},
    {Py_tp_clear, pybuf_clear},
    {Py_tp_repr, pybuf_repr},
    {Py_tp_methods, pybuf_methods},
    {Py_tp_getset, pybuf_getset},
    {Py_mp_subscript, pybuf_subscript},
    {Py_mp_ass_subscript, pybuf_ass_subscript},
    {Py_tp_doc, "A tensor, array, view or cell. With one element it also acts as a number."},
    {0, NULL},
};

static PyType_Spec pybuf_spec = {"tirx.Buffer", sizeof(tx_py_buffer), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 pybuf_slots};

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool
checked_extents(tx_py_context *ctx, const tx_str *name, const tx_node *const *shape, uint32_t rank)
{
    int64_t v, nelem = 1;

    if (rank > TX_MAX_RANK)
        tx_fail(ctx->c, ctx->c->span, TX_E_RANK_LIMIT, name->text, (int)rank, TX_MAX_RANK);
    for (uint32_t i = 0; i < rank && rank <= TX_MAX_RANK; i++) {
        if (!tx_is_int(shape[i]->dtype) || tx_lanes(shape[i]->dtype) != 1) {
            tx_fail(ctx->c, ctx->c->span, TX_E_EXTENT_NOT_INT, (int)i, tx_dtype_name(ctx->c, shape[i]->dtype));
            break;
        }
        if (tx_const_i64(shape[i], &v) && v < 0) {
            tx_fail(ctx->c, ctx->c->span, TX_E_EXTENT_NEGATIVE, (int)i, (long long)v);
            break;
        }
        if (tx_const_i64(shape[i], &v) && v > 0 && (!tx_mul_i64(nelem, v, &nelem) || nelem > TX_MAX_ELEMENTS)) {
            tx_fail(ctx->c, ctx->c->span, TX_E_BUFFER_TOO_LARGE, name->text);
            break;
        }
    }
    if (ctx->c->nerrors)
        tx_py_raise(ctx);
    return !PyErr_Occurred();
}

/* The variable that holds the pointer of a view: that of the buffer or pointer viewed, or NULL for a fresh one. */
static tx_var *
viewed_var(const tx_node *data, tx_buffer **origin)
{
    *origin = NULL;
    if (data && data->op == TX_OP_BUFFER_DATA) {
        *origin = data->u.buf;
        return data->u.buf->data;
    }
    return data && data->op == TX_OP_VAR && tx_is_handle(data->dtype) ? data->u.var : NULL;
}

enum {
    B_CTX,
    B_NAME,
    B_SHAPE,
    B_DTYPE,
    B_SCOPE,
    B_DATA,
    B_STRIDES,
    B_ELEM_OFFSET,
    B_BYTE_OFFSET,
    B_ALIGN,
    B_OFFSET_FACTOR,
    B_LAYOUT,
    B_ALLOCATED_ADDR,
    B_ANNOTATIONS,
    B_FLAGS
};

static bool
fill_optional(tx_py_context *ctx, tx_buffer *b, PyObject *const *a)
{
    const tx_node **strides;
    uint32_t n;
    long v;

    if (TX_PY_GIVEN(a[B_STRIDES])) {
        if (!tx_py_as_nodes(ctx, a[B_STRIDES], &strides, &n))
            return false;
        if (n != b->rank && n != 0)
            return tx_py_fail(ctx, TX_E_RANK_MISMATCH, b->name->text, (int)b->rank, (int)n), false;
        b->strides = n ? strides : NULL;
    }
    if (TX_PY_GIVEN(a[B_ELEM_OFFSET]) && TX_PY_GIVEN(a[B_BYTE_OFFSET]))
        return tx_py_fail(ctx, TX_E_BOTH_OFFSETS), false;
    if (TX_PY_GIVEN(a[B_ELEM_OFFSET]) && !(b->elem_offset = tx_py_as_typed(ctx, a[B_ELEM_OFFSET])))
        return false;
    if (TX_PY_GIVEN(a[B_BYTE_OFFSET]) && !(b->byte_offset = tx_py_as_typed(ctx, a[B_BYTE_OFFSET])))
        return false;
    if (TX_PY_GIVEN(a[B_ALIGN])) {
        if (!tx_py_as_long(a[B_ALIGN], -1, 1 << 30, "align", &v))
            return false;
        if (v > 0 && (v & (v - 1)) != 0) {
            PyErr_Format(PyExc_ValueError, "align must be a power of two, got %ld", v);
            return false;
        }
        b->align = v > 0 ? v : 0;
        b->flags |= v > 0 ? TX_BUF_ALIGNED : 0;
    }
    b->offset_factor = 1;
    if (TX_PY_GIVEN(a[B_OFFSET_FACTOR])) {
        if (!tx_py_as_long(a[B_OFFSET_FACTOR], 0, 1 << 30, "offset_factor", &v))
            return false;
        b->offset_factor = v > 0 ? (int32_t)v : 1;
    }
    if (TX_PY_GIVEN(a[B_ALLOCATED_ADDR]) && !(b->allocated_addr = tx_py_as_typed(ctx, a[B_ALLOCATED_ADDR])))
        return false;
    return true;
}

static PyObject *
pycall_buffer(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const tx_py_sig sig = {"buffer",
                                  3,
                                  5,
                                  {"ctx", "name", "shape", "dtype", "scope", "data", "strides", "elem_offset",
                                   "byte_offset", "align", "offset_factor", "layout", "allocated_addr", "annotations",
                                   "flags", NULL}};
    PyObject *a[20];
    const tx_node **shape, *data = NULL;
    tx_dtype t = TX_F32;
    tx_scope scope = TX_GLOBAL;
    tx_py_context *ctx;
    tx_buffer *origin;
    uint32_t rank;
    const char *text;
    long flags = 0;

    if (!tx_py_parse(&sig, args, nargs, kwnames, a) || !(ctx = tx_py_as_context(tx_py_state_of(module), a[B_CTX])))
        return NULL;
    const tx_str *name = tx_py_intern(ctx, a[B_NAME]);
    if (!name || (TX_PY_GIVEN(a[B_DTYPE]) && !tx_py_as_dtype(ctx, a[B_DTYPE], &t)) ||
        (TX_PY_GIVEN(a[B_DATA]) && !(data = tx_py_as_typed(ctx, a[B_DATA]))) ||
        (TX_PY_GIVEN(a[B_FLAGS]) && !tx_py_as_long(a[B_FLAGS], 0, UINT16_MAX, "flags", &flags)))
        return NULL;
    if (TX_PY_GIVEN(a[B_SCOPE])) {
        if (!(text = PyUnicode_AsUTF8AndSize(a[B_SCOPE], NULL)))
            return NULL;
        if (!tx_scope_parse(text, &scope))
            return tx_py_fail(ctx, TX_E_BAD_SCOPE, text);
    }
    if (!tx_py_as_nodes(ctx, a[B_SHAPE], &shape, &rank) || !checked_extents(ctx, name, shape, rank))
        return NULL;
    tx_buffer *b = tx_new_buffer(ctx->c, name, t, scope, shape, rank, viewed_var(data, &origin));
    if (!b)
        return tx_py_raise(ctx);
    b->origin = origin;
    b->flags |= (uint16_t)(flags | (data ? TX_BUF_VIEW : 0));
    if (a[B_LAYOUT] == Py_None)
        b->flags |= TX_BUF_NO_LAYOUT;
    if (!fill_optional(ctx, b, a))
        return NULL;
    if (TX_PY_GIVEN(a[B_ANNOTATIONS]) && !tx_py_as_attrs(ctx, a[B_ANNOTATIONS], &b->attrs, &b->nattrs))
        return NULL;
    for (uint32_t i = 0; i < b->nattrs; i++)
        if ((strcmp(b->attrs[i].key->text, "volatile") == 0 || strcmp(b->attrs[i].key->text, "tirx.volatile") == 0) &&
            b->attrs[i].value->op == TX_OP_INT && b->attrs[i].value->u.i != 0)
            b->flags |= TX_BUF_VOLATILE;
    PyObject *made = tx_py_new_buffer(ctx, b);
    if (made && TX_PY_GIVEN(a[B_LAYOUT]))
        pybuf_set_layout(made, a[B_LAYOUT], NULL);
    return made;
}

static PyMethodDef pybuf_module_methods[] = {
    {"buffer", TX_PY_FAST(pycall_buffer), METH_FASTCALL | METH_KEYWORDS, "a buffer's record; a Builder emits it"},
    {0},
};

int
tx_py_init_buffer(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!(s->Buffer = tx_py_add_type(module, &pybuf_spec)) || tx_py_init_region(module) < 0 ||
        PyObject_SetAttrString((PyObject *)s->Buffer, "__array_ufunc__", Py_None) < 0)
        return -1;
    return PyModule_AddFunctions(module, pybuf_module_methods);
}
