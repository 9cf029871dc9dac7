/* Checker: races in shared memory, reads of shared memory that nobody has written, and memory that an engine works on.
 * Subscribes to tx_hooks; engines call tx_shadow_issue_* and tx_shadow_done_*.
 *
 * For each granule (the smallest access that the kernel makes) there is the last write and the reads since: a time, a thread or
 * engine, a place in the source. Who has seen what is in order.c. Reads by several threads merge into one record
 * that says "other lanes too" or "other warps too"; kernels with named barriers or engines also keep the last two times at which lanes
 * of each warp read, and engines' reads have slots of their own. A write of time 2^31 and above needs a closer look: it is an engine's,
 * is still to come, or the granule belongs to a live mbarrier. Where engines write whole blocks a block has one record instead
 * (check_blocks.c). Times go on from CTA to CTA, so that little is cleared in between.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/shadow.h"

void
tx_shadow_free(tx_shadow *s)
{
    if (!s)
        return;
    tx_order_free(s->order);
    tx_free(s->wtime);
    tx_free(s->warps);
    tx_free(s->slots);
    tx_free(s->more);
    tx_map_free(&s->more_at);
    tx_hidden_free(s);
    tx_free(s->reads);
    tx_free(s->reader);
    tx_free(s->block);
    tx_free(s);
}

tx_shadow *
tx_shadow_new(const tx_cta *cta, const tx_emu_program *p)
{
    tx_shadow *s = tx_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->n = (uint32_t)(cta->shared_bytes >> p->granule_shift) + 8;
    s->nwarps = cta->nwarps;
    s->shift = p->granule_shift;
    s->wtime = tx_calloc((size_t)s->n * 4, sizeof *s->wtime);
    if (p->partial_barriers || p->agents)
        s->warps = tx_calloc((size_t)s->n * cta->nwarps, sizeof *s->warps);
    if (p->agents) {
        s->slots = tx_calloc((size_t)s->n * SLOTS, sizeof *s->slots);
        s->reads = tx_calloc(s->n, sizeof *s->reads);
        s->reader = tx_calloc(s->n, sizeof *s->reader);
        s->block = tx_calloc((size_t)cta->shared_bytes / BLOCK_BYTES + 2, sizeof *s->block);
    }
    if (!s->wtime || ((p->partial_barriers || p->agents) && !s->warps) ||
        (p->agents && (!s->slots || !s->reads || !s->reader || !s->block))) {
        tx_shadow_free(s);
        return NULL;
    }
    s->wwho = s->wtime + s->n, s->rtime = s->wwho + s->n, s->rwho = s->rtime + s->n;
    return s;
}

tx_order *
tx_shadow_order(const tx_cta *cta)
{
    return cta->shadow ? cta->shadow->order : NULL;
}

static bool tell_unwritten(tx_vm *vm);
static void more_reset(tx_shadow *s);

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* The CTAs of a cluster share an order, which the first of them begins. */
static bool
race_begin(tx_vm *vm, tx_cta *cta)
{
    tx_shadow *s = cta->shadow;
    const uint32_t *c = vm->l->cluster;
    uint32_t per = c[0] * c[1] * c[2];
    if (vm->now > 0x70000000u && vm->ctas == NULL) {
        memset(s->wtime, 0, (size_t)s->n * 4 * sizeof *s->wtime);
        if (s->warps)
            memset(s->warps, 0, (size_t)s->n * s->nwarps * sizeof *s->warps);
        if (s->slots)
            memset(s->slots, 0, (size_t)s->n * SLOTS * sizeof *s->slots);
        for (uint32_t b = 0; s->block && b < cta->shared_bytes / BLOCK_BYTES; b++)
            s->block[b].on = false;
        vm->now = 0;
    }
    tx_order *shared = NULL;
    for (tx_cta *o = vm->ctas; o && per > 1; o = o->next)
        if (o != cta && o->linear / per == cta->linear / per)
            shared = o->shadow->order;
    if (per > 1) {
        tx_order_free(s->order);
        s->order = shared;
        if (shared)
            shared->refs++;
    }
    if (!s->order && !(s->order = tx_order_new(vm, per, cta->nwarps * TX_LANES)))
        return tx_vm_nomem(vm) == TX_RUN_ON;
    if (!shared)
        tx_order_begin(s->order);
    s->order->cta[per > 1 ? cta->cluster_rank : 0] = cta;
    s->start = s->order->e.start;
    if (s->nmore || s->nhidden)
        more_reset(s);
    return true;
}

static bool
race_end(tx_vm *vm, tx_cta *cta)
{
    cta->shadow->order->cta[cta->cluster_rank] = NULL;
    return vm->unwritten.cta != cta || tell_unwritten(vm);
}

static void
race_barrier(tx_vm *vm, tx_cta *cta, uint32_t warps)
{
    tx_shadow *s = cta->shadow;
    uint32_t live = 0;
    if (!s)
        return;
    if (vm->unwritten.set && vm->unwritten.cta == cta && (warps >> vm->unwritten.thread / TX_LANES & 1) &&
        !tell_unwritten(vm))
        return;
    for (uint32_t w = 0; w < s->nwarps; w++)
        live |= cta->warps[w].live ? 1u << w : 0;
    if (!(live & ~warps) && s->order->nctas == 1)
        tx_order_meet_all(s->order);
    else if (warps)
        tx_order_meet_warps(s->order, tx_order_thread(cta, 0), warps);
}

