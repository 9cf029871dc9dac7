/* Executable: a compiled kernel that is called like a Python function. exe(*args, stream=None, check=True, schedule=None,
 * numerics="fast") turns its arguments into tx_arg, evaluates the launch plan, and turns what went wrong into an exception.
 * Immutable after it is made; the path of a CUDA call with torch tensors allocates nothing. Also adds the module's
 * `_runtime`, which the executables share. SPDX-License-Identifier: Apache-2.0 */
#include "python/call.h"

#include <stdio.h>
#include <structmember.h>

enum { EXECUTABLE_STACK_ARGS = 16, NO_ENTRY = -1 };

/* Stable since 3.12, and the same in 3.11, whose limited API does not declare them yet. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
#ifndef Py_TPFLAGS_IMMUTABLETYPE
#define Py_TPFLAGS_IMMUTABLETYPE (1UL << 8)
#endif
static const size_t OFFSET_FLAG = (size_t)1 << (8 * sizeof(size_t) - 1);

/* ---- faults ------------------------------------------------------------------------------------------------------------ */

/* The builtin exception class of that name, for `assert` and `raise` in the host half. */
static PyObject *
builtin_class(const char *name)
{
    PyObject *builtins = PyEval_GetBuiltins(), *cls = builtins ? PyDict_GetItemString(builtins, name) : NULL;

    return cls && PyExceptionClass_Check(cls) ? cls : PyExc_AssertionError;
}

static void
raise_cuda(tx_py_rt *rt, const tx_call_error *e)
{
    PyObject *cls = rt->state->error[TX_PY_CUDAError], *x = PyObject_CallFunction(cls, "s", e->text);
    PyObject *code = x ? PyLong_FromLong(e->code) : NULL;

    if (code && PyObject_SetAttr(x, rt->s_code, code) == 0)
        PyErr_SetObject(cls, x);
    Py_XDECREF(code);
    Py_XDECREF(x);
}

static void
raise_report(tx_py_rt *rt, const tx_call_error *e)
{
    PyObject *x = tx_py_report(rt, e->program, &e->report);

    if (x)
        PyErr_SetObject((PyObject *)Py_TYPE(x), x);
    Py_XDECREF(x);
}

void *
tx_py_raise_call(tx_py_rt *rt, const tx_call_error *e)
{
    if (PyErr_Occurred())
        return NULL;
    switch (e->cls) {
    case TX_CALL_TYPE_ERROR: PyErr_SetString(PyExc_TypeError, e->text); break;
    case TX_CALL_VALUE_ERROR: PyErr_SetString(PyExc_ValueError, e->text); break;
    case TX_CALL_OVERFLOW_ERROR: PyErr_SetString(PyExc_OverflowError, e->text); break;
    case TX_CALL_ASSERTION: PyErr_SetString(builtin_class(e->kind), e->text); break;
    case TX_CALL_RUNTIME_ERROR: PyErr_SetString(PyExc_RuntimeError, e->text); break;
    case TX_CALL_MEMORY_ERROR: PyErr_NoMemory(); break;
    case TX_CALL_CUDA_ERROR: raise_cuda(rt, e); break;
    case TX_CALL_REPORT: raise_report(rt, e); break;
    case TX_CALL_INTERRUPTED: PyErr_SetNone(PyExc_KeyboardInterrupt); break;
    case TX_CALL_HOST_ERROR:
    case TX_CALL_OK: PyErr_SetString(PyExc_SystemError, "a call failed without saying why"); break;
    }
    return NULL;
}

static void
raise_intake(const tx_py_exe *x, const tx_py_intake *in, uint32_t i)
{
    if (in->what)
        PyErr_Format(PyExc_ValueError, "%s on argument #%u when calling:\n  `%s`,\n  %s", in->what, i,
                     tx_plan_signature(x->image->plans[x->entry]), in->text);
}

/* ---- options of a call ----------------------------------------------------------------------------------------------------- */

static bool
is_text(PyObject *x, const char *text)
{
    return PyUnicode_Check(x) && PyUnicode_CompareWithASCIIString(x, text) == 0;
}

static bool
take_check(PyObject *x, tx_py_options *o)
{
    if (x == Py_True || x == Py_False)
        o->check = x == Py_True ? TX_PY_CHECK_ON : TX_PY_CHECK_OFF;
    else if (is_text(x, "report"))
        o->check = TX_PY_CHECK_REPORT;
    else
        return PyErr_Format(PyExc_ValueError, "check: expected True, False or \"report\", got %R", x), false;
    o->emu.check = o->check != TX_PY_CHECK_OFF;
    o->emu.collect = o->check == TX_PY_CHECK_REPORT;
    return true;
}

