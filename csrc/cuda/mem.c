/* Memory: how a buffer's storage is declared and one element of it is named. A view shares the data variable of what it
 * views and may have another dtype: then the pointer is cast where it is used. Single float4 elements are nibbles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

static bool
mem_is_fp4(const tx_buffer *b)
{
    return tx_kind(b->dtype) == TX_KIND_E2M1FN;
}

static bool
mem_needs_cast(const tx_buffer *b, const em_name *name)
{
    return name->bytes || (b->flags & TX_BUF_VOLATILE) || tx_kind(name->elem) != tx_kind(b->dtype);
}

static const char *
mem_volatile(const tx_buffer *b)
{
    return b->flags & TX_BUF_VOLATILE ? "volatile " : "";
}

void
em_base(em *e, tx_sb *o, const tx_buffer *b, em_prec prec)
{
    const em_name *name = em_name_of(e, b->data);
    bool p;

    if (!name)
        return;
    if (!mem_needs_cast(b, name) && !name->cell) {
        tx_sb_puts(o, name->text);
        return;
    }
    p = em_paren(o, EM_UNARY, prec);
    if (mem_needs_cast(b, name))
        tx_sb_f(o, "(%s%s*)", mem_volatile(b), em_elem_type(e, b->dtype));
    tx_sb_f(o, "%s%s", name->cell ? "&" : "", name->text);
    em_close(o, p);
}

/* false: an element that has no address of its own. */
bool
em_element(em *e, tx_sb *o, const tx_buffer *b, const tx_node *index, em_prec prec)
{
    const em_name *name = em_name_of(e, b->data);
    int lane = e->lane;
    int64_t at;

    (void)prec;
    if (!name || (mem_is_fp4(b) && !name->cell))
        return false;
    if (name->element && tx_const_i64(index, &at)) {
        tx_sb_puts(o, name->element[at]);
        return true;
    }
    if (name->cell && tx_is_const(index, 0) && !mem_needs_cast(b, name)) {
        tx_sb_puts(o, name->text);
        return true;
    }
    em_base(e, o, b, EM_POST);
    tx_sb_putc(o, '[');
    if (tx_lanes(index->dtype) == 1)
        e->lane = -1; /* a scalar index of a vector element never holds lanes */
    em_operand(e, o, index, EM_ANY);
    e->lane = lane;
    tx_sb_putc(o, ']');
    return true;
}

static void
mem_fp4_load(em *e, tx_sb *o, const tx_buffer *b, const tx_node *index)
{
    em_use(e, EM_H_FP4_LOAD);
    tx_sb_puts(o, "tirx_fp4_load(");
    em_base(e, o, b, EM_ARG);
    tx_sb_puts(o, ", ");
    em_operand(e, o, index, EM_ARG);
    tx_sb_putc(o, ')');
}

/* One element; in a vector context the element of that lane. */
void
em_load(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const tx_buffer *b = n->u.buf;

    if (tx_lanes(b->dtype) > 1) { /* elements are vectors themselves: read whole, then a lane */
        em_lane_of(e, o, n->dtype, em_vector(e, n), e->lane < 0 ? 0 : (unsigned)e->lane);
        return;
    }
    if (!em_element(e, o, b, n->arg[0], prec))
        mem_fp4_load(e, o, b, n->arg[0]);
}

void
em_address(em *e, tx_sb *o, const tx_node *load, em_prec prec)
{
    const tx_buffer *b = load->u.buf;
    const tx_node *index = load->arg[0];
    int64_t zero;
    bool p;

    while (index->op == TX_OP_RAMP || index->op == TX_OP_BROADCAST)
        index = index->arg[0];
    if (tx_lanes(b->dtype) > 1 || mem_is_fp4(b)) {
        p = em_paren(o, EM_ADD, prec);
        em_base(e, o, b, EM_ADD);
        if (!tx_const_i64(index, &zero) || zero != 0) {
            tx_sb_puts(o, " + ");
            em_operand(e, o, index, EM_MUL);
            if (mem_is_fp4(b))
                tx_sb_puts(o, " / 2");
            else
                tx_sb_f(o, " * %u", tx_lanes(b->dtype));
        }
        em_close(o, p);
        return;
    }
    p = em_paren(o, EM_UNARY, prec);
    tx_sb_putc(o, '&');
    em_element(e, o, b, index, EM_UNARY);
    em_close(o, p);
}

static void
mem_fp4_store(em *e, const tx_node *n, const char *value)
{
    tx_sb base = {0}, index = {0};

    if (n->u.buf->scope != TX_LOCAL) {
        tx_fail(e->c, n->span, TX_E_FP4_STORE, n->u.buf->name->text);
        return;
    }
    em_use(e, EM_H_FP4_STORE);
    em_base(e, &base, n->u.buf, EM_ARG);
    em_operand(e, &index, n->arg[1], EM_ARG);
    em_linef(e, "tirx_fp4_store(%s, %s, %s);", base.n ? base.text : "", index.n ? index.text : "0", value);
    em_done(e, &base);
    em_done(e, &index);
}

