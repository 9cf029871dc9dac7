/* Small pieces of the hot loops, compiled once for each instruction set: loops over 32 lanes without branches, that the
 * compiler turns into vector code. Only run_impl.h includes this. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_LANES_H
#define TX_EMU_LANES_H

#include <math.h>

#include "emu/vm.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmisleading-indentation" /* of the loops that EACH opens */
#define EACH _Pragma("GCC ivdep") for (int l = 0; l < TX_LANES; l++)
#else
#define EACH for (int l = 0; l < TX_LANES; l++)
#endif

static const uint32_t lane_bit[TX_LANES] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

/* One bit a lane from 0 and -1. */
static inline uint32_t
mask_of(const int32_t *t)
{
#if defined(__AVX512DQ__)
    return (uint32_t)_mm512_movepi32_mask(_mm512_loadu_si512(t)) |
           (uint32_t)_mm512_movepi32_mask(_mm512_loadu_si512(t + 16)) << 16;
#elif defined(__AVX2__)
    uint32_t r = 0;
    for (int i = 0; i < 4; i++)
        r |= (uint32_t)_mm256_movemask_ps(_mm256_loadu_ps((const float *)(const void *)(t + 8 * i))) << (8 * i);
    return r;
#elif defined(__SSE2__)
    uint32_t r = 0;
    for (int i = 0; i < 8; i++)
        r |= (uint32_t)_mm_movemask_ps(_mm_loadu_ps((const float *)(const void *)(t + 4 * i))) << (4 * i);
    return r;
#else
    uint32_t r = 0;
    for (int l = 0; l < TX_LANES; l++)
        r |= (uint32_t)(t[l] & 1) << l;
    return r;
#endif
}

static inline float
bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
static inline uint32_t
f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
static inline double
bits_f64(uint64_t u)
{
    double f;
    memcpy(&f, &u, 8);
    return f;
}
static inline uint64_t
f64_bits(double f)
{
    uint64_t u;
    memcpy(&u, &f, 8);
    return u;
}

/* float16 code to float32, exact: the exponent is moved by a multiplication, which also normalises subnormals */
static inline float
f16_f32(uint32_t h)
{
    uint32_t em = (h & 0x7fff) << 13, sign = (h & 0x8000) << 16;
    uint32_t finite = f32_bits(bits_f32(em) * bits_f32(0x77800000u));
    return bits_f32(sign | (em >= 0x0f800000u ? em | 0x7f800000u : finite));
}
/* to nearest even; NaN becomes 0x7fff (measured on an H200) */
static inline uint32_t
f32_f16(float f)
{
    uint32_t b = f32_bits(f), x = b & 0x7fffffffu, sign = b >> 16 & 0x8000;
    uint32_t normal = (x + 0xfffu + (x >> 13 & 1) - 0x38000000u) >> 13;
    uint32_t small = f32_bits(bits_f32(x < 0x38800000u ? x : 0) + 0.5f) - 0x3f000000u;
    uint32_t r = x < 0x38800000u ? small : normal;
    r = x >= 0x477ff000u ? 0x7c00u : r;
    return x > 0x7f800000u ? 0x7fffu : r | sign;
}
static inline float
bf16_f32(uint32_t h)
{
    return bits_f32(h << 16);
}
static inline uint32_t
f32_bf16(float f)
{
    uint32_t b = f32_bits(f);
    uint32_t r = (b + 0x7fffu + (b >> 16 & 1)) >> 16;
    return (b & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : r;
}

/* e^x for float32, in float64: 2^n times a polynomial on |r| <= ln2/2 whose error is below 1e-12 */
static inline float
exp_scaled(double r, double n_shifted, bool nan, float x)
{
    double p = 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    float e = (float)bits_f64(f64_bits(p) + (f64_bits(n_shifted) << 52));
    return nan ? x : e;
}
#define ROUND_SHIFT 0x1.8p52 /* adding it leaves the nearest integer in the low bits */
static inline float
exp_f32(float x)
{
    double v = (double)x;
    v = v < -110.0 ? -110.0 : v;
    v = v > 90.0 ? 90.0 : v;
    double n = v * 0x1.71547652b82fep0 + ROUND_SHIFT;
    double r = v - (n - ROUND_SHIFT) * 0x1.62e42fefa39efp-1;
    return exp_scaled(r, n, x != x, x);
}
static inline float
exp2_f32(float x)
{
    double v = (double)x;
    v = v < -160.0 ? -160.0 : v;
    v = v > 130.0 ? 130.0 : v;
    double n = v + ROUND_SHIFT;
    return exp_scaled((v - (n - ROUND_SHIFT)) * 0x1.62e42fefa39efp-1, n, x != x, x);
}

/* integers: quotients as PTX gives them for a divisor of zero; INT_MIN / -1 wraps */
static inline int32_t
div_i32(int32_t x, int32_t y)
{
    return y == 0 ? -1 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y;
}
static inline int32_t
mod_i32(int32_t x, int32_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}
static inline int32_t
fld_i32(int32_t x, int32_t y)
{
    int32_t q = div_i32(x, y), r = mod_i32(x, y);
    return y != 0 && r != 0 && (r ^ y) < 0 ? q - 1 : q;
}
static inline int32_t
flm_i32(int32_t x, int32_t y)
{
    int32_t r = mod_i32(x, y);
    return y != 0 && r != 0 && (r ^ y) < 0 ? r + y : r;
}
static inline int64_t
div_i64(int64_t x, int64_t y)
{
    return y == 0 ? -1 : y == -1 ? (int64_t)(0ull - (uint64_t)x) : x / y;
}
static inline int64_t
mod_i64(int64_t x, int64_t y)
{
    return y == 0 ? x : y == -1 ? 0 : x % y;
}
static inline int64_t
fld_i64(int64_t x, int64_t y)
{
    int64_t q = div_i64(x, y), r = mod_i64(x, y);
    return y != 0 && r != 0 && (r ^ y) < 0 ? q - 1 : q;
}
static inline int64_t
flm_i64(int64_t x, int64_t y)
{
    int64_t r = mod_i64(x, y);
    return y != 0 && r != 0 && (r ^ y) < 0 ? r + y : r;
}

/* floats to integers: toward zero, to the nearest end of the type, NaN to 0 */
static inline void
int_range(unsigned kind, double *lo, double *hi)
{
    switch (kind) {
    case TX_KIND_I8: *lo = -128, *hi = 127; return;
    case TX_KIND_U8: *lo = 0, *hi = 255; return;
    case TX_KIND_I16: *lo = -32768, *hi = 32767; return;
    case TX_KIND_U16: *lo = 0, *hi = 65535; return;
    case TX_KIND_U32: *lo = 0, *hi = 4294967295.0; return;
    default: *lo = -2147483648.0, *hi = 2147483647.0; return;
    }
}
static inline double
clamp_f64(double x, double lo, double hi)
{
    x = x != x ? 0 : x;
    x = x < lo ? lo : x;
    return x > hi ? hi : x;
}
static inline uint64_t
f64_i64(double x, bool is_unsigned)
{
    if (x != x)
        return 0;
    if (is_unsigned)
        return x <= 0 ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
    return (uint64_t)(x <= -0x1p63 ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : (int64_t)x);
}

#endif
