/* From a lowered kernel to a program for the VM: registers, constants, names, places, and the layout of the frame.
 * What is generated for expressions, memory and statements stands in code_*.c. SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"
#include "emu/ptx.h"
#include "emu/ptx_list.h"

tx_vt
tx_vt_of(tx_dtype t)
{
    switch (tx_kind(t)) {
    case TX_KIND_BOOL: return VT_B;
    case TX_KIND_I8:
    case TX_KIND_I16:
    case TX_KIND_I32: return VT_I32;
    case TX_KIND_U8:
    case TX_KIND_U16:
    case TX_KIND_U32: return VT_U32;
    case TX_KIND_I64: return VT_I64;
    case TX_KIND_U64:
    case TX_KIND_HANDLE: return VT_U64;
    case TX_KIND_F32: return VT_F32;
    case TX_KIND_F64: return VT_F64;
    default: return tx_is_float(t) ? VT_X : VT_NONE;
    }
}

uint32_t
tx_code_emit(tx_code *g, unsigned op, unsigned aux, uint32_t d, uint32_t a, uint32_t b, uint32_t c, int64_t imm)
{
    tx_insn in = {.op = (uint16_t)op, .aux = (uint16_t)aux, .d = d, .a = a, .b = b, .c = c, .imm = imm};
    if (!tx_push(g->c, &g->code, in))
        g->failed = true;
    return g->code.n - 1;
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

uint32_t
tx_code_reg(tx_code *g, unsigned cls)
{
    uint32_t reg;
    if (g->free[cls].n)
        reg = g->free[cls].at[--g->free[cls].n];
    else
        reg = rc_make(cls, g->nreg[cls]++);
    tx_livereg l = {reg, false};
    if (!tx_push(g->c, &g->live, l))
        g->failed = true;
    return reg;
}

uint32_t
tx_code_regs(tx_code *g, unsigned cls, uint32_t n)
{
    uint32_t first = g->nreg[cls];
    g->nreg[cls] += n;
    return rc_make(cls, first);
}

void
tx_code_keep(tx_code *g, uint32_t reg)
{
    for (uint32_t i = g->live.n; i-- > 0;)
        if (g->live.at[i].reg == reg) {
            g->live.at[i].keep = true;
            return;
        }
}

/* Registers taken since the mark that nobody keeps are free again. */
void
tx_code_free_temps(tx_code *g, uint32_t mark)
{
    uint32_t n = mark;
    for (uint32_t i = mark; i < g->live.n; i++) {
        tx_livereg l = g->live.at[i];
        if (l.keep)
            g->live.at[n++] = l;
        else if (!tx_push(g->c, &g->free[rc_class(l.reg)], l.reg))
            g->failed = true;
    }
    g->live.n = n;
}

uint32_t
tx_code_const(tx_code *g, uint64_t bits)
{
    uint64_t at, key = bits ^ 0x5bd1e9955bd1e995u; /* 0 is no key of the map; what collides is only stored twice */
    if (key == 0)
        key = 1;
    if (tx_map_get(&g->const_at, key, &at) && g->consts.at[at].u64 == bits)
        return rc_make(RC_CONST, (uint32_t)at);
    tx_slot s = {.u64 = bits};
    if (!tx_push(g->c, &g->consts, s) || !tx_map_put(&g->const_at, key, g->consts.n - 1))
        g->failed = true;
    return rc_make(RC_CONST, g->consts.n - 1);
}

uint32_t
tx_code_operand(tx_code *g, const tx_val *v)
{
    return v->form == VF_CONST ? tx_code_const(g, v->k.u64) : v->form == VF_NONE ? tx_code_const(g, 0) : v->reg;
}

tx_vreg
tx_code_vreg(tx_code *g, tx_val v)
{
    tx_vreg r = {tx_code_operand(g, &v), v.vt, v.form == VF_ROW, v.t};
    return r;
}

/* ---- scopes and names -------------------------------------------------------------------------------------------- */

tx_scope_mark
tx_code_push(tx_code *g)
{
    tx_scope_mark m = {g->binds.n, g->cached.n, g->live.n};
    return m;
}

