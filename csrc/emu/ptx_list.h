/* Private to emu/ptx*.c: declares what the `emu` column of ptx.def names, so that a row without an emulator does not link.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_PTX_LIST_H
#define TX_EMU_PTX_LIST_H

#include "emu/ptx.h"

#define PTX(opcode, operands, flags, sm, emu, rules) extern const tx_ptx_emu tx_emu_ptx_##emu;
#include "ir/ptx.def"
#undef PTX

#define TX_PTX_LANE(n)                                                            \
    static void lane_##n(const tx_ptx_env *e, const uint64_t *in, uint64_t *out); \
    const tx_ptx_emu tx_emu_ptx_##n = {#n, PH_LANE, lane_##n, NULL, NULL};        \
    static void lane_##n(const tx_ptx_env *e, const uint64_t *in, uint64_t *out)
#define TX_PTX_WARP(n)                                                                                            \
    static int warp_##n(const tx_ptx_op *k, uint32_t there, uint64_t (*in)[TX_LANES], uint64_t (*out)[TX_LANES]); \
    const tx_ptx_emu tx_emu_ptx_##n = {#n, PH_WARP, NULL, warp_##n, NULL};                                        \
    static int warp_##n(const tx_ptx_op *k, uint32_t there, uint64_t (*in)[TX_LANES], uint64_t (*out)[TX_LANES])
/* a: the instruction, its operands, the part of a warp that executes it */
#define TX_PTX_AGENT(n)                                                      \
    static int agent_##n(const struct tx_act *a);                            \
    const tx_ptx_emu tx_emu_ptx_##n = {#n, PH_AGENT, NULL, NULL, agent_##n}; \
    static int agent_##n(const struct tx_act *a)
/* The same, of matrices in registers: nothing of it is asynchronous. */
#define TX_PTX_MATRIX(n)                                                      \
    static int agent_##n(const struct tx_act *a);                             \
    const tx_ptx_emu tx_emu_ptx_##n = {#n, PH_MATRIX, NULL, NULL, agent_##n}; \
    static int agent_##n(const struct tx_act *a)
#define TX_PTX_ROW(n, how) const tx_ptx_emu tx_emu_ptx_##n = {#n, how, NULL, NULL, NULL};

/* Families that have integer and float rows under one name. */
void tx_ptx_int_arith(const tx_ptx_env *e, const uint64_t *in, uint64_t *out);
void tx_ptx_int_minmax(const tx_ptx_env *e, const uint64_t *in, uint64_t *out);
void tx_ptx_int_unary(const tx_ptx_env *e, const uint64_t *in, uint64_t *out);
bool tx_ptx_int_compare(const tx_ptx_env *e, uint64_t x, uint64_t y);

#endif
