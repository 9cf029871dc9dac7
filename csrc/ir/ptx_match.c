/* From spelled tokens and operands to one row of ptx.def. Every row of the family is a candidate; tokens fill its open
 * slots in any order; operands decide between what is left. Exactly one row must remain, and a fault says what each
 * candidate wanted. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "ir/ptx.h"

enum { MAX_CANDIDATES = 64, REASON = 200 };

typedef struct candidate {
    uint16_t row;
    int8_t choice[TX_PTX_MAX_PARTS];
    char reason[REASON]; /* why the operands do not fit */
    uint32_t nargs;
    uint8_t op_of[TX_PTX_MAX_ARGS];
    const tx_node *arg[TX_PTX_MAX_ARGS + 1];
} candidate;

typedef struct matcher {
    tx_ctx *c;
    const tx_ptx_row *rows;
    const char *const *tokens;
    uint32_t ntokens;
    const tx_ptx_arg *args;
    uint32_t nargs;
    tx_span span;
} matcher;

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool
take_token(const tx_ptx_row *r, int8_t *choice, const char *token)
{
    for (int i = 0; i < r->nparts; i++) {
        if (choice[i] >= 0)
            continue;
        for (int k = 0; k < r->part[i].nchoices; k++)
            if (strcmp(r->part[i].choice[k], token) == 0) {
                choice[i] = (int8_t)k;
                return true;
            }
    }
    return false;
}

static bool
is_of_family(const tx_ptx_row *r, const char *family)
{
    for (int k = 0; k < r->part[0].nchoices; k++)
        if (strcmp(r->part[0].choice[k], family) == 0)
            return true;
    return false;
}

/* Does the row take the first n tokens? Fills choice. */
static bool
takes(const tx_ptx_row *r, const char *const *tokens, uint32_t n, int8_t *choice)
{
    memset(choice, -1, TX_PTX_MAX_PARTS);
    if (n == 0 || !is_of_family(r, tokens[0]))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!take_token(r, choice, tokens[i]))
            return false;
    return true;
}

void
tx_ptx_open(const char *const *tokens, uint32_t n, void (*f)(void *self, const char *slot, const char *choice),
            void *self)
{
    uint32_t nrows;
    const tx_ptx_row *rows = tx_ptx_rows(&nrows);
    int8_t choice[TX_PTX_MAX_PARTS];

    for (uint32_t i = 0; rows && i < nrows; i++) {
        const tx_ptx_row *r = &rows[i];
        if (n == 0) {
            for (int k = 0; k < r->part[0].nchoices; k++)
                f(self, NULL, r->part[0].choice[k]);
            continue;
        }
        if (!takes(r, tokens, n, choice))
            continue;
        for (int p = 0; p < r->nparts; p++)
            for (int k = 0; choice[p] < 0 && k < r->part[p].nchoices; k++)
                f(self, r->part[p].slot, r->part[p].choice[k]);
    }
}

typedef struct listing {
    tx_sb text, seen;
    tx_near near;
    const char *slot;
    int n;
} listing;

static bool
was_seen(listing *l, const char *word)
{
    char key[96];

    snprintf(key, sizeof key, "\n%.90s\n", word);
    if (l->seen.text && strstr(l->seen.text, key))
        return true;
    tx_sb_puts(&l->seen, key);
    return false;
}

static void
list_family(void *self, const char *slot, const char *choice)
{
    listing *l = self;

    (void)slot;
    tx_near_try(&l->near, choice);
    if (!was_seen(l, choice))
        tx_sb_f(&l->text, "%s%s", l->n++ ? ", " : "", choice);
}

