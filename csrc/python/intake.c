/* One Python argument as a tx_arg: tensors by the quickest protocol that their type offers, numbers, None. Makes no Python
 * objects for torch tensors and NumPy arrays. What was borrowed or taken over lives until tx_py_intake_done().
 * Also decides the stream of a call. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <math.h>
#include <stdio.h>

void
tx_py_intake_init(tx_py_intake *in, tx_py_rt *rt)
{
    in->rt = rt;
    in->held = in->first;
    in->nheld = 0;
    in->held_cap = TX_PY_HELD_INLINE;
    in->stream_api = NULL;
    in->stream_of = NULL;
    in->stream_device = -1;
    in->stream = NULL;
    in->what = NULL;
}

void
tx_py_intake_done(tx_py_intake *in)
{
    PyObject *type, *value, *trace;

    if (TX_LIKELY(in->nheld == 0))
        return;
    PyErr_Fetch(&type, &value, &trace); /* deleters may run Python */
    while (in->nheld > 0) {
        tx_py_held *h = &in->held[--in->nheld];
        tx_py_dl_give_back(h);
        Py_CLEAR(h->object);
    }
    if (in->held != in->first)
        tx_free(in->held);
    in->held = in->first;
    in->held_cap = TX_PY_HELD_INLINE;
    PyErr_Restore(type, value, trace);
}

bool
tx_py_intake_fault(tx_py_intake *in, const char *what, const char *fmt, ...)
{
    va_list ap;

    in->what = what;
    va_start(ap, fmt);
    vsnprintf(in->text, sizeof in->text, fmt, ap);
    va_end(ap);
    return false;
}

/* Takes over the reference to object, and managed, when it gives true. */
bool
tx_py_intake_hold(tx_py_intake *in, void *managed, bool versioned, PyObject *object)
{
    if (in->nheld == in->held_cap) {
        uint32_t cap = in->held_cap * 2;
        tx_py_held *held =
            in->held == in->first ? tx_malloc(cap * sizeof *held) : tx_realloc(in->held, cap * sizeof *held);
        if (!held) {
            PyErr_NoMemory();
            return false;
        }
        if (in->held == in->first)
            memcpy(held, in->first, sizeof in->first);
        in->held = held;
        in->held_cap = cap;
    }
    in->held[in->nheld++] = (tx_py_held){.managed = managed, .versioned = versioned, .object = object};
    return true;
}

