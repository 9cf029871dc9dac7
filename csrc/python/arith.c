/* The simplifier for tests and tools: simplify, bounds, divisor, prove, prove_in_range under given ranges and conditions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

#include "arith/arith.h"

/* ranges: {variable or coordinate: (lo, hi)}, either None; multiples: {variable: (m, r)}; assume: conditions. */
static bool
add_range(tx_py_context *ctx, tx_facts *f, PyObject *key, PyObject *pair)
{
    const tx_node *v = tx_py_as_node(ctx, key, TX_VOID), *end[2] = {NULL, NULL};

    if (!v)
        return false;
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "a range is a tuple (lo, hi)");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        PyObject *x = PyTuple_GetItem(pair, i);
        if (x != Py_None && !(end[i] = tx_py_as_typed(ctx, x)))
            return false;
    }
    if (v->op == TX_OP_VAR)
        return tx_facts_range(f, v->u.var, end[0], end[1]);
    if (end[0] && end[1] && end[0]->op == TX_OP_INT && end[1]->op == TX_OP_INT && tx_has(v->op, TX_PROP_COORD))
        return tx_facts_coord(f, v->op, (int)v->u.i, end[0]->u.i, end[1]->u.i);
    PyErr_SetString(PyExc_TypeError, "a range belongs to a variable, or with numbers to a coordinate");
    return false;
}

static bool
add_multiple(tx_py_context *ctx, tx_facts *f, PyObject *key, PyObject *pair)
{
    const tx_node *v = tx_py_as_node(ctx, key, TX_VOID);
    long long m, r;

    if (!v || !PyArg_ParseTuple(pair, "LL", &m, &r))
        return false;
    return v->op == TX_OP_VAR && tx_facts_multiple(f, v->u.var, m, r);
}

static bool
each_pair(tx_py_context *ctx, tx_facts *f, PyObject *dict,
          bool (*add)(tx_py_context *, tx_facts *, PyObject *, PyObject *))
{
    PyObject *items, *item;
    Py_ssize_t n;
    bool ok = true;

    if (!TX_PY_GIVEN(dict))
        return true;
    if (!(items = PyMapping_Items(dict)))
        return false;
    n = PyList_Size(items);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        item = PyList_GetItem(items, i);
        ok = add(ctx, f, PyTuple_GetItem(item, 0), PyTuple_GetItem(item, 1));
    }
    Py_DECREF(items);
    return ok;
}

static tx_facts *
facts(tx_py_context *ctx, PyObject *const *a)
{
    tx_facts *f = tx_facts_new(ctx->c);
    const tx_node **conds = NULL;
    uint32_t n = 0;
    bool ok = f && each_pair(ctx, f, a[2], add_range) && each_pair(ctx, f, a[3], add_multiple) &&
              (!TX_PY_GIVEN(a[4]) || tx_py_as_nodes(ctx, a[4], &conds, &n));

    for (uint32_t i = 0; ok && i < n; i++)
        ok = tx_facts_assume(f, conds[i]);
    if (ok)
        return f;
    tx_facts_free(f);
    if (!PyErr_Occurred())
        tx_py_raise(ctx);
    return NULL;
}

/* Parses (ctx, expr, ranges=None, multiples=None, assume=None, extra=None). NULL: raised. */
static tx_facts *
arith_begin(PyObject *module, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
            tx_py_context **ctx, const tx_node **e, PyObject **extra)
{
    tx_py_sig sig = {name, 2, 5, {"ctx", "expr", "ranges", "multiples", "assume", "extent", NULL}};
    PyObject *a[20] = {0};

    if (!tx_py_parse(&sig, args, nargs, kwnames, a) || !(*ctx = tx_py_as_context(tx_py_state_of(module), a[0])) ||
        !(*e = tx_py_as_typed(*ctx, a[1])))
        return NULL;
    *extra = a[5];
    return facts(*ctx, a);
}

static PyObject *
arith_simplify(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx;
    const tx_node *e;
    PyObject *extra;
    tx_facts *f = arith_begin(module, "simplify", args, nargs, kwnames, &ctx, &e, &extra);

    if (!f)
        return NULL;
    e = tx_simplify(f, e);
    tx_facts_free(f);
    return tx_py_new_expr(ctx, e);
}

/* (lo, hi); None where nothing is known */
static PyObject *
bounds(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx;
    const tx_node *e;
    PyObject *extra, *lo, *hi;
    tx_facts *f = arith_begin(module, "bounds", args, nargs, kwnames, &ctx, &e, &extra);
    tx_bounds b;

    if (!f)
        return NULL;
    b = tx_bounds_of(f, e);
    tx_facts_free(f);
    lo = b.lo == INT64_MIN ? Py_NewRef(Py_None) : PyLong_FromLongLong(b.lo);
    hi = b.hi == INT64_MAX ? Py_NewRef(Py_None) : PyLong_FromLongLong(b.hi);
    return Py_BuildValue("(NN)", lo, hi);
}

static PyObject *
divisor(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx;
    const tx_node *e;
    PyObject *extra;
    tx_facts *f = arith_begin(module, "divisor", args, nargs, kwnames, &ctx, &e, &extra);
    int64_t m, r;

    if (!f)
        return NULL;
    tx_divisor_of(f, e, &m, &r);
    tx_facts_free(f);
    return Py_BuildValue("(LL)", (long long)m, (long long)r);
}

/* True, False, or None when it cannot be told; with extent: whether 0 <= expr < extent is proved */
static PyObject *
arith_prove(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx;
    const tx_node *e, *extent = NULL;
    PyObject *extra;
    tx_facts *f = arith_begin(module, "prove", args, nargs, kwnames, &ctx, &e, &extra);
    int r;

    if (!f)
        return NULL;
    if (TX_PY_GIVEN(extra) && !(extent = tx_py_as_typed(ctx, extra))) {
        tx_facts_free(f);
        return NULL;
    }
    r = extent ? tx_prove_in_range(f, e, extent) : tx_prove(f, e);
    tx_facts_free(f);
    return r < 0 ? Py_NewRef(Py_None) : PyBool_FromLong(r);
}

static PyMethodDef arith_methods[] = {
    {"simplify", TX_PY_FAST(arith_simplify), METH_FASTCALL | METH_KEYWORDS, "an equal expression that is no larger"},
    {"bounds", TX_PY_FAST(bounds), METH_FASTCALL | METH_KEYWORDS, "(lo, hi) of an integer expression"},
    {"divisor", TX_PY_FAST(divisor), METH_FASTCALL | METH_KEYWORDS, "(m, r): the value is a multiple of m plus r"},
    {"prove", TX_PY_FAST(arith_prove), METH_FASTCALL | METH_KEYWORDS,
     "True, False or None; with extent: 0 <= expr < extent"},
    {0},
};

int
tx_py_init_arith(PyObject *module)
{
    return PyModule_AddFunctions(module, arith_methods);
}
