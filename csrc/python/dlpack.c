/* DLPack, both ways. In: capsules (with and without version) and the C exchange table of a tensor type. Every field is
 * checked before it is used; a refused capsule stays as it was; one that is taken over is renamed, and its deleter runs once,
 * when the call is over. Out: a capsule over memory that a Python object keeps alive. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <stdio.h>

static const char MALFORMED[] = "Malformed DLPack tensor";

/* ---- fields ---------------------------------------------------------------------------------------------------------- */

/* The one list of dtypes is dtypes.def; rows without a DLPack code get case labels that no tensor can have. */
static bool
find_kind(unsigned code, unsigned bits, unsigned *kind)
{
    switch ((int32_t)(code << 8 | bits)) {
#define DTYPE(id, text, cls, bits, bytes, cuda, alias, dl) \
    case (dl) == TX_DL_NONE ? -2 - (int32_t)TX_KIND_##id: (dl) : *kind = TX_KIND_##id; return (dl) != TX_DL_NONE;
#include "ir/dtypes.def"
#undef DTYPE
    default: return false;
    }
}

static bool
take_dtype(tx_py_intake *in, const tx_dl_tensor *t, tx_arg *out)
{
    static const char *const codes[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    unsigned kind, code = t->dtype.code;

    if (t->dtype.lanes < 1 || t->dtype.lanes > TX_MAX_LANES)
        return tx_py_intake_fault(in, MALFORMED, "the dtype has %u lanes, expected 1..%d", (unsigned)t->dtype.lanes,
                                  TX_MAX_LANES);
    if (TX_LIKELY(find_kind(code, t->dtype.bits, &kind))) {
        out->dtype = TX_DTYPE(kind, t->dtype.lanes);
        return true;
    }
    out->dtype = TX_VOID; /* no parameter has this type: the plan says so */
    if (code < sizeof codes / sizeof *codes)
        snprintf(out->dtype_text, sizeof out->dtype_text, "%s%u", codes[code], (unsigned)t->dtype.bits);
    else
        snprintf(out->dtype_text, sizeof out->dtype_text, "DLPack type %u of %u bits", code, (unsigned)t->dtype.bits);
    return true;
}

/* Shape and strides describe an extent of memory that an int64 can count. */
static bool
dlpack_check_extent(tx_py_intake *in, const tx_dl_tensor *t)
{
    int64_t count = 1, span = 0, part, bytes = ((int64_t)t->dtype.bits * t->dtype.lanes + 7) / 8;
    bool empty = false, fits = true;

    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] < 0)
            return tx_py_intake_fault(in, MALFORMED, "shape[%d] is %lld", d, (long long)t->shape[d]);
        empty = empty || t->shape[d] == 0;
    }
    if (empty)
        return true;
    for (int d = 0; d < t->ndim; d++)
        fits = fits && tx_mul_i64(count, t->shape[d], &count);
    if (!fits || !tx_mul_i64(count, bytes, &part))
        return tx_py_intake_fault(in, MALFORMED, "the number of bytes in its shape does not fit 64 bits");
    for (int d = 0; t->strides && d < t->ndim; d++) {
        int64_t stride = t->strides[d];
        if (t->shape[d] == 1)
            continue;
        fits = fits && stride != INT64_MIN && tx_mul_i64(t->shape[d] - 1, stride < 0 ? -stride : stride, &part) &&
               tx_add_i64(span, part, &span);
    }
    if (!fits || !tx_mul_i64(span, bytes, &part))
        return tx_py_intake_fault(in, MALFORMED, "the number of bytes that its strides reach does not fit 64 bits");
    return true;
}

static bool
take_tensor(tx_py_intake *in, const tx_dl_tensor *t, uint64_t flags, tx_arg *out)
{
    uintptr_t data = (uintptr_t)t->data;

    if (t->ndim < 0 || t->ndim > TX_MAX_RANK)
        return tx_py_intake_fault(in, MALFORMED, "ndim is %d, expected 0..%d", (int)t->ndim, TX_MAX_RANK);
    if (t->ndim > 0 && !t->shape)
        return tx_py_intake_fault(in, MALFORMED, "shape is NULL");
    if (!take_dtype(in, t, out) || !dlpack_check_extent(in, t))
        return false;
    if (t->device_type <= 0)
        return tx_py_intake_fault(in, MALFORMED, "device type is %d", (int)t->device_type);
    if (t->device_id < 0)
        return tx_py_intake_fault(in, MALFORMED, "device id is %d", (int)t->device_id);
    if (data && t->byte_offset > UINTPTR_MAX - data)
        return tx_py_intake_fault(in, MALFORMED, "byte_offset is %llu", (unsigned long long)t->byte_offset);
    if (tx_bits(out->dtype) == 4 && (flags & TX_DL_SUBBYTE_PADDED)) {
        snprintf(out->dtype_text, sizeof out->dtype_text, "%s, one to a byte", tx_kinds[tx_kind(out->dtype)].text);
        out->dtype = TX_VOID;
    }
    out->kind = TX_ARG_TENSOR;
    out->ndim = (uint8_t)t->ndim;
    out->readonly = (flags & (TX_DL_READ_ONLY | TX_DL_IS_COPIED)) != 0; /* what is written to a copy is lost */
    out->device_type = t->device_type;
    out->device_id = t->device_id;
    out->v.p = data ? (char *)t->data + t->byte_offset : NULL;
    out->shape = t->shape;
    out->strides = t->strides;
    out->type_name = "Tensor";
    return true;
}

