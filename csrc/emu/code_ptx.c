/* VM code for PTX instructions: operands to registers, memory rows to the VM's own accesses, results to the elements that
 * are written. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "emu/code.h"
#include "emu/ptx_list.h"

typedef struct parts { /* of one instruction */
    tx_code *g;
    const tx_node *n;
    const tx_ptx_call *call;
    const tx_ptx_row *row;
    tx_ptx_op op;
    tx_ptx_ty in_t[TX_PTX_IN_MAX], out_t[TX_PTX_OUT_MAX];
    tx_vreg in[TX_PTX_IN_MAX], out[TX_PTX_OUT_MAX];
    char in_name[TX_PTX_IN_MAX][2];
    uint32_t in_init[TX_PTX_IN_MAX], out_init[TX_PTX_OUT_MAX];
} parts;

static const char *const token_text[] = {
#define X(n) #n,
    TX_PTX_TOKENS(X)
#undef X
};

/* A token's name as C writes it: "_" before a digit, "__" for "::". */
static bool
is_named(const char *spelled, const char *token)
{
    token += *token == '_';
    while (*token && *spelled)
        if (token[0] == '_' && token[1] == '_' && spelled[0] == ':' && spelled[1] == ':')
            token += 2, spelled += 2;
        else if (*token++ != *spelled++)
            return false;
    return !*token && !*spelled;
}

static bool
is_token(const char *spelled, const char *token)
{
    size_t n = strlen(token);
    return is_named(spelled, token) || (strncmp(spelled, token, n) == 0 && strncmp(spelled + n, "::cta", 5) == 0) ||
           (strcmp(token, "shared") == 0 && strcmp(spelled, "shared::cluster") == 0) ||
           (strcmp(token, "multicast") == 0 && strncmp(spelled, "multicast::cluster", 18) == 0);
}

static void
read_tokens(parts *p)
{
    for (int i = 0; i < p->row->nparts; i++)
        for (unsigned t = 0; p->call->choice[i] >= 0 && t < TK__COUNT; t++)
            if (is_token(p->row->part[i].choice[p->call->choice[i]], token_text[t]))
                p->op.tok[t / 64] |= 1ull << t % 64;
}

static tx_ptx_ty
code_ptx_type_of(const char *s)
{
    static const struct {
        const char *name;
        uint8_t fmt, bits;
    } floats[] = {{"f64", FM_F64, 64},   {"f32", FM_F32, 32},  {"tf32", FM_TF32, 32},  {"f16", FM_F16, 16},
                  {"bf16", FM_BF16, 16}, {"e4m3", FM_E4M3, 8}, {"e5m2", FM_E5M2, 8},   {"e2m3", FM_E2M3, 8},
                  {"e3m2", FM_E3M2, 8},  {"e2m1", FM_E2M1, 4}, {"ue8m0", FM_UE8M0, 8}, {"s2f6", FM_S2F6, 8}};
    tx_ptx_ty t = {0, 64, 1, 0};
    if (!s)
        return t;
    if (strcmp(s, "pred") == 0)
        return t.cls = 'p', t.bits = 1, t;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        size_t n = strlen(floats[i].name);
        if (strncmp(s, floats[i].name, n) == 0 && (s[n] == 0 || s[n] == 'x')) {
            t.cls = 'f', t.fmt = floats[i].fmt, t.bits = floats[i].bits;
            t.lanes = s[n] ? (uint8_t)(s[n + 1] - '0') : 1;
            return t;
        }
    }
    if (strchr("usbi", *s) && s[1] >= '0' && s[1] <= '9') {
        t.cls = *s == 'i' ? 'b' : *s;
        t.bits = (uint8_t)atoi(s + 1);
    }
    return t;
}

static const tx_ptx_operand *
code_ptx_operand_of(const parts *p, uint32_t arg)
{
    return &p->row->op[p->call->op_of[arg]];
}

static tx_ptx_ty
arg_type(const parts *p, uint32_t arg)
{
    const tx_ptx_operand *o = code_ptx_operand_of(p, arg);
    return code_ptx_type_of(o->kind == TX_PTX_REG ? tx_ptx_type(p->row, p->call->choice, o) : NULL);
}

static bool
code_ptx_is_written(const parts *p, uint32_t arg)
{
    return tx_ptx_mode(p->call, arg) != 'r';
}

