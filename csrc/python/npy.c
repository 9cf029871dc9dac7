/* NumPy through its C API: arrays and scalars in, small arrays out. The only file that includes NumPy's headers. Its function
 * table is process-wide, as NumPy itself is; it is loaded once somebody has imported NumPy, or when an array is to be made.
 * Takes Python objects; gives tx_arg and arrays. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <numpy/arrayobject.h>
#include <stdio.h>

static const char WRONG[] = "Unusable array";

bool
tx_py_npy_import(void)
{
    return PyArray_API || PyArray_ImportNumPyAPI() >= 0;
}

bool
tx_py_npy_ready(void)
{
    PyObject *name, *numpy = NULL;

    if (TX_LIKELY(PyArray_API != NULL))
        return true;
    name = PyUnicode_FromString("numpy");
    if (name)
        numpy = PyImport_GetModule(name); /* looks, and imports nothing */
    Py_XDECREF(name);
    Py_XDECREF(numpy);
    if (numpy && tx_py_npy_import())
        return true;
    PyErr_Clear(); /* numpy may be half imported: then there are no arrays yet */
    return false;
}

bool
tx_py_npy_is_array(PyObject *x)
{
    return PyArray_Check(x);
}

/* Types that come from the package ml_dtypes are known by their names, which are ours. */
static bool
named_dtype(PyTypeObject *type, tx_dtype *out)
{
    PyObject *name = type ? PyType_GetName(type) : NULL;
    Py_ssize_t n = 0;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, &n) : NULL;
    bool ok = text && tx_dtype_parse(text, (size_t)n, out) && tx_lanes(*out) == 1 &&
              (tx_class(*out) == TX_CLS_G || tx_class(*out) == TX_CLS_M);

    Py_XDECREF(name);
    PyErr_Clear();
    return ok;
}

bool
tx_py_typestr(char order, char kind, int64_t itemsize, tx_dtype *out)
{
    static const struct {
        char kind;
        uint8_t itemsize, to;
    } known[] = {
        {'b', 1, TX_KIND_BOOL}, {'i', 1, TX_KIND_I8},  {'i', 2, TX_KIND_I16}, {'i', 4, TX_KIND_I32},
        {'i', 8, TX_KIND_I64},  {'u', 1, TX_KIND_U8},  {'u', 2, TX_KIND_U16}, {'u', 4, TX_KIND_U32},
        {'u', 8, TX_KIND_U64},  {'f', 2, TX_KIND_F16}, {'f', 4, TX_KIND_F32}, {'f', 8, TX_KIND_F64},
    };

    if (order == (PY_LITTLE_ENDIAN ? '>' : '<'))
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].kind == kind && known[i].itemsize == itemsize) {
            *out = TX_DTYPE(known[i].to, 1);
            return true;
        }
    }
    return false;
}

static void
array_dtype(PyArray_Descr *d, tx_arg *out)
{
    npy_intp itemsize = PyDataType_ELSIZE(d);
    PyObject *text;
    const char *utf8;
    Py_ssize_t n;

    if (TX_LIKELY(tx_py_typestr(d->byteorder, d->kind, itemsize, &out->dtype)))
        return;
    if (d->type_num >= NPY_USERDEF && named_dtype(d->typeobj, &out->dtype)) {
        if (tx_bits(out->dtype) != 4)
            return;
        snprintf(out->dtype_text, sizeof out->dtype_text, "%s, one to a byte", tx_kinds[tx_kind(out->dtype)].text);
        out->dtype = TX_VOID; /* ours are two to a byte */
        return;
    }
    out->dtype = TX_VOID;
    text = PyObject_Str((PyObject *)d);
    utf8 = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    snprintf(out->dtype_text, sizeof out->dtype_text, "%s", utf8 ? utf8 : "another dtype");
    Py_XDECREF(text);
    PyErr_Clear();
}

/* Strides of NumPy count bytes, ours count elements. */
static bool
array_strides(tx_py_intake *in, PyArrayObject *a, tx_arg *out)
{
    npy_intp itemsize = PyDataType_ELSIZE(PyArray_DESCR(a));
    const npy_intp *strides = PyArray_STRIDES(a);

    if (PyArray_IS_C_CONTIGUOUS(a) || out->ndim > TX_MAX_RANK || out->dtype == TX_VOID)
        return true; /* too many dimensions or another dtype: refused by the plan before it reads strides */
    for (int d = 0; d < out->ndim; d++) {
        if (strides[d] % itemsize != 0 && PyArray_DIM(a, d) > 1)
            return tx_py_intake_fault(in, WRONG, "strides[%d] is %lld bytes, expected a multiple of the element's %lld",
                                      d, (long long)strides[d], (long long)itemsize);
        out->dims[d] = strides[d] / itemsize;
    }
    out->strides = out->dims;
    return true;
}

