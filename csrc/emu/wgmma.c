/* Hopper's matrix unit. A wgmma is work that each warp of the warpgroup does for its own 16 rows: issued in order, performed at the first
 * wait of one of the four warps for its group, in order. Until then its accumulators are poisoned (their initialisation masks are clear), its operands in shared memory
 * are being read, its operands in registers must not be written. Registers are known by their initialisation masks: for each of
 * them a warp keeps the wgmma in flight that works on it, and the last ordinary write since wgmma.fence.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "emu/async.h"
#include "emu/dot.h"
#include "emu/ptx_list.h"

enum { ROWS = 16, MOST_K = 64, MOST_N = 256, WINDOW = 0x400 };

typedef struct wg_register {
    uint32_t busy, by; /* wgmma in flight on it, and the site of the last of them */
    uint32_t touched;  /* site + 1 of an ordinary read or write since the fence */
    bool written;      /* a write */
    bool loading;      /* a tcgen05.ld that nobody has waited for */
} wg_register;

typedef struct wg_operand { /* a matrix in shared memory */
    uint64_t desc;
    uint32_t first, rows; /* of M or N */
    bool mn_major;
} wg_operand;

typedef struct wg_job {
    const tx_ptx_op *k;
    wg_operand a, b;
    bool a_in_registers, accumulate, negate, half, integers, signed_a, signed_b, saturate, sparse;
    uint8_t fmt_a, fmt_b, es;
    uint16_t n, kk, kb;      /* kk: products of an element; kb: rows of B, twice as many where A is sparse */
    uint16_t kept[ROWS][16]; /* sparse: row of B for each element of a row of A */
    uint32_t regs[4][TX_LANES];
} wg_job;

/* ---- registers in flight --------------------------------------------------------------------------------------------- */

static inline wg_register *
wg_reg(const tx_vm *vm, const tx_warp *w, uint32_t init)
{
    wg_register *all = w->cta->engine->registers;
    if (!all || init == UINT32_MAX || init < vm->p->inits_at)
        return NULL;
    uint32_t i = (init - vm->p->inits_at) / 8;
    return i < vm->p->ninits ? &all[(size_t)w->index * vm->p->ninits + i] : NULL;
}

bool
tx_wgmma_busy(const tx_vm *vm, const tx_frag *f, uint32_t init)
{
    const wg_register *r = wg_reg(vm, f->warp, init);
    return r && r->busy;
}

int
tx_wgmma_report(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, uint32_t init, const char *role)
{
    const wg_register *g = wg_reg(vm, f->warp, init);
    tx_emu_report *r = tx_report_begin(vm, "async", in->site);
    tx_report_agent(vm, r, f, lane, in->site, role);
    tx_report_element(vm, r, f, lane, in->site, INT64_MIN);
    tx_report_agent(vm, r, f, lane, g->by, g->loading ? "tcgen05.ld" : "wgmma");
    tx_report_text(r,
                   g->loading ? "%s of %s%s, which tcgen05.ld is still loading: tcgen05.wait::ld comes first"
                              : "%s of %s%s, which a wgmma under way works on: wgmma.wait_group comes first",
                   role, r->buffer, r->element);
    return tx_report_end(vm, r);
}

static bool
wg_registers(tx_vm *vm, tx_cta *cta)
{
    tx_engine *e = cta->engine;
    if (!e->registers)
        e->registers = tx_calloc((size_t)cta->nwarps * (vm->p->ninits + 1), sizeof(wg_register));
    return e->registers || tx_vm_nomem(vm) == TX_RUN_ON;
}

int
tx_vm_watch(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    uint32_t init = in->op == V_SETI_C ? in->a : in->c + (uint32_t)tx_reg(f, in->a)->i32 * 8;
    if (!f->warp->cta->engine)
        return TX_RUN_ON;
    if (!wg_registers(vm, f->warp->cta))
        return TX_RUN_STOP;
    wg_register *r = wg_reg(vm, f->warp, init);
    if (!r)
        return TX_RUN_ON;
    if (r->busy) {
        int e = tx_wgmma_report(vm, f, in, tx_first_lane(f->m), init, "store");
        if (e != TX_RUN_ON)
            return e;
    }
    r->touched = in->site + 1, r->written = true;
    return TX_RUN_ON;
}

/* An ordinary read of one. */
void
tx_vm_watch_read(const tx_vm *vm, const tx_frag *f, const tx_insn *in)
{
    uint32_t init = in->op == V_CHKI_C ? in->a : in->c + (uint32_t)tx_reg(f, in->a)->i32 * 8;
    wg_register *r = f->warp->cta->engine ? wg_reg(vm, f->warp, init) : NULL;
    if (r && !r->touched)
        r->touched = in->site + 1, r->written = false;
}

