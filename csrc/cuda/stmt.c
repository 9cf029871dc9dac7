/* Statements, one function an op. A block is a scope of names and of facts: what the bounds of loops and the conditions of
 * branches say is known to the expressions inside. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdio.h>

typedef void (*stmt_fn)(em *e, const tx_node *n);

const char *
em_temp(em *e, const tx_node *n, const char *hint)
{
    tx_sb s = {0}, type = {0};
    const char *name;

    em_expr(e, &s, n, EM_ARG);
    if (tx_is_handle(n->dtype))
        em_pointer_type(e, n->elem, &type);
    else
        tx_sb_puts(&type, em_type(e, n->dtype));
    name = em_fresh(e, hint);
    em_linef(e, "%s %s = %s;", type.n ? type.text : "", name, s.n ? s.text : "");
    em_done(e, &s);
    em_done(e, &type);
    return name;
}

/* A condition, with what it sends ahead. */
static void
stmt_condition(em *e, tx_sb *o, const tx_node *cond, em_prec prec)
{
    em_ahead(e, cond);
    em_expr(e, o, cond, prec);
}

static void
stmt_block(em *e, const tx_node *body, const tx_node *fact)
{
    uint32_t scope = em_scope_push(e), facts = tx_facts_push(e->facts);

    if (fact)
        tx_facts_assume(e->facts, fact);
    e->indent++;
    if (body)
        em_stmt(e, body);
    e->indent--;
    tx_facts_pop(e->facts, facts);
    em_scope_pop(e, scope);
}

/* ---- simple statements --------------------------------------------------------------------------------------------------- */

static void
stmt_seq(em *e, const tx_node *n)
{
    for (uint32_t i = 0; i < n->nargs && !em_failed(e); i++) {
        const tx_node *s = n->arg[i], *next = i + 1 < n->nargs ? n->arg[i + 1] : NULL;

        if (s->op != TX_OP_ALLOC) {
            em_stmt(e, s);
            continue;
        }
        e->span = s->span;
        e->held.n = 0;
        if (em_alloc(e, s, next))
            i++;
    }
}

static void
stmt_alloc(em *e, const tx_node *n)
{
    em_alloc(e, n, NULL);
}

/* What a shuffle gives lies where its operand does: warp ids keep their bounds. */
static void
stmt_bind_facts(em *e, tx_var *v, const tx_node *value)
{
    tx_bounds b;

    if (!(value->flags & TX_NF_IMPURE)) {
        tx_facts_equal(e->facts, v, value);
    } else if (value->op == TX_OP_SHFL && tx_is_int(value->dtype) && tx_lanes(value->dtype) == 1) {
        b = tx_bounds_of(e->facts, value->arg[1]);
        tx_facts_range_i64(e->facts, v, b.lo, b.hi);
    }
}

static void
stmt_bind(em *e, const tx_node *n)
{
    const tx_node *value = n->arg[0];
    tx_var *v = n->u.var;
    tx_sb s = {0}, type = {0};
    em_name *name;

    em_ahead(e, value);
    if (tx_lanes(value->dtype) > 1) {
        const char *held;

        if ((name = em_declare(e, v, ""))) {
            name->data = true;
            if ((held = em_held_name(e, value)) != NULL || value->op == TX_OP_VAR)
                name->text = held ? held : em_vector(e, value);
            else
                em_vector_into(e, value, name->text);
        }
        return;
    }
    em_expr(e, &s, value, EM_ARG);
    if (tx_is_handle(v->dtype))
        em_pointer_type(e, v->elem, &type);
    else
        tx_sb_puts(&type, em_type(e, v->dtype));
    if ((name = em_declare(e, v, ""))) {
        name->data = em_is_data(e, value);
        name->elem = v->elem;
        if (tx_is_handle(v->dtype) && tx_is_handle(value->dtype) && tx_kind(v->elem) != tx_kind(value->elem))
            em_linef(e, "%s %s = (%s)(%s);", type.n ? type.text : "", name->text, type.n ? type.text : "",
                     s.n ? s.text : "");
        else
            em_linef(e, "%s %s = %s;", type.n ? type.text : "", name->text, s.n ? s.text : "");
        stmt_bind_facts(e, v, value);
    }
    em_done(e, &s);
    em_done(e, &type);
}