/* "scope in {cta, cluster}; ..." grouped by slot; literals stand alone. */
static void
list_open(void *self, const char *slot, const char *choice)
{
    listing *l = self;
    char key[96];

    tx_near_try(&l->near, choice);
    if (l->text.n > 400) /* a line that nobody reads to its end */
        return;
    snprintf(key, sizeof key, "%s=%s", slot ? slot : "", choice);
    if (was_seen(l, key))
        return;
    if (slot && l->slot && strcmp(slot, l->slot) == 0) {
        tx_sb_f(&l->text, ", %s", choice);
        return;
    }
    if (l->slot)
        tx_sb_putc(&l->text, '}');
    tx_sb_f(&l->text, slot ? "%s%s in {%s" : "%s%s%s", l->n++ ? "; " : "", slot ? slot : "", choice);
    l->slot = slot;
}

static const char *
did_you_mean(const tx_near *near, char *to, size_t size)
{
    if (!near->found)
        return NULL;
    snprintf(to, size, "did you mean '%s'?", near->found);
    return to;
}

static bool
no_such_family(tx_ctx *c, const char *family)
{
    listing l = {.near = tx_near_to(family)};
    char help[64];

    tx_ptx_open(NULL, 0, list_family, &l);
    tx_fail_help(c, c->span, did_you_mean(&l.near, help, sizeof help), TX_E_PTX_FAMILY, family,
                 l.text.text ? l.text.text : "");
    tx_sb_free(&l.text);
    tx_sb_free(&l.seen);
    return false;
}

static bool
no_such_modifier(tx_ctx *c, const char *const *tokens, uint32_t n)
{
    listing l = {.near = tx_near_to(tokens[n - 1])};
    char help[64];

    tx_ptx_open(tokens, n - 1, list_open, &l);
    if (l.slot)
        tx_sb_putc(&l.text, '}');
    tx_fail_help(c, c->span, did_you_mean(&l.near, help, sizeof help), TX_E_PTX_MODIFIER, tokens[n - 1], tokens[0],
                 l.text.n ? l.text.text : "none");
    tx_sb_free(&l.text);
    tx_sb_free(&l.seen);
    return false;
}

