/* One dot product as Hopper's tensor cores compute it, found by measurement (intrinsics reference, accumulation): products are exact, all
 * terms are cut toward zero at one place relative to the largest exponent and added as integers, and the sum is cut again.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/dot.h"

enum { CANONICAL_NAN = 0x7fffffff, HALF_NAN = 0x7fff, MOST = 64 };

typedef struct dot_number { /* significand * 2^(exponent - fraction bits) */
    bool neg, nan, inf;
    int exponent;
    uint64_t sig;
} dot_number;

static int
dot_fraction(unsigned fmt)
{
    switch (fmt) {
    case FM_F16: return 10;
    case FM_BF16: return 7;
    case FM_TF32: return 10;
    case FM_E4M3: return 3;
    case FM_E5M2: return 2;
    default: return 23;
    }
}

static dot_number
dot_take(unsigned fmt, uint32_t code)
{
    static const struct {
        uint8_t width, bias;
    } shape[FM__COUNT] = {[FM_F16] = {5, 15}, [FM_BF16] = {8, 127}, [FM_TF32] = {8, 127},
                          [FM_E4M3] = {4, 7}, [FM_E5M2] = {5, 15},  [FM_F32] = {8, 127}};
    int p = dot_fraction(fmt), w = shape[fmt].width, bias = shape[fmt].bias;
    dot_number n = {0};
    if (fmt == FM_TF32)
        code >>= 13;
    uint32_t e = code >> p & ((1u << w) - 1), m = code & ((1u << p) - 1);
    n.neg = code >> (p + w) & 1;
    if (fmt == FM_E4M3)
        n.nan = e == 15 && m == 7;
    else if (e == (1u << w) - 1)
        n.nan = m != 0, n.inf = m == 0;
    n.sig = e ? m | 1u << p : m;
    n.exponent = (e ? (int)e : 1) - bias;
    return n;
}

typedef struct dot_sum {
    dot_number term[MOST + 1];
    int fraction[MOST + 1];
    uint32_t n;
    bool nan, plus, minus; /* an infinity of that sign */
} dot_sum;

static void
dot_add(dot_sum *s, dot_number t, int fraction)
{
    s->nan = s->nan || t.nan;
    if (t.inf) {
        s->plus = s->plus || !t.neg;
        s->minus = s->minus || t.neg;
    } else if (t.sig) {
        s->term[s->n] = t;
        s->fraction[s->n++] = fraction;
    }
}

static void
dot_product(dot_sum *s, unsigned fa, unsigned fb, uint32_t a, uint32_t b)
{
    dot_number x = dot_take(fa, a), y = dot_take(fb, b), r = {0};
    r.neg = x.neg != y.neg;
    r.nan = x.nan || y.nan || (x.inf && !y.inf && !y.sig) || (y.inf && !x.inf && !x.sig);
    r.inf = !r.nan && (x.inf || y.inf);
    r.sig = x.sig * y.sig;
    r.exponent = x.exponent + y.exponent;
    dot_add(s, r, dot_fraction(fa) + dot_fraction(fb));
}

/* The sum, cut to `kept` fraction bits below the largest exponent: *value is exact. false: it is special. */
static bool
dot_close(const dot_sum *s, int kept, double *value)
{
    int most = INT32_MIN;
    int64_t sum = 0;
    *value = 0;
    if (s->nan || (s->plus && s->minus)) {
        *value = (double)NAN;
        return false;
    }
    if (s->plus || s->minus) {
        *value = s->plus ? (double)INFINITY : -(double)INFINITY;
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++)
        most = s->term[i].exponent > most ? s->term[i].exponent : most;
    for (uint32_t i = 0; i < s->n; i++) {
        int shift = kept - s->fraction[i] - (most - s->term[i].exponent);
        uint64_t v = shift >= 0 ? s->term[i].sig << shift : shift > -64 ? s->term[i].sig >> -shift : 0;
        sum += s->term[i].neg ? -(int64_t)v : (int64_t)v;
    }
    *value = s->n ? ldexp((double)sum, most - kept) : 0;
    return true;
}

/* Toward zero to `bits` significant bits, subnormals to multiples of 2^least. */
static uint32_t
dot_cut(double v, int bits, int least)
{
    int e;
    float f;
    uint32_t r;
    if (v == 0)
        return 0;
    frexp(v, &e);
    int unit = e - bits < least ? least : e - bits;
    v = ldexp(trunc(ldexp(v, -unit)), unit);
    if (v == 0)
        return 0;
    if (fabs(v) > 0x1.fffffep127)
        v = v < 0 ? -(double)INFINITY : (double)INFINITY;
    f = (float)v;
    memcpy(&r, &f, 4);
    return r;
}

static uint32_t
dot_result(const dot_sum *s, unsigned c, int kept)
{
    double v;
    float f;
    uint32_t r;
    if (!dot_close(s, kept, &v)) {
        if (v != v)
            return c == FM_F16 ? HALF_NAN : CANONICAL_NAN;
        f = (float)v;
        memcpy(&r, &f, 4);
        return c == FM_F16 ? (v < 0 ? 0xfc00 : 0x7c00) : r;
    }
    if (c == FM_F16) {
        r = (uint32_t)tx_encode(TX_F16, v);
        return r == 0x8000 ? 0 : r;
    }
    return dot_cut(v, kept == 13 ? 14 : 24, kept == 13 ? -139 : -149);
}

static uint32_t
dot_half(unsigned fmt, uint32_t code)
{
    uint32_t bits;
    float f = tx_dot_float(fmt, code);
    memcpy(&bits, &f, 4);
    return (bits & 0x7fffffff) > 0x7f800000 ? HALF_NAN : (uint32_t)tx_encode(TX_F16, (double)f);
}

static uint32_t
dot_plain_add(uint32_t x, uint32_t y)
{
    float a, b;
    uint32_t r;
    memcpy(&a, &x, 4), memcpy(&b, &y, 4);
    a += b;
    memcpy(&r, &a, 4);
    return a != a ? CANONICAL_NAN : r;
}

uint32_t
tx_dot_exact(const tx_dot *m, const uint32_t *a, const uint32_t *b, uint32_t n, uint32_t c)
{
    bool narrow = m->a == FM_E4M3 || m->a == FM_E5M2;
    dot_sum s;
    if (narrow && m->sync) { /* two groups of 16 in f16, then an ordinary addition */
        uint32_t part = 0;
        for (uint32_t odd = 0; odd < 2; odd++) {
            memset(&s, 0, sizeof s);
            for (uint32_t k = 0; k < n; k++)
                if ((k / 2 & 1) == odd)
                    dot_product(&s, FM_F16, FM_F16, dot_half(m->a, a[k]), dot_half(m->b, b[k]));
            if (odd)
                dot_add(&s, dot_take(FM_F32, part), dot_fraction(FM_F32));
            part = dot_result(&s, FM_F32, 25);
        }
        return dot_plain_add(part, c);
    }
    memset(&s, 0, sizeof s);
    for (uint32_t k = 0; k < n && k < MOST; k++)
        dot_product(&s, m->a, m->b, a[k], b[k]);
    dot_add(&s, dot_take(m->c, c), dot_fraction(m->c));
    return dot_result(&s, m->c, narrow ? 13 : 25);
}
