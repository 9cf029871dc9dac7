# SPDX-License-Identifier: Apache-2.0
"""32-bit arithmetic that wraps on its way to an address: a warning with its line, and silence elsewhere."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tirx

HEAD = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), m: T.int32, n: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
"""
BIG = 1 << 30


def run(body, m=BIG, n=7, **how):
    """The warnings, and what B holds afterwards."""
    exe = tirx.compile(tirx.from_source(HEAD + "".join(f"    {line}\n" for line in body.split("\n"))), target="cpu")
    a, b = np.arange(64, dtype="int32"), np.zeros(64, "int32")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        reports = exe(a, b, m, n, **how)
    assert all(w.category is tirx.EmulationWarning for w in seen)
    return reports or [w.message for w in seen], b


LOUD = {
    "a product": "B[tx] = A[tx * m % 60]",
    "a sum": "B[tx] = A[(m + m + tx) % 60]",
    "a difference": "B[tx] = A[(tx - m - m - n) % 60]",
    "a shift": "B[tx] = A[(tx << 28) % 60]",
    "the index of a store": "if tx == 2:\n    B[tx * m % 60] = 1",
    "a variable": "i: T.int32 = tx * m\nif i >= 0 and i < 60:\n    B[tx] = A[i]",
    "a variable that changes": "i: T.int32 = tx\nfor r in range(n):\n    i = i + m\nB[tx] = A[i % 60]",
    "a local array": "i = T.alloc_local((2,), 'int32')\ni[0] = tx\ni[1] = tx * m\nB[tx] = A[i[1] % 60]",
    "widened too late": "B[tx] = A[T.int64(tx * m) % T.int64(60)]",
    "behind a comparison that wants it too": "if tx * m >= 0:\n    B[tx] = A[tx * m % 60]",
    "in a branch": "if tx > 4:\n    B[tx] = A[tx * m % 60]",
    "a quotient of it": "B[tx] = A[T.max(tx * m // 64 % 60, 0)]",
    "of shared memory": "s = T.alloc_shared((64,), 'int32')\ns[tx] = 1\nT.cuda.cta_sync()\nB[tx] = s[tx * m % 60]",
    "a limit, and then a power of two": "B[tx] = A[T.max(tx * m, 0) % 64]",
    "a quotient under a mask": "B[tx] = A[tx * m // 60 & 63]",
    "in an address": "if tx == 2:\n    T.ptx.st.global_.b32(B.ptr_to([tx * m % 60]), T.uint32(1))",
}


@pytest.mark.parametrize("name", LOUD)
def test_what_wraps_is_reported(name):
    seen, _ = run(LOUD[name])
    assert seen, name
    for w in seen:
        assert (w.kind, len(w.lines), len(w.agents)) == ("overflow", 1, 1)
        assert "leaves int32" in str(w)


SILENT = {
    "in int64": "B[tx] = A[T.int64(tx) * T.int64(m) % T.int64(60)]",
    "unsigned, which wraps on purpose": "h = T.uint32(tx) * T.uint32(2654435761)\nB[tx] = A[h >> T.uint32(26)]",
    "a mask, right after a wrap too": "B[tx] = A[tx * m & 63]",
    "a remainder by a power of two": "B[tx] = A[(tx * m + n) % 64]",
    "a sum of such": "i: T.int32 = tx * m\nB[tx] = A[(i + n * i) % 64]",
    "a value, not an address": "B[tx] = tx * m",
    "a guard that keeps it away": "if tx < 2:\n    B[tx] = A[tx * m % 60]",
    "a guard around a loop": "for r in range(n):\n    if tx < 2:\n        B[tx] = A[(tx * m + r) % 60]",
    "a condition beside it": "B[tx] = T.if_then_else(tx < 2, A[tx * m % 60], 0)",
    "and, which asks the right side only then": "if tx < 2 and A[tx * m % 60] < 3:\n    B[tx] = 1",
    "the largest that fits": "B[tx] = A[(m + (m - 1)) % 60]",
    "a comparison": "if tx * m > 0:\n    B[tx] = A[tx]",
}


@pytest.mark.parametrize("name", SILENT)
def test_what_does_not_is_silent(name):
    assert run(SILENT[name])[0] == []


def test_the_message():
    (w,), b = run("i: T.int32 = tx * m\nB[tx] = A[i % 60]")
    line = HEAD.count("\n") + 1
    assert w.buffer is None and w.lines == {line}
    text = str(w).splitlines()
    assert text[:3] == [
        f"overflow: 2 * {BIG} on the way to an address leaves int32: {2 * BIG} has become {-2 * BIG}; "
        "compute it in int64",
        "  in kernel k_kernel",
        "  arithmetic by thread (2, 0, 0) of CTA (0, 0, 0), warp 0, lane 2",
    ]
    assert text[3].endswith(f":{line}") and text[4].strip() == "i: T.int32 = tx * m" and len(text) == 5
    wrapped = (np.arange(64) * BIG).astype("int32")
    assert (b == wrapped % 60).all()  # a warning: the run goes on, and means what the GPU does


def test_once_for_each_place_and_not_without_checks():
    body = "for r in range(4):\n    B[tx] = A[(tx * m + r) % 60] + A[tx * m % 59]"
    assert len(run(body)[0]) == 1  # one product, seen first
    assert [r.kind for r in run(body, check="report")[0]] == ["overflow"]
    assert run(body, check=False)[0] == []
