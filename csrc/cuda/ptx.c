/* One PTX instruction as inline assembly: a helper function for each (row, choices, dtypes, immediates, sinks, guard), its C
 * parameters the operands in order, and the call. Everything follows from the row of ptx.def (intrinsics 2.4). Only pure
 * register moves are not volatile; "memory" is clobbered where an address other than tensor memory's is touched, or where
 * the row says that it orders memory. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/ptx.h"

#include <stdio.h>

#include "ir/ptx.h"

/* How a register travels: C type of the parameter, constraint letter, and the wider type for what has no register. */
typedef struct ptx_carrier {
    const char *type, *constraint, *wide;
} ptx_carrier;

typedef struct ptx_helper {
    em *e;
    const tx_node *n;
    const tx_ptx_call *call;
    const tx_ptx_row *row;
    tx_sb params, outs, ins, decl, pre, post, before, after, text, name;
    uint32_t nparams, noperands, nbridges;
    bool memory;
    char word[TX_PTX_MAX_ARGS][12]; /* how each argument reads in the text: "%3", "p0", "_" */
} ptx_helper;

static ptx_carrier
carrier_of(tx_dtype t)
{
    switch (tx_kind(t)) {
    case TX_KIND_BOOL: return (ptx_carrier){"bool", "r", "uint"};
    case TX_KIND_I8: return (ptx_carrier){"signed char", "h", "short"};
    case TX_KIND_U8: return (ptx_carrier){"uchar", "h", "ushort"};
    case TX_KIND_I16: return (ptx_carrier){"short", "h", NULL};
    case TX_KIND_U16: return (ptx_carrier){"ushort", "h", NULL};
    case TX_KIND_F16: return (ptx_carrier){"tirx_f16", "h", NULL};
    case TX_KIND_BF16: return (ptx_carrier){"tirx_bf16", "h", NULL};
    case TX_KIND_I32: return (ptx_carrier){"int", "r", NULL};
    case TX_KIND_U32: return (ptx_carrier){"uint", "r", NULL};
    case TX_KIND_F32: return (ptx_carrier){"float", "f", NULL};
    case TX_KIND_F64: return (ptx_carrier){"double", "d", NULL};
    case TX_KIND_I64: return (ptx_carrier){"int64_t", "l", NULL};
    case TX_KIND_U64: return (ptx_carrier){"uint64_t", "l", NULL};
    case TX_KIND_I128: return (ptx_carrier){"__int128_t", "q", NULL};
    case TX_KIND_U128: return (ptx_carrier){"__uint128_t", "q", NULL};
    default: return (ptx_carrier){"const void*", "l", NULL};
    }
}

static const tx_ptx_operand *
ptx_operand_of(const ptx_helper *h, uint32_t arg)
{
    return &h->row->op[h->call->op_of[arg]];
}

static const char *
ptx_type_of(const ptx_helper *h, const tx_ptx_operand *o)
{
    return tx_ptx_type(h->row, h->call->choice, o);
}

static bool
narrow_address(const char *space)
{
    return strncmp(space, "shared", 6) == 0 || strcmp(space, "tmem") == 0;
}

/* Bytes that the text adds to an address (T.ptx.addr), or 0. */
static int64_t
displacement(const ptx_helper *h, uint32_t arg)
{
    const tx_node *n = h->n->arg[arg];
    const tx_ptx_operand *o = arg < h->call->nargs ? ptx_operand_of(h, arg) : NULL;
    int64_t by;

    return o && o->kind == TX_PTX_ADDR && o->displace && n->op == TX_OP_PTR_OFFSET && tx_const_i64(n->arg[1], &by) &&
                   by >= INT32_MIN && by <= INT32_MAX
               ? by
               : 0;
}

/* The value that an argument has: of a written operand the element, behind the address that the node holds. */
static const tx_node *
value_of(const ptx_helper *h, uint32_t arg)
{
    const tx_node *n = h->n->arg[arg];

    if (displacement(h, arg))
        return n->arg[0];
    return arg < h->call->nargs && ptx_operand_of(h, arg)->mode != 'r' ? n->arg[0] : n;
}

static tx_dtype
dtype_of(const ptx_helper *h, uint32_t arg)
{
    if (arg < h->call->nargs && ptx_operand_of(h, arg)->kind == TX_PTX_ADDR)
        return narrow_address(ptx_type_of(h, ptx_operand_of(h, arg))) ? TX_U32 : TX_HANDLE;
    return value_of(h, arg)->dtype;
}

