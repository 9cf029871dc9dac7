/* The queue of what asynchronous engines have to do (async.h says when they do it). A CTA's works stand in the order of their issue.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"
#include "emu/tc.h"
#include "emu/watch.h"

tx_engine *
tx_engine_new(const tx_cta *cta)
{
    tx_engine *e = tx_calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->cp_group = tx_calloc((size_t)cta->nwarps * TX_LANES, sizeof *e->cp_group);
    e->bulk_group = tx_calloc((size_t)cta->nwarps * TX_LANES, sizeof *e->bulk_group);
    e->wgmma_group = tx_calloc(cta->nwarps, sizeof *e->wgmma_group);
    e->wgmma_fenced = tx_calloc(cta->nwarps, sizeof *e->wgmma_fenced);
    if (!e->cp_group || !e->bulk_group || !e->wgmma_group || !e->wgmma_fenced) {
        tx_engine_free(e);
        return NULL;
    }
    return e;
}

void
tx_work_free(tx_work *w)
{
    tx_free(w->seen);
    tx_free(w->global);
    tx_free(w);
}

static void
drop_works(tx_engine *e)
{
    for (tx_work *w = e->first, *next; w; w = next) {
        next = w->next;
        tx_work_free(w);
    }
    e->first = e->last = NULL;
}

static void
free_clocks(tx_engine *e)
{
    for (uint32_t i = 0; i < e->nbars; i++) {
        tx_free(e->bar[i].now);
        tx_free(e->bar[i].before);
        tx_free(e->bar[i].own[0]);
        tx_free(e->bar[i].own[1]);
        tx_free(e->bar[i].narrow);
    }
    e->nbars = 0;
}

void
tx_engine_free(tx_engine *e)
{
    if (!e)
        return;
    drop_works(e);
    free_clocks(e);
    tx_free(e->bar);
    if (e->tmem)
        tx_tmem_forget(e->tmem);
    tx_free(e->tmem);
    tx_free(e->cp_group);
    tx_free(e->bulk_group);
    tx_free(e->wgmma_group);
    tx_free(e->wgmma_fenced);
    tx_free(e->touched);
    tx_free(e->registers);
    tx_free(e);
}

/* Before the threads of a CTA start: no barriers, no work. */
void
tx_engine_begin(tx_vm *vm, tx_cta *cta)
{
    tx_engine *e = cta->engine;
    size_t n = (size_t)cta->nwarps * TX_LANES;
    drop_works(e);
    for (uint32_t i = 0; i < e->nbars; i++) {
        tx_span_of at = {cta, e->bar[i].off, 8, 0};
        if (e->bar[i].live)
            tx_shadow_barrier(vm, &at, false, UINT32_MAX, 0);
    }
    free_clocks(e);
    if (e->tmem) {
        tx_tmem_forget(e->tmem);
        memset(e->tmem, 0, sizeof *e->tmem);
    }
    e->nbars = e->last_bar = 0, e->refused = false;
    memset(e->cp_group, 0, n * sizeof *e->cp_group);
    memset(e->bulk_group, 0, n * sizeof *e->bulk_group);
    tx_free(e->registers);
    tx_free(e->touched);
    e->registers = NULL, e->touched = NULL;
    memset(e->wgmma_fenced, 0, cta->nwarps * sizeof *e->wgmma_fenced);
    memset(e->wgmma_group, 0, cta->nwarps * sizeof *e->wgmma_group);
}

void
tx_work_drop(tx_engine *e, tx_work *w)
{
    tx_work **at = &e->first, *before = NULL;
    if (TX_UNLIKELY(w->watch != NULL))
        tx_watch_done(w->watch, w);
    while (*at != w)
        before = *at, at = &(*at)->next;
    *at = w->next;
    if (e->last == w)
        e->last = before;
    tx_work_free(w);
}

