/* MakePackedAPI: what a call checks and where symbols come from, written out as IR for reading. Nothing runs this form: the
 * launch plan does the same from the split function (runtime/plan.c). Takes a host function whose parameters are tensors;
 * gives one whose parameters are handles, with the checks of lowering.md 6.1 as assertions and each tensor declared over
 * its argument's data. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* Fields of a tensor argument, numbered as the originals do. */
enum field { F_DATA = 1, F_SHAPE, F_STRIDES, F_NDIM, F_CODE, F_BITS, F_LANES, F_ELEMENT = 17 };

typedef struct writer {
    tx_ctx *c;
    const tx_func *f;
    const tx_param *p;
    uint32_t i;     /* of p */
    tx_var *handle; /* the argument */
    tx_var *shape, *strides;
    const char *signature;
    tx_symbol_solution symbols;
    tx_map bound; /* symbols bound so far */
    TX_VEC(const tx_node *) out;
} writer;

static bool
emit(writer *w, const tx_node *n)
{
    return n && tx_push(w->c, &w->out, n);
}

static const tx_node *
get(writer *w, const tx_node *of, int64_t index, enum field field, tx_dtype t)
{
    const tx_node *args[3] = {of, tx_int(w->c, TX_I32, index), tx_int(w->c, TX_I32, field)};

    return args[1] && args[2] ? tx_make(w->c, TX_OP_STRUCT_GET, t, (tx_payload){0}, args, 3) : NULL;
}

static bool
require(writer *w, const tx_node *cond, const char *kind, const char *fault, const char *what, const tx_str *expected)
{
    tx_assertion *a = tx_new(w->c, tx_assertion, 1);
    const tx_str **parts = tx_new(w->c, const tx_str *, 4);

    if (!a || !parts || !cond || !expected)
        return false;
    parts[0] =
        tx_intern_f(w->c, "%s %s%s on argument #%u when calling:\n  `", fault, w->p->buffer->name->text, what, w->i);
    parts[1] = tx_intern_z(w->c, w->signature);
    parts[2] = tx_intern_z(w->c, "`,\n  expected ");
    parts[3] = expected;
    *a = (tx_assertion){.kind = tx_intern_z(w->c, kind), .nparts = 4, .parts = parts};
    return emit(w, tx_make(w->c, TX_OP_ASSERT, TX_VOID, (tx_payload){.assertion = a}, &cond, 1));
}

static const tx_node *
equal(writer *w, const tx_node *a, int64_t b)
{
    return a ? tx_binary(w->c, TX_OP_EQ, a, tx_int(w->c, a->dtype, b)) : NULL;
}

/* The extent that defines a symbol, as its message names it: "A.shape[0]". */
static const char *
definition(writer *w, const tx_var *v, const tx_symbol_def **out)
{
    for (uint32_t i = 0; i < w->symbols.ndefs; i++) {
        const tx_symbol_def *d = &w->symbols.def[i];
        if (d->symbol != v)
            continue;
        *out = d;
        const tx_str *s = tx_intern_f(w->c, "%s.%s[%d]", w->f->params[d->param].buffer->name->text,
                                      d->stride ? "strides" : "shape", d->dim);
        return s ? s->text : NULL;
    }
    *out = NULL;
    return NULL;
}

/* n = T.Cast("int32", (extent - d) // c) */
static bool
bind_symbol(writer *w, const tx_symbol_def *d, const tx_node *extent)
{
    const tx_node *value = extent;

    if (d->d)
        value = tx_binary(w->c, TX_OP_SUB, value, d->d);
    if (d->c != 1)
        value = tx_binary(w->c, TX_OP_FLOORDIV, value, tx_int(w->c, TX_I64, d->c));
    value = value ? tx_cast(w->c, d->symbol->dtype, value) : NULL;
    if (!value || !tx_map_put_ptr(&w->bound, d->symbol, d))
        return false;
    return emit(w, tx_make(w->c, TX_OP_BIND, TX_VOID, (tx_payload){.var = d->symbol}, &value, 1));
}

static bool
extent(writer *w, const tx_node *wanted, int dim, bool stride)
{
    const tx_node *came = get(w, (stride ? w->strides : w->shape)->node, dim, F_ELEMENT, TX_I64);
    const tx_str *what = tx_intern_f(w->c, ".%s[%d]", stride ? "strides" : "shape", dim);
    const tx_symbol_def *d;
    const char *from;

    if (!came || !what)
        return false;
    for (uint32_t i = 0; i < w->symbols.ndefs; i++) {
        d = &w->symbols.def[i];
        if (d->param == w->i && d->dim == dim && d->stride == stride && !tx_map_ptr(&w->bound, d->symbol))
            return bind_symbol(w, d, came);
    }
    from = wanted->op == TX_OP_VAR ? definition(w, wanted->u.var, &d) : NULL;
    return require(w, tx_binary(w->c, TX_OP_EQ, came, tx_i64(w->c, wanted)), "ValueError",
                   from ? "Mismatched" : "Invalid", what->text,
                   from ? tx_intern_f(w->c, "to match %s", from) : tx_intern_z(w->c, tx_expr_text(w->c, wanted)));
}

