/* tcgen05.mma: products into tensor memory, by the instruction descriptor and the placement tables of the intrinsics reference.
 * Values: products and sums in fp32, or with numerics="hardware" the model of Hopper's units (dot.c); block scales are applied to the
 * partial sum of their block. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/dot.h"
#include "emu/ptx_list.h"
#include "emu/tc.h"

enum { MMA_N = 256, MMA_K = 64 }; /* at most; K as A holds it */
enum d_format { D_F16, D_F32, D_S32 };

typedef struct tc_operand {
    tc_desc desc;
    bool in_tmem, mn_major, negate, sign; /* sign: of an integer */
    uint8_t fmt;                          /* tx_ptx_format; FM_NONE: 8-bit integers */
    uint8_t bits, es;                     /* of an element; bytes of its container, 0: two in a byte */
    uint16_t column;                      /* in tensor memory */
} tc_operand;

typedef struct tc_mma {
    tmem_work head;
    tc_operand a, b;
    uint16_t m, n, k, kb, d_column; /* K of A as it is held, and of B: twice that when A is sparse */
    uint8_t d;                      /* d_format */
    bool accumulate, saturate, ws, scaled, ue8m0, sparse;
    uint8_t nblocks, sfa_byte, sfb_byte;
    uint16_t sfa, sfb, meta; /* columns of the scales, and of a sparse A's metadata */
    uint32_t mask[8];        /* lanes of D that stay as they are */
    uint64_t zero;           /* .ws: the mask of columns of B that count as zeros, as the descriptor says it; 0: none */
    uint32_t nctas;
    tx_cta *cta[2];
} tc_mma;

/* ---- the instruction descriptor ---------------------------------------------------------------------------------------- */

enum tc_kind { KIND_F16, KIND_TF32, KIND_F8, KIND_I8, KIND_MXF8, KIND_MXF4, KIND_NVF4 };
static const struct {
    uint8_t token, k;
} kinds[] = {{TK_kind__f16, 16},      {TK_kind__tf32, 8},  {TK_kind__f8f6f4, 32},  {TK_kind__i8, 32},
             {TK_kind__mxf8f6f4, 32}, {TK_kind__mxf4, 64}, {TK_kind__mxf4nvf4, 64}};

static bool
mma_complain(const tx_act *a, uint32_t lane, const char *what, long long x, long long y)
{
    tx_emu_report *r = tx_tmem_report(a, lane, "tmem");
    char text[160];
    snprintf(text, sizeof text, what, x, y);
    tx_report_text(r, "%s: %s", tx_site_of(a->vm, a->in->site)->role, text);
    tx_report_end(a->vm, r);
    return false;
}

static bool
operand_format(tc_operand *o, enum tc_kind kind, unsigned code)
{
    static const uint8_t f8[] = {FM_E4M3, FM_E5M2, FM_NONE, FM_E2M3, FM_E3M2, FM_E2M1, FM_NONE, FM_NONE};
    static const uint8_t f8_bits[] = {8, 8, 0, 6, 6, 4, 0, 0};
    switch (kind) {
    case KIND_F16: o->fmt = code ? FM_BF16 : FM_F16, o->bits = 16, o->es = 2; return code < 2;
    case KIND_TF32: o->fmt = FM_TF32, o->bits = 32, o->es = 4; return code == 2;
    case KIND_I8: o->fmt = FM_NONE, o->bits = 8, o->es = 1, o->sign = code == 1; return code < 2;
    case KIND_F8:
    case KIND_MXF8: o->fmt = f8[code], o->bits = f8_bits[code], o->es = 1; return o->bits != 0;
    default: o->fmt = FM_E2M1, o->bits = 4, o->es = 0; return code == 1;
    }
}

static void
add_span(tc_mma *j, uint32_t windows, bool write, uint32_t column, uint32_t n)
{
    for (uint32_t p = 0; p < j->nctas; p++)
        j->head.span[j->head.nspans++] = (tmem_span){j->cta[p], (uint8_t)windows, write, (uint16_t)column, (uint16_t)n};
}

