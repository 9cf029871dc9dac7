/* Matrices in the registers of a warp: ldmatrix, stmatrix, movmatrix, mma.sync dense and sparse (intrinsics reference, fragments).
 * Lane l is row g = l / 4 and column pair t = l % 4 of a fragment. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "emu/async.h"
#include "emu/dot.h"
#include "emu/ptx_list.h"
#include "emu/tc.h"

/* ---- registers --------------------------------------------------------------------------------------------------- */

/* An instruction with .aligned: all lanes of the warp that are still in the kernel execute it. */
bool
tx_act_whole(const tx_act *a)
{
    uint32_t live = a->f->warp->live;
    if (a->f->m == live || !a->vm->check)
        return true;
    tx_emu_report *r = tx_act_report(a, tx_first_lane(a->f->m), "divergence");
    tx_report_text(r, "%s is executed by some lanes of warp %u (0x%08x of 0x%08x): it is .aligned",
                   tx_site_of(a->vm, a->in->site)->role, a->f->warp->index, a->f->m, live);
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

/* 32 values of a 32-bit operand. */
const uint32_t *
tx_act_row(const tx_act *a, int i, uint32_t *room)
{
    const tx_vreg *r = &a->k->in[i];
    if (r->vt != VT_B && r->row && r->vt != VT_I64 && r->vt != VT_U64 && r->vt != VT_F64)
        return (const uint32_t *)(const void *)(a->f->R + r->reg);
    for (uint32_t l = 0; l < TX_LANES; l++)
        room[l] = (uint32_t)tx_act_in(a, i, l);
    return room;
}

static uint32_t *
out_row(const tx_act *a, uint32_t i)
{
    return (uint32_t *)(void *)(a->f->R + a->k->out[i].reg);
}

/* ---- ldmatrix and its like ------------------------------------------------------------------------------------------- */

/* The row of matrix i that a lane's address gives. */
static bool
matrix_rows(const tx_act *a, uint32_t n, bool store, tx_where *row)
{
    for (uint32_t l = 0; l < 8 * n && l < TX_LANES; l++) {
        if (!(a->f->warp->live >> l & 1)) {
            memset(&row[l], 0, sizeof row[l]);
            continue;
        }
        if (!tx_act_where(a, "p", l, 16, 16, store, &row[l]))
            return false;
        if (row[l].space == TX_GLOBAL) {
            tx_emu_report *r = tx_act_report(a, l, "out_of_bounds");
            tx_report_text(r, "%s takes addresses of shared memory", tx_site_of(a->vm, a->in->site)->role);
            return tx_report_end(a->vm, r) == TX_RUN_ON && false;
        }
    }
    return true;
}

static bool
matrix_touch(const tx_act *a, const tx_where *row, uint32_t n, bool trans, uint8_t kind)
{
    if (!a->vm->hooks)
        return true;
    tx_issue who = tx_act_issue(a, 0, false);
    uint32_t mem[8];
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t r = 0; r < 8; r++)
            mem[r] = row[8 * i + r].cta ? tx_mem_at(a->vm, row[8 * i + r].cta, row[8 * i + r].off) : UINT32_MAX;
        for (uint32_t l = 0; l < TX_LANES; l++) {
            if (!(a->f->warp->live >> l & 1))
                continue;
            who.lane = l;
            for (uint32_t h = 0; h < (trans ? 2u : 1u); h++) {
                uint32_t r = trans ? l % 4 * 2 + h : l / 4;
                const tx_where *w = &row[8 * i + r];
                tx_span_of s = {w->cta, w->off + (trans ? l / 4 * 2 : l % 4 * 4), trans ? 2 : 4, 0};
                if (w->cta && !tx_shadow_touch_in(&who, &s, kind, mem[r]))
                    return false;
            }
        }
    }
    return true;
}

/* ---- the same of bytes ------------------------------------------------------------------------------------------- */

/* Byte b of register h of a lane, in rows of 16 bytes. m16n16.trans: four rows of a column; register h of a matrix has its columns
 * from 8h on. m16n8.trans: two rows of a column, and of the one eight further. m8n16: four bytes of a row. */
