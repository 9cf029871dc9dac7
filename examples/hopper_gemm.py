# SPDX-License-Identifier: Apache-2.0
"""C = A @ B.T on Hopper: bfloat16 or float16 with float32 sums, at the speed of the tensor cores.

A is (M, K), B is (N, K), C is (M, N), all row-major. Any sizes whose row pitches are multiples of 16 bytes (K and N
multiples of 8); tiles that reach over an edge read zeros and write nothing there.

What happens on an SM. The block has three warpgroups of 128 threads and one ring of `STAGES` slots in shared memory; a
slot holds a 128 x 64 tile of A and a BN x 64 tile of B.

    warpgroup 0, the producer     one thread asks the copy engine (TMA) for the tiles of the next slot and goes on; the
                                  copies report to the slot's "full" barrier how many bytes have come
    warpgroups 1 and 2            each owns 64 rows of the output tile, BN/2 float32 registers a thread. Wait for "full"
                                  multiply the slot's tiles with four instructions of K = 16 each, wait for them, tell
                                  the slot's "empty" barrier, next slot

The producer needs few registers and the consumers many, so the first hands them over (setmaxnreg). It runs ahead of
the consumers by the length of the ring, also into the next output tile: the block is persistent, it computes every
66th tile, and its tensor cores do not idle while tiles begin.

The four ways in which bytes are saved:

    swizzle      the copy engine permutes 16-byte pieces within rows of 128 bytes, so that neither it nor the tensor
                 cores nor the epilogue meet bank conflicts. Descriptors, tensor maps and the epilogue's addresses agree
                 on it; that is the 3 in `matrix_descriptor`, the 3 in `tensor_map` and the exclusive or below
    multicast    two blocks of a cluster have the same B tile. Each asks for one half, for both
    order        tiles are walked in groups of GROUP rows of tiles, so that what the running blocks read stays in L2
    epilogue     a warpgroup packs 64 columns of its sums into a 64 x 64 tile, and the copy engine writes that to C
                 while the next 64 columns are packed; the edges of C need no code, the engine clips

Barrier arithmetic. A wait names the parity of the phase that it wants to see completed. "full" is waited for with the
parity of the trip round the ring; "empty" with the opposite one, so that the first trip does not wait. In a cluster a
slot is free when the consumers of both blocks are done with it, because both blocks' copies go there.

    python examples/hopper_gemm.py                 checks a list of shapes against float64, on a Hopper GPU if there is
                                                   one, else fewer on the emulator
"""

from __future__ import annotations

import numpy as np

import tirx
from tirx.script import tirx as T

BM, BK = 128, 64  # rows of the output tile; elements of K in a slot: 128 bytes, the width of the swizzle
THREADS = 384
SWIZZLE_128B = 3


@T.inline
def tensor_map(out, tensor, rows, columns, box_rows, dtype):
    """A map of a row-major matrix in boxes of box_rows x 64 elements, swizzled over 128 bytes; edges read zeros."""
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled",
        *(out, dtype, 2, tensor.data),
        *(columns, rows),  # sizes, innermost first
        columns * 2,  # bytes from row to row
        *(BK, box_rows, 1, 1),
        *(0, SWIZZLE_128B, 2, 0),  # no interleave, the swizzle, L2 in pieces of 128 bytes, zeros outside
    )


