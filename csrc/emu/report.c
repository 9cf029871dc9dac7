/* Reports: filled as data, given to the host, and rendered as text with the source lines of both sides.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/vm.h"

tx_emu_report *
tx_report_begin(tx_vm *vm, const char *kind, uint32_t site)
{
    tx_emu_report *r = vm->report;
    memset(r, 0, sizeof *r);
    r->kind = kind;
    strncpy(r->buffer, tx_site_of(vm, site)->buffer, sizeof r->buffer - 1);
    return r;
}

void
tx_report_thread(tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t thread, uint32_t site, const char *role)
{
    const tx_site *s = tx_site_of(vm, site);
    const uint32_t *b = vm->l->block;
    if (r->nagents >= sizeof r->agent / sizeof r->agent[0])
        return;
    tx_emu_agent *a = &r->agent[r->nagents++];
    memcpy(a->cta, cta->id, sizeof a->cta);
    a->thread[0] = thread % b[0];
    a->thread[1] = thread / b[0] % b[1];
    a->thread[2] = thread / b[0] / b[1];
    a->warp = (int32_t)(thread / TX_LANES);
    a->lane = (int32_t)(thread % TX_LANES);
    a->file = s->file;
    a->line = s->line, a->col = s->col, a->end_line = s->end_line, a->end_col = s->end_col;
    a->role = role;
    a->call = s->call;
}

void
tx_report_agent(tx_vm *vm, tx_emu_report *r, const tx_frag *f, uint32_t lane, uint32_t site, const char *role)
{
    tx_report_thread(vm, r, f->warp->cta, f->warp->index * TX_LANES + lane, site, role);
}

void
tx_report_text(tx_emu_report *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->message, sizeof r->message, fmt, ap);
    va_end(ap);
}

/* "[3, 17]" from the indices of the access, or the element number that the offset in bytes gives. */
void
tx_report_element(tx_vm *vm, tx_emu_report *r, const tx_frag *f, uint32_t lane, uint32_t site, int64_t off_bytes)
{
    const tx_site *s = tx_site_of(vm, site);
    size_t n = 0;
    if (s->dims) {
        const tx_dims *d = &vm->p->dims[s->dims - 1];
        for (uint32_t i = 0; i < d->n && n < sizeof r->element - 24; i++)
            n += (size_t)snprintf(r->element + n, sizeof r->element - n, "%s%lld", i ? ", " : "[",
                                  (long long)tx_vreg_int(f, &d->idx[i], lane));
        if (n)
            snprintf(r->element + n, sizeof r->element - n, "]");
    } else if (off_bytes != INT64_MIN && s->mem && vm->p->mems[s->mem - 1].elem)
        snprintf(r->element, sizeof r->element, "[%lld]", (long long)(off_bytes / vm->p->mems[s->mem - 1].elem));
    else if (off_bytes != INT64_MIN)
        snprintf(r->element, sizeof r->element, " byte %lld", (long long)off_bytes);
}

/* With collect, one report for each kind and pair of places, and ways that led there, is enough. */
static bool
is_new(tx_vm *vm, const tx_emu_report *r)
{
    uint64_t h = tx_hash_bytes(r->kind, strlen(r->kind), 7);
    for (uint32_t i = 0; i < r->nagents; i++)
        h = tx_hash_mix(h, ((uint64_t)r->agent[i].line << 32 | r->agent[i].col) + ((uint64_t)r->agent[i].call << 16));
    for (uint32_t i = 0; i < vm->nseen; i++)
        if (vm->seen[i] == (uint32_t)h)
            return false;
    if (vm->nseen == vm->seen_cap) {
        uint32_t cap = vm->seen_cap ? vm->seen_cap * 2 : 16;
        uint32_t *p = tx_realloc(vm->seen, cap * sizeof *p);
        if (!p)
            return true;
        vm->seen = p, vm->seen_cap = cap;
    }
    vm->seen[vm->nseen++] = (uint32_t)h;
    return true;
}

int
tx_report_end(tx_vm *vm, tx_emu_report *r)
{
    if (vm->unwritten.set && !r->warning) { /* what came first is told first: the rest may follow from it */
        tx_emu_report second = *r;
        vm->unwritten.set = false;
        *r = vm->unwritten.report;
        if (tx_report_end(vm, r) != TX_RUN_ON || !second.kind)
            return vm->stop ? TX_RUN_STOP : TX_RUN_ON;
        *r = second;
    }
    if (r->warning || vm->o->collect) {
        if (is_new(vm, r) && vm->h && vm->h->report)
            vm->h->report(vm->h->self, vm->p, r);
        return TX_RUN_ON;
    }
    vm->status = TX_EMU_REPORT;
    vm->stop = true;
    return TX_RUN_STOP;
}

