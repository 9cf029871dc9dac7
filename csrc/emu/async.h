/* Private to emu/: the asynchronous hardware. Owner: emu.
 *
 * Agents. What happens in a CTA (or cluster) happens to agents: its threads, and the engines that work for them. An engine's work is a
 * tx_work: a cp.async, a bulk or tensor copy, a group of wgmma. It is issued by a thread, *performed* when its bytes move, and
 * *known* to those that have waited for it. The three are apart on purpose:
 *   - performed: at once with schedule="early" and with checks off; with "late" when a wait needs it or nothing else can run; with a
 *     seed at any time between. A right kernel cannot tell.
 *   - known: only through what the ISA names: the phase of an mbarrier, a group. Until then the destination is poisoned and the
 *     source is being read, whether the bytes have moved or not. This is what the checkers look at, so that one schedule finds
 *     what another one would show.
 *
 * Order (order.c). Each agent has a column in vector clocks; a clock says up to which time its owner has seen every agent, and
 * separately up to which time what it has seen is behind a proxy fence. Time is one counter, moved on by every event
 * that orders. Threads share clocks as long as they know the same: after a barrier of all threads there is one, `base`, and what is
 * older than `floor` is seen by every thread. Engines that signal an mbarrier are one agent for each barrier, those of a
 * warpgroup's matrix unit one a warpgroup; the completions of groups are entered under the thread that waits for them.
 *
 * Shadow memory (check_race.c). One record a granule for threads and engines alike: the last write and the reads since.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_ASYNC_H
#define TX_EMU_ASYNC_H

#include "emu/ptx.h"

/* ---- order.c: who has seen what ---------------------------------------------------------------------------------- */

enum {
    TX_BARRIER_AGENTS = 88, /* mbarriers of a CTA that have a column of their own; the rest share the last */
    TX_UNIT_AGENTS = 8,     /* matrix units, one a warpgroup */
    TX_AGENTS = TX_BARRIER_AGENTS + TX_UNIT_AGENTS
};

typedef struct tx_clock {
    struct tx_clock *next; /* free ones */
    uint32_t refs;
    uint32_t *seen, *fenced,
        *wide; /* times, a column an agent: seen; behind a proxy fence; behind a fence of the whole GPU */
} tx_clock;

typedef struct tx_agent_info { /* what an engine did last, for reports */
    uint32_t thread, site;
} tx_agent_info;

typedef struct tx_fence { /* what its thread had seen */
    uint32_t thread, time, floor;
    uint8_t scope; /* 0 CTA, 1 cluster */
    tx_clock *seen;
} tx_fence;

struct tx_order { /* of a CTA or a cluster */
    tx_vm *vm;
    uint32_t refs;
    tx_epoch e;
    uint32_t nctas, per_cta, nthreads, n; /* threads are padded to whole warps; n columns */
    tx_cta *cta[TX_MAX_CLUSTER];
    tx_clock *base, **of; /* of[thread] */
    uint32_t away;        /* threads whose clock is not base */
    bool joined;          /* base has been joined with another clock */
    tx_clock *spare;
    tx_agent_info *agent;
    tx_clock *met[2];           /* cluster barrier: of this phase, and of the last one */
    struct global_known *known; /* check_global.c: what other CTAs have released to this one or this cluster */
    uint32_t nknown, known_cap;
    struct tx_flags *flags; /* check_flags.c; NULL: nothing has been released in shared memory */
    tx_fence *fences;       /* of less than the whole GPU: the last of each thread and scope */
    uint32_t nfences, fence_cap;
    tx_fence *global_fences; /* fence.proxy.async.global: the last of each thread */
    uint32_t nglobal, global_cap;
};

