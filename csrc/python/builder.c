/* Builder: statements under construction. The parser and tirx.builder are its clients; Buffer stores find the one
 * that is active on their thread through the module state.
 *
 * A flat form (device_entry, attr) opens a block that ends with the block around it: `flat` remembers which ones do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/builder.h"

#include "lower/lower.h"

/* ---- the active builder of a thread ------------------------------------------------------------------------------ */

tx_py_builder *
tx_py_current(tx_py_state *s)
{
    if (PyDict_Size(s->builders) == 0)
        return NULL;
    PyObject *id = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *found = id ? PyDict_GetItemWithError(s->builders, id) : NULL;

    Py_XDECREF(id);
    if (!found)
        PyErr_Clear();
    return (tx_py_builder *)found;
}

static bool
set_current(tx_py_state *s, tx_py_builder *b)
{
    PyObject *id = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    int r = !id ? -1 : b ? PyDict_SetItem(s->builders, id, (PyObject *)b) : PyDict_DelItem(s->builders, id);

    Py_XDECREF(id);
    return r == 0;
}

static PyObject *
pybld_current(PyObject *module, PyObject *Py_UNUSED(unused))
{
    tx_py_builder *b = tx_py_current(tx_py_state_of(module));

    return Py_NewRef(b ? (PyObject *)b : Py_None);
}

static PyObject *
pybld_activate(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_py_state *s = SELF->ctx->state;

    if (SELF->active) {
        PyErr_SetString(PyExc_RuntimeError, "the builder is active already");
        return NULL;
    }
    tx_py_builder *outer = tx_py_current(s);
    Py_XINCREF((PyObject *)outer);
    if (!set_current(s, SELF)) {
        TX_PY_DROP(outer);
        return NULL;
    }
    SELF->outer = outer;
    SELF->active = true;
    Py_RETURN_NONE;
}

static PyObject *
pybld_deactivate(PyObject *self, PyObject *Py_UNUSED(unused))
{
    tx_py_builder *outer = SELF->outer;

    if (tx_py_current(SELF->ctx->state) != SELF) {
        PyErr_SetString(PyExc_RuntimeError, "the builder is not the active one of this thread");
        return NULL;
    }
    Py_INCREF(self);
    bool ok = set_current(SELF->ctx->state, outer);
    if (ok) {
        SELF->active = false;
        SELF->outer = NULL;
        TX_PY_DROP(outer);
    }
    Py_DECREF(self);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static PyObject *
pybld_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"ctx", "name", "dialect", NULL};
    tx_py_state *s = PyType_GetModuleState(type);
    PyObject *x, *name;
    const char *dialect = "g1";
    tx_py_context *ctx;

    if (!s || !PyArg_ParseTupleAndKeywords(args, kwargs, "OU|s:Builder", (char **)names, &x, &name, &dialect) ||
        !(ctx = tx_py_as_context(s, x)))
        return NULL;
    if (strcmp(dialect, "g1") != 0 && strcmp(dialect, "g2") != 0) {
        PyErr_SetString(PyExc_ValueError, "a dialect is \"g1\" or \"g2\"");
        return NULL;
    }
    const tx_str *text = tx_py_intern(ctx, name);
    tx_builder *b = text ? tx_builder_new(ctx->c, text, dialect[1] == '2' ? TX_G2 : TX_G1) : NULL;
    if (!b)
        return text ? tx_py_raise(ctx) : NULL;
    tx_py_builder *self = (tx_py_builder *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->ctx = TX_PY_HOLD(ctx);
    self->b = b;
    return (PyObject *)self;
}

static int
pybld_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(SELF->outer);
    Py_VISIT(SELF->before);
    return 0;
}

static int
pybld_clear(PyObject *self)
{
    Py_CLEAR(SELF->outer);
    Py_CLEAR(SELF->before);
    return 0;
}

