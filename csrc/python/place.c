/* Where traced code stands. While plain Python code makes IR, a node's place is that of the innermost Python frame outside
 * of this package; the instruction that the frame is at says which characters. What is known of a code object is kept, so
 * that a place costs a look into a table. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

typedef struct place_code {
    PyObject
        *positions; /* list of (line, end line, column, end column) by code unit; NULL: code of the package itself */
    uint32_t file, n;
    const tx_str *function;
    tx_span *spans; /* by code unit; 0: not made yet */
} place_code;

/* The number of a file of this name, which is added when it is new. */
static bool
place_file(tx_py_context *ctx, PyObject *name, PyObject *text, uint32_t *file)
{
    const tx_str *known = tx_py_intern(ctx, name);
    Py_ssize_t len;
    const char *p = known ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;

    if (!p)
        return false;
    for (*file = 1; *file < ctx->c->files.n; ++*file)
        if (ctx->c->files.at[*file].name == known && ctx->c->files.at[*file].first_line == 1)
            return true;
    uint32_t before = ctx->c->nerrors;
    *file = tx_add_file(ctx->c, known->text, p, (size_t)len, 1);
    return ctx->c->nerrors == before || (tx_py_raise(ctx), false);
}

/* Asks Python about a code object that was not met before. NULL: it cannot be told, or there is no memory for it. */
static place_code *
learn_code(tx_py_context *ctx, PyObject *code)
{
    PyObject *describe = ctx->describe, *file = NULL, *text = NULL, *name = NULL, *positions = NULL;
    place_code *known = tx_new(ctx->c, place_code, 1);

    ctx->describe = NULL; /* what runs now is not traced */
    PyObject *told = known ? PyObject_CallFunctionObjArgs(describe, code, NULL) : NULL;
    ctx->describe = describe;
    bool ok = told && (ctx->held || (ctx->held = PyList_New(0))) && PyList_Append(ctx->held, code) == 0;
    if (ok && told != Py_None) {
        ok = PyArg_ParseTuple(told, "UUUO!", &file, &text, &name, &PyList_Type, &positions) &&
             place_file(ctx, file, text, &known->file) && (known->function = tx_py_intern(ctx, name)) &&
             PyList_Append(ctx->held, positions) == 0;
        known->n = ok ? (uint32_t)PyList_Size(positions) : 0;
        ok = ok && (known->spans = tx_new(ctx->c, tx_span, known->n ? known->n : 1));
        known->positions = positions;
    }
    Py_XDECREF(told);
    return ok && tx_map_put_ptr(&ctx->codes, code, known) ? known : NULL;
}

static long
place_item(PyObject *tuple, Py_ssize_t i, long fallback)
{
    PyObject *x = PyTuple_GetItem(tuple, i);

    return !x || x == Py_None ? fallback : PyLong_AsLong(x);
}

static tx_span
place_span(tx_py_context *ctx, place_code *known, long unit)
{
    if (unit < 0 || unit >= (long)known->n)
        return 0;
    if (!known->spans[unit]) {
        PyObject *at = PyList_GetItem(known->positions, unit);
        long line = at && PyTuple_Check(at) ? place_item(at, 0, 0) : 0;
        if (line > 0)
            known->spans[unit] = tx_add_span(ctx->c, (tx_span_info){.file = known->file,
                                                                    .line = (uint32_t)line,
                                                                    .end_line = (uint32_t)place_item(at, 1, line),
                                                                    .col = (uint32_t)place_item(at, 2, 0),
                                                                    .end_col = (uint32_t)place_item(at, 3, 0),
                                                                    .function = known->function});
    }
    return known->spans[unit];
}

void
tx_py_here(tx_py_context *ctx)
{
    if (TX_LIKELY(!ctx->describe) || ctx->frozen)
        return;
    PyObject *frame = (PyObject *)PyThreadState_GetFrame(PyThreadState_Get());
    place_code *known = NULL;
    while (frame) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        known = tx_map_ptr(&ctx->codes, code);
        known = known ? known : learn_code(ctx, code);
        Py_DECREF(code); /* held by the context now */
        if (!known || known->positions)
            break;
        PyObject *back = PyObject_GetAttr(frame, ctx->state->s_f_back);
        Py_DECREF(frame);
        frame = back;
        if (frame == Py_None)
            Py_CLEAR(frame);
    }
    PyObject *at = frame && known ? PyObject_GetAttr(frame, ctx->state->s_f_lasti) : NULL;
    tx_span span = at ? place_span(ctx, known, PyLong_AsLong(at) / 2) : 0;
    if (span)
        ctx->c->span = span;
    Py_XDECREF(at);
    Py_XDECREF(frame);
    PyErr_Clear(); /* a place that cannot be told is no error: the last one stays */
}

PyObject *
tx_py_ctx_here(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_py_here((tx_py_context *)self);
    Py_RETURN_NONE;
}

PyObject *
tx_py_ctx_trace(PyObject *self, PyObject *describe)
{
    tx_py_context *ctx = (tx_py_context *)self;
    PyObject *before = ctx->describe ? ctx->describe : Py_NewRef(Py_None);

    if (describe != Py_None && !PyCallable_Check(describe)) {
        Py_XDECREF(ctx->describe ? NULL : before);
        PyErr_SetString(PyExc_TypeError, "a function of a code object, or None, is expected");
        return NULL;
    }
    ctx->describe = describe == Py_None ? NULL : Py_NewRef(describe);
    return before;
}
