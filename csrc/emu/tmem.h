/* Private to emu/: tensor memory, 128 lanes of 512 columns of 32 bits for each CTA, and the work of the fifth-generation matrix unit.
 *
 * Cells hold values; columns have owners (tcgen05.alloc). For the checks there is one record for each column of each window of
 * 32 lanes, which is what a warp reaches: the last write, reads since, works under way. A work (copy, mma, shift) is under way
 * from its issue until a commit of its thread has completed; then it is the doing of the CTA's tensor unit, an agent of order.c,
 * whose time a thread learns with the mbarrier that the commit signals.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_TMEM_H
#define TX_EMU_TMEM_H

#include "emu/async.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_WINDOWS = 4, TMEM_READERS = 4, TMEM_ALLOCS = 64 };
enum { TX_TENSOR_UNIT = TX_BARRIER_AGENTS + TX_UNIT_AGENTS - 1 }; /* column of order.c, an engine of the CTA */

typedef struct tmem_event { /* who, when, where in the source */
    uint32_t who, time, site;
    uint32_t by;     /* 1 + the thread that issued it, if it was a work */
    uint32_t fenced; /* when its thread has executed fence::before_thread_sync, 0 not yet */
} tmem_event;
typedef struct tmem_record { /* a column of a window */
    tmem_event write, read[TMEM_READERS];
    uint32_t writes, reads; /* works under way */
    tmem_event flight;      /* the last of them: who issued it */
    bool storing;           /* a tcgen05.st that nobody has waited for */
} tmem_record;

typedef struct tmem_alloc {
    uint16_t column, n;
    uint8_t group;
    uint32_t site, thread;
} tmem_alloc;

typedef struct tmem_known { /* what a warp had seen at its last fence::after_thread_sync */
    uint32_t floor, *seen;  /* NULL: it has executed none */
} tmem_known;

struct tx_tmem {
    tmem_known known[TX_MAX_WARPS];
    uint32_t cell[TMEM_COLUMNS][TMEM_LANES];
    uint8_t written[TMEM_COLUMNS][TMEM_LANES / 8];
    uint8_t owner[TMEM_COLUMNS]; /* 1 + index of the allocation, 0 nobody */
    tmem_record record[TMEM_WINDOWS][TMEM_COLUMNS];
    tmem_alloc alloc[TMEM_ALLOCS];
    uint32_t nallocs;
    bool relinquished;
    uint8_t group; /* of the CTA's tcgen05 instructions, 0 none yet */
    struct {       /* an instruction of a pair, of which the other CTA's half has not come */
        bool waiting, served;
        bool dealloc;
        uint32_t n, column;
    } pair;
};

/* Columns of some windows of a CTA that a work touches. */
typedef struct tmem_span {
    tx_cta *cta;
    uint8_t windows; /* a bit each */
    bool write;
    uint16_t column, n;
} tmem_span;

/* Head of the data of every tcgen05 work. */
typedef struct tmem_work {
    uint32_t nspans;
    tmem_span span[8];
} tmem_work;

tx_tmem *tx_tmem_of(tx_vm *vm, tx_cta *cta);  /* made when first needed; NULL: out of memory */
void tx_tmem_forget(tx_tmem *t);              /* frees what it holds */
tx_cta *tx_tmem_peer(tx_vm *vm, tx_cta *cta); /* the other CTA of the pair; NULL: none */
/* The whole warp must be there for an .aligned instruction. false: reported. */
bool tx_tmem_whole_warp(const tx_act *a);
int tx_tmem_find(const tx_ptx_op *k, const char *name); /* operand by exactly these (at most two) letters; -1 */
tx_emu_report *tx_tmem_report(const tx_act *a, uint32_t lane, const char *kind);
/* Issue of a work: checks its spans against what threads and other works do, and marks them. false: reported. */
bool tx_tmem_issue(const tx_act *a, uint32_t lane, tmem_work *w);
void tx_tmem_done(tx_vm *vm, tx_work *w); /* of a work that a commit has completed */
bool tx_tmem_end(tx_vm *vm, tx_cta *cta); /* the threads have left */

#endif
