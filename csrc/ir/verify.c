/* Well-formedness: every variable is defined once and used where it is visible, every buffer is declared where it is used,
 * accesses have as many indices as the buffer has dimensions, break and continue stand in loops. Debug builds also check
 * that children have the dtypes that their parent says: a fault there is ours. Records diagnostics, changes nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

/* Where a statement stands: "<root>.body.seq[2].body". Lives as long as the verifier, as definitions outlive blocks. */
typedef struct path {
    const struct path *up;
    const char *label;
    int64_t index; /* -1: none */
} path;

typedef struct definition {
    const path *at;
    uint32_t depth; /* of the block that it belongs to */
    bool visible;
} definition;

typedef struct verifier {
    tx_ctx *c;
    tx_ctx *scratch;            /* paths and definitions */
    tx_map defs;                /* variable or buffer -> definition */
    tx_map clean;               /* expression -> depth << 32 | serial of the block in which it was found right */
    TX_VEC(definition *) shown; /* definitions that the open blocks made, to be hidden at their end */
    TX_VEC(uint32_t) serials;   /* of the open blocks */
    uint32_t next_serial;
    uint32_t loops;
    const path *at;
    tx_span span; /* of the statement */
    bool failed;  /* out of memory */
    bool made;    /* by a pass: one T.Let may have been written into several places */
} verifier;

static void
print_path(tx_sb *out, const path *p)
{
    if (!p) {
        tx_sb_puts(out, "<root>");
        return;
    }
    print_path(out, p->up);
    tx_sb_f(out, ".%s", p->label);
    if (p->index >= 0)
        tx_sb_f(out, "[%lld]", (long long)p->index);
}

static const char *
path_text(verifier *v, const path *p, tx_sb *out)
{
    print_path(out, p);
    if (out->failed)
        v->failed = true;
    return out->n ? out->text : "<root>";
}

static const path *
step(verifier *v, const path *up, const char *label, int64_t index)
{
    path *p = tx_new(v->scratch, path, 1);

    if (!p) {
        v->failed = true;
        return up;
    }
    *p = (path){up, label, index};
    return p;
}

/* A variable knows only where it was defined, unless its use was given a place: then it is the statement's. */
static tx_span
verify_place(const verifier *v, const tx_node *n)
{
    bool defined_there = n && n->op == TX_OP_VAR && n->span == n->u.var->span;

    return n && n->span && !defined_there ? n->span : v->span;
}

/* Records a diagnostic with the name of what it is about and one or two paths. */
static void
verify_fault(verifier *v, tx_span span, int id, const tx_str *name, const path *first, const path *second)
{
    tx_sb a = {0}, b = {0};
    const char *one = path_text(v, first, &a), *two = path_text(v, second, &b);

    tx_fail(v->c, span, id, name ? name->text : "v", one, two);
    tx_sb_free(&a);
    tx_sb_free(&b);
}

/* ---- definitions ------------------------------------------------------------------------------------------------- */

static uint32_t
verify_open_block(verifier *v)
{
    if (!tx_push(v->scratch, &v->serials, ++v->next_serial))
        v->failed = true;
    return v->shown.n;
}

static void
close_block(verifier *v, uint32_t mark)
{
    while (v->shown.n > mark)
        v->shown.at[--v->shown.n]->visible = false;
    if (v->serials.n)
        v->serials.n--;
}

static void
verify_define(verifier *v, const void *what, const tx_str *name, tx_span span, bool is_let)
{
    definition *d = tx_map_ptr(&v->defs, what);

    if (d && v->made && !d->visible && is_let) {
        /* it ended with its expression */
    } else if (d) {
        bool nested = d->visible && d->depth < v->serials.n;
        verify_fault(v, span, nested ? TX_E_REDEFINED_NESTED : TX_E_REDEFINED, name, d->at, v->at);
    } else if ((d = tx_new(v->scratch, definition, 1)) == NULL || !tx_map_put_ptr(&v->defs, what, d)) {
        v->failed = true;
        return;
    }
    *d = (definition){v->at, v->serials.n, true};
    if (!tx_push(v->scratch, &v->shown, d))
        v->failed = true;
}

