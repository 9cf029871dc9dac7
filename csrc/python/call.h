/* Private to the files of python/ that run kernels: what a call keeps between Python and the launch plan.
 * intake.c turns one Python argument into a tx_arg, with dlpack.c and npy.c for the array protocols; executable.c is the
 * callable, image.c what it runs; emulate.c serves the emulator's callbacks; device.c holds device memory, driver and NVRTC.
 * Must not know how kernels are parsed or lowered. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_PYTHON_CALL_H
#define TX_PYTHON_CALL_H

#include "python/state.h"
#include "runtime/runtime.h"

/* ---- DLPack, as its specification lays it out (version 1.3) ---------------------------------------------------------- */

enum { TX_DL_MAJOR = 1, TX_DL_MINOR = 3 };
enum { TX_DL_READ_ONLY = 1, TX_DL_IS_COPIED = 2, TX_DL_SUBBYTE_PADDED = 4 };

typedef struct tx_dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} tx_dl_dtype;
typedef struct tx_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    tx_dl_dtype dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tx_dl_tensor;
typedef struct tx_dl_managed {
    tx_dl_tensor tensor;
    void *manager;
    void (*deleter)(struct tx_dl_managed *self);
} tx_dl_managed;
typedef struct tx_dl_version {
    uint32_t major, minor;
} tx_dl_version;
typedef struct tx_dl_versioned {
    tx_dl_version version;
    void *manager;
    void (*deleter)(struct tx_dl_versioned *self);
    uint64_t flags;
    tx_dl_tensor tensor;
} tx_dl_versioned;
typedef struct tx_dl_api_header {
    tx_dl_version version;
    const struct tx_dl_api_header *prev;
} tx_dl_api_header;
typedef struct tx_dl_api { /* the capsule `__dlpack_c_exchange_api__` of a tensor type */
    tx_dl_api_header header;
    void *allocate;
    int (*managed_from_object)(void *object, tx_dl_versioned **out);
    int (*managed_to_object)(tx_dl_versioned *tensor, void **out);
    int (*tensor_from_object)(void *object, tx_dl_tensor *out); /* borrowed; may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} tx_dl_api;

/* ---- what all calls share -------------------------------------------------------------------------------------------- */

// clang-format off
#define TX_PY_CALL_NAMES(X) \
    X(__dlpack__) X(__dlpack_device__) X(__dlpack_c_exchange_api__) X(__cuda_array_interface__) \
    X(__cuda_stream__) X(max_version) X(stream) X(check) X(schedule) X(numerics) X(cuda_stream) X(ptr) \
    X(shape) X(strides) X(data) X(typestr) X(kind) X(buffer) X(lines) X(agents) X(element) X(code) X(write)
// clang-format on

enum { TX_PY_TYPE_CACHE = 8 };

/* The module's `_runtime` object: one a module, held by all its executables. */
typedef struct tx_py_rt {
    PyObject_HEAD PyObject *module;
    tx_py_state *state; /* of the module */
    PyTypeObject *Executable, *DeviceMemory, *TensorMap;
    PyObject *packed;      /* dict: name -> Python function for packed calls */
    PyObject *max_version; /* {"max_version": (1, 3)} */
    struct tx_py_type_entry {
        PyObject *type;       /* strong, so that the address cannot be reused */
        const tx_dl_api *api; /* NULL: a NumPy array */
    } types[TX_PY_TYPE_CACHE];
    unsigned next_type;
#define X(name) PyObject *s_##name;
    TX_PY_CALL_NAMES(X)
#undef X
} tx_py_rt;

tx_py_rt *tx_py_rt_of(PyObject *module); /* new reference */

/* ---- intake ------------------------------------------------------------------------------------------------------------ */

typedef struct tx_py_held { /* given back when the call is over */
    void *managed;
    bool versioned;
    PyObject *object;
} tx_py_held;

enum { TX_PY_HELD_INLINE = 4 };
typedef struct tx_py_intake {
    tx_py_rt *rt;
    tx_py_held *held; /* `first`, or the heap */
    uint32_t nheld, held_cap;
    tx_py_held first[TX_PY_HELD_INLINE];
    /* the first CUDA tensor: whose current stream the call uses */
    const tx_dl_api *stream_api;
    PyObject *stream_of; /* borrowed */
    int32_t stream_device;
    void *stream; /* given by the caller, for producers that synchronise with it */
    /* a fault without a Python exception: "<what> on argument #i ...,\n  <text>" */
    const char *what;
    char text[224];
} tx_py_intake;

void tx_py_intake_init(tx_py_intake *in, tx_py_rt *rt);
void tx_py_intake_done(tx_py_intake *in); /* keeps a pending exception */
/* false: in->what and in->text are set, or (in->what NULL) a Python exception is. */
bool tx_py_intake_arg(tx_py_intake *in, PyObject *x, tx_arg *out);
bool tx_py_intake_fault(tx_py_intake *in, const char *what, const char *fmt, ...) TX_PRINTF(3, 4);
bool tx_py_intake_hold(tx_py_intake *in, void *managed, bool versioned, PyObject *object);
/* Device and stream of a CUDA tensor that came through `api` or, without one, from `x`. */
void tx_py_intake_cuda(tx_py_intake *in, const tx_dl_api *api, PyObject *x, int32_t device);
/* The stream on which the call's kernels go; false: a Python exception is set. given: the option, or NULL. */
bool tx_py_stream_of(tx_py_rt *rt, PyObject *given, void **out);
bool tx_py_current_stream(tx_py_intake *in, void **out);
/* "<f4" as NumPy and __cuda_array_interface__ write it. */
bool tx_py_typestr(char order, char kind, int64_t itemsize, tx_dtype *out);

bool tx_py_dl_capsule(tx_py_intake *in, PyObject *capsule, tx_arg *out); /* takes it over, unless it is refused */
bool tx_py_dl_exchange(tx_py_intake *in, const tx_dl_api *api, PyObject *x, tx_arg *out);
bool tx_py_dl_protocol(tx_py_intake *in, PyObject *x, tx_arg *out); /* x has __dlpack__ */
const tx_dl_api *tx_py_dl_api_of(tx_py_rt *rt, PyObject *type);     /* NULL: none (no exception) */
void tx_py_dl_give_back(tx_py_held *h);
/* A capsule over memory that `owner` keeps alive. version 0: the form without version. */
PyObject *tx_py_dl_export(PyObject *owner, void *data, int32_t device_type, int32_t device_id, tx_dtype t, int ndim,
                          const int64_t *shape, const int64_t *strides, bool readonly, bool versioned);

/* npy.c: the only file that knows NumPy. Its table is loaded when the user has imported NumPy, or when an array is to be made. */
bool tx_py_npy_ready(void);           /* no import; false: nobody has imported NumPy yet, no exception */
bool tx_py_npy_import(void);          /* imports NumPy; false: exception */
bool tx_py_npy_is_array(PyObject *x); /* needs the table */
bool tx_py_npy_array(tx_py_intake *in, PyObject *x, tx_arg *out);
int tx_py_npy_scalar(PyObject *x, tx_arg *out); /* 1: done, 0: not a NumPy scalar, -1: exception */
/* A fresh array of n values of dtype t (float32 for types that NumPy lacks). NULL: exception. */
PyObject *tx_py_npy_vector(tx_dtype t, uint32_t n, const void *values);
/* n values of dtype t from an array-like of n or one values. */
bool tx_py_npy_values(PyObject *x, tx_dtype t, uint32_t n, void *values);

/* ---- running ------------------------------------------------------------------------------------------------------------ */

enum tx_py_check { TX_PY_CHECK_OFF, TX_PY_CHECK_ON, TX_PY_CHECK_REPORT };
typedef struct tx_py_options {
    PyObject *stream; /* borrowed, or NULL */
    uint8_t check;    /* enum tx_py_check */
    tx_emu_options emu;
} tx_py_options;

typedef struct tx_py_run { /* one call */
    tx_py_rt *rt;
    struct tx_py_exe *exe;
    tx_py_options *options;
    PyObject *const *objects; /* the Python arguments, in the order of the parameters */
    tx_arg *args;
    uint32_t nargs;
    PyObject *reports;   /* list, with check="report" */
    PyObject *error[3];  /* raised by a callback, kept until the run has ended */
    int nested;          /* callbacks around this run */
    int64_t next_poll;   /* when Ctrl-C is looked for again, in ns */
    tx_emu_chain *chain; /* the emulator's, when launches overlap; made by the first launch */
    uint32_t repeat;     /* launches of each kernel: 1, but for measuring */
} tx_py_run;

/* What an executable runs: kernels for one back end, and a launch plan for each host function. */
typedef struct tx_py_exe {
    PyObject_HEAD void *vectorcall;
    tx_py_rt *rt;              /* strong */
    struct tx_py_image *image; /* shared, counted */
    uint32_t entry;            /* host function, or UINT32_MAX: several, none of them "main" */
    PyObject *owner;           /* the Python half; attributes not found here are looked up there */
    PyObject *names;           /* tuple of the parameters' names */
    PyObject *externs;         /* dict or NULL */
} tx_py_exe;
typedef struct tx_py_image {
    uint32_t refs; /* under the GIL */
    int device_type;
    char *target;
    uint32_t nkernels, nplans;
    char **kernel_names;
    tx_dtype **arg_types;      /* CUDA: of each kernel's arguments */
    tx_cumodule *cuda;         /* CUDA */
    tx_emu_program **programs; /* emulator */
    tx_plan **plans;
    char **plan_names;
} tx_py_image;

bool tx_py_launch_cuda(void *run, const tx_resolved_launch *l, tx_call_error *e);
bool tx_py_launch_emu(void *run, const tx_resolved_launch *l, tx_call_error *e);
bool tx_py_packed(void *run, const char *name, const tx_arg *args, uint32_t nargs, tx_arg *result, tx_call_error *e);
PyObject *tx_py_report(tx_py_rt *rt, const tx_emu_program *p, const tx_emu_report *r); /* an exception object */
void tx_py_keep_error(tx_py_run *r);                                                   /* takes the pending exception */
void tx_py_restore_error(tx_py_run *r);

void *tx_py_raise_call(tx_py_rt *rt, const tx_call_error *e); /* the exception of a failed call; NULL */

tx_py_image *tx_py_image_new(const tx_py_module *lowered, const char *target, const void *cubin, size_t nbytes);
void tx_py_image_drop(tx_py_image *m); /* one reference */

int tx_py_add_device(PyObject *module, tx_py_rt *rt);
int tx_py_add_intake(PyObject *module);
int tx_py_add_tensormap(PyObject *module, tx_py_rt *rt);
/* A TensorMap as an argument; false: another type. */
bool tx_py_take_tensormap(tx_py_rt *rt, PyObject *x, tx_arg *out);

#endif
