/* The CUDA driver, opened on first use and never before, so that importing, parsing and emulating are safe in a process that
 * forks later. A child of a process that used CUDA cannot use it: that is said clearly and not left to the driver.
 * Contexts: work is done in the primary context of the device, as PyTorch's runtime does. A thread that has another
 * context current gets it back afterwards; one that has none keeps ours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static struct driver_state {
    pthread_mutex_t lock;
    _Atomic int ready;  /* 1: api may be used */
    _Atomic int forked; /* 1: this process is a child of one that had used CUDA */
    void *lib;
    int version, ndevices;
    tx_driver_api api;
    _Atomic(CUcontext) primary[TX_MAX_DEVICES];
    _Atomic int arch[TX_MAX_DEVICES]; /* 0: not asked yet */
} tx_driver_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const driver_sonames[] = {"libcuda.so.1", "libcuda.so"};

static void
driver_child(void)
{
    /* runs in the child after fork(): only this thread is left */
    if (atomic_load(&tx_driver_state.ready))
        atomic_store(&tx_driver_state.forked, 1);
}

static bool
driver_say(tx_call_error *e, int code, const char *text, const char *more)
{
    e->cls = TX_CALL_CUDA_ERROR;
    e->code = code;
    snprintf(e->text, sizeof e->text, text, more);
    return false;
}

bool
tx_driver_fail(tx_call_error *e, const char *call, CUresult code)
{
    const tx_driver_api *d = &tx_driver_state.api;
    const char *name = NULL, *text = NULL;

    if (!d->GetErrorName || d->GetErrorName(code, &name) != 0)
        name = NULL;
    if (!d->GetErrorString || d->GetErrorString(code, &text) != 0)
        text = NULL;
    e->cls = TX_CALL_CUDA_ERROR;
    e->code = code;
    snprintf(e->text, sizeof e->text, "%s failed with error: %s%s%s%s", call, name ? name : "unknown error",
             text ? " (" : "", text ? text : "", text ? ")" : "");
    return false;
}

static bool
driver_bind(struct driver_state *s, void *lib, tx_call_error *e)
{
    const struct {
        const char *name;
        void *slot;
    } want[] =
        {
#define FN(name, exported, params) {exported, &s->api.name},
            TX_DRIVER_FUNCTIONS(FN)},
      may_lack[] = {TX_DRIVER_OPTIONAL(FN)
#undef FN
      };

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        void *fn = dlsym(lib, want[i].name);

        if (!fn)
            return driver_say(e, 0, "the CUDA driver is too old: it has no %s; CUDA 11.8's driver or later is needed",
                              want[i].name);
        memcpy(want[i].slot, &fn, sizeof fn);
    }
    for (size_t i = 0; i < sizeof may_lack / sizeof *may_lack; i++) {
        void *fn = dlsym(lib, may_lack[i].name);

        memcpy(may_lack[i].slot, &fn, sizeof fn);
    }
    return true;
}

static bool
driver_open(struct driver_state *s, tx_call_error *e)
{
    CUresult rc;

    for (size_t i = 0; !s->lib && i < sizeof driver_sonames / sizeof *driver_sonames; i++)
        s->lib = dlopen(driver_sonames[i], RTLD_NOW | RTLD_LOCAL);
    if (!s->lib)
        return driver_say(e, 0, "there is no CUDA driver here (libcuda.so.1 cannot be opened)%s",
                          "; use target=\"cpu\" for the emulator");
    if (!driver_bind(s, s->lib, e))
        return false;
    rc = s->api.Init(0);
    if (rc == CU_ERROR_NO_DEVICE)
        return driver_say(e, rc, "there is no CUDA device here%s", "; use target=\"cpu\" for the emulator");
    if (rc != 0)
        return tx_driver_fail(e, "cuInit", rc);
    if ((rc = s->api.DeviceGetCount(&s->ndevices)) != 0)
        return tx_driver_fail(e, "cuDeviceGetCount", rc);
    if (s->ndevices > TX_MAX_DEVICES)
        s->ndevices = TX_MAX_DEVICES;
    if (s->api.DriverGetVersion(&s->version) != 0)
        s->version = 0;
    pthread_atfork(NULL, NULL, driver_child);
    return true;
}