tx_work *
tx_work_new(const tx_act *a, uint32_t lane, enum tx_work_end end, uint32_t nspans, size_t extra)
{
    size_t spans = nspans * sizeof(tx_span_of);
    tx_work *w = tx_calloc(1, sizeof *w + spans + extra);
    if (!w)
        return tx_vm_nomem(a->vm), NULL;
    w->end = (uint8_t)end;
    w->src = w->dst = (tx_span_of *)(void *)(w + 1);
    w->data = (uint8_t *)(w + 1) + spans;
    w->cta = a->f->warp->cta;
    w->thread = a->f->warp->index * TX_LANES + lane;
    w->site = a->in->site;
    return w;
}

/* ---- performing -------------------------------------------------------------------------------------------------- */

static bool
take_source(tx_vm *vm, tx_work *w)
{
    if (w->was_read)
        return true;
    w->was_read = true;
    vm->changes++;
    return !w->read || w->read(vm, w);
}

bool
tx_work_move(tx_vm *vm, tx_work *w)
{
    if (w->performed)
        return true;
    if (!take_source(vm, w))
        return false;
    w->performed = true;
    vm->changes++;
    return !w->write || w->write(vm, w);
}

static bool perform_cp(tx_vm *vm, tx_work *w, uint32_t lanes, uint32_t agent);

/* All cp.async that these lanes have issued before `w` are complete. */
static bool
finish_cp_before(tx_vm *vm, tx_engine *e, const tx_work *w, uint32_t lanes, uint32_t agent)
{
    for (tx_work *o = e->first, *next; o && o != w; o = next) {
        next = o->next;
        if (o->end != TX_END_CP || o->thread / TX_LANES != w->thread / TX_LANES || !(o->lanes & lanes))
            continue;
        if (!perform_cp(vm, o, o->lanes & lanes, agent))
            return false;
        if (!o->lanes)
            tx_work_drop(e, o);
    }
    return true;
}

static bool finish_mbar(tx_vm *vm, tx_cta *cta, tx_work *w);

/* The tensor unit works in order: what the thread has committed before is complete, too. */
static bool
finish_commits_before(tx_vm *vm, tx_cta *cta, const tx_work *w)
{
    for (tx_work *o = cta->engine->first, *next; o && o != w; o = next) {
        next = o->next;
        if (o->end != TX_END_COMMIT || o->thread != w->thread)
            continue;
        if (!finish_mbar(vm, cta, o))
            return false;
        next = cta->engine->first;
    }
    return true;
}

/* An arrival takes all copies before it along, also those of earlier arrivals, which therefore come first: whoever waits for one
 * of these has seen its copies. */
static bool
finish_arrivals_before(tx_vm *vm, tx_cta *cta, const tx_work *w)
{
    for (tx_work *o = cta->engine->first; o && o != w;) {
        if (o->end != TX_END_ARRIVE || o->thread / TX_LANES != w->thread / TX_LANES || !(o->lanes & w->lanes)) {
            o = o->next;
            continue;
        }
        if (!finish_mbar(vm, cta, o))
            return false;
        o = cta->engine->first;
    }
    return true;
}

/* More lanes arrive than the phase waits for: it is over when so many have, and the copies of the others may still be under way. */
static bool
finish_first_lanes(tx_vm *vm, tx_cta *cta, tx_work *w, tx_mbar *b)
{
    uint32_t first = 0, n = 0;
    if ((uint32_t)__builtin_popcount(w->lanes) <= b->pending || b->tx || !b->pending)
        return true;
    for (; n < b->pending; n++)
        first |= (w->lanes & ~first) & (0u - (w->lanes & ~first));
    w->lanes &= ~first;
    return finish_cp_before(vm, cta->engine, w, first, b->agent) &&
           tx_mbar_signal(vm, w->bar_cta, b, 0, n, w->thread, w->site);
}

