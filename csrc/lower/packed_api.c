/* MakePackedAPI: what a call checks and where symbols come from, written out as IR for reading. Nothing runs this form: the
 * launch plan does the same from the split function (runtime/plan.c). Takes a host function whose parameters are tensors;
 * gives one whose parameters are handles, with the checks of lowering.md 6.1 as assertions and each tensor declared over
 * its argument's data. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* Fields of a tensor argument, numbered as the originals do. */
enum field { F_DATA = 1, F_SHAPE, F_STRIDES, F_NDIM, F_CODE, F_BITS, F_LANES, F_ELEMENT = 17 };

typedef struct argument {
    tx_var *handle, *shape, *strides;
} argument;

typedef struct writer {
    tx_ctx *c;
    const tx_func *f;
    uint32_t i; /* the parameter at hand */
    const tx_param *p;
    argument *args; /* of every parameter */
    const char *signature;
    tx_symbol_solution symbols;
    TX_VEC(const tx_node *) out;
} writer;

static bool
packed_api_emit(writer *w, const tx_node *n)
{
    return n && tx_push(w->c, &w->out, n);
}

static const tx_node *
packed_api_get(writer *w, const tx_node *of, int64_t index, enum field field, tx_dtype t)
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
    return packed_api_emit(w, tx_make(w->c, TX_OP_ASSERT, TX_VOID, (tx_payload){.assertion = a}, &cond, 1));
}

static const tx_node *
equal(writer *w, const tx_node *a, int64_t b)
{
    return a ? tx_binary(w->c, TX_OP_EQ, a, tx_int(w->c, a->dtype, b)) : NULL;
}

/* The extent that defines a symbol, as its message names it: "A.shape[0]"; NULL: none does. */
static const tx_str *
definition_of(writer *w, const tx_var *v)
{
    for (uint32_t i = 0; i < w->symbols.ndefs; i++) {
        const tx_symbol_def *d = &w->symbols.def[i];
        if (d->symbol == v)
            return tx_intern_f(w->c, "to match %s.%s[%d]", w->f->params[d->param].buffer->name->text,
                               d->stride ? "strides" : "shape", d->dim);
    }
    return NULL;
}

static const tx_node *
extent_of(writer *w, uint32_t param, int dim, bool stride)
{
    const tx_var *v = stride ? w->args[param].strides : w->args[param].shape;

    return v ? packed_api_get(w, v->node, dim, F_ELEMENT, TX_I64) : NULL;
}

/* n = T.Cast("int32", (extent - d) // c), for each symbol */
static bool
bind_symbols(writer *w)
{
    for (uint32_t i = 0; i < w->symbols.ndefs; i++) {
        const tx_symbol_def *d = &w->symbols.def[i];
        const tx_node *value = extent_of(w, d->param, d->dim, d->stride);
        if (value && d->d)
            value = tx_binary(w->c, TX_OP_SUB, value, d->d);
        if (value && d->c != 1)
            value = tx_binary(w->c, TX_OP_FLOORDIV, value, tx_int(w->c, TX_I64, d->c));
        value = value ? tx_cast(w->c, d->symbol->dtype, value) : NULL;
        if (!value ||
            !packed_api_emit(w, tx_make(w->c, TX_OP_BIND, TX_VOID, (tx_payload){.var = d->symbol}, &value, 1)))
            return false;
    }
    return true;
}

/* The equation that defines a symbol with factor 1 needs no check. */
static bool
only_defines(const writer *w, int dim, bool stride)
{
    for (uint32_t i = 0; i < w->symbols.ndefs; i++) {
        const tx_symbol_def *d = &w->symbols.def[i];
        if (d->param == w->i && d->dim == dim && d->stride == stride)
            return d->c == 1;
    }
    return false;
}

static bool
packed_api_check_extent(writer *w, const tx_node *wanted, int dim, bool stride)
{
    const tx_node *came = extent_of(w, w->i, dim, stride);
    const tx_str *what = tx_intern_f(w->c, ".%s[%d]", stride ? "strides" : "shape", dim), *from;

    if (!came || !what)
        return false;
    if (only_defines(w, dim, stride))
        return true;
    from = wanted->op == TX_OP_VAR ? definition_of(w, wanted->u.var) : NULL;
    return require(w, tx_binary(w->c, TX_OP_EQ, came, tx_i64(w->c, wanted)), "ValueError",
                   from ? "Mismatched" : "Invalid", what->text,
                   from ? from : tx_intern_z(w->c, tx_expr_text(w->c, wanted)));
}

