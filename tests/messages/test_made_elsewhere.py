# SPDX-License-Identifier: Apache-2.0
"""Diagnostics that no kernel's text can trigger, or only a long one: kernels made with the builder, generated texts,
functions without source."""

from __future__ import annotations

import re

import pytest

import tirx
from tirx import _core as core
from tirx.script import tirx as T


class Made:
    """A kernel k under construction; line n is the place of the n-th call of at()."""

    def __init__(self):
        self.ctx = core.Context()
        self.ctx.set_place(self.ctx.add_file("k.py", "one\ntwo\nthree\n"), "k")
        self.b = core.Builder(self.ctx, "k", "g1")
        self.line = 0

    def at(self):
        self.line += 1
        self.ctx.at_pos(self.line, 0, self.line, 3)
        return self.b

    def buffer(self, name, scope="local"):
        return core.buffer(self.ctx, name, (64,), "int32", scope=scope)


def variable_never_defined(m):
    a = m.buffer("A", "global")
    m.b.param("A", a)
    m.at()
    m.at().store(a, (core.var(m.ctx, "loop", "i", "int32"),), 2)


def loop_variable_behind_its_loop(m):
    a = m.buffer("A", "global")
    m.b.param("A", a)
    i = m.at().open_for("i", 0, 3)
    m.b.close()
    m.at().store(a, (i,), 2)


def buffer_behind_its_block(m):
    b = m.buffer("B")
    m.at().open_for("i", 0, 3)
    m.b.alloc(b)
    m.b.close()
    m.at().store(b, (0,), 2)


def buffer_without_declaration(m):
    m.at()
    m.at().store(m.buffer("B"), (0,), 2)


def two_declarations(m):
    b = m.buffer("B")
    m.at().alloc(b)
    m.at().alloc(b)


def declaration_in_a_loop(m):
    b = m.buffer("B")
    m.at().alloc(b)
    m.b.open_for("i", 0, 3)
    m.at().alloc(b)


def break_without_loop(m):
    m.at()
    m.at().break_()


def two_names_for_one_extent(m):
    m.at().device_entry()
    m.at().scope_id("thread_id", ["x", "y"], [64], None, "int32")


def two_deferred_names(m):
    m.at().device_entry()
    m.at().scope_id("thread_id", ["x", "y"], None, None, "int32")


def buffer_of_another_kernel(m):
    m.at()
    m.at().store(m.buffer("A"), (Made().b.open_for("i", 0, 3),), 1)


def finished(m):
    m.b.finish()
    m.at()
    m.at().evaluate(1)


def nothing_to_close(m):
    m.at()
    m.at().open_else()


ILL = "TIR is ill-formed"
MADE = [
    (variable_never_defined, "VAR_UNDEFINED", "Invalid use of undefined variable i at <root>.body.indices."),
    (
        loop_variable_behind_its_loop,
        "VAR_OUT_OF_SCOPE",
        "Invalid use of undefined variable i at <root>.body.seq[1].indices. While this variable was previously defined "
        "at <root>.body.seq[0], this definition is no longer in-scope.",
    ),
    (
        buffer_behind_its_block,
        "BUFFER_OUT_OF_SCOPE",
        f"{ILL}: buffer B is used at <root>.body.seq[1], but its declaration is no longer in-scope. It was declared at "
        "<root>.body.seq[0].body",
    ),
    (
        buffer_without_declaration,
        "BUFFER_UNDECLARED",
        f"{ILL}: buffer B is used at <root>.body without a prior DeclBuffer or other declaration.",
    ),
    (
        two_declarations,
        "REDEFINED",
        f"{ILL}, due to multiple definitions of variable B. It was first defined at <root>.body.seq[0], and was later "
        "re-defined at <root>.body.seq[1]",
    ),
    (
        declaration_in_a_loop,
        "REDEFINED_NESTED",
        f"{ILL}, due to multiple nested definitions of variable B. It was first defined at <root>.body.seq[0], and was "
        "re-defined at <root>.body.seq[1].body",
    ),
    (break_without_loop, "OUTSIDE_LOOP", "'break' outside of a loop"),
    (two_names_for_one_extent, "SCOPE_RANK", "Number of dimensions must match, got 2 and 1"),
    (
        two_deferred_names,
        "SCOPE_DEFERRED_VARS",
        "Deferred ScopeIdDef (no extents) must define exactly one Var, got 2",
    ),
    (
        buffer_of_another_kernel,
        "OTHER_CONTEXT",
        "'i' belongs to another kernel\ntwo\n^^^\n  help: pass it as a parameter, or make it inside this kernel",
    ),
    (finished, "BUILDER_DONE", "the builder of 'k' is finished"),
    (nothing_to_close, "BLOCK_MISMATCH", "else without an open block that it belongs to"),
]


