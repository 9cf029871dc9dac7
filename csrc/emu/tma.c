/* Tensor copies: the box of a tensor map between global and shared memory (intrinsics reference, TMA semantics). Loads in tile, gather4 and
 * im2col mode, stores, reductions, prefetches. A box is a list of rows; a row is what lies side by side in dimension 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"
#include "emu/ptx_list.h"

typedef struct tma_job {
    tx_tensormap map;
    uint8_t *base; /* of the tensor, as the map gives it */
    int64_t coord[8], shift[3];
    uint8_t *image; /* the box in shared memory */
    uint32_t image_off;
    uint32_t rows, inner, pitch; /* bytes of a row, and from row to row */
    uint32_t es;
    int64_t slice; /* interleaved: bytes from the base to the slice that the box lies in */
    uint32_t cell; /* padded types: bytes of 16 elements, which take 16 bytes of shared memory; 0: others */
    bool gather;
    int32_t op; /* reduction, -1 none */
    uint8_t *staged;
    uint32_t size, mem;
    int64_t off; /* of base in it */
} tma_job;

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Where row r of the box begins: offset in bytes from the tensor's base for element 0 of dimension 0. false: outside. */
static bool
tma_row(const tma_job *j, uint32_t r, int64_t *offset)
{
    const tx_tensormap *t = &j->map;
    int64_t at = 0;
    if (j->gather) {
        int64_t g = j->coord[1 + r];
        *offset = g * t->stride[1];
        return g >= 0 && g < t->dim[1];
    }
    for (int d = 1; d < t->rank; d++) {
        int64_t n = (t->box[d] + t->estride[d] - 1) / t->estride[d];
        int64_t g = j->coord[d] + r % n * t->estride[d];
        r = (uint32_t)(r / n);
        if (g < 0 || g >= t->dim[d])
            return false;
        at += g * t->stride[d];
    }
    *offset = at;
    return true;
}

/* im2col: the pixels in the order of the walk. */
typedef struct tma_pixel {
    int64_t at[TX_TM_RANK];
} tma_pixel;

static void
tma_next_pixel(const tma_job *j, tma_pixel *p)
{
    const tx_tensormap *t = &j->map;
    for (int d = 1; d < t->rank - 1; d++) {
        p->at[d] += t->estride[d];
        if (p->at[d] <= t->dim[d] - 1 + t->upper[d - 1])
            return;
        p->at[d] = t->lower[d - 1];
    }
    p->at[t->rank - 1]++;
}

static bool
tma_pixel_row(const tma_job *j, const tma_pixel *p, int64_t *offset)
{
    const tx_tensormap *t = &j->map;
    *offset = 0;
    for (int d = 1; d < t->rank; d++) {
        int64_t g = p->at[d] + (d < t->rank - 1 ? j->shift[d - 1] : 0);
        if (g < 0 || g >= t->dim[d])
            return false;
        *offset += g * t->stride[d];
    }
    return true;
}

/* Elements of a row that lie inside dimension 0: [*from, *to). */
static void
tma_inside(const tma_job *j, int64_t *from, int64_t *to)
{
    int64_t n = j->inner / j->es, first = j->coord[0];
    *from = first < 0 ? -first : 0;
    *to = j->map.dim[0] - first;
    *from = *from > n ? n : *from;
    *to = *to > n ? n : *to < *from ? *from : *to;
}

static uint32_t
tma_swizzle(const tma_job *j, uint32_t o)
{
    static const struct {
        uint8_t shift, mask;
    } modes[] = {{0, 0}, {3, 0x10}, {3, 0x30}, {3, 0x70}, {2, 0x60}, {0, 0}, {1, 0x40}};
    uint32_t a = j->image_off + o;
    return (a ^ (a >> modes[j->map.swizzle].shift & modes[j->map.swizzle].mask)) - j->image_off;
}

/* ---- loads ------------------------------------------------------------------------------------------------------- */

static uint32_t
tma_tf32(uint32_t x)
{
    if ((x & 0x7fffffff) > 0x7f800000)
        return 0x7fffe000;
    return (x & 0x7fffffff) == 0x7f800000 ? x : (x + 0xfff + (x >> 13 & 1)) & 0xffffe000u;
}

