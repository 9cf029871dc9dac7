/* Private to emu/: the VM code and the state of a run. Compilers of code (code_*.c) make a tx_emu_program; run_impl.h executes
 * it, a warp (or a part of one) at a time; sched.c decides who runs; checkers hang on tx_hooks. Must not know Python.
 *
 * Registers live in a frame, one for a warp, addressed by byte offsets: slots of 8 bytes hold uniform values and lane masks
 * (bool values are masks: one bit a lane), rows hold one value for each of 32 lanes in 4 or 8 bytes. Integers narrower than
 * 32 bits sit extended in 32-bit lanes; float16 and narrower sit as codes in 32-bit lanes. Expressions write all lanes, also
 * inactive ones, whose values nobody reads; whatever can fault or be seen looks at the active mask.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_VM_H
#define TX_EMU_VM_H

#include "emu/emu.h"

enum { TX_LANES = 32, TX_MAX_WARPS = TX_MAX_THREADS / TX_LANES, TX_NBARRIERS = 16 };
#define TX_FULL 0xffffffffu

typedef union tx_slot {
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
} tx_slot;

enum tx_vop {
#define B4(n, t) V_##n##_##t##_SS, V_##n##_##t##_VV, V_##n##_##t##_VS, V_##n##_##t##_SV,
#define U2(n, t) V_##n##_##t##_S, V_##n##_##t##_V,
#define M3(n) V_##n##_S, V_##n##_V32, V_##n##_V64,
#define X1(n) V_##n,
#include "emu/vmop.def"
#undef B4
#undef U2
#undef M3
#undef X1
    V__COUNT
};

typedef struct tx_insn {
    uint16_t op, aux;
    uint32_t d, a, b, c; /* byte offsets of registers in the frame, or small numbers */
    uint32_t site;       /* place in the source, for reports */
    int64_t imm;
} tx_insn;

/* aux of LDP, STP, ATOM */
enum {
    TX_ACC_KIND = 0xff,
    TX_ACC_ADDR_V = 0x100,
    TX_ACC_VAL_V = 0x200,
    TX_ACC_CAS = 0x400,
    TX_ACC_CMP_V = 0x800,
    TX_ACC_STRENGTH = 12
};
/* aux of loads and stores by index */
enum { TX_IDX_64 = 1, TX_VAL_V = 2, TX_SAME_ACCESS = 4 /* not the first element of a vector */ };
/* aux of BAR */
enum { TX_MEET_CLUSTER = TX_NBARRIERS, TX_MEET_GRID };
enum {
    TX_BAR_CTA,
    TX_BAR_GROUP,
    TX_BAR_CLUSTER,
    TX_BAR_GRID,
    TX_BAR_AND = 4, /* the ones with a result */
    TX_BAR_OR,
    TX_BAR_POPC,
    TX_BAR_SYNC = 8, /* this and the next: c holds number and thread count << 8 */
    TX_BAR_ARRIVE,
    TX_BAR_KIND = 15,
    TX_BAR_RESULT = 4,
    TX_BAR_COUNTED = 16, /* PTX, c holds a count */
    TX_BAR_LOOSE = 32,   /* lanes of a warp arrive by themselves */
    TX_BAR_NUMBERED = 64 /* PTX: c holds the number */
};
/* imm of ATOM: operation, float format of PTX << 8; bits 16 and up of an access through a pointer: its alignment */
enum {
    TX_ATOM_ADD,
    TX_ATOM_EXCH,
    TX_ATOM_AND,
    TX_ATOM_OR,
    TX_ATOM_XOR,
    TX_ATOM_INC,
    TX_ATOM_DEC,
    TX_ATOM_MIN,
    TX_ATOM_MAX
};
/* aux of VOTE */
enum { TX_VOTE_BALLOT, TX_VOTE_ANY, TX_VOTE_ADD, TX_VOTE_MIN, TX_VOTE_ELECT };
/* aux of SHFL: mode, and 16 for rows of 64 bits */
enum { TX_SHFL_IDX, TX_SHFL_UP, TX_SHFL_DOWN, TX_SHFL_XOR };
/* aux of WREDUCE: operation | vm type << 4 */
enum { TX_RED_SUM, TX_RED_MIN, TX_RED_MAX };

/* Types of lanes. X: codes of at most 16 bits that arithmetic converts to F32 first; B: a lane mask. */
typedef enum tx_vt { VT_I32, VT_U32, VT_I64, VT_U64, VT_F32, VT_F64, VT_X, VT_B, VT_NONE } tx_vt;
tx_vt tx_vt_of(tx_dtype t);
const char *tx_vop_name(unsigned op);