void
tx_code_pop(tx_code *g, tx_scope_mark m)
{
    while (g->binds.n > m.binds) {
        code_binding *b = &g->binds.at[--g->binds.n];
        if (!tx_map_put(&g->names, (uint64_t)(uintptr_t)b->key, b->before))
            g->failed = true;
    }
    while (g->cached.n > m.cached) {
        tx_cached *e = &g->cached.at[--g->cached.n];
        if (!tx_map_put(&g->cache, e->key, e->before))
            g->failed = true;
    }
    for (uint32_t i = m.live; i < g->live.n; i++)
        g->live.at[i].keep = false;
    tx_code_free_temps(g, m.live);
}

static code_binding *
code_bind(tx_code *g, const tx_var *v)
{
    uint64_t before = 0;
    code_binding b = {.key = v};
    tx_map_get(&g->names, (uint64_t)(uintptr_t)v, &before);
    b.before = before;
    if (!tx_push(g->c, &g->binds, b) || !tx_map_put(&g->names, (uint64_t)(uintptr_t)v, g->binds.n)) {
        g->failed = true;
        return NULL;
    }
    return &g->binds.at[g->binds.n - 1];
}

bool
tx_code_bind(tx_code *g, const tx_var *v, tx_val val)
{
    code_binding *b = code_bind(g, v);
    if (b)
        b->val = val;
    return b != NULL;
}

tx_storage *
tx_code_bind_storage(tx_code *g, const tx_var *v, tx_storage st)
{
    code_binding *b = code_bind(g, v);
    if (!b)
        return NULL;
    b->is_storage = true;
    b->st = st;
    return &b->st;
}

code_binding *
tx_code_find(tx_code *g, const tx_var *v)
{
    uint64_t at;
    if (!tx_map_get(&g->names, (uint64_t)(uintptr_t)v, &at) || at == 0)
        return NULL;
    return &g->binds.at[at - 1];
}

uint64_t
tx_code_facts(const tx_code *g, const void *key)
{
    uint64_t v = 0;
    tx_map_get(&g->facts, (uint64_t)(uintptr_t)key, &v);
    return v;
}

void
tx_code_learn(tx_code *g, const void *key, unsigned fact)
{
    uint64_t v = tx_code_facts(g, key);
    if (v & fact)
        return;
    if (!tx_map_put(&g->facts, (uint64_t)(uintptr_t)key, v | fact))
        g->failed = true;
    g->again = true;
}

/* ---- places and tables ------------------------------------------------------------------------------------------- */

const char *
tx_code_text(tx_code *g, const char *text, size_t n)
{
    char *s = tx_arena_alloc(&g->p->arena, n + 1, 1);
    if (!s) {
        g->failed = true;
        return "";
    }
    memcpy(s, text, n);
    return s;
}

static const char *
file_of(tx_code *g, uint32_t file)
{
    const tx_file *from = &g->c->files.at[file];
    for (uint32_t i = 0; i < g->texts.n; i++)
        if (g->texts.at[i].first_line == from->first_line && strcmp(g->texts.at[i].file, from->name->text) == 0 &&
            strcmp(g->texts.at[i].text, from->text->text) == 0)
            return g->texts.at[i].file;
    tx_text t = {tx_code_text(g, from->name->text, from->name->len), tx_code_text(g, from->text->text, from->text->len),
                 from->first_line};
    if (!tx_push(g->c, &g->texts, t))
        g->failed = true;
    return t.file;
}

/* A call of `function` at a place, index + 1; one that is there already serves again. */
static uint32_t
call_from(tx_code *g, tx_span span, const tx_span_info *from, const char *function, uint32_t next, bool called)
{
    uint64_t found;
    if (tx_map_get(&g->call_at, span, &found)) {
        const tx_emu_call *e = &g->calls.at[found - 1];
        if (e->next == next && e->called == called && strcmp(e->function, function) == 0)
            return (uint32_t)found;
    }
    tx_emu_call call = {.line = from->line, .next = next, .called = called};
    call.function = tx_code_text(g, function, strlen(function));
    call.caller = from->function ? tx_code_text(g, from->function->text, from->function->len) : "?";
    call.file = file_of(g, from->file);
    if (!tx_push(g->c, &g->calls, call) || !tx_map_put(&g->call_at, span, g->calls.n)) {
        g->failed = true;
        return 0;
    }
    return g->calls.n;
}

