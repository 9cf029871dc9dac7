/* Checker: races in shared memory, and reads of shared memory that nobody has written. Subscribes to tx_hooks.
 *
 * For each granule (the smallest access that the kernel makes) there is the last write and the reads since: a time, a
 * thread, a place in the source. Time advances at barriers. An access is ordered after an older one when it is by the same
 * thread, or when the two threads have met since: `floor` is the time of the last barrier of the whole CTA, met[w][v] the
 * time up to which warp w has seen warp v, and meetings of some lanes of a warp are kept one by one. Reads by several
 * threads merge into one record that says "other lanes too" or "other warps too"; kernels with named barriers also keep the
 * last time at which each warp read, so that a partial barrier is enough to overwrite. Times go on from CTA to CTA,
 * so that nothing is cleared in between. SPDX-License-Identifier: Apache-2.0 */
#include "emu/vm.h"

enum { MEETINGS = 8 };
typedef struct meeting { /* some lanes of a warp have met */
    uint32_t lanes, time;
} meeting;

struct tx_shadow {
    tx_epoch e;
    uint32_t n; /* granules */
    uint32_t *wtime, *wwho, *rtime, *rwho;
    uint32_t *warps; /* named barriers: last read of each warp, n times nwarps; else NULL */
    uint32_t nwarps;
    uint32_t met[TX_MAX_WARPS][TX_MAX_WARPS];
    meeting recent[TX_MAX_WARPS][MEETINGS];
};

void
tx_shadow_free(tx_shadow *s)
{
    if (!s)
        return;
    tx_free(s->wtime);
    tx_free(s->warps);
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
    s->wtime = tx_calloc((size_t)s->n * 4, sizeof *s->wtime);
    if (p->partial_barriers)
        s->warps = tx_calloc((size_t)s->n * cta->nwarps, sizeof *s->warps);
    if (!s->wtime || (p->partial_barriers && !s->warps)) {
        tx_shadow_free(s);
        return NULL;
    }
    s->wwho = s->wtime + s->n, s->rtime = s->wwho + s->n, s->rwho = s->rtime + s->n;
    return s;
}

static bool tell_unwritten(tx_vm *vm);

/* ---- order ------------------------------------------------------------------------------------------------------- */

static void
all_met(tx_shadow *s, uint32_t warps)
{
    for (uint32_t w = 0; w < s->nwarps; w++)
        for (uint32_t v = 0; v < s->nwarps && (warps >> w & 1); v++)
            if (warps >> v & 1)
                s->met[w][v] = s->e.now;
}

static bool
check_race_begin(tx_vm *vm, tx_cta *cta)
{
    tx_shadow *s = cta->shadow;
    (void)vm;
    if (s->e.now > 0xf0000000u) {
        memset(s->wtime, 0, (size_t)s->n * 4 * sizeof *s->wtime);
        if (s->warps)
            memset(s->warps, 0, (size_t)s->n * s->nwarps * sizeof *s->warps);
        s->e.now = 0;
    }
    s->e.now++;
    s->e.start = s->e.floor = s->e.now;
    all_met(s, TX_FULL);
    memset(s->recent, 0, sizeof s->recent);
    return true;
}

static bool
check_race_end(tx_vm *vm, tx_cta *cta)
{
    return vm->unwritten.cta != cta || tell_unwritten(vm);
}

static void
check_race_barrier(tx_vm *vm, tx_cta *cta, uint32_t warps)
{
    tx_shadow *s = cta->shadow;
    uint32_t seen[TX_MAX_WARPS] = {0}, live = 0;
    if (!s)
        return;
    if (vm->unwritten.set && vm->unwritten.cta == cta && (warps >> vm->unwritten.thread / TX_LANES & 1) &&
        !tell_unwritten(vm))
        return;
    for (uint32_t w = 0; w < s->nwarps; w++)
        live |= cta->warps[w].live ? 1u << w : 0;
    s->e.now++;
    for (uint32_t w = 0; w < s->nwarps; w++) /* what any of them had seen, all have seen now */
        for (uint32_t v = 0; v < s->nwarps && (warps >> w & 1); v++)
            seen[v] = s->met[w][v] > seen[v] ? s->met[w][v] : seen[v];
    for (uint32_t w = 0; w < s->nwarps; w++)
        for (uint32_t v = 0; v < s->nwarps && (warps >> w & 1); v++)
            s->met[w][v] = seen[v];
    all_met(s, warps);
    if (!(live & ~warps))
        s->e.floor = s->e.now;
}

