/* Checks of base/ and ir/ that need no Python: memory, maps, strings, places, dtypes, conversions, folding, rewriting,
 * import, and what happens when memory runs out. Run with the name of a section; each failure is one line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

#define CHECK(cond, ...)                              \
    do {                                              \
        if (!(cond)) {                                \
            failures++;                               \
            printf("line %d: %s: ", __LINE__, #cond); \
            printf(__VA_ARGS__);                      \
            printf("\n");                             \
        }                                             \
    } while (0)

/* ---- helpers --------------------------------------------------------------------------------------------------- */

static const tx_node *
var(tx_ctx *c, const char *name, tx_dtype t)
{
    return tx_new_var(c, TX_VAR_FREE, tx_intern_z(c, name), t)->node;
}

static const tx_node *
load1(tx_ctx *c, const char *name, tx_dtype t)
{
    const tx_node *n = tx_int(c, TX_I32, 16), *i = tx_int(c, TX_I32, 3);

    return tx_load(c, tx_new_buffer(c, tx_intern_z(c, name), t, TX_GLOBAL, &n, 1, NULL), &i, 1);
}

static const char *
last_error(tx_ctx *c)
{
    return c->diags.n ? c->diags.at[c->diags.n - 1].text : "";
}

static const char *
last_help(tx_ctx *c)
{
    return c->diags.n && c->diags.at[c->diags.n - 1].help ? c->diags.at[c->diags.n - 1].help : "";
}

/* ---- base ------------------------------------------------------------------------------------------------------ */

static void
test_arena(void)
{
    tx_arena a;
    tx_mark m;
    char *p, *q;

    tx_arena_init(&a);
    p = tx_arena_alloc(&a, 100, 8);
    memset(p, 1, 100);
    m = tx_arena_mark(&a);
    for (int i = 0; i < 300; i++) {
        q = tx_arena_alloc(&a, 1000, 16);
        CHECK(((uintptr_t)q & 15) == 0, "%p", (void *)q);
        CHECK(q[0] == 0 && q[999] == 0, "not zeroed");
        memset(q, 7, 1000);
    }
    tx_arena_release(&a, m);
    q = tx_arena_alloc(&a, 2000, 1);
    for (int i = 0; i < 2000; i++)
        CHECK(q[i] == 0, "byte %d of what was released is %d", i, q[i]);
    CHECK(p[99] == 1, "older memory changed");
    q = tx_arena_alloc(&a, (size_t)3 << 20, 64); /* larger than any chunk */
    CHECK(q && q[((size_t)3 << 20) - 1] == 0, "large");
    CHECK(!tx_arena_alloc(&a, SIZE_MAX - 8, 8), "impossible");
    tx_arena_free(&a);
    CHECK(a.total == 0, "%zu", a.total);
}

static void
test_map(void)
{
    tx_map m = {0};
    uint64_t v;

    CHECK(!tx_map_get(&m, 1, &v), "empty");
    for (uint64_t i = 1; i <= 5000; i++)
        CHECK(tx_map_put(&m, i * 64, i), "put");
    for (uint64_t i = 1; i <= 5000; i++)
        CHECK(tx_map_get(&m, i * 64, &v) && v == i, "key %d", (int)i);
    CHECK(!tx_map_get(&m, 63, &v), "absent");
    tx_map_put(&m, 64, 99);
    CHECK(tx_map_get(&m, 64, &v) && v == 99 && m.n == 5000, "replace");
    tx_map_free(&m);
}

static void
test_strings(void)
{
    tx_ctx *c = tx_ctx_new();
    tx_sb sb = {0};
    char name[16];

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "v%d", i % 500);
        CHECK(tx_intern_z(c, name) == tx_intern_f(c, "v%d", i % 500), "%s", name);
    }
    CHECK(tx_intern(c, "a\0b", 3) != tx_intern(c, "a\0c", 3), "NUL inside");
    CHECK(tx_intern(c, "a\0b", 3) == tx_intern(c, "a\0b", 3), "NUL inside");
    CHECK(!tx_intern(c, name, (size_t)TX_MAX_STRING + 1), "too long");
    CHECK(strcmp(last_error(c), "a string has more than 16777216 bytes") == 0, "%s", last_error(c));
    for (int i = 0; i < 1000; i++)
        tx_sb_f(&sb, "%d,", i);
    CHECK(sb.n == 3890 && !sb.failed && strlen(sb.text) == sb.n, "%zu", sb.n);
    tx_sb_f(&sb, "%01000d", 7);
    CHECK(sb.n == 4890, "%zu", sb.n);
    tx_sb_free(&sb);
    tx_ctx_free(c);
}

static void
test_vectors(void)
{
    tx_ctx *c = tx_ctx_new();
    TX_VEC(int) v = {0};

    for (int i = 0; i < 1000; i++)
        CHECK(tx_push(c, &v, i), "push");
    for (int i = 0; i < 1000; i++)
        CHECK(v.at[i] == i, "%d", i);
    CHECK(tx_reserve(c, &v, 5000) && v.cap >= 5000 && v.n == 1000, "reserve");
    tx_ctx_free(c);
}

