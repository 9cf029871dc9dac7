# SPDX-License-Identifier: Apache-2.0
"""Barriers of threads: divergence, counts, roles that wait in a circle, loops that never end; instructions of a warp."""

import numpy as np
from expect import expect, ints, zeros

from tirx.script import tirx as T


@expect("divergence", cls="barrier", buffer="barrier 0", lines=("sync",), source="own: early exit of threads of a warp in front of a barrier loop",
        launch=dict(grid=1, block=64), args=lambda: (ints(3, 50), zeros(3, 50)), want=lambda A, B: {1: A[:, ::-1]})
def barrier_in_a_loop_bounded_by_the_lane(fixed):
    """Lanes with two rows to do run the loop twice, the others three times."""
    @T.prim_func
    def k(A: T.Buffer((3, 50), "int32"), B: T.Buffer((3, 50), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        if fixed:
            for r in range(3):
                if tx < 50:
                    sm[tx] = A[r, tx]
                T.cuda.cta_sync()
                if tx < 50:
                    B[r, tx] = sm[49 - tx]
                T.cuda.cta_sync()
        else:
            for r in range(T.if_then_else(tx < 50, 3, 0)):
                sm[tx] = A[r, tx]
                T.cuda.cta_sync()                   # <-- sync
                B[r, tx] = sm[49 - tx]
                T.cuda.cta_sync()
    return k


@expect("divergence", cls="barrier", buffer="barrier 0", lines=("one", "two"), source="own: the two sides of a branch synchronise separately",
        launch=dict(grid=1, block=48), args=lambda: (ints(48), zeros(48)), want=lambda A, B: {1: A[::-1]})
def a_barrier_in_each_branch_of_one_warp(fixed):
    @T.prim_func
    def k(A: T.Buffer((48,), "int32"), B: T.Buffer((48,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([48])
        sm = T.alloc_shared((48,), "int32")
        if fixed:
            sm[tx] = A[tx]
            T.cuda.cta_sync()
        elif tx < 20:
            sm[tx] = A[tx]
            T.cuda.cta_sync()                       # <-- one
        else:
            sm[tx] = A[tx]
            T.cuda.cta_sync()                       # <-- two
        B[tx] = sm[47 - tx]
    return k


@expect("divergence", cls="barrier", also=("warp",), lines=("ld", "sync"), source="own: ldmatrix under a condition of the lane",
        launch=dict(grid=1, block=32), args=lambda: (ints(2, 8, 4), zeros(2, 32)), want=lambda A, B: {1: A.reshape(2, 32)})
def ldmatrix_for_the_lanes_that_have_a_row(fixed):
    """x1 takes eight addresses, of lanes 0 to 7: but all 32 lanes have to execute it."""
    @T.prim_func
    def k(A: T.Buffer((2, 8, 4), "int32"), B: T.Buffer((2, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        sm = T.alloc_shared((8, 4), "int32", align=16)
        r = T.alloc_local((1,), "uint32")
        for t in range(2):
            sm[lane // 4, lane % 4] = A[t, lane // 4, lane % 4]
            T.cuda.warp_sync()
            r[0] = T.uint32(0)
            if fixed:
                T.ptx.ldmatrix.sync.aligned.m8n8.x1.shared.b16(r[0], sm.ptr_to([lane % 8, 0]))
            else:
                if lane < 8:
                    T.ptx.ldmatrix.sync.aligned.m8n8.x1.shared.b16(r[0], sm.ptr_to([lane % 8, 0]))  # <-- ld
            B[t, lane] = T.reinterpret("int32", r[0])
            T.cuda.warp_sync()                      # <-- sync
    return k


@expect("barrier", cls="barrier", buffer="barrier 3", lines=("sync",), source="PTX ISA bar: the number of threads is a multiple of the warp size",
        launch=dict(grid=1, block=64), args=lambda: (ints(2, 40), zeros(2, 40)), want=lambda A, B: {1: A[:, ::-1]})
def barrier_of_forty_threads(fixed):
    n = 64 if fixed else 40

    @T.prim_func
    def k(A: T.Buffer((2, 40), "int32"), B: T.Buffer((2, 40), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 40), "int32")
        for t in range(2):
            if tx < 40:
                sm[t, tx] = A[t, tx]
            T.ptx.bar.sync(T.uint32(3), T.uint32(n))  # <-- sync
            if tx < 40:
                B[t, tx] = sm[t, 39 - tx]
    return k


@expect("barrier", cls="barrier", buffer="barrier 4", lines=("arrive", "sync"), source="own: consumer added to a pair of producer warps, count not raised",
        launch=dict(grid=1, block=96), args=lambda: (ints(3, 32), zeros(3, 64)), want=lambda A, B: {1: np.tile(A, 2)})
def two_consumers_with_the_count_of_one(fixed):
    """The producer arrives for 64 threads, the two consumer warps wait for 96."""
    n = 96 if fixed else 64

    @T.prim_func
    def k(A: T.Buffer((3, 32), "int32"), B: T.Buffer((3, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([96])
        sm = T.alloc_shared((32,), "int32")
        for i in range(3):
            if tx < 32:
                sm[tx] = A[i, tx]
                T.ptx.bar.arrive(T.uint32(4), T.uint32(n))  # <-- arrive
                T.ptx.bar.sync(T.uint32(5), T.uint32(96))
            else:
                T.ptx.bar.sync(T.uint32(4), T.uint32(96))  # <-- sync
                B[i, tx - 32] = sm[tx % 32]
                T.ptx.bar.arrive(T.uint32(5), T.uint32(96))
    return k


@expect("barrier", cls="cluster", buffer="cluster barrier", lines=("arrive",), source="PTX ISA barrier.cluster: arrive and wait alternate",
        launch=dict(grid=2, block=32, cluster=2), arch="sm_90a", args=lambda: (ints(2, 32), zeros(2, 32)), want=lambda A, B: {1: A[::-1]})
def cluster_barrier_arrived_at_twice(fixed):
    """The loop arrives early for the next turn, and the epilogue arrives once more without the wait."""
    @T.prim_func
    def k(A: T.Buffer((2, 32), "int32"), B: T.Buffer((2, 32), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([32])
        sm = T.alloc_shared((32,), "int32")
        at = T.alloc_local((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        sm[tx] = A[rank, tx]
        T.ptx.barrier.cluster.arrive.release.aligned()
        T.ptx.barrier.cluster.wait.acquire.aligned()
        T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(sm.ptr_to([tx])), T.cast(1 - rank, "uint32"))
        T.ptx.ld.shared__cluster.b32(v[0], at[0])
        T.ptx.barrier.cluster.arrive.release.aligned()
        B[rank, tx] = v[0]
        if fixed:
            T.ptx.barrier.cluster.wait.acquire.aligned()
        else:
            T.ptx.barrier.cluster.arrive.release.aligned()  # <-- arrive
            T.ptx.barrier.cluster.wait.acquire.aligned()
    return k


@expect("deadlock", cls="deadlock", buffer=None, lines=("a", "b"), source="own: two warps take two named barriers in opposite order",
        launch=dict(grid=1, block=64), args=lambda: (ints(64), zeros(64)), want=lambda A, B: {1: A[::-1]})
def two_barriers_in_opposite_order(fixed):
    first, second = (1, 2) if fixed else (2, 1)

    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        if tx < 32:
            T.ptx.bar.sync(T.uint32(1), T.uint32(64))  # <-- a
            T.ptx.bar.sync(T.uint32(2), T.uint32(64))
        else:
            T.ptx.bar.sync(T.uint32(first), T.uint32(64))  # <-- b
            T.ptx.bar.sync(T.uint32(second), T.uint32(64))
        B[tx] = sm[63 - tx]
    return k


@expect("deadlock", cls="deadlock", buffer="empty", lines=("wait",), source="own: consumer leaves its loop a turn early",
        launch=dict(grid=2, block=64), arch="sm_90a", args=lambda: (ints(2, 8, 32), zeros(2, 8, 32)), want=lambda A, B: {1: A[..., ::-1]})
def consumer_takes_one_tile_less(fixed):
    """Two stages, eight tiles, one consumer arrival too few: the producer drains and waits for ever."""
    n = 8 if fixed else 7

    @T.prim_func
    def k(A: T.Buffer((2, 8, 32), "int32"), B: T.Buffer((2, 8, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 32), "int32")
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(32))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(32))
        T.cuda.cta_sync()
        if tx < 32:
            for i in range(10):
                T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)  # <-- wait
                if i < 8:
                    sm[i % 2, tx] = A[bx, i, tx]
                    T.ptx.mbarrier.arrive.shared.b64(full.ptr_to([i % 2]))
        else:
            for i in range(n):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
                B[bx, i, tx - 32] = sm[i % 2, 63 - tx]
                T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))
    return k


@expect("deadlock", cls="deadlock", lines=("spin",), alt_lines=(("spin", "loop"), ("loop",)), source="own: spin lock that a thread takes twice",
        launch=dict(grid=2, block=32), args=lambda: (zeros(1, dtype=np.uint32), zeros(1)), want=lambda L, n: {1: [4]})
def lock_taken_again_without_release(fixed):
    """Livelock: every thread goes on running, none gets on."""
    @T.prim_func
    def k(L: T.Buffer((1,), "uint32"), n: T.Buffer((1,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        lane = T.thread_id([32])
        old = T.alloc_local((1,), "uint32")
        if lane == 0:
            for i in range(2):
                old[0] = T.uint32(1)
                while old[0] != T.uint32(0):        # <-- loop
                    T.ptx.atom.acquire.gpu.global_.exch.b32(old[0], L.ptr_to([0]), T.uint32(1))  # <-- spin
                n[0] = n[0] + 1
                if fixed:
                    T.ptx.st.release.gpu.global_.b32(L.ptr_to([0]), T.uint32(0))
    return k


@expect("deadlock", cls="deadlock", lines=("loop",), alt_lines=(("loop", "poll"), ("poll",)), source="own: flag of an earlier epoch",
        launch=dict(grid=2, block=32, cluster=2), arch="sm_90a", args=lambda: (zeros(1, dtype=np.uint32), ints(2, 32), zeros(2, 32)),
        want=lambda F, D, B: {2: np.stack([D[0], D[0]])})
def flag_compared_with_the_wrong_epoch(fixed):
    """CTA 0 counts the flag up twice, CTA 1 waits for three."""
    epoch = 2 if fixed else 3

    @T.prim_func
    def k(F: T.Buffer((1,), "uint32"), D: T.Buffer((2, 32), "int32"), B: T.Buffer((2, 32), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        lane = T.thread_id([32])
        seen = T.alloc_local((1,), "uint32")
        if rank == 0:
            B[0, lane] = D[0, lane]
            T.cuda.warp_sync()
            if lane == 0:
                for i in range(2):
                    T.ptx.red.release.gpu.global_.add.u32(F.ptr_to([0]), T.uint32(1))
        else:
            if lane == 0:
                seen[0] = T.uint32(0)
                while seen[0] < T.uint32(epoch):    # <-- loop
                    T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([0]))  # <-- poll
            T.cuda.warp_sync()
            B[1, lane] = B[0, lane]
    return k


# ---- instructions of a warp ------------------------------------------------------------------------------------------


@expect("warp", cls="warp", lines=("shfl",), source="own: last partial warp of a reduction",
        launch=dict(grid=1, block=40), args=lambda: (ints(40), zeros(2)), want=lambda A, B: {1: [A[:32].sum(), A[32:].sum()]})
def reduction_with_lanes_that_do_not_exist(fixed):
    """40 threads: warp 1 has eight lanes, and the full mask names 32."""
    @T.prim_func
    def k(A: T.Buffer((40,), "int32"), B: T.Buffer((2,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([40])
        v: T.int32 = A[tx]
        o: T.int32 = 0
        for e in range(5):
            d: T.let = T.cast(T.shift_right(16, e), "uint32")
            if fixed:
                if tx < 32:
                    T.ptx.shfl_sync.bfly.b32(o, v, d, T.uint32(31), T.uint32(0xFFFFFFFF))
                    v = v + o
                elif e > 1:
                    T.ptx.shfl_sync.bfly.b32(o, v, d, T.uint32(31), T.uint32(0xFF))
                    v = v + o
            else:
                T.ptx.shfl_sync.bfly.b32(o, v, d, T.uint32(31), T.uint32(0xFFFFFFFF))  # <-- shfl
                v = v + o
        if tx % 32 == 0:
            B[tx // 32] = v
    return k


@expect("warp", cls="warp", lines=("vote",), source="own: ballot with the mask of the lanes that are to vote, not of those that do",
        launch=dict(grid=1, block=32), args=lambda: (ints(32), zeros(32)), want=lambda A, B: {1: np.where(np.arange(32) < 24, np.sum(A[:24] > 0), 0)})
def ballot_names_fewer_lanes_than_vote(fixed):
    mask = 0x00FFFFFF if fixed else 0x0000FFFF

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        B[lane] = 0
        if lane < 24:
            B[lane] = T.cast(T.popcount(T.cast(T.cuda.ballot_sync(T.uint32(mask), A[lane] > 0), "uint32")), "int32")  # <-- vote
    return k


@expect("warp", cls="warp", also=("divergence",), lines=("redux",), source="own: redux under a bounds guard",
        launch=dict(grid=1, block=64), args=lambda: (ints(2, 56), zeros(2, 2)),
        want=lambda A, B: {1: np.stack([A[:, :32].sum(1), A[:, 32:].sum(1)], 1).astype(np.int32)})
def redux_inside_the_bounds_guard(fixed):
    @T.prim_func
    def k(A: T.Buffer((2, 56), "int32"), B: T.Buffer((2, 2), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        v: T.int32 = 0
        for r in range(2):
            s: T.int32 = 0
            v = 0
            if fixed:
                if tx < 56:
                    v = A[r, tx]
                T.ptx.redux_sync.add.s32(s, v, T.uint32(0xFFFFFFFF))
            else:
                if tx < 56:
                    v = A[r, tx]
                    T.ptx.redux_sync.add.s32(s, v, T.uint32(0xFFFFFFFF))  # <-- redux
            if tx % 32 == 0:
                B[r, tx // 32] = s
    return k


@expect("warp", cls="warp", also=("divergence",), lines=("elect",), source="own: two roles of one warp, one mask for both",
        launch=dict(grid=1, block=32), arch="sm_90a", args=lambda: (ints(32), zeros(2)), want=lambda A, B: {1: [A[0], A[16]]})
def second_role_of_a_warp_elects_with_the_mask_of_the_first(fixed):
    high = 0xFFFF0000 if fixed else 0x0000FFFF

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((2,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        leader = T.alloc_local((1,), "int32")
        mine = T.alloc_local((1,), "bool")
        if lane < 16:
            T.ptx.elect_sync(leader[0], mine[0], T.uint32(0xFFFF))
            if mine[0]:
                B[0] = A[lane]
        else:
            T.ptx.elect_sync(leader[0], mine[0], T.uint32(high))  # <-- elect
            if mine[0]:
                B[1] = A[lane]
    return k


@expect("warp", cls="warp", also=("divergence",), lines=("dec",), source="PTX ISA setmaxnreg: all threads of the warpgroup execute it",
        launch=dict(grid=1, block=256), arch="sm_90a", args=lambda: (ints(256), zeros(256)), want=lambda A, B: {1: A + 1})
def one_warp_of_the_warpgroup_gives_up_registers(fixed):
    limit = 128 if fixed else 32

    @T.prim_func
    def k(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
        T.device_entry()
        T.attr({"tirx.max_registers": 128})
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        if tx < limit:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(40)  # <-- dec
        B[tx] = A[tx] + 1
    return k


@expect("deadlock", cls="warp", also=("warp",), lines=("inc",), source="own: register budgets that do not add up",
        launch=dict(grid=1, block=256), arch="sm_90a", args=lambda: (ints(2, 256), zeros(2, 256)), want=lambda A, B: {1: A * 2})
def more_registers_asked_for_than_given_up(fixed):
    """Two warpgroups of 128: one goes down to 96, the other up to 168."""
    up = 160 if fixed else 168

    @T.prim_func
    def k(A: T.Buffer((2, 256), "int32"), B: T.Buffer((2, 256), "int32")):
        T.device_entry()
        T.attr({"tirx.max_registers": 128})
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        wg = T.warpgroup_id([2])
        if wg == 0:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(96)
        else:
            T.ptx.setmaxnreg.inc.sync.aligned.u32(up)  # <-- inc
        for t in range(2):
            B[t, tx] = A[t, tx] * 2
    return k
