/* Values of several lanes. Such a value lives in a variable: float4 and the like where CUDA has the type (lanes .x .y .z
 * .w), else an array of lanes, aligned so that it moves in words. Operations are written lane by lane into a new variable;
 * before that, whatever may only be evaluated once (loads, calls, scalars that are spread) is put into variables of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdio.h>

bool
em_vector_native(tx_dtype t)
{
    unsigned lanes = tx_lanes(t);

    switch (tx_kind(t)) {
    case TX_KIND_F32:
    case TX_KIND_I32:
    case TX_KIND_U32: return lanes >= 2 && lanes <= 4;
    case TX_KIND_F64:
    case TX_KIND_I64:
    case TX_KIND_U64: return lanes == 2;
    default: return false;
    }
}

const char *
em_word_type(em *e, unsigned nbytes)
{
    switch (nbytes) {
    case 1: em_use(e, EM_H_UCHAR); return "uchar";
    case 2: em_use(e, EM_H_USHORT); return "ushort";
    case 4: em_use(e, EM_H_UINT); return "uint";
    case 8: return "uint2";
    case 16: return "uint4";
    default: return NULL;
    }
}

/* Bytes of the whole vector in a variable: one byte a lane for everything below 8 bits. */
static unsigned
vec_bytes(tx_dtype t)
{
    return tx_lanes(t) * tx_kinds[tx_kind(t)].bytes;
}

/* Bytes moved at once: 0 when the size is no word and no multiple of 16. */
static unsigned
vec_word(unsigned nbytes)
{
    if (nbytes % 16 == 0)
        return 16;
    return nbytes == 1 || nbytes == 2 || nbytes == 4 || nbytes == 8 ? nbytes : 0;
}

void
em_lane_of(em *e, tx_sb *o, tx_dtype t, const char *name, unsigned lane)
{
    (void)e;
    if (tx_lanes(t) == 1)
        tx_sb_puts(o, name);
    else if (em_vector_native(t))
        tx_sb_f(o, "%s.%c", name, "xyzw"[lane & 3]);
    else
        tx_sb_f(o, "%s[%u]", name, lane);
}

