/* How the symbols of a function follow from its tensor parameters (language.md 4.3). Every extent and stride of a tensor
 * parameter is an equation. Plain ones (the extent is the symbol) define first, in parameter order; then equations
 * linear in one unknown, c * n + d, repeatedly until nothing changes. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct solver {
    tx_ctx *c;
    const tx_func *f;
    tx_map known; /* symbol -> 1 when defined, 0 when not; variables that are no symbol are known */
    TX_VEC(tx_symbol_def) defs;
} solver;

/* An extent as factor * symbol + rest; symbol NULL: no unknown in it. */
typedef struct linear {
    bool ok;
    int64_t factor;
    tx_var *symbol;
    const tx_node *rest; /* int64, or NULL: 0 */
} linear;

static bool
unknown(const solver *s, const tx_var *v)
{
    uint64_t state;
    return tx_map_get(&s->known, (uint64_t)(uintptr_t)v, &state) && state == 0;
}

static const linear not_linear = {false, 0, NULL, NULL};

static linear
symbols_sum(solver *s, linear a, linear b, bool minus)
{
    linear out = {true, 0, a.symbol ? a.symbol : b.symbol, a.rest};

    if (!a.ok || !b.ok || (a.symbol && b.symbol && a.symbol != b.symbol))
        return not_linear;
    if (minus ? !tx_sub_i64(a.factor, b.factor, &out.factor) : !tx_add_i64(a.factor, b.factor, &out.factor))
        return not_linear;
    if (b.rest)
        out.rest = tx_binary(s->c, minus ? TX_OP_SUB : TX_OP_ADD, a.rest ? a.rest : tx_int(s->c, TX_I64, 0), b.rest);
    if (b.rest && !out.rest)
        return not_linear;
    if (out.factor == 0)
        out.symbol = NULL;
    return out;
}

static linear
symbols_scaled(solver *s, linear a, int64_t k)
{
    if (!a.ok || !tx_mul_i64(a.factor, k, &a.factor))
        return not_linear;
    if (a.rest)
        a.rest = tx_binary(s->c, TX_OP_MUL, a.rest, tx_int(s->c, TX_I64, k));
    if (a.factor == 0)
        a.symbol = NULL;
    return a;
}

static bool
mentions_unknown(const solver *s, const tx_node *e)
{
    if (e->op == TX_OP_VAR)
        return unknown(s, e->u.var);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->arg[i] && mentions_unknown(s, e->arg[i]))
            return true;
    return false;
}

static linear
decompose(solver *s, const tx_node *e)
{
    int64_t k;

    if (!mentions_unknown(s, e))
        return (linear){true, 0, NULL, tx_i64(s->c, e)};
    switch (e->op) {
    case TX_OP_VAR: return (linear){true, 1, e->u.var, NULL};
    case TX_OP_CAST: return tx_is_int(e->arg[0]->dtype) ? decompose(s, e->arg[0]) : not_linear;
    case TX_OP_ADD:
    case TX_OP_SUB: return symbols_sum(s, decompose(s, e->arg[0]), decompose(s, e->arg[1]), e->op == TX_OP_SUB);
    case TX_OP_NEG: return symbols_scaled(s, decompose(s, e->arg[0]), -1);
    case TX_OP_MUL:
        if (tx_const_i64(e->arg[1], &k))
            return symbols_scaled(s, decompose(s, e->arg[0]), k);
        return tx_const_i64(e->arg[0], &k) ? symbols_scaled(s, decompose(s, e->arg[1]), k) : not_linear;
    case TX_OP_SHL:
        return tx_const_i64(e->arg[1], &k) && k >= 0 && k < 62
                   ? symbols_scaled(s, decompose(s, e->arg[0]), (int64_t)1 << k)
                   : not_linear;
    default: return not_linear;
    }
}

/* Tries one extent; plain: only a bare symbol. *found when it defines one. false: out of memory. */
static bool
equation(solver *s, const tx_node *e, uint32_t param, int dim, bool stride, bool plain, bool *found)
{
    linear l;

    if (!e || (plain && e->op != TX_OP_VAR) || !mentions_unknown(s, e))
        return true;
    l = decompose(s, e);
    if (!l.ok || !l.symbol)
        return true;
    *found = true;
    if (!tx_map_put(&s->known, (uint64_t)(uintptr_t)l.symbol, 1)) {
        tx_fail(s->c, 0, TX_E_NO_MEMORY);
        return false;
    }
    return tx_push(s->c, &s->defs, ((tx_symbol_def){l.symbol, param, dim, stride, l.factor, l.rest}));
}

static bool
all_equations(solver *s, bool plain, bool *found)
{
    for (uint32_t i = 0; i < s->f->nparams; i++) {
        const tx_buffer *b = s->f->params[i].buffer;
        for (int d = 0; b && d < b->rank; d++)
            if (!equation(s, b->shape[d], i, d, false, plain, found))
                return false;
        for (int d = 0; b && b->strides && d < b->rank; d++)
            if (!equation(s, b->strides[d], i, d, true, plain, found))
                return false;
    }
    return true;
}

