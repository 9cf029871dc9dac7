/* SplitHostDevice: each device region becomes a kernel, and a LAUNCH in the host function (lowering.md 4.14). Kernel
 * parameters keep the user's order, then come symbols and host values in the order in which the kernel's text needs them,
 * then sizes that only the emulator's bounds checks read (TX_PARAM_SHAPE_ONLY). Launch bounds and dynamic shared memory
 * are lifted out of the body; the host part may not touch device memory. SPDX-License-Identifier: Apache-2.0 */
#include "lower/registers.h"

/* ---- free variables of a region ------------------------------------------------------------------------------------- */

typedef struct needs {
    tx_ctx *c;
    tx_map bound, text, shape; /* variables bound inside; needed by the text; needed by checks only */
    TX_VEC(tx_var *) text_order;
    TX_VEC(tx_var *) shape_order;
    bool checks; /* visiting what only the emulator reads */
    bool failed;
} needs;

static void visit(needs *s, const tx_node *n);

static void
split_bind_var(needs *s, const tx_var *v)
{
    s->failed |= !tx_map_put_ptr(&s->bound, v, v);
}

static void
need(needs *s, tx_var *v)
{
    if (tx_map_ptr(&s->bound, v) || tx_map_ptr(&s->text, v))
        return;
    if (!s->checks) {
        s->failed |= !tx_map_put_ptr(&s->text, v, v) || !tx_push(s->c, &s->text_order, v);
    } else if (!tx_map_ptr(&s->shape, v)) {
        s->failed |= !tx_map_put_ptr(&s->shape, v, v) || !tx_push(s->c, &s->shape_order, v);
    }
}

/* What the declared extent of a flat buffer is made of. */
static void
visit_extent(needs *s, const tx_buffer *b)
{
    bool saved = s->checks;

    s->checks = true;
    if (b->flags & TX_BUF_FLAT)
        visit(s, b->shape[0]);
    s->checks = saved;
}

/* What a bounds check of an access reads beyond the element index. */
static void
visit_check(needs *s, const tx_node *n, uint32_t first)
{
    const tx_buffer *b = n->u.buf->origin;
    bool saved = s->checks;

    visit_extent(s, n->u.buf);
    if (n->flags & TX_NF_INBOUNDS)
        return;
    s->checks = true;
    for (uint32_t i = first; i < n->nargs; i++)
        visit(s, n->arg[i]);
    for (int d = 0; b && d < b->rank; d++)
        visit(s, b->shape[d]);
    s->checks = saved;
}

static void
visit(needs *s, const tx_node *n)
{
    uint32_t nargs = n->nargs;

    switch (n->op) {
    case TX_OP_VAR: need(s, n->u.var); return;
    case TX_OP_LOAD:
    case TX_OP_STORE:
        need(s, n->u.buf->data);
        if (n->u.buf->flags & TX_BUF_FLAT)
            nargs = n->op == TX_OP_STORE ? 2 : 1;
        break;
    case TX_OP_BUFFER_DATA:
        need(s, n->u.buf->data);
        visit_extent(s, n->u.buf);
        return;
    case TX_OP_ALLOC: split_bind_var(s, n->u.buf->data); return;
    default: break;
    }
    for (uint32_t i = 0; i < nargs; i++) {
        if (n->op == TX_OP_LET && i == 1)
            split_bind_var(s, n->u.var);
        if (n->op == TX_OP_FOR && i == 3)
            split_bind_var(s, n->u.loop->var);
        if (n->arg[i])
            visit(s, n->arg[i]);
    }
    if (n->op == TX_OP_BIND)
        split_bind_var(s, n->u.var);
    else if (n->op == TX_OP_DECL && n->arg[0]->op != TX_OP_BUFFER_DATA)
        split_bind_var(s, n->u.buf->data);
    else if (n->op == TX_OP_LOAD || n->op == TX_OP_STORE)
        visit_check(s, n, nargs);
}

/* ---- what the body says about the kernel ------------------------------------------------------------------------------ */

typedef struct kernel {
    tx_ctx *c;
    const tx_func *f;
    tx_func *k;
    const tx_node *args[TX_L__COUNT + TX_MAX_PARAMS];
    tx_span attr_span[4];   /* of launch-bounds attributes seen, by enum bound_attr */
    const tx_node *dynamic; /* the one shared.dyn ALLOC */
    int64_t static_bytes;
} kernel;

