/* Module functions that make expressions: what the T namespace is written with. Each takes the Context first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

/* A fast function: sig, then the parsed arguments in a[], the context in ctx. */
#define CALL(fname, nrequired, npositional, ...)                                                                    \
    static PyObject *fname##_in(tx_py_context *ctx, PyObject *const *a);                                            \
    static PyObject *fname(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)            \
    {                                                                                                               \
        static const tx_py_sig sig = {&#fname[7], nrequired, npositional, {"ctx", __VA_ARGS__, NULL}};              \
        PyObject *a[20];                                                                                            \
        tx_py_context *ctx;                                                                                         \
        if (!tx_py_parse(&sig, args, nargs, kwnames, a) || !(ctx = tx_py_as_context(tx_py_state_of(module), a[0]))) \
            return NULL;                                                                                            \
        return fname##_in(ctx, a);                                                                                  \
    }                                                                                                               \
    static PyObject *fname##_in(tx_py_context *ctx, PyObject *const *a)

CALL(pycall_as_expr, 2, 3, "x", "dtype")
{
    const tx_node *n;
    tx_dtype t;

    if (TX_PY_GIVEN(a[2])) {
        if (!tx_py_as_dtype(ctx, a[2], &t))
            return NULL;
        n = tx_py_literal(ctx, t, a[1]);
    } else if (tx_py_is_expr(a[1]) && ((tx_py_expr *)a[1])->ctx == ctx) {
        return Py_NewRef(a[1]);
    } else {
        n = tx_py_as_node(ctx, a[1], TX_VOID);
    }
    return n ? tx_py_new_expr(ctx, n) : NULL;
}

CALL(pycall_literal, 3, 3, "dtype", "value")
{
    tx_dtype t;

    if (!tx_py_as_dtype(ctx, a[1], &t))
        return NULL;
    const tx_node *n = tx_py_literal(ctx, t, a[2]);
    return n ? tx_py_new_expr(ctx, n) : NULL;
}

CALL(pycall_string, 2, 2, "text")
{
    const tx_str *s = tx_py_intern(ctx, a[1]);

    return s ? tx_py_new_expr(ctx, tx_string(ctx->c, s)) : NULL;
}

/* Row by id, name or spelling. */
static int
find_op(PyObject *x)
{
    const char *text;
    int op = -1;

    if (PyLong_Check(x)) {
        long id = PyLong_AsLong(x);
        op = id >= 0 && id < TX_OP__COUNT ? (int)id : -1;
    } else if (PyUnicode_Check(x) && (text = PyUnicode_AsUTF8AndSize(x, NULL))) {
        op = tx_op_find(text);
    }
    if (op < 0 && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "no operation %R", x);
    return PyErr_Occurred() ? -1 : op;
}

enum { MAX_OPERANDS = 8 };

static PyObject *
pycall_op(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const tx_node *x[MAX_OPERANDS];
    tx_py_context *ctx;
    tx_dtype like = TX_VOID;
    int op;

    if (nargs < 2 || nargs > MAX_OPERANDS + 2) {
        PyErr_SetString(PyExc_TypeError, "op() takes a context, an operation and its operands");
        return NULL;
    }
    if (!(ctx = tx_py_as_context(tx_py_state_of(module), args[0])) || (op = find_op(args[1])) < 0)
        return NULL;
    uint32_t n = (uint32_t)nargs - 2;
    if (tx_ops[op].rule == TX_RULE_NONE || (tx_ops[op].operands >= 0 && (uint32_t)tx_ops[op].operands != n)) {
        PyErr_Format(PyExc_TypeError, "operation %s takes %d operands and must have a type rule", tx_ops[op].name,
                     (int)tx_ops[op].operands);
        return NULL;
    }
    for (uint32_t i = 0; i < n && like == TX_VOID; i++)
        if (tx_py_is_expr(args[i + 2]))
            like = ((tx_py_expr *)args[i + 2])->node->dtype;
    for (uint32_t i = 0; i < n; i++)
        if (!(x[i] = tx_py_as_node(ctx, args[i + 2], like)))
            return NULL;
    return tx_py_new_expr(ctx, tx_op_call(ctx->c, (unsigned)op, x, n));
}

/* Payload of FUNC_CALL and its kin from (name, source or None). */
static const tx_call *
as_call(tx_py_context *ctx, PyObject *x)
{
    if (!PyTuple_Check(x) || PyTuple_Size(x) != 2) {
        PyErr_SetString(PyExc_TypeError, "call= takes (name, source or None)");
        return NULL;
    }
    tx_call *call = tx_new(ctx->c, tx_call, 1);
    if (!call)
        return tx_py_raise(ctx);
    PyObject *source = PyTuple_GetItem(x, 1);
    if (!(call->name = tx_py_intern(ctx, PyTuple_GetItem(x, 0))))
        return NULL;
    if (source != Py_None && !(call->source = tx_py_intern(ctx, source)))
        return NULL;
    return call;
}

/* Rows whose payload is not a number or a call: they have makers of their own. */
static bool
is_plain_row(unsigned op)
{
    switch (op) {
    case TX_OP_VAR:
    case TX_OP_INT:
    case TX_OP_FLOAT:
    case TX_OP_STR:
    case TX_OP_LET:
    case TX_OP_LOAD:
    case TX_OP_BUFFER_DATA:
    case TX_OP_PTX: return false;
    default: return !tx_has(op, TX_PROP_STMT);
    }
}

CALL(pycall_make, 4, 4, "name", "dtype", "args", "i", "call")
{
    int op = find_op(a[1]);
    PyObject *list = NULL;
    const tx_node **x, *made = NULL;
    tx_payload u = {0};
    Py_ssize_t n;
    tx_dtype t;

    if (op < 0 || !tx_py_as_dtype(ctx, a[2], &t) || !(list = PySequence_Tuple(a[3])))
        return NULL;
    n = PyTuple_Size(list);
    if (!is_plain_row((unsigned)op) || n > UINT16_MAX || (tx_ops[op].operands >= 0 && tx_ops[op].operands != n)) {
        PyErr_Format(PyExc_TypeError, "operation %s cannot be made of %zd operands", tx_ops[op].name, n);
        goto out;
    }
    if (TX_PY_GIVEN(a[5])) {
        if (!(u.call = as_call(ctx, a[5])))
            goto out;
    } else if (op >= TX_OP_FUNC_CALL && op <= TX_OP_CALL_FUNC && op != TX_OP_STRUCT_GET) {
        PyErr_Format(PyExc_TypeError, "operation %s needs call=", tx_ops[op].name);
        goto out;
    } else if (a[4]) {
        u.i = PyLong_AsLongLong(a[4]);
        if (u.i == -1 && PyErr_Occurred())
            goto out;
    }
    x = tx_new(ctx->c, const tx_node *, n ? n : 1);
    if (!x) {
        tx_py_raise(ctx);
        goto out;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(x[i] = tx_py_as_arg(ctx, PyTuple_GetItem(list, i))))
            goto out;
    made = tx_make(ctx->c, (unsigned)op, t, u, x, (uint32_t)n);
    if (!made)
        tx_py_raise(ctx);
out:
    Py_DECREF(list);
    return made ? tx_py_new_expr(ctx, made) : NULL;
}

CALL(pycall_cast, 3, 3, "dtype", "x")
{
    tx_dtype t;

    if (!tx_py_as_dtype(ctx, a[1], &t))
        return NULL;
    const tx_node *n = tx_py_as_node(ctx, a[2], t);
    return n ? tx_py_new_expr(ctx, tx_cast(ctx->c, t, n)) : NULL;
}

CALL(pycall_reinterpret, 3, 3, "dtype", "x")
{
    tx_dtype t;

    if (!tx_py_as_dtype(ctx, a[1], &t))
        return NULL;
    const tx_node *n = tx_py_as_typed(ctx, a[2]);
    return n ? tx_py_new_expr(ctx, tx_reinterpret(ctx->c, t, n)) : NULL;
}

CALL(pycall_select, 5, 5, "cond", "a", "b", "lazy")
{
    tx_dtype like = tx_py_is_expr(a[2]) ? ((tx_py_expr *)a[2])->node->dtype : TX_VOID;
    const tx_node *c = tx_py_as_node(ctx, a[1], TX_VOID), *x, *y;
    bool lazy;

    if (!c || !(y = tx_py_as_node(ctx, a[3], like)) || !(x = tx_py_as_node(ctx, a[2], y->dtype)) ||
        !tx_py_as_bool(a[4], false, &lazy))
        return NULL;
    if (lazy || !tx_is_bool(c->dtype)) /* a choice between all lanes may be made lane by lane */
        c = tx_condition(ctx->c, c);
    return tx_py_new_expr(ctx, c ? tx_select(ctx->c, lazy ? TX_OP_IF_THEN_ELSE : TX_OP_SELECT, c, x, y) : NULL);
}

CALL(pycall_condition, 2, 2, "x")
{
    const tx_node *n = tx_py_as_node(ctx, a[1], TX_VOID);

    return n ? tx_py_new_expr(ctx, tx_condition(ctx->c, n)) : NULL;
}

CALL(pycall_ramp, 4, 4, "base", "stride", "lanes")
{
    const tx_node *base = tx_py_as_node(ctx, a[1], TX_VOID),
                  *stride = base ? tx_py_as_node(ctx, a[2], base->dtype) : NULL;
    long lanes;

    if (!stride || !tx_py_as_long(a[3], 1, TX_MAX_LANES, "lanes", &lanes))
        return NULL;
    return tx_py_new_expr(ctx, tx_ramp(ctx->c, base, stride, (unsigned)lanes));
}

CALL(pycall_broadcast, 3, 3, "x", "lanes")
{
    const tx_node *n = tx_py_as_typed(ctx, a[1]);
    long lanes;

    if (!n || !tx_py_as_long(a[2], 1, TX_MAX_LANES, "lanes", &lanes))
        return NULL;
    return tx_py_new_expr(ctx, tx_broadcast(ctx->c, n, (unsigned)lanes));
}

CALL(pycall_shuffle, 3, 3, "vecs", "idx")
{
    const tx_node **vecs;
    int idx[TX_MAX_LANES];
    uint32_t nvecs;
    PyObject *list = PySequence_Tuple(a[2]);
    Py_ssize_t n = list ? PyTuple_Size(list) : 0;
    bool ok = list && n >= 1 && n <= TX_MAX_LANES && tx_py_as_nodes(ctx, a[1], &vecs, &nvecs);

    for (Py_ssize_t i = 0; ok && i < n; i++) {
        long k;
        ok = tx_py_as_long(PyTuple_GetItem(list, i), 0, INT32_MAX, "a shuffle index", &k);
        idx[i] = ok ? (int)k : 0;
    }
    Py_XDECREF(list);
    if (!ok) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_ValueError, "a shuffle takes 1 to %d indices", TX_MAX_LANES);
        return NULL;
    }
    return tx_py_new_expr(ctx, tx_shuffle(ctx->c, vecs, nvecs, idx, (uint32_t)n));
}

