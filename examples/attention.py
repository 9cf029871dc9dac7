# SPDX-License-Identifier: Apache-2.0
"""FlashAttention forward on Hopper: O = softmax(Q @ K.T / sqrt(D)) @ V, without the L x L matrix of scores.

Q, O are (heads, Lq, D), K, V are (heads, Lk, D), bfloat16 or float16, row-major; D is 64 or 128; `heads` is batch times
heads. With CAUSAL, query i sees the keys up to i + Lk - Lq. Any lengths. LSE (heads, Lq), float32, gets the logarithm
of each row's sum of exponentials, which a backward pass needs.

A block owns 128 queries of a head and walks over the keys, 128 at a time. Three warpgroups: a producer that asks the
copy engine for the tiles (see hopper_gemm.py for rings, barriers and swizzles), and two consumers with 64 queries each.
For a tile of keys a consumer does

    S = Q @ K.T            tensor cores, both operands in shared memory, 64 x 128 sums in registers
    m' = max(m, rows of S) the running maximum; a row lies in the four lanes of a quad, two shuffles
    P = exp2(S * c - m')   c = log2(e) / sqrt(D): one multiply-add and one exponential an element
    l = l * exp2(m - m') + rows of P,    O = O * exp2(m - m')
    O += P @ V             tensor cores, P from registers, V from shared memory

and at the end O / l. The sums over a row's quad are made once, at the end.

The exponentials take about as long as the products, so they must run at the same time. Two things see to that: the two
consumers, one of which multiplies while the other is at its exponentials; and the order within a consumer, which
starts the next tile's scores, then the product of this tile's P with V, and works on the scores while that runs.

P needs no shuffles: the layout in which the tensor cores leave S is, taken in pairs of 8 columns, the layout in which
they want their left operand. V is read along its rows, so its tile is the transposed kind (the last 1 of the
instruction, and the descriptor's first offset, which leads from one 64-column half to the next).

Scores are masked only in tiles that the diagonal or the end of the keys crosses. A row all of whose scores are masked
has the maximum -inf; 0 is subtracted in its place, so that its exponentials are 0 and not NaN.

    python examples/attention.py                   checks a list of shapes against float64, on a Hopper GPU if there is
                                                   one, else fewer on the emulator
"""

from __future__ import annotations

import math

import numpy as np

import tirx
from tirx.script import tirx as T

BM, BN = 128, 128  # queries of a block, keys of a step
STAGES = 2
SWIZZLE_128B = 3
LOG2E = math.log2(math.e)
PTX_TYPE = {"bfloat16": "bf16", "float16": "f16"}


@T.inline
def tensor_map(out, tensor, heads, length, D, rows, dtype):
    """Boxes of rows x 64 elements of one head, swizzled over 128 bytes; rows behind the end are zeros."""
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled",
        *(out, dtype, 3, tensor.data),
        *(D, length, heads),
        *(D * 2, length * D * 2),
        *(64, rows, 1, 1, 1, 1),
        *(0, SWIZZLE_128B, 2, 0),
    )


