/* VM code for arithmetic: which row of vmop.def computes an operation of the IR, conversions, constants and bounds.
 * float16, bfloat16 and smaller are converted, computed in float32 and rounded once. SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

#define NO 0xffffu
#define ROW6(n) {V_##n##_I32_SS, V_##n##_I32_SS, V_##n##_I64_SS, V_##n##_I64_SS, V_##n##_F32_SS, V_##n##_F64_SS}
#define ROWI(n) {V_##n##_I32_SS, V_##n##_I32_SS, V_##n##_I64_SS, V_##n##_I64_SS, NO, NO}

/* First of the four rows of an operation, by tx_vt up to F64. */
static const uint16_t rows[][6] = {
    [TX_OP_ADD - TX_OP_EQ] = ROW6(ADD),
    [TX_OP_SUB - TX_OP_EQ] = ROW6(SUB),
    [TX_OP_MUL - TX_OP_EQ] = ROW6(MUL),
    [TX_OP_DIV - TX_OP_EQ] = {V_DIV_I32_SS, V_DIV_U32_SS, V_DIV_I64_SS, V_DIV_U64_SS, V_DIV_F32_SS, V_DIV_F64_SS},
    [TX_OP_MOD - TX_OP_EQ] = {V_MOD_I32_SS, V_MOD_U32_SS, V_MOD_I64_SS, V_MOD_U64_SS, NO, NO},
    [TX_OP_FLOORDIV - TX_OP_EQ] = {V_FLD_I32_SS, V_DIV_U32_SS, V_FLD_I64_SS, V_DIV_U64_SS, NO, NO},
    [TX_OP_FLOORMOD - TX_OP_EQ] = {V_FLM_I32_SS, V_MOD_U32_SS, V_FLM_I64_SS, V_MOD_U64_SS, NO, NO},
    [TX_OP_MIN - TX_OP_EQ] = {V_MIN_I32_SS, V_MIN_U32_SS, V_MIN_I64_SS, V_MIN_U64_SS, V_MIN_F32_SS, V_MIN_F64_SS},
    [TX_OP_MAX - TX_OP_EQ] = {V_MAX_I32_SS, V_MAX_U32_SS, V_MAX_I64_SS, V_MAX_U64_SS, V_MAX_F32_SS, V_MAX_F64_SS},
    [TX_OP_BAND - TX_OP_EQ] = ROWI(AND),
    [TX_OP_BOR - TX_OP_EQ] = ROWI(OR),
    [TX_OP_BXOR - TX_OP_EQ] = ROWI(XOR),
    [TX_OP_SHL - TX_OP_EQ] = ROWI(SHL),
    [TX_OP_SHR - TX_OP_EQ] = {V_SHR_I32_SS, V_SHR_U32_SS, V_SHR_I64_SS, V_SHR_U64_SS, NO, NO},
    [TX_OP_EQ - TX_OP_EQ] = ROW6(EQ),
    [TX_OP_NE - TX_OP_EQ] = ROW6(NE),
    [TX_OP_LT - TX_OP_EQ] = {V_LT_I32_SS, V_LT_U32_SS, V_LT_I64_SS, V_LT_U64_SS, V_LT_F32_SS, V_LT_F64_SS},
    [TX_OP_LE - TX_OP_EQ] = {V_LE_I32_SS, V_LE_U32_SS, V_LE_I64_SS, V_LE_U64_SS, V_LE_F32_SS, V_LE_F64_SS},
};

static bool
code_arith_wide(unsigned vt)
{
    return vt == VT_I64 || vt == VT_U64 || vt == VT_F64;
}

static bool
is_int(unsigned vt)
{
    return vt <= VT_U64;
}

static void
limits(tx_dtype t, int64_t *lo, int64_t *hi)
{
    uint64_t h;
    *lo = INT64_MIN, *hi = INT64_MAX; /* uint64: bounds are those of the bits seen as int64 */
    if (tx_is_int(t) && tx_kind(t) != TX_KIND_U64 && tx_int_limits(t, lo, &h))
        *hi = h > INT64_MAX ? INT64_MAX : (int64_t)h;
}

tx_val
tx_val_int(tx_dtype t, int64_t v)
{
    tx_val r = {.form = VF_CONST, .vt = (uint8_t)tx_vt_of(t), .t = t};
    v = tx_wrap(t, v);
    r.lo = r.hi = v;
    if (r.vt == VT_B)
        r.k.u32 = v ? TX_FULL : 0;
    else if (r.vt == VT_I64 || r.vt == VT_U64)
        r.k.i64 = v;
    else
        r.k.u32 = (uint32_t)v;
    return r;
}

tx_val
tx_val_new(tx_code *g, tx_dtype t, bool row)
{
    tx_val r = {.form = row ? VF_ROW : VF_UNI, .vt = (uint8_t)tx_vt_of(t), .t = t};
    limits(t, &r.lo, &r.hi);
    r.reg = tx_code_reg(g, !row ? RC_SLOT : r.vt == VT_B ? RC_MASK : code_arith_wide(r.vt) ? RC_ROW8 : RC_ROW4);
    return r;
}

