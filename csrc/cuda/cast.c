/* Conversions between dtypes: which steps lead from one class to another, each exact or rounded once, floats to integers
 * saturating (language.md 8). A step is a C cast or a function; the steps are opened outermost first around the value.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdio.h>

typedef struct cast_step {
    const char *open; /* "tirx_f32_to_f16(" or "(int)" */
    bool call;        /* to be closed with ")" */
    em_helper needs;
} cast_step;
typedef struct cast_plan { /* innermost first */
    cast_step at[4];
    int n;
} cast_plan;

/* Codes of 16 bits and less: to float32 and back. */
static const struct cast_code {
    const char *decode, *encode;
    em_helper to_f32, from_f32;
} cast_codes[TX_KIND__COUNT] = {
#define CODE(kind, s) \
    [TX_KIND_##kind] = {"tirx_" s "_to_f32(", "tirx_f32_to_" s "(", EM_H_##kind##_TO_F32, EM_H_F32_TO_##kind}
    CODE(F16, "f16"),
    CODE(BF16, "bf16"),
    CODE(E3M4, "e3m4"),
    CODE(E4M3, "e4m3"),
    CODE(E4M3B11FNUZ, "e4m3b11fnuz"),
    CODE(E4M3FN, "e4m3fn"),
    CODE(E4M3FNUZ, "e4m3fnuz"),
    CODE(E5M2, "e5m2"),
    CODE(E5M2FNUZ, "e5m2fnuz"),
    CODE(E8M0FNU, "e8m0fnu"),
    CODE(E2M3FN, "e2m3fn"),
    CODE(E3M2FN, "e3m2fn"),
    CODE(E2M1FN, "e2m1fn"),
#undef CODE
};

/* Float32 and float64 to integers. */
static const struct cast_to_int {
    const char *f32, *f64;
    em_helper h32, h64;
} cast_ints[TX_KIND__COUNT] = {
    [TX_KIND_I8] = {"tirx_f32_to_i8(", "tirx_f64_to_i8(", EM_H_F32_TO_I8, EM_H_F64_TO_I8},
    [TX_KIND_I16] = {"tirx_f32_to_i16(", "tirx_f64_to_i16(", EM_H_F32_TO_I16, EM_H_F64_TO_I16},
    [TX_KIND_I32] = {"__float2int_rz(", "tirx_f64_to_i32(", EM_H_NONE, EM_H_F64_TO_I32},
    [TX_KIND_I64] = {"tirx_f32_to_i64(", "tirx_f64_to_i64(", EM_H_F32_TO_I64, EM_H_F64_TO_I64},
    [TX_KIND_U8] = {"tirx_f32_to_u8(", "tirx_f64_to_u8(", EM_H_F32_TO_U8, EM_H_F64_TO_U8},
    [TX_KIND_U16] = {"tirx_f32_to_u16(", "tirx_f64_to_u16(", EM_H_F32_TO_U16, EM_H_F64_TO_U16},
    [TX_KIND_U32] = {"__float2uint_rz(", "tirx_f64_to_u32(", EM_H_NONE, EM_H_F64_TO_U32},
    [TX_KIND_U64] = {"tirx_f32_to_u64(", "tirx_f64_to_u64(", EM_H_F32_TO_U64, EM_H_F64_TO_U64},
};

static void
cast_add(cast_plan *p, const char *open, bool call, em_helper needs)
{
    cast_step s = {open, call, needs};

    if (p->n < 4)
        p->at[p->n++] = s;
}

static void
cast_add_c(em *e, cast_plan *p, tx_dtype to)
{
    const tx_str *s = tx_intern_f(e->c, "(%s)", em_elem_type(e, to));

    cast_add(p, s ? s->text : "", false, EM_H_NONE);
}

static bool
cast_is_code(tx_dtype t)
{
    return cast_codes[tx_kind(t)].decode != NULL;
}

/* To float32 for a code that is then rounded again: exact, or rounded to odd. */
static void
cast_to_odd_f32(em *e, cast_plan *p, tx_dtype from)
{
    if (cast_is_code(from))
        cast_add(p, cast_codes[tx_kind(from)].decode, true, cast_codes[tx_kind(from)].to_f32);
    else if (tx_kind(from) == TX_KIND_F64)
        cast_add(p, "tirx_f64_odd(", true, EM_H_F64_ODD);
    else if (tx_bits(from) <= 16 && !tx_is_float(from))
        cast_add_c(e, p, TX_F32);
    else if (tx_kind(from) == TX_KIND_U64)
        cast_add(p, "tirx_u64_odd(", true, EM_H_U64_ODD);
    else if (!tx_is_float(from))
        cast_add(p, "tirx_i64_odd(", true, EM_H_I64_ODD);
}

static bool
cast_make_plan(em *e, cast_plan *p, tx_dtype to, tx_dtype from)
{
    const struct cast_to_int *i = &cast_ints[tx_kind(to)];

    p->n = 0;
    if (tx_kind(to) == tx_kind(from))
        return true;
    if (cast_is_code(to)) {
        cast_to_odd_f32(e, p, from);
        cast_add(p, cast_codes[tx_kind(to)].encode, true, cast_codes[tx_kind(to)].from_f32);
        return true;
    }
    if (cast_is_code(from)) {
        cast_add(p, cast_codes[tx_kind(from)].decode, true, cast_codes[tx_kind(from)].to_f32);
        from = TX_F32;
        if (tx_kind(to) == TX_KIND_F32)
            return true;
    }
    if (tx_is_int(to) && tx_is_float(from)) {
        bool single = tx_kind(from) == TX_KIND_F32;

        if (!i->f32)
            return false; /* 128 bits */
        cast_add(p, single ? i->f32 : i->f64, true, single ? i->h32 : i->h64);
        return true;
    }
    cast_add_c(e, p, to);
    return true;
}

static void
cast_to_bool(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    tx_dtype t = n->dtype;
    bool p = em_paren(o, EM_EQ, prec);

    if (cast_is_code(t))
        em_expr_as(e, o, TX_F32, n, EM_EQ);
    else
        em_expr(e, o, n, EM_EQ);
    tx_sb_puts(o, tx_kind(t) == TX_KIND_F64 ? " != 0.0" : tx_is_float(t) ? " != 0.0f" : " != 0");
    em_close(o, p);
}

static void
cast_close(tx_sb *o, const cast_plan *plan)
{
    for (int i = 0; i < plan->n; i++)
        em_close(o, plan->at[i].call);
}

void
em_expr_as(em *e, tx_sb *o, tx_dtype to, const tx_node *n, em_prec prec)
{
    tx_dtype from = tx_scalar_of(n->dtype);
    cast_plan plan = {0};
    bool p;

    to = tx_scalar_of(to);
    if (tx_is_bool(to) && !tx_is_bool(from)) {
        cast_to_bool(e, o, n, prec);
        return;
    }
    if (!cast_make_plan(e, &plan, to, from)) {
        em_unsupported(e, n, "this conversion");
        return;
    }
    if (plan.n == 0) {
        em_expr(e, o, n, prec);
        return;
    }
    p = !plan.at[plan.n - 1].call && em_paren(o, EM_UNARY, prec);
    for (int i = plan.n - 1; i >= 0; i--) {
        em_use(e, plan.at[i].needs);
        tx_sb_puts(o, plan.at[i].open);
    }
    em_expr(e, o, n, plan.at[0].call ? EM_ARG : EM_UNARY);
    cast_close(o, &plan);
    em_close(o, p);
}

int
em_from_f32_open(em *e, tx_sb *o, tx_dtype to)
{
    const struct cast_code *c = &cast_codes[tx_kind(to)];

    if (!c->encode)
        return 0;
    em_use(e, c->from_f32);
    tx_sb_puts(o, c->encode);
    return 1;
}

static void
cast_pointer(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    tx_sb_putc(o, '(');
    if (tx_is_handle(n->dtype))
        em_pointer_type(e, n->elem, o);
    else
        tx_sb_puts(o, em_elem_type(e, n->dtype));
    tx_sb_putc(o, ')');
    em_expr(e, o, n->arg[0], EM_UNARY);
    em_close(o, p);
}

void
em_cast(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    if (tx_is_handle(n->dtype) || tx_is_handle(n->arg[0]->dtype))
        cast_pointer(e, o, n, prec);
    else
        em_expr_as(e, o, n->dtype, n->arg[0], prec);
}

/* The function that moves bits between a float and an integer register, and the integer's dtype; NULL: same register. */
static const char *
cast_bits_function(tx_dtype to, tx_dtype from)
{
    static const struct {
        uint8_t to, from;
        const char *name;
    } rows[] = {
        {TX_KIND_F32, TX_KIND_I32, "__int_as_float("},
        {TX_KIND_F32, TX_KIND_U32, "__uint_as_float("},
        {TX_KIND_I32, TX_KIND_F32, "__float_as_int("},
        {TX_KIND_U32, TX_KIND_F32, "__float_as_uint("},
        {TX_KIND_F64, TX_KIND_I64, "__longlong_as_double("},
        {TX_KIND_F64, TX_KIND_U64, "__longlong_as_double((long long)"},
        {TX_KIND_I64, TX_KIND_F64, "__double_as_longlong("},
        {TX_KIND_U64, TX_KIND_F64, "(unsigned long long)__double_as_longlong("},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].to == tx_kind(to) && rows[i].from == tx_kind(from))
            return rows[i].name;
    return NULL;
}

void
em_reinterpret(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    tx_dtype from = n->arg[0]->dtype;
    const char *fn;
    bool p;

    if (tx_lanes(n->dtype) != tx_lanes(from)) {
        em_vector_reinterpret(e, o, n, prec);
        return;
    }
    if (tx_is_handle(n->dtype) || tx_is_handle(from)) {
        cast_pointer(e, o, n, prec);
        return;
    }
    if (tx_kind(n->dtype) == tx_kind(from)) {
        em_expr(e, o, n->arg[0], prec);
        return;
    }
    fn = cast_bits_function(n->dtype, from);
    p = (!fn || *fn == '(') && em_paren(o, EM_UNARY, prec);
    if (fn) {
        tx_sb_puts(o, fn);
        em_expr(e, o, n->arg[0], fn[strlen(fn) - 1] == ')' ? EM_UNARY : EM_ARG);
        tx_sb_putc(o, ')');
    } else { /* integers, and codes kept in integers */
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
        em_expr(e, o, n->arg[0], EM_UNARY);
    }
    em_close(o, p);
}