static tx_var *
as_var(tx_py_context *ctx, PyObject *x)
{
    if (tx_py_is_expr(x) && ((tx_py_expr *)x)->ctx == ctx && ((tx_py_expr *)x)->node->op == TX_OP_VAR)
        return ((tx_py_expr *)x)->node->u.var;
    PyErr_SetString(PyExc_TypeError, "a variable of this context is expected");
    return NULL;
}

CALL(pycall_let, 4, 5, "var", "value", "body", "fresh")
{
    tx_var *v = as_var(ctx, a[1]), *own;
    const tx_node *value = v ? tx_py_as_typed(ctx, a[2]) : NULL, *body = value ? tx_py_as_typed(ctx, a[3]) : NULL;
    bool fresh = false;

    if (!body || (TX_PY_GIVEN(a[4]) && !tx_py_as_bool(a[4], false, &fresh)))
        return NULL;
    if (fresh) { /* the text may bind one variable in several places; each is a variable of its own */
        own = tx_new_var(ctx->c, TX_VAR_LET, v->name, v->dtype);
        body = own ? tx_substitute(ctx->c, body, &v, &own->node, 1) : NULL;
        v = own;
    }
    return body ? tx_py_new_expr(ctx, tx_let(ctx->c, v, value, body)) : tx_py_raise(ctx);
}

