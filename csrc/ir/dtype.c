/* Dtypes: the table of scalar kinds, text in and out, and the promotion of two operands. Memory spaces too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

const tx_kind_info tx_kinds[TX_KIND__COUNT] = {
#define DTYPE(id, text, cls, bits, bytes, cuda, alias, dl) \
    [TX_KIND_##id] = {text, cuda, alias, TX_CLS_##cls, bits, bytes, dl},
#include "ir/dtypes.def"
#undef DTYPE
};
_Static_assert(TX_KIND_I8 < TX_KIND_I16 && TX_KIND_I16 < TX_KIND_I32 && TX_KIND_I32 < TX_KIND_I64, "width order");
_Static_assert(TX_KIND_U8 < TX_KIND_U16 && TX_KIND_U16 < TX_KIND_U32 && TX_KIND_U32 < TX_KIND_U64, "width order");
_Static_assert(TX_KIND_F16 < TX_KIND_F32 && TX_KIND_F32 < TX_KIND_F64, "width order");
_Static_assert(TX_KIND_VOID == 0, "a zero dtype has kind void");

int64_t
tx_dtype_bytes(tx_dtype t)
{
    int64_t lanes = tx_lanes(t);

    return tx_bits(t) == 4 ? (lanes + 1) / 2 : lanes * tx_kinds[tx_kind(t)].bytes;
}

static bool
text_is(const char *name, const char *text, size_t len)
{
    return name && strlen(name) == len && memcmp(name, text, len) == 0;
}

static bool
parse_kind(const char *text, size_t len, unsigned lanes, tx_dtype *out)
{
    for (unsigned k = 0; k < TX_KIND__COUNT; k++)
        if (text_is(tx_kinds[k].text, text, len) || text_is(tx_kinds[k].alias, text, len)) {
            unsigned cls = tx_kinds[k].cls;

            if (lanes > 1 && (cls == TX_CLS_V || cls == TX_CLS_P || cls == TX_CLS_O || tx_kinds[k].bits == 128))
                return false;
            *out = TX_DTYPE(k, lanes);
            return true;
        }
    return false;
}

bool
tx_dtype_parse(const char *text, size_t len, tx_dtype *out)
{
    size_t digits = 0;
    unsigned lanes = 0;

    if (parse_kind(text, len, 1, out))
        return true;
    while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
        digits++;
    if (digits == 0 || digits > 2 || digits + 1 >= len || text[len - digits - 1] != 'x' || text[len - digits] == '0')
        return false;
    for (size_t i = len - digits; i < len; i++)
        lanes = lanes * 10 + (unsigned)(text[i] - '0');
    return lanes >= 2 && lanes <= TX_MAX_LANES && parse_kind(text, len - digits - 1, lanes, out);
}

void
tx_dtype_print(tx_dtype t, tx_sb *out)
{
    tx_sb_puts(out, tx_kinds[tx_kind(t)].text);
    if (tx_lanes(t) > 1)
        tx_sb_f(out, "x%u", tx_lanes(t));
}

const char *
tx_dtype_name(tx_ctx *c, tx_dtype t)
{
    const tx_str *s;

    if (tx_lanes(t) <= 1)
        return tx_kinds[tx_kind(t)].text;
    s = tx_intern_f(c, "%sx%u", tx_kinds[tx_kind(t)].text, tx_lanes(t));
    return s ? s->text : "?";
}

/* ---- promotion (language.md 6.1) ------------------------------------------------------------------------------- */

static tx_dtype
promote_ints(tx_dtype a, tx_dtype b)
{
    tx_dtype s = tx_is_signed(a) ? a : b, u = tx_is_signed(a) ? b : a;

    if (tx_is_signed(a) == tx_is_signed(b))
        return tx_bits(a) >= tx_bits(b) ? a : b;
    return tx_bits(s) > tx_bits(u) ? s : u;
}

static tx_dtype
promote_floats(tx_dtype a, tx_dtype b)
{
    if (tx_bits(a) != tx_bits(b))
        return tx_bits(a) > tx_bits(b) ? a : b;
    return tx_bits(a) == 16 ? TX_F16 : TX_F32; /* float16 with bfloat16; two kinds of float8 */
}

tx_dtype
tx_promote(tx_dtype a, tx_dtype b)
{
    unsigned lanes = tx_lanes(a) > tx_lanes(b) ? tx_lanes(a) : tx_lanes(b);
    tx_dtype t;

    if (tx_lanes(a) != tx_lanes(b) && tx_lanes(a) != 1 && tx_lanes(b) != 1)
        return TX_VOID;
    a = tx_scalar_of(a);
    b = tx_scalar_of(b);
    if (tx_class(a) == TX_CLS_V || tx_class(a) == TX_CLS_O)
        return TX_VOID;
    if (a == b)
        t = a;
    else if (tx_is_bool(a) && (tx_is_int(b) || tx_is_float(b)))
        t = b;
    else if (tx_is_bool(b) && (tx_is_int(a) || tx_is_float(a)))
        t = a;
    else if (tx_is_int(a) && tx_is_int(b))
        t = promote_ints(a, b);
    else if (tx_is_float(a) && tx_is_float(b))
        t = promote_floats(a, b);
    else if (tx_is_float(a) && tx_is_int(b))
        t = a;
    else if (tx_is_int(a) && tx_is_float(b))
        t = b;
    else
        return TX_VOID;
    return tx_with_lanes(t, lanes);
}

/* ---- memory spaces --------------------------------------------------------------------------------------------- */

static const char *const scope_names[TX_SCOPE__COUNT] = {
    [TX_GLOBAL] = "global", [TX_SHARED] = "shared", [TX_SHARED_DYN] = "shared.dyn",
    [TX_LOCAL] = "local",   [TX_TMEM] = "tmem",     [TX_PARAM] = "param",
};

const char *
tx_scope_name(tx_scope s)
{
    return (unsigned)s < TX_SCOPE__COUNT ? scope_names[s] : "?";
}

bool
tx_scope_parse(const char *text, tx_scope *out)
{
    for (unsigned i = 0; i < TX_SCOPE__COUNT; i++)
        if (strcmp(scope_names[i], text) == 0) {
            *out = (tx_scope)i;
            return true;
        }
    return false;
}
