/* Private to ir/: what the constructors, the folder and the rewriter share. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_IR_FOLD_H
#define TX_IR_FOLD_H

#include "ir/ir.h"

/* numeric.c */
int64_t tx_float_to_int(tx_dtype t, double v);
double tx_int_to_float(tx_dtype t, tx_dtype from, int64_t v);
double tx_round_float(tx_dtype t, double v); /* to the nearest value of float dtype t */
bool tx_float_fits(tx_dtype t, double v);

/* fold.c: constant folding and safe identities of a node whose operands have the right dtypes. `strict`: a constant
 * division by zero or shift out of range is the user's error; passes leave such expressions alone, since they may stand
 * where control never comes. Gives NULL after an error; *folded says whether anything was found. */
const tx_node *
tx_fold(tx_ctx *c, unsigned op, tx_dtype dtype, const tx_node *const *args, uint32_t nargs, bool strict, bool *folded);

/* construct.c: where to point when an operand is at fault */
tx_span tx_place_of(const tx_ctx *c, const tx_node *n);

/* node.c: the one maker */
const tx_node *tx_make_node(tx_ctx *c, const tx_node *head, const tx_node *const *args);

/* node.c: what the payload of an op is, for whatever copies or maps nodes */
enum tx_payload_kind {
    TX_P_PLAIN, /* nothing, or a number */
    TX_P_STR,
    TX_P_VAR,
    TX_P_BUF,
    TX_P_LOOP,
    TX_P_SCOPE_ID,
    TX_P_LAUNCH,
    TX_P_LAUNCH_OF,
    TX_P_CALL,
    TX_P_ASSERTION,
    TX_P_PTX,
    TX_P_TILE
};
enum tx_payload_kind tx_payload_kind_of(unsigned op);

#endif
