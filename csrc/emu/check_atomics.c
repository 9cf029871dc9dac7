/* Part of the race checker (check_race.c): atomics hide what was there before them. A granule has one last write; where that is an
 * atomic, the plain write in front of it and the atomics of other warps are kept here, so that an atomic is held against the plain
 * write, and a plain access against all of the atomics, until a plain write or a barrier of all comes. SPDX-License-Identifier: Apache-2.0 */
#include "emu/shadow.h"

struct hidden_write {
    uint32_t next; /* of the granule: entry + 1 */
    uint32_t warp; /* of the order; UINT32_MAX: the plain write */
    uint32_t who;
    warp_read r; /* when lanes of the warp did it; the plain write: time only */
};

void
tx_hidden_free(tx_shadow *s)
{
    tx_free(s->hidden);
    tx_map_free(&s->hidden_at);
}

void
tx_hidden_reset(tx_shadow *s)
{
    tx_map_free(&s->hidden_at);
    memset(&s->hidden_at, 0, sizeof s->hidden_at);
    s->nhidden = 0;
}

static hidden_write *
hidden_entry(tx_shadow *s, uint32_t g, uint32_t warp)
{
    uint64_t first = 0;
    tx_map_get(&s->hidden_at, g + 1, &first);
    for (uint64_t k = first; k; k = s->hidden[k - 1].next)
        if (s->hidden[k - 1].warp == warp)
            return &s->hidden[k - 1];
    if (s->nhidden == s->hidden_cap) {
        uint32_t cap = s->hidden_cap ? s->hidden_cap * 2 : 64;
        hidden_write *p = tx_realloc(s->hidden, cap * sizeof *p);
        if (!p)
            return tx_vm_nomem(s->order->vm), NULL;
        s->hidden = p, s->hidden_cap = cap;
    }
    if (!tx_map_put(&s->hidden_at, g + 1, s->nhidden + 1))
        return tx_vm_nomem(s->order->vm), NULL;
    hidden_write *h = &s->hidden[s->nhidden++];
    memset(h, 0, sizeof *h);
    h->next = (uint32_t)first, h->warp = warp;
    return h;
}

/* A strong write by a thread, in front of which the granule's last write was another. */
void
tx_hidden_note(tx_shadow *s, uint32_t g, uint32_t thread, uint32_t who)
{
    uint32_t time = s->wtime[g], writer = s->wwho[g];
    hidden_write *h;
    if (time >= s->order->e.floor && time < TX_TIME_CLOSER && !(writer & TX_WHO_ATOMIC)) {
        if (!(h = hidden_entry(s, g, UINT32_MAX)))
            return;
        h->who = writer, h->r.time = time;
    }
    if (!(h = hidden_entry(s, g, thread / TX_LANES)))
        return;
    h->who = who;
    tx_note_warp_read(s->order, &h->r, thread);
}

/* A plain write, which all of them come before. */
void
tx_hidden_clear(tx_shadow *s, uint32_t g)
{
    uint64_t at = 0;
    if (!s->nhidden)
        return;
    tx_map_get(&s->hidden_at, g + 1, &at);
    for (; at; at = s->hidden[at - 1].next)
        memset(&s->hidden[at - 1].r, 0, sizeof s->hidden[at - 1].r);
}

/* Are these writes ordered before an access of a thread? *by and *when: one that is not. */
bool
tx_hidden_ordered(const tx_shadow *s, uint32_t g, uint32_t thread, bool strong, uint32_t *by, uint32_t *when)
{
    const tx_order *o = s->order;
    uint64_t at = 0;
    if (s->nhidden)
        tx_map_get(&s->hidden_at, g + 1, &at);
    for (; at; at = s->hidden[at - 1].next) {
        const hidden_write *h = &s->hidden[at - 1];
        *by = h->who, *when = h->r.time;
        if (h->r.time < o->e.floor || (strong && h->warp != UINT32_MAX))
            continue;
        if (h->warp == UINT32_MAX) {
            if (!tx_order_seen(o, thread, h->who >> TX_WHO_THREAD, h->r.time))
                return false;
            continue;
        }
        for (int k = 0; k < 2; k++) {
            uint32_t lanes = k ? h->r.others : h->r.lanes, time = k ? h->r.before : h->r.time;
            for (; lanes && time >= o->e.floor; lanes &= lanes - 1) {
                uint32_t other = h->warp * TX_LANES + tx_first_lane(lanes);
                if (tx_order_seen(o, thread, other, time))
                    continue;
                *by = other << TX_WHO_THREAD | (h->who & (TX_WHO_SITE | TX_WHO_ATOMIC)), *when = time;
                return false;
            }
        }
    }
    return true;
}
