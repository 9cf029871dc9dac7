/* Deep copy of functions and modules into another context: variables, buffers, places, files and names come along. What
 * is shared stays shared: every record is copied once, by its address. SPDX-License-Identifier: Apache-2.0 */
#include "ir/fold.h"
#include "ir/ptx.h"

typedef struct importer {
    tx_ctx *to;
    const tx_ctx *from;
    tx_map memo;         /* nodes, variables, buffers, functions: old -> new */
    tx_map spans, files; /* index + 1 -> index */
} importer;

static const tx_node *import_node(importer *m, const tx_node *n);
static tx_buffer *import_buffer(importer *m, tx_buffer *b);
static tx_func *import_func(importer *m, const tx_func *f);

static void *
out_of_memory(importer *m)
{
    return tx_fail(m->to, 0, TX_E_NO_MEMORY);
}

/* ---- names and places ------------------------------------------------------------------------------------------ */

static const tx_str *
import_str(importer *m, const tx_str *s)
{
    return s ? tx_intern(m->to, s->text, s->len) : NULL;
}

static uint32_t
import_file(importer *m, uint32_t file)
{
    const tx_file *f = &m->from->files.at[file];
    uint64_t known;
    uint32_t index;

    if (file == 0)
        return 0;
    if (tx_map_get(&m->files, file + 1, &known))
        return (uint32_t)known;
    index = tx_add_file(m->to, f->name->text, f->text->text, f->text->len, f->first_line);
    if (!tx_map_put(&m->files, file + 1, index))
        out_of_memory(m);
    return index;
}

static tx_span
import_span(importer *m, tx_span span)
{
    tx_span_info info = *tx_span_at(m->from, span);
    uint64_t known;
    tx_span s;

    if (span == 0)
        return 0;
    if (tx_map_get(&m->spans, (uint64_t)span + 1, &known))
        return (tx_span)known;
    info.file = import_file(m, info.file);
    info.function = import_str(m, info.function);
    info.inlined_at = import_span(m, info.inlined_at);
    s = tx_add_span(m->to, info);
    if (!tx_map_put(&m->spans, (uint64_t)span + 1, s))
        out_of_memory(m);
    return s;
}

/* ---- records --------------------------------------------------------------------------------------------------- */

static bool
import_remember(importer *m, const void *from, const void *to)
{
    return to && (tx_map_put_ptr(&m->memo, from, to) || out_of_memory(m) != NULL);
}

static tx_var *
import_var(importer *m, tx_var *v)
{
    tx_var *to = v ? tx_map_ptr(&m->memo, v) : NULL;
    tx_node head = {.op = TX_OP_VAR};

    if (to || !v)
        return to;
    if (!(to = tx_new(m->to, tx_var, 1)) || !import_remember(m, v, to))
        return NULL;
    *to = *v;
    to->id = m->to->next_id++;
    to->span = import_span(m, v->span);
    head.dtype = v->dtype;
    head.u.var = to;
    head.span = import_span(m, v->node->span);
    if (!(to->name = import_str(m, v->name)) || !(to->node = tx_make_node(m->to, &head, NULL)))
        return NULL;
    to->buffer = v->buffer ? import_buffer(m, v->buffer) : NULL;
    return v->buffer && !to->buffer ? NULL : to;
}

static bool
import_list(importer *m, const tx_node *const *from, const tx_node **to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i] ? import_node(m, from[i]) : NULL;
        if (from[i] && !to[i])
            return false;
    }
    return true;
}

static bool
import_attrs(importer *m, uint32_t n, const tx_attr **attrs)
{
    const tx_attr *from = *attrs;
    tx_attr *to = n ? tx_new(m->to, tx_attr, n) : NULL;

    *attrs = to;
    if (n && !to)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!(to[i].key = import_str(m, from[i].key)) || !import_list(m, &from[i].value, &to[i].value, 1))
            return false;
    return true;
}

