/* Constant folding and the identities that are always safe. Integers are computed exactly and wrapped to the dtype; floats
 * are computed in double and rounded once, which for + - * / of 32-bit and smaller formats is the dtype's own result.
 *
 * Rules for editors: a rule keeps the dtype; gives an operand or something smaller; never drops an impure operand that
 * would have been evaluated; and folds no float that NaN, infinity or -0 could tell apart. Vectors and 128-bit integers
 * are left alone. SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"

#include <math.h>

/* Nothing found: the caller makes the node. */
#define NOT_FOLDED ((const tx_node *)NULL)

static bool
is_pure(const tx_node *n)
{
    return !(n->flags & TX_NF_IMPURE);
}

static bool
is_num(const tx_node *n)
{
    return n->op == TX_OP_INT || n->op == TX_OP_FLOAT;
}

/* ---- values of integer operations ------------------------------------------------------------------------------ */

static int64_t
fold_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static int64_t
ceil_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b != 0 && (a < 0) == (b < 0) ? q + 1 : q;
}

static bool
signed_division(unsigned op, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return false;
    if (b == -1) { /* INT64_MIN / -1 does not exist in C: negate, with wrap */
        *out = op == TX_OP_MOD || op == TX_OP_FLOORMOD ? 0 : (int64_t)(0 - (uint64_t)a);
        return true;
    }
    switch (op) {
    case TX_OP_DIV: *out = a / b; break;
    case TX_OP_MOD: *out = a % b; break;
    case TX_OP_FLOORDIV: *out = fold_floor_div(a, b); break;
    case TX_OP_FLOORMOD: *out = a - b * fold_floor_div(a, b); break;
    case TX_OP_CEILDIV: *out = ceil_div(a, b); break;
    default: return false;
    }
    return true;
}

static bool
unsigned_division(unsigned op, uint64_t a, uint64_t b, int64_t *out)
{
    if (b == 0)
        return false;
    switch (op) {
    case TX_OP_DIV:
    case TX_OP_FLOORDIV: *out = (int64_t)(a / b); break;
    case TX_OP_MOD:
    case TX_OP_FLOORMOD: *out = (int64_t)(a % b); break;
    case TX_OP_CEILDIV: *out = (int64_t)(a / b + (a % b != 0)); break;
    default: return false;
    }
    return true;
}

/* a op b in dtype t; false where it has no value. */
static bool
fold_int_binary(unsigned op, tx_dtype t, int64_t a, int64_t b, int64_t *out)
{
    bool is_signed = tx_is_signed(t), a_less = is_signed ? a < b : (uint64_t)a < (uint64_t)b;
    uint64_t x = (uint64_t)a, y = (uint64_t)b, v = 0;

    switch (op) {
    case TX_OP_ADD: v = x + y; break;
    case TX_OP_SUB: v = x - y; break;
    case TX_OP_MUL: v = x * y; break;
    case TX_OP_BAND: v = x & y; break;
    case TX_OP_BOR: v = x | y; break;
    case TX_OP_BXOR: v = x ^ y; break;
    case TX_OP_MIN: v = a_less ? x : y; break;
    case TX_OP_MAX: v = a_less ? y : x; break;
    case TX_OP_SHL:
    case TX_OP_SHR:
        if (y >= tx_bits(t))
            return false;
        v = op == TX_OP_SHL ? x << y : is_signed ? (uint64_t)(a >> y) : x >> y;
        break;
    default:
        if (!(is_signed ? signed_division(op, a, b, (int64_t *)&v) : unsigned_division(op, x, y, (int64_t *)&v)))
            return false;
        break;
    }
    *out = tx_wrap(t, (int64_t)v);
    return true;
}

static bool
fold_compare(unsigned op, bool less, bool equal)
{
    switch (op) {
    case TX_OP_EQ: return equal;
    case TX_OP_NE: return !equal;
    case TX_OP_LT: return less;
    case TX_OP_GE: return !less;
    case TX_OP_GT: return !less && !equal;
    default: return less || equal;
    }
}

