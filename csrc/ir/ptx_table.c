/* Reads ptx.def once: the strings of its rows become arrays of tokens and operands. Also what a row says under given
 * choices: types, counts, rules, floors. The parsed table is immutable and lives as long as the process.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>

#include "ir/ptx.h"

typedef struct source {
    const char *opcode, *operands, *flags, *sm, *emu, *rules;
} source;

static const source sources[] = {
#define PTX(opcode, operands, flags, sm, emu, rules) {opcode, operands, flags, sm, #emu, rules},
#include "ir/ptx.def"
#undef PTX
};
enum { NROWS = sizeof sources / sizeof *sources };

static const char *const lets[][2] = {
#undef LET
#define PTX(opcode, operands, flags, sm, emu, rules)
#define LET(name, choices) {name, choices},
#include "ir/ptx.def"
#undef PTX
};

/* ---- text ------------------------------------------------------------------------------------------------------- */

typedef struct text {
    const char *at;
    size_t n;
} text;

static bool
same(text t, const char *word)
{
    return strlen(word) == t.n && memcmp(t.at, word, t.n) == 0;
}

static text
trim(text t)
{
    while (t.n && *t.at == ' ')
        t.at++, t.n--;
    while (t.n && t.at[t.n - 1] == ' ')
        t.n--;
    return t;
}

/* The next piece up to `sep` outside brackets; false at the end. */
static bool
next_piece(text *rest, char sep, text *out)
{
    int depth = 0;
    size_t i;

    if (!rest->at)
        return false;
    for (i = 0; i < rest->n; i++) {
        char ch = rest->at[i];
        depth += ch == '[' || ch == '{' || ch == '(';
        depth -= ch == ']' || ch == '}' || ch == ')';
        if (ch == sep && depth == 0)
            break;
    }
    *out = trim((text){rest->at, i});
    if (i < rest->n)
        *rest = (text){rest->at + i + 1, rest->n - i - 1};
    else
        rest->at = NULL;
    return true;
}

static const char *
keep(tx_arena *a, text t)
{
    char *s = tx_arena_alloc(a, t.n + 1, 1);

    if (s)
        memcpy(s, t.at, t.n);
    return s;
}

static bool
cut(text t, char at, text *left, text *right)
{
    const char *p = t.n ? memchr(t.at, at, t.n) : NULL;

    if (!p)
        return false;
    *left = (text){t.at, (size_t)(p - t.at)};
    *right = (text){p + 1, t.n - left->n - 1};
    return true;
}

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

/* "a|LETNAME|@m64nNk16" -> the array of its choices. */
static bool
choices(tx_arena *a, text t, tx_ptx_part *out)
{
    const char *found[64];
    uint8_t n = 0;
    text piece, rest = t;
    const char **kept;

    while (next_piece(&rest, '|', &piece)) {
        const char *let = NULL;
        for (size_t i = 0; i < sizeof lets / sizeof *lets; i++)
            if (same(piece, lets[i][0]))
                let = lets[i][1];
        if (let) {
            text inner, more = {let, strlen(let)};
            while (next_piece(&more, '|', &inner) && n < 64)
                found[n++] = keep(a, inner);
        } else if (piece.n > 7 && memcmp(piece.at, "@m64nNk", 7) == 0) {
            for (int size = 8; size <= 256 && n < 64; size += 8) {
                char shape[32];
                int len = 0;
                const char head[] = "m64n";
                memcpy(shape, head, 4);
                len = 4;
                if (size >= 100)
                    shape[len++] = (char)('0' + size / 100);
                if (size >= 10)
                    shape[len++] = (char)('0' + size / 10 % 10);
                shape[len++] = (char)('0' + size % 10);
                memcpy(shape + len, piece.at + 6, piece.n - 6);
                found[n++] = keep(a, (text){shape, (size_t)len + piece.n - 6});
            }
        } else if (n < 64) {
            found[n++] = keep(a, piece);
        }
    }
    kept = tx_arena_alloc(a, n * sizeof *kept, _Alignof(const char *));
    if (!kept)
        return false;
    memcpy(kept, found, n * sizeof *kept);
    out->choice = kept;
    out->nchoices = n;
    return true;
}

