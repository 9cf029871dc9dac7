/* Barriers of a CTA, and the threads that never come (intrinsics reference, bar_sync). A barrier is `.aligned`: the lanes of
 * a warp that are still in the kernel must stand at the same statement; then the warp counts. Threads that have left
 * count as arrived at a barrier without a count. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"
#include "emu/sched.h"
#include "emu/watch.h"

static const tx_insn *
at(const tx_vm *vm, const tx_frag *f)
{
    return &vm->p->code[f->pc];
}

static unsigned
kind_of(const tx_insn *in)
{
    return in->aux & TX_BAR_KIND;
}

static bool
has_result(const tx_insn *in)
{
    return kind_of(in) & TX_BAR_RESULT;
}

/* Threads that the barrier waits for; 0: all of the CTA. */
static uint32_t
count_of(const tx_frag *f, const tx_insn *in)
{
    if (kind_of(in) == TX_BAR_GROUP)
        return 4 * TX_LANES;
    return in->aux & TX_BAR_COUNTED ? tx_reg(f, in->c)->u32 >> 8 : 0;
}

static void
barrier_name(tx_emu_report *r, uint32_t id)
{
    if (id < TX_NBARRIERS)
        snprintf(r->buffer, sizeof r->buffer, "barrier %u", id);
    else
        snprintf(r->buffer, sizeof r->buffer, "%s", id == TX_MEET_CLUSTER ? "cluster barrier" : "grid barrier");
}

/* ---- release ----------------------------------------------------------------------------------------------------- */

static int
warn_exited(tx_vm *vm, tx_cta *cta, uint32_t id, uint32_t site)
{
    tx_emu_report *r;
    if (!vm->check)
        return TX_RUN_ON;
    r = tx_report_begin(vm, "divergence", site);
    r->warning = true;
    barrier_name(r, id);
    for (uint32_t i = 0; i < cta->nwarps && !r->nagents; i++)
        for (uint32_t k = 0; k < cta->warps[i].nfrags && !r->nagents; k++)
            if (cta->warps[i].frag[k]->arrived && cta->warps[i].frag[k]->wait_mask == id)
                tx_report_agent(vm, r, cta->warps[i].frag[k], tx_first_lane(cta->warps[i].frag[k]->m), site,
                                "waits at");
    tx_report_text(r, "%u threads that have left the kernel count as arrived at %s", cta->exited, r->buffer);
    return tx_report_end(vm, r);
}

static void
let_go(tx_vm *vm, tx_cta *cta, uint32_t id, const tx_barrier *b)
{
    uint32_t warps = b ? b->arrived_warps : 0;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_meet(vm, cta, id, b);
    for (uint32_t i = 0; i < cta->nwarps; i++) {
        tx_warp *w = &cta->warps[i];
        const tx_insn *in = NULL;
        for (uint32_t k = 0; k < w->nfrags; k++) {
            tx_frag *f = w->frag[k];
            if (f->state != TX_WAIT_BAR || !f->arrived || f->wait_mask != id)
                continue;
            in = at(vm, f);
            if (b && has_result(in))
                tx_reg(f, in->d)->u32 = kind_of(in) == TX_BAR_AND  ? b->acc_and != 0
                                        : kind_of(in) == TX_BAR_OR ? b->acc_or != 0
                                                                   : b->acc_popc;
            f->state = TX_READY;
            f->arrived = false;
            f->pc++;
            warps |= 1u << i;
        }
        if (in && w->nfrags > 1)
            tx_frag_merge(vm, w, &vm->p->live[in->imm]);
    }
    vm->changes++;
    if (vm->hooks && vm->hooks->barrier)
        vm->hooks->barrier(vm, cta, warps);
}

static int
barrier_try_release(tx_vm *vm, tx_cta *cta, uint32_t id)
{
    tx_barrier *b = &cta->barrier[id], done;
    if (!b->arrived || b->arrived + (b->counted ? 0 : cta->exited) < b->expected)
        return TX_RUN_ON;
    if (!b->counted && cta->exited) {
        int r = warn_exited(vm, cta, id, b->site);
        if (r != TX_RUN_ON)
            return r;
    }
    done = *b;
    memset(b, 0, sizeof *b);
    cta->open &= ~(1u << id);
    let_go(vm, cta, id, &done);
    return TX_RUN_ON;
}