static bool
take_schedule(PyObject *x, tx_py_options *o)
{
    if (x == Py_None) {
        o->emu.schedule = TX_SCHED_DEFAULT;
    } else if (is_text(x, "late")) {
        o->emu.schedule = TX_SCHED_LATE;
    } else if (is_text(x, "early")) {
        o->emu.schedule = TX_SCHED_EARLY;
    } else if (PyIndex_Check(x) && !PyBool_Check(x)) {
        PyObject *number = PyNumber_Index(x);
        o->emu.schedule = TX_SCHED_SEED;
        o->emu.seed = number ? (uint64_t)PyLong_AsUnsignedLongLongMask(number) : 0;
        Py_XDECREF(number);
        return number != NULL;
    } else {
        PyErr_Format(PyExc_ValueError, "schedule: expected an int, \"late\", \"early\" or None, got %R", x);
        return false;
    }
    return true;
}

static bool
take_numerics(PyObject *x, tx_py_options *o)
{
    o->emu.hardware_numerics = is_text(x, "hardware");
    if (o->emu.hardware_numerics || is_text(x, "fast"))
        return true;
    PyErr_Format(PyExc_ValueError, "numerics: expected \"fast\" or \"hardware\", got %R", x);
    return false;
}

static bool
same_name(PyObject *a, PyObject *b)
{
    return a == b || PyUnicode_Compare(a, b) == 0;
}

/* 1: an option, 0: not one, -1: a bad value. */
static int
take_option(const tx_py_exe *x, PyObject *key, PyObject *value, tx_py_options *o)
{
    const tx_py_rt *rt = x->rt;

    if (same_name(key, rt->s_stream)) {
        o->stream = value == Py_None ? NULL : value;
        if (o->stream && tx_plan_names_stream(x->image->plans[x->entry]))
            return PyErr_SetString(PyExc_ValueError, "stream: the LaunchConfig of the kernel names one already"), -1;
        return 1;
    }
    if (same_name(key, rt->s_check))
        return take_check(value, o) ? 1 : -1;
    if (same_name(key, rt->s_schedule))
        return take_schedule(value, o) ? 1 : -1;
    if (same_name(key, rt->s_numerics))
        return take_numerics(value, o) ? 1 : -1;
    return 0;
}

/* A parameter given by name goes into its slot. */
static bool
take_keyword(const tx_py_exe *x, PyObject *key, PyObject *value, PyObject **slots, uint32_t nparams)
{
    for (uint32_t i = 0; i < nparams; i++) {
        if (!same_name(key, PyTuple_GetItem(x->names, i)))
            continue;
        if (slots[i])
            return PyErr_Format(PyExc_TypeError, "Argument '%U' is given twice when calling:\n  `%s`", key,
                                tx_plan_signature(x->image->plans[x->entry])),
                   false;
        slots[i] = value;
        return true;
    }
    PyErr_Format(PyExc_TypeError, "Unexpected argument '%U' when calling:\n  `%s`", key,
                 tx_plan_signature(x->image->plans[x->entry]));
    return false;
}

/* Options out of the keywords, parameters into the slots. *n: arguments given. Without keyword parameters the arguments
 * stay where they are. */
static bool
take_keywords(const tx_py_exe *x, PyObject *const *args, uint32_t nargs, PyObject *kwnames, tx_py_options *o,
              PyObject **slots, uint32_t nparams, uint32_t *n)
{
    Py_ssize_t nkw = PyTuple_Size(kwnames);

    for (uint32_t i = 0; i < nparams; i++)
        slots[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k), *value = args[nargs + (size_t)k];
        int option = take_option(x, key, value, o);

        if (option < 0 || (option == 0 && !take_keyword(x, key, value, slots, nparams)))
            return false;
        *n += option == 0;
    }
    return true;
}

/* ---- the call --------------------------------------------------------------------------------------------------------------- */