static void
stmt_eval(em *e, const tx_node *n)
{
    const tx_node *x = n->arg[0];
    tx_sb s = {0};

    if (!em_has_effect(x))
        return; /* nothing that could be seen */
    if (x->op == TX_OP_THREAD_RETURN) {
        em_line(e, "return;");
        return;
    }
    em_ahead(e, x);
    if (tx_lanes(x->dtype) > 1 && x->op != TX_OP_FUNC_CALL && x->op != TX_OP_CALL_EXTERN) {
        em_vector(e, x);
        return;
    }
    if (tx_lanes(x->dtype) > 1)
        em_intrin(e, &s, x, EM_ANY);
    else
        em_expr(e, &s, x, EM_ANY);
    em_linef(e, "%s;", s.n ? s.text : "");
    em_done(e, &s);
}

static void
stmt_break(em *e, const tx_node *n)
{
    em_line(e, n->op == TX_OP_BREAK ? "break;" : "continue;");
}

static void
stmt_return(em *e, const tx_node *n)
{
    tx_sb s = {0};

    if (n->nargs == 0 || !n->arg[0] || (e->fn->flags & TX_FUNC_KERNEL)) {
        em_line(e, "return;");
        return;
    }
    em_ahead(e, n->arg[0]);
    em_expr(e, &s, n->arg[0], EM_ARG);
    em_linef(e, "return %s;", s.n ? s.text : "");
    em_done(e, &s);
}

/* Text inside a C++ format string. */
static void
stmt_format_text(tx_sb *o, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char ch = (unsigned char)text[i];

        if (ch == '%')
            tx_sb_puts(o, "%%");
        else if (ch == '"' || ch == '\\')
            tx_sb_f(o, "\\%c", ch);
        else if (ch < 32 || ch == '?' || ch == 127)
            tx_sb_f(o, "\\%03o", ch);
        else
            tx_sb_putc(o, (char)ch);
    }
}

static void
stmt_assert(em *e, const tx_node *n)
{
    const tx_assertion *a = n->u.assertion;
    const tx_span_info *at = tx_span_at(e->c, n->span);
    const tx_file *file = at->file < e->c->files.n ? &e->c->files.at[at->file] : NULL;
    tx_sb s = {0}, text = {0};

    if (e->t->disable_assert || (n->arg[0]->op == TX_OP_INT && n->arg[0]->u.i != 0))
        return;
    stmt_condition(e, &s, n->arg[0], EM_UNARY);
    if (file && file->name && at->line) {
        stmt_format_text(&text, file->name->text, file->name->len);
        tx_sb_f(&text, ":%u: ", at->line);
    }
    stmt_format_text(&text, a->kind ? a->kind->text : "AssertionError", a->kind ? a->kind->len : 14);
    for (uint32_t i = 0; i < a->nparts; i++) {
        if (i == 0)
            tx_sb_puts(&text, ": ");
        stmt_format_text(&text, a->parts[i]->text, a->parts[i]->len);
    }
    em_linef(e, "if (!%s) {", s.n ? s.text : "");
    e->indent++;
    em_linef(e, "printf(\"%s\\n\");", text.n ? text.text : "");
    em_line(e, "__trap();");
    e->indent--;
    em_line(e, "}");
    em_done(e, &s);
    em_done(e, &text);
}

static void
stmt_attr(em *e, const tx_node *n)
{
    if (n->nargs > 1 && n->arg[1])
        em_stmt(e, n->arg[1]);
}

/* ---- branches -------------------------------------------------------------------------------------------------------------- */

/* The condition of an else-branch that is itself an if: text for "} else if (...)", or false when it sends lines ahead. */
static bool
stmt_else_if(em *e, const tx_node *n, tx_sb *s)
{
    em_lines ahead = {0}, *out = e->out;
    uint32_t scope = em_scope_push(e);
    bool ok;

    if (!n || n->op != TX_OP_IF)
        return false;
    e->out = &ahead;
    e->held.n = 0;
    stmt_condition(e, s, n->arg[0], EM_ANY);
    e->out = out;
    ok = ahead.span.n == 0;
    em_lines_free(&ahead);
    if (!ok)
        em_scope_pop(e, scope);
    return ok;
}

