/* The counts of a watched run: instructions, and for each place in the source what its accesses, copies and waits cost.
 *
 * An access is what a warp asks of memory at once: one element of each active lane, or up to 16 bytes where the program moves
 * vectors. Shared memory has 32 banks of 4 bytes and serves a word of each bank at a time, so it takes as many turns as
 * some bank has distinct words; global memory moves sectors of 32 bytes. Both are counted beside the least that as many
 * distinct bytes would need. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "emu/watch.h"

enum { COUNT_KEYS = 16 * TX_LANES, COUNT_VECTOR = 16, COUNT_SECTOR = 32, COUNT_BANKS = 32 };
enum { COUNT_LOAD, COUNT_STORE, COUNT_ATOMIC };

struct tx_count {
    uint64_t accesses, bytes, units, least; /* units: turns of the banks, or sectors */
    uint64_t works, work_bytes, waits, waited;
    uint64_t *key; /* elements of the access that is being put together */
    uint32_t nkeys, size, per_lane, first;
    int64_t next;   /* of the first lane: behind the access so far */
    uint32_t place; /* the site that counts for this one */
    uint8_t scope, kind;
};

/* Elements of a vector have sites of their own. */
static bool
counts_same_place(const tx_site *a, const tx_site *b)
{
    return a->line == b->line && a->col == b->col && a->end_line == b->end_line && a->end_col == b->end_col &&
           a->mem == b->mem && strcmp(a->role, b->role) == 0 && strcmp(a->buffer, b->buffer) == 0 &&
           strcmp(a->file, b->file) == 0;
}

bool
tx_counts_new(tx_watcher *w)
{
    const tx_emu_program *p = w->vm->p;
    w->count = tx_calloc(p->nsites + 1, sizeof *w->count);
    w->ops = tx_calloc(V__COUNT, sizeof *w->ops);
    w->ptx = tx_calloc(p->nptx + 1, sizeof *w->ptx);
    if (!w->count || !w->ops || !w->ptx)
        return false;
    for (uint32_t i = 0; i < p->nsites; i++) {
        w->count[i].place = i;
        for (uint32_t k = i; k-- > 0 && i - k <= COUNT_VECTOR;)
            if (counts_same_place(&p->sites[i], &p->sites[k])) {
                w->count[i].place = w->count[k].place;
                break;
            }
    }
    return true;
}

