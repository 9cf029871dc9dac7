/* Linear forms: a sum of atoms with integer coefficients. The exact form of an expression equals its value as an integer;
 * where an operator may wrap, it becomes an atom. The ring form equals it modulo 2^bits and looks through every operator of
 * the same dtype. Proofs that a form is not negative combine bounds of atoms with the inequalities in force.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

void
tx_lin_term(tx_lin *to, const tx_node *atom, int64_t k)
{
    for (uint32_t i = 0; i < to->n; i++) {
        if (!tx_same_expr(to->t[i].atom, atom))
            continue;
        if (!tx_add_i64(to->t[i].k, k, &to->t[i].k) || to->t[i].k == INT64_MIN)
            to->failed = true;
        else if (to->t[i].k == 0) { /* order is kept: printed text follows it */
            memmove(&to->t[i], &to->t[i + 1], (to->n - i - 1) * sizeof to->t[0]);
            to->n--;
        }
        return;
    }
    if (k == 0)
        return;
    if (to->n == TX_LIN_TERMS)
        to->failed = true;
    else
        to->t[to->n++] = (struct tx_lin_term){atom, k};
}

static void
add_constant(tx_lin *to, int64_t v)
{
    if (!tx_add_i64(to->c, v, &to->c) || to->c == INT64_MIN || to->c == INT64_MAX)
        to->failed = true;
}

void
tx_lin_add(tx_lin *to, const tx_lin *l, int64_t k)
{
    int64_t v;

    to->failed |= l->failed || !tx_mul_i64(l->c, k, &v);
    if (to->failed)
        return;
    add_constant(to, v);
    for (uint32_t i = 0; i < l->n && !to->failed; i++) {
        if (!tx_mul_i64(l->t[i].k, k, &v))
            to->failed = true;
        else
            tx_lin_term(to, l->t[i].atom, v);
    }
}

/* ---- from expressions -------------------------------------------------------------------------------------------- */

typedef struct maker {
    tx_facts *f;
    tx_lin *out;
    tx_dtype ring; /* 0: exact */
    tx_dtype only; /* 0: through casts and bound variables; else operators of this dtype only */
    int depth;
} maker;

static bool
looks_through(const maker *m, const tx_node *n)
{
    return m->ring ? n->dtype == m->ring : tx_never_wraps(m->f, n);
}

static void linear_collect(maker *m, const tx_node *n, int64_t k);

static void
collect_product(maker *m, const tx_node *n, const tx_node *x, int64_t by, int64_t k)
{
    int64_t kk;

    m->out->cost += 2;
    if (!looks_through(m, n) || !tx_mul_i64(k, by, &kk))
        tx_lin_term(m->out, n, k);
    else
        linear_collect(m, x, kk);
}