static void
race_warp_sync(tx_vm *vm, tx_warp *w, uint32_t lanes)
{
    tx_shadow *s = w->cta->shadow;
    (void)vm;
    if (s)
        tx_order_meet(s->order, tx_order_thread(w->cta, w->index * TX_LANES), lanes);
}

/* Have all these lanes of a warp been seen at `time`? */
static bool
lanes_seen(const tx_order *o, uint32_t thread, uint32_t first, uint32_t lanes, uint32_t time)
{
    for (; lanes; lanes &= lanes - 1)
        if (!tx_order_seen(o, thread, first + tx_first_lane(lanes), time))
            return false;
    return true;
}

/* Are all reads of a granule by threads ordered before this access? If not, *who is one of them. */
static bool
reads_ordered(const tx_shadow *s, uint32_t thread, uint32_t g, uint32_t *by)
{
    uint32_t who = s->rwho[g], time = s->rtime[g] & ~TX_TIME_CLOSER, other = who >> TX_WHO_THREAD;
    const tx_order *o = s->order;
    *by = who;
    if (time < o->e.floor)
        return true;
    if (!(who & (TX_WHO_LANES | TX_WHO_WARPS)))
        return tx_order_seen(o, thread, other, time);
    uint32_t first = other / o->per_cta * o->per_cta;
    for (uint32_t v = 0; s->warps && v < s->nwarps; v++) {
        const warp_read *r = &s->warps[(size_t)g * s->nwarps + v];
        if (r->time < o->e.floor)
            continue;
        uint32_t from = first + v * TX_LANES, lanes = r->lanes;
        if (lanes_seen(o, thread, from, lanes, r->time)) {
            lanes = r->others;
            if (!lanes || r->before < o->e.floor || lanes_seen(o, thread, from, lanes, r->before))
                continue;
        }
        *by = (from + tx_first_lane(lanes)) << TX_WHO_THREAD | (who & TX_WHO_SITE);
        return false;
    }
    if (s->warps)
        return true;
    return !(who & TX_WHO_WARPS) && lanes_seen(o, thread, other / TX_LANES * TX_LANES, TX_FULL, time);
}

/* The same for reads by engines and by threads of other CTAs. */
static bool
slots_ordered(const tx_shadow *s, uint32_t thread, uint32_t g, uint32_t *by)
{
    uint64_t at = 0;
    for (int i = 0; s->slots && i < SLOTS; i++) {
        const agent_read *r = &s->slots[(size_t)g * SLOTS + i];
        if (r->time < s->start || tx_order_seen(s->order, thread, r->who >> TX_WHO_THREAD, r->time))
            continue;
        *by = r->who;
        return false;
    }
    if (!s->nmore || !tx_map_get(&s->more_at, g + 1, &at))
        return true;
    for (; at; at = s->more[at - 1].next) {
        const agent_read *r = &s->more[at - 1].r;
        if (tx_order_seen(s->order, thread, r->who >> TX_WHO_THREAD, r->time))
            continue;
        *by = r->who;
        return false;
    }
    return true;
}

static void
more_reset(tx_shadow *s)
{
    tx_map_free(&s->more_at);
    memset(&s->more_at, 0, sizeof s->more_at);
    s->nmore = s->more_free = 0;
    tx_hidden_reset(s);
}

/* Granules that have been written forget their readers. */
void
tx_more_clear(tx_shadow *s, uint32_t g, uint32_t n)
{
    for (uint32_t end = g + n; s->nmore && g < end; g++) {
        uint64_t at;
        if (!tx_map_get(&s->more_at, g + 1, &at) || !at)
            continue;
        tx_map_put(&s->more_at, g + 1, 0);
        for (uint32_t next; at; at = next) {
            next = s->more[at - 1].next;
            s->more[at - 1].next = s->more_free;
            s->more_free = (uint32_t)at;
        }
    }
}

static void
note_more(tx_shadow *s, uint32_t g, agent_read r)
{
    uint64_t first = 0;
    uint32_t at;
    tx_map_get(&s->more_at, g + 1, &first);
    for (uint64_t k = first; k; k = s->more[k - 1].next)
        if (s->more[k - 1].r.who >> TX_WHO_THREAD == r.who >> TX_WHO_THREAD) {
            s->more[k - 1].r = r;
            return;
        }
    if ((at = s->more_free))
        s->more_free = s->more[at - 1].next;
    else {
        if (s->nmore == s->more_cap) {
            uint32_t cap = s->more_cap ? s->more_cap * 2 : 64;
            more_read *p = tx_realloc(s->more, cap * sizeof *p);
            if (!p) {
                tx_vm_nomem(s->order->vm);
                return;
            }
            s->more = p, s->more_cap = cap;
        }
        at = ++s->nmore;
    }
    s->more[at - 1] = (more_read){r, (uint32_t)first};
    if (!tx_map_put(&s->more_at, g + 1, at))
        tx_vm_nomem(s->order->vm);
}

