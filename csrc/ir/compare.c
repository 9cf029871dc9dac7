/* Structural equality and hash. A function is written out as a canonical sequence of words: variables are numbered where
 * they are first met, expressions and buffers by their structure, so that names, places and sharing leave no trace. Two
 * functions are equal when their sequences are, and the hash is the sequence's.
 *
 * What leaves no trace: spans, names of variables and buffers, whether an allocation was written as a cell, the form of a
 * device entry (flat or `with`), empty else blocks; declarations of views (a view is compared where it is used); the
 * unflattened indices of a flat access, which only checks read; how a kernel knows its launch bounds. A launch is the
 * packed call that it prints as.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/print.h"
#include "ir/ptx.h"

typedef struct canon_key {
    uint32_t at, n; /* words in the sequence */
} canon_key;

typedef struct canon {
    tx_ctx *c;              /* scratch */
    TX_VEC(uint64_t) out;   /* the sequence */
    TX_VEC(uint64_t) stack; /* words of keys under construction */
    TX_VEC(canon_key) keys;
    tx_map by_hash;           /* hash of a key -> its number */
    tx_map nodes, vars, bufs; /* pointer -> number */
    uint64_t nvars;
    uint64_t nlets;        /* T.Let around what is looked at */
    bool free_by_identity; /* variables that nothing binds keep their identity */
    bool failed;
} canon;

enum { TAG_KEY = 0x4b, TAG_OPEN = 0x28, TAG_CLOSE = 0x29, TAG_BUFFER = 0x10000 };

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void
compare_emit(canon *s, uint64_t word)
{
    if (s->failed || !tx_push(s->c, &s->out, word))
        s->failed = true;
}

static void
push(canon *s, uint64_t word)
{
    if (s->failed || !tx_push(s->c, &s->stack, word))
        s->failed = true;
}

static void
push_text(canon *s, const tx_str *str)
{
    size_t len = str ? str->len : 0;

    push(s, str ? len + 1 : 0);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, str->text + i, len - i < 8 ? len - i : 8);
        push(s, word);
    }
}

/* The number of the key made of the words above `mark`, which are taken off. A new key enters the sequence. */
static uint64_t
number_key(canon *s, uint32_t mark)
{
    uint32_t n = s->stack.n - mark, at;
    const uint64_t *words = s->stack.at + mark;
    uint64_t h, known;

    if (s->failed)
        return 0;
    s->stack.n = mark;
    h = tx_hash_bytes(words, n * sizeof *words, 0x7c) | 1;
    for (; tx_map_get(&s->by_hash, h, &known); h += 2) {
        const canon_key *k = &s->keys.at[known - 1];
        if (k->n == n && memcmp(s->out.at + k->at, words, n * sizeof *words) == 0)
            return known;
    }
    compare_emit(s, TAG_KEY);
    compare_emit(s, n);
    at = s->out.n;
    for (uint32_t i = 0; i < n; i++)
        compare_emit(s, words[i]);
    if (s->failed || !tx_push(s->c, &s->keys, ((canon_key){at, n})) || !tx_map_put(&s->by_hash, h, s->keys.n)) {
        s->failed = true;
        return 0;
    }
    return s->keys.n;
}

static void
compare_remember(canon *s, tx_map *m, const void *p, uint64_t number)
{
    if (!tx_map_put(m, (uint64_t)(uintptr_t)p, number))
        s->failed = true;
}

/* ---- variables, buffers, expressions ----------------------------------------------------------------------------- */

static uint64_t compare_expr(canon *s, const tx_node *n);

/* A binding, or the first sight of a variable that nothing binds. */
static uint64_t
compare_bind_var(canon *s, const tx_var *v)
{
    uint64_t known;

    if (!v)
        return 0;
    if (tx_map_get(&s->vars, (uint64_t)(uintptr_t)v, &known))
        return known;
    compare_remember(s, &s->vars, v, ++s->nvars);
    return s->nvars;
}

static uint64_t
compare_use_var(canon *s, const tx_var *v)
{
    uint64_t known;

    if (tx_map_get(&s->vars, (uint64_t)(uintptr_t)v, &known))
        return known;
    return s->free_by_identity ? (uint64_t)1 << 63 | (uintptr_t)v : compare_bind_var(s, v);
}

/* What a variable is, apart from its identity. */
static void
push_var_type(canon *s, const tx_var *v)
{
    push(s, v->dtype);
    push(s, tx_is_handle(v->dtype) ? (uint64_t)(v->elem == TX_VOID ? 0 : v->elem) << 8 | v->scope : 0);
}

