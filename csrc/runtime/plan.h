/* Private to runtime/: what a launch plan is made of. plan.c compiles it from the host half of a lowered function,
 * plan_call.c evaluates it. A plan owns all its memory and refers to no context. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_RUNTIME_PLAN_H
#define TX_RUNTIME_PLAN_H

#include <stdatomic.h>

#include "runtime/runtime.h"

enum { PLAN_NO_REG = 0xffff, PLAN_STACK_REGS = 128, PLAN_MAX_REGS = 4096, PLAN_STACK_ARGS = 64, PLAN_STACK_MAPS = 4 };

typedef union plan_value {
    int64_t i;
    double f;
    void *p;
} plan_value;

typedef enum plan_code {
    PLAN_CONST,       /* dst = imm */
    PLAN_MOVE,        /* dst = a */
    PLAN_UNARY,       /* dst = sub(a), typed */
    PLAN_BINARY,      /* dst = sub(a, b), typed by the operands' dtype in `from` */
    PLAN_CAST,        /* dst = a, of dtype `from`, as dtype `type` */
    PLAN_JUMP,        /* to imm */
    PLAN_JUMP_UNLESS, /* a is 0: to imm */
    PLAN_LAUNCH,      /* launches[imm] */
    PLAN_PACKED,      /* packed[imm]; dst = result or PLAN_NO_REG */
    PLAN_ASSERT,      /* a is 0: asserts[imm] is raised */
    PLAN_RETURN,      /* a, or nothing when PLAN_NO_REG */
    PLAN_ENCODE,      /* encodes[imm]: a tensor map */
    PLAN_DEVICE       /* dst = plan_devices[imm] of the device of the call */
} plan_code;

typedef struct plan_instr {
    uint8_t code; /* plan_code */
    uint16_t sub; /* enum tx_op */
    uint16_t dst, a, b;
    tx_dtype type, from;
    plan_value imm;
} plan_instr;

/* An argument of a kernel or of a packed call. */
typedef struct plan_operand {
    enum { PLAN_REG, PLAN_TENSOR, PLAN_STRING, PLAN_MAP } kind;
    uint16_t reg;   /* PLAN_REG */
    uint32_t param; /* PLAN_TENSOR: the parameter whose data it is; PLAN_MAP: the slot of the map */
    tx_dtype type;
    char *text; /* PLAN_STRING */
} plan_operand;

/* A launch attribute with fields that the call computes; rows in plan_extra.c. */
typedef struct plan_extra {
    uint8_t row;
    plan_operand field[5];
} plan_extra;

typedef struct plan_launch {
    uint32_t kernel;
    char *name;
    uint16_t reg[TX_L__COUNT];
    tx_launch attrs;
    uint32_t nargs, nvisible;
    plan_operand *args;
    uint32_t nextras;
    plan_extra extras[TX_MAX_LAUNCH_EXTRAS];
} plan_launch;

typedef struct plan_packed {
    char *name;
    bool occupancy;  /* asked of the driver: TX_ASK_CLUSTERS or TX_ASK_BLOCKS */
    uint32_t kernel; /* of it */
    uint32_t nargs;
    plan_operand *args;
} plan_packed;

/* Encoding of a tensor map into a slot, 128 bytes that a call has for each T.tvm_stack_alloca. */
typedef struct plan_fill {
    uint16_t at, reg; /* the int64 at this offset of a tx_tensormap comes from a register */
} plan_fill;
typedef struct plan_encode {
    uint32_t slot;
    char *name;       /* of the map's variable */
    tx_tensormap map; /* what is known; the rest is TX_TM_UNKNOWN */
    uint32_t param;   /* the tensor, or pointer, that the address comes from */
    uint16_t offset;  /* bytes behind it; PLAN_NO_REG: 0 */
    uint32_t nfills;
    plan_fill *fills;
    _Atomic uint64_t agreed; /* a bit a device: its driver has encoded a map of this step as we do */
} plan_encode;

typedef struct plan_assert {
    char *kind, *text;
} plan_assert;

/* One extent or stride: a constant, or a register that holds the wanted value once the symbols are known. */
typedef struct plan_extent {
    uint16_t reg; /* PLAN_NO_REG: constant */
    bool defines; /* the equation that gave its symbol: nothing left to check */
    int64_t value;
    char *text;     /* how the wanted value reads: "A.shape[0]", "B.shape[0] * 2" */
    bool is_symbol; /* text names another argument's extent: "expected to match" */
} plan_extent;

typedef struct plan_param {
    enum { PLAN_P_TENSOR, PLAN_P_SCALAR, PLAN_P_POINTER, PLAN_P_ABSENT, PLAN_P_MAP } kind;
    char *name;        /* the parameter's */
    char *buffer_name; /* the tensor's, or the parameter's again */
    tx_dtype type;
    uint16_t reg; /* scalars and pointers */
    uint8_t rank;
    bool compact; /* no declared strides: must be dense row-major */
    bool written;
    int64_t align; /* 0: none asked for */
    plan_extent *shape, *strides;
    plan_extent offset;   /* in elements, which `factor` promises to divide; 0: nothing is promised */
    int32_t factor, elem; /* bytes of an element */
} plan_param;