/* A register that was touched behind the last fence. */
static bool
wg_report_fence(const tx_act *a, const wg_register *r)
{
    tx_emu_report *rep = tx_report_begin(a->vm, "proxy", r->touched - 1);
    uint32_t lane = tx_first_lane(a->f->m);
    tx_report_agent(a->vm, rep, a->f, lane, a->in->site, "wgmma");
    tx_report_agent(a->vm, rep, a->f, lane, r->touched - 1, r->written ? "store" : "load");
    tx_report_text(rep, "wgmma works on registers of %s that ordinary code has %s: wgmma.fence is missing between",
                   rep->buffer, r->written ? "written" : "read");
    return tx_report_end(a->vm, rep) == TX_RUN_ON;
}

/* ---- operands in shared memory ----------------------------------------------------------------------------------------- */

typedef struct wg_walk { /* a descriptor taken apart */
    uint32_t start, lbo, sbo, turn, w, mask, es, per;
    bool mn_major;
} wg_walk;

static wg_walk
wg_walk_of(const wg_operand *o, uint32_t es)
{
    static const uint32_t widths[] = {0, 128, 64, 32}, masks[] = {0, 0x70, 0x30, 0x10};
    uint32_t mode = (uint32_t)(o->desc >> 62);
    wg_walk w = {(uint32_t)(o->desc & 0x3fff) << 4,
                 (uint32_t)(o->desc >> 16 & 0x3fff) << 4,
                 (uint32_t)(o->desc >> 32 & 0x3fff) << 4,
                 128 * (uint32_t)(o->desc >> 49 & 7),
                 widths[mode],
                 masks[mode],
                 es,
                 16 / es,
                 o->mn_major};
    return w;
}

/* Byte in shared memory of 16 that belong together: K-major those of row r from element k on, MN-major those of element k from row r on. */
static inline uint32_t
wg_chunk(const wg_walk *o, uint32_t r, uint32_t k)
{
    uint32_t w = o->w, at;
    if (!o->mn_major)
        at = w ? r % 8 * w + r / 8 * o->sbo + (k * o->es < w ? k * o->es : k * o->es % w + k * o->es / w * o->lbo)
               : r % 8 * 16 + r / 8 * o->sbo + k / o->per * o->lbo;
    else
        at = w ? r * o->es % w + r * o->es / w * o->lbo + k % 8 * w + k / 8 * o->sbo
               : r / o->per * o->sbo + k % 8 * 16 + k / 8 * o->lbo;
    at += o->start;
    return (at ^ ((at - o->turn) >> 3 & o->mask)) - WINDOW;
}

/* Calls for each piece of 16 bytes; r and k of its first element. */
#define EACH_CHUNK(o, es, kk, r, k)                                    \
    for (uint32_t k = 0; k < (kk); k += (o)->mn_major ? 1 : 16 / (es)) \
        for (uint32_t r = (o)->first; r < (o)->first + (o)->rows; r += (o)->mn_major ? 16 / (es) : 1)

static bool
wg_inside(const tx_act *a, const wg_operand *o, uint32_t es, uint32_t kk, const char *name)
{
    uint32_t size = (uint32_t)a->f->warp->cta->shared_bytes;
    wg_walk walk = wg_walk_of(o, es);
    uint32_t last = o->first + o->rows - 1, w = walk.w ? walk.w : 16;
    uint64_t most = o->mn_major
                        ? (uint64_t)(last * es / w + 1) * (walk.lbo > walk.sbo ? walk.lbo : walk.sbo) +
                              (uint64_t)(kk / 8 + 1) * (walk.lbo > walk.sbo ? walk.lbo : walk.sbo) + 16 * w
                        : (uint64_t)(last / 8) * walk.sbo + (walk.w ? 0 : (uint64_t)kk / walk.per * walk.lbo) + 8 * w;
    if (walk.start >= WINDOW && walk.start - WINDOW + most + 256 <= size)
        return true; /* surely */
    EACH_CHUNK(o, es, kk, r, k)
    {
        uint32_t at = wg_chunk(&walk, r, k);
        if (at < size && size - at >= 16)
            continue;
        tx_emu_report *rep = tx_act_report(a, tx_first_lane(a->f->m), "out_of_bounds");
        tx_report_text(rep, "wgmma: the descriptor of %s leads to byte %d of %u bytes of shared memory", name, (int)at,
                       size);
        tx_report_end(a->vm, rep);
        return false;
    }
    return true;
}

/* Its pieces by blocks of 1 KB; at most BLOCKS of them. */
enum { BLOCKS = 256 };