void
tx_py_intake_cuda(tx_py_intake *in, const tx_dl_api *api, PyObject *x, int32_t device)
{
    if (in->stream_device >= 0)
        return;
    in->stream_api = api;
    in->stream_of = x;
    in->stream_device = device;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------- */

static bool
take_int(PyObject *x, tx_arg *out)
{
    int overflow = 0;

    out->kind = TX_ARG_INT;
    out->type_name = "int";
    out->v.i = PyLong_AsLongLongAndOverflow(x, &overflow);
    if (TX_LIKELY(overflow == 0))
        return !(out->v.i == -1 && PyErr_Occurred());
    out->unsigned_int = overflow > 0;
    if (overflow > 0)
        out->v.u = PyLong_AsUnsignedLongLong(x);
    if (overflow > 0 && !PyErr_Occurred())
        return true;
    PyErr_Clear();
    out->unsigned_int = false;
    out->neg_overflow = overflow < 0;
    out->pos_overflow = overflow > 0;
    out->v.f = PyLong_AsDouble(x);
    if (out->v.f == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        out->v.f = overflow < 0 ? -HUGE_VAL : HUGE_VAL;
    }
    return true;
}

/* 1: done, 0: not a number, -1: exception. */
static int
take_number(PyObject *x, tx_arg *out)
{
    if (x == Py_True || x == Py_False) {
        out->kind = TX_ARG_BOOL;
        out->type_name = "bool";
        out->v.i = x == Py_True;
        return 1;
    }
    if (PyLong_Check(x))
        return take_int(x, out) ? 1 : -1;
    if (PyFloat_Check(x)) {
        out->kind = TX_ARG_FLOAT;
        out->type_name = "float";
        out->v.f = PyFloat_AsDouble(x);
        return out->v.f == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    return 0;
}

/* NumPy scalars, and whatever counts as an integer. Tensors have been looked for before: they have __index__ too. */
static int
take_like_number(PyObject *x, tx_arg *out)
{
    PyObject *number;
    bool ok;
    int done;

    if (tx_py_npy_ready() && (done = tx_py_npy_scalar(x, out)) != 0)
        return done;
    if (!PyIndex_Check(x))
        return 0;
    number = PyNumber_Index(x);
    ok = number && take_int(number, out);
    Py_XDECREF(number);
    return ok ? 1 : -1;
}

/* ---- __cuda_array_interface__ ------------------------------------------------------------------------------------------- */

static bool
cai_fault(tx_py_intake *in, const char *field)
{
    PyErr_Clear();
    return tx_py_intake_fault(in, "Malformed __cuda_array_interface__", "field '%s' is missing or not as specified",
                              field);
}

/* A tuple of at most TX_MAX_RANK integers. Negative: not that. */
static int
int_tuple(PyObject *x, int64_t *out)
{
    Py_ssize_t n = x && PyTuple_Check(x) ? PyTuple_Size(x) : -1;

    if (n > TX_MAX_RANK)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(x, i));
        if (out[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return (int)n;
}

static bool
cai_dtype(tx_py_intake *in, PyObject *typestr, tx_arg *out, int64_t *itemsize)
{
    const char *text = typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;

    if (!text || strlen(text) < 3 || strlen(text) > 8)
        return cai_fault(in, "typestr");
    *itemsize = 0;
    for (const char *p = text + 2; *p >= '0' && *p <= '9'; p++)
        *itemsize = *itemsize * 10 + (*p - '0');
    if (!tx_py_typestr(text[0], text[1], *itemsize, &out->dtype)) {
        out->dtype = TX_VOID;
        snprintf(out->dtype_text, sizeof out->dtype_text, "%s", text);
    }
    return *itemsize > 0 || cai_fault(in, "typestr");
}

/* All that is needed is copied, shape and strides into out->dims. */
static bool
cai_fields(tx_py_intake *in, PyObject *dict, tx_arg *out)
{
    tx_py_rt *rt = in->rt;
    PyObject *strides = PyDict_GetItemWithError(dict, rt->s_strides), *data = PyDict_GetItemWithError(dict, rt->s_data);
    int64_t itemsize = 0;
    int ndim = int_tuple(PyDict_GetItemWithError(dict, rt->s_shape), out->dims);

    if (ndim < 0)
        return cai_fault(in, "shape");
    for (int d = 0; d < ndim; d++)
        if (out->dims[d] < 0)
            return cai_fault(in, "shape");
    if (!cai_dtype(in, PyDict_GetItemWithError(dict, rt->s_typestr), out, &itemsize))
        return false;
    out->ndim = (uint8_t)ndim;
    out->shape = out->dims;
    out->strides = NULL;
    if (strides && strides != Py_None) {
        if (int_tuple(strides, out->dims + TX_MAX_RANK) != ndim)
            return cai_fault(in, "strides");
        out->strides = out->dims + TX_MAX_RANK;
        for (int d = 0; d < ndim; d++) {
            if (out->dims[TX_MAX_RANK + d] % itemsize != 0)
                return cai_fault(in, "strides");
            out->dims[TX_MAX_RANK + d] /= itemsize;
        }
    }
    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
        return cai_fault(in, "data");
    out->v.p = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    out->readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
    return !PyErr_Occurred() || cai_fault(in, "data");
}

static bool
take_cuda_array(tx_py_intake *in, PyObject *x, tx_arg *out)
{
    PyObject *dict = PyObject_GetAttr(x, in->rt->s___cuda_array_interface__);
    bool ok;

    if (!dict)
        return false;
    ok = PyDict_Check(dict) ? cai_fields(in, dict, out) : cai_fault(in, "shape");
    Py_DECREF(dict);
    if (!ok)
        return false;
    out->kind = TX_ARG_TENSOR;
    out->type_name = "Tensor";
    out->device_type = TX_DEV_CUDA;
    out->device_id = 0;
    tx_call_error e;
    int device;
    if (tx_driver_pointer_device(out->v.p, &device, &e))
        out->device_id = device;
    tx_py_intake_cuda(in, NULL, x, out->device_id);
    return true;
}

/* ---- pointers of ctypes --------------------------------------------------------------------------------------------------- */

/* c_void_p and POINTER(...) hold an address, arrays of ctypes are the memory itself. 1: done, 0: another type. */
static int
take_ctypes(PyObject *x, tx_arg *out)
{
    PyObject *meta = PyType_GetName(Py_TYPE((PyObject *)Py_TYPE(x))), *name = PyType_GetName(Py_TYPE(x));
    const char *metatype = meta ? PyUnicode_AsUTF8AndSize(meta, NULL) : NULL;
    const char *type = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool holds = false, is = false;
    Py_buffer view;

    if (metatype && type) {
        holds = strcmp(metatype, "PyCPointerType") == 0 ||
                (strcmp(metatype, "PyCSimpleType") == 0 && strcmp(type, "c_void_p") == 0);
        is = strcmp(metatype, "PyCArrayType") == 0;
    }
    Py_XDECREF(meta);
    Py_XDECREF(name);
    PyErr_Clear();
    if (!holds && !is)
        return 0;
    if (PyObject_GetBuffer(x, &view, PyBUF_SIMPLE) != 0) {
        PyErr_Clear();
        return 0;
    }
    out->kind = TX_ARG_POINTER;
    out->type_name = "pointer";
    out->v.p = view.buf;
    if (holds && view.len == (Py_ssize_t)sizeof(void *))
        memcpy(&out->v.p, view.buf, sizeof(void *));
    PyBuffer_Release(&view);
    return 1;
}

/* ---- any argument --------------------------------------------------------------------------------------------------------- */

static void
remember_type(tx_py_rt *rt, PyObject *type, const tx_dl_api *api)
{
    struct tx_py_type_entry *e = &rt->types[rt->next_type++ % TX_PY_TYPE_CACHE];
    PyObject *old = e->type;

    e->type = Py_NewRef(type);
    e->api = api;
    Py_XDECREF(old);
}

/* The type's qualified name, for messages; lives until the call is over. */
static bool
other_type(tx_py_intake *in, PyObject *x, tx_arg *out)
{
    PyObject *name = PyType_GetQualName(Py_TYPE(x));
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;

    out->kind = TX_ARG_OTHER;
    out->type_name = text ? text : "another type";
    PyErr_Clear();
    return !name || tx_py_intake_hold(in, NULL, false, name);
}

static bool
take_unknown(tx_py_intake *in, PyObject *x, PyObject *type, tx_arg *out)
{
    tx_py_rt *rt = in->rt;
    const tx_dl_api *api;
    int done = take_number(x, out);

    if (done != 0)
        return done > 0;
    if (tx_py_take_tensormap(rt, x, out))
        return true;
    if (tx_py_npy_ready() && tx_py_npy_is_array(x)) {
        remember_type(rt, type, NULL);
        return tx_py_npy_array(in, x, out);
    }
    api = tx_py_dl_api_of(rt, type);
    if (api) {
        remember_type(rt, type, api);
        return tx_py_dl_exchange(in, api, x, out);
    }
    if (!PyType_Check(x) && PyObject_HasAttr(x, rt->s___dlpack__))
        return tx_py_dl_protocol(in, x, out);
    if (PyObject_HasAttr(x, rt->s___cuda_array_interface__))
        return take_cuda_array(in, x, out);
    if ((done = take_like_number(x, out)) != 0)
        return done > 0;
    return take_ctypes(x, out) || other_type(in, x, out);
}

bool
tx_py_intake_arg(tx_py_intake *in, PyObject *x, tx_arg *out)
{
    PyObject *type = (PyObject *)Py_TYPE(x);

    memset(out, 0, offsetof(tx_arg, dims));
    in->what = NULL;
    for (int i = 0; i < TX_PY_TYPE_CACHE; i++) {
        const struct tx_py_type_entry *e = &in->rt->types[i];
        if (e->type == type)
            return e->api ? tx_py_dl_exchange(in, e->api, x, out) : tx_py_npy_array(in, x, out);
    }
    if (x == Py_None) {
        out->kind = TX_ARG_NONE;
        out->type_name = "None";
        return true;
    }
    return take_unknown(in, x, type, out);
}

/* ---- streams ---------------------------------------------------------------------------------------------------------------- */

/* The number behind one attribute of a stream object; 1: found. */
static int
stream_attribute(PyObject *given, PyObject *name, void **out)
{
    PyObject *value = PyObject_HasAttr(given, name) ? PyObject_GetAttr(given, name) : NULL;
    int ok = 0;

    if (value && PyLong_Check(value)) {
        *out = PyLong_AsVoidPtr(value);
        ok = PyErr_Occurred() ? -1 : 1;
    }
    Py_XDECREF(value);
    return PyErr_Occurred() ? -1 : ok;
}

/* An address, or a stream object of torch (cuda_stream), of the CUDA stream protocol (__cuda_stream__) or of CuPy (ptr). */
bool
tx_py_stream_of(tx_py_rt *rt, PyObject *given, void **out)
{
    PyObject *pair, *number;
    int ok;

    *out = NULL;
    if (PyLong_Check(given)) {
        *out = PyLong_AsVoidPtr(given);
        return !PyErr_Occurred();
    }
    if ((ok = stream_attribute(given, rt->s_cuda_stream, out)) != 0)
        return ok > 0;
    if (PyObject_HasAttr(given, rt->s___cuda_stream__)) {
        pair = PyObject_CallMethodObjArgs(given, rt->s___cuda_stream__, NULL);
        number = pair ? PySequence_GetItem(pair, 1) : NULL;
        if (number)
            *out = PyLong_AsVoidPtr(number);
        Py_XDECREF(pair);
        Py_XDECREF(number);
        return !PyErr_Occurred();
    }
    if ((ok = stream_attribute(given, rt->s_ptr, out)) != 0)
        return ok > 0;
    PyErr_Format(PyExc_TypeError, "stream: expected a CUDA stream object or its address, got %R",
                 (PyObject *)Py_TYPE(given));
    return false;
}

/* torch.cuda.current_stream(device).cuda_stream, for torch versions without the exchange table. */
static bool
torch_stream(tx_py_intake *in, void **out)
{
    PyObject *name = PyUnicode_FromString("torch"), *torch = name ? PyImport_GetModule(name) : NULL, *cuda = NULL;
    PyObject *tensor = torch ? PyObject_GetAttrString(torch, "Tensor") : NULL, *stream = NULL;
    bool ok = true;

    Py_XDECREF(name);
    if (tensor && PyObject_IsInstance(in->stream_of, tensor) == 1) {
        cuda = PyObject_GetAttrString(torch, "cuda");
        stream = cuda ? PyObject_CallMethod(cuda, "current_stream", "i", (int)in->stream_device) : NULL;
        ok = stream && tx_py_stream_of(in->rt, stream, out);
    } else {
        PyErr_Clear();
    }
    Py_XDECREF(stream);
    Py_XDECREF(cuda);
    Py_XDECREF(tensor);
    Py_XDECREF(torch);
    return ok;
}

bool
tx_py_current_stream(tx_py_intake *in, void **out)
{
    *out = NULL;
    if (in->stream_device < 0)
        return true;
    if (TX_UNLIKELY(!in->stream_api))
        return torch_stream(in, out);
    if (in->stream_api->current_stream(TX_DEV_CUDA, in->stream_device, out) == 0)
        return true;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the tensor's framework cannot tell its current stream");
    return false;
}

/* ---- for tests -------------------------------------------------------------------------------------------------------------- */

static PyObject *
extents_tuple(const int64_t *at, int n)
{
    PyObject *t = at ? PyTuple_New(n) : Py_NewRef(Py_None);

    for (int i = 0; at && t && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(at[i]);
        if (!v || PyTuple_SetItem(t, i, v) != 0)
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *
described(const tx_py_rt *rt, const tx_arg *a)
{
    static const char *const kinds[] = {"none", "bool", "int", "float", "tensor", "pointer", "other", "tensormap"};
    PyObject *dtype, *shape, *strides;

    switch (a->kind) {
    case TX_ARG_BOOL: return Py_BuildValue("{sssO}", "kind", kinds[a->kind], "value", a->v.i ? Py_True : Py_False);
    case TX_ARG_FLOAT: return Py_BuildValue("{sssd}", "kind", kinds[a->kind], "value", a->v.f);
    case TX_ARG_POINTER: return Py_BuildValue("{sssK}", "kind", kinds[a->kind], "value", (unsigned long long)a->v.u);
    case TX_ARG_NONE:
    case TX_ARG_MAP:
    case TX_ARG_OTHER: return Py_BuildValue("{ssss}", "kind", kinds[a->kind], "type", a->type_name);
    case TX_ARG_INT:
        if (a->neg_overflow || a->pos_overflow)
            return Py_BuildValue("{ssss}", "kind", "int", "overflow", a->neg_overflow ? "negative" : "positive");
        if (a->unsigned_int)
            return Py_BuildValue("{sssK}", "kind", "int", "value", (unsigned long long)a->v.u);
        return Py_BuildValue("{sssL}", "kind", "int", "value", (long long)a->v.i);
    default: break;
    }
    dtype = a->dtype == TX_VOID ? PyUnicode_FromString(a->dtype_text) : tx_py_dtype_str(rt->state, a->dtype);
    shape = a->ndim ? extents_tuple(a->shape, a->ndim) : PyTuple_New(0);
    strides = extents_tuple(a->ndim ? a->strides : NULL, a->ndim);
    return Py_BuildValue("{sssNsNsNs(ii)sKsOsO}", "kind", "tensor", "dtype", dtype, "shape", shape, "strides", strides,
                         "device", (int)a->device_type, (int)a->device_id, "data",
                         (unsigned long long)(uintptr_t)a->v.p, "readonly", a->readonly ? Py_True : Py_False, "known",
                         a->dtype == TX_VOID ? Py_False : Py_True);
}

/* describe_arg(x): what a call would make of x, as a dict; ValueError when x is malformed. */
static PyObject *
describe_arg(PyObject *module, PyObject *x)
{
    tx_py_rt *rt = tx_py_rt_of(module);
    tx_py_intake in;
    tx_arg a;
    PyObject *result = NULL;

    if (!rt)
        return NULL;
    tx_py_intake_init(&in, rt);
    if (PyCapsule_CheckExact(x) ? (memset(&a, 0, sizeof a), tx_py_dl_capsule(&in, x, &a))
                                : tx_py_intake_arg(&in, x, &a))
        result = described(rt, &a);
    else if (in.what)
        PyErr_Format(PyExc_ValueError, "%s: %s", in.what, in.text);
    tx_py_intake_done(&in);
    Py_DECREF(rt);
    return result;
}

static PyMethodDef intake_methods[] = {
    {"describe_arg", describe_arg, METH_O, "What a call makes of an argument, as a dict."},
    {NULL, NULL, 0, NULL},
};

int
tx_py_add_intake(PyObject *module)
{
    return PyModule_AddFunctions(module, intake_methods);
}
