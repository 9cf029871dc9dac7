/* LowerTIRx: scope ids and the launch configuration of a device region become one launch record and coordinates
 * (language.md 10.1 to 10.3, lowering.md 4.1). Takes DEVICE with SCOPE_ID statements in its body and any index
 * intrinsic; gives DEVICE whose children hold the whole launch shape, and a body over THREAD_IDX, BLOCK_IDX, BLOCK_DIM,
 * GRID_DIM and CLUSTER_* only. A scope id that is used is bound once at the start of the region; one that is not, or
 * whose extent is 1, costs nothing. SPDX-License-Identifier: Apache-2.0 */
#include "lower/resolve.h"

/* ---- collecting --------------------------------------------------------------------------------------------------- */

typedef struct scan {
    tx_visitor v;
    tx_region *g;
    bool failed;
} scan;

static bool
resolve_scan_node(tx_visitor *v, const tx_node *n)
{
    scan *s = (scan *)v;
    tx_region *g = s->g;

    switch (n->op) {
    case TX_OP_SCOPE_ID: s->failed |= !tx_push(g->c, &g->ids, n); return false;
    case TX_OP_DEVICE:
        tx_fail(g->c, n->span, TX_E_DEVICE_NESTED);
        tx_diag_other(g->c, g->device->span);
        s->failed = true;
        return false;
    case TX_OP_VAR: s->failed |= !tx_map_put_ptr(&g->used, n->u.var, n); return false;
    case TX_OP_ATTR:
        if (tx_thread_tag(n->u.s->text) >= 0)
            s->failed |= !tx_push(g->c, &g->threads, n);
        return true;
    case TX_OP_BIND: s->failed |= !tx_map_put_ptr(&g->bound, n->u.var, n->arg[0]); return true;
    case TX_OP_FOR: s->failed |= !tx_map_put_ptr(&g->bound, n->u.loop->var, n); return true;
    case TX_OP_ALLOC:
    case TX_OP_DECL: tx_walk_buffer(v, n->u.buf); return true;
    case TX_OP_WARP_ID:
    case TX_OP_LANE_ID:
    case TX_OP_WARPGROUP_ID:
    case TX_OP_WARP_IN_WG:
    case TX_OP_THREAD_IN_WG: g->needs_warps = true; return true;
    default: return true;
    }
}

/* ---- values of coordinates ---------------------------------------------------------------------------------------- */

static bool
resolve_is_one(const tx_node *extent)
{
    return !extent || tx_is_const(extent, 1);
}

static const tx_node *
zero(tx_region *g)
{
    return tx_int(g->c, TX_I32, 0);
}

static const tx_node *
resolve_arith(tx_region *g, unsigned op, const tx_node *a, int64_t b)
{
    return tx_binary(g->c, op, a, tx_int(g->c, TX_I32, b));
}

/* One axis of a coordinate, 0 where the extent is 1. */
static const tx_node *
axis_of(tx_region *g, unsigned op, int axis, const tx_node *extent)
{
    return resolve_is_one(extent) ? zero(g) : tx_coord(g->c, op, axis);
}

static const tx_node *
dim_of(tx_region *g, unsigned op, int axis, const tx_node *extent)
{
    int64_t n;

    if (!extent)
        return tx_int(g->c, TX_I32, 1);
    return tx_const_i64(extent, &n) ? tx_int(g->c, TX_I32, n) : tx_coord(g->c, op, axis);
}

/* x + bx * (y + by * z), without the axes that have one thread */
static const tx_node *
linear_thread(tx_region *g)
{
    const tx_node *const *block = g->args + TX_L_BLOCK_X;
    const tx_node *t = axis_of(g, TX_OP_THREAD_IDX, 2, block[2]);

    t = tx_binary(g->c, TX_OP_MUL, t, dim_of(g, TX_OP_BLOCK_DIM, 1, block[1]));
    t = tx_binary(g->c, TX_OP_ADD, t, axis_of(g, TX_OP_THREAD_IDX, 1, block[1]));
    t = tx_binary(g->c, TX_OP_MUL, t, dim_of(g, TX_OP_BLOCK_DIM, 0, block[0]));
    return tx_binary(g->c, TX_OP_ADD, axis_of(g, TX_OP_THREAD_IDX, 0, block[0]), t);
}

static int64_t
thread_count(const tx_region *g)
{
    int64_t n, total = 1;

    for (int i = 0; i < 3; i++) {
        if (!g->args[TX_L_BLOCK_X + i])
            continue;
        if (!tx_const_i64(g->args[TX_L_BLOCK_X + i], &n))
            return -1;
        if (!tx_mul_i64(total, n, &total))
            return INT64_MAX;
    }
    return total;
}

