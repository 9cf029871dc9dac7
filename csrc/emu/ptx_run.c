/* Runs the PTX instructions that are functions: values of the lanes in, results out. Also what the `emu` column names, row by
 * row, and addresses in the shared window. SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"

static const tx_ptx_emu *const by_row[] = {
#define PTX(opcode, operands, flags, sm, emu, rules) &tx_emu_ptx_##emu,
#include "ir/ptx.def"
#undef PTX
};

const tx_ptx_emu *
tx_ptx_emu_of(uint32_t row)
{
    return by_row[row];
}

static bool
ptx_run_is_wide(unsigned vt)
{
    return vt == VT_I64 || vt == VT_U64 || vt == VT_F64;
}

const char *
tx_ptx_slot(const tx_ptx_op *k, const char *slot)
{
    uint32_t n;
    const tx_ptx_row *r = &tx_ptx_rows(&n)[k->row];
    for (int i = 0; i < r->nparts; i++)
        if (r->part[i].slot && strcmp(r->part[i].slot, slot) == 0)
            return k->choice[i] < 0 ? NULL : r->part[i].choice[k->choice[i]];
    return NULL;
}

uint64_t
tx_ptx_get(const tx_frag *f, const tx_vreg *r, const tx_ptx_ty *t, uint32_t lane)
{
    uint64_t v = 0;
    uint32_t w;
    if (r->vt == VT_B)
        return tx_reg(f, r->reg)->u32 >> (r->row ? lane : 0) & 1;
    if (ptx_run_is_wide(r->vt))
        memcpy(&v, f->R + r->reg + (r->row ? lane * 8 : 0), 8);
    else {
        memcpy(&w, f->R + r->reg + (r->row ? lane * 4 : 0), 4);
        v = t->cls ? w : (uint64_t)(int64_t)(int32_t)w;
    }
    return t->cls == 'p' ? v != 0 : v & tx_ones((unsigned)t->bits * t->lanes);
}

void
tx_ptx_put(tx_frag *f, const tx_vreg *r, const tx_ptx_ty *t, uint32_t lane, uint64_t v)
{
    uint32_t w;
    v &= tx_ones((unsigned)t->bits * t->lanes);
    w = (uint32_t)v;
    if (r->vt == VT_B) {
        tx_slot *s = tx_reg(f, r->reg);
        s->u32 = (s->u32 & ~(1u << lane)) | (v ? 1u << lane : 0);
    } else if (ptx_run_is_wide(r->vt))
        memcpy(f->R + r->reg + lane * 8, &v, 8);
    else {
        unsigned bits = tx_bits(r->type); /* narrow integers sit extended */
        if (tx_is_signed(r->type) && bits < 32)
            w = (uint32_t)((int32_t)(w << (32 - bits)) >> (32 - bits));
        else if (bits < 32)
            w &= (1u << bits) - 1;
        memcpy(f->R + r->reg + lane * 4, &w, 4);
    }
}

int
tx_vm_ptx(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    const tx_ptx_op *k = vm->p->ptx[in->imm];
    tx_ptx_env e = {vm, k, f, 0};
    uint64_t from[TX_PTX_IN], to[TX_PTX_OUT];

    if (tx_ptx_cvt_pairs(k, f))
        return TX_RUN_ON;
    for (uint32_t left = f->m; left; left &= left - 1) {
        e.lane = tx_first_lane(left);
        for (unsigned i = 0; i < k->nin; i++)
            from[i] = tx_ptx_get(f, &k->in[i], &k->in_t[i], e.lane);
        k->emu->lane(&e, from, to);
        for (unsigned i = 0; i < k->nout; i++)
            tx_ptx_put(f, &k->out[i], &k->out_t[i], e.lane, to[i]);
    }
    return TX_RUN_ON;
}

/* An exchange between the parts of a warp that stand at it. */
int
tx_ptx_exchange(tx_vm *vm, tx_frag **fs, uint32_t n, uint32_t there)
{
    enum { WARP_IN = 6, WARP_OUT = 2 };
    uint64_t from[WARP_IN][TX_LANES], to[WARP_OUT][TX_LANES];
    const tx_ptx_op *first = vm->p->ptx[vm->p->code[fs[0]->pc].imm];
    int bad;

    memset(from, 0, sizeof from);
    memset(to, 0, sizeof to);
    for (uint32_t i = 0; i < n; i++) {
        const tx_ptx_op *k = vm->p->ptx[vm->p->code[fs[i]->pc].imm];
        for (uint32_t left = fs[i]->m; left; left &= left - 1)
            for (unsigned a = 0; a < k->nin && a < WARP_IN; a++) {
                uint32_t lane = tx_first_lane(left);
                from[a][lane] = tx_ptx_get(fs[i], &k->in[a], &k->in_t[a], lane);
            }
    }
    bad = first->emu->warp(first, there, from, to);
    if (bad >= 0 && vm->check)
        return bad;
    for (uint32_t i = 0; i < n; i++) {
        const tx_ptx_op *k = vm->p->ptx[vm->p->code[fs[i]->pc].imm];
        for (uint32_t left = fs[i]->m; left; left &= left - 1)
            for (unsigned a = 0; a < k->nout && a < WARP_OUT; a++) {
                uint32_t lane = tx_first_lane(left);
                tx_ptx_put(fs[i], &k->out[a], &k->out_t[a], lane, to[a][lane]);
            }
    }
    return -1;
}

/* ---- addresses in the shared window ------------------------------------------------------------------------------------ */

uint32_t
tx_ptx_window(const tx_vm *vm, uint64_t pointer)
{
    uint32_t mem;
    int64_t off;
    if (tx_cluster_split(vm, pointer, &mem, &off))
        return (uint32_t)(TX_SYSTEM_BYTES + off) | mem << 24;
    if (!tx_ptr_split(pointer, vm->p->nmems, &mem, &off) || vm->p->mems[mem].scope == TX_GLOBAL ||
        vm->p->mems[mem].scope == TX_LOCAL)
        return 0;
    return (uint32_t)(TX_SYSTEM_BYTES + (vm->mem[mem].base - vm->cta->shared) + off) | vm->cta->cluster_rank << 24;
}

uint64_t
tx_ptx_pointer(const tx_vm *vm, uint64_t address)
{
    int64_t at = (int64_t)(address & 0xffffff) - TX_SYSTEM_BYTES, best = INT64_MIN;
    uint64_t found = 0;
    if (address >> 48)
        return address; /* a pointer already */
    if ((address >> 24 & 0xff) != vm->cta->cluster_rank)
        return tx_cluster_pointer(vm, (uint32_t)(address >> 24), at);
    for (uint32_t i = 0; i < vm->p->nmems; i++) {
        unsigned scope = vm->p->mems[i].scope;
        if ((scope != TX_SHARED && scope != TX_SHARED_DYN) || !vm->mem[i].base)
            continue;
        int64_t base = vm->mem[i].base - vm->cta->shared;
        if (base <= at && base > best) /* the array that begins last before the address */
            best = base, found = tx_ptr_make(i, at - base);
    }
    return found;
}
