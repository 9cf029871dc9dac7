/* Simplification of integer and bool expressions under the facts in force. Operands first, then the rules of the operator,
 * one function a rule. Rules keep the dtype and the value for every assignment that the facts allow, wrap-around included;
 * none makes the expression larger, and each leaves less to do, so that they end:
 * fewer nodes, or as many with the division moved inwards. Expressions with loads or calls only have their operands
 * simplified; floats are left to the folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

/* Gives the better expression, or NULL when the rule does not apply. */
typedef const tx_node *(*rule)(tx_facts *f, const tx_node *n);

static const tx_node *simplify_simplify(tx_facts *f, const tx_node *n, bool part);

static const tx_node *
simplify_binary(tx_facts *f, unsigned op, const tx_node *a, const tx_node *b)
{
    return tx_binary(f->c, op, a, b);
}

static const tx_node *
simplify_constant(tx_facts *f, const tx_node *like, int64_t v)
{
    return tx_int(f->c, like->dtype, v);
}

static bool
is_inside(tx_bounds b, tx_dtype t)
{
    tx_bounds range = tx_dtype_range(t);

    return b.lo != INT64_MIN && b.hi != INT64_MAX && b.lo >= range.lo && b.hi <= range.hi;
}

static bool
is_power_of_two(int64_t v)
{
    return v > 0 && (v & (v - 1)) == 0;
}

/* ---- any operator ------------------------------------------------------------------------------------------------ */

/* x with lo == hi -> lo */
static const tx_node *
known_value(tx_facts *f, const tx_node *n)
{
    tx_bounds b = tx_bounds_of(f, n);

    return b.lo == b.hi && b.lo != INT64_MIN && b.lo != INT64_MAX ? simplify_constant(f, n, b.lo) : NULL;
}

/* a < b -> true or false when it can be proved */
static const tx_node *
known_condition(tx_facts *f, const tx_node *n)
{
    int r = tx_prove(f, n);

    return r < 0 ? NULL : simplify_constant(f, n, r);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* x*2 + y - x -> x + y: the sum of equal terms, where that is shorter */
static const tx_node *
collect_terms(tx_facts *f, const tx_node *n)
{
    tx_lin l;

    tx_lin_ring(f, n, &l);
    return l.failed || tx_lin_cost(&l) >= l.cost ? NULL : tx_lin_build(f, &l, n->dtype);
}

/* ---- division by constants --------------------------------------------------------------------------------------- */

/* Takes the terms of l that are multiples of c out into q, divided by it: l = c*q + what is left. */
static void
take_multiples(tx_lin *l, int64_t c, tx_lin *q)
{
    uint32_t kept = 0;

    *q = (tx_lin){0};
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->t[i].k % c == 0)
            q->t[q->n++] = (struct tx_lin_term){l->t[i].atom, l->t[i].k / c};
        else
            l->t[kept++] = l->t[i];
    }
    l->n = kept;
    q->c = tx_floor_div(l->c, c);
    l->c = tx_floor_mod(l->c, c);
}

/* (a*c + b) // c -> a + b // c; with 0 <= b < c -> a. The sum does not wrap. */
static const tx_node *
divide_multiples(tx_facts *f, const tx_node *n)
{
    tx_lin l, q;
    tx_bounds b;
    int64_t c;

    if (!tx_const_i64(n->arg[1], &c) || c <= 1)
        return NULL;
    tx_lin_plain(f, n->arg[0], &l);
    if (l.failed)
        return NULL;
    take_multiples(&l, c, &q);
    b = tx_lin_bounds(f, &l);
    if (b.lo != INT64_MIN && b.hi != INT64_MAX && tx_floor_div(b.lo, c) == tx_floor_div(b.hi, c)) {
        if (!tx_add_i64(q.c, tx_floor_div(b.lo, c), &q.c))
            return NULL;
        return tx_lin_build(f, &q, n->dtype);
    }
    if ((q.n == 0 && q.c == 0) || !is_inside(b, n->dtype) || tx_lin_cost(&q) + 1 + tx_lin_cost(&l) > l.cost)
        return NULL;
    return simplify_binary(f, TX_OP_ADD, tx_lin_build(f, &q, n->dtype),
                           simplify_binary(f, n->op, tx_lin_build(f, &l, n->dtype), n->arg[1]));
}

