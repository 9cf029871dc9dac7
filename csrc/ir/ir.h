/* The public face of ir/: dtypes, nodes, variables, buffers, functions, modules; construction with folding, the builder,
 * walking, rewriting, printing, comparing, verifying. Owner: ir. Must not know passes, back ends or Python.
 *
 * Rules that hold everywhere: nodes are immutable once made and live in their context's arena. A maker that is handed
 * NULL gives NULL (the fault is recorded already), so a caller checks once, at the end. Makers take the current span
 * (c->span) unless told otherwise. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_IR_H
#define TX_IR_H

#include "base/base.h"

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

enum tx_kind {
#define DTYPE(id, text, cls, bits, bytes, cuda, alias, dl) TX_KIND_##id,
#include "ir/dtypes.def"
#undef DTYPE
    TX_KIND__COUNT
};
enum tx_kind_class { TX_CLS_V, TX_CLS_B, TX_CLS_I, TX_CLS_U, TX_CLS_F, TX_CLS_G, TX_CLS_M, TX_CLS_P, TX_CLS_O };

#define TX_DL(code, bits) ((code) << 8 | (bits))
#define TX_DL_NONE (-1)

/* Scalar kind in the low 16 bits, lanes in the high 16. */
typedef uint32_t tx_dtype;
#define TX_DTYPE(kind, lanes) ((tx_dtype)(kind) | (tx_dtype)(lanes) << 16)
#define TX_VOID TX_DTYPE(TX_KIND_VOID, 1)
#define TX_BOOL TX_DTYPE(TX_KIND_BOOL, 1)
#define TX_I32 TX_DTYPE(TX_KIND_I32, 1)
#define TX_I64 TX_DTYPE(TX_KIND_I64, 1)
#define TX_U32 TX_DTYPE(TX_KIND_U32, 1)
#define TX_U64 TX_DTYPE(TX_KIND_U64, 1)
#define TX_F16 TX_DTYPE(TX_KIND_F16, 1)
#define TX_BF16 TX_DTYPE(TX_KIND_BF16, 1)
#define TX_F32 TX_DTYPE(TX_KIND_F32, 1)
#define TX_F64 TX_DTYPE(TX_KIND_F64, 1)
#define TX_HANDLE TX_DTYPE(TX_KIND_HANDLE, 1)

typedef struct tx_kind_info {
    const char *text, *cuda, *alias;
    uint8_t cls;
    uint16_t bits, bytes;
    int32_t dlpack; /* code << 8 | bits, or TX_DL_NONE */
} tx_kind_info;
extern const tx_kind_info tx_kinds[TX_KIND__COUNT];

// clang-format off
static inline unsigned tx_kind(tx_dtype t) { return t & 0xffff; }
static inline unsigned tx_lanes(tx_dtype t) { return t >> 16; }
static inline tx_dtype tx_with_lanes(tx_dtype t, unsigned lanes) { return TX_DTYPE(tx_kind(t), lanes); }
static inline tx_dtype tx_scalar_of(tx_dtype t) { return TX_DTYPE(tx_kind(t), 1); }
static inline unsigned tx_class(tx_dtype t) { return tx_kinds[tx_kind(t)].cls; }
static inline unsigned tx_bits(tx_dtype t) { return tx_kinds[tx_kind(t)].bits; } /* of one lane */
static inline bool tx_is_bool(tx_dtype t) { return tx_class(t) == TX_CLS_B; }
static inline bool tx_is_int(tx_dtype t) { return tx_class(t) == TX_CLS_I || tx_class(t) == TX_CLS_U; } /* not bool */
static inline bool tx_is_signed(tx_dtype t) { return tx_class(t) == TX_CLS_I; }
static inline bool tx_is_float(tx_dtype t) { return tx_class(t) >= TX_CLS_F && tx_class(t) <= TX_CLS_M; }
static inline bool tx_is_handle(tx_dtype t) { return tx_class(t) == TX_CLS_P; }
// clang-format on
/* Bytes that n elements take in memory (lanes included; fp4 packed two to a byte, rounded up). */
int64_t tx_dtype_bytes(tx_dtype t);
bool tx_dtype_parse(const char *text, size_t len, tx_dtype *out); /* "float32x4", aliases; false: unknown */
void tx_dtype_print(tx_dtype t, tx_sb *out);
const char *tx_dtype_name(tx_ctx *c, tx_dtype t); /* interned text */
tx_dtype tx_promote(tx_dtype a, tx_dtype b); /* language.md 6.1, scalars and equal lanes; TX_VOID if there is none */