tx_order *tx_order_new(tx_vm *vm, uint32_t nctas, uint32_t nthreads); /* NULL: out of memory */
void tx_order_free(tx_order *o);
void tx_order_begin(tx_order *o); /* all that was is over */
uint32_t tx_order_tick(tx_order *o);
tx_clock *tx_clock_new(tx_order *o); /* nothing seen; NULL: out of memory, the run stops */
void tx_clock_drop(tx_order *o, tx_clock *c);
void tx_clock_clear(tx_order *o, tx_clock *c);
void tx_order_release(tx_order *o, uint32_t thread, tx_clock *into);
void tx_order_pass(tx_order *o, const tx_clock *from, tx_clock *into);
void tx_order_release_agent(tx_order *o, uint32_t agent, tx_clock *into);
void tx_order_acquire(tx_order *o, uint32_t first, uint32_t lanes, const tx_clock *from);
void tx_order_learn(tx_order *o, uint32_t first, uint32_t lanes, uint32_t agent); /* all that the agent did till now */
void tx_order_meet(tx_order *o, uint32_t first, uint32_t lanes);
void tx_order_meet_warps(tx_order *o, uint32_t first, uint32_t warps);
void tx_order_meet_all(tx_order *o);
void tx_order_fence_proxy(tx_order *o, uint32_t first, uint32_t lanes);
void tx_order_fence_wide(tx_order *o, uint32_t first, uint32_t lanes);
void tx_order_release_fenced(tx_order *o, uint32_t thread, uint8_t scope, tx_clock *into); /* scope: 0 CTA, 1 cluster */
void tx_order_fence_global(tx_order *o, uint32_t first, uint32_t lanes);
bool tx_order_fenced_global(const tx_order *o, uint32_t thread, uint32_t other, uint32_t time);
void tx_order_fenced_times(const tx_order *o, uint32_t thread,
                           uint32_t *times); /* what tx_order_fenced_global holds against */
void tx_order_fence_near(tx_order *o, uint32_t first, uint32_t lanes, uint8_t scope);

static inline uint32_t
tx_order_thread(const tx_cta *cta, uint32_t thread)
{
    return cta->cluster_rank * cta->nwarps * TX_LANES + thread;
}
/* Column of the k-th engine of a CTA. */
static inline uint32_t
tx_order_agent(const tx_order *o, const tx_cta *cta, uint32_t k)
{
    return o->nthreads + (o->nctas > 1 ? cta->cluster_rank : 0) * TX_AGENTS + k;
}
static inline bool
tx_order_seen(const tx_order *o, uint32_t thread, uint32_t other, uint32_t time)
{
    return thread == other || (time < o->e.floor && other < o->nthreads) || o->of[thread]->seen[other] > time;
}
static inline bool
tx_order_fenced(const tx_order *o, uint32_t thread, uint32_t other, uint32_t time)
{
    return o->of[thread]->fenced[other] > time;
}

/* ---- cluster.c --------------------------------------------------------------------------------------------------- */

typedef struct tx_touch {
    uint32_t time, site, mem;
} tx_touch;
tx_cta *tx_cluster_peer(const tx_vm *vm, uint32_t rank);
bool
tx_cluster_split(const tx_vm *vm, uint64_t pointer, uint32_t *rank, int64_t *off); /* does it lead to another CTA? */
uint64_t tx_cluster_pointer(const tx_vm *vm, uint32_t rank, int64_t off);
void tx_cluster_touch(tx_vm *vm, const tx_frag *f, uint32_t lane, tx_cta *peer, uint32_t mem, uint32_t site);
int tx_cluster_missing(tx_vm *vm, tx_frag *f, uint32_t lane, uint32_t site, uint32_t rank); /* reports it */
bool tx_cluster_exit(tx_vm *vm, tx_cta *cta);

/* ---- check_global.c ---------------------------------------------------------------------------------------------- */

bool tx_global_start(tx_vm *vm); /* false: out of memory */
void tx_global_end(tx_vm *vm);
void tx_global_fence(tx_vm *vm, const tx_frag *f, uint8_t scope); /* 0 CTA, 1 cluster, 2 GPU */
bool tx_global_range(const tx_access *a, int64_t off);
bool
tx_global_lanes(const tx_access *a, const int64_t *off, int64_t same, uint32_t lanes); /* off NULL: all at `same` */
typedef struct tx_global_last {                                                        /* an access */
    uint64_t cta;
    uint32_t who, time;
} tx_global_last;
/* Why two accesses are not ordered: another CTA has released the first, but in too narrow a scope; or what has read the release does not
 * acquire; or only the proxy fence is missing. */
typedef struct tx_global_why {
    bool narrow, relaxed, proxy;
} tx_global_why;
bool tx_global_ordered(tx_vm *vm, const tx_cta *mine, uint32_t me, uint64_t cta, uint32_t column, uint32_t time,
                       bool proxy, tx_global_why *why);
/* The last write, strong operation and reads by threads; gives the bytes for which they hold, 0: nothing is kept. */
uint32_t tx_global_records(const tx_vm *vm, uint32_t mem, int64_t off, tx_global_last last[5]);

/* ---- check_engines.c: engines and global memory ------------------------------------------------------------------------- */