static void
linear_collect(maker *m, const tx_node *n, int64_t k)
{
    const tx_known *known;
    int64_t v, kv;

    if (m->out->failed)
        return;
    if (m->depth > 200 || tx_lanes(n->dtype) != 1 || !tx_is_countable(n->dtype)) {
        m->out->failed = m->out->failed || m->depth > 200;
        m->out->cost++;
        tx_lin_term(m->out, n, k);
        return;
    }
    m->depth++;
    switch (n->op) {
    case TX_OP_INT:
        m->out->cost++;
        if (n->u.i == INT64_MIN || n->u.i == INT64_MAX || (n->u.i < 0 && !tx_is_signed(n->dtype)) ||
            !tx_mul_i64(n->u.i, k, &kv))
            tx_lin_term(m->out, n, k);
        else
            add_constant(m->out, kv);
        break;
    case TX_OP_ADD:
    case TX_OP_SUB:
        if (!looks_through(m, n) || k == INT64_MIN)
            goto atom;
        m->out->cost++;
        linear_collect(m, n->arg[0], k);
        linear_collect(m, n->arg[1], n->op == TX_OP_ADD ? k : -k);
        break;
    case TX_OP_NEG:
        if (!looks_through(m, n) || k == INT64_MIN)
            goto atom;
        m->out->cost++;
        linear_collect(m, n->arg[0], -k);
        break;
    case TX_OP_MUL:
        if (tx_const_i64(n->arg[1], &v) && (v >= 0 || tx_is_signed(n->dtype)))
            collect_product(m, n, n->arg[0], v, k);
        else if (tx_const_i64(n->arg[0], &v) && (v >= 0 || tx_is_signed(n->dtype)))
            collect_product(m, n, n->arg[1], v, k);
        else
            goto atom;
        break;
    case TX_OP_SHL:
        if (!tx_const_i64(n->arg[1], &v) || v < 0 || v > 61 || v >= (int64_t)tx_bits(n->dtype))
            goto atom;
        collect_product(m, n, n->arg[0], (int64_t)1 << v, k);
        break;
    case TX_OP_CAST:
        if (m->only || !looks_through(m, n) || tx_is_bool(n->arg[0]->dtype))
            goto atom;
        m->out->cost++;
        linear_collect(m, n->arg[0], k);
        break;
    case TX_OP_LIKELY: linear_collect(m, n->arg[0], k); break;
    case TX_OP_VAR:
        known = m->only ? NULL : tx_known_of(m->f, n);
        if (!known || !known->equal)
            goto atom;
        linear_collect(m, known->equal, k);
        break;
    default:
    atom:
        m->out->cost++;
        tx_lin_term(m->out, n, k);
    }
    m->depth--;
}

static void
linear_start(tx_facts *f, const tx_node *n, tx_lin *out, tx_dtype ring, tx_dtype only)
{
    maker m = {f, out, ring, only, 0};

    out->c = 0;
    out->n = out->cost = 0;
    out->failed = false;
    linear_collect(&m, n, 1);
}

void
tx_lin_exact(tx_facts *f, const tx_node *n, tx_lin *out)
{
    linear_start(f, n, out, 0, 0);
}

void
tx_lin_plain(tx_facts *f, const tx_node *n, tx_lin *out)
{
    linear_start(f, n, out, 0, n->dtype);
}

/* Coefficients modulo 2^bits, nearest to 0. */
static void
linear_reduce(tx_lin *l, tx_dtype t)
{
    unsigned bits = tx_bits(t);
    uint32_t kept = 0;

    if (bits >= 64 || l->failed)
        return;
    for (uint32_t i = 0; i < l->n; i++) {
        int64_t k = (int64_t)((uint64_t)l->t[i].k << (64 - bits)) >> (64 - bits);
        if (k)
            l->t[kept++] = (struct tx_lin_term){l->t[i].atom, k};
    }
    l->n = kept;
    l->c = (int64_t)((uint64_t)l->c << (64 - bits)) >> (64 - bits);
}

void
tx_lin_ring(tx_facts *f, const tx_node *n, tx_lin *out)
{
    linear_start(f, n, out, n->dtype, n->dtype);
    linear_reduce(out, n->dtype);
}

/* ---- to expressions ---------------------------------------------------------------------------------------------- */

uint32_t
tx_lin_cost(const tx_lin *l)
{
    uint32_t cost = 0, negative = 0;

    for (uint32_t i = 0; i < l->n; i++) {
        int64_t k = l->t[i].k;
        cost += k == 1 || k == -1 ? 1 : 3;
        negative += k < 0;
    }
    cost += l->n ? l->n - 1 : 0;
    cost += l->n == 0 ? 1 : l->c == 0 ? 0 : 2;
    /* only negative terms: -x, or c - x, which saves an operator */
    if (l->n && negative == l->n)
        cost += l->c > 0 ? 0 : 1;
    return cost;
}

static const tx_node *
linear_scaled(tx_ctx *c, const tx_node *atom, int64_t k, tx_dtype t)
{
    return k == 1 ? atom : tx_binary(c, TX_OP_MUL, atom, tx_int(c, t, k));
}

