/* TMA tensor maps: what is wrong with one, in words, and the 128 bytes that the hardware reads. Takes a map with values that
 * are known or not; never looks at memory. The encoding and the rules are those of the CUDA 13.0 driver on sm_90, found by
 * asking it (tests/cases/hw/tensormap.json); what sm_100 adds is encoded in a way of our own in bits that sm_90 leaves 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "layout/layout.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct tm_type {
    const char *name;
    uint8_t bits; /* of an element in global memory */
    uint8_t code; /* in the map */
    bool is_float;
} tm_type;

static const tm_type tm_types[TX_TM__COUNT] = {
    [TX_TM_U8] = {"U8", 8, 0, false},
    [TX_TM_U16] = {"U16", 16, 1, false},
    [TX_TM_U32] = {"U32", 32, 2, false},
    [TX_TM_S32] = {"S32", 32, 3, false},
    [TX_TM_U64] = {"U64", 64, 4, false},
    [TX_TM_S64] = {"S64", 64, 5, false},
    [TX_TM_F16] = {"F16", 16, 6, true},
    [TX_TM_F32] = {"F32", 32, 7, true},
    [TX_TM_F64] = {"F64", 64, 9, true},
    [TX_TM_BF16] = {"BF16", 16, 10, true},
    [TX_TM_F32_FTZ] = {"F32_FTZ", 32, 8, true},
    [TX_TM_TF32] = {"TF32", 32, 7, true},
    [TX_TM_TF32_FTZ] = {"TF32_FTZ", 32, 8, true},
    [TX_TM_16U4_ALIGN8B] = {"16U4_ALIGN8B", 4, 11, false},
    [TX_TM_16U4_ALIGN16B] = {"16U4_ALIGN16B", 4, 12, false},
    [TX_TM_16U6_ALIGN16B] = {"16U6_ALIGN16B", 6, 13, false},
};

enum { MAX_BOX_BYTES = 228 * 1024 };

/* ---- types ---------------------------------------------------------------------------------------------------------- */

static const tm_type *
tm_type_of(int64_t dtype)
{
    return dtype >= 0 && dtype < TX_TM__COUNT ? &tm_types[dtype] : NULL;
}

int
tx_tensormap_bits(int64_t dtype)
{
    const tm_type *t = tm_type_of(dtype);

    return t ? t->bits : 0;
}

const char *
tx_tensormap_dtype_name(int64_t dtype)
{
    const tm_type *t = tm_type_of(dtype);

    return t ? t->name : "?";
}

static bool
tm_is_align16(int64_t dtype)
{
    return dtype == TX_TM_16U4_ALIGN16B || dtype == TX_TM_16U6_ALIGN16B;
}

static bool
tm_is_packed(int64_t dtype)
{
    return dtype >= TX_TM_16U4_ALIGN8B && dtype <= TX_TM_16U6_ALIGN16B;
}

static int
tm_plain_type(tx_dtype t)
{
    if (tx_lanes(t) != 1)
        return -1;
    switch (tx_kind(t)) {
    case TX_KIND_U16: return TX_TM_U16;
    case TX_KIND_U32: return TX_TM_U32;
    case TX_KIND_I32: return TX_TM_S32;
    case TX_KIND_U64: return TX_TM_U64;
    case TX_KIND_I64: return TX_TM_S64;
    case TX_KIND_F16: return TX_TM_F16;
    case TX_KIND_BF16: return TX_TM_BF16;
    case TX_KIND_F32: return TX_TM_F32;
    case TX_KIND_F64: return TX_TM_F64;
    case TX_KIND_E2M1FN: return TX_TM_16U4_ALIGN16B;
    case TX_KIND_I16: return TX_TM_U16; /* the same bytes: nothing is reduced or rounded by a plain copy */
    case TX_KIND_BOOL: return TX_TM_U8;
    default: return tx_bits(t) == 8 || tx_bits(t) == 6 ? TX_TM_U8 : -1; /* fp6 lies one in a byte */
    }
}

int
tx_tensormap_dtype_of(tx_dtype t, int64_t force, bool *ok)
{
    int plain = tm_plain_type(t);

    *ok = plain >= 0;
    if (force == -1 || plain < 0)
        return plain;
    switch (force) {
    case TX_TM_F32_FTZ:
    case TX_TM_TF32:
    case TX_TM_TF32_FTZ: *ok = plain == TX_TM_F32; break;
    case TX_TM_16U4_ALIGN8B:
    case TX_TM_16U4_ALIGN16B: *ok = plain == TX_TM_16U4_ALIGN16B; break;
    case TX_TM_16U6_ALIGN16B: *ok = plain == TX_TM_U8; break;
    default: *ok = tm_type_of(force) && tm_types[force].bits == tm_types[plain].bits && !tm_is_packed(force); break;
    }
    return (int)force;
}