bool
tx_py_launch_cuda(void *self, const tx_resolved_launch *l, tx_call_error *e)
{
    tx_py_run *run = self;
    const tx_py_image *m = run->exe->image;
    tx_resolved_launch own;

    if (TX_UNLIKELY(l->device_id < 0)) { /* no tensor: the current device */
        own = *l;
        if (!tx_driver_current_device(&own.device_id, e))
            return false;
        l = &own;
    }
    if (TX_UNLIKELY(run->repeat != 1))
        return tx_cumodule_repeat(m->cuda, l, m->arg_types[l->kernel], run->repeat, e);
    return tx_cumodule_launch(m->cuda, l, m->arg_types[l->kernel], e);
}

static bool
ask_occupancy(void *self, const tx_resolved_launch *l, bool blocks, int *out, tx_call_error *e)
{
    tx_py_run *run = self;
    tx_resolved_launch own = *l;

    return (own.device_id >= 0 || tx_driver_current_device(&own.device_id, e)) &&
           tx_cumodule_occupancy(run->exe->image->cuda, &own, blocks, out, e);
}

static PyObject *
result_of(const tx_arg *a)
{
    switch (a->kind) {
    case TX_ARG_BOOL: return PyBool_FromLong(a->v.i != 0);
    case TX_ARG_INT: return a->unsigned_int ? PyLong_FromUnsignedLongLong(a->v.u) : PyLong_FromLongLong(a->v.i);
    case TX_ARG_FLOAT: return PyFloat_FromDouble(a->v.f);
    default: return Py_NewRef(Py_None);
    }
}

static bool
choose_stream(tx_py_run *run, tx_py_intake *in, void **stream)
{
    if (run->exe->image->device_type != TX_DEV_CUDA)
        return *stream = NULL, true;
    if (TX_UNLIKELY(run->options->stream != NULL))
        return *stream = in->stream, true;
    return tx_py_current_stream(in, stream);
}

/* check="report": what stopped the run is the last report. */
static PyObject *
finish_reports(tx_py_run *run, bool ok, const tx_call_error *e)
{
    PyObject *x;

    if (!ok && e->cls == TX_CALL_REPORT) {
        x = tx_py_report(run->rt, e->program, &e->report);
        ok = x && PyList_Append(run->reports, x) == 0;
        Py_XDECREF(x);
    } else if (!ok) {
        tx_py_raise_call(run->rt, e);
    }
    return ok ? Py_NewRef(run->reports) : NULL;
}

/* Between turns of a loop of the host half, with the lock, which other threads get for a moment. true: a signal's handler
 * raised (Ctrl-C). */
static bool
poll_signals(void *self)
{
    Py_BEGIN_ALLOW_THREADS;
    Py_END_ALLOW_THREADS;
    if (PyErr_CheckSignals() == 0)
        return false;
    tx_py_keep_error(self);
    return true;
}

static PyObject *
run_plan(tx_py_run *run, tx_py_intake *in)
{
    const tx_py_exe *x = run->exe;
    const tx_plan_host host = {run, x->image->device_type == TX_DEV_CUDA ? tx_py_launch_cuda : tx_py_launch_emu,
                               tx_py_packed, x->image->device_type == TX_DEV_CUDA ? ask_occupancy : NULL, poll_signals};
    tx_call_error e;
    tx_arg result;
    void *stream;
    bool ok;

    if (!choose_stream(run, in, &stream))
        return NULL;
    ok = tx_plan_call(x->image->plans[x->entry], run->args, run->nargs, x->image->device_type, stream, &host, &result,
                      &e);
    if (TX_UNLIKELY(run->error[0] != NULL)) {
        tx_py_restore_error(run);
        return NULL;
    }
    if (TX_UNLIKELY(run->reports != NULL))
        return finish_reports(run, ok, &e);
    if (TX_LIKELY(ok))
        return result_of(&result);
    return tx_py_raise_call(run->rt, &e);
}

static PyObject *call_with(tx_py_exe *x, PyObject *const *objects, uint32_t n, tx_py_options *o, uint32_t repeat);

/* The call with the memory that the kernel has of its own behind the caller's arguments; NULL without an error: it has
 * none. The Python half keeps that memory, one piece a device. */
