/* T.vectorized, and vectors as the user wrote them: contiguous accesses that are provably aligned to their size become vector accesses of 2 to 16 bytes, and
 * what is computed from them vectors; a body that does not allow it becomes a serial loop (lowering.md 4.10, 5.5). Either
 * way the values are those of the turns taken one after the other: a store that another access of the body may meet in
 * another turn keeps the loop serial. The alignment that an access relies on is recorded in the buffer: allocations are
 * aligned to it, and a parameter's is checked at the call. Runs on flat accesses. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct vectorizer {
    tx_scoped s;
    tx_map align; /* data variable -> bytes relied upon */
} vectorizer;

/* One attempt: a body, its loop variable and a number of lanes. In the body the variable is the first lane's value. */
typedef struct attempt {
    tx_ctx *c;
    tx_facts *facts;
    tx_var *v;
    int64_t step, turns;
    unsigned lanes;
    tx_map lets;                      /* variable bound to a vector -> its vector variable's node */
    tx_map align;                     /* as above, wanted by this attempt */
    TX_VEC(const tx_node *) accesses; /* scalar LOADs and STOREs met */
    bool small;                       /* some access moves at most 16 bytes: more lanes would gain nothing */
} attempt;

/* ---- affine integers ------------------------------------------------------------------------------------------------- */

static bool
varies(const attempt *a, const tx_node *e)
{
    if (e->op == TX_OP_VAR)
        return e->u.var == a->v || tx_map_ptr(&a->lets, e->u.var);
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->arg[i] && varies(a, e->arg[i]))
            return true;
    return false;
}

/* The expression's value does not wrap anywhere in its bounds. */
static bool
exact(const attempt *a, const tx_node *e)
{
    int64_t lo;
    uint64_t hi;
    tx_bounds b = tx_bounds_of(a->facts, e);

    return tx_int_limits(e->dtype, &lo, &hi) && (b.lo > lo || b.hi < (int64_t)(hi > INT64_MAX ? INT64_MAX : hi));
}