/* A work that signals an mbarrier is done as a whole; the queue forgets it. */
static bool
finish_mbar(tx_vm *vm, tx_cta *cta, tx_work *w)
{
    tx_mbar *b = tx_mbar_at(w->bar_cta, w->bar_off);
    bool ok = true;
    if (w->end == TX_END_ARRIVE) {
        ok = finish_arrivals_before(vm, cta, w) && (!b || finish_first_lanes(vm, cta, w, b)) &&
             finish_cp_before(vm, cta->engine, w, w->lanes, b ? b->agent : w->thread);
    } else if (w->end == TX_END_COMMIT) {
        tx_order *o = tx_shadow_order(cta);
        ok = finish_commits_before(vm, cta, w) && tx_tc_finish(vm, cta, w);
        if (o && b && w->seen) {
            tx_order_pass(o, w->seen, b->now);
            tx_order_release_agent(o, tx_order_agent(o, cta, TX_TENSOR_UNIT), b->now);
            if (b->own[0])
                tx_order_pass(o, w->bar_cta == cta ? w->seen : b->now, b->own[0]);
        }
    } else {
        ok = tx_work_move(vm, w);
        for (uint32_t i = 0; i < w->ndst && b; i++)
            (w->atomic ? tx_shadow_done_atomic : tx_shadow_done_write)(vm, &w->dst[i], b->agent, w->site);
        for (uint32_t i = 0; i < w->nsrc && b; i++)
            tx_shadow_done_read(vm, &w->src[i], b->agent, w->site);
        if (b && w->nglobal)
            tx_engines_done(vm, w, b->agent);
    }
    uint32_t bytes = w->bytes, thread = w->thread, site = w->site,
             count = w->end != TX_END_MBAR ? (uint32_t)__builtin_popcount(w->lanes) : 0;
    tx_cta *bar_cta = w->bar_cta;
    tx_work_drop(cta->engine, w);
    ok = ok && (!b || tx_mbar_signal(vm, bar_cta, b, bytes, count, thread, site));
    if (TX_UNLIKELY(vm->watch != NULL) && vm->watch->f)
        vm->watch->not_before = 0;
    return ok;
}

static bool
signals(const tx_work *w)
{
    return w->end == TX_END_MBAR || w->end == TX_END_ARRIVE || w->end == TX_END_COMMIT;
}

bool
tx_work_issue(tx_vm *vm, tx_work *w)
{
    tx_engine *e = w->cta->engine;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_issue(vm, w);
    if (e->last)
        e->last->next = w;
    else
        e->first = w;
    e->last = w;
    if (signals(w)) {
        tx_mbar *b = tx_mbar_at(w->bar_cta, w->bar_off);
        if (b && w->end == TX_END_MBAR)
            b->queued_tx += w->bytes;
        else if (b)
            b->queued_count += (uint32_t)__builtin_popcount(w->lanes);
    }
    if (vm->late)
        return true;
    if (signals(w))
        return finish_mbar(vm, w->cta, w);
    return w->end == TX_END_CP || w->end == TX_END_WGMMA || tx_work_move(vm, w);
}

/* ---- waits ------------------------------------------------------------------------------------------------------- */

bool
tx_engine_flush_mbar(tx_vm *vm, tx_cta *cta, tx_mbar *b)
{
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    uint32_t off = b->off, phase = b->phase;
    if (!(b->queued_tx || b->queued_count) || b->pending > b->queued_count || b->tx != (int32_t)b->queued_tx)
        return true;
    for (tx_cta *c = vm->ctas; c; c = c->next) {
        if (c != cta && c->linear / per != cta->linear / per)
            continue;
        for (tx_work *w = c->engine->first, *next; w; w = next) {
            next = w->next;
            if (!signals(w) || w->bar_cta != cta || w->bar_off != off)
                continue;
            if (!finish_mbar(vm, c, w))
                return false;
            next = c->engine->first; /* an arrival takes copies along */
            b = tx_mbar_at(cta, off);
            if (!b || b->phase != phase)
                return true;
        }
    }
    return true;
}

