/* The Builder's statements about values: storage, stores, bindings, cells, loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arith/arith.h"
#include "python/builder.h"

/* ---- buffers, stores, values ------------------------------------------------------------------------------------- */

METHOD(alloc, 1, 1, "buf")
{
    tx_py_buffer *b = tx_py_own_buffer(SELF, a[0]);

    return b ? tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_ALLOC, (tx_payload){.buf = b->buf}, NULL, 0)) : NULL;
}

METHOD(decl, 2, 2, "buf", "data")
{
    tx_py_buffer *b = tx_py_own_buffer(SELF, a[0]);
    const tx_node *data = b ? tx_py_as_typed(SELF->ctx, a[1]) : NULL;

    if (!data)
        return NULL;
    b->buf->flags |= TX_BUF_VIEW;
    return tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_DECL, (tx_payload){.buf = b->buf}, &data, 1));
}

static bool
store_held(tx_py_builder *builder, tx_buffer *buf, PyObject *indices, PyObject *value)
{
    PyObject *self = (PyObject *)builder;
    tx_py_context *ctx = builder->ctx;
    const tx_node **idx, **extent, *v;
    uint32_t kept;
    int64_t step;
    int r;

    if (TX_UNLIKELY(SELF->before != NULL)) {
        PyObject *before = SELF->before, *done;
        SELF->before = NULL;
        done = PyObject_CallNoArgs(before);
        Py_DECREF(before);
        if (!done)
            return false;
        Py_DECREF(done);
    }
    if (!tx_py_builder_open(SELF) || (r = tx_py_subscript(ctx, buf, indices, true, &idx, &extent, &kept, &step)) < 0)
        return false;
    if (r == 1 && kept && !tx_py_is_vector_value(value, idx[buf->rank - 1], step)) { /* back to the region */
        const tx_node *last = idx[buf->rank - 1];
        idx[buf->rank - 1] = last->op == TX_OP_RAMP ? last->arg[0] : last;
        r = 0;
    }
    if (r == 0)
        return tx_py_store_region(builder, buf, idx, extent, kept, step, value);
    if (!(v = tx_py_as_stored(ctx, value, buf->dtype)) || !tx_py_builder_open(SELF))
        return false;
    if (!tx_emit(builder->b, tx_store(ctx->c, buf, idx, buf->rank, v)))
        return tx_py_raise(ctx), false;
    return true;
}

/* What the operands run may end the builder: it is held meanwhile. */
bool
tx_py_store(tx_py_builder *builder, tx_buffer *buf, PyObject *indices, PyObject *value)
{
    Py_INCREF((PyObject *)builder);
    bool ok = store_held(builder, buf, indices, value);
    Py_DECREF((PyObject *)builder);
    return ok;
}

METHOD(store, 3, 3, "buf", "indices", "value")
{
    tx_py_buffer *b = tx_py_own_buffer(SELF, a[0]);
    PyObject *indices = PyList_Check(a[1]) ? PySequence_Tuple(a[1]) : Py_NewRef(a[1]);
    bool ok = b && indices && tx_py_store(SELF, b->buf, indices, a[2]);

    Py_XDECREF(indices);
    return ok ? Py_NewRef(Py_None) : NULL;
}

/* A value as it is bound: typed, or converted to the dtype asked for. */
static const tx_node *
bound_value(tx_py_context *ctx, PyObject *x, PyObject *dtype)
{
    tx_dtype t;

    if (!TX_PY_GIVEN(dtype))
        return tx_py_as_typed(ctx, x);
    if (!tx_py_as_dtype(ctx, dtype, &t))
        return NULL;
    const tx_node *n = tx_py_as_stored(ctx, x, t);
    n = n ? tx_cast(ctx->c, t, n) : NULL;
    return n || PyErr_Occurred() ? n : tx_py_raise(ctx);
}

static tx_var *
bind_value(PyObject *self, const tx_str *name, const tx_node *value)
{
    tx_ctx *c = SELF->ctx->c;
    tx_var *v = tx_is_handle(value->dtype)
                    ? tx_new_ptr_var(c, TX_VAR_LET, name, value->elem ? value->elem : TX_VOID, (tx_scope)value->scope)
                    : tx_new_var(c, TX_VAR_LET, name, value->dtype);

    if (!v || !tx_emit(SELF->b, tx_py_stmt(SELF, TX_OP_BIND, (tx_payload){.var = v}, &value, 1)))
        return tx_py_raise(SELF->ctx);
    return v;
}

