/* Parts of warps: frames, control stacks, splitting, joining, leaving. A warp starts as one part. When lanes wait while others
 * of their warp could go on, the part is split: both halves keep a frame and a control stack of their own, in which only
 * their lanes occur. Parts that stand at the same place of the same control flow join again. SPDX-License-Identifier: Apache-2.0 */
#include "emu/sched.h"
#include "emu/watch.h"

static const uint32_t FRAME_ALIGN = 64;

/* One piece of memory: the part, its control stack, its frame. */
static tx_frag *
new_frag(tx_vm *vm)
{
    const tx_emu_program *p = vm->p;
    size_t head = (sizeof(tx_frag) + p->max_ctl * sizeof(tx_ctl) + FRAME_ALIGN - 1) / FRAME_ALIGN * FRAME_ALIGN;
    uint8_t *raw = tx_calloc(1, head + p->frame_bytes + 2 * FRAME_ALIGN);
    if (!raw)
        return NULL;
    size_t skew = (FRAME_ALIGN - (uintptr_t)raw % FRAME_ALIGN) % FRAME_ALIGN;
    if (skew < sizeof(void *)) /* room for the address to free */
        skew += FRAME_ALIGN;
    uint8_t *at = raw + skew;
    memcpy(at - sizeof(void *), &raw, sizeof(void *));
    tx_frag *f = (tx_frag *)(void *)at;
    f->ctl = (tx_ctl *)(void *)(at + sizeof(tx_frag));
    f->R = at + head;
    memcpy(f->R + p->consts_at, p->consts, p->nconsts * sizeof(tx_slot));
    for (uint32_t i = 0; i < p->npresets; i++)
        tx_preset_value(&p->presets[i], &vm->l->args[p->presets[i].param], tx_reg(f, p->presets[i].reg));
    return f;
}

tx_frag *
tx_frag_get(tx_vm *vm)
{
    tx_frag *f = vm->npool ? vm->pool[--vm->npool] : new_frag(vm);
    if (!f) {
        tx_vm_nomem(vm);
        return NULL;
    }
    f->sp = 0, f->pc = 0, f->state = TX_READY, f->arrived = false, f->hash = 0, f->spins = false;
    return f;
}

static void
free_frag(tx_frag *f)
{
    void *raw;
    memcpy(&raw, (uint8_t *)f - sizeof(void *), sizeof(void *));
    tx_free(raw);
}

void
tx_frag_put(tx_vm *vm, tx_frag *f)
{
    if (vm->npool == vm->pool_cap) {
        uint32_t cap = vm->pool_cap ? vm->pool_cap * 2 : 16;
        tx_frag **pool = tx_realloc(vm->pool, cap * sizeof *pool);
        if (!pool) {
            free_frag(f);
            return;
        }
        vm->pool = pool, vm->pool_cap = cap;
    }
    vm->pool[vm->npool++] = f;
}

void
tx_frag_free_pool(tx_vm *vm)
{
    for (uint32_t i = 0; i < vm->npool; i++)
        free_frag(vm->pool[i]);
    tx_free(vm->pool);
}

/* ---- splitting and joining --------------------------------------------------------------------------------------------- */

static uint32_t
set_aside(const tx_frag *f)
{
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < f->sp; i++)
        lanes |= f->ctl[i].restore | f->ctl[i].els;
    return lanes & ~f->m;
}

static void
keep_lanes(tx_frag *f, uint32_t lanes)
{
    for (uint32_t i = 0; i < f->sp; i++)
        f->ctl[i].restore &= lanes, f->ctl[i].els &= lanes;
}