bool
tx_py_npy_array(tx_py_intake *in, PyObject *x, tx_arg *out)
{
    PyArrayObject *a = (PyArrayObject *)x;

    _Static_assert(sizeof(npy_intp) == sizeof(int64_t), "shapes are used in place");
    out->kind = TX_ARG_TENSOR;
    out->ndim = (uint8_t)PyArray_NDIM(a);
    out->readonly = !PyArray_ISWRITEABLE(a);
    out->device_type = TX_DEV_CPU;
    out->device_id = 0;
    out->v.p = PyArray_DATA(a);
    out->shape = (const int64_t *)PyArray_DIMS(a);
    out->strides = NULL;
    out->type_name = "numpy.ndarray";
    array_dtype(PyArray_DESCR(a), out);
    return array_strides(in, a, out);
}

int
tx_py_npy_scalar(PyObject *x, tx_arg *out)
{
    tx_dtype ignored;

    if (PyArray_IsScalar(x, Bool)) {
        out->kind = TX_ARG_BOOL;
        out->type_name = "numpy.bool";
        out->v.i = PyObject_IsTrue(x);
        return out->v.i < 0 ? -1 : 1;
    }
    if (PyArray_IsScalar(x, Floating) || named_dtype(Py_TYPE(x), &ignored)) {
        out->kind = TX_ARG_FLOAT;
        out->type_name = "float";
        out->v.f = PyFloat_AsDouble(x);
        return out->v.f == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    return 0;
}

/* ---- arrays of the emulator's stand-ins ------------------------------------------------------------------------------------ */

/* The array type of a dtype; NPY_NOTYPE: NumPy has none of its own, values travel as float32. */
static int
npy_type(tx_dtype t)
{
    switch (tx_kind(t)) {
    case TX_KIND_BOOL: return NPY_BOOL;
    case TX_KIND_I8: return NPY_INT8;
    case TX_KIND_I16: return NPY_INT16;
    case TX_KIND_I32: return NPY_INT32;
    case TX_KIND_I64: return NPY_INT64;
    case TX_KIND_U8: return NPY_UINT8;
    case TX_KIND_U16: return NPY_UINT16;
    case TX_KIND_U32: return NPY_UINT32;
    case TX_KIND_U64: return NPY_UINT64;
    case TX_KIND_HANDLE: return NPY_UINT64;
    case TX_KIND_F16: return NPY_FLOAT16;
    case TX_KIND_F32: return NPY_FLOAT32;
    case TX_KIND_F64: return NPY_FLOAT64;
    default: return NPY_NOTYPE;
    }
}

static uint64_t
read_bits(tx_dtype t, const void *values, uint32_t i)
{
    uint64_t bits = 0;
    size_t n = (size_t)tx_dtype_bytes(t);

    memcpy(&bits, (const char *)values + i * n, n);
    return bits;
}

PyObject *
tx_py_npy_vector(tx_dtype t, uint32_t n, const void *values)
{
    int type = npy_type(t);
    npy_intp dims[1] = {n};
    PyObject *a;

    if (!tx_py_npy_import())
        return NULL;
    a = PyArray_SimpleNew(1, dims, type == NPY_NOTYPE ? NPY_FLOAT32 : type);
    if (!a)
        return NULL;
    if (type != NPY_NOTYPE) {
        memcpy(PyArray_DATA((PyArrayObject *)a), values, n * (size_t)tx_dtype_bytes(t));
        return a;
    }
    for (uint32_t i = 0; i < n; i++)
        ((float *)PyArray_DATA((PyArrayObject *)a))[i] = (float)tx_decode(t, read_bits(t, values, i));
    return a;
}

bool
tx_py_npy_values(PyObject *x, tx_dtype t, uint32_t n, void *values)
{
    int type = npy_type(t), as = type == NPY_NOTYPE ? NPY_FLOAT32 : type;
    size_t size = (size_t)tx_dtype_bytes(t);
    PyArray_Descr *d;
    PyArrayObject *a;
    npy_intp count;

    if (!tx_py_npy_import() || !(d = PyArray_DescrFromType(as)))
        return false;
    a = (PyArrayObject *)PyArray_FromAny(x, d, 0, 1, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, NULL);
    if (!a)
        return false;
    count = PyArray_SIZE(a);
    if (count != 1 && count != (npy_intp)n) {
        PyErr_Format(PyExc_ValueError, "a stand-in gave %zd values, expected %u or one", (Py_ssize_t)count, n);
        Py_DECREF(a);
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *from = (const char *)PyArray_DATA(a) + (count == 1 ? 0 : i) * (size_t)PyArray_ITEMSIZE(a);
        uint64_t bits;
        float f;
        if (type != NPY_NOTYPE) {
            memcpy((char *)values + i * size, from, size);
            continue;
        }
        memcpy(&f, from, sizeof f);
        bits = tx_encode(t, f);
        memcpy((char *)values + i * size, &bits, size);
    }
    Py_DECREF(a);
    return true;
}
