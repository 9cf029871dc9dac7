/* Tensor memory: allocation, loads and stores by warps, and what is under way in it (tmem.h). PTX ISA, tcgen05 instructions; register
 * images by the intrinsics reference. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/ptx_list.h"
#include "emu/tc.h"

#define EACH_OF(mask, l) for (uint32_t left_ = (mask), l; left_ && (l = tx_first_lane(left_), true); left_ &= left_ - 1)

tx_tmem *
tx_tmem_of(tx_vm *vm, tx_cta *cta)
{
    tx_engine *e = cta->engine;
    if (!e->tmem && !(e->tmem = tx_calloc(1, sizeof *e->tmem)))
        tx_vm_nomem(vm);
    return e->tmem;
}

tx_cta *
tx_tmem_peer(tx_vm *vm, tx_cta *cta)
{
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    for (tx_cta *c = vm->ctas; c; c = c->next)
        if (c != cta && c->linear / per == cta->linear / per && c->cluster_rank == (cta->cluster_rank ^ 1))
            return c;
    return NULL;
}

int
tx_tmem_find(const tx_ptx_op *k, const char *name)
{
    for (int i = 0; i < k->nin; i++)
        if (k->in_name[i][0] == name[0] && k->in_name[i][1] == name[1])
            return i;
    return -1;
}

static const char *
role_of(const tx_act *a)
{
    return tx_site_of(a->vm, a->in->site)->role;
}

tx_emu_report *
tx_tmem_report(const tx_act *a, uint32_t lane, const char *kind)
{
    tx_emu_report *r = tx_act_report(a, lane, kind);
    strcpy(r->buffer, "tmem");
    r->element[0] = 0;
    return r;
}

static uint32_t
my_column(const tx_act *a, uint32_t lane)
{
    return tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + lane);
}

bool
tx_tmem_whole_warp(const tx_act *a)
{
    if (a->f->m == a->f->warp->live || !a->vm->check)
        return true;
    tx_emu_report *r = tx_act_report(a, tx_first_lane(a->f->m), "divergence");
    tx_report_text(r, "%s is executed by %d of the %d threads of its warp: .aligned instructions need all of them",
                   role_of(a), __builtin_popcount(a->f->m), __builtin_popcount(a->f->warp->live));
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

/* All tcgen05 instructions of a CTA work in one cta_group. */
static bool
same_group(const tx_act *a, tx_tmem *t)
{
    uint8_t group = tx_act_has(a, TK_cta_group__2) ? 2 : 1;
    if (t->group && t->group != group && a->vm->check) {
        tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
        tx_report_text(r, "%s with cta_group::%u in a CTA that has used cta_group::%u", role_of(a), group, t->group);
        return tx_report_end(a->vm, r) == TX_RUN_ON;
    }
    t->group = group;
    return true;
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

static bool
size_is_right(const tx_act *a, uint32_t n)
{
    if (n >= 32 && n <= TMEM_COLUMNS && !(n & (n - 1)))
        return true;
    tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
    tx_report_text(r, "%s of %u columns: the number is a power of two in 32..%d", role_of(a), n, TMEM_COLUMNS);
    tx_report_end(a->vm, r);
    return false;
}

static int
free_columns(const tx_tmem *t, const tx_tmem *peer, uint32_t n)
{
    for (uint32_t c = 0; c + n <= TMEM_COLUMNS; c += n) {
        uint32_t k = 0;
        while (k < n && !t->owner[c + k] && !(peer && peer->owner[c + k]))
            k++;
        if (k == n)
            return (int)c;
    }
    return -1;
}

static bool
take_columns(const tx_act *a, tx_tmem *t, uint32_t column, uint32_t n, uint8_t group)
{
    uint32_t i = 0;
    while (i < t->nallocs && t->alloc[i].n)
        i++;
    if (i == TMEM_ALLOCS)
        return false;
    if (i == t->nallocs)
        t->nallocs++;
    t->alloc[i] = (tmem_alloc){(uint16_t)column, (uint16_t)n, group, a->in->site, a->f->warp->index * TX_LANES};
    memset(t->owner + column, (int)i + 1, n);
    memset(t->written[column], 0, n * sizeof t->written[0]);
    a->vm->changes++;
    return true;
}

/* The base address goes to shared memory, where one thread of the warp writes it. */
static bool
give_address(const tx_act *a, uint32_t column)
{
    uint32_t l = tx_first_lane(a->f->m);
    tx_where w;
    tx_issue i = tx_act_issue(a, l, false);
    if (!tx_act_where(a, "d", l, 4, 4, true, &w))
        return !a->vm->stop;
    tx_span_of s = {w.cta, w.off, 4, 0};
    if (w.space != TX_GLOBAL && !tx_shadow_touch(&i, &s, TX_WRITE))
        return false;
    memcpy(w.p, &column, 4);
    return true;
}

static int
wait_here(const tx_act *a)
{
    a->f->state = TX_WAIT_EVENT;
    a->f->wait_mask = a->f->m;
    return TX_RUN_BLOCK;
}

/* No other CTA of the pair: it has not started yet, or there is none. */
static int
alone(const tx_act *a)
{
    const uint32_t *c = a->vm->l->cluster;
    if (c[0] * c[1] * c[2] % 2 == 0)
        return wait_here(a);
    tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
    tx_report_text(r, "%s with cta_group::2 in a CTA without a pair: launch clusters of an even number of CTAs",
                   role_of(a));
    return tx_report_end(a->vm, r);
}

TX_PTX_AGENT(tc_alloc)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta, *other = NULL;
    tx_tmem *t = tx_tmem_of(vm, cta), *peer = NULL;
    bool again = a->f->state == TX_WAIT_EVENT, pair = tx_act_has(a, TK_cta_group__2);
    uint32_t n = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "n"), tx_first_lane(a->f->m));
    if (!t)
        return TX_RUN_STOP;
    if (!again) {
        if (!tx_tmem_whole_warp(a) || !same_group(a, t))
            return TX_RUN_STOP;
        if (!size_is_right(a, n))
            return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
        if (t->relinquished) {
            tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
            tx_report_text(r, "%s after the CTA has given up the right to allocate", role_of(a));
            if (tx_report_end(vm, r) != TX_RUN_ON)
                return TX_RUN_STOP;
        }
    }
    if (pair && t->pair.served) { /* the other half has done it for both */
        t->pair.waiting = t->pair.served = false;
        return give_address(a, t->pair.column) ? TX_RUN_ON : TX_RUN_STOP;
    }
    if (pair) {
        if (!(other = tx_tmem_peer(vm, cta)))
            return alone(a);
        if (!(peer = tx_tmem_of(vm, other)))
            return TX_RUN_STOP;
        if (!peer->pair.waiting || peer->pair.served || peer->pair.dealloc) {
            t->pair.waiting = true, t->pair.dealloc = false, t->pair.n = n;
            return wait_here(a);
        }
        if (peer->pair.n != n) {
            tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
            tx_report_text(r, "%s of %u columns where the other CTA of the pair takes %u", role_of(a), n, peer->pair.n);
            return tx_report_end(vm, r);
        }
    }
    int column = free_columns(t, peer, n);
    if (column < 0) {
        t->pair.waiting = false;
        return wait_here(a);
    }
    if (!take_columns(a, t, (uint32_t)column, n, pair ? 2 : 1) ||
        (pair && !take_columns(a, peer, (uint32_t)column, n, 2)))
        return wait_here(a);
    if (pair)
        peer->pair.served = true, peer->pair.column = (uint32_t)column, t->pair.waiting = false;
    return give_address(a, (uint32_t)column) ? TX_RUN_ON : TX_RUN_STOP;
}