/* A register that is described by data: operands of bounds checks, printf, injected functions. */
typedef struct tx_vreg {
    uint32_t reg;
    uint8_t vt;
    bool row; /* one value a lane */
    tx_dtype type;
} tx_vreg;

typedef struct tx_dims { /* indices of an access and the extents of the buffer */
    uint32_t n;
    tx_vreg *idx, *ext;
} tx_dims;

typedef struct tx_site {
    const char *file;
    uint32_t line, col, end_line, end_col;
    uint32_t call; /* that brought the text here, index + 1; 0 none */
    const char *buffer;
    const char *role;
    uint32_t mem;  /* index + 1, 0 none */
    uint32_t dims; /* index + 1, 0 none */
} tx_site;

typedef struct tx_outside { /* printf, injected function, assertion, unsupported operation */
    const char *text;       /* format, name, message */
    uint32_t nargs;
    tx_vreg *args;
    tx_dtype ret;
} tx_outside;

/* One allocation that kernels can touch. */
typedef struct tx_memory {
    const char *name;
    uint8_t scope; /* tx_scope */
    uint8_t elem;  /* bytes of an element, for texts */
    bool dyn;
    uint32_t param; /* global: index of the argument */
    int64_t offset; /* shared: in the CTA's bytes; local: in a thread's bytes */
    int64_t nbytes;
    bool fp4;
    bool pointed, written, read; /* global: by pointers; by the kernel */
    bool target;                 /* global: not the argument itself, a tensor map, but the tensor behind it */
} tx_memory;

/* What a frame or a launch must fill in before the code runs. */
typedef struct tx_origin {
    uint16_t op; /* TX_OP_THREAD_IDX ... */
    uint8_t axis;
    bool row;
    uint32_t reg;
} tx_origin;
typedef struct tx_preset { /* scalar parameter */
    uint32_t param, reg;
    tx_dtype type;
} tx_preset;
typedef struct tx_live { /* uniform slots whose values matter at a convergence point */
    uint32_t n;
    uint32_t *slot;
} tx_live;
typedef struct tx_text { /* source lines kept for reports */
    const char *file, *text;
    uint32_t first_line;
} tx_text;

struct tx_emu_program {
    tx_arena arena;
    const char *name;
    tx_insn *code;
    uint32_t ncode;
    /* frame: constants and presets, uniform slots, initialisation masks, lane masks, rows of 4, rows of 8 bytes */
    uint32_t frame_bytes, consts_at, nconsts, slots_at, nslots, inits_at, ninits, masks_at, nmasks, rows4_at, nrows4,
        rows8_at, nrows8;
    tx_slot *consts;
    uint32_t max_ctl;
    uint32_t nparams, npresets, ncoords, nmems, nsites, ndims, noutside, nlive, ntexts;
    tx_preset *presets;
    tx_origin *coords;
    tx_memory *mems;
    tx_site *sites;
    tx_emu_call *calls;
    tx_dims *dims;
    tx_outside *outside;
    tx_live *live;
    tx_text *texts;
    struct tx_ptx_op **ptx;
    uint32_t nptx, ncalls;
    int64_t static_smem, local_bytes;  /* local: a thread's addressable arrays */
    uint8_t granule_shift;             /* log2 of the smallest shared access */
    bool partial_barriers, meets_ctas; /* named barriers; cluster or grid barriers */
    uint8_t global_shift;              /* log2 of the smallest access to global memory */
    uint32_t registers;                /* of a thread at the launch, 0: not said */
    bool agents;                       /* mbarriers, asynchronous copies, matrix units */
    bool bulk_stores, tensor_stores;   /* engines write to global memory: through pointers, through maps */
    bool cta_waits;                    /* waits at an mbarrier for what its own CTA releases: .cta is written */
    bool common_fences;                /* fence.proxy.async for all memories */
};

/* ---- a run ------------------------------------------------------------------------------------------------------- */

typedef struct tx_ctl { /* lanes set aside by structured control flow */
    uint32_t pc;        /* where they go on */
    uint32_t restore;   /* IF: lanes after the join; LOOP: lanes that have left */
    uint32_t els;       /* IF: lanes of the else part; LOOP: lanes that wait for the next turn */
} tx_ctl;

