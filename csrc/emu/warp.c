/* Exchange between the lanes of a warp: shuffles, votes, reductions, warp_sync. An instruction names its members; it is done
 * when all members that are still in the kernel stand at one of the same kind with the same mask, whatever part of the
 * warp they belong to. SPDX-License-Identifier: Apache-2.0 */
#include "emu/vm.h"

static uint32_t
members(const tx_frag *f, const tx_insn *in)
{
    return tx_reg(f, in->b)->u32;
}

static bool
same_operation(const tx_insn *a, const tx_insn *b)
{
    return a->op == b->op && a->aux == b->aux;
}

/* Parts that wait at the same operation with the same members; gives the lanes that are there. */
static uint32_t
warp_gather(const tx_vm *vm, const tx_warp *w, const tx_insn *in, uint32_t mask, tx_frag **at, uint32_t *n)
{
    uint32_t lanes = 0;
    *n = 0;
    for (uint32_t i = 0; i < w->nfrags; i++) {
        tx_frag *f = w->frag[i];
        if (f->state == TX_WAIT_WARP && f->wait_mask == mask && same_operation(&vm->p->code[f->pc], in)) {
            at[(*n)++] = f;
            lanes |= f->m;
        }
    }
    return lanes;
}

static int
report_members(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, const char *kind, const char *fmt,
               uint32_t other)
{
    tx_emu_report *r = tx_report_begin(vm, kind, in->site);
    tx_report_agent(vm, r, f, lane, in->site, tx_site_of(vm, in->site)->role);
    tx_report_text(r, fmt, lane, other);
    return tx_report_end(vm, r);
}

/* ---- what is exchanged ------------------------------------------------------------------------------------------- */

/* Lane that `lane` reads, as PTX shfl; -1: out of the segment, its own value. */
static int
warp_source_lane(unsigned mode, uint32_t lane, uint32_t b, uint32_t width)
{
    uint32_t segment = ~(width - 1) & 31, low = lane & segment, high = low | (width - 1);
    int j;
    b &= 31;
    switch (mode) {
    case TX_SHFL_IDX: return (int)(low | (b & (width - 1)));
    case TX_SHFL_UP: j = (int)lane - (int)b; return j >= (int)low ? j : -1;
    case TX_SHFL_DOWN: j = (int)(lane + b); return j <= (int)high ? j : -1;
    default: j = (int)(lane ^ b); return j <= (int)high ? j : -1;
    }
}

static int
warp_shuffle(tx_vm *vm, tx_frag **fs, uint32_t n, uint32_t there)
{
    const tx_insn *first = &vm->p->code[fs[0]->pc];
    bool wide = first->aux & 16;
    unsigned size = wide ? 8 : 4;
    uint8_t v[TX_LANES * 8];

    for (uint32_t i = 0; i < n; i++) {
        const tx_insn *in = &vm->p->code[fs[i]->pc];
        for (uint32_t left = fs[i]->m; left; left &= left - 1)
            memcpy(v + tx_first_lane(left) * size, fs[i]->R + in->a + tx_first_lane(left) * size, size);
    }
    for (uint32_t i = 0; i < n; i++) {
        tx_frag *f = fs[i];
        const tx_insn *in = &vm->p->code[f->pc];
        uint32_t width = tx_reg(f, (uint32_t)in->imm)->u32;
        const int32_t *lanes = (const int32_t *)(const void *)(f->R + in->c);
        if (width == 0 || width > TX_LANES || (width & (width - 1)))
            width = TX_LANES;
        for (uint32_t left = f->m; left; left &= left - 1) {
            uint32_t lane = tx_first_lane(left);
            int src = warp_source_lane(in->aux & 15, lane, (uint32_t)lanes[lane], width);
            if (src >= 0 && !(there >> src & 1)) {
                int r = vm->check
                            ? report_members(vm, f, in, lane, "warp",
                                             "shuffle: lane %u reads lane %u, which does not take part", (uint32_t)src)
                            : TX_RUN_ON;
                if (r != TX_RUN_ON)
                    return r;
                src = -1;
            }
            memcpy(f->R + in->d + lane * size, v + (src < 0 ? lane : (uint32_t)src) * size, size);
        }
    }
    return TX_RUN_ON;
}

