/* Does a kernel write behind one of its pointers? Decides which tensors of a call may be read-only. Takes lowered functions,
 * follows their calls. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/plan.h"

/* Is memory behind this data pointer ever written (as far as the text tells; an escaping pointer counts)? */
typedef struct write_search {
    tx_visitor v;
    const tx_var *data;
    int depth; /* of calls */
    bool found;
} write_search;

static bool
look_for_write(tx_visitor *v, const tx_node *n)
{
    write_search *s = (write_search *)v;

    if (n->op == TX_OP_STORE && n->u.buf->data == s->data)
        s->found = true;
    if (n->op == TX_OP_ATOMIC_ADD || n->op == TX_OP_ATOMIC_CAS) {
        const tx_node *p = n->arg[0];
        if (p->op == TX_OP_ADDRESS_OF && p->arg[0]->op == TX_OP_LOAD && p->arg[0]->u.buf->data == s->data)
            s->found = true;
        if ((p->op == TX_OP_VAR && p->u.var == s->data) || (p->op == TX_OP_BUFFER_DATA && p->u.buf->data == s->data))
            s->found = true;
    }
    for (uint32_t i = 0; n->op == TX_OP_CALL_FUNC && !s->found && i < n->nargs; i++) {
        const tx_node *p = n->arg[i]->op == TX_OP_ADDRESS_OF ? n->arg[i]->arg[0] : n->arg[i];
        const tx_func *f = n->u.call->func;
        if (p->op == TX_OP_VAR ? p->u.var == s->data
                               : (p->op == TX_OP_BUFFER_DATA || p->op == TX_OP_LOAD) && p->u.buf->data == s->data)
            s->found =
                s->depth > TX_MAX_INLINE_DEPTH || !f || i >= f->nparams ||
                tx_plan_writes(f, f->params[i].buffer ? f->params[i].buffer->data : f->params[i].var, s->depth + 1);
    }
    return !s->found;
}

/* Does the function write behind this pointer of its own, itself or through what it calls? */
bool
tx_plan_writes(const tx_func *f, const tx_var *data, int depth)
{
    write_search s = {.v = {.enter = look_for_write}, .data = data, .depth = depth};

    tx_walk(&s.v, f->body);
    return s.found;
}
