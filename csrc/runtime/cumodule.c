/* A cubin, loaded per device on demand, and the launch of its kernels. The hot path takes no lock: the state of a device is
 * published through one atomic pointer and never changes afterwards, but for the largest dynamic shared memory that a
 * kernel was allowed, which only grows (under the lock). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { DEFAULT_SMEM = 48 * 1024, CUMODULE_STACK_ARGS = 64, MAX_ATTRS = 8 + TX_MAX_LAUNCH_EXTRAS };

typedef struct cu_answer { /* how many blocks or clusters can be active, for this shape; without padding */
    uint32_t block[3], cluster[3];
    uint64_t dyn_smem;
    int value, known;
} cu_answer;
typedef struct cu_kernel {
    CUfunction fn;
    _Atomic uint64_t dyn_smem; /* bytes allowed so far */
    _Atomic int wide_cluster;  /* more than 8 CTAs allowed */
    cu_answer answer[2];       /* the last: clusters; blocks an SM. Under the lock */
} cu_kernel;
typedef struct cu_loaded { /* on one device */
    CUmodule module;
    cu_kernel kernel[];
} cu_loaded;

struct tx_cumodule {
    pthread_mutex_t lock;
    void *cubin;
    uint32_t nkernels;
    char **names;
    _Atomic(cu_loaded *) on[TX_MAX_DEVICES];
};

void
tx_cumodule_free(tx_cumodule *m)
{
    tx_call_error e;
    const tx_driver_api *d = NULL;

    if (!m)
        return;
    for (int i = 0; i < TX_MAX_DEVICES; i++) {
        cu_loaded *l = atomic_load(&m->on[i]);
        CUcontext saved;

        /* the driver may be gone at exit, or this may be a forked child: both are ignored */
        if (l && (d || (d = tx_driver(&e))) && tx_driver_enter(d, i, &saved, &e)) {
            d->ModuleUnload(l->module);
            tx_driver_leave(d, saved);
        }
        tx_free(l);
    }
    for (uint32_t i = 0; m->names && i < m->nkernels; i++)
        tx_free(m->names[i]);
    tx_free(m->names);
    tx_free(m->cubin);
    pthread_mutex_destroy(&m->lock);
    tx_free(m);
}

tx_cumodule *
tx_cumodule_new(const void *cubin, size_t nbytes, const char *const *kernel_names, uint32_t nkernels)
{
    tx_cumodule *m = tx_calloc(1, sizeof *m);

    if (!m)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    m->nkernels = nkernels;
    m->cubin = tx_malloc(nbytes);
    m->names = tx_calloc(nkernels ? nkernels : 1, sizeof *m->names);
    if (!m->cubin || !m->names)
        goto fail;
    memcpy(m->cubin, cubin, nbytes);
    for (uint32_t i = 0; i < nkernels; i++) {
        size_t n = strlen(kernel_names[i]) + 1;

        if (!(m->names[i] = tx_malloc(n)))
            goto fail;
        memcpy(m->names[i], kernel_names[i], n);
    }
    return m;
fail:
    tx_cumodule_free(m);
    return NULL;
}

/* With the device's context current and the lock held. */
static cu_loaded *
cu_load(tx_cumodule *m, const tx_driver_api *d, int device, tx_call_error *e)
{
    cu_loaded *l = tx_calloc(1, sizeof *l + m->nkernels * sizeof *l->kernel);
    const char *call = "cuModuleLoadData";
    CUresult rc;

    if (!l) {
        e->cls = TX_CALL_MEMORY_ERROR;
        snprintf(e->text, sizeof e->text, "out of memory");
        return NULL;
    }
    rc = d->ModuleLoadData(&l->module, m->cubin);
    for (uint32_t i = 0; rc == 0 && i < m->nkernels; i++) {
        call = "cuModuleGetFunction";
        rc = d->ModuleGetFunction(&l->kernel[i].fn, l->module, m->names[i]);
        if (rc == 0) {
            int fixed = 0; /* static shared memory, which counts, too */

            call = "cuFuncGetAttribute";
            rc = d->FuncGetAttribute(&fixed, CU_FUNC_SHARED_SIZE_BYTES, l->kernel[i].fn);
            atomic_store(&l->kernel[i].dyn_smem, (uint64_t)(fixed < DEFAULT_SMEM ? DEFAULT_SMEM - fixed : 0));
        }
    }
    if (rc == 0) {
        atomic_store_explicit(&m->on[device], l, memory_order_release);
        return l;
    }
    tx_driver_fail(e, call, rc);
    if (l->module)
        d->ModuleUnload(l->module);
    tx_free(l);
    return NULL;
}