static bool
in_flight(const tx_tmem *t, uint32_t column, uint32_t n, tmem_event *e)
{
    for (uint32_t w = 0; w < TMEM_WINDOWS; w++)
        for (uint32_t c = column; c < column + n; c++)
            if (t->record[w][c].writes || t->record[w][c].reads)
                return *e = t->record[w][c].flight, true;
    return false;
}

static bool
release_columns(const tx_act *a, tx_cta *cta, tx_tmem *t, uint32_t column, uint32_t n)
{
    tmem_event e;
    uint32_t i = column < TMEM_COLUMNS ? t->owner[column] : 0;
    if (!i || t->alloc[i - 1].column != column || t->alloc[i - 1].n != n) {
        tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "tmem");
        if (!i)
            tx_report_text(r, "%s of columns %u..%u, which are not allocated", role_of(a), column, column + n - 1);
        else
            tx_report_text(r, "%s of %u columns from %u on; the allocation is of %u from %u on", role_of(a), n, column,
                           t->alloc[i - 1].n, t->alloc[i - 1].column);
        return tx_report_end(a->vm, r) == TX_RUN_ON;
    }
    if (a->vm->check && in_flight(t, column, n, &e)) {
        tx_emu_report *r = tx_tmem_report(a, tx_first_lane(a->f->m), "async");
        tx_report_thread(a->vm, r, cta, e.who, e.site, tx_site_of(a->vm, e.site)->role);
        tx_report_text(r, "%s of columns in which %s is still under way", role_of(a), tx_site_of(a->vm, e.site)->role);
        return tx_report_end(a->vm, r) == TX_RUN_ON;
    }
    memset(t->owner + column, 0, n);
    t->alloc[i - 1].n = 0;
    a->vm->changes++;
    return true;
}