static tx_buffer *
import_buffer(importer *m, tx_buffer *b)
{
    tx_buffer *to = b ? tx_map_ptr(&m->memo, b) : NULL;

    if (to || !b)
        return to;
    if (TX_NEVER(b->layout != NULL))
        return tx_fail(m->to, 0, TX_E_INTERNAL, "a layout cannot be copied yet");
    if (!(to = tx_new(m->to, tx_buffer, 1)) || !import_remember(m, b, to))
        return NULL;
    *to = *b;
    to->id = m->to->next_id++;
    to->span = import_span(m, b->span);
    if (!(to->name = import_str(m, b->name)) || (b->data && !(to->data = import_var(m, b->data))) ||
        (b->origin && !(to->origin = import_buffer(m, b->origin))) ||
        !(to->shape = tx_new(m->to, const tx_node *, b->rank)) ||
        (b->strides && !(to->strides = tx_new(m->to, const tx_node *, b->rank))))
        return NULL;
    if (!import_list(m, b->shape, to->shape, b->rank) ||
        (b->strides && !import_list(m, b->strides, to->strides, b->rank)) ||
        !import_list(m, &b->elem_offset, &to->elem_offset, 1) ||
        !import_list(m, &b->byte_offset, &to->byte_offset, 1) ||
        !import_list(m, &b->allocated_addr, &to->allocated_addr, 1) || !import_attrs(m, b->nattrs, &to->attrs))
        return NULL;
    return to;
}

static const tx_loop *
import_loop(importer *m, const tx_loop *loop)
{
    tx_loop *to = tx_new(m->to, tx_loop, 1);

    if (!to)
        return NULL;
    *to = *loop;
    return (to->var = import_var(m, loop->var)) && import_attrs(m, loop->nattrs, &to->attrs) ? to : NULL;
}

static const tx_scope_id *
import_scope_id(importer *m, const tx_scope_id *s)
{
    tx_scope_id *to = tx_new(m->to, tx_scope_id, 1);

    if (!to)
        return NULL;
    *to = *s;
    for (int i = 0; i < s->nvars; i++)
        if (s->var[i] && !(to->var[i] = import_var(m, s->var[i])))
            return NULL;
    return to;
}

static const tx_launch *
import_launch(importer *m, const tx_launch *launch)
{
    tx_launch *to = tx_new(m->to, tx_launch, 1);

    if (!to)
        return NULL;
    *to = *launch;
    return import_attrs(m, launch->nattrs, &to->attrs) ? to : NULL;
}

static const tx_launch_of *
import_launch_of(importer *m, const tx_launch_of *l)
{
    tx_launch_of *to = tx_new(m->to, tx_launch_of, 1);

    if (!to)
        return NULL;
    *to = *l;
    return (!l->kernel || (to->kernel = import_func(m, l->kernel))) &&
                   import_attrs(m, l->launch.nattrs, &to->launch.attrs)
               ? to
               : NULL;
}

static const tx_call *
import_call(importer *m, const tx_call *call)
{
    tx_call *to = tx_new(m->to, tx_call, 1);

    if (!to || (call->name && !(to->name = import_str(m, call->name))) ||
        (call->source && !(to->source = import_str(m, call->source))) ||
        (call->func && !(to->func = import_func(m, call->func))))
        return NULL;
    return to;
}

static const tx_assertion *
import_assertion(importer *m, const tx_assertion *a)
{
    tx_assertion *to = tx_new(m->to, tx_assertion, 1);
    const tx_str **parts = tx_new(m->to, const tx_str *, a->nparts);

    if (!to || !parts || (a->kind && !(to->kind = import_str(m, a->kind))))
        return NULL;
    for (uint32_t i = 0; i < a->nparts; i++)
        if (!(parts[i] = import_str(m, a->parts[i])))
            return NULL;
    to->nparts = a->nparts;
    to->parts = parts;
    return to;
}

static const tx_ptx_call *
import_ptx(importer *m, const tx_ptx_call *call)
{
    tx_ptx_call *to = tx_new(m->to, tx_ptx_call, 1);
    uint8_t *op_of = tx_new(m->to, uint8_t, call->nargs + 1);

    if (!to || !op_of)
        return NULL;
    *to = *call;
    memcpy(op_of, call->op_of, call->nargs);
    to->op_of = op_of;
    return to;
}

static bool
import_payload(importer *m, unsigned op, tx_payload *u)
{
    if (u->bits == 0)
        return true;
    switch (tx_payload_kind_of(op)) {
    case TX_P_PLAIN: return true;
    case TX_P_STR: return (u->s = import_str(m, u->s)) != NULL;
    case TX_P_VAR: return (u->var = import_var(m, u->var)) != NULL;
    case TX_P_BUF: return (u->buf = import_buffer(m, u->buf)) != NULL;
    case TX_P_LOOP: return (u->loop = import_loop(m, u->loop)) != NULL;
    case TX_P_SCOPE_ID: return (u->scope_id = import_scope_id(m, u->scope_id)) != NULL;
    case TX_P_LAUNCH: return (u->launch = import_launch(m, u->launch)) != NULL;
    case TX_P_LAUNCH_OF: return (u->launch_of = import_launch_of(m, u->launch_of)) != NULL;
    case TX_P_CALL: return (u->call = import_call(m, u->call)) != NULL;
    case TX_P_ASSERTION: return (u->assertion = import_assertion(m, u->assertion)) != NULL;
    case TX_P_PTX: return (u->ptx = import_ptx(m, u->ptx)) != NULL;
    case TX_P_TILE: break;
    }
    return tx_fail(m->to, 0, TX_E_INTERNAL, "this node cannot be copied yet") != NULL;
}