void
tx_barrier_meet(tx_vm *vm, tx_cta *cta, uint32_t which)
{
    cta->meet_arrived[which - TX_MEET_CLUSTER] = 0;
    let_go(vm, cta, which, NULL);
}

/* ---- arrival ----------------------------------------------------------------------------------------------------- */

static int
report_counts(tx_vm *vm, tx_frag *f, uint32_t id, uint32_t count)
{
    const tx_barrier *b = &f->warp->cta->barrier[id];
    tx_emu_report *r = tx_report_begin(vm, "barrier", at(vm, f)->site);
    barrier_name(r, id);
    tx_report_agent(vm, r, f, tx_first_lane(f->m), at(vm, f)->site, "arrives at");
    tx_report_thread(vm, r, f->warp->cta, 0, b->site, "first arrival at");
    tx_report_text(r, "%s is used with %u threads while others wait there for %u", r->buffer, count, b->expected);
    return tx_report_end(vm, r);
}

/* Those that arrive without waiting. */
static void
go_on(tx_vm *vm, tx_warp *w, const tx_insn *in, uint32_t id, tx_barrier *b)
{
    for (uint32_t k = 0; k < w->nfrags; k++) {
        tx_frag *f = w->frag[k];
        if (f->state == TX_WAIT_BAR && f->arrived && f->wait_mask == id && kind_of(at(vm, f)) == TX_BAR_ARRIVE)
            f->state = TX_READY, f->arrived = false, f->pc++;
    }
    b->arrived_warps |= 1u << w->index;
    if (w->nfrags > 1)
        tx_frag_merge(vm, w, &vm->p->live[in->imm]);
}

/* The warp stands at the barrier as a whole; its parts are marked. */
static int
arrive(tx_vm *vm, tx_warp *w, const tx_insn *in, uint32_t id)
{
    tx_cta *cta = w->cta;
    uint32_t lanes = 0, all = 1, any = 0, popc = 0;
    tx_frag *first = NULL;

    for (uint32_t k = 0; k < w->nfrags; k++) {
        tx_frag *f = w->frag[k];
        if (f->state != TX_WAIT_BAR || f->arrived || f->wait_mask != id)
            continue;
        f->arrived = true;
        first = f;
        lanes |= f->m;
        if (has_result(in)) {
            uint32_t pred = tx_reg(f, at(vm, f)->a)->u32;
            popc += (uint32_t)__builtin_popcount(f->m & pred);
            all = all && !(f->m & ~pred);
            any = any || (f->m & pred);
        }
    }
    if (!first)
        return TX_RUN_ON;
    vm->changes++;
    if (TX_UNLIKELY(vm->watch != NULL) && id >= TX_NBARRIERS)
        tx_watch_arrive(vm, first, id, NULL);
    if (id >= TX_NBARRIERS) {
        cta->meet_arrived[id - TX_MEET_CLUSTER] += (uint32_t)__builtin_popcount(lanes);
        return TX_RUN_ON;
    }
    uint32_t count = count_of(first, in);
    bool counted = count != 0;
    uint32_t expected = counted ? count : cta->nthreads;
    tx_barrier *b = &cta->barrier[id];
    if (!b->arrived) {
        memset(b, 0, sizeof *b);
        b->expected = expected, b->counted = counted, b->site = in->site, b->acc_and = 1;
    } else if (vm->check && (b->expected != expected || b->counted != counted)) {
        int r = report_counts(vm, first, id, expected);
        if (r != TX_RUN_ON)
            return r;
    }
    cta->open |= 1u << id;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_arrive(vm, first, id, b);
    b->arrived += counted && !(in->aux & TX_BAR_LOOSE) ? TX_LANES : (uint32_t)__builtin_popcount(lanes);
    b->acc_popc += popc;
    b->acc_and = b->acc_and && all;
    b->acc_or = b->acc_or || any;
    if (kind_of(in) == TX_BAR_ARRIVE)
        go_on(vm, w, in, id, b);
    return barrier_try_release(vm, cta, id);
}

