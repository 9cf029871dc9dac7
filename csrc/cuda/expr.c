/* Expressions, one row an op. The text has no parentheses but those that C++ needs. What C++ does not do as the language
 * says (wrapping, shifts, floor division, conversions, lazy loads) is in wrap.c, cast.c and here in condval.
 * With e->lane set, operands of several lanes are written as that one lane. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdio.h>

typedef void (*expr_fn)(em *e, tx_sb *o, const tx_node *n, em_prec prec);
typedef struct expr_row {
    expr_fn fn;
    const char *text; /* operator sign, or the C name of the double function (float32 adds an f) */
    em_prec prec;
    const char *single; /* C name of the float32 function where that is not text + "f" */
} expr_row;
static const expr_row expr_rows[TX_OP__COUNT];

bool
em_paren(tx_sb *o, em_prec own, em_prec prec)
{
    if (own >= prec)
        return false;
    tx_sb_putc(o, '(');
    return true;
}

void
em_close(tx_sb *o, bool opened)
{
    if (opened)
        tx_sb_putc(o, ')');
}

void
em_hold(em *e, const tx_node *n, const char *name)
{
    em_held h = {n, name};

    tx_push(e->c, &e->held, h);
}

const char *
em_held_name(em *e, const tx_node *n)
{
    for (uint32_t i = e->held.n; i-- > 0;)
        if (e->held.at[i].node == n)
            return e->held.at[i].name;
    return NULL;
}

void
em_expr(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const char *name;

    if (em_failed(e) || !n)
        return;
    if (e->depth >= TX_MAX_DEPTH) {
        tx_fail(e->c, e->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
        return;
    }
    if (tx_lanes(n->dtype) > 1 && e->lane < 0) {
        tx_sb_puts(o, em_vector(e, n));
        return;
    }
    if (e->held.n && (name = em_held_name(e, n))) {
        if (tx_lanes(n->dtype) > 1)
            em_lane_of(e, o, n->dtype, name, (unsigned)e->lane);
        else
            tx_sb_puts(o, name);
        return;
    }
    e->depth++;
    if (expr_rows[n->op].fn)
        expr_rows[n->op].fn(e, o, n, prec);
    else if (!em_intrin(e, o, n, prec))
        em_unsupported(e, n, tx_ops[n->op].spelling);
    e->depth--;
}

/* C++ converts an int constant to the type of the other operand, which has the same value: no cast needed. */
void
em_operand(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    tx_dtype t = n->dtype;

    if (n->op == TX_OP_BROADCAST)
        n = n->arg[0];
    if (n->op == TX_OP_INT && tx_is_int(t) && n->u.i <= INT32_MAX && n->u.i >= (tx_is_signed(t) ? -INT32_MAX : 0))
        em_int(e, o, TX_I32, n->u.i, prec);
    else
        em_expr(e, o, n, prec);
}

void
em_call(em *e, tx_sb *o, em_helper h, const char *name, const tx_node *const *args, uint32_t n)
{
    em_use(e, h);
    tx_sb_puts(o, name);
    tx_sb_putc(o, '(');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            tx_sb_puts(o, ", ");
        em_expr(e, o, args[i], EM_ARG);
    }
    tx_sb_putc(o, ')');
}

static void
expr_signed_infix(em *e, tx_sb *o, const tx_node *n, const char *sign, em_prec own)
{
    em_operand(e, o, n->arg[0], own);
    tx_sb_putc(o, ' ');
    tx_sb_puts(o, sign);
    tx_sb_putc(o, ' ');
    em_operand(e, o, n->arg[1], own + 1);
}

/* ---- leaves ---------------------------------------------------------------------------------------------------------- */

static void
expr_var(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const em_name *name = em_name_of(e, n->u.var);

    (void)prec;
    if (!name)
        return;
    if (tx_lanes(n->dtype) > 1)
        em_lane_of(e, o, n->dtype, name->text, (unsigned)e->lane);
    else
        tx_sb_f(o, "%s%s", name->by_value ? "&" : "", name->text);
}

