/* The public face of base/: arena, typed vectors, interned strings, string builder, hash map, source positions,
 * diagnostics, and the context that owns them. Owner: base. Must not know what a node, a dtype or a kernel is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_BASE_H
#define TX_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"

#if defined(__GNUC__)
#define TX_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define TX_LIKELY(x) __builtin_expect(!!(x), 1)
#define TX_UNLIKELY(x) __builtin_expect(!!(x), 0)
#else
#define TX_PRINTF(f, a)
#define TX_LIKELY(x) (x)
#define TX_UNLIKELY(x) (x)
#endif

/* Conditions believed always true / never true, kept for safety: assertions in debug builds, plain tests in release. */
#ifdef TX_DEBUG
void tx_assert_failed(const char *expr, const char *file, int line);
#define TX_ASSERT(x) ((x) ? (void)0 : tx_assert_failed(#x, __FILE__, __LINE__))
#define TX_ALWAYS(x) ((x) ? true : (tx_assert_failed(#x, __FILE__, __LINE__), false))
#define TX_NEVER(x) ((x) ? (tx_assert_failed("never: " #x, __FILE__, __LINE__), true) : false)
#else
#define TX_ASSERT(x) ((void)0)
#define TX_ALWAYS(x) (x)
#define TX_NEVER(x) (x)
#endif

typedef struct tx_ctx tx_ctx;

/* ---- allocation ------------------------------------------------------------------------------------------------ */

/* Plain heap, for long-lived objects with one owner (executables, emulated memories). Every allocation of the core goes
 * through these or the arena, so that the fault counter (tx_fail_alloc_at) reaches all of them. NULL when out of memory. */
void *tx_malloc(size_t nbytes);
void *tx_calloc(size_t n, size_t size); /* zeroed, overflow-checked */
void *tx_realloc(void *p, size_t nbytes);
void tx_free(void *p);
/* Test builds and tests: the n-th allocation from now fails (0 = never). Thread-local counter. */
void tx_fail_alloc_at(long n);
long tx_alloc_count(void); /* allocations of this thread since the last tx_fail_alloc_at */

typedef struct tx_arena {
    struct tx_chunk *head;
    char *cur, *end;
    size_t total; /* bytes taken from the heap */
} tx_arena;
typedef struct tx_mark {
    struct tx_chunk *chunk;
    char *cur;
} tx_mark;

void tx_arena_init(tx_arena *a);
void tx_arena_free(tx_arena *a);
void *tx_arena_alloc(tx_arena *a, size_t nbytes, size_t align); /* zeroed; NULL when out of memory */
tx_mark tx_arena_mark(const tx_arena *a);
void tx_arena_release(tx_arena *a, tx_mark m); /* everything handed out since the mark is gone (poisoned under ASan) */

/* Zeroed array of n objects of type T in the context's arena. On failure records TX_E_NO_MEMORY and gives NULL. */
#define tx_new(c, T, n) ((T *)tx_ctx_alloc((c), (size_t)(n), sizeof(T), _Alignof(T)))
void *tx_ctx_alloc(tx_ctx *c, size_t n, size_t size, size_t align);

/* Scratch of a function: take a mark of c->scratch, use tx_scratch, release the mark before returning. Nodes, strings, spans
 * and diagnostics are not affected (they live in c->arena, of which nobody takes a mark). Failure as for tx_new. */
#define tx_scratch(c, T, n) ((T *)tx_scratch_alloc((c), (size_t)(n), sizeof(T), _Alignof(T)))
void *tx_scratch_alloc(tx_ctx *c, size_t n, size_t size, size_t align);

/* Growable array in a context's arena: TX_VEC(T) declares the struct; v = {0} is empty.
 * tx_push evaluates to true, or false when out of memory (diagnostic recorded). */
#define TX_VEC(T)        \
    struct {             \
        T *at;           \
        uint32_t n, cap; \
    }
