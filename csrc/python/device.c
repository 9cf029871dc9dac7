/* The GPU as Python code of the package sees it: what is there, memory on it, NVRTC; and tensors out of plain memory, for
 * tirx.runtime.tensor. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <stdio.h>
#include <structmember.h>

/* ---- driver ------------------------------------------------------------------------------------------------------------- */

static PyObject *
available(bool ok, const char *why)
{
    return Py_BuildValue("(Os)", ok ? Py_True : Py_False, ok ? "" : why);
}

static PyObject *
py_driver_available(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    char why[512];
    bool ok = tx_driver_available(why, sizeof why);

    return available(ok, why);
}

static PyObject *
py_device_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(tx_driver_device_count());
}

static void *
raise_call(PyObject *module, const tx_call_error *e)
{
    tx_py_rt *rt = tx_py_rt_of(module);

    if (rt)
        tx_py_raise_call(rt, e);
    TX_PY_DROP(rt);
    return NULL;
}

static PyObject *
py_device_arch(PyObject *module, PyObject *device)
{
    tx_call_error e;
    long index = PyLong_AsLong(device);
    int arch;

    if (index == -1 && PyErr_Occurred())
        return NULL;
    if (!tx_driver_arch((int)index, &arch, &e))
        return raise_call(module, &e);
    return PyLong_FromLong(arch);
}

static PyObject *
py_synchronize(PyObject *module, PyObject *device)
{
    tx_call_error e;
    long index = PyLong_AsLong(device);
    bool ok;

    if (index == -1 && PyErr_Occurred())
        return NULL;
    Py_BEGIN_ALLOW_THREADS ok = tx_cu_synchronize((int)index, &e);
    Py_END_ALLOW_THREADS return ok ? Py_NewRef(Py_None) : raise_call(module, &e);
}

/* ---- NVRTC ---------------------------------------------------------------------------------------------------------------- */

static PyObject *
py_nvrtc_available(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    char why[1024];
    bool ok;

    Py_BEGIN_ALLOW_THREADS ok = tx_nvrtc_available(why, sizeof why);
    Py_END_ALLOW_THREADS return available(ok, why);
}

static PyObject *
py_nvrtc_set_path(PyObject *Py_UNUSED(module), PyObject *path)
{
    const char *text = path == Py_None ? NULL : PyUnicode_AsUTF8AndSize(path, NULL);

    if (!text && path != Py_None)
        return NULL;
    tx_nvrtc_set_path(text);
    Py_RETURN_NONE;
}

static PyObject *
py_nvrtc_version(PyObject *module, PyObject *Py_UNUSED(unused))
{
    tx_call_error e;
    int major, minor;

    if (!tx_nvrtc_version(&major, &minor, &e))
        return raise_call(module, &e);
    return Py_BuildValue("(ii)", major, minor);
}

/* nvrtc_options(target, options, needs, want_ptx=False) -> list of str */
static PyObject *
py_nvrtc_options(PyObject *Py_UNUSED(module), PyObject *args)
{
    tx_target t = {.contract = true};
    tx_cuda_needs needs = {0};
    tx_nvrtc_option_list list;
    int arch, fast_math, lineinfo, injected, int128, want_ptx;
    const char *suffix;
    PyObject *out;

    if (!PyArg_ParseTuple(args, "isppppp:nvrtc_options", &arch, &suffix, &fast_math, &lineinfo, &injected, &int128,
                          &want_ptx))
        return NULL;
    t.arch = arch;
    t.suffix = suffix[0];
    t.fast_math = fast_math;
    t.lineinfo = lineinfo;
    needs.injected = injected;
    needs.int128 = int128;
    if (!tx_nvrtc_options(&t, needs, want_ptx, &list)) {
        PyErr_SetString(PyExc_RuntimeError, "too many NVRTC options");
        return NULL;
    }
    out = PyList_New((Py_ssize_t)list.n);
    for (uint32_t i = 0; out && i < list.n; i++) {
        PyObject *text = PyUnicode_FromString(list.at[i]);
        if (!text || PyList_SetItem(out, (Py_ssize_t)i, text) != 0)
            Py_CLEAR(out);
    }
    return out;
}

