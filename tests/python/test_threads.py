# SPDX-License-Identifier: Apache-2.0
"""One function, printed, lowered and specialised from many threads at once: all get the same."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import tirx
from tirx import _core

TEXT = """
@T.prim_func
def k(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), s: T.float32):
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        for j in T.unroll(8):
            B[i] = B[i] * s + A[i]
"""


@pytest.fixture
def often():
    """Threads take turns every few bytecodes."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def test_one_function_in_many_threads(often):
    f = tirx.from_source(TEXT)

    def work(i):
        lowered = _core.lower(f, "cuda:sm_90" if i % 2 else "cpu", {})
        g = f.specialize({"s": i % 3})
        return f.script(), lowered.script(), g.script(), f.structural_hash(), str(f.params[0][1].shape[0] + 1)

    expected = {i: work(i) for i in range(6)}
    with ThreadPoolExecutor(8) as pool:
        for i, result in enumerate(pool.map(work, range(60))):
            assert result == expected[i % 6]


def test_errors_of_one_thread_are_not_anothers(often):
    def work(i):
        c = _core.Context()
        c.set_place(c.add_file(f"file{i}.py", "x\n"), "f")
        c.at_pos(1, 0, 1, 1)
        try:
            _core.var(c, "param", f"v{i}", "int32") / 2
        except TypeError as e:
            return str(e).split(":")[0]
        return None

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(200))) == [f"file{i}.py" for i in range(200)]


def test_parsing_in_many_threads(often):
    def work(i):
        return tirx.from_source(TEXT).script()

    expected = work(0)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(40))) == {expected}
    assert _core.current() is None
