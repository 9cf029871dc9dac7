/* PTX arithmetic and comparisons on floats, one lane each: exact in pairs of float64, then rounded once.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/lanes.h"
#include "emu/ptx_list.h"

#define HAS(t) tx_has_tok(e->k, TK_##t)

static tx_ptx_num
ptx_float_number(double h)
{
    tx_ptx_num r = {h, 0, 0};
    return r;
}

/* ---- exact results ----------------------------------------------------------------------------------------------- */

static tx_ptx_num
ptx_float_sum(double x, double y)
{
    tx_ptx_num r = {x + y, 0, 0};
    double t = r.h - x;
    r.l = (x - (r.h - t)) + (y - t);
    return r;
}

static double
sum_odd(double x, double y)
{
    tx_ptx_num s = ptx_float_sum(x, y);
    uint64_t u = f64_bits(s.h);
    if (s.l != 0 && !(u & 1))
        u += (s.l > 0) == (s.h > 0) ? 1 : (uint64_t)-1;
    return bits_f64(u);
}

static double
special_zero(double x, double y, unsigned rnd) /* x + y = 0 exactly */
{
    bool nx = signbit(x), ny = signbit(y);
    return (nx && ny) || (nx != ny && rnd == RND_RM) ? -0.0 : 0.0;
}

/* a * b + c for finite float64 operands of any size. */
static tx_ptx_num
fma_wide(double a, double b, double c)
{
    int ea, eb, ec = 0, e;
    double fa = frexp(a, &ea), fb = frexp(b, &eb), fc = frexp(c, &ec);
    e = ea + eb;
    if (fc != 0 && ec - e > 120) {
        tx_ptx_num r = {fc, copysign(0x1p-80, fa * fb), ec};
        return r;
    }
    double p = fa * fb, pl = fma(fa, fb, -p);
    if (fc == 0) {
        tx_ptx_num r = {p, pl, e};
        return r;
    }
    fc = e - ec > 240 ? copysign(0x1p-140, fc) : ldexp(fc, ec - e); /* far below: it decides between halves only */
    tx_ptx_num u = ptx_float_sum(fc, pl), v = ptx_float_sum(p, u.h), r;
    r = ptx_float_sum(v.h, sum_odd(u.l, v.l));
    r.e = e;
    return r;
}

static tx_ptx_num
ptx_float_fma_of(unsigned fmt, double a, double b, double c, unsigned rnd)
{
    double r = a * b;
    if (isnan(a) || isnan(b) || isnan(c) || isinf(a) || isinf(b) || isinf(c))
        return ptx_float_number(fmt == FM_F64 || isinf(c) ? fma(a, b, c) : r + c);
    if (a == 0 || b == 0)
        return ptx_float_number(c == 0 ? special_zero(r, c, rnd) : c);
    tx_ptx_num v = fmt == FM_F64 ? fma_wide(a, b, c) : ptx_float_sum(r, c);
    if (v.h == 0)
        v = ptx_float_number(c == 0 ? r : special_zero(r, c, rnd));
    return v;
}

static tx_ptx_num
ptx_float_quotient(double x, double y)
{
    int ex, ey;
    if (x != x || y != y || isinf(x) || isinf(y) || x == 0 || y == 0)
        return ptx_float_number(x / y);
    double fx = frexp(x, &ex), fy = frexp(y, &ey), q = fx / fy, rest = fma(-q, fy, fx);
    tx_ptx_num r = {q, rest == 0 ? 0 : copysign(0x1p-80, rest * fy), ex - ey};
    return r;
}

static tx_ptx_num
ptx_float_root(double x)
{
    int ex;
    if (!(x > 0) || isinf(x))
        return ptx_float_number(x == 0 ? x : x > 0 ? x : (double)NAN);
    double f = frexp(x, &ex);
    if (ex & 1)
        f *= 2, ex--;
    double s = sqrt(f), rest = fma(-s, s, f);
    tx_ptx_num r = {s, rest == 0 ? 0 : copysign(0x1p-80, rest), ex / 2};
    return r;
}

/* ---- operands and results ---------------------------------------------------------------------------------------------- */

static uint64_t
ptx_float_element(const tx_ptx_ty *t, uint64_t v, unsigned i)
{
    return v >> (t->bits * i) & tx_ones(t->bits);
}