tx_val
tx_code_to_row(tx_code *g, tx_val v)
{
    if (v.form == VF_ROW || v.vt == VT_B)
        return v;
    tx_val r = tx_val_new(g, v.t, true);
    r.lo = v.lo, r.hi = v.hi;
    tx_code_emit(g, code_arith_wide(v.vt) ? V_BC64 : V_BC32, 0, r.reg, tx_code_operand(g, &v), 0, 0, 0);
    return r;
}

static int
form_of(const tx_val *a, const tx_val *b)
{
    bool ar = a->form == VF_ROW, br = b->form == VF_ROW;
    return ar ? br ? 1 : 2 : br ? 3 : 0;
}

/* Emits a row of one operand: the uniform or the per-lane version. */
static tx_val
code_arith_one(tx_code *g, unsigned op_s, unsigned aux, tx_dtype to, tx_val v)
{
    bool row = v.form == VF_ROW;
    tx_val r = tx_val_new(g, to, row);
    tx_code_emit(g, op_s + row, aux, r.reg, tx_code_operand(g, &v), 0, 0, 0);
    return r;
}

/* Wraps a 32-bit lane into a narrower integer. */
static tx_val
wrap(tx_code *g, tx_val v)
{
    switch (tx_kind(v.t)) {
    case TX_KIND_I8: return code_arith_one(g, V_SX8_I32_S, 0, v.t, v);
    case TX_KIND_U8: return code_arith_one(g, V_ZX8_I32_S, 0, v.t, v);
    case TX_KIND_I16: return code_arith_one(g, V_SX16_I32_S, 0, v.t, v);
    case TX_KIND_U16: return code_arith_one(g, V_ZX16_I32_S, 0, v.t, v);
    default: return v;
    }
}

/* ---- conversions ------------------------------------------------------------------------------------------------- */

static tx_val
retag(tx_code *g, tx_val v, tx_dtype to)
{
    int64_t lo, hi;
    limits(to, &lo, &hi);
    if (v.form == VF_CONST && tx_is_int(to) && is_int(v.vt))
        return tx_val_int(to, v.lo);
    if (!tx_is_int(to) || v.lo < lo || v.hi > hi) {
        v.lo = lo, v.hi = hi;
        v.align = 0;
    }
    (void)g;
    v.t = to, v.vt = (uint8_t)tx_vt_of(to);
    return v;
}

static tx_val
code_arith_int_to_int(tx_code *g, tx_dtype to, tx_val v)
{
    tx_vt to_vt = tx_vt_of(to);
    int64_t lo, hi;
    limits(to, &lo, &hi);
    bool fits = v.lo >= lo && v.hi <= hi;
    tx_val r;

    if (v.form == VF_CONST)
        return tx_val_int(to, v.lo);
    if (code_arith_wide(to_vt) == code_arith_wide(v.vt)) {
        if (fits || code_arith_wide(to_vt) || tx_bits(to) == 32)
            return retag(g, v, to);
        r = v;
        r.t = to, r.vt = (uint8_t)to_vt;
        return wrap(g, r);
    }
    if (code_arith_wide(to_vt))
        r = code_arith_one(g, v.vt == VT_U32 ? V_U32_I64_S : V_I32_I64_S, 0, to, v);
    else {
        r = code_arith_one(g, V_I64_I32_S, 0, to, v);
        if (!fits)
            r = wrap(g, r);
    }
    if (fits)
        r.lo = v.lo, r.hi = v.hi, r.stride = v.stride, r.align = v.align;
    return r;
}

static tx_val
to_f32(tx_code *g, tx_val v)
{
    switch (v.vt) {
    case VT_F32: return v;
    case VT_F64: return code_arith_one(g, V_F64_F32_S, 0, TX_F32, v);
    case VT_I32: return code_arith_one(g, V_I32_F32_S, 0, TX_F32, v);
    case VT_U32: return code_arith_one(g, V_U32_F32_S, 0, TX_F32, v);
    case VT_I64: return code_arith_one(g, V_I64_F32_S, 0, TX_F32, v);
    case VT_U64: return code_arith_one(g, V_U64_F32_S, 0, TX_F32, v);
    case VT_X:
        if (tx_kind(v.t) == TX_KIND_F16)
            return code_arith_one(g, V_F16_F32_S, 0, TX_F32, v);
        if (tx_kind(v.t) == TX_KIND_BF16)
            return code_arith_one(g, V_BF16_F32_S, 0, TX_F32, v);
        return code_arith_one(g, V_F64_F32_S, 0, TX_F32, code_arith_one(g, V_CODE_F64_S, tx_kind(v.t), TX_F64, v));
    default: return v;
    }
}