static const tx_node *
int_unary(tx_ctx *c, unsigned op, tx_dtype t, int64_t v)
{
    uint64_t bits = tx_bits(t) >= 64 ? (uint64_t)v : (uint64_t)v & (((uint64_t)1 << tx_bits(t)) - 1);

    switch (op) {
    case TX_OP_NEG: return tx_int(c, t, (int64_t)(0 - (uint64_t)v));
    case TX_OP_BNOT: return tx_int(c, t, ~v);
    case TX_OP_ABS: return tx_int(c, t, tx_is_signed(t) && v < 0 ? (int64_t)(0 - (uint64_t)v) : v);
    case TX_OP_POPCOUNT: return tx_int(c, t, __builtin_popcountll(bits));
    case TX_OP_CLZ: return tx_int(c, t, bits ? __builtin_clzll(bits) - 64 + (int)tx_bits(t) : (int)tx_bits(t));
    default: return NOT_FOLDED;
    }
}

/* ---- values of float operations -------------------------------------------------------------------------------- */

/* The NaN operand loses; -0 is less than +0 (PTX min, max). */
static double
float_min(double a, double b, bool max)
{
    if (isnan(a))
        return b;
    if (isnan(b))
        return a;
    if (a == b)
        return (signbit(a) != 0) == !max ? a : b;
    return (a < b) == !max ? a : b;
}

static const tx_node *
fold_float_binary(tx_ctx *c, unsigned op, tx_dtype t, double a, double b)
{
    double v;

    switch (op) {
    case TX_OP_ADD: v = a + b; break;
    case TX_OP_SUB: v = a - b; break;
    case TX_OP_MUL: v = a * b; break;
    case TX_OP_DIV: v = a / b; break;
    case TX_OP_MIN: v = float_min(a, b, false); break;
    case TX_OP_MAX: v = float_min(a, b, true); break;
    default: return NOT_FOLDED;
    }
    return isnan(v) ? NOT_FOLDED : tx_float(c, t, v); /* which NaN is the machine's business */
}

/* ---- identities ------------------------------------------------------------------------------------------------ */

/* x op k */
static const tx_node *
identity_right(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *x, int64_t k)
{
    switch (op) {
    case TX_OP_ADD:  /* x + 0 -> x */
    case TX_OP_SUB:  /* x - 0 -> x */
    case TX_OP_BOR:  /* x | 0 -> x */
    case TX_OP_BXOR: /* x ^ 0 -> x */
    case TX_OP_SHL:  /* x << 0 -> x */
    case TX_OP_SHR: /* x >> 0 -> x */ return k == 0 ? x : NOT_FOLDED;
    case TX_OP_MUL: /* x * 1 -> x, x * 0 -> 0 */
        return k == 1 ? x : k == 0 && is_pure(x) ? tx_int(c, t, 0) : NOT_FOLDED;
    case TX_OP_BAND: /* x & -1 -> x, x & 0 -> 0 */
        return k == tx_wrap(t, -1) ? x : k == 0 && is_pure(x) ? tx_int(c, t, 0) : NOT_FOLDED;
    case TX_OP_DIV:
    case TX_OP_FLOORDIV:
    case TX_OP_CEILDIV: /* x // 1 -> x */ return k == 1 ? x : NOT_FOLDED;
    case TX_OP_MOD:
    case TX_OP_FLOORMOD: /* x % 1 -> 0 */ return k == 1 && is_pure(x) ? tx_int(c, t, 0) : NOT_FOLDED;
    default: return NOT_FOLDED;
    }
}

/* k op x */
static const tx_node *
identity_left(tx_ctx *c, unsigned op, tx_dtype t, int64_t k, const tx_node *x)
{
    switch (op) {
    case TX_OP_ADD:
    case TX_OP_MUL:
    case TX_OP_BAND:
    case TX_OP_BOR:
    case TX_OP_BXOR: return identity_right(c, op, t, x, k);
    case TX_OP_SHL:
    case TX_OP_SHR: /* 0 << x -> 0 */ return k == 0 && is_pure(x) ? tx_int(c, t, 0) : NOT_FOLDED;
    default: return NOT_FOLDED;
    }
}

