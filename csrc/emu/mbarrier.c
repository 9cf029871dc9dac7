/* mbarriers: the object, its instructions, who is ordered after whom through it. The state lives beside the CTA's shared memory; the
 * word is written there by inval, in the hardware's format (intrinsics reference, mbarrier). SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"
#include "emu/ptx_list.h"
#include "emu/watch.h"

#define EACH_OF(mask, l) for (uint32_t left_ = (mask), l; left_ && (l = tx_first_lane(left_), true); left_ &= left_ - 1)

static tx_mbar *
find_bar(const tx_cta *cta, uint32_t off)
{
    tx_engine *e = cta->engine;
    if (e->last_bar < e->nbars && e->bar[e->last_bar].off == off)
        return &e->bar[e->last_bar];
    for (uint32_t i = 0; i < e->nbars; i++)
        if (e->bar[i].off == off) {
            e->last_bar = i;
            return &e->bar[i];
        }
    return NULL;
}

tx_mbar *
tx_mbar_at(const tx_cta *cta, uint32_t off)
{
    tx_mbar *b = cta->engine ? find_bar(cta, off) : NULL;
    return b && b->live ? b : NULL;
}

static tx_mbar *
make_bar(tx_vm *vm, tx_cta *cta, uint32_t off)
{
    tx_engine *e = cta->engine;
    tx_mbar *b = find_bar(cta, off);
    tx_order *o = tx_shadow_order(cta);
    if (b)
        return b;
    if (e->nbars == e->bar_cap) {
        uint32_t cap = e->bar_cap ? e->bar_cap * 2 : 16;
        tx_mbar *p = tx_realloc(e->bar, cap * sizeof *p);
        if (!p)
            return tx_vm_nomem(vm), NULL;
        e->bar = p, e->bar_cap = cap;
    }
    b = &e->bar[e->nbars];
    memset(b, 0, sizeof *b);
    b->off = off;
    if (o) {
        uint32_t k = e->nbars < TX_BARRIER_AGENTS ? e->nbars : TX_BARRIER_AGENTS - 1;
        b->agent = tx_order_agent(o, cta, k);
        bool apart = vm->p->cta_waits && o->nctas > 1;
        if (!(b->now = tx_clock_new(o)) || !(b->before = tx_clock_new(o)) ||
            (apart && (!(b->own[0] = tx_clock_new(o)) || !(b->own[1] = tx_clock_new(o)))))
            return NULL;
    }
    e->nbars++;
    return b;
}

/* "bar[1]" as buffer and element. */
void
tx_mbar_name(const tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t off)
{
    r->element[0] = 0;
    tx_name_shared(vm, r, cta, off);
}

static bool
complain(const tx_act *a, uint32_t lane, const tx_where *w, const char *fmt, long long x, long long y)
{
    tx_emu_report *r = tx_act_report(a, lane, "mbarrier");
    char text[200];
    tx_mbar_name(a->vm, r, w->cta, w->off);
    snprintf(text, sizeof text, fmt, x, y);
    tx_report_text(r, "%s of %s%s: %s", tx_site_of(a->vm, a->in->site)->role, r->buffer, r->element, text);
    tx_report_end(a->vm, r);
    return false;
}

/* ---- phases ------------------------------------------------------------------------------------------------------ */

static void
complete_if_due(tx_vm *vm, tx_cta *cta, tx_mbar *b)
{
    tx_order *o = tx_shadow_order(cta);
    vm->changes++;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_mbar(vm, cta, b, !b->pending && !b->tx);
    if (b->pending || b->tx)
        return;
    b->phase++;
    b->asked = 0;
    b->pending = b->expected;
    if (o) {
        tx_clock *t = b->before;
        b->before = b->now;
        b->now = t;
        tx_clock_clear(o, t);
        t = b->own[1];
        if ((b->own[1] = b->own[0]))
            tx_clock_clear(o, b->own[0] = t);
    }
}

static void
signal_order(tx_cta *cta, tx_mbar *b, uint32_t thread, uint32_t site)
{
    tx_order *o = tx_shadow_order(cta);
    if (!o)
        return;
    o->agent[b->agent - o->nthreads] = (tx_agent_info){thread, site};
    tx_order_release_agent(o, b->agent, b->now);
    if (b->own[0])
        b->own[0]->seen[b->agent] = b->now->seen[b->agent];
}

