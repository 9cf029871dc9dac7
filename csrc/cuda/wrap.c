/* Integer arithmetic. The language wraps in two's complement; C++ calls signed overflow undefined and NVRTC makes use of it
 * (x + 1 > x is folded to true). So sums, differences and products of signed values that may be anything (what was read
 * from memory, a scalar argument), or that by their bounds do not fit, are done in unsigned; index arithmetic over block
 * indices, sizes and counters up to sizes stays signed, as the addresses that come of it are in range anyway.
 * Division: shifts and masks for powers of two, C's operators where both sides are known to be non-negative, else a
 * correction; a divisor that may be 0 goes through the prelude, since C++ leaves that undefined too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdio.h>

static bool
wrap_is_exchange(unsigned op)
{
    return op == TX_OP_SHFL || op == TX_OP_SHFL_UP || op == TX_OP_SHFL_DOWN || op == TX_OP_SHFL_XOR;
}

bool
em_is_data(em *e, const tx_node *n)
{
    const em_name *name;

    if (n->op == TX_OP_VAR) {
        name = tx_map_ptr(&e->names, n->u.var);
        return !name || name->data;
    }
    if (e->held.n && em_held_name(e, n))
        return true; /* not looked into again */
    if (wrap_is_exchange(n->op))
        return em_is_data(e, n->arg[1]);
    if (n->op == TX_OP_LOAD) {
        name = tx_map_ptr(&e->names, n->u.buf->data);
        return !name || !name->cell || name->data;
    }
    if ((n->flags & TX_NF_IMPURE) && (tx_has(n->op, TX_PROP_READS | TX_PROP_EFFECT) || n->depth > 24))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (em_is_data(e, n->arg[i]))
            return true;
    return false;
}

/* ---- sums, differences, products ---------------------------------------------------------------------------------------- */

static bool
wrap_fits(tx_dtype t, int64_t v)
{
    int64_t lo;
    uint64_t hi;

    return tx_int_limits(t, &lo, &hi) && v >= lo && (v < 0 || (uint64_t)v <= hi);
}

/* Whether the bounds of the operands show that the exact result is in range. */
static bool
wrap_proved(em *e, const tx_node *n)
{
    tx_bounds a = tx_bounds_of(e->facts, n->arg[0]), b = {0, 0};
    int64_t v[4];

    if (n->nargs > 1)
        b = tx_bounds_of(e->facts, n->arg[1]);
    switch (n->op) {
    case TX_OP_ADD:
        return tx_add_i64(a.lo, b.lo, v) && tx_add_i64(a.hi, b.hi, v + 1) && wrap_fits(n->dtype, v[0]) &&
               wrap_fits(n->dtype, v[1]);
    case TX_OP_SUB:
        return tx_sub_i64(a.lo, b.hi, v) && tx_sub_i64(a.hi, b.lo, v + 1) && wrap_fits(n->dtype, v[0]) &&
               wrap_fits(n->dtype, v[1]);
    case TX_OP_SHL:
        return a.lo >= 0 && b.lo >= 0 && b.hi < 63 && a.hi <= INT64_MAX >> b.hi && wrap_fits(n->dtype, a.hi << b.hi);
    case TX_OP_NEG: return wrap_fits(n->dtype, a.lo) && tx_sub_i64(0, a.lo, v) && wrap_fits(n->dtype, v[0]);
    case TX_OP_MUL:
        if (!tx_mul_i64(a.lo, b.lo, v) || !tx_mul_i64(a.lo, b.hi, v + 1) || !tx_mul_i64(a.hi, b.lo, v + 2) ||
            !tx_mul_i64(a.hi, b.hi, v + 3))
            return false;
        for (int i = 0; i < 4; i++)
            if (!wrap_fits(n->dtype, v[i]))
                return false;
        return true;
    default: return false;
    }
}

/* A size, a block index or a counter up to a size: no bound is known, and none is meant to be reached. */
static bool
wrap_has_open_leaf(em *e, const tx_node *n)
{
    const int64_t large = (int64_t)1 << 30;
    tx_bounds b;

    if (n->op == TX_OP_LOAD)
        return true; /* a counter */
    if (n->nargs == 0) {
        if (n->op == TX_OP_INT)
            return false;
        b = tx_bounds_of(e->facts, n);
        return b.hi >= large || b.lo <= -large;
    }
    for (uint32_t i = 0; i < n->nargs; i++)
        if (wrap_has_open_leaf(e, n->arg[i]))
            return true;
    return false;
}

