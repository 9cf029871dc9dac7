/* The CPU emulator: kernels to VM code, the warp-vectorised VM, memories, scheduler, checkers. Owner: emu.
 * Knows lower/ and below; must not know cuda/, the driver or Python. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_H
#define TX_EMU_H

#include "layout/layout.h"
#include "lower/lower.h"

/* One kernel argument: by value in 8 bytes, or a pointer with the bytes that may be touched through it. */
typedef struct tx_emu_arg {
    union {
        int64_t i;
        double f; /* float32 and narrower are converted by the VM */
        void *p;
        uint64_t u;
    } v;
    size_t nbytes; /* pointers: bytes reachable from p on (declared shape, never more); 0 for scalars */
    size_t before; /* pointers: bytes reachable before p, through negative strides */
    bool readonly; /* pointers: a store is a report */
    /* Tensor maps: p leads to their 128 bytes, and these say where the tensor behind them lies (NULL: not known). */
    void *target;
    size_t target_nbytes, target_before;
    bool target_readonly;
    const char *target_name; /* for reports; NULL: the map's */
} tx_emu_arg;

typedef struct tx_emu_program tx_emu_program; /* immutable, shared by threads; holds all it needs (no context) */
/* NULL: diagnostics recorded in c (never for what only an execution can meet: that becomes an `unsupported` report). */
tx_emu_program *tx_emu_compile(tx_ctx *c, const tx_func *kernel);
void tx_emu_free(tx_emu_program *p);
/* Text of the VM code, for debugging and tests. */
void tx_emu_disassemble(const tx_emu_program *p, tx_sb *out);

/* What a watched run writes down: members of a JSON list. limit: events at most, 0: the default. */
enum { TX_WATCH_TIMELINE = 1, TX_WATCH_COUNTS };
typedef struct tx_emu_watch {
    int what; /* TX_WATCH_* */
    tx_sb text;
    uint64_t limit, events, processes; /* processes: CTAs of the launches so far */
} tx_emu_watch;

typedef enum tx_emu_schedule { TX_SCHED_DEFAULT, TX_SCHED_LATE, TX_SCHED_EARLY, TX_SCHED_SEED } tx_emu_schedule;
typedef struct tx_emu_options {
    bool check;   /* checkers on */
    bool collect; /* check="report": go on after a report where that makes sense */
    tx_emu_schedule schedule;
    uint64_t seed;
    bool hardware_numerics;
    tx_emu_watch *watch; /* NULL: nobody looks; else one thread runs all CTAs */
    int nthreads;        /* check off: CTAs over a thread pool; 0: TIRX_THREADS or the number of cores */
} tx_emu_options;

/* What the launches of a call have touched, where one may begin before the one before it has ended. */
typedef struct tx_emu_chain tx_emu_chain;
tx_emu_chain *tx_emu_chain_new(void); /* NULL: out of memory */
void tx_emu_chain_free(tx_emu_chain *c);

typedef struct tx_emu_launch {
    uint32_t grid[3], block[3], cluster[3];
    uint64_t dyn_smem;
    const tx_emu_arg *args; /* in the order of the kernel's params, TX_PARAM_SHAPE_ONLY ones included */
    uint32_t nargs;
    tx_emu_chain *chain; /* of the call; NULL: none of its launches overlaps another one */
    bool overlaps;       /* it may begin before the one before it has ended */
} tx_emu_launch;

/* A report is data first: which rule, which buffer, which element, which threads, which source lines. */
typedef struct tx_emu_agent { /* a thread, or an engine working for one */
    uint32_t cta[3], thread[3];
    int32_t warp, lane;
    const char *file; /* program-owned text */
    uint32_t line, col, end_line, end_col;
    const char *role; /* "store", "load", "waits at", ... */
    uint32_t call;    /* that brought the text there, for tx_emu_call; 0: the kernel's own text */
} tx_emu_agent;
typedef struct tx_emu_call { /* of an inline helper, or of a function of the module */
    const char *function, *caller, *file;
    uint32_t line;
    uint32_t next; /* the call that brought the caller's text; 0: it is the kernel's own */
    bool called;   /* a function of the module */
} tx_emu_call;
typedef struct tx_emu_report {
    const char *kind; /* one of the kinds of intrinsics.md 9: "out_of_bounds", "race", ... */
    bool warning;     /* EmulationWarning instead of EmulationError */
    char buffer[64];  /* "" : none */
    char element[96]; /* "[3, 17]" or "byte 40" or "" */
    uint32_t nagents;
    tx_emu_agent agent[8];
    char message[512]; /* first line of the text */
} tx_emu_report;
const tx_emu_call *tx_emu_call_of(const tx_emu_program *p, uint32_t call); /* NULL for 0 */
/* Text of at most 15 lines with both source lines shown (the program keeps the source text it needs). */
void tx_emu_render(const tx_emu_program *p, const tx_emu_report *r, tx_sb *out);

/* What the emulator asks of Python; called with no lock held. Any may be NULL. */
typedef struct tx_emu_host {
    void *self;
    /* stand-in for an injected function: values of the active lanes as arrays; result array to fill (ret VOID: none).
     * false: a Python exception is pending in the host, the run stops. */
    bool (*extern_call)(void *self, const char *name, uint32_t nactive, uint32_t nargs, const tx_dtype *types,
                        void *const *arrays, tx_dtype ret, void *result);
    bool (*has_extern)(void *self, const char *name);
    void (*print)(void *self, const char *text, size_t n);
    bool (*interrupted)(void *self);                                             /* Ctrl-C: polled now and then */
    void (*report)(void *self, const tx_emu_program *p, const tx_emu_report *r); /* warnings, and errors with collect */
} tx_emu_host;

typedef enum tx_emu_status {
    TX_EMU_OK,
    TX_EMU_REPORT,
    TX_EMU_INTERRUPTED,
    TX_EMU_HOST_ERROR,
    TX_EMU_NO_MEMORY
} tx_emu_status;
/* Runs one launch to its end. TX_EMU_REPORT fills *r. Thread-safe for one program. No GIL needed. */
tx_emu_status tx_emu_run(const tx_emu_program *p, const tx_emu_launch *l, const tx_emu_options *o, const tx_emu_host *h,
                         tx_emu_report *r);

#endif