/* x op x, x pure */
static const tx_node *
identity_same(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *x)
{
    switch (op) {
    case TX_OP_SUB:
    case TX_OP_BXOR: /* x - x, x ^ x -> 0 */ return tx_int(c, t, 0);
    case TX_OP_BAND:
    case TX_OP_BOR:
    case TX_OP_MIN:
    case TX_OP_MAX: /* min(x, x) -> x */ return x;
    default: return NOT_FOLDED;
    }
}

/* ---- one function a family ------------------------------------------------------------------------------------- */

static const tx_node *
shift_error(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *x, const tx_node *count)
{
    tx_span span = tx_place_of(c, count);
    tx_sb help = {0};

    if (op == TX_OP_SHL && tx_bits(t) < 64 && count->u.i >= 0 && count->u.i < 64) {
        tx_sb_f(&help, "widen the left side first: T.%s(", tx_is_signed(t) ? "int64" : "uint64");
        tx_print_node(x, &help);
        tx_sb_f(&help, ") << %lld", (long long)count->u.i);
    }
    tx_fail_help(c, span, help.failed ? NULL : help.text, TX_E_SHIFT_RANGE, (long long)count->u.i, (int)tx_bits(t) - 1,
                 tx_dtype_name(c, t));
    tx_sb_free(&help);
    return NULL;
}

static bool
is_division(unsigned op)
{
    return op == TX_OP_DIV || op == TX_OP_MOD || op == TX_OP_FLOORDIV || op == TX_OP_FLOORMOD || op == TX_OP_CEILDIV;
}

/* A constant divisor of zero, a constant count outside the width: the user's error. */
static bool
refused(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *a, const tx_node *b)
{
    int64_t k;

    if (!tx_const_i64(b, &k))
        return false;
    if (is_division(op) && k == 0)
        return tx_fail(c, tx_place_of(c, b), TX_E_DIV_BY_ZERO), true;
    if ((op == TX_OP_SHL || op == TX_OP_SHR) && (uint64_t)k >= tx_bits(t))
        return shift_error(c, op, t, a, b), true;
    return false;
}

static const tx_node *
fold_ints(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *a, const tx_node *b)
{
    const tx_node *r;
    int64_t x, y, v;

    if (tx_const_i64(a, &x) && tx_const_i64(b, &y))
        return fold_int_binary(op, t, x, y, &v) ? tx_int(c, t, v) : NOT_FOLDED;
    if (tx_const_i64(b, &y) && (r = identity_right(c, op, t, a, y)))
        return r;
    if (tx_const_i64(a, &x) && (r = identity_left(c, op, t, x, b)))
        return r;
    return tx_same_expr(a, b) && is_pure(a) ? identity_same(c, op, t, a) : NOT_FOLDED;
}

static const tx_node *
fold_comparison(tx_ctx *c, unsigned op, const tx_node *a, const tx_node *b)
{
    if (a->op == TX_OP_INT && b->op == TX_OP_INT) {
        bool less = tx_is_signed(a->dtype) ? a->u.i < b->u.i : (uint64_t)a->u.i < (uint64_t)b->u.i;

        return tx_bool(c, fold_compare(op, less, a->u.i == b->u.i));
    }
    if (a->op == TX_OP_FLOAT && b->op == TX_OP_FLOAT) {
        if (isnan(a->u.f) || isnan(b->u.f))
            return tx_bool(c, op == TX_OP_NE);
        return tx_bool(c, fold_compare(op, a->u.f < b->u.f, a->u.f == b->u.f));
    }
    /* x == x -> true; not for floats, where it is the test for NaN */
    if ((tx_is_int(a->dtype) || tx_is_bool(a->dtype)) && tx_same_expr(a, b) && is_pure(a))
        return tx_bool(c, fold_compare(op, false, true));
    return NOT_FOLDED;
}

