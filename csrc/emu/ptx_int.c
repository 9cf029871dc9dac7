/* PTX instructions on integers, bits and predicates: one lane each. Values come cut to the width of their type.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"

#define HAS(t) tx_has_tok(e->k, TK_##t)

static int64_t
sext(uint64_t v, unsigned bits)
{
    return bits >= 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static int64_t
ptx_int_value(const tx_ptx_ty *t, uint64_t v)
{
    return t->cls == 's' ? sext(v, t->bits) : (int64_t)v;
}

static uint64_t
high64(uint64_t x, uint64_t y)
{
    uint64_t xl = x & 0xffffffff, xh = x >> 32, yl = y & 0xffffffff, yh = y >> 32;
    uint64_t mid = xh * yl + (xl * yl >> 32), more = xl * yh + (mid & 0xffffffff);
    return xh * yh + (mid >> 32) + (more >> 32);
}

/* Upper half of the product. */
static uint64_t
high(const tx_ptx_ty *t, uint64_t x, uint64_t y)
{
    uint64_t r;
    if (t->bits < 64)
        return (uint64_t)(t->cls == 's' ? ptx_int_value(t, x) * ptx_int_value(t, y) : (int64_t)(x * y)) >> t->bits;
    r = high64(x, y);
    if (t->cls == 's')
        r -= (x >> 63 ? y : 0) + (y >> 63 ? x : 0);
    return r;
}

static uint64_t
clamp_s32(int64_t v)
{
    return (uint64_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}

static uint64_t
ptx_int_product(const tx_ptx_env *e, const uint64_t *in)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    if (HAS(mul24) || HAS(mad24)) {
        int64_t x = t->cls == 's' ? sext(in[0], 24) : (int64_t)(in[0] & 0xffffff);
        int64_t y = t->cls == 's' ? sext(in[1], 24) : (int64_t)(in[1] & 0xffffff);
        return (uint64_t)(x * y) >> (HAS(hi) ? 16 : 0);
    }
    if (HAS(hi))
        return high(t, in[0], in[1]);
    return (uint64_t)ptx_int_value(t, in[0]) * (uint64_t)ptx_int_value(t, in[1]);
}

void
tx_ptx_int_arith(const tx_ptx_env *e, const uint64_t *in, uint64_t *out)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    if (HAS(mul))
        out[0] = ptx_int_product(e, in);
    else if (HAS(sat))
        out[0] = clamp_s32(ptx_int_value(t, in[0]) + (HAS(sub) ? -ptx_int_value(t, in[1]) : ptx_int_value(t, in[1])));
    else
        out[0] = HAS(sub) ? in[0] - in[1] : in[0] + in[1];
}

TX_PTX_LANE(mad)
{
    uint64_t p = ptx_int_product(e, in);
    if (e->k->nin < 3)
        out[0] = p;
    else if (HAS(sat))
        out[0] = clamp_s32(sext(p, 32) + sext(in[2], 32));
    else
        out[0] = p + in[2];
}

TX_PTX_LANE(idiv)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    bool rem = HAS(rem);
    if (in[1] == 0)
        out[0] = ~0ull;
    else if (t->cls == 'u')
        out[0] = rem ? in[0] % in[1] : in[0] / in[1];
    else {
        int64_t x = ptx_int_value(t, in[0]), y = ptx_int_value(t, in[1]);
        out[0] = y == -1 ? rem ? 0 : 0 - (uint64_t)x : (uint64_t)(rem ? x % y : x / y);
    }
}

TX_PTX_LANE(sad)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    bool less = t->cls == 's' ? ptx_int_value(t, in[0]) < ptx_int_value(t, in[1]) : in[0] < in[1];
    out[0] = in[2] + (less ? in[1] - in[0] : in[0] - in[1]);
}

void
tx_ptx_int_minmax(const tx_ptx_env *e, const uint64_t *in, uint64_t *out)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    bool less = t->cls == 's' ? ptx_int_value(t, in[0]) < ptx_int_value(t, in[1]) : in[0] < in[1];
    out[0] = less == HAS(min) ? in[0] : in[1];
}

void
tx_ptx_int_unary(const tx_ptx_env *e, const uint64_t *in, uint64_t *out)
{
    int64_t x = ptx_int_value(&e->k->in_t[0], in[0]);
    out[0] = HAS(neg) || x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

TX_PTX_LANE(bitop)
{
    out[0] = HAS(and)    ? in[0] & in[1]
             : HAS(or)   ? in[0] | in[1]
             : HAS(xor)  ? in[0] ^ in[1]
             : HAS(cnot) ? in[0] == 0
                         : ~in[0];
}

TX_PTX_LANE(shift)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    uint64_t n = in[1];
    if (HAS(shl))
        out[0] = n >= t->bits ? 0 : in[0] << n;
    else if (t->cls == 's')
        out[0] = (uint64_t)(ptx_int_value(t, in[0]) >> (n >= t->bits ? t->bits - 1u : n));
    else
        out[0] = n >= t->bits ? 0 : in[0] >> n;
}