/* Metadata: four bits for each group of A's row, two columns of them; of 16- and 32-bit elements only one, which a selector names. */
static bool
read_sparse(const tx_act *a, uint32_t l, tc_mma *j, enum tc_kind kind, uint32_t selector)
{
    bool one = kind == KIND_F16 || kind == KIND_TF32;
    uint32_t e = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "e"), l);
    if (j->m != TMEM_LANES * j->nctas) {
        tx_emu_report *r = tx_act_report(a, l, "unsupported");
        tx_report_text(r, "%s: where the metadata of M %u lies is not known, of M %u it is",
                       tx_site_of(a->vm, a->in->site)->role, (unsigned)j->m, TMEM_LANES * j->nctas);
        tx_report_end(a->vm, r);
        return false;
    }
    if (e >> 16 || e & 1)
        return mma_complain(a, l, "the metadata starts at lane %lld, column %lld; it starts at lane 0, an even column",
                            e >> 16, e & 0xffff);
    if (selector > (one ? 1u : 0u))
        return mma_complain(a, l, "sparsity selector %lld, of which the kind has %lld", selector, one ? 2 : 1);
    j->meta = (uint16_t)(e + selector);
    j->kb = (uint16_t)(2 * j->k);
    add_span(j, 15, false, j->meta, one ? 1 : 2);
    return true;
}

static bool
read_instruction(const tx_act *a, uint32_t l, tc_mma *j, enum tc_kind kind)
{
    uint32_t id = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "id"), l);
    bool pair = j->nctas == 2;
    j->scaled = kind >= KIND_MXF8;
    j->n = (uint16_t)((id >> 17 & 63) << 3), j->m = (uint16_t)((id >> 24 & 31) << 4), j->k = kinds[kind].k;
    j->d = (uint8_t)(id >> 4 & 3);
    j->a.negate = id >> 13 & 1, j->b.negate = id >> 14 & 1;
    j->a.mn_major = id >> 15 & 1, j->b.mn_major = id >> 16 & 1;
    j->saturate = kind == KIND_I8 && id >> 3 & 1;
    j->kb = j->k;
    if (!operand_format(&j->a, kind, id >> 7 & 7) || !operand_format(&j->b, kind, id >> 10 & 7))
        return mma_complain(a, l, "the instruction descriptor names formats %lld and %lld, which the kind has not",
                            id >> 7 & 7, id >> 10 & 7);
    if (j->scaled)
        j->d = D_F32, j->sfb_byte = id >> 4 & 3, j->sfa_byte = id >> 29 & 3, j->ue8m0 = id >> 23 & 1;
    if (j->d > D_S32 || (j->d == D_S32) != (kind == KIND_I8) || (j->d == D_F16 && (kind == KIND_TF32)))
        return mma_complain(a, l, "the instruction descriptor asks for result format %lld, which the kind has not",
                            j->d, 0);
    bool m_ok = pair ? j->m == 128 || j->m == 256 : j->m == 128 || (j->m == 64 && !j->scaled) || (j->m == 32 && j->ws);
    unsigned step = j->scaled ? (pair ? 16 : 8) : pair ? 32 : j->m == 128 ? 16 : 8;
    if (!m_ok || j->n == 0 || j->n > MMA_N || j->n % step)
        return mma_complain(a, l, "the instruction descriptor asks for M %lld and N %lld, which the kind has not", j->m,
                            j->n);
    if (!j->sparse != !(id >> 2 & 1))
        return mma_complain(a, l,
                            j->sparse ? "the instruction descriptor does not say that A is sparse (bit 2)"
                                      : "the instruction descriptor says that A is sparse (bit 2), the instruction not",
                            0, 0);
    return !j->sparse || read_sparse(a, l, j, kind, id & 3);
}

/* ---- where things lie -------------------------------------------------------------------------------------------------- */

/* Element (r, c) of the result: CTA of the pair, lane and column from the first. */
static inline uint32_t
place_of_result(const tc_mma *j, uint32_t r, uint32_t c, uint32_t *lane, uint32_t *column)
{
    if (j->nctas == 2 && j->m == 256)
        return *lane = r % 128, *column = c, r / 128;
    if (j->nctas == 2)
        return *lane = r % 64 + 64 * (c / (j->n / 2u)), *column = c % (j->n / 2u), r / 64;
    if (j->m == 64 && j->ws)
        return *lane = r + 64 * (c / (j->n / 2u)), *column = c % (j->n / 2u), 0;
    if (j->m == 32)
        return *lane = r + 32 * (c / (j->n / 4u)), *column = c % (j->n / 4u), 0;
    if (j->m == 64)
        return *lane = r / 16 * 32 + r % 16, *column = c, 0;
    return *lane = r, *column = c, 0;
}