static void
expr_int(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_int(e, o, tx_scalar_of(n->dtype), n->u.i, prec);
}

static void
expr_float(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_float(e, o, tx_scalar_of(n->dtype), n->u.f, prec);
}

static void
expr_string(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    (void)e, (void)prec;
    tx_sb_putc(o, '"');
    for (uint32_t i = 0; i < n->u.s->len; i++) {
        unsigned char ch = (unsigned char)n->u.s->text[i];

        if (ch == '\n')
            tx_sb_puts(o, "\\n");
        else if (ch == '"' || ch == '\\')
            tx_sb_f(o, "\\%c", ch);
        else if (ch == '?' || ch < 32 || ch == 127) /* no trigraphs */
            tx_sb_f(o, "\\%03o", ch);
        else
            tx_sb_putc(o, (char)ch);
    }
    tx_sb_putc(o, '"');
}

/* ---- operators --------------------------------------------------------------------------------------------------------- */

/* Floats that have no arithmetic of their own: computed in float32 and rounded once. */
static bool
expr_in_f32(tx_dtype t)
{
    return tx_is_float(t) && tx_kind(t) != TX_KIND_F32 && tx_kind(t) != TX_KIND_F64;
}

static void
expr_compare(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const expr_row *r = &expr_rows[n->op];
    bool p = em_paren(o, r->prec, prec);

    if (expr_in_f32(n->arg[0]->dtype)) {
        em_expr_as(e, o, TX_F32, n->arg[0], r->prec);
        tx_sb_f(o, " %s ", r->text);
        em_expr_as(e, o, TX_F32, n->arg[1], r->prec + 1);
    } else {
        expr_signed_infix(e, o, n, r->text, r->prec);
    }
    em_close(o, p);
}

/* f32 and f64 by sign; 16-bit floats by the prelude; the rest through float32. Integers: wrap.c. */
static void
expr_arith(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    static const struct {
        em_helper f16, bf16;
        const char *name;
    } half[3] = {{EM_H_F16_ADD, EM_H_BF16_ADD, "add"},
                 {EM_H_F16_SUB, EM_H_BF16_SUB, "sub"},
                 {EM_H_F16_MUL, EM_H_BF16_MUL, "mul"}};
    const expr_row *r = &expr_rows[n->op];
    unsigned kind = tx_kind(n->dtype);
    char name[24];
    bool p;

    if (!tx_is_float(n->dtype)) {
        em_add_sub_mul(e, o, n, prec);
        return;
    }
    if (kind == TX_KIND_F16 || kind == TX_KIND_BF16) {
        unsigned i = n->op - TX_OP_ADD;

        snprintf(name, sizeof name, "tirx_%s_%s", em_suffix(n->dtype), half[i].name);
        em_call(e, o, kind == TX_KIND_F16 ? half[i].f16 : half[i].bf16, name, n->arg, 2);
        return;
    }
    if (expr_in_f32(n->dtype)) {
        int close = em_from_f32_open(e, o, n->dtype);

        em_expr_as(e, o, TX_F32, n->arg[0], r->prec);
        tx_sb_f(o, " %s ", r->text);
        em_expr_as(e, o, TX_F32, n->arg[1], r->prec + 1);
        while (close-- > 0)
            tx_sb_putc(o, ')');
        return;
    }
    p = em_paren(o, r->prec, prec);
    expr_signed_infix(e, o, n, r->text, r->prec);
    em_close(o, p);
}

