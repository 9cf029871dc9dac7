/* Private to emu/code*.c: the state of one compilation from a lowered kernel to VM code.
 *
 * The code is generated optimistically: cells are taken as uniform and loops as left by all lanes at once; where generation
 * meets the contrary it notes the fact (tx_code.facts), sets `again`, and the kernel is generated once more. Facts only
 * grow, so this ends. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_CODE_H
#define TX_EMU_CODE_H

#include "emu/vm.h"

/* Register classes; an operand is TAG | class << 28 | index until the frame is laid out. */
enum { RC_CONST, RC_PRESET, RC_SLOT, RC_INIT, RC_MASK, RC_ROW4, RC_ROW8, RC__COUNT };
#define RC_TAG 0x80000000u
static inline uint32_t
rc_make(unsigned cls, uint32_t i)
{
    return RC_TAG | cls << 28 | i;
}
static inline unsigned
rc_class(uint32_t reg)
{
    return reg >> 28 & 7;
}
static inline uint32_t
rc_index(uint32_t reg)
{
    return reg & 0x0fffffffu;
}

enum { VF_NONE, VF_CONST, VF_UNI, VF_ROW };
typedef struct tx_val {
    uint8_t form;
    uint8_t vt;
    bool cell;  /* reg is a variable's own register: it may change later */
    tx_dtype t; /* scalar */
    uint32_t reg;
    tx_slot k;             /* CONST */
    int64_t lo, hi;        /* integers: sure bounds */
    int64_t stride, align; /* align > 0: value = base + stride * lane, base uniform and a multiple of align; no wrap */
} tx_val;

typedef enum tx_store_kind { ST_MEM, ST_ROWS, ST_PTR } tx_store_kind;
typedef struct tx_storage { /* what a data variable stands for */
    uint8_t kind, vt;
    bool uniform; /* ROWS: one slot, stored and read uniformly */
    bool track;   /* ROWS: initialisation is checked */
    bool watched; /* ROWS: registers of a matrix unit, which sees who writes them */
    bool fp4;
    int div;             /* divergence level of the allocation */
    uint32_t mem;        /* MEM */
    uint32_t base, init; /* ROWS: first register, first mask */
    int64_t n;           /* ROWS: elements times lanes */
    const tx_buffer *origin;
    tx_val ptr; /* PTR */
} tx_storage;

typedef struct code_binding { /* one entry of the stack of names */
    const void *key;          /* tx_var */
    uint64_t before;          /* entry hidden by this one, + 1 */
    bool is_storage;
    tx_val val;
    tx_storage st;
} code_binding;
typedef struct tx_cached {
    uint64_t key, before;
    tx_val val;
} tx_cached;
typedef struct tx_livereg {
    uint32_t reg;
    bool keep;
} tx_livereg;

typedef struct tx_loop_ctx {
    const tx_node *node;
    int div, ctl;                     /* of the body */
    bool entry;                       /* has a LOOP entry on the control stack */
    uint32_t first_break, first_cont; /* into jumps */
} tx_loop_ctx;
typedef struct tx_jump {
    uint32_t at;
    bool is_break;
    uint32_t loop;
} tx_jump;

typedef struct tx_inlined {
    uint32_t loop; /* index of the region that RETURN leaves */
    tx_val result;
    struct tx_inlined *outer;
    uint32_t call; /* of it, for reports: index into calls + 1 */
} tx_inlined;

enum { FACT_ROW = 1, FACT_ENTRY = 2, FACT_ADDRESSED = 4, FACT_BREAKS = 8, FACT_WATCHED = 16 };

typedef struct tx_scope_mark {
    uint32_t binds, cached, live;
} tx_scope_mark;