const tx_driver_api *
tx_driver(tx_call_error *e)
{
    struct driver_state *s = &tx_driver_state;
    bool ok;

    if (TX_UNLIKELY(atomic_load_explicit(&s->forked, memory_order_relaxed))) {
        driver_say(e, 3, "CUDA was in use when this process was forked, and cannot be used in the child%s",
                   "; start processes with the \"spawn\" or \"forkserver\" method");
        return NULL;
    }
    if (TX_LIKELY(atomic_load_explicit(&s->ready, memory_order_acquire)))
        return &s->api;
    pthread_mutex_lock(&s->lock);
    ok = atomic_load(&s->ready) || driver_open(s, e);
    if (ok)
        atomic_store(&s->ready, 1);
    pthread_mutex_unlock(&s->lock);
    return ok ? &s->api : NULL;
}

int
tx_driver_version(void)
{
    return tx_driver_state.version;
}

static CUcontext
driver_primary(const tx_driver_api *d, int device, tx_call_error *e)
{
    struct driver_state *s = &tx_driver_state;
    CUcontext ctx;
    CUdevice dev;
    CUresult rc;

    if (device < 0 || device >= s->ndevices) {
        char text[64];

        snprintf(text, sizeof text, "%d of %d", device, s->ndevices);
        driver_say(e, 101, "there is no CUDA device %s", text);
        return NULL;
    }
    ctx = atomic_load_explicit(&s->primary[device], memory_order_acquire);
    if (TX_LIKELY(ctx != NULL))
        return ctx;
    pthread_mutex_lock(&s->lock);
    ctx = atomic_load(&s->primary[device]);
    if (!ctx) {
        rc = d->DeviceGet(&dev, device);
        if (rc == 0)
            rc = d->DevicePrimaryCtxRetain(&ctx, dev);
        if (rc != 0)
            tx_driver_fail(e, "cuDevicePrimaryCtxRetain", rc), ctx = NULL;
        else
            atomic_store_explicit(&s->primary[device], ctx, memory_order_release);
    }
    pthread_mutex_unlock(&s->lock);
    return ctx;
}

bool
tx_driver_enter(const tx_driver_api *d, int device, CUcontext *saved, tx_call_error *e)
{
    CUcontext want = driver_primary(d, device, e), now = NULL;
    CUresult rc;

    *saved = NULL;
    if (!want)
        return false;
    rc = d->CtxGetCurrent(&now);
    if (rc == 0 && now != want && (rc = d->CtxSetCurrent(want)) == 0)
        *saved = now;
    return rc == 0 ? true : tx_driver_fail(e, "cuCtxSetCurrent", rc);
}

void
tx_driver_leave(const tx_driver_api *d, CUcontext saved)
{
    if (saved)
        d->CtxSetCurrent(saved);
}

/* ---- questions ------------------------------------------------------------------------------------------------------ */

bool
tx_driver_available(char *why, size_t n)
{
    tx_call_error e;

    if (tx_driver(&e))
        return true;
    if (n)
        snprintf(why, n, "%s", e.text);
    return false;
}

int
tx_driver_device_count(void)
{
    tx_call_error e;

    return tx_driver(&e) ? tx_driver_state.ndevices : 0;
}

bool
tx_driver_arch(int device, int *arch, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    int major = 0, minor = 0;
    CUdevice dev;
    CUresult rc;

    if (!d)
        return false;
    if (device >= 0 && device < TX_MAX_DEVICES && (*arch = atomic_load(&tx_driver_state.arch[device])) != 0)
        return true;
    rc = d->DeviceGet(&dev, device);
    if (rc == 0)
        rc = d->DeviceGetAttribute(&major, CU_DEVICE_COMPUTE_CAPABILITY_MAJOR, dev);
    if (rc == 0)
        rc = d->DeviceGetAttribute(&minor, CU_DEVICE_COMPUTE_CAPABILITY_MINOR, dev);
    *arch = major * 10 + minor;
    if (rc == 0 && device < TX_MAX_DEVICES)
        atomic_store(&tx_driver_state.arch[device], *arch);
    return rc == 0 ? true : tx_driver_fail(e, "cuDeviceGetAttribute", rc);
}

bool
tx_driver_attribute(int device, int attribute, int *value, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUdevice dev;
    CUresult rc;

    if (!d)
        return false;
    rc = d->DeviceGet(&dev, device);
    if (rc == 0)
        rc = d->DeviceGetAttribute(value, attribute, dev);
    return rc == 0 ? true : tx_driver_fail(e, "cuDeviceGetAttribute", rc);
}

/* Device of the thread's context; 0 when it has none. */
bool
tx_driver_current_device(int *device, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUdevice dev = 0;
    CUresult rc;

    if (!d)
        return false;
    rc = d->CtxGetDevice(&dev);
    *device = rc == 0 ? dev : 0;
    return rc == 0 || rc == CU_ERROR_INVALID_CONTEXT ? true : tx_driver_fail(e, "cuCtxGetDevice", rc);
}

