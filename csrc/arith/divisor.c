/* Divisibility: e = k * multiple + remainder. A result that may wrap keeps only what holds modulo a power of two that
 * divides its dtype's size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

typedef tx_bounds congruence; /* lo: multiple (0: exactly hi; 1: nothing known), hi: remainder in 0..multiple-1 */

static const congruence nothing = {1, 0};

static int64_t
gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static congruence
make(int64_t multiple, int64_t remainder)
{
    if (multiple == INT64_MIN)
        return nothing;
    if (multiple < 0)
        multiple = -multiple;
    return (congruence){multiple, multiple ? tx_floor_mod(remainder, multiple) : remainder};
}

static congruence
divisor_sum(congruence a, congruence b)
{
    int64_t r;

    return tx_add_i64(a.hi, b.hi, &r) ? make(gcd(a.lo, b.lo), r) : nothing;
}

static congruence
negated(congruence a)
{
    return a.hi == INT64_MIN ? nothing : make(a.lo, -a.hi);
}

/* (m k + r)(n l + s) = mn kl + ms k + nr l + rs */
static congruence
divisor_product(congruence a, congruence b)
{
    int64_t mn, ms, nr, rs;

    if (!tx_mul_i64(a.lo, b.lo, &mn) || !tx_mul_i64(a.lo, b.hi, &ms) || !tx_mul_i64(b.lo, a.hi, &nr) ||
        !tx_mul_i64(a.hi, b.hi, &rs) || mn == INT64_MIN || ms == INT64_MIN || nr == INT64_MIN)
        return nothing;
    return make(gcd(gcd(mn, ms), nr), rs);
}

/* Either of the two. */
static congruence
divisor_joined(congruence a, congruence b)
{
    int64_t d;

    return tx_sub_i64(a.hi, b.hi, &d) && d != INT64_MIN ? make(gcd(gcd(a.lo, b.lo), d), a.hi) : nothing;
}

/* What is left when the result may be off by a multiple of 2^bits. */
static congruence
modulo_size(tx_dtype t, congruence a)
{
    unsigned bits = tx_bits(t);
    int64_t two = (int64_t)1 << (bits < 62 ? bits : 62);

    return a.lo == 0 ? make(two, a.hi) : make(gcd(a.lo, two), a.hi);
}

static congruence of(tx_facts *f, const tx_node *n);

/* x // c with c | multiple: (m k + r) // c = (m / c) k + r // c */
static congruence
divisor_quotient(congruence a, int64_t c)
{
    if (c <= 0 || a.lo % c)
        return nothing;
    return make(a.lo / c, tx_floor_div(a.hi, c));
}

/* x % c = x minus a multiple of c */
static congruence
remainder_of(congruence a, int64_t c)
{
    if (c <= 0)
        return nothing;
    if (a.lo % c == 0)
        return make(0, tx_floor_mod(a.hi, c));
    return make(gcd(a.lo, c), a.hi);
}

/* x & c keeps the low zeros of both */
static congruence
masked(congruence a, int64_t c)
{
    int64_t low = (int64_t)((uint64_t)c & (0 - (uint64_t)c)), other;

    if (low <= 0)
        return c == 0 ? make(0, 0) : nothing;
    other = a.lo != 0 && a.hi == 0 ? gcd(a.lo, (int64_t)1 << 61) : 1;
    return make(other > low ? other : low, 0);
}

static congruence
divisor_by_op(tx_facts *f, const tx_node *n)
{
    congruence r;
    int64_t c = 0;
    bool constant = n->nargs == 2 && tx_const_i64(n->arg[1], &c);

    switch (n->op) {
    case TX_OP_LIKELY: return of(f, n->arg[0]);
    case TX_OP_ADD: r = divisor_sum(of(f, n->arg[0]), of(f, n->arg[1])); break;
    case TX_OP_SUB: r = divisor_sum(of(f, n->arg[0]), negated(of(f, n->arg[1]))); break;
    case TX_OP_NEG: r = negated(of(f, n->arg[0])); break;
    case TX_OP_MUL: r = divisor_product(of(f, n->arg[0]), of(f, n->arg[1])); break;
    case TX_OP_SHL:
        if (!constant || c < 0 || c > 61 || c >= (int64_t)tx_bits(n->dtype))
            return nothing;
        r = divisor_product(of(f, n->arg[0]), make(0, (int64_t)1 << c));
        break;
    case TX_OP_CAST:
        if (!tx_is_countable(n->arg[0]->dtype) || tx_is_bool(n->dtype))
            return nothing;
        r = of(f, n->arg[0]);
        break;
    case TX_OP_FLOORDIV: return constant ? divisor_quotient(of(f, n->arg[0]), c) : nothing;
    case TX_OP_FLOORMOD: return constant ? remainder_of(of(f, n->arg[0]), c) : nothing;
    case TX_OP_BAND: return constant ? masked(of(f, n->arg[0]), c) : nothing;
    case TX_OP_MIN:
    case TX_OP_MAX: return divisor_joined(of(f, n->arg[0]), of(f, n->arg[1]));
    case TX_OP_SELECT:
    case TX_OP_IF_THEN_ELSE: return divisor_joined(of(f, n->arg[1]), of(f, n->arg[2]));
    default: return nothing;
    }
    return tx_never_wraps(f, n) ? r : modulo_size(n->dtype, r);
}

/* The narrower of two that both hold; they are compatible. */
static congruence
both(congruence a, congruence b)
{
    return a.lo == 0 || (b.lo != 0 && a.lo >= b.lo) ? a : b;
}

static congruence
of(tx_facts *f, const tx_node *n)
{
    const tx_known *k;
    congruence r;
    uint64_t at;

    if (!tx_is_countable(n->dtype) || tx_lanes(n->dtype) != 1 || f->depth > 500)
        return nothing;
    if (n->op == TX_OP_INT) /* a uint64 beyond INT64_MAX is known modulo powers of two */
        return make(n->u.i < 0 && !tx_is_signed(n->dtype) ? (int64_t)1 << 62 : 0, n->u.i);
    if (tx_map_get(&f->divisors, tx_memo_key(f, n), &at))
        return f->multiples.at[at];
    f->depth++;
    r = divisor_by_op(f, n);
    if ((k = tx_known_of(f, n)) != NULL) {
        r = both(make(k->multiple, k->remainder), r);
        if (k->equal)
            r = both(of(f, k->equal), r);
    }
    f->depth--;
    if (tx_push(f->c, &f->multiples, r))
        (void)tx_map_put(&f->divisors, tx_memo_key(f, n), f->multiples.n - 1);
    return r;
}

void
tx_divisor_of(tx_facts *f, const tx_node *e, int64_t *multiple, int64_t *remainder)
{
    congruence r = of(f, e);

    *multiple = r.lo;
    *remainder = r.hi;
}
