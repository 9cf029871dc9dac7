/* The timeline of a watched run, as events of the Chrome trace format: a process is a CTA, a thread of it a part of a warp, a barrier or
 * an mbarrier; works of engines are asynchronous events. A microsecond stands for a step. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/watch.h"

enum { MOST_EVENTS = 2000000, TRACK_BARRIER = 100000, TRACK_MBAR = 200000, TRACK_PARTS = 100 };

/* ---- text -------------------------------------------------------------------------------------------------------- */

void
tx_watch_text(tx_sb *out, const char *text)
{
    tx_sb_putc(out, '"');
    for (; text && *text; text++) {
        if (*text == '"' || *text == '\\')
            tx_sb_putc(out, '\\');
        if ((unsigned char)*text >= ' ')
            tx_sb_putc(out, *text);
    }
    tx_sb_putc(out, '"');
}

/* Begins an event; false: nobody wants it. */
static bool
timeline_event(tx_watcher *w, const char *ph, const char *name, const tx_cta *cta, uint64_t tid, uint64_t ts)
{
    tx_emu_watch *o = w->out;
    if (o->what != TX_WATCH_TIMELINE || o->events++ >= (o->limit ? o->limit : MOST_EVENTS))
        return false;
    if (o->text.n)
        tx_sb_puts(&o->text, ",\n");
    tx_sb_f(&o->text, "{\"ph\":\"%s\",\"pid\":%llu,\"tid\":%llu,\"ts\":%llu,\"name\":", ph,
            (unsigned long long)(o->processes + cta->linear), (unsigned long long)tid, (unsigned long long)ts);
    tx_watch_text(&o->text, name);
    return true;
}

static void
timeline_place(tx_watcher *w, uint32_t site)
{
    const tx_site *s = tx_site_of(w->vm, site);
    tx_sb *o = &w->out->text;
    if (!site || !s->line)
        return;
    tx_sb_puts(o, ",\"args\":{\"file\":");
    tx_watch_text(o, s->file);
    tx_sb_f(o, ",\"line\":%u}", s->line);
}

static void
timeline_span(tx_watcher *w, const tx_cta *cta, uint64_t tid, const char *cat, const char *name, uint64_t from,
              uint64_t to, uint32_t site)
{
    if (from >= to || !timeline_event(w, "X", name, cta, tid, from))
        return;
    tx_sb_f(&w->out->text, ",\"dur\":%llu,\"cat\":\"%s\"", (unsigned long long)(to - from), cat);
    timeline_place(w, site);
    tx_sb_putc(&w->out->text, '}');
}

static void
timeline_name(tx_watcher *w, const tx_cta *cta, uint64_t tid, const char *what, const char *name)
{
    if (!timeline_event(w, "M", what, cta, tid, 0))
        return;
    tx_sb_puts(&w->out->text, ",\"args\":{\"name\":");
    tx_watch_text(&w->out->text, name);
    tx_sb_puts(&w->out->text, "}}");
}

/* ---- the watcher ------------------------------------------------------------------------------------------------- */

tx_watcher *
tx_watch_new(tx_vm *vm, tx_emu_watch *out)
{
    tx_watcher *w = tx_calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->vm = vm, w->out = out;
    if (out->what == TX_WATCH_COUNTS && !tx_counts_new(w)) {
        tx_watch_free(w);
        return NULL;
    }
    return w;
}

void
tx_watch_free(tx_watcher *w)
{
    const uint32_t *g = w->vm->l->grid;
    if (w->out->what == TX_WATCH_COUNTS && w->ptx)
        tx_counts_write(w);
    w->out->processes += (uint64_t)g[0] * g[1] * g[2];
    tx_counts_free(w);
    tx_free(w);
}

static uint64_t
timeline_now(const tx_watcher *w)
{
    uint64_t t = w->f ? w->f->clock : 0;
    return t > w->not_before ? t : w->not_before;
}

void
tx_watch_step(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lanes)
{
    tx_cta *cta = f->warp->cta;
    f->clock++;
    if (f->clock > cta->clock)
        cta->clock = f->clock;
    if (vm->watch->count && lanes)
        tx_counts_step(vm->watch, f, in, lanes);
}

/* ---- parts of warps ------------------------------------------------------------------------------------------------ */

static uint64_t
timeline_track(const tx_frag *f)
{
    return (uint64_t)f->warp->index * TRACK_PARTS + f->part + 1;
}