static void
define_var(verifier *v, const tx_var *var, tx_span span)
{
    if (var)
        verify_define(v, var, var->name, span ? span : v->span, false);
}

static void
verify_use_var(verifier *v, const tx_var *var, const tx_node *where)
{
    const definition *d = tx_map_ptr(&v->defs, var);

    if (d && d->visible)
        return;
    if (var->kind == TX_VAR_DATA && var->buffer) {
        if (d)
            verify_fault(v, verify_place(v, where), TX_E_BUFFER_OUT_OF_SCOPE, var->buffer->name, v->at, d->at);
        else
            verify_fault(v, verify_place(v, where), TX_E_BUFFER_UNDECLARED, var->buffer->name, v->at, NULL);
        return;
    }
    if (!d) {
        tx_sb sb = {0};
        const char *at = path_text(v, v->at, &sb), *t = tx_dtype_name(v->c, var->dtype);
        tx_sb help = {0};
        if (var->kind == TX_VAR_FREE && tx_is_int(var->dtype))
            tx_sb_f(&help,
                    tx_bits(var->dtype) >= 32
                        ? "a size is a dimension of a parameter; a variable is written %s: T.%s = ..."
                        : "a size is T.int32() or T.int64(); a variable is written %s: T.%s = ...",
                    var->name->text, t);
        tx_fail_help(v->c, verify_place(v, where), help.n && !help.failed ? help.text : NULL, TX_E_VAR_UNDEFINED,
                     var->name ? var->name->text : "v", at);
        tx_sb_free(&sb), tx_sb_free(&help);
        return;
    }
    verify_fault(v, verify_place(v, where), TX_E_VAR_OUT_OF_SCOPE, var->name, v->at, d->at);
}