/* Terms with positive coefficients first, each in its order, then the others, then the constant. */
const tx_node *
tx_lin_build(tx_facts *f, const tx_lin *l, tx_dtype t)
{
    tx_ctx *c = f->c;
    const tx_node *r = NULL;
    int64_t rest = l->c;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->t[i].k > 0) {
            const tx_node *x = linear_scaled(c, l->t[i].atom, l->t[i].k, t);
            r = r ? tx_binary(c, TX_OP_ADD, r, x) : x;
        }
    if (!r && rest > 0) {
        r = tx_int(c, t, rest);
        rest = 0;
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (l->t[i].k < 0) {
            const tx_node *x = linear_scaled(c, l->t[i].atom, -l->t[i].k, t);
            r = r ? tx_binary(c, TX_OP_SUB, r, x) : tx_unary(c, TX_OP_NEG, x);
        }
    if (!r)
        return tx_int(c, t, rest);
    if (rest > 0 || (rest < 0 && !tx_is_signed(t) && tx_bits(t) == 64 && rest == INT64_MIN))
        r = tx_binary(c, TX_OP_ADD, r, tx_int(c, t, rest));
    else if (rest < 0)
        r = tx_binary(c, TX_OP_SUB, r, tx_int(c, t, -rest));
    return r;
}

/* ---- bounds and proofs ------------------------------------------------------------------------------------------- */

/* sum + k * bound, or `unknown` for good once anything overflows. */
static int64_t
linear_end(int64_t sum, int64_t k, int64_t bound, int64_t unknown)
{
    int64_t r;

    if (sum == unknown || bound == INT64_MIN || bound == INT64_MAX || !tx_mul_i64(k, bound, &r) ||
        !tx_add_i64(sum, r, &r))
        return unknown;
    return r;
}

tx_bounds
tx_lin_bounds(tx_facts *f, const tx_lin *l)
{
    tx_bounds sum = {l->c, l->c};

    if (l->failed)
        return (tx_bounds){INT64_MIN, INT64_MAX};
    for (uint32_t i = 0; i < l->n; i++) {
        tx_bounds b = tx_bounds_of(f, l->t[i].atom);
        int64_t k = l->t[i].k;
        if (b.hi == INT64_MIN || b.lo == INT64_MAX) /* constants at the edge look like infinities */
            return (tx_bounds){INT64_MIN, INT64_MAX};
        sum.lo = linear_end(sum.lo, k, k > 0 ? b.lo : b.hi, INT64_MIN);
        sum.hi = linear_end(sum.hi, k, k > 0 ? b.hi : b.lo, INT64_MAX);
    }
    return sum;
}

typedef struct proof {
    tx_facts *f;
    int budget; /* inequalities that may still be tried */
} proof;

/* l = k * fact + rest with k > 0 and one atom gone: l >= 0 when rest >= 0. */
static bool
linear_prove(proof *p, const tx_lin *l, int depth)
{
    if (l->failed)
        return false;
    if (tx_lin_bounds(p->f, l).lo >= 0)
        return true;
    if (depth == 0)
        return false;
    for (uint32_t i = p->f->least.n; i-- > 0;) {
        const tx_lin *fact = &p->f->least.at[i];
        for (uint32_t a = 0; a < l->n; a++)
            for (uint32_t b = 0; b < fact->n; b++) {
                tx_lin rest;
                int64_t k;
                if (!tx_same_expr(l->t[a].atom, fact->t[b].atom) || l->t[a].k % fact->t[b].k ||
                    (k = l->t[a].k / fact->t[b].k) <= 0)
                    continue;
                if (p->budget-- <= 0)
                    return false;
                rest = *l;
                tx_lin_add(&rest, fact, -k);
                if (linear_prove(p, &rest, depth - 1))
                    return true;
            }
    }
    return false;
}

bool
tx_prove_least(tx_facts *f, const tx_lin *l)
{
    proof p = {f, 100};

    return linear_prove(&p, l, 3);
}