/* The call that brought the text at a place into the kernel, index + 1; 0: it is the kernel's own. */
static uint32_t
inline_call_of(tx_code *g, const tx_span_info *at, int depth)
{
    const tx_span_info *from = tx_span_at(g->c, at->inlined_at);
    if (!at->inlined_at || from == at || !from->line || depth > TX_MAX_INLINE_DEPTH)
        return g->inlined ? g->inlined->call : 0;
    return call_from(g, at->inlined_at, from, at->function ? at->function->text : "?",
                     inline_call_of(g, from, depth + 1), false);
}

uint32_t
tx_code_called(tx_code *g, tx_span span, const tx_str *function)
{
    const tx_span_info *at = tx_span_at(g->c, span ? span : g->span);
    if (!at->line || !function)
        return g->inlined ? g->inlined->call : 0;
    return call_from(g, span ? span : g->span, at, function->text, inline_call_of(g, at, 0), true);
}

uint32_t
tx_code_site(tx_code *g, tx_span span, const char *buffer, const char *role, uint32_t mem, uint32_t dims)
{
    const tx_span_info *at = tx_span_at(g->c, span ? span : g->span);
    tx_site s = {.file = "", .buffer = "", .role = role, .mem = mem, .dims = dims};
    if (at && at->line && at->file < g->c->files.n) {
        s.file = file_of(g, at->file);
        s.line = at->line, s.col = at->col, s.end_line = at->end_line, s.end_col = at->end_col;
        s.call = inline_call_of(g, at, 0);
    }
    if (buffer)
        s.buffer = tx_code_text(g, buffer, strlen(buffer));
    if (!tx_push(g->c, &g->sites, s))
        g->failed = true;
    return g->sites.n - 1;
}

uint32_t
tx_code_outside(tx_code *g, const char *text, uint32_t nargs, tx_vreg *args, tx_dtype ret)
{
    tx_outside o = {tx_code_text(g, text, strlen(text)), nargs, NULL, ret};
    if (nargs && !(o.args = tx_arena_alloc(&g->p->arena, nargs * sizeof *args, _Alignof(tx_vreg))))
        g->failed = true;
    else if (nargs)
        memcpy(o.args, args, nargs * sizeof *args);
    if (!tx_push(g->c, &g->outside, o))
        g->failed = true;
    return g->outside.n - 1;
}

/* The uniform slots in use: parts of a warp can join again only when they agree on these. */
uint32_t
tx_code_live(tx_code *g)
{
    tx_live l = {0, NULL};
    l.slot = tx_arena_alloc(&g->p->arena, (g->live.n + 1) * sizeof *l.slot, _Alignof(uint32_t));
    if (!l.slot) {
        g->failed = true;
        return 0;
    }
    for (uint32_t i = 0; i < g->live.n; i++)
        if (rc_class(g->live.at[i].reg) == RC_SLOT)
            l.slot[l.n++] = g->live.at[i].reg;
    if (!tx_push(g->c, &g->lives, l))
        g->failed = true;
    return g->lives.n - 1;
}

uint32_t
tx_code_here(tx_code *g)
{
    return g->label = g->code.n;
}

void
tx_code_target(tx_code *g, uint32_t at)
{
    if (at < g->code.n)
        g->code.at[at].imm = tx_code_here(g);
}

/* ---- coordinates and parameters ---------------------------------------------------------------------------------- */

tx_val
tx_code_coord(tx_code *g, unsigned op, int axis, bool row)
{
    tx_val v = {.form = row ? VF_ROW : VF_UNI, .vt = VT_I32, .t = TX_I32, .lo = 0, .hi = INT32_MAX};
    for (uint32_t i = 0; i < g->coords.n; i++)
        if (g->coords.at[i].op == op && g->coords.at[i].axis == axis && g->coords.at[i].row == row) {
            v.reg = g->coords.at[i].reg;
            return v;
        }
    v.reg = row ? tx_code_regs(g, RC_ROW4, 1) : tx_code_regs(g, RC_PRESET, 1);
    tx_origin c = {(uint16_t)op, (uint8_t)axis, row, v.reg};
    if (!tx_push(g->c, &g->coords, c))
        g->failed = true;
    return v;
}

