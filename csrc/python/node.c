/* Nodes as Python sees them: classes and fields by the table ir/nodes.def, children, structural equality, copies with other
 * fields, and statements made one by one. An Expr of Python holds any node, statements too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "python/node.h"

/* ---- the table --------------------------------------------------------------------------------------------------- */

typedef struct node_row {
    const char *name, *children, *others;
} node_row;

#define NODE_CLASS(class, op, children, others) [TX_OP_##op] = {#class, children, others},
static const node_row node_rows[TX_OP__COUNT] = {
#include "ir/nodes.def"
};
#undef NODE_CLASS

static const node_row call_row = {"Call", "args*", "name source"};

static const node_row *
row_of(unsigned op)
{
    return node_rows[op].name ? &node_rows[op] : &call_row;
}

const char *
tx_py_node_class(const tx_node *n)
{
    return row_of(n->op)->name;
}

/* The place of a name among words, and whether a star follows it. */
static int
find_word(const char *words, const char *name, bool *star)
{
    size_t len = strlen(name);

    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, " *");
        *star = words[n] == '*';
        if (n == len && memcmp(words, name, n) == 0)
            return i;
        words += n + *star;
        words += strspn(words, " ");
    }
    return -1;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static PyObject *
node_or_none(tx_py_context *ctx, const tx_node *n)
{
    return n ? tx_py_new_expr(ctx, n) : Py_NewRef(Py_None);
}

static PyObject *
nodes_tuple(tx_py_context *ctx, const tx_node *const *at, uint32_t n)
{
    PyObject *t = PyTuple_New((Py_ssize_t)n);

    for (uint32_t i = 0; t && i < n; i++) {
        PyObject *x = node_or_none(ctx, at[i]);
        if (!x || PyTuple_SetItem(t, (Py_ssize_t)i, x) < 0)
            Py_CLEAR(t);
    }
    return t;
}

static PyObject *
loop_field(tx_py_context *ctx, const tx_node *n, const char *name)
{
    static const char *const kinds[] = {"serial", "unroll", "vectorized", "parallel"};
    const tx_loop *loop = n->u.loop;

    if (strcmp(name, "var") == 0)
        return tx_py_new_expr(ctx, loop->var->node);
    if (strcmp(name, "min") == 0)
        return tx_py_new_expr(ctx, n->arg[0]);
    if (strcmp(name, "extent") == 0)
        return tx_py_new_expr(ctx, tx_binary(ctx->c, TX_OP_SUB, n->arg[1], n->arg[0]));
    if (strcmp(name, "kind") == 0)
        return PyUnicode_FromString(kinds[loop->kind]);
    if (strcmp(name, "unroll") == 0)
        return PyLong_FromLong(loop->unroll);
    return tx_py_attrs(ctx, loop->attrs, loop->nattrs);
}

static PyObject *
scope_id_field(tx_py_context *ctx, const tx_node *n, const char *name)
{
    const tx_scope_id *s = n->u.scope_id;
    const tx_node *vars[3];

    for (int i = 0; i < s->nvars; i++)
        vars[i] = s->var[i]->node;
    if (strcmp(name, "vars") == 0)
        return nodes_tuple(ctx, vars, s->nvars);
    if (strcmp(name, "extents") == 0)
        return nodes_tuple(ctx, n->arg, s->nextents);
    if (strcmp(name, "preferred") == 0)
        return nodes_tuple(ctx, n->arg + s->nextents, s->npreferred);
    return PyUnicode_FromString(tx_binding_names[s->binding]);
}

