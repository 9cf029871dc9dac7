/* The text of a module: prelude, injected sources, then the functions. The prelude is printed first and known last (what
 * the functions use), so functions go into a buffer of lines before the whole is put together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"
#include "ir/ptx.h"

#include "cuda/source.h"

#include <stdio.h>

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

/* Text that ends with a newline, all its lines from one place. */
static void
emit_text(em *e, em_lines *l, const char *text, size_t n, tx_span span)
{
    tx_sb_put(&l->text, text, n);
    for (size_t i = 0; i < n; i++)
        if (text[i] == '\n')
            tx_push(e->c, &l->span, span);
}

static void
emit_indent(em *e)
{
    static const char blanks[] = "                                ";
    int n = e->indent * 2;

    for (; n > 32; n -= 32)
        tx_sb_put(&e->out->text, blanks, 32);
    tx_sb_put(&e->out->text, blanks, (size_t)n);
}

void
em_line(em *e, const char *text)
{
    emit_indent(e);
    tx_sb_puts(&e->out->text, text);
    tx_sb_putc(&e->out->text, '\n');
    tx_push(e->c, &e->out->span, e->span);
}

void
em_linef(em *e, const char *fmt, ...)
{
    va_list ap;

    emit_indent(e);
    va_start(ap, fmt);
    tx_sb_vf(&e->out->text, fmt, ap);
    va_end(ap);
    tx_sb_putc(&e->out->text, '\n');
    tx_push(e->c, &e->out->span, e->span);
}

void
em_lines_append(em *e, em_lines *to, const em_lines *from)
{
    tx_sb_put(&to->text, from->text.n ? from->text.text : "", from->text.n);
    for (uint32_t i = 0; i < from->span.n; i++)
        tx_push(e->c, &to->span, from->span.at[i]);
    to->text.failed = to->text.failed || from->text.failed;
}

void
em_done(em *e, tx_sb *s)
{
    if (s->failed)
        tx_fail(e->c, e->span, TX_E_NO_MEMORY);
    tx_sb_free(s);
}

void
em_lines_free(em_lines *l)
{
    tx_sb_free(&l->text);
    memset(l, 0, sizeof *l);
}

/* ---- the prelude ------------------------------------------------------------------------------------------------------------ */

static const struct emit_helper {
    em_helper needs[2];
    const char *text;
} emit_helpers[EM_H__COUNT] = {
#define HELPER(id, needs1, needs2, text) {{EM_H_##needs1, EM_H_##needs2}, text},
#include "cuda/prelude.cu.h"
#undef HELPER
};

/* Pieces that need more than the oldest architecture that NVRTC knows. */
static int
emit_helper_arch(em_helper h)
{
    return h == EM_H_BF16_FMA || h == EM_H_F32_TO_BF16 ? 80 : 0;
}

void
em_use(em *e, em_helper h)
{
    if (h == EM_H_NONE || e->used[h])
        return;
    if (emit_helper_arch(h) && !em_needs_arch(e, emit_helper_arch(h), "bfloat16 arithmetic"))
        return;
    e->used[h] = true;
    em_use(e, emit_helpers[h].needs[0]);
    em_use(e, emit_helpers[h].needs[1]);
}

void
em_make_helper(em *e, const char *name, const char *text)
{
    const tx_str *key = tx_intern_z(e->c, name);
    uint64_t v;

    if (!key || tx_map_get(&e->made_names, (uint64_t)(uintptr_t)key, &v))
        return;
    if (!tx_map_put(&e->made_names, (uint64_t)(uintptr_t)key, 1))
        tx_fail(e->c, e->span, TX_E_NO_MEMORY);
    emit_text(e, &e->made, text, strlen(text), e->span);
}

bool
em_needs_arch(em *e, int arch, const char *what)
{
    if (e->t->arch == 0 || e->t->arch >= arch)
        return true;
    tx_fail(e->c, e->span, TX_E_CUDA_ARCH, what, arch, e->t->arch);
    return false;
}

