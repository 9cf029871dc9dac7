/* Integers of 128 bits, for a VM whose registers have 64: before code is made, each becomes a vector of two uint64, the
 * low half first, as it lies in memory. They are only loaded, stored, copied, compared and converted to and from other
 * integers; what else the IR would say of one is refused before (ir/construct.c). SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"
#include "ir/ptx.h"

#include <string.h>

#define WIDE_PAIR tx_with_lanes(TX_U64, 2)

static bool
is_wide(tx_dtype t)
{
    return tx_lanes(t) == 1 && tx_bits(t) == 128;
}

static const tx_node *
wide_pair(tx_ctx *c, const tx_node *low, const tx_node *high)
{
    const tx_node *half[2] = {low, high};

    return low && high ? tx_shuffle(c, half, 2, (const int[]){0, 1}, 2) : NULL;
}

static const tx_node *
wide_half(tx_ctx *c, const tx_node *pair, int k)
{
    return pair ? tx_shuffle(c, &pair, 1, &k, 1) : NULL;
}

/* The node as its children were rewritten, in the dtype of a pair. */
static const tx_node *
as_pair(tx_rewriter *r, const tx_node *n)
{
    const tx_node *out = tx_rewrite_children(r, n);

    if (!out || !is_wide(n->dtype) || out->dtype == WIDE_PAIR)
        return out;
    return tx_make_at(r->c, n->span, out->op, WIDE_PAIR, out->u, out->arg, out->nargs);
}

static const tx_node *
wide_var(tx_rewriter *r, const tx_node *n)
{
    const tx_node *to = is_wide(n->dtype) ? tx_map_ptr(&r->vars, n->u.var) : NULL;

    return to ? tx_with_span(r->c, to, n->span) : tx_rewrite_children(r, n);
}

/* BIND, LET */
static const tx_node *
wide_binding(tx_rewriter *r, const tx_node *n)
{
    if (is_wide(n->u.var->dtype) && !tx_map_ptr(&r->vars, n->u.var)) {
        tx_var *v = tx_new_var(r->c, n->u.var->kind, n->u.var->name, WIDE_PAIR);
        if (!v)
            return NULL;
        v->span = n->u.var->span;
        if (!tx_map_put_ptr(&r->vars, n->u.var, v->node))
            return tx_fail(r->c, n->span, TX_E_NO_MEMORY);
    }
    return as_pair(r, n);
}

/* LOAD, STORE, ALLOC, DECL, BUFFER_DATA */
static const tx_node *
wide_memory(tx_rewriter *r, const tx_node *n)
{
    if (is_wide(n->u.buf->dtype) && !tx_map_ptr(&r->bufs, n->u.buf)) {
        tx_buffer *b = tx_copy_buffer(r->c, n->u.buf);
        if (!b)
            return NULL;
        b->dtype = WIDE_PAIR;
        if (!tx_map_put_ptr(&r->bufs, n->u.buf, b))
            return tx_fail(r->c, n->span, TX_E_NO_MEMORY);
    }
    return as_pair(r, n);
}

static const tx_node *
wide_int(tx_rewriter *r, const tx_node *n)
{
    tx_ctx *c = r->c;

    if (!is_wide(n->dtype))
        return n;
    return wide_pair(c, tx_int(c, TX_U64, n->u.i), tx_int(c, TX_U64, tx_is_signed(n->dtype) && n->u.i < 0 ? -1 : 0));
}

static const tx_node *
wide_cast(tx_rewriter *r, const tx_node *n)
{
    tx_dtype from = n->arg[0]->dtype;
    const tx_node *a = tx_rewrite(r, n->arg[0]), *high;
    tx_ctx *c = r->c;

    if (!a || (!is_wide(from) && !is_wide(n->dtype)))
        return a && a != n->arg[0] ? tx_with_args(c, n, &a) : a ? n : NULL;
    if (is_wide(from) && is_wide(n->dtype))
        return a;
    if (is_wide(from)) {
        if (tx_is_bool(n->dtype))
            return tx_binary(c, TX_OP_NE, tx_binary(c, TX_OP_BOR, wide_half(c, a, 0), wide_half(c, a, 1)),
                             tx_int(c, TX_U64, 0));
        return tx_is_int(n->dtype) ? tx_cast(c, n->dtype, wide_half(c, a, 0)) : n;
    }
    if (!tx_is_int(from) && !tx_is_bool(from))
        return n;
    high = tx_int(c, TX_U64, 0);
    if (tx_is_signed(from))
        high = tx_cast(c, TX_U64, tx_binary(c, TX_OP_SHR, tx_cast(c, TX_I64, a), tx_int(c, TX_I64, 63)));
    return wide_pair(c, tx_cast(c, TX_U64, a), high);
}

static const tx_node *
wide_reinterpret(tx_rewriter *r, const tx_node *n)
{
    const tx_node *a = tx_rewrite(r, n->arg[0]);

    if (!a || a == n->arg[0])
        return !a || !is_wide(n->dtype) ? (a ? n : NULL) : tx_reinterpret(r->c, WIDE_PAIR, a);
    return tx_reinterpret(r->c, is_wide(n->dtype) ? WIDE_PAIR : n->dtype, a);
}