/* The warp's number, made known as uniform by one shuffle at the start of the kernel. */
static const tx_node *
warp(tx_region *g)
{
    int64_t n = thread_count(g);

    if (n >= 0 && n <= 32)
        return zero(g);
    if (!g->warp)
        g->warp = tx_new_var(g->c, TX_VAR_LET, tx_intern_z(g->c, "warp_id_in_cta"), TX_I32);
    return g->warp ? g->warp->node : NULL;
}

static const tx_node *
warp_value(tx_region *g)
{
    const tx_node *args[5] = {
        tx_int(g->c, TX_U32, 0xffffffff),
        resolve_arith(g, TX_OP_SHR, linear_thread(g), 5),
        zero(g),
        tx_int(g->c, TX_I32, 32),
        tx_int(g->c, TX_I32, 32),
    };

    for (int i = 0; i < 5; i++)
        if (!args[i])
            return NULL;
    return tx_make(g->c, TX_OP_SHFL, TX_I32, (tx_payload){0}, args, 5);
}

/* The hardware may launch clusters of the preferred size instead. */
static bool
cluster_is_one(const tx_region *g, int axis)
{
    return resolve_is_one(g->args[TX_L_CLUSTER_X + axis]) && resolve_is_one(g->args[TX_L_PREFERRED_X + axis]);
}

static const tx_node *
cluster_rank(tx_region *g)
{
    bool one = cluster_is_one(g, 0) && cluster_is_one(g, 1) && cluster_is_one(g, 2);

    return one ? zero(g) : tx_coord(g->c, TX_OP_CLUSTER_RANK, 0);
}

static const tx_node *
scope_value(tx_region *g, const tx_node *id, int k)
{
    const tx_node *const *a = g->args;

    switch (id->u.scope_id->binding) {
    case TX_B_KERNEL_CTA: return axis_of(g, TX_OP_BLOCK_IDX, k, a[TX_L_GRID_X + k]);
    case TX_B_KERNEL_CLUSTER:
        return id->nargs > 0 && resolve_is_one(id->arg[k]) ? zero(g) : tx_coord(g->c, TX_OP_CLUSTER_ID, k);
    case TX_B_CLUSTER_CTA:
        if (cluster_is_one(g, k))
            return zero(g);
        return k == 0 && cluster_is_one(g, 1) && cluster_is_one(g, 2) ? cluster_rank(g)
                                                                      : tx_coord(g->c, TX_OP_CLUSTER_CTA, k);
    case TX_B_CTA_THREAD:
        return id->u.scope_id->nextents ? axis_of(g, TX_OP_THREAD_IDX, k, a[TX_L_BLOCK_X + k]) : linear_thread(g);
    case TX_B_CTA_WARP: return warp(g);
    case TX_B_CTA_WARPGROUP: return resolve_arith(g, TX_OP_FLOORDIV, warp(g), 4);
    case TX_B_WARPGROUP_WARP: return resolve_arith(g, TX_OP_FLOORMOD, warp(g), 4);
    case TX_B_WARP_THREAD: return resolve_arith(g, TX_OP_FLOORMOD, linear_thread(g), 32);
    case TX_B_WARPGROUP_THREAD: return resolve_arith(g, TX_OP_FLOORMOD, linear_thread(g), 128);
    case TX_B_CLUSTER_PAIR: return resolve_arith(g, TX_OP_FLOORMOD, cluster_rank(g), 2);
    default: return tx_fail(g->c, id->span, TX_E_INTERNAL, "unknown scope binding");
    }
}

/* ---- rewriting the body ------------------------------------------------------------------------------------------- */

static tx_region *
region_of(tx_rewriter *r)
{
    return r->self;
}

static const tx_node *
drop_scope_id(tx_rewriter *r, const tx_node *n)
{
    (void)n;
    return tx_nothing(r->c);
}

/* T.launch_thread is in the launch now. */
static const tx_node *
drop_thread(tx_rewriter *r, const tx_node *n)
{
    if (tx_thread_tag(n->u.s->text) < 0)
        return tx_rewrite_children(r, n);
    return n->arg[1] ? tx_rewrite(r, n->arg[1]) : tx_nothing(r->c);
}

