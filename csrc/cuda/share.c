/* Values as graphs. A node that is used many times is small in memory, yet as text it is written out at every use: x = x + x,
 * forty times over in a Python loop, is forty nodes and a tree of a million million. Where the tree of an expression would
 * be large, what is used more than once is put into a variable first. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

enum { SHARE_DEPTH = 12, SHARE_TREE = 4000 }; /* shallower, or smaller as a tree: written out as it is */

static const uint64_t share_max = UINT32_MAX;

/* Nodes of the tree below n; the map holds uses << 32 | size. */
static uint64_t
share_size(tx_map *seen, const tx_node *n)
{
    uint64_t v, size = 1;

    if (n->nargs == 0)
        return 1;
    if (tx_map_get(seen, (uint64_t)(uintptr_t)n, &v)) {
        tx_map_put(seen, (uint64_t)(uintptr_t)n, v + ((uint64_t)1 << 32));
        return v & share_max;
    }
    for (uint32_t i = 0; i < n->nargs; i++)
        size += n->arg[i] ? share_size(seen, n->arg[i]) : 0;
    size = size > share_max ? share_max : size;
    tx_map_put(seen, (uint64_t)(uintptr_t)n, size | (uint64_t)1 << 32);
    return size;
}

/* Operands first. Nothing that may not be evaluated, or not yet, is moved: loads stay where a call may come before them. */
static void
share_hold(em *e, tx_map *seen, const tx_node *n, bool loads)
{
    uint64_t v = 0;

    if (n->nargs == 0 || em_held_name(e, n) || !tx_map_get(seen, (uint64_t)(uintptr_t)n, &v) || v == 0)
        return;
    tx_map_put(seen, (uint64_t)(uintptr_t)n, 0);
    for (uint32_t i = 0; i < n->nargs; i++) {
        bool lazy = i > 0 && tx_has(n->op, TX_PROP_LAZY), impure = n->arg[i]->flags & TX_NF_IMPURE;

        if (!(lazy && impure) && n->op != TX_OP_ADDRESS_OF)
            share_hold(e, seen, n->arg[i], loads);
    }
    if (v >> 32 >= 2 && tx_lanes(n->dtype) == 1 && n->op != TX_OP_ADDRESS_OF && (loads || !(n->flags & TX_NF_IMPURE)))
        em_hold(e, n, em_temp(e, n, "v_"));
}

void
em_share(em *e, const tx_node *n)
{
    tx_map seen = {0};

    if (n->depth < SHARE_DEPTH)
        return;
    if (share_size(&seen, n) > SHARE_TREE)
        share_hold(e, &seen, n, !em_has_effect(n));
    tx_map_free(&seen);
}
