/* Nodes in Python: what expr.c, node.c and rewrite.c share. Owner: python; knows nothing of builders.
 * A replacement is what the user gives for a node that is there. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_PYTHON_NODE_H
#define TX_PYTHON_NODE_H

#include "python/state.h"

const char *tx_py_node_class(const tx_node *n); /* by ir/nodes.def */
PyObject *tx_py_node_line(const tx_node *n);    /* the first line of its text */
/* A field by its name there. NULL without an exception: the node has none. */
PyObject *tx_py_node_field(tx_py_context *ctx, const tx_node *n, const char *name);
PyObject *tx_py_expr_getattr(PyObject *self, PyObject *name);
PyObject *tx_py_node_children(PyObject *self, void *closure);
PyObject *tx_py_node_replace(PyObject *self, PyObject *args, PyObject *kwargs);

/* x in the place of `old`: a value of its dtype; for a statement a statement, or a list of them. NULL: raised. */
const tx_node *tx_py_replacement(tx_py_context *ctx, const tx_node *old, PyObject *x);
/* n with other children, through the constructors that check them. NULL: raised. */
const tx_node *tx_py_rebuilt(tx_py_context *ctx, const tx_node *n, const tx_node *const *args);

int tx_py_init_rewrite(PyObject *module);

#endif
