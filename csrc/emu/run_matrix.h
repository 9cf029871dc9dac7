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
    else
        for (int i = 0; i < 8; i++)
            d[i] = f16_f32(h[i]);
}

static void
widen_turned(float *d, uint32_t n, const uint8_t *const *rows, bool bf16)
{
    uint16_t h[8][8];
    for (int r = 0; r < 8; r++) {
        uint16_t t[8];
        memcpy(t, rows[r], 16);
        for (int k = 0; k < 8; k++)
            h[k][r] = t[k];
    }
    for (int k = 0; k < 8; k++)
        widen(d + (size_t)k * n, (const uint8_t *)h[k], bf16);
}

/* A block of 16 columns and some rows stays in registers; k ascending for each element. */
#if defined(__AVX512F__)
enum { BLOCK_ROWS = 8 };
#else
enum { BLOCK_ROWS = 4 };
#endif
#if defined(__GNUC__)
typedef float sixteen __attribute__((vector_size(64), aligned(4), may_alias));
#else
typedef struct sixteen {
    float v[16];
} sixteen;
#endif

static inline void
multiply_block(float *restrict d, const float *restrict x, const float *restrict y, uint32_t n)
{
#if defined(__GNUC__)
    sixteen s[BLOCK_ROWS];
    for (int r = 0; r < BLOCK_ROWS; r++)
        s[r] = *(const sixteen *)(const void *)(d + (size_t)r * n);
    for (int k = 0; k < 16; k++) {
        sixteen b = *(const sixteen *)(const void *)(y + (size_t)k * n);
        for (int r = 0; r < BLOCK_ROWS; r++)
            s[r] += x[r * 16 + k] * b;
    }
    for (int r = 0; r < BLOCK_ROWS; r++)
        *(sixteen *)(void *)(d + (size_t)r * n) = s[r];
#else
    for (int r = 0; r < BLOCK_ROWS; r++)
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < 16; i++)
                d[(size_t)r * n + i] += x[r * 16 + k] * y[(size_t)k * n + i];
#endif
}

/* n is a multiple of 8. */
static void
multiply(float *restrict d, const float *restrict x, const float *restrict y, uint32_t n)
{
    uint32_t c = 0;
    for (; c + 16 <= n; c += 16)
        for (int r = 0; r < 16; r += BLOCK_ROWS)
            multiply_block(d + (size_t)r * n + c, x + (size_t)r * 16, y + c, n);
    for (; c < n; c += 8)
        for (int r = 0; r < 16; r++)
            for (int k = 0; k < 16; k++)
                for (int i = 0; i < 8; i++)
                    d[(size_t)r * n + c + (uint32_t)i] += x[r * 16 + k] * y[(size_t)k * n + c + (uint32_t)i];
}

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