/* ---- the check ------------------------------------------------------------------------------------------------------ */

typedef struct tm_checker {
    const tx_tensormap *t;
    char *text;
    size_t n;
    bool driver;
    int arch;
} tm_checker;

static bool
tm_known(int64_t v)
{
    return v != TX_TM_UNKNOWN;
}

static bool tm_wrong(const tm_checker *k, const char *fmt, ...) TX_PRINTF(2, 3);
static bool
tm_wrong(const tm_checker *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(k->text, k->n, fmt, ap);
    va_end(ap);
    return false;
}

/* v in lo..hi. `at` < 0: a value of its own, else an entry of a list. */
static bool
tm_within(const tm_checker *k, const char *what, int at, int64_t v, int64_t lo, int64_t hi, const char *why)
{
    char index[16] = "";

    if (!tm_known(v) || (v >= lo && v <= hi))
        return true;
    if (at >= 0)
        snprintf(index, sizeof index, "[%d]", at);
    return tm_wrong(k, "%s%s is %" PRId64 ", expected %" PRId64 "..%" PRId64 "%s", what, index, v, lo, hi, why);
}

static bool
tm_check_enums(const tm_checker *k)
{
    const tx_tensormap *t = k->t;
    bool old = k->arch > 0 && k->arch < 100;

    if (!tm_within(k, "rank", -1, t->rank, t->im2col ? 3 : 1, TX_TM_RANK, t->im2col ? " (im2col)" : "") ||
        !tm_within(k, "the data type", -1, t->dtype, 0, TX_TM__COUNT - 1, "") ||
        !tm_within(k, "interleave", -1, t->interleave, 0, 2, " (none, 16B, 32B)") ||
        !tm_within(k, "swizzle", -1, t->swizzle, 0, 6,
                   " (none, 32B, 64B, 128B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B)") ||
        !tm_within(k, "l2_promotion", -1, t->l2, 0, 3, " (none, 64B, 128B, 256B)") ||
        !tm_within(k, "oob_fill", -1, t->oob, 0, 1, " (zeros, NaN)"))
        return false;
    if (old && tm_is_packed(t->dtype))
        return tm_wrong(k, "the data type %s needs sm_100, the GPU is sm_%d", tm_types[t->dtype].name, k->arch);
    if (old && tm_known(t->swizzle) && t->swizzle > TX_TM_SWIZZLE_128)
        return tm_wrong(k, "swizzle %d needs sm_100, the GPU is sm_%d", (int)t->swizzle, k->arch);
    if (tm_known(t->oob) && t->oob == 1 && !tm_types[t->dtype].is_float)
        return tm_wrong(k, "oob_fill is 1 (NaN), which needs a float type, and the data type is %s",
                        tm_types[t->dtype].name);
    if (tm_known(t->interleave) && t->interleave && tm_known(t->rank) && t->rank < 3)
        return tm_wrong(k, "interleave needs rank 3 or more, the rank is %d", (int)t->rank);
    if (!k->driver && t->interleave == 2 && tm_known(t->swizzle) && t->swizzle != TX_TM_SWIZZLE_32)
        return tm_wrong(k, "interleave 32B needs swizzle 1 (32B), got %d", (int)t->swizzle);
    return true;
}

static int64_t
tm_alignment(const tx_tensormap *t)
{
    return (tm_known(t->interleave) && t->interleave == 2) || tm_is_align16(t->dtype) ? 32 : 16;
}

