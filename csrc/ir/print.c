/* Functions and modules as Python source in the function's dialect: parse(print(f)) is structurally equal to f, at every
 * stage of the pipeline. The function is copied into a scratch context first, so that a frozen one is never written to and
 * so that operators can be built again to see whether they read back as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ir/print.h"

/* ---- signature --------------------------------------------------------------------------------------------------- */

typedef struct wide_finder {
    tx_visitor visitor;
    bool any, found;
} wide_finder;

static bool
find_wide(tx_visitor *v, const tx_node *n)
{
    wide_finder *w = (wide_finder *)v;

    if (n->op == TX_OP_VAR && n->u.var->kind == TX_VAR_SYMBOL)
        w->found |= w->any || n->u.var->dtype != TX_I32;
    return !w->found;
}

/* A quoted name is an int32, and strides and offsets are not quoted: a buffer that needs more is matched in the body. */
static bool
needs_match(const tx_buffer *b)
{
    wide_finder w = {{find_wide, NULL}, false, false};

    for (uint32_t i = 0; i < b->rank; i++)
        tx_walk(&w.visitor, b->shape[i]);
    w.any = true;
    for (uint32_t i = 0; b->strides && i < b->rank; i++)
        tx_walk(&w.visitor, b->strides[i]);
    if (b->elem_offset)
        tx_walk(&w.visitor, b->elem_offset);
    if (b->byte_offset)
        tx_walk(&w.visitor, b->byte_offset);
    return w.found;
}

static void
print_tensor_type(tx_printer *p, const tx_buffer *b)
{
    bool tensor = p->g2 && !b->strides && !b->elem_offset && !b->byte_offset && b->offset_factor <= 1;

    tx_sb_puts(p->out, tensor ? "T.Tensor(" : "T.Buffer(");
    tx_print_shape(p, b->shape, b->rank, true);
    tx_sb_puts(p->out, ", ");
    tx_print_dtype(p, b->dtype);
    tx_print_buffer_rest(p, b, TX_GLOBAL, true);
    tx_sb_putc(p->out, ')');
}

static void
print_param_type(tx_printer *p, const tx_param *a)
{
    const tx_var *v = a->var;

    if (a->flags & TX_PARAM_OPTIONAL_ABSENT) {
        tx_sb_puts(p->out, "T.NoneType()");
    } else if (a->flags & TX_PARAM_TENSORMAP || tx_kind(v->dtype) == TX_KIND_TENSORMAP) {
        tx_sb_puts(p->out, "T.TensorMap()");
    } else if (tx_is_handle(v->dtype)) {
        tx_print_pointer_type(p, v->elem, v->scope);
    } else {
        tx_sb_puts(p->out, "T.");
        tx_dtype_print(v->dtype, p->out);
    }
}

enum param_form { PARAM_PLAIN, PARAM_BUFFER, PARAM_MATCHED };

static enum param_form
param_form(const tx_printer *p, const tx_func *f, const tx_param *a)
{
    if (!a->buffer || f->flags & TX_FUNC_KERNEL || a->flags & TX_PARAM_OPTIONAL_ABSENT)
        return PARAM_PLAIN;
    return !p->g2 && needs_match(a->buffer) ? PARAM_MATCHED : PARAM_BUFFER;
}

/* Names come first, so that parameters keep theirs whatever the symbols are called. */
static void
name_params(tx_printer *p, const tx_func *f, const char **names)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *a = &f->params[i];
        enum param_form form = param_form(p, f, a);
        const tx_str *name;

        if (form == PARAM_BUFFER) {
            names[i] = tx_print_name(p, a->buffer, a->buffer->name);
            continue;
        }
        if (form == PARAM_MATCHED) {
            const tx_str *own =
                a->name && a->name != a->buffer->name ? a->name : tx_intern_f(p->c, "%s_handle", a->buffer->name->text);
            name = tx_print_fresh(p, own);
        } else {
            const tx_str *own = a->name ? a->name : a->var ? a->var->name : NULL;
            if (own && a->buffer &&
                !(a->flags & TX_PARAM_OPTIONAL_ABSENT)) /* a kernel's pointer; views have the name */
                own = tx_intern_f(p->c, "%s_ptr", a->buffer->name->text);
            name = tx_print_fresh(p, own);
        }
        names[i] = name ? name->text : "v";
        if (form == PARAM_PLAIN && a->var)
            tx_print_use_name(p, a->var, names[i]);
    }
}