static uint32_t
wg_spans(const wg_operand *o, tx_cta *cta, uint32_t es, uint32_t kk, tx_span_of *s)
{
    uint64_t bit[BLOCKS];
    uint32_t n = 0, low = BLOCKS, high = 0;
    wg_walk walk = wg_walk_of(o, es);
    uint32_t first = wg_chunk(&walk, o->first, 0) / 1024;
    bool alike =
        !o->mn_major && walk.sbo && walk.sbo % 1024 == 0 && o->first % 8 == 0; /* eight rows as the eight before */
    bit[first] = 0;
    for (uint32_t r = o->first; r < o->first + 8 && alike; r++)
        for (uint32_t k = 0; k < kk && alike; k += 16 / es) {
            uint32_t at = wg_chunk(&walk, r, k);
            alike = at / 1024 == first;
            bit[first] |= 1ull << at / 16 % 64;
        }
    for (; alike && n < o->rows / 8; n++)
        s[n] = (tx_span_of){cta, first * 1024 + n * walk.sbo, 1024, bit[first]};
    if (alike)
        return n;
    EACH_CHUNK(o, es, kk, r, k)
    {
        uint32_t at = wg_chunk(&walk, r, k), b = at / 1024;
        if (low == BLOCKS)
            bit[low = high = b] = 0;
        while (b < low)
            bit[--low] = 0;
        while (b > high)
            bit[++high] = 0;
        bit[b] |= 1ull << at / 16 % 64; /* descriptors count in 16 bytes */
    }
    for (uint32_t b = low; b <= high && low < BLOCKS; b++)
        if (bit[b])
            s[n++] = (tx_span_of){cta, b * 1024, 1024, bit[b]};
    return n;
}

static uint32_t
wg_code(const uint8_t *p, uint32_t es, uint32_t i)
{
    uint16_t h;
    uint32_t w;
    if (es == 1)
        return p[i];
    if (es == 2)
        return memcpy(&h, p + 2 * i, 2), h;
    return memcpy(&w, p + 4 * i, 4), w;
}

/* ---- performing -------------------------------------------------------------------------------------------------- */

/* Register of an accumulator element: row of the warp's 16, column. */
static uint32_t *
wg_cell(const wg_job *j, tx_frag *f, uint32_t row, uint32_t col, uint32_t *lane)
{
    *lane = row % 8 * 4 + col % 8 / 2;
    uint32_t i = j->half ? col / 8 * 2 + row / 8 : col / 8 * 4 + row / 8 * 2 + col % 2;
    return (uint32_t *)(void *)(f->R + j->k->out[i].reg);
}

static void
wg_codes(const wg_job *j, const tx_cta *cta, uint32_t (*x)[MOST_K], uint32_t (*y)[MOST_K])
{
    if (j->a_in_registers) {
        uint32_t per = 4u / j->es, bits = 8u * j->es;
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t l = 0; l < TX_LANES; l++)
                for (uint32_t e = 0; e < per; e++)
                    x[l / 4 + 8 * (i & 1)][per * (l % 4) + 4 * per * (i >> 1) + e] =
                        (uint32_t)(j->regs[i][l] >> bits * e & (bits == 32 ? 0xffffffffu : (1u << bits) - 1));
    }
    for (int which = j->a_in_registers ? 1 : 0; which < 2; which++) {
        const wg_operand *o = which ? &j->b : &j->a;
        uint32_t (*to)[MOST_K] = which ? y : x, per = 16u / j->es;
        wg_walk walk = wg_walk_of(o, j->es);
        EACH_CHUNK(o, j->es, which ? j->kb : j->kk, r, k)
        {
            const uint8_t *p = cta->shared + wg_chunk(&walk, r, k);
            for (uint32_t i = 0; i < per; i++)
                to[r - o->first + (o->mn_major ? i : 0)][k + (o->mn_major ? 0 : i)] = wg_code(p, j->es, i);
        }
    }
}