void
tx_note_slot(tx_shadow *s, uint32_t g, uint32_t time, uint32_t who)
{
    agent_read *r = &s->slots[(size_t)g * SLOTS], *oldest = r;
    uint32_t reader = who >> TX_WHO_THREAD;
    s->rtime[g] |= TX_TIME_CLOSER;
    for (int i = 0; i < SLOTS; i++) {
        uint32_t other = r[i].who >> TX_WHO_THREAD;
        if (r[i].time < s->start || other == reader ||
            (time == s->order->e.now && reader < s->order->nthreads &&
             tx_order_seen(s->order, reader, other, r[i].time))) {
            r[i] = (agent_read){time, who}; /* whoever is behind this one is behind that one */
            return;
        }
        oldest = r[i].time < oldest->time ? &r[i] : oldest;
    }
    note_more(s, g, *oldest);
    *oldest = (agent_read){time, who};
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

uint32_t
tx_mem_at(const tx_vm *vm, const tx_cta *cta, uint32_t off)
{
    int64_t best = -1;
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < vm->p->nmems; i++) {
        unsigned scope = vm->p->mems[i].scope;
        if (scope == TX_GLOBAL || scope == TX_LOCAL || !cta->mem[i].base)
            continue;
        int64_t base = cta->mem[i].base - cta->shared;
        if (base <= off && base > best && off < base + cta->mem[i].nbytes)
            best = base, found = i;
    }
    return found;
}

void
tx_name_shared(const tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t off)
{
    uint32_t m = tx_mem_at(vm, cta, off);
    memset(r->buffer, 0, sizeof r->buffer);
    if (m == UINT32_MAX)
        return;
    const tx_memory *at = &vm->p->mems[m];
    strncpy(r->buffer, at->name, sizeof r->buffer - 1);
    if (!r->element[0] && at->elem)
        snprintf(r->element, sizeof r->element, "[%lld]",
                 (long long)((off - (cta->mem[m].base - cta->shared)) / at->elem));
}

/* The other side of a report: a thread of the cluster, or the one that an engine worked for. */
static void
other_agent(const tx_shadow *s, tx_vm *vm, tx_emu_report *r, uint32_t who, const char *role)
{
    const tx_order *o = s->order;
    uint32_t id = who >> TX_WHO_THREAD, site = who & TX_WHO_SITE;
    if (id >= o->nthreads) {
        const tx_agent_info *a = &o->agent[id - o->nthreads];
        id = a->thread;
        role = tx_site_of(vm, site < vm->p->nsites ? site : 0)->role;
    }
    const tx_cta *cta = o->cta[id / o->per_cta];
    tx_report_thread(vm, r, cta ? cta : vm->cta, id % o->per_cta, site < vm->p->nsites ? site : 0, role);
}

static const char *
kind_name(uint8_t kind)
{
    return kind == TX_READ ? "load" : kind == TX_WRITE ? "store" : "atomic";
}

static bool
report_race(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off, uint32_t other, uint32_t time,
            const char *other_role)
{
    tx_vm *vm = a->vm;
    const char *role = kind_name(a->kind);
    uint32_t by = other >> TX_WHO_THREAD, me = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + lane);
    bool engine = by >= s->order->nthreads, narrow = !engine && tx_flags_narrow(s->order, me, by, time);
    tx_emu_report *r = tx_report_begin(vm, engine ? "async" : narrow ? "scope" : "race", a->site);
    if (!r->buffer[0] && a->mem < vm->p->nmems)
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, role);
    tx_report_element(vm, r, a->f, lane, a->site, off);
    other_agent(s, vm, r, other, other_role);
    if (engine)
        tx_report_text(r, "%s of %s%s, while a %s of it is not known to be complete: this thread has not waited for it",
                       role, r->buffer, r->element, r->agent[r->nagents - 1].role);
    else if (narrow)
        tx_report_text(r, "%s of %s%s and the %s by another CTA are ordered only for one CTA: the scope is too narrow",
                       role, r->buffer, r->element, other_role);
    else if (tx_flags_waits(s->order, me, by, time))
        tx_report_text(
            r,
            "%s of %s%s races with a %s by another thread, which has released it: what has read the flag here "
            "is relaxed, and no fence follows, so it does not acquire",
            role, r->buffer, r->element, other_role);
    else
        tx_report_text(r, "%s of %s%s races with a %s by another thread of the %s: nothing orders them", role,
                       r->buffer, r->element, other_role, s->order->nctas > 1 ? "cluster" : "CTA");
    return tx_report_end(vm, r) == TX_RUN_ON;
}

/* Kept back: see tx_vm.unwritten. */
static void
note_unwritten(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off, uint32_t g, uint32_t thread)
{
    tx_vm *vm = a->vm;
    tx_emu_report *r;
    if (vm->unwritten.set)
        return;
    r = tx_report_begin(vm, "uninitialised", a->site);
    if (!r->buffer[0])
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, "load");
    tx_report_element(vm, r, a->f, lane, a->site, off);
    tx_report_text(r, "load of %s%s, which nobody has written", r->buffer, r->element);
    vm->unwritten.set = true, vm->unwritten.atomic = a->kind == TX_ATOMIC;
    vm->unwritten.report = *r;
    vm->unwritten.cta = a->f->warp->cta;
    vm->unwritten.granule = g, vm->unwritten.thread = thread, vm->unwritten.site = a->site;
    vm->unwritten.time = s->order->e.now;
}

static bool
tell_unwritten(tx_vm *vm)
{
    if (!vm->unwritten.set)
        return true;
    memset(vm->report, 0, sizeof *vm->report);
    return tx_report_end(vm, vm->report) == TX_RUN_ON;
}