enum { BYTES_M16N16, BYTES_M16N8, BYTES_M8N16 };

static void
matrix_byte_place(int shape, uint32_t l, uint32_t h, uint32_t b, uint32_t *r, uint32_t *c)
{
    uint32_t g = l / 4, t = l % 4;
    *r = shape == BYTES_M16N16 ? h / 2 * 16 + 4 * t + b : h * 8 + (shape == BYTES_M16N8 ? 2 * t + b % 2 : g);
    *c = shape == BYTES_M16N16 ? g + 8 * (h % 2) : shape == BYTES_M16N8 ? g + 8 * (b / 2) : 4 * t + b;
}

/* bits: of an element in memory, 8 where they are not packed */
static bool
matrix_touch_bytes(const tx_act *a, const tx_where *row, uint32_t regs, int shape, uint32_t bits, uint8_t kind)
{
    for (uint32_t n = 0; a->vm->hooks && n < 4 * regs * TX_LANES; n++) {
        uint32_t l = n / 4 / regs, r, c;
        tx_issue who = tx_act_issue(a, l, false);
        matrix_byte_place(shape, l, n / 4 % regs, n % 4, &r, &c);
        tx_span_of s = {row[r].cta, row[r].off + c * bits / 8, 1, 0};
        if ((a->f->warp->live >> l & 1) && row[r].cta && !tx_shadow_touch(&who, &s, kind))
            return false;
    }
    return true;
}

static int
matrix_load_bytes(const tx_act *a, bool square)
{
    tx_where row[TX_LANES];
    uint8_t m[TX_LANES][16];
    bool b4 = tx_act_has(a, TK_b4x16_p64), b6 = tx_act_has(a, TK_b6x16_p32);
    uint32_t n = a->k->nout;
    int shape = square ? BYTES_M16N16 : BYTES_M8N16;
    if (!tx_act_whole(a) || !matrix_rows(a, n, false, row) ||
        !matrix_touch_bytes(a, row, n, shape,
                            b4   ? 4
                            : b6 ? 6
                                 : 8,
                            TX_READ))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    memset(m, 0, sizeof m);
    for (uint32_t r = 0; r < 8 * n; r++)
        if (row[r].p)
            tx_unpack_16(b4, b6, row[r].p, m[r]);
    for (uint32_t h = 0; h < n; h++)
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t v = 0, r, c;
            for (uint32_t b = 0; b < 4; b++) {
                matrix_byte_place(shape, l, h, b, &r, &c);
                v |= (uint32_t)m[r][c] << 8 * b;
            }
            out_row(a, h)[l] = v;
        }
    return TX_RUN_ON;
}

static int
matrix_store_bytes(const tx_act *a)
{
    tx_where row[TX_LANES];
    uint32_t n = a->k->nin - 1u, room[TX_LANES];
    int first = tx_act_find(a->k, "r");
    if (!tx_act_whole(a) || !matrix_rows(a, n, true, row) || !matrix_touch_bytes(a, row, n, BYTES_M16N8, 8, TX_WRITE))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    for (uint32_t h = 0; h < n; h++) {
        const uint32_t *s = tx_act_row(a, first + (int)h, room);
        for (uint32_t i = 0; i < 4 * TX_LANES; i++) {
            uint32_t r, c;
            matrix_byte_place(BYTES_M16N8, i / 4, h, i % 4, &r, &c);
            if (row[r].p)
                row[r].p[c] = (uint8_t)(s[i / 4] >> 8 * (i % 4));
        }
    }
    a->vm->changes++;
    return TX_RUN_ON;
}

TX_PTX_MATRIX(ldmatrix)
{
    tx_where row[TX_LANES];
    uint32_t n = a->k->nout;
    bool trans = tx_act_has(a, TK_trans);
    if (!tx_act_has(a, TK_m8n8))
        return matrix_load_bytes(a, tx_act_has(a, TK_m16n16));
    if (!tx_act_whole(a) || !matrix_rows(a, n, false, row) || !matrix_touch(a, row, n, trans, TX_READ))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t m[8][8];
        uint32_t *d = out_row(a, i);
        for (uint32_t r = 0; r < 8; r++)
            if (row[8 * i + r].p)
                memcpy(m[r], row[8 * i + r].p, 16);
            else
                memset(m[r], 0, 16);
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t g = l / 4, c = l % 4 * 2;
            d[l] = trans ? m[c][g] | (uint32_t)m[c + 1][g] << 16 : m[g][c] | (uint32_t)m[g][c + 1] << 16;
        }
    }
    return TX_RUN_ON;
}

