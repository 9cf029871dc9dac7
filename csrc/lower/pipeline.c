/* The list of passes in pipeline order, and what runs them. Takes a parsed module, gives what lower.h promises. Every
 * pass takes its own output unchanged. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

#include <stdlib.h>

static tx_func *
pipeline_resolve(tx_ctx *c, tx_func *f, const tx_target *t)
{
    if (f->flags & TX_FUNC_KERNEL)
        return f;
    if (f->flags & TX_FUNC_DEVICE)
        return tx_device_func(c, f);
    f = tx_host_func(c, f);
    f = f ? tx_merge_tensormaps(c, f) : NULL;
    f = f ? tx_resolve_func(c, f, t) : NULL;
    return f && tx_has_device(f->body) ? tx_constant_cells(c, f) : f;
}

static tx_func *
shape(tx_ctx *c, tx_func *f, const tx_target *t)
{
    (void)t;
    f = tx_vectorize_func(c, f);
    f = f ? tx_unroll_func(c, f) : NULL;
    return f ? tx_simplify_func(c, f) : NULL;
}

static tx_module *
run_resolve(tx_ctx *c, tx_module *m, const tx_target *t)
{
    m = tx_host_calls(c, m);
    m = m ? tx_device_calls(c, m) : NULL;
    return m ? tx_map_funcs(c, m, t, pipeline_resolve) : NULL;
}

static tx_module *
run_address(tx_ctx *c, tx_module *m, const tx_target *t)
{
    return tx_map_funcs(c, m, t, tx_address_func);
}

static tx_module *
run_shape(tx_ctx *c, tx_module *m, const tx_target *t)
{
    return tx_map_funcs(c, m, t, shape);
}

static tx_module *
run_packed_api(tx_ctx *c, tx_module *m, const tx_target *t)
{
    return tx_map_funcs(c, m, t, tx_packed_api_func);
}

const tx_pass tx_passes[] = {
    {"LowerTIRx", "TilePrimitiveDispatch", run_resolve, true},
    {"FlattenBuffer", "NarrowDataType", run_address, true},
    {"UnrollLoop", "VectorizeLoop StmtSimplify CommonSubexprElim", run_shape, true},
    {"SplitHostDevice", "LowerIntrin", tx_split_module, true},
    {"MakePackedAPI", "", run_packed_api, false},
    {NULL, NULL, NULL, false},
};

/* Is `name` one of the words of `list`, which are separated by `sep`? */
static bool
word_in(const char *list, const char *name, char sep)
{
    size_t n = strlen(name);

    for (const char *p = list; *p;) {
        const char *end = strchr(p, sep);
        size_t len = end ? (size_t)(end - p) : strlen(p);
        if (len == n && memcmp(p, name, n) == 0)
            return true;
        p += len + (end != NULL);
    }
    return false;
}

const tx_pass *
tx_pass_find(const char *name)
{
    for (const tx_pass *p = tx_passes; p->name; p++)
        if (strcmp(p->name, name) == 0 || word_in(p->aliases, name, ' '))
            return p;
    return NULL;
}

static bool
wants_dump(const tx_pass *p)
{
    const char *list = getenv("TIRX_DUMP");

    return list && (word_in(list, "all", ',') || word_in(list, "lower", ',') || word_in(list, p->name, ','));
}

tx_module *
tx_lower(tx_ctx *c, const tx_module *m, const tx_target *t)
{
    tx_module *now = m->ctx == c ? (tx_module *)m : tx_import_module(c, m);

    for (const tx_pass *p = tx_passes; now && p->name; p++) {
        if (!p->in_pipeline)
            continue;
        now = p->run(c, now, t);
        if (!now || c->nerrors)
            return NULL;
        if (t->dump && wants_dump(p))
            t->dump(p->name, now);
#ifdef TX_DEBUG
        if (!tx_verify_module(c, now))
            return NULL;
#endif
    }
    return now;
}