static PyObject *
call_with_workspace(tx_py_exe *x, PyObject *const *objects, uint32_t n, uint32_t nparams, tx_py_options *o,
                    uint32_t repeat)
{
    PyObject *given = PyTuple_New((Py_ssize_t)n), *own = NULL, *all[EXECUTABLE_STACK_ARGS], *result = NULL;
    Py_ssize_t nown;

    for (uint32_t i = 0; given && i < n; i++)
        if (!objects[i] || PyTuple_SetItem(given, (Py_ssize_t)i, Py_NewRef(objects[i])) != 0)
            Py_CLEAR(given);
    if (given)
        own = PyObject_CallMethod(x->owner, "workspace", "sO", x->image->plan_names[x->entry], given);
    nown = own && PyTuple_Check(own) ? PyTuple_Size(own) : 0;
    if (nown > 0 && n + (uint32_t)nown == nparams && nparams <= EXECUTABLE_STACK_ARGS) {
        for (uint32_t i = 0; i < nparams; i++)
            all[i] = i < n ? objects[i] : PyTuple_GetItem(own, (Py_ssize_t)(i - n));
        result = call_with(x, all, nparams, o, repeat);
    }
    Py_XDECREF(given);
    Py_XDECREF(own);
    return result;
}

/* n arguments as objects: check the count first, so that a wrong one is told before a wrong argument. */
static PyObject *
call_with(tx_py_exe *x, PyObject *const *objects, uint32_t n, tx_py_options *o, uint32_t repeat)
{
    uint32_t nparams = tx_plan_nparams(x->image->plans[x->entry]);
    tx_arg stack[EXECUTABLE_STACK_ARGS], *args = stack;
    tx_py_intake in;
    tx_py_run run = {.rt = x->rt, .exe = x, .options = o, .objects = objects, .nargs = n, .repeat = repeat};
    PyObject *result = NULL;
    bool ok = true;

    if (TX_UNLIKELY(n < nparams) && x->owner &&
        ((result = call_with_workspace(x, objects, n, nparams, o, repeat)) || PyErr_Occurred()))
        return result;
    tx_py_intake_init(&in, x->rt);
    if (o->stream && !tx_py_stream_of(x->rt, o->stream, &in.stream))
        return NULL;
    if (o->check == TX_PY_CHECK_REPORT && !(run.reports = PyList_New(0)))
        return NULL;
    if (TX_UNLIKELY(n > EXECUTABLE_STACK_ARGS) && n == nparams && !(args = tx_malloc(n * sizeof *args))) {
        PyErr_NoMemory();
        ok = false;
    }
    for (uint32_t i = 0; ok && n == nparams && i < n; i++) {
        ok = tx_py_intake_arg(&in, objects[i], &args[i]);
        if (TX_UNLIKELY(!ok))
            raise_intake(x, &in, i);
    }
    run.args = args;
    if (ok)
        result = run_plan(&run, &in);
    tx_emu_chain_free(run.chain);
    tx_py_intake_done(&in);
    if (args != stack)
        tx_free(args);
    Py_XDECREF(run.reports);
    return result;
}

static PyObject *
no_entry(const tx_py_exe *x)
{
    if (x->image->nplans == 0) {
        PyErr_SetString(PyExc_TypeError, "the module has only device functions: there is nothing to call");
        return NULL;
    }
    PyErr_Format(PyExc_TypeError,
                 "the module has several functions, none of them \"main\": choose one, as in exe[\"%s\"](...)",
                 x->image->nplans ? x->image->plan_names[0] : "main");
    return NULL;
}

static PyObject *
call_keywords(tx_py_exe *x, PyObject *const *args, uint32_t nargs, PyObject *kwnames, tx_py_options *o, uint32_t repeat)
{
    uint32_t nparams = tx_plan_nparams(x->image->plans[x->entry]), n = nargs;
    PyObject *stack[EXECUTABLE_STACK_ARGS], **slots = stack, *result = NULL;

    if (nparams > EXECUTABLE_STACK_ARGS && !(slots = tx_malloc(nparams * sizeof *slots)))
        return PyErr_NoMemory();
    if (take_keywords(x, args, nargs, kwnames, o, slots, nparams, &n))
        result = call_with(x, slots, n, o, repeat);
    if (slots != stack)
        tx_free(slots);
    return result;
}

static PyObject *
exe_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    tx_py_exe *x = (tx_py_exe *)self;
    uint32_t nargs = (uint32_t)(nargsf & ~OFFSET_FLAG);
    tx_py_options o = {.check = TX_PY_CHECK_ON, .emu = {.check = true}};

    if (TX_UNLIKELY(x->entry == (uint32_t)NO_ENTRY))
        return no_entry(x);
    if (TX_LIKELY(!kwnames))
        return call_with(x, args, nargs, &o, 1);
    return call_keywords(x, args, nargs, kwnames, &o, 1);
}