static void
pybld_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    TX_PY_DROP(SELF->outer);
    Py_XDECREF(SELF->before);
    TX_PY_DROP(SELF->ctx);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

/* ---- helpers of the methods -------------------------------------------------------------------------------------- */

bool
tx_py_builder_open(tx_py_builder *b)
{
    PyObject *self = (PyObject *)b;

    if (!SELF->finished)
        return true;
    tx_py_fail(SELF->ctx, TX_E_BUILDER_DONE, tx_builder_func(SELF->b)->name->text);
    return false;
}

/* None, or the exception of a statement that could not be made. */
PyObject *
tx_py_emitted(tx_py_builder *b, const tx_node *stmt)
{
    if (!stmt || !tx_emit(b->b, stmt))
        return tx_py_raise(b->ctx);
    Py_RETURN_NONE;
}

PyObject *
tx_py_open_block(tx_py_builder *b, const tx_node *head, bool flat)
{
    PyObject *self = (PyObject *)b;

    if (!head || !tx_push(SELF->ctx->c, &SELF->flat, flat))
        return tx_py_raise(SELF->ctx);
    if (!tx_open(SELF->b, head)) {
        SELF->flat.n--;
        return tx_py_raise(SELF->ctx);
    }
    Py_RETURN_NONE;
}

tx_py_buffer *
tx_py_own_buffer(tx_py_builder *b, PyObject *x)
{
    if (!tx_py_is_buffer(x)) {
        PyErr_SetString(PyExc_TypeError, "a Buffer is expected");
        return NULL;
    }
    if (((tx_py_buffer *)x)->ctx != b->ctx)
        return tx_py_fail(b->ctx, TX_E_OTHER_CONTEXT, ((tx_py_buffer *)x)->buf->name->text);
    return (tx_py_buffer *)x;
}

tx_var *
tx_py_own_var(tx_py_builder *b, PyObject *x)
{
    if (tx_py_is_expr(x) && ((tx_py_expr *)x)->ctx == b->ctx && ((tx_py_expr *)x)->node->op == TX_OP_VAR)
        return ((tx_py_expr *)x)->node->u.var;
    PyErr_SetString(PyExc_TypeError, "a variable of the builder's context is expected");
    return NULL;
}

const tx_node *
tx_py_stmt(tx_py_builder *b, unsigned op, tx_payload u, const tx_node *const *args, uint32_t n)
{
    return tx_make(b->ctx->c, op, TX_VOID, u, args, n);
}

/* ---- the function's head ----------------------------------------------------------------------------------------- */

METHOD(param, 2, 3, "name", "x", "flags")
{
    tx_func *f = tx_builder_func(SELF->b);
    tx_param p = {.span = SELF->ctx->c->span};
    long flags = 0;

    if (!(p.name = tx_py_intern(SELF->ctx, a[0])) || (a[2] && !tx_py_as_long(a[2], 0, INT32_MAX, "flags", &flags)))
        return NULL;
    p.flags = (uint32_t)flags;
    if (tx_py_is_buffer(a[1])) {
        tx_py_buffer *b = tx_py_own_buffer(SELF, a[1]);
        if (!b)
            return NULL;
        p.buffer = b->buf;
        p.var = b->buf->data;
        b->buf->flags |= TX_BUF_PARAM | (f->flags & TX_FUNC_DEVICE ? TX_BUF_PASSED : 0);
    } else if (!(p.var = tx_py_own_var(SELF, a[1]))) {
        return NULL;
    } else if (p.var->kind == TX_VAR_FREE) { /* I.arg("n", I.int32()) */
        p.var->kind = TX_VAR_PARAM;
    }
    if (SELF->params.n >= TX_MAX_PARAMS)
        return tx_py_fail(SELF->ctx, TX_E_PARAM_LIMIT, TX_MAX_PARAMS);
    if (!tx_push(SELF->ctx->c, &SELF->params, p))
        return tx_py_raise(SELF->ctx);
    f->params = SELF->params.at;
    f->nparams = SELF->params.n;
    Py_RETURN_NONE;
}

