/* Calls of host functions on the host: the callee's body stands in place of the call, with the arguments for its parameters
 * and variables of its own, so that its device regions become kernels of the caller. First of LowerTIRx; only functions
 * that return nothing, and never early, can be called so. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct host_call {
    tx_ctx *c;
    tx_module *m;
    TX_VEC(const tx_node *) out; /* of the call being expanded: bindings, then the body */
} host_call;

static const tx_node *host_call_stmt(tx_rewriter *r, const tx_node *n);
static const tx_node *host_call_value(tx_rewriter *r, const tx_node *n);

static bool
find_return(const tx_node *n)
{
    if (n->op == TX_OP_RETURN)
        return true;
    for (uint32_t i = 0; n->op != TX_OP_DEVICE && tx_is_stmt(n) && i < n->nargs; i++)
        if (n->arg[i] && find_return(n->arg[i]))
            return true;
    return false;
}

static bool
host_callable(tx_ctx *c, const tx_node *call, const tx_func *f)
{
    const char *why = f->ret != TX_VOID      ? "it returns a value"
                      : find_return(f->body) ? "it returns early"
                      : f->nattrs            ? "it has attributes of its own"
                                             : NULL;

    if (why)
        return tx_fail(c, call->span, TX_E_CALL_HOST, f->name->text, why) != NULL;
    return call->nargs == f->nparams ||
           tx_fail(c, call->span, TX_E_CALL_ARGUMENTS, f->name->text, (int)f->nparams, (int)call->nargs) != NULL;
}

/* A value that the body may use often is computed once, before it. */
static const tx_node *
bound_once(host_call *k, const tx_var *like, const tx_node *value)
{
    tx_var *v;
    const tx_node *bind;

    if (!value || value->op == TX_OP_INT || value->op == TX_OP_FLOAT || value->op == TX_OP_VAR)
        return value;
    v = tx_new_var(k->c, TX_VAR_LET, like->name, like->dtype);
    bind = v ? tx_bind(k->c, v, value) : NULL;
    return bind && tx_push(k->c, &k->out, bind) ? v->node : NULL;
}

static bool
map_param(host_call *k, tx_rewriter *r, const tx_node *call, const tx_param *p, uint32_t i)
{
    const tx_node *a = call->arg[i], *to;
    const tx_buffer *b = tx_argument_buffer(a);
    const tx_var *from = p->buffer ? p->buffer->data : p->var;

    if (p->buffer || tx_is_handle(p->var->dtype)) {
        if (a->op == TX_OP_ADDRESS_OF || (p->buffer && b && b->rank != p->buffer->rank))
            return tx_fail(k->c, call->span, TX_E_CALL_HOST, call->u.call->name->text,
                           "a part of a buffer cannot be passed there") != NULL;
        to = b ? b->data->node : a;
    } else {
        to = bound_once(k, p->var, a);
    }
    if (!to)
        return false;
    if (p->buffer && (!b || !tx_map_put_ptr(&r->bufs, p->buffer, b)))
        return tx_fail(k->c, call->span, TX_E_CALL_HOST, call->u.call->name->text,
                       "it needs a buffer, not a pointer") != NULL;
    return tx_map_put_ptr(&r->vars, from, to) || tx_fail(k->c, 0, TX_E_NO_MEMORY) != NULL;
}

/* What the callee's signature would have checked: its extents are those of the buffers passed. */
static bool
check_extents_of_call(host_call *k, const tx_node *call, const tx_func *f, tx_var *const *vars,
                      const tx_node *const *values, uint32_t n)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_buffer *want = f->params[i].buffer, *got = want ? tx_argument_buffer(call->arg[i]) : NULL;
        for (int d = 0; want && d < want->rank; d++) {
            const tx_node *e = tx_substitute(k->c, want->shape[d], vars, values, n);
            const tx_node *same = tx_binary(k->c, TX_OP_EQ, tx_i64(k->c, e), tx_i64(k->c, got->shape[d])), *stmt;
            tx_assertion *a = tx_new(k->c, tx_assertion, 1);
            const tx_str **part = tx_new(k->c, const tx_str *, 1);

            if (!same || !a || !part)
                return false;
            if (tx_is_const(same, 1))
                continue;
            *part =
                tx_intern_f(k->c, "%s.shape[%d] does not match what %s() expects", got->name->text, d, f->name->text);
            *a = (tx_assertion){tx_intern_z(k->c, "ValueError"), 1, part};
            stmt = tx_make(k->c, TX_OP_ASSERT, TX_VOID, (tx_payload){.assertion = a}, &same, 1);
            if (!*part || !a->kind || !stmt || !tx_push(k->c, &k->out, stmt))
                return false;
        }
    }
    return true;
}

