/* Bulk copies and reductions: global to shared memory and back, shared memory to that of another CTA; their groups.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"

typedef struct bulk {
    const uint8_t *from;
    uint8_t *to;
    uint32_t n;
    int32_t op;   /* TX_ATOM_*, -1: a copy */
    uint8_t kind; /* dtype kind of a reduction */
    bool masked;
    uint16_t mask; /* bytes of each 16 */
    uint8_t *staged;
} bulk;

static bool
bulk_read(tx_vm *vm, tx_work *w)
{
    bulk *b = w->data;
    (void)vm;
    memcpy(b->staged, b->from, b->n);
    return true;
}

static bool
bulk_write(tx_vm *vm, tx_work *w)
{
    bulk *b = w->data;
    const uint8_t *from = b->staged ? b->staged : b->from;
    (void)vm;
    if (b->op >= 0)
        tx_reduce_bytes(b->to, from, b->n, (unsigned)b->op, b->kind);
    else if (b->masked) {
        for (uint32_t i = 0; i < b->n; i++)
            if (b->mask >> i % 16 & 1)
                b->to[i] = from[i];
    } else
        memcpy(b->to, from, b->n);
    return true;
}

static bool
bulk_global(const tx_issue *i, tx_work *w, const tx_where *at, uint32_t n, bool write)
{
    if (!i->vm->hooks || !tx_engines_watch(i->vm, at->mem))
        return true;
    tx_global_span *s = tx_malloc(sizeof *s);
    if (!s)
        return tx_vm_nomem(i->vm), false;
    *s = (tx_global_span){at->mem, n, at->p - i->vm->mem[at->mem].base};
    return tx_engines_issue(i, w, s, 1, write);
}

/* One copy; rank: of the CTA that gets it by multicast, -1: as the addresses say. */
static int
bulk_issue_one(const tx_act *a, uint32_t l, int32_t op, unsigned kind, int rank)
{
    tx_vm *vm = a->vm;
    tx_where to, from, bar = {0};
    tx_issue i = tx_act_issue(a, l, true);
    bool has_bar = tx_act_find(a->k, "b") >= 0;
    uint32_t n = (uint32_t)tx_act_in(a, tx_act_find(a->k, "n"), l);
    int mask = rank < 0 ? tx_act_find(a->k, "m") : -1;
    tx_mbar *b = NULL;

    if (!tx_act_where(a, "d", l, n, 16, true, &to) || !tx_act_where(a, "s", l, n, 16, false, &from) ||
        !tx_act_touches(a, l, &to, n, op < 0 ? TX_WRITE : TX_ATOMIC) || !tx_act_touches(a, l, &from, n, TX_READ))
        return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    if (n % 16) {
        tx_emu_report *r = tx_act_report(a, l, "misaligned");
        strncpy(r->buffer, vm->p->mems[to.mem].name, sizeof r->buffer - 1);
        tx_report_text(r, "%s of %u bytes: the size is a multiple of 16", i.role, n);
        return tx_report_end(vm, r);
    }
    if (has_bar) {
        if (!tx_act_where(a, "b", l, 8, 8, false, &bar))
            return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
        if (rank >= 0 && !tx_act_elsewhere(a, l, (uint32_t)rank, &to, &bar))
            return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
        b = tx_mbar_for_engine(a, l, &bar);
        if (vm->stop)
            return TX_RUN_STOP;
        if (!b)
            return TX_RUN_ON;
    }
    bool stages = !has_bar && (vm->late || vm->hooks);
    tx_work *w = tx_work_new(a, l, has_bar ? TX_END_MBAR : TX_END_GROUP, 2, sizeof(bulk) + (stages ? n : 0));
    if (!w)
        return TX_RUN_STOP;
    bulk *d = w->data;
    d->from = from.p, d->to = to.p, d->n = n, d->op = op, d->kind = (uint8_t)kind;
    if (mask >= 0)
        d->masked = true, d->mask = (uint16_t)tx_act_in(a, mask, l);
    if (from.space != TX_GLOBAL)
        w->src[w->nsrc++] = (tx_span_of){from.cta, from.off, n, 0};
    w->dst = w->src + w->nsrc;
    if (to.space != TX_GLOBAL)
        w->dst[w->ndst++] = (tx_span_of){to.cta, to.off, n, 0};
    if (stages)
        d->staged = (uint8_t *)(d + 1), w->read = bulk_read;
    w->write = bulk_write;
    w->bytes = n;
    w->bar_cta = bar.cta, w->bar_off = bar.off;
    w->group = w->cta->engine->bulk_group[w->thread];
    i.atomic = w->atomic = op >= 0;
    if ((w->nsrc && !tx_shadow_issue_read(&i, w->src)) || (w->ndst && !tx_shadow_issue_write(&i, w->dst)) ||
        (from.space == TX_GLOBAL && !bulk_global(&i, w, &from, n, false)) ||
        (to.space == TX_GLOBAL && !bulk_global(&i, w, &to, n, true))) {
        tx_work_free(w);
        return TX_RUN_STOP;
    }
    return tx_work_issue(vm, w) ? TX_RUN_ON : TX_RUN_STOP;
}

