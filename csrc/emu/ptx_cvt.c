/* PTX cvt, one lane: any source type to an exact number, then one rounding into the target (rules measured on an H200).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "emu/lanes.h"
#include "emu/ptx_list.h"

#define HAS(t) tx_has_tok(e->k, TK_##t)

static int64_t
signed_of(const tx_ptx_ty *t, uint64_t v)
{
    return t->cls == 's' && t->bits < 64 ? (int64_t)(v << (64 - t->bits)) >> (64 - t->bits) : (int64_t)v;
}

/* ---- to integers ------------------------------------------------------------------------------------------------- */

static double
round_integral(double v, unsigned rnd)
{
    return rnd == RND_RZ ? trunc(v) : rnd == RND_RM ? floor(v) : rnd == RND_RP ? ceil(v) : rint(v);
}

static uint64_t
ptx_cvt_float_to_int(const tx_ptx_env *e, double v)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    if (v != v)
        return t->bits == 64 || e->k->in_t[0].fmt == FM_F64 ? 1ull << (t->bits - 1) : 0;
    v = round_integral(v, tx_ptx_rnd_of(e->k));
    if (t->bits == 64)
        return f64_i64(v, t->cls == 'u');
    double hi = (double)tx_ones(t->cls == 's' ? t->bits - 1u : t->bits), lo = t->cls == 's' ? -hi - 1 : 0;
    return (uint64_t)(int64_t)clamp_f64(v, lo, hi);
}

static uint64_t
ptx_cvt_int_to_int(const tx_ptx_env *e, uint64_t x)
{
    const tx_ptx_ty *s = &e->k->in_t[0], *t = &e->k->out_t[0];
    int64_t v = signed_of(s, x);
    bool huge = s->cls == 'u' && v < 0;
    if (!HAS(sat))
        return (uint64_t)v;
    uint64_t top = tx_ones(t->cls == 's' ? t->bits - 1u : t->bits);
    int64_t least = t->cls == 's' ? (int64_t)(~0ull << (t->bits - 1)) : 0;
    if (!huge && v < least)
        return (uint64_t)least;
    return (huge || v > 0) && (uint64_t)v > top ? top : (uint64_t)v;
}

/* ---- to floats --------------------------------------------------------------------------------------------------- */

/* cvt.rna.tf32 does not look for NaN: the code is rounded as a number, or only cut. */
static uint64_t
rna_tf32(const tx_ptx_env *e, uint64_t x)
{
    uint64_t mag = x & 0x7fffffff, r = mag >= 0x7f800000 ? x & 0xffffe000 : (x + 0x1000) & 0xffffe000;
    if (HAS(satfinite) && (r >> 23 & 0xff) == 0xff)
        r -= 0x2000;
    return r & 0xffffffff;
}

static unsigned
mantissa_of(unsigned fmt)
{
    return fmt == FM_F64 ? 52 : fmt == FM_F32 ? 23 : fmt == FM_F16 ? 10 : fmt == FM_BF16 ? 7 : 0;
}

typedef struct noise { /* of cvt.rs */
    uint32_t bits;
    unsigned n;
} noise;

/* float64 and bfloat16 hand the NaN on, its payload cut or widened; to the others it is one NaN. false: not so here. */
static bool
same_nan(const tx_ptx_env *e, const tx_ptx_ty *s, uint64_t code, uint64_t *to)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    unsigned from_bits, to_bits;
    if (t->lanes > 1 || HAS(sat) || !tx_ptx_is_nan(s->fmt, code))
        return false;
    if (HAS(ftz) && s->fmt == FM_F32)
        code = tx_ptx_nan(FM_F32);
    if (s->fmt == FM_BF16 && t->fmt == FM_F32 && !HAS(ftz))
        return *to = code << 16, true;
    if (s->fmt != FM_F64 && t->fmt != FM_F64)
        return false;
    if (!(from_bits = mantissa_of(s->fmt)) || !(to_bits = mantissa_of(t->fmt)))
        return false;
    uint64_t payload = code & tx_ones(from_bits), sign = code >> (s->bits - 1) & 1;
    payload = to_bits >= from_bits ? payload << (to_bits - from_bits) : payload >> (from_bits - to_bits);
    *to = sign << (t->bits - 1) | (tx_ones(t->bits - 1u) & ~tx_ones(to_bits)) | 1ull << (to_bits - 1) | payload;
    return true;
}

static uint64_t
float_to_float(const tx_ptx_env *e, const tx_ptx_ty *s, uint64_t code, double scale, noise r)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    unsigned rnd = tx_ptx_rnd_of(e->k);
    tx_ptx_num v;
    uint64_t nan;
    if (HAS(ftz) && s->fmt == FM_F32 && t->fmt != FM_F16)
        code = tx_ptx_flush(FM_F32, code);
    if (same_nan(e, s, code, &nan))
        return nan;
    if (t->fmt == FM_TF32 && rnd == RND_RNA)
        return rna_tf32(e, code);
    v = (tx_ptx_num){tx_ptx_decode(s->fmt, code) * scale, 0, 0};
    if (HAS(rni) || HAS(rzi) || HAS(rmi) || HAS(rpi))
        v.h = v.h == v.h ? copysign(round_integral(v.h, rnd), v.h) : v.h;
    if (HAS(sat))
        v.h = v.h != v.h || v.h <= 0 ? 0 : v.h > 1 ? 1 : v.h;
    if (HAS(relu) && v.h <= 0)
        v.h = 0;
    uint64_t c = tx_ptx_round(t->fmt, v, rnd, HAS(satfinite), r.bits, r.n);
    if (HAS(ftz) && t->fmt == FM_F32 && v.h == v.h && fabs(v.h) < 0x1p-126) /* before it is rounded */
        return (uint64_t)signbit(v.h) << 31;
    return c;
}