TX_PTX_LANE(shf)
{
    uint64_t v = in[1] << 32 | in[0], n = in[2];
    n = HAS(wrap) ? n & 31 : n > 32 ? 32 : n;
    out[0] = HAS(l) ? v << n >> 32 : v >> n;
}

TX_PTX_LANE(lop3)
{
    uint64_t r = 0, lut = in[3];
    for (unsigned i = 0; i < 8; i++)
        if (lut >> i & 1)
            r |= (i & 4 ? in[0] : ~in[0]) & (i & 2 ? in[1] : ~in[1]) & (i & 1 ? in[2] : ~in[2]);
    out[0] = r &= 0xffffffff;
    if (e->k->nout > 1)
        out[1] = HAS(and) ? (r != 0) & in[4] : (r != 0) | in[4];
}

TX_PTX_LANE(prmt)
{
    uint64_t v = in[1] << 32 | in[0], r = 0, n = in[2] & 3;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t s = HAS(f4e)    ? n + i
                     : HAS(b4e)  ? n - i
                     : HAS(rc8)  ? n
                     : HAS(ecl)  ? (i > n ? i : n)
                     : HAS(ecr)  ? (i < n ? i : n)
                     : HAS(rc16) ? (n & 1) * 2 + (i & 1)
                                 : in[2] >> 4 * i & 15;
        bool sign = s & 8 && !(HAS(f4e) || HAS(b4e) || HAS(rc8) || HAS(ecl) || HAS(ecr) || HAS(rc16));
        uint64_t b = v >> 8 * (s & 7) & 0xff;
        r |= (sign ? b & 0x80 ? 0xff : 0 : b) << 8 * i;
    }
    out[0] = r;
}

static unsigned
top_bit(uint64_t v)
{
    return 63 - (unsigned)__builtin_clzll(v);
}

TX_PTX_LANE(bfind)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    uint64_t v = in[0];
    if (t->cls == 's' && ptx_int_value(t, v) < 0)
        v = ~v & tx_ones(t->bits);
    out[0] = v == 0 ? 0xffffffff : HAS(shiftamt) ? t->bits - 1 - top_bit(v) : top_bit(v);
}

TX_PTX_LANE(bitcount)
{
    unsigned bits = e->k->in_t[0].bits;
    out[0] = HAS(popc) ? (uint64_t)__builtin_popcountll(in[0]) : in[0] ? bits - 1 - top_bit(in[0]) : bits;
}

TX_PTX_LANE(brev)
{
    unsigned bits = e->k->in_t[0].bits;
    uint64_t r = 0;
    for (unsigned i = 0; i < bits; i++)
        r |= (in[0] >> i & 1) << (bits - 1 - i);
    out[0] = r;
}

/* A place or a length: of 32 bits its low byte, of 64 all of it (measured on an H200). */
static unsigned
field_place(const tx_ptx_ty *t, uint64_t v)
{
    return t->bits == 64 ? (v & 0xffffffff) > 255 ? 255 : v & 0xff : v & 0xff;
}

TX_PTX_LANE(bfe)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    unsigned pos = field_place(t, in[1]), len = field_place(t, in[2]), last = pos + len - 1;
    uint64_t v = pos >= t->bits ? 0 : in[0] >> pos & (len ? tx_ones(len) : 0), sign = 0;
    if (t->cls == 's' && len) {
        sign = in[0] >> (last < t->bits ? last : t->bits - 1u) & 1;
        unsigned have = pos >= t->bits ? 0 : pos + len > t->bits ? t->bits - pos : len;
        if (sign)
            v |= have >= 64 ? 0 : ~0ull << have;
    }
    out[0] = v;
}

TX_PTX_LANE(bfi)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    unsigned bits = t->bits, pos = field_place(t, in[2]), len = field_place(t, in[3]);
    uint64_t mask = pos >= bits || !len ? 0 : tx_ones(len) << pos;
    out[0] = (in[1] & ~mask) | (pos >= bits ? 0 : in[0] << pos & mask);
}

TX_PTX_LANE(szext)
{
    uint64_t n = HAS(wrap) ? in[1] & 31 : in[1];
    bool s = e->k->in_t[0].cls == 's';
    out[0] = n == 0 ? 0 : n >= 32 ? in[0] : s ? (uint64_t)sext(in[0], (unsigned)n) : in[0] & tx_ones((unsigned)n);
}

TX_PTX_LANE(bmsk)
{
    uint64_t a = HAS(wrap) ? in[0] & 31 : in[0], b = HAS(wrap) ? in[1] & 31 : in[1];
    out[0] = a >= 32 || b == 0 ? 0 : tx_ones(b > 32 ? 32 : (unsigned)b) << a;
}

TX_PTX_LANE(fns)
{
    int64_t o = sext(in[2], 32), at = (int64_t)in[1], step = o < 0 ? -1 : 1, left = o < 0 ? -o : o;
    (void)e;
    out[0] = 0xffffffff;
    if (at > 31)
        return;
    if (o == 0) {
        out[0] = in[0] >> at & 1 ? (uint64_t)at : 0xffffffff;
        return;
    }
    for (; at >= 0 && at < 32; at += step)
        if (in[0] >> at & 1 && --left == 0) {
            out[0] = (uint64_t)at;
            return;
        }
}

