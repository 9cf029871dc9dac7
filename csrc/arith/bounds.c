/* Bounds of integer and bool expressions, from the bounds of their operands. Always sound: where the exact result may leave
 * the dtype, the expression may wrap and gets the dtype's whole range. INT64_MIN and INT64_MAX stand for the infinities;
 * for uint64 that is what lies above INT64_MAX.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

#define NEG_INF INT64_MIN
#define POS_INF INT64_MAX

static const tx_bounds anything = {NEG_INF, POS_INF};

/* ---- saturating integers ------------------------------------------------------------------------------------------ */

int64_t
tx_sat_add(int64_t a, int64_t b)
{
    int64_t r;

    if (a == NEG_INF || b == NEG_INF) /* callers never add the two infinities of different sign */
        return NEG_INF;
    if (a == POS_INF || b == POS_INF)
        return POS_INF;
    return tx_add_i64(a, b, &r) ? r : a < 0 ? NEG_INF : POS_INF;
}

int64_t
tx_sat_mul(int64_t a, int64_t b)
{
    int64_t r;
    bool negative = (a < 0) != (b < 0);

    if (a == 0 || b == 0)
        return 0;
    if (a == NEG_INF || a == POS_INF || b == NEG_INF || b == POS_INF || !tx_mul_i64(a, b, &r))
        return negative ? NEG_INF : POS_INF;
    return r;
}

int64_t
tx_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return a % b < 0 ? q - 1 : q;
}

