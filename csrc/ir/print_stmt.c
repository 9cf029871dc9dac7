/* Statements as Python source, one line each. What a statement declares gets its name here; buffers that passes made and
 * that nothing declares (flat views) are declared right behind what owns their data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/print.h"

/* ---- lines ------------------------------------------------------------------------------------------------------- */

void
tx_print_line(tx_printer *p)
{
    tx_sb_f(p->out, "%*s", p->level * p->width, "");
    p->nlines++;
}

void
tx_print_end(tx_printer *p)
{
    tx_sb_putc(p->out, '\n');
}

static void
print_stmt_open_block(tx_printer *p)
{
    tx_sb_puts(p->out, ":\n");
    p->level++;
}

void
tx_print_block(tx_printer *p, const tx_node *body)
{
    uint32_t before;

    print_stmt_open_block(p);
    before = p->nlines;
    tx_print_stmts(p, body);
    if (p->nlines == before) {
        tx_print_line(p);
        tx_sb_puts(p->out, "pass\n");
    }
    p->level--;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

/* One extent; in annotations what names a variable is quoted, since Python evaluates the rest at the definition. */
static void
print_extent(tx_printer *p, const tx_node *n, bool quoted)
{
    tx_sb *out = p->out, text = {0};

    if (n->op == TX_OP_INT) { /* an extent is a number, whatever its width */
        tx_sb_f(out, "%lld", (long long)n->u.i);
        return;
    }
    if (!quoted) {
        tx_print_expr(p, n, TX_PREC_ANY);
        return;
    }
    p->out = &text;
    p->saw_var = false;
    tx_print_expr(p, n, TX_PREC_ANY);
    p->out = out;
    if (p->saw_var)
        tx_print_string(out, text.n ? text.text : "", text.n);
    else
        tx_sb_put(out, text.n ? text.text : "", text.n);
    out->failed |= text.failed;
    tx_sb_free(&text);
}

void
tx_print_shape(tx_printer *p, const tx_node *const *dims, uint32_t rank, bool quoted)
{
    tx_sb_putc(p->out, '(');
    for (uint32_t i = 0; i < rank; i++) {
        if (i)
            tx_sb_puts(p->out, ", ");
        print_extent(p, dims[i], quoted);
    }
    tx_sb_puts(p->out, rank == 1 ? ",)" : ")");
}

static void
print_keyword(tx_printer *p, const char *key, const tx_node *n, bool quoted)
{
    tx_sb_f(p->out, ", %s=", key);
    print_extent(p, n, quoted);
}

void
tx_print_buffer_rest(tx_printer *p, const tx_buffer *b, unsigned scope, bool quoted)
{
    if (b->strides) {
        tx_sb_puts(p->out, ", strides=");
        tx_print_shape(p, b->strides, b->rank, quoted);
    }
    if (b->elem_offset)
        print_keyword(p, "elem_offset", b->elem_offset, quoted);
    else if (b->byte_offset)
        print_keyword(p, "byte_offset", b->byte_offset, quoted);
    if (b->scope != scope)
        tx_sb_f(p->out, ", scope=\"%s\"", tx_scope_name((tx_scope)b->scope));
    if (b->align > 0)
        tx_sb_f(p->out, ", align=%lld", (long long)b->align);
    if (b->offset_factor > 1)
        tx_sb_f(p->out, ", offset_factor=%d", b->offset_factor);
    if (b->flags & TX_BUF_NO_LAYOUT)
        tx_sb_puts(p->out, ", layout=None");
    if (b->allocated_addr)
        print_keyword(p, "allocated_addr", b->allocated_addr, quoted);
    if (b->nattrs) {
        tx_sb_puts(p->out, ", annotations=");
        tx_print_attrs(p, b->attrs, b->nattrs);
    }
}

static void
print_shape_and_dtype(tx_printer *p, const tx_buffer *b)
{
    tx_print_shape(p, b->shape, b->rank, false);
    tx_sb_puts(p->out, ", ");
    tx_print_dtype(p, b->dtype);
}

static void
print_decl(tx_printer *p, const tx_buffer *b, const tx_node *pointer, const char *pointer_text)
{
    const char *name = tx_print_name(p, b, b->name);

    tx_print_line(p);
    tx_sb_f(p->out, "%s = ", name);
    if (pointer && p->sugar && tx_print_view(p, b, pointer)) {
        tx_print_end(p);
        return;
    }
    tx_sb_puts(p->out, "T.decl_buffer(");
    print_shape_and_dtype(p, b);
    if (b->scope != TX_TMEM) {
        tx_sb_puts(p->out, ", data=");
        if (pointer)
            tx_print_expr(p, pointer, TX_PREC_ANY);
        else
            tx_sb_puts(p->out, pointer_text);
    }
    tx_print_buffer_rest(p, b, TX_GLOBAL, false);
    tx_sb_putc(p->out, ')');
    tx_print_end(p);
}

void
tx_print_views_of(tx_printer *p, const tx_var *data, const char *pointer)
{
    for (uint32_t i = 0; i < p->loose.n; i++)
        if (p->loose.at[i] && p->loose.at[i]->data == data) {
            print_decl(p, p->loose.at[i], NULL, pointer);
            p->loose.at[i] = NULL;
        }
}

static void
print_views_behind(tx_printer *p, const tx_buffer *b)
{
    const char *name;
    char text[160];

    if (p->loose.n == 0 || (name = tx_print_known(p, b)) == NULL)
        return;
    text[0] = 0;
    strncat(text, name, sizeof text - 8);
    strcat(text, ".data");
    tx_print_views_of(p, b->data, text);
}

void
tx_print_match(tx_printer *p, const tx_buffer *b, const char *param)
{
    const char *name = tx_print_name(p, b, b->name);

    tx_print_line(p);
    tx_sb_f(p->out, "%s = T.match_buffer(%s, ", name, param);
    print_shape_and_dtype(p, b);
    tx_print_buffer_rest(p, b, TX_GLOBAL, false);
    tx_sb_putc(p->out, ')');
    tx_print_end(p);
}

static void
print_match(tx_printer *p, const tx_node *n)
{
    tx_sb *out = p->out, param = {0};

    if (tx_print_known(p, n->u.buf))
        return; /* the signature shows it */
    p->out = &param;
    tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    p->out = out;
    tx_print_match(p, n->u.buf, param.n ? param.text : "");
    tx_sb_free(&param);
    print_views_behind(p, n->u.buf);
}

static void
print_decl_stmt(tx_printer *p, const tx_node *n)
{
    if (tx_print_known(p, n->u.buf))
        return; /* declared already, where its pointer is */
    print_decl(p, n->u.buf, n->arg[0], NULL);
    print_views_behind(p, n->u.buf);
}

static bool reads(tx_visitor *v, const tx_node *n);

typedef struct read_finder {
    tx_visitor visitor;
    const tx_var *data;
    bool found;
} read_finder;

static bool
reads(tx_visitor *v, const tx_node *n)
{
    read_finder *r = (read_finder *)v;

    r->found |= (n->op == TX_OP_LOAD || n->op == TX_OP_BUFFER_DATA) && n->u.buf->data == r->data;
    r->found |= n->op == TX_OP_VAR && n->u.var == r->data;
    return !r->found;
}

/* Whether the statement stores the first value of the cell b, so that it can be written `x: T.int32 = value`. */
static bool
initialises(const tx_node *store, const tx_buffer *b)
{
    read_finder r = {{reads, NULL}, b->data, false};

    if (!store || store->op != TX_OP_STORE || store->u.buf->data != b->data || !(store->u.buf->flags & TX_BUF_CELL) ||
        store->nargs < 2 || !tx_is_const(store->arg[1], 0))
        return false;
    tx_walk(&r.visitor, store->arg[0]);
    return !r.found;
}

static void
print_cell(tx_printer *p, const tx_buffer *b, const tx_node *init)
{
    const char *name = tx_print_name(p, b, b->name);

    if (p->sugar && b->scope == TX_LOCAL && !b->align && !b->nattrs) {
        tx_sb_f(p->out, "%s: T.", name);
        tx_dtype_print(b->dtype, p->out);
        if (init) {
            tx_sb_puts(p->out, " = ");
            tx_print_expr(p, init, TX_PREC_ANY);
        }
        return;
    }
    tx_sb_f(p->out, "%s = T.%s(", name,
            b->scope == TX_LOCAL    ? "local_scalar"
            : b->scope == TX_SHARED ? "shared_scalar"
                                    : "alloc_scalar");
    tx_print_dtype(p, b->dtype);
    if (b->scope != TX_LOCAL && b->scope != TX_SHARED)
        tx_sb_f(p->out, ", \"%s\"", tx_scope_name((tx_scope)b->scope));
    tx_sb_putc(p->out, ')');
}

/* Gives true when the store that follows was written with the allocation. */
static bool
print_alloc(tx_printer *p, const tx_node *n, const tx_node *next)
{
    const tx_buffer *b = n->u.buf;
    unsigned scope = b->scope;
    bool merged = false, cell = tx_print_as_cell(p, b);

    tx_print_line(p);
    if (cell) {
        merged = p->sugar && scope == TX_LOCAL && initialises(next, b);
        print_cell(p, b, merged ? next->arg[0] : NULL);
    } else {
        tx_sb_f(p->out, "%s = T.%s(", tx_print_name(p, b, b->name),
                scope == TX_LOCAL    ? "alloc_local"
                : scope == TX_SHARED ? "alloc_shared"
                                     : "alloc_buffer");
        print_shape_and_dtype(p, b);
        tx_print_buffer_rest(p, b, scope == TX_LOCAL || scope == TX_SHARED ? scope : TX_GLOBAL, false);
        tx_sb_putc(p->out, ')');
    }
    tx_print_end(p);
    print_views_behind(p, b);
    return merged;
}

/* ---- simple statements ------------------------------------------------------------------------------------------- */

static void
print_bind(tx_printer *p, const tx_node *n)
{
    const tx_var *v = n->u.var;
    tx_sb *out = p->out, value = {0};

    p->out = &value; /* the value cannot see the name */
    tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    p->out = out;
    tx_print_line(p);
    tx_sb_f(out, "%s: T.let[", tx_print_name(p, v, v->name));
    if (tx_is_handle(v->dtype)) {
        tx_print_pointer_type(p, v->elem, v->scope);
    } else {
        tx_sb_puts(out, "T.");
        tx_dtype_print(v->dtype, out);
    }
    tx_sb_puts(out, "] = ");
    tx_sb_put(out, value.n ? value.text : "", value.n);
    out->failed |= value.failed;
    tx_sb_free(&value);
    tx_print_end(p);
}

static void
print_store(tx_printer *p, const tx_node *n)
{
    const tx_buffer *b = n->u.buf;
    uint32_t count = b->flags & TX_BUF_FLAT && n->nargs > 2 ? 1 : n->nargs - 1;
    const char *name = tx_print_known(p, b);

    if (!name && (b->flags & TX_BUF_CELL) && b->origin)
        name = tx_print_known(p, b->origin);
    if (!name)
        name = tx_print_name(p, b, b->name);
    tx_print_line(p);
    tx_sb_puts(p->out, name);
    if (!tx_print_as_cell(p, b) || count != 1 || !tx_is_const(n->arg[1], 0)) {
        if (tx_print_as_cell(p, b))
            tx_sb_puts(p->out, ".buffer");
        tx_print_index(p, n, 1, count);
    }
    tx_sb_puts(p->out, " = ");
    tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    tx_print_end(p);
}

static void
print_eval(tx_printer *p, const tx_node *n)
{
    const tx_node *e = n->arg[0];
    bool bare = tx_has(e->op, TX_PROP_EFFECT);

    tx_print_line(p);
    tx_sb_puts(p->out, bare ? "" : "T.evaluate(");
    tx_print_expr(p, e, TX_PREC_ANY);
    tx_sb_puts(p->out, bare ? "" : ")");
    tx_print_end(p);
}

static void
print_assert(tx_printer *p, const tx_node *n)
{
    const tx_assertion *a = n->u.assertion;

    tx_print_line(p);
    tx_sb_puts(p->out, "assert ");
    tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    tx_sb_puts(p->out, ", (");
    tx_print_string(p->out, a->kind ? a->kind->text : "AssertionError", a->kind ? a->kind->len : 14);
    tx_sb_puts(p->out, ", [");
    for (uint32_t i = 0; i < a->nparts; i++) {
        if (i)
            tx_sb_puts(p->out, ", ");
        tx_print_string(p->out, a->parts[i]->text, a->parts[i]->len);
    }
    tx_sb_puts(p->out, "])");
    tx_print_end(p);
}

static void
print_return(tx_printer *p, const tx_node *n)
{
    tx_print_line(p);
    tx_sb_puts(p->out, "return");
    if (n->nargs && n->arg[0]) {
        tx_sb_putc(p->out, ' ');
        tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    }
    tx_print_end(p);
}

/* bx, by = T.cta_id([4, n], preferred=[...]) */
static void
print_scope_id(tx_printer *p, const tx_node *n)
{
    const tx_scope_id *s = n->u.scope_id;
    const char *before = "";

    tx_print_line(p);
    for (unsigned i = 0; i < s->nvars; i++)
        tx_sb_f(p->out, "%s%s", i ? ", " : "", tx_print_name(p, s->var[i], s->var[i]->name));
    tx_sb_f(p->out, " = T.%s(", tx_binding_calls[s->binding]);
    for (unsigned list = 0, at = 0; list < 2; list++) {
        unsigned count = list ? s->npreferred : s->nextents;
        if (count == 0 || s->binding == TX_B_CLUSTER_PAIR)
            continue;
        tx_sb_f(p->out, "%s[", list ? ", preferred=" : "");
        for (unsigned i = 0; i < count; i++, at++) {
            if (i)
                tx_sb_puts(p->out, ", ");
            tx_print_expr(p, n->arg[at], TX_PREC_ANY);
        }
        tx_sb_putc(p->out, ']');
        before = ", ";
    }
    if (s->dtype != TX_I32 && s->dtype != 0) {
        tx_sb_f(p->out, "%sdtype=\"", before);
        tx_dtype_print(s->dtype, p->out);
        tx_sb_putc(p->out, '"');
    }
    tx_sb_putc(p->out, ')');
    tx_print_end(p);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool
print_stmt_is_one(const tx_node *n)
{
    return !n || tx_is_const(n, 1);
}

uint32_t
tx_launch_operands(const tx_node *n, const tx_node **out, uint32_t room)
{
    static const uint8_t first[] = {TX_L_GRID_X, TX_L_BLOCK_X, TX_L_CLUSTER_X, TX_L_PREFERRED_X};
    uint32_t count = 0;

    for (uint32_t i = TX_L__COUNT; i < n->nargs; i++, count++)
        if (count < room)
            out[count] = n->arg[i];
    for (unsigned k = 0; k < sizeof first; k++) {
        const tx_node *const *at = n->arg + first[k];
        unsigned used = !print_stmt_is_one(at[2]) ? 3 : !print_stmt_is_one(at[1]) ? 2 : 1;
        if (k >= 2 && !at[0] && !at[1] && !at[2])
            continue;
        for (unsigned i = 0; i < used; i++, count++)
            if (count < room)
                out[count] = at[i];
    }
    if (n->arg[TX_L_DYN_SMEM] && !tx_is_const(n->arg[TX_L_DYN_SMEM], 0)) {
        if (count < room)
            out[count] = n->arg[TX_L_DYN_SMEM];
        count++;
    }
    return count;
}

/* T.call_packed("f_kernel", A.data, n, grid..., block...) */
static void
print_launch(tx_printer *p, const tx_node *n)
{
    const tx_func *kernel = n->u.launch_of->kernel;
    const tx_node *operands[TX_MAX_PARAMS + TX_L__COUNT];
    uint32_t count = tx_launch_operands(n, operands, TX_MAX_PARAMS + TX_L__COUNT);

    tx_print_line(p);
    tx_sb_puts(p->out, "T.call_packed(");
    tx_print_string(p->out, kernel->name->text, kernel->name->len);
    for (uint32_t i = 0; i < count && i < TX_MAX_PARAMS + TX_L__COUNT; i++) {
        tx_sb_puts(p->out, ", ");
        if (operands[i])
            tx_print_expr(p, operands[i], TX_PREC_ANY);
        else
            tx_sb_putc(p->out, '1');
    }
    tx_sb_putc(p->out, ')');
    tx_print_end(p);
}

static void
print_dims(tx_printer *p, const char *before, const tx_node *const *at, bool always)
{
    unsigned used = at[2] ? 3 : at[1] ? 2 : at[0] ? 1 : 0;

    if (used == 0 && !always)
        return;
    tx_sb_puts(p->out, before);
    if (used > 1)
        tx_sb_putc(p->out, '(');
    for (unsigned i = 0; i < (used ? used : 1); i++) {
        if (i)
            tx_sb_puts(p->out, ", ");
        if (at[i])
            tx_print_expr(p, at[i], TX_PREC_ANY);
        else
            tx_sb_putc(p->out, '1');
    }
    if (used > 1)
        tx_sb_putc(p->out, ')');
}

static void
print_flag(tx_printer *p, const char *key, int value)
{
    if (value >= 0)
        tx_sb_f(p->out, ", %s=%s", key, value ? "True" : "False");
}

static void
print_enum(tx_printer *p, const char *key, const char *const *names, int n, int value)
{
    if (value >= 0 && value < n)
        tx_sb_f(p->out, ", %s=\"%s\"", key, names[value]);
}

static void
print_kernel_attrs(tx_printer *p, const tx_launch *l)
{
    const char *before = "";

    if (!l->min_blocks && !l->max_blocks_per_cluster && !l->max_registers && !l->required_block_size)
        return;
    tx_sb_puts(p->out, ", kernel_attrs=T.cuda.KernelAttributes(");
    if (l->min_blocks) {
        tx_sb_f(p->out, "min_blocks_per_sm=%d", l->min_blocks);
        before = ", ";
    }
    if (l->max_blocks_per_cluster) {
        tx_sb_f(p->out, "%smax_blocks_per_cluster=%d", before, l->max_blocks_per_cluster);
        before = ", ";
    }
    if (l->max_registers) {
        tx_sb_f(p->out, "%smax_registers_per_thread=%d", before, l->max_registers);
        before = ", ";
    }
    if (l->required_block_size)
        tx_sb_f(p->out, "%srequired_block_size=True", before);
    tx_sb_putc(p->out, ')');
}

/* The class of a launch attribute with several fields. */
static const char *
launch_record(const char *key)
{
    static const char *const names[][2] = {{"mem_sync_domain_map", "MemSyncDomainMap"},
                                           {"access_policy_window", "AccessPolicyWindow"},
                                           {"programmatic_event", "ProgrammaticEvent"},
                                           {"launch_completion_event", "LaunchCompletionEvent"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], key) == 0)
            return names[i][1];
    return key;
}

static void
print_launch_config(tx_printer *p, const tx_node *n)
{
    static const char *const policies[] = {"default", "spread", "load_balancing"};
    static const char *const domains[] = {"default", "remote"};
    const tx_launch *l = n->u.launch;

    print_dims(p, "launch=T.cuda.LaunchConfig(grid=", n->arg + TX_L_GRID_X, true);
    print_dims(p, ", block=", n->arg + TX_L_BLOCK_X, true);
    print_dims(p, ", cluster=", n->arg + TX_L_CLUSTER_X, false);
    print_dims(p, ", preferred_cluster=", n->arg + TX_L_PREFERRED_X, false);
    if (n->arg[TX_L_DYN_SMEM])
        print_keyword(p, "dynamic_smem_bytes", n->arg[TX_L_DYN_SMEM], false);
    if (n->arg[TX_L_STREAM])
        print_keyword(p, "stream", n->arg[TX_L_STREAM], false);
    print_flag(p, "cooperative", l->cooperative);
    print_flag(p, "programmatic_stream_serialization", l->pdl);
    print_enum(p, "cluster_scheduling_policy", policies, 3, l->cluster_policy);
    if (n->arg[TX_L_PRIORITY])
        print_keyword(p, "priority", n->arg[TX_L_PRIORITY], false);
    print_enum(p, "mem_sync_domain", domains, 2, l->mem_sync_domain);
    if (l->carveout >= 0)
        tx_sb_f(p->out, ", preferred_shared_memory_carveout=%d", l->carveout);
    for (uint32_t i = 0; i < l->nattrs; i++) {
        const tx_node *value = l->attrs[i].value;
        tx_sb_f(p->out, ", %s=", l->attrs[i].key->text);
        if (value->op != TX_OP_VECTOR) {
            tx_print_attr_value(p, value);
            continue;
        }
        tx_sb_f(p->out, "T.cuda.%s(", launch_record(l->attrs[i].key->text));
        for (uint32_t k = 0; k < value->nargs; k++) {
            tx_sb_puts(p->out, k ? ", " : "");
            tx_print_attr_value(p, value->arg[k]);
        }
        tx_sb_putc(p->out, ')');
    }
    tx_sb_putc(p->out, ')');
    print_kernel_attrs(p, l);
}

/* The body of a device entry or an attribute: in line when nothing follows, else under `with`. */
static void
print_region(tx_printer *p, const tx_node *n, bool last)
{
    bool with = !last || (n->op == TX_OP_DEVICE && n->u.launch->with_form);
    const tx_node *body = n->op == TX_OP_DEVICE ? n->arg[TX_L_BODY] : n->arg[1];

    tx_print_line(p);
    if (with && body)
        tx_sb_puts(p->out, "with ");
    if (n->op == TX_OP_DEVICE) {
        tx_sb_puts(p->out, "T.device_entry(");
        if (n->u.launch->explicit_config)
            print_launch_config(p, n);
    } else if (strncmp(n->u.s->text, "tirx_hint", 9) == 0 && (n->u.s->len == 9 || n->u.s->text[9] == '.')) {
        tx_sb_puts(p->out, "T.hint(");
        if (n->u.s->len > 10)
            tx_sb_f(p->out, "%s=", n->u.s->text + 10);
        tx_print_attr_value(p, n->arg[0]);
    } else {
        tx_sb_puts(p->out, "T.attr({");
        tx_print_string(p->out, n->u.s->text, n->u.s->len);
        tx_sb_puts(p->out, ": ");
        tx_print_attr_value(p, n->arg[0]);
        tx_sb_putc(p->out, '}');
    }
    tx_sb_putc(p->out, ')');
    if (with && body) {
        tx_print_block(p, body);
    } else {
        tx_print_end(p);
        tx_print_stmts(p, body);
    }
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void
print_for(tx_printer *p, const tx_node *n)
{
    static const char *const calls[] = {"T.serial", "T.unroll", "T.vectorized", "T.parallel"};
    const tx_loop *l = n->u.loop;
    bool plain = l->kind == TX_LOOP_SERIAL && l->unroll == 0 && l->nattrs == 0;
    const tx_node *start = n->arg[0], *step = n->arg[2];
    bool unit = !step || tx_is_const(step, 1);
    tx_sb *out = p->out, head = {0};

    p->out = &head; /* the bounds cannot see the variable */
    tx_sb_f(&head, "%s(", plain ? "range" : calls[l->kind]);
    if (!unit || !tx_is_const(start, 0)) {
        tx_print_expr(p, start, TX_PREC_ANY);
        tx_sb_puts(&head, ", ");
    }
    tx_print_expr(p, n->arg[1], TX_PREC_ANY);
    if (!unit) {
        tx_sb_puts(&head, plain ? ", " : ", step=");
        tx_print_expr(p, step, TX_PREC_ANY);
    }
    if (l->unroll == -1)
        tx_sb_puts(&head, ", unroll=True");
    else if (l->unroll)
        tx_sb_f(&head, ", unroll=%d", l->unroll);
    if (l->nattrs) {
        tx_sb_puts(&head, ", annotations=");
        tx_print_attrs(p, l->attrs, l->nattrs);
    }
    tx_sb_putc(&head, ')');
    p->out = out;
    tx_print_line(p);
    tx_sb_f(out, "for %s in ", tx_print_name(p, l->var, l->var->name));
    tx_sb_put(out, head.n ? head.text : "", head.n);
    out->failed |= head.failed;
    tx_sb_free(&head);
    tx_print_block(p, n->arg[3]);
}

static void
print_while(tx_printer *p, const tx_node *n)
{
    tx_print_line(p);
    tx_sb_puts(p->out, "while ");
    if (tx_is_const(n->arg[0], 1))
        tx_sb_puts(p->out, "True");
    else
        tx_print_expr(p, n->arg[0], TX_PREC_ANY);
    tx_print_block(p, n->arg[1]);
}

static bool
ends_in_jump(const tx_node *arm)
{
    const tx_node *last = arm->op == TX_OP_SEQ ? (arm->nargs ? arm->arg[arm->nargs - 1] : NULL) : arm;

    return last && (last->op == TX_OP_BREAK || last->op == TX_OP_CONTINUE || last->op == TX_OP_RETURN);
}

static bool
declares_cell(tx_printer *p, const tx_node *arm)
{
    bool seq = arm->op == TX_OP_SEQ;

    for (uint32_t i = 0; i < (seq ? arm->nargs : 1); i++) {
        const tx_node *n = seq ? arm->arg[i] : arm;
        if (n->op == TX_OP_ALLOC && tx_print_as_cell(p, n->u.buf))
            return true;
    }
    return false;
}

/* Beside an arm that jumps away, the other one's cell would be read as one that lives on behind the `if`. */
static bool
keeps_cell_inside(tx_printer *p, const tx_node *n)
{
    return ends_in_jump(n->arg[1]) ? !ends_in_jump(n->arg[2]) && declares_cell(p, n->arg[2])
                                   : ends_in_jump(n->arg[2]) && declares_cell(p, n->arg[1]);
}

static void
print_if(tx_printer *p, const tx_node *n)
{
    const char *word = "if ";

    for (;; n = n->arg[2], word = "elif ") {
        tx_print_line(p);
        tx_sb_puts(p->out, word);
        tx_print_expr(p, n->arg[0], TX_PREC_ANY);
        tx_print_block(p, n->arg[1]);
        if (!n->arg[2] || n->arg[2]->op != TX_OP_IF)
            break;
    }
    if (n->arg[2] && !(n->arg[2]->op == TX_OP_SEQ && n->arg[2]->nargs == 0)) {
        tx_print_line(p);
        tx_sb_puts(p->out, keeps_cell_inside(p, n) ? "elif True" : "else");
        tx_print_block(p, n->arg[2]);
    }
}

static void
print_word(tx_printer *p, const tx_node *n)
{
    tx_print_line(p);
    tx_sb_puts(p->out, n->op == TX_OP_BREAK ? "break" : n->op == TX_OP_CONTINUE ? "continue" : "...");
    tx_print_end(p);
}

static void (*const print_stmt_form[TX_OP__COUNT])(tx_printer *p, const tx_node *n) = {
    [TX_OP_BIND] = print_bind,
    [TX_OP_STORE] = print_store,
    [TX_OP_DECL] = print_decl_stmt,
    [TX_OP_MATCH] = print_match,
    [TX_OP_FOR] = print_for,
    [TX_OP_WHILE] = print_while,
    [TX_OP_IF] = print_if,
    [TX_OP_BREAK] = print_word,
    [TX_OP_CONTINUE] = print_word,
    [TX_OP_RETURN] = print_return,
    [TX_OP_EVAL] = print_eval,
    [TX_OP_ASSERT] = print_assert,
    [TX_OP_SCOPE_ID] = print_scope_id,
    [TX_OP_LAUNCH] = print_launch,
};

/* Gives how many statements were written: 2 when the store behind an allocation went with it. */
static uint32_t
print_stmt(tx_printer *p, const tx_node *n, const tx_node *next, bool last)
{
    if (n->op == TX_OP_ALLOC)
        return print_alloc(p, n, next) ? 2 : 1;
    if (n->op == TX_OP_DEVICE || n->op == TX_OP_ATTR)
        print_region(p, n, last);
    else if (n->op == TX_OP_SEQ)
        tx_print_stmts(p, n);
    else if (print_stmt_form[n->op])
        print_stmt_form[n->op](p, n);
    else
        print_word(p, n);
    return 1;
}

void
tx_print_stmts(tx_printer *p, const tx_node *body)
{
    if (!body)
        return;
    if (body->op != TX_OP_SEQ) {
        print_stmt(p, body, NULL, true);
        return;
    }
    for (uint32_t i = 0; i < body->nargs;)
        i += print_stmt(p, body->arg[i], i + 1 < body->nargs ? body->arg[i + 1] : NULL, i + 1 == body->nargs);
}

/* ---- what is used without a declaration -------------------------------------------------------------------------- */

typedef struct scanner {
    tx_visitor visitor;
    tx_printer *p;
    TX_VEC(tx_buffer *) uses; /* in order of first use */
} scanner;

static bool
print_stmt_scan_node(tx_visitor *v, const tx_node *n)
{
    scanner *s = (scanner *)v;
    tx_map *known;

    switch (n->op) {
    case TX_OP_LOAD:
    case TX_OP_STORE:
    case TX_OP_BUFFER_DATA: known = &s->p->used; break;
    case TX_OP_ALLOC:
    case TX_OP_DECL:
    case TX_OP_MATCH: known = &s->p->declared; break;
    default: return true;
    }
    if (!tx_map_ptr(known, n->u.buf)) {
        if (!tx_map_put_ptr(known, n->u.buf, n->u.buf) ||
            (known == &s->p->used && !tx_push(s->p->c, &s->uses, n->u.buf)))
            s->p->out->failed = true;
    }
    return true;
}

void
tx_print_scan(tx_printer *p, const tx_func *f)
{
    scanner s = {.visitor = {print_stmt_scan_node, NULL}, .p = p};

    for (uint32_t i = 0; i < f->nparams; i++) /* a kernel's parameters are pointers: their buffers are views */
        if (f->params[i].buffer && !(f->flags & TX_FUNC_KERNEL) &&
            !tx_map_put_ptr(&p->declared, f->params[i].buffer, f->params[i].buffer))
            p->out->failed = true;
    tx_walk(&s.visitor, f->body);
    for (uint32_t i = 0; i < s.uses.n; i++) {
        tx_buffer *b = s.uses.at[i];
        bool cell = (b->flags & TX_BUF_CELL) && b->origin && tx_map_ptr(&p->declared, b->origin);
        if (!cell && !tx_map_ptr(&p->declared, b))
            (void)tx_push(p->c, &p->loose, b);
    }
}