enum bound_attr { A_MIN_BLOCKS, A_MAX_BLOCKS, A_MAX_REGISTERS, A_BLOCK_SIZE, NBOUNDS };
static const char *const bound_keys[NBOUNDS] = {
    "tirx.launch_bounds_min_blocks_per_sm",
    "tirx.launch_bounds_max_blocks_per_cluster",
    "tirx.max_registers",
    "tirx.required_block_size",
};

static bool
lift_bound(kernel *k, const tx_node *n, int which)
{
    tx_launch *l = &k->k->launch;
    int32_t *to[NBOUNDS] = {&l->min_blocks, &l->max_blocks_per_cluster, &l->max_registers, NULL};
    int64_t v;

    if (!tx_const_i64(n->arg[0], &v) || v < 1 || v > INT32_MAX) {
        tx_fail(k->c, n->span, TX_E_ATTR_POSITIVE, bound_keys[which], tx_expr_text(k->c, n->arg[0]));
        return false;
    }
    if (!to[which]) {
        l->required_block_size = true;
    } else if (*to[which] && *to[which] != v) {
        tx_fail(k->c, n->span, TX_E_ATTR_CONFLICT, bound_keys[which], *to[which], (long long)v);
        tx_diag_other(k->c, k->attr_span[which]);
        return false;
    } else {
        *to[which] = (int32_t)v;
    }
    k->attr_span[which] = n->span;
    return true;
}

static bool
lift_dyn_smem(kernel *k, const tx_node *n)
{
    int64_t v, was;

    if (!tx_const_i64(n->arg[0], &v) || v < 0) {
        tx_fail(k->c, n->span, TX_E_DYN_SMEM_CONST, tx_expr_text(k->c, n->arg[0]));
        return false;
    }
    if (k->args[TX_L_DYN_SMEM] && (!tx_const_i64(k->args[TX_L_DYN_SMEM], &was) || was != v)) {
        tx_fail(k->c, n->span, TX_E_ATTR_DYN_SMEM, tx_expr_text(k->c, k->args[TX_L_DYN_SMEM]), (long long)v);
        return false;
    }
    k->args[TX_L_DYN_SMEM] = tx_int(k->c, TX_I32, v);
    return k->args[TX_L_DYN_SMEM] != NULL;
}

static const tx_node *
attr(tx_rewriter *r, const tx_node *n)
{
    kernel *k = r->self;
    const char *key = n->u.s->text;
    bool known = true;

    if (strcmp(key, "tirx.dyn_smem_bytes") == 0) {
        if (!lift_dyn_smem(k, n))
            return NULL;
    } else {
        int i = 0;
        while (i < NBOUNDS && strcmp(key, bound_keys[i]) != 0)
            i++;
        known = i < NBOUNDS || strcmp(key, "tirx.device_entry") == 0;
        if (i < NBOUNDS && !lift_bound(k, n, i))
            return NULL;
    }
    if (!known)
        return tx_rewrite_children(r, n);
    return n->arg[1] ? tx_rewrite(r, n->arg[1]) : tx_nothing(r->c);
}

static const tx_node *
split_alloc(tx_rewriter *r, const tx_node *n)
{
    kernel *k = r->self;
    const tx_buffer *b = n->u.buf;
    int64_t bytes, numel, align = b->align > 0 ? b->align : 64;

    if (b->scope == TX_SHARED_DYN) {
        if (k->dynamic) {
            tx_fail(k->c, n->span, TX_E_DYN_SMEM_TWICE);
            tx_diag_other(k->c, k->dynamic->span);
            return NULL;
        }
        k->dynamic = n;
    } else if (b->scope == TX_SHARED || b->scope == TX_LOCAL) {
        if (!tx_const_i64(b->shape[0], &numel) || b->rank != 1)
            return n;
        bytes = tx_dtype_bytes(tx_with_lanes(b->dtype, 1)) * tx_lanes(b->dtype) * numel;
        if (tx_bits(b->dtype) == 4)
            bytes = (bytes + 1) / 2;
        if (b->scope == TX_LOCAL)
            return bytes <= TX_MAX_LOCAL ? n : tx_fail(k->c, n->span, TX_E_LOCAL_BYTES, (long long)bytes, TX_MAX_LOCAL);
        k->static_bytes = (k->static_bytes + align - 1) / align * align + bytes;
        if (k->static_bytes > TX_MAX_STATIC_SMEM)
            return tx_fail(k->c, n->span, TX_E_STATIC_SMEM, (long long)k->static_bytes, TX_MAX_STATIC_SMEM);
    }
    return n;
}