enum tx_state { TX_READY, TX_WAIT_WARP, TX_WAIT_BAR, TX_WAIT_EVENT, TX_GONE };
typedef struct tx_warp tx_warp;
typedef struct tx_cta tx_cta;
typedef struct tx_vm tx_vm;
/* A part of a warp that runs by itself: all of it until lanes part at a wait. */
typedef struct tx_frag {
    uint8_t *R;
    uint32_t m, pc, sp;
    uint32_t state;
    uint32_t
        wait_mask; /* WAIT_WARP: lanes waited for; WAIT_BAR: barrier, or TX_MEET_*; WAIT_EVENT: lanes not served yet */
    uint32_t site; /* of the loop that yielded last */
    bool spins;    /* yielded, and nothing had changed */
    bool arrived;  /* counted at its barrier */
    tx_warp *warp;
    uint64_t hash;         /* of the frame at the last yield, to see loops that change nothing */
    uint64_t clock, since; /* watched: steps so far, and when it began to run or go on */
    uint32_t part;         /* watched: its number in the warp */
    tx_ctl *ctl;
} tx_frag;
struct tx_warp {
    tx_cta *cta;
    uint32_t index, live;
    uint32_t nfrags;
    uint32_t met, promised,
        meeting;               /* cluster barrier: lanes that have arrived, and are still to wait; for which phase */
    uint32_t registers;        /* setmaxnreg: of a thread; 0: as at the start */
    uint32_t moves, move_site; /* how often it has executed it, and where the last time */
    uint32_t parts, named;     /* watched: numbers of parts in use, and known to the timeline */
    uint64_t busy[TX_LANES];   /* watched: until when each of them was seen */
    tx_frag *frag[TX_LANES];
    uint8_t *local; /* addressable local arrays, thread by thread */
    uint8_t *local_init;
};
typedef struct tx_barrier {
    uint32_t arrived;             /* threads */
    uint32_t expected;            /* 0: nobody is there yet */
    uint32_t site;                /* of the first arrival */
    bool exited_counted, counted; /* a count was given */
    uint32_t acc_and, acc_or, acc_popc;
    uint32_t arrived_warps; /* that did not wait */
    uint64_t begun, when;   /* watched: first and last arrival */
} tx_barrier;

/* What run_impl.h needs to touch memory: resolved for the CTA at hand. */
typedef struct tx_mem {
    uint8_t *base;
    int64_t nbytes, before; /* bytes from base on, and before it (negative strides) */
    bool readonly, watched; /* watched: the hooks see every access */
    uint32_t granule;       /* first shadow granule */
} tx_mem;

typedef struct tx_shadow tx_shadow; /* check_race.c */
typedef struct tx_order tx_order;   /* order.c */
typedef struct tx_engine tx_engine; /* engine.c */
typedef struct tx_global tx_global; /* check_global.c */
struct tx_cta {
    tx_cta *next;
    uint32_t id[3], cluster_rank;
    uint64_t linear;
    uint32_t nwarps, nthreads, exited; /* exited: threads */
    tx_warp *warps;
    tx_barrier barrier[TX_NBARRIERS];
    uint32_t open;            /* barriers at which somebody has arrived */
    uint32_t meet_arrived[2]; /* cluster, grid: threads of this CTA that wait there */
    uint8_t *shared;
    int64_t shared_bytes;
    tx_mem *mem;
    tx_shadow *shadow;
    tx_engine *engine; /* mbarriers and what the asynchronous engines have to do; NULL: the program has none */
    uint32_t started, idle_turns;
    uint32_t *waited;        /* check_chain.c: by thread, when it was behind griddepcontrol.wait; NULL: none yet */
    uint32_t meets;          /* phases of the cluster barrier that are over */
    uint32_t free_registers; /* setmaxnreg: given up, for each warp's thread */
    uint64_t clock,
        met[2];        /* watched: the latest step of its warps; last arrivals at the cluster and the grid barrier */
    uint64_t met_over; /* watched: the last arrival of the phase of the cluster barrier that is over */
    uint32_t barriers_named, phases[TX_NBARRIERS];
};

/* Events that the checkers see. An access: bytes [off, off + size) of a memory. NULL entries are not called.
 * Each gives false when the run must stop. */
