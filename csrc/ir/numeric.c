/* Exact conversions between the bit patterns of every dtype and C numbers, and the wrapping of integers. One description
 * of a float format serves all of them: sign, exponent and mantissa widths, bias, and what the top codes mean.
 *
 * Rounding is to nearest even. Overflow gives infinity in float16, bfloat16, float32 and float64 and the largest finite
 * value in the formats of 8 bits and less, for infinite inputs too (language.md 8). NaN becomes the format's one canonical
 * NaN, as PTX cvt makes it; formats without NaN give their largest value. float8_e8m0fnu has neither sign nor zero: the
 * sign is dropped, and what lies below 2^-127 becomes that. SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"
#include "ir/fold.h"

#include <math.h>

enum float_top {                   /* what the highest codes are */
                 TOP_IEEE,         /* exponent all ones: infinity, NaN */
                 TOP_NAN_ALL_ONES, /* "fn": all ones is NaN, no infinity */
                 TOP_NAN_NEG_ZERO, /* "fnuz": the code of -0 is the only NaN */
                 TOP_FINITE,       /* "fn" of 6 and 4 bits: every code is a number */
};

typedef struct float_format {
    uint8_t exp_bits, man_bits;
    int16_t bias;
    uint8_t top; /* enum float_top */
    bool is_signed, saturates;
} float_format;

// clang-format off
static const float_format float_formats[TX_KIND__COUNT] = {
    [TX_KIND_F16]         = { 5,  10,   15, TOP_IEEE,         true,  false},
    [TX_KIND_BF16]        = { 8,   7,  127, TOP_IEEE,         true,  false},
    [TX_KIND_F32]         = { 8,  23,  127, TOP_IEEE,         true,  false},
    [TX_KIND_F64]         = {11,  52, 1023, TOP_IEEE,         true,  false},
    [TX_KIND_E3M4]        = { 3,   4,    3, TOP_IEEE,         true,  true},
    [TX_KIND_E4M3]        = { 4,   3,    7, TOP_IEEE,         true,  true},
    [TX_KIND_E4M3B11FNUZ] = { 4,   3,   11, TOP_NAN_NEG_ZERO, true,  true},
    [TX_KIND_E4M3FN]      = { 4,   3,    7, TOP_NAN_ALL_ONES, true,  true},
    [TX_KIND_E4M3FNUZ]    = { 4,   3,    8, TOP_NAN_NEG_ZERO, true,  true},
    [TX_KIND_E5M2]        = { 5,   2,   15, TOP_IEEE,         true,  true},
    [TX_KIND_E5M2FNUZ]    = { 5,   2,   16, TOP_NAN_NEG_ZERO, true,  true},
    [TX_KIND_E8M0FNU]     = { 8,   0,  127, TOP_NAN_ALL_ONES, false, true}, /* no zero, no subnormals */
    [TX_KIND_E2M3FN]      = { 2,   3,    1, TOP_FINITE,       true,  true},
    [TX_KIND_E3M2FN]      = { 3,   2,    3, TOP_FINITE,       true,  true},
    [TX_KIND_E2M1FN]      = { 2,   1,    1, TOP_FINITE,       true,  true},
};
// clang-format on

static unsigned
magnitude_bits(const float_format *f)
{
    return (unsigned)f->exp_bits + f->man_bits;
}

/* Largest code of a finite number, without sign. */
static uint64_t
finite_max(const float_format *f)
{
    uint64_t ones = ((uint64_t)1 << magnitude_bits(f)) - 1;

    switch (f->top) {
    case TOP_IEEE: return ones - ((uint64_t)1 << f->man_bits);
    case TOP_NAN_ALL_ONES: return ones - 1;
    default: return ones;
    }
}

static uint64_t
nan_code(const float_format *f)
{
    uint64_t ones = ((uint64_t)1 << magnitude_bits(f)) - 1;

    return f->top == TOP_NAN_NEG_ZERO ? (uint64_t)1 << magnitude_bits(f) : ones;
}