static uint64_t
code_of(const tx_ptx_env *e, unsigned arg, const uint64_t *in, unsigned i)
{
    const tx_ptx_ty *t = &e->k->in_t[arg];
    uint64_t c = ptx_float_element(t, in[arg], t->lanes > 1 ? i : 0);
    return HAS(ftz) && t->fmt != FM_F64 ? tx_ptx_flush(t->fmt, c) : c;
}

static double
ptx_float_operand(const tx_ptx_env *e, unsigned arg, const uint64_t *in, unsigned i)
{
    return tx_ptx_decode(e->k->in_t[arg].fmt, code_of(e, arg, in, i));
}

/* What is subnormal before it is rounded is flushed, also where it would be rounded to the least normal number. */
static uint64_t
result(const tx_ptx_env *e, tx_ptx_num v, unsigned rnd)
{
    unsigned fmt = e->k->out_t[0].fmt;
    if (HAS(relu) && v.h <= 0)
        v = ptx_float_number(0);
    uint64_t c = tx_ptx_round(fmt, v, rnd, false, 0, 0);
    if (HAS(ftz) && v.h == v.h && v.h != 0) {
        uint64_t cut = tx_ptx_round(fmt, v, RND_RZ, false, 0, 0), none = tx_ptx_flush(fmt, cut);
        c = none != cut || tx_ptx_decode(fmt, cut) == 0 ? none : c;
    }
    if (HAS(sat)) {
        double r = tx_ptx_decode(fmt, c);
        if (!(r > 0) || r > 1)
            c = tx_ptx_round(fmt, ptx_float_number(r > 1), RND_RN, false, 0, 0);
    }
    return c;
}

static uint64_t
double_nan(const double *x, unsigned n, bool quotient, double r)
{
    static const uint8_t order[][3] = {{0}, {1, 0}, {1, 2, 0}, {0, 1}};
    const uint8_t *at = order[quotient ? 3 : n - 1];
    for (unsigned i = 0; i < n; i++)
        if (x[at[i]] != x[at[i]])
            return f64_bits(x[at[i]]) | 1ull << 51;
    return r != r ? 0xfff8ull << 48 : f64_bits(r);
}

double
tx_ptx_fma_f64(double a, double b, double c)
{
    double x[] = {a, b, c};
    return bits_f64(double_nan(x, 3, false, fma(a, b, c)));
}

/* The same for float64, whose unit hands on the NaN of an operand: of the second, else the third, else the first;
 * a division that of the first. */
static uint64_t
float_result(const tx_ptx_env *e, const uint64_t *in, tx_ptx_num v, unsigned rnd)
{
    double x[3];
    if (e->k->out_t[0].fmt != FM_F64 || v.h == v.h)
        return result(e, v, rnd);
    for (unsigned i = 0; i < e->k->nin && i < 3; i++)
        x[i] = bits_f64(in[i]);
    return double_nan(x, e->k->nin < 3 ? e->k->nin : 3, HAS(div), (double)NAN);
}

static unsigned
lanes_of(const tx_ptx_env *e)
{
    return e->k->out_t[0].lanes;
}

static void
ptx_float_put(const tx_ptx_env *e, uint64_t *out, unsigned i, uint64_t code)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    out[0] = (i ? out[0] : 0) | (code & tx_ones(t->bits)) << (t->bits * i);
}

static void
ptx_float_arith(const tx_ptx_env *e, const uint64_t *in, uint64_t *out)
{
    unsigned rnd = tx_ptx_rnd_of(e->k), fmt = e->k->out_t[0].fmt;
    if (fmt == FM_NONE) {
        tx_ptx_int_arith(e, in, out);
        return;
    }
    for (unsigned i = 0; i < lanes_of(e); i++) {
        double x = ptx_float_operand(e, 0, in, i), y = ptx_float_operand(e, 1, in, i);
        tx_ptx_num v = HAS(mul) ? ptx_float_fma_of(fmt, x, y, signbit(x) != signbit(y) ? -0.0 : 0.0, rnd)
                                : ptx_float_fma_of(fmt, x, 1, HAS(sub) ? -y : y, rnd);
        ptx_float_put(e, out, i, float_result(e, in, v, rnd));
    }
}
TX_PTX_LANE(add)
{
    ptx_float_arith(e, in, out);
}
TX_PTX_LANE(sub)
{
    ptx_float_arith(e, in, out);
}
TX_PTX_LANE(mul)
{
    ptx_float_arith(e, in, out);
}