/* ---- the helper's pieces ------------------------------------------------------------------------------------------- */

static void
parameter(ptx_helper *h, const char *type, bool written, const char *name)
{
    tx_sb_f(&h->params, "%s%s%s %s", h->nparams++ ? ", " : "", type, written ? "&" : "", name);
}

/* A predicate or an fp4 pair has a register of its own inside the block, bridged to what C can hold. */
static void
bridge(ptx_helper *h, uint32_t arg, const char *type, char mode, const char *operand)
{
    char *word = h->word[arg];
    bool pred = strcmp(type, "pred") == 0;

    snprintf(word, sizeof h->word[arg], "b%u", h->nbridges++);
    tx_sb_f(&h->decl, ".reg %s %s; ", pred ? ".pred" : ".b8", word);
    if (mode != 'w')
        tx_sb_f(&h->pre, pred ? "setp.ne.b32 %s, %s, 0; " : "cvt.u8.u16 %s, %s; ", word, operand);
    if (mode != 'r' && pred)
        tx_sb_f(&h->post, " selp.b32 %s, 1, 0, %s;", operand, word);
    else if (mode != 'r')
        tx_sb_f(&h->post, " cvt.u16.u8 %s, %s;", operand, word);
}

/* One register argument: parameter, constraint, word. Written ones must come first, so that operand numbers agree. */
static void
register_argument(ptx_helper *h, uint32_t arg, char mode, bool keep)
{
    const tx_ptx_operand *o = ptx_operand_of(h, arg);
    const char *type = o->kind == TX_PTX_ADDR ? "" : ptx_type_of(h, o);
    ptx_carrier k = carrier_of(dtype_of(h, arg));
    char name[16], operand[12];

    snprintf(name, sizeof name, "a%u", arg);
    snprintf(operand, sizeof operand, "%%%u", h->noperands++);
    snprintf(h->word[arg], sizeof h->word[arg], "%s", operand);
    if (mode == 'r') {
        if (k.wide)
            tx_sb_f(&h->ins, "%s\"%s\"((%s)%s)", h->ins.n ? ", " : "", k.constraint, k.wide, name);
        else
            tx_sb_f(&h->ins, "%s\"%s\"(%s)", h->ins.n ? ", " : "", k.constraint, name);
    } else {
        const char *sign = mode == '+' || keep ? "+" : "=";
        if (k.wide) {
            tx_sb_f(&h->before, "  %s %s_w%s%s;\n", k.wide, name, *sign == '+' ? " = " : "", *sign == '+' ? name : "");
            tx_sb_f(&h->after, "  %s = (%s)%s_w;\n", name, k.type, name);
        }
        tx_sb_f(&h->outs, "%s\"%s%s\"(%s%s)", h->outs.n ? ", " : "", sign, k.constraint, name, k.wide ? "_w" : "");
    }
    if (strcmp(type, "pred") == 0 || strcmp(type, "e2m1x2") == 0)
        bridge(h, arg, type, mode, operand);
}

static void
number_arguments(ptx_helper *h)
{
    for (int written = 1; written >= 0; written--)
        for (uint32_t i = 0; i < h->call->nargs; i++) {
            const tx_ptx_operand *o = ptx_operand_of(h, i);
            if (o->kind == TX_PTX_IMM || tx_ptx_is_sunk(h->call, i)) {
                snprintf(h->word[i], sizeof h->word[i], "_");
                if (o->kind == TX_PTX_IMM)
                    snprintf(h->word[i], sizeof h->word[i], "%lld", (long long)h->n->arg[i]->u.i);
                continue;
            }
            if ((o->mode != 'r') == written)
                register_argument(h, i, o->mode, h->call->keep);
        }
    for (uint32_t i = 0; i < h->call->nargs; i++) {
        char name[16];
        const tx_ptx_operand *o = ptx_operand_of(h, i);
        if (o->kind == TX_PTX_IMM || tx_ptx_is_sunk(h->call, i))
            continue;
        snprintf(name, sizeof name, "a%u", i);
        parameter(h, carrier_of(dtype_of(h, i)).type, o->mode != 'r', name);
        h->memory |= o->kind == TX_PTX_ADDR && strcmp(ptx_type_of(h, o), "tmem") != 0;
    }
}

