/* Context: one compilation's arena, sources, spans and diagnostics; and how diagnostics become Python exceptions.
 *
 * A context is used under the GIL only. Work that releases it (lowering, emission) happens in a context of its own
 * that no other thread can see yet. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

/* ---- raising ----------------------------------------------------------------------------------------------------- */

static PyObject *
diag_class(tx_py_state *s, tx_diag_class cls)
{
    static const uint8_t of[] = {
        [TX_DC_SYNTAX] = TX_PY_DiagnosticError,   [TX_DC_VALUE] = TX_PY_DiagnosticValueError,
        [TX_DC_TYPE] = TX_PY_DiagnosticTypeError, [TX_DC_RUNTIME] = TX_PY_DiagnosticRuntimeError,
        [TX_DC_KEY] = TX_PY_DiagnosticKeyError,   [TX_DC_COMPILE] = TX_PY_CompileError,
        [TX_DC_INTERNAL] = TX_PY_InternalError,   [TX_DC_MEMORY] = TX_PY_InternalError,
        [TX_DC_WARNING] = TX_PY_DiagnosticError,
    };
    return s->error[of[cls]];
}

/* Text of one line of a file, or false. Lines count from the file's first_line. */
static bool
line_text(const tx_ctx *c, uint32_t file, uint32_t line, const char **text, size_t *len)
{
    if (!file || line < c->files.at[file].first_line || !c->files.at[file].text)
        return false;
    const char *p = c->files.at[file].text->text, *end = p + c->files.at[file].text->len;
    for (uint32_t i = c->files.at[file].first_line; i < line; i++) {
        const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        if (!nl)
            return false;
        p = nl + 1;
    }
    const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    *text = p;
    *len = (size_t)((nl ? nl : end) - p);
    return true;
}

/* Column in characters, from 1, of a byte column from 0. */
static long
char_column(const char *text, size_t len, bool known, uint32_t col)
{
    long n = 1;

    if (!known)
        return (long)col + 1;
    for (size_t i = 0; i < col; i++)
        n += i >= len || ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* Sets an attribute and drops the value; false on failure (a NULL value included). */
static bool
context_set_attribute(PyObject *x, PyObject *name, PyObject *value)
{
    bool ok = value && PyObject_SetAttr(x, name, value) == 0;

    Py_XDECREF(value);
    return ok;
}

/* What a SyntaxError says of the place: lines and columns from 1, columns in characters. */
static bool
set_place(tx_py_state *s, PyObject *e, const tx_ctx *c, const tx_diag *d)
{
    const tx_span_info *i = tx_span_at(c, d->span);
    const char *text = "", *end_text = "";
    size_t len = 0, end_len = 0;

    if (!context_set_attribute(e, s->s_msg, PyUnicode_DecodeUTF8(d->text, (Py_ssize_t)strlen(d->text), "replace")))
        return false;
    if (!i->file) /* nowhere */
        return true;
    bool known = line_text(c, i->file, i->line, &text, &len);
    bool end_known = line_text(c, i->file, i->end_line, &end_text, &end_len);
    PyObject *line = known ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "replace") : Py_NewRef(Py_None);
    return context_set_attribute(e, s->s_text, line) &&
           context_set_attribute(e, s->s_filename, tx_py_str(c->files.at[i->file].name)) &&
           context_set_attribute(e, s->s_lineno, PyLong_FromUnsignedLong(i->line)) &&
           context_set_attribute(e, s->s_offset, PyLong_FromLong(char_column(text, len, known, i->col))) &&
           context_set_attribute(e, s->s_end_lineno, PyLong_FromUnsignedLong(i->end_line)) &&
           context_set_attribute(e, s->s_end_offset,
                                 PyLong_FromLong(char_column(end_text, end_len, end_known, i->end_col)));
}

/* A note shows the help also where Python prints an uncaught SyntaxError in its own way. */
static bool
add_help(tx_py_state *s, PyObject *e, const char *help)
{
    PyObject *note = PyUnicode_FromFormat("help: %s", help);
    PyObject *r = note ? PyObject_CallMethodObjArgs(e, s->s_add_note, note, NULL) : NULL;

    Py_XDECREF(note);
    Py_XDECREF(r);
    return r != NULL;
}

