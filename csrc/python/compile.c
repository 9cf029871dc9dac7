/* The compiler as functions: targets, passes, lowering, CUDA text, listings of VM code and launch plans.
 *
 * Contexts are used under the GIL, so a pass runs in a context that no other thread knows: its input is imported
 * under the GIL, which is then released until the work is done. SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

#include "cuda/cuda.h"
#include "emu/emu.h"
#include "runtime/runtime.h"

/* ---- TIRX_DUMP --------------------------------------------------------------------------------------------------- */

/* Called between passes without the GIL; prints to Python's stderr. */
static void
dump_module(const char *pass, const tx_module *m)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback, *err, *text, *r = NULL;
    tx_print_options o = {.dialect = -1, .indent = 4, .syntax_sugar = true};
    tx_sb sb = {0};

    PyErr_Fetch(&type, &value, &traceback);
    tx_sb_f(&sb, "# after %s\n", pass);
    if (!tx_print_module(m, &o, &sb))
        sb.failed = true;
    text = tx_py_take_sb(&sb);
    err = PySys_GetObject("stderr");
    if (text && err)
        r = PyObject_CallMethod(err, "write", "O", text);
    Py_XDECREF(r);
    Py_XDECREF(text);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

/* Raises the first diagnostic's text as a ValueError (a bad option is no fault of a kernel). */
static void *
raise_value_error(tx_ctx *c)
{
    for (uint32_t i = 0; i < c->diags.n; i++) {
        if (c->diags.at[i].cls == TX_DC_WARNING)
            continue;
        if (c->diags.at[i].cls == TX_DC_MEMORY)
            return PyErr_NoMemory();
        PyErr_SetString(PyExc_ValueError, c->diags.at[i].text);
        return NULL;
    }
    return PyErr_NoMemory();
}

static bool
parse_target(const char *text, tx_target *out)
{
    tx_ctx *c = tx_ctx_new();
    bool ok = c && tx_target_parse(c, text, out);

    if (!c)
        PyErr_NoMemory();
    else if (!ok)
        raise_value_error(c);
    if (c)
        tx_ctx_free(c);
    return ok;
}

/* A target's text, or NULL with an exception: a null character would hide what follows it. */
static const char *
target_text(PyObject *text)
{
    Py_ssize_t n = 0;
    const char *p = PyUnicode_AsUTF8AndSize(text, &n);

    if (p && strlen(p) != (size_t)n) {
        PyErr_Format(PyExc_ValueError, "unknown target %R", text);
        return NULL;
    }
    return p;
}

static PyObject *
pycomp_parse_target(PyObject *Py_UNUSED(module), PyObject *text)
{
    const char *p = target_text(text);
    char suffix[2] = {0};
    tx_target t;

    if (!p || !parse_target(p, &t))
        return NULL;
    suffix[0] = t.suffix;
    return Py_BuildValue("{s:s,s:i,s:s}", "kind", t.emulator ? "cpu" : "cuda", "arch", t.arch, "suffix", suffix);
}

static bool
target_with_options(PyObject *text, PyObject *options, tx_target *t)
{
    const char *p = target_text(text);
    PyObject *key, *value;
    Py_ssize_t pos = 0;

    if (!p || !parse_target(p, t))
        return false;
    t->dump = dump_module;
    t->contract = true;
    t->fast_math = t->lineinfo = t->disable_assert = false;
    if (!TX_PY_GIVEN(options))
        return true;
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options is a dict");
        return false;
    }
    const struct {
        const char *name;
        bool *at;
    } known[] = {{"contract", &t->contract},
                 {"fast_math", &t->fast_math},
                 {"lineinfo", &t->lineinfo},
                 {"disable_assert", &t->disable_assert}};
    while (PyDict_Next(options, &pos, &key, &value)) {
        size_t k = 0;
        while (k < 4 && !(PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, known[k].name) == 0))
            k++;
        if (k == 4) {
            PyErr_Format(PyExc_ValueError, "no compile option %R", key);
            return false;
        }
        if (!tx_py_as_bool(value, false, known[k].at))
            return false;
    }
    return true;
}

