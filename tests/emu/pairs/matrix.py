# SPDX-License-Identifier: Apache-2.0
"""ldmatrix, stmatrix and mma; Hopper's wgmma: dense, sparse, with A in registers.

The wgmma kernels compute D = sum over steps of A[s] @ B[s].T with A (steps, 64, 16) and B (steps, 8, 16); shared images are
K-major without swizzle: sa[stage, k / 8, m, k % 8], sb[stage, k / 8, n, k % 8].
"""

import numpy as np
from expect import expect, halves, ints, zeros

from tirx.script import tirx as T

WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16"
HOPPER = dict(launch=dict(grid=1, block=128), arch="sm_90a")
STEPS = 6


def operands():
    return halves(STEPS, 64, 16), halves(STEPS, 8, 16, seed=1), zeros(64, 8, dtype=np.float32)


def product(A, B):
    return np.einsum("smk,snk->mn", A.astype(np.float32), B.astype(np.float32))


@T.inline
def fill_a(sa, A, s, stage, tx):
    for j in range(8):
        sa[stage, tx // 64, tx % 64, j] = A[s, tx % 64, tx // 64 * 8 + j]


@T.inline
def fill_b(sb, B, s, stage, tx):
    sb[stage, tx // 64, tx % 64 // 8, tx % 8] = B[s, tx % 64 // 8, tx // 64 * 8 + tx % 8]


@T.inline
def put(D, acc, tx):
    for i in range(4):
        D[tx // 32 * 16 + tx % 32 // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = acc[i]


@expect("async", cls="wgmma", also=("race",), buffer="sa", lines=("mma", "store"), source="own: double buffer, one group left in flight too many",
        args=operands, want=lambda A, B, D: {2: product(A, B)}, **HOPPER)
def stage_refilled_while_its_wgmma_is_in_flight(fixed):
    """Two stages: before stage s is filled again the wgmma of two steps ago must be complete."""
    left = 0 if fixed else 1

    @T.prim_func
    def k(A: T.Buffer((STEPS, 64, 16), "float16"), B: T.Buffer((STEPS, 8, 16), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sa = T.alloc_shared((2, 2, 64, 8), "float16", align=128)
        sb = T.alloc_shared((2, 2, 8, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        for i in range(4):
            acc[i] = T.float32(0)
        fill_a(sa, A, 0, 0, tx)
        fill_b(sb, B, 0, 0, tx)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for s in range(STEPS):
            T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([s % 2, 0, 0, 0]), 64, 8, 0)
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s % 2, 0, 0, 0]), 8, 8, 0)
            T.ptx.wgmma.fence.sync.aligned()
            T.ptx[WGMMA](acc[0], acc[1], acc[2], acc[3], da[0], db[0], T.bool(True), 1, 1, 0, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            T.ptx.wgmma.wait_group.sync.aligned(left)
            T.cuda.cta_sync()
            if s + 1 < STEPS:
                if left == 1:
                    for j in range(8):
                        sa[s % 2, tx // 64, tx % 64, j] = A[s + 1, tx % 64, tx // 64 * 8 + j]  # <-- store
                fill_a(sa, A, s + 1, (s + 1) % 2, tx)
                fill_b(sb, B, s + 1, (s + 1) % 2, tx)
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
        T.ptx.wgmma.wait_group.sync.aligned(0)
        put(D, acc, tx)
    return k


@expect("proxy", cls="wgmma", buffer="sb", lines=("store", "mma"), source="own: proxy fence in front of the stores instead of behind them",
        args=operands, want=lambda A, B, D: {2: product(A, B)}, **HOPPER)
def operand_fenced_before_it_is_written(fixed):
    @T.prim_func
    def k(A: T.Buffer((STEPS, 64, 16), "float16"), B: T.Buffer((STEPS, 8, 16), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sa = T.alloc_shared((1, 2, 64, 8), "float16", align=128)
        sb = T.alloc_shared((1, 2, 8, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0, 0]), 64, 8, 0)
        T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0, 0]), 8, 8, 0)
        for i in range(4):
            acc[i] = T.float32(0)
        for s in range(STEPS):
            fill_a(sa, A, s, 0, tx)
            if not fixed:
                T.ptx.fence.proxy.async_.shared__cta()
            sb[0, tx // 64, tx % 64 // 8, tx % 8] = B[s, tx % 64 // 8, tx // 64 * 8 + tx % 8]  # <-- store
            if fixed:
                T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            T.ptx.wgmma.fence.sync.aligned()
            T.ptx[WGMMA](acc[0], acc[1], acc[2], acc[3], da[0], db[0], T.bool(True), 1, 1, 0, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            T.ptx.wgmma.wait_group.sync.aligned(0)
            T.cuda.cta_sync()
        put(D, acc, tx)
    return k


@expect("async", cls="wgmma", buffer="acc", lines=("mma", "scale"), source="own: accumulators rescaled between the steps of an online softmax",
        args=operands, want=lambda A, B, D: {2: rescaled(A, B)}, **HOPPER)
def accumulators_rescaled_in_flight(fixed):
    @T.prim_func
    def k(A: T.Buffer((STEPS, 64, 16), "float16"), B: T.Buffer((STEPS, 8, 16), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sa = T.alloc_shared((STEPS, 2, 64, 8), "float16", align=128)
        sb = T.alloc_shared((STEPS, 2, 8, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        for s in range(STEPS):
            fill_a(sa, A, s, s, tx)
            fill_b(sb, B, s, s, tx)
        for i in range(4):
            acc[i] = T.float32(0)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for s in range(STEPS):
            T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([s, 0, 0, 0]), 64, 8, 0)
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 8, 8, 0)
            T.ptx.wgmma.fence.sync.aligned()
            T.ptx[WGMMA](acc[0], acc[1], acc[2], acc[3], da[0], db[0], T.bool(True), 1, 1, 0, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            if fixed:
                T.ptx.wgmma.wait_group.sync.aligned(0)
            for i in range(4):
                acc[i] = acc[i] * T.float32(0.5)    # <-- scale
        T.ptx.wgmma.wait_group.sync.aligned(0)
        put(D, acc, tx)
    return k


def rescaled(A, B):
    d = np.zeros((64, 8), np.float32)
    for a, b in zip(A, B):
        d = (d + a.astype(np.float32) @ b.astype(np.float32).T) * np.float32(0.5)
    return d


@expect("async", cls="wgmma", buffer="r", lines=("mma", "store"), source="own: the registers of P overwritten while the second product reads them",
        args=operands, want=lambda A, B, D: {2: product(A, B)}, **HOPPER)
def registers_of_a_overwritten_in_flight(fixed):
    @T.prim_func
    def k(A: T.Buffer((STEPS, 64, 16), "float16"), B: T.Buffer((STEPS, 8, 16), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sb = T.alloc_shared((STEPS, 2, 8, 8), "float16", align=128)
        db = T.alloc_local((1,), "uint64")
        r = T.alloc_local((4,), "uint32")
        acc = T.alloc_local((4,), "float32")
        for s in range(STEPS):
            fill_b(sb, B, s, s, tx)
        for i in range(4):
            acc[i] = T.float32(0)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for s in range(STEPS):
            for i in range(4):
                row: T.let = tx // 32 * 16 + tx % 32 // 4 + i % 2 * 8
                col: T.let = tx % 4 * 2 + i // 2 * 8
                low: T.let = T.cast(T.reinterpret("uint16", A[s, row, col]), "uint32")
                high: T.let = T.cast(T.reinterpret("uint16", A[s, row, col + 1]), "uint32")
                r[i] = low | T.shift_left(high, T.uint32(16))  # <-- store
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 8, 8, 0)
            T.ptx.wgmma.fence.sync.aligned()
            T.ptx[WGMMA](acc[0], acc[1], acc[2], acc[3], r[0], r[1], r[2], r[3], db[0], T.bool(True), 1, 1, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            if fixed:
                T.ptx.wgmma.wait_group.sync.aligned(0)
        T.ptx.wgmma.wait_group.sync.aligned(0)
        put(D, acc, tx)
    return k


@expect("proxy", cls="wgmma", also=("async",), buffer="r", lines=("store", "mma"), source="PTX ISA wgmma.fence: also for the registers of A",
        args=operands, want=lambda A, B, D: {2: product(A, B)}, **HOPPER)
def registers_of_a_written_without_wgmma_fence(fixed):
    @T.prim_func
    def k(A: T.Buffer((STEPS, 64, 16), "float16"), B: T.Buffer((STEPS, 8, 16), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sb = T.alloc_shared((STEPS, 2, 8, 8), "float16", align=128)
        db = T.alloc_local((1,), "uint64")
        r = T.alloc_local((4,), "uint32")
        acc = T.alloc_local((4,), "float32")
        for s in range(STEPS):
            fill_b(sb, B, s, s, tx)
        for i in range(4):
            acc[i] = T.float32(0)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        T.ptx.wgmma.fence.sync.aligned()
        for s in range(STEPS):
            for i in range(4):
                row: T.let = tx // 32 * 16 + tx % 32 // 4 + i % 2 * 8
                col: T.let = tx % 4 * 2 + i // 2 * 8
                low: T.let = T.cast(T.reinterpret("uint16", A[s, row, col]), "uint32")
                high: T.let = T.cast(T.reinterpret("uint16", A[s, row, col + 1]), "uint32")
                r[i] = low | T.shift_left(high, T.uint32(16))  # <-- store
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 8, 8, 0)
            if fixed:
                T.ptx.wgmma.fence.sync.aligned()
            T.ptx[WGMMA](acc[0], acc[1], acc[2], acc[3], r[0], r[1], r[2], r[3], db[0], T.bool(True), 1, 1, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            T.ptx.wgmma.wait_group.sync.aligned(0)
        put(D, acc, tx)
    return k


def sparse_operands():
    return halves(3, 64, 16), halves(3, 8, 32, seed=1), zeros(64, 8, dtype=np.float32)


def sparse_product(A, B):
    """Of each four along k the first and the third are kept."""
    full = np.zeros((3, 64, 32), np.float32)
    full[:, :, 0::4], full[:, :, 2::4] = A[:, :, 0::2], A[:, :, 1::2]
    return np.einsum("smk,snk->mn", full, B.astype(np.float32))


@expect("async", cls="wgmma", also=("race",), buffer="sa", lines=("mma", "store"), source="own: sparse operand refilled before the wait",
        args=sparse_operands, want=lambda A, B, D: {2: sparse_product(A, B)}, **HOPPER)
def sparse_operand_refilled_before_the_wait(fixed):
    wait = fixed

    @T.prim_func
    def k(A: T.Buffer((3, 64, 16), "float16"), B: T.Buffer((3, 8, 32), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sa = T.alloc_shared((2, 64, 8), "float16", align=128)
        sb = T.alloc_shared((3, 4, 8, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 64, 8, 0)
        for i in range(4):
            acc[i] = T.float32(0)
        for s in range(3):
            for j in range(8):
                sa[tx // 64, tx % 64, j] = A[s, tx % 64, tx // 64 * 8 + j]  # <-- store
            for j in range(2):
                sb[s, tx // 64 * 2 + j, tx % 64 // 8, tx % 8] = B[s, tx % 64 // 8, (tx // 64 * 2 + j) * 8 + tx % 8]
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 8, 8, 0)
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            T.ptx.wgmma.fence.sync.aligned()
            T.ptx[SPARSE](acc[0], acc[1], acc[2], acc[3], da[0], db[0], T.uint32(0x88888888), 0, T.bool(True), 1, 1, 0, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            if wait:
                T.ptx.wgmma.wait_group.sync.aligned(0)
            T.cuda.cta_sync()
        T.ptx.wgmma.wait_group.sync.aligned(0)
        put(D, acc, tx)
    return k


@expect("proxy", cls="wgmma", also=("async",), buffer="acc", lines=("zero", "mma"), source="own: sparse accumulators cleared for the second tile without a fence",
        args=lambda: (halves(2, 64, 16), halves(2, 8, 32, seed=1), zeros(2, 64, 8, dtype=np.float32)),
        want=lambda A, B, D: {2: np.stack([sparse_one(a, b) for a, b in zip(A, B)])}, **HOPPER)
def second_tile_cleared_without_wgmma_fence(fixed):
    @T.prim_func
    def k(A: T.Buffer((2, 64, 16), "float16"), B: T.Buffer((2, 8, 32), "float16"), D: T.Buffer((2, 64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sa = T.alloc_shared((2, 2, 64, 8), "float16", align=128)
        sb = T.alloc_shared((2, 4, 8, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        for s in range(2):
            fill_a(sa, A, s, s, tx)
            for j in range(2):
                sb[s, tx // 64 * 2 + j, tx % 64 // 8, tx % 8] = B[s, tx % 64 // 8, (tx // 64 * 2 + j) * 8 + tx % 8]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for s in range(2):
            T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([s, 0, 0, 0]), 64, 8, 0)
            T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 8, 8, 0)
            for i in range(4):
                acc[i] = T.float32(0)               # <-- zero
            if fixed or s == 0:
                T.ptx.wgmma.fence.sync.aligned()
            T.ptx[SPARSE](acc[0], acc[1], acc[2], acc[3], da[0], db[0], T.uint32(0x88888888), 0, T.bool(True), 1, 1, 0, 0)  # <-- mma
            T.ptx.wgmma.commit_group.sync.aligned()
            T.ptx.wgmma.wait_group.sync.aligned(0)
            for i in range(4):
                D[s, tx // 32 * 16 + tx % 32 // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = acc[i]
    return k


def sparse_one(a, b):
    full = np.zeros((64, 32), np.float32)
    full[:, 0::4], full[:, 2::4] = a[:, 0::2], a[:, 1::2]
    return full @ b.astype(np.float32).T


# ---- mma -------------------------------------------------------------------------------------------------------------


@expect("race", cls="matrix", buffer="sm", lines=("st", "ld"), source="own: fragment stored by stmatrix, loaded transposed by another warp",
        launch=dict(grid=1, block=64), arch="sm_90a", args=lambda: (ints(4, 2, 8, 4), zeros(4, 2, 8, 4)), want=lambda A, B: {1: turned(A)})
def fragments_exchanged_between_warps_without_a_barrier(fixed):
    """Four tiles through two stages: warp w stores one 8 x 8 block and loads that of the other warp, transposed."""
    @T.prim_func
    def k(A: T.Buffer((4, 2, 8, 4), "int32"), B: T.Buffer((4, 2, 8, 4), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        w = T.warp_id([2])
        lane = T.lane_id([32])
        sm = T.alloc_shared((2, 2, 8, 8), "float16", align=16)
        r = T.alloc_local((1,), "uint32")
        for i in range(4):
            r[0] = T.reinterpret("uint32", A[i, w, lane // 4, lane % 4])
            T.ptx.stmatrix.sync.aligned.m8n8.x1.shared.b16(sm.ptr_to([i % 2, w, lane % 8, 0]), r[0])  # <-- st
            if fixed:
                T.cuda.cta_sync()
            T.ptx.ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16(r[0], sm.ptr_to([i % 2, 1 - w, lane % 8, 0]))  # <-- ld
            B[i, w, lane // 4, lane % 4] = T.reinterpret("int32", r[0])
            if not fixed:
                T.cuda.cta_sync()
    return k


def turned(A):
    h = np.ascontiguousarray(A).view(np.uint16).reshape(4, 2, 8, 8)
    return np.ascontiguousarray(h[:, ::-1].transpose(0, 1, 3, 2)).view(np.int32).reshape(4, 2, 8, 4)


@expect("race", cls="matrix", buffer="sm", lines=("store", "ld"), source="own: loop-back barrier of an mma main loop missing",
        launch=dict(grid=2, block=64), args=lambda: (halves(2, 6, 16, 16), halves(6, 8, 16, seed=1), zeros(2, 16, 8, dtype=np.float32)),
        want=lambda A, B, D: {2: np.einsum("csmk,snk->cmn", A.astype(np.float32), B.astype(np.float32))})
def main_loop_of_mma_without_the_barrier_at_its_end(fixed):
    """Both warps fill one tile; warp 0 multiplies it, warp 1 goes on to the next."""
    @T.prim_func
    def k(A: T.Buffer((2, 6, 16, 16), "float16"), B: T.Buffer((6, 8, 16), "float16"), D: T.Buffer((2, 16, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((24, 24), "float16", align=16)
        a = T.alloc_local((4,), "uint32")
        b = T.alloc_local((2,), "uint32")
        c = T.alloc_local((4,), "float32")
        lane: T.let = tx % 32
        for i in range(4):
            c[i] = T.float32(0)
        for s in range(6):
            for j in range(4):
                sm[tx // 4, tx % 4 * 4 + j] = A[bx, s, tx // 4, tx % 4 * 4 + j]  # <-- store
            for j in range(2):
                sm[16 + tx // 8, tx % 8 * 2 + j] = B[s, tx // 8, tx % 8 * 2 + j]
            T.cuda.cta_sync()
            if tx < 32:
                T.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(a[0], a[1], a[2], a[3], sm.ptr_to([lane % 16, lane // 16 * 8]))  # <-- ld
                T.ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16(b[0], b[1], sm.ptr_to([16 + lane % 8, lane // 8 % 2 * 8]))
                T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"](
                    c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], c[2], c[3])
            if fixed:
                T.cuda.cta_sync()
        if tx < 32:
            for i in range(4):
                D[bx, lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2] = c[i]
    return k


@expect("divergence", cls="matrix", also=("warp",), lines=("mma", "sync"), source="own: mma skipped by the lanes whose rows are beyond the edge",
        launch=dict(grid=1, block=32), args=lambda: (halves(2, 16, 16), halves(2, 8, 16, seed=1), zeros(2, 16, 8, dtype=np.float32)),
        want=lambda A, B, D: {2: np.einsum("smk,snk->smn", A.astype(np.float32), B.astype(np.float32)) * (np.arange(16) < 12)[None, :, None]})
def mma_guarded_by_the_row_of_the_lane(fixed):
    limit = 8 if fixed else 4

    @T.prim_func
    def k(A: T.Buffer((2, 16, 16), "float16"), B: T.Buffer((2, 8, 16), "float16"), D: T.Buffer((2, 16, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        sm = T.alloc_shared((24, 24), "float16", align=16)
        a = T.alloc_local((4,), "uint32")
        b = T.alloc_local((2,), "uint32")
        c = T.alloc_local((4,), "float32")
        for s in range(2):
            for j in range(8):
                sm[lane // 2, lane % 2 * 8 + j] = A[s, lane // 2, lane % 2 * 8 + j]
            for j in range(4):
                sm[16 + lane // 4, lane % 4 * 4 + j] = B[s, lane // 4, lane % 4 * 4 + j]
            T.cuda.warp_sync()
            T.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(a[0], a[1], a[2], a[3], sm.ptr_to([lane % 16, lane // 16 * 8]))
            T.ptx.ldmatrix.sync.aligned.m8n8.x2.shared.b16(b[0], b[1], sm.ptr_to([16 + lane % 8, lane // 8 % 2 * 8]))
            for i in range(4):
                c[i] = T.float32(0)
            if lane // 4 < limit:
                T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"](
                    c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], c[2], c[3])  # <-- mma
            for i in range(4):
                if lane // 4 + i // 2 * 8 < 12:
                    D[s, lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2] = c[i]
            T.cuda.warp_sync()                      # <-- sync
    return k
