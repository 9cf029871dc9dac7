/* Private to emu/check_race.c and check_blocks.c: the records of shared memory. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_SHADOW_H
#define TX_EMU_SHADOW_H

#include "emu/async.h"

enum { SLOTS = 4 };
#define PENDING 0xffffffffu /* wtime: an engine is to write here */
#define LIVE 0xfffffffeu    /* wtime: an mbarrier */

typedef struct
    warp_read { /* by lanes of one warp: the latest, and other lanes' earlier ones, not later than `before` was */
    uint32_t time, lanes, before, others;
} warp_read;
typedef struct agent_read {
    uint32_t time, who;
} agent_read;

typedef struct more_read {
    agent_read r;
    uint32_t next; /* entry + 1 */
} more_read;

/* 1 KB that an engine has written as a whole: one record for all granules while nobody but engines touches it. */
enum { BLOCK_BYTES = 1024, BLOCK_PIECE = 16, BLOCK_READS = 16 };
typedef struct block_read {
    uint64_t pieces; /* of 16 bytes */
    uint32_t time;   /* 0: still to come */
    uint32_t who;
} block_read;
typedef struct tx_block {
    bool on; /* else the granules have their own */
    uint8_t n;
    uint32_t wtime, wwho;
    block_read read[BLOCK_READS];
} tx_block;

typedef struct hidden_write hidden_write; /* check_atomics.c */
struct tx_shadow {
    tx_order *order;
    uint32_t start;
    uint32_t n; /* granules */
    uint32_t *wtime, *wwho, *rtime, *rwho;
    warp_read *warps; /* named barriers, engines: last read of each warp, n times nwarps; else NULL */
    agent_read *slots;
    tx_map more_at; /* granule + 1 -> its first entry of `more` + 1, 0 none: readers beyond the slots */
    more_read *more;
    uint32_t nmore, more_cap, more_free; /* more_free: the first unused one + 1 */
    tx_map hidden_at; /* granule + 1 -> its first entry of `hidden` + 1: writes in front of atomics */
    hidden_write *hidden;
    uint32_t nhidden, hidden_cap;
    uint16_t *reads; /* engines that are still to read, and one of them */
    uint32_t *reader;
    uint32_t nwarps;
    uint32_t shift;  /* log2 of a granule's bytes */
    tx_block *block; /* NULL: no engines */
};

void tx_note_warp_read(const tx_order *o, warp_read *r, uint32_t thread);
void tx_more_clear(tx_shadow *s, uint32_t g, uint32_t n);
void tx_note_slot(tx_shadow *s, uint32_t g, uint32_t time, uint32_t who);

/* ---- check_atomics.c --------------------------------------------------------------------------------------------- */

void tx_hidden_free(tx_shadow *s);
void tx_hidden_reset(tx_shadow *s);
void tx_hidden_note(tx_shadow *s, uint32_t g, uint32_t thread, uint32_t who);
void tx_hidden_clear(tx_shadow *s, uint32_t g);
bool tx_hidden_ordered(const tx_shadow *s, uint32_t g, uint32_t thread, bool strong, uint32_t *by, uint32_t *when);

/* ---- check_blocks.c ---------------------------------------------------------------------------------------------- */

void tx_block_open(tx_shadow *s, uint32_t b); /* its granules get records of their own */
static inline void
tx_blocks_open(tx_shadow *s, uint32_t off, uint32_t n)
{
    for (uint32_t b = off / BLOCK_BYTES; s->block && b <= (off + n - 1) / BLOCK_BYTES; b++)
        if (s->block[b].on)
            tx_block_open(s, b);
}
/* Events that concern a block as a whole. false: look at its granules. */
bool tx_block_may_write(const tx_issue *i, const tx_shadow *s, uint32_t b, uint32_t thread);
void tx_block_write(tx_shadow *s, uint32_t b, uint32_t who);
bool tx_block_wrote(tx_shadow *s, uint32_t b, uint32_t time, uint32_t who);
bool tx_block_read(const tx_issue *i, tx_shadow *s, uint32_t b, uint64_t pieces, uint32_t thread, uint32_t who);
bool tx_block_has_read(tx_shadow *s, uint32_t b, uint64_t pieces, uint32_t who);

#endif