/* Exact conversions of one element between its bit pattern and double (construct, emulator and tests share them).
 * encode rounds to nearest even; minifloats saturate, float16/bfloat16 overflow to infinity (language.md 8). */
double tx_decode(tx_dtype t, uint64_t bits);
uint64_t tx_encode(tx_dtype t, double value);
/* Value of an integer wrapped into dtype t (two's complement), sign- or zero-extended to 64 bits. */
int64_t tx_wrap(tx_dtype t, int64_t v);
bool tx_int_limits(tx_dtype t, int64_t *lo, uint64_t *hi);

/* Memory spaces. */
typedef enum tx_scope { TX_GLOBAL, TX_SHARED, TX_SHARED_DYN, TX_LOCAL, TX_TMEM, TX_PARAM, TX_SCOPE__COUNT } tx_scope;
const char *tx_scope_name(tx_scope s); /* "global", "shared", "shared.dyn", "local", "tmem", "param" */
bool tx_scope_parse(const char *text, tx_scope *out);

/* ---- operations ------------------------------------------------------------------------------------------------ */

// clang-format off
enum tx_launch_arg { /* children of DEVICE and LAUNCH; any but the body may be NULL */
    TX_L_BODY,
    TX_L_GRID_X, TX_L_GRID_Y, TX_L_GRID_Z,
    TX_L_BLOCK_X, TX_L_BLOCK_Y, TX_L_BLOCK_Z,
    TX_L_CLUSTER_X, TX_L_CLUSTER_Y, TX_L_CLUSTER_Z,
    TX_L_PREFERRED_X, TX_L_PREFERRED_Y, TX_L_PREFERRED_Z,
    TX_L_DYN_SMEM, TX_L_STREAM, TX_L_PRIORITY,
    TX_L__COUNT
};
// clang-format on

enum tx_op {
#define OP(name, spelling, operands, rule, props) TX_OP_##name,
#include "ir/ops.def"
#undef OP
    TX_OP__COUNT
};
// clang-format off
enum tx_rule {
    TX_RULE_NONE, TX_RULE_ARITH, TX_RULE_COMPARE, TX_RULE_LOGIC, TX_RULE_SHIFT, TX_RULE_SAME, TX_RULE_FLOAT,
    TX_RULE_FLOAT2, TX_RULE_BOOL1, TX_RULE_I32, TX_RULE_U32, TX_RULE_PTR, TX_RULE_VOID
};
// clang-format on
// clang-format off
enum tx_prop {
    TX_PROP_INFIX = 1, TX_PROP_COMMUTES = 2, TX_PROP_FOLDS = 4, TX_PROP_PURE = 8, TX_PROP_READS = 16,
    TX_PROP_EFFECT = 32, TX_PROP_LAZY = 64, TX_PROP_STMT = 128, TX_PROP_COORD = 256, TX_PROP_CONV = 512
};
// clang-format on
typedef struct tx_op_info {
    const char *name, *spelling;
    int8_t operands;
    uint8_t rule;
    uint16_t props;
} tx_op_info;
extern const tx_op_info tx_ops[TX_OP__COUNT];
static inline bool
tx_has(unsigned op, unsigned prop)
{
    return (tx_ops[op].props & prop) != 0;
}
int tx_op_find(const char *spelling_or_name); /* "T.exp" or "EXP"; -1: none */

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

