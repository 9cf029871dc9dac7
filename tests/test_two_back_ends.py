# SPDX-License-Identifier: Apache-2.0
"""What compilers of CUDA get wrong unless the text is careful: the emulator and a GPU give what Python does."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tirx

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
NARROW = ["int8", "uint8", "int16", "uint16"]


def run(text: str, target: str, *arrays: np.ndarray) -> None:
    exe = tirx.compile(tirx.from_source(text), target=target)
    if target == "cpu":
        exe(*arrays)
        return
    there = [tirx.tensor(a, tirx.cuda()) for a in arrays]
    exe(*there)
    for a, t in zip(arrays, there, strict=True):
        a[...] = t.numpy()


# an operation in a narrow dtype, and what widens its result at once
VALUES = {
    "neg": ("-x", lambda x: -x),
    "twice": ("x + x", lambda x: x + x),
    "square": ("x * x", lambda x: x * x),
    "less": ("x - T.{t}(100)", lambda x: x - 100),
    "shifted": ("x << T.{t}(3)", lambda x: x << 3),
    "abs": ("T.abs(x)", abs),
    "not": ("~x", lambda x: ~x),
    "a third": ("x // T.{t}(3)", lambda x: x // 3),
    "min": ("T.min(-x, x)", None),
}
USES = [
    ("T.cast({v}, 'int64')", lambda v: v),
    ("T.cast(T.cast({v}, 'float32'), 'int64')", lambda v: v),
    ("T.cast({v} % T.{t}(3), 'int64')", lambda v: v % 3),
    ("T.cast({v} // T.{t}(7), 'int64')", lambda v: v // 7),
    ("T.cast({v}, 'int32') >> 1", lambda v: v >> 1),
    ("T.if_then_else({v} < T.{t}(50), 1, 0)", lambda v: int(v < 50)),
]


def wrapped(t: str, v: int) -> int:
    bits, signed = int(re.sub(r"\D", "", t)), not t.startswith("u")
    v &= (1 << bits) - 1
    return v - (1 << bits) if signed and v >> (bits - 1) else v


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", NARROW)
def test_narrow_results_are_widened_after_they_have_wrapped(t, target):
    info = np.iinfo(t)
    step = 1 if info.bits == 8 else 251
    x = np.unique(np.concatenate([np.arange(info.min, info.max + 1, step), [info.max, 0, 1, 255, 256]]))
    x = x[(x >= info.min) & (x <= info.max)].astype(t)
    names = list(VALUES)
    stores = [
        f"    B[i, {n * len(USES) + u}] = " + use.format(v="(" + VALUES[name][0].format(t=t) + ")", t=t)
        for n, name in enumerate(names)
        for u, (use, _) in enumerate(USES)
    ]
    text = f"""
@T.prim_func
def k(A: T.Buffer(({x.size},), "{t}"), B: T.Buffer(({x.size}, {len(stores)}), "int64")):
    T.device_entry()
    i = T.cta_id([{x.size}])
    tx = T.thread_id([1])
    x: T.let = A[i]
""" + "\n".join(stores)
    out = np.zeros((x.size, len(stores)), np.int64)
    run(text, target, x, out)
    want = []
    for v in x.tolist():
        for name in names:
            f = VALUES[name][1]
            r = wrapped(t, f(v)) if f else min(wrapped(t, -v), v)
            want.append([use(r) for _, use in USES])
    np.testing.assert_array_equal(out, np.array(want).reshape(out.shape))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["int8", "int16", "int32", "int64", "uint16", "uint32"])
def test_lanes_of_a_ramp_wrap(t, target):
    top = np.iinfo(t).max
    starts = np.array([0, 1, top, top // 2, np.iinfo(t).min], t)
    text = f"""
@T.prim_func
def k(A: T.Buffer((5,), "{t}"), S: T.Buffer((5,), "{t}"), B: T.Buffer((5, 8), "int64"), C: T.Buffer((5, 4), "float64")):
    T.device_entry()
    i = T.cta_id([5])
    tx = T.thread_id([1])
    B[i, 0:8] = T.cast(T.ramp(A[i], T.{t}({top // 3}), 8), "int64x8")
    C[i, 0:4] = T.cast(T.ramp(A[i], S[i], 4), "float64x4")
"""
    lanes, floats = np.zeros((5, 8), np.int64), np.zeros((5, 4))
    run(text, target, starts, starts[::-1].copy(), lanes, floats)
    pairs = list(zip(starts.tolist(), starts[::-1].tolist(), strict=True))
    assert lanes.tolist() == [[wrapped(t, a + k * (top // 3)) for k in range(8)] for a, _ in pairs]
    assert floats.tolist() == [[float(wrapped(t, a + k * s)) for k in range(4)] for a, s in pairs]


# kernels that read `O`, which they have written, or `A`, which nobody writes
CHOICES = {
    "if": """
        v: T.int32 = 0
        if p[tx] > 0:
            v = O[tx]
        else:
            v = A[tx + 1]""",
    "an expression": """
        v: T.int32 = T.if_then_else(p[tx] > 0, O[tx], A[tx + 1])""",
    "one arm": """
        v: T.int32 = A[tx + 1]
        if p[tx] > 0:
            v = O[tx]""",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("choice", CHOICES)
def test_what_a_kernel_has_written_is_read_beside_what_it_only_reads(choice, target):
    text = f"""
@T.prim_func
def k(A: T.Buffer((33,), "int32"), p: T.Buffer((32,), "int32"), O: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    for i in range(6):{CHOICES[choice]}
        O[tx] = v * 3 + i
"""
    a, p = np.arange(33, dtype=np.int32), np.arange(32, dtype=np.int32) % 3
    out = np.arange(32, dtype=np.int32) * 10
    want = out.tolist()
    for t in range(32):
        for i in range(6):
            want[t] = (want[t] if p[t] > 0 else int(a[t + 1])) * 3 + i
    run(text, target, a, p, out)
    assert out.tolist() == want


@pytest.mark.parametrize("choice", CHOICES)
def test_such_read_only_memory_is_no_restrict_pointer(choice):
    text = f"""
@T.prim_func
def k(A: T.Buffer((33,), "int32"), p: T.Buffer((32,), "int32"), O: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    for i in range(6):{CHOICES[choice]}
        O[tx] = v * 3 + i
"""
    head = re.search(r"k_kernel\((.*?)\)", tirx.compile(tirx.from_source(text), target="cuda:sm_90a").source)[1]
    assert "* A_ptr" in head and "* __restrict__ O_ptr" in head


def test_other_read_only_memory_is():
    text = """
@T.prim_func
def k(A: T.Buffer((32,), "int32"), O: T.Buffer((32,), "int32"), n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    if tx < n:
        O[tx] = O[tx] + A[tx]
"""
    head = re.search(r"k_kernel\((.*?)\)", tirx.compile(tirx.from_source(text), target="cuda:sm_90a").source)[1]
    assert "* __restrict__ A_ptr" in head and "* __restrict__ O_ptr" in head
