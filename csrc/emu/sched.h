/* Private to emu/: what sched.c, barrier.c and frag.c share. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_SCHED_H
#define TX_EMU_SCHED_H

#include "emu/vm.h"

tx_frag *tx_frag_get(tx_vm *vm); /* NULL: out of memory, the run stops */
void tx_frag_put(tx_vm *vm, tx_frag *f);
void tx_frag_free_pool(tx_vm *vm);
void tx_frag_drop_gone(tx_vm *vm, tx_warp *w);
void tx_preset_value(const tx_preset *s, const tx_emu_arg *a, tx_slot *out);

/* barrier.c */
int tx_barrier_left(tx_vm *vm, tx_warp *w); /* lanes of the warp have left */
int tx_barrier_stuck(tx_vm *vm,
                     tx_cta *cta); /* nothing of the CTA can run: a report, or with checks off a partial warp counts */
void tx_barrier_meet(tx_vm *vm, tx_cta *cta, uint32_t which); /* all have met: the CTA's threads go on */

/* sched.c: takes a cluster that has not started from the launch; the coordinates of its first CTA. false: none is left */
bool tx_sched_cancel(tx_vm *vm, uint32_t *first);

#endif
