# SPDX-License-Identifier: Apache-2.0
"""Single accesses and arithmetic: bounds, alignment, words nobody has written, divisions, shifts, device assertions."""

import numpy as np
from expect import expect, halves, ints, zeros

from tirx.script import tirx as T


@expect("out_of_bounds", cls="memory", buffer="T1", lines=("load",), source="own: transposed indices of a ragged tile",
        launch=dict(grid=2, block=64), args=lambda: (ints(24, 40), zeros(40, 24)), want=lambda T1, O: {1: T1.T})
def tile_of_the_transpose_guarded_by_the_wrong_side(fixed):
    """Tiles of 8 x 8, three a CTA and turn; rows and columns are mixed up in the guard."""
    limit_r, limit_c = (24, 40) if fixed else (40, 24)

    @T.prim_func
    def k(T1: T.Buffer((24, 40), "int32"), O: T.Buffer((40, 24), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((8, 9), "int32")
        for t in range(13):
            tile: T.let = t * 2 + bx
            r: T.let = tile // 5 * 8
            c: T.let = tile % 5 * 8
            T.cuda.cta_sync()
            sm[tx // 8, tx % 8] = 0
            if r + tx // 8 < limit_r and c + tx % 8 < limit_c:
                sm[tx // 8, tx % 8] = T1[r + tx // 8, c + tx % 8]  # <-- load
            T.cuda.cta_sync()
            if c + tx // 8 < 40 and r + tx % 8 < 24:
                O[c + tx // 8, r + tx % 8] = sm[tx % 8, tx // 8]
    return k


@expect("out_of_bounds", cls="memory", buffer="ring", lines=("store",), source="own: stage counter that never wraps",
        launch=dict(grid=1, block=32), args=lambda: (ints(10, 32), zeros(10, 32)), want=lambda A, B: {1: A[:, ::-1]})
def stage_counter_is_reset_one_late(fixed):
    last = 3 if fixed else 4

    @T.prim_func
    def k(A: T.Buffer((10, 32), "int32"), B: T.Buffer((10, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        ring = T.alloc_shared((3, 32), "int32")
        s: T.int32 = 0
        for i in range(10):
            ring[s, lane] = A[i, lane]              # <-- store
            T.cuda.warp_sync()
            B[i, lane] = ring[s, 31 - lane]
            T.cuda.warp_sync()
            s = s + 1
            if s == last:
                s = 0
    return k


@expect("misaligned", cls="memory", buffer="sm", lines=("ld",), source="own: padded rows that are no multiple of 16 bytes",
        launch=dict(grid=1, block=32), args=lambda: (halves(2, 16, 16), zeros(2, 32, 4, dtype=np.uint32)),
        want=lambda A, B: {1: np.stack([quads(a) for a in A])})
def ldmatrix_over_rows_with_an_odd_pad(fixed):
    """A pitch of 20 halves (40 bytes) avoids bank conflicts, and the alignment that ldmatrix asks for."""
    pitch = 24 if fixed else 20

    @T.prim_func
    def k(A: T.Buffer((2, 16, 16), "float16"), B: T.Buffer((2, 32, 4), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        sm = T.alloc_shared((16, pitch), "float16", align=16)
        r = T.alloc_local((4,), "uint32")
        for t in range(2):
            for j in range(8):
                sm[lane % 16, lane // 16 * 8 + j] = A[t, lane % 16, lane // 16 * 8 + j]
            T.cuda.warp_sync()
            T.ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(
                r[0], r[1], r[2], r[3], sm.ptr_to([lane % 16, lane // 16 * 8]))  # <-- ld
            for i in range(4):
                B[t, lane, i] = r[i]
            T.cuda.warp_sync()
    return k


def quads(tile):
    """Register i of a lane: rows 0-7 and 8-15 of the left half, then of the right one."""
    words = np.ascontiguousarray(tile).view(np.uint32)
    lane, i = np.arange(32)[:, None], np.arange(4)[None, :]
    return words[i % 2 * 8 + lane // 4, i // 2 * 4 + lane % 4]


@expect("misaligned", cls="bulk", buffer="A", lines=("copy",), source="own: rows of 36 bytes through the copy engine",
        launch=dict(grid=1, block=32), arch="sm_90a", args=lambda: (ints(6, 12), zeros(6, 8)), want=lambda A, B: {1: A[:, 4:]})
def bulk_copies_of_rows_from_an_odd_column(fixed):
    """Columns 2..9 of each row begin 8 bytes behind a multiple of 16."""
    first = 4 if fixed else 2

    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (6, 12), "int32", align=16)
        B = T.match_buffer(B_ptr, (6, 8), "int32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((2, 8), "int32", align=128)
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        for i in range(6):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(32))
                T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                    sm.ptr_to([i % 2, 0]), A.ptr_to([i, first]), T.uint32(32), bar.ptr_to([i % 2]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([i % 2]), i // 2 % 2)
            if tx < 8:
                B[i, tx] = sm[i % 2, tx]
            T.cuda.cta_sync()
    return k


@expect("uninitialised", cls="memory", buffer="part", lines=("load",), source="own: partial sums of warps that had no work",
        launch=dict(grid=1, block=128), args=lambda: (ints(2, 96), zeros(2)), want=lambda A, B: {1: A.sum(1, dtype=np.int32)})
def sum_over_the_warps_that_had_work(fixed):
    """96 elements, four warps: the fourth leaves its partial sum unwritten, the last step adds four."""
    n = 3 if fixed else 4

    @T.prim_func
    def k(A: T.Buffer((2, 96), "int32"), B: T.Buffer((2,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        part = T.alloc_shared((2, 4), "int32")
        for row in range(2):
            if tx < 96:
                v: T.int32 = T.cuda.warp_sum(A[row, tx])
                if tx % 32 == 0:
                    part[row, tx // 32] = v
        T.cuda.cta_sync()
        if tx < 2:
            s: T.int32 = 0
            for w in range(n):
                s += part[tx, w]                    # <-- load
            B[tx] = s
    return k


@expect("uninitialised", cls="tcgen05", buffer="tmem", lines=("ld",), source="own: more columns read back than written",
        launch=dict(grid=1, block=128), arch="sm_100a", args=lambda: (ints(2, 128), zeros(2, 128)), want=lambda A, B: {1: A})
def column_of_tensor_memory_nobody_has_stored(fixed):
    step = 0 if fixed else 1

    @T.prim_func
    def k(A: T.Buffer((2, 128), "int32"), B: T.Buffer((2, 128), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        if w == 0:
            T.ptx.tcgen05.alloc.cta_group__1.sync.aligned.shared__cta.b32(addr.ptr_to([0]), T.uint32(32))
        T.cuda.cta_sync()
        for i in range(2):
            v[0] = A[i, tx]
            T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, i), v[0])
        T.ptx.tcgen05.wait__st.sync.aligned()
        for i in range(2):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](v[0], T.cuda.get_tmem_addr(addr[0], w * 32, i + step))  # <-- ld
            T.ptx.tcgen05.wait__ld.sync.aligned()
            B[i, tx] = v[0]
        T.cuda.cta_sync()
        if w == 0:
            T.ptx.tcgen05.dealloc.cta_group__1.sync.aligned.b32(addr[0], T.uint32(32))
    return k


@expect("overflow", cls="arithmetic", lines=("index",), source="own: offset of a page times its stride in 32 bits",
        launch=dict(grid=1, block=32), args=lambda: (np.array([0, 1, 0, 3], np.int32), ints(32), zeros(4, 32), 1 << 29),
        want=lambda P, A, B, s: {2: np.where((P == 0)[:, None], A, 0)})
def page_times_stride_leaves_32_bits(fixed):
    """Pages beyond the window are skipped; page 1 begins at element 2**32, which in 32 bits is inside."""
    @T.prim_func
    def k(P: T.Buffer((4,), "int32"), A: T.Buffer((32,), "int32"), B: T.Buffer((4, 32), "int32"), stride: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        for i in range(4):
            if fixed:
                at: T.int64 = T.int64(P[i]) * T.int64(8) * T.int64(stride) + T.int64(lane)
                if at < 32:
                    B[i, lane] = A[at]
            else:
                near: T.int32 = P[i] * 8 * stride + lane  # <-- index
                if near >= 0 and near < 32:
                    B[i, lane] = A[near]
    return k


@expect("overflow", cls="arithmetic", lines=("index",), source="own: flattened index of a large virtual grid",
        launch=dict(grid=2, block=32), args=lambda: (ints(60), zeros(64), 1 << 16),
        want=lambda A, B, n: {1: A[(np.arange(2, dtype=np.int64)[:, None] * 65535 * n + np.arange(32)).ravel() % 60]})
def flattened_index_of_a_virtual_grid(fixed):
    """row * n + column with n = 2**16 rows and columns; the last rows pass 2**31, and 60 is no power of two."""
    @T.prim_func
    def k(A: T.Buffer((60,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([2])
        lane = T.thread_id([32])
        row: T.let = bx * 65535
        if fixed:
            at: T.int64 = T.int64(row) * T.int64(n) + T.int64(lane)
            B[bx * 32 + lane] = A[at % T.int64(60)]
        else:
            B[bx * 32 + lane] = A[(row * n + lane) % 60]  # <-- index
    return k


@expect("arithmetic", cls="arithmetic", lines=("div",), source="own: mean over an empty segment",
        launch=dict(grid=1, block=32), args=lambda: (ints(32, lo=0, hi=99), (np.arange(32) % 5).astype(np.int32), zeros(32)),
        want=lambda A, n, B: {2: A // np.maximum(n, 1)})
def mean_of_an_empty_segment(fixed):
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), n: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if fixed:
            B[lane] = A[lane] // T.max(n[lane], 1)
        else:
            B[lane] = A[lane] // n[lane]            # <-- div
    return k


@expect("arithmetic", cls="arithmetic", lines=("shift",), source="own: mask of the low n bits for n = 32",
        launch=dict(grid=1, block=33), args=lambda: (np.zeros(33, np.uint32),),
        want=lambda B: {0: ((1 << np.arange(33, dtype=np.uint64)) - 1).astype(np.uint32)})
def mask_of_all_32_bits(fixed):
    @T.prim_func
    def k(B: T.Buffer((33,), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([33])
        if fixed:
            B[tx] = T.cast((T.uint64(1) << T.cast(tx, "uint64")) - T.uint64(1), "uint32")
        else:
            B[tx] = (T.uint32(1) << T.cast(tx, "uint32")) - T.uint32(1)  # <-- shift
    return k


@expect("arithmetic", cls="arithmetic", lines=("mod",), source="own: slot of a table whose size comes from the caller",
        launch=dict(grid=1, block=64), args=lambda: (ints(64, lo=0), zeros(64), 0), want=lambda A, B, n: {1: A})
def slot_in_a_table_of_no_size(fixed):
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if fixed:
            if n > 0:
                B[tx] = A[tx] % n
            else:
                B[tx] = A[tx]
        else:
            B[tx] = A[tx] % n                       # <-- mod
    return k


@expect("assert", cls="arithmetic", lines=("assert",), source="own: a label outside the classes",
        launch=dict(grid=1, block=32), args=lambda: (ints(32, lo=0, hi=12), zeros(10)),
        want=lambda L, H: {1: np.bincount(L[L < 10], minlength=10).astype(np.int32)})
def label_outside_the_classes(fixed):
    @T.prim_func
    def k(L: T.Buffer((32,), "int32"), H: T.Buffer((10,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if fixed:
            if L[lane] < 10:
                T.ptx.red.relaxed.gpu.global_.add.s32(H.ptr_to([L[lane]]), 1)
        else:
            assert L[lane] < 10, "a label is a class"  # <-- assert
            T.ptx.red.relaxed.gpu.global_.add.s32(H.ptr_to([L[lane]]), 1)
    return k


@expect("assert", cls="arithmetic", lines=("assert",), source="own: an order that a reduction relies on",
        launch=dict(grid=1, block=64), args=lambda: (np.array([0, 3, 7, 7, 12, 64], np.int32), zeros(5)),
        want=lambda S, B: {1: np.diff(S)})
def segments_must_not_be_empty(fixed):
    least = 0 if fixed else 1

    @T.prim_func
    def k(S: T.Buffer((6,), "int32"), B: T.Buffer((5,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if tx < 5:
            n: T.int32 = S[tx + 1] - S[tx]
            assert n >= least, "an empty segment"   # <-- assert
            B[tx] = n
    return k
