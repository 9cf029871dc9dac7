/* Tensor maps in launch plans: the packed calls "runtime.cuTensorMapEncodeTiled" and "...Im2col" of the host zone become steps
 * that fill a slot of 128 bytes. Numbers that are constants are checked when the plan is made, at their line; the rest at
 * each call, before the driver is asked. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan.h"

#define TILED "runtime.cuTensorMapEncodeTiled"
#define IM2COL "runtime.cuTensorMapEncodeIm2col"

enum { MAX_NUMBERS = 32 };

bool
tx_plan_encodes(const char *packed)
{
    return strcmp(packed, TILED) == 0 || strcmp(packed, IM2COL) == 0;
}

typedef struct encoder {
    struct plan_compiler *k;
    tx_ctx *c;
    const tx_node *n;
    plan_encode *out;
    uint32_t at;                  /* the next argument */
    plan_fill fills[MAX_NUMBERS]; /* out->nfills of them */
} encoder;

static tx_span
encode_span(const encoder *s, uint32_t arg)
{
    return arg < s->n->nargs && s->n->arg[arg]->span ? s->n->arg[arg]->span : s->n->span;
}

/* An argument as printed; interned. */
static const char *
encode_text(tx_ctx *c, const tx_node *n)
{
    tx_sb s = {0};
    const tx_str *kept;

    tx_print_node(n, &s);
    kept = s.text && !s.failed ? tx_intern_z(c, s.text) : NULL;
    tx_sb_free(&s);
    return kept ? kept->text : "?";
}

/* The next argument into one number of the map. */
static bool
encode_number(encoder *s, int64_t *field)
{
    const tx_node *n = s->n->arg[s->at];
    uint16_t reg;

    s->at++;
    if (tx_const_i64(n, field))
        return true;
    *field = TX_TM_UNKNOWN;
    if (!tx_is_int(n->dtype)) {
        tx_fail(s->c, encode_span(s, s->at - 1), TX_E_TENSORMAP_NUMBER,
                n->op == TX_OP_STR ? "a string" : tx_dtype_name(s->c, n->dtype));
        return false;
    }
    if ((reg = tx_plan_expr(s->k, n)) == PLAN_NO_REG || TX_NEVER(s->out->nfills == MAX_NUMBERS))
        return false;
    s->fills[s->out->nfills++] = (plan_fill){(uint16_t)((char *)field - (char *)&s->out->map), reg};
    return true;
}

static bool
encode_numbers(encoder *s, int64_t *fields, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!encode_number(s, &fields[i]))
            return false;
    return true;
}

static bool
encode_map(encoder *s)
{
    const tx_node *n = s->n->arg[0];

    if (n->op == TX_OP_VAR && tx_plan_slot_of(s->k, n->u.var, &s->out->slot)) {
        const tx_str *name = n->u.var->name;
        if (!(s->out->name = tx_malloc(name->len + 1))) {
            tx_fail(s->c, 0, TX_E_NO_MEMORY);
            return false;
        }
        memcpy(s->out->name, name->text, name->len + 1);
        return true;
    }
    tx_fail(s->c, encode_span(s, 0), TX_E_TENSORMAP_SLOT, encode_text(s->c, n));
    return false;
}

/* The data type: the name of a dtype, with the driver's number as a last argument where that is given. */
static bool
encode_dtype(encoder *s, int64_t force)
{
    const tx_node *n = s->n->arg[1];
    tx_dtype t;
    bool ok;

    if (n->op != TX_OP_STR || !tx_dtype_parse(n->u.s->text, n->u.s->len, &t)) {
        tx_fail(s->c, encode_span(s, 1), TX_E_TENSORMAP_DTYPE,
                n->op == TX_OP_STR ? n->u.s->text : encode_text(s->c, n));
        return false;
    }
    s->out->map.dtype = tx_tensormap_dtype_of(t, force, &ok);
    if (!ok && force >= 0 && tx_tensormap_dtype_of(t, -1, &ok) >= 0) {
        tx_fail(s->c, encode_span(s, s->n->nargs - 1), TX_E_TENSORMAP_FORCE, (long long)force, n->u.s->text);
        return false;
    }
    if (s->out->map.dtype < 0)
        tx_fail(s->c, encode_span(s, 1), TX_E_TENSORMAP_DTYPE, n->u.s->text);
    return s->out->map.dtype >= 0;
}

/* Elements from the start of a tensor's memory to one of its elements, as an expression: the host zone keeps the indices
 * as they were written. */
static const tx_node *
encode_element(tx_ctx *c, const tx_node *load)
{
    const tx_buffer *b = load->u.buf;
    const tx_node *at = b->elem_offset ? tx_cast(c, TX_I64, b->elem_offset) : tx_int(c, TX_I64, 0);
    const tx_node *dense = tx_int(c, TX_I64, 1), *step;

    if (b->flags & TX_BUF_FLAT)
        return tx_cast(c, TX_I64, load->arg[0]);
    for (int d = b->rank - 1; d >= 0; d--) {
        step = b->strides ? tx_cast(c, TX_I64, b->strides[d]) : dense;
        at = tx_binary(c, TX_OP_ADD, at, tx_binary(c, TX_OP_MUL, tx_cast(c, TX_I64, load->arg[d]), step));
        dense = tx_binary(c, TX_OP_MUL, dense, tx_cast(c, TX_I64, b->shape[d]));
    }
    return at;
}

