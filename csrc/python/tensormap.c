/* Ready tensor maps as Python objects, for kernels with a T.TensorMap() parameter: tirx.tensor_map makes them. Also the
 * encoder and the decoder by themselves, for tests. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <structmember.h>

typedef struct py_tensormap {
    PyObject_HEAD PyObject *tensor; /* strong: the map points into its memory */
    PyObject *text;                 /* what repr shows */
    int32_t device_type, device_id;
    bool readonly;
    void *target;
    size_t nbytes, before;
    uint8_t bytes[TX_TM_BYTES];
} py_tensormap;

/* ---- fields --------------------------------------------------------------------------------------------------------- */

/* A tuple of ints into at most n numbers; its length, or -1 with an exception. */
static int
tensormap_numbers(PyObject *x, const char *name, int64_t *out, int n)
{
    PyObject *list = PySequence_Tuple(x);
    Py_ssize_t len = list ? PyTuple_Size(list) : -1;

    if (len > n) {
        PyErr_Format(PyExc_ValueError, "%s has %zd entries, expected at most %d", name, len, n);
        len = -1;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        PyObject *v = PyNumber_Index(PyTuple_GetItem(list, i));
        out[i] = v ? PyLong_AsLongLong(v) : -1;
        Py_XDECREF(v);
        if (out[i] == -1 && PyErr_Occurred()) {
            len = -1;
            break;
        }
    }
    Py_XDECREF(list);
    return (int)len;
}

static bool
tensormap_length(const char *name, int got, int64_t want)
{
    if (got >= 0 && got != want)
        PyErr_Format(PyExc_ValueError, "%s has %d entries, expected %d", name, got, (int)want);
    return got == want;
}

/* (im2col, dtype, dims, strides, box, element_strides, lower, upper, channels, pixels, interleave, swizzle, l2, oob) */
static bool
tensormap_fields(PyObject *tuple, tx_tensormap *t)
{
    PyObject *dims, *strides, *box, *estrides, *lower, *upper;
    long long dtype, channels, pixels, interleave, swizzle, l2, oob;
    int im2col, rank;

    memset(t, 0, sizeof *t);
    if (!PyArg_ParseTuple(tuple, "pLOOOOOOLLLLLL", &im2col, &dtype, &dims, &strides, &box, &estrides, &lower, &upper,
                          &channels, &pixels, &interleave, &swizzle, &l2, &oob))
        return false;
    t->im2col = im2col != 0;
    t->dtype = dtype, t->channels = channels, t->pixels = pixels;
    t->interleave = interleave, t->swizzle = swizzle, t->l2 = l2, t->oob = oob;
    if ((rank = tensormap_numbers(dims, "dims", t->dim, TX_TM_RANK)) < 0)
        return false;
    t->rank = rank;
    if (rank == 0) /* what follows counts from it; the check says what is wrong */
        return true;
    return tensormap_length("strides", tensormap_numbers(strides, "strides", t->stride + 1, TX_TM_RANK - 1),
                            rank - 1) &&
           tensormap_length("box", tensormap_numbers(box, "box", t->box, TX_TM_RANK), im2col ? 0 : rank) &&
           tensormap_length("element_strides", tensormap_numbers(estrides, "element_strides", t->estride, TX_TM_RANK),
                            rank) &&
           tensormap_length("lower_corner", tensormap_numbers(lower, "lower_corner", t->lower, 3),
                            im2col && rank > 2 ? rank - 2 : 0) &&
           tensormap_length("upper_corner", tensormap_numbers(upper, "upper_corner", t->upper, 3),
                            im2col && rank > 2 ? rank - 2 : 0);
}

/* The bytes of a map whose fields are right; false: an exception is set. */
static bool
tensormap_bytes(tx_py_rt *rt, int device_type, int device, const tx_tensormap *t, uint8_t *out)
{
    _Alignas(TX_TM_ALIGN) uint8_t bytes[TX_TM_BYTES];
    tx_call_error e;
    char text[256];
    int arch = 0;

    if (device_type == TX_DEV_CUDA && !tx_driver_arch(device, &arch, &e)) {
        tx_py_raise_call(rt, &e);
        return false;
    }
    if (!tx_tensormap_check(t, arch, false, text, sizeof text)) {
        PyErr_Format(PyExc_ValueError, "tensor map: %s", text);
        return false;
    }
    if (device_type != TX_DEV_CUDA) {
        tx_tensormap_encode(t, out);
        return true;
    }
    if (!tx_driver_tensormap(device, t, bytes, &e)) {
        tx_py_raise_call(rt, &e);
        return false;
    }
    memcpy(out, bytes, sizeof bytes);
    return true;
}

