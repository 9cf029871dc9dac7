/* Injected CUDA source (func_call): collected once, printed verbatim before the functions. It may want toolkit headers,
 * which we never include for ourselves: it names one of their types, or has #include lines of its own (lowering.md 5.2).
 * Also what a module needs as a whole: headers, options, architecture. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/source.h"
#include "ir/ptx.h"

typedef struct source_word {
    const char *word;
    bool prefix; /* names that begin so */
    const char *header;
} source_word;

// clang-format off
static const source_word source_words[] = {
    {"half",            false, "cuda_fp16.h"},
    {"half2",           false, "cuda_fp16.h"},
    {"__half",          true,  "cuda_fp16.h"},
    {"nv_bfloat16",     true,  "cuda_bf16.h"},
    {"__nv_bfloat16",   true,  "cuda_bf16.h"},
    {"__nv_fp8",        true,  "cuda_fp8.h"},
    {"__nv_fp6",        true,  "cuda_fp6.h"},
    {"__nv_fp4",        true,  "cuda_fp4.h"},
    {"CUDART_",         true,  "math_constants.h"},
    {"cooperative_groups", false, "cooperative_groups.h"},
    {"wmma",            false, "mma.h"},
};
static const struct {
    const char *word;
    em_helper needs;
} source_types[] = {
    {"uchar", EM_H_UCHAR}, {"ushort", EM_H_USHORT}, {"uint", EM_H_UINT}, {"int64_t", EM_H_I64}, {"uint64_t", EM_H_U64},
    {"int8_t", EM_H_STDINT}, {"int16_t", EM_H_STDINT}, {"int32_t", EM_H_STDINT}, {"uint8_t", EM_H_STDINT},
    {"uint16_t", EM_H_STDINT}, {"uint32_t", EM_H_STDINT}, {"tirx_f16", EM_H_F16}, {"tirx_bf16", EM_H_BF16},
    {"CUtensorMap", EM_H_TENSORMAP},
};
// clang-format on
enum {
    SOURCE_NWORDS = sizeof source_words / sizeof *source_words,
    SOURCE_NTYPES = sizeof source_types / sizeof *source_types
};

/* ---- words outside comments and strings ---------------------------------------------------------------------------------- */

static bool
source_is_word(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') || ch == '_';
}