static uint32_t
result_columns(const tc_mma *j)
{
    if (j->nctas == 2 && j->m == 128)
        return j->n / 2u;
    return j->ws && j->m == 64 ? j->n / 2u : j->m == 32 ? j->n / 4u : j->n;
}

/* Bytes of the K extent of an operand's row. */
static uint32_t
row_bytes(const tc_operand *o, uint32_t k)
{
    return o->es ? k * o->es : k / 2;
}

/* The 16-byte pieces of an operand in shared memory: for each, f(row, k of its first element, window address). */
typedef bool (*piece_fn)(void *self, uint32_t row, uint32_t k, uint32_t address);
static bool
each_piece(const tc_operand *o, uint32_t rows, uint32_t k, piece_fn f, void *self)
{
    if (o->mn_major) {
        uint32_t per = 16u / o->es;
        for (uint32_t kk = 0; kk < k; kk++)
            for (uint32_t r = 0; r < rows; r += per)
                if (!f(self, r, kk, tx_tc_address(&o->desc, true, r, 0, kk, o->es)))
                    return false;
        return true;
    }
    uint32_t bytes = row_bytes(o, k), per = k * 16 / bytes;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t b = 0; b < bytes; b += 16)
            if (!f(self, r, b / 16 * per, tx_tc_address(&o->desc, false, r, b, 0, 1)))
                return false;
    return true;
}

/* ---- operands as numbers ------------------------------------------------------------------------------------------------ */

/* Element i of a piece of 16 bytes. */
static inline uint32_t
code_in_piece(const tc_operand *o, const uint8_t *p, uint32_t i)
{
    uint16_t h;
    uint32_t w;
    switch (o->bits) {
    case 16: memcpy(&h, p + 2 * i, 2); return h;
    case 32: memcpy(&w, p + 4 * i, 4); return w;
    case 8: return p[i];
    case 6: w = i * 6; return (p[w / 8] | (uint32_t)p[w / 8 + 1] << 8) >> w % 8 & 63;
    default: return p[i / 2] >> i % 2 * 4 & 15;
    }
}

static float
number_of(const tc_operand *o, uint32_t code)
{
    float v;
    if (o->fmt == FM_NONE)
        v = o->sign ? (float)(int8_t)code : (float)code;
    else if (o->bits < 8)
        v = (float)tx_ptx_decode(o->fmt, code);
    else
        v = tx_dot_float(o->fmt, code);
    return o->negate ? -v : v;
}

typedef struct panel { /* codes[row][k] of an operand */
    const tc_operand *o;
    const uint8_t *shared;
    uint32_t first, k;
    uint32_t *code;
} panel;

static bool
take_piece(void *self, uint32_t row, uint32_t k, uint32_t address)
{
    panel *p = self;
    const uint8_t *from = p->shared + (address - TX_SYSTEM_BYTES);
    uint32_t n = p->o->es ? 16u / p->o->es : 32;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = code_in_piece(p->o, from, i);
        if (p->o->mn_major)
            p->code[(p->first + row + i) * p->k + k] = c;
        else
            p->code[(p->first + row) * p->k + k + i] = c;
    }
    return true;
}

/* A in tensor memory: a row lies in the lanes of its result, several elements to a cell. */
static void
take_from_tmem(const tc_mma *j, panel *p)
{
    const tc_operand *o = p->o;
    uint32_t per = 32u / (8u * o->es);
    for (uint32_t r = 0; r < j->m; r++)
        for (uint32_t k = 0; k < j->k; k++) {
            uint32_t lane, column, cta = place_of_result(j, r, 0, &lane, &column);
            uint32_t cell = j->cta[cta]->engine->tmem->cell[o->column + k / per][lane];
            uint32_t code = cell >> k % per * (8u * o->es) & (o->es == 4 ? ~0u : (1u << 8 * o->es) - 1);
            p->code[r * j->k + k] = o->bits == 4 ? code >> 2 & 15 : o->bits == 6 ? code & 63 : code;
        }
}

static void
take_operand(const tc_mma *j, const tc_operand *o, uint32_t rows, uint32_t k, uint32_t *code)
{
    panel p = {o, NULL, 0, k, code};
    if (o->in_tmem) {
        take_from_tmem(j, &p);
        return;
    }
    for (uint32_t c = 0; c < j->nctas; c++) {
        p.shared = j->cta[c]->shared;
        p.first = c * rows / j->nctas;
        each_piece(o, rows / j->nctas, k, take_piece, &p);
    }
}