typedef struct tx_code {
    tx_ctx *c;
    const tx_func *f;
    tx_emu_program *p;
    TX_VEC(tx_insn) code;
    TX_VEC(tx_slot) consts;
    tx_map const_at;
    uint32_t nreg[RC__COUNT];
    TX_VEC(uint32_t) free[RC__COUNT];
    TX_VEC(tx_livereg) live;
    TX_VEC(code_binding) binds;
    tx_map names; /* var -> entry of binds + 1 */
    TX_VEC(tx_cached) cached;
    tx_map cache; /* value number, lane -> entry of cached + 1 */
    tx_map facts; /* node, buffer -> FACT_*; survives generation again */
    TX_VEC(tx_loop_ctx) loops;
    TX_VEC(tx_jump) jumps;
    TX_VEC(tx_site) sites;
    TX_VEC(tx_emu_call) calls;
    tx_map call_at; /* span of a call -> entry of calls + 1 */
    TX_VEC(tx_dims) dims;
    TX_VEC(tx_memory) mems;
    TX_VEC(tx_origin) coords;
    TX_VEC(tx_preset) presets;
    TX_VEC(tx_outside) outside;
    TX_VEC(tx_live) lives;
    TX_VEC(tx_text) texts;
    TX_VEC(struct tx_ptx_op *) ptx;
    TX_VEC(const tx_func *) callees;
    struct tx_inlined *inlined; /* the called function being generated in place, or NULL */
    uint32_t ncalls;            /* functions generated in place so far */
    int div, ctl, max_ctl, depth;
    uint32_t label; /* no instruction before this one may be changed: something jumps here */
    tx_span span;   /* of the statement */
    bool again, failed;
    int64_t block[3]; /* 0: unknown */
    int64_t smem, local_bytes, min_shared;
    unsigned leads; /* the value of the expression at hand leads to an address: LEADS_* */
    tx_map leading; /* check_overflow.c: variables and local arrays whose values do */
    bool partial_barriers, meets_ctas, agents;
} tx_code;

/* code.c */
uint32_t
tx_code_emit(tx_code *g, unsigned op, unsigned aux, uint32_t d, uint32_t a, uint32_t b, uint32_t c, int64_t imm);
uint32_t tx_code_reg(tx_code *g, unsigned cls);
uint32_t tx_code_regs(tx_code *g, unsigned cls, uint32_t n); /* consecutive, never reused */
uint32_t tx_code_const(tx_code *g, uint64_t bits);
uint32_t tx_code_operand(tx_code *g, const tx_val *v);
void tx_code_keep(tx_code *g, uint32_t reg);
tx_scope_mark tx_code_push(tx_code *g);
void tx_code_pop(tx_code *g, tx_scope_mark m);
void tx_code_free_temps(tx_code *g, uint32_t live_mark);
bool tx_code_bind(tx_code *g, const tx_var *v, tx_val val);
tx_storage *tx_code_bind_storage(tx_code *g, const tx_var *v, tx_storage st);
code_binding *tx_code_find(tx_code *g, const tx_var *v);
uint64_t tx_code_facts(const tx_code *g, const void *key);
void tx_code_learn(tx_code *g, const void *key, unsigned fact);            /* sets again when it is new */
uint32_t tx_code_called(tx_code *g, tx_span span, const tx_str *function); /* a call, for tx_inlined.call */
uint32_t tx_code_site(tx_code *g, tx_span span, const char *buffer, const char *role, uint32_t mem, uint32_t dims);
const char *tx_code_text(tx_code *g, const char *text, size_t n);
uint32_t tx_code_outside(tx_code *g, const char *text, uint32_t nargs, tx_vreg *args, tx_dtype ret); /* index */
tx_vreg tx_code_vreg(tx_code *g, tx_val v);
uint32_t tx_code_live(tx_code *g);
uint32_t tx_code_here(tx_code *g);            /* a label: next instruction */
void tx_code_target(tx_code *g, uint32_t at); /* instruction `at` jumps to here */
tx_val tx_code_coord(tx_code *g, unsigned op, int axis, bool row);