static const tx_node *
leave(tx_rewriter *r, const tx_node *n)
{
    if (n->arg[0] && !tx_is_const(n->arg[0], 0))
        return tx_fail(r->c, n->span, TX_E_KERNEL_RETURN, tx_expr_text(r->c, n->arg[0]));
    return n->arg[0] ? tx_make_at(r->c, n->span, TX_OP_RETURN, TX_VOID, n->u, (const tx_node *[1]){NULL}, 1) : n;
}

static const tx_node *
drop_assertion(tx_rewriter *r, const tx_node *n)
{
    (void)n;
    return tx_nothing(r->c);
}

/* All blocks must be there to meet. */
static const tx_node *
meet_grid(tx_rewriter *r, const tx_node *n)
{
    kernel *k = r->self;

    if (k->k->launch.cooperative < 0)
        k->k->launch.cooperative = 1;
    return n;
}

static bool
check_bounds(kernel *k)
{
    const tx_launch *l = &k->k->launch;
    bool known = true;

    if (l->max_registers && (l->min_blocks || l->max_blocks_per_cluster || l->required_block_size)) {
        tx_fail(k->c, k->attr_span[A_MAX_REGISTERS] ? k->attr_span[A_MAX_REGISTERS] : k->k->span,
                TX_E_REGISTERS_BOUNDS);
        return false;
    }
    if (l->max_blocks_per_cluster && !l->min_blocks) {
        tx_fail(k->c, k->attr_span[A_MAX_BLOCKS] ? k->attr_span[A_MAX_BLOCKS] : k->k->span, TX_E_CLUSTER_BOUNDS);
        return false;
    }
    for (int i = 0; i < 3; i++)
        known &= k->k->block[i]->op == TX_OP_INT;
    if (!known && (l->min_blocks || l->required_block_size)) {
        int which = l->min_blocks ? A_MIN_BLOCKS : A_BLOCK_SIZE;
        tx_fail(k->c, k->attr_span[which] ? k->attr_span[which] : k->k->span, TX_E_BOUNDS_STATIC,
                l->min_blocks ? "min_blocks_per_sm" : "required_block_size");
        return false;
    }
    return true;
}

/* Static and dynamic shared memory together must be possible on the target. */
static bool
memory_fits(const kernel *k, const tx_target *t)
{
    int64_t dynamic = 0, most = tx_target_smem(t);
    tx_sb name = {0};

    if (k->k->dyn_smem && !tx_const_i64(k->k->dyn_smem, &dynamic))
        return true;
    if (dynamic <= most - k->static_bytes)
        return true;
    tx_target_name(t, &name);
    tx_fail(k->c, k->dynamic ? k->dynamic->span : k->f->span, TX_E_SMEM_LIMIT, k->f->name->text,
            (long long)(dynamic + k->static_bytes), (long long)most, name.text ? name.text : "?");
    tx_sb_free(&name);
    return false;
}

/* Bytes of dynamic shared memory: what was declared, else the one allocation's size. */
static bool
dynamic_memory(kernel *k, const tx_target *t)
{
    const tx_buffer *b = k->dynamic ? k->dynamic->u.buf : NULL;
    int64_t numel = 0;

    if (k->args[TX_L_DYN_SMEM] || !b) {
        k->k->dyn_smem = k->args[TX_L_DYN_SMEM];
        return memory_fits(k, t);
    }
    if (b->rank != 1 || !tx_const_i64(b->shape[0], &numel) || numel == 0) {
        tx_fail(k->c, k->dynamic->span, TX_E_DYN_SMEM_SIZE, k->f->name->text);
        return false;
    }
    if (tx_bits(b->dtype) == 4 && tx_lanes(b->dtype) == 1)
        numel = (numel + 1) / 2; /* two elements a byte */
    k->args[TX_L_DYN_SMEM] = tx_int(k->c, TX_I64, tx_dtype_bytes(b->dtype) * numel);
    k->k->dyn_smem = k->args[TX_L_DYN_SMEM];
    if (!k->k->dyn_smem || !memory_fits(k, t))
        return false;
    k->k->dyn_smem = k->args[TX_L_DYN_SMEM] = tx_cast(k->c, TX_I32, k->k->dyn_smem);
    return k->k->dyn_smem != NULL;
}

