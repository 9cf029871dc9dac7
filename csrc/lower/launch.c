/* The launch shape of a device region: rules for scope ids, closure of their extents over the hierarchy
 * kernel > cluster > CTA > warpgroup > warp > thread, and agreement with the launch configuration (language.md 10.1,
 * 10.2). An extent is an int64 expression over host values. SPDX-License-Identifier: Apache-2.0 */
#include "lower/resolve.h"

enum level { KERNEL, CLUSTER, CTA, WARPGROUP, WARP, THREAD, PAIR, NLEVELS };
static const char *const level_names[NLEVELS] = {"kernel", "cluster", "cta", "warpgroup", "warp", "thread", "cta_pair"};

static const struct {
    uint8_t parent, child;
    bool one_dim, warps, groups;
} bindings[TX_B__COUNT] = {
    [TX_B_KERNEL_CLUSTER] = {KERNEL, CLUSTER, false, false, false},
    [TX_B_KERNEL_CTA] = {KERNEL, CTA, false, false, false},
    [TX_B_CLUSTER_CTA] = {CLUSTER, CTA, false, false, false},
    [TX_B_CTA_WARPGROUP] = {CTA, WARPGROUP, true, true, true},
    [TX_B_CTA_WARP] = {CTA, WARP, true, true, false},
    [TX_B_WARPGROUP_WARP] = {WARPGROUP, WARP, true, true, true},
    [TX_B_WARP_THREAD] = {WARP, THREAD, true, true, false},
    [TX_B_CTA_THREAD] = {CTA, THREAD, false, false, false},
    [TX_B_WARPGROUP_THREAD] = {WARPGROUP, THREAD, true, true, true},
    [TX_B_CLUSTER_PAIR] = {CLUSTER, PAIR, true, false, false},
};

/* The chains p > q > r over which extents compose. Pairs of CTAs are no level of their own. */
static const uint8_t chains[][3] = {
    {KERNEL, CLUSTER, CTA}, {CTA, WARPGROUP, WARP},   {WARPGROUP, WARP, THREAD},
    {CTA, WARP, THREAD},    {CTA, WARPGROUP, THREAD},
};
enum { NCHAINS = sizeof chains / sizeof *chains };

typedef struct launch_extent {
    const tx_node *value; /* int64; NULL: unknown */
    tx_span span;
    bool declared; /* written as a scope id's extent */
} launch_extent;
typedef struct closure {
    tx_region *g;
    launch_extent e[NLEVELS][NLEVELS];
} closure;

/* ---- rules of single scope ids ------------------------------------------------------------------------------------ */

/* Host value of an extent: bindings of the device zone are written out; what only a thread can know is refused. */
typedef struct on_host {
    tx_region *g;
    const tx_node *fault;
} on_host;

static const tx_node *
host_var(tx_rewriter *r, const tx_node *n)
{
    on_host *h = r->self;
    uint64_t at;
    const tx_node *value;

    if (n->u.var->kind == TX_VAR_SCOPE_ID) {
        h->fault = n;
        return n;
    }
    if (!tx_map_get(&h->g->bound, (uint64_t)(uintptr_t)n->u.var, &at))
        return n;
    value = (const tx_node *)(uintptr_t)at;
    if (value->op == TX_OP_FOR) {
        h->fault = n;
        return n;
    }
    return tx_rewrite(r, value);
}

static const tx_node *
not_on_host(tx_rewriter *r, const tx_node *n)
{
    on_host *h = r->self;

    h->fault = n;
    return n;
}