typedef struct tx_access {
    tx_vm *vm;
    tx_frag *f;
    uint32_t mem, site;
    uint32_t size;
    uint8_t kind;     /* TX_READ ... */
    tx_cta *at;       /* whose shared memory; NULL: the thread's own CTA */
    uint8_t strength; /* as code_ptx.c packs it; 0: weak, or an atomic of the whole GPU */
} tx_access;
enum { TX_READ, TX_WRITE, TX_ATOMIC };
typedef struct tx_hooks {
    bool (*begin)(tx_vm *vm, tx_cta *cta);
    bool (*end)(tx_vm *vm, tx_cta *cta);
    bool (*range)(const tx_access *a, int64_t off);                        /* all 32 lanes, contiguous */
    bool (*point)(const tx_access *a, int64_t off, uint32_t lanes);        /* the same bytes for all these lanes */
    bool (*lanes)(const tx_access *a, const int64_t *off, uint32_t lanes); /* one offset a lane */
    void (*barrier)(tx_vm *vm, tx_cta *cta, uint32_t warps);               /* all threads of these warps have met */
    void (*warp_sync)(tx_vm *vm, tx_warp *w, uint32_t lanes);
} tx_hooks;
extern const tx_hooks tx_race_hooks;
tx_shadow *tx_shadow_new(const tx_cta *cta, const tx_emu_program *p);
void tx_shadow_free(tx_shadow *s);

typedef struct tx_epoch { /* times of the race checker; below 2^31 */
    uint32_t start;       /* of the CTA: what was written before is not initialised */
    uint32_t floor;       /* all threads are ordered after what is older */
    uint32_t now;
} tx_epoch;

/* The hot loops for one instruction set. */
typedef struct tx_isa {
    const char *name;
    int (*run)(tx_vm *vm, tx_frag *f);
    /* check_race.c: one access by all lanes to consecutive granules; false: look closer */
    bool (*shadow_read)(const uint32_t *wtime, const uint32_t *wwho, uint32_t *rtime, uint32_t *rwho, uint32_t n,
                        uint32_t shift, const tx_epoch *e, uint32_t who);
    bool (*shadow_write)(uint32_t *wtime, uint32_t *wwho, uint32_t *rtime, const uint32_t *rwho, uint32_t n,
                         uint32_t shift, const tx_epoch *e, uint32_t who);
    /* wgmma.c: eight 16-bit codes to float32; eight rows of eight, turned, n floats from row to row; d[16][n] += x[16][k] * y[k][n],
     * where n is a multiple of 16, d and x have pitches, and y lies in panels of 16 columns: [n / 16][k][16]; exact: the products
     * are, as those of float16 are, and those of bfloat16 if all operands are within_exact */
    void (*widen)(float *d, const uint8_t *p, bool bf16);
    void (*widen_turned)(float *d, uint32_t n, const uint8_t *const *rows, bool bf16);
    void (*multiply)(float *d, uint32_t pitch, const float *x, uint32_t x_pitch, const float *y, uint32_t k, uint32_t n,
                     bool exact);
    bool (*within_exact)(const float *v, uint32_t n);
    /* eight rows of eight columns, n floats from row to row, and the two registers of even and odd columns that hold them */
    void (*fragment_rows)(float *d, uint32_t n, float *even, float *odd, bool to_registers);
    void (*later_times)(uint32_t *to, const uint32_t *from, uint32_t n); /* order.c: the maximum of each */
} tx_isa;
extern const tx_isa tx_isa_base, tx_isa_avx2, tx_isa_avx512, tx_isa_watch;
const tx_isa *tx_isa_pick(void);

/* who: thread or agent << 19 | flags and site. Readers of one granule in one epoch are merged into one record. */
enum {
    TX_WHO_THREAD = 19,
    TX_WHO_LANES = 1 << 18,
    TX_WHO_WARPS = 1 << 17,
    TX_WHO_ATOMIC = 1 << 18,
    TX_WHO_SITE = (1 << 17) - 1
};
/* Times that the fast paths take for unordered: 2^31 and above. */
#define TX_TIME_CLOSER 0x80000000u

enum tx_run { TX_RUN_ON, TX_RUN_BLOCK, TX_RUN_YIELD, TX_RUN_DONE, TX_RUN_STOP };

