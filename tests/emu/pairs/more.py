# SPDX-License-Identifier: Apache-2.0
"""Kernels that overlap, bulk zeros, scattered rows, A in tensor memory, descriptors, and barriers that two groups share."""

import numpy as np
from expect import expect, halves, ints, zeros

import tirx
from tirx.script import tirx as T


def at16(*shape, fill=None, seed=0):
    raw = np.zeros(int(np.prod(shape)) + 4, np.int32)
    first = -raw.ctypes.data % 16 // 4
    out = raw[first : first + int(np.prod(shape))].reshape(shape)
    out[...] = ints(*shape, seed=seed) if fill is None else fill
    return out


# ---- a kernel that begins before the one in front of it has ended ---------------------------------------------------


@expect("race", cls="launch", buffer="P", lines=("load",), source="own: partial sums prefetched in front of griddepcontrol.wait",
        launch=dict(grid=4, block=64), arch="sm_90a", args=lambda: (ints(4, 64), zeros(4, 64), zeros(64)),
        want=lambda A, P, S: {2: A.sum(0, dtype=np.int32) * 2})
def partial_sums_fetched_before_the_wait(fixed):
    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), P: T.Buffer((4, 64), "int32"), S: T.Buffer((64,), "int32")):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=4, block=64)):
            bx, t = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
            P[bx, t] = A[bx, t] * 2
            T.ptx.griddepcontrol.launch_dependents()
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64, programmatic_stream_serialization=True)):
            t2 = T.cuda.thread_idx("x")
            if fixed:
                T.ptx.griddepcontrol.wait()
            s: T.int32 = 0
            for i in range(4):
                s += P[i, t2]                       # <-- load
            if not fixed:
                T.ptx.griddepcontrol.wait()
            S[t2] = s
    return k


@expect("race", cls="launch", buffer="A", lines=("store",), source="own: input overwritten for the next step while the kernel before still reads it",
        launch=dict(grid=4, block=64), arch="sm_90a", args=lambda: (ints(4, 64), zeros(4, 64)),
        want=lambda A, P: {0: np.zeros((4, 64)), 1: A + 1})
def input_cleared_before_the_wait(fixed):
    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), P: T.Buffer((4, 64), "int32")):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=4, block=64)):
            bx, t = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
            T.ptx.griddepcontrol.launch_dependents()
            P[bx, t] = A[bx, t] + 1
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=4, block=64, programmatic_stream_serialization=True)):
            b2, t2 = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
            if fixed:
                T.ptx.griddepcontrol.wait()
            A[b2, t2] = 0                           # <-- store
            if not fixed:
                T.ptx.griddepcontrol.wait()
    return k


# ---- bulk zeros, scattered rows -------------------------------------------------------------------------------------


@expect("race", cls="remote", also=("uninitialised",), buffer="hist", lines=("zero", "add"), alt_lines=(("add",),), source="own: counters cleared by st.bulk, used without a barrier",
        launch=dict(grid=1, block=64), arch="sm_100a", args=lambda: (ints(3, 64, lo=0, hi=16), zeros(3, 16)),
        want=lambda A, H: {1: np.stack([np.bincount(a, minlength=16) for a in A])})
