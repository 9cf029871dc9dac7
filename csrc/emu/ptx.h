/* Private to emu/ptx*.c: PTX instructions in the VM. The emulator's half of ir/ptx.def: what the `emu` column names.
 * code_ptx.c makes one tx_ptx_op of every instruction in a kernel; ptx_run.c feeds it the values of the lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_EMU_PTX_H
#define TX_EMU_PTX_H

#include "emu/vm.h"
#include "ir/ptx.h"

/* Modifiers that change what an instruction computes. */
// clang-format off
#define TX_PTX_TOKENS(X) \
    X(rn) X(rz) X(rm) X(rp) X(rna) X(rs) X(rni) X(rzi) X(rmi) X(rpi) X(ftz) X(sat) X(satfinite) X(relu) \
    X(oob) X(NaN) X(xorsign) X(abs) X(hi) X(lo) X(wide) X(approx) X(full) X(add) X(sub) X(mul) X(mul24) \
    X(mad24) X(max) X(min) X(neg) X(ex2) X(lg2) X(sin) X(cos) X(rsqrt) X(rcp) X(sqrt) X(tanh) X(and) X(or) \
    X(xor) X(not) X(cnot) X(shl) X(shr) X(l) X(r) X(clamp) X(wrap) X(f4e) X(b4e) X(rc8) X(ecl) X(ecr) X(rc16) \
    X(shiftamt) X(popc) X(clz) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(ls) X(hs) X(equ) X(neu) X(ltu) X(leu) \
    X(gtu) X(geu) X(num) X(nan) X(finite) X(infinite) X(number) X(notanumber) X(normal) X(subnormal) X(div) \
    X(rem) X(up) X(down) X(bfly) X(idx) X(all) X(any) X(uni) X(ballot) X(inc) X(dec) X(exch) X(cas) X(arrive) \
    X(sync) X(red) X(to) X(global) X(shared) X(local) X(u2) X(u4) X(s2) X(s4) X(u8) X(s8) X(u16) X(s16) \
    X(aligned) X(arrive_drop) X(relaxed) X(noComplete) X(expect_tx) X(noinc) X(read) X(async) X(mbarrier_init) \
    X(f32) X(f64) X(s32) X(s64) X(u32) X(u64) X(b32) X(b64) X(f16) X(bf16) X(multicast) X(wait) \
    X(cta_group__2) X(wait__st) X(pack__16b) X(unpack__16b) X(_32x32b) X(_16x64b) X(_16x128b) X(_16x256b) X(_16x32bx2) \
    X(_128x256b) X(_4x256b) X(_128x128b) X(_64x128b) X(_32x128b) X(warpx2__01_23) X(b6x16_p32) X(b4x16_p64) \
    X(kind__f16) X(kind__tf32) X(kind__f8f6f4) X(kind__i8) X(kind__mxf8f6f4) X(kind__mxf4) X(kind__mxf4nvf4) \
    X(scale_vec__1X) X(scale_vec__2X) X(scale_vec__4X) X(block16) X(block32) \
    X(global_address) X(rank) X(box_dim) X(global_dim) X(element_stride) X(global_stride) X(elemtype) \
    X(interleave_layout) X(swizzle_mode) X(fill_mode) X(cta) X(cluster) X(gpu) X(sys) X(release) X(acquire) X(acq_rel) X(sc) X(volatile) X(trans) X(m8n8) X(tf32) X(e4m3) X(e5m2) \
    X(ld_reduce) X(st) X(is_canceled) X(m16n16) X(fence__before_thread_sync)
// clang-format on
enum tx_ptx_token {
#define X(n) TK_##n,
    TX_PTX_TOKENS(X)
#undef X
        TK__COUNT
};

enum tx_ptx_format {
    FM_NONE,
    FM_F64,
    FM_F32,
    FM_TF32,
    FM_F16,
    FM_BF16,
    FM_E4M3,
    FM_E5M2,
    FM_E2M3,
    FM_E3M2,
    FM_E2M1,
    FM_UE8M0,
    FM_S2F6,
    FM__COUNT
};
typedef struct tx_ptx_ty { /* "f16x2": float format F16, 16 bits, 2 lanes */
    char cls;              /* u s b f, p predicate, 0 an immediate or a pointer */
    uint8_t bits, lanes, fmt;
} tx_ptx_ty;
static inline uint64_t
tx_ones(unsigned bits)
{
    return bits >= 64 ? ~0ull : (1ull << bits) - 1;
}

enum { TX_SYSTEM_BYTES = 0x400 }; /* the first of the shared window, which are the system's */