/* ---- parameters -------------------------------------------------------------------------------------------------------- */

static bool
add_param(kernel *k, tx_param p, const tx_node *value)
{
    tx_func *f = k->k;

    if (!value)
        return false;
    if (f->nparams >= TX_MAX_PARAMS) {
        tx_fail(k->c, k->f->span, TX_E_KERNEL_PARAMS, TX_MAX_PARAMS);
        return false;
    }
    k->args[TX_L__COUNT + f->nparams] = value;
    f->params[f->nparams++] = p;
    return true;
}

/* The user's parameter that `v` is, or NULL. */
static const tx_param *
param_of(const tx_func *f, const tx_var *v)
{
    for (uint32_t i = 0; i < f->nparams; i++)
        if (f->params[i].var == v || (f->params[i].buffer && f->params[i].buffer->data == v))
            return &f->params[i];
    return NULL;
}

static bool
add_user_params(kernel *k, const needs *s)
{
    for (uint32_t i = 0; i < k->f->nparams; i++) {
        tx_param p = k->f->params[i];
        tx_var *v = p.buffer ? p.buffer->data : p.var;
        if (!v || !tx_map_ptr(&s->text, v))
            continue;
        p.var = v;
        if (tx_is_tensormap(v))
            p.flags |= TX_PARAM_TENSORMAP;
        if (p.buffer && !(p.name = tx_intern_f(k->c, "%s_ptr", p.buffer->name->text)))
            return false;
        if (!add_param(k, p, p.buffer ? tx_buffer_data(k->c, p.buffer) : v->node))
            return false;
    }
    return true;
}

/* Maps that the host zone makes come directly after the user's parameters. */
static bool
add_tensormaps(kernel *k, tx_var *const *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tx_param p = {.var = v[i], .name = v[i]->name, .flags = TX_PARAM_TENSORMAP, .span = v[i]->span};
        if (tx_is_tensormap(v[i]) && !param_of(k->f, v[i]) && !add_param(k, p, v[i]->node))
            return false;
    }
    return true;
}

static bool
add_values(kernel *k, tx_var *const *v, uint32_t n, const needs *s, bool checks)
{
    for (uint32_t i = 0; i < n; i++) {
        tx_param p = {.var = v[i], .name = v[i]->name, .flags = checks ? TX_PARAM_SHAPE_ONLY : 0, .span = v[i]->span};
        if (tx_is_tensormap(v[i]))
            continue;
        if (checks ? tx_map_ptr(&s->text, v[i]) != NULL : param_of(k->f, v[i]) != NULL)
            continue;
        if (tx_is_handle(v[i]->dtype)) {
            tx_fail(k->c, k->k->span, TX_E_INTERNAL, "a kernel uses a pointer that nothing defines");
            return false;
        }
        if (!add_param(k, p, v[i]->node))
            return false;
    }
    return true;
}

static bool
split_parameters(kernel *k)
{
    needs s = {.c = k->c};
    bool ok;

    k->k->params = tx_new(k->c, tx_param, TX_MAX_PARAMS);
    if (!k->k->params)
        return false;
    visit(&s, k->k->body);
    if (s.failed && !k->c->nerrors)
        tx_fail(k->c, 0, TX_E_NO_MEMORY);
    ok = !s.failed && add_user_params(k, &s) && add_tensormaps(k, s.text_order.at, s.text_order.n) &&
         add_values(k, s.text_order.at, s.text_order.n, &s, false) &&
         add_values(k, s.shape_order.at, s.shape_order.n, &s, true);
    tx_map_free(&s.bound);
    tx_map_free(&s.text);
    tx_map_free(&s.shape);
    return ok;
}

/* ---- one region -------------------------------------------------------------------------------------------------------- */

typedef struct split {
    tx_ctx *c;
    const tx_target *t;
    const tx_module *m;
    const tx_func *f;
    TX_VEC(tx_func *) kernels; /* of the whole module */
    uint32_t nregions;         /* of this function */
} split;