@T.inline
def load(D, arena, at, tensor, row, head, barrier):
    """A tile of D columns, as D / 64 boxes."""
    for c in T.unroll(D // 64):
        T.ptx["cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
            arena.ptr_to([at + c * (128 * 128)]), T.address_of(tensor), c * 64, row, head, barrier
        )


@T.inline
def release(barrier, lane):
    if lane == 0:
        T.ptx.mbarrier.arrive.shared.b64(barrier)


@T.jit
def attention(
    q: T.handle,
    k: T.handle,
    v: T.handle,
    o: T.handle,
    lse: T.handle,
    *,
    D: T.constexpr = 128,
    CAUSAL: T.constexpr = False,
    dtype: T.constexpr = "bfloat16",
):
    heads, Lq, Lk = T.int32(), T.int32(), T.int32()
    Q = T.match_buffer(q, (heads, Lq, D), dtype, align=16)
    K = T.match_buffer(k, (heads, Lk, D), dtype, align=16)
    V = T.match_buffer(v, (heads, Lk, D), dtype, align=16)
    O = T.match_buffer(o, (heads, Lq, D), dtype, align=16)
    LSE = T.match_buffer(lse, (heads, Lq), "float32")
    Q_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    K_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    V_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    O_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    tensor_map(Q_map, Q, heads, Lq, D, BM, dtype)
    tensor_map(K_map, K, heads, Lk, D, BN, dtype)
    tensor_map(V_map, V, heads, Lk, D, BN, dtype)
    tensor_map(O_map, O, heads, Lq, D, 64, dtype)

    T.device_entry()
    bx, head = T.cta_id([T.ceildiv(Lq, BM), heads])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    tid = T.thread_id([384])

    TILE = T.meta_var(128 * D * 2)  # bytes of a tile of 128 rows; its boxes of 64 columns have 16384 each
    BOX = T.meta_var(128 * 128)
    K_AT = T.meta_var(TILE)
    V_AT = T.meta_var(TILE + STAGES * TILE)
    BARRIERS_AT = T.meta_var(TILE + 2 * STAGES * TILE)
    arena = T.alloc_buffer((BARRIERS_AT + 8 * (1 + 4 * STAGES),), "uint8", scope="shared.dyn", align=1024)
    # barriers: K full, K empty, V full, V empty for each stage; the last one for Q
    barriers = T.decl_buffer((4 * STAGES + 1,), "uint64", data=arena.data, byte_offset=BARRIERS_AT, scope="shared.dyn")

    if tid == 0:
        for s in T.unroll(STAGES):
            for b in T.unroll(2):
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([(2 * b) * STAGES + s]), 1)
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([(2 * b + 1) * STAGES + s]), 8)
        T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([4 * STAGES]), 1)
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()

    # the longest rows first: the blocks that start late are short
    block: T.int32 = T.ceildiv(Lq, BM) - 1 - bx
    steps: T.int32 = T.ceildiv(Lk, BN)
    if CAUSAL:
        steps = T.max(T.min(steps, T.ceildiv(block * BM + BM + Lk - Lq, BN)), 0)
    stage: T.int32 = 0
    phase: T.uint32 = 0

    if group == 0:
        T.ptx.setmaxnreg.dec.sync.aligned.u32(24)
        if warp == 0:
            if T.cuda.elect_sync():
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(barriers.ptr_to([4 * STAGES]), TILE)
                load(D, arena, 0, Q_map, block * BM, head, barriers.ptr_to([4 * STAGES]))
                for j in range(steps):
                    T.cuda.mbarrier_wait(barriers.ptr_to([STAGES + stage]), phase ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(barriers.ptr_to([stage]), TILE)
                    load(
                        *(D, arena, K_AT + stage * TILE),
                        *(K_map, j * BN, head, barriers.ptr_to([stage])),
                    )
                    T.cuda.mbarrier_wait(barriers.ptr_to([3 * STAGES + stage]), phase ^ 1)
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(barriers.ptr_to([2 * STAGES + stage]), TILE)
                    load(
                        *(D, arena, V_AT + stage * TILE),
                        *(V_map, j * BN, head, barriers.ptr_to([2 * STAGES + stage])),
                    )
                    stage += 1
                    if stage == STAGES:
                        stage = 0
                        phase = phase ^ 1
    else:
        T.ptx.setmaxnreg.inc.sync.aligned.u32(240)
        S = T.alloc_local((BN // 2,), "float32")
        P = T.alloc_local((BN // 4,), "uint32")
        out = T.alloc_local((D // 2,), "float32")
        top = T.alloc_local((2,), "float32")  # the maximum of this lane's two rows, times the scale
        total = T.alloc_local((2,), "float32")  # this lane's part of their sums
        shrink = T.alloc_local((2,), "float32")
        half: T.int32 = group - 1
        first: T.int32 = block * BM + half * 64  # of this warpgroup's queries
        scale = T.meta_var(LOG2E / math.sqrt(D))
        Q_desc: T.let = T.cuda.wgmma.matrix_descriptor(arena.ptr_to([half * (BOX // 2)]), 1, 64, SWIZZLE_128B)
        K_desc: T.let = T.cuda.wgmma.matrix_descriptor(arena.ptr_to([K_AT]), 1, 64, SWIZZLE_128B)
        V_desc: T.let = T.cuda.wgmma.matrix_descriptor(arena.ptr_to([V_AT]), BOX // 16, 64, SWIZZLE_128B)
        for i in T.unroll(D // 2):
            out[i] = 0.0
        for r in T.unroll(2):
            top[r] = -T.infinity("float32")
            total[r] = 0.0
        T.cuda.mbarrier_wait(barriers.ptr_to([4 * STAGES]), 0)
        V_stage: T.int32 = 0
        V_phase: T.uint32 = 0

        @T.inline
        def begin_scores():
            """Starts S = Q @ K.T of the next tile of keys, which is there."""
            K_tile: T.let = T.cuda.wgmma.advance(K_desc, stage * TILE)
            T.cuda.wgmma.fence_operand(*S)
            T.ptx.wgmma.fence.sync.aligned()
            for kk in T.unroll(D // 16):
                T.ptx[f"wgmma.mma_async.sync.aligned.m64n{BN}k16.f32.{PTX_TYPE[dtype]}.{PTX_TYPE[dtype]}"](
                    *S,
                    T.cuda.wgmma.advance(Q_desc, kk // 4 * BOX + kk % 4 * 32),
                    T.cuda.wgmma.advance(K_tile, kk // 4 * BOX + kk % 4 * 32),
                    kk != 0,
                    *(1, 1, 0, 0),
                )
            T.ptx.wgmma.commit_group.sync.aligned()

        @T.inline
        def end_scores():
            nonlocal stage, phase
            T.cuda.wgmma.fence_operand(*S)
            release(barriers.ptr_to([STAGES + stage]), lane)
            stage += 1
            if stage == STAGES:
                stage = 0
                phase = phase ^ 1

        @T.inline
        def exponentials(j):
            """S becomes exp2(S * scale - the new maximum); `shrink` is what older sums are to be multiplied with."""
            crossed: T.let = j * BN + BN > (T.min(Lk, first + Lk - Lq + 1) if CAUSAL else Lk)
            if crossed:
                for i in T.unroll(BN // 2):
                    query, key = T.cuda.wgmma.place(i)
                    last: T.let = T.min(Lk - 1, first + query + Lk - Lq) if CAUSAL else Lk - 1
                    S[i] = T.Select(j * BN + key <= last, S[i], -T.infinity("float32"))
            for r in T.unroll(2):
                new: T.float32 = S[2 * r]
                for i in T.unroll(BN // 8):
                    new = T.max(new, T.max(S[i * 4 + 2 * r], S[i * 4 + 2 * r + 1]))
                new = T.max(new, T.cuda.shfl_xor_sync(0xFFFFFFFF, new, 1))
                new = T.max(new, T.cuda.shfl_xor_sync(0xFFFFFFFF, new, 2))
                new = T.max(top[r], new * scale)
                subtracted: T.float32 = T.if_then_else(new == -T.infinity("float32"), T.float32(0), new)
                shrink[r] = T.ptx.exp2(top[r] - subtracted)
                top[r] = new
                total[r] = total[r] * shrink[r]
                for i in T.unroll(BN // 8):
                    for e in T.unroll(2):
                        S[i * 4 + 2 * r + e] = T.ptx.exp2(S[i * 4 + 2 * r + e] * scale - subtracted)
                        total[r] += S[i * 4 + 2 * r + e]

        @T.inline
        def pack():
            for i in T.unroll(BN // 4):
                T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](P[i], S[2 * i + 1], S[2 * i])

        @T.inline
        def begin_product():
            """Starts O += P @ V of the oldest tile that has not been multiplied."""
            T.cuda.mbarrier_wait(barriers.ptr_to([2 * STAGES + V_stage]), V_phase)
            V_tile: T.let = T.cuda.wgmma.advance(V_desc, V_stage * TILE)
            T.cuda.wgmma.fence_operand(*out)
            T.cuda.wgmma.fence_operand(*P)
            T.ptx.wgmma.fence.sync.aligned()
            for kk in [*range(BN // 16)]:
                T.ptx[f"wgmma.mma_async.sync.aligned.m64n{D}k16.f32.{PTX_TYPE[dtype]}.{PTX_TYPE[dtype]}"](
                    *out,
                    *P[4 * kk : 4 * kk + 4],
                    T.cuda.wgmma.advance(V_tile, kk * (16 * 128)),
                    True,
                    *(1, 1, 1),
                )
            T.ptx.wgmma.commit_group.sync.aligned()

        @T.inline
        def end_product():
            nonlocal V_stage, V_phase
            T.ptx.wgmma.wait_group.sync.aligned(0)
            T.cuda.wgmma.fence_operand(*out)
            release(barriers.ptr_to([3 * STAGES + V_stage]), lane)
            V_stage += 1
            if V_stage == STAGES:
                V_stage = 0
                V_phase = V_phase ^ 1

        if steps > 0:
            T.cuda.mbarrier_wait(barriers.ptr_to([stage]), phase)
            begin_scores()
            T.ptx.wgmma.wait_group.sync.aligned(0)
            end_scores()
            exponentials(0)
            pack()
            if steps > 1:
                T.cuda.mbarrier_wait(barriers.ptr_to([stage]), phase)
            for j in range(1, steps):
                begin_scores()
                begin_product()
                T.ptx.wgmma.wait_group.sync.aligned(1)  # the scores are there, the product is still at work
                end_scores()
                exponentials(j)
                T.cuda.wgmma.fence_operand(*S)
                # The next keys are waited for here because ptxas moves the wait for the product up to the last branch,
                # and the exponentials shall stand before it.
                if j + 1 < steps:
                    T.cuda.mbarrier_wait(barriers.ptr_to([stage]), phase)
                end_product()
                for i in T.unroll(D // 2):
                    out[i] = out[i] * shrink[i % 4 // 2]
                pack()
            begin_product()
            end_product()

        for r in T.unroll(2):
            total[r] += T.cuda.shfl_xor_sync(0xFFFFFFFF, total[r], 1)
            total[r] += T.cuda.shfl_xor_sync(0xFFFFFFFF, total[r], 2)
            query, key = T.cuda.wgmma.place(2 * r)
            if T.And(key == 0, first + query < Lq):
                LSE[head, first + query] = (top[r] + T.log2(total[r])) / LOG2E
            inverse: T.float32 = T.if_then_else(total[r] == 0.0, T.float32(0), 1.0 / total[r])
            for i in T.unroll(D // 8):
                for e in T.unroll(2):
                    out[i * 4 + 2 * r + e] = out[i * 4 + 2 * r + e] * inverse
        # to the place of these 64 queries, packed and swizzled as the copy engine wants them; see hopper_gemm.py
        O_row: T.int32 = half * (BOX // 2) + (warp * 16 + lane % 16) * 128
        O_piece: T.int32 = lane // 16 ^ lane % 8
        T.cuda.warpgroup_sync(1 + half)  # nobody reads these queries any more
        for c in T.unroll(D // 64):
            for p in T.unroll(4):
                for i in T.unroll(4):
                    T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](
                        P[i], out[c * 32 + p * 8 + i * 2 + 1], out[c * 32 + p * 8 + i * 2]
                    )
                T.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(
                    arena.ptr_to([c * BOX + O_row + (O_piece ^ p * 2) * 16]), *P[0:4]
                )
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.warpgroup_sync(1 + half)
        if warp == 0:
            if lane == 0:
                for c in T.unroll(D // 64):
                    T.ptx["cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group"](
                        *(T.address_of(O_map), c * 64, block * BM + half * 64, head),
                        arena.ptr_to([c * BOX + half * (BOX // 2)]),
                    )
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group(0)


def reference(q, k, v, causal):
    """O and LSE in float64."""
    import torch

    s = q.double() @ k.double().transpose(1, 2) / math.sqrt(q.shape[2])
    if causal:
        Lq, Lk = s.shape[1:]
        seen = torch.arange(Lk, device=s.device) <= torch.arange(Lq, device=s.device)[:, None] + Lk - Lq
        s = s.masked_fill(~seen, -math.inf)
    return torch.softmax(s, 2) @ v.double(), torch.logsumexp(s, 2)


CASES = [  # heads, Lq, Lk
    (2, 128, 128),
    (3, 256, 512),
    (2, 200, 333),
    (1, 1, 1),
    (4, 1024, 1024),
]


def check(D: int, causal: bool, dtype: str = "bfloat16", cases=CASES) -> None:
    import torch

    exe = tirx.compile(attention.specialize(D=D, CAUSAL=causal, dtype=dtype), target="cuda:sm_90a")
    for heads, Lq, Lk in cases:
        q, k, v = (torch.randn(heads, n, D, device="cuda").to(getattr(torch, dtype)) for n in (Lq, Lk, Lk))
        o = torch.full_like(q, float("nan"))
        lse = torch.full((heads, Lq), float("nan"), device="cuda")
        exe(q, k, v, o, lse)
        want, want_lse = reference(q, k, v, causal)
        error = ((o.double() - want).norm() / want.norm()).item()
        assert error < 5e-3, f"D {D}, {heads} x {Lq} x {Lk}: relative error {error}"
        assert (lse.double() - want_lse).abs().max().item() < 1e-3, f"D {D}, {heads} x {Lq} x {Lk}: LSE"
        print(f"{dtype} D {D}{' causal' * causal}, {heads} heads, {Lq} x {Lk}: right, relative error {error:.1e}")


def emulate(D: int, causal: bool, cases=((1, 128, 128), (2, 70, 200))) -> None:
    """The same on the emulator, float16."""
    exe = tirx.compile(attention.specialize(D=D, CAUSAL=causal, dtype="float16"), target="cpu")
    rng = np.random.default_rng(0)
    for heads, Lq, Lk in cases:
        q, k, v = (rng.standard_normal((heads, n, D)).astype("float16") for n in (Lq, Lk, Lk))
        o, lse = np.full_like(q, np.nan), np.full((heads, Lq), np.nan, "float32")
        exe(q, k, v, o, lse)
        s = q.astype("float64") @ k.astype("float64").transpose(0, 2, 1) / math.sqrt(D)
        if causal:
            s = np.where(np.arange(Lk) <= np.arange(Lq)[:, None] + Lk - Lq, s, -np.inf)
        e = np.exp(s - s.max(2, keepdims=True))
        want = e / e.sum(2, keepdims=True) @ v.astype("float64")
        error = np.linalg.norm(o - want) / np.linalg.norm(want)
        assert error < 1e-3, f"D {D}, {heads} x {Lq} x {Lk}: relative error {error}"
        assert np.abs(lse - np.log(np.exp(s).sum(2))).max() < 1e-4, f"D {D}, {heads} x {Lq} x {Lk}: LSE"
        what = f"D {D}{' causal' * causal}, {heads} heads, {Lq} x {Lk}"
        print(f"float16 {what} on the emulator: right, relative error {error:.1e}")


if __name__ == "__main__":
    if tirx.cuda(0).exist:
        for D in (64, 128):
            for causal in (False, True):
                check(D, causal)
        check(128, True, "float16", [(2, 384, 384)])
    else:
        emulate(64, False)
        emulate(128, True)
