/* Region: a rectangular part of a buffer, as slices or missing indices name it. Operand of copies, views and tile
 * operations; as a value it is the vector of its elements. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

static void pyreg_dealloc(PyObject *self);

bool
tx_py_is_region(PyObject *x)
{
    return PyType_GetSlot(Py_TYPE(x), Py_tp_dealloc) == (void *)pyreg_dealloc;
}

PyObject *
tx_py_new_region(tx_py_buffer *b, const tx_node **start, const tx_node **extent, uint32_t kept)
{
    tx_py_region *r = (tx_py_region *)PyType_GenericAlloc(b->ctx->state->Region, 0);

    if (!r)
        return NULL;
    r->ctx = TX_PY_HOLD(b->ctx);
    r->buffer = TX_PY_HOLD(b);
    r->start = start;
    r->extent = extent;
    r->kept = kept;
    return (PyObject *)r;
}

static int
pyreg_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((tx_py_region *)self)->buffer);
    return 0;
}

static void
pyreg_dealloc(PyObject *self)
{
    tx_py_region *r = (tx_py_region *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    TX_PY_DROP(r->buffer);
    TX_PY_DROP(r->ctx);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

const tx_node *
tx_py_load_region(tx_py_region *r)
{
    tx_buffer *b = r->buffer->buf;
    const tx_node *idx[TX_MAX_RANK], *n;

    for (unsigned i = 0; i < b->rank; i++) {
        idx[i] = r->start[i];
        if (i + 1 == b->rank && !(idx[i] = tx_py_vector_index(r->ctx, b, i, r->start[i], r->extent[i], 1)))
            return NULL;
        if (i + 1 < b->rank && !tx_is_const(r->extent[i], 1))
            return tx_py_fail(r->ctx, TX_E_NOT_A_VALUE, "a region of several rows");
    }
    n = tx_load(r->ctx->c, b, idx, b->rank);
    return n ? n : tx_py_raise(r->ctx);
}

/* Indices count from the start of the region and go to the dimensions that no integer has taken yet. */
static PyObject *
pyreg_subscript(PyObject *self, PyObject *indices)
{
    tx_py_region *r = (tx_py_region *)self;
    tx_buffer *b = r->buffer->buf;
    bool tuple = PyTuple_Check(indices);
    Py_ssize_t n = tuple ? PyTuple_Size(indices) : 1, used = 0, nkept = 0;
    const tx_node **start = tx_new(r->ctx->c, const tx_node *, 2 * (b->rank + 1u)), **extent, *one;
    uint32_t kept = r->kept;

    tx_py_here(r->ctx);
    if (!start || !(one = tx_int(r->ctx->c, TX_I32, 1)))
        return tx_py_raise(r->ctx);
    extent = start + b->rank + 1;
    for (unsigned i = 0; i < b->rank; i++)
        nkept += (kept >> i) & 1;
    if (n > nkept)
        return tx_py_fail(r->ctx, TX_E_RANK_MISMATCH, b->name->text, (int)nkept, (int)n);
    for (unsigned i = 0; i < b->rank; i++) {
        start[i] = r->start[i];
        extent[i] = r->extent[i];
        if (!((kept >> i) & 1) || used == n)
            continue;
        PyObject *x = tuple ? PyTuple_GetItem(indices, used) : indices;
        used++;
        const tx_node *at, *len = one;
        if (PySlice_Check(x)) {
            int64_t step;
            bool has_step;
            if (!tx_py_slice_bounds(r->ctx, b, i, x, r->extent[i], &at, &len, &step, &has_step))
                return NULL;
            if (step != 1)
                return tx_py_fail(r->ctx, TX_E_SLICE_STEP);
        } else {
            if (!(at = tx_py_as_index(r->ctx, x)))
                return NULL;
            kept &= ~(1u << i);
        }
        start[i] = tx_binary(r->ctx->c, TX_OP_ADD, r->start[i], at);
        extent[i] = len;
        if (!start[i])
            return tx_py_raise(r->ctx);
    }
    if (kept)
        return tx_py_new_region(r->buffer, start, extent, kept);
    return tx_py_new_expr(r->ctx, tx_load(r->ctx->c, b, start, b->rank));
}

static PyObject *
pyreg_get_ctx(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(((tx_py_region *)self)->ctx);
}

static PyObject *
pyreg_get_buffer(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(((tx_py_region *)self)->buffer);
}

static PyObject *
pyreg_get_start(PyObject *self, void *Py_UNUSED(closure))
{
    tx_py_region *r = (tx_py_region *)self;

    return tx_py_tuple_of(r->ctx, r->start, r->buffer->buf->rank);
}

static PyObject *
pyreg_get_extent(PyObject *self, void *Py_UNUSED(closure))
{
    tx_py_region *r = (tx_py_region *)self;

    return tx_py_tuple_of(r->ctx, r->extent, r->buffer->buf->rank);
}

static PyObject *
pyreg_get_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    tx_py_region *r = (tx_py_region *)self;

    return tx_py_dtype_str(r->ctx->state, r->buffer->buf->dtype);
}

static PyGetSetDef pyreg_getset[] = {
    {"ctx", pyreg_get_ctx, NULL, "the Context that it belongs to", NULL},
    {"buffer", pyreg_get_buffer, NULL, "the Buffer that it is part of", NULL},
    {"start", pyreg_get_start, NULL, "first index of every dimension", NULL},
    {"extent", pyreg_get_extent, NULL, "length of every dimension", NULL},
    {"dtype", pyreg_get_dtype, NULL, "dtype of an element", NULL},
    {0},
};

static PyMethodDef pyreg_methods[] = {
    {"__round__", TX_PY_FAST(tx_py_round), METH_FASTCALL, "nearest integers, ties to even"},
    {0},
};

static PyType_Slot pyreg_slots[] = {
    TX_PY_NUMBER_TABLE,
    {Py_tp_dealloc, pyreg_dealloc},
    {Py_tp_traverse, pyreg_traverse},
    {Py_tp_methods, pyreg_methods},
    {Py_tp_getset, pyreg_getset},
    {Py_mp_subscript, pyreg_subscript},
    {Py_tp_doc, "A rectangular part of a buffer; as a value, the vector of its elements."},
    {0, NULL},
};

static PyType_Spec pyreg_spec = {"tirx.Region", sizeof(tx_py_region), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 pyreg_slots};

int
tx_py_init_region(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!(s->Region = tx_py_add_type(module, &pyreg_spec)))
        return -1;
    return PyObject_SetAttrString((PyObject *)s->Region, "__array_ufunc__", Py_None);
}