/* ---- capsules ---------------------------------------------------------------------------------------------------------- */

static bool
take_versioned(tx_py_intake *in, PyObject *capsule, tx_arg *out)
{
    tx_dl_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");

    if (!m)
        return false;
    if (m->version.major != TX_DL_MAJOR)
        return tx_py_intake_fault(in, MALFORMED, "its version is %u.%u, expected %d.x", (unsigned)m->version.major,
                                  (unsigned)m->version.minor, TX_DL_MAJOR);
    if (!take_tensor(in, &m->tensor, m->flags, out) || !tx_py_intake_hold(in, m, true, NULL))
        return false;
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) {
        in->nheld--;
        return false;
    }
    return true;
}

static bool
take_unversioned(tx_py_intake *in, PyObject *capsule, tx_arg *out)
{
    tx_dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");

    if (!m || !take_tensor(in, &m->tensor, 0, out) || !tx_py_intake_hold(in, m, false, NULL))
        return false;
    if (PyCapsule_SetName(capsule, "used_dltensor") != 0) {
        in->nheld--;
        return false;
    }
    return true;
}

bool
tx_py_dl_capsule(tx_py_intake *in, PyObject *capsule, tx_arg *out)
{
    const char *name;

    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        return take_versioned(in, capsule, out);
    if (PyCapsule_IsValid(capsule, "dltensor"))
        return take_unversioned(in, capsule, out);
    if (!PyCapsule_CheckExact(capsule))
        return tx_py_intake_fault(in, MALFORMED, "__dlpack__ did not give a capsule");
    name = PyCapsule_GetName(capsule);
    if (!name)
        PyErr_Clear();
    if (name && strncmp(name, "used_dltensor", 13) == 0)
        return tx_py_intake_fault(in, MALFORMED, "the capsule has been consumed already");
    return tx_py_intake_fault(
        in, MALFORMED, "the capsule is named '%.60s', expected 'dltensor_versioned' or 'dltensor'", name ? name : "");
}

void
tx_py_dl_give_back(tx_py_held *h)
{
    if (h->managed && h->versioned) {
        tx_dl_versioned *m = h->managed;
        h->managed = NULL;
        if (m->deleter)
            m->deleter(m);
    } else if (h->managed) {
        tx_dl_managed *m = h->managed;
        h->managed = NULL;
        if (m->deleter)
            m->deleter(m);
    }
}

/* Which stream a producer on a GPU is to synchronise with, in DLPack's numbers: 1 stands for the default stream. */
static PyObject *
stream_number(const tx_py_intake *in)
{
    return PyLong_FromVoidPtr(in->stream ? in->stream : (void *)(uintptr_t)1);
}

/* The keyword arguments of x.__dlpack__: max_version, and for a GPU the stream. */
static PyObject *
dlpack_keywords(tx_py_intake *in, PyObject *x, bool version)
{
    PyObject *kw = version ? PyDict_Copy(in->rt->max_version) : PyDict_New(), *device, *type, *stream;
    long number;

    if (!kw || !PyObject_HasAttr(x, in->rt->s___dlpack_device__))
        return kw;
    device = PyObject_CallMethodObjArgs(x, in->rt->s___dlpack_device__, NULL);
    type = device ? PySequence_GetItem(device, 0) : NULL;
    Py_XDECREF(device);
    device = type ? PyNumber_Index(type) : NULL; /* an enum, often */
    Py_XDECREF(type);
    number = device ? PyLong_AsLong(device) : -1;
    Py_XDECREF(device);
    if (number == -1 && PyErr_Occurred())
        goto fail;
    if (number == TX_DEV_CUDA) {
        stream = stream_number(in);
        if (!stream || PyDict_SetItem(kw, in->rt->s_stream, stream) != 0) {
            Py_XDECREF(stream);
            goto fail;
        }
        Py_DECREF(stream);
    }
    return kw;
fail:
    Py_DECREF(kw);
    return NULL;
}