static void
bind_params(tx_code *g)
{
    for (uint32_t i = 0; i < g->f->nparams; i++) {
        const tx_param *q = &g->f->params[i];
        if (tx_is_handle(q->var->dtype)) {
            const tx_buffer *b = q->buffer;
            const char *name = b ? b->name->text : q->name ? q->name->text : q->var->name->text;
            tx_dtype elem = b ? b->dtype : q->var->elem;
            tx_memory m = {.name = tx_code_text(g, name, strlen(name)), .scope = TX_GLOBAL, .param = i};
            m.elem = elem && tx_vt_of(elem) != VT_NONE ? (uint8_t)tx_dtype_bytes(elem) : 1;
            m.fp4 = elem && tx_bits(elem) == 4;
            if (!tx_push(g->c, &g->mems, m))
                g->failed = true;
            tx_storage st = {
                .kind = ST_MEM, .mem = g->mems.n - 1, .origin = b && b->origin ? b->origin : b, .fp4 = m.fp4};
            tx_code_bind_storage(g, q->var, st);
            m.target = q->flags & TX_PARAM_TENSORMAP;
            if (m.target && !tx_push(g->c, &g->mems, m))
                g->failed = true;
            if (b && b->data != q->var)
                tx_code_bind_storage(g, b->data, st);
            continue;
        }
        tx_vt vt = tx_vt_of(q->var->dtype);
        tx_val v = {.form = VF_UNI, .vt = (uint8_t)vt, .t = q->var->dtype, .lo = INT64_MIN, .hi = INT64_MAX};
        uint64_t hi;
        if (tx_is_int(v.t) && vt != VT_U64) {
            tx_int_limits(v.t, &v.lo, &hi);
            v.hi = hi > INT64_MAX ? INT64_MAX : (int64_t)hi;
        }
        v.reg = tx_code_regs(g, RC_PRESET, 1);
        tx_preset s = {i, v.reg, q->var->dtype};
        if (!tx_push(g->c, &g->presets, s))
            g->failed = true;
        tx_code_bind(g, q->var, v);
    }
}

/* ---- what must be known before the first generation --------------------------------------------------------------- */

static void note_addressed(tx_code *g, const tx_node *n, int depth);

/* A register that an instruction writes is an element, not an address. */
static void
note_ptx(tx_code *g, const tx_node *n, int depth)
{
    for (uint32_t i = 0; i < n->nargs; i++) {
        bool written = i < n->u.ptx->nargs && tx_ptx_mode(n->u.ptx, i) != 'r' && !tx_ptx_is_sunk(n->u.ptx, i);
        const tx_node *a = n->arg[i];
        if (written && tx_code_ptx_watches(n, i))
            tx_code_learn(g, a->arg[0]->u.buf->data, FACT_WATCHED);
        else if (!written && a->op == TX_OP_LOAD && a->u.buf->scope == TX_LOCAL && tx_code_ptx_watches(n, i))
            tx_code_learn(g, a->u.buf->data, FACT_WATCHED);
        for (uint32_t k = 0; written && k < a->arg[0]->nargs; k++)
            note_addressed(g, a->arg[0]->arg[k], depth + 1);
        if (!written)
            note_addressed(g, a, depth + 1);
    }
}

static void
note_addressed(tx_code *g, const tx_node *n, int depth)
{
    if (!n || depth > TX_MAX_DEPTH)
        return;
    if (n->op == TX_OP_PTX) {
        note_ptx(g, n, depth);
        return;
    }
    if (n->op == TX_OP_FENCE_OPERAND)
        return;
    if (n->op == TX_OP_ADDRESS_OF)
        tx_code_learn(g, n->arg[0]->u.buf->data, FACT_ADDRESSED);
    if (n->op == TX_OP_BUFFER_DATA)
        tx_code_learn(g, n->u.buf->data, FACT_ADDRESSED);
    if (n->op == TX_OP_VAR && tx_is_handle(n->dtype))
        tx_code_learn(g, n->u.var, FACT_ADDRESSED);
    if ((n->op == TX_OP_LOAD || n->op == TX_OP_STORE || n->op == TX_OP_DECL) && n->u.buf->data->buffer &&
        n->u.buf->dtype != n->u.buf->data->buffer->dtype)
        tx_code_learn(g, n->u.buf->data, FACT_ADDRESSED);
    if (n->op == TX_OP_DECL && n->arg[0]->op == TX_OP_BUFFER_DATA && n->arg[0]->u.buf->data == n->u.buf->data)
        return; /* a view of the same elements needs no address */
    for (uint32_t i = 0; i < n->nargs; i++)
        note_addressed(g, n->arg[i], depth + 1);
}

