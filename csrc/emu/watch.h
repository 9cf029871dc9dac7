/* Private to emu/: what a watched run tells: steps, waits, barriers, works of engines. timeline.c writes them down as a timeline,
 * counts.c counts them; with nobody watching vm->watch is NULL, and the interpreter is one that tells nothing.
 *
 * Time. The emulator runs one warp after the other; a GPU runs them together. So each part of a warp has a clock of its own, which
 * an instruction moves on by one, and a wait ends at the clock of whoever ended it. Engines take no time: a work ends
 * when somebody has waited for it, or as the schedule says. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_WATCH_H
#define TX_EMU_WATCH_H

#include "emu/async.h"

typedef struct tx_count tx_count; /* counts.c */
typedef struct tx_watcher {
    tx_vm *vm;
    tx_emu_watch *out;
    tx_frag *f;          /* that runs */
    uint64_t not_before; /* of what an engine does */
    uint32_t works;
    tx_count *count;     /* TX_WATCH_COUNTS: of each place */
    uint64_t *ops, *ptx; /* instructions of the VM, and of the program's PTX operations */
} tx_watcher;

tx_watcher *tx_watch_new(tx_vm *vm, tx_emu_watch *out); /* NULL: out of memory */
void tx_watch_free(tx_watcher *w);                      /* writes the rest */

/* run_watch.c: before each instruction */
void tx_watch_step(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lanes);
/* parts of warps */
void tx_watch_start(tx_vm *vm, tx_frag *f);
void tx_watch_split(tx_vm *vm, const tx_frag *f, tx_frag *g);
void tx_watch_join(tx_vm *vm, tx_frag *f, const tx_frag *g);
void tx_watch_gone(tx_vm *vm, tx_frag *f);
/* What a part waited for has come at that time. */
void tx_watch_until(tx_vm *vm, tx_frag *f, uint64_t when, const char *what, uint32_t site);
/* barriers */
void tx_watch_arrive(tx_vm *vm, tx_frag *f, uint32_t id, tx_barrier *b);
void tx_watch_meet(tx_vm *vm, tx_cta *cta, uint32_t id, const tx_barrier *b); /* before its threads go on */
void tx_watch_cluster_wait(tx_vm *vm, tx_frag *f, uint32_t site);
void tx_watch_mbar(tx_vm *vm, tx_cta *cta, tx_mbar *b, bool completes);
void tx_watch_mbar_wait(tx_vm *vm, tx_frag *f, const tx_cta *cta, const tx_mbar *b, uint32_t site);
/* engines */
void tx_watch_issue(tx_vm *vm, tx_work *w);
void tx_watch_done(tx_watcher *watch, const tx_work *w);

/* counts.c */
bool tx_counts_new(tx_watcher *w);
void tx_counts_free(tx_watcher *w);
void tx_counts_step(tx_watcher *w, tx_frag *f, const tx_insn *in, uint32_t lanes);
void tx_counts_issue(tx_watcher *w, const tx_work *work);
void tx_counts_wait(tx_watcher *w, uint32_t site, uint64_t steps);
void tx_counts_write(tx_watcher *w);
void tx_watch_text(tx_sb *out, const char *text); /* as a string of JSON */

#endif