static void
timeline_part(tx_vm *vm, tx_frag *f, uint32_t part)
{
    char name[40];
    f->part = part;
    if (f->warp->named >> part & 1)
        return;
    f->warp->named |= 1u << part;
    snprintf(name, sizeof name, part ? "warp %u, part %u" : "warp %u", f->warp->index, part);
    timeline_name(vm->watch, f->warp->cta, timeline_track(f), "thread_name", name);
}

void
tx_watch_start(tx_vm *vm, tx_frag *f)
{
    tx_cta *cta = f->warp->cta;
    char name[160];
    if (!cta->started) {
        cta->clock = cta->met[0] = cta->met[1] = cta->met_over = 0, cta->barriers_named = 0;
        memset(cta->phases, 0, sizeof cta->phases);
        snprintf(name, sizeof name, "%.80s: CTA (%u, %u, %u)", vm->p->name, cta->id[0], cta->id[1], cta->id[2]);
        timeline_name(vm->watch, cta, 0, "process_name", name);
    }
    f->clock = f->since = 0;
    f->warp->parts = 1, f->warp->named = 0;
    memset(f->warp->busy, 0, sizeof f->warp->busy);
    timeline_part(vm, f, 0);
}

/* A number that is free, and whose track is not ahead. */
void
tx_watch_split(tx_vm *vm, const tx_frag *f, tx_frag *g)
{
    tx_warp *w = f->warp;
    uint32_t part = 1;
    g->clock = g->since = f->clock;
    while (part < TX_LANES - 1 && (w->parts >> part & 1 || w->busy[part] > g->clock))
        part++;
    if (w->busy[part] > g->since)
        g->clock = g->since = w->busy[part];
    w->parts |= 1u << part;
    timeline_part(vm, g, part);
}

static void
timeline_ran(tx_vm *vm, tx_frag *f)
{
    timeline_span(vm->watch, f->warp->cta, timeline_track(f), "run", "running", f->since, f->clock, 0);
    f->since = f->clock;
    f->warp->busy[f->part] = f->clock;
}

void
tx_watch_gone(tx_vm *vm, tx_frag *f)
{
    timeline_ran(vm, f);
    f->warp->parts &= ~(1u << f->part);
}

void
tx_watch_until(tx_vm *vm, tx_frag *f, uint64_t when, const char *what, uint32_t site)
{
    if (vm->watch->count)
        tx_counts_wait(vm->watch, site, when > f->clock ? when - f->clock : 0);
    if (when <= f->clock)
        return;
    timeline_ran(vm, f);
    timeline_span(vm->watch, f->warp->cta, timeline_track(f), "wait", what, f->clock, when, site);
    f->clock = f->since = f->warp->busy[f->part] = when;
    if (f->clock > f->warp->cta->clock)
        f->warp->cta->clock = f->clock;
}