/* The exception object for the errors of a context: class and place of the first, texts of all. */
static PyObject *
make_exception(tx_py_state *s, const tx_ctx *c, const tx_diag *first)
{
    tx_sb sb = {0};
    PyObject *text, *e;

    for (uint32_t i = 0; i < c->diags.n; i++) {
        if (c->diags.at[i].cls == TX_DC_WARNING)
            continue;
        if (sb.n && sb.text[sb.n - 1] != '\n')
            tx_sb_putc(&sb, '\n');
        tx_diag_render(c, &c->diags.at[i], &sb);
    }
    while (sb.n && sb.text[sb.n - 1] == '\n')
        sb.n--;
    text = tx_py_take_sb(&sb);
    e = text ? PyObject_CallFunctionObjArgs(diag_class(s, first->cls), text, NULL) : NULL;
    Py_XDECREF(text);
    bool has_place = first->cls <= TX_DC_KEY; /* a SyntaxError */
    if (e && has_place && (!set_place(s, e, c, first) || (first->help && !add_help(s, e, first->help))))
        Py_CLEAR(e);
    return e;
}

static void
forget_errors(tx_ctx *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->diags.n; i++)
        if (c->diags.at[i].cls == TX_DC_WARNING)
            c->diags.at[n++] = c->diags.at[i];
    c->diags.n = n;
    c->nerrors = 0;
    c->no_memory = false;
}

void *
tx_py_raise_diags(tx_py_state *s, tx_ctx *c)
{
    const tx_diag *first = NULL;

    for (uint32_t i = 0; i < c->diags.n && !first; i++)
        if (c->diags.at[i].cls != TX_DC_WARNING)
            first = &c->diags.at[i];
    if (PyErr_Occurred()) {
        /* raised on the way already */
    } else if (!first || first->cls == TX_DC_MEMORY) {
        PyErr_NoMemory(); /* what is not recorded could not be recorded */
    } else {
        PyObject *e = make_exception(s, c, first);
        if (e)
            PyErr_SetObject((PyObject *)Py_TYPE(e), e);
        Py_XDECREF(e);
    }
    forget_errors(c);
    return NULL;
}

void *
tx_py_raise(tx_py_context *ctx)
{
    return tx_py_raise_diags(ctx->state, ctx->c);
}

const char *
tx_py_type_name(tx_ctx *c, PyObject *x)
{
    PyObject *type = (PyObject *)Py_TYPE(x), *module = NULL, *name = NULL, *full = NULL;
    const char *text = NULL;
    Py_ssize_t len;

    if (x == Py_None)
        return "None";
    name = PyObject_GetAttrString(type, "__qualname__");
    module = name ? PyObject_GetAttrString(type, "__module__") : NULL;
    if (module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "builtins") != 0)
        full = PyUnicode_FromFormat("%U.%U", module, name);
    else if (name)
        full = Py_NewRef(name);
    text = full ? PyUnicode_AsUTF8AndSize(full, &len) : NULL;
    if (text) {
        const tx_str *s = tx_intern(c, text, (size_t)len);
        text = s ? s->text : NULL;
    }
    PyErr_Clear(); /* a type without a readable name must not hide the error that is being told */
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(full);
    return text ? text : "an object";
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

tx_py_context *
tx_py_new_context(tx_py_state *s)
{
    tx_py_context *ctx = (tx_py_context *)PyType_GenericAlloc(s->Context, 0);

    if (!ctx)
        return NULL;
    ctx->state = s;
    ctx->c = tx_ctx_new();
    if (!ctx->c) {
        TX_PY_DROP(ctx);
        PyErr_NoMemory();
        return NULL;
    }
    return ctx;
}

static PyObject *
pyctx_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_Size(args) != 0 || (kwargs && PyDict_Size(kwargs) != 0)) {
        PyErr_SetString(PyExc_TypeError, "Context() takes no arguments");
        return NULL;
    }
    tx_py_state *s = PyType_GetModuleState(type);
    return s ? (PyObject *)tx_py_new_context(s) : NULL;
}

static void
pyctx_dealloc(PyObject *self)
{
    tx_py_context *ctx = (tx_py_context *)self;
    PyTypeObject *type = Py_TYPE(self);

    tx_map_free(&ctx->wrappers);
    tx_map_free(&ctx->codes);
    Py_XDECREF(ctx->describe);
    Py_XDECREF(ctx->held);
    if (ctx->c)
        tx_ctx_free(ctx->c);
    PyObject_Free(self);
    TX_PY_DROP(type);
}

PyObject *
tx_py_find_wrapper(tx_py_context *ctx, const void *key)
{
    return Py_XNewRef((PyObject *)tx_map_ptr(&ctx->wrappers, key));
}

bool
tx_py_keep_wrapper(tx_py_context *ctx, const void *key, PyObject *x)
{
    if (tx_map_put_ptr(&ctx->wrappers, key, x))
        return true;
    if (x)
        PyErr_NoMemory();
    return false;
}

