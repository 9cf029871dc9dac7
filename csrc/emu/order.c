/* The order of events in a CTA or cluster: vector clocks (async.h). SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

void
tx_clock_clear(tx_order *o, tx_clock *c)
{
    memset(c->seen, 0, 3 * (size_t)o->n * sizeof *c->seen);
}

tx_clock *
tx_clock_new(tx_order *o)
{
    tx_clock *c = o->spare;
    if (c)
        o->spare = c->next;
    else if (!(c = tx_calloc(1, sizeof *c + 3 * (size_t)o->n * sizeof *c->seen))) {
        if (o->vm)
            tx_vm_nomem(o->vm);
        return NULL;
    }
    c->seen = (uint32_t *)(void *)(c + 1);
    c->fenced = c->seen + o->n;
    c->wide = c->fenced + o->n;
    c->refs = 1;
    tx_clock_clear(o, c);
    return c;
}

void
tx_clock_drop(tx_order *o, tx_clock *c)
{
    if (!c || --c->refs)
        return;
    c->next = o->spare;
    o->spare = c;
}

static void
raise(const tx_order *o, uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
    o->vm->isa->later_times(to, from, n);
}

static void
clock_join(const tx_order *o, tx_clock *to, const tx_clock *from)
{
    raise(o, to->seen, from->seen, 3 * o->n);
}

static tx_clock *
clock_copy(tx_order *o, const tx_clock *from)
{
    tx_clock *c = tx_clock_new(o);
    if (c)
        memcpy(c->seen, from->seen, 3 * (size_t)o->n * sizeof *c->seen);
    return c;
}

/* The thread's clock becomes c. */
static void
set_clock(tx_order *o, uint32_t thread, tx_clock *c)
{
    tx_clock *old = o->of[thread];
    if (old == c)
        return;
    o->away += (c != o->base) - (old != o->base);
    c->refs++;
    o->of[thread] = c;
    tx_clock_drop(o, old);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

tx_order *
tx_order_new(tx_vm *vm, uint32_t nctas, uint32_t nthreads)
{
    tx_order *o = tx_calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->refs = 1;
    o->nctas = nctas;
    o->per_cta = (nthreads + TX_LANES - 1) / TX_LANES * TX_LANES;
    o->nthreads = o->per_cta * nctas;
    o->n = o->nthreads + nctas * TX_AGENTS;
    o->of = tx_calloc(o->nthreads, sizeof *o->of);
    o->agent = tx_calloc((size_t)nctas * TX_AGENTS, sizeof *o->agent);
    o->base = tx_clock_new(o);
    if (!o->of || !o->agent || !o->base) {
        tx_order_free(o);
        return NULL;
    }
    for (uint32_t t = 0; t < o->nthreads; t++)
        o->of[t] = o->base;
    o->base->refs += o->nthreads;
    o->vm = vm;
    return o;
}

static void
drop_fences(tx_order *o)
{
    while (o->nfences)
        tx_clock_drop(o, o->fences[--o->nfences].seen);
    while (o->nglobal)
        tx_clock_drop(o, o->global_fences[--o->nglobal].seen);
}

void
tx_order_free(tx_order *o)
{
    if (!o || --o->refs)
        return;
    for (uint32_t t = 0; o->of && t < o->nthreads; t++)
        tx_clock_drop(o, o->of[t]);
    tx_clock_drop(o, o->base);
    tx_clock_drop(o, o->met[0]);
    tx_clock_drop(o, o->met[1]);
    drop_fences(o);
    tx_flags_free(o);
    for (tx_clock *c = o->spare, *next; c; c = next) {
        next = c->next;
        tx_free(c);
    }
    tx_free(o->of);
    tx_free(o->agent);
    tx_free(o->known);
    tx_free(o->fences);
    tx_free(o->global_fences);
    tx_free(o);
}

void
tx_order_begin(tx_order *o)
{
    for (uint32_t t = 0; o->away && t < o->nthreads; t++)
        set_clock(o, t, o->base);
    if (o->joined)
        tx_clock_clear(o, o->base);
    o->joined = false;
    for (int i = 0; i < 2; i++)
        if (o->met[i])
            tx_clock_clear(o, o->met[i]);
    drop_fences(o);
    tx_flags_clear(o);
    o->nknown = 0;
    o->e.start = o->e.floor = tx_order_tick(o);
}

uint32_t
tx_order_tick(tx_order *o)
{
    return o->e.now = ++o->vm->now;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* Whoever takes over `into` has seen what the thread has done and seen. */
void
tx_order_release(tx_order *o, uint32_t thread, tx_clock *into)
{
    clock_join(o, into, o->of[thread]);
    uint32_t now = tx_order_tick(o);
    into->seen[thread] = now;
}

void
tx_order_pass(tx_order *o, const tx_clock *from, tx_clock *into)
{
    clock_join(o, into, from);
}

void
tx_order_release_agent(tx_order *o, uint32_t agent, tx_clock *into)
{
    into->seen[agent] = tx_order_tick(o);
}

/* Lanes with equal clocks get equal clocks. */
void
tx_order_acquire(tx_order *o, uint32_t first, uint32_t lanes, const tx_clock *from)
{
    while (lanes) {
        uint32_t t = first + tx_first_lane(lanes), same = 0;
        tx_clock *old = o->of[t], *c = clock_copy(o, old);
        if (!c)
            return;
        clock_join(o, c, from);
        for (uint32_t left = lanes; left; left &= left - 1)
            if (o->of[first + tx_first_lane(left)] == old)
                same |= left & (0u - left);
        lanes &= ~same;
        for (; same; same &= same - 1)
            set_clock(o, first + tx_first_lane(same), c);
        tx_clock_drop(o, c);
    }
}

void
tx_order_learn(tx_order *o, uint32_t first, uint32_t lanes, uint32_t agent)
{
    uint32_t now = tx_order_tick(o);
    while (lanes) {
        tx_clock *old = o->of[first + tx_first_lane(lanes)], *c = clock_copy(o, old);
        uint32_t same = 0;
        if (!c)
            return;
        c->seen[agent] = now;
        for (uint32_t left = lanes; left; left &= left - 1)
            if (o->of[first + tx_first_lane(left)] == old)
                same |= left & (0u - left);
        lanes &= ~same;
        for (; same; same &= same - 1)
            set_clock(o, first + tx_first_lane(same), c);
        tx_clock_drop(o, c);
    }
}

/* Some lanes of a warp have met: each has seen what any had. */
void
tx_order_meet(tx_order *o, uint32_t first, uint32_t lanes)
{
    tx_clock *last = o->of[first + tx_first_lane(lanes)], *c = clock_copy(o, last);
    uint32_t now = tx_order_tick(o);
    if (!c)
        return;
    for (uint32_t left = lanes; left; left &= left - 1) {
        tx_clock *mine = o->of[first + tx_first_lane(left)];
        if (mine != last)
            clock_join(o, c, mine);
        last = mine;
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        c->seen[first + tx_first_lane(left)] = now;
    for (uint32_t left = lanes; left; left &= left - 1)
        set_clock(o, first + tx_first_lane(left), c);
    tx_clock_drop(o, c);
}

/* The same for whole warps; first: thread 0 of their CTA. */
void
tx_order_meet_warps(tx_order *o, uint32_t first, uint32_t warps)
{
    tx_clock *last = o->of[first + tx_first_lane(warps) * TX_LANES], *c = clock_copy(o, last);
    uint32_t now = tx_order_tick(o);
    if (!c)
        return;
    for (uint32_t left = warps; left; left &= left - 1)
        for (uint32_t k = 0; k < TX_LANES; k++) {
            tx_clock *mine = o->of[first + tx_first_lane(left) * TX_LANES + k];
            if (mine != last)
                clock_join(o, c, mine);
            last = mine;
        }
    for (uint32_t left = warps; left; left &= left - 1)
        for (uint32_t k = 0; k < TX_LANES; k++)
            c->seen[first + tx_first_lane(left) * TX_LANES + k] = now;
    for (uint32_t left = warps; left; left &= left - 1)
        for (uint32_t k = 0; k < TX_LANES; k++)
            set_clock(o, first + tx_first_lane(left) * TX_LANES + k, c);
    tx_clock_drop(o, c);
}

/* All threads have met. */
void
tx_order_meet_all(tx_order *o)
{
    tx_clock *last = o->base;
    o->joined = o->joined || o->away;
    for (uint32_t t = 0; o->away && t < o->nthreads; t++) {
        tx_clock *mine = o->of[t];
        if (mine != last && mine != o->base)
            clock_join(o, o->base, mine);
        last = mine;
    }
    for (uint32_t t = 0; o->away && t < o->nthreads; t++)
        set_clock(o, t, o->base);
    o->e.floor = tx_order_tick(o);
}

/* What these lanes have seen is behind a fence between the generic and the async proxy, for whoever sees the fence. Lanes with equal
 * clocks share one: a lane that is ordered after another lane's write has seen it before its own fence. */
static void
order_fence(tx_order *o, uint32_t first, uint32_t lanes, bool wide)
{
    uint32_t now = tx_order_tick(o);
    while (lanes) {
        tx_clock *old = o->of[first + tx_first_lane(lanes)], *c = clock_copy(o, old);
        uint32_t same = 0;
        if (!c)
            return;
        for (uint32_t left = lanes; left; left &= left - 1)
            if (o->of[first + tx_first_lane(left)] == old)
                same |= left & (0u - left);
        uint32_t *to = wide ? c->wide : c->fenced;
        raise(o, to, c->seen, o->n);
        for (uint32_t t = 0; t < o->nthreads; t++)
            to[t] = to[t] < o->e.floor ? o->e.floor : to[t];
        for (uint32_t left = same; left; left &= left - 1)
            to[first + tx_first_lane(left)] = now;
        lanes &= ~same;
        for (; same; same &= same - 1)
            set_clock(o, first + tx_first_lane(same), c);
        tx_clock_drop(o, c);
    }
}

void
tx_order_fence_proxy(tx_order *o, uint32_t first, uint32_t lanes)
{
    order_fence(o, first, lanes, false);
}

/* The same for a fence that other CTAs take part in: what these lanes have seen, whoever releases it later. */
void
tx_order_fence_wide(tx_order *o, uint32_t first, uint32_t lanes)
{
    order_fence(o, first, lanes, true);
}

/* A fence of a part of the GPU: what these lanes have seen stays written down, for their relaxed operations afterwards. */
void
tx_order_fence_near(tx_order *o, uint32_t first, uint32_t lanes, uint8_t scope)
{
    tx_clock *base = NULL; /* a copy: it changes */
    for (; lanes; lanes &= lanes - 1) {
        uint32_t t = first + tx_first_lane(lanes), i = 0;
        tx_clock *c = o->of[t];
        if (c == o->base && !(c = base) && !(c = base = clock_copy(o, o->base)))
            return;
        while (i < o->nfences && (o->fences[i].thread != t || o->fences[i].scope != scope))
            i++;
        if (i == o->fence_cap) {
            tx_fence *p = tx_realloc(o->fences, (i + TX_LANES) * sizeof *p);
            if (!p) {
                tx_vm_nomem(o->vm);
                break;
            }
            o->fences = p, o->fence_cap = i + TX_LANES;
        }
        if (i == o->nfences)
            o->fences[o->nfences++].seen = NULL;
        c->refs++;
        tx_clock_drop(o, o->fences[i].seen);
        o->fences[i] = (tx_fence){t, o->e.now, o->e.floor, scope, c};
    }
    tx_clock_drop(o, base);
    tx_order_tick(o);
}

/* A relaxed arrival: it releases what is behind fences that its thread has seen, of this scope at least. */
void
tx_order_release_fenced(tx_order *o, uint32_t thread, uint8_t scope, tx_clock *into)
{
    const tx_clock *mine = o->of[thread];
    raise(o, into->seen, mine->wide, o->n);
    raise(o, into->fenced, mine->fenced, o->n);
    raise(o, into->wide, mine->wide, o->n);
    for (uint32_t i = 0; i < o->nfences; i++) {
        const tx_fence *f = &o->fences[i];
        if (f->scope < scope || !tx_order_seen(o, thread, f->thread, f->time))
            continue;
        clock_join(o, into, f->seen);
        if (into->seen[f->thread] <= f->time)
            into->seen[f->thread] = f->time + 1;
    }
}

/* ---- fence.proxy.async.global ------------------------------------------------------------------------------------------ */

enum { GLOBAL_FENCES = 32 }; /* of a thread; the oldest goes first */

void
tx_order_fence_global(tx_order *o, uint32_t first, uint32_t lanes)
{
    tx_clock *base = NULL; /* a copy: it changes */
    for (; lanes; lanes &= lanes - 1) {
        uint32_t t = first + tx_first_lane(lanes), n = 0, oldest = 0, at = o->nglobal;
        tx_clock *c = o->of[t];
        if (c == o->base && !(c = base) && !(c = base = clock_copy(o, o->base)))
            return;
        for (uint32_t i = o->nglobal; i-- > 0;)
            if (o->global_fences[i].thread == t)
                n++, oldest = i;
        if (n >= GLOBAL_FENCES) { /* they stand in order */
            tx_clock_drop(o, o->global_fences[oldest].seen);
            at--;
            memmove(o->global_fences + oldest, o->global_fences + oldest + 1, (at - oldest) * sizeof *o->global_fences);
            o->nglobal = at;
        }
        if (at == o->global_cap) {
            tx_fence *p = tx_realloc(o->global_fences, ((size_t)at * 2 + TX_LANES) * sizeof *p);
            if (!p) {
                tx_vm_nomem(o->vm);
                break;
            }
            o->global_fences = p, o->global_cap = at * 2 + TX_LANES;
        }
        c->refs++;
        o->global_fences[o->nglobal++] = (tx_fence){t, o->e.now, o->e.floor, 0, c};
    }
    tx_clock_drop(o, base);
    tx_order_tick(o);
}

bool
tx_order_fenced_global(const tx_order *o, uint32_t thread, uint32_t other, uint32_t time)
{
    if (o->vm->p->common_fences && tx_order_fenced(o, thread, other, time))
        return true;
    for (uint32_t i = o->nglobal; i-- > 0;) {
        const tx_fence *f = &o->global_fences[i];
        if (tx_order_seen(o, thread, f->thread, f->time) &&
            (f->seen->seen[other] > time || (other < o->nthreads && f->floor > time) ||
             (other == f->thread && f->time >= time)))
            return true;
    }
    return false;
}

void
tx_order_fenced_times(const tx_order *o, uint32_t thread, uint32_t *times)
{
    memset(times, 0, o->n * sizeof *times);
    if (o->vm->p->common_fences)
        memcpy(times, o->of[thread]->fenced, o->n * sizeof *times);
    for (uint32_t i = 0; i < o->nglobal; i++) {
        const tx_fence *f = &o->global_fences[i];
        if (!tx_order_seen(o, thread, f->thread, f->time))
            continue;
        for (uint32_t t = 0; t < o->n; t++) {
            uint32_t time = t < o->nthreads && f->floor > f->seen->seen[t] ? f->floor : f->seen->seen[t];
            times[t] = time > times[t] ? time : times[t];
        }
        times[f->thread] = f->time + 1 > times[f->thread] ? f->time + 1 : times[f->thread];
    }
}
