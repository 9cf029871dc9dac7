/* Construction: promotion, weak literals, the checks of the language, folding. One function a type rule of ops.def.
 * A weak operand is a plain Python number: it takes the other operand's dtype (language.md 6.1).
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"

#include <math.h>
#include <stdlib.h>

enum { CONSTRUCT_MAX_ARGS = 8 }; /* operands of the ops with a rule */

static bool
is_weak(const tx_node *n)
{
    return (n->flags & TX_NF_WEAK) != 0;
}

/* Where an operand stands. A variable knows only where it was defined, unless its use has been given a place. */
tx_span
tx_place_of(const tx_ctx *c, const tx_node *n)
{
    bool defined_there = n->op == TX_OP_VAR && n->span == n->u.var->span;

    return n->span && !defined_there ? n->span : c->span;
}

static bool
is_number(tx_dtype t)
{
    return tx_is_bool(t) || tx_is_int(t) || tx_is_float(t);
}

/* Makes the node, or what it folds to. */
static const tx_node *
construct_finish(tx_ctx *c, unsigned op, tx_dtype t, const tx_node *const *args, uint32_t nargs)
{
    const tx_node *r;
    bool folded = false;

    if (tx_has(op, TX_PROP_FOLDS) && ((r = tx_fold(c, op, t, args, nargs, true, &folded)) || folded))
        return r;
    return tx_make(c, op, t, (tx_payload){0}, args, nargs);
}

/* ---- constants ------------------------------------------------------------------------------------------------- */

const tx_node *
tx_int(tx_ctx *c, tx_dtype t, int64_t v)
{
    tx_dtype s = tx_scalar_of(t);
    const tx_node *n;

    if (tx_is_float(s))
        return tx_float(c, t, tx_int_to_float(s, TX_I64, v));
    n = tx_make(c, TX_OP_INT, s, (tx_payload){.i = tx_wrap(s, v)}, NULL, 0);
    return tx_lanes(t) > 1 ? tx_broadcast(c, n, tx_lanes(t)) : n;
}

const tx_node *
tx_float(tx_ctx *c, tx_dtype t, double v)
{
    tx_dtype s = tx_scalar_of(t);
    const tx_node *n = tx_make(c, TX_OP_FLOAT, s, (tx_payload){.f = tx_round_float(s, v)}, NULL, 0);

    return tx_lanes(t) > 1 ? tx_broadcast(c, n, tx_lanes(t)) : n;
}

const tx_node *
tx_bool(tx_ctx *c, bool v)
{
    return tx_int(c, TX_BOOL, v);
}

const tx_node *
tx_string(tx_ctx *c, const tx_str *s)
{
    return s ? tx_make(c, TX_OP_STR, TX_VOID, (tx_payload){.s = s}, NULL, 0) : NULL;
}

static const tx_node *
make_weak(tx_ctx *c, unsigned op, tx_dtype t, tx_payload u)
{
    tx_node head = {.op = (uint16_t)op, .flags = TX_NF_WEAK, .dtype = t, .span = c->span, .u = u};

    return tx_make_node(c, &head, NULL);
}

const tx_node *
tx_weak_int(tx_ctx *c, int64_t v)
{
    return make_weak(c, TX_OP_INT, v == (int32_t)v ? TX_I32 : TX_I64, (tx_payload){.i = v});
}

const tx_node *
tx_weak_float(tx_ctx *c, double v)
{
    return make_weak(c, TX_OP_FLOAT, TX_F32, (tx_payload){.f = v});
}

/* ---- literals that must fit ------------------------------------------------------------------------------------ */

static const tx_node *
literal_error(tx_ctx *c, tx_dtype t, bool low, const char *text)
{
    int id = low ? TX_E_LITERAL_RANGE_LOW : TX_E_LITERAL_RANGE_HIGH;

    if (low && (tx_class(t) == TX_CLS_U || tx_is_bool(t)))
        return tx_fail(c, c->span, TX_E_LITERAL_NEGATIVE, text);
    return tx_fail(c, c->span, id, text, tx_dtype_name(c, tx_scalar_of(t)));
}