/* ---- files and places -------------------------------------------------------------------------------------------- */

static PyObject *
pyctx_add_file(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"name", "text", "first_line", NULL};
    tx_py_context *ctx = (tx_py_context *)self;
    PyObject *name;
    const char *text;
    Py_ssize_t len, name_len;
    unsigned int first_line = 1;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Us#|I:add_file", (char **)names, &name, &text, &len, &first_line))
        return NULL;
    const char *name_text = PyUnicode_AsUTF8AndSize(name, &name_len);
    if (!name_text)
        return NULL;
    uint32_t before = ctx->c->nerrors;
    uint32_t file = tx_add_file(ctx->c, name_text, text, (size_t)len, first_line);
    if (ctx->c->nerrors != before)
        return tx_py_raise(ctx);
    return PyLong_FromUnsignedLong(file);
}

static bool
parse_place(tx_py_context *ctx, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, const char *name,
            tx_py_place *out)
{
    tx_py_sig sig = {name, 2, 4, {"file", "function", "col_offset", "line_offset", NULL}};
    PyObject *value[4];
    long file, col = 0, line = 0;

    if (!tx_py_parse(&sig, args, nargs, kwnames, value) ||
        !tx_py_as_long(value[0], 1, (long)ctx->c->files.n - 1, "file", &file) ||
        (value[2] && !tx_py_as_long(value[2], INT32_MIN, INT32_MAX, "col_offset", &col)) ||
        (value[3] && !tx_py_as_long(value[3], INT32_MIN, INT32_MAX, "line_offset", &line)))
        return false;
    out->file = (uint32_t)file;
    out->col_offset = (int32_t)col;
    out->line_offset = (int32_t)line;
    out->function = tx_py_intern(ctx, value[1]);
    return out->function != NULL;
}

static PyObject *
pyctx_set_place(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx = (tx_py_context *)self;
    tx_py_place p = ctx->place;

    if (!parse_place(ctx, args, nargs, kwnames, "set_place", &p))
        return NULL;
    ctx->place = p;
    Py_RETURN_NONE;
}

static PyObject *
pyctx_push_inline(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_context *ctx = (tx_py_context *)self;
    tx_py_place p = {.inlined_at = ctx->c->span, .resume = ctx->c->span};

    if (ctx->outer.n >= TX_MAX_INLINE_DEPTH)
        return tx_py_fail(ctx, TX_E_INLINE_DEPTH, TX_MAX_INLINE_DEPTH);
    if (!parse_place(ctx, args, nargs, kwnames, "push_inline", &p))
        return NULL;
    if (!tx_push(ctx->c, &ctx->outer, ctx->place))
        return tx_py_raise(ctx);
    ctx->place = p;
    Py_RETURN_NONE;
}

static PyObject *
pyctx_pop_inline(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_py_context *ctx = (tx_py_context *)self;

    if (!ctx->outer.n) {
        PyErr_SetString(PyExc_RuntimeError, "pop_inline() without push_inline()");
        return NULL;
    }
    ctx->c->span = ctx->place.resume;
    ctx->place = ctx->outer.at[--ctx->outer.n];
    Py_RETURN_NONE;
}

static PyObject *
move_to(tx_py_context *ctx, long line, long col, long end_line, long end_col)
{
    const tx_py_place *p = &ctx->place;
    tx_span_info info = {.file = p->file,
                         .line = (uint32_t)(line + p->line_offset),
                         .col = (uint32_t)(col + p->col_offset),
                         .end_line = (uint32_t)(end_line + p->line_offset),
                         .end_col = (uint32_t)(end_col + p->col_offset),
                         .inlined_at = p->inlined_at,
                         .function = p->function};
    uint32_t before = ctx->c->nerrors;
    tx_span span = tx_add_span(ctx->c, info);

    if (TX_UNLIKELY(ctx->c->nerrors != before))
        return tx_py_raise(ctx);
    ctx->c->span = span;
    return PyLong_FromUnsignedLong(span);
}

/* One attribute as a long; missing or None: fallback. */
static bool
position(PyObject *node, PyObject *name, long fallback, long *out)
{
    PyObject *x = PyObject_GetAttr(node, name);

    if (!x) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return false;
        PyErr_Clear();
        *out = fallback;
        return true;
    }
    *out = x == Py_None ? fallback : PyLong_AsLong(x);
    Py_DECREF(x);
    return *out != -1 || !PyErr_Occurred();
}

