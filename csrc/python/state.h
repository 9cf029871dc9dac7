/* What the files of python/ share: module state, the structs behind the types, conversion of operands, raising.
 * Owner: python. The only folder that includes Python.h; nothing below it may include this header.
 *
 * Every object made from a context starts with PyObject_HEAD and a strong reference to its Context (tx_py_object),
 * so that the module state is reached through the object and never through a global. Functions that can fail return
 * NULL, -1 or false with a Python exception set; those that call the core turn its diagnostics into one with
 * tx_py_raise(). SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_PYTHON_STATE_H
#define TX_PYTHON_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/base.h"
#include "ir/ir.h"
#include "lower/lower.h"

/* ---- module state ------------------------------------------------------------------------------------------------ */

/* Exception classes, registered by tirx/errors.py under these names. */
enum tx_py_error {
// clang-format off
#define TX_PY_ERRORS(X)                                                                                                \
    X(DiagnosticError) X(DiagnosticValueError) X(DiagnosticTypeError) X(DiagnosticRuntimeError)                        \
    X(DiagnosticKeyError) X(DispatchError) X(CompileError) X(NvrtcError) X(CUDAError) X(InternalError)                 \
    X(EmulationError) X(EmulationWarning)
// clang-format on
#define X(name) TX_PY_##name,
    TX_PY_ERRORS(X)
#undef X
        TX_PY_ERROR__COUNT
};

/* Names that are looked up again and again, interned once. */
// clang-format off
#define TX_PY_NAMES(X)                                                                                                 \
    X(lineno) X(col_offset) X(end_lineno) X(end_col_offset) X(filename) X(offset) X(end_offset) X(text) X(msg)         \
    X(__tirx_expr__) X(__tirx_dtype__) X(__module__) X(__name__) X(__qualname__) X(name) X(default) X(start) X(stop)   \
    X(step) X(write) X(add_note) X(f_back) X(f_lasti)
// clang-format on

typedef struct tx_py_state {
    PyTypeObject *Context, *Expr, *Buffer, *Region, *Builder, *Function, *Module;
    PyObject *error[TX_PY_ERROR__COUNT]; /* RuntimeError until registered */
    PyObject *kind_name[TX_KIND__COUNT]; /* str of every scalar dtype */
    PyObject *op_name[TX_OP__COUNT];     /* str of every row name, made when asked for */
    PyObject *builders;                  /* dict: thread id -> innermost active Builder */
#define X(name) PyObject *s_##name;
    TX_PY_NAMES(X)
#undef X
} tx_py_state;

static inline tx_py_state *
tx_py_state_of(PyObject *module)
{
    return (tx_py_state *)PyModule_GetState(module);
}

/* ---- objects ----------------------------------------------------------------------------------------------------- */

typedef struct tx_py_place { /* where the text being parsed comes from */
    uint32_t file;
    const tx_str *function;
    int32_t col_offset, line_offset;
    tx_span inlined_at, resume; /* resume: current span to go back to after the inlined text */
} tx_py_place;

typedef struct tx_py_context {
    PyObject_HEAD tx_py_state *state;
    tx_ctx *c;
    bool frozen;
    tx_py_place place;
    TX_VEC(tx_py_place) outer; /* places around the inlined one, innermost last */
    tx_map wrappers;           /* tx_buffer or tx_var -> its Python object, borrowed; 0 when it is gone */
    PyObject *describe;        /* while plain Python code is traced: what tells about a code object; else NULL */
    PyObject *held;            /* list of what `codes` points to, or NULL */
    tx_map codes;              /* code object -> what place.c knows of it */
} tx_py_context;

typedef struct tx_py_object {         /* common head of what follows */
    PyObject_HEAD tx_py_context *ctx; /* strong */
} tx_py_object;
typedef struct tx_py_expr {
    PyObject_HEAD tx_py_context *ctx;
    const tx_node *node;
} tx_py_expr;
typedef struct tx_py_buffer {
    PyObject_HEAD tx_py_context *ctx;
    tx_buffer *buf;
    PyObject *layout; /* "default", None or a layout object */
} tx_py_buffer;
typedef struct tx_py_region {
    PyObject_HEAD tx_py_context *ctx;
    tx_py_buffer *buffer;
    const tx_node **start, **extent; /* of every dimension, in the context's arena */
    uint32_t kept;                   /* bit i: dimension i was not indexed by a single integer */
} tx_py_region;
typedef struct tx_py_builder {
    PyObject_HEAD tx_py_context *ctx;
    tx_builder *b;
    struct tx_py_builder *outer; /* the one active before this, strong */
    bool active, finished;
    PyObject *before;  /* called once before the next store: flat forms wait for it; or NULL */
    TX_VEC(bool) flat; /* for every open block: opened by a flat form, closed with the block around it */
    TX_VEC(tx_param) params;
    TX_VEC(tx_var *) symbols;
    TX_VEC(tx_attr) attrs;
} tx_py_builder;
typedef struct tx_py_function {
    PyObject_HEAD tx_py_context *ctx;
    tx_func *f;
} tx_py_function;
typedef struct tx_py_module {
    PyObject_HEAD tx_py_context *ctx;
    tx_module *m;
} tx_py_module;

