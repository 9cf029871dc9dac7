/* The interpreter: runs a part of a warp until it waits, yields or ends. Compiled once for each instruction set; run.c,
 * run_avx2.c and run_avx512.c define TX_ISA_RUN, TX_ISA_NAME, TX_ISA_TEXT and include this. All variants give the same bits: products are
 * contracted only where the code says FMA, and the loops keep the order of operations.
 * An instruction is a loop over 32 lanes of fixed length; uniform operands stay scalar. What is rare lives elsewhere
 * (tx_vm_slow and the other tx_vm_* functions). SPDX-License-Identifier: Apache-2.0 */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#pragma GCC push_options
#pragma GCC optimize("O3,no-math-errno,no-trapping-math")
#elif defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O0") /* ten times as long to compile otherwise */
#endif

#include "emu/lanes.h"

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE inline
#endif
#define S(r) ((tx_slot *)(void *)(R + in->r))
#define ROW(T, r) ((T *)(void *)(R + in->r))

/* Jumps from instruction to instruction; under the sanitizers, whose checks they would multiply, a switch. */
#if defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__)
#define THREADED
#define LABEL(name) L_##name
#if defined(TX_ISA_WATCHES)
#define GO                           \
    do {                             \
        tx_watch_step(vm, f, in, m); \
        goto *labels[in->op];        \
    } while (0)
#else
#define GO goto *labels[in->op]
#endif
#else
#define LABEL(name) case V_##name
#define GO goto dispatch
#endif
#define NEXT  \
    do {      \
        in++; \
        GO;   \
    } while (0)

