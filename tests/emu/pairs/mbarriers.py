# SPDX-License-Identifier: Apache-2.0
"""The mbarrier object: initialisation, storage, counts, bytes, phases, remote arrivals."""

import numpy as np
from expect import expect, ints, zeros

from tirx.script import tirx as T


def hopper(block=64):
    return dict(launch=dict(grid=1, block=block), arch="sm_90a")


@expect("mbarrier", cls="mbarrier", also=("race", "uninitialised"), buffer="full", lines=("wait",), alt_lines=(("init", "wait"),),
        source="own: barriers initialised by a warp that the others do not wait for", args=lambda: (ints(6, 32), zeros(6, 32)),
        want=lambda A, B: {1: A[:, ::-1]}, **hopper())
def consumer_starts_before_the_init(fixed):
    """The last warp initialises, the others go on without a barrier of the CTA."""
    @T.prim_func
    def k(A: T.Buffer((6, 32), "int32"), B: T.Buffer((6, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 32), "int32")
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        if tx == 32:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(32))  # <-- init
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(32))
        if fixed:
            T.cuda.cta_sync()
        if tx >= 32:
            if not fixed:
                T.cuda.warp_sync()
            for i in range(6):
                T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)
                sm[i % 2, tx - 32] = A[i, tx - 32]
                T.ptx.mbarrier.arrive.shared.b64(full.ptr_to([i % 2]))
        else:
            for i in range(6):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)  # <-- wait
                B[i, tx] = sm[i % 2, 31 - tx]
                T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))
    return k


@expect("mbarrier", cls="mbarrier", buffer="bar", lines=("arrive",), source="PTX ISA mbarrier.inval: no operation but init may follow",
        args=lambda: (ints(2, 64), zeros(2, 64)), want=lambda A, B: {1: A[:, ::-1]}, **hopper())
def barrier_used_after_its_end(fixed):
    """Between two tiles the storage is invalidated, and not initialised again."""
    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32")
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
        T.cuda.cta_sync()
        for t in range(2):
            sm[t, tx] = A[t, tx]
            T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))  # <-- arrive
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
            B[t, tx] = sm[t, 63 - tx]
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx.mbarrier.inval.shared.b64(bar.ptr_to([0]))
                if fixed:
                    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
            T.cuda.cta_sync()
    return k


@expect("mbarrier", cls="mbarrier", buffer="sm", lines=("store",), alt_lines=(("init", "store"),),
        source="own: a pool carved by hand, the barriers inside the last tile", args=lambda: (ints(2, 64), zeros(2, 64)),
        want=lambda A, B: {1: A[:, ::-1]}, **hopper())
def tile_reaches_into_the_barrier(fixed):
    """Tiles of 256 bytes at 0 and 256, the barrier at 504 instead of 512."""
    at = 64 if fixed else 63

    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        pool = T.alloc_shared((65,), "uint64")
        sm = T.decl_buffer((2, 64), "int32", data=pool.data, scope="shared")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(pool.ptr_to([at]), T.uint32(64))  # <-- init
        T.cuda.cta_sync()
        for t in range(2):
            sm[t, tx] = A[t, tx]                    # <-- store
            T.ptx.mbarrier.arrive.shared.b64(pool.ptr_to([at]))
            T.cuda.mbarrier_wait(pool.ptr_to([at]), t)
            B[t, tx] = sm[t, 63 - tx]
    return k


@expect("mbarrier", cls="mbarrier", buffer="bar", lines=("init",), source="own: count of the consumers computed as zero",
        args=lambda: (ints(64), zeros(64)), want=lambda A, B: {1: A[::-1]}, **hopper())
def barrier_of_no_arrivals(fixed):
    """64 // 128 consumer warpgroups."""
    per = 32 if fixed else 128

    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64 // per))  # <-- init
        T.cuda.cta_sync()
        sm[tx] = A[tx]
        T.cuda.warp_sync()
        if tx % 32 == 0:
            T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        B[tx] = sm[63 - tx]
    return k


@expect("mbarrier", cls="mbarrier", buffer="bar", lines=("arrive",), source="PTX ISA mbarrier.arrive.noComplete: must not complete the phase",
        args=lambda: (ints(2, 64), zeros(2, 64)), want=lambda A, B: {1: A[:, ::-1]}, **hopper())