static const tx_node *
host_value(tx_region *g, tx_span span, const char *call, const tx_node *e)
{
    tx_rewrite_fn *fn = tx_new(g->c, tx_rewrite_fn, TX_OP__COUNT);
    on_host h = {.g = g};
    tx_rewriter r = {.c = g->c, .fn = fn, .self = &h, .refold = true};
    const tx_node *out;

    if (!fn)
        return NULL;
    for (unsigned op = 0; op < TX_OP__COUNT; op++)
        if (!tx_has(op, TX_PROP_STMT) && (tx_has(op, TX_PROP_READS | TX_PROP_EFFECT | TX_PROP_COORD) ||
                                          (op >= TX_OP_THREAD_IDX && op <= TX_OP_THREAD_IN_WG)))
            fn[op] = not_on_host;
    fn[TX_OP_VAR] = host_var;
    out = tx_rewrite(&r, e);
    tx_rewriter_free(&r);
    if (out && (h.fault || !tx_is_int(out->dtype) || tx_lanes(out->dtype) != 1))
        return tx_fail(g->c, span, TX_E_SCOPE_EXTENT_HOST, tx_expr_text(g->c, e), call);
    return out;
}

static bool
cluster_declared(const tx_region *g)
{
    for (uint32_t i = 0; i < g->ids.n; i++)
        if (g->ids.at[i]->u.scope_id->binding == TX_B_CLUSTER_CTA)
            return true;
    return false;
}

static bool
check_id(tx_region *g, const tx_node *n)
{
    const tx_scope_id *s = n->u.scope_id;
    tx_ctx *c = g->c;

    if (TX_NEVER(s->nextents > 3 || s->nvars > 3)) /* refused where it is made */
        tx_fail(c, n->span, TX_E_INTERNAL, "a scope id of more than 3 dimensions");
    else if (bindings[s->binding].one_dim && s->nextents > 1)
        tx_fail(c, n->span, TX_E_SCOPE_ONE_DIM, tx_binding_calls[s->binding], s->nextents);
    else if (s->nextents == 0 && s->nvars != 1)
        tx_fail(c, n->span, TX_E_SCOPE_DEFERRED_VARS, s->nvars);
    else if (s->nextents > 0 && s->nvars != s->nextents)
        tx_fail(c, n->span, TX_E_SCOPE_RANK, s->nvars, s->nextents);
    else if (s->npreferred && s->binding != TX_B_CLUSTER_CTA && !(s->binding == TX_B_KERNEL_CTA && cluster_declared(g)))
        tx_fail(c, n->span, TX_E_PREFERRED_SCOPE);
    else if (s->npreferred && s->npreferred != s->nextents)
        tx_fail(c, n->span, TX_E_PREFERRED_SIZE, s->nextents, s->npreferred);
    else if (s->binding == TX_B_CLUSTER_PAIR && !cluster_declared(g) && !g->args[TX_L_CLUSTER_X])
        tx_fail(c, n->span, TX_E_PAIR_CLUSTER);
    else
        return true;
    return false;
}

/* Checks every id and puts host values in place of its extents. */
static bool
check_ids(tx_region *g)
{
    for (uint32_t i = 0; i < g->ids.n; i++) {
        const tx_node *n = g->ids.at[i], **args;
        if (!check_id(g, n))
            return false;
        args = tx_new(g->c, const tx_node *, n->nargs ? n->nargs : 1);
        if (!args)
            return false;
        for (uint32_t k = 0; k < n->nargs; k++)
            if (!(args[k] = host_value(g, n->span, tx_binding_calls[n->u.scope_id->binding], n->arg[k])))
                return false;
        g->ids.at[i] = tx_with_args(g->c, n, args);
        if (!g->ids.at[i])
            return false;
        g->needs_warps |= bindings[n->u.scope_id->binding].warps;
    }
    return true;
}

int
tx_thread_tag(const char *key)
{
    static const struct {
        const char *prefix;
        int first;
    } tags[] = {
        {"blockIdx.", TX_L_GRID_X},
        {"threadIdx.", TX_L_BLOCK_X},
        {"clusterCtaIdx.", TX_L_CLUSTER_X},
        {"preferredClusterCtaIdx.", TX_L_PREFERRED_X},
    };

    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        size_t n = strlen(tags[i].prefix);
        if (strncmp(key, tags[i].prefix, n) == 0 && key[n] >= 'x' && key[n] <= 'z' && !key[n + 1])
            return tags[i].first + (key[n] - 'x');
    }
    return -1;
}

