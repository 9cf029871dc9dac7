/* The PTX table for T.ptx: which tokens may follow, and the instruction that tokens and operands make.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ptx.h"
#include "python/state.h"

enum { MAX_TOKENS = TX_PTX_MAX_PARTS };

/* A tuple of token strings. */
static bool
tokens_of(PyObject *x, const char **out, uint32_t *n)
{
    Py_ssize_t size = PyTuple_Check(x) ? PyTuple_Size(x) : -1;

    if (size < 0 || size > MAX_TOKENS) {
        PyErr_SetString(size < 0 ? PyExc_TypeError : PyExc_ValueError,
                        size < 0 ? "tokens must be a tuple" : "too many tokens");
        return false;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        if (!(out[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(x, i), NULL)))
            return false;
    *n = (uint32_t)size;
    return true;
}

static PyObject *
ptx_accepts(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *tokens[MAX_TOKENS];
    uint32_t n;
    tx_py_context *ctx;

    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "ptx_accepts() takes a context and a tuple of tokens");
        return NULL;
    }
    if (!(ctx = tx_py_as_context(tx_py_state_of(module), args[0])) || !tokens_of(args[1], tokens, &n))
        return NULL;
    if (!tx_ptx_accepts(ctx->c, tokens, n))
        return tx_py_raise(ctx);
    Py_RETURN_NONE;
}

typedef struct collect {
    PyObject *list;
    bool failed;
} collect;

static void
collect_choice(void *self, const char *slot, const char *choice)
{
    collect *k = self;
    PyObject *pair = k->failed ? NULL : Py_BuildValue("(zs)", slot, choice);

    if (!pair || PyList_Append(k->list, pair) < 0)
        k->failed = true;
    Py_XDECREF(pair);
}

static PyObject *
ptx_open(PyObject *module, PyObject *tokens_tuple)
{
    const char *tokens[MAX_TOKENS];
    uint32_t n;
    collect k = {NULL, false};

    (void)module;
    if (!tokens_of(tokens_tuple, tokens, &n) || !(k.list = PyList_New(0)))
        return NULL;
    tx_ptx_open(tokens, n, collect_choice, &k);
    if (k.failed)
        Py_CLEAR(k.list);
    return k.list;
}

/* An operand: a value, a Buffer, or ("pred", x), ("addr", p, off), ("sink",) as tirx/script/ptx.py tags them. */
static bool
ptx_operand(tx_py_context *ctx, PyObject *x, tx_ptx_arg *out)
{
    const char *tag = NULL;
    PyObject *value = x;

    memset(out, 0, sizeof *out);
    if (PyTuple_Check(x) && PyTuple_Size(x) > 0) {
        if (!(tag = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(x, 0), NULL)))
            return false;
        out->pred = strcmp(tag, "pred") == 0;
        out->sink = strcmp(tag, "sink") == 0;
        if (out->sink)
            return true;
        value = PyTuple_GetItem(x, 1);
        if (!value)
            return false;
        if (strcmp(tag, "addr") == 0 && !(out->off = tx_py_as_typed(ctx, PyTuple_GetItem(x, 2))))
            return false;
    }
    if (tx_py_is_buffer(value) && ((tx_py_buffer *)value)->ctx == ctx) {
        out->buf = ((tx_py_buffer *)value)->buf;
        return true;
    }
    out->n = tx_py_as_node(ctx, value, TX_VOID);
    return out->n != NULL;
}

static PyObject *
ptx_call(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    const char *tokens[MAX_TOKENS];
    uint32_t n;
    tx_py_context *ctx;
    const tx_node *guard = NULL, *made = NULL;
    tx_ptx_arg *operands;
    Py_ssize_t noperands, i;

    if (nargs != 5 || !PyTuple_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError,
                        "ptx_call() takes a context, tokens, operands, a guard or None, and preserve_dst");
        return NULL;
    }
    if (!(ctx = tx_py_as_context(tx_py_state_of(module), args[0])) || !tokens_of(args[1], tokens, &n))
        return NULL;
    noperands = PyTuple_Size(args[2]);
    if (args[3] != Py_None) {
        guard = tx_py_as_typed(ctx, args[3]);
        if (!guard || !(guard = tx_condition(ctx->c, guard)))
            return PyErr_Occurred() ? NULL : tx_py_raise(ctx);
    }
    operands = tx_malloc((size_t)(noperands + 1) * sizeof *operands);
    if (!operands)
        return PyErr_NoMemory();
    for (i = 0; i < noperands; i++)
        if (!ptx_operand(ctx, PyTuple_GetItem(args[2], i), &operands[i]))
            break;
    if (i == noperands)
        made = tx_ptx_resolve(ctx->c, tokens, n, operands, (uint32_t)noperands, guard, PyObject_IsTrue(args[4]) == 1);
    tx_free(operands);
    if (!made)
        return PyErr_Occurred() ? NULL : tx_py_raise(ctx);
    return tx_py_new_expr(ctx, made);
}

/* Every row: (opcode, operands, flags, sm, emu, rules), as written. */
static PyObject *
ptx_rows(PyObject *module, PyObject *none)
{
    static const char *const rows[][6] = {
#define PTX(opcode, operands, flags, sm, emu, rules) {opcode, operands, flags, sm, #emu, rules},
#include "ir/ptx.def"
#undef PTX
    };
    PyObject *list = PyList_New(0);

    (void)module;
    (void)none;
    for (size_t i = 0; list && i < sizeof rows / sizeof *rows; i++) {
        PyObject *row =
            Py_BuildValue("(ssssss)", rows[i][0], rows[i][1], rows[i][2], rows[i][3], rows[i][4], rows[i][5]);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef ptx_methods[] = {
    {"ptx_accepts", (PyCFunction)(void (*)(void))ptx_accepts, METH_FASTCALL, NULL},
    {"ptx_open", ptx_open, METH_O, NULL},
    {"ptx_call", (PyCFunction)(void (*)(void))ptx_call, METH_FASTCALL, NULL},
    {"ptx_rows", ptx_rows, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int
tx_py_init_ptx(PyObject *module)
{
    return PyModule_AddFunctions(module, ptx_methods);
}
