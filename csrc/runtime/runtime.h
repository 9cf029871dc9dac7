/* Calling a compiled module: launch plans, arguments, the CUDA driver and NVRTC, executables. Owner: runtime.
 * Knows emu/, cuda/, lower/ and below; must not know Python. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_RUNTIME_H
#define TX_RUNTIME_H

#include "cuda/cuda.h"
#include "emu/emu.h"

/* ---- arguments of a call ---------------------------------------------------------------------------------------- */

typedef enum tx_arg_kind {
    TX_ARG_NONE,
    TX_ARG_BOOL,
    TX_ARG_INT,
    TX_ARG_FLOAT,
    TX_ARG_TENSOR,
    TX_ARG_POINTER,
    TX_ARG_OTHER,
    TX_ARG_MAP /* v.p leads to the 128 bytes; dims[] by enum tx_map_arg; device and readonly are the tensor's */
} tx_arg_kind;
enum tx_map_arg { TX_MAP_TARGET, TX_MAP_NBYTES, TX_MAP_BEFORE };
typedef enum tx_device_type {
    TX_DEV_CPU = 1,
    TX_DEV_CUDA = 2,
    TX_DEV_CUDA_HOST = 3,
    TX_DEV_CUDA_MANAGED = 13
} tx_device_type; /* DLPack */
/* What python/ makes of one argument; borrowed for the call. Shapes and strides point into the tensor or into `dims`. */
typedef struct tx_arg {
    uint8_t kind; /* tx_arg_kind */
    uint8_t ndim;
    bool readonly;
    bool neg_overflow, pos_overflow; /* INT: does not fit int64 / uint64; the nearest double is in f, or an infinity */
    bool unsigned_int;               /* INT: value is in u (above INT64_MAX) */
    int32_t device_type, device_id;
    tx_dtype dtype;
    union {
        int64_t i;
        uint64_t u;
        double f;
        void *p; /* data, byte offset already added */
    } v;
    const int64_t *shape, *strides; /* elements; strides NULL: compact row-major */
    const char *type_name;          /* what came, for messages; borrowed */
    int64_t dims[2 * TX_MAX_RANK];  /* need not be cleared, nor what follows */
    char dtype_text[40];            /* tensors whose dtype is none of ours (VOID): what it is */
} tx_arg;

/* Bytes that a tensor's shape and strides reach: from its first element on, and before it where strides are negative. */
void tx_arg_reach(const tx_arg *a, size_t *from, size_t *before);

/* ---- launch plans ------------------------------------------------------------------------------------------------ */

/* The host half as a typed program over int64/double registers: argument checks, symbol equations, launch shapes,
 * kernel arguments; branches, several launches, packed calls. Compiled once, evaluated in C at each call without
 * allocation in the straight-line case. */
typedef struct tx_plan tx_plan;
tx_plan *tx_plan_compile(tx_ctx *c, const tx_module *lowered, const tx_func *host); /* NULL: diagnostics in c */
void tx_plan_free(tx_plan *p);
void tx_plan_print(const tx_plan *p, tx_sb *out);
uint32_t tx_plan_nparams(const tx_plan *p);
const char *tx_plan_signature(const tx_plan *p); /* "scale(A: Tensor([n], float32), s: float32)" */
const char *tx_plan_param_name(const tx_plan *p, uint32_t i);
uint32_t tx_plan_nlaunches(const tx_plan *p);
bool tx_plan_overlaps(const tx_plan *p);     /* a launch may begin before the one before it has ended */
bool tx_plan_names_stream(const tx_plan *p); /* a launch has a stream of its own: the call may not give one */

typedef enum tx_call_class {
    TX_CALL_OK,
    TX_CALL_TYPE_ERROR,
    TX_CALL_VALUE_ERROR,
    TX_CALL_OVERFLOW_ERROR,
    TX_CALL_CUDA_ERROR,
    TX_CALL_ASSERTION,
    TX_CALL_RUNTIME_ERROR,
    TX_CALL_MEMORY_ERROR,
    TX_CALL_HOST_ERROR /* a Python error is pending */,
    TX_CALL_REPORT /* emulator */,
    TX_CALL_INTERRUPTED
} tx_call_class;
typedef struct tx_call_error {
    tx_call_class cls;
    int code;      /* driver error number */
    char kind[48]; /* TX_CALL_ASSERTION: exception name */
    char text[2048];
    tx_emu_report report;
    const tx_emu_program *program; /* of the report */
} tx_call_error;

/* A launch attribute that the driver takes as it stands; filled by plan_extra.c. */
enum { TX_MAX_LAUNCH_EXTRAS = 5 };
typedef struct tx_launch_extra {
    int id; /* CUlaunchAttributeID */
    unsigned char value[64];
} tx_launch_extra;