bool
tx_mbar_signal(tx_vm *vm, tx_cta *cta, tx_mbar *b, uint32_t bytes, uint32_t count, uint32_t thread, uint32_t site)
{
    signal_order(cta, b, thread, site);
    b->tx -= (int32_t)bytes;
    b->queued_tx -= bytes < b->queued_tx ? bytes : b->queued_tx;
    uint32_t left = count; /* what is too much for this phase counts for the next one */
    for (uint32_t n; left > b->pending && b->pending && !b->tx; left -= n) {
        n = b->pending;
        b->pending = 0;
        complete_if_due(vm, cta, b);
        signal_order(cta, b, thread, site);
    }
    if (left > b->pending && vm->check) {
        tx_emu_report *r = tx_report_begin(vm, "mbarrier", site);
        tx_mbar_name(vm, r, cta, b->off);
        tx_report_thread(vm, r, cta, thread, site, tx_site_of(vm, site)->role);
        tx_report_text(r, "%s of %s%s: %u arrivals where %u are pending", r->agent[0].role, r->buffer, r->element, left,
                       b->pending);
        if (tx_report_end(vm, r) != TX_RUN_ON)
            return false;
    }
    b->pending -= left < b->pending ? left : b->pending;
    b->queued_count -= count < b->queued_count ? count : b->queued_count;
    if (b->tx < -TX_MBAR_MAX) {
        tx_emu_report *r = tx_report_begin(vm, "mbarrier", site);
        tx_mbar_name(vm, r, cta, b->off);
        tx_report_thread(vm, r, cta, thread, site, tx_site_of(vm, site)->role);
        tx_report_text(r, "%s%s: more than %d bytes have come before they are announced", r->buffer, r->element,
                       TX_MBAR_MAX);
        b->tx = -TX_MBAR_MAX;
        return tx_report_end(vm, r) == TX_RUN_ON;
    }
    complete_if_due(vm, cta, b);
    return true;
}

static uint64_t
mbar_word(const tx_mbar *b)
{
    return (uint64_t)(b->phase & 1) << 63 | ((0 - (uint64_t)b->pending) & 0xfffff) << 43 |
           ((0 - (uint64_t)(int64_t)b->tx) & 0x1fffff) << 21 | ((0 - (uint64_t)b->expected) & 0xfffff) << 1;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* The barrier that operand `a` names; `live`: it must be one. */
static tx_mbar *
operand_bar(const tx_act *a, uint32_t lane, bool live, tx_where *w)
{
    if (!tx_act_where(a, "a", lane, 8, 8, false, w))
        return NULL;
    if (w->space == TX_GLOBAL) {
        complain(a, lane, w, "an mbarrier lies in shared memory", 0, 0);
        return NULL;
    }
    tx_mbar *b = tx_mbar_at(w->cta, w->off);
    if (b && a->vm->hooks)
        tx_cluster_touch(a->vm, a->f, lane, w->cta, w->mem, a->in->site);
    if (!b && live)
        complain(a, lane, w, "there is no mbarrier here: nobody has initialised it", 0, 0);
    return b;
}

TX_PTX_AGENT(mbar_init)
{
    tx_vm *vm = a->vm;
    int n = tx_act_find(a->k, "n");
    EACH_OF(a->f->m, l)
    {
        tx_where w;
        uint32_t count = (uint32_t)tx_act_in(a, n, l);
        tx_mbar *b = operand_bar(a, l, false, &w);
        tx_span_of at = {w.cta, w.off, 8, 0};
        tx_issue i = tx_act_issue(a, l, false);
        if (vm->stop)
            return TX_RUN_STOP;
        if (!w.cta || w.space == TX_GLOBAL)
            continue;
        if (b && vm->check && !complain(a, l, &w, "it is in use: mbarrier.inval it first", 0, 0) && vm->stop)
            return TX_RUN_STOP;
        if ((count < 1 || count > TX_MBAR_MAX) && vm->check &&
            !complain(a, l, &w, "a count is in 1..%lld, not %lld", TX_MBAR_MAX, count) && vm->stop)
            return TX_RUN_STOP;
        if (!b && !tx_shadow_touch(&i, &at, TX_WRITE))
            return TX_RUN_STOP;
        if (!(b = make_bar(vm, w.cta, w.off)))
            return TX_RUN_STOP;
        tx_order *o = tx_shadow_order(w.cta);
        b->live = true;
        b->phase = 0, b->tx = 0, b->queued_tx = b->queued_count = 0, b->nfences = 0;
        b->pending = b->expected = count & 0xfffff;
        b->asked = 0;
        b->init_site = a->in->site;
        b->latest = b->when = TX_UNLIKELY(vm->watch != NULL) ? a->f->clock : 0;
        if (o) {
            b->init_thread = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + l);
            b->init_time = o->e.now;
            tx_order_tick(o);
            tx_clock_clear(o, b->now), tx_clock_clear(o, b->before);
            if (b->own[0])
                tx_clock_clear(o, b->own[0]), tx_clock_clear(o, b->own[1]);
            if (b->narrow)
                tx_clock_clear(o, b->narrow);
            tx_shadow_barrier(vm, &at, true, 0, 0);
        }
        vm->changes++;
    }
    return TX_RUN_ON;
}

