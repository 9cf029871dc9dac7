/* The module tirx._core: its state, its tables, its types. Contract: tirx/_core.pyi.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

PyTypeObject *
tx_py_add_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);

    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static bool
append(PyObject **list, PyObject *row)
{
    if (!row || !*list || PyList_Append(*list, row) < 0)
        Py_CLEAR(*list);
    Py_XDECREF(row);
    return *list != NULL;
}

static PyObject *
pycore_ops(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    static const char *const rules[] = {"NONE",   "ARITH", "COMPARE", "LOGIC", "SHIFT", "SAME", "FLOAT",
                                        "FLOAT2", "BOOL1", "I32",     "U32",   "PTR",   "VOID"};
    PyObject *list = PyList_New(0);

    for (int i = 0; i < TX_OP__COUNT; i++)
        if (!append(&list, Py_BuildValue("(issisi)", i, tx_ops[i].name, tx_ops[i].spelling, (int)tx_ops[i].operands,
                                         rules[tx_ops[i].rule], (int)tx_ops[i].props)))
            break;
    return list;
}

static PyObject *
pycore_dtypes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);

    for (int i = 0; i < TX_KIND__COUNT; i++) {
        const char cls[2] = {"VBIUFGMPO"[tx_kinds[i].cls], 0};
        if (!append(&list, Py_BuildValue("(szsii)", tx_kinds[i].text, tx_kinds[i].alias, cls, (int)tx_kinds[i].bits,
                                         (int)tx_kinds[i].bytes)))
            break;
    }
    return list;
}

static PyObject *
pycore_diags(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    static const char *const classes[] = {"SYNTAX",  "VALUE",    "TYPE",   "RUNTIME", "KEY",
                                          "COMPILE", "INTERNAL", "MEMORY", "WARNING"};
    PyObject *list = PyList_New(0);

    for (int i = 1; i < TX_E__COUNT; i++)
        if (!append(&list, Py_BuildValue("(sssz)", tx_diag_name(i), classes[tx_diag_class_of(i)], tx_diag_text(i),
                                         tx_diag_help(i))))
            break;
    return list;
}

static PyObject *
pycore_scopes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);

    for (int i = 0; i < TX_SCOPE__COUNT; i++)
        if (!append(&list, PyUnicode_FromString(tx_scope_name((tx_scope)i))))
            break;
    return list;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static bool
as_dtype(PyObject *module, PyObject *x, tx_dtype *out)
{
    PyObject *text;
    bool ok = tx_py_dtype_text(tx_py_state_of(module), x, out, &text);

    if (!ok && text)
        PyErr_Format(PyExc_ValueError, "unknown dtype '%U'", text);
    Py_XDECREF(text);
    return ok;
}

static PyObject *
pycore_parse_dtype(PyObject *module, PyObject *x)
{
    tx_dtype t;

    return as_dtype(module, x, &t) ? tx_py_dtype_str(tx_py_state_of(module), t) : NULL;
}

static PyObject *
pycore_promote(PyObject *module, PyObject *args)
{
    PyObject *a, *b;
    tx_dtype x, y;

    if (!PyArg_ParseTuple(args, "OO:promote", &a, &b) || !as_dtype(module, a, &x) || !as_dtype(module, b, &y))
        return NULL;
    return tx_py_dtype_str(tx_py_state_of(module), tx_promote(x, y));
}

static PyObject *
pycore_encode(PyObject *module, PyObject *args)
{
    PyObject *dtype;
    double value;
    tx_dtype t;

    if (!PyArg_ParseTuple(args, "Od:encode", &dtype, &value) || !as_dtype(module, dtype, &t))
        return NULL;
    return PyLong_FromUnsignedLongLong(tx_encode(t, value));
}

static PyObject *
pycore_decode(PyObject *module, PyObject *args)
{
    PyObject *dtype;
    unsigned long long bits;
    tx_dtype t;

    if (!PyArg_ParseTuple(args, "OK:decode", &dtype, &bits) || !as_dtype(module, dtype, &t))
        return NULL;
    return PyFloat_FromDouble(tx_decode(t, bits));
}

/* ---- errors and tests -------------------------------------------------------------------------------------------- */

static const char *const error_names[] = {
#define X(name) #name,
    TX_PY_ERRORS(X)
#undef X
};

static PyObject *
pycore_register_errors(PyObject *module, PyObject *table)
{
    tx_py_state *s = tx_py_state_of(module);

    if (!PyDict_Check(table)) {
        PyErr_SetString(PyExc_TypeError, "a dict of exception classes is expected");
        return NULL;
    }
    for (int i = 0; i < TX_PY_ERROR__COUNT; i++) {
        PyObject *cls = PyDict_GetItemString(table, error_names[i]), *old = s->error[i];
        if (!cls || !PyExceptionClass_Check(cls)) {
            PyErr_Format(PyExc_ValueError, "the table has no class %s", error_names[i]);
            return NULL;
        }
        s->error[i] = Py_NewRef(cls);
        Py_XDECREF(old);
    }
    Py_RETURN_NONE;
}