static uint64_t
or_default(canon *s, const tx_node *n, int64_t value)
{
    return !n || tx_is_const(n, value) ? 0 : compare_expr(s, n);
}

static void
push_attrs(canon *s, const tx_attr *a, uint32_t n)
{
    push(s, n);
    for (uint32_t i = 0; i < n; i++) {
        push_text(s, a[i].key);
        push(s, compare_expr(s, a[i].value));
    }
}

/* A constant extent is a number, whatever its width. */
static uint64_t
extent(canon *s, const tx_node *n)
{
    uint32_t mark = s->stack.n;

    if (n->op != TX_OP_INT)
        return compare_expr(s, n);
    push(s, TX_OP_INT);
    push(s, (uint64_t)n->u.i);
    return number_key(s, mark);
}

static uint64_t
buffer(canon *s, const tx_buffer *b)
{
    uint32_t mark = s->stack.n;
    uint64_t known;

    if (tx_map_get(&s->bufs, (uint64_t)(uintptr_t)b, &known))
        return known;
    push(s, TAG_BUFFER);
    push(s, b->data ? compare_use_var(s, b->data) : 0);
    push(s, b->dtype);
    push(s, (uint64_t)b->scope << 32 | b->rank);
    push(s, b->flags & (TX_BUF_NO_LAYOUT | TX_BUF_VOLATILE));
    push(s, (uint64_t)b->align);
    push(s, b->offset_factor > 1 ? (uint64_t)b->offset_factor : 1);
    push(s, b->elem_offset && !tx_is_const(b->elem_offset, 0) ? extent(s, b->elem_offset) : 0);
    push(s, or_default(s, b->byte_offset, 0));
    push(s, compare_expr(s, b->allocated_addr));
    for (uint32_t i = 0; i < b->rank; i++)
        push(s, extent(s, b->shape[i]));
    for (uint32_t i = 0; b->strides && i < b->rank; i++)
        push(s, extent(s, b->strides[i]));
    push_attrs(s, b->attrs, b->nattrs);
    known = number_key(s, mark);
    compare_remember(s, &s->bufs, b, known);
    return known;
}

static uint64_t
compare_pointer(canon *s, const tx_var *data)
{
    uint32_t mark = s->stack.n;

    push(s, TX_OP_VAR);
    push(s, compare_use_var(s, data));
    return number_key(s, mark);
}

static void
push_payload(canon *s, const tx_node *n)
{
    uint64_t bits = 0;

    switch (n->op) {
    case TX_OP_INT:
    case TX_OP_SHUFFLE: push(s, (uint64_t)n->u.i); break;
    case TX_OP_FLOAT:
        if (n->u.f == n->u.f)
            memcpy(&bits, &n->u.f, sizeof bits);
        push(s, n->u.f == n->u.f ? bits : ~(uint64_t)0);
        break;
    case TX_OP_STR: push_text(s, n->u.s); break;
    case TX_OP_LOAD: push(s, buffer(s, n->u.buf)); break;
    case TX_OP_PTR_OFFSET: push(s, n->elem); break;
    case TX_OP_FUNC_CALL:
    case TX_OP_CALL_EXTERN:
    case TX_OP_CALL_PURE_EXTERN:
    case TX_OP_CALL_PACKED:
    case TX_OP_KEPT:
        push_text(s, n->u.call->name);
        push_text(s, n->u.call->source);
        break;
    case TX_OP_PTX:
        push(s, n->u.ptx->row);
        for (int i = 0; i < TX_PTX_MAX_PARTS; i++)
            push(s, (uint64_t)(n->u.ptx->choice[i] + 1));
        for (size_t i = 0; i < sizeof n->u.ptx->sunk / sizeof *n->u.ptx->sunk; i++)
            push(s, n->u.ptx->sunk[i]);
        push(s, n->u.ptx->guard + 2 * n->u.ptx->keep);
        break;
    case TX_OP_CALL_FUNC: push_text(s, n->u.call->name ? n->u.call->name : n->u.call->func->name); break;
    default:
        if (tx_has(n->op, TX_PROP_COORD))
            push(s, (uint64_t)n->u.i);
    }
}

