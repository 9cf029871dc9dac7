/* Vector addition made with the builder, lowered and printed: the whole core below Python in one small program.
 *   cc -std=c11 -Icsrc tests/c/lower_demo.c csrc/base/X.c csrc/ir/X.c csrc/arith/X.c csrc/lower/X.c -lm
 * (X a star). SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lower/lower.h"

static tx_buffer *
tensor(tx_ctx *c, tx_builder *b, const char *name, const tx_node *extent)
{
    tx_func *f = tx_builder_func(b);
    tx_buffer *buf = tx_new_buffer(c, tx_intern_z(c, name), TX_F32, TX_GLOBAL, &extent, 1, NULL);

    if (!buf)
        return NULL;
    buf->flags |= TX_BUF_PARAM;
    f->params[f->nparams++] = (tx_param){.var = buf->data, .buffer = buf, .name = buf->name};
    return buf;
}

static tx_var *
scope_id(tx_ctx *c, tx_builder *b, tx_binding binding, const char *name, const tx_node *extent)
{
    tx_scope_id *id = tx_new(c, tx_scope_id, 1);

    if (!id)
        return NULL;
    *id = (tx_scope_id){.binding = binding, .nvars = 1, .nextents = 1, .dtype = TX_I32};
    id->var[0] = tx_new_var(c, TX_VAR_SCOPE_ID, tx_intern_z(c, name), TX_I32);
    return tx_emit(b, tx_make(c, TX_OP_SCOPE_ID, TX_VOID, (tx_payload){.scope_id = id}, &extent, 1)) ? id->var[0]
                                                                                                     : NULL;
}

static tx_func *
vector_add(tx_ctx *c)
{
    tx_builder *b = tx_builder_new(c, tx_intern_z(c, "add"), TX_G1);
    tx_func *f = tx_builder_func(b);
    tx_var *n = tx_new_var(c, TX_VAR_SYMBOL, tx_intern_z(c, "n"), TX_I32), *bx, *tx, *i;
    const tx_node *none[TX_L__COUNT] = {0}, *value;
    tx_buffer *A, *B, *C;
    tx_launch *launch = tx_new(c, tx_launch, 1);

    *launch = tx_no_launch;
    f->symbols = tx_new(c, tx_var *, 1);
    f->symbols[f->nsymbols++] = n;
    f->params = tx_new(c, tx_param, 3);
    A = tensor(c, b, "A", n->node);
    B = tensor(c, b, "B", n->node);
    C = tensor(c, b, "C", n->node);
    none[TX_L_BODY] = tx_seq(c, NULL, 0);
    tx_open(b, tx_make(c, TX_OP_DEVICE, TX_VOID, (tx_payload){.launch = launch}, none, TX_L__COUNT));
    bx = scope_id(c, b, TX_B_KERNEL_CTA, "bx", tx_binary(c, TX_OP_CEILDIV, n->node, tx_weak_int(c, 256)));
    tx = scope_id(c, b, TX_B_CTA_THREAD, "tx", tx_int(c, TX_I32, 256));
    i = tx_new_var(c, TX_VAR_LET, tx_intern_z(c, "i"), TX_I32);
    value = tx_binary(c, TX_OP_ADD, tx_binary(c, TX_OP_MUL, bx->node, tx_weak_int(c, 256)), tx->node);
    tx_emit(b, tx_make(c, TX_OP_BIND, TX_VOID, (tx_payload){.var = i}, &value, 1));
    value = tx_binary(c, TX_OP_LT, i->node, n->node);
    tx_open(b, tx_make(c, TX_OP_IF, TX_VOID, (tx_payload){0}, (const tx_node *[]){value, tx_seq(c, NULL, 0), NULL}, 3));
    value = tx_binary(c, TX_OP_ADD, tx_load(c, A, (const tx_node *[]){i->node}, 1),
                      tx_load(c, B, (const tx_node *[]){i->node}, 1));
    tx_emit(b, tx_store(c, C, (const tx_node *[]){i->node}, 1, value));
    tx_close(b);
    return tx_builder_finish(b);
}

static void
show(const char *pass, const tx_module *m)
{
    tx_sb text = {0};
    tx_print_options o = {.dialect = -1, .syntax_sugar = true};

    tx_print_module(m, &o, &text);
    printf("---- %s\n%s\n", pass, text.text ? text.text : "");
    tx_sb_free(&text);
}

int
main(void)
{
    tx_ctx *c = tx_ctx_new(), *to = tx_ctx_new();
    tx_target t;
    tx_module *m = tx_new_module(c, 1), *out;

    m->funcs[0] = vector_add(c);
    m->names[0] = tx_intern_z(c, "main");
    if (!m->funcs[0])
        return 1;
    show("as built", m);
    tx_target_parse(to, "cpu", &t);
    t.dump = show;
    out = tx_lower(to, m, &t);
    for (uint32_t i = 0; i < to->diags.n; i++) {
        tx_sb text = {0};
        tx_diag_render(to, &to->diags.at[i], &text);
        printf("%s\n", text.text);
        tx_sb_free(&text);
    }
    if (out)
        show("lowered", out);
    tx_ctx_free(to);
    tx_ctx_free(c);
    return !out;
}
