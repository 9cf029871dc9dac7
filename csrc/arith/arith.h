/* The one simplifier: bounds, divisibility, linear forms, facts in force. Used by passes and to prove accesses in range.
 * Owner: arith. Knows ir/ and base/ only. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_ARITH_H
#define TX_ARITH_H

#include "ir/ir.h"

/* Facts are scoped: push/pop around loops and branches. Memo tables are keyed by the facts in force. */
typedef struct tx_facts tx_facts;
tx_facts *tx_facts_new(tx_ctx *c); /* NULL: out of memory */
void tx_facts_free(tx_facts *f);
uint32_t tx_facts_push(tx_facts *f);
void tx_facts_pop(tx_facts *f, uint32_t mark);
/* lo <= v <= hi, both inclusive; either may be NULL (unknown). They may be expressions (bounded in turn). */
bool tx_facts_range(tx_facts *f, const tx_var *v, const tx_node *lo, const tx_node *hi);
bool tx_facts_range_i64(tx_facts *f, const tx_var *v, int64_t lo, int64_t hi);
/* v always equals value (an immutable binding of a pure expression). */
bool tx_facts_equal(tx_facts *f, const tx_var *v, const tx_node *value);
/* v is a multiple of m plus r. */
bool tx_facts_multiple(tx_facts *f, const tx_var *v, int64_t m, int64_t r);
/* The bool expression holds from here on (conjunctions are split). Only pure expressions over immutable values are used. */
bool tx_facts_assume(tx_facts *f, const tx_node *cond);
/* Range of a coordinate op (THREAD_IDX.x in 0..extent-1), known from the launch. */
bool tx_facts_coord(tx_facts *f, unsigned op, int axis, int64_t lo, int64_t hi);

typedef struct tx_bounds {
    int64_t lo, hi; /* INT64_MIN / INT64_MAX: unknown */
} tx_bounds;
/* Bounds of an integer or bool expression. Always sound: an expression that may wrap in its dtype gets the dtype's range. */
tx_bounds tx_bounds_of(tx_facts *f, const tx_node *e);
/* e = k * multiple + remainder for some k; multiple 0: e is exactly remainder; 1: nothing known. */
void tx_divisor_of(tx_facts *f, const tx_node *e, int64_t *multiple, int64_t *remainder);
/* 1 proved true, 0 proved false, -1 unknown. */
int tx_prove(tx_facts *f, const tx_node *cond);
bool tx_prove_nonneg(tx_facts *f, const tx_node *e);
/* 0 <= e < extent, both as integers without wrap. */
bool tx_prove_in_range(tx_facts *f, const tx_node *e, const tx_node *extent);
/* Equivalent expression of the same dtype, never larger. Idempotent. Loads and calls are kept, their operands simplified.
 * Floats are not reassociated; nothing that NaN, infinity or -0 could tell is folded. */
const tx_node *tx_simplify(tx_facts *f, const tx_node *e);

#endif
