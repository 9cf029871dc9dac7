/* Private to cuda/: the state of one emission and what its files offer each other. Text is built line by line: a statement
 * builds its line in a builder of its own while the expressions in it may send whole lines ahead of it (a condval, a vector
 * load), so those come out first and in order. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_CUDA_EMIT_H
#define TX_CUDA_EMIT_H

#include "cuda/cuda.h"

/* How tightly a C++ expression binds; a smaller one inside a larger one needs parentheses. */
typedef enum em_prec {
    EM_ANY,
    EM_ARG, /* an argument or the right side of an assignment */
    EM_COND,
    EM_LOR,
    EM_LAND,
    EM_BOR,
    EM_BXOR,
    EM_BAND,
    EM_EQ,
    EM_REL,
    EM_SHIFT,
    EM_ADD,
    EM_MUL,
    EM_UNARY,
    EM_POST
} em_prec;

/* Finished lines with the span that each came from. */
typedef struct em_lines {
    tx_sb text;
    TX_VEC(tx_span) span;
} em_lines;

/* What a variable is in the text. */
typedef struct em_name {
    const char *text;
    tx_dtype elem;        /* pointers and cells: dtype of the storage behind it */
    const char **element; /* an array that is spread out: its elements' names */
    bool cell;            /* a plain scalar, not a pointer */
    bool by_value;        /* a tensor map as a kernel's parameter: the variable's value is its address */
    bool bytes;           /* dynamic shared memory: an array of uchar */
    bool data;            /* its value depends on what was read or passed, so it may be any value of its dtype */
} em_name;

/* A node whose value is in a variable. */
typedef struct em_held {
    const tx_node *node;
    const char *name;
} em_held;

/* Ids of the prelude's pieces, in the order in which they are printed. */
typedef enum em_helper {
#define HELPER(id, needs1, needs2, text) EM_H_##id,
#include "cuda/prelude.cu.h"
#undef HELPER
    EM_H__COUNT,
    EM_H_NONE = EM_H__COUNT
} em_helper;

typedef struct em {
    tx_ctx *c;
    const tx_target *t;
    const tx_module *m;
    const tx_func *fn;            /* the kernel or device function being printed */
    em_lines *out;                /* where finished lines go */
    em_lines body;                /* all functions */
    em_lines made;                /* helpers written for this module (reductions, ...) */
    tx_map made_names;            /* interned name -> 1 */
    tx_map names;                 /* tx_var* -> em_name* */
    tx_map taken;                 /* interned text -> 1: names in use in this function or reserved by the module */
    tx_map spread;                /* tx_var* -> spread_array* of spread.c, of this function */
    tx_map data_cells;            /* tx_var* -> 1: cells of this function that do not just count */
    TX_VEC(const tx_str *) scope; /* names of the open blocks, in order */
    TX_VEC(em_held) held;         /* nodes whose value is in a temporary, of the statement being printed */
    tx_facts *facts;
    tx_span span;    /* of the statement being printed */
    uint32_t errors; /* of the context when the emission began */
    int indent;
    int depth;
    int lane;     /* the lane of vector operands that is being printed, or -1 */
    bool headers; /* toolkit headers are included */
    bool used[EM_H__COUNT + 1];
} em;

/* A diagnostic was recorded since the emission began: what is written from then on is never seen. */
static inline bool
em_failed(const em *e)
{
    return e->c->nerrors != e->errors;
}

/* emit.c */
void em_line(em *e, const char *text); /* one line at the current indent */
void em_linef(em *e, const char *fmt, ...) TX_PRINTF(2, 3);
void em_lines_append(em *e, em_lines *to, const em_lines *from);
void em_lines_free(em_lines *l);
void em_done(em *e, tx_sb *s);   /* frees a builder of a part of the text; what it could not hold is recorded */
void em_use(em *e, em_helper h); /* the prelude will hold it */
/* A helper made for this module: printed once before the functions. text ends with a newline. */
void em_make_helper(em *e, const char *name, const char *text);
bool em_needs_arch(em *e, int arch, const char *what); /* false: recorded that the target is too old */
void *em_unsupported(em *e, const tx_node *n, const char *what);

/* names.c */
bool em_reserved(const char *text, size_t n);
const char *em_fresh(em *e, const char *hint); /* unique in the function; taken until the block ends */
em_name *em_declare(em *e, const tx_var *v, const char *suffix);
em_name *em_name_of(em *e, const tx_var *v); /* NULL: recorded as an internal error */
uint32_t em_scope_push(em *e);
void em_scope_pop(em *e, uint32_t mark);
void em_reserve(em *e, const char *text, size_t n);
const char *em_function_name(em *e, const tx_func *f); /* emit.c */

