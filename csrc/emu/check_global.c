/* Checker: races through global memory, within a CTA and between CTAs. Called by the hooks of check_race.c for memories that the kernel
 * writes.
 *
 * A granule keeps its last write and, if the kernel also reads the memory, its last read: CTA, thread, time, place. Threads of one CTA or
 * cluster are ordered by its clocks. Between CTAs order comes from strong operations: a release (an operation with .release, or a relaxed
 * one by a thread behind a fence) adds what its thread knows to the list of its address, and a strong read of the address takes the
 * list over, as far as it has grown: at once if it acquires, else behind a fence. Both sides have a scope. An ordinary load beside
 * atomics that update is let pass: loops around compare and swap begin with one. What engines do is check_engines.c's part.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"

enum {
    MOST_RELEASES = 1 << 12,
    DEPTH = 4,
    NARROW = TX_WHO_WARPS,
    UPDATE = 1 << 16,
    SITE = UPDATE - 1,
    RELEASE = 1,
    ACQUIRE = 2
};
#define MOST_BYTES ((uint64_t)1 << 30) /* of records; larger memories are not checked */

typedef struct global_place global_place;
typedef struct global_known global_known;
struct global_known { /* the first `len` releases of a place */
    const global_place *at;
    uint32_t len, thread, time; /* who has taken them over, when */
    uint32_t done;              /* waits: warps all of whose lanes have had a fence since */
    uint8_t scope;
    bool waits;   /* for a fence: the read was relaxed */
    bool proxied; /* in a release: its thread was behind a proxy fence since */
};
typedef struct global_release {
    uint64_t cta;
    uint32_t *knows, *fenced; /* times, by column of its cluster; fenced: behind a proxy fence */
    uint32_t n, nbefore;
    global_known *before;
    uint8_t scope;
} global_release;
struct global_place {
    global_release *list;
    uint32_t n, cap;
};
typedef struct global_record {
    uint32_t *cta, *who, *time;
} global_record;
/* Memory that is only written: blocks of 32 granules, of which most often one warp writes all, or two write a run each. */
enum { BLOCK = 32, RUNS = 2, RUN_PAGE = 512 };
typedef struct global_run {
    uint32_t cta, who, time; /* of the first granule; 1 << shift granules a lane */
    uint8_t first, last, shift;
    bool more; /* of a block's first run: look at the others */
} global_run;
typedef struct global_each { /* instead: every granule */
    struct global_each *next;
    uint32_t cta[BLOCK], who[BLOCK], time[BLOCK];
} global_each;
typedef struct global_page {
    global_run run[RUN_PAGE]; /* the second */
    global_each *each[RUN_PAGE];
} global_page;
struct tx_global {
    global_record w, r, t; /* plain writes, reads, strong operations */
    global_record r2, r3;  /* the reads before the last: by another thread of its CTA, by another CTA */
    global_run *run;       /* instead of w, by block: the first */
    global_page **page;    /* the rest of RUN_PAGE blocks, once it is needed */
    global_each *last;
    uint64_t n;
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static bool
record_new(global_record *r, uint64_t n)
{
    r->cta = tx_calloc(n * 3, sizeof *r->cta);
    if (r->cta)
        r->who = r->cta + n, r->time = r->who + n;
    return r->cta != NULL;
}

static bool
blocks_new(tx_global *g, uint64_t n)
{
    g->run = tx_calloc(n / BLOCK + 1, sizeof *g->run);
    g->page = tx_calloc(n / BLOCK / RUN_PAGE + 1, sizeof *g->page);
    return g->run && g->page;
}

/* Of a block; NULL: there is none, or out of memory if one is to be made. */
static global_page *
page_of(const tx_global *g, uint64_t b, bool make)
{
    global_page **p = &g->page[b / RUN_PAGE];
    if (!*p && make)
        *p = tx_calloc(1, sizeof **p);
    return *p;
}

/* Can engines write there? They need what threads have read, and threads what engines do. */
static bool
engines_store(const tx_emu_program *p, const tx_memory *m)
{
    return (p->bulk_stores && m->pointed) || (p->tensor_stores && (m->read || m->written || m->target));
}

bool
tx_global_start(tx_vm *vm)
{
    const tx_emu_program *p = vm->p;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->nmems; i++) {
        const tx_memory *m = &p->mems[i];
        if (m->scope != TX_GLOBAL || !(m->written || engines_store(p, m)))
            continue;
        const tx_emu_arg *a = &vm->l->args[m->param];
        uint64_t n = a->v.p && !m->target ? (((uint64_t)a->nbytes + a->before) >> p->global_shift) + 2 : 0;
        bool plain = !m->read && !m->pointed;
        bytes += !m->written ? n * 36 * m->read : plain ? n * 2 : n * 12 * (1u + 3u * m->read + m->pointed);
        if ((!n && !m->target) || bytes > MOST_BYTES)
            continue;
        if (!vm->globals && !(vm->globals = tx_calloc(p->nmems, sizeof *vm->globals)))
            return false;
        tx_global *g = vm->globals[i] = tx_calloc(1, sizeof *g);
        if (!g || (n && m->read && (!record_new(&g->r, n) || !record_new(&g->r2, n) || !record_new(&g->r3, n))))
            return false;
        if (n && m->written &&
            ((plain ? !blocks_new(g, n) : !record_new(&g->w, n)) || (m->pointed && !record_new(&g->t, n))))
            return false;
        g->n = n;
    }
    return true;
}

