# SPDX-License-Identifier: Apache-2.0
"""Objects of the C module, and the exceptions it raises, leave no Python object behind (tests/test_refleak.py does the
same with whole kernels, and watches the C heap)."""

from __future__ import annotations

import contextlib
import gc
import sys

import pytest

from tirx import _core
from tirx.errors import DiagnosticError

TURNS = 60


def measure():
    gc.collect()
    total = getattr(sys, "gettotalrefcount", sys.getallocatedblocks)()
    return total, len(gc.get_objects())


def leaks(work):
    """References (or blocks) and tracked objects that one turn leaves, at best of some rounds."""
    for _ in range(20):
        work()
    rounds = []
    for _ in range(6):
        before = measure()
        for _ in range(TURNS):
            work()
        after = measure()
        rounds.append(tuple((a - b) / TURNS for a, b in zip(after, before, strict=True)))
    return min(r[0] for r in rounds), min(r[1] for r in rounds)


class Symbol:
    def __init__(self, make):
        self.make = make

    def __tirx_expr__(self, ctx):
        return self.make()


def boom():
    raise KeyError("boom")


class Layout:
    """Refers to the buffer that refers to it."""


def place(c):
    c.set_place(c.add_file("kernel.py", "x = 1\n"), "k")
    c.at_pos(1, 0, 1, 5)
    c.push_inline(1, "f", 0, 0)
    c.span_info(c.span)
    c.pop_inline()


def refused(c, fn):
    with contextlib.suppress(DiagnosticError, TypeError, ValueError, KeyError, RuntimeError):
        fn(c)


def record(c):
    c.record("UNDEFINED_NAME", "x", "")
    c.warn("STORE_PRECISION", "a", "b")
    c.take_warnings()
    c.raise_if_failed()


def expressions(c):
    a, f = _core.var(c, "param", "a", "int32"), _core.var(c, "param", "f", "float32")
    for x in (a + 1, a // 3, a % 3, abs(a), -f, ~a, f**2, f**0.5, divmod(a, 4), a < 3, a & 1, round(f), 2**63 + a):
        repr(x)
    (a + 2).args, a.dtype, a.name, a.op, (a * f).dtype, _core.as_expr(c, 2).value, a.buffer, a.elem
    _core.cast(c, "float16x4", _core.broadcast(c, a, 4))
    _core.shuffle(c, [_core.ramp(c, a, 1, 4)], [0, 1])
    _core.make(c, "FUNC_CALL", "float32", (a, f, "s"), call=("f", "source"))
    _core.select(c, a < 1, a, f, True)
    a + Symbol(lambda: 3)


def buffers(c):
    i = _core.var(c, "param", "i", "int32")
    a = _core.buffer(c, "A", (i, 4), "int8", strides=[4, 1], annotations={"k": [1, "s"]})
    a.shape, a.strides, a.data, a.layout, a.elem_offset, a.allocated_addr, repr(a), a.origin
    a[i, 1], a[i], a[1:3, 0:2][0], a[i].start, a[i].extent, a.ptr_to([i, 1])
    a.layout = Layout()
    a.layout.buffer = a


def function(c):
    b = _core.Builder(c, "k", "g1")
    a = _core.buffer(c, "A", (64,), "float32")
    b.param("A", a)
    b.set_attr("k", [1, "x"])
    b.activate()
    b.device_entry(launch={"grid": [1], "block": [64]})
    b.open_for("i", 0, 64, annotations={"x": 1})
    a[0] = 1.0
    b.assert_(a[0] < 1, "ValueError", ["x"])
    b.close()
    b.deactivate()
    f = b.finish()
    f.params, f.attrs, f.script(), f.with_attr("z", 1).structural_hash(), f.ret_type, repr(f)
    m = _core.Module({"main": f})
    m["main"], m.names, m.attrs, m.script(), _core.structural_equal(f, m["main"])
    low = _core.lower(m, "cpu", {})
    _core.plan_text(low)
    _core.cuda_source(_core.lower(m, "cuda:sm_90", {}), "cuda:sm_90", {})


def abandoned(c):
    b = _core.Builder(c, "k", "g1")
    b.activate()
    b.open_for("i", 0, 4)
    b.deactivate()
    refused(c, lambda _: b.deactivate())


def tables(c):
    _core.ops(), _core.dtypes(), _core.diags(), _core.scopes(), _core.passes(), _core.parse_dtype("f16")


WORKLOADS = {
    "place": place,
    "expressions": expressions,
    "buffers": buffers,
    "function": function,
    "abandoned": abandoned,
    "tables": tables,
    "fail": lambda c: refused(c, lambda c: c.fail("UNDEFINED_NAME", "x", "", help="h")),
    "record": lambda c: refused(c, record),
    "bad operand": lambda c: refused(c, lambda c: _core.var(c, "param", "a", "int32") + "s"),
    "bad dtype": lambda c: refused(c, lambda c: _core.cast(c, "int33", 1)),
    "bad object": lambda c: refused(c, lambda c: _core.as_expr(c, Symbol(boom))),
    "bad index": lambda c: refused(c, lambda c: _core.buffer(c, "A", (4,))[9]),
    "bad slice": lambda c: refused(c, lambda c: _core.buffer(c, "A", (4,))[0:4:2]),
    "bad attr": lambda c: refused(c, lambda c: _core.Builder(c, "k", "g1").set_attr("k", object())),
    "bad keyword": lambda c: refused(c, lambda c: _core.buffer(c, "A", (4,), shap=1)),
    "bad option": lambda c: refused(c, lambda c: _core.parse_target("nothing")),
    "big literal": lambda c: refused(c, lambda c: _core.literal(c, "int8", 10**50)),
    "no memory": lambda c: refused(c, lambda c: c.fail("INTERNAL", "x")),
}


@pytest.mark.nosanitize
@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_nothing_is_left_behind(work):
    blocks, objects = leaks(lambda: work(_core.Context()))
    assert blocks < 0.5, f"{blocks:.2f} references or blocks a turn"
    assert objects < 0.5, f"{objects:.2f} objects a turn"


def test_the_active_builder_is_seen_by_the_collector():
    b = _core.Builder(_core.Context(), "k", "g1")
    b.activate()
    assert gc.is_tracked(b) and any(b is x for d in gc.get_referrers(b) if isinstance(d, dict) for x in d.values())
    b.deactivate()
