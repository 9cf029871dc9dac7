/* Expressions as Python source. Operators are written as operators with Python's precedence when the constructors, handed
 * the same operands again, give the same node; otherwise in their named form (T.Add(1, 2)), which builds exactly that node.
 * Whatever has no form of its own is written as a call by the spelling of its row. Printing never fails.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/fold.h"
#include "ir/print.h"
#include "ir/ptx.h"

/* Binding strength of what is written with an operator sign; 0: a call. */
static const uint8_t strength[TX_OP__COUNT] = {
    [TX_OP_OR] = TX_PREC_OR,
    [TX_OP_AND] = TX_PREC_AND,
    [TX_OP_NOT] = TX_PREC_NOT,
    [TX_OP_EQ] = TX_PREC_COMPARE,
    [TX_OP_NE] = TX_PREC_COMPARE,
    [TX_OP_LT] = TX_PREC_COMPARE,
    [TX_OP_GE] = TX_PREC_COMPARE,
    [TX_OP_GT] = TX_PREC_COMPARE,
    [TX_OP_LE] = TX_PREC_COMPARE,
    [TX_OP_BOR] = TX_PREC_BOR,
    [TX_OP_BXOR] = TX_PREC_BXOR,
    [TX_OP_BAND] = TX_PREC_BAND,
    [TX_OP_SHL] = TX_PREC_SHIFT,
    [TX_OP_SHR] = TX_PREC_SHIFT,
    [TX_OP_ADD] = TX_PREC_SUM,
    [TX_OP_SUB] = TX_PREC_SUM,
    [TX_OP_MUL] = TX_PREC_PRODUCT,
    [TX_OP_FLOORDIV] = TX_PREC_PRODUCT,
    [TX_OP_FLOORMOD] = TX_PREC_PRODUCT,
    [TX_OP_NEG] = TX_PREC_UNARY,
    [TX_OP_BNOT] = TX_PREC_UNARY,
};

/* The call that builds the node as it stands, without folding. */
static const char *const named_form[TX_OP__COUNT] = {
    [TX_OP_OR] = "T.Or",
    [TX_OP_AND] = "T.And",
    [TX_OP_NOT] = "T.Not",
    [TX_OP_EQ] = "T.EQ",
    [TX_OP_NE] = "T.NE",
    [TX_OP_LT] = "T.LT",
    [TX_OP_GE] = "T.GE",
    [TX_OP_GT] = "T.GT",
    [TX_OP_LE] = "T.LE",
    [TX_OP_ADD] = "T.Add",
    [TX_OP_SUB] = "T.Sub",
    [TX_OP_MUL] = "T.Mul",
    [TX_OP_BOR] = "T.BitwiseOr",
    [TX_OP_BAND] = "T.BitwiseAnd",
    [TX_OP_BXOR] = "T.BitwiseXor",
    [TX_OP_SHL] = "T.LShift",
    [TX_OP_SHR] = "T.RShift",
    [TX_OP_NEG] = "T.Neg",
    [TX_OP_BNOT] = "T.BitwiseNot",
    [TX_OP_FLOORDIV] = "T.FloorDiv",
    [TX_OP_FLOORMOD] = "T.FloorMod",
    [TX_OP_DIV] = "T.Div",
    [TX_OP_MOD] = "T.Mod",
    [TX_OP_MIN] = "T.Min",
    [TX_OP_MAX] = "T.Max",
};

/* ---- strings and dtypes ------------------------------------------------------------------------------------------ */

void
tx_print_string(tx_sb *out, const char *text, size_t len)
{
    tx_sb_putc(out, '"');
    for (size_t i = 0, from = 0; i <= len; i++) {
        unsigned char ch = i < len ? (unsigned char)text[i] : '"';
        if (i < len && ch >= 0x20 && ch != '"' && ch != '\\' && ch != 0x7f)
            continue;
        tx_sb_put(out, text + from, i - from);
        from = i + 1;
        if (i == len)
            break;
        if (ch == '"' || ch == '\\')
            tx_sb_f(out, "\\%c", ch);
        else if (ch == '\n' || ch == '\t' || ch == '\r')
            tx_sb_f(out, "\\%c", ch == '\n' ? 'n' : ch == '\t' ? 't' : 'r');
        else
            tx_sb_f(out, "\\x%02x", ch);
    }
    tx_sb_putc(out, '"');
}