static PyObject *
pyctx_at(PyObject *self, PyObject *node)
{
    tx_py_context *ctx = (tx_py_context *)self;
    const tx_py_state *s = ctx->state;
    long line, col, end_line, end_col;

    if (!position(node, s->s_lineno, -1, &line))
        return NULL;
    if (line < 0) /* not a node with a place: stay */
        return PyLong_FromUnsignedLong(ctx->c->span);
    if (!position(node, s->s_col_offset, 0, &col) || !position(node, s->s_end_lineno, line, &end_line) ||
        !position(node, s->s_end_col_offset, col, &end_col))
        return NULL;
    return move_to(ctx, line, col, end_line, end_col);
}

static PyObject *
pyctx_at_pos(PyObject *self, PyObject *args)
{
    long line, col, end_line, end_col;

    if (!PyArg_ParseTuple(args, "llll:at_pos", &line, &col, &end_line, &end_col))
        return NULL;
    return move_to((tx_py_context *)self, line, col, end_line, end_col);
}

static PyObject *
pyctx_span_info(PyObject *self, PyObject *arg)
{
    tx_py_context *ctx = (tx_py_context *)self;
    unsigned long span = PyLong_AsUnsignedLong(arg);

    if (span == (unsigned long)-1 && PyErr_Occurred())
        return NULL;
    if (span >= ctx->c->spans.n) {
        PyErr_SetString(PyExc_ValueError, "no such span in this context");
        return NULL;
    }
    const tx_span_info *i = tx_span_at(ctx->c, (tx_span)span);
    if (!i->file)
        return Py_BuildValue("(sIIIII)", "", 0, 0, 0, 0, 0);
    return Py_BuildValue("(sIIIII)", ctx->c->files.at[i->file].name->text, i->line, i->col, i->end_line, i->end_col,
                         i->inlined_at);
}

/* ---- diagnostics from Python ------------------------------------------------------------------------------------- */

enum { MAX_ARGS = 8 };

/* How many arguments a row's text takes, "%s" or "%1$s"; -1 when it takes other than strings. */
static int
count_strings(const char *format)
{
    int n = 0;

    for (const char *p = format; *p; p++) {
        if (*p != '%' || *++p == '%')
            continue;
        if (*p >= '1' && *p <= '9' && p[1] == '$') {
            n = *p - '0' > n ? *p - '0' : n;
            p += 2;
        } else {
            n++;
        }
        if (*p != 's')
            return -1;
    }
    return n;
}