static const tx_node *
index_op(tx_rewriter *r, const tx_node *n)
{
    tx_region *g = region_of(r);
    const tx_node *const *a = g->args;
    int axis = (int)n->u.i;

    switch (n->op) {
    case TX_OP_THREAD_IDX: return resolve_is_one(a[TX_L_BLOCK_X + axis]) ? zero(g) : n;
    case TX_OP_BLOCK_IDX: return resolve_is_one(a[TX_L_GRID_X + axis]) ? zero(g) : n;
    case TX_OP_CLUSTER_CTA: return cluster_is_one(g, axis) ? zero(g) : n;
    case TX_OP_BLOCK_DIM: return dim_of(g, n->op, axis, a[TX_L_BLOCK_X + axis]);
    case TX_OP_GRID_DIM: return dim_of(g, n->op, axis, a[TX_L_GRID_X + axis]);
    case TX_OP_CLUSTER_DIM:
        if (!a[TX_L_CLUSTER_X] && !a[TX_L_CLUSTER_Y] && !a[TX_L_CLUSTER_Z])
            return tx_fail(g->c, n->span, TX_E_CLUSTER_DIM);
        return a[TX_L_PREFERRED_X] ? n : dim_of(g, n->op, axis, a[TX_L_CLUSTER_X + axis]);
    case TX_OP_CLUSTER_RANK: return cluster_rank(g);
    case TX_OP_CTA_PAIR: return resolve_arith(g, TX_OP_FLOORMOD, cluster_rank(g), 2);
    case TX_OP_LINEAR_TID:
    case TX_OP_THREAD_RANK: return linear_thread(g);
    case TX_OP_WARP_ID: return warp(g);
    case TX_OP_LANE_ID: return resolve_arith(g, TX_OP_FLOORMOD, linear_thread(g), 32);
    case TX_OP_WARPGROUP_ID: return resolve_arith(g, TX_OP_FLOORDIV, warp(g), 4);
    case TX_OP_WARP_IN_WG: return resolve_arith(g, TX_OP_FLOORMOD, warp(g), 4);
    case TX_OP_THREAD_IN_WG: return resolve_arith(g, TX_OP_FLOORMOD, linear_thread(g), 128);
    default: return n;
    }
}

/* Bindings of the scope ids that the body uses; those that are constant are substituted instead. */
static bool
bind_ids(tx_region *g, tx_rewriter *r)
{
    for (uint32_t i = 0; i < g->ids.n; i++) {
        const tx_node *id = g->ids.at[i];
        const tx_scope_id *s = id->u.scope_id;

        for (int k = 0; k < s->nvars; k++) {
            const tx_node *value;
            if (!tx_map_ptr(&g->used, s->var[k]))
                continue;
            g->c->span = id->span;
            value = tx_cast(g->c, s->var[k]->dtype, scope_value(g, id, k));
            if (!value)
                return false;
            if (value->op == TX_OP_INT || value == (g->warp ? g->warp->node : NULL)) {
                if (!tx_map_put_ptr(&r->vars, s->var[k], value))
                    return tx_fail(g->c, 0, TX_E_NO_MEMORY) != NULL;
            } else if (!tx_push(g->c, &g->binds, tx_bind(g->c, s->var[k], value))) {
                return false;
            }
        }
    }
    return true;
}

/* The host zone's declarations as this region has them; a region that is not the first has buffers of its own. */
static bool
region_views(tx_region *g, tx_rewriter *r, const tx_node **out)
{
    for (uint32_t i = 0; i < g->nviews; i++) {
        tx_buffer *copy = g->later ? tx_copy_buffer(g->c, g->views[i]->u.buf) : g->views[i]->u.buf;
        if (!copy || (g->later && !tx_map_put_ptr(&r->bufs, g->views[i]->u.buf, copy)))
            return false;
        if (!(out[i] = tx_rewrite(r, g->views[i])))
            return false;
    }
    return true;
}