/* Bytes of the smallest access to shared memory; gives the granule of the shadow. */
static void
note_shared(tx_code *g, const tx_node *n, int depth)
{
    if (!n || depth > TX_MAX_DEPTH)
        return;
    if (n->op == TX_OP_LOAD || n->op == TX_OP_STORE) {
        const tx_buffer *b = n->u.buf;
        int64_t size = tx_dtype_bytes(tx_scalar_of(b->dtype));
        if (b->scope != TX_GLOBAL && b->scope != TX_LOCAL && size > 0 && size < g->min_shared)
            g->min_shared = size;
    }
    if ((n->op == TX_OP_LDG || n->op == TX_OP_CTA_REDUCE) && tx_dtype_bytes(tx_scalar_of(n->dtype)) < g->min_shared)
        g->min_shared = tx_dtype_bytes(tx_scalar_of(n->dtype));
    if (n->op == TX_OP_PTX && tx_code_ptx_granule(n) < g->min_shared)
        g->min_shared = tx_code_ptx_granule(n);
    for (uint32_t i = 0; i < n->nargs; i++)
        note_shared(g, n->arg[i], depth + 1);
}

/* The functions of the module that the kernel calls, also through one another, each once. */
static bool
find_callees(tx_code *g, const tx_node *n)
{
    const tx_func *f = n->op == TX_OP_CALL_FUNC ? n->u.call->func : NULL;

    for (uint32_t i = 0; f && i < g->callees.n; i++)
        if (g->callees.at[i] == f)
            f = NULL;
    if (f && (!tx_push(g->c, &g->callees, f) || !find_callees(g, f->body)))
        return false;
    if (!(n->flags & TX_NF_IMPURE) && !tx_is_stmt(n))
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && !find_callees(g, n->arg[i]))
            return false;
    return true;
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

static uint32_t
code_place(const tx_emu_program *p, uint32_t reg)
{
    if (!(reg & RC_TAG))
        return reg;
    uint32_t i = rc_index(reg);
    switch (rc_class(reg)) {
    case RC_CONST: return p->consts_at + 8 * i;
    case RC_PRESET: return p->consts_at + 8 * (p->nconsts + i);
    case RC_SLOT: return p->slots_at + 8 * i;
    case RC_INIT: return p->inits_at + 8 * i;
    case RC_MASK: return p->masks_at + 8 * i;
    case RC_ROW4: return p->rows4_at + 4 * TX_LANES * i;
    default: return p->rows8_at + 8 * TX_LANES * i;
    }
}