/* The log with the kernel's own lines in place of the generated ones. */
static PyObject *
mapped_log(const tx_py_rt *rt, const char *log, PyObject *lowered, const char *map, size_t nbytes)
{
    tx_line_map lines = {.n = (uint32_t)(nbytes / sizeof(tx_span)), .span = (tx_span *)(uintptr_t)map};
    tx_sb sb = {0};
    tx_span first;

    if (!map || !lowered || !TX_PY_IS(rt->state, lowered, Module))
        return PyUnicode_DecodeUTF8(log, (Py_ssize_t)strlen(log), "replace");
    tx_nvrtc_map_log(((tx_py_module *)lowered)->ctx->c, &lines, log, &sb, &first);
    return tx_py_take_sb(&sb);
}

static void
raise_nvrtc(tx_py_rt *rt, const tx_call_error *e, const char *log, PyObject *lowered, const char *map, size_t nbytes)
{
    PyObject *text = mapped_log(rt, log, lowered, map, nbytes), *x = NULL, *message;
    PyObject *cls = rt->state->error[TX_PY_NvrtcError];

    if (!text)
        return;
    message = PyUnicode_FromFormat("NVRTC compilation failed: %s\n%U", e->text, text);
    x = message ? PyObject_CallFunctionObjArgs(cls, message, NULL) : NULL;
    if (x && PyObject_SetAttrString(x, "log", text) == 0)
        PyErr_SetObject(cls, x);
    Py_XDECREF(x);
    Py_XDECREF(message);
    Py_DECREF(text);
}

/* The options as a NULL-terminated array of borrowed texts, on the heap. */
static const char **
option_array(PyObject *options)
{
    Py_ssize_t n = PyList_Check(options) ? PyList_Size(options) : -1;
    const char **at = n >= 0 ? tx_calloc((size_t)n + 1, sizeof *at) : NULL;

    if (n < 0)
        return PyErr_SetString(PyExc_TypeError, "options: expected a list of str"), NULL;
    if (!at)
        return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        at[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(options, i), NULL);
        if (!at[i]) {
            tx_free(at);
            return NULL;
        }
    }
    return at;
}

/* nvrtc_compile(source, options, want_ptx=False, lowered=None, line_map=None) -> (image, log) */
static PyObject *
py_nvrtc_compile(PyObject *module, PyObject *args)
{
    const char *source, *map = NULL, **options;
    PyObject *list, *lowered = NULL, *result = NULL;
    Py_ssize_t nmap = 0;
    int want_ptx = 0;
    tx_nvrtc_result r;
    tx_call_error e;
    tx_py_rt *rt;
    bool ok;

    if (!PyArg_ParseTuple(args, "sO|pOz#:nvrtc_compile", &source, &list, &want_ptx, &lowered, &map, &nmap) ||
        !(options = option_array(list)))
        return NULL;
    rt = tx_py_rt_of(module);
    if (rt) {
        Py_BEGIN_ALLOW_THREADS ok = tx_nvrtc_compile(source, options, want_ptx, &r, &e);
        Py_END_ALLOW_THREADS if (ok) result =
            Py_BuildValue("(y#s)", want_ptx ? (char *)r.ptx : (char *)r.cubin,
                          (Py_ssize_t)(want_ptx ? r.ptx_nbytes : r.cubin_nbytes), r.log ? r.log : "");
        else if (r.log) raise_nvrtc(rt, &e, r.log, lowered, map, (size_t)nmap);
        else if (e.cls == TX_CALL_RUNTIME_ERROR) PyErr_SetString(rt->state->error[TX_PY_CompileError], e.text);
        else tx_py_raise_call(rt, &e);
        tx_nvrtc_free(&r);
    }
    TX_PY_DROP(rt);
    tx_free(options);
    return result;
}

/* ---- memory on a GPU -------------------------------------------------------------------------------------------------------- */

typedef struct device_memory {
    PyObject_HEAD void *pointer;
    Py_ssize_t nbytes;
    int device;
} device_memory;

static PyObject *
memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const keys[] = {"device", "nbytes", NULL};
    Py_ssize_t nbytes;
    int device;
    void *p;
    tx_call_error e;
    device_memory *m;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "in:DeviceMemory", (char **)keys, &device, &nbytes))
        return NULL;
    if (nbytes < 0) {
        PyErr_SetString(PyExc_ValueError, "nbytes: expected 0 or more");
        return NULL;
    }
    if (!tx_cumem_alloc(device, (size_t)nbytes, &p, &e))
        return raise_call(PyType_GetModule(type), &e);
    m = (device_memory *)PyType_GenericAlloc(type, 0);
    if (!m) {
        tx_cumem_free(device, p);
        return NULL;
    }
    m->pointer = p;
    m->nbytes = nbytes;
    m->device = device;
    return (PyObject *)m;
}