TX_PTX_AGENT(mbar_inval)
{
    EACH_OF(a->f->m, l)
    {
        tx_where w;
        tx_mbar *b = operand_bar(a, l, true, &w);
        tx_span_of at = {w.cta, w.off, 8, 0};
        if (a->vm->stop)
            return TX_RUN_STOP;
        if (!b)
            continue;
        uint64_t word = mbar_word(b);
        memcpy(w.p, &word, 8);
        b->live = false;
        tx_shadow_barrier(a->vm, &at, false, tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + l),
                          a->in->site);
    }
    return TX_RUN_ON;
}

/* Is the initialisation ordered before this thread? An unordered use is a race. */
static bool
init_seen(const tx_act *a, uint32_t lane, const tx_where *w, const tx_mbar *b)
{
    tx_order *o = tx_shadow_order(w->cta);
    uint32_t me = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + lane);
    if (!o || tx_order_seen(o, me, b->init_thread, b->init_time))
        return true;
    tx_emu_report *r = tx_act_report(a, lane, "race");
    tx_mbar_name(a->vm, r, w->cta, w->off);
    tx_report_thread(a->vm, r, o->cta[b->init_thread / o->per_cta], b->init_thread % o->per_cta, b->init_site, "init");
    tx_report_text(r, "%s of %s%s is not ordered after its initialisation by another thread",
                   tx_site_of(a->vm, a->in->site)->role, r->buffer, r->element);
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

static bool
add_tx(const tx_act *a, uint32_t lane, const tx_where *w, tx_mbar *b, uint32_t n)
{
    if (n > TX_MBAR_MAX)
        return complain(a, lane, w, "a count of bytes is at most %lld, not %lld", TX_MBAR_MAX, n);
    if (b->tx + (int64_t)n > TX_MBAR_MAX + 1)
        return complain(a, lane, w, "%lld bytes are announced, more than %lld", b->tx + (int64_t)n, TX_MBAR_MAX + 1);
    b->tx += (int32_t)n;
    return true;
}