static void
stmt_if(em *e, const tx_node *n)
{
    uint32_t facts = tx_facts_push(e->facts);
    tx_sb s = {0};

    stmt_condition(e, &s, n->arg[0], EM_ANY);
    em_linef(e, "if (%s) {", s.n ? s.text : "");
    for (;;) {
        const tx_node *other = n->nargs > 2 ? n->arg[2] : NULL;

        stmt_block(e, n->arg[1], n->arg[0]);
        if (!other)
            break;
        tx_facts_assume(e->facts, tx_not(e->c, n->arg[0]));
        s.n = 0;
        if (!stmt_else_if(e, other, &s)) {
            em_line(e, "} else {");
            stmt_block(e, other, NULL);
            break;
        }
        e->span = other->span;
        em_linef(e, "} else if (%s) {", s.n ? s.text : "");
        n = other;
    }
    em_line(e, "}");
    tx_facts_pop(e->facts, facts);
    em_done(e, &s);
}

/* ---- loops ------------------------------------------------------------------------------------------------------------------ */

static void
stmt_pragma(em *e, int32_t unroll)
{
    if (unroll < 0)
        em_line(e, "#pragma unroll");
    else if (unroll > 0)
        em_linef(e, "#pragma unroll %d", (int)unroll);
}

/* Whether the counter may be stepped past the end without leaving its dtype: the last step of "i += s" is at most
 * stop + s - 1. Sizes and coordinates are taken to leave that room. */
static bool
stmt_counter_fits(em *e, const tx_node *n, int64_t step)
{
    tx_bounds stop = tx_bounds_of(e->facts, n->arg[1]);
    tx_dtype t = n->u.loop->var->dtype;
    int64_t lo, last, ignored;
    uint64_t hi;

    if (step == 1 || (step == -1 && tx_is_signed(t)))
        return true;
    if (step < 0 && !tx_is_signed(t))
        return false;
    if (!tx_int_limits(t, &lo, &hi))
        return false;
    if (step > 0 ? tx_add_i64(stop.hi, step - 1, &last) && last >= 0 && (uint64_t)last <= hi
                 : tx_add_i64(stop.lo, step + 1, &last) && last >= lo)
        return true;
    if (tx_const_i64(n->arg[1], &ignored))
        return false;
    return !em_is_data(e, n->arg[0]) && !em_is_data(e, n->arg[1]);
}

static void
stmt_loop_name(em *e, const tx_node *n)
{
    tx_var *v = n->u.loop->var;
    bool data = em_is_data(e, n->arg[0]) || em_is_data(e, n->arg[1]) || em_is_data(e, n->arg[2]);
    tx_bounds start = tx_bounds_of(e->facts, n->arg[0]), stop = tx_bounds_of(e->facts, n->arg[1]);
    tx_bounds step = tx_bounds_of(e->facts, n->arg[2]);
    em_name *name = em_declare(e, v, "");

    if (name)
        name->data = data;
    if (step.lo > 0 && stop.hi != INT64_MAX && start.lo < stop.hi)
        tx_facts_range_i64(e->facts, v, start.lo, stop.hi - 1);
    else if (step.hi < 0 && stop.lo != INT64_MIN && stop.lo < start.hi)
        tx_facts_range_i64(e->facts, v, stop.lo + 1, start.hi);
}

/* for (int i = start; i < stop; ++i) */
static void
stmt_plain_for(em *e, const tx_node *n, int64_t step, const char *start, const char *stop)
{
    const em_name *name = em_name_of(e, n->u.loop->var);
    const char *type = em_elem_type(e, n->u.loop->var->dtype), *i = name ? name->text : "i";
    char by[48];

    if (step == 1 || step == -1)
        snprintf(by, sizeof by, "%s%s", step > 0 ? "++" : "--", i);
    if (step == 1 || step == -1)
        em_linef(e, "for (%s %s = %s; %s %s %s; %s%s) {", type, i, start, i, step > 0 ? "<" : ">", stop,
                 step > 0 ? "++" : "--", i);
    else
        em_linef(e, "for (%s %s = %s; %s %s %s; %s %s= %lld) {", type, i, start, i, step > 0 ? "<" : ">", stop, i,
                 step > 0 ? "+" : "-", (long long)(step > 0 ? step : -step));
}