typedef struct tx_global_span {
    uint32_t mem, n;
    int64_t off; /* from the memory's base */
} tx_global_span;
typedef struct tx_issue tx_issue;
typedef struct tx_work tx_work; /* engine.c */
void tx_engines_end(tx_vm *vm);
bool tx_engines_watch(const tx_vm *vm, uint32_t mem); /* is it worth telling? */
bool tx_engines_access(const tx_access *a, uint32_t lane, int64_t off, uint32_t me);
bool tx_engines_issue(const tx_issue *i, tx_work *w, tx_global_span *list, uint32_t n, bool write);
void tx_engines_done(const tx_vm *vm, const tx_work *w, uint32_t column);

void tx_cta_place(const tx_vm *vm, tx_cta *cta, uint64_t linear); /* sched.c: its coordinates */

/* ---- check_flags.c: strong operations on shared memory ----------------------------------------------------------------- */

void tx_flags_clear(tx_order *o);
void tx_flags_free(tx_order *o);
void tx_flags_fence(tx_order *o, uint32_t first, uint32_t lanes, uint8_t scope);
void tx_flags_before(const tx_access *a, const tx_cta *owner, uint32_t byte, uint32_t me);
void tx_flags_after(const tx_access *a, const tx_cta *owner, uint32_t byte, uint32_t me);
bool tx_flags_narrow(const tx_order *o, uint32_t me, uint32_t other, uint32_t time);
void tx_flags_narrowly(tx_order *o, uint32_t me, const tx_clock *from); /* taken over in too narrow a scope */
bool tx_flags_waits(const tx_order *o, uint32_t me, uint32_t other, uint32_t time);

/* ---- check_chain.c ------------------------------------------------------------------------------------------------- */

typedef struct tx_chain_touch {
    uint32_t mem, site;
    unsigned kind; /* TX_READ ... */
    bool strong, element;
} tx_chain_touch;
bool tx_chain_begin(tx_emu_chain *c, const char *kernel, bool overlaps); /* false: out of memory */
bool tx_chain_touches(tx_vm *vm, const tx_frag *f, const tx_chain_touch *t, uint32_t lane, int64_t off, uint64_t n);
bool tx_chain_range(const tx_access *a, int64_t off);
bool tx_chain_lanes(const tx_access *a, const int64_t *off, int64_t same, uint32_t lanes);

/* ---- check_map.c: tensor maps that the kernel changes; all but tx_map_end with one instruction at hand: see below ------- */

void tx_map_end(tx_vm *vm);

/* ---- check_race.c: what engines tell the shadow ---------------------------------------------------------------------- */

typedef struct tx_span_of { /* bytes of a CTA's shared memory */
    tx_cta *cta;
    uint32_t off, n;
    uint64_t pieces; /* not 0: of the 1024 bytes from a multiple of 1024 on only these, of 16 bytes each */
} tx_span_of;

/* Who works on what, for the checks at issue. */
struct tx_issue {
    tx_vm *vm;
    tx_frag *f;
    uint32_t lane, site;
    bool async_proxy;
    const char *role; /* "copy", "wgmma" */
    bool atomic;      /* others may do the same to the same bytes */
};
/* NULL with checks off */
tx_order *tx_shadow_order(const tx_cta *cta);
/* From issue on: bytes are poisoned, or being read. false: reported, and the run stops. */
bool tx_shadow_issue_write(const tx_issue *i, const tx_span_of *s);
bool tx_shadow_issue_read(const tx_issue *i, const tx_span_of *s);
/* The work is complete for those that see `agent` (a thread, or an engine's column) from now on. */
void tx_shadow_done_write(const tx_vm *vm, const tx_span_of *s, uint32_t agent, uint32_t site);
void tx_shadow_done_atomic(const tx_vm *vm, const tx_span_of *s, uint32_t agent, uint32_t site);
void tx_shadow_done_read(const tx_vm *vm, const tx_span_of *s, uint32_t agent, uint32_t site);
/* A synchronous access of a lane to bytes of shared memory. */
bool tx_shadow_touch(const tx_issue *i, const tx_span_of *s, uint8_t kind);
bool tx_shadow_touch_in(const tx_issue *i, const tx_span_of *s, uint8_t kind, uint32_t mem); /* mem: tx_mem_at */
void tx_shadow_barrier(const tx_vm *vm, const tx_span_of *s, bool live, uint32_t thread, uint32_t site);
uint32_t tx_mem_at(const tx_vm *vm, const tx_cta *cta, uint32_t off); /* the array that begins last before the byte */
void tx_name_shared(const tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t off);

/* ---- mbarrier.c -------------------------------------------------------------------------------------------------- */