/* ---- the type ------------------------------------------------------------------------------------------------------- */

static bool
tensormap_take(tx_py_rt *rt, py_tensormap *m, const tx_arg *a, tx_tensormap *t, long long offset)
{
    if (a->kind != TX_ARG_TENSOR) {
        PyErr_Format(PyExc_TypeError, "tensor_map: expected a tensor, got %s", a->type_name);
        return false;
    }
    m->device_type = a->device_type;
    m->device_id = a->device_id;
    m->readonly = a->readonly;
    m->target = a->v.p;
    tx_arg_reach(a, &m->nbytes, &m->before);
    t->address = (uint64_t)(uintptr_t)a->v.p + (uint64_t)offset;
    t->address_known = true;
    return tensormap_bytes(rt, a->device_type, a->device_id, t, m->bytes);
}

/* TensorMap(tensor, fields, offset, text) */
static PyObject *
tensormap_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *tensor, *fields, *text, *module = PyType_GetModule(type);
    tx_py_rt *rt = module ? tx_py_rt_of(module) : NULL;
    py_tensormap *m = NULL;
    tx_tensormap t;
    tx_py_intake in;
    tx_arg a;
    long long offset;
    bool ok = false;

    if (!rt)
        return NULL;
    if (PyArg_ParseTuple(args, "OO!LU:TensorMap", &tensor, &PyTuple_Type, &fields, &offset, &text) &&
        tensormap_fields(fields, &t) && (m = (py_tensormap *)PyType_GenericAlloc(type, 0))) {
        m->tensor = Py_NewRef(tensor);
        m->text = Py_NewRef(text);
        tx_py_intake_init(&in, rt);
        if (!tx_py_intake_arg(&in, tensor, &a)) {
            if (in.what)
                PyErr_Format(PyExc_ValueError, "%s: %s", in.what, in.text);
        } else {
            ok = tensormap_take(rt, m, &a, &t, offset);
        }
        tx_py_intake_done(&in);
    }
    if (!ok)
        Py_CLEAR(m);
    TX_PY_DROP(rt);
    return (PyObject *)m;
}

static int
tensormap_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((py_tensormap *)self)->tensor);
    return 0;
}

static int
tensormap_clear(PyObject *self)
{
    Py_CLEAR(((py_tensormap *)self)->tensor);
    return 0;
}

static void
tensormap_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    tensormap_clear(self);
    Py_XDECREF(((py_tensormap *)self)->text);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

static PyObject *
tensormap_repr(PyObject *self)
{
    return Py_NewRef(((py_tensormap *)self)->text);
}

static PyObject *
tensormap_as_bytes(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyBytes_FromStringAndSize((const char *)((py_tensormap *)self)->bytes, TX_TM_BYTES);
}

bool
tx_py_take_tensormap(tx_py_rt *rt, PyObject *x, tx_arg *out)
{
    const py_tensormap *m = (const py_tensormap *)x;

    if (Py_TYPE(x) != rt->TensorMap)
        return false;
    out->kind = TX_ARG_MAP;
    out->type_name = "TensorMap";
    out->v.p = (void *)(uintptr_t)m->bytes;
    out->device_type = m->device_type;
    out->device_id = m->device_id;
    out->readonly = m->readonly;
    out->dims[TX_MAP_TARGET] = (int64_t)(uintptr_t)m->target;
    out->dims[TX_MAP_NBYTES] = (int64_t)m->nbytes;
    out->dims[TX_MAP_BEFORE] = (int64_t)m->before;
    return true;
}