static cu_loaded *
cu_loaded_on(tx_cumodule *m, const tx_driver_api *d, int device, tx_call_error *e)
{
    cu_loaded *l = atomic_load_explicit(&m->on[device], memory_order_acquire);

    if (TX_LIKELY(l != NULL))
        return l;
    pthread_mutex_lock(&m->lock);
    l = atomic_load(&m->on[device]);
    if (!l)
        l = cu_load(m, d, device, e);
    pthread_mutex_unlock(&m->lock);
    return l;
}

/* Raises what the function is allowed before a launch that needs more than the default. */
static bool
cu_allow(tx_cumodule *m, const tx_driver_api *d, cu_kernel *k, const tx_resolved_launch *l, uint32_t ncluster,
         tx_call_error *e)
{
    CUresult rc = 0;

    pthread_mutex_lock(&m->lock);
    if (l->dyn_smem > atomic_load(&k->dyn_smem)) {
        rc = l->dyn_smem > INT32_MAX
                 ? 1
                 : d->FuncSetAttribute(k->fn, CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)l->dyn_smem);
        if (rc == 0)
            atomic_store(&k->dyn_smem, l->dyn_smem);
        else {
            e->cls = TX_CALL_CUDA_ERROR;
            e->code = rc;
            snprintf(e->text, sizeof e->text,
                     "Failed to set the allowed dynamic shared memory size to %llu bytes for %s",
                     (unsigned long long)l->dyn_smem, m->names[l->kernel]);
        }
    }
    if (rc == 0 && ncluster > 8 && !atomic_load(&k->wide_cluster)) {
        rc = d->FuncSetAttribute(k->fn, CU_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
        if (rc == 0)
            atomic_store(&k->wide_cluster, 1);
        else
            tx_driver_fail(e, "cuFuncSetAttribute", rc);
    }
    pthread_mutex_unlock(&m->lock);
    return rc == 0;
}

static CUlaunchAttribute *
cu_attr(CUlaunchAttribute *at, unsigned *n, CUlaunchAttributeID id)
{
    CUlaunchAttribute *a = at + (*n)++;

    memset(a, 0, sizeof *a);
    a->id = id;
    return a;
}

static void
cu_attr_dim(CUlaunchAttribute *at, unsigned *n, CUlaunchAttributeID id, const uint32_t dim[3])
{
    CUlaunchAttribute *a = cu_attr(at, n, id);

    a->value.dim.x = dim[0], a->value.dim.y = dim[1], a->value.dim.z = dim[2];
}

static uint32_t
cu_volume(const uint32_t d[3])
{
    return d[0] ? d[0] * d[1] * d[2] : 1;
}

/* The attributes that the launch asks for (lowering.md 6.4, in its order); their number. */
static unsigned
cu_attrs(const tx_resolved_launch *l, uint32_t ncluster, CUlaunchAttribute *at)
{
    const tx_launch *a = l->attrs;
    unsigned n = 0;

    if (ncluster > 1)
        cu_attr_dim(at, &n, CU_LAUNCH_CLUSTER_DIMENSION, l->cluster);
    /* the same as the cluster itself says nothing; older drivers do not know the attribute */
    if (cu_volume(l->preferred) > 1 && memcmp(l->preferred, l->cluster, sizeof l->cluster) != 0 &&
        tx_driver_version() >= 12080)
        cu_attr_dim(at, &n, CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION, l->preferred);
    for (uint32_t i = 0; i < l->nextras; i++)
        memcpy(cu_attr(at, &n, (CUlaunchAttributeID)l->extras[i].id)->value.size, l->extras[i].value,
               sizeof l->extras[i].value);
    if (!a)
        return n;
    if (a->pdl > 0)
        cu_attr(at, &n, CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION)->value.flag = 1;
    if (a->cooperative > 0)
        cu_attr(at, &n, CU_LAUNCH_COOPERATIVE)->value.flag = 1;
    if (a->cluster_policy >= 0)
        cu_attr(at, &n, CU_LAUNCH_CLUSTER_SCHEDULING_POLICY)->value.flag = a->cluster_policy;
    if (a->mem_sync_domain >= 0)
        cu_attr(at, &n, CU_LAUNCH_MEM_SYNC_DOMAIN)->value.flag = a->mem_sync_domain;
    if (a->carveout >= 0 && tx_driver_version() >= 12080) /* a hint, which older drivers do not know */
        cu_attr(at, &n, CU_LAUNCH_PREFERRED_SMEM_CARVEOUT)->value.flag = a->carveout;
    if (l->priority)
        cu_attr(at, &n, CU_LAUNCH_PRIORITY)->value.flag = (int)l->priority;
    return n;
}

