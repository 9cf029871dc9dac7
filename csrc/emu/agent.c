/* Instructions of the asynchronous hardware: their operands and addresses, and parts of warps that wait for an event.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"

/* ---- operands ---------------------------------------------------------------------------------------------------- */

int
tx_act_find(const tx_ptx_op *k, const char *name)
{
    for (int i = 0; i < k->nin; i++)
        if (k->in_name[i][0] == name[0] && (!name[1] || !k->in_name[i][1] || k->in_name[i][1] == name[1]))
            return i;
    return -1;
}

uint64_t
tx_act_in(const tx_act *a, int i, uint32_t lane)
{
    return i < 0 ? 0 : tx_ptx_get(a->f, &a->k->in[i], &a->k->in_t[i], lane);
}

void
tx_act_out(const tx_act *a, uint32_t i, uint32_t lane, uint64_t v)
{
    if (i < a->k->nout)
        tx_ptx_put(a->f, &a->k->out[i], &a->k->out_t[i], lane, v);
}

tx_emu_report *
tx_act_report(const tx_act *a, uint32_t lane, const char *kind)
{
    tx_emu_report *r = tx_report_begin(a->vm, kind, a->in->site);
    tx_report_agent(a->vm, r, a->f, lane, a->in->site, tx_site_of(a->vm, a->in->site)->role);
    return r;
}

tx_issue
tx_act_issue(const tx_act *a, uint32_t lane, bool async_proxy)
{
    tx_issue i = {a->vm, a->f, lane, a->in->site, async_proxy, tx_site_of(a->vm, a->in->site)->role, false};
    return i;
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

bool
tx_where_of(tx_vm *vm, uint64_t pointer, tx_where *w)
{
    int64_t off;
    uint32_t rank;
    memset(w, 0, sizeof *w);
    if (tx_cluster_split(vm, pointer, &rank, &off)) {
        tx_cta *peer = tx_cluster_peer(vm, rank);
        if (!peer || off < 0 || (w->mem = tx_mem_at(vm, peer, (uint32_t)off)) == UINT32_MAX)
            return false;
        int64_t base = peer->mem[w->mem].base - peer->shared;
        w->space = vm->p->mems[w->mem].scope, w->cta = peer;
        w->off = (uint32_t)off, w->p = peer->shared + off;
        w->before = off - base, w->room = peer->mem[w->mem].nbytes - w->before;
        return true;
    }
    if (!tx_ptr_split(pointer, vm->p->nmems, &w->mem, &off))
        return false;
    const tx_memory *m = &vm->p->mems[w->mem];
    const tx_mem *at = &vm->mem[w->mem];
    w->space = m->scope, w->cta = vm->cta;
    if (m->scope == TX_LOCAL)
        return false;
    w->p = at->base + off;
    w->before = off + (m->scope == TX_GLOBAL ? at->before : 0);
    w->room = at->nbytes - off;
    w->readonly = m->scope == TX_GLOBAL && at->readonly;
    if (m->scope != TX_GLOBAL)
        w->off = (uint32_t)(at->base - vm->cta->shared + off);
    return true;
}

static const char *
memory_name(const tx_act *a, const tx_where *w)
{
    const char *name = a->vm->p->mems[w->mem].name;
    return name ? name : "";
}

bool
tx_act_where(const tx_act *a, const char *name, uint32_t lane, int64_t n, uint32_t align, bool store, tx_where *w)
{
    tx_vm *vm = a->vm;
    const char *role = tx_site_of(vm, a->in->site)->role;
    tx_emu_report *r;
    uint64_t pointer = tx_act_in(a, tx_act_find(a->k, name), lane);
    uint32_t rank;
    int64_t off;
    if (!tx_where_of(vm, pointer, w)) {
        if (tx_cluster_split(vm, pointer, &rank, &off) && !tx_cluster_peer(vm, rank)) {
            tx_cluster_missing(vm, a->f, lane, a->in->site, rank);
            return false;
        }
        r = tx_act_report(a, lane, "out_of_bounds");
        tx_report_text(r, "%s through a pointer that points nowhere", role);
        tx_report_end(vm, r);
        return false;
    }
    if (w->before < 0 || w->room < n) {
        r = tx_act_report(a, lane, "out_of_bounds");
        strncpy(r->buffer, memory_name(a, w), sizeof r->buffer - 1);
        tx_report_text(r, "%s of %lld bytes at byte %lld of %s, which has %lld bytes", role, (long long)n,
                       (long long)w->before, r->buffer, (long long)(w->before + w->room));
        tx_report_end(vm, r);
        return false;
    }
    uint64_t at = w->space == TX_GLOBAL ? (uint64_t)w->before : w->off; /* arguments are taken for aligned */
    if (align > 1 && at % align) {
        r = tx_act_report(a, lane, "misaligned");
        strncpy(r->buffer, memory_name(a, w), sizeof r->buffer - 1);
        tx_report_text(r, "%s: byte %lld of %s is not a multiple of %u", role, (long long)w->before, r->buffer, align);
        tx_report_end(vm, r);
        return false;
    }
    if (store && w->readonly) {
        r = tx_act_report(a, lane, "out_of_bounds");
        strncpy(r->buffer, memory_name(a, w), sizeof r->buffer - 1);
        tx_report_text(r, "%s of %s, which is read-only", role, r->buffer);
        tx_report_end(vm, r);
        return false;
    }
    return true;
}

bool
tx_act_touches(const tx_act *a, uint32_t lane, const tx_where *w, uint64_t n, unsigned kind)
{
    const tx_chain_touch t = {.mem = w->mem, .site = a->in->site, .kind = kind};
    if (w->space != TX_GLOBAL || !a->vm->hooks || !a->vm->l->chain)
        return true;
    return tx_chain_touches(a->vm, a->f, &t, lane, w->p - a->vm->mem[w->mem].base, n);
}

/* The same place in another CTA of the cluster. NULL: it is not there, and that is reported. */
tx_cta *
tx_act_peer(const tx_act *a, uint32_t lane, uint32_t rank)
{
    tx_cta *peer = tx_cluster_peer(a->vm, rank);
    if (!peer)
        tx_cluster_missing(a->vm, a->f, lane, a->in->site, rank);
    return peer;
}

/* Multicast: destination and mbarrier at the same places of that CTA. */
bool
tx_act_elsewhere(const tx_act *a, uint32_t lane, uint32_t rank, tx_where *to, tx_where *bar)
{
    tx_cta *peer = tx_act_peer(a, lane, rank);
    if (!peer)
        return false;
    to->cta = bar->cta = peer;
    to->p = peer->shared + to->off, bar->p = peer->shared + bar->off;
    return true;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

int
tx_vm_agent(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    tx_act a = {vm, f, in, vm->p->ptx[in->imm]};
    int r = a.k->emu->agent(&a);
    return vm->stop ? TX_RUN_STOP : r;
}

/* A part waits for an event: has it come? Gives TX_RUN_ON when the part can go on. */
int
tx_agent_poll(tx_vm *vm, tx_frag *f)
{
    const tx_insn *in = &vm->p->code[f->pc];
    tx_act a = {vm, f, in, vm->p->ptx[in->imm]};
    int r = a.k->emu->agent(&a);
    if (vm->stop)
        return TX_RUN_STOP;
    if (r != TX_RUN_ON)
        return r;
    f->state = TX_READY;
    f->pc++;
    vm->changes++;
    if (f->warp->nfrags > 1)
        tx_frag_merge(vm, f->warp, &vm->p->live[a.k->live]);
    return TX_RUN_ON;
}