/* ---- products ------------------------------------------------------------------------------------------------------------ */

static double
scale_of(const tc_mma *j, uint32_t cta, uint32_t column, uint32_t byte, uint32_t row)
{
    uint32_t cell = j->cta[cta]->engine->tmem->cell[column + row / 32][row % 32], code = cell >> byte * 8 & 255;
    if (j->ue8m0)
        return tx_ptx_decode(FM_UE8M0, code);
    return tx_ptx_decode(FM_E4M3, code & 127); /* without a sign */
}

static float
half_value(uint32_t code)
{
    return tx_dot_float(FM_F16, code & 0xffff);
}

static uint32_t
half_code(float v)
{
    if (v != v)
        return (uint32_t)tx_ptx_nan(FM_F16);
    return (uint32_t)tx_ptx_round(FM_F16, (tx_ptx_num){v, 0, 0}, RND_RN, false, 0, 0);
}

/* One element of a floating product. */
static uint32_t
element(const tc_mma *j, const float *x, const float *y, uint32_t r, uint32_t c, uint32_t cta, uint32_t old)
{
    float s = !j->accumulate ? 0 : j->d == D_F16 ? half_value(old) : tx_dot_float(FM_F32, old);
    uint32_t code;
    if (!j->scaled) {
        for (uint32_t k = 0; k < j->k; k++)
            s += x[k] * y[k];
    } else {
        uint32_t rows = j->m / j->nctas, block = j->k / j->nblocks;
        for (uint32_t q = 0; q < j->nblocks; q++) {
            float part = 0;
            for (uint32_t k = q * block; k < (q + 1) * block; k++)
                part += x[k] * y[k];
            s += (float)(part * scale_of(j, cta, j->sfa, j->sfa_byte + q, r % rows) *
                         scale_of(j, cta, j->sfb, j->sfb_byte + q, c));
        }
    }
    if (j->d == D_F16)
        return half_code(s);
    memcpy(&code, &s, 4);
    return s != s ? 0x7fffffff : code;
}

static uint32_t
exact_element(const tc_mma *j, const uint32_t *x, const uint32_t *y, uint32_t old)
{
    tx_dot m = {j->a.fmt, j->b.fmt, j->d == D_F16 ? FM_F16 : FM_F32, false};
    uint32_t sa = j->a.negate ? 1u << (j->a.bits - 1) : 0, sb = j->b.negate ? 1u << (j->b.bits - 1) : 0;
    uint32_t a[MMA_K], b[MMA_K];
    for (uint32_t k = 0; k < j->k; k++)
        a[k] = x[k] ^ sa, b[k] = y[k] ^ sb;
    return tx_dot_exact(&m, a, b, j->k, j->accumulate ? old : 0);
}

static uint32_t
integer_element(const tc_mma *j, const uint32_t *x, const uint32_t *y, uint32_t old)
{
    int64_t s = j->accumulate ? (int32_t)old : 0;
    for (uint32_t k = 0; k < j->k; k++)
        s += (int64_t)(j->a.sign ? (int8_t)x[k] : (int32_t)x[k]) * (j->b.sign ? (int8_t)y[k] : (int32_t)y[k]);
    if (j->saturate)
        s = s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s;
    return (uint32_t)s;
}

/* 16-bit operands as panels of float32: to[row][16], or turned to[row / 16][16][row % 16]. */
static void
widen_operand(const tx_isa *isa, const tc_operand *o, const uint8_t *shared, uint32_t rows, float *to, bool turned)
{
    const uint8_t *piece[8];
    bool bf16 = o->fmt == FM_BF16;
    for (uint32_t r = 0; r < rows; r += 8)
        for (uint32_t k = 0; k < 16; k += 8) {
            float *at = turned ? to + r / 16 * 256 + k * 16 + r % 16 : to + r * 16 + k;
            for (uint32_t i = 0; i < 8; i++)
                piece[i] = shared - TX_SYSTEM_BYTES +
                           (o->mn_major ? tx_tc_address(&o->desc, true, r, 0, k + i, 2)
                                        : tx_tc_address(&o->desc, false, r + i, 2 * k, 0, 2));
            if (turned != o->mn_major)
                isa->widen_turned(at, 16, piece, bf16);
            else
                for (uint32_t i = 0; i < 8; i++)
                    isa->widen(at + i * 16, piece[i], bf16);
        }
}

