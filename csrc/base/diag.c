/* Diagnostics: the table of rows, recording, and the text that a user sees. Recording cannot fail: one place for "out of
 * memory" is always kept free. A row's text fixes the types of its arguments; its help may use them again, in any order
 * (%1$s). SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static const struct diag_row {
    const char *name, *text, *help;
    tx_diag_class cls;
} diag_rows[TX_E__COUNT] = {
    [TX_E__NONE] = {"", "", NULL, TX_DC_INTERNAL},
#define DIAG(name, cls, text, help) [TX_E_##name] = {#name, text, help, TX_DC_##cls},
#include "base/diag.def"
#undef DIAG
};

static const struct diag_row *
diag_row(int id)
{
    return &diag_rows[id > 0 && id < TX_E__COUNT ? id : 0];
}

const char *
tx_diag_name(int id)
{
    return diag_row(id)->name;
}

int
tx_diag_find(const char *name)
{
    for (int i = 1; i < TX_E__COUNT; i++)
        if (strcmp(diag_rows[i].name, name) == 0)
            return i;
    return 0;
}

tx_diag_class
tx_diag_class_of(int id)
{
    return diag_row(id)->cls;
}

const char *
tx_diag_text(int id)
{
    return diag_row(id)->text;
}

const char *
tx_diag_help(int id)
{
    return diag_row(id)->help;
}

/* ---- formatting ------------------------------------------------------------------------------------------------ */

enum { DIAG_MAX_ARGS = 12 };

typedef struct diag_arg {
    char type; /* i: i, f: f, s: s; 0: not there */
    long long i;
    double f;
    const char *s;
} diag_arg;

/* One conversion: "%", an optional "n$", flags, width and precision, length, letter. */
typedef struct diag_conv {
    const char *start, *end; /* of the whole */
    const char *spec;        /* behind "%" or "n$" */
    int pos, nl;             /* 0: the next one; number of l's, or -1 for z */
    char letter;             /* 0: no more conversions */
} diag_conv;

static diag_conv
diag_next_conv(const char *fmt)
{
    diag_conv v = {fmt, fmt, fmt, 0, 0, 0};
    const char *p = strchr(fmt, '%');
    char *end;
    long pos;

    if (!p) {
        v.start = v.end = fmt + strlen(fmt);
        return v;
    }
    v.start = p++;
    pos = strtol(p, &end, 10);
    if (pos > 0 && *end == '$') {
        v.pos = (int)pos;
        p = end + 1;
    }
    v.spec = p;
    p += strspn(p, "-+ #0123456789.");
    for (; *p == 'l' || *p == 'z'; p++)
        v.nl = *p == 'z' ? -1 : v.nl + 1;
    v.letter = *p;
    v.end = *p ? p + 1 : p;
    return v;
}

static diag_arg
diag_take_arg(const diag_conv *v, va_list *ap)
{
    diag_arg a = {0};
    bool is_signed = v->letter == 'd' || v->letter == 'i' || v->letter == 'c';

    if (v->letter == 's') {
        a.type = 's';
        a.s = va_arg(*ap, const char *);
    } else if (strchr("fgeFGE", v->letter)) {
        a.type = 'f';
        a.f = va_arg(*ap, double);
    } else {
        a.type = 'i';
        if (v->nl == -1)
            a.i = (long long)va_arg(*ap, size_t);
        else if (v->nl == 0)
            a.i = is_signed ? va_arg(*ap, int) : (long long)va_arg(*ap, unsigned);
        else if (v->nl == 1)
            a.i = is_signed ? va_arg(*ap, long) : (long long)va_arg(*ap, unsigned long);
        else
            a.i = va_arg(*ap, long long);
    }
    return a;
}

/* The arguments that the row's text names, by position. One that it skips, and all behind it, are not there: nobody
 * knows their types. */
static int
diag_take_args(const char *fmt, va_list *ap, diag_arg *args)
{
    diag_conv types[DIAG_MAX_ARGS] = {{0}};
    int n = 0, next = 0;

    for (diag_conv v = diag_next_conv(fmt); v.letter; v = diag_next_conv(v.end)) {
        int i = v.letter == '%' ? -1 : v.pos ? v.pos - 1 : next++;

        if (i < 0 || i >= DIAG_MAX_ARGS)
            continue;
        types[i] = v;
        n = i + 1 > n ? i + 1 : n;
    }
    for (int i = 0; i < n; i++)
        if (TX_NEVER(!types[i].letter))
            return i;
        else
            args[i] = diag_take_arg(&types[i], ap);
    return n;
}