static void
expr_divide(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p;

    if (!tx_is_float(n->dtype)) {
        em_divide(e, o, n, prec);
        return;
    }
    if (expr_in_f32(n->dtype)) {
        int close = em_from_f32_open(e, o, n->dtype);

        em_expr_as(e, o, TX_F32, n->arg[0], EM_MUL);
        tx_sb_puts(o, " / ");
        em_expr_as(e, o, TX_F32, n->arg[1], EM_UNARY);
        while (close-- > 0)
            tx_sb_putc(o, ')');
        return;
    }
    p = em_paren(o, EM_MUL, prec);
    expr_signed_infix(e, o, n, "/", EM_MUL);
    em_close(o, p);
}

/* & | ^ on integers and bools; narrow operands stay in range. */
static void
expr_bits(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const expr_row *r = &expr_rows[n->op];
    bool p = em_paren(o, r->prec, prec);

    expr_signed_infix(e, o, n, r->text, r->prec);
    em_close(o, p);
}

static void
expr_bnot(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    if (tx_is_bool(n->dtype))
        tx_sb_putc(o, '!');
    else if (tx_bits(n->dtype) < 32)
        tx_sb_f(o, "(%s)~", em_elem_type(e, n->dtype));
    else
        tx_sb_putc(o, '~');
    em_expr(e, o, n->arg[0], EM_UNARY);
    em_close(o, p);
}

static void
expr_not(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    tx_sb_putc(o, '!');
    em_expr(e, o, n->arg[0], EM_UNARY);
    em_close(o, p);
}

static void
expr_neg(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    unsigned kind = tx_kind(n->dtype);
    bool p;

    if (!tx_is_float(n->dtype)) {
        em_neg(e, o, n, prec);
        return;
    }
    if (kind == TX_KIND_F16 || kind == TX_KIND_BF16) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s)(", em_elem_type(e, n->dtype));
        em_expr(e, o, n->arg[0], EM_BXOR);
        tx_sb_puts(o, " ^ 0x8000)");
        em_close(o, p);
        return;
    }
    if (expr_in_f32(n->dtype)) {
        int close = em_from_f32_open(e, o, n->dtype);

        tx_sb_putc(o, '-');
        em_expr_as(e, o, TX_F32, n->arg[0], EM_UNARY);
        while (close-- > 0)
            tx_sb_putc(o, ')');
        return;
    }
    p = em_paren(o, EM_UNARY, prec);
    tx_sb_putc(o, '-');
    em_expr(e, o, n->arg[0], EM_POST); /* never "--" */
    em_close(o, p);
}

static void
expr_abs(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    unsigned kind = tx_kind(n->dtype);
    int close;
    bool p;

    switch (tx_class(n->dtype)) {
    case TX_CLS_U: em_expr(e, o, n->arg[0], prec); return;
    case TX_CLS_I:
        if (tx_bits(n->dtype) == 64) {
            em_call(e, o, EM_H_ABS_I64, "tirx_abs_i64", n->arg, 1);
        } else if (tx_bits(n->dtype) == 32) {
            em_call(e, o, EM_H_ABS_I32, "tirx_abs_i32", n->arg, 1);
        } else {
            p = em_paren(o, EM_UNARY, prec);
            tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
            em_call(e, o, EM_H_NONE, "abs", n->arg, 1);
            em_close(o, p);
        }
        return;
    default: break;
    }
    if (kind == TX_KIND_F16 || kind == TX_KIND_BF16) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s)(", em_elem_type(e, n->dtype));
        em_expr(e, o, n->arg[0], EM_BAND);
        tx_sb_puts(o, " & 0x7fff)");
        em_close(o, p);
        return;
    }
    close = em_from_f32_open(e, o, n->dtype);
    tx_sb_puts(o, kind == TX_KIND_F64 ? "fabs(" : "fabsf(");
    em_expr_as(e, o, kind == TX_KIND_F64 ? TX_F64 : TX_F32, n->arg[0], EM_ARG);
    while (close-- >= 0)
        tx_sb_putc(o, ')');
}

