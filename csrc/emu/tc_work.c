/* Works of the fifth-generation matrix unit: shared-memory descriptors, tcgen05.cp, shift and commit. tcgen05.mma is in tc_mma.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/ptx_list.h"
#include "emu/tc.h"

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

tc_desc
tx_tc_desc(uint64_t d)
{
    static const uint8_t width[8] = {[1] = 128, [2] = 128, [4] = 64, [6] = 32};
    static const uint8_t shift[8] = {[1] = 2, [2] = 3, [4] = 3, [6] = 3};
    static const uint8_t mask[8] = {[1] = 0x60, [2] = 0x70, [4] = 0x30, [6] = 0x10};
    unsigned mode = d >> 61 & 7;
    tc_desc r = {(uint32_t)(d & 0x3fff) << 4,
                 (uint32_t)(d >> 16 & 0x3fff) << 4,
                 (uint32_t)(d >> 32 & 0x3fff) << 4,
                 (uint8_t)(d >> 49 & 7),
                 width[mode],
                 shift[mode],
                 mask[mode],
                 false};
    r.bad = (d >> 46 & 7) != 1 || (d >> 53 & 0xff) || mode == 3 || mode == 5 || mode == 7 || (d >> 52 & 1);
    return r;
}

uint32_t
tx_tc_address(const tc_desc *d, bool mn_major, uint32_t r, uint32_t byte, uint32_t k, uint32_t es)
{
    uint32_t w = d->width, at;
    if (!mn_major)
        at = w ? r % 8 * w + r / 8 * d->sbo + byte : r % 8 * 16 + r / 8 * d->sbo + byte / 16 * d->lbo + byte % 16;
    else if (w)
        at = r * es % w + r * es / w * d->lbo + k % 8 * w + k / 8 * d->sbo;
    else
        at = r * es % 16 + r * es / 16 * d->sbo + k % 8 * 16 + k / 8 * d->lbo;
    at += d->start;
    return at ^ ((at + d->base * 128u) >> d->shift & d->mask);
}

bool
tx_tc_chunks(const tx_act *a, uint32_t lane, tc_chunks *c, tx_cta *cta, uint32_t address)
{
    if (address < TX_SYSTEM_BYTES || address - TX_SYSTEM_BYTES + 16 > (uint64_t)cta->shared_bytes) {
        tx_emu_report *r = tx_act_report(a, lane, "out_of_bounds");
        tx_report_text(r, "%s through a descriptor that leads to shared address 0x%x, outside the CTA's %lld bytes",
                       tx_site_of(a->vm, a->in->site)->role, address, (long long)cta->shared_bytes);
        tx_report_end(a->vm, r);
        return false;
    }
    uint32_t at = (address - TX_SYSTEM_BYTES) / 16;
    c->bit[at / 64] |= 1ull << at % 64;
    return true;
}

uint32_t
tx_tc_spans(const tc_chunks *c, tx_cta *cta, tx_span_of *s)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < TC_CHUNK_WORDS; w++)
        if (c->bit[w]) {
            if (s)
                s[n] = (tx_span_of){cta, w * 1024, 1024, c->bit[w]};
            n++;
        }
    return n;
}

bool
tx_tc_desc_ok(const tx_act *a, uint32_t lane, const tc_desc *d, const char *which)
{
    if (!d->bad)
        return true;
    tx_emu_report *r = tx_act_report(a, lane, "misaligned");
    tx_report_text(
        r, "%s: the %s descriptor is none of tcgen05: bits 46 to 48 hold 1, 52 to 60 nothing, 61 to 63 a swizzle mode",
        tx_site_of(a->vm, a->in->site)->role, which);
    tx_report_end(a->vm, r);
    return false;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

typedef struct cp_shape {
    uint8_t token, rows, bytes;
} cp_shape;
static const cp_shape cp_shapes[] = {{TK__128x256b, 128, 32},
                                     {TK__4x256b, 4, 32},
                                     {TK__128x128b, 128, 16},
                                     {TK__64x128b, 64, 16},
                                     {TK__32x128b, 32, 16}};

typedef struct tc_copy {
    tmem_work head;
    tc_desc desc;
    cp_shape shape;
    uint32_t column;
    bool b4, b6, pairs_01_23;
    uint32_t nctas;
    tx_cta *cta[2];
} tc_copy;

void
tx_unpack_16(bool b4, bool b6, const uint8_t *from, uint8_t *to)
{
    for (uint32_t i = 0; i < 16; i++) {
        if (b4)
            to[i] = (uint8_t)((from[i / 2] >> i % 2 * 4 & 15) << 2);
        else if (b6) {
            uint32_t bit = i * 6, two = from[bit / 8] | (uint32_t)from[bit / 8 + 1] << 8;
            to[i] = (uint8_t)(two >> bit % 8 & 63);
        } else
            to[i] = from[i];
    }
}

/* Lanes that row r of the copy goes to. */
static uint32_t
lanes_of_row(const tc_copy *c, uint32_t r, uint32_t *lane)
{
    switch (c->shape.rows) {
    case 4: return lane[0] = 32 * r, 1;
    case 64:
        lane[0] = c->pairs_01_23 ? 64 * (r / 32) + r % 32 : r;
        lane[1] = lane[0] + (c->pairs_01_23 ? 32 : 64);
        return 2;
    case 32:
        for (uint32_t i = 0; i < 4; i++)
            lane[i] = r + 32 * i;
        return 4;
    default: return lane[0] = r, 1;
    }
}