/* Extents that T.launch_thread gives, as if the launch configuration said them. */
static bool
take_threads(tx_region *g)
{
    for (uint32_t i = 0; i < g->threads.n; i++) {
        const tx_node *n = g->threads.at[i], *v = host_value(g, n->span, "launch_thread", n->arg[0]), *was;
        int field = tx_thread_tag(n->u.s->text);
        if (!v)
            return false;
        was = g->args[field];
        if (was && tx_prove(g->facts, tx_binary(g->c, TX_OP_EQ, was, v)) != 1) {
            tx_fail(g->c, n->span, TX_E_LAUNCH_THREAD_EXTENT, n->u.s->text, tx_expr_text(g->c, was),
                    tx_expr_text(g->c, v));
            return false;
        }
        g->args[field] = v;
    }
    for (int first = TX_L_GRID_X; first <= TX_L_PREFERRED_X; first += 3)
        if (!g->args[first] && (g->args[first + 1] || g->args[first + 2]) &&
            !(g->args[first] = tx_int(g->c, TX_I32, 1)))
            return false;
    return true;
}

/* ---- closure ------------------------------------------------------------------------------------------------------ */

static const char *
binding_text(tx_ctx *c, int p, int r)
{
    const tx_str *s = tx_intern_f(c, "%s->%s", level_names[p], level_names[r]);
    return s ? s->text : "?";
}

static const tx_node *
uncast(tx_rewriter *r, const tx_node *n)
{
    return n->dtype == TX_I64 && tx_is_int(n->arg[0]->dtype) ? tx_rewrite(r, n->arg[0]) : tx_rewrite_children(r, n);
}

/* An extent as its author wrote it: without the conversions to int64. */
static const char *
launch_extent_text(tx_ctx *c, const tx_node *e)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = c, .fn = fn};
    const tx_str *s;

    if (e->op == TX_OP_INT || !fn) {
        s = tx_intern_f(c, "%lld", e->op == TX_OP_INT ? (long long)e->u.i : 0);
        return s ? s->text : "?";
    }
    fn[TX_OP_CAST] = uncast;
    e = tx_rewrite(&r, e);
    tx_rewriter_free(&r);
    return e ? tx_expr_text(c, e) : "?";
}

/* 1 equal, 0 different, -1 not known. */
static int
same_extent(closure *k, const tx_node *a, const tx_node *b)
{
    if (a == b || tx_same_expr(a, b))
        return 1;
    if (a->op == TX_OP_INT && b->op == TX_OP_INT)
        return a->u.i == b->u.i;
    return tx_prove(k->g->facts, tx_binary(k->g->c, TX_OP_EQ, a, b));
}

static bool
inconsistent(closure *k, int p, int r, const tx_node *a, const tx_node *b, tx_span at, tx_span other)
{
    tx_ctx *c = k->g->c;

    tx_fail(c, at, TX_E_SCOPE_INCONSISTENT, binding_text(c, p, r), launch_extent_text(c, a), launch_extent_text(c, b));
    tx_diag_other(c, other != at ? other : 0);
    return false;
}

static bool
add(closure *k, int p, int r, const tx_node *value, tx_span span, bool declared)
{
    launch_extent *e = &k->e[p][r];
    int same;

    if (!value)
        return false;
    if (!e->value) {
        *e = (launch_extent){value, span, declared};
        return true;
    }
    same = same_extent(k, e->value, value);
    if (same == 0 || (same < 0 && declared && e->declared))
        return inconsistent(k, p, r, e->value, value, span, e->span);
    return true;
}

static const tx_node *
launch_product(tx_ctx *c, const tx_node *const *v, uint32_t n)
{
    const tx_node *all = tx_int(c, TX_I64, 1);

    for (uint32_t i = 0; i < n; i++)
        if (v[i])
            all = tx_binary(c, TX_OP_MUL, all, tx_i64(c, v[i]));
    return all;
}