/* Parts of one warp that wait at different statements, or one that waits for lanes which have left. */
static int
report_divergence(tx_vm *vm, tx_warp *w, const char *what)
{
    tx_emu_report *r = NULL;
    uint32_t last = UINT32_MAX;
    for (uint32_t k = 0; k < w->nfrags; k++) {
        tx_frag *f = w->frag[k];
        uint32_t site = at(vm, f)->site;
        if (f->state != TX_WAIT_BAR || f->arrived || site == last)
            continue;
        if (!r) {
            r = tx_report_begin(vm, "divergence", site);
            barrier_name(r, f->wait_mask);
        }
        tx_report_agent(vm, r, f, tx_first_lane(f->m), site, "waits at");
        last = site;
    }
    if (!r)
        return TX_RUN_ON;
    tx_report_text(r, "%s is not reached by all threads of warp %u: %s", r->buffer, w->index, what);
    return tx_report_end(vm, r);
}

/* All live lanes of the warp wait at this statement? Then it arrives. */
static int
converge(tx_vm *vm, tx_warp *w, const tx_insn *in, uint32_t id)
{
    uint32_t there = 0, elsewhere = 0;
    for (uint32_t k = 0; k < w->nfrags; k++) {
        tx_frag *f = w->frag[k];
        if (f->state == TX_WAIT_BAR && !f->arrived && at(vm, f) == in && f->wait_mask == id)
            there |= f->m;
        else if (f->state == TX_WAIT_BAR && !f->arrived)
            elsewhere |= f->m;
    }
    if (!(w->live & ~there))
        return arrive(vm, w, in, id);
    if (w->live & ~(there | elsewhere))
        return TX_RUN_ON; /* others are on their way */
    if (vm->check) {
        int r = report_divergence(vm, w, "its threads stand at different barriers");
        if (r != TX_RUN_ON)
            return r;
    }
    for (uint32_t k = 0; k < w->nfrags; k++) { /* with checks off each statement counts for the whole warp */
        tx_frag *f = w->frag[k];
        if (f->state == TX_WAIT_BAR && !f->arrived) {
            int r = arrive(vm, w, at(vm, f), f->wait_mask);
            if (r != TX_RUN_ON)
                return r;
            k = (uint32_t)-1;
        }
    }
    return TX_RUN_ON;
}

int
tx_vm_barrier(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    uint32_t id = 0;
    tx_warp *w = f->warp;
    int r;

    if (kind_of(in) == TX_BAR_GROUP || in->aux & TX_BAR_NUMBERED) {
        int32_t n = in->aux & TX_BAR_NUMBERED ? tx_reg(f, in->c)->i32 & 0xff : tx_reg(f, in->a)->i32;
        if (n < 0 || n >= TX_NBARRIERS) {
            tx_emu_report *rep = tx_report_begin(vm, "barrier", in->site);
            snprintf(rep->buffer, sizeof rep->buffer, "barrier %d", n);
            tx_report_agent(vm, rep, f, tx_first_lane(f->m), in->site, "arrives at");
            tx_report_text(rep, "barrier %d: there are barriers 0 to %d", n, TX_NBARRIERS - 1);
            r = tx_report_end(vm, rep);
            return r;
        }
        id = (uint32_t)n;
    } else if (kind_of(in) == TX_BAR_CLUSTER)
        id = TX_MEET_CLUSTER;
    else if (kind_of(in) == TX_BAR_GRID)
        id = TX_MEET_GRID;
    if (in->aux & TX_BAR_COUNTED && (count_of(f, in) == 0 || count_of(f, in) % TX_LANES)) {
        tx_emu_report *rep = tx_report_begin(vm, "barrier", in->site);
        barrier_name(rep, id);
        tx_report_agent(vm, rep, f, tx_first_lane(f->m), in->site, "arrives at");
        tx_report_text(rep, "%s: a thread count is a multiple of 32, not %u", rep->buffer, count_of(f, in));
        return tx_report_end(vm, rep);
    }
    tx_frag_split(vm, f);
    if (vm->stop)
        return TX_RUN_STOP;
    f->state = TX_WAIT_BAR;
    f->arrived = false;
    f->wait_mask = id;
    if ((f->m == w->live && w->nfrags == 1) || in->aux & TX_BAR_LOOSE)
        r = arrive(vm, w, in, id);
    else
        r = converge(vm, w, in, id);
    if (r != TX_RUN_ON || vm->stop)
        return TX_RUN_STOP;
    /* the part may have joined another, which goes on in its stead */
    return w->nfrags == 1 && w->frag[0] == f && f->state == TX_READY ? TX_RUN_ON : TX_RUN_BLOCK;
}