static void
wg_slow(tx_vm *vm, const wg_job *j, tx_frag *f)
{
    static const uint32_t sign[FM__COUNT] = {
        [FM_F16] = 0x8000, [FM_BF16] = 0x8000, [FM_TF32] = 0x80000000u, [FM_E4M3] = 0x80, [FM_E5M2] = 0x80};
    uint32_t (*x)[MOST_K] = tx_calloc(ROWS + MOST_N, sizeof *x), (*y)[MOST_K], lane;
    tx_dot how = {j->fmt_a, j->fmt_b, j->half ? FM_F16 : FM_F32, false};
    if (!x) {
        tx_vm_nomem(vm);
        return;
    }
    y = x + ROWS;
    wg_codes(j, f->warp->cta, x, y);
    for (uint32_t r = 0; r < ROWS; r++) {
        for (uint32_t k = 0; j->negate && k < j->kk; k++)
            x[r][k] ^= sign[j->fmt_a];
        for (uint32_t c = 0; c < j->n; c++) {
            uint32_t *cell = wg_cell(j, f, r, c, &lane), shift = j->half ? c % 2 * 16 : 0;
            uint32_t met[16], *col = j->sparse ? met : y[c];
            for (uint32_t k = 0; j->sparse && k < j->kk; k++)
                met[k] = y[c][j->kept[r][k]];
            uint32_t old = !j->accumulate ? 0 : j->half ? cell[lane] >> shift & 0xffff : cell[lane], v;
            if (j->integers) {
                int64_t sum = (int32_t)old;
                for (uint32_t k = 0; k < j->kk; k++)
                    sum += (j->signed_a ? (int8_t)x[r][k] : (int32_t)x[r][k]) *
                           (j->signed_b ? (int8_t)col[k] : (int32_t)col[k]);
                sum = !j->saturate ? sum : sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                v = (uint32_t)sum;
            } else if (vm->o->hardware_numerics)
                v = tx_dot_exact(&how, x[r], col, j->kk, old);
            else {
                float s = tx_dot_float(how.c, old);
                for (uint32_t k = 0; k < j->kk; k++)
                    s += tx_dot_float(j->fmt_a, x[r][k]) * tx_dot_float(j->fmt_b, col[k]);
                memcpy(&v, &s, 4);
                v = j->half ? (s != s ? 0x7fff : (uint32_t)tx_encode(TX_F16, (double)s)) : s != s ? 0x7fffffff : v;
            }
            cell[lane] = j->half ? (cell[lane] & ~(0xffffu << shift)) | v << shift : v;
        }
    }
    tx_free(x);
}

/* fp32 sums of 16-bit operands: the way that speed matters on. The warps of a warpgroup share B, and what adds to the same
 * registers one after the other is one product of a longer k. */
enum { CHAIN = 4, WARPS = 4, LONG_K = 16 * CHAIN };

typedef struct wg_panels {
    float x[ROWS * LONG_K], d[ROWS * MOST_N], y[LONG_K * MOST_N];
    bool ranged; /* y: see within_exact */
} wg_panels;

static bool
wg_is_fast(const tx_vm *vm, const wg_job *j)
{
    return (j->fmt_a == FM_F16 || j->fmt_a == FM_BF16) && j->fmt_a == j->fmt_b && !j->half && !j->sparse &&
           !vm->o->hardware_numerics;
}

/* Rows of A, 16 products each, at x + 16 * at. */
static void
wg_widen_a(const tx_vm *vm, const wg_job *j, const tx_cta *cta, float *x, uint32_t pitch)
{
    bool bf16 = j->fmt_a == FM_BF16;
    if (j->a_in_registers) {
        for (uint32_t i = 0; i < 4; i++)
            for (uint32_t l = 0; l < TX_LANES; l++)
                for (uint32_t e = 0; e < 2; e++)
                    x[(l / 4 + 8 * (i & 1)) * pitch + 2 * (l % 4) + 8 * (i >> 1) + e] =
                        tx_dot_float(j->fmt_a, j->regs[i][l] >> 16 * e & 0xffff);
    } else {
        wg_walk walk = wg_walk_of(&j->a, 2);
        EACH_CHUNK(&j->a, 2, 16, r, k)
        {
            float t[8];
            vm->isa->widen(t, cta->shared + wg_chunk(&walk, r, k), bf16);
            for (uint32_t i = 0; i < 8; i++)
                x[j->a.mn_major ? (r - j->a.first + i) * pitch + k : (r - j->a.first) * pitch + k + i] = t[i];
        }
    }
    for (uint32_t r = 0; r < ROWS && j->negate; r++)
        for (uint32_t k = 0; k < 16; k++)
            x[r * pitch + k] = -x[r * pitch + k];
}

/* 16 rows of B as rows of panels of 16 columns, which have nk rows each. */
static void
wg_widen_b(const tx_vm *vm, const wg_job *j, const tx_cta *cta, float *y, uint32_t nk)
{
    bool bf16 = j->fmt_a == FM_BF16;
    wg_walk walk = wg_walk_of(&j->b, 2);
    for (uint32_t r = 0; r < j->n; r += 8) {
        float *to = y + (size_t)(r / 16) * nk * 16 + r % 16;
        for (uint32_t k = 0; k < 16; k += j->b.mn_major ? 1 : 8) {
            const uint8_t *rows[8];
            if (j->b.mn_major) {
                vm->isa->widen(to + k * 16, cta->shared + wg_chunk(&walk, r, k), bf16);
                continue;
            }
            for (uint32_t i = 0; i < 8; i++)
                rows[i] = cta->shared + wg_chunk(&walk, r + i, k);
            vm->isa->widen_turned(to + k * 16, 16, rows, bf16);
        }
    }
}