static const tx_node *
encode_bytes(tx_ctx *c, const tx_node *load)
{
    const tx_buffer *b = load->u.buf;
    const tx_node *i = encode_element(c, load);

    if (tx_bits(b->dtype) == 4)
        i = tx_binary(c, TX_OP_FLOORDIV, i, tx_int(c, TX_I64, 2));
    else
        i = tx_binary(c, TX_OP_MUL, i, tx_int(c, TX_I64, tx_dtype_bytes(b->dtype)));
    return b->byte_offset ? tx_binary(c, TX_OP_ADD, i, tx_cast(c, TX_I64, b->byte_offset)) : i;
}

static bool
encode_address(encoder *s, const tx_node *n)
{
    const tx_node *bytes = NULL, *part;
    const tx_var *v = NULL;

    while (n->op == TX_OP_PTR_OFFSET) {
        part = tx_cast(s->c, TX_I64, n->arg[1]);
        bytes = bytes ? tx_binary(s->c, TX_OP_ADD, bytes, part) : part;
        n = n->arg[0];
    }
    if (n->op == TX_OP_ADDRESS_OF && n->arg[0]->op == TX_OP_LOAD) {
        part = encode_bytes(s->c, n->arg[0]);
        bytes = bytes ? tx_binary(s->c, TX_OP_ADD, bytes, part) : part;
        v = n->arg[0]->u.buf->data;
    } else if (n->op == TX_OP_BUFFER_DATA) {
        v = n->u.buf->data;
    } else if (n->op == TX_OP_VAR) {
        v = n->u.var;
    }
    if (!v || !tx_plan_data_of(s->k, v, &s->out->param)) {
        tx_fail(s->c, encode_span(s, 3), TX_E_TENSORMAP_ADDRESS, encode_text(s->c, n));
        return false;
    }
    if (!bytes || tx_is_const(bytes, 0))
        return true;
    return (s->out->offset = tx_plan_expr(s->k, bytes)) != PLAN_NO_REG;
}

static bool
encode_all(encoder *s)
{
    tx_tensormap *m = &s->out->map;
    bool im2col = strcmp(s->n->u.call->name->text, IM2COL) == 0;
    int64_t rank, want, force = -1;
    const char *numbers = im2col ? "5 * rank + 1" : "4 * rank + 3";

    if (s->n->nargs < 4 || !tx_const_i64(s->n->arg[2], &rank) || rank < (im2col ? 3 : 1) || rank > TX_TM_RANK) {
        tx_fail(s->c, encode_span(s, 2), TX_E_TENSORMAP_RANK, s->n->u.call->name->text, im2col ? 3 : 1);
        return false;
    }
    want = 4 + (im2col ? 5 * rank + 1 : 4 * rank + 3);
    if (s->n->nargs != want && s->n->nargs != want + 1) {
        tx_fail(s->c, s->n->span, TX_E_TENSORMAP_COUNT, s->n->u.call->name->text, numbers, (int)rank, (int)(want - 4),
                (int)s->n->nargs - 4);
        return false;
    }
    if (s->n->nargs > want && !tx_const_i64(s->n->arg[want], &force)) {
        tx_fail(s->c, encode_span(s, (uint32_t)want), TX_E_TENSORMAP_FORCE, 0LL, "a value known only at the call");
        return false;
    }
    m->im2col = im2col;
    m->rank = rank;
    s->at = 4;
    return encode_map(s) && encode_dtype(s, force) && encode_address(s, s->n->arg[3]) &&
           encode_numbers(s, m->dim, rank) && encode_numbers(s, m->stride + 1, rank - 1) &&
           (im2col ? encode_numbers(s, m->lower, rank - 2) && encode_numbers(s, m->upper, rank - 2) &&
                         encode_number(s, &m->channels) && encode_number(s, &m->pixels)
                   : encode_numbers(s, m->box, rank)) &&
           encode_numbers(s, m->estride, rank) && encode_number(s, &m->interleave) && encode_number(s, &m->swizzle) &&
           encode_number(s, &m->l2) && encode_number(s, &m->oob);
}

bool
tx_plan_encode_step(struct plan_compiler *k, tx_ctx *c, const tx_node *n, plan_encode *out)
{
    encoder s = {.k = k, .c = c, .n = n, .out = out};
    char text[256];

    out->offset = PLAN_NO_REG;
    if (!encode_all(&s))
        return false;
    if (!tx_tensormap_check(&out->map, 0, false, text, sizeof text)) {
        tx_fail(c, n->span, TX_E_TENSORMAP, out->name, text);
        return false;
    }
    if (out->nfills == 0)
        return true;
    if (!(out->fills = tx_malloc(out->nfills * sizeof *out->fills))) {
        tx_fail(c, 0, TX_E_NO_MEMORY);
        return false;
    }
    memcpy(out->fills, s.fills, out->nfills * sizeof *out->fills);
    return true;
}
