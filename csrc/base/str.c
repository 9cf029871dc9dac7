/* Interned strings of a context and the string builder. Equal text is one pointer; the table is in the heap and owned by
 * the context, the strings are in its arena. SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdio.h>

struct tx_strtab {
    const tx_str **slot;
    uint32_t n, cap;
};

void
tx_strtab_free(struct tx_strtab *t)
{
    if (t)
        tx_free(t->slot);
    tx_free(t);
}

static const tx_str **
strtab_find(const tx_str **slot, uint32_t cap, const char *text, size_t len, uint32_t hash)
{
    uint32_t i = hash & (cap - 1);

    while (slot[i] && !(slot[i]->hash == hash && slot[i]->len == len && memcmp(slot[i]->text, text, len) == 0))
        i = (i + 1) & (cap - 1);
    return slot + i;
}

static bool
strtab_grow(struct tx_strtab *t)
{
    uint32_t cap = t->cap ? t->cap * 2 : 64;
    const tx_str **slot = tx_calloc(cap, sizeof *slot);

    if (!slot)
        return false;
    for (uint32_t i = 0; i < t->cap; i++)
        if (t->slot[i])
            *strtab_find(slot, cap, t->slot[i]->text, t->slot[i]->len, t->slot[i]->hash) = t->slot[i];
    tx_free(t->slot);
    t->slot = slot;
    t->cap = cap;
    return true;
}

const tx_str *
tx_intern(tx_ctx *c, const char *text, size_t len)
{
    const tx_str **at;
    uint32_t hash;
    tx_str *s;

    if (len > TX_MAX_STRING)
        return tx_fail(c, c->span, TX_E_STRING_TOO_LONG, TX_MAX_STRING);
    if (!c->strs && !(c->strs = tx_calloc(1, sizeof *c->strs)))
        return tx_fail(c, c->span, TX_E_NO_MEMORY);
    if (c->strs->n + 1 > c->strs->cap / 4 * 3 && !strtab_grow(c->strs))
        return tx_fail(c, c->span, TX_E_NO_MEMORY);
    hash = (uint32_t)tx_hash_bytes(text, len, 0);
    at = strtab_find(c->strs->slot, c->strs->cap, text, len, hash);
    if (*at)
        return *at;
    if (!(s = tx_ctx_alloc(c, 1, sizeof *s + len + 1, _Alignof(tx_str))))
        return NULL;
    s->len = (uint32_t)len;
    s->hash = hash;
    memcpy(s->text, text, len);
    c->strs->n++;
    return *at = s;
}

const tx_str *
tx_intern_z(tx_ctx *c, const char *text)
{
    return tx_intern(c, text, strlen(text));
}

const tx_str *
tx_intern_f(tx_ctx *c, const char *fmt, ...)
{
    const tx_str *s = NULL;
    tx_sb sb = {0};
    va_list ap;

    va_start(ap, fmt);
    tx_sb_vf(&sb, fmt, ap);
    va_end(ap);
    if (sb.failed)
        tx_fail(c, c->span, TX_E_NO_MEMORY);
    else
        s = tx_intern(c, sb.text ? sb.text : "", sb.n);
    tx_sb_free(&sb);
    return s;
}

/* ---- string builder -------------------------------------------------------------------------------------------- */

void
tx_sb_free(tx_sb *s)
{
    tx_free(s->text);
    memset(s, 0, sizeof *s);
}

/* Room for n more bytes and the NUL. */
static bool
sb_room(tx_sb *s, size_t n)
{
    size_t cap = s->cap ? s->cap : 128;
    char *text;

    if (s->failed || n > SIZE_MAX / 4 - s->n)
        return s->failed = true, false;
    if (s->n + n < s->cap)
        return true;
    while (cap <= s->n + n)
        cap *= 2;
    if (!(text = tx_realloc(s->text, cap)))
        return s->failed = true, false;
    s->text = text;
    s->cap = cap;
    return true;
}

void
tx_sb_put(tx_sb *s, const char *text, size_t n)
{
    if (!sb_room(s, n))
        return;
    if (n)
        memcpy(s->text + s->n, text, n);
    s->n += n;
    s->text[s->n] = '\0';
}

void
tx_sb_puts(tx_sb *s, const char *text)
{
    tx_sb_put(s, text, strlen(text));
}

void
tx_sb_putc(tx_sb *s, char ch)
{
    tx_sb_put(s, &ch, 1);
}

void
tx_sb_vf(tx_sb *s, const char *fmt, va_list ap)
{
    char small[256];
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n < 0)
        s->failed = true;
    else if ((size_t)n < sizeof small)
        tx_sb_put(s, small, (size_t)n);
    else if (sb_room(s, (size_t)n)) {
        vsnprintf(s->text + s->n, (size_t)n + 1, fmt, again);
        s->n += (size_t)n;
    }
    va_end(again);
}

void
tx_sb_f(tx_sb *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tx_sb_vf(s, fmt, ap);
    va_end(ap);
}

/* ---- near names -------------------------------------------------------------------------------------------------- */

/* Insertions, deletions and replacements that make b of a; many when b is long. */
static unsigned
edit_distance(const char *a, const char *b)
{
    unsigned row[32];
    size_t nb = strlen(b);

    if (nb + 1 > sizeof row / sizeof *row)
        return 99;
    for (unsigned j = 0; j <= nb; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= nb; j++) {
            unsigned up = row[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = up + 1 < best ? up + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = up;
        }
    }
    return row[nb];
}

tx_near
tx_near_to(const char *wanted)
{
    size_t n = strlen(wanted);

    return (tx_near){.wanted = wanted, .best = n < 3 ? 1 : n < 6 ? 2 : 3}; /* fewer than these */
}

void
tx_near_try(tx_near *near, const char *name)
{
    unsigned d = edit_distance(near->wanted, name);

    if (d < near->best) {
        near->best = d;
        near->found = name;
    }
}
