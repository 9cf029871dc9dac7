/* Checker: kernels of one call that overlap by programmatic dependent launch. A launch that says so may begin before the one before it
 * has ended, so what that one has written is there only behind griddepcontrol.wait, and what it reads may only then be overwritten.
 *
 * The emulator runs launches one after the other. For calls with such a launch it keeps which bytes each has touched: `near`, of the launch
 * just before, which a wait orders; `far`, of earlier ones, which are over only if the launch between has itself waited. A thread is
 * behind a wait if it, or a thread of its cluster that it has met since, has executed one; or after a strong read of what the earlier
 * kernel wrote strongly, which may be their own protocol. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"

enum { PAGE = 4096, WORDS = PAGE / 64 };
typedef struct chain_page { /* a bit a byte */
    uint64_t page;
    uint64_t read[WORDS], written[WORDS], updated[WORDS]; /* updated: by atomics and strong stores only */
} chain_page;
typedef struct chain_set {
    tx_map pages; /* address / PAGE -> chain_page */
    chain_page **all;
    uint32_t n, cap;
    char kernel[64]; /* the last one */
} chain_set;
struct tx_emu_chain {
    chain_set now, near, far;
    bool waited; /* a thread of the launch that runs has */
    bool open;   /* there is something near or far */
};

/* ---- what was touched -------------------------------------------------------------------------------------------------- */

static void
chain_clear(chain_set *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        tx_free(s->all[i]);
    tx_free(s->all);
    tx_map_free(&s->pages);
    memset(s, 0, sizeof *s);
}

static chain_page *
chain_page_at(chain_set *s, uint64_t page)
{
    uint64_t v;
    if (tx_map_get(&s->pages, page, &v))
        return (chain_page *)(uintptr_t)v;
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        chain_page **all = tx_realloc(s->all, cap * sizeof *all);
        if (!all)
            return NULL;
        s->all = all, s->cap = cap;
    }
    chain_page *p = tx_calloc(1, sizeof *p);
    if (!p || !tx_map_put(&s->pages, page, (uint64_t)(uintptr_t)p)) {
        tx_free(p);
        return NULL;
    }
    p->page = page;
    return s->all[s->n++] = p;
}

/* All of `from` into `to`, also its kernel's name. */
static bool
chain_join(chain_set *to, chain_set *from)
{
    for (uint32_t i = 0; i < from->n; i++) {
        const chain_page *f = from->all[i];
        chain_page *t = chain_page_at(to, f->page);
        if (!t)
            return false;
        for (int k = 0; k < WORDS; k++)
            t->read[k] |= f->read[k], t->written[k] |= f->written[k], t->updated[k] |= f->updated[k];
    }
    memcpy(to->kernel, from->kernel, sizeof to->kernel);
    return true;
}

tx_emu_chain *
tx_emu_chain_new(void)
{
    return tx_calloc(1, sizeof(tx_emu_chain));
}

void
tx_emu_chain_free(tx_emu_chain *c)
{
    if (!c)
        return;
    chain_clear(&c->now);
    chain_clear(&c->near);
    chain_clear(&c->far);
    tx_free(c);
}

/* A launch begins; `overlaps`: it may begin before the last one has ended. */
bool
tx_chain_begin(tx_emu_chain *c, const char *kernel, bool overlaps)
{
    bool ok = true;
    if (overlaps && !c->waited)
        ok = chain_join(&c->far, &c->near);
    else
        chain_clear(&c->far);
    chain_clear(&c->near);
    if (overlaps)
        c->near = c->now, memset(&c->now, 0, sizeof c->now);
    else
        chain_clear(&c->now);
    c->open = overlaps && (c->near.n || c->far.n);
    c->waited = false;
    snprintf(c->now.kernel, sizeof c->now.kernel, "%s", kernel ? kernel : "");
    return ok;
}

/* ---- who is behind a wait ------------------------------------------------------------------------------------------------ */

static bool
note_wait(tx_cta *cta, uint32_t thread)
{
    if (!cta->waited && !(cta->waited = tx_calloc(cta->nwarps * TX_LANES, sizeof *cta->waited)))
        return false;
    cta->waited[thread] = tx_shadow_order(cta)->e.now;
    return true;
}

int
tx_chain_wait(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    (void)in;
    if (!vm->hooks || !vm->l->chain)
        return TX_RUN_ON;
    vm->l->chain->waited = true;
    for (uint32_t left = f->m; left && vm->l->chain->open; left &= left - 1)
        if (!note_wait(f->warp->cta, f->warp->index * TX_LANES + tx_first_lane(left)))
            return tx_vm_nomem(vm);
    return TX_RUN_ON;
}

static bool
behind_wait(const tx_vm *vm, tx_cta *cta, uint32_t thread)
{
    const tx_order *o = tx_shadow_order(cta);
    uint32_t me = tx_order_thread(cta, thread);
    if (cta->waited && cta->waited[thread])
        return true;
    for (uint32_t r = 0; r < o->nctas; r++) {
        const tx_cta *other = o->nctas > 1 ? o->cta[r] : cta;
        for (uint32_t t = 0; other && other->waited && t < other->nwarps * TX_LANES; t++)
            if (other->waited[t] && tx_order_seen(o, me, tx_order_thread(other, t), other->waited[t]))
                return note_wait(cta, thread);
    }
    for (const tx_cta *other = vm->ctas; other; other = other->next) /* of the grid, behind a barrier of the grid */
        for (uint32_t t = 0; other->waited && t < other->nwarps * TX_LANES; t++)
            if (other->waited[t] && other->waited[t] < vm->grid_floor)
                return note_wait(cta, thread);
    return false;
}

