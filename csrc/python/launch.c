/* The Builder's launch statements: the device marker with its launch configuration, and scope ids.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/builder.h"

#include <stddef.h>

/* Fields of a launch that are computed at the call: key, first child, how many of them a list may fill. */
static const struct {
    const char *key;
    uint8_t arg, n;
} launch_args[] = {
    {"grid", TX_L_GRID_X, 3},           {"block", TX_L_BLOCK_X, 3},     {"cluster", TX_L_CLUSTER_X, 3},
    {"preferred", TX_L_PREFERRED_X, 3}, {"dyn_smem", TX_L_DYN_SMEM, 1}, {"stream", TX_L_STREAM, 1},
    {"priority", TX_L_PRIORITY, 1},
};

/* Fields that are plain numbers. */
static const struct {
    const char *key;
    size_t offset;
    uint8_t size;
} launch_fields[] = {
#define FIELD(key, member) {key, offsetof(tx_launch, member), sizeof(((tx_launch *)0)->member)}
    FIELD("cooperative", cooperative),
    FIELD("pdl", pdl),
    FIELD("cluster_policy", cluster_policy),
    FIELD("mem_sync_domain", mem_sync_domain),
    FIELD("carveout", carveout),
    FIELD("min_blocks", min_blocks),
    FIELD("max_blocks_per_cluster", max_blocks_per_cluster),
    FIELD("max_registers", max_registers),
    FIELD("required_block_size", required_block_size),
#undef FIELD
};

static bool
set_field(tx_launch *l, size_t i, PyObject *value)
{
    bool wide = launch_fields[i].size == 4;
    char *at = (char *)l + launch_fields[i].offset;
    long v;

    if (!tx_py_as_long(value, wide ? 0 : -1, wide ? INT32_MAX : 127, launch_fields[i].key, &v))
        return false;
    if (wide) {
        int32_t v32 = (int32_t)v;
        memcpy(at, &v32, sizeof v32);
    } else {
        int8_t v8 = (int8_t)v;
        memcpy(at, &v8, sizeof v8);
    }
    return true;
}

static bool
set_launch_key(tx_py_context *ctx, const char *key, PyObject *value, tx_launch *l, const tx_node **args)
{
    const tx_node **x;
    uint32_t n;

    for (size_t i = 0; i < sizeof launch_args / sizeof *launch_args; i++) {
        if (strcmp(key, launch_args[i].key) != 0)
            continue;
        if (!tx_py_as_nodes(ctx, value, &x, &n))
            return false;
        if (n < 1 || n > launch_args[i].n) {
            PyErr_Format(PyExc_ValueError, "%s takes 1 to %d values", key, (int)launch_args[i].n);
            return false;
        }
        for (uint32_t k = 0; k < n; k++)
            args[launch_args[i].arg + k] = x[k];
        return true;
    }
    for (size_t i = 0; i < sizeof launch_fields / sizeof *launch_fields; i++)
        if (strcmp(key, launch_fields[i].key) == 0)
            return set_field(l, i, value);
    if (strcmp(key, "attrs") == 0)
        return tx_py_as_attrs(ctx, value, &l->attrs, &l->nattrs);
    PyErr_Format(PyExc_TypeError, "a launch has no field '%s'", key);
    return false;
}

static bool
fill_launch(tx_py_context *ctx, PyObject *dict, tx_launch *l, const tx_node **args)
{
    PyObject *items = PyDict_Check(dict) ? PyDict_Items(dict) : NULL;
    bool ok = items != NULL;

    if (!ok && !PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "launch is a dict or None");
    for (Py_ssize_t i = 0; ok && i < PyList_Size(items); i++) {
        PyObject *pair = PyList_GetItem(items, i), *value = PyTuple_GetItem(pair, 1);
        const char *key = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(pair, 0), NULL);
        ok = key && (value == Py_None || set_launch_key(ctx, key, value, l, args));
    }
    Py_XDECREF(items);
    return ok;
}