def counters_used_before_they_are_cleared(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 64), "int32"), H: T.Buffer((3, 16), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        hist = T.alloc_shared((16,), "int32", align=16)
        for i in range(3):
            if tx == 0:
                T.ptx["st.bulk.weak.shared::cta"](hist.ptr_to([0]), T.uint64(64))  # <-- zero
            if fixed:
                T.cuda.cta_sync()
            T.ptx.red.relaxed.cta.shared.add.s32(hist.ptr_to([A[i, tx]]), 1)  # <-- add
            T.cuda.cta_sync()
            if tx < 16:
                H[i, tx] = hist[tx]
            T.cuda.cta_sync()
    return k


def scattered():
    b = at16(32, 16, fill=-1)
    return ints(3, 4, 16), np.array([[3, 30, 0, 9], [1, 2, 31, 8], [17, 16, 15, 14]], np.int32), tirx.tensor_map(b, (16, 1)), b


def scatter(A, I, m, B):
    B[I] = A
    return B


@expect("async", cls="tensor", also=("race",), buffer="sm", lines=("copy", "store"), source="own: rows of a scatter refilled before they have been read",
        launch=dict(grid=1, block=64), arch="sm_100a", args=scattered, want=lambda A, I, m, B: {3: scatter(A, I, m, B)})
def rows_refilled_under_a_scatter(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 4, 16), "int32"), I: T.Buffer((3, 4), "int32"), m: T.TensorMap(), B: T.Buffer((32, 16), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((4, 16), "int32", align=128)
        for i in range(3):
            sm[tx // 16, tx % 16] = A[i, tx // 16, tx % 16]  # <-- store
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"](
                    T.address_of(m), 0, I[i, 0], I[i, 1], I[i, 2], I[i, 3], sm.ptr_to([0, 0]))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                if fixed:
                    T.ptx.cp.async_.bulk.wait_group.read(0)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


# ---- barriers that two groups share ---------------------------------------------------------------------------------


@expect("race", cls="barrier", also=("barrier",), buffer="sm", lines=("store", "load"), alt_lines=(("sync",),),
        source="own: one named barrier for two pairs of warps", launch=dict(grid=1, block=128),
        args=lambda: (ints(4, 2, 64), zeros(4, 2, 64)), want=lambda A, B: {1: A[..., ::-1]})
def two_pairs_of_warps_share_a_barrier(fixed):
    """Warp 0 may meet warp 2: the barrier counts 64 threads, whoever they are."""
    step = 1 if fixed else 0

    @T.prim_func
    def k(A: T.Buffer((4, 2, 64), "int32"), B: T.Buffer((4, 2, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((2, 2, 64), "int32")
        group: T.let = tx // 64
        for i in range(4):
            if tx // 32 % 2 == 0:
                for wait in range(group):
                    T.cuda.warp_sync()
            sm[i % 2, group, tx % 64] = A[i, group, tx % 64]  # <-- store
            T.ptx.bar.sync(T.cast(1 + group * step, "uint32"), T.uint32(64))  # <-- sync
            B[i, group, tx % 64] = sm[i % 2, group, 63 - tx % 64]  # <-- load
    return k


@expect("async", cls="mbarrier", also=("race", "deadlock", "mbarrier"), lines=("copy", "load"), alt_lines=(("copy",), ("wait", "free"), ("wait",)),
        source="own: one lane of the copying warp not counted", launch=dict(grid=1, block=64), arch="sm_90a",
        args=lambda: (ints(8, 32), zeros(8, 32)), want=lambda A, B: {1: A[:, ::-1]})
def arrivals_of_copies_counted_one_short(fixed):
    """31 of 32 lanes complete the phase; the last arrival counts for the next one, which then ends two lanes early, and so on."""
    count = 32 if fixed else 31

    @T.prim_func
    def k(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 32), "int32")
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(count))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(32))
        T.cuda.cta_sync()
        if tx < 32:
            for i in range(8):
                T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)  # <-- free
                T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([i % 2, tx]), A.ptr_to([i, tx]), 4)  # <-- copy
                T.ptx.cp.async_.mbarrier.arrive.noinc.shared.b64(full.ptr_to([i % 2]))
        else:
            for i in range(8):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)  # <-- wait
                B[i, tx - 32] = sm[i % 2, 63 - tx]  # <-- load
                T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))
    return k


# ---- A in tensor memory ---------------------------------------------------------------------------------------------


def packed():
    return halves(2, 128, 16), halves(2, 32, 16, seed=1), zeros(2, 128, 32, dtype=np.float32)


@expect("async", cls="tcgen05", also=("proxy", "race"), buffer="tmem", lines=("st", "mma"), source="own: P of an attention stored in tensor memory, multiplied before the store is complete",
        launch=dict(grid=1, block=128), arch="sm_100a", args=packed,
        want=lambda A, B, D: {2: np.einsum("smk,snk->smn", A.astype(np.float32), B.astype(np.float32))})
