/* The context of one compilation: made, and freed with everything that lives in it. Single-threaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#ifdef TX_DEBUG
#include <stdio.h>
#include <stdlib.h>

/* Debug builds only: an assertion of ours failed. */
void
tx_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
    abort();
}
#endif

tx_ctx *
tx_ctx_new(void)
{
    tx_ctx *c = tx_calloc(1, sizeof *c);

    if (!c)
        return NULL;
    tx_arena_init(&c->arena);
    tx_arena_init(&c->scratch);
    c->next_vn = 1;
    /* Entry 0 of each table is "unknown"; the first diagnostics need no allocation, so that lack of memory can be said. */
    if (!tx_reserve(c, &c->diags, 4) || !tx_push(c, &c->spans, (tx_span_info){0}) ||
        !tx_push(c, &c->files, (tx_file){0})) {
        tx_ctx_free(c);
        return NULL;
    }
    return c;
}

void
tx_ctx_free(tx_ctx *c)
{
    if (!c)
        return;
    tx_strtab_free(c->strs);
    tx_arena_free(&c->scratch);
    tx_arena_free(&c->arena);
    tx_free(c);
}