CALL(pycall_coord, 3, 3, "name", "axis")
{
    int op = find_op(a[1]);
    long axis;

    if (op < 0 || !tx_py_as_long(a[2], 0, 2, "axis", &axis))
        return NULL;
    return tx_py_new_expr(ctx, tx_coord(ctx->c, (unsigned)op, (int)axis));
}

CALL(pycall_address_of, 2, 2, "x")
{
    const tx_node *n = NULL;

    if (tx_py_is_buffer(a[1]) && ((tx_py_buffer *)a[1])->ctx == ctx) {
        tx_buffer *b = ((tx_py_buffer *)a[1])->buf;
        const tx_node *idx[TX_MAX_RANK], *zero = tx_int(ctx->c, TX_I32, 0);
        for (unsigned i = 0; i < b->rank; i++)
            idx[i] = zero;
        n = zero ? tx_load(ctx->c, b, idx, b->rank) : NULL;
    } else if (tx_py_is_region(a[1]) && ((tx_py_region *)a[1])->ctx == ctx) {
        tx_py_region *r = (tx_py_region *)a[1];
        n = tx_load(ctx->c, r->buffer->buf, r->start, r->buffer->buf->rank);
    } else if (!(n = tx_py_as_node(ctx, a[1], TX_VOID))) {
        return NULL;
    }
    return tx_py_new_expr(ctx, n ? tx_address_of(ctx->c, n) : NULL);
}

CALL(pycall_ptr_offset, 4, 4, "ptr", "nbytes", "elem")
{
    const tx_node *ptr = tx_py_as_typed(ctx, a[1]), *nbytes = ptr ? tx_py_as_typed(ctx, a[2]) : NULL;
    tx_dtype t;

    if (!nbytes || !tx_py_as_dtype(ctx, a[3], &t))
        return NULL;
    return tx_py_new_expr(ctx, tx_ptr_offset(ctx->c, ptr, nbytes, t));
}