#define TX_PY_IS(state, x, Type) Py_IS_TYPE((x), (state)->Type)
/* Type tests that need no state: the type's own dealloc is its mark. */
bool tx_py_is_expr(PyObject *x);
bool tx_py_is_buffer(PyObject *x);
bool tx_py_is_region(PyObject *x);
static inline bool
tx_py_is_value(PyObject *x)
{
    return tx_py_is_expr(x) || tx_py_is_buffer(x) || tx_py_is_region(x);
}

tx_py_context *tx_py_new_context(tx_py_state *s);
PyObject *tx_py_new_expr(tx_py_context *ctx, const tx_node *n); /* n NULL: raises what is recorded */
PyObject *tx_py_new_buffer(tx_py_context *ctx, tx_buffer *b);   /* one object a buffer, as long as it is alive */
PyObject *tx_py_new_function(tx_py_context *ctx, tx_func *f);
PyObject *tx_py_new_module(tx_py_context *ctx, tx_module *m);
/* One object per buffer or variable: the living one (new reference), or NULL without an exception. */
PyObject *tx_py_find_wrapper(tx_py_context *ctx, const void *key);
bool tx_py_keep_wrapper(tx_py_context *ctx, const void *key, PyObject *x);

/* ---- raising (context.c) ----------------------------------------------------------------------------------------- */

/* Raises what the context's diagnostics say and forgets them (warnings stay). NULL, so that callers can return it. */
void *tx_py_raise(tx_py_context *ctx);
/* The same for diagnostics of a bare context. */
void *tx_py_raise_diags(tx_py_state *s, tx_ctx *c);
/* Records one diagnostic at the current span and raises: tx_py_fail(ctx, TX_E_..., arguments). */
#define tx_py_fail(ctx, ...) (tx_fail((ctx)->c, (ctx)->c->span, __VA_ARGS__), tx_py_raise(ctx))
/* "str", "numpy.ndarray": the type of an object for messages; interned in the context. */
const char *tx_py_type_name(tx_ctx *c, PyObject *x);

/* ---- places of traced code (place.c) ----------------------------------------------------------------------------- */

/* While plain Python code is traced: the current span becomes the place that the innermost frame outside of the package
 * is at. Otherwise nothing happens. Never raises. */
void tx_py_here(tx_py_context *ctx);
PyObject *tx_py_ctx_here(PyObject *self, PyObject *unused);
PyObject *tx_py_ctx_trace(PyObject *self, PyObject *describe); /* gives the one before */

/* ---- arguments of calls (args.c) --------------------------------------------------------------------------------- */