static PyObject *
pycore_fail_alloc_at(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long n;

    if (!tx_py_as_long(arg, 0, 1L << 40, "n", &n))
        return NULL;
    tx_fail_alloc_at(n);
    Py_RETURN_NONE;
}

static PyObject *
pycore_alloc_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(tx_alloc_count());
}

static PyMethodDef pycore_methods[] = {
    {"ops", pycore_ops, METH_NOARGS, "[(id, name, spelling, operands, rule, properties)]"},
    {"dtypes", pycore_dtypes, METH_NOARGS, "[(text, alias, class letter, bits, bytes)]"},
    {"diags", pycore_diags, METH_NOARGS, "[(name, class, text, help)]"},
    {"scopes", pycore_scopes, METH_NOARGS, "names of the memory spaces"},
    {"parse_dtype", pycore_parse_dtype, METH_O, "canonical text of a dtype"},
    {"promote", pycore_promote, METH_VARARGS, "common dtype of two; \"void\" if there is none"},
    {"encode", pycore_encode, METH_VARARGS, "bit pattern of a value"},
    {"decode", pycore_decode, METH_VARARGS, "value of a bit pattern"},
    {"register_errors", pycore_register_errors, METH_O, "the exception classes, by name"},
    {"fail_alloc_at", pycore_fail_alloc_at, METH_O, "make the n-th allocation from now fail (tests)"},
    {"alloc_count", pycore_alloc_count, METH_NOARGS, "allocations since the last fail_alloc_at (tests)"},
    {0},
};

/* ---- the module -------------------------------------------------------------------------------------------------- */

static int
init_names(tx_py_state *s)
{
#define X(name)                                             \
    if (!(s->s_##name = PyUnicode_InternFromString(#name))) \
        return -1;
    TX_PY_NAMES(X)
#undef X
    for (int i = 0; i < TX_KIND__COUNT; i++)
        if (!(s->kind_name[i] = PyUnicode_InternFromString(tx_kinds[i].text)))
            return -1;
    for (int i = 0; i < TX_PY_ERROR__COUNT; i++)
        s->error[i] = Py_NewRef(i == TX_PY_EmulationWarning ? PyExc_UserWarning : PyExc_RuntimeError);
    return 0;
}

static int
pycore_exec(PyObject *module)
{
    static int (*const init[])(PyObject *) = {
        tx_py_init_context, tx_py_init_expr,    tx_py_init_node,      tx_py_init_calls,
        tx_py_init_buffer,  tx_py_init_builder, tx_py_init_function,  tx_py_init_compile,
        tx_py_init_arith,   tx_py_init_ptx,     tx_py_add_executable,
    };

    if (init_names(tx_py_state_of(module)) < 0)
        return -1;
    for (size_t i = 0; i < sizeof init / sizeof *init; i++)
        if (init[i](module) < 0)
            return -1;
    return 0;
}

#define EACH_OBJECT(s, F) \
    F((s)->Context)       \
    F((s)->Expr) F((s)->Buffer) F((s)->Region) F((s)->Builder) F((s)->Function) F((s)->Module) F((s)->builders)

static int
pycore_traverse(PyObject *module, visitproc visit, void *arg)
{
    tx_py_state *s = tx_py_state_of(module);

#define VISIT(x) Py_VISIT((PyObject *)(x));
    EACH_OBJECT(s, VISIT)
#undef VISIT
    for (int i = 0; i < TX_PY_ERROR__COUNT; i++)
        Py_VISIT(s->error[i]);
    return 0;
}

static int
pycore_clear(PyObject *module)
{
    tx_py_state *s = tx_py_state_of(module);

#define CLEAR(x) Py_CLEAR(x);
    EACH_OBJECT(s, CLEAR)
#undef CLEAR
#define X(name) Py_CLEAR(s->s_##name);
    TX_PY_NAMES(X)
#undef X
    for (int i = 0; i < TX_PY_ERROR__COUNT; i++)
        Py_CLEAR(s->error[i]);
    for (int i = 0; i < TX_KIND__COUNT; i++)
        Py_CLEAR(s->kind_name[i]);
    for (int i = 0; i < TX_OP__COUNT; i++)
        Py_CLEAR(s->op_name[i]);
    return 0;
}

static void
pycore_free(void *module)
{
    pycore_clear((PyObject *)module);
}

static PyModuleDef_Slot pycore_slots[] = {
    {Py_mod_exec, (void *)pycore_exec},
    {0, NULL},
};

static PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tirx._core",
    .m_doc = "The compiler of tirx. What it offers is described in tirx/_core.pyi.",
    .m_size = sizeof(tx_py_state),
    .m_methods = pycore_methods,
    .m_slots = pycore_slots,
    .m_traverse = pycore_traverse,
    .m_clear = pycore_clear,
    .m_free = pycore_free,
};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&module_def);
}