static bool
is_nan_code(const float_format *f, uint64_t code, bool negative)
{
    switch (f->top) {
    case TOP_IEEE: return code > ((((uint64_t)1 << f->exp_bits) - 1) << f->man_bits);
    case TOP_NAN_ALL_ONES: return code == nan_code(f);
    case TOP_NAN_NEG_ZERO: return negative && code == 0;
    default: return false;
    }
}

static double
decode_float(const float_format *f, uint64_t bits)
{
    bool negative = f->is_signed && (bits >> magnitude_bits(f) & 1);
    uint64_t code = bits & (((uint64_t)1 << magnitude_bits(f)) - 1), man = code & (((uint64_t)1 << f->man_bits) - 1);
    int e = (int)(code >> f->man_bits);
    double v;

    if (is_nan_code(f, code, negative))
        return (double)NAN;
    if (f->top == TOP_IEEE && code > finite_max(f))
        v = (double)INFINITY;
    else if (e == 0 && f->is_signed)
        v = ldexp((double)man, 1 - f->bias - f->man_bits);
    else
        v = ldexp((double)(man | (uint64_t)1 << f->man_bits), e - f->bias - f->man_bits);
    return negative ? -v : v;
}

/* Code of a positive finite number rounded to nearest even, as if exponents had no end: a code above finite_max is
 * overflow. Rounding up carries from the mantissa into the exponent by itself. Without mantissa bits the even neighbour of
 * a tie (1.5) is the one above (2). */
static uint64_t
round_to_code(const float_format *f, double v)
{
    int e, target, shift;
    uint64_t man = (uint64_t)ldexp(frexp(v, &e), 53), rest, half, code; /* v = man * 2^(e - 53), man >= 2^52 */

    e -= 1; /* v = 1.xxx * 2^e */
    target = f->is_signed && e < 1 - f->bias ? 1 - f->bias : e;
    shift = 52 - f->man_bits + target - e;
    if (shift > 62 || target + f->bias < 0)
        return 0;
    rest = man & (((uint64_t)1 << shift) - 1);
    half = (uint64_t)1 << shift >> 1;
    code = ((uint64_t)(target + f->bias) << f->man_bits) - ((uint64_t)1 << f->man_bits) + (man >> shift);
    return code + (rest > half || (rest == half && (code & 1 || f->man_bits == 0)));
}

static uint64_t
encode_float(const float_format *f, double v)
{
    uint64_t sign = f->is_signed && signbit(v) ? (uint64_t)1 << magnitude_bits(f) : 0, code, max = finite_max(f);

    if (isnan(v))
        return f->top == TOP_FINITE ? max : nan_code(f);
    if (isinf(v))
        code = max + 1;
    else if (v == 0)
        code = 0;
    else
        code = round_to_code(f, fabs(v));
    if (code > max)
        code = f->saturates ? max : max + 1;
    if (code == 0 && f->top == TOP_NAN_NEG_ZERO)
        sign = 0;
    return sign | code;
}

/* ---- integers -------------------------------------------------------------------------------------------------- */

int64_t
tx_wrap(tx_dtype t, int64_t v)
{
    unsigned bits = tx_bits(t);

    if (tx_is_bool(t))
        return v != 0;
    if (bits >= 64)
        return v;
    if (tx_is_signed(t))
        return (int64_t)((uint64_t)v << (64 - bits)) >> (64 - bits);
    return (int64_t)((uint64_t)v & (((uint64_t)1 << bits) - 1));
}

bool
tx_int_limits(tx_dtype t, int64_t *lo, uint64_t *hi)
{
    unsigned bits = tx_bits(t) > 64 ? 64 : tx_bits(t);

    if (tx_is_bool(t)) {
        *lo = 0;
        *hi = 1;
        return true;
    }
    if (!tx_is_int(t))
        return false;
    *lo = tx_is_signed(t) ? INT64_MIN >> (64 - bits) : 0;
    *hi = tx_is_signed(t) ? (uint64_t)INT64_MAX >> (64 - bits) : UINT64_MAX >> (64 - bits);
    return true;
}

