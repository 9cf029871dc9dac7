# SPDX-License-Identifier: Apache-2.0
"""Integers of 128 bits are held, copied, compared and converted; there is no arithmetic on them."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

HEAD = """
@T.prim_func
def k(A: T.Buffer((64, 2), "uint64"), B: T.Buffer((64, 2), "uint64"), s: T.int64):
    T.device_entry()
    tx = T.thread_id([64])
    a = T.decl_buffer((64,), "{t}", data=A.data)
    b = T.decl_buffer((64,), "{t}", data=B.data)
    v: T.{t} = a[tx]
    w = T.alloc_local((2,), "{t}")
    w[1] = v
    m = T.alloc_shared((64,), "{t}")
    m[tx] = w[1]
    T.cuda.cta_sync()
"""
TX = np.arange(64)


def kernel(text: str, t: str = "uint128"):
    return tirx.from_source(HEAD.format(t=t) + "    " + text + "\n")


def words(x, bits: int = 64) -> list[list[int]]:
    """Low and high words of Python's integers."""
    return [[int(v) & (2**64 - 1), int(v) >> 64 & (2**64 - 1)] for v in x]


RNG = np.random.default_rng(128)
A = RNG.integers(0, 2**64, (64, 2), dtype=np.uint64)
A[5] = 0
NUMBERS = [int(low) | int(high) << 64 for low, high in A]
ROWS = {
    "copy": ("b[63 - tx] = m[tx]", NUMBERS[::-1]),
    "literal": ("b[tx] = T.{t}(5)", [5] * 64),
    "choice": ("b[tx] = T.if_then_else(tx < 9, v, m[63 - tx])", NUMBERS[:9] + NUMBERS[::-1][9:]),
    "select": ("b[tx] = T.Select(tx < 9, m[63 - tx], v)", NUMBERS[::-1][:9] + NUMBERS[9:]),
    "from int64": ("b[tx] = T.cast(s, '{t}')", [-3] * 64),
    "from uint32": ("b[tx] = T.cast(T.cast(tx, 'uint32'), '{t}')", TX),
    "from bool": ("b[tx] = T.cast(tx < 5, '{t}')", TX < 5),
    "to uint64": ("b[tx] = T.cast(T.cast(v, 'uint64'), '{t}')", [n & (2**64 - 1) for n in NUMBERS]),
    "to uint8": ("b[tx] = T.cast(T.cast(v, 'uint8'), '{t}')", [n & 255 for n in NUMBERS]),
    "to bool": ("b[tx] = T.cast(T.cast(v, 'bool'), '{t}')", [n != 0 for n in NUMBERS]),
    "equal": ("b[tx] = T.cast(v == m[5], '{t}')", [n == 0 for n in NUMBERS]),
    "unequal": (
        "b[tx] = T.cast(v != m[63 - tx], '{t}')",
        [x != y for x, y in zip(NUMBERS, NUMBERS[::-1], strict=True)],
    ),
    "less": ("b[tx] = T.cast(v < m[63 - tx], '{t}')", "<"),
    "not more": ("b[tx] = T.cast(v <= m[63 - tx], '{t}')", "<="),
    "more": ("b[tx] = T.cast(v > m[tx // 2], '{t}')", ">"),
    "not less": ("b[tx] = T.cast(v >= m[tx // 2], '{t}')", ">="),
    "bits": ("b[tx] = T.reinterpret('{t}', T.reinterpret('uint32x4', v))", NUMBERS),
}


@pytest.mark.parametrize("t", ["uint128", "int128"])
@pytest.mark.parametrize("name", ROWS)
def test_value(name, t, nvrtc):
    text, want = ROWS[name]
    if isinstance(want, str):
        signed = [n - (n >> 127 << 128) * (t == "int128") for n in NUMBERS]
        other = signed[::-1] if "63" in text else [signed[i // 2] for i in range(64)]
        want = [eval(f"x {want} y") for x, y in zip(signed, other, strict=True)]
    f = kernel(text.format(t=t), t)
    assert tirx.structural_equal(f, tirx.from_source(f.script()))
    b = np.zeros_like(A)
    tirx.compile(f, target="cpu")(A, b, -3)
    assert b.tolist() == words(want)
    assert tirx.compile(f, target="cuda:sm_90a").cubin


@pytest.mark.parametrize("op", ["v + v", "v - v", "v * v", "v // v", "v & v", "v << v", "-v", "~v", "T.min(v, v)"])
def test_there_is_no_arithmetic(op):
    with pytest.raises(tirx.DiagnosticTypeError, match="does not take uint128"):
        kernel(f"x: T.let = {op}")


def test_registers_of_two_halves(nvrtc):
    text = """
@T.prim_func
def k(A: T.Buffer((64, 2), "uint64"), B: T.Buffer((64, 2), "float64"), C: T.Buffer((64,), "uint64")):
    T.device_entry()
    tx = T.thread_id([64])
    v: T.uint128
    low: T.float64
    high: T.float64
    T.ptx.mov.b128(v, A[tx, 1], A[tx, 0])
    T.ptx.mov.b128(low, high, v)
    B[tx, 0] = low
    B[tx, 1] = high
    T.ptx.mov.b128(T.ptx.SINK, C[tx], v)
"""
    f = tirx.from_source(text)
    b, c = np.zeros_like(A), np.zeros(64, np.uint64)
    tirx.compile(f, target="cpu")(A, b.view(np.float64), c)
    np.testing.assert_array_equal(b, A[:, ::-1])
    np.testing.assert_array_equal(c, A[:, 0])
    assert tirx.compile(f, target="cuda:sm_90a").cubin