static tx_dtype
element_dtype(const tx_node *arg) /* ADDRESS_OF(LOAD) */
{
    return tx_scalar_of(arg->arg[0]->u.buf->dtype);
}

static uint32_t
site(const parts *p, const char *role)
{
    return tx_code_site(p->g, p->n->span, "", role, 0, 0);
}

static void
code_ptx_unsupported(parts *p)
{
    tx_sb name = {0};
    tx_ptx_opcode(p->row, p->call->choice, &name);
    uint32_t at = p->g->code.n;
    tx_code_unsupported(p->g, name.text ? name.text : "this instruction", TX_I32);
    p->g->code.at[at].site = site(p, "executed");
    tx_sb_free(&name);
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

static tx_val
read_arg(parts *p, uint32_t i)
{
    const tx_node *a = p->n->arg[i];
    if (tx_ptx_mode(p->call, i) == '+')
        a = a->arg[0];
    tx_val v = tx_code_expr(p->g, a, 0);
    if (i < p->call->nargs && arg_type(p, i).cls == 'p')
        v = tx_code_cast(p->g, TX_BOOL, v);
    return v;
}

static tx_val code_ptx_pointer(parts *p, uint32_t arg);

static void
add_in(parts *p, uint32_t arg, tx_ptx_ty t, tx_val v)
{
    tx_ptx_op *k = &p->op;
    const char *name = code_ptx_operand_of(p, arg)->name;
    k->in_name[k->nin][0] = name[0], k->in_name[k->nin][1] = name[0] ? name[1] : 0;
    k->in_t[k->nin] = t;
    k->in[k->nin++] = tx_code_vreg(p->g, v);
}

/* An address of memory; those of tensor memory are numbers. */
static bool
is_memory(const tx_ptx_operand *o)
{
    return o->kind == TX_PTX_ADDR && strcmp(o->type, "tmem") != 0;
}

static const tx_ptx_ty HALF = {'b', 64, 1, 0}; /* of 128 bits */

/* Fills op.in and op.out; gives false when the instruction is not for a function. */
static bool
code_ptx_gather(parts *p, tx_val *result)
{
    tx_ptx_op *k = &p->op;
    bool agent = k->emu->how == PH_AGENT || k->emu->how == PH_MATRIX;
    bool only_writes = strcmp(k->emu->name, "clc_query") == 0; /* its `+` is for a guard, which keeps the old value */
    unsigned most_in = agent ? TX_PTX_IN_MAX : TX_PTX_IN, most_out = agent ? TX_PTX_OUT_MAX : TX_PTX_OUT;
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        tx_ptx_ty t = arg_type(p, i);
        bool sunk = tx_ptx_is_sunk(p->call, i), write = code_ptx_is_written(p, i);
        if (k->nin + 1u >= most_in || k->nout + 1u >= most_out)
            return code_ptx_unsupported(p), false;
        if (t.bits == 128) { /* the halves, one after the other */
            for (unsigned half = 0; half < 2; half++) {
                if (tx_ptx_mode(p->call, i) == 'w')
                    result[k->nout] = tx_val_new(p->g, TX_U64, true), k->out_t[k->nout] = HALF,
                    k->out[k->nout] = tx_code_vreg(p->g, result[k->nout]), k->nout++;
                else
                    add_in(p, i, HALF, tx_code_expr(p->g, p->n->arg[i], half));
            }
            continue;
        }
        if (!(code_ptx_is_written(p, i) && only_writes) && tx_ptx_mode(p->call, i) != 'w') {
            tx_val v = agent && is_memory(code_ptx_operand_of(p, i)) ? code_ptx_pointer(p, i) : read_arg(p, i);
            if (v.form == VF_NONE || v.vt == VT_NONE)
                return false;
            add_in(p, i, t, v);
        }
        if (write) {
            tx_val v = tx_val_new(p->g, sunk ? t.bits > 32 ? TX_U64 : TX_U32 : element_dtype(p->n->arg[i]), true);
            result[k->nout] = v;
            k->out_t[k->nout] = t;
            k->out[k->nout++] = tx_code_vreg(p->g, v);
        }
    }
    return true;
}

static void
store_results(parts *p, const tx_val *result)
{
    uint32_t r = 0;
    for (uint32_t i = 0; i < p->call->nargs; i++)
        if (code_ptx_is_written(p, i)) {
            unsigned halves = arg_type(p, i).bits == 128 ? 2 : 1;
            for (unsigned half = 0; half < halves; half++, r++)
                if (!tx_ptx_is_sunk(p->call, i))
                    tx_code_store_to(p->g, p->n->arg[i]->arg[0], half, result[r]);
        }
}

