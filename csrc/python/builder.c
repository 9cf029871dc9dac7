/* Builder: statements under construction. The parser and tirx.builder are its clients; Buffer stores find the one that is
 * active on their thread through the module state.
 *
 * A flat form (device_entry, attr) opens a block that ends with the block around it: `flat` remembers which ones do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

/* ---- the active builder of a thread ------------------------------------------------------------------------------------ */

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

#define SELF ((tx_py_builder *)self)

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

/* ---- life ---------------------------------------------------------------------------------------------------------------- */

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
    return 0;
}

static int
pybld_clear(PyObject *self)
{
    Py_CLEAR(SELF->outer);
    return 0;
}

static void
pybld_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    TX_PY_DROP(SELF->outer);
    TX_PY_DROP(SELF->ctx);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

/* ---- helpers of the methods ------------------------------------------------------------------------------------------------ */

static tx_func *
func_of(PyObject *self)
{
    return tx_builder_func(SELF->b);
}

bool
tx_py_builder_open(tx_py_builder *b)
{
    PyObject *self = (PyObject *)b;

    if (!SELF->finished)
        return true;
    tx_py_fail(SELF->ctx, TX_E_BUILDER_DONE, func_of(self)->name->text);
    return false;
}

/* None, or the exception of a statement that could not be made. */
static PyObject *
emitted(PyObject *self, const tx_node *stmt)
{
    if (!stmt || !tx_emit(SELF->b, stmt))
        return tx_py_raise(SELF->ctx);
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

static tx_py_buffer *
own_buffer(PyObject *self, PyObject *x)
{
    if (!tx_py_is_buffer(x)) {
        PyErr_SetString(PyExc_TypeError, "a Buffer is expected");
        return NULL;
    }
    if (((tx_py_buffer *)x)->ctx != SELF->ctx)
        return tx_py_fail(SELF->ctx, TX_E_OTHER_CONTEXT, ((tx_py_buffer *)x)->buf->name->text);
    return (tx_py_buffer *)x;
}

static tx_var *
own_var(PyObject *self, PyObject *x)
{
    if (tx_py_is_expr(x) && ((tx_py_expr *)x)->ctx == SELF->ctx && ((tx_py_expr *)x)->node->op == TX_OP_VAR)
        return ((tx_py_expr *)x)->node->u.var;
    PyErr_SetString(PyExc_TypeError, "a variable of the builder's context is expected");
    return NULL;
}

static const tx_node *
stmt(PyObject *self, unsigned op, tx_payload u, const tx_node *const *args, uint32_t n)
{
    return tx_make(SELF->ctx->c, op, TX_VOID, u, args, n);
}

/* A fast method: its parsed arguments are in a[]. */
#define METHOD(fname, nrequired, npositional, ...)                                                                     \
    static PyObject *fname##_in(PyObject *self, PyObject *const *a);                                                   \
    static PyObject *fname(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)                 \
    {                                                                                                                  \
        static const tx_py_sig sig = {&#fname[6], nrequired, npositional, {__VA_ARGS__, NULL}};                        \
        PyObject *a[20];                                                                                               \
        if (!tx_py_parse(&sig, args, nargs, kwnames, a) || !tx_py_builder_open(SELF))                                             \
            return NULL;                                                                                               \
        return fname##_in(self, a);                                                                                    \
    }                                                                                                                  \
    static PyObject *fname##_in(PyObject *self, PyObject *const *a)

/* ---- the function's head -------------------------------------------------------------------------------------------------- */

METHOD(pybld_param, 2, 3, "name", "x", "flags")
{
    tx_func *f = func_of(self);
    tx_param p = {.span = SELF->ctx->c->span};
    long flags = 0;

    if (!(p.name = tx_py_intern(SELF->ctx, a[0])) || (a[2] && !tx_py_as_long(a[2], 0, INT32_MAX, "flags", &flags)))
        return NULL;
    p.flags = (uint32_t)flags;
    if (tx_py_is_buffer(a[1])) {
        tx_py_buffer *b = own_buffer(self, a[1]);
        if (!b)
            return NULL;
        p.buffer = b->buf;
        p.var = b->buf->data;
        b->buf->flags |= TX_BUF_PARAM;
    } else if (!(p.var = own_var(self, a[1]))) {
        return NULL;
    }
    if (SELF->params.n >= TX_MAX_PARAMS)
        return tx_py_fail(SELF->ctx, TX_E_PARAM_LIMIT, TX_MAX_PARAMS);
    if (!tx_push(SELF->ctx->c, &SELF->params, p))
        return tx_py_raise(SELF->ctx);
    f->params = SELF->params.at;
    f->nparams = SELF->params.n;
    Py_RETURN_NONE;
}

METHOD(pybld_add_symbol, 1, 1, "x")
{
    tx_var *v = own_var(self, a[0]);

    if (!v)
        return NULL;
    for (uint32_t i = 0; i < SELF->symbols.n; i++)
        if (SELF->symbols.at[i] == v)
            Py_RETURN_NONE;
    v->kind = TX_VAR_SYMBOL;
    if (!tx_push(SELF->ctx->c, &SELF->symbols, v))
        return tx_py_raise(SELF->ctx);
    func_of(self)->symbols = SELF->symbols.at;
    func_of(self)->nsymbols = SELF->symbols.n;
    Py_RETURN_NONE;
}

METHOD(pybld_set_attr, 2, 2, "key", "value")
{
    tx_func *f = func_of(self);
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

METHOD(pybld_set_flags, 1, 1, "flags")
{
    long flags;

    if (!tx_py_as_long(a[0], 0, INT32_MAX, "flags", &flags))
        return NULL;
    func_of(self)->flags = (uint32_t)flags;
    Py_RETURN_NONE;
}

METHOD(pybld_set_name, 1, 1, "name")
{
    const tx_str *name = tx_py_intern(SELF->ctx, a[0]);

    if (!name)
        return NULL;
    func_of(self)->name = name;
    Py_RETURN_NONE;
}

METHOD(pybld_set_symbol, 1, 1, "name")
{
    const tx_str *name = a[0] == Py_None ? NULL : tx_py_intern(SELF->ctx, a[0]);

    if (!name && a[0] != Py_None)
        return NULL;
    func_of(self)->symbol = name;
    Py_RETURN_NONE;
}

METHOD(pybld_set_ret, 1, 1, "dtype")
{
    tx_dtype t = TX_VOID;

    if (a[0] != Py_None && !tx_py_as_dtype(SELF->ctx, a[0], &t))
        return NULL;
    func_of(self)->ret = t;
    Py_RETURN_NONE;
}

/* The handle's variable becomes the buffer's data pointer, so that uses of the handle stay valid. */
METHOD(pybld_match, 2, 2, "param", "buf")
{
    tx_py_buffer *b = own_buffer(self, a[1]);
    tx_var *v = b ? own_var(self, a[0]) : NULL;
    uint32_t i = 0;

    if (!v)
        return NULL;
    while (i < SELF->params.n && (SELF->params.at[i].var != v || SELF->params.at[i].buffer))
        i++;
    if (i == SELF->params.n)
        return tx_py_fail(SELF->ctx, TX_E_NOT_A_PARAM);
    b->buf->flags |= TX_BUF_PARAM;
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

/* ---- buffers, stores, values ------------------------------------------------------------------------------------------------ */

METHOD(pybld_alloc, 1, 1, "buf")
{
    tx_py_buffer *b = own_buffer(self, a[0]);

    return b ? emitted(self, stmt(self, TX_OP_ALLOC, (tx_payload){.buf = b->buf}, NULL, 0)) : NULL;
}

METHOD(pybld_decl, 2, 2, "buf", "data")
{
    tx_py_buffer *b = own_buffer(self, a[0]);
    const tx_node *data = b ? tx_py_as_typed(SELF->ctx, a[1]) : NULL;

    if (!data)
        return NULL;
    b->buf->flags |= TX_BUF_VIEW;
    return emitted(self, stmt(self, TX_OP_DECL, (tx_payload){.buf = b->buf}, &data, 1));
}

bool
tx_py_store(tx_py_builder *builder, tx_buffer *buf, PyObject *indices, PyObject *value)
{
    PyObject *self = (PyObject *)builder;
    tx_py_context *ctx = builder->ctx;
    const tx_node **idx, **extent, *v;
    uint32_t kept;
    int r;

    if (!tx_py_builder_open(SELF) || (r = tx_py_subscript(ctx, buf, indices, true, &idx, &extent, &kept)) < 0)
        return false;
    if (r == 0)
        return tx_py_fail(ctx, TX_E_STORE_REGION, buf->name->text), false;
    if (!(v = tx_py_as_node(ctx, value, buf->dtype)))
        return false;
    if (!tx_emit(builder->b, tx_store(ctx->c, buf, idx, buf->rank, v)))
        return tx_py_raise(ctx), false;
    return true;
}

METHOD(pybld_store, 3, 3, "buf", "indices", "value")
{
    tx_py_buffer *b = own_buffer(self, a[0]);
    PyObject *indices = PyList_Check(a[1]) ? PySequence_Tuple(a[1]) : Py_NewRef(a[1]);
    bool ok = b && indices && tx_py_store(SELF, b->buf, indices, a[2]);

    Py_XDECREF(indices);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* A value as it is bound: typed, or converted to the dtype asked for. */
static const tx_node *
bound_value(tx_py_context *ctx, PyObject *x, PyObject *dtype)
{
    tx_dtype t;

    if (!TX_PY_GIVEN(dtype))
        return tx_py_as_typed(ctx, x);
    if (!tx_py_as_dtype(ctx, dtype, &t))
        return NULL;
    const tx_node *n = tx_py_as_node(ctx, x, t);
    n = n ? tx_cast(ctx->c, t, n) : NULL;
    return n || PyErr_Occurred() ? n : tx_py_raise(ctx);
}

static tx_var *
bind_value(PyObject *self, const tx_str *name, const tx_node *value)
{
    tx_ctx *c = SELF->ctx->c;
    tx_var *v = tx_is_handle(value->dtype)
                    ? tx_new_ptr_var(c, TX_VAR_LET, name, value->elem ? value->elem : TX_VOID, (tx_scope)value->scope)
                    : tx_new_var(c, TX_VAR_LET, name, value->dtype);

    if (!v || !tx_emit(SELF->b, stmt(self, TX_OP_BIND, (tx_payload){.var = v}, &value, 1)))
        return tx_py_raise(SELF->ctx);
    return v;
}

METHOD(pybld_bind, 2, 3, "name", "value", "dtype")
{
    const tx_str *name = tx_py_intern(SELF->ctx, a[0]);
    const tx_node *value = name ? bound_value(SELF->ctx, a[1], a[2]) : NULL;
    tx_var *v = value ? bind_value(self, name, value) : NULL;

    return v ? tx_py_new_expr(SELF->ctx, v->node) : NULL;
}

/* The record of a cell: one element, used by name. */
static tx_buffer *
new_cell(PyObject *self, PyObject *name, PyObject *dtype, PyObject *scope)
{
    tx_py_context *ctx = SELF->ctx;
    const tx_str *text = tx_py_intern(ctx, name);
    const tx_node *one;
    const char *s;
    tx_scope in = TX_LOCAL;
    tx_dtype t;

    if (!text || !tx_py_as_dtype(ctx, dtype, &t))
        return NULL;
    if (TX_PY_GIVEN(scope)) {
        if (!(s = PyUnicode_AsUTF8AndSize(scope, NULL)))
            return NULL;
        if (!tx_scope_parse(s, &in))
            return tx_py_fail(ctx, TX_E_BAD_SCOPE, s);
    }
    one = tx_int(ctx->c, TX_I32, 1);
    tx_buffer *b = one ? tx_new_buffer(ctx->c, text, t, in, &one, 1, NULL) : NULL;
    if (!b)
        return tx_py_raise(ctx);
    b->flags |= TX_BUF_CELL;
    return b;
}

METHOD(pybld_cell, 2, 4, "name", "dtype", "init", "scope")
{
    tx_buffer *b = new_cell(self, a[0], a[1], a[3]);
    tx_py_context *ctx = SELF->ctx;
    const tx_node *init = NULL, *zero;

    if (!b || (TX_PY_GIVEN(a[2]) && !(init = tx_py_as_node(ctx, a[2], b->dtype))))
        return NULL;
    if (!tx_emit(SELF->b, stmt(self, TX_OP_ALLOC, (tx_payload){.buf = b}, NULL, 0)))
        return tx_py_raise(ctx);
    if (init && (!(zero = tx_int(ctx->c, TX_I32, 0)) || !tx_emit(SELF->b, tx_store(ctx->c, b, &zero, 1, init))))
        return tx_py_raise(ctx);
    return tx_py_new_buffer(ctx, b);
}

METHOD(pybld_hoist_cell, 3, 3, "name", "dtype", "level")
{
    tx_buffer *b = new_cell(self, a[0], a[1], NULL);
    long level;

    if (!b || !tx_py_as_long(a[2], 0, tx_builder_depth(SELF->b) - 1, "level", &level))
        return NULL;
    if (!tx_emit_at(SELF->b, (int)level, stmt(self, TX_OP_ALLOC, (tx_payload){.buf = b}, NULL, 0)))
        return tx_py_raise(SELF->ctx);
    return tx_py_new_buffer(SELF->ctx, b);
}

METHOD(pybld_evaluate, 1, 1, "x")
{
    const tx_node *n = tx_py_as_arg(SELF->ctx, a[0]);

    return n ? emitted(self, stmt(self, TX_OP_EVAL, (tx_payload){0}, &n, 1)) : NULL;
}

/* ---- loops --------------------------------------------------------------------------------------------------------------- */

/* The loop's dtype: what was asked for, else that of the bounds; weak bounds do not widen the others. */
static bool
loop_dtype(tx_py_context *ctx, const tx_node *const *bound, PyObject *asked, tx_dtype *out)
{
    tx_dtype t = TX_VOID;

    for (int i = 0; i < 3; i++) {
        if (!tx_is_int(bound[i]->dtype) || tx_lanes(bound[i]->dtype) != 1)
            return tx_py_fail(ctx, TX_E_LOOP_BOUND_TYPE, tx_dtype_name(ctx->c, bound[i]->dtype)), false;
        if (!(bound[i]->flags & TX_NF_WEAK))
            t = t == TX_VOID ? bound[i]->dtype : tx_promote(t, bound[i]->dtype);
    }
    for (int i = 0; i < 3 && t == TX_VOID; i++)
        if (bound[i]->dtype == TX_I64)
            t = TX_I64;
    *out = t == TX_VOID ? TX_I32 : t;
    if (!TX_PY_GIVEN(asked))
        return true;
    if (!tx_py_as_dtype(ctx, asked, out))
        return false;
    if (*out != TX_I32 && *out != TX_U32)
        return tx_py_fail(ctx, TX_E_LOOP_DTYPE), false;
    return true;
}

/* A step must be known to be positive or negative, since the turns depend on it. */
static bool
check_step(tx_py_context *ctx, const tx_node *step)
{
    int64_t v;

    if (tx_const_i64(step, &v))
        return v != 0 || (tx_py_fail(ctx, TX_E_LOOP_STEP_ZERO), false);
    tx_sb sb = {0};
    tx_print_node(step, &sb);
    tx_fail(ctx->c, ctx->c->span, TX_E_LOOP_STEP_SIGN, sb.n ? sb.text : "?");
    tx_sb_free(&sb);
    tx_py_raise(ctx);
    return false;
}

enum { F_NAME, F_START, F_STOP, F_STEP, F_KIND, F_UNROLL, F_ANNOTATIONS, F_DTYPE };

/* Converts the bounds into args[0..2]; each is taken once, so that one that reads memory goes through a temporary. */
static bool
loop_bounds(PyObject *self, PyObject *const *a, const tx_str *name, const tx_node **args, tx_dtype *t)
{
    static const char *const suffix[] = {"start", "stop", "step"};
    tx_py_context *ctx = SELF->ctx;

    for (int i = 0; i < 3; i++) {
        PyObject *x = a[F_START + i];
        args[i] = TX_PY_GIVEN(x) ? tx_py_as_node(ctx, x, TX_VOID) : tx_weak_int(ctx->c, 1);
        if (!args[i])
            return tx_py_raise(ctx), false;
    }
    if (!loop_dtype(ctx, args, a[F_DTYPE], t))
        return false;
    for (int i = 0; i < 3; i++) {
        args[i] = tx_cast(ctx->c, *t, args[i]);
        if (!args[i])
            return tx_py_raise(ctx), false;
        if (i == 2 && !check_step(ctx, args[i]))
            return false;
        if (!(args[i]->flags & TX_NF_IMPURE) || i == 0)
            continue;
        const tx_str *temp = tx_intern_f(ctx->c, "%s_%s", name->text, suffix[i]);
        tx_var *v = temp ? bind_value(self, temp, args[i]) : tx_py_raise(ctx);
        if (!v)
            return false;
        args[i] = v->node;
    }
    return true;
}

METHOD(pybld_open_for, 3, 8, "name", "start", "stop", "step", "kind", "unroll", "annotations", "dtype")
{
    static const char *const kinds[] = {"serial", "unroll", "vectorized", "parallel"};
    tx_py_context *ctx = SELF->ctx;
    const tx_str *name = tx_py_intern(ctx, a[F_NAME]);
    const tx_node *args[4] = {0};
    long unroll = 0;
    int kind = 0;
    tx_dtype t;

    if (!name || !loop_bounds(self, a, name, args, &t))
        return NULL;
    while (a[F_KIND] && kind < 4 &&
           !(PyUnicode_Check(a[F_KIND]) && PyUnicode_CompareWithASCIIString(a[F_KIND], kinds[kind]) == 0))
        kind++;
    if (kind == 4) {
        PyErr_Format(PyExc_ValueError, "no kind of loop %R", a[F_KIND]);
        return NULL;
    }
    if (TX_PY_GIVEN(a[F_UNROLL]) && !tx_py_as_long(a[F_UNROLL], -1, INT32_MAX, "unroll", &unroll))
        return NULL;
    tx_loop *loop = tx_new(ctx->c, tx_loop, 1);
    if (!loop)
        return tx_py_raise(ctx);
    loop->kind = (uint8_t)kind;
    loop->unroll = (int32_t)unroll;
    if (TX_PY_GIVEN(a[F_ANNOTATIONS]) && !tx_py_as_attrs(ctx, a[F_ANNOTATIONS], &loop->attrs, &loop->nattrs))
        return NULL;
    if (!(loop->var = tx_new_var(ctx->c, TX_VAR_LOOP, name, t)))
        return tx_py_raise(ctx);
    PyObject *r = tx_py_open_block(SELF, stmt(self, TX_OP_FOR, (tx_payload){.loop = loop}, args, 4), false);
    if (!r)
        return NULL;
    Py_DECREF(r);
    return tx_py_new_expr(ctx, loop->var->node);
}

/* ---- other blocks -------------------------------------------------------------------------------------------------------------- */

static PyObject *
open_condition(PyObject *self, unsigned op, PyObject *x, uint32_t nargs)
{
    const tx_node *cond = tx_py_as_node(SELF->ctx, x, TX_VOID), *args[3] = {0};

    if (!cond)
        return NULL;
    args[0] = tx_condition(SELF->ctx->c, cond);
    return tx_py_open_block(SELF, args[0] ? stmt(self, op, (tx_payload){0}, args, nargs) : NULL, false);
}

METHOD(pybld_open_while, 1, 1, "cond")
{
    return open_condition(self, TX_OP_WHILE, a[0], 2);
}

METHOD(pybld_open_if, 1, 1, "cond")
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

    return args[0] ? tx_py_open_block(SELF, stmt(self, TX_OP_ATTR, (tx_payload){.s = k}, args, 2), flat) : NULL;
}

METHOD(pybld_open_attr, 2, 2, "key", "value")
{
    return open_attribute(self, a[0], a[1], false);
}

METHOD(pybld_attr, 2, 2, "key", "value")
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

METHOD(pybld_assert_, 3, 3, "cond", "kind", "parts")
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
    return emitted(self, cond ? stmt(self, TX_OP_ASSERT, (tx_payload){.assertion = x}, &cond, 1) : NULL);
}

METHOD(pybld_return_, 0, 1, "value")
{
    const tx_node *value = NULL;
    tx_dtype ret = func_of(self)->ret;

    if (TX_PY_GIVEN(a[0])) {
        if (!(value = tx_py_as_node(SELF->ctx, a[0], ret)))
            return NULL;
        value = ret == TX_VOID ? tx_typed(SELF->ctx->c, value) : tx_cast(SELF->ctx->c, ret, value);
        if (!value)
            return tx_py_raise(SELF->ctx);
    }
    return emitted(self, stmt(self, TX_OP_RETURN, (tx_payload){0}, &value, 1));
}

static PyObject *
pybld_break_(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return tx_py_builder_open(SELF) ? emitted(self, stmt(self, TX_OP_BREAK, (tx_payload){0}, NULL, 0)) : NULL;
}

static PyObject *
pybld_continue_(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return tx_py_builder_open(SELF) ? emitted(self, stmt(self, TX_OP_CONTINUE, (tx_payload){0}, NULL, 0)) : NULL;
}

/* Closes what is open, checks, freezes the context. */
METHOD(pybld_finish, 0, 1, "verify")
{
    tx_py_context *ctx = SELF->ctx;
    bool verify;

    if (!tx_py_as_bool(a[0], true, &verify))
        return NULL;
    tx_func *f = tx_builder_finish(SELF->b);
    if (!f || ctx->c->nerrors)
        return tx_py_raise(ctx);
    if (verify && !tx_verify_func(ctx->c, f))
        return tx_py_raise(ctx);
    SELF->finished = ctx->frozen = true;
    return tx_py_new_function(ctx, f);
}

/* ---- attributes ----------------------------------------------------------------------------------------------------------------- */

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
pybld_get_in_loop(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(tx_builder_in_loop(SELF->b));
}

static PyObject *
pybld_get_dialect(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(func_of(self)->dialect == TX_G2 ? "g2" : "g1");
}

static PyObject *
pybld_get_name(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_str(func_of(self)->name);
}

static PyObject *
pybld_get_flags(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(func_of(self)->flags);
}

#define ROW(name, doc) {#name, TX_PY_FAST(pybld_##name), METH_FASTCALL | METH_KEYWORDS, doc}
static PyMethodDef pybld_methods[] = {
    {"activate", pybld_activate, METH_NOARGS, "become the current builder of this thread; nests"},
    {"deactivate", pybld_deactivate, METH_NOARGS, "give way to the one that was current before"},
    ROW(param, "the next parameter: a variable or an annotated buffer"),
    ROW(add_symbol, "a size known at the call"),
    ROW(set_attr, "a function attribute"),
    ROW(set_flags, "enum tx_func_flag"),
    ROW(set_name, "the function's Python name"),
    ROW(set_symbol, "global symbol, or None when private"),
    ROW(set_ret, "dtype of what the function returns"),
    ROW(match, "bind a handle parameter to a buffer, which takes its place"),
    ROW(alloc, "storage for the rest of the block"),
    ROW(decl, "a view over a pointer"),
    ROW(store, "store with conversion to the element type"),
    ROW(bind, "an immutable binding; gives the variable"),
    ROW(cell, "a mutable scalar"),
    ROW(hoist_cell, "a mutable scalar in an outer open block"),
    ROW(evaluate, "a call for its effect"),
    ROW(open_for, "open a loop; gives its variable"),
    ROW(open_while, "open a loop"),
    ROW(open_if, "open a branch"),
    {"open_else", pybld_open_else, METH_NOARGS, "open the other arm of the branch just closed"},
    ROW(open_attr, "open an attribute's block"),
    ROW(attr, "an attribute for the rest of the block"),
    {"close", pybld_close, METH_NOARGS, "close the innermost block, and the flat forms in it"},
    {"device_entry", TX_PY_FAST(tx_py_device_entry), METH_FASTCALL | METH_KEYWORDS, "open the device zone"},
    {"scope_id", TX_PY_FAST(tx_py_scope_id), METH_FASTCALL | METH_KEYWORDS, "variables of a level of the thread hierarchy"},
    ROW(assert_, "a check with an exception's name and the parts of its message"),
    ROW(return_, "leave the function"),
    {"break_", pybld_break_, METH_NOARGS, "leave the loop"},
    {"continue_", pybld_continue_, METH_NOARGS, "next turn of the loop"},
    ROW(finish, "close what is open, check, freeze the context; gives the Function"),
    {0},
};

static PyGetSetDef pybld_getset[] = {
    {"ctx", pybld_get_ctx, NULL, "its Context", NULL},
    {"zone", pybld_get_zone, NULL, "\"host\" or \"device\"", NULL},
    {"depth", pybld_get_depth, NULL, "open blocks, the function's own included", NULL},
    {"in_loop", pybld_get_in_loop, NULL, "True inside a loop", NULL},
    {"dialect", pybld_get_dialect, NULL, "\"g1\" or \"g2\"", NULL},
    {"name", pybld_get_name, NULL, "the function's Python name", NULL},
    {"flags", pybld_get_flags, NULL, "enum tx_func_flag", NULL},
    {0},
};

static PyType_Slot pybld_slots[] = {
    {Py_tp_new, pybld_new},         {Py_tp_dealloc, pybld_dealloc}, {Py_tp_traverse, pybld_traverse},
    {Py_tp_clear, pybld_clear},     {Py_tp_methods, pybld_methods}, {Py_tp_getset, pybld_getset},
    {Py_tp_doc, "Statements under construction, at the context's current span."},
    {0, NULL},
};

static PyType_Spec pybld_spec = {"tirx._core.Builder", sizeof(tx_py_builder), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, pybld_slots};

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