typedef struct tx_py_sig {
    const char *name;
    uint8_t required, positional; /* the first so many must be given; the rest after `positional` are keywords only */
    const char *names[20];        /* ends with NULL */
} tx_py_sig;
/* Fills out (one entry a name, NULL where not given; borrowed). false: TypeError raised. */
bool tx_py_parse(const tx_py_sig *sig, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
#define TX_PY_GIVEN(x) ((x) && (x) != Py_None)
tx_py_context *tx_py_as_context(tx_py_state *s, PyObject *x); /* borrowed; TypeError for anything else */
bool tx_py_as_long(PyObject *x, long lo, long hi, const char *what, long *out);
bool tx_py_as_bool(PyObject *x, bool fallback, bool *out); /* NULL: fallback */

/* ---- conversion (convert.c) -------------------------------------------------------------------------------------- */

/* The one way from Python operands to nodes. like: dtype of the other operand, or TX_VOID; it decides how integers
 * beyond int64 are taken. Plain numbers are weak. 1: done; 0: not a value (no exception); -1: raised. */
int tx_py_try_node(tx_py_context *ctx, PyObject *x, tx_dtype like, const tx_node **out);
/* The same, where anything else is an error. */
const tx_node *tx_py_as_node(tx_py_context *ctx, PyObject *x, tx_dtype like);
const tx_node *
tx_py_as_stored(tx_py_context *ctx, PyObject *x, tx_dtype t);   /* what a variable or an element of t takes */
const tx_node *tx_py_as_typed(tx_py_context *ctx, PyObject *x); /* weak numbers become int32, int64, float32 */
const tx_node *tx_py_as_index(tx_py_context *ctx, PyObject *x); /* as_typed; ranges are the core's to check */
const tx_node *tx_py_as_arg(tx_py_context *ctx, PyObject *x);   /* as_typed, and strings */
const tx_node *
tx_py_as_attr(tx_py_context *ctx, const char *key, PyObject *x); /* numbers, strings, lists, expressions */
bool tx_py_as_attrs(tx_py_context *ctx, PyObject *dict, const tx_attr **out, uint32_t *n);
PyObject *tx_py_from_attr(tx_py_context *ctx, const tx_node *n);
PyObject *tx_py_attrs(tx_py_context *ctx, const tx_attr *attrs, uint32_t n); /* a new dict of them */
PyObject *tx_py_int_or_expr(tx_py_context *ctx, const tx_node *n);           /* int for a constant, NULL node: 0 */
const tx_node *tx_py_literal(tx_py_context *ctx, tx_dtype t, PyObject *value);
bool tx_py_as_dtype(tx_py_context *ctx, PyObject *x, tx_dtype *out); /* diagnostics at the current span */
bool tx_py_dtype_text(tx_py_state *s, PyObject *x, tx_dtype *out,
                      PyObject **text); /* false: unknown; *text what was asked */
const tx_str *tx_py_intern(tx_py_context *ctx, PyObject *text);
PyObject *tx_py_dtype_str(tx_py_state *s, tx_dtype t);
PyObject *tx_py_str(const tx_str *s); /* None for NULL */
PyObject *tx_py_take_sb(tx_sb *s);    /* str of the text; frees it */
/* A list or tuple of nodes in the context's arena; a single value is a sequence of one. false: raised. */
bool tx_py_as_nodes(tx_py_context *ctx, PyObject *x, const tx_node ***out, uint32_t *n);

/* ---- buffers and builders ---------------------------------------------------------------------------------------- */

const tx_node *tx_py_load_scalar(tx_py_buffer *b); /* element of a one-element buffer, else the error that helps */
const tx_node *
tx_py_load_region(tx_py_region *r);           /* vector load of a region whose last dimension has constant length */
tx_py_builder *tx_py_current(tx_py_state *s); /* borrowed; NULL without an exception: none active */
bool tx_py_store(tx_py_builder *b, tx_buffer *buf, PyObject *indices, PyObject *value);
bool tx_py_builder_open(tx_py_builder *b); /* false: finished, raised */
/* Index of a subscript: the nodes of all dimensions when it names one element or a vector of them. Negative: raised;
 * 0: a region, in start/extent/kept, with the step of its last dimension; 1: elements, in start. */
int tx_py_subscript(tx_py_context *ctx, tx_buffer *buf, PyObject *indices, bool store, const tx_node ***start,
                    const tx_node ***extent, uint32_t *kept, int64_t *last_step);
/* stop - start, a constant where that can be seen; both are evaluated at the same time. NULL: recorded. */
const tx_node *tx_py_distance(tx_ctx *c, const tx_node *start, const tx_node *stop);
/* copy.c: stores a number, or a region or buffer of the same shape, into a region. False: raised. */
bool tx_py_store_region(tx_py_builder *b, tx_buffer *buf, const tx_node *const *start, const tx_node *const *extent,
                        uint32_t kept, int64_t step, PyObject *value);
/* Whether a value is stored into a slice as a vector: no region of several rows, no buffer of several elements, and no number
 * that is spread over many elements. */
bool tx_py_is_vector_value(PyObject *value, const tx_node *index, int64_t step);

/* Start and extent of a slice of dimension i, which is `end` long. */
bool tx_py_slice_bounds(tx_py_context *ctx, tx_buffer *b, unsigned i, PyObject *slice, const tx_node *end,
                        const tx_node **start, const tx_node **extent, int64_t *step, bool *has_step);
/* Index of a vector access to extent/step elements of dimension i. */
const tx_node *tx_py_vector_index(tx_py_context *ctx, const tx_buffer *b, unsigned i, const tx_node *start,
                                  const tx_node *extent, int64_t step);
PyObject *tx_py_new_region(tx_py_buffer *b, const tx_node **start, const tx_node **extent, uint32_t kept);
PyObject *tx_py_tuple_of(tx_py_context *ctx, const tx_node *const *at, uint32_t n); /* ints and Exprs */

/* ---- registration: each file adds its types and functions to the module; -1: raised ------------------------------ */

PyTypeObject *tx_py_add_type(PyObject *module, PyType_Spec *spec);
int tx_py_init_context(PyObject *module);
int tx_py_init_expr(PyObject *module);
int tx_py_init_calls(PyObject *module);
int tx_py_init_node(PyObject *module);
int tx_py_init_buffer(PyObject *module);
int tx_py_init_region(PyObject *module);
int tx_py_init_builder(PyObject *module);
int tx_py_init_function(PyObject *module);
int tx_py_init_compile(PyObject *module);
int tx_py_init_arith(PyObject *module);
int tx_py_init_ptx(PyObject *module);
int tx_py_add_executable(PyObject *module); /* executable.c: Executable, DeviceMemory, driver and NVRTC functions */

/* ---- what the binary operators share (expr.c; buffers and regions use the same functions) ------------------------ */

// clang-format off
#define TX_PY_NUMBER_SLOTS(X)                                                                                          \
    X(add) X(subtract) X(multiply) X(true_divide) X(floor_divide) X(remainder) X(divmod) X(lshift) X(rshift) X(and)    \
    X(or) X(xor)
// clang-format on
#define X(name) PyObject *tx_py_nb_##name(PyObject *a, PyObject *b);
TX_PY_NUMBER_SLOTS(X)
#undef X
PyObject *tx_py_nb_power(PyObject *a, PyObject *b, PyObject *mod);
PyObject *tx_py_nb_negative(PyObject *a);
PyObject *tx_py_nb_positive(PyObject *a);
PyObject *tx_py_nb_invert(PyObject *a);
PyObject *tx_py_nb_absolute(PyObject *a);
PyObject *tx_py_nb_int(PyObject *a);
PyObject *tx_py_nb_float(PyObject *a);
PyObject *tx_py_nb_index(PyObject *a);
int tx_py_nb_bool(PyObject *a);
PyObject *tx_py_compare(PyObject *a, PyObject *b, int op);
Py_hash_t tx_py_identity_hash(PyObject *a);
PyObject *tx_py_round(PyObject *a, PyObject *const *args, Py_ssize_t nargs);

/* The rows of a PyType_Slot table that make a type a number. */
#define TX_PY_NUMBER_TABLE                                                                                         \
    {Py_nb_add, tx_py_nb_add}, {Py_nb_subtract, tx_py_nb_subtract}, {Py_nb_multiply, tx_py_nb_multiply},           \
        {Py_nb_true_divide, tx_py_nb_true_divide}, {Py_nb_floor_divide, tx_py_nb_floor_divide},                    \
        {Py_nb_remainder, tx_py_nb_remainder}, {Py_nb_divmod, tx_py_nb_divmod}, {Py_nb_lshift, tx_py_nb_lshift},   \
        {Py_nb_rshift, tx_py_nb_rshift}, {Py_nb_and, tx_py_nb_and}, {Py_nb_or, tx_py_nb_or},                       \
        {Py_nb_xor, tx_py_nb_xor}, {Py_nb_power, tx_py_nb_power}, {Py_nb_negative, tx_py_nb_negative},             \
        {Py_nb_positive, tx_py_nb_positive}, {Py_nb_invert, tx_py_nb_invert}, {Py_nb_absolute, tx_py_nb_absolute}, \
        {Py_nb_int, tx_py_nb_int}, {Py_nb_float, tx_py_nb_float}, {Py_nb_index, tx_py_nb_index},                   \
        {Py_nb_bool, tx_py_nb_bool}, {Py_tp_richcompare, tx_py_compare},                                           \
    {                                                                                                              \
        Py_tp_hash, tx_py_identity_hash                                                                            \
    }

/* References to our own structs: the limited API's macros take PyObject pointers only. */
#define TX_PY_HOLD(x) (Py_INCREF((PyObject *)(x)), (x))
#define TX_PY_DROP(x) Py_XDECREF((PyObject *)(x))
#define TX_PY_FAST(f) ((PyCFunction)(void (*)(void))(f))

#endif
