# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and the fifth-generation matrix unit: allocation, loads and stores, copies, products, pairs of CTAs.

Products: D = A @ B.T with A (128, 16), B (32, 16) in float16; shared images sa[k / 8, m, k % 8], sb[k / 8, n, k % 8].
"""

import numpy as np
from expect import expect, halves, ints, zeros

from tirx.script import tirx as T

BLACKWELL = dict(launch=dict(grid=1, block=128), arch="sm_100a")
PAIR = dict(launch=dict(grid=2, block=128, cluster=2), arch="sm_100a")
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
COMMIT2 = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
MMA = "tcgen05.mma.cta_group::1.kind::f16"
MMA2 = "tcgen05.mma.cta_group::2.kind::f16"
LD16 = "tcgen05.ld.sync.aligned.32x32b.x16.b32"


@T.inline
def start(addr, bar, n, w, tx):
    """32 or more columns, n barriers of one arrival; ends with the barrier of the CTA."""
    if w == 0:
        T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
    if tx == 0:
        for i in range(n):
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([i]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.tcgen05.fence__before_thread_sync()
    T.cuda.cta_sync()
    T.ptx.tcgen05.fence__after_thread_sync()


@T.inline
def stop(addr, w):
    T.ptx.tcgen05.fence__before_thread_sync()
    T.cuda.cta_sync()
    if w == 0:
        T.ptx.tcgen05.fence__after_thread_sync()
        T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(64))


def operands(n=4):
    return halves(n, 128, 16), halves(n, 32, 16, seed=1), zeros(n, 128, 32, dtype=np.float32)


def products(A, B):
    return np.einsum("smk,snk->smn", A.astype(np.float32), B.astype(np.float32))


@expect("async", cls="tcgen05", also=("race",), buffer="sa", lines=("mma", "store"), source="own: operand stage refilled before the commit is waited for",
        args=operands, want=lambda A, B, D: {2: products(A, B).cumsum(0)[-1:].repeat(4, 0) * [[[0]], [[0]], [[0]], [[1]]]}, **BLACKWELL)
def operand_refilled_before_the_commit(fixed):
    """Four steps of K through one stage; the accumulator stays in tensor memory, so nothing else waits."""
    @T.prim_func
    def k(A: T.Buffer((4, 128, 16), "float16"), B: T.Buffer((4, 32, 16), "float16"), D: T.Buffer((4, 128, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 8), "float16", align=128)
        sb = T.alloc_shared((4, 2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((2,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((16,), "float32")
        start(addr, bar, 2, w, tx)
        for s in range(4):
            for j in range(16):
                sa[j // 8, tx, j % 8] = A[s, tx, j]  # <-- store
            for j in range(4):
                sb[s, j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[s, tx // 4, j * 4 + tx % 4]
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
                T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 32, 8, 0)
                T.cuda.tcgen05.encode_instr_descriptor(
                    di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=32, K=16,
                    trans_a=False, trans_b=False, n_cta_groups=1)
                T.ptx[MMA](addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(s > 0))  # <-- mma
                T.ptx[COMMIT](bar.ptr_to([0]))
            if fixed:
                T.cuda.mbarrier_wait(bar.ptr_to([0]), s % 2)
        if not fixed:
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 1)
        T.ptx.tcgen05.fence__after_thread_sync()
        for h in range(2):
            T.ptx[LD16](*r[0:16], T.cuda.get_tmem_addr(addr[0], w * 32, h * 16))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(16):
                D[3, tx, h * 16 + j] = r[j]
        stop(addr, w)
    return k


@expect("async", cls="tcgen05", also=("race", "proxy"), buffer="tmem", lines=("mma", "ld"), source="own: second tile begins before the epilogue of the first has loaded",
        args=operands, want=lambda A, B, D: {2: products(A, B)}, **BLACKWELL)
def accumulator_overwritten_while_the_epilogue_loads(fixed):
    """Four tiles, one accumulator; the issuing thread goes on when its own warp has loaded."""
    @T.prim_func
    def k(A: T.Buffer((4, 128, 16), "float16"), B: T.Buffer((4, 32, 16), "float16"), D: T.Buffer((4, 128, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((4, 2, 128, 8), "float16", align=128)
        sb = T.alloc_shared((4, 2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((4,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((16,), "float32")
        for s in range(4):
            for j in range(16):
                sa[s, j // 8, tx, j % 8] = A[s, tx, j]
            for j in range(4):
                sb[s, j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[s, tx // 4, j * 4 + tx % 4]
        T.ptx.fence.proxy.async_.shared__cta()
        start(addr, bar, 4, w, tx)
        for s in range(4):
            if tx == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([s, 0, 0, 0]), 128, 8, 0)
                T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s, 0, 0, 0]), 32, 8, 0)
                T.cuda.tcgen05.encode_instr_descriptor(
                    di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=32, K=16,
                    trans_a=False, trans_b=False, n_cta_groups=1)
                T.ptx[MMA](addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(False))  # <-- mma
                T.ptx[COMMIT](bar.ptr_to([s]))
            T.cuda.mbarrier_wait(bar.ptr_to([s]), 0)
            T.ptx.tcgen05.fence__after_thread_sync()
            for h in range(2):
                T.ptx[LD16](*r[0:16], T.cuda.get_tmem_addr(addr[0], w * 32, h * 16))  # <-- ld
                T.ptx.tcgen05.wait__ld.sync.aligned()
                for j in range(16):
                    D[s, tx, h * 16 + j] = r[j]
            T.ptx.tcgen05.fence__before_thread_sync()
            if fixed:
                T.cuda.cta_sync()
                T.ptx.tcgen05.fence__after_thread_sync()
        stop(addr, w)
    return k


@expect("proxy", cls="tcgen05", buffer="sb", lines=("store", "mma"), source="own: operand written by ordinary stores, no proxy fence",
        args=lambda: operands(1), want=lambda A, B, D: {2: products(A, B)}, **BLACKWELL)
def operand_of_an_mma_without_the_proxy_fence(fixed):
    @T.prim_func
    def k(A: T.Buffer((1, 128, 16), "float16"), B: T.Buffer((1, 32, 16), "float16"), D: T.Buffer((1, 128, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 8), "float16", align=128)
        sb = T.alloc_shared((2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((16,), "float32")
        for j in range(16):
            sa[j // 8, tx, j % 8] = A[0, tx, j]
        T.ptx.fence.proxy.async_.shared__cta()
        for j in range(4):
            sb[j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[0, tx // 4, j * 4 + tx % 4]  # <-- store
        if fixed:
            T.ptx.fence.proxy.async_.shared__cta()
        start(addr, bar, 1, w, tx)
        if tx == 0:
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), 32, 8, 0)
            T.cuda.tcgen05.encode_instr_descriptor(
                di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=32, K=16,
                trans_a=False, trans_b=False, n_cta_groups=1)
            T.ptx[MMA](addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(False))  # <-- mma
            T.ptx[COMMIT](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        for h in range(2):
            T.ptx[LD16](*r[0:16], T.cuda.get_tmem_addr(addr[0], w * 32, h * 16))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(16):
                D[0, tx, h * 16 + j] = r[j]
        stop(addr, w)
    return k


@expect("async", cls="tcgen05", buffer="tmem", lines=("st", "ld"), source="PTX ISA tcgen05.wait::st before another warp reads or the own one loads",
        args=lambda: (ints(3, 128, 2), zeros(3, 128, 2)), want=lambda A, B: {1: A[..., ::-1]}, **BLACKWELL)
def columns_loaded_before_their_store_is_complete(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 128, 2), "int32"), B: T.Buffer((3, 128, 2), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        v = T.alloc_local((2,), "int32")
        start(addr, bar, 1, w, tx)
        for i in range(3):
            v[0] = A[i, tx, 1]
            v[1] = A[i, tx, 0]
            T.ptx["tcgen05.st.sync.aligned.32x32b.x2.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, i % 2 * 2), v[0], v[1])  # <-- st
            if fixed:
                T.ptx.tcgen05.wait__st.sync.aligned()
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x2.b32"](v[0], v[1], T.cuda.get_tmem_addr(addr[0], w * 32, i % 2 * 2))  # <-- ld
            T.ptx.tcgen05.wait__ld.sync.aligned()
            B[i, tx, 0] = v[0]
            B[i, tx, 1] = v[1]
            if not fixed:
                T.ptx.tcgen05.wait__st.sync.aligned()
        stop(addr, w)
    return k


@expect("tmem", cls="tcgen05", buffer="tmem", lines=("ld",), source="PTX ISA tcgen05.ld: a warp reaches its own quarter of the lanes",
        args=lambda: (ints(2, 128), zeros(2, 128)), want=lambda A, B: {1: A}, **BLACKWELL)
def a_warp_loads_the_lanes_of_the_next_one(fixed):
    step = 0 if fixed else 1

    @T.prim_func
    def k(A: T.Buffer((2, 128), "int32"), B: T.Buffer((2, 128), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        v = T.alloc_local((1,), "int32")
        start(addr, bar, 1, w, tx)
        for i in range(2):
            v[0] = A[i, tx]
            T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, i), v[0])
        T.ptx.tcgen05.wait__st.sync.aligned()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence__after_thread_sync()
        for i in range(2):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](v[0], T.cuda.get_tmem_addr(addr[0], (w + step) % 4 * 32, i))  # <-- ld
            T.ptx.tcgen05.wait__ld.sync.aligned()
            B[i, tx] = v[0]
        stop(addr, w)
    return k


@expect("tmem", cls="tcgen05", buffer="tmem", lines=("dealloc",), source="own: columns given back at the end of each tile and once more at the end",
        args=lambda: (ints(3, 128), zeros(3, 128)), want=lambda A, B: {1: A}, **BLACKWELL)
def columns_of_a_tile_given_back_twice(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 128), "int32"), B: T.Buffer((3, 128), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        for i in range(3):
            if w == 0:
                T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(32))
            T.cuda.cta_sync()
            v[0] = A[i, tx]
            T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 0), v[0])
            T.ptx.tcgen05.wait__st.sync.aligned()
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](v[0], T.cuda.get_tmem_addr(addr[0], w * 32, 0))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            B[i, tx] = v[0]
            T.cuda.cta_sync()
            if w == 0:
                T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(32))
                T.cuda.warp_sync()
        if not fixed:
            if w == 0:
                T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(32))  # <-- dealloc
    return k


@expect("deadlock", cls="tcgen05", also=("tmem",), lines=("alloc", "sync"), alt_lines=(("alloc",),), source="own: a second allocation where the first ones have taken all columns",
        args=lambda: (zeros(2),), want=lambda B: {0: [1, 2]}, **BLACKWELL)
def allocation_that_waits_for_columns_of_its_own_cta(fixed):
    second = 128 if fixed else 512

    @T.prim_func
    def k(B: T.Buffer((2,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((2,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(128))
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([1]), T.uint32(second))  # <-- alloc
        T.cuda.cta_sync()                           # <-- sync
        if tx < 2:
            B[tx] = tx + 1
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(128))
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[1], T.uint32(second))
    return k


@expect("race", cls="tcgen05", also=("uninitialised",), buffer="addr", lines=("alloc", "ld"), alt_lines=(("ld",), ("alloc", "st"), ("st",)),
        source="own: address of the columns read before the allocating warp has written it", args=lambda: (ints(128), zeros(128)),
        want=lambda A, B: {1: A}, **BLACKWELL)
def address_of_the_columns_read_too_early(fixed):
    @T.prim_func
    def k(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(32))  # <-- alloc
        if fixed:
            T.cuda.cta_sync()
        v[0] = A[tx]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 0), v[0])  # <-- st
        T.ptx.tcgen05.wait__st.sync.aligned()
        T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](v[0], T.cuda.get_tmem_addr(addr[0], w * 32, 0))  # <-- ld
        T.ptx.tcgen05.wait__ld.sync.aligned()
        B[tx] = v[0]
        T.cuda.cta_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(32))
    return k


@expect("async", cls="tcgen05", buffer="tmem", lines=("cp", "ld"), source="own: copy into tensor memory committed, its barrier not waited for",
        args=lambda: (ints(3, 128, 4), zeros(3, 128, 4)), want=lambda A, B: {1: A}, **BLACKWELL)
def columns_loaded_before_the_copy_is_complete(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 128, 4), "int32"), B: T.Buffer((3, 128, 4), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        s = T.alloc_shared((3, 128, 4), "int32", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((3,), "uint64")
        d = T.alloc_local((1,), "uint64")
        r = T.alloc_local((4,), "int32")
        for i in range(3):
            for j in range(4):
                s[i, tx, j] = A[i, tx, j]
        T.ptx.fence.proxy.async_.shared__cta()
        start(addr, bar, 3, w, tx)
        for i in range(3):
            if tx == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(d.ptr_to([0]), s.ptr_to([i, 0, 0]), 128, 8, 0)
                T.ptx["tcgen05.cp.cta_group::1.128x128b"](addr[0] + T.cast(i * 4, "uint32"), d[0])  # <-- cp
                T.ptx[COMMIT](bar.ptr_to([i]))
            if fixed:
                T.cuda.mbarrier_wait(bar.ptr_to([i]), 0)
            T.ptx.tcgen05.fence__after_thread_sync()
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x4.b32"](*r[0:4], T.cuda.get_tmem_addr(addr[0], w * 32, i * 4))  # <-- ld
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(4):
                B[i, tx, j] = r[j]
        stop(addr, w)
    return k


@expect("async", cls="tcgen05", also=("race",), buffer="s", lines=("cp", "store"), source="own: one staging tile for all copies into tensor memory",
        args=lambda: (ints(3, 128, 4), zeros(3, 128, 4)), want=lambda A, B: {1: A}, **BLACKWELL)
def staging_tile_refilled_under_a_copy(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 128, 4), "int32"), B: T.Buffer((3, 128, 4), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        s = T.alloc_shared((128, 4), "int32", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((3,), "uint64")
        d = T.alloc_local((1,), "uint64")
        r = T.alloc_local((4,), "int32")
        start(addr, bar, 3, w, tx)
        for i in range(3):
            for j in range(4):
                s[tx, j] = A[i, tx, j]              # <-- store
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(d.ptr_to([0]), s.ptr_to([0, 0]), 128, 8, 0)
                T.ptx["tcgen05.cp.cta_group::1.128x128b"](addr[0] + T.cast(i * 4, "uint32"), d[0])  # <-- cp
                T.ptx[COMMIT](bar.ptr_to([i]))
            if fixed:
                T.cuda.mbarrier_wait(bar.ptr_to([i]), 0)
        for i in range(3):
            T.cuda.mbarrier_wait(bar.ptr_to([i]), 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        for i in range(3):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x4.b32"](*r[0:4], T.cuda.get_tmem_addr(addr[0], w * 32, i * 4))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(4):
                B[i, tx, j] = r[j]
        stop(addr, w)
    return k


@expect("async", cls="tcgen05", also=("uninitialised",), buffer="tmem", lines=("shift", "ld"), alt_lines=(("ld",),),
        source="own: rows shifted in tensor memory and loaded without waiting for the commit",
        args=lambda: (ints(128, 8), zeros(128, 8)), want=lambda A, B: {1: np.concatenate([A[1:], A[-1:]])}, **BLACKWELL)
def rows_loaded_before_the_shift_is_complete(fixed):
    """Row r takes row r + 1; the last one keeps its own."""
    @T.prim_func
    def k(A: T.Buffer((128, 8), "int32"), B: T.Buffer((128, 8), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        r = T.alloc_local((8,), "int32")
        start(addr, bar, 1, w, tx)
        for j in range(8):
            r[j] = A[tx, j]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x8.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 0), *r[0:8])
        T.ptx.tcgen05.wait__st.sync.aligned()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence__after_thread_sync()
        if tx == 0:
            T.ptx["tcgen05.shift.cta_group::1.down"](addr[0])  # <-- shift
            T.ptx[COMMIT](bar.ptr_to([0]))
        if fixed:
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        T.ptx["tcgen05.ld.sync.aligned.32x32b.x8.b32"](*r[0:8], T.cuda.get_tmem_addr(addr[0], w * 32, 0))  # <-- ld
        T.ptx.tcgen05.wait__ld.sync.aligned()
        for j in range(8):
            B[tx, j] = r[j]
        stop(addr, w)
    return k


def scaled_operands():
    r = np.random.default_rng(3)
    codes = lambda n: r.choice(np.array([0x38, 0xB8, 0x30, 0x40, 0], np.uint8), (n, 32))  # 1, -1, 0.5, 2, 0 as e4m3
    scales = lambda n: r.choice(np.array([126, 127, 128], np.uint32), n)  # e8m0
    return codes(128), codes(32), scales(128), scales(32), zeros(128, 32, dtype=np.float32)


def scaled(A, B, SA, SB):
    value = {0x38: 1, 0xB8: -1, 0x30: 0.5, 0x40: 2, 0: 0}
    a, b = (np.vectorize(value.get, otypes=[float])(m) for m in (A, B))
    return (a * 2.0 ** (SA.astype(int) - 127)[:, None]) @ (b * 2.0 ** (SB.astype(int) - 127)[:, None]).T


@expect("proxy", cls="tcgen05", also=("async", "race"), buffer="tmem", lines=("scale", "mma"), source="own: scale factors stored by all warps, used by one thread without the fences",
        args=scaled_operands, want=lambda A, B, SA, SB, D: {4: scaled(A, B, SA, SB).astype(np.float32)}, **BLACKWELL)
def scale_factors_without_the_fences_of_tensor_memory(fixed):
    @T.prim_func
    def k(A: T.Buffer((128, 32), "uint8"), B: T.Buffer((32, 32), "uint8"), SA: T.Buffer((128,), "uint32"), SB: T.Buffer((32,), "uint32"),
          D: T.Buffer((128, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        lane = T.lane_id([32])
        sa = T.alloc_shared((2, 128, 16), "uint8", align=128)
        sb = T.alloc_shared((2, 32, 16), "uint8", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((32,), "float32")
        s = T.alloc_local((5,), "uint32")
        start(addr, bar, 1, w, tx)
        for j in range(32):
            sa[j // 16, tx, j % 16] = A[tx, j]
        for j in range(8):
            sb[j // 4, tx // 4, j % 4 * 4 + tx % 4] = B[tx // 4, j * 4 + tx % 4]
        T.ptx.fence.proxy.async_.shared__cta()
        for q in range(4):
            s[q] = SA[q * 32 + lane]
        s[4] = SB[lane]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 32), s[0], s[1], s[2], s[3])  # <-- scale
        T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 36), s[4])
        if fixed:
            T.ptx.tcgen05.wait__st.sync.aligned()
            T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.ptx.tcgen05.fence__after_thread_sync()
        if tx == 0:
            T.cuda.tcgen05.encode_instr_descriptor_block_scaled(
                di.ptr_to([0]), d_dtype="float32", a_dtype="float8_e4m3fn", b_dtype="float8_e4m3fn", sfa_dtype="float8_e8m0fnu",
                sfb_dtype="float8_e8m0fnu", sfa_tmem_addr=0, sfb_tmem_addr=0, M=128, N=32, K=32, trans_a=False, trans_b=False,
                n_cta_groups=1)
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), 32, 8, 0)
            T.ptx["tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"](
                addr[0], da[0], db[0], di[0], addr[0] + T.uint32(32), addr[0] + T.uint32(36), T.bool(False))  # <-- mma
            T.ptx[COMMIT](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        T.ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](*r[0:32], T.cuda.get_tmem_addr(addr[0], w * 32, 0))
        T.ptx.tcgen05.wait__ld.sync.aligned()
        for j in range(32):
            D[tx, j] = r[j]
        stop(addr, w)
    return k


# ---- pairs of CTAs ---------------------------------------------------------------------------------------------------


def pair_operands():
    return halves(256, 16), halves(64, 16, seed=1), zeros(256, 64, dtype=np.float32)


@expect("async", cls="tcgen05", also=("race", "proxy", "uninitialised"), buffer="tmem", lines=("mma", "ld"), alt_lines=(("ld",),), source="own: only the leader's barrier is told, the other CTA loads",
        args=pair_operands, want=lambda A, B, D: {2: A.astype(np.float32) @ B.astype(np.float32).T}, **PAIR)
def other_half_of_the_pair_does_not_wait(fixed):
    """D of 256 x 64: each CTA of the pair has 128 rows; the commit goes to both, CTA 1 reads without waiting."""
    @T.prim_func
    def k(A: T.Buffer((256, 16), "float16"), B: T.Buffer((64, 16), "float16"), D: T.Buffer((256, 64), "float32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 8), "float16", align=128)
        sb = T.alloc_shared((2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((16,), "float32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for j in range(16):
            sa[j // 8, tx, j % 8] = A[rank * 128 + tx, j]
        for j in range(4):
            sb[j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[rank * 32 + tx // 4, j * 4 + tx % 4]
        T.ptx.fence.proxy.async_.shared__cta()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.cuda.cluster_sync()
        T.ptx.tcgen05.fence__after_thread_sync()
        if rank == 0 and tx == 0:
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), 32, 8, 0)
            T.cuda.tcgen05.encode_instr_descriptor(
                di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=256, N=64, K=16, trans_a=False,
                trans_b=False, n_cta_groups=2)
            T.ptx[MMA2](addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0),
                        T.uint32(0), T.uint32(0), T.bool(False))  # <-- mma
            T.ptx[COMMIT2](bar.ptr_to([0]), T.uint16(3))
        if fixed or rank == 0:
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx.tcgen05.fence__after_thread_sync()
        for h in range(4):
            T.ptx[LD16](*r[0:16], T.cuda.get_tmem_addr(addr[0], w * 32, h * 16))  # <-- ld
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(16):
                D[rank * 128 + tx, h * 16 + j] = r[j]
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.cuda.cluster_sync()
        if w == 0:
            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()
            T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](addr[0], T.uint32(64))
    return k


@expect("deadlock", cls="tcgen05", also=("async",), lines=("wait", "leave"), alt_lines=(("wait",), ("mma", "wait")),
        source="own: commit of a pair without multicast: the other CTA's barrier is never told",
        args=pair_operands, want=lambda A, B, D: {2: A.astype(np.float32) @ B.astype(np.float32).T}, **PAIR)
def commit_of_a_pair_told_to_the_leader_only(fixed):
    mask = 3 if fixed else 1

    @T.prim_func
    def k(A: T.Buffer((256, 16), "float16"), B: T.Buffer((64, 16), "float16"), D: T.Buffer((256, 64), "float32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 8), "float16", align=128)
        sb = T.alloc_shared((2, 32, 8), "float16", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((16,), "float32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for j in range(16):
            sa[j // 8, tx, j % 8] = A[rank * 128 + tx, j]
        for j in range(4):
            sb[j // 2, tx // 4, j % 2 * 4 + tx % 4] = B[rank * 32 + tx // 4, j * 4 + tx % 4]
        T.ptx.fence.proxy.async_.shared__cta()
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.cuda.cluster_sync()
        T.ptx.tcgen05.fence__after_thread_sync()
        if rank == 0 and tx == 0:
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), 32, 8, 0)
            T.cuda.tcgen05.encode_instr_descriptor(
                di.ptr_to([0]), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=256, N=64, K=16, trans_a=False,
                trans_b=False, n_cta_groups=2)
            T.ptx[MMA2](addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0),
                        T.uint32(0), T.uint32(0), T.bool(False))  # <-- mma
            T.ptx[COMMIT2](bar.ptr_to([0]), T.uint16(mask))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)    # <-- wait
        T.ptx.tcgen05.fence__after_thread_sync()
        for h in range(4):
            T.ptx[LD16](*r[0:16], T.cuda.get_tmem_addr(addr[0], w * 32, h * 16))
            T.ptx.tcgen05.wait__ld.sync.aligned()
            for j in range(16):
                D[rank * 128 + tx, h * 16 + j] = r[j]
        T.ptx.tcgen05.fence__before_thread_sync()
        T.cuda.cta_sync()
        T.cuda.cluster_sync()                       # <-- leave
        if w == 0:
            T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()
            T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](addr[0], T.uint32(64))
    return k