static bool
wg_ranged(const tx_vm *vm, const wg_job *j, const wg_panels *p, uint32_t nk)
{
    return j->fmt_b == FM_F16 || vm->isa->within_exact(p->y, (j->n + 15u) / 16 * 16 * nk);
}

static void
wg_add(const tx_vm *vm, tx_work *const *w, uint32_t len, tx_frag *f, wg_panels *p)
{
    const wg_job *j = w[0]->data;
    uint32_t n = j->n, pitch = (n + 15u) & ~15u, nk = 16 * len;
    for (uint32_t i = 0; i < len; i++)
        wg_widen_a(vm, w[i]->data, f->warp->cta, p->x + 16 * i, nk);
    bool exact = j->fmt_a == FM_F16 || (p->ranged && vm->isa->within_exact(p->x, ROWS * nk));
    if (!j->accumulate)
        memset(p->d, 0, ROWS * (size_t)pitch * sizeof *p->d);
    for (int to_registers = !j->accumulate; to_registers < 2; to_registers++) {
        if (to_registers)
            vm->isa->multiply(p->d, pitch, p->x, nk, p->y, nk, pitch, exact);
        for (uint32_t i = 0; i < n / 2; i += 2)
            vm->isa->fragment_rows(p->d + i % 4 / 2 * 8 * pitch + i / 4 * 8, pitch,
                                   (float *)(void *)(f->R + j->k->out[i].reg),
                                   (float *)(void *)(f->R + j->k->out[i + 1].reg), to_registers);
    }
}

/* Can `b` of one warp go with `a` of another: the same B, and the same way to add? */
static bool
wg_alike(const wg_job *a, const wg_job *b)
{
    return a->b.desc == b->b.desc && a->b.mn_major == b->b.mn_major && a->n == b->n && a->fmt_a == b->fmt_a &&
           a->accumulate == b->accumulate;
}

/* Can `b` follow `a` in one sum? */
static bool
wg_follows(const wg_job *a, const wg_job *b)
{
    if (!b->accumulate || a->n != b->n || a->fmt_a != b->fmt_a || a->k->nout != b->k->nout)
        return false;
    for (uint32_t i = 0; i < a->k->nout && a->k != b->k; i++)
        if (a->k->out[i].reg != b->k->out[i].reg)
            return false;
    return true;
}

/* The next works of a warp, of which each follows the one before. */
static uint32_t
wg_chain(const tx_vm *vm, tx_work *from, uint32_t warp, uint32_t done, tx_work **chain)
{
    uint32_t n = 0;
    for (tx_work *w = from; w && n < CHAIN; w = w->next) {
        if (w->end != TX_END_WGMMA || w->performed || w->group >= done || w->thread / TX_LANES != warp)
            continue;
        if (!wg_is_fast(vm, w->data) || (n && !wg_follows(chain[n - 1]->data, w->data)))
            break;
        chain[n++] = w;
    }
    return n;
}

static void
wg_perform_fast(tx_vm *vm, tx_work *w, uint32_t done)
{
    tx_cta *cta = w->cta;
    uint32_t warp = w->thread / TX_LANES, lead_len, len, last = warp | 3;
    tx_work *lead[CHAIN], *chain[CHAIN];
    wg_panels *p = tx_malloc(sizeof *p);
    if (!p) {
        tx_vm_nomem(vm);
        return;
    }
    lead_len = wg_chain(vm, w, warp, done, lead);
    if (((const wg_job *)w->data)->n % 16)
        memset(p->y, 0, sizeof p->y);
    for (uint32_t i = 0; i < lead_len; i++)
        wg_widen_b(vm, lead[i]->data, cta, p->y + 256 * i, 16 * lead_len);
    p->ranged = wg_ranged(vm, w->data, p, 16 * lead_len);
    wg_add(vm, lead, lead_len, cta->warps[warp].frag[0], p);
    for (uint32_t v = warp + 1; v <= last && v < cta->nwarps; v++) {
        bool alike = cta->warps[v].nfrags == 1;
        len = alike ? wg_chain(vm, cta->engine->first, v, done, chain) : 0;
        alike = len == lead_len;
        for (uint32_t i = 0; alike && i < len; i++)
            alike = wg_alike(lead[i]->data, chain[i]->data);
        if (alike)
            wg_add(vm, chain, len, cta->warps[v].frag[0], p);
        for (uint32_t i = 0; alike && i < len; i++)
            chain[i]->performed = true;
    }
    for (uint32_t i = 0; i < lead_len; i++)
        lead[i]->performed = true;
    tx_free(p);
}