bool
tx_engine_wait_group(tx_vm *vm, tx_cta *cta, uint32_t thread, uint32_t newest, bool read_only)
{
    tx_engine *e = cta->engine;
    tx_order *o = tx_shadow_order(cta);
    uint32_t column = tx_order_thread(cta, thread), last = e->bulk_group[thread];
    for (tx_work *w = e->first, *next; w; w = next) {
        next = w->next;
        if (w->end != TX_END_GROUP || w->thread != thread || w->group + newest >= last)
            continue;
        if (read_only ? !take_source(vm, w) : !tx_work_move(vm, w))
            return false;
        for (uint32_t i = 0; i < w->nsrc; i++)
            tx_shadow_done_read(vm, &w->src[i], column, w->site);
        w->nsrc = 0;
        if (read_only)
            continue;
        if (w->nglobal)
            tx_engines_done(vm, w, column);
        tx_work_drop(e, w);
    }
    if (o)
        tx_order_tick(o);
    return true;
}

/* ---- cp.async ---------------------------------------------------------------------------------------------------- */

/* One copy for each lane: dst[lane] is the place in shared memory, data the sources. */
typedef struct cp_copy {
    const uint8_t *from[TX_LANES];
    uint8_t valid[TX_LANES];
} cp_copy;

static bool
perform_cp(tx_vm *vm, tx_work *w, uint32_t lanes, uint32_t agent)
{
    const cp_copy *c = w->data;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left), n = c->valid[l];
        tx_span_of *d = &w->dst[l];
        uint8_t *to = d->cta->shared + d->off;
        if (n)
            memcpy(to, c->from[l], n);
        memset(to + n, 0, d->n - n);
        tx_shadow_done_write(
            vm, d, agent == UINT32_MAX ? tx_order_thread(w->cta, w->thread / TX_LANES * TX_LANES + l) : agent, w->site);
    }
    w->lanes &= ~lanes;
    vm->changes++;
    return true;
}

/* Copies that their threads have waited for. Those that an arrival behind them speaks for belong to its barrier's engine, which
 * the threads then know, too. */
static bool
perform_waited(tx_vm *vm, tx_warp *w, tx_work *k, uint32_t lanes)
{
    tx_order *o = tx_shadow_order(w->cta);
    for (tx_work *a = o ? k->next : NULL; a && lanes; a = a->next) {
        uint32_t spoken = a->end == TX_END_ARRIVE && a->thread / TX_LANES == w->index ? a->lanes & lanes : 0;
        tx_mbar *b = spoken ? tx_mbar_at(a->bar_cta, a->bar_off) : NULL;
        if (!b)
            continue;
        if (!perform_cp(vm, k, spoken, b->agent))
            return false;
        tx_order_learn(o, tx_order_thread(w->cta, w->index * TX_LANES), spoken, b->agent);
        lanes &= ~spoken;
    }
    return !lanes || perform_cp(vm, k, lanes, UINT32_MAX);
}

bool
tx_engine_wait_cp(tx_vm *vm, tx_warp *w, uint32_t lanes, int64_t newest, bool all)
{
    tx_engine *e = w->cta->engine;
    tx_order *o = tx_shadow_order(w->cta);
    for (tx_work *k = e->first, *next; k; k = next) {
        uint32_t mine = 0;
        next = k->next;
        if (k->end != TX_END_CP || k->thread / TX_LANES != w->index || !(k->lanes & lanes))
            continue;
        for (uint32_t left = k->lanes & lanes; left; left &= left - 1) {
            uint32_t l = tx_first_lane(left);
            int64_t committed = e->cp_group[w->index * TX_LANES + l];
            if (all || k->lane_group[l] + newest < committed)
                mine |= 1u << l;
        }
        if (mine && !perform_waited(vm, w, k, mine))
            return false;
        if (!k->lanes)
            tx_work_drop(e, k);
    }
    if (o)
        tx_order_tick(o);
    return true;
}