/* Records the diagnostic that fail, record and warn describe. false: a Python exception is set. */
static bool
record_row(tx_py_context *ctx, PyObject *args, PyObject *kwargs, bool warn)
{
    const char *a[MAX_ARGS] = {"", "", "", "", "", "", "", ""}, *name, *help = NULL;
    PyObject *made[MAX_ARGS] = {0}, *x;
    Py_ssize_t nargs = PyTuple_Size(args) - 1;
    bool ok = false;

    tx_py_here(ctx);
    tx_span span = ctx->c->span;
    if (nargs < 0 || !(name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(args, 0), NULL))) {
        PyErr_SetString(PyExc_TypeError, "the name of a diagnostic is expected");
        return false;
    }
    if (kwargs && (x = PyDict_GetItemString(kwargs, "span")) && x != Py_None)
        span = (tx_span)PyLong_AsUnsignedLong(x);
    if (kwargs && (x = PyDict_GetItemString(kwargs, "help")) && x != Py_None)
        help = PyUnicode_AsUTF8AndSize(x, NULL);
    if (PyErr_Occurred())
        return false;
    int id = tx_diag_find(name);
    if (!id || count_strings(tx_diag_text(id)) != nargs || nargs > MAX_ARGS || span >= ctx->c->spans.n) {
        PyErr_Format(PyExc_ValueError, "no diagnostic '%s' with %zd text arguments, or no such span", name, nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        made[i] = PyObject_Str(PyTuple_GetItem(args, i + 1));
        if (!made[i] || !(a[i] = PyUnicode_AsUTF8AndSize(made[i], NULL)))
            goto out;
    }
    if (warn)
        tx_warn(ctx->c, span, id, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    else if (help)
        tx_fail_help(ctx->c, span, help, id, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    else
        tx_fail(ctx->c, span, id, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
    ok = true;
out:
    for (Py_ssize_t i = 0; i < nargs; i++)
        Py_XDECREF(made[i]);
    return ok;
}

static PyObject *
pyctx_fail(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return record_row((tx_py_context *)self, args, kwargs, false) ? tx_py_raise((tx_py_context *)self) : NULL;
}

static PyObject *
pyctx_record(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return record_row((tx_py_context *)self, args, kwargs, false) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
pyctx_warn(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return record_row((tx_py_context *)self, args, kwargs, true) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *
pyctx_raise_if_failed(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_py_context *ctx = (tx_py_context *)self;

    if (ctx->c->nerrors)
        return tx_py_raise(ctx);
    Py_RETURN_NONE;
}

static PyObject *
pyctx_take_warnings(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_ctx *c = ((tx_py_context *)self)->c;
    PyObject *list = PyList_New(0);
    uint32_t n = 0;

    for (uint32_t i = 0; list && i < c->diags.n; i++) {
        const tx_diag *d = &c->diags.at[i];
        if (d->cls != TX_DC_WARNING)
            continue;
        const tx_span_info *at = tx_span_at(c, d->span);
        PyObject *item = Py_BuildValue("(ssIs)", d->text, at->file ? c->files.at[at->file].name->text : "<unknown>",
                                       at->file ? at->line : 1u, tx_diag_name(d->id));
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (!list)
        return NULL;
    for (uint32_t i = 0; i < c->diags.n; i++)
        if (c->diags.at[i].cls != TX_DC_WARNING)
            c->diags.at[n++] = c->diags.at[i];
    c->diags.n = n;
    return list;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *
pyctx_get_span(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(((tx_py_context *)self)->c->span);
}

static int
pyctx_set_span(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    tx_py_context *ctx = (tx_py_context *)self;
    unsigned long span = value ? PyLong_AsUnsignedLong(value) : (unsigned long)-1;

    if (PyErr_Occurred())
        return -1;
    if (span >= ctx->c->spans.n) {
        PyErr_SetString(PyExc_ValueError, "no such span in this context");
        return -1;
    }
    ctx->c->span = (tx_span)span;
    return 0;
}

static PyObject *
pyctx_get_frozen(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((tx_py_context *)self)->frozen);
}

static PyMethodDef pyctx_methods[] = {
    {"add_file", TX_PY_FAST(pyctx_add_file), METH_VARARGS | METH_KEYWORDS, "a source text; gives its number"},
    {"set_place", TX_PY_FAST(pyctx_set_place), METH_FASTCALL | METH_KEYWORDS, "file and function of later spans"},
    {"at", pyctx_at, METH_O, "make the place of an ast node the current span"},
    {"at_pos", pyctx_at_pos, METH_VARARGS, "make line, col, end_line, end_col the current span"},
    {"push_inline", TX_PY_FAST(pyctx_push_inline), METH_FASTCALL | METH_KEYWORDS,
     "later spans are inlined at this one"},
    {"pop_inline", pyctx_pop_inline, METH_NOARGS, "back to the text around the inlined one"},
    {"fail", TX_PY_FAST(pyctx_fail), METH_VARARGS | METH_KEYWORDS, "raise a diagnostic by its row's name"},
    {"record", TX_PY_FAST(pyctx_record), METH_VARARGS | METH_KEYWORDS, "keep a diagnostic for raise_if_failed()"},
    {"warn", TX_PY_FAST(pyctx_warn), METH_VARARGS | METH_KEYWORDS, "keep a warning for take_warnings()"},
    {"raise_if_failed", pyctx_raise_if_failed, METH_NOARGS, "raise the recorded diagnostics together"},
    {"take_warnings", pyctx_take_warnings, METH_NOARGS, "[(text, filename, line)], which are then forgotten"},
    {"here", tx_py_ctx_here, METH_NOARGS, "while tracing: make the place of the calling code the current span"},
    {"trace", tx_py_ctx_trace, METH_O, "trace plain Python code with this function of a code object, or (None) do not"},
    {"span_info", pyctx_span_info, METH_O, "(file, line, col, end line, end col, inlined_at)"},
    {0},
};

static PyGetSetDef pyctx_getset[] = {
    {"span", pyctx_get_span, pyctx_set_span, "current span, 0 unknown", NULL},
    {"frozen", pyctx_get_frozen, NULL, "True once its function is finished", NULL},
    {0},
};

static PyType_Slot pyctx_slots[] = {
    {Py_tp_new, pyctx_new},
    {Py_tp_dealloc, pyctx_dealloc},
    {Py_tp_methods, pyctx_methods},
    {Py_tp_getset, pyctx_getset},
    {Py_tp_doc,
     "One compilation's arena, sources and diagnostics. Single-threaded; kept alive by all that is made from it."},
    {0, NULL},
};

static PyType_Spec pyctx_spec = {"tirx.Context", sizeof(tx_py_context), 0, Py_TPFLAGS_DEFAULT, pyctx_slots};

int
tx_py_init_context(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    return (s->Context = tx_py_add_type(module, &pyctx_spec)) ? 0 : -1;
}
