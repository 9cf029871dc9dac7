/* Private to runtime/: the CUDA driver's functions and structs that we use, declared by hand from the driver API manual
 * (CUDA 11.8 and later), and the per-device state. Filled by driver.c on first use. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_RUNTIME_DRIVER_H
#define TX_RUNTIME_DRIVER_H

#include "runtime/runtime.h"

typedef int CUresult; /* 0: success */
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;

enum { /* CUresult */
       CU_ERROR_DEINITIALIZED = 4,
       CU_ERROR_NO_DEVICE = 100,
       CU_ERROR_INVALID_CONTEXT = 201
};
enum { /* CUdevice_attribute */
       CU_DEVICE_SM_COUNT = 16,
       CU_DEVICE_L2_BYTES = 38,
       CU_DEVICE_COMPUTE_CAPABILITY_MAJOR = 75,
       CU_DEVICE_COMPUTE_CAPABILITY_MINOR = 76,
       CU_DEVICE_BLOCK_SMEM_BYTES = 97
};
enum { /* CUpointer_attribute */
       CU_POINTER_DEVICE_ORDINAL = 9
};
enum { /* CUfunction_attribute */
       CU_FUNC_SHARED_SIZE_BYTES = 1,
       CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
       CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
};
typedef enum CUlaunchAttributeID {
    CU_LAUNCH_COOPERATIVE = 2,
    CU_LAUNCH_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_CLUSTER_SCHEDULING_POLICY = 5,
    CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_PRIORITY = 8,
    CU_LAUNCH_MEM_SYNC_DOMAIN = 10,
    CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION = 11,
    CU_LAUNCH_PREFERRED_SMEM_CARVEOUT = 14
} CUlaunchAttributeID;
typedef struct CUlaunchAttribute {
    CUlaunchAttributeID id;
    char pad[8 - sizeof(CUlaunchAttributeID)];
    union {
        char size[64];
        int flag; /* cooperative, serialization, priority, policies */
        struct {
            unsigned x, y, z;
        } dim;
    } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

/* FN(name here, "exported name", parameters) */
#define TX_DRIVER_FUNCTIONS(FN)                                                                                   \
    FN(Init, "cuInit", (unsigned))                                                                                \
    FN(DriverGetVersion, "cuDriverGetVersion", (int *))                                                           \
    FN(GetErrorName, "cuGetErrorName", (CUresult, const char **))                                                 \
    FN(GetErrorString, "cuGetErrorString", (CUresult, const char **))                                             \
    FN(DeviceGetCount, "cuDeviceGetCount", (int *))                                                               \
    FN(DeviceGet, "cuDeviceGet", (CUdevice *, int))                                                               \
    FN(DeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                        \
    FN(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                               \
    FN(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                                           \
    FN(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                                             \
    FN(CtxGetDevice, "cuCtxGetDevice", (CUdevice *))                                                              \
    FN(CtxSynchronize, "cuCtxSynchronize", (void))                                                                \
    FN(ModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *))                                            \
    FN(ModuleUnload, "cuModuleUnload", (CUmodule))                                                                \
    FN(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                          \
    FN(FuncGetAttribute, "cuFuncGetAttribute", (int *, int, CUfunction))                                          \
    FN(FuncSetAttribute, "cuFuncSetAttribute", (CUfunction, int, int))                                            \
    FN(LaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **))                \
    FN(OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters", (int *, CUfunction, const CUlaunchConfig *))   \
    FN(OccupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, CUfunction, int, size_t)) \
    FN(PointerGetAttribute, "cuPointerGetAttribute", (void *, int, CUdeviceptr))                                  \
    FN(MemAlloc, "cuMemAlloc_v2", (CUdeviceptr *, size_t))                                                        \
    FN(MemFree, "cuMemFree_v2", (CUdeviceptr))                                                                    \
    FN(MemcpyHtoD, "cuMemcpyHtoD_v2", (CUdeviceptr, const void *, size_t))                                        \
    FN(MemcpyDtoH, "cuMemcpyDtoH_v2", (void *, CUdeviceptr, size_t))

/* What drivers older than CUDA 12.0's lack: NULL there. Enumerations of the driver are ints. */
#define TX_DRIVER_OPTIONAL(FN)                                                                                      \
    FN(TensorMapEncodeTiled, "cuTensorMapEncodeTiled",                                                              \
       (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, \
        int, int, int))                                                                                             \
    FN(TensorMapEncodeIm2col, "cuTensorMapEncodeIm2col",                                                            \
       (void *, int, unsigned, void *, const uint64_t *, const uint64_t *, const int *, const int *, unsigned,      \
        unsigned, const uint32_t *, int, int, int, int))

typedef struct tx_driver_api {
#define FN(name, exported, params) CUresult(*name) params;
    TX_DRIVER_FUNCTIONS(FN)
    TX_DRIVER_OPTIONAL(FN)
#undef FN
} tx_driver_api;

enum { TX_MAX_DEVICES = 64 };

/* The functions, after cuInit; NULL with *e filled when there is no usable driver. Cheap after the first call. */
const tx_driver_api *tx_driver(tx_call_error *e);
/* *e from a driver error; always false. */
bool tx_driver_fail(tx_call_error *e, const char *call, CUresult code);
/* Makes the primary context of the device current (retained for the life of the process). *saved: what was current and has
 * to be set again by tx_driver_leave, or NULL when the thread had no context or this one (ours then stays current). */
bool tx_driver_enter(const tx_driver_api *d, int device, CUcontext *saved, tx_call_error *e);
void tx_driver_leave(const tx_driver_api *d, CUcontext saved);
int tx_driver_version(void); /* 13000 for CUDA 13.0; 0 when unknown */

#endif