void
em_vector_declare(em *e, tx_dtype t, const char *name)
{
    unsigned word = vec_word(vec_bytes(t));

    if (em_vector_native(t))
        em_linef(e, "%s %s;", em_type(e, t), name);
    else if (word > tx_kinds[tx_kind(t)].bytes)
        em_linef(e, "alignas(%u) %s %s[%u];", word, em_elem_type(e, t), name, tx_lanes(t));
    else
        em_linef(e, "%s %s[%u];", em_elem_type(e, t), name, tx_lanes(t));
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/* The first element index of a contiguous access, in *scale elements of one lane; NULL: not contiguous. */
static const tx_node *
vec_contiguous(const tx_node *access, const tx_node *index, unsigned *scale)
{
    const tx_buffer *b = access->u.buf;

    *scale = tx_lanes(b->dtype);
    if (b->flags & TX_BUF_VOLATILE)
        return NULL;
    if (tx_lanes(index->dtype) == 1)
        return index; /* elements that are vectors */
    return index->op == TX_OP_RAMP && tx_is_const(index->arg[1], 1) ? index->arg[0] : NULL;
}

/* "A_ptr + i * 4", with `more` lanes added. */
static void
vec_place(em *e, tx_sb *o, const tx_buffer *b, const tx_node *base, unsigned scale, unsigned more)
{
    int lane = e->lane;

    e->lane = -1;
    em_base(e, o, b, EM_ADD);
    if (!tx_is_const(base, 0)) {
        tx_sb_puts(o, " + ");
        em_operand(e, o, base, EM_MUL);
        if (scale > 1)
            tx_sb_f(o, " * %u", scale);
    }
    if (more)
        tx_sb_f(o, " + %u", more);
    e->lane = lane;
}

/* Moves words between a variable and memory; false: the size or the dtype has none. */
static bool
vec_move(em *e, const tx_node *access, const tx_node *index, tx_dtype t, const char *name, bool load, bool declare)
{
    unsigned scale, nbytes = vec_bytes(t), word = vec_word(nbytes), elem = tx_kinds[tx_kind(t)].bytes;
    const tx_node *base = vec_contiguous(access, index, &scale);
    const char *type;

    if (!base || !word || tx_bits(t) == 4 || (em_vector_native(t) && nbytes > 16))
        return false;
    type = em_vector_native(t) ? em_type(e, t) : em_word_type(e, word);
    if (declare && !em_vector_native(t))
        em_vector_declare(e, t, name);
    for (unsigned at = 0; at < nbytes; at += word) {
        tx_sb place = {0}, self = {0};

        vec_place(e, &place, access->u.buf, base, scale, at / elem);
        if (em_vector_native(t))
            tx_sb_puts(&self, name);
        else if (at)
            tx_sb_f(&self, "*(%s*)(%s + %u)", type, name, at / elem);
        else
            tx_sb_f(&self, "*(%s*)%s", type, name);
        if (load)
            em_linef(e, "%s%s%s = *(%s*)(%s);", declare && em_vector_native(t) ? type : "",
                     declare && em_vector_native(t) ? " " : "", self.n ? self.text : "", type,
                     place.n ? place.text : "");
        else
            em_linef(e, "*(%s*)(%s) = %s;", type, place.n ? place.text : "", self.n ? self.text : "");
        em_done(e, &place);
        em_done(e, &self);
    }
    return true;
}

/* Pairs of 4-bit floats: a byte each. */
static bool
vec_store_fp4(em *e, const tx_node *n, const char *name)
{
    unsigned scale, lanes = tx_lanes(n->arg[0]->dtype);
    const tx_node *base = vec_contiguous(n, n->arg[1], &scale);

    if (!base || lanes % 2 || scale % 2 == 1) {
        int64_t m = 1, r = 0;

        if (!base || lanes % 2)
            return false;
        tx_divisor_of(e->facts, base, &m, &r);
        if (!((m == 0 && r % 2 == 0) || (m != 0 && m % 2 == 0 && r % 2 == 0)))
            return false;
    }
    for (unsigned i = 0; i < lanes; i += 2) {
        tx_sb place = {0};

        em_base(e, &place, n->u.buf, EM_POST);
        tx_sb_putc(&place, '[');
        em_operand(e, &place, base, EM_MUL);
        if (scale > 1)
            tx_sb_f(&place, " * %u", scale);
        tx_sb_puts(&place, " / 2");
        if (i)
            tx_sb_f(&place, " + %u", i / 2);
        tx_sb_putc(&place, ']');
        em_use(e, EM_H_UCHAR);
        em_linef(e, "%s = (uchar)(%s[%u] & 15 | %s[%u] << 4);", place.n ? place.text : "", name, i, name, i + 1);
        em_done(e, &place);
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------------------------------------- */

static bool
vec_is_leaf(const tx_node *n)
{
    return n->op == TX_OP_VAR || n->op == TX_OP_INT || n->op == TX_OP_FLOAT || n->op == TX_OP_STR;
}

static bool
vec_is_call(const tx_node *n)
{
    return n->op == TX_OP_FUNC_CALL || n->op == TX_OP_CALL_EXTERN || n->op == TX_OP_CALL_PURE_EXTERN ||
           n->op == TX_OP_CALL_FUNC;
}

static bool
vec_changes_lanes(const tx_node *n)
{
    return n->op == TX_OP_REINTERPRET && tx_lanes(n->dtype) != tx_lanes(n->arg[0]->dtype);
}

void
em_vector_prepare(em *e, const tx_node *n)
{
    uint32_t last = n->op == TX_OP_IF_THEN_ELSE ? 1 : n->nargs; /* its arms are lazy */
    int lane = e->lane;

    if (vec_is_leaf(n) || em_held_name(e, n))
        return;
    e->lane = -1;
    if (tx_lanes(n->dtype) == 1)
        em_hold(e, n, em_temp(e, n, "v_"));
    else if (n->op == TX_OP_LOAD || vec_is_call(n) || vec_changes_lanes(n))
        em_vector(e, n);
    else
        for (uint32_t i = 0; i < last; i++)
            em_vector_prepare(e, n->arg[i]);
    e->lane = lane;
}

static void
vec_fill(em *e, const tx_node *n, const char *name)
{
    em_vector_prepare(e, n);
    em_vector_declare(e, n->dtype, name);
    for (unsigned i = 0; i < tx_lanes(n->dtype); i++) {
        tx_sb to = {0}, from = {0};

        em_lane_of(e, &to, n->dtype, name, i);
        e->lane = (int)i;
        em_expr(e, &from, n, EM_ARG);
        e->lane = -1;
        em_linef(e, "%s = %s;", to.n ? to.text : "", from.n ? from.text : "");
        em_done(e, &to);
        em_done(e, &from);
    }
}

static void
vec_gather(em *e, const tx_node *n, const char *name)
{
    const tx_node *index = n->arg[0];
    unsigned inner = tx_lanes(n->u.buf->dtype);

    if (inner > 1 && tx_lanes(index->dtype) > 1) {
        em_unsupported(e, n, "a gather of vector elements");
        return;
    }
    for (uint32_t i = 0; i < (index->op == TX_OP_RAMP ? 2 : 0); i++)
        em_vector_prepare(e, index->arg[i]);
    if (index->op != TX_OP_RAMP)
        em_vector_prepare(e, index);
    em_vector_declare(e, n->dtype, name);
    for (unsigned i = 0; i < tx_lanes(n->dtype); i++) {
        tx_sb to = {0}, from = {0};

        em_lane_of(e, &to, n->dtype, name, i);
        e->lane = (int)i;
        if (inner > 1) { /* volatile elements of several lanes */
            em_base(e, &from, n->u.buf, EM_POST);
            tx_sb_putc(&from, '[');
            e->lane = -1;
            em_operand(e, &from, index, EM_MUL);
            tx_sb_f(&from, " * %u + %u]", inner, i);
        } else {
            em_load(e, &from, n, EM_ARG);
        }
        e->lane = -1;
        em_linef(e, "%s = %s;", to.n ? to.text : "", from.n ? from.text : "");
        em_done(e, &to);
        em_done(e, &from);
    }
}

/* Copies the bits of one value into a variable of another shape. */
static void
vec_copy_bits(em *e, const tx_node *n, const char *name)
{
    tx_dtype to = n->dtype, from = n->arg[0]->dtype;
    unsigned nbytes = vec_bytes(to), word = vec_word(nbytes);
    const char *src, *type;

    if (!word || nbytes != vec_bytes(from) || tx_bits(to) < 8 || tx_bits(from) < 8) {
        em_unsupported(e, n, "T.reinterpret between these shapes");
        return;
    }
    src = tx_lanes(from) > 1 ? em_vector(e, n->arg[0]) : em_temp(e, n->arg[0], "v_");
    if (tx_lanes(to) > 1)
        em_vector_declare(e, to, name);
    else
        em_linef(e, "%s %s;", em_elem_type(e, to), name);
    type = em_word_type(e, word);
    for (unsigned at = 0; at < nbytes; at += word)
        em_linef(e, "((%s*)%s%s)[%u] = ((%s*)%s%s)[%u];", type, tx_lanes(to) == 1 || em_vector_native(to) ? "&" : "",
                 name, at / word, type, tx_lanes(from) == 1 || em_vector_native(from) ? "&" : "", src, at / word);
}

void
em_vector_into(em *e, const tx_node *n, const char *name)
{
    int lane = e->lane;

    e->lane = -1;
    if (n->op == TX_OP_LOAD) {
        if (!vec_move(e, n, n->arg[0], n->dtype, name, true, true))
            vec_gather(e, n, name);
    } else if (vec_is_call(n) && em_vector_native(n->dtype)) {
        tx_sb s = {0};

        em_intrin(e, &s, n, EM_ARG);
        em_linef(e, "%s %s = %s;", em_type(e, n->dtype), name, s.n ? s.text : "");
        em_done(e, &s);
    } else if (vec_is_call(n)) {
        em_unsupported(e, n, "a call with this vector result");
    } else if (vec_changes_lanes(n)) {
        vec_copy_bits(e, n, name);
    } else {
        vec_fill(e, n, name);
    }
    e->lane = lane;
}

const char *
em_vector(em *e, const tx_node *n)
{
    const char *name = em_held_name(e, n);
    const em_name *v;

    if (name)
        return name;
    if (n->op == TX_OP_VAR) {
        v = em_name_of(e, n->u.var);
        return v ? v->text : "";
    }
    if (n->op != TX_OP_LOAD && !vec_is_call(n) && !vec_changes_lanes(n))
        em_vector_prepare(e, n);
    name = em_fresh(e, "v_");
    em_vector_into(e, n, name);
    em_hold(e, n, name);
    return name;
}

void
em_vector_reinterpret(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const char *name;

    (void)prec;
    if (tx_lanes(n->dtype) > 1) {
        em_lane_of(e, o, n->dtype, em_vector(e, n), e->lane < 0 ? 0 : (unsigned)e->lane);
        return;
    }
    name = em_fresh(e, "v_");
    vec_copy_bits(e, n, name);
    tx_sb_puts(o, name);
}

void
em_vector_store(em *e, const tx_node *n)
{
    const tx_node *value = n->arg[0], *index = n->arg[1];
    const char *name = em_vector(e, value);

    if (vec_move(e, n, index, value->dtype, name, false, false))
        return;
    if (tx_kind(n->u.buf->dtype) == TX_KIND_E2M1FN) {
        if (!vec_store_fp4(e, n, name))
            tx_fail(e->c, n->span, TX_E_FP4_STORE, n->u.buf->name->text);
        return;
    }
    if (tx_lanes(n->u.buf->dtype) > 1 && tx_lanes(index->dtype) > 1) {
        em_unsupported(e, n, "a scatter of vector elements");
        return;
    }
    if (tx_lanes(index->dtype) > 1)
        em_vector_prepare(e, index);
    for (unsigned i = 0; i < tx_lanes(value->dtype); i++) {
        tx_sb to = {0}, from = {0};

        em_lane_of(e, &from, value->dtype, name, i);
        if (tx_lanes(index->dtype) > 1) {
            e->lane = (int)i;
            em_element(e, &to, n->u.buf, index, EM_ARG);
            e->lane = -1;
        } else {
            em_base(e, &to, n->u.buf, EM_POST);
            tx_sb_putc(&to, '[');
            em_operand(e, &to, index, EM_MUL);
            tx_sb_f(&to, " * %u + %u]", tx_lanes(n->u.buf->dtype), i);
        }
        em_linef(e, "%s = %s;", to.n ? to.text : "", from.n ? from.text : "");
        em_done(e, &to);
        em_done(e, &from);
    }
}