void
tx_counts_free(tx_watcher *w)
{
    for (uint32_t i = 0; w->count && i <= w->vm->p->nsites; i++)
        tx_free(w->count[i].key);
    tx_free(w->count);
    tx_free(w->ops);
    tx_free(w->ptx);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static int
counts_compare(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* The access of a place is whole. */
static void
counts_flush(tx_count *c)
{
    uint32_t bank[COUNT_BANKS] = {0}, n = 0, words = 0, most = 0, sectors = 0;
    uint64_t last = UINT64_MAX, bytes;
    if (!c->nkeys)
        return;
    qsort(c->key, c->nkeys, sizeof *c->key, counts_compare);
    for (uint32_t i = 0; i < c->nkeys; i++)
        if (!i || c->key[i] != c->key[i - 1])
            c->key[n++] = c->key[i];
    bytes = (uint64_t)n * c->size;
    for (uint32_t i = 0; i < n; i++)
        for (uint64_t u = c->key[i] / (c->scope == TX_GLOBAL ? COUNT_SECTOR : 4);
             u <= (c->key[i] + c->size - 1) / (c->scope == TX_GLOBAL ? COUNT_SECTOR : 4); u++) {
            if (u == last)
                continue;
            last = u;
            sectors++, words++;
            if (++bank[u % COUNT_BANKS] > most)
                most = bank[u % COUNT_BANKS];
        }
    c->accesses++;
    c->bytes += bytes;
    if (c->scope == TX_GLOBAL) {
        c->units += sectors;
        c->least += (bytes + COUNT_SECTOR - 1) / COUNT_SECTOR;
    } else {
        c->units += most;
        c->least += (words + COUNT_BANKS - 1) / COUNT_BANKS;
    }
    c->nkeys = 0;
}

static bool
counts_is_access(unsigned op)
{
    return (op >= V_LD_I8_S && op <= V_ST_N_V64) || op == V_LDP || op == V_STP || op == V_ATOM;
}

static bool
counts_is_uniform(const tx_insn *in)
{
    if (in->op == V_LDP || in->op == V_STP || in->op == V_ATOM)
        return !(in->aux & TX_ACC_ADDR_V);
    return (in->op - (in->op >= V_ST_8_S ? V_ST_8_S : V_LD_I8_S)) % 3 == 0;
}

static void
counts_access(tx_watcher *w, tx_frag *f, const tx_insn *in, uint32_t lanes)
{
    const tx_vm *vm = w->vm;
    tx_count *c = &w->count[w->count[in->site].place];
    bool pointer = in->op == V_LDP || in->op == V_STP, joins;
    uint32_t mem, size, first = tx_first_lane(lanes);
    int64_t off;
    if (!tx_mem_place(vm, f, in, first, &mem, &off, &size) || vm->p->mems[mem].scope == TX_LOCAL)
        return;
    joins = c->nkeys && c->size == size && c->first == first && c->per_lane + size <= COUNT_VECTOR &&
            (pointer ? c->next == off : (in->aux & TX_SAME_ACCESS) != 0);
    if (!joins)
        counts_flush(c);
    if (!c->key && !(c->key = tx_malloc(COUNT_KEYS * sizeof *c->key)))
        return; /* counts nothing here */
    if (!c->nkeys)
        c->per_lane = 0;
    c->scope = vm->p->mems[mem].scope == TX_GLOBAL ? TX_GLOBAL : TX_SHARED;
    c->kind = in->op == V_ATOM                                      ? COUNT_ATOMIC
              : in->op == V_STP || (!pointer && in->op >= V_ST_8_S) ? COUNT_STORE
                                                                    : COUNT_LOAD;
    c->size = size, c->first = first, c->next = off + size, c->per_lane += size;
    for (uint32_t left = counts_is_uniform(in) ? 1u << first : lanes; left; left &= left - 1) {
        if (!tx_mem_place(vm, f, in, tx_first_lane(left), &mem, &off, &size) || c->nkeys == COUNT_KEYS)
            continue;
        if (c->scope != TX_GLOBAL)
            off += vm->mem[mem].base - vm->cta->shared;
        c->key[c->nkeys++] =
            (uint64_t)(mem + 1) * (c->scope == TX_GLOBAL ? (uint64_t)1 << 48 : 0) + ((uint64_t)1 << 40) + (uint64_t)off;
    }
}

void
tx_counts_step(tx_watcher *w, tx_frag *f, const tx_insn *in, uint32_t lanes)
{
    w->ops[in->op]++;
    if (in->op == V_PTX || in->op == V_AGENT || in->op == V_PTXW)
        w->ptx[in->imm]++;
    else if (counts_is_access(in->op))
        counts_access(w, f, in, lanes);
}

/* ---- engines and waits ------------------------------------------------------------------------------------------- */

void
tx_counts_issue(tx_watcher *w, const tx_work *k)
{
    tx_count *c = &w->count[k->site];
    uint64_t bytes = k->bytes;
    if (k->end == TX_END_ARRIVE || k->end == TX_END_COMMIT)
        return;
    for (uint32_t left = k->end == TX_END_CP ? k->lanes : 0; left; left &= left - 1)
        bytes += k->dst[tx_first_lane(left)].n;
    c->works++;
    c->work_bytes += bytes;
}

void
tx_counts_wait(tx_watcher *w, uint32_t site, uint64_t steps)
{
    w->count[site].waits++;
    w->count[site].waited += steps;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void
counts_pair(tx_sb *o, const char *name, uint64_t v)
{
    tx_sb_f(o, ",\"%s\":%llu", name, (unsigned long long)v);
}

/* One list of the operations that occurred. */
static void
counts_operations(tx_watcher *w, tx_sb *o)
{
    const char *comma = "";
    tx_sb_puts(o, ",\"instructions\":[");
    for (unsigned i = 0; i < V__COUNT; i++)
        if (w->ops[i] && i != V_PTX && i != V_AGENT && i != V_PTXW) {
            tx_sb_f(o, "%s[\"%s\",%llu]", comma, tx_vop_name(i), (unsigned long long)w->ops[i]);
            comma = ",";
        }
    for (uint32_t i = 0; i < w->vm->p->nptx; i++)
        if (w->ptx[i]) {
            tx_sb_f(o, "%s[\"ptx %s\",%llu]", comma, w->vm->p->ptx[i]->emu->name, (unsigned long long)w->ptx[i]);
            comma = ",";
        }
    tx_sb_puts(o, "]");
}

void
tx_counts_write(tx_watcher *w)
{
    static const char *const kinds[] = {"load", "store", "atomic"};
    const tx_emu_program *p = w->vm->p;
    const tx_emu_launch *l = w->vm->l;
    const char *comma = "";
    tx_sb *o = &w->out->text;
    if (o->n)
        tx_sb_puts(o, ",\n");
    tx_sb_puts(o, "{\"kernel\":");
    tx_watch_text(o, p->name);
    tx_sb_f(o, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", l->grid[0], l->grid[1], l->grid[2], l->block[0],
            l->block[1], l->block[2]);
    counts_operations(w, o);
    tx_sb_puts(o, ",\"places\":[");
    for (uint32_t i = 0; i < p->nsites; i++) {
        tx_count *c = &w->count[i];
        const tx_site *s = &p->sites[i];
        counts_flush(c);
        if (!c->accesses && !c->works && !c->waits)
            continue;
        tx_sb_f(o, "%s{\"file\":", comma);
        comma = ",\n";
        tx_watch_text(o, s->file);
        counts_pair(o, "line", s->line);
        tx_sb_puts(o, ",\"buffer\":");
        tx_watch_text(o, s->buffer);
        tx_sb_puts(o, ",\"role\":");
        tx_watch_text(o, s->role);
        if (c->accesses) {
            tx_sb_f(o, ",\"space\":\"%s\",\"kind\":\"%s\"", c->scope == TX_GLOBAL ? "global" : "shared",
                    kinds[c->kind]);
            counts_pair(o, "accesses", c->accesses), counts_pair(o, "bytes", c->bytes);
            counts_pair(o, "units", c->units), counts_pair(o, "least", c->least);
        }
        if (c->works)
            counts_pair(o, "transfers", c->works), counts_pair(o, "transfer_bytes", c->work_bytes);
        if (c->waits)
            counts_pair(o, "waits", c->waits), counts_pair(o, "steps", c->waited);
        tx_sb_putc(o, '}');
    }
    tx_sb_puts(o, "]}");
}