TX_PTX_AGENT(mbar_arrive)
{
    int n = tx_act_find(a->k, "n"), tx = tx_act_find(a->k, "tx");
    bool drop = tx_act_has(a, TK_arrive_drop), relaxed = tx_act_has(a, TK_relaxed);
    const char *scope = tx_ptx_slot(a->k, "scope");
    bool own = scope && strcmp(scope, "cta") == 0; /* it releases to its own CTA only */
    EACH_OF(a->f->m, l)
    {
        tx_where w;
        tx_mbar *b = operand_bar(a, l, true, &w);
        uint32_t count = n < 0 ? 1 : (uint32_t)tx_act_in(a, n, l), me;
        if (a->vm->stop)
            return TX_RUN_STOP;
        if (!b)
            continue;
        if (!init_seen(a, l, &w, b))
            return TX_RUN_STOP;
        uint64_t state = mbar_word(b);
        if (tx >= 0 && !add_tx(a, l, &w, b, (uint32_t)tx_act_in(a, tx, l))) {
            if (a->vm->stop)
                return TX_RUN_STOP;
            continue;
        }
        if (count > b->pending || count > TX_MBAR_MAX) {
            complain(a, l, &w,
                     b->pending ? "%lld arrivals where %lld are pending" : "%lld arrivals where none is pending", count,
                     b->pending);
            if (a->vm->stop)
                return TX_RUN_STOP;
            continue;
        }
        tx_order *o = tx_shadow_order(w.cta);
        me = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + l);
        bool reaches = !own || w.cta == a->f->warp->cta;
        if (o && reaches && relaxed)
            tx_order_release_fenced(o, me, tx_act_has(a, TK_cluster), b->now);
        else if (o && reaches)
            tx_order_release(o, me, b->now);
        else if (o && (b->narrow || (b->narrow = tx_clock_new(o))))
            tx_order_release(o, me, b->narrow);
        if (o && b->own[0] && w.cta == a->f->warp->cta)
            relaxed ? tx_order_release_fenced(o, me, tx_act_has(a, TK_cluster), b->own[0])
                    : tx_order_release(o, me, b->own[0]);
        b->pending -= count;
        if (drop)
            b->expected -= count;
        if (count || tx >= 0) {
            if (tx_act_has(a, TK_noComplete) && !b->pending && !b->tx) {
                complain(a, l, &w, "an arrival with .noComplete completes the phase", 0, 0);
                if (a->vm->stop)
                    return TX_RUN_STOP;
            }
            complete_if_due(a->vm, w.cta, b);
        }
        tx_act_out(a, 0, l, state);
    }
    return TX_RUN_ON;
}

TX_PTX_AGENT(mbar_tx)
{
    int tx = tx_act_find(a->k, "tx");
    EACH_OF(a->f->m, l)
    {
        tx_where w;
        tx_mbar *b = operand_bar(a, l, true, &w);
        uint32_t bytes = (uint32_t)tx_act_in(a, tx, l);
        if (a->vm->stop)
            return TX_RUN_STOP;
        if (!b)
            continue;
        if (!init_seen(a, l, &w, b))
            return TX_RUN_STOP;
        if (tx_act_has(a, TK_expect_tx)) {
            if (!add_tx(a, l, &w, b, bytes) && a->vm->stop)
                return TX_RUN_STOP;
        } else if (bytes > TX_MBAR_MAX || b->tx - (int64_t)bytes < -TX_MBAR_MAX) {
            complain(a, l, &w, "%lld bytes have come before they are announced, more than %lld",
                     (long long)bytes - b->tx, TX_MBAR_MAX);
            if (a->vm->stop)
                return TX_RUN_STOP;
            continue;
        } else
            b->tx -= (int32_t)bytes;
        complete_if_due(a->vm, w.cta, b);
    }
    return TX_RUN_ON;
}

/* Does the phase that the thread asks for lie behind? Engines work now if that completes it. */
static bool
phase_done(const tx_act *a, const tx_where *w, tx_mbar *b, uint32_t bit)
{
    if ((b->phase & 1) == bit && a->vm->late && !tx_engine_flush_mbar(a->vm, w->cta, b))
        return false;
    return (b->phase & 1) != bit;
}

static uint32_t
phase_bit(const tx_act *a, uint32_t lane)
{
    int parity = tx_act_find(a->k, "ph");
    return parity >= 0 ? (uint32_t)tx_act_in(a, parity, lane) & 1
                       : (uint32_t)(tx_act_in(a, tx_act_find(a->k, "st"), lane) >> 63);
}

/* A single test may come too soon for work that is under way: with late engines the first one of each warp does. */
static bool
too_soon(const tx_act *a, const tx_mbar *b, uint32_t bit)
{
    return a->vm->late && (b->phase & 1) == bit && (b->queued_tx || b->queued_count) &&
           !(b->asked >> a->f->warp->index & 1);
}

/* own: what other CTAs have released does not count. Without a scope the ISA says .cta; but cluster kernels leave it out for slots and
 * copies of other CTAs, which engines complete for the cluster, so only what is written is taken at its word. */
static void
mbar_acquire(tx_order *o, uint32_t me, const tx_mbar *b, bool own)
{
    own = own && b->own[1];
    tx_order_acquire(o, me, 1, own ? b->own[1] : b->before);
    if (own)
        tx_flags_narrowly(o, me, b->before);
    if (b->narrow)
        tx_flags_narrowly(o, me, b->narrow);
}