static bool
tm_check_memory(const tm_checker *k)
{
    const tx_tensormap *t = k->t;
    int64_t align = tm_alignment(t);
    char why[40] = "";

    if (align != 16)
        snprintf(why, sizeof why, " (%s)", t->interleave == 2 ? "interleave 32B" : tm_types[t->dtype].name);
    if (t->address_known && t->address == 0 && !k->driver)
        return tm_wrong(k, "the address is NULL");
    if (t->address_known && t->address % (uint64_t)align != 0)
        return tm_wrong(k, "the address is a multiple of %d bytes, expected a multiple of %d%s",
                        (int)(t->address & -t->address), (int)align, why);
    if (t->address_known && t->address >> 57 != 0)
        return tm_wrong(k, "the address 0x%" PRIx64 " is not below 2**57", t->address);
    for (int d = 0; d < t->rank; d++)
        if (!tm_within(k, "dims", d, t->dim[d], 1, INT64_C(1) << 32, ""))
            return false;
    for (int d = 1; d < t->rank; d++) {
        int64_t s = t->stride[d];
        if (!tm_known(s))
            continue;
        if (s % align != 0)
            return tm_wrong(k,
                            "strides[%d] (bytes between neighbours along dimension %d) is %" PRId64
                            ", expected a multiple of %d%s",
                            d - 1, d, s, (int)align, why);
        if (s < 0 || s >> 40 != 0)
            return tm_wrong(
                k, "strides[%d] (bytes between neighbours along dimension %d) is %" PRId64 ", expected 0 to 2**40 - %d",
                d - 1, d, s, (int)align);
    }
    return true;
}

/* Bytes of a row of the box in shared memory; the padded types take a byte for each element there. */
static int64_t
tm_row_bytes(const tx_tensormap *t, int64_t nelem)
{
    return tm_is_align16(t->dtype) ? nelem : nelem * tm_types[t->dtype].bits / 8;
}

static bool
tm_check_row(const tm_checker *k, const char *what, int64_t nelem)
{
    static const int width[] = {0, 32, 64, 128, 128, 128, 128};
    const tx_tensormap *t = k->t;
    int64_t nbytes;

    if (!tm_known(nelem) || !tm_known(t->interleave) || (t->interleave != 0 && t->dtype >= TX_TM_16U4_ALIGN8B))
        return true;
    if (t->dtype == TX_TM_16U4_ALIGN8B && nelem % 32 != 0)
        return tm_wrong(k, "%s is %" PRId64 ", expected a multiple of 32 for %s", what, nelem, tm_types[t->dtype].name);
    nbytes = tm_row_bytes(t, nelem);
    if (nbytes % 16 != 0)
        return tm_wrong(k, "%s is %" PRId64 ", which is %" PRId64 " bytes of %s, expected a multiple of 16 bytes", what,
                        nelem, nbytes, tm_types[t->dtype].name);
    if (t->interleave == 0 && tm_known(t->swizzle) && t->swizzle > 0 && nbytes > width[t->swizzle])
        return tm_wrong(k,
                        "%s is %" PRId64 ", which is %" PRId64 " bytes of %s, expected at most %d bytes for swizzle %d",
                        what, nelem, nbytes, tm_types[t->dtype].name, width[t->swizzle], (int)t->swizzle);
    return true;
}

static bool
tm_check_packed(const tm_checker *k)
{
    const tx_tensormap *t = k->t;
    int64_t row = t->im2col ? t->channels : t->box[0];

    if (t->dtype == TX_TM_16U4_ALIGN8B && tm_known(t->dim[0]) && t->dim[0] % 2 != 0)
        return tm_wrong(k, "dims[0] is %" PRId64 ", expected an even number for %s", t->dim[0],
                        tm_types[t->dtype].name);
    if (!tm_is_align16(t->dtype))
        return true;
    if (tm_known(t->dim[0]) && t->dim[0] % 128 != 0)
        return tm_wrong(k, "dims[0] is %" PRId64 ", expected a multiple of 128 for %s", t->dim[0],
                        tm_types[t->dtype].name);
    if (tm_known(row) && row != 128)
        return tm_wrong(k, "%s is %" PRId64 ", expected 128 for %s", t->im2col ? "channels" : "box[0]", row,
                        tm_types[t->dtype].name);
    if (tm_known(t->swizzle) && t->swizzle != 0 && t->swizzle != TX_TM_SWIZZLE_128 &&
        !(t->swizzle == 4 && t->dtype == TX_TM_16U4_ALIGN16B))
        return tm_wrong(k, "swizzle is %d, expected %s for %s", (int)t->swizzle,
                        t->dtype == TX_TM_16U4_ALIGN16B ? "0, 3 or 4" : "0 or 3", tm_types[t->dtype].name);
    return true;
}

static bool
tm_all_known(const int64_t *v, int64_t n)
{
    for (int d = 0; d < n; d++)
        if (!tm_known(v[d]))
            return false;
    return true;
}