void
tx_global_end(tx_vm *vm)
{
    for (uint32_t i = 0; vm->globals && i < vm->p->nmems; i++)
        if (vm->globals[i]) {
            for (global_each *e = vm->globals[i]->last, *next; e; e = next) {
                next = e->next;
                tx_free(e);
            }
            for (uint64_t k = 0; vm->globals[i]->page && k <= vm->globals[i]->n / BLOCK / RUN_PAGE; k++)
                tx_free(vm->globals[i]->page[k]);
            tx_free(vm->globals[i]->page);
            tx_free(vm->globals[i]->run);
            tx_free(vm->globals[i]->w.cta);
            tx_free(vm->globals[i]->r.cta);
            tx_free(vm->globals[i]->r2.cta);
            tx_free(vm->globals[i]->r3.cta);
            tx_free(vm->globals[i]->t.cta);
            tx_free(vm->globals[i]);
        }
    tx_free(vm->globals);
    tx_engines_end(vm);
    for (uint32_t i = 0; i < vm->nplaces; i++) {
        global_place *at = vm->places[i];
        for (uint32_t k = 0; k < at->n; k++) {
            tx_free(at->list[k].knows);
            tx_free(at->list[k].before);
        }
        tx_free(at->list);
        tx_free(at);
    }
    tx_free(vm->places);
    tx_map_free(&vm->place_at);
}

/* ---- order between CTAs ---------------------------------------------------------------------------------------------- */

static uint64_t
cluster_of(const tx_vm *vm, uint64_t cta)
{
    return cta / ((uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2]);
}

static global_place *
place_at(tx_vm *vm, uint32_t mem, int64_t off, bool make)
{
    uint64_t key = ((uint64_t)(mem + 1) << 44) ^ (uint64_t)(off + ((int64_t)1 << 40)), v;
    if (tx_map_get(&vm->place_at, key, &v))
        return (global_place *)(uintptr_t)v;
    if (!make)
        return NULL;
    global_place *p = tx_calloc(1, sizeof *p);
    if (!p)
        return tx_vm_nomem(vm), NULL;
    global_place **all = tx_realloc(vm->places, (vm->nplaces + 1) * sizeof *all);
    if (!all || !tx_map_put(&vm->place_at, key, (uint64_t)(uintptr_t)p)) {
        if (all)
            vm->places = all;
        tx_free(p);
        return tx_vm_nomem(vm), NULL;
    }
    vm->places = all;
    all[vm->nplaces++] = p;
    return p;
}

