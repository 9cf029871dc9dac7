/* The device prelude: small helpers, printed only when a kernel uses them, so that no toolkit header is needed.
 * HELPER(id, needs, needs, "text"): the ids of up to two other pieces that the text uses. Order is the order of printing.
 * 16-bit floats are unsigned shorts; 8-, 6- and 4-bit floats are codes in unsigned chars. Conversions follow ir/numeric.c
 * bit for bit: nearest even, saturating below 16 bits, one canonical NaN. A conversion from a wider type than float32 goes
 * through float32 rounded to odd, which makes the second rounding as good as one (the last bit stands for all that was
 * cut off). PTX: ISA 9.0, sections 9.7.3-9.7.5, 9.7.9. clang-format off */

#define DEVICE "static __device__ __forceinline__ "

/* ---- types ---- */
HELPER(UCHAR, NONE, NONE, "typedef unsigned char uchar;\n")
HELPER(USHORT, NONE, NONE, "typedef unsigned short ushort;\n")
HELPER(UINT, NONE, NONE, "typedef unsigned int uint;\n")
HELPER(I64, NONE, NONE, "typedef long long int64_t;\n")
HELPER(U64, NONE, NONE, "typedef unsigned long long uint64_t;\n")
HELPER(F16, NONE, NONE, "typedef unsigned short tirx_f16;\n")
HELPER(BF16, NONE, NONE, "typedef unsigned short tirx_bf16;\n")
HELPER(STDINT, NONE, NONE,
       "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\n"
       "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n")
HELPER(TENSORMAP, NONE, NONE, "struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };\n")

/* ---- rounding to odd ---- */
HELPER(F64_ODD, NONE, NONE,
       DEVICE "float tirx_f64_odd(double x) {\n"
              "  float r = __double2float_rz(x);\n"
              "  return (double)r == x ? r : __uint_as_float(__float_as_uint(r) | 1u);\n"
              "}\n")
HELPER(I64_ODD, NONE, NONE,
       DEVICE "float tirx_i64_odd(long long x) {\n"
              "  float r = __ll2float_rz(x);\n"
              "  return __float2ll_rz(r) == x ? r : __uint_as_float(__float_as_uint(r) | 1u);\n"
              "}\n")
HELPER(U64_ODD, NONE, NONE,
       DEVICE "float tirx_u64_odd(unsigned long long x) {\n"
              "  float r = __ull2float_rz(x);\n"
              "  return __float2ull_rz(r) == x ? r : __uint_as_float(__float_as_uint(r) | 1u);\n"
              "}\n")

/* ---- float16 ---- */
HELPER(F16_TO_F32, F16, NONE,
       DEVICE "float tirx_f16_to_f32(tirx_f16 x) {\n"
              "  float r;\n"
              "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(x));\n"
              "  return r;\n"
              "}\n")
HELPER(F32_TO_F16, F16, NONE,
       DEVICE "tirx_f16 tirx_f32_to_f16(float x) {\n"
              "  tirx_f16 r;\n"
              "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n"
              "  return r;\n"
              "}\n")

#define F16_OP(id, name, ptx)                                                          \
    HELPER(id, F16, NONE,                                                              \
           DEVICE "tirx_f16 " name "(tirx_f16 a, tirx_f16 b) {\n"                      \
                  "  tirx_f16 r;\n"                                                    \
                  "  asm(\"" ptx " %0, %1, %2;\" : \"=h\"(r) : \"h\"(a), \"h\"(b));\n" \
                  "  return r;\n"                                                      \
                  "}\n")
F16_OP(F16_ADD, "tirx_f16_add", "add.rn.f16")
F16_OP(F16_SUB, "tirx_f16_sub", "sub.rn.f16")
F16_OP(F16_MUL, "tirx_f16_mul", "mul.rn.f16")
#undef F16_OP
HELPER(F16_FMA, F16, NONE,
       DEVICE "tirx_f16 tirx_f16_fma(tirx_f16 a, tirx_f16 b, tirx_f16 c) {\n"
              "  tirx_f16 r;\n"
              "  asm(\"fma.rn.f16 %0, %1, %2, %3;\" : \"=h\"(r) : \"h\"(a), \"h\"(b), \"h\"(c));\n"
              "  return r;\n"
              "}\n")