static void
wg_perform(tx_vm *vm, tx_work *w, tx_frag *f)
{
    wg_panels *p = wg_is_fast(vm, w->data) ? tx_malloc(sizeof *p) : NULL;
    if (!p) {
        wg_slow(vm, w->data, f);
        return;
    }
    if (((const wg_job *)w->data)->n % 16)
        memset(p->y, 0, sizeof p->y);
    wg_widen_b(vm, w->data, f->warp->cta, p->y, 16);
    p->ranged = wg_ranged(vm, w->data, p, 16);
    wg_add(vm, &w, 1, f, p);
    tx_free(p);
}

/* The whole warp does its part; lanes that have parted each find it in their own frame. done: groups before this may go along. */
static void
wg_perform_warp(tx_vm *vm, tx_work *w, uint32_t done)
{
    tx_warp *warp = &w->cta->warps[w->thread / TX_LANES];
    if (warp->nfrags == 1 && wg_is_fast(vm, w->data))
        wg_perform_fast(vm, w, done);
    else
        for (uint32_t i = 0; i < warp->nfrags && !w->performed; i++)
            wg_perform(vm, w, warp->frag[i]);
    w->performed = true;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static unsigned
wg_format(const tx_act *a, const char *slot)
{
    const char *t = tx_ptx_slot(a->k, slot);
    if (t && t[0] == 'e')
        return t[1] == '4' ? FM_E4M3 : FM_E5M2;
    return tx_act_has(a, TK_tf32) ? FM_TF32 : tx_act_has(a, TK_bf16) ? FM_BF16 : FM_F16;
}

static int64_t
wg_number(const tx_act *a, const char *name, int64_t otherwise)
{
    int i = tx_act_find(a->k, name);
    return i < 0 || a->k->in_name[i][1] != name[1] ? otherwise
                                                   : (int64_t)(int32_t)tx_act_in(a, i, tx_first_lane(a->f->m));
}

/* Which two of four rows of B a pair of A's elements meets: as mma.sp.m16n8k32 has it, for the 16 rows of the warp. */
static void
wg_metadata(const tx_act *a, wg_job *j)
{
    uint32_t sel = (uint32_t)wg_number(a, "se", 0) & 1, room[TX_LANES];
    const uint32_t *meta = tx_act_row(a, tx_act_find(a->k, "me"), room);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t k = 0; k < 16; k++) {
            uint32_t group = k / 2, nibble = group % 4 + r / 8 * 4,
                     word = meta[r % 8 * 4 + 2 * sel + group / 4] >> 4 * nibble;
            j->kept[r][k] = (uint16_t)(4 * group + (word >> 2 * (k % 2) & 3));
        }
}

static void
wg_describe(const tx_act *a, wg_job *j)
{
    const char *shape = tx_ptx_slot(a->k, "shape"), *at = tx_ptx_slot(a->k, "at"), *bt = tx_ptx_slot(a->k, "bt");
    uint32_t lane = tx_first_lane(a->f->m), warp = a->f->warp->index % 4, room[TX_LANES];
    int da = tx_act_find(a->k, "ad");
    memset(j, 0, sizeof *j);
    j->k = a->k;
    if (shape) {
        char *k;
        j->n = (uint16_t)strtol(shape + 4, &k, 10);
        j->kk = (uint16_t)strtol(k + 1, NULL, 10);
    }
    j->kb = j->kk;
    if ((j->sparse = tx_act_find(a->k, "me") >= 0))
        j->kk /= 2, wg_metadata(a, j);
    j->integers = tx_act_has(a, TK_s32);
    j->half = !j->integers && a->k->nout * 4u == j->n;
    j->signed_a = at && *at == 's', j->signed_b = bt && *bt == 's';
    j->saturate = tx_act_has(a, TK_satfinite);
    j->fmt_a = (uint8_t)(j->integers ? FM_NONE : wg_format(a, "at"));
    j->fmt_b = (uint8_t)(j->integers ? FM_NONE : wg_format(a, "bt"));
    j->es = (uint8_t)(32 / j->kk);
    j->accumulate = tx_act_in(a, tx_act_find(a->k, "sd"), lane) != 0;
    j->negate = wg_number(a, "sa", 1) * wg_number(a, "sb", 1) < 0;
    j->a_in_registers = da < 0 || a->k->in_name[da][1] != 'd';
    if (j->a_in_registers) {
        int first = tx_act_find(a->k, "a");
        for (int i = 0; i < 4; i++)
            memcpy(j->regs[i], tx_act_row(a, first + i, room), sizeof j->regs[i]);
    } else
        j->a = (wg_operand){tx_act_in(a, da, lane), 16 * warp, ROWS, wg_number(a, "ta", 0) != 0};
    j->b = (wg_operand){tx_act_in(a, tx_act_find(a->k, "bd"), lane), 0, j->n, wg_number(a, "tb", 0) != 0};
}

