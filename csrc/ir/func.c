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

/* ---- calls between the functions of a module ----------------------------------------------------------------------- */

typedef struct module_link {
    tx_visitor v;
    tx_ctx *c;
    TX_VEC(tx_func *) funcs;
    TX_VEC(const tx_str *) names;
    TX_VEC(uint8_t) state; /* of the search for circles: 0 not seen, 1 open, 2 done */
    bool failed;
} module_link;

static tx_func *
linked_member(const module_link *k, const tx_str *name, uint32_t *index)
{
    for (*index = 0; *index < k->names.n; ++*index)
        if (k->names.at[*index] == name)
            return k->funcs.at[*index];
    return NULL;
}

static bool
link_call(tx_visitor *v, const tx_node *n)
{
    module_link *k = (module_link *)v;
    tx_call *call;
    tx_func *f;
    uint32_t index;

    if (n->op != TX_OP_CALL_FUNC || k->failed)
        return !k->failed;
    call = (tx_call *)n->u.call; /* the one field that is known only when the module is made */
    f = linked_member(k, call->name, &index);
    if (!f && call->func) {
        f = (tx_func *)call->func;
        k->failed = !tx_push(k->c, &k->funcs, f) || !tx_push(k->c, &k->names, call->name);
    }
    if (!f) {
        tx_fail(k->c, n->span, TX_E_CALL_UNKNOWN, call->name->text);
        k->failed = true;
    }
    call->func = f;
    return !k->failed;
}

static bool find_circle(module_link *k, uint32_t i);

static bool
follow_call(tx_visitor *v, const tx_node *n)
{
    module_link *k = (module_link *)v;
    uint32_t index;

    if (n->op == TX_OP_CALL_FUNC && !k->failed && linked_member(k, n->u.call->name, &index)) {
        if (k->state.at[index] == 1) {
            tx_fail(k->c, n->span, TX_E_CALL_CIRCLE, n->u.call->name->text);
            k->failed = true;
        } else if (k->state.at[index] == 0) {
            k->failed |= !find_circle(k, index);
        }
    }
    return !k->failed;
}

/* Recursion as deep as the longest way of calls; false: recorded. */
static bool
find_circle(module_link *k, uint32_t i)
{
    k->state.at[i] = 1;
    if (k->funcs.at[i]->flags & TX_FUNC_CALLS)
        tx_walk(&k->v, k->funcs.at[i]->body);
    k->state.at[i] = 2;
    return !k->failed;
}

tx_module *
tx_link_module(tx_ctx *c, tx_module *m)
{
    module_link k = {.v = {link_call, NULL}, .c = c};

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (!tx_push(c, &k.funcs, m->funcs[i]) || !tx_push(c, &k.names, m->names[i]))
            return NULL;
    for (uint32_t i = 0; i < k.funcs.n && !k.failed; i++)
        if (k.funcs.at[i]->flags & TX_FUNC_CALLS)
            tx_walk(&k.v, k.funcs.at[i]->body);
    for (uint32_t i = 0; i < k.funcs.n && !k.failed; i++)
        k.failed = !tx_push(c, &k.state, 0);
    k.v.enter = follow_call;
    for (uint32_t i = 0; i < k.funcs.n && !k.failed; i++)
        if (k.state.at[i] == 0)
            find_circle(&k, i);
    if (k.failed)
        return NULL;
    if (k.funcs.n == m->nfuncs)
        return m;
    m->nfuncs = k.funcs.n;
    m->funcs = k.funcs.at;
    m->names = k.names.at;
    return m;
}
