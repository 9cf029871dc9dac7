/* Function and Module: finished, immutable IR. A Function lives in the context that it was built in, which is frozen; a
 * Module imports its functions into a context of its own. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

#define FUNC(self) (((tx_py_function *)(self))->f)
#define MOD(self) (((tx_py_module *)(self))->m)
#define CTX(self) (((tx_py_object *)(self))->ctx)

PyObject *
tx_py_new_function(tx_py_context *ctx, tx_func *f)
{
    tx_py_function *self = (tx_py_function *)PyType_GenericAlloc(ctx->state->Function, 0);

    if (!self)
        return NULL;
    self->ctx = TX_PY_HOLD(ctx);
    self->f = f;
    return (PyObject *)self;
}

PyObject *
tx_py_new_module(tx_py_context *ctx, tx_module *m)
{
    tx_py_module *self = (tx_py_module *)PyType_GenericAlloc(ctx->state->Module, 0);

    if (!self)
        return NULL;
    self->ctx = TX_PY_HOLD(ctx);
    self->m = m;
    return (PyObject *)self;
}

static void
pyfn_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    TX_PY_DROP(CTX(self));
    PyObject_Free(self);
    TX_PY_DROP(type);
}

static PyObject *
pyfn_get_ctx(PyObject *self, void *Py_UNUSED(closure))
{
    return (PyObject *)TX_PY_HOLD(CTX(self));
}

/* ---- attributes of functions and modules ------------------------------------------------------------------------- */