void *
em_unsupported(em *e, const tx_node *n, const char *what)
{
    return tx_fail(e->c, n->span ? n->span : e->span, TX_E_CUDA_UNSUPPORTED, what);
}

/* ---- functions --------------------------------------------------------------------------------------------------------------- */

static bool
emit_flag_is_off(const tx_func *f, const char *key)
{
    for (uint32_t i = 0; i < f->nattrs; i++)
        if (f->attrs[i].key && strcmp(f->attrs[i].key->text, key) == 0)
            return f->attrs[i].value && f->attrs[i].value->op == TX_OP_INT && f->attrs[i].value->u.i == 0;
    return false;
}

typedef struct emit_search {
    tx_visitor v;
    bool found;
} emit_search;

static bool
emit_look(tx_visitor *v, const tx_node *n)
{
    emit_search *s = (emit_search *)v;
    uint32_t nrows;

    s->found |= n->op == TX_OP_PTX && strcmp(tx_ptx_rows(&nrows)[n->u.ptx->row].emu, "griddep") == 0 &&
                strcmp(tx_ptx_choice(n->u.ptx, "op"), "wait") == 0;
    return !s->found;
}

/* Whether the kernel may begin before the one before it has ended: it waits for it by griddepcontrol.wait. */
static bool
emit_overlaps(const tx_func *f)
{
    emit_search s = {.v = {.enter = emit_look}};

    if (f->launch.pdl <= 0)
        tx_walk(&s.v, f->body);
    return f->launch.pdl > 0 || s.found;
}

static void
emit_param(em *e, tx_sb *o, const tx_param *p, bool restrict_all)
{
    tx_var *v = p->var;
    em_name *name;

    if (p->flags & TX_PARAM_TENSORMAP) {
        em_use(e, EM_H_TENSORMAP);
        if ((name = em_declare(e, v, ""))) {
            name->by_value = true;
            tx_sb_f(o, "const __grid_constant__ CUtensorMap %s", name->text);
        }
        return;
    }
    if (!tx_is_handle(v->dtype)) {
        if ((name = em_declare(e, v, ""))) {
            name->data = v->kind != TX_VAR_SYMBOL;
            tx_sb_f(o, "%s %s", em_type(e, v->dtype), name->text);
        }
        return;
    }
    if (!(name = em_declare(e, v, v->kind == TX_VAR_DATA ? "_ptr" : "")))
        return;
    name->elem = p->buffer ? tx_scalar_of(p->buffer->dtype) : v->elem;
    em_pointer_type(e, name->elem, o);
    tx_sb_f(o, " %s%s", p->buffer && restrict_all ? "__restrict__ " : "", name->text);
}

static void
emit_params(em *e, tx_sb *o, const tx_func *f)
{
    bool restrict_all =
             f->flags & TX_FUNC_KERNEL && !emit_flag_is_off(f, "tirx.noalias") && !emit_flag_is_off(f, "tir.noalias"),
         first = true;
    uint64_t mixed = restrict_all ? em_mixed_params(f, emit_overlaps(f)) : 0;

    for (uint32_t i = 0; i < f->nparams; i++) {
        if (f->params[i].flags & TX_PARAM_SHAPE_ONLY)
            continue;
        if (!first)
            tx_sb_puts(o, ", ");
        first = false;
        e->span = f->params[i].span ? f->params[i].span : f->span;
        emit_param(e, o, &f->params[i], restrict_all && !(mixed >> (i < 63 ? i : 63) & 1));
    }
}

/* __launch_bounds__(threads[, min blocks[, max blocks of a cluster]]), or __maxnreg__. */
static void
emit_bounds(tx_sb *o, const tx_func *f)
{
    const tx_launch *l = &f->launch;
    int64_t threads = 1, d = 0;

    if (l->max_registers > 0) {
        tx_sb_f(o, "__maxnreg__(%d) ", (int)l->max_registers);
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (!f->block[i] || !tx_const_i64(f->block[i], &d))
            return;
        threads *= d;
    }
    if (l->max_blocks_per_cluster > 0)
        tx_sb_f(o, "__launch_bounds__(%lld, %d, %d) ", (long long)threads, l->min_blocks > 0 ? (int)l->min_blocks : 1,
                (int)l->max_blocks_per_cluster);
    else if (l->min_blocks > 0)
        tx_sb_f(o, "__launch_bounds__(%lld, %d) ", (long long)threads, (int)l->min_blocks);
    else
        tx_sb_f(o, "__launch_bounds__(%lld) ", (long long)threads);
}