struct tx_launch_state; /* shared by the workers of a run; sched.c */
struct tx_vm {          /* one worker */
    const tx_emu_program *p;
    const tx_emu_launch *l;
    const tx_emu_options *o;
    const tx_emu_host *h;
    const tx_isa *isa;
    struct tx_launch_state *shared_state;
    const tx_hooks *hooks;    /* NULL with checks off */
    struct tx_watcher *watch; /* watch.h; NULL: nobody looks */
    bool check, stop, threaded;
    bool late; /* engines work when they must, not when they are told to */
    tx_emu_status status;
    tx_emu_report *report;
    tx_mem *mem; /* of the CTA that runs */
    tx_cta *cta;
    tx_cta *ctas; /* resident */
    tx_cta *spare;
    uint32_t budget;  /* backward jumps until the next yield */
    uint64_t changes; /* counts what others could wait for */
    uint64_t clock;
    uint64_t rng;
    uint32_t tid[TX_MAX_WARPS][3][TX_LANES];
    uint32_t ntid;  /* warps filled in */
    tx_frag **pool; /* unused, with constants and parameters in place */
    uint32_t npool, pool_cap;
    /* A read of shared memory that nobody has written yet: it becomes a race if another thread writes before anything orders
     * the two, else it is reported as it is. */
    struct {
        bool set, atomic;
        tx_cta *cta;
        uint32_t granule, thread, site, time;
        tx_emu_report report;
    } unwritten;
    tx_global **globals;                   /* by memory; NULL: not watched */
    struct tx_engine_cells **engine_cells; /* by memory; NULL: no engine has touched it */
    struct global_place **places;
    uint32_t nplaces, grid_floor; /* what is older, all CTAs have seen */
    uint32_t proxy_fence;         /* time of the last one */
    tx_map place_at;
    struct tx_maps *maps; /* check_map.c: tensor maps that the kernel has changed */
    uint32_t now;         /* time of the race checker; goes on from CTA to CTA */
    uint32_t *seen;       /* reports given already with collect: kind hash and site */
    uint32_t nseen, seen_cap;
};

static inline const tx_site *
tx_site_of(const tx_vm *vm, uint32_t site)
{
    return &vm->p->sites[site];
}
static inline tx_slot *
tx_reg(const tx_frag *f, uint32_t off)
{
    return (tx_slot *)(void *)(f->R + off);
}
static inline uint32_t
tx_first_lane(uint32_t m)
{
    return (uint32_t)__builtin_ctz(m);
}
/* Integer value of a lane of a described register. */
int64_t tx_vreg_int(const tx_frag *f, const tx_vreg *r, uint32_t lane);

/* Pointers in registers: allocation index + 1 in the high 16 bits, offset in bytes plus a bias below; 0 is null. */
#define TX_PTR_BIAS ((uint64_t)1 << 46)
#define TX_PTR_MASK (((uint64_t)1 << 48) - 1)
static inline uint64_t
tx_ptr_make(uint32_t mem, int64_t off)
{
    return ((uint64_t)(mem + 1) << 48) | ((uint64_t)off + TX_PTR_BIAS);
}
static inline bool
tx_ptr_split(uint64_t p, uint32_t nmems, uint32_t *mem, int64_t *off)
{
    uint64_t id = p >> 48;
    if (id == 0 || id > nmems)
        return false;
    *mem = (uint32_t)id - 1;
    *off = (int64_t)((p & TX_PTR_MASK) - TX_PTR_BIAS);
    return true;
}

/* mem.c: what the fast paths leave over. All give a tx_run. */
int tx_vm_load(tx_vm *vm, tx_frag *f, const tx_insn *in);  /* M3 loads of any form, LDP */
int tx_vm_store(tx_vm *vm, tx_frag *f, const tx_insn *in); /* M3 stores, STP */
int tx_vm_atomic(tx_vm *vm, tx_frag *f, const tx_insn *in);
int tx_vm_chkb(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t dim, uint32_t bad);
void tx_reduce_bytes(uint8_t *to, const uint8_t *from, size_t n, unsigned op, unsigned kind);
/* Where a lane's load, store or atomic goes, for those who only look; false: nowhere, or to another CTA. */
bool tx_mem_place(const tx_vm *vm, const tx_frag *f, const tx_insn *in, uint32_t lane, uint32_t *mem, int64_t *off,
                  uint32_t *size);
int tx_vm_align(tx_vm *vm, tx_frag *f, const tx_insn *in);
int tx_vm_local(tx_vm *vm, tx_frag *f, const tx_insn *in); /* per-lane index into rows */
int tx_vm_chki(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad);
int tx_vm_slow(tx_vm *vm, tx_frag *f, const tx_insn *in); /* every other rare instruction */
/* wgmma.c: registers that a matrix unit works on, known by their initialisation masks */
int tx_vm_watch(tx_vm *vm, tx_frag *f, const tx_insn *in);                   /* one has been written */
void tx_vm_watch_read(const tx_vm *vm, const tx_frag *f, const tx_insn *in); /* or read */
bool tx_wgmma_busy(const tx_vm *vm, const tx_frag *f, uint32_t init);
int tx_wgmma_report(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, uint32_t init, const char *role);
int tx_vm_arith(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad);
int tx_vm_overflow(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad); /* check_overflow.c */