TX_PTX_AGENT(tc_dealloc)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta;
    tx_tmem *t = tx_tmem_of(vm, cta);
    uint32_t l = tx_first_lane(a->f->m), n = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "n"), l),
             column = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "t"), l) & 0xffff;
    if (!t || (a->f->state != TX_WAIT_EVENT && (!tx_tmem_whole_warp(a) || !same_group(a, t))))
        return TX_RUN_STOP;
    if (tx_act_has(a, TK_cta_group__2)) { /* each half gives back its own columns when both have come */
        tx_cta *other = t->pair.served ? NULL : tx_tmem_peer(vm, cta); /* which may have left by now */
        tx_tmem *peer = other ? tx_tmem_of(vm, other) : NULL;
        if (!other && !t->pair.served)
            return alone(a);
        if (!peer && !t->pair.served)
            return TX_RUN_STOP;
        if (t->pair.served)
            t->pair.waiting = t->pair.served = false;
        else if (!peer->pair.waiting || peer->pair.served || !peer->pair.dealloc) {
            t->pair.waiting = t->pair.dealloc = true;
            return wait_here(a);
        } else
            peer->pair.served = true;
        vm->changes++;
    }
    return release_columns(a, cta, t, column, n) ? TX_RUN_ON : TX_RUN_STOP;
}

TX_PTX_AGENT(tc_relinquish)
{
    tx_tmem *t = tx_tmem_of(a->vm, a->f->warp->cta);
    if (!t || !tx_tmem_whole_warp(a) || !same_group(a, t))
        return TX_RUN_STOP;
    t->relinquished = true;
    return TX_RUN_ON;
}

