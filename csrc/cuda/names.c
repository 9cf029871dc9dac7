/* Names of the text: no reserved word, no two alike within reach of each other, the same input always the same names. A
 * name is free again when its block ends, so that two loops one after the other may both count with i.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"

#include <stdlib.h>

/* Keywords, types and macros of C++17, CUDA and NVRTC, the prelude's types, and the functions that we may call: a variable
 * of that name would hide them. Sorted (a test checks it); names that begin with tirx_ or two underscores are ours or the
 * compiler's without being listed. */
// clang-format off
static const char *const name_reserved[] = {
    "CUtensorMap", "EOF", "FLT_MAX", "FLT_MIN", "HUGE_VAL", "INFINITY", "INT_MAX", "INT_MIN", "NAN", "NDEBUG", "NULL",
    "abort", "abs", "acos", "acosf", "acosh", "acoshf", "alignas", "alignof", "and", "and_eq", "asin", "asinf",
    "asinh", "asinhf", "asm", "assert", "atan", "atan2", "atan2f", "atanf", "atanh", "atanhf", "atomicAdd",
    "atomicAnd", "atomicCAS", "atomicDec", "atomicExch", "atomicInc", "atomicMax", "atomicMin", "atomicOr",
    "atomicSub", "atomicXor", "auto", "bitand", "bitor", "blockDim", "blockIdx", "bool", "break", "case", "catch",
    "cbrt", "cbrtf", "ceil", "ceilf", "char", "char1", "char16_t", "char2", "char3", "char32_t", "char4", "class",
    "clock", "clock64", "compl", "const", "const_cast", "constexpr", "continue", "copysign", "copysignf", "cos",
    "cosf", "cosh", "coshf", "cospi", "cospif", "cudaError", "cudaStream_t", "decltype", "default", "delete", "dim3",
    "do", "double", "double1", "double2", "double3", "double4", "dynamic_cast", "else", "enum", "erf", "erfc",
    "erfcf", "erff", "errno", "exp", "exp10", "exp10f", "exp2", "exp2f", "expf", "explicit", "expm1", "expm1f",
    "export", "extern", "fabs", "fabsf", "false", "fdim", "fdimf", "fdividef", "final", "float", "float1", "float2",
    "float3", "float4", "floor", "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf", "for",
    "free", "frexp", "frexpf", "friend", "goto", "gridDim", "half", "half2", "hypot", "hypotf", "if", "ilogb",
    "ilogbf", "inline", "int", "int1", "int16_t", "int2", "int3", "int32_t", "int4", "int64_t", "int8_t", "intptr_t",
    "isfinite", "isinf", "isnan", "j0", "j0f", "j1", "j1f", "jn", "jnf", "labs", "ldexp", "ldexpf", "lgamma",
    "lgammaf", "linux", "llabs", "llmax", "llmin", "llrint", "llrintf", "llround", "llroundf", "log", "log10",
    "log10f", "log1p", "log1pf", "log2", "log2f", "logb", "logbf", "logf", "long", "long1", "long2", "long3", "long4",
    "longlong1", "longlong2", "longlong3", "longlong4", "lrint", "lrintf", "lround", "lroundf", "main",
    "make_double2", "make_float2", "make_float3", "make_float4", "make_int2", "make_int4", "make_uint2", "make_uint4",
    "malloc", "max", "memcmp", "memcpy", "memmove", "memset", "min", "modf", "modff", "mutable", "namespace", "nan",
    "nanf", "nearbyint", "nearbyintf", "new", "nextafter", "nextafterf", "noexcept", "norm", "normf", "not", "not_eq",
    "nullptr", "nv_bfloat16", "nv_bfloat162", "offsetof", "operator", "or", "or_eq", "override", "pow", "powf",
    "printf", "private", "protected", "ptrdiff_t", "public", "rcbrt", "rcbrtf", "register", "reinterpret_cast",
    "remainder", "remainderf", "remquo", "restrict", "return", "rhypot", "rhypotf", "rint", "rintf", "round",
    "roundf", "rsqrt", "rsqrtf", "scalbln", "scalbn", "scalbnf", "short", "short1", "short2", "short3", "short4",
    "signbit", "signed", "sin", "sincos", "sincosf", "sincospi", "sinf", "sinh", "sinhf", "sinpi", "sinpif", "size_t",
    "sizeof", "sqrt", "sqrtf", "static", "static_assert", "static_cast", "std", "struct", "switch", "tan", "tanf",
    "tanh", "tanhf", "template", "tgamma", "tgammaf", "this", "threadIdx", "thread_local", "throw", "true", "trunc",
    "truncf", "try", "typedef", "typeid", "typename", "uchar", "uchar1", "uchar2", "uchar3", "uchar4", "uint",
    "uint1", "uint16_t", "uint2", "uint3", "uint32_t", "uint4", "uint64_t", "uint8_t", "uintptr_t", "ulong", "ulong1",
    "ulong2", "ulong3", "ulong4", "ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4", "umax", "umin", "union",
    "unix", "unsigned", "ushort", "ushort1", "ushort2", "ushort3", "ushort4", "using", "va_arg", "va_end", "va_list",
    "va_start", "virtual", "void", "volatile", "vprintf", "warpSize", "wchar_t", "while", "wmma", "xor", "xor_eq",
    "y0", "y0f", "y1", "y1f", "yn", "ynf",
};
// clang-format on