static bool
bind_field(writer *w, tx_var **v, const char *suffix, enum field field)
{
    const tx_node *value = packed_api_get(w, w->args[w->i].handle->node, 0, field, TX_HANDLE);

    *v = tx_new_var(w->c, TX_VAR_LET, tx_intern_f(w->c, "%s_%s", w->args[w->i].handle->name->text, suffix), TX_HANDLE);
    return *v && packed_api_emit(w, tx_bind(w->c, *v, value));
}

/* Kind checks of one tensor; its extents and strides at hand. */
static bool
check_kind(writer *w)
{
    tx_buffer *b = w->p->buffer;
    const tx_node *h = w->args[w->i].handle->node, *same;
    int32_t dl = tx_kinds[tx_kind(b->dtype)].dlpack;
    bool ok;

    same = tx_binary(w->c, TX_OP_AND, equal(w, packed_api_get(w, h, 0, F_CODE, TX_I32), dl >> 8),
                     equal(w, packed_api_get(w, h, 0, F_BITS, TX_I32), dl & 0xff));
    same = tx_binary(w->c, TX_OP_AND, same, equal(w, packed_api_get(w, h, 0, F_LANES, TX_I32), tx_lanes(b->dtype)));
    ok = require(w, equal(w, packed_api_get(w, h, 0, F_NDIM, TX_I32), b->rank), "ValueError", "Mismatched", ".ndim",
                 tx_intern_f(w->c, "%d", b->rank));
    ok = ok && (dl == TX_DL_NONE || require(w, same, "TypeError", "Mismatched", ".dtype",
                                            tx_intern_z(w->c, tx_dtype_name(w->c, b->dtype))));
    ok = ok && (b->rank == 0 || bind_field(w, &w->args[w->i].shape, "shape", F_SHAPE));
    return ok && (!b->strides || bind_field(w, &w->args[w->i].strides, "strides", F_STRIDES));
}

/* Extents of one tensor, and its declaration over the argument's data. */
static bool
packed_api_check_extents(writer *w)
{
    tx_buffer *b = w->p->buffer;
    const tx_node *data = packed_api_get(w, w->args[w->i].handle->node, 0, F_DATA, TX_HANDLE);

    for (int d = 0; d < b->rank; d++)
        if (!packed_api_check_extent(w, b->shape[d], d, false) ||
            (b->strides && !packed_api_check_extent(w, b->strides[d], d, true)))
            return false;
    return data && packed_api_emit(w, tx_make(w->c, TX_OP_DECL, TX_VOID, (tx_payload){.buf = b}, &data, 1));
}

static const char *
packed_api_signature(tx_ctx *c, const tx_func *f)
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
        if (!b && f->params[i].var && tx_is_tensormap(f->params[i].var))
            tx_sb_puts(&s, "TensorMap");
        else if (b || f->params[i].var)
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

/* Calls `step` for each tensor parameter, with its number, its record and its place set. */
static bool
each_tensor(writer *w, bool (*step)(writer *w))
{
    for (w->i = 0; w->i < w->f->nparams; w->i++) {
        w->p = &w->f->params[w->i];
        w->c->span = w->p->span;
        if (w->p->buffer && !step(w))
            return false;
    }
    return true;
}

static bool
make_handle(writer *w)
{
    const tx_str *name =
        w->p->name != w->p->buffer->name ? w->p->name : tx_intern_f(w->c, "%s_handle", w->p->buffer->name->text);

    return (w->args[w->i].handle = tx_new_var(w->c, TX_VAR_PARAM, name, TX_HANDLE)) != NULL;
}

static tx_func *
packed_api_written(writer *w)
{
    tx_func *out = tx_copy_func(w->c, w->f);
    tx_param *params = tx_new(w->c, tx_param, w->f->nparams ? w->f->nparams : 1);
    tx_rewrite_fn *fn = tx_new(w->c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = w->c, .fn = fn};
    const tx_node *body;

    w->args = tx_new(w->c, argument, w->f->nparams ? w->f->nparams : 1);
    if (!out || !params || !fn || !w->args || !each_tensor(w, make_handle) || !each_tensor(w, check_kind) ||
        !bind_symbols(w) || !each_tensor(w, packed_api_check_extents))
        return NULL;
    for (uint32_t i = 0; i < w->f->nparams; i++) {
        params[i] = w->f->params[i];
        if (params[i].buffer)
            params[i] = (tx_param){.var = w->args[i].handle, .name = w->args[i].handle->name, .span = params[i].span};
    }
    fn[TX_OP_MATCH] = drop_match;
    body = tx_rewrite(&r, w->f->body);
    tx_rewriter_free(&r);
    if (!packed_api_emit(w, body))
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
    w.signature = packed_api_signature(c, f);
    if (!w.signature || !tx_solve_symbols(c, f, &w.symbols))
        return NULL;
    out = packed_api_written(&w);
    c->span = saved;
    return out;
}
