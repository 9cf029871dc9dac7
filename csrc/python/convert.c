/* From Python values to nodes and dtypes, and back. Plain numbers become weak literals, which take the other operand's
 * dtype; NumPy's and torch's objects are recognised by what they offer, without importing either.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

#include <math.h>

/* ---- text -------------------------------------------------------------------------------------------------------- */

PyObject *
tx_py_take_sb(tx_sb *s)
{
    PyObject *text = NULL;

    if (s->failed)
        PyErr_NoMemory();
    else
        text = PyUnicode_DecodeUTF8(s->n ? s->text : "", (Py_ssize_t)s->n, "replace");
    tx_sb_free(s);
    return text;
}

PyObject *
tx_py_str(const tx_str *s)
{
    return s ? PyUnicode_DecodeUTF8(s->text, (Py_ssize_t)s->len, "replace") : Py_NewRef(Py_None);
}

const tx_str *
tx_py_intern(tx_py_context *ctx, PyObject *text)
{
    Py_ssize_t len;
    const char *p;

    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "a str is expected, got %s", tx_py_type_name(ctx->c, text));
        return NULL;
    }
    if (!(p = PyUnicode_AsUTF8AndSize(text, &len)))
        return NULL;
    const tx_str *s = tx_intern(ctx->c, p, (size_t)len);
    return s ? s : tx_py_raise(ctx);
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static bool
starts_with(PyObject *text, const char *prefix)
{
    const char *p = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;

    if (!p)
        PyErr_Clear();
    return p && strncmp(p, prefix, strlen(prefix)) == 0;
}

/* The name that an object which is no str gives its dtype: new reference, or NULL without an exception. */
static PyObject *
foreign_dtype_name(tx_py_state *s, PyObject *x)
{
    PyObject *name = PyObject_GetAttr(x, s->s___tirx_dtype__), *module, *text;

    if (name)
        return name;
    PyErr_Clear();
    /* A scalar type of NumPy or ml_dtypes (np.float32), by its own name; a dtype object (np.dtype) by its `name`. */
    bool is_type = PyType_Check(x);
    module = PyObject_GetAttr(is_type ? x : (PyObject *)Py_TYPE(x), s->s___module__);
    if (starts_with(module, "numpy") || starts_with(module, "ml_dtypes"))
        name = PyObject_GetAttr(x, is_type ? s->s___name__ : s->s_name);
    else if (starts_with(module, "torch") && (text = PyObject_Str(x))) { /* "torch.float32" */
        const char *p = PyUnicode_AsUTF8AndSize(text, NULL);
        name = p && strncmp(p, "torch.", 6) == 0 ? PyUnicode_FromString(p + 6) : NULL;
        Py_DECREF(text);
    }
    Py_XDECREF(module);
    PyErr_Clear();
    if (name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "bool_") == 0) {
        Py_DECREF(name);
        name = PyUnicode_FromString("bool");
    }
    return name;
}

bool
tx_py_dtype_text(tx_py_state *s, PyObject *x, tx_dtype *out, PyObject **text)
{
    Py_ssize_t len;
    const char *p;
    bool ok = false;

    *text = PyUnicode_Check(x) ? Py_NewRef(x) : foreign_dtype_name(s, x);
    if (!*text || !PyUnicode_Check(*text)) {
        Py_XDECREF(*text);
        *text = PyObject_Repr(x);
    } else if ((p = PyUnicode_AsUTF8AndSize(*text, &len)) != NULL) {
        ok = tx_dtype_parse(p, (size_t)len, out);
    }
    return ok;
}