def last_arrival_is_one_that_must_not_complete(fixed):
    """Every thread announces itself with noComplete and arrives later; the count has room for 64, not for 128."""
    count = 128 if fixed else 64

    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B: T.Buffer((2, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32")
        bar = T.alloc_shared((1,), "uint64")
        state = T.alloc_local((1,), "int64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(count))
        T.cuda.cta_sync()
        for t in range(2):
            T.ptx["mbarrier.arrive.noComplete.shared.b64"](state[0], bar.ptr_to([0]), T.uint32(1))  # <-- arrive
            sm[t, tx] = A[t, tx]
            T.cuda.cta_sync()
            if fixed:
                T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
            T.cuda.mbarrier_wait(bar.ptr_to([0]), t)
            B[t, tx] = sm[t, 63 - tx]
    return k


@expect("deadlock", cls="mbarrier", also=("mbarrier",), buffer="bar", lines=("wait", "sync"), source="own: consumer that leaves counts itself out and arrives again",
        args=lambda: (ints(4, 32), zeros(32)), want=lambda A, B: {1: A.sum(0, dtype=np.int32)}, **hopper(96))
def dropped_out_and_arriving_again(fixed):
    """Warp 2 leaves after two of four turns with arrive_drop; broken, it drops out and still takes part: the phases run away."""
    @T.prim_func
    def k(A: T.Buffer((4, 32), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([96])
        sm = T.alloc_shared((4, 32), "int32")
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(3))
        T.cuda.cta_sync()
        for i in range(4):
            if tx < 32:
                sm[i, tx] = A[i, tx]
            T.cuda.warp_sync()
            if tx % 32 == 0:
                if tx < 64:
                    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
                elif i == 1:
                    T.ptx.mbarrier.arrive_drop.shared.b64(bar.ptr_to([0]))
                elif i < 1 or not fixed:
                    T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)  # <-- wait
            T.cuda.cta_sync()                       # <-- sync
        if tx >= 32 and tx < 64:
            B[tx - 32] = sm[0, tx - 32] + sm[1, tx - 32] + sm[2, tx - 32] + sm[3, tx - 32]
    return k


@expect("deadlock", cls="tx-bytes", also=("mbarrier",), buffer="full", lines=("wait",), source="own: a ring whose last tile is ragged",
        args=lambda: (ints(7 * 64 - 16), zeros(7 * 64 - 16)), want=lambda A, B: {1: A + 1}, **hopper())
def last_tile_is_shorter_than_announced(fixed):
    """Three stages, seven tiles, the last one of 192 bytes; 256 are announced for it."""
    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (432,), "int32", align=16)
        B = T.match_buffer(B_ptr, (432,), "int32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((3, 64), "int32", align=128)
        full = T.alloc_shared((3,), "uint64")
        if tx == 0:
            for s in range(3):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        for i in range(7):
            n: T.let = T.min(432 - i * 64, 64)
            if tx == 0:
                if fixed:
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 3]), T.cast(n * 4, "uint32"))
                else:
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 3]), T.uint32(256))
                T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                    sm.ptr_to([i % 3, 0]), A.ptr_to([i * 64]), T.cast(n * 4, "uint32"), full.ptr_to([i % 3]))
            T.cuda.mbarrier_wait(full.ptr_to([i % 3]), i // 3 % 2)  # <-- wait
            if tx < n:
                B[i * 64 + tx] = sm[i % 3, tx] + 1
            T.cuda.cta_sync()
    return k


@expect("async", cls="tx-bytes", also=("mbarrier",), buffer="sm", lines=("second", "load"), alt_lines=(("first", "load"), ("second",), ("wait",), ("expect",)),
        source="own: bytes of A announced, those of B forgotten", args=lambda: (ints(6, 32), ints(6, 32, seed=1), zeros(6, 32)),
        want=lambda A, B, C: {2: A + B}, **hopper(32))
def bytes_of_the_second_operand_not_announced(fixed):
    """The phase may complete with A alone; B is then read in flight."""
    nbytes = 256 if fixed else 128

    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle, C: T.Buffer((6, 32), "int32")):
        A = T.match_buffer(A_ptr, (6, 32), "int32", align=16)
        B = T.match_buffer(B_ptr, (6, 32), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((2, 2, 32), "int32", align=128)
        full = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.warp_sync()
        for i in range(6):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(nbytes))  # <-- expect
                T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                    sm.ptr_to([i % 2, 0, 0]), A.ptr_to([i, 0]), T.uint32(128), full.ptr_to([i % 2]))  # <-- first
                T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                    sm.ptr_to([i % 2, 1, 0]), B.ptr_to([i, 0]), T.uint32(128), full.ptr_to([i % 2]))  # <-- second
            T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)  # <-- wait
            C[i, tx] = sm[i % 2, 0, tx] + sm[i % 2, 1, tx]  # <-- load
            T.cuda.warp_sync()
    return k