static void
warp_sync(tx_vm *vm, tx_warp *w, uint32_t lanes)
{
    tx_shadow *s = w->cta->shadow;
    (void)vm;
    if (!s)
        return;
    s->e.now++;
    if (!(w->live & ~lanes)) {
        s->met[w->index][w->index] = s->e.now;
        return;
    }
    meeting *m = s->recent[w->index];
    memmove(m + 1, m, (MEETINGS - 1) * sizeof *m);
    m[0] = (meeting){lanes, s->e.now};
}

/* Did `thread` meet `other` after that one's access at `time`? */
static bool
ordered(const tx_shadow *s, uint32_t thread, uint32_t other, uint32_t time)
{
    uint32_t w = thread / TX_LANES, v = other / TX_LANES;
    if (thread == other || s->met[w][v] > time)
        return true;
    if (w != v)
        return false;
    uint32_t both = 1u << thread % TX_LANES | 1u << other % TX_LANES;
    for (int i = 0; i < MEETINGS; i++)
        if (s->recent[w][i].time > time && (s->recent[w][i].lanes & both) == both)
            return true;
    return false;
}

/* Are all reads of a granule ordered before this access? */
static bool
reads_ordered(const tx_shadow *s, uint32_t thread, uint32_t g)
{
    uint32_t who = s->rwho[g], time = s->rtime[g], w = thread / TX_LANES;
    if (time < s->e.floor)
        return true;
    if (!(who & (TX_WHO_LANES | TX_WHO_WARPS)))
        return ordered(s, thread, who >> TX_WHO_THREAD, time);
    if (who & TX_WHO_WARPS) {
        for (uint32_t v = 0; s->warps && v < s->nwarps; v++)
            if (s->warps[(size_t)g * s->nwarps + v] >= s->met[w][v])
                return false;
        return s->warps != NULL;
    }
    return s->met[w][(who >> TX_WHO_THREAD) / TX_LANES] > time;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static bool
check_race_report(const tx_access *a, uint32_t lane, int64_t off, uint32_t other, const char *other_role)
{
    tx_vm *vm = a->vm;
    uint32_t site = other & TX_WHO_SITE;
    const char *role = a->kind == TX_READ ? "load" : a->kind == TX_WRITE ? "store" : "atomic";
    tx_emu_report *r = tx_report_begin(vm, "race", a->site);
    if (!r->buffer[0])
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, role);
    tx_report_element(vm, r, a->f, lane, a->site, off);
    tx_report_thread(vm, r, a->f->warp->cta, other >> TX_WHO_THREAD, site < vm->p->nsites ? site : 0, other_role);
    tx_report_text(r, "%s of %s%s races with a %s by another thread of the CTA: nothing orders them", role, r->buffer,
                   r->element, other_role);
    return tx_report_end(vm, r) == TX_RUN_ON;
}

/* Kept back: see tx_vm.unwritten. */
static void
note_unwritten(const tx_access *a, uint32_t lane, int64_t off, uint32_t g, uint32_t thread)
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
    vm->unwritten.set = true;
    vm->unwritten.report = *r;
    vm->unwritten.cta = a->f->warp->cta;
    vm->unwritten.granule = g, vm->unwritten.thread = thread, vm->unwritten.site = a->site;
    vm->unwritten.time = a->f->warp->cta->shadow->e.now;
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
stamp(const tx_access *a, uint32_t thread)
{
    uint32_t site = a->site > TX_WHO_SITE ? TX_WHO_SITE : a->site;
    return thread << TX_WHO_THREAD | site | (a->kind == TX_ATOMIC ? TX_WHO_ATOMIC : 0);
}

static void
note_read(tx_shadow *s, uint32_t g, uint32_t thread, uint32_t who)
{
    uint32_t old = s->rwho[g], other = old >> TX_WHO_THREAD;
    if (s->warps)
        s->warps[(size_t)g * s->nwarps + thread / TX_LANES] = s->e.now;
    if (s->rtime[g] < s->e.floor || (reads_ordered(s, thread, g) && !s->warps))
        s->rwho[g] = who;
    else if (other != thread)
        s->rwho[g] = old | TX_WHO_LANES | (other / TX_LANES != thread / TX_LANES ? TX_WHO_WARPS : 0);
    s->rtime[g] = s->e.now;
}