TX_PTX_AGENT(cp_async)
{
    tx_vm *vm = a->vm;
    int64_t n = (int64_t)tx_act_in(a, tx_act_find(a->k, "n"), tx_first_lane(a->f->m));
    int z = tx_act_find(a->k, "z"), ignore = tx_act_find(a->k, "ig");
    tx_engine *e = a->f->warp->cta->engine;
    tx_work *w = tx_work_new(a, tx_first_lane(a->f->m), TX_END_CP, TX_LANES, sizeof(cp_copy));
    if (!w)
        return TX_RUN_STOP;
    cp_copy *c = w->data;
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        tx_where to, from;
        tx_issue i = tx_act_issue(a, l, false);
        uint64_t valid = z >= 0 ? tx_act_in(a, z, l) : ignore >= 0 && tx_act_in(a, ignore, l) ? 0 : (uint64_t)n;
        if (!tx_act_where(a, "d", l, n, (uint32_t)n, true, &to) ||
            !tx_act_where(a, "s", l, valid < (uint64_t)n ? (int64_t)valid : n, (uint32_t)n, false, &from) ||
            !tx_act_touches(a, l, &from, valid < (uint64_t)n ? valid : (uint64_t)n, TX_READ)) {
            if (!vm->stop)
                continue;
            break;
        }
        w->dst[l] = (tx_span_of){to.cta, to.off, (uint32_t)n, 0};
        if (!tx_shadow_issue_write(&i, &w->dst[l]))
            break;
        w->lanes |= 1u << l;
        w->lane_group[l] = e->cp_group[a->f->warp->index * TX_LANES + l];
        tx_access read = {vm,      a->f, from.mem, a->in->site, (uint32_t)(valid < (uint64_t)n ? valid : (uint64_t)n),
                          TX_READ, NULL, 0};
        if (read.size && vm->hooks && from.space == TX_GLOBAL && tx_engines_watch(vm, from.mem) &&
            !tx_global_lanes(&read, NULL, from.p - vm->mem[from.mem].base, 1u << l))
            break;
        c->from[l] = from.p;
        c->valid[l] = (uint8_t)(valid < (uint64_t)n ? valid : (uint64_t)n);
    }
    if (vm->stop || !w->lanes) {
        tx_free(w);
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    }
    if (!vm->late && !vm->hooks) { /* nobody can tell */
        perform_cp(vm, w, w->lanes, UINT32_MAX);
        tx_free(w);
        return TX_RUN_ON;
    }
    if (!vm->late) {
        const uint32_t lanes = w->lanes; /* the bytes move, the poison stays */
        for (uint32_t left = lanes; left; left &= left - 1) {
            uint32_t l = tx_first_lane(left), v = c->valid[l];
            uint8_t *to = w->dst[l].cta->shared + w->dst[l].off;
            if (v)
                memcpy(to, c->from[l], v);
            memset(to + v, 0, w->dst[l].n - v);
        }
    }
    return tx_work_issue(vm, w) ? TX_RUN_ON : TX_RUN_STOP;
}

TX_PTX_AGENT(cp_commit)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        a->f->warp->cta->engine->cp_group[a->f->warp->index * TX_LANES + tx_first_lane(left)]++;
    return TX_RUN_ON;
}

TX_PTX_AGENT(cp_wait)
{
    int n = tx_act_find(a->k, "n");
    int64_t newest = n < 0 ? 0 : (int64_t)tx_act_in(a, n, tx_first_lane(a->f->m));
    return tx_engine_wait_cp(a->vm, a->f->warp, a->f->m, newest, n < 0) ? TX_RUN_ON : TX_RUN_STOP;
}

TX_PTX_AGENT(cp_mbar_arrive)
{
    tx_vm *vm = a->vm;
    for (uint32_t left = a->f->m; left;) {
        uint32_t l = tx_first_lane(left), same = 0;
        tx_where at;
        if (!tx_act_where(a, "a", l, 8, 8, false, &at)) {
            if (vm->stop)
                return TX_RUN_STOP;
            left &= left - 1;
            continue;
        }
        for (uint32_t rest = left; rest; rest &= rest - 1) { /* lanes that name one barrier */
            tx_where o;
            uint32_t k = tx_first_lane(rest);
            if (tx_where_of(vm, tx_act_in(a, tx_act_find(a->k, "a"), k), &o) && o.cta == at.cta && o.off == at.off)
                same |= 1u << k;
        }
        left &= ~same;
        tx_mbar *b = tx_mbar_for_store(a, l, &at); /* cp.async works through the generic proxy */
        if (vm->stop)
            return TX_RUN_STOP;
        if (!b)
            continue;
        tx_work *w = tx_work_new(a, l, TX_END_ARRIVE, 0, 0);
        if (!w)
            return TX_RUN_STOP;
        w->lanes = same;
        w->bar_cta = at.cta, w->bar_off = at.off;
        if (!tx_act_has(a, TK_noinc))
            b->pending += (uint32_t)__builtin_popcount(same);
        if (!tx_work_issue(vm, w))
            return TX_RUN_STOP;
    }
    return TX_RUN_ON;
}