bool
tx_py_dl_protocol(tx_py_intake *in, PyObject *x, tx_arg *out)
{
    PyObject *method = PyObject_GetAttr(x, in->rt->s___dlpack__), *none = PyTuple_New(0), *kw, *capsule = NULL;
    bool ok = false;

    for (int version = 1; method && none && !capsule && version >= 0; version--) {
        kw = dlpack_keywords(in, x, version);
        if (!kw)
            break;
        capsule = PyObject_Call(method, none, kw);
        Py_DECREF(kw);
        if (!capsule && version && PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Clear(); /* older than the keyword max_version */
        else if (!capsule)
            break;
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    if (!capsule)
        return false;
    ok = tx_py_dl_capsule(in, capsule, out);
    Py_DECREF(capsule);
    if (ok && out->device_type == TX_DEV_CUDA)
        tx_py_intake_cuda(in, NULL, x, out->device_id);
    return ok;
}

/* ---- the C exchange table ----------------------------------------------------------------------------------------------- */

const tx_dl_api *
tx_py_dl_api_of(tx_py_rt *rt, PyObject *type)
{
    PyObject *capsule = PyObject_GetAttr(type, rt->s___dlpack_c_exchange_api__);
    const tx_dl_api_header *h = NULL;

    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        h = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule);
    PyErr_Clear();
    for (int hops = 0; h && h->version.major != TX_DL_MAJOR && hops < 8; hops++)
        h = h->version.major > TX_DL_MAJOR ? h->prev : NULL;
    if (!h || h->version.major != TX_DL_MAJOR)
        return NULL;
    const tx_dl_api *api = (const tx_dl_api *)h;
    return (api->tensor_from_object || api->managed_from_object) && api->current_stream ? api : NULL;
}

static bool
callback_failed(const char *what)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_BufferError, "the tensor's DLPack table cannot %s", what);
    return false;
}

bool
tx_py_dl_exchange(tx_py_intake *in, const tx_dl_api *api, PyObject *x, tx_arg *out)
{
    tx_dl_versioned *m = NULL;
    tx_dl_tensor t;

    if (TX_LIKELY(api->tensor_from_object != NULL)) {
        if (api->tensor_from_object(x, &t) != 0)
            return callback_failed("describe it");
        if (!take_tensor(in, &t, 0, out))
            return false;
    } else {
        if (api->managed_from_object(x, &m) != 0 || !m)
            return callback_failed("describe it");
        if (!tx_py_intake_hold(in, m, true, NULL)) {
            tx_py_dl_give_back(&(tx_py_held){.managed = m, .versioned = true});
            return false;
        }
        if (m->version.major != TX_DL_MAJOR)
            return tx_py_intake_fault(in, MALFORMED, "its version is %u.%u, expected %d.x", (unsigned)m->version.major,
                                      (unsigned)m->version.minor, TX_DL_MAJOR);
        if (!take_tensor(in, &m->tensor, m->flags, out))
            return false;
    }
    if (out->device_type == TX_DEV_CUDA)
        tx_py_intake_cuda(in, api, x, out->device_id);
    return true;
}

/* ---- out ------------------------------------------------------------------------------------------------------------------ */

typedef struct exported {
    union {
        tx_dl_managed plain;
        tx_dl_versioned versioned;
    } m;
    PyObject *owner;
    int64_t dims[]; /* shape, then strides */
} exported;

static void
free_exported(exported *x)
{
    PyGILState_STATE gil = PyGILState_Ensure();

    Py_DECREF(x->owner);
    PyGILState_Release(gil);
    tx_free(x);
}

static void
delete_plain(tx_dl_managed *self)
{
    free_exported(self->manager);
}

static void
delete_versioned(tx_dl_versioned *self)
{
    free_exported(self->manager);
}

/* Of a capsule that nobody took over. */
static void
drop_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    else if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_plain(PyCapsule_GetPointer(capsule, "dltensor"));
}

PyObject *
tx_py_dl_export(PyObject *owner, void *data, int32_t device_type, int32_t device_id, tx_dtype t, int ndim,
                const int64_t *shape, const int64_t *strides, bool readonly, bool versioned)
{
    exported *x = tx_calloc(1, sizeof *x + 2 * (size_t)ndim * sizeof(int64_t));
    tx_dl_tensor *to;
    int64_t step = 1;
    PyObject *capsule;

    if (!x)
        return PyErr_NoMemory();
    to = versioned ? &x->m.versioned.tensor : &x->m.plain.tensor;
    for (int d = ndim - 1; d >= 0; d--) {
        x->dims[d] = shape[d];
        x->dims[ndim + d] = strides ? strides[d] : step;
        step *= shape[d] > 0 ? shape[d] : 1;
    }
    *to = (tx_dl_tensor){.data = data, .device_type = device_type, .device_id = device_id, .ndim = ndim};
    to->dtype = (tx_dl_dtype){(uint8_t)(tx_kinds[tx_kind(t)].dlpack >> 8), (uint8_t)tx_kinds[tx_kind(t)].dlpack,
                              (uint16_t)tx_lanes(t)};
    to->shape = x->dims;
    to->strides = x->dims + ndim;
    x->owner = Py_NewRef(owner);
    if (versioned) {
        x->m.versioned.version = (tx_dl_version){TX_DL_MAJOR, TX_DL_MINOR};
        x->m.versioned.manager = x;
        x->m.versioned.deleter = delete_versioned;
        x->m.versioned.flags = readonly ? TX_DL_READ_ONLY : 0;
    } else {
        x->m.plain.manager = x;
        x->m.plain.deleter = delete_plain;
    }
    capsule = PyCapsule_New(&x->m, versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
    if (!capsule)
        free_exported(x);
    return capsule;
}