static bool
map_sizes(host_call *k, tx_rewriter *r, const tx_node *call, const tx_func *f, const tx_symbol_solution *s)
{
    tx_var **vars = tx_new(k->c, tx_var *, f->nparams + s->ndefs + 1);
    const tx_node **values = tx_new(k->c, const tx_node *, f->nparams + s->ndefs + 1);
    uint32_t n = 0;

    if (!vars || !values)
        return false;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (!f->params[i].buffer && !tx_is_handle(f->params[i].var->dtype)) {
            vars[n] = f->params[i].var;
            values[n++] = tx_map_ptr(&r->vars, f->params[i].var);
        }
    for (uint32_t i = 0; i < s->ndefs; i++, n++) {
        vars[n] = s->def[i].symbol;
        values[n] = bound_once(k, vars[n], tx_size_at_call(k->c, call, f, &s->def[i], vars, values, n));
        if (!values[n])
            return false;
        if (!tx_map_put_ptr(&r->vars, vars[n], values[n]))
            return tx_fail(k->c, 0, TX_E_NO_MEMORY) != NULL;
    }
    return check_extents_of_call(k, call, f, vars, values, n);
}

static const tx_node *
drop_host_match(tx_rewriter *r, const tx_node *n)
{
    return n->u.buf->flags & TX_BUF_PARAM ? tx_nothing(r->c) : tx_rewrite_children(r, n);
}

static const tx_node *
expand_call(host_call *outer, const tx_node *call, const tx_func *f)
{
    host_call k = {.c = outer->c, .m = outer->m};
    tx_rewrite_fn *fn = tx_new(k.c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = k.c, .fn = fn, .self = &k, .refold = true};
    tx_symbol_solution s;
    const tx_node *body = NULL;
    bool ok = fn && host_callable(k.c, call, f) && tx_solve_symbols(k.c, f, &s);

    if (!ok)
        return NULL;
    k.c->span = call->span;
    fn[TX_OP_EVAL] = host_call_stmt;
    fn[TX_OP_CALL_FUNC] = host_call_value;
    fn[TX_OP_MATCH] = drop_host_match;
    for (uint32_t i = 0; ok && i < f->nparams; i++)
        ok = map_param(&k, &r, call, &f->params[i], i);
    if (ok && map_sizes(&k, &r, call, f, &s) && tx_map_fresh(&r, f->body))
        body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    return body && tx_push(k.c, &k.out, body) ? tx_seq(k.c, k.out.at, k.out.n) : NULL;
}

static const tx_func *
called_on_host(const host_call *k, const tx_node *call)
{
    for (uint32_t i = 0; call->op == TX_OP_CALL_FUNC && i < k->m->nfuncs; i++)
        if (k->m->names[i] == call->u.call->name)
            return k->m->funcs[i]->flags & TX_FUNC_DEVICE ? NULL : k->m->funcs[i];
    return NULL;
}

/* A call whose value is wanted. */
static const tx_node *
host_call_value(tx_rewriter *r, const tx_node *n)
{
    const tx_func *f = called_on_host(r->self, n);

    return f ? tx_fail(r->c, n->span, TX_E_CALL_HOST, f->name->text, "it gives no value there")
             : tx_rewrite_children(r, n);
}

static const tx_node *
host_call_stmt(tx_rewriter *r, const tx_node *n)
{
    const tx_func *f = called_on_host(r->self, n->arg[0]);
    const tx_node *call;

    if (!f)
        return tx_rewrite_children(r, n);
    call = tx_rewrite_children(r, n->arg[0]);
    return call ? expand_call(r->self, call, f) : NULL;
}

tx_module *
tx_host_calls(tx_ctx *c, tx_module *m)
{
    host_call k = {.c = c, .m = m};
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_module *out = tx_new_module(c, m->nfuncs);
    tx_span saved = c->span;
    bool changed = false;

    if (!fn || !out)
        return NULL;
    fn[TX_OP_EVAL] = host_call_stmt;
    fn[TX_OP_CALL_FUNC] = host_call_value;
    out->attrs = m->attrs;
    out->nattrs = m->nattrs;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        tx_rewriter r = {.c = c, .fn = fn, .self = &k};
        out->names[i] = m->names[i];
        out->funcs[i] = m->funcs[i];
        if (!(m->funcs[i]->flags & TX_FUNC_CALLS) || m->funcs[i]->flags & (TX_FUNC_DEVICE | TX_FUNC_KERNEL))
            continue;
        out->funcs[i] = tx_func_with_body(c, m->funcs[i], tx_rewrite(&r, m->funcs[i]->body));
        tx_rewriter_free(&r);
        if (!out->funcs[i])
            return NULL;
        changed |= out->funcs[i] != m->funcs[i];
    }
    c->span = saved;
    return changed ? tx_link_module(c, out) : m;
}
