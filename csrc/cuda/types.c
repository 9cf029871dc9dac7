/* Spelling of types and of constants (lowering.md 5.1, 5.7). Constants are exact: a float is written in decimal when at
 * most six digits read back as the same value, else as a hexadecimal float with the decimal in a comment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct type_row {
    const char *suffix;
    em_helper needs; /* the typedef */
} type_rows[TX_KIND__COUNT] = {
    [TX_KIND_BOOL] = {"bool", EM_H_NONE},
    [TX_KIND_I8] = {"i8", EM_H_NONE},
    [TX_KIND_I16] = {"i16", EM_H_NONE},
    [TX_KIND_I32] = {"i32", EM_H_NONE},
    [TX_KIND_I64] = {"i64", EM_H_I64},
    [TX_KIND_I128] = {"i128", EM_H_NONE},
    [TX_KIND_U8] = {"u8", EM_H_UCHAR},
    [TX_KIND_U16] = {"u16", EM_H_USHORT},
    [TX_KIND_U32] = {"u32", EM_H_UINT},
    [TX_KIND_U64] = {"u64", EM_H_U64},
    [TX_KIND_U128] = {"u128", EM_H_NONE},
    [TX_KIND_F16] = {"f16", EM_H_F16},
    [TX_KIND_F32] = {"f32", EM_H_NONE},
    [TX_KIND_F64] = {"f64", EM_H_NONE},
    [TX_KIND_BF16] = {"bf16", EM_H_BF16},
    [TX_KIND_E3M4] = {"e3m4", EM_H_UCHAR},
    [TX_KIND_E4M3] = {"e4m3", EM_H_UCHAR},
    [TX_KIND_E4M3B11FNUZ] = {"e4m3b11fnuz", EM_H_UCHAR},
    [TX_KIND_E4M3FN] = {"e4m3fn", EM_H_UCHAR},
    [TX_KIND_E4M3FNUZ] = {"e4m3fnuz", EM_H_UCHAR},
    [TX_KIND_E5M2] = {"e5m2", EM_H_UCHAR},
    [TX_KIND_E5M2FNUZ] = {"e5m2fnuz", EM_H_UCHAR},
    [TX_KIND_E8M0FNU] = {"e8m0fnu", EM_H_UCHAR},
    [TX_KIND_E2M3FN] = {"e2m3fn", EM_H_UCHAR},
    [TX_KIND_E3M2FN] = {"e3m2fn", EM_H_UCHAR},
    [TX_KIND_E2M1FN] = {"e2m1fn", EM_H_UCHAR},
    [TX_KIND_VOID] = {"void", EM_H_NONE},
    [TX_KIND_HANDLE] = {"handle", EM_H_NONE},
    [TX_KIND_TENSORMAP] = {"tensormap", EM_H_TENSORMAP},
};

const char *
em_suffix(tx_dtype t)
{
    return type_rows[tx_kind(t)].suffix;
}

const char *
em_elem_type(em *e, tx_dtype t)
{
    em_use(e, type_rows[tx_kind(t)].needs);
    return tx_kinds[tx_kind(t)].cuda;
}

/* float4 and the like, else the type of one lane. */
const char *
em_type(em *e, tx_dtype t)
{
    // clang-format off
    static const char *const names[7][5] = {
        {"", "", "", "", ""},
        {"", "", "float2", "float3", "float4"},
        {"", "", "int2", "int3", "int4"},
        {"", "", "uint2", "uint3", "uint4"},
        {"", "", "double2", "", ""},
        {"", "", "longlong2", "", ""},
        {"", "", "ulonglong2", "", ""},
    };
    // clang-format on
    static const uint8_t row[TX_KIND__COUNT] = {[TX_KIND_F32] = 1, [TX_KIND_I32] = 2, [TX_KIND_U32] = 3,
                                                [TX_KIND_F64] = 4, [TX_KIND_I64] = 5, [TX_KIND_U64] = 6};

    return em_vector_native(t) ? names[row[tx_kind(t)]][tx_lanes(t)] : em_elem_type(e, t);
}

void
em_pointer_type(em *e, tx_dtype elem, tx_sb *o)
{
    if (tx_kind(elem) == TX_KIND_TENSORMAP) /* a kernel's parameter, mostly, and nothing that code writes to */
        tx_sb_puts(o, "const ");
    tx_sb_puts(o, elem == 0 || tx_kind(elem) == TX_KIND_VOID ? "void" : em_elem_type(e, elem));
    tx_sb_putc(o, '*');
}

/* ---- integers ------------------------------------------------------------------------------------------------------- */

static void
type_int_text(tx_sb *o, tx_dtype t, int64_t v)
{
    if (!tx_is_signed(t) && (uint64_t)v > INT64_MAX)
        tx_sb_f(o, "%lluull", (unsigned long long)v);
    else
        tx_sb_f(o, "%lld", (long long)v);
}