/* code_expr.c */
tx_val tx_code_expr(tx_code *g, const tx_node *n, unsigned lane);
void tx_code_remember(tx_code *g, uint64_t key, tx_val v); /* until the scope ends */
tx_val tx_val_int(tx_dtype t, int64_t v);
tx_val tx_val_new(tx_code *g, tx_dtype t, bool row); /* a fresh register */
tx_val tx_code_to_row(tx_code *g, tx_val v);
tx_val tx_code_copy(tx_code *g, tx_val v); /* into a register of its own, when it is a cell */
tx_val tx_code_unsupported(tx_code *g, const char *what, tx_dtype t);
bool tx_code_plain(const tx_code *g, const tx_node *n); /* can be evaluated although it is not needed */
tx_val tx_code_uniform(tx_code *g, tx_val v);           /* the first active lane's value */
/* code_arith.c */
tx_val tx_code_bin(tx_code *g, unsigned op, tx_dtype t, tx_val a, tx_val b); /* op of ir; t of the operands */
tx_val tx_code_cast(tx_code *g, tx_dtype to, tx_val v);
tx_val tx_code_unary(tx_code *g, const tx_node *n, unsigned lane);
tx_val tx_code_fma(tx_code *g, tx_dtype t, tx_val a, tx_val b, tx_val c);
tx_val tx_code_math2(tx_code *g, const tx_node *n, unsigned lane);
tx_val tx_code_reinterpret(tx_code *g, const tx_node *n, unsigned lane);
tx_val tx_code_not(tx_code *g, tx_val v);
/* code_mem.c */
tx_val tx_code_load(tx_code *g, const tx_node *n, unsigned lane);
void tx_code_store(tx_code *g, const tx_node *n);
void
tx_code_store_to(tx_code *g, const tx_node *load, unsigned lane, tx_val v); /* into the element that `load` reads */
void tx_code_alloc(tx_code *g, const tx_node *n, const tx_node *const *rest, uint32_t nrest);
void tx_code_decl(tx_code *g, const tx_node *n);
void tx_code_move_to(tx_code *g, uint32_t reg, bool row, bool masked, tx_val v); /* v into a given register */
tx_val
tx_code_pointer(tx_code *g, const tx_node *n, unsigned lane); /* ADDRESS_OF, BUFFER_DATA, PTR_OFFSET, pointer VAR */
/* t scalar; scope of the pointee: what a local pointer leads to differs from lane to lane even if the pointer does not */
tx_val tx_code_deref(tx_code *g, tx_val ptr, tx_dtype t, unsigned scope, uint32_t site);
void tx_code_store_ptr(tx_code *g, tx_val ptr, tx_val v, uint32_t site);
tx_val tx_code_ptr_add(tx_code *g, tx_val ptr, tx_val index, int64_t scale);
/* code_call.c: what needs other threads or the outside */
tx_val tx_code_call(tx_code *g, const tx_node *n, unsigned lane);
/* code_ptx.c */
void tx_code_ptx(tx_code *g, const tx_node *n);
/* The register and the initialisation mask of an element of a local array; false: it has none of its own. */
bool tx_code_element(tx_code *g, const tx_node *load, tx_vreg *reg, uint32_t *init);
void tx_code_thread_fence(tx_code *g, const tx_node *n);
void tx_code_cluster_sync(tx_code *g, const tx_node *n);
void tx_code_mbar_wait(tx_code *g, const tx_node *n);
bool tx_code_ptx_watches(const tx_node *n, uint32_t arg); /* a register that a matrix unit works on by itself */
int64_t tx_code_ptx_granule(const tx_node *n);            /* bytes of its smallest access to memory */
/* code_stmt.c */
void tx_code_inline(tx_code *g, const tx_func *f, tx_inlined *frame);
void tx_code_enter(tx_code *g); /* one more level of the control stack, its lanes differ */
void tx_code_leave(tx_code *g);
void tx_code_stmt(tx_code *g, const tx_node *n);
void tx_code_block(tx_code *g, const tx_node *n);
/* A conditional: a jump where the condition is uniform, else lanes are set aside. `at` goes from one to the next. */
uint32_t tx_code_if_at(tx_code *g, tx_val cond);
void tx_code_else_at(tx_code *g, uint32_t *at);
void tx_code_endif_at(tx_code *g, uint32_t at, bool had_else);

/* check_overflow.c: sums and products of int32 that lead to an address */
void tx_overflow_note(tx_code *g, const tx_node *body); /* before the first generation */
enum { LEADS_NOWHERE, LEADS, LEADS_BY_LOW_BITS /* which are right after a wrap, too */ };
unsigned tx_overflow_leads(const tx_code *g, const void *var);
unsigned tx_overflow_passes(const tx_node *n, unsigned how);
void tx_overflow_check(tx_code *g, const tx_node *n, unsigned lane, const tx_val *a, const tx_val *b);
void tx_overflow_again(tx_code *g, const tx_node *n, unsigned lane); /* its value is known already */

/* wide.c: the body with pairs of uint64 in place of integers of 128 bits */
const tx_node *tx_emu_without_wide(tx_ctx *c, const tx_node *body);

#endif