@expect("async", cls="phase", also=("deadlock",), lines=("copy", "load"), alt_lines=(("wait",),),
        source="own: parity taken from the tile number instead of the turn of the ring", args=lambda: (ints(9, 32), zeros(9, 32)),
        want=lambda A, B: {1: A[:, ::-1]}, **hopper(32))
def parity_of_the_tile_instead_of_the_turn(fixed):
    """Three stages, prefetch by two tiles; parity i % 2 is right for stages of one tile only."""
    turn = 3 if fixed else 1

    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((9, 32), "int32")):
        A = T.match_buffer(A_ptr, (9, 32), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((3, 32), "int32", align=128)
        full = T.alloc_shared((3,), "uint64")
        if tx == 0:
            for s in range(3):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.warp_sync()
        for i in range(11):
            if i < 9:
                if tx == 0:
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 3]), T.uint32(128))
                    T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                        sm.ptr_to([i % 3, 0]), A.ptr_to([i, 0]), T.uint32(128), full.ptr_to([i % 3]))  # <-- copy
            if i >= 2:
                T.cuda.mbarrier_wait(full.ptr_to([(i - 2) % 3]), (i - 2) // turn % 2)  # <-- wait
                B[i - 2, tx] = sm[(i - 2) % 3, 31 - tx]  # <-- load
                T.cuda.warp_sync()
    return k


@expect("async", cls="phase", also=("deadlock",), buffer="sm", lines=("copy", "load"), source="own: test_wait whose answer is not looked at",
        args=lambda: (ints(4, 32), zeros(4, 32)), want=lambda A, B: {1: A * 3}, **hopper(32))
def answer_of_the_test_ignored(fixed):
    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((4, 32), "int32")):
        A = T.match_buffer(A_ptr, (4, 32), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((4, 32), "int32", align=128)
        bar = T.alloc_shared((4,), "uint64")
        done = T.alloc_local((1,), "bool")
        if tx == 0:
            for s in range(4):
                T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
            for s in range(4):
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([s]), T.uint32(128))
                T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                    sm.ptr_to([s, 0]), A.ptr_to([s, 0]), T.uint32(128), bar.ptr_to([s]))  # <-- copy
        T.cuda.warp_sync()
        for s in range(4):
            done[0] = T.bool(False)
            if fixed:
                while not done[0]:
                    T.ptx["mbarrier.test_wait.parity.shared.b64"](done[0], bar.ptr_to([s]), T.uint32(0))
            else:
                T.ptx["mbarrier.test_wait.parity.shared.b64"](done[0], bar.ptr_to([s]), T.uint32(0))
            B[s, tx] = sm[s, tx] * 3                # <-- load
        T.cuda.warp_sync()
        for s in range(4):
            T.cuda.mbarrier_wait(bar.ptr_to([s]), 0)
    return k


@expect("cluster", cls="cluster", also=("mbarrier",), lines=("arrive",), source="own: the last remote release arrives at a CTA that has left",
        launch=dict(grid=2, block=64, cluster=2), arch="sm_90a", args=lambda: (ints(6, 32), zeros(2, 6, 32)),
        want=lambda A, B: {1: np.stack([A, A])})
def last_release_goes_to_a_producer_that_has_left(fixed):
    """CTA 0 multicasts six tiles through two stages; both CTAs hand stages back to CTA 0, which may exit before the last."""
    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((2, 6, 32), "int32")):
        A = T.match_buffer(A_ptr, (6, 32), "int32", align=16)
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 32), "int32", align=128)
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        at = T.alloc_local((1,), "uint32")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(2))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cluster_sync()
        if tx >= 32:
            if tx == 32:
                for i in range(6):
                    if rank == 0:
                        T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)
                        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(128))
                        T.ptx.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes.multicast__cluster(
                            sm.ptr_to([i % 2, 0]), A.ptr_to([i, 0]), T.uint32(128), full.ptr_to([i % 2]), T.uint16(3))
                    else:
                        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(128))
                        T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
        else:
            for i in range(6):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
                B[rank, i, tx] = sm[i % 2, tx]
                T.cuda.warp_sync()
                if tx == 0:
                    T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(empty.ptr_to([i % 2])), T.uint32(0))
                    T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(at[0])  # <-- arrive
        if fixed:
            T.cuda.cluster_sync()
    return k