/* tp_call, for callers that do not know vectorcall: a tuple and a dict as an array. */
static PyObject *
exe_call(PyObject *self, PyObject *tuple, PyObject *dict)
{
    Py_ssize_t nargs = PyTuple_Size(tuple), nkw = dict ? PyDict_Size(dict) : 0, at = 0, i = 0;
    PyObject **all = PyMem_Malloc((size_t)(nargs + nkw + 1) * sizeof *all), *names = nkw ? PyTuple_New(nkw) : NULL;
    PyObject *key, *value, *result = NULL;

    if (!all || (nkw && !names)) {
        PyErr_NoMemory();
        goto out;
    }
    for (; i < nargs; i++)
        all[i] = PyTuple_GetItem(tuple, i);
    while (nkw && PyDict_Next(dict, &at, &key, &value)) {
        PyTuple_SetItem(names, i - nargs, Py_NewRef(key));
        all[i++] = value;
    }
    result = exe_vectorcall(self, all, (size_t)nargs, names);
out:
    PyMem_Free(all);
    Py_XDECREF(names);
    return result;
}

/* _repeat(n, *args): a call whose launches are repeated n times in C, for measuring what the driver alone costs. */
static PyObject *
exe_repeat(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    tx_py_exe *x = (tx_py_exe *)self;
    tx_py_options o = {.check = TX_PY_CHECK_ON, .emu = {.check = true}};
    unsigned long n = nargs ? PyLong_AsUnsignedLong(args[0]) : 1;

    if (PyErr_Occurred())
        return NULL;
    if (nargs < 1 || n > UINT32_MAX) {
        PyErr_SetString(PyExc_TypeError, "_repeat(n, *args)");
        return NULL;
    }
    return x->entry == (uint32_t)NO_ENTRY ? no_entry(x) : call_with(x, args + 1, (uint32_t)nargs - 1, &o, (uint32_t)n);
}

/* _watch(what, limit, *args, **options): a call on the emulator that writes down what happens: (text, result). What: 1 a timeline,
 * 2 counts; the text is a JSON list without its brackets. */
static PyObject *
exe_watch(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    tx_py_exe *x = (tx_py_exe *)self;
    tx_emu_watch watch = {0};
    tx_py_options o = {.check = TX_PY_CHECK_ON, .emu = {.check = true, .watch = &watch}};
    PyObject *result, *text;

    if (nargs < 2) {
        PyErr_SetString(PyExc_TypeError, "_watch(what, limit, *args)");
        return NULL;
    }
    watch.what = (int)PyLong_AsLong(args[0]);
    watch.limit = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred())
        return NULL;
    if (x->entry == (uint32_t)NO_ENTRY)
        return no_entry(x);
    if (x->image->device_type == TX_DEV_CUDA) {
        PyErr_Format(PyExc_ValueError, "only the emulator is watched: compile with target=\"cpu\", not \"%s\"",
                     x->image->target);
        return NULL;
    }
    result = kwnames ? call_keywords(x, args + 2, (uint32_t)nargs - 2, kwnames, &o, 1)
                     : call_with(x, args + 2, (uint32_t)nargs - 2, &o, 1);
    text = tx_py_take_sb(&watch.text);
    if (result && text)
        return Py_BuildValue("(NN)", text, result);
    Py_XDECREF(result);
    Py_XDECREF(text);
    return NULL;
}

/* tirx.seeing.<name>(self, *args, **options) */
static PyObject *
exe_see(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("tirx.seeing"), *f = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *first = f ? PyTuple_Pack(1, self) : NULL, *all = first ? PySequence_Concat(first, args) : NULL;
    PyObject *result = all ? PyObject_Call(f, all, kwargs) : NULL;

    Py_XDECREF(module);
    Py_XDECREF(f);
    Py_XDECREF(first);
    Py_XDECREF(all);
    return result;
}

static PyObject *
exe_trace(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return exe_see(self, "trace", args, kwargs);
}

static PyObject *
exe_stats(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return exe_see(self, "stats", args, kwargs);
}

/* ---- the type ----------------------------------------------------------------------------------------------------------------- */

static PyObject *
parameter_names(const tx_plan *p)
{
    uint32_t n = tx_plan_nparams(p);
    PyObject *names = PyTuple_New((Py_ssize_t)n);

    for (uint32_t i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_InternFromString(tx_plan_param_name(p, i));
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(names);
    }
    return names;
}

static uint32_t
find_entry(const tx_py_image *m, const char *name)
{
    for (uint32_t i = 0; name && i < m->nplans; i++)
        if (strcmp(m->plan_names[i], name) == 0)
            return i;
    return (uint32_t)NO_ENTRY;
}