static bool
copy_write(tx_vm *vm, tx_work *w)
{
    const tc_copy *c = w->data;
    (void)vm;
    for (uint32_t p = 0; p < c->nctas; p++) {
        tx_tmem *t = c->cta[p]->engine->tmem;
        for (uint32_t r = 0; r < c->shape.rows; r++)
            for (uint32_t b = 0; b < c->shape.bytes; b += 16) {
                uint32_t at = tx_tc_address(&c->desc, false, r, b, 0, 1) - TX_SYSTEM_BYTES, cell[4], lane[4];
                tx_unpack_16(c->b4, c->b6, c->cta[p]->shared + at, (uint8_t *)cell);
                for (uint32_t n = lanes_of_row(c, r, lane); n; n--)
                    for (uint32_t k = 0; k < 4; k++)
                        tx_tmem_put(t, c->column + b / 4 + k, lane[n - 1], cell[k]);
            }
    }
    return true;
}

static int
copy_issue(const tx_act *a, uint32_t l)
{
    tx_vm *vm = a->vm;
    uint32_t address = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "t"), l), n = 0;
    tc_chunks chunks[2];
    tc_copy c = {.desc = tx_tc_desc(tx_act_in(a, tx_tmem_find(a->k, "sd"), l)), .column = address & 0xffff};
    c.b4 = tx_act_has(a, TK_b4x16_p64), c.b6 = tx_act_has(a, TK_b6x16_p32);
    c.pairs_01_23 = tx_act_has(a, TK_warpx2__01_23);
    for (size_t i = 0; i < sizeof cp_shapes / sizeof *cp_shapes; i++)
        if (tx_act_has(a, cp_shapes[i].token))
            c.shape = cp_shapes[i];
    if (!tx_tc_ctas(a, l, c.cta, &c.nctas) || !tx_tc_desc_ok(a, l, &c.desc, "source"))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    if (address >> 16) {
        tx_emu_report *r = tx_tmem_report(a, l, "tmem");
        tx_report_text(r, "%s to lane %u: it starts at lane 0", tx_site_of(vm, a->in->site)->role, address >> 16);
        return tx_report_end(vm, r);
    }
    for (uint32_t p = 0; p < c.nctas; p++) {
        memset(&chunks[p], 0, sizeof chunks[p]);
        for (uint32_t r = 0; r < c.shape.rows; r++)
            for (uint32_t b = 0; b < c.shape.bytes; b += 16)
                if (!tx_tc_chunks(a, l, &chunks[p], c.cta[p], tx_tc_address(&c.desc, false, r, b, 0, 1)))
                    return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
        n += tx_tc_spans(&chunks[p], c.cta[p], NULL);
        c.head.span[c.head.nspans++] =
            (tmem_span){c.cta[p], 15, true, (uint16_t)c.column, (uint16_t)(c.shape.bytes / 4)};
    }
    tx_work *w = tx_tc_new(a, l, n, &c, sizeof c);
    if (!w)
        return TX_RUN_STOP;
    for (uint32_t p = 0; p < c.nctas; p++)
        w->nsrc += tx_tc_spans(&chunks[p], c.cta[p], w->src + w->nsrc);
    w->write = copy_write;
    return tx_tc_issue(a, l, w) ? TX_RUN_ON : vm->stop ? TX_RUN_STOP : TX_RUN_ON;
}

TX_PTX_AGENT(tc_cp)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (copy_issue(a, tx_first_lane(left)) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

/* ---- shift ------------------------------------------------------------------------------------------------------- */

typedef struct tc_shift {
    tmem_work head;
    uint32_t column, first, nctas;
    tx_cta *cta[2];
} tc_shift;

/* Rows of 32 bytes move down by one lane. */
static bool
shift_write(tx_vm *vm, tx_work *w)
{
    const tc_shift *s = w->data;
    (void)vm;
    for (uint32_t p = 0; p < s->nctas; p++) {
        tx_tmem *t = s->cta[p]->engine->tmem;
        for (uint32_t c = s->column; c < s->column + 8; c++)
            for (uint32_t l = s->first; l + 1 < TMEM_LANES; l++)
                tx_tmem_put(t, c, l, t->cell[c][l + 1]);
    }
    return true;
}

TX_PTX_AGENT(tc_shift)
{
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left), address = (uint32_t)tx_act_in(a, tx_tmem_find(a->k, "t"), l);
        tc_shift s = {.column = address & 0xffff, .first = address >> 16};
        if (!tx_tc_ctas(a, l, s.cta, &s.nctas))
            return TX_RUN_STOP;
        if (s.first % 32 || s.first >= TMEM_LANES) {
            tx_emu_report *r = tx_tmem_report(a, l, "tmem");
            tx_report_text(r, "%s from lane %u: the lane is a multiple of 32", tx_site_of(a->vm, a->in->site)->role,
                           s.first);
            if (tx_report_end(a->vm, r) != TX_RUN_ON)
                return TX_RUN_STOP;
            continue;
        }
        for (uint32_t p = 0; p < s.nctas; p++)
            s.head.span[s.head.nspans++] =
                (tmem_span){s.cta[p], (uint8_t)(15 << s.first / 32 & 15), true, (uint16_t)s.column, 8};
        tx_work *w = tx_tc_new(a, l, 0, &s, sizeof s);
        if (!w)
            return TX_RUN_STOP;
        w->write = shift_write;
        if (!tx_tc_issue(a, l, w) && a->vm->stop)
            return TX_RUN_STOP;
    }
    return TX_RUN_ON;
}

