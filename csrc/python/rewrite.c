/* tirx.rewrite: a function of Python's is asked about every node of a body, children before parents, and may give another
 * one. What it gives is checked where it is given; the function that comes of it is verified as a whole.
 *
 * Recursion is as deep as nodes are (TX_MAX_DEPTH). SPDX-License-Identifier: Apache-2.0 */
#include "python/node.h"

enum { LOCAL_ARGS = 8 };

static const tx_node *
rewrite_node(tx_py_context *ctx, const tx_node *n, PyObject *fn)
{
    const tx_node *local[LOCAL_ARGS], **args = local, *now = n;
    bool changed = false, ok = true;
    tx_span span = ctx->c->span;

    if (n->nargs > LOCAL_ARGS && !(args = PyMem_Malloc(n->nargs * sizeof *args)))
        return PyErr_NoMemory(), NULL;
    ctx->c->span = n->span;
    for (uint32_t i = 0; ok && i < n->nargs; i++) {
        args[i] = n->arg[i] ? rewrite_node(ctx, n->arg[i], fn) : NULL;
        ok = args[i] || !n->arg[i];
        changed |= args[i] != n->arg[i];
    }
    if (ok && changed)
        ok = (now = tx_py_rebuilt(ctx, n, args)) != NULL;
    if (args != local)
        PyMem_Free(args);
    ctx->c->span = span;
    if (!ok)
        return NULL;
    PyObject *x = tx_py_new_expr(ctx, now), *given = x ? PyObject_CallFunctionObjArgs(fn, x, NULL) : NULL;
    Py_XDECREF(x);
    if (!given)
        return NULL;
    if (given != Py_None && !(tx_py_is_expr(given) && ((tx_py_expr *)given)->node == now))
        now = tx_py_replacement(ctx, now, given);
    Py_DECREF(given);
    return now;
}

static PyObject *
pyrewrite_body(PyObject *module, PyObject *args)
{
    tx_py_state *s = tx_py_state_of(module);
    PyObject *f, *fn;

    if (!PyArg_ParseTuple(args, "OO:rewrite", &f, &fn))
        return NULL;
    if (!TX_PY_IS(s, f, Function)) {
        PyErr_SetString(PyExc_TypeError, "a function is expected");
        return NULL;
    }
    tx_py_context *ctx = ((tx_py_function *)f)->ctx;
    const tx_func *old = ((tx_py_function *)f)->f;
    const tx_node *body = rewrite_node(ctx, old->body, fn);
    if (!body)
        return NULL;
    if (body == old->body)
        return Py_NewRef(f);
    tx_func *made = tx_new(ctx->c, tx_func, 1);
    if (!made)
        return tx_py_raise(ctx);
    *made = *old;
    made->body = body;
    return tx_verify_func(ctx->c, made) ? tx_py_new_function(ctx, made) : tx_py_raise(ctx);
}

static PyMethodDef rewrite_methods[] = {
    {"rewrite", pyrewrite_body, METH_VARARGS, "a function with other nodes in its body"},
    {0},
};

int
tx_py_init_rewrite(PyObject *module)
{
    return PyModule_AddFunctions(module, rewrite_methods);
}