static bool
read_opcode(tx_arena *a, const char *opcode, tx_ptx_row *row)
{
    tx_ptx_part parts[TX_PTX_MAX_PARTS] = {{0}}, *kept;
    text rest = {opcode, strlen(opcode)}, piece, left = {"", 0}, right = {"", 0};
    uint8_t n = 0;

    while (next_piece(&rest, '.', &piece)) {
        tx_ptx_part *p = &parts[n++];
        if (TX_NEVER(n > TX_PTX_MAX_PARTS))
            return false;
        if (piece.n && *piece.at == '{') {
            cut((text){piece.at + 1, piece.n - 2}, '=', &left, &right);
            p->optional = left.n && left.at[left.n - 1] == '?';
            left.n -= p->optional;
            p->slot = keep(a, left);
            if (!p->slot || !choices(a, right, p))
                return false;
        } else if (!choices(a, piece, p)) {
            return false;
        }
    }
    kept = tx_arena_alloc(a, n * sizeof *kept, _Alignof(tx_ptx_part));
    if (!kept)
        return false;
    memcpy(kept, parts, n * sizeof *kept);
    row->part = kept;
    row->nparts = n;
    return true;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static int64_t
ptx_table_number(text t)
{
    char digits[24] = "";

    memcpy(digits, t.at, t.n < 23 ? t.n : 23);
    return strtoll(digits, NULL, 10);
}

/* "n", "n=0..7", "n=24..256/8", "n=4|8|16" */
static void
read_immediate(tx_arena *a, text t, tx_ptx_operand *o)
{
    text name = t, set, lo, hi, step, piece;
    const char *dots;

    o->kind = TX_PTX_IMM;
    o->open = !cut(t, '=', &name, &set);
    o->name = keep(a, name);
    if (o->open)
        return;
    for (dots = set.at; dots + 1 < set.at + set.n && !(dots[0] == '.' && dots[1] == '.'); dots++)
        ;
    if (dots + 1 < set.at + set.n) {
        lo = (text){set.at, (size_t)(dots - set.at)};
        hi = (text){dots + 2, set.n - lo.n - 2};
        o->step = 1;
        if (cut(hi, '/', &piece, &step)) {
            hi = piece;
            o->step = ptx_table_number(step);
        }
        o->lo = ptx_table_number(lo);
        o->hi = ptx_table_number(hi);
        return;
    }
    while (next_piece(&set, '|', &piece) && o->nvalues < TX_PTX_MAX_CHOICES)
        o->value[o->nvalues++] = (int16_t)ptx_table_number(piece);
}

/* "name:T", "{name:T}*N", with '~' behind a T whose lanes may be sunk */
static void
read_register(tx_arena *a, text t, tx_ptx_operand *o)
{
    text name = {"", 0}, type = {"", 0}, body = t, count = {NULL, 0};

    o->kind = TX_PTX_REG;
    if (*t.at == '{') {
        const char *end = memchr(t.at, '}', t.n);
        o->braces = true;
        body = (text){t.at + 1, (size_t)(end - t.at) - 1};
        count = (text){end + 2, t.n - (size_t)(end - t.at) - 2};
        o->count = keep(a, count);
    }
    cut(body, ':', &name, &type);
    if (type.n && type.at[type.n - 1] == '~') {
        o->sink = true;
        type.n--;
    }
    o->name = keep(a, name);
    o->type = keep(a, type);
}

static uint8_t
read_address(tx_arena *a, text t, tx_ptx_operand *o)
{
    text rest = {t.at + 1, t.n - 2}, first, name = {"", 0}, space = {"", 0}, more;

    next_piece(&rest, ',', &first);
    cut(first, ':', &name, &space);
    o->kind = TX_PTX_ADDR;
    if (space.n && space.at[space.n - 1] == '+') {
        o->displace = true;
        space.n--;
    }
    o->name = keep(a, name);
    o->type = keep(a, space);
    if (!next_piece(&rest, ',', &more))
        return 1;
    o->composite = true;
    o[1].mode = 'r';
    read_register(a, more, &o[1]);
    return 2;
}

/* Splits "x?slot=tok" and "x??slot=tok" at the end of an operand. */
static text
read_condition(tx_arena *a, text t, tx_ptx_operand *o)
{
    const char *q = t.n && *t.at != '\'' ? memchr(t.at, '?', t.n) : NULL;
    text when;

    if (!q)
        return t;
    when = (text){q + 1, t.n - (size_t)(q - t.at) - 1};
    if (when.n && *when.at == '?') {
        o->free = true;
        when.at++, when.n--;
    }
    o->when = when.n ? keep(a, when) : NULL;
    return (text){t.at, (size_t)(q - t.at)};
}

static uint8_t
read_operand(tx_arena *a, text t, tx_ptx_operand *o)
{
    text piece, rest;
    uint8_t n = 1;

    t = read_condition(a, t, o);
    o->mode = 'r';
    if (*t.at == '\'') {
        o->kind = TX_PTX_TEXT;
        o->name = keep(a, (text){t.at + 1, t.n - 2});
        return 1;
    }
    if (*t.at == '#') {
        read_immediate(a, (text){t.at + 1, t.n - 1}, o);
        return 1;
    }
    if (*t.at == '[')
        return read_address(a, t, o);
    rest = t;
    for (n = 0; next_piece(&rest, '|', &piece); n++) {
        o[n].mode = *piece.at == '=' ? 'w' : *piece.at == '+' ? '+' : 'r';
        if (o[n].mode != 'r')
            piece = (text){piece.at + 1, piece.n - 1};
        read_register(a, piece, &o[n]);
        if (n)
            o[n - 1].pipe = true;
    }
    return n;
}

static bool
read_operands(tx_arena *a, const char *operands, tx_ptx_row *row)
{
    tx_ptx_operand ops[TX_PTX_MAX_OPERANDS + 2], *kept;
    text rest = {operands, strlen(operands)}, piece;
    uint8_t n = 0;

    memset(ops, 0, sizeof ops);
    while (rest.n && next_piece(&rest, ',', &piece)) {
        if (TX_NEVER(n >= TX_PTX_MAX_OPERANDS))
            return false;
        n += read_operand(a, piece, &ops[n]);
    }
    kept = tx_arena_alloc(a, (n ? n : 1) * sizeof *kept, _Alignof(tx_ptx_operand));
    if (!kept)
        return false;
    memcpy(kept, ops, n * sizeof *kept);
    row->op = kept;
    row->nops = n;
    return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static _Atomic(const tx_ptx_row *) tx_ptx_table; /* set once; a race parses twice and drops one */

static const tx_ptx_row *
read_table(tx_arena *a)
{
    tx_ptx_row *rows = tx_arena_alloc(a, NROWS * sizeof *rows, _Alignof(tx_ptx_row));

    for (int i = 0; rows && i < NROWS; i++) {
        const source *s = &sources[i];
        rows[i] = (tx_ptx_row){.flags = s->flags, .sm = s->sm, .emu = s->emu, .rules = s->rules};
        if (!read_opcode(a, s->opcode, &rows[i]) || !read_operands(a, s->operands, &rows[i]))
            return NULL;
    }
    return rows;
}

const tx_ptx_row *
tx_ptx_rows(uint32_t *n)
{
    const tx_ptx_row *rows = atomic_load_explicit(&tx_ptx_table, memory_order_acquire), *expected = NULL;
    tx_arena a;

    *n = NROWS;
    if (TX_LIKELY(rows != NULL))
        return rows;
    tx_arena_init(&a);
    rows = read_table(&a);
    if (!rows || !atomic_compare_exchange_strong(&tx_ptx_table, &expected, rows)) {
        tx_arena_free(&a);
        return expected;
    }
    return rows; /* the arena's chunks stay with the table */
}

/* ---- what a row says under given choices --------------------------------------------------------------------------- */

static const char *
chosen(const tx_ptx_row *r, const int8_t *choice, text slot)
{
    for (int i = 0; i < r->nparts; i++)
        if (r->part[i].slot && same(slot, r->part[i].slot))
            return choice[i] < 0 ? "" : r->part[i].choice[choice[i]];
    return "";
}

static const char *
chosen_z(const tx_ptx_row *r, const int8_t *choice, const char *slot)
{
    return chosen(r, choice, (text){slot, strlen(slot)});
}

const char *
tx_ptx_choice(const tx_ptx_call *k, const char *slot)
{
    uint32_t n;
    const tx_ptx_row *rows = tx_ptx_rows(&n);

    return rows ? chosen_z(&rows[k->row], k->choice, slot) : "";
}

char
tx_ptx_mode(const tx_ptx_call *k, uint32_t arg)
{
    uint32_t n;
    const tx_ptx_row *rows = tx_ptx_rows(&n);

    return arg < k->nargs && rows ? rows[k->row].op[k->op_of[arg]].mode : 'r';
}

/* Digits at the end of a token, 1 when there are none. */
static int
trailing_number(const char *token)
{
    size_t n = strlen(token), i = n;

    while (i > 0 && token[i - 1] >= '0' && token[i - 1] <= '9')
        i--;
    return i < n ? atoi(token + i) : 1;
}

static int
between(const char *shape, char letter)
{
    const char *p = strrchr(shape, letter);

    return p ? atoi(p + 1) : 0;
}

static int
count_function(const tx_ptx_row *r, const int8_t *choice, text f)
{
    const char *shape = chosen_z(r, choice, "shape"), *lm = chosen_z(r, choice, "lm");
    int k = between(shape, 'k');
    static const struct {
        const char *shape;
        int registers;
    } tmem[] = {{"16x64b", 1}, {"32x32b", 1}, {"16x128b", 2}, {"16x256b", 4}};

    if (same(f, "@tma"))
        return strstr(lm, "gather4") || strstr(lm, "scatter4") ? 5 : atoi(chosen_z(r, choice, "dim"));
    if (same(f, "@im2col"))
        return atoi(chosen_z(r, choice, "dim")) - 2;
    if (same(f, "@ldm"))
        return 2 * trailing_number(chosen_z(r, choice, "num"));
    if (same(f, "@mma_a") || same(f, "@mma_a16") || same(f, "@mma_b32"))
        return k / 4;
    if (same(f, "@mma_b") || same(f, "@mma_b16") || same(f, "@mma_a8"))
        return k / 8;
    if (same(f, "@mma_a32"))
        return k / 2;
    if (same(f, "@mma_b8"))
        return k / 16;
    if (same(f, "@acc"))
        return between(shape, 'n') / 2;
    if (same(f, "@acc16"))
        return between(shape, 'n') / 4;
    if (same(f, "@tcmask"))
        return strcmp(chosen_z(r, choice, "cg"), "cta_group::2") == 0 ? 8 : 4;
    for (size_t i = 0; same(f, "@tcreg") && i < sizeof tmem / sizeof *tmem; i++)
        if (strcmp(shape, tmem[i].shape) == 0)
            return tmem[i].registers * trailing_number(chosen_z(r, choice, "num"));
    return 1;
}

int
tx_ptx_count(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o)
{
    const char *token;

    if (!o->count)
        return 1;
    if (*o->count == '@')
        return count_function(r, choice, (text){o->count, strlen(o->count)});
    if (*o->count != '$')
        return atoi(o->count);
    token = chosen_z(r, choice, o->count + 1);
    return *token ? trailing_number(token) : -1;
}

const char *
tx_ptx_type(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o)
{
    static const char *const wide[][2] = {{"u16", "u32"}, {"s16", "s32"}, {"u32", "u64"}, {"s32", "s64"}};
    const char *type = o->type;

    if (!type)
        return "";
    if (*type == '$')
        return chosen_z(r, choice, type + 1);
    if (strcmp(type, "@dp") == 0)
        return strcmp(chosen_z(r, choice, "at"), "u32") == 0 && strcmp(chosen_z(r, choice, "bt"), "u32") == 0 ? "u32"
                                                                                                              : "s32";
    if (strcmp(type, "@wide") == 0) {
        const char *narrow = chosen_z(r, choice, "type");
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
            if (strcmp(narrow, wide[i][0]) == 0)
                return wide[i][1];
    }
    return type;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static bool
one_of(const char *token, const char *set)
{
    text rest = {set, strlen(set)}, piece;

    while (next_piece(&rest, ' ', &piece))
        if (same(piece, token))
            return true;
    return false;
}

static bool
is_int_type(const char *t)
{
    return *t == 'u' || *t == 's';
}

static int
type_bits(const char *t)
{
    while (*t && (*t < '0' || *t > '9'))
        t++;
    return atoi(t);
}

/* Which conversions exist (PTX ISA, cvt). */
static bool
cvt_rules(const tx_ptx_row *r, const int8_t *choice)
{
    const char *d = chosen_z(r, choice, "dt"), *s = chosen_z(r, choice, "st"), *rnd = chosen_z(r, choice, "rnd");
    bool di = is_int_type(d), si = is_int_type(s), sat = *chosen_z(r, choice, "sat") != 0, has_bf16, lossy;

    has_bf16 = strcmp(d, "bf16") == 0 || strcmp(s, "bf16") == 0;
    if (strcmp(d, s) == 0)
        return false;
    lossy = type_bits(d) < type_bits(s) || (type_bits(d) == 16 && type_bits(s) == 16);
    if (di && !si && !one_of(rnd, "rni rzi rmi rpi"))
        return false;
    if (!di && si && !one_of(rnd, "rn rz rm rp"))
        return false;
    if (!di && !si && (lossy != one_of(rnd, "rn rz rm rp") || (!lossy && *rnd)))
        return false;
    if (di && si && *rnd)
        return false;
    if (*chosen_z(r, choice, "ftz") && strcmp(d, "f32") != 0 && strcmp(s, "f32") != 0)
        return false;
    if (sat && has_bf16)
        return false;
    if (sat && di && si &&
        ((*d == *s && type_bits(d) >= type_bits(s)) || (*d == 's' && *s == 'u' && type_bits(d) > type_bits(s))))
        return false;
    return !(has_bf16 && (type_bits(d) == 8 || type_bits(s) == 8));
}

static bool
load_rules(const tx_ptx_row *r, const int8_t *choice)
{
    const char *vec = chosen_z(r, choice, "vec"), *space = chosen_z(r, choice, "space"),
               *l1 = chosen_z(r, choice, "l1");
    bool cop = *chosen_z(r, choice, "cop") != 0, hint = *chosen_z(r, choice, "hint") != 0, global;

    global = !*space || strcmp(space, "global") == 0;
    if (strcmp(vec, "v8") == 0 || (strcmp(vec, "v4") == 0 && one_of(chosen_z(r, choice, "type"), "b64 u64 s64 f64")))
        return false;
    if (strcmp(chosen_z(r, choice, "sem"), "volatile") == 0 && (cop || *l1 || hint))
        return false;
    if (cop && *l1)
        return false;
    return global || (!*l1 && !hint && !*chosen_z(r, choice, "pf"));
}

/* Types of an operation, "op:types" */
static bool
type_of_op(const tx_ptx_row *r, const int8_t *choice, const char *const (*table)[2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (one_of(chosen_z(r, choice, "op"), table[i][0]))
            return one_of(chosen_z(r, choice, "type"), table[i][1]);
    return false;
}

static bool
ptx_table_predicate(const tx_ptx_row *r, const int8_t *choice, text f)
{
    static const char *const atom[][2] = {
        {"and or xor", "b32 b64"}, {"inc dec", "u32"}, {"min max", "u32 s32 u64 s64"}, {"add", "u32 s32 u64 f32 f64"}};
    static const char *const red[][2] = {
        {"and or xor", "b32 b64"}, {"inc dec", "u32"}, {"min max", "u32 s32 u64"}, {"add", "u32 s32 u64 f32 f64"}};
    static const char *const mm[][2] = {
        {"and or xor", "b32 b64"}, {"min max", "u32 s32 u64 s64"}, {"add", "u32 s32 u64"}};
    const char *type = chosen_z(r, choice, "type"), *vec = chosen_z(r, choice, "vec"),
               *cmp = chosen_z(r, choice, "cmp");
    bool wide = one_of(type, "b64 u64 s64 f64");

    if (same(f, "@v128"))
        return !(strcmp(vec, "v4") == 0 && wide);
    if (same(f, "@v256"))
        return (strcmp(vec, "v8") == 0 && !wide) || (strcmp(vec, "v4") == 0 && wide);
    if (same(f, "@ldrules"))
        return load_rules(r, choice);
    if (same(f, "@atomtype"))
        return type_of_op(r, choice, atom, 4);
    if (same(f, "@redtype"))
        return type_of_op(r, choice, red, 4);
    if (same(f, "@mmtype"))
        return type_of_op(r, choice, mm, 3);
    if (same(f, "@sametype"))
        return strcmp(type, chosen_z(r, choice, "st")) == 0;
    if (same(f, "@hintspace"))
        return !*chosen_z(r, choice, "hint") || one_of(chosen_z(r, choice, "space"), "global") ||
               !*chosen_z(r, choice, "space");
    if (same(f, "@cmptype"))
        return *type == 'b' ? one_of(cmp, "eq ne") : *type != 's' || !one_of(cmp, "lo ls hi hs");
    if (same(f, "@cvtrules"))
        return cvt_rules(r, choice);
    return TX_ALWAYS(false);
}

static bool
atom_holds(const tx_ptx_row *r, const int8_t *choice, text t)
{
    text left, right, piece;
    const char *token;

    if (t.n && *t.at == '@') {
        if (cut(t, '<', &left, &right))
            return count_function(r, choice, left) <= ptx_table_number((text){right.at + 1, right.n - 1});
        return ptx_table_predicate(r, choice, t);
    }
    if (t.n && *t.at == '!')
        return !*chosen(r, choice, (text){t.at + 1, t.n - 1});
    if (!cut(t, '=', &left, &right))
        return *chosen(r, choice, t) != 0;
    token = chosen(r, choice, left);
    while (next_piece(&right, '|', &piece))
        if (same(piece, token))
            return true;
    return false;
}

static bool
rule_holds(const tx_ptx_row *r, const int8_t *choice, text rule)
{
    for (size_t i = 0; i + 1 < rule.n; i++) {
        if (rule.at[i] != '=' || rule.at[i + 1] != '>')
            continue;
        if (i && rule.at[i - 1] == '<') /* a <=> b */
            return (*chosen(r, choice, (text){rule.at, i - 1}) != 0) ==
                   (*chosen(r, choice, (text){rule.at + i + 2, rule.n - i - 2}) != 0);
        return !atom_holds(r, choice, (text){rule.at, i}) ||
               atom_holds(r, choice, (text){rule.at + i + 2, rule.n - i - 2});
    }
    return atom_holds(r, choice, rule);
}

bool
tx_ptx_rules_hold(const tx_ptx_row *r, const int8_t *choice)
{
    text rest = {r->rules, strlen(r->rules)}, rule;

    while (rest.n && next_piece(&rest, ',', &rule))
        if (!rule_holds(r, choice, rule))
            return false;
    return true;
}

bool
tx_ptx_present(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o)
{
    return !o->when || atom_holds(r, choice, (text){o->when, strlen(o->when)});
}

/* The highest floor of the conditions that hold ("70,type=f32x2:100"), which may be below the row's own
 * ("90,kind=alias:70"); the row's own where none holds. */
int
tx_ptx_floor_of(const tx_ptx_row *r, const int8_t *choice, char *suffix)
{
    text rest = {r->sm, strlen(r->sm)}, piece, arch;
    bool conditional = false; /* floor is that of a condition */
    int floor = 0;

    *suffix = 0;
    while (next_piece(&rest, ',', &piece)) {
        const char *colon = NULL;
        for (size_t i = 0; i < piece.n; i++) /* the last ':' that is not part of "::" */
            if (piece.at[i] == ':' && (i + 1 >= piece.n || piece.at[i + 1] != ':') &&
                (i == 0 || piece.at[i - 1] != ':'))
                colon = piece.at + i;
        if (colon && !atom_holds(r, choice, (text){piece.at, (size_t)(colon - piece.at)}))
            continue;
        arch = colon ? (text){colon + 1, piece.n - (size_t)(colon - piece.at) - 1} : piece;
        if (conditional && ptx_table_number(arch) < floor)
            continue;
        if (!conditional || ptx_table_number(arch) > floor)
            *suffix = 0;
        floor = (int)ptx_table_number(arch);
        if (arch.n && arch.at[arch.n - 1] == 'a')
            *suffix = 'a';
        conditional = colon != NULL;
    }
    return floor;
}

int
tx_ptx_floor(const tx_ptx_call *k, char *suffix)
{
    uint32_t n;
    const tx_ptx_row *rows = tx_ptx_rows(&n);

    *suffix = 0;
    return rows ? tx_ptx_floor_of(&rows[k->row], k->choice, suffix) : 0;
}

void
tx_ptx_opcode(const tx_ptx_row *r, const int8_t *choice, tx_sb *out)
{
    bool first = true;

    for (int i = 0; i < r->nparts; i++) {
        if (choice[i] < 0)
            continue;
        if (!first)
            tx_sb_putc(out, '.');
        tx_sb_puts(out, r->part[i].choice[choice[i]]);
        first = false;
    }
}
