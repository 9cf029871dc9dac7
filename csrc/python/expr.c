/* Expr: an IR expression, and the operators that Exprs, one-element Buffers and Regions share. Operators promote and
 * fold by the core's rules; a comparison gives an Expr, so that the truth of one is an error unless it is a
 * constant. SPDX-License-Identifier: Apache-2.0 */
#include "python/node.h"

static void pyexpr_dealloc(PyObject *self);

bool
tx_py_is_expr(PyObject *x)
{
    return PyType_GetSlot(Py_TYPE(x), Py_tp_dealloc) == (void *)pyexpr_dealloc;
}

PyObject *
tx_py_new_expr(tx_py_context *ctx, const tx_node *n)
{
    if (TX_UNLIKELY(!n))
        return tx_py_raise(ctx);
    if (n->op == TX_OP_VAR) { /* one object a variable */
        PyObject *known = tx_py_find_wrapper(ctx, n->u.var);
        if (known)
            return known;
    }
    tx_py_expr *e = (tx_py_expr *)PyType_GenericAlloc(ctx->state->Expr, 0);
    if (!e)
        return NULL;
    e->ctx = TX_PY_HOLD(ctx);
    e->node = n;
    if (n->op == TX_OP_VAR && !tx_py_keep_wrapper(ctx, n->u.var, (PyObject *)e)) {
        TX_PY_DROP(e);
        return NULL;
    }
    return (PyObject *)e;
}

