/* Proofs about conditions: by what was assumed, by bounds, by divisibility, and by the difference of both sides.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

static bool
listed(const tx_node *const *at, uint32_t n, const tx_node *cond)
{
    while (n-- > 0)
        if (tx_same_expr(at[n], cond))
            return true;
    return false;
}

/* a - b - less >= 0 */
static bool
is_above(tx_facts *f, const tx_lin *a, const tx_lin *b, int64_t less)
{
    tx_lin d = *a;

    tx_lin_add(&d, b, -1);
    if (!tx_sub_i64(d.c, less, &d.c))
        return false;
    return tx_prove_least(f, &d);
}

static int64_t
prove_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* a - b is never 0: its terms have a common factor that its constant lacks. */
static bool
never_meets(tx_facts *f, const tx_lin *a, const tx_lin *b)
{
    tx_lin d = *a;
    int64_t g = 0, c;

    tx_lin_add(&d, b, -1);
    c = d.c;
    for (uint32_t i = 0; i < d.n && !d.failed; i++) {
        int64_t m, r, km, kr;
        tx_divisor_of(f, d.t[i].atom, &m, &r);
        if (!tx_mul_i64(d.t[i].k, m, &km) || !tx_mul_i64(d.t[i].k, r, &kr) || !tx_add_i64(c, kr, &c) || km == INT64_MIN)
            return false;
        g = prove_common_divisor(g, km);
    }
    return !d.failed && (g == 0 ? c != 0 : tx_floor_mod(c, g) != 0);
}

static int
prove_compare(tx_facts *f, unsigned op, const tx_node *x, const tx_node *y)
{
    tx_lin a, b;

    tx_lin_exact(f, x, &a);
    tx_lin_exact(f, y, &b);
    if (a.failed || b.failed)
        return -1;
    switch (op) {
    case TX_OP_LT: return is_above(f, &b, &a, 1) ? 1 : is_above(f, &a, &b, 0) ? 0 : -1;
    case TX_OP_LE: return is_above(f, &b, &a, 0) ? 1 : is_above(f, &a, &b, 1) ? 0 : -1;
    case TX_OP_GT: return is_above(f, &a, &b, 1) ? 1 : is_above(f, &b, &a, 0) ? 0 : -1;
    case TX_OP_GE: return is_above(f, &a, &b, 0) ? 1 : is_above(f, &b, &a, 1) ? 0 : -1;
    default: /* EQ */
        if (is_above(f, &a, &b, 1) || is_above(f, &b, &a, 1) || never_meets(f, &a, &b))
            return 0;
        return is_above(f, &a, &b, 0) && is_above(f, &b, &a, 0) ? 1 : -1;
    }
}

static int
negation(int r)
{
    return r < 0 ? r : !r;
}

int
tx_prove(tx_facts *f, const tx_node *cond)
{
    int a, b, r = -1;

    if (!cond || !tx_is_bool(cond->dtype) || tx_lanes(cond->dtype) != 1)
        return -1;
    if (cond->op == TX_OP_INT)
        return cond->u.i != 0;
    if (f->depth > 200)
        return -1;
    if (tx_is_pure(cond)) {
        if (listed(f->holds.at, f->holds.n, cond))
            return 1;
        if (listed(f->fails.at, f->fails.n, cond))
            return 0;
    }
    f->depth++;
    switch (cond->op) {
    case TX_OP_LIKELY: r = tx_prove(f, cond->arg[0]); break;
    case TX_OP_NOT: r = negation(tx_prove(f, cond->arg[0])); break;
    case TX_OP_AND:
        a = tx_prove(f, cond->arg[0]);
        b = a == 0 ? -1 : tx_prove(f, cond->arg[1]);
        r = a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1;
        break;
    case TX_OP_OR:
        a = tx_prove(f, cond->arg[0]);
        b = a == 1 ? -1 : tx_prove(f, cond->arg[1]);
        r = a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : -1;
        break;
    case TX_OP_EQ:
    case TX_OP_NE:
    case TX_OP_LT:
    case TX_OP_LE:
    case TX_OP_GT:
    case TX_OP_GE:
        if (tx_is_countable(cond->arg[0]->dtype) && tx_is_countable(cond->arg[1]->dtype))
            r = cond->op == TX_OP_NE ? negation(prove_compare(f, TX_OP_EQ, cond->arg[0], cond->arg[1]))
                                     : prove_compare(f, cond->op, cond->arg[0], cond->arg[1]);
        break;
    default: {
        tx_bounds v = tx_bounds_of(f, cond);
        r = v.lo == v.hi ? v.lo != 0 : -1;
    }
    }
    f->depth--;
    return r;
}

bool
tx_prove_nonneg(tx_facts *f, const tx_node *e)
{
    tx_lin l;

    if (!tx_is_countable(e->dtype) || tx_lanes(e->dtype) != 1)
        return tx_is_countable(e->dtype) && tx_bounds_of(f, e).lo >= 0;
    tx_lin_exact(f, e, &l);
    return tx_prove_least(f, &l);
}

/* The last lane of a ramp: base + stride * (lanes - 1). Exact once it is known to lie below the extent. */
static bool
last_lane(tx_facts *f, const tx_node *ramp, tx_lin *l)
{
    int64_t stride, far;

    tx_lin_exact(f, ramp->arg[0], l);
    return tx_const_i64(ramp->arg[1], &stride) && stride >= 0 &&
           tx_mul_i64(stride, (int64_t)tx_lanes(ramp->dtype) - 1, &far) && tx_add_i64(l->c, far, &l->c);
}

bool
tx_prove_in_range(tx_facts *f, const tx_node *e, const tx_node *extent)
{
    tx_lin x, last, end;

    if (!tx_is_countable(e->dtype) || !tx_is_countable(extent->dtype) || tx_lanes(extent->dtype) != 1)
        return false;
    if (e->op == TX_OP_BROADCAST)
        return tx_prove_in_range(f, e->arg[0], extent);
    tx_lin_exact(f, extent, &end);
    if (e->op == TX_OP_RAMP) {
        tx_bounds most = tx_bounds_of(f, extent);
        tx_lin_exact(f, e->arg[0], &x);
        if (!last_lane(f, e, &last) || most.hi > tx_dtype_range(e->dtype).hi)
            return false; /* a lane might wrap */
    } else if (tx_lanes(e->dtype) != 1) {
        tx_bounds b = tx_bounds_of(f, e);
        return b.lo >= 0 && b.hi < tx_bounds_of(f, extent).lo;
    } else {
        tx_lin_exact(f, e, &x);
        last = x;
    }
    return tx_prove_least(f, &x) && is_above(f, &end, &last, 1);
}