static const tx_node *
emit_cluster_of(const tx_module *m, const tx_func *kernel, const tx_node *n, int i)
{
    const tx_node *found = NULL;

    (void)m;
    if (n->op == TX_OP_LAUNCH && n->u.launch_of->kernel == kernel)
        return n->arg[TX_L_CLUSTER_X + i];
    for (uint32_t a = 0; a < n->nargs && !found; a++)
        if (n->arg[a] && tx_is_stmt(n->arg[a]))
            found = emit_cluster_of(m, kernel, n->arg[a], i);
    return found;
}

/* __block_size__((x, y, z), (cx, cy, cz)): the launch must have exactly this shape (sm_90, CUDA 12.8). */
static void
emit_block_size(em *e, tx_sb *o, const tx_func *f)
{
    int64_t d[6] = {1, 1, 1, 1, 1, 1};

    for (int i = 0; i < 3; i++)
        if (!tx_const_i64(f->block[i], d + i))
            return;
    for (int i = 0; i < 3; i++)
        for (uint32_t k = 0; k < e->m->nfuncs; k++)
            if (e->m->funcs[k]->flags & TX_FUNC_HOST)
                tx_const_i64(emit_cluster_of(e->m, f, e->m->funcs[k]->body, i), d + 3 + i);
    tx_sb_f(o, "__block_size__((%d, %d, %d), (%d, %d, %d)) ", (int)d[0], (int)d[1], (int)d[2], (int)d[3], (int)d[4],
            (int)d[5]);
}

static void
emit_coord_facts(em *e, const tx_func *f)
{
    static const uint32_t max_block[3] = {1024, 1024, 64}, max_grid[3] = {2147483647, 65535, 65535};

    for (int i = 0; i < 3; i++) {
        tx_bounds b = {1, max_block[i]};

        if (f->block[i])
            b = tx_bounds_of(e->facts, f->block[i]);
        if (b.hi > max_block[i])
            b.hi = max_block[i];
        if (b.lo < 1)
            b.lo = 1;
        tx_facts_coord(e->facts, TX_OP_THREAD_IDX, i, 0, b.hi - 1);
        tx_facts_coord(e->facts, TX_OP_BLOCK_DIM, i, b.lo, b.hi);
        tx_facts_coord(e->facts, TX_OP_BLOCK_IDX, i, 0, (int64_t)max_grid[i] - 1);
        tx_facts_coord(e->facts, TX_OP_GRID_DIM, i, 1, max_grid[i]);
        tx_facts_coord(e->facts, TX_OP_CLUSTER_ID, i, 0, (int64_t)max_grid[i] - 1);
        tx_facts_coord(e->facts, TX_OP_CLUSTER_CTA, i, 0, TX_MAX_CLUSTER - 1);
        tx_facts_coord(e->facts, TX_OP_CLUSTER_DIM, i, 1, TX_MAX_CLUSTER);
    }
    tx_facts_coord(e->facts, TX_OP_CLUSTER_RANK, 0, 0, TX_MAX_CLUSTER - 1);
    tx_facts_coord(e->facts, TX_OP_LANE_ID, 0, 0, 31);
    tx_facts_coord(e->facts, TX_OP_LINEAR_TID, 0, 0, TX_MAX_THREADS - 1);
    tx_facts_coord(e->facts, TX_OP_THREAD_RANK, 0, 0, TX_MAX_THREADS - 1);
}