static tx_val
to_f64(tx_code *g, tx_val v)
{
    switch (v.vt) {
    case VT_F32: return code_arith_one(g, V_F32_F64_S, 0, TX_F64, v);
    case VT_I32: return code_arith_one(g, V_I32_F64_S, 0, TX_F64, v);
    case VT_U32: return code_arith_one(g, V_U32_F64_S, 0, TX_F64, v);
    case VT_I64: return code_arith_one(g, V_I64_F64_S, 0, TX_F64, v);
    case VT_U64: return code_arith_one(g, V_U64_F64_S, 0, TX_F64, v);
    case VT_X: return code_arith_one(g, V_CODE_F64_S, tx_kind(v.t), TX_F64, v);
    default: return v;
    }
}

/* Back from float32 to the type of the codes. */
static tx_val
to_code(tx_code *g, tx_dtype to, tx_val f32)
{
    if (tx_kind(to) == TX_KIND_F16)
        return code_arith_one(g, V_F32_F16_S, 0, to, f32);
    if (tx_kind(to) == TX_KIND_BF16)
        return code_arith_one(g, V_F32_BF16_S, 0, to, f32);
    return code_arith_one(g, V_F64_CODE_S, tx_kind(to), to, to_f64(g, f32));
}

static tx_val
const_value(tx_dtype to, double x)
{
    tx_val r = {.form = VF_CONST, .vt = (uint8_t)tx_vt_of(to), .t = to};
    if (r.vt == VT_F32)
        r.k.f32 = (float)x;
    else if (r.vt == VT_F64)
        r.k.f64 = x;
    else
        r.k.u32 = (uint32_t)tx_encode(to, x);
    return r;
}

tx_val
tx_code_cast(tx_code *g, tx_dtype to, tx_val v)
{
    tx_vt vt = tx_vt_of(to);

    if (v.form == VF_NONE || tx_kind(to) == tx_kind(v.t))
        return v;
    if (vt == VT_NONE || v.vt == VT_NONE)
        return tx_code_unsupported(g, "conversion of this type", to);
    if (v.vt == VT_B) {
        tx_val one_zero =
            v.form == VF_CONST ? tx_val_int(TX_I32, v.k.u32 != 0) : code_arith_one(g, V_MASK_I32_S, 0, TX_I32, v);
        if (v.form != VF_CONST)
            one_zero.lo = 0, one_zero.hi = 1;
        return tx_code_cast(g, to, one_zero);
    }
    if (vt == VT_B) {
        if (v.form == VF_CONST && is_int(v.vt))
            return tx_val_int(to, v.lo != 0);
        if (v.vt == VT_X) /* e8m0 has no code for zero */
            v = to_f32(g, v);
        tx_val zero = {.form = VF_CONST, .vt = v.vt, .t = v.t};
        return tx_code_bin(g, TX_OP_NE, v.t, v, zero);
    }
    if (is_int(v.vt) && is_int(vt))
        return code_arith_int_to_int(g, to, v);
    if (v.form == VF_CONST && is_int(v.vt) && v.vt != VT_U64 && (vt == VT_F64 || (v.lo > -(1 << 24) && v.lo < 1 << 24)))
        return const_value(to, (double)v.lo);
    if (v.form == VF_CONST && v.vt == VT_F32 && !is_int(vt))
        return const_value(to, (double)v.k.f32);
    if (vt == VT_F32)
        return to_f32(g, v);
    if (vt == VT_F64)
        return to_f64(g, v);
    if (vt == VT_X) {
        if (v.vt == VT_F32)
            return to_code(g, to, v);
        if (v.vt == VT_X && tx_kind(v.t) == TX_KIND_F16)
            return to_code(g, to, to_f32(g, v));
        /* 64-bit integers go through a float64 rounded to odd, so that the last rounding is the only one */
        tx_val d = code_arith_wide(v.vt) && is_int(v.vt)
                       ? code_arith_one(g, V_I64_F64_S, 1 + (v.vt == VT_U64), TX_F64, v)
                       : to_f64(g, v);
        return code_arith_one(g, V_F64_CODE_S, tx_kind(to), to, d);
    }
    if (v.vt == VT_X)
        v = to_f32(g, v);
    return code_arith_one(g,
                          v.vt == VT_F32        ? code_arith_wide(vt) ? V_F32_I64_S : V_F32_I32_S
                          : code_arith_wide(vt) ? V_F64_I64_S
                                                : V_F64_I32_S,
                          tx_kind(to), to, v);
}

/* ---- two operands ------------------------------------------------------------------------------------------------ */

static tx_val
masks(tx_code *g, unsigned op, tx_val a, tx_val b)
{
    bool row = a.form == VF_ROW || b.form == VF_ROW;
    tx_val r;
    if (a.form == VF_CONST && b.form == VF_CONST) {
        uint32_t x = a.k.u32, y = b.k.u32;
        return tx_val_int(TX_BOOL, op == V_BAND ? x & y : op == V_BOR ? x | y : x ^ y);
    }
    r = tx_val_new(g, TX_BOOL, row);
    tx_code_emit(g, op, 0, r.reg, tx_code_operand(g, &a), tx_code_operand(g, &b), 0, 0);
    return r;
}