/* ---- modules into a fresh context -------------------------------------------------------------------------------- */

/* A Function alone is a module under its own name. */
static tx_module *
import_input(tx_py_context *ctx, PyObject *x)
{
    tx_module *m = NULL;

    if (TX_PY_IS(ctx->state, x, Module)) {
        m = tx_import_module(ctx->c, ((tx_py_module *)x)->m);
    } else if (TX_PY_IS(ctx->state, x, Function)) {
        m = tx_new_module(ctx->c, 1);
        if (m && !(m->funcs[0] = tx_import_func(ctx->c, ((tx_py_function *)x)->f)))
            m = NULL;
        if (m)
            m->names[0] = m->funcs[0]->name;
        m = m ? tx_link_module(ctx->c, m) : NULL;
    } else {
        PyErr_Format(PyExc_TypeError, "a function or a module is expected, got %s", tx_py_type_name(ctx->c, x));
        return NULL;
    }
    return m ? m : tx_py_raise(ctx);
}

typedef tx_module *(*transform)(tx_ctx *c, tx_module *m, const tx_target *t);

static tx_module *
whole_pipeline(tx_ctx *c, tx_module *m, const tx_target *t)
{
    return tx_lower(c, m, t);
}

static PyObject *
transformed(tx_py_state *s, PyObject *input, PyObject *target, PyObject *options, transform run)
{
    tx_target t;
    tx_module *m, *result;
    PyObject *self = NULL;

    if (!target_with_options(target, options, &t))
        return NULL;
    tx_py_context *ctx = tx_py_new_context(s);
    if (!ctx)
        return NULL;
    if ((m = import_input(ctx, input))) {
        Py_BEGIN_ALLOW_THREADS;
        result = run(ctx->c, m, &t);
        Py_END_ALLOW_THREADS;
        ctx->frozen = true;
        self = result && !ctx->c->nerrors ? tx_py_new_module(ctx, result) : tx_py_raise(ctx);
    }
    TX_PY_DROP(ctx);
    return self;
}

static PyObject *
pycomp_lower(PyObject *module, PyObject *args)
{
    PyObject *m, *target, *options = NULL;

    if (!PyArg_ParseTuple(args, "OU|O:lower", &m, &target, &options))
        return NULL;
    return transformed(tx_py_state_of(module), m, target, options, whole_pipeline);
}

static PyObject *
pycomp_run_pass(PyObject *module, PyObject *args)
{
    PyObject *m, *target, *options = NULL;
    const char *name;

    if (!PyArg_ParseTuple(args, "sOU|O:run_pass", &name, &m, &target, &options))
        return NULL;
    const tx_pass *pass = tx_pass_find(name);
    if (!pass) {
        PyErr_Format(PyExc_ValueError, "no pass '%s'", name);
        return NULL;
    }
    return transformed(tx_py_state_of(module), m, target, options, pass->run);
}