void
em_int(em *e, tx_sb *o, tx_dtype t, int64_t v, em_prec prec)
{
    bool p;

    if (tx_is_bool(t)) {
        tx_sb_puts(o, v ? "true" : "false");
        return;
    }
    if (tx_kind(t) == TX_KIND_I32) {
        if (v == INT32_MIN) {
            tx_sb_puts(o, "(-2147483647 - 1)");
            return;
        }
        p = v < 0 && em_paren(o, EM_UNARY, prec);
        type_int_text(o, t, v);
        em_close(o, p);
        return;
    }
    p = em_paren(o, EM_UNARY, prec);
    tx_sb_f(o, "(%s)", em_elem_type(e, t));
    if (v == INT64_MIN && tx_is_signed(t))
        tx_sb_puts(o, "(-9223372036854775807 - 1)");
    else
        type_int_text(o, t, v);
    em_close(o, p);
}

/* ---- floats ---------------------------------------------------------------------------------------------------------- */

/* C's number formatting follows the locale of the process; CUDA's decimal point does not. */
static void
type_point(char *text)
{
    for (; *text; text++)
        if (*text == ',')
            *text = '.';
}

/* Shortest decimal of at most six digits whose value is v, as a C++ literal without suffix; false: there is none. The value
 * of digits * 10^e is exact in double for the exponents tried, or rounded once, and has to lie well inside v's interval. */
static bool
type_decimal(char *out, size_t n, double v, bool single)
{
    static const double power[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    for (int digits = 1; digits <= 6; digits++) {
        char text[40], *at;
        long mantissa = 0, exp10;
        double back, slack = single ? fabs(v) * 0x1p-25 : 0;

        snprintf(text, sizeof text, "%.*e", digits - 1, v);
        type_point(text);
        for (at = text; *at && *at != 'e'; at++)
            if (*at >= '0' && *at <= '9')
                mantissa = mantissa * 10 + (*at - '0');
        exp10 = strtol(at + 1, NULL, 10) - (digits - 1);
        if (exp10 < -22 || exp10 > 22)
            return false;
        back = exp10 < 0 ? (double)mantissa / power[-exp10] : (double)mantissa * power[exp10];
        if (fabs(back - fabs(v)) > slack * 0.9)
            continue;
        snprintf(out, n, "%.*g", digits, v);
        type_point(out);
        if (!strpbrk(out, ".e") && strlen(out) + 3 < n)
            strcat(out, ".0");
        return true;
    }
    return false;
}

static void
type_f32(tx_sb *o, double v)
{
    char text[64], decimal[64];

    if (type_decimal(text, sizeof text, v, true)) {
        tx_sb_f(o, "%sf", text);
        return;
    }
    snprintf(text, sizeof text, "%a", v);
    snprintf(decimal, sizeof decimal, "%.9g", v);
    type_point(text);
    type_point(decimal);
    tx_sb_f(o, "%sf/*%s*/", text, decimal);
}

static void
type_f64(tx_sb *o, double v)
{
    char text[64], decimal[64];

    if (type_decimal(text, sizeof text, v, false)) {
        tx_sb_puts(o, text);
        return;
    }
    snprintf(text, sizeof text, "%a", v);
    snprintf(decimal, sizeof decimal, "%.17g", v);
    type_point(text);
    type_point(decimal);
    tx_sb_f(o, "%s/*%s*/", text, decimal);
}

/* Types whose values are codes: the bit pattern, with the number in a comment. */
static void
type_code(em *e, tx_sb *o, tx_dtype t, double v)
{
    char decimal[64];

    snprintf(decimal, sizeof decimal, "%.9g", v);
    type_point(decimal);
    tx_sb_f(o, "(%s)0x%0*llx/*%s*/", em_elem_type(e, t), tx_bits(t) > 8 ? 4 : 2, (unsigned long long)tx_encode(t, v),
            decimal);
}

void
em_float(em *e, tx_sb *o, tx_dtype t, double v, em_prec prec)
{
    bool single = tx_kind(t) == TX_KIND_F32, p;

    if (!single && tx_kind(t) != TX_KIND_F64) {
        p = em_paren(o, EM_UNARY, prec);
        type_code(e, o, t, v);
        em_close(o, p);
        return;
    }
    p = signbit(v) && !isnan(v) && em_paren(o, EM_UNARY, prec);
    if (isnan(v))
        tx_sb_puts(o, single ? "__int_as_float(0x7fffffff)" : "__longlong_as_double(0x7ff8000000000000ll)");
    else if (isinf(v))
        tx_sb_f(o, "%s%s", v < 0 ? "-" : "",
                single ? "__int_as_float(0x7f800000)" : "__longlong_as_double(0x7ff0000000000000ll)");
    else if (single)
        type_f32(o, v);
    else
        type_f64(o, v);
    em_close(o, p);
}