METHOD(bind, 2, 4, "name", "value", "dtype", "droppable")
{
    const tx_str *name = tx_py_intern(SELF->ctx, a[0]);
    const tx_node *value = name ? bound_value(SELF->ctx, a[1], a[2]) : NULL;
    tx_var *v = value ? bind_value(self, name, value) : NULL;

    if (v && a[3] == Py_True && !tx_builder_droppable(SELF->b, v))
        return tx_py_raise(SELF->ctx);
    return v ? tx_py_new_expr(SELF->ctx, v->node) : NULL;
}

/* The record of a cell: one element, used by name. */
static tx_buffer *
statement_new_cell(PyObject *self, PyObject *name, PyObject *dtype, PyObject *scope)
{
    tx_py_context *ctx = SELF->ctx;
    const tx_str *text = tx_py_intern(ctx, name);
    const tx_node *one;
    const char *s;
    tx_scope in = TX_LOCAL;
    tx_dtype t;

    if (!text || !tx_py_as_dtype(ctx, dtype, &t))
        return NULL;
    if (TX_PY_GIVEN(scope)) {
        if (!(s = PyUnicode_AsUTF8AndSize(scope, NULL)))
            return NULL;
        if (!tx_scope_parse(s, &in))
            return tx_py_fail(ctx, TX_E_BAD_SCOPE, s);
    }
    one = tx_int(ctx->c, TX_I32, 1);
    tx_buffer *b = one ? tx_new_buffer(ctx->c, text, t, in, &one, 1, NULL) : NULL;
    if (!b)
        return tx_py_raise(ctx);
    b->flags |= TX_BUF_CELL;
    return b;
}

METHOD(cell, 2, 4, "name", "dtype", "init", "scope")
{
    tx_buffer *b = statement_new_cell(self, a[0], a[1], a[3]);
    tx_py_context *ctx = SELF->ctx;
    const tx_node *init = NULL, *zero;

    if (!b || (TX_PY_GIVEN(a[2]) && !(init = tx_py_as_stored(ctx, a[2], b->dtype))))
        return NULL;
    if (!tx_emit(SELF->b, tx_py_stmt(SELF, TX_OP_ALLOC, (tx_payload){.buf = b}, NULL, 0)))
        return tx_py_raise(ctx);
    if (init && (!(zero = tx_int(ctx->c, TX_I32, 0)) || !tx_emit(SELF->b, tx_store(ctx->c, b, &zero, 1, init))))
        return tx_py_raise(ctx);
    return tx_py_new_buffer(ctx, b);
}

METHOD(hoist_cell, 3, 3, "name", "dtype", "level")
{
    tx_buffer *b = statement_new_cell(self, a[0], a[1], NULL);
    long level;

    if (!b || !tx_py_as_long(a[2], 0, tx_builder_depth(SELF->b) - 1, "level", &level))
        return NULL;
    if (!tx_emit_at(SELF->b, (int)level, tx_py_stmt(SELF, TX_OP_ALLOC, (tx_payload){.buf = b}, NULL, 0)))
        return tx_py_raise(SELF->ctx);
    return tx_py_new_buffer(SELF->ctx, b);
}