/* ---- when nothing else happens ----------------------------------------------------------------------------------------- */

static bool
push_one(tx_vm *vm, tx_cta *cta, tx_work *w)
{
    if (signals(w))
        return finish_mbar(vm, cta, w);
    if (w->end == TX_END_GROUP)
        return tx_work_move(vm, w);
    return true;
}

static bool
can_be_pushed(const tx_work *w)
{
    return signals(w) || (w->end == TX_END_GROUP && !w->performed);
}

bool
tx_engine_push(tx_vm *vm, tx_cta *cta, bool *did)
{
    *did = false;
    for (tx_work *w = cta->engine ? cta->engine->first : NULL; w; w = w->next)
        if (can_be_pushed(w)) {
            *did = true;
            return push_one(vm, cta, w);
        }
    return true;
}

/* A work that luck picks, in a seeded run. */
bool
tx_engine_some(tx_vm *vm, tx_cta *cta, uint64_t r)
{
    uint32_t n = 0, pick;
    for (tx_work *w = cta->engine->first; w; w = w->next)
        n += can_be_pushed(w);
    if (!n || r % 4 == 0)
        return true;
    pick = (uint32_t)((r >> 8) % n);
    for (tx_work *w = cta->engine->first; w; w = w->next)
        if (can_be_pushed(w) && pick-- == 0)
            return push_one(vm, cta, w);
    return true;
}

/* The threads have left: what they did not wait for. */
bool
tx_engine_end(tx_vm *vm, tx_cta *cta)
{
    tx_engine *e = cta->engine;
    for (tx_work *w = e->first, *next; w; w = next) {
        /* a commit that nobody waits for completes, too; so does what another CTA waits for and takes nothing of this one */
        bool outlives = w->end == TX_END_MBAR && w->bar_cta != cta && (w->carries || !w->nsrc);
        next = w->next;
        if (w->end != TX_END_COMMIT && !outlives)
            continue;
        if (!finish_mbar(vm, cta, w))
            return false;
        next = e->first;
    }
    for (tx_work *w; (w = e->first) != NULL;) {
        bool store = w->end == TX_END_GROUP, open = store ? w->nsrc > 0 : w->end == TX_END_MBAR || w->end == TX_END_TC;
        if (vm->check && open) {
            tx_emu_report *r = tx_report_begin(vm, "async", w->site);
            r->buffer[0] = 0;
            const tx_span_of *at = w->ndst ? w->dst : w->src;
            if (w->ndst || w->nsrc)
                tx_name_shared(vm, r, at->cta, at->off + (at->pieces ? 16 * (uint32_t)__builtin_ctzll(at->pieces) : 0));
            r->element[0] = 0;
            r->warning = store;
            tx_report_thread(vm, r, cta, w->thread, w->site, tx_site_of(vm, w->site)->role);
            tx_report_text(r, "%s is still under way when the CTA exits: nobody has waited for it", r->agent[0].role);
            if (tx_report_end(vm, r) != TX_RUN_ON)
                return false;
        }
        if (w->end == TX_END_MBAR) {
            if (!finish_mbar(vm, cta, w))
                return false;
            continue;
        }
        if (w->end == TX_END_CP && !perform_cp(vm, w, w->lanes, UINT32_MAX))
            return false;
        if ((store || w->end == TX_END_TC) && !tx_work_move(vm, w))
            return false;
        for (uint32_t i = 0; i < w->nsrc; i++)
            tx_shadow_done_read(vm, &w->src[i], tx_order_thread(cta, w->thread), w->site);
        tx_work_drop(e, w);
    }
    return tx_tmem_end(vm, cta);
}