static uint64_t
int_to_float(const tx_ptx_env *e, uint64_t x)
{
    const tx_ptx_ty *s = &e->k->in_t[0], *t = &e->k->out_t[0];
    int64_t v = signed_of(s, x);
    bool neg = s->cls == 's' && v < 0;
    uint64_t one = tx_ptx_round_int(t->fmt, false, 1, RND_RN);
    if (HAS(sat))
        return neg || v == 0 ? 0 : one;
    return tx_ptx_round_int(t->fmt, neg, neg ? 0 - (uint64_t)v : (uint64_t)v, tx_ptx_rnd_of(e->k));
}

/* Which operand, and which element of it, makes element i of the result; operands are written highest first. */
static uint64_t
source_of(const tx_ptx_env *e, const uint64_t *in, unsigned i, const tx_ptx_ty **s)
{
    const tx_ptx_ty *t = &e->k->out_t[0];
    unsigned a = e->k->in_t[0].lanes > 1 ? 0 : t->lanes - 1 - i;
    *s = &e->k->in_t[a];
    return (*s)->lanes > 1 ? in[a] >> (*s)->bits * i & tx_ones((*s)->bits) : in[a];
}

TX_PTX_LANE(cvt)
{
    const tx_ptx_ty *t = &e->k->out_t[0], *s = &e->k->in_t[0];
    double scale[2] = {1, 1};
    noise r = {0, 0};
    uint64_t v = 0;

    if (t->fmt == FM_NONE) {
        out[0] =
            s->fmt == FM_NONE
                ? ptx_cvt_int_to_int(e, in[0])
                : ptx_cvt_float_to_int(
                      e, tx_ptx_decode(s->fmt, HAS(ftz) && s->fmt == FM_F32 ? tx_ptx_flush(s->fmt, in[0]) : in[0]));
        return;
    }
    if (s->fmt == FM_NONE) {
        out[0] = int_to_float(e, in[0]);
        return;
    }
    unsigned last = e->k->nin - 1u;
    if (e->k->in_t[last].fmt == FM_UE8M0 && last > 0)
        for (unsigned i = 0; i < 2; i++) {
            scale[i] = tx_ptx_decode(FM_UE8M0, in[last] >> 8 * i & 0xff);
            if (t->fmt == FM_S2F6)
                scale[i] = 1 / scale[i];
        }
    if (HAS(rs))
        r.n = t->lanes == 4 ? 8 : t->fmt == FM_F16 ? 13 : 16;
    for (unsigned i = 0; i < t->lanes; i++) {
        uint64_t code = source_of(e, in, i, &s);
        if (r.n)
            r.bits = (uint32_t)(in[last] >> (t->lanes == 4 ? 8 : 16) * i & tx_ones(r.n));
        v |= (float_to_float(e, s, code, scale[i & 1], r) & tx_ones(t->bits)) << t->bits * i;
    }
    out[0] = v;
}

/* Two float32 to one register of float16 or bfloat16, to nearest: a whole row. false: another instruction. */
bool
tx_ptx_cvt_pairs(const tx_ptx_op *k, tx_frag *f)
{
    const float *from[2];
    uint32_t step[2];
    if (k->emu != &tx_emu_ptx_cvt || k->nin != 2 || k->out_t->lanes != 2 || !k->out->row || k->out->vt == VT_B ||
        (k->out_t->fmt != FM_F16 && k->out_t->fmt != FM_BF16) || tx_bits(k->out->type) != 32 || !tx_has_tok(k, TK_rn) ||
        tx_has_tok(k, TK_relu) || tx_has_tok(k, TK_satfinite) || tx_has_tok(k, TK_ftz))
        return false;
    for (int i = 0; i < 2; i++) {
        if (k->in_t[i].fmt != FM_F32 || k->in_t[i].lanes != 1 || k->in[i].vt != VT_F32)
            return false;
        from[i] = (const float *)(const void *)(f->R + k->in[i].reg), step[i] = k->in[i].row;
    }
    uint32_t *to = (uint32_t *)(void *)(f->R + k->out->reg), r[TX_LANES];
    if (k->out_t->fmt == FM_F16)
        for (uint32_t l = 0; l < TX_LANES; l++)
            r[l] = f32_f16(from[0][l * step[0]]) << 16 | f32_f16(from[1][l * step[1]]);
    else
        for (uint32_t l = 0; l < TX_LANES; l++)
            r[l] = f32_bf16(from[0][l * step[0]]) << 16 | f32_bf16(from[1][l * step[1]]);
    for (uint32_t l = 0; l < TX_LANES; l++)
        to[l] = f->m >> l & 1 ? r[l] : to[l];
    return true;
}