static void *
keep_bytes(parts *p, const void *from, size_t n, size_t size)
{
    void *to = tx_arena_alloc(&p->g->p->arena, n * size + 1, 16);
    if (!to)
        p->g->failed = true;
    else if (n)
        memcpy(to, from, n * size);
    return to;
}

static uint32_t
keep_op(parts *p)
{
    bool watches = p->op.in_init != NULL;
    tx_ptx_op *k = keep_bytes(p, &p->op, 1, sizeof *k);
    if (!k || !tx_push(p->g->c, &p->g->ptx, k)) {
        p->g->failed = true;
        return 0;
    }
    k->in = keep_bytes(p, p->in, k->nin, sizeof *k->in), k->in_t = keep_bytes(p, p->in_t, k->nin, sizeof *k->in_t);
    k->in_name = keep_bytes(p, p->in_name, k->nin, sizeof *k->in_name);
    k->out = keep_bytes(p, p->out, k->nout, sizeof *k->out),
    k->out_t = keep_bytes(p, p->out_t, k->nout, sizeof *k->out_t);
    if (watches) {
        k->in_init = keep_bytes(p, p->in_init, k->nin, sizeof *k->in_init);
        k->out_init = keep_bytes(p, p->out_init, k->nout, sizeof *k->out_init);
    }
    return p->g->ptx.n - 1;
}

static void
by_function(parts *p)
{
    tx_val result[TX_PTX_OUT];
    bool warp = p->op.emu->how == PH_WARP;
    uint32_t mask = 0, at;
    if (!code_ptx_gather(p, result))
        return;
    if (warp) {
        tx_val m = tx_code_uniform(p->g, tx_code_cast(p->g, TX_U32, read_arg(p, p->call->nargs - 1u)));
        mask = tx_code_operand(p->g, &m);
    }
    at = tx_code_emit(p->g, warp ? V_PTXW : V_PTX, warp ? p->call->row : 0, 0, 0, mask, 0, keep_op(p));
    p->g->code.at[at].site = site(p, warp ? p->op.emu->name : "executed");
    store_results(p, result);
}

/* wgmma works on its registers by itself: they are named, not read. */
static bool
gather_registers(parts *p)
{
    tx_ptx_op *k = &p->op;
    k->in_init = p->in_init, k->out_init = p->out_init;
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        tx_ptx_ty t = arg_type(p, i);
        const tx_node *a = p->n->arg[i];
        if (k->nin >= TX_PTX_IN_MAX || k->nout >= TX_PTX_OUT_MAX)
            return code_ptx_unsupported(p), false;
        if (code_ptx_is_written(p, i)) {
            if (tx_ptx_is_sunk(p->call, i) ||
                !tx_code_element(p->g, a->arg[0], &p->out[k->nout], &p->out_init[k->nout]))
                return code_ptx_unsupported(p), false;
            k->out_t[k->nout++] = t;
            continue;
        }
        p->in_init[k->nin] = UINT32_MAX;
        tx_vreg reg;
        uint32_t init;
        if (code_ptx_operand_of(p, i)->name[0] == 'a' && !code_ptx_operand_of(p, i)->name[1] && a->op == TX_OP_LOAD &&
            a->u.buf->scope == TX_LOCAL && tx_code_element(p->g, a, &reg, &init))
            p->in_init[k->nin] = init;
        tx_val v = read_arg(p, i);
        if (v.form == VF_NONE || v.vt == VT_NONE)
            return false;
        add_in(p, i, t, v);
    }
    return true;
}

bool
tx_code_ptx_watches(const tx_node *n, uint32_t arg)
{
    uint32_t nrows;
    const tx_ptx_call *c = n->u.ptx;
    const tx_ptx_row *row = &tx_ptx_rows(&nrows)[c->row];
    if (arg >= c->nargs)
        return false;
    if (strcmp(tx_ptx_emu_of(c->row)->name, "tc_ld") == 0)
        return tx_ptx_mode(c, arg) == 'w';
    if (strcmp(tx_ptx_emu_of(c->row)->name, "wgmma") != 0)
        return false;
    const char *name = row->op[c->op_of[arg]].name;
    return (name[0] == 'd' || name[0] == 'a') && !name[1];
}

