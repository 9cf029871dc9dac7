/* Device functions: private functions of a module that device code calls. At the end of parsing: what they may not hold.
 * In LowerTIRx: index intrinsics are written over the coordinates of the launch, whatever it is; the sizes that a
 * function's shapes name become parameters behind the user's own, and every call passes what they are there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* ---- checks --------------------------------------------------------------------------------------------------------- */

typedef struct func_check {
    tx_visitor v;
    tx_ctx *c;
    const tx_func *f;
    bool failed;
} func_check;

static bool
check_statement(tx_visitor *v, const tx_node *n)
{
    func_check *k = (func_check *)v;
    const tx_func *f = k->f;

    if (n->op == TX_OP_ALLOC && n->u.buf->scope != TX_LOCAL) {
        tx_fail(k->c, n->span, TX_E_MEMBER_ALLOC, f->name->text, tx_scope_name((tx_scope)n->u.buf->scope));
        k->failed = true;
    } else if (n->op == TX_OP_SCOPE_ID) {
        tx_fail(k->c, n->span, TX_E_MEMBER_SCOPE_ID, tx_binding_calls[n->u.scope_id->binding], f->name->text);
        k->failed = true;
    } else if (n->op == TX_OP_RETURN && n->arg[0] && f->ret == TX_VOID) {
        tx_fail_help(
            k->c, n->span,
            tx_intern_f(k->c, "write it behind the parameters: -> T.%s", tx_dtype_name(k->c, n->arg[0]->dtype))->text,
            TX_E_MEMBER_RETURN_TYPE, f->name->text);
        k->failed = true;
    } else if (n->op == TX_OP_RETURN && !n->arg[0] && f->ret != TX_VOID) {
        tx_fail(k->c, n->span, TX_E_MEMBER_RETURN_NOTHING, f->name->text, tx_dtype_name(k->c, f->ret));
        k->failed = true;
    }
    return !k->failed && tx_is_stmt(n);
}

/* Every way through the statement ends in a return. */
static bool
always_returns(const tx_node *n)
{
    switch (n->op) {
    case TX_OP_RETURN: return true;
    case TX_OP_SEQ:
        for (uint32_t i = 0; i < n->nargs; i++)
            if (always_returns(n->arg[i]))
                return true;
        return false;
    case TX_OP_IF: return n->arg[2] && always_returns(n->arg[1]) && always_returns(n->arg[2]);
    case TX_OP_WHILE: return tx_is_const(n->arg[0], 1) && !tx_loop_jumps(n->arg[1]);
    case TX_OP_ATTR: return n->arg[1] && always_returns(n->arg[1]);
    default: return false;
    }
}

bool
tx_check_device_func(tx_ctx *c, const tx_func *f)
{
    func_check k = {.v = {check_statement, NULL}, .c = c, .f = f};

    if (!(f->flags & TX_FUNC_DEVICE))
        return true;
    tx_walk(&k.v, f->body);
    if (k.failed)
        return false;
    if (tx_lanes(f->ret) > 1)
        return tx_fail(c, f->span, TX_E_MEMBER_SCALARS, tx_dtype_name(c, f->ret)) != NULL;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].var && tx_lanes(f->params[i].var->dtype) > 1)
            return tx_fail(c, f->params[i].span, TX_E_MEMBER_SCALARS, tx_dtype_name(c, f->params[i].var->dtype)) !=
                   NULL;
    if (f->ret != TX_VOID && !always_returns(f->body))
        return tx_fail(c, f->span, TX_E_CALL_END, f->name->text, tx_dtype_name(c, f->ret)) != NULL;
    return true;
}

/* ---- index intrinsics ------------------------------------------------------------------------------------------------ */

static const tx_node *
linear_index(tx_ctx *c)
{
    const tx_node *t = tx_coord(c, TX_OP_THREAD_IDX, 2);

    for (int axis = 1; axis >= 0; axis--) {
        t = tx_binary(c, TX_OP_MUL, t, tx_coord(c, TX_OP_BLOCK_DIM, axis));
        t = tx_binary(c, TX_OP_ADD, t, tx_coord(c, TX_OP_THREAD_IDX, axis));
    }
    return t;
}