/* Rows of two operands. CT is the C type of the lanes, F the member of a slot. */
#define BIN(N, T, CT, F, X)                        \
    LABEL(N##_##T##_SS) :                          \
    {                                              \
        CT x = S(a)->F, y = S(b)->F;               \
        S(d)->F = (X);                             \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_VV) :                          \
    {                                              \
        CT *d = ROW(CT, d);                        \
        const CT *a = ROW(CT, a), *b = ROW(CT, b); \
        EACH                                       \
        {                                          \
            CT x = a[l], y = b[l];                 \
            d[l] = (X);                            \
        }                                          \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_VS) :                          \
    {                                              \
        CT *d = ROW(CT, d);                        \
        const CT *a = ROW(CT, a);                  \
        CT y = S(b)->F;                            \
        EACH                                       \
        {                                          \
            CT x = a[l];                           \
            d[l] = (X);                            \
        }                                          \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_SV) :                          \
    {                                              \
        CT *d = ROW(CT, d);                        \
        const CT *b = ROW(CT, b);                  \
        CT x = S(a)->F;                            \
        EACH                                       \
        {                                          \
            CT y = b[l];                           \
            d[l] = (X);                            \
        }                                          \
        NEXT;                                      \
    }
#define CMP(N, T, CT, F, X)                        \
    LABEL(N##_##T##_SS) :                          \
    {                                              \
        CT x = S(a)->F, y = S(b)->F;               \
        S(d)->u32 = (X) ? TX_FULL : 0;             \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_VV) :                          \
    {                                              \
        int32_t t[TX_LANES];                       \
        const CT *a = ROW(CT, a), *b = ROW(CT, b); \
        EACH                                       \
        {                                          \
            CT x = a[l], y = b[l];                 \
            t[l] = (X) ? -1 : 0;                   \
        }                                          \
        S(d)->u32 = mask_of(t);                    \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_VS) :                          \
    {                                              \
        int32_t t[TX_LANES];                       \
        const CT *a = ROW(CT, a);                  \
        CT y = S(b)->F;                            \
        EACH                                       \
        {                                          \
            CT x = a[l];                           \
            t[l] = (X) ? -1 : 0;                   \
        }                                          \
        S(d)->u32 = mask_of(t);                    \
        NEXT;                                      \
    }                                              \
    LABEL(N##_##T##_SV) :                          \
    {                                              \
        int32_t t[TX_LANES];                       \
        const CT *b = ROW(CT, b);                  \
        CT x = S(a)->F;                            \
        EACH                                       \
        {                                          \
            CT y = b[l];                           \
            t[l] = (X) ? -1 : 0;                   \
        }                                          \
        S(d)->u32 = mask_of(t);                    \
        NEXT;                                      \
    }
/* Rows of one operand, DT and DF the result's. */
#define UN(N, T, CT, F, DT, DF, X) \
    LABEL(N##_##T##_S) :           \
    {                              \
        CT x = S(a)->F;            \
        S(d)->DF = (X);            \
        NEXT;                      \
    }                              \
    LABEL(N##_##T##_V) :           \
    {                              \
        DT *d = ROW(DT, d);        \
        const CT *a = ROW(CT, a);  \
        EACH                       \
        {                          \
            CT x = a[l];           \
            d[l] = (X);            \
        }                          \
        NEXT;                      \
    }
/* The NaN operand loses; -0 is less than +0 (PTX min, max). */
#define MIN_OF(x, y) ((y) != (y) ? (x) : (x) < (y) || ((x) == (y) && __builtin_signbit(x)) ? (x) : (y))
#define MAX_OF(x, y) ((y) != (y) ? (x) : (x) > (y) || ((x) == (y) && !__builtin_signbit(x)) ? (x) : (y))

#define FMA(T, CT, F, FN)                                           \
    LABEL(FMA_##T##_SSS) :                                          \
    {                                                               \
        S(d)->F = FN(S(a)->F, S(b)->F, S(c)->F);                    \
        NEXT;                                                       \
    }                                                               \
    LABEL(FMA_##T##_VVV) :                                          \
    {                                                               \
        CT *d = ROW(CT, d);                                         \
        const CT *a = ROW(CT, a), *b = ROW(CT, b), *c = ROW(CT, c); \
        EACH d[l] = FN(a[l], b[l], c[l]);                           \
        NEXT;                                                       \
    }                                                               \
    LABEL(FMA_##T##_VSV) :                                          \
    {                                                               \
        CT *d = ROW(CT, d);                                         \
        const CT *a = ROW(CT, a), *c = ROW(CT, c);                  \
        CT b = S(b)->F;                                             \
        EACH d[l] = FN(a[l], b, c[l]);                              \
        NEXT;                                                       \
    }                                                               \
    LABEL(FMA_##T##_VVS) :                                          \
    {                                                               \
        CT *d = ROW(CT, d);                                         \
        const CT *a = ROW(CT, a), *b = ROW(CT, b);                  \
        CT c = S(c)->F;                                             \
        EACH d[l] = FN(a[l], b[l], c);                              \
        NEXT;                                                       \
    }                                                               \
    LABEL(FMA_##T##_VSS) :                                          \
    {                                                               \
        CT *d = ROW(CT, d);                                         \
        const CT *a = ROW(CT, a);                                   \
        CT b = S(b)->F, c = S(c)->F;                                \
        EACH d[l] = FN(a[l], b, c);                                 \
        NEXT;                                                       \
    }

/* Hands an instruction to a function outside; it may change the mask. */
#define OUT(call)                                                     \
    do {                                                              \
        f->m = m, f->pc = (uint32_t)(in - code), vm->budget = budget; \
        int r_ = (call);                                              \
        if (r_ != TX_RUN_ON)                                          \
            return r_;                                                \
        m = f->m, R = f->R, budget = vm->budget;                      \
        NEXT;                                                         \
    } while (0)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static inline bool
seen(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t size, uint8_t kind, int form, int64_t off, const int64_t *offs,
     uint32_t m)
{
    tx_access a = {vm, f, in->c, in->site, size, kind, NULL, 0};
    f->m = m, f->pc = (uint32_t)(in - vm->p->code);
    return form == 0   ? vm->hooks->range(&a, off)
           : form == 1 ? vm->hooks->point(&a, off, m)
                       : vm->hooks->lanes(&a, offs, m);
}

/* Indices of inactive lanes are replaced by an active one's; false: some index is outside. */
static inline bool
inside32(const int32_t *ix, uint32_t m, uint64_t n, int32_t *t)
{
    uint32_t limit = n > INT32_MAX ? INT32_MAX : (uint32_t)n, bad = 0;
    int32_t any = ix[tx_first_lane(m)];
    EACH t[l] = m & lane_bit[l] ? ix[l] : any;
    EACH bad |= (uint32_t)t[l] >= limit ? 1 : 0;
    return !bad;
}
static inline bool
inside64(const int64_t *ix, uint32_t m, uint64_t n, int64_t *t)
{
    uint64_t bad = 0;
    int64_t any = ix[tx_first_lane(m)];
    EACH t[l] = m & lane_bit[l] ? ix[l] : any;
    EACH bad |= (uint64_t)t[l] >= n ? 1 : 0;
    return !bad;
}
static inline bool
in_row32(const int32_t *ix)
{
    uint32_t acc = 0, b = (uint32_t)ix[0];
    EACH acc |= (uint32_t)ix[l] - b - (uint32_t)l;
    return acc == 0;
}
static inline bool
in_row64(const int64_t *ix)
{
    uint64_t acc = 0, b = (uint64_t)ix[0];
    EACH acc |= (uint64_t)ix[l] - b - (uint64_t)l;
    return acc == 0;
}

/* MT memory type, RT register type, F member of a slot; V(x) from one to the other */
#define LOAD_S(N, MT, F, V)                                                                             \
    LABEL(N##_S) :                                                                                      \
    {                                                                                                   \
        const tx_mem *mem = &mems[in->c];                                                               \
        int64_t i = in->aux & TX_IDX_64 ? S(a)->i64 : S(a)->i32;                                        \
        if (TX_UNLIKELY((uint64_t)i >= (uint64_t)mem->nbytes / sizeof(MT)))                             \
            OUT(tx_vm_load(vm, f, in));                                                                 \
        if (mem->watched && !seen(vm, f, in, sizeof(MT), TX_READ, 1, i * (int64_t)sizeof(MT), NULL, m)) \
            return TX_RUN_STOP;                                                                         \
        MT x;                                                                                           \
        memcpy(&x, mem->base + i * (int64_t)sizeof(MT), sizeof x);                                      \
        S(d)->F = V;                                                                                    \
        NEXT;                                                                                           \
    }
#define LOAD_V(N, BITS, IT, MT, RT, V)                                                                       \
    LABEL(N##_V##BITS) :                                                                                     \
    {                                                                                                        \
        const tx_mem *mem = &mems[in->c];                                                                    \
        const IT *ix = ROW(IT, a);                                                                           \
        RT *d = ROW(RT, d);                                                                                  \
        const uint8_t *base = mem->base;                                                                     \
        uint64_t n = (uint64_t)mem->nbytes / sizeof(MT);                                                     \
        if (m == TX_FULL && in_row##BITS(ix) && n >= TX_LANES && (uint64_t)(int64_t)ix[0] <= n - TX_LANES) { \
            const uint8_t *p = base + (int64_t)ix[0] * (int64_t)sizeof(MT);                                  \
            if (mem->watched && !seen(vm, f, in, sizeof(MT), TX_READ, 0, p - base, NULL, m))                 \
                return TX_RUN_STOP;                                                                          \
            EACH                                                                                             \
            {                                                                                                \
                MT x;                                                                                        \
                memcpy(&x, p + (size_t)l * sizeof x, sizeof x);                                              \
                d[l] = V;                                                                                    \
            }                                                                                                \
            NEXT;                                                                                            \
        }                                                                                                    \
        IT t[TX_LANES];                                                                                      \
        if (TX_UNLIKELY(!inside##BITS(ix, m, n, t)))                                                         \
            OUT(tx_vm_load(vm, f, in));                                                                      \
        if (mem->watched) {                                                                                  \
            int64_t o[TX_LANES];                                                                             \
            EACH o[l] = (int64_t)t[l] * (int64_t)sizeof(MT);                                                 \
            if (!seen(vm, f, in, sizeof(MT), TX_READ, 2, 0, o, m))                                           \
                return TX_RUN_STOP;                                                                          \
        }                                                                                                    \
        EACH                                                                                                 \
        {                                                                                                    \
            MT x;                                                                                            \
            memcpy(&x, base + (int64_t)t[l] * (int64_t)sizeof x, sizeof x);                                  \
            d[l] = V;                                                                                        \
        }                                                                                                    \
        NEXT;                                                                                                \
    }
#define LOADS(N, MT, RT, F, V) LOAD_S(N, MT, F, V) LOAD_V(N, 32, int32_t, MT, RT, V) LOAD_V(N, 64, int64_t, MT, RT, V)

#define STORE_S(N, MT, RT, F)                                                                            \
    LABEL(N##_S) :                                                                                       \
    {                                                                                                    \
        const tx_mem *mem = &mems[in->c];                                                                \
        int64_t i = in->aux & TX_IDX_64 ? S(a)->i64 : S(a)->i32;                                         \
        if (TX_UNLIKELY((uint64_t)i >= (uint64_t)mem->nbytes / sizeof(MT) || mem->readonly))             \
            OUT(tx_vm_store(vm, f, in));                                                                 \
        if (mem->watched && !seen(vm, f, in, sizeof(MT), TX_WRITE, 1, i * (int64_t)sizeof(MT), NULL, m)) \
            return TX_RUN_STOP;                                                                          \
        MT x = (MT)(in->aux & TX_VAL_V ? ROW(RT, b)[31 - __builtin_clz(m)] : (RT)S(b)->F), old;          \
        memcpy(&old, mem->base + i * (int64_t)sizeof(MT), sizeof x);                                     \
        memcpy(mem->base + i * (int64_t)sizeof(MT), &x, sizeof x);                                       \
        vm->changes += old != x;                                                                         \
        NEXT;                                                                                            \
    }
#define STORE_V(N, BITS, IT, MT, RT)                                                                         \
    LABEL(N##_V##BITS) :                                                                                     \
    {                                                                                                        \
        const tx_mem *mem = &mems[in->c];                                                                    \
        const IT *ix = ROW(IT, a);                                                                           \
        const RT *v = ROW(RT, b);                                                                            \
        uint8_t *base = mem->base;                                                                           \
        uint64_t n = (uint64_t)mem->nbytes / sizeof(MT);                                                     \
        if (TX_UNLIKELY(mem->readonly))                                                                      \
            OUT(tx_vm_store(vm, f, in));                                                                     \
        vm->changes++;                                                                                       \
        if (m == TX_FULL && in_row##BITS(ix) && n >= TX_LANES && (uint64_t)(int64_t)ix[0] <= n - TX_LANES) { \
            uint8_t *p = base + (int64_t)ix[0] * (int64_t)sizeof(MT);                                        \
            if (mem->watched && !seen(vm, f, in, sizeof(MT), TX_WRITE, 0, p - base, NULL, m))                \
                return TX_RUN_STOP;                                                                          \
            EACH                                                                                             \
            {                                                                                                \
                MT x = (MT)v[l];                                                                             \
                memcpy(p + (size_t)l * sizeof x, &x, sizeof x);                                              \
            }                                                                                                \
            NEXT;                                                                                            \
        }                                                                                                    \
        IT t[TX_LANES];                                                                                      \
        if (TX_UNLIKELY(!inside##BITS(ix, m, n, t)))                                                         \
            OUT(tx_vm_store(vm, f, in));                                                                     \
        if (mem->watched) {                                                                                  \
            int64_t o[TX_LANES];                                                                             \
            EACH o[l] = (int64_t)t[l] * (int64_t)sizeof(MT);                                                 \
            if (!seen(vm, f, in, sizeof(MT), TX_WRITE, 2, 0, o, m))                                          \
                return TX_RUN_STOP;                                                                          \
        }                                                                                                    \
        for (uint32_t left = m; left; left &= left - 1) {                                                    \
            int l = __builtin_ctz(left);                                                                     \
            MT x = (MT)v[l];                                                                                 \
            memcpy(base + (int64_t)t[l] * (int64_t)sizeof x, &x, sizeof x);                                  \
        }                                                                                                    \
        NEXT;                                                                                                \
    }
#define STORES(N, MT, RT, F) STORE_S(N, MT, RT, F) STORE_V(N, 32, int32_t, MT, RT) STORE_V(N, 64, int64_t, MT, RT)

/* ---- pieces of some instructions ------------------------------------------------------------------------------------- */

static inline int64_t
index_of(const uint8_t *R, const tx_vreg *r, int l)
{
    const uint8_t *p = R + r->reg + (r->row ? (size_t)l * (r->vt == VT_I64 || r->vt == VT_U64 ? 8 : 4) : 0);
    int32_t v32;
    if (r->vt == VT_I64 || r->vt == VT_U64) {
        int64_t v;
        memcpy(&v, p, 8);
        return v;
    }
    memcpy(&v32, p, 4);
    return r->vt == VT_U32 ? (int64_t)(uint32_t)v32 : v32;
}

/* Lanes whose index of one dimension lies outside its extent. */
static inline uint32_t
outside_extent(const uint8_t *R, const tx_vreg *idx, const tx_vreg *ext)
{
    int64_t n = index_of(R, ext, 0);
    int32_t t[TX_LANES];
    if (!idx->row) {
        int64_t i = index_of(R, idx, 0);
        return i < 0 || i >= n ? TX_FULL : 0;
    }
    if (idx->vt == VT_I32) {
        const int32_t *a = (const int32_t *)(const void *)(R + idx->reg);
        uint32_t limit = n > INT32_MAX ? 0x80000000u : n < 0 ? 0 : (uint32_t)n;
        EACH t[l] = (uint32_t)a[l] >= limit ? -1 : 0;
    } else
        EACH
        {
            int64_t i = index_of(R, idx, l);
            t[l] = i < 0 || i >= n ? -1 : 0;
        }
    return mask_of(t);
}

/* Steps a counter that differs from lane to lane (when `step`), and gives the lanes that have a turn to do. */
static inline uint32_t
turns(uint8_t *R, const tx_insn *in, uint32_t m, bool step)
{
    int32_t t[TX_LANES];
    if (in->aux >> 4 == VT_I64 || in->aux >> 4 == VT_U64) {
        int64_t *v = ROW(int64_t, d);
        const int64_t *stop = ROW(int64_t, a), *by = ROW(int64_t, b);
        for (int l = 0; l < TX_LANES; l++) {
            int64_t next = v[l];
            bool over = step && __builtin_add_overflow(v[l], by[l], &next);
            bool on = !over && (by[l] > 0 ? next < stop[l] : by[l] < 0 && next > stop[l]);
            v[l] = m & lane_bit[l] ? next : v[l];
            t[l] = on ? -1 : 0;
        }
        return m & mask_of(t);
    }
    int32_t *v = ROW(int32_t, d);
    const int32_t *stop = ROW(int32_t, a), *by = ROW(int32_t, b);
    bool u = in->aux >> 4 == VT_U32;
    EACH
    {
        int64_t at = u ? (int64_t)(uint32_t)v[l] : v[l], end = u ? (int64_t)(uint32_t)stop[l] : stop[l];
        int64_t inc = u ? (int64_t)(uint32_t)by[l] : by[l], next = at + (step ? inc : 0);
        int on = (inc > 0) & (next < end);
        on |= (inc < 0) & (next > end);
        v[l] = m & lane_bit[l] ? (int32_t)next : v[l];
        t[l] = -on;
    }
    return m & mask_of(t);
}

/* A shuffle of all lanes over the whole warp. */
static inline void
exchange(unsigned mode, uint32_t *d, const uint32_t *a, const uint32_t *b)
{
    uint32_t t[TX_LANES];
    for (uint32_t l = 0; l < TX_LANES; l++) {
        uint32_t k = b[l] & 31;
        uint32_t src = mode == TX_SHFL_IDX ? k : mode == TX_SHFL_XOR ? l ^ k : mode == TX_SHFL_UP ? l - k : l + k;
        t[l] = a[src < TX_LANES ? src : l];
    }
    memcpy(d, t, sizeof t);
}

static inline bool
counts_on(const tx_insn *in, int64_t at, int64_t stop, int64_t step)
{
    unsigned how = in->aux & 3;
    return how == 0 || (how == 2 && step > 0) ? at < stop : step != 0 && at > stop;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static int
TX_ISA_RUN(tx_vm *vm, tx_frag *f)
{
#if defined(THREADED)
    static const void *const labels[] = {
#define B4(n, t) &&L_##n##_##t##_SS, &&L_##n##_##t##_VV, &&L_##n##_##t##_VS, &&L_##n##_##t##_SV,
#define U2(n, t) &&L_##n##_##t##_S, &&L_##n##_##t##_V,
#define M3(n) &&L_##n##_S, &&L_##n##_V32, &&L_##n##_V64,
#define X1(n) &&L_##n,
#include "emu/vmop.def"
#undef B4
#undef U2
#undef M3
#undef X1
    };
#endif
    const tx_insn *const code = vm->p->code;
    const tx_insn *in = code + f->pc;
    const tx_mem *const mems = vm->mem;
    const bool check = vm->check;
    tx_ctl *const ctl = f->ctl;
    uint8_t *R = f->R;
    uint32_t m = f->m, budget = vm->budget;

    if (m == 0)
        goto unwind;
#if defined(THREADED)
    GO;
#else
dispatch:
#if defined(TX_ISA_WATCHES)
    tx_watch_step(vm, f, in, m);
#endif
    switch (in->op) {
#endif
    /* clang-format off */
    BIN(ADD, I32, uint32_t, u32, x + y) BIN(ADD, I64, uint64_t, u64, x + y) BIN(ADD, F32, float, f32, x + y) BIN(ADD, F64, double, f64, x + y)
    BIN(SUB, I32, uint32_t, u32, x - y) BIN(SUB, I64, uint64_t, u64, x - y) BIN(SUB, F32, float, f32, x - y) BIN(SUB, F64, double, f64, x - y)
    BIN(MUL, I32, uint32_t, u32, x * y) BIN(MUL, I64, uint64_t, u64, x * y) BIN(MUL, F32, float, f32, x * y) BIN(MUL, F64, double, f64, x * y)
    BIN(DIV, I32, int32_t, i32, div_i32(x, y)) BIN(DIV, U32, uint32_t, u32, y ? x / y : UINT32_MAX)
    BIN(DIV, I64, int64_t, i64, div_i64(x, y)) BIN(DIV, U64, uint64_t, u64, y ? x / y : UINT64_MAX)
    BIN(DIV, F32, float, f32, x / y) BIN(DIV, F64, double, f64, x / y)
    BIN(MOD, I32, int32_t, i32, mod_i32(x, y)) BIN(MOD, U32, uint32_t, u32, y ? x % y : x)
    BIN(MOD, I64, int64_t, i64, mod_i64(x, y)) BIN(MOD, U64, uint64_t, u64, y ? x % y : x)
    BIN(FLD, I32, int32_t, i32, fld_i32(x, y)) BIN(FLD, I64, int64_t, i64, fld_i64(x, y))
    BIN(FLM, I32, int32_t, i32, flm_i32(x, y)) BIN(FLM, I64, int64_t, i64, flm_i64(x, y))
    BIN(MIN, I32, int32_t, i32, x < y ? x : y) BIN(MIN, U32, uint32_t, u32, x < y ? x : y)
    BIN(MIN, I64, int64_t, i64, x < y ? x : y) BIN(MIN, U64, uint64_t, u64, x < y ? x : y)
    BIN(MIN, F32, float, f32, MIN_OF(x, y)) BIN(MIN, F64, double, f64, MIN_OF(x, y))
    BIN(MAX, I32, int32_t, i32, x > y ? x : y) BIN(MAX, U32, uint32_t, u32, x > y ? x : y)
    BIN(MAX, I64, int64_t, i64, x > y ? x : y) BIN(MAX, U64, uint64_t, u64, x > y ? x : y)
    BIN(MAX, F32, float, f32, MAX_OF(x, y)) BIN(MAX, F64, double, f64, MAX_OF(x, y))
    BIN(AND, I32, uint32_t, u32, x & y) BIN(AND, I64, uint64_t, u64, x & y)
    BIN(OR, I32, uint32_t, u32, x | y) BIN(OR, I64, uint64_t, u64, x | y)
    BIN(XOR, I32, uint32_t, u32, x ^ y) BIN(XOR, I64, uint64_t, u64, x ^ y)
    BIN(SHL, I32, uint32_t, u32, y > 31 ? 0 : x << (y & 31)) BIN(SHL, I64, uint64_t, u64, y > 63 ? 0 : x << (y & 63))
    BIN(SHR, I32, int32_t, i32, x >> ((uint32_t)y > 31 ? 31 : y)) BIN(SHR, U32, uint32_t, u32, y > 31 ? 0 : x >> (y & 31))
    BIN(SHR, I64, int64_t, i64, x >> ((uint64_t)y > 63 ? 63 : y)) BIN(SHR, U64, uint64_t, u64, y > 63 ? 0 : x >> (y & 63))

    CMP(EQ, I32, uint32_t, u32, x == y) CMP(EQ, I64, uint64_t, u64, x == y) CMP(EQ, F32, float, f32, x == y) CMP(EQ, F64, double, f64, x == y)
    CMP(NE, I32, uint32_t, u32, x != y) CMP(NE, I64, uint64_t, u64, x != y) CMP(NE, F32, float, f32, x != y) CMP(NE, F64, double, f64, x != y)
    CMP(LT, I32, int32_t, i32, x < y) CMP(LT, U32, uint32_t, u32, x < y) CMP(LT, I64, int64_t, i64, x < y)
    CMP(LT, U64, uint64_t, u64, x < y) CMP(LT, F32, float, f32, x < y) CMP(LT, F64, double, f64, x < y)
    CMP(LE, I32, int32_t, i32, x <= y) CMP(LE, U32, uint32_t, u32, x <= y) CMP(LE, I64, int64_t, i64, x <= y)
    CMP(LE, U64, uint64_t, u64, x <= y) CMP(LE, F32, float, f32, x <= y) CMP(LE, F64, double, f64, x <= y)

#define SEL(T, CT, F)                                                                                                            \
    LABEL(SEL_##T##_SS) : { CT *d = ROW(CT, d), x = S(a)->F, y = S(b)->F; uint32_t c = S(c)->u32;                                \
        EACH d[l] = c & lane_bit[l] ? x : y; NEXT; }                                                                             \
    LABEL(SEL_##T##_VV) : { CT *d = ROW(CT, d); const CT *a = ROW(CT, a), *b = ROW(CT, b); uint32_t c = S(c)->u32;               \
        EACH d[l] = c & lane_bit[l] ? a[l] : b[l]; NEXT; }                                                                       \
    LABEL(SEL_##T##_VS) : { CT *d = ROW(CT, d), y = S(b)->F; const CT *a = ROW(CT, a); uint32_t c = S(c)->u32;                   \
        EACH d[l] = c & lane_bit[l] ? a[l] : y; NEXT; }                                                                          \
    LABEL(SEL_##T##_SV) : { CT *d = ROW(CT, d), x = S(a)->F; const CT *b = ROW(CT, b); uint32_t c = S(c)->u32;                   \
        EACH d[l] = c & lane_bit[l] ? x : b[l]; NEXT; }
    SEL(I32, uint32_t, u32) SEL(I64, uint64_t, u64)

    FMA(F32, float, f32, fmaf) FMA(F64, double, f64, fma)
    LABEL(FMAX_F32_S): S(d)->u32 = tx_fma_code(in->aux, S(a)->u32, S(b)->u32, S(c)->u32); NEXT;
    LABEL(FMAX_F32_V): { uint32_t *d = ROW(uint32_t, d); const uint32_t *a = ROW(uint32_t, a), *b = ROW(uint32_t, b), *c = ROW(uint32_t, c);
        EACH d[l] = tx_fma_code(in->aux, a[l], b[l], c[l]); NEXT; }

    UN(NEG, I32, uint32_t, u32, uint32_t, u32, 0u - x) UN(NEG, I64, uint64_t, u64, uint64_t, u64, 0ull - x)
    UN(NEG, F32, uint32_t, u32, uint32_t, u32, x ^ 0x80000000u) UN(NEG, F64, uint64_t, u64, uint64_t, u64, x ^ 0x8000000000000000ull)
    UN(ABS, I32, int32_t, i32, int32_t, i32, x < 0 ? (int32_t)(0u - (uint32_t)x) : x)
    UN(ABS, I64, int64_t, i64, int64_t, i64, x < 0 ? (int64_t)(0ull - (uint64_t)x) : x)
    UN(ABS, F32, uint32_t, u32, uint32_t, u32, x & 0x7fffffffu) UN(ABS, F64, uint64_t, u64, uint64_t, u64, x & 0x7fffffffffffffffull)
    UN(NOT, I32, uint32_t, u32, uint32_t, u32, ~x) UN(NOT, I64, uint64_t, u64, uint64_t, u64, ~x)
    UN(SX8, I32, int32_t, i32, int32_t, i32, (int8_t)x) UN(SX16, I32, int32_t, i32, int32_t, i32, (int16_t)x)
    UN(ZX8, I32, uint32_t, u32, uint32_t, u32, x & 0xff) UN(ZX16, I32, uint32_t, u32, uint32_t, u32, x & 0xffff)
    UN(SQRT, F32, float, f32, float, f32, sqrtf(x)) UN(SQRT, F64, double, f64, double, f64, sqrt(x))
    UN(RSQRT, F32, float, f32, float, f32, (float)(1.0 / sqrt((double)x))) UN(RSQRT, F64, double, f64, double, f64, 1.0 / sqrt(x))
    UN(FLOOR, F32, float, f32, float, f32, floorf(x)) UN(FLOOR, F64, double, f64, double, f64, floor(x))
    UN(CEIL, F32, float, f32, float, f32, ceilf(x)) UN(CEIL, F64, double, f64, double, f64, ceil(x))
    UN(TRUNC, F32, float, f32, float, f32, truncf(x)) UN(TRUNC, F64, double, f64, double, f64, trunc(x))
    UN(RINT, F32, float, f32, float, f32, rintf(x)) UN(RINT, F64, double, f64, double, f64, rint(x))
    UN(POPC, I32, uint32_t, u32, uint32_t, u32, (uint32_t)__builtin_popcount(x))
    UN(POPC, I64, uint64_t, u64, uint64_t, u64, (uint64_t)__builtin_popcountll(x))
    UN(CLZ, I32, uint32_t, u32, uint32_t, u32, (x ? (uint32_t)__builtin_clz(x) : 32u) - (32u - in->aux))
    UN(CLZ, I64, uint64_t, u64, uint64_t, u64, x ? (uint64_t)__builtin_clzll(x) : 64u)
    UN(FFS, I32, uint32_t, u32, uint32_t, u32, x ? (uint32_t)__builtin_ctz(x) + 1 : 0)
    UN(EXP, F32, float, f32, float, f32, exp_f32(x)) UN(EXP2, F32, float, f32, float, f32, exp2_f32(x))
    LABEL(MATH1_F32_S): tx_math1_f32(in->aux, &S(d)->f32, &S(a)->f32, 1); NEXT;
    LABEL(MATH1_F32_V): tx_math1_f32(in->aux, ROW(float, d), ROW(float, a), TX_LANES); NEXT;
    LABEL(MATH1_F64_S): tx_math1_f64(in->aux, &S(d)->f64, &S(a)->f64, 1); NEXT;
    LABEL(MATH1_F64_V): tx_math1_f64(in->aux, ROW(double, d), ROW(double, a), TX_LANES); NEXT;
    LABEL(MATH2_F32_S): tx_math2_f32(in->aux, &S(d)->f32, &S(a)->f32, &S(b)->f32, 1); NEXT;
    LABEL(MATH2_F32_V): tx_math2_f32(in->aux, ROW(float, d), ROW(float, a), ROW(float, b), TX_LANES); NEXT;
    LABEL(MATH2_F64_S): tx_math2_f64(in->aux, &S(d)->f64, &S(a)->f64, &S(b)->f64, 1); NEXT;
    LABEL(MATH2_F64_V): tx_math2_f64(in->aux, ROW(double, d), ROW(double, a), ROW(double, b), TX_LANES); NEXT;

    UN(I32, I64, int32_t, i32, int64_t, i64, x) UN(U32, I64, uint32_t, u32, uint64_t, u64, x) UN(I64, I32, uint64_t, u64, uint32_t, u32, (uint32_t)x)
    UN(CLAMP, I32, int64_t, i64, int32_t, i32, x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x)
    UN(I32, F32, int32_t, i32, float, f32, (float)x) UN(U32, F32, uint32_t, u32, float, f32, (float)x)
    UN(I64, F32, int64_t, i64, float, f32, (float)x) UN(U64, F32, uint64_t, u64, float, f32, (float)x)
    UN(I32, F64, int32_t, i32, double, f64, x) UN(U32, F64, uint32_t, u32, double, f64, x)
    UN(I64, F64, int64_t, i64, double, f64, in->aux ? tx_round_odd_f64(x, in->aux == 2) : (double)x) UN(U64, F64, uint64_t, u64, double, f64, (double)x)
    UN(F32, F64, float, f32, double, f64, (double)x) UN(F64, F32, double, f64, float, f32, (float)x)
#define TO_INT(T, CT, F)                                                                                                         \
    LABEL(T##_I32_S) : { double lo, hi; int_range(in->aux, &lo, &hi);                                                            \
        S(d)->u32 = (uint32_t)(int64_t)clamp_f64((double)S(a)->F, lo, hi); NEXT; }                                               \
    LABEL(T##_I32_V) : { double lo, hi; int_range(in->aux, &lo, &hi); const CT *a = ROW(CT, a);                                  \
        if (in->aux == TX_KIND_U32) { uint32_t *d = ROW(uint32_t, d); EACH d[l] = (uint32_t)(int64_t)clamp_f64((double)a[l], lo, hi); } \
        else { int32_t *d = ROW(int32_t, d); EACH d[l] = (int32_t)clamp_f64((double)a[l], lo, hi); }                             \
        NEXT; }                                                                                                                  \
    LABEL(T##_I64_S) : S(d)->u64 = f64_i64((double)S(a)->F, in->aux == TX_KIND_U64); NEXT;                                       \
    LABEL(T##_I64_V) : { uint64_t t[TX_LANES]; const CT *a = ROW(CT, a);                                                         \
        for (int l = 0; l < TX_LANES; l++) t[l] = f64_i64((double)a[l], in->aux == TX_KIND_U64);                                 \
        memcpy(ROW(uint64_t, d), t, sizeof t); NEXT; }
    TO_INT(F32, float, f32) TO_INT(F64, double, f64)
    UN(F16, F32, uint32_t, u32, float, f32, f16_f32(x)) UN(BF16, F32, uint32_t, u32, float, f32, bf16_f32(x))
    UN(F32, F16, float, f32, uint32_t, u32, f32_f16(x)) UN(F32, BF16, float, f32, uint32_t, u32, f32_bf16(x))
    UN(CODE, F64, uint32_t, u32, double, f64, tx_decode(TX_DTYPE(in->aux, 1), x))
    UN(F64, CODE, double, f64, uint32_t, u32, (uint32_t)tx_encode(TX_DTYPE(in->aux, 1), x))
    LABEL(MASK_I32_S): S(d)->i32 = S(a)->u32 ? 1 : 0; NEXT;
    LABEL(MASK_I32_V): { int32_t *d = ROW(int32_t, d); uint32_t c = S(a)->u32; EACH d[l] = c & lane_bit[l] ? 1 : 0; NEXT; }

    LABEL(MOVS): S(d)->u64 = S(a)->u64; NEXT;
    LABEL(MOV32): memmove(R + in->d, R + in->a, 4 * TX_LANES); NEXT;
    LABEL(MOV64): memmove(R + in->d, R + in->a, 8 * TX_LANES); NEXT;
    LABEL(BC32): { uint32_t *d = ROW(uint32_t, d), x = S(a)->u32; EACH d[l] = x; NEXT; }
    LABEL(BC64): { uint64_t *d = ROW(uint64_t, d), x = S(a)->u64; EACH d[l] = x; NEXT; }
    LABEL(MOVM32): { uint32_t *d = ROW(uint32_t, d); const uint32_t *a = ROW(uint32_t, a); EACH d[l] = m & lane_bit[l] ? a[l] : d[l]; NEXT; }
    LABEL(MOVM64): { uint64_t *d = ROW(uint64_t, d); const uint64_t *a = ROW(uint64_t, a); EACH d[l] = m & lane_bit[l] ? a[l] : d[l]; NEXT; }
    LABEL(BCM32): { uint32_t *d = ROW(uint32_t, d), x = S(a)->u32; EACH d[l] = m & lane_bit[l] ? x : d[l]; NEXT; }
    LABEL(BCM64): { uint64_t *d = ROW(uint64_t, d), x = S(a)->u64; EACH d[l] = m & lane_bit[l] ? x : d[l]; NEXT; }
    LABEL(MOVMB): S(d)->u32 = (S(d)->u32 & ~m) | (S(a)->u32 & m); NEXT;
    LABEL(SELS): S(d)->u64 = S(c)->u32 ? S(a)->u64 : S(b)->u64; NEXT;
    LABEL(LANE32): S(d)->u32 = ROW(uint32_t, a)[tx_first_lane(m)]; NEXT;
    LABEL(LANE64): S(d)->u64 = ROW(uint64_t, a)[tx_first_lane(m)]; NEXT;
    LABEL(LANEB): S(d)->u32 = S(a)->u32 >> tx_first_lane(m) & 1 ? TX_FULL : 0; NEXT;
    LABEL(BAND): S(d)->u32 = S(a)->u32 & S(b)->u32; NEXT;
    LABEL(BOR): S(d)->u32 = S(a)->u32 | S(b)->u32; NEXT;
    LABEL(BXOR): S(d)->u32 = S(a)->u32 ^ S(b)->u32; NEXT;
    LABEL(BNOT): S(d)->u32 = ~S(a)->u32; NEXT;
    LABEL(BANDN): S(d)->u32 = S(a)->u32 & ~S(b)->u32; NEXT;

    LOADS(LD_I8, int8_t, int32_t, i32, x) LOADS(LD_U8, uint8_t, uint32_t, u32, x)
    LOADS(LD_I16, int16_t, int32_t, i32, x) LOADS(LD_U16, uint16_t, uint32_t, u32, x)
    LOADS(LD_W, uint32_t, uint32_t, u32, x) LOADS(LD_D, uint64_t, uint64_t, u64, x)
    LABEL(LD_B_S): LABEL(LD_B_V32): LABEL(LD_B_V64): LABEL(LD_N_S): LABEL(LD_N_V32): LABEL(LD_N_V64):
        OUT(tx_vm_load(vm, f, in));
    STORES(ST_8, uint8_t, uint32_t, u32) STORES(ST_16, uint16_t, uint32_t, u32)
    STORES(ST_W, uint32_t, uint32_t, u32) STORES(ST_D, uint64_t, uint64_t, u64)
    LABEL(ST_B_S): LABEL(ST_B_V32): LABEL(ST_B_V64): LABEL(ST_N_S): LABEL(ST_N_V32): LABEL(ST_N_V64):
        OUT(tx_vm_store(vm, f, in));
    LABEL(CHKB): if (check) {
        const tx_dims *dims = &vm->p->dims[in->imm];
        for (uint32_t i = 0; i < dims->n; i++) {
            uint32_t bad = m & outside_extent(R, &dims->idx[i], &dims->ext[i]);
            if (TX_UNLIKELY(bad))
                OUT(tx_vm_chkb(vm, f, in, i, bad));
        }
    } NEXT;
    LABEL(ALIGN): OUT(tx_vm_align(vm, f, in));
    LABEL(LDP): OUT(tx_vm_load(vm, f, in));
    LABEL(STP): OUT(tx_vm_store(vm, f, in));
    LABEL(ATOM): OUT(tx_vm_atomic(vm, f, in));

#define ROW_INDEX (in->aux & TX_IDX_64 ? S(a)->i64 : S(a)->i32)
    LABEL(LROW32_S): { int64_t i = ROW_INDEX; if (TX_UNLIKELY((uint64_t)i >= (uint64_t)in->imm)) OUT(tx_vm_local(vm, f, in));
        memmove(R + in->d, R + in->c + i * 4 * TX_LANES, 4 * TX_LANES); NEXT; }
    LABEL(LROW64_S): { int64_t i = ROW_INDEX; if (TX_UNLIKELY((uint64_t)i >= (uint64_t)in->imm)) OUT(tx_vm_local(vm, f, in));
        memmove(R + in->d, R + in->c + i * 8 * TX_LANES, 8 * TX_LANES); NEXT; }
    LABEL(SROW32_S): { int64_t i = ROW_INDEX; if (TX_UNLIKELY((uint64_t)i >= (uint64_t)in->imm)) OUT(tx_vm_local(vm, f, in));
        uint32_t *d = (uint32_t *)(void *)(R + in->c + i * 4 * TX_LANES); const uint32_t *b = ROW(uint32_t, b);
        EACH d[l] = m & lane_bit[l] ? b[l] : d[l]; NEXT; }
    LABEL(SROW64_S): { int64_t i = ROW_INDEX; if (TX_UNLIKELY((uint64_t)i >= (uint64_t)in->imm)) OUT(tx_vm_local(vm, f, in));
        uint64_t *d = (uint64_t *)(void *)(R + in->c + i * 8 * TX_LANES); const uint64_t *b = ROW(uint64_t, b);
        EACH d[l] = m & lane_bit[l] ? b[l] : d[l]; NEXT; }
    LABEL(LROWB_S): LABEL(LROW32_V): LABEL(LROW64_V): LABEL(LROWB_V):
    LABEL(SROWB_S): LABEL(SROW32_V): LABEL(SROW64_V): LABEL(SROWB_V):
        OUT(tx_vm_local(vm, f, in));
    LABEL(CHKI_C): if (check && TX_UNLIKELY(m & ~S(a)->u32)) OUT(tx_vm_chki(vm, f, in, m & ~S(a)->u32));
        if (TX_UNLIKELY(in->aux) && check) tx_vm_watch_read(vm, f, in); NEXT;
    LABEL(SETI_C): S(a)->u32 |= m; if (TX_UNLIKELY(in->aux) && check) OUT(tx_vm_watch(vm, f, in)); NEXT;
    LABEL(CHKI_S): if (check) {
        int32_t i = S(a)->i32;
        if (TX_UNLIKELY(i < 0 || i >= in->imm || (m & ~((tx_slot *)(void *)(R + in->c))[i].u32))) OUT(tx_vm_chki(vm, f, in, 0));
        if (TX_UNLIKELY(in->aux)) tx_vm_watch_read(vm, f, in);
    } NEXT;
    LABEL(SETI_S): { int32_t i = S(a)->i32; if (i >= 0 && i < in->imm) ((tx_slot *)(void *)(R + in->c))[i].u32 |= m; }
        if (TX_UNLIKELY(in->aux) && check) OUT(tx_vm_watch(vm, f, in)); NEXT;
    LABEL(CHKI_V): LABEL(SETI_V): if (check) OUT(tx_vm_chki(vm, f, in, 0)); NEXT;
    LABEL(CLRI): for (int64_t i = 0; i < in->imm; i++) ((tx_slot *)(void *)(R + in->a))[i].u32 &= ~m; NEXT;

    LABEL(CHKZ_I32_S): if (check && S(a)->u32 == 0) OUT(tx_vm_arith(vm, f, in, m)); NEXT;
    LABEL(CHKZ_I64_S): if (check && S(a)->u64 == 0) OUT(tx_vm_arith(vm, f, in, m)); NEXT;
    LABEL(CHKS_I32_S): if (check && S(a)->u32 >= (uint32_t)in->imm) OUT(tx_vm_arith(vm, f, in, m)); NEXT;
    LABEL(CHKS_I64_S): if (check && S(a)->u64 >= (uint64_t)in->imm) OUT(tx_vm_arith(vm, f, in, m)); NEXT;
#define FAULTS(N, CT, X)                                                                                                         \
    LABEL(N) : if (check) {                                                                                                      \
        int32_t t[TX_LANES]; const CT *a = ROW(CT, a); CT imm = (CT)in->imm; (void)imm;                                          \
        EACH { CT x = a[l]; t[l] = (X) ? -1 : 0; }                                                                               \
        uint32_t bad = m & mask_of(t);                                                                                           \
        if (TX_UNLIKELY(bad)) OUT(tx_vm_arith(vm, f, in, bad));                                                                  \
    } NEXT;
    FAULTS(CHKZ_I32_V, uint32_t, x == 0) FAULTS(CHKZ_I64_V, uint64_t, x == 0)
    FAULTS(CHKS_I32_V, uint32_t, x >= imm) FAULTS(CHKS_I64_V, uint64_t, x >= imm)
#define WRAPS_V(N, A, B, XA, YB, W, U, F)                                                                                        \
    LABEL(N) : if (check) {                                                                                                      \
        int32_t t[TX_LANES]; A; B;                                                                                               \
        const int64_t u = U, lo = (int32_t)in->imm, hi = in->imm >> 32; /* the uniform operand; bounds of the row */             \
        (void)u, (void)lo, (void)hi;                                                                                             \
        if (F) NEXT;                                                                                                             \
        EACH { int32_t x = XA, y = YB; t[l] = (W) ? -1 : 0; }                                                                    \
        uint32_t bad = m & mask_of(t);                                                                                           \
        if (TX_UNLIKELY(bad)) OUT(tx_vm_overflow(vm, f, in, bad));                                                               \
    } NEXT;
#define WRAPS(N, W, FVS, FSV)                                                                                                    \
    LABEL(N##_SS): if (check) {                                                                                                  \
        int32_t x = S(a)->i32, y = S(b)->i32;                                                                                    \
        if (TX_UNLIKELY(W)) OUT(tx_vm_overflow(vm, f, in, m));                                                                   \
    } NEXT;                                                                                                                      \
    WRAPS_V(N##_VV, const int32_t *a = ROW(int32_t, a), const int32_t *b = ROW(int32_t, b), a[l], b[l], W, 0, false)             \
    WRAPS_V(N##_VS, const int32_t *a = ROW(int32_t, a), int32_t b = S(b)->i32, a[l], b, W, b, FVS)                               \
    WRAPS_V(N##_SV, int32_t a = S(a)->i32, const int32_t *b = ROW(int32_t, b), a, b[l], W, a, FSV)
#define FITS(v) ((v) == (int32_t)(v))
#define SUM ((int32_t)((uint32_t)x + (uint32_t)y))
#define DIFFERENCE ((int32_t)((uint32_t)x - (uint32_t)y))
    WRAPS(WADD_I32, ((x ^ SUM) & (y ^ SUM)) < 0, FITS(lo + u) && FITS(hi + u), FITS(lo + u) && FITS(hi + u))
    WRAPS(WSUB_I32, ((x ^ y) & (x ^ DIFFERENCE)) < 0, FITS(lo - u) && FITS(hi - u), FITS(u - lo) && FITS(u - hi))
    WRAPS(WMUL_I32, (int64_t)x * y != (int32_t)((uint32_t)x * (uint32_t)y), false, false)
        /* clang-format on */

        LABEL(JMP)
        : in = code + in->imm;
    GO;
    LABEL(JZ) : if (S(a)->u32) NEXT;
    in = code + in->imm;
    GO;
    LABEL(LOOPJ) : if (TX_UNLIKELY(--budget == 0))
    {
        f->pc = (uint32_t)in->imm, f->site = in->site;
        goto yield;
    }
    in = code + in->imm;
    GO;
    LABEL(IF) :
    {
        uint32_t c = S(a)->u32, t = m & c;
        if (in->aux && !t) {
            in = code + in->imm + 1;
            GO;
        }
        ctl[f->sp++] = (tx_ctl){(uint32_t)in->imm, m, in->aux ? 0 : m & ~c};
        if (t) {
            m = t;
            NEXT;
        }
        in = code + in->imm;
        GO;
    }
    LABEL(ELSE) :
    {
        tx_ctl *top = &ctl[f->sp - 1];
        uint32_t e = top->els;
        top->els = 0;
        top->pc = (uint32_t)in->imm;
        if (e) {
            m = e;
            NEXT;
        }
        in = code + in->imm;
        GO;
    }
    LABEL(ENDIF) : m = ctl[--f->sp].restore;
    if (!m)
        goto unwind;
    NEXT;
    LABEL(LOOP) : ctl[f->sp++] = (tx_ctl){(uint32_t)in->imm, 0, 0};
    NEXT;
    LABEL(LTEST) :
    {
        uint32_t stay = m & S(a)->u32;
        ctl[f->sp - 1].restore |= m & ~stay;
        m = stay;
        if (m)
            NEXT;
        in = code + in->imm;
        GO;
    }
    LABEL(LCONT) : m |= ctl[f->sp - 1].els;
    ctl[f->sp - 1].els = 0;
    if (m)
        NEXT;
    in = code + in->imm;
    GO;
    LABEL(LEND) : m |= ctl[--f->sp].restore;
    if (!m)
        goto unwind;
    NEXT;
    LABEL(BREAK) : LABEL(CONTINUE) :
    {
        uint32_t loop = f->sp - 1 - (uint32_t)in->imm;
        for (uint32_t i = loop + 1; i < f->sp; i++)
            ctl[i].restore &= ~m, ctl[i].els &= ~m;
        if (in->op == V_BREAK)
            ctl[loop].restore |= m;
        else
            ctl[loop].els |= m;
        goto unwind;
    }
    LABEL(FORT_S) : if (counts_on(in, S(d)->i64, S(a)->i64, S(b)->i64)) NEXT;
    in = code + in->imm;
    GO;
    LABEL(FORN_S) :
    {
        int64_t next;
        if (__builtin_add_overflow(S(d)->i64, S(b)->i64, &next) || !counts_on(in, next, S(a)->i64, S(b)->i64))
            NEXT;
        S(d)->i64 = next;
        if (TX_UNLIKELY(--budget == 0)) {
            f->pc = (uint32_t)in->imm, f->site = in->site;
            goto yield;
        }
        in = code + in->imm;
        GO;
    }
    LABEL(FORT_V) :
    {
        uint32_t stay = turns(R, in, m, false);
        ctl[f->sp - 1].restore |= m & ~stay;
        m = stay;
        if (m)
            NEXT;
        in = code + in->imm;
        GO;
    }
    LABEL(FORN_V) :
    {
        uint32_t stay = turns(R, in, m, true);
        ctl[f->sp - 1].restore |= m & ~stay;
        m = stay;
        if (!m)
            NEXT;
        if (TX_UNLIKELY(--budget == 0)) {
            f->pc = (uint32_t)in->imm, f->site = in->site;
            goto yield;
        }
        in = code + in->imm;
        GO;
    }
    LABEL(RET) : LABEL(END) : f->m = m;
    f->pc = (uint32_t)(in - code);
    tx_frag_exit(vm, f);
    if (vm->stop)
        return TX_RUN_STOP;
    m = 0;
    goto unwind;

    LABEL(BAR) : OUT(tx_vm_barrier(vm, f, in));
    LABEL(SHFL) :
    {
        bool all = m == TX_FULL && S(b)->u32 == TX_FULL && !(in->aux & 16);
        if (!all || ((tx_slot *)(void *)(R + in->imm))->u32 != TX_LANES)
            OUT(tx_vm_warp_op(vm, f, in));
        exchange(in->aux, ROW(uint32_t, d), ROW(uint32_t, a), ROW(uint32_t, c));
        NEXT;
    }
    LABEL(WSYNC) : LABEL(VOTE) : LABEL(WREDUCE) : OUT(tx_vm_warp_op(vm, f, in));
    LABEL(ACTIVE) : S(d)->u32 = m;
    NEXT;
    LABEL(FENCE) : NEXT;
    LABEL(GRIDWAIT) : OUT(tx_chain_wait(vm, f, in));
    LABEL(SLEEP) : if (budget > 1) budget = 1;
    NEXT;
    LABEL(CLOCK) : S(d)->u64 = vm->clock += 16;
    NEXT;
    LABEL(PTX) : OUT(tx_vm_ptx(vm, f, in));
    LABEL(AGENT) : OUT(tx_vm_agent(vm, f, in));
    LABEL(PTXW) : OUT(tx_vm_warp_op(vm, f, in));
    LABEL(CVTP) : LABEL(CVTA) : OUT(tx_vm_slow(vm, f, in));
    LABEL(ASSERT) : if (TX_LIKELY(!(m & ~S(a)->u32))) NEXT;
    OUT(tx_vm_outside(vm, f, in));
    LABEL(PRINTF) : LABEL(EXTERN) : LABEL(UNSUP) : OUT(tx_vm_outside(vm, f, in));
#if !defined(THREADED)
default: return TX_RUN_STOP;
}
#endif

unwind: /* no lane is active here: to those set aside innermost */
    m = 0;
if (f->sp == 0) {
    f->m = 0;
    f->state = TX_GONE;
    vm->budget = budget;
    return TX_RUN_DONE;
}
in = code + ctl[f->sp - 1].pc;
GO;
yield: f->m = m;
vm->budget = 0;
return TX_RUN_YIELD;
}

/* ---- shadow of shared memory: the common cases (check_race.c has the rules) ---------------------------------------- */

/* n granules (32 << shift of them), read by lane i >> shift. Nothing to report and the records can be merged: true. */
static ALWAYS_INLINE bool
shadow_read_of(const uint32_t *wtime, const uint32_t *wwho, uint32_t *rtime, uint32_t *rwho, const uint32_t n,
               const uint32_t shift, const tx_epoch *e, uint32_t who)
{
    uint32_t bad = 0, closer = 0, floor = e->floor, now = e->now, start = e->start;
    _Pragma("GCC ivdep") for (uint32_t i = 0; i < n; i++) closer |= wtime[i] - start >= floor - start ? 1u : 0u;
    if (closer)
        _Pragma("GCC ivdep") for (uint32_t i = 0; i < n; i++)
        {
            uint32_t mine = who + ((i >> shift) << TX_WHO_THREAD);
            uint32_t other = (wwho[i] ^ mine) >> TX_WHO_THREAD;
            bad |= wtime[i] < start ? 1u : 0u;
            bad |= (wtime[i] >= floor) & (other != 0) ? 1u : 0u;
        }
    if (bad)
        return false;
    _Pragma("GCC ivdep") for (uint32_t i = 0; i < n; i++)
    {
        uint32_t mine = who + ((i >> shift) << TX_WHO_THREAD), old = rwho[i];
        uint32_t diff = (old ^ mine) >> TX_WHO_THREAD;
        uint32_t lanes = diff ? TX_WHO_LANES : 0, warps = diff >> 5 ? TX_WHO_WARPS : 0;
        uint32_t merged = old | lanes | warps;
        bool fresh = rtime[i] >= floor;
        rwho[i] = fresh & (diff != 0) ? merged : fresh ? old : mine;
        rtime[i] = now;
    }
    return true;
}

/* Where engines read there are other records, too, and these two are not called. */
static bool
shadow_read(const uint32_t *wtime, const uint32_t *wwho, uint32_t *rtime, uint32_t *rwho, uint32_t n, uint32_t shift,
            const tx_epoch *e, uint32_t who)
{
    if (n == TX_LANES && shift == 0)
        return shadow_read_of(wtime, wwho, rtime, rwho, TX_LANES, 0, e, who);
    return shadow_read_of(wtime, wwho, rtime, rwho, n, shift, e, who);
}

static ALWAYS_INLINE bool
shadow_write_of(uint32_t *wtime, uint32_t *wwho, uint32_t *rtime, const uint32_t *rwho, const uint32_t n,
                const uint32_t shift, const tx_epoch *e, uint32_t who)
{
    uint32_t bad = 0, floor = e->floor, now = e->now;
    _Pragma("GCC ivdep") for (uint32_t i = 0; i < n; i++)
    {
        uint32_t mine = who + ((i >> shift) << TX_WHO_THREAD);
        uint32_t wother = (wwho[i] ^ mine) >> TX_WHO_THREAD, rother = (rwho[i] ^ mine) >> TX_WHO_THREAD;
        rother |= rwho[i] & (TX_WHO_LANES | TX_WHO_WARPS);
        bad |= (wtime[i] >= floor) & (wother != 0) ? 1u : 0u;
        bad |= (rtime[i] >= floor) & (rother != 0) ? 1u : 0u;
    }
    if (bad)
        return false;
    _Pragma("GCC ivdep") for (uint32_t i = 0; i < n; i++)
    {
        wwho[i] = who + ((i >> shift) << TX_WHO_THREAD);
        wtime[i] = now;
        rtime[i] = 0;
    }
    return true;
}

static bool
shadow_write(uint32_t *wtime, uint32_t *wwho, uint32_t *rtime, const uint32_t *rwho, uint32_t n, uint32_t shift,
             const tx_epoch *e, uint32_t who)
{
    if (n == TX_LANES && shift == 0)
        return shadow_write_of(wtime, wwho, rtime, rwho, TX_LANES, 0, e, who);
    return shadow_write_of(wtime, wwho, rtime, rwho, n, shift, e, who);
}

#include "emu/run_matrix.h"

const tx_isa TX_ISA_NAME = {TX_ISA_TEXT,  TX_ISA_RUN, shadow_read,  shadow_write,  widen,
                            widen_turned, multiply,   within_exact, fragment_rows, later_times};

#undef ALWAYS_INLINE
#undef S
#undef THREADED
#undef ROW
#undef LABEL
#undef GO
#undef NEXT
#undef OUT
#undef BIN
#undef CMP
#undef UN
#undef FMA
#undef MIN_OF
#undef MAX_OF
#undef SEL
#if defined(__GNUC__) && !defined(__clang__) && (defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__))
#pragma GCC pop_options
#endif