/* Takes over the reference to the image. */
static PyObject *
new_exe(tx_py_rt *rt, tx_py_image *image, uint32_t entry, PyObject *owner, PyObject *externs)
{
    tx_py_exe *x = (tx_py_exe *)PyType_GenericAlloc(rt->Executable, 0);

    if (!x) {
        tx_py_image_drop(image);
        return NULL;
    }
    x->vectorcall = (void *)(uintptr_t)exe_vectorcall;
    x->rt = (tx_py_rt *)Py_NewRef((PyObject *)rt);
    x->image = image;
    x->entry = entry;
    x->owner = Py_XNewRef(owner);
    x->externs = Py_XNewRef(externs);
    x->names = entry == (uint32_t)NO_ENTRY ? PyTuple_New(0) : parameter_names(image->plans[entry]);
    if (!x->names) {
        Py_DECREF((PyObject *)x);
        return NULL;
    }
    return (PyObject *)x;
}

static PyObject *
exe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const keys[] = {"lowered", "name", "target", "cubin", "kernels", "externs", "owner", NULL};
    PyObject *lowered, *kernels, *externs = NULL, *owner = NULL, *module, *made = NULL;
    const char *name, *target, *cubin = NULL;
    Py_ssize_t nbytes = 0;
    tx_py_rt *rt;
    tx_py_image *image;
    uint32_t entry;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ozs|$z#OOO:Executable", (char **)keys, &lowered, &name, &target,
                                     &cubin, &nbytes, &kernels, &externs, &owner))
        return NULL;
    module = PyType_GetModule(type);
    rt = module ? tx_py_rt_of(module) : NULL;
    if (!rt)
        return NULL;
    if (!TX_PY_IS(rt->state, lowered, Module)) {
        PyErr_SetString(PyExc_TypeError, "Executable: expected a lowered module");
        goto out;
    }
    image = tx_py_image_new((tx_py_module *)lowered, target, cubin, (size_t)nbytes);
    if (!image)
        goto out;
    entry = find_entry(image, name ? name : "main");
    if (!name && entry == (uint32_t)NO_ENTRY && image->nplans == 1)
        entry = 0;
    if (name && entry == (uint32_t)NO_ENTRY) {
        PyErr_Format(PyExc_KeyError, "the module has no function '%s'", name);
        tx_py_image_drop(image);
        goto out;
    }
    externs = externs == Py_None ? NULL : externs;
    if (externs && !PyDict_Check(externs)) {
        PyErr_SetString(PyExc_TypeError, "externs: expected a dict of name to function");
        tx_py_image_drop(image);
        goto out;
    }
    externs = externs ? PyDict_Copy(externs) : NULL; /* what the caller does to its dict later changes nothing */
    made = new_exe(rt, image, entry, owner, externs);
    Py_XDECREF(externs);
out:
    Py_DECREF((PyObject *)rt);
    return made;
}

static int
exe_traverse(PyObject *self, visitproc visit, void *arg)
{
    tx_py_exe *x = (tx_py_exe *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)x->rt);
    Py_VISIT(x->owner);
    Py_VISIT(x->externs);
    return 0;
}

static int
exe_clear(PyObject *self)
{
    tx_py_exe *x = (tx_py_exe *)self;

    Py_CLEAR(x->owner);
    Py_CLEAR(x->externs);
    return 0;
}