static PyMethodDef tensormap_methods[] = {
    {"__bytes__", tensormap_as_bytes, METH_NOARGS, "The 128 bytes that a kernel gets."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef tensormap_members[] = {
    {"tensor", T_OBJECT_EX, offsetof(py_tensormap, tensor), READONLY, "the tensor that the map is over"},
    {NULL, 0, 0, 0, NULL},
};
PyDoc_STRVAR(tensormap_doc, "A tensor map over a tensor, which it keeps alive. Made by tirx.tensor_map.");
static PyType_Slot tensormap_slots[] = {
    {Py_tp_new, tensormap_new},         {Py_tp_dealloc, tensormap_dealloc}, {Py_tp_traverse, tensormap_traverse},
    {Py_tp_clear, tensormap_clear},     {Py_tp_repr, tensormap_repr},       {Py_tp_methods, tensormap_methods},
    {Py_tp_members, tensormap_members}, {Py_tp_doc, (void *)tensormap_doc}, {0, NULL},
};
static PyType_Spec tensormap_spec = {
    .name = "tirx._core.TensorMap",
    .basicsize = sizeof(py_tensormap),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = tensormap_slots,
};

/* ---- functions ------------------------------------------------------------------------------------------------------ */

/* tensormap_encode(address, fields, arch, by): the 128 bytes. by: "tirx" after all checks, "rules" after those that the driver
 * makes, "driver" asks the driver of device 0 and checks nothing. */
static PyObject *
py_tensormap_encode(PyObject *module, PyObject *args)
{
    tx_py_rt *rt = tx_py_rt_of(module);
    _Alignas(TX_TM_ALIGN) uint8_t bytes[TX_TM_BYTES];
    PyObject *fields, *result = NULL;
    unsigned long long address;
    const char *by;
    int arch;
    tx_tensormap t;
    tx_call_error e;
    char text[256];

    if (!rt)
        return NULL;
    if (PyArg_ParseTuple(args, "KO!is", &address, &PyTuple_Type, &fields, &arch, &by) && tensormap_fields(fields, &t)) {
        t.address = address;
        t.address_known = true;
        if (strcmp(by, "driver") == 0) {
            if (tx_driver_tensormap(0, &t, bytes, &e))
                result = PyBytes_FromStringAndSize((const char *)bytes, sizeof bytes);
            else
                tx_py_raise_call(rt, &e);
        } else if (!tx_tensormap_check(&t, arch, strcmp(by, "rules") == 0, text, sizeof text)) {
            PyErr_SetString(PyExc_ValueError, text);
        } else {
            tx_tensormap_encode(&t, bytes);
            result = PyBytes_FromStringAndSize((const char *)bytes, sizeof bytes);
        }
    }
    TX_PY_DROP(rt);
    return result;
}

static PyObject *
tensormap_tuple(const int64_t *v, int64_t n)
{
    PyObject *t = PyTuple_New((Py_ssize_t)(n > 0 ? n : 0));

    for (int64_t i = 0; t && i < n; i++) {
        PyObject *x = PyLong_FromLongLong(v[i]);
        if (!x || PyTuple_SetItem(t, (Py_ssize_t)i, x) != 0)
            Py_CLEAR(t);
    }
    return t;
}

/* tensormap_decode(bytes): (address, fields), or None when they are no map. */
static PyObject *
py_tensormap_decode(PyObject *Py_UNUSED(module), PyObject *x)
{
    Py_buffer view;
    tx_tensormap t;
    bool ok;

    if (PyObject_GetBuffer(x, &view, PyBUF_SIMPLE) != 0)
        return NULL;
    ok = view.len == TX_TM_BYTES && tx_tensormap_decode(view.buf, &t);
    PyBuffer_Release(&view);
    if (!ok)
        return Py_NewRef(Py_None);
    return Py_BuildValue("(K(OLNNNNNNLLLLLL))", (unsigned long long)t.address, t.im2col ? Py_True : Py_False,
                         (long long)t.dtype, tensormap_tuple(t.dim, t.rank), tensormap_tuple(t.stride + 1, t.rank - 1),
                         tensormap_tuple(t.box, t.im2col ? 0 : t.rank), tensormap_tuple(t.estride, t.rank),
                         tensormap_tuple(t.lower, t.im2col ? t.rank - 2 : 0),
                         tensormap_tuple(t.upper, t.im2col ? t.rank - 2 : 0), (long long)t.channels,
                         (long long)t.pixels, (long long)t.interleave, (long long)t.swizzle, (long long)t.l2,
                         (long long)t.oob);
}

/* tensormap_dtype(dtype, force): the driver's number, or None when there is none, or force does not go with the dtype. */
static PyObject *
py_tensormap_dtype(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text;
    long long force;
    tx_dtype t;
    bool ok;
    int number;

    if (!PyArg_ParseTuple(args, "sL", &text, &force))
        return NULL;
    if (!tx_dtype_parse(text, strlen(text), &t))
        return Py_NewRef(Py_None);
    number = tx_tensormap_dtype_of(t, force, &ok);
    return ok ? PyLong_FromLong(number) : Py_NewRef(Py_None);
}

static PyMethodDef tensormap_function_methods[] = {
    {"tensormap_encode", py_tensormap_encode, METH_VARARGS, NULL},
    {"tensormap_decode", py_tensormap_decode, METH_O, NULL},
    {"tensormap_dtype", py_tensormap_dtype, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int
tx_py_add_tensormap(PyObject *module, tx_py_rt *rt)
{
    rt->TensorMap = (PyTypeObject *)PyType_FromModuleAndSpec(module, &tensormap_spec, NULL);
    if (!rt->TensorMap || PyModule_AddObjectRef(module, "TensorMap", (PyObject *)rt->TensorMap) != 0)
        return -1;
    return PyModule_AddFunctions(module, tensormap_function_methods);
}