bool
tx_tmem_end(tx_vm *vm, tx_cta *cta)
{
    tx_tmem *t = cta->engine->tmem;
    for (uint32_t i = 0; t && i < t->nallocs; i++) {
        tmem_alloc *k = &t->alloc[i];
        if (!k->n || !vm->check)
            continue;
        tx_emu_report *r = tx_report_begin(vm, "tmem", k->site);
        strcpy(r->buffer, "tmem");
        r->element[0] = 0;
        tx_report_thread(vm, r, cta, k->thread, k->site, tx_site_of(vm, k->site)->role);
        tx_report_text(r, "the CTA exits with %u columns of tensor memory, from %u on, that it has not given back",
                       k->n, k->column);
        if (tx_report_end(vm, r) != TX_RUN_ON)
            return false;
    }
    return true;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Are the columns there, and of one allocation? false: reported. */
static bool
tmem_columns_are(const tx_act *a, uint32_t lane, tx_tmem *t, uint32_t column, uint32_t n)
{
    bool outside = column + n > TMEM_COLUMNS;
    uint32_t bad = outside ? TMEM_COLUMNS : column, owner = outside ? 0 : t->owner[column];
    while (!outside && owner && bad < column + n && t->owner[bad] == owner)
        bad++;
    if (!outside && owner && bad == column + n)
        return true;
    tx_emu_report *r = tx_tmem_report(a, lane, "tmem");
    if (outside)
        tx_report_text(r, "%s of columns %u..%u: tensor memory has %d", role_of(a), column, column + n - 1,
                       TMEM_COLUMNS);
    else if (!t->owner[bad])
        tx_report_text(r, "%s of columns %u..%u: column %u is not allocated", role_of(a), column, column + n - 1, bad);
    else
        tx_report_text(r, "%s of columns %u..%u: column %u belongs to another allocation", role_of(a), column,
                       column + n - 1, bad);
    tx_report_end(a->vm, r);
    return false;
}

/* Lane of tensor memory at which a warp's access starts: the lane field counts inside the warp's window. */
static int
start_lane(const tx_act *a, uint32_t lane, uint32_t address, bool half)
{
    uint32_t field = address >> 16, window = a->f->warp->index % 4, row = field % 32;
    if (field < TMEM_LANES && (field / 32 == 0 || field / 32 == window) && (row == 0 || (half && row == 16)))
        return (int)(window * 32 + row);
    tx_emu_report *r = tx_tmem_report(a, lane, "tmem");
    tx_report_text(r, "%s of lane %u by warp %u, which reaches lanes %u..%u%s", role_of(a), field, a->f->warp->index,
                   window * 32, window * 32 + 31, row ? " from the first on" : "");
    tx_report_end(a->vm, r);
    return -1;
}

static bool
tmem_read_cell(const tx_act *a, uint32_t lane, tx_tmem *t, uint32_t column, uint32_t tmem_lane, uint32_t *out)
{
    *out = t->cell[column][tmem_lane];
    if (t->written[column][tmem_lane / 8] >> tmem_lane % 8 & 1 || !a->vm->check)
        return true;
    tx_emu_report *r = tx_tmem_report(a, lane, "uninitialised");
    tx_report_text(r, "%s of tmem lane %u, column %u, which nobody has written", role_of(a), tmem_lane, column);
    tx_order *o = tx_shadow_order(a->f->warp->cta);
    if (!o)
        return tx_report_end(a->vm, r) == TX_RUN_ON;
    if (!a->vm->unwritten.set) { /* kept back: a work that is issued later, without order, tells more */
        a->vm->unwritten.set = true;
        a->vm->unwritten.report = *r;
        a->vm->unwritten.cta = a->f->warp->cta;
        a->vm->unwritten.granule = UINT32_MAX;
        a->vm->unwritten.thread = a->f->warp->index * TX_LANES + lane;
        a->vm->unwritten.site = a->in->site, a->vm->unwritten.time = o->e.now;
    }
    return true;
}

void
tx_tmem_forget(tx_tmem *t)
{
    for (uint32_t i = 0; i < TX_MAX_WARPS; i++) {
        tx_free(t->known[i].seen);
        t->known[i].seen = NULL;
    }
}

/* ---- who may touch what ------------------------------------------------------------------------------------------ */

/* Works of one thread run in order: work says that the one that asks is one. */
static bool
tmem_seen(const tx_order *o, uint32_t me, const tmem_event *e, bool work)
{
    return !e->time || (work && e->by == me + 1) || tx_order_seen(o, me, e->who, e->time);
}

static bool
too_early(const tx_act *a, uint32_t lane, const tx_order *o, const char *kind, const tmem_event *e, const char *why)
{
    tx_emu_report *r = tx_tmem_report(a, lane, kind);
    uint32_t thread = e->who, site = e->site;
    if (thread >= o->nthreads)
        thread = o->agent[thread - o->nthreads].thread;
    tx_cta *cta = thread >= o->per_cta ? o->cta[thread / o->per_cta] : o->cta[0];
    tx_report_thread(a->vm, r, cta, thread % o->per_cta, site, tx_site_of(a->vm, site)->role);
    tx_report_text(r, "%s of tensor memory %s %s", role_of(a), why, tx_site_of(a->vm, site)->role);
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

/* What another thread did is known: also behind the fences that order tcgen05 operations around a synchronisation of threads? A
 * commit has the first of them in it. */
static bool
tmem_fenced(const tx_act *a, uint32_t lane, const tx_order *o, const tmem_event *e)
{
    uint32_t me = my_column(a, lane), doer = e->who < o->nthreads ? e->who : e->by - 1, time = e->time;
    const tx_tmem *t = a->f->warp->cta->engine->tmem;
    const tmem_known *k = t ? &t->known[a->f->warp->index] : NULL;
    if (!e->time || (e->who >= o->nthreads && !e->by) || doer / TX_LANES == me / TX_LANES)
        return true;
    if (e->who < o->nthreads) {
        if (!e->fenced || !tx_order_seen(o, me, e->who, e->fenced))
            return too_early(a, lane, o, "proxy", e, "without tcgen05.fence::before_thread_sync after");
        time = e->fenced;
    }
    if (k && k->seen && (k->seen[e->who] > time || (e->who < o->nthreads && time < k->floor)))
        return true;
    return too_early(a, lane, o, "proxy", e, "without tcgen05.fence::after_thread_sync, and after");
}

/* An access by a thread (store or load), or by a work that it issues. */
static bool
may_touch(const tx_act *a, uint32_t lane, const tx_order *o, const tmem_record *r, bool write, bool work)
{
    uint32_t me = my_column(a, lane);
    bool piped = work && r->flight.who == me; /* works of one thread run in order */
    if (r->writes && !piped && !(work && tmem_seen(o, me, &r->flight, false)))
        return too_early(a, lane, o, "async", &r->flight, "that is still being written by");
    if (r->storing && !(write && !work && r->write.who / TX_LANES == me / TX_LANES))
        return too_early(a, lane, o, "async", &r->write, "before tcgen05.wait::st of");
    if (!r->writes && !tmem_seen(o, me, &r->write, work))
        return too_early(a, lane, o, r->write.who >= o->nthreads ? "async" : "race", &r->write,
                         "that is not ordered after");
    if (!r->writes && r->write.time && !tmem_fenced(a, lane, o, &r->write))
        return false;
    if (!write)
        return true;
    if (r->reads && !piped && !(work && tmem_seen(o, me, &r->flight, false)))
        return too_early(a, lane, o, "async", &r->flight, "that is still being read by");
    for (uint32_t i = 0; i < TMEM_READERS; i++)
        if (!r->read[i].time)
            continue;
        else if (!tmem_seen(o, me, &r->read[i], work)) {
            if (a->vm->unwritten.granule == UINT32_MAX)
                a->vm->unwritten.set = false;
            return too_early(a, lane, o, work ? "async" : "race", &r->read[i], "that is not ordered after");
        } else if (!tmem_fenced(a, lane, o, &r->read[i]))
            return false;
    return true;
}

/* A load or store of a warp: columns [column, column + n) of its window. */
static bool
touch_columns(const tx_act *a, tx_tmem *t, uint32_t column, uint32_t n, bool write)
{
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    uint32_t l = tx_first_lane(a->f->m), window = a->f->warp->index % 4;
    if (!o)
        return true;
    for (uint32_t c = column; c < column + n; c++) {
        tmem_record *r = &t->record[window][c];
        tmem_event e = {my_column(a, l), o->e.now, a->in->site, 0, 0};
        if (!may_touch(a, l, o, r, write, false))
            return false;
        if (write)
            r->write = e, r->storing = true;
        else
            r->read[a->f->warp->index / 4 % TMEM_READERS] = e;
    }
    tx_order_tick(o);
    return true;
}

bool
tx_tmem_issue(const tx_act *a, uint32_t lane, tmem_work *w)
{
    tx_order *o = tx_shadow_order(a->f->warp->cta);
    for (uint32_t i = 0; i < w->nspans; i++) {
        tmem_span *s = &w->span[i];
        tx_tmem *t = tx_tmem_of(a->vm, s->cta);
        if (!t || !tmem_columns_are(a, lane, t, s->column, s->n))
            return false;
        for (uint32_t k = 0; o && k < TMEM_WINDOWS * s->n; k++)
            if (s->windows >> k % TMEM_WINDOWS & 1 &&
                !may_touch(a, lane, o, &t->record[k % TMEM_WINDOWS][s->column + k / TMEM_WINDOWS], s->write, true))
                return false;
    }
    for (uint32_t i = 0; i < w->nspans && o; i++) {
        tmem_span *s = &w->span[i];
        for (uint32_t k = 0; k < TMEM_WINDOWS * s->n; k++) {
            tmem_record *r = &s->cta->engine->tmem->record[k % TMEM_WINDOWS][s->column + k / TMEM_WINDOWS];
            if (!(s->windows >> k % TMEM_WINDOWS & 1))
                continue;
            r->flight = (tmem_event){my_column(a, lane), o->e.now, a->in->site, 0, 0};
            s->write ? r->writes++ : r->reads++;
        }
    }
    if (o)
        tx_order_tick(o);
    return true;
}

void
tx_tmem_done(tx_vm *vm, tx_work *work)
{
    const tmem_work *w = work->data;
    tx_order *o = tx_shadow_order(work->cta);
    (void)vm;
    for (uint32_t i = 0; i < w->nspans && o; i++) {
        const tmem_span *s = &w->span[i];
        for (uint32_t k = 0; k < TMEM_WINDOWS * s->n; k++) {
            tmem_record *r = &s->cta->engine->tmem->record[k % TMEM_WINDOWS][s->column + k / TMEM_WINDOWS];
            if (!(s->windows >> k % TMEM_WINDOWS & 1))
                continue;
            tmem_event e = {tx_order_agent(o, work->cta, TX_TENSOR_UNIT), o->e.now, work->site,
                            tx_order_thread(work->cta, work->thread) + 1, 0};
            s->write ? r->writes-- : r->reads--;
            if (s->write)
                r->write = e;
            else
                r->read[TMEM_READERS - 1] = e;
        }
    }
}

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

typedef struct tmem_shape {
    uint8_t token, regs; /* registers of .x1 */
    uint8_t columns;     /* of .x1 */
    bool half;           /* reaches 16 lanes */
} tmem_shape;
static const tmem_shape shapes[] = {{TK__32x32b, 1, 1, false},
                                    {TK__16x64b, 1, 2, true},
                                    {TK__16x128b, 2, 4, true},
                                    {TK__16x256b, 4, 8, true},
                                    {TK__16x32bx2, 1, 1, true}};

static const tmem_shape *
shape_of(const tx_act *a)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (tx_act_has(a, shapes[i].token))
            return &shapes[i];
    return &shapes[0];
}

/* Where register r of a lane lies, from the start of the access. */
static void
place_in_image(const tmem_shape *s, uint32_t lane, uint32_t r, uint32_t split, uint32_t *row, uint32_t *column)
{
    switch (s->token) {
    case TK__32x32b: *row = lane, *column = r; return;
    case TK__16x64b: *row = lane / 4 + 8 * (lane % 2), *column = lane / 2 % 2 + 2 * r; return;
    case TK__16x128b: *row = lane / 4 + 8 * (r % 2), *column = lane % 4 + 4 * (r / 2); return;
    case TK__16x256b: *row = lane / 4 + 8 * (r / 2 % 2), *column = r % 2 + 2 * (lane % 4) + 8 * (r / 4); return;
    default: *row = lane % 16, *column = r + (lane >= 16 ? split : 0); return;
    }
}

typedef struct tmem_access {
    const tmem_shape *shape;
    tx_tmem *t;
    uint32_t regs, split, column, start;
    bool packed;
} tmem_access;

/* Decodes and checks a tcgen05.ld or st. false: skip it, or stop. */
static bool
prepare_access(const tx_act *a, tmem_access *x, uint32_t regs, bool write)
{
    uint32_t l = tx_first_lane(a->f->m), address = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "t"), l), n, second;
    int start;
    x->shape = shape_of(a);
    x->regs = regs;
    x->packed = tx_act_has(a, TK_pack__16b) || tx_act_has(a, TK_unpack__16b);
    x->split = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "sp"), l);
    x->t = tx_tmem_of(a->vm, a->f->warp->cta);
    if (!x->t || !tx_tmem_whole_warp(a) || (start = start_lane(a, l, address, x->shape->half)) < 0)
        return false;
    x->start = (uint32_t)start;
    x->column = address & 0xffff;
    n = regs / x->shape->regs * x->shape->columns * (x->packed ? 2 : 1);
    second = x->shape->token == TK__16x32bx2 ? x->split : 0;
    if (!tmem_columns_are(a, l, x->t, x->column, n) || (second && !tmem_columns_are(a, l, x->t, x->column + second, n)))
        return false;
    return touch_columns(a, x->t, x->column, n, write) &&
           (!second || touch_columns(a, x->t, x->column + second, n, write));
}