/* ---- bfloat16: add, subtract and multiply by fma, which sm_80 has ---- */
HELPER(BF16_TO_F32, BF16, NONE,
       DEVICE "float tirx_bf16_to_f32(tirx_bf16 x) { return __uint_as_float((unsigned)x << 16); }\n")
HELPER(F32_TO_BF16, BF16, NONE,
       DEVICE "tirx_bf16 tirx_f32_to_bf16(float x) {\n"
              "  tirx_bf16 r;\n"
              "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x));\n"
              "  return r;\n"
              "}\n")
HELPER(BF16_FMA, BF16, NONE,
       DEVICE "tirx_bf16 tirx_bf16_fma(tirx_bf16 a, tirx_bf16 b, tirx_bf16 c) {\n"
              "  tirx_bf16 r;\n"
              "  asm(\"fma.rn.bf16 %0, %1, %2, %3;\" : \"=h\"(r) : \"h\"(a), \"h\"(b), \"h\"(c));\n"
              "  return r;\n"
              "}\n")
HELPER(BF16_ADD, BF16_FMA, NONE,
       DEVICE "tirx_bf16 tirx_bf16_add(tirx_bf16 a, tirx_bf16 b) { return tirx_bf16_fma(a, 0x3f80, b); }\n")
HELPER(BF16_SUB, BF16_FMA, NONE,
       DEVICE "tirx_bf16 tirx_bf16_sub(tirx_bf16 a, tirx_bf16 b) { return tirx_bf16_fma(b, 0xbf80, a); }\n")
HELPER(BF16_MUL, BF16_FMA, NONE,
       DEVICE "tirx_bf16 tirx_bf16_mul(tirx_bf16 a, tirx_bf16 b) { return tirx_bf16_fma(a, b, 0x8000); }\n")

/* ---- 8, 6 and 4 bits. eb, mb: exponent and mantissa bits; top: largest finite code; nan: code of NaN; fnuz: no -0 ---- */
HELPER(MINI_DECODE, NONE, NONE,
       DEVICE "float tirx_mini_decode(unsigned c, int eb, int mb, int bias, bool ieee) {\n"
              "  unsigned man = c & ((1u << mb) - 1u), ex = c >> mb & ((1u << eb) - 1u), sign = c >> (eb + mb) & 1u;\n"
              "  float scale = __uint_as_float((unsigned)((ex ? (int)ex : 1) - bias - mb + 127) << 23);\n"
              "  float r = (float)(man | (ex ? 1u << mb : 0u)) * scale;\n"
              "  if (ieee && ex == (1u << eb) - 1u) r = __uint_as_float(man ? 0x7fffffffu : 0x7f800000u);\n"
              "  return sign ? -r : r;\n"
              "}\n")
HELPER(MINI_ENCODE, NONE, NONE,
       DEVICE
       "unsigned char tirx_mini_encode(float x, int eb, int mb, int bias, unsigned top, unsigned nan, bool fnuz) {\n"
       "  unsigned u = __float_as_uint(x) & 0x7fffffffu, sign = __float_as_uint(x) >> 31 << (eb + mb), r;\n"
       "  int ex = (int)(u >> 23) - 127;\n"
       "  if (u > 0x7f800000u) return (unsigned char)nan;\n"
       "  ex = ex < 1 - bias ? 1 - bias : ex;\n"
       "  r = (unsigned)rintf(__uint_as_float(u) * __uint_as_float((unsigned)(mb - ex + 127) << 23));\n"
       "  r = ex > 40 ? top : r + ((unsigned)(ex + bias - 1) << mb);\n"
       "  r = r > top ? top : r;\n"
       "  return (unsigned char)(r | (fnuz && r == 0u ? 0u : sign));\n"
       "}\n")