typedef struct tx_node tx_node;
typedef struct tx_var tx_var;
typedef struct tx_buffer tx_buffer;
typedef struct tx_func tx_func;
typedef struct tx_module tx_module;

typedef enum tx_var_kind {
    TX_VAR_PARAM,  /* scalar or handle parameter */
    TX_VAR_SYMBOL, /* size known at the call */
    TX_VAR_DATA,   /* data pointer of a buffer */
    TX_VAR_LOOP,
    TX_VAR_LET,
    TX_VAR_SCOPE_ID,
    TX_VAR_FREE
} tx_var_kind;
struct tx_var {
    const tx_str *name;
    uint32_t id;          /* order of making within the context */
    uint8_t kind;         /* tx_var_kind */
    uint8_t scope;        /* of the pointee, for handles */
    tx_dtype dtype, elem; /* elem: pointee of a handle, TX_VOID unknown */
    const tx_node *node;  /* the one VAR node */
    tx_buffer *buffer;    /* TX_VAR_DATA: the buffer that owns the pointer, else NULL */
    tx_span span;         /* where it was defined */
};

typedef enum tx_loop_kind { TX_LOOP_SERIAL, TX_LOOP_UNROLL, TX_LOOP_VECTOR, TX_LOOP_PARALLEL } tx_loop_kind;
typedef struct tx_attr { /* an annotation, kept and printed */
    const tx_str *key;
    const tx_node *value; /* INT, FLOAT, STR or another expression */
} tx_attr;
typedef struct tx_loop {
    tx_var *var;
    uint8_t kind;   /* tx_loop_kind */
    int32_t unroll; /* pragma: 0 none, -1 full (#pragma unroll), n >= 1 (1: #pragma unroll 1) */
    uint32_t nattrs;
    const tx_attr *attrs;
} tx_loop;

// clang-format off
typedef enum tx_binding { /* parent -> child of a scope id; names in scope_id rows */
    TX_B_KERNEL_CLUSTER, TX_B_KERNEL_CTA, TX_B_CLUSTER_CTA, TX_B_CTA_WARPGROUP, TX_B_CTA_WARP, TX_B_WARPGROUP_WARP,
    TX_B_WARP_THREAD, TX_B_CTA_THREAD, TX_B_WARPGROUP_THREAD, TX_B_CLUSTER_PAIR, TX_B__COUNT
} tx_binding;
// clang-format on
extern const char *const tx_binding_names[TX_B__COUNT]; /* "cta->warp" */
extern const char *const tx_binding_calls[TX_B__COUNT]; /* "warp_id" */
typedef struct tx_scope_id {
    uint8_t binding; /* tx_binding */
    uint8_t nvars, nextents, npreferred;
    tx_dtype dtype;
    tx_var *var[3];
} tx_scope_id;

/* Enumerated and flag fields of a launch; everything computed at the call is a child of the DEVICE or LAUNCH node. */
typedef struct tx_launch {
    bool explicit_config;                                      /* written as LaunchConfig, or resolved */
    bool with_form;                                            /* written as `with T.device_entry(...)` */
    int8_t cooperative, pdl;                                   /* -1 not said, 0, 1 */
    int8_t cluster_policy, mem_sync_domain, carveout;          /* -1 not said */
    int32_t min_blocks, max_blocks_per_cluster, max_registers; /* 0 not said */
    bool required_block_size;
    uint32_t nattrs;
    const tx_attr *attrs; /* fields that are only carried and printed */
} tx_launch;
extern const tx_launch tx_no_launch; /* nothing said */
typedef struct tx_call {             /* FUNC_CALL, CALL_EXTERN, CALL_PACKED, KEPT, CALL_FUNC */
    const tx_str *name;
    const tx_str *source; /* injected CUDA text or NULL */
    const tx_func *func;  /* CALL_FUNC */
} tx_call;
typedef struct tx_assertion {
    const tx_str *kind; /* "AssertionError", ... */
    uint32_t nparts;
    const tx_str *const *parts;
} tx_assertion;
struct tx_ptx_call; /* next: {row, choices, flags}; see spec 3.2 */
struct tx_tile_call;