/* A kernel's symbol; a device function's name in the module, unless CUDA has that already or cannot spell it. */
const char *
em_function_name(em *e, const tx_func *f)
{
    const tx_str *name = f->symbol ? f->symbol : f->name;
    uint32_t index = 0;
    bool plain = true;

    if (f->flags & TX_FUNC_KERNEL)
        return name->text;
    for (uint32_t i = 0; i < e->m->nfuncs; i++)
        if (e->m->funcs[i] == f)
            name = e->m->names[index = i];
    for (uint32_t i = 0; i < name->len; i++)
        plain &= (unsigned char)name->text[i] < 0x80;
    if (!plain)
        name = tx_intern_f(e->c, "device_%u", index);
    else if (em_reserved(name->text, name->len))
        name = tx_intern_f(e->c, "%s_device", name->text);
    return name ? name->text : "f";
}

static bool
emit_func(em *e, const tx_func *f)
{
    bool kernel = f->flags & TX_FUNC_KERNEL;
    const char *ret = kernel || f->ret == TX_VOID ? "void" : em_type(e, f->ret);
    uint32_t scope = em_scope_push(e);
    tx_sb head = {0};

    e->fn = f;
    e->span = f->span;
    if (!(e->facts = tx_facts_new(e->c)))
        return false;
    emit_coord_facts(e, f);
    em_scan_counters(e, f->body);
    em_scan_arrays(e, f->body);
    if (e->body.span.n)
        emit_text(e, &e->body, "\n", 1, 0);
    tx_sb_f(&head, kernel ? "extern \"C\" __global__ %s " : "static __device__ %s ", ret);
    if (kernel && f->launch.required_block_size && (e->t->arch == 0 || e->t->arch >= 90))
        emit_block_size(e, &head, f);
    else if (kernel)
        emit_bounds(&head, f);
    tx_sb_f(&head, "%s(", em_function_name(e, f));
    emit_params(e, &head, f);
    e->span = f->span;
    em_linef(e, "%s) {", head.n ? head.text : "");
    e->indent = 1;
    em_stmt(e, f->body);
    e->indent = 0;
    em_line(e, "}");
    em_done(e, &head);
    tx_facts_free(e->facts);
    e->facts = NULL;
    em_scope_pop(e, scope);
    return !em_failed(e);
}

static bool
emit_is_device(const tx_func *f)
{
    return (f->flags & (TX_FUNC_KERNEL | TX_FUNC_DEVICE)) != 0;
}

/* Device functions may call one another, in any order. */
static void
emit_forward(em *e, const tx_func *f)
{
    tx_sb s = {0};
    uint32_t scope = em_scope_push(e);

    tx_sb_f(&s, "static __device__ %s %s(", f->ret == TX_VOID ? "void" : em_type(e, f->ret), em_function_name(e, f));
    emit_params(e, &s, f);
    em_linef(e, "%s);", s.n ? s.text : "");
    em_scope_pop(e, scope);
    em_done(e, &s);
}

