/* Mathematical functions that are not worth a vector loop: float32 ones are computed in float64 and rounded once.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/vm.h"

static double
maths_one(unsigned op, double x)
{
    switch (op) {
    case TX_OP_EXP: return exp(x);
    case TX_OP_EXP2: return exp2(x);
    case TX_OP_EXP10: return pow(10.0, x);
    case TX_OP_LOG: return log(x);
    case TX_OP_LOG2: return log2(x);
    case TX_OP_LOG10: return log10(x);
    case TX_OP_LOG1P: return log1p(x);
    case TX_OP_SQRT: return sqrt(x);
    case TX_OP_RSQRT: return 1.0 / sqrt(x);
    case TX_OP_SIN: return sin(x);
    case TX_OP_COS: return cos(x);
    case TX_OP_TAN: return tan(x);
    case TX_OP_ASIN: return asin(x);
    case TX_OP_ACOS: return acos(x);
    case TX_OP_ATAN: return atan(x);
    case TX_OP_SINH: return sinh(x);
    case TX_OP_COSH: return cosh(x);
    case TX_OP_TANH: return tanh(x);
    case TX_OP_ASINH: return asinh(x);
    case TX_OP_ACOSH: return acosh(x);
    case TX_OP_ATANH: return atanh(x);
    case TX_OP_ERF: return erf(x);
    case TX_OP_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case TX_OP_FLOOR: return floor(x);
    case TX_OP_CEIL: return ceil(x);
    case TX_OP_ROUND: return rint(x);
    case TX_OP_TRUNC: return trunc(x);
    default: return x;
    }
}

/* Own, because the C library's has a newer symbol version than the wheel may ask for. */
static double
hypotenuse(double x, double y)
{
    int e;
    x = fabs(x), y = fabs(y);
    if (isinf(x) || isinf(y))
        return (double)INFINITY;
    if (x < y) {
        double t = x;
        x = y, y = t;
    }
    if (x == 0 || x != x || y != y)
        return x + y;
    frexp(x, &e); /* neither overflow nor loss: the larger one is brought near 1 */
    x = ldexp(x, -e), y = ldexp(y, -e);
    return ldexp(sqrt(x * x + y * y), e);
}

static double
two(unsigned op, double x, double y)
{
    switch (op) {
    case TX_OP_ATAN2: return atan2(x, y);
    case TX_OP_POW: return x == 1 || y == 0 ? 1 : pow(x, y); /* also of signalling NaNs, as CUDA has it */
    case TX_OP_FMOD: return fmod(x, y);
    case TX_OP_HYPOT: return hypotenuse(x, y);
    case TX_OP_LDEXP: return y != y ? x : ldexp(x, y > 1 << 20 ? 1 << 20 : y < -(1 << 20) ? -(1 << 20) : (int)y);
    case TX_OP_COPYSIGN: return copysign(x, y);
    case TX_OP_NEXTAFTER: return nextafter(x, y);
    default: return x;
    }
}

void
tx_math1_f32(unsigned op, float *d, const float *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        d[i] = (float)maths_one(op, (double)a[i]);
}

void
tx_math1_f64(unsigned op, double *d, const double *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        d[i] = maths_one(op, a[i]);
}

void
tx_math2_f32(unsigned op, float *d, const float *a, const float *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        d[i] = op == TX_OP_NEXTAFTER ? nextafterf(a[i], b[i]) : (float)two(op, (double)a[i], (double)b[i]);
}

void
tx_math2_f64(unsigned op, double *d, const double *a, const double *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        d[i] = two(op, a[i], b[i]);
}

/* x + y rounded to odd: exact, or the neighbour whose last bit is set. A later rounding to fewer bits is then the only one. */
static double
add_odd(double x, double y)
{
    double s = x + y, t = s - x, err = (x - (s - t)) + (y - t);
    uint64_t u;
    if (err == 0 || s != s || isinf(s))
        return s;
    memcpy(&u, &s, 8);
    if (!(u & 1))
        u += (err > 0) == (s > 0) ? 1 : (uint64_t)-1;
    memcpy(&s, &u, 8);
    return s;
}

uint32_t
tx_fma_code(unsigned kind, uint32_t a, uint32_t b, uint32_t c)
{
    tx_dtype t = TX_DTYPE(kind, 1);
    double x = tx_decode(t, a) * tx_decode(t, b); /* exact */
    double r = add_odd(x, tx_decode(t, c));
    return (uint32_t)tx_encode(t, r);
}

double
tx_round_odd_f64(int64_t v, bool is_unsigned)
{
    bool negative = !is_unsigned && v < 0;
    uint64_t u = negative ? 0 - (uint64_t)v : (uint64_t)v;
    double r = add_odd((double)(u & ~0xffffffffull), (double)(u & 0xffffffffull));
    return negative ? -r : r;
}