/* p->r divided by p->q or q->r; *out stays NULL when divisibility is not known. */
static bool
launch_quotient(closure *k, const launch_extent *whole, const launch_extent *part, int p, int r, const tx_node **out)
{
    tx_ctx *c = k->g->c;
    const tx_node *rest;
    int exact;

    *out = NULL;
    if (tx_is_const(part->value, 0))
        return true;
    rest = tx_binary(c, TX_OP_FLOORMOD, whole->value, part->value);
    if (!rest)
        return false;
    exact = tx_prove(k->g->facts, tx_binary(c, TX_OP_EQ, rest, tx_int(c, TX_I64, 0)));
    if (exact == 0) {
        tx_fail(c, whole->span, TX_E_SCOPE_NOT_DIVISIBLE, binding_text(c, p, r), launch_extent_text(c, whole->value),
                launch_extent_text(c, part->value));
        tx_diag_other(c, part->span != whole->span ? part->span : 0);
        return false;
    }
    if (exact > 0)
        *out = tx_simplify(k->g->facts, tx_binary(c, TX_OP_FLOORDIV, whole->value, part->value));
    return exact < 0 || *out;
}

/* One use of p->q * q->r == p->r. *more is set when something new is known. */
static bool
close_chain(closure *k, const uint8_t *chain, bool *more)
{
    int p = chain[0], q = chain[1], r = chain[2];
    launch_extent *pq = &k->e[p][q], *qr = &k->e[q][r], *pr = &k->e[p][r];
    tx_ctx *c = k->g->c;
    const tx_node *v = NULL;
    launch_extent *to;

    if ((pq->value != NULL) + (qr->value != NULL) + (pr->value != NULL) != 2)
        return true;
    if (!pr->value) {
        to = pr;
        v = tx_simplify(k->g->facts, tx_binary(c, TX_OP_MUL, pq->value, qr->value));
        if (!v)
            return false;
    } else if (!qr->value) {
        to = qr;
        if (!launch_quotient(k, pr, pq, q, r, &v))
            return false;
    } else {
        to = pq;
        if (!launch_quotient(k, pr, qr, p, q, &v))
            return false;
    }
    if (v) {
        *to = (launch_extent){v, pr->value != v ? pr->span : pq->span, false};
        *more = true;
    }
    return true;
}

static bool
close_all(closure *k)
{
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < NCHAINS; i++)
            if (!close_chain(k, chains[i], &more))
                return false;
    }
    for (int i = 0; i < NCHAINS; i++) {
        int p = chains[i][0], q = chains[i][1], r = chains[i][2];
        const launch_extent *pq = &k->e[p][q], *qr = &k->e[q][r], *pr = &k->e[p][r];
        const tx_node *v;
        if (!pq->value || !qr->value || !pr->value)
            continue;
        v = tx_binary(k->g->c, TX_OP_MUL, pq->value, qr->value);
        if (!v)
            return false;
        if (same_extent(k, pr->value, v) == 0)
            return inconsistent(k, p, r, pr->value, v, pr->span, qr->declared ? qr->span : pq->span);
    }
    return true;
}

/* ---- ids and the launch configuration ------------------------------------------------------------------------------ */

static const tx_node *
declared_id(const tx_region *g, unsigned binding)
{
    for (uint32_t i = 0; i < g->ids.n; i++)
        if (g->ids.at[i]->u.scope_id->binding == binding && g->ids.at[i]->u.scope_id->nextents)
            return g->ids.at[i];
    return NULL;
}

static bool
conflict(closure *k, const tx_node *id, const char *field, const tx_node *said, const tx_node *declared)
{
    tx_region *g = k->g;
    tx_ctx *c = g->c;
    const tx_node *one = tx_int(c, TX_I32, 1), *first = declared_id(g, id->u.scope_id->binding);

    if (one && first != id) /* said by another id */
        return inconsistent(k, bindings[id->u.scope_id->binding].parent, bindings[id->u.scope_id->binding].child,
                            said ? said : one, declared ? declared : one, id->span, first->span);
    tx_fail(c, id->span, TX_E_LAUNCH_CONFLICT, tx_binding_calls[id->u.scope_id->binding],
            launch_extent_text(c, declared ? declared : one), field, launch_extent_text(c, said ? said : one));
    tx_diag_other(c, g->device->span);
    return false;
}

