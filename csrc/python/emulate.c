/* A launch on the emulator, and what it asks of Python on the way: stand-ins for injected functions, printf, Ctrl-C, reports.
 * The GIL is released while kernels run and taken in the callbacks, which may come from any thread; an exception raised
 * there is kept in the run until it has ended. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <stdio.h>
#include <time.h>

enum { POLL_NS = 20 * 1000 * 1000, STANDIN_ARGS = 32, MAX_NESTED = 16 };


void
tx_py_keep_error(tx_py_run *r)
{
    if (r->error[0])
        PyErr_Clear(); /* the first one is told */
    else
        PyErr_Fetch(&r->error[0], &r->error[1], &r->error[2]);
}

void
tx_py_restore_error(tx_py_run *r)
{
    PyErr_Restore(r->error[0], r->error[1], r->error[2]);
    r->error[0] = r->error[1] = r->error[2] = NULL;
}

/* ---- reports ----------------------------------------------------------------------------------------------------------- */

static PyObject *
report_lines(const tx_emu_report *r)
{
    PyObject *list = PyList_New(0), *lines = NULL;

    for (uint32_t i = 0; list && i < r->nagents; i++) {
        PyObject *line = r->agent[i].line ? PyLong_FromUnsignedLong(r->agent[i].line) : NULL;
        if (line && PyList_Append(list, line) != 0)
            Py_CLEAR(list);
        Py_XDECREF(line);
    }
    if (list && !PyErr_Occurred())
        lines = PyFrozenSet_New(list);
    Py_XDECREF(list);
    return lines;
}

/* ((function, caller, file, line), ...), the innermost call first. */
static PyObject *
report_inlined(const tx_emu_program *p, const tx_emu_agent *a)
{
    PyObject *list = PyList_New(0), *calls = NULL;

    for (const tx_emu_call *e = tx_emu_call_of(p, a->call); list && e; e = tx_emu_call_of(p, e->next)) {
        PyObject *call = Py_BuildValue("(sssI)", e->function, e->caller, e->file, e->line);
        if (!call || PyList_Append(list, call) != 0)
            Py_CLEAR(list);
        Py_XDECREF(call);
    }
    if (list)
        calls = PyList_AsTuple(list);
    Py_XDECREF(list);
    return calls;
}

static PyObject *
report_agents(const tx_emu_program *p, const tx_emu_report *r)
{
    PyObject *list = PyList_New(0), *agents = NULL;

    for (uint32_t i = 0; list && i < r->nagents; i++) {
        const tx_emu_agent *a = &r->agent[i];
        PyObject *d = Py_BuildValue("{s(III)s(III)sisiszsIsIszsN}", "cta", a->cta[0], a->cta[1], a->cta[2], "thread",
                                    a->thread[0], a->thread[1], a->thread[2], "warp", (int)a->warp, "lane",
                                    (int)a->lane, "file", a->file, "line", a->line, "column", a->col + 1, "role",
                                    a->role, "inlined", report_inlined(p, a));
        if (!d || PyList_Append(list, d) != 0)
            Py_CLEAR(list);
        Py_XDECREF(d);
    }
    if (list)
        agents = PyList_AsTuple(list);
    Py_XDECREF(list);
    return agents;
}

/* Takes over value; false with an exception when either fails. */
static bool
emulate_set_attribute(PyObject *x, PyObject *name, PyObject *value)
{
    bool ok = value && PyObject_SetAttr(x, name, value) == 0;

    Py_XDECREF(value);
    return ok;
}

static PyObject *
text_or_none(const char *text)
{
    return text && *text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

PyObject *
tx_py_report(tx_py_rt *rt, const tx_emu_program *p, const tx_emu_report *r)
{
    tx_sb sb = {0};
    PyObject *text, *x;

    tx_emu_render(p, r, &sb);
    while (sb.n && sb.text[sb.n - 1] == '\n')
        sb.n--;
    text = tx_py_take_sb(&sb);
    if (!text)
        return NULL;
    x = PyObject_CallFunctionObjArgs(rt->state->error[r->warning ? TX_PY_EmulationWarning : TX_PY_EmulationError], text,
                                     NULL);
    Py_DECREF(text);
    if (x && emulate_set_attribute(x, rt->s_kind, PyUnicode_FromString(r->kind)) &&
        emulate_set_attribute(x, rt->s_buffer, text_or_none(r->buffer)) &&
        emulate_set_attribute(x, rt->s_element, text_or_none(r->element)) &&
        emulate_set_attribute(x, rt->s_lines, report_lines(r)) &&
        emulate_set_attribute(x, rt->s_agents, report_agents(p, r)))
        return x;
    Py_XDECREF(x);
    return NULL;
}

/* warnings.warn_explicit(x, None, file, line) at the kernel's line. */
static bool
warn(PyObject *x, const tx_emu_report *r)
{
    const char *file = r->nagents && r->agent[0].file ? r->agent[0].file : "<kernel>";
    unsigned line = r->nagents ? r->agent[0].line : 1;
    PyObject *warnings = PyImport_ImportModule("warnings"), *done = NULL;

    if (warnings)
        done = PyObject_CallMethod(warnings, "warn_explicit", "OOsI", x, Py_None, file, line);
    Py_XDECREF(warnings);
    Py_XDECREF(done);
    return done != NULL;
}

static void
on_report(void *self, const tx_emu_program *p, const tx_emu_report *r)
{
    tx_py_run *run = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *x = tx_py_report(run->rt, p, r);
    bool ok = x != NULL;

    if (x && run->reports)
        ok = PyList_Append(run->reports, x) == 0;
    else if (x)
        ok = warn(x, r);
    Py_XDECREF(x);
    if (!ok)
        tx_py_keep_error(run);
    PyGILState_Release(gil);
}

/* ---- stand-ins, output, interrupts ---------------------------------------------------------------------------------------- */

static PyObject *
find_extern(const tx_py_run *run, const char *name)
{
    return run->exe->externs ? PyDict_GetItemString(run->exe->externs, name) : NULL; /* borrowed */
}

static bool
on_has_extern(void *self, const char *name)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    bool has = find_extern(self, name) != NULL;

    PyGILState_Release(gil);
    return has;
}