tx_val
tx_code_not(tx_code *g, tx_val v)
{
    if (v.form == VF_CONST)
        return tx_val_int(TX_BOOL, v.k.u32 == 0);
    tx_val r = tx_val_new(g, TX_BOOL, v.form == VF_ROW);
    tx_code_emit(g, V_BNOT, 0, r.reg, tx_code_operand(g, &v), 0, 0, 0);
    return r;
}

/* Bounds and lane pattern of an integer result, where nothing can wrap. */
static void
derive(tx_val *r, unsigned op, const tx_val *a, const tx_val *b)
{
    int64_t lo, hi, tlo, thi, c = b->lo;
    bool known = b->lo == b->hi;
    limits(r->t, &tlo, &thi);
    r->align = 0;
    switch (op) {
    case TX_OP_ADD:
        if (!tx_add_i64(a->lo, b->lo, &lo) || !tx_add_i64(a->hi, b->hi, &hi))
            return;
        break;
    case TX_OP_SUB:
        if (!tx_sub_i64(a->lo, b->hi, &lo) || !tx_sub_i64(a->hi, b->lo, &hi))
            return;
        break;
    case TX_OP_MUL: {
        int64_t w, x, y, z;
        if (!tx_mul_i64(a->lo, b->lo, &w) || !tx_mul_i64(a->lo, b->hi, &x) || !tx_mul_i64(a->hi, b->lo, &y) ||
            !tx_mul_i64(a->hi, b->hi, &z))
            return;
        lo = w < x ? w : x, lo = y < lo ? y : lo, lo = z < lo ? z : lo;
        hi = w > x ? w : x, hi = y > hi ? y : hi, hi = z > hi ? z : hi;
        break;
    }
    case TX_OP_FLOORDIV:
    case TX_OP_DIV:
        if (!known || c <= 0 || a->lo < 0)
            return;
        lo = a->lo / c, hi = a->hi / c;
        break;
    case TX_OP_FLOORMOD:
    case TX_OP_MOD:
        if (!known || c <= 0 || (op == TX_OP_MOD && a->lo < 0))
            return;
        lo = 0, hi = c - 1;
        if (a->lo >= 0 && a->hi < hi)
            hi = a->hi;
        break;
    case TX_OP_BAND:
        if (b->lo < 0 && a->lo < 0)
            return;
        lo = 0, hi = a->lo < 0 ? b->hi : b->lo < 0 ? a->hi : a->hi < b->hi ? a->hi : b->hi;
        break;
    case TX_OP_SHR:
        if (!known || c < 0 || c > 62 || a->lo < 0)
            return;
        lo = a->lo >> c, hi = a->hi >> c;
        break;
    case TX_OP_MIN: lo = a->lo < b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi; break;
    case TX_OP_MAX: lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi > b->hi ? a->hi : b->hi; break;
    default: return;
    }
    if (lo < tlo || hi > thi)
        return;
    r->lo = lo, r->hi = hi;
    /* lane patterns: sum with something uniform, product and modulo by constants */
    if (op == TX_OP_ADD && a->align && b->form != VF_ROW)
        r->stride = a->stride, r->align = known && c % a->align == 0 ? a->align : 1;
    else if (op == TX_OP_ADD && b->align && a->form != VF_ROW)
        r->stride = b->stride, r->align = a->lo == a->hi && a->lo % b->align == 0 ? b->align : 1;
    else if (op == TX_OP_SUB && a->align && b->form != VF_ROW)
        r->stride = a->stride, r->align = known && c % a->align == 0 ? a->align : 1;
    else if (op == TX_OP_MUL && a->align && known && c > 0 && c < 1 << 20 && a->align < 1 << 20)
        r->stride = a->stride * c, r->align = a->align * c;
    else if (op == TX_OP_MUL && b->align && a->lo == a->hi && a->lo > 0 && a->lo < 1 << 20 && b->align < 1 << 20)
        r->stride = b->stride * a->lo, r->align = b->align * a->lo;
    else if ((op == TX_OP_FLOORMOD || op == TX_OP_MOD) && a->align && a->lo >= 0 && c % a->align == 0 &&
             a->stride >= 0 && a->stride * (TX_LANES - 1) < a->align)
        r->stride = a->stride, r->align = a->align;
}

/* floor(x / c) does not depend on the lane: x = base + stride * lane within one multiple of c */
static bool
same_quotient(const tx_val *a, int64_t c)
{
    return a->align > 0 && c > 0 && c % a->align == 0 && a->stride >= 0 && a->stride * (TX_LANES - 1) < a->align &&
           a->lo >= 0;
}