#define tx_push(c, v, value)                                                                            \
    (((v)->n < (v)->cap || tx_vec_grow((c), (void **)&(v)->at, &(v)->cap, sizeof *(v)->at, (v)->n + 1)) \
         ? ((v)->at[(v)->n++] = (value), true)                                                          \
         : false)
#define tx_reserve(c, v, want) \
    ((want) <= (v)->cap || tx_vec_grow((c), (void **)&(v)->at, &(v)->cap, sizeof *(v)->at, (want)))
bool tx_vec_grow(tx_ctx *c, void **at, uint32_t *cap, size_t size, uint32_t want);

/* Checked arithmetic: false on overflow. */
static inline bool
tx_mul_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool
tx_add_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool
tx_sub_i64(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}

/* ---- hash map -------------------------------------------------------------------------------------------------- */

/* Open addressing, pointer or integer keys (key 0 is not allowed), 64-bit values; grows in the heap (tx_map_free). */
typedef struct tx_map {
    struct tx_map_slot {
        uint64_t key, value;
    } *slot;
    uint32_t n, cap;
} tx_map;
void tx_map_free(tx_map *m);
bool tx_map_put(tx_map *m, uint64_t key, uint64_t value); /* false: out of memory */
bool tx_map_get(const tx_map *m, uint64_t key, uint64_t *value);
static inline void *
tx_map_ptr(const tx_map *m, const void *key)
{
    uint64_t v;
    return tx_map_get(m, (uint64_t)(uintptr_t)key, &v) ? (void *)(uintptr_t)v : NULL;
}
static inline bool
tx_map_put_ptr(tx_map *m, const void *key, const void *value)
{
    return tx_map_put(m, (uint64_t)(uintptr_t)key, (uint64_t)(uintptr_t)value);
}

uint64_t tx_hash_bytes(const void *p, size_t n, uint64_t seed);
static inline uint64_t
tx_hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

/* ---- strings --------------------------------------------------------------------------------------------------- */

/* An interned string: equal text is the same pointer within one context. NUL-terminated, may hold NULs. */
typedef struct tx_str {
    uint32_t len, hash;
    char text[];
} tx_str;
const tx_str *tx_intern(tx_ctx *c, const char *text, size_t len); /* NULL when out of memory or too long */
const tx_str *tx_intern_z(tx_ctx *c, const char *text);
const tx_str *tx_intern_f(tx_ctx *c, const char *fmt, ...) TX_PRINTF(2, 3);

/* String builder in the heap; a failed append sets `failed` and later appends do nothing. */
typedef struct tx_sb {
    char *text; /* NUL-terminated when n > 0 */
    size_t n, cap;
    bool failed;
} tx_sb;
void tx_sb_free(tx_sb *s);
void tx_sb_put(tx_sb *s, const char *text, size_t n);
void tx_sb_puts(tx_sb *s, const char *text);
void tx_sb_putc(tx_sb *s, char ch);
void tx_sb_f(tx_sb *s, const char *fmt, ...) TX_PRINTF(2, 3);
void tx_sb_vf(tx_sb *s, const char *fmt, va_list ap);

/* The name most like a mistyped one, for "did you mean": `found`, or NULL when none of those tried is near. */
typedef struct tx_near {
    const char *wanted, *found;
    unsigned best;
} tx_near;
tx_near tx_near_to(const char *wanted);
void tx_near_try(tx_near *near, const char *name);

struct tx_strtab;
void tx_strtab_free(struct tx_strtab *t); /* for tx_ctx_free */

/* ---- source positions ------------------------------------------------------------------------------------------ */

/* A place in a source text. Lines count from 1, columns from 0 in UTF-8 bytes (as Python's ast). A span is an index into
 * the context's table; 0 is "unknown". `inlined_at` is the span of the call that brought the text here, or 0. */
typedef uint32_t tx_span;
typedef struct tx_span_info {
    uint32_t file; /* index into tx_ctx.files */
    uint32_t line, col, end_line, end_col;
    tx_span inlined_at;
    const tx_str *function; /* name of the function or inline helper that the text belongs to */
} tx_span_info;
typedef struct tx_file {
    const tx_str *name;
    const tx_str *text;  /* the lines given; may be a part of the file */
    uint32_t first_line; /* line number of the first line of text */
} tx_file;