static void
put_str(tx_printer *p, const tx_str *s)
{
    tx_print_string(p->out, s ? s->text : "", s ? s->len : 0);
}

void
tx_print_dtype(tx_printer *p, tx_dtype t)
{
    tx_sb_puts(p->out, p->g2 ? "T." : "\"");
    tx_dtype_print(t, p->out);
    if (!p->g2)
        tx_sb_putc(p->out, '"');
}

void
tx_print_pointer_type(tx_printer *p, tx_dtype elem, unsigned scope)
{
    if (tx_kind(elem) == TX_KIND_TENSORMAP && scope == TX_GLOBAL) {
        tx_sb_puts(p->out, "T.TensorMap()");
        return;
    }
    tx_sb_puts(p->out, "T.handle");
    if (tx_kind(elem) == TX_KIND_VOID && scope == TX_GLOBAL)
        return;
    tx_sb_puts(p->out, "(\"");
    tx_dtype_print(elem ? elem : TX_VOID, p->out);
    tx_sb_putc(p->out, '"');
    if (scope != TX_GLOBAL)
        tx_sb_f(p->out, ", \"%s\"", tx_scope_name((tx_scope)scope));
    tx_sb_putc(p->out, ')');
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */

static bool
reads_back(tx_dtype t, const char *text, double v)
{
    double got = strtod(text, NULL);

    if (tx_kind(t) == TX_KIND_F64)
        return got == v;
    if (tx_kind(t) == TX_KIND_F32)
        return (double)(float)got == v;
    return tx_float_fits(t, got) && tx_encode(t, got) == tx_encode(t, v);
}

/* The shortest decimal that reads back as v, in the way Python writes floats: always with a point or an exponent. */
static void
put_decimal(tx_sb *out, tx_dtype t, double v)
{
    char digits[40], text[400];
    int precision = 0, exponent;

    do
        snprintf(digits, sizeof digits, "%.*e", precision, v);
    while (!reads_back(t, digits, v) && ++precision < 17);
    exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16) {
        char *e = strchr(digits, 'e');
        *e = 0;
        tx_sb_f(out, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    snprintf(text, sizeof text, "%.*f", precision > exponent ? precision - exponent : 0, v);
    tx_sb_puts(out, text);
    if (!strchr(text, '.'))
        tx_sb_puts(out, ".0");
}

static void
print_float(tx_printer *p, const tx_node *n)
{
    tx_sb_puts(p->out, "T.");
    tx_dtype_print(n->dtype, p->out);
    tx_sb_putc(p->out, '(');
    if (isnan(n->u.f))
        tx_sb_puts(p->out, "\"nan\"");
    else if (isinf(n->u.f))
        tx_sb_puts(p->out, n->u.f < 0 ? "\"-inf\"" : "\"inf\"");
    else
        put_decimal(p->out, n->dtype, n->u.f);
    tx_sb_putc(p->out, ')');
}

static void
put_int(tx_sb *out, tx_dtype t, int64_t v)
{
    if (tx_class(t) == TX_CLS_U)
        tx_sb_f(out, "%llu", (unsigned long long)v);
    else
        tx_sb_f(out, "%lld", (long long)v);
}

static void
print_int(tx_printer *p, const tx_node *n)
{
    if (tx_is_bool(n->dtype)) {
        tx_sb_puts(p->out, n->u.i ? "T.bool(True)" : "T.bool(False)");
        return;
    }
    if (n->dtype == TX_I32) {
        put_int(p->out, n->dtype, n->u.i);
        return;
    }
    tx_sb_puts(p->out, "T.");
    tx_dtype_print(n->dtype, p->out);
    tx_sb_putc(p->out, '(');
    put_int(p->out, n->dtype, n->u.i);
    tx_sb_putc(p->out, ')');
}

void
tx_print_attr_value(tx_printer *p, const tx_node *n)
{
    if (n && n->op == TX_OP_INT && tx_is_bool(n->dtype))
        tx_sb_puts(p->out, n->u.i ? "True" : "False");
    else if (n && n->op == TX_OP_VECTOR && n->dtype == TX_VOID) { /* a list */
        tx_sb_putc(p->out, '[');
        for (uint32_t i = 0; i < n->nargs; i++) {
            tx_sb_puts(p->out, i ? ", " : "");
            tx_print_attr_value(p, n->arg[i]);
        }
        tx_sb_putc(p->out, ']');
    } else if (n)
        tx_print_expr(p, n, TX_PREC_ANY);
    else
        tx_sb_puts(p->out, "None");
}

void
tx_print_attrs(tx_printer *p, const tx_attr *a, uint32_t n)
{
    tx_sb_putc(p->out, '{');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            tx_sb_puts(p->out, ", ");
        put_str(p, a[i].key);
        tx_sb_puts(p->out, ": ");
        tx_print_attr_value(p, a[i].value);
    }
    tx_sb_putc(p->out, '}');
}

/* ---- variables, buffers, accesses -------------------------------------------------------------------------------- */

/* n = T.int32() at the top of the body; symbols of g2 n = T.dynamic("n") before the function. */
static void
declare_var(tx_printer *p, const tx_var *v, const char *name)
{
    tx_sb *out = p->out;

    if (p->g2 && v->kind == TX_VAR_SYMBOL) {
        tx_sb_f(&p->prolog, "%s = T.dynamic(\"%s\"", name, name);
        if (v->dtype != TX_I32)
            tx_sb_f(&p->prolog, ", dtype=\"%s\"", tx_kinds[tx_kind(v->dtype)].text);
        tx_sb_puts(&p->prolog, ")\n");
        return;
    }
    p->out = &p->decls;
    tx_sb_f(p->out, "%*s%s = ", p->base_level * p->width, "", name);
    if (tx_is_handle(v->dtype)) {
        tx_print_pointer_type(p, v->elem, v->scope);
        if (v->elem == 0 && v->scope == TX_GLOBAL)
            tx_sb_puts(p->out, "()");
    } else {
        tx_sb_puts(p->out, "T.");
        tx_dtype_print(v->dtype, p->out);
        tx_sb_puts(p->out, "()");
    }
    tx_sb_putc(p->out, '\n');
    p->out = out;
}

/* The name of a variable; one that nothing declared is declared on the way. */
static void
print_var(tx_printer *p, const tx_var *v)
{
    const char *name = tx_print_known(p, v);

    if (!p->g2 || v->kind != TX_VAR_SYMBOL)
        p->saw_var = true;
    if (!name && v->kind == TX_VAR_DATA && v->buffer && (name = tx_print_known(p, v->buffer)) != NULL) {
        tx_sb_f(p->out, "%s.data", name);
        return;
    }
    if (!name) {
        name = p->g2 && v->kind == TX_VAR_SYMBOL ? tx_print_outer_name(p, v, v->name) : tx_print_name(p, v, v->name);
        declare_var(p, v, name);
    }
    tx_sb_puts(p->out, name);
}

static const char *
buffer_name(tx_printer *p, const tx_buffer *b)
{
    const char *name = tx_print_known(p, b);

    if (!name && (b->flags & TX_BUF_CELL) && b->origin)
        name = tx_print_known(p, b->origin); /* the flat record of a cell is the cell */
    return name ? name : tx_print_name(p, b, b->name);
}

bool
tx_print_as_cell(const tx_printer *p, const tx_buffer *b)
{
    return (b->flags & TX_BUF_CELL) && !p->g2 && b->rank == 1 && tx_is_const(b->shape[0], 1);
}

/* b:b + 4 for a ramp of stride 1. Gives false for anything else. */
static bool
print_slice(tx_printer *p, const tx_node *n)
{
    const tx_node *base = n->arg[0];
    unsigned lanes = tx_lanes(n->dtype);

    if (!tx_is_const(n->arg[1], 1) || base->dtype != TX_I32)
        return false;
    if (base->op == TX_OP_INT) {
        tx_sb_f(p->out, "%lld:%lld", (long long)base->u.i, (long long)base->u.i + lanes);
        return true;
    }
    tx_print_expr(p, base, TX_PREC_ANY);
    tx_sb_putc(p->out, ':');
    tx_print_expr(p, base, TX_PREC_SUM);
    tx_sb_f(p->out, " + %u", lanes);
    return true;
}

void
tx_print_index(tx_printer *p, const tx_node *n, uint32_t first, uint32_t count)
{
    tx_sb_putc(p->out, '[');
    if (count == 0)
        tx_sb_puts(p->out, "()");
    for (uint32_t i = 0; i < count; i++) {
        const tx_node *index = n->arg[first + i];
        if (i)
            tx_sb_puts(p->out, ", ");
        if (index->op != TX_OP_RAMP || i + 1 < count || !print_slice(p, index))
            tx_print_expr(p, index, TX_PREC_ANY);
    }
    tx_sb_putc(p->out, ']');
}

static void
print_load(tx_printer *p, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    uint32_t count = b->flags & TX_BUF_FLAT && n->nargs > 1 ? 1 : n->nargs;

    tx_sb_puts(p->out, buffer_name(p, b));
    if (tx_print_as_cell(p, b)) {
        if (count == 1 && tx_is_const(n->arg[0], 0))
            return;
        tx_sb_puts(p->out, ".buffer");
    }
    tx_print_index(p, n, 0, count);
}

static void
print_buffer_data(tx_printer *p, const tx_node *n)
{
    const char *name = n->u.buf->data ? tx_print_known(p, n->u.buf->data) : NULL;

    if (name)
        tx_sb_puts(p->out, name);
    else
        tx_sb_f(p->out, "%s.data", buffer_name(p, n->u.buf));
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void
put_args(tx_printer *p, const tx_node *n, uint32_t from, bool comma)
{
    for (uint32_t i = from; i < n->nargs; i++) {
        if (comma || i > from)
            tx_sb_puts(p->out, ", ");
        if (n->arg[i])
            tx_print_expr(p, n->arg[i], TX_PREC_ANY);
        else
            tx_sb_puts(p->out, "None");
    }
}

static void
put_dtype_text(tx_printer *p, tx_dtype t)
{
    tx_sb_putc(p->out, '"');
    tx_dtype_print(t, p->out);
    tx_sb_putc(p->out, '"');
}

/* T.call_intrin("int32", "NAME", ...): the row as it stands. */
static void
print_intrinsic(tx_printer *p, const tx_node *n)
{
    tx_sb_puts(p->out, "T.call_intrin(");
    put_dtype_text(p, n->dtype);
    tx_sb_f(p->out, ", \"%s\"", tx_ops[n->op].name);
    put_args(p, n, 0, true);
    tx_sb_putc(p->out, ')');
}

/* T.exp(x): any row with a spelling */
static void
print_generic(tx_printer *p, const tx_node *n)
{
    const char *spelling = tx_ops[n->op].spelling;

    if (spelling[0] != 'T' || spelling[1] != '.') {
        print_intrinsic(p, n);
        return;
    }
    tx_sb_f(p->out, "%s(", spelling);
    put_args(p, n, 0, false);
    tx_sb_putc(p->out, ')');
}

static void
print_coord(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(\"%c\")", tx_ops[n->op].spelling, "xyz?"[n->u.i < 0 || n->u.i > 2 ? 3 : n->u.i]);
}

/* T.Cast("float32", x), T.reinterpret("int32", x) */
static void
print_conversion(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_dtype_text(p, n->dtype);
    put_args(p, n, 0, true);
    tx_sb_putc(p->out, ')');
}

/* Pointer arithmetic and read-only loads say their element last. */
static void
print_dtype_last(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_args(p, n, 0, false);
    tx_sb_puts(p->out, ", ");
    put_dtype_text(p, tx_is_handle(n->dtype) ? (n->elem ? n->elem : TX_VOID) : n->dtype);
    tx_sb_putc(p->out, ')');
}

static void
print_struct_get(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_args(p, n, 0, false);
    tx_sb_puts(p->out, ", \"");
    tx_dtype_print(n->dtype, p->out);
    tx_sb_puts(p->out, "\")");
}

static void
print_stack_alloca(tx_printer *p, const tx_node *n)
{
    tx_sb_puts(p->out, p->g2 ? "T.stack_alloca(" : "T.tvm_stack_alloca(");
    put_args(p, n, 0, false);
    tx_sb_putc(p->out, ')');
}

static void
print_ramp(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_args(p, n, 0, false);
    tx_sb_f(p->out, ", %u)", tx_lanes(n->dtype));
}

static void
print_shuffle(tx_printer *p, const tx_node *n)
{
    uint32_t nvecs = (uint32_t)n->u.i;

    tx_sb_puts(p->out, "T.Shuffle([");
    for (uint32_t i = 0; i < n->nargs; i++) {
        if (i)
            tx_sb_puts(p->out, i == nvecs ? "], [" : ", ");
        tx_print_expr(p, n->arg[i], TX_PREC_ANY);
    }
    tx_sb_puts(p->out, "])");
}

static void
print_let(tx_printer *p, const tx_node *n)
{
    tx_sb_puts(p->out, "T.Let(");
    tx_print_expr(p, n->arg[1], TX_PREC_ANY);
    tx_sb_puts(p->out, ", where={");
    print_var(p, n->u.var);
    tx_sb_puts(p->out, ": ");
    tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    tx_sb_puts(p->out, "})");
}

static void
print_func_call(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_str(p, n->u.call->name);
    put_args(p, n, 0, true);
    if (n->u.call->source) {
        tx_sb_puts(p->out, ", source_code=");
        put_str(p, n->u.call->source);
    }
    tx_sb_puts(p->out, ", return_type=");
    put_dtype_text(p, n->dtype);
    tx_sb_putc(p->out, ')');
}

/* A number without a type takes the operand's first one, which is int32 for .s32 only. */
static bool
print_ptx_needs_type(const tx_ptx_row *r, const tx_ptx_call *call, const tx_ptx_operand *o, const tx_node *n)
{
    return n->op == TX_OP_INT && n->dtype == TX_I32 && o->kind == TX_PTX_REG &&
           strcmp(tx_ptx_type(r, call->choice, o), "s32") != 0;
}

/* T.ptx["ld.global.b32"](d, p): the opcode as the ISA spells it; written operands by name. */
static void
print_ptx(tx_printer *p, const tx_node *n)
{
    const tx_ptx_call *call = n->u.ptx;
    uint32_t nrows;
    const tx_ptx_row *rows = tx_ptx_rows(&nrows);
    bool first = true;

    tx_sb_puts(p->out, "T.ptx[\"");
    if (rows)
        tx_ptx_opcode(&rows[call->row], call->choice, p->out);
    tx_sb_puts(p->out, "\"](");
    for (uint32_t i = 0; i < call->nargs; i++, first = false) {
        const tx_ptx_operand *o = rows ? &rows[call->row].op[call->op_of[i]] : NULL;
        bool pred = o && o->kind == TX_PTX_REG && o->mode == 'r' && o->type && strcmp(o->type, "pred") == 0;
        tx_sb_puts(p->out, first ? "" : ", ");
        if (tx_ptx_is_sunk(call, i))
            tx_sb_puts(p->out, "T.ptx.SINK");
        else if (o && o->mode != 'r')
            tx_print_expr(p, n->arg[i]->arg[0], TX_PREC_ANY);
        else if (pred && !tx_is_bool(n->arg[i]->dtype)) {
            tx_sb_puts(p->out, "T.ptx.pred(");
            tx_print_expr(p, n->arg[i], TX_PREC_ANY);
            tx_sb_putc(p->out, ')');
        } else if (o && print_ptx_needs_type(&rows[call->row], call, o, n->arg[i])) {
            tx_sb_puts(p->out, "T.int32(");
            tx_print_expr(p, n->arg[i], TX_PREC_ANY);
            tx_sb_putc(p->out, ')');
        } else
            tx_print_expr(p, n->arg[i], TX_PREC_ANY);
    }
    if (call->guard) {
        tx_sb_puts(p->out, first ? "pred=" : ", pred=");
        tx_print_expr(p, n->arg[call->nargs], TX_PREC_ANY);
        tx_sb_puts(p->out, call->keep ? ", preserve_dst=True" : "");
    }
    tx_sb_putc(p->out, ')');
}

static void
print_call_extern(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_dtype_text(p, n->dtype);
    tx_sb_puts(p->out, ", ");
    put_str(p, n->u.call->name);
    put_args(p, n, 0, true);
    tx_sb_putc(p->out, ')');
}

static void
print_call_packed(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "%s(", tx_ops[n->op].spelling);
    put_str(p, n->u.call->name);
    put_args(p, n, 0, true);
    tx_sb_putc(p->out, ')');
}

/* T.anylist_getitem(x, 0, dtype="handle") */
static void
print_kept(tx_printer *p, const tx_node *n)
{
    tx_sb_f(p->out, "T.%s(", n->u.call->name->text);
    put_args(p, n, 0, false);
    tx_sb_puts(p->out, n->nargs ? ", dtype=" : "dtype=");
    put_dtype_text(p, n->dtype);
    tx_sb_putc(p->out, ')');
}

static void
print_call_func(tx_printer *p, const tx_node *n)
{
    const tx_call *call = n->u.call;
    const tx_str *name = call->name ? call->name : call->func ? call->func->name : NULL;
    char word[130];

    if (p->module_class)
        tx_sb_f(p->out, "%s.", p->module_class);
    tx_print_word(name ? name->text : "", word, sizeof word);
    tx_sb_f(p->out, "%s(", word);
    for (uint32_t i = 0; i < n->nargs; i++) {
        const tx_node *a = n->arg[i];
        tx_sb_puts(p->out, i ? ", " : "");
        if (a->op == TX_OP_BUFFER_DATA && !tx_print_known(p, a->u.buf->data))
            tx_sb_puts(p->out, buffer_name(p, a->u.buf)); /* a buffer is passed by its name */
        else
            tx_print_expr(p, a, TX_PREC_ANY);
    }
    tx_sb_putc(p->out, ')');
}

static void
print_var_node(tx_printer *p, const tx_node *n)
{
    print_var(p, n->u.var);
}

static void
print_str_node(tx_printer *p, const tx_node *n)
{
    put_str(p, n->u.s);
}

static void (*const print_expr_form[TX_OP__COUNT])(tx_printer *p, const tx_node *n) = {
    [TX_OP_VAR] = print_var_node,
    [TX_OP_INT] = print_int,
    [TX_OP_FLOAT] = print_float,
    [TX_OP_STR] = print_str_node,
    [TX_OP_CAST] = print_conversion,
    [TX_OP_REINTERPRET] = print_conversion,
    [TX_OP_PTR_OFFSET] = print_dtype_last,
    [TX_OP_LDG] = print_dtype_last,
    [TX_OP_RAMP] = print_ramp,
    [TX_OP_BROADCAST] = print_ramp,
    [TX_OP_SHUFFLE] = print_shuffle,
    [TX_OP_LET] = print_let,
    [TX_OP_LOAD] = print_load,
    [TX_OP_BUFFER_DATA] = print_buffer_data,
    [TX_OP_FUNC_CALL] = print_func_call,
    [TX_OP_PTX] = print_ptx,
    [TX_OP_CALL_EXTERN] = print_call_extern,
    [TX_OP_CALL_PURE_EXTERN] = print_call_extern,
    [TX_OP_CALL_PACKED] = print_call_packed,
    [TX_OP_CALL_FUNC] = print_call_func,
    [TX_OP_KEPT] = print_kept,
    [TX_OP_STRUCT_GET] = print_struct_get,
    [TX_OP_STACK_ALLOCA] = print_stack_alloca,
};

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* A constant divisor of zero or count outside the width, which lowering may come upon and the constructors refuse. */
static bool
print_is_refused(const tx_node *n)
{
    int64_t k;

    if (n->nargs != 2 || tx_is_float(n->dtype) || !tx_const_i64(n->arg[1], &k))
        return false;
    switch (n->op) {
    case TX_OP_SHL:
    case TX_OP_SHR: return (uint64_t)k >= tx_bits(n->dtype);
    case TX_OP_DIV:
    case TX_OP_MOD:
    case TX_OP_FLOORDIV:
    case TX_OP_FLOORMOD:
    case TX_OP_CEILDIV: return k == 0;
    default: return false;
    }
}

/* Whether the constructors, given these operands, make this node. */
static bool
builds_the_same(tx_printer *p, const tx_node *n)
{
    const tx_node *made;

    if (!p->rebuild || !tx_has(n->op, TX_PROP_FOLDS))
        return true;
    if (print_is_refused(n))
        return false;
    made = tx_refold(p->c, n, n->arg);
    if (!made || made->op != n->op || made->nargs != n->nargs || made->dtype != n->dtype)
        return false;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (made->arg[i] != n->arg[i] && !tx_same_expr(made->arg[i], n->arg[i]))
            return false;
    return true;
}

static void
print_operator(tx_printer *p, const tx_node *n, int mine)
{
    const char *sign = n->op == TX_OP_DIV ? "/" : tx_ops[n->op].spelling;

    if (n->nargs == 1) {
        tx_sb_puts(p->out, sign);
        if (n->op == TX_OP_NOT)
            tx_sb_putc(p->out, ' ');
        tx_print_expr(p, n->arg[0], mine);
        return;
    }
    /* comparisons would chain, the others group to the left */
    tx_print_expr(p, n->arg[0], mine == TX_PREC_COMPARE ? mine + 1 : mine);
    tx_sb_f(p->out, " %s ", sign);
    tx_print_expr(p, n->arg[1], mine + 1);
}

static void
print_as_it_stands(tx_printer *p, const tx_node *n)
{
    if (named_form[n->op]) {
        tx_sb_f(p->out, "%s(", named_form[n->op]);
        put_args(p, n, 0, false);
        tx_sb_putc(p->out, ')');
    } else {
        print_intrinsic(p, n);
    }
}

void
tx_print_expr(tx_printer *p, const tx_node *n, int weakest)
{
    int mine = strength[n->op];

    if (n->op == TX_OP_DIV && tx_is_float(n->dtype))
        mine = TX_PREC_PRODUCT;
    if (!builds_the_same(p, n)) {
        print_as_it_stands(p, n);
    } else if (mine) {
        if (mine < weakest)
            tx_sb_putc(p->out, '(');
        print_operator(p, n, mine);
        if (mine < weakest)
            tx_sb_putc(p->out, ')');
    } else if (tx_has(n->op, TX_PROP_COORD)) {
        print_coord(p, n);
    } else if (print_expr_form[n->op]) {
        print_expr_form[n->op](p, n);
    } else {
        print_generic(p, n);
    }
}
