/* Compiles the host half of a lowered function into a launch plan: which arguments are expected, how the symbols follow
 * from them, what must then hold, and a small typed register program for what stands before, between and around the
 * launches. Takes a lowered module; gives a tx_plan that needs no context. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan.h"

/* A break or continue whose loop is not finished. */
typedef struct plan_jump {
    uint32_t at, loop; /* instruction; number of the loop, from 1 */
    bool is_break;
} plan_jump;

typedef struct plan_compiler {
    tx_ctx *c;
    const tx_module *m;
    const tx_func *host;
    tx_plan *p;
    tx_map regs;  /* tx_var -> register + 1 */
    tx_map data;  /* tx_var (data pointer or handle) -> parameter index + 1 */
    tx_map texts; /* symbol -> interned text of the extent that defines it */
    TX_VEC(plan_instr) code;
    TX_VEC(plan_launch) launches;
    TX_VEC(plan_packed) packed;
    TX_VEC(plan_assert) asserts;
    TX_VEC(plan_encode) encodes;
    TX_VEC(plan_jump) jumps;
    uint32_t loops; /* open ones */
    tx_map slots;   /* tx_var (a tensor map) -> slot + 1 */
    int depth;
} compiler;

static bool plan_stmt(compiler *k, const tx_node *n);

static bool
no_memory(compiler *k)
{
    tx_fail(k->c, 0, TX_E_NO_MEMORY);
    return false;
}

static char *
keep_text(compiler *k, const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = tx_malloc(n);

    if (!copy) {
        no_memory(k);
        return NULL;
    }
    memcpy(copy, text, n);
    return copy;
}

/* The heap copy of an arena vector; *at is NULL for an empty one. */
static bool
keep_array(compiler *k, const void *from, uint32_t n, size_t size, void **at)
{
    *at = NULL;
    if (n == 0)
        return true;
    *at = tx_calloc(n, size);
    if (!*at)
        return no_memory(k);
    memcpy(*at, from, n * size);
    return true;
}

static uint16_t
new_reg(compiler *k, tx_span span)
{
    if (k->p->nregs >= PLAN_MAX_REGS) {
        if (k->p->nregs == PLAN_MAX_REGS) /* told once */
            tx_fail(k->c, span, TX_E_HOST_TOO_LONG, PLAN_MAX_REGS);
        k->p->nregs = PLAN_MAX_REGS + 1;
        return PLAN_NO_REG;
    }
    return (uint16_t)k->p->nregs++;
}

static bool
plan_put(compiler *k, plan_instr i)
{
    return tx_push(k->c, &k->code, i);
}

static uint16_t
var_reg(compiler *k, const tx_var *v)
{
    uint64_t r;
    return tx_map_get(&k->regs, (uint64_t)(uintptr_t)v, &r) ? (uint16_t)(r - 1) : PLAN_NO_REG;
}