static const char *
source_skip_quoted(const char *p, const char *end)
{
    char quote = *p++;

    while (p < end && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    return p < end ? p + 1 : end;
}

/* The next word at or after *p, or false. *directive: it stands directly behind "#". */
static bool
source_next_word(const char **p, const char *end, const char **word, size_t *n, bool *directive)
{
    *directive = false;
    for (const char *s = *p; s < end;) {
        if (s + 1 < end && s[0] == '/' && s[1] == '/') {
            while (s < end && *s != '\n')
                s++;
        } else if (s + 1 < end && s[0] == '/' && s[1] == '*') {
            for (s += 2; s + 1 < end && !(s[0] == '*' && s[1] == '/'); s++)
                ;
            s = s + 2 < end ? s + 2 : end;
        } else if (*s == '"' || *s == '\'') {
            s = source_skip_quoted(s, end);
        } else if (source_is_word(*s)) {
            *word = s;
            while (s < end && source_is_word(*s))
                s++;
            *n = (size_t)(s - *word);
            *p = s;
            return true;
        } else {
            if (*s == '#')
                *directive = true;
            else if (*s != ' ' && *s != '\t')
                *directive = false;
            s++;
        }
    }
    *p = end;
    return false;
}

static bool
source_matches(const source_word *w, const char *word, size_t n)
{
    size_t k = strlen(w->word);

    return n >= k && (w->prefix || n == k) && memcmp(word, w->word, k) == 0;
}

typedef struct source_facts {
    bool header[SOURCE_NWORDS];
    bool type[SOURCE_NTYPES];
    bool any_header, includes;
} source_facts;

static void
source_scan(const tx_str *text, source_facts *f, em *reserve)
{
    const char *p = text->text, *end = p + text->len, *word;
    bool directive, define = false;
    size_t n;

    while (source_next_word(&p, end, &word, &n, &directive)) {
        if (directive && n == 7 && memcmp(word, "include", 7) == 0) {
            f->includes = true;
            while (p < end && *p != '\n')
                p++;
            continue;
        }
        if (define && reserve)
            em_reserve(reserve, word, n);
        define = directive && n == 6 && memcmp(word, "define", 6) == 0;
        for (int i = 0; i < SOURCE_NWORDS; i++)
            if (source_matches(&source_words[i], word, n))
                f->header[i] = f->any_header = true;
        for (int i = 0; i < SOURCE_NTYPES; i++)
            if (strlen(source_types[i].word) == n && memcmp(word, source_types[i].word, n) == 0)
                f->type[i] = true;
    }
}

/* ---- collecting ------------------------------------------------------------------------------------------------------------- */

typedef struct source_visitor {
    tx_visitor v;
    em *e;
    em_sources *out;
} source_visitor;

static bool
source_enter(tx_visitor *v, const tx_node *n)
{
    source_visitor *s = (source_visitor *)v;
    em_source found = {NULL, NULL, n->span};

    if (!tx_is_stmt(n) && !(n->flags & TX_NF_IMPURE))
        return false;
    if (n->op != TX_OP_FUNC_CALL && n->op != TX_OP_CALL_EXTERN && n->op != TX_OP_CALL_PURE_EXTERN)
        return true;
    found.text = n->u.call->source;
    found.name = n->u.call->name;
    em_reserve(s->e, found.name->text, found.name->len);
    if (!found.text)
        return true;
    for (uint32_t i = 0; i < s->out->n; i++) {
        if (s->out->at[i].text == found.text)
            return true;
        if (s->out->at[i].name == found.name) {
            tx_fail(s->e->c, n->span, TX_E_FUNC_REDEFINED, found.name->text);
            return true;
        }
    }
    tx_push(s->e->c, s->out, found);
    return true;
}

static bool
source_is_device(const tx_func *f)
{
    return (f->flags & (TX_FUNC_KERNEL | TX_FUNC_DEVICE)) != 0;
}

bool
em_sources_collect(em *e, em_sources *out)
{
    source_visitor s = {{source_enter, NULL}, e, out};
    source_facts f = {0};

    for (uint32_t i = 0; i < e->m->nfuncs; i++)
        if (source_is_device(e->m->funcs[i]))
            tx_walk(&s.v, e->m->funcs[i]->body);
    for (uint32_t i = 0; i < out->n; i++)
        source_scan(out->at[i].text, &f, e);
    for (int i = 0; i < SOURCE_NTYPES; i++)
        if (f.type[i])
            em_use(e, source_types[i].needs);
    e->headers = f.header[0] || f.header[1] || f.header[2] || f.header[3] || f.header[4];
    return !em_failed(e);
}

void
em_source_headers(em *e, const em_sources *src, em_lines *out)
{
    source_facts f = {0};

    for (uint32_t i = 0; i < src->n; i++)
        source_scan(src->at[i].text, &f, NULL);
    for (int i = 0; i < SOURCE_NWORDS; i++) {
        bool again = false;

        for (int k = 0; k < i; k++)
            again = again || (f.header[k] && strcmp(source_words[k].header, source_words[i].header) == 0);
        if (f.header[i] && !again) {
            em_text(e, out, "#include <", 0);
            em_text(e, out, source_words[i].header, 0);
            em_text(e, out, ">\n", 0);
        }
    }
}

/* ---- questions about a module ------------------------------------------------------------------------------------------------- */

typedef struct needs_visitor {
    tx_visitor v;
    tx_cuda_needs needs;
    int arch;
    tx_map seen; /* deep nodes, which may be used over and over */
    char suffix; /* 'a': bound to that architecture */
} needs_visitor;

static bool
needs_enter(tx_visitor *v, const tx_node *n)
{
    needs_visitor *s = (needs_visitor *)v;
    unsigned kind = tx_kind(n->dtype);
    int arch = em_intrin_arch(n->op);
    uint64_t ignored;

    if (!tx_is_stmt(n) && n->depth >= 8) {
        if (tx_map_get(&s->seen, (uint64_t)(uintptr_t)n, &ignored))
            return false;
        tx_map_put(&s->seen, (uint64_t)(uintptr_t)n, 1);
    }
    if (n->op == TX_OP_FUNC_CALL && n->u.call->source) {
        source_facts f = {0};

        source_scan(n->u.call->source, &f, NULL);
        s->needs.injected = true;
        s->needs.toolkit_headers = s->needs.toolkit_headers || f.any_header || f.includes;
    }
    if (n->op == TX_OP_PTX) {
        char suffix;

        arch = tx_ptx_floor(n->u.ptx, &suffix);
        if (suffix && arch >= s->arch)
            s->suffix = suffix;
        s->needs.int128 = s->needs.int128 || strcmp(tx_ptx_choice(n->u.ptx, "type"), "b128") == 0;
        for (uint32_t i = 0; i < n->nargs; i++)
            s->needs.int128 = s->needs.int128 || tx_bits(n->arg[i]->dtype) == 128;
    }
    if (kind == TX_KIND_I128 || kind == TX_KIND_U128)
        s->needs.int128 = true;
    if (kind == TX_KIND_BF16 && n->op != TX_OP_LOAD && arch < 80)
        arch = 80;
    if (arch > s->arch)
        s->arch = arch;
    return true;
}

static needs_visitor
needs_of(const tx_module *m)
{
    needs_visitor s = {.v = {needs_enter, NULL}, .arch = 50};

    for (uint32_t i = 0; i < m->nfuncs; i++)
        if (source_is_device(m->funcs[i]))
            tx_walk(&s.v, m->funcs[i]->body);
    tx_map_free(&s.seen);
    return s;
}

int
tx_cuda_floor(const tx_module *lowered, char *suffix)
{
    needs_visitor s = needs_of(lowered);

    *suffix = s.suffix;
    return s.arch;
}

tx_cuda_needs
tx_cuda_needs_of(const tx_module *lowered)
{
    return needs_of(lowered).needs;
}
