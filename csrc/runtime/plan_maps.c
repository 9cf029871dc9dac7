/* Tensor maps during a call: checks and encodes them into the call's slots, and hands them to kernels. plan_tensormap.c made
 * the steps. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "runtime/plan.h"

static bool
map_fault(plan_call *k, const plan_encode *m, const char *text)
{
    return tx_plan_fault(k, TX_CALL_VALUE_ERROR, "Invalid tensor map %s when calling:\n  `%s`,\n  %s", m->name,
                         k->p->signature, text);
}

/* The driver takes half a microsecond for a map, we a twentieth. So it is asked until it has once given the bytes that we
 * would: they depend on type and modes, which a step has fixed, and on nothing else but the numbers that fill the fields. */
static bool
map_agreed(const plan_encode *m, int device)
{
    return device < 64 && atomic_load_explicit(&m->agreed, memory_order_relaxed) >> device & 1;
}

static void
map_compare(const plan_encode *m, int device, const tx_tensormap *t, const uint8_t *bytes)
{
    uint8_t ours[TX_TM_BYTES];
    bool fixed = m->map.interleave != TX_TM_UNKNOWN && m->map.swizzle != TX_TM_UNKNOWN && m->map.l2 != TX_TM_UNKNOWN &&
                 m->map.oob != TX_TM_UNKNOWN;

    tx_tensormap_encode(t, ours);
    if (fixed && device >= 0 && device < 64 && memcmp(ours, bytes, sizeof ours) == 0)
        atomic_fetch_or_explicit(&((plan_encode *)(uintptr_t)m)->agreed, (uint64_t)1 << device, memory_order_relaxed);
}

bool
tx_plan_encode(plan_call *k, const plan_encode *m)
{
    tx_tensormap t = m->map;
    const tx_arg *a = &k->args[m->param];
    uint8_t *bytes = k->maps + (size_t)m->slot * TX_TM_BYTES;
    char text[256];
    int arch = 0, device = k->device_id;

    k->slot[m->slot] = (plan_slot){.by = m};
    for (uint32_t i = 0; i < m->nfills; i++)
        memcpy((char *)&t + m->fills[i].at, &k->reg[m->fills[i].reg].i, sizeof(int64_t));
    for (int d = 0; d < t.rank; d++)
        k->slot[m->slot].empty |= t.dim[d] == 0;
    if (k->slot[m->slot].empty)
        return true; /* told if a kernel is to run with it */
    t.address = a->kind == TX_ARG_NONE ? 0 : (uint64_t)(uintptr_t)a->v.p;
    if (m->offset != PLAN_NO_REG)
        t.address += (uint64_t)k->reg[m->offset].i;
    t.address_known = true;
    if (k->device_type == TX_DEV_CUDA &&
        ((device < 0 && !tx_driver_current_device(&device, k->e)) || !tx_driver_arch(device, &arch, k->e)))
        return false;
    if (!tx_tensormap_check(&t, arch, false, text, sizeof text))
        return map_fault(k, m, text);
    if (k->device_type != TX_DEV_CUDA || map_agreed(m, device)) {
        tx_tensormap_encode(&t, bytes);
        return true;
    }
    if (tx_driver_tensormap(device, &t, bytes, k->e)) {
        map_compare(m, device, &t, bytes);
        return true;
    }
    snprintf(text, sizeof text, "%.255s", k->e->text);
    map_fault(k, m, text);
    k->e->cls = TX_CALL_CUDA_ERROR;
    return false;
}

/* A kernel is to run with argument i, a map of this function. */
bool
tx_plan_map_ready(plan_call *k, const plan_launch *l, uint32_t i)
{
    const plan_slot *s = &k->slot[l->args[i].param];

    if (!s->by)
        return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                             "Tensor map #%u of %s is not encoded when calling:\n  `%s`,\n  expected "
                             "T.call_packed(\"runtime.cuTensorMapEncodeTiled\", ...) before the launch",
                             i, l->name, k->p->signature);
    return !s->empty || map_fault(k, s->by, "it is over a tensor without elements, and the kernel would run on it");
}

/* A tensor map as a kernel's argument: one that this call has encoded, or a ready one. */
void
tx_plan_map_operand(plan_call *k, const plan_operand *o, tx_emu_arg *to)
{
    const tx_arg *a = &k->args[o->kind == PLAN_MAP ? k->slot[o->param].by->param : o->param];

    to->v.p = o->kind == PLAN_MAP ? k->maps + (size_t)o->param * TX_TM_BYTES : a->v.p;
    to->nbytes = TX_TM_BYTES;
    to->readonly = true;
    to->target_readonly = a->readonly;
    if (a->kind == TX_ARG_MAP) {
        to->target = (void *)(uintptr_t)a->dims[TX_MAP_TARGET];
        to->target_nbytes = (size_t)a->dims[TX_MAP_NBYTES];
        to->target_before = (size_t)a->dims[TX_MAP_BEFORE];
    } else if (o->kind == PLAN_MAP && a->kind == TX_ARG_TENSOR) {
        to->target = a->v.p;
        to->target_name = k->p->params[k->slot[o->param].by->param].buffer_name;
        tx_arg_reach(a, &to->target_nbytes, &to->target_before);
    }
}