static void
print_params(tx_printer *p, const tx_func *f, const char **names)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *a = &f->params[i];

        tx_sb_f(p->out, "%s%s: ", i ? ", " : "", names[i]);
        switch (param_form(p, f, a)) {
        case PARAM_PLAIN: print_param_type(p, a); break;
        case PARAM_BUFFER: print_tensor_type(p, a->buffer); break;
        case PARAM_MATCHED: tx_sb_puts(p->out, "T.handle"); break;
        }
    }
}

/* What the signature leaves to the body: matched buffers, and views of the parameters' pointers. */
static void
print_param_decls(tx_printer *p, const tx_func *f, const char **names)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *a = &f->params[i];
        enum param_form form = param_form(p, f, a);
        char text[160];

        if (form == PARAM_MATCHED) {
            tx_sb line = {0}, *out = p->out;
            p->out = &line; /* symbols that it names are declared before it */
            tx_print_match(p, a->buffer, names[i]);
            p->out = out;
            tx_sb_put(&p->decls, line.n ? line.text : "", line.n);
            out->failed |= line.failed;
            tx_sb_free(&line);
        }
        if (!a->var || !tx_is_handle(a->var->dtype))
            continue;
        snprintf(text, sizeof text, form == PARAM_PLAIN ? "%.140s" : "%.140s.data",
                 form == PARAM_MATCHED ? tx_print_known(p, a->buffer) : names[i]);
        tx_print_views_of(p, a->var, text);
    }
}

/* ---- frame ------------------------------------------------------------------------------------------------------- */

static void
print_decorator(tx_printer *p, const tx_func *f)
{
    const char *before = "(";

    tx_print_line(p);
    tx_sb_puts(p->out, p->g2 ? "@T.function" : "@T.prim_func");
    if (!f->symbol) {
        tx_sb_f(p->out, "%sprivate=True", before);
        before = ", ";
    }
    if (f->flags & TX_FUNC_PERSISTENT) {
        tx_sb_f(p->out, "%spersistent=True", before);
        before = ", ";
    }
    if (f->flags & TX_FUNC_KERNEL) {
        tx_sb_f(p->out, "%skernel=True", before);
        before = ", ";
    }
    if (before[0] == ',')
        tx_sb_putc(p->out, ')');
    tx_print_end(p);
}

static void
print_func_attrs(tx_printer *p, const tx_func *f, const char *name)
{
    bool symbol = f->symbol && strcmp(f->symbol->text, name) != 0;

    if (!symbol && f->nattrs == 0)
        return;
    tx_print_line(p);
    tx_sb_puts(p->out, "T.func_attr({");
    if (symbol) {
        tx_sb_puts(p->out, "\"global_symbol\": ");
        tx_print_string(p->out, f->symbol->text, f->symbol->len);
    }
    for (uint32_t i = 0; i < f->nattrs; i++) {
        if (symbol || i)
            tx_sb_puts(p->out, ", ");
        tx_print_string(p->out, f->attrs[i].key->text, f->attrs[i].key->len);
        tx_sb_puts(p->out, ": ");
        tx_print_attr_value(p, f->attrs[i].value);
    }
    tx_sb_puts(p->out, "})");
    tx_print_end(p);
}