/* Does one of these releases cover the access? mine: the CTA that took them over; proxy: behind a proxy fence, too. */
static bool
covers(const tx_vm *vm, const global_known *k, uint64_t mine, uint64_t cta, uint32_t column, uint32_t time, bool proxy,
       tx_global_why *why, int depth)
{
    for (uint32_t i = k->len; i-- > 0;) {
        const global_release *r = &k->at->list[i];
        uint8_t scope = r->scope < k->scope ? r->scope : k->scope;
        bool wide = scope >= 2 || r->cta == mine || (scope == 1 && cluster_of(vm, r->cta) == cluster_of(vm, mine));
        if (cluster_of(vm, r->cta) == cluster_of(vm, cta) && column < r->n && r->knows[column] > time) {
            bool good = !proxy || r->fenced[column] > time;
            if (wide && good)
                return true;
            *(wide ? &why->proxy : &why->narrow) = true;
        }
        for (uint32_t b = 0; depth && b < r->nbefore; b++)
            if (covers(vm, &r->before[b], r->cta, cta, column, time, proxy && !r->before[b].proxied, why, depth - 1)) {
                if (wide)
                    return true;
                why->narrow = true;
            }
    }
    return false;
}

/* The CTA of a thread of this one's order. */
static uint64_t
cta_of(const tx_cta *mine, const tx_order *o, uint32_t thread)
{
    return mine->linear / o->nctas * o->nctas + thread / o->per_cta;
}

static bool
ordered_across(tx_vm *vm, const tx_cta *mine, uint32_t me, uint64_t cta, uint32_t column, uint32_t time, bool proxy,
               tx_global_why *why)
{
    const tx_order *o = tx_shadow_order(mine);
    if (time < vm->grid_floor) { /* of the fences before it only the last is known */
        why->proxy = proxy && vm->proxy_fence <= time;
        return !why->proxy;
    }
    for (uint32_t i = o->nknown; i-- > 0;) {
        const global_known *k = &o->known[i];
        if (!tx_order_seen(o, me, k->thread, k->time) || (k->waits && (why->narrow || why->relaxed)))
            continue;
        tx_global_why part = {false, false, false};
        bool fenced = !proxy || tx_order_fenced_global(o, me, k->thread, k->time);
        if (!covers(vm, k, cta_of(mine, o, k->thread), cta, column, time, !fenced, &part, DEPTH))
            why->narrow |= part.narrow, why->proxy |= part.proxy && !k->waits;
        else if (!k->waits)
            return true;
        else
            why->relaxed = true;
    }
    return false;
}

bool
tx_global_ordered(tx_vm *vm, const tx_cta *mine, uint32_t me, uint64_t cta, uint32_t column, uint32_t time, bool proxy,
                  tx_global_why *why)
{
    const tx_order *o = tx_shadow_order(mine);
    if (cluster_of(vm, cta) == cluster_of(vm, mine->linear) && tx_order_seen(o, me, column, time)) {
        if (!proxy || column >= o->nthreads || tx_order_fenced_global(o, me, column, time))
            return true;
        why->proxy = true;
        return false;
    }
    return ordered_across(vm, mine, me, cta, column, time, proxy, why);
}

static void
know(tx_vm *vm, tx_order *o, global_known k)
{
    for (uint32_t i = o->nknown, n = 0; i-- > 0 && n < TX_LANES; n++) { /* spinning lanes add nothing */
        const global_known *old = &o->known[i];
        if (old->at == k.at && old->len == k.len && old->thread == k.thread && old->scope == k.scope &&
            old->waits == k.waits)
            return;
    }
    if (o->nknown == o->known_cap) {
        uint32_t cap = o->known_cap ? o->known_cap * 2 : 16;
        global_known *p = tx_realloc(o->known, cap * sizeof *p);
        if (!p) {
            tx_vm_nomem(vm);
            return;
        }
        o->known = p, o->known_cap = cap;
    }
    o->known[o->nknown++] = k;
    tx_order_tick(o);
}

static void
acquire(const tx_access *a, uint32_t me, global_place *at, uint8_t scope, bool itself)
{
    tx_order *o = tx_shadow_order(a->f->warp->cta);
    know(a->vm, o,
         (global_known){.at = at, .len = at->n, .thread = me, .time = o->e.now, .scope = scope, .waits = !itself});
}