/* Multipliers of hashes and random numbers, which mean to overflow; strides are smaller. */
static bool
wrap_mixes(const tx_node *n)
{
    const int64_t stride = 65536;
    int64_t v;

    for (uint32_t i = 0; i < n->nargs && n->op == TX_OP_MUL; i++)
        if (tx_const_i64(n->arg[i], &v) && (v > stride || v < -stride))
            return true;
    return false;
}

/* Signed arithmetic of 32 or 64 bits that may overflow. */
static bool
wrap_needed(em *e, const tx_node *n)
{
    if (!tx_is_signed(n->dtype) || tx_bits(n->dtype) < 32 || tx_bits(n->dtype) > 64)
        return false;
    if (tx_lanes(n->dtype) == 1 && wrap_proved(e, n))
        return false;
    return em_is_data(e, n) || wrap_mixes(n) || !wrap_has_open_leaf(e, n);
}

static const char *
wrap_sign(unsigned op)
{
    return op == TX_OP_ADD ? "+" : op == TX_OP_SUB ? "-" : "*";
}

static const tx_node *
wrap_scalar(const tx_node *n)
{
    return n->op == TX_OP_BROADCAST ? n->arg[0] : n;
}

/* A shift by a count that C++ defines. */
static bool
wrap_count_fits(em *e, const tx_node *n)
{
    tx_bounds k = tx_lanes(n->dtype) == 1 ? tx_bounds_of(e->facts, n->arg[1]) : (tx_bounds){INT64_MIN, INT64_MAX};
    int64_t v;

    if (tx_const_i64(wrap_scalar(n->arg[1]), &v))
        k.lo = k.hi = v;
    return k.lo >= 0 && k.hi < (int64_t)tx_bits(n->dtype);
}

/* n as an unsigned expression of the same width: chains of + - * stay unsigned all through. */
static void
wrap_unsigned(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool wide = tx_bits(n->dtype) == 64, p;
    tx_dtype u = wide ? TX_U64 : TX_U32;
    em_prec own = n->op == TX_OP_MUL ? EM_MUL : EM_ADD;

    if (n->op == TX_OP_BROADCAST) {
        wrap_unsigned(e, o, n->arg[0], prec);
    } else if (n->op == TX_OP_INT) {
        uint64_t v = wide ? (uint64_t)n->u.i : (uint32_t)n->u.i;

        tx_sb_f(o, wide ? "%lluull" : "%lluu", (unsigned long long)v);
    } else if (n->op == TX_OP_SHL && !em_held_name(e, n) && wrap_count_fits(e, n)) {
        p = em_paren(o, EM_SHIFT, prec);
        wrap_unsigned(e, o, n->arg[0], EM_SHIFT);
        tx_sb_puts(o, " << ");
        em_operand(e, o, n->arg[1], EM_ADD);
        em_close(o, p);
    } else if ((n->op == TX_OP_ADD || n->op == TX_OP_SUB || n->op == TX_OP_MUL) && !em_held_name(e, n)) {
        p = em_paren(o, own, prec);
        wrap_unsigned(e, o, n->arg[0], own);
        tx_sb_f(o, " %s ", wrap_sign(n->op));
        wrap_unsigned(e, o, n->arg[1], own + 1);
        em_close(o, p);
    } else {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s)", em_elem_type(e, u));
        em_expr(e, o, n, EM_UNARY);
        em_close(o, p);
    }
}

void
em_add_sub_mul(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    em_prec own = n->op == TX_OP_MUL ? EM_MUL : EM_ADD;
    bool narrow = tx_bits(n->dtype) < 32, p;

    if (wrap_needed(e, n)) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
        wrap_unsigned(e, o, n, EM_UNARY);
        em_close(o, p);
        return;
    }
    if (narrow) {
        p = em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "(%s)(", em_elem_type(e, n->dtype));
        if (n->op == TX_OP_MUL) { /* 65535 * 65535 does not fit an int */
            em_use(e, EM_H_UINT);
            tx_sb_puts(o, "(uint)");
            em_expr(e, o, n->arg[0], EM_UNARY);
        } else {
            em_operand(e, o, n->arg[0], own);
        }
        tx_sb_f(o, " %s ", wrap_sign(n->op));
        em_operand(e, o, n->arg[1], own + 1);
        tx_sb_putc(o, ')');
    } else {
        p = em_paren(o, own, prec);
        em_operand(e, o, n->arg[0], own);
        tx_sb_f(o, " %s ", wrap_sign(n->op));
        em_operand(e, o, n->arg[1], own + 1);
    }
    em_close(o, p);
}