/* (x // a) // b -> x // (a*b) */
static const tx_node *
divide_twice(tx_facts *f, const tx_node *n)
{
    const tx_node *x = n->arg[0];
    int64_t a, b, ab;

    if (x->op != TX_OP_FLOORDIV || !tx_const_i64(n->arg[1], &b) || !tx_const_i64(x->arg[1], &a) || a <= 0 || b <= 0 ||
        !tx_mul_i64(a, b, &ab) || ab > tx_dtype_range(n->dtype).hi)
        return NULL;
    return simplify_binary(f, TX_OP_FLOORDIV, x->arg[0], simplify_constant(f, n, ab));
}

/* (g*y + r) // (g*d) -> (y + r // g) // d */
static const tx_node *
divide_common_factor(tx_facts *f, const tx_node *n)
{
    tx_lin l;
    int64_t c, g;

    if (!tx_const_i64(n->arg[1], &c) || c <= 1)
        return NULL;
    tx_lin_plain(f, n->arg[0], &l);
    if (l.failed || l.n == 0)
        return NULL;
    g = c;
    for (uint32_t i = 0; i < l.n; i++)
        for (int64_t k = l.t[i].k; k;) {
            int64_t r = g % k;
            g = k < 0 ? -k : k;
            k = r;
        }
    if (g <= 1 || g == c)
        return NULL;
    for (uint32_t i = 0; i < l.n; i++)
        l.t[i].k /= g;
    l.c = tx_floor_div(l.c, g);
    if (!is_inside(tx_lin_bounds(f, &l), n->dtype) || tx_lin_cost(&l) > l.cost)
        return NULL;
    return simplify_binary(f, TX_OP_FLOORDIV, tx_lin_build(f, &l, n->dtype), simplify_constant(f, n, c / g));
}

/* The sum without multiples of c: exact, or modulo 2^bits when c divides that. Gives false when nothing is known. */
static bool
without_multiples(tx_facts *f, const tx_node *x, int64_t c, tx_lin *l)
{
    tx_lin q;

    if (is_power_of_two(c))
        tx_lin_ring(f, x, l);
    else
        tx_lin_plain(f, x, l);
    if (l->failed)
        return false;
    for (uint32_t i = 0; i < l->n; i++) /* k*x -> (k mod c)*x, with k's sign */
        l->t[i].k = l->t[i].k % c == 0 ? 0 : l->t[i].k % c;
    take_multiples(l, c, &q);
    return true;
}

/* (a*c + b) % c -> b % c; with 0 <= b < c -> b. Also for x & (2^k - 1), with c = 2^k. */
static const tx_node *
simplify_reduce(tx_facts *f, const tx_node *n, int64_t c)
{
    tx_lin l;
    tx_bounds b;
    int64_t q;

    if (!without_multiples(f, n->arg[0], c, &l))
        return NULL;
    b = tx_lin_bounds(f, &l);
    if (b.lo != INT64_MIN && b.hi != INT64_MAX && (q = tx_floor_div(b.lo, c)) == tx_floor_div(b.hi, c)) {
        l.c -= q * c;
        return tx_lin_cost(&l) <= l.cost + 2 ? tx_lin_build(f, &l, n->dtype) : NULL;
    }
    if (tx_lin_cost(&l) >= l.cost || (!is_power_of_two(c) && !is_inside(b, n->dtype)))
        return NULL;
    return simplify_binary(f, n->op, tx_lin_build(f, &l, n->dtype), n->arg[1]);
}

static const tx_node *
reduce_multiples(tx_facts *f, const tx_node *n)
{
    int64_t c;

    return tx_const_i64(n->arg[1], &c) && c > 1 ? simplify_reduce(f, n, c) : NULL;
}

