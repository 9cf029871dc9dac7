/* Float formats of PTX: codes to numbers, and one rounding of an exact number to any of them in any direction.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/lanes.h"
#include "emu/ptx.h"

typedef struct round_format {
    uint8_t mant, exp; /* bits */
    int16_t bias;
    uint8_t shift; /* zeros below the code */
    bool inf;      /* has infinities, and NaN above them */
    uint64_t max;  /* code of the largest number, before shift */
    uint64_t nan;  /* after shift; 0: none */
} round_format;
static const round_format formats[FM__COUNT] = {
    [FM_F64] = {52, 11, 1023, 0, true, 0x7fefffffffffffff, 0x7ff8000000000000},
    [FM_F32] = {23, 8, 127, 0, true, 0x7f7fffff, 0x7fffffff},
    [FM_TF32] = {10, 8, 127, 13, true, 0x3fbff, 0x7fffe000},
    [FM_F16] = {10, 5, 15, 0, true, 0x7bff, 0x7fff},
    [FM_BF16] = {7, 8, 127, 0, true, 0x7f7f, 0x7fff},
    [FM_E4M3] = {3, 4, 7, 0, false, 0x7e, 0x7f},
    [FM_E5M2] = {2, 5, 15, 0, true, 0x7b, 0x7f},
    [FM_E2M3] = {3, 2, 1, 0, false, 0x1f, 0},
    [FM_E3M2] = {2, 3, 3, 0, false, 0x1f, 0},
    [FM_E2M1] = {1, 2, 1, 0, false, 0x7, 0},
};

static unsigned
width(const round_format *f)
{
    return f->mant + f->exp;
}

uint64_t
tx_ptx_nan(unsigned fmt)
{
    return fmt == FM_UE8M0 ? 0xff : formats[fmt].nan;
}

bool
tx_ptx_is_nan(unsigned fmt, uint64_t code)
{
    const round_format *f = &formats[fmt];
    uint64_t mag = code >> f->shift & tx_ones(width(f));
    if (fmt == FM_UE8M0)
        return code == 0xff;
    return f->nan && mag > f->max + (f->inf ? 1 : 0);
}

double
tx_ptx_decode(unsigned fmt, uint64_t code)
{
    const round_format *f = &formats[fmt];
    uint64_t c = code >> f->shift, m = c & tx_ones(f->mant), e = c >> f->mant & tx_ones(f->exp);
    double v;
    switch (fmt) {
    case FM_F64: return bits_f64(code);
    case FM_TF32:
    case FM_F32: return (double)bits_f32((uint32_t)code);
    case FM_BF16: return (double)bf16_f32((uint32_t)code & 0xffff);
    case FM_UE8M0: return code == 0xff ? (double)NAN : ldexp(1, (int)code - 127);
    case FM_S2F6: return ldexp((double)(int8_t)code, -6);
    default: break;
    }
    if (tx_ptx_is_nan(fmt, code))
        return (double)NAN;
    if (f->inf && (c & tx_ones(width(f))) > f->max)
        v = (double)INFINITY;
    else
        v = e ? ldexp((double)(m | 1ull << f->mant), (int)e - f->bias - f->mant)
              : ldexp((double)m, 1 - f->bias - f->mant);
    return c >> width(f) & 1 ? -v : v;
}

uint64_t
tx_ptx_flush(unsigned fmt, uint64_t code)
{
    const round_format *f = &formats[fmt];
    uint64_t sign = 1ull << width(f) << f->shift;
    return (code >> f->shift >> f->mant & tx_ones(f->exp)) == 0 ? code & sign : code;
}

static uint64_t
overflow(const round_format *f, bool neg, unsigned rnd, bool satfinite)
{
    bool away = rnd == RND_RN || rnd == RND_RNA || (rnd == RND_RM && neg) || (rnd == RND_RP && !neg);
    return f->inf && !satfinite && away ? f->max + 1 : f->max;
}

/* Does m, cut behind `shift` bits, go up to the next unit? */
static bool
goes_up(uint64_t kept, uint64_t rest, unsigned shift, bool neg, unsigned rnd)
{
    uint64_t half = 1ull << (shift - 1);
    switch (rnd) {
    case RND_RN: return rest > half || (rest == half && (kept & 1));
    case RND_RNA: return rest >= half;
    case RND_RM: return neg && rest;
    case RND_RP: return !neg && rest;
    default: return false;
    }
}