#define MINI(id, s, eb, mb, bias, top, nan, ieee, fnuz, special)                                                      \
    HELPER(id##_TO_F32, MINI_DECODE, NONE,                                                                            \
           DEVICE "float tirx_" s "_to_f32(unsigned char x) {\n" special "  return tirx_mini_decode(x, " #eb ", " #mb \
                  ", " #bias ", " #ieee ");\n"                                                                        \
                  "}\n")                                                                                              \
    HELPER(F32_TO_##id, MINI_ENCODE, NONE,                                                                            \
           DEVICE "unsigned char tirx_f32_to_" s "(float x) {\n"                                                      \
                  "  return tirx_mini_encode(x, " #eb ", " #mb ", " #bias ", " #top ", " #nan ", " #fnuz ");\n"       \
                  "}\n")
#define NAN_IS(code, mask) "  if ((x & " #mask ") == " #code ") return __uint_as_float(0x7fffffffu);\n"
MINI(E3M4, "e3m4", 3, 4, 3, 0x6f, 0x7f, true, false, "")
MINI(E4M3, "e4m3", 4, 3, 7, 0x77, 0x7f, true, false, "")
MINI(E4M3B11FNUZ, "e4m3b11fnuz", 4, 3, 11, 0x7f, 0x80, false, true, NAN_IS(0x80, 0xff))
MINI(E4M3FN, "e4m3fn", 4, 3, 7, 0x7e, 0x7f, false, false, NAN_IS(0x7f, 0x7f))
MINI(E4M3FNUZ, "e4m3fnuz", 4, 3, 8, 0x7f, 0x80, false, true, NAN_IS(0x80, 0xff))
MINI(E5M2, "e5m2", 5, 2, 15, 0x7b, 0x7f, true, false, "")
MINI(E5M2FNUZ, "e5m2fnuz", 5, 2, 16, 0x7f, 0x80, false, true, NAN_IS(0x80, 0xff))
MINI(E2M3FN, "e2m3fn", 2, 3, 1, 0x1f, 0x1f, false, false, "")
MINI(E3M2FN, "e3m2fn", 3, 2, 3, 0x1f, 0x1f, false, false, "")
MINI(E2M1FN, "e2m1fn", 2, 1, 1, 0x07, 0x07, false, false, "")
#undef MINI
#undef NAN_IS
HELPER(E8M0FNU_TO_F32, NONE, NONE,
       DEVICE "float tirx_e8m0fnu_to_f32(unsigned char x) {\n"
              "  return __uint_as_float(x == 255 ? 0x7fffffffu : x == 0 ? 0x00400000u : (unsigned)x << 23);\n"
              "}\n")
HELPER(F32_TO_E8M0FNU, NONE, NONE,
       DEVICE "unsigned char tirx_f32_to_e8m0fnu(float x) {\n"
              "  unsigned u = __float_as_uint(x) & 0x7fffffffu, c = u >> 23, rest = u & 0x7fffffu;\n"
              "  if (u > 0x7f800000u) return 255;\n"
              "  if (c == 0u) return u >= 0x600000u;\n"
              "  c += rest >= 0x400000u;\n" /* ties up, as the number between two powers of two does */
              "  return (unsigned char)(c > 254u ? 254u : c);\n"
              "}\n")
HELPER(FP4_LOAD, NONE, NONE,
       DEVICE
       "unsigned char tirx_fp4_load(const unsigned char* p, long long i) { return p[i >> 1] >> (i & 1) * 4 & 15; }\n")
HELPER(FP4_STORE, NONE, NONE,
       DEVICE "void tirx_fp4_store(unsigned char* p, long long i, unsigned char v) {\n"
              "  int s = (int)(i & 1) * 4;\n"
              "  p[i >> 1] = (unsigned char)((p[i >> 1] & ~(15 << s)) | (v & 15) << s);\n"
              "}\n")

/* ---- float to integer: toward zero, to the nearest end, NaN to 0 ---- */
HELPER(F32_TO_I8, NONE, NONE,
       DEVICE "signed char tirx_f32_to_i8(float x) { return (signed char)max(min(__float2int_rz(x), 127), -128); }\n")
HELPER(F32_TO_I16, NONE, NONE,
       DEVICE "short tirx_f32_to_i16(float x) { return (short)max(min(__float2int_rz(x), 32767), -32768); }\n")
