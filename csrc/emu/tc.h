/* Private to emu/tc_*.c: works of the fifth-generation matrix unit. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_TC_H
#define TX_EMU_TC_H

#include "emu/tmem.h"

/* A shared-memory matrix descriptor (PTX ISA, tcgen05 matrix descriptor), taken apart. */
typedef struct tc_desc {
    uint32_t start, lbo, sbo;         /* bytes of the shared window */
    uint8_t base, width, shift, mask; /* width of the swizzle, 0 none; bits that are exchanged */
    bool bad;
} tc_desc;
tc_desc tx_tc_desc(uint64_t d);
bool tx_tc_desc_ok(const tx_act *a, uint32_t lane, const tc_desc *d, const char *which); /* false: reported */
/* Window address of row (M or N index) r: K-major by byte of the row, MN-major by k and element size. */
uint32_t tx_tc_address(const tc_desc *d, bool mn_major, uint32_t r, uint32_t byte, uint32_t k, uint32_t es);

/* The 16-byte units of shared memory that an operand touches. */
enum { TC_CHUNK_WORDS = 256 };
typedef struct tc_chunks {
    uint64_t bit[TC_CHUNK_WORDS];
} tc_chunks;
bool tx_tc_chunks(const tx_act *a, uint32_t lane, tc_chunks *c, tx_cta *cta, uint32_t address); /* false: reported */
uint32_t tx_tc_spans(const tc_chunks *c, tx_cta *cta, tx_span_of *s); /* s NULL: only counts */

/* 16 bytes of shared memory as 16 elements: of 4 bits and padding, of 6 and padding, or bytes. */
void tx_unpack_16(bool b4, bool b6, const uint8_t *from, uint8_t *to);

/* The CTAs that an instruction works for: its own, or both of the pair, the even one first. false: reported. */
bool tx_tc_ctas(const tx_act *a, uint32_t lane, tx_cta **cta, uint32_t *n);
/* A work whose data begins with a tmem_work; its shared sources are added by the caller. */
tx_work *tx_tc_new(const tx_act *a, uint32_t lane, uint32_t nspans, const void *data, size_t size);
bool tx_tc_issue(const tx_act *a, uint32_t lane, tx_work *w); /* takes it over; false: reported */
bool tx_tc_finish(tx_vm *vm, tx_cta *cta, const tx_work *commit);
static inline void
tx_tmem_put(tx_tmem *t, uint32_t column, uint32_t lane, uint32_t v)
{
    t->cell[column][lane] = v;
    t->written[column][lane / 8] |= (uint8_t)(1 << lane % 8);
}

#endif
