/* Register arrays as single variables. An array whose elements are all named by constants, and of which an instruction takes many at once
 * (the accumulators of a matrix instruction), is declared as that many variables: NVRTC makes variables of it anyway, but late, and
 * until then carries loads and stores of every element through every such instruction. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"
#include "ir/ptx.h"

enum { SPREAD_MANY = 16, SPREAD_MOST = 256 }; /* operands of one instruction; elements */

typedef struct spread_array {
    const tx_buffer *b;
    int64_t n;
    bool wanted, refused;
} spread_array;

static spread_array *
spread_of(em *e, const tx_var *data)
{
    return tx_map_ptr(&e->spread, data);
}

static void
refuse(em *e, const tx_var *data)
{
    spread_array *a = spread_of(e, data);

    if (a)
        a->refused = true;
}

static void
see_element(em *e, const tx_buffer *b, const tx_node *index, unsigned lanes)
{
    spread_array *a = spread_of(e, b->data);
    int64_t at;

    if (a && (lanes != 1 || !tx_const_i64(index, &at) || at < 0 || at >= a->n || b->dtype != a->b->dtype ||
              b->flags & TX_BUF_VOLATILE))
        a->refused = true;
}

static bool
is_register(const tx_node *n, uint32_t i)
{
    const tx_node *a = n->arg[i];

    return a->op == TX_OP_ADDRESS_OF && a->arg[0]->op == TX_OP_LOAD &&
           (n->op == TX_OP_FENCE_OPERAND || (i < n->u.ptx->nargs && tx_ptx_mode(n->u.ptx, i) != 'r'));
}

static void spread_scan(em *e, const tx_node *n);

static void
spread_operands(em *e, const tx_node *n)
{
    for (uint32_t i = 0; i < n->nargs; i++) {
        const tx_node *load = is_register(n, i) ? n->arg[i]->arg[0] : NULL;
        spread_array *a = load ? spread_of(e, load->u.buf->data) : NULL;

        if (load)
            see_element(e, load->u.buf, load->arg[0], tx_lanes(load->dtype));
        else
            spread_scan(e, n->arg[i]);
        if (a && n->nargs >= SPREAD_MANY)
            a->wanted = true;
    }
}

static void
spread_alloc(em *e, const tx_buffer *b)
{
    spread_array *a;
    int64_t n;

    if (b->scope != TX_LOCAL || b->flags & (TX_BUF_CELL | TX_BUF_VOLATILE) || b->rank != 1 || tx_lanes(b->dtype) != 1 ||
        tx_bits(b->dtype) < 8 || !tx_const_i64(b->shape[0], &n) || n < SPREAD_MANY / 2 || n > SPREAD_MOST)
        return;
    if (spread_of(e, b->data)) { /* twice */
        refuse(e, b->data);
        return;
    }
    if (!(a = tx_new(e->c, spread_array, 1)))
        return;
    *a = (spread_array){.b = b, .n = n};
    if (!tx_map_put_ptr(&e->spread, b->data, a))
        tx_fail(e->c, 0, TX_E_NO_MEMORY);
}

static void
spread_scan(em *e, const tx_node *n)
{
    switch (n->op) {
    case TX_OP_ALLOC: spread_alloc(e, n->u.buf); break;
    case TX_OP_PTX:
    case TX_OP_FENCE_OPERAND: spread_operands(e, n); return;
    case TX_OP_VAR: refuse(e, n->u.var); return;
    case TX_OP_BUFFER_DATA: refuse(e, n->u.buf->data); return;
    case TX_OP_ADDRESS_OF: refuse(e, n->arg[0]->u.buf->data); break;
    case TX_OP_LOAD: see_element(e, n->u.buf, n->arg[0], tx_lanes(n->dtype)); break;
    case TX_OP_STORE: see_element(e, n->u.buf, n->arg[1], tx_lanes(n->arg[0]->dtype)); break;
    default: break;
    }
    for (uint32_t i = 0; i < n->nargs; i++)
        if (n->arg[i] && (tx_is_stmt(n) || n->flags & TX_NF_IMPURE || tx_is_handle(n->arg[i]->dtype)))
            spread_scan(e, n->arg[i]);
}

void
em_scan_arrays(em *e, const tx_node *body)
{
    tx_map_free(&e->spread);
    spread_scan(e, body);
}

/* Declares the variables, if the array is to be spread out: "float acc_0, acc_1;". */
bool
em_spread(em *e, const tx_buffer *b)
{
    const spread_array *a = spread_of(e, b->data);
    em_name *name;
    tx_sb s = {0}, hint = {0};

    if (!a || a->refused || !a->wanted || a->b != b || !(name = em_declare(e, b->data, "")))
        return false;
    name->elem = tx_scalar_of(b->dtype);
    name->element = tx_new(e->c, const char *, (size_t)a->n);
    for (int64_t i = 0; name->element && i < a->n; i++) {
        hint.n = 0;
        tx_sb_f(&hint, "%s_%lld", name->text, (long long)i);
        name->element[i] = hint.failed ? "" : em_fresh(e, hint.text);
        tx_sb_f(&s, "%s%s", i ? ", " : "", name->element[i]);
    }
    em_linef(e, "%s %s;", em_elem_type(e, b->dtype), s.n ? s.text : "");
    em_done(e, &s);
    em_done(e, &hint);
    return true;
}
