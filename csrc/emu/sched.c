/* Who runs: CTAs in order, the warps of a CTA in turns, each until it waits, ends or has used its slice. CTAs whose threads all
 * wait for memory or for other CTAs give way to later ones. With checks off, workers of a thread pool made for the run
 * take CTAs from one counter. SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "emu/async.h"
#include "emu/sched.h"
#include "emu/watch.h"

enum {
    SLICE = 1 << 14,       /* backward jumps of a part until others get a turn */
    IDLE_SLICE = 64,       /* the same when nothing has changed for a turn */
    IDLE_GIVES_WAY = 4,    /* idle turns until the next CTA is started */
    IDLE_DEADLOCK = 10000, /* idle turns until a loop is reported */
    POLL_MS = 50,          /* between looks at the keyboard */
    MAX_WORKERS = 64
};

struct tx_launch_state {
    uint64_t next, nctas;  /* CTAs: next to start, number of them */
    uint64_t step, offset; /* order of a seeded run: index * step + offset */
    uint64_t finished;
    uint32_t chunk;
    bool stop;
};

static uint64_t
random_next(uint64_t *s)
{
    uint64_t z = *s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t
now_ms(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- arguments and coordinates ------------------------------------------------------------------------------------- */

void
tx_preset_value(const tx_preset *s, const tx_emu_arg *a, tx_slot *out)
{
    out->u64 = 0;
    switch (tx_vt_of(s->type)) {
    case VT_B: out->u32 = a->v.i ? TX_FULL : 0; return;
    case VT_F32: out->f32 = (float)a->v.f; return;
    case VT_F64: out->f64 = a->v.f; return;
    case VT_X: out->u32 = (uint32_t)tx_encode(s->type, a->v.f); return;
    case VT_I64:
    case VT_U64: out->i64 = a->v.i; return;
    default: out->i64 = tx_wrap(s->type, a->v.i); return;
    }
}

static void
coordinates(const tx_vm *vm, const tx_cta *cta, uint32_t warp, tx_frag *f)
{
    const tx_emu_program *p = vm->p;
    const tx_emu_launch *l = vm->l;
    for (uint32_t i = 0; i < p->ncoords; i++) {
        const tx_origin *c = &p->coords[i];
        tx_slot *s = tx_reg(f, c->reg);
        uint32_t *row = (uint32_t *)(void *)s, v = 0;
        switch (c->op) {
        case TX_OP_THREAD_IDX:
            if (c->row) {
                memcpy(row, vm->tid[warp][c->axis], TX_LANES * 4);
                continue;
            }
            v = vm->tid[warp][c->axis][0];
            break;
        case TX_OP_BLOCK_IDX: v = cta->id[c->axis]; break;
        case TX_OP_BLOCK_DIM: v = l->block[c->axis]; break;
        case TX_OP_GRID_DIM: v = l->grid[c->axis]; break;
        case TX_OP_CLUSTER_ID: v = cta->id[c->axis] / l->cluster[c->axis]; break;
        case TX_OP_CLUSTER_CTA: v = cta->id[c->axis] % l->cluster[c->axis]; break;
        case TX_OP_CLUSTER_DIM: v = l->cluster[c->axis]; break;
        case TX_OP_CLUSTER_RANK: v = cta->cluster_rank; break;
        case TX_OP_CTA_PAIR: v = cta->cluster_rank & 1; break;
        case TX_OP_WARP_ID: v = warp; break;
        case TX_OP_WARPGROUP_ID: v = warp / 4; break;
        case TX_OP_WARP_IN_WG: v = warp % 4; break;
        case TX_OP_LINEAR_TID:
        case TX_OP_LANE_ID:
            for (uint32_t k = 0; k < TX_LANES; k++)
                row[k] = (c->op == TX_OP_LINEAR_TID ? warp * TX_LANES : 0) + k;
            continue;
        default: break;
        }
        s->u64 = v;
    }
}

/* ---- CTAs -------------------------------------------------------------------------------------------------------- */

static int64_t
align16(int64_t x)
{
    return (x + 15) & ~(int64_t)15;
}

static void
free_cta(tx_cta *cta)
{
    if (!cta)
        return;
    for (uint32_t i = 0; cta->warps && i < cta->nwarps; i++) {
        tx_free(cta->warps[i].local);
        tx_free(cta->warps[i].local_init);
    }
    tx_engine_free(cta->engine);
    tx_shadow_free(cta->shadow);
    tx_free(cta->warps);
    tx_free(cta->shared);
    tx_free(cta->mem);
    tx_free(cta->waited);
    tx_free(cta);
}

static tx_cta *
new_cta(tx_vm *vm)
{
    const tx_emu_program *p = vm->p;
    tx_cta *cta = tx_calloc(1, sizeof *cta);
    if (!cta)
        return NULL;
    cta->nthreads = vm->l->block[0] * vm->l->block[1] * vm->l->block[2];
    cta->nwarps = (cta->nthreads + TX_LANES - 1) / TX_LANES;
    cta->shared_bytes = align16(p->static_smem) + (int64_t)vm->l->dyn_smem;
    cta->warps = tx_calloc(cta->nwarps, sizeof *cta->warps);
    cta->shared = tx_calloc(1, (size_t)cta->shared_bytes + 16);
    cta->mem = tx_calloc(p->nmems + 1, sizeof *cta->mem);
    if (!cta->warps || !cta->shared || !cta->mem) {
        free_cta(cta);
        return NULL;
    }
    for (uint32_t i = 0; i < cta->nwarps; i++) {
        tx_warp *w = &cta->warps[i];
        w->cta = cta, w->index = i;
        if (p->local_bytes && (!(w->local = tx_calloc(TX_LANES, (size_t)p->local_bytes)) ||
                               !(w->local_init = tx_calloc(TX_LANES, (size_t)p->local_bytes)))) {
            free_cta(cta);
            return NULL;
        }
    }
    for (uint32_t i = 0; i < p->nmems; i++) {
        const tx_memory *m = &p->mems[i];
        tx_mem *at = &cta->mem[i];
        if (m->scope == TX_GLOBAL) {
            const tx_emu_arg *a = &vm->l->args[m->param];
            at->base = m->target ? a->target : a->v.p, at->readonly = m->target ? a->target_readonly : a->readonly;
            at->nbytes = !at->base ? 0 : (int64_t)(m->target ? a->target_nbytes : a->nbytes);
            at->before = !at->base ? 0 : (int64_t)(m->target ? a->target_before : a->before);
            at->watched = (vm->globals && vm->globals[i]) || (vm->hooks && vm->l->chain);
        } else if (m->scope != TX_LOCAL) {
            int64_t off = m->dyn ? align16(p->static_smem) : m->offset;
            at->base = cta->shared + off;
            at->nbytes = m->dyn ? (int64_t)vm->l->dyn_smem : m->nbytes;
            at->watched = vm->hooks != NULL;
            at->granule = (uint32_t)(off >> p->granule_shift);
        }
    }
    if (vm->hooks && (cta->shared_bytes || vm->globals || vm->l->chain) && !(cta->shadow = tx_shadow_new(cta, p))) {
        free_cta(cta);
        return NULL;
    }
    if (p->agents && !(cta->engine = tx_engine_new(cta))) {
        free_cta(cta);
        return NULL;
    }
    return cta;
}

/* CTAs of one cluster follow each other. */
static void
place_cta(tx_cta *cta, const uint32_t *g, const uint32_t *c, uint64_t index)
{
    uint32_t per = c[0] * c[1] * c[2], in = 0;
    uint64_t cl = index;
    if (per > 1)
        cl = index / per, in = (uint32_t)(index % per);
    uint32_t gx = g[0] / c[0], gy = g[1] / c[1];
    cta->cluster_rank = in;
    if (per == 1 && index < gx) { /* no division in the common case */
        cta->id[0] = (uint32_t)index, cta->id[1] = cta->id[2] = 0;
        return;
    }
    cta->id[0] = (uint32_t)(cl % gx) * c[0] + in % c[0];
    cta->id[1] = (uint32_t)(cl / gx % gy) * c[1] + in / c[0] % c[1];
    cta->id[2] = (uint32_t)(cl / gx / gy) * c[2] + in / c[0] / c[1];
}

void
tx_cta_place(const tx_vm *vm, tx_cta *cta, uint64_t linear)
{
    cta->linear = linear;
    place_cta(cta, vm->l->grid, vm->l->cluster, linear);
}

static bool
start_cta(tx_vm *vm, uint64_t index)
{
    const uint32_t *g = vm->l->grid, *c = vm->l->cluster;
    tx_cta *cta = vm->spare ? vm->spare : new_cta(vm), **end = &vm->ctas;
    if (!cta)
        return tx_vm_nomem(vm), false;
    if (vm->spare) {
        vm->spare = NULL;
        if (cta->shared_bytes && !vm->hooks)
            memset(cta->shared, 0, (size_t)cta->shared_bytes);
    }
    place_cta(cta, g, c, index);
    cta->linear = index;
    cta->next = NULL;
    if (cta->open) /* else all are as they were at first */
        memset(cta->barrier, 0, sizeof cta->barrier);
    cta->exited = cta->started = cta->idle_turns = cta->open = cta->meets = cta->free_registers = 0;
    if (cta->waited)
        memset(cta->waited, 0, cta->nwarps * TX_LANES * sizeof *cta->waited);
    memset(cta->meet_arrived, 0, sizeof cta->meet_arrived);
    for (uint32_t i = 0; i < cta->nwarps; i++) {
        tx_warp *w = &cta->warps[i];
        uint32_t n = cta->nthreads - i * TX_LANES;
        w->live = n >= TX_LANES ? TX_FULL : (1u << n) - 1;
        w->nfrags = 0;
        w->met = w->promised = w->registers = w->moves = 0;
        if (w->local_init)
            memset(w->local_init, 0, (size_t)TX_LANES * (size_t)vm->p->local_bytes);
    }
    if (cta->engine)
        tx_engine_begin(vm, cta);
    if (vm->hooks && cta->shadow && !vm->hooks->begin(vm, cta))
        return free_cta(cta), false;
    while (*end)
        end = &(*end)->next;
    *end = cta;
    return true;
}

static void
end_cta(tx_vm *vm, tx_cta *cta)
{
    tx_cta **at = &vm->ctas;
    while (*at != cta)
        at = &(*at)->next;
    *at = cta->next;
    for (uint32_t i = 0; i < cta->nwarps; i++)
        for (uint32_t k = 0; k < cta->warps[i].nfrags; k++)
            tx_frag_put(vm, cta->warps[i].frag[k]);
    if (vm->spare)
        free_cta(cta);
    else
        vm->spare = cta;
}

/* ---- one turn ---------------------------------------------------------------------------------------------------- */

static bool
start_warp(tx_vm *vm, tx_cta *cta, tx_warp *w)
{
    tx_frag *f = tx_frag_get(vm);
    if (!f)
        return false;
    f->warp = w;
    f->m = w->live;
    memset(f->R + vm->p->inits_at, 0, 8 * (size_t)vm->p->ninits);
    coordinates(vm, cta, w->index, f);
    w->frag[w->nfrags++] = f;
    if (TX_UNLIKELY(vm->watch != NULL))
        tx_watch_start(vm, f);
    cta->started |= 1u << w->index;
    return true;
}

/* What a part that yielded could have changed for itself only; equal twice in a row means that it turns on the spot. */
static bool
stands_still(const tx_vm *vm, tx_frag *f)
{
    uint64_t h = tx_hash_bytes(f->R + vm->p->slots_at, vm->p->frame_bytes - vm->p->slots_at, f->m);
    bool same = h == f->hash;
    f->hash = h;
    return same;
}

typedef enum turn { TURN_MOVED, TURN_IDLE, TURN_BLOCKED, TURN_FINISHED, TURN_STOP } turn;

static int
run_part(tx_vm *vm, tx_cta *cta, tx_frag *f, bool *yielded, bool *moved)
{
    tx_warp *w = f->warp;
    vm->budget = cta->idle_turns ? IDLE_SLICE : SLICE;
    int r = vm->isa->run(vm, f);
    if (r == TX_RUN_STOP || vm->stop)
        return TX_RUN_STOP;
    if (r == TX_RUN_YIELD) {
        *yielded = true;
        if (!stands_still(vm, f))
            *moved = true;
    } else
        *moved = true;
    tx_frag_drop_gone(vm, w);
    return TX_RUN_ON;
}

/* Nothing of the CTA moves: an engine does, if it has work. */
static turn
engines_turn(tx_vm *vm, tx_cta *cta, turn otherwise)
{
    bool did;
    if (TX_UNLIKELY(vm->watch != NULL))
        vm->watch->f = NULL, vm->watch->not_before = cta->clock;
    if (!tx_engine_push(vm, cta, &did))
        return TURN_STOP;
    if (did)
        cta->idle_turns = 0;
    return did ? TURN_MOVED : otherwise;
}

static turn
cta_turn(tx_vm *vm, tx_cta *cta)
{
    uint64_t changes = vm->changes;
    bool yielded = false, moved = false, waits_outside = false, alive = false;
    bool in_cluster = vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2] > 1;
    uint32_t first = vm->o->schedule == TX_SCHED_SEED ? (uint32_t)(random_next(&vm->rng) % cta->nwarps) : 0;

    vm->cta = cta;
    vm->mem = cta->mem;
    if (cta->engine && cta->engine->first && vm->o->schedule == TX_SCHED_SEED &&
        !tx_engine_some(vm, cta, random_next(&vm->rng)))
        return TURN_STOP;
    for (uint32_t i = 0; i < cta->nwarps; i++) {
        tx_warp *w = &cta->warps[(first + i) % cta->nwarps];
        if (!(cta->started >> w->index & 1) && !start_warp(vm, cta, w))
            return TURN_STOP;
        for (uint32_t k = 0; k < w->nfrags; k++) {
            tx_frag *f = w->frag[k];
            uint32_t n = w->nfrags;
            if (TX_UNLIKELY(vm->watch != NULL))
                vm->watch->f = f, vm->watch->not_before = 0;
            if (f->state == TX_WAIT_EVENT && tx_agent_poll(vm, f) == TX_RUN_STOP)
                return TURN_STOP;
            if (w->nfrags < n) { /* it has joined another */
                k = (uint32_t)-1;
                continue;
            }
            if (f->state != TX_READY)
                continue;
            if (run_part(vm, cta, f, &yielded, &moved) != TX_RUN_ON)
                return TURN_STOP;
            if (w->nfrags < n && k > 0) /* parts went or joined: another may stand here now */
                k--;
        }
    }
    for (uint32_t i = 0; i < cta->nwarps; i++)
        for (uint32_t k = 0; k < cta->warps[i].nfrags; k++) {
            tx_frag *f = cta->warps[i].frag[k];
            alive = true;
            if (f->state == TX_READY && !yielded)
                moved = true; /* set free during this turn */
            if ((f->state == TX_WAIT_BAR && f->arrived && f->wait_mask >= TX_NBARRIERS) ||
                (f->state == TX_WAIT_EVENT && in_cluster))
                waits_outside = true;
        }
    if (!alive)
        return TURN_FINISHED;
    if (moved || vm->changes != changes) {
        cta->idle_turns = 0;
        return TURN_MOVED;
    }
    cta->idle_turns++;
    return cta->engine && cta->engine->first
               ? engines_turn(vm, cta, yielded || waits_outside ? TURN_IDLE : TURN_BLOCKED)
           : yielded || waits_outside ? TURN_IDLE
                                      : TURN_BLOCKED;
}

/* ---- CTAs that wait for each other ------------------------------------------------------------------------------------ */

static bool
has_met(const tx_cta *cta, uint32_t which)
{
    uint32_t n = cta->meet_arrived[which - TX_MEET_CLUSTER];
    return n > 0 && n + cta->exited >= cta->nthreads;
}

static bool
release_meets(tx_vm *vm)
{
    uint64_t per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    bool any = false;
    uint64_t met = 0;
    for (tx_cta *a = vm->ctas; a; a = a->next) {
        uint64_t n = 0, resident = 0;
        met += has_met(a, TX_MEET_GRID);
        if (!has_met(a, TX_MEET_CLUSTER))
            continue;
        for (tx_cta *b = vm->ctas; b; b = b->next)
            if (b->linear / per == a->linear / per)
                n += has_met(b, TX_MEET_CLUSTER), resident++;
        if (n == resident && vm->shared_state->next >= (a->linear / per + 1) * per) {
            for (tx_cta *b = vm->ctas; b; b = b->next)
                if (b->linear / per == a->linear / per)
                    tx_barrier_meet(vm, b, TX_MEET_CLUSTER);
            any = true;
        }
    }
    if (met && met + vm->shared_state->finished == vm->shared_state->nctas) {
        for (tx_cta *a = vm->ctas; a; a = a->next)
            if (has_met(a, TX_MEET_GRID))
                tx_barrier_meet(vm, a, TX_MEET_GRID);
        vm->grid_floor = ++vm->now; /* all that was is behind everybody */
        for (tx_cta *a = vm->ctas; a; a = a->next)
            if (tx_shadow_order(a))
                tx_order_tick(tx_shadow_order(a));
        any = true;
    }
    return any;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

static bool
take(tx_vm *vm, uint64_t *from, uint64_t *to)
{
    struct tx_launch_state *s = vm->shared_state;
#if defined(__GNUC__)
    *from = __atomic_fetch_add(&s->next, s->chunk, __ATOMIC_RELAXED);
#else
    *from = s->next, s->next += s->chunk;
#endif
    *to = *from + s->chunk < s->nctas ? *from + s->chunk : s->nctas;
    return *from < s->nctas;
}

static uint64_t
cta_number(const struct tx_launch_state *s, uint64_t i)
{
    return s->step ? (i * s->step + s->offset) % s->nctas : i;
}

bool
tx_sched_cancel(tx_vm *vm, uint32_t *first)
{
    struct tx_launch_state *s = vm->shared_state;
    const uint32_t *c = vm->l->cluster;
    uint64_t per = (uint64_t)c[0] * c[1] * c[2], at = __atomic_fetch_add(&s->next, per, __ATOMIC_RELAXED);
    tx_cta cta;
    if (at >= s->nctas)
        return false;
    __atomic_fetch_add(&s->finished, per, __ATOMIC_RELAXED);
    memset(&cta, 0, sizeof cta);
    place_cta(&cta, vm->l->grid, c, cta_number(s, at));
    memcpy(first, cta.id, sizeof cta.id);
    return true;
}

/* Looks at the clock now and then, and at the keyboard every POLL_MS. */
typedef struct pulse {
    int64_t last, seen; /* looks at the keyboard, and at the clock */
    uint32_t every, n;  /* turns between these */
} pulse;

static bool
poll(tx_vm *vm, pulse *p)
{
    if (++p->n < p->every)
        return true;
    int64_t t = now_ms();
    p->n = 0;
    p->every = t - p->seen > POLL_MS / 10 ? (p->every + 3) / 4 : p->every < 1024 ? p->every * 2 : p->every;
    p->seen = t;
    if (t - p->last < POLL_MS)
        return true;
    p->last = t;
    if (vm->h && vm->h->interrupted && vm->h->interrupted(vm->h->self)) {
        vm->status = TX_EMU_INTERRUPTED;
        vm->stop = true;
        return false;
    }
    return true;
}

/* Runs CTAs until none is left. `polls`: this worker looks at the keyboard. */
static void
work(tx_vm *vm, bool polls)
{
    struct tx_launch_state *s = vm->shared_state;
    uint64_t at = 0, end = 0, per = (uint64_t)vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    bool more = true;
    pulse p = {now_ms(), now_ms(), 1, 0};

    while (!vm->stop && !__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
        bool moved = false;
        uint32_t idle = UINT32_MAX;
        for (tx_cta *cta = vm->ctas, *next; cta; cta = next) {
            next = cta->next;
            turn t = cta_turn(vm, cta);
            if (t == TURN_STOP)
                return;
            if (t == TURN_FINISHED) {
                if (cta->engine && (!tx_cluster_exit(vm, cta) || !tx_engine_end(vm, cta)))
                    return;
                if (cta->shadow && !vm->hooks->end(vm, cta))
                    return;
                end_cta(vm, cta);
                __atomic_fetch_add(&s->finished, 1, __ATOMIC_RELAXED);
                moved = true;
            } else if (t == TURN_MOVED)
                moved = true;
            else if (t == TURN_BLOCKED) {
                if (tx_barrier_stuck(vm, cta) != TX_RUN_ON)
                    return;
                moved = true;
            } else
                idle = cta->idle_turns < idle ? cta->idle_turns : idle;
        }
        if (polls && !poll(vm, &p))
            return;
        if (vm->ctas && moved)
            continue;
        if (vm->ctas && release_meets(vm))
            continue;
        if (vm->ctas && idle < IDLE_GIVES_WAY)
            continue;
        if (at == end && more)
            more = take(vm, &at, &end);
        if (more) {
            do /* the CTAs of a cluster start together */
                if (!start_cta(vm, cta_number(s, at++)))
                    return;
            while (at < end && at % per);
            continue;
        }
        if (!vm->ctas)
            return;
        if (idle >= IDLE_DEADLOCK) {
            tx_barrier_stuck(vm, vm->ctas);
            return;
        }
    }
}

typedef struct worker {
    tx_vm vm;
    tx_emu_report report;
    pthread_t thread;
    bool started;
} worker;

static void
fill_vm(tx_vm *vm, const tx_vm *like, tx_emu_report *report)
{
    *vm = *like;
    vm->report = report;
    for (uint32_t w = 0; w < TX_MAX_WARPS; w++)
        for (uint32_t k = 0; k < TX_LANES; k++) {
            uint32_t t = w * TX_LANES + k;
            vm->tid[w][0][k] = t % vm->l->block[0];
            vm->tid[w][1][k] = t / vm->l->block[0] % vm->l->block[1];
            vm->tid[w][2][k] = t / vm->l->block[0] / vm->l->block[1];
        }
}

static void
clear_vm(tx_vm *vm)
{
    while (vm->ctas)
        end_cta(vm, vm->ctas);
    free_cta(vm->spare);
    tx_frag_free_pool(vm);
    tx_free(vm->seen);
    tx_global_end(vm);
    tx_map_end(vm);
}

static void *
thread_main(void *arg)
{
    worker *w = arg;
    work(&w->vm, false);
    if (w->vm.stop)
        __atomic_store_n(&w->vm.shared_state->stop, true, __ATOMIC_RELAXED);
    return NULL;
}

static int
worker_count(const tx_emu_program *p, const tx_emu_options *o, uint64_t nctas)
{
    long n = o->nthreads;
    if (o->check || p->meets_ctas || o->schedule == TX_SCHED_SEED || o->watch)
        return 1;
    if (n <= 0) {
        const char *env = getenv("TIRX_THREADS");
        n = env ? strtol(env, NULL, 10) : 0;
    }
    if (n <= 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    n = n < 1 ? 1 : n > MAX_WORKERS ? MAX_WORKERS : n;
    return (uint64_t)n > nctas ? (int)nctas : (int)n;
}

static uint64_t
sched_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b, b = t;
    }
    return a;
}

tx_emu_status
tx_emu_run(const tx_emu_program *p, const tx_emu_launch *launch, const tx_emu_options *o, const tx_emu_host *h,
           tx_emu_report *r)
{
    tx_emu_launch l = *launch;
    struct tx_launch_state state = {.chunk = 1};
    tx_emu_status status = TX_EMU_OK;
    tx_vm like = {.p = p,
                  .l = &l,
                  .o = o,
                  .h = h,
                  .isa = tx_isa_pick(),
                  .shared_state = &state,
                  .check = o->check,
                  .late = o->schedule == TX_SCHED_DEFAULT ? o->check : o->schedule != TX_SCHED_EARLY,
                  .hooks = o->check ? &tx_race_hooks : NULL,
                  .rng = o->seed};

    memset(r, 0, sizeof *r);
    for (int i = 0; i < 3; i++)
        if (!l.cluster[i])
            l.cluster[i] = 1;
    state.nctas = (uint64_t)l.grid[0] * l.grid[1] * l.grid[2];
    if (!state.nctas || !l.block[0] || !l.block[1] || !l.block[2])
        return TX_EMU_OK;
    if (o->schedule == TX_SCHED_SEED && state.nctas > 1 && state.nctas < (uint64_t)1 << 31 &&
        l.cluster[0] * l.cluster[1] * l.cluster[2] == 1) {
        do
            state.step = random_next(&like.rng) % state.nctas;
        while (sched_common_divisor(state.step, state.nctas) != 1);
        state.offset = random_next(&like.rng) % state.nctas;
    }
    int n = worker_count(p, o, state.nctas / ((uint64_t)l.cluster[0] * l.cluster[1] * l.cluster[2]));
    worker *w = tx_calloc((size_t)n, sizeof *w);
    if (!w)
        return TX_EMU_NO_MEMORY;
    like.threaded = n > 1;
    if (n > 1) {
        uint64_t chunk = state.nctas / ((uint64_t)n * 16);
        state.chunk = chunk < 1 ? 1 : chunk > 256 ? 256 : (uint32_t)chunk;
    }
    uint32_t per = l.cluster[0] * l.cluster[1] * l.cluster[2];
    state.chunk = (state.chunk + per - 1) / per * per;
    for (int i = 0; i < n; i++)
        fill_vm(&w[i].vm, &like, &w[i].report);
    if (o->watch) {
#if !defined(TX_AMALGAM) /* which has one interpreter: it tells no steps */
        w->vm.isa = &tx_isa_watch;
#endif
        if (!(w->vm.watch = tx_watch_new(&w->vm, o->watch))) {
            tx_free(w);
            return TX_EMU_NO_MEMORY;
        }
    }
    if (o->check && l.chain && !tx_chain_begin(l.chain, p->name, l.overlaps))
        tx_vm_nomem(&w[0].vm);
    if (o->check && !tx_global_start(&w[0].vm))
        tx_vm_nomem(&w[0].vm);
    for (int i = 1; i < n; i++)
        w[i].started = pthread_create(&w[i].thread, NULL, thread_main, &w[i]) == 0;
    work(&w[0].vm, true);
    if (w[0].vm.stop)
        __atomic_store_n(&state.stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < n; i++) {
        if (w[i].started)
            pthread_join(w[i].thread, NULL);
        if (status == TX_EMU_OK && w[i].vm.status != TX_EMU_OK) {
            status = w[i].vm.status;
            *r = w[i].report;
        }
        if (w[i].vm.watch)
            tx_watch_free(w[i].vm.watch);
        w[i].vm.watch = NULL;
        clear_vm(&w[i].vm);
    }
    tx_free(w);
    return status;
}
