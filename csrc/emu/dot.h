/* Private to emu/: products of matrices. The blocked fp32 kernels are in run_impl.h, once for each instruction set; dot.c has the decoding of
 * narrow formats and the bit-exact model of Hopper's tensor cores (numerics="hardware"). SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_DOT_H
#define TX_EMU_DOT_H

#include "emu/ptx.h"

/* How an instruction adds up. */
typedef struct tx_dot {
    uint8_t a, b, c; /* formats: enum tx_ptx_format; c: FM_F32 or FM_F16 */
    bool sync;       /* mma.sync, not wgmma: fp8 goes through f16 in two groups */
} tx_dot;
/* Bits of one element of d = sum a[k] * b[k] + c, as an H200 gives them. */
uint32_t tx_dot_exact(const tx_dot *m, const uint32_t *a, const uint32_t *b, uint32_t n, uint32_t c);

static inline float
tx_dot_float(unsigned fmt, uint32_t code)
{
    uint32_t bits, e, m;
    float f;
    switch (fmt) {
    case FM_BF16: bits = code << 16; break;
    case FM_TF32: bits = code & 0xffffe000u; break;
    case FM_F16:
        bits = (code & 0x7fff) << 13;
        memcpy(&f, &bits, 4);
        f *= 0x1p112f;
        memcpy(&e, &f, 4);
        bits = (code & 0x8000) << 16 | ((code & 0x7c00) == 0x7c00 ? 0x7f800000u | (code & 0x3ff) << 13 : e);
        break;
    case FM_E4M3:
        e = code >> 3 & 15, m = code & 7;
        f = (float)m * 0x1p-9f;
        memcpy(&bits, &f, 4);
        bits = (e == 15 && m == 7 ? 0x7fffffffu : e ? (e + 120) << 23 | m << 20 : bits) | (code & 0x80) << 24;
        break;
    case FM_E5M2: return tx_dot_float(FM_F16, code << 8);
    default: bits = code; break;
    }
    memcpy(&f, &bits, 4);
    return f;
}

#endif