static bool
taken(const split *s, const tx_str *name)
{
    for (uint32_t i = 0; i < s->m->nfuncs; i++)
        if (s->m->funcs[i]->flags & TX_FUNC_DEVICE && s->m->names[i] == name)
            return true;
    for (uint32_t i = 0; i < s->kernels.n; i++)
        if (s->kernels.at[i]->name == name)
            return true;
    return false;
}

/* <f>_kernel, <f>_kernel_1, ...; NVRTC takes ASCII letters only, so each other byte of the user's name becomes _xx. */
static const tx_str *
kernel_name(split *s)
{
    const tx_str *name = NULL, *f = s->f->name;
    tx_sb sb = {0};

    for (uint32_t i = 0; i < f->len; i++)
        if ((unsigned char)f->text[i] < 0x80)
            tx_sb_putc(&sb, f->text[i]);
        else
            tx_sb_f(&sb, "_%02x", (unsigned char)f->text[i]);
    if (sb.failed)
        tx_fail(s->c, s->f->span, TX_E_NO_MEMORY);
    else if (sb.n)
        do {
            name = s->nregions == 0 ? tx_intern_f(s->c, "%s_kernel", sb.text)
                                    : tx_intern_f(s->c, "%s_kernel_%u", sb.text, s->nregions);
            s->nregions++;
        } while (name && taken(s, name));
    tx_sb_free(&sb);
    return name;
}

static bool
has_tag(const tx_node *value, const char *a, const char *b)
{
    if (value->op == TX_OP_STR)
        return strstr(value->u.s->text, a) || strstr(value->u.s->text, b);
    for (uint32_t i = 0; i < value->nargs; i++)
        if (has_tag(value->arg[i], a, b))
            return true;
    return false;
}

/* Launch attributes that generation 1 writes as function attributes; both spellings of the misspelled tag. */
static void
function_attrs(const tx_func *f, tx_launch *l)
{
    for (uint32_t i = 0; i < f->nattrs; i++) {
        if (strcmp(f->attrs[i].key->text, "tirx.kernel_launch_params") != 0)
            continue;
        if (has_tag(f->attrs[i].value, "use_programtic_dependent_launch", "use_programmatic_dependent_launch"))
            l->pdl = 1;
        if (has_tag(f->attrs[i].value, "use_cooperative_launch", "use_cooperative_launch"))
            l->cooperative = 1;
    }
}

/* The body of a kernel, or of a device function (k NULL). */
static const tx_node *
kernel_body(split *s, kernel *k, const tx_node *body)
{
    tx_rewrite_fn *fn = tx_new(s->c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = s->c, .fn = fn, .self = k};

    if (!fn)
        return NULL;
    if (k) {
        fn[TX_OP_ATTR] = attr;
        fn[TX_OP_ALLOC] = split_alloc;
        fn[TX_OP_RETURN] = leave;
        fn[TX_OP_GRID_SYNC] = meet_grid;
    }
    if (s->t->disable_assert)
        fn[TX_OP_ASSERT] = drop_assertion;
    body = tx_rewrite(&r, body);
    tx_rewriter_free(&r);
    if (body)
        body = tx_lower_intrinsics(s->c, body);
    if (body && s->t->contract)
        body = tx_contract(s->c, body);
    return body;
}

static const tx_node *
region(tx_rewriter *r, const tx_node *n)
{
    split *s = r->self;
    kernel k = {.c = s->c, .f = s->f};
    const tx_str *name = kernel_name(s);
    tx_func *f = name ? tx_new_func(s->c, name, s->f->dialect) : NULL;
    tx_launch_of *of = tx_new(s->c, tx_launch_of, 1);
    const tx_node *out;

    if (!f || !of)
        return NULL;
    memcpy(k.args, n->arg, sizeof *n->arg * TX_L__COUNT);
    k.args[TX_L_BODY] = NULL;
    k.k = f;
    f->symbol = name;
    f->flags = TX_FUNC_KERNEL | (s->f->flags & (TX_FUNC_PERSISTENT | TX_FUNC_CALLS));
    f->span = n->span;
    f->launch = *n->u.launch;
    f->nattrs = s->f->nattrs;
    f->attrs = s->f->attrs;
    function_attrs(s->f, &f->launch);
    for (int i = 0; i < 3; i++)
        f->block[i] = n->arg[TX_L_BLOCK_X + i] ? n->arg[TX_L_BLOCK_X + i] : tx_int(s->c, TX_I32, 1);
    f->body = kernel_body(s, &k, n->arg[TX_L_BODY]);
    if (!f->body || !f->block[0] || !f->block[1] || !f->block[2] || !check_bounds(&k) || !dynamic_memory(&k, s->t) ||
        !split_parameters(&k) || !tx_register_budget(s->c, f))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (f->block[i]->op != TX_OP_INT)
            f->block[i] = NULL;
    if (!tx_push(s->c, &s->kernels, f))
        return NULL;
    *of = (tx_launch_of){f, f->launch};
    out = tx_make_at(s->c, n->span, TX_OP_LAUNCH, TX_VOID, (tx_payload){.launch_of = of}, k.args,
                     TX_L__COUNT + f->nparams);
    return out;
}