/* ---- what stays unknown --------------------------------------------------------------------------------------------- */

typedef struct finder {
    tx_visitor v;
    const tx_var *wanted;
    const tx_node *at; /* first use in the body */
} finder;

static bool
expr_has(const tx_node *e, const tx_var *v)
{
    if (!e)
        return false;
    if (e->op == TX_OP_VAR)
        return e->u.var == v;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (expr_has(e->arg[i], v))
            return true;
    return false;
}

static bool
buffer_has(const tx_buffer *b, const tx_var *v)
{
    for (int d = 0; d < b->rank; d++)
        if (expr_has(b->shape[d], v) || (b->strides && expr_has(b->strides[d], v)))
            return true;
    return expr_has(b->elem_offset, v) || expr_has(b->byte_offset, v);
}

static bool
find_use(tx_visitor *visitor, const tx_node *n)
{
    finder *f = (finder *)visitor;

    if (f->at)
        return false;
    if ((n->op == TX_OP_VAR && n->u.var == f->wanted) ||
        ((n->op == TX_OP_ALLOC || n->op == TX_OP_DECL) && buffer_has(n->u.buf, f->wanted)))
        f->at = n;
    return !f->at;
}

static bool
symbols_report(solver *s, const tx_var *v)
{
    finder use = {.v = {find_use, NULL}, .wanted = v};

    for (uint32_t i = 0; i < s->f->nparams; i++)
        if (s->f->params[i].buffer && buffer_has(s->f->params[i].buffer, v)) {
            tx_fail(s->c, v->span ? v->span : s->f->params[i].span, TX_E_SYMBOL_UNSOLVED, v->name->text);
            return false;
        }
    tx_walk(&use.v, s->f->body);
    if (!use.at)
        return true; /* never needed */
    tx_fail(s->c, use.at->span ? use.at->span : v->span, TX_E_SYMBOL_UNBOUND, v->name->text);
    return false;
}

static bool
solve(solver *s)
{
    bool found = false;

    for (uint32_t i = 0; i < s->f->nsymbols; i++)
        if (!tx_map_put(&s->known, (uint64_t)(uintptr_t)s->f->symbols[i], 0)) {
            tx_fail(s->c, 0, TX_E_NO_MEMORY);
            return false;
        }
    if (!all_equations(s, true, &found))
        return false;
    do {
        found = false;
        if (!all_equations(s, false, &found))
            return false;
    } while (found);
    for (uint32_t i = 0; i < s->f->nsymbols; i++)
        if (unknown(s, s->f->symbols[i]) && !symbols_report(s, s->f->symbols[i]))
            return false;
    return true;
}

/* ---- sizes that nothing binds ----------------------------------------------------------------------------------------- */

typedef struct unbound_finder {
    tx_visitor v;
    tx_map bound; /* variables that the function lists or that a statement binds */
    const tx_node *at;
    bool binders; /* first walk: collect */
    bool failed;
} unbound_finder;

static bool
find_unbound(tx_visitor *visitor, const tx_node *n)
{
    unbound_finder *f = (unbound_finder *)visitor;

    if (f->binders) {
        if (n->op == TX_OP_BIND || n->op == TX_OP_LET)
            f->failed |= !tx_map_put_ptr(&f->bound, n->u.var, n);
        return true;
    }
    if (!f->at && n->op == TX_OP_VAR && (n->u.var->kind == TX_VAR_SYMBOL || n->u.var->kind == TX_VAR_FREE) &&
        tx_is_int(n->dtype) && !tx_map_ptr(&f->bound, n->u.var))
        f->at = n;
    return !f->at;
}

bool
tx_check_symbols(tx_ctx *c, const tx_func *f)
{
    unbound_finder u = {.v = {find_unbound, NULL}, .binders = true};
    tx_symbol_solution solution;

    if (!tx_solve_symbols(c, f, &solution))
        return false;
    for (uint32_t i = 0; i < f->nsymbols; i++)
        u.failed |= !tx_map_put_ptr(&u.bound, f->symbols[i], f);
    for (uint32_t i = 0; i < f->nparams; i++)
        u.failed |= f->params[i].var && !tx_map_put_ptr(&u.bound, f->params[i].var, f);
    tx_walk(&u.v, f->body);
    u.binders = false;
    tx_walk(&u.v, f->body);
    tx_map_free(&u.bound);
    if (u.failed)
        return tx_fail(c, 0, TX_E_NO_MEMORY) != NULL;
    return !u.at || tx_fail(c, u.at->span, TX_E_SYMBOL_UNBOUND, u.at->u.var->name->text) != NULL;
}

bool
tx_solve_symbols(tx_ctx *c, const tx_func *f, tx_symbol_solution *out)
{
    solver s = {.c = c, .f = f};
    bool ok;

    *out = (tx_symbol_solution){0};
    if (f->nsymbols == 0 || f->flags & TX_FUNC_KERNEL)
        return true;
    ok = solve(&s);
    tx_map_free(&s.known);
    *out = (tx_symbol_solution){s.defs.n, s.defs.at};
    return ok;
}
