/* The language evaluates operands from left to right; C++ leaves the order open. It shows only where one operand changes
 * memory (an atomic, a call) and a sibling reads or changes memory: there every such operand is put into a variable, in
 * order, before the expression is written. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

enum { ORDER_READS = 1, ORDER_WRITES = 2 };

/* Exchanges among the lanes of a warp: effects for scheduling, but no memory is touched. */
static bool
order_only_exchanges(unsigned op)
{
    switch (op) {
    case TX_OP_SHFL:
    case TX_OP_SHFL_UP:
    case TX_OP_SHFL_DOWN:
    case TX_OP_SHFL_XOR:
    case TX_OP_BALLOT:
    case TX_OP_ANY_SYNC:
    case TX_OP_REDUX_ADD:
    case TX_OP_REDUX_MIN:
    case TX_OP_ELECT_SYNC:
    case TX_OP_WARP_REDUCE: return true;
    default: return false;
    }
}

static unsigned
order_of_op(unsigned op)
{
    if (tx_has(op, TX_PROP_EFFECT))
        return order_only_exchanges(op) ? 0 : ORDER_WRITES;
    return tx_has(op, TX_PROP_READS) ? ORDER_READS : 0;
}

static unsigned
order_scan(const tx_node *n, bool *matters)
{
    bool lazy = tx_has(n->op, TX_PROP_LAZY); /* C++ orders these */
    unsigned seen = 0;

    if (!(n->flags & TX_NF_IMPURE))
        return 0;
    for (uint32_t i = 0; i < n->nargs; i++) {
        unsigned s = n->arg[i] ? order_scan(n->arg[i], matters) : 0;

        if (!lazy && ((s & ORDER_WRITES && seen) || (seen & ORDER_WRITES && s)))
            *matters = true;
        seen |= s;
    }
    return seen | order_of_op(n->op);
}

bool
em_order_matters(const tx_node *n)
{
    bool matters = false;

    order_scan(n, &matters);
    return matters;
}

bool
em_has_effect(const tx_node *n)
{
    if (!(n->flags & TX_NF_IMPURE))
        return false;
    if (tx_has(n->op, TX_PROP_EFFECT))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && em_has_effect(n->arg[i]))
            return true;
    return false;
}

/* What has to stand before an expression is written: its operands in order, and what it uses over and over. */
void
em_ahead(em *e, const tx_node *n)
{
    if (em_order_matters(n))
        em_hold_in_order(e, n);
    em_share(e, n);
}

static void
order_hold(em *e, const tx_node *n)
{
    if (tx_lanes(n->dtype) > 1)
        em_vector(e, n);
    else
        em_hold(e, n, em_temp(e, n, "v_"));
}

void
em_hold_in_order(em *e, const tx_node *n)
{
    bool later = false;

    if (!(n->flags & TX_NF_IMPURE) || em_held_name(e, n))
        return;
    if (n->op == TX_OP_ADDRESS_OF) { /* its load is not done */
        for (uint32_t i = 0; i < n->arg[0]->nargs; i++)
            em_hold_in_order(e, n->arg[0]->arg[i]);
        return;
    }
    for (uint32_t i = 1; i < n->nargs; i++)
        later = later || (n->arg[i]->flags & TX_NF_IMPURE);
    if (tx_has(n->op, TX_PROP_LAZY) && later) {
        order_hold(e, n);
        return;
    }
    for (uint32_t i = 0; i < n->nargs; i++)
        em_hold_in_order(e, n->arg[i]);
    if (order_of_op(n->op) && tx_kind(n->dtype) != TX_KIND_VOID)
        order_hold(e, n);
}