static bool
code_fold_ints(unsigned op, tx_dtype t, const tx_val *a, const tx_val *b, tx_val *r)
{
    int64_t x = a->lo, y = b->lo, z;
    bool u64 = tx_vt_of(t) == VT_U64;
    switch (op) {
    case TX_OP_ADD: z = (int64_t)((uint64_t)x + (uint64_t)y); break;
    case TX_OP_SUB: z = (int64_t)((uint64_t)x - (uint64_t)y); break;
    case TX_OP_MUL: z = (int64_t)((uint64_t)x * (uint64_t)y); break;
    case TX_OP_FLOORDIV:
        if (u64 || y <= 0)
            return false;
        z = x / y - (x % y < 0);
        break;
    case TX_OP_FLOORMOD:
        if (u64 || y <= 0)
            return false;
        z = x % y + (x % y < 0 ? y : 0);
        break;
    case TX_OP_DIV:
    case TX_OP_MOD:
        if (u64 || y <= 0)
            return false;
        z = op == TX_OP_DIV ? x / y : x % y;
        break;
    case TX_OP_BAND: z = x & y; break;
    case TX_OP_BOR: z = x | y; break;
    case TX_OP_BXOR: z = x ^ y; break;
    case TX_OP_EQ: z = x == y; break;
    case TX_OP_NE: z = x != y; break;
    case TX_OP_LT: z = u64 ? (uint64_t)x < (uint64_t)y : x < y; break;
    case TX_OP_LE: z = u64 ? (uint64_t)x <= (uint64_t)y : x <= y; break;
    default: return false;
    }
    *r = tx_val_int(op <= TX_OP_LE ? TX_BOOL : t, z);
    return true;
}

static int
log2_of(int64_t c)
{
    return c > 0 && (c & (c - 1)) == 0 ? __builtin_ctzll((uint64_t)c) : -1;
}

/* Cheaper forms: (x op c). Gives false when there is none. */
static bool
by_const(tx_code *g, unsigned op, tx_dtype t, tx_val a, int64_t c, tx_val *r)
{
    int s = log2_of(c);
    switch (op) {
    case TX_OP_ADD:
    case TX_OP_SUB:
    case TX_OP_BOR:
    case TX_OP_BXOR:
    case TX_OP_SHL:
    case TX_OP_SHR:
        if (c == 0)
            return *r = a, true;
        return false;
    case TX_OP_MUL:
        if (c == 1)
            return *r = a, true;
        return false;
    case TX_OP_DIV:
    case TX_OP_FLOORDIV:
        if (c == 1)
            return *r = a, true;
        if (same_quotient(&a, c) && a.form == VF_ROW)
            return *r = tx_code_bin(g, op, t, tx_code_uniform(g, a), tx_val_int(t, c)), true;
        if (s < 0 || (op == TX_OP_DIV && a.lo < 0))
            return false;
        *r = tx_code_bin(g, TX_OP_SHR, t, a, tx_val_int(t, s));
        return true;
    case TX_OP_MOD:
    case TX_OP_FLOORMOD:
        if (a.lo >= 0 && a.hi < c)
            return *r = a, true;
        if (s < 0 || (op == TX_OP_MOD && a.lo < 0))
            return false;
        *r = tx_code_bin(g, TX_OP_BAND, t, a, tx_val_int(t, c - 1));
        if (r->form != VF_CONST) {
            tx_val k = tx_val_int(t, c);
            derive(r, op, &a, &k);
        }
        return true;
    default: return false;
    }
}

/* Faults that the active lanes can see: a divisor of zero, a count outside the type. */
static void
check_operand(tx_code *g, unsigned op, tx_dtype t, const tx_val *b)
{
    bool shift = op == TX_OP_SHL || op == TX_OP_SHR;
    bool divides = op == TX_OP_DIV || op == TX_OP_MOD || op == TX_OP_FLOORDIV || op == TX_OP_FLOORMOD;
    int64_t bits = tx_bits(t);

    if (!(shift && (b->lo < 0 || b->hi >= bits)) && !(divides && b->lo <= 0 && b->hi >= 0))
        return;
    unsigned row = shift                    ? code_arith_wide(b->vt) ? V_CHKS_I64_S : V_CHKS_I32_S
                   : code_arith_wide(b->vt) ? V_CHKZ_I64_S
                                            : V_CHKZ_I32_S;
    uint32_t at = tx_code_emit(g, row + (b->form == VF_ROW), 0, 0, tx_code_operand(g, b), 0, 0, bits);
    g->code.at[at].site = tx_code_site(g, 0, NULL, shift ? "shift" : "division", 0, 0);
}