static int
name_compare(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

bool
em_reserved(const char *text, size_t n)
{
    return (n >= 5 && memcmp(text, "tirx_", 5) == 0) || (n >= 2 && text[0] == '_' && text[1] == '_') ||
           bsearch(text, name_reserved, sizeof name_reserved / sizeof *name_reserved, sizeof *name_reserved,
                   name_compare);
}

static bool
name_letter(unsigned char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

/* The hint as an ASCII identifier: "größe" -> "gr_c3_b6_c3_9fe", "a.b" -> "a_b". What belongs to the compiler or to the
 * prelude by its beginning gets another one, as no ending would free it: "tirx_x" -> "vtirx_x". */
static void
name_clean(tx_sb *o, const char *hint)
{
    const unsigned char *p = (const unsigned char *)hint;

    if ((*p >= '0' && *p <= '9') || *p == 0 || (p[0] == '_' && (p[1] == '_' || (p[1] >= 'A' && p[1] <= 'Z'))) ||
        strncmp(hint, "tirx_", 5) == 0)
        tx_sb_putc(o, 'v');
    for (; *p; p++) {
        if (name_letter(*p) || (*p >= '0' && *p <= '9'))
            tx_sb_putc(o, (char)*p);
        else if (*p < 128)
            tx_sb_putc(o, '_');
        else
            tx_sb_f(o, "_%02x", *p);
    }
}

/* tx_map has no removal: a name that is free again keeps its slot with the value 0. */
static bool
name_in_use(em *e, const tx_str *s)
{
    uint64_t v;

    return em_reserved(s->text, s->len) || (tx_map_get(&e->taken, (uint64_t)(uintptr_t)s, &v) && v != 0);
}

static void
name_take(em *e, const tx_str *s)
{
    if (!tx_map_put(&e->taken, (uint64_t)(uintptr_t)s, 1))
        tx_fail(e->c, e->span, TX_E_NO_MEMORY);
}

void
em_reserve(em *e, const char *text, size_t n)
{
    const tx_str *s = tx_intern(e->c, text, n);

    if (s)
        name_take(e, s);
}

const char *
em_fresh(em *e, const char *hint)
{
    tx_sb base = {0};
    const tx_str *s;

    name_clean(&base, hint);
    s = base.failed ? tx_fail(e->c, e->span, TX_E_NO_MEMORY) : tx_intern(e->c, base.text, base.n);
    for (unsigned i = 1; s && name_in_use(e, s); i++)
        s = tx_intern_f(e->c, "%s_%u", base.text, i);
    em_done(e, &base);
    if (!s)
        return "v";
    name_take(e, s);
    tx_push(e->c, &e->scope, s);
    return s->text;
}

em_name *
em_declare(em *e, const tx_var *v, const char *suffix)
{
    em_name *n = tx_new(e->c, em_name, 1);
    const tx_str *hint;

    if (!n)
        return NULL;
    hint = suffix && *suffix ? tx_intern_f(e->c, "%s%s", v->name ? v->name->text : "", suffix) : v->name;
    n->text = em_fresh(e, hint && hint->len ? hint->text : "v");
    n->elem = v->elem;
    if (!tx_map_put_ptr(&e->names, v, n))
        return tx_fail(e->c, e->span, TX_E_NO_MEMORY);
    return n;
}

em_name *
em_name_of(em *e, const tx_var *v)
{
    em_name *n = tx_map_ptr(&e->names, v);

    return n ? n : tx_fail(e->c, e->span, TX_E_INTERNAL, v->name ? v->name->text : "a variable without a definition");
}

uint32_t
em_scope_push(em *e)
{
    return e->scope.n;
}

void
em_scope_pop(em *e, uint32_t mark)
{
    while (e->scope.n > mark)
        tx_map_put(&e->taken, (uint64_t)(uintptr_t)e->scope.at[--e->scope.n], 0);
}
