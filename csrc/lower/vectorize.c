/* T.vectorized: lanes where memory allows it. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

static const tx_node *
loop(tx_rewriter *r, const tx_node *n)
{
    tx_loop *serial;

    n = tx_rewrite_children(r, n);
    if (!n || n->u.loop->kind != TX_LOOP_VECTOR)
        return n;
    serial = tx_new(r->c, tx_loop, 1);
    if (!serial)
        return NULL;
    *serial = *n->u.loop;
    serial->kind = TX_LOOP_SERIAL;
    return tx_make_at(r->c, n->span, TX_OP_FOR, TX_VOID, (tx_payload){.loop = serial}, n->arg, 4);
}

tx_func *
tx_vectorize_func(tx_ctx *c, tx_func *f)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn};
    const tx_node *body;

    if (!fn)
        return NULL;
    fn[TX_OP_FOR] = loop;
    body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    return tx_func_with_body(c, f, body);
}