static void
tma_fill(const tma_job *j, uint8_t *p, size_t n)
{
    static const uint8_t nan[2] = {0xf7, 0x7f};
    if (!j->map.oob) {
        memset(p, 0, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        p[i] = nan[i & 1];
}

static void
tma_put_row(const tma_job *j, uint32_t r, const uint8_t *row)
{
    uint32_t o = r * j->pitch;
    for (uint32_t c = 0; j->cell && c < j->inner / j->cell; c++)
        memcpy(j->image + tma_swizzle(j, o + 16 * c), row + c * j->cell, j->cell);
    if (j->cell)
        return;
    if (!j->map.swizzle) {
        memcpy(j->image + o, row, j->inner);
        return;
    }
    uint8_t *to = j->image + o;
    if (j->map.swizzle <= 3 && !j->map.interleave &&
        (j->image_off + o) % j->pitch == 0) { /* the bits that turn are the same in all of the row */
        uint32_t turn = tma_swizzle(j, o) - o;
        for (uint32_t c = 0; c < j->inner; c += 16)
            memcpy(to + (c ^ turn), row + c, 16);
        return;
    }
    for (uint32_t c = 0; c < j->inner; c += 16)
        memcpy(j->image + tma_swizzle(j, o + c), row + c, 16);
}

static bool
tma_load_box(tx_vm *vm, tx_work *w)
{
    tma_job *j = w->data;
    const tx_tensormap *t = &j->map;
    uint8_t row[256 * 8];
    int64_t from, to, offset;
    tma_pixel p;
    (void)vm;
    for (int d = 0; d < TX_TM_RANK; d++)
        p.at[d] = j->coord[d];
    tma_inside(j, &from, &to);
    for (uint32_t r = 0; r < j->rows; r++) {
        bool in = t->im2col ? tma_pixel_row(j, &p, &offset) : tma_row(j, r, &offset);
        const uint8_t *src = j->base + (in ? offset : 0) + j->coord[0] * j->es;
        bool whole = in && from == 0 && to == j->inner / j->es;
        if (t->im2col)
            tma_next_pixel(j, &p);
        if (!whole) {
            tma_fill(j, row, j->inner);
            if (in && to > from)
                memcpy(row + from * j->es, src + from * j->es, (size_t)(to - from) * j->es);
        }
        if (t->dtype == TX_TM_TF32 || t->dtype == TX_TM_TF32_FTZ) {
            if (whole)
                memcpy(row, src, j->inner);
            for (int64_t i = in ? from : 0; i < (in ? to : 0); i++) {
                uint32_t x;
                memcpy(&x, row + i * 4, 4);
                x = tma_tf32(x);
                memcpy(row + i * 4, &x, 4);
            }
            whole = false;
        }
        tma_put_row(j, r, whole ? src : row);
    }
    return true;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static bool
tma_stage(tx_vm *vm, tx_work *w)
{
    tma_job *j = w->data;
    (void)vm;
    memcpy(j->staged, j->image, j->size);
    return true;
}

static unsigned
tma_kind(int64_t dtype)
{
    static const uint8_t kinds[] = {TX_KIND_U8,  TX_KIND_U16, TX_KIND_U32, TX_KIND_I32, TX_KIND_U64,
                                    TX_KIND_I64, TX_KIND_F16, TX_KIND_F32, TX_KIND_F64, TX_KIND_BF16,
                                    TX_KIND_F32, TX_KIND_F32, TX_KIND_F32};
    return kinds[dtype];
}

/* Stores cut dimension 0 at steps of 16 bytes only. */
static bool
tma_store_box(tx_vm *vm, tx_work *w)
{
    tma_job *j = w->data;
    const uint8_t *image = j->staged ? j->staged : j->image;
    uint8_t row[256 * 8];
    int64_t from, to, offset;
    uint32_t mem;
    int64_t off, room;
    tma_inside(j, &from, &to);
    int64_t n = (to * j->es + 15) / 16 * 16;
    n = n > j->inner ? j->inner : n;
    if (!tx_vm_global_at(vm, (uint64_t)(uintptr_t)j->base, &mem, &off))
        return true;
    room = vm->mem[mem].nbytes - off;
    for (uint32_t r = 0; r < j->rows && to > from; r++) {
        if (!tma_row(j, r, &offset))
            continue;
        for (uint32_t c = 0; j->cell && c < j->inner / j->cell; c++)
            memcpy(row + c * j->cell, image + tma_swizzle(j, r * j->pitch + 16 * c), j->cell);
        for (uint32_t c = 0; !j->cell && c < j->inner; c += 16)
            memcpy(row + c, image + (j->map.swizzle ? tma_swizzle(j, r * j->pitch + c) : r * j->pitch + c),
                   j->inner - c < 16 ? j->inner - c : 16);
        int64_t at = offset + j->coord[0] * j->es, m = n > room - at ? room - at : n;
        if (m <= 0)
            continue;
        if (j->op >= 0)
            tx_reduce_bytes(j->base + at, row, (size_t)m, (unsigned)j->op, tma_kind(j->map.dtype));
        else
            memcpy(j->base + at, row, (size_t)m);
    }
    return true;
}

/* ---- issue ------------------------------------------------------------------------------------------------------- */

static bool
tma_complain(const tx_act *a, uint32_t l, const char *kind, const char *buffer, const char *fmt, long long x,
             long long y)
{
    tx_emu_report *r = tx_act_report(a, l, kind);
    char text[200];
    snprintf(text, sizeof text, fmt, x, y);
    if (buffer)
        strncpy(r->buffer, buffer, sizeof r->buffer - 1);
    tx_report_text(r, "%s: %s", tx_site_of(a->vm, a->in->site)->role, text);
    tx_report_end(a->vm, r);
    return false;
}

/* An interleaved tensor holds slices of channels: dimension 0 is one of pixels of 16 or 32 bytes, the last but one is that of the slices,
 * of which a box has one. It is as a tensor whose rows are pixels (found by 288 boxes of an H200, all alike). */
static void
tma_interleaved(tma_job *j)
{
    tx_tensormap *t = &j->map, of = *t;
    int at = t->rank - 2;
    int64_t unit = 16 * t->interleave, c[8];
    memcpy(c, j->coord, sizeof c);
    bool in = c[at] >= 0 && c[at] < of.dim[at];
    for (int d = t->rank - 1, from = t->rank - 1; d > 0; d--, from--) {
        from -= from == at;
        t->dim[d] = of.dim[from], t->box[d] = of.box[from], t->estride[d] = of.estride[from];
        t->stride[d] = from ? of.stride[from] : unit;
        j->coord[d] = c[from];
    }
    t->channels = t->box[0] = t->dim[0] = unit * 8 / tx_tensormap_bits(t->dtype), t->estride[0] = 1;
    j->coord[0] = 0;
    j->slice = in ? (at ? c[at] * of.stride[at] : 0) : 0;
    if (!in)
        t->dim[1] = 0;
}

/* The map, the coordinates, the shape of the box. false: reported, or nothing to do. */
static bool
tma_prepare(const tx_act *a, uint32_t l, tma_job *j, bool store)
{
    tx_vm *vm = a->vm;
    tx_tensormap *t = &j->map;
    const char *why;
    int c = tx_act_find(a->k, "c"), o = tx_act_find(a->k, "o"), n = 0;
    uint64_t pointer = tx_act_in(a, tx_act_find(a->k, "t"), l);
    memset(j, 0, sizeof *j);
    j->op = -1;
    if (!tx_map_use(a, l, pointer))
        return false;
    if (!tx_vm_tensormap(vm, pointer, t, &why))
        return tma_complain(a, l, "out_of_bounds", NULL, why, 0, 0);
    for (n = 0; n < 5 && c + n < a->k->nin && a->k->in_name[c + n][0] == 'c'; n++)
        j->coord[n] = (int32_t)tx_act_in(a, c + n, l);
    j->gather = n == 5 && t->rank == 2;
    for (int i = 0; o >= 0 && i < 3 && o + i < a->k->nin && a->k->in_name[o + i][0] == 'o'; i++)
        j->shift[i] = (int64_t)(tx_act_in(a, o + i, l) & 0xffff);
    if (!j->gather && n != t->rank)
        return tma_complain(a, l, "out_of_bounds", NULL, "a map of rank %lld in an instruction for %lld dimensions",
                            t->rank, n);
    if (t->im2col != (o >= 0))
        return tma_complain(a, l, "out_of_bounds", NULL,
                            t->im2col ? "an im2col map in tile mode" : "a tiled map in im2col mode", 0, 0);
    if ((t->interleave && t->dtype >= TX_TM_16U4_ALIGN8B) || t->swizzle == 5)
        return tma_complain(a, l, "unsupported", NULL,
                            "interleaved maps of packed types and swizzle 128B_ATOM_32B_FLIP_8B are not emulated", 0,
                            0);
    for (int d = t->interleave ? 0 : 1, k = 0; t->im2col && k < t->rank - 2; d++, k++)
        if (j->coord[d] < t->lower[k] || j->coord[d] > t->dim[d] - 1 + t->upper[k])
            return tma_complain(a, l, "out_of_bounds", NULL,
                                "coordinate %lld is %lld, outside the window of the map: the hardware stops there", d,
                                j->coord[d]);
    if (t->interleave)
        tma_interleaved(j);
    if (t->dtype > TX_TM_16U4_ALIGN8B) { /* packed in global memory, in cells of 16 bytes in shared memory */
        if (j->coord[0] % 128)
            return tma_complain(a, l, "misaligned", NULL,
                                "coordinate 0 is %lld: it must be a multiple of %lld elements", j->coord[0], 128);
        j->cell = t->dtype == TX_TM_16U4_ALIGN16B ? 8 : 12;
        t->dtype = TX_TM_U8;
        t->dim[0] = t->dim[0] / 16 * j->cell, t->box[0] = t->box[0] / 16 * j->cell;
        t->channels = t->channels / 16 * j->cell, j->coord[0] = j->coord[0] / 16 * j->cell;
    }
    if (t->dtype == TX_TM_16U4_ALIGN8B) { /* two to a byte in both memories: a map of bytes */
        if (j->coord[0] % 32)
            return tma_complain(a, l, "misaligned", NULL,
                                "coordinate 0 is %lld: it must be a multiple of 16 bytes, %lld elements", j->coord[0],
                                32);
        t->dtype = TX_TM_U8;
        t->dim[0] /= 2, t->box[0] /= 2, t->channels /= 2, j->coord[0] /= 2;
    }
    uint32_t mem;
    int64_t off;
    if (!tx_vm_global_at(vm, t->address, &mem, &off))
        return tma_complain(a, l, "out_of_bounds", NULL, "the map's address lies in no tensor of the kernel", 0, 0);
    const char *name = tx_vm_global_name(vm, mem);
    off += j->slice;
    j->mem = mem, j->off = off;
    j->base = vm->mem[mem].base + off;
    j->es = (uint32_t)tx_tensormap_bits(t->dtype) / 8;
    j->inner = (uint32_t)(t->im2col ? t->channels : t->box[0]) * j->es;
    j->rows = j->gather ? 4 : t->im2col ? (uint32_t)t->pixels : 1;
    for (int d = 1; d < t->rank && !j->gather && !t->im2col; d++)
        j->rows *= (uint32_t)((t->box[d] + t->estride[d] - 1) / t->estride[d]);
    j->pitch = j->cell                            ? j->inner / j->cell * 16
               : t->interleave || t->swizzle == 0 ? j->inner
               : t->swizzle > 3                   ? 128
                                                  : 16u << t->swizzle;
    j->size = (j->rows - 1) * j->pitch + (t->swizzle || j->cell ? j->pitch : j->inner);
    if (!t->im2col && j->coord[0] * (int64_t)j->es % 16)
        return tma_complain(a, l, "misaligned", name,
                            "coordinate 0 is %lld: it must be a multiple of 16 bytes, %lld elements", j->coord[0],
                            16 / j->es);
    int64_t most = 0, last = t->dim[0] * j->es;
    for (int d = 1; d < t->rank; d++) {
        int64_t g = j->gather ? t->dim[d] - 1 : t->im2col ? t->dim[d] - 1 : j->coord[d] + t->box[d] - 1;
        g = g >= t->dim[d] ? t->dim[d] - 1 : g;
        most += g > 0 ? g * t->stride[d] : 0;
    }
    if (!t->im2col && !j->gather && j->coord[0] * (int64_t)j->es + j->inner < last)
        last = j->coord[0] * (int64_t)j->es + j->inner;
    if (vm->check && most + last > vm->mem[mem].nbytes - off)
        return tma_complain(a, l, "out_of_bounds", name, "the box reaches byte %lld of a tensor of %lld bytes",
                            most + last, vm->mem[mem].nbytes - off);
    for (int d = 0; store && d < n; d++)
        if (j->coord[d] < 0)
            return tma_complain(a, l, "out_of_bounds", name, "coordinate %lld is %lld: a store takes no negative ones",
                                d, j->coord[d]);
    if (store && vm->check && t->dim[0] * j->es % 16 && (j->coord[0] * (int64_t)j->es + j->inner) > t->dim[0] * j->es &&
        j->coord[0] < t->dim[0])
        return tma_complain(a, l, "out_of_bounds", name,
                            "rows of %lld bytes are no multiple of 16: a store at their end writes %lld bytes too many",
                            t->dim[0] * j->es, 16 - t->dim[0] * j->es % 16);
    if (store && vm->mem[mem].readonly)
        return tma_complain(a, l, "out_of_bounds", name, "the tensor is read-only", 0, 0);
    return true;
}

/* Rows as they are, side by side or not. */
static bool
tma_is_dense(const tma_job *j)
{
    return !j->map.swizzle || (j->inner == j->pitch && !j->map.interleave);
}

static uint32_t
tma_span_count(const tma_job *j)
{
    if (j->cell)
        return j->rows * (j->inner / j->cell);
    return tma_is_dense(j) ? j->rows : j->rows * (j->inner / 16);
}

/* The bytes of shared memory that the box takes: of all rows, or those inside the tensor. */
static uint32_t
tma_spans(const tma_job *j, tx_cta *cta, bool all, tx_span_of *s)
{
    uint32_t n = 0;
    bool dense = !j->cell && tma_is_dense(j);
    int64_t offset;
    for (uint32_t r = 0; r < j->rows; r++) {
        if (!all && !tma_row(j, r, &offset))
            continue;
        for (uint32_t c = 0; c < (dense ? 1 : j->inner / (j->cell ? j->cell : 16)); c++) {
            uint32_t o = dense ? j->image_off + r * j->pitch : j->image_off + tma_swizzle(j, r * j->pitch + c * 16);
            uint32_t size = dense ? j->inner : j->cell ? j->cell : 16;
            if (n && s[n - 1].off + s[n - 1].n == o)
                s[n - 1].n += size;
            else
                s[n++] = (tx_span_of){cta, o, size, 0};
        }
    }
    return n;
}

/* The bytes of the tensor that the box covers, for other kernels of the call. */
static bool
tma_touches(const tx_act *a, uint32_t l, const tma_job *j, unsigned kind)
{
    tx_vm *vm = a->vm;
    tx_chain_touch t = {.site = a->in->site, .kind = kind};
    tma_pixel p = {{0}};
    int64_t from, to, offset = 0, off;
    if (!vm->hooks || !vm->l->chain || !tx_vm_global_at(vm, (uint64_t)(uintptr_t)j->base, &t.mem, &off))
        return true;
    tma_inside(j, &from, &to);
    for (int d = 1; d < j->map.rank; d++)
        p.at[d] = j->coord[d];
    for (uint32_t r = 0; r < j->rows && to > from; r++) {
        bool in = j->map.im2col ? tma_pixel_row(j, &p, &offset) : tma_row(j, r, &offset);
        if (j->map.im2col)
            tma_next_pixel(j, &p);
        offset += off + (j->coord[0] + from) * j->es;
        if (in && !tx_chain_touches(vm, a->f, &t, l, offset, (uint64_t)((to - from) * j->es)))
            return false;
    }
    return true;
}

/* The bytes of global memory that the box takes. */
static bool
tma_global(const tx_issue *i, tx_work *w, const tma_job *j, bool write)
{
    if (!i->vm->hooks || !tx_engines_watch(i->vm, j->mem))
        return true;
    tx_global_span *s = tx_malloc((j->rows + 1) * sizeof *s);
    int64_t from, to, offset = 0;
    uint32_t n = 0;
    tma_pixel p;
    if (!s)
        return tx_vm_nomem(i->vm), false;
    for (int d = 0; d < TX_TM_RANK; d++)
        p.at[d] = j->coord[d];
    tma_inside(j, &from, &to);
    for (uint32_t r = 0; r < j->rows && to > from; r++) {
        bool in = j->map.im2col ? tma_pixel_row(j, &p, &offset) : tma_row(j, r, &offset);
        if (j->map.im2col)
            tma_next_pixel(j, &p);
        offset += j->off + (j->coord[0] + from) * j->es;
        uint32_t size = (uint32_t)(to - from) * j->es;
        if (in && n && s[n - 1].off + s[n - 1].n == offset)
            s[n - 1].n += size;
        else if (in)
            s[n++] = (tx_global_span){j->mem, size, offset};
    }
    return tx_engines_issue(i, w, s, n, write);
}

/* One load; rank: of the CTA that gets it by multicast, -1: as the addresses say. */
static int
tma_issue_load_to(const tx_act *a, uint32_t l, int rank)
{
    tx_vm *vm = a->vm;
    tma_job j;
    tx_where to, bar;
    tx_issue i = tx_act_issue(a, l, true);
    if (!tma_prepare(a, l, &j, false) || !tma_touches(a, l, &j, TX_READ) ||
        !tx_act_where(a, "d", l, j.size, 128, true, &to) || !tx_act_where(a, "b", l, 8, 8, false, &bar) ||
        (rank >= 0 && !tx_act_elsewhere(a, l, (uint32_t)rank, &to, &bar)))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    tx_mbar *b = tx_mbar_for_engine(a, l, &bar);
    if (vm->stop || !b)
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    tx_work *w = tx_work_new(a, l, TX_END_MBAR, vm->hooks ? tma_span_count(&j) : 1, sizeof j);
    if (!w)
        return TX_RUN_STOP;
    j.image = to.p, j.image_off = to.off;
    memcpy(w->data, &j, sizeof j);
    w->write = tma_load_box;
    w->bytes = j.rows * j.inner;
    w->bar_cta = bar.cta, w->bar_off = bar.off;
    w->ndst = vm->hooks ? tma_spans(&j, to.cta, true, w->dst) : 0;
    for (uint32_t k = 0; k < w->ndst; k++)
        if (!tx_shadow_issue_write(&i, &w->dst[k])) {
            tx_work_free(w);
            return TX_RUN_STOP;
        }
    if (!tma_global(&i, w, &j, false)) {
        tx_work_free(w);
        return TX_RUN_STOP;
    }
    return tx_work_issue(vm, w) ? TX_RUN_ON : TX_RUN_STOP;
}

static int
tma_issue_load(const tx_act *a, uint32_t l)
{
    if (!tx_act_has(a, TK_multicast))
        return tma_issue_load_to(a, l, -1);
    for (uint32_t left = (uint32_t)tx_act_in(a, tx_act_find(a->k, "ma"), l) & 0xffff; left; left &= left - 1)
        if (tma_issue_load_to(a, l, (int)tx_first_lane(left)) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(tma_load)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (tma_issue_load(a, tx_first_lane(left)) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

static int
tma_issue_store(const tx_act *a, uint32_t l, int32_t op)
{
    tx_vm *vm = a->vm;
    tma_job j;
    tx_where from;
    tx_issue i = tx_act_issue(a, l, true);
    if (!tma_prepare(a, l, &j, true) || !tma_touches(a, l, &j, op < 0 ? TX_WRITE : TX_ATOMIC) ||
        !tx_act_where(a, "s", l, j.size, 128, false, &from))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    bool stages = vm->late || vm->hooks;
    uint32_t spans = vm->hooks ? tma_span_count(&j) : 1;
    tx_work *w = tx_work_new(a, l, TX_END_GROUP, spans, sizeof j + (stages ? j.size : 0));
    if (!w)
        return TX_RUN_STOP;
    j.image = from.p, j.image_off = from.off, j.op = op;
    tma_job *d = w->data;
    memcpy(d, &j, sizeof j);
    if (stages)
        d->staged = (uint8_t *)(d + 1), w->read = tma_stage;
    w->write = tma_store_box;
    w->bytes = j.rows * j.inner;
    w->group = w->cta->engine->bulk_group[w->thread];
    w->nsrc = vm->hooks ? tma_spans(&j, from.cta, false, w->src) : 0;
    for (uint32_t k = 0; k < w->nsrc; k++)
        if (!tx_shadow_issue_read(&i, &w->src[k])) {
            tx_work_free(w);
            return TX_RUN_STOP;
        }
    i.atomic = op >= 0;
    if (!tma_global(&i, w, &j, true)) {
        tx_work_free(w);
        return TX_RUN_STOP;
    }
    return tx_work_issue(vm, w) ? TX_RUN_ON : TX_RUN_STOP;
}

TX_PTX_AGENT(tma_store)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (tma_issue_store(a, tx_first_lane(left), -1) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(tma_reduce)
{
    static const uint8_t ops[][2] = {{TK_and, TX_ATOM_AND}, {TK_or, TX_ATOM_OR},   {TK_xor, TX_ATOM_XOR},
                                     {TK_inc, TX_ATOM_INC}, {TK_dec, TX_ATOM_DEC}, {TK_min, TX_ATOM_MIN},
                                     {TK_max, TX_ATOM_MAX}, {TK_add, TX_ATOM_ADD}};
    int32_t op = TX_ATOM_ADD;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tx_has_tok(a->k, ops[i][0]))
            op = ops[i][1];
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (tma_issue_store(a, tx_first_lane(left), op) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(tma_prefetch)
{
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        tma_job j;
        if (!tma_prepare(a, tx_first_lane(left), &j, false) && a->vm->stop)
            return TX_RUN_STOP;
    }
    return TX_RUN_ON;
}