/* ---- issue and commit -------------------------------------------------------------------------------------------- */

bool
tx_tc_ctas(const tx_act *a, uint32_t lane, tx_cta **cta, uint32_t *n)
{
    tx_vm *vm = a->vm;
    cta[0] = a->f->warp->cta;
    *n = 1;
    if (!tx_tmem_of(vm, cta[0]))
        return false;
    if (!tx_act_has(a, TK_cta_group__2))
        return true;
    if (!(cta[1] = tx_tmem_peer(vm, cta[0]))) {
        tx_emu_report *r = tx_tmem_report(a, lane, "tmem");
        tx_report_text(r, "%s with cta_group::2 in a CTA without a pair: launch clusters of an even number of CTAs",
                       tx_site_of(vm, a->in->site)->role);
        tx_report_end(vm, r);
        return false;
    }
    *n = 2;
    if (cta[0]->cluster_rank & 1) { /* the even one is the first */
        tx_cta *t = cta[0];
        cta[0] = cta[1], cta[1] = t;
    }
    return tx_tmem_of(vm, cta[0]) && tx_tmem_of(vm, cta[1]);
}

tx_work *
tx_tc_new(const tx_act *a, uint32_t lane, uint32_t nspans, const void *data, size_t size)
{
    tx_work *w = tx_work_new(a, lane, TX_END_TC, nspans, size);
    if (w)
        memcpy(w->data, data, size);
    return w;
}

bool
tx_tc_issue(const tx_act *a, uint32_t lane, tx_work *w)
{
    tx_issue i = tx_act_issue(a, lane, true);
    for (uint32_t k = 0; k < w->nsrc; k++) {
        if (!tx_shadow_issue_read(&i, &w->src[k])) {
            tx_free(w);
            return false;
        }
    }
    if (!tx_tmem_issue(a, lane, w->data)) {
        tx_free(w);
        return false;
    }
    return tx_work_issue(a->vm, w);
}

/* The works that the thread has issued before are complete. */
bool
tx_tc_finish(tx_vm *vm, tx_cta *cta, const tx_work *commit)
{
    tx_engine *e = cta->engine;
    tx_order *o = tx_shadow_order(cta);
    uint32_t unit = o ? tx_order_agent(o, cta, TX_TENSOR_UNIT) : 0;
    for (tx_work *w = e->first, *next; w && w != commit; w = next) {
        next = w->next;
        if (w->end != TX_END_TC || w->thread != commit->thread)
            continue;
        if (!tx_work_move(vm, w))
            return false;
        for (uint32_t i = 0; i < w->nsrc; i++)
            tx_shadow_done_read(vm, &w->src[i], unit, w->site);
        tx_tmem_done(vm, w);
        if (o)
            o->agent[unit - o->nthreads] = (tx_agent_info){w->thread, w->site};
        tx_work_drop(e, w);
    }
    return true;
}

TX_PTX_AGENT(tc_commit)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta;
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        int m = tx_tmem_find(a->k, "ma");
        tx_where at;
        if (!tx_act_where(a, "b", l, 8, 8, false, &at)) {
            if (vm->stop)
                return TX_RUN_STOP;
            continue;
        }
        uint32_t mask = m >= 0 ? (uint32_t)tx_act_in(a, m, l) : 1u << at.cta->cluster_rank;
        for (tx_cta *c = vm->ctas; c; c = c->next) {
            if (c->linear / per != cta->linear / per || !(mask >> c->cluster_rank & 1))
                continue;
            tx_where there = at;
            there.cta = c;
            tx_mbar *b = tx_mbar_for_engine(a, l, &there);
            if (vm->stop)
                return TX_RUN_STOP;
            if (!b)
                continue;
            tx_work *w = tx_work_new(a, l, TX_END_COMMIT, 0, 0);
            if (!w)
                return TX_RUN_STOP;
            tx_order *o = tx_shadow_order(cta);
            w->lanes = 1;
            w->bar_cta = c, w->bar_off = at.off;
            if (o) {
                if (!(w->seen = tx_clock_new(o))) {
                    tx_free(w);
                    return TX_RUN_STOP;
                }
                tx_order_release(o, tx_order_thread(cta, a->f->warp->index * TX_LANES + l), w->seen);
            }
            if (!tx_work_issue(vm, w))
                return TX_RUN_STOP;
        }
    }
    return TX_RUN_ON;
}