@pytest.mark.parametrize("make, row, want", MADE, ids=[row for _, row, _ in MADE])
def test_made_with_the_builder(make, row, want):
    m = Made()
    with pytest.raises(tirx.DiagnosticError) as caught:
        make(m)
        core.lower(m.b.finish(), "cpu", {})
    text = f"k.py:2:1: error: {want}"
    assert str(caught.value).rstrip("\n") == (text if "\n" in want else text + "\ntwo\n^^^")


def message(source: str) -> str:
    with pytest.raises(tirx.DiagnosticError) as caught:
        tirx.compile(tirx.from_source(source), target="cpu")
    return re.sub(r"<tirx source \d+>", "kernel.py", str(caught.value)).rstrip("\n")


DEVICE = "    T.device_entry()\n    tx = T.thread_id([64])\n"


def test_param_limit():
    params = ", ".join(f"p{i}: T.int32" for i in range(513))
    line = f"def k({params}):"
    got = message(f"@T.prim_func\n{line}\n{DEVICE}")
    start = line.index("p512")
    assert got.split("\n")[0] == f"kernel.py:2:{start + 1}: error: more than 512 parameters"
    assert got.split("\n")[1:] == ["..." + line[start - 60 :], " " * 63 + "^" * len("p512: T.int32")]


def test_kernel_params():
    """512 parameters and one more that the host computes."""
    params = ", ".join(f"p{i}: T.int32" for i in range(511))
    uses = "".join(f"    A[tx] = A[tx] + p{i}\n" for i in range(511))
    head = f"@T.prim_func\ndef k(A: T.Buffer((64,), 'int32'), {params}):\n    m: T.let = p0 * 3\n"
    got = message(f"{head}{DEVICE}{uses}    A[tx] = m\n")
    assert got.split("\n")[0] == "kernel.py:2:1: error: a kernel takes at most 512 parameters"


def test_host_too_long():
    lets = "".join(f"    m{i + 1}: T.let = m{i} * n + 1\n" for i in range(4100))
    head = "@T.prim_func\ndef k(A: T.Buffer((64,), 'int32'), n: T.int32):\n    m0: T.let = n * 3\n"
    source = f"{head}{lets}{DEVICE}    A[tx] = m4100\n"
    first, *rest = message(source).split("\n")
    assert re.fullmatch(r"kernel\.py:\d+:\d+: error: the host half of the kernel needs more than 4096 values", first)
    assert len(rest) == 3 and rest[1].strip(" ^") == ""
    assert rest[2] == "  help: shorten what stands before T.device_entry(), or use a run-time loop there"


def test_no_builder():
    ctx = core.Context()
    a = core.buffer(ctx, "A", (64,), "int32")
    with pytest.raises(tirx.DiagnosticError) as caught:
        a[0] = 1
    assert str(caught.value).rstrip("\n") == (
        "error: no builder is active\n  help: statements can only be made inside a kernel or a builder"
    )


def test_no_source():
    scope = {"T": T}
    with pytest.raises(tirx.DiagnosticError) as caught:
        exec("@T.prim_func\ndef k(n: T.int32):\n    T.device_entry()\n", scope)
    assert str(caught.value).rstrip("\n") == (
        "error: the source of 'k' cannot be read\n  help: put the kernel in a file, or use tirx.from_source(text)"
    )


def test_python_recursion():
    deep = "-" * 900 + "tx"
    got = message(f"@T.prim_func\ndef k(A: T.Buffer((64,), 'int32')):\n{DEVICE}    A[tx] = {deep}\n")
    assert "error: the kernel is nested too deeply" in got


def test_nothing_defined():
    with pytest.raises(tirx.DiagnosticError) as caught:
        tirx.from_source("x = 3\n")
    assert re.sub(r"<tirx source \d+>", "kernel.py", str(caught.value)).rstrip("\n") == (
        "kernel.py:1:1: error: the text defines no kernel\nx = 3\n^\n"
        "  help: decorate a function with @T.prim_func or @T.function"
    )