/* ---- one access of one thread ------------------------------------------------------------------------------------------ */

static uint32_t
who_of(uint32_t agent, uint32_t site, bool atomic)
{
    return agent << TX_WHO_THREAD | (site > TX_WHO_SITE ? TX_WHO_SITE : site) | (atomic ? TX_WHO_ATOMIC : 0);
}

static uint32_t
stamp(const tx_access *a, uint32_t thread)
{
    return who_of(thread, a->site, a->kind == TX_ATOMIC || (a->strength && a->kind == TX_WRITE));
}

/* A lane of a warp reads now. Lanes that went apart read at times of their own, and a thread may have seen one and not the
 * other: the two latest times are kept apart; of more, the earliest stands for all but the latest. */
void
tx_note_warp_read(const tx_order *o, warp_read *r, uint32_t thread)
{
    uint32_t bit = 1u << thread % TX_LANES, now = o->e.now, first = thread / TX_LANES * TX_LANES;
    r->others &= ~bit;
    if (r->time != now) {
        uint32_t left = r->lanes & ~bit;
        if (r->time < o->e.floor || lanes_seen(o, thread, first, left, r->time))
            left = 0;
        if (r->others && (r->before < o->e.floor || lanes_seen(o, thread, first, r->others, r->before)))
            r->others = 0;
        if (left) {
            r->before = r->others ? r->before : r->time;
            r->others |= left;
        }
        r->lanes = 0;
        r->time = now;
    }
    r->lanes |= bit;
}

static void
note_read(tx_shadow *s, uint32_t g, uint32_t thread, uint32_t who, const tx_cta *owner)
{
    uint32_t old = s->rwho[g], other = old >> TX_WHO_THREAD, now = s->order->e.now,
             closer = s->rtime[g] & TX_TIME_CLOSER;
    uint32_t first = tx_order_thread(owner, 0), by;
    if (s->slots && (thread < first || thread >= first + s->order->per_cta)) {
        tx_note_slot(s, g, now, who);
        return;
    }
    if (s->warps)
        tx_note_warp_read(s->order, &s->warps[(size_t)g * s->nwarps + (thread - first) / TX_LANES], thread);
    if ((s->rtime[g] & ~TX_TIME_CLOSER) < s->order->e.floor || (!s->warps && reads_ordered(s, thread, g, &by)))
        s->rwho[g] = who;
    else if (other != thread)
        s->rwho[g] = old | TX_WHO_LANES | (other / TX_LANES != thread / TX_LANES ? TX_WHO_WARPS : 0);
    s->rtime[g] = now | closer;
}

static bool report_pending(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off, uint32_t g, bool write);

/* The last write needs a closer look. *seen: it is ordered before this access. */
static bool
closer(const tx_access *a, tx_shadow *s, uint32_t g, uint32_t lane, int64_t off, uint32_t thread, bool *seen)
{
    uint32_t wtime = s->wtime[g], writer = s->wwho[g], time = wtime & ~TX_TIME_CLOSER;
    *seen = true;
    if (wtime == PENDING || wtime == LIVE)
        return report_pending(a, s, lane, off, g, true);
    if (time < s->start)
        *seen = false;
    else if (!tx_order_seen(s->order, thread, writer >> TX_WHO_THREAD, time))
        return report_race(a, s, lane, off, writer, time, "copy");
    else if (time < s->order->e.floor && s->order->base->seen[writer >> TX_WHO_THREAD] > time)
        s->wtime[g] = time; /* everybody has seen it */
    return true;
}

/* Two strong operations of different CTAs, one of which says that it is for its own. */
static bool
race_scope(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off, uint32_t thread, uint32_t writer,
           uint32_t time)
{
    tx_vm *vm = a->vm;
    if (!a->strength || (a->strength - 1) / 4 || writer >> TX_WHO_THREAD >= s->order->nthreads ||
        (writer >> TX_WHO_THREAD) / s->order->per_cta == thread / s->order->per_cta || time < s->start ||
        tx_order_seen(s->order, thread, writer >> TX_WHO_THREAD, time))
        return true;
    tx_emu_report *r = tx_report_begin(vm, "scope", a->site);
    if (!r->buffer[0])
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, kind_name(a->kind));
    tx_report_element(vm, r, a->f, lane, a->site, off);
    other_agent(s, vm, r, writer, "atomic");
    tx_report_text(r, "%s of %s%s is for one CTA only, and another one of the cluster works on it too",
                   kind_name(a->kind), r->buffer, r->element);
    return tx_report_end(vm, r) == TX_RUN_ON;
}