tx_frag *
tx_frag_split(tx_vm *vm, tx_frag *f)
{
    uint32_t others = set_aside(f) & f->warp->live;
    tx_warp *w = f->warp;
    tx_frag *g;

    if (!others)
        return NULL;
    g = tx_frag_get(vm);
    if (!g)
        return NULL;
    g->warp = w;
    memcpy(g->R, f->R, vm->p->frame_bytes);
    memcpy(g->ctl, f->ctl, f->sp * sizeof *f->ctl);
    g->sp = f->sp;
    g->m = 0; /* the interpreter goes on where the innermost lanes were set aside */
    keep_lanes(g, others);
    keep_lanes(f, f->m);
    w->frag[w->nfrags++] = g;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_split(vm, f, g);
    return g;
}

static bool
can_join(const tx_frag *a, const tx_frag *b, const tx_live *live)
{
    if (a->state != TX_READY || b->state != TX_READY || a->pc != b->pc || a->sp != b->sp || !a->m || !b->m)
        return false;
    for (uint32_t i = 0; i < a->sp; i++)
        if (a->ctl[i].pc != b->ctl[i].pc)
            return false;
    for (uint32_t i = 0; i < live->n; i++)
        if (tx_reg(a, live->slot[i])->u64 != tx_reg(b, live->slot[i])->u64)
            return false;
    return true;
}

static void
join(const tx_emu_program *p, tx_frag *a, const tx_frag *b)
{
    uint32_t lanes = b->m | set_aside(b);
    for (uint32_t i = 0; i < p->ninits + p->nmasks; i++) {
        uint32_t at = i < p->ninits ? p->inits_at + 8 * i : p->masks_at + 8 * (i - p->ninits);
        tx_slot *x = tx_reg(a, at);
        x->u32 = (x->u32 & ~lanes) | (tx_reg(b, at)->u32 & lanes);
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        for (uint32_t i = 0; i < p->nrows4; i++)
            memcpy(a->R + p->rows4_at + (i * TX_LANES + l) * 4, b->R + p->rows4_at + (i * TX_LANES + l) * 4, 4);
        for (uint32_t i = 0; i < p->nrows8; i++)
            memcpy(a->R + p->rows8_at + (i * TX_LANES + l) * 8, b->R + p->rows8_at + (i * TX_LANES + l) * 8, 8);
    }
    for (uint32_t i = 0; i < a->sp; i++)
        a->ctl[i].restore |= b->ctl[i].restore, a->ctl[i].els |= b->ctl[i].els;
    a->m |= b->m;
}

static void
remove_frag(tx_vm *vm, tx_warp *w, uint32_t i)
{
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_gone(vm, w->frag[i]);
    tx_frag_put(vm, w->frag[i]);
    w->frag[i] = w->frag[--w->nfrags];
}

void
tx_frag_merge(tx_vm *vm, tx_warp *w, const tx_live *live)
{
    for (uint32_t i = 0; i < w->nfrags; i++)
        for (uint32_t k = i + 1; k < w->nfrags;) {
            if (!can_join(w->frag[i], w->frag[k], live)) {
                k++;
                continue;
            }
            join(vm->p, w->frag[i], w->frag[k]);
            if (TX_UNLIKELY(vm->watch != NULL))
                tx_watch_join(vm, w->frag[i], w->frag[k]);
            remove_frag(vm, w, k);
        }
}

void
tx_frag_drop_gone(tx_vm *vm, tx_warp *w)
{
    for (uint32_t i = 0; i < w->nfrags;)
        if (w->frag[i]->state == TX_GONE)
            remove_frag(vm, w, i);
        else
            i++;
}

/* The active lanes leave the kernel. */
void
tx_frag_exit(tx_vm *vm, tx_frag *f)
{
    uint32_t lanes = f->m;
    f->warp->live &= ~lanes;
    f->warp->cta->exited += lanes == TX_FULL ? TX_LANES : (uint32_t)__builtin_popcount(lanes);
    f->m = 0;
    keep_lanes(f, ~lanes);
    vm->changes++;
    if (f->warp->nfrags > 1)
        tx_warp_left(vm, f->warp, lanes);
    if (!vm->stop)
        tx_barrier_left(vm, f->warp);
}