static void
exe_dealloc(PyObject *self)
{
    tx_py_exe *x = (tx_py_exe *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    exe_clear(self);
    Py_XDECREF(x->names);
    tx_py_image_drop(x->image);
    TX_PY_DROP(x->rt);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

/* What is not found here is looked up in the Python half: source, ptx, cubin, mod, export. */
static PyObject *
exe_getattro(PyObject *self, PyObject *name)
{
    tx_py_exe *x = (tx_py_exe *)self;
    PyObject *value = PyObject_GenericGetAttr(self, name);

    if (value || !x->owner || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return value;
    PyErr_Clear();
    return PyObject_GetAttr(x->owner, name);
}

static PyObject *
exe_subscript(PyObject *self, PyObject *key)
{
    tx_py_exe *x = (tx_py_exe *)self;
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
    uint32_t entry = find_entry(x->image, name);

    if (!name && PyErr_Occurred())
        return NULL;
    if (name && entry == (uint32_t)NO_ENTRY && x->image->nplans == 1 && strcmp(name, "main") == 0)
        entry = 0;
    if (entry == (uint32_t)NO_ENTRY)
        return PyErr_SetObject(PyExc_KeyError, key), NULL;
    if (entry == x->entry)
        return Py_NewRef(self);
    x->image->refs++;
    return new_exe(x->rt, x->image, entry, x->owner, x->externs);
}

static PyObject *
exe_repr(PyObject *self)
{
    tx_py_exe *x = (tx_py_exe *)self;

    if (x->entry == (uint32_t)NO_ENTRY)
        return PyUnicode_FromFormat("<tirx.Executable of %u functions for %s>", x->image->nplans, x->image->target);
    return PyUnicode_FromFormat("<tirx.Executable %s for %s>", tx_plan_signature(x->image->plans[x->entry]),
                                x->image->target);
}

static PyObject *
exe_get_signature(PyObject *self, void *Py_UNUSED(unused))
{
    tx_py_exe *x = (tx_py_exe *)self;

    return x->entry == (uint32_t)NO_ENTRY ? no_entry(x)
                                          : PyUnicode_FromString(tx_plan_signature(x->image->plans[x->entry]));
}

static PyObject *
exe_get_plan(PyObject *self, void *Py_UNUSED(unused))
{
    tx_py_exe *x = (tx_py_exe *)self;
    tx_sb sb = {0};

    if (x->entry == (uint32_t)NO_ENTRY)
        return no_entry(x);
    tx_plan_print(x->image->plans[x->entry], &sb);
    return tx_py_take_sb(&sb);
}

static PyObject *
exe_get_functions(PyObject *self, void *Py_UNUSED(unused))
{
    tx_py_exe *x = (tx_py_exe *)self;
    PyObject *names = PyTuple_New((Py_ssize_t)x->image->nplans);

    for (uint32_t i = 0; names && i < x->image->nplans; i++) {
        PyObject *name = PyUnicode_FromString(x->image->plan_names[i]);
        if (!name || PyTuple_SetItem(names, (Py_ssize_t)i, name) != 0)
            Py_CLEAR(names);
    }
    return names;
}

static PyObject *
exe_get_target(PyObject *self, void *Py_UNUSED(unused))
{
    return PyUnicode_FromString(((tx_py_exe *)self)->image->target);
}

static PyMethodDef exe_methods[] = {
    {"_repeat", TX_PY_FAST(exe_repeat), METH_FASTCALL, "_repeat(n, *args): n launches in C, for measuring."},
    {"_watch", TX_PY_FAST(exe_watch), METH_FASTCALL | METH_KEYWORDS,
     "_watch(what, limit, *args): a call, written down."},
    {"trace", TX_PY_FAST(exe_trace), METH_VARARGS | METH_KEYWORDS,
     "trace(*args, file=None): a call on the emulator as a timeline, for ui.perfetto.dev."},
    {"stats", TX_PY_FAST(exe_stats), METH_VARARGS | METH_KEYWORDS,
     "stats(*args): a call on the emulator, counted: instructions, bytes, bank conflicts, sectors, waits."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef exe_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(tx_py_exe, vectorcall), READONLY, NULL},
    {"owner", T_OBJECT, offsetof(tx_py_exe, owner), READONLY, "the Python half"},
    {"param_names", T_OBJECT_EX, offsetof(tx_py_exe, names), READONLY, "names of the parameters"},
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef exe_getset[] = {
    {"signature", exe_get_signature, NULL, "what a call takes, as its messages show it", NULL},
    {"plan", exe_get_plan, NULL, "the launch plan as text", NULL},
    {"functions", exe_get_functions, NULL, "names of the functions that can be called: exe[name]", NULL},
    {"target", exe_get_target, NULL, "what it was compiled for", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
PyDoc_STRVAR(
    exe_doc,
    "A compiled kernel: exe(*args, stream=None, check=True, schedule=None, numerics=\"fast\").\n\n"
    "Tensors are DLPack exporters (torch, CuPy, JAX) or NumPy arrays, scalars are numbers; parameters may be given\n"
    "by name. stream: of a GPU; default: the framework's current one. For the emulator: check (True, False, or\n"
    "\"report\", which returns all reports), schedule (an int seeds the order of warps; \"late\", \"early\") and\n"
    "numerics (\"fast\", or \"hardware\": matrix instructions bit for bit).");
static PyType_Slot exe_slots[] = {
    {Py_tp_new, exe_new},
    {Py_tp_dealloc, exe_dealloc},
    {Py_tp_traverse, exe_traverse},
    {Py_tp_clear, exe_clear},
    {Py_tp_call, exe_call},
    {Py_tp_getattro, exe_getattro},
    {Py_tp_repr, exe_repr},
    {Py_mp_subscript, exe_subscript},
    {Py_tp_methods, exe_methods},
    {Py_tp_members, exe_members},
    {Py_tp_getset, exe_getset},
    {Py_tp_doc, (void *)exe_doc},
    {0, NULL},
};
static PyType_Spec exe_spec = {
    .name = "tirx._core.Executable",
    .basicsize = sizeof(tx_py_exe),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = exe_slots,
};

/* ---- what executables share ------------------------------------------------------------------------------------------------------ */

static int
rt_traverse(PyObject *self, visitproc visit, void *arg)
{
    tx_py_rt *rt = (tx_py_rt *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(rt->module);
    Py_VISIT((PyObject *)rt->Executable);
    Py_VISIT((PyObject *)rt->DeviceMemory);
    Py_VISIT((PyObject *)rt->TensorMap);
    Py_VISIT(rt->packed);
    for (int i = 0; i < TX_PY_TYPE_CACHE; i++)
        Py_VISIT(rt->types[i].type);
    return 0;
}

static int
rt_clear(PyObject *self)
{
    tx_py_rt *rt = (tx_py_rt *)self;

    Py_CLEAR(rt->packed);
    for (int i = 0; i < TX_PY_TYPE_CACHE; i++)
        Py_CLEAR(rt->types[i].type);
    return 0;
}

static void
rt_dealloc(PyObject *self)
{
    tx_py_rt *rt = (tx_py_rt *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    rt_clear(self);
    Py_XDECREF(rt->max_version);
    TX_PY_DROP(rt->Executable);
    TX_PY_DROP(rt->DeviceMemory);
    TX_PY_DROP(rt->TensorMap);
#define X(name) Py_XDECREF(rt->s_##name);
    TX_PY_CALL_NAMES(X)
#undef X
    Py_XDECREF(rt->module);
    PyObject_GC_Del(self);
    TX_PY_DROP(type);
}

static PyType_Slot rt_slots[] = {
    {Py_tp_dealloc, rt_dealloc},
    {Py_tp_traverse, rt_traverse},
    {Py_tp_clear, rt_clear},
    {0, NULL},
};
static PyType_Spec rt_spec = {
    .name = "tirx._core._Runtime",
    .basicsize = sizeof(tx_py_rt),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = rt_slots,
};

tx_py_rt *
tx_py_rt_of(PyObject *module)
{
    return (tx_py_rt *)PyObject_GetAttrString(module, "_runtime");
}

static tx_py_rt *
new_rt(PyObject *module)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &rt_spec, NULL);
    tx_py_rt *rt = type ? (tx_py_rt *)PyType_GenericAlloc(type, 0) : NULL;

    TX_PY_DROP(type);
    if (!rt)
        return NULL;
    rt->module = Py_NewRef(module);
    rt->state = tx_py_state_of(module);
    rt->packed = PyDict_New();
    rt->max_version = Py_BuildValue("{s(ii)}", "max_version", TX_DL_MAJOR, TX_DL_MINOR);
#define X(name)                                              \
    if (!(rt->s_##name = PyUnicode_InternFromString(#name))) \
        goto fail;
    TX_PY_CALL_NAMES(X)
#undef X
    if (rt->packed && rt->max_version)
        return rt;
fail:
    Py_DECREF((PyObject *)rt);
    return NULL;
}

int
tx_py_add_executable(PyObject *module)
{
    tx_py_rt *rt = new_rt(module);
    int ok = -1;

    if (!rt)
        return -1;
    rt->Executable = (PyTypeObject *)PyType_FromModuleAndSpec(module, &exe_spec, NULL);
    if (rt->Executable && PyModule_AddObjectRef(module, "_runtime", (PyObject *)rt) == 0 &&
        PyModule_AddObjectRef(module, "Executable", (PyObject *)rt->Executable) == 0 &&
        PyModule_AddObjectRef(module, "packed_functions", rt->packed) == 0 && tx_py_add_intake(module) == 0 &&
        tx_py_add_tensormap(module, rt) == 0)
        ok = tx_py_add_device(module, rt);
    Py_DECREF((PyObject *)rt);
    return ok;
}