bool
tx_py_as_dtype(tx_py_context *ctx, PyObject *x, tx_dtype *out)
{
    PyObject *text;
    const char *p, *hint = "";
    tx_near near;

    if (tx_py_dtype_text(ctx->state, x, out, &text)) {
        Py_DECREF(text);
        return true;
    }
    if (!text || !(p = PyUnicode_AsUTF8AndSize(text, NULL))) {
        Py_XDECREF(text);
        return false;
    }
    near = tx_near_to(p);
    for (unsigned k = 0; k < TX_KIND__COUNT; k++)
        tx_near_try(&near, tx_kinds[k].text);
    if (near.found) {
        const tx_str *found = tx_intern_f(ctx->c, "; did you mean '%s'?", near.found);
        hint = found ? found->text : "";
    }
    tx_fail(ctx->c, ctx->c->span, TX_E_BAD_DTYPE, p, hint);
    Py_DECREF(text);
    tx_py_raise(ctx);
    return false;
}

PyObject *
tx_py_dtype_str(tx_py_state *s, tx_dtype t)
{
    tx_sb sb = {0};

    if (tx_lanes(t) == 1)
        return Py_NewRef(s->kind_name[tx_kind(t)]);
    tx_dtype_print(t, &sb);
    return tx_py_take_sb(&sb);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* Text of an integer of any size, for messages. */
static const char *
convert_number_text(tx_py_context *ctx, PyObject *x)
{
    PyObject *s = PyObject_Str(x);
    const char *p = s ? PyUnicode_AsUTF8AndSize(s, NULL) : NULL;
    const tx_str *t = p ? tx_intern_z(ctx->c, p) : NULL;

    if (!t)
        PyErr_Clear(); /* Python refuses to print integers of thousands of digits */
    Py_XDECREF(s);
    return t ? t->text : "of too many digits";
}

/* An int beyond int64 on its own: uint64 when that holds it; for a float operand its nearest double. */
static const tx_node *
big_int(tx_py_context *ctx, PyObject *x, int sign, tx_dtype like)
{
    if (tx_is_float(like)) {
        double d = PyLong_AsDouble(x);
        if (d != -1.0 || !PyErr_Occurred())
            return tx_weak_float(ctx->c, d);
        PyErr_Clear();
        return tx_py_fail(ctx, TX_E_LITERAL_RANGE_HIGH, convert_number_text(ctx, x), tx_dtype_name(ctx->c, like));
    }
    if (sign > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(x);
        if (u != (unsigned long long)-1 || !PyErr_Occurred())
            return tx_literal_int(ctx->c, TX_U64, false, u);
        PyErr_Clear();
    }
    return tx_py_fail(ctx, sign > 0 ? TX_E_LITERAL_RANGE_HIGH : TX_E_LITERAL_RANGE_LOW, convert_number_text(ctx, x),
                      sign > 0 ? "uint64" : "int64");
}

static const tx_node *
from_int(tx_py_context *ctx, PyObject *x, tx_dtype like)
{
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(x, &overflow);

    if (overflow)
        return big_int(ctx, x, overflow, like);
    if (v == -1 && PyErr_Occurred())
        return NULL;
    return tx_weak_int(ctx->c, v);
}

/* A node of another context: constants are made anew, everything else belongs to its kernel. */
static const tx_node *
from_elsewhere(tx_py_context *ctx, const tx_node *n)
{
    const tx_node *made;
    tx_sb sb = {0};

    switch (n->op) {
    case TX_OP_INT:
    case TX_OP_FLOAT:
        made = n->op == TX_OP_INT ? tx_int(ctx->c, n->dtype, n->u.i) : tx_float(ctx->c, n->dtype, n->u.f);
        return made && (n->flags & TX_NF_WEAK) ? tx_with_flags(ctx->c, made, made->flags | TX_NF_WEAK) : made;
    case TX_OP_STR: {
        const tx_str *s = tx_intern(ctx->c, n->u.s->text, n->u.s->len);
        return s ? tx_string(ctx->c, s) : NULL;
    }
    default: break;
    }
    tx_print_node(n, &sb);
    tx_fail(ctx->c, ctx->c->span, TX_E_OTHER_CONTEXT, sb.n ? sb.text : "?");
    tx_sb_free(&sb);
    return NULL;
}

static int
done(tx_py_context *ctx, const tx_node *n, const tx_node **out)
{
    if (TX_LIKELY(n != NULL)) {
        *out = n;
        return 1;
    }
    tx_py_raise(ctx);
    return -1;
}

/* Objects that turn into a number without being an int or a float: NumPy scalars, Fraction, objects with __tirx_expr__.
 * Containers (arrays and tensors offer __index__ and __float__ too) are not numbers. */
static int
from_object(tx_py_context *ctx, PyObject *x, tx_dtype like, const tx_node **out)
{
    PyTypeObject *type = Py_TYPE(x);
    PyObject *made, *method = PyObject_GetAttr(x, ctx->state->s___tirx_expr__);
    int r;

    if (method) {
        made = PyObject_CallFunctionObjArgs(method, (PyObject *)ctx, NULL);
        Py_DECREF(method);
        if (!made)
            return -1;
        /* What it gives is taken as it is, so that an object that gives itself ends here. */
        r = tx_py_is_value(made) || PyLong_Check(made) || PyFloat_Check(made) ? tx_py_try_node(ctx, made, like, out)
                                                                              : 0;
        Py_DECREF(made);
        return r;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    if (PyUnicode_Check(x) || PyBytes_Check(x) || PyType_GetSlot(type, Py_sq_length) || PyComplex_Check(x))
        return 0;
    if (PyIndex_Check(x)) {
        if (!(made = PyNumber_Index(x)))
            return -1;
        r = done(ctx, from_int(ctx, made, like), out);
        Py_DECREF(made);
        return r;
    }
    PyObject *name = PyObject_GetAttr((PyObject *)type, ctx->state->s___name__);
    bool is_bool = starts_with(name, "bool"); /* numpy.bool, numpy.bool_ */
    Py_XDECREF(name);
    PyErr_Clear();
    if (is_bool) {
        int truth = PyObject_IsTrue(x);
        return truth < 0 ? -1 : done(ctx, tx_bool(ctx->c, truth != 0), out);
    }
    if (!PyType_GetSlot(type, Py_nb_float))
        return 0;
    double d = PyFloat_AsDouble(x);
    if (d == -1.0 && PyErr_Occurred())
        return -1;
    return done(ctx, tx_weak_float(ctx->c, d), out);
}

int
tx_py_try_node(tx_py_context *ctx, PyObject *x, tx_dtype like, const tx_node **out)
{
    if (tx_py_is_expr(x)) {
        const tx_py_expr *e = (const tx_py_expr *)x;
        if (TX_UNLIKELY(tx_is_stmt(e->node))) {
            tx_sb sb = {0};
            tx_print_node(e->node, &sb);
            tx_fail(ctx->c, ctx->c->span, TX_E_STATEMENT_AS_VALUE, sb.n ? sb.text : "?");
            tx_sb_free(&sb);
            tx_py_raise(ctx);
            return -1;
        }
        if (TX_LIKELY(e->ctx == ctx)) {
            *out = e->node;
            return 1;
        }
        return done(ctx, from_elsewhere(ctx, e->node), out);
    }
    if (PyBool_Check(x))
        return done(ctx, tx_bool(ctx->c, x == Py_True), out);
    if (PyLong_Check(x))
        return done(ctx, from_int(ctx, x, like), out);
    if (PyFloat_Check(x))
        return done(ctx, tx_weak_float(ctx->c, PyFloat_AsDouble(x)), out);
    if (tx_py_is_buffer(x) || tx_py_is_region(x)) {
        if (((tx_py_object *)x)->ctx != ctx) {
            tx_buffer *b = tx_py_is_buffer(x) ? ((tx_py_buffer *)x)->buf : ((tx_py_region *)x)->buffer->buf;
            tx_py_fail(ctx, TX_E_OTHER_CONTEXT, b->name->text);
            return -1;
        }
        *out = tx_py_is_buffer(x) ? tx_py_load_scalar((tx_py_buffer *)x) : tx_py_load_region((tx_py_region *)x);
        return *out ? 1 : -1;
    }
    return from_object(ctx, x, like, out);
}

const tx_node *
tx_py_as_node(tx_py_context *ctx, PyObject *x, tx_dtype like)
{
    const tx_node *n;
    int r = tx_py_try_node(ctx, x, like, &n);

    if (r == 0)
        return tx_py_fail(ctx, TX_E_NOT_A_VALUE, tx_py_type_name(ctx->c, x));
    return r > 0 ? n : NULL;
}

/* As tx_py_as_node, for a place of dtype t: an int above int64, whose node is a typed uint64, must fit it like any other. */
const tx_node *
tx_py_as_stored(tx_py_context *ctx, PyObject *x, tx_dtype t)
{
    const tx_node *n = tx_py_as_node(ctx, x, t);

    if (n && n->op == TX_OP_INT && n->dtype == TX_U64 && tx_is_int(t) && PyIndex_Check(x) && !tx_py_is_value(x) &&
        !(n->flags & TX_NF_WEAK)) {
        n = tx_literal_int(ctx->c, tx_scalar_of(t), false, (uint64_t)n->u.i);
        return n ? n : tx_py_raise(ctx);
    }
    return n;
}

const tx_node *
tx_py_as_typed(tx_py_context *ctx, PyObject *x)
{
    const tx_node *n = tx_py_as_node(ctx, x, TX_VOID);

    if (!n)
        return NULL;
    n = tx_typed(ctx->c, n);
    return n ? n : tx_py_raise(ctx);
}

const tx_node *
tx_py_as_index(tx_py_context *ctx, PyObject *x)
{
    return tx_py_as_typed(ctx, x);
}

static const tx_node *
from_text(tx_py_context *ctx, PyObject *x)
{
    const tx_str *s = tx_py_intern(ctx, x);

    if (!s)
        return NULL;
    const tx_node *n = tx_string(ctx->c, s);
    return n ? n : tx_py_raise(ctx);
}

const tx_node *
tx_py_as_arg(tx_py_context *ctx, PyObject *x)
{
    return PyUnicode_Check(x) ? from_text(ctx, x) : tx_py_as_typed(ctx, x);
}

bool
tx_py_as_nodes(tx_py_context *ctx, PyObject *x, const tx_node ***out, uint32_t *n)
{
    bool list = PyList_Check(x), many = list || PyTuple_Check(x);
    Py_ssize_t len = !many ? 1 : list ? PyList_Size(x) : PyTuple_Size(x);

    if (len > UINT16_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many elements");
        return false;
    }
    *n = (uint32_t)len;
    *out = tx_new(ctx->c, const tx_node *, len ? len : 1);
    if (!*out) {
        tx_py_raise(ctx);
        return false;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        /* A conversion may run Python code, which may shorten the list. */
        PyObject *item = !many ? Py_NewRef(x) : Py_XNewRef(list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i));
        (*out)[i] = item ? tx_py_as_typed(ctx, item) : NULL;
        Py_XDECREF(item);
        if (!(*out)[i])
            return false;
    }
    return true;
}

/* ---- literals ---------------------------------------------------------------------------------------------------- */

static const tx_node *
int_literal(tx_py_context *ctx, tx_dtype t, PyObject *value)
{
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    unsigned long long magnitude = v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v;

    if (v == -1 && !overflow && PyErr_Occurred())
        return NULL;
    if (overflow > 0) {
        magnitude = PyLong_AsUnsignedLongLong(value);
        if (magnitude == (unsigned long long)-1 && PyErr_Occurred()) {
            PyErr_Clear();
            return tx_fail(ctx->c, ctx->c->span, TX_E_LITERAL_RANGE_HIGH, convert_number_text(ctx, value),
                           tx_dtype_name(ctx->c, t));
        }
    } else if (overflow < 0) {
        int id = tx_is_signed(t) ? TX_E_LITERAL_RANGE_LOW : TX_E_LITERAL_NEGATIVE;
        return tx_fail(ctx->c, ctx->c->span, id, convert_number_text(ctx, value), tx_dtype_name(ctx->c, t));
    }
    return tx_literal_int(ctx->c, t, overflow == 0 && v < 0, magnitude);
}

static const tx_node *
bad_literal(tx_py_context *ctx, tx_dtype t, PyObject *value)
{
    PyErr_Clear();
    return tx_fail(ctx->c, ctx->c->span, TX_E_BAD_LITERAL, convert_number_text(ctx, value), tx_dtype_name(ctx->c, t));
}

static const tx_node *
float_literal(tx_py_context *ctx, tx_dtype t, PyObject *value)
{
    static const char *const words[] = {"inf", "-inf", "nan"};
    double d = 0;

    if (PyUnicode_Check(value)) {
        int i = 0;
        while (i < 3 && PyUnicode_CompareWithASCIIString(value, words[i]) != 0)
            i++;
        if (i == 3)
            return bad_literal(ctx, t, value);
        /* What the user names is wanted as it is: only numbers are range-checked. */
        return tx_float(ctx->c, t, i == 0 ? INFINITY : i == 1 ? -INFINITY : NAN);
    }
    d = PyFloat_AsDouble(value);
    if (d == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return bad_literal(ctx, t, value);
        PyErr_Clear();
        return tx_fail(ctx->c, ctx->c->span, TX_E_LITERAL_RANGE_HIGH, convert_number_text(ctx, value),
                       tx_dtype_name(ctx->c, t));
    }
    return tx_literal_float(ctx->c, t, d);
}

/* Literal of a scalar dtype; broadcast to the lanes asked for. */
static const tx_node *
make_literal(tx_py_context *ctx, tx_dtype t, PyObject *value)
{
    tx_dtype s = tx_scalar_of(t);
    const tx_node *n = NULL;

    if (tx_is_float(s)) {
        n = float_literal(ctx, s, value);
    } else if (tx_is_bool(s) && (PyBool_Check(value) || PyLong_Check(value) || PyFloat_Check(value))) {
        n = tx_bool(ctx->c, PyObject_IsTrue(value) > 0);
    } else if (tx_is_int(s) && PyLong_Check(value)) {
        n = int_literal(ctx, s, value);
    } else if (tx_is_int(s) && !PyUnicode_Check(value)) { /* T.int32(1.7) is 1 */
        PyObject *whole = PyIndex_Check(value) ? PyNumber_Index(value) : PyNumber_Long(value);
        n = whole ? int_literal(ctx, s, whole) : bad_literal(ctx, s, value);
        Py_XDECREF(whole);
    } else {
        n = bad_literal(ctx, s, value);
    }
    return n && tx_lanes(t) > 1 ? tx_broadcast(ctx->c, n, tx_lanes(t)) : n;
}

const tx_node *
tx_py_literal(tx_py_context *ctx, tx_dtype t, PyObject *value)
{
    const tx_node *n;
    PyObject *method = NULL;

    if (!PyLong_Check(value) && !PyFloat_Check(value) && !PyUnicode_Check(value)) {
        method = tx_py_is_value(value) ? NULL : PyObject_GetAttr(value, ctx->state->s___tirx_expr__);
        if (!method)
            PyErr_Clear();
    }
    if (method || tx_py_is_value(value)) {
        Py_XDECREF(method);
        n = tx_py_as_node(ctx, value, TX_VOID);
        if (!n)
            return NULL;
        n = tx_cast(ctx->c, t, n);
    } else {
        n = make_literal(ctx, t, value);
    }
    if (!n && PyErr_Occurred())
        return NULL;
    return n ? n : tx_py_raise(ctx);
}

/* ---- annotations ------------------------------------------------------------------------------------------------- */

const tx_node *
tx_py_as_attr(tx_py_context *ctx, const char *key, PyObject *x)
{
    const tx_node *n = NULL;

    if (PyUnicode_Check(x))
        return from_text(ctx, x);
    if (PyList_Check(x) || PyTuple_Check(x)) { /* a list is a raw VECTOR node without a dtype */
        bool list = PyList_Check(x);
        Py_ssize_t len = list ? PyList_Size(x) : PyTuple_Size(x);
        const tx_node **items = tx_new(ctx->c, const tx_node *, len ? len : 1);
        if (!items)
            return tx_py_raise(ctx);
        for (Py_ssize_t i = 0; i < len; i++) {
            PyObject *item = Py_XNewRef(list ? PyList_GetItem(x, i) : PyTuple_GetItem(x, i));
            bool nested = item && (PyList_Check(item) || PyTuple_Check(item));
            items[i] = !item || nested ? NULL : tx_py_as_attr(ctx, key, item);
            if (nested)
                tx_py_fail(ctx, TX_E_ATTR_VALUE, key, "a list of lists");
            Py_XDECREF(item);
            if (!items[i])
                return NULL;
        }
        n = tx_make(ctx->c, TX_OP_VECTOR, TX_VOID, (tx_payload){0}, items, (uint32_t)len);
        return n ? n : tx_py_raise(ctx);
    }
    int r = tx_py_try_node(ctx, x, TX_VOID, &n);
    if (r == 0)
        return tx_py_fail(ctx, TX_E_ATTR_VALUE, key, tx_py_type_name(ctx->c, x));
    if (r < 0)
        return NULL;
    n = tx_typed(ctx->c, n);
    return n ? n : tx_py_raise(ctx);
}

bool
tx_py_as_attrs(tx_py_context *ctx, PyObject *dict, const tx_attr **out, uint32_t *n)
{
    PyObject *key, *value;
    Py_ssize_t pos = 0, size = PyDict_Check(dict) ? PyDict_Size(dict) : -1;

    if (size < 0) {
        PyErr_SetString(PyExc_TypeError, "annotations are a dict of names");
        return false;
    }
    tx_attr *at = tx_new(ctx->c, tx_attr, size ? size : 1);
    if (!at)
        return tx_py_raise(ctx), false;
    *n = 0;
    while (PyDict_Next(dict, &pos, &key, &value) && *n < (uint32_t)size) {
        /* A conversion may run Python code, which may drop the pair. */
        Py_INCREF(key);
        Py_INCREF(value);
        at[*n].key = tx_py_intern(ctx, key);
        at[*n].value = at[*n].key ? tx_py_as_attr(ctx, at[*n].key->text, value) : NULL;
        Py_DECREF(key);
        Py_DECREF(value);
        if (!at[(*n)++].value)
            return false;
    }
    *out = at;
    return true;
}

PyObject *
tx_py_from_attr(tx_py_context *ctx, const tx_node *n)
{
    if (!n)
        Py_RETURN_NONE;
    switch (n->op) {
    case TX_OP_INT:
        if (tx_is_bool(n->dtype))
            return PyBool_FromLong(n->u.i != 0);
        return tx_is_signed(n->dtype) ? PyLong_FromLongLong(n->u.i) : PyLong_FromUnsignedLongLong((uint64_t)n->u.i);
    case TX_OP_FLOAT: return PyFloat_FromDouble(n->u.f);
    case TX_OP_STR: return tx_py_str(n->u.s);
    case TX_OP_VECTOR: break;
    default: return tx_py_new_expr(ctx, n);
    }
    PyObject *list = PyList_New((Py_ssize_t)n->nargs);
    for (uint32_t i = 0; list && i < n->nargs; i++) {
        PyObject *item = tx_py_from_attr(ctx, n->arg[i]);
        if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *
tx_py_int_or_expr(tx_py_context *ctx, const tx_node *n)
{
    if (!n)
        return PyLong_FromLong(0);
    return n->op == TX_OP_INT ? tx_py_from_attr(ctx, n) : tx_py_new_expr(ctx, n);
}
