/* Clusters: other CTAs' shared memory, the cluster barrier, and CTAs that leave while others still reach for their memory.
 * A pointer to the shared memory of rank r has the index behind the last memory's, plus r. SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"
#include "emu/watch.h"

static uint32_t
cluster_size(const tx_vm *vm)
{
    return vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
}

/* The CTA of that rank in the running CTA's cluster; NULL: there is none, or it has left. */
tx_cta *
tx_cluster_peer(const tx_vm *vm, uint32_t rank)
{
    uint32_t per = cluster_size(vm);
    for (tx_cta *c = vm->ctas; c; c = c->next)
        if (c->linear / per == vm->cta->linear / per && c->cluster_rank == rank)
            return c;
    return NULL;
}

bool
tx_cluster_split(const tx_vm *vm, uint64_t pointer, uint32_t *rank, int64_t *off)
{
    uint32_t mem;
    if (!tx_ptr_split(pointer, vm->p->nmems + 256, &mem, off) || mem < vm->p->nmems)
        return false;
    *rank = mem - vm->p->nmems;
    *off -= TX_SYSTEM_BYTES + ((int64_t)*rank << 24);
    return true;
}

/* Its low half is the address in the shared window, as on the hardware. */
uint64_t
tx_cluster_pointer(const tx_vm *vm, uint32_t rank, int64_t off)
{
    rank &= 0xff;
    return tx_ptr_make(vm->p->nmems + rank, off + TX_SYSTEM_BYTES + ((int64_t)rank << 24));
}

/* ---- who reaches for whose memory -------------------------------------------------------------------------------------- */

void
tx_cluster_touch(tx_vm *vm, const tx_frag *f, uint32_t lane, tx_cta *peer, uint32_t mem, uint32_t site)
{
    tx_order *o = tx_shadow_order(f->warp->cta);
    if (!o || !peer->engine || peer == f->warp->cta)
        return;
    if (!peer->engine->touched && !(peer->engine->touched = tx_calloc(o->nthreads, sizeof *peer->engine->touched))) {
        tx_vm_nomem(vm);
        return;
    }
    tx_touch *t = &peer->engine->touched[tx_order_thread(f->warp->cta, f->warp->index * TX_LANES + lane)];
    t->time = o->e.now, t->site = site, t->mem = mem;
}

int
tx_cluster_missing(tx_vm *vm, tx_frag *f, uint32_t lane, uint32_t site, uint32_t rank)
{
    tx_emu_report *r = tx_report_begin(vm, "cluster", site);
    tx_report_agent(vm, r, f, lane, site, tx_site_of(vm, site)->role);
    if (rank >= cluster_size(vm))
        tx_report_text(r, "%s reaches for CTA %u of a cluster of %u", tx_site_of(vm, site)->role, rank,
                       cluster_size(vm));
    else
        tx_report_text(r, "%s reaches for the shared memory of CTA %u of the cluster, which has left the kernel",
                       tx_site_of(vm, site)->role, rank);
    return tx_report_end(vm, r);
}

/* setmaxnreg moves the registers of a whole warpgroup: have all its warps executed it as often? */
static bool
whole_warpgroups(tx_vm *vm, tx_cta *cta)
{
    for (uint32_t i = 0; vm->check && i < cta->nwarps; i++) {
        const tx_warp *w = &cta->warps[i], *first = &cta->warps[i / 4 * 4];
        if (w->moves == first->moves)
            continue;
        bool more = w->moves > first->moves;
        const tx_warp *one = more ? w : first, *other = more ? first : w;
        tx_emu_report *r = tx_report_begin(vm, "warp", one->move_site);
        tx_report_thread(vm, r, cta, one->index * TX_LANES, one->move_site, tx_site_of(vm, one->move_site)->role);
        tx_report_text(r, "setmaxnreg is for a whole warpgroup: warp %u has executed it %u times, warp %u %u times",
                       one->index, one->moves, other->index, other->moves);
        return tx_report_end(vm, r) == TX_RUN_ON;
    }
    return true;
}