static PyObject *
assert_field(const tx_assertion *x, const char *name)
{
    if (strcmp(name, "kind") == 0)
        return tx_py_str(x->kind);
    PyObject *parts = PyTuple_New((Py_ssize_t)x->nparts);
    for (uint32_t i = 0; parts && i < x->nparts; i++) {
        PyObject *text = tx_py_str(x->parts[i]);
        if (!text || PyTuple_SetItem(parts, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(parts);
    }
    return parts;
}

static bool
is_call_with_name(const tx_node *n)
{
    return n->op == TX_OP_FUNC_CALL || n->op == TX_OP_CALL_EXTERN || n->op == TX_OP_CALL_PURE_EXTERN ||
           n->op == TX_OP_CALL_PACKED || n->op == TX_OP_CALL_FUNC;
}

/* A field that is no child. NULL without an exception: the node has none of this name. */
static PyObject *
other_field(tx_py_context *ctx, const tx_node *n, const char *name)
{
    switch (n->op) {
    case TX_OP_BIND:
    case TX_OP_LET: return tx_py_new_expr(ctx, n->u.var->node);
    case TX_OP_RAMP:
    case TX_OP_BROADCAST: return PyLong_FromLong((long)tx_lanes(n->dtype));
    case TX_OP_SHUFFLE:
        return name[0] == 'v' ? nodes_tuple(ctx, n->arg, (uint32_t)n->u.i)
                              : nodes_tuple(ctx, n->arg + n->u.i, n->nargs - (uint32_t)n->u.i);
    case TX_OP_FOR: return loop_field(ctx, n, name);
    case TX_OP_ALLOC: return tx_py_attrs(ctx, n->u.buf->attrs, n->u.buf->nattrs);
    case TX_OP_ASSERT: return assert_field(n->u.assertion, name);
    case TX_OP_ATTR: return tx_py_str(n->u.s);
    case TX_OP_SCOPE_ID: return scope_id_field(ctx, n, name);
    case TX_OP_DEVICE: return PyBool_FromLong(n->u.launch && n->u.launch->with_form);
    case TX_OP_LAUNCH: return tx_py_str(n->u.launch_of->kernel->name);
    default: break;
    }
    if (!is_call_with_name(n))
        return Py_NewRef(Py_None);
    return tx_py_str(name[0] == 'n' ? n->u.call->name : n->u.call->source);
}

PyObject *
tx_py_node_field(tx_py_context *ctx, const tx_node *n, const char *name)
{
    const node_row *row = row_of(n->op);
    bool star;
    int i = find_word(row->children, name, &star);

    if (i >= 0 && star)
        return nodes_tuple(ctx, n->arg + i, n->nargs - (uint32_t)i);
    if (i >= 0)
        return node_or_none(ctx, (uint32_t)i < n->nargs ? n->arg[i] : NULL);
    return find_word(row->others, name, &star) >= 0 ? other_field(ctx, n, name) : NULL;
}

PyObject *
tx_py_expr_getattr(PyObject *self, PyObject *name)
{
    tx_py_expr *e = (tx_py_expr *)self;
    PyObject *found = PyObject_GenericGetAttr(self, name);
    const char *text;

    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError) || !(text = PyUnicode_AsUTF8AndSize(name, NULL)))
        return found;
    PyErr_Clear();
    if ((found = tx_py_node_field(e->ctx, e->node, text)) || PyErr_Occurred())
        return found;
    return PyErr_Format(PyExc_AttributeError, "%s has no field '%U'", tx_py_node_class(e->node), name);
}

PyObject *
tx_py_node_children(PyObject *self, void *Py_UNUSED(closure))
{
    const tx_py_expr *e = (const tx_py_expr *)self;
    const tx_node *n = e->node;
    PyObject *list = PyList_New(0), *tuple = NULL;
    bool ok = list != NULL;

    for (uint32_t i = 0; ok && i < n->nargs; i++) {
        PyObject *x = n->arg[i] ? tx_py_new_expr(e->ctx, n->arg[i]) : NULL;
        ok = !n->arg[i] || (x && PyList_Append(list, x) == 0);
        Py_XDECREF(x);
    }
    if (ok)
        tuple = PySequence_Tuple(list);
    Py_XDECREF(list);
    return tuple;
}

/* ---- copies with other fields ------------------------------------------------------------------------------------ */

/* The first line of a node's text. */
PyObject *
tx_py_node_line(const tx_node *n)
{
    tx_sb sb = {0};

    tx_print_node(n, &sb);
    const char *end = sb.n ? memchr(sb.text, '\n', sb.n) : NULL;
    if (!end || end + 1 == sb.text + sb.n)
        sb.n = end ? (size_t)(end - sb.text) : sb.n;
    else {
        sb.n = (size_t)(end - sb.text);
        tx_sb_puts(&sb, " ...");
    }
    return tx_py_take_sb(&sb);
}