int
tx_vm_nomem(tx_vm *vm)
{
    vm->status = TX_EMU_NO_MEMORY;
    vm->stop = true;
    return TX_RUN_STOP;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void
report_source_line(const tx_emu_program *p, const tx_emu_agent *a, tx_sb *out)
{
    for (uint32_t i = 0; i < p->ntexts; i++) {
        const tx_text *t = &p->texts[i];
        const char *s = t->text;
        if (strcmp(t->file, a->file) != 0 || a->line < t->first_line)
            continue;
        for (uint32_t line = t->first_line; s && line < a->line; line++)
            s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL;
        if (!s || !*s)
            continue;
        const char *end = strchr(s, '\n');
        size_t n = end ? (size_t)(end - s) : strlen(s);
        while (n && (*s == ' ' || *s == '\t'))
            s++, n--;
        tx_sb_puts(out, "\n        ");
        tx_sb_put(out, s, n > 120 ? 120 : n);
        return;
    }
}

const tx_emu_call *
tx_emu_call_of(const tx_emu_program *p, uint32_t call)
{
    return call ? &p->calls[call - 1] : NULL;
}

/* How the text of an agent's line came into the kernel, in at most `most` lines; the last one names the kernel's line. */
static uint32_t
report_calls(const tx_emu_program *p, const tx_emu_agent *a, uint32_t most, tx_sb *out)
{
    const tx_emu_call *e = tx_emu_call_of(p, a->call);
    uint32_t n = 0, depth = 0;
    for (uint32_t k = a->call; k; k = p->calls[k - 1].next)
        depth++;
    for (; e && n < most; n++) {
        uint32_t skipped = n + 1 == most ? depth - most : 0;
        const char *function = e->function, *how = e->called ? "called" : "inlined";
        for (uint32_t k = skipped; k; k--)
            e = tx_emu_call_of(p, e->next);
        tx_sb_f(out, "\n    in %s(), %s ", function, how);
        if (skipped)
            tx_sb_f(out, "through %u more call%s ", skipped, skipped == 1 ? "" : "s");
        tx_sb_f(out, "from %s() at %s:%u", e->caller, e->file, e->line);
        e = tx_emu_call_of(p, e->next);
    }
    return n;
}

/* Whether an agent's way into the kernel was shown with one before it. */
static bool
report_calls_shown(const tx_emu_report *r, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (r->agent[k].call == r->agent[i].call)
            return true;
    return false;
}

enum { REPORT_LINES = 15, REPORT_AGENT_LINES = 3 };

void
tx_emu_render(const tx_emu_program *p, const tx_emu_report *r, tx_sb *out)
{
    uint32_t shown = r->nagents > 4 ? 4 : r->nagents, chains = 0, left;
    for (uint32_t i = 0; shown == 4 && i < shown; i++)
        if (r->agent[i].call)
            shown = 3; /* leaves three lines for how their texts came into the kernel */
    for (uint32_t i = 0; i < shown; i++)
        chains += r->agent[i].call && !report_calls_shown(r, i);
    left = REPORT_LINES - 2 - shown * REPORT_AGENT_LINES - (shown < r->nagents);
    tx_sb_f(out, "%s: %s", r->kind ? r->kind : "fault", r->message);
    if (p->name[0])
        tx_sb_f(out, "\n  in kernel %s", p->name);
    for (uint32_t i = 0; i < shown; i++) {
        const tx_emu_agent *a = &r->agent[i];
        tx_sb_f(out, "\n  %s by thread (%u, %u, %u) of CTA (%u, %u, %u), warp %d, lane %d", a->role, a->thread[0],
                a->thread[1], a->thread[2], a->cta[0], a->cta[1], a->cta[2], a->warp, a->lane);
        if (a->line) {
            tx_sb_f(out, "\n    %s:%u", a->file, a->line);
            report_source_line(p, a, out);
        }
        if (a->call && chains && !report_calls_shown(r, i))
            left -= report_calls(p, a, left / chains, out), chains--;
    }
    if (shown < r->nagents)
        tx_sb_f(out, "\n  and %u more", r->nagents - shown);
}