/* e == *k * v + something without v. */
static bool
slope(const attempt *a, const tx_node *e, int64_t *k)
{
    int64_t x, y;

    *k = 0;
    if (!varies(a, e))
        return true;
    switch (e->op) {
    case TX_OP_VAR: *k = 1; return e->u.var == a->v;
    case TX_OP_CAST:
        return tx_is_int(e->arg[0]->dtype) && tx_bits(e->dtype) >= tx_bits(e->arg[0]->dtype) && exact(a, e->arg[0]) &&
               slope(a, e->arg[0], k);
    case TX_OP_ADD: return slope(a, e->arg[0], &x) && slope(a, e->arg[1], &y) && tx_add_i64(x, y, k);
    case TX_OP_SUB: return slope(a, e->arg[0], &x) && slope(a, e->arg[1], &y) && tx_sub_i64(x, y, k);
    case TX_OP_MUL:
        if (tx_const_i64(e->arg[1], &x))
            return slope(a, e->arg[0], &y) && tx_mul_i64(x, y, k);
        return tx_const_i64(e->arg[0], &x) && slope(a, e->arg[1], &y) && tx_mul_i64(x, y, k);
    default: return false;
    }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------------- */

/* The pointer was computed or passed, so that nothing is known of where it points. */
static bool
is_computed(const tx_buffer *b)
{
    return b->data->kind != TX_VAR_DATA || !b->data->buffer || b->data->buffer->flags & (TX_BUF_VIEW | TX_BUF_PASSED);
}

static bool
want_align(attempt *a, const tx_buffer *b, int64_t bytes)
{
    uint64_t was = 0;

    if (is_computed(b))
        return b->align >= bytes;
    tx_map_get(&a->align, (uint64_t)(uintptr_t)b->data, &was);
    return (int64_t)was >= bytes || tx_map_put(&a->align, (uint64_t)(uintptr_t)b->data, (uint64_t)bytes);
}

/* Bytes that move at once in an access of `nbytes`: all of them, or 16 at a time; 0: lane by lane. */
static int64_t
word_of(int64_t nbytes)
{
    if (nbytes % 16 == 0)
        return 16;
    return nbytes == 1 || nbytes == 2 || nbytes == 4 || nbytes == 8 ? nbytes : 0;
}

/* Is every word of `lanes` consecutive elements from `base` at a multiple of its size, counted from the data? */
static bool
words_fit(tx_facts *f, const tx_buffer *b, const tx_node *base, unsigned lanes, int64_t *word)
{
    int64_t elem = tx_kinds[tx_kind(b->dtype)].bytes, m, r, step;

    tx_divisor_of(f, base, &m, &r);
    if (tx_bits(b->dtype) == 4) { /* two to a byte */
        *word = 1;
        return lanes % 2 == 0 && m % 2 == 0 && r % 2 == 0;
    }
    *word = word_of(elem * lanes);
    if (*word == 0)
        return false;
    step = *word > elem ? *word / elem : 1;
    return r % step == 0 && m % step == 0;
}

/* Can a->lanes consecutive elements from `base` be one access? */
static bool
vectorize_fits(attempt *a, const tx_buffer *b, const tx_node *base)
{
    int64_t bits = (int64_t)tx_bits(b->dtype) * a->lanes, word;

    if (tx_lanes(b->dtype) != 1 || tx_is_handle(b->dtype) || b->flags & TX_BUF_VOLATILE || b->scope == TX_TMEM ||
        bits > 512 || !words_fit(a->facts, b, base, a->lanes, &word))
        return false;
    a->small |= bits <= 128;
    return want_align(a, b, word);
}

/* ---- expressions -------------------------------------------------------------------------------------------------------- */

static const tx_node *vectorize_vector(attempt *a, const tx_node *e);

static const tx_node *
spread(attempt *a, const tx_node *e)
{
    return e && tx_lanes(e->dtype) == 1 ? tx_broadcast(a->c, e, a->lanes) : e;
}

static bool
elementwise(const tx_node *e)
{
    if (tx_has(e->op, TX_PROP_LAZY | TX_PROP_STMT | TX_PROP_EFFECT | TX_PROP_READS | TX_PROP_COORD))
        return false;
    switch (tx_ops[e->op].rule) {
    case TX_RULE_ARITH:
    case TX_RULE_COMPARE:
    case TX_RULE_LOGIC:
    case TX_RULE_SHIFT:
    case TX_RULE_SAME:
    case TX_RULE_FLOAT:
    case TX_RULE_FLOAT2: return true;
    default: return e->op == TX_OP_CAST || e->op == TX_OP_SELECT;
    }
}

/* Loads inside what stays scalar are accesses too. */
static bool
note_loads(attempt *a, const tx_node *e)
{
    if (!(e->flags & TX_NF_IMPURE))
        return true;
    if (tx_has(e->op, TX_PROP_EFFECT) || (e->op == TX_OP_LOAD && !tx_push(a->c, &a->accesses, e)))
        return false;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (e->arg[i] && !note_loads(a, e->arg[i]))
            return false;
    return true;
}

/* A LOAD or STORE: args from `first` are the element index and the declared indices. */
static const tx_node *
access_lanes(attempt *a, const tx_node *n, uint32_t first, const tx_node *value)
{
    const tx_node *args[TX_MAX_RANK + 2] = {NULL}, *base = n->arg[first], *out;
    tx_buffer *b = n->u.buf;
    int64_t k;

    if (!(b->flags & TX_BUF_FLAT) || tx_lanes(base->dtype) != 1 || !slope(a, base, &k) || k * a->step != 1 ||
        !vectorize_fits(a, b, base) || !note_loads(a, base) || !tx_push(a->c, &a->accesses, n))
        return NULL;
    if (first)
        args[0] = value;
    args[first] = tx_ramp(a->c, base, tx_int(a->c, base->dtype, 1), a->lanes);
    for (uint32_t i = first + 1; i < n->nargs; i++)
        if (!(args[i] = vectorize_vector(a, n->arg[i])))
            break;
    for (uint32_t i = first; i < n->nargs; i++)
        if (!args[i])
            return NULL;
    out = tx_make_at(a->c, n->span, n->op, first ? TX_VOID : tx_with_lanes(n->dtype, a->lanes), n->u, args, n->nargs);
    return out ? tx_with_flags(a->c, out, out->flags | (n->flags & TX_NF_INBOUNDS)) : NULL;
}

/* The expression with a lane for each turn; one that is the same in all turns stays scalar. NULL: not possible. */
static const tx_node *
vectorize_vector(attempt *a, const tx_node *e)
{
    const tx_node *args[8], *let;
    int64_t k;

    if (!varies(a, e))
        return note_loads(a, e) ? e : NULL;
    if (e->op == TX_OP_VAR && e->u.var != a->v) {
        let = tx_map_ptr(&a->lets, e->u.var);
        return let;
    }
    if (e->op == TX_OP_LOAD)
        return access_lanes(a, e, 0, NULL);
    if (tx_lanes(e->dtype) != 1)
        return NULL;
    if (tx_is_int(e->dtype) && !(e->flags & TX_NF_IMPURE) && slope(a, e, &k) && tx_mul_i64(k, a->step, &k))
        return tx_ramp(a->c, e, tx_int(a->c, e->dtype, k), a->lanes);
    if (!elementwise(e) || e->nargs > 8)
        return NULL;
    for (uint32_t i = 0; i < e->nargs; i++)
        if (!(args[i] = spread(a, vectorize_vector(a, e->arg[i]))))
            return NULL;
    return tx_make_at(a->c, e->span, e->op, tx_with_lanes(e->dtype, a->lanes), e->u, args, e->nargs);
}

/* ---- statements --------------------------------------------------------------------------------------------------------- */

static const tx_node *vectorize_statement(attempt *a, const tx_node *n);

static const tx_node *
vectorize_bind(attempt *a, const tx_node *n)
{
    const tx_node *value = vectorize_vector(a, n->arg[0]);
    tx_var *v;

    if (!value)
        return NULL;
    if (tx_lanes(value->dtype) == 1)
        return tx_with_args(a->c, n, &value);
    v = tx_new_var(a->c, TX_VAR_LET, n->u.var->name, value->dtype);
    if (!v || !tx_map_put_ptr(&a->lets, n->u.var, v->node))
        return NULL;
    return tx_make_at(a->c, n->span, TX_OP_BIND, TX_VOID, (tx_payload){.var = v}, &value, 1);
}

static const tx_node *
vectorize_sequence(attempt *a, const tx_node *n)
{
    const tx_node **out = tx_new(a->c, const tx_node *, n->nargs);

    for (uint32_t i = 0; out && i < n->nargs; i++)
        if (!(out[i] = vectorize_statement(a, n->arg[i])))
            return NULL;
    return out ? tx_seq(a->c, out, n->nargs) : NULL;
}

static const tx_node *
vectorize_branch(attempt *a, const tx_node *n)
{
    const tx_node *args[3] = {vectorize_vector(a, n->arg[0]), NULL, NULL};

    if (!args[0] || tx_lanes(args[0]->dtype) != 1)
        return NULL;
    args[1] = vectorize_statement(a, n->arg[1]);
    args[2] = n->arg[2] ? vectorize_statement(a, n->arg[2]) : NULL;
    return args[1] && (args[2] || !n->arg[2]) ? tx_with_args(a->c, n, args) : NULL;
}

static const tx_node *
vectorize_statement(attempt *a, const tx_node *n)
{
    const tx_node *value;

    switch (n->op) {
    case TX_OP_SEQ: return vectorize_sequence(a, n);
    case TX_OP_BIND: return vectorize_bind(a, n);
    case TX_OP_IF: return vectorize_branch(a, n);
    case TX_OP_STORE:
        value = spread(a, vectorize_vector(a, n->arg[0]));
        return value ? access_lanes(a, n, 1, value) : NULL;
    default: return NULL;
    }
}

/* Both indices move alike from turn to turn, and start further apart than all turns reach. */
static bool
far_apart(attempt *a, const tx_node *x, const tx_node *y)
{
    int64_t k, same, reach;
    const tx_node *apart;
    tx_bounds b;

    if (x->dtype != y->dtype || (x->flags | y->flags) & TX_NF_IMPURE || !slope(a, x, &k) || !slope(a, y, &same) ||
        k != same || !tx_mul_i64(k, a->step, &reach) || !tx_mul_i64(reach < 0 ? -reach : reach, a->turns, &reach) ||
        reach > INT32_MAX)
        return false;
    /* should the difference wrap, then they are at least 2^31 apart */
    apart = tx_binary(a->c, TX_OP_SUB, x, y);
    apart = apart ? tx_simplify(a->facts, apart) : NULL;
    if (!apart)
        return false;
    b = tx_bounds_of(a->facts, apart);
    return b.lo >= reach || b.hi <= -reach;
}

/* Two accesses of which one stores: the same element in the same turn, or never the same memory. */
static bool
independent(attempt *a, const tx_node *store, const tx_node *other)
{
    const tx_buffer *x = store->u.buf, *y = other->u.buf;
    const tx_node *at = other->arg[other->op == TX_OP_STORE];

    if (x->data == y->data)
        return x->dtype == y->dtype && (tx_same_expr(store->arg[1], at) || far_apart(a, store->arg[1], at));
    return x->scope != y->scope || (!is_computed(x) && !is_computed(y));
}

static bool
all_independent(attempt *a)
{
    for (uint32_t i = 0; i < a->accesses.n; i++)
        for (uint32_t k = 0; a->accesses.at[i]->op == TX_OP_STORE && k < a->accesses.n; k++)
            if (!independent(a, a->accesses.at[i], a->accesses.at[k]))
                return false;
    return true;
}

/* ---- loops ---------------------------------------------------------------------------------------------------------------- */

enum { INLINE_NODES = 256 }; /* larger values stay bindings, lest chains of them grow without bound */

/* Nodes of the expression as a tree, at most `most`. */
static uint32_t
tree_size(const tx_node *e, uint32_t most)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < e->nargs && n < most; i++)
        if (e->arg[i])
            n += tree_size(e->arg[i], most - n);
    return n;
}