/* EQ, NE, LT, GE, GT, LE: the high halves decide, where they are equal the low ones. */
static const tx_node *
wide_compare(tx_rewriter *r, const tx_node *n)
{
    const tx_node *a, *b, *a_high, *b_high, *low;
    tx_dtype t = n->arg[0]->dtype;
    tx_ctx *c = r->c;
    unsigned strict = n->op == TX_OP_LE ? TX_OP_LT : n->op == TX_OP_GE ? TX_OP_GT : n->op;

    if (!is_wide(t))
        return tx_rewrite_children(r, n);
    a = tx_rewrite(r, n->arg[0]);
    b = tx_rewrite(r, n->arg[1]);
    if (!a || !b)
        return NULL;
    t = tx_is_signed(t) ? TX_I64 : TX_U64;
    low = tx_binary(c, n->op, wide_half(c, a, 0), wide_half(c, b, 0));
    a_high = tx_cast(c, t, wide_half(c, a, 1));
    b_high = tx_cast(c, t, wide_half(c, b, 1));
    if (n->op == TX_OP_EQ || n->op == TX_OP_NE)
        return tx_binary(c, n->op == TX_OP_EQ ? TX_OP_AND : TX_OP_OR, low, tx_binary(c, n->op, a_high, b_high));
    return tx_binary(c, TX_OP_OR, tx_binary(c, strict, a_high, b_high),
                     tx_binary(c, TX_OP_AND, tx_binary(c, TX_OP_EQ, a_high, b_high), low));
}

/* ---- mov.b128: a register of 128 bits from two of 64, and back ------------------------------------------------------ */

/* STORE to the element that `address` leads to. */
static const tx_node *
wide_store(tx_rewriter *r, const tx_node *address, const tx_node *value, tx_span span)
{
    const tx_node *element = tx_rewrite(r, address->arg[0]), **args;

    if (!element || !value || !(args = tx_scratch(r->c, const tx_node *, element->nargs + 1)))
        return NULL;
    args[0] = value;
    memcpy(args + 1, element->arg, element->nargs * sizeof *args);
    return tx_make_at(r->c, span, TX_OP_STORE, TX_VOID, element->u, args, element->nargs + 1);
}

static const tx_node *
wide_move(tx_rewriter *r, const tx_node *n)
{
    const tx_node *ptx = n->arg[0], *source, *store[2];
    tx_ctx *c = r->c;
    uint32_t nrows, count = 0;
    const tx_ptx_row *rows = tx_ptx_rows(&nrows);
    const char *name = ptx->op == TX_OP_PTX && rows ? rows[ptx->u.ptx->row].emu : "";

    if (ptx->op != TX_OP_PTX || ptx->u.ptx->guard || ptx->u.ptx->nargs != 3 || strncmp(name, "mov_", 4) != 0)
        return tx_rewrite_children(r, n);
    if (strcmp(name, "mov_pack") == 0 && is_wide(ptx->arg[0]->arg[0]->dtype)) {
        source = wide_pair(c, tx_reinterpret(c, TX_U64, tx_rewrite(r, ptx->arg[1])),
                           tx_reinterpret(c, TX_U64, tx_rewrite(r, ptx->arg[2])));
        return wide_store(r, ptx->arg[0], source, n->span);
    }
    if (strcmp(name, "mov_unpack") != 0 || !is_wide(ptx->arg[2]->dtype))
        return tx_rewrite_children(r, n);
    source = tx_rewrite(r, ptx->arg[2]);
    for (uint32_t i = 0; i < 2; i++) {
        if (tx_ptx_is_sunk(ptx->u.ptx, i))
            continue;
        store[count] = wide_store(r, ptx->arg[i],
                                  tx_reinterpret(c, ptx->arg[i]->arg[0]->dtype, wide_half(c, source, (int)i)), n->span);
        if (!store[count++])
            return NULL;
    }
    return tx_seq(c, store, count);
}

static bool
has_wide(const tx_node *n)
{
    if (is_wide(n->dtype) || ((n->op == TX_OP_ALLOC || n->op == TX_OP_DECL) && is_wide(n->u.buf->dtype)) ||
        ((n->op == TX_OP_LOAD || n->op == TX_OP_STORE) && is_wide(n->u.buf->dtype)))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && has_wide(n->arg[i]))
            return true;
    return false;
}

const tx_node *
tx_emu_without_wide(tx_ctx *c, const tx_node *body)
{
    static const tx_rewrite_fn fn[TX_OP__COUNT] = {
        [TX_OP_VAR] = wide_var,
        [TX_OP_INT] = wide_int,
        [TX_OP_BIND] = wide_binding,
        [TX_OP_LET] = wide_binding,
        [TX_OP_LOAD] = wide_memory,
        [TX_OP_STORE] = wide_memory,
        [TX_OP_ALLOC] = wide_memory,
        [TX_OP_DECL] = wide_memory,
        [TX_OP_BUFFER_DATA] = wide_memory,
        [TX_OP_CAST] = wide_cast,
        [TX_OP_REINTERPRET] = wide_reinterpret,
        [TX_OP_SELECT] = as_pair,
        [TX_OP_IF_THEN_ELSE] = as_pair,
        [TX_OP_EQ] = wide_compare,
        [TX_OP_NE] = wide_compare,
        [TX_OP_EVAL] = wide_move,
        [TX_OP_LT] = wide_compare,
        [TX_OP_GE] = wide_compare,
        [TX_OP_GT] = wide_compare,
        [TX_OP_LE] = wide_compare,
    };
    tx_rewriter r = {.c = c, .fn = fn};

    if (!has_wide(body))
        return body;
    body = tx_rewrite(&r, body);
    tx_rewriter_free(&r);
    return body;
}