enum tx_node_flag {
    TX_NF_WEAK = 1,     /* INT or FLOAT from a plain Python number: takes the other operand's dtype */
    TX_NF_IMPURE = 2,   /* contains a load or an effect: has a value number of its own */
    TX_NF_INBOUNDS = 4, /* LOAD, STORE: proved inside the buffer's shape; the emulator need not check */
    TX_NF_COND = 8      /* BIND/LET made by the compiler */
};

struct tx_node {
    uint16_t op;    /* enum tx_op */
    uint8_t flags;  /* enum tx_node_flag */
    uint8_t scope;  /* tx_scope of the pointee, for handles */
    tx_dtype dtype; /* TX_VOID for statements */
    tx_dtype elem;  /* pointee of a handle, else 0 */
    uint32_t vn;    /* pure expressions of one context are equal iff their value numbers are */
    tx_span span;
    uint32_t nargs;
    uint32_t depth; /* longest way to a leaf; SEQ adds nothing */
    uint32_t size;  /* expressions: operations when written out as a tree, shared ones counted at each use */
    union tx_payload {
        int64_t i;       /* INT (sign- or zero-extended by dtype), COORD axis, SHUFFLE count */
        double f;        /* FLOAT: exactly representable in dtype */
        const tx_str *s; /* STR, ATTR key */
        tx_var *var;     /* VAR, BIND, LET */
        tx_buffer *buf;  /* LOAD, STORE, ALLOC, DECL, MATCH, BUFFER_DATA */
        const tx_loop *loop;
        const tx_scope_id *scope_id;
        const tx_launch *launch;              /* DEVICE */
        const struct tx_launch_of *launch_of; /* LAUNCH */
        const tx_call *call;
        const tx_assertion *assertion;
        const struct tx_ptx_call *ptx;
        const struct tx_tile_call *tile;
        uint64_t bits;
    } u;
    const tx_node *arg[];
};
typedef struct tx_launch_of {
    const tx_func *kernel;
    tx_launch launch;
} tx_launch_of;
typedef union tx_payload tx_payload;

/* Raw maker: no promotion, no folding. args may hold NULL only where ops.def allows it. flags beyond WEAK/INBOUNDS are
 * computed. dtype TX_VOID for statements. */
const tx_node *
tx_make(tx_ctx *c, unsigned op, tx_dtype dtype, tx_payload u, const tx_node *const *args, uint32_t nargs);
const tx_node *tx_make_at(tx_ctx *c, tx_span span, unsigned op, tx_dtype dtype, tx_payload u,
                          const tx_node *const *args, uint32_t nargs);
/* A pointer-valued node that says itself what it points to (CAST, REINTERPRET, PTR_OFFSET, calls). */
const tx_node *tx_make_pointer(tx_ctx *c, unsigned op, tx_dtype elem, tx_scope scope, tx_payload u,
                               const tx_node *const *args, uint32_t nargs);
const tx_node *tx_with_span(tx_ctx *c, const tx_node *n, tx_span span); /* same node at another place */
const tx_node *tx_with_flags(tx_ctx *c, const tx_node *n, unsigned flags);
/* Same node with other children; gives n itself when nothing changed. Keeps payload, dtype, elem, scope, span. */
const tx_node *tx_with_args(tx_ctx *c, const tx_node *n, const tx_node *const *args);

/* ---- construction with type rules and folding (construct.c, fold.c) ------------------------------------------------ */

const tx_node *tx_int(tx_ctx *c, tx_dtype t, int64_t v);  /* wraps v into t; broadcast when t has lanes */
const tx_node *tx_float(tx_ctx *c, tx_dtype t, double v); /* rounds v into t */
const tx_node *tx_bool(tx_ctx *c, bool v);
const tx_node *tx_string(tx_ctx *c, const tx_str *s);
const tx_node *tx_weak_int(tx_ctx *c, int64_t v);  /* int32, or int64 when it does not fit */
const tx_node *tx_weak_float(tx_ctx *c, double v); /* float32 when typed */
/* A literal written for dtype t ("T.uint8(300)"): range-checked, error at the current span. */
const tx_node *tx_literal_int(tx_ctx *c, tx_dtype t, bool negative, uint64_t magnitude);
const tx_node *tx_literal_float(tx_ctx *c, tx_dtype t, double v);