/* Callbacks around what this thread runs now: each may call an executable again, and takes a deep piece of the C stack.
 * A run hands its number to its callbacks, which may come from threads of its pool. */
static _Thread_local int nested_callbacks;

static PyObject *
call_nested(const tx_py_run *run, PyObject *f, PyObject *args, const char *name)
{
    int around = nested_callbacks;
    PyObject *value;

    if (run->nested == MAX_NESTED)
        return PyErr_Format(PyExc_RecursionError, "'%s' was called by a kernel within %d other such calls", name,
                            MAX_NESTED);
    nested_callbacks = run->nested + 1;
    value = PyObject_CallObject(f, args);
    nested_callbacks = around;
    return value;
}

static bool
call_standin(tx_py_run *run, const char *name, uint32_t nactive, uint32_t nargs, const tx_dtype *types,
             void *const *arrays, tx_dtype ret, void *result)
{
    PyObject *f = find_extern(run, name), *args, *value = NULL;
    bool ok = f != NULL;

    if (!f) {
        PyErr_Format(PyExc_RuntimeError, "'%s' has no stand-in", name);
        return false;
    }
    args = PyTuple_New((Py_ssize_t)nargs);
    for (uint32_t i = 0; args && ok && i < nargs; i++) {
        PyObject *a = tx_py_npy_vector(types[i], nactive, arrays[i]);
        ok = a && PyTuple_SetItem(args, (Py_ssize_t)i, a) == 0;
    }
    if (args && ok)
        value = call_nested(run, f, args, name);
    ok = value && (ret == TX_VOID || tx_py_npy_values(value, ret, nactive, result));
    Py_XDECREF(value);
    Py_XDECREF(args);
    return ok;
}

static bool
on_extern_call(void *self, const char *name, uint32_t nactive, uint32_t nargs, const tx_dtype *types,
               void *const *arrays, tx_dtype ret, void *result)
{
    tx_py_run *run = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    bool ok = call_standin(run, name, nactive, nargs, types, arrays, ret, result);

    if (!ok)
        tx_py_keep_error(run);
    PyGILState_Release(gil);
    return ok;
}

static void
on_print(void *self, const char *text, size_t n)
{
    tx_py_run *run = self;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *out = PySys_GetObject("stdout"), *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace"), *done = NULL;

    if (s && out && out != Py_None)
        done = PyObject_CallMethodObjArgs(out, run->rt->s_write, s, NULL);
    if (PyErr_Occurred())
        tx_py_keep_error(run);
    Py_XDECREF(done);
    Py_XDECREF(s);
    PyGILState_Release(gil);
}

