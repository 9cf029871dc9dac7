# SPDX-License-Identifier: Apache-2.0
"""Clusters: memory and barriers of other CTAs, asynchronous stores and reductions, multicast, multimem, launch control."""

import numpy as np
from expect import expect, ints, zeros

from tirx.script import tirx as T

STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
COPY = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"


def cluster(n=2, block=64, arch="sm_90a"):
    return dict(launch=dict(grid=n, block=block, cluster=n), arch=arch)


@T.inline
def address(at, p, rank):
    T.ptx.mapa.shared__cluster.u32(at, T.cuda.cvta_generic_to_shared(p), T.cast(rank, "uint32"))


@expect("cluster", cls="cluster", also=("race",), lines=("load",), source="own: rank taken modulo the wrong size",
        args=lambda: (ints(2, 64), zeros(2, 64)), want=lambda A, B: {1: A[::-1]}, **cluster())
def rank_of_a_cta_that_is_not_in_the_cluster(fixed):
    n = 2 if fixed else 4

    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 64), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        at = T.alloc_local((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        sm[tx] = A[rank, tx]
        T.cuda.cluster_sync()
        address(at[0], sm.ptr_to([tx]), (rank + 1) % n)
        T.ptx.ld.shared__cluster.b32(v[0], at[0])   # <-- load
        B[rank, tx] = v[0]
        T.cuda.cluster_sync()
    return k


@expect("race", cls="cluster", buffer="sm", lines=("store", "load"), source="own: halo exchange over three steps with one cluster barrier a step",
        args=lambda: (ints(2, 64), zeros(2, 64)), want=lambda A, B: {1: exchanged(A)}, **cluster())
def halo_exchange_overwrites_what_the_peer_still_reads(fixed):
    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 64), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        at = T.alloc_local((1,), "uint32")
        v = T.alloc_local((1,), "int32")
        mine: T.int32 = A[rank, tx]
        for i in range(3):
            sm[tx] = mine                           # <-- store
            T.cuda.cluster_sync()
            address(at[0], sm.ptr_to([63 - tx]), 1 - rank)
            T.ptx.ld.shared__cluster.b32(v[0], at[0])  # <-- load
            mine = mine + v[0]
            if fixed:
                T.cuda.cluster_sync()
        if not fixed:
            T.cuda.cluster_sync()
        B[rank, tx] = mine
    return k


def exchanged(A):
    for _ in range(3):
        A = A + A[::-1, ::-1]
    return A


@expect("async", cls="remote", buffer="box", lines=("put", "load"), source="own: message slot read before its bytes have come",
        args=lambda: (ints(4, 2, 64), zeros(4, 2, 64)), want=lambda A, B: {1: A[:, ::-1]}, **cluster())
def slot_of_asynchronous_stores_read_too_early(fixed):
    """Four messages of 64 words through two slots; broken, the reader waits for the phase before."""
    shift = 0 if fixed else 1

    @T.prim_func
    def k(A: T.Buffer((4, 2, 64), "int32"), B: T.Buffer((4, 2, 64), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        box = T.alloc_shared((2, 64), "int32", align=16)
        bar = T.alloc_shared((2,), "uint64")
        at = T.alloc_local((2,), "uint32")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        for i in range(4):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(256))
            address(at[0], box.ptr_to([i % 2, tx]), 1 - rank)
            address(at[1], bar.ptr_to([i % 2]), 1 - rank)
            T.ptx[f"{STORE}.s32"](at[0], A[i, rank, tx], at[1])  # <-- put
            T.cuda.mbarrier_wait(bar.ptr_to([i % 2]), (i // 2 + shift) % 2)
            B[i, rank, tx] = box[i % 2, tx]         # <-- load
            T.cuda.cluster_sync()
    return k


@expect("async", cls="remote", also=("race",), buffer="box", lines=("put", "load"), alt_lines=(("put",),), source="own: slot of the peer filled again before it has been read",
        args=lambda: (ints(6, 32), zeros(6, 32)), want=lambda A, B: {1: A[:, ::-1]}, **cluster(block=32))
def sender_does_not_wait_for_the_free_slot(fixed):
    """CTA 0 sends six rows into two slots of CTA 1, which hands them back by remote arrivals."""
    @T.prim_func
    def k(A: T.Buffer((6, 32), "int32"), B: T.Buffer((6, 32), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([32])
        box = T.alloc_shared((2, 32), "int32", align=16)
        full = T.alloc_shared((6,), "uint64")
        free = T.alloc_shared((2,), "uint64")
        at = T.alloc_local((2,), "uint32")
        done = T.alloc_local((1,), "bool")
        if tx == 0:
            for i in range(6):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([i]), T.uint32(1))
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i]), T.uint32(128))
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(free.ptr_to([s]), T.uint32(32))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        if rank == 0:
            for i in range(6):
                if fixed:
                    done[0] = T.bool(False)
                    while not done[0]:
                        T.ptx["mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"](
                            done[0], free.ptr_to([i % 2]), T.cast((i // 2 + 1) % 2, "uint32"))
                address(at[0], box.ptr_to([i % 2, tx]), 1)
                address(at[1], full.ptr_to([i]), 1)
                T.ptx[f"{STORE}.s32"](at[0], A[i, tx], at[1])  # <-- put
        else:
            for i in range(6):
                T.cuda.mbarrier_wait(full.ptr_to([i]), 0)
                B[i, tx] = box[i % 2, 31 - tx]      # <-- load
                address(at[0], free.ptr_to([i % 2]), 0)
                T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(at[0])
        T.cuda.cluster_sync()
    return k


@expect("async", cls="remote", buffer="sum", also=("race", "uninitialised"), lines=("zero", "red"), alt_lines=(("red",), ("red", "load")),
        source="own: counters cleared after the peers have begun to add", args=lambda: (ints(2, 4, 32), zeros(2, 4)),
        want=lambda A, S: {1: A.sum(2, dtype=np.int32).sum(0, keepdims=True).repeat(2, 0)}, **cluster(block=32))
def counters_cleared_under_remote_additions(fixed):
    """Each CTA adds its values to four counters of both CTAs; the counters are cleared before the cluster has met."""
    @T.prim_func
    def k(A: T.Buffer((2, 4, 32), "int32"), S: T.Buffer((2, 4), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([32])
        sum = T.alloc_shared((4,), "int32", align=16)
        bar = T.alloc_shared((1,), "uint64")
        at = T.alloc_local((2,), "uint32")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(2 * 4 * 32 * 4))
        if fixed:
            if tx < 4:
                sum[tx] = 0
        T.cuda.cluster_sync()
        if not fixed:
            if tx < 4:
                sum[tx] = 0                         # <-- zero
        for j in range(4):
            for r in range(2):
                address(at[0], sum.ptr_to([j]), r)
                address(at[1], bar.ptr_to([0]), r)
                T.ptx[f"{RED}.add.s32"](at[0], A[rank, j, tx], at[1])  # <-- red
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        if tx < 4:
            S[rank, tx] = sum[tx]                   # <-- load
        T.cuda.cluster_sync()
    return k


@expect("mbarrier", cls="remote", lines=("red",), source="PTX ISA red.async: cell and mbarrier lie in the same CTA",
        args=lambda: (ints(2, 64), zeros(2)), want=lambda A, S: {1: A.sum(1, dtype=np.int32)[::-1]}, **cluster())
def reduction_signals_a_barrier_of_another_cta(fixed):
    there = 1 if fixed else 0

    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), S: T.Buffer((2,), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sum = T.alloc_shared((1,), "int32", align=16)
        bar = T.alloc_shared((1,), "uint64")
        at = T.alloc_local((2,), "uint32")
        if tx == 0:
            sum[0] = 0
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
        T.cuda.cluster_sync()
        address(at[0], sum.ptr_to([0]), 1 - rank)
        address(at[1], bar.ptr_to([0]), T.if_then_else(there == 1, 1 - rank, rank))
        T.ptx[f"{RED}.add.s32"](at[0], A[rank, tx], at[1])  # <-- red
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        if tx == 0:
            S[rank] = sum[0]
        T.cuda.cluster_sync()
    return k


@expect("proxy", cls="remote", buffer="sm", lines=("store", "copy"), source="own: tile sent to the peer without the proxy fence",
        args=lambda: (ints(3, 2, 64), zeros(3, 2, 64)), want=lambda A, B: {1: A[:, ::-1]}, **cluster())
def tile_sent_to_the_peer_without_the_proxy_fence(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 2, 64), "int32"), B: T.Buffer((3, 2, 64), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32", align=128)
        to = T.alloc_shared((64,), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        at = T.alloc_local((2,), "uint32")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        for i in range(3):
            sm[tx] = A[i, rank, tx]                 # <-- store
            if fixed:
                T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
                address(at[0], to.ptr_to([0]), 1 - rank)
                address(at[1], bar.ptr_to([0]), 1 - rank)
                T.ptx[COPY](at[0], sm.ptr_to([0]), T.uint32(256), at[1])  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            B[i, rank, tx] = to[tx]
            T.cuda.cluster_sync()
    return k


@expect("async", cls="remote", also=("race",), buffer="sm", lines=("copy", "store"), source="own: source of a copy to the peer refilled at once",
        args=lambda: (ints(4, 2, 64), zeros(4, 2, 64)), want=lambda A, B: {1: A[:, ::-1]}, **cluster())
def source_of_a_copy_to_the_peer_refilled(fixed):
    """Only the receiver learns that the copy is complete; the sender's own barrier says something about its own slot."""
    @T.prim_func
    def k(A: T.Buffer((4, 2, 64), "int32"), B: T.Buffer((4, 2, 64), "int32")):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32", align=128)
        to = T.alloc_shared((4, 64), "int32", align=128)
        bar = T.alloc_shared((4,), "uint64")
        at = T.alloc_local((2,), "uint32")
        if tx == 0:
            for s in range(4):
                T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([s]), T.uint32(256))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        for i in range(4):
            sm[tx] = A[i, rank, tx]                 # <-- store
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                address(at[0], to.ptr_to([i, 0]), 1 - rank)
                address(at[1], bar.ptr_to([i]), 1 - rank)
                T.ptx[COPY](at[0], sm.ptr_to([0]), T.uint32(256), at[1])  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([i]), 0)
            B[i, rank, tx] = to[i, tx]
            if fixed:
                T.cuda.cluster_sync()
            else:
                T.cuda.cta_sync()
        T.cuda.cluster_sync()
    return k


@expect("async", cls="cluster", also=("race",), buffer="sm", lines=("copy", "load"), alt_lines=(("copy",),), source="own: multicast into a stage that the peer still reads",
        args=lambda: (ints(6, 64), zeros(2, 6, 64)), want=lambda A, B: {1: np.stack([A, A])[..., ::-1]}, **cluster())
def multicast_released_by_its_own_cta_only(fixed):
    """Two stages; the stage is taken to be free when the sender's own warps have read it."""
    arrivals = 4 if fixed else 2

    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((2, 6, 64), "int32")):
        A = T.match_buffer(A_ptr, (6, 64), "int32", align=16)
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([96])
        sm = T.alloc_shared((2, 64), "int32", align=128)
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        at = T.alloc_local((1,), "uint32")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(arrivals))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        if tx >= 64:
            if tx == 64:
                for i in range(6):
                    if rank == 0:
                        T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)
                    elif i > 1:
                        T.cuda.mbarrier_wait(full.ptr_to([i % 2]), (i // 2 + 1) % 2)
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(256))
                    if rank == 0:
                        T.ptx.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes.multicast__cluster(
                            sm.ptr_to([i % 2, 0]), A.ptr_to([i, 0]), T.uint32(256), full.ptr_to([i % 2]), T.uint16(3))  # <-- copy
        else:
            for i in range(6):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
                B[rank, i, tx] = sm[i % 2, 63 - tx]  # <-- load
                T.cuda.warp_sync()
                if tx % 32 == 0:
                    if rank == 0 or fixed:
                        address(at[0], empty.ptr_to([i % 2]), 0)
                        T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(at[0])
        T.cuda.cluster_sync()
    return k


# ---- multimem --------------------------------------------------------------------------------------------------------


@expect("misaligned", cls="remote", buffer="A", lines=("ld",), source="own: vectors of a multicast object from element one",
        launch=dict(grid=1, block=16), arch="sm_90a", args=lambda: (ints(68).astype(np.float32), zeros(16, 4, dtype=np.float32)),
        want=lambda A, B: {1: A[4:].reshape(16, 4)})
def multimem_vector_from_element_one(fixed):
    first = 4 if fixed else 1

    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((16, 4), "float32")):
        A = T.match_buffer(A_ptr, (68,), "float32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([16])
        v = T.alloc_local((4,), "float32")
        T.ptx["multimem.ld_reduce.relaxed.gpu.global.add.v4.f32"](*v, A.ptr_to([tx * 4 + first]))  # <-- ld
        for j in range(4):
            B[tx, j] = v[j]
    return k


@expect("race", cls="remote", buffer="S", lines=("store", "red"), source="own: total cleared by one CTA while others add to it",
        launch=dict(grid=3, block=32), arch="sm_90a", args=lambda: (ints(3, 32), zeros(1)), want=lambda A, S: {1: [A.sum(dtype=np.int32)]})
def total_cleared_while_others_add(fixed):
    @T.prim_func
    def k(A: T.Buffer((3, 32), "int32"), S: T.Buffer((1,), "int32")):
        T.device_entry()
        bx = T.cta_id([3])
        lane = T.thread_id([32])
        if not fixed:
            if bx == 0 and lane == 0:
                S[0] = 0                            # <-- store
        v: T.int32 = T.cuda.warp_sum(A[bx, lane])
        if lane == 0:
            T.ptx["multimem.red.relaxed.gpu.global.add.s32"](S.ptr_to([0]), v)  # <-- red
    return k


# ---- launch control --------------------------------------------------------------------------------------------------


@expect("async", cls="launch", buffer="answer", lines=("cancel", "query"), 
        source="own: answer read before its bytes have come", launch=dict(grid=6, block=32), arch="sm_100a",
        args=lambda: (zeros(6),), want=lambda O: {0: np.ones(6)})
def next_tile_read_before_the_answer(fixed):
    @T.prim_func
    def k(O: T.Buffer((6,), "int32")):
        T.device_entry()
        bx = T.cta_id([6])
        tx = T.thread_id([32])
        answer = T.alloc_shared((1,), "uint128", align=16)
        bar = T.alloc_shared((1,), "uint64")
        x: T.uint32 = T.cast(bx, "uint32")
        go: T.uint32 = T.uint32(1)
        turn: T.int32 = 0
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        while go != T.uint32(0):
            T.cuda.warp_sync()
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(16))
                T.ptx[CANCEL](answer.ptr_to([0]), bar.ptr_to([0]))  # <-- cancel
                O[T.cast(x, "int32")] += 1
            if fixed:
                T.cuda.mbarrier_wait(bar.ptr_to([0]), turn % 2)
            turn = turn + 1
            T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](go, answer[0])  # <-- query
            if go != T.uint32(0):
                T.ptx["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"](x, answer[0])
            if not fixed:
                T.cuda.mbarrier_wait(bar.ptr_to([0]), (turn + 1) % 2)
    return k


@expect("cluster", cls="launch", lines=("first",), source="PTX ISA query_cancel: the id of a request that failed is undefined",
        launch=dict(grid=5, block=32), arch="sm_100a", args=lambda: (zeros(5),), want=lambda O: {0: np.ones(5)})
def first_cta_of_a_request_that_failed(fixed):
    @T.prim_func
    def k(O: T.Buffer((5,), "int32")):
        T.device_entry()
        bx = T.cta_id([5])
        tx = T.thread_id([32])
        answer = T.alloc_shared((1,), "uint128", align=16)
        bar = T.alloc_shared((1,), "uint64")
        x: T.uint32 = T.cast(bx, "uint32")
        go: T.uint32 = T.uint32(1)
        turn: T.int32 = 0
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        while go != T.uint32(0):
            T.cuda.warp_sync()
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(16))
                T.ptx[CANCEL](answer.ptr_to([0]), bar.ptr_to([0]))
                O[T.cast(x, "int32")] += 1
            T.cuda.mbarrier_wait(bar.ptr_to([0]), turn % 2)
            turn = turn + 1
            T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](go, answer[0])
            if fixed:
                if go != T.uint32(0):
                    T.ptx["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"](x, answer[0])
            else:
                T.ptx["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"](x, answer[0])  # <-- first
    return k