static void
emit_functions(em *e)
{
    for (uint32_t i = 0; i < e->m->nfuncs; i++)
        if (emit_is_device(e->m->funcs[i])) {
            const char *name = em_function_name(e, e->m->funcs[i]);

            em_reserve(e, name, strlen(name));
        }
    for (uint32_t i = 0; i < e->m->nfuncs; i++)
        if (e->m->funcs[i]->flags & TX_FUNC_DEVICE)
            emit_forward(e, e->m->funcs[i]);
    for (uint32_t i = 0; i < e->m->nfuncs; i++)
        if (emit_is_device(e->m->funcs[i]) && !emit_func(e, e->m->funcs[i]))
            return;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------------------- */

/* #line "file" in front of each line that does not follow from the one before, for profilers and debuggers. */
static void
emit_line_directive(em *e, em_lines *all, const tx_span_info *at)
{
    const tx_str *name = e->c->files.at[at->file].name;
    tx_sb s = {0};

    tx_sb_f(&s, "#line %u \"", at->line);
    for (uint32_t i = 0; i < name->len; i++) {
        if (name->text[i] == '"' || name->text[i] == '\\')
            tx_sb_putc(&s, '\\');
        if (name->text[i] != '\n')
            tx_sb_putc(&s, name->text[i]);
    }
    tx_sb_puts(&s, "\"\n");
    emit_text(e, all, s.n ? s.text : "", s.n, 0);
    em_done(e, &s);
}

/* The functions; only with lineinfo do their lines say where they come from. */
static void
emit_body(em *e, em_lines *all)
{
    const char *text = e->body.text.n ? e->body.text.text : "";
    uint32_t file = 0, line = 0;

    if (!e->t->lineinfo) {
        em_lines_append(e, all, &e->body);
        return;
    }
    for (uint32_t i = 0; i < e->body.span.n; i++) {
        const tx_span_info *at = tx_span_at(e->c, e->body.span.at[i]);
        const char *end = strchr(text, '\n');

        if (TX_NEVER(!end))
            return;
        if (at->line && (at->file != file || at->line != line))
            emit_line_directive(e, all, at);
        emit_text(e, all, text, (size_t)(end + 1 - text), e->body.span.at[i]);
        file = at->file;
        line = at->line ? at->line + 1 : 0; /* what the next line counts as */
        text = end + 1;
    }
}

static void
emit_assemble(em *e, const em_sources *src, em_lines *all)
{
    em_source_headers(e, src, all);
    for (int h = 0; h < EM_H__COUNT; h++)
        if (e->used[h])
            emit_text(e, all, emit_helpers[h].text, strlen(emit_helpers[h].text), 0);
    em_lines_append(e, all, &e->made);
    for (uint32_t i = 0; i < src->n; i++) {
        const tx_str *s = src->at[i].text;

        emit_text(e, all, s->text, s->len, src->at[i].span);
        if (s->len == 0 || s->text[s->len - 1] != '\n')
            emit_text(e, all, "\n", 1, src->at[i].span);
    }
    if (all->span.n)
        emit_text(e, all, "\n", 1, 0);
    emit_body(e, all);
}

void
em_text(em *e, em_lines *l, const char *text, tx_span span)
{
    emit_text(e, l, text, strlen(text), span);
}

/* The map outlives the context: it takes the memory of a string builder with it. */
static bool
emit_map(const em_lines *all, tx_line_map *map)
{
    tx_sb s = {0};

    tx_sb_put(&s, (const char *)all->span.at, all->span.n * sizeof *all->span.at);
    *map = (tx_line_map){all->span.n, all->span.n, (tx_span *)(void *)s.text};
    return !s.failed;
}

void
tx_line_map_free(tx_line_map *m)
{
    tx_sb s = {.text = (char *)m->span};

    tx_sb_free(&s);
    memset(m, 0, sizeof *m);
}

bool
tx_cuda_emit(tx_ctx *c, const tx_module *lowered, const tx_target *t, tx_sb *out, tx_line_map *map)
{
    em e = {.c = c, .t = t, .m = lowered, .lane = -1, .errors = c->nerrors};
    em_lines all = {0};
    em_sources src = {0};
    bool ok = false;

    e.out = &e.body;
    if (em_sources_collect(&e, &src)) {
        emit_functions(&e);
        emit_assemble(&e, &src, &all);
    }
    if (!em_failed(&e) && (all.text.failed || e.body.text.failed || e.made.text.failed))
        tx_fail(c, 0, TX_E_NO_MEMORY);
    if (!em_failed(&e)) {
        tx_sb_put(out, all.text.n ? all.text.text : "", all.text.n);
        ok = !out->failed;
        ok = ok && (!map || emit_map(&all, map));
    }
    em_lines_free(&all);
    em_lines_free(&e.body);
    em_lines_free(&e.made);
    tx_map_free(&e.made_names);
    tx_map_free(&e.names);
    tx_map_free(&e.taken);
    tx_map_free(&e.data_cells);
    tx_map_free(&e.spread);
    if (e.facts)
        tx_facts_free(e.facts);
    return ok;
}