/* ---- one access ---------------------------------------------------------------------------------------------------------- */

enum { C_NONE, C_READ, C_WRITTEN, C_UPDATED };

/* What the set holds against bytes [at, at + n), all of one page. */
static int
chain_conflict(const chain_set *s, uint64_t at, uint32_t n, unsigned kind)
{
    uint64_t v;
    if (!tx_map_get(&s->pages, at / PAGE + 1, &v))
        return C_NONE;
    const chain_page *p = (const chain_page *)(uintptr_t)v;
    for (uint32_t i = (uint32_t)(at % PAGE); n--; i++) {
        uint64_t bit = (uint64_t)1 << i % 64;
        if (p->written[i / 64] & bit)
            return C_WRITTEN;
        if (p->updated[i / 64] & bit)
            return C_UPDATED;
        if (kind != TX_READ && p->read[i / 64] & bit)
            return C_READ;
    }
    return C_NONE;
}

static void
chain_note(chain_page *p, uint64_t at, uint32_t n, unsigned kind, bool strong)
{
    uint64_t *to = kind == TX_READ ? p->read : kind == TX_ATOMIC || strong ? p->updated : p->written;
    for (uint32_t i = (uint32_t)(at % PAGE); n;) {
        uint32_t k = 64 - i % 64 < n ? 64 - i % 64 : n;
        to[i / 64] |= (k == 64 ? ~(uint64_t)0 : ((uint64_t)1 << k) - 1) << i % 64;
        i += k, n -= k;
    }
}

static bool
chain_report(tx_vm *vm, const tx_frag *f, const tx_chain_touch *t, uint32_t lane, int64_t off, int what, bool far)
{
    const tx_emu_chain *c = vm->l->chain;
    const char *role = t->kind == TX_READ ? "load" : t->kind == TX_WRITE ? "store" : "atomic";
    const char *other = what == C_READ ? "load" : what == C_WRITTEN ? "store" : "atomic";
    tx_emu_report *r = tx_report_begin(vm, "race", t->site);
    const char *name = tx_vm_global_name(vm, t->mem);
    if (!r->buffer[0] && name)
        strncpy(r->buffer, name, sizeof r->buffer - 1);
    tx_report_agent(vm, r, f, lane, t->site, role);
    if (t->element)
        tx_report_element(vm, r, f, lane, t->site, off);
    if (far)
        tx_report_text(
            r,
            "%s of %s%s races with a %s by %s: a wait is only for the launch before this one, %s, which did not wait itself",
            role, r->buffer, r->element, other, c->far.kernel, c->near.kernel);
    else
        tx_report_text(r, "%s of %s%s before griddepcontrol.wait races with a %s by %s, which may still run", role,
                       r->buffer, r->element, other, c->near.kernel);
    return tx_report_end(vm, r) == TX_RUN_ON;
}

/* Bytes of the kernel's memory that a lane, or an engine for it, touches. false: the run stops. */
bool
tx_chain_touches(tx_vm *vm, const tx_frag *f, const tx_chain_touch *t, uint32_t lane, int64_t off, uint64_t n)
{
    tx_emu_chain *c = vm->l->chain;
    tx_cta *cta = f->warp->cta;
    uint64_t at = (uint64_t)(uintptr_t)vm->mem[t->mem].base + (uint64_t)off;
    uint32_t thread = f->warp->index * TX_LANES + lane;
    while (n) {
        uint32_t k = PAGE - at % PAGE < n ? (uint32_t)(PAGE - at % PAGE) : (uint32_t)n;
        chain_page *p = chain_page_at(&c->now, at / PAGE + 1);
        if (!p)
            return tx_vm_nomem(vm), false;
        for (int far = 0; c->open && far < 2; far++) {
            int what = chain_conflict(far ? &c->far : &c->near, at, k, t->kind);
            if (what == C_NONE || (what == C_UPDATED && t->kind == TX_ATOMIC))
                continue;
            if (what == C_UPDATED && t->strong) { /* a protocol of their own */
                if (t->kind == TX_READ && !note_wait(cta, thread))
                    return tx_vm_nomem(vm), false;
                continue;
            }
            if ((far || !behind_wait(vm, cta, thread)) && !chain_report(vm, f, t, lane, off, what, far))
                return false;
        }
        chain_note(p, at, k, t->kind, t->strong);
        at += k, off += k, n -= k;
    }
    return !vm->stop;
}

bool
tx_chain_lanes(const tx_access *a, const int64_t *offs, int64_t same, uint32_t lanes)
{
    const tx_chain_touch t = {a->mem, a->site, a->kind, a->kind == TX_ATOMIC || a->strength, true};
    for (; lanes; lanes &= lanes - 1) {
        uint32_t lane = tx_first_lane(lanes);
        if (!tx_chain_touches(a->vm, a->f, &t, lane, offs ? offs[lane] : same, a->size))
            return false;
    }
    return true;
}

bool
tx_chain_range(const tx_access *a, int64_t off)
{
    const tx_chain_touch t = {a->mem, a->site, a->kind, a->kind == TX_ATOMIC || a->strength, true};
    for (uint32_t lane = 0; lane < TX_LANES; lane++)
        if (!tx_chain_touches(a->vm, a->f, &t, lane, off + (int64_t)lane * a->size, a->size))
            return false;
    return true;
}
