/* Checker: what strong operations on shared memory order: atomics, relaxed, volatile, acquiring and releasing loads and stores, between
 * threads of a CTA or cluster. Called by check_race.c, which leaves two of them on the same bytes alone.
 *
 * A flag is an address at which something has been released: by an operation with .release, or by a relaxed one whose thread has had a
 * fence; it keeps a clock for each CTA and scope. A strong read takes over what is there, at once if it acquires, else when its
 * thread has a fence. In a cluster a scope of one CTA orders nothing with another; such a clock is remembered all the same, so that the
 * race that follows is reported as one of scope. Addresses at which nobody releases cost nothing: counters and histograms.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"

typedef struct flag_clock {
    uint32_t cta; /* rank of those that release */
    uint8_t scope;
    tx_clock *c; /* shared with those that wait: copied before it grows */
} flag_clock;
typedef struct flag {
    uint64_t at; /* rank of the CTA << 32 | byte */
    uint32_t n, cap;
    flag_clock *list;
} flag;
typedef struct
    flag_wait { /* read relaxed by a thread, which may still have a fence; or taken over in too narrow a scope */
    uint32_t thread, cta, time;
    uint8_t scope;
    tx_clock *c;
} flag_wait;
typedef struct flag_waits {
    flag_wait *list;
    uint32_t n, cap;
} flag_waits;
struct tx_flags {
    flag *list;
    uint32_t n, cap;
    tx_map index;      /* address -> entry + 1 */
    flag_waits narrow; /* of all threads */
    flag_waits wait[]; /* of each */
};

static void
flags_forget(tx_order *o, flag_waits *w)
{
    while (w->n)
        tx_clock_drop(o, w->list[--w->n].c);
}

void
tx_flags_clear(tx_order *o)
{
    struct tx_flags *s = o->flags;
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t k = 0; k < s->list[i].n; k++)
            tx_clock_drop(o, s->list[i].list[k].c);
        tx_free(s->list[i].list);
    }
    for (uint32_t t = 0; t < o->nthreads; t++)
        flags_forget(o, &s->wait[t]);
    flags_forget(o, &s->narrow);
    tx_map_free(&s->index);
    memset(&s->index, 0, sizeof s->index);
    s->n = 0;
}

void
tx_flags_free(tx_order *o)
{
    if (!o->flags)
        return;
    tx_flags_clear(o);
    for (uint32_t t = 0; t < o->nthreads; t++)
        tx_free(o->flags->wait[t].list);
    tx_free(o->flags->narrow.list);
    tx_free(o->flags->list);
    tx_free(o->flags);
    o->flags = NULL;
}

/* Room for one more; false: out of memory. */
static bool
flags_room(tx_order *o, void **list, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return true;
    void *p = tx_realloc(*list, (size_t)(*cap ? *cap * 2 : 8) * size);
    if (!p)
        return tx_vm_nomem(o->vm), false;
    *cap = *cap ? *cap * 2 : 8;
    *list = p;
    return true;
}
#define FLAGS_ROOM(o, list, n, cap) flags_room(o, (void **)&(list), n, &(cap), sizeof *(list))

static struct tx_flags *
flags_of(tx_order *o)
{
    if (!o->flags && !(o->flags = tx_calloc(1, sizeof *o->flags + o->nthreads * sizeof *o->flags->wait)))
        tx_vm_nomem(o->vm);
    return o->flags;
}

static flag *
flag_at(tx_order *o, uint64_t at, bool make)
{
    struct tx_flags *s = o->flags;
    uint64_t i;
    if (s && tx_map_get(&s->index, at + 1, &i))
        return &s->list[i - 1];
    if (!make)
        return NULL;
    if (!(s = flags_of(o)))
        return NULL;
    if (!FLAGS_ROOM(o, s->list, s->n, s->cap))
        return NULL;
    if (!tx_map_put(&s->index, at + 1, s->n + 1))
        return tx_vm_nomem(o->vm), NULL;
    s->list[s->n] = (flag){.at = at};
    return &s->list[s->n++];
}