void
tx_watch_join(tx_vm *vm, tx_frag *f, const tx_frag *g)
{
    if (g->clock <= f->clock)
        return;
    timeline_ran(vm, f);
    timeline_span(vm->watch, f->warp->cta, timeline_track(f), "wait", "waits for lanes of its warp", f->clock, g->clock,
                  0);
    f->clock = f->since = f->warp->busy[f->part] = g->clock;
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

void
tx_watch_arrive(tx_vm *vm, tx_frag *f, uint32_t id, tx_barrier *b)
{
    uint64_t t = f->clock;
    (void)vm;
    if (!b) {
        uint64_t *met = &f->warp->cta->met[id - TX_MEET_CLUSTER];
        *met = t > *met ? t : *met;
        return;
    }
    if (!b->arrived || t < b->begun)
        b->begun = t;
    if (t > b->when)
        b->when = t;
}

static bool
timeline_together(const tx_vm *vm, const tx_cta *a, const tx_cta *b, uint32_t id)
{
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    return id == TX_MEET_GRID || a->linear / per == b->linear / per;
}

static uint64_t
timeline_met(const tx_vm *vm, const tx_cta *cta, uint32_t id)
{
    uint64_t when = 0;
    for (const tx_cta *c = vm->ctas; c; c = c->next)
        if (timeline_together(vm, c, cta, id) && c->met[id - TX_MEET_CLUSTER] > when)
            when = c->met[id - TX_MEET_CLUSTER];
    return when;
}

void
tx_watch_cluster_wait(tx_vm *vm, tx_frag *f, uint32_t site)
{
    uint64_t when = 0;
    for (const tx_cta *c = vm->ctas; c; c = c->next)
        if (timeline_together(vm, c, f->warp->cta, TX_MEET_CLUSTER) && c->met_over > when)
            when = c->met_over;
    tx_watch_until(vm, f, when, "waits at cluster barrier", site);
}

void
tx_watch_meet(tx_vm *vm, tx_cta *cta, uint32_t id, const tx_barrier *b)
{
    char name[48], waits[80];
    uint64_t when = b ? b->when : timeline_met(vm, cta, id);
    if (b)
        snprintf(name, sizeof name, "barrier %u", id);
    else
        snprintf(name, sizeof name, "%s barrier", id == TX_MEET_GRID ? "grid" : "cluster");
    snprintf(waits, sizeof waits, "waits at %s", name);
    if (b) {
        if (!(cta->barriers_named >> id & 1))
            timeline_name(vm->watch, cta, TRACK_BARRIER + id, "thread_name", name);
        cta->barriers_named |= 1u << id;
        snprintf(name, sizeof name, "barrier %u: phase %u", id, cta->phases[id]++);
        timeline_span(vm->watch, cta, TRACK_BARRIER + id, "barrier", name, b->begun, b->when, b->site);
    }
    for (uint32_t i = 0; i < cta->nwarps; i++)
        for (uint32_t k = 0; k < cta->warps[i].nfrags; k++) {
            tx_frag *f = cta->warps[i].frag[k];
            if (f->state == TX_WAIT_BAR && f->arrived && f->wait_mask == id)
                tx_watch_until(vm, f, when, waits, vm->p->code[f->pc].site);
        }
}

static void
timeline_mbar_name(const tx_vm *vm, const tx_cta *cta, const tx_mbar *b, char *name, size_t size)
{
    tx_emu_report r = {0};
    tx_mbar_name(vm, &r, cta, b->off);
    snprintf(name, size, "%.63s%.63s", r.buffer, r.element);
}

/* Somebody has arrived, or bytes have come; at the end of a phase its time is that of the last of them. */
void
tx_watch_mbar(tx_vm *vm, tx_cta *cta, tx_mbar *b, bool completes)
{
    char name[160];
    uint64_t now = timeline_now(vm->watch);
    size_t n;
    if (now > b->latest)
        b->latest = now;
    if (!completes)
        return;
    timeline_mbar_name(vm, cta, b, name, sizeof name - 24);
    if (b->phase == 0 && !b->named)
        timeline_name(vm->watch, cta, TRACK_MBAR + b->off, "thread_name", name);
    b->named = true;
    n = strlen(name);
    snprintf(name + n, sizeof name - n, ": phase %u", b->phase);
    timeline_span(vm->watch, cta, TRACK_MBAR + b->off, "mbarrier", name, b->when, b->latest, b->init_site);
    b->when = b->latest;
}

void
tx_watch_mbar_wait(tx_vm *vm, tx_frag *f, const tx_cta *cta, const tx_mbar *b, uint32_t site)
{
    char name[140], waits[160];
    timeline_mbar_name(vm, cta, b, name, sizeof name);
    snprintf(waits, sizeof waits, "waits for %s", name);
    tx_watch_until(vm, f, b->when, waits, site);
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

static uint64_t
timeline_engine(const tx_work *w)
{
    return 300000 + w->end;
}

static const char *
timeline_work(const tx_watcher *watch, const tx_work *w)
{
    static const char *const names[] = {"copy", "copy", "cp.async", "arrival", "tcgen05", "commit", "wgmma"};
    const char *role = tx_site_of(watch->vm, w->site)->role;
    return role && role[0] ? role : names[w->end];
}

static void
timeline_async(tx_watcher *watch, const char *ph, const tx_work *w, uint64_t at)
{
    if (w->end == TX_END_ARRIVE || w->end == TX_END_COMMIT ||
        !timeline_event(watch, ph, timeline_work(watch, w), w->cta, timeline_engine(w), at))
        return;
    tx_sb_f(&watch->out->text, ",\"cat\":\"engine\",\"id\":%u", w->number);
    if (ph[0] == 'b')
        timeline_place(watch, w->site);
    tx_sb_putc(&watch->out->text, '}');
}

void
tx_watch_issue(tx_vm *vm, tx_work *w)
{
    w->watch = vm->watch;
    w->issued = timeline_now(vm->watch);
    w->number = ++vm->watch->works;
    if (vm->watch->count)
        tx_counts_issue(vm->watch, w);
    timeline_async(vm->watch, "b", w, w->issued);
}

void
tx_watch_done(tx_watcher *watch, const tx_work *w)
{
    uint64_t now = timeline_now(watch);
    watch->not_before = now > w->issued ? now : w->issued;
    timeline_async(watch, "e", w, watch->not_before);
}
