/* Arguments of fast calls, by position and by keyword. Also the tuple of a plain call is taken apart here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/state.h"

static int
find_name(const tx_py_sig *sig, PyObject *key)
{
    for (int i = 0; sig->names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(key, sig->names[i]) == 0)
            return i;
    return -1;
}

static void
unknown_name(const tx_py_sig *sig, PyObject *key)
{
    const char *text = PyUnicode_AsUTF8AndSize(key, NULL);

    if (!text)
        return;
    tx_near near = tx_near_to(text);
    for (int i = 0; sig->names[i]; i++)
        tx_near_try(&near, sig->names[i]);
    PyErr_Format(PyExc_TypeError,
                 near.found ? "%s() got an unexpected keyword argument '%U'; did you mean '%s'?"
                            : "%s() got an unexpected keyword argument '%U'",
                 sig->name, key, near.found);
}

bool
tx_py_parse(const tx_py_sig *sig, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out)
{
    Py_ssize_t nkw = kwnames ? PyTuple_Size(kwnames) : 0;

    if (nargs > sig->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", sig->name,
                     (int)sig->positional, nargs);
        return false;
    }
    for (int i = 0; sig->names[i]; i++)
        out[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; k < nkw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k);
        int i = find_name(sig, key);
        if (i < 0 || out[i]) {
            if (i < 0)
                unknown_name(sig, key);
            else
                PyErr_Format(PyExc_TypeError, "%s() got two values for argument '%U'", sig->name, key);
            return false;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < sig->required; i++) {
        if (out[i])
            continue;
        PyErr_Format(PyExc_TypeError, "%s() misses argument '%s'", sig->name, sig->names[i]);
        return false;
    }
    return true;
}

tx_py_context *
tx_py_as_context(tx_py_state *s, PyObject *x)
{
    if (TX_PY_IS(s, x, Context))
        return (tx_py_context *)x;
    PyErr_SetString(PyExc_TypeError, "a Context is expected first");
    return NULL;
}

bool
tx_py_as_long(PyObject *x, long lo, long hi, const char *what, long *out)
{
    PyObject *n = PyNumber_Index(x);
    int overflow = 0;

    if (!n)
        return false;
    *out = PyLong_AsLongAndOverflow(n, &overflow);
    Py_DECREF(n);
    if (overflow || *out < lo || *out > hi) {
        PyErr_Format(PyExc_ValueError, "%s is outside %ld..%ld", what, lo, hi);
        return false;
    }
    return true;
}

bool
tx_py_as_bool(PyObject *x, bool fallback, bool *out)
{
    int truth = x ? PyObject_IsTrue(x) : fallback;

    *out = truth > 0;
    return truth >= 0;
}