typedef struct tx_ptx_op tx_ptx_op;
typedef struct tx_ptx_env { /* one lane that executes */
    tx_vm *vm;
    const tx_ptx_op *k;
    const tx_frag *f;
    uint32_t lane;
} tx_ptx_env;
typedef void (*tx_ptx_lane)(const tx_ptx_env *e, const uint64_t *in, uint64_t *out);
/* All lanes that take part, in[argument][lane]; a lane that must not be read is reported by the caller: it gives its number. */
typedef int (*tx_ptx_warp)(const tx_ptx_op *k, uint32_t there, uint64_t (*in)[TX_LANES], uint64_t (*out)[TX_LANES]);

enum tx_ptx_how {
    PH_LANE,
    PH_WARP,
    PH_LD,
    PH_ST,
    PH_ATOM,
    PH_BAR,
    PH_WSYNC,
    PH_ACTIVE,
    PH_NOTHING,
    PH_GRIDDEP,
    PH_AGENT,
    PH_MATRIX,
    PH_MULTIMEM
};
struct tx_act;
typedef struct tx_ptx_emu { /* what the `emu` column of ptx.def names */
    const char *name;
    uint8_t how; /* tx_ptx_how */
    tx_ptx_lane lane;
    tx_ptx_warp warp;
    int (*agent)(const struct tx_act *a); /* the active lanes; gives a tx_run */
} tx_ptx_emu;
const tx_ptx_emu *tx_ptx_emu_of(uint32_t row);

/* Registers of an instruction that is emulated by a function of values, and of one that is the asynchronous hardware's. */
enum { TX_PTX_IN = 24, TX_PTX_OUT = 8, TX_PTX_IN_MAX = 280, TX_PTX_OUT_MAX = 136 };
struct tx_ptx_op {
    const tx_ptx_emu *emu;
    uint64_t tok[4];
    uint16_t nin, nout;
    uint16_t row;
    int8_t choice[TX_PTX_MAX_PARTS];
    uint32_t live; /* agents: what must be equal where parts of a warp join again */
    tx_ptx_ty *in_t, *out_t;
    tx_vreg *in, *out;
    uint32_t *in_init, *out_init; /* wgmma: initialisation masks of the registers, UINT32_MAX: none */
    char (*in_name)[2];           /* agents: the operand that a register belongs to */
};
static inline bool
tx_has_tok(const tx_ptx_op *k, enum tx_ptx_token t)
{
    return k->tok[t / 64] >> t % 64 & 1;
}

uint64_t tx_ptx_get(const tx_frag *f, const tx_vreg *r, const tx_ptx_ty *t, uint32_t lane);
void tx_ptx_put(tx_frag *f, const tx_vreg *r, const tx_ptx_ty *t, uint32_t lane, uint64_t v);
const char *tx_ptx_slot(const tx_ptx_op *k, const char *slot); /* the chosen token, NULL: none */
extern const tx_ptx_emu tx_mbar_wait_loop;                     /* T.cuda.mbarrier_wait */
extern const tx_ptx_emu tx_wide_atomic;                        /* atom.b128 */

bool tx_ptx_cvt_pairs(const tx_ptx_op *k, tx_frag *f); /* ptx_cvt.c: the quick way; false: another instruction */

/* ptx_round.c: numbers and codes. A number is (h + l) * 2^e, l below half a unit of h or 0. */
enum tx_ptx_rnd { RND_RN, RND_RZ, RND_RM, RND_RP, RND_RNA };
typedef struct tx_ptx_num {
    double h, l;
    int e;
} tx_ptx_num;
double tx_ptx_decode(unsigned fmt, uint64_t code);
uint64_t tx_ptx_nan(unsigned fmt);
bool tx_ptx_is_nan(unsigned fmt, uint64_t code);
uint64_t tx_ptx_flush(unsigned fmt, uint64_t code);  /* subnormal to signed zero */
double tx_ptx_fma_f64(double a, double b, double c); /* which NaN comes out is the hardware's choice */
/* rand: `nrand` random bits that are added below the kept ones, in place of rounding; nrand 0: none */
uint64_t tx_ptx_round(unsigned fmt, tx_ptx_num v, unsigned rnd, bool satfinite, uint32_t rand, unsigned nrand);
uint64_t tx_ptx_round_int(unsigned fmt, bool neg, uint64_t m, unsigned rnd);
enum tx_ptx_rnd tx_ptx_rnd_of(const tx_ptx_op *k);

/* ptx_approx.c: codes of float32 */
uint32_t tx_approx_ex2(uint32_t x, bool ftz);
uint32_t tx_approx_rcp(uint32_t x, bool ftz);
uint32_t tx_approx_rsqrt(uint32_t x, bool ftz);
double tx_approx_sincos(float x, bool cosine);

#endif