/* Pure integer bindings of the body are written into what follows, so that indices show what they depend on. */
static const tx_node *
inlined(tx_ctx *c, const tx_node *body)
{
    for (uint32_t i = 0; body && body->op == TX_OP_SEQ && i < body->nargs;) {
        const tx_node *n = body->arg[i], **rest;
        tx_var *v = n->u.var;
        if (n->op != TX_OP_BIND || n->arg[0]->flags & TX_NF_IMPURE || !(tx_is_int(v->dtype) || tx_is_bool(v->dtype)) ||
            tree_size(n->arg[0], INLINE_NODES) >= INLINE_NODES) {
            i++;
            continue;
        }
        rest = tx_new(c, const tx_node *, body->nargs);
        if (!rest)
            return NULL;
        for (uint32_t k = 0; k < i; k++)
            rest[k] = body->arg[k];
        for (uint32_t k = i + 1; k < body->nargs; k++)
            if (!(rest[k - 1] = tx_substitute(c, body->arg[k], &v, &n->arg[0], 1)))
                return NULL;
        body = tx_seq(c, rest, body->nargs - 1);
    }
    return body;
}

static const tx_node *
loop_over(tx_ctx *c, const tx_node *n, int kind, const tx_node *step, const tx_node *body)
{
    const tx_node *args[4] = {n->arg[0], n->arg[1], step, body};
    tx_loop *loop = tx_new(c, tx_loop, 1);

    if (!loop || !step || !body)
        return NULL;
    *loop = *n->u.loop;
    loop->kind = (uint8_t)kind;
    return tx_make_at(c, n->span, TX_OP_FOR, TX_VOID, (tx_payload){.loop = loop}, args, 4);
}