/* types.c */
const char *em_type(em *e, tx_dtype t);               /* float4 and the like, else the type of one lane */
const char *em_elem_type(em *e, tx_dtype t);          /* of one lane */
void em_pointer_type(em *e, tx_dtype elem, tx_sb *o); /* "float*", "void*" */
void em_int(em *e, tx_sb *o, tx_dtype t, int64_t v, em_prec prec);
void em_float(em *e, tx_sb *o, tx_dtype t, double v, em_prec prec);
const char *em_suffix(tx_dtype t); /* "f32", "i64", "e4m3fn": end of helper names */

/* expr.c */
void em_expr(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void
em_operand(em *e, tx_sb *o, const tx_node *n, em_prec prec); /* of an arithmetic operator: small constants stand bare */
bool em_paren(tx_sb *o, em_prec own, em_prec prec);          /* opens one if needed */
void em_close(tx_sb *o, bool opened);
void em_call(em *e, tx_sb *o, em_helper h, const char *name, const tx_node *const *args, uint32_t n);
void em_hold(em *e, const tx_node *n, const char *name);
const char *em_held_name(em *e, const tx_node *n); /* or NULL */

/* wrap.c: integer arithmetic in two's complement */
bool em_is_data(em *e, const tx_node *n); /* may be any value of its dtype */
void em_add_sub_mul(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void em_neg(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void em_divide(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void em_shift(em *e, tx_sb *o, const tx_node *n, em_prec prec);

/* counter.c */
void em_scan_counters(em *e, const tx_node *body);
bool em_is_counter(em *e, const tx_buffer *b);

/* spread.c */
void em_scan_arrays(em *e, const tx_node *body);
bool em_spread(em *e, const tx_buffer *b); /* true: the array is declared, as single variables */

/* cast.c */
void em_cast(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void em_reinterpret(em *e, tx_sb *o, const tx_node *n, em_prec prec);
/* n converted to dtype `to` (a scalar). */
void em_expr_as(em *e, tx_sb *o, tx_dtype to, const tx_node *n, em_prec prec);
/* Opens the conversion of a float32 expression, written by the caller, to dtype `to`; gives the parentheses to close. */
int em_from_f32_open(em *e, tx_sb *o, tx_dtype to);

/* mem.c */
bool em_element(em *e, tx_sb *o, const tx_buffer *b, const tx_node *index, em_prec prec); /* "A_ptr[i]", assignable */
void em_base(em *e, tx_sb *o, const tx_buffer *b, em_prec prec); /* pointer to element 0, of the buffer's own dtype */
void em_load(em *e, tx_sb *o, const tx_node *n, em_prec prec);
void em_address(em *e, tx_sb *o, const tx_node *load, em_prec prec);
void em_store(em *e, const tx_node *n);
bool em_alloc(em *e, const tx_node *n, const tx_node *next); /* true: next, its first store, is done with it */
void em_decl(em *e, const tx_node *n);

/* vector.c: values of several lanes live in a variable; operations are written lane by lane */
const char *em_vector(em *e, const tx_node *n);  /* name of a variable with all lanes */
void em_vector_prepare(em *e, const tx_node *n); /* holds what em_expr with e->lane set may only name */
void em_lane_of(em *e, tx_sb *o, tx_dtype t, const char *name, unsigned lane);
bool em_vector_native(tx_dtype t);                              /* float4 and the like: lanes are .x .y .z .w */
void em_vector_declare(em *e, tx_dtype t, const char *name);    /* a line; no value */
const char *em_word_type(em *e, unsigned nbytes);               /* the type that moves so many bytes at once */
void em_vector_into(em *e, const tx_node *n, const char *name); /* declares name and fills it */
void em_vector_store(em *e, const tx_node *n);
void em_vector_reinterpret(em *e, tx_sb *o, const tx_node *n, em_prec prec);

/* order.c: operands whose order C++ leaves open */
bool em_order_matters(const tx_node *n);
void em_hold_in_order(em *e, const tx_node *n);
bool em_has_effect(const tx_node *n);   /* writes memory, waits or prints */
void em_ahead(em *e, const tx_node *n); /* before em_expr of a whole value: order, and shared parts */

/* share.c */
void em_share(em *e, const tx_node *n);

/* mixed.c: parameters, as bits, that are only read and must not be __restrict__; overlaps: with the kernel before it */
uint64_t em_mixed_params(const tx_func *f, bool overlaps);

/* intrin.c */
bool em_intrin(em *e, tx_sb *o, const tx_node *n, em_prec prec); /* false: not one of its ops */
int em_intrin_arch(unsigned op);                                 /* least architecture, or 0 */

/* stmt.c */
void em_stmt(em *e, const tx_node *n);
const char *em_temp(em *e, const tx_node *n, const char *hint); /* "T hint = n;" on a line of its own */

#endif