METHOD(device_entry, 0, 2, "launch", "with_form")
{
    tx_py_context *ctx = SELF->ctx;
    const tx_node *children[TX_L__COUNT] = {0};
    bool with_form;

    if (!tx_py_as_bool(a[1], false, &with_form))
        return NULL;
    tx_launch *l = tx_new(ctx->c, tx_launch, 1);
    if (!l)
        return tx_py_raise(ctx);
    *l = tx_no_launch;
    l->with_form = with_form;
    l->explicit_config = TX_PY_GIVEN(a[0]);
    if (TX_PY_GIVEN(a[0]) && !fill_launch(ctx, a[0], l, children))
        return NULL;
    return tx_py_open_block(
        SELF, tx_make(ctx->c, TX_OP_DEVICE, TX_VOID, (tx_payload){.launch = l}, children, TX_L__COUNT), !with_form);
}

/* ---- scope ids --------------------------------------------------------------------------------------------------- */

static int
find_binding(PyObject *x)
{
    const char *text = PyUnicode_Check(x) ? PyUnicode_AsUTF8AndSize(x, NULL) : NULL;

    for (int i = 0; text && i < TX_B__COUNT; i++)
        if (strcmp(text, tx_binding_calls[i]) == 0 || strcmp(text, tx_binding_names[i]) == 0)
            return i;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "no scope id %R", x);
    return -1;
}

METHOD(scope_id, 2, 5, "call", "names", "extents", "preferred", "dtype")
{
    tx_py_context *ctx = SELF->ctx;
    const tx_node **x = NULL, *children[6];
    PyObject *names = NULL, *list = NULL;
    uint32_t n = 0, nx = 0;
    int binding;

    if ((binding = find_binding(a[0])) < 0)
        return NULL;
    tx_scope_id *s = tx_new(ctx->c, tx_scope_id, 1);
    if (!s)
        return tx_py_raise(ctx);
    s->binding = (uint8_t)binding;
    s->dtype = TX_I32;
    if (TX_PY_GIVEN(a[4]) && !tx_py_as_dtype(ctx, a[4], &s->dtype))
        return NULL;
    if (s->dtype != TX_I32 && s->dtype != TX_U32)
        return tx_py_fail(ctx, TX_E_LOOP_DTYPE);
    for (int k = 2; k <= 3; k++) {
        if (!TX_PY_GIVEN(a[k]))
            continue;
        if (!tx_py_as_nodes(ctx, a[k], &x, &nx))
            return NULL;
        if (nx < 1 || nx > 3)
            return tx_py_fail(ctx, TX_E_SCOPE_EXTENTS, tx_binding_calls[binding], (int)nx);
        for (uint32_t i = 0; i < nx; i++)
            children[n++] = x[i];
        *(k == 2 ? &s->nextents : &s->npreferred) = (uint8_t)nx;
    }
    names = PySequence_Tuple(a[1]);
    Py_ssize_t nvars = names ? PyTuple_Size(names) : 0;
    if (names && (nvars < 1 || nvars > 3))
        PyErr_SetString(PyExc_ValueError, "a scope id has 1 to 3 names");
    s->nvars = (uint8_t)nvars;
    for (Py_ssize_t i = 0; i < nvars && !PyErr_Occurred(); i++) {
        const tx_str *name = tx_py_intern(ctx, PyTuple_GetItem(names, i));
        if (name && !(s->var[i] = tx_new_var(ctx->c, TX_VAR_SCOPE_ID, name, s->dtype)))
            tx_py_raise(ctx);
    }
    Py_XDECREF(names);
    if (PyErr_Occurred())
        return NULL;
    if (!tx_emit(SELF->b, tx_make(ctx->c, TX_OP_SCOPE_ID, TX_VOID, (tx_payload){.scope_id = s}, children, n)))
        return tx_py_raise(ctx);
    list = PyList_New(nvars);
    for (Py_ssize_t i = 0; list && i < nvars; i++) {
        PyObject *v = tx_py_new_expr(ctx, s->var[i]->node);
        if (!v || PyList_SetItem(list, i, v) < 0)
            Py_CLEAR(list);
    }
    return list;
}