static bool
keep_align(vectorizer *v, const tx_map *align)
{
    uint64_t was;

    for (uint32_t i = 0; i < align->cap; i++) {
        uint64_t key = align->slot[i].key, bytes = align->slot[i].value;
        if (!key || (tx_map_get(&v->align, key, &was) && was >= bytes))
            continue;
        if (!tx_map_put(&v->align, key, bytes))
            return tx_fail(v->s.r.c, 0, TX_E_NO_MEMORY) != NULL;
    }
    return true;
}

/* The loop in steps of `lanes` turns, or NULL when that is not possible or a fault was recorded. */
static const tx_node *
try_lanes(vectorizer *v, const tx_node *n, const tx_node *body, int64_t step, int64_t turns, unsigned lanes)
{
    tx_ctx *c = v->s.r.c;
    attempt a = {.c = c, .facts = v->s.facts, .v = n->u.loop->var, .step = step, .turns = turns, .lanes = lanes};
    const tx_node *by = tx_int(c, a.v->dtype, step * (int64_t)lanes), *out = NULL;
    uint32_t mark = tx_facts_push(a.facts);
    tx_var *var = a.v;

    if (by) {
        if (turns == (int64_t)lanes)
            tx_facts_equal(a.facts, a.v, n->arg[0]);
        else
            tx_facts_loop(c, a.facts, a.v, n->arg[0], n->arg[1], by);
        out = vectorize_statement(&a, body);
        if (out && !all_independent(&a))
            out = NULL;
    }
    tx_facts_pop(a.facts, mark);
    if (out && a.small && keep_align(v, &a.align))
        out = turns == (int64_t)lanes ? tx_substitute(c, out, &var, &n->arg[0], 1)
                                      : loop_over(c, n, turns / lanes <= 16 ? TX_LOOP_UNROLL : TX_LOOP_SERIAL, by, out);
    else
        out = NULL;
    tx_map_free(&a.lets);
    tx_map_free(&a.align);
    return out;
}

