# SPDX-License-Identifier: Apache-2.0
"""Exchange between lanes: shuffles, votes, reductions, also by parts of a warp; and who may take part."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

LANES = np.arange(32)


def run(kernel, *arrays, **options):
    tirx.compile(kernel, target="cpu")(*arrays, **options)


def shuffle(f, dtype="int32", n=32):
    @T.prim_func
    def k(A: T.Buffer((n,), dtype), D: T.Buffer((n,), "int32"), B: T.Buffer((n,), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([n])
        B[tx] = f(A[tx], D[tx])

    return k


def segment(lane, width):
    low = lane & ~(width - 1)
    return low, low | (width - 1)


def source(mode, lane, b, width):
    low, high = segment(lane, width)
    b &= 31
    if mode == "idx":
        return low | (b & (width - 1))
    j = {"up": lane - b, "down": lane + b, "xor": lane ^ b}[mode]
    return j if (j >= low if mode == "up" else j <= high) else lane


MODES = {
    "idx": lambda w: lambda v, b: T.tvm_warp_shuffle(0xFFFFFFFF, v, b, w, 32),
    "up": lambda w: lambda v, b: T.tvm_warp_shuffle_up(0xFFFFFFFF, v, b, w, 32),
    "down": lambda w: lambda v, b: T.tvm_warp_shuffle_down(0xFFFFFFFF, v, b, w, 32),
    "xor": lambda w: lambda v, b: T.tvm_warp_shuffle_xor(0xFFFFFFFF, v, b, w, 32),
}


@pytest.mark.parametrize("width", [2, 8, 16, 32])
@pytest.mark.parametrize("mode", MODES)
def test_shuffles(mode, width):
    exe = tirx.compile(shuffle(MODES[mode](width)), target="cpu")
    a = np.arange(100, 132).astype("int32")
    for seed in range(4):
        d = np.random.default_rng(seed).integers(0, 32, 32).astype("int32")
        b = np.zeros_like(a)
        exe(a, d, b)
        np.testing.assert_array_equal(b, [a[source(mode, lane, int(d[lane]), width)] for lane in range(32)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_shuffles_move_every_dtype(dtype):
    a = (np.arange(32) * 5 - 9).astype(dtype)
    b = np.zeros_like(a)
    run(shuffle(MODES["xor"](32), dtype), a, np.full(32, 5, "int32"), b)
    np.testing.assert_array_equal(b, a[LANES ^ 5])


def test_two_halves_that_shuffle_among_themselves():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if lane < 16:
            B[lane] = T.tvm_warp_shuffle_xor(0x0000FFFF, A[lane], 1, 32, 32)
        else:
            B[lane] = T.tvm_warp_shuffle_xor(0xFFFF0000, A[lane], 2, 32, 32) * 10

    a = np.arange(32).astype("int32")
    b = np.zeros_like(a)
    run(k, a, b)
    np.testing.assert_array_equal(b, np.where(LANES < 16, LANES ^ 1, (LANES ^ 2) * 10))


def test_lanes_that_come_to_one_shuffle_by_two_ways():
    """The mask names all lanes; the halves reach instructions of one kind in different branches."""

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        v: T.int32 = 0
        if lane < 16:
            v = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[lane], 16, 32, 32)
        else:
            v = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[lane] * 100, 16, 32, 32)
        T.cuda.warp_sync()
        B[lane] = v

    a = np.arange(32).astype("int32")
    b = np.zeros_like(a)
    run(k, a, b)
    np.testing.assert_array_equal(b, np.where(LANES < 16, (LANES ^ 16) * 100, LANES ^ 16))


def test_votes():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((5, 32), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        B[0, lane] = T.cuda.ballot_sync(0xFFFFFFFF, A[lane] > 3)
        B[1, lane] = T.cast(T.cuda.any_sync(0xFFFFFFFF, A[lane] > 30), "uint32")
        B[2, lane] = T.cuda.reduce_add_sync_u32(0xFFFFFFFF, T.cast(A[lane], "uint32"))
        B[3, lane] = T.cuda.reduce_min_sync_u32(0xFFFFFFFF, T.cast(A[lane] + 5, "uint32"))
        if lane % 2 == 0:
            B[4, lane] = T.tvm_warp_activemask()

    a = np.random.default_rng(0).integers(0, 9, 32).astype("int32")
    b = np.zeros((5, 32), "uint32")
    run(k, a, b)
    assert (b[0] == sum(1 << i for i in range(32) if a[i] > 3)).all()
    assert (b[1] == 0).all()
    assert (b[2] == a.sum()).all()
    assert (b[3] == a.min() + 5).all()
    assert (b[4, ::2] == 0x55555555).all()


def test_elect_takes_the_lowest_lane():
    @T.prim_func
    def k(B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if T.cuda.elect_sync():
            B[tx] = 1

    b = np.zeros(64, "int32")
    run(k, b)
    np.testing.assert_array_equal(b, [1, *[0] * 31] * 2)


@pytest.mark.parametrize("op", ["sum", "min", "max"])
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "int64"])
def test_warp_reductions(op, dtype):
    f = {"sum": T.cuda.warp_sum, "min": T.cuda.warp_min, "max": T.cuda.warp_max}[op]

    @T.prim_func
    def k(A: T.Buffer((64,), dtype), B: T.Buffer((64,), dtype), C: T.Buffer((64,), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = f(A[tx])
        C[tx] = f(A[tx], 8)

    a = np.random.default_rng(1).integers(-50, 50, 64).astype(dtype)
    b, c = np.zeros_like(a), np.zeros_like(a)
    run(k, a, b, c)
    ref = {"sum": np.sum, "min": np.min, "max": np.max}[op]
    np.testing.assert_array_equal(b, np.repeat([ref(a[:32]), ref(a[32:])], 32).astype(dtype))
    np.testing.assert_array_equal(c, np.repeat([ref(x) for x in a.reshape(8, 8)], 8).astype(dtype))


@pytest.mark.parametrize("threads", [32, 128, 1024])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_cta_reductions(op, threads):
    f = {"sum": T.cuda.cta_sum, "max": T.cuda.cta_max}[op]

    @T.prim_func
    def k(A: T.Buffer((3, threads), "float32"), B: T.Buffer((3, threads), "float32")):
        T.device_entry()
        bx = T.cta_id([3])
        tx = T.thread_id([threads])
        scratch = T.alloc_shared((threads // 32,), "float32")
        B[bx, tx] = f(A[bx, tx], threads // 32, scratch.ptr_to([0]))

    a = np.random.default_rng(1).integers(-50, 50, (3, threads)).astype("f4")
    b = np.zeros_like(a)
    run(k, a, b)
    want = a.sum(1) if op == "sum" else a.max(1)
    np.testing.assert_array_equal(b, np.repeat(want[:, None], threads, 1))


def warp_report(kernel, *arrays):
    with pytest.raises(tirx.EmulationError) as e:
        run(kernel, *arrays)
    return e.value


def test_a_lane_outside_the_mask_is_reported():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        B[lane] = T.tvm_warp_shuffle_xor(0x0000FFFF, A[lane], 1, 32, 32)

    e = warp_report(k, np.zeros(32, "int32"), np.zeros(32, "int32"))
    assert e.kind == "warp" and "lane 16 executes an instruction whose mask 0x0000ffff does not name it" in str(e)


def test_a_source_that_does_not_take_part_is_reported():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if lane < 16:
            B[lane] = T.tvm_warp_shuffle_down(0x0000FFFF, A[lane], 16, 32, 32)

    e = warp_report(k, np.zeros(32, "int32"), np.zeros(32, "int32"))
    assert e.kind == "warp" and "shuffle: lane 0 reads lane 16, which does not take part" in str(e)


def test_members_that_never_come_are_reported():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if lane < 16:
            B[lane] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[lane], 1, 32, 32)

    e = warp_report(k, np.zeros(32, "int32"), np.zeros(32, "int32"))
    assert e.kind == "warp" and "names lane 16, which has left the kernel without it" in str(e)
    b = np.zeros(32, "int32")
    run(k, np.arange(32).astype("int32"), b, check=False)  # those that are still there are enough
    np.testing.assert_array_equal(b, np.where(LANES < 16, LANES ^ 1, 0))


def test_lanes_that_left_before_are_not_waited_for():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        lane = T.thread_id([32])
        if lane >= 16:
            return
        B[lane] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[lane], 1, 32, 32)

    b = np.zeros(32, "int32")
    run(k, np.arange(32).astype("int32"), b)
    np.testing.assert_array_equal(b, np.where(LANES < 16, LANES ^ 1, 0))


def test_warp_sync_of_some_lanes_orders_only_them():
    def make(mask):
        @T.prim_func
        def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            lane = T.thread_id([32])
            sm = T.alloc_shared((32,), "int32")
            sm[lane] = A[lane]
            if lane < 16:
                T.cuda.warp_sync(0xFFFF)
                B[lane] = sm[lane ^ mask]

        return k

    a, b = np.arange(32).astype("int32"), np.zeros(32, "int32")
    run(make(1), a, b)
    np.testing.assert_array_equal(b, np.where(LANES < 16, LANES ^ 1, 0))
    e = warp_report(make(16), a, b)
    assert e.kind == "race" and e.buffer == "sm"
