/* Tensor maps as the running kernel sees them: from a pointer to the map, and from the addresses in a map to the memories of
 * the run; and the instructions that change a map and publish it (tensormap.replace, tensormap.cp_fenceproxy). SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "emu/async.h"
#include "emu/ptx_list.h"

bool
tx_vm_tensormap(const tx_vm *vm, uint64_t pointer, tx_tensormap *t, const char **why)
{
    uint32_t mem;
    int64_t off;
    uint8_t bytes[TX_TM_BYTES];

    *why = "the pointer leads to no tensor map";
    if (!tx_ptr_split(pointer, vm->p->nmems, &mem, &off) || vm->p->mems[mem].scope == TX_LOCAL || !vm->mem[mem].base)
        return false;
    *why = "the tensor map lies outside the memory that the pointer leads to";
    if (off < -vm->mem[mem].before || off > vm->mem[mem].nbytes - TX_TM_BYTES)
        return false;
    memcpy(bytes, vm->mem[mem].base + off, sizeof bytes);
    *why = "the 128 bytes that the pointer leads to are no tensor map";
    return tx_tensormap_decode(bytes, t);
}

const char *
tx_vm_global_name(const tx_vm *vm, uint32_t mem)
{
    const tx_memory *m = &vm->p->mems[mem];
    const char *name = m->target ? vm->l->args[m->param].target_name : NULL;

    return name ? name : m->name;
}

bool
tx_vm_global_at(const tx_vm *vm, uint64_t address, uint32_t *mem, int64_t *off)
{
    for (int target = 0; target <= 1; target++) {
        for (uint32_t i = 0; i < vm->p->nmems; i++) {
            const tx_mem *m = &vm->mem[i];
            int64_t at = (int64_t)(address - (uint64_t)(uintptr_t)m->base);
            if (vm->p->mems[i].scope != TX_GLOBAL || vm->p->mems[i].target != (target == 1) || !m->base)
                continue;
            if (at >= -m->before && at < m->nbytes) {
                *mem = i;
                *off = at;
                return true;
            }
        }
    }
    return false;
}

/* ---- tensormap.replace ------------------------------------------------------------------------------------------------ */

/* A generic access of a lane to the map's bytes, as the checkers see it. false: reported. */
static bool
tmap_touch(const tx_act *a, uint32_t l, const tx_where *w, uint8_t kind)
{
    const tx_issue i = tx_act_issue(a, l, false);
    const tx_span_of span = {w->cta, w->off, TX_TM_BYTES, 0};

    return !a->vm->hooks || w->space == TX_GLOBAL || tx_shadow_touch(&i, &span, kind);
}

static int
tmap_replace_lane(const tx_act *a, uint32_t l, int field, const char *name)
{
    tx_where map, to;
    int ord = tx_act_find(a->k, "or"), at = ord < 0 ? 0 : (int)tx_act_in(a, ord, l);
    uint64_t v = tx_act_in(a, tx_act_find(a->k, "v"), l);
    tx_emu_report *r;

    if (!tx_act_where(a, "a", l, TX_TM_BYTES, TX_TM_ALIGN, true, &map))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    if (!tmap_touch(a, l, &map, TX_WRITE))
        return TX_RUN_STOP;
    if (field == TX_TM_GLOBAL_ADDRESS && tx_where_of(a->vm, v, &to) && to.space == TX_GLOBAL)
        v = (uint64_t)(uintptr_t)to.p; /* maps hold addresses of the machine */
    if (tx_tensormap_replace(map.p, (enum tx_tm_field)field, at, v))
        return tx_map_changed(a, l, &map, false) ? TX_RUN_ON : TX_RUN_STOP;
    r = tx_act_report(a, l, "misaligned");
    tx_report_text(r, "tensormap.replace: %" PRIu64 " is no %s of a tensor map%s", v, name,
                   field == TX_TM_GLOBAL_STRIDE    ? " (a multiple of 16 below 2**40)"
                   : field == TX_TM_GLOBAL_ADDRESS ? " (a multiple of 16)"
                                                   : "");
    return tx_report_end(a->vm, r);
}

TX_PTX_AGENT(tmap_replace)
{
    static const struct {
        const char *name;
        uint8_t token, field;
    } fields[] = {{"address", TK_global_address, TX_TM_GLOBAL_ADDRESS},
                  {"rank less 1", TK_rank, TX_TM_RANK_FIELD},
                  {"box size", TK_box_dim, TX_TM_BOX_DIM},
                  {"size", TK_global_dim, TX_TM_GLOBAL_DIM},
                  {"element stride", TK_element_stride, TX_TM_ELEMENT_STRIDE},
                  {"stride", TK_global_stride, TX_TM_GLOBAL_STRIDE},
                  {"element type", TK_elemtype, TX_TM_ELEMTYPE},
                  {"interleave mode", TK_interleave_layout, TX_TM_INTERLEAVE_LAYOUT},
                  {"swizzle mode", TK_swizzle_mode, TX_TM_SWIZZLE_MODE},
                  {"fill mode", TK_fill_mode, TX_TM_FILL_MODE}};
    size_t i = 0;

    while (i + 1 < sizeof fields / sizeof *fields && !tx_act_has(a, fields[i].token))
        i++;
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        int ran = tmap_replace_lane(a, tx_first_lane(left), fields[i].field, fields[i].name);
        if (ran != TX_RUN_ON)
            return ran;
    }
    return TX_RUN_ON;
}

/* The warp together copies a map from shared to global memory and fences it: one copy, whatever lane. */
TX_PTX_AGENT(tmap_cp)
{
    uint32_t l = tx_first_lane(a->f->m);
    tx_where from, to;

    if (!tx_act_where(a, "s", l, TX_TM_BYTES, TX_TM_ALIGN, false, &from) ||
        !tx_act_where(a, "d", l, TX_TM_BYTES, TX_TM_ALIGN, true, &to))
        return a->vm->stop ? TX_RUN_STOP : TX_RUN_ON;
    for (uint32_t left = a->f->m; left; left &= left - 1) /* each may be the one that reads */
        if (!tmap_touch(a, tx_first_lane(left), &from, TX_READ))
            return TX_RUN_STOP;
    memcpy(to.p, from.p, TX_TM_BYTES);
    return tx_map_changed(a, l, &to, true) ? TX_RUN_ON : TX_RUN_STOP;
}