HELPER(F32_TO_I64, NONE, NONE, DEVICE "long long tirx_f32_to_i64(float x) { return x != x ? 0 : __float2ll_rz(x); }\n")
HELPER(F32_TO_U8, NONE, NONE,
       DEVICE "unsigned char tirx_f32_to_u8(float x) { return (unsigned char)min(__float2uint_rz(x), 255u); }\n")
HELPER(F32_TO_U16, NONE, NONE,
       DEVICE "unsigned short tirx_f32_to_u16(float x) { return (unsigned short)min(__float2uint_rz(x), 65535u); }\n")
HELPER(F32_TO_U64, NONE, NONE,
       DEVICE "unsigned long long tirx_f32_to_u64(float x) { return x != x ? 0 : __float2ull_rz(x); }\n")
HELPER(
    F64_TO_I8, NONE, NONE,
    DEVICE
    "signed char tirx_f64_to_i8(double x) { return x != x ? 0 : (signed char)max(min(__double2int_rz(x), 127), -128); }\n")
HELPER(F64_TO_I16, NONE, NONE,
       DEVICE
       "short tirx_f64_to_i16(double x) { return x != x ? 0 : (short)max(min(__double2int_rz(x), 32767), -32768); }\n")
HELPER(F64_TO_I32, NONE, NONE, DEVICE "int tirx_f64_to_i32(double x) { return x != x ? 0 : __double2int_rz(x); }\n")
HELPER(F64_TO_I64, NONE, NONE,
       DEVICE "long long tirx_f64_to_i64(double x) { return x != x ? 0 : __double2ll_rz(x); }\n")
HELPER(
    F64_TO_U8, NONE, NONE,
    DEVICE
    "unsigned char tirx_f64_to_u8(double x) { return x != x ? 0 : (unsigned char)min(__double2uint_rz(x), 255u); }\n")
HELPER(
    F64_TO_U16, NONE, NONE,
    DEVICE
    "unsigned short tirx_f64_to_u16(double x) { return x != x ? 0 : (unsigned short)min(__double2uint_rz(x), 65535u); }\n")
HELPER(F64_TO_U32, NONE, NONE,
       DEVICE "unsigned tirx_f64_to_u32(double x) { return x != x ? 0 : __double2uint_rz(x); }\n")
HELPER(F64_TO_U64, NONE, NONE,
       DEVICE "unsigned long long tirx_f64_to_u64(double x) { return x != x ? 0 : __double2ull_rz(x); }\n")

/* ---- integers: shifts by any count; division that a zero divisor cannot make undefined; floor division ---- */
#define SHIFTS(id, s, t, u, ptx, r)                                                                   \
    HELPER(SHL_##id, NONE, NONE,                                                                      \
           DEVICE t " tirx_shl_" s "(" t " a, " t " n) {\n"                                           \
                    "  " t " r;\n"                                                                    \
                    "  unsigned k = (" u ")n > 64 ? 64u : (unsigned)n;\n"                             \
                    "  asm(\"shl.b" ptx " %0, %1, %2;\" : \"=" r "\"(r) : \"" r "\"(a), \"r\"(k));\n" \
                    "  return r;\n"                                                                   \
                    "}\n")
SHIFTS(I32, "i32", "int", "unsigned", "32", "r")
SHIFTS(U32, "u32", "unsigned", "unsigned", "32", "r")
SHIFTS(I64, "i64", "long long", "unsigned long long", "64", "l")
SHIFTS(U64, "u64", "unsigned long long", "unsigned long long", "64", "l")
#undef SHIFTS
#define SHIFTS(id, s, t, u, ptx, r)                                                                  \
    HELPER(SHR_##id, NONE, NONE,                                                                     \
           DEVICE t " tirx_shr_" s "(" t " a, " t " n) {\n"                                          \
                    "  " t " r;\n"                                                                   \
                    "  unsigned k = (" u ")n > 64 ? 64u : (unsigned)n;\n"                            \
                    "  asm(\"shr." ptx " %0, %1, %2;\" : \"=" r "\"(r) : \"" r "\"(a), \"r\"(k));\n" \
                    "  return r;\n"                                                                  \
                    "}\n")