TX_PTX_MATRIX(stmatrix)
{
    tx_where row[TX_LANES];
    uint32_t n = a->k->nin - 1u, room[TX_LANES];
    int first = tx_act_find(a->k, "r");
    bool trans = tx_act_has(a, TK_trans);
    if (!tx_act_has(a, TK_m8n8))
        return matrix_store_bytes(a);
    if (!tx_act_whole(a) || !matrix_rows(a, n, true, row) || !matrix_touch(a, row, n, trans, TX_WRITE))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    for (uint32_t i = 0; i < n; i++) {
        uint16_t m[8][8];
        const uint32_t *s = tx_act_row(a, first + (int)i, room);
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t g = l / 4, c = l % 4 * 2;
            uint16_t lo = (uint16_t)s[l], hi = (uint16_t)(s[l] >> 16);
            if (trans)
                m[c][g] = lo, m[c + 1][g] = hi;
            else
                m[g][c] = lo, m[g][c + 1] = hi;
        }
        for (uint32_t r = 0; r < 8; r++)
            if (row[8 * i + r].p)
                memcpy(row[8 * i + r].p, m[r], 16);
    }
    a->vm->changes++;
    return TX_RUN_ON;
}

TX_PTX_MATRIX(movmatrix)
{
    uint32_t room[TX_LANES], v[TX_LANES];
    if (!tx_act_whole(a))
        return TX_RUN_STOP;
    memcpy(v, tx_act_row(a, 0, room), sizeof v);
    uint32_t *d = out_row(a, 0);
    for (uint32_t l = 0; l < TX_LANES; l++) {
        uint32_t g = l / 4, c = l % 4 * 2;
        d[l] = (v[4 * c + g / 2] >> 16 * (g & 1) & 0xffff) | (v[4 * (c + 1) + g / 2] >> 16 * (g & 1)) << 16;
    }
    return TX_RUN_ON;
}

/* ---- mma.sync ---------------------------------------------------------------------------------------------------- */

typedef struct mma_tile {
    uint32_t a[16][64], b[8][64]; /* codes, k innermost */
    uint32_t c[16][8], d[16][8];
    uint32_t k;
    uint8_t (*met)[32]; /* of a sparse A: which elements of B a row's k meet; NULL: all in order */
} mma_tile;

static unsigned
mma_format(const tx_act *a, bool second)
{
    if (tx_act_has(a, TK_bf16))
        return FM_BF16;
    if (tx_act_has(a, TK_tf32))
        return FM_TF32;
    bool e4 = tx_act_has(a, TK_e4m3), e5 = tx_act_has(a, TK_e5m2);
    if (e4 && e5) {
        const char *t = tx_ptx_slot(a->k, second ? "bt" : "at");
        return t && t[1] == '4' ? FM_E4M3 : FM_E5M2;
    }
    return e4 ? FM_E4M3 : e5 ? FM_E5M2 : FM_F16;
}

/* Codes of a fragment: per of them in a register; rows (A) or columns (B) of 8. */
static void
mma_unpack(const tx_act *a, int first, uint32_t nregs, uint32_t per, uint32_t (*to)[64], bool is_b)
{
    uint32_t room[TX_LANES], bits = 32 / per;
    uint64_t mask = (1ull << bits) - 1;
    for (uint32_t i = 0; i < nregs; i++) {
        const uint32_t *v = tx_act_row(a, first + (int)i, room);
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t g = l / 4 + (is_b ? 0 : 8 * (i & 1)), k = per * (l % 4) + 4 * per * (is_b ? i : i >> 1);
            for (uint32_t e = 0; e < per; e++)
                to[g][k + e] = (uint32_t)(v[l] >> bits * e & mask);
        }
    }
}

