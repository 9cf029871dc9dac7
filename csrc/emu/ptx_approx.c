/* ex2, rcp, rsqrt, sin and cos as the special function unit approximates them: quadratics of the mantissa with the tables of
 * ptx_approx.def, within one code of the hardware, and its special values exactly. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/lanes.h"
#include "emu/ptx.h"

#define TABLE(name, n, ...) static const int32_t name##_table[n][3] = {__VA_ARGS__};
#include "emu/ptx_approx.def"
#undef TABLE

#define NAN_CODE 0x7fffffffu
#define INF_CODE 0x7f800000u

/* Mantissa of 23 bits; `bits` of it choose the piece. In units of the result's last place. */
static uint32_t
quadratic(const int32_t (*table)[3], unsigned bits, uint32_t mant)
{
    const int32_t *c = table[mant >> (23 - bits)];
    double x = ldexp((double)(mant & (0x7fffffu >> bits)), -(int)(23 - bits));
    return (uint32_t)floor((double)c[0] / 64 + (double)c[1] * x + (double)c[2] * x * x);
}

/* m * 2^e with a 24-bit m, rounded where it is subnormal. */
static uint32_t
ptx_approx_scaled(uint32_t sign, uint32_t m, int e, bool ftz)
{
    tx_ptx_num v = {(double)m, 0, e};
    uint32_t r = (uint32_t)tx_ptx_round(FM_F32, v, RND_RN, false, 0, 0);
    if (ftz && r < 0x00800000u)
        r = 0;
    return r | sign;
}

uint32_t
tx_approx_ex2(uint32_t x, bool ftz)
{
    double v = (double)bits_f32(x);
    if (v != v)
        return NAN_CODE;
    if (v >= 128)
        return INF_CODE;
    if (v <= -150)
        return 0;
    int64_t q = (int64_t)floor(fabs(v) * 0x1p23), w = v >= 0 ? q : (q & 0x7fffff) ? -q - 1 : -q;
    return ptx_approx_scaled(0, quadratic(ex2_table, 6, (uint32_t)(w & 0x7fffff)), (int)(w >> 23) - 23, ftz);
}

/* Exponent and mantissa of a finite number that is not 0: 1.mant * 2^e. */
static int
parts_of(uint32_t x, uint32_t *mant)
{
    uint32_t m = x & 0x7fffff, e = x >> 23 & 0xff;
    if (e) {
        *mant = m;
        return (int)e - 127;
    }
    unsigned up = (unsigned)__builtin_clz(m) - 8;
    *mant = m << up & 0x7fffff;
    return -126 - (int)up;
}

uint32_t
tx_approx_rcp(uint32_t x, bool ftz)
{
    uint32_t sign = x & 0x80000000u, mag = x & 0x7fffffffu, mant;
    if (mag > INF_CODE)
        return NAN_CODE;
    if (mag == INF_CODE)
        return sign;
    if (mag == 0 || (ftz && mag < 0x00800000u))
        return sign | INF_CODE;
    int e = parts_of(mag, &mant);
    if (mant == 0)
        return ptx_approx_scaled(sign, 1, -e, ftz);
    return ptx_approx_scaled(sign, quadratic(rcp_table, 7, mant), -e - 24, ftz);
}

uint32_t
tx_approx_rsqrt(uint32_t x, bool ftz)
{
    uint32_t sign = x & 0x80000000u, mag = x & 0x7fffffffu, mant;
    if (mag > INF_CODE)
        return NAN_CODE;
    if (mag == 0 || (ftz && mag < 0x00800000u))
        return sign | INF_CODE;
    if (sign)
        return NAN_CODE;
    if (mag == INF_CODE)
        return 0;
    int e = parts_of(mag, &mant);
    bool odd = e & 1;
    if (mant == 0 && !odd)
        return ptx_approx_scaled(0, 1, -e / 2, ftz);
    return ptx_approx_scaled(0, quadratic(rsqrt_table + (odd ? 64 : 0), 6, mant), -(e - odd) / 2 - 24, ftz);
}

/* The argument in turns is cut twice: to float32, then to multiples of 2^-25. */
double
tx_approx_sincos(float x, bool cosine)
{
    double turns = (double)x * (double)bits_f32(0x3e22f983u);
    tx_ptx_num v = {turns, 0, 0};
    double r = (double)bits_f32((uint32_t)tx_ptx_round(FM_F32, v, RND_RZ, false, 0, 0));
    r = copysign(floor(fabs(r) * 0x1p25) * 0x1p-25, (double)x);
    r -= rint(r);
    if (cosine)
        return fabs(r) == 0.25 ? 0.0 : cos(r * 6.283185307179586);
    return fabs(r) == 0.5 || r == 0 ? copysign(0.0, (double)x) : sin(r * 6.283185307179586);
}