static int64_t
negate(int64_t a)
{
    return a == NEG_INF ? POS_INF : a == POS_INF ? NEG_INF : -a;
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

tx_bounds
tx_dtype_range(tx_dtype t)
{
    unsigned bits = tx_bits(t);

    if (tx_is_bool(t))
        return (tx_bounds){0, 1};
    if (!tx_is_int(t) || bits > 64)
        return anything;
    if (!tx_is_signed(t))
        return (tx_bounds){0, bits == 64 ? POS_INF : ((int64_t)1 << bits) - 1};
    return bits == 64 ? anything : (tx_bounds){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
}

/* The exact result lo..hi, if all of it is in the dtype. */
static bool
bounds_fits(tx_dtype t, tx_bounds exact)
{
    tx_bounds range = tx_dtype_range(t);

    if (exact.lo == NEG_INF || exact.hi == POS_INF) /* saturated, or unknown: no proof that it is inside */
        return false;
    return exact.lo >= range.lo && exact.hi <= range.hi;
}

static tx_bounds
wrapped(tx_dtype t, tx_bounds exact)
{
    return bounds_fits(t, exact) ? exact : tx_dtype_range(t);
}

static bool
is_wide_unsigned(tx_dtype t)
{
    return tx_class(t) == TX_CLS_U && tx_bits(t) == 64;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static tx_bounds
corners(tx_bounds a, tx_bounds b, int64_t (*op)(int64_t, int64_t))
{
    int64_t w = op(a.lo, b.lo), x = op(a.lo, b.hi), y = op(a.hi, b.lo), z = op(a.hi, b.hi);

    return (tx_bounds){least(least(w, x), least(y, z)), most(most(w, x), most(y, z))};
}

/* Exact result of + - * and negation. */
static tx_bounds
exact_sum(const tx_node *n, tx_bounds a, tx_bounds b)
{
    switch (n->op) {
    case TX_OP_ADD: return (tx_bounds){tx_sat_add(a.lo, b.lo), tx_sat_add(a.hi, b.hi)};
    case TX_OP_SUB: return (tx_bounds){tx_sat_add(a.lo, negate(b.hi)), tx_sat_add(a.hi, negate(b.lo))};
    case TX_OP_NEG: return (tx_bounds){negate(a.hi), negate(a.lo)};
    default: return corners(a, b, tx_sat_mul);
    }
}

static int64_t
trunc_quotient(int64_t a, int64_t b)
{
    if (a == NEG_INF || a == POS_INF)
        return (a < 0) != (b < 0) ? NEG_INF : POS_INF;
    if (b == NEG_INF || b == POS_INF)
        return 0;
    return b == -1 ? negate(a) : a / b;
}

static int64_t
floor_quotient(int64_t a, int64_t b)
{
    if (a == NEG_INF || a == POS_INF)
        return (a < 0) != (b < 0) ? NEG_INF : POS_INF;
    if (b == NEG_INF || b == POS_INF)
        return a == 0 ? 0 : (a < 0) != (b < 0) ? -1 : 0;
    if (b == -1)
        return negate(a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
ceil_quotient(int64_t a, int64_t b)
{
    if (a == NEG_INF || a == POS_INF)
        return (a < 0) != (b < 0) ? NEG_INF : POS_INF;
    if (b == NEG_INF || b == POS_INF)
        return a == 0 ? 0 : (a < 0) != (b < 0) ? 0 : 1;
    if (b == -1)
        return negate(a);
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

/* Quotients are monotone in each operand while the divisor keeps its sign, so the corners bound them. */
static tx_bounds
bounds_quotient(const tx_node *n, tx_bounds a, tx_bounds b)
{
    if (b.lo <= 0 && b.hi >= 0) /* by zero: what the machine gives */
        return tx_dtype_range(n->dtype);
    if (is_wide_unsigned(n->dtype) && a.hi == POS_INF) /* the dividend may be up to 2^64 - 1 */
        return (tx_bounds){a.lo == POS_INF ? 0 : floor_quotient(a.lo, b.hi), POS_INF};
    return wrapped(n->dtype, corners(a, b,
                                     n->op == TX_OP_DIV       ? trunc_quotient
                                     : n->op == TX_OP_CEILDIV ? ceil_quotient
                                                              : floor_quotient));
}

static tx_bounds
floor_remainder(tx_facts *f, const tx_node *n, tx_bounds a, tx_bounds b)
{
    int64_t m, r;

    if (b.lo == b.hi && b.lo > 0) { /* x = k*m + r with b | m */
        tx_divisor_of(f, n->arg[0], &m, &r);
        if (m % b.lo == 0 && (m != 0 || !is_wide_unsigned(n->dtype)))
            return (tx_bounds){tx_floor_mod(r, b.lo), tx_floor_mod(r, b.lo)};
    }
    if (b.lo <= 0 && b.hi >= 0)
        return tx_dtype_range(n->dtype);
    if (b.lo > 0) { /* 0 .. divisor - 1; a dividend below every divisor stays */
        if (a.lo >= 0 && a.hi < b.lo)
            return a;
        return (tx_bounds){0, least(b.hi == POS_INF ? POS_INF : b.hi - 1, a.lo >= 0 ? a.hi : POS_INF)};
    }
    return (tx_bounds){b.lo == NEG_INF ? NEG_INF : b.lo + 1, 0};
}

/* The sign of the dividend, less than the divisor in size. */
static tx_bounds
trunc_remainder(const tx_node *n, tx_bounds a, tx_bounds b)
{
    int64_t size;

    if (b.lo <= 0 && b.hi >= 0)
        return tx_dtype_range(n->dtype);
    size = most(negate(b.lo), b.hi);
    size = size == POS_INF ? POS_INF : size - 1;
    return (tx_bounds){a.lo >= 0 ? 0 : most(a.lo, negate(size)), a.hi <= 0 ? 0 : least(a.hi, size)};
}

/* The least 2^k - 1 that is not below v >= 0. */
static int64_t
all_ones(int64_t v)
{
    uint64_t m = (uint64_t)v;

    for (unsigned s = 1; s < 64; s *= 2)
        m |= m >> s;
    return (int64_t)m;
}

static tx_bounds
bitwise(const tx_node *n, tx_bounds a, tx_bounds b)
{
    if (tx_is_bool(n->dtype))
        return (tx_bounds){0, 1};
    if (n->op == TX_OP_BAND) { /* at most what either allows that is not negative */
        int64_t hi = POS_INF;
        if (a.lo >= 0)
            hi = a.hi;
        if (b.lo >= 0)
            hi = least(hi, b.hi);
        return a.lo >= 0 || b.lo >= 0 ? (tx_bounds){0, hi} : tx_dtype_range(n->dtype);
    }
    if (a.lo < 0 || b.lo < 0)
        return tx_dtype_range(n->dtype);
    return (tx_bounds){n->op == TX_OP_BOR ? most(a.lo, b.lo) : 0, all_ones(most(a.hi, b.hi))};
}

static tx_bounds
shift(const tx_node *n, tx_bounds a, tx_bounds b)
{
    int64_t bits = tx_bits(n->dtype);

    if (n->op == TX_OP_SHL) {
        if (b.lo < 0 || b.hi >= least(bits, 63) || (is_wide_unsigned(n->dtype) && a.hi == POS_INF))
            return tx_dtype_range(n->dtype);
        return wrapped(n->dtype, corners(a, (tx_bounds){(int64_t)1 << b.lo, (int64_t)1 << b.hi}, tx_sat_mul));
    }
    if (b.lo < 0 || b.hi > 62 || is_wide_unsigned(n->dtype)) /* towards 0 or -1 in any case */
        return b.lo < 0 || a.lo < 0 ? tx_dtype_range(n->dtype) : (tx_bounds){0, a.hi};
    if (a.lo == NEG_INF || a.hi == POS_INF)
        return (tx_bounds){a.lo >= 0 ? 0 : a.lo, a.hi < 0 ? -1 : a.hi};
    return corners(a, (tx_bounds){(int64_t)1 << b.lo, (int64_t)1 << b.hi}, floor_quotient);
}

static tx_bounds
bounds_cast(const tx_node *n, tx_bounds a)
{
    tx_dtype from = n->arg[0]->dtype;

    if (tx_is_bool(n->dtype))
        return a.lo > 0 || a.hi < 0 ? (tx_bounds){1, 1} : a.lo == 0 && a.hi == 0 ? a : (tx_bounds){0, 1};
    if (!tx_is_countable(from) || !tx_is_countable(n->dtype))
        return tx_dtype_range(n->dtype);
    if (is_wide_unsigned(n->dtype) && a.lo >= 0 && tx_dtype_range(from).lo == 0)
        return a;
    if (n->dtype == from || (tx_bits(n->dtype) == 64 && tx_is_signed(n->dtype) && !is_wide_unsigned(from)))
        return a;
    return wrapped(n->dtype, a);
}

static tx_bounds
absolute(const tx_node *n, tx_bounds a)
{
    if (a.lo >= 0)
        return a;
    if (a.lo == NEG_INF)
        return tx_dtype_range(n->dtype);
    return wrapped(n->dtype, (tx_bounds){a.hi <= 0 ? negate(a.hi) : 0, most(negate(a.lo), a.hi)});
}

static tx_bounds
bounds_joined(tx_bounds a, tx_bounds b)
{
    return (tx_bounds){least(a.lo, b.lo), most(a.hi, b.hi)};
}

/* Coordinates: what the hardware allows (CUDA programming guide, technical specifications). */
static tx_bounds
bounds_coordinate(const tx_node *n)
{
    static const tx_bounds limit[TX_OP__COUNT] = {
        [TX_OP_THREAD_IDX] = {0, TX_MAX_THREADS - 1},
        [TX_OP_BLOCK_IDX] = {0, INT32_MAX - 1},
        [TX_OP_BLOCK_DIM] = {1, TX_MAX_THREADS},
        [TX_OP_GRID_DIM] = {1, INT32_MAX},
        [TX_OP_CLUSTER_ID] = {0, INT32_MAX - 1},
        [TX_OP_CLUSTER_CTA] = {0, TX_MAX_CLUSTER - 1},
        [TX_OP_CLUSTER_DIM] = {1, TX_MAX_CLUSTER},
        [TX_OP_CLUSTER_RANK] = {0, TX_MAX_CLUSTER - 1},
        [TX_OP_CTA_PAIR] = {0, 1},
        [TX_OP_LINEAR_TID] = {0, TX_MAX_THREADS - 1},
        [TX_OP_THREAD_RANK] = {0, TX_MAX_THREADS - 1},
        [TX_OP_WARP_ID] = {0, TX_MAX_THREADS / 32 - 1},
        [TX_OP_LANE_ID] = {0, 31},
        [TX_OP_WARPGROUP_ID] = {0, TX_MAX_THREADS / 128 - 1},
        [TX_OP_WARP_IN_WG] = {0, 3},
        [TX_OP_THREAD_IN_WG] = {0, 127},
        [TX_OP_POPCOUNT] = {0, 64},
        [TX_OP_CLZ] = {0, 64},
        [TX_OP_FFS] = {0, 32},
    };
    tx_bounds b = limit[n->op], range = tx_dtype_range(n->dtype);

    return b.hi == 0 ? range : (tx_bounds){most(b.lo, range.lo), least(b.hi, range.hi)};
}

/* base, base + stride, ...: both ends */
static tx_bounds
bounds_ramp(tx_facts *f, const tx_node *n)
{
    tx_bounds base = tx_bounds_of(f, n->arg[0]), step = tx_bounds_of(f, n->arg[1]);
    int64_t last = (int64_t)tx_lanes(n->dtype) - 1;
    tx_bounds far = corners(step, (tx_bounds){0, last}, tx_sat_mul);

    return wrapped(n->dtype, (tx_bounds){tx_sat_add(base.lo, far.lo), tx_sat_add(base.hi, far.hi)});
}

tx_bounds
tx_var_range(const tx_var *v)
{
    tx_bounds range = tx_dtype_range(v->dtype);

    if (v->kind == TX_VAR_SYMBOL && range.lo < 0) /* a size */
        range.lo = 0;
    return range;
}

static tx_bounds
bounds_variable(tx_facts *f, const tx_node *n)
{
    const tx_known *k = tx_known_of(f, n);

    if (k && k->equal)
        return tx_bounds_of(f, k->equal);
    return tx_var_range(n->u.var);
}

static tx_bounds
bounds_by_op(tx_facts *f, const tx_node *n)
{
    tx_bounds a, b;

    switch (n->op) {
    case TX_OP_INT:
        if (is_wide_unsigned(n->dtype) && n->u.i < 0)
            return (tx_bounds){POS_INF, POS_INF};
        return (tx_bounds){n->u.i, n->u.i};
    case TX_OP_VAR: return bounds_variable(f, n);
    case TX_OP_RAMP: return bounds_ramp(f, n);
    case TX_OP_BROADCAST:
    case TX_OP_LIKELY: return tx_bounds_of(f, n->arg[0]);
    case TX_OP_SELECT:
    case TX_OP_IF_THEN_ELSE:
        a = tx_bounds_of(f, n->arg[0]);
        if (a.lo == a.hi)
            return tx_bounds_of(f, n->arg[a.lo ? 1 : 2]);
        return bounds_joined(tx_bounds_of(f, n->arg[1]), tx_bounds_of(f, n->arg[2]));
    case TX_OP_LET: /* the variable is known by its dtype only */ return tx_bounds_of(f, n->arg[1]);
    default: break;
    }
    if (n->nargs == 0 || n->nargs > 2 || tx_ops[n->op].rule == TX_RULE_COMPARE)
        return bounds_coordinate(n);
    if (!tx_is_countable(n->arg[0]->dtype))
        return tx_dtype_range(n->dtype);
    a = tx_bounds_of(f, n->arg[0]);
    b = n->nargs == 2 ? tx_bounds_of(f, n->arg[1]) : anything;
    switch (n->op) {
    case TX_OP_ADD:
    case TX_OP_SUB:
    case TX_OP_MUL:
    case TX_OP_NEG:
        if (is_wide_unsigned(n->dtype) && (a.hi == POS_INF || (n->nargs == 2 && b.hi == POS_INF)))
            return tx_dtype_range(n->dtype);
        return wrapped(n->dtype, exact_sum(n, a, b));
    case TX_OP_FLOORDIV:
    case TX_OP_DIV:
    case TX_OP_CEILDIV: return bounds_quotient(n, a, b);
    case TX_OP_FLOORMOD: return floor_remainder(f, n, a, b);
    case TX_OP_MOD: return trunc_remainder(n, a, b);
    case TX_OP_MIN: return (tx_bounds){least(a.lo, b.lo), least(a.hi, b.hi)};
    case TX_OP_MAX: return (tx_bounds){most(a.lo, b.lo), most(a.hi, b.hi)};
    case TX_OP_BAND:
    case TX_OP_BOR:
    case TX_OP_BXOR: return bitwise(n, a, b);
    case TX_OP_SHL:
    case TX_OP_SHR: return shift(n, a, b);
    case TX_OP_ABS: return absolute(n, a);
    case TX_OP_BNOT:
        return tx_is_signed(n->dtype)
                   ? (tx_bounds){a.hi == POS_INF ? NEG_INF : -1 - a.hi, a.lo == NEG_INF ? POS_INF : -1 - a.lo}
                   : tx_dtype_range(n->dtype);
    case TX_OP_CAST: return bounds_cast(n, a);
    case TX_OP_NOT: return (tx_bounds){1 - a.hi, 1 - a.lo};
    case TX_OP_AND: return (tx_bounds){least(a.lo, b.lo), least(a.hi, b.hi)};
    case TX_OP_OR: return (tx_bounds){most(a.lo, b.lo), most(a.hi, b.hi)};
    default: return bounds_coordinate(n);
    }
}

tx_bounds
tx_bounds_of(tx_facts *f, const tx_node *n)
{
    const tx_known *k;
    uint64_t at;
    tx_bounds b;

    if (!n || !tx_is_countable(n->dtype))
        return anything;
    if (n->op != TX_OP_INT && tx_map_get(&f->bounds, tx_memo_key(f, n), &at))
        return f->ranges.at[at];
    if (f->depth > 500) /* an expression deeper than that is not worth the stack */
        return tx_dtype_range(n->dtype);
    f->depth++;
    b = bounds_by_op(f, n);
    k = tx_known_of(f, n);
    if (k && most(k->range.lo, b.lo) <= least(k->range.hi, b.hi))
        b = (tx_bounds){most(k->range.lo, b.lo), least(k->range.hi, b.hi)};
    f->depth--;
    if (n->op != TX_OP_INT && tx_push(f->c, &f->ranges, b))
        (void)tx_map_put(&f->bounds, tx_memo_key(f, n), f->ranges.n - 1); /* a lost entry costs time only */
    return b;
}

bool
tx_never_wraps(tx_facts *f, const tx_node *n)
{
    tx_bounds a, b;

    if (!tx_is_countable(n->dtype) || tx_is_bool(n->dtype))
        return false;
    a = tx_bounds_of(f, n->arg[0]);
    b = n->nargs > 1 ? tx_bounds_of(f, n->arg[1]) : anything;
    if (is_wide_unsigned(n->dtype) && (a.hi == POS_INF || (n->nargs > 1 && b.hi == POS_INF)))
        return false;
    switch (n->op) {
    case TX_OP_ADD:
    case TX_OP_SUB:
    case TX_OP_MUL:
    case TX_OP_NEG: return bounds_fits(n->dtype, exact_sum(n, a, b));
    case TX_OP_SHL:
        return b.lo >= 0 && b.hi < 63 && b.hi < (int64_t)tx_bits(n->dtype) &&
               bounds_fits(n->dtype, corners(a, (tx_bounds){(int64_t)1 << b.lo, (int64_t)1 << b.hi}, tx_sat_mul));
    case TX_OP_CAST: /* the value is kept */
        if (!tx_is_countable(n->arg[0]->dtype))
            return false;
        if (is_wide_unsigned(n->arg[0]->dtype) && a.hi == POS_INF)
            return is_wide_unsigned(n->dtype);
        if (is_wide_unsigned(n->dtype))
            return a.lo >= 0;
        return (tx_bits(n->dtype) == 64 && tx_is_signed(n->dtype)) || bounds_fits(n->dtype, a);
    default: return false;
    }
}