/* A function with the operands as arguments: float32 and float64 by their C names, other floats through float32. */
static void
expr_math(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const expr_row *r = &expr_rows[n->op];
    bool wide = tx_kind(n->dtype) == TX_KIND_F64;
    tx_dtype in = wide ? TX_F64 : TX_F32;
    int close;

    (void)prec;
    close = em_from_f32_open(e, o, n->dtype);
    if (wide || r->single)
        tx_sb_puts(o, wide ? r->text : r->single);
    else
        tx_sb_f(o, "%sf", r->text);
    tx_sb_putc(o, '(');
    for (uint32_t i = 0; i < n->nargs; i++) {
        if (i)
            tx_sb_puts(o, ", ");
        if (n->op == TX_OP_LDEXP && i == 1)
            em_expr_as(e, o, TX_I32, n->arg[i], EM_ARG);
        else
            em_expr_as(e, o, in, n->arg[i], EM_ARG);
    }
    tx_sb_putc(o, ')');
    while (close-- > 0)
        tx_sb_putc(o, ')');
}

static void
expr_sigmoid(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_use(e, tx_kind(n->dtype) == TX_KIND_F64 ? EM_H_SIGMOID_F64 : EM_H_SIGMOID_F32);
    expr_math(e, o, n, prec);
}

static void
expr_fdividef(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    if (tx_kind(n->dtype) == TX_KIND_F64)
        expr_divide(e, o, n, prec);
    else
        expr_math(e, o, n, prec);
}

static void
expr_fma(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    switch (tx_kind(n->dtype)) {
    case TX_KIND_F16: em_call(e, o, EM_H_F16_FMA, "tirx_f16_fma", n->arg, 3); return;
    case TX_KIND_BF16: em_call(e, o, EM_H_BF16_FMA, "tirx_bf16_fma", n->arg, 3); return;
    default: break;
    }
    if (tx_class(n->dtype) == TX_CLS_M) { /* double holds the sum of any product exactly enough to be rounded once */
        const tx_node *wide[3];
        tx_dtype t = tx_with_lanes(TX_F64, tx_lanes(n->dtype));
        for (int i = 0; i < 3; i++)
            wide[i] = tx_cast(e->c, t, n->arg[i]);
        em_expr(e, o, tx_cast(e->c, n->dtype, tx_op_call(e->c, TX_OP_FMA, wide, 3)), prec);
    } else if (tx_is_float(n->dtype))
        expr_math(e, o, n, prec);
    else /* exact and wrapped: a product and a sum */
        em_expr(e, o, tx_binary(e->c, TX_OP_ADD, tx_binary(e->c, TX_OP_MUL, n->arg[0], n->arg[1]), n->arg[2]), prec);
}

static void
expr_min_max(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool narrow = !tx_is_float(n->dtype) && tx_bits(n->dtype) < 32, p;

    if (tx_is_float(n->dtype)) {
        expr_math(e, o, n, prec);
        return;
    }
    p = narrow && em_paren(o, EM_UNARY, prec);
    if (narrow)
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    em_call(e, o, EM_H_NONE, n->op == TX_OP_MIN ? "min" : "max", n->arg, 2);
    em_close(o, p);
}

static void
expr_classify(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    tx_dtype t = n->arg[0]->dtype;

    (void)prec;
    if (!tx_is_float(t)) { /* an integer is a finite number */
        tx_sb_puts(o, n->op == TX_OP_ISFINITE ? "true" : "false");
        return;
    }
    tx_sb_puts(o, expr_rows[n->op].text);
    tx_sb_putc(o, '(');
    em_expr_as(e, o, tx_kind(t) == TX_KIND_F64 ? TX_F64 : TX_F32, n->arg[0], EM_ARG);
    tx_sb_putc(o, ')');
}