enum { TX_MBAR_MAX = (1 << 20) - 1, TX_MBAR_FENCES = 4 };
typedef struct tx_mbar {
    uint32_t off; /* in the CTA's shared bytes */
    bool live;
    uint32_t phase; /* completed phases; bit 0 is the phase bit */
    uint32_t pending, expected;
    int32_t tx;                       /* bytes announced and not come */
    uint32_t queued_tx, queued_count; /* what engines are still to bring */
    uint32_t agent;                   /* column of the engines that signal it */
    uint32_t init_thread, init_time, init_site;
    struct {
        uint32_t thread, time;
    } fence[TX_MBAR_FENCES]; /* fence.mbarrier_init since */
    uint32_t nfences;
    uint32_t asked;        /* warps that a test has told once that this phase is not over */
    uint64_t latest, when; /* watched: the last arrival; when the last phase ended */
    bool named;
    tx_clock *now, *before; /* what arrivals of this phase, and of the last one, have seen; NULL with checks off */
    tx_clock *own[2];       /* the same of its own CTA's threads and of engines: for waits with .cta in a cluster */
    tx_clock *narrow;       /* what arrivals with .cta from other CTAs have seen */
} tx_mbar;

typedef struct tx_where { /* what an address means */
    uint8_t space;        /* tx_scope */
    tx_cta *cta;          /* shared: whose, and the byte there */
    uint32_t off, mem;
    uint8_t *p;
    int64_t room, before; /* bytes from p to the end of the allocation, from its beginning to p */
    bool readonly;
} tx_where;
/* One instruction as an agent function sees it. */
typedef struct tx_act {
    tx_vm *vm;
    tx_frag *f;
    const tx_insn *in;
    const tx_ptx_op *k;
} tx_act;

bool tx_where_of(tx_vm *vm, uint64_t pointer, tx_where *w);
/* Operand by the first two letters of its name; -1: not there. */
int tx_act_find(const tx_ptx_op *k, const char *name);
uint64_t tx_act_in(const tx_act *a, int i, uint32_t lane);
void tx_act_out(const tx_act *a, uint32_t i, uint32_t lane, uint64_t v);
/* The address operand `name` of a lane as `n` bytes; reports what is wrong. false: skip the lane, or stop (vm->stop). */
bool tx_act_where(const tx_act *a, const char *name, uint32_t lane, int64_t n, uint32_t align, bool store, tx_where *w);
/* For other kernels of the call, if it is global memory. false: the run stops. */
bool tx_act_touches(const tx_act *a, uint32_t lane, const tx_where *w, uint64_t n, unsigned kind);
tx_cta *tx_act_peer(const tx_act *a, uint32_t lane, uint32_t rank);
bool tx_act_elsewhere(const tx_act *a, uint32_t lane, uint32_t rank, tx_where *to, tx_where *bar);
tx_emu_report *tx_act_report(const tx_act *a, uint32_t lane, const char *kind);
tx_issue tx_act_issue(const tx_act *a, uint32_t lane, bool async_proxy);
void tx_act_reduction(const tx_act *a, int32_t *op, unsigned *kind); /* copy.c: TX_ATOM_*, kind of dtype */
static inline bool
tx_act_has(const tx_act *a, enum tx_ptx_token t)
{
    return tx_has_tok(a->k, t);
}

bool tx_map_changed(const tx_act *a, uint32_t lane, const tx_where *w, bool released); /* check_map.c */
void tx_map_fence(const tx_act *a);
bool tx_map_use(const tx_act *a, uint32_t lane, uint64_t pointer);

bool tx_act_whole(const tx_act *a); /* matrix.c */
const uint32_t *tx_act_row(const tx_act *a, int i, uint32_t *room);

tx_mbar *tx_mbar_at(const tx_cta *cta, uint32_t off); /* NULL: no live one */
void tx_mbar_name(const tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t off);
/* An engine has moved n bytes or brought an arrival for each of `count` threads. */
bool tx_mbar_signal(tx_vm *vm, tx_cta *cta, tx_mbar *b, uint32_t bytes, uint32_t count, uint32_t thread, uint32_t site);
void tx_mbar_fence_init(const tx_act *a, uint32_t lanes);
/* May an engine signal this barrier? Checks its address, life and fences. NULL: reported. */
tx_mbar *tx_mbar_for_engine(const tx_act *a, uint32_t lane, const tx_where *w);
/* The same through the generic proxy, which asks for no fence. */
tx_mbar *tx_mbar_for_store(const tx_act *a, uint32_t lane, const tx_where *w);
bool tx_mbar_wait_text(tx_vm *vm, tx_frag *f, tx_emu_report *r, char *text, size_t size);

