# SPDX-License-Identifier: Apache-2.0
"""Well-formedness: what the verifier refuses, with the whole message, and what it must let pass."""

from __future__ import annotations

import pytest

import tirx
from tirx import _core


def kernel(make, **options):
    ctx = _core.Context()
    b = _core.Builder(ctx, "f", "g1")
    A = _core.buffer(ctx, "A", (64,), "int32")
    b.param("A", A)
    make(ctx, b, A)
    return b.finish(**options)


def message(make) -> str:
    with pytest.raises(tirx.DiagnosticError) as e:
        kernel(make)
    kernel(make, verify=False)  # the same passes when it is not asked for
    return str(e.value).partition("error: ")[2].splitlines()[0]


def test_undefined_variable():
    def make(ctx, b, A):
        b.store(A, (0,), 1)
        b.store(A, (0,), _core.var(ctx, "let", "i", "int32") + 1)

    assert message(make) == "Invalid use of undefined variable i at <root>.body.seq[1].value."


def test_variable_out_of_scope():
    def make(ctx, b, A):
        i = b.open_for("i", 0, 4)
        b.store(A, (i,), i)
        b.close()
        b.store(A, (i,), 0)

    assert message(make) == (
        "Invalid use of undefined variable i at <root>.body.seq[1].indices. While this variable was previously defined "
        "at <root>.body.seq[0], this definition is no longer in-scope."
    )


def test_variable_of_a_branch_is_gone_after_it():
    def make(ctx, b, A):
        b.open_if(A[0] < 1)
        x = b.bind("x", A[1])
        b.store(A, (0,), x)
        b.close()
        b.open_else()
        b.store(A, (0,), x)
        b.close()

    assert message(make) == (
        "Invalid use of undefined variable x at <root>.body.else_case.value. While this variable was previously "
        "defined at <root>.body.then_case.seq[0], this definition is no longer in-scope."
    )


def test_nested_definitions():
    def make(ctx, b, A):
        v = _core.var(ctx, "let", "v", "int32")
        inner = _core.let(ctx, v, A[1], v + 1)
        b.store(A, (0,), _core.let(ctx, v, A[2], inner + v))

    assert message(make) == (
        "TIR is ill-formed, due to multiple nested definitions of variable v. It was first defined at "
        "<root>.body.value, and was re-defined at <root>.body.value"
    )


def test_definitions_in_sequence():
    def make(ctx, b, A):
        v = _core.var(ctx, "let", "v", "int32")
        b.store(A, (0,), _core.let(ctx, v, A[1], v + 1))
        b.store(A, (0,), _core.let(ctx, v, A[2], v + 2))

    assert message(make) == (
        "TIR is ill-formed, due to multiple definitions of variable v. It was first defined at "
        "<root>.body.seq[0].value, and was later re-defined at <root>.body.seq[1].value"
    )


def test_buffer_without_declaration():
    def make(ctx, b, A):
        b.store(_core.buffer(ctx, "B", (4,), "int32", "local"), (0,), 1)

    assert message(make) == (
        "TIR is ill-formed: buffer B is used at <root>.body without a prior DeclBuffer or other declaration."
    )


def test_view_without_declaration():
    def make(ctx, b, A):
        view = _core.buffer(ctx, "V", (8, 8), "int32", data=A.data)
        b.store(A, (0,), view[0, 1])

    assert message(make) == (
        "TIR is ill-formed: buffer V is used at <root>.body.value without a prior DeclBuffer or other declaration."
    )


def test_buffer_out_of_scope():
    def make(ctx, b, A):
        B = _core.buffer(ctx, "B", (4,), "int32", "local")
        b.open_if(A[0] < 1)
        b.alloc(B)
        b.store(B, (0,), 1)
        b.close()
        b.store(A, (0,), B[0])

    assert message(make) == (
        "TIR is ill-formed: buffer B is used at <root>.body.seq[1].value, but its declaration is no longer in-scope. "
        "It was declared at <root>.body.seq[0].then_case.seq[0]"
    )


@pytest.mark.parametrize("word", ["break", "continue"])
def test_outside_of_a_loop(word):
    def make(ctx, b, A):
        b.open_if(A[0] < 1)
        getattr(b, word + "_")()
        b.close()

    assert message(make) == f"'{word}' outside of a loop"


def test_what_is_well_formed():
    def make(ctx, b, A):
        n = b.bind("n", A[0])
        for _ in range(2):
            i = b.open_for("i", 0, n)
            v = b.cell("v", "int32", 0)
            b.open_while(v.load(0) < n)
            b.store(v, (0,), v.load(0) + i)
            b.open_if(v.load(0) > 5)
            b.break_()
            b.close()
            b.close()
            b.close()
        view = _core.buffer(ctx, "V", (8, 8), "int32", data=A.data)
        b.decl(view, A.data)
        v = _core.var(ctx, "let", "v", "int32")
        shared = _core.let(ctx, v, n, v * v)
        b.store(A, (0,), shared + shared)
        b.store(A, (1,), shared + view[0, 1])

    assert "V = A.view(8, 8)" in kernel(make).script()


def test_every_fault_is_reported():
    def make(ctx, b, A):
        for name in ("i", "j"):
            b.store(A, (0,), _core.var(ctx, "let", name, "int32"))

    with pytest.raises(tirx.DiagnosticError) as e:
        kernel(make)
    assert "undefined variable i at" in str(e.value) and "undefined variable j at" in str(e.value)