/* ---- threads that leave, and those that wait for ever -------------------------------------------------------------------- */

int
tx_barrier_left(tx_vm *vm, tx_warp *w)
{
    bool waits = false;
    if (w->nfrags == 1 && !w->cta->open) /* as most threads leave */
        return TX_RUN_ON;
    for (uint32_t k = 0; k < w->nfrags; k++)
        waits = waits || (w->frag[k]->state == TX_WAIT_BAR && !w->frag[k]->arrived);
    if (waits && vm->check) {
        int r = report_divergence(vm, w, "others of it have left the kernel");
        if (r != TX_RUN_ON)
            return r;
    }
    for (uint32_t k = 0; k < w->nfrags && waits; k++)
        if (w->frag[k]->state == TX_WAIT_BAR && !w->frag[k]->arrived) {
            int r = converge(vm, w, at(vm, w->frag[k]), w->frag[k]->wait_mask);
            if (r != TX_RUN_ON)
                return r;
            break;
        }
    for (uint32_t left = w->cta->open; left; left &= left - 1) {
        int r = barrier_try_release(vm, w->cta, tx_first_lane(left));
        if (r != TX_RUN_ON)
            return r;
    }
    return TX_RUN_ON;
}

static const char *
wait_role(const tx_frag *f)
{
    return f->state == TX_READY ? "loops at" : "waits at";
}

/* One part's wait in words; false: nothing is known of it but its place. */
static bool
wait_text(tx_vm *vm, tx_frag *f, tx_emu_report *r, char *text, size_t size)
{
    if (tx_mbar_wait_text(vm, f, r, text, size))
        return true;
    const tx_insn *in = at(vm, f);
    if (f->state == TX_WAIT_EVENT && in->op == V_AGENT) {
        const char *what = vm->p->ptx[in->imm]->emu->name;
        if (strcmp(what, "cluster_wait") == 0) {
            if (!r->buffer[0])
                strcpy(r->buffer, "cluster barrier");
            snprintf(text, size, "warp %u waits at the cluster barrier", f->warp->index);
        } else if (strcmp(what, "setmaxnreg") == 0)
            snprintf(text, size, "warp %u waits for registers: the CTA has %u a thread of a warp to spare",
                     f->warp->index, f->warp->cta->free_registers);
        else if (strcmp(what, "wgmma_wait") == 0)
            snprintf(text, size, "warp %u waits for a wgmma that other warps of its warpgroup have not issued",
                     f->warp->index);
        else
            return false;
        return true;
    }
    if (f->state != TX_WAIT_BAR || f->wait_mask >= TX_NBARRIERS)
        return false;
    const tx_barrier *b = &f->warp->cta->barrier[f->wait_mask];
    snprintf(text, size, "warp %u waits at barrier %u: %u of %u threads have arrived", f->warp->index, f->wait_mask,
             b->arrived, b->expected);
    return true;
}

/* The CTAs of a cluster, which may wait for each other. */
static bool
stuck_together(const tx_vm *vm, const tx_cta *a, const tx_cta *b)
{
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    return a->linear / per == b->linear / per;
}

