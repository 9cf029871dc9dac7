# SPDX-License-Identifier: Apache-2.0
"""Barriers among resumable warps: who waits for whom, who never comes, what exited threads mean."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T


def run(kernel, *arrays, **options):
    return tirx.compile(kernel, target="cpu")(*arrays, **options)


def report(kernel, *arrays, **options):
    with pytest.raises(tirx.EmulationError) as e:
        run(kernel, *arrays, **options)
    return e.value


def ints(*shape):
    return np.random.default_rng(0).integers(-99, 99, shape).astype("int32")


@pytest.mark.parametrize("check", [True, False])
def test_many_barriers_in_a_loop(check):
    @T.prim_func
    def k(A: T.Buffer((5, 256), "int32"), B: T.Buffer((5, 256), "int32")):
        T.device_entry()
        bx = T.cta_id([5])
        tx = T.thread_id([256])
        sm = T.alloc_shared((2, 256), "int32")
        sm[0, tx] = A[bx, tx]
        T.cuda.cta_sync()
        for i in range(20):
            sm[(i + 1) % 2, tx] = sm[i % 2, (tx + 37) % 256] + i
            T.cuda.cta_sync()
        B[bx, tx] = sm[0, tx]

    a = ints(5, 256)
    b = np.zeros_like(a)
    run(k, a, b, check=check)
    want = a
    for i in range(20):
        want = np.roll(want, -37, axis=1) + i
    np.testing.assert_array_equal(b, want)


def test_syncthreads_and_or():
    @T.prim_func
    def k(A: T.Buffer((96,), "int32"), B: T.Buffer((4, 96), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([96])
        B[0, tx] = T.cast(T.cuda.syncthreads_and(A[tx] > 0), "int32")
        B[1, tx] = T.cast(T.cuda.syncthreads_and(A[tx] > 1), "int32")
        B[2, tx] = T.cast(T.cuda.syncthreads_or(A[tx] == 77), "int32")
        B[3, tx] = T.cast(T.cuda.syncthreads_or(A[tx] == 78), "int32")

    a = np.full(96, 1, "int32")
    a[60] = 77
    b = np.full((4, 96), 9, "int32")
    run(k, a, b)
    np.testing.assert_array_equal(b, np.repeat([[1], [0], [1], [0]], 96, 1))


def test_a_lane_that_waits_does_not_stop_the_lanes_it_waits_for():
    """Half of a warp spins until the other half, behind the join, has stored."""

    @T.prim_func
    def k(F: T.Buffer((1,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if lane < 16:
            T.cuda.warp_sync(0xFFFF)
        else:
            T.cuda.warp_sync(0xFFFF0000)
        B[lane] = lane

    b = np.zeros(32, "int32")
    run(k, np.zeros(1, "int32"), b)
    np.testing.assert_array_equal(b, np.arange(32))


def test_spinning_on_a_flag_of_a_later_cta():
    """As if all CTAs were resident: one that turns without change gives way to later ones."""

    @T.prim_func
    def k(F: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        T.device_entry()
        bx = T.cta_id([4])
        tx = T.thread_id([1])
        seen = T.alloc_local((1,), "int32")
        seen[0] = 0
        if bx < 3:
            while seen[0] == 0:
                T.ptx.ld.acquire.gpu.global_.s32(seen[0], F.ptr_to([bx + 1]))
                T.cuda.nano_sleep(20)
        B[bx] = bx + 1
        T.ptx.st.release.gpu.global_.s32(F.ptr_to([bx]), 1)

    for options in ({}, {"check": False}, {"schedule": 3}):
        f, b = np.zeros(4, "int32"), np.zeros(4, "int32")
        run(k, f, b, **options)
        assert b.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("check", [True, False])
def test_parts_of_a_warp_that_join_at_a_barrier_run_once(check):
    """Lane 0 waits for the other warp and lets the other lanes of its own go, which come to the barrier behind it."""

    @T.prim_func
    def k(B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        bar = T.alloc_shared((2,), "uint64")
        if tx == 2:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([1]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))
        if tx == 0:
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
            T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([1]))
        T.cuda.mbarrier_wait(bar.ptr_to([1]), 0)
        if tx < 32:
            T.ptx.bar.sync(T.uint32(9), T.uint32(32))
            B[tx] += 1
        T.cuda.cta_sync()
        B[tx] += 1

    for schedule in ("late", "early", *range(8)):
        b = np.zeros(64, "int32")
        run(k, b, check=check, schedule=schedule)
        np.testing.assert_array_equal(b, np.repeat([2, 1], 32))


def test_grid_sync():
    @T.prim_func
    def k(A: T.Buffer((6, 64), "int32"), B: T.Buffer((6, 64), "int32"), C: T.Buffer((6, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([6])
        tx = T.thread_id([64])
        B[bx, tx] = A[bx, tx] * 2
        T.cuda.grid_sync()
        C[bx, tx] = B[5 - bx, 63 - tx]

    a = ints(6, 64)
    b, c = np.zeros_like(a), np.zeros_like(a)
    run(k, a, b, c)
    np.testing.assert_array_equal(c, (a * 2)[::-1, ::-1])


def test_warpgroup_barriers():
    @T.prim_func
    def k(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        wg = T.warpgroup_id([2])
        sm = T.alloc_shared((256,), "int32")
        sm[tx] = A[tx]
        T.cuda.warpgroup_sync(wg + 1)
        B[tx] = sm[wg * 128 + 127 - tx % 128]
        T.cuda.warpgroup_sync(wg + 1)
        sm[tx] = B[tx]

    a = ints(256)
    b = np.zeros_like(a)
    run(k, a, b)
    np.testing.assert_array_equal(b, a.reshape(2, 128)[:, ::-1].ravel())


def test_a_warpgroup_barrier_orders_only_the_warpgroup():
    @T.prim_func
    def k(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        sm = T.alloc_shared((256,), "int32")
        sm[tx] = A[tx]
        T.cuda.warpgroup_sync(tx // 128 + 1)
        B[tx] = sm[255 - tx]

    e = report(k, ints(256), np.zeros(256, "int32"))
    assert e.kind == "race" and e.buffer == "sm"


def test_a_barrier_number_that_does_not_exist():
    @T.prim_func
    def k(B: T.Buffer((128,), "int32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        T.cuda.warpgroup_sync(n)
        B[tx] = n

    b = np.zeros(128, "int32")
    run(k, b, 15)
    assert (b == 15).all()
    e = report(k, b, 16)
    assert e.kind == "barrier" and e.buffer == "barrier 16" and "there are barriers 0 to 15" in str(e)


def test_threads_that_left_count_at_a_barrier_with_a_warning():
    @T.prim_func
    def k(A: T.Buffer((100,), "int32"), B: T.Buffer((100,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((128,), "int32")
        if tx >= 100:
            return
        sm[tx] = A[tx]
        T.cuda.cta_sync()
        B[tx] = sm[99 - tx]

    a = ints(100)
    b = np.zeros_like(a)
    with pytest.warns(tirx.EmulationWarning) as w:
        run(k, a, b)
    np.testing.assert_array_equal(b, a[::-1])
    assert len(w) == 1 and w[0].message.kind == "divergence" and w[0].message.buffer == "barrier 0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(k, a, b, check=False)


def test_a_loop_whose_turns_differ_within_a_warp():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        v: T.int32 = 0
        for i in range(1 + tx % 2):
            v += A[tx]
            T.cuda.cta_sync()
        B[tx] = v

    e = report(k, ints(64), np.zeros(64, "int32"))
    assert e.kind == "divergence" and e.buffer == "barrier 0" and "others of it have left the kernel" in str(e)


def test_two_branches_with_a_barrier_each():
    @T.prim_func
    def k(B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if tx < 16:
            T.cuda.cta_sync()
        else:
            T.cuda.cta_sync()
        B[tx] = tx

    b = np.zeros(32, "int32")
    e = report(k, b)
    assert e.kind == "divergence" and len(e.lines) == 2 and "its threads stand at different barriers" in str(e)
    run(k, b, check=False)
    np.testing.assert_array_equal(b, np.arange(32))


def test_warps_may_stand_at_different_statements_of_one_barrier():
    @T.prim_func
    def k(B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if tx < 32:
            T.cuda.cta_sync()
        else:
            T.cuda.cta_sync()
        B[tx] = tx

    b = np.zeros(64, "int32")
    run(k, b)
    np.testing.assert_array_equal(b, np.arange(64))


def test_a_warp_that_waits_for_ever():
    @T.prim_func
    def k(B: T.Buffer((256,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        if tx < 128:
            T.cuda.warpgroup_sync(1)
        else:
            T.cuda.warpgroup_sync(2)
        if tx < 64:
            T.cuda.warpgroup_sync(3)
        B[tx] = tx

    e = report(k, np.zeros(256, "int32"))
    assert e.kind == "deadlock" and e.buffer == "barrier 3" and len(e.lines) == 1
    e = report(k, np.zeros(256, "int32"), check=False)
    assert e.kind == "deadlock"


def test_a_loop_that_waits_for_what_nobody_does():
    @T.prim_func
    def k(F: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if tx == 40:
            while F[0] == 0:
                T.cuda.nano_sleep(100)
        B[tx] = tx

    e = report(k, np.zeros(1, "int32"), np.zeros(64, "int32"))
    assert e.kind == "deadlock" and "loops at" in str(e)


def test_a_long_computation_is_no_deadlock():
    @T.prim_func
    def k(B: T.Buffer((1,), "int32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        v: T.int32 = 1
        i: T.int32 = 0
        while i < n:
            v = v * 3 + 1
            i = i + 1
        B[0] = v

    b = np.zeros(1, "int32")
    run(k, b, 3_000_000)
    want = 1
    for _ in range(3_000_000):
        want = (want * 3 + 1) & 0xFFFFFFFF
    assert int(b[0]) & 0xFFFFFFFF == want