static void
test_diagnostics(void)
{
    static const char text[] = "def f(x):\n    y[i] = x[i] << 40\n    \xc3\xa9\xe4\xb8\xad = a +\tb\n";
    tx_ctx *c = tx_ctx_new();
    uint32_t file = tx_add_file(c, "kernel.py", text, sizeof text - 1, 13);
    const tx_str *f = tx_intern_z(c, "f"), *g = tx_intern_z(c, "g");
    tx_span call = tx_add_span(c, (tx_span_info){file, 31, 4, 31, 8, 0, g});
    tx_span at = tx_add_span(c, (tx_span_info){file, 14, 19, 14, 21, call, f});
    tx_span wide = tx_add_span(c, (tx_span_info){file, 15, 16, 15, 17, 0, f});
    tx_sb sb = {0};

    CHECK(tx_add_span(c, *tx_span_at(c, wide)) == wide, "the last span is used again");
    CHECK(tx_span_at(c, 12345)->line == 0, "unknown span");
    tx_fail_help(c, at, "widen it", TX_E_SHIFT_RANGE, 40ll, 31, "int32");
    tx_diag_render(c, &c->diags.at[0], &sb);
    CHECK(strcmp(sb.text, "kernel.py:14:20: error: shift by 40 is outside 0..31 for int32\n"
                          "    y[i] = x[i] << 40\n"
                          "                   ^^\n"
                          "  help: widen it\n"
                          "  in f(), inlined from g() at kernel.py:31") == 0,
          "\n%s", sb.text);
    sb.n = 0;
    tx_fail(c, wide, TX_E_INDEX_RANGE, 9ll, 3ll, 1, "A");
    tx_diag_render(c, &c->diags.at[1], &sb);
    CHECK(strcmp(sb.text, "kernel.py:15:14: error: index 9 is outside 0..3 in dimension 1 of buffer A\n"
                          "    \xc3\xa9\xe4\xb8\xad = a +\tb\n"
                          "             \t^") == 0,
          "\n%s", sb.text);
    sb.n = 0;
    tx_warn(c, 0, TX_E_STORE_PRECISION, "float32", "int32");
    tx_diag_render(c, &c->diags.at[2], &sb);
    CHECK(strcmp(sb.text, "warning: Casting in BufferStore may lose precision: float32 to int32") == 0, "\n%s",
          sb.text);
    tx_fail(c, 0, TX_E_SYMBOL_UNSOLVED, "n"); /* one argument, named three times */
    CHECK(strcmp(last_error(c),
                 "symbol 'n' cannot be inferred: no parameter has a dimension that is exactly n, or c*n + d") == 0,
          "%s", last_error(c));
    CHECK(c->nerrors == 3 && c->diags.n == 4, "%u errors", c->nerrors);
    CHECK(tx_diag_find("SHIFT_RANGE") == TX_E_SHIFT_RANGE && tx_diag_find("NOSUCH") == 0, "names");
    tx_sb_free(&sb);
    tx_ctx_free(c);
}

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

static void
test_dtypes(void)
{
    static const char *const refused[] = {"",         "x4",          "float99",  "int32x0",  "int32x1",
                                          "int32x65", "int32x04",    "handlex2", "int128x2", "int32x",
                                          "voidx2",   "float32x444", " int32"};
    tx_dtype t, back;
    tx_sb sb = {0};

    for (unsigned k = 0; k < TX_KIND__COUNT; k++)
        for (unsigned lanes = 1; lanes <= 64; lanes *= 2) {
            unsigned cls = tx_kinds[k].cls;

            if (lanes > 1 && (cls == TX_CLS_V || cls == TX_CLS_P || cls == TX_CLS_O || tx_kinds[k].bits == 128))
                continue;
            t = TX_DTYPE(k, lanes);
            sb.n = 0;
            tx_dtype_print(t, &sb);
            CHECK(tx_dtype_parse(sb.text, sb.n, &back) && back == t, "%s", sb.text);
        }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK(!tx_dtype_parse(refused[i], strlen(refused[i]), &t), "%s", refused[i]);
    CHECK(tx_dtype_parse("f16x2", 5, &t) && t == TX_DTYPE(TX_KIND_F16, 2), "alias");
    CHECK(tx_dtype_bytes(TX_DTYPE(TX_KIND_E2M1FN, 3)) == 2 && tx_dtype_bytes(TX_DTYPE(TX_KIND_F32, 4)) == 16, "bytes");
    tx_sb_free(&sb);
}