/* ---- engine.c ---------------------------------------------------------------------------------------------------- */

/* Work that a thread gave to an engine. `perform` moves the bytes; completing is the queue's business. */
typedef struct tx_tmem tx_tmem; /* tmem.h */
enum tx_work_end { TX_END_MBAR, TX_END_GROUP, TX_END_CP, TX_END_ARRIVE, TX_END_TC, TX_END_COMMIT, TX_END_WGMMA };
struct tx_work {
    tx_work *next;
    uint8_t end; /* tx_work_end */
    bool was_read, performed, atomic;
    bool carries;          /* its data with it: what another CTA waits for outlives the issuer */
    uint32_t thread, site; /* issuer: thread of the CTA */
    uint32_t group;        /* END_GROUP: of the thread, counted from its first */
    tx_cta *cta;           /* issuer's */
    tx_cta *bar_cta;       /* END_MBAR, END_ARRIVE */
    uint32_t bar_off, bytes;
    uint32_t nsrc, ndst; /* shared memory that it reads and writes */
    tx_span_of *src, *dst;
    bool (*read)(tx_vm *vm, tx_work *w);  /* takes the source; NULL: perform does */
    bool (*write)(tx_vm *vm, tx_work *w); /* false: the run stops */
    void *data;
    tx_clock *seen;         /* END_COMMIT, with checks: what its thread had seen and done */
    tx_global_span *global; /* with checks: global memory that it reads or writes */
    uint32_t nglobal;
    bool global_write;
    /* END_CP, END_ARRIVE: one copy or arrival for each lane of a warp */
    uint32_t lanes, lane_group[TX_LANES];
    struct tx_watcher *watch; /* watch.h */
    uint64_t issued;
    uint32_t number;
};
struct tx_engine {
    tx_mbar *bar;
    uint32_t nbars, bar_cap, last_bar;
    tx_work *first, *last;
    uint32_t *cp_group, *bulk_group; /* a thread: groups committed */
    uint32_t *wgmma_group;           /* a warp: groups committed, and whether it has executed wgmma.fence */
    bool *wgmma_fenced;
    struct tx_tmem *tmem;     /* tensor memory, once it is used */
    struct tx_touch *touched; /* cluster.c: what threads of other CTAs did last, by thread of the cluster */
    void *registers;          /* wgmma.c: a warp's registers in flight */
    bool refused;             /* launch_control.c: a thread knows that no cluster is left */
};
tx_engine *tx_engine_new(const tx_cta *cta);
void tx_engine_free(tx_engine *e);
void tx_engine_begin(tx_vm *vm, tx_cta *cta);
bool tx_engine_end(tx_vm *vm, tx_cta *cta); /* the CTA's threads have left */
/* A new work with room for `extra` bytes of data and n spans; NULL: out of memory. */
tx_work *tx_work_new(const tx_act *a, uint32_t lane, enum tx_work_end end, uint32_t nspans, size_t extra);
bool tx_work_move(tx_vm *vm, tx_work *w); /* its bytes, if they have not moved; false: the run stops */
/* Puts it into the queue; performs it at once where the schedule says so. */
void tx_work_free(tx_work *w); /* one that was not issued */
void tx_work_drop(tx_engine *e, tx_work *w);
bool tx_work_issue(tx_vm *vm, tx_work *w);
bool tx_engine_flush_mbar(tx_vm *vm, tx_cta *cta, tx_mbar *b); /* if that completes the phase; *false*: the run stops */
bool tx_engine_wait_group(tx_vm *vm, tx_cta *cta, uint32_t thread, uint32_t newest, bool read_only);
bool tx_engine_wait_cp(tx_vm *vm, tx_warp *w, uint32_t lanes, int64_t newest, bool all);
bool tx_engine_push(tx_vm *vm, tx_cta *cta, bool *did); /* nothing else can run: the oldest work is performed */
bool tx_engine_some(tx_vm *vm, tx_cta *cta, uint64_t r);
int tx_agent_poll(tx_vm *vm, tx_frag *f); /* a part that waits for an event */

/* ---- wgmma.c: registers that engines work on ------------------------------------------------------------------------- */

bool tx_registers_load(const tx_act *a);   /* the results of a tcgen05.ld are on their way; false: out of memory */
void tx_registers_loaded(const tx_act *a); /* the warp has waited for them */

#endif