static uint16_t
set_var_reg(compiler *k, const tx_var *v, uint16_t r)
{
    if (r == PLAN_NO_REG)
        return r;
    return tx_map_put(&k->regs, (uint64_t)(uintptr_t)v, (uint64_t)r + 1) ? r : (no_memory(k), PLAN_NO_REG);
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static uint16_t
plan_unsupported(compiler *k, const tx_node *n)
{
    tx_sb text = {0};

    tx_print_node(n, &text);
    tx_fail(k->c, n->span, TX_E_HOST_EXPR, text.text ? text.text : tx_ops[n->op].name);
    tx_sb_free(&text);
    return PLAN_NO_REG;
}

static bool
binary_on_host(unsigned op)
{
    return (op >= TX_OP_EQ && op <= TX_OP_SHR) || op == TX_OP_AND || op == TX_OP_OR;
}

static uint16_t plan_expr(compiler *k, const tx_node *n);
static bool add_packed(compiler *k, const tx_node *n, uint16_t dst);

/* cond ? a : b, and the lazy logic operators, as jumps: only the taken side is evaluated. */
static uint16_t
plan_choose(compiler *k, const tx_node *n)
{
    uint16_t dst = new_reg(k, n->span), cond = plan_expr(k, n->arg[0]), side;
    uint32_t to_else, to_end;

    if (dst == PLAN_NO_REG || cond == PLAN_NO_REG)
        return PLAN_NO_REG;
    to_else = k->code.n;
    if (!plan_put(k, (plan_instr){.code = PLAN_JUMP_UNLESS, .a = cond}))
        return PLAN_NO_REG;
    side = n->op == TX_OP_OR ? cond : plan_expr(k, n->arg[1]);
    if (side == PLAN_NO_REG || !plan_put(k, (plan_instr){.code = PLAN_MOVE, .dst = dst, .a = side}))
        return PLAN_NO_REG;
    to_end = k->code.n;
    if (!plan_put(k, (plan_instr){.code = PLAN_JUMP}))
        return PLAN_NO_REG;
    k->code.at[to_else].imm.i = k->code.n;
    side = n->op == TX_OP_AND ? cond : plan_expr(k, n->arg[n->op == TX_OP_OR ? 1 : 2]);
    if (side == PLAN_NO_REG || !plan_put(k, (plan_instr){.code = PLAN_MOVE, .dst = dst, .a = side}))
        return PLAN_NO_REG;
    k->code.at[to_end].imm.i = k->code.n;
    return dst;
}

static uint16_t
plan_constant(compiler *k, const tx_node *n)
{
    plan_instr i = {.code = PLAN_CONST, .dst = new_reg(k, n->span), .type = n->dtype};

    if (n->op == TX_OP_INT)
        i.imm.i = n->u.i;
    else
        i.imm.f = n->u.f;
    return i.dst != PLAN_NO_REG && plan_put(k, i) ? i.dst : PLAN_NO_REG;
}

static uint16_t
expr_inner(compiler *k, const tx_node *n)
{
    plan_instr i = {.sub = n->op, .type = n->dtype};
    uint16_t r;

    if (n->op == TX_OP_VAR) {
        r = var_reg(k, n->u.var);
        return r == PLAN_NO_REG ? plan_unsupported(k, n) : r;
    }
    if (n->op == TX_OP_INT || n->op == TX_OP_FLOAT)
        return plan_constant(k, n);
    if (n->op == TX_OP_LOAD) { /* a host variable: what it holds now */
        i = (plan_instr){.code = PLAN_MOVE, .dst = new_reg(k, n->span), .a = var_reg(k, n->u.buf->data)};
        if (i.a == PLAN_NO_REG)
            return plan_unsupported(k, n);
        return i.dst != PLAN_NO_REG && plan_put(k, i) ? i.dst : PLAN_NO_REG;
    }
    if (n->op == TX_OP_CALL_PACKED) {
        r = new_reg(k, n->span);
        return r != PLAN_NO_REG && add_packed(k, n, r) ? r : PLAN_NO_REG;
    }
    if (n->op == TX_OP_LIKELY)
        return plan_expr(k, n->arg[0]);
    if (n->op == TX_OP_SELECT || n->op == TX_OP_IF_THEN_ELSE || n->op == TX_OP_AND || n->op == TX_OP_OR)
        return plan_choose(k, n);
    if (tx_lanes(n->dtype) != 1 || tx_is_handle(n->dtype))
        return plan_unsupported(k, n);
    if (binary_on_host(n->op)) {
        i.code = PLAN_BINARY;
    } else if (n->op == TX_OP_NEG || n->op == TX_OP_BNOT || n->op == TX_OP_ABS || n->op == TX_OP_NOT) {
        i.code = PLAN_UNARY;
    } else if (n->op == TX_OP_CAST) {
        i.code = PLAN_CAST;
    } else {
        return plan_unsupported(k, n);
    }
    i.from = n->arg[0]->dtype;
    i.a = plan_expr(k, n->arg[0]);
    i.b = n->nargs > 1 ? plan_expr(k, n->arg[1]) : 0;
    i.dst = new_reg(k, n->span);
    if (i.a == PLAN_NO_REG || i.b == PLAN_NO_REG || i.dst == PLAN_NO_REG || !plan_put(k, i))
        return PLAN_NO_REG;
    return i.dst;
}

static uint16_t
plan_expr(compiler *k, const tx_node *n)
{
    uint16_t r;

    if (!n)
        return PLAN_NO_REG;
    if (k->depth >= TX_MAX_DEPTH) {
        tx_fail(k->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
        return PLAN_NO_REG;
    }
    k->depth++;
    r = expr_inner(k, n);
    k->depth--;
    return r;
}

/* ---- tensor maps ------------------------------------------------------------------------------------------------- */

uint16_t
tx_plan_expr(compiler *k, const tx_node *n)
{
    return plan_expr(k, n);
}

bool
tx_plan_slot_of(compiler *k, const tx_var *v, uint32_t *slot)
{
    uint64_t at;

    if (!tx_map_get(&k->slots, (uint64_t)(uintptr_t)v, &at))
        return false;
    *slot = (uint32_t)(at - 1);
    return true;
}

bool
tx_plan_data_of(compiler *k, const tx_var *v, uint32_t *param)
{
    uint64_t at;

    if (!tx_map_get(&k->data, (uint64_t)(uintptr_t)v, &at))
        return false;
    *param = (uint32_t)(at - 1);
    return true;
}

/* A variable that names a map: the value is room for a new one, or another such variable. */
static bool
bind_map(compiler *k, const tx_var *v, const tx_node *value)
{
    uint32_t slot;

    if (value->op == TX_OP_STACK_ALLOCA)
        slot = k->p->nmaps++;
    else if (value->op != TX_OP_VAR || !tx_plan_slot_of(k, value->u.var, &slot))
        return plan_unsupported(k, value) != PLAN_NO_REG;
    return tx_map_put(&k->slots, (uint64_t)(uintptr_t)v, (uint64_t)slot + 1) || no_memory(k);
}

static bool
plan_encode_call(compiler *k, const tx_node *n)
{
    plan_encode made = {0};

    if (tx_plan_encode_step(k, k->c, n, &made) && tx_push(k->c, &k->encodes, made))
        return plan_put(k, (plan_instr){.code = PLAN_ENCODE, .imm.i = k->encodes.n - 1});
    tx_free(made.name);
    tx_free(made.fills);
    return false;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

bool
tx_plan_operand(compiler *k, const tx_node *n, plan_operand *out)
{
    uint64_t param;
    const tx_var *v = n->op == TX_OP_BUFFER_DATA ? n->u.buf->data : n->op == TX_OP_VAR ? n->u.var : NULL;

    out->type = n->dtype;
    if (n->op == TX_OP_VAR && tx_plan_slot_of(k, n->u.var, &out->param)) {
        out->kind = PLAN_MAP;
        return true;
    }
    if (n->op == TX_OP_STR) {
        out->kind = PLAN_STRING;
        out->text = keep_text(k, n->u.s->text);
        return out->text != NULL;
    }
    if (v && tx_is_handle(v->dtype) && tx_map_get(&k->data, (uint64_t)(uintptr_t)v, &param)) {
        out->kind = PLAN_TENSOR;
        out->param = (uint32_t)(param - 1);
        return true;
    }
    out->kind = PLAN_REG;
    out->reg = plan_expr(k, n);
    return out->reg != PLAN_NO_REG;
}

static bool
add_operands(compiler *k, const tx_node *const *args, uint32_t n, plan_operand **out)
{
    *out = NULL;
    if (n == 0)
        return true;
    *out = tx_calloc(n, sizeof **out);
    if (!*out)
        return no_memory(k);
    if (n > k->p->max_args)
        k->p->max_args = n;
    for (uint32_t i = 0; i < n; i++)
        if (!tx_plan_operand(k, args[i], &(*out)[i]))
            return false;
    return true;
}

static bool
kernel_index(compiler *k, const tx_func *kernel, uint32_t *index)
{
    *index = 0;
    for (uint32_t i = 0; i < k->m->nfuncs; i++) {
        if (k->m->funcs[i] == kernel)
            return true;
        *index += (k->m->funcs[i]->flags & TX_FUNC_KERNEL) != 0;
    }
    tx_fail(k->c, 0, TX_E_INTERNAL, "a launch names a kernel that is not in the module");
    return false;
}

static bool
add_launch(compiler *k, const tx_node *n)
{
    const tx_func *kernel = n->u.launch_of->kernel;
    plan_launch l = {.attrs = n->u.launch_of->launch};
    uint32_t nargs = n->nargs - TX_L__COUNT;

    l.attrs.nattrs = 0; /* only carried for printing; they live in the context */
    l.attrs.attrs = NULL;
    if (!kernel_index(k, kernel, &l.kernel))
        return false;
    if (TX_NEVER(nargs != kernel->nparams)) {
        tx_fail(k->c, n->span, TX_E_INTERNAL, "a launch has another number of arguments than its kernel");
        return false;
    }
    l.nargs = nargs;
    for (uint32_t i = 0; i < nargs; i++)
        l.nvisible += !(kernel->params[i].flags & TX_PARAM_SHAPE_ONLY);
    for (int i = 0; i < TX_L__COUNT; i++) {
        l.reg[i] = PLAN_NO_REG;
        if (i != TX_L_BODY && n->arg[i] && (l.reg[i] = plan_expr(k, n->arg[i])) == PLAN_NO_REG)
            return false;
    }
    if (!tx_plan_extras(k->c, k, n, &l))
        return false;
    l.name = keep_text(k, kernel->symbol ? kernel->symbol->text : kernel->name->text);
    if (!l.name || !tx_push(k->c, &k->launches, l)) {
        tx_free(l.name);
        return false;
    }
    return add_operands(k, n->arg + TX_L__COUNT, nargs, &k->launches.at[k->launches.n - 1].args) &&
           plan_put(k, (plan_instr){.code = PLAN_LAUNCH, .imm.i = k->launches.n - 1});
}

static bool
add_packed(compiler *k, const tx_node *n, uint16_t dst)
{
    plan_packed call = {.nargs = n->nargs};

    if (tx_plan_encodes(n->u.call->name->text))
        return plan_encode_call(k, n) &&
               (dst == PLAN_NO_REG || plan_put(k, (plan_instr){.code = PLAN_CONST, .dst = dst, .type = n->dtype}));
    if (tx_plan_device(n->u.call->name->text)) {
        const plan_device *d = tx_plan_device(n->u.call->name->text);
        return dst == PLAN_NO_REG ||
               plan_put(k,
                        (plan_instr){.code = PLAN_DEVICE, .dst = dst, .type = n->dtype, .imm.p = (void *)(uintptr_t)d});
    }
    call.name = keep_text(k, n->u.call->name->text);
    if (!call.name || !tx_plan_asks(k->c, k->m, n, &call) || !tx_push(k->c, &k->packed, call)) {
        tx_free(call.name);
        return false;
    }
    return add_operands(k, n->arg, n->nargs, &k->packed.at[k->packed.n - 1].args) &&
           plan_put(k, (plan_instr){.code = PLAN_PACKED, .dst = dst, .type = n->dtype, .imm.i = k->packed.n - 1});
}

static bool
plan_assertion(compiler *k, const tx_node *n)
{
    const tx_assertion *a = n->u.assertion;
    plan_assert made = {0};
    tx_sb text = {0};
    uint16_t cond = plan_expr(k, n->arg[0]);
    bool ok;

    for (uint32_t i = 0; i < a->nparts; i++)
        tx_sb_puts(&text, a->parts[i]->text);
    made.kind = keep_text(k, a->kind ? a->kind->text : "AssertionError");
    made.text = keep_text(k, text.text ? text.text : "");
    tx_sb_free(&text);
    ok = made.kind && made.text && tx_push(k->c, &k->asserts, made);
    if (!ok) {
        tx_free(made.kind);
        tx_free(made.text);
        return false;
    }
    return cond != PLAN_NO_REG && plan_put(k, (plan_instr){.code = PLAN_ASSERT, .a = cond, .imm.i = k->asserts.n - 1});
}

static bool
plan_branch(compiler *k, const tx_node *n)
{
    uint16_t cond = plan_expr(k, n->arg[0]);
    uint32_t to_else = k->code.n, to_end;

    if (cond == PLAN_NO_REG || !plan_put(k, (plan_instr){.code = PLAN_JUMP_UNLESS, .a = cond}) ||
        !plan_stmt(k, n->arg[1]))
        return false;
    if (!n->arg[2]) {
        k->code.at[to_else].imm.i = k->code.n;
        return true;
    }
    to_end = k->code.n;
    if (!plan_put(k, (plan_instr){.code = PLAN_JUMP}))
        return false;
    k->code.at[to_else].imm.i = k->code.n;
    if (!plan_stmt(k, n->arg[2]))
        return false;
    k->code.at[to_end].imm.i = k->code.n;
    return true;
}

/* What a Python programmer calls a statement that has no place on the host. */
static const char *
statement_word(unsigned op)
{
    switch (op) {
    case TX_OP_STORE: return "store";
    case TX_OP_ALLOC: return "T.alloc_buffer";
    case TX_OP_DECL: return "T.decl_buffer";
    default: return tx_ops[op].spelling[0] ? tx_ops[op].spelling : tx_ops[op].name;
    }
}

/* Jumps that break or continue of the innermost loop left behind lead to the next instruction. */
static void
land_jumps(compiler *k, bool is_break)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < k->jumps.n; i++) {
        plan_jump j = k->jumps.at[i];
        if (j.loop == k->loops && j.is_break == is_break)
            k->code.at[j.at].imm.i = k->code.n;
        else
            k->jumps.at[n++] = j;
    }
    k->jumps.n = n;
}

static bool
plan_leave_turn(compiler *k, const tx_node *n)
{
    plan_jump j = {k->code.n, k->loops, n->op == TX_OP_BREAK};

    return tx_push(k->c, &k->jumps, j) && plan_put(k, (plan_instr){.code = PLAN_JUMP});
}

/* The body and the way back to `top`; instruction `out` and every break lead behind the loop. `i += step` unless NO_REG. */
static bool
plan_turns(compiler *k, const tx_node *body, uint32_t top, uint32_t out, uint16_t i, uint16_t step)
{
    const plan_instr next = {
        .code = PLAN_BINARY, .sub = TX_OP_ADD, .dst = i, .a = i, .b = step, .type = TX_I64, .from = TX_I64};

    k->loops++;
    if (!plan_stmt(k, body))
        return false;
    land_jumps(k, false);
    if ((i != PLAN_NO_REG && !plan_put(k, next)) || !plan_put(k, (plan_instr){.code = PLAN_JUMP, .imm.i = top}))
        return false;
    k->code.at[out].imm.i = k->code.n;
    land_jumps(k, true);
    k->loops--;
    return true;
}

/* A serial loop whose step has a known sign. It counts in int64, so that the last turn does not wrap. */
static bool
plan_loop(compiler *k, const tx_node *n)
{
    uint16_t start = plan_expr(k, n->arg[0]), stop = plan_expr(k, n->arg[1]), step = plan_expr(k, n->arg[2]);
    uint16_t i = set_var_reg(k, n->u.loop->var, new_reg(k, n->span)), go = new_reg(k, n->span);
    int64_t by = 0;
    uint32_t top;

    if (start == PLAN_NO_REG || stop == PLAN_NO_REG || step == PLAN_NO_REG || i == PLAN_NO_REG || go == PLAN_NO_REG)
        return false;
    if (!tx_const_i64(n->arg[2], &by) || by == 0)
        return plan_unsupported(k, n->arg[2]) != PLAN_NO_REG;
    if (!plan_put(k, (plan_instr){.code = PLAN_MOVE, .dst = i, .a = start}))
        return false;
    top = k->code.n;
    return plan_put(k, (plan_instr){.code = PLAN_BINARY,
                                    .sub = by > 0 ? TX_OP_LT : TX_OP_GT,
                                    .dst = go,
                                    .a = i,
                                    .b = stop,
                                    .type = TX_BOOL,
                                    .from = TX_I64}) &&
           plan_put(k, (plan_instr){.code = PLAN_JUMP_UNLESS, .a = go}) &&
           plan_turns(k, n->arg[3], top, k->code.n - 1, i, step);
}

static bool
plan_while(compiler *k, const tx_node *n)
{
    uint32_t top = k->code.n;
    uint16_t cond = plan_expr(k, n->arg[0]);

    return cond != PLAN_NO_REG && plan_put(k, (plan_instr){.code = PLAN_JUMP_UNLESS, .a = cond}) &&
           plan_turns(k, n->arg[1], top, k->code.n - 1, PLAN_NO_REG, 0);
}

static bool
plan_no_stmt(compiler *k, const tx_node *n)
{
    return tx_fail(k->c, n->span, TX_E_HOST_STMT, statement_word(n->op)) != NULL;
}

/* A host variable, a local buffer of one element, is a register; it begins as 0. */
static bool
plan_variable(compiler *k, const tx_node *n)
{
    plan_instr i = {.code = PLAN_CONST, .type = n->u.buf->dtype};

    if (n->u.buf->scope != TX_LOCAL || n->u.buf->rank != 1 || !tx_is_const(n->u.buf->shape[0], 1))
        return plan_no_stmt(k, n);
    i.dst = set_var_reg(k, n->u.buf->data, new_reg(k, n->span));
    return i.dst != PLAN_NO_REG && plan_put(k, i);
}

static bool
plan_set(compiler *k, const tx_node *n)
{
    plan_instr i = {.code = PLAN_MOVE, .dst = var_reg(k, n->u.buf->data)};

    if (i.dst == PLAN_NO_REG)
        return plan_no_stmt(k, n);
    i.a = plan_expr(k, n->arg[0]);
    return i.a != PLAN_NO_REG && plan_put(k, i);
}

static bool
stmt_inner(compiler *k, const tx_node *n)
{
    uint16_t r;

    switch (n->op) {
    case TX_OP_SEQ:
        for (uint32_t i = 0; i < n->nargs; i++)
            if (!plan_stmt(k, n->arg[i]))
                return false;
        return true;
    case TX_OP_BIND:
        if (tx_is_tensormap(n->u.var))
            return bind_map(k, n->u.var, n->arg[0]);
        if (n->arg[0]->op == TX_OP_CALL_PACKED) {
            r = set_var_reg(k, n->u.var, new_reg(k, n->span));
            return r != PLAN_NO_REG && add_packed(k, n->arg[0], r);
        }
        r = plan_expr(k, n->arg[0]);
        return r != PLAN_NO_REG && set_var_reg(k, n->u.var, r) != PLAN_NO_REG;
    case TX_OP_IF: return plan_branch(k, n);
    case TX_OP_FOR: return plan_loop(k, n);
    case TX_OP_WHILE: return plan_while(k, n);
    case TX_OP_BREAK:
    case TX_OP_CONTINUE: return plan_leave_turn(k, n);
    case TX_OP_ALLOC: return plan_variable(k, n);
    case TX_OP_STORE: return plan_set(k, n);
    case TX_OP_ASSERT: return plan_assertion(k, n);
    case TX_OP_LAUNCH: return add_launch(k, n);
    case TX_OP_EVAL:
        if (n->arg[0]->op == TX_OP_CALL_PACKED)
            return add_packed(k, n->arg[0], PLAN_NO_REG);
        return n->arg[0]->op == TX_OP_INT || plan_expr(k, n->arg[0]) != PLAN_NO_REG;
    case TX_OP_RETURN:
        r = PLAN_NO_REG;
        if (n->arg[0] && (r = plan_expr(k, n->arg[0])) == PLAN_NO_REG)
            return false;
        return plan_put(k, (plan_instr){.code = PLAN_RETURN, .a = r, .type = n->arg[0] ? n->arg[0]->dtype : TX_VOID});
    case TX_OP_MATCH: /* folded into the parameters */
    case TX_OP_ATTR: return n->op == TX_OP_MATCH || !n->arg[1] || plan_stmt(k, n->arg[1]);
    default: return plan_no_stmt(k, n);
    }
}

static bool
plan_stmt(compiler *k, const tx_node *n)
{
    bool ok;

    if (!n)
        return true;
    if (k->depth >= TX_MAX_DEPTH) {
        tx_fail(k->c, n->span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
        return false;
    }
    k->depth++;
    ok = stmt_inner(k, n);
    k->depth--;
    return ok;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static bool
plan_is_written(compiler *k, uint32_t param)
{
    for (uint32_t l = 0; l < k->launches.n; l++) {
        const plan_launch *pl = &k->launches.at[l];
        uint32_t seen = 0;
        const tx_func *kernel = NULL;
        for (uint32_t i = 0; i < k->m->nfuncs && !kernel; i++)
            if ((k->m->funcs[i]->flags & TX_FUNC_KERNEL) && seen++ == pl->kernel)
                kernel = k->m->funcs[i];
        for (uint32_t i = 0; kernel && i < pl->nargs; i++) {
            if (pl->args[i].kind != PLAN_TENSOR || pl->args[i].param != param)
                continue;
            if (tx_plan_writes(kernel, kernel->params[i].var, 0))
                return true;
        }
    }
    return false;
}

static bool
param_kinds(compiler *k)
{
    for (uint32_t i = 0; i < k->host->nparams; i++) {
        const tx_param *from = &k->host->params[i];
        plan_param *to = &k->p->params[i];

        to->name = keep_text(k, from->name ? from->name->text : from->var->name->text);
        to->buffer_name = keep_text(k, from->buffer ? from->buffer->name->text : to->name ? to->name : "");
        to->reg = PLAN_NO_REG;
        if (!to->name || !to->buffer_name)
            return false;
        if (from->flags & TX_PARAM_OPTIONAL_ABSENT) {
            to->kind = PLAN_P_ABSENT;
            continue;
        }
        to->type = from->buffer ? from->buffer->dtype : from->var->dtype;
        to->kind = from->buffer                     ? PLAN_P_TENSOR
                   : tx_is_tensormap(from->var)     ? PLAN_P_MAP
                   : tx_is_handle(from->var->dtype) ? PLAN_P_POINTER
                                                    : PLAN_P_SCALAR;
        if (to->kind == PLAN_P_SCALAR) {
            to->reg = set_var_reg(k, from->var, new_reg(k, from->span));
            if (to->reg == PLAN_NO_REG)
                return false;
            continue;
        }
        if (!tx_map_put(&k->data, (uint64_t)(uintptr_t)from->var, (uint64_t)i + 1) ||
            (from->buffer && !tx_map_put(&k->data, (uint64_t)(uintptr_t)from->buffer->data, (uint64_t)i + 1)))
            return no_memory(k);
    }
    return true;
}

/* The registers of the symbols, in the order in which they can be computed. */
static bool
defines(compiler *k)
{
    tx_symbol_solution s;

    if (!tx_solve_symbols(k->c, k->host, &s))
        return false;
    k->p->ndefines = s.ndefs;
    k->p->defines = s.ndefs ? tx_calloc(s.ndefs, sizeof *k->p->defines) : NULL;
    if (s.ndefs && !k->p->defines)
        return no_memory(k);
    for (uint32_t i = 0; i < s.ndefs; i++) {
        const tx_symbol_def *from = &s.def[i];
        plan_define *to = &k->p->defines[i];
        const tx_buffer *b = k->host->params[from->param].buffer;
        const tx_str *text =
            tx_intern_f(k->c, "%s.%s[%d]", b->name->text, from->stride ? "strides" : "shape", from->dim);

        to->param = from->param;
        to->dim = (uint8_t)from->dim;
        to->stride = from->stride;
        to->c = from->c;
        to->type = from->symbol->dtype;
        to->name = keep_text(k, from->symbol->name->text);
        to->from = k->code.n;
        to->d = from->d ? plan_expr(k, from->d) : PLAN_NO_REG;
        to->until = k->code.n;
        to->symbol = set_var_reg(k, from->symbol, new_reg(k, 0));
        if (!to->name || to->symbol == PLAN_NO_REG || (from->d && to->d == PLAN_NO_REG))
            return false;
        if (from->c == 1 && !from->d && text && !tx_map_put_ptr(&k->texts, from->symbol, text))
            return no_memory(k);
    }
    return true;
}

/* Names of stand-ins while an expression is printed: identifiers, as the printer wants them, replaced in its text. */
#define STAND_IN "tirx_extent_"

static void
put_named(tx_sb *out, const char *text, const tx_str *const *names, uint32_t n)
{
    const size_t prefix = sizeof STAND_IN - 1;
    const char *at;

    while ((at = strstr(text, STAND_IN)) != NULL) {
        uint32_t i = 0;
        tx_sb_put(out, text, (size_t)(at - text));
        for (text = at + prefix; *text >= '0' && *text <= '9'; text++)
            i = i * 10 + (uint32_t)(*text - '0');
        tx_sb_puts(out, i < n ? names[i]->text : "?");
    }
    tx_sb_puts(out, text);
}

/* How an expression over symbols reads in terms of the arguments: each symbol is named by the extent that gave it. */
static const char *
plan_extent_text(compiler *k, const tx_node *e)
{
    tx_var *vars[TX_MAX_RANK];
    const tx_node *values[TX_MAX_RANK], *named;
    const tx_str *names[TX_MAX_RANK], *kept = NULL;
    uint32_t n = 0;
    tx_sb printed = {0}, out = {0};

    for (uint32_t i = 0; i < k->host->nsymbols && n < TX_MAX_RANK; i++) {
        const tx_str *text = tx_map_ptr(&k->texts, k->host->symbols[i]);
        const tx_str *id = text ? tx_intern_f(k->c, STAND_IN "%u", n) : NULL;
        tx_var *stand_in = id ? tx_new_var(k->c, TX_VAR_FREE, id, k->host->symbols[i]->dtype) : NULL;
        if (!stand_in)
            continue;
        vars[n] = k->host->symbols[i];
        names[n] = text;
        values[n++] = stand_in->node;
    }
    named = tx_substitute(k->c, e, vars, values, n);
    if (named)
        tx_print_node(named, &printed);
    if (printed.text)
        put_named(&out, printed.text, names, n);
    if (out.text)
        kept = tx_intern_z(k->c, out.text);
    tx_sb_free(&printed);
    tx_sb_free(&out);
    return kept ? kept->text : "";
}

static bool
one_extent(compiler *k, const tx_node *e, uint32_t param, int dim, bool stride, plan_extent *out)
{
    const tx_str *symbol_text = e->op == TX_OP_VAR ? tx_map_ptr(&k->texts, e->u.var) : NULL;

    out->reg = PLAN_NO_REG;
    for (uint32_t i = 0; i < k->p->ndefines; i++) {
        const plan_define *d = &k->p->defines[i];
        out->defines = out->defines || (d->param == param && d->dim == dim && d->stride == stride);
    }
    if (tx_const_i64(e, &out->value))
        return true;
    out->is_symbol = symbol_text != NULL;
    out->text = keep_text(k, symbol_text ? symbol_text->text : plan_extent_text(k, e));
    if (!out->text)
        return false;
    out->reg = plan_expr(k, e);
    return out->reg != PLAN_NO_REG;
}

static bool
plan_extents(compiler *k)
{
    for (uint32_t i = 0; i < k->host->nparams; i++) {
        const tx_buffer *b = k->host->params[i].buffer;
        plan_param *to = &k->p->params[i];

        if (to->kind != PLAN_P_TENSOR)
            continue;
        to->rank = b->rank;
        to->compact = b->strides == NULL;
        to->align = b->align;
        to->factor = b->elem_offset && b->offset_factor > 1 ? b->offset_factor : 0;
        to->elem = (int32_t)tx_dtype_bytes(b->dtype);
        if (to->factor && !one_extent(k, b->elem_offset, i, -1, false, &to->offset))
            return false;
        to->shape = tx_calloc(b->rank ? b->rank : 1, sizeof *to->shape);
        to->strides = b->strides ? tx_calloc(b->rank ? b->rank : 1, sizeof *to->strides) : NULL;
        if (!to->shape || (b->strides && !to->strides))
            return no_memory(k);
        for (int d = 0; d < b->rank; d++)
            if (!one_extent(k, b->shape[d], i, d, false, &to->shape[d]) ||
                (b->strides && !one_extent(k, b->strides[d], i, d, true, &to->strides[d])))
                return false;
    }
    return true;
}

static bool
plan_signature(compiler *k)
{
    tx_sb s = {0};

    tx_sb_f(&s, "%s(", k->host->name->text);
    for (uint32_t i = 0; i < k->host->nparams; i++) {
        const plan_param *p = &k->p->params[i];
        const tx_buffer *b = k->host->params[i].buffer;

        tx_sb_f(&s, "%s%s: ", i ? ", " : "", p->kind == PLAN_P_TENSOR ? p->buffer_name : p->name);
        if (p->kind == PLAN_P_TENSOR) {
            tx_sb_puts(&s, "Tensor([");
            for (int d = 0; d < b->rank; d++) {
                tx_sb_puts(&s, d ? ", " : "");
                tx_print_node(b->shape[d], &s);
            }
            tx_sb_puts(&s, "], ");
        }
        if (p->kind == PLAN_P_ABSENT || p->kind == PLAN_P_MAP)
            tx_sb_puts(&s, p->kind == PLAN_P_MAP ? "TensorMap" : "None");
        else
            tx_dtype_print(p->type, &s);
        tx_sb_puts(&s, p->kind == PLAN_P_TENSOR ? ")" : "");
    }
    tx_sb_puts(&s, ")");
    k->p->signature = s.failed ? NULL : keep_text(k, s.text);
    tx_sb_free(&s);
    return k->p->signature != NULL;
}

static bool
compile(compiler *k)
{
    tx_plan *p = k->p;

    p->nparams = k->host->nparams;
    p->params = tx_calloc(p->nparams ? p->nparams : 1, sizeof *p->params);
    p->name = keep_text(k, k->host->name->text);
    p->ret = k->host->ret;
    if (!p->params || !p->name)
        return no_memory(k);
    if (!param_kinds(k) || !plan_signature(k) || !defines(k))
        return false;
    p->extents = k->code.n;
    if (!plan_extents(k))
        return false;
    p->body = k->code.n;
    return plan_stmt(k, k->host->body);
}

tx_plan *
tx_plan_compile(tx_ctx *c, const tx_module *lowered, const tx_func *host)
{
    compiler k = {.c = c, .m = lowered, .host = host, .p = tx_calloc(1, sizeof(tx_plan))};
    tx_plan *p = k.p;
    bool ok = false, kept;

    if (!p) {
        no_memory(&k);
        return NULL;
    }
    ok = compile(&k);
    for (uint32_t i = 0; ok && i < p->nparams; i++)
        p->params[i].written = p->params[i].kind == PLAN_P_TENSOR && plan_is_written(&k, i);
    /* the arrays move to the plan also after a fault, so that freeing it frees what they own */
    kept = keep_array(&k, k.code.at, k.code.n, sizeof *p->instrs, (void **)&p->instrs);
    kept = keep_array(&k, k.launches.at, k.launches.n, sizeof *p->launches, (void **)&p->launches) && kept;
    kept = keep_array(&k, k.packed.at, k.packed.n, sizeof *p->packed, (void **)&p->packed) && kept;
    kept = keep_array(&k, k.asserts.at, k.asserts.n, sizeof *p->asserts, (void **)&p->asserts) && kept;
    kept = keep_array(&k, k.encodes.at, k.encodes.n, sizeof *p->encodes, (void **)&p->encodes) && kept;
    p->ninstrs = p->instrs ? k.code.n : 0;
    p->nlaunches = p->launches ? k.launches.n : 0;
    p->npacked = p->packed ? k.packed.n : 0;
    p->nasserts = p->asserts ? k.asserts.n : 0;
    p->nencodes = p->encodes ? k.encodes.n : 0;
    tx_map_free(&k.slots);
    tx_map_free(&k.regs);
    tx_map_free(&k.data);
    tx_map_free(&k.texts);
    if (ok && kept)
        return p;
    tx_plan_free(p);
    return NULL;
}

/* ---- the rest of the public face --------------------------------------------------------------------------------- */

static void
free_operands(plan_operand *at, uint32_t n)
{
    for (uint32_t i = 0; at && i < n; i++)
        tx_free(at[i].text);
    tx_free(at);
}

static void
free_param(plan_param *p)
{
    for (int d = 0; d < p->rank; d++) {
        if (p->shape)
            tx_free(p->shape[d].text);
        if (p->strides)
            tx_free(p->strides[d].text);
    }
    tx_free(p->shape);
    tx_free(p->strides);
    tx_free(p->offset.text);
    tx_free(p->name);
    tx_free(p->buffer_name);
}

void
tx_plan_free(tx_plan *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; p->params && i < p->nparams; i++)
        free_param(&p->params[i]);
    for (uint32_t i = 0; p->defines && i < p->ndefines; i++)
        tx_free(p->defines[i].name);
    for (uint32_t i = 0; i < p->nlaunches; i++) {
        tx_free(p->launches[i].name);
        free_operands(p->launches[i].args, p->launches[i].nargs);
    }
    for (uint32_t i = 0; i < p->npacked; i++) {
        tx_free(p->packed[i].name);
        free_operands(p->packed[i].args, p->packed[i].nargs);
    }
    for (uint32_t i = 0; i < p->nasserts; i++) {
        tx_free(p->asserts[i].kind);
        tx_free(p->asserts[i].text);
    }
    for (uint32_t i = 0; i < p->nencodes; i++) {
        tx_free(p->encodes[i].name);
        tx_free(p->encodes[i].fills);
    }
    tx_free(p->encodes);
    tx_free(p->params);
    tx_free(p->defines);
    tx_free(p->instrs);
    tx_free(p->launches);
    tx_free(p->packed);
    tx_free(p->asserts);
    tx_free(p->name);
    tx_free(p->signature);
    tx_free(p);
}

uint32_t
tx_plan_nparams(const tx_plan *p)
{
    return p->nparams;
}

uint32_t
tx_plan_nlaunches(const tx_plan *p)
{
    return p->nlaunches;
}

const char *
tx_plan_signature(const tx_plan *p)
{
    return p->signature;
}

const char *
tx_plan_param_name(const tx_plan *p, uint32_t i)
{
    return i < p->nparams ? p->params[i].name : NULL;
}

bool
tx_plan_names_stream(const tx_plan *p)
{
    for (uint32_t i = 0; i < p->nlaunches; i++)
        if (p->launches[i].reg[TX_L_STREAM] != PLAN_NO_REG)
            return true;
    return false;
}