/* ---- release ----------------------------------------------------------------------------------------------------- */

/* The clock of a CTA and scope at a flag, which only this thread is about to change. */
static flag_clock *
flags_clock(tx_order *o, uint64_t at, uint32_t cta, uint8_t scope)
{
    flag *f = flag_at(o, at, true);
    flag_clock *k = NULL;
    for (uint32_t i = 0; f && i < f->n; i++)
        if (f->list[i].cta == cta && f->list[i].scope == scope)
            k = &f->list[i];
    if (!f || (!k && !FLAGS_ROOM(o, f->list, f->n, f->cap)))
        return NULL;
    if (k && k->c->refs == 1)
        return k;
    tx_clock *c = tx_clock_new(o);
    if (!c)
        return NULL;
    if (k) {
        tx_order_pass(o, k->c, c);
        tx_clock_drop(o, k->c);
    } else
        *(k = &f->list[f->n++]) = (flag_clock){.cta = cta, .scope = scope};
    k->c = c;
    return k;
}

/* Adds what `seen` says; a clock that says it already stays as it is. */
static void
flags_add(tx_order *o, uint64_t at, uint32_t cta, uint8_t scope, const tx_clock *from, const uint32_t *seen,
          uint32_t thread, uint32_t time)
{
    const flag *f = flag_at(o, at, false);
    for (uint32_t i = 0; f && i < f->n; i++) {
        const flag_clock *old = &f->list[i];
        bool news = old->cta != cta || old->scope != scope || old->c->seen[thread] < time;
        for (uint32_t t = 0; t < o->n && !news; t++)
            news = seen[t] > old->c->seen[t];
        if (!news)
            return;
    }
    flag_clock *k = flags_clock(o, at, cta, scope);
    if (!k)
        return;
    uint32_t *to = k->c->seen, *fenced = k->c->fenced, *wide = k->c->wide;
    for (uint32_t t = 0; t < o->n; t++) {
        to[t] = seen[t] > to[t] ? seen[t] : to[t];
        fenced[t] = from->fenced[t] > fenced[t] ? from->fenced[t] : fenced[t];
        wide[t] = from->wide[t] > wide[t] ? from->wide[t] : wide[t];
    }
    if (to[thread] < time)
        to[thread] = time;
}

static void
flags_release(tx_order *o, uint64_t at, uint32_t me, uint8_t scope, bool itself)
{
    const tx_clock *mine = o->of[me];
    uint32_t cta = me / o->per_cta;
    bool wide = false;
    if (itself) {
        flag_clock *k = flags_clock(o, at, cta, scope);
        if (k)
            tx_order_release(o, me, k->c);
        return;
    }
    for (uint32_t t = 0; t < o->n && !wide; t++)
        wide = mine->wide[t] != 0;
    if (wide) /* what is behind a fence of the whole GPU */
        flags_add(o, at, cta, scope, mine, mine->wide, me, mine->wide[me]);
    for (uint32_t i = 0; i < o->nfences; i++) {
        const tx_fence *f = &o->fences[i];
        if (tx_order_seen(o, me, f->thread, f->time))
            flags_add(o, at, cta, scope < f->scope ? scope : f->scope, f->seen, f->seen->seen, f->thread, f->time + 1);
    }
}

/* ---- acquire ----------------------------------------------------------------------------------------------------- */

static void
flags_keep(tx_order *o, flag_waits *to, flag_wait w)
{
    for (uint32_t i = 0; i < to->n; i++)
        if (to->list[i].thread == w.thread && to->list[i].c == w.c && to->list[i].scope >= w.scope)
            return;
    if (!FLAGS_ROOM(o, to->list, to->n, to->cap))
        return;
    w.c->refs++;
    w.time = o->e.now;
    to->list[to->n++] = w;
}

static void
flags_take(tx_order *o, flag_wait w)
{
    if (w.scope > 0 || w.cta == w.thread / o->per_cta)
        tx_order_acquire(o, w.thread, 1, w.c);
    else
        flags_keep(o, &o->flags->narrow, w);
}

