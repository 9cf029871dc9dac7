/* The matrix unit's loops for one instruction set: a part of run_impl.h, included by it
 * once for each. SPDX-License-Identifier: Apache-2.0 */

/* ---- matrices (wgmma.c) -------------------------------------------------------------------------------------------- */

static void
widen(float *d, const uint8_t *p, bool bf16)
{
    uint16_t h[8];
    memcpy(h, p, 16);
    if (bf16)
        for (int i = 0; i < 8; i++)
            d[i] = bf16_f32(h[i]);
    else {
#if defined(__F16C__)
        _mm256_storeu_ps(d, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)h)));
#else
        for (int i = 0; i < 8; i++)
            d[i] = f16_f32(h[i]);
#endif
    }
}

/* Eight rows of eight codes, turned. */
static inline void
turn_codes(uint16_t (*h)[8], const uint8_t *const *rows)
{
#if defined(__SSE2__)
    __m128i a[8], b[8];
    for (int r = 0; r < 8; r++)
        a[r] = _mm_loadu_si128((const __m128i *)(const void *)rows[r]);
    for (int i = 0; i < 4; i++) { /* pairs of rows 0 1, 2 3, ...: columns 0 to 3 and 4 to 7 */
        b[i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
        b[i + 4] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
    }
    for (int half = 0; half < 8; half += 4)
        for (int i = 0; i < 2; i++) { /* two columns of four rows */
            a[half + i] = _mm_unpacklo_epi32(b[half + 2 * i], b[half + 2 * i + 1]);
            a[half + i + 2] = _mm_unpackhi_epi32(b[half + 2 * i], b[half + 2 * i + 1]);
        }
    for (int i = 0; i < 4; i++) {
        _mm_storeu_si128((__m128i *)(void *)h[2 * i], _mm_unpacklo_epi64(a[2 * i], a[2 * i + 1]));
        _mm_storeu_si128((__m128i *)(void *)h[2 * i + 1], _mm_unpackhi_epi64(a[2 * i], a[2 * i + 1]));
    }
#else
    for (int r = 0; r < 8; r++) {
        uint16_t t[8];
        memcpy(t, rows[r], 16);
        for (int k = 0; k < 8; k++)
            h[k][r] = t[k];
    }
#endif
}

static void
widen_turned(float *restrict d, uint32_t n, const uint8_t *const *rows, bool bf16)
{
    uint16_t h[8][8];
    turn_codes(h, rows);
    for (int k = 0; k < 8; k++)
        widen(d + (size_t)k * n, (const uint8_t *)h[k], bf16);
}

/* A block of some rows and columns stays in registers; k ascending for each element. */
#if defined(__AVX512F__)
enum { BLOCK_ROWS = 8, BLOCK_PANELS = 2 };
#else
enum { BLOCK_ROWS = 4, BLOCK_PANELS = 1 };
#endif
#if defined(__GNUC__)
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
#else
typedef struct sixteen {
    float v[16];
} sixteen;
#endif

/* s += x * y; exact: the product is, so that one rounding gives the bits that two give. */
#if defined(__AVX512F__)
#define ADD_PRODUCT(s, x, y, exact)                                                      \
    do {                                                                                 \
        if (exact)                                                                       \
            (s) = (sixteen)_mm512_fmadd_ps(_mm512_set1_ps(x), (__m512)(y), (__m512)(s)); \
        else                                                                             \
            (s) += (x) * (y);                                                            \
    } while (0)
#else
#define ADD_PRODUCT(s, x, y, exact) ((void)(exact), (s) += (x) * (y))
#endif
#define UNROLLED(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

static ALWAYS_INLINE void
multiply_block(float *restrict d, uint32_t pitch, const float *restrict x, uint32_t x_pitch, const float *restrict y,
               uint32_t nk, const int panels, const bool exact)
{
#if defined(__GNUC__)
    sixteen s[BLOCK_ROWS][BLOCK_PANELS], b[BLOCK_PANELS];
    UNROLLED(r, BLOCK_ROWS)
    {
        UNROLLED(p, panels)
        {
            s[r][p] = *(const sixteen *)(const void *)(d + (size_t)r * pitch + 16 * p);
        }
    }
    for (uint32_t k = 0; k < nk; k++) {
        UNROLLED(p, panels)
        {
            b[p] = *(const sixteen *)(const void *)(y + ((size_t)p * nk + k) * 16);
        }
        UNROLLED(r, BLOCK_ROWS)
        {
            UNROLLED(p, panels)
            {
                ADD_PRODUCT(s[r][p], x[(size_t)r * x_pitch + k], b[p], exact);
            }
        }
    }
    UNROLLED(r, BLOCK_ROWS){UNROLLED(p, panels){sixteen *to = (sixteen *)(void *)(d + (size_t)r * pitch + 16 * p);
    *to = s[r][p];
}
}
#else
    (void)exact;
    for (int p = 0; p < panels; p++)
        for (int r = 0; r < BLOCK_ROWS; r++)
            for (uint32_t k = 0; k < nk; k++)
                for (int i = 0; i < 16; i++)
                    d[(size_t)r * pitch + 16 * p + i] += x[(size_t)r * x_pitch + k] * y[((size_t)p * nk + k) * 16 + i];
#endif
}

static ALWAYS_INLINE void
multiply_all(float *restrict d, uint32_t pitch, const float *restrict x, uint32_t x_pitch, const float *restrict y,
             uint32_t nk, uint32_t n, const bool exact)
{
    uint32_t c = 0;
    for (; c + 16 * BLOCK_PANELS <= n; c += 16 * BLOCK_PANELS)
        for (uint32_t r = 0; r < 16; r += BLOCK_ROWS)
            multiply_block(d + (size_t)r * pitch + c, pitch, x + (size_t)r * x_pitch, x_pitch, y + (size_t)c * nk, nk,
                           BLOCK_PANELS, exact);
    for (; c < n; c += 16)
        for (uint32_t r = 0; r < 16; r += BLOCK_ROWS)
            multiply_block(d + (size_t)r * pitch + c, pitch, x + (size_t)r * x_pitch, x_pitch, y + (size_t)c * nk, nk,
                           1, exact);
}

static void
multiply(float *restrict d, uint32_t pitch, const float *restrict x, uint32_t x_pitch, const float *restrict y,
         uint32_t nk, uint32_t n, bool exact)
{
    if (exact)
        multiply_all(d, pitch, x, x_pitch, y, nk, n, true);
    else
        multiply_all(d, pitch, x, x_pitch, y, nk, n, false);
}

/* Are the products of any two of these exact, if their codes had 8 bits of mantissa? So are 2^-50 to 2^60. */
static bool
within_exact(const float *v, uint32_t n)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = f32_bits(v[i]) >> 23 & 255, zero = (f32_bits(v[i]) & 0x7fffffff) == 0;
        bad |= (e - 77 > 110) & !zero;
    }
    return !bad;
}