/* A fence behind relaxed reads makes them acquire, those by these lanes and those that they are ordered after. */
void
tx_global_fence(tx_vm *vm, const tx_frag *f, uint8_t scope)
{
    const tx_warp *w = f->warp;
    tx_order *o = tx_shadow_order(w->cta);
    uint32_t first = tx_order_thread(w->cta, w->index * TX_LANES), n = o->nknown, warp = first / TX_LANES;
    for (uint32_t i = 0; i < n && !vm->stop; i++) {
        if (!o->known[i].waits || (warp < 32 && o->known[i].done >> warp & 1))
            continue;
        bool all = scope == 2 && warp < 32 && !(w->live & ~f->m);
        for (uint32_t left = f->m; left; left &= left - 1) {
            global_known k = o->known[i];
            uint32_t me = first + tx_first_lane(left);
            if (!tx_order_seen(o, me, k.thread, k.time)) {
                all = false;
                continue;
            }
            k.thread = me, k.time = o->e.now, k.waits = false;
            k.scope = scope < k.scope ? scope : k.scope;
            know(vm, o, k);
        }
        if (all)
            o->known[i].done |= 1u << warp;
    }
}

/* A release at a place of what `c` says, or of what lies behind its fences of the whole GPU. */
static global_release *
release_as(const tx_access *a, uint32_t me, int64_t off, uint8_t scope, const uint32_t *seen, const uint32_t *wide,
           uint32_t floor)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    global_place *at = place_at(vm, a->mem, off, true);
    if (!at)
        return NULL;
    if (at->n == MOST_RELEASES) { /* so many that all is taken for ordered */
        vm->grid_floor = tx_order_tick(o);
        return NULL;
    }
    if (at->n == at->cap) {
        uint32_t cap = at->cap ? at->cap * 2 : 4;
        global_release *p = tx_realloc(at->list, cap * sizeof *p);
        if (!p) {
            tx_vm_nomem(vm);
            return NULL;
        }
        at->list = p, at->cap = cap;
    }
    global_release *r = &at->list[at->n];
    memset(r, 0, sizeof *r);
    r->cta = cta->linear, r->scope = scope, r->n = o->n;
    r->knows = tx_calloc(2 * (size_t)o->n, sizeof *r->knows);
    r->before = tx_calloc(o->nknown + 1, sizeof *r->before);
    if (!r->knows || !r->before) {
        tx_free(r->knows), tx_free(r->before);
        tx_vm_nomem(vm);
        return NULL;
    }
    r->fenced = r->knows + o->n;
    tx_order_fenced_times(o, me, r->fenced);
    for (uint32_t t = 0; t < o->n; t++) {
        uint32_t time = !seen ? 0 : seen[t] > floor || t >= o->nthreads ? seen[t] : floor;
        r->knows[t] = wide && wide[t] > time ? wide[t] : time;
    }
    for (uint32_t i = 0; i < o->nknown; i++) {
        const global_known *k = &o->known[i];
        if (k->at == at || k->waits || !tx_order_seen(o, me, k->thread, k->time))
            continue;
        r->before[r->nbefore] = *k;
        r->before[r->nbefore++].proxied = tx_order_fenced_global(o, me, k->thread, k->time);
    }
    at->n++;
    return r;
}