static void
refuse_replacement(tx_py_context *ctx, const tx_node *old, PyObject *x)
{
    const tx_node *given = tx_py_is_expr(x) ? ((tx_py_expr *)x)->node : NULL;
    const char *came = tx_py_type_name(ctx->c, x),
               *expected = "a statement of the same function, a list of them, or None";
    PyObject *line = tx_py_node_line(old);
    const char *text = line ? PyUnicode_AsUTF8AndSize(line, NULL) : NULL;

    if (given && ((tx_py_expr *)x)->ctx != ctx)
        came = "a node of another function";
    else if (given && tx_is_stmt(given))
        came = "a statement";
    else if (given)
        came = tx_is_stmt(old) ? "an expression" : tx_dtype_name(ctx->c, given->dtype);
    if (!tx_is_stmt(old)) {
        const tx_str *s = tx_intern_f(ctx->c, "%s, or None", tx_dtype_name(ctx->c, old->dtype));
        expected = s ? s->text : "";
    }
    if (text)
        tx_fail(ctx->c, ctx->c->span, TX_E_REPLACEMENT, came, text, expected);
    Py_XDECREF(line);
}

/* What takes the place of a node: of the same dtype, a statement for a statement. NULL: raised. */
const tx_node *
tx_py_replacement(tx_py_context *ctx, const tx_node *old, PyObject *x)
{
    const tx_node *made = NULL;
    tx_span span = ctx->c->span;

    if (old->op != TX_OP_VAR) /* whose place is that of its definition: the user of it says where */
        ctx->c->span = old->span;
    if (tx_is_stmt(old)) {
        const tx_node **at = NULL;
        Py_ssize_t n = PyList_Check(x) || PyTuple_Check(x) ? PySequence_Size(x) : -1;
        bool ok = n < 0 || (at = PyMem_Malloc(((size_t)n + 1) * sizeof *at)) || PyErr_NoMemory();
        for (Py_ssize_t i = 0; ok && i < n; i++) {
            PyObject *item = PySequence_GetItem(x, i);
            ok = item && tx_py_is_expr(item) && ((tx_py_expr *)item)->ctx == ctx &&
                 tx_is_stmt(at[i] = ((tx_py_expr *)item)->node);
            Py_XDECREF(item);
        }
        if (ok && n >= 0)
            made = tx_seq(ctx->c, at, (uint32_t)n);
        else if (ok && tx_py_is_expr(x) && ((tx_py_expr *)x)->ctx == ctx && tx_is_stmt(((tx_py_expr *)x)->node))
            made = ((tx_py_expr *)x)->node;
        PyMem_Free(at);
    } else if (!(tx_py_is_expr(x) && tx_is_stmt(((tx_py_expr *)x)->node))) {
        bool is_int = PyLong_Check(x), is_number = is_int || (PyFloat_Check(x) && tx_is_float(old->dtype));
        if (tx_py_try_node(ctx, x, old->dtype, &made) < 0)
            goto out;
        if (made && is_number && made->dtype != old->dtype && tx_lanes(old->dtype) == 1)
            made = tx_py_literal(ctx, old->dtype, x);
        else if (made && is_number)
            made = tx_cast(ctx->c, old->dtype, made); /* a plain number becomes one of the dtype */
        if (made && made->dtype != old->dtype)
            made = NULL;
    }
    if (!made && !PyErr_Occurred() && !ctx->c->nerrors)
        refuse_replacement(ctx, old, x);
out:
    ctx->c->span = span;
    return made && !PyErr_Occurred() && !ctx->c->nerrors ? made : tx_py_raise(ctx);
}