/* The NaN that a copy engine puts where the tensor ends. */
static bool
is_outside(const tx_ptx_env *e, const uint64_t *in, unsigned i)
{
    for (unsigned a = 0; a < 2; a++)
        if (HAS(oob) && (code_of(e, a, in, i) & 0x7fff) == 0x7ff7)
            return true;
    return false;
}

TX_PTX_LANE(fma)
{
    unsigned rnd = tx_ptx_rnd_of(e->k), fmt = e->k->out_t[0].fmt;
    for (unsigned i = 0; i < lanes_of(e); i++) {
        double x = ptx_float_operand(e, 0, in, i), y = ptx_float_operand(e, 1, in, i),
               z = ptx_float_operand(e, 2, in, i);
        ptx_float_put(e, out, i,
                      is_outside(e, in, i) ? 0 : float_result(e, in, ptx_float_fma_of(fmt, x, y, z, rnd), rnd));
    }
}

TX_PTX_LANE(div)
{
    double x = ptx_float_operand(e, 0, in, 0), y = ptx_float_operand(e, 1, in, 0);
    if (HAS(approx) && fabs(y) > 0x1p126 && !isinf(y) && y == y) /* by the reciprocal, which is flushed there */
        out[0] = result(
            e, isinf(x) || x != x ? ptx_float_number((double)NAN) : ptx_float_number(copysign(0, x) * copysign(1, y)),
            RND_RN);
    else
        out[0] = float_result(e, in, ptx_float_quotient(x, y), tx_ptx_rnd_of(e->k));
}

static uint64_t
choice_of(const tx_ptx_env *e, unsigned fmt, uint64_t x, uint64_t y)
{
    double a = tx_ptx_decode(fmt, x), b = tx_ptx_decode(fmt, y);
    if (a != a || b != b)
        return HAS(NaN) || (a != a && b != b) ? (fmt == FM_F64 ? y | 1ull << 51 : tx_ptx_nan(fmt)) : a != a ? y : x;
    bool less = a < b || (a == b && signbit(a) && !signbit(b));
    return less == HAS(min) ? x : y;
}

TX_PTX_LANE(minmax)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    if (t->fmt == FM_NONE) {
        tx_ptx_int_minmax(e, in, out);
        return;
    }
    uint64_t sign = 1ull << (t->bits - 1);
    for (unsigned i = 0; i < t->lanes; i++) {
        uint64_t c[3], r;
        for (unsigned a = 0; a < e->k->nin; a++)
            c[a] = code_of(e, a, in, i) & ~(HAS(abs) ? sign : 0);
        r = choice_of(e, t->fmt, c[0], c[1]);
        if (e->k->nin > 2)
            r = choice_of(e, t->fmt, r, c[2]);
        if (HAS(xorsign) && !tx_ptx_is_nan(t->fmt, r))
            r |= (code_of(e, 0, in, i) ^ code_of(e, 1, in, i)) & sign;
        ptx_float_put(e, out, i, r);
    }
}

/* ---- one operand ------------------------------------------------------------------------------------------------- */

static uint64_t
approximate_f32(const tx_ptx_env *e, uint32_t x)
{
    double v = (double)bits_f32(x);
    bool ftz = HAS(ftz);
    if (HAS(ex2))
        return tx_approx_ex2(x, ftz);
    if (HAS(rcp))
        return tx_approx_rcp(x, ftz);
    if (HAS(rsqrt))
        return tx_approx_rsqrt(x, ftz);
    if (HAS(sin) || HAS(cos))
        return tx_ptx_round(FM_F32, ptx_float_number(isinf(v) ? (double)NAN : tx_approx_sincos(bits_f32(x), HAS(cos))),
                            RND_RN, false, 0, 0);
    if (HAS(sqrt))
        return result(e, ptx_float_root(v), RND_RN);
    return result(e, ptx_float_number(HAS(lg2) ? log2(v) : tanh(v)), RND_RN);
}

static uint64_t
approximate(const tx_ptx_env *e, unsigned fmt, uint64_t code)
{
    double v = tx_ptx_decode(fmt, code);
    if (fmt == FM_F32)
        return approximate_f32(e, (uint32_t)code);
    if (fmt == FM_F64 && !HAS(ftz)) /* rsqrt, by more than the special function unit */
        return double_nan(&v, 1, false, 1 / sqrt(v));
    if (fmt == FM_F64) { /* only the upper half of the code counts */
        double x = bits_f64(tx_ptx_flush(fmt, code & 0xffffffff00000000ull));
        double r = HAS(rcp) ? 1 / x : x == 0 ? copysign((double)INFINITY, x) : 1 / sqrt(x);
        return r != r ? 0x7fffffffull << 32 : tx_ptx_flush(fmt, f64_bits(r) & 0xffffffff00000000ull);
    }
    return result(e, ptx_float_number(HAS(ex2) ? exp2(v) : tanh(v)), RND_RN);
}