def a_in_tensor_memory_multiplied_before_its_store_is_complete(fixed):
    @T.prim_func
    def k(A: T.Buffer((2, 128, 16), "float16"), B: T.Buffer((2, 32, 16), "float16"), D: T.Buffer((2, 128, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sb = T.alloc_shared((2, 2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        p = T.alloc_local((8,), "uint32")
        r = T.alloc_local((32,), "float32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for s in range(2):
            for j in range(4):
                sb[s, j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[s, tx // 4, j * 4 + tx % 4]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for s in range(2):
            for j in range(8):
                low: T.let = T.cast(T.reinterpret("uint16", A[s, tx, 2 * j]), "uint32")
                high: T.let = T.cast(T.reinterpret("uint16", A[s, tx, 2 * j + 1]), "uint32")
                p[j] = low | T.shift_left(high, T.uint32(16))
            T.ptx["tcgen05.st.sync.aligned.32x32b.x8.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 32), *p[0:8])  # <-- st
            if fixed:
                T.ptx.tcgen05.wait__st.sync.aligned()
            T.ptx.tcgen05.fence__before_thread_sync()
            T.cuda.cta_sync()
            T.ptx.tcgen05.fence__after_thread_sync()
            if tx == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 32, 8, 0)
                T.cuda.tcgen05.encode_instr_descriptor(
                    di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=32, K=16,
                    trans_a=False, trans_b=False, n_cta_groups=1)
                T.ptx["tcgen05.mma.cta_group::1.kind::f16"](
                    addr[0], addr[0] + T.uint32(32), db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(False))  # <-- mma
                T.ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"](bar.ptr_to([0]))
            T.cuda.mbarrier_wait(bar.ptr_to([0]), s)
            T.ptx.tcgen05.fence__after_thread_sync()
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](*r[0:32], T.cuda.get_tmem_addr(addr[0], w * 32, 0))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(32):
                D[s, tx, j] = r[j]
            T.ptx.tcgen05.fence__before_thread_sync()
            T.cuda.cta_sync()
            T.ptx.tcgen05.fence__after_thread_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(64))
    return k


# ---- descriptors ----------------------------------------------------------------------------------------------------


@expect("out_of_bounds", cls="wgmma", also=("uninitialised",), lines=("mma",), source="own: last step of K beyond the tile",
        launch=dict(grid=1, block=128), arch="sm_90a", args=lambda: (halves(64, 48), halves(8, 48, seed=1), zeros(64, 8, dtype=np.float32)),
        want=lambda A, B, D: {2: A.astype(np.float32) @ B.astype(np.float32).T})
def descriptor_advanced_beyond_the_tile(fixed):
    """Three steps of 16; broken, four."""
    steps = 3 if fixed else 4

    @T.prim_func
    def k(A: T.Buffer((64, 48), "float16"), B: T.Buffer((8, 48), "float16"), D: T.Buffer((64, 8), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sb = T.alloc_shared((6, 8, 8), "float16", align=128)
        sa = T.alloc_shared((6, 64, 8), "float16", align=128)
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        acc = T.alloc_local((4,), "float32")
        for j in range(24):
            sa[tx // 64 * 3 + j // 8, tx % 64, j % 8] = A[tx % 64, tx // 64 * 24 + j]
        for j in range(3):
            sb[j * 2 + tx // 64, tx % 64 // 8, tx % 8] = B[tx % 64 // 8, j * 16 + tx // 64 * 8 + tx % 8]
        for i in range(4):
            acc[i] = T.float32(0)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        T.cuda.wgmma.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 64, 8, 0)
        T.cuda.wgmma.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), 8, 8, 0)
        T.ptx.wgmma.fence.sync.aligned()
        for s in range(steps):
            T.ptx["wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"](
                acc[0], acc[1], acc[2], acc[3], da[0] + T.cast(s * 128, "uint64"), db[0] + T.cast(s * 16, "uint64"), T.bool(True), 1, 1, 0, 0)  # <-- mma
        T.ptx.wgmma.commit_group.sync.aligned()
        T.ptx.wgmma.wait_group.sync.aligned(0)
        for i in range(4):
            D[tx // 32 * 16 + tx % 32 // 4 + i // 2 * 8, tx % 4 * 2 + i % 2] = acc[i]
    return k