/* Pointers to the argument values. Integers and pointers lie in the low bytes of the 8 (little-endian); floats narrower
 * than 64 bits are converted into `room`. */
static void
cu_params(const tx_resolved_launch *l, const tx_dtype *types, void **params, uint64_t *room)
{
    for (uint32_t i = 0; i < l->nvisible; i++) {
        tx_dtype t = types[i];

        if (tx_kind(t) == TX_KIND_TENSORMAP) { /* its 128 bytes themselves */
            params[i] = l->args[i].v.p;
            continue;
        }
        params[i] = (void *)(uintptr_t)&l->args[i].v;
        if (!tx_is_float(t) || tx_kind(t) == TX_KIND_F64)
            continue;
        if (tx_kind(t) == TX_KIND_F32) {
            float f = (float)l->args[i].v.f;
            memcpy(&room[i], &f, sizeof f);
        } else {
            room[i] = tx_encode(t, l->args[i].v.f);
        }
        params[i] = &room[i];
    }
}

static bool
cu_launch(const tx_driver_api *d, cu_kernel *k, const tx_resolved_launch *l, uint32_t ncluster, void **params,
          uint32_t times, const char *name, tx_call_error *e)
{
    CUlaunchAttribute attrs[MAX_ATTRS];
    CUlaunchConfig config = {
        l->grid[0],          l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], (unsigned)l->dyn_smem,
        (CUstream)l->stream, attrs,      0};
    CUresult rc = 0;

    config.numAttrs = cu_attrs(l, ncluster, attrs);
    for (uint32_t i = 0; i < times && rc == 0; i++)
        rc = d->LaunchKernelEx(&config, k->fn, params, NULL);
    if (TX_LIKELY(rc == 0))
        return true;
    const char *why = NULL;
    if (d->GetErrorName(rc, &why) != 0 || !why)
        why = "unknown error";
    e->cls = TX_CALL_CUDA_ERROR;
    e->code = rc;
    snprintf(
        e->text, sizeof e->text,
        "CUDALaunch Error: %s\n  kernel %s, grid=(%u, %u, %u), block=(%u, %u, %u), %llu bytes of dynamic shared memory",
        why, name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
        (unsigned long long)l->dyn_smem);
    return false;
}

bool
tx_cumodule_repeat(tx_cumodule *m, const tx_resolved_launch *l, const tx_dtype *arg_types, uint32_t n, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    void *params_stack[CUMODULE_STACK_ARGS], **params = params_stack;
    uint64_t room_stack[CUMODULE_STACK_ARGS], *room = room_stack;
    uint32_t ncluster = cu_volume(l->cluster);
    CUcontext saved = NULL;
    cu_loaded *loaded;
    cu_kernel *k;
    bool ok = false;

    if (!d)
        return false;
    if ((uint64_t)l->grid[0] * l->grid[1] * l->grid[2] == 0)
        return true; /* nothing to do: no launch (lowering.md 6.4) */
    if (TX_NEVER(l->kernel >= m->nkernels) || !tx_driver_enter(d, l->device_id, &saved, e))
        return false;
    if (!(loaded = cu_loaded_on(m, d, l->device_id, e)))
        goto out;
    k = &loaded->kernel[l->kernel];
    if (TX_UNLIKELY(l->dyn_smem > atomic_load_explicit(&k->dyn_smem, memory_order_relaxed) ||
                    (ncluster > 8 && !atomic_load_explicit(&k->wide_cluster, memory_order_relaxed))) &&
        !cu_allow(m, d, k, l, ncluster, e))
        goto out;
    if (l->nvisible > CUMODULE_STACK_ARGS) {
        params = tx_calloc(l->nvisible, sizeof *params);
        room = tx_calloc(l->nvisible, sizeof *room);
        if (!params || !room) {
            e->cls = TX_CALL_MEMORY_ERROR;
            snprintf(e->text, sizeof e->text, "out of memory");
            goto out;
        }
    }
    cu_params(l, arg_types, params, room);
    ok = cu_launch(d, k, l, ncluster, params, n, m->names[l->kernel], e);
out:
    if (params != params_stack)
        tx_free(params);
    if (room != room_stack)
        tx_free(room);
    tx_driver_leave(d, saved);
    return ok;
}

