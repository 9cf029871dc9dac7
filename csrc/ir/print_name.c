/* Names for the printer: every variable and buffer of a function gets a valid Python name of its own, the hint where that
 * is free, else with _1, _2, ... in the order of printing. Names are compared as pointers into the scratch context's table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/print.h"

/* Words that a printed function needs for itself. */
static const char *const reserved[] = {
    "False",    "None",   "True",  "and",  "as",     "assert",   "async",   "await", "break",  "class",
    "continue", "def",    "del",   "elif", "else",   "except",   "finally", "for",   "from",   "global",
    "if",       "import", "in",    "is",   "lambda", "nonlocal", "not",     "or",    "pass",   "raise",
    "return",   "try",    "while", "with", "yield",  "range",    "T",       "I",     "Module",
};

bool
tx_printer_init(tx_printer *p, tx_ctx *scratch, tx_sb *out)
{
    *p = (tx_printer){.c = scratch, .out = out, .sugar = true, .width = 4};
    return tx_printer_reserve(p);
}

bool
tx_printer_reserve(tx_printer *p)
{
    tx_map_free(&p->names);
    tx_map_free(&p->taken);
    tx_map_free(&p->used);
    tx_map_free(&p->declared);
    p->names = p->taken = p->used = p->declared = (tx_map){0};
    p->loose.n = 0;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        const tx_str *s = tx_intern_z(p->c, reserved[i]);
        if (!s || !tx_map_put_ptr(&p->taken, s, (void *)(uintptr_t)1))
            return false;
    }
    return true;
}

void
tx_printer_free(tx_printer *p)
{
    tx_map_free(&p->names);
    tx_map_free(&p->taken);
    tx_map_free(&p->outer);
    tx_map_free(&p->used);
    tx_map_free(&p->declared);
    tx_sb_free(&p->decls);
    tx_sb_free(&p->prolog);
}

static bool
is_word(unsigned char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
}

/* The hint with what Python does not take in a name replaced; "v" when nothing is left. */
static const tx_str *
cleaned(tx_printer *p, const tx_str *hint)
{
    char buf[128];
    size_t n = 0;

    if (!hint || hint->len == 0)
        return tx_intern_z(p->c, "v");
    if (hint->text[0] >= '0' && hint->text[0] <= '9')
        buf[n++] = '_';
    for (uint32_t i = 0; i < hint->len && n < sizeof buf - 1; i++)
        buf[n++] = is_word((unsigned char)hint->text[i]) ? hint->text[i] : '_';
    return tx_intern(p->c, buf, n);
}

/* Letters beyond ASCII stay: a function's name was one of Python's. */
void
tx_print_word(const char *text, char *word, size_t size)
{
    size_t n = 0;

    for (; text[n] && n < size - 1; n++)
        word[n] = is_word((unsigned char)text[n]) || (unsigned char)text[n] >= 0x80 ? text[n] : '_';
    if (n == 0)
        word[n++] = 'f';
    word[n] = 0;
}

static const tx_str *
fresh_name(tx_printer *p, const tx_str *hint)
{
    const tx_str *base = cleaned(p, hint), *name = base;
    uint64_t next = 0, other;

    if (!base)
        return NULL;
    if (tx_map_get(&p->taken, (uint64_t)(uintptr_t)base, &next)) {
        do {
            name = tx_intern_f(p->c, "%s_%llu", base->text, (unsigned long long)next++);
        } while (name && tx_map_get(&p->taken, (uint64_t)(uintptr_t)name, &other));
        if (!name || !tx_map_put(&p->taken, (uint64_t)(uintptr_t)base, next))
            return NULL;
    }
    return tx_map_put(&p->taken, (uint64_t)(uintptr_t)name, 1) ? name : NULL;
}

const tx_str *
tx_print_fresh(tx_printer *p, const tx_str *hint)
{
    const tx_str *name = fresh_name(p, hint);

    if (!name)
        p->out->failed = true;
    return name;
}

const char *
tx_print_name(tx_printer *p, const void *of, const tx_str *hint)
{
    const tx_str *name = tx_print_fresh(p, hint);

    if (!name || !tx_map_put_ptr(&p->names, of, name->text)) {
        p->out->failed = true;
        return "v";
    }
    return name->text;
}

const char *
tx_print_outer_name(tx_printer *p, const void *of, const tx_str *hint)
{
    const tx_str *name;
    uint64_t seen;

    do
        name = tx_print_fresh(p, hint);
    while (name && tx_map_get(&p->outer, (uint64_t)(uintptr_t)name, &seen));
    if (!name || !tx_map_put(&p->outer, (uint64_t)(uintptr_t)name, 1) || !tx_map_put_ptr(&p->names, of, name->text)) {
        p->out->failed = true;
        return "v";
    }
    return name->text;
}

const char *
tx_print_known(const tx_printer *p, const void *of)
{
    return tx_map_ptr(&p->names, of);
}

void
tx_print_use_name(tx_printer *p, const void *of, const char *name)
{
    if (!tx_map_put_ptr(&p->names, of, name))
        p->out->failed = true;
}