static int64_t
now_ns(void)
{
    struct timespec t;

    return timespec_get(&t, TIME_UTC) == TIME_UTC ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

static bool
on_interrupted(void *self)
{
    tx_py_run *run = self;
    int64_t now;
    PyGILState_STATE gil;
    bool stop;

    if (run->error[0])
        return true; /* a callback raised: a warning made an error, a closed stdout */
    now = now_ns();
    if (now < run->next_poll)
        return false;
    run->next_poll = now + POLL_NS;
    gil = PyGILState_Ensure();
    stop = PyErr_CheckSignals() != 0;
    if (stop)
        tx_py_keep_error(run);
    PyGILState_Release(gil);
    return stop;
}

/* ---- the launch -------------------------------------------------------------------------------------------------------------- */

static bool
failed(tx_call_error *e, tx_call_class cls, const char *text)
{
    e->cls = cls;
    snprintf(e->text, sizeof e->text, "%s", text);
    return false;
}

bool
tx_py_launch_emu(void *self, const tx_resolved_launch *l, tx_call_error *e)
{
    tx_py_run *run = self;
    const tx_emu_program *program = run->exe->image->programs[l->kernel];
    const tx_emu_host host = {.self = run,
                              .extern_call = on_extern_call,
                              .has_extern = on_has_extern,
                              .print = on_print,
                              .interrupted = on_interrupted,
                              .report = on_report};
    tx_emu_launch launch = {.dyn_smem = l->dyn_smem, .args = l->args, .nargs = l->nargs};
    tx_emu_options options = run->options->emu;
    tx_emu_status status;
    PyThreadState *thread;

    if (options.check && tx_plan_overlaps(run->exe->image->plans[run->exe->entry])) {
        if (!run->chain && !(run->chain = tx_emu_chain_new()))
            return failed(e, TX_CALL_MEMORY_ERROR, "out of memory");
        launch.chain = run->chain;
        launch.overlaps = l->attrs && l->attrs->pdl > 0;
    }
    run->nested = nested_callbacks;
    if (run->nested) /* a pool in each thread of a pool would multiply */
        options.nthreads = 1;
    memcpy(launch.grid, l->grid, sizeof launch.grid);
    memcpy(launch.block, l->block, sizeof launch.block);
    memcpy(launch.cluster, l->cluster, sizeof launch.cluster);
    thread = PyEval_SaveThread();
    status = tx_emu_run(program, &launch, &options, &host, &e->report);
    PyEval_RestoreThread(thread);
    if (run->error[0])
        return failed(e, TX_CALL_HOST_ERROR, "");
    switch (status) {
    case TX_EMU_OK: return true;
    case TX_EMU_INTERRUPTED: return failed(e, TX_CALL_INTERRUPTED, "");
    case TX_EMU_HOST_ERROR: return failed(e, TX_CALL_RUNTIME_ERROR, "a callback of the emulator failed");
    case TX_EMU_NO_MEMORY: return failed(e, TX_CALL_MEMORY_ERROR, "out of memory");
    case TX_EMU_REPORT: break;
    }
    e->program = program;
    return failed(e, TX_CALL_REPORT, "");
}

/* ---- packed calls ------------------------------------------------------------------------------------------------------------- */

/* The Python object behind an argument of a packed call: tensors are the ones that the caller passed. */
static PyObject *
packed_argument(const tx_py_run *run, const tx_arg *a)
{
    switch (a->kind) {
    case TX_ARG_BOOL: return PyBool_FromLong(a->v.i != 0);
    case TX_ARG_INT: return a->unsigned_int ? PyLong_FromUnsignedLongLong(a->v.u) : PyLong_FromLongLong(a->v.i);
    case TX_ARG_FLOAT: return PyFloat_FromDouble(a->v.f);
    case TX_ARG_OTHER: return PyUnicode_FromString(a->type_name); /* a string of the kernel */
    case TX_ARG_NONE: return Py_NewRef(Py_None);
    default: break;
    }
    for (uint32_t i = 0; i < run->nargs; i++)
        if (run->args[i].kind == a->kind && run->args[i].v.p == a->v.p && run->args[i].shape == a->shape)
            return Py_NewRef(run->objects[i]);
    return PyLong_FromVoidPtr(a->v.p);
}

static bool
packed_result(tx_py_run *run, PyObject *value, tx_arg *out)
{
    tx_py_intake in;
    bool ok;

    tx_py_intake_init(&in, run->rt);
    ok = tx_py_intake_arg(&in, value, out);
    out->type_name = out->kind == TX_ARG_OTHER ? "another type" : out->type_name; /* the name goes with the intake */
    tx_py_intake_done(&in);
    if (!ok && in.what)
        PyErr_Format(PyExc_TypeError, "%s: %s", in.what, in.text);
    return ok;
}

bool
tx_py_packed(void *self, const char *name, const tx_arg *args, uint32_t nargs, tx_arg *result, tx_call_error *e)
{
    tx_py_run *run = self;
    PyObject *f = find_extern(run, name), *tuple, *value = NULL;
    bool ok = true;

    if (!f)
        f = PyDict_GetItemString(run->rt->packed, name);
    if (!f) {
        e->cls = TX_CALL_RUNTIME_ERROR;
        snprintf(
            e->text, sizeof e->text,
            "packed function '%s' is not registered: tirx.register_func(\"%s\", f), or externs={\"%s\": f} of tirx.compile",
            name, name, name);
        return false;
    }
    Py_INCREF(f);
    run->nested = nested_callbacks;
    tuple = PyTuple_New((Py_ssize_t)nargs);
    for (uint32_t i = 0; tuple && ok && i < nargs; i++) {
        PyObject *x = packed_argument(run, &args[i]);
        ok = x && PyTuple_SetItem(tuple, (Py_ssize_t)i, x) == 0;
    }
    if (tuple && ok)
        value = call_nested(run, f, tuple, name);
    ok = value && packed_result(run, value, result);
    Py_XDECREF(value);
    Py_XDECREF(tuple);
    Py_DECREF(f);
    if (!ok) {
        tx_py_keep_error(run);
        e->cls = TX_CALL_HOST_ERROR;
    }
    return ok;
}