static int
bulk_issue(const tx_act *a, uint32_t l, int32_t op, unsigned kind)
{
    if (!tx_act_has(a, TK_multicast))
        return bulk_issue_one(a, l, op, kind, -1);
    for (uint32_t left = (uint32_t)tx_act_in(a, tx_act_find(a->k, "m"), l) & 0xffff; left; left &= left - 1)
        if (bulk_issue_one(a, l, op, kind, (int)tx_first_lane(left)) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(bulk_copy)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (bulk_issue(a, tx_first_lane(left), -1, 0) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

/* Type and operation of a reduction from the modifiers. */
void
tx_act_reduction(const tx_act *a, int32_t *op, unsigned *kind)
{
    static const struct {
        uint8_t tok, op;
    } ops[] = {{TK_and, TX_ATOM_AND}, {TK_or, TX_ATOM_OR},   {TK_xor, TX_ATOM_XOR}, {TK_inc, TX_ATOM_INC},
               {TK_dec, TX_ATOM_DEC}, {TK_min, TX_ATOM_MIN}, {TK_max, TX_ATOM_MAX}, {TK_add, TX_ATOM_ADD}};
    static const struct {
        uint8_t tok, kind;
    } types[] = {{TK_f32, TX_KIND_F32}, {TK_f64, TX_KIND_F64}, {TK_s32, TX_KIND_I32}, {TK_s64, TX_KIND_I64},
                 {TK_u64, TX_KIND_U64}, {TK_b64, TX_KIND_U64}, {TK_f16, TX_KIND_F16}, {TK_bf16, TX_KIND_BF16}};
    *op = TX_ATOM_ADD, *kind = TX_KIND_U32;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tx_has_tok(a->k, ops[i].tok))
            *op = ops[i].op;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (tx_has_tok(a->k, types[i].tok))
            *kind = types[i].kind;
}

TX_PTX_AGENT(bulk_reduce)
{
    int32_t op;
    unsigned kind;
    tx_act_reduction(a, &op, &kind);
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (bulk_issue(a, tx_first_lane(left), op, kind) != TX_RUN_ON)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(bulk_prefetch)
{
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        tx_where from;
        uint32_t l = tx_first_lane(left);
        tx_act_where(a, "s", l, (int64_t)tx_act_in(a, tx_act_find(a->k, "n"), l), 16, false, &from);
    }
    return TX_RUN_ON;
}

TX_PTX_AGENT(bulk_commit)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        a->f->warp->cta->engine->bulk_group[a->f->warp->index * TX_LANES + tx_first_lane(left)]++;
    return TX_RUN_ON;
}

TX_PTX_AGENT(bulk_wait)
{
    uint32_t newest = (uint32_t)tx_act_in(a, tx_act_find(a->k, "n"), tx_first_lane(a->f->m));
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (!tx_engine_wait_group(a->vm, a->f->warp->cta, a->f->warp->index * TX_LANES + tx_first_lane(left), newest,
                                  tx_act_has(a, TK_read)))
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

TX_PTX_AGENT(fence_proxy)
{
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    const char *space = tx_ptx_slot(a->k, "space");
    if (!tx_ptx_slot(a->k, "kind"))
        tx_map_fence(a);
    if (o && tx_act_has(a, TK_async)) {
        uint32_t first = tx_order_thread(cta, a->f->warp->index * TX_LANES);
        if (space && strcmp(space, "global") == 0) /* what it orders is no shared memory */
            tx_order_fence_global(o, first, a->f->m);
        else
            tx_order_fence_proxy(o, first, a->f->m);
        if (!space || strcmp(space, "global") == 0)
            a->vm->proxy_fence = o->e.now;
    }
    return TX_RUN_ON;
}

TX_PTX_MATRIX(fence)
{
    tx_cta *cta = a->f->warp->cta;
    tx_order *o = tx_shadow_order(cta);
    if (tx_act_has(a, TK_mbarrier_init))
        tx_mbar_fence_init(a, a->f->m);
    else if (o) {
        uint32_t first = tx_order_thread(cta, a->f->warp->index * TX_LANES);
        uint8_t scope = tx_act_has(a, TK_cta) ? 0 : tx_act_has(a, TK_cluster) ? 1 : 2;
        if (!tx_act_has(a, TK_release))
            tx_global_fence(a->vm, a->f, scope), tx_flags_fence(o, first, a->f->m, scope);
        if (scope == 2 && !tx_act_has(a, TK_acquire))
            tx_order_fence_wide(o, first, a->f->m);
        else if (!tx_act_has(a, TK_acquire))
            tx_order_fence_near(o, first, a->f->m, scope);
    }
    return TX_RUN_ON;
}
