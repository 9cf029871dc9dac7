# SPDX-License-Identifier: Apache-2.0
"""Every allocation of the core under a small build fails in turn: MemoryError or success, and all works afterwards."""

from __future__ import annotations

import pytest

from tirx import _core
from tirx.errors import DiagnosticError


def build():
    ctx = _core.Context()
    ctx.set_place(ctx.add_file("kernel.py", "text\n"), "k")
    ctx.at_pos(1, 0, 1, 4)
    b = _core.Builder(ctx, "k", "g1")
    n = _core.var(ctx, "symbol", "n", "int32")
    b.add_symbol(n)
    a, x = _core.buffer(ctx, "A", (n, 4), "float16"), _core.var(ctx, "param", "x", "float32")
    b.param("A", a)
    b.param("x", x)
    b.set_attr("list", [1, "two", 3.0])
    b.device_entry(launch={"grid": [n], "block": [32, 2]})
    i = _core.coord(ctx, "BLOCK_IDX", 0)
    b.activate()
    try:
        c = b.cell("c", "int32", 3)
        j = b.open_for("j", 0, c, annotations={"k": 1})
        b.open_if((i < n) & (j * 2 + i // 3 > 1))
        a[i, j] = x**2 + _core.op(ctx, "EXP", a[i, 0]) * _core.select(ctx, i < 2, 1.5, x, True)
        a[i, 0:2] = a[i, 2:4]
        b.close()
        b.close()
    finally:
        b.deactivate()
    m = _core.Module({"main": b.finish()})
    return m.script(), _core.structural_equal(m["main"], m["main"].with_attr("k", 2))


def refuse():
    ctx = _core.Context()
    ctx.set_place(ctx.add_file("kernel.py", "text\n"), "k")
    ctx.at_pos(1, 0, 1, 4)
    a = _core.var(ctx, "param", "a", "int32")
    try:
        a // 2.0
    except DiagnosticError as e:
        return str(e)
    return None


@pytest.mark.parametrize("work", [build, refuse])
def test_each_allocation_fails_in_turn(work):
    expected = work()
    n = failures = 0
    while True:
        n += 1
        _core.fail_alloc_at(n)
        try:
            result = work()
        except MemoryError:
            result = None
            failures += 1
        finally:
            count = _core.alloc_count()
            _core.fail_alloc_at(0)
        assert _core.current() is None
        assert result is None or result == expected
        if count < n:
            break
    assert result == expected and failures > 2
    assert work() == expected
