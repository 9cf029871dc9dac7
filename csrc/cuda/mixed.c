/* Read-only memory that stays ordinary. NVRTC reads what a __restrict__ pointer gives, and nobody stores to, by ld.global.nc.
 * Where one arm of a branch loads from such memory and the other from memory that the kernel writes, it merges both into
 * one load of a chosen address and keeps the .nc (seen in NVRTC 13.0), so that stores of the kernel itself go unseen. The
 * read-only pointer of such a pair is not __restrict__: it loses the .nc, and nothing else, as the written one still is.
 * Nor is any in a kernel that begins before the one before it has ended: what it only reads may change until it has waited.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

/* Parameters as bits of a word; those from the 64th on share one. */
typedef struct mixed_search {
    tx_map bits;     /* data variable -> its bit */
    tx_map loads;    /* node -> parameters that it loads from */
    uint64_t stored; /* parameters that are stored to, or whose address is given away */
    uint64_t sure;   /* those that are stored to */
    uint64_t mixed;
} mixed_search;

static uint64_t
mixed_bit(const mixed_search *s, const tx_var *data)
{
    uint64_t bit = 0;

    tx_map_get(&s->bits, (uint64_t)(uintptr_t)data, &bit);
    return bit;
}

/* Parameters that n loads from; on the way, those that it stores to, or whose address it gives away. */
static uint64_t
mixed_loads(mixed_search *s, const tx_node *n)
{
    uint64_t found = 0;

    if (n && n->op == TX_OP_VAR)
        s->stored |= mixed_bit(s, n->u.var);
    if (!n || n->nargs == 0)
        return 0;
    if (tx_map_get(&s->loads, (uint64_t)(uintptr_t)n, &found))
        return found;
    if (n->op == TX_OP_LOAD)
        found = mixed_bit(s, n->u.buf->data);
    else if (n->op == TX_OP_STORE)
        s->sure |= mixed_bit(s, n->u.buf->data);
    for (uint32_t i = 0; i < n->nargs; i++)
        found |= mixed_loads(s, n->arg[i]);
    if (n->op == TX_OP_ADDRESS_OF)
        s->stored |= found;
    tx_map_put(&s->loads, (uint64_t)(uintptr_t)n, found);
    return found;
}

/* Whether operand i may be evaluated or not, or more than once. */
static bool
mixed_is_arm(const tx_node *n, uint32_t i)
{
    switch (n->op) {
    case TX_OP_FOR: return i == 3;
    case TX_OP_WHILE: return true;
    case TX_OP_IF:
    case TX_OP_SELECT: return i > 0;
    default: return i > 0 && tx_has(n->op, TX_PROP_LAZY);
    }
}

/* Marks what is loaded outside of an arm that loads from written memory. `outside`: what is loaded elsewhere in the function. */
static void
mixed_mark(mixed_search *s, const tx_node *n, uint64_t outside)
{
    for (uint32_t i = 0; n && i < n->nargs; i++) {
        uint64_t inside = mixed_loads(s, n->arg[i]), others = outside;

        if (!(inside & s->stored))
            continue;
        for (uint32_t j = 0; j < n->nargs; j++)
            others |= j == i ? 0 : mixed_loads(s, n->arg[j]);
        if (mixed_is_arm(n, i))
            s->mixed |= others & ~s->stored;
        if ((inside | others) & ~s->stored & ~s->mixed)
            mixed_mark(s, n->arg[i], others);
    }
}

/* Those from the 64th on share a bit, which says nothing of all of them. */
uint64_t
em_mixed_params(const tx_func *f, bool overlaps)
{
    mixed_search s = {0};

    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer)
            tx_map_put_ptr(&s.bits, f->params[i].buffer->data,
                           (const void *)(uintptr_t)((uint64_t)1 << (i < 63 ? i : 63)));
    uint64_t loads = mixed_loads(&s, f->body);
    s.stored |= s.sure;
    if (overlaps)
        s.mixed = f->nparams > 63 ? ~(s.sure & UINT64_MAX >> 1) : ~s.sure;
    else if (loads & s.stored)
        mixed_mark(&s, f->body, 0);
    tx_map_free(&s.bits);
    tx_map_free(&s.loads);
    return s.mixed;
}