SHIFTS(I32, "i32", "int", "unsigned", "s32", "r")
SHIFTS(U32, "u32", "unsigned", "unsigned", "u32", "r")
SHIFTS(I64, "i64", "long long", "unsigned long long", "s64", "l")
SHIFTS(U64, "u64", "unsigned long long", "unsigned long long", "u64", "l")
#undef SHIFTS
#define DIVIDE(id, s, t, ptx, r)                                                                         \
    HELPER(DIV_##id, NONE, NONE,                                                                         \
           DEVICE t " tirx_div_" s "(" t " a, " t " b) {\n"                                              \
                    "  " t " r;\n"                                                                       \
                    "  asm(\"div." ptx " %0, %1, %2;\" : \"=" r "\"(r) : \"" r "\"(a), \"" r "\"(b));\n" \
                    "  return b == 0 ? (" t ")-1 : r;\n"                                                 \
                    "}\n")                                                                               \
    HELPER(MOD_##id, NONE, NONE,                                                                         \
           DEVICE t " tirx_mod_" s "(" t " a, " t " b) {\n"                                              \
                    "  " t " r;\n"                                                                       \
                    "  asm(\"rem." ptx " %0, %1, %2;\" : \"=" r "\"(r) : \"" r "\"(a), \"" r "\"(b));\n" \
                    "  return b == 0 ? a : r;\n"                                                         \
                    "}\n")
DIVIDE(I32, "i32", "int", "s32", "r")
DIVIDE(U32, "u32", "unsigned", "u32", "r")
DIVIDE(I64, "i64", "long long", "s64", "l")
DIVIDE(U64, "u64", "unsigned long long", "u64", "l")
#undef DIVIDE
#define FLOOR(id, s, t)                                                                                            \
    HELPER(FLOORDIV_##id, DIV_##id, MOD_##id,                                                                      \
           DEVICE t " tirx_floordiv_" s "(" t " a, " t " b) {\n"                                                   \
                    "  " t " r = tirx_mod_" s "(a, b);\n"                                                          \
                    "  return tirx_div_" s "(a, b) - (b != 0 && r != 0 && (r ^ b) < 0);\n"                         \
                    "}\n")                                                                                         \
    HELPER(FLOORMOD_##id, MOD_##id, NONE,                                                                          \
           DEVICE t " tirx_floormod_" s "(" t " a, " t " b) {\n"                                                   \
                    "  " t " r = tirx_mod_" s "(a, b);\n"                                                          \
                    "  return b != 0 && r != 0 && (r ^ b) < 0 ? r + b : r;\n"                                      \
                    "}\n")                                                                                         \
    HELPER(FLOORDIV_C_##id, NONE, NONE,                                                                            \
           DEVICE t " tirx_floordiv_by_" s "(" t " a, " t " b) { return a / b - (a % b != 0 && (a ^ b) < 0); }\n") \
    HELPER(FLOORMOD_C_##id, NONE, NONE,                                                                            \
           DEVICE t " tirx_floormod_by_" s "(" t " a, " t " b) {\n"                                                \
                    "  " t " r = a % b;\n"                                                                         \
                    "  return r != 0 && (r ^ b) < 0 ? r + b : r;\n"                                                \
                    "}\n")
FLOOR(I32, "i32", "int")
FLOOR(I64, "i64", "long long")
#undef FLOOR
/* Turns of range(start, stop, step); a step of 0 gives none. */
#define TURNS(id, s, t, u)                                                                                           \
    HELPER(TURNS_##id, NONE, NONE,                                                                                   \
           DEVICE u " tirx_turns_" s "(" t " start, " t " stop, " t " step) {\n"                                     \
                    "  if (step > 0 && start < stop) return ((" u ")stop - (" u ")start - 1u) / (" u ")step + 1u;\n" \
                    "  if (step < 0 && start > stop) return ((" u ")start - (" u ")stop - 1u) / (0u - (" u           \
                    ")step) + 1u;\n"                                                                                 \
                    "  return 0;\n"                                                                                  \
                    "}\n")
TURNS(I32, "i32", "int", "unsigned")
TURNS(I64, "i64", "long long", "unsigned long long")
#undef TURNS

