/* Checker: what asynchronous engines do to global memory: bulk and tensor copies, reductions. They read and write through the async
 * proxy, and are done when somebody has waited for them. Called at issue and at completion (engine.c), and by check_global.c for each
 * access of a thread to a memory that an engine has touched.
 *
 * A cell of 16 bytes, the step of all these instructions, keeps the last write and the last read by an engine. From issue on it
 * is under way; afterwards it belongs to the column of whoever waits: the thread of a group, the agent of an mbarrier. An
 * engine's access is held against the last accesses of threads, too: they must be ordered before its issue, and a write of a thread
 * lie behind a proxy fence, by whichever thread. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/async.h"

enum { CELL = 16 };
#define UNDER_WAY UINT32_MAX

typedef struct engine_cell {
    uint32_t cta, who, time, column; /* time 0: none; column: in clocks */
} engine_cell;
struct tx_engine_cells {
    uint64_t n;
    engine_cell *w, *r;
};

void
tx_engines_end(tx_vm *vm)
{
    for (uint32_t i = 0; vm->engine_cells && i < vm->p->nmems; i++)
        if (vm->engine_cells[i]) {
            tx_free(vm->engine_cells[i]->w);
            tx_free(vm->engine_cells[i]->r);
            tx_free(vm->engine_cells[i]);
        }
    tx_free(vm->engine_cells);
    vm->engine_cells = NULL;
}

static struct tx_engine_cells *
engines_cells(tx_vm *vm, uint32_t mem, bool write)
{
    struct tx_engine_cells *c;
    uint64_t n = (uint64_t)(vm->mem[mem].nbytes + vm->mem[mem].before) / CELL + 2;
    if (!vm->engine_cells && !(vm->engine_cells = tx_calloc(vm->p->nmems, sizeof *vm->engine_cells)))
        return tx_vm_nomem(vm), NULL;
    if (!(c = vm->engine_cells[mem]) && !(c = vm->engine_cells[mem] = tx_calloc(1, sizeof *c)))
        return tx_vm_nomem(vm), NULL;
    c->n = n;
    engine_cell **at = write ? &c->w : &c->r;
    if (!*at && !(*at = tx_calloc(n, sizeof **at)))
        return tx_vm_nomem(vm), NULL;
    return c;
}

/* ---- reports ------------------------------------------------------------------------------------------------------ */

typedef struct engines_side {
    tx_frag *f;
    uint32_t lane, site, mem;
    int64_t off;
    const char *role;
} engines_side;

/* text: "%s of %s%s ... %s", the roles of both */
static bool
engines_report(tx_vm *vm, const engines_side *s, const char *kind, uint64_t cta, uint32_t who, const char *role,
               const char *text)
{
    const tx_order *o = tx_shadow_order(s->f->warp->cta);
    uint32_t site = who & TX_WHO_SITE, thread = who >> TX_WHO_THREAD;
    const char *name = tx_vm_global_name(vm, s->mem);
    unsigned elem = vm->p->mems[s->mem].elem;
    tx_cta other = {.linear = 0};
    char words[240];
    tx_emu_report *r = tx_report_begin(vm, kind, s->site);
    site = site < vm->p->nsites ? site : 0;
    role = role ? role : tx_site_of(vm, site)->role;
    memset(r->buffer, 0, sizeof r->buffer);
    strncpy(r->buffer, name ? name : "", sizeof r->buffer - 1);
    snprintf(r->element, sizeof r->element, "[%lld]", (long long)(s->off / (elem ? elem : 1)));
    tx_report_agent(vm, r, s->f, s->lane, s->site, s->role);
    tx_cta_place(vm, &other, cta / o->nctas * o->nctas + thread / o->per_cta);
    tx_report_thread(vm, r, &other, thread % o->per_cta, site, role);
    snprintf(words, sizeof words, text, s->role, r->buffer, r->element, role);
    tx_report_text(r, "%s", words);
    return tx_report_end(vm, r) == TX_RUN_ON;
}