static bool
tm_check_tiled(const tm_checker *k)
{
    const tx_tensormap *t = k->t;

    for (int d = 0; d < t->rank; d++)
        if (!tm_within(k, "box", d, t->box[d], 1, 256, ""))
            return false;
    if (!tm_check_row(k, "box[0]", t->box[0]))
        return false;
    if (tm_all_known(t->box, t->rank) && tm_all_known(t->estride, t->rank) && tx_tensormap_box_bytes(t) > MAX_BOX_BYTES)
        return tm_wrong(k, "the box takes %" PRId64 " bytes of shared memory, expected at most %d",
                        tx_tensormap_box_bytes(t), MAX_BOX_BYTES);
    return true;
}

static bool
tm_check_im2col(const tm_checker *k)
{
    static const int bits[] = {0, 16, 8, 5};
    const tx_tensormap *t = k->t;
    int n = (int)t->rank - 2;
    int64_t limit = INT64_C(1) << (bits[n] - 1);

    for (int q = 0; q < n; q++) {
        int64_t dim = t->dim[q + 1], end;
        if (!tm_within(k, "lower_corner", q, t->lower[q], -limit, limit - 1, "") ||
            !tm_within(k, "upper_corner", q, t->upper[q], -limit, limit - 1, ""))
            return false;
        if (!tm_known(dim) || !tm_known(t->lower[q]) || !tm_known(t->upper[q]))
            continue;
        end = dim + t->upper[q];
        if (!k->driver && end > INT32_MAX)
            return tm_wrong(k, "dims[%d] + upper_corner[%d] is %" PRId64 ", expected at most 2147483647", q + 1, q,
                            end);
        if ((int32_t)(uint32_t)end <= t->lower[q]) /* the driver counts the window in 32 bits */
            return tm_wrong(k, "the window of dimension %d is empty: it reaches from %" PRId64 " to %" PRId64, q + 1,
                            t->lower[q], end - 1);
    }
    if (!tm_within(k, "channels", -1, t->channels, 1, 256, "") || !tm_within(k, "pixels", -1, t->pixels, 1, 1024, "") ||
        !tm_check_row(k, "channels", t->channels))
        return false;
    if (tm_known(t->channels) && tm_known(t->pixels) && tx_tensormap_box_bytes(t) > MAX_BOX_BYTES)
        return tm_wrong(k, "channels and pixels take %" PRId64 " bytes of shared memory, expected at most %d",
                        tx_tensormap_box_bytes(t), MAX_BOX_BYTES);
    return true;
}

bool
tx_tensormap_check(const tx_tensormap *t, int arch, bool driver, char *text, size_t n)
{
    tm_checker k = {t, text, n, driver, arch};

    if (!tm_known(t->rank) || !tm_known(t->dtype)) /* always constants of the text */
        return tm_wrong(&k, "rank and data type must be constants");
    if (!tm_check_enums(&k) || !tm_check_memory(&k))
        return false;
    for (int d = 0; d < t->rank; d++)
        if (!tm_within(&k, "element_strides", d, t->estride[d], 1, 8, ""))
            return false;
    if (!driver && tm_known(t->estride[0]) && t->estride[0] != 1)
        return tm_wrong(&k, "element_strides[0] is %d, expected 1: the hardware ignores the innermost one",
                        (int)t->estride[0]);
    return tm_check_packed(&k) && (t->im2col ? tm_check_im2col(&k) : tm_check_tiled(&k));
}

/* ---- the bytes ------------------------------------------------------------------------------------------------------ */

int64_t
tx_tensormap_box_bytes(const tx_tensormap *t)
{
    int64_t n = 1;

    if (t->im2col)
        return tm_row_bytes(t, t->channels) * t->pixels;
    for (int d = 0; d < t->rank; d++)
        n *= t->box[d] / t->estride[d];
    return tm_row_bytes(t, n);
}

static void
tm_set(uint64_t *words, int word, int bit, int width, int64_t v)
{
    uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;

    words[word] |= ((uint64_t)v & mask) << bit;
}

static int64_t
tm_get(const uint64_t *words, int word, int bit, int width)
{
    return (int64_t)(words[word] >> bit & ((UINT64_C(1) << width) - 1));
}

static int64_t
tm_get_signed(const uint64_t *words, int word, int bit, int width)
{
    int64_t v = tm_get(words, word, bit, width), sign = INT64_C(1) << (width - 1);

    return (v ^ sign) - sign;
}