tx_val
tx_code_bin(tx_code *g, unsigned op, tx_dtype t, tx_val a, tx_val b)
{
    tx_vt vt = tx_vt_of(t);
    bool compares = op >= TX_OP_EQ && op <= TX_OP_LE;
    tx_val r;

    if (a.form == VF_NONE || b.form == VF_NONE)
        return a.form == VF_NONE ? a : b;
    if (op == TX_OP_GT || op == TX_OP_GE) {
        r = a, a = b, b = r;
        op = op == TX_OP_GT ? TX_OP_LT : TX_OP_LE;
    }
    if (vt == VT_B) {
        if (op == TX_OP_BAND || op == TX_OP_BOR || op == TX_OP_BXOR || op == TX_OP_NE)
            return masks(g, op == TX_OP_BAND ? V_BAND : op == TX_OP_BOR ? V_BOR : V_BXOR, a, b);
        if (op == TX_OP_EQ)
            return tx_code_not(g, masks(g, V_BXOR, a, b));
        r = tx_code_bin(g, op, TX_I32, tx_code_cast(g, TX_I32, a), tx_code_cast(g, TX_I32, b));
        return compares ? r : tx_code_cast(g, TX_BOOL, r);
    }
    if (vt == VT_X) {
        r = tx_code_bin(g, op, TX_F32, to_f32(g, a), to_f32(g, b));
        return compares ? r : to_code(g, t, r);
    }
    if (vt == VT_NONE || op < TX_OP_EQ || op > TX_OP_SHR || op == TX_OP_CEILDIV || rows[op - TX_OP_EQ][vt] == NO)
        return tx_code_unsupported(g, tx_ops[op].spelling, compares ? TX_BOOL : t);
    if (is_int(vt)) {
        if (a.form == VF_CONST && b.form == VF_CONST && code_fold_ints(op, t, &a, &b, &r))
            return r;
        if (a.form == VF_CONST && (op == TX_OP_ADD || op == TX_OP_MUL)) {
            r = a, a = b, b = r;
        }
        if (b.form == VF_CONST && vt != VT_U64 && by_const(g, op, t, a, b.lo, &r))
            return r;
        check_operand(g, op, t, &b);
    }
    int form = form_of(&a, &b);
    r = tx_val_new(g, compares ? TX_BOOL : t, form != 0);
    tx_code_emit(g, rows[op - TX_OP_EQ][vt] + (unsigned)form, 0, r.reg, tx_code_operand(g, &a), tx_code_operand(g, &b),
                 0, 0);
    if (!compares && is_int(vt)) {
        derive(&r, op, &a, &b);
        if (tx_bits(t) < 32 && (op == TX_OP_ADD || op == TX_OP_SUB || op == TX_OP_MUL || op == TX_OP_SHL ||
                                op == TX_OP_DIV || op == TX_OP_FLOORDIV || op == TX_OP_MOD || op == TX_OP_FLOORMOD))
            r = wrap(g, r);
    }
    return r;
}

tx_val
tx_code_fma(tx_code *g, tx_dtype t, tx_val a, tx_val b, tx_val c)
{
    tx_vt vt = tx_vt_of(t);
    tx_val r;
    if (vt == VT_X) {
        bool row = a.form == VF_ROW || b.form == VF_ROW || c.form == VF_ROW;
        if (row)
            a = tx_code_to_row(g, a), b = tx_code_to_row(g, b), c = tx_code_to_row(g, c);
        r = tx_val_new(g, t, row);
        tx_code_emit(g, row ? V_FMAX_F32_V : V_FMAX_F32_S, tx_kind(t), r.reg, tx_code_operand(g, &a),
                     tx_code_operand(g, &b), tx_code_operand(g, &c), 0);
        return r;
    }
    if (vt != VT_F32 && vt != VT_F64)
        return tx_code_bin(g, TX_OP_ADD, t, tx_code_bin(g, TX_OP_MUL, t, a, b), c);
    if (a.form != VF_ROW && b.form == VF_ROW)
        r = a, a = b, b = r;
    bool ar = a.form == VF_ROW, br = b.form == VF_ROW, cr = c.form == VF_ROW;
    if (!ar && cr)
        a = tx_code_to_row(g, a), ar = true;
    /* in the order of vmop.def: SSS VVV VSV VVS VSS */
    unsigned form = !ar ? 0 : br ? cr ? 1 : 3 : cr ? 2 : 4;
    r = tx_val_new(g, t, ar);
    tx_code_emit(g, (vt == VT_F32 ? V_FMA_F32_SSS : V_FMA_F64_SSS) + form, 0, r.reg, tx_code_operand(g, &a),
                 tx_code_operand(g, &b), tx_code_operand(g, &c), 0);
    return r;
}

/* ---- one operand ------------------------------------------------------------------------------------------------- */

static tx_val
bits_const(tx_dtype t, uint64_t bits)
{
    tx_val v = {.form = VF_CONST, .vt = (uint8_t)tx_vt_of(t), .t = t};
    v.k.u64 = bits;
    return v;
}

/* isnan, isinf, isfinite of a float32 or float64 */
static tx_val
classify(tx_code *g, unsigned op, tx_val v)
{
    if (v.vt == VT_X)
        v = to_f32(g, v);
    if (v.vt != VT_F32 && v.vt != VT_F64)
        return tx_val_int(TX_BOOL, op == TX_OP_ISFINITE);
    if (op == TX_OP_ISNAN)
        return tx_code_bin(g, TX_OP_NE, v.t, v, v);
    tx_val inf = v.vt == VT_F32 ? bits_const(TX_F32, 0x7f800000u) : bits_const(TX_F64, 0x7ff0000000000000ull);
    tx_val mag = code_arith_one(g, v.vt == VT_F32 ? V_ABS_F32_S : V_ABS_F64_S, 0, v.t, v);
    return tx_code_bin(g, op == TX_OP_ISINF ? TX_OP_EQ : TX_OP_LT, v.t, mag, inf);
}

