/* How many clusters, or blocks an SM, of a kernel can run at once, asked in the host zone (T.device.max_active_clusters):
 * the question concerns the next launch in the text, and gets its kernel, block, cluster and dynamic shared memory as
 * arguments. Last of SplitHostDevice. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

typedef struct occupancy {
    tx_visitor v;
    tx_ctx *c;
    TX_VEC(const tx_node *) open; /* questions that no launch has answered yet */
    tx_map set;                   /* variables that got a value since the first of them */
    tx_map launch;                /* question -> LAUNCH */
    bool failed;
} occupancy;

static bool
is_question(const tx_node *n)
{
    return n->op == TX_OP_CALL_PACKED && n->nargs == 0 &&
           (strcmp(n->u.call->name->text, TX_ASK_CLUSTERS) == 0 || strcmp(n->u.call->name->text, TX_ASK_BLOCKS) == 0);
}

typedef struct late_use {
    tx_visitor v;
    const occupancy *o;
    const tx_var *found;
} late_use;

static bool
see_late_use(tx_visitor *v, const tx_node *n)
{
    late_use *u = (late_use *)v;
    const tx_var *var = n->op == TX_OP_VAR ? n->u.var : n->op == TX_OP_LOAD ? n->u.buf->data : NULL;

    if (var && tx_map_ptr(&u->o->set, var))
        u->found = var;
    return !u->found;
}

static void
answer(occupancy *o, const tx_node *launch)
{
    late_use u = {.v = {see_late_use, NULL}, .o = o};

    for (int i = TX_L_BLOCK_X; i < TX_L__COUNT && !u.found; i++)
        if (launch->arg[i] && (i <= TX_L_CLUSTER_Z || i == TX_L_DYN_SMEM))
            tx_walk(&u.v, launch->arg[i]);
    if (u.found) {
        tx_fail(o->c, o->open.at[0]->span, TX_E_OCCUPANCY_LATE, u.found->name->text);
        tx_diag_other(o->c, launch->span);
        o->failed = true;
    }
    for (uint32_t i = 0; i < o->open.n; i++)
        o->failed |= !tx_map_put_ptr(&o->launch, o->open.at[i], launch);
    o->open.n = 0;
    tx_map_free(&o->set);
    o->set = (tx_map){0};
}

static void
set_here(occupancy *o, const tx_var *v)
{
    if (o->open.n)
        o->failed |= !tx_map_put_ptr(&o->set, v, v);
}

static bool
enter_host(tx_visitor *v, const tx_node *n)
{
    occupancy *o = (occupancy *)v;

    if (is_question(n))
        o->failed |= !tx_push(o->c, &o->open, n);
    else if (n->op == TX_OP_LAUNCH && o->open.n)
        answer(o, n);
    else if (n->op == TX_OP_FOR)
        set_here(o, n->u.loop->var);
    return !o->failed && n->op != TX_OP_LAUNCH;
}

static void
leave_host(tx_visitor *v, const tx_node *n)
{
    if (n->op == TX_OP_BIND)
        set_here((occupancy *)v, n->u.var);
    else if (n->op == TX_OP_STORE)
        set_here((occupancy *)v, n->u.buf->data);
}

/* The question with its launch: the kernel's name, block, cluster, bytes of dynamic shared memory. */
static const tx_node *
ask(tx_rewriter *r, const tx_node *n)
{
    occupancy *o = r->self;
    const tx_node *launch = tx_map_ptr(&o->launch, n), *args[8];
    const tx_func *kernel;

    if (!launch)
        return tx_rewrite_children(r, n);
    kernel = launch->u.launch_of->kernel;
    args[0] = tx_make(r->c, TX_OP_STR, TX_VOID, (tx_payload){.s = kernel->symbol}, NULL, 0);
    for (int i = 0; i < 6; i++) {
        const tx_node *e = launch->arg[(i < 3 ? TX_L_BLOCK_X : TX_L_CLUSTER_X - 3) + i];
        args[1 + i] = e ? e : tx_int(r->c, TX_I32, 1);
    }
    args[7] = launch->arg[TX_L_DYN_SMEM] ? launch->arg[TX_L_DYN_SMEM] : tx_int(r->c, TX_I32, 0);
    for (int i = 0; i < 8; i++)
        if (!args[i])
            return NULL;
    return tx_make_at(r->c, n->span, TX_OP_CALL_PACKED, n->dtype, n->u, args, 8);
}

const tx_node *
tx_ask_occupancy(tx_ctx *c, const tx_node *body)
{
    tx_rewrite_fn *fn = tx_new(c, tx_rewrite_fn, TX_OP__COUNT);
    occupancy o = {.v = {enter_host, leave_host}, .c = c};
    tx_rewriter r = {.c = c, .fn = fn, .self = &o};

    if (!fn)
        return NULL;
    fn[TX_OP_CALL_PACKED] = ask;
    tx_walk(&o.v, body);
    if (o.open.n && !o.failed) {
        tx_fail(c, o.open.at[0]->span, TX_E_OCCUPANCY_NONE);
        o.failed = true;
    }
    if (o.failed && !c->nerrors)
        tx_fail(c, 0, TX_E_NO_MEMORY);
    body = o.failed ? NULL : tx_rewrite(&r, body);
    tx_rewriter_free(&r);
    tx_map_free(&o.set);
    tx_map_free(&o.launch);
    return body;
}