static const tx_node *
region_body(tx_region *g)
{
    static const uint16_t ops[] = {
        TX_OP_THREAD_IDX,  TX_OP_BLOCK_IDX, TX_OP_BLOCK_DIM,    TX_OP_GRID_DIM,     TX_OP_CLUSTER_CTA,
        TX_OP_CLUSTER_DIM, TX_OP_CTA_PAIR,  TX_OP_CLUSTER_RANK, TX_OP_LINEAR_TID,   TX_OP_THREAD_RANK,
        TX_OP_WARP_ID,     TX_OP_LANE_ID,   TX_OP_WARP_IN_WG,   TX_OP_WARPGROUP_ID, TX_OP_THREAD_IN_WG,
    };
    tx_rewrite_fn *fn = tx_new(g->c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = g->c, .fn = fn, .self = g, .refold = true};
    const tx_node *body = NULL, **all, **views;
    uint32_t n = 0;

    if (!fn)
        return NULL;
    fn[TX_OP_SCOPE_ID] = drop_scope_id;
    fn[TX_OP_ATTR] = drop_thread;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        fn[ops[i]] = index_op;
    views = tx_new(g->c, const tx_node *, g->nviews + 1);
    if (views && bind_ids(g, &r) && region_views(g, &r, views))
        body = tx_rewrite(&r, g->device->arg[TX_L_BODY]);
    tx_rewriter_free(&r);
    all = body ? tx_new(g->c, const tx_node *, g->binds.n + g->nviews + 2) : NULL;
    if (!all)
        return NULL;
    g->c->span = g->device->span;
    if (g->warp)
        all[n++] = tx_bind(g->c, g->warp, warp_value(g));
    for (uint32_t i = 0; i < g->binds.n; i++)
        all[n++] = g->binds.at[i];
    for (uint32_t i = 0; i < g->nviews; i++)
        all[n++] = views[i];
    if (n == 0)
        return body;
    all[n++] = body;
    for (uint32_t i = 0; i < n; i++)
        if (!all[i])
            return NULL;
    return tx_seq(g->c, all, n);
}

static const tx_node *
resolve_region(tx_region *g)
{
    scan s = {.v = {resolve_scan_node, NULL}, .g = g};
    tx_launch *launch;
    const tx_node *body;

    tx_walk(&s.v, g->device->arg[TX_L_BODY]);
    if (s.failed || !tx_region_launch(g))
        return NULL;
    body = region_body(g);
    if (!body)
        return NULL;
    g->args[TX_L_BODY] = body;
    if (g->device->u.launch->explicit_config)
        return tx_with_args(g->c, g->device, g->args);
    launch = tx_new(g->c, tx_launch, 1);
    if (!launch)
        return NULL;
    *launch = *g->device->u.launch;
    launch->explicit_config = true;
    return tx_make_at(g->c, g->device->span, TX_OP_DEVICE, TX_VOID, (tx_payload){.launch = launch}, g->args,
                      TX_L__COUNT);
}

/* ---- the function ------------------------------------------------------------------------------------------------- */

typedef struct resolver {
    tx_func *f;
    tx_facts *facts;
    bool later;                    /* a region came before */
    TX_VEC(const tx_node *) views; /* DECL statements of the host zone, which mean something on the device only */
} resolver;

static const tx_node *
resolve_host_view(tx_rewriter *r, const tx_node *n)
{
    resolver *v = r->self;

    if (n->arg[0]->op != TX_OP_BUFFER_DATA)
        return tx_rewrite_children(r, n);
    return tx_push(r->c, &v->views, n) ? tx_nothing(r->c) : NULL;
}

static const tx_node *
resolve_device(tx_rewriter *r, const tx_node *n)
{
    resolver *v = r->self;
    tx_region g = {.c = r->c,
                   .f = v->f,
                   .facts = v->facts,
                   .device = n,
                   .views = v->views.at,
                   .nviews = v->views.n,
                   .later = v->later};
    const tx_node *out;
    tx_span saved = r->c->span;

    memcpy(g.args, n->arg, sizeof g.args);
    out = resolve_region(&g);
    v->later = true;
    tx_map_free(&g.used);
    tx_map_free(&g.bound);
    r->c->span = saved;
    return out;
}

static const tx_node *
early_scope_id(tx_rewriter *r, const tx_node *n)
{
    return tx_fail(r->c, n->span, TX_E_SCOPE_ID_EARLY, tx_binding_calls[n->u.scope_id->binding]);
}

tx_func *
tx_resolve_func(tx_ctx *c, tx_func *f, const tx_target *t)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    resolver v = {.f = f};
    tx_rewriter r = {.c = c, .fn = fn, .self = &v};
    tx_symbol_solution symbols;
    const tx_node *body;
    int64_t lo;
    uint64_t hi;

    (void)t;
    if (!fn || !tx_solve_symbols(c, f, &symbols))
        return NULL;
    v.facts = tx_facts_new(c);
    if (!v.facts)
        return tx_fail(c, 0, TX_E_NO_MEMORY);
    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (tx_int_limits(f->symbols[i]->dtype, &lo, &hi))
            tx_facts_range_i64(v.facts, f->symbols[i], 0, hi > INT64_MAX ? INT64_MAX : (int64_t)hi);
    fn[TX_OP_DEVICE] = resolve_device;
    fn[TX_OP_DECL] = resolve_host_view;
    fn[TX_OP_SCOPE_ID] = early_scope_id;
    body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    tx_facts_free(v.facts);
    return tx_func_with_body(c, f, body);
}