/* popcount and clz have the dtype of their operand; narrow ones are zero-extended first. */
static void
expr_count(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    unsigned bits = tx_bits(n->dtype);
    bool p = em_paren(o, EM_UNARY, prec);

    if (tx_kind(n->dtype) != TX_KIND_I32)
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    if (n->op == TX_OP_CLZ && bits < 32)
        tx_sb_putc(o, '(');
    tx_sb_puts(o, n->op == TX_OP_POPCOUNT ? "__popc" : "__clz");
    tx_sb_puts(o, bits == 64 ? "ll(" : "(");
    if (bits < 32)
        tx_sb_f(o, "(%s)", em_elem_type(e, bits == 8 ? TX_DTYPE(TX_KIND_U8, 1) : TX_DTYPE(TX_KIND_U16, 1)));
    em_expr(e, o, n->arg[0], bits < 32 ? EM_UNARY : EM_ARG);
    tx_sb_putc(o, ')');
    if (n->op == TX_OP_CLZ && bits < 32)
        tx_sb_f(o, " - %u)", 32 - bits);
    em_close(o, p);
}

static void
expr_same(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_expr(e, o, n->arg[0], prec);
}

/* ---- lazy evaluation ---------------------------------------------------------------------------------------------------- */

/* The second operand is written apart: if it sends lines ahead, they have to stand behind the test of the first. */
static void
expr_logic(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool is_and = n->op == TX_OP_AND, p;
    em_prec own = is_and ? EM_LAND : EM_LOR;
    em_lines ahead = {0}, *out = e->out;
    tx_sb a = {0}, b = {0};
    uint32_t held, scope;

    em_expr(e, &a, n->arg[0], own);
    held = e->held.n;
    scope = em_scope_push(e);
    e->out = &ahead;
    e->indent++;
    em_expr(e, &b, n->arg[1], own + 1);
    e->indent--;
    e->out = out;
    if (ahead.span.n == 0) {
        p = em_paren(o, own, prec);
        tx_sb_put(o, a.text ? a.text : "", a.n);
        tx_sb_puts(o, is_and ? " && " : " || ");
        tx_sb_put(o, b.text ? b.text : "", b.n);
        em_close(o, p);
    } else {
        const char *name = em_fresh(e, "condval");

        em_linef(e, "bool %s = %s;", name, a.text ? a.text : "");
        em_linef(e, is_and ? "if (%s) {" : "if (!%s) {", name);
        em_lines_append(e, e->out, &ahead);
        e->indent++;
        em_linef(e, "%s = %s;", name, b.text ? b.text : "");
        e->indent--;
        em_line(e, "}");
        e->held.n = held;
        tx_sb_puts(o, name);
        scope = e->scope.n; /* the names inside stay taken until the block ends: they are above condval's */
    }
    (void)scope;
    em_lines_free(&ahead);
    em_done(e, &a);
    em_done(e, &b);
}

static void
expr_ternary(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_COND, prec);

    em_expr(e, o, n->arg[0], EM_LOR);
    tx_sb_puts(o, " ? ");
    em_expr(e, o, n->arg[1], EM_COND);
    tx_sb_puts(o, " : ");
    em_expr(e, o, n->arg[2], EM_COND);
    em_close(o, p);
}

/* The taken arm only; never a ternary when an arm reads memory or calls (lowering.md 5.6). */
static void
expr_if_then_else(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    tx_sb s = {0};
    const char *name;

    if (!((n->arg[1]->flags | n->arg[2]->flags) & TX_NF_IMPURE)) {
        expr_ternary(e, o, n, prec);
        return;
    }
    em_expr(e, &s, n->arg[0], EM_ANY);
    name = em_fresh(e, "condval");
    em_linef(e, "%s %s;", em_type(e, tx_scalar_of(n->dtype)), name);
    em_linef(e, "if (%s) {", s.text ? s.text : "");
    for (int i = 1; i <= 2; i++) {
        uint32_t held = e->held.n;

        if (i == 2)
            em_line(e, "} else {");
        e->indent++;
        s.n = 0;
        em_expr(e, &s, n->arg[i], EM_ARG);
        em_linef(e, "%s = %s;", name, s.n ? s.text : "");
        e->indent--;
        e->held.n = held;
    }
    em_line(e, "}");
    em_done(e, &s);
    tx_sb_puts(o, name);
}