static const tx_node *
import_node(importer *m, const tx_node *n)
{
    const tx_node *known = tx_map_ptr(&m->memo, n), **args, *to = NULL;
    tx_mark mark = tx_arena_mark(&m->to->scratch);
    tx_node head;

    if (known)
        return known;
    if (!(args = tx_scratch(m->to, const tx_node *, n->nargs)))
        return NULL;
    memcpy(&head, n, sizeof head);
    head.span = import_span(m, n->span);
    if (import_payload(m, n->op, &head.u) && import_list(m, n->arg, args, n->nargs)) {
        /* one VAR node a variable, but for uses at other places */
        to = tx_make_node(m->to, &head, args);
        if (!import_remember(m, n, to))
            to = NULL;
    }
    tx_arena_release(&m->to->scratch, mark);
    return to;
}

static bool
import_params(importer *m, const tx_func *f, tx_func *to)
{
    if (!(to->params = tx_new(m->to, tx_param, f->nparams)) || !(to->symbols = tx_new(m->to, tx_var *, f->nsymbols)))
        return false;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const tx_param *p = &f->params[i];

        to->params[i] = *p;
        to->params[i].span = import_span(m, p->span);
        if ((p->name && !(to->params[i].name = import_str(m, p->name))) ||
            (p->var && !(to->params[i].var = import_var(m, p->var))) ||
            (p->buffer && !(to->params[i].buffer = import_buffer(m, p->buffer))))
            return false;
    }
    for (uint32_t i = 0; i < f->nsymbols; i++)
        if (!(to->symbols[i] = import_var(m, f->symbols[i])))
            return false;
    return true;
}

static tx_func *
import_func(importer *m, const tx_func *f)
{
    tx_func *to = tx_map_ptr(&m->memo, f);

    if (to)
        return to;
    if (!(to = tx_new(m->to, tx_func, 1)) || !import_remember(m, f, to))
        return NULL;
    *to = *f;
    to->ctx = m->to;
    to->span = import_span(m, f->span);
    if (!(to->name = import_str(m, f->name)) || (f->symbol && !(to->symbol = import_str(m, f->symbol))) ||
        !import_params(m, f, to) || !import_attrs(m, f->nattrs, &to->attrs) ||
        !import_list(m, &f->body, &to->body, 1) || !import_attrs(m, f->launch.nattrs, &to->launch.attrs) ||
        !import_list(m, f->block, to->block, 3) || !import_list(m, &f->dyn_smem, &to->dyn_smem, 1))
        return NULL;
    return to;
}

/* ---- public ---------------------------------------------------------------------------------------------------- */

static void
importer_free(importer *m)
{
    tx_map_free(&m->memo);
    tx_map_free(&m->spans);
    tx_map_free(&m->files);
}

tx_func *
tx_import_func(tx_ctx *to, const tx_func *f)
{
    importer m = {.to = to, .from = f->ctx};
    uint32_t errors = to->nerrors;
    tx_func *out = import_func(&m, f);

    importer_free(&m);
    return to->nerrors == errors ? out : NULL;
}

tx_module *
tx_import_module(tx_ctx *to, const tx_module *from)
{
    importer m = {.to = to, .from = from->ctx};
    uint32_t errors = to->nerrors;
    tx_module *out = tx_new_module(to, from->nfuncs);

    if (out) {
        out->nattrs = from->nattrs;
        out->attrs = from->attrs;
        if (!import_attrs(&m, from->nattrs, &out->attrs))
            out = NULL;
    }
    for (uint32_t i = 0; out && i < from->nfuncs; i++)
        if (!(out->funcs[i] = import_func(&m, from->funcs[i])) || !(out->names[i] = import_str(&m, from->names[i])))
            out = NULL;
    importer_free(&m);
    return to->nerrors == errors ? out : NULL;
}