/* A weak number on its own becomes int32, int64 or float32; anything else is given back. Nodes that are kept (operands of
 * tx_make, bound and passed values) must not be weak. */
const tx_node *tx_typed(tx_ctx *c, const tx_node *n);

/* Any op with a rule other than NONE: promotes, checks, folds. Errors are recorded at the current span. */
const tx_node *tx_unary(tx_ctx *c, unsigned op, const tx_node *a);
const tx_node *tx_binary(tx_ctx *c, unsigned op, const tx_node *a, const tx_node *b);
const tx_node *tx_op_call(tx_ctx *c, unsigned op, const tx_node *const *args, uint32_t nargs);
const tx_node *tx_cast(tx_ctx *c, tx_dtype t, const tx_node *a); /* identity when the dtype is right; folds */
const tx_node *tx_reinterpret(tx_ctx *c, tx_dtype t, const tx_node *a);
const tx_node *
tx_select(tx_ctx *c, unsigned op, const tx_node *cond, const tx_node *a, const tx_node *b); /* SELECT, IF_THEN_ELSE */
const tx_node *tx_condition(tx_ctx *c, const tx_node *a); /* int, float -> != 0; pointer: error */
const tx_node *tx_ramp(tx_ctx *c, const tx_node *base, const tx_node *stride, unsigned lanes);
const tx_node *tx_broadcast(tx_ctx *c, const tx_node *value, unsigned lanes);
const tx_node *tx_shuffle(tx_ctx *c, const tx_node *const *vecs, uint32_t nvecs, const int *idx, uint32_t nidx);
const tx_node *tx_let(tx_ctx *c, tx_var *v, const tx_node *value, const tx_node *body);
const tx_node *
tx_load(tx_ctx *c, tx_buffer *b, const tx_node *const *idx, uint32_t nidx); /* checks rank, dtype, range */
/* Checks as tx_load; casts the value to the element type, spreads a scalar over a vector, warns when a float goes into an
 * integer (language.md 6.4). */
const tx_node *tx_store(tx_ctx *c, tx_buffer *b, const tx_node *const *idx, uint32_t nidx, const tx_node *value);
const tx_node *tx_address_of(tx_ctx *c, const tx_node *load);
const tx_node *tx_buffer_data(tx_ctx *c, tx_buffer *b);
const tx_node *tx_buffer_start(tx_ctx *c, tx_buffer *b); /* address of element 0: data, or behind it by the offset */
const tx_node *tx_ptr_offset(tx_ctx *c, const tx_node *ptr, const tx_node *nbytes, tx_dtype elem);
const tx_node *tx_coord(tx_ctx *c, unsigned op, int axis);
const tx_node *tx_not(tx_ctx *c, const tx_node *a);

static inline bool
tx_const_i64(const tx_node *n, int64_t *v)
{
    return n && n->op == TX_OP_INT ? (*v = n->u.i, true) : false;
}
static inline bool
tx_is_const(const tx_node *n, int64_t v)
{
    return n && n->op == TX_OP_INT && n->u.i == v;
}
static inline bool
tx_is_stmt(const tx_node *n)
{
    return tx_has(n->op, TX_PROP_STMT);
}
bool tx_same_expr(const tx_node *a, const tx_node *b); /* pure expressions: same value number; else the same node */

/* ---- variables, buffers ---------------------------------------------------------------------------------------- */

