/* Facts in force: ranges, equalities and divisibility of single expressions, and linear inequalities between several.
 * Everything that is added after a mark goes with it. Each set of facts has a serial number, which keys the memo tables; a
 * pop gives the earlier number back, since it gives the earlier facts back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/facts.h"

tx_facts *
tx_facts_new(tx_ctx *c)
{
    tx_facts *f = tx_new(c, tx_facts, 1);

    if (f)
        f->c = c;
    return f;
}

void
tx_facts_free(tx_facts *f)
{
    if (!f)
        return;
    tx_map_free(&f->index);
    tx_map_free(&f->bounds);
    tx_map_free(&f->divisors);
    tx_map_free(&f->simple);
    tx_map_free(&f->simple_part);
}

static void
forget(tx_facts *f)
{
    tx_map_free(&f->bounds);
    tx_map_free(&f->divisors);
    tx_map_free(&f->simple);
    tx_map_free(&f->simple_part);
    f->bounds = f->divisors = f->simple = f->simple_part = (tx_map){0};
    f->ranges.n = f->multiples.n = 0;
}

/* The facts are others from here on. Serials have 19 bits in a memo key; after that many, the tables start again. */
static void
changed(tx_facts *f)
{
    if (f->last_serial >= (1u << 19) - 1) {
        forget(f);
        for (uint32_t i = 0; i < f->marks.n; i++)
            f->marks.at[i].serial = i;
        f->last_serial = f->marks.n;
    }
    f->serial = ++f->last_serial;
}

uint32_t
tx_facts_push(tx_facts *f)
{
    tx_facts_mark m = {f->known.n, f->least.n, f->holds.n, f->fails.n, f->serial};

    if (f->bounds.n > 1u << 18)
        forget(f);
    (void)tx_push(f->c, &f->marks, m);
    return f->marks.n - 1;
}

void
tx_facts_pop(tx_facts *f, uint32_t mark)
{
    tx_facts_mark m;

    if (mark >= f->marks.n)
        return;
    m = f->marks.at[mark];
    while (f->known.n > m.known) {
        const tx_known *k = &f->known.at[--f->known.n];
        (void)tx_map_put(&f->index, k->key, k->before); /* the key is there: nothing is allocated */
    }
    f->least.n = m.least;
    f->holds.n = m.holds;
    f->fails.n = m.fails;
    f->serial = m.serial;
    f->marks.n = mark;
}

/* ---- single expressions ------------------------------------------------------------------------------------------ */

static uint64_t
facts_key_of(const tx_node *n)
{
    return tx_is_pure(n) && n->vn ? n->vn : (uint64_t)(uintptr_t)n;
}

const tx_known *
tx_known_of(const tx_facts *f, const tx_node *n)
{
    uint64_t at;

    if (f->known.n == 0 || !tx_map_get(&f->index, facts_key_of(n), &at) || at == 0)
        return NULL;
    return &f->known.at[at - 1];
}

/* Nothing was asked about n, or about anything with n in it, since the facts last changed: a variable that is just being
 * bound. What is learnt about it changes no other answer, so the memo tables stay good, and a run of bindings stays linear. */
static bool
is_unseen(const tx_facts *f, const tx_node *n)
{
    uint64_t key = tx_memo_key(f, n), at;

    return n->op == TX_OP_VAR && !tx_map_get(&f->bounds, key, &at) && !tx_map_get(&f->divisors, key, &at) &&
           !tx_map_get(&f->simple, key, &at) && !tx_map_get(&f->simple_part, key, &at);
}

/* A new entry for n, starting from what is known; NULL when out of memory. */
static tx_known *
amend(tx_facts *f, const tx_node *n)
{
    const tx_known *old = tx_known_of(f, n);
    tx_known k = old ? *old : (tx_known){.range = {INT64_MIN, INT64_MAX}, .multiple = 1};

    k.key = facts_key_of(n);
    k.before = old ? (uint32_t)(old - f->known.at) + 1 : 0;
    if (old || !is_unseen(f, n))
        changed(f);
    if (!tx_push(f->c, &f->known, k) || !tx_map_put(&f->index, k.key, f->known.n))
        return NULL;
    return &f->known.at[f->known.n - 1];
}

/* n lies in lo..hi. An empty range means that the code is never reached: then nothing is learnt. */
static bool
narrow(tx_facts *f, const tx_node *n, int64_t lo, int64_t hi)
{
    bool unseen = !tx_known_of(f, n) && is_unseen(f, n);
    tx_bounds now = unseen ? tx_var_range(n->u.var) : tx_bounds_of(f, n);
    tx_known *k;

    if (lo <= now.lo && hi >= now.hi)
        return true;
    if (lo < now.lo)
        lo = now.lo;
    if (hi > now.hi)
        hi = now.hi;
    if (lo > hi || n->op == TX_OP_INT)
        return true;
    if ((k = amend(f, n)) == NULL)
        return false;
    k->range = (tx_bounds){lo, hi};
    return true;
}

/* l >= 0 holds: kept as it is, and as a range of each of its atoms. */
static bool
add_least(tx_facts *f, const tx_lin *l)
{
    if (l->failed || l->n == 0)
        return true;
    if (!tx_push(f->c, &f->least, *l))
        return false;
    changed(f);
    for (uint32_t i = 0; i < l->n; i++) {
        tx_lin rest = *l;
        int64_t k = l->t[i].k, most;
        rest.t[i] = rest.t[--rest.n];
        most = tx_lin_bounds(f, &rest).hi;
        if (most == INT64_MAX || most == INT64_MIN || k == INT64_MIN)
            continue;
        /* k * atom >= -most */
        if (k > 0 ? !narrow(f, l->t[i].atom, -tx_floor_div(most, k), INT64_MAX)
                  : !narrow(f, l->t[i].atom, INT64_MIN, tx_floor_div(most, -k)))
            return false;
    }
    return true;
}