/* The family's name as reports say it: "mbarrier.arrive", "bulk copy". */
static const char *
family_role(parts *p)
{
    char role[40];
    const char *name = p->op.emu->name;
    bool mbar = strncmp(name, "mbar_", 5) == 0, cp = strncmp(name, "cp_", 3) == 0, tc = strncmp(name, "tc_", 3) == 0;
    size_t n = 0;
    for (const char *s = mbar ? "mbarrier." : cp ? "cp." : tc ? "tcgen05." : ""; *s;)
        role[n++] = *s++;
    for (const char *s = mbar ? name + 5 : cp || tc ? name + 3 : name; *s && n < sizeof role - 1; s++)
        role[n++] = *s == '_' ? ' ' : *s;
    return tx_code_text(p->g, role, n);
}

/* .aligned: the warp's lanes come together; this orders nothing. */
static void
come_together(tx_code *g, uint32_t where)
{
    tx_val all = tx_val_int(TX_U32, TX_FULL);
    uint32_t at = tx_code_emit(g, V_WSYNC, 1, 0, 0, tx_code_operand(g, &all), 0, 0);
    g->code.at[at].imm = tx_code_live(g);
    g->code.at[at].site = where;
}

/* Are the results of a tcgen05.ld elements that are known when the code is made? Then it writes them by itself. */
static bool
loads_registers(const parts *p)
{
    if (strcmp(p->op.emu->name, "tc_ld") != 0)
        return false;
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        const tx_node *load = code_ptx_is_written(p, i) ? p->n->arg[i]->arg[0] : NULL;
        tx_vreg reg;
        uint32_t init;
        int64_t at;
        if (!load)
            continue;
        if (tx_ptx_is_sunk(p->call, i))
            return false;
        for (uint32_t d = 0; d < load->nargs; d++)
            if (!tx_const_i64(load->arg[d], &at))
                return false;
        if (!tx_code_element(p->g, load, &reg, &init))
            return false;
    }
    return true;
}

/* The asynchronous hardware: a function for the part of the warp that is there. */
static void
by_agent(parts *p)
{
    tx_val result[TX_PTX_OUT_MAX];
    uint32_t at;
    if (p->op.emu->how == PH_AGENT)
        p->g->agents = true;
    bool watches = strcmp(p->op.emu->name, "wgmma") == 0 || loads_registers(p);
    if (watches ? !gather_registers(p) : !code_ptx_gather(p, result))
        return;
    bool cluster = strncmp(p->op.emu->name, "cluster_", 8) == 0;
    if (strchr(p->row->flags, 'C') || (cluster && tx_has_tok(&p->op, TK_aligned)))
        come_together(p->g, site(p, "waits at"));
    p->op.live = tx_code_live(p->g);
    at = tx_code_emit(p->g, V_AGENT, 0, 0, 0, 0, 0, keep_op(p));
    p->g->code.at[at].site = site(p, family_role(p));
    if (!watches)
        store_results(p, result);
}

int64_t
tx_code_ptx_granule(const tx_node *n)
{
    uint32_t nrows;
    parts p; /* large: only what is needed is set */
    p.n = n, p.call = n->u.ptx;
    int64_t least = 16;
    p.row = &tx_ptx_rows(&nrows)[p.call->row];
    p.op.emu = tx_ptx_emu_of(p.call->row);
    if (p.op.emu->how != PH_LD && p.op.emu->how != PH_ST && p.op.emu->how != PH_ATOM &&
        strcmp(p.op.emu->name, "st_async") != 0 && strcmp(p.op.emu->name, "red_async") != 0)
        return least;
    for (uint32_t i = 0; i < p.call->nargs; i++) {
        tx_ptx_ty t = arg_type(&p, i);
        if (t.cls && t.bits * t.lanes / 8 < least)
            least = t.bits * t.lanes / 8;
    }
    return least;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint32_t
address_arg(const parts *p)
{
    for (uint32_t i = 0; i < p->call->nargs; i++)
        if (code_ptx_operand_of(p, i)->kind == TX_PTX_ADDR)
            return i;
    return 0;
}

static tx_val
code_ptx_pointer(parts *p, uint32_t arg)
{
    tx_val v = tx_code_expr(p->g, p->n->arg[arg], 0);
    if (v.form == VF_NONE || tx_is_handle(v.t))
        return p->n->arg[arg]->scope == TX_LOCAL && v.form != VF_NONE ? tx_code_to_row(p->g, v) : v;
    v = tx_code_cast(p->g, TX_U64, tx_code_cast(p->g, tx_bits(v.t) == 32 ? TX_U32 : TX_U64, v));
    tx_val r = tx_val_new(p->g, TX_HANDLE, v.form == VF_ROW);
    tx_code_emit(p->g, V_CVTP, v.form == VF_ROW, r.reg, tx_code_operand(p->g, &v), 0, 0, 0);
    return r;
}

static uint32_t
count_data(const parts *p, char kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->call->nargs; i++)
        n += code_ptx_operand_of(p, i)->kind == TX_PTX_REG && (kind == 'w') == code_ptx_is_written(p, i) &&
             strcmp(code_ptx_operand_of(p, i)->name, "pol") != 0;
    return n;
}