void
em_neg(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    unsigned bits = tx_bits(n->dtype);
    bool p = em_paren(o, EM_UNARY, prec);

    if (bits == 16 && tx_is_signed(n->dtype)) {
        em_call(e, o, EM_H_NEG_I16, "tirx_neg_i16", n->arg, 1);
    } else if (bits < 32) {
        tx_sb_f(o, "(%s)-", em_elem_type(e, n->dtype));
        em_expr(e, o, n->arg[0], EM_UNARY);
    } else if (tx_is_signed(n->dtype) && !wrap_needed(e, n)) {
        tx_sb_putc(o, '-');
        em_expr(e, o, n->arg[0], EM_POST);
    } else {
        tx_sb_f(o, "(%s)(0 - ", em_elem_type(e, n->dtype));
        if (tx_is_signed(n->dtype))
            wrap_unsigned(e, o, n->arg[0], EM_MUL);
        else
            em_expr(e, o, n->arg[0], EM_MUL);
        tx_sb_putc(o, ')');
    }
    em_close(o, p);
}

/* ---- shifts ------------------------------------------------------------------------------------------------------------ */

/* By 32 bits: int or uint; else 64. */
static tx_dtype
wrap_word(tx_dtype t)
{
    if (tx_bits(t) <= 32)
        return tx_is_signed(t) ? TX_I32 : TX_U32;
    return tx_is_signed(t) ? TX_I64 : TX_U64;
}

void
em_shift(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    static const em_helper helpers[2][4] = {{EM_H_SHL_I32, EM_H_SHL_U32, EM_H_SHL_I64, EM_H_SHL_U64},
                                            {EM_H_SHR_I32, EM_H_SHR_U32, EM_H_SHR_I64, EM_H_SHR_U64}};
    bool left = n->op == TX_OP_SHL, narrow = tx_bits(n->dtype) < 32, p;
    tx_dtype w = wrap_word(n->dtype);

    if (wrap_count_fits(e, n)) {
        bool cast = left && (narrow || wrap_needed(e, n));

        p = em_paren(o, cast ? EM_UNARY : EM_SHIFT, prec);
        if (cast)
            tx_sb_f(o, "(%s)(", em_elem_type(e, n->dtype));
        if (cast && tx_is_signed(n->dtype) && !narrow)
            wrap_unsigned(e, o, n->arg[0], EM_SHIFT);
        else if (left && narrow)
            tx_sb_puts(o, "(uint)"), em_use(e, EM_H_UINT), em_expr(e, o, n->arg[0], EM_UNARY);
        else
            em_operand(e, o, n->arg[0], EM_SHIFT);
        tx_sb_puts(o, left ? " << " : " >> ");
        em_operand(e, o, n->arg[1], EM_ADD);
        if (cast)
            tx_sb_putc(o, ')');
        em_close(o, p);
        return;
    }
    p = narrow && em_paren(o, EM_UNARY, prec);
    if (narrow)
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    em_use(e, helpers[!left][(tx_bits(w) == 64) * 2 + !tx_is_signed(w)]);
    tx_sb_f(o, "tirx_%s_%s(", left ? "shl" : "shr", em_suffix(w));
    em_expr(e, o, n->arg[0], EM_ARG);
    tx_sb_puts(o, ", ");
    em_expr(e, o, n->arg[1], EM_ARG);
    tx_sb_putc(o, ')');
    em_close(o, p);
}

/* ---- division ------------------------------------------------------------------------------------------------------------ */

static int
wrap_log2(int64_t v)
{
    if (v <= 0 || (v & (v - 1)) != 0)
        return -1;
    return __builtin_ctzll((unsigned long long)v);
}

static void
wrap_infix(em *e, tx_sb *o, const tx_node *n, const char *sign, em_prec prec)
{
    bool narrow = tx_bits(n->dtype) < 32 && n->op != TX_OP_FLOORMOD && n->op != TX_OP_MOD;
    bool p = em_paren(o, narrow ? EM_UNARY : EM_MUL, prec);

    /* int8: -128 / -1 is 128 in int */
    if (narrow)
        tx_sb_f(o, "(%s)(", em_elem_type(e, n->dtype));
    em_operand(e, o, n->arg[0], EM_MUL);
    tx_sb_f(o, " %s ", sign);
    em_operand(e, o, n->arg[1], EM_UNARY);
    if (narrow)
        tx_sb_putc(o, ')');
    em_close(o, p);
}