static bool
race_one(const tx_access *a, tx_shadow *s, uint32_t g, uint32_t lane, int64_t off)
{
    const tx_cta *cta = a->f->warp->cta;
    uint32_t thread = tx_order_thread(cta, a->f->warp->index * TX_LANES + lane), who = stamp(a, thread), by;
    uint32_t wtime = s->wtime[g], writer = s->wwho[g];
    bool strong = a->kind == TX_ATOMIC || a->strength, both_atomic = strong && (writer & TX_WHO_ATOMIC), seen = false;

    if (wtime >= TX_TIME_CLOSER) {
        if (!closer(a, s, g, lane, off, thread, &seen))
            return false;
        wtime = seen ? s->start : 0;
    }
    if (a->kind != TX_WRITE && wtime < s->start) {
        note_unwritten(a, s, lane, off, g, thread);
        if (a->kind == TX_READ)
            return true;
    } else if (a->vm->unwritten.set && a->vm->unwritten.granule == g && a->vm->unwritten.cta == cta &&
               !(a->kind == TX_ATOMIC && a->vm->unwritten.atomic) &&
               !tx_order_seen(s->order, thread, a->vm->unwritten.thread, a->vm->unwritten.time)) {
        a->vm->unwritten.set = false;
        if (!report_race(a, s, lane, off, who_of(a->vm->unwritten.thread, a->vm->unwritten.site, false),
                         a->vm->unwritten.time, "load"))
            return false;
    }
    if (!seen && wtime >= s->order->e.floor && !both_atomic &&
        !tx_order_seen(s->order, thread, writer >> TX_WHO_THREAD, wtime))
        if (!report_race(a, s, lane, off, writer, wtime, writer & TX_WHO_ATOMIC ? "atomic" : "store"))
            return false;
    uint32_t when;
    if (s->nhidden && !tx_hidden_ordered(s, g, thread, strong, &by, &when) &&
        !report_race(a, s, lane, off, by, when, by & TX_WHO_ATOMIC ? "atomic" : "store"))
        return false;
    if (both_atomic && !race_scope(a, s, lane, off, thread, writer, wtime))
        return false;
    if (a->kind == TX_READ) {
        if (!strong)
            note_read(s, g, thread, who, a->at ? a->at : cta);
        return true;
    }
    if (s->reads && s->reads[g] && !report_pending(a, s, lane, off, g, false))
        return false;
    if ((!reads_ordered(s, thread, g, &by) || !slots_ordered(s, thread, g, &by)) &&
        !report_race(a, s, lane, off, by & ~(uint32_t)TX_WHO_ATOMIC, s->rtime[g] & ~TX_TIME_CLOSER, "load"))
        return false;
    if (strong)
        tx_hidden_note(s, g, thread, who);
    else
        tx_hidden_clear(s, g);
    s->wtime[g] = s->order->e.now;
    s->wwho[g] = who;
    s->rtime[g] = 0;
    if (s->slots) {
        memset(&s->slots[(size_t)g * SLOTS], 0, SLOTS * sizeof *s->slots);
        tx_more_clear(s, g, 1);
    }
    return true;
}

static bool
thread_access(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off)
{
    unsigned shift = a->vm->p->granule_shift;
    const tx_cta *cta = a->at ? a->at : a->f->warp->cta;
    uint32_t g = cta->mem[a->mem].granule + (uint32_t)(off >> shift), n = a->size >> shift;
    bool strong = a->kind == TX_ATOMIC || a->strength;
    uint32_t byte = (uint32_t)(cta->mem[a->mem].base - cta->shared + off),
             me = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + lane);
    tx_blocks_open(s, byte, a->size);
    if (strong)
        tx_flags_before(a, cta, byte, me);
    for (uint32_t i = 0; i < (n ? n : 1); i++)
        if (!race_one(a, s, g + i, lane, off))
            return false;
    if (strong)
        tx_flags_after(a, cta, byte, me);
    return true;
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* An access to bytes that an engine is to write or read, or that are an mbarrier. */
static bool
report_pending(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off, uint32_t g, bool write)
{
    tx_vm *vm = a->vm;
    bool live = write && s->wtime[g] == LIVE;
    const char *role = kind_name(a->kind);
    tx_emu_report *r = tx_report_begin(vm, live ? "mbarrier" : "async", a->site);
    if (!r->buffer[0])
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, role);
    tx_report_element(vm, r, a->f, lane, a->site, off);
    if (live)
        tx_report_text(r, "%s of %s%s, which holds a live mbarrier", role, r->buffer, r->element);
    else {
        other_agent(s, vm, r, write ? s->wwho[g] : s->reader[g], "copy");
        r->agent[r->nagents - 1].role = tx_site_of(vm, (write ? s->wwho[g] : s->reader[g]) & TX_WHO_SITE)->role;
        tx_report_text(r, "%s of %s%s, which a %s under way %s: it has not been waited for", role, r->buffer,
                       r->element, r->agent[r->nagents - 1].role, write ? "writes" : "reads");
    }
    return tx_report_end(vm, r) == TX_RUN_ON;
}

static bool
report_issue(const tx_issue *i, tx_shadow *s, const tx_span_of *at, uint32_t g, const char *kind, uint32_t other,
             const char *other_role, const char *why)
{
    tx_vm *vm = i->vm;
    tx_emu_report *r = tx_report_begin(vm, kind, i->site);
    r->buffer[0] = 0;
    tx_name_shared(vm, r, at->cta, g << vm->p->granule_shift);
    tx_report_agent(vm, r, i->f, i->lane, i->site, i->role);
    if (other_role) {
        bool pending = !*other_role;
        other_agent(s, vm, r, other, other_role);
        if (pending)
            r->agent[r->nagents - 1].role = tx_site_of(vm, other & TX_WHO_SITE)->role;
        tx_report_text(r, "%s of %s%s %s %s", i->role, r->buffer, r->element, why, r->agent[r->nagents - 1].role);
    } else
        tx_report_text(r, "%s of %s%s %s", i->role, r->buffer, r->element, why);
    return tx_report_end(vm, r) == TX_RUN_ON;
}