TX_PTX_AGENT(tc_ld)
{
    tmem_access x;
    if (!prepare_access(a, &x, a->k->nout, false))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    EACH_OF(a->f->m, l)
    for (uint32_t r = 0; r < x.regs; r++) {
        uint32_t row, column, v, high;
        place_in_image(x.shape, l, r, x.split, &row, &column);
        if (x.packed) {
            if (!tmem_read_cell(a, l, x.t, x.column + 2 * column, x.start + row, &v) ||
                !tmem_read_cell(a, l, x.t, x.column + 2 * column + 1, x.start + row, &high))
                return TX_RUN_STOP;
            v = (v & 0xffff) | high << 16;
        } else if (!tmem_read_cell(a, l, x.t, x.column + column, x.start + row, &v))
            return TX_RUN_STOP;
        tx_act_out(a, r, l, v);
    }
    return tx_registers_load(a) ? TX_RUN_ON : TX_RUN_STOP;
}

TX_PTX_AGENT(tc_st)
{
    int first = tx_tmem_find(a->k, "r");
    tmem_access x;
    if (!prepare_access(a, &x, (uint32_t)(a->k->nin - first), true))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    EACH_OF(a->f->m, l)
    for (uint32_t r = 0; r < x.regs; r++) {
        uint32_t row, column, v = (uint32_t)tx_act_in(a, first + (int)r, l);
        place_in_image(x.shape, l, r, x.split, &row, &column);
        if (x.packed) {
            tx_tmem_put(x.t, x.column + 2 * column, x.start + row, v & 0xffff);
            tx_tmem_put(x.t, x.column + 2 * column + 1, x.start + row, v >> 16);
        } else
            tx_tmem_put(x.t, x.column + column, x.start + row, v);
    }
    return TX_RUN_ON;
}