static void
wrap_helper(em *e, tx_sb *o, const tx_node *n, bool by_constant, em_prec prec)
{
    static const struct {
        uint16_t op;
        const char *name;
        em_helper at[4]; /* i32, u32, i64, u64 */
    } rows[] = {
        {TX_OP_DIV, "div", {EM_H_DIV_I32, EM_H_DIV_U32, EM_H_DIV_I64, EM_H_DIV_U64}},
        {TX_OP_MOD, "mod", {EM_H_MOD_I32, EM_H_MOD_U32, EM_H_MOD_I64, EM_H_MOD_U64}},
        {TX_OP_FLOORDIV, "floordiv", {EM_H_FLOORDIV_I32, EM_H_DIV_U32, EM_H_FLOORDIV_I64, EM_H_DIV_U64}},
        {TX_OP_FLOORMOD, "floormod", {EM_H_FLOORMOD_I32, EM_H_MOD_U32, EM_H_FLOORMOD_I64, EM_H_MOD_U64}},
        {TX_OP_FLOORDIV, "floordiv_by", {EM_H_FLOORDIV_C_I32, EM_H_NONE, EM_H_FLOORDIV_C_I64, EM_H_NONE}},
        {TX_OP_FLOORMOD, "floormod_by", {EM_H_FLOORMOD_C_I32, EM_H_NONE, EM_H_FLOORMOD_C_I64, EM_H_NONE}},
    };
    tx_dtype w = wrap_word(n->dtype);
    unsigned i = n->op == TX_OP_DIV ? 0 : n->op == TX_OP_MOD ? 1 : n->op == TX_OP_FLOORDIV ? 2 : 3;
    bool narrow = tx_bits(n->dtype) < 32, p;

    if (by_constant)
        i += 2;
    if (!tx_is_signed(n->dtype) && i >= 2)
        i -= 2;
    p = narrow && em_paren(o, EM_UNARY, prec);
    if (narrow)
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    em_use(e, rows[i].at[(tx_bits(w) == 64) * 2 + !tx_is_signed(w)]);
    tx_sb_f(o, "tirx_%s_%s(", rows[i].name, em_suffix(w));
    em_expr(e, o, n->arg[0], EM_ARG);
    tx_sb_puts(o, ", ");
    em_expr(e, o, n->arg[1], EM_ARG);
    tx_sb_putc(o, ')');
    em_close(o, p);
}

/* DIV, MOD, FLOORDIV, FLOORMOD on integers. */
void
em_divide(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    bool floors = n->op == TX_OP_FLOORDIV || n->op == TX_OP_FLOORMOD,
         is_div = n->op == TX_OP_DIV || n->op == TX_OP_FLOORDIV;
    bool scalar = tx_lanes(n->dtype) == 1, is_const, nonneg, p;
    const tx_node *by = wrap_scalar(n->arg[1]);
    tx_bounds b;
    int64_t v = 0;
    int k;

    is_const = tx_const_i64(by, &v);
    nonneg = !tx_is_signed(n->dtype) || (scalar && tx_bounds_of(e->facts, n->arg[0]).lo >= 0);
    k = is_const && (floors || nonneg) ? wrap_log2(v) : -1;
    if (k == 0) {
        if (is_div)
            em_expr(e, o, n->arg[0], prec);
        else
            em_int(e, o, tx_scalar_of(n->dtype), 0, prec);
    } else if (k > 0) {
        p = em_paren(o, is_div ? EM_SHIFT : EM_BAND, prec);
        em_operand(e, o, n->arg[0], is_div ? EM_SHIFT : EM_BAND);
        if (is_div)
            tx_sb_f(o, " >> %d", k);
        else
            tx_sb_f(o, v - 1 > INT32_MAX ? " & %lldll" : " & %lld", (long long)(v - 1));
        em_close(o, p);
    } else {
        b = scalar ? tx_bounds_of(e->facts, by) : (tx_bounds){INT64_MIN, INT64_MAX};
        if (is_const)
            b.lo = b.hi = v;
        bool nonzero = b.lo > 0 || (tx_is_signed(n->dtype) && b.hi < -1); /* and no INT_MIN / -1 */

        if (nonzero && (!floors || !tx_is_signed(n->dtype) || (nonneg && b.lo > 0)))
            wrap_infix(e, o, n, is_div ? "/" : "%", prec);
        else
            wrap_helper(e, o, n, nonzero && floors, prec);
    }
}