static bool
bind_field(writer *w, tx_var **v, const char *suffix, enum field field)
{
    const tx_node *value = get(w, w->handle->node, 0, field, TX_HANDLE);

    *v = tx_new_var(w->c, TX_VAR_LET, tx_intern_f(w->c, "%s_%s", w->handle->name->text, suffix), TX_HANDLE);
    return *v && emit(w, tx_bind(w->c, *v, value));
}

/* Checks of one tensor, its symbols, and its declaration over the argument's data. */
static bool
tensor(writer *w)
{
    tx_buffer *b = w->p->buffer;
    const tx_node *h = w->handle->node, *data = get(w, h, 0, F_DATA, TX_HANDLE), *same;
    int32_t dl = tx_kinds[tx_kind(b->dtype)].dlpack;
    bool ok;

    same = tx_binary(w->c, TX_OP_AND, equal(w, get(w, h, 0, F_CODE, TX_I32), dl >> 8),
                     equal(w, get(w, h, 0, F_BITS, TX_I32), dl & 0xff));
    same = tx_binary(w->c, TX_OP_AND, same, equal(w, get(w, h, 0, F_LANES, TX_I32), tx_lanes(b->dtype)));
    ok = require(w, equal(w, get(w, h, 0, F_NDIM, TX_I32), b->rank), "ValueError", "Mismatched", ".ndim",
                 tx_intern_f(w->c, "%d", b->rank));
    ok = ok && (dl == TX_DL_NONE || require(w, same, "TypeError", "Mismatched", ".dtype",
                                            tx_intern_z(w->c, tx_dtype_name(w->c, b->dtype))));
    ok = ok && (b->rank == 0 || bind_field(w, &w->shape, "shape", F_SHAPE));
    for (int d = 0; ok && d < b->rank; d++)
        ok = extent(w, b->shape[d], d, false);
    ok = ok && (!b->strides || bind_field(w, &w->strides, "strides", F_STRIDES));
    for (int d = 0; ok && b->strides && d < b->rank; d++)
        ok = extent(w, b->strides[d], d, true);
    return ok && emit(w, tx_make(w->c, TX_OP_DECL, TX_VOID, (tx_payload){.buf = b}, &data, 1));
}

static const char *
signature(tx_ctx *c, const tx_func *f)
{
    tx_sb s = {0};
    const tx_str *text;

    tx_sb_f(&s, "%s(", f->name->text);
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_buffer *b = f->params[i].buffer;
        tx_sb_f(&s, "%s%s: ", i ? ", " : "", b ? b->name->text : f->params[i].name->text);
        for (int d = 0; b && d < b->rank; d++)
            tx_sb_f(&s, "%s%s", d ? ", " : "Tensor([", tx_expr_text(c, b->shape[d]));
        tx_sb_puts(&s, b ? b->rank ? "], " : "Tensor([], " : "");
        if (b || f->params[i].var)
            tx_dtype_print(b ? b->dtype : f->params[i].var->dtype, &s);
        tx_sb_puts(&s, b ? ")" : "");
    }
    tx_sb_puts(&s, ")");
    text = s.failed ? NULL : tx_intern(c, s.text, s.n);
    tx_sb_free(&s);
    return text ? text->text : NULL;
}

static const tx_node *
drop_match(tx_rewriter *r, const tx_node *n)
{
    (void)n;
    return tx_nothing(r->c);
}

static bool
write_params(writer *w, tx_param *params)
{
    for (w->i = 0; w->i < w->f->nparams; w->i++) {
        w->p = &w->f->params[w->i];
        params[w->i] = *w->p;
        if (!w->p->buffer)
            continue;
        w->c->span = w->p->span;
        w->handle =
            tx_new_var(w->c, TX_VAR_PARAM,
                       w->p->name != w->p->buffer->name ? w->p->name : tx_intern_f(w->c, "%s_handle", w->p->name->text),
                       TX_HANDLE);
        if (!w->handle || !tensor(w))
            return false;
        params[w->i] = (tx_param){.var = w->handle, .name = w->handle->name, .span = w->p->span};
    }
    return true;
}

static tx_func *
written(writer *w)
{
    tx_func *out = tx_copy_func(w->c, w->f);
    tx_param *params = tx_new(w->c, tx_param, w->f->nparams ? w->f->nparams : 1);
    tx_rewrite_fn *fn = tx_new(w->c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = w->c, .fn = fn};
    const tx_node *body;

    if (!out || !params || !fn || !write_params(w, params))
        return NULL;
    fn[TX_OP_MATCH] = drop_match;
    body = tx_rewrite(&r, w->f->body);
    tx_rewriter_free(&r);
    if (!emit(w, body))
        return NULL;
    out->body = tx_seq(w->c, w->out.at, w->out.n);
    out->params = params;
    out->nsymbols = 0;
    return out->body ? out : NULL;
}

tx_func *
tx_packed_api_func(tx_ctx *c, tx_func *f, const tx_target *t)
{
    writer w = {.c = c, .f = f};
    tx_span saved = c->span;
    bool tensors = false;
    tx_func *out;

    (void)t;
    for (uint32_t i = 0; i < f->nparams; i++)
        tensors |= f->params[i].buffer != NULL;
    if (!(f->flags & TX_FUNC_HOST) || !tensors)
        return f;
    w.signature = signature(c, f);
    if (!w.signature || !tx_solve_symbols(c, f, &w.symbols))
        return NULL;
    out = written(&w);
    tx_map_free(&w.bound);
    c->span = saved;
    return out;
}