METHOD(add_symbol, 1, 1, "x")
{
    tx_var *v = tx_py_own_var(SELF, a[0]);

    if (!v)
        return NULL;
    for (uint32_t i = 0; i < SELF->symbols.n; i++)
        if (SELF->symbols.at[i] == v)
            Py_RETURN_NONE;
    v->kind = TX_VAR_SYMBOL;
    if (!tx_push(SELF->ctx->c, &SELF->symbols, v))
        return tx_py_raise(SELF->ctx);
    tx_builder_func(SELF->b)->symbols = SELF->symbols.at;
    tx_builder_func(SELF->b)->nsymbols = SELF->symbols.n;
    Py_RETURN_NONE;
}

METHOD(set_attr, 2, 2, "key", "value")
{
    tx_func *f = tx_builder_func(SELF->b);
    tx_attr attr = {.key = tx_py_intern(SELF->ctx, a[0])};

    if (!attr.key || !(attr.value = tx_py_as_attr(SELF->ctx, attr.key->text, a[1])))
        return NULL;
    for (uint32_t i = 0; i < SELF->attrs.n; i++) {
        if (SELF->attrs.at[i].key != attr.key)
            continue;
        SELF->attrs.at[i] = attr;
        Py_RETURN_NONE;
    }
    if (!tx_push(SELF->ctx->c, &SELF->attrs, attr))
        return tx_py_raise(SELF->ctx);
    f->attrs = SELF->attrs.at;
    f->nattrs = SELF->attrs.n;
    Py_RETURN_NONE;
}

METHOD(set_flags, 1, 1, "flags")
{
    long flags;

    if (!tx_py_as_long(a[0], 0, INT32_MAX, "flags", &flags))
        return NULL;
    tx_builder_func(SELF->b)->flags = (uint32_t)flags;
    Py_RETURN_NONE;
}

METHOD(set_name, 1, 1, "name")
{
    const tx_str *name = tx_py_intern(SELF->ctx, a[0]);

    if (!name)
        return NULL;
    tx_builder_func(SELF->b)->name = name;
    Py_RETURN_NONE;
}

METHOD(set_symbol, 1, 1, "name")
{
    const tx_str *name = a[0] == Py_None ? NULL : tx_py_intern(SELF->ctx, a[0]);

    if (!name && a[0] != Py_None)
        return NULL;
    tx_builder_func(SELF->b)->symbol = name;
    Py_RETURN_NONE;
}

METHOD(set_ret, 1, 1, "dtype")
{
    tx_dtype t = TX_VOID;

    if (a[0] != Py_None && !tx_py_as_dtype(SELF->ctx, a[0], &t))
        return NULL;
    tx_builder_func(SELF->b)->ret = t;
    Py_RETURN_NONE;
}

/* The handle's variable becomes the buffer's data pointer, so that uses of the handle stay valid. */
METHOD(match, 2, 2, "param", "buf")
{
    tx_py_buffer *b = tx_py_own_buffer(SELF, a[1]);
    tx_var *v = b ? tx_py_own_var(SELF, a[0]) : NULL;
    uint32_t i = 0;

    if (!v)
        return NULL;
    while (i < SELF->params.n && (SELF->params.at[i].var != v || SELF->params.at[i].buffer))
        i++;
    if (i == SELF->params.n)
        return tx_py_fail(SELF->ctx, TX_E_NOT_A_PARAM);
    b->buf->flags |= TX_BUF_PARAM | (tx_builder_func(SELF->b)->flags & TX_FUNC_DEVICE ? TX_BUF_PASSED : 0);
    if (b->buf->data->buffer == b->buf) {
        tx_node *node = (tx_node *)v->node; /* the variable's own node says what it points to */
        v->kind = TX_VAR_DATA;
        v->name = b->buf->data->name;
        v->elem = node->elem = b->buf->dtype;
        v->scope = node->scope = b->buf->scope;
        v->buffer = b->buf;
        b->buf->data = v;
    }
    SELF->params.at[i].buffer = b->buf;
    SELF->params.at[i].var = b->buf->data;
    SELF->params.at[i].flags |= TX_PARAM_FROM_HANDLE;
    Py_RETURN_NONE;
}

