# SPDX-License-Identifier: Apache-2.0
"""Plain accesses that nothing orders, in shared and global memory; orders of too narrow a scope."""

import numpy as np
from expect import expect, ints, zeros

from tirx.script import tirx as T


@expect("race", cls="race", buffer="sm", lines=("load", "store"), source="own: tree reduction that folds once too often before the barrier",
        launch=dict(grid=2, block=128), args=lambda: (ints(4, 128), zeros(4)), want=lambda A, B: {1: A.sum(1, dtype=np.int32)})
def tree_reduction_over_two_rows_a_cta(fixed):
    """The barrier between the last step of one row and the store of the next is missing."""
    @T.prim_func
    def k(A: T.Buffer((4, 128), "int32"), B: T.Buffer((4,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([128])
        sm = T.alloc_shared((128,), "int32")
        for t in range(2):
            sm[tx] = A[bx * 2 + t, tx]              # <-- store
            T.cuda.cta_sync()
            for e in range(7):
                half: T.let = T.shift_right(64, e)
                if tx < half:
                    sm[tx] = sm[tx] + sm[tx + half]
                T.cuda.cta_sync()
            if tx == 96:
                B[bx * 2 + t] = sm[0]               # <-- load
            if fixed:
                T.cuda.cta_sync()
    return k


@expect("race", cls="race", buffer="hist", lines=("add",), source="own: histogram with plain additions",
        launch=dict(grid=1, block=64), args=lambda: (ints(3, 64, lo=0, hi=8), zeros(8)),
        want=lambda A, H: {1: np.bincount(A.ravel(), minlength=8).astype(np.int32)})
def histogram_with_plain_additions(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 64), "int32"), H: T.Buffer((8,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        hist = T.alloc_shared((8,), "int32")
        if tx < 8:
            hist[tx] = 0
        T.cuda.cta_sync()
        for i in range(3):
            if fixed:
                T.ptx.red.relaxed.cta.shared.add.s32(hist.ptr_to([A[i, tx]]), 1)
            else:
                hist[A[i, tx]] = hist[A[i, tx]] + 1  # <-- add
        T.cuda.cta_sync()
        if tx < 8:
            H[tx] = hist[tx]
    return k


@expect("race", cls="race", buffer="hist", lines=("clear", "add"), source="own: counters cleared by one warp, whose own additions hide it",
        launch=dict(grid=1, block=64), args=lambda: (ints(3, 64, lo=0, hi=8), zeros(8)),
        want=lambda A, H: {1: np.bincount(A.ravel(), minlength=8).astype(np.int32)})
def counters_cleared_for_the_own_warp_only(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 64), "int32"), H: T.Buffer((8,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        hist = T.alloc_shared((8,), "int32")
        if tx < 8:
            hist[tx] = 0                            # <-- clear
        if fixed:
            T.cuda.cta_sync()
        else:
            T.cuda.warp_sync()
        for i in range(3):
            T.ptx.red.relaxed.cta.shared.add.s32(hist.ptr_to([A[i, tx]]), 1)  # <-- add
        T.cuda.cta_sync()
        if tx < 8:
            H[tx] = hist[tx]
    return k


@expect("race", cls="race", buffer="hist", lines=("add", "load"), source="own: counters read behind the additions of the own warp",
        launch=dict(grid=2, block=64), args=lambda: (ints(2, 3, 64, lo=0, hi=8), zeros(2, 8)),
        want=lambda A, H: {1: np.stack([np.bincount(a.ravel(), minlength=8) for a in A])})
def counters_read_when_the_own_warp_has_added(fixed):
    @T.prim_func
    def k(A: T.Buffer((2, 3, 64), "int32"), H: T.Buffer((2, 8), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        hist = T.alloc_shared((8,), "int32")
        if tx < 8:
            hist[tx] = 0
        T.cuda.cta_sync()
        for i in range(3):
            T.ptx.red.relaxed.cta.shared.add.s32(hist.ptr_to([A[bx, i, tx]]), 1)  # <-- add
        if fixed:
            T.cuda.cta_sync()
        else:
            T.cuda.warp_sync()
        if tx < 8:
            H[bx, tx] = hist[tx]                    # <-- load
    return k


@expect("race", cls="race", buffer="sm", lines=("store", "load"), source="own: named barrier for half of the readers",
        launch=dict(grid=1, block=128), args=lambda: (ints(4, 64), zeros(4, 64)), want=lambda A, B: {1: A[:, ::-1]})
def pair_of_warps_synchronises_with_itself_only(fixed):
    """Warps 0-1 produce, 2-3 consume; the consumers' barrier is another one than the producers'."""
    number = 1 if fixed else 2
    n = 128 if fixed else 64

    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), B: T.Buffer((4, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((4, 64), "int32")
        for i in range(4):
            if tx < 64:
                sm[i, tx] = A[i, tx]                # <-- store
                T.ptx.bar.sync(T.uint32(1), T.uint32(n))
            else:
                T.ptx.bar.sync(T.uint32(number), T.uint32(n))
                B[i, tx - 64] = sm[i, 127 - tx]     # <-- load
    return k


@expect("race", cls="race", buffer="sm", lines=("store", "load"), source="own: shuffle taken for a fence of the warp",
        launch=dict(grid=1, block=32), args=lambda: (ints(5, 32), zeros(5, 32)), want=lambda A, B: {1: np.roll(A, 1, 1) + A})
def ballot_taken_for_a_warp_barrier(fixed):
    """Volta and later: a vote converges lanes, but does not order their memory accesses."""
    @T.prim_func
    def k(A: T.Buffer((5, 32), "int32"), B: T.Buffer((5, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        sm = T.alloc_shared((5, 32), "int32")
        all_: T.uint32 = T.uint32(0)
        for i in range(5):
            sm[i, (lane + 1) % 32] = A[i, lane]     # <-- store
            if fixed:
                T.cuda.warp_sync()
            else:
                all_ = all_ | T.cast(T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), lane >= 0), "uint32")
            B[i, lane] = sm[i, lane] + A[i, lane] + T.cast(all_ * T.uint32(0), "int32")  # <-- load
    return k


@expect("race", cls="race", buffer="B", lines=("store",), source="own: tiles of two CTAs that overlap by a row",
        launch=dict(grid=3, block=32), args=lambda: (ints(13, 32), zeros(13, 32)), want=lambda A, B: {1: A * 2})
def tiles_overlap_by_one_row(fixed):
    """Each CTA writes five rows from a start four rows apart."""
    rows = 4 if fixed else 5
    last = 5

    @T.prim_func
    def k(A: T.Buffer((13, 32), "int32"), B: T.Buffer((13, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([3])
        lane = T.thread_id([32])
        for r in range(T.if_then_else(bx == 2, last, rows)):
            B[bx * 4 + r, lane] = A[bx * 4 + r, lane] * 2  # <-- store
    return k


@expect("race", cls="launch", buffer="D", lines=("store", "load"), source="own: griddepcontrol.wait taken for a barrier of the grid",
        launch=dict(grid=2, block=32, cluster=2), arch="sm_90a", args=lambda: (ints(2, 32), zeros(2, 32), zeros(2, 32)),
        want=lambda A, D, B: {2: A[::-1]})
def dependency_wait_taken_for_a_grid_barrier(fixed):
    """It waits for the grids launched before, not for the other CTAs of this one."""
    @T.prim_func
    def k(A: T.Buffer((2, 32), "int32"), D: T.Buffer((2, 32), "int32"), B: T.Buffer((2, 32), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([32])
        T.ptx.griddepcontrol.wait()
        D[rank, tx] = A[rank, tx]                   # <-- store
        T.ptx.griddepcontrol.launch_dependents()
        if fixed:
            T.cuda.cluster_sync()
        else:
            T.ptx.griddepcontrol.wait()
        B[rank, tx] = D[1 - rank, tx]               # <-- load
    return k


@expect("race", cls="race", buffer="D", lines=("store", "load"), source="own: decoupled look-back whose value and flag are two words",
        launch=dict(grid=4, block=32), args=lambda: (ints(4, 32), zeros(4), zeros(4, dtype=np.uint32), zeros(4)),
        want=lambda A, D, F, P: {3: np.cumsum(A.sum(1, dtype=np.int32), dtype=np.int32)})
def look_back_reads_the_value_before_the_flag_is_acquired(fixed):
    """A chain of CTAs; the flag is polled with a relaxed load."""
    load = "ld.acquire.gpu.global.b32" if fixed else "ld.relaxed.gpu.global.b32"

    @T.prim_func
    def k(A: T.Buffer((4, 32), "int32"), D: T.Buffer((4,), "int32"), F: T.Buffer((4,), "uint32"), P: T.Buffer((4,), "int32")):
        T.device_entry()
        bx = T.cta_id([4])
        lane = T.thread_id([32])
        s: T.int32 = T.cuda.warp_sum(A[bx, lane])
        if lane == 0:
            if bx > 0:
                seen = T.alloc_local((1,), "uint32")
                seen[0] = T.uint32(0)
                while seen[0] == T.uint32(0):
                    T.ptx[load](seen[0], F.ptr_to([bx - 1]))
                s = s + D[bx - 1]                   # <-- load
            D[bx] = s                               # <-- store
            P[bx] = s
            T.ptx.st.release.gpu.global_.b32(F.ptr_to([bx]), T.uint32(1))
    return k


@expect("scope", cls="scope", also=("race",), buffer="D", lines=("store", "load"), source="own: release of CTA scope between the CTAs of a grid",
        launch=dict(grid=3, block=64), args=lambda: (ints(3, 64), zeros(3, 64), zeros(1, dtype=np.uint32), zeros(64)),
        want=lambda A, D, n, B: {3: A.sum(0, dtype=np.int32)})
def last_cta_adds_up_behind_a_ticket_of_cta_scope(fixed):
    """All threads store, a barrier, one takes a ticket with acq_rel: at .cta scope it publishes to its own CTA only."""
    scope = "gpu" if fixed else "cta"

    @T.prim_func
    def k(A: T.Buffer((3, 64), "int32"), D: T.Buffer((3, 64), "int32"), n: T.Buffer((1,), "uint32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([3])
        tx = T.thread_id([64])
        last = T.alloc_shared((1,), "uint32")
        ticket = T.alloc_local((1,), "uint32")
        D[bx, tx] = A[bx, tx]                       # <-- store
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx[f"fence.acq_rel.{scope}"]()
            T.ptx.atom.relaxed.gpu.global_.add.u32(ticket[0], n.ptr_to([0]), T.uint32(1))
            T.ptx[f"fence.acq_rel.{scope}"]()
            last[0] = ticket[0]
        T.cuda.cta_sync()
        if last[0] == T.uint32(2):
            s: T.int32 = 0
            for i in range(3):
                s += D[i, tx]                       # <-- load
            B[tx] = s
    return k


@expect("scope", cls="scope", buffer="S", lines=("add",), source="own: counter of the grid incremented at CTA scope",
        launch=dict(grid=4, block=32), args=lambda: (ints(4, 32), zeros(1)), want=lambda A, S: {1: [A.sum(dtype=np.int32)]})
def sum_of_all_ctas_added_at_cta_scope(fixed):
    scope = "gpu" if fixed else "cta"

    @T.prim_func
    def k(A: T.Buffer((4, 32), "int32"), S: T.Buffer((1,), "int32")):
        T.device_entry()
        bx = T.cta_id([4])
        lane = T.thread_id([32])
        v: T.int32 = T.cuda.warp_sum(A[bx, lane])
        if lane == 0:
            T.ptx[f"red.relaxed.{scope}.global.add.s32"](S.ptr_to([0]), v)  # <-- add
    return k


@expect("scope", cls="scope", also=("race",), buffer="sm", lines=("store", "load"), source="own: remote arrival with release at CTA scope",
        launch=dict(grid=2, block=32, cluster=2), arch="sm_90a", args=lambda: (ints(3, 32), zeros(3, 32)),
        want=lambda A, B: {1: A[:, ::-1]})
def remote_arrival_releases_to_its_own_cta_only(fixed):
    """CTA 0 stores into its own memory, tells CTA 1 by an arrival with .release.cta, CTA 1 reads through mapa."""
    scope = "cluster" if fixed else "cta"

    @T.prim_func
    def k(A: T.Buffer((3, 32), "int32"), B: T.Buffer((3, 32), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([32])
        sm = T.alloc_shared((3, 32), "int32")
        bar = T.alloc_shared((1,), "uint64")
        at = T.alloc_local((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        done = T.alloc_local((1,), "bool")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(32))
        T.cuda.cluster_sync()
        for i in range(3):
            if rank == 0:
                sm[i, tx] = A[i, tx]                # <-- store
                T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(1))
                T.ptx[f"mbarrier.arrive.release.{scope}.shared::cluster.b64"](at[0])
            else:
                done[0] = T.bool(False)
                while not done[0]:
                    T.ptx["mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"](
                        done[0], bar.ptr_to([0]), T.cast(i % 2, "uint32"))
                T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(sm.ptr_to([i, 31 - tx])), T.uint32(0))
                T.ptx.ld.shared__cluster.b32(v[0], at[0])  # <-- load
                B[i, tx] = v[0]
            T.ptx.barrier.cluster.arrive.relaxed.aligned()
            T.ptx.barrier.cluster.wait.acquire.aligned()
        T.cuda.cluster_sync()
    return k