/* Index of the file, from 1; 0 on failure. Entry 0 of files and of spans is "unknown": no name, line 0. */
uint32_t tx_add_file(tx_ctx *c, const char *name, const char *text, size_t len, uint32_t first_line);
tx_span tx_add_span(tx_ctx *c, tx_span_info info);          /* the last one added is reused when equal */
const tx_span_info *tx_span_at(const tx_ctx *c, tx_span s); /* never NULL */

/* ---- diagnostics ----------------------------------------------------------------------------------------------- */

/* Which exception a diagnostic becomes (lowering.md 7). */
typedef enum tx_diag_class {
    TX_DC_SYNTAX,   /* DiagnosticError */
    TX_DC_VALUE,    /* DiagnosticValueError: also a ValueError */
    TX_DC_TYPE,     /* DiagnosticTypeError */
    TX_DC_RUNTIME,  /* DiagnosticRuntimeError */
    TX_DC_KEY,      /* DiagnosticKeyError */
    TX_DC_COMPILE,  /* CompileError: target, toolchain */
    TX_DC_INTERNAL, /* InternalError: a bug of ours */
    TX_DC_MEMORY,   /* MemoryError */
    TX_DC_WARNING   /* UserWarning, collected with the errors */
} tx_diag_class;

typedef enum tx_diag_id {
    TX_E__NONE,
#define DIAG(name, cls, text, help) TX_E_##name,
#include "base/diag.def"
#undef DIAG
    TX_E__COUNT
} tx_diag_id;

typedef struct tx_diag {
    tx_diag_id id;
    tx_diag_class cls;
    tx_span span, other; /* a second place worth showing, or 0 */
    const char *text;    /* in the arena */
    const char *help;    /* or NULL */
} tx_diag;

/* Record a diagnostic at a span with the row's printf text; always gives NULL, so that a caller can `return tx_fail(...)`.
 * The row's help text is printf-formatted with the same arguments (it may use positional %1$s). */
void *tx_fail(tx_ctx *c, tx_span span, int id, ...);
void *tx_fail_help(tx_ctx *c, tx_span span, const char *help, int id, ...); /* help made by the caller; copied */
bool tx_warn(tx_ctx *c, tx_span span, int id, ...);                         /* always false-y to ignore: gives true */
const char *tx_diag_name(int id);
int tx_diag_find(const char *name); /* id, or 0 */
tx_diag_class tx_diag_class_of(int id);
const char *tx_diag_text(int id); /* the row's format */
const char *tx_diag_help(int id); /* the row's help format or NULL */
/* "file:line:col: error: text", excerpt with caret, help, inline chain (style.md 5). */
void tx_diag_render(const tx_ctx *c, const tx_diag *d, tx_sb *out);

/* ---- context --------------------------------------------------------------------------------------------------- */

struct tx_ctx {
    tx_arena arena;   /* everything that lives as long as the context */
    tx_arena scratch; /* marked and released by whoever needs room for a moment */
    struct tx_strtab *strs;
    TX_VEC(tx_span_info) spans;
    TX_VEC(tx_file) files;
    TX_VEC(tx_diag) diags;
    uint32_t nerrors; /* diagnostics that are not warnings */
    bool no_memory;   /* TX_E_NO_MEMORY is recorded; once is enough */
    tx_span span;     /* the span that nodes made now receive */
    uint32_t next_id; /* ids of variables and buffers, in order of making */
    uint32_t nnodes;
    uint32_t next_vn;     /* value numbers of nodes; 0 is none */
    struct tx_vntab *vns; /* hash-consing table of ir/, in the arena */
};

tx_ctx *tx_ctx_new(void); /* NULL when out of memory */
void tx_ctx_free(tx_ctx *c);

#endif