/* One resolved launch, handed to a back end. */
typedef struct tx_resolved_launch {
    uint32_t kernel; /* index of the kernel in the module */
    uint32_t grid[3], block[3], cluster[3], preferred[3];
    uint64_t dyn_smem;
    int64_t priority;
    const tx_launch *attrs;
    const tx_launch_extra *extras;
    uint32_t nextras;
    const tx_emu_arg *args; /* SHAPE_ONLY ones last */
    uint32_t nargs, nvisible;
    void *stream;
    int device_id;
} tx_resolved_launch;
typedef struct tx_plan_host {
    void *self;
    bool (*launch)(void *self, const tx_resolved_launch *l, tx_call_error *e);
    bool (*packed)(void *self, const char *name, const tx_arg *args, uint32_t nargs, tx_arg *result, tx_call_error *e);
    /* how many clusters of this kernel (or blocks an SM, when `blocks`) can be active; NULL: the emulator */
    bool (*occupancy)(void *self, const tx_resolved_launch *l, bool blocks, int *out, tx_call_error *e);
    bool (*poll)(void *self); /* asked now and then by loops, or NULL; true: stop, with TX_CALL_HOST_ERROR */
} tx_plan_host;
/* Checks all arguments, solves the symbols, then launches. Nothing is launched when a check fails. device_type: what
 * tensors must live on (TX_DEV_CPU for the emulator, TX_DEV_CUDA). result: TX_ARG_NONE unless the function returns. */
bool tx_plan_call(const tx_plan *p, tx_arg *args, uint32_t nargs, int device_type, void *stream, const tx_plan_host *h,
                  tx_arg *result, tx_call_error *e);

/* ---- CUDA driver and NVRTC, opened on first use --------------------------------------------------------------------- */

bool tx_driver_available(char *why, size_t n);                /* false: why says what to do */
int tx_driver_device_count(void);                             /* 0 without a driver */
bool tx_driver_arch(int device, int *arch, tx_call_error *e); /* 90 for compute capability 9.0 */
bool tx_driver_attribute(int device, int attribute, int *value, tx_call_error *e);
bool tx_driver_current_device(int *device, tx_call_error *e);
bool tx_driver_pointer_device(const void *p, int *device, tx_call_error *e); /* of memory that the driver gave out */

typedef struct tx_nvrtc_result {
    void *cubin, *ptx; /* heap; ptx on demand */
    size_t cubin_nbytes, ptx_nbytes;
    char *log; /* heap or NULL */
} tx_nvrtc_result;
bool tx_nvrtc_available(char *why, size_t n);
/* Extra places to look for libnvrtc, as found by Python (tirx/toolchain.py); tried before the system's. Copied. */
void tx_nvrtc_set_path(const char *path);
bool tx_nvrtc_version(int *major, int *minor, tx_call_error *e);
/* options: NULL-terminated. want_ptx compiles to PTX text instead of a cubin. Frees nothing on failure but the log stays. */
bool
tx_nvrtc_compile(const char *source, const char *const *options, bool want_ptx, tx_nvrtc_result *out, tx_call_error *e);
void tx_nvrtc_free(tx_nvrtc_result *r);
/* Options for the text of a module (lowering.md 5.9), without include paths; at[] points into the list or at constants. */
enum { TX_NVRTC_MAX_OPTIONS = 12 };
typedef struct tx_nvrtc_option_list {
    const char *at[TX_NVRTC_MAX_OPTIONS]; /* NULL-terminated */
    uint32_t n;
    char arch[40];
} tx_nvrtc_option_list;
bool tx_nvrtc_options(const tx_target *t, tx_cuda_needs needs, bool want_ptx, tx_nvrtc_option_list *out);
/* NVRTC's log with "tirx_kernels.cu(LINE):" replaced by the Python "file:line:col:" where the line map knows it, and the
 * place of the first error (0: none of ours). */
void tx_nvrtc_map_log(const tx_ctx *c, const tx_line_map *map, const char *log, tx_sb *out, tx_span *first_error);

/* A cubin loaded per device on demand; kernels by name. Thread-safe. */
typedef struct tx_cumodule tx_cumodule;
tx_cumodule *tx_cumodule_new(const void *cubin, size_t nbytes, const char *const *kernel_names, uint32_t nkernels);
void tx_cumodule_free(tx_cumodule *m);
/* arg_types: dtype of each visible argument (a handle for a pointer, tensormap for a map by value); floats of 32 bits and
 * less are converted here. */
bool tx_cumodule_launch(tx_cumodule *m, const tx_resolved_launch *l, const tx_dtype *arg_types, tx_call_error *e);
/* The same launch n times, once the launch is set up: what the driver alone costs, as the measure of a call. */
bool tx_cumodule_repeat(tx_cumodule *m, const tx_resolved_launch *l, const tx_dtype *arg_types, uint32_t n,
                        tx_call_error *e);

/* Of the launch only kernel, block, cluster, dyn_smem and device_id count. */
bool tx_cumodule_occupancy(tx_cumodule *m, const tx_resolved_launch *l, bool blocks, int *out, tx_call_error *e);

/* The driver's encoding of a tensor map that has passed tx_tensormap_check; bytes: 128, aligned to 64. */
bool tx_driver_tensormap(int device, const tx_tensormap *t, void *bytes, tx_call_error *e);

/* Device memory for tirx.runtime.tensor on a GPU. */
bool tx_cumem_alloc(int device, size_t nbytes, void **out, tx_call_error *e);
void tx_cumem_free(int device, void *p);
bool tx_cumem_copy(int device, void *dst, const void *src, size_t nbytes, bool to_device, tx_call_error *e);
bool tx_cu_synchronize(int device, tx_call_error *e);

#endif