/* ---- other blocks ------------------------------------------------------------------------------------------------ */

static PyObject *
open_condition(PyObject *self, unsigned op, PyObject *x, uint32_t nargs)
{
    const tx_node *cond = tx_py_as_node(SELF->ctx, x, TX_VOID), *args[3] = {0};

    if (!cond)
        return NULL;
    args[0] = tx_condition(SELF->ctx->c, cond);
    return tx_py_open_block(SELF, args[0] ? tx_py_stmt(SELF, op, (tx_payload){0}, args, nargs) : NULL, false);
}

METHOD(open_while, 1, 1, "cond")
{
    return open_condition(self, TX_OP_WHILE, a[0], 2);
}

METHOD(open_if, 1, 1, "cond")
{
    return open_condition(self, TX_OP_IF, a[0], 3);
}

static PyObject *
pybld_open_else(PyObject *self, PyObject *Py_UNUSED(unused))
{
    if (!tx_py_builder_open(SELF))
        return NULL;
    if (!tx_push(SELF->ctx->c, &SELF->flat, false))
        return tx_py_raise(SELF->ctx);
    if (!tx_open_else(SELF->b)) {
        SELF->flat.n--;
        return SELF->ctx->c->nerrors ? tx_py_raise(SELF->ctx) : tx_py_fail(SELF->ctx, TX_E_BLOCK_MISMATCH, "else");
    }
    Py_RETURN_NONE;
}

static PyObject *
open_attribute(PyObject *self, PyObject *key, PyObject *value, bool flat)
{
    const tx_str *k = tx_py_intern(SELF->ctx, key);
    const tx_node *args[2] = {k ? tx_py_as_attr(SELF->ctx, k->text, value) : NULL, NULL};

    return args[0] ? tx_py_open_block(SELF, tx_py_stmt(SELF, TX_OP_ATTR, (tx_payload){.s = k}, args, 2), flat) : NULL;
}

METHOD(open_attr, 2, 2, "key", "value")
{
    return open_attribute(self, a[0], a[1], false);
}

METHOD(attr, 2, 2, "key", "value")
{
    return open_attribute(self, a[0], a[1], true);
}

static PyObject *
pybld_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
    uint32_t n = SELF->flat.n;

    if (!tx_py_builder_open(SELF))
        return NULL;
    while (n > 0 && SELF->flat.at[n - 1])
        n--;
    if (n == 0)
        return tx_py_fail(SELF->ctx, TX_E_BLOCK_MISMATCH, "the end of a block");
    while (SELF->flat.n >= n) {
        SELF->flat.n--;
        if (!tx_close(SELF->b))
            return tx_py_raise(SELF->ctx);
    }
    Py_RETURN_NONE;
}

METHOD(assert_, 3, 3, "cond", "kind", "parts")
{
    tx_py_context *ctx = SELF->ctx;
    const tx_node *cond = tx_py_as_node(ctx, a[0], TX_VOID);
    PyObject *list = cond ? PySequence_Tuple(a[2]) : NULL;
    tx_assertion *x = list ? tx_new(ctx->c, tx_assertion, 1) : NULL;
    Py_ssize_t n = list ? PyTuple_Size(list) : 0;
    const tx_str **parts = x ? tx_new(ctx->c, const tx_str *, n ? n : 1) : NULL;
    bool ok = parts && (x->kind = tx_py_intern(ctx, a[1]));

    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = (parts[i] = tx_py_intern(ctx, PyTuple_GetItem(list, i))) != NULL;
    Py_XDECREF(list);
    if (!ok)
        return PyErr_Occurred() ? NULL : tx_py_raise(ctx);
    x->nparts = (uint32_t)n;
    x->parts = parts;
    cond = tx_condition(ctx->c, cond);
    return tx_py_emitted(SELF, cond ? tx_py_stmt(SELF, TX_OP_ASSERT, (tx_payload){.assertion = x}, &cond, 1) : NULL);
}