static void
flags_acquire(tx_order *o, uint64_t at, uint32_t me, uint8_t scope, bool itself)
{
    const flag *f = flag_at(o, at, false);
    for (uint32_t i = 0; f && i < f->n; i++) {
        const flag_clock *k = &f->list[i];
        const uint32_t *mine = o->of[me]->seen, *theirs = k->c->seen;
        uint32_t news = 0;
        for (uint32_t t = 0; t < o->n; t++)
            news |= theirs[t] > mine[t];
        if (!news)
            continue;
        flag_wait w = {.thread = me, .cta = k->cta, .scope = k->scope < scope ? k->scope : scope, .c = k->c};
        if (itself)
            flags_take(o, w);
        else
            flags_keep(o, &o->flags->wait[me], w);
    }
}

/* A fence: what these lanes have read relaxed they know now. */
void
tx_flags_fence(tx_order *o, uint32_t first, uint32_t lanes, uint8_t scope)
{
    for (; o->flags && lanes; lanes &= lanes - 1) {
        flag_waits *all = &o->flags->wait[first + tx_first_lane(lanes)];
        while (all->n) {
            flag_wait w = all->list[--all->n];
            w.scope = w.scope < scope ? w.scope : scope;
            flags_take(o, w);
            tx_clock_drop(o, w.c);
        }
    }
}

/* ---- for check_race.c -------------------------------------------------------------------------------------------------- */

/* Packed as in tx_access.strength; an atomic without qualifiers is relaxed, of the whole GPU. */
static unsigned
flags_packed(const tx_access *a)
{
    return a->strength ? a->strength - 1u : 8;
}

void
tx_flags_before(const tx_access *a, const tx_cta *owner, uint32_t byte, uint32_t me)
{
    tx_order *o = tx_shadow_order(owner);
    unsigned packed = flags_packed(a);
    if (o->flags && a->kind != TX_WRITE)
        flags_acquire(o, (uint64_t)owner->cluster_rank << 32 | byte, me, (uint8_t)(packed / 4), packed & 2);
}

void
tx_flags_after(const tx_access *a, const tx_cta *owner, uint32_t byte, uint32_t me)
{
    unsigned packed = flags_packed(a);
    if (a->kind != TX_READ)
        flags_release(tx_shadow_order(owner), (uint64_t)owner->cluster_rank << 32 | byte, me, (uint8_t)(packed / 4),
                      packed & 1);
}

void
tx_flags_narrowly(tx_order *o, uint32_t me, const tx_clock *from)
{
    struct tx_flags *s = flags_of(o);
    for (uint32_t i = 0; s && i < s->narrow.n; i++)
        if (s->narrow.list[i].thread == me &&
            memcmp(s->narrow.list[i].c->seen, from->seen, o->n * sizeof *from->seen) == 0)
            return;
    tx_clock *c = s ? tx_clock_new(o) : NULL;
    if (!c)
        return;
    tx_order_pass(o, from, c);
    flags_keep(o, &s->narrow, (flag_wait){.thread = me, .c = c});
    tx_clock_drop(o, c);
}

/* Is a race one only because a scope was too narrow? */
bool
tx_flags_narrow(const tx_order *o, uint32_t me, uint32_t other, uint32_t time)
{
    const flag_waits *all = o->flags ? &o->flags->narrow : NULL;
    for (uint32_t i = 0; all && i < all->n; i++)
        if (tx_order_seen(o, me, all->list[i].thread, all->list[i].time) && all->list[i].c->seen[other] > time)
            return true;
    return false;
}

/* Is it one only because a relaxed read lacks its fence? */
bool
tx_flags_waits(const tx_order *o, uint32_t me, uint32_t other, uint32_t time)
{
    const flag_waits *all = o->flags ? &o->flags->wait[me] : NULL;
    for (uint32_t i = 0; all && i < all->n; i++)
        if (all->list[i].c->seen[other] > time)
            return true;
    return false;
}