/* The words of one operand: a group in braces, a composite address, or one word; gives the next argument. */
static uint32_t
ptx_operand_text(ptx_helper *h, int op, uint32_t arg, bool *piped)
{
    const tx_ptx_operand *o = &h->row->op[op];
    bool plain = tx_ptx_count(h->row, h->call->choice, o) < 0, first = true;

    tx_sb_puts(&h->text, o->kind == TX_PTX_ADDR ? "[" : o->braces && !plain ? "{" : "");
    for (; arg < h->call->nargs && h->call->op_of[arg] == op; arg++, first = false) {
        tx_sb_f(&h->text, "%s%s", first ? "" : ", ", h->word[arg]);
        if (displacement(h, arg))
            tx_sb_f(&h->text, "+%lld", (long long)displacement(h, arg));
    }
    if (o->composite) {
        tx_sb_puts(&h->text, ", {");
        for (first = true; arg < h->call->nargs && h->call->op_of[arg] == op + 1; arg++, first = false)
            tx_sb_f(&h->text, "%s%s", first ? "" : ", ", h->word[arg]);
        tx_sb_puts(&h->text, "}");
    }
    tx_sb_puts(&h->text, o->kind == TX_PTX_ADDR ? "]" : o->braces && !plain ? "}" : "");
    *piped = o->pipe;
    return arg;
}

static void
instruction_text(ptx_helper *h)
{
    uint32_t arg = 0;
    bool first = true, piped = false;

    if (h->call->guard) {
        tx_sb_puts(&h->decl, ".reg .pred g; ");
        tx_sb_f(&h->pre, "setp.ne.b32 g, %%%u, 0; ", h->noperands++);
        tx_sb_f(&h->ins, "%s\"r\"(g)", h->ins.n ? ", " : "");
        parameter(h, "uint", false, "g");
        tx_sb_puts(&h->text, "@g ");
    }
    tx_ptx_opcode(h->row, h->call->choice, &h->text);
    for (int op = 0; op < h->row->nops; op++) {
        const tx_ptx_operand *o = &h->row->op[op];
        bool there = o->kind == TX_PTX_TEXT ? tx_ptx_present(h->row, h->call->choice, o)
                                            : arg < h->call->nargs && h->call->op_of[arg] == op;
        if (!there)
            continue;
        tx_sb_puts(&h->text, first ? " " : piped ? "|" : ", ");
        first = piped = false;
        if (o->kind == TX_PTX_TEXT)
            tx_sb_puts(&h->text, o->name);
        else
            arg = ptx_operand_text(h, op, arg, &piped);
        op += o->composite;
    }
    tx_sb_putc(&h->text, ';');
}

/* "tirx_ptx_" + opcode and what else tells one helper from another. */
static void
helper_name(ptx_helper *h)
{
    tx_sb op = {0};

    tx_ptx_opcode(h->row, h->call->choice, &op);
    tx_sb_puts(&h->name, "tirx_ptx_");
    for (size_t i = 0; i < op.n; i++) {
        char ch = op.text[i];
        bool word = (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
        tx_sb_putc(&h->name, word ? ch : '_');
        if (ch == ':')
            i++; /* "::" */
    }
    tx_sb_free(&op);
    for (uint32_t i = 0; i < h->call->nargs; i++) {
        const tx_ptx_operand *o = ptx_operand_of(h, i);
        if (o->kind == TX_PTX_IMM)
            tx_sb_f(&h->name, h->n->arg[i]->u.i < 0 ? "_m%lld" : "_%lld",
                    (long long)(h->n->arg[i]->u.i < 0 ? -h->n->arg[i]->u.i : h->n->arg[i]->u.i));
        else if (tx_ptx_is_sunk(h->call, i))
            tx_sb_f(&h->name, "_sink%u", i);
        else if (displacement(h, i))
            tx_sb_f(&h->name, "_addr%u_%c%lld", i, displacement(h, i) < 0 ? 'm' : 'p',
                    (long long)(displacement(h, i) < 0 ? -displacement(h, i) : displacement(h, i)));
    }
    if (h->call->guard)
        tx_sb_puts(&h->name, h->call->keep ? "_pred_keep" : "_pred");
}

/* Arguments whose C type is not the first that the PTX type may have, and the row itself, make names differ. */
static void
name_suffix(ptx_helper *h)
{
    tx_dtype last = TX_VOID;

    tx_sb_f(&h->name, "_%u", h->call->nargs);
    for (uint32_t i = 0; i < h->call->nargs; i++) {
        const tx_ptx_operand *o = ptx_operand_of(h, i);
        tx_dtype t = o->kind == TX_PTX_REG && !tx_ptx_is_sunk(h->call, i) ? dtype_of(h, i) : TX_VOID;
        if (t == TX_VOID || t == last)
            continue;
        tx_sb_f(&h->name, "_%s", em_suffix(t));
        last = t;
    }
}

/* Whether all pieces of the helper are there, not cut off where memory ran out. */
static bool
is_whole(ptx_helper *h)
{
    const tx_sb *all[] = {&h->params, &h->outs,   &h->ins,   &h->decl, &h->pre,
                          &h->post,   &h->before, &h->after, &h->text, &h->name};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->failed) {
            tx_fail(h->e->c, h->n->span, TX_E_NO_MEMORY);
            return false;
        }
    return true;
}