#undef ADD_PRODUCT
#undef UNROLLED

static void
fragment_rows(float *restrict d, uint32_t n, float *restrict even, float *restrict odd, bool to_registers)
{
#if defined(__SSE2__)
    for (uint32_t g = 0; g < 8; g++, d += n, even += 4, odd += 4) {
        if (to_registers) {
            __m128 x = _mm_loadu_ps(d), y = _mm_loadu_ps(d + 4);
            _mm_storeu_ps(even, _mm_shuffle_ps(x, y, _MM_SHUFFLE(2, 0, 2, 0)));
            _mm_storeu_ps(odd, _mm_shuffle_ps(x, y, _MM_SHUFFLE(3, 1, 3, 1)));
        } else {
            __m128 x = _mm_loadu_ps(even), y = _mm_loadu_ps(odd);
            _mm_storeu_ps(d, _mm_unpacklo_ps(x, y));
            _mm_storeu_ps(d + 4, _mm_unpackhi_ps(x, y));
        }
    }
#else
    for (uint32_t l = 0; l < TX_LANES; l++) {
        float *at = d + l / 4 * n + l % 4 * 2;
        if (to_registers)
            even[l] = at[0], odd[l] = at[1];
        else
            at[0] = even[l], at[1] = odd[l];
    }
#endif
}

/* Times (below 2^31) become the later ones: order.c. */
static void
later_times(uint32_t *restrict to, const uint32_t *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] = (int32_t)from[i] > (int32_t)to[i] ? from[i] : to[i];
}
