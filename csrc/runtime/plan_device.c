/* What the host half may ask of the device of the call. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver.h"
#include "runtime/plan.h"

enum { EMULATED_SMS = 8 };
/* the arguments of TX_ASK_CLUSTERS and TX_ASK_BLOCKS */
enum { ASK_KERNEL, ASK_BLOCK, ASK_CLUSTER = ASK_BLOCK + 3, ASK_SMEM = ASK_CLUSTER + 3, ASK__COUNT };

const plan_device *
tx_plan_device(const char *name)
{
    static const plan_device known[] = {
        {"runtime.device_sm_count", CU_DEVICE_SM_COUNT, EMULATED_SMS},
        {"runtime.device_l2_bytes", CU_DEVICE_L2_BYTES, 1 << 22},
        {"runtime.device_block_smem_bytes", CU_DEVICE_BLOCK_SMEM_BYTES, 232448},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return &known[i];
    return NULL;
}

bool
tx_plan_asks(tx_ctx *c, const tx_module *m, const tx_node *n, plan_packed *out)
{
    const char *name = n->u.call->name->text;

    if (strcmp(name, TX_ASK_CLUSTERS) != 0 && strcmp(name, TX_ASK_BLOCKS) != 0)
        return true;
    out->occupancy = true;
    for (uint32_t i = 0; n->nargs == ASK__COUNT && n->arg[ASK_KERNEL]->op == TX_OP_STR && i < m->nfuncs; i++) {
        if (m->funcs[i]->flags & TX_FUNC_KERNEL && m->funcs[i]->symbol == n->arg[ASK_KERNEL]->u.s)
            return true;
        out->kernel += (m->funcs[i]->flags & TX_FUNC_KERNEL) != 0;
    }
    return tx_fail(c, n->span, TX_E_OCCUPANCY_NONE) != NULL;
}

/* The emulator has 8 SMs and no memory or registers to share out: each holds one block. */
static int
emulated_answer(const tx_resolved_launch *l, bool blocks)
{
    uint32_t cluster = l->cluster[0] * l->cluster[1] * l->cluster[2];

    return blocks ? 1 : cluster < EMULATED_SMS ? (int)(EMULATED_SMS / cluster) : 1;
}

bool
tx_plan_answer(plan_call *k, const plan_packed *q, int64_t *value)
{
    static const uint32_t most[ASK__COUNT] = {0,         1024, 1024, 64, TX_MAX_CLUSTER, TX_MAX_CLUSTER, TX_MAX_CLUSTER,
                                              UINT32_MAX};
    static const char *const what[ASK__COUNT] = {"",          "block.x",   "block.y",   "block.z",
                                                 "cluster.x", "cluster.y", "cluster.z", "dynamic shared memory"};
    tx_resolved_launch l = {.kernel = q->kernel, .device_id = k->device_id};
    bool blocks = strcmp(q->name, TX_ASK_BLOCKS) == 0;
    int n = 0;

    for (uint32_t i = ASK_BLOCK; i < ASK__COUNT; i++) {
        int64_t v = k->reg[q->args[i].reg].i;
        if (v < (i < ASK_SMEM) || v > most[i])
            return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                                 "%s is %lld where \"%s\" is asked when calling:\n  `%s`,\n  expected %d..%u", what[i],
                                 (long long)v, q->name + sizeof "runtime", k->p->signature, i < ASK_SMEM, most[i]);
        if (i < ASK_CLUSTER)
            l.block[i - ASK_BLOCK] = (uint32_t)v;
        else if (i < ASK_SMEM)
            l.cluster[i - ASK_CLUSTER] = (uint32_t)v;
        else
            l.dyn_smem = (uint64_t)v;
    }
    if (!k->host->occupancy)
        n = emulated_answer(&l, blocks);
    else if (!k->host->occupancy(k->host->self, &l, blocks, &n, k->e))
        return false;
    if (n < 1)
        return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                             "the device has no room for a block%s of %u x %u x %u threads with %llu bytes of dynamic "
                             "shared memory when calling:\n  `%s`",
                             blocks ? "" : ", in clusters as asked,", l.block[0], l.block[1], l.block[2],
                             (unsigned long long)l.dyn_smem, k->p->signature);
    *value = n;
    return true;
}

bool
tx_plan_device_value(const plan_device *d, int device_type, int device, int *value, tx_call_error *e)
{
    *value = d->emulated;
    return device_type != TX_DEV_CUDA || ((device >= 0 || tx_driver_current_device(&device, e)) &&
                                          tx_driver_attribute(device, d->attribute, value, e));
}