bool
tx_driver_pointer_device(const void *p, int *device, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUresult rc;

    if (!d)
        return false;
    rc = d->PointerGetAttribute(device, CU_POINTER_DEVICE_ORDINAL, (CUdeviceptr)(uintptr_t)p);
    return rc == 0 ? true : tx_driver_fail(e, "cuPointerGetAttribute", rc);
}

/* ---- tensor maps ------------------------------------------------------------------------------------------------------ */

static CUresult
driver_encode(const tx_driver_api *d, const tx_tensormap *t, void *bytes)
{
    uint64_t dim[TX_TM_RANK], stride[TX_TM_RANK];
    uint32_t box[TX_TM_RANK], estride[TX_TM_RANK];
    int lower[TX_TM_RANK] = {0}, upper[TX_TM_RANK] = {0};
    void *address = (void *)(uintptr_t)t->address;

    for (int i = 0; i < t->rank; i++) {
        dim[i] = (uint64_t)t->dim[i];
        box[i] = (uint32_t)t->box[i];
        estride[i] = (uint32_t)t->estride[i];
        if (i > 0)
            stride[i - 1] = (uint64_t)t->stride[i];
        if (i < 3) {
            lower[i] = (int)t->lower[i];
            upper[i] = (int)t->upper[i];
        }
    }
    if (t->im2col)
        return d->TensorMapEncodeIm2col(bytes, (int)t->dtype, (unsigned)t->rank, address, dim, stride, lower, upper,
                                        (unsigned)t->channels, (unsigned)t->pixels, estride, (int)t->interleave,
                                        (int)t->swizzle, (int)t->l2, (int)t->oob);
    return d->TensorMapEncodeTiled(bytes, (int)t->dtype, (unsigned)t->rank, address, dim, stride, box, estride,
                                   (int)t->interleave, (int)t->swizzle, (int)t->l2, (int)t->oob);
}

bool
tx_driver_tensormap(int device, const tx_tensormap *t, void *bytes, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    const char *name = t->im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
    CUcontext saved;
    CUresult rc;

    if (!d)
        return false;
    if (!d->TensorMapEncodeTiled || !d->TensorMapEncodeIm2col)
        return driver_say(e, 0, "the CUDA driver is too old: it has no %s; CUDA 12.0's driver or later is needed",
                          name);
    if (!tx_driver_enter(d, device, &saved, e))
        return false;
    rc = driver_encode(d, t, bytes);
    tx_driver_leave(d, saved);
    return rc == 0 ? true : tx_driver_fail(e, name, rc);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

bool
tx_cumem_alloc(int device, size_t nbytes, void **out, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUdeviceptr p = 0;
    CUcontext saved;
    CUresult rc;

    if (!d || !tx_driver_enter(d, device, &saved, e))
        return false;
    rc = d->MemAlloc(&p, nbytes ? nbytes : 1);
    tx_driver_leave(d, saved);
    *out = (void *)(uintptr_t)p;
    return rc == 0 ? true : tx_driver_fail(e, "cuMemAlloc", rc);
}

void
tx_cumem_free(int device, void *p)
{
    tx_call_error e;
    const tx_driver_api *d = tx_driver(&e);
    CUcontext saved;

    if (!p || !d || !tx_driver_enter(d, device, &saved, &e))
        return;
    d->MemFree((CUdeviceptr)(uintptr_t)p);
    tx_driver_leave(d, saved);
}

bool
tx_cumem_copy(int device, void *dst, const void *src, size_t nbytes, bool to_device, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUcontext saved;
    CUresult rc;

    if (!d || !tx_driver_enter(d, device, &saved, e))
        return false;
    if (to_device)
        rc = nbytes ? d->MemcpyHtoD((CUdeviceptr)(uintptr_t)dst, src, nbytes) : 0;
    else
        rc = nbytes ? d->MemcpyDtoH(dst, (CUdeviceptr)(uintptr_t)src, nbytes) : 0;
    tx_driver_leave(d, saved);
    return rc == 0 ? true : tx_driver_fail(e, to_device ? "cuMemcpyHtoD" : "cuMemcpyDtoH", rc);
}

bool
tx_cu_synchronize(int device, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUcontext saved;
    CUresult rc;

    if (!d || !tx_driver_enter(d, device, &saved, e))
        return false;
    rc = d->CtxSynchronize();
    tx_driver_leave(d, saved);
    return rc == 0 ? true : tx_driver_fail(e, "cuCtxSynchronize", rc);
}