METHOD(evaluate, 1, 1, "x")
{
    const tx_node *n = tx_py_as_arg(SELF->ctx, a[0]);

    return n ? tx_py_emitted(SELF, tx_py_stmt(SELF, TX_OP_EVAL, (tx_payload){0}, &n, 1)) : NULL;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The loop's dtype: what was asked for, else that of the bounds; weak bounds do not widen the others. */
static bool
loop_dtype(tx_py_context *ctx, const tx_node *const *bound, PyObject *asked, tx_dtype *out)
{
    tx_dtype t = TX_VOID;

    for (int i = 0; i < 3; i++) {
        if (!tx_is_int(bound[i]->dtype) || tx_lanes(bound[i]->dtype) != 1)
            return tx_py_fail(ctx, TX_E_LOOP_BOUND_TYPE, tx_dtype_name(ctx->c, bound[i]->dtype)), false;
        if (!(bound[i]->flags & TX_NF_WEAK))
            t = t == TX_VOID ? bound[i]->dtype : tx_promote(t, bound[i]->dtype);
    }
    for (int i = 0; i < 3 && t == TX_VOID; i++)
        if (bound[i]->dtype == TX_I64)
            t = TX_I64;
    *out = t == TX_VOID ? TX_I32 : t;
    if (!TX_PY_GIVEN(asked))
        return true;
    if (!tx_py_as_dtype(ctx, asked, out))
        return false;
    if (*out != TX_I32 && *out != TX_U32)
        return tx_py_fail(ctx, TX_E_LOOP_DTYPE), false;
    return true;
}

/* A step must be known to be positive or negative, since the turns depend on it. */
static bool
check_step(tx_py_context *ctx, const tx_node *step)
{
    tx_facts *facts;
    int64_t v;

    if (tx_const_i64(step, &v))
        return v != 0 || (tx_py_fail(ctx, TX_E_LOOP_STEP_ZERO), false);
    if ((facts = tx_facts_new(ctx->c))) { /* coordinates and sizes of the launch have bounds of their own */
        tx_bounds b = tx_bounds_of(facts, step);
        tx_facts_free(facts);
        if (b.lo > 0 || b.hi < 0)
            return true;
    }
    tx_sb sb = {0};
    tx_print_node(step, &sb);
    tx_fail(ctx->c, ctx->c->span, TX_E_LOOP_STEP_SIGN, sb.n ? sb.text : "?");
    tx_sb_free(&sb);
    tx_py_raise(ctx);
    return false;
}

/* A bound in the loop's dtype. A number must fit, and a step that counts down must stay one. */
static const tx_node *
loop_bound(tx_py_context *ctx, const tx_node *n, tx_dtype t, bool step)
{
    int64_t v;
    bool known = tx_const_i64(n, &v) && tx_is_signed(n->dtype);

    if (known && ((n->flags & TX_NF_WEAK) || (step && v < 0)))
        return tx_literal_int(ctx->c, t, v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    return tx_cast(ctx->c, t, n);
}

enum { F_NAME, F_START, F_STOP, F_STEP, F_KIND, F_UNROLL, F_ANNOTATIONS, F_DTYPE };

/* Converts the bounds into args[0..2]; each is taken once, so that one that reads memory goes through a temporary. */
static bool
loop_bounds(PyObject *self, PyObject *const *a, const tx_str *name, const tx_node **args, tx_dtype *t)
{
    static const char *const suffix[] = {"start", "stop", "step"};
    tx_py_context *ctx = SELF->ctx;

    for (int i = 0; i < 3; i++) {
        PyObject *x = a[F_START + i];
        args[i] = TX_PY_GIVEN(x) ? tx_py_as_node(ctx, x, TX_VOID) : tx_weak_int(ctx->c, 1);
        if (!args[i])
            return tx_py_raise(ctx), false;
    }
    if (!loop_dtype(ctx, args, a[F_DTYPE], t))
        return false;
    for (int i = 0; i < 3; i++) {
        args[i] = loop_bound(ctx, args[i], *t, i == 2);
        if (!args[i])
            return tx_py_raise(ctx), false;
        if (i == 2 && !check_step(ctx, args[i]))
            return false;
        if (!(args[i]->flags & TX_NF_IMPURE) || i == 0)
            continue;
        const tx_str *temp = tx_intern_f(ctx->c, "%s_%s", name->text, suffix[i]);
        tx_var *v = temp ? bind_value(self, temp, args[i]) : tx_py_raise(ctx);
        if (!v)
            return false;
        args[i] = v->node;
    }
    return true;
}

METHOD(open_for, 3, 8, "name", "start", "stop", "step", "kind", "unroll", "annotations", "dtype")
{
    static const char *const kinds[] = {"serial", "unroll", "vectorized", "parallel"};
    tx_py_context *ctx = SELF->ctx;
    const tx_str *name = tx_py_intern(ctx, a[F_NAME]);
    const tx_node *args[4] = {0};
    long unroll = 0;
    int kind = 0;
    tx_dtype t;

    if (!name || !loop_bounds(self, a, name, args, &t))
        return NULL;
    while (a[F_KIND] && kind < 4 &&
           !(PyUnicode_Check(a[F_KIND]) && PyUnicode_CompareWithASCIIString(a[F_KIND], kinds[kind]) == 0))
        kind++;
    if (kind == 4) {
        PyErr_Format(PyExc_ValueError, "no kind of loop %R", a[F_KIND]);
        return NULL;
    }
    if (TX_PY_GIVEN(a[F_UNROLL]) && !tx_py_as_long(a[F_UNROLL], -1, INT32_MAX, "unroll", &unroll))
        return NULL;
    tx_loop *loop = tx_new(ctx->c, tx_loop, 1);
    if (!loop)
        return tx_py_raise(ctx);
    loop->kind = (uint8_t)kind;
    loop->unroll = (int32_t)unroll;
    if (TX_PY_GIVEN(a[F_ANNOTATIONS]) && !tx_py_as_attrs(ctx, a[F_ANNOTATIONS], &loop->attrs, &loop->nattrs))
        return NULL;
    if (!(loop->var = tx_new_var(ctx->c, TX_VAR_LOOP, name, t)))
        return tx_py_raise(ctx);
    PyObject *r = tx_py_open_block(SELF, tx_py_stmt(SELF, TX_OP_FOR, (tx_payload){.loop = loop}, args, 4), false);
    if (!r)
        return NULL;
    Py_DECREF(r);
    return tx_py_new_expr(ctx, loop->var->node);
}