static void
mma_accumulators(const tx_act *a, int first, bool half, uint32_t (*c)[8])
{
    uint32_t room[TX_LANES];
    for (uint32_t i = 0; i < (half ? 2u : 4u); i++) {
        const uint32_t *v = tx_act_row(a, first + (int)i, room);
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t g = l / 4, t = l % 4 * 2;
            if (half)
                c[g + 8 * i][t] = v[l] & 0xffff, c[g + 8 * i][t + 1] = v[l] >> 16;
            else
                c[g + 8 * (i / 2)][t + i % 2] = v[l];
        }
    }
}

static void
mma_store(const tx_act *a, bool half, uint32_t (*d)[8])
{
    for (uint32_t i = 0; i < (half ? 2u : 4u); i++) {
        uint32_t *v = out_row(a, i);
        for (uint32_t l = 0; l < TX_LANES; l++) {
            uint32_t g = l / 4, t = l % 4 * 2;
            v[l] = half ? d[g + 8 * i][t] | d[g + 8 * i][t + 1] << 16 : d[g + 8 * (i / 2)][t + i % 2];
        }
    }
}

static void
mma_integers(const tx_act *a, mma_tile *m)
{
    const char *at = tx_ptx_slot(a->k, "at"), *bt = tx_ptx_slot(a->k, "bt");
    bool sa = at && *at == 's', sb = bt && *bt == 's', sat = tx_act_has(a, TK_satfinite);
    for (uint32_t r = 0; r < 16; r++)
        for (uint32_t c = 0; c < 8; c++) {
            int64_t sum = (int32_t)m->c[r][c];
            for (uint32_t k = 0; k < m->k; k++) {
                int32_t x = sa ? (int8_t)m->a[r][k] : (int32_t)m->a[r][k];
                int32_t y = sb ? (int8_t)m->b[c][k] : (int32_t)m->b[c][k];
                sum += x * y;
            }
            sum = sat && sum > INT32_MAX ? INT32_MAX : sat && sum < INT32_MIN ? INT32_MIN : sum;
            m->d[r][c] = (uint32_t)sum;
        }
}

static void
mma_floats(const tx_act *a, mma_tile *m, bool half)
{
    tx_dot how = {(uint8_t)mma_format(a, false), (uint8_t)mma_format(a, true), half ? FM_F16 : FM_F32, true};
    bool exact = a->vm->o->hardware_numerics;
    uint32_t met[8][64];
    float y[64][8];
    for (uint32_t r = 0; r < 16; r++) {
        uint32_t (*b)[64] = m->met ? met : m->b;
        float s[8];
        for (uint32_t c = 0; m->met && c < 8; c++)
            for (uint32_t k = 0; k < m->k; k++)
                met[c][k] = m->b[c][m->met[r][k]];
        for (uint32_t c = 0; exact && c < 8; c++)
            m->d[r][c] = tx_dot_exact(&how, m->a[r], b[c], m->k, m->c[r][c]);
        if (exact)
            continue;
        for (uint32_t k = 0; (m->met || r == 0) && k < m->k; k++)
            for (uint32_t c = 0; c < 8; c++)
                y[k][c] = tx_dot_float(how.b, b[c][k]);
        for (uint32_t c = 0; c < 8; c++)
            s[c] = tx_dot_float(how.c, m->c[r][c]);
        for (uint32_t k = 0; k < m->k; k++) {
            float x = tx_dot_float(how.a, m->a[r][k]);
            for (uint32_t c = 0; c < 8; c++)
                s[c] += x * y[k][c];
        }
        for (uint32_t c = 0; c < 8; c++) {
            memcpy(&m->d[r][c], &s[c], 4);
            if (half)
                m->d[r][c] = s[c] != s[c] ? 0x7fff : (uint32_t)tx_encode(TX_F16, (double)s[c]);
            else if (s[c] != s[c])
                m->d[r][c] = 0x7fffffff;
        }
    }
}