/* Where stride d's low 32 bits stand: word 1, upper half, and on. */
static void
tm_stride_place(int d, int *word, int *bit)
{
    *word = 1 + d / 2;
    *bit = d % 2 ? 32 : 0;
}

/* Bits of an im2col corner, by the number of spatial dimensions. */
static int
tm_corner_bits(int64_t rank)
{
    return rank == 3 ? 16 : rank == 4 ? 8 : 5;
}

void
tx_tensormap_encode(const tx_tensormap *t, void *bytes)
{
    static const int span[] = {16, 256, 512, 1024, 512, 512, 256};
    uint64_t w[TX_TM_BYTES / 8] = {0};
    int word, bit, corner = tm_corner_bits(t->rank);
    bool tf32 = t->dtype == TX_TM_TF32 || t->dtype == TX_TM_TF32_FTZ;

    w[0] = t->address;
    tm_set(w, 1, 0, 1, t->im2col);
    tm_set(w, 1, 4, 3, t->rank - 1);
    tm_set(w, 1, 7, 4, tm_types[t->dtype].code);
    tm_set(w, 1, 11, 2, t->interleave);
    tm_set(w, 1, 13, 2, t->swizzle > 3 ? 3 : t->swizzle);
    tm_set(w, 1, 15, 1, t->oob);
    tm_set(w, 1, 16, 1, tf32);
    tm_set(w, 1, 17, 2, t->l2);
    tm_set(w, 1, 19, 2, t->swizzle > 3 ? t->swizzle - 3 : 0); /* our own: sm_90 has 16-byte atoms only */
    for (int d = 1; d < t->rank; d++) {
        tm_stride_place(d, &word, &bit);
        tm_set(w, word, bit, 32, t->stride[d] >> 4);
        tm_set(w, 3, 28 + 4 * d, 4, t->stride[d] >> 36);
    }
    for (int d = 0; d < t->rank; d++) {
        tm_set(w, 4 + d / 2, d % 2 ? 32 : 0, 32, t->dim[d] - 1);
        tm_set(w, 6, 32 + 3 * d, 3, t->estride[d] - 1);
    }
    tm_set(w, 6, 56, 8, (t->im2col ? t->channels : t->box[0]) - 1);
    for (int d = 1; d < t->rank && !t->im2col; d++)
        tm_set(w, 7, 8 * (d - 1), 8, t->box[d] - 1);
    for (int q = 0; q < t->rank - 2 && t->im2col; q++) {
        tm_set(w, 7, corner * q, corner, t->lower[q]);
        tm_set(w, 7, 16 + corner * q, corner, t->upper[q]);
    }
    if (t->im2col)
        tm_set(w, 7, 32, 10, t->pixels - 1);
    tm_set(w, 8, 0, 32, tx_tensormap_box_bytes(t));
    tm_set(w, 9, 0, 12, span[t->swizzle]);
    memcpy(bytes, w, sizeof w);
}

static int64_t
tm_decode_type(int64_t code, bool tf32)
{
    if (tf32)
        return code == 7 ? TX_TM_TF32 : code == 8 ? TX_TM_TF32_FTZ : -1;
    for (int i = 0; i < TX_TM__COUNT; i++)
        if (tm_types[i].code == code && i != TX_TM_TF32 && i != TX_TM_TF32_FTZ)
            return i;
    return -1;
}

