/* Source texts and places in them. Entry 0 of both tables stands for "unknown".
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

uint32_t
tx_add_file(tx_ctx *c, const char *name, const char *text, size_t len, uint32_t first_line)
{
    tx_file f = {.first_line = first_line};
    tx_str *s;

    if (len > TX_MAX_SOURCE_BYTES) {
        tx_fail(c, 0, TX_E_SOURCE_TOO_LONG, TX_MAX_SOURCE_BYTES);
        return 0;
    }
    /* Not interned: it may be longer than a string may be, and is never compared. */
    if (!(f.name = tx_intern_z(c, name)) || !(s = tx_ctx_alloc(c, 1, sizeof *s + len + 1, _Alignof(tx_str))))
        return 0;
    s->len = (uint32_t)len;
    memcpy(s->text, text, len);
    f.text = s;
    return tx_push(c, &c->files, f) ? c->files.n - 1 : 0;
}

tx_span
tx_add_span(tx_ctx *c, tx_span_info info)
{
    const tx_span_info *last = &c->spans.at[c->spans.n - 1];

    if (last->file == info.file && last->line == info.line && last->col == info.col &&
        last->end_line == info.end_line && last->end_col == info.end_col && last->inlined_at == info.inlined_at &&
        last->function == info.function)
        return c->spans.n - 1;
    return tx_push(c, &c->spans, info) ? c->spans.n - 1 : 0;
}

const tx_span_info *
tx_span_at(const tx_ctx *c, tx_span s)
{
    return &c->spans.at[s < c->spans.n ? s : 0];
}
