# SPDX-License-Identifier: Apache-2.0
"""Names of T.cuda that no other file tests by value: thread and cluster queries, clocks, packed conversions, traps, and
what is said of wrong operands."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def run(kernel, target, *arrays):
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    tensors = [tirx.runtime.tensor(a, device) for a in arrays]
    tirx.compile(kernel, target=target)(*tensors)
    return [t.numpy() for t in tensors]


@T.prim_func
def where(A: T.Buffer((4, 4, 64, 10), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(4, 4), block=(8, 8), cluster=(2, 2)))
    bx, by = T.cuda.block_idx("x"), T.cuda.block_idx("y")
    t: T.let = T.cuda.linear_thread_id()
    A[by, bx, t, 0] = T.cuda.cluster_id("x") * 10 + T.cuda.cluster_id("y")
    A[by, bx, t, 1] = T.cuda.cluster_cta_id("x") * 10 + T.cuda.cluster_cta_id("y")
    A[by, bx, t, 2] = T.cuda.cluster_dim("x") * 10 + T.cuda.cluster_dim("y")
    A[by, bx, t, 3] = T.cast(T.cuda.cta_pair_id(), "int32")
    A[by, bx, t, 4] = T.cuda.thread_rank()
    A[by, bx, t, 5] = T.cuda.warp_id() * 100 + T.cuda.lane_id()
    A[by, bx, t, 6] = T.cuda.warpgroup_id() * 1000 + T.cuda.warp_in_warpgroup() * 100 + T.cuda.thread_in_warpgroup()
    A[by, bx, t, 7] = T.cuda.grid_dim("x") * 100 + T.cuda.grid_dim("y") * 10 + T.cuda.grid_dim("z")
    A[by, bx, t, 8] = T.cuda.block_dim("x") * 100 + T.cuda.block_dim("y") * 10 + T.cuda.block_dim("z")
    A[by, bx, t, 9] = T.cast(T.cuda.ffs_u32(T.cast(t, "uint32")), "int32")


@pytest.mark.parametrize("target", TARGETS)
def test_where_a_thread_is(target):
    (a,) = run(where, target, np.zeros((4, 4, 64, 10), "int32"))
    y, x, t = np.mgrid[:4, :4, :64]
    want = [
        x // 2 * 10 + y // 2,
        x % 2 * 10 + y % 2,
        22 + 0 * t,
        x % 2,  # the rank in the cluster counts x first
        t,
        t // 32 * 100 + t % 32,
        t // 32 * 100 + t,
        441 + 0 * t,
        881 + 0 * t,
        np.where(t == 0, 0, np.log2(np.maximum(t & -t, 1)).astype(int) + 1),
    ]
    for k, w in enumerate(want):
        np.testing.assert_array_equal(a[..., k], w, err_msg=str(k))


@T.prim_func
def packed(
    F: T.Buffer((16,), "float32"),
    H: T.Buffer((16,), "float16"),
    U: T.Buffer((8,), "uint32"),
    P: T.Buffer((4,), "uint64"),
):
    T.device_entry()
    tx = T.thread_id([1])
    f = T.alloc_local((8,), "float32")
    h = T.alloc_local((8,), "float16")
    for i in T.unroll(8):
        f[i] = F[i]
    T.cuda.float8tohalf8(f.data, h.data)
    for i in T.unroll(8):
        H[i] = h[i]
        h[i] = h[i] + T.float16(1)
    T.cuda.half8tofloat8(h.data, f.data)
    for i in T.unroll(8):
        F[8 + i] = f[i]
    T.cuda.float22half2(h.data, f.data)
    H[8] = h[0]
    H[9] = h[1]
    U[0] = T.cuda.float22bfloat162_rn(F[0], F[1])
    pair: T.let = T.cuda.make_float2(F[2], F[3])
    U[1] = T.cuda.float22bfloat162_rn_from_float2(pair)
    P[0] = pair
    P[1] = T.cuda.bfloat1622float2(U[0])
    U[2] = T.cuda.hmax2(U[0], U[1])
    U[3] = T.cuda.hmin2(U[0], U[1])
    U[4] = T.cuda.float_as_uint(T.cuda.float2_x(pair))
    U[5] = T.cuda.float_as_uint(T.cuda.float2_y(pair))
    U[6] = T.cuda.float_as_uint(T.cuda.fdividef(F[4], T.float32(2)))
    U[7] = T.cuda.float_as_uint(T.cuda.uint_as_float(T.uint32(0x40490FDB)))


def bf16(x):
    """float32 to the bits of bfloat16, to the nearest even."""
    b = np.asarray(x, "float32").view("uint32").astype("uint64")
    return ((b + 0x7FFF + (b >> 16 & 1)) >> 16).astype("uint32")


@pytest.mark.parametrize("target", TARGETS)
def test_packed_values(target):
    x = np.array([1.1, -2.7, 3.14159, 1e-3, 6.5, 65504.0, -0.0, 0.33], "float32")
    f, h, u, p = run(
        packed,
        target,
        np.concatenate([x, 0 * x]),
        *(np.zeros(*s) for s in ((16, "float16"), (8, "uint32"), (4, "uint64"))),
    )
    half = x.astype("float16")
    np.testing.assert_array_equal(h[:8], half)
    more = (half + np.float16(1)).astype("float32")
    np.testing.assert_array_equal(f[8:], more)
    np.testing.assert_array_equal(h[8:10], more[:2].astype("float16"))
    b = bf16(x)
    assert u[0] == b[0] | b[1] << 16 and u[1] == b[2] | b[3] << 16
    bits = x.view("uint32").astype("uint64")
    assert p[0] == bits[2] | bits[3] << np.uint64(32)
    assert p[1] == np.uint64(b[0]) << np.uint64(16) | np.uint64(b[1]) << np.uint64(48)
    assert u[2] == b[2] | b[3] << 16 and u[3] == b[0] | b[1] << 16  # 3.14, 0.001 against 1.1, -2.7
    assert [int(k) for k in u[4:]] == [bits[2], bits[3], np.float32(3.25).view("uint32"), 0x40490FDB]


@T.prim_func
def packed_sums(A: T.Buffer((4,), "uint64")):
    T.device_entry()
    tx = T.thread_id([1])
    A[2] = T.cuda.fadd2_rn(A[0], A[1])
    A[3] = T.cuda.fmul2_rn(A[0], A[1])


def test_packed_sums(nvrtc):
    a, b = np.array([1.5, -2.25], "float32"), np.array([1e-3, 7.7], "float32")
    out = np.concatenate([a, b, a, b]).view("uint64")
    tirx.compile(packed_sums, target="cpu")(out)
    np.testing.assert_array_equal(out[2:].view("float32"), np.concatenate([a + b, a * b]))
    assert tirx.compile(packed_sums, target="cuda:sm_100a").cubin[:4] == b"\x7fELF"
    with pytest.raises(DiagnosticError, match="needs sm_100, the target is sm_90a"):
        tirx.compile(packed_sums, target="cuda:sm_90a")


@T.prim_func
def timed(A: T.Buffer((4,), "uint64"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([1])
    T.cuda.trap_when_assert_failed(n > 0)
    A[0] = T.cast(T.cuda.clock64(), "uint64")
    T.cuda.nano_sleep(100)
    A[1] = T.cast(T.cuda.clock64(), "uint64")


def test_clock_and_trap(nvrtc):
    a = np.zeros(4, "uint64")
    exe = tirx.compile(timed, target="cpu")
    exe(a, 1)
    assert a[1] > a[0]
    with pytest.raises((AssertionError, tirx.EmulationError)):
        exe(a, 0)
    source = tirx.compile(timed, target="cuda:sm_90a").source
    assert "clock64()" in source and "trap;" in source and "__nanosleep(" in source


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("A[tx] = T.cuda.warp_reduce(x, 'sum', 3)",
         "The warp_reduce width is invalid, expect a value within range [2, 32] and be a power of 2"),
        ("A[tx] = T.cuda.warp_sum(x, 64)", "The warp_reduce width is invalid"),
        ("A[tx] = T.cuda.warp_reduce(x, 'prod')", "op must be one of ('sum', 'max', 'min'), got 'prod'"),
        ("T.cuda.ldg(A.ptr_to([0]), 'float32', vec='v2')", "vector cuda.ldg requires dst"),
        ("a = T.alloc_local((2,), 'float32')\n    T.cuda.ldg(A.data, 'float32', dst=(a[0],), vec='v2')",
         "dst needs 2 elements for v2, got 1"),
        ("T.cuda.copy_bytes(A.ptr_to([0]), A.ptr_to([8]), 3)", "copies 1, 2, 4, 8 or 16 bytes, got 3"),
        ("T.cuda.printf(3)", "T.cuda.printf needs a string literal as its format"),
    ],
)  # fmt: skip
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((32,), "float32")):
    T.device_entry()
    tx = T.thread_id([32])
    x: T.float32 = 0.0
    {line}
""")
    assert text in str(e.value)
