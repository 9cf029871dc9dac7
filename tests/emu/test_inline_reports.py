# SPDX-License-Identifier: Apache-2.0
"""Reports about lines of inline helpers: by which calls, from which line of the kernel, they came there."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

TEXT = """
@T.inline
def put(S, i, v):
    S[i] = v


@T.inline
def next_to(S, i, v):
    put(S, i + 1, v)


@T.inline
def take(S, i, B, t):
    B[t] = S[i]


@T.inline
def again(S, i, n):
    if n == 0:
        put(S, i, 1)
    else:
        again(S, i, n - 1)


@T.inline
def meet(t, n):
    if t < n:
        T.cuda.cta_sync()
"""
HELPERS = {line[4 : line.index("(")]: k for k, line in enumerate(TEXT.split("\n"), 1) if line.startswith("def ")}


@pytest.fixture(scope="module")
def helpers(tmp_path_factory):
    """The helpers in a file of their own, so that lines of both files are told apart."""
    import importlib.util

    path = tmp_path_factory.mktemp("inline") / "helpers_of_reports.py"
    path.write_text("from tirx.script import tirx as T\n" + TEXT)
    spec = importlib.util.spec_from_file_location("helpers_of_reports", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(helpers, body: str) -> tirx.EmulationError:
    head = '@T.prim_func\ndef k(B: T.Buffer((64,), "int32")):\n    T.device_entry()\n    tx = T.thread_id([64])\n'
    head += '    S = T.alloc_shared((65,), "int32")\n'
    text = head + "".join(f"    {line}\n" for line in body.split("\n"))
    f = tirx.from_source(text, {name: getattr(helpers, name) for name in HELPERS})
    with pytest.raises(tirx.EmulationError) as info:
        tirx.compile(f, target="cpu")(np.zeros(64, np.int32))
    assert len(str(info.value).split("\n")) <= 15
    return info.value


def chain(e: tirx.EmulationError, helpers) -> list[str]:
    """The lines of the text that name calls, with `h.py` for the helpers' file and `k.py` for the kernel's."""
    import re

    found = [line.strip() for line in str(e).split("\n") if line.startswith("    in ")]
    return [re.sub(r"<tirx source \d+>", "k.py", line.replace(helpers.__file__, "h.py")) for line in found]


def line_of(name: str) -> int:
    return HELPERS[name] + 2  # of the first statement; the file has one line more at its top


def test_two_calls_deep(helpers):
    e = report(helpers, "B[tx] = 0\nnext_to(S, tx + 1, 5)")
    assert chain(e, helpers) == [
        f"in put(), inlined from next_to() at h.py:{line_of('next_to')}",
        "in next_to(), inlined from k() at k.py:7",
    ]
    assert e.lines == {line_of("put")}  # where the store stands, as ever
    assert [call[:2] + call[3:] for call in e.agents[0]["inlined"]] == [
        ("put", "next_to", line_of("next_to")),
        ("next_to", "k", 7),
    ]


def test_both_sides_have_theirs(helpers):
    e = report(helpers, "next_to(S, tx, 5)\ntake(S, 64 - tx, B, tx)")
    assert e.kind == "race" and e.lines == {line_of("put"), line_of("take")}
    assert chain(e, helpers) == [
        f"in put(), inlined from next_to() at h.py:{line_of('next_to')}",
        "in next_to(), inlined from k() at k.py:6",
        "in take(), inlined from k() at k.py:7",
    ]


def test_one_side_is_the_kernels_own(helpers):
    e = report(helpers, "S[tx] = 5\ntake(S, 63 - tx, B, tx)")
    assert e.kind == "race" and chain(e, helpers) == ["in take(), inlined from k() at k.py:7"]
    assert sorted(len(a["inlined"]) for a in e.agents) == [0, 1]


def test_the_same_helper_from_two_lines(helpers):
    e = report(helpers, "put(S, tx, 5)\nput(S, 63 - tx, 6)")
    assert e.kind == "race" and e.lines == {line_of("put")}
    assert sorted(chain(e, helpers)) == [f"in put(), inlined from k() at k.py:{n}" for n in (6, 7)]


@pytest.mark.parametrize("depth", [7, 8, 9, 40])
def test_a_long_way_is_shortened_in_its_middle(helpers, depth):
    e = report(helpers, f"again(S, tx + 2, {depth})")
    calls = chain(e, helpers)
    assert calls[-1].endswith("from k() at k.py:6") and len(calls) == min(depth + 2, 10)
    assert ("through" in calls[-1]) == (depth + 2 > 10)
    if depth == 40:
        assert calls[-1] == "in again(), inlined through 32 more calls from k() at k.py:6"
    assert len(e.agents[0]["inlined"]) == depth + 2


def test_many_agents_leave_room(helpers):
    e = report(helpers, "if tx < 8:\n    meet(tx, 5)\nelse:\n    meet(tx, 40)\nB[tx] = 0")
    assert any(line.startswith("in meet(), inlined from k() at k.py:") for line in chain(e, helpers))


def test_without_helpers_there_is_none(helpers):
    e = report(helpers, "S[tx + 2] = 1")
    assert chain(e, helpers) == [] and e.agents[0]["inlined"] == ()


def test_each_way_to_a_line_is_a_report_of_its_own(helpers):
    text = """
@T.prim_func
def k(B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    S = T.alloc_shared((65,), "int32")
    for i in range(3):
        put(S, tx + 30, 1)
    put(S, tx + 40, 2)
    B[tx] = 0
"""
    f = tirx.from_source(text, {name: getattr(helpers, name) for name in HELPERS})
    found = tirx.compile(f, target="cpu")(np.zeros(64, np.int32), check="report")
    outside = [e for e in found if e.kind == "out_of_bounds"]
    assert sorted(e.agents[0]["inlined"][0][3] for e in outside) == [8, 9]  # once each, in the order of the warps


def test_functions_of_a_module_are_called():
    """They are generated in place, too: the text says from where, also below inline helpers."""
    text = """
@T.inline
def beside(S, i, v):
    S[i + 1] = v

@I.ir_module
class M:
    @T.prim_func(private=True)
    def put(S: T.Buffer((64,), "int32", scope="shared"), i: T.int32):
        beside(S, i, 3)

    @T.prim_func(private=True)
    def twice(S: T.Buffer((64,), "int32", scope="shared"), i: T.int32):
        M.put(S, i)
        M.put(S, i + 1)

    @T.prim_func
    def main(B: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([1])
        S = T.alloc_shared((64,), "int32")
        M.twice(S, tx)
        M.twice(S, tx + 62)
        B[tx] = S[tx + 1]
"""
    from tirx.script import ir as I
    from tirx.script import tirx as T

    names = {"T": T, "I": I}
    import linecache

    linecache.cache["<reports of a module>"] = (len(text), None, text.splitlines(True), "<reports of a module>")
    exec(compile(text, "<reports of a module>", "exec"), names)
    with pytest.raises(tirx.EmulationError) as info:
        tirx.compile(names["M"], target="cpu")["main"](np.zeros(64, np.int32))
    lines = [line.strip() for line in str(info.value).split("\n") if line.startswith("    in ")]
    assert lines == [
        "in beside(), inlined from put() at <reports of a module>:10",
        "in put(), called from twice() at <reports of a module>:15",
        "in twice(), called from main() at <reports of a module>:23",
    ]
    assert info.value.lines == {4}