static const char *
jump_in(const tx_node *n)
{
    const char *found = NULL;

    if (n->op == TX_OP_BREAK)
        return "break";
    if (n->op == TX_OP_CONTINUE)
        return "continue";
    if (n->op == TX_OP_FOR || n->op == TX_OP_WHILE || !tx_is_stmt(n))
        return NULL;
    for (uint32_t i = 0; !found && i < n->nargs; i++)
        found = n->arg[i] ? jump_in(n->arg[i]) : NULL;
    return found;
}

static const tx_node *
vectorize_loop(tx_rewriter *r, const tx_node *n)
{
    vectorizer *v = ((tx_scoped *)r->self)->pass;
    int64_t start, step, turns;
    const tx_node *out, *body;
    uint32_t errors = r->c->nerrors;

    if (n->u.loop->kind != TX_LOOP_VECTOR)
        return tx_scoped_for(r, n);
    if (!tx_loop_turns(n, &start, &step, &turns))
        return tx_fail(r->c, n->span, TX_E_VECTOR_EXTENT, tx_expr_text(r->c, n->arg[1]));
    if (jump_in(n->arg[3]))
        return tx_fail(r->c, n->span, TX_E_VECTOR_JUMP, jump_in(n->arg[3]));
    body = inlined(r->c, n->arg[3]);
    for (unsigned lanes = 16; body && lanes >= 2; lanes /= 2) {
        if (turns == 0 || turns % lanes != 0)
            continue;
        out = try_lanes(v, n, body, step, turns, lanes);
        if (out || r->c->nerrors > errors)
            return out;
    }
    n = loop_over(r->c, n, TX_LOOP_SERIAL, n->arg[2], n->arg[3]);
    return n ? tx_scoped_for(r, n) : NULL;
}

/* ---- vector accesses as the user wrote them -------------------------------------------------------------------------- */

/* base, base + 1, ...: an index that promises nothing, so that the lanes move one by one. */
static const tx_node *
lane_by_lane(tx_ctx *c, const tx_node *ramp)
{
    const tx_node *lanes[TX_MAX_LANES];
    unsigned n = tx_lanes(ramp->dtype);

    for (unsigned i = 0; i < n; i++)
        if (!(lanes[i] = tx_binary(c, TX_OP_ADD, ramp->arg[0], tx_int(c, ramp->arg[0]->dtype, i))))
            return NULL;
    return tx_make_at(c, ramp->span, TX_OP_VECTOR, ramp->dtype, (tx_payload){0}, lanes, n);
}

/* LOAD (first 0) or STORE (first 1) of several lanes: alignment proved and recorded, or no promise. */
static const tx_node *
vectorize_written(tx_rewriter *r, const tx_node *n, uint32_t first)
{
    vectorizer *v = ((tx_scoped *)r->self)->pass;
    const tx_buffer *b = n->u.buf;
    const tx_node *index, *args[TX_MAX_RANK + 2];
    attempt a = {.c = r->c, .facts = v->s.facts};
    int64_t word;
    bool ok;

    n = tx_scoped_children(r, n);
    if (!n || !(b->flags & TX_BUF_FLAT) || b->flags & TX_BUF_VOLATILE)
        return n;
    index = n->arg[first];
    if (tx_lanes(b->dtype) > 1 && tx_lanes(index->dtype) == 1) {
        word = word_of((int64_t)tx_kinds[tx_kind(b->dtype)].bytes * tx_lanes(b->dtype));
        ok = word && want_align(&a, b, word);
    } else if (index->op == TX_OP_RAMP && tx_is_const(index->arg[1], 1)) {
        ok = words_fit(a.facts, b, index->arg[0], tx_lanes(index->dtype), &word) && want_align(&a, b, word);
        if (!ok && word > tx_kinds[tx_kind(b->dtype)].bytes) {
            memcpy(args, n->arg, n->nargs * sizeof *args);
            args[first] = lane_by_lane(r->c, index);
            n = args[first] ? tx_with_args(r->c, n, args) : NULL;
        }
    } else {
        return n;
    }
    if (ok && !keep_align(v, &a.align))
        n = NULL;
    tx_map_free(&a.align);
    return n;
}