static bool
layout(tx_code *g)
{
    tx_emu_program *p = g->p;
    uint64_t at = 0;
    p->nconsts = g->consts.n;
    p->consts_at = 0;
    at = 8 * ((uint64_t)g->consts.n + g->nreg[RC_PRESET]);
    p->slots_at = (uint32_t)at, p->nslots = g->nreg[RC_SLOT], at += 8 * (uint64_t)p->nslots;
    p->inits_at = (uint32_t)at, p->ninits = g->nreg[RC_INIT], at += 8 * (uint64_t)p->ninits;
    p->masks_at = (uint32_t)at, p->nmasks = g->nreg[RC_MASK], at += 8 * (uint64_t)p->nmasks;
    at = (at + 63) & ~(uint64_t)63;
    p->rows4_at = (uint32_t)at, p->nrows4 = g->nreg[RC_ROW4], at += 4ull * TX_LANES * p->nrows4;
    p->rows8_at = (uint32_t)at, p->nrows8 = g->nreg[RC_ROW8], at += 8ull * TX_LANES * p->nrows8;
    if (at >= RC_TAG)
        return tx_fail(g->c, g->f->span, TX_E_INTERNAL, "the kernel's local arrays are too large to emulate"), false;
    p->frame_bytes = (uint32_t)at;
    for (uint32_t i = 0; i < g->code.n; i++) {
        tx_insn *in = &g->code.at[i];
        in->d = code_place(p, in->d), in->a = code_place(p, in->a), in->b = code_place(p, in->b),
        in->c = code_place(p, in->c);
        if (in->op == V_SHFL)
            in->imm = code_place(p, (uint32_t)in->imm);
    }
    for (uint32_t i = 0; i < g->dims.n; i++)
        for (uint32_t d = 0; d < g->dims.at[i].n; d++) {
            g->dims.at[i].idx[d].reg = code_place(p, g->dims.at[i].idx[d].reg);
            g->dims.at[i].ext[d].reg = code_place(p, g->dims.at[i].ext[d].reg);
        }
    for (uint32_t i = 0; i < g->outside.n; i++)
        for (uint32_t d = 0; d < g->outside.at[i].nargs; d++)
            g->outside.at[i].args[d].reg = code_place(p, g->outside.at[i].args[d].reg);
    for (uint32_t i = 0; i < g->ptx.n; i++) {
        tx_ptx_op *k = g->ptx.at[i];
        for (unsigned d = 0; d < k->nin; d++)
            k->in[d].reg = code_place(p, k->in[d].reg);
        for (unsigned d = 0; d < k->nout; d++)
            k->out[d].reg = code_place(p, k->out[d].reg);
        for (unsigned d = 0; k->in_init && d < k->nin; d++)
            k->in_init[d] = k->in_init[d] == UINT32_MAX ? UINT32_MAX : code_place(p, k->in_init[d]);
        for (unsigned d = 0; k->out_init && d < k->nout; d++)
            k->out_init[d] = k->out_init[d] == UINT32_MAX ? UINT32_MAX : code_place(p, k->out_init[d]);
    }
    for (uint32_t i = 0; i < g->lives.n; i++)
        for (uint32_t d = 0; d < g->lives.at[i].n; d++)
            g->lives.at[i].slot[d] = code_place(p, g->lives.at[i].slot[d]);
    for (uint32_t i = 0; i < g->coords.n; i++)
        g->coords.at[i].reg = code_place(p, g->coords.at[i].reg);
    for (uint32_t i = 0; i < g->presets.n; i++)
        g->presets.at[i].reg = code_place(p, g->presets.at[i].reg);
    return true;
}

/* Copies a vector of the compilation into the program. */
static void *
own(tx_code *g, const void *from, size_t n, size_t size)
{
    void *to = tx_arena_alloc(&g->p->arena, n * size + 1, 16);
    if (!to)
        return g->failed = true, NULL;
    if (n)
        memcpy(to, from, n * size);
    return to;
}

#define OWN(field, vec) (p->n##field = g->vec.n, p->field = own(g, g->vec.at, g->vec.n, sizeof *g->vec.at))