/* With the device's context current. The driver's answer is kept: kernels are launched over and over in one shape. */
static bool
cu_occupancy(const tx_driver_api *d, tx_cumodule *m, cu_kernel *k, const tx_resolved_launch *l, bool blocks, int *out,
             tx_call_error *e)
{
    CUlaunchAttribute attr;
    unsigned nattrs = 0;
    CUlaunchConfig config = {l->cluster[0], l->cluster[1],         l->cluster[2], l->block[0], l->block[1],
                             l->block[2],   (unsigned)l->dyn_smem, NULL,          &attr,       1};
    cu_answer now = {.block = {l->block[0], l->block[1], l->block[2]},
                     .cluster = {l->cluster[0], l->cluster[1], l->cluster[2]},
                     .dyn_smem = l->dyn_smem,
                     .known = true};
    bool single =
        blocks || cu_volume(l->cluster) == 1; /* an SM's blocks, of which it knows more than of clusters of one */
    int nsms = 1;
    CUresult rc;

    pthread_mutex_lock(&m->lock);
    *out = k->answer[blocks].value;
    now.value = *out;
    if (memcmp(&now, &k->answer[blocks], sizeof now) == 0) {
        pthread_mutex_unlock(&m->lock);
        return true;
    }
    pthread_mutex_unlock(&m->lock);
    cu_attr_dim(&attr, &nattrs, CU_LAUNCH_CLUSTER_DIMENSION, l->cluster);
    rc = single ? d->OccupancyMaxActiveBlocks(out, k->fn, (int)cu_volume(l->block), l->dyn_smem)
                : d->OccupancyMaxActiveClusters(out, k->fn, &config);
    if (rc != 0)
        return tx_driver_fail(
            e, single ? "cuOccupancyMaxActiveBlocksPerMultiprocessor" : "cuOccupancyMaxActiveClusters", rc);
    if (!blocks && single && !tx_driver_attribute(l->device_id, CU_DEVICE_SM_COUNT, &nsms, e))
        return false;
    now.value = *out *= nsms;
    pthread_mutex_lock(&m->lock);
    k->answer[blocks] = now;
    pthread_mutex_unlock(&m->lock);
    return true;
}

bool
tx_cumodule_occupancy(tx_cumodule *m, const tx_resolved_launch *l, bool blocks, int *out, tx_call_error *e)
{
    const tx_driver_api *d = tx_driver(e);
    CUcontext saved = NULL;
    cu_loaded *loaded;
    bool ok = false;

    if (!d || TX_NEVER(l->kernel >= m->nkernels) || !tx_driver_enter(d, l->device_id, &saved, e))
        return false;
    if ((loaded = cu_loaded_on(m, d, l->device_id, e)) != NULL) {
        cu_kernel *k = &loaded->kernel[l->kernel];
        ok = cu_allow(m, d, k, l, cu_volume(l->cluster), e) && cu_occupancy(d, m, k, l, blocks, out, e);
    }
    tx_driver_leave(d, saved);
    return ok;
}

bool
tx_cumodule_launch(tx_cumodule *m, const tx_resolved_launch *l, const tx_dtype *arg_types, tx_call_error *e)
{
    return tx_cumodule_repeat(m, l, arg_types, 1, e);
}