static tx_val
sign_bits(tx_code *g, unsigned op, tx_val v)
{
    tx_val u = retag(g, v, TX_U32);
    u.lo = 0, u.hi = UINT32_MAX;
    unsigned sign = 1u << (tx_bits(v.t) - 1);
    if (v.form == VF_CONST) {
        v.k.u32 = op == TX_OP_NEG ? v.k.u32 ^ sign : v.k.u32 & (sign - 1);
        return v;
    }
    tx_val r = op == TX_OP_NEG ? tx_code_bin(g, TX_OP_BXOR, TX_U32, u, tx_val_int(TX_U32, sign))
                               : tx_code_bin(g, TX_OP_BAND, TX_U32, u, tx_val_int(TX_U32, sign - 1));
    r.t = v.t, r.vt = VT_X;
    return r;
}

/* Row for uniform values of the operations with one operand, by vt; 0: none. */
static unsigned
unary_row(unsigned op, tx_vt vt)
{
    bool f = vt == VT_F32, d = vt == VT_F64, w = code_arith_wide(vt);
    switch (op) {
    case TX_OP_NEG: return f ? V_NEG_F32_S : d ? V_NEG_F64_S : w ? V_NEG_I64_S : V_NEG_I32_S;
    case TX_OP_ABS: return f ? V_ABS_F32_S : d ? V_ABS_F64_S : w ? V_ABS_I64_S : V_ABS_I32_S;
    case TX_OP_BNOT: return f || d ? 0 : w ? V_NOT_I64_S : V_NOT_I32_S;
    case TX_OP_SQRT: return f ? V_SQRT_F32_S : d ? V_SQRT_F64_S : 0;
    case TX_OP_RSQRT: return f ? V_RSQRT_F32_S : d ? V_RSQRT_F64_S : 0;
    case TX_OP_FLOOR: return f ? V_FLOOR_F32_S : d ? V_FLOOR_F64_S : 0;
    case TX_OP_CEIL: return f ? V_CEIL_F32_S : d ? V_CEIL_F64_S : 0;
    case TX_OP_TRUNC: return f ? V_TRUNC_F32_S : d ? V_TRUNC_F64_S : 0;
    case TX_OP_ROUND: return f ? V_RINT_F32_S : d ? V_RINT_F64_S : 0;
    case TX_OP_POPCOUNT: return f || d ? 0 : w ? V_POPC_I64_S : V_POPC_I32_S;
    case TX_OP_CLZ: return f || d ? 0 : w ? V_CLZ_I64_S : V_CLZ_I32_S;
    case TX_OP_FFS: return f || d || w ? 0 : V_FFS_I32_S;
    case TX_OP_EXP: return f ? V_EXP_F32_S : d ? V_MATH1_F64_S : 0;
    case TX_OP_EXP2: return f ? V_EXP2_F32_S : d ? V_MATH1_F64_S : 0;
    default: return f ? V_MATH1_F32_S : d ? V_MATH1_F64_S : 0;
    }
}

tx_val
tx_code_unary(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_val v = tx_code_expr(g, n->arg[0], lane), r;
    unsigned op = n->op;
    tx_dtype t = tx_scalar_of(n->dtype);

    if (v.form == VF_NONE)
        return v;
    if (op == TX_OP_ISNAN || op == TX_OP_ISINF || op == TX_OP_ISFINITE)
        return classify(g, op, v);
    if (v.vt == VT_B)
        return op == TX_OP_BNOT ? tx_code_not(g, v) : tx_code_cast(g, t, v);
    if (v.vt == VT_X) {
        if ((op == TX_OP_NEG || op == TX_OP_ABS) && (tx_kind(v.t) == TX_KIND_F16 || tx_kind(v.t) == TX_KIND_BF16))
            return sign_bits(g, op, v);
        v = to_f32(g, v);
        r = code_arith_one(g, unary_row(op, VT_F32), op, TX_F32, v);
        return to_code(g, t, r);
    }
    if (v.form == VF_CONST && op == TX_OP_NEG && is_int(v.vt))
        return tx_val_int(t, (int64_t)(0 - (uint64_t)v.lo));
    if ((op == TX_OP_ABS && (v.vt == VT_U32 || v.vt == VT_U64)) || v.vt == VT_NONE)
        return v;
    if (is_int(v.vt) && tx_has(op, TX_PROP_PURE) && tx_ops[op].rule == TX_RULE_FLOAT)
        v = tx_code_cast(g, t, v);
    if ((op == TX_OP_POPCOUNT || op == TX_OP_CLZ) && v.vt == VT_I32 && tx_bits(t) < 32)
        v = tx_code_bin(g, TX_OP_BAND, TX_I32, retag(g, v, TX_I32), tx_val_int(TX_I32, (1 << tx_bits(t)) - 1));
    unsigned row = unary_row(op, v.vt);
    if (!row)
        return tx_code_unsupported(g, tx_ops[op].spelling, t);
    r = code_arith_one(g, row, op == TX_OP_CLZ ? tx_bits(t) : op, t, v);
    if (tx_bits(t) < 32 && (op == TX_OP_NEG || op == TX_OP_ABS || op == TX_OP_BNOT))
        r = wrap(g, r);
    return r;
}