/* m * 2^e, m not 0; its lowest bit may stand for anything further below. */
static uint64_t
pack(unsigned fmt, bool neg, uint64_t m, int e, unsigned rnd, bool satfinite, uint32_t rand, unsigned nrand)
{
    const round_format *f = &formats[fmt];
    int top = e + 63 - __builtin_clzll(m), least = 1 - f->bias;
    int biased = top > least ? top : least, shift = biased - f->mant - e;
    uint64_t kept, code;

    if (shift > 63)
        m = m != 0, shift = 3; /* far below half of the least step */
    if (shift <= 0)
        kept = m << -shift;
    else {
        uint64_t rest = m & tx_ones((unsigned)shift);
        kept = m >> shift;
        if (!nrand)
            kept += goes_up(kept, rest, (unsigned)shift, neg, rnd);
        else {
            uint64_t high = shift >= (int)nrand ? rest >> (shift - (int)nrand) : rest << ((int)nrand - shift);
            kept += (high + rand) >> nrand;
        }
    }
    code = ((uint64_t)(biased + f->bias - 1) << f->mant) + kept;
    if (code > f->max)
        code = overflow(f, neg, nrand ? RND_RN : rnd, satfinite);
    return (code | (uint64_t)neg << width(f)) << f->shift;
}

/* A power of two, up or toward zero; below the least one: the least. */
static uint64_t
pack_ue8m0(double v, unsigned rnd, bool satfinite)
{
    int e;
    double m = frexp(fabs(v), &e); /* [0.5, 1) */
    if (v == 0)
        return 0;
    e += 126 + (rnd == RND_RP && m > 0.5);
    return e < 0 ? 0 : e > 254 ? satfinite || rnd == RND_RZ ? 254 : 255 : (uint64_t)e;
}

static uint64_t
pack_s2f6(double v)
{
    double r = rint(ldexp(v, 6));
    return (uint64_t)(uint8_t)(int8_t)(r > 127 ? 127 : r < -128 ? -128 : r);
}

uint64_t
tx_ptx_round(unsigned fmt, tx_ptx_num v, unsigned rnd, bool satfinite, uint32_t rand, unsigned nrand)
{
    const round_format *f = &formats[fmt];
    bool neg = signbit(v.h);
    uint64_t sign = (uint64_t)neg << width(f) << f->shift, m;
    int e;

    if (v.h != v.h)
        return fmt == FM_S2F6 ? 0 : tx_ptx_nan(fmt);
    if (fmt == FM_UE8M0)
        return isinf(v.h) ? satfinite ? 254 : 255 : pack_ue8m0(v.h, rnd, satfinite);
    if (fmt == FM_S2F6)
        return pack_s2f6(v.h);
    if (isinf(v.h))
        return ((f->inf && !satfinite ? f->max + 1 : f->max) << f->shift) | sign;
    if (v.h == 0)
        return sign;
    m = (uint64_t)ldexp(frexp(fabs(v.h), &e), 53) << 2;
    if (v.l != 0)
        m = (v.l > 0) == (v.h > 0) ? m | 1 : m - 1;
    return pack(fmt, neg, m, e - 55 + v.e, rnd, satfinite, rand, nrand);
}

uint64_t
tx_ptx_round_int(unsigned fmt, bool neg, uint64_t m, unsigned rnd)
{
    return m ? pack(fmt, neg, m, 0, rnd, false, 0, 0) : 0;
}

enum tx_ptx_rnd
tx_ptx_rnd_of(const tx_ptx_op *k)
{
    return tx_has_tok(k, TK_rz) || tx_has_tok(k, TK_rzi)   ? RND_RZ
           : tx_has_tok(k, TK_rm) || tx_has_tok(k, TK_rmi) ? RND_RM
           : tx_has_tok(k, TK_rp) || tx_has_tok(k, TK_rpi) ? RND_RP
           : tx_has_tok(k, TK_rna)                         ? RND_RNA
                                                           : RND_RN;
}