static bool
check_race_one(const tx_access *a, tx_shadow *s, uint32_t g, uint32_t lane, int64_t off)
{
    uint32_t thread = a->f->warp->index * TX_LANES + lane, who = stamp(a, thread);
    uint32_t wtime = s->wtime[g], writer = s->wwho[g];
    bool both_atomic = a->kind == TX_ATOMIC && (writer & TX_WHO_ATOMIC);

    if (a->kind == TX_READ && wtime < s->e.start) {
        note_unwritten(a, lane, off, g, thread);
        return true;
    }
    if (a->kind == TX_ATOMIC && wtime < s->e.start)
        note_unwritten(a, lane, off, g, thread);
    else if (a->vm->unwritten.set && a->vm->unwritten.granule == g && a->vm->unwritten.cta == a->f->warp->cta &&
             !ordered(s, thread, a->vm->unwritten.thread, a->vm->unwritten.time)) {
        a->vm->unwritten.set = false;
        if (!check_race_report(
                a, lane, off, a->vm->unwritten.thread << TX_WHO_THREAD | (a->vm->unwritten.site & TX_WHO_SITE), "load"))
            return false;
    }
    if (wtime >= s->e.floor && !both_atomic && !ordered(s, thread, writer >> TX_WHO_THREAD, wtime))
        if (!check_race_report(a, lane, off, writer, writer & TX_WHO_ATOMIC ? "atomic" : "store"))
            return false;
    if (a->kind == TX_READ) {
        note_read(s, g, thread, who);
        return true;
    }
    if (!reads_ordered(s, thread, g) && !check_race_report(a, lane, off, s->rwho[g] & ~(uint32_t)TX_WHO_ATOMIC, "load"))
        return false;
    s->wtime[g] = s->e.now;
    s->wwho[g] = who;
    s->rtime[g] = 0;
    return true;
}

static bool
thread_access(const tx_access *a, tx_shadow *s, uint32_t lane, int64_t off)
{
    unsigned shift = a->vm->p->granule_shift;
    uint32_t g = a->f->warp->cta->mem[a->mem].granule + (uint32_t)(off >> shift), n = a->size >> shift;
    for (uint32_t i = 0; i < (n ? n : 1); i++)
        if (!check_race_one(a, s, g + i, lane, off))
            return false;
    return true;
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

static bool
check_race_range(const tx_access *a, int64_t off)
{
    tx_shadow *s = a->f->warp->cta->shadow;
    unsigned shift = a->vm->p->granule_shift;
    uint32_t g = a->f->warp->cta->mem[a->mem].granule + (uint32_t)(off >> shift), n = a->size >> shift;
    uint32_t who = stamp(a, a->f->warp->index * TX_LANES);
    unsigned per = n == 8 ? 3 : n == 4 ? 2 : n == 2 ? 1 : 0;

    if (n && !s->warps && !a->vm->unwritten.set && s->met[a->f->warp->index][a->f->warp->index] == s->e.floor) {
        bool good = a->kind == TX_READ ? a->vm->isa->shadow_read(s->wtime + g, s->wwho + g, s->rtime + g, s->rwho + g,
                                                                 TX_LANES * n, per, &s->e, who)
                                       : a->vm->isa->shadow_write(s->wtime + g, s->wwho + g, s->rtime + g, s->rwho + g,
                                                                  TX_LANES * n, per, &s->e, who);
        if (good)
            return true;
    }
    for (uint32_t lane = 0; lane < TX_LANES; lane++)
        if (!thread_access(a, s, lane, off + (int64_t)lane * a->size))
            return false;
    return true;
}

static bool
point(const tx_access *a, int64_t off, uint32_t lanes)
{
    tx_shadow *s = a->f->warp->cta->shadow;
    unsigned shift = a->vm->p->granule_shift;
    uint32_t g = a->f->warp->cta->mem[a->mem].granule + (uint32_t)(off >> shift);

    /* a read of what was written before the last barrier, by a warp that is already noted or the first one */
    uint32_t n = a->size >> shift;
    bool easy = a->kind == TX_READ && n > 0 && !s->warps;
    for (uint32_t i = 0; easy && i < n; i++)
        easy = s->wtime[g + i] >= s->e.start && s->wtime[g + i] < s->e.floor;
    if (easy) {
        uint32_t thread = a->f->warp->index * TX_LANES + tx_first_lane(lanes), who = stamp(a, thread);
        uint32_t more = lanes & (lanes - 1) ? TX_WHO_LANES : 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t old = s->rwho[g + i], diff = (old >> TX_WHO_THREAD) ^ thread;
            if (s->rtime[g + i] < s->e.floor)
                s->rwho[g + i] = who | more;
            else
                s->rwho[g + i] = old | more | (diff ? TX_WHO_LANES : 0) | (diff >> 5 ? TX_WHO_WARPS : 0);
            s->rtime[g + i] = s->e.now;
        }
        return true;
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        if (!thread_access(a, s, tx_first_lane(left), off))
            return false;
    return true;
}

static bool
lanes_access(const tx_access *a, const int64_t *off, uint32_t lanes)
{
    tx_shadow *s = a->f->warp->cta->shadow;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        if (!thread_access(a, s, lane, off[lane]))
            return false;
    }
    return true;
}

const tx_hooks tx_race_hooks = {check_race_begin, check_race_end,     check_race_range, point,
                                lanes_access,     check_race_barrier, warp_sync};
