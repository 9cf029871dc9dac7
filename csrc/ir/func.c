/* Functions, modules, and the names of scope-id bindings. SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

// clang-format off
const char *const tx_binding_names[TX_B__COUNT] = {
    [TX_B_KERNEL_CLUSTER]   = "kernel->cluster",
    [TX_B_KERNEL_CTA]       = "kernel->cta",
    [TX_B_CLUSTER_CTA]      = "cluster->cta",
    [TX_B_CTA_WARPGROUP]    = "cta->warpgroup",
    [TX_B_CTA_WARP]         = "cta->warp",
    [TX_B_WARPGROUP_WARP]   = "warpgroup->warp",
    [TX_B_WARP_THREAD]      = "warp->thread",
    [TX_B_CTA_THREAD]       = "cta->thread",
    [TX_B_WARPGROUP_THREAD] = "warpgroup->thread",
    [TX_B_CLUSTER_PAIR]     = "cluster->cta_pair",
};
const char *const tx_binding_calls[TX_B__COUNT] = {
    [TX_B_KERNEL_CLUSTER]   = "cluster_id",
    [TX_B_KERNEL_CTA]       = "cta_id",
    [TX_B_CLUSTER_CTA]      = "cta_id_in_cluster",
    [TX_B_CTA_WARPGROUP]    = "warpgroup_id",
    [TX_B_CTA_WARP]         = "warp_id",
    [TX_B_WARPGROUP_WARP]   = "warp_id_in_wg",
    [TX_B_WARP_THREAD]      = "lane_id",
    [TX_B_CTA_THREAD]       = "thread_id",
    [TX_B_WARPGROUP_THREAD] = "thread_id_in_wg",
    [TX_B_CLUSTER_PAIR]     = "cta_id_in_pair",
};
// clang-format on

tx_func *
tx_new_func(tx_ctx *c, const tx_str *name, enum tx_dialect dialect)
{
    tx_func *f = name ? tx_new(c, tx_func, 1) : NULL;

    if (!f || !(f->body = tx_seq(c, NULL, 0)))
        return NULL;
    f->ctx = c;
    f->name = name;
    f->symbol = name;
    f->dialect = (uint8_t)dialect;
    f->ret = TX_VOID;
    f->launch = tx_no_launch;
    f->span = c->span;
    return f;
}

/* Nothing said: the fields whose "not said" is not zero. */
const tx_launch tx_no_launch = {
    .cooperative = -1, .pdl = -1, .cluster_policy = -1, .mem_sync_domain = -1, .carveout = -1};

tx_module *
tx_new_module(tx_ctx *c, uint32_t nfuncs)
{
    tx_module *m = tx_new(c, tx_module, 1);

    if (!m || !(m->funcs = tx_new(c, tx_func *, nfuncs)) || !(m->names = tx_new(c, const tx_str *, nfuncs)))
        return NULL;
    m->ctx = c;
    m->nfuncs = nfuncs;
    return m;
}