/* What each place that threads stand at waits for, as far as there is room. */
static void
stuck_text(tx_vm *vm, tx_cta *like, tx_emu_report *r)
{
    tx_cta *running = vm->cta;
    char all[400] = "", one[160];
    uint32_t seen[8], nseen = 0;
    size_t n = 0;
    for (tx_cta *cta = vm->ctas; cta; cta = cta->next)
        for (uint32_t i = 0; i < cta->nwarps && stuck_together(vm, cta, like); i++)
            for (uint32_t k = 0; k < cta->warps[i].nfrags; k++) {
                tx_frag *f = cta->warps[i].frag[k];
                uint32_t s = 0, site = at(vm, f)->site;
                while (s < nseen && seen[s] != site)
                    s++;
                vm->cta = cta, vm->mem = cta->mem;
                if (s < nseen || nseen == 8 || f->state == TX_READY || f->state == TX_GONE ||
                    !wait_text(vm, f, r, one, sizeof one) || n + strlen(one) + 3 > sizeof all)
                    continue;
                seen[nseen++] = site;
                n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", n ? "; " : "", one);
            }
    if (running)
        vm->cta = running, vm->mem = running->mem;
    tx_report_text(r,
                   n              ? "no thread can go on: %s"
                   : r->buffer[0] ? "no thread can go on: some wait at %s"
                                  : "no thread can go on%s",
                   n ? all : r->buffer);
}

int
tx_barrier_stuck(tx_vm *vm, tx_cta *cta)
{
    bool divergent = false, events = false;
    const tx_frag *apart = NULL; /* lanes that stand at an .aligned instruction without the others */
    uint32_t barrier = UINT32_MAX, seen[8], nseen = 0;
    tx_emu_report *r;

    for (uint32_t i = 0; i < cta->nwarps; i++)
        for (uint32_t k = 0; k < cta->warps[i].nfrags; k++) {
            tx_frag *f = cta->warps[i].frag[k];
            events = events || f->state == TX_WAIT_EVENT;
            if (f->state == TX_WAIT_WARP && at(vm, f)->op == V_WSYNC && at(vm, f)->aux)
                apart = f;
            if (f->state != TX_WAIT_BAR)
                continue;
            if (!f->arrived && !vm->check) { /* a part of a warp at a barrier counts for all of it */
                int r_ = arrive(vm, f->warp, at(vm, f), f->wait_mask);
                return r_ != TX_RUN_ON ? r_ : TX_RUN_ON;
            }
            if (!f->arrived || (f->wait_mask < TX_NBARRIERS && !cta->barrier[f->wait_mask].counted))
                divergent = true;
            if (barrier == UINT32_MAX || !f->arrived)
                barrier = f->wait_mask;
        }
    divergent = divergent && !events; /* else others wait at the barrier for those that wait for the event */
    r = tx_report_begin(vm, divergent || apart ? "divergence" : "deadlock", 0);
    if (barrier != UINT32_MAX && !events)
        barrier_name(r, barrier);
    for (tx_cta *c = vm->ctas; c; c = c->next)
        for (uint32_t i = 0; i < c->nwarps && stuck_together(vm, c, cta); i++)
            for (uint32_t k = 0; k < c->warps[i].nfrags; k++) {
                tx_frag *f = c->warps[i].frag[k];
                uint32_t site = f->state == TX_READY ? f->site : at(vm, f)->site, s;
                for (s = 0; s < nseen && seen[s] != site; s++)
                    ;
                if (s < nseen || nseen == 8 || f->state == TX_GONE)
                    continue;
                seen[nseen++] = site;
                uint32_t lanes = f->m ? f->m : f->warp->live ? f->warp->live : 1;
                tx_report_agent(vm, r, f, tx_first_lane(lanes), site, wait_role(f));
            }
    if (apart)
        tx_report_text(
            r, "lanes of warp %u wait at an .aligned instruction, which the others do not reach (0x%08x of 0x%08x)",
            apart->warp->index, apart->m, apart->warp->live);
    else if (divergent)
        tx_report_text(r, "threads wait at %s for others that never come", r->buffer);
    else
        stuck_text(vm, cta, r);
    int end = tx_report_end(vm, r);
    if (end == TX_RUN_ON) { /* collected: there is nothing to go on with */
        vm->stop = true;
        end = TX_RUN_STOP;
    }
    return end;
}