static void
release(const tx_access *a, uint32_t me, int64_t off, uint8_t scope, bool itself)
{
    tx_order *o = tx_shadow_order(a->f->warp->cta);
    const tx_clock *c = o->of[me];
    global_release *r;
    bool any = false;
    for (uint32_t t = 0; t < o->nthreads && !any; t++)
        any = c->wide[t] != 0;
    if (itself) {
        uint32_t now = tx_order_tick(o);
        if ((r = release_as(a, me, off, scope, c->seen, any ? c->wide : NULL, o->e.floor)))
            r->knows[me] = now;
        return;
    }
    if (any)
        release_as(a, me, off, scope, NULL, c->wide, 0);
    for (uint32_t i = 0; i < o->nfences; i++) {
        const tx_fence *f = &o->fences[i];
        if (tx_order_seen(o, me, f->thread, f->time) &&
            (r = release_as(a, me, off, scope < f->scope ? scope : f->scope, f->seen->seen, NULL, f->floor)))
            r->knows[f->thread] = f->time + 1;
    }
    tx_order_tick(o);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static tx_global_last
run_at(const global_run *r, uint32_t i)
{
    tx_global_last l = {r->cta, r->who + ((i - r->first) >> r->shift << TX_WHO_THREAD), r->time};
    return l;
}

/* The last plain write of a granule; time 0: there is none. */
static tx_global_last
last_write(const tx_global *m, uint64_t g)
{
    tx_global_last none = {0, 0, 0};
    if (!m->run && !m->w.time)
        return none;
    if (!m->run) {
        tx_global_last l = {m->w.cta[g], m->w.who[g], m->w.time[g]};
        return l;
    }
    uint64_t b = g / BLOCK;
    uint32_t i = g % BLOCK;
    const global_page *more = m->run[b].more ? page_of(m, b, false) : NULL;
    const global_each *e = more ? more->each[b % RUN_PAGE] : NULL;
    if (e) {
        tx_global_last l = {e->cta[i], e->who[i], e->time[i]};
        return l;
    }
    const global_run *run[RUNS] = {&m->run[b], more ? &more->run[b % RUN_PAGE] : NULL};
    for (int k = 0; k < RUNS && run[k]; k++)
        if (run[k]->time && i >= run[k]->first && i <= run[k]->last)
            return run_at(run[k], i);
    return none;
}

static bool
note_write(tx_global *m, uint64_t g, uint32_t cta, uint32_t who, uint32_t time)
{
    if (!m->run) {
        m->w.cta[g] = cta, m->w.who[g] = who, m->w.time[g] = time;
        return true;
    }
    uint64_t b = g / BLOCK;
    uint32_t i = g % BLOCK;
    global_page *more = page_of(m, b, true);
    global_each *e = more ? more->each[b % RUN_PAGE] : NULL;
    if (!more)
        return false;
    if (!e) {
        const global_run *run[RUNS] = {&m->run[b], &more->run[b % RUN_PAGE]};
        if (!(e = tx_calloc(1, sizeof *e)))
            return false;
        for (int k = 0; k < RUNS; k++)
            for (uint32_t at = run[k]->first; run[k]->time && at <= run[k]->last; at++) {
                tx_global_last l = run_at(run[k], at);
                e->cta[at] = (uint32_t)l.cta, e->who[at] = l.who, e->time[at] = l.time;
            }
        e->next = m->last;
        more->each[b % RUN_PAGE] = m->last = e;
        m->run[b].more = true;
    }
    e->cta[i] = cta, e->who[i] = who, e->time[i] = time;
    return true;
}

/* Where a run can go: in place of one by the same threads, or beside those that it does not overlap. -1: nowhere. */
static int
run_room(const tx_global *m, uint64_t b, uint32_t first, uint32_t size, uint32_t cta, uint32_t who, uint8_t shift)
{
    int room = -1;
    const global_page *more = m->run[b].more ? page_of(m, b, false) : NULL;
    if (more && more->each[b % RUN_PAGE])
        return -1;
    for (int k = RUNS - 1; k >= 0; k--) {
        const global_run *r = !k ? &m->run[b] : more ? &more->run[b % RUN_PAGE] : NULL;
        if (!r)
            room = k;
        else if (!r->time || (r->cta == cta && (r->who ^ who) >> TX_WHO_THREAD == 0 && r->first == first &&
                              r->last == first + size - 1 && r->shift == shift))
            room = k;
        else if (r->first < first + size && r->last >= first)
            return -1;
    }
    return room;
}

/* A run of granules that nobody else has written, in blocks with room for it. */
static bool
note_run(tx_global *m, uint64_t g, uint64_t n, uint32_t per, uint32_t cta, uint32_t who, uint32_t time)
{
    uint8_t shift = (uint8_t)__builtin_ctz(per);
    if (1u << shift != per)
        return false;
    if (n == BLOCK && g % BLOCK == 0 && !m->run[g / BLOCK].time && !m->run[g / BLOCK].more) {
        m->run[g / BLOCK] = (global_run){cta, who, time, 0, BLOCK - 1, 0, false};
        return true;
    }
    for (int put = 0; put < 2; put++) /* look, then do */
        for (uint64_t at = g; at < g + n;) {
            uint64_t b = at / BLOCK;
            uint32_t first = at % BLOCK, room = BLOCK - first, size = g + n - at < room ? (uint32_t)(g + n - at) : room,
                     mine = who + (uint32_t)((at - g) >> shift << TX_WHO_THREAD);
            int k = run_room(m, b, first, size, cta, mine, shift);
            if (k < 0 || (at - g) % per || (k && !page_of(m, b, true)))
                return false;
            if (put) {
                bool more = m->run[b].more || k;
                *(k ? &page_of(m, b, false)->run[b % RUN_PAGE] : &m->run[b]) =
                    (global_run){cta, mine, time, (uint8_t)first, (uint8_t)(first + size - 1), shift, false};
                m->run[b].more = more;
            }
            at += size;
        }
    return true;
}

/* Are these granules' records, if there are any, all of the lane that comes, or of what its CTA's threads have all seen? */
static bool
own_records(const global_record *r, uint64_t g, uint32_t n, uint8_t shift, uint32_t cta, uint32_t first, uint32_t floor)
{
    uint32_t others = 0;
    for (uint32_t i = 0; r->time && i < n; i++) {
        bool same = r->who[g + i] >> TX_WHO_THREAD == first + (i >> shift);
        others |= r->time[g + i] && (r->cta[g + i] != cta || (!same && r->time[g + i] >= floor));
    }
    return !others;
}

/* Before a read becomes the last one. */
static void
keep_reader(tx_global *m, uint64_t i, uint32_t cta, uint32_t me)
{
    if (!m->r.time[i] || (m->r.cta[i] == cta && m->r.who[i] >> TX_WHO_THREAD == me))
        return;
    global_record *to = m->r.cta[i] == cta ? &m->r2 : &m->r3;
    to->cta[i] = m->r.cta[i], to->who[i] = m->r.who[i], to->time[i] = m->r.time[i];
}

/* A warp's ordinary access in memory with records of its own, where nothing of others is near. */
static bool
note_own(tx_global *m, uint64_t g, uint32_t n, uint32_t per, bool write, uint32_t cta, uint32_t who, const tx_epoch *e)
{
    uint8_t shift = (uint8_t)__builtin_ctz(per);
    uint32_t first = who >> TX_WHO_THREAD;
    if (1u << shift != per || !own_records(&m->w, g, n, shift, cta, first, e->floor) ||
        !own_records(&m->t, g, n, shift, cta, first, e->floor) ||
        (write && (!own_records(&m->r, g, n, shift, cta, first, e->floor) ||
                   !own_records(&m->r2, g, n, shift, cta, first, e->floor) ||
                   !own_records(&m->r3, g, n, shift, cta, first, e->floor))))
        return false;
    const global_record *to = write ? &m->w : &m->r;
    for (uint32_t i = 0; !write && to->time && i < n; i++)
        keep_reader(m, g + i, cta, first + (i >> shift));
    for (uint32_t i = 0; to->time && i < n; i++)
        to->cta[g + i] = cta, to->who[g + i] = who + ((i >> shift) << TX_WHO_THREAD), to->time[g + i] = e->now;
    if (write && m->r.time) {
        memset(m->r.time + g, 0, n * sizeof *m->r.time);
        memset(m->r2.time + g, 0, n * sizeof *m->r.time);
        memset(m->r3.time + g, 0, n * sizeof *m->r.time);
    }
    if (write && m->t.time)
        memset(m->t.time + g, 0, n * sizeof *m->t.time);
    return true;
}

/* ---- one access -------------------------------------------------------------------------------------------------- */

static bool
report_global(const tx_access *a, uint32_t lane, int64_t off, const char *kind, uint64_t cta, uint32_t who,
              const char *other_role, bool relaxed)
{
    tx_vm *vm = a->vm;
    const tx_order *o = tx_shadow_order(a->f->warp->cta);
    const char *role = a->kind == TX_READ ? "load" : a->kind == TX_WRITE ? "store" : "atomic";
    uint32_t site = who & SITE, thread = who >> TX_WHO_THREAD;
    tx_cta other = {.linear = cta};
    tx_emu_report *r = tx_report_begin(vm, kind, a->site);
    if (!r->buffer[0])
        strncpy(r->buffer, vm->p->mems[a->mem].name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, a->f, lane, a->site, role);
    tx_report_element(vm, r, a->f, lane, a->site, off);
    tx_cta_place(vm, &other, cta / o->nctas * o->nctas + thread / o->per_cta);
    tx_report_thread(vm, r, &other, thread % o->per_cta, site < vm->p->nsites ? site : 0, other_role);
    if (strcmp(kind, "scope") == 0)
        tx_report_text(
            r, "%s of %s%s and the %s by another CTA are ordered only for a part of the GPU: the scope is too narrow",
            role, r->buffer, r->element, other_role);
    else if (relaxed)
        tx_report_text(
            r,
            "%s of %s%s races with a %s by another CTA, which has released it: what has read the flag here is "
            "relaxed, and no fence follows, so it does not acquire",
            role, r->buffer, r->element, other_role);
    else
        tx_report_text(r, "%s of %s%s races with a %s by another thread%s: nothing orders them", role, r->buffer,
                       r->element, other_role, cta == a->f->warp->cta->linear ? " of the CTA" : "");
    return tx_report_end(vm, r) == TX_RUN_ON;
}

static const char *
record_role(uint32_t who, bool read)
{
    return who & TX_WHO_ATOMIC ? "atomic" : read ? "load" : "store";
}

static bool
against(const tx_access *a, tx_global_last rec, uint32_t lane, int64_t off, uint32_t me, bool read)
{
    tx_vm *vm = a->vm;
    const tx_cta *mine = a->f->warp->cta;
    const tx_order *o = tx_shadow_order(mine);
    uint32_t time = rec.time, who = rec.who, thread = who >> TX_WHO_THREAD;
    uint64_t cta = rec.cta;
    bool strong = a->kind == TX_ATOMIC || a->strength, both = strong && (who & TX_WHO_ATOMIC);
    tx_global_why why = {false, false, false};
    if (!time)
        return true;
    if ((a->kind == TX_READ && !strong && (who & UPDATE)) || (read && a->kind == TX_ATOMIC))
        return true; /* the loop around compare and swap begins with an ordinary load */
    bool together = cluster_of(vm, cta) == cluster_of(vm, mine->linear);
    if (together && (both || tx_order_seen(o, me, thread, time)))
        return true;
    if (both) {
        bool small = (who & NARROW) || (a->strength && (a->strength - 1) / 4 == 0);
        return !small || time < vm->grid_floor ||
               report_global(a, lane, off, "scope", cta, who, record_role(who, read), false);
    }
    if (ordered_across(vm, mine, me, cta, thread, time, false, &why))
        return true;
    return report_global(a, lane, off, why.narrow ? "scope" : "race", cta, who, record_role(who, read), why.relaxed);
}

static tx_global_last
last_of(const global_record *r, uint64_t g)
{
    tx_global_last l = {r->time ? r->cta[g] : 0, r->time ? r->who[g] : 0, r->time ? r->time[g] : 0};
    return l;
}

static bool
global_one(const tx_access *a, tx_global *m, uint32_t lane, int64_t off)
{
    tx_vm *vm = a->vm;
    const tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    unsigned shift = vm->p->global_shift;
    uint64_t g = (uint64_t)(off + vm->mem[a->mem].before) >> shift, n = a->size >> shift;
    uint32_t me = tx_order_thread(cta, a->f->warp->index * TX_LANES + lane);
    bool strong = a->kind == TX_ATOMIC || a->strength;
    unsigned packed = a->strength ? a->strength - 1u : 8, scope = packed / 4;
    uint32_t who = me << TX_WHO_THREAD | (a->site & SITE) | (strong ? TX_WHO_ATOMIC : 0) |
                   (strong && scope == 0 ? NARROW : 0) | (a->kind == TX_ATOMIC ? UPDATE : 0);
    if (strong && a->kind != TX_WRITE) {
        global_place *at = place_at(vm, a->mem, off, false);
        if (at)
            acquire(a, me, at, (uint8_t)scope, packed & ACQUIRE);
    }
    if (vm->engine_cells && vm->engine_cells[a->mem] && !tx_engines_access(a, lane, off, me))
        return false;
    for (uint64_t i = g; i < g + (n ? n : 1) && i < m->n; i++) {
        bool write = a->kind != TX_READ;
        if (!against(a, last_write(m, i), lane, off, me, false) ||
            !against(a, last_of(&m->t, i), lane, off, me, false) ||
            (write && (!against(a, last_of(&m->r, i), lane, off, me, true) ||
                       !against(a, last_of(&m->r2, i), lane, off, me, true) ||
                       !against(a, last_of(&m->r3, i), lane, off, me, true))))
            return false;
        if (write && !strong && (m->run || m->w.time) && !note_write(m, i, (uint32_t)cta->linear, who, o->e.now))
            return tx_vm_nomem(vm), false;
        if (!write && !strong && m->r.time)
            keep_reader(m, i, (uint32_t)cta->linear, me);
        const global_record *to = write ? &m->t : &m->r;
        if ((write || !strong) && !(write && !strong) && to->time)
            to->cta[i] = (uint32_t)cta->linear, to->who[i] = who, to->time[i] = o->e.now;
        if (write && !strong && m->r.time)
            m->r.time[i] = m->r2.time[i] = m->r3.time[i] = 0;
        if (write && !strong && m->t.time)
            m->t.time[i] = 0;
    }
    if (strong && a->kind != TX_READ)
        release(a, me, off, (uint8_t)scope, packed & RELEASE);
    return !vm->stop;
}

/* ---- what check_race.c hands over ---------------------------------------------------------------------------------------- */

bool
tx_global_range(const tx_access *a, int64_t off)
{
    tx_global *m = a->vm->globals[a->mem];
    const tx_cta *cta = a->f->warp->cta;
    unsigned shift = a->vm->p->global_shift, per = a->size >> shift;
    uint64_t g = (uint64_t)(off + a->vm->mem[a->mem].before) >> shift, n = (uint64_t)TX_LANES * per;
    const tx_order *o = tx_shadow_order(cta);
    uint32_t who = tx_order_thread(cta, a->f->warp->index * TX_LANES) << TX_WHO_THREAD | (a->site & SITE);
    if (per && g + n <= m->n && !(a->vm->engine_cells && a->vm->engine_cells[a->mem]) && !a->strength &&
        a->kind != TX_ATOMIC) {
        if (m->run ? a->kind == TX_WRITE && note_run(m, g, n, per, (uint32_t)cta->linear, who, o->e.now)
                   : o->nctas == 1 &&
                         note_own(m, g, (uint32_t)n, per, a->kind == TX_WRITE, (uint32_t)cta->linear, who, &o->e))
            return true;
    }
    for (uint32_t lane = 0; lane < TX_LANES; lane++)
        if (!global_one(a, m, lane, off + (int64_t)lane * a->size))
            return false;
    return true;
}

bool
tx_global_lanes(const tx_access *a, const int64_t *off, int64_t same, uint32_t lanes)
{
    tx_global *m = a->vm->globals[a->mem];
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        if (!global_one(a, m, lane, off ? off[lane] : same))
            return false;
    }
    return true;
}

uint32_t
tx_global_records(const tx_vm *vm, uint32_t mem, int64_t off, tx_global_last last[5])
{
    const tx_global *m = vm->globals ? vm->globals[mem] : NULL;
    unsigned shift = vm->p->global_shift;
    uint64_t g = (uint64_t)(off + vm->mem[mem].before) >> shift;
    if (!m || g >= m->n)
        return 0;
    last[0] = last_write(m, g), last[1] = last_of(&m->t, g), last[2] = last_of(&m->r, g);
    last[3] = last_of(&m->r2, g), last[4] = last_of(&m->r3, g);
    for (int i = 0; i < 5; i++)
        last[i].who &= ~(uint32_t)(UPDATE | NARROW);
    return 1u << shift;
}