static void
answer_vote(tx_vm *vm, tx_frag **fs, uint32_t n)
{
    unsigned aux = vm->p->code[fs[0]->pc].aux;
    uint32_t ballot = 0, sum = 0, least = UINT32_MAX;
    uint32_t leader = tx_first_lane(members(fs[0], &vm->p->code[fs[0]->pc]));
    uint32_t there = 0;

    for (uint32_t i = 0; i < n; i++) {
        const tx_insn *in = &vm->p->code[fs[i]->pc];
        there |= fs[i]->m;
        if (aux == TX_VOTE_BALLOT || aux == TX_VOTE_ANY)
            ballot |= tx_reg(fs[i], in->a)->u32 & fs[i]->m;
        else if (aux != TX_VOTE_ELECT)
            for (uint32_t left = fs[i]->m; left; left &= left - 1) {
                uint32_t v;
                memcpy(&v, fs[i]->R + in->a + tx_first_lane(left) * 4, 4);
                sum += v;
                least = v < least ? v : least;
            }
    }
    if (!(there >> leader & 1))
        leader = tx_first_lane(there);
    for (uint32_t i = 0; i < n; i++) {
        tx_slot *d = tx_reg(fs[i], vm->p->code[fs[i]->pc].d);
        switch (aux) {
        case TX_VOTE_BALLOT: d->u32 = ballot; break;
        case TX_VOTE_ANY: d->u32 = ballot != 0; break;
        case TX_VOTE_ADD: d->u32 = sum; break;
        case TX_VOTE_MIN: d->u32 = least; break;
        default: d->u32 = 1u << leader; break;
        }
    }
}

static tx_frag *
holder(tx_frag **fs, uint32_t n, uint32_t lane)
{
    for (uint32_t i = 0; i < n; i++)
        if (fs[i]->m >> lane & 1)
            return fs[i];
    return fs[0];
}

static int
perform(tx_vm *vm, tx_frag **fs, uint32_t n, uint32_t there)
{
    const tx_insn *in = &vm->p->code[fs[0]->pc];
    if (in->op == V_SHFL)
        return warp_shuffle(vm, fs, n, there);
    if (in->op == V_PTXW) {
        int bad = tx_ptx_exchange(vm, fs, n, there);
        return bad < 0 ? TX_RUN_ON
                       : report_members(vm, holder(fs, n, (uint32_t)bad >> 8), in, (uint32_t)bad >> 8, "warp",
                                        "shuffle: lane %u reads lane %u, which does not take part", (uint32_t)bad & 31);
    }
    if (in->op == V_VOTE)
        answer_vote(vm, fs, n);
    else if (vm->hooks && vm->hooks->warp_sync && !in->aux)
        vm->hooks->warp_sync(vm, fs[0]->warp, there);
    return TX_RUN_ON;
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Lets go the parts that wait at this operation when all members are there. */
static int
warp_try_release(tx_vm *vm, tx_warp *w, const tx_insn *in, uint32_t mask, bool *released)
{
    tx_frag *fs[TX_LANES];
    uint32_t n, there = warp_gather(vm, w, in, mask, fs, &n);
    *released = false;
    if (n == 0 || (mask & w->live & ~there))
        return TX_RUN_ON;
    int r = perform(vm, fs, n, there);
    if (r != TX_RUN_ON)
        return r;
    *released = true;
    vm->changes++;
    for (uint32_t i = 0; i < n; i++)
        fs[i]->state = TX_READY, fs[i]->pc++;
    if (in->op == V_WSYNC)
        tx_frag_merge(vm, w, &vm->p->live[in->imm]);
    return TX_RUN_ON;
}

int
tx_vm_warp_op(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    uint32_t mask = members(f, in), missing;
    bool released;
    int r;

    if (vm->check && (f->m & ~mask)) {
        r = report_members(vm, f, in, tx_first_lane(f->m & ~mask), "warp",
                           "lane %u executes an instruction whose mask 0x%08x does not name it", mask);
        if (r != TX_RUN_ON)
            return r;
    }
    mask |= f->m;
    missing = mask & f->warp->live & ~f->m;
    if (!missing)
        return perform(vm, &f, 1, f->m);
    tx_frag_split(vm, f);
    if (vm->stop)
        return TX_RUN_STOP;
    f->state = TX_WAIT_WARP;
    f->wait_mask = mask;
    r = warp_try_release(vm, f->warp, in, mask, &released);
    return r != TX_RUN_ON ? r : TX_RUN_BLOCK;
}

/* Lanes have left the kernel: parts that wait for them go on, or were promised lanes that never came. */
int
tx_warp_left(tx_vm *vm, tx_warp *w, uint32_t lanes)
{
    for (uint32_t i = 0; i < w->nfrags; i++) {
        tx_frag *f = w->frag[i];
        bool released;
        if (f->state != TX_WAIT_WARP || !(f->wait_mask & lanes))
            continue;
        const tx_insn *in = &vm->p->code[f->pc];
        if (vm->check) {
            int r = report_members(
                vm, f, in, tx_first_lane(f->m), in->op == V_WSYNC ? "divergence" : "warp",
                "lane %u executes an instruction that names lane %u, which has left the kernel without it",
                tx_first_lane(lanes & f->wait_mask));
            if (r != TX_RUN_ON)
                return r;
        }
        int r = warp_try_release(vm, w, in, f->wait_mask, &released);
        if (r != TX_RUN_ON)
            return r;
        if (released)
            i = (uint32_t)-1; /* parts may have joined */
    }
    return TX_RUN_ON;
}