/* Any start, stop and step: the turns are counted first, so that no step leaves the dtype. */
static void
stmt_counted_for(em *e, const tx_node *n, const char *start, const char *stop, const char *turns)
{
    tx_dtype t = n->u.loop->var->dtype;
    bool wide = tx_bits(t) == 64 || tx_kind(t) == TX_KIND_U32;
    const char *type = em_elem_type(e, t), *count = em_elem_type(e, wide ? TX_U64 : TX_U32);
    const char *turn = em_fresh(e, "turn");
    tx_sb step = {0};

    em_use(e, wide ? EM_H_TURNS_I64 : EM_H_TURNS_I32);
    em_expr(e, &step, n->arg[2], EM_UNARY);
    em_linef(e, "%s %s = tirx_turns_%s(%s, %s, %s);", count, turns, wide ? "i64" : "i32", start, stop,
             step.n ? step.text : "1");
    stmt_pragma(e, n->u.loop->unroll);
    em_linef(e, "for (%s %s = 0; %s < %s; ++%s) {", count, turn, turn, turns, turn);
    stmt_loop_name(e, n);
    e->indent++;
    const em_name *name = em_name_of(e, n->u.loop->var);
    em_linef(e, "%s %s = (%s)((%s)%s + %s * (%s)%s);", type, name ? name->text : "i", type, count, start, turn, count,
             step.n ? step.text : "1");
    e->indent--;
    em_done(e, &step);
}

static void
stmt_for(em *e, const tx_node *n)
{
    uint32_t scope, facts = tx_facts_push(e->facts);
    const char *turns = NULL;
    tx_sb start = {0}, stop = {0};
    int64_t step = 0;

    if (!tx_const_i64(n->arg[2], &step) || step == 0 || !stmt_counter_fits(e, n, step))
        turns = em_fresh(e, "turns"); /* declared outside of the loop */
    scope = em_scope_push(e);
    em_operand(e, &start, n->arg[0], turns ? EM_UNARY : EM_ARG);
    if (!turns) {
        em_operand(e, &stop, n->arg[1], EM_REL + 1);
        stmt_pragma(e, n->u.loop->unroll);
        stmt_loop_name(e, n);
        stmt_plain_for(e, n, step, start.n ? start.text : "0", stop.n ? stop.text : "0");
    } else {
        em_expr(e, &stop, n->arg[1], EM_ARG);
        stmt_counted_for(e, n, start.n ? start.text : "0", stop.n ? stop.text : "0", turns);
    }
    stmt_block(e, n->arg[3], NULL);
    em_line(e, "}");
    tx_facts_pop(e->facts, facts);
    em_scope_pop(e, scope);
    em_done(e, &start);
    em_done(e, &stop);
}

static void
stmt_while(em *e, const tx_node *n)
{
    uint32_t scope = em_scope_push(e);
    tx_sb s = {0};

    em_line(e, "#pragma unroll 1");
    em_line(e, "while (1) {");
    e->indent++;
    if (!(n->arg[0]->op == TX_OP_INT && n->arg[0]->u.i != 0)) {
        stmt_condition(e, &s, n->arg[0], EM_ANY);
        em_linef(e, "if (!(%s)) { break; }", s.n ? s.text : "");
    }
    e->indent--;
    stmt_block(e, n->arg[1], NULL);
    em_line(e, "}");
    em_scope_pop(e, scope);
    em_done(e, &s);
}

static const stmt_fn stmt_rows[TX_OP__COUNT] = {
    [TX_OP_SEQ] = stmt_seq,        [TX_OP_BIND] = stmt_bind,     [TX_OP_STORE] = em_store,
    [TX_OP_ALLOC] = stmt_alloc,    [TX_OP_DECL] = em_decl,       [TX_OP_FOR] = stmt_for,
    [TX_OP_WHILE] = stmt_while,    [TX_OP_IF] = stmt_if,         [TX_OP_BREAK] = stmt_break,
    [TX_OP_CONTINUE] = stmt_break, [TX_OP_RETURN] = stmt_return, [TX_OP_EVAL] = stmt_eval,
    [TX_OP_ASSERT] = stmt_assert,  [TX_OP_ATTR] = stmt_attr,
};

void
em_stmt(em *e, const tx_node *n)
{
    tx_span saved = e->span;

    if (em_failed(e) || !n)
        return;
    if (e->depth >= TX_MAX_DEPTH) {
        tx_fail(e->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
        return;
    }
    if (n->op != TX_OP_SEQ && n->span)
        e->span = n->span;
    e->held.n = 0;
    e->depth++;
    if (stmt_rows[n->op])
        stmt_rows[n->op](e, n);
    else
        em_unsupported(e, n, tx_ops[n->op].name);
    e->depth--;
    e->span = saved;
}