static PyObject *
pycomp_passes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);

    for (const tx_pass *p = tx_passes; list && p->name; p++) {
        PyObject *row = Py_BuildValue("(ssN)", p->name, p->aliases ? p->aliases : "", PyBool_FromLong(p->in_pipeline));
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

static tx_py_module *
as_module(PyObject *module, PyObject *x)
{
    if (TX_PY_IS(tx_py_state_of(module), x, Module))
        return (tx_py_module *)x;
    PyErr_SetString(PyExc_TypeError, "a lowered Module is expected");
    return NULL;
}

static PyObject *
pycomp_cuda_source(PyObject *module, PyObject *args)
{
    PyObject *x, *target, *options = NULL, *text, *map, *pair = NULL;
    tx_line_map lines = {0};
    tx_py_module *m;
    tx_sb sb = {0};
    tx_target t;

    if (!PyArg_ParseTuple(args, "OU|O:cuda_source", &x, &target, &options) || !(m = as_module(module, x)) ||
        !target_with_options(target, options, &t))
        return NULL;
    if (!tx_cuda_emit(m->ctx->c, m->m, &t, &sb, &lines)) {
        tx_sb_free(&sb);
        tx_free(lines.span);
        return tx_py_raise(m->ctx);
    }
    text = tx_py_take_sb(&sb);
    map = text ? PyBytes_FromStringAndSize((const char *)lines.span, (Py_ssize_t)(lines.n * sizeof *lines.span)) : NULL;
    if (map)
        pair = PyTuple_Pack(2, text, map);
    Py_XDECREF(text);
    Py_XDECREF(map);
    tx_free(lines.span);
    return pair;
}

static PyObject *
pycomp_cuda_needs(PyObject *module, PyObject *x)
{
    tx_py_module *m = as_module(module, x);
    char suffix[2] = {0};

    if (!m)
        return NULL;
    int arch = tx_cuda_floor(m->m, &suffix[0]);
    tx_cuda_needs needs = tx_cuda_needs_of(m->m);
    return Py_BuildValue("{s:(is),s:N,s:N,s:N}", "floor", arch, suffix, "toolkit_headers",
                         PyBool_FromLong(needs.toolkit_headers), "int128", PyBool_FromLong(needs.int128), "injected",
                         PyBool_FromLong(needs.injected));
}

static PyObject *
pycomp_vm_code(PyObject *module, PyObject *x)
{
    tx_py_module *m = as_module(module, x);
    tx_sb sb = {0};

    if (!m)
        return NULL;
    for (uint32_t i = 0; i < m->m->nfuncs; i++) {
        if (!(m->m->funcs[i]->flags & TX_FUNC_KERNEL))
            continue;
        tx_emu_program *p = tx_emu_compile(m->ctx->c, m->m->funcs[i]);
        if (!p) {
            tx_sb_free(&sb);
            return tx_py_raise(m->ctx);
        }
        tx_emu_disassemble(p, &sb);
        tx_emu_free(p);
    }
    return tx_py_take_sb(&sb);
}

static PyObject *
pycomp_plan_text(PyObject *module, PyObject *x)
{
    tx_py_module *m = as_module(module, x);
    tx_sb sb = {0};

    if (!m)
        return NULL;
    for (uint32_t i = 0; i < m->m->nfuncs; i++) {
        if (!(m->m->funcs[i]->flags & TX_FUNC_HOST))
            continue;
        tx_plan *p = tx_plan_compile(m->ctx->c, m->m, m->m->funcs[i]);
        if (!p) {
            tx_sb_free(&sb);
            return tx_py_raise(m->ctx);
        }
        tx_plan_print(p, &sb);
        tx_plan_free(p);
    }
    return tx_py_take_sb(&sb);
}

static PyMethodDef pycomp_methods[] = {
    {"parse_target", pycomp_parse_target, METH_O, "{kind, arch, suffix} of a target's text"},
    {"passes", pycomp_passes, METH_NOARGS, "[(name, aliases, in pipeline)]"},
    {"run_pass", pycomp_run_pass, METH_VARARGS, "one pass over a module: (name, module, target, options)"},
    {"lower", pycomp_lower, METH_VARARGS, "all passes: (module or function, target, options)"},
    {"cuda_source", pycomp_cuda_source, METH_VARARGS, "CUDA text of a lowered module, and a span for each line"},
    {"cuda_needs", pycomp_cuda_needs, METH_O, "least architecture, headers and types that the text needs"},
    {"vm_code", pycomp_vm_code, METH_O, "listing of the emulator's code"},
    {"plan_text", pycomp_plan_text, METH_O, "listing of the launch plan"},
    {0},
};

int
tx_py_init_compile(PyObject *module)
{
    return PyModule_AddFunctions(module, pycomp_methods);
}