/* (x % (c*d)) % c -> x % c */
static const tx_node *
reduce_twice(tx_facts *f, const tx_node *n)
{
    const tx_node *x = n->arg[0];
    int64_t outer, inner;

    (void)f;
    if (x->op != TX_OP_FLOORMOD || !tx_const_i64(n->arg[1], &outer) || !tx_const_i64(x->arg[1], &inner) || outer <= 0 ||
        inner <= 0 || inner % outer)
        return NULL;
    return simplify_binary(f, TX_OP_FLOORMOD, x->arg[0], n->arg[1]);
}

/* truncdiv(x, c), truncmod(x, c) -> x // c, x % c with 0 <= x and 0 < c */
static const tx_node *
truncate_positive(tx_facts *f, const tx_node *n)
{
    if (tx_bounds_of(f, n->arg[0]).lo < 0 || tx_bounds_of(f, n->arg[1]).lo <= 0)
        return NULL;
    return simplify_binary(f, n->op == TX_OP_DIV ? TX_OP_FLOORDIV : TX_OP_FLOORMOD, n->arg[0], n->arg[1]);
}

/* ceildiv(a*c, c) -> a. The product does not wrap. */
static const tx_node *
divide_up_multiple(tx_facts *f, const tx_node *n)
{
    tx_lin l, q;
    int64_t c;

    if (!tx_const_i64(n->arg[1], &c) || c <= 1)
        return NULL;
    tx_lin_plain(f, n->arg[0], &l);
    if (l.failed)
        return NULL;
    take_multiples(&l, c, &q);
    return l.n == 0 && l.c == 0 ? tx_lin_build(f, &q, n->dtype) : NULL;
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

/* (a*2^k + b) & (2^k - 1) -> b & (2^k - 1); with 0 <= b < 2^k -> b */
static const tx_node *
mask_low(tx_facts *f, const tx_node *n)
{
    int64_t c;

    if (!tx_const_i64(n->arg[1], &c) || c <= 0 || c == INT64_MAX || !is_power_of_two(c + 1))
        return NULL;
    return simplify_reduce(f, n, c + 1);
}

/* x & c -> 0 when x is a multiple of a power of two above c */
static const tx_node *
mask_nothing(tx_facts *f, const tx_node *n)
{
    int64_t c, m, r;

    if (!tx_const_i64(n->arg[1], &c) || c < 0)
        return NULL;
    tx_divisor_of(f, n->arg[0], &m, &r);
    m &= -m;
    return r == 0 && m > c ? simplify_constant(f, n, 0) : NULL;
}

/* x ^ c, x | c -> x + c when x is a multiple of a power of two above c */
static const tx_node *
join_disjoint(tx_facts *f, const tx_node *n)
{
    int64_t c, m, r;

    if (!tx_const_i64(n->arg[1], &c) || c <= 0 || tx_is_bool(n->dtype))
        return NULL;
    tx_divisor_of(f, n->arg[0], &m, &r);
    m &= -m;
    return r == 0 && m > c ? simplify_binary(f, TX_OP_ADD, n->arg[0], n->arg[1]) : NULL;
}

/* (a*2^k + b) >> k -> a with 0 <= b < 2^k. The sum does not wrap. */
static const tx_node *
shift_multiple(tx_facts *f, const tx_node *n)
{
    tx_lin l, q;
    tx_bounds b;
    int64_t k;

    if (!tx_const_i64(n->arg[1], &k) || k <= 0 || k >= (int64_t)tx_bits(n->dtype) || k > 61)
        return NULL;
    tx_lin_plain(f, n->arg[0], &l);
    if (l.failed)
        return NULL;
    take_multiples(&l, (int64_t)1 << k, &q);
    b = tx_lin_bounds(f, &l);
    return b.lo >= 0 && b.hi < (int64_t)1 << k && tx_lin_cost(&q) <= l.cost + 2 ? tx_lin_build(f, &q, n->dtype) : NULL;
}

/* ---- choice ------------------------------------------------------------------------------------------------------ */

/* min(a, b) -> a with a <= b; max likewise */
static const tx_node *
choose_proved(tx_facts *f, const tx_node *n)
{
    const tx_node *a = n->arg[0], *b = n->arg[1];
    int below = tx_prove(f, simplify_binary(f, TX_OP_LE, a, b)),
        above = below >= 0 ? -1 : tx_prove(f, simplify_binary(f, TX_OP_LE, b, a));

    if (below < 0 && above == 1)
        below = tx_same_expr(a, b) ? 1 : 0;
    return below < 0 ? NULL : (below == 1) == (n->op == TX_OP_MIN) ? a : b;
}

/* select(true, a, b) -> a; select(c, a, a) -> a */
static const tx_node *
choose_known(tx_facts *f, const tx_node *n)
{
    int r = tx_prove(f, n->arg[0]);

    if (r >= 0)
        return n->arg[r ? 1 : 2];
    return tx_same_expr(n->arg[1], n->arg[2]) ? n->arg[1] : NULL;
}

/* true and a -> a; a and a -> a; with `or` likewise */
static const tx_node *
drop_side(tx_facts *f, const tx_node *n)
{
    int neutral = n->op == TX_OP_AND, a = tx_prove(f, n->arg[0]), b = tx_prove(f, n->arg[1]);

    if (a == neutral || tx_same_expr(n->arg[0], n->arg[1]))
        return n->arg[1];
    return b == neutral ? n->arg[0] : NULL;
}

/* Cast(t, Cast(u, x)) -> Cast(t, x) when the inner cast keeps the value */
static const tx_node *
cast_once(tx_facts *f, const tx_node *n)
{
    const tx_node *inner = n->arg[0];

    if (inner->op != TX_OP_CAST || !tx_never_wraps(f, inner))
        return NULL;
    return tx_cast(f->c, n->dtype, inner->arg[0]);
}

/* ---- engine ------------------------------------------------------------------------------------------------------ */

static const rule rules[TX_OP__COUNT][6] = {
    [TX_OP_ADD] = {known_value, collect_terms},
    [TX_OP_SUB] = {known_value, collect_terms},
    [TX_OP_NEG] = {known_value, collect_terms},
    [TX_OP_MUL] = {known_value, collect_terms},
    [TX_OP_SHL] = {known_value},
    [TX_OP_FLOORDIV] = {known_value, divide_multiples, divide_twice, divide_common_factor},
    [TX_OP_FLOORMOD] = {known_value, reduce_multiples, reduce_twice},
    [TX_OP_DIV] = {known_value, truncate_positive},
    [TX_OP_MOD] = {known_value, truncate_positive},
    [TX_OP_CEILDIV] = {known_value, divide_up_multiple},
    [TX_OP_MIN] = {known_value, choose_proved},
    [TX_OP_MAX] = {known_value, choose_proved},
    [TX_OP_BAND] = {known_value, mask_low, mask_nothing},
    [TX_OP_BOR] = {known_value, join_disjoint},
    [TX_OP_BXOR] = {known_value, join_disjoint},
    [TX_OP_SHR] = {known_value, shift_multiple},
    [TX_OP_SELECT] = {choose_known, known_value},
    [TX_OP_IF_THEN_ELSE] = {choose_known, known_value},
    [TX_OP_CAST] = {known_value, cast_once},
    [TX_OP_ABS] = {known_value},
    [TX_OP_EQ] = {known_condition},
    [TX_OP_NE] = {known_condition},
    [TX_OP_LT] = {known_condition},
    [TX_OP_LE] = {known_condition},
    [TX_OP_GT] = {known_condition},
    [TX_OP_GE] = {known_condition},
    [TX_OP_NOT] = {known_condition},
    [TX_OP_AND] = {known_condition, drop_side},
    [TX_OP_OR] = {known_condition, drop_side},
    [TX_OP_VAR] = {known_value},
    [TX_OP_THREAD_IDX] = {known_value},
    [TX_OP_BLOCK_IDX] = {known_value},
    [TX_OP_CLUSTER_CTA] = {known_value},
    [TX_OP_CLUSTER_ID] = {known_value},
    [TX_OP_CLUSTER_RANK] = {known_value},
    [TX_OP_WARP_ID] = {known_value},
    [TX_OP_WARPGROUP_ID] = {known_value},
    [TX_OP_BLOCK_DIM] = {known_value},
    [TX_OP_GRID_DIM] = {known_value},
};

static bool
is_sum(const tx_node *n)
{
    return n->op == TX_OP_ADD || n->op == TX_OP_SUB || n->op == TX_OP_NEG ||
           (n->op == TX_OP_MUL && (n->arg[0]->op == TX_OP_INT || n->arg[1]->op == TX_OP_INT));
}

/* A divisor or shift count that turned out to be refused by the folder stays as it was written. */
static bool
is_refused(const tx_node *n, const tx_node *b)
{
    if (b->op != TX_OP_INT)
        return false;
    if (n->op == TX_OP_SHL || n->op == TX_OP_SHR)
        return b->u.i < 0 || b->u.i >= (int64_t)tx_bits(n->dtype);
    return b->u.i == 0 && (n->op == TX_OP_FLOORDIV || n->op == TX_OP_FLOORMOD || n->op == TX_OP_DIV ||
                           n->op == TX_OP_MOD || n->op == TX_OP_CEILDIV);
}

static const tx_node *
with_simple_operands(tx_facts *f, const tx_node *n)
{
    const tx_node *few[4], **args = few, *r = n;
    bool changed = false;

    if (n->nargs > 4 && (args = tx_new(f->c, const tx_node *, n->nargs)) == NULL)
        return n;
    for (uint32_t i = 0; i < n->nargs; i++) {
        args[i] = n->arg[i]
                      ? simplify_simplify(f, n->arg[i], is_sum(n) && is_sum(n->arg[i]) && n->dtype == n->arg[i]->dtype)
                      : NULL;
        if (!args[i] || (i == 1 && args[1] != n->arg[1] && is_refused(n, args[1])))
            args[i] = n->arg[i];
        changed |= args[i] != n->arg[i];
    }
    if (changed)
        r = tx_has(n->op, TX_PROP_FOLDS) ? tx_refold(f->c, n, args) : tx_with_args(f->c, n, args);
    return r ? r : n;
}

/* part: n is an operand of a sum, which collects the terms of all of it at once. */
static const tx_node *
simplify_simplify(tx_facts *f, const tx_node *n, bool part)
{
    tx_map *memo = part ? &f->simple_part : &f->simple;
    const tx_node *r = n;
    tx_span span = f->c->span;
    uint64_t known;

    if (n->op == TX_OP_INT || n->op == TX_OP_FLOAT || n->op == TX_OP_STR || f->depth > 400)
        return n;
    if (tx_map_get(memo, tx_memo_key(f, n), &known))
        return (const tx_node *)(uintptr_t)known;
    f->depth++;
    if (n->span)
        f->c->span = n->span;
    if (n->op != TX_OP_ADDRESS_OF)
        r = with_simple_operands(f, n);
    else if (n->arg[0]->op == TX_OP_LOAD) { /* the load stays the load whose address it is */
        const tx_node *load = with_simple_operands(f, n->arg[0]);
        r = load != n->arg[0] ? tx_with_args(f->c, n, &load) : n;
    }
    if (r->op < TX_OP__COUNT && tx_is_pure(r) && tx_is_countable(r->dtype) && tx_lanes(r->dtype) == 1)
        for (unsigned i = 0; i < 6 && rules[r->op][i]; i++) {
            const tx_node *better;
            if (part && rules[r->op][i] == collect_terms)
                continue;
            better = rules[r->op][i](f, r);
            if (better && better != r) {
                r = simplify_simplify(f, better, part);
                break;
            }
        }
    f->c->span = span;
    f->depth--;
    (void)tx_map_put(memo, tx_memo_key(f, n), (uint64_t)(uintptr_t)r);
    return r;
}

const tx_node *
tx_simplify(tx_facts *f, const tx_node *e)
{
    return e ? simplify_simplify(f, e, false) : NULL;
}