static void
diag_put_arg(tx_sb *out, const diag_conv *v, const diag_arg *a)
{
    char spec[32];
    size_t n = strspn(v->spec, "-+ #0123456789.");

    if (n > sizeof spec - 8)
        n = 0;
    spec[0] = '%';
    memcpy(spec + 1, v->spec, n);
    memcpy(spec + 1 + n, "ll", 2);
    if (a->type == 's' && n == 0)
        tx_sb_puts(out, a->s ? a->s : "?");
    else if (a->type == 's') {
        memcpy(spec + 1 + n, "s", 2);
        tx_sb_f(out, (const char *)spec, a->s ? a->s : "?");
    } else if (a->type == 'f') {
        spec[1 + n] = v->letter;
        spec[2 + n] = '\0';
        tx_sb_f(out, (const char *)spec, a->f);
    } else if (v->letter == 'c')
        tx_sb_putc(out, (char)a->i);
    else {
        spec[3 + n] = v->letter;
        spec[4 + n] = '\0';
        tx_sb_f(out, (const char *)spec, a->i);
    }
}

static void
diag_format(tx_sb *out, const char *fmt, const diag_arg *args, int n)
{
    int next = 0;

    for (;;) {
        diag_conv v = diag_next_conv(fmt);

        tx_sb_put(out, fmt, (size_t)(v.start - fmt));
        if (!v.letter)
            return;
        if (v.letter == '%')
            tx_sb_putc(out, '%');
        else {
            int i = v.pos ? v.pos - 1 : next++;

            if (TX_ALWAYS(i >= 0 && i < n))
                diag_put_arg(out, &v, &args[i]);
        }
        fmt = v.end;
    }
}

/* ---- recording ------------------------------------------------------------------------------------------------- */

/* Text into the arena, past the recording of failures. NULL when out of memory. */
static const char *
diag_keep(tx_ctx *c, const char *text, size_t n)
{
    char *p = tx_arena_alloc(&c->arena, n + 1, 1);

    return p ? memcpy(p, text, n) : NULL;
}

/* Keeps room for one more diagnostic than is asked for, which stays for "out of memory". */
static bool
diag_room(tx_ctx *c)
{
    uint32_t cap = c->diags.cap;
    tx_diag *at;

    if (c->diags.n + 2 <= cap)
        return true;
    cap = cap ? cap * 2 : 4;
    if (!(at = tx_arena_alloc(&c->arena, cap * sizeof *at, _Alignof(tx_diag))))
        return false;
    if (c->diags.n)
        memcpy(at, c->diags.at, c->diags.n * sizeof *at);
    c->diags.at = at;
    c->diags.cap = cap;
    return true;
}

static void
diag_no_memory(tx_ctx *c, tx_span span)
{
    c->nerrors++;
    if (c->no_memory || c->diags.n >= c->diags.cap)
        return;
    c->no_memory = true;
    c->diags.at[c->diags.n++] = (tx_diag){TX_E_NO_MEMORY, TX_DC_MEMORY, span, 0, diag_rows[TX_E_NO_MEMORY].text, NULL};
}

static void
diag_record(tx_ctx *c, tx_span span, int id, const char *help, va_list *ap)
{
    const struct diag_row *row = diag_row(id);
    tx_diag d = {(tx_diag_id)id, row->cls, span, 0, NULL, NULL};
    diag_arg args[DIAG_MAX_ARGS];
    tx_sb text = {0}, tip = {0};
    int n;

    if (id == TX_E_NO_MEMORY) {
        diag_no_memory(c, span);
        return;
    }
    n = diag_take_args(row->text, ap, args);
    diag_format(&text, row->text, args, n);
    if (help)
        tx_sb_puts(&tip, help);
    else if (row->help)
        diag_format(&tip, row->help, args, n);
    if (text.failed || tip.failed || !diag_room(c) || !(d.text = diag_keep(c, text.text ? text.text : "", text.n)) ||
        (tip.n && !(d.help = diag_keep(c, tip.text, tip.n))))
        diag_no_memory(c, span);
    else {
        c->diags.at[c->diags.n++] = d;
        c->nerrors += d.cls != TX_DC_WARNING;
    }
    tx_sb_free(&text);
    tx_sb_free(&tip);
}

void *
tx_fail(tx_ctx *c, tx_span span, int id, ...)
{
    va_list ap;

    va_start(ap, id);
    diag_record(c, span, id, NULL, &ap);
    va_end(ap);
    return NULL;
}

void *
tx_fail_help(tx_ctx *c, tx_span span, const char *help, int id, ...)
{
    va_list ap;

    va_start(ap, id);
    diag_record(c, span, id, help, &ap);
    va_end(ap);
    return NULL;
}

bool
tx_warn(tx_ctx *c, tx_span span, int id, ...)
{
    va_list ap;

    va_start(ap, id);
    diag_record(c, span, id, NULL, &ap);
    va_end(ap);
    return true;
}