/* Puts a declared id's extents (from its argument `first`) into the launch, or checks that the launch says the same. */
static bool
launch_fill(closure *k, int to, const tx_node *id, uint32_t first, uint32_t n, const char *field)
{
    tx_region *g = k->g;
    const tx_node **a = g->args + to;

    if (a[0]) {
        for (uint32_t i = 0; i < 3; i++) {
            const tx_node *x = a[i] ? a[i] : tx_int(g->c, TX_I32, 1);
            const tx_node *y = i < n ? id->arg[first + i] : tx_int(g->c, TX_I32, 1);
            if (!x || !y || same_extent(k, tx_i64(g->c, x), tx_i64(g->c, y)) != 1)
                return conflict(k, id, field, a[i], i < n ? id->arg[first + i] : NULL);
        }
        return true;
    }
    for (uint32_t i = 0; i < n; i++)
        a[i] = id->arg[first + i];
    return true;
}

/* What the configuration says, the ids say too; what it leaves open, they fill. */
static bool
fill_from_ids(closure *k)
{
    static const struct {
        uint8_t binding, field;
        const char *name;
    } fields[] = {
        {TX_B_CLUSTER_CTA, TX_L_CLUSTER_X, "cluster"},
        {TX_B_KERNEL_CTA, TX_L_GRID_X, "grid"},
        {TX_B_CTA_THREAD, TX_L_BLOCK_X, "block"},
    };
    tx_region *g = k->g;

    for (uint32_t i = 0; i < g->ids.n; i++) {
        const tx_node *id = g->ids.at[i];
        const tx_scope_id *s = id->u.scope_id;
        for (int f = 0; s->nextents && f < 3; f++)
            if (fields[f].binding == s->binding && !launch_fill(k, fields[f].field, id, 0, s->nextents, fields[f].name))
                return false;
        if (s->npreferred && !launch_fill(k, TX_L_PREFERRED_X, id, s->nextents, s->npreferred, "preferred_cluster"))
            return false;
    }
    return true;
}

/* What the ids declare, what the configuration says, and the sizes of warps and warpgroups. */
static bool
launch_collect(closure *k)
{
    static const struct {
        uint8_t first, parent, child;
    } config[] = {{TX_L_GRID_X, KERNEL, CTA}, {TX_L_BLOCK_X, CTA, THREAD}, {TX_L_CLUSTER_X, CLUSTER, CTA}};
    tx_region *g = k->g;
    bool warps = false, groups = false;

    for (uint32_t i = 0; i < g->ids.n; i++) {
        const tx_node *n = g->ids.at[i];
        const tx_scope_id *s = n->u.scope_id;
        warps |= bindings[s->binding].warps;
        groups |= bindings[s->binding].groups;
        if (s->nextents && s->binding != TX_B_CLUSTER_PAIR &&
            !add(k, bindings[s->binding].parent, bindings[s->binding].child, launch_product(g->c, n->arg, s->nextents),
                 n->span, true))
            return false;
    }
    for (int i = 0; i < 3; i++)
        if (g->args[config[i].first] &&
            !add(k, config[i].parent, config[i].child, launch_product(g->c, g->args + config[i].first, 3),
                 g->device->span, false))
            return false;
    if (warps && !add(k, WARP, THREAD, tx_int(g->c, TX_I64, 32), k->e[WARP][THREAD].span, false))
        return false;
    return !groups || add(k, WARPGROUP, WARP, tx_int(g->c, TX_I64, 4), k->e[WARPGROUP][WARP].span, false);
}

static bool
infer_deferred(closure *k)
{
    tx_region *g = k->g;

    for (uint32_t i = 0; i < g->ids.n; i++) {
        const tx_scope_id *s = g->ids.at[i]->u.scope_id;
        int p = bindings[s->binding].parent, r = bindings[s->binding].child;
        if (s->nextents || s->binding == TX_B_CLUSTER_PAIR || k->e[p][r].value)
            continue;
        /* a kernel without cta_id has one CTA, without cluster_id one cluster */
        tx_fail(g->c, g->ids.at[i]->span, TX_E_SCOPE_INFER, binding_text(g->c, p, r));
        return false;
    }
    return true;
}