static const tx_node *
vectorize_load(tx_rewriter *r, const tx_node *n)
{
    return vectorize_written(r, n, 0);
}

static const tx_node *
vectorize_store(tx_rewriter *r, const tx_node *n)
{
    return vectorize_written(r, n, 1);
}

/* ---- alignment relied upon -------------------------------------------------------------------------------------------------- */

/* What an allocation has anyway, and what any tensor of the element type has. */
static int64_t
natural_align(const tx_buffer *b)
{
    if (b->align > 0)
        return b->align;
    if (b->scope == TX_GLOBAL)
        return tx_kinds[tx_kind(b->dtype)].bytes;
    return b->scope == TX_LOCAL ? tx_dtype_bytes(b->dtype) : 64;
}

static tx_buffer *
raised(tx_rewriter *r, tx_buffer *b)
{
    vectorizer *v = r->self;
    uint64_t bytes;
    tx_buffer *copy;

    if (!tx_map_get(&v->align, (uint64_t)(uintptr_t)b->data, &bytes) || natural_align(b) >= (int64_t)bytes)
        return b;
    copy = tx_copy_buffer(r->c, b);
    if (!copy)
        return NULL;
    copy->align = (int64_t)bytes;
    return tx_map_put_ptr(&r->bufs, b, copy) ? copy : tx_fail(r->c, 0, TX_E_NO_MEMORY);
}

static const tx_node *
vectorize_alloc(tx_rewriter *r, const tx_node *n)
{
    return raised(r, n->u.buf) ? tx_rewrite_children(r, n) : NULL;
}

static tx_func *
record_align(vectorizer *v, tx_ctx *c, tx_func *f)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn, .self = v};
    tx_param *params = tx_new(c, tx_param, f->nparams ? f->nparams : 1);
    const tx_node *body = NULL;
    tx_func *out;
    bool ok = fn && params;

    for (uint32_t i = 0; ok && i < f->nparams; i++) {
        params[i] = f->params[i];
        if (params[i].buffer)
            ok = (params[i].buffer = raised(&r, params[i].buffer)) != NULL;
    }
    if (ok) {
        fn[TX_OP_ALLOC] = vectorize_alloc;
        body = tx_rewrite(&r, f->body);
    }
    tx_rewriter_free(&r);
    out = body ? tx_copy_func(c, f) : NULL;
    if (!out)
        return NULL;
    out->params = params;
    out->body = body;
    return out;
}

tx_func *
tx_vectorize_func(tx_ctx *c, tx_func *f)
{
    vectorizer v = {0};
    const tx_node *body = NULL;
    tx_span saved = c->span;

    if (f->flags & TX_FUNC_KERNEL)
        return f;
    if (tx_scoped_init(&v.s, c)) {
        v.s.pass = &v;
        v.s.r.refold = false;
        v.s.fn[TX_OP_FOR] = vectorize_loop;
        v.s.fn[TX_OP_LOAD] = vectorize_load;
        v.s.fn[TX_OP_STORE] = vectorize_store;
        v.s.fn[TX_OP_ALLOC] = v.s.fn[TX_OP_DECL] = v.s.fn[TX_OP_MATCH] = tx_scoped_children;
        tx_scoped_symbols(&v.s, f);
        body = tx_rewrite(&v.s.r, f->body);
    }
    tx_scoped_free(&v.s);
    f = tx_func_with_body(c, f, body);
    if (f && v.align.n > 0)
        f = record_align(&v, c, f);
    tx_map_free(&v.align);
    c->span = saved;
    return f;
}
