# SPDX-License-Identifier: Apache-2.0
"""Integer operations of every dtype against Python's integers: wrapping, division, shifts, faults."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def wrap(dtype, v):
    info = np.iinfo(dtype)
    return (v - int(info.min)) % 2**info.bits + int(info.min)


def samples(dtype):
    info = np.iinfo(dtype)
    edge = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, 100]
    edge += [-1, -2, -3, -7, -8] if info.min < 0 else []
    rng = np.random.default_rng(0)
    edge += [int(v) for v in rng.integers(info.min, info.max, 24, dtype=dtype, endpoint=True)]
    pairs = [(int(x), int(y)) for x in edge for y in edge]
    pairs += [(1, 1)] * (-len(pairs) % 64)
    return pairs


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


BINARY = {
    "add": (lambda x, y: x + y, operator.add),
    "sub": (lambda x, y: x - y, operator.sub),
    "mul": (lambda x, y: x * y, operator.mul),
    "and": (lambda x, y: x & y, operator.and_),
    "or": (lambda x, y: x | y, operator.or_),
    "xor": (lambda x, y: x ^ y, operator.xor),
    "min": (lambda x, y: T.min(x, y), min),
    "max": (lambda x, y: T.max(x, y), max),
    "floordiv": (lambda x, y: x // y, operator.floordiv),
    "floormod": (lambda x, y: x % y, operator.mod),
    "truncdiv": (lambda x, y: T.truncdiv(x, y), trunc_div),
    "truncmod": (lambda x, y: T.truncmod(x, y), lambda a, b: a - trunc_div(a, b) * b),
    "ceildiv": (lambda x, y: T.ceildiv(x, y), lambda a, b: -(-a // b)),
}


def binary(op, dtype, n, out=None):
    f = BINARY[op][0] if isinstance(op, str) else op

    @T.prim_func
    def k(A: T.Buffer((n,), dtype), B: T.Buffer((n,), dtype), C: T.Buffer((n,), out or dtype)):
        T.device_entry()
        bx = T.cta_id([n // 64])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        C[i] = f(A[i], B[i])

    return k


def run(kernel, *arrays, **options):
    tirx.compile(kernel, target="cpu")(*arrays, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", BINARY)
def test_wraps_in_its_own_dtype(op, dtype):
    pairs = [(x, y) for x, y in samples(dtype) if y != 0 or "div" not in op and "mod" not in op]
    pairs += [(1, 1)] * (-len(pairs) % 64)
    a, b = (np.array([p[i] for p in pairs], dtype) for i in (0, 1))
    c = np.zeros_like(a)
    run(binary(op, dtype, len(pairs)), a, b, c)
    want = np.array([wrap(dtype, BINARY[op][1](x, y)) for x, y in pairs], dtype)
    np.testing.assert_array_equal(c, want)


COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", COMPARE)
def test_comparisons(op, dtype):
    f = COMPARE[op]
    pairs = samples(dtype)
    a, b = (np.array([p[i] for p in pairs], dtype) for i in (0, 1))
    c = np.zeros(len(pairs), "int32")
    run(binary(lambda x, y: T.cast(f(x, y), "int32"), dtype, len(pairs), "int32"), a, b, c)
    np.testing.assert_array_equal(c, [int(f(x, y)) for x, y in pairs])


@pytest.mark.parametrize("dtype", DTYPES)
def test_shifts_by_counts_in_range(dtype):
    bits = np.iinfo(dtype).bits
    pairs = [(x, s) for x, _ in samples(dtype)[::7] for s in (0, 1, bits // 2, bits - 1)]
    pairs += [(1, 1)] * (-len(pairs) % 64)
    a, s = (np.array([p[i] for p in pairs], dtype) for i in (0, 1))
    left, right = np.zeros_like(a), np.zeros_like(a)
    run(binary(lambda x, y: x << y, dtype, len(pairs)), a, s, left)
    run(binary(lambda x, y: x >> y, dtype, len(pairs)), a, s, right)
    np.testing.assert_array_equal(left, np.array([wrap(dtype, x << y) for x, y in pairs], dtype))
    np.testing.assert_array_equal(right, np.array([x >> y for x, y in pairs], dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_without_checks_counts_clamp_as_ptx_does(dtype):
    bits = np.iinfo(dtype).bits
    a = np.array([-5 if np.iinfo(dtype).min < 0 else 5, 7] * 32, dtype)
    s = np.full(64, bits + 3, dtype)
    left, right = np.ones_like(a), np.ones_like(a)
    run(binary(lambda x, y: x << y, dtype, 64), a, s, left, check=False)
    run(binary(lambda x, y: x >> y, dtype, 64), a, s, right, check=False)
    assert not left.any()
    np.testing.assert_array_equal(right, [-1 if x < 0 else 0 for x in a.tolist()])


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_without_checks_division_by_zero_gives_ptx_results(dtype):
    a = np.arange(64).astype(dtype)
    zero, q, r = np.zeros(64, dtype), np.zeros(64, dtype), np.zeros(64, dtype)
    run(binary("truncdiv", dtype, 64), a, zero, q, check=False)
    run(binary("truncmod", dtype, 64), a, zero, r, check=False)
    assert (q == np.array(-1).astype(dtype)).all()
    np.testing.assert_array_equal(r, a)


@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod"])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "int8"])
def test_division_by_zero_is_reported(op, dtype):
    a, b, c = np.ones(64, dtype), np.ones(64, dtype), np.zeros(64, dtype)
    b[37] = 0
    with pytest.raises(tirx.EmulationError, match="integer division by zero") as e:
        run(binary(op, dtype, 64), a, b, c)
    assert e.value.kind == "arithmetic" and "thread (37, 0, 0)" in str(e.value)


def test_a_count_outside_the_type_is_reported():
    a, b, c = np.ones(64, "int32"), np.ones(64, "int32"), np.zeros(64, "int32")
    b[5] = 32
    with pytest.raises(tirx.EmulationError, match=r"shift by 32 is outside 0\.\.31") as e:
        run(binary(lambda x, y: x << y, "int32", 64), a, b, c)
    assert e.value.kind == "arithmetic"
    b[5] = -1
    with pytest.raises(tirx.EmulationError, match=r"shift by -1 is outside 0\.\.31"):
        run(binary(lambda x, y: x >> y, "int32", 64), a, b, c)


def test_a_fault_in_lanes_that_do_not_execute_it_is_none():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        if A[tx] != 0:
            B[tx] = 1000 // A[tx]

    a = np.arange(-32, 32).astype("int32")
    b = np.zeros(64, "int32")
    run(k, a, b)
    np.testing.assert_array_equal(b, [1000 // x if x else 0 for x in a.tolist()])


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_wrap(dtype, to):
    a = np.array([x for x, _ in samples(dtype)][:: len(samples(dtype)) // 64][:64], dtype)
    b = np.zeros(64, to)

    @T.prim_func
    def k(A: T.Buffer((64,), dtype), B: T.Buffer((64,), to)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = T.cast(A[tx], to)

    run(k, a, b)
    np.testing.assert_array_equal(b, a.astype(to))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_unary(dtype):
    a = np.array([x for x, _ in samples(dtype)][:: len(samples(dtype)) // 64][:64], dtype)
    bits = np.iinfo(dtype).bits
    neg, inv, mag, pop, clz = (np.zeros(64, dtype) for _ in range(5))

    @T.prim_func
    def k(
        A: T.Buffer((64,), dtype), N: T.Buffer((64,), dtype), V: T.Buffer((64,), dtype), M: T.Buffer((64,), dtype),
        P: T.Buffer((64,), dtype), Z: T.Buffer((64,), dtype),
    ):  # fmt: skip
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        N[tx] = -A[tx]
        V[tx] = ~A[tx]
        M[tx] = T.abs(A[tx])
        P[tx] = T.popcount(A[tx])
        Z[tx] = T.clz(A[tx])

    run(k, a, neg, inv, mag, pop, clz)
    ints = a.tolist()
    np.testing.assert_array_equal(neg, np.array([wrap(dtype, -x) for x in ints], dtype))
    np.testing.assert_array_equal(inv, np.array([wrap(dtype, ~x) for x in ints], dtype))
    np.testing.assert_array_equal(mag, np.array([wrap(dtype, abs(x)) for x in ints], dtype))
    np.testing.assert_array_equal(pop, [bin(x % 2**bits).count("1") for x in ints])
    np.testing.assert_array_equal(clz, [bits - (x % 2**bits).bit_length() for x in ints])


@pytest.mark.parametrize("c", [1, 2, 3, 5, 8, 32, 64, 1000, -1, -2, -7, -32])
def test_by_constants_of_thread_indices(c):
    """The VM knows the pattern of thread indices: quotients that do not differ in a warp are computed once."""
    out = np.zeros((6, 256), "int32")

    @T.prim_func
    def k(B: T.Buffer((6, 256), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        B[0, tx] = tx // c
        B[1, tx] = tx % c
        B[2, tx] = (tx * 4 + 96) // c
        B[3, tx] = (tx + 64) % c
        B[4, tx] = (tx - 100) // c
        B[5, tx] = T.truncmod(tx - 100, c)

    run(k, out)
    t = np.arange(256)
    want = [t // c, t % c, (t * 4 + 96) // c, (t + 64) % c, (t - 100) // c, np.fmod(t - 100, c)]
    np.testing.assert_array_equal(out, np.array(want))
