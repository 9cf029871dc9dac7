/* What the files behind Builder share: how a method is declared, and the helpers of statements. Owner: python; only
 * builder.c, statement.c, copy.c and launch.c include it. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_PYTHON_BUILDER_H
#define TX_PYTHON_BUILDER_H

#include "python/state.h"

#define SELF ((tx_py_builder *)self)

/* Fast methods, for the table in builder.c. */
// clang-format off
#define TX_PY_BUILDER_METHODS(X)                                                                                       \
    X(param) X(add_symbol) X(set_attr) X(set_flags) X(set_name) X(set_symbol) X(set_ret) X(match) X(alloc) X(decl)     \
    X(store) X(bind) X(cell) X(hoist_cell) X(evaluate) X(open_for) X(open_while) X(open_if) X(open_attr) X(attr)       \
    X(device_entry) X(scope_id) X(assert_) X(return_) X(finish)
// clang-format on
#define X(name) PyObject *tx_py_bld_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
TX_PY_BUILDER_METHODS(X)
#undef X

/* Defines one: METHOD(name, required, positional, "names"...) { ... } with the parsed arguments in a[]. A finished
 * builder takes none. */
#define METHOD(name, nrequired, npositional, ...)                                                          \
    static PyObject *name##_in(PyObject *self, PyObject *const *a);                                        \
    PyObject *tx_py_bld_##name(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) \
    {                                                                                                      \
        static const tx_py_sig sig = {#name, nrequired, npositional, {__VA_ARGS__, NULL}};                 \
        PyObject *a[20];                                                                                   \
        if (!tx_py_parse(&sig, args, nargs, kwnames, a) || !tx_py_builder_open(SELF))                      \
            return NULL;                                                                                   \
        return name##_in(self, a);                                                                         \
    }                                                                                                      \
    static PyObject *name##_in(PyObject *self, PyObject *const *a)

/* None, or the exception of a statement that could not be made (NULL). */
PyObject *tx_py_emitted(tx_py_builder *b, const tx_node *stmt);
PyObject *tx_py_open_block(tx_py_builder *b, const tx_node *head, bool flat);
const tx_node *tx_py_stmt(tx_py_builder *b, unsigned op, tx_payload u, const tx_node *const *args, uint32_t n);
/* A buffer or a variable of the builder's context; NULL: raised. */
tx_py_buffer *tx_py_own_buffer(tx_py_builder *b, PyObject *x);
tx_var *tx_py_own_var(tx_py_builder *b, PyObject *x);

#endif