/* The common case: 16-bit operands in shared memory, fp32 results in 128 lanes. */
static void
multiply_halves(const tx_vm *vm, const tc_mma *j)
{
    float x[MMA_N * 16], y[16 * TMEM_LANES], d[16 * TMEM_LANES];
    for (uint32_t p = 0; p < j->nctas; p++)
        widen_operand(vm->isa, &j->b, j->cta[p]->shared, j->n / j->nctas, x + p * j->n / j->nctas * 16, false);
    for (uint32_t i = 0; i < j->n * 16u && j->a.negate != j->b.negate; i++)
        x[i] = -x[i];
    bool known = j->a.fmt == FM_F16, ranged = known || vm->isa->within_exact(x, j->n * 16u);
    for (uint32_t p = 0; p < j->nctas; p++) {
        tx_tmem *t = j->cta[p]->engine->tmem;
        widen_operand(vm->isa, &j->a, j->cta[p]->shared, TMEM_LANES, y, true);
        bool exact = known || (ranged && vm->isa->within_exact(y, 16 * TMEM_LANES));
        for (uint32_t c = 0; c < j->n; c += 16) {
            if (j->accumulate)
                memcpy(d, t->cell[j->d_column + c], sizeof d);
            else
                memset(d, 0, sizeof d);
            vm->isa->multiply(d, TMEM_LANES, x + c * 16, 16, y, 16, TMEM_LANES, exact);
            memcpy(t->cell[j->d_column + c], d, sizeof d);
        }
        memset(t->written[j->d_column], 255, j->n * sizeof t->written[0]);
    }
}

static bool
has_masked_lanes(const tc_mma *j)
{
    uint32_t any = 0;
    for (int i = 0; i < 8; i++)
        any |= j->mask[i];
    return any;
}

static bool
is_common(const tc_mma *j)
{
    return j->d == D_F32 && !j->scaled && !j->a.in_tmem && j->a.es == 2 && j->a.fmt == j->b.fmt &&
           j->m == TMEM_LANES * j->nctas && j->n % (16 * j->nctas) == 0 && !has_masked_lanes(j) && !j->zero &&
           !j->sparse;
}

/* Spans of columns that are used and of zeros take turns, in each of the parts of N that lie side by side in tensor memory: one for 128
 * rows, two for 64, four for 32. A part begins `start` columns into the pattern, which begins with a span of zeros if `first` says so. */
static bool
counts_as_zero(const tc_mma *j, uint32_t c)
{
    uint32_t per = j->n / (128u / j->m), part = c / per, use = (uint32_t)(j->zero >> 40 & 255) + 1,
             zeros = (uint32_t)(j->zero >> 48 & 255) + 1, first = (uint32_t)(j->zero >> (32 + part) & 1),
             at = (c % per + (uint32_t)(j->zero >> 8 * part & 255)) % (use + zeros);
    return first ? at < zeros : at >= use;
}

/* Which elements of a row of B the elements of row r of A meet. A group is what four bits describe: two of four elements, one of two
 * of 32 bits, two pairs of four of 4 bits. A row's groups lie in its lane; those of 16 and 32 bits share their lanes with another row. */
static void
read_metadata(const tc_mma *j, uint32_t r, uint8_t *met)
{
    const tx_tmem *t = j->cta[r / TMEM_LANES]->engine->tmem;
    uint32_t per = j->a.bits == 32 ? 1 : j->a.bits == 4 && j->a.es == 0 ? 4 : 2, row = r % TMEM_LANES;
    bool shared = j->a.es >= 2;
    for (uint32_t k = 0; k < j->k; k++) {
        uint32_t g = k / per, lane = shared ? row % 8 + g / 4 * 8 + row / 16 * 16 : row,
                 column = j->meta + (shared ? 0 : g / 8u), nibble = shared ? g % 4 + row / 8 % 2 * 4 : g % 8,
                 pair = t->cell[column][lane] >> 4 * nibble & 15;
        if (per == 1) /* halves of the element: 0100 or 1110 */
            met[k] = (uint8_t)(2 * g + (pair >> 1 & 1));
        else if (per == 2)
            met[k] = (uint8_t)(4 * g + (pair >> k % 2 * 2 & 3));
        else
            met[k] = (uint8_t)(8 * g + 2 * (pair >> k / 2 % 2 * 2 & 3) + k % 2);
    }
}

