/* LowerIntrin: ops that neither back end knows, written out. T.ceildiv becomes an exact form; the short one, which adds
 * b - 1 first, only where bounds prove that nothing overflows (language.md 6.5). SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* (a + (b - 1)) // b for a constant b > 0 and room above a, else a // b + (a % b != 0) */
static const tx_node *
ceildiv(tx_rewriter *r, const tx_node *n)
{
    tx_ctx *c = r->c;
    const tx_node *a, *b;
    int64_t k, lo, room;
    uint64_t hi;

    n = tx_rewrite_children(r, n);
    if (!n || n->op != TX_OP_CEILDIV)
        return n;
    a = n->arg[0];
    b = n->arg[1];
    c->span = n->span;
    if (tx_const_i64(b, &k) &&
        k == 0) { /* zero came to light in lowering: the division by it is what it is at run time */
        const tx_node *args[] = {a, b};
        return tx_make_at(c, n->span, TX_OP_FLOORDIV, n->dtype, (tx_payload){0}, args, 2);
    }
    if (tx_const_i64(b, &k) && k > 0 && tx_lanes(n->dtype) == 1 && tx_int_limits(n->dtype, &lo, &hi)) {
        tx_bounds bound = tx_bounds_of(((tx_scoped *)r->self)->facts, a);
        if (bound.lo >= 0 && tx_add_i64(bound.hi, k - 1, &room) && (uint64_t)room <= hi)
            return tx_binary(c, TX_OP_FLOORDIV, tx_binary(c, TX_OP_ADD, a, tx_int(c, n->dtype, k - 1)), b);
    }
    return tx_binary(
        c, TX_OP_ADD, tx_binary(c, TX_OP_FLOORDIV, a, b),
        tx_cast(c, n->dtype, tx_binary(c, TX_OP_NE, tx_binary(c, TX_OP_FLOORMOD, a, b), tx_int(c, n->dtype, 0))));
}

/* A name that is kept for the text's sake has no meaning to compile. */
static const tx_node *
refuse_kept(tx_rewriter *r, const tx_node *n)
{
    return tx_fail(r->c, n->span, TX_E_KEPT_ONLY, n->u.call->name->text);
}

const tx_node *
tx_lower_intrinsics(tx_ctx *c, const tx_node *body)
{
    tx_scoped s;
    tx_span saved = c->span;

    if (tx_scoped_init(&s, c)) {
        s.fn[TX_OP_CEILDIV] = ceildiv;
        s.fn[TX_OP_KEPT] = refuse_kept;
        body = tx_rewrite(&s.r, body);
    } else {
        body = NULL;
    }
    tx_scoped_free(&s);
    c->span = saved;
    return body;
}