/* The linear index divided by `by`, modulo `of`; 0 leaves a step out. */
static const tx_node *
part_of_index(tx_rewriter *r, const tx_node *n, int64_t by, int64_t of)
{
    const tx_node *t;

    r->c->span = n->span;
    t = linear_index(r->c);
    if (by)
        t = tx_binary(r->c, TX_OP_FLOORDIV, t, tx_int(r->c, TX_I32, by));
    return of ? tx_binary(r->c, TX_OP_FLOORMOD, t, tx_int(r->c, TX_I32, of)) : t;
}

static const tx_node *
index_in_func(tx_rewriter *r, const tx_node *n)
{
    switch (n->op) {
    case TX_OP_LINEAR_TID:
    case TX_OP_THREAD_RANK: return part_of_index(r, n, 0, 0);
    case TX_OP_WARP_ID: return part_of_index(r, n, 32, 0);
    case TX_OP_LANE_ID: return part_of_index(r, n, 0, 32);
    case TX_OP_WARPGROUP_ID: return part_of_index(r, n, 128, 0);
    case TX_OP_WARP_IN_WG: return part_of_index(r, n, 32, 4);
    case TX_OP_THREAD_IN_WG: return part_of_index(r, n, 0, 128);
    case TX_OP_CTA_PAIR:
        return tx_binary(r->c, TX_OP_FLOORMOD, tx_coord(r->c, TX_OP_CLUSTER_RANK, 0), tx_int(r->c, TX_I32, 2));
    default: return n;
    }
}

tx_func *
tx_device_func(tx_ctx *c, tx_func *f)
{
    static const uint16_t ops[] = {TX_OP_LINEAR_TID,   TX_OP_THREAD_RANK, TX_OP_WARP_ID,      TX_OP_LANE_ID,
                                   TX_OP_WARPGROUP_ID, TX_OP_WARP_IN_WG,  TX_OP_THREAD_IN_WG, TX_OP_CTA_PAIR};
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn, .refold = true};
    tx_span saved = c->span;
    const tx_node *body;

    if (!fn)
        return NULL;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        fn[ops[i]] = index_in_func;
    body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    c->span = saved;
    return tx_func_with_body(c, f, body);
}

/* ---- sizes ----------------------------------------------------------------------------------------------------------- */

typedef struct func_calls {
    tx_ctx *c;
    tx_module *m;
    tx_symbol_solution *sizes; /* of each member */
} func_calls;

const tx_buffer *
tx_argument_buffer(const tx_node *a)
{
    if (a->op == TX_OP_BUFFER_DATA)
        return a->u.buf;
    return a->op == TX_OP_ADDRESS_OF && a->arg[0]->op == TX_OP_LOAD ? a->arg[0]->u.buf : NULL;
}

const tx_node *
tx_size_at_call(tx_ctx *c, const tx_node *call, const tx_func *f, const tx_symbol_def *d, tx_var *const *vars,
                const tx_node *const *values, uint32_t n)
{
    const tx_buffer *b = tx_argument_buffer(call->arg[d->param]);
    const tx_node *extent;

    if (!b || b->rank != f->params[d->param].buffer->rank || (d->stride && !b->strides))
        return tx_fail(c, call->span, TX_E_CALL_SYMBOL, d->symbol->name->text, f->name->text);
    extent = d->stride ? b->strides[d->dim] : b->shape[d->dim];
    if (d->d)
        extent = tx_binary(c, TX_OP_SUB, tx_i64(c, extent), tx_substitute(c, d->d, vars, values, n));
    if (d->c != 1)
        extent = tx_binary(c, TX_OP_FLOORDIV, tx_i64(c, extent), tx_int(c, TX_I64, d->c));
    return tx_cast(c, d->symbol->dtype, extent);
}

