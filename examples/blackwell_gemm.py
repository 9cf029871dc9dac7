# SPDX-License-Identifier: Apache-2.0
"""C = A @ B.T on Blackwell (sm_100a): bfloat16 or float16 with float32 sums, with one block or a pair of blocks a tile.

Read hopper_gemm.py first: the ring of slots, copies, swizzle, the order of tiles and the persistent grid are the
same. What is new: sums do not live in registers any more. An SM has a tensor memory of 128 lanes x 512 columns of
32 bits, and one thread tells the tensor cores to multiply two tiles in shared memory into it. So nobody needs many
registers, and the roles become warps:

    warp 0       asks the copy engine for tiles
    warp 1       multiplies. `tcgen05.commit` makes the tensor cores arrive at a barrier when all that was asked of them
                 before is done: at a slot's "empty" barrier, and at a tile's "sums are ready" barrier
    warp 2       allocates tensor memory and gives it back
    warps 4..7   the epilogue. Warp w reads lanes 32 (w % 4) and on, one row of the tile a thread, 32 columns at a time,
                 packs, and stores 32 rows x 64 columns through shared memory

A tile's sums take 256 columns; there are two sets of them, so that the epilogue of one tile runs beside the next tile's
products. "Sums are read" barriers tell the multiplying thread when a set is free.

PAIR = 2. Two blocks of a cluster work on one tile of 256 x 256: each holds 128 rows of A and one half of the rows of B,
and the tensor cores of both read B from both, which halves the traffic. Only the first block multiplies, for both
(cta_group::2). Its "full" barrier counts the bytes of both blocks: the second block's copies report there, at the same
offset with the bit cleared that tells the blocks apart (sm100_2sm_leader_smem_addr). Its commits go to both blocks
(multicast). Each block finds its 128 rows of sums in its own tensor memory.

    python examples/blackwell_gemm.py              runs both on a Blackwell GPU if there is one, else on the emulator
"""

from __future__ import annotations

import numpy as np

import tirx
from tirx.script import tirx as T

BM, BN, BK = 128, 256, 64  # rows of a block's tile, columns of the tile, elements of K in a slot
THREADS = 256
SWIZZLE_128B = 3
COLUMNS = 512
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
COMMIT = "mbarrier::arrive::one.shared::cluster"


@T.inline
def tensor_map(out, tensor, rows, columns, box_rows, dtype):
    """A map of a row-major matrix in boxes of box_rows x 64 elements, swizzled over 128 bytes; edges read zeros."""
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled",
        *(out, dtype, 2, tensor.data),
        *(columns, rows, columns * 2),
        *(64, box_rows, 1, 1),
        *(0, SWIZZLE_128B, 2, 0),
    )