/* Launch bounds of a kernel are worked out from its launch: a comment shows them. */
static void
print_bounds_comment(tx_printer *p, const tx_func *f)
{
    const tx_node *const *b = f->block;

    if (!(f->flags & TX_FUNC_KERNEL) || !b[0])
        return;
    tx_sb_f(p->out, "%*s# block (", p->level * p->width, "");
    for (unsigned i = 0; i < 3; i++) {
        tx_sb_puts(p->out, i ? ", " : "");
        if (b[i])
            tx_print_expr(p, b[i], TX_PREC_ANY);
        else
            tx_sb_putc(p->out, '1');
    }
    tx_sb_putc(p->out, ')');
    if (f->launch.min_blocks)
        tx_sb_f(p->out, ", at least %d blocks an SM", f->launch.min_blocks);
    if (f->launch.max_registers)
        tx_sb_f(p->out, ", at most %d registers", f->launch.max_registers);
    tx_print_end(p);
}

static void
put_all(tx_sb *to, tx_sb *from)
{
    if (from->n)
        tx_sb_put(to, from->text, from->n);
    to->failed |= from->failed;
    tx_sb_free(from);
    *from = (tx_sb){0};
}

/* The function goes to p->out; symbols of g2 to p->prolog, which the caller puts first. */
static void
print_func(tx_printer *p, const tx_func *f, const tx_str *name)
{
    tx_sb *out = p->out, body = {0}, attrs = {0};
    const char **names = tx_new(p->c, const char *, f->nparams + 1);
    const char *own;
    char word[130];

    if (!names || !name) {
        out->failed = true;
        return;
    }
    p->f = f;
    own = name->text;
    print_decorator(p, f);
    tx_print_line(p);
    tx_print_word(own, word, sizeof word); /* the function's own name is free inside of it */
    tx_sb_f(out, "def %s(", word);
    p->base_level = ++p->level;
    tx_print_scan(p, f);
    name_params(p, f, names);
    print_params(p, f, names);
    tx_sb_putc(out, ')');
    if (f->ret != TX_VOID && f->ret != 0) {
        tx_sb_puts(out, " -> T.");
        tx_dtype_print(f->ret, out);
    }
    tx_sb_puts(out, ":\n");
    p->out = &attrs;
    print_bounds_comment(p, f);
    p->nlines = 0;
    print_func_attrs(p, f, word);
    p->out = &body;
    print_param_decls(p, f, names);
    tx_print_stmts(p, f->body);
    if (p->nlines == 0 && p->decls.n == 0) {
        tx_print_line(p);
        tx_sb_puts(&body, "pass\n");
    }
    p->out = out;
    put_all(out, &attrs);
    put_all(out, &p->decls);
    put_all(out, &body);
    p->level--;
}

static bool
print_start(tx_printer *p, tx_ctx *scratch, tx_sb *out, const tx_print_options *o)
{
    if (!tx_printer_init(p, scratch, out))
        return false;
    if (o) {
        p->sugar = o->syntax_sugar;
        p->width = o->indent > 0 ? o->indent : 4;
    }
    return true;
}

static void
put_numbered(tx_sb *out, const char *text, size_t n)
{
    unsigned line = 0;

    for (size_t i = 0, end; i < n; i = end + 1) {
        const char *nl = memchr(text + i, '\n', n - i);
        end = nl ? (size_t)(nl - text) : n;
        tx_sb_f(out, "%4u  ", ++line);
        tx_sb_put(out, text + i, end - i);
        tx_sb_putc(out, '\n');
    }
}

/* Puts the pieces together: header, symbols, text. */
static bool
print_finish(tx_printer *p, const tx_print_options *o, tx_sb *text, tx_sb *out, const char *header)
{
    tx_sb all = {0};
    bool numbers = o && o->line_numbers, ok;
    tx_sb *to = numbers ? &all : out;

    if (!o || o->header)
        tx_sb_puts(to, header);
    if (p->prolog.n)
        tx_sb_putc(&p->prolog, '\n');
    put_all(to, &p->prolog);
    put_all(to, text);
    if (numbers && all.n)
        put_numbered(out, all.text, all.n);
    ok = !to->failed && !out->failed && !p->c->nerrors; /* the scratch context's only errors are of memory */
    tx_sb_free(&all);
    return ok;
}

