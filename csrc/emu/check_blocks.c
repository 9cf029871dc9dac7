/* Records of shared memory by blocks of 1 KB, for check_race.c: what the copy engine writes and the matrix units read, tile by tile.
 *
 * A block that a copy writes as a whole gets one record: its write, and the reads by engines since, each with the 16-byte
 * pieces that it takes. That is all as long as only engines work on it. Whatever else comes (a thread's access, a copy of a part, more
 * reads than there is room for) opens the block: its granules get the records that they would have had. Checks here only say that
 * all is well; if not, the block is opened, and the granule that is wrong is found and reported there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/shadow.h"

void
tx_block_open(tx_shadow *s, uint32_t b)
{
    tx_block *k = &s->block[b];
    uint32_t per = BLOCK_BYTES >> s->shift, first = b * per;
    k->on = false;
    for (uint32_t g = first; g < first + per; g++)
        s->wtime[g] = k->wtime, s->wwho[g] = k->wwho, s->rtime[g] = 0;
    memset(s->reads + first, 0, per * sizeof *s->reads);
    memset(&s->slots[(size_t)first * SLOTS], 0, (size_t)per * SLOTS * sizeof *s->slots);
    tx_more_clear(s, first, per);
    for (uint32_t r = 0; r < k->n; r++)
        for (uint32_t g = first; g < first + per; g++) {
            if (!(k->read[r].pieces >> ((g - first) << s->shift) / BLOCK_PIECE & 1))
                continue;
            if (k->read[r].time)
                tx_note_slot(s, g, k->read[r].time, k->read[r].who);
            else
                s->reads[g]++, s->reader[g] = k->read[r].who, s->rtime[g] |= TX_TIME_CLOSER;
        }
}

/* Is the write of the block behind the issuer, and through the right proxy? */
static bool
after_write(const tx_issue *i, const tx_shadow *s, const tx_block *k, uint32_t thread)
{
    uint32_t time = k->wtime & ~TX_TIME_CLOSER, writer = k->wwho >> TX_WHO_THREAD;
    return k->on && k->wtime != PENDING && time >= s->start && !i->atomic &&
           tx_order_seen(s->order, thread, writer, time) &&
           (!i->async_proxy || writer >= s->order->nthreads || tx_order_fenced(s->order, thread, writer, time));
}

bool
tx_block_may_write(const tx_issue *i, const tx_shadow *s, uint32_t b, uint32_t thread)
{
    const tx_block *k = &s->block[b];
    if (i->vm->unwritten.set || !after_write(i, s, k, thread))
        return false;
    for (uint32_t r = 0; r < k->n; r++)
        if (!k->read[r].time || (k->read[r].time >= s->start &&
                                 !tx_order_seen(s->order, thread, k->read[r].who >> TX_WHO_THREAD, k->read[r].time)))
            return false;
    return true;
}

void
tx_block_write(tx_shadow *s, uint32_t b, uint32_t who)
{
    tx_block *k = &s->block[b];
    k->on = true, k->n = 0, k->wtime = PENDING, k->wwho = who;
}

bool
tx_block_wrote(tx_shadow *s, uint32_t b, uint32_t time, uint32_t who)
{
    if (!s->block[b].on)
        return false;
    s->block[b].wtime = time, s->block[b].wwho = who;
    return true;
}

bool
tx_block_read(const tx_issue *i, tx_shadow *s, uint32_t b, uint64_t pieces, uint32_t thread, uint32_t who)
{
    tx_block *k = &s->block[b];
    if (k->n == BLOCK_READS || !after_write(i, s, k, thread))
        return false;
    k->read[k->n++] = (block_read){pieces, 0, who};
    return true;
}

static void
block_forget(tx_block *k, uint32_t r)
{
    k->n--;
    memmove(&k->read[r], &k->read[r + 1], (k->n - r) * sizeof k->read[0]);
}

bool
tx_block_has_read(tx_shadow *s, uint32_t b, uint64_t pieces, uint32_t who)
{
    tx_block *k = &s->block[b];
    uint32_t r = 0, now = s->order->e.now;
    while (k->on && r < k->n && (k->read[r].time || k->read[r].pieces != pieces))
        r++;
    if (!k->on || r == k->n)
        return false;
    block_forget(k, r);
    for (r = 0; r < k->n;) {
        block_read *old = &k->read[r];
        bool same = old->time && old->who >> TX_WHO_THREAD == who >> TX_WHO_THREAD;
        if (same && old->who == who && old->time == now) {
            old->pieces |= pieces;
            return true;
        }
        if (same && !(old->pieces &= ~pieces)) /* the later read counts */
            block_forget(k, r);
        else
            r++;
    }
    k->read[k->n++] = (block_read){pieces, now, who};
    return true;
}