/* ---- the launch record --------------------------------------------------------------------------------------------- */

/* An int64 extent as a launch field: int32 when it is a constant that fits. */
static const tx_node *
field_of(tx_ctx *c, const tx_node *v)
{
    return v->op == TX_OP_INT && v->u.i >= INT32_MIN && v->u.i <= INT32_MAX ? tx_int(c, TX_I32, v->u.i) : v;
}

/* grid = clusters x cluster size, dimension by dimension */
static bool
grid_of_clusters(tx_region *g, const tx_node *clusters)
{
    const tx_node *const *size = g->args + TX_L_CLUSTER_X;

    for (int i = 0; i < 3; i++) {
        const tx_node *n = clusters && i < clusters->u.scope_id->nextents ? clusters->arg[i] : NULL;
        const tx_node *v = n && size[i] ? tx_binary(g->c, TX_OP_MUL, n, size[i]) : n ? n : size[i];
        if (n && size[i] && !v)
            return false;
        g->args[TX_L_GRID_X + i] = v;
    }
    if (!g->args[TX_L_GRID_X])
        g->args[TX_L_GRID_X] = tx_int(g->c, TX_I32, 1);
    return g->args[TX_L_GRID_X] != NULL;
}

/* What neither the configuration nor an id says, but the closure does. */
static bool
fill_from_closure(closure *k)
{
    tx_region *g = k->g;

    if (!g->args[TX_L_GRID_X] && !grid_of_clusters(g, declared_id(g, TX_B_KERNEL_CLUSTER)))
        return false;
    if (!g->args[TX_L_BLOCK_X] && k->e[CTA][THREAD].value)
        g->args[TX_L_BLOCK_X] = field_of(g->c, k->e[CTA][THREAD].value);
    if (!g->args[TX_L_BLOCK_X]) {
        tx_fail(g->c, g->device->span, TX_E_NO_THREADS);
        return false;
    }
    return true;
}

/* The place to blame for a launch field: the id that declares it, else the launch. */
static tx_span
field_span(const tx_region *g, unsigned binding)
{
    const tx_node *id = declared_id(g, binding);
    return id ? id->span : g->device->span;
}

static bool
check_block(tx_region *g)
{
    static const int64_t most[3] = {1024, 1024, 64};
    static const char *const axes[3] = {"x", "y", "z"};
    tx_span span = field_span(g, TX_B_CTA_THREAD);
    int64_t n, total = 1;
    bool known = true;

    for (int i = 0; i < 3; i++) {
        if (!g->args[TX_L_BLOCK_X + i])
            continue;
        if (!tx_const_i64(g->args[TX_L_BLOCK_X + i], &n)) {
            known = false;
            continue;
        }
        if (n <= 0)
            return tx_fail(g->c, span, TX_E_THREADS_NOT_POSITIVE, g->f->name->text, (long long)n) != NULL;
        if (n > most[i] && n <= TX_MAX_THREADS)
            return tx_fail(g->c, span, TX_E_BLOCK_AXIS, axes[i], (long long)most[i], (long long)n) != NULL;
        if (!tx_mul_i64(total, n, &total))
            total = INT64_MAX;
    }
    if (total > TX_MAX_THREADS)
        return tx_fail(g->c, span, TX_E_BLOCK_TOO_BIG, (long long)total) != NULL;
    if (known && g->needs_warps && total % 32 != 0) {
        tx_fail(g->c, span, TX_E_THREADS_NOT_WARPS, g->f->name->text, (long long)total);
        return false;
    }
    return true;
}