/* and, or: the left operand decides alone; a constant on the right may only drop a pure left. */
static const tx_node *
fold_logic(tx_ctx *c, unsigned op, const tx_node *a, const tx_node *b)
{
    bool decides = op == TX_OP_OR;
    int64_t k;

    if (tx_const_i64(a, &k))
        return (k != 0) == decides ? tx_bool(c, decides) : b;
    if (!tx_const_i64(b, &k))
        return tx_same_expr(a, b) && is_pure(a) ? a : NOT_FOLDED;
    if ((k != 0) != decides)
        return a;
    return is_pure(a) ? tx_bool(c, decides) : NOT_FOLDED;
}

static const tx_node *
fold_unary(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *a)
{
    if (op == TX_OP_NOT) {
        if (a->op == TX_OP_INT)
            return tx_bool(c, a->u.i == 0);
        return a->op == TX_OP_NOT ? a->arg[0] : NOT_FOLDED; /* not not x -> x */
    }
    if (a->op == TX_OP_INT)
        return int_unary(c, op, t, a->u.i);
    if (a->op == TX_OP_FLOAT && !isnan(a->u.f)) {
        if (op == TX_OP_NEG && tx_kind(t) != TX_KIND_E8M0FNU)
            return tx_float(c, t, -a->u.f);
        if (op == TX_OP_ABS)
            return tx_float(c, t, fabs(a->u.f));
    }
    if ((op == TX_OP_NEG || op == TX_OP_BNOT) && a->op == op && tx_is_int(t))
        return a->arg[0]; /* - - x -> x */
    return NOT_FOLDED;
}

/* ---- conversions ----------------------------------------------------------------------------------------------- */

static const tx_node *
cast_const(tx_ctx *c, tx_dtype t, const tx_node *a)
{
    if (a->op == TX_OP_INT) {
        if (tx_is_float(t))
            return tx_float(c, t, tx_int_to_float(t, a->dtype, a->u.i));
        return tx_is_int(t) || tx_is_bool(t) ? tx_int(c, t, a->u.i) : NOT_FOLDED;
    }
    if (tx_is_float(t))
        return isnan(a->u.f) && tx_bits(t) <= 6 ? NOT_FOLDED : tx_float(c, t, a->u.f);
    return tx_is_int(t) || tx_is_bool(t) ? tx_int(c, t, tx_float_to_int(t, a->u.f)) : NOT_FOLDED;
}

/* Digits of precision, and whether every value of dtype `from` is one of dtype `to`. */
static bool
holds_all(tx_dtype to, tx_dtype from)
{
    static const uint8_t digits[TX_KIND__COUNT] = {
        [TX_KIND_F16] = 11, [TX_KIND_BF16] = 8, [TX_KIND_F32] = 24, [TX_KIND_F64] = 53};
    int64_t lo_from, lo_to;
    uint64_t hi_from, hi_to;

    if (tx_int_limits(from, &lo_from, &hi_from)) {
        if (tx_int_limits(to, &lo_to, &hi_to))
            return !tx_is_bool(to) && lo_from >= lo_to && hi_from <= hi_to;
        /* integers below 2^digits; float16 reaches 65504, so its 11 digits decide too */
        return digits[tx_kind(to)] && tx_bits(from) - tx_is_signed(from) <= digits[tx_kind(to)];
    }
    if (!tx_is_float(from) || !tx_is_float(to))
        return false;
    if (tx_kind(to) == TX_KIND_F64)
        return true;
    if (tx_kind(to) == TX_KIND_F32)
        return tx_kind(from) != TX_KIND_F64;
    return false;
}

/* cast(t, cast(u, x)) -> cast(t, x) where u loses nothing and the direct conversion means the same. */
static const tx_node *
cast_of_cast(tx_ctx *c, tx_dtype t, const tx_node *a)
{
    const tx_node *x = a->arg[0];
    tx_dtype u = a->dtype, s = x->dtype;
    bool ints = tx_is_int(t) && tx_is_int(u) && (tx_is_int(s) || tx_is_bool(s));

    if (tx_bits(t) > 64 || tx_bits(u) > 64 || tx_bits(s) > 64)
        return NOT_FOLDED;
    if (ints && tx_bits(u) >= tx_bits(t)) /* the low bits are all that counts */
        return tx_cast(c, t, x);
    if (!holds_all(u, s))
        return NOT_FOLDED;
    /* from a float, integers saturate; from an integer, they wrap: the same only if t has room for all */
    if (tx_is_float(u) && !tx_is_float(s) && !tx_is_float(t) && !tx_is_bool(t) && !holds_all(t, s))
        return NOT_FOLDED;
    return tx_cast(c, t, x);
}