/* n with other children, with the checks of the constructors where there are any. */
const tx_node *
tx_py_rebuilt(tx_py_context *ctx, const tx_node *n, const tx_node *const *args)
{
    tx_span span = ctx->c->span;
    const tx_node *made;

    ctx->c->span = n->span;
    if (n->op == TX_OP_SEQ)
        made = tx_seq(ctx->c, args, n->nargs);
    else if (n->op == TX_OP_LOAD && !(n->u.buf->flags & TX_BUF_FLAT))
        made = tx_load(ctx->c, n->u.buf, args, n->nargs);
    else if (n->op == TX_OP_STORE && !(n->u.buf->flags & TX_BUF_FLAT))
        made = tx_store(ctx->c, n->u.buf, args + 1, n->nargs - 1, args[0]);
    else if (tx_has(n->op, TX_PROP_FOLDS))
        made = tx_refold(ctx->c, n, args);
    else
        made = tx_with_args(ctx->c, n, args);
    if (made && made->span != n->span && made->op == n->op)
        made = tx_with_span(ctx->c, made, n->span);
    ctx->c->span = span;
    return made ? made : tx_py_raise(ctx);
}

/* FOR: kind, unroll or annotations; ATTR: key. NULL: raised. */
static const tx_node *
with_payload(tx_py_context *ctx, const tx_node *n, const char *name, PyObject *value)
{
    static const char *const kinds[] = {"serial", "unroll", "vectorized", "parallel"};
    tx_payload u = n->u;
    tx_loop *loop = n->op == TX_OP_FOR ? tx_new(ctx->c, tx_loop, 1) : NULL;
    long count;

    if (n->op == TX_OP_ATTR && strcmp(name, "key") == 0) {
        if (!(u.s = tx_py_intern(ctx, value)))
            return NULL;
    } else if (loop) {
        *loop = *n->u.loop;
        u.loop = loop;
        if (strcmp(name, "kind") == 0) {
            int kind = 0;
            while (kind < 4 && !(PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, kinds[kind]) == 0))
                kind++;
            if (kind == 4)
                return PyErr_Format(PyExc_ValueError, "no kind of loop %R", value), NULL;
            loop->kind = (uint8_t)kind;
        } else if (strcmp(name, "unroll") == 0) {
            if (!tx_py_as_long(value, -1, INT32_MAX, "unroll", &count))
                return NULL;
            loop->unroll = (int32_t)count;
        } else if (strcmp(name, "annotations") == 0) {
            if (!tx_py_as_attrs(ctx, value, &loop->attrs, &loop->nattrs))
                return NULL;
        } else {
            return PyErr_Format(PyExc_TypeError, "field '%s' of For cannot be replaced", name), NULL;
        }
    } else {
        return PyErr_Format(PyExc_TypeError, "%s has no field '%s' that can be replaced", tx_py_node_class(n), name),
               NULL;
    }
    const tx_node *made = tx_make_at(ctx->c, n->span, n->op, n->dtype, u, n->arg, n->nargs);
    return made ? made : tx_py_raise(ctx);
}

/* A statement given as such, a list of them, or None for nothing. NULL: raised. */
static const tx_node *
as_statement(tx_py_context *ctx, PyObject *x)
{
    const tx_node *nothing = x == Py_None ? tx_seq(ctx->c, NULL, 0) : NULL, *some;

    if (nothing)
        return nothing;
    /* any statement shows what is expected */
    return (some = tx_seq(ctx->c, NULL, 0)) ? tx_py_replacement(ctx, some, x) : tx_py_raise(ctx);
}

static const tx_node *
with_child(tx_py_context *ctx, const tx_node *n, int i, bool star, PyObject *value)
{
    const tx_node **args = PyMem_Malloc((n->nargs + 1) * sizeof *args), *made = NULL;
    PyObject *items = star ? PySequence_Tuple(value) : NULL;
    bool ok = args && (!star || items);
    tx_span span = ctx->c->span;

    ctx->c->span = n->span;
    if (ok && n->nargs)
        memcpy(args, n->arg, n->nargs * sizeof *args);
    if (ok && star && PyTuple_Size(items) != (Py_ssize_t)n->nargs - i) {
        PyErr_Format(PyExc_ValueError, "%s has %d of them, got %zd", tx_py_node_class(n), (int)n->nargs - i,
                     PyTuple_Size(items));
        ok = false;
    }
    for (uint32_t k = (uint32_t)i; ok && k < (star ? n->nargs : (uint32_t)i + 1); k++) {
        PyObject *x = star ? PyTuple_GetItem(items, (Py_ssize_t)k - i) : value;
        const tx_node *now = n->arg[k];
        if (!now) { /* an arm or a value that is not there: Else, Return */
            args[k] = x == Py_None ? NULL : n->op == TX_OP_IF ? as_statement(ctx, x) : tx_py_as_typed(ctx, x);
            ok = args[k] || x == Py_None;
        } else if (x == Py_None && n->op == TX_OP_IF && k == 2) {
            args[k] = NULL;
        } else {
            ok = (args[k] = tx_py_replacement(ctx, now, x)) != NULL;
        }
    }
    if (ok)
        made = tx_py_rebuilt(ctx, n, args);
    else if (!PyErr_Occurred())
        PyErr_NoMemory();
    ctx->c->span = span;
    Py_XDECREF(items);
    PyMem_Free(args);
    return made;
}