TX_PTX_AGENT(tc_wait)
{
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    tx_tmem *t = cta->engine->tmem;
    if (!tx_tmem_whole_warp(a))
        return TX_RUN_STOP;
    if (!tx_act_has(a, TK_wait__st))
        tx_registers_loaded(a);
    if (!o || !t)
        return TX_RUN_ON;
    for (uint32_t c = 0; c < TMEM_COLUMNS && tx_act_has(a, TK_wait__st); c++) {
        tmem_record *r = &t->record[a->f->warp->index % 4][c];
        if (r->storing && r->write.who / TX_LANES == my_column(a, 0) / TX_LANES)
            r->storing = false, r->write.time = o->e.now, r->write.fenced = 0;
    }
    tx_order_tick(o);
    return TX_RUN_ON;
}

static void
fence_before(tx_warp *w, tx_order *o, tx_tmem *t)
{
    uint32_t warp = tx_order_thread(w->cta, w->index * TX_LANES) / TX_LANES, now = o->e.now;
    for (uint32_t k = 0; k < TMEM_WINDOWS * TMEM_COLUMNS; k++) {
        tmem_record *r = &t->record[k % TMEM_WINDOWS][k / TMEM_WINDOWS];
        if (r->write.time && !r->write.fenced && r->write.who / TX_LANES == warp)
            r->write.fenced = now;
        for (uint32_t i = 0; i < TMEM_READERS; i++)
            if (r->read[i].time && !r->read[i].fenced && r->read[i].who / TX_LANES == warp)
                r->read[i].fenced = now;
    }
}

TX_PTX_AGENT(tc_fence)
{
    tx_warp *w = a->f->warp;
    tx_order *o = tx_shadow_order(w->cta);
    tx_tmem *t = o ? tx_tmem_of(a->vm, w->cta) : NULL;
    tmem_known *k = t ? &t->known[w->index] : NULL;
    if (!o)
        return TX_RUN_ON;
    if (!t)
        return TX_RUN_STOP;
    if (tx_act_has(a, TK_fence__before_thread_sync)) {
        fence_before(w, o, t);
        tx_order_tick(o);
        return TX_RUN_ON;
    }
    if (!k->seen && !(k->seen = tx_calloc(o->n, sizeof *k->seen)))
        return tx_vm_nomem(a->vm), TX_RUN_STOP;
    k->floor = o->e.floor;
    memcpy(k->seen, o->of[my_column(a, tx_first_lane(a->f->m))]->seen, o->n * sizeof *k->seen);
    return TX_RUN_ON;
}