/* ---- the host half ------------------------------------------------------------------------------------------------------ */

typedef struct host_check {
    tx_visitor v;
    tx_ctx *c;
    bool failed;
} host_check;

static bool
host_node(tx_visitor *v, const tx_node *n)
{
    host_check *h = (host_check *)v;

    if (h->failed || n->op == TX_OP_ADDRESS_OF)
        return false;
    if (n->op == TX_OP_LOAD || n->op == TX_OP_STORE || n->op == TX_OP_ALLOC) {
        if (tx_is_host_variable(n->u.buf))
            return true;
        tx_fail(h->c, n->span, TX_E_HOST_MEMORY, n->u.buf->name->text);
        h->failed = true;
    }
    return !h->failed;
}

static tx_func *
split_func(split *s, tx_func *f)
{
    tx_rewrite_fn *fn = tx_new(s->c, tx_rewrite_fn, TX_OP__COUNT);
    tx_rewriter r = {.c = s->c, .fn = fn, .self = s};
    host_check h = {.v = {host_node, NULL}, .c = s->c};
    const tx_node *body;
    tx_func *host;

    if (!fn)
        return NULL;
    s->f = f;
    s->nregions = 0;
    fn[TX_OP_DEVICE] = region;
    body = tx_rewrite(&r, f->body);
    tx_rewriter_free(&r);
    body = body ? tx_ask_occupancy(s->c, body) : NULL;
    if (!body)
        return NULL;
    tx_walk(&h.v, body);
    host = h.failed ? NULL : tx_copy_func(s->c, f);
    if (!host)
        return NULL;
    host->body = body;
    host->flags |= TX_FUNC_HOST;
    return host;
}

tx_module *
tx_split_module(tx_ctx *c, tx_module *m, const tx_target *t)
{
    split s = {.c = c, .t = t, .m = m};
    TX_VEC(tx_func *) funcs = {0};
    TX_VEC(const tx_str *) names = {0};
    tx_module *out;
    bool done = true, split_before = false;
    tx_span saved = c->span;

    for (uint32_t i = 0; i < m->nfuncs; i++) {
        done &= (m->funcs[i]->flags & (TX_FUNC_HOST | TX_FUNC_KERNEL | TX_FUNC_DEVICE)) != 0;
        split_before |= (m->funcs[i]->flags & (TX_FUNC_HOST | TX_FUNC_KERNEL)) != 0;
    }
    if (done && split_before)
        return m;
    for (uint32_t i = 0; i < m->nfuncs; i++) {
        tx_func *f = m->funcs[i];
        uint32_t first = s.kernels.n;
        if (!(f->flags & (TX_FUNC_HOST | TX_FUNC_KERNEL | TX_FUNC_DEVICE)))
            f = split_func(&s, f);
        else if (f->flags & TX_FUNC_DEVICE)
            f = tx_func_with_body(c, f, kernel_body(&s, NULL, f->body));
        if (!f || !tx_push(c, &funcs, f) || !tx_push(c, &names, m->names[i]))
            return NULL;
        for (uint32_t k = first; k < s.kernels.n; k++)
            if (!tx_push(c, &funcs, s.kernels.at[k]) || !tx_push(c, &names, s.kernels.at[k]->name))
                return NULL;
    }
    c->span = saved;
    out = tx_new_module(c, funcs.n);
    if (!out)
        return NULL;
    out->nattrs = m->nattrs;
    out->attrs = m->attrs;
    for (uint32_t i = 0; i < funcs.n; i++) {
        out->funcs[i] = funcs.at[i];
        out->names[i] = names.at[i];
    }
    return tx_link_module(c, out);
}
