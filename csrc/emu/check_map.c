/* Checker: tensor maps in global memory that the kernel changes. The copy engine reads a map through a proxy of its own: between a
 * change and a use there has to be a release (fence.proxy.tensormap::generic.release, or tensormap.cp_fenceproxy, which is one) and
 * then an acquire of that very map, in an order that the user of the map has seen. Changes by tensormap.replace and
 * tensormap.cp_fenceproxy are known; maps put together by plain stores are not. SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"

enum { MAP_ACQUIRES = 8 };
typedef struct map_event { /* what a thread of a CTA or cluster did */
    uint64_t cluster;
    uint32_t thread, lanes, time; /* lanes: of its warp that did it together */
} map_event;
typedef struct map_change {
    uint8_t *at;
    uint32_t mem, site, cta_thread, nacquired;
    tx_cta where; /* its place */
    bool released;
    map_event change, release, acquired[MAP_ACQUIRES];
} map_change;
struct tx_maps {
    uint32_t n, cap;
    map_change *all;
};

void
tx_map_end(tx_vm *vm)
{
    if (vm->maps)
        tx_free(vm->maps->all);
    tx_free(vm->maps);
    vm->maps = NULL;
}

static uint64_t
map_cluster(const tx_vm *vm, const tx_cta *cta)
{
    return cta->linear / ((uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2]);
}

static map_event
event_of(const tx_act *a, uint32_t lane, uint32_t lanes)
{
    const tx_cta *cta = a->f->warp->cta;
    return (map_event){map_cluster(a->vm, cta), tx_order_thread(cta, a->f->warp->index * TX_LANES + lane), lanes,
                       tx_shadow_order(cta)->e.now};
}

/* Has the lane seen it? What other CTAs did is taken for ordered: flags in global memory have their own checker. */
static bool
event_seen(const tx_act *a, uint32_t lane, const map_event *e)
{
    const tx_cta *cta = a->f->warp->cta;
    uint32_t me = tx_order_thread(cta, a->f->warp->index * TX_LANES + lane);
    if (e->cluster != map_cluster(a->vm, cta))
        return true;
    return (me / TX_LANES == e->thread / TX_LANES && (e->lanes >> me % TX_LANES & 1)) ||
           tx_order_seen(tx_shadow_order(cta), me, e->thread, e->time);
}

static map_change *
map_changed_at(const tx_vm *vm, const uint8_t *at)
{
    for (uint32_t i = 0; vm->maps && i < vm->maps->n; i++)
        if (vm->maps->all[i].at == at)
            return &vm->maps->all[i];
    return NULL;
}

/* `released`: the instruction publishes the map itself, and all lanes have part in it. false: out of memory. */
bool
tx_map_changed(const tx_act *a, uint32_t lane, const tx_where *w, bool released)
{
    tx_vm *vm = a->vm;
    map_change *c = map_changed_at(vm, w->p);
    if (!vm->hooks || w->space != TX_GLOBAL)
        return true;
    if (!vm->maps && !(vm->maps = tx_calloc(1, sizeof *vm->maps)))
        return tx_vm_nomem(vm) == TX_RUN_ON;
    if (!c && vm->maps->n == vm->maps->cap) {
        uint32_t cap = vm->maps->cap ? vm->maps->cap * 2 : 8;
        map_change *p = tx_realloc(vm->maps->all, cap * sizeof *p);
        if (!p)
            return tx_vm_nomem(vm) == TX_RUN_ON;
        vm->maps->all = p, vm->maps->cap = cap;
    }
    if (!c)
        c = &vm->maps->all[vm->maps->n++];
    memset(c, 0, sizeof *c);
    c->at = w->p, c->mem = w->mem, c->site = a->in->site, c->released = released;
    c->cta_thread = a->f->warp->index * TX_LANES + lane;
    tx_cta_place(vm, &c->where, a->f->warp->cta->linear);
    c->change = c->release = event_of(a, lane, released ? a->f->m : 0);
    tx_order_tick(tx_shadow_order(a->f->warp->cta));
    return true;
}

/* fence.proxy.tensormap */
void
tx_map_fence(const tx_act *a)
{
    tx_vm *vm = a->vm;
    bool acquires = tx_act_has(a, TK_acquire);
    if (!vm->hooks || !vm->maps)
        return;
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        tx_where w;
        if (acquires && !tx_where_of(vm, tx_act_in(a, tx_act_find(a->k, "a"), l), &w))
            continue;
        for (uint32_t i = 0; i < vm->maps->n; i++) {
            map_change *c = &vm->maps->all[i];
            if (acquires && c->at == w.p && c->released && event_seen(a, l, &c->release)) {
                uint32_t k = c->nacquired < MAP_ACQUIRES ? c->nacquired++ : MAP_ACQUIRES - 1;
                c->acquired[k] = event_of(a, l, 0);
            } else if (!acquires && !c->released && event_seen(a, l, &c->change)) {
                c->released = true;
                c->release = event_of(a, l, 0);
            }
        }
    }
    tx_order_tick(tx_shadow_order(a->f->warp->cta));
}

/* A lane hands the map to the engine. false: reported, and the run stops. */
bool
tx_map_use(const tx_act *a, uint32_t lane, uint64_t pointer)
{
    tx_vm *vm = a->vm;
    tx_where w;
    if (!vm->hooks || !vm->maps || !tx_where_of(vm, pointer, &w))
        return true;
    const map_change *c = map_changed_at(vm, w.p);
    for (uint32_t i = 0; c && i < c->nacquired; i++)
        if (event_seen(a, lane, &c->acquired[i]))
            return true;
    if (!c)
        return true;
    tx_emu_report *r = tx_act_report(a, lane, "proxy");
    memset(r->buffer, 0, sizeof r->buffer);
    strncpy(r->buffer, vm->p->mems[c->mem].name, sizeof r->buffer - 1);
    tx_report_thread(vm, r, &c->where, c->cta_thread, c->site, tx_site_of(vm, c->site)->role);
    tx_report_text(
        r, "%s by a tensor map of %s, whose change the engine may not see: fence.proxy.tensormap::generic.%s",
        tx_site_of(vm, a->in->site)->role, r->buffer,
        c->released ? "acquire of the map is missing before the use" : "release is missing after the change");
    return tx_report_end(vm, r) == TX_RUN_ON;
}