static void
pyexpr_dealloc(PyObject *self)
{
    tx_py_expr *e = (tx_py_expr *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (e->ctx && e->node->op == TX_OP_VAR && tx_map_ptr(&e->ctx->wrappers, e->node->u.var) == self)
        tx_py_keep_wrapper(e->ctx, e->node->u.var, NULL);
    TX_PY_DROP(e->ctx);
    PyObject_Free(self);
    TX_PY_DROP(type);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

/* The context that an operation of a and b happens in; one of them is a value. When both are and differ, the living
 * one. */
static tx_py_context *
common_context(PyObject *a, PyObject *b)
{
    tx_py_context *x = tx_py_is_value(a) ? ((tx_py_object *)a)->ctx : NULL;
    tx_py_context *y = b && tx_py_is_value(b) ? ((tx_py_object *)b)->ctx : NULL;

    if (!x || !y || x == y)
        x = x ? x : y;
    else
        x = x->frozen && !y->frozen ? y : x;
    tx_py_here(x);
    return x;
}

/* Both operands as nodes: 1 done, 0 not implemented by us, -1 raised. slot 0: what is no number is always an error. */
static int
expr_operands(tx_py_context *ctx, PyObject *a, PyObject *b, const char *sign, int slot, const tx_node **x,
              const tx_node **y)
{
    bool a_first = tx_py_is_value(a);
    PyObject *other = a_first ? b : a;
    int r;

    r = a_first ? tx_py_try_node(ctx, a, TX_VOID, x) : tx_py_try_node(ctx, b, TX_VOID, y);
    if (r <= 0)
        return r;
    r = a_first ? tx_py_try_node(ctx, b, (*x)->dtype, y) : tx_py_try_node(ctx, a, (*y)->dtype, x);
    if (r != 0)
        return r;
    /* An unknown class on the right may know us; a container or a text does not. */
    if (slot && a_first && PyType_GetSlot(Py_TYPE(b), slot) && !PyType_GetSlot(Py_TYPE(b), Py_sq_length) &&
        !PyComplex_Check(b))
        return 0;
    tx_py_fail(ctx, TX_E_BAD_OPERAND, sign, tx_py_type_name(ctx->c, other));
    return -1;
}

static PyObject *
expr_binary(PyObject *a, PyObject *b, unsigned op, int slot)
{
    tx_py_context *ctx = common_context(a, b);
    const tx_node *x, *y;
    int r = expr_operands(ctx, a, b, tx_ops[op].spelling, slot, &x, &y);

    if (TX_UNLIKELY(r <= 0))
        return r < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    return tx_py_new_expr(ctx, tx_binary(ctx->c, op, x, y));
}

#define PLAIN(name, OP)                                     \
    PyObject *tx_py_nb_##name(PyObject *a, PyObject *b)     \
    {                                                       \
        return expr_binary(a, b, TX_OP_##OP, Py_nb_##name); \
    }
PLAIN(add, ADD)
PLAIN(subtract, SUB)
PLAIN(multiply, MUL)
PLAIN(lshift, SHL)
PLAIN(rshift, SHR)
PLAIN(and, BAND)
PLAIN(or, BOR)
PLAIN(xor, BXOR)

PyObject *
tx_py_nb_true_divide(PyObject *a, PyObject *b)
{
    tx_py_context *ctx = common_context(a, b);
    const tx_node *x, *y;
    int r = expr_operands(ctx, a, b, "/", Py_nb_true_divide, &x, &y);

    if (r <= 0)
        return r < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    if (!tx_is_float(x->dtype) && !tx_is_float(y->dtype) && !tx_is_handle(x->dtype) && !tx_is_handle(y->dtype))
        return tx_py_fail(ctx, TX_E_INT_DIV_AMBIGUOUS);
    return tx_py_new_expr(ctx, tx_binary(ctx->c, TX_OP_DIV, x, y));
}

/* // and %: floor division, integers only. */
static PyObject *
floor_op(tx_py_context *ctx, unsigned op, const tx_node *x, const tx_node *y)
{
    if (tx_is_float(x->dtype) || tx_is_float(y->dtype))
        return tx_py_fail(ctx, TX_E_FLOAT_FLOORDIV, tx_ops[op].spelling,
                          tx_dtype_name(ctx->c, tx_is_float(x->dtype) ? x->dtype : y->dtype));
    return tx_py_new_expr(ctx, tx_binary(ctx->c, op, x, y));
}

static PyObject *
floor_binary(PyObject *a, PyObject *b, unsigned op, int slot)
{
    tx_py_context *ctx = common_context(a, b);
    const tx_node *x, *y;
    int r = expr_operands(ctx, a, b, tx_ops[op].spelling, slot, &x, &y);

    return r > 0 ? floor_op(ctx, op, x, y) : r < 0 ? NULL : Py_NewRef(Py_NotImplemented);
}

PyObject *
tx_py_nb_floor_divide(PyObject *a, PyObject *b)
{
    return floor_binary(a, b, TX_OP_FLOORDIV, Py_nb_floor_divide);
}

PyObject *
tx_py_nb_remainder(PyObject *a, PyObject *b)
{
    return floor_binary(a, b, TX_OP_FLOORMOD, Py_nb_remainder);
}

PyObject *
tx_py_nb_divmod(PyObject *a, PyObject *b)
{
    tx_py_context *ctx = common_context(a, b);
    const tx_node *x, *y;
    int r = expr_operands(ctx, a, b, "divmod", Py_nb_divmod, &x, &y);

    if (r <= 0)
        return r < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    PyObject *q = floor_op(ctx, TX_OP_FLOORDIV, x, y), *m = q ? floor_op(ctx, TX_OP_FLOORMOD, x, y) : NULL;
    PyObject *pair = m ? PyTuple_Pack(2, q, m) : NULL;
    Py_XDECREF(q);
    Py_XDECREF(m);
    return pair;
}

/* x to a constant power by multiplication; each factor is used several times, so x must be pure. */
static const tx_node *
power_by_squares(tx_ctx *c, const tx_node *x, int64_t n)
{
    const tx_node *result = NULL;

    if (n == 0)
        return tx_is_float(x->dtype) ? tx_float(c, x->dtype, 1.0) : tx_int(c, x->dtype, 1);
    for (;; n >>= 1) {
        if (n & 1)
            result = result ? tx_binary(c, TX_OP_MUL, result, x) : x;
        if (n <= 1)
            return result;
        x = tx_binary(c, TX_OP_MUL, x, x);
        if (!x)
            return NULL;
    }
}

static const tx_node *
small_power(tx_ctx *c, const tx_node *x, int64_t n)
{
    if (!(x->flags & TX_NF_IMPURE) || n == 1)
        return power_by_squares(c, x, n);
    /* A load or a call is evaluated once, in a let. */
    const tx_str *name = tx_intern_z(c, "base");
    tx_var *v = name ? tx_new_var(c, TX_VAR_LET, name, x->dtype) : NULL;
    const tx_node *body = v ? power_by_squares(c, v->node, n) : NULL;
    return body ? tx_let(c, v, x, body) : NULL;
}

enum { MAX_INT_POWER = 64, MAX_FLOAT_POWER = 4 };

PyObject *
tx_py_nb_power(PyObject *a, PyObject *b, PyObject *mod)
{
    if (mod != Py_None && !(tx_py_is_value(a) || tx_py_is_value(b)))
        Py_RETURN_NOTIMPLEMENTED;
    tx_py_context *ctx = common_context(a, b);
    const tx_node *x, *y;
    int64_t n;
    int r = expr_operands(ctx, a, b, "**", Py_nb_power, &x, &y);

    if (r <= 0)
        return r < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    if (mod != Py_None)
        return tx_py_fail(ctx, TX_E_BAD_OPERAND, "pow", "a modulus");
    bool is_float = tx_is_float(x->dtype) || tx_is_float(y->dtype);
    if (tx_is_bool(x->dtype) && !(x = tx_cast(ctx->c, tx_with_lanes(TX_I32, tx_lanes(x->dtype)), x)))
        return tx_py_raise(ctx);
    if (tx_const_i64(y, &n) && tx_lanes(y->dtype) == 1 && n >= 0 && n <= (is_float ? MAX_FLOAT_POWER : MAX_INT_POWER) &&
        (tx_is_float(x->dtype) || tx_is_int(x->dtype)))
        return tx_py_new_expr(ctx, small_power(ctx->c, x, n));
    if (!is_float)
        return tx_py_fail(ctx, TX_E_INT_POWER);
    return tx_py_new_expr(ctx, tx_binary(ctx->c, TX_OP_POW, x, y));
}

/* The one operand of a unary operator, always a value. */
static const tx_node *
expr_operand(PyObject *a, tx_py_context **ctx)
{
    *ctx = ((tx_py_object *)a)->ctx;
    tx_py_here(*ctx);
    return tx_py_as_node(*ctx, a, TX_VOID);
}

PyObject *
tx_py_nb_negative(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    return x ? tx_py_new_expr(ctx, tx_unary(ctx->c, TX_OP_NEG, x)) : NULL;
}

PyObject *
tx_py_nb_positive(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    return x ? tx_py_new_expr(ctx, x) : NULL;
}

PyObject *
tx_py_nb_invert(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    if (!x)
        return NULL;
    return tx_py_new_expr(ctx, tx_is_bool(x->dtype) ? tx_not(ctx->c, x) : tx_unary(ctx->c, TX_OP_BNOT, x));
}

PyObject *
tx_py_nb_absolute(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    return x ? tx_py_new_expr(ctx, tx_unary(ctx->c, TX_OP_ABS, x)) : NULL;
}

PyObject *
tx_py_round(PyObject *a, PyObject *const *args, Py_ssize_t nargs)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    if (!x)
        return NULL;
    if (nargs > 1 || (nargs == 1 && args[0] != Py_None))
        return tx_py_fail(ctx, TX_E_BAD_OPERAND, "round", "a number of digits");
    return tx_py_new_expr(ctx, tx_is_float(x->dtype) ? tx_unary(ctx->c, TX_OP_ROUND, x) : x);
}

/* ---- Python numbers from constants ------------------------------------------------------------------------------- */

static const tx_node *
expr_constant(PyObject *a, tx_py_context **ctx)
{
    const tx_node *x = expr_operand(a, ctx);

    if (!x || x->op == TX_OP_INT || x->op == TX_OP_FLOAT)
        return x;
    return tx_py_fail(*ctx, TX_E_EXPR_NUMBER, tx_dtype_name((*ctx)->c, x->dtype));
}

PyObject *
tx_py_nb_index(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_constant(a, &ctx);

    if (!x)
        return NULL;
    if (x->op == TX_OP_INT)
        return tx_is_bool(x->dtype) ? PyLong_FromLongLong(x->u.i != 0) : tx_py_from_attr(ctx, x);
    PyErr_SetString(PyExc_TypeError, "a float constant cannot be used as an integer");
    return NULL;
}

PyObject *
tx_py_nb_int(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_constant(a, &ctx);

    if (!x)
        return NULL;
    return x->op == TX_OP_FLOAT ? PyLong_FromDouble(x->u.f) : tx_py_nb_index(a);
}

PyObject *
tx_py_nb_float(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_constant(a, &ctx);

    if (!x)
        return NULL;
    if (x->op == TX_OP_FLOAT)
        return PyFloat_FromDouble(x->u.f);
    return PyFloat_FromDouble(tx_class(x->dtype) == TX_CLS_U ? (double)(uint64_t)x->u.i : (double)x->u.i);
}

int
tx_py_nb_bool(PyObject *a)
{
    tx_py_context *ctx;
    const tx_node *x = expr_operand(a, &ctx);

    if (x && x->op == TX_OP_INT)
        return x->u.i != 0;
    if (x && x->op == TX_OP_FLOAT)
        return x->u.f != 0;
    if (x)
        tx_py_fail(ctx, TX_E_EXPR_BOOL);
    return -1;
}

static bool
is_statement(PyObject *x)
{
    return tx_py_is_expr(x) && tx_is_stmt(((tx_py_expr *)x)->node);
}

PyObject *
tx_py_compare(PyObject *a, PyObject *b, int op)
{
    static const uint8_t of[] = {[Py_LT] = TX_OP_LT, [Py_LE] = TX_OP_LE, [Py_EQ] = TX_OP_EQ,
                                 [Py_NE] = TX_OP_NE, [Py_GT] = TX_OP_GT, [Py_GE] = TX_OP_GE};

    if ((op == Py_EQ || op == Py_NE) && (is_statement(a) || is_statement(b))) { /* no values: compared as they stand */
        if (!is_statement(a) || !is_statement(b))
            Py_RETURN_NOTIMPLEMENTED;
        return PyBool_FromLong(tx_equal_nodes(((tx_py_expr *)a)->node, ((tx_py_expr *)b)->node) == (op == Py_EQ));
    }
    return expr_binary(a, b, of[op], 0);
}

Py_hash_t
tx_py_identity_hash(PyObject *a)
{
    size_t p = (size_t)a;

    if (is_statement(a))
        return (Py_hash_t)(tx_hash_node(((tx_py_expr *)a)->node, true) >> 1);
    p = p >> 4 | p << (8 * sizeof p - 4);
    return (Py_hash_t)p == -1 ? -2 : (Py_hash_t)p;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

#define NODE(self) (((tx_py_expr *)(self))->node)
#define EXPR_CTX(self) (((tx_py_expr *)(self))->ctx)

static PyObject *
pyexpr_get_ctx(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(EXPR_CTX(self));
}

static PyObject *
pyexpr_get_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_dtype_str(EXPR_CTX(self)->state, NODE(self)->dtype);
}

static PyObject *
pyexpr_get_elem(PyObject *self, void *Py_UNUSED(closure))
{
    if (!tx_is_handle(NODE(self)->dtype) || !NODE(self)->elem || NODE(self)->elem == TX_VOID)
        Py_RETURN_NONE;
    return tx_py_dtype_str(EXPR_CTX(self)->state, NODE(self)->elem);
}

static PyObject *
pyexpr_get_op(PyObject *self, void *Py_UNUSED(closure))
{
    PyObject **name = &EXPR_CTX(self)->state->op_name[NODE(self)->op];

    if (!*name)
        *name = PyUnicode_InternFromString(tx_ops[NODE(self)->op].name);
    return Py_XNewRef(*name);
}

static PyObject *
pyexpr_get_span(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(NODE(self)->span);
}

static PyObject *
pyexpr_get_args(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_node *n = NODE(self);
    PyObject *args = PyTuple_New((Py_ssize_t)n->nargs);

    for (uint32_t i = 0; args && i < n->nargs; i++) {
        PyObject *x = n->arg[i] ? tx_py_new_expr(EXPR_CTX(self), n->arg[i]) : Py_NewRef(Py_None);
        if (!x || PyTuple_SetItem(args, (Py_ssize_t)i, x) < 0)
            Py_CLEAR(args);
    }
    return args;
}

static PyObject *
pyexpr_get_value(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_node *n = NODE(self);

    if (n->op != TX_OP_INT && n->op != TX_OP_FLOAT && n->op != TX_OP_STR) {
        PyObject *child = tx_py_node_field(EXPR_CTX(self), n, "value");
        return child || PyErr_Occurred() ? child : Py_NewRef(Py_None);
    }
    return tx_py_from_attr(EXPR_CTX(self), n);
}

static PyObject *
pyexpr_get_weak(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong((NODE(self)->flags & TX_NF_WEAK) != 0);
}

static PyObject *
pyexpr_get_name(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_node *n = NODE(self);

    if (n->op == TX_OP_VAR)
        return tx_py_str(n->u.var->name);
    PyObject *found = tx_py_node_field(EXPR_CTX(self), n, "name"); /* of a call */
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

static PyObject *
pyexpr_get_buffer(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_node *n = NODE(self);
    tx_buffer *b = NULL;

    switch (n->op) {
    case TX_OP_LOAD:
    case TX_OP_BUFFER_DATA:
    case TX_OP_STORE:
    case TX_OP_ALLOC:
    case TX_OP_DECL:
    case TX_OP_MATCH: b = n->u.buf; break;
    case TX_OP_VAR: b = n->u.var->buffer; break;
    default: break;
    }
    return b ? tx_py_new_buffer(EXPR_CTX(self), b) : Py_NewRef(Py_None);
}

static PyObject *
pyexpr_scope(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyUnicode_FromString(tx_scope_name((tx_scope)NODE(self)->scope));
}

static PyObject *
pyexpr_astype(PyObject *self, PyObject *dtype)
{
    tx_dtype t;

    tx_py_here(EXPR_CTX(self));
    if (!tx_py_as_dtype(EXPR_CTX(self), dtype, &t))
        return NULL;
    return tx_py_new_expr(EXPR_CTX(self), tx_cast(EXPR_CTX(self)->c, t, NODE(self)));
}

static PyObject *
pyexpr_same_as(PyObject *self, PyObject *other)
{
    if (!tx_py_is_expr(other))
        Py_RETURN_FALSE;
    return PyBool_FromLong(EXPR_CTX(self) == EXPR_CTX(other) && tx_same_expr(NODE(self), NODE(other)));
}

static PyObject *
pyexpr_subscript(PyObject *self, PyObject *Py_UNUSED(key))
{
    return tx_py_fail(EXPR_CTX(self), TX_E_NOT_SUBSCRIPTABLE, tx_dtype_name(EXPR_CTX(self)->c, NODE(self)->dtype));
}

static PyObject *
pyexpr_str(PyObject *self)
{
    tx_sb sb = {0};

    tx_print_node(NODE(self), &sb);
    return tx_py_take_sb(&sb);
}

static PyObject *
pyexpr_repr(PyObject *self)
{
    PyObject *text = tx_py_node_line(NODE(self)), *dtype = text ? pyexpr_get_dtype(self, NULL) : NULL;
    const char *name = tx_py_node_class(NODE(self));
    PyObject *r = !dtype               ? NULL
                  : is_statement(self) ? PyUnicode_FromFormat("<%s: %U>", name, text)
                                       : PyUnicode_FromFormat("<%s: %U, %U>", name, text, dtype);

    Py_XDECREF(text);
    Py_XDECREF(dtype);
    return r;
}

static PyMethodDef pyexpr_methods[] = {
    {"scope", pyexpr_scope, METH_NOARGS, "memory space of the pointee"},
    {"replace", TX_PY_FAST(tx_py_node_replace), METH_VARARGS | METH_KEYWORDS, "the same node with other fields"},
    {"astype", pyexpr_astype, METH_O, "conversion to a dtype"},
    {"same_as", pyexpr_same_as, METH_O, "True if both are the same value for sure"},
    {"__round__", TX_PY_FAST(tx_py_round), METH_FASTCALL, "nearest integer, ties to even"},
    {0},
};

static PyGetSetDef pyexpr_getset[] = {
    {"ctx", pyexpr_get_ctx, NULL, "the Context that it belongs to", NULL},
    {"dtype", pyexpr_get_dtype, NULL, "text of the dtype", NULL},
    {"elem", pyexpr_get_elem, NULL, "handles: dtype of the pointee, or None", NULL},
    {"op", pyexpr_get_op, NULL, "row name in ops.def", NULL},
    {"span", pyexpr_get_span, NULL, "where it was written", NULL},
    {"args", pyexpr_get_args, NULL, "children, None where one is missing", NULL},
    {"children", tx_py_node_children, NULL, "the children that are there", NULL},
    {"value", pyexpr_get_value, NULL, "constants: the Python value, else None", NULL},
    {"weak", pyexpr_get_weak, NULL, "True for a plain number that takes the other operand's dtype", NULL},
    {"name", pyexpr_get_name, NULL, "variables: the name, else None", NULL},
    {"buffer", pyexpr_get_buffer, NULL, "loads and data pointers: the Buffer, else None", NULL},
    {0},
};

static PyType_Slot pyexpr_slots[] = {
    TX_PY_NUMBER_TABLE,
    {Py_tp_dealloc, pyexpr_dealloc},
    {Py_tp_repr, pyexpr_repr},
    {Py_tp_str, pyexpr_str},
    {Py_tp_methods, pyexpr_methods},
    {Py_tp_getset, pyexpr_getset},
    {Py_mp_subscript, pyexpr_subscript},
    {Py_tp_getattro, tx_py_expr_getattr},
    {Py_tp_doc, "A node of the IR. Immutable; operators of values promote and fold. Values are hashed by identity, "
                "statements by what they are."},
    {0, NULL},
};

static PyType_Spec pyexpr_spec = {"tirx.Expr", sizeof(tx_py_expr), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, pyexpr_slots};

int
tx_py_init_expr(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!(s->Expr = tx_py_add_type(module, &pyexpr_spec)))
        return -1;
    /* NumPy's arrays and scalars leave operations with us to us. */
    return PyObject_SetAttrString((PyObject *)s->Expr, "__array_ufunc__", Py_None);
}