/* A float as Python writes it: the fewest digits that give it back, an exponent below 1e-4 and from 1e16. */
static void
construct_number_text(tx_sb *out, double v)
{
    int digits = 1, e = 0;
    tx_sb sb = {0};

    if (isnan(v) || isinf(v)) {
        tx_sb_puts(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    for (; digits < 17; digits++) {
        sb.n = 0;
        tx_sb_f(&sb, "%.*e", digits - 1, v);
        if (sb.failed || strtod(sb.text, NULL) == v)
            break;
    }
    if (!sb.failed)
        e = atoi(strchr(sb.text, 'e') + 1);
    if (v != 0 && (e < -4 || e >= 16))
        tx_sb_f(out, "%.*g", digits, v);
    else
        tx_sb_f(out, "%.*f", digits - 1 - e > 1 ? digits - 1 - e : 1, v);
    out->failed |= sb.failed;
    tx_sb_free(&sb);
}

static const tx_node *
int_literal_error(tx_ctx *c, tx_dtype t, bool negative, uint64_t magnitude)
{
    const tx_str *s = tx_intern_f(c, "%s%llu", negative && magnitude ? "-" : "", (unsigned long long)magnitude);

    return s ? literal_error(c, t, negative, s->text) : NULL;
}

const tx_node *
tx_literal_int(tx_ctx *c, tx_dtype t, bool negative, uint64_t magnitude)
{
    tx_dtype s = tx_scalar_of(t);
    int64_t lo;
    uint64_t hi;

    if (tx_is_float(s)) {
        double v = tx_int_to_float(TX_F64, TX_U64, (int64_t)magnitude);

        if (!tx_float_fits(s, negative ? -v : v))
            return int_literal_error(c, s, negative, magnitude);
        v = tx_int_to_float(s, TX_U64, (int64_t)magnitude);
        return tx_float(c, t, negative ? -v : v);
    }
    if (tx_is_bool(s))
        return tx_int(c, t, magnitude != 0);
    if (!tx_int_limits(s, &lo, &hi))
        return tx_fail(c, c->span, TX_E_BAD_OPERAND, tx_dtype_name(c, s), "a number");
    if (negative ? magnitude > 0 - (uint64_t)lo : magnitude > hi)
        return int_literal_error(c, s, negative, magnitude);
    return tx_int(c, t, (int64_t)(negative ? 0 - magnitude : magnitude));
}

const tx_node *
tx_literal_float(tx_ctx *c, tx_dtype t, double v)
{
    tx_dtype s = tx_scalar_of(t);
    const tx_node *r;
    tx_sb text = {0};

    if (tx_is_float(s) && tx_float_fits(s, v))
        return tx_float(c, t, v);
    if (tx_is_bool(s))
        return tx_int(c, t, v != 0);
    if (tx_is_int(s) && fabs(v) < 18446744073709551616.0) /* truncates, as Python's int() */
        return tx_literal_int(c, t, v <= -1, (uint64_t)fabs(v));
    construct_number_text(&text, v);
    if (text.failed)
        r = tx_fail(c, c->span, TX_E_NO_MEMORY);
    else if (!is_number(s))
        r = tx_fail(c, c->span, TX_E_BAD_OPERAND, tx_dtype_name(c, s), "a number");
    else
        r = literal_error(c, s, v < 0, text.text);
    tx_sb_free(&text);
    return r;
}

/* ---- weak operands --------------------------------------------------------------------------------------------- */

/* A weak number as itself: int32, int64 or float32. Others unchanged. */
const tx_node *
tx_typed(tx_ctx *c, const tx_node *n)
{
    tx_span span = c->span;

    if (!n || !is_weak(n))
        return n;
    c->span = tx_place_of(c, n);
    n = n->op == TX_OP_INT ? tx_int(c, n->dtype, n->u.i) : tx_literal_float(c, TX_F32, n->u.f);
    c->span = span;
    return n;
}

/* A weak integer beside an operand of integer dtype t: t where it fits; int64 where it does not even fit int32 and t is no
 * wider; else it is an error. */
static const tx_node *
weak_int_beside_int(tx_ctx *c, const tx_node *w, tx_dtype t)
{
    bool negative = w->u.i < 0;
    uint64_t magnitude = negative ? 0 - (uint64_t)w->u.i : (uint64_t)w->u.i, hi;
    int64_t lo;

    tx_int_limits(t, &lo, &hi);
    if ((negative ? w->u.i < lo : magnitude > hi) && tx_bits(t) <= 32 && w->u.i != (int32_t)w->u.i)
        t = TX_I64;
    return tx_literal_int(c, t, negative, magnitude);
}

/* A weak operand typed beside one of dtype t. `compares`: the dtype of half floats is kept [D 6]. */
static const tx_node *
type_weak(tx_ctx *c, const tx_node *w, tx_dtype t, bool compares)
{
    tx_span span = c->span;
    const tx_node *r;

    t = tx_scalar_of(t);
    c->span = tx_place_of(c, w);
    if (w->op == TX_OP_INT && tx_is_int(t))
        r = weak_int_beside_int(c, w, t);
    else if (w->op == TX_OP_INT && tx_is_float(t))
        r = tx_literal_int(c, t, w->u.i < 0, w->u.i < 0 ? 0 - (uint64_t)w->u.i : (uint64_t)w->u.i);
    else if (w->op == TX_OP_FLOAT && tx_is_float(t) && (compares || tx_bits(t) >= 32))
        r = tx_literal_float(c, t, w->u.f);
    else
        r = tx_typed(c, w);
    c->span = span;
    return r;
}

static bool
type_weak_pair(tx_ctx *c, const tx_node **a, const tx_node **b, bool compares)
{
    bool weak_a = is_weak(*a), weak_b = is_weak(*b);

    if (weak_a && !weak_b)
        *a = type_weak(c, *a, (*b)->dtype, compares);
    else if (weak_b && !weak_a)
        *b = type_weak(c, *b, (*a)->dtype, compares);
    else if (weak_a) {
        *a = tx_typed(c, *a);
        *b = tx_typed(c, *b);
    }
    return *a && *b;
}

/* ---- promotion ------------------------------------------------------------------------------------------------- */

/* What to call an operand that an operator refuses. */
static const char *
construct_operand_text(tx_ctx *c, const tx_node *n)
{
    if (n->op == TX_OP_STR)
        return "a string";
    if (tx_is_handle(n->dtype))
        return "a pointer";
    return tx_class(n->dtype) == TX_CLS_V ? "a call without a value" : tx_dtype_name(c, n->dtype);
}

static const tx_node *
bad_operand(tx_ctx *c, unsigned op, const tx_node *n)
{
    return tx_fail(c, tx_place_of(c, n), TX_E_BAD_OPERAND, tx_ops[op].spelling, construct_operand_text(c, n));
}

/* Both operands in their common dtype; VOID after an error. */
static tx_dtype
promote_pair(tx_ctx *c, unsigned op, const tx_node **a, const tx_node **b, bool compares)
{
    tx_dtype t;

    if (!type_weak_pair(c, a, b, compares))
        return TX_VOID;
    t = tx_promote((*a)->dtype, (*b)->dtype);
    if (t == TX_VOID) {
        if (is_number((*a)->dtype) && is_number((*b)->dtype))
            tx_fail(c, c->span, TX_E_LANES_MISMATCH, tx_dtype_name(c, (*a)->dtype), tx_dtype_name(c, (*b)->dtype));
        else
            bad_operand(c, op, is_number((*a)->dtype) ? *b : *a);
        return TX_VOID;
    }
    if (tx_kind(t) == TX_KIND_F16 && (tx_kind((*a)->dtype) == TX_KIND_BF16 || tx_kind((*b)->dtype) == TX_KIND_BF16))
        tx_warn(c, c->span, TX_E_MIXED_HALVES, tx_dtype_name(c, (*a)->dtype), tx_dtype_name(c, (*b)->dtype),
                tx_dtype_name(c, t));
    *a = tx_cast(c, t, *a);
    *b = tx_cast(c, t, *b);
    return *a && *b ? t : TX_VOID;
}

/* Arithmetic on bools is done in int32 [D 6]. */
static tx_dtype
bool_to_int(tx_dtype t)
{
    return tx_is_bool(t) ? tx_with_lanes(TX_I32, tx_lanes(t)) : t;
}

static bool
needs_ints(unsigned op)
{
    return op == TX_OP_MOD || op == TX_OP_FLOORDIV || op == TX_OP_FLOORMOD || op == TX_OP_CEILDIV;
}

static bool
is_bitwise(unsigned op)
{
    return op == TX_OP_BAND || op == TX_OP_BOR || op == TX_OP_BXOR;
}

static const tx_node *
rule_arith(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    tx_dtype t = promote_pair(c, op, &args[0], &args[1], false);

    if (t == TX_VOID)
        return NULL;
    if (nargs == 3) {
        if ((t = promote_pair(c, op, &args[0], &args[2], false)) == TX_VOID || !(args[1] = tx_cast(c, t, args[1])))
            return NULL;
    }
    if (!is_number(t) || tx_bits(t) > 64)
        return bad_operand(c, op, args[0]);
    if (tx_is_float(t) && needs_ints(op))
        return tx_fail(c, c->span, TX_E_FLOAT_FLOORDIV, tx_ops[op].spelling, tx_dtype_name(c, t));
    if (tx_is_float(t) && (is_bitwise(op) || op == TX_OP_SHL || op == TX_OP_SHR))
        return bad_operand(c, op, args[0]);
    if (tx_is_bool(t) && !is_bitwise(op)) {
        t = bool_to_int(t);
        for (uint32_t i = 0; i < nargs; i++)
            if (!(args[i] = tx_cast(c, t, args[i])))
                return NULL;
    }
    return construct_finish(c, op, t, args, nargs);
}

static const tx_node *
rule_compare(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    tx_dtype t = promote_pair(c, op, &args[0], &args[1], true);
    bool equality = op == TX_OP_EQ || op == TX_OP_NE;

    if (t == TX_VOID)
        return NULL;
    if (!is_number(t) && !(equality && tx_is_handle(t)))
        return bad_operand(c, op, args[0]);
    if (tx_is_bool(t) && !equality) {
        t = bool_to_int(t);
        args[0] = tx_cast(c, t, args[0]);
        args[1] = tx_cast(c, t, args[1]);
        if (!args[0] || !args[1])
            return NULL;
    }
    return construct_finish(c, op, tx_with_lanes(TX_BOOL, tx_lanes(t)), args, nargs);
}

static const tx_node *
rule_logic(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    for (uint32_t i = 0; i < nargs; i++) {
        if (!tx_is_bool(args[i]->dtype))
            return tx_fail(c, tx_place_of(c, args[i]), TX_E_LOGIC_OPERAND, tx_ops[op].spelling,
                           construct_operand_text(c, args[i]));
        if (tx_lanes(args[i]->dtype) != tx_lanes(args[0]->dtype))
            return tx_fail(c, c->span, TX_E_LANES_MISMATCH, tx_dtype_name(c, args[0]->dtype),
                           tx_dtype_name(c, args[i]->dtype));
    }
    return construct_finish(c, op, args[0]->dtype, args, nargs);
}

static const tx_node *
rule_same(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    tx_dtype t;

    if (!(args[0] = tx_typed(c, args[0])))
        return NULL;
    t = args[0]->dtype;
    if (op == TX_OP_LIKELY)
        return is_number(t) ? construct_finish(c, op, t, args, nargs) : bad_operand(c, op, args[0]);
    if (op == TX_OP_BNOT && tx_is_bool(t)) /* ~ on a bool is logical not (language.md 6.2) */
        return construct_finish(c, TX_OP_NOT, t, args, nargs);
    if (!is_number(t) || tx_bits(t) > 64 || (tx_is_float(t) && op != TX_OP_NEG && op != TX_OP_ABS))
        return bad_operand(c, op, args[0]);
    t = bool_to_int(t);
    return (args[0] = tx_cast(c, t, args[0])) ? construct_finish(c, op, t, args, nargs) : NULL;
}

/* Integers and bools become float32. */
static bool
to_float(tx_ctx *c, unsigned op, const tx_node **a)
{
    if (!(*a = tx_typed(c, *a)))
        return false;
    if (!is_number((*a)->dtype) || tx_bits((*a)->dtype) > 64)
        return bad_operand(c, op, *a) != NULL;
    if (!tx_is_float((*a)->dtype))
        *a = tx_cast(c, tx_with_lanes(TX_F32, tx_lanes((*a)->dtype)), *a);
    return *a != NULL;
}

static const tx_node *
rule_float(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    if (!to_float(c, op, &args[0]))
        return NULL;
    if (nargs == 2) /* LDEXP: the exponent is an int32 */
        if (!(args[1] = tx_cast(c, tx_with_lanes(TX_I32, tx_lanes(args[0]->dtype)), args[1])))
            return NULL;
    return construct_finish(c, op, args[0]->dtype, args, nargs);
}

static const tx_node *
rule_float2(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    tx_dtype t;

    if (op == TX_OP_POW && !is_weak(args[0]) && !tx_is_float(args[0]->dtype))
        return bad_operand(c, op, args[0]);
    if ((t = promote_pair(c, op, &args[0], &args[1], false)) == TX_VOID)
        return NULL;
    if (!to_float(c, op, &args[0]) || !to_float(c, op, &args[1]))
        return NULL;
    return construct_finish(c, op, args[0]->dtype, args, nargs);
}

static const tx_node *
rule_bool1(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    if (op == TX_OP_ISNULLPTR) {
        if (!tx_is_handle(args[0]->dtype))
            return bad_operand(c, op, args[0]);
    } else if (!to_float(c, op, &args[0]))
        return NULL;
    return construct_finish(c, op, tx_with_lanes(TX_BOOL, tx_lanes(args[0]->dtype)), args, nargs);
}

/* Operand dtypes of the machine's operations: one letter an operand. u: uint32, v: as it is, c: condition, p: pointer */
static const char *
machine_operands(unsigned op)
{
    switch (op) {
    case TX_OP_FFS:
    case TX_OP_NANO_SLEEP:
    case TX_OP_WARPGROUP_SYNC: return "u";
    case TX_OP_BALLOT:
    case TX_OP_ANY_SYNC: return "uv";
    case TX_OP_REDUX_ADD:
    case TX_OP_REDUX_MIN: return "uu";
    case TX_OP_MBAR_WAIT: return "pu";
    case TX_OP_CVTA_SHARED: return "p";
    case TX_OP_TRAP_UNLESS: return "c";
    case TX_OP_WARP_SYNC: return "u";
    default: return "";
    }
}

static const tx_node *
rule_machine(tx_ctx *c, unsigned op, const tx_node **args, uint32_t nargs)
{
    static const tx_dtype results[] = {
        [TX_RULE_I32] = TX_I32, [TX_RULE_U32] = TX_U32, [TX_RULE_VOID] = TX_VOID, [TX_RULE_PTR] = TX_HANDLE};
    const char *letter = machine_operands(op);

    for (uint32_t i = 0; i < nargs; i++) {
        char k = *letter ? *letter++ : 'v';

        if (k == 'p' && !tx_is_handle(args[i]->dtype))
            return bad_operand(c, op, args[i]);
        args[i] = k == 'u' ? tx_cast(c, TX_U32, args[i]) : k == 'c' ? tx_condition(c, args[i]) : tx_typed(c, args[i]);
        if (!args[i])
            return NULL;
    }
    return tx_make(c, op, results[tx_ops[op].rule], (tx_payload){0}, args, nargs);
}

/* ---- the entrance ---------------------------------------------------------------------------------------------- */

const tx_node *
tx_op_call(tx_ctx *c, unsigned op, const tx_node *const *args, uint32_t nargs)
{
    typedef const tx_node *rule_fn(tx_ctx *, unsigned, const tx_node **, uint32_t);
    static rule_fn *const rules[] = {
        [TX_RULE_NONE] = NULL,         [TX_RULE_ARITH] = rule_arith,   [TX_RULE_COMPARE] = rule_compare,
        [TX_RULE_LOGIC] = rule_logic,  [TX_RULE_SHIFT] = rule_arith,   [TX_RULE_SAME] = rule_same,
        [TX_RULE_FLOAT] = rule_float,  [TX_RULE_FLOAT2] = rule_float2, [TX_RULE_BOOL1] = rule_bool1,
        [TX_RULE_I32] = rule_machine,  [TX_RULE_U32] = rule_machine,   [TX_RULE_PTR] = rule_machine,
        [TX_RULE_VOID] = rule_machine,
    };
    const tx_op_info *info = &tx_ops[op];
    const tx_node *own[CONSTRUCT_MAX_ARGS], **copy = own, *r;
    tx_mark mark = tx_arena_mark(&c->scratch);

    for (uint32_t i = 0; i < nargs; i++)
        if (!args[i])
            return NULL;
    if (TX_NEVER(info->operands >= 0 && nargs != (uint32_t)info->operands))
        return tx_fail(c, c->span, TX_E_INTERNAL, "wrong number of operands");
    switch (op) {
    case TX_OP_SELECT:
    case TX_OP_IF_THEN_ELSE: return tx_select(c, op, args[0], args[1], args[2]);
    case TX_OP_ADDRESS_OF: return tx_address_of(c, args[0]);
    case TX_OP_PTR_OFFSET: return tx_ptr_offset(c, args[0], args[1], args[0]->elem);
    default: break;
    }
    if (!rules[info->rule])
        return tx_fail(c, c->span, TX_E_INTERNAL, info->name);
    if (nargs > CONSTRUCT_MAX_ARGS && !(copy = tx_scratch(c, const tx_node *, nargs)))
        return NULL;
    if (nargs)
        memcpy(copy, args, nargs * sizeof *args);
    r = rules[info->rule](c, op, copy, nargs);
    tx_arena_release(&c->scratch, mark);
    return r;
}

const tx_node *
tx_unary(tx_ctx *c, unsigned op, const tx_node *a)
{
    return tx_op_call(c, op, &a, 1);
}

const tx_node *
tx_binary(tx_ctx *c, unsigned op, const tx_node *a, const tx_node *b)
{
    const tx_node *args[] = {a, b};

    return tx_op_call(c, op, args, 2);
}

const tx_node *
tx_not(tx_ctx *c, const tx_node *a)
{
    return tx_op_call(c, TX_OP_NOT, &a, 1);
}

/* ---- conversions and choice ------------------------------------------------------------------------------------ */

const tx_node *
tx_cast(tx_ctx *c, tx_dtype t, const tx_node *a)
{
    tx_dtype from;

    if (!a)
        return NULL;
    from = a->dtype;
    if (tx_lanes(t) == 1 && tx_lanes(from) > 1)
        t = tx_with_lanes(t, tx_lanes(from));
    if (tx_lanes(t) > 1 && tx_lanes(from) == 1)
        return tx_broadcast(c, tx_cast(c, tx_scalar_of(t), a), tx_lanes(t));
    if (tx_lanes(t) != tx_lanes(from))
        return tx_fail(c, c->span, TX_E_LANES_MISMATCH, tx_dtype_name(c, t), tx_dtype_name(c, from));
    if (t == from && !is_weak(a))
        return a;
    if (tx_is_handle(t) || tx_is_handle(from)) {
        if (!(tx_is_int(t) && tx_bits(t) == 64) && !(tx_is_int(from) && tx_bits(from) == 64))
            return bad_operand(c, TX_OP_CAST, a);
    } else if (!is_number(t) || !is_number(from))
        return bad_operand(c, TX_OP_CAST, a);
    return construct_finish(c, TX_OP_CAST, t, &a, 1);
}

const tx_node *
tx_reinterpret(tx_ctx *c, tx_dtype t, const tx_node *a)
{
    int to = (int)(tx_bits(t) * tx_lanes(t)), from;

    if (!(a = tx_typed(c, a)))
        return NULL;
    if (a->dtype == t)
        return a;
    from = (int)(tx_bits(a->dtype) * tx_lanes(a->dtype));
    if (tx_is_bool(t) || tx_is_bool(a->dtype) || tx_class(t) == TX_CLS_O || tx_class(t) == TX_CLS_V)
        return bad_operand(c, TX_OP_REINTERPRET, a);
    if (to != from)
        return tx_fail(c, c->span, TX_E_REINTERPRET_BITS, tx_dtype_name(c, t), to, tx_dtype_name(c, a->dtype), from);
    return construct_finish(c, TX_OP_REINTERPRET, t, &a, 1);
}

const tx_node *
tx_condition(tx_ctx *c, const tx_node *a)
{
    if (!(a = tx_typed(c, a)))
        return NULL;
    if (tx_lanes(a->dtype) > 1 || !is_number(a->dtype))
        return tx_fail(c, tx_place_of(c, a), TX_E_CONDITION, construct_operand_text(c, a));
    if (tx_is_bool(a->dtype))
        return a;
    return tx_binary(c, TX_OP_NE, a, tx_int(c, a->dtype, 0));
}

const tx_node *
tx_select(tx_ctx *c, unsigned op, const tx_node *cond, const tx_node *a, const tx_node *b)
{
    const tx_node *args[3] = {NULL, a, b};
    tx_dtype t;

    if (!cond || !a || !b)
        return NULL;
    args[0] = tx_is_bool(cond->dtype) ? cond : tx_condition(c, cond);
    if (!args[0] || (t = promote_pair(c, op, &args[1], &args[2], false)) == TX_VOID)
        return NULL;
    if (tx_lanes(args[0]->dtype) > 1 && tx_lanes(args[0]->dtype) != tx_lanes(t))
        return tx_fail(c, c->span, TX_E_LANES_MISMATCH, tx_dtype_name(c, args[0]->dtype), tx_dtype_name(c, t));
    return construct_finish(c, op, t, args, 3);
}