/* agent.c: mbarriers, asynchronous copies, matrix units */
int tx_vm_agent(tx_vm *vm, tx_frag *f, const tx_insn *in);

/* ptx_run.c */
int tx_vm_ptx(tx_vm *vm, tx_frag *f, const tx_insn *in);
/* -1, or lane << 8 | the absent lane that it wants to read */
int tx_ptx_exchange(tx_vm *vm, tx_frag **fs, uint32_t n, uint32_t there);
uint64_t tx_ptx_pointer(const tx_vm *vm, uint64_t address); /* an address in the shared window to a pointer */
uint32_t tx_ptx_window(const tx_vm *vm, uint64_t pointer);  /* and back; 0: not a pointer to shared memory */

/* tensormap.c: tensor maps in the kernel's memory, and what lies at the addresses that they hold. */
/* The map that a pointer (a register's value) leads to; false: it leads to no map, *why says so in words. Works on maps that
 * came as arguments and on those that tensormap.replace has written to global or shared memory. */
bool tx_vm_tensormap(const tx_vm *vm, uint64_t pointer, tx_tensormap *t, const char **why);
/* The memory in which a host address lies, and the offset there (vm->mem[*mem].base + *off == address): a tensor that the
 * kernel has as an argument if one contains the address, else the tensor behind a map. false: in none of them. */
bool tx_vm_global_at(const tx_vm *vm, uint64_t address, uint32_t *mem, int64_t *off);
const char *tx_vm_global_name(const tx_vm *vm, uint32_t mem); /* how reports call it */

/* warp.c */
int tx_vm_warp_op(tx_vm *vm, tx_frag *f, const tx_insn *in); /* WSYNC SHFL VOTE WREDUCE */
int tx_warp_left(tx_vm *vm, tx_warp *w, uint32_t lanes);
/* sched.c */
int tx_vm_barrier(tx_vm *vm, tx_frag *f, const tx_insn *in);
tx_frag *
tx_frag_split(tx_vm *vm,
              tx_frag *f); /* others of the fragment go on by themselves; NULL: none, or out of memory (vm->stop) */
void tx_frag_exit(tx_vm *vm, tx_frag *f); /* active lanes leave the kernel */
void tx_frag_merge(tx_vm *vm, tx_warp *w, const tx_live *live);
/* outside.c */
int tx_vm_outside(tx_vm *vm, tx_frag *f, const tx_insn *in); /* ASSERT PRINTF EXTERN UNSUP */

/* check_chain.c */
int tx_chain_wait(tx_vm *vm, tx_frag *f, const tx_insn *in); /* griddepcontrol.wait */

/* maths.c */
void tx_math1_f32(unsigned op, float *d, const float *a, uint32_t n);
void tx_math1_f64(unsigned op, double *d, const double *a, uint32_t n);
void tx_math2_f32(unsigned op, float *d, const float *a, const float *b, uint32_t n);
void tx_math2_f64(unsigned op, double *d, const double *a, const double *b, uint32_t n);
uint32_t tx_fma_code(unsigned kind, uint32_t a, uint32_t b, uint32_t c);
double tx_round_odd_f64(int64_t v, bool is_unsigned);

/* report.c. Fill, then tx_report_end: gives TX_RUN_STOP, or TX_RUN_ON when the run goes on (warning, collect). */
tx_emu_report *tx_report_begin(tx_vm *vm, const char *kind, uint32_t site);
void tx_report_agent(tx_vm *vm, tx_emu_report *r, const tx_frag *f, uint32_t lane, uint32_t site, const char *role);
void tx_report_thread(tx_vm *vm, tx_emu_report *r, const tx_cta *cta, uint32_t thread, uint32_t site, const char *role);
void tx_report_text(tx_emu_report *r, const char *fmt, ...) TX_PRINTF(2, 3);
int tx_report_end(tx_vm *vm, tx_emu_report *r);
void tx_report_element(tx_vm *vm, tx_emu_report *r, const tx_frag *f, uint32_t lane, uint32_t site, int64_t off_bytes);
int tx_vm_nomem(tx_vm *vm);

#endif