static void
test_promotion(void)
{
    static const char *const rows[][3] = {
        {"int32", "int64", "int64"},
        {"int32", "uint32", "uint32"},
        {"uint32", "int64", "int64"},
        {"int8", "uint8", "uint8"},
        {"bool", "int8", "int8"},
        {"bool", "float16", "float16"},
        {"int32", "float16", "float16"},
        {"float16", "float64", "float64"},
        {"float8_e4m3fn", "float32", "float32"},
        {"bfloat16", "float16", "float16"},
        {"bfloat16", "float32", "float32"},
        {"uint64", "int8", "uint64"},
        {"int16", "uint64", "uint64"},
        {"int32x4", "float32", "float32x4"},
        {"int32x4", "int32x2", "void"},
        {"handle", "int32", "void"},
        {"handle", "handle", "handle"},
        {"bool", "bool", "bool"},
        {"float8_e4m3fn", "float8_e5m2", "float32"},
        {"float4_e2m1fn", "float8_e5m2", "float8_e5m2"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tx_dtype a = 0, b = 0, want = 0;

        CHECK(tx_dtype_parse(rows[i][0], strlen(rows[i][0]), &a) &&
                  tx_dtype_parse(rows[i][1], strlen(rows[i][1]), &b) &&
                  tx_dtype_parse(rows[i][2], strlen(rows[i][2]), &want),
              "row %zu", i);
        CHECK(tx_promote(a, b) == want && tx_promote(b, a) == want, "%s with %s", rows[i][0], rows[i][1]);
    }
}

/* Every code of a format of at most 16 bits: decode, encode, and the rounding of what lies between neighbours. */
static void
check_codes(unsigned kind)
{
    tx_dtype t = TX_DTYPE(kind, 1);
    uint64_t n = (uint64_t)1 << tx_kinds[kind].bits;
    bool is_signed = kind != TX_KIND_E8M0FNU;
    uint64_t positive = is_signed ? n / 2 : n;
    double before = NAN;

    for (uint64_t code = 0; code < n; code++) {
        double v = tx_decode(t, code);
        uint64_t back = tx_encode(t, v);

        if (isnan(v) || (isinf(v) && tx_kinds[kind].bits < 16))
            continue;
        CHECK(back == code, "%s: %llx decodes to %g encodes to %llx", tx_kinds[kind].text, (unsigned long long)code, v,
              (unsigned long long)back);
        if (code >= positive)
            continue;
        if (code > 0 && isfinite(v) && isfinite(before)) {
            double mid = before / 2 + v / 2;
            uint64_t even = code & 1 && is_signed ? code - 1 : code;

            CHECK(v > before, "%s: order at %llx", tx_kinds[kind].text, (unsigned long long)code);
            CHECK(tx_encode(t, mid) == even, "%s: tie below %llx gives %llx", tx_kinds[kind].text,
                  (unsigned long long)code, (unsigned long long)tx_encode(t, mid));
            CHECK(tx_encode(t, nextafter(mid, INFINITY)) == code, "%s: above tie", tx_kinds[kind].text);
            CHECK(tx_encode(t, nextafter(mid, -INFINITY)) == code - 1, "%s: below tie", tx_kinds[kind].text);
            if (is_signed)
                CHECK(tx_encode(t, -mid) == even + n / 2 || (even == 0 && mid > 0), "%s: sign", tx_kinds[kind].text);
        }
        before = v;
    }
}

static void
test_formats(void)
{
    static const struct {
        unsigned kind;
        uint64_t code;
        double value;
    } rows[] = {
        {TX_KIND_F16, 0x3c00, 1},        {TX_KIND_F16, 0x7bff, 65504},    {TX_KIND_F16, 1, 0x1p-24},
        {TX_KIND_BF16, 0x3f80, 1},       {TX_KIND_BF16, 1, 0x1p-133},     {TX_KIND_E4M3FN, 0x7e, 448},
        {TX_KIND_E4M3FN, 1, 0x1p-9},     {TX_KIND_E5M2, 0x7b, 57344},     {TX_KIND_E5M2, 1, 0x1p-16},
        {TX_KIND_E2M3FN, 0x1f, 7.5},     {TX_KIND_E3M2FN, 0x1f, 28},      {TX_KIND_E2M1FN, 7, 6},
        {TX_KIND_E2M1FN, 1, 0.5},        {TX_KIND_E8M0FNU, 0, 0x1p-127},  {TX_KIND_E8M0FNU, 0xfe, 0x1p127},
        {TX_KIND_E3M4, 0x6f, 15.5},      {TX_KIND_E4M3, 0x77, 240},       {TX_KIND_E4M3FNUZ, 0x7f, 240},
        {TX_KIND_E5M2FNUZ, 0x7f, 57344}, {TX_KIND_E4M3B11FNUZ, 0x7f, 30},
    };
    static const struct {
        unsigned kind;
        double value;
        uint64_t code;
    } ends[] = {
        {TX_KIND_F16, 65519.9, 0x7bff},    {TX_KIND_F16, 65520, 0x7c00}, {TX_KIND_F16, NAN, 0x7fff},
        {TX_KIND_BF16, 1e39, 0x7f80},      {TX_KIND_BF16, NAN, 0x7fff},  {TX_KIND_E4M3FN, 1e9, 0x7e},
        {TX_KIND_E4M3FN, -INFINITY, 0xfe}, {TX_KIND_E4M3FN, NAN, 0x7f},  {TX_KIND_E5M2, INFINITY, 0x7b},
        {TX_KIND_E5M2, NAN, 0x7f},         {TX_KIND_E2M1FN, 100, 7},     {TX_KIND_E2M1FN, -100, 15},
        {TX_KIND_E2M1FN, NAN, 7},          {TX_KIND_E8M0FNU, 0, 0},      {TX_KIND_E8M0FNU, 1e-300, 0},
        {TX_KIND_E8M0FNU, 1e300, 0xfe},    {TX_KIND_E8M0FNU, NAN, 0xff}, {TX_KIND_E4M3FNUZ, -0.0, 0},
        {TX_KIND_E4M3FNUZ, NAN, 0x80},     {TX_KIND_F16, -0.0, 0x8000},  {TX_KIND_F16, 1e-30, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(tx_decode(TX_DTYPE(rows[i].kind, 1), rows[i].code) == rows[i].value, "%s %llx is %g",
              tx_kinds[rows[i].kind].text, (unsigned long long)rows[i].code,
              tx_decode(TX_DTYPE(rows[i].kind, 1), rows[i].code));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        CHECK(tx_encode(TX_DTYPE(ends[i].kind, 1), ends[i].value) == ends[i].code, "%s of %g is %llx",
              tx_kinds[ends[i].kind].text, ends[i].value,
              (unsigned long long)tx_encode(TX_DTYPE(ends[i].kind, 1), ends[i].value));
    for (unsigned k = 0; k < TX_KIND__COUNT; k++)
        if (tx_is_float(TX_DTYPE(k, 1)) && tx_kinds[k].bits <= 16)
            check_codes(k);
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

static void
test_values(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *x = var(c, "x", TX_I32), *y = var(c, "y", TX_I32), *a, *b, *l;

    a = tx_binary(c, TX_OP_ADD, x, y);
    CHECK(a == tx_binary(c, TX_OP_ADD, x, y), "same place, same node");
    c->span = tx_add_span(c, (tx_span_info){0, 3, 0, 3, 1, 0, NULL});
    b = tx_binary(c, TX_OP_ADD, x, y);
    CHECK(a != b && a->vn == b->vn && tx_same_expr(a, b) && b->span == c->span, "other place, same value");
    CHECK(!tx_same_expr(a, tx_binary(c, TX_OP_ADD, y, x)), "operands are not reordered");
    l = load1(c, "A", TX_I32);
    CHECK(l->flags & TX_NF_IMPURE && !tx_same_expr(l, tx_with_span(c, l, 0)), "loads are never equal");
    CHECK(!(tx_address_of(c, l)->flags & TX_NF_IMPURE), "an address reads nothing");
    CHECK(tx_address_of(c, l)->elem == TX_I32, "element of a pointer");
    CHECK(tx_binary(c, TX_OP_ADD, l, x)->flags & TX_NF_IMPURE, "impure above");
    a = x;
    for (int i = 1; i < TX_MAX_DEPTH; i++)
        a = tx_binary(c, TX_OP_ADD, a, y);
    CHECK(a && c->nerrors == 0, "at the limit");
    CHECK(!tx_binary(c, TX_OP_ADD, a, y) && strcmp(last_error(c), "nesting deeper than 1000 levels") == 0, "%s",
          last_error(c));
    tx_ctx_free(c);
}

/* What a folding gives, as text: "<op name>", "<integer>", "<float>", "x" or "y" for the operands, "error: ..." */
static const char *
outcome(tx_ctx *c, const tx_node *n, const tx_node *x, const tx_node *y)
{
    static char text[200];

    if (!n)
        snprintf(text, sizeof text, "error: %s", last_error(c));
    else if (n == x || n == y)
        snprintf(text, sizeof text, "%s", n == x ? "x" : "y");
    else if (n->op == TX_OP_INT)
        snprintf(text, sizeof text, "%lld", (long long)n->u.i);
    else if (n->op == TX_OP_FLOAT)
        snprintf(text, sizeof text, "%.17g", n->u.f);
    else
        snprintf(text, sizeof text, "%s", tx_ops[n->op].name);
    return text;
}

static void
test_fold_ints(void)
{
    static const struct {
        unsigned op;
        tx_dtype t;
        int64_t a, b;
        const char *want;
    } rows[] = {
        {TX_OP_ADD, TX_I32, INT32_MAX, 1, "-2147483648"},
        {TX_OP_SUB, TX_DTYPE(TX_KIND_U8, 1), 3, 10, "249"},
        {TX_OP_MUL, TX_I64, INT64_MAX, 2, "-2"},
        {TX_OP_DIV, TX_I32, -7, 2, "-3"},
        {TX_OP_MOD, TX_I32, -7, 2, "-1"},
        {TX_OP_FLOORDIV, TX_I32, -7, 2, "-4"},
        {TX_OP_FLOORMOD, TX_I32, -7, 2, "1"},
        {TX_OP_FLOORMOD, TX_I32, 7, -2, "-1"},
        {TX_OP_CEILDIV, TX_I32, 7, 2, "4"},
        {TX_OP_CEILDIV, TX_I32, -7, 2, "-3"},
        {TX_OP_DIV, TX_I32, INT32_MIN, -1, "-2147483648"},
        {TX_OP_FLOORDIV, TX_I64, INT64_MIN, -1, "-9223372036854775808"},
        {TX_OP_FLOORMOD, TX_I64, INT64_MIN, -1, "0"},
        {TX_OP_FLOORDIV, TX_U64, -1, 10, "1844674407370955161"},
        {TX_OP_DIV, TX_I32, 1, 0, "error: division by zero"},
        {TX_OP_FLOORMOD, TX_I32, 1, 0, "error: division by zero"},
        {TX_OP_SHL, TX_I32, 1, 31, "-2147483648"},
        {TX_OP_SHL, TX_I32, 1, 32, "error: shift by 32 is outside 0..31 for int32"},
        {TX_OP_SHR, TX_I32, -8, 1, "-4"},
        {TX_OP_SHR, TX_I32, -8, -1, "error: shift by -1 is outside 0..31 for int32"},
        {TX_OP_SHR, TX_U32, 0xfffffff8, 1, "2147483644"},
        {TX_OP_MIN, TX_I32, -1, 1, "-1"},
        {TX_OP_MIN, TX_U64, -1, 1, "1"},
        {TX_OP_MAX, TX_I32, -1, 1, "1"},
        {TX_OP_LT, TX_U64, -1, 1, "0"},
        {TX_OP_LT, TX_I64, -1, 1, "1"},
        {TX_OP_GE, TX_I32, 1, 1, "1"},
        {TX_OP_BXOR, TX_DTYPE(TX_KIND_I8, 1), 0x7f, -1, "-128"},
    };
    static const struct {
        unsigned op;
        int64_t k;
        const char *right, *left; /* x op k, k op x */
    } identities[] = {
        {TX_OP_ADD, 0, "x", "x"},
        {TX_OP_SUB, 0, "x", "SUB"},
        {TX_OP_MUL, 1, "x", "x"},
        {TX_OP_MUL, 0, "0", "0"},
        {TX_OP_BAND, -1, "x", "x"},
        {TX_OP_BAND, 0, "0", "0"},
        {TX_OP_BOR, 0, "x", "x"},
        {TX_OP_BXOR, 0, "x", "x"},
        {TX_OP_FLOORDIV, 1, "x", "FLOORDIV"},
        {TX_OP_FLOORMOD, 1, "0", "FLOORMOD"},
        {TX_OP_SHL, 0, "x", "0"},
        {TX_OP_ADD, 1, "ADD", "ADD"},
        {TX_OP_CEILDIV, 1, "x", "CEILDIV"},
        {TX_OP_FLOORDIV, -1, "FLOORDIV", "FLOORDIV"},
        {TX_OP_MUL, -1, "MUL", "MUL"},
        {TX_OP_MIN, 0, "MIN", "MIN"},
    };
    tx_ctx *c = tx_ctx_new();
    const tx_node *x = var(c, "x", TX_I32), *l = load1(c, "A", TX_I32);
    const char *got;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        got = outcome(c, tx_binary(c, rows[i].op, tx_int(c, rows[i].t, rows[i].a), tx_int(c, rows[i].t, rows[i].b)),
                      NULL, NULL);
        CHECK(strcmp(got, rows[i].want) == 0, "row %zu: %s", i, got);
    }
    for (size_t i = 0; i < sizeof identities / sizeof *identities; i++) {
        const tx_node *k = tx_int(c, TX_I32, identities[i].k);

        got = outcome(c, tx_binary(c, identities[i].op, x, k), x, NULL);
        CHECK(strcmp(got, identities[i].right) == 0, "x %s %lld: %s", tx_ops[identities[i].op].name,
              (long long)identities[i].k, got);
        got = outcome(c, tx_binary(c, identities[i].op, k, x), x, NULL);
        CHECK(strcmp(got, identities[i].left) == 0, "%lld %s x: %s", (long long)identities[i].k,
              tx_ops[identities[i].op].name, got);
    }
    CHECK(strcmp(outcome(c, tx_binary(c, TX_OP_SUB, x, x), x, x), "0") == 0, "x - x");
    CHECK(tx_binary(c, TX_OP_SUB, l, l)->op == TX_OP_SUB, "a load is not dropped");
    CHECK(tx_binary(c, TX_OP_MUL, l, tx_int(c, TX_I32, 0))->op == TX_OP_MUL, "a load is not dropped");
    CHECK(strcmp(outcome(c, tx_binary(c, TX_OP_EQ, x, x), x, x), "1") == 0, "x == x");
    CHECK(!tx_binary(c, TX_OP_FLOORDIV, x, tx_int(c, TX_I32, 0)), "x // 0");
    CHECK(!tx_binary(c, TX_OP_SHL, x, tx_int(c, TX_I32, 40)), "x << 40");
    CHECK(strcmp(last_help(c), "widen the left side first: T.int64(x) << 40") == 0, "%s", last_help(c));
    tx_ctx_free(c);
}

static void
test_fold_floats(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *x = var(c, "x", TX_F32), *zero = tx_float(c, TX_F32, 0), *inf = tx_float(c, TX_F32, INFINITY), *n;

    CHECK(tx_binary(c, TX_OP_MUL, x, zero)->op == TX_OP_MUL, "x * 0.0");
    CHECK(tx_binary(c, TX_OP_SUB, x, x)->op == TX_OP_SUB, "x - x");
    CHECK(tx_binary(c, TX_OP_ADD, x, zero)->op == TX_OP_ADD, "x + 0.0");
    CHECK(tx_binary(c, TX_OP_EQ, x, x)->op == TX_OP_EQ, "x == x");
    n = tx_binary(c, TX_OP_ADD, tx_float(c, TX_F32, 0x1p24), tx_float(c, TX_F32, 1));
    CHECK(n->op == TX_OP_FLOAT && n->u.f == 0x1p24, "%g", n->u.f);
    n = tx_binary(c, TX_OP_DIV, tx_float(c, TX_F32, 1), tx_float(c, TX_F32, 3));
    CHECK(n->op == TX_OP_FLOAT && n->u.f == (double)(1.0f / 3.0f), "%.17g", n->u.f);
    n = tx_binary(c, TX_OP_MUL, tx_float(c, TX_F16, 300), tx_float(c, TX_F16, 300));
    CHECK(n->op == TX_OP_FLOAT && isinf(n->u.f), "%g", n->u.f);
    CHECK(tx_binary(c, TX_OP_SUB, inf, inf)->op == TX_OP_SUB, "inf - inf");
    n = tx_binary(c, TX_OP_DIV, tx_float(c, TX_F32, 1), zero);
    CHECK(n && n->op == TX_OP_FLOAT && isinf(n->u.f), "1.0 / 0.0");
    n = tx_binary(c, TX_OP_MIN, zero, tx_float(c, TX_F32, -0.0));
    CHECK(n->op == TX_OP_FLOAT && signbit(n->u.f), "min(0.0, -0.0)");
    n = tx_binary(c, TX_OP_MAX, tx_float(c, TX_F32, NAN), tx_float(c, TX_F32, 2));
    CHECK(n->op == TX_OP_FLOAT && n->u.f == 2, "max(nan, 2)");
    CHECK(tx_is_const(tx_binary(c, TX_OP_NE, tx_float(c, TX_F32, NAN), tx_float(c, TX_F32, NAN)), 1), "nan != nan");
    CHECK(!tx_binary(c, TX_OP_FLOORDIV, x, x), "x // x");
    CHECK(strcmp(last_error(c), "'//' needs integers, got float32") == 0, "%s", last_error(c));
    CHECK(!tx_binary(c, TX_OP_BAND, x, x) && strcmp(last_error(c), "operator '&' does not take float32") == 0, "%s",
          last_error(c));
    tx_ctx_free(c);
}

static void
test_casts(void)
{
    static const tx_dtype u8 = TX_DTYPE(TX_KIND_U8, 1), i8 = TX_DTYPE(TX_KIND_I8, 1), i16 = TX_DTYPE(TX_KIND_I16, 1);
    tx_ctx *c = tx_ctx_new();
    const tx_node *x = var(c, "x", TX_I32), *h = var(c, "h", TX_F16), *s = var(c, "s", i16), *l = var(c, "l", TX_I64);
    const struct {
        tx_dtype t;
        const tx_node *from;
        const char *want;
    } rows[] = {
        {i8, tx_weak_int(c, 300), "44"},
        {u8, tx_weak_int(c, -1), "255"},
        {u8, tx_float(c, TX_F32, 300), "255"},
        {u8, tx_float(c, TX_F32, -3), "0"},
        {i8, tx_float(c, TX_F32, -1000), "-128"},
        {TX_I32, tx_float(c, TX_F32, NAN), "0"},
        {TX_I32, tx_float(c, TX_F32, INFINITY), "2147483647"},
        {TX_I64, tx_float(c, TX_F64, 1e30), "9223372036854775807"},
        {TX_U64, tx_float(c, TX_F64, 1e30), "-1"}, /* all ones, kept in 64 bits */
        {TX_I32, tx_float(c, TX_F32, -1.9), "-1"},
        {TX_BOOL, tx_float(c, TX_F32, 0.5), "1"},
        {TX_F16, tx_int(c, TX_I32, 2049), "2048"},
        {TX_F32, tx_int(c, TX_I64, 0x1000001000000001), "1.1529216420458004e+18"}, /* rounded once */
        {TX_DTYPE(TX_KIND_E4M3FN, 1), tx_float(c, TX_F32, 1e9), "448"},
        {TX_I32, x, "x"},
        {TX_I32, tx_cast(c, TX_I64, x), "x"},
        {TX_F16, tx_cast(c, TX_F32, h), "CAST"},
        {TX_I32, tx_cast(c, TX_F64, x), "x"},
        {TX_I32, tx_cast(c, TX_F32, x), "CAST"},
        {TX_I32, tx_cast(c, i8, x), "CAST"},
        {i8, tx_cast(c, TX_F32, s), "CAST"},
        {TX_I32, tx_cast(c, TX_I32, l), "CAST"},
    };
    const tx_node *n;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = outcome(c, tx_cast(c, rows[i].t, rows[i].from), x, NULL);

        CHECK(strcmp(got, rows[i].want) == 0 ||
                  (rows[i].from->op == TX_OP_CAST && tx_cast(c, rows[i].t, rows[i].from) == h),
              "row %zu: %s", i, got);
    }
    CHECK(tx_cast(c, TX_F16, tx_cast(c, TX_F32, h)) == h, "float16 -> float32 -> float16");
    n = tx_cast(c, i8, tx_cast(c, TX_F32, s)); /* saturates: must not become the wrapping int16 -> int8 */
    CHECK(n->op == TX_OP_CAST && n->arg[0]->op == TX_OP_CAST, "int16 -> float32 -> int8");
    n = tx_cast(c, i8, tx_cast(c, TX_I32, l));
    CHECK(n->op == TX_OP_CAST && n->arg[0] == l, "int64 -> int32 -> int8");
    n = tx_reinterpret(c, TX_I32, tx_float(c, TX_F32, 1));
    CHECK(tx_is_const(n, 0x3f800000), "bits of 1.0");
    CHECK(!tx_reinterpret(c, TX_I64, tx_float(c, TX_F32, 1)), "32 bits in 64");
    CHECK(strcmp(last_error(c), "reinterpret needs equal total bits: int64 has 64, float32 has 32") == 0, "%s",
          last_error(c));
    tx_ctx_free(c);
}

static void
test_weak(void)
{
    static const tx_dtype u8 = TX_DTYPE(TX_KIND_U8, 1);
    tx_ctx *c = tx_ctx_new();
    const tx_node *i = var(c, "i", TX_I32), *u = var(c, "u", TX_U32), *b = var(c, "b", u8), *h = var(c, "h", TX_F16),
                  *f = var(c, "f", TX_F32), *p = var(c, "p", TX_BOOL), *n;

    n = tx_binary(c, TX_OP_SUB, u, tx_weak_int(c, 1));
    CHECK(n->dtype == TX_U32 && !(n->arg[1]->flags & TX_NF_WEAK), "u - 1");
    CHECK(tx_binary(c, TX_OP_ADD, i, tx_weak_int(c, 5000000000))->dtype == TX_I64, "i + 5000000000");
    CHECK(tx_binary(c, TX_OP_ADD, u, tx_weak_int(c, 3000000000))->dtype == TX_U32, "u + 3000000000");
    CHECK(tx_binary(c, TX_OP_ADD, i, tx_weak_float(c, 1.5))->dtype == TX_F32, "i + 1.5");
    CHECK(tx_binary(c, TX_OP_MUL, h, tx_weak_int(c, 2))->dtype == TX_F16, "h * 2");
    CHECK(tx_binary(c, TX_OP_MUL, h, tx_weak_float(c, 2))->dtype == TX_F32, "h * 2.0");
    n = tx_binary(c, TX_OP_LT, h, tx_weak_float(c, 0.1));
    CHECK(n->dtype == TX_BOOL && n->arg[0] == h && n->arg[1]->dtype == TX_F16, "h < 0.1");
    CHECK(tx_binary(c, TX_OP_ADD, p, p)->dtype == TX_I32, "bool + bool");
    CHECK(tx_binary(c, TX_OP_BAND, p, p)->dtype == TX_BOOL, "bool & bool");
    CHECK(tx_binary(c, TX_OP_ADD, p, tx_weak_int(c, 5))->dtype == TX_I32, "bool + 5");
    CHECK(!tx_binary(c, TX_OP_ADD, b, tx_weak_int(c, 300)), "uint8 + 300");
    CHECK(strcmp(last_error(c), "Literal value 300 exceeds maximum of uint8") == 0, "%s", last_error(c));
    CHECK(!tx_binary(c, TX_OP_ADD, u, tx_weak_int(c, -1)), "u + -1");
    CHECK(strcmp(last_error(c), "cannot make uint from negative value -1") == 0, "%s", last_error(c));
    CHECK(!tx_binary(c, TX_OP_MUL, h, tx_weak_int(c, 70000)), "h * 70000");
    CHECK(strcmp(last_error(c), "Literal value 70000 exceeds maximum of float16") == 0, "%s", last_error(c));
    CHECK(!tx_binary(c, TX_OP_MUL, f, tx_weak_float(c, 1e300)), "f * 1e300");
    CHECK(strcmp(last_error(c), "Literal value 1e+300 exceeds maximum of float32") == 0, "%s", last_error(c));
    CHECK(tx_literal_float(c, TX_F16, 65519)->u.f == 65504 && !tx_literal_float(c, TX_F16, 65520), "float16 limit");
    CHECK(strcmp(last_error(c), "Literal value 65520.0 exceeds maximum of float16") == 0, "%s", last_error(c));
    CHECK(!tx_literal_int(c, TX_DTYPE(TX_KIND_I8, 1), true, 129), "int8(-129)");
    CHECK(strcmp(last_error(c), "Literal value -129 exceeds range of int8") == 0, "%s", last_error(c));
    CHECK(tx_literal_int(c, TX_U64, false, UINT64_MAX)->u.i == -1, "uint64 maximum");
    CHECK(tx_literal_float(c, TX_I32, 1.7)->u.i == 1 && tx_literal_float(c, TX_I32, -1.7)->u.i == -1, "truncates");
    CHECK(!tx_binary(c, TX_OP_AND, p, i), "p and i");
    CHECK(strcmp(last_error(c), "'and' needs boolean operands, got int32") == 0, "%s", last_error(c));
    n = tx_condition(c, i);
    CHECK(n->op == TX_OP_NE && n->dtype == TX_BOOL, "if i");
    n = tx_select(c, TX_OP_IF_THEN_ELSE, p, i, tx_weak_float(c, 1.5));
    CHECK(n->dtype == TX_F32 && n->arg[1]->op == TX_OP_CAST, "both arms are promoted");
    n = tx_unary(c, TX_OP_NEG, u);
    CHECK(n->dtype == TX_U32, "-u");
    CHECK(tx_is_const(tx_unary(c, TX_OP_NEG, tx_int(c, u8, 1)), 255), "-uint8(1)");
    n = tx_unary(c, TX_OP_EXP, i);
    CHECK(n->dtype == TX_F32 && n->arg[0]->op == TX_OP_CAST, "exp of an integer");
    tx_ctx_free(c);
}

static void
test_logic(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *p = var(c, "p", TX_BOOL), *t = tx_bool(c, true), *f = tx_bool(c, false),
                  *l = tx_condition(c, load1(c, "A", TX_I32));

    CHECK(tx_binary(c, TX_OP_AND, t, p) == p && tx_binary(c, TX_OP_AND, p, t) == p, "and True");
    CHECK(tx_is_const(tx_binary(c, TX_OP_AND, f, l), 0), "False and load: not evaluated");
    CHECK(tx_binary(c, TX_OP_AND, l, f)->op == TX_OP_AND, "load and False: the load stays");
    CHECK(tx_is_const(tx_binary(c, TX_OP_OR, p, t), 1) && tx_binary(c, TX_OP_OR, f, l) == l, "or");
    CHECK(tx_not(c, tx_not(c, p)) == p && tx_is_const(tx_not(c, t), 0), "not");
    CHECK(tx_unary(c, TX_OP_BNOT, p)->op == TX_OP_NOT, "~ on a bool");
    CHECK(tx_select(c, TX_OP_IF_THEN_ELSE, t, p, l) == p, "constant condition");
    CHECK(tx_select(c, TX_OP_SELECT, t, p, l)->op == TX_OP_SELECT, "both sides of Select are evaluated");
    tx_ctx_free(c);
}

static void
test_indices(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *shape[] = {tx_int(c, TX_I32, 8), tx_int(c, TX_I32, 4)}, *i = var(c, "i", TX_I32), *idx[2], *n;
    tx_buffer *b = tx_new_buffer(c, tx_intern_z(c, "A"), TX_F32, TX_GLOBAL, shape, 2, NULL);

    idx[0] = i;
    idx[1] = tx_weak_int(c, 3);
    n = tx_load(c, b, idx, 2);
    CHECK(n && n->dtype == TX_F32 && !(n->arg[1]->flags & TX_NF_WEAK), "load");
    CHECK(!tx_load(c, b, idx, 1), "rank");
    CHECK(strcmp(last_error(c), "Buffer A is 2-dimensional, cannot be indexed with the 1-dimensional indices") == 0,
          "%s", last_error(c));
    idx[1] = tx_weak_int(c, 4);
    CHECK(!tx_load(c, b, idx, 2), "past the end");
    CHECK(strcmp(last_error(c), "index 4 is outside 0..3 in dimension 1 of buffer A") == 0 && !*last_help(c), "%s",
          last_error(c));
    idx[1] = tx_weak_int(c, -1);
    CHECK(!tx_load(c, b, idx, 2) && *last_help(c), "negative");
    idx[1] = tx_float(c, TX_F32, 1);
    CHECK(!tx_load(c, b, idx, 2), "float");
    CHECK(strcmp(last_error(c), "index 1 of buffer A must be an integer, got float32") == 0, "%s", last_error(c));
    idx[1] = tx_ramp(c, tx_int(c, TX_I32, 0), tx_int(c, TX_I32, 1), 4);
    n = tx_load(c, b, idx, 2);
    CHECK(n && n->dtype == TX_DTYPE(TX_KIND_F32, 4), "vector load");
    n = tx_store(c, b, idx, 2, tx_weak_float(c, 1));
    CHECK(n && n->arg[0]->op == TX_OP_BROADCAST, "scalar into a vector");
    CHECK(!tx_store(c, b, idx, 2, tx_broadcast(c, tx_float(c, TX_F32, 1), 2)), "lanes");
    CHECK(strcmp(last_error(c), "Incompatible types in BufferStore: LHS is `T.float32x4`, RHS is `T.float32x2`") == 0,
          "%s", last_error(c));
    idx[1] = tx_ramp(c, tx_int(c, TX_I32, 1), tx_int(c, TX_I32, 1), 4);
    CHECK(!tx_load(c, b, idx, 2), "ramp past the end");
    CHECK(tx_is_const(tx_buffer_numel(c, b), 32), "numel");
    tx_ctx_free(c);
}

/* ---- functions ------------------------------------------------------------------------------------------------- */

/* for i in range(n): if i < 3: A[i] = A[i] + 1 else: A[0] = 2 */
static tx_func *
small_func(tx_ctx *c)
{
    tx_builder *b = tx_builder_new(c, tx_intern_z(c, "f"), TX_G1);
    tx_func *f = b ? tx_builder_func(b) : NULL;
    tx_var *n = tx_new_var(c, TX_VAR_SYMBOL, tx_intern_z(c, "n"), TX_I32), *i;
    const tx_node *head[4] = {NULL}, *cond[3] = {NULL}, *v, *zero = tx_int(c, TX_I32, 0);
    tx_buffer *a = n ? tx_new_buffer(c, tx_intern_z(c, "A"), TX_F32, TX_GLOBAL, &n->node, 1, NULL) : NULL;
    tx_loop *loop = tx_new(c, tx_loop, 1);

    i = tx_new_var(c, TX_VAR_LOOP, tx_intern_z(c, "i"), TX_I32);
    if (!f || !a || !i || !loop || !(f->params = tx_new(c, tx_param, 1)))
        return NULL;
    f->nparams = 1;
    f->params[0] = (tx_param){.var = a->data, .buffer = a, .name = a->name};
    loop->var = i;
    head[0] = zero;
    head[1] = n->node;
    head[2] = tx_int(c, TX_I32, 1);
    if (!tx_open(b, tx_make(c, TX_OP_FOR, TX_VOID, (tx_payload){.loop = loop}, head, 4)))
        return NULL;
    cond[0] = tx_binary(c, TX_OP_LT, i->node, tx_weak_int(c, 3));
    if (!tx_open(b, tx_make(c, TX_OP_IF, TX_VOID, (tx_payload){0}, cond, 3)))
        return NULL;
    v = tx_load(c, a, &i->node, 1);
    if (!tx_emit(b, tx_store(c, a, &i->node, 1, tx_binary(c, TX_OP_ADD, v, tx_weak_int(c, 1)))) || !tx_close(b) ||
        !tx_open_else(b) || !tx_emit(b, tx_store(c, a, &zero, 1, tx_weak_int(c, 2))))
        return NULL;
    return tx_builder_finish(b);
}

static void
test_builder(void)
{
    tx_ctx *c = tx_ctx_new(), *d = tx_ctx_new();
    tx_func *f = small_func(c), *g = f ? tx_import_func(d, f) : NULL;
    const tx_node *body, *three = tx_int(c, TX_I32, 3), *one;
    tx_var *n;

    CHECK(f && f->body->op == TX_OP_FOR && f->body->arg[3]->op == TX_OP_IF && f->body->arg[3]->arg[2], "shape");
    CHECK(g && g->ctx == d && g->params[0].buffer->data->buffer == g->params[0].buffer, "import");
    CHECK(g && tx_equal_funcs(f, g) && tx_hash_func(f) == tx_hash_func(g), "import is equal");
    tx_ctx_free(d);
    n = f->body->arg[1]->u.var;
    body = tx_substitute(c, f->body, &n, &three, 1);
    CHECK(body && tx_is_const(body->arg[1], 3), "substitute");
    CHECK(body && body->arg[3]->arg[1]->u.buf != f->params[0].buffer, "the buffer's shape changed with it");
    CHECK(tx_substitute(c, f->body->arg[3], &n, &three, 1)->arg[0] == f->body->arg[3]->arg[0], "the rest is shared");
    one = tx_int(c, TX_I32, 0);
    n = f->body->u.loop->var;
    body = tx_substitute(c, f->body->arg[3], &n, &one, 1);
    CHECK(body && tx_is_const(body->arg[0], 1), "refold: 0 < 3");
    CHECK(c->nerrors == 0, "%s", last_error(c));
    tx_ctx_free(c);
}

/* At each limit and one past it. */
static void
test_limits(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *x = var(c, "x", TX_I32), *shape[TX_MAX_RANK + 1];
    char *text = calloc(1, (size_t)TX_MAX_SOURCE_BYTES + 1);

    CHECK(tx_intern(c, text, TX_MAX_STRING), "longest string");
    CHECK(!tx_intern(c, text, (size_t)TX_MAX_STRING + 1), "longer");
    CHECK(strcmp(last_error(c), "a string has more than 16777216 bytes") == 0, "%s", last_error(c));
    CHECK(tx_add_file(c, "k.py", text, TX_MAX_SOURCE_BYTES, 1) == 1, "longest source");
    CHECK(tx_add_file(c, "k.py", text, (size_t)TX_MAX_SOURCE_BYTES + 1, 1) == 0, "longer");
    CHECK(strcmp(last_error(c), "a source text has more than 67108864 bytes") == 0, "%s", last_error(c));
    free(text);
    for (int i = 0; i <= TX_MAX_RANK; i++)
        shape[i] = tx_int(c, TX_I32, 1);
    CHECK(tx_new_buffer(c, tx_intern_z(c, "A"), TX_F32, TX_GLOBAL, shape, TX_MAX_RANK, NULL), "highest rank");
    CHECK(!tx_new_buffer(c, tx_intern_z(c, "A"), TX_F32, TX_GLOBAL, shape, TX_MAX_RANK + 1, NULL), "higher");
    CHECK(strcmp(last_error(c), "buffer A has 17 dimensions, more than 16") == 0, "%s", last_error(c));
    CHECK(tx_broadcast(c, x, TX_MAX_LANES) && !tx_broadcast(c, x, TX_MAX_LANES + 1), "lanes");
    CHECK(strcmp(last_error(c), "a vector has 2 to 64 lanes, not 65") == 0, "%s", last_error(c));
    c->nnodes = TX_MAX_NODES - 1;
    CHECK(tx_int(c, TX_I32, 77), "last node");
    CHECK(!tx_int(c, TX_I32, 78), "one more");
    CHECK(strcmp(last_error(c), "the kernel needs more than 67108864 IR nodes") == 0, "%s", last_error(c));
    tx_ctx_free(c);
}

/* Passes must not turn guarded code into an error: the divisor becomes zero behind a false condition. */
static void
test_refold(void)
{
    tx_ctx *c = tx_ctx_new();
    const tx_node *i = var(c, "i", TX_I32), *x = var(c, "x", TX_I32), *zero = tx_int(c, TX_I32, 0), *e;
    tx_var *v = i->u.var;

    e = tx_select(c, TX_OP_IF_THEN_ELSE, tx_binary(c, TX_OP_NE, i, zero), tx_binary(c, TX_OP_FLOORDIV, x, i), x);
    CHECK(tx_substitute(c, e, &v, &zero, 1) == x || tx_same_expr(tx_substitute(c, e, &v, &zero, 1), x), "guarded");
    e = tx_binary(c, TX_OP_FLOORDIV, x, i);
    e = tx_substitute(c, e, &v, &zero, 1);
    CHECK(e && e->op == TX_OP_FLOORDIV && c->nerrors == 0, "unguarded: left for the run");
    tx_ctx_free(c);
}

/* Every allocation fails in turn; nothing crashes, and the fault is told once. */
static void
test_memory(void)
{
    long n;

    for (n = 1; n < 100000; n++) {
        tx_ctx *c;
        tx_func *f = NULL, *g = NULL;
        tx_ctx *d = NULL;
        bool done;

        tx_fail_alloc_at(n);
        if (!(c = tx_ctx_new()))
            continue;
        f = small_func(c);
        CHECK(f || (c->nerrors && c->no_memory), "allocation %ld: failed without a word", n);
        if (f && (d = tx_ctx_new())) {
            g = tx_import_func(d, f);
            CHECK(g || d->no_memory, "allocation %ld: import failed without a word", n);
            for (uint32_t i = 0; i < d->diags.n; i++)
                CHECK(d->diags.at[i].id == TX_E_NO_MEMORY && d->diags.n == 1, "allocation %ld", n);
        }
        done = tx_alloc_count() < n;
        tx_fail_alloc_at(0);
        tx_ctx_free(d);
        tx_ctx_free(c);
        if (done) {
            CHECK(g != NULL, "the last run fails nothing");
            break;
        }
    }
    CHECK(n > 5 && n < 100000, "%ld", n);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } sections[] = {
        {"arena", test_arena},
        {"map", test_map},
        {"strings", test_strings},
        {"vectors", test_vectors},
        {"diagnostics", test_diagnostics},
        {"dtypes", test_dtypes},
        {"promotion", test_promotion},
        {"formats", test_formats},
        {"values", test_values},
        {"fold_ints", test_fold_ints},
        {"fold_floats", test_fold_floats},
        {"casts", test_casts},
        {"weak", test_weak},
        {"logic", test_logic},
        {"indices", test_indices},
        {"builder", test_builder},
        {"refold", test_refold},
        {"memory", test_memory},
        {"limits", test_limits},
    };
    bool found = false;

    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (argc < 2 || strcmp(argv[1], sections[i].name) == 0) {
            found = true;
            sections[i].run();
        }
    return !found || failures != 0;
}