TX_PTX_LANE(unary)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    if (t->fmt == FM_NONE) {
        tx_ptx_int_unary(e, in, out);
        return;
    }
    uint64_t sign = 1ull << (t->bits - 1);
    for (unsigned i = 0; i < t->lanes; i++) {
        uint64_t c = code_of(e, 0, in, i);
        if (tx_ptx_is_nan(t->fmt, c) && (HAS(abs) || HAS(neg))) /* a float64 keeps its sign, too */
            c = t->fmt == FM_F64 ? c | 1ull << 51 : tx_ptx_nan(t->fmt);
        else if (HAS(abs))
            c &= ~sign;
        else if (HAS(neg))
            c ^= sign;
        else if (HAS(approx))
            c = approximate(e, t->fmt, c);
        else {
            double v = tx_ptx_decode(t->fmt, c);
            c = float_result(e, in, HAS(rcp) ? ptx_float_quotient(1, v) : ptx_float_root(v), tx_ptx_rnd_of(e->k));
        }
        ptx_float_put(e, out, i, c);
    }
}

TX_PTX_LANE(copysign)
{
    uint64_t sign = 1ull << (e->k->in_t[0].bits - 1);
    out[0] = (in[0] & sign) | (in[1] & ~sign);
}

TX_PTX_LANE(testp)
{
    unsigned fmt = e->k->in_t[0].fmt;
    double x = tx_ptx_decode(fmt, in[0]);
    bool small = tx_ptx_flush(fmt, in[0]) != in[0];
    out[0] = HAS(finite)       ? isfinite(x)
             : HAS(infinite)   ? isinf(x)
             : HAS(number)     ? x == x
             : HAS(notanumber) ? x != x
             : HAS(normal)     ? isfinite(x) && !small /* zeros are, too */
                               : small;
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

static bool
ptx_float_compare(const tx_ptx_env *e, const uint64_t *in, unsigned i)
{
    if (e->k->in_t[0].fmt == FM_NONE)
        return tx_ptx_int_compare(e, in[0], in[1]);
    double x = ptx_float_operand(e, 0, in, i), y = ptx_float_operand(e, 1, in, i);
    bool unordered = x != x || y != y;
    if (HAS(num) || HAS(nan))
        return unordered == HAS(nan);
    if (unordered)
        return HAS(equ) || HAS(neu) || HAS(ltu) || HAS(leu) || HAS(gtu) || HAS(geu);
    return HAS(eq) || HAS(equ)   ? x == y
           : HAS(ne) || HAS(neu) ? x != y
           : HAS(lt) || HAS(ltu) ? x < y
           : HAS(le) || HAS(leu) ? x <= y
           : HAS(gt) || HAS(gtu) ? x > y
                                 : x >= y;
}

static uint64_t
ptx_float_joined(const tx_ptx_env *e, bool r, uint64_t with)
{
    return HAS(and) ? r & (with != 0) : HAS(or) ? r | (with != 0) : HAS(xor) ? r ^ (with != 0) : r;
}

TX_PTX_LANE(setp)
{
    bool first = ptx_float_compare(e, in, 0), pairs = e->k->in_t[0].lanes > 1;
    out[0] = e->k->nin > 2 ? ptx_float_joined(e, first, in[2]) : first;
    if (e->k->nout > 1)
        out[1] = pairs ? ptx_float_compare(e, in, 1) : !first;
}

TX_PTX_LANE(set)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    for (unsigned i = 0; i < t->lanes; i++) {
        uint64_t yes = t->fmt ? tx_ptx_round(t->fmt, ptx_float_number(1), RND_RN, false, 0, 0) : ~0ull;
        ptx_float_put(e, out, i, ptx_float_compare(e, in, i) ? yes : 0);
    }
}

TX_PTX_LANE(slct)
{
    const tx_ptx_ty *t = &e->k->in_t[2];
    uint64_t c = in[2];
    if (t->cls == 's')
        out[0] = c >> (t->bits - 1) & 1 ? in[1] : in[0];
    else
        out[0] = ptx_float_operand(e, 2, in, 0) >= 0 ? in[0] : in[1];
}