METHOD(return_, 0, 1, "value")
{
    const tx_node *value = NULL;
    tx_dtype ret = tx_builder_func(SELF->b)->ret;

    if (TX_PY_GIVEN(a[0])) {
        if (!(value = tx_py_as_node(SELF->ctx, a[0], ret)))
            return NULL;
        value = ret == TX_VOID ? tx_typed(SELF->ctx->c, value) : tx_cast(SELF->ctx->c, ret, value);
        if (!value)
            return tx_py_raise(SELF->ctx);
    }
    return tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_RETURN, (tx_payload){0}, &value, 1));
}

static PyObject *
pybld_break_(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return tx_py_builder_open(SELF) ? tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_BREAK, (tx_payload){0}, NULL, 0))
                                    : NULL;
}

static PyObject *
pybld_continue_(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return tx_py_builder_open(SELF) ? tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_CONTINUE, (tx_payload){0}, NULL, 0))
                                    : NULL;
}

/* Closes what is open, checks, freezes the context. */
METHOD(finish, 0, 1, "verify")
{
    tx_py_context *ctx = SELF->ctx;
    bool verify;

    if (!tx_py_as_bool(a[0], true, &verify))
        return NULL;
    tx_func *f = tx_builder_finish(SELF->b);
    if (!f || ctx->c->nerrors)
        return tx_py_raise(ctx);
    if (verify && (!tx_check_symbols(ctx->c, f) || !tx_check_device_func(ctx->c, f) || !tx_verify_func(ctx->c, f)))
        return tx_py_raise(ctx);
    if (verify)
        tx_warn_unused(ctx->c, f);
    if (ctx->c->nerrors) /* out of memory */
        return tx_py_raise(ctx);
    SELF->finished = ctx->frozen = true;
    return tx_py_new_function(ctx, f);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *
pybld_get_before(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(SELF->before ? SELF->before : Py_None);
}

static int
pybld_set_before(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    PyObject *old = SELF->before;

    SELF->before = TX_PY_GIVEN(value) ? Py_NewRef(value) : NULL;
    Py_XDECREF(old);
    return 0;
}

static PyObject *
pybld_get_ctx(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(SELF->ctx);
}

static PyObject *
pybld_get_zone(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(tx_builder_zone(SELF->b) ? "device" : "host");
}

static PyObject *
pybld_get_depth(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(tx_builder_depth(SELF->b));
}

static PyObject *
pybld_get_count(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(tx_builder_count(SELF->b));
}

static PyObject *
pybld_get_in_loop(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(tx_builder_in_loop(SELF->b));
}

static PyObject *
pybld_get_dialect(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(tx_builder_func(SELF->b)->dialect == TX_G2 ? "g2" : "g1");
}

static PyObject *
pybld_get_name(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_str(tx_builder_func(SELF->b)->name);
}

static PyObject *
pybld_get_flags(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(tx_builder_func(SELF->b)->flags);
}

#define BUILDER_ROW(name, doc) {#name, TX_PY_FAST(tx_py_bld_##name), METH_FASTCALL | METH_KEYWORDS, doc}
static PyMethodDef pybld_methods[] = {
    {"activate", pybld_activate, METH_NOARGS, "become the current builder of this thread; nests"},
    {"deactivate", pybld_deactivate, METH_NOARGS, "give way to the one that was current before"},
    BUILDER_ROW(param, "the next parameter: a variable or an annotated buffer"),
    BUILDER_ROW(add_symbol, "a size known at the call"),
    BUILDER_ROW(set_attr, "a function attribute"),
    BUILDER_ROW(set_flags, "enum tx_func_flag"),
    BUILDER_ROW(set_name, "the function's Python name"),
    BUILDER_ROW(set_symbol, "global symbol, or None when private"),
    BUILDER_ROW(set_ret, "dtype of what the function returns"),
    BUILDER_ROW(match, "bind a handle parameter to a buffer, which takes its place"),
    BUILDER_ROW(alloc, "storage for the rest of the block"),
    BUILDER_ROW(decl, "a view over a pointer"),
    BUILDER_ROW(store, "store with conversion to the element type"),
    BUILDER_ROW(bind, "an immutable binding; gives the variable"),
    BUILDER_ROW(cell, "a mutable scalar"),
    BUILDER_ROW(hoist_cell, "a mutable scalar in an outer open block"),
    BUILDER_ROW(evaluate, "a call for its effect"),
    BUILDER_ROW(open_for, "open a loop; gives its variable"),
    BUILDER_ROW(open_while, "open a loop"),
    BUILDER_ROW(open_if, "open a branch"),
    {"open_else", pybld_open_else, METH_NOARGS, "open the other arm of the branch just closed"},
    BUILDER_ROW(open_attr, "open an attribute's block"),
    BUILDER_ROW(attr, "an attribute for the rest of the block"),
    {"close", pybld_close, METH_NOARGS, "close the innermost block, and the flat forms in it"},
    BUILDER_ROW(device_entry, "open the device zone"),
    BUILDER_ROW(scope_id, "variables of a level of the thread hierarchy"),
    BUILDER_ROW(assert_, "a check with an exception's name and the parts of its message"),
    BUILDER_ROW(return_, "leave the function"),
    {"break_", pybld_break_, METH_NOARGS, "leave the loop"},
    {"continue_", pybld_continue_, METH_NOARGS, "next turn of the loop"},
    BUILDER_ROW(finish, "close what is open, check, freeze the context; gives the Function"),
    {0},
};

static PyGetSetDef pybld_getset[] = {
    {"ctx", pybld_get_ctx, NULL, "its Context", NULL},
    {"before", pybld_get_before, pybld_set_before, "called once before the next store, or None", NULL},
    {"zone", pybld_get_zone, NULL, "\"host\" or \"device\"", NULL},
    {"depth", pybld_get_depth, NULL, "open blocks, the function's own included", NULL},
    {"count", pybld_get_count, NULL, "statements in the innermost block so far", NULL},
    {"in_loop", pybld_get_in_loop, NULL, "True inside a loop", NULL},
    {"dialect", pybld_get_dialect, NULL, "\"g1\" or \"g2\"", NULL},
    {"name", pybld_get_name, NULL, "the function's Python name", NULL},
    {"flags", pybld_get_flags, NULL, "enum tx_func_flag", NULL},
    {0},
};

static PyType_Slot pybld_slots[] = {
    {Py_tp_new, pybld_new},
    {Py_tp_dealloc, pybld_dealloc},
    {Py_tp_traverse, pybld_traverse},
    {Py_tp_clear, pybld_clear},
    {Py_tp_methods, pybld_methods},
    {Py_tp_getset, pybld_getset},
    {Py_tp_doc, "Statements under construction, at the context's current span."},
    {0, NULL},
};

static PyType_Spec pybld_spec = {"tirx.Builder", sizeof(tx_py_builder), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                                 pybld_slots};

static PyMethodDef pybld_module_methods[] = {
    {"current", pybld_current, METH_NOARGS, "this thread's innermost active Builder, or None"},
    {0},
};

int
tx_py_init_builder(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!(s->Builder = tx_py_add_type(module, &pybld_spec)) || !(s->builders = PyDict_New()))
        return -1;
    return PyModule_AddFunctions(module, pybld_module_methods);
}
