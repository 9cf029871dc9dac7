/* Contraction: a float multiply whose only use is an add or subtract in the same expression becomes T.fma, so that both
 * back ends round once where NVRTC would have chosen to (lowering.md 5.9). Where both operands of the sum are such
 * multiplies, the left one is taken. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct contractor {
    tx_map uses; /* value number -> number of edges to it within one expression */
    bool failed;
} contractor;

static bool
contracts(tx_dtype t)
{
    return tx_class(t) == TX_CLS_F || tx_class(t) == TX_CLS_G;
}

static void
count(contractor *k, const tx_node *e)
{
    uint64_t n;

    for (uint32_t i = 0; i < e->nargs; i++) {
        if (!e->arg[i])
            continue;
        n = tx_map_get(&k->uses, e->arg[i]->vn, &n) ? n : 0;
        k->failed |= !tx_map_put(&k->uses, e->arg[i]->vn, n + 1);
        if (n == 0)
            count(k, e->arg[i]);
    }
}

static bool
only_use(const contractor *k, const tx_node *e)
{
    uint64_t n;

    return e->op == TX_OP_MUL && tx_map_get(&k->uses, e->vn, &n) && n == 1;
}

static const tx_node *
contract_fma_of(tx_ctx *c, const tx_node *n, const tx_node *a, const tx_node *b, const tx_node *sum)
{
    const tx_node *args[3] = {a, b, sum};

    return a && sum ? tx_make_at(c, n->span, TX_OP_FMA, n->dtype, (tx_payload){0}, args, 3) : NULL;
}

/* a*b + c, c + a*b -> fma(a, b, c);  a*b - c -> fma(a, b, -c);  c - a*b -> fma(-a, b, c) */
static const tx_node *
contract_sum(tx_rewriter *r, const tx_node *n)
{
    contractor *k = r->self;
    const tx_node *was[2] = {n->arg[0], n->arg[1]}, *a, *b;

    n = tx_rewrite_children(r, n);
    if (!n || !contracts(n->dtype) || (n->op != TX_OP_ADD && n->op != TX_OP_SUB))
        return n;
    a = n->arg[0];
    b = n->arg[1];
    r->c->span = n->span;
    if (only_use(k, was[0]) && a->op == TX_OP_MUL)
        return contract_fma_of(r->c, n, a->arg[0], a->arg[1], n->op == TX_OP_ADD ? b : tx_unary(r->c, TX_OP_NEG, b));
    if (only_use(k, was[1]) && b->op == TX_OP_MUL)
        return contract_fma_of(r->c, n, n->op == TX_OP_ADD ? b->arg[0] : tx_unary(r->c, TX_OP_NEG, b->arg[0]),
                               b->arg[1], a);
    return n;
}

static const tx_node *contract_statement(tx_rewriter *r, const tx_node *n);

/* One expression of a statement: uses are counted within it. */
static const tx_node *
contract_root(tx_rewriter *r, const tx_node *e)
{
    contractor *k = r->self;
    const tx_node *out;

    count(k, e);
    out = tx_rewrite(r, e);
    tx_map_free(&k->uses);
    k->uses = (tx_map){0};
    return out;
}

static const tx_node *
contract_statement(tx_rewriter *r, const tx_node *n)
{
    const tx_node **args = tx_new(r->c, const tx_node *, n->nargs ? n->nargs : 1);
    bool changed = false;

    if (!args)
        return NULL;
    for (uint32_t i = 0; i < n->nargs; i++) {
        args[i] = n->arg[i];
        if (!n->arg[i] || n->arg[i]->nargs == 0)
            continue;
        args[i] = tx_is_stmt(n->arg[i]) ? contract_statement(r, n->arg[i]) : contract_root(r, n->arg[i]);
        if (!args[i])
            return NULL;
        changed |= args[i] != n->arg[i];
    }
    return changed ? tx_with_args(r->c, n, args) : n;
}

const tx_node *
tx_contract(tx_ctx *c, const tx_node *body)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    contractor k = {0};
    tx_rewriter r = {.c = c, .fn = fn, .self = &k};
    tx_span saved = c->span;

    if (!fn)
        return NULL;
    fn[TX_OP_ADD] = contract_sum;
    fn[TX_OP_SUB] = contract_sum;
    body = contract_statement(&r, body);
    tx_rewriter_free(&r);
    c->span = saved;
    return k.failed ? tx_fail(c, 0, TX_E_NO_MEMORY) : (void *)body;
}