bool
tx_print_func(const tx_func *f, const tx_print_options *o, tx_sb *out)
{
    tx_ctx *scratch = tx_ctx_new();
    const tx_func *g;
    tx_printer p = {0};
    tx_sb text = {0};
    bool ok = false;

    if (!scratch)
        return false;
    g = tx_import_func(scratch, f);
    if (print_start(&p, scratch, &text, o)) {
        p.rebuild = g != NULL;
        p.g2 = (o && o->dialect >= 0 ? o->dialect : f->dialect) == TX_G2;
        print_func(&p, g ? g : f, o && o->name ? tx_intern_z(scratch, o->name) : f->name);
        ok = print_finish(&p, o, &text, out, "# from tirx.script import tirx as T\n\n");
    }
    tx_sb_free(&text);
    tx_printer_free(&p);
    tx_ctx_free(scratch);
    return ok;
}

/* Functions in the order of their names. */
static void
sort_by_name(const tx_module *m, uint32_t *order)
{
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        uint32_t k = i;
        for (; k > 0 && strcmp(m->names[order[k - 1]]->text, m->names[i]->text) > 0; k--)
            order[k] = order[k - 1];
        order[k] = i;
    }
}

bool
tx_print_module(const tx_module *m, const tx_print_options *o, tx_sb *out)
{
    tx_ctx *scratch = tx_ctx_new();
    const tx_module *g = scratch ? tx_import_module(scratch, m) : NULL;
    uint32_t *order = scratch ? tx_new(scratch, uint32_t, m->nfuncs + 1) : NULL;
    tx_printer p = {0};
    tx_sb text = {0};
    bool ok = false;

    if (order && print_start(&p, scratch, &text, o)) {
        p.rebuild = g != NULL;
        m = g ? g : m;
        sort_by_name(m, order);
        tx_sb_puts(&text, "@I.ir_module\nclass Module:\n");
        p.level = 1;
        p.module_class = o && o->name ? o->name : "Module";
        if (m->nattrs) {
            tx_sb_f(&text, "%*sI.module_attrs(", p.width, "");
            tx_print_attrs(&p, m->attrs, m->nattrs);
            tx_sb_puts(&text, ")\n");
        }
        if (m->nfuncs == 0)
            tx_sb_f(&text, "%*spass\n", p.width, "");
        for (uint32_t i = 0; i < m->nfuncs; i++) {
            const tx_func *f = m->funcs[order[i]];
            if (i)
                tx_sb_putc(&text, '\n');
            p.g2 = (o && o->dialect >= 0 ? o->dialect : f->dialect) == TX_G2;
            if (!tx_printer_reserve(&p))
                text.failed = true;
            print_func(&p, f, m->names[order[i]]);
        }
        ok = print_finish(&p, o, &text, out,
                          "# from tirx.script import ir as I\n# from tirx.script import tirx as T\n\n");
    }
    tx_sb_free(&text);
    if (scratch) {
        tx_printer_free(&p);
        tx_ctx_free(scratch);
    }
    return ok;
}

void
tx_print_node(const tx_node *n, tx_sb *out)
{
    tx_ctx *scratch = n ? tx_ctx_new() : NULL;
    tx_printer p = {0};
    tx_sb text = {0};

    if (!scratch)
        return;
    if (tx_printer_init(&p, scratch, &text)) {
        if (tx_is_stmt(n))
            tx_print_stmts(&p, n);
        else
            tx_print_expr(&p, n, TX_PREC_ANY);
        put_all(out, &text);
    }
    tx_sb_free(&text);
    tx_printer_free(&p);
    tx_ctx_free(scratch);
}

void
tx_dump(const tx_node *n)
{
    tx_sb out = {0};

    tx_print_node(n, &out);
    tx_sb_putc(&out, '\n');
    if (out.n)
        (void)fwrite(out.text, 1, out.n, stderr);
    tx_sb_free(&out);
}