/* ---- against what engines did ------------------------------------------------------------------------------------- */

/* write: the cell's. false: reported, and the run stops. */
static bool
engines_against(tx_vm *vm, const engines_side *s, const engine_cell *c, uint32_t me, bool engine)
{
    const tx_cta *mine = s->f->warp->cta;
    if (!c->time)
        return true;
    if (c->column == UNDER_WAY)
        return engines_report(vm, s, "async", c->cta, c->who, NULL,
                              engine ? "%s of %s%s begins before the end of another: %s"
                                     : "%s of %s%s, while a %s of it is under way: it has not been waited for");
    tx_global_why why = {false, false, false};
    if (tx_global_ordered(vm, mine, me, c->cta, c->column, c->time, false, &why))
        return true;
    bool near = c->cta / tx_shadow_order(mine)->nctas == mine->linear / tx_shadow_order(mine)->nctas;
    return engines_report(
        vm, s,
        near         ? "async"
        : why.narrow ? "scope"
                     : "race",
        c->cta, c->who, NULL,
        near         ? "%s of %s%s, while a %s of it is not known to be complete: this thread has not waited for it"
        : why.narrow ? "%s of %s%s and the %s by another CTA are ordered only for a part of the GPU: the "
                       "scope is too narrow"
                     : "%s of %s%s races with a %s by another CTA: nothing orders them");
}