static const tx_node *
pass_sizes(tx_rewriter *r, const tx_node *n)
{
    func_calls *k = r->self;
    const tx_symbol_solution *s = NULL;
    const tx_func *f = NULL;
    const tx_node **args, **values;
    uint32_t nvars = 0;
    tx_var **vars;

    n = tx_rewrite_children(r, n);
    for (uint32_t i = 0; n && i < k->m->nfuncs; i++)
        if (k->m->names[i] == n->u.call->name) {
            f = k->m->funcs[i];
            s = &k->sizes[i];
        }
    if (!n || TX_NEVER(!f))
        return n;
    if (n->nargs != f->nparams)
        return tx_fail(k->c, n->span, TX_E_CALL_ARGUMENTS, f->name->text, (int)f->nparams, (int)n->nargs);
    if (s->ndefs == 0)
        return n;
    k->c->span = n->span;
    args = tx_new(k->c, const tx_node *, n->nargs + s->ndefs);
    values = tx_new(k->c, const tx_node *, n->nargs + s->ndefs);
    vars = tx_new(k->c, tx_var *, n->nargs + s->ndefs);
    if (!args || !values || !vars)
        return NULL;
    for (uint32_t i = 0; i < n->nargs; i++) {
        args[i] = n->arg[i];
        if (f->params[i].buffer || tx_is_handle(f->params[i].var->dtype))
            continue;
        vars[nvars] = f->params[i].var;
        values[nvars++] = n->arg[i];
    }
    for (uint32_t i = 0; i < s->ndefs; i++, nvars++) {
        args[n->nargs + i] = values[nvars] = tx_size_at_call(k->c, n, f, &s->def[i], vars, values, nvars);
        vars[nvars] = s->def[i].symbol;
        if (!values[nvars])
            return NULL;
    }
    return tx_make_at(k->c, n->span, n->op, n->dtype, n->u, args, n->nargs + s->ndefs);
}

static tx_func *
with_size_params(tx_ctx *c, const tx_func *f, const tx_symbol_solution *s)
{
    tx_func *out = tx_copy_func(c, f);

    if (!out || !(out->params = tx_new(c, tx_param, f->nparams + s->ndefs)))
        return NULL;
    memcpy(out->params, f->params, f->nparams * sizeof *f->params);
    for (uint32_t i = 0; i < s->ndefs; i++) {
        tx_var *v = s->def[i].symbol;
        out->params[out->nparams++] = (tx_param){.var = v, .name = v->name, .span = v->span};
    }
    out->nsymbols = 0;
    return out;
}

tx_module *
tx_device_calls(tx_ctx *c, tx_module *m)
{
    func_calls k = {.c = c, .m = m, .sizes = tx_new(c, tx_symbol_solution, m->nfuncs)};
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_module *out = tx_new_module(c, m->nfuncs);
    tx_span saved = c->span;
    bool any = false;

    if (!k.sizes || !fn || !out)
        return NULL;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        any |= (m->funcs[i]->flags & TX_FUNC_CALLS) != 0;
        if (m->funcs[i]->flags & TX_FUNC_DEVICE && !tx_solve_symbols(c, m->funcs[i], &k.sizes[i]))
            return NULL;
        any |= k.sizes[i].ndefs > 0;
    }
    if (!any)
        return m;
    fn[TX_OP_CALL_FUNC] = pass_sizes;
    out->attrs = m->attrs;
    out->nattrs = m->nattrs;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        tx_func *f = m->funcs[i];
        tx_rewriter r = {.c = c, .fn = fn, .self = &k};
        if (f->flags & TX_FUNC_CALLS) {
            f = tx_func_with_body(c, f, tx_rewrite(&r, f->body));
            tx_rewriter_free(&r);
        }
        if (f && k.sizes[i].ndefs)
            f = with_size_params(c, f, &k.sizes[i]);
        if (!f)
            return NULL;
        out->funcs[i] = f;
        out->names[i] = m->names[i];
    }
    c->span = saved;
    return tx_link_module(c, out);
}