static void
make_helper(ptx_helper *h)
{
    tx_sb s = {0};
    bool block; /* registers of its own */

    number_arguments(h);
    instruction_text(h);
    if (!is_whole(h))
        return;
    block = h->decl.n != 0;
    h->memory |= strchr(h->row->flags, 'M') != NULL;
    tx_sb_f(&s, "static __device__ __forceinline__ void %s(%s) {\n", h->name.text, h->params.n ? h->params.text : "");
    tx_sb_puts(&s, h->before.n ? h->before.text : "");
    tx_sb_f(&s, "  asm%s(\"", strchr(h->row->flags, 'P') ? "" : " volatile");
    if (block)
        tx_sb_f(&s, "{ %s%s", h->decl.text, h->pre.n ? h->pre.text : "");
    tx_sb_puts(&s, h->text.text);
    if (block)
        tx_sb_f(&s, "%s }", h->post.n ? h->post.text : "");
    tx_sb_f(&s, "\" : %s : %s%s);\n", h->outs.n ? h->outs.text : "", h->ins.n ? h->ins.text : "",
            h->memory ? " : \"memory\"" : "");
    tx_sb_puts(&s, h->after.n ? h->after.text : "");
    tx_sb_puts(&s, "}\n");
    if (s.failed)
        tx_fail(h->e->c, h->n->span, TX_E_NO_MEMORY);
    else
        em_make_helper(h->e, h->name.text, s.text);
    tx_sb_free(&s);
}

static void
free_helper(ptx_helper *h)
{
    tx_sb *all[] = {&h->params, &h->outs,   &h->ins,   &h->decl, &h->pre,
                    &h->post,   &h->before, &h->after, &h->text, &h->name};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tx_sb_free(all[i]);
}

/* ---- the call ------------------------------------------------------------------------------------------------------ */

static void
put_argument(ptx_helper *h, tx_sb *o, uint32_t arg)
{
    const tx_node *n = value_of(h, arg);
    const tx_ptx_operand *op = arg < h->call->nargs ? ptx_operand_of(h, arg) : NULL;

    if (!op) {
        em_expr_as(h->e, o, TX_U32, n, EM_ARG);
    } else if (op->mode != 'r') {
        em_element(h->e, o, n->u.buf, n->arg[0], EM_ARG);
    } else if (op->kind == TX_PTX_ADDR && tx_is_handle(n->dtype) && narrow_address(ptx_type_of(h, op))) {
        tx_sb_puts(o, "(uint)__cvta_generic_to_shared(");
        em_expr(h->e, o, n, EM_ARG);
        tx_sb_putc(o, ')');
    } else if (op->kind == TX_PTX_ADDR && tx_is_handle(n->dtype) && strcmp(ptx_type_of(h, op), "local") == 0) {
        tx_sb_puts(o, "(const void*)__cvta_generic_to_local(");
        em_expr(h->e, o, n, EM_ARG);
        tx_sb_putc(o, ')');
    } else if (op->kind == TX_PTX_ADDR && !tx_is_handle(n->dtype) && !narrow_address(ptx_type_of(h, op))) {
        tx_sb_puts(o, "(const void*)");
        em_expr(h->e, o, n, EM_UNARY);
    } else {
        em_expr(h->e, o, n, EM_ARG);
    }
}