/* Which memories the kernel reads and writes, and its smallest access to global memory. */
static void
note_uses(const tx_code *g)
{
    bool loads = false, stores = false;
    unsigned least = 4;
    for (uint32_t i = 0; i < g->code.n; i++) {
        const tx_insn *in = &g->code.at[i];
        bool load = in->op >= V_LD_I8_S && in->op < V_ST_8_S, store = in->op >= V_ST_8_S && in->op <= V_ST_N_V64;
        unsigned size = 4;
        if (load || store) {
            static const uint8_t of_loads[] = {1, 1, 2, 2, 4, 8, 1, 1}, of_stores[] = {1, 2, 4, 8, 1, 1};
            tx_memory *m = &g->mems.at[in->c];
            *(load ? &m->read : &m->written) = true;
            if (m->scope == TX_GLOBAL)
                size = load ? of_loads[(in->op - V_LD_I8_S) / 3] : of_stores[(in->op - V_ST_8_S) / 3];
        } else if (in->op == V_LDP || in->op == V_STP || in->op == V_ATOM) {
            loads = loads || in->op != V_STP;
            stores = stores || in->op != V_LDP;
            size = tx_kinds[in->aux & TX_ACC_KIND].bytes;
        }
        least = size < least ? size : least;
    }
    for (uint32_t i = 0; i < g->mems.n; i++)
        if (g->mems.at[i].pointed) {
            g->mems.at[i].read = g->mems.at[i].read || loads;
            g->mems.at[i].written = g->mems.at[i].written || stores;
        }
    for (uint32_t i = 0; i < g->ptx.n; i++) {
        const tx_ptx_emu *k = g->ptx.at[i]->emu;
        bool fence = k == &tx_emu_ptx_fence_proxy && tx_has_tok(g->ptx.at[i], TK_async);
        const char *scope = k == &tx_emu_ptx_mbar_wait ? tx_ptx_slot(g->ptx.at[i], "scope") : NULL;
        g->p->cta_waits |= scope && strcmp(scope, "cta") == 0;
        g->p->common_fences |= fence && !tx_has_tok(g->ptx.at[i], TK_global) && !tx_has_tok(g->ptx.at[i], TK_shared);
        g->p->bulk_stores |= k == &tx_emu_ptx_bulk_copy || k == &tx_emu_ptx_bulk_reduce;
        g->p->tensor_stores |= k == &tx_emu_ptx_tma_store || k == &tx_emu_ptx_tma_reduce;
    }
    g->p->global_shift = least >= 4 ? 2 : least == 2 ? 1 : 0;
}

static bool
code_finish(tx_code *g)
{
    tx_emu_program *p = g->p;
    note_uses(g);
    if (!layout(g))
        return false;
    p->name = tx_code_text(g, g->f->name ? g->f->name->text : "", g->f->name ? g->f->name->len : 0);
    p->nparams = g->f->nparams;
    OWN(code, code);
    OWN(consts, consts);
    OWN(presets, presets);
    OWN(coords, coords);
    OWN(mems, mems);
    OWN(sites, sites);
    OWN(calls, calls);
    OWN(dims, dims);
    OWN(outside, outside);
    OWN(live, lives);
    OWN(texts, texts);
    OWN(ptx, ptx);
    p->max_ctl = (uint32_t)g->max_ctl + 1;
    p->static_smem = g->smem;
    p->local_bytes = g->local_bytes;
    p->granule_shift = g->min_shared >= 4 ? 2 : g->min_shared == 2 ? 1 : 0;
    p->partial_barriers = g->partial_barriers;
    p->meets_ctas = g->meets_ctas;
    p->agents = g->agents;
    p->registers = (uint32_t)g->f->launch.max_registers;
    return !g->failed;
}

static void
reset(tx_code *g)
{
    g->code.n = g->consts.n = g->live.n = g->binds.n = g->cached.n = g->loops.n = g->jumps.n = 0;
    g->sites.n = g->dims.n = g->mems.n = g->coords.n = g->presets.n = g->outside.n = g->lives.n = g->texts.n =
        g->calls.n = g->ptx.n = 0;
    for (int i = 0; i < RC__COUNT; i++)
        g->nreg[i] = g->free[i].n = 0;
    tx_map_free(&g->names), tx_map_free(&g->cache), tx_map_free(&g->const_at), tx_map_free(&g->call_at);
    memset(&g->call_at, 0, sizeof g->call_at);
    memset(&g->names, 0, sizeof g->names), memset(&g->cache, 0, sizeof g->cache);
    memset(&g->const_at, 0, sizeof g->const_at);
    g->div = g->ctl = g->max_ctl = g->depth = 0;
    g->ncalls = 0;
    g->label = 0;
    g->leads = LEADS_NOWHERE;
    g->smem = g->local_bytes = 0;
    g->again = g->partial_barriers = g->meets_ctas = g->agents = false;
    tx_arena_free(&g->p->arena);
    tx_arena_init(&g->p->arena);
}

static void
generate(tx_code *g)
{
    reset(g);
    /* What fails to grow later leaves a last element, whose index its maker gives; so there must be a first. */
    if (!tx_reserve(g->c, &g->code, 64) || !tx_reserve(g->c, &g->sites, 16) || !tx_reserve(g->c, &g->dims, 16) ||
        !tx_reserve(g->c, &g->mems, 16) || !tx_reserve(g->c, &g->binds, 16) || !tx_reserve(g->c, &g->consts, 16)) {
        g->failed = true;
        return;
    }
    tx_code_site(g, g->f->span, NULL, "", 0, 0); /* site 0: the kernel */
    bind_params(g);
    tx_code_block(g, g->f->body);
    tx_code_emit(g, V_END, 0, 0, 0, 0, 0, 0);
}