static void
expr_let(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_name *name;
    tx_sb s = {0};

    em_expr(e, &s, n->arg[0], EM_ARG);
    name = em_declare(e, n->u.var, "");
    if (name) {
        name->data = em_is_data(e, n->arg[0]);
        em_linef(e, "%s %s = %s;", em_type(e, tx_scalar_of(n->u.var->dtype)), name->text, s.n ? s.text : "");
    }
    em_done(e, &s);
    em_expr(e, o, n->arg[1], prec);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------ */

/* Lane k: base + k * stride, which wraps like any sum. */
static void
expr_ramp(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const tx_node *base = n->arg[0], *step = n->arg[1], *lane;
    int64_t stride;

    if (e->lane > 0) {
        lane = tx_int(e->c, base->dtype, e->lane);
        step = tx_const_i64(step, &stride)
                   ? tx_int(e->c, base->dtype, (int64_t)((uint64_t)stride * (unsigned)e->lane))
                   : tx_make(e->c, TX_OP_MUL, base->dtype, (tx_payload){0}, (const tx_node *[]){step, lane}, 2);
        base = tx_make(e->c, TX_OP_ADD, base->dtype, (tx_payload){0}, (const tx_node *[]){base, step}, 2);
    }
    if (base)
        em_expr(e, o, base, prec);
}

static void
expr_broadcast(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_expr(e, o, n->arg[0], prec);
}

static void
expr_pick(em *e, tx_sb *o, const tx_node *n, unsigned lane, em_prec prec)
{
    int saved = e->lane;

    e->lane = tx_lanes(n->dtype) > 1 ? (int)lane : -1;
    em_expr(e, o, n, prec);
    e->lane = saved;
}

/* SHUFFLE: the lanes of several vectors in a row, picked by constant numbers. */
static void
expr_shuffle(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    uint32_t nvecs = (uint32_t)n->u.i;
    uint32_t at = nvecs + (e->lane < 0 ? 0 : (uint32_t)e->lane);
    int64_t k = 0;

    if (at >= n->nargs || !tx_const_i64(n->arg[at], &k)) {
        em_unsupported(e, n, "T.Shuffle");
        return;
    }
    for (uint32_t i = 0; i < nvecs; i++) {
        unsigned lanes = tx_lanes(n->arg[i]->dtype);

        if (k < (int64_t)lanes) {
            em_vector_prepare(e, n->arg[i]);
            expr_pick(e, o, n->arg[i], (unsigned)k, prec);
            return;
        }
        k -= lanes;
    }
}

static void
expr_vector(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    if (e->lane >= 0 && (uint32_t)e->lane < n->nargs)
        expr_pick(e, o, n->arg[e->lane], 0, prec);
}

/* ---- the table ---------------------------------------------------------------------------------------------------------- */

static void
expr_buffer_data(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const em_name *name = em_name_of(e, n->u.buf->data);
    bool p;

    if (!name)
        return;
    if (name->cell) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "&%s", name->text);
        em_close(o, p);
    } else if (name->bytes && tx_kind(n->u.buf->dtype) != TX_KIND_U8) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s*)%s", em_elem_type(e, n->u.buf->dtype), name->text);
        em_close(o, p);
    } else {
        tx_sb_puts(o, name->text);
    }
}

static void
expr_ptr_offset(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    tx_sb_putc(o, '(');
    em_pointer_type(e, n->elem, o);
    tx_sb_puts(o, ")((char*)");
    em_expr(e, o, n->arg[0], EM_UNARY);
    tx_sb_puts(o, " + ");
    em_operand(e, o, n->arg[1], EM_MUL);
    tx_sb_putc(o, ')');
    em_close(o, p);
}

