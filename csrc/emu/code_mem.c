/* VM code for buffers: allocations, loads, stores, pointers, and the checks of indices and initialisation.
 * A local array lives in rows of the frame (element by element, one row of 32 lanes each) unless its address is taken; then,
 * and in global and shared memory, it is bytes. SPDX-License-Identifier: Apache-2.0 */
#include "emu/code.h"

enum { MAX_ROWS = 16384 }; /* a longer local array is kept as bytes */

static bool
code_mem_wide(unsigned vt)
{
    return vt == VT_I64 || vt == VT_U64 || vt == VT_F64;
}

static unsigned
row_class(unsigned vt)
{
    return vt == VT_B ? RC_MASK : code_mem_wide(vt) ? RC_ROW8 : RC_ROW4;
}

static const tx_buffer *
declared(const tx_buffer *b)
{
    return b->origin && (b->flags & TX_BUF_FLAT) ? b->origin : b;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* The last instruction can write straight to `reg` instead of to the temporary v. */
static bool
retarget(tx_code *g, uint32_t reg, const tx_val *v)
{
    tx_insn *last = g->code.n ? &g->code.at[g->code.n - 1] : NULL;
    if (!last || g->code.n - 1 < g->label || v->cell || v->form == VF_CONST || last->d != v->reg)
        return false;
    bool loads = last->op <= V_LD_N_V64 || (last->op >= V_LROW32_S && last->op <= V_LROWB_V);
    if (!loads || (last->op >= V_MOVM32 && last->op <= V_MOVMB) || rc_class(reg) != rc_class(v->reg))
        return false;
    for (uint32_t i = g->live.n; i-- > 0;)
        if (g->live.at[i].reg == v->reg) {
            if (g->live.at[i].keep)
                return false;
            last->d = reg;
            return true;
        }
    return false;
}

void
tx_code_move_to(tx_code *g, uint32_t reg, bool row, bool masked, tx_val v)
{
    unsigned cls = rc_class(reg);
    bool w = cls == RC_ROW8;
    if (v.form == VF_NONE || (row == false && v.form == VF_ROW))
        return; /* generated once more, with a row */
    if (!masked && retarget(g, reg, &v))
        return;
    uint32_t from = tx_code_operand(g, &v);
    unsigned op;
    if (cls == RC_MASK)
        op = masked ? V_MOVMB : V_MOVS;
    else if (cls == RC_SLOT)
        op = V_MOVS;
    else if (v.form == VF_ROW)
        op = masked ? w ? V_MOVM64 : V_MOVM32 : w ? V_MOV64 : V_MOV32;
    else
        op = masked ? w ? V_BCM64 : V_BCM32 : w ? V_BC64 : V_BC32;
    tx_code_emit(g, op, 0, reg, from, 0, 0, 0);
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

/* An index as the memory instructions take it: 32 or 64 bits, signed. */
static tx_val
as_index(tx_code *g, tx_val v)
{
    if (v.vt == VT_U32 && (v.lo < 0 || v.hi > INT32_MAX || v.form == VF_CONST))
        return tx_code_cast(g, TX_I64, v);
    return v.vt == VT_B ? tx_code_cast(g, TX_I32, v) : v;
}

static tx_val
as_index32(tx_code *g, tx_val v)
{
    v = as_index(g, v);
    if (!code_mem_wide(v.vt))
        return v;
    if (v.form == VF_CONST)
        return tx_val_int(TX_I32, v.lo < INT32_MIN || v.lo > INT32_MAX ? -1 : v.lo);
    tx_val r = tx_val_new(g, TX_I32, v.form == VF_ROW);
    tx_code_emit(g, V_CLAMP_I32_S + (v.form == VF_ROW), 0, r.reg, v.reg, 0, 0, 0);
    return r;
}

/* An index, of whose overflows somebody should know; of several dimensions each is one, and their flat sum is none. */
static tx_val
code_mem_leading(tx_code *g, const tx_node *n, unsigned lane, unsigned leads)
{
    unsigned outer = g->leads;
    g->leads = leads;
    tx_val v = tx_code_expr(g, n, lane);
    g->leads = outer;
    return v;
}

/* Table of the indices of an access, for texts and per-dimension checks. Gives its number + 1, or 0. */
static uint32_t
code_mem_dims_of(tx_code *g, const tx_node *n, uint32_t first, unsigned lane)
{
    const tx_buffer *b = declared(n->u.buf);
    uint32_t rank = n->nargs - first;
    if (rank == 0 || rank != b->rank)
        return 0;
    tx_dims d = {rank, NULL, NULL};
    d.idx = tx_arena_alloc(&g->p->arena, rank * sizeof(tx_vreg), _Alignof(tx_vreg));
    d.ext = tx_arena_alloc(&g->p->arena, rank * sizeof(tx_vreg), _Alignof(tx_vreg));
    if (!d.idx || !d.ext)
        return g->failed = true, 0;
    for (uint32_t i = 0; i < rank; i++) {
        const tx_node *a = n->arg[first + i];
        d.idx[i] = tx_code_vreg(g, code_mem_leading(g, a, tx_lanes(a->dtype) > 1 ? lane : 0, LEADS));
        d.ext[i] = tx_code_vreg(g, tx_code_uniform(g, tx_code_expr(g, b->shape[i], 0)));
    }
    if (!tx_push(g->c, &g->dims, d))
        g->failed = true;
    return g->dims.n;
}

/* The indices of an access are checked against the declared shape, unless lowering proved them or the memory itself ends
 * where the shape does. Gives the place of the access. */
static uint32_t
check_dims(tx_code *g, const tx_node *n, uint32_t first, unsigned lane, const tx_storage *st, const char *role)
{
    const tx_buffer *b = declared(n->u.buf);
    bool proved = n->flags & TX_NF_INBOUNDS;
    bool whole = b->rank <= 1 && st->origin == b && !b->elem_offset && st->kind != ST_PTR;
    uint32_t mem = st->kind == ST_MEM ? st->mem + 1 : 0;
    uint32_t dims = proved && whole ? 0 : code_mem_dims_of(g, n, first, lane);
    uint32_t site = tx_code_site(g, n->span, b->name->text, role, mem, dims);
    if (dims && !proved && !whole) {
        uint32_t at = tx_code_emit(g, V_CHKB, 0, 0, 0, 0, 0, dims - 1);
        g->code.at[at].site = site;
    }
    return site;
}

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

static tx_val
pointer_const(uint32_t mem, int64_t off)
{
    tx_val v = {.form = VF_CONST, .vt = VT_U64, .t = TX_HANDLE, .lo = INT64_MIN, .hi = INT64_MAX};
    v.k.u64 = tx_ptr_make(mem, off);
    return v;
}

tx_val
tx_code_ptr_add(tx_code *g, tx_val ptr, tx_val index, int64_t scale)
{
    if (index.form == VF_NONE || ptr.form == VF_NONE)
        return ptr;
    if (index.form == VF_CONST && ptr.form == VF_CONST) {
        ptr.k.u64 += (uint64_t)index.lo * (uint64_t)scale;
        return ptr;
    }
    if (index.form == VF_CONST && index.lo == 0)
        return ptr;
    tx_val bytes = tx_code_bin(g, TX_OP_MUL, TX_I64, tx_code_cast(g, TX_I64, index), tx_val_int(TX_I64, scale));
    bool row = bytes.form == VF_ROW || ptr.form == VF_ROW;
    tx_val r = tx_val_new(g, TX_HANDLE, row);
    unsigned form = ptr.form == VF_ROW ? bytes.form == VF_ROW ? 1 : 2 : bytes.form == VF_ROW ? 3 : 0;
    tx_code_emit(g, V_ADD_I64_SS + form, 0, r.reg, tx_code_operand(g, &ptr), tx_code_operand(g, &bytes), 0, 0);
    return r;
}

static tx_val
base_of(tx_code *g, const tx_var *data)
{
    code_binding *b = tx_code_find(g, data);
    if (b && b->is_storage && b->st.kind == ST_MEM) {
        g->mems.at[b->st.mem].pointed = true;
        return pointer_const(b->st.mem, 0);
    }
    if (b && b->is_storage && b->st.kind == ST_PTR)
        return b->st.ptr;
    if (b && !b->is_storage)
        return b->val;
    return tx_code_unsupported(g, "a pointer to this buffer", TX_HANDLE);
}

/* Address of element `idx` of a buffer with elements of type t. */
static tx_val
code_mem_element(tx_code *g, tx_val base, tx_dtype t, tx_val idx)
{
    if (tx_bits(t) == 4) /* two to a byte */
        return tx_code_ptr_add(g, base,
                               tx_code_bin(g, TX_OP_SHR, TX_I64, tx_code_cast(g, TX_I64, idx), tx_val_int(TX_I64, 1)),
                               tx_lanes(t));
    return tx_code_ptr_add(g, base, idx, tx_dtype_bytes(t));
}

tx_val
tx_code_pointer(tx_code *g, const tx_node *n, unsigned lane)
{
    switch (n->op) {
    case TX_OP_ADDRESS_OF: {
        const tx_node *load = n->arg[0];
        if (load->op != TX_OP_LOAD)
            return tx_code_unsupported(g, "T.address_of of this expression", TX_HANDLE);
        tx_val idx = code_mem_leading(g, load->arg[0], 0, load->nargs <= 2 ? LEADS : LEADS_NOWHERE);
        return code_mem_element(g, base_of(g, load->u.buf->data), load->u.buf->dtype, idx);
    }
    case TX_OP_BUFFER_DATA: return base_of(g, n->u.buf->data);
    case TX_OP_VAR: return base_of(g, n->u.var);
    default: {
        tx_val base = tx_code_expr(g, n->arg[0], lane);
        return tx_code_ptr_add(g, base, code_mem_leading(g, n->arg[1], lane, LEADS), 1);
    }
    }
}

tx_val
tx_code_deref(tx_code *g, tx_val ptr, tx_dtype t, unsigned scope, uint32_t site)
{
    if (tx_vt_of(t) == VT_NONE || tx_bits(t) == 4)
        return tx_code_unsupported(g, "a load of this type through a pointer", t);
    if (scope == TX_LOCAL)
        ptr = tx_code_to_row(g, ptr);
    bool row = ptr.form == VF_ROW;
    tx_val r = tx_val_new(g, t, row);
    uint32_t at = tx_code_emit(g, V_LDP, tx_kind(t) | (row ? TX_ACC_ADDR_V | TX_ACC_VAL_V : 0), r.reg,
                               tx_code_operand(g, &ptr), 0, 0, 0);
    g->code.at[at].site = site;
    return r;
}

void
tx_code_store_ptr(tx_code *g, tx_val ptr, tx_val v, uint32_t site)
{
    if (v.vt == VT_NONE || tx_bits(v.t) == 4) {
        tx_code_unsupported(g, "a store of this type through a pointer", v.t);
        return;
    }
    unsigned aux = tx_kind(v.t) | (ptr.form == VF_ROW ? TX_ACC_ADDR_V : 0) | (v.form == VF_ROW ? TX_ACC_VAL_V : 0);
    uint32_t at = tx_code_emit(g, V_STP, aux, 0, tx_code_operand(g, &ptr), tx_code_operand(g, &v), 0, 0);
    g->code.at[at].site = site;
}

/* Two elements to a byte: which of the two stands in operand c. */
static uint32_t
code_mem_nibble(tx_code *g, unsigned op, tx_val base, tx_val idx, tx_dtype t, bool to_row, uint32_t d, tx_val *v)
{
    tx_val ptr = code_mem_element(g, base, t, idx);
    tx_val odd = tx_code_bin(g, TX_OP_BAND, TX_I32, tx_code_cast(g, TX_I32, idx), tx_val_int(TX_I32, 1));
    if (to_row)
        ptr = tx_code_to_row(g, ptr);
    bool row = ptr.form == VF_ROW;
    if (row)
        odd = tx_code_to_row(g, odd);
    if (op == V_LDP)
        *v = tx_val_new(g, t, row), d = v->reg;
    bool row_value = op == V_LDP ? row : v->form == VF_ROW;
    return tx_code_emit(g, op, tx_kind(t) | (row ? TX_ACC_ADDR_V : 0) | (row_value ? TX_ACC_VAL_V : 0), d,
                        tx_code_operand(g, &ptr), op == V_LDP ? 0 : tx_code_operand(g, v), tx_code_operand(g, &odd), 1);
}

/* ---- loads and stores by index --------------------------------------------------------------------------------------- */

/* First of the three rows of a memory access, for elements of scalar type t. */
static unsigned
access_row(tx_dtype t, bool store)
{
    unsigned bits = tx_bits(t);
    if (tx_is_bool(t))
        return store ? V_ST_B_S : V_LD_B_S;
    if (bits == 4)
        return store ? V_ST_N_S : V_LD_N_S;
    if (bits <= 8)
        return store ? V_ST_8_S : tx_is_signed(t) ? V_LD_I8_S : V_LD_U8_S;
    if (bits == 16)
        return store ? V_ST_16_S : tx_is_signed(t) ? V_LD_I16_S : V_LD_U16_S;
    return bits == 32 ? store ? V_ST_W_S : V_LD_W_S : store ? V_ST_D_S : V_LD_D_S;
}

static tx_storage
storage_of(tx_code *g, const tx_node *n)
{
    code_binding *b = tx_code_find(g, n->u.buf->data);
    if (b && b->is_storage)
        return b->st;
    tx_storage st = {.kind = ST_PTR, .ptr = base_of(g, n->u.buf->data)};
    return st;
}

/* Element index of one lane of the access: buffers of vector dtype count in vectors. */
static tx_val
code_mem_flat_index(tx_code *g, const tx_node *const *idx, unsigned dims, unsigned per, unsigned lane)
{
    tx_val v =
        code_mem_leading(g, *idx, tx_lanes((*idx)->dtype) > 1 ? lane / per : 0, dims <= 1 ? LEADS : LEADS_NOWHERE);
    if (per == 1 || v.form == VF_NONE)
        return v;
    v = tx_code_bin(g, TX_OP_MUL, TX_I64, tx_code_cast(g, TX_I64, v), tx_val_int(TX_I64, per));
    return tx_code_bin(g, TX_OP_ADD, TX_I64, v, tx_val_int(TX_I64, lane % per));
}

/* The access through a pointer that was made last is the first lane of a whole element of vector dtype, whose address must
 * be a multiple of its size, or of 16 bytes where it is larger. */
static void
code_mem_whole(tx_code *g, const tx_storage *st, const tx_buffer *b, unsigned lane)
{
    int64_t nbytes = tx_dtype_bytes(b->dtype);

    if (st->kind == ST_PTR && tx_lanes(b->dtype) > 1 && lane % tx_lanes(b->dtype) == 0 && (nbytes & (nbytes - 1)) == 0)
        g->code.at[g->code.n - 1].imm |= (nbytes > 16 ? 16 : nbytes) << 16;
}

static void
init_event(tx_code *g, const tx_storage *st, unsigned op_c, const tx_val *idx, uint32_t site)
{
    uint32_t at;
    if (!st->track)
        return;
    if (idx->form == VF_CONST)
        at = tx_code_emit(g, op_c, 0, 0, st->init + (uint32_t)idx->lo, 0, 0, 0);
    else
        at = tx_code_emit(g, op_c + (idx->form == VF_ROW ? 2 : 1), 0, 0, idx->reg, 0, st->init, st->n);
    g->code.at[at].site = site;
    g->code.at[at].aux = st->watched;
}

bool
tx_code_element(tx_code *g, const tx_node *load, tx_vreg *reg, uint32_t *init)
{
    tx_storage st = storage_of(g, load);
    tx_val idx = code_mem_flat_index(g, load->arg, load->nargs - 1, 1, 0);
    if (st.kind != ST_ROWS || idx.form != VF_CONST || idx.lo < 0 || idx.lo >= st.n)
        return false;
    if (st.uniform)
        tx_code_learn(g, load->u.buf->data, FACT_ROW);
    *reg = (tx_vreg){st.base + (uint32_t)idx.lo, st.vt, true, tx_scalar_of(load->u.buf->dtype)};
    *init = st.track ? st.init + (uint32_t)idx.lo : UINT32_MAX;
    return !st.uniform || g->again;
}

static tx_val
load_rows(tx_code *g, const tx_node *n, const tx_storage *st, tx_val idx, uint32_t site)
{
    tx_dtype t = tx_scalar_of(n->u.buf->dtype);
    if (idx.form == VF_CONST && idx.lo >= 0 && idx.lo < st->n) {
        init_event(g, st, V_CHKI_C, &idx, site);
        tx_val v = tx_val_new(g, t, !st->uniform);
        g->live.n -= g->live.n > 0; /* only its bounds are wanted, not a new register; 0: it could not be noted */
        if (!tx_push(g->c, &g->free[rc_class(v.reg)], v.reg))
            g->failed = true;
        v.reg = st->base + (uint32_t)idx.lo;
        v.cell = true;
        return v;
    }
    if (st->uniform)
        tx_code_learn(g, n->u.buf->data, FACT_ROW);
    idx = as_index32(g, idx);
    if (idx.form == VF_CONST) { /* outside: the check reports it */
        tx_val k = tx_val_new(g, TX_I32, false);
        tx_code_move_to(g, k.reg, false, false, idx);
        idx = k;
    }
    tx_val r = tx_val_new(g, t, true);
    unsigned per_lane = idx.form == VF_ROW;
    unsigned op = st->vt == VT_B ? V_LROWB_S : code_mem_wide(st->vt) ? V_LROW64_S : V_LROW32_S;
    uint32_t at = tx_code_emit(g, op + (per_lane ? V_LROW32_V - V_LROW32_S : 0), 0, r.reg, idx.reg, 0, st->base, st->n);
    g->code.at[at].site = site;
    init_event(g, st, V_CHKI_C, &idx, site);
    return r;
}

tx_val
tx_code_load(tx_code *g, const tx_node *n, unsigned lane)
{
    const tx_buffer *b = n->u.buf;
    tx_dtype t = tx_scalar_of(b->dtype);
    unsigned per = tx_lanes(b->dtype);
    tx_storage st = storage_of(g, n);

    if (tx_vt_of(t) == VT_NONE)
        return tx_code_unsupported(g, "a load of this type", t);
    tx_val idx = code_mem_flat_index(g, n->arg, n->nargs - 1, per, lane);
    if (idx.form == VF_NONE)
        return idx;
    uint32_t site = check_dims(g, n, 1, lane / per, &st, "load");
    if (st.kind == ST_ROWS)
        return load_rows(g, n, &st, idx, site);
    if (st.kind == ST_PTR || g->mems.at[st.mem].scope == TX_LOCAL) {
        tx_val base = st.kind == ST_PTR ? st.ptr : pointer_const(st.mem, 0);
        unsigned scope = st.kind == ST_PTR ? b->scope : TX_LOCAL;
        if (tx_bits(t) == 4) {
            tx_val nibble;
            uint32_t at = code_mem_nibble(g, V_LDP, base, idx, t, scope == TX_LOCAL, 0, &nibble);
            g->code.at[at].site = site;
            return nibble;
        }
        tx_val v = tx_code_deref(g, tx_code_ptr_add(g, base, idx, tx_dtype_bytes(t)), t, scope, site);
        if (v.form != VF_NONE)
            code_mem_whole(g, &st, b, lane);
        return v;
    }
    idx = as_index(g, idx);
    bool row = idx.form == VF_ROW, w = code_mem_wide(idx.vt);
    tx_val r = tx_val_new(g, t, row);
    uint32_t at =
        tx_code_emit(g, access_row(t, false) + (row ? w ? 2 : 1 : 0), (w ? TX_IDX_64 : 0) | (lane ? TX_SAME_ACCESS : 0),
                     r.reg, tx_code_operand(g, &idx), 0, st.mem, 0);
    g->code.at[at].site = site;
    return r;
}

static void
store_rows(tx_code *g, const tx_node *n, const tx_storage *st, tx_val idx, tx_val v, uint32_t site)
{
    bool masked = g->div > st->div;
    if (idx.form == VF_CONST && idx.lo >= 0 && idx.lo < st->n) {
        if (st->uniform && (v.form == VF_ROW || masked))
            tx_code_learn(g, n->u.buf->data, FACT_ROW);
        tx_code_move_to(g, st->base + (uint32_t)idx.lo, !st->uniform, masked, v);
        init_event(g, st, V_SETI_C, &idx, site);
        return;
    }
    if (st->uniform)
        tx_code_learn(g, n->u.buf->data, FACT_ROW);
    idx = as_index32(g, idx);
    v = tx_code_to_row(g, v);
    if (idx.form == VF_CONST) {
        tx_val k = tx_val_new(g, TX_I32, false);
        tx_code_move_to(g, k.reg, false, false, idx);
        idx = k;
    }
    unsigned op = st->vt == VT_B ? V_SROWB_S : code_mem_wide(st->vt) ? V_SROW64_S : V_SROW32_S;
    uint32_t at = tx_code_emit(g, op + (idx.form == VF_ROW ? V_SROW32_V - V_SROW32_S : 0), 0, 0, idx.reg,
                               tx_code_operand(g, &v), st->base, st->n);
    g->code.at[at].site = site;
    init_event(g, st, V_SETI_C, &idx, site);
}

static void
store_one(tx_code *g, const tx_node *n, const tx_storage *st, tx_val idx, tx_val v, uint32_t site, unsigned lane)
{
    tx_dtype t = tx_scalar_of(n->u.buf->dtype);
    if (st->kind == ST_ROWS) {
        store_rows(g, n, st, idx, v, site);
        return;
    }
    if (st->kind == ST_PTR || g->mems.at[st->mem].scope == TX_LOCAL) {
        tx_val base = st->kind == ST_PTR ? st->ptr : pointer_const(st->mem, 0);
        if (tx_bits(t) == 4) {
            uint32_t at = code_mem_nibble(g, V_STP, base, idx, t, false, 0, &v);
            g->code.at[at].site = site;
            return;
        }
        tx_code_store_ptr(g, tx_code_ptr_add(g, base, idx, tx_dtype_bytes(t)), v, site);
        return;
    }
    idx = as_index(g, idx);
    bool row = idx.form == VF_ROW, w = code_mem_wide(idx.vt);
    if (row)
        v = tx_code_to_row(g, v);
    uint32_t at = tx_code_emit(g, access_row(t, true) + (row ? w ? 2 : 1 : 0),
                               (w ? TX_IDX_64 : 0) | (v.form == VF_ROW ? TX_VAL_V : 0) | (lane ? TX_SAME_ACCESS : 0), 0,
                               tx_code_operand(g, &idx), tx_code_operand(g, &v), st->mem, 0);
    g->code.at[at].site = site;
}

void
tx_code_store(tx_code *g, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    tx_dtype t = tx_scalar_of(b->dtype);
    unsigned per = tx_lanes(b->dtype), lanes = per * tx_lanes(n->arg[1]->dtype);
    tx_storage st = storage_of(g, n);
    tx_val v[TX_MAX_LANES], idx[TX_MAX_LANES];
    uint32_t site[TX_MAX_LANES];

    if (tx_vt_of(t) == VT_NONE || lanes > TX_MAX_LANES) {
        tx_code_unsupported(g, "a store of this type", t);
        return;
    }
    if (tx_bits(t) == 4 && lanes == 1 && b->scope != TX_LOCAL) {
        tx_fail(g->c, n->span, TX_E_FP4_STORE, b->name->text);
        return;
    }
    for (unsigned i = 0; i < lanes; i++) {
        v[i] = code_mem_leading(g, n->arg[0], tx_lanes(n->arg[0]->dtype) > 1 ? i : 0,
                                b->scope == TX_LOCAL ? tx_overflow_leads(g, b->data) : LEADS_NOWHERE);
        v[i] = tx_code_cast(g, t, v[i]);
        if (lanes > 1)
            v[i] = tx_code_copy(g, v[i]);
    }
    for (unsigned i = 0; i < lanes; i++) {
        idx[i] = code_mem_flat_index(g, n->arg + 1, n->nargs - 2, per, i);
        site[i] = check_dims(g, n, 2, i / per, &st, "store");
    }
    for (unsigned i = 0; i < lanes; i++)
        if (v[i].form != VF_NONE && idx[i].form != VF_NONE) {
            store_one(g, n, &st, idx[i], v[i], site[i], i);
            code_mem_whole(g, &st, b, i);
        }
}

void
tx_code_store_to(tx_code *g, const tx_node *load, unsigned lane, tx_val v)
{
    tx_storage st = storage_of(g, load);
    tx_val idx = code_mem_flat_index(g, load->arg, load->nargs - 1, tx_lanes(load->u.buf->dtype), lane);
    uint32_t site = check_dims(g, load, 1, 0, &st, "store");
    v = tx_code_cast(g, tx_scalar_of(load->u.buf->dtype), v);
    if (v.form != VF_NONE && idx.form != VF_NONE) {
        store_one(g, load, &st, idx, v, site, lane);
        code_mem_whole(g, &st, load->u.buf, lane);
    }
}

/* ---- allocations ------------------------------------------------------------------------------------------------- */

static bool
mentions(const tx_node *n, const tx_var *data, int depth)
{
    if (!n)
        return false;
    if (depth > TX_MAX_DEPTH)
        return true;
    if ((n->op == TX_OP_LOAD || n->op == TX_OP_STORE || n->op == TX_OP_BUFFER_DATA || n->op == TX_OP_DECL) &&
        n->u.buf->data == data)
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (mentions(n->arg[i], data, depth + 1))
            return true;
    return false;
}

static const tx_node *
single(const tx_node *n)
{
    return n && n->op == TX_OP_SEQ && n->nargs == 1 ? n->arg[0] : n;
}

/* The statements behind the allocation surely write all elements before anything reads one. */
static bool
written_at_once(const tx_var *data, int64_t n, const tx_node *const *rest, uint32_t nrest)
{
    uint64_t done = 0, all = n >= 64 ? ~0ull : (1ull << n) - 1;
    for (uint32_t i = 0; i < nrest; i++) {
        const tx_node *s = rest[i];
        int64_t k, lo, hi, step;
        if (!mentions(s, data, 0)) {
            if (s->op == TX_OP_BIND || s->op == TX_OP_ALLOC || s->op == TX_OP_STORE || s->op == TX_OP_DECL)
                continue;
            return false;
        }
        if (s->op == TX_OP_STORE && s->u.buf->data == data && !mentions(s->arg[0], data, 0) &&
            tx_lanes(s->u.buf->dtype) == 1 && tx_const_i64(s->arg[1], &k) && k >= 0 && k < 64 && k < n) {
            done |= 1ull << k;
            if (n <= 64 && done == all)
                return true;
            continue;
        }
        if (s->op == TX_OP_FOR && tx_const_i64(s->arg[0], &lo) && tx_const_i64(s->arg[1], &hi) &&
            tx_const_i64(s->arg[2], &step)) {
            const tx_node *b = single(s->arg[3]);
            return lo == 0 && hi >= n && step == 1 && b && b->op == TX_OP_STORE && b->u.buf->data == data &&
                   !mentions(b->arg[0], data, 0) && tx_lanes(b->u.buf->dtype) == 1 && b->arg[1]->op == TX_OP_VAR &&
                   b->arg[1]->u.var == s->u.loop->var;
        }
        return false;
    }
    return false;
}

/* Elements of a buffer, lanes counted; -1: not constant. */
static int64_t
elements(const tx_buffer *b)
{
    int64_t n = tx_lanes(b->dtype), k;
    for (unsigned i = 0; i < b->rank; i++)
        if (!tx_const_i64(b->shape[i], &k) || !tx_mul_i64(n, k, &n))
            return -1;
    return n;
}

static int64_t
align_up(int64_t x, int64_t a)
{
    return (x + a - 1) / a * a;
}

void
tx_code_alloc(tx_code *g, const tx_node *n, const tx_node *const *rest, uint32_t nrest)
{
    const tx_buffer *b = n->u.buf, *o = declared(b);
    tx_dtype t = tx_scalar_of(b->dtype);
    tx_vt vt = tx_vt_of(t);
    int64_t count = elements(b);
    uint64_t facts = tx_code_facts(g, b->data);
    tx_storage st = {.vt = (uint8_t)vt, .origin = o, .div = g->div, .n = count, .fp4 = tx_bits(t) == 4};

    if (b->scope == TX_LOCAL && count >= 0 && count <= MAX_ROWS && vt != VT_NONE && !(facts & FACT_ADDRESSED)) {
        st.kind = ST_ROWS;
        st.uniform = count == 1 && !(facts & FACT_ROW);
        st.base = tx_code_regs(g, st.uniform ? RC_SLOT : row_class(vt), (uint32_t)count);
        st.watched = (facts & FACT_WATCHED) != 0;
        st.track = st.watched || !written_at_once(b->data, count, rest, nrest);
        if (st.track) {
            st.init = tx_code_regs(g, RC_INIT, (uint32_t)count);
            tx_code_emit(g, V_CLRI, 0, 0, st.init, 0, 0, count);
        }
        if (st.uniform) { /* parts of a warp that join must agree on it */
            tx_livereg l = {st.base, true};
            if (!tx_push(g->c, &g->live, l))
                g->failed = true;
        }
        tx_code_bind_storage(g, b->data, st);
        return;
    }
    tx_memory m = {.name = tx_code_text(g, o->name->text, o->name->len), .scope = b->scope, .nbytes = -1};
    int64_t size = vt == VT_NONE && tx_kind(t) != TX_KIND_TENSORMAP ? 16 : tx_dtype_bytes(t);
    int64_t align = b->align > 16 ? b->align : 16;
    m.elem = (uint8_t)(size > 255 ? 255 : size);
    m.fp4 = st.fp4;
    if (count >= 0 && !tx_mul_i64(count, size, &m.nbytes))
        m.nbytes = -1;
    if (m.nbytes >= 0 && m.fp4)
        m.nbytes = (count + 1) / 2;
    if (b->scope == TX_LOCAL || b->scope == TX_SHARED) {
        int64_t *top = b->scope == TX_LOCAL ? &g->local_bytes : &g->smem;
        if (m.nbytes < 0 || m.nbytes > (int64_t)1 << 30) {
            tx_code_unsupported(g, "an array of run-time size", TX_I32);
            return;
        }
        m.offset = align_up(*top, align);
        *top = m.offset + m.nbytes;
    } else if (b->scope == TX_SHARED_DYN)
        m.dyn = true;
    else
        tx_code_unsupported(g, "an allocation in this memory", TX_I32);
    if (!tx_push(g->c, &g->mems, m))
        g->failed = true;
    st.kind = ST_MEM;
    st.mem = g->mems.n - 1;
    tx_code_bind_storage(g, b->data, st);
}

/* A view: it shares the storage of a buffer, or stands over a pointer. */
void
tx_code_decl(tx_code *g, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    code_binding *known = tx_code_find(g, b->data);
    if (known && (known->is_storage || known->val.form != VF_NONE))
        return; /* the same data variable */
    tx_val p = tx_code_copy(g, tx_code_expr(g, n->arg[0], 0));
    if (p.form == VF_NONE)
        return;
    tx_storage st = {
        .kind = ST_PTR, .ptr = p, .vt = (uint8_t)tx_vt_of(tx_scalar_of(b->dtype)), .fp4 = tx_bits(b->dtype) == 4};
    if (p.form != VF_CONST)
        tx_code_keep(g, p.reg);
    tx_code_bind_storage(g, b->data, st);
}