bool
tx_ptx_accepts(tx_ctx *c, const char *const *tokens, uint32_t n)
{
    uint32_t nrows;
    const tx_ptx_row *rows = tx_ptx_rows(&nrows);
    int8_t choice[TX_PTX_MAX_PARTS];

    if (!rows) {
        tx_fail(c, c->span, TX_E_NO_MEMORY);
        return false;
    }
    for (uint32_t len = 1; len <= n; len++) {
        bool any = false;
        for (uint32_t i = 0; i < nrows && !any; i++)
            any = takes(&rows[i], tokens, len, choice);
        if (!any)
            return len == 1 ? no_such_family(c, tokens[0]) : no_such_modifier(c, tokens, len);
    }
    return true;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* PTX type -> dtypes that may ride in it; the first is canonical (intrinsics: 2.3). */
static const struct {
    const char *type;
    uint8_t n;
    tx_dtype dtype[4];
} carriers[] = {
    {"b8", 2, {TX_DTYPE(TX_KIND_U8, 1), TX_DTYPE(TX_KIND_I8, 1)}},
    {"u8", 1, {TX_DTYPE(TX_KIND_U8, 1)}},
    {"s8", 1, {TX_DTYPE(TX_KIND_I8, 1)}},
    {"b16", 4, {TX_DTYPE(TX_KIND_U16, 1), TX_DTYPE(TX_KIND_I16, 1), TX_F16, TX_BF16}},
    {"u16", 1, {TX_DTYPE(TX_KIND_U16, 1)}},
    {"s16", 1, {TX_DTYPE(TX_KIND_I16, 1)}},
    {"b32", 3, {TX_U32, TX_I32, TX_F32}},
    {"u32", 1, {TX_U32}},
    {"s32", 1, {TX_I32}},
    {"i32", 2, {TX_U32, TX_I32}},
    {"b64", 3, {TX_U64, TX_I64, TX_F64}},
    {"u64", 1, {TX_U64}},
    {"s64", 1, {TX_I64}},
    {"i64", 2, {TX_U64, TX_I64}},
    {"b128", 2, {TX_DTYPE(TX_KIND_U128, 1), TX_DTYPE(TX_KIND_I128, 1)}},
    {"f32", 1, {TX_F32}},
    {"f64", 1, {TX_F64}},
    {"f16", 2, {TX_DTYPE(TX_KIND_U16, 1), TX_F16}},
    {"bf16", 2, {TX_DTYPE(TX_KIND_U16, 1), TX_BF16}},
    {"f16x2", 1, {TX_U32}},
    {"bf16x2", 1, {TX_U32}},
    {"f32x2", 1, {TX_U64}},
    {"tf32", 2, {TX_U32, TX_F32}},
    {"pred", 3, {TX_U32, TX_I32, TX_BOOL}},
    {"e2m1x2", 1, {TX_DTYPE(TX_KIND_U8, 1)}},
};

/* The remaining packed types by their width: "e4m3x2" rides in 16 bits, "e4m3x4" in 32. */
static bool
ptx_match_carrier(const char *type, const tx_dtype **dtypes, uint8_t *n)
{
    static const tx_dtype u16[] = {TX_DTYPE(TX_KIND_U16, 1)}, u32[] = {TX_U32};
    size_t len = strlen(type);

    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (strcmp(carriers[i].type, type) == 0) {
            *dtypes = carriers[i].dtype;
            *n = carriers[i].n;
            return true;
        }
    *n = 1;
    *dtypes = len > 2 && type[len - 1] == '4' && strcmp(type, "e2m1x4") != 0 ? u32 : u16;
    return len > 2 && type[len - 2] == 'x';
}

static bool
reject(candidate *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(k->reason, sizeof k->reason, fmt, ap);
    va_end(ap);
    return false;
}

static void
family_text(const matcher *m, const candidate *k, char *out, size_t n)
{
    const tx_ptx_row *r = &m->rows[k->row];

    snprintf(out, n, "%s", r->part[0].choice[k->choice[0] < 0 ? 0 : k->choice[0]]);
}

static const char *
got_text(const matcher *m, const tx_ptx_arg *a)
{
    if (a->sink)
        return "T.ptx.SINK";
    if (a->buf)
        return a->buf->flags & TX_BUF_CELL ? tx_dtype_name(m->c, a->buf->dtype) : "a buffer";
    if (a->n && a->n->op == TX_OP_STR)
        return "a string";
    return a->n ? tx_dtype_name(m->c, a->n->dtype) : "nothing";
}

/* The first element of a whole buffer, to read or write. */
static const tx_node *
ptx_match_element(const matcher *m, const tx_ptx_arg *a)
{
    const tx_node *idx[TX_MAX_RANK];
    int64_t one;

    if (!a->buf)
        return a->n;
    for (int d = 0; d < a->buf->rank; d++) {
        if (!tx_const_i64(a->buf->shape[d], &one) || one != 1)
            return NULL;
        idx[d] = tx_int(m->c, TX_I32, 0);
    }
    return tx_load(m->c, a->buf, idx, a->buf->rank);
}

static bool
ptx_match_fits(const tx_dtype *dtypes, uint8_t n, tx_dtype t)
{
    for (uint8_t i = 0; i < n; i++)
        if (dtypes[i] == t)
            return true;
    return false;
}

static bool
ptx_match_written(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node **out)
{
    const char *type = tx_ptx_type(&m->rows[k->row], k->choice, o);
    const tx_dtype *dtypes;
    uint8_t n;
    char family[32];

    family_text(m, k, family, sizeof family);
    *out = ptx_match_element(m, a);
    if (!*out || (*out)->op != TX_OP_LOAD)
        return reject(
            k,
            "destination '%s' must be a writable scalar or buffer element (declare it first, e.g. `%s: T.float32`), "
            "got %s",
            o->name, o->name,
            a->n && a->n->op == TX_OP_VAR ? "Var: a T.let binding is immutable and cannot be one" : got_text(m, a));
    if (!ptx_match_carrier(type, &dtypes, &n) || !ptx_match_fits(dtypes, n, (*out)->dtype))
        return reject(k, "%s: operand '%s' must have dtype %s (from .%s), got %s", family, o->name,
                      tx_dtype_name(m->c, dtypes[0]), type, tx_dtype_name(m->c, (*out)->dtype));
    *out = tx_address_of(m->c, *out); /* so that every pass sees that the element's address is used */
    return *out != NULL;
}

static bool
ptx_match_predicate(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node *n,
                    const tx_node **out)
{
    int64_t v;

    if (tx_is_bool(n->dtype) || a->pred || (tx_const_i64(n, &v) && (v == 0 || v == 1))) {
        *out = tx_condition(m->c, n);
        return *out != NULL || reject(k, "operand '%s' must be a predicate, got %s", o->name, got_text(m, a));
    }
    return reject(k, "operand '%s' must be a predicate: write a comparison, or T.ptx.pred(x) for an integer; got %s",
                  o->name, got_text(m, a));
}

static bool
read_value(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node **out)
{
    const char *type = tx_ptx_type(&m->rows[k->row], k->choice, o);
    const tx_node *n = ptx_match_element(m, a);
    const tx_dtype *dtypes;
    uint8_t ndtypes;
    char family[32];

    family_text(m, k, family, sizeof family);
    if (!n || n->op == TX_OP_STR)
        return reject(k, "%s: operand '%s' must be a value (.%s), got %s", family, o->name, type, got_text(m, a));
    if (strcmp(type, "ptr") == 0) {
        *out = n;
        return tx_is_handle(n->dtype) || n->dtype == TX_U64 ||
               reject(k, "%s: operand '%s' must be a pointer, got %s", family, o->name, got_text(m, a));
    }
    if (strcmp(type, "pred") == 0)
        return ptx_match_predicate(m, k, o, a, n, out);
    if (a->pred)
        return reject(k, "%s: operand '%s' is no predicate; T.ptx.pred does not belong here", family, o->name);
    if (TX_NEVER(!ptx_match_carrier(type, &dtypes, &ndtypes)))
        return reject(k, "%s: operand '%s' has a type that is not known here (.%s)", family, o->name, type);
    if (n->flags & TX_NF_WEAK) {
        if (n->op == TX_OP_FLOAT && !tx_is_float(dtypes[0]))
            return reject(
                k, "%s: operand '%s' must have dtype %s (from .%s), got a float literal: type it, T.float32(...)",
                family, o->name, tx_dtype_name(m->c, dtypes[0]), type);
        *out = n->op == TX_OP_FLOAT || tx_is_float(dtypes[0])
                   ? tx_cast(m->c, dtypes[0], n)
                   : tx_literal_int(m->c, dtypes[0], n->u.i < 0 && tx_is_signed(dtypes[0]),
                                    n->u.i < 0 && tx_is_signed(dtypes[0]) ? (uint64_t)0 - (uint64_t)n->u.i
                                                                          : (uint64_t)n->u.i);
        return *out != NULL;
    }
    *out = n;
    return ptx_match_fits(dtypes, ndtypes, n->dtype) ||
           reject(k, "%s: operand '%s' must have dtype %s (from .%s), got %s", family, o->name,
                  tx_dtype_name(m->c, dtypes[0]), type, tx_dtype_name(m->c, n->dtype));
}

static bool
is_shared_space(const char *space)
{
    return strncmp(space, "shared", 6) == 0;
}

/* A pointer that is known not to lead to shared memory. */
static bool
is_elsewhere(const tx_node *n)
{
    return (n->op == TX_OP_BUFFER_DATA || n->op == TX_OP_ADDRESS_OF) && n->scope != TX_SHARED &&
           n->scope != TX_SHARED_DYN;
}

/* A pointer, a buffer, or an integer: 32 bits for shared and tensor memory, 64 for generic and global. */
static bool
ptx_match_address(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node **out)
{
    const char *space = tx_ptx_type(&m->rows[k->row], k->choice, o);
    bool tmem = strcmp(space, "tmem") == 0, shared = is_shared_space(space);
    const tx_node *n = a->buf ? NULL : a->n;
    char family[32];

    family_text(m, k, family, sizeof family);
    if (a->sink || a->pred || (!n && !a->buf))
        return reject(k, "%s: operand '%s' must be an address, got %s", family, o->name, got_text(m, a));
    if (a->buf && !tmem && !(a->buf->flags & TX_BUF_CELL)) /* a scalar variable holds the address, it is not there */
        n = tx_buffer_start(m->c, a->buf);
    else if (a->buf)
        n = ptx_match_element(m, a);
    if (!n)
        return reject(k, "%s: operand '%s' must be an address, got %s", family, o->name, got_text(m, a));
    if (tx_is_handle(n->dtype)) {
        if (tmem)
            return reject(k, "%s: operand '%s' is a tensor memory address (uint32), got a pointer", family, o->name);
        if (shared && is_elsewhere(n))
            return reject(k, "%s: operand '%s' is an address in .%s, got a pointer to %s memory", family, o->name,
                          space, tx_scope_name((tx_scope)n->scope));
        if (!shared && *space && strcmp(space, "generic") != 0 && (n->scope == TX_SHARED || n->scope == TX_SHARED_DYN))
            return reject(k, "%s: operand '%s' is an address in .%s, got a pointer to shared memory", family, o->name,
                          space);
    } else if (n->dtype == TX_U32 || n->dtype == TX_I32) {
        if (!shared && !tmem)
            return reject(k, "%s: operand '%s' must be a pointer or a uint64 address, got %s", family, o->name,
                          got_text(m, a));
    } else if (n->dtype == TX_U64 || n->dtype == TX_I64) {
        if (shared || tmem)
            return reject(k, "%s: operand '%s' must be a pointer or a uint32 address (.%s), got %s", family, o->name,
                          space, got_text(m, a));
    } else {
        return reject(k, "%s: operand '%s' must be an address, got %s", family, o->name, got_text(m, a));
    }
    if (a->off) {
        if (!o->displace)
            return reject(k, "%s: operand '%s' takes no displacement", family, o->name);
        n = tx_is_handle(n->dtype) ? tx_ptr_offset(m->c, n, tx_cast(m->c, TX_I64, a->off), n->elem)
                                   : tx_binary(m->c, TX_OP_ADD, n, tx_cast(m->c, n->dtype, a->off));
    }
    *out = n;
    return n != NULL;
}

static bool
immediate(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node **out)
{
    int64_t v;
    char family[32], set[96] = "";
    bool ok;

    (void)m;
    family_text(m, k, family, sizeof family);
    *out = a->n;
    if (!a->n || !tx_is_int(a->n->dtype))
        return reject(k, "%s: operand '%s' must be a constant int, got %s", family, o->name, got_text(m, a));
    if (!tx_const_i64(a->n, &v)) /* unrolling may make it one: checked again when the text is made */
        return true;
    if (o->open)
        return true;
    ok = o->step != 0 && v >= o->lo && v <= o->hi && (v - o->lo) % o->step == 0;
    for (int i = 0; i < o->nvalues; i++) {
        ok = ok || o->value[i] == v;
        snprintf(set + strlen(set), sizeof set - strlen(set), "%s%d", i ? ", " : "", o->value[i]);
    }
    if (o->step)
        snprintf(set, sizeof set, "%lld..%lld%s", (long long)o->lo, (long long)o->hi,
                 o->step > 1 ? " in steps of 8" : "");
    return ok || reject(k, "%s: operand '%s' must be one of %s, got %lld", family, o->name, set, (long long)v);
}

static bool
one_argument(const matcher *m, candidate *k, const tx_ptx_operand *o, const tx_ptx_arg *a, const tx_node **out)
{
    if (a->sink) {
        *out = tx_int(m->c, TX_I32, 0);
        return o->sink || reject(k, "operand '%s' cannot be T.ptx.SINK", o->name);
    }
    switch (o->kind) {
    case TX_PTX_IMM: return immediate(m, k, o, a, out);
    case TX_PTX_ADDR: return ptx_match_address(m, k, o, a, out);
    default: return o->mode == 'r' ? read_value(m, k, o, a, out) : ptx_match_written(m, k, o, a, out);
    }
}

/* Operand of each argument when the free optional operands named by `with` are there; false: another count. */
static bool
lay_out(const matcher *m, candidate *k, bool with, uint32_t *want)
{
    const tx_ptx_row *r = &m->rows[k->row];
    uint32_t n = 0;

    for (int i = 0; i < r->nops; i++) {
        int count = tx_ptx_count(r, k->choice, &r->op[i]);
        if (r->op[i].kind == TX_PTX_TEXT || !tx_ptx_present(r, k->choice, &r->op[i]) || (r->op[i].free && !with))
            continue;
        for (int j = 0; j < (count < 1 ? 1 : count); j++) {
            if (n < TX_PTX_MAX_ARGS)
                k->op_of[n] = (uint8_t)i;
            n++;
        }
    }
    *want = n;
    return n == m->nargs && n <= TX_PTX_MAX_ARGS;
}

/* "d, a, b": the operands of a form, by their names in the table. */
static void
operand_names(const matcher *m, const candidate *k, char *out, size_t size)
{
    const tx_ptx_row *r = &m->rows[k->row];
    size_t n = 0;

    for (int i = 0; i < r->nops && n < size; i++) {
        int count = tx_ptx_count(r, k->choice, &r->op[i]);
        if (r->op[i].kind == TX_PTX_TEXT || !tx_ptx_present(r, k->choice, &r->op[i]))
            continue;
        n += (size_t)snprintf(out + n, size - n, count > 1 ? "%s%s x %d" : "%s%s", n ? ", " : "", r->op[i].name, count);
    }
}

static bool
operands_fit(const matcher *m, candidate *k)
{
    const tx_ptx_row *r = &m->rows[k->row];
    uint32_t with, without, sunk = 0;
    char family[32], names[128] = "";

    family_text(m, k, family, sizeof family);
    if (!lay_out(m, k, true, &with) && !lay_out(m, k, false, &without)) {
        if (with == without)
            return operand_names(m, k, names, sizeof names),
                   reject(k, "%s expects %u operand(s) (%s), got %u", family, with, names, m->nargs);
        return reject(k, "%s expects %u or %u operand(s), got %u", family, without, with, m->nargs);
    }
    k->nargs = m->nargs;
    for (uint32_t i = 0; i < m->nargs; i++) {
        if (!one_argument(m, k, &r->op[k->op_of[i]], &m->args[i], &k->arg[i]))
            return false;
        sunk += m->args[i].sink;
    }
    return !sunk || sunk < m->nargs - 1 || reject(k, "%s: at least one lane must be a real destination", family);
}

/* ---- resolution -------------------------------------------------------------------------------------------------- */

static bool
missing_parts(const tx_ptx_row *r, const int8_t *choice, tx_sb *out)
{
    bool any = false;

    for (int i = 0; i < r->nparts; i++) {
        const tx_ptx_part *p = &r->part[i];
        if (choice[i] >= 0 || p->optional)
            continue;
        tx_sb_f(out, "%s%s", any ? ", " : "", p->slot ? p->slot : p->choice[0]);
        any = true;
    }
    return any;
}

static const tx_node *
make_call(const matcher *m, const candidate *k, const tx_node *guard, bool keep)
{
    tx_ptx_call *call = tx_new(m->c, tx_ptx_call, 1);
    uint8_t *op_of = tx_new(m->c, uint8_t, k->nargs + 1);
    const tx_node *args[TX_PTX_MAX_ARGS + 1];

    if (!call || !op_of)
        return NULL;
    memcpy(op_of, k->op_of, k->nargs);
    memcpy(args, k->arg, k->nargs * sizeof *args);
    args[k->nargs] = guard;
    call->row = k->row;
    call->nargs = (uint16_t)k->nargs;
    memcpy(call->choice, k->choice, sizeof call->choice);
    call->guard = guard != NULL;
    call->keep = keep;
    call->op_of = op_of;
    for (uint32_t i = 0; i < k->nargs; i++)
        if (m->args[i].sink)
            call->sunk[i / 64] |= (uint64_t)1 << i % 64;
    return tx_make_at(m->c, m->span, TX_OP_PTX, TX_VOID, (tx_payload){.ptx = call}, args, k->nargs + (guard != NULL));
}

static const tx_node *
explain(const matcher *m, candidate *const *tried, uint32_t n, const tx_sb *missing, const tx_ptx_row *broken)
{
    tx_sb all = {0};

    if (n == 0 && broken)
        return tx_fail(m->c, m->span, TX_E_PTX_RULE, m->tokens[0], broken->rules);

    if (n == 0)
        return tx_fail(m->c, m->span, TX_E_PTX_MISSING, m->tokens[0], missing->text ? missing->text : "");
    if (n == 1)
        return tx_fail(m->c, m->span, TX_E_PTX_OPERAND, tried[0]->reason);
    for (uint32_t i = 0; i < n; i++)
        tx_sb_f(&all, "%s%s", i ? "; " : "", tried[i]->reason);
    tx_fail(m->c, m->span, TX_E_PTX_NONE, all.text ? all.text : "");
    tx_sb_free(&all);
    return NULL;
}

const tx_node *
tx_ptx_resolve(tx_ctx *c, const char *const *tokens, uint32_t ntokens, const tx_ptx_arg *args, uint32_t nargs,
               const tx_node *guard, bool keep)
{
    uint32_t nrows, n = 0, nerrors = c->nerrors;
    matcher m = {c, tx_ptx_rows(&nrows), tokens, ntokens, args, nargs, c->span};
    candidate *tried[MAX_CANDIDATES], *found = NULL, *k = NULL;
    tx_sb missing = {0}, lacks = {0};
    const tx_ptx_row *broken = NULL; /* complete, but against its rules */
    const tx_node *made = NULL;

    if (!tx_ptx_accepts(c, tokens, ntokens))
        return NULL;
    for (uint32_t i = 0; i < nrows && n < MAX_CANDIDATES; i++) {
        if (!k && !(k = tx_new(c, candidate, 1)))
            break;
        k->row = (uint16_t)i;
        if (!takes(&m.rows[i], tokens, ntokens, k->choice))
            continue;
        lacks.n = 0;
        if (missing_parts(&m.rows[i], k->choice, &lacks)) {
            if (!missing.n && lacks.text)
                tx_sb_puts(&missing, lacks.text);
            continue;
        }
        if (!tx_ptx_rules_hold(&m.rows[i], k->choice)) {
            broken = &m.rows[i];
            continue;
        }
        if (operands_fit(&m, k)) {
            TX_ASSERT(!found); /* two rows that take the same call: a fault of the table */
            found = k;
            break;
        }
        if (c->nerrors > nerrors) /* a literal out of range: said already */
            goto out;
        tried[n++] = k;
        k = NULL;
    }
    made = found ? make_call(&m, found, guard, keep) : explain(&m, tried, n, &missing, broken);
out:
    tx_sb_free(&missing);
    tx_sb_free(&lacks);
    return made;
}