@T.jit
def gemm(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    *,
    dtype: T.constexpr = "bfloat16",
    BN: T.constexpr = 256,
    STAGES: T.constexpr = 4,
    CLUSTER: T.constexpr = 2,
    GROUP: T.constexpr = 8,
    SMS: T.constexpr = 132,
):
    M, N, K = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (M, K), dtype, align=16)
    B = T.match_buffer(b, (N, K), dtype, align=16)
    C = T.match_buffer(c, (M, N), dtype, align=16)
    A_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    C_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    tensor_map(A_map, A, M, K, BM, dtype)
    tensor_map(B_map, B, N, K, BN // CLUSTER, dtype)
    tensor_map(C_map, C, M, N, 64, dtype)

    T.device_entry()
    block = T.cta_id([SMS // CLUSTER * CLUSTER])
    rank = T.cta_id_in_cluster([CLUSTER])
    group = T.warpgroup_id([3])
    warp = T.warp_id_in_wg([4])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])

    A_BYTES = T.meta_var(BM * BK * 2)
    B_BYTES = T.meta_var(BN * BK * 2)
    C_BYTES = T.meta_var(64 * 64 * 2)  # one slice of the epilogue of one warpgroup; each has two
    B_AT = T.meta_var(STAGES * A_BYTES)
    C_AT = T.meta_var(B_AT + STAGES * B_BYTES)
    BARRIERS_AT = T.meta_var(C_AT + 4 * C_BYTES)
    EMPTY_AT = T.meta_var(BARRIERS_AT + 8 * STAGES)
    arena = T.alloc_buffer((BARRIERS_AT + 16 * STAGES,), "uint8", scope="shared.dyn", align=1024)
    full = T.decl_buffer((STAGES,), "uint64", data=arena.data, byte_offset=BARRIERS_AT, scope="shared.dyn")
    empty = T.decl_buffer(
        (STAGES,), "uint64", data=arena.data, byte_offset=BARRIERS_AT + 8 * STAGES, scope="shared.dyn"
    )

    if tid == 0:
        for s in T.unroll(STAGES):
            T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), 1)
            T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), 8 * CLUSTER)  # each warp of the consumers of each block
        T.ptx.fence.mbarrier_init.release.cluster()
    if CLUSTER > 1:
        T.cuda.cluster_sync()
    else:
        T.cuda.cta_sync()

    # tiles of the whole cluster: CLUSTER * BM rows, BN columns
    row_tiles: T.int32 = T.ceildiv(M, BM * CLUSTER)
    column_tiles: T.int32 = T.ceildiv(N, BN)
    steps: T.int32 = T.ceildiv(K, BK)
    slot: T.int32 = 0
    phase: T.uint32 = 0

    if group == 0:
        T.ptx.setmaxnreg.dec.sync.aligned.u32(40)
        if warp == 0:
            if T.cuda.elect_sync():
                for tile in range(block // CLUSTER, row_tiles * column_tiles, SMS // CLUSTER):
                    in_group: T.int32 = GROUP * column_tiles
                    first: T.int32 = tile // in_group * GROUP
                    height: T.int32 = T.min(row_tiles - first, GROUP)
                    m: T.int32 = (first + tile % in_group % height) * (BM * CLUSTER) + rank * BM
                    n: T.int32 = tile % in_group // height * BN
                    for k in range(steps):
                        T.cuda.mbarrier_wait(empty.ptr_to([slot]), phase ^ 1)
                        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([slot]), A_BYTES + B_BYTES)
                        T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
                            arena.ptr_to([slot * A_BYTES]), T.address_of(A_map), k * BK, m, full.ptr_to([slot])
                        )
                        if CLUSTER > 1:
                            T.ptx[
                                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                                ".multicast::cluster"
                            ](
                                arena.ptr_to([B_AT + slot * B_BYTES + rank * (B_BYTES // CLUSTER)]),
                                *(T.address_of(B_map), k * BK, n + rank * (BN // CLUSTER)),
                                *(full.ptr_to([slot]), T.uint16((1 << CLUSTER) - 1)),
                            )
                        else:
                            T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
                                arena.ptr_to([B_AT + slot * B_BYTES]),
                                T.address_of(B_map),
                                k * BK,
                                n,
                                full.ptr_to([slot]),
                            )
                        slot += 1
                        if slot == STAGES:
                            slot = 0
                            phase = phase ^ 1
    else:
        T.ptx.setmaxnreg.inc.sync.aligned.u32(232)
        acc = T.alloc_local((BN // 2,), "float32")
        packed = T.alloc_local((4,), "uint32")
        half: T.int32 = group - 1  # which 64 rows of the tile
        A_desc: T.let = T.cuda.wgmma.matrix_descriptor(arena.ptr_to([half * (A_BYTES // 2)]), 1, 64, SWIZZLE_128B)
        B_desc: T.let = T.cuda.wgmma.matrix_descriptor(arena.ptr_to([B_AT]), 1, 64, SWIZZLE_128B)
        # this lane's "empty" barrier: lane r of each warp tells block r of the cluster
        told: T.uint32 = T.cuda.cvta_generic_to_shared(empty.ptr_to([0]))
        if CLUSTER > 1:
            T.ptx.mapa.shared__cluster.u32(told, told, T.cast(lane % CLUSTER, "uint32"))

        @T.inline
        def release(s):
            if lane < CLUSTER:
                if CLUSTER > 1:
                    T.ptx.mbarrier.arrive.shared__cluster.b64(told + T.cast(s * 8, "uint32"))
                else:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([s]))

        # where this lane writes in a slice: row l % 16 of the warp's 16 rows, 16-byte piece l // 16 of a pair
        C_row: T.int32 = C_AT + half * (2 * C_BYTES) + (warp * 16 + lane % 16) * 128
        C_piece: T.int32 = lane // 16 ^ lane % 8
        turn: T.int32 = 0  # which of the two slices is next
        for tile in range(block // CLUSTER, row_tiles * column_tiles, SMS // CLUSTER):
            in_group: T.int32 = GROUP * column_tiles
            first: T.int32 = tile // in_group * GROUP
            height: T.int32 = T.min(row_tiles - first, GROUP)
            m: T.int32 = (first + tile % in_group % height) * (BM * CLUSTER) + rank * BM + half * 64
            n: T.int32 = tile % in_group // height * BN
            before: T.int32 = slot
            T.cuda.wgmma.fence_operand(*acc)
            for k in range(steps):
                T.cuda.mbarrier_wait(full.ptr_to([slot]), phase)
                A_slot: T.let = T.cuda.wgmma.advance(A_desc, slot * A_BYTES)
                B_slot: T.let = T.cuda.wgmma.advance(B_desc, slot * B_BYTES)
                T.ptx.wgmma.fence.sync.aligned()
                for kk in T.unroll(BK // 16):
                    T.ptx[f"wgmma.mma_async.sync.aligned.m64n{BN}k16.f32.{PTX_TYPE[dtype]}.{PTX_TYPE[dtype]}"](
                        *acc,
                        T.cuda.wgmma.advance(A_slot, kk * 32),
                        T.cuda.wgmma.advance(B_slot, kk * 32),
                        T.ptx.pred((k != 0) | (kk != 0)),  # the first one overwrites
                        *(1, 1, 0, 0),
                    )
                T.ptx.wgmma.commit_group.sync.aligned()
                T.ptx.wgmma.wait_group.sync.aligned(1)  # the group before this one is done: its slot is free
                if k != 0:
                    release(before)
                before = slot
                slot += 1
                if slot == STAGES:
                    slot = 0
                    phase = phase ^ 1
            T.ptx.wgmma.wait_group.sync.aligned(0)
            T.cuda.wgmma.fence_operand(*acc)
            release(before)
            for s in T.unroll(BN // 64):
                buffer: T.let = (turn + s) % 2 * C_BYTES
                if warp == 0:
                    if lane == 0:
                        T.ptx.cp.async_.bulk.wait_group.read(1)  # the store before the last has read its slice
                T.cuda.warpgroup_sync(1 + half)
                for p in T.unroll(4):
                    for i in T.unroll(4):
                        T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](
                            packed[i], acc[s * 32 + p * 8 + i * 2 + 1], acc[s * 32 + p * 8 + i * 2]
                        )
                    T.ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(
                        arena.ptr_to([C_row + buffer + (C_piece ^ p * 2) * 16]), *packed
                    )
                T.ptx.fence.proxy.async_.shared__cta()
                T.cuda.warpgroup_sync(1 + half)
                if warp == 0:
                    if lane == 0:
                        T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](
                            *(T.address_of(C_map), n + s * 64, m),
                            arena.ptr_to([C_AT + half * (2 * C_BYTES) + buffer]),
                        )
                        T.ptx.cp.async_.bulk.commit_group()
            if BN // 64 % 2:
                turn = turn ^ 1
        if warp == 0:
            if lane == 0:
                T.ptx.cp.async_.bulk.wait_group(0)
    if CLUSTER > 1:  # the other block may still tell our barriers and write into our slots
        T.ptx.barrier.cluster.arrive()
        T.ptx.barrier.cluster.wait()


PTX_TYPE = {"bfloat16": "bf16", "float16": "f16"}
SHAPES = [(128, 256, 64), (256, 512, 128), (1024, 1024, 1024), (264, 520, 200), (1000, 1000, 1000), (8, 8, 8)]


def check(dtype: str = "bfloat16", shapes=SHAPES, **tuning) -> None:
    """Compares with float64 on the GPU; raises if an element is wrong or was not written."""
    import torch

    exe = tirx.compile(gemm.specialize(dtype=dtype, **tuning), target="cuda:sm_90a")
    for M, N, K in shapes:
        a, b = (torch.randn(r, K, device="cuda").to(getattr(torch, dtype)) for r in (M, N))
        c = torch.full((M, N), float("nan"), device="cuda", dtype=a.dtype)
        exe(a, b, c)
        want = a.double() @ b.double().T
        error = ((c.double() - want).norm() / want.norm()).item()
        assert error < 4e-3, f"{M} x {N} x {K}: relative error {error}"
        print(f"{dtype} {M} x {N} x {K}: right, relative error {error:.1e}")


def emulate(shapes=((128, 256, 64), (200, 264, 136), (8, 8, 8)), **tuning) -> None:
    """The same on the emulator, float16, with four SMs."""
    exe = tirx.compile(gemm.specialize(dtype="float16", SMS=4, **tuning), target="cpu")
    rng = np.random.default_rng(0)
    for M, N, K in shapes:
        a, b = (rng.standard_normal((r, K)).astype("float16") for r in (M, N))
        c = np.full((M, N), np.nan, "float16")
        exe(a, b, c)
        want = a.astype("float64") @ b.astype("float64").T
        error = np.linalg.norm(c - want) / np.linalg.norm(want)
        assert error < 1e-3, f"{M} x {N} x {K}: relative error {error}"
        print(f"float16 {M} x {N} x {K} on the emulator: right, relative error {error:.1e}")


if __name__ == "__main__":
    if tirx.cuda(0).exist:
        check("bfloat16")
        check("float16", [(1000, 1000, 1000)])
    else:
        emulate()