/* How strong an access is: 0 weak, else 1 + 4 * scope (CTA, cluster, GPU) + release + 2 * acquire. */
static unsigned
access_strength(const parts *p)
{
    const tx_ptx_op *k = &p->op;
    bool both = tx_has_tok(k, TK_acq_rel) || tx_has_tok(k, TK_sc);
    unsigned scope = tx_has_tok(k, TK_cta) ? 0 : tx_has_tok(k, TK_cluster) ? 1 : 2;
    if (!both && !tx_has_tok(k, TK_relaxed) && !tx_has_tok(k, TK_release) && !tx_has_tok(k, TK_acquire) &&
        !tx_has_tok(k, TK_volatile))
        return 0;
    return 1 + 4 * scope + (both || tx_has_tok(k, TK_release) ? 1 : 0) + (both || tx_has_tok(k, TK_acquire) ? 2 : 0);
}

static void
strong(parts *p)
{
    p->g->code.at[p->g->code.n - 1].aux |= (uint16_t)(access_strength(p) << TX_ACC_STRENGTH);
}

/* The access is a multiple of its whole size. */
static void
aligned(parts *p, uint32_t size)
{
    p->g->code.at[p->g->code.n - 1].imm |= (int64_t)size << 16;
}

static void
code_ptx_load(parts *p)
{
    tx_val ptr = code_ptx_pointer(p, address_arg(p)), v[TX_PTX_OUT];
    uint32_t where = site(p, "load"), n = count_data(p, 'w'), r = 0;
    if (ptr.form == VF_NONE)
        return;
    if (n > TX_PTX_OUT) {
        code_ptx_unsupported(p);
        return;
    }
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        if (!code_ptx_is_written(p, i))
            continue;
        unsigned size = arg_type(p, i).bits * arg_type(p, i).lanes / 8u;
        if (size == 16) {
            for (unsigned half = 0; half < 2; half++) {
                v[half] = tx_code_deref(p->g, tx_code_ptr_add(p->g, ptr, tx_val_int(TX_I64, half), 8), TX_U64,
                                        TX_GLOBAL, where);
                if (!half)
                    aligned(p, size);
            }
            break;
        }
        if (!tx_ptx_is_sunk(p->call, i)) {
            v[r] = tx_code_deref(p->g, tx_code_ptr_add(p->g, ptr, tx_val_int(TX_I64, r), size),
                                 element_dtype(p->n->arg[i]), TX_GLOBAL, where);
            strong(p);
            if (r == 0)
                aligned(p, size * n);
        }
        r++;
    }
    store_results(p, v);
}

static void
code_ptx_store(parts *p)
{
    tx_val ptr = code_ptx_pointer(p, address_arg(p)), v[TX_PTX_OUT];
    uint32_t where = site(p, "store"), n = count_data(p, 'r'), r = 0;
    unsigned size = 0;
    bool sunk[TX_PTX_OUT] = {false};
    if (ptr.form == VF_NONE)
        return;
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        if (code_ptx_operand_of(p, i)->kind != TX_PTX_REG || strcmp(code_ptx_operand_of(p, i)->name, "pol") == 0)
            continue;
        size = arg_type(p, i).bits * arg_type(p, i).lanes / 8u;
        if (n > TX_PTX_OUT) {
            code_ptx_unsupported(p);
            return;
        }
        sunk[r] = tx_ptx_is_sunk(p->call, i);
        v[r++] = tx_code_expr(p->g, p->n->arg[i], 0);
        if (size == 16)
            v[r++] = tx_code_expr(p->g, p->n->arg[i], 1), size = 8, n = 2;
    }
    for (uint32_t i = 0; i < r; i++)
        if (!sunk[i] && v[i].form != VF_NONE) {
            tx_code_store_ptr(p->g, tx_code_ptr_add(p->g, ptr, tx_val_int(TX_I64, i), size), v[i], where);
            strong(p);
            if (i == 0)
                aligned(p, size * n);
        }
}

