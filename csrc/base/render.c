/* What a diagnostic looks like:
 *
 *     kernel.py:14:20: error: shift by 40 is outside 0..31 for int32
 *         y[i] = x[i] << 40
 *                        ^^
 *       help: widen the left side first: T.int64(x[i]) << 40
 *       in f(), inlined from g() at kernel.py:31
 *
 * Columns of the first line count characters from 1. The caret line keeps tabs and pads wide characters with two blanks,
 * so that it stands right in a terminal. SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

enum { RENDER_MAX_CHAIN = 8, RENDER_MAX_LINE = 200, RENDER_BEFORE_CARET = 60 };

/* One character of UTF-8; a byte that is none counts as one character. */
static size_t
utf8_next(const char *p, size_t n, uint32_t *code)
{
    static const uint8_t first_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned char b = (unsigned char)*p;
    size_t len = b < 0x80 ? 1 : (b & 0xe0) == 0xc0 ? 2 : (b & 0xf0) == 0xe0 ? 3 : (b & 0xf8) == 0xf0 ? 4 : 1;

    if (len > n)
        len = 1;
    *code = len == 1 ? b : b & first_mask[len];
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)p[i] & 0xc0) != 0x80) {
            *code = b;
            return 1;
        }
        *code = *code << 6 | ((unsigned char)p[i] & 0x3f);
    }
    return len;
}

/* Columns that a terminal gives to a character: East Asian wide and emoji two, combining marks none. */
static int
char_width(uint32_t code)
{
    static const struct {
        uint32_t lo, hi;
        int width;
    } ranges[] = {
        {0x0300, 0x036f, 0}, {0x1100, 0x115f, 2}, {0x200b, 0x200f, 0},   {0x2e80, 0xa4cf, 2},
        {0xac00, 0xd7a3, 2}, {0xf900, 0xfaff, 2}, {0xfe00, 0xfe0f, 0},   {0xfe30, 0xfe6f, 2},
        {0xff00, 0xff60, 2}, {0xffe0, 0xffe6, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].lo && code <= ranges[i].hi)
            return ranges[i].width;
    return 1;
}

static size_t
count_chars(const char *p, size_t n)
{
    size_t count = 0;
    uint32_t code;

    for (size_t i = 0; i < n; i += utf8_next(p + i, n - i, &code))
        count++;
    return count;
}

/* The text of a line of the file, without its end. */
static const char *
render_source_line(const tx_file *f, uint32_t line, size_t *len)
{
    const char *p, *end, *nl;

    if (!f->text || line < f->first_line)
        return NULL;
    p = f->text->text;
    end = p + f->text->len;
    for (uint32_t i = f->first_line; i < line; i++) {
        if (!(nl = memchr(p, '\n', (size_t)(end - p))))
            return NULL;
        p = nl + 1;
    }
    nl = memchr(p, '\n', (size_t)(end - p));
    *len = (size_t)((nl ? nl : end) - p);
    if (*len && p[*len - 1] == '\r')
        --*len;
    return p;
}

/* Blanks as wide as the text; tabs stay tabs. */
static void
render_padding(tx_sb *out, const char *p, size_t n)
{
    uint32_t code;

    for (size_t i = 0; i < n;) {
        i += utf8_next(p + i, n - i, &code);
        if (code == '\t')
            tx_sb_putc(out, '\t');
        else
            for (int k = char_width(code); k > 0; k--)
                tx_sb_putc(out, ' ');
    }
}

/* The part [*lo, *hi) of a long line that is shown: whole characters around the caret. */
static void
clip_line(const char *line, size_t len, size_t caret, size_t *lo, size_t *hi)
{
    *lo = 0;
    *hi = len;
    if (len <= RENDER_MAX_LINE)
        return;
    *lo = caret > RENDER_BEFORE_CARET ? caret - RENDER_BEFORE_CARET : 0;
    *hi = len - *lo > RENDER_MAX_LINE ? *lo + RENDER_MAX_LINE : len;
    while (*lo < caret && ((unsigned char)line[*lo] & 0xc0) == 0x80)
        ++*lo;
    while (*hi < len && ((unsigned char)line[*hi] & 0xc0) == 0x80)
        ++*hi;
}