/* a - b - less >= 0 */
static bool
add_order(tx_facts *f, const tx_node *a, const tx_node *b, int64_t less)
{
    tx_lin x, y;

    tx_lin_exact(f, a, &x);
    tx_lin_exact(f, b, &y);
    tx_lin_add(&x, &y, -1);
    if (!tx_add_i64(x.c, -less, &x.c))
        return true;
    return add_least(f, &x) && narrow(f, a, tx_sat_add(tx_bounds_of(f, b).lo, less), INT64_MAX) &&
           narrow(f, b, INT64_MIN, tx_sat_add(tx_bounds_of(f, a).hi, -less));
}

bool
tx_facts_range(tx_facts *f, const tx_var *v, const tx_node *lo, const tx_node *hi)
{
    bool ok = true;

    if (!tx_is_countable(v->dtype))
        return true;
    if (lo && tx_is_pure(lo) && tx_is_countable(lo->dtype))
        ok = add_order(f, v->node, lo, 0);
    if (ok && hi && tx_is_pure(hi) && tx_is_countable(hi->dtype))
        ok = add_order(f, hi, v->node, 0);
    return ok;
}

bool
tx_facts_range_i64(tx_facts *f, const tx_var *v, int64_t lo, int64_t hi)
{
    return !tx_is_countable(v->dtype) || narrow(f, v->node, lo, hi);
}

bool
tx_facts_equal(tx_facts *f, const tx_var *v, const tx_node *value)
{
    tx_known *k;

    if (!value || !tx_is_pure(value) || !tx_is_countable(v->dtype) || value->dtype != v->dtype || value == v->node)
        return true;
    if ((k = amend(f, v->node)) == NULL)
        return false;
    k->equal = value;
    return true;
}

bool
tx_facts_multiple(tx_facts *f, const tx_var *v, int64_t m, int64_t r)
{
    tx_known *k;

    if (m <= 1 || !tx_is_countable(v->dtype))
        return true;
    if ((k = amend(f, v->node)) == NULL)
        return false;
    k->multiple = m;
    k->remainder = tx_floor_mod(r, m);
    return true;
}

bool
tx_facts_coord(tx_facts *f, unsigned op, int axis, int64_t lo, int64_t hi)
{
    const tx_node *n = tx_coord(f->c, op, axis);

    return n && narrow(f, n, lo, hi);
}

/* ---- conditions -------------------------------------------------------------------------------------------------- */

/* x % m == r says what x is a multiple of. */
static bool
learn_multiple(tx_facts *f, const tx_node *mod, const tx_node *value)
{
    int64_t m, r;
    tx_known *k;

    if (mod->op != TX_OP_FLOORMOD || !tx_const_i64(mod->arg[1], &m) || !tx_const_i64(value, &r) || m <= 1 || r < 0 ||
        r >= m || mod->arg[0]->op == TX_OP_INT)
        return true;
    if ((k = amend(f, mod->arg[0])) == NULL)
        return false;
    k->multiple = m;
    k->remainder = r;
    return true;
}

static bool
learn_comparison(tx_facts *f, unsigned op, const tx_node *a, const tx_node *b)
{
    tx_bounds x, y;

    switch (op) {
    case TX_OP_LT: return add_order(f, b, a, 1);
    case TX_OP_LE: return add_order(f, b, a, 0);
    case TX_OP_GT: return add_order(f, a, b, 1);
    case TX_OP_GE: return add_order(f, a, b, 0);
    case TX_OP_EQ:
        return add_order(f, a, b, 0) && add_order(f, b, a, 0) && learn_multiple(f, a, b) && learn_multiple(f, b, a);
    default: /* a != b says something when one end of a's range is b */
        x = tx_bounds_of(f, a);
        y = tx_bounds_of(f, b);
        if (x.lo == y.hi && x.lo != INT64_MIN && x.lo != INT64_MAX)
            return add_order(f, a, b, 1);
        if (x.hi == y.lo && x.hi != INT64_MIN && x.hi != INT64_MAX)
            return add_order(f, b, a, 1);
        return true;
    }
}

static bool
assume(tx_facts *f, const tx_node *cond, bool truth)
{
    bool ok;

    if (!cond || !tx_is_pure(cond) || cond->op == TX_OP_INT || tx_lanes(cond->dtype) != 1 || f->depth > 64)
        return true;
    f->depth++;
    if (cond->op == TX_OP_LIKELY)
        ok = assume(f, cond->arg[0], truth);
    else if (cond->op == TX_OP_NOT)
        ok = assume(f, cond->arg[0], !truth);
    else if (cond->op == (truth ? TX_OP_AND : TX_OP_OR))
        ok = assume(f, cond->arg[0], truth) && assume(f, cond->arg[1], truth);
    else if (truth ? !tx_push(f->c, &f->holds, cond) : !tx_push(f->c, &f->fails, cond))
        ok = false;
    else if (tx_ops[cond->op].rule == TX_RULE_COMPARE && tx_is_countable(cond->arg[0]->dtype) &&
             tx_is_countable(cond->arg[1]->dtype))
        ok = learn_comparison(f, truth ? cond->op : cond->op ^ 1, cond->arg[0], cond->arg[1]);
    else
        ok = true;
    f->depth--;
    changed(f);
    return ok;
}

bool
tx_facts_assume(tx_facts *f, const tx_node *cond)
{
    return assume(f, cond, true);
}