static void
use_buffer(verifier *v, const tx_buffer *b, const tx_node *where)
{
    const definition *d = tx_map_ptr(&v->defs, b);

    if (b->data) {
        const definition *data = tx_map_ptr(&v->defs, b->data);
        if (!data || !data->visible) {
            const definition *known = d ? d : data;
            if (known)
                verify_fault(v, verify_place(v, where), TX_E_BUFFER_OUT_OF_SCOPE, b->name, v->at, known->at);
            else
                verify_fault(v, verify_place(v, where), TX_E_BUFFER_UNDECLARED, b->name, v->at, NULL);
            return;
        }
    }
    if (d && !d->visible)
        verify_fault(v, verify_place(v, where), TX_E_BUFFER_OUT_OF_SCOPE, b->name, v->at, d->at);
    else if (!d && !(b->flags & TX_BUF_FLAT)) /* flat records of declared buffers need no declaration */
        verify_fault(v, verify_place(v, where), TX_E_BUFFER_UNDECLARED, b->name, v->at, NULL);
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static void verify_expr(verifier *v, const tx_node *n);

static void
rank(verifier *v, const tx_node *n, const tx_buffer *b, uint32_t count)
{
    bool fits = b->flags & TX_BUF_FLAT ? count == 1 || (b->origin && count == 1u + b->origin->rank) : count == b->rank;

    if (!fits)
        tx_fail(v->c, verify_place(v, n), TX_E_RANK_MISMATCH, b->name->text, (int)b->rank, (int)count);
}

#ifdef TX_DEBUG
static void
dtypes(verifier *v, const tx_node *n)
{
    const char *name = tx_ops[n->op].name;
    tx_dtype a;

    if (n->nargs == 0 || !n->arg[0])
        return;
    a = n->arg[0]->dtype;
    switch (tx_ops[n->op].rule) {
    case TX_RULE_ARITH:
    case TX_RULE_SHIFT:
        for (uint32_t i = 0; i < n->nargs; i++)
            if (n->arg[i]->dtype != n->dtype)
                tx_fail(v->c, verify_place(v, n), TX_E_INTERNAL,
                        tx_intern_f(v->c, "%s of %s has an operand of %s", name, tx_dtype_name(v->c, n->dtype),
                                    tx_dtype_name(v->c, n->arg[i]->dtype))
                            ->text);
        break;
    case TX_RULE_COMPARE:
        if (n->arg[1]->dtype != a || !tx_is_bool(n->dtype) || tx_lanes(n->dtype) != tx_lanes(a))
            tx_fail(v->c, verify_place(v, n), TX_E_INTERNAL,
                    tx_intern_f(v->c, "%s compares %s and %s", name, tx_dtype_name(v->c, a),
                                tx_dtype_name(v->c, n->arg[1]->dtype))
                        ->text);
        break;
    case TX_RULE_LOGIC:
        for (uint32_t i = 0; i < n->nargs; i++)
            if (!tx_is_bool(n->arg[i]->dtype))
                tx_fail(v->c, verify_place(v, n), TX_E_INTERNAL,
                        tx_intern_f(v->c, "%s of %s", name, tx_dtype_name(v->c, n->arg[i]->dtype))->text);
        break;
    case TX_RULE_SAME:
        if (n->dtype != a)
            tx_fail(
                v->c, verify_place(v, n), TX_E_INTERNAL,
                tx_intern_f(v->c, "%s of %s is %s", name, tx_dtype_name(v->c, a), tx_dtype_name(v->c, n->dtype))->text);
        break;
    default: break;
    }
}
#else
#define dtypes(v, n) ((void)0)
#endif

/* An expression found right in a block that is still open stays right. */
static bool
is_clean(const verifier *v, const tx_node *n)
{
    uint64_t found;

    return tx_map_get(&v->clean, (uint64_t)(uintptr_t)n, &found) && (found >> 32) < v->serials.n &&
           v->serials.at[found >> 32] == (uint32_t)found;
}

static void
verify_expr(verifier *v, const tx_node *n)
{
    uint32_t errors = v->c->nerrors, mark;

    if (!n || n->op == TX_OP_INT || n->op == TX_OP_FLOAT || n->op == TX_OP_STR || v->failed)
        return;
    if (n->op == TX_OP_VAR) {
        verify_use_var(v, n->u.var, n);
        return;
    }
    if (is_clean(v, n))
        return;
    if (n->op == TX_OP_LET) {
        verify_expr(v, n->arg[0]);
        mark = verify_open_block(v);
        verify_define(v, n->u.var, n->u.var->name, n->span ? n->span : v->span, true);
        verify_expr(v, n->arg[1]);
        close_block(v, mark);
    } else {
        if (n->op == TX_OP_LOAD || n->op == TX_OP_BUFFER_DATA)
            use_buffer(v, n->u.buf, n);
        if (n->op == TX_OP_LOAD)
            rank(v, n, n->u.buf, n->nargs);
        for (uint32_t i = 0; i < n->nargs; i++)
            verify_expr(v, n->arg[i]);
        dtypes(v, n);
    }
    if (v->serials.n && errors == v->c->nerrors &&
        !tx_map_put(&v->clean, (uint64_t)(uintptr_t)n,
                    (uint64_t)(v->serials.n - 1) << 32 | v->serials.at[v->serials.n - 1]))
        v->failed = true;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void verify_stmt(verifier *v, const tx_node *n);

/* A block of its own, reached from the statement at `from` through `label`. */
static void
block(verifier *v, const tx_node *n, const char *label)
{
    const path *from = v->at;
    uint32_t mark;

    if (!n || v->failed)
        return;
    mark = verify_open_block(v);
    v->at = step(v, from, label, -1);
    verify_stmt(v, n);
    close_block(v, mark);
    v->at = from;
}

static void
verify_operand(verifier *v, const tx_node *n, const char *label)
{
    const path *from = v->at;

    if (!n || n->op == TX_OP_INT || n->op == TX_OP_FLOAT)
        return;
    v->at = step(v, from, label, -1);
    verify_expr(v, n);
    v->at = from;
}

/* Variables of the buffer's shape, strides and offsets. */
static void
verify_extents(verifier *v, const tx_buffer *b)
{
    for (uint32_t i = 0; i < b->rank; i++) {
        verify_operand(v, b->shape[i], "shape");
        if (b->strides)
            verify_operand(v, b->strides[i], "strides");
    }
    verify_operand(v, b->elem_offset, "elem_offset");
    verify_operand(v, b->byte_offset, "byte_offset");
    verify_operand(v, b->allocated_addr, "allocated_addr");
}

static void
declare(verifier *v, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    bool known = tx_map_ptr(&v->defs, b->data) != NULL, again = tx_map_ptr(&v->defs, b) != NULL;

    if (n->op == TX_OP_MATCH && again)
        return; /* the parameter that it binds declares it */
    if (n->op != TX_OP_ALLOC)
        verify_operand(v, n->arg[0], "data");
    if (b->data && !again && (n->op == TX_OP_ALLOC || !known)) /* told once, of the buffer */
        define_var(v, b->data, n->span);
    verify_define(v, b, b->name, verify_place(v, n), false);
    verify_extents(v, b);
}

static void
verify_store(verifier *v, const tx_node *n)
{
    verify_operand(v, n->arg[0], "value");
    use_buffer(v, n->u.buf, n);
    rank(v, n, n->u.buf, n->nargs - 1);
    for (uint32_t i = 1; i < n->nargs; i++)
        verify_operand(v, n->arg[i], "indices");
}

static void
verify_loop(verifier *v, const tx_node *n)
{
    uint32_t mark;

    verify_operand(v, n->arg[0], "start");
    verify_operand(v, n->arg[1], "stop");
    verify_operand(v, n->arg[2], "step");
    mark = verify_open_block(v);
    define_var(v, n->u.loop->var, n->span);
    v->loops++;
    block(v, n->arg[3], "body");
    v->loops--;
    close_block(v, mark);
}

static void
launches(verifier *v, const tx_node *n)
{
    for (uint32_t i = TX_L_BODY + 1; i < n->nargs; i++)
        verify_operand(v, n->arg[i], n->op == TX_OP_LAUNCH && i >= TX_L__COUNT ? "args" : "launch");
    block(v, n->arg[TX_L_BODY], "body");
}

static void
verify_sequence(verifier *v, const tx_node *n)
{
    const path *from = v->at;

    for (uint32_t i = 0; i < n->nargs; i++) {
        v->at = step(v, from, "seq", i);
        verify_stmt(v, n->arg[i]);
    }
    v->at = from;
}

static void
verify_stmt(verifier *v, const tx_node *n)
{
    tx_span outer = v->span;

    if (v->failed)
        return;
    if (n->span)
        v->span = n->span;
    switch (n->op) {
    case TX_OP_SEQ: verify_sequence(v, n); break;
    case TX_OP_BIND:
        verify_operand(v, n->arg[0], "value");
        define_var(v, n->u.var, n->span);
        break;
    case TX_OP_STORE: verify_store(v, n); break;
    case TX_OP_ALLOC:
    case TX_OP_DECL:
    case TX_OP_MATCH: declare(v, n); break;
    case TX_OP_FOR: verify_loop(v, n); break;
    case TX_OP_WHILE:
        verify_operand(v, n->arg[0], "condition");
        v->loops++;
        block(v, n->arg[1], "body");
        v->loops--;
        break;
    case TX_OP_IF:
        verify_operand(v, n->arg[0], "condition");
        block(v, n->arg[1], "then_case");
        block(v, n->arg[2], "else_case");
        break;
    case TX_OP_BREAK:
    case TX_OP_CONTINUE:
        if (v->loops == 0)
            tx_fail(v->c, v->span, TX_E_OUTSIDE_LOOP, n->op == TX_OP_BREAK ? "break" : "continue");
        break;
    case TX_OP_ATTR:
        verify_operand(v, n->arg[0], "value");
        block(v, n->arg[1], "body");
        break;
    case TX_OP_DEVICE:
    case TX_OP_LAUNCH: launches(v, n); break;
    case TX_OP_SCOPE_ID:
        for (uint32_t i = 0; i < n->nargs; i++)
            verify_operand(v, n->arg[i], "extents");
        for (unsigned i = 0; i < n->u.scope_id->nvars; i++)
            define_var(v, n->u.scope_id->var[i], n->span);
        break;
    default:
        for (uint32_t i = 0; i < n->nargs; i++)
            verify_operand(v, n->arg[i], "value");
    }
    v->span = outer;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

/* Sizes known at the call: those that the function lists and those that its parameters' shapes name. */
typedef struct symbol_finder {
    tx_visitor visitor;
    verifier *v;
} symbol_finder;

static bool
define_symbol(tx_visitor *self, const tx_node *n)
{
    verifier *v = ((symbol_finder *)self)->v;

    if (n->op == TX_OP_VAR && n->u.var->kind == TX_VAR_SYMBOL && !tx_map_ptr(&v->defs, n->u.var))
        define_var(v, n->u.var, 0);
    return true;
}

static void
define_symbols_of(verifier *v, const tx_buffer *b)
{
    symbol_finder s = {{define_symbol, NULL}, v};

    for (uint32_t i = 0; i < b->rank; i++) {
        tx_walk(&s.visitor, b->shape[i]);
        if (b->strides)
            tx_walk(&s.visitor, b->strides[i]);
    }
    if (b->elem_offset)
        tx_walk(&s.visitor, b->elem_offset);
}

static void
verify_parameters(verifier *v, const tx_func *f)
{
    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (!tx_map_ptr(&v->defs, f->symbols[i]))
            define_var(v, f->symbols[i], f->span);
    for (uint32_t i = 0; i < f->nparams; i++) { /* first, since a kernel's shapes are over parameters that follow */
        const tx_param *a = &f->params[i];
        v->at = step(v, NULL, "params", i);
        v->span = a->span ? a->span : f->span;
        if (a->var)
            define_var(v, a->var, v->span);
    }
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *a = &f->params[i];
        v->at = step(v, NULL, "params", i);
        v->span = a->span ? a->span : f->span;
        if (!a->buffer)
            continue;
        define_symbols_of(v, a->buffer);
        if (a->buffer->data && a->buffer->data != a->var)
            define_var(v, a->buffer->data, v->span);
        verify_define(v, a->buffer, a->buffer->name, v->span, false);
    }
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].buffer) {
            v->at = step(v, NULL, "params", i);
            v->span = f->params[i].span ? f->params[i].span : f->span;
            verify_extents(v, f->params[i].buffer);
        }
}

static bool
verify_func(tx_ctx *c, const tx_func *f, bool made)
{
    verifier v = {.c = c, .scratch = tx_ctx_new(), .span = f->span, .made = made};
    uint32_t errors = c->nerrors;

    if (!v.scratch)
        return tx_fail(c, f->span, TX_E_NO_MEMORY);
    verify_open_block(&v);
    verify_parameters(&v, f);
    v.at = NULL;
    v.span = f->span;
    if (f->body)
        block(&v, f->body, "body");
    if (v.failed)
        tx_fail(c, f->span, TX_E_NO_MEMORY);
    tx_map_free(&v.defs);
    tx_map_free(&v.clean);
    tx_ctx_free(v.scratch);
    return errors == c->nerrors;
}

bool
tx_verify_func(tx_ctx *c, const tx_func *f)
{
    return verify_func(c, f, false);
}

/* What passes made. */
bool
tx_verify_module(tx_ctx *c, const tx_module *m)
{
    bool ok = true;

    for (uint32_t i = 0; i < m->nfuncs; i++)
        ok &= verify_func(c, m->funcs[i], true);
    return ok;
}