/* neg.s16 that is widened afterwards gives 32768 for -32768 (seen with NVRTC 13.0 on sm_90) */
HELPER(
    NEG_I16, NONE, NONE,
    DEVICE
    "short tirx_neg_i16(short x) {\n"
    "  int r;\n"
    "  asm(\"{\\n\\t.reg .b32 t;\\n\\tneg.s32 t, %1;\\n\\tbfe.s32 %0, t, 0, 16;\\n}\" : \"=r\"(r) : \"r\"((int)x));\n"
    "  return (short)r;\n"
    "}\n")
HELPER(ABS_I32, NONE, NONE,
       DEVICE "int tirx_abs_i32(int x) {\n"
              "  int r;\n"
              "  asm(\"abs.s32 %0, %1;\" : \"=r\"(r) : \"r\"(x));\n"
              "  return r;\n"
              "}\n")
HELPER(ABS_I64, NONE, NONE,
       DEVICE "long long tirx_abs_i64(long long x) {\n"
              "  long long r;\n"
              "  asm(\"abs.s64 %0, %1;\" : \"=l\"(r) : \"l\"(x));\n"
              "  return r;\n"
              "}\n")

/* ---- mathematics ---- */
HELPER(SIGMOID_F32, NONE, NONE, DEVICE "float tirx_sigmoid_f32(float x) { return 1.0f / (1.0f + expf(-x)); }\n")
HELPER(SIGMOID_F64, NONE, NONE, DEVICE "double tirx_sigmoid_f64(double x) { return 1.0 / (1.0 + exp(-x)); }\n")

/* ---- special registers ---- */
#define SREG(id, name, reg)                                          \
    HELPER(id, NONE, NONE,                                           \
           DEVICE "int " name "() {\n"                               \
                  "  int r;\n"                                       \
                  "  asm(\"mov.u32 %0, %%" reg ";\" : \"=r\"(r));\n" \
                  "  return r;\n"                                    \
                  "}\n")
SREG(CLUSTER_ID_X, "tirx_cluster_id_x", "clusterid.x")
SREG(CLUSTER_ID_Y, "tirx_cluster_id_y", "clusterid.y")
SREG(CLUSTER_ID_Z, "tirx_cluster_id_z", "clusterid.z")
SREG(CLUSTER_CTA_X, "tirx_cluster_cta_id_x", "cluster_ctaid.x")
SREG(CLUSTER_CTA_Y, "tirx_cluster_cta_id_y", "cluster_ctaid.y")
SREG(CLUSTER_CTA_Z, "tirx_cluster_cta_id_z", "cluster_ctaid.z")
SREG(CLUSTER_DIM_X, "tirx_cluster_dim_x", "cluster_nctaid.x")
SREG(CLUSTER_DIM_Y, "tirx_cluster_dim_y", "cluster_nctaid.y")
SREG(CLUSTER_DIM_Z, "tirx_cluster_dim_z", "cluster_nctaid.z")
SREG(CLUSTER_RANK, "tirx_cluster_ctarank", "cluster_ctarank")
#undef SREG

/* ---- synchronisation ---- */
HELPER(WARPGROUP_SYNC, NONE, NONE,
       DEVICE
       "void tirx_cuda_warpgroup_sync(int id) { asm volatile(\"bar.sync %0, 128;\" : : \"r\"(id) : \"memory\"); }\n")
HELPER(CLUSTER_SYNC, NONE, NONE,
       DEVICE "void tirx_cuda_cluster_sync() {\n"
              "  asm volatile(\"barrier.cluster.arrive.aligned;\" : : : \"memory\");\n"
              "  asm volatile(\"barrier.cluster.wait.aligned;\" : : : \"memory\");\n"
              "}\n")
HELPER(TRAP_UNLESS, NONE, NONE,
       DEVICE "void tirx_cuda_trap_unless(bool c) {\n"
              "  if (!c) asm volatile(\"trap;\");\n"
              "}\n")
HELPER(ELECT_SYNC, NONE, NONE,
       DEVICE
       "bool tirx_cuda_elect_sync() {\n"
       "  int r = 0;\n"
       "  asm volatile(\"{\\n.reg .pred p;\\nelect.sync _|p, 0xFFFFFFFF;\\n@p mov.s32 %0, 1;\\n}\" : \"+r\"(r));\n"
       "  return r != 0;\n"
       "}\n")