/* Constant rules between grid, cluster and preferred cluster. */
static bool
check_grid(tx_region *g)
{
    static const int64_t most[3] = {INT32_MAX, 65535, 65535};
    const tx_node *const *a = g->args;
    tx_span span = field_span(g, TX_B_KERNEL_CTA), at = field_span(g, TX_B_CLUSTER_CTA);
    int64_t n, m, ctas = 1;

    for (int i = 0; i < 3; i++) {
        if (tx_const_i64(a[TX_L_GRID_X + i], &n) && (n < 1 || n > most[i]))
            return tx_fail(g->c, span, TX_E_GRID_RANGE, (long long)n) != NULL;
        if (tx_const_i64(a[TX_L_CLUSTER_X + i], &n)) {
            if (n < 1 || n > TX_MAX_CLUSTER || (ctas *= n) > TX_MAX_CLUSTER)
                return tx_fail(g->c, at, TX_E_CLUSTER_RANGE, TX_MAX_CLUSTER,
                               (long long)(n < 1 || n > TX_MAX_CLUSTER ? n : ctas)) != NULL;
            if (tx_const_i64(a[TX_L_GRID_X + i] ? a[TX_L_GRID_X + i] : tx_int(g->c, TX_I32, 1), &m) && m % n != 0)
                return tx_fail(g->c, span, TX_E_GRID_DIVISIBLE, "grid", "cluster", (long long)m, (long long)n) != NULL;
        }
        if (tx_const_i64(a[TX_L_PREFERRED_X + i], &n)) {
            if (n < 1)
                return tx_fail(g->c, at, TX_E_CLUSTER_RANGE, TX_MAX_CLUSTER, (long long)n) != NULL;
            if (tx_const_i64(a[TX_L_GRID_X + i] ? a[TX_L_GRID_X + i] : tx_int(g->c, TX_I32, 1), &m) && m % n != 0)
                return tx_fail(g->c, at, TX_E_GRID_DIVISIBLE, "grid", "preferred_cluster", (long long)m,
                               (long long)n) != NULL;
            if (tx_const_i64(a[TX_L_CLUSTER_X + i] ? a[TX_L_CLUSTER_X + i] : tx_int(g->c, TX_I32, 1), &m) && m > 0 &&
                n % m != 0)
                return tx_fail(g->c, at, TX_E_GRID_DIVISIBLE, "preferred_cluster", "cluster", (long long)n,
                               (long long)m) != NULL;
        }
    }
    if (tx_const_i64(a[TX_L_PREFERRED_Z], &n) && tx_const_i64(a[TX_L_CLUSTER_Z], &m) && n != m)
        return tx_fail(g->c, at, TX_E_PREFERRED_Z, (long long)n, (long long)m) != NULL;
    if (a[TX_L_PREFERRED_X] && !a[TX_L_CLUSTER_X])
        return tx_fail(g->c, at, TX_E_PREFERRED_CLUSTER) != NULL;
    return true;
}

/* Kernels whose cluster is one CTA are launched without clusters, unless the configuration asks for them. */
static void
drop_unit_cluster(tx_region *g, bool configured)
{
    const tx_node **a = g->args + TX_L_CLUSTER_X;

    if (configured || g->args[TX_L_PREFERRED_X])
        return;
    for (int i = 0; i < 3; i++)
        if (a[i] && !tx_is_const(a[i], 1))
            return;
    a[0] = a[1] = a[2] = NULL;
}

bool
tx_region_launch(tx_region *g)
{
    closure k = {.g = g};
    bool configured = g->args[TX_L_CLUSTER_X] != NULL;

    if (!take_threads(g) || !check_ids(g) || !fill_from_ids(&k) || !launch_collect(&k) || !close_all(&k))
        return false;
    if (!k.e[KERNEL][CTA].value && !k.e[KERNEL][CLUSTER].value && k.e[CLUSTER][CTA].value) {
        /* neither cta_id nor cluster_id has an extent: one cluster */
        k.e[KERNEL][CLUSTER].value = tx_int(g->c, TX_I64, 1);
        k.e[KERNEL][CTA] = k.e[CLUSTER][CTA];
    }
    if (!infer_deferred(&k) || !fill_from_closure(&k) || !check_block(g) || !check_grid(g))
        return false;
    drop_unit_cluster(g, configured);
    return true;
}