/* m8n8k4: k ascending, each step fused. */
static int
mma_doubles(const tx_act *a)
{
    double x[8][4], y[4][8], c[8][8];
    int ia = tx_act_find(a->k, "a"), ib = tx_act_find(a->k, "b"), ic = tx_act_find(a->k, "c");
    for (uint32_t l = 0; l < TX_LANES; l++) {
        uint64_t v = tx_act_in(a, ia, l);
        memcpy(&x[l / 4][l % 4], &v, 8);
        v = tx_act_in(a, ib, l);
        memcpy(&y[l % 4][l / 4], &v, 8);
        for (int i = 0; i < 2; i++) {
            v = tx_act_in(a, ic + i, l);
            memcpy(&c[l / 4][l % 4 * 2 + (uint32_t)i], &v, 8);
        }
    }
    for (int k = 0; k < 4; k++)
        for (int r = 0; r < 8; r++)
            for (int n = 0; n < 8; n++)
                c[r][n] = tx_ptx_fma_f64(x[r][k], y[k][n], c[r][n]);
    for (uint32_t l = 0; l < TX_LANES; l++)
        for (uint32_t i = 0; i < 2; i++) {
            uint64_t v;
            memcpy(&v, &c[l / 4][l % 4 * 2 + i], 8);
            tx_act_out(a, i, l, v);
        }
    return TX_RUN_ON;
}

/* Registers of the operand that begins at `first`. */
static uint32_t
group_size(const tx_ptx_op *k, int first)
{
    uint32_t n = 1;
    while (first + (int)n < k->nin && k->in_name[first + (int)n][0] == k->in_name[first][0])
        n++;
    return n;
}

TX_PTX_MATRIX(mma)
{
    mma_tile m;
    int ia = tx_act_find(a->k, "a"), ib = tx_act_find(a->k, "b"), ic = tx_act_find(a->k, "c");
    bool half = a->k->nout == 2, integers = a->k->out_t[0].cls != 'f' && !half;
    if (!tx_act_whole(a))
        return TX_RUN_STOP;
    if (a->k->out_t[0].bits == 64)
        return mma_doubles(a);
    uint32_t nb = group_size(a->k, ib), per = tx_act_has(a, TK_tf32)                                         ? 1
                                              : integers || tx_act_has(a, TK_e4m3) || tx_act_has(a, TK_e5m2) ? 4
                                                                                                             : 2;
    m.k = nb * per * 4, m.met = NULL;
    mma_unpack(a, ia, group_size(a->k, ia), per, m.a, false);
    mma_unpack(a, ib, nb, per, m.b, true);
    mma_accumulators(a, ic, half, m.c);
    if (integers)
        mma_integers(a, &m);
    else
        mma_floats(a, &m, half);
    mma_store(a, half, m.d);
    return TX_RUN_ON;
}

TX_PTX_MATRIX(mma_sp)
{
    mma_tile m;
    uint32_t room[TX_LANES];
    uint8_t met[16][32];
    int ia = tx_act_find(a->k, "a"), ib = tx_act_find(a->k, "b"), ic = tx_act_find(a->k, "c");
    uint32_t select = (uint32_t)tx_act_in(a, tx_act_find(a->k, "f"), 0), na = group_size(a->k, ia);
    bool half = a->k->nout == 2, wide = na == 4;
    if (!tx_act_whole(a))
        return TX_RUN_STOP;
    const uint32_t *e = tx_act_row(a, tx_act_find(a->k, "e"), room);
    m.k = wide ? 16 : 8, m.met = met;
    mma_unpack(a, ia, na, 2, m.a, false);
    mma_unpack(a, ib, group_size(a->k, ib), 2, m.b, true);
    mma_accumulators(a, ic, half, m.c);
    for (uint32_t g = 0; g < 8; g++)
        for (uint32_t h = 0; h < (wide ? 2u : 1u); h++)
            for (uint32_t n = 0; n < 8; n++) {
                uint32_t lane = 4 * g + (wide ? 2 * select + h : select), nibble = e[lane] >> 4 * n & 15;
                uint32_t row = g + 8 * (n / 4), group = 4 * h + n % 4;
                met[row][2 * group] = (uint8_t)(4 * group + (nibble & 3));
                met[row][2 * group + 1] = (uint8_t)(4 * group + (nibble >> 2));
            }
    mma_floats(a, &m, half);
    mma_store(a, half, m.d);
    return TX_RUN_ON;
}