static const tx_node *
fold_reinterpret(tx_ctx *c, tx_dtype t, const tx_node *a)
{
    uint64_t bits;
    double v;

    if (!is_num(a) || tx_is_handle(t) || tx_is_handle(a->dtype) || tx_bits(t) > 64)
        return NOT_FOLDED;
    if (a->op == TX_OP_FLOAT && isnan(a->u.f))
        return NOT_FOLDED;
    bits = a->op == TX_OP_FLOAT ? tx_encode(a->dtype, a->u.f) : (uint64_t)a->u.i;
    if (!tx_is_float(t))
        return tx_is_int(t) ? tx_int(c, t, (int64_t)bits) : NOT_FOLDED;
    v = tx_decode(t, bits);
    return isnan(v) ? NOT_FOLDED : tx_float(c, t, v);
}

static const tx_node *
fold_select(const tx_node *const *args, bool lazy)
{
    int64_t k;

    if (tx_const_i64(args[0], &k) && (lazy || is_pure(args[k ? 2 : 1])))
        return args[k ? 1 : 2];
    /* c ? x : x -> x */
    if (is_pure(args[0]) && is_pure(args[1]) && tx_same_expr(args[1], args[2]))
        return args[1];
    return NOT_FOLDED;
}

/* a * b + c on integers */
static const tx_node *
fold_fma(tx_ctx *c, tx_dtype t, const tx_node *const *args)
{
    if (args[0]->op != TX_OP_INT || args[1]->op != TX_OP_INT || args[2]->op != TX_OP_INT)
        return NOT_FOLDED;
    return tx_int(c, t, (int64_t)((uint64_t)args[0]->u.i * (uint64_t)args[1]->u.i + (uint64_t)args[2]->u.i));
}

static const tx_node *
fold_scalar(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *const *args)
{
    const tx_node *a = args[0];

    if (op >= TX_OP_EQ && op <= TX_OP_LE)
        return fold_comparison(c, op, a, args[1]);
    if (op >= TX_OP_ADD && op <= TX_OP_SHR) {
        if (!tx_is_float(t))
            return tx_is_handle(t) ? NOT_FOLDED : fold_ints(c, op, t, a, args[1]);
        if (a->op == TX_OP_FLOAT && args[1]->op == TX_OP_FLOAT)
            return fold_float_binary(c, op, t, a->u.f, args[1]->u.f);
        return NOT_FOLDED;
    }
    switch (op) {
    case TX_OP_AND:
    case TX_OP_OR: return fold_logic(c, op, a, args[1]);
    case TX_OP_CAST: return is_num(a) ? cast_const(c, t, a) : a->op == TX_OP_CAST ? cast_of_cast(c, t, a) : NOT_FOLDED;
    case TX_OP_REINTERPRET: return fold_reinterpret(c, t, a);
    case TX_OP_SELECT: return fold_select(args, false);
    case TX_OP_IF_THEN_ELSE: return fold_select(args, true);
    case TX_OP_FMA: return fold_fma(c, t, args);
    default: return fold_unary(c, op, t, a);
    }
}

const tx_node *
tx_fold(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *const *args, uint32_t nargs, bool strict, bool *folded)
{
    uint32_t errors = c->nerrors;
    const tx_node *r;

    *folded = false;
    for (uint32_t i = 0; i < nargs; i++)
        if (tx_lanes(args[i]->dtype) > 1 || tx_bits(args[i]->dtype) > 64)
            return NULL;
    if (tx_lanes(t) > 1 || tx_bits(t) > 64)
        return NULL;
    if (strict && nargs == 2 && op >= TX_OP_ADD && op <= TX_OP_SHR && refused(c, op, t, args[0], args[1])) {
        *folded = true;
        return NULL;
    }
    r = fold_scalar(c, op, t, args);
    *folded = r != NULL || c->nerrors != errors;
    return r;
}
