# SPDX-License-Identifier: Apache-2.0
"""T.cuda's packed values, conversions, addresses and copies on the emulator, and that NVRTC takes them."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

RNG = np.random.default_rng(11)
X = RNG.normal(0, 3, 32).astype("float32")
Y = RNG.normal(0, 3, 32).astype("float32")


def bf16(x):
    u = x.view("uint32").astype("uint64")
    return (u + 0x7FFF + (u >> 16 & 1)) >> 16


@T.prim_func
def values(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), D: T.Buffer((12, 32), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    i = T.thread_id([32])
    pair: T.uint64 = T.cuda.make_float2(A[i], B[i])
    D[0, i] = T.cuda.float_as_uint(T.cuda.float2_x(pair))
    D[1, i] = T.cuda.float_as_uint(T.cuda.float2_y(pair))
    h: T.uint32 = T.cuda.float22bfloat162_rn(A[i], B[i])
    D[2, i] = h
    D[3, i] = T.cuda.float22bfloat162_rn_from_float2(pair)
    wide: T.uint64 = T.cuda.bfloat1622float2(h)
    D[4, i] = T.cuda.float_as_uint(T.cuda.float2_x(wide))
    D[5, i] = T.cuda.float_as_uint(T.cuda.float2_y(wide))
    D[6, i] = T.cuda.hmin2(h, T.uint32(0x3F803F80))
    D[7, i] = T.cuda.hmax2(h, T.uint32(0x3F803F80))
    D[8, i] = T.cuda.fp8x4_e4m3_from_float4(A[i], B[i], A[i], T.float32(1))
    D[9, i] = T.cuda.get_tmem_addr(T.uint32(0xFFFF0005), 2, i)
    D[10, i] = T.cuda.smem_addr_from_uint64(pair)
    T.cuda.iket.mark("here")
    D[11, i] = T.cuda.uint_as_float(T.uint32(0x40000000)) + T.float32(T.cuda.iket.range_start("r"))


@T.prim_func
def memory(
    H: T.Buffer((64,), "float16"),
    F: T.Buffer((64,), "float32"),
    R: T.Buffer((64,), "float16"),
    C: T.Buffer((64,), "float32"),
):
    T.device_entry()
    bx = T.cta_id([1])
    i = T.thread_id([8])
    v = T.alloc_buffer((4,), "float32", scope="local")
    T.cuda.half8tofloat8(H.ptr_to([i * 8]), F.ptr_to([i * 8]))
    T.cuda.float8tohalf8(F.ptr_to([i * 8]), R.ptr_to([i * 8]))
    T.cuda.copy_128b(C.ptr_to([i * 8]), F.ptr_to([i * 8]))
    T.cuda.ldg(F.ptr_to([i * 8 + 4]), "float32", dst=(v[0], v[1], v[2], v[3]), vec="v4")
    for k in T.unroll(4):
        C[i * 8 + 4 + k] = v[k]


def test_values():
    ml = pytest.importorskip("ml_dtypes")
    d = np.zeros((12, 32), "uint32")
    tirx.compile(values, target="cpu")(X, Y, d)
    both = bf16(Y) << 16 | bf16(X)
    np.testing.assert_array_equal(d[0], X.view("uint32"))
    np.testing.assert_array_equal(d[1], Y.view("uint32"))
    np.testing.assert_array_equal(d[2], both)
    np.testing.assert_array_equal(d[3], both)
    np.testing.assert_array_equal(d[4], bf16(X) << 16)
    np.testing.assert_array_equal(d[5], bf16(Y) << 16)
    halves = [((bf16(v) << 16).astype("uint32").view("float32")) for v in (X, Y)]
    for row, f in ((6, np.minimum), (7, np.maximum)):
        low, high = (f(v, np.float32(1)).view("uint32") >> 16 for v in halves)
        np.testing.assert_array_equal(d[row], high << 16 | low)
    e4 = [v.astype(ml.float8_e4m3fn).view("uint8").astype("uint32") for v in (X, Y, X, np.ones_like(X))]
    np.testing.assert_array_equal(d[8], e4[0] | e4[1] << 8 | e4[2] << 16 | e4[3] << 24)
    np.testing.assert_array_equal(d[9], 0x00010000 | (5 + np.arange(32)))
    np.testing.assert_array_equal(d[10], X.view("uint32"))
    assert (d[11] == 2).all()


def test_memory():
    h, f, r, c = (
        RNG.normal(0, 1, 64).astype("float16"),
        np.zeros(64, "float32"),
        np.zeros(64, "float16"),
        np.zeros(64, "float32"),
    )
    tirx.compile(memory, target="cpu")(h, f, r, c)
    np.testing.assert_array_equal(f, h.astype("float32"))
    np.testing.assert_array_equal(r, h)
    np.testing.assert_array_equal(c, f)


@pytest.mark.parametrize("kernel", [values, memory], ids=["values", "memory"])
def test_nvrtc_takes_them(kernel, nvrtc):
    assert tirx.compile(kernel, target="cuda:sm_90a").cubin[:4] == b"\x7fELF"


def test_refusals():
    with pytest.raises(ValueError, match="1, 2, 4, 8 or 16 bytes"):

        @T.prim_func
        def k(A: T.Buffer((32,), "float32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            T.cuda.copy_bytes(A.ptr_to([0]), A.ptr_to([16]), 3)