static bool
engines_meet(tx_vm *vm, engines_side s, int64_t off, uint32_t n, uint32_t me, bool writes, bool atomic, bool engine)
{
    const struct tx_engine_cells *c = vm->engine_cells ? vm->engine_cells[s.mem] : NULL;
    int64_t at = off + vm->mem[s.mem].before;
    engine_cell last[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    for (uint64_t i = (uint64_t)at / CELL, end = (uint64_t)(at + n + CELL - 1) / CELL; c && i < end && i < c->n; i++) {
        s.off = off + (int64_t)(i * CELL) - at;
        s.off = s.off < off ? off : s.off;
        if (c->w && memcmp(&c->w[i], &last[0], sizeof last[0])) {
            last[0] = c->w[i];
            if (!(atomic && (last[0].who & TX_WHO_ATOMIC)) && !engines_against(vm, &s, &last[0], me, engine))
                return false;
        }
        if (writes && c->r && memcmp(&c->r[i], &last[1], sizeof last[1])) {
            last[1] = c->r[i];
            if (!engines_against(vm, &s, &last[1], me, engine))
                return false;
        }
    }
    return true;
}

bool
tx_engines_access(const tx_access *a, uint32_t lane, int64_t off, uint32_t me)
{
    engines_side s = {a->f,   lane, a->site,
                      a->mem, off,  a->kind == TX_READ ? "load" : a->kind == TX_WRITE ? "store" : "atomic"};
    return engines_meet(a->vm, s, off, a->size, me, a->kind != TX_READ, a->kind == TX_ATOMIC, false);
}

/* ---- issue and completion -------------------------------------------------------------------------------------------- */

/* One of the last accesses of threads. */
static bool
engines_after(tx_vm *vm, const engines_side *s, const tx_issue *i, uint32_t me, tx_global_last last, bool read)
{
    const tx_cta *mine = i->f->warp->cta;
    tx_global_why why = {false, false, false};
    uint32_t thread = last.who >> TX_WHO_THREAD;
    const char *role = read ? "load" : last.who & TX_WHO_ATOMIC ? "atomic" : "store";
    if (!last.time || (i->atomic && (last.who & TX_WHO_ATOMIC)) ||
        tx_global_ordered(vm, mine, me, last.cta, thread, last.time, i->async_proxy && !read, &why))
        return true;
    if (why.proxy)
        return engines_report(vm, s, "proxy", last.cta, last.who, role,
                              "%s of %s%s works through the async proxy: fence.proxy.async is missing after the %s");
    bool near = last.cta / tx_shadow_order(mine)->nctas == mine->linear / tx_shadow_order(mine)->nctas;
    return engines_report(
        vm, s,
        near         ? "async"
        : why.narrow ? "scope"
                     : "race",
        last.cta, last.who, role,
        why.narrow    ? "%s of %s%s and the %s by another CTA are ordered only for a part of the GPU: the scope is "
                        "too narrow"
        : why.relaxed ? "%s of %s%s races with a %s by another CTA, which has released it: what has read the flag "
                        "here is relaxed, and no fence follows, so it does not acquire"
                      : "%s of %s%s is not ordered after an earlier %s by another thread");
}

static bool
engines_issue_span(const tx_issue *i, const tx_global_span *at, bool write)
{
    tx_vm *vm = i->vm;
    const tx_cta *cta = i->f->warp->cta;
    uint32_t me = tx_order_thread(cta, i->f->warp->index * TX_LANES + i->lane);
    engines_side s = {i->f, i->lane, i->site, at->mem, at->off, i->role};
    tx_global_last last[5], before[5];
    memset(before, 0, sizeof before);
    for (uint32_t k = 0, step; k < at->n; k += step) {
        step = tx_global_records(vm, at->mem, at->off + k, last);
        for (int r = 0; step && r < (write ? 5 : 2); r++) {
            s.off = at->off + k;
            if (memcmp(&last[r], &before[r], sizeof last[r]) && !engines_after(vm, &s, i, me, last[r], r >= 2))
                return false;
            before[r] = last[r];
        }
        if (!step)
            break;
    }
    if (!engines_meet(vm, s, at->off, at->n, me, write, i->atomic, true))
        return false;
    struct tx_engine_cells *c = engines_cells(vm, at->mem, write);
    if (!c)
        return false;
    engine_cell *to = write ? c->w : c->r, cell = {(uint32_t)cta->linear, 0, tx_shadow_order(cta)->e.now, UNDER_WAY};
    cell.who = me << TX_WHO_THREAD | (i->atomic ? TX_WHO_ATOMIC : 0) | (i->site > TX_WHO_SITE ? TX_WHO_SITE : i->site);
    int64_t first = at->off + vm->mem[at->mem].before;
    for (uint64_t k = (uint64_t)first / CELL; k < (uint64_t)(first + at->n + CELL - 1) / CELL && k < c->n; k++)
        to[k] = cell;
    return true;
}

/* From its issue on the work reads or writes these bytes. Takes the list, which tx_work_free frees. */
bool
tx_engines_issue(const tx_issue *i, tx_work *w, tx_global_span *list, uint32_t n, bool write)
{
    w->global = list, w->nglobal = n, w->global_write = write;
    if (!tx_shadow_order(w->cta))
        return true;
    for (uint32_t k = 0; k < n; k++)
        if (list[k].n && !engines_issue_span(i, &list[k], write))
            return false;
    return true;
}

bool
tx_engines_watch(const tx_vm *vm, uint32_t mem)
{
    return vm->globals && vm->globals[mem];
}

/* It is complete for those that see the column from now on. */
void
tx_engines_done(const tx_vm *vm, const tx_work *w, uint32_t column)
{
    const tx_order *o = tx_shadow_order(w->cta);
    uint32_t issuer = tx_order_thread(w->cta, w->thread);
    for (uint32_t k = 0; o && k < w->nglobal; k++) {
        const tx_global_span *at = &w->global[k];
        struct tx_engine_cells *c = vm->engine_cells ? vm->engine_cells[at->mem] : NULL;
        engine_cell *to = !c ? NULL : w->global_write ? c->w : c->r;
        int64_t first = at->off + vm->mem[at->mem].before;
        for (uint64_t i = (uint64_t)first / CELL; to && i < (uint64_t)(first + at->n + CELL - 1) / CELL && i < c->n;
             i++)
            if (to[i].column == UNDER_WAY && to[i].cta == (uint32_t)w->cta->linear &&
                to[i].who >> TX_WHO_THREAD == issuer)
                to[i].column = column, to[i].time = o->e.now;
    }
}