static void
expr_is_null(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_EQ, prec);

    em_expr(e, o, n->arg[0], EM_EQ);
    tx_sb_puts(o, " == nullptr");
    em_close(o, p);
}

// clang-format off
static const expr_row expr_rows[TX_OP__COUNT] = {
    [TX_OP_VAR]          = {expr_var, NULL, 0, NULL},
    [TX_OP_INT]          = {expr_int, NULL, 0, NULL},
    [TX_OP_FLOAT]        = {expr_float, NULL, 0, NULL},
    [TX_OP_STR]          = {expr_string, NULL, 0, NULL},
    [TX_OP_EQ]           = {expr_compare, "==", EM_EQ, NULL},
    [TX_OP_NE]           = {expr_compare, "!=", EM_EQ, NULL},
    [TX_OP_LT]           = {expr_compare, "<", EM_REL, NULL},
    [TX_OP_GE]           = {expr_compare, ">=", EM_REL, NULL},
    [TX_OP_GT]           = {expr_compare, ">", EM_REL, NULL},
    [TX_OP_LE]           = {expr_compare, "<=", EM_REL, NULL},
    [TX_OP_ADD]          = {expr_arith, "+", EM_ADD, NULL},
    [TX_OP_SUB]          = {expr_arith, "-", EM_ADD, NULL},
    [TX_OP_MUL]          = {expr_arith, "*", EM_MUL, NULL},
    [TX_OP_DIV]          = {expr_divide, NULL, 0, NULL},
    [TX_OP_MOD]          = {em_divide, NULL, 0, NULL},
    [TX_OP_FLOORDIV]     = {em_divide, NULL, 0, NULL},
    [TX_OP_FLOORMOD]     = {em_divide, NULL, 0, NULL},
    [TX_OP_MIN]          = {expr_min_max, "fmin", 0, NULL},
    [TX_OP_MAX]          = {expr_min_max, "fmax", 0, NULL},
    [TX_OP_BAND]         = {expr_bits, "&", EM_BAND, NULL},
    [TX_OP_BOR]          = {expr_bits, "|", EM_BOR, NULL},
    [TX_OP_BXOR]         = {expr_bits, "^", EM_BXOR, NULL},
    [TX_OP_SHL]          = {em_shift, NULL, 0, NULL},
    [TX_OP_SHR]          = {em_shift, NULL, 0, NULL},
    [TX_OP_NEG]          = {expr_neg, NULL, 0, NULL},
    [TX_OP_BNOT]         = {expr_bnot, NULL, 0, NULL},
    [TX_OP_ABS]          = {expr_abs, NULL, 0, NULL},
    [TX_OP_FMA]          = {expr_fma, "fma", 0, NULL},
    [TX_OP_AND]          = {expr_logic, NULL, 0, NULL},
    [TX_OP_OR]           = {expr_logic, NULL, 0, NULL},
    [TX_OP_NOT]          = {expr_not, NULL, 0, NULL},
    [TX_OP_CAST]         = {em_cast, NULL, 0, NULL},
    [TX_OP_REINTERPRET]  = {em_reinterpret, NULL, 0, NULL},
    [TX_OP_SELECT]       = {expr_ternary, NULL, 0, NULL},
    [TX_OP_IF_THEN_ELSE] = {expr_if_then_else, NULL, 0, NULL},
    [TX_OP_LET]          = {expr_let, NULL, 0, NULL},
    [TX_OP_RAMP]         = {expr_ramp, NULL, 0, NULL},
    [TX_OP_BROADCAST]    = {expr_broadcast, NULL, 0, NULL},
    [TX_OP_SHUFFLE]      = {expr_shuffle, NULL, 0, NULL},
    [TX_OP_VECTOR]       = {expr_vector, NULL, 0, NULL},
    [TX_OP_EXP]          = {expr_math, "exp", 0, NULL},
    [TX_OP_EXP2]         = {expr_math, "exp2", 0, NULL},
    [TX_OP_EXP10]        = {expr_math, "exp10", 0, NULL},
    [TX_OP_LOG]          = {expr_math, "log", 0, NULL},
    [TX_OP_LOG2]         = {expr_math, "log2", 0, NULL},
    [TX_OP_LOG10]        = {expr_math, "log10", 0, NULL},
    [TX_OP_LOG1P]        = {expr_math, "log1p", 0, NULL},
    [TX_OP_SQRT]         = {expr_math, "sqrt", 0, NULL},
    [TX_OP_RSQRT]        = {expr_math, "rsqrt", 0, NULL},
    [TX_OP_SIN]          = {expr_math, "sin", 0, NULL},
    [TX_OP_COS]          = {expr_math, "cos", 0, NULL},
    [TX_OP_TAN]          = {expr_math, "tan", 0, NULL},
    [TX_OP_ASIN]         = {expr_math, "asin", 0, NULL},
    [TX_OP_ACOS]         = {expr_math, "acos", 0, NULL},
    [TX_OP_ATAN]         = {expr_math, "atan", 0, NULL},
    [TX_OP_SINH]         = {expr_math, "sinh", 0, NULL},
    [TX_OP_COSH]         = {expr_math, "cosh", 0, NULL},
    [TX_OP_TANH]         = {expr_math, "tanh", 0, NULL},
    [TX_OP_ASINH]        = {expr_math, "asinh", 0, NULL},
    [TX_OP_ACOSH]        = {expr_math, "acosh", 0, NULL},
    [TX_OP_ATANH]        = {expr_math, "atanh", 0, NULL},
    [TX_OP_ERF]          = {expr_math, "erf", 0, NULL},
    [TX_OP_SIGMOID]      = {expr_sigmoid, "tirx_sigmoid_f64", 0, "tirx_sigmoid_f32"},
    [TX_OP_FLOOR]        = {expr_math, "floor", 0, NULL},
    [TX_OP_CEIL]         = {expr_math, "ceil", 0, NULL},
    [TX_OP_ROUND]        = {expr_math, "nearbyint", 0, NULL},
    [TX_OP_TRUNC]        = {expr_math, "trunc", 0, NULL},
    [TX_OP_ATAN2]        = {expr_math, "atan2", 0, NULL},
    [TX_OP_POW]          = {expr_math, "pow", 0, NULL},
    [TX_OP_FMOD]         = {expr_math, "fmod", 0, NULL},
    [TX_OP_HYPOT]        = {expr_math, "hypot", 0, NULL},
    [TX_OP_LDEXP]        = {expr_math, "ldexp", 0, NULL},
    [TX_OP_COPYSIGN]     = {expr_math, "copysign", 0, NULL},
    [TX_OP_NEXTAFTER]    = {expr_math, "nextafter", 0, NULL},
    [TX_OP_ISNAN]        = {expr_classify, "isnan", 0, NULL},
    [TX_OP_ISINF]        = {expr_classify, "isinf", 0, NULL},
    [TX_OP_ISFINITE]     = {expr_classify, "isfinite", 0, NULL},
    [TX_OP_POPCOUNT]     = {expr_count, NULL, 0, NULL},
    [TX_OP_CLZ]          = {expr_count, NULL, 0, NULL},
    [TX_OP_FDIVIDEF]     = {expr_fdividef, "fdivide", 0, "__fdividef"},
    [TX_OP_LIKELY]       = {expr_same, NULL, 0, NULL},
    [TX_OP_LOAD]         = {em_load, NULL, 0, NULL},
    [TX_OP_BUFFER_DATA]  = {expr_buffer_data, NULL, 0, NULL},
    [TX_OP_PTR_OFFSET]   = {expr_ptr_offset, NULL, 0, NULL},
    [TX_OP_ISNULLPTR]    = {expr_is_null, NULL, 0, NULL},
};
// clang-format on