static unsigned
atomic_op(const tx_ptx_op *k)
{
    static const struct {
        uint8_t tok, op;
    } ops[] = {{TK_exch, TX_ATOM_EXCH}, {TK_and, TX_ATOM_AND}, {TK_or, TX_ATOM_OR},   {TK_xor, TX_ATOM_XOR},
               {TK_inc, TX_ATOM_INC},   {TK_dec, TX_ATOM_DEC}, {TK_min, TX_ATOM_MIN}, {TK_max, TX_ATOM_MAX}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tx_has_tok(k, ops[i].tok))
            return ops[i].op;
    return TX_ATOM_ADD;
}

/* atom and red; vectors element by element. */
static void
code_ptx_atomic(parts *p)
{
    tx_val ptr = code_ptx_pointer(p, address_arg(p)), out[TX_PTX_OUT], v[TX_PTX_OUT], none = {.form = VF_NONE};
    uint32_t n = 0, where = site(p, "atomic"), nout = count_data(p, 'w');
    bool cas = tx_has_tok(&p->op, TK_cas);
    tx_ptx_ty t = {0, 0, 0, 0};
    if (ptr.form == VF_NONE)
        return;
    for (uint32_t i = 0; i < p->call->nargs; i++)
        if (code_ptx_operand_of(p, i)->kind == TX_PTX_REG && !code_ptx_is_written(p, i) &&
            strcmp(code_ptx_operand_of(p, i)->name, "pol") != 0) {
            t = arg_type(p, i);
            if (t.bits == 128) {
                p->op.emu = &tx_wide_atomic;
                by_agent(p);
                return;
            }
            if (n >= TX_PTX_OUT || t.bits < 16) {
                code_ptx_unsupported(p);
                return;
            }
            v[n++] = tx_code_expr(p->g, p->n->arg[i], 0);
        }
    unsigned op = atomic_op(&p->op), size = t.bits * t.lanes / 8u;
    bool floats = t.fmt == FM_F16 || t.fmt == FM_BF16;
    for (uint32_t i = 0; i < (cas ? 1 : n); i++) {
        tx_val a = tx_code_ptr_add(p->g, ptr, tx_val_int(TX_I64, i), size), x = v[cas ? 1 : i],
               expect = cas ? v[0] : none;
        if (x.form == VF_NONE || (cas && expect.form == VF_NONE))
            return;
        out[i] = tx_val_new(p->g, nout ? element_dtype(p->n->arg[i]) : x.t, true);
        unsigned aux = tx_kind(x.t) | (a.form == VF_ROW ? TX_ACC_ADDR_V : 0) | (x.form == VF_ROW ? TX_ACC_VAL_V : 0) |
                       (cas ? TX_ACC_CAS : 0) | (expect.form == VF_ROW ? TX_ACC_CMP_V : 0);
        uint32_t at = tx_code_emit(p->g, V_ATOM, aux, out[i].reg, tx_code_operand(p->g, &a), tx_code_operand(p->g, &x),
                                   tx_code_operand(p->g, &expect), op | (floats ? (unsigned)t.fmt << 8 : 0));
        p->g->code.at[at].site = where;
        strong(p);
        if (i == 0)
            aligned(p, size * (cas ? 1 : n));
    }
    if (nout)
        store_results(p, out);
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

static void
code_ptx_barrier(parts *p)
{
    const tx_ptx_op *k = &p->op;
    tx_val r = {.form = VF_NONE}, id = r, count = r, pred = r;
    unsigned aux = tx_has_tok(k, TK_arrive) ? TX_BAR_ARRIVE
                   : !tx_has_tok(k, TK_red) ? TX_BAR_SYNC
                   : tx_has_tok(k, TK_popc) ? TX_BAR_POPC
                   : tx_has_tok(k, TK_and)  ? TX_BAR_AND
                                            : TX_BAR_OR;
    aux |= TX_BAR_NUMBERED;
    bool barrier_family = strcmp(p->row->part[0].choice[0], "barrier") == 0;
    for (uint32_t i = 0; i < p->call->nargs; i++) {
        const char *name = code_ptx_operand_of(p, i)->name;
        if (code_ptx_is_written(p, i))
            continue;
        tx_val v = read_arg(p, i);
        if (v.form == VF_NONE)
            return;
        if (strcmp(name, "c") == 0)
            pred = v;
        else {
            v = tx_code_uniform(p->g, tx_code_cast(p->g, TX_I32, v));
            *(strcmp(name, "a") == 0 ? &id : &count) = v;
        }
    }
    if (count.form != VF_NONE)
        p->g->partial_barriers = true, aux |= TX_BAR_COUNTED;
    if (barrier_family && !tx_has_tok(k, TK_aligned))
        aux |= TX_BAR_LOOSE;
    tx_val bit = tx_code_bin(p->g, TX_OP_BOR, TX_I32, id,
                             tx_code_bin(p->g, TX_OP_SHL, TX_I32, count.form == VF_NONE ? tx_val_int(TX_I32, 0) : count,
                                         tx_val_int(TX_I32, 8)));
    if (aux & TX_BAR_RESULT)
        r = tx_val_new(p->g, TX_I32, false);
    uint32_t live = tx_code_live(p->g);
    uint32_t at = tx_code_emit(p->g, V_BAR, aux, r.form == VF_NONE ? 0 : r.reg, tx_code_operand(p->g, &pred), 0,
                               tx_code_operand(p->g, &bit), live);
    p->g->code.at[at].site = site(p, (aux & TX_BAR_KIND) == TX_BAR_ARRIVE ? "arrives at" : "waits at");
    if (r.form != VF_NONE) {
        tx_val cast = tx_code_cast(p->g, element_dtype(p->n->arg[0]), r);
        store_results(p, &cast);
    }
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

static void
instruction(parts *p)
{
    tx_val v;
    uint32_t at;
    switch (p->op.emu->how) {
    case PH_LANE:
    case PH_WARP: by_function(p); return;
    case PH_LD: code_ptx_load(p); return;
    case PH_ST: code_ptx_store(p); return;
    case PH_ATOM: code_ptx_atomic(p); return;
    case PH_BAR: code_ptx_barrier(p); return;
    case PH_WSYNC:
        v = tx_code_uniform(p->g, tx_code_cast(p->g, TX_U32, read_arg(p, 0)));
        at = tx_code_emit(p->g, V_WSYNC, 0, 0, 0, tx_code_operand(p->g, &v), 0, 0);
        p->g->code.at[at].imm = tx_code_live(p->g);
        p->g->code.at[at].site = site(p, "waits at");
        return;
    case PH_ACTIVE:
        v = tx_val_new(p->g, TX_U32, false);
        tx_code_emit(p->g, V_ACTIVE, 0, v.reg, 0, 0, 0, 0);
        v = tx_code_cast(p->g, element_dtype(p->n->arg[0]), v);
        store_results(p, &v);
        return;
    case PH_AGENT:
    case PH_MATRIX: by_agent(p); return;
    case PH_MULTIMEM: /* one replica: ordinary memory */
        if (tx_has_tok(&p->op, TK_ld_reduce))
            code_ptx_load(p);
        else if (tx_has_tok(&p->op, TK_st))
            code_ptx_store(p);
        else
            code_ptx_atomic(p);
        return;
    case PH_NOTHING: tx_code_emit(p->g, V_FENCE, 0, 0, 0, 0, 0, 0); return;
    case PH_GRIDDEP: tx_code_emit(p->g, tx_has_tok(&p->op, TK_wait) ? V_GRIDWAIT : V_FENCE, 0, 0, 0, 0, 0, 0); return;
    default: code_ptx_unsupported(p); return;
    }
}

void
tx_code_ptx(tx_code *g, const tx_node *n)
{
    uint32_t nrows, at = 0;
    parts p;
    p.g = g, p.n = n, p.call = n->u.ptx;
    memset(&p.op, 0, sizeof p.op);
    p.op.in = p.in, p.op.in_t = p.in_t, p.op.out = p.out, p.op.out_t = p.out_t, p.op.in_name = p.in_name;
    tx_scope_mark m = tx_code_push(g);
    bool guarded = p.call->guard;

    p.row = &tx_ptx_rows(&nrows)[p.call->row];
    p.op.emu = tx_ptx_emu_of(p.call->row);
    p.op.row = p.call->row;
    memcpy(p.op.choice, p.call->choice, sizeof p.op.choice);
    read_tokens(&p);
    if (guarded) {
        tx_val c = tx_code_cast(g, TX_BOOL, tx_code_expr(g, n->arg[p.call->nargs], 0));
        if (c.form == VF_NONE || (c.form == VF_CONST && !c.k.u32)) {
            tx_code_pop(g, m);
            return;
        }
        if (c.form == VF_CONST)
            guarded = false;
        else
            at = tx_code_if_at(g, c);
    }
    tx_scope_mark inner = tx_code_push(g);
    instruction(&p);
    tx_code_pop(g, inner);
    if (guarded)
        tx_code_endif_at(g, at, false);
    tx_code_pop(g, m);
}

/* T.cuda.mbarrier_wait(bar, phase): waits until the phase of that parity is complete. */
void
tx_code_mbar_wait(tx_code *g, const tx_node *n)
{
    tx_scope_mark m = tx_code_push(g);
    tx_val bar = tx_code_expr(g, n->arg[0], 0), phase = tx_code_cast(g, TX_U32, tx_code_expr(g, n->arg[1], 0));
    if (bar.form != VF_NONE && !tx_is_handle(bar.t)) {
        bar = tx_code_cast(g, TX_U64, tx_code_cast(g, tx_bits(bar.t) == 32 ? TX_U32 : TX_U64, bar));
        tx_val r = tx_val_new(g, TX_HANDLE, bar.form == VF_ROW);
        tx_code_emit(g, V_CVTP, bar.form == VF_ROW, r.reg, tx_code_operand(g, &bar), 0, 0, 0);
        bar = r;
    }
    if (bar.form != VF_NONE && phase.form != VF_NONE) {
        static const char names[2][2] = {{'a', 0}, {'p', 'h'}};
        tx_ptx_ty types[2] = {{0, 64, 1, 0}, {'u', 32, 1, 0}};
        tx_vreg regs[2] = {tx_code_vreg(g, bar), tx_code_vreg(g, phase)};
        parts p;
        p.g = g, p.n = n;
        memset(&p.op, 0, sizeof p.op);
        memcpy(p.in, regs, sizeof regs), memcpy(p.in_t, types, sizeof types), memcpy(p.in_name, names, sizeof names);
        p.op.emu = &tx_mbar_wait_loop, p.op.nin = 2;
        p.op.live = tx_code_live(g);
        g->agents = true;
        uint32_t at = tx_code_emit(g, V_AGENT, 0, 0, 0, 0, 0, keep_op(&p));
        g->code.at[at].site = tx_code_site(g, n->span, "", "waits at", 0, 0);
    }
    tx_code_pop(g, m);
}

/* T.cuda.cluster_sync(): arrive, and wait. */
void
tx_code_cluster_sync(tx_code *g, const tx_node *n)
{
    static const tx_ptx_emu *const both[] = {&tx_emu_ptx_cluster_arrive, &tx_emu_ptx_cluster_wait};
    uint32_t where = tx_code_site(g, n->span, "cluster barrier", "waits at", 0, 0);
    g->agents = true;
    come_together(g, where);
    for (int i = 0; i < 2; i++) {
        parts p;
        p.g = g, p.n = n;
        memset(&p.op, 0, sizeof p.op);
        p.op.emu = both[i];
        p.op.tok[TK_aligned / 64] |= 1ull << TK_aligned % 64;
        p.op.live = tx_code_live(g);
        uint32_t at = tx_code_emit(g, V_AGENT, 0, 0, 0, 0, 0, keep_op(&p));
        g->code.at[at].site = where;
    }
}

/* T.cuda.thread_fence(): of the whole GPU. */
void
tx_code_thread_fence(tx_code *g, const tx_node *n)
{
    parts p;
    p.g = g, p.n = n;
    memset(&p.op, 0, sizeof p.op);
    p.op.emu = &tx_emu_ptx_fence;
    p.op.tok[TK_gpu / 64] |= 1ull << TK_gpu % 64;
    uint32_t at = tx_code_emit(g, V_AGENT, 0, 0, 0, 0, 0, keep_op(&p));
    g->code.at[at].site = tx_code_site(g, n->span, "", "fence", 0, 0);
}
