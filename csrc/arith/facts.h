/* What the files of the simplifier share: the facts in force, linear forms, saturating integers. Owner: arith.
 * Private to arith/. Must not know passes or back ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_ARITH_FACTS_H
#define TX_ARITH_FACTS_H

#include "arith/arith.h"

enum { TX_LIN_TERMS = 12 };

/* c + sum of k * atom, over the integers (exact) or modulo the dtype's size (ring). Atoms are expressions with different
 * value numbers. */
typedef struct tx_lin {
    int64_t c;
    uint32_t n;
    uint32_t cost; /* nodes of the sum as it was written; an atom counts one */
    bool failed;   /* too many terms, or a coefficient overflows */
    struct tx_lin_term {
        const tx_node *atom;
        int64_t k;
    } t[TX_LIN_TERMS];
} tx_lin;

/* What is known of one expression, mostly a variable. Entries of one key form a chain; the latest holds all. */
typedef struct tx_known {
    uint64_t key;
    uint32_t before; /* entry that this one hides + 1, or 0 */
    tx_bounds range;
    int64_t multiple, remainder; /* 1, 0: nothing */
    const tx_node *equal;        /* or NULL */
} tx_known;

typedef struct tx_facts_mark {
    uint32_t known, least, holds, fails, serial;
} tx_facts_mark;

struct tx_facts {
    tx_ctx *c;
    tx_map index; /* key -> entry + 1, 0: none */
    TX_VEC(tx_known) known;
    TX_VEC(tx_lin) least;                 /* linear forms that are >= 0 */
    TX_VEC(const tx_node *) holds, fails; /* conditions that are neither */
    TX_VEC(tx_facts_mark) marks;
    uint32_t serial, last_serial; /* number of the present set of facts, for the memo tables */
    uint32_t depth;               /* of recursion */
    tx_map bounds, divisors, simple,
        simple_part; /* (expression, serial) -> entry of `ranges`, `multiples`, or the expression */
    TX_VEC(tx_bounds) ranges;
    TX_VEC(tx_bounds) multiples;
};

/* Key of a node under the present facts, for memo tables. */
static inline uint64_t
tx_memo_key(const tx_facts *f, const tx_node *n)
{
    return (uint64_t)(uintptr_t)n >> 3 ^ (uint64_t)f->serial << 45;
}

static inline bool
tx_is_pure(const tx_node *n)
{
    return !(n->flags & TX_NF_IMPURE);
}

/* Integers or bools, and not wider than 64 bits. */
static inline bool
tx_is_countable(tx_dtype t)
{
    return (tx_is_int(t) && tx_bits(t) <= 64) || tx_is_bool(t);
}

/* ---- facts.c ---- */
const tx_known *tx_known_of(const tx_facts *f, const tx_node *n); /* or NULL */

/* ---- bounds.c: INT64_MIN and INT64_MAX stand for the infinities ---- */
int64_t tx_sat_add(int64_t a, int64_t b);
int64_t tx_sat_mul(int64_t a, int64_t b);
int64_t tx_floor_div(int64_t a, int64_t b); /* b > 0 */
static inline int64_t
tx_floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r < 0 ? r + b : r;
}
tx_bounds tx_dtype_range(tx_dtype t);
tx_bounds tx_var_range(const tx_var *v); /* of a variable of which nothing is known */
/* Whether the operator's exact result, for every value that its operands may have, is a value of its dtype. */
bool tx_never_wraps(tx_facts *f, const tx_node *n);

/* ---- linear.c ---- */
void tx_lin_exact(tx_facts *f, const tx_node *n, tx_lin *out); /* equal to n's value as an integer */
void tx_lin_plain(tx_facts *f, const tx_node *n, tx_lin *out); /* the same through operators of n's dtype only */
void
tx_lin_ring(tx_facts *f, const tx_node *n, tx_lin *out); /* equal to n modulo 2^bits; operators of n's dtype only */
void tx_lin_add(tx_lin *to, const tx_lin *l, int64_t k); /* to += k * l */
void tx_lin_term(tx_lin *to, const tx_node *atom, int64_t k);
tx_bounds tx_lin_bounds(tx_facts *f, const tx_lin *l);
const tx_node *tx_lin_build(tx_facts *f, const tx_lin *l, tx_dtype t);
uint32_t tx_lin_cost(const tx_lin *l);             /* nodes that tx_lin_build makes, atoms counting one */
bool tx_prove_least(tx_facts *f, const tx_lin *l); /* l >= 0 */

#endif