/* tcgen05.ld: its registers are there when the warp has waited. */
bool
tx_registers_load(const tx_act *a)
{
    if (!a->vm->hooks || !a->k->out_init)
        return true;
    if (!wg_registers(a->vm, a->f->warp->cta))
        return false;
    for (uint32_t i = 0; i < a->k->nout; i++) {
        wg_register *r = wg_reg(a->vm, a->f->warp, a->k->out_init[i]);
        if (!r)
            continue;
        tx_reg(a->f, a->k->out_init[i])->u32 &= ~a->f->m;
        r->busy = 1, r->loading = true, r->by = a->in->site;
    }
    return true;
}

void
tx_registers_loaded(const tx_act *a)
{
    const tx_vm *vm = a->vm;
    wg_register *all = a->f->warp->cta->engine->registers;
    for (uint32_t i = 0; all && i < vm->p->ninits; i++) {
        wg_register *r = &all[(size_t)a->f->warp->index * vm->p->ninits + i];
        if (!r->loading)
            continue;
        r->loading = false, r->busy = 0;
        tx_reg(a->f, vm->p->inits_at + i * 8)->u32 |= a->f->m;
    }
}

/* Accumulators and register operands from now on belong to the unit. */
static bool
wg_take_registers(const tx_act *a, const wg_job *j)
{
    tx_vm *vm = a->vm;
    if (!wg_registers(vm, a->f->warp->cta))
        return false;
    for (uint32_t i = 0; i < a->k->nin; i++) { /* what it only reads, others may have read */
        const wg_register *r = wg_reg(vm, a->f->warp, a->k->in_init[i]);
        if (r && r->touched && r->written && !wg_report_fence(a, r))
            return false;
    }
    for (uint32_t i = 0; i < a->k->nout; i++) {
        uint32_t init = a->k->out_init[i];
        wg_register *r = wg_reg(vm, a->f->warp, init);
        if (!r)
            continue;
        if (j->accumulate && !r->busy && (a->f->m & ~tx_reg(a->f, init)->u32)) {
            tx_emu_report *rep = tx_act_report(a, tx_first_lane(a->f->m & ~tx_reg(a->f, init)->u32), "uninitialised");
            tx_report_text(rep, "wgmma adds to accumulator %u, which nobody has written", i);
            if (tx_report_end(vm, rep) != TX_RUN_ON)
                return false;
        }
        if (r->touched && !wg_report_fence(a, r))
            return false;
        tx_reg(a->f, init)->u32 &= ~a->f->m;
        r->busy++, r->by = a->in->site;
    }
    for (uint32_t i = 0; i < a->k->nin; i++) {
        wg_register *r = wg_reg(vm, a->f->warp, a->k->in_init[i]);
        if (r)
            r->busy++, r->by = a->in->site;
    }
    if (!a->f->warp->cta->engine->wgmma_fenced[a->f->warp->index]) {
        tx_emu_report *rep = tx_act_report(a, tx_first_lane(a->f->m), "proxy");
        tx_report_text(rep, "the first wgmma of the warp: wgmma.fence is missing before it");
        return tx_report_end(vm, rep) == TX_RUN_ON;
    }
    return true;
}

static void
wg_give_registers(tx_vm *vm, const tx_ptx_op *k, tx_frag *f)
{
    for (uint32_t i = 0; i < k->nout; i++) {
        wg_register *r = wg_reg(vm, f->warp, k->out_init[i]);
        if (r && r->busy && --r->busy == 0)
            tx_reg(f, k->out_init[i])->u32 |= f->m;
    }
    for (uint32_t i = 0; i < k->nin; i++) {
        wg_register *r = wg_reg(vm, f->warp, k->in_init[i]);
        if (r && r->busy)
            r->busy--;
    }
}