/* The CTA's threads have left: was all that others did to its memory before that? */
bool
tx_cluster_exit(tx_vm *vm, tx_cta *cta)
{
    tx_order *o = tx_shadow_order(cta);
    tx_touch *touched = cta->engine->touched;
    uint32_t first = tx_order_thread(cta, 0);
    if (!whole_warpgroups(vm, cta))
        return false;
    for (uint32_t t = 0; o && touched && t < o->nthreads; t++) {
        bool seen = touched[t].time == 0;
        for (uint32_t mine = 0; mine < cta->nthreads && !seen; mine++)
            seen = tx_order_seen(o, first + mine, t, touched[t].time);
        if (seen)
            continue;
        tx_cta gone;
        const tx_cta *other = o->cta[t / o->per_cta];
        if (!other) { /* it has left before */
            memset(&gone, 0, sizeof gone);
            tx_cta_place(vm, &gone, cta->linear - cta->cluster_rank + t / o->per_cta);
            other = &gone;
        }
        uint32_t site = touched[t].site;
        tx_emu_report *r = tx_report_begin(vm, "cluster", site);
        if (!r->buffer[0] && touched[t].mem < vm->p->nmems)
            strncpy(r->buffer, vm->p->mems[touched[t].mem].name, sizeof r->buffer - 1);
        tx_report_thread(vm, r, other, t % o->per_cta, site, tx_site_of(vm, site)->role);
        tx_report_text(
            r, "%s of the shared memory of CTA %u of the cluster, which may have left the kernel: nothing keeps it",
            tx_site_of(vm, site)->role, cta->cluster_rank);
        if (tx_report_end(vm, r) != TX_RUN_ON)
            return false;
    }
    if (touched && o)
        memset(touched, 0, o->nthreads * sizeof *touched);
    uint32_t per = cluster_size(vm);
    for (tx_cta *c = vm->ctas; c && per > 1; c = c->next) { /* what others' engines are still to bring */
        if (c == cta || c->linear / per != cta->linear / per || !c->engine)
            continue;
        for (tx_work *w = c->engine->first, *next; w; w = next) {
            next = w->next;
            if (!(w->bar_cta == cta || (w->ndst && w->dst->cta == cta)))
                continue;
            tx_emu_report *r = tx_report_begin(vm, "cluster", w->site);
            tx_report_thread(vm, r, c, w->thread, w->site, tx_site_of(vm, w->site)->role);
            tx_report_text(
                r, "%s to the shared memory of CTA %u of the cluster, which leaves without having waited for it",
                tx_site_of(vm, w->site)->role, cta->cluster_rank);
            if (vm->check && tx_report_end(vm, r) != TX_RUN_ON)
                return false;
            tx_work_drop(c->engine, w);
        }
    }
    return true;
}

/* ---- the cluster barrier --------------------------------------------------------------------------------------------- */

/* Have all threads of the cluster that are still there arrived? Then the phase ends. */
static void
cluster_phase(tx_vm *vm, tx_cta *cta)
{
    uint32_t per = cluster_size(vm);
    for (tx_cta *c = vm->ctas; c; c = c->next)
        for (uint32_t i = 0; c->linear / per == cta->linear / per && i < c->nwarps; i++)
            if (c->warps[i].live & ~c->warps[i].met)
                return;
    for (tx_cta *c = vm->ctas; c; c = c->next) {
        if (c->linear / per != cta->linear / per)
            continue;
        c->meets++;
        c->met_over = c->met[0];
        for (uint32_t i = 0; i < c->nwarps; i++)
            c->warps[i].met = 0;
    }
    tx_order *o = tx_shadow_order(cta);
    if (o) {
        tx_clock *t = o->met[0];
        o->met[0] = o->met[1];
        o->met[1] = t;
        if (o->met[0])
            tx_clock_clear(o, o->met[0]);
    }
    vm->changes++;
}