TX_PTX_AGENT(mbar_wait)
{
    const char *scope = tx_ptx_slot(a->k, "scope");
    bool relaxed = tx_act_has(a, TK_relaxed), own = scope && strcmp(scope, "cta") == 0;
    tx_mbar *asked[TX_LANES];
    uint32_t nasked = 0;
    EACH_OF(a->f->m, l)
    {
        tx_where w;
        tx_mbar *b = operand_bar(a, l, true, &w);
        if (a->vm->stop)
            return TX_RUN_STOP;
        if (!b)
            continue;
        if (!init_seen(a, l, &w, b))
            return TX_RUN_STOP;
        uint32_t bit = phase_bit(a, l);
        bool soon = too_soon(a, b, bit), done = !soon && phase_done(a, &w, b, bit);
        if (soon)
            asked[nasked++] = b;
        if (a->vm->stop)
            return TX_RUN_STOP;
        tx_order *o = tx_shadow_order(w.cta);
        if (done && o && !relaxed)
            mbar_acquire(o, tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES) + l, b, own);
        if (TX_UNLIKELY(a->vm->watch != NULL) && done)
            tx_watch_mbar_wait(a->vm, a->f, w.cta, b, a->in->site);
        if (!done)
            a->vm->budget = 1; /* others get their turn at the next jump back */
        tx_act_out(a, 0, l, done);
    }
    for (uint32_t i = 0; i < nasked; i++)
        asked[i]->asked |= 1u << a->f->warp->index;
    a->vm->changes += nasked > 0;
    return TX_RUN_ON;
}

/* T.cuda.mbarrier_wait: the loop around try_wait, as one instruction that waits. */
static int
wait_loop(const tx_act *a)
{
    tx_frag *f = a->f;
    tx_vm *vm = a->vm;
    bool again = f->state == TX_WAIT_EVENT;
    uint32_t todo = again ? f->wait_mask : f->m, done = 0, same = UINT32_MAX;
    tx_mbar *last = NULL;
    tx_where w = {0};
    EACH_OF(todo, l)
    {
        tx_mbar *b = operand_bar(a, l, true, &w);
        if (vm->stop)
            return TX_RUN_STOP;
        if (!b) {
            done |= 1u << l;
            continue;
        }
        if (!again && !init_seen(a, l, &w, b))
            return TX_RUN_STOP;
        if (phase_done(a, &w, b, phase_bit(a, l)))
            done |= 1u << l;
        if (vm->stop)
            return TX_RUN_STOP;
        if (TX_UNLIKELY(vm->watch != NULL) && done >> l & 1 && last != b)
            tx_watch_mbar_wait(vm, f, w.cta, b, a->in->site);
        if (last && last != b)
            same = 0;
        last = b;
    }
    if (vm->hooks && done && last && same) { /* all at one barrier, as nearly always */
        tx_order *o = tx_shadow_order(w.cta);
        if (o)
            tx_order_acquire(o, tx_order_thread(f->warp->cta, f->warp->index * TX_LANES), done, last->before);
    } else
        for (uint32_t left = vm->hooks ? done : 0; left; left &= left - 1) {
            uint32_t l = tx_first_lane(left);
            tx_mbar *b = operand_bar(a, l, true, &w);
            tx_order *o = b ? tx_shadow_order(w.cta) : NULL;
            if (o)
                tx_order_acquire(o, tx_order_thread(f->warp->cta, f->warp->index * TX_LANES), 1u << l, b->before);
        }
    todo &= ~done;
    if (!todo)
        return TX_RUN_ON;
    if (!again) {
        tx_frag_split(vm, f);
        if (vm->stop)
            return TX_RUN_STOP;
    }
    f->state = TX_WAIT_EVENT;
    f->wait_mask = todo;
    return TX_RUN_BLOCK;
}
const tx_ptx_emu tx_mbar_wait_loop = {"wait", PH_AGENT, NULL, NULL, wait_loop};

TX_PTX_LANE(mbar_pending)
{
    (void)e;
    out[0] = (0x100000 - (in[0] >> 43 & 0xfffff)) & 0xfffff;
}

/* ---- engines and reports ----------------------------------------------------------------------------------------- */