PyObject *
tx_py_node_replace(PyObject *self, PyObject *args, PyObject *kwargs)
{
    tx_py_context *ctx = ((tx_py_expr *)self)->ctx;
    const tx_node *n = ((tx_py_expr *)self)->node;
    PyObject *items = kwargs ? PyDict_Items(kwargs) : PyList_New(0);

    if (items && PyTuple_Size(args) != 0)
        PyErr_SetString(PyExc_TypeError, "replace() takes fields by name: node.replace(value=x)");
    for (Py_ssize_t k = 0; items && !PyErr_Occurred() && n && k < PyList_Size(items); k++) {
        PyObject *pair = PyList_GetItem(items, k), *value = PyTuple_GetItem(pair, 1);
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(pair, 0), NULL);
        bool star = false;
        int i = name ? find_word(row_of(n->op)->children, name, &star) : -1;
        n = !name ? NULL : i >= 0 ? with_child(ctx, n, i, star, value) : with_payload(ctx, n, name, value);
    }
    Py_XDECREF(items);
    return n && !PyErr_Occurred() ? tx_py_new_expr(ctx, n) : NULL;
}

/* ---- statements one by one --------------------------------------------------------------------------------------- */

/* make_statement(ctx, class, fields...): for tirx.ir, whose classes check how many there are. */
static PyObject *
pynode_make_statement(PyObject *module, PyObject *const *a, Py_ssize_t nargs)
{
    tx_py_state *s = tx_py_state_of(module);
    tx_py_context *ctx = nargs >= 2 ? tx_py_as_context(s, a[0]) : NULL;
    const char *name = ctx ? PyUnicode_AsUTF8AndSize(a[1], NULL) : NULL;
    const tx_node *args[3] = {0}, *made = NULL, **idx;
    uint32_t n;

    if (!name)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a context and a class are expected");
    a += 2;
    nargs -= 2;
    if (strcmp(name, "BufferStore") == 0 && nargs == 3 && tx_py_is_buffer(a[0])) {
        tx_buffer *b = ((tx_py_buffer *)a[0])->buf;
        if (((tx_py_buffer *)a[0])->ctx != ctx)
            return tx_py_fail(ctx, TX_E_OTHER_CONTEXT, b->name->text);
        if ((args[0] = tx_py_as_stored(ctx, a[1], b->dtype)) && tx_py_as_nodes(ctx, a[2], &idx, &n))
            made = tx_store(ctx->c, b, idx, n, args[0]);
    } else if (strcmp(name, "Evaluate") == 0 && nargs == 1) {
        if ((args[0] = tx_py_as_arg(ctx, a[0])))
            made = tx_make(ctx->c, TX_OP_EVAL, TX_VOID, (tx_payload){0}, args, 1);
    } else if (strcmp(name, "SeqStmt") == 0 && nargs == 1) {
        made = as_statement(ctx, a[0]);
    } else if (strcmp(name, "IfThenElse") == 0 && nargs == 3) {
        const tx_node *cond = tx_py_as_node(ctx, a[0], TX_VOID);
        if (cond && (args[0] = tx_condition(ctx->c, cond)) && (args[1] = as_statement(ctx, a[1])) &&
            (a[2] == Py_None || (args[2] = as_statement(ctx, a[2]))))
            made = tx_make(ctx->c, TX_OP_IF, TX_VOID, (tx_payload){0}, args, 3);
    } else if (strcmp(name, "While") == 0 && nargs == 2) {
        const tx_node *cond = tx_py_as_node(ctx, a[0], TX_VOID);
        if (cond && (args[0] = tx_condition(ctx->c, cond)) && (args[1] = as_statement(ctx, a[1])))
            made = tx_make(ctx->c, TX_OP_WHILE, TX_VOID, (tx_payload){0}, args, 2);
    } else if (strcmp(name, "Bind") == 0 && nargs == 2) {
        if (!tx_py_is_expr(a[0]) || ((tx_py_expr *)a[0])->ctx != ctx || ((tx_py_expr *)a[0])->node->op != TX_OP_VAR)
            return PyErr_Format(PyExc_TypeError, "Bind: a variable of the same function is expected");
        tx_var *v = ((tx_py_expr *)a[0])->node->u.var;
        if ((args[0] = tx_py_as_stored(ctx, a[1], v->dtype)) && (args[0] = tx_cast(ctx->c, v->dtype, args[0])))
            made = tx_make(ctx->c, TX_OP_BIND, TX_VOID, (tx_payload){.var = v}, args, 1);
    } else if (strcmp(name, "Break") == 0 && nargs == 0) {
        made = tx_make(ctx->c, TX_OP_BREAK, TX_VOID, (tx_payload){0}, NULL, 0);
    } else if (strcmp(name, "Continue") == 0 && nargs == 0) {
        made = tx_make(ctx->c, TX_OP_CONTINUE, TX_VOID, (tx_payload){0}, NULL, 0);
    } else if (strcmp(name, "Return") == 0 && nargs == 1) {
        if (a[0] == Py_None || (args[0] = tx_py_as_typed(ctx, a[0])))
            made = tx_make(ctx->c, TX_OP_RETURN, TX_VOID, (tx_payload){0}, args, 1);
    } else {
        return PyErr_Format(PyExc_TypeError,
                            "%s is not made so: replace fields of a node that is there, or build with T", name);
    }
    return made ? tx_py_new_expr(ctx, made) : PyErr_Occurred() ? NULL : tx_py_raise(ctx);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static PyObject *
pynode_equal(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t nargs)
{
    if (nargs != 3 || !tx_py_is_expr(a[0]) || !tx_py_is_expr(a[1])) {
        PyErr_SetString(PyExc_TypeError, "two nodes and a bool are expected");
        return NULL;
    }
    return PyBool_FromLong(tx_same_structure(((tx_py_expr *)a[0])->node, ((tx_py_expr *)a[1])->node, a[2] != Py_True));
}

static PyObject *
pynode_hash(PyObject *Py_UNUSED(module), PyObject *const *a, Py_ssize_t nargs)
{
    if (nargs != 2 || !tx_py_is_expr(a[0])) {
        PyErr_SetString(PyExc_TypeError, "a node and a bool are expected");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(tx_hash_node(((tx_py_expr *)a[0])->node, a[1] != Py_True));
}

static PyObject *
pynode_classes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *list = PyList_New(0);

    for (unsigned op = 0; list && op < TX_OP__COUNT; op++) {
        const node_row *row = row_of(op);
        PyObject *item = Py_BuildValue("(sssss)", tx_ops[op].name, row->name, row->children, row->others,
                                       tx_has(op, TX_PROP_STMT) ? "Stmt" : "PrimExpr");
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyMethodDef node_module_methods[] = {
    {"node_classes", pynode_classes, METH_NOARGS, "[(op, class, children, other fields, \"Stmt\" or \"PrimExpr\")]"},
    {"make_statement", TX_PY_FAST(pynode_make_statement), METH_FASTCALL, "a statement by its class and fields"},
    {"nodes_equal", TX_PY_FAST(pynode_equal), METH_FASTCALL, "structural, free variables by order if the last is True"},
    {"node_hash", TX_PY_FAST(pynode_hash), METH_FASTCALL, "equal for nodes that are structurally equal"},
    {0},
};

int
tx_py_init_node(PyObject *module)
{
    return PyModule_AddFunctions(module, node_module_methods) < 0 || tx_py_init_rewrite(module) < 0 ? -1 : 0;
}