static bool
cluster_misuse(const tx_act *a, uint32_t lanes, const char *what)
{
    tx_emu_report *r = tx_act_report(a, tx_first_lane(lanes), "barrier");
    strcpy(r->buffer, "cluster barrier");
    tx_report_text(r, "cluster barrier: %s", what);
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

TX_PTX_AGENT(cluster_arrive)
{
    tx_warp *w = a->f->warp;
    tx_cta *cta = w->cta;
    tx_order *o = tx_shadow_order(cta);
    if (tx_act_has(a, TK_aligned) && !tx_act_whole(a))
        return TX_RUN_STOP;
    if (a->vm->check && (w->promised & a->f->m) &&
        !cluster_misuse(a, w->promised & a->f->m, "a second arrival before the wait"))
        return TX_RUN_STOP;
    if (o) {
        if (!o->met[0] && (!(o->met[0] = tx_clock_new(o)) || !(o->met[1] = tx_clock_new(o))))
            return TX_RUN_STOP;
        for (uint32_t left = a->f->m; left; left &= left - 1) {
            uint32_t me = tx_order_thread(cta, w->index * TX_LANES + tx_first_lane(left));
            if (tx_act_has(a, TK_relaxed))
                tx_order_release_fenced(o, me, 1, o->met[0]);
            else
                tx_order_release(o, me, o->met[0]);
        }
    }
    if (TX_UNLIKELY(a->vm->watch != NULL))
        tx_watch_arrive(a->vm, a->f, TX_MEET_CLUSTER, NULL);
    w->met |= a->f->m;
    w->promised |= a->f->m;
    w->meeting = cta->meets;
    a->vm->changes++;
    return TX_RUN_ON;
}

TX_PTX_AGENT(cluster_wait)
{
    tx_frag *f = a->f;
    tx_warp *w = f->warp;
    tx_cta *cta = w->cta;
    bool again = f->state == TX_WAIT_EVENT;
    if (!again && tx_act_has(a, TK_aligned) && !tx_act_whole(a))
        return TX_RUN_STOP;
    if (!again && (f->m & ~w->promised)) {
        if (a->vm->check)
            return cluster_misuse(a, f->m & ~w->promised, "a wait without an arrival") ? TX_RUN_ON : TX_RUN_STOP;
        return TX_RUN_ON;
    }
    if (cta->meets == w->meeting)
        cluster_phase(a->vm, cta);
    if (cta->meets != w->meeting) {
        tx_order *o = tx_shadow_order(cta);
        if (o && o->met[1])
            tx_order_acquire(o, tx_order_thread(cta, w->index * TX_LANES), f->m, o->met[1]);
        if (TX_UNLIKELY(a->vm->watch != NULL))
            tx_watch_cluster_wait(a->vm, f, a->in->site);
        w->promised &= ~f->m;
        return TX_RUN_ON;
    }
    if (!again) {
        tx_frag_split(a->vm, f);
        if (a->vm->stop)
            return TX_RUN_STOP;
    }
    f->state = TX_WAIT_EVENT;
    f->wait_mask = f->m;
    return TX_RUN_BLOCK;
}

/* ---- register budgets ------------------------------------------------------------------------------------------------ */

/* setmaxnreg: the registers that a CTA got at its launch are a pool; an inc waits until it holds enough (measured on an H200). */
TX_PTX_AGENT(setmaxnreg)
{
    tx_cta *cta = a->f->warp->cta;
    tx_warp *w = a->f->warp;
    uint32_t n = (uint32_t)tx_act_in(a, tx_act_find(a->k, "n"), tx_first_lane(a->f->m)), start = a->vm->p->registers;
    if (a->f->state != TX_WAIT_EVENT && !tx_act_whole(a))
        return TX_RUN_STOP;
    if (a->f->state != TX_WAIT_EVENT)
        w->moves++, w->move_site = a->in->site;
    if (!start)
        return TX_RUN_ON; /* the compiler chooses: nothing is known */
    if (!w->registers)
        w->registers = start;
    if (n <= w->registers) {
        cta->free_registers += w->registers - n;
        w->registers = n;
        a->vm->changes++;
        return TX_RUN_ON;
    }
    if (n - w->registers <= cta->free_registers) {
        cta->free_registers -= n - w->registers;
        w->registers = n;
        return TX_RUN_ON;
    }
    a->f->state = TX_WAIT_EVENT;
    a->f->wait_mask = a->f->m;
    return TX_RUN_BLOCK;
}