CALL(pycall_var, 4, 6, "kind", "name", "dtype", "elem", "scope")
{
    static const struct {
        const char *name;
        uint8_t kind;
    } kinds[] = {{"param", TX_VAR_PARAM}, {"symbol", TX_VAR_SYMBOL},     {"loop", TX_VAR_LOOP},
                 {"let", TX_VAR_LET},     {"scope_id", TX_VAR_SCOPE_ID}, {"free", TX_VAR_FREE}};
    tx_dtype t, elem = TX_VOID;
    tx_scope scope = TX_GLOBAL;
    size_t k = 0;
    const char *text;
    tx_var *v;

    while (k < 6 && !(PyUnicode_Check(a[1]) && PyUnicode_CompareWithASCIIString(a[1], kinds[k].name) == 0))
        k++;
    if (k == 6) {
        PyErr_Format(PyExc_ValueError, "no kind of variable %R", a[1]);
        return NULL;
    }
    const tx_str *name = tx_py_intern(ctx, a[2]);
    if (!name || !tx_py_as_dtype(ctx, a[3], &t) || (TX_PY_GIVEN(a[4]) && !tx_py_as_dtype(ctx, a[4], &elem)))
        return NULL;
    if (TX_PY_GIVEN(a[5])) {
        if (!(text = PyUnicode_AsUTF8AndSize(a[5], NULL)))
            return NULL;
        if (!tx_scope_parse(text, &scope))
            return tx_py_fail(ctx, TX_E_BAD_SCOPE, text);
    }
    if (tx_is_handle(t))
        v = tx_new_ptr_var(ctx->c, (tx_var_kind)kinds[k].kind, name, elem, scope);
    else
        v = tx_new_var(ctx->c, (tx_var_kind)kinds[k].kind, name, t);
    return tx_py_new_expr(ctx, v ? v->node : NULL);
}

static PyObject *
pycall_rename(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !(tx_py_is_buffer(args[0]) || tx_py_is_expr(args[0]))) {
        PyErr_SetString(PyExc_TypeError, "rename() takes a variable or a buffer, and a name");
        return NULL;
    }
    tx_py_context *ctx = ((tx_py_object *)args[0])->ctx;
    const tx_str *name = tx_py_intern(ctx, args[1]);
    if (!name)
        return NULL;
    if (tx_py_is_buffer(args[0])) {
        tx_buffer *b = ((tx_py_buffer *)args[0])->buf;
        b->name = name;
        if (b->data->buffer == b)
            b->data->name = name;
    } else {
        tx_var *v = as_var(ctx, args[0]);
        if (!v)
            return NULL;
        v->name = name;
    }
    Py_RETURN_NONE;
}

static PyObject *
pycall_equal(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2 || !tx_py_is_expr(args[0]) || !tx_py_is_expr(args[1])) {
        PyErr_SetString(PyExc_TypeError, "equal() takes two Exprs");
        return NULL;
    }
    return PyBool_FromLong(tx_equal_nodes(((tx_py_expr *)args[0])->node, ((tx_py_expr *)args[1])->node));
}

#define ROW(name, doc) {#name, TX_PY_FAST(pycall_##name), METH_FASTCALL | METH_KEYWORDS, doc}
static PyMethodDef pycall_methods[] = {
    ROW(as_expr, "an operand as an Expr; plain numbers stay weak unless a dtype is given"),
    ROW(literal, "a range-checked literal of a dtype"),
    ROW(string, "a string constant"),
    {"op", TX_PY_FAST(pycall_op), METH_FASTCALL, "an operation with a type rule, by name, spelling or id"},
    ROW(make, "an operation whose dtype the maker says"),
    ROW(cast, "conversion"),
    ROW(reinterpret, "the same bits as another dtype"),
    ROW(select, "a if cond else b; lazy: only the taken side is evaluated"),
    ROW(condition, "an operand as a bool"),
    ROW(ramp, "vector of base, base + stride, ..."),
    ROW(broadcast, "vector of one value"),
    ROW(shuffle, "lanes picked from vectors"),
    ROW(let, "body with a variable bound to a value"),
    ROW(coord, "coordinate of a thread or block: axis 0, 1, 2"),
    ROW(address_of, "pointer to a load, or to a buffer's first element"),
    ROW(ptr_offset, "pointer some bytes further"),
    ROW(var, "a fresh variable"),
    {"rename", TX_PY_FAST(pycall_rename), METH_FASTCALL, "give a variable or buffer another name"},
    {"equal", TX_PY_FAST(pycall_equal), METH_FASTCALL, "structural equality of two Exprs"},
    {0},
};

int
tx_py_init_calls(PyObject *module)
{
    return PyModule_AddFunctions(module, pycall_methods);
}