PyObject *
tx_py_attrs(tx_py_context *ctx, const tx_attr *attrs, uint32_t n)
{
    PyObject *dict = PyDict_New();

    for (uint32_t i = 0; dict && i < n; i++) {
        PyObject *key = tx_py_str(attrs[i].key), *value = key ? tx_py_from_attr(ctx, attrs[i].value) : NULL;
        if (!value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *
pyfn_get_attrs(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_func *f = FUNC(self);
    PyObject *dict = tx_py_attrs(CTX(self), f->attrs, f->nattrs);

    if (dict && f->symbol && !PyDict_GetItemString(dict, "global_symbol")) {
        PyObject *symbol = tx_py_str(f->symbol);
        if (!symbol || PyDict_SetItemString(dict, "global_symbol", symbol) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(symbol);
    }
    return dict;
}

/* A copy of the function's head without one attribute, with room for one more. */
static tx_func *
copy_without(tx_py_context *ctx, const tx_func *f, const tx_str *key, tx_attr **attrs)
{
    tx_func *g = tx_new(ctx->c, tx_func, 1);

    *attrs = g ? tx_new(ctx->c, tx_attr, f->nattrs + 1) : NULL;
    if (!*attrs)
        return tx_py_raise(ctx);
    *g = *f;
    g->attrs = *attrs;
    g->nattrs = 0;
    for (uint32_t i = 0; i < f->nattrs; i++)
        if (f->attrs[i].key != key)
            (*attrs)[g->nattrs++] = f->attrs[i];
    return g;
}

static PyObject *
pyfn_with_attr(PyObject *self, PyObject *args)
{
    tx_py_context *ctx = CTX(self);
    PyObject *name, *value;
    tx_attr *attrs;

    if (!PyArg_ParseTuple(args, "UO:with_attr", &name, &value))
        return NULL;
    const tx_str *key = tx_py_intern(ctx, name);
    tx_func *g = key ? copy_without(ctx, FUNC(self), key, &attrs) : NULL;
    if (!g)
        return NULL;
    if (strcmp(key->text, "global_symbol") == 0) {
        if (value != Py_None && !(g->symbol = tx_py_intern(ctx, value)))
            return NULL;
        g->symbol = value == Py_None ? NULL : g->symbol;
        return tx_py_new_function(ctx, g);
    }
    attrs[g->nattrs].key = key;
    if (!(attrs[g->nattrs++].value = tx_py_as_attr(ctx, key->text, value)))
        return NULL;
    return tx_py_new_function(ctx, g);
}

static PyObject *
pyfn_without_attr(PyObject *self, PyObject *name)
{
    tx_py_context *ctx = CTX(self);
    const tx_str *key = tx_py_intern(ctx, name);
    tx_attr *attrs;
    tx_func *g = key ? copy_without(ctx, FUNC(self), key, &attrs) : NULL;

    if (!g)
        return NULL;
    if (strcmp(key->text, "global_symbol") == 0)
        g->symbol = NULL;
    return tx_py_new_function(ctx, g);
}

static PyObject *
pyfn_get_name(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_str(FUNC(self)->name);
}

static PyObject *
pyfn_get_symbol(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_str(FUNC(self)->symbol);
}

static PyObject *
pyfn_get_dialect(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(FUNC(self)->dialect == TX_G2 ? "g2" : "g1");
}

static PyObject *
pyfn_get_flags(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(FUNC(self)->flags);
}

static PyObject *
pyfn_get_ret_type(PyObject *self, void *Py_UNUSED(closure))
{
    tx_dtype t = FUNC(self)->ret;

    return tx_class(t) == TX_CLS_V ? Py_NewRef(Py_None) : tx_py_dtype_str(CTX(self)->state, t);
}

static PyObject *
pyfn_get_params(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_func *f = FUNC(self);
    PyObject *list = PyList_New((Py_ssize_t)f->nparams);

    for (uint32_t i = 0; list && i < f->nparams; i++) {
        const tx_param *p = &f->params[i];
        PyObject *x = p->buffer ? tx_py_new_buffer(CTX(self), p->buffer) : tx_py_new_expr(CTX(self), p->var->node);
        PyObject *pair = x ? Py_BuildValue("(sN)", p->name->text, x) : NULL;
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A statement of this function (another function's body, say), as the new body. */
static PyObject *
pyfn_with_body(PyObject *self, PyObject *body)
{
    tx_py_context *ctx = CTX(self);
    tx_func *g;

    if (!tx_py_is_expr(body) || !tx_is_stmt(((tx_py_expr *)body)->node)) {
        PyErr_SetString(PyExc_TypeError, "a statement is expected, as the body of a function is");
        return NULL;
    }
    if (((tx_py_expr *)body)->ctx != ctx)
        return tx_py_fail(ctx, TX_E_OTHER_CONTEXT, "the body");
    if (!(g = tx_new(ctx->c, tx_func, 1)))
        return tx_py_raise(ctx);
    *g = *FUNC(self);
    g->body = ((tx_py_expr *)body)->node;
    return tx_verify_func(ctx->c, g) ? tx_py_new_function(ctx, g) : tx_py_raise(ctx);
}

static PyObject *
pyfn_get_body(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_new_expr(CTX(self), FUNC(self)->body);
}

/* ---- specialising --------------------------------------------------------------------------------------------- */

/* The place of a scalar parameter or symbol that a key names or is: in params, or behind them in symbols; -1: none. */
static int64_t
find_scalar(const tx_func *f, PyObject *key)
{
    const tx_var *v =
        tx_py_is_expr(key) && ((tx_py_expr *)key)->node->op == TX_OP_VAR ? ((tx_py_expr *)key)->node->u.var : NULL;
    bool text = PyUnicode_Check(key);

    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *p = &f->params[i];
        if (!p->buffer && p->var && !tx_is_handle(p->var->dtype) &&
            (p->var == v || (text && PyUnicode_CompareWithASCIIString(key, p->name->text) == 0)))
            return i;
    }
    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (f->symbols[i] == v || (text && PyUnicode_CompareWithASCIIString(key, f->symbols[i]->name->text) == 0))
            return (int64_t)f->nparams + i;
    return -1;
}

/* Maps the variables of g, a copy of f, that the dict fixes to their values. */
static bool
fix_values(tx_py_context *ctx, const tx_func *f, tx_func *g, PyObject *items, tx_rewriter *r)
{
    for (Py_ssize_t k = 0; k < PyList_Size(items); k++) {
        PyObject *pair = PyList_GetItem(items, k), *key = PyTuple_GetItem(pair, 0);
        int64_t i = find_scalar(f, key);
        if (i < 0) {
            PyErr_Format(PyExc_ValueError, "%s has no scalar parameter or symbol %R", f->name->text, key);
            return false;
        }
        tx_var *v = i < g->nparams ? g->params[i].var : g->symbols[i - g->nparams];
        const tx_node *value = tx_py_literal(ctx, v->dtype, PyTuple_GetItem(pair, 1));
        if (!value)
            return false;
        if (value->op != TX_OP_INT && value->op != TX_OP_FLOAT) {
            PyErr_Format(PyExc_TypeError, "the value of '%s' is not a constant", v->name->text);
            return false;
        }
        if (!tx_map_put_ptr(&r->vars, v, value))
            return PyErr_NoMemory(), false;
    }
    return true;
}

/* Takes the fixed variables out of the head and puts their values into buffers and body. */
static bool
rewrite_fixed(tx_func *g, tx_rewriter *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->nparams; i++) {
        tx_param p = g->params[i];
        if (!p.buffer && tx_map_ptr(&r->vars, p.var))
            continue;
        if (p.buffer && !(p.buffer = tx_rewrite_buffer(r, p.buffer)))
            return false;
        g->params[n++] = p;
    }
    g->nparams = n;
    n = 0;
    for (uint32_t i = 0; i < g->nsymbols; i++)
        if (!tx_map_ptr(&r->vars, g->symbols[i]))
            g->symbols[n++] = g->symbols[i];
    g->nsymbols = n;
    return (g->body = tx_rewrite(r, g->body)) != NULL && tx_verify_func(r->c, g);
}

static PyObject *
pyfn_specialize(PyObject *self, PyObject *dict)
{
    static const tx_rewrite_fn plain[TX_OP__COUNT] = {0};
    tx_rewriter r = {.fn = plain, .refold = true};
    PyObject *items = PyDict_Check(dict) ? PyDict_Items(dict) : NULL, *made = NULL;

    if (!items) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "specialize() takes a dict of parameters and values");
        return NULL;
    }
    tx_py_context *ctx = tx_py_new_context(CTX(self)->state);
    tx_func *g = ctx ? tx_import_func(ctx->c, FUNC(self)) : NULL;
    if (g) {
        r.c = ctx->c;
        if (fix_values(ctx, FUNC(self), g, items, &r))
            made = rewrite_fixed(g, &r) ? tx_py_new_function(ctx, g) : tx_py_raise(ctx);
        ctx->frozen = true;
        tx_rewriter_free(&r);
    } else if (ctx) {
        tx_py_raise(ctx);
    }
    Py_DECREF(items);
    TX_PY_DROP(ctx);
    return made;
}

static PyObject *
pyfn_call(PyObject *self, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    const char *name = FUNC(self)->name->text;

    return PyErr_Format(PyExc_TypeError, "'%s' is not compiled; write exe = tirx.compile(%s), then exe(...)", name,
                        name);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* What script() and show() take; the last row is of the originals, accepted and without effect. */
#define PRINT_NAMES                                                                                               \
    "name", "dialect", "indent_spaces", "print_line_numbers", "syntax_sugar", "header", "show_meta", "int_dtype", \
        "float_dtype", "verbose_expr", "num_context_lines", "extra_config", NULL

/* Options from the arguments in the order of PRINT_NAMES. */
static bool
print_options(PyObject *const *a, tx_print_options *o)
{
    const char *dialect;
    long indent = 4;

    *o = (tx_print_options){.dialect = -1};
    if (TX_PY_GIVEN(a[0]) && !(o->name = PyUnicode_AsUTF8AndSize(a[0], NULL)))
        return false;
    if (TX_PY_GIVEN(a[1])) {
        if (!(dialect = PyUnicode_AsUTF8AndSize(a[1], NULL)))
            return false;
        if (strcmp(dialect, "g1") != 0 && strcmp(dialect, "g2") != 0) {
            PyErr_Format(PyExc_ValueError, "dialect is \"g1\" or \"g2\", not '%s'", dialect);
            return false;
        }
        o->dialect = dialect[1] == '2' ? TX_G2 : TX_G1;
    }
    if (TX_PY_GIVEN(a[2]) && !tx_py_as_long(a[2], 1, 64, "indent_spaces", &indent))
        return false;
    o->indent = (int)indent;
    return tx_py_as_bool(a[3], false, &o->line_numbers) && tx_py_as_bool(a[4], true, &o->syntax_sugar) &&
           tx_py_as_bool(a[5], true, &o->header);
}

static PyObject *
printed(PyObject *self, PyObject *const *options)
{
    bool is_function = TX_PY_IS(CTX(self)->state, self, Function), ok;
    tx_print_options o;
    tx_sb sb = {0};

    if (!print_options(options, &o))
        return NULL;
    ok = is_function ? tx_print_func(FUNC(self), &o, &sb) : tx_print_module(MOD(self), &o, &sb);
    sb.failed |= !ok;
    return tx_py_take_sb(&sb);
}

static PyObject *
pyfn_script(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const tx_py_sig sig = {"script", 0, 0, {PRINT_NAMES}};
    PyObject *a[20];

    return tx_py_parse(&sig, args, nargs, kwnames, a) ? printed(self, a) : NULL;
}

static PyObject *
pyfn_str(PyObject *self)
{
    PyObject *none[20] = {0};

    return printed(self, none);
}

static PyObject *
pyfn_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<tirx.PrimFunc %s>", FUNC(self)->name->text);
}

static PyObject *
pyfn_structural_hash(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromUnsignedLongLong(tx_hash_func(FUNC(self)));
}

/* show(style=None, **options of script): printing is Python's, with colours if there is a terminal. */
static PyObject *
pyfn_show(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("tirx.module"), *show = NULL, *first = NULL, *all = NULL, *out = NULL;

    if (module && (show = PyObject_GetAttrString(module, "show")) && (first = PyTuple_Pack(1, self)) &&
        (all = PySequence_Concat(first, args)))
        out = PyObject_Call(show, all, kwargs);
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(show);
    Py_XDECREF(module);
    return out;
}

static PyMethodDef pyfn_methods[] = {
    {"script", TX_PY_FAST(pyfn_script), METH_FASTCALL | METH_KEYWORDS, "source text that parses back to this function"},
    {"show", TX_PY_FAST(pyfn_show), METH_VARARGS | METH_KEYWORDS, "print the source text, coloured on a terminal"},
    {"with_attr", pyfn_with_attr, METH_VARARGS, "a copy with an attribute"},
    {"without_attr", pyfn_without_attr, METH_O, "a copy without an attribute"},
    {"with_body", pyfn_with_body, METH_O, "a copy with another body"},
    {"specialize", pyfn_specialize, METH_O, "a copy with scalar parameters and symbols fixed to values"},
    {"structural_hash", pyfn_structural_hash, METH_NOARGS, "equal for structurally equal functions"},
    {0},
};

static PyGetSetDef pyfn_getset[] = {
    {"ctx", pyfn_get_ctx, NULL, "its Context", NULL},
    {"__name__", pyfn_get_name, NULL, "the Python name", NULL},
    {"symbol", pyfn_get_symbol, NULL, "global symbol, or None when private", NULL},
    {"dialect", pyfn_get_dialect, NULL, "\"g1\" or \"g2\"", NULL},
    {"flags", pyfn_get_flags, NULL, "enum tx_func_flag", NULL},
    {"body", pyfn_get_body, NULL, "the statement that it is", NULL},
    {"params", pyfn_get_params, NULL, "[(name, Expr or Buffer)] in call order", NULL},
    {"attrs", pyfn_get_attrs, NULL, "attributes as Python values", NULL},
    {"ret_type", pyfn_get_ret_type, NULL, "dtype of the result, or None", NULL},
    {0},
};

static PyType_Slot pyfn_slots[] = {
    {Py_tp_dealloc, pyfn_dealloc},
    {Py_tp_repr, pyfn_repr},
    {Py_tp_str, pyfn_str},
    {Py_tp_call, pyfn_call},
    {Py_tp_methods, pyfn_methods},
    {Py_tp_getset, pyfn_getset},
    {Py_tp_doc, "An immutable kernel or host function. == is identity; tirx.structural_equal compares."},
    {0, NULL},
};

static PyType_Spec pyfn_spec = {"tirx.Function", sizeof(tx_py_function), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, pyfn_slots};

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static tx_module *
import_dict(tx_py_context *ctx, PyObject *items)
{
    Py_ssize_t n = PyList_Size(items);
    tx_module *m = tx_new_module(ctx->c, (uint32_t)n);

    if (!m)
        return tx_py_raise(ctx);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GetItem(items, i), *f = PyTuple_GetItem(pair, 1);
        if (!TX_PY_IS(ctx->state, f, Function)) {
            PyErr_Format(PyExc_TypeError, "a module holds functions, got %s", tx_py_type_name(ctx->c, f));
            return NULL;
        }
        if (!(m->names[i] = tx_py_intern(ctx, PyTuple_GetItem(pair, 0))))
            return NULL;
        if (!(m->funcs[i] = tx_import_func(ctx->c, FUNC(f))))
            return tx_py_raise(ctx);
    }
    m = tx_link_module(ctx->c, m);
    return m ? m : tx_py_raise(ctx);
}

static bool
set_module_attrs(tx_py_context *ctx, tx_module *m, PyObject *attrs)
{
    PyObject *items = PyDict_Items(attrs);
    Py_ssize_t n = items ? PyList_Size(items) : 0;
    tx_attr *to = items ? tx_new(ctx->c, tx_attr, n ? n : 1) : NULL;
    bool ok = to != NULL;

    if (items && !to)
        tx_py_raise(ctx);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *pair = PyList_GetItem(items, i);
        ok = (to[i].key = tx_py_intern(ctx, PyTuple_GetItem(pair, 0))) &&
             (to[i].value = tx_py_as_attr(ctx, to[i].key->text, PyTuple_GetItem(pair, 1)));
    }
    m->attrs = to;
    m->nattrs = ok ? (uint32_t)n : 0;
    Py_XDECREF(items);
    return ok;
}

static PyObject *
pymod_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"functions", "attrs", NULL};
    tx_py_state *s = PyType_GetModuleState(type);
    PyObject *dict, *attrs = NULL, *items, *self = NULL;

    if (!s || !PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O!:Module", (char **)names, &PyDict_Type, &dict,
                                           &PyDict_Type, &attrs))
        return NULL;
    tx_py_context *ctx = tx_py_new_context(s);
    items = ctx ? PyDict_Items(dict) : NULL;
    tx_module *m = items ? import_dict(ctx, items) : NULL;
    if (m && (!attrs || set_module_attrs(ctx, m, attrs))) {
        ctx->frozen = true;
        self = tx_py_new_module(ctx, m);
    }
    Py_XDECREF(items);
    TX_PY_DROP(ctx);
    return self;
}