static uint64_t
compare_expr(canon *s, const tx_node *n)
{
    uint32_t mark = s->stack.n;
    uint64_t known;
    uint32_t count;

    if (!n || s->failed)
        return 0;
    if (n->op == TX_OP_VAR)
        return compare_pointer(s, n->u.var);
    if (n->op == TX_OP_BUFFER_DATA && n->u.buf->data)
        return compare_pointer(s, n->u.buf->data);
    if (tx_map_get(&s->nodes, (uint64_t)(uintptr_t)n, &known))
        return known;
    count = n->op == TX_OP_LOAD && n->u.buf->flags & TX_BUF_FLAT && n->nargs > 1 ? 1 : n->nargs;
    push(s, n->op);
    push(s, n->dtype);
    push_payload(s, n);
    if (n->op == TX_OP_LET) { /* the value does not see the variable; its number says how deep it is bound, so that one
                               * expression in two places is as good as two expressions */
        push(s, compare_expr(s, n->arg[0]));
        compare_remember(s, &s->vars, n->u.var, (uint64_t)1 << 62 | ++s->nlets);
        push(s, compare_expr(s, n->arg[1]));
        s->nlets--;
    } else {
        push(s, count);
        for (uint32_t i = 0; i < count; i++)
            push(s, compare_expr(s, n->arg[i]));
    }
    known = number_key(s, mark);
    compare_remember(s, &s->nodes, n, known);
    return known;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void list(canon *s, const tx_node *n);

static const tx_var *
pointer_var(const tx_node *n)
{
    if (n && n->op == TX_OP_BUFFER_DATA)
        return n->u.buf->data;
    return n && n->op == TX_OP_VAR ? n->u.var : NULL;
}

static void
emit_texts(canon *s, const tx_str *kind, const tx_str *const *parts, uint32_t n)
{
    uint32_t mark = s->stack.n;

    push_text(s, kind);
    for (uint32_t i = 0; i < n; i++)
        push_text(s, parts[i]);
    compare_emit(s, number_key(s, mark));
}

static void
emit_attrs(canon *s, const tx_attr *a, uint32_t n)
{
    uint32_t mark = s->stack.n;

    push_attrs(s, a, n);
    compare_emit(s, number_key(s, mark));
}

/* A view needs no trace when it is over the pointer that it is said to be over; else its pointer is bound here. */
static void
declaration(canon *s, const tx_node *n)
{
    uint64_t known;

    if (n->op == TX_OP_ALLOC) {
        compare_bind_var(s, n->u.buf->data);
    } else if (pointer_var(n->arg[0]) == n->u.buf->data && n->u.buf->data) {
        return;
    } else if (n->op == TX_OP_MATCH && tx_map_get(&s->vars, (uint64_t)(uintptr_t)n->u.buf->data, &known)) {
        return;
    } else {
        uint64_t from = compare_expr(s, n->arg[0]);
        compare_emit(s, from);
        if (n->u.buf->data)
            compare_bind_var(s, n->u.buf->data);
    }
    uint64_t b = buffer(s, n->u.buf);
    compare_emit(s, n->op);
    compare_emit(s, b);
}

static void
packed_call(canon *s, const tx_str *name, const tx_node *const *args, uint32_t n)
{
    uint32_t mark = s->stack.n;

    push_text(s, name);
    for (uint32_t i = 0; i < n; i++)
        push(s, or_default(s, args[i], 1));
    uint64_t call = number_key(s, mark);
    compare_emit(s, TX_OP_LAUNCH);
    compare_emit(s, call);
}

static void
compare_launch(canon *s, const tx_node *n)
{
    const tx_node *operands[TX_MAX_PARAMS + TX_L__COUNT];
    uint32_t count = tx_launch_operands(n, operands, TX_MAX_PARAMS + TX_L__COUNT);

    if (count > TX_MAX_PARAMS + TX_L__COUNT)
        count = TX_MAX_PARAMS + TX_L__COUNT;
    packed_call(s, n->u.launch_of->kernel->name, operands, count);
}

static void
compare_device(canon *s, const tx_node *n)
{
    const tx_launch *l = n->u.launch;
    uint32_t mark = s->stack.n;

    for (int i = TX_L_BODY + 1; i < TX_L__COUNT; i++)
        push(s, i < TX_L_CLUSTER_X ? or_default(s, n->arg[i], 1) : compare_expr(s, n->arg[i]));
    push(s, (uint64_t)(l->cooperative + 1) | (uint64_t)(l->pdl + 1) << 8 | (uint64_t)(l->cluster_policy + 1) << 16 |
                (uint64_t)(l->mem_sync_domain + 1) << 24 | (uint64_t)(l->carveout + 1) << 32 |
                (uint64_t)l->required_block_size << 48);
    push(s, (uint64_t)l->min_blocks << 32 | (uint32_t)l->max_blocks_per_cluster);
    push(s, (uint64_t)l->max_registers);
    push_attrs(s, l->attrs, l->nattrs);
    uint64_t config = number_key(s, mark);
    compare_emit(s, n->op);
    compare_emit(s, config);
    list(s, n->arg[TX_L_BODY]);
}

static void
compare_loop(canon *s, const tx_node *n)
{
    const tx_loop *l = n->u.loop;
    uint32_t mark = s->stack.n;

    push(s, (uint64_t)l->kind << 32 | (uint32_t)l->unroll);
    push(s, compare_expr(s, n->arg[0]));
    push(s, compare_expr(s, n->arg[1]));
    push(s, or_default(s, n->arg[2], 1));
    push_attrs(s, l->attrs, l->nattrs);
    push(s, l->var->dtype);
    push(s, compare_bind_var(s, l->var));
    uint64_t head = number_key(s, mark);
    compare_emit(s, n->op);
    compare_emit(s, head);
    list(s, n->arg[3]);
}

static void
scope_id(canon *s, const tx_node *n)
{
    const tx_scope_id *id = n->u.scope_id;
    uint32_t mark = s->stack.n;

    push(s, (uint64_t)id->binding << 24 | (uint64_t)id->nvars << 16 | (uint64_t)id->nextents << 8 | id->npreferred);
    push(s, id->dtype ? id->dtype : TX_I32);
    for (uint32_t i = 0; i < n->nargs; i++)
        push(s, compare_expr(s, n->arg[i]));
    for (unsigned i = 0; i < id->nvars; i++)
        push(s, compare_bind_var(s, id->var[i]));
    uint64_t head = number_key(s, mark);
    compare_emit(s, n->op);
    compare_emit(s, head);
}

static void
compare_bind(canon *s, const tx_node *n)
{
    uint32_t mark = s->stack.n;

    push(s, compare_expr(s, n->arg[0]));
    push_var_type(s, n->u.var);
    push(s, compare_bind_var(s, n->u.var));
    uint64_t head = number_key(s, mark);
    compare_emit(s, n->op);
    compare_emit(s, head);
}

/* Everything else: op, buffer or texts, expressions; the blocks follow. */
static void
compare_plain(canon *s, const tx_node *n, uint32_t exprs)
{
    uint32_t mark = s->stack.n;

    if (n->op == TX_OP_STORE) {
        push(s, buffer(s, n->u.buf));
        if (n->u.buf->flags & TX_BUF_FLAT && n->nargs > 2)
            exprs = 2;
    } else if (n->op == TX_OP_ATTR) {
        push_text(s, n->u.s);
    }
    for (uint32_t i = 0; i < exprs; i++)
        push(s, compare_expr(s, n->arg[i]));
    uint64_t head = number_key(s, mark);
    compare_emit(s, n->op);
    compare_emit(s, head);
}

static void
compare_stmt(canon *s, const tx_node *n)
{
    switch (n->op) {
    case TX_OP_SEQ:
        for (uint32_t i = 0; i < n->nargs; i++)
            compare_stmt(s, n->arg[i]);
        break;
    case TX_OP_ALLOC:
    case TX_OP_DECL:
    case TX_OP_MATCH: declaration(s, n); break;
    case TX_OP_BIND: compare_bind(s, n); break;
    case TX_OP_FOR: compare_loop(s, n); break;
    case TX_OP_SCOPE_ID: scope_id(s, n); break;
    case TX_OP_DEVICE: compare_device(s, n); break;
    case TX_OP_LAUNCH: compare_launch(s, n); break;
    case TX_OP_WHILE:
        compare_plain(s, n, 1);
        list(s, n->arg[1]);
        break;
    case TX_OP_IF:
        compare_plain(s, n, 1);
        list(s, n->arg[1]);
        list(s, n->arg[2]);
        break;
    case TX_OP_ATTR:
        compare_plain(s, n, 1);
        list(s, n->arg[1]);
        break;
    case TX_OP_ASSERT:
        compare_plain(s, n, 1);
        emit_texts(s, n->u.assertion->kind, n->u.assertion->parts, n->u.assertion->nparts);
        break;
    case TX_OP_EVAL:
        if (n->arg[0]->op == TX_OP_CALL_PACKED)
            packed_call(s, n->arg[0]->u.call->name, n->arg[0]->arg, n->arg[0]->nargs);
        else
            compare_plain(s, n, 1);
        break;
    default: compare_plain(s, n, n->nargs);
    }
}

static void
list(canon *s, const tx_node *n)
{
    compare_emit(s, TAG_OPEN);
    if (n)
        compare_stmt(s, n);
    compare_emit(s, TAG_CLOSE);
}

/* ---- functions and modules --------------------------------------------------------------------------------------- */

static void
param(canon *s, const tx_func *f, const tx_param *a)
{
    uint32_t mark = s->stack.n;

    push(s, a->flags & TX_PARAM_OPTIONAL_ABSENT);
    if (a->buffer && !(f->flags & TX_FUNC_KERNEL)) {
        compare_bind_var(s, a->buffer->data);
        push(s, buffer(s, a->buffer));
    } else if (a->var) {
        push_var_type(s, a->var);
        push(s, compare_bind_var(s, a->var));
    }
    compare_emit(s, number_key(s, mark));
}

static void
function(canon *s, const tx_func *f)
{
    uint32_t mark = s->stack.n;

    push_text(s, f->symbol);
    push(s, f->flags & TX_FUNC_PERSISTENT);
    push(s, f->ret == 0 ? TX_VOID : f->ret);
    push(s, f->nparams);
    uint64_t head = number_key(s, mark);
    compare_emit(s, head);
    for (uint32_t i = 0; i < f->nparams; i++)
        param(s, f, &f->params[i]);
    emit_attrs(s, f->attrs, f->nattrs);
    list(s, f->body);
}

static canon
new_canon(bool free_by_identity)
{
    canon s = {.c = tx_ctx_new(), .free_by_identity = free_by_identity};

    s.failed = s.c == NULL;
    return s;
}

static void
free_canon(canon *s)
{
    tx_map_free(&s->by_hash);
    tx_map_free(&s->nodes);
    tx_map_free(&s->vars);
    tx_map_free(&s->bufs);
    if (s->c)
        tx_ctx_free(s->c);
}

/* Compares and frees both. */
static bool
same_words(canon *a, canon *b)
{
    bool same = !a->failed && !b->failed && a->out.n == b->out.n &&
                (a->out.n == 0 || memcmp(a->out.at, b->out.at, a->out.n * sizeof *a->out.at) == 0);

    free_canon(a);
    free_canon(b);
    return same;
}

bool
tx_equal_funcs(const tx_func *a, const tx_func *b)
{
    canon x, y;

    if (a == b)
        return true;
    x = new_canon(false);
    y = new_canon(false);
    function(&x, a);
    function(&y, b);
    return same_words(&x, &y);
}

uint64_t
tx_hash_func(const tx_func *f)
{
    canon x = new_canon(false);
    uint64_t h;

    function(&x, f);
    h = tx_hash_bytes(x.out.at, x.out.n * sizeof *x.out.at, 0x71);
    free_canon(&x);
    return h;
}

bool
tx_equal_nodes(const tx_node *a, const tx_node *b)
{
    return tx_same_structure(a, b, true);
}

static canon
canon_of(const tx_node *n, bool free_by_identity)
{
    canon x = new_canon(free_by_identity);

    if (tx_is_stmt(n))
        list(&x, n);
    else
        compare_emit(&x, compare_expr(&x, n));
    return x;
}

bool
tx_same_structure(const tx_node *a, const tx_node *b, bool free_by_identity)
{
    canon x, y;

    if (a == b || !a || !b)
        return a == b;
    if (tx_is_stmt(a) != tx_is_stmt(b))
        return false;
    x = canon_of(a, free_by_identity);
    y = canon_of(b, free_by_identity);
    return same_words(&x, &y);
}

uint64_t
tx_hash_node(const tx_node *n, bool free_by_identity)
{
    canon x = canon_of(n, free_by_identity);
    uint64_t h = tx_hash_bytes(x.out.at, x.out.n * sizeof *x.out.at, 0x72);

    free_canon(&x);
    return h;
}

static const tx_func *
find_func(const tx_module *m, const tx_str *name)
{
    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (strcmp(m->names[i]->text, name->text) == 0)
            return m->funcs[i];
    return NULL;
}

bool
tx_equal_modules(const tx_module *a, const tx_module *b)
{
    canon x, y;

    if (a == b)
        return true;
    if (a->nfuncs != b->nfuncs)
        return false;
    for (uint32_t i = 0; i < a->nfuncs; i++) {
        const tx_func *other = find_func(b, a->names[i]);
        if (!other || !tx_equal_funcs(a->funcs[i], other))
            return false;
    }
    x = new_canon(false);
    y = new_canon(false);
    emit_attrs(&x, a->attrs, a->nattrs);
    emit_attrs(&y, b->attrs, b->nattrs);
    return same_words(&x, &y);
}