static bool
mma_write(tx_vm *vm, tx_work *w)
{
    const tc_mma *j = w->data;
    size_t na = (size_t)j->m * j->k, nb = (size_t)j->n * j->kb;
    bool exact = vm->o->hardware_numerics && j->d != D_S32 && !j->scaled && j->a.bits >= 8 && j->b.bits >= 8;
    if (!exact && is_common(j)) {
        multiply_halves(vm, j);
        return true;
    }
    uint32_t *xc = tx_malloc((na + nb) * 8), *yc = xc + na;
    float *x = (float *)(void *)(yc + nb), *y = x + na;
    if (!xc)
        return tx_vm_nomem(vm), false;
    take_operand(j, &j->a, j->m, j->k, xc);
    take_operand(j, &j->b, j->n, j->kb, yc);
    for (uint32_t c = 0; j->zero && c < j->n; c++)
        if (counts_as_zero(j, c))
            memset(yc + c * j->kb, 0, j->kb * sizeof *yc);
    for (size_t i = 0; i < na && !exact && j->d != D_S32; i++)
        x[i] = number_of(&j->a, xc[i]);
    for (size_t i = 0; i < nb && !exact && j->d != D_S32; i++)
        y[i] = number_of(&j->b, yc[i]);
    for (uint32_t r = 0; r < j->m; r++) {
        uint8_t met[MMA_K];
        if (j->sparse)
            read_metadata(j, r, met);
        for (uint32_t c = 0; c < j->n; c++) {
            uint32_t lane, column, p = place_of_result(j, r, c, &lane, &column), bit = p * TMEM_LANES + lane, v;
            tx_tmem *t = j->cta[p]->engine->tmem;
            if (j->mask[bit / 32] >> bit % 32 & 1)
                continue;
            uint32_t old = t->cell[j->d_column + column][lane], met_code[MMA_K], *col = yc + c * j->kb;
            float met_value[MMA_K], *value = y + c * j->kb;
            if (j->sparse) {
                for (uint32_t k = 0; k < j->k; k++)
                    met_code[k] = col[met[k]], met_value[k] = value[met[k]];
                col = met_code, value = met_value;
            }
            v = j->d == D_S32 ? integer_element(j, xc + r * j->k, col, old)
                : exact       ? exact_element(j, xc + r * j->k, col, old)
                              : element(j, x + r * j->k, value, r, c, p, old);
            tx_tmem_put(t, j->d_column + column, lane, v);
        }
    }
    tx_free(xc);
    return true;
}

/* ---- issue --------------------------------------------------------------------------------------------------------------- */

typedef struct piece_check {
    const tx_act *a;
    uint32_t lane;
    tc_chunks *chunks;
    tx_cta *cta;
} piece_check;

static bool
check_piece(void *self, uint32_t row, uint32_t k, uint32_t address)
{
    piece_check *c = self;
    (void)row, (void)k;
    return tx_tc_chunks(c->a, c->lane, c->chunks, c->cta, address);
}

static bool
read_scales(const tx_act *a, uint32_t l, tc_mma *j, enum tc_kind kind)
{
    bool sixteen = tx_act_has(a, TK_block16) || tx_act_has(a, TK_scale_vec__4X);
    if (!j->scaled)
        return true;
    j->nblocks = kind == KIND_MXF8 ? 1 : sixteen ? 4 : 2;
    j->sfa = (uint16_t)tx_act_in(a, tx_tmem_find(a->k, "sa"), l);
    j->sfb = (uint16_t)tx_act_in(a, tx_tmem_find(a->k, "sb"), l);
    if (j->sfa_byte + j->nblocks > 4u || j->sfb_byte + j->nblocks > 4u)
        return mma_complain(a, l, "scale factors from bytes %lld and %lld of their cells on do not fit them",
                            j->sfa_byte, j->sfb_byte);
    add_span(j, 15, false, j->sfa, (j->m / j->nctas + 31) / 32);
    add_span(j, 15, false, j->sfb, (j->n + 31u) / 32);
    return true;
}