tx_var *tx_new_var(tx_ctx *c, tx_var_kind kind, const tx_str *name, tx_dtype dtype);
tx_var *tx_new_ptr_var(tx_ctx *c, tx_var_kind kind, const tx_str *name, tx_dtype elem, tx_scope scope);
static inline bool
tx_is_tensormap(const tx_var *v) /* the variable names a tensor map: as a value it is the map's address */
{
    return tx_is_handle(v->dtype) && tx_kind(v->elem) == TX_KIND_TENSORMAP;
}

enum tx_buffer_flag {
    TX_BUF_CELL = 1,      /* mutable scalar used by name; shape (1,) */
    TX_BUF_PARAM = 2,     /* bound to a parameter (annotation or match_buffer) */
    TX_BUF_VIEW = 4,      /* shares the data of another buffer, or of a pointer (DECL) */
    TX_BUF_NO_LAYOUT = 8, /* written layout=None */
    TX_BUF_FLAT = 16,     /* after FlattenBuffer: LOAD/STORE have one element index first (offset included), then the
                             indices into `origin`, which only the emulator's bounds check reads */
    TX_BUF_VOLATILE = 32,
    TX_BUF_ALIGNED = 64, /* the user gave `align` */
    TX_BUF_G2 = 128,     /* written T.Tensor / alloc_tensor */
    TX_BUF_PASSED = 256  /* parameter of a device function: nobody checks more alignment than `align` says */
};
struct tx_buffer {
    const tx_str *name;
    uint32_t id;
    tx_var *data;
    tx_dtype dtype;
    uint8_t scope, rank;
    uint16_t flags;
    const tx_node **shape;          /* rank entries */
    const tx_node **strides;        /* rank entries, or NULL: dense row-major */
    const tx_node *elem_offset;     /* or NULL: 0 */
    const tx_node *byte_offset;     /* or NULL */
    const struct tx_layout *layout; /* or NULL: from strides */
    int64_t align;                  /* bytes; 0: not said */
    int32_t offset_factor;
    const tx_node *allocated_addr; /* tmem column, or NULL */
    uint32_t nattrs;
    const tx_attr *attrs;
    tx_buffer *origin; /* TX_BUF_FLAT: the buffer as declared; views: the buffer viewed, or NULL */
    tx_span span;
};
/* Makes the record only; shape is copied. data NULL: a fresh TX_VAR_DATA pointer variable of the buffer's name. */
tx_buffer *tx_new_buffer(tx_ctx *c, const tx_str *name, tx_dtype dtype, tx_scope scope, const tx_node *const *shape,
                         uint32_t rank, tx_var *data);
tx_buffer *tx_copy_buffer(tx_ctx *c, const tx_buffer *b);            /* fresh record and id, same data variable */
const tx_node *tx_buffer_numel(tx_ctx *c, const tx_buffer *b);       /* int64 expression (folded when constant) */
const tx_node *tx_buffer_elem_offset(tx_ctx *c, const tx_buffer *b); /* elements, whichever was given; NULL: none */

/* ---- functions and modules ------------------------------------------------------------------------------------- */

enum tx_param_flag {
    TX_PARAM_OPTIONAL_ABSENT = 1, /* slot kept in the call, always None */
    TX_PARAM_SHAPE_ONLY = 2,      /* kernels: size needed by the emulator's bounds checks only; not in the CUDA text */
    TX_PARAM_TENSORMAP = 4,
    TX_PARAM_FROM_HANDLE = 8 /* buffer came from T.handle + match_buffer */
};
typedef struct tx_param {
    tx_var *var;        /* scalar or pointer; for a buffer its data variable (named <buffer>_ptr in CUDA text) */
    tx_buffer *buffer;  /* or NULL */
    const tx_str *name; /* the parameter's own name (the buffer's may differ) */
    uint32_t flags;
    tx_span span;
} tx_param;