static bool
use_types(ptx_helper *h)
{
    for (uint32_t i = 0; i < h->n->nargs; i++) {
        tx_dtype t = i < h->call->nargs && !tx_ptx_is_sunk(h->call, i) ? dtype_of(h, i) : TX_U32;
        if (!tx_is_handle(t))
            em_elem_type(h->e, t); /* brings its typedef along */
        em_elem_type(h->e, TX_U32);
        if (tx_bits(t) == 8)
            em_elem_type(h->e, TX_DTYPE(TX_KIND_U16, 1));
        if (i < h->call->nargs && ptx_operand_of(h, i)->kind == TX_PTX_IMM && h->n->arg[i]->op != TX_OP_INT) {
            tx_fail(h->e->c, h->n->arg[i]->span ? h->n->arg[i]->span : h->e->span, TX_E_PTX_CONSTANT,
                    ptx_operand_of(h, i)->name);
            return false;
        }
    }
    return true;
}

static bool
target_has(ptx_helper *h)
{
    char suffix, have = h->e->t->suffix;
    int floor = tx_ptx_floor(h->call, &suffix), arch = h->e->t->arch;
    tx_sb op = {0};
    bool ok = arch == 0 || (arch >= floor && (!suffix || (arch / 10 == floor / 10 && have)));

    if (!ok) {
        tx_ptx_opcode(h->row, h->call->choice, &op);
        tx_fail(h->e->c, h->n->span, TX_E_PTX_FLOOR, op.text ? op.text : "", floor, suffix ? "a" : "", arch,
                have == 'a'   ? "a"
                : have == 'f' ? "f"
                              : "");
        tx_sb_free(&op);
    }
    return ok;
}

void
em_ptx(em *e, tx_sb *o, const tx_node *n)
{
    uint32_t nrows, nwritten = 0;
    const tx_ptx_row *rows = tx_ptx_rows(&nrows);
    ptx_helper h = {.e = e, .n = n, .call = n->u.ptx};

    if (!rows) {
        tx_fail(e->c, n->span, TX_E_NO_MEMORY);
        return;
    }
    h.row = &rows[n->u.ptx->row];
    if (target_has(&h) && use_types(&h)) {
        helper_name(&h);
        name_suffix(&h);
        make_helper(&h);
        tx_sb_f(o, "%s(", h.name.failed ? "" : h.name.text);
        for (uint32_t i = 0; i < n->nargs; i++) {
            if (i < h.call->nargs && (ptx_operand_of(&h, i)->kind == TX_PTX_IMM || tx_ptx_is_sunk(h.call, i)))
                continue;
            tx_sb_puts(o, nwritten++ ? ", " : "");
            put_argument(&h, o, i);
        }
        tx_sb_putc(o, ')');
    }
    free_helper(&h);
}

/* Registers in an empty asm, written and read there: the compiler cannot move what computes or uses them across. */
void
em_fence_operand(em *e, tx_sb *o, const tx_node *n)
{
    tx_sb name = {0}, params = {0}, outs = {0}, text = {0};
    tx_dtype last = TX_VOID;

    tx_sb_f(&name, "tirx_cuda_fence_operand_%u", n->nargs);
    for (uint32_t i = 0; i < n->nargs; i++) {
        tx_dtype t = n->arg[i]->arg[0]->dtype;
        ptx_carrier k = carrier_of(t);
        if (t != last)
            tx_sb_f(&name, "_%u%s", i, em_suffix(t));
        last = t;
        em_elem_type(e, t); /* brings its typedef along */
        tx_sb_f(&params, "%s%s& a%u", i ? ", " : "", k.type, i);
        tx_sb_f(&outs, "%s\"+%s\"(a%u)", i ? ", " : "", k.constraint, i);
    }
    tx_sb_f(&text, "static __device__ __forceinline__ void %s(%s) {\n  asm volatile(\"\" : %s : : \"memory\");\n}\n",
            name.text, params.n ? params.text : "", outs.n ? outs.text : "");
    if (name.failed || params.failed || outs.failed || text.failed)
        tx_fail(e->c, n->span, TX_E_NO_MEMORY);
    else
        em_make_helper(e, name.text, text.text);
    tx_sb_f(o, "%s(", name.failed ? "" : name.text);
    for (uint32_t i = 0; i < n->nargs; i++) {
        tx_sb_puts(o, i ? ", " : "");
        em_element(e, o, n->arg[i]->arg[0]->u.buf, n->arg[i]->arg[0]->arg[0], EM_ARG);
    }
    tx_sb_putc(o, ')');
    tx_sb_free(&name);
    tx_sb_free(&params);
    tx_sb_free(&outs);
    em_done(e, &text);
}