/* A number as an integer of dtype t: toward zero, to the nearest end, NaN to 0; as tx_wrap gives it. */
int64_t
tx_float_to_int(tx_dtype t, double v)
{
    int64_t lo;
    uint64_t hi;

    if (tx_is_bool(t))
        return v != 0; /* NaN is not zero */
    if (isnan(v) || !tx_int_limits(t, &lo, &hi))
        return 0;
    v = trunc(v);
    if (v <= (double)lo)
        return lo;
    if (v >= (double)hi)
        return (int64_t)hi;
    return v < 0 ? (int64_t)v : (int64_t)(uint64_t)v;
}

/* Integer to double by rounding to odd where it has more than 53 bits, so that a second rounding to 32 bits or less is
 * as good as one from the integer. */
static double
int_to_double_odd(bool negative, uint64_t magnitude)
{
    int drop = 0;
    uint64_t m = magnitude;

    while (m >> 53) {
        m = m >> 1 | (m & 1);
        drop++;
    }
    return ldexp(negative ? -(double)m : (double)m, drop);
}

/* An integer of dtype `from` in float dtype t: rounded once. */
double
tx_int_to_float(tx_dtype t, tx_dtype from, int64_t v)
{
    bool negative = tx_is_signed(from) && v < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)v : (uint64_t)v;

    if (tx_kind(t) == TX_KIND_F64)
        return negative ? -(double)magnitude : (double)magnitude;
    return tx_round_float(t, int_to_double_odd(negative, magnitude));
}

/* ---- public ---------------------------------------------------------------------------------------------------- */

double
tx_decode(tx_dtype t, uint64_t bits)
{
    const float_format *f = &float_formats[tx_kind(t)];
    float f32;
    double f64;
    uint32_t b32 = (uint32_t)bits;

    switch (tx_kind(t)) {
    case TX_KIND_F64: memcpy(&f64, &bits, sizeof f64); return f64;
    case TX_KIND_F32: memcpy(&f32, &b32, sizeof f32); return (double)f32;
    default: break;
    }
    if (f->exp_bits)
        return decode_float(f, bits);
    if (tx_is_signed(t))
        return (double)tx_wrap(t, (int64_t)bits);
    return (double)(uint64_t)tx_wrap(t, (int64_t)bits);
}

uint64_t
tx_encode(tx_dtype t, double value)
{
    const float_format *f = &float_formats[tx_kind(t)];
    float f32 = (float)value;
    uint64_t bits;
    uint32_t b32;

    switch (tx_kind(t)) {
    case TX_KIND_F64: memcpy(&bits, &value, sizeof bits); return bits;
    case TX_KIND_F32: memcpy(&b32, &f32, sizeof b32); return b32;
    default: break;
    }
    if (f->exp_bits)
        return encode_float(f, value);
    bits = (uint64_t)tx_float_to_int(t, value);
    return tx_bits(t) >= 64 ? bits : bits & (((uint64_t)1 << tx_bits(t)) - 1);
}

double
tx_round_float(tx_dtype t, double v)
{
    return tx_kind(t) == TX_KIND_F64 ? v : tx_kind(t) == TX_KIND_F32 ? (double)(float)v : tx_decode(t, tx_encode(t, v));
}

/* The value is a number that dtype t can hold after rounding (infinity and NaN: if it has such codes). */
bool
tx_float_fits(tx_dtype t, double v)
{
    const float_format *f = &float_formats[tx_kind(t)];

    if (isnan(v))
        return f->top != TOP_FINITE;
    if (isinf(v))
        return f->top == TOP_IEEE;
    if (signbit(v) && v != 0 && !f->is_signed)
        return false;
    return v == 0 || tx_kind(t) == TX_KIND_F64 || round_to_code(f, fabs(v)) <= finite_max(f);
}

double
tx_float_max(tx_dtype t)
{
    return tx_decode(t, finite_max(&float_formats[tx_kind(t)]));
}