/* Is the last write of a granule behind the issuer, and through the right proxy? */
static bool
issue_after_write(const tx_issue *i, tx_shadow *s, const tx_span_of *at, uint32_t g, uint32_t thread, bool write)
{
    const tx_order *o = s->order;
    uint32_t wtime = s->wtime[g], time = wtime & ~TX_TIME_CLOSER, who = s->wwho[g], writer = who >> TX_WHO_THREAD;
    if (i->atomic && (who & TX_WHO_ATOMIC) && wtime != LIVE && time >= s->start)
        return true; /* both are atomic */
    if (wtime == PENDING)
        return report_issue(i, s, at, g, "async", who, "", "begins before the end of another");
    if (wtime == LIVE)
        return report_issue(i, s, at, g, "mbarrier", 0, NULL, "touches a live mbarrier");
    if (time < s->start)
        return (write && !i->atomic) ||
               report_issue(i, s, at, g, "uninitialised", 0, NULL, "reads what nobody has written");
    if (!tx_order_seen(o, thread, writer, time))
        return report_issue(i, s, at, g, "async", who, "store", "is not ordered after an earlier");
    if (i->async_proxy && writer < o->nthreads && !tx_order_fenced(o, thread, writer, time))
        return report_issue(i, s, at, g, "proxy", who, "store",
                            "works through the async proxy: fence.proxy.async is missing after the");
    return true;
}

static bool
issue_one(const tx_issue *i, tx_shadow *s, const tx_span_of *at, uint32_t g, uint32_t thread, bool write)
{
    uint32_t by;
    tx_vm *vm = i->vm;
    if (vm->unwritten.set && vm->unwritten.granule == g && vm->unwritten.cta == at->cta && write) {
        uint32_t who = who_of(vm->unwritten.thread, vm->unwritten.site, false);
        if (!tx_order_seen(s->order, thread, vm->unwritten.thread, vm->unwritten.time)) {
            vm->unwritten.set = false;
            return report_issue(i, s, at, g, "async", who, "load", "is not ordered after an earlier");
        }
    }
    if (!issue_after_write(i, s, at, g, thread, write))
        return false;
    if (!write)
        return true;
    if (s->reads[g])
        return report_issue(i, s, at, g, "async", s->reader[g], "", "begins before the end of another");
    if (!reads_ordered(s, thread, g, &by) || !slots_ordered(s, thread, g, &by))
        return report_issue(i, s, at, g, "async", by & ~(uint32_t)TX_WHO_ATOMIC, "load",
                            "is not ordered after an earlier");
    return true;
}

static bool
span_granules(const tx_vm *vm, const tx_span_of *s, uint32_t *from, uint32_t *to)
{
    unsigned shift = vm->p->granule_shift;
    *from = s->off >> shift, *to = (s->off + s->n + (1u << shift) - 1) >> shift;
    return s->cta->shadow != NULL;
}

/* Do the records of a granule say what those of the one before say? */
static bool
like_before(const tx_vm *vm, const tx_shadow *s, uint32_t g)
{
    return !vm->unwritten.set && !s->nmore && s->wtime[g] == s->wtime[g - 1] && s->wwho[g] == s->wwho[g - 1] &&
           (s->rtime[g] | s->rtime[g - 1]) << 1 == 0 && s->reads[g] == s->reads[g - 1] &&
           memcmp(&s->slots[(size_t)g * SLOTS], &s->slots[((size_t)g - 1) * SLOTS], SLOTS * sizeof *s->slots) == 0;
}

/* A span goes by blocks: a part of one. */
typedef struct block_part {
    uint32_t block;
    uint64_t pieces; /* 0: not whole pieces */
    tx_span_of span;
} block_part;

static bool
next_part(const tx_span_of *at, block_part *p)
{
    uint32_t off = p->span.n ? p->span.off + p->span.n : at->off, end = at->off + at->n;
    if (off >= end)
        return false;
    p->block = off / BLOCK_BYTES;
    uint32_t in = off % BLOCK_BYTES, n = BLOCK_BYTES - in < end - off ? BLOCK_BYTES - in : end - off;
    p->span = (tx_span_of){at->cta, off, n, 0};
    p->pieces = at->pieces;
    if (!p->pieces && in % BLOCK_PIECE == 0 && n % BLOCK_PIECE == 0)
        p->pieces = (n == BLOCK_BYTES ? ~0ull : (1ull << n / BLOCK_PIECE) - 1) << in / BLOCK_PIECE;
    return true;
}

/* The runs of bytes of a part: its span, or pieces that lie side by side. Begins with *s all zero. */
static bool
next_run(const tx_span_of *at, const block_part *p, tx_span_of *s)
{
    if (!at->pieces) {
        bool first = s->n == 0;
        *s = p->span;
        return first;
    }
    uint32_t from = s->n ? (s->off + s->n) % BLOCK_BYTES / BLOCK_PIECE : 0;
    uint64_t left = s->n && !from ? 0 : at->pieces >> from << from, rest;
    if (!left)
        return false;
    from = (uint32_t)__builtin_ctzll(left);
    rest = ~(left >> from);
    uint32_t n = rest ? (uint32_t)__builtin_ctzll(rest) : 64;
    *s = (tx_span_of){at->cta, p->block * BLOCK_BYTES + from * BLOCK_PIECE, n * BLOCK_PIECE, 0};
    return true;
}