static PyObject *
pymod_subscript(PyObject *self, PyObject *key)
{
    const tx_module *m = MOD(self);

    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;

    PyErr_Clear(); /* a lone surrogate is no name */
    for (uint32_t i = 0; name && i < m->nfuncs; i++)
        if (strcmp(name, m->names[i]->text) == 0)
            return tx_py_new_function(CTX(self), m->funcs[i]);
    PyErr_SetObject(PyExc_KeyError, key);
    return NULL;
}

static Py_ssize_t
pymod_length(PyObject *self)
{
    return (Py_ssize_t)MOD(self)->nfuncs;
}

static PyObject *
pymod_get_names(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_module *m = MOD(self);
    PyObject *list = PyList_New((Py_ssize_t)m->nfuncs);

    for (uint32_t i = 0; list && i < m->nfuncs; i++) {
        PyObject *name = tx_py_str(m->names[i]);
        if (!name || PyList_SetItem(list, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *
pymod_get_attrs(PyObject *self, void *Py_UNUSED(closure))
{
    return tx_py_attrs(CTX(self), MOD(self)->attrs, MOD(self)->nattrs);
}

static PyMethodDef pymod_methods[] = {
    {"script", TX_PY_FAST(pyfn_script), METH_FASTCALL | METH_KEYWORDS, "source text that parses back to this module"},
    {0},
};

static PyGetSetDef pymod_getset[] = {
    {"ctx", pyfn_get_ctx, NULL, "its Context", NULL},
    {"names", pymod_get_names, NULL, "names of the functions, in order", NULL},
    {"attrs", pymod_get_attrs, NULL, "attributes as Python values", NULL},
    {0},
};

static PyType_Slot pymod_slots[] = {
    {Py_tp_new, pymod_new},
    {Py_tp_dealloc, pyfn_dealloc},
    {Py_tp_methods, pymod_methods},
    {Py_tp_getset, pymod_getset},
    {Py_tp_str, pyfn_str},
    {Py_mp_subscript, pymod_subscript},
    {Py_mp_length, pymod_length},
    {Py_tp_doc, "An immutable module: functions by name, imported into a context of its own."},
    {0, NULL},
};

static PyType_Spec pymod_spec = {"tirx.Module", sizeof(tx_py_module), 0, Py_TPFLAGS_DEFAULT, pymod_slots};

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static PyObject *
pyfn_structural_equal(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    tx_py_state *s = tx_py_state_of(module);

    for (Py_ssize_t i = 0; i < 2; i++) {
        if (nargs == 2 && (TX_PY_IS(s, args[i], Function) || TX_PY_IS(s, args[i], Module)))
            continue;
        PyErr_SetString(PyExc_TypeError, "structural_equal() takes two functions or two modules");
        return NULL;
    }
    if (Py_TYPE(args[0]) != Py_TYPE(args[1]))
        Py_RETURN_FALSE;
    return PyBool_FromLong(TX_PY_IS(s, args[0], Function) ? tx_equal_funcs(FUNC(args[0]), FUNC(args[1]))
                                                          : tx_equal_modules(MOD(args[0]), MOD(args[1])));
}

static PyMethodDef pyfn_module_methods[] = {
    {"structural_equal", TX_PY_FAST(pyfn_structural_equal), METH_FASTCALL, "equal but for names and places"},
    {0},
};

int
tx_py_init_function(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!(s->Function = tx_py_add_type(module, &pyfn_spec)) || !(s->Module = tx_py_add_type(module, &pymod_spec)))
        return -1;
    return PyModule_AddFunctions(module, pyfn_module_methods);
}