TX_PTX_LANE(dp4a)
{
    uint64_t r = in[2];
    for (unsigned i = 0; i < 32; i += 8) {
        uint64_t x = in[0] >> i & 0xff, y = in[1] >> i & 0xff;
        r += (uint64_t)((e->k->in_t[0].cls == 's' ? sext(x, 8) : (int64_t)x) *
                        (e->k->in_t[1].cls == 's' ? sext(y, 8) : (int64_t)y));
    }
    out[0] = r;
}

TX_PTX_LANE(dp2a)
{
    uint64_t r = in[2];
    for (unsigned i = 0; i < 2; i++) {
        uint64_t x = in[0] >> 16 * i & 0xffff, y = in[1] >> (8 * i + (HAS(hi) ? 16 : 0)) & 0xff;
        r += (uint64_t)((e->k->in_t[0].cls == 's' ? sext(x, 16) : (int64_t)x) *
                        (e->k->in_t[1].cls == 's' ? sext(y, 8) : (int64_t)y));
    }
    out[0] = r;
}

/* ---- choices and moves ------------------------------------------------------------------------------------------- */

TX_PTX_LANE(selp)
{
    (void)e;
    out[0] = in[2] ? in[0] : in[1];
}

bool
tx_ptx_int_compare(const tx_ptx_env *e, uint64_t x, uint64_t y)
{
    const tx_ptx_ty *t = &e->k->in_t[0];
    bool less = t->cls == 's' ? ptx_int_value(t, x) < ptx_int_value(t, y) : x < y;
    if (HAS(eq))
        return x == y;
    if (HAS(ne))
        return x != y;
    if (HAS(lt) || HAS(lo))
        return less;
    if (HAS(le) || HAS(ls))
        return less || x == y;
    return HAS(gt) || HAS(hi) ? !less && x != y : !less;
}

TX_PTX_LANE(mov)
{
    (void)e;
    out[0] = in[0];
}

TX_PTX_LANE(mov_pack)
{
    unsigned at = 0;
    out[0] = 0;
    for (unsigned i = 0; i < e->k->nin; i++) {
        out[0] |= in[i] << at;
        at += e->k->in_t[i].bits;
    }
}

TX_PTX_LANE(mov_unpack)
{
    uint64_t v = in[0];
    for (unsigned i = 0; i < e->k->nout; i++) {
        out[i] = v;
        v >>= e->k->out_t[i].bits;
    }
}

TX_PTX_LANE(cvt_pack)
{
    unsigned bits = HAS(u16) || HAS(s16) ? 16 : HAS(u8) || HAS(s8) ? 8 : HAS(u4) || HAS(s4) ? 4 : 2;
    bool s = HAS(s16) || HAS(s8) || HAS(s4) || HAS(s2);
    int64_t hi = (int64_t)tx_ones(s ? bits - 1 : bits), lo = s ? -hi - 1 : 0;
    uint64_t r = e->k->nin > 2 ? in[2] << 2 * bits : 0;
    for (unsigned i = 0; i < 2; i++) {
        int64_t v = sext(in[i], 32);
        r |= ((uint64_t)(v < lo ? lo : v > hi ? hi : v) & tx_ones(bits)) << (i == 0 ? bits : 0);
    }
    out[0] = r;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

TX_PTX_LANE(mapa)
{
    uint64_t a = e->k->out_t[0].bits == 32 ? in[0] : tx_ptx_window(e->vm, in[0]);
    a = (a & 0xffffff) | in[1] << 24;
    out[0] = e->k->out_t[0].bits == 32
                 ? a
                 : tx_cluster_pointer(e->vm, (uint32_t)(a >> 24), (int64_t)(a & 0xffffff) - TX_SYSTEM_BYTES);
}

TX_PTX_LANE(getctarank)
{
    uint64_t a = e->k->in_t[0].bits == 64 ? tx_ptx_window(e->vm, in[0]) : in[0];
    out[0] = a >> 24;
}

TX_PTX_LANE(cvta)
{
    if (!HAS(shared))
        out[0] = in[0];
    else
        out[0] = HAS(to) ? tx_ptx_window(e->vm, in[0]) : tx_ptx_pointer(e->vm, in[0]);
}

TX_PTX_LANE(isspacep)
{
    uint32_t mem;
    int64_t off;
    unsigned scope = TX_GLOBAL;
    bool known = tx_ptr_split(in[0], e->vm->p->nmems, &mem, &off);
    if (known)
        scope = e->vm->p->mems[mem].scope;
    bool shared = scope == TX_SHARED || scope == TX_SHARED_DYN;
    out[0] = known && (HAS(shared) ? shared : HAS(local) ? scope == TX_LOCAL : HAS(global) && scope == TX_GLOBAL);
}

TX_PTX_LANE(policy)
{
    (void)e, (void)in;
    out[0] = 0x14f0000000000000; /* opaque: no instruction of the emulator looks into it */
}