bool
tx_tensormap_decode(const void *bytes, tx_tensormap *t)
{
    uint64_t w[TX_TM_BYTES / 8];
    int word, bit, corner;

    memset(t, 0, sizeof *t);
    memcpy(w, bytes, sizeof w);
    for (int i = 10; i < TX_TM_BYTES / 8; i++)
        if (w[i])
            return false;
    t->address = w[0];
    t->address_known = true;
    t->im2col = tm_get(w, 1, 0, 1) != 0;
    t->rank = tm_get(w, 1, 4, 3) + 1;
    t->dtype = tm_decode_type(tm_get(w, 1, 7, 4), tm_get(w, 1, 16, 1) != 0);
    if (t->dtype < 0 || t->rank > TX_TM_RANK || (t->im2col && t->rank < 3) || w[0] >> 57 != 0)
        return false;
    t->interleave = tm_get(w, 1, 11, 2);
    t->swizzle = tm_get(w, 1, 13, 2) + tm_get(w, 1, 19, 2);
    t->oob = tm_get(w, 1, 15, 1);
    t->l2 = tm_get(w, 1, 17, 2);
    for (int d = 0; d < TX_TM_RANK; d++) {
        t->dim[d] = d < t->rank ? tm_get(w, 4 + d / 2, d % 2 ? 32 : 0, 32) + 1 : 1;
        t->estride[d] = d < t->rank ? tm_get(w, 6, 32 + 3 * d, 3) + 1 : 1;
        t->box[d] = 1;
        if (d == 0 || d >= t->rank)
            continue;
        tm_stride_place(d, &word, &bit);
        t->stride[d] = tm_get(w, word, bit, 32) << 4 | tm_get(w, 3, 28 + 4 * d, 4) << 36;
        if (!t->im2col)
            t->box[d] = tm_get(w, 7, 8 * (d - 1), 8) + 1;
    }
    t->box[0] = t->channels = tm_get(w, 6, 56, 8) + 1;
    corner = tm_corner_bits(t->rank);
    for (int q = 0; q < t->rank - 2 && t->im2col; q++) {
        t->lower[q] = tm_get_signed(w, 7, corner * q, corner);
        t->upper[q] = tm_get_signed(w, 7, 16 + corner * q, corner);
    }
    t->pixels = t->im2col ? tm_get(w, 7, 32, 10) + 1 : 0;
    if (!t->im2col)
        t->channels = 0;
    return true;
}

/* ---- tensormap.replace ------------------------------------------------------------------------------------------------ */

/* Bits of a word anew. */
static bool
tm_put(uint64_t *words, int word, int bit, int width, uint64_t v)
{
    uint64_t mask = ((UINT64_C(1) << width) - 1) << bit;

    words[word] = (words[word] & ~mask) | (v << bit & mask);
    return true;
}

static bool
tm_put_stride(uint64_t *w, int ord, uint64_t v)
{
    int word, bit, d = ord + 1;

    if (d >= TX_TM_RANK || v % 16 != 0 || v >> 40 != 0)
        return false;
    tm_stride_place(d, &word, &bit);
    return tm_put(w, word, bit, 32, v >> 4) && tm_put(w, 3, 28 + 4 * d, 4, v >> 36);
}

static bool
tm_put_box(uint64_t *w, int ord, uint64_t v)
{
    if (v < 1 || v > 256)
        return false;
    return ord == 0 ? tm_put(w, 6, 56, 8, v - 1) : tm_put(w, 7, 8 * (ord - 1), 8, v - 1);
}

bool
tx_tensormap_replace(void *bytes, enum tx_tm_field field, int ord, uint64_t v)
{
    uint64_t w[TX_TM_BYTES / 8];
    bool ok = ord >= 0 && ord < TX_TM_RANK, tf32 = v >= 11;

    memcpy(w, bytes, sizeof w);
    switch (field) {
    case TX_TM_GLOBAL_ADDRESS: ok = v % 16 == 0 && v >> 57 == 0 && (w[0] = v, true); break;
    case TX_TM_RANK_FIELD: ok = v < TX_TM_RANK && tm_put(w, 1, 4, 3, v); break;
    case TX_TM_BOX_DIM: ok = ok && tm_put_box(w, ord, v); break;
    case TX_TM_GLOBAL_DIM: /* 2**32 reads 0 in the register */
        ok = ok && v >> 32 == 0 && tm_put(w, 4 + ord / 2, ord % 2 ? 32 : 0, 32, v - 1);
        break;
    case TX_TM_ELEMENT_STRIDE: ok = ok && v >= 1 && v <= 8 && tm_put(w, 6, 32 + 3 * ord, 3, v - 1); break;
    case TX_TM_GLOBAL_STRIDE: ok = ok && tm_put_stride(w, ord, v); break;
    case TX_TM_ELEMTYPE: ok = v <= 12 && tm_put(w, 1, 7, 4, tf32 ? v - 4 : v) && tm_put(w, 1, 16, 1, tf32); break;
    case TX_TM_INTERLEAVE_LAYOUT: ok = v <= 2 && tm_put(w, 1, 11, 2, v); break;
    case TX_TM_SWIZZLE_MODE: ok = v <= 3 && tm_put(w, 1, 13, 2, v) && tm_put(w, 1, 19, 2, 0); break;
    case TX_TM_FILL_MODE: ok = v <= 1 && tm_put(w, 1, 15, 1, v); break;
    }
    if (ok)
        memcpy(bytes, w, sizeof w);
    return ok;
}