static bool
read_mask(const tx_act *a, uint32_t l, tc_mma *j)
{
    int first = tx_tmem_find(a->k, "m");
    for (int i = 0; first >= 0 && i < 4 * (int)j->nctas; i++)
        j->mask[i] = (uint32_t)tx_act_in(a, first + i, l);
    int zero = tx_tmem_find(a->k, "zm");
    j->zero = zero >= 0 ? tx_act_in(a, zero, l) : 0;
    if (j->zero >> 56 & 63) {
        tx_emu_report *r = tx_act_report(a, l, "unsupported");
        tx_report_text(r, "%s: a mask of zero columns that shifts columns (by %u) is not emulated",
                       tx_site_of(a->vm, a->in->site)->role, (unsigned)(j->zero >> 56 & 63));
        tx_report_end(a->vm, r);
        return false;
    }
    if (!(j->zero >> 39 & 1)) /* the mask is empty */
        j->zero = 0;
    return true;
}

static int
mma_issue(const tx_act *a, uint32_t l, bool ws)
{
    tx_vm *vm = a->vm;
    tc_mma j = {.ws = ws, .sparse = tx_tmem_find(a->k, "e") >= 0};
    enum tc_kind kind = KIND_F16;
    tc_chunks *chunks;
    uint32_t n = 0, d = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "d"), l);
    bool ok;
    while (kind < KIND_NVF4 && !tx_act_has(a, kinds[kind].token))
        kind++;
    if (!tx_tc_ctas(a, l, j.cta, &j.nctas) || !read_instruction(a, l, &j, kind) || !read_mask(a, l, &j))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    j.d_column = (uint16_t)d;
    j.accumulate = tx_act_in(a, tx_tmem_find(a->k, "ac"), l);
    if (d >> 16)
        return mma_complain(a, l, "the result starts at lane %lld; it starts at lane 0", d >> 16, 0) || vm->stop
                   ? TX_RUN_STOP
                   : TX_RUN_ON;
    j.b.desc = tx_tc_desc(tx_act_in(a, tx_tmem_find(a->k, "bd"), l));
    if (j.sparse && !j.b.mn_major && j.b.desc.width == 32)
        return mma_complain(a, l, "B has 64 bytes of K a row, more than the 32 of its swizzle", 0, 0) || vm->stop
                   ? TX_RUN_STOP
                   : TX_RUN_ON;
    j.a.in_tmem = tx_tmem_find(a->k, "ad") < 0;
    if (j.a.in_tmem) {
        j.a.column = (uint16_t)tx_act_in(a, tx_tmem_find(a->k, "a"), l);
        if (!j.a.es || j.a.mn_major)
            return mma_complain(a, l, "A in tensor memory is K-major, with whole bytes", 0, 0) || vm->stop ? TX_RUN_STOP
                                                                                                           : TX_RUN_ON;
        add_span(&j, 15, false, j.a.column, j.k * j.a.es / 4u);
    } else
        j.a.desc = tx_tc_desc(tx_act_in(a, tx_tmem_find(a->k, "ad"), l));
    if ((!j.a.in_tmem && !tx_tc_desc_ok(a, l, &j.a.desc, "A")) || !tx_tc_desc_ok(a, l, &j.b.desc, "B") ||
        !read_scales(a, l, &j, kind))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    add_span(&j, 15, true, j.d_column, result_columns(&j));
    if (!(chunks = tx_calloc(j.nctas, sizeof *chunks)))
        return tx_vm_nomem(vm), TX_RUN_STOP;
    ok = true;
    for (uint32_t p = 0; p < j.nctas && ok; p++) {
        piece_check c = {a, l, &chunks[p], j.cta[p]};
        ok = (j.a.in_tmem || each_piece(&j.a, j.m / j.nctas, j.k, check_piece, &c)) &&
             each_piece(&j.b, j.n / j.nctas, j.kb, check_piece, &c);
        n += ok ? tx_tc_spans(&chunks[p], j.cta[p], NULL) : 0;
    }
    tx_work *w = ok ? tx_tc_new(a, l, n, &j, sizeof j) : NULL;
    for (uint32_t p = 0; p < j.nctas && w; p++)
        w->nsrc += tx_tc_spans(&chunks[p], j.cta[p], w->src + w->nsrc);
    tx_free(chunks);
    if (!w)
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    w->write = mma_write;
    return tx_tc_issue(a, l, w) ? TX_RUN_ON : vm->stop ? TX_RUN_STOP : TX_RUN_ON;
}

static int
mma_lanes(const tx_act *a, bool ws)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (mma_issue(a, tx_first_lane(left), ws) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(tc_mma)
{
    return mma_lanes(a, false);
}

TX_PTX_AGENT(tc_mma_sp)
{
    return mma_lanes(a, false);
}

TX_PTX_AGENT(tc_mma_ws)
{
    return mma_lanes(a, true);
}
