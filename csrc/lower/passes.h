/* Private to lower/: the walks, what they share, and the facts that hold at a statement. pipeline.c lists the walks.
 * Owner: lower. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_LOWER_PASSES_H
#define TX_LOWER_PASSES_H

#include "lower/lower.h"

/* ---- one function at a time -------------------------------------------------------------------------------------- */

/* Gives the function itself when nothing changed, NULL when a diagnostic was recorded. */
typedef tx_func *(*tx_func_pass)(tx_ctx *c, tx_func *f, const tx_target *t);
tx_module *tx_map_funcs(tx_ctx *c, tx_module *m, const tx_target *t, tx_func_pass pass);
tx_func *tx_copy_func(tx_ctx *c, const tx_func *f); /* shallow */
tx_func *tx_func_with_body(tx_ctx *c, tx_func *f, const tx_node *body);

tx_func *tx_resolve_func(tx_ctx *c, tx_func *f, const tx_target *t); /* resolve.c: LowerTIRx */
tx_func *tx_device_func(tx_ctx *c, tx_func *f);                      /* device_func.c: indices in device functions */
tx_module *tx_host_calls(tx_ctx *c, tx_module *m); /* host_calls.c: calls on the host, in place, first of LowerTIRx */
/* device_func.c: the buffer whose data an argument of a call is, or NULL; what the size that `d` defines is for the call's
 * arguments, where `vars` are the callee's scalars and earlier sizes */
const tx_buffer *tx_argument_buffer(const tx_node *a);
const tx_node *tx_size_at_call(tx_ctx *c, const tx_node *call, const tx_func *f, const tx_symbol_def *d,
                               tx_var *const *vars, const tx_node *const *values, uint32_t n);
/* unroll.c: makes the rewriter give new variables and buffers for those that the statement binds */
bool tx_map_fresh(tx_rewriter *r, const tx_node *body);
tx_module *tx_device_calls(tx_ctx *c, tx_module *m); /* device_func.c: sizes as arguments, in LowerTIRx */
tx_func *tx_host_func(tx_ctx *c, tx_func *f);        /* host.c: host zone of LowerTIRx */
tx_func *tx_merge_tensormaps(tx_ctx *c, tx_func *f); /* tensormaps.c: identical maps, in LowerTIRx */
tx_func *tx_constant_cells(tx_ctx *c, tx_func *f);   /* cells.c: cells that never change, last part */
tx_func *tx_address_func(tx_ctx *c, tx_func *f, const tx_target *t);     /* address.c: FlattenBuffer */
tx_func *tx_vectorize_func(tx_ctx *c, tx_func *f);                       /* vectorize.c, first part of UnrollLoop */
tx_func *tx_unroll_func(tx_ctx *c, tx_func *f);                          /* unroll.c, second part */
tx_func *tx_simplify_func(tx_ctx *c, tx_func *f);                        /* simplify_pass.c, third part */
const tx_node *tx_contract(tx_ctx *c, const tx_node *body);              /* contract.c: a*b + c, in kernels */
const tx_node *tx_lower_intrinsics(tx_ctx *c, const tx_node *body);      /* intrin.c: CEILDIV, in kernels */
tx_module *tx_split_module(tx_ctx *c, tx_module *m, const tx_target *t); /* split.c: SplitHostDevice */
const tx_node *tx_ask_occupancy(tx_ctx *c, const tx_node *body);         /* occupancy.c, of the host half, when split */
tx_func *tx_packed_api_func(tx_ctx *c, tx_func *f, const tx_target *t);  /* packed_api.c: MakePackedAPI */

/* ---- helpers ------------------------------------------------------------------------------------------------------ */

const char *tx_expr_text(tx_ctx *c, const tx_node *e);              /* printed, interned; for messages */
void tx_diag_other(tx_ctx *c, tx_span span);                        /* second place of the diagnostic recorded last */
const tx_node *tx_nothing(tx_ctx *c);                               /* the empty statement */
const tx_node *tx_bind(tx_ctx *c, tx_var *v, const tx_node *value); /* BIND at the current span */
const tx_node *tx_i64(tx_ctx *c, const tx_node *e);                 /* as int64 */
const tx_node *tx_leave_alone(tx_rewriter *r, const tx_node *n);    /* handler of ops that a pass does not enter */
bool tx_exits(const tx_node *stmt); /* control never reaches what follows it in its block */
bool tx_has_device(const tx_node *body);
bool tx_is_host_variable(const tx_buffer *b); /* host.c: what a cell of the host zone is: local, one element */
static inline bool
tx_is_empty(const tx_node *stmt)
{
    return stmt->op == TX_OP_SEQ && stmt->nargs == 0;
}

/* ---- rewriting with facts (scope.c) ------------------------------------------------------------------------------- */

/* A rewriter that knows the facts in force: install puts handlers for SEQ, BIND, FOR, IF, WHILE, IF_THEN_ELSE, AND, OR and
 * DEVICE into fn; a pass adds its own for other ops, or wraps these. r.self is the tx_scoped. */
typedef struct tx_scoped {
    tx_rewriter r;
    tx_facts *facts;
    tx_rewrite_fn fn[TX_OP__COUNT];
    void *pass; /* of the pass */
} tx_scoped;
bool tx_scoped_init(tx_scoped *s, tx_ctx *c);
void tx_scoped_free(tx_scoped *s);
void tx_scoped_symbols(tx_scoped *s, const tx_func *f); /* sizes are not negative */
const tx_node *tx_scoped_for(tx_rewriter *r, const tx_node *n);
const tx_node *tx_scoped_if(tx_rewriter *r, const tx_node *n);
const tx_node *tx_scoped_branches(tx_rewriter *r, const tx_node *n); /* of an IF whose condition is done */
const tx_node *tx_scoped_bind(tx_rewriter *r, const tx_node *n);
/* Children only: the records of buffers stay, since facts hold at a statement and not for a buffer. */
const tx_node *tx_scoped_children(tx_rewriter *r, const tx_node *n);
void tx_facts_launch(tx_facts *f, const tx_node *const *args); /* coordinates, from DEVICE or LAUNCH children */
void
tx_facts_loop(tx_ctx *c, tx_facts *f, const tx_var *v, const tx_node *start, const tx_node *stop, const tx_node *step);
/* Turns of a loop with constant bounds; false when they are not constant. */
bool tx_loop_turns(const tx_node *loop, int64_t *start, int64_t *step, int64_t *turns);
/* A break or continue in the body that belongs to this loop. */
bool tx_loop_jumps(const tx_node *body);

#endif