bool
tx_shadow_issue_write(const tx_issue *i, const tx_span_of *at)
{
    uint32_t from, to, thread = tx_order_thread(i->f->warp->cta, i->f->warp->index * TX_LANES + i->lane),
                       who = who_of(thread, i->site, i->atomic);
    tx_shadow *s = at->cta->shadow;
    block_part p = {0};
    if (!s)
        return true;
    while (next_part(at, &p)) {
        if (p.pieces == ~0ull && tx_block_may_write(i, s, p.block, thread))
            continue;
        tx_blocks_open(s, p.span.off, p.span.n);
        span_granules(i->vm, &p.span, &from, &to);
        for (uint32_t g = from; g < to; g++) {
            if (g > from && like_before(i->vm, s, g))
                continue;
            if (!issue_one(i, s, at, g, thread, true))
                return false;
        }
    }
    for (p.span.n = 0; next_part(at, &p);) {
        if (p.pieces == ~0ull && !i->atomic && s->shift <= 4) {
            tx_block_write(s, p.block, who);
            continue;
        }
        tx_blocks_open(s, p.span.off, p.span.n);
        span_granules(i->vm, &p.span, &from, &to);
        for (uint32_t g = from; g < to; g++)
            s->wtime[g] = PENDING, s->wwho[g] = who, s->rtime[g] = 0;
        memset(&s->slots[(size_t)from * SLOTS], 0, (size_t)(to - from) * SLOTS * sizeof *s->slots);
        tx_more_clear(s, from, to - from);
    }
    return true;
}

static bool
issue_read_run(const tx_issue *i, tx_shadow *s, const tx_span_of *at, uint32_t thread, uint32_t who)
{
    uint32_t from, to;
    span_granules(i->vm, at, &from, &to);
    for (uint32_t g = from; g < to; g++) {
        if (g > from && s->wtime[g] == s->wtime[g - 1] && s->wwho[g] == s->wwho[g - 1])
            continue; /* as the one before */
        if (!issue_one(i, s, at, g, thread, false))
            return false;
    }
    for (uint32_t g = from; g < to; g++)
        s->reads[g]++, s->reader[g] = who, s->rtime[g] |= TX_TIME_CLOSER;
    return true;
}

bool
tx_shadow_issue_read(const tx_issue *i, const tx_span_of *at)
{
    uint32_t thread = tx_order_thread(i->f->warp->cta, i->f->warp->index * TX_LANES + i->lane),
             who = who_of(thread, i->site, false);
    tx_shadow *s = at->cta->shadow;
    block_part p = {0};
    if (!s)
        return true;
    while (next_part(at, &p)) {
        tx_span_of run = {0};
        if (p.pieces && tx_block_read(i, s, p.block, p.pieces, thread, who))
            continue;
        tx_blocks_open(s, p.span.off, p.span.n);
        while (next_run(at, &p, &run))
            if (!issue_read_run(i, s, &run, thread, who))
                return false;
    }
    return true;
}

void
tx_shadow_done_write(const tx_vm *vm, const tx_span_of *at, uint32_t agent, uint32_t site)
{
    uint32_t from, to;
    tx_shadow *s = at->cta->shadow;
    block_part p = {0};
    if (!s)
        return;
    uint32_t time = s->order->e.now | (agent >= s->order->nthreads ? TX_TIME_CLOSER : 0),
             who = who_of(agent, site, false);
    while (next_part(at, &p)) {
        if (p.pieces == ~0ull && tx_block_wrote(s, p.block, time, who))
            continue;
        tx_blocks_open(s, p.span.off, p.span.n);
        span_granules(vm, &p.span, &from, &to);
        for (uint32_t g = from; g < to; g++)
            s->wtime[g] = time, s->wwho[g] = who;
    }
}

void
tx_shadow_done_atomic(const tx_vm *vm, const tx_span_of *at, uint32_t agent, uint32_t site)
{
    uint32_t from, to;
    if (!span_granules(vm, at, &from, &to))
        return;
    tx_blocks_open(at->cta->shadow, at->off, at->n);
    tx_shadow_done_write(vm, at, agent, site);
    for (uint32_t g = from; g < to; g++)
        at->cta->shadow->wwho[g] |= TX_WHO_ATOMIC;
}

static void
done_read_run(const tx_vm *vm, tx_shadow *s, const tx_span_of *at, uint32_t who)
{
    uint32_t from, to;
    span_granules(vm, at, &from, &to);
    for (uint32_t g = from; g < to; g++) {
        s->reads[g] -= s->reads[g] > 0;
        tx_note_slot(s, g, s->order->e.now, who);
    }
}

void
tx_shadow_done_read(const tx_vm *vm, const tx_span_of *at, uint32_t agent, uint32_t site)
{
    tx_shadow *s = at->cta->shadow;
    uint32_t who = who_of(agent, site, false);
    block_part p = {0};
    if (!s)
        return;
    while (next_part(at, &p)) {
        tx_span_of run = {0};
        if (p.pieces && tx_block_has_read(s, p.block, p.pieces, who))
            continue;
        tx_blocks_open(s, p.span.off, p.span.n);
        while (next_run(at, &p, &run))
            done_read_run(vm, s, &run, who);
    }
}