enum tx_dialect { TX_G1, TX_G2 };
enum tx_func_flag {
    TX_FUNC_PRIVATE = 1,
    TX_FUNC_PERSISTENT = 2,
    TX_FUNC_NO_CHECK = 4,
    TX_FUNC_KERNEL = 8,  /* device function made by SplitHostDevice */
    TX_FUNC_DEVICE = 16, /* private function called from device code */
    TX_FUNC_HOST = 32,   /* host half, after the split */
    TX_FUNC_CALLS = 64   /* its body may hold a CALL_FUNC */
};
struct tx_func {
    tx_ctx *ctx;
    const tx_str *name;   /* the Python name */
    const tx_str *symbol; /* global_symbol, or NULL when private */
    uint8_t dialect;
    uint32_t flags;
    uint32_t nparams;
    tx_param *params;
    uint32_t nsymbols; /* free sizes, in order of making */
    tx_var **symbols;
    tx_dtype ret; /* TX_VOID: none */
    uint32_t nattrs;
    const tx_attr *attrs;    /* func_attr, as written */
    const tx_node *body;     /* a statement (an empty SEQ when there is none) */
    tx_launch launch;        /* kernels: bounds and attributes for the text */
    const tx_node *block[3]; /* kernels: block extents, constant or over params; NULL when unknown */
    const tx_node *dyn_smem; /* kernels: bytes, or NULL */
    tx_span span;
};
tx_func *tx_new_func(tx_ctx *c, const tx_str *name, enum tx_dialect dialect);

struct tx_module {
    tx_ctx *ctx;
    uint32_t nfuncs;
    tx_func **funcs;      /* by order of insertion */
    const tx_str **names; /* key in the module ("main") */
    uint32_t nattrs;
    const tx_attr *attrs;
};
tx_module *tx_new_module(tx_ctx *c, uint32_t nfuncs);
/* Makes every CALL_FUNC of the module lead to the member of its name. A callee that is no member becomes one, when the call
 * knows it. NULL: a callee is unknown, or device functions call each other in a circle (recorded). The module's context
 * must be the caller's own. */
tx_module *tx_link_module(tx_ctx *c, tx_module *m);
/* Deep copy into another context (a fresh one per compilation); spans, files and names come along. */
tx_func *tx_import_func(tx_ctx *to, const tx_func *f);
tx_module *tx_import_module(tx_ctx *to, const tx_module *m);

/* ---- builder (build.c): frames of statements under construction; the parser and tirx.builder are its clients -------- */

typedef struct tx_builder tx_builder;
tx_builder *tx_builder_new(tx_ctx *c, const tx_str *name, enum tx_dialect dialect);
tx_func *tx_builder_func(tx_builder *b);          /* the function being made: set params, attrs, flags here */
bool tx_emit(tx_builder *b, const tx_node *stmt); /* false: NULL, or no open block */
/* As tx_emit, into an outer open block: 0 is the function's, tx_builder_depth - 1 the innermost. It comes before the blocks
 * that are still open in that one. */
bool tx_emit_at(tx_builder *b, int level, const tx_node *stmt);
/* Opens a block. kind: an op of FOR, WHILE, IF (then), DEVICE, ATTR; `head` has the body/else children NULL. */
bool tx_open(tx_builder *b, const tx_node *head);
bool tx_open_else(tx_builder *b);              /* of the IF just closed in this block */
const tx_node *tx_close(tx_builder *b);        /* closes the innermost block and emits its statement */
int tx_builder_depth(const tx_builder *b);     /* open blocks, the function's own included */
unsigned tx_builder_zone(const tx_builder *b); /* 0 host, 1 device */
bool tx_builder_in_loop(const tx_builder *b);
uint32_t tx_builder_count(const tx_builder *b); /* statements in the innermost block so far */
/* v is bound to a call that would be an expression if it was sure to be used: at the end, a binding that nothing reads
 * becomes the call alone. */
bool tx_builder_droppable(tx_builder *b, tx_var *v);
const tx_node *tx_take_block(tx_builder *b); /* statements of the innermost block so far, removed from it */
/* Flat DEVICE/ATTR: tx_open without tx_close; tx_builder_finish closes what is open. Gives the finished function. */
tx_func *tx_builder_finish(tx_builder *b);
const tx_node *tx_seq(tx_ctx *c, const tx_node *const *stmts, uint32_t n); /* flattens; one statement is itself */