/* extent == c * symbol + d */
typedef struct plan_define {
    uint32_t param;
    uint8_t dim;
    bool stride;
    uint16_t symbol, d; /* registers; d PLAN_NO_REG: 0 */
    int64_t c;
    tx_dtype type;
    char *name;
    uint32_t until; /* the instructions before it that compute d: [from, until) */
    uint32_t from;
} plan_define;

struct tx_plan {
    char *name, *signature;
    uint32_t nparams, ndefines, ninstrs, nlaunches, npacked, nasserts;
    uint32_t body; /* the first instruction after those for extents; [extents, body) computes wanted extents */
    uint32_t extents;
    uint32_t nregs, max_args;
    plan_param *params;
    plan_define *defines;
    plan_instr *instrs;
    plan_launch *launches;
    plan_packed *packed;
    plan_assert *asserts;
    tx_dtype ret;
    uint32_t nmaps, nencodes;
    plan_encode *encodes;
};

/* ---- plan_tensormap.c: the steps that encode tensor maps ------------------------------------------------------------- */

struct plan_compiler; /* plan.c */
/* Whether a packed call encodes a tensor map. */
bool tx_plan_encodes(const char *packed);
/* The step for such a call; what is wrong with it already is a diagnostic. The caller frees name and fills. */
bool tx_plan_encode_step(struct plan_compiler *k, tx_ctx *c, const tx_node *n, plan_encode *out);
/* What the step needs of the compiler. */
uint16_t tx_plan_expr(struct plan_compiler *k, const tx_node *n);                /* PLAN_NO_REG: told */
bool tx_plan_slot_of(struct plan_compiler *k, const tx_var *v, uint32_t *slot);  /* false: not a map of this function */
bool tx_plan_data_of(struct plan_compiler *k, const tx_var *v, uint32_t *param); /* false: no argument's data */

/* What the host half may ask of the device of the call, by T.call_packed(name). */
typedef struct plan_device {
    const char *name;
    int attribute; /* CUdevice_attribute */
    int emulated;  /* what the emulator says */
} plan_device;
const plan_device *tx_plan_device(const char *name); /* NULL: no such name */
/* device < 0: that of the thread's context */
bool tx_plan_device_value(const plan_device *d, int device_type, int device, int *value, tx_call_error *e);
/* For TX_ASK_CLUSTERS and TX_ASK_BLOCKS: which kernel they are about; false: told. */
bool tx_plan_asks(tx_ctx *c, const tx_module *m, const tx_node *n, plan_packed *out);

/* ---- a call ----------------------------------------------------------------------------------------------------------- */

typedef struct plan_slot { /* one map of a call */
    const plan_encode *by; /* NULL: nothing has encoded it yet */
    bool empty;            /* it would be over no element: there is no such map */
} plan_slot;

typedef struct plan_call {
    const tx_plan *p;
    tx_arg *args;
    uint32_t nargs;
    int device_type, device_id;
    void *stream;
    const tx_plan_host *host;
    tx_arg *result;
    tx_call_error *e;
    plan_value *reg;
    tx_emu_arg *out; /* p->max_args entries */
    tx_arg *packed;  /* p->max_args entries, only with packed calls */
    uint32_t turns;  /* of loops, all together */
    uint8_t *maps;   /* p->nmaps tensor maps, aligned */
    plan_slot *slot; /* p->nmaps entries */
} plan_call;

bool tx_plan_fault(plan_call *k, tx_call_class cls, const char *fmt, ...) TX_PRINTF(3, 4); /* records it; gives false */

/* plan_device.c: the answer, given the values of the arguments, TX_ASK_BLOCK_X.. */
bool tx_plan_answer(plan_call *k, const plan_packed *q, int64_t *value);

/* plan_maps.c */
bool tx_plan_encode(plan_call *k, const plan_encode *m);
bool tx_plan_map_ready(plan_call *k, const plan_launch *l, uint32_t i); /* a kernel is to run with argument i, a map */
void tx_plan_map_operand(plan_call *k, const plan_operand *o, tx_emu_arg *to);

/* plan_extra.c: the attributes of a launch node that the driver takes as they stand, compiled and evaluated */
bool tx_plan_extras(tx_ctx *c, struct plan_compiler *k, const tx_node *launch, plan_launch *l);
bool tx_plan_operand(struct plan_compiler *k, const tx_node *n, plan_operand *out); /* plan.c */
bool tx_plan_extra_values(plan_call *k, const plan_launch *l, tx_launch_extra *out);

/* written.c: does the function write behind this pointer of its own, itself or through what it calls (`depth` calls in)? */
bool tx_plan_writes(const tx_func *f, const tx_var *data, int depth);

#endif