bool
tx_shadow_touch_in(const tx_issue *i, const tx_span_of *at, uint8_t kind, uint32_t mem)
{
    tx_shadow *s = at->cta->shadow;
    if (!s || mem == UINT32_MAX)
        return true;
    tx_access a = {i->vm, i->f, mem, i->site, at->n, kind, at->cta == i->f->warp->cta ? NULL : at->cta, 0};
    return thread_access(&a, s, i->lane, at->off - (at->cta->mem[mem].base - at->cta->shared));
}

bool
tx_shadow_touch(const tx_issue *i, const tx_span_of *at, uint8_t kind)
{
    return tx_shadow_touch_in(i, at, kind, tx_mem_at(i->vm, at->cta, at->off));
}

void
tx_shadow_barrier(const tx_vm *vm, const tx_span_of *at, bool live, uint32_t thread, uint32_t site)
{
    uint32_t from, to;
    tx_shadow *s = at->cta->shadow;
    if (!span_granules(vm, at, &from, &to))
        return;
    tx_blocks_open(s, at->off, at->n);
    for (uint32_t g = from; g < to; g++) {
        s->wtime[g] = live ? LIVE : thread == UINT32_MAX ? 0 : s->order->e.now;
        s->wwho[g] = live || thread == UINT32_MAX ? UINT32_MAX : who_of(thread, site, false);
    }
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* Which memory the records are for: other kernels of the call, and this one. */
static bool
race_global(const tx_access *a)
{
    return a->vm->globals && a->vm->globals[a->mem];
}

static bool
race_range(const tx_access *a, int64_t off)
{
    if (a->vm->p->mems[a->mem].scope == TX_GLOBAL)
        return (!a->vm->l->chain || tx_chain_range(a, off)) && (!race_global(a) || tx_global_range(a, off));
    tx_shadow *s = a->f->warp->cta->shadow;
    unsigned shift = a->vm->p->granule_shift;
    uint32_t g = a->f->warp->cta->mem[a->mem].granule + (uint32_t)(off >> shift), n = a->size >> shift;
    uint32_t who = stamp(a, a->f->warp->index * TX_LANES);
    unsigned per = n == 8 ? 3 : n == 4 ? 2 : n == 2 ? 1 : 0;

    if (n && !s->warps && !a->vm->unwritten.set && !s->order->away && s->order->nctas == 1) {
        tx_epoch e = s->order->e;
        bool good = a->kind == TX_READ ? a->vm->isa->shadow_read(s->wtime + g, s->wwho + g, s->rtime + g, s->rwho + g,
                                                                 TX_LANES * n, per, &e, who)
                                       : a->vm->isa->shadow_write(s->wtime + g, s->wwho + g, s->rtime + g, s->rwho + g,
                                                                  TX_LANES * n, per, &e, who);
        if (good)
            return true;
    }
    for (uint32_t lane = 0; lane < TX_LANES; lane++)
        if (!thread_access(a, s, lane, off + (int64_t)lane * a->size))
            return false;
    return true;
}

static bool
race_point(const tx_access *a, int64_t off, uint32_t lanes)
{
    if (a->vm->p->mems[a->mem].scope == TX_GLOBAL)
        return (!a->vm->l->chain || tx_chain_lanes(a, NULL, off, lanes)) &&
               (!race_global(a) || tx_global_lanes(a, NULL, off, lanes));
    tx_shadow *s = a->f->warp->cta->shadow;
    unsigned shift = a->vm->p->granule_shift;
    uint32_t g = a->f->warp->cta->mem[a->mem].granule + (uint32_t)(off >> shift);

    /* a read of what was written before the last barrier, by a warp that is already noted or the first one */
    uint32_t n = a->size >> shift;
    bool easy = a->kind == TX_READ && n > 0 && !s->warps && s->order->nctas == 1;
    for (uint32_t i = 0; easy && i < n; i++)
        easy = s->wtime[g + i] >= s->start && s->wtime[g + i] < s->order->e.floor && !(s->rtime[g + i] >> 31);
    if (easy) {
        uint32_t thread = a->f->warp->index * TX_LANES + tx_first_lane(lanes), who = stamp(a, thread);
        uint32_t more = lanes & (lanes - 1) ? TX_WHO_LANES : 0, floor = s->order->e.floor, now = s->order->e.now,
                 *rwho = s->rwho + g, *rtime = s->rtime + g;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t old = rwho[i], diff = (old >> TX_WHO_THREAD) ^ thread;
            if (rtime[i] < floor)
                rwho[i] = who | more;
            else
                rwho[i] = old | more | (diff ? TX_WHO_LANES : 0) | (diff >> 5 ? TX_WHO_WARPS : 0);
            rtime[i] = now;
        }
        return true;
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        if (!thread_access(a, s, tx_first_lane(left), off))
            return false;
    return true;
}

static bool
race_lanes(const tx_access *a, const int64_t *off, uint32_t lanes)
{
    if (a->vm->p->mems[a->mem].scope == TX_GLOBAL)
        return (!a->vm->l->chain || tx_chain_lanes(a, off, 0, lanes)) &&
               (!race_global(a) || tx_global_lanes(a, off, 0, lanes));
    tx_shadow *s = (a->at ? a->at : a->f->warp->cta)->shadow;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        if (!thread_access(a, s, lane, off[lane]))
            return false;
    }
    return true;
}

const tx_hooks tx_race_hooks = {race_begin, race_end, race_range, race_point, race_lanes, race_barrier, race_warp_sync};