static void
render_excerpt(tx_sb *out, const tx_ctx *c, const tx_span_info *s)
{
    size_t len, from = s->col, to, lo, hi, wide = 0;
    const char *line = render_source_line(&c->files.at[s->file], s->line, &len);
    uint32_t code;

    if (!line || from > len)
        return;
    clip_line(line, len, from, &lo, &hi);
    to = s->end_line > s->line || s->end_col > hi ? hi : s->end_col;
    while (to > from && (line[to - 1] == ' ' || line[to - 1] == '\t'))
        to--;
    tx_sb_f(out, "%s%.*s%s\n%s", lo ? "..." : "", (int)(hi - lo), line + lo, hi < len ? "..." : "", lo ? "   " : "");
    render_padding(out, line + lo, from - lo);
    for (size_t i = from; i < to; i += utf8_next(line + i, to - i, &code)) {
        utf8_next(line + i, to - i, &code);
        wide += (size_t)char_width(code);
    }
    for (size_t i = 0; i < (wide ? wide : 1); i++)
        tx_sb_putc(out, '^');
    tx_sb_putc(out, '\n');
}

/* "file:line:col" of a known place. */
static void
render_place(tx_sb *out, const tx_ctx *c, const tx_span_info *s)
{
    const tx_file *f = &c->files.at[s->file];
    size_t len = 0, col = s->col;
    const char *line = render_source_line(f, s->line, &len);

    if (line)
        col = col < len ? count_chars(line, col) : count_chars(line, len);
    tx_sb_f(out, "%s:%u:%zu", f->name ? f->name->text : "<unknown>", s->line, col + 1);
}

static void
render_chain(tx_sb *out, const tx_ctx *c, const tx_span_info *s)
{
    for (int n = 0; s->inlined_at; n++) {
        const tx_span_info *at = tx_span_at(c, s->inlined_at);
        const tx_file *f = &c->files.at[at->file];

        if (n == RENDER_MAX_CHAIN) { /* the kernel's own line is told in any case */
            int more = 1;
            for (; at->inlined_at && more < TX_MAX_INLINE_DEPTH; more++)
                at = tx_span_at(c, at->inlined_at);
            f = &c->files.at[at->file];
            tx_sb_f(out, "  ... inlined through %d more call%s from %s() at %s:%u\n", more, more == 1 ? "" : "s",
                    at->function ? at->function->text : "?", f->name ? f->name->text : "<unknown>", at->line);
            return;
        }
        tx_sb_f(out, "  in %s(), inlined from %s() at %s:%u\n", s->function ? s->function->text : "?",
                at->function ? at->function->text : "?", f->name ? f->name->text : "<unknown>", at->line);
        if (at == s)
            return;
        s = at;
    }
}

void
tx_diag_render(const tx_ctx *c, const tx_diag *d, tx_sb *out)
{
    const tx_span_info *s = tx_span_at(c, d->span), *other = tx_span_at(c, d->other);

    if (s->line) {
        render_place(out, c, s);
        tx_sb_puts(out, ": ");
    }
    tx_sb_puts(out, d->cls == TX_DC_WARNING ? "warning: " : "error: ");
    tx_sb_puts(out, d->text);
    tx_sb_putc(out, '\n');
    if (s->line)
        render_excerpt(out, c, s);
    if (d->other && other->line) {
        tx_sb_puts(out, "  and ");
        render_place(out, c, other);
        tx_sb_puts(out, ":\n");
        render_excerpt(out, c, other);
    }
    if (d->help)
        tx_sb_f(out, "  help: %s\n", d->help);
    if (s->line)
        render_chain(out, c, s);
    if (out->n && out->text[out->n - 1] == '\n')
        out->text[--out->n] = '\0';
}
