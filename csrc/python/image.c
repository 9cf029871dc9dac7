/* What an executable runs: the kernels of a lowered module for one back end, and the launch plan of each host function.
 * Made once, shared by the executables of a module, immutable. Refers to no context. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

static char *
copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = tx_malloc(n);

    if (copy)
        memcpy(copy, text, n);
    return copy;
}

void
tx_py_image_drop(tx_py_image *m)
{
    if (!m || --m->refs > 0)
        return;
    for (uint32_t i = 0; i < m->nkernels; i++) {
        if (m->kernel_names)
            tx_free(m->kernel_names[i]);
        if (m->arg_types)
            tx_free(m->arg_types[i]);
        if (m->programs)
            tx_emu_free(m->programs[i]);
    }
    for (uint32_t i = 0; i < m->nplans; i++) {
        if (m->plans)
            tx_plan_free(m->plans[i]);
        if (m->plan_names)
            tx_free(m->plan_names[i]);
    }
    tx_cumodule_free(m->cuda);
    tx_free(m->kernel_names);
    tx_free(m->arg_types);
    tx_free(m->programs);
    tx_free(m->plans);
    tx_free(m->plan_names);
    tx_free(m->target);
    tx_free(m);
}

/* A host function that can be called: not a kernel, nor a helper of one. */
static bool
is_host(const tx_func *f)
{
    return (f->flags & (TX_FUNC_KERNEL | TX_FUNC_DEVICE)) == 0;
}

static bool
add_kernel(tx_py_image *m, tx_ctx *c, const tx_func *f)
{
    uint32_t k = m->nkernels++;

    m->kernel_names[k] = copy_text(f->symbol ? f->symbol->text : f->name->text);
    m->arg_types[k] = tx_calloc(f->nparams ? f->nparams : 1, sizeof **m->arg_types);
    if (!m->kernel_names[k] || !m->arg_types[k])
        return false;
    for (uint32_t i = 0; i < f->nparams; i++)
        m->arg_types[k][i] =
            f->params[i].flags & TX_PARAM_TENSORMAP ? TX_DTYPE(TX_KIND_TENSORMAP, 1) : f->params[i].var->dtype;
    return m->device_type == TX_DEV_CUDA || (m->programs[k] = tx_emu_compile(c, f)) != NULL;
}

static bool
add_plan(tx_py_image *m, tx_ctx *c, const tx_module *lowered, uint32_t i)
{
    uint32_t p = m->nplans++;

    m->plan_names[p] = copy_text(lowered->names[i] ? lowered->names[i]->text : lowered->funcs[i]->name->text);
    return m->plan_names[p] && (m->plans[p] = tx_plan_compile(c, lowered, lowered->funcs[i])) != NULL;
}

static bool
image_fill(tx_py_image *m, tx_ctx *c, const tx_module *lowered, const void *cubin, size_t nbytes)
{
    uint32_t n = lowered->nfuncs ? lowered->nfuncs : 1;

    m->kernel_names = tx_calloc(n, sizeof *m->kernel_names);
    m->arg_types = tx_calloc(n, sizeof *m->arg_types);
    m->programs = tx_calloc(n, sizeof *m->programs);
    m->plans = tx_calloc(n, sizeof *m->plans);
    m->plan_names = tx_calloc(n, sizeof *m->plan_names);
    if (!m->target || !m->kernel_names || !m->arg_types || !m->programs || !m->plans || !m->plan_names)
        return false;
    for (uint32_t i = 0; i < lowered->nfuncs; i++) {
        const tx_func *f = lowered->funcs[i];
        if (f->flags & TX_FUNC_KERNEL ? !add_kernel(m, c, f) : is_host(f) && !add_plan(m, c, lowered, i))
            return false;
    }
    if (m->device_type != TX_DEV_CUDA || m->nkernels == 0)
        return true;
    m->cuda = tx_cumodule_new(cubin, nbytes, (const char *const *)m->kernel_names, m->nkernels);
    return m->cuda != NULL;
}

tx_py_image *
tx_py_image_new(const tx_py_module *lowered, const char *target, const void *cubin, size_t nbytes)
{
    tx_py_image *m = tx_calloc(1, sizeof *m);

    if (!m)
        return (tx_py_image *)PyErr_NoMemory();
    m->refs = 1;
    m->device_type = strncmp(target, "cuda", 4) == 0 ? TX_DEV_CUDA : TX_DEV_CPU;
    m->target = copy_text(target);
    if (!image_fill(m, lowered->ctx->c, lowered->m, cubin, nbytes)) {
        tx_py_image_drop(m);
        return tx_py_raise(lowered->ctx);
    }
    if (m->nkernels > 0 && m->device_type == TX_DEV_CUDA && !cubin) {
        tx_py_image_drop(m);
        PyErr_SetString(PyExc_ValueError, "an executable for CUDA needs a cubin");
        return NULL;
    }
    return m;
}