/* ---- walking and rewriting (walk.c) ------------------------------------------------------------------------------ */

/* Pre-order visit of every child (expressions inside buffers' shapes, strides and offsets are not visited).
 * enter gives false to skip the children; leave may be NULL. */
typedef struct tx_visitor {
    bool (*enter)(struct tx_visitor *v, const tx_node *n);
    void (*leave)(struct tx_visitor *v, const tx_node *n);
} tx_visitor;
void tx_walk(tx_visitor *v, const tx_node *n);
void tx_walk_buffer(tx_visitor *v, const tx_buffer *b); /* the expressions of its shape, strides and offsets */

/* Map from op to rewrite function; ops without one have their children rewritten. Variables and buffers are replaced
 * through `vars` and `bufs` (tx_map of old -> new pointers) wherever they are used or defined; a buffer whose shape,
 * strides, offset or data changed is copied once. Binding statements keep their variable unless it is mapped.
 * The rewriter derives the span from the node that it replaces. */
typedef struct tx_rewriter tx_rewriter;
typedef const tx_node *(*tx_rewrite_fn)(tx_rewriter *r, const tx_node *n);
struct tx_rewriter {
    tx_ctx *c;
    const tx_rewrite_fn *fn; /* TX_OP__COUNT entries, or NULL entries */
    void *self;
    tx_map vars, bufs; /* var -> const tx_node* (value), buffer -> tx_buffer* */
    bool refold;       /* rebuild changed expressions through the constructors (promotion-free folding) */
    int depth;
};
const tx_node *tx_rewrite(tx_rewriter *r, const tx_node *n);          /* dispatch */
const tx_node *tx_rewrite_children(tx_rewriter *r, const tx_node *n); /* the default */
tx_buffer *tx_rewrite_buffer(tx_rewriter *r, tx_buffer *b);
void tx_rewriter_free(tx_rewriter *r);
/* Replace variables by expressions everywhere in n. */
const tx_node *
tx_substitute(tx_ctx *c, const tx_node *n, tx_var *const *vars, const tx_node *const *values, uint32_t n_vars);
/* Rebuild one folding node (same op, same dtype) from new operands through the folder, without promotion. */
const tx_node *tx_refold(tx_ctx *c, const tx_node *n, const tx_node *const *args);

/* ---- printing, comparing, verifying ------------------------------------------------------------------------------ */

typedef struct tx_print_options {
    int dialect;      /* -1: the function's */
    const char *name; /* or NULL: the function's */
    int indent;       /* 0: 4 */
    bool line_numbers;
    bool syntax_sugar;
    bool header; /* the import comment */
} tx_print_options;
bool tx_print_func(const tx_func *f, const tx_print_options *o, tx_sb *out);
bool tx_print_module(const tx_module *m, const tx_print_options *o, tx_sb *out);
void
tx_print_node(const tx_node *n, tx_sb *out); /* an expression or statement on its own, for messages and debugging */
void tx_dump(const tx_node *n);              /* for the debugger: prints to stderr */

bool
tx_equal_funcs(const tx_func *a, const tx_func *b); /* alpha-renaming of bound variables; spans and names ignored */
bool tx_equal_modules(const tx_module *a, const tx_module *b);
uint64_t tx_hash_func(const tx_func *f); /* equal functions hash alike */
bool tx_equal_nodes(const tx_node *a, const tx_node *b);
/* The same, where free variables may be those of two functions: by identity, or by the order of their first use. */
bool tx_same_structure(const tx_node *a, const tx_node *b, bool free_by_identity);
uint64_t tx_hash_node(const tx_node *n, bool free_by_identity); /* equal for nodes of the same structure */

/* Well-formedness (lowering.md 3.1); records diagnostics and gives false when there are any. */
bool tx_verify_func(tx_ctx *c, const tx_func *f);
bool tx_verify_module(tx_ctx *c, const tx_module *m);

#endif