tx_val
tx_code_math2(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    tx_val a = tx_code_expr(g, n->arg[0], lane), b = tx_code_expr(g, n->arg[1], lane);
    tx_dtype in = tx_vt_of(t) == VT_F64 ? TX_F64 : TX_F32;

    if (n->op == TX_OP_FDIVIDEF)
        return tx_code_bin(g, TX_OP_DIV, t, tx_code_cast(g, t, a), tx_code_cast(g, t, b));
    a = tx_code_cast(g, in, a), b = tx_code_cast(g, in, b);
    if (a.form == VF_NONE || b.form == VF_NONE)
        return a.form == VF_NONE ? a : b;
    bool row = a.form == VF_ROW || b.form == VF_ROW;
    if (row)
        a = tx_code_to_row(g, a), b = tx_code_to_row(g, b);
    tx_val r = tx_val_new(g, in, row);
    tx_code_emit(g, (in == TX_F64 ? V_MATH2_F64_S : V_MATH2_F32_S) + row, n->op, r.reg, tx_code_operand(g, &a),
                 tx_code_operand(g, &b), 0, 0);
    return tx_code_cast(g, t, r);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static tx_dtype
uint_of(unsigned bits)
{
    return bits == 8 ? TX_DTYPE(TX_KIND_U8, 1) : bits == 16 ? TX_DTYPE(TX_KIND_U16, 1) : bits == 32 ? TX_U32 : TX_U64;
}

/* The bits of a value as an unsigned integer of its width, and back. */
static tx_val
as_bits(tx_code *g, tx_val v)
{
    unsigned bits = tx_bits(v.t) < 8 ? 8 : tx_bits(v.t);
    tx_dtype u = uint_of(bits);
    if (v.vt == VT_B)
        return tx_code_cast(g, u, v);
    if (is_int(v.vt) && !tx_is_handle(v.t)) /* the range of a pointer says nothing about its bits */
        return code_arith_int_to_int(g, u, v);
    int64_t lo, hi;
    limits(u, &lo, &hi);
    v.t = u, v.vt = (uint8_t)tx_vt_of(u), v.lo = lo, v.hi = hi, v.align = 0;
    if (v.form == VF_CONST)
        v = tx_val_int(u, bits == 64 ? v.k.i64 : (int64_t)v.k.u32);
    return v;
}

static tx_val
from_bits(tx_code *g, tx_dtype to, tx_val u)
{
    tx_vt vt = tx_vt_of(to);
    if (is_int(vt) || vt == VT_B)
        return tx_code_cast(g, to, u);
    u.t = to, u.vt = (uint8_t)vt, u.align = 0;
    limits(to, &u.lo, &u.hi);
    return u;
}

tx_val
tx_code_reinterpret(tx_code *g, const tx_node *n, unsigned lane)
{
    tx_dtype to = tx_scalar_of(n->dtype), from = tx_scalar_of(n->arg[0]->dtype);
    unsigned tb = tx_bits(to), fb = tx_bits(from);

    if (tx_vt_of(to) == VT_NONE || tx_vt_of(from) == VT_NONE || tb < 8 || fb < 8) {
        if (tb == fb && tx_vt_of(to) != VT_NONE)
            return from_bits(g, to, as_bits(g, tx_code_expr(g, n->arg[0], lane)));
        return tx_code_unsupported(g, "T.reinterpret of this type", to);
    }
    if (tb == fb)
        return from_bits(g, to, as_bits(g, tx_code_expr(g, n->arg[0], lane)));
    if (tb < fb) { /* a piece of a wider lane */
        unsigned per = fb / tb;
        tx_dtype wide_t = uint_of(fb);
        tx_val w = as_bits(g, tx_code_expr(g, n->arg[0], lane / per));
        w = tx_code_bin(g, TX_OP_SHR, wide_t, w, tx_val_int(wide_t, (int64_t)(lane % per) * tb));
        return from_bits(g, to, tx_code_cast(g, uint_of(tb), w));
    }
    unsigned per = tb / fb;
    tx_dtype wide_t = uint_of(tb);
    tx_val sum = tx_val_int(wide_t, 0);
    for (unsigned i = 0; i < per; i++) {
        tx_val piece = tx_code_cast(g, wide_t, as_bits(g, tx_code_expr(g, n->arg[0], lane * per + i)));
        piece = tx_code_bin(g, TX_OP_SHL, wide_t, piece, tx_val_int(wide_t, (int64_t)i * fb));
        sum = tx_code_bin(g, TX_OP_BOR, wide_t, sum, piece);
    }
    return from_bits(g, to, sum);
}