/* fence.mbarrier_init: the engines may signal what these lanes know to be initialised. */
void
tx_mbar_fence_init(const tx_act *a, uint32_t lanes)
{
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    if (!o || !cta->engine)
        return;
    uint32_t now = o->e.now;
    EACH_OF(lanes, l)
    {
        uint32_t me = tx_order_thread(cta, a->f->warp->index * TX_LANES + l);
        for (uint32_t i = 0; i < cta->engine->nbars; i++) {
            tx_mbar *b = &cta->engine->bar[i];
            if (!b->live || !tx_order_seen(o, me, b->init_thread, b->init_time))
                continue;
            uint32_t k = b->nfences < TX_MBAR_FENCES ? b->nfences++ : TX_MBAR_FENCES - 1;
            b->fence[k].thread = me, b->fence[k].time = now;
        }
    }
    tx_order_tick(o);
}

tx_mbar *
tx_mbar_for_store(const tx_act *a, uint32_t lane, const tx_where *w)
{
    tx_mbar *b = w->space == TX_GLOBAL ? NULL : tx_mbar_at(w->cta, w->off);
    if (!b) {
        complain(a, lane, w, "there is no mbarrier here: nobody has initialised it", 0, 0);
        return NULL;
    }
    return init_seen(a, lane, w, b) ? b : NULL;
}

tx_mbar *
tx_mbar_for_engine(const tx_act *a, uint32_t lane, const tx_where *w)
{
    tx_mbar *b = tx_mbar_for_store(a, lane, w);
    tx_order *o = tx_shadow_order(w->cta);
    uint32_t me = tx_order_thread(a->f->warp->cta, a->f->warp->index * TX_LANES + lane);
    if (!b)
        return NULL;
    if (!o || tx_order_fenced(o, me, b->init_thread, b->init_time))
        return b;
    for (uint32_t i = 0; i < b->nfences; i++)
        if (tx_order_seen(o, me, b->fence[i].thread, b->fence[i].time))
            return b;
    tx_emu_report *r = tx_act_report(a, lane, "proxy");
    tx_mbar_name(a->vm, r, w->cta, w->off);
    tx_report_thread(a->vm, r, o->cta[b->init_thread / o->per_cta], b->init_thread % o->per_cta, b->init_site, "init");
    tx_report_text(r,
                   "%s signals %s%s through the async proxy: fence.mbarrier_init or fence.proxy.async is missing after "
                   "its initialisation",
                   tx_site_of(a->vm, a->in->site)->role, r->buffer, r->element);
    return tx_report_end(a->vm, r) == TX_RUN_ON ? b : NULL;
}

/* What a part that stands still waits for. */
bool
tx_mbar_wait_text(tx_vm *vm, tx_frag *f, tx_emu_report *r, char *text, size_t size)
{
    const tx_insn *in = &vm->p->code[f->pc];
    if (f->state != TX_WAIT_EVENT || in->op != V_AGENT || vm->p->ptx[in->imm]->emu != &tx_mbar_wait_loop)
        return false;
    tx_act a = {vm, f, in, vm->p->ptx[in->imm]};
    uint32_t l = tx_first_lane(f->wait_mask ? f->wait_mask : 1);
    tx_where w;
    if (!tx_where_of(vm, tx_act_in(&a, tx_act_find(a.k, "a"), l), &w) || w.space == TX_GLOBAL)
        return false;
    tx_mbar *b = tx_mbar_at(w.cta, w.off);
    if (!b)
        return false;
    char buffer[sizeof r->buffer];
    memcpy(buffer, r->buffer, sizeof buffer);
    tx_mbar_name(vm, r, w.cta, w.off);
    int n = snprintf(text, size, "warp %u waits at %s%s for phase %u: %u of %u arrivals", f->warp->index, r->buffer,
                     r->element, phase_bit(&a, l), b->pending, b->expected);
    if (n > 0 && (size_t)n < size && b->tx > 0)
        snprintf(text + n, size - (size_t)n, " and %d bytes are missing", b->tx);
    else if (n > 0 && (size_t)n < size && b->tx < 0)
        snprintf(text + n, size - (size_t)n, " are missing, %d bytes too many have come", -b->tx);
    else if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " are missing");
    if (buffer[0])
        memcpy(r->buffer, buffer, sizeof buffer);
    r->element[0] = 0;
    return true;
}