static void
memory_dealloc(PyObject *self)
{
    device_memory *m = (device_memory *)self;
    PyTypeObject *type = Py_TYPE(self);

    tx_cumem_free(m->device, m->pointer);
    PyObject_Free(self);
    TX_PY_DROP(type);
}

static PyObject *
memory_copy(PyObject *self, PyObject *data, bool upload)
{
    device_memory *m = (device_memory *)self;
    tx_call_error e;
    Py_buffer view;
    bool ok;

    if (PyObject_GetBuffer(data, &view, upload ? PyBUF_C_CONTIGUOUS : PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0)
        return NULL;
    if (view.len > m->nbytes) {
        PyErr_Format(PyExc_ValueError, "%zd bytes do not fit the %zd bytes of the memory", view.len, m->nbytes);
        PyBuffer_Release(&view);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS ok = upload ? tx_cumem_copy(m->device, m->pointer, view.buf, (size_t)view.len, true, &e)
                                       : tx_cumem_copy(m->device, view.buf, m->pointer, (size_t)view.len, false, &e);
    Py_END_ALLOW_THREADS PyBuffer_Release(&view);
    return ok ? Py_NewRef(Py_None) : raise_call(PyType_GetModule(Py_TYPE(self)), &e);
}

static PyObject *
memory_upload(PyObject *self, PyObject *data)
{
    return memory_copy(self, data, true);
}

static PyObject *
memory_download(PyObject *self, PyObject *out)
{
    return memory_copy(self, out, false);
}

static PyObject *
memory_get_pointer(PyObject *self, void *Py_UNUSED(unused))
{
    return PyLong_FromVoidPtr(((device_memory *)self)->pointer);
}

static PyMethodDef memory_methods[] = {
    {"upload", memory_upload, METH_O, "upload(data): copy a contiguous buffer to the device."},
    {"download", memory_download, METH_O, "download(out): fill a contiguous writable buffer."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef memory_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(device_memory, nbytes), READONLY, NULL},
    {"device", T_INT, offsetof(device_memory, device), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef memory_getset[] = {
    {"pointer", memory_get_pointer, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot memory_slots[] = {
    {Py_tp_new, memory_new},         {Py_tp_dealloc, memory_dealloc}, {Py_tp_methods, memory_methods},
    {Py_tp_members, memory_members}, {Py_tp_getset, memory_getset},   {0, NULL},
};
static PyType_Spec memory_spec = {
    .name = "tirx._core.DeviceMemory",
    .basicsize = sizeof(device_memory),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = memory_slots,
};

/* ---- tensors out and in ------------------------------------------------------------------------------------------------------- */

/* export_dlpack(owner, pointer, device_type, device_id, dtype, shape, readonly, versioned) -> capsule */
static PyObject *
py_export_dlpack(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *owner, *pointer, *shape;
    int device_type, device_id, readonly, versioned;
    int64_t dims[TX_MAX_RANK];
    const char *text;
    Py_ssize_t n, rank;
    tx_dtype t;
    void *data;

    if (!PyArg_ParseTuple(args, "OOiis#O!pp:export_dlpack", &owner, &pointer, &device_type, &device_id, &text, &n,
                          &PyTuple_Type, &shape, &readonly, &versioned))
        return NULL;
    rank = PyTuple_Size(shape);
    if (rank > TX_MAX_RANK)
        return PyErr_Format(PyExc_ValueError, "%zd dimensions are more than %d", rank, TX_MAX_RANK);
    if (!tx_dtype_parse(text, (size_t)n, &t) || tx_kinds[tx_kind(t)].dlpack == TX_DL_NONE)
        return PyErr_Format(PyExc_BufferError, "DLPack has no dtype %s", text);
    data = PyLong_AsVoidPtr(pointer);
    for (Py_ssize_t d = 0; d < rank; d++)
        dims[d] = PyLong_AsLongLong(PyTuple_GetItem(shape, d));
    if (PyErr_Occurred())
        return NULL;
    return tx_py_dl_export(owner, data, device_type, device_id, t, (int)rank, dims, NULL, readonly, versioned);
}

/* The elements of a tensor in the host's memory, row-major, one after the other, into `to`. */
static void
device_gather(const tx_arg *a, const char *from, int dim, size_t size, char **to)
{
    if (dim == a->ndim) {
        memcpy(*to, from, size);
        *to += size;
        return;
    }
    for (int64_t i = 0; i < a->shape[dim]; i++)
        device_gather(a, from + i * a->strides[dim] * (int64_t)size, dim + 1, size, to);
}

static PyObject *
read_elements(PyObject *module, const tx_arg *a, const char *dtype)
{
    size_t size = (size_t)tx_dtype_bytes(a->dtype), count = 1, nbytes;
    bool compact = true;
    int64_t step = 1;
    PyObject *bytes, *shape = PyTuple_New(a->ndim);
    tx_call_error e;
    char *to;

    for (int d = a->ndim - 1; d >= 0; d--) {
        compact = compact && (!a->strides || a->shape[d] == 1 || a->strides[d] == step);
        step *= a->shape[d];
        count *= (size_t)a->shape[d];
        if (shape)
            PyTuple_SetItem(shape, d, PyLong_FromLongLong(a->shape[d]));
    }
    nbytes = tx_bits(a->dtype) == 4 ? (count * tx_lanes(a->dtype) + 1) / 2 : count * size;
    bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)nbytes);
    if (!bytes || !shape)
        goto fail;
    to = PyByteArray_AsString(bytes);
    if (a->device_type == TX_DEV_CUDA && !(compact || count == 0)) {
        PyErr_SetString(PyExc_ValueError, "a CUDA tensor must be contiguous to be copied");
        goto fail;
    }
    if (a->device_type == TX_DEV_CUDA) {
        if (count && !tx_cumem_copy(a->device_id, to, a->v.p, nbytes, false, &e)) {
            raise_call(module, &e);
            goto fail;
        }
    } else if (compact && count) {
        memcpy(to, a->v.p, nbytes);
    } else if (count) {
        device_gather(a, a->v.p, 0, size, &to);
    }
    return Py_BuildValue("(NNs)", bytes, shape, dtype);
fail:
    Py_XDECREF(bytes);
    Py_XDECREF(shape);
    return NULL;
}

/* read_tensor(x) -> (bytearray, shape, dtype): a copy of any tensor that a call takes. */
static PyObject *
py_read_tensor(PyObject *module, PyObject *x)
{
    tx_py_rt *rt = tx_py_rt_of(module);
    PyObject *result = NULL, *dtype;
    tx_py_intake in;
    tx_arg a;

    if (!rt)
        return NULL;
    tx_py_intake_init(&in, rt);
    if (!tx_py_intake_arg(&in, x, &a)) {
        if (in.what)
            PyErr_Format(PyExc_ValueError, "%s: %s", in.what, in.text);
    } else if (a.kind != TX_ARG_TENSOR) {
        PyErr_Format(PyExc_TypeError, "expected a tensor, got %s", a.type_name);
    } else if (a.dtype == TX_VOID) {
        PyErr_Format(PyExc_TypeError, "a tensor of dtype %s is not supported", a.dtype_text);
    } else if ((dtype = tx_py_dtype_str(rt->state, a.dtype)) != NULL) {
        result = read_elements(module, &a, PyUnicode_AsUTF8AndSize(dtype, NULL));
        Py_DECREF(dtype);
    }
    tx_py_intake_done(&in);
    TX_PY_DROP(rt);
    return result;
}

static PyMethodDef device_methods[] = {
    {"driver_available", py_driver_available, METH_NOARGS, NULL},
    {"device_count", py_device_count, METH_NOARGS, NULL},
    {"device_arch", py_device_arch, METH_O, NULL},
    {"synchronize", py_synchronize, METH_O, NULL},
    {"nvrtc_available", py_nvrtc_available, METH_NOARGS, NULL},
    {"nvrtc_set_path", py_nvrtc_set_path, METH_O, NULL},
    {"nvrtc_version", py_nvrtc_version, METH_NOARGS, NULL},
    {"nvrtc_options", py_nvrtc_options, METH_VARARGS, NULL},
    {"nvrtc_compile", py_nvrtc_compile, METH_VARARGS, NULL},
    {"export_dlpack", py_export_dlpack, METH_VARARGS, NULL},
    {"read_tensor", py_read_tensor, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int
tx_py_add_device(PyObject *module, tx_py_rt *rt)
{
    rt->DeviceMemory = (PyTypeObject *)PyType_FromModuleAndSpec(module, &memory_spec, NULL);
    if (!rt->DeviceMemory || PyModule_AddObjectRef(module, "DeviceMemory", (PyObject *)rt->DeviceMemory) != 0)
        return -1;
    return PyModule_AddFunctions(module, device_methods);
}