void
em_store(em *e, const tx_node *n)
{
    const tx_node *value = n->arg[0], *index = n->arg[1];
    tx_sb to = {0}, from = {0};

    if (tx_lanes(value->dtype) > 1) {
        em_vector_store(e, n);
        return;
    }
    em_ahead(e, value);
    em_expr(e, &from, value, EM_ARG);
    em_ahead(e, index);
    if (em_element(e, &to, n->u.buf, index, EM_ARG))
        em_linef(e, "%s = %s;", to.n ? to.text : "", from.n ? from.text : "");
    else if (!em_failed(e))
        mem_fp4_store(e, n, from.n ? from.text : "");
    em_done(e, &to);
    em_done(e, &from);
}

/* ---- declarations -------------------------------------------------------------------------------------------------------- */

static bool
mem_reads_cell(const tx_node *n, const tx_var *data)
{
    if (!(n->flags & TX_NF_IMPURE))
        return false;
    if (n->op == TX_OP_LOAD && n->u.buf->data == data)
        return true;
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && mem_reads_cell(n->arg[i], data))
            return true;
    return false;
}

static bool
mem_cell(em *e, const tx_buffer *b, const tx_node *next)
{
    const char *type = em_type(e, tx_scalar_of(b->dtype));
    const tx_node *value = next && next->op == TX_OP_STORE ? next->arg[0] : NULL;
    tx_sb s = {0};
    em_name *name;
    bool init;

    init = value && next->u.buf->data == b->data && tx_kind(next->u.buf->dtype) == tx_kind(b->dtype) &&
           next->nargs >= 2 && tx_is_const(next->arg[1], 0) && !mem_reads_cell(value, b->data) &&
           !(b->flags & TX_BUF_VOLATILE);
    if (init) {
        e->span = next->span;
        em_ahead(e, value);
        em_expr(e, &s, value, EM_ARG);
    }
    name = em_declare(e, b->data, "");
    if (name) {
        name->cell = true;
        name->data = !em_is_counter(e, b);
        name->elem = tx_scalar_of(b->dtype);
        em_linef(e, init ? "%s %s = %s;" : "%s %s;", type, name->text, s.n ? s.text : "");
    }
    em_done(e, &s);
    return init;
}

static void
mem_array(em *e, const tx_buffer *b, int64_t numel)
{
    const char *type = em_elem_type(e, b->dtype);
    int64_t elem = tx_kinds[tx_kind(b->dtype)].bytes, n = numel * (int64_t)tx_lanes(b->dtype);
    em_name *name = em_declare(e, b->data, "_ptr");
    char align[32] = "";
    tx_sb a = {0};

    if (!name)
        return;
    name->elem = tx_scalar_of(b->dtype);
    if (mem_is_fp4(b))
        n = (n + 1) / 2;
    switch (b->scope) {
    case TX_SHARED:
        em_linef(e, "__shared__ alignas(%lld) %s %s[%lld];", (long long)(b->align > 0 ? b->align : 64), type,
                 name->text, (long long)n);
        break;
    case TX_SHARED_DYN:
        name->bytes = true;
        em_use(e, EM_H_UCHAR);
        em_linef(e, "extern __shared__ __align__(1024) uchar %s[];", name->text);
        break;
    default:
        if (b->align > elem)
            tx_sb_f(&a, "alignas(%lld) ", (long long)b->align);
        em_linef(e, "%s%s %s[%lld];", a.n ? a.text : align, type, name->text, (long long)(n > 0 ? n : 1));
        break;
    }
    em_done(e, &a);
}

bool
em_alloc(em *e, const tx_node *n, const tx_node *next)
{
    const tx_buffer *b = n->u.buf;
    const tx_node *numel;
    int64_t count = 0;

    if (b->scope != TX_LOCAL && b->scope != TX_SHARED && b->scope != TX_SHARED_DYN) {
        em_unsupported(e, n, tx_scope_name(b->scope));
        return false;
    }
    if ((b->flags & TX_BUF_CELL) && b->scope == TX_LOCAL && tx_lanes(b->dtype) == 1)
        return mem_cell(e, b, next);
    numel = tx_buffer_numel(e->c, b);
    if (b->scope != TX_SHARED_DYN && !tx_const_i64(numel, &count)) {
        tx_fail(e->c, n->span, TX_E_INTERNAL, "an allocation without a constant size");
        return false;
    }
    if (!em_spread(e, b))
        mem_array(e, b, count);
    return false;
}

/* A view over a pointer; over a buffer's own data it declares nothing. */
void
em_decl(em *e, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    const char *type = em_elem_type(e, b->dtype);
    em_name *name;
    tx_sb s = {0};

    if (tx_map_ptr(&e->names, b->data) || (n->arg[0]->op == TX_OP_BUFFER_DATA && n->arg[0]->u.buf->data == b->data))
        return;
    em_expr(e, &s, n->arg[0], EM_UNARY);
    name = em_declare(e, b->data, "_ptr");
    if (name) {
        name->elem = tx_scalar_of(b->dtype);
        em_linef(e, "%s* %s = (%s*)%s;", type, name->text, type, s.n ? s.text : "");
    }
    em_done(e, &s);
}