TX_PTX_AGENT(wgmma)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta;
    wg_job j;
    wg_describe(a, &j);
    if (!tx_act_whole(a) || (!j.a_in_registers && !wg_inside(a, &j.a, j.es, j.kk, "A")) ||
        !wg_inside(a, &j.b, j.es, j.kb, "B"))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    tx_span_of spans[2 * BLOCKS];
    uint32_t nspans = 0;
    if (vm->hooks && !j.a_in_registers)
        nspans = wg_spans(&j.a, cta, j.es, j.kk, spans);
    if (vm->hooks && a->f->warp->index % 4 == 0) /* one warp for the warpgroup */
        nspans += wg_spans(&j.b, cta, j.es, j.kb, spans + nspans);
    tx_work *w = tx_work_new(a, 0, TX_END_WGMMA, nspans, sizeof j);
    if (!w)
        return TX_RUN_STOP;
    memcpy(w->data, &j, sizeof j);
    if (nspans)
        memcpy(w->src, spans, nspans * sizeof *spans);
    w->nsrc = nspans;
    w->group = cta->engine->wgmma_group[a->f->warp->index];
    if (vm->hooks) {
        tx_issue i = tx_act_issue(a, tx_first_lane(a->f->m), true);
        bool ok = wg_take_registers(a, &j);
        for (uint32_t s = 0; ok && s < w->nsrc; s++)
            ok = tx_shadow_issue_read(&i, &w->src[s]);
        if (!ok) {
            tx_free(w);
            return TX_RUN_STOP;
        }
    }
    if (!vm->late && vm->hooks) { /* else nobody can tell */
        wg_perform(vm, w, a->f);
        w->performed = true;
    }
    return tx_work_issue(vm, w) ? TX_RUN_ON : TX_RUN_STOP;
}

const tx_ptx_emu tx_emu_ptx_wgmma_sp = {"wgmma", PH_AGENT, NULL, NULL, agent_wgmma};

TX_PTX_AGENT(wgmma_fence)
{
    tx_warp *w = a->f->warp;
    wg_register *r = w->cta->engine->registers;
    if (!tx_act_whole(a))
        return TX_RUN_STOP;
    w->cta->engine->wgmma_fenced[w->index] = true;
    for (uint32_t i = 0; r && i < a->vm->p->ninits; i++)
        r[(size_t)w->index * a->vm->p->ninits + i].touched = 0;
    return a->vm->check && !r && !wg_registers(a->vm, w->cta) ? TX_RUN_STOP : TX_RUN_ON;
}

TX_PTX_AGENT(wgmma_commit)
{
    if (!tx_act_whole(a))
        return TX_RUN_STOP;
    a->f->warp->cta->engine->wgmma_group[a->f->warp->index]++;
    return TX_RUN_ON;
}

/* A wgmma is the warpgroup's: it is complete when all four warps have issued it, and then for all of them. */
TX_PTX_AGENT(wgmma_wait)
{
    tx_vm *vm = a->vm;
    tx_warp *warp = a->f->warp;
    tx_engine *e = warp->cta->engine;
    tx_order *o = tx_shadow_order(warp->cta);
    uint32_t newest = (uint32_t)tx_act_in(a, tx_act_find(a->k, "n"), tx_first_lane(a->f->m)),
             last = e->wgmma_group[warp->index], group = warp->index / 4, done = last > newest ? last - newest : 0;
    if (a->f->state != TX_WAIT_EVENT && !tx_act_whole(a))
        return TX_RUN_STOP;
    for (uint32_t i = 4 * group; i < 4 * group + 4 && i < warp->cta->nwarps; i++)
        if (e->wgmma_group[i] < done) { /* it has still to come */
            a->f->state = TX_WAIT_EVENT;
            a->f->wait_mask = a->f->m;
            return TX_RUN_BLOCK;
        }
    uint32_t unit = o ? tx_order_agent(o, warp->cta, TX_BARRIER_AGENTS + group % TX_UNIT_AGENTS) : 0;
    for (tx_work *w = e->first, *next; w; w = next) {
        uint32_t index = w->thread / TX_LANES;
        next = w->next;
        if (w->end != TX_END_WGMMA || index / 4 != group || w->group >= done)
            continue;
        if (!w->performed)
            wg_perform_warp(vm, w, done);
        for (uint32_t i = 0; i < w->nsrc; i++)
            tx_shadow_done_read(vm, &w->src[i], unit, w->site);
        w->nsrc = 0;
        if (o)
            o->agent[unit - o->nthreads] = (tx_agent_info){tx_order_thread(warp->cta, w->thread), w->site};
        if (index != warp->index)
            continue;
        if (vm->hooks)
            wg_give_registers(vm, ((const wg_job *)w->data)->k, a->f);
        tx_work_drop(e, w);
    }
    if (o)
        tx_order_learn(o, tx_order_thread(warp->cta, warp->index * TX_LANES), a->f->m, unit);
    return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
}