/* The counter's highest bit flips when the last block has come: block 0 adds what the others leave to 2^31. */
HELPER(GRID_SYNC, NONE, NONE,
       "static __device__ unsigned tirx_grid_arrived;\n" DEVICE "void tirx_cuda_grid_sync() {\n"
       "  __syncthreads();\n"
       "  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {\n"
       "    unsigned blocks = gridDim.x * gridDim.y * gridDim.z, old, now;\n"
       "    unsigned mine = (blockIdx.x | blockIdx.y | blockIdx.z) == 0 ? 0x80000000u - (blocks - 1) : 1u;\n"
       "    asm volatile(\"atom.add.release.gpu.global.u32 %0, [%1], %2;\" : \"=r\"(old)\n"
       "                 : \"l\"(__cvta_generic_to_global(&tirx_grid_arrived)), \"r\"(mine) : \"memory\");\n"
       "    do {\n"
       "      asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\" : \"=r\"(now)\n"
       "                   : \"l\"(__cvta_generic_to_global(&tirx_grid_arrived)) : \"memory\");\n"
       "    } while (((old ^ now) & 0x80000000u) == 0);\n"
       "  }\n"
       "  __syncthreads();\n"
       "}\n")
HELPER(
    MBAR_WAIT, NONE, NONE,
    DEVICE
    "void tirx_cuda_mbarrier_wait(unsigned bar, unsigned phase) {\n"
    "  asm volatile(\"{\\n.reg .pred p;\\nWAIT:\\n\"\n"
    "               \"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1, %2;\\n\"\n"
    "               \"@p bra.uni DONE;\\nbra.uni WAIT;\\nDONE:\\n}\" : : \"r\"(bar), \"r\"(phase), \"r\"(0x989680) : \"memory\");\n"
    "}\n")

/* ---- atomics that CUDA C++ has only with toolkit headers, or not on this type ---- */
HELPER(ATOMIC_ADD_F16, F16, NONE,
       DEVICE "tirx_f16 tirx_cuda_atomic_add_f16(void* p, tirx_f16 v) {\n"
              "  tirx_f16 r;\n"
              "  asm volatile(\"atom.add.noftz.f16 %0, [%1], %2;\" : \"=h\"(r) : \"l\"(p), \"h\"(v) : \"memory\");\n"
              "  return r;\n"
              "}\n")
HELPER(ATOMIC_ADD_BF16, BF16_ADD, NONE,
       DEVICE "tirx_bf16 tirx_cuda_atomic_add_bf16(void* p, tirx_bf16 v) {\n"
              "  unsigned short* at = (unsigned short*)p;\n"
              "  unsigned short old = *(volatile unsigned short*)at, seen;\n"
              "  for (;;) {\n"
              "    seen = atomicCAS(at, old, tirx_bf16_add(old, v));\n"
              "    if (seen == old) return old;\n"
              "    old = seen;\n"
              "  }\n"
              "}\n")
HELPER(ATOMIC_ADD_I64, NONE, NONE,
       DEVICE "long long tirx_cuda_atomic_add_i64(void* p, long long v) {\n"
              "  return (long long)atomicAdd((unsigned long long*)p, (unsigned long long)v);\n"
              "}\n")
#define CAS(id, s, t, as, to, from)                                                       \
    HELPER(ATOMIC_CAS_##id, NONE, NONE,                                                   \
           DEVICE t " tirx_cuda_atomic_cas_" s "(void* p, " t " old, " t " v) {\n"        \
                    "  return " from "(atomicCAS((" as "*)p, " to "(old), " to "(v)));\n" \
                    "}\n")
CAS(I64, "i64", "long long", "unsigned long long", "(unsigned long long)", "(long long)")
CAS(16, "16", "unsigned short", "unsigned short", "", "")
CAS(F32, "f32", "float", "unsigned", "__float_as_uint", "__uint_as_float")
CAS(F64, "f64", "double", "unsigned long long", "(unsigned long long)__double_as_longlong", "__longlong_as_double")
#undef CAS
#undef DEVICE