@T.jit
def gemm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    *,
    dtype: T.constexpr = "bfloat16",
    PAIR: T.constexpr = 2,
    GROUP: T.constexpr = 8,
    SMS: T.constexpr = 148,
):
    M, N, K = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (M, K), dtype, align=16)
    B = T.match_buffer(b, (N, K), dtype, align=16)
    C = T.match_buffer(c, (M, N), dtype, align=16)
    A_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    C_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    tensor_map(A_map, A, M, K, BM, dtype)
    tensor_map(B_map, B, N, K, BN // PAIR, dtype)
    tensor_map(C_map, C, M, N, 32, dtype)

    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 1})  # else ptxas keeps to 64 registers, and spills
    block = T.cta_id([SMS // PAIR * PAIR])
    rank = T.cta_id_in_cluster([PAIR])
    warp = T.warp_id([THREADS // 32])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])

    STAGES = T.meta_var(4 if PAIR == 1 else 6)
    A_BYTES = T.meta_var(BM * BK * 2)
    B_BYTES = T.meta_var(BN // PAIR * BK * 2)
    B_AT = T.meta_var(STAGES * A_BYTES)
    C_AT = T.meta_var(B_AT + STAGES * B_BYTES)
    C_BYTES = T.meta_var(32 * 64 * 2)  # a slice of the epilogue of one warp; each has two
    BARRIERS_AT = T.meta_var(C_AT + 8 * C_BYTES)
    FULL, EMPTY, READY, READ = T.meta_var((0, STAGES, 2 * STAGES, 2 * STAGES + 2))
    arena = T.alloc_buffer((BARRIERS_AT + 8 * (2 * STAGES + 5),), "uint8", scope="shared.dyn", align=1024)
    barriers = T.decl_buffer((2 * STAGES + 4,), "uint64", data=arena.data, byte_offset=BARRIERS_AT, scope="shared.dyn")
    slot_of_columns = T.decl_buffer(
        *((1,), "uint32"), data=arena.data, byte_offset=BARRIERS_AT + 8 * (2 * STAGES + 4), scope="shared.dyn"
    )

    if warp == 0:
        if T.cuda.elect_sync():
            for s in T.unroll(STAGES):
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([FULL + s]), 1)
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([EMPTY + s]), 1)
            for s in T.unroll(2):
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([READY + s]), 1)
                T.ptx.mbarrier.init.shared.b64(barriers.ptr_to([READ + s]), 4 * PAIR)
            T.ptx.fence.mbarrier_init.release.cluster()
    if warp == 2:
        T.ptx[f"tcgen05.alloc.cta_group::{PAIR}.sync.aligned.shared::cta.b32"](slot_of_columns, T.uint32(COLUMNS))
    T.ptx.tcgen05.fence__before_thread_sync()
    T.cuda.cta_sync()
    if PAIR == 2:
        T.cuda.cluster_sync()
    T.ptx.tcgen05.fence__after_thread_sync()
    tmem: T.uint32 = slot_of_columns[0]

    row_tiles: T.int32 = T.ceildiv(M, BM * PAIR)
    column_tiles: T.int32 = T.ceildiv(N, BN)
    steps: T.int32 = T.ceildiv(K, BK)
    slot: T.int32 = 0
    phase: T.uint32 = 0
    sums: T.int32 = 0  # which of the two sets
    sums_phase: T.uint32 = 0

    if warp == 0:
        if T.cuda.elect_sync():
            for tile in range(block // PAIR, row_tiles * column_tiles, SMS // PAIR):
                in_group: T.int32 = GROUP * column_tiles
                first: T.int32 = tile // in_group * GROUP
                height: T.int32 = T.min(row_tiles - first, GROUP)
                m: T.int32 = (first + tile % in_group % height) * (BM * PAIR) + rank * BM
                n: T.int32 = tile % in_group // height * BN + rank * (BN // PAIR)
                for k in range(steps):
                    T.cuda.mbarrier_wait(barriers.ptr_to([EMPTY + slot]), phase ^ 1)
                    if PAIR == 2:
                        if rank == 0:
                            T.ptx.mbarrier.arrive.expect_tx.shared.b64(
                                barriers.ptr_to([FULL + slot]), 2 * (A_BYTES + B_BYTES)
                            )
                        leader: T.uint32 = T.cuda.sm100_2sm_leader_smem_addr(barriers.ptr_to([FULL + slot]))
                        T.ptx[LOAD + ".cta_group::2"](
                            arena.ptr_to([slot * A_BYTES]), T.address_of(A_map), k * BK, m, leader
                        )
                        T.ptx[LOAD + ".cta_group::2"](
                            arena.ptr_to([B_AT + slot * B_BYTES]), T.address_of(B_map), k * BK, n, leader
                        )
                    else:
                        T.ptx.mbarrier.arrive.expect_tx.shared.b64(barriers.ptr_to([FULL + slot]), A_BYTES + B_BYTES)
                        T.ptx[LOAD](
                            *(arena.ptr_to([slot * A_BYTES]), T.address_of(A_map), k * BK, m),
                            barriers.ptr_to([FULL + slot]),
                        )
                        T.ptx[LOAD](
                            *(arena.ptr_to([B_AT + slot * B_BYTES]), T.address_of(B_map), k * BK, n),
                            barriers.ptr_to([FULL + slot]),
                        )
                    slot += 1
                    if slot == STAGES:
                        slot = 0
                        phase = phase ^ 1
    elif warp == 1:
        if rank == 0:
            if T.cuda.elect_sync():
                instruction = T.meta_var(
                    T.cuda.tcgen05.instr_descriptor(
                        *(), d_dtype="float32", a_dtype=dtype, b_dtype=dtype, M=BM * PAIR, N=BN, K=16,
                        trans_a=False, trans_b=False, n_cta_groups=PAIR,
                    )
                )  # fmt: skip
                A_desc: T.let = T.cuda.tcgen05.matrix_descriptor(arena.ptr_to([0]), 1, 64, SWIZZLE_128B)
                B_desc: T.let = T.cuda.tcgen05.matrix_descriptor(arena.ptr_to([B_AT]), 1, 64, SWIZZLE_128B)
                for _tile in range(block // PAIR, row_tiles * column_tiles, SMS // PAIR):
                    T.cuda.mbarrier_wait(barriers.ptr_to([READ + sums]), sums_phase ^ 1)
                    T.ptx.tcgen05.fence__after_thread_sync()
                    for k in range(steps):
                        T.cuda.mbarrier_wait(barriers.ptr_to([FULL + slot]), phase)
                        T.ptx.tcgen05.fence__after_thread_sync()
                        for kk in T.unroll(BK // 16):
                            T.ptx[f"tcgen05.mma.cta_group::{PAIR}.kind::f16"](
                                tmem + T.cast(sums * BN, "uint32"),
                                T.cuda.tcgen05.advance(A_desc, slot * A_BYTES + kk * 32),
                                T.cuda.tcgen05.advance(B_desc, slot * B_BYTES + kk * 32),
                                T.uint32(instruction),
                                *[T.uint32(0) for _ in range(4 * PAIR)],  # no lane is left out
                                (k != 0) | (kk != 0),  # the first one overwrites
                            )
                        if PAIR == 2:
                            T.ptx[f"tcgen05.commit.cta_group::2.{COMMIT}.multicast::cluster.b64"](
                                barriers.ptr_to([EMPTY + slot]), T.uint16(3)
                            )
                        else:
                            T.ptx[f"tcgen05.commit.cta_group::1.{COMMIT}.b64"](barriers.ptr_to([EMPTY + slot]))
                        slot += 1
                        if slot == STAGES:
                            slot = 0
                            phase = phase ^ 1
                    if PAIR == 2:
                        T.ptx[f"tcgen05.commit.cta_group::2.{COMMIT}.multicast::cluster.b64"](
                            barriers.ptr_to([READY + sums]), T.uint16(3)
                        )
                    else:
                        T.ptx[f"tcgen05.commit.cta_group::1.{COMMIT}.b64"](barriers.ptr_to([READY + sums]))
                    sums += 1
                    if sums == 2:
                        sums = 0
                        sums_phase = sums_phase ^ 1
    elif warp >= 4:
        x = T.alloc_local((32,), "float32")
        packed = T.alloc_local((4,), "uint32")
        quarter: T.int32 = warp - 4
        C_row: T.int32 = C_AT + quarter * (2 * C_BYTES) + lane * 128
        told: T.uint32 = T.cuda.cvta_generic_to_shared(barriers.ptr_to([READ]))
        if PAIR == 2:
            T.ptx.mapa.shared__cluster.u32(told, told, T.uint32(0))
        for tile in range(block // PAIR, row_tiles * column_tiles, SMS // PAIR):
            in_group: T.int32 = GROUP * column_tiles
            first: T.int32 = tile // in_group * GROUP
            height: T.int32 = T.min(row_tiles - first, GROUP)
            m: T.int32 = (first + tile % in_group % height) * (BM * PAIR) + rank * BM + quarter * 32
            n: T.int32 = tile % in_group // height * BN
            T.cuda.mbarrier_wait(barriers.ptr_to([READY + sums]), sums_phase)
            T.ptx.tcgen05.fence__after_thread_sync()
            for s in T.unroll(BN // 64):
                buffer: T.let = s % 2 * C_BYTES
                if lane == 0:
                    T.ptx.cp.async_.bulk.wait_group.read(1)  # the store before the last has read its slice
                T.cuda.warp_sync()
                for h in T.unroll(2):
                    T.ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](
                        *x, T.cuda.get_tmem_addr(tmem, quarter * 32, sums * BN + s * 64 + h * 32)
                    )
                    T.ptx.tcgen05.wait__ld.sync.aligned()
                    T.cuda.wgmma.fence_operand(*x)
                    for p in T.unroll(4):
                        for i in T.unroll(4):
                            T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](packed[i], x[p * 8 + i * 2 + 1], x[p * 8 + i * 2])
                        T.ptx["st.shared.v4.b32"](
                            arena.ptr_to([C_row + buffer + ((h * 4 + p) ^ lane % 8) * 16]), *packed
                        )
                T.ptx.fence.proxy.async_.shared__cta()
                T.cuda.warp_sync()
                if lane == 0:
                    T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](
                        *(T.address_of(C_map), n + s * 64, m),
                        arena.ptr_to([C_AT + quarter * (2 * C_BYTES) + buffer]),
                    )
                    T.ptx.cp.async_.bulk.commit_group()
            T.ptx.tcgen05.fence__before_thread_sync()
            T.cuda.warp_sync()
            if lane == 0:
                if PAIR == 2:
                    T.ptx.mbarrier.arrive.shared__cluster.b64(told + T.cast(sums * 8, "uint32"))
                else:
                    T.ptx.mbarrier.arrive.shared.b64(barriers.ptr_to([READ + sums]))
            sums += 1
            if sums == 2:
                sums = 0
                sums_phase = sums_phase ^ 1
        if lane == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    T.ptx.tcgen05.fence__before_thread_sync()
    T.cuda.cta_sync()
    if PAIR == 2:
        T.cuda.cluster_sync()
    if warp == 2:
        T.ptx.tcgen05.fence__after_thread_sync()
        T.ptx[f"tcgen05.relinquish_alloc_permit.cta_group::{PAIR}.sync.aligned"]()
        T.ptx[f"tcgen05.dealloc.cta_group::{PAIR}.sync.aligned.b32"](tmem, T.uint32(COLUMNS))


PTX_TYPE = {"bfloat16": "bf16", "float16": "f16"}
SHAPES = [(128, 256, 64), (512, 512, 128), (1024, 1024, 1024), (264, 520, 200), (1000, 1000, 1000)]


def check(pair: int, dtype: str = "bfloat16") -> None:
    import torch

    exe = tirx.compile(gemm.specialize(PAIR=pair, dtype=dtype), target="cuda:sm_100a")
    for M, N, K in SHAPES:
        a, b = (torch.randn(r, K, device="cuda").to(getattr(torch, dtype)) for r in (M, N))
        c = torch.full((M, N), float("nan"), device="cuda", dtype=a.dtype)
        exe(a, b, c)
        want = a.double() @ b.double().T
        error = ((c.double() - want).norm() / want.norm()).item()
        assert error < 4e-3, f"pair {pair}, {M} x {N} x {K}: relative error {error}"
        print(f"{dtype}, {pair} block(s) a tile, {M} x {N} x {K}: right, relative error {error:.1e}")


def emulate(pair: int, shapes=((128, 256, 64), (264, 520, 200))) -> None:
    """The same on the emulator, float16, with four SMs."""
    exe = tirx.compile(gemm.specialize(PAIR=pair, dtype="float16", SMS=4), target="cpu")
    rng = np.random.default_rng(0)
    for M, N, K in shapes:
        a, b = (rng.standard_normal((r, K)).astype("float16") for r in (M, N))
        c = np.full((M, N), np.nan, "float16")
        exe(a, b, c)
        want = a.astype("float64") @ b.astype("float64").T
        error = np.linalg.norm(c - want) / np.linalg.norm(want)
        assert error < 1e-3, f"pair {pair}, {M} x {N} x {K}: relative error {error}"
        print(f"float16, {pair} block(s) a tile, {M} x {N} x {K} on the emulator: right, relative error {error:.1e}")


if __name__ == "__main__":
    blackwell = False
    if tirx.cuda(0).exist:
        import torch

        blackwell = torch.cuda.get_device_capability(0)[0] == 10
    for pair in (1, 2):
        check(pair) if blackwell else emulate(pair)