tx_emu_program *
tx_emu_compile(tx_ctx *c, const tx_func *kernel)
{
    tx_emu_program *p = tx_calloc(1, sizeof *p);
    tx_code *g = tx_calloc(1, sizeof *g);
    bool ok = false;
    uint32_t nerrors = c->nerrors;
    tx_func narrow;

    if (!p || !g) {
        tx_fail(c, 0, TX_E_NO_MEMORY);
        goto out;
    }
    tx_arena_init(&p->arena);
    narrow = *kernel;
    narrow.body = tx_emu_without_wide(c, kernel->body);
    if (!narrow.body)
        goto out;
    if (narrow.body != kernel->body)
        kernel = &narrow;
    g->c = c, g->f = kernel, g->p = p;
    g->min_shared = 4;
    for (int i = 0; i < 3; i++)
        if (!tx_const_i64(kernel->block[i], &g->block[i]))
            g->block[i] = 0;
    if (!find_callees(g, kernel->body))
        goto out;
    note_addressed(g, kernel->body, 0);
    note_shared(g, kernel->body, 0);
    tx_overflow_note(g, kernel->body);
    for (uint32_t i = 0; i < g->callees.n; i++) {
        tx_overflow_note(g, g->callees.at[i]->body);
        note_addressed(g, g->callees.at[i]->body, 0);
        note_shared(g, g->callees.at[i]->body, 0);
    }
    do
        generate(g);
    while (g->again && !g->failed && c->nerrors == nerrors);
    ok = !g->failed && c->nerrors == nerrors && code_finish(g);
    if (g->failed && c->nerrors == nerrors)
        tx_fail(c, 0, TX_E_NO_MEMORY);
out:
    if (g) {
        tx_map_free(&g->names), tx_map_free(&g->cache), tx_map_free(&g->const_at), tx_map_free(&g->facts);
        tx_map_free(&g->leading), tx_map_free(&g->call_at);
        tx_free(g);
    }
    if (!ok && p) {
        tx_emu_free(p);
        p = NULL;
    }
    return p;
}

void
tx_emu_free(tx_emu_program *p)
{
    if (!p)
        return;
    tx_arena_free(&p->arena);
    tx_free(p);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const char *const names[V__COUNT] = {
#define B4(n, t) #n "." #t ".ss", #n "." #t ".vv", #n "." #t ".vs", #n "." #t ".sv",
#define U2(n, t) #n "." #t ".s", #n "." #t ".v",
#define M3(n) #n ".s", #n ".v32", #n ".v64",
#define X1(n) #n,
#include "emu/vmop.def"
#undef B4
#undef U2
#undef M3
#undef X1
};

const char *
tx_vop_name(unsigned op)
{
    return names[op];
}

void
tx_emu_disassemble(const tx_emu_program *p, tx_sb *out)
{
    tx_sb_f(out, "%s: frame %u bytes, shared %lld, local %lld\n", p->name, p->frame_bytes, (long long)p->static_smem,
            (long long)p->local_bytes);
    for (uint32_t i = 0; i < p->nconsts; i++)
        tx_sb_f(out, "      const %u = 0x%llx\n", p->consts_at + 8 * i, (unsigned long long)p->consts[i].u64);
    for (uint32_t i = 0; i < p->ncode; i++) {
        const tx_insn *in = &p->code[i];
        tx_sb_f(out, "%4u  %-16s d=%u a=%u b=%u c=%u aux=%u imm=%lld", i, names[in->op], in->d, in->a, in->b, in->c,
                in->aux, (long long)in->imm);
        if (in->site && p->sites[in->site].line)
            tx_sb_f(out, "  ; line %u %s %s", p->sites[in->site].line, p->sites[in->site].role,
                    p->sites[in->site].buffer);
        tx_sb_putc(out, '\n');
    }
}
