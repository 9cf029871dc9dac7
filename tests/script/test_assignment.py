# SPDX-License-Identifier: Apache-2.0
"""What an assignment to a name means: cells, immutable bindings, and Python's meaning for inner blocks."""

from __future__ import annotations

import numpy as np
import pytest
from script.kernels import body, kernel, printed, run

import tirx
from tirx.script import tirx as T


def both(text: str, g1: str, g2: str, **names) -> None:
    assert body(text, "g1", **names) == g1
    assert body(text, "g2", **names) == g2


# ---- what a bare name means ----------------------------------------------------------------------------------------


def test_first_assignment():
    both("x = s\nB[tx] = x", "x: T.int32 = s\nB[tx] = x", "x: T.let[T.int32] = s\nB[tx] = x")
    both("x = 5\nB[tx] = x", "x: T.int32 = 5\nB[tx] = x", "B[tx] = 5")


@pytest.mark.parametrize(
    "value, dtype",
    [("1", "int32"), ("5000000000", "int64"), ("1.5", "float32"), ("True", "bool"), ("A[tx]", "float32")],
)
def test_dtype_of_the_first_value(value, dtype):
    assert body(f"x = {value}\nB[tx] = T.cast(x, 'int32')").startswith(f"x: T.{dtype} = ")


def test_second_assignment_in_the_same_scope():
    with pytest.warns(UserWarning, match="Casting in BufferStore may lose precision: float32 to int32"):
        text = body("x = s\nx = 2.5\nB[tx] = x")
    assert text == "x: T.int32 = s\nx = 2\nB[tx] = x"
    # g2 binds anew, the dtype may change
    text = body("x = s\nx = A[tx]\nA[tx] = x", "g2")
    assert text == "x: T.let[T.int32] = s\nx_1: T.let[T.float32] = A[tx]\nA[tx] = x_1"


def test_assignment_in_an_inner_block_reaches_the_outer_name():
    both(
        "x = s\nif tx < 3:\n    x = 5\nB[tx] = x",
        "x: T.int32 = s\nif tx < 3:\n    x = 5\nB[tx] = x",
        "x: T.let[T.int32] = s\nx_1 = T.alloc_local((1,), T.int32)\nx_1[0] = x\n"
        "if tx < 3:\n    x_1[0] = 5\nB[tx] = x_1[0]",
    )


def test_accumulating_in_a_loop():
    both(
        "x = 0\nfor i in range(4):\n    x = x + i\nB[tx] = x",
        "x: T.int32 = 0\nfor i in range(4):\n    x = x + i\nB[tx] = x",
        "x = T.alloc_local((1,), T.int32)\nx[0] = 0\nfor i in range(4):\n    x[0] = x[0] + i\nB[tx] = x[0]",
    )


def test_augmented_assignment_of_a_bare_name():
    both(
        "x = s\nx += 1\nB[tx] = x",
        "x: T.int32 = s\nx = x + 1\nB[tx] = x",
        "x: T.let[T.int32] = s\nx_1: T.let[T.int32] = x + 1\nB[tx] = x_1",
    )


def test_defined_in_branches():
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: x"):
        kernel("if tx < 3:\n    x = 1\nB[tx] = x")
    # in both arms: the name is the outer block's
    text = body("if tx < 3:\n    x = 1\nelif tx < 5:\n    x = 2\nelse:\n    x = 3\nB[tx] = x")
    assert text == "x: T.int32\nif tx < 3:\n    x = 1\nelif tx < 5:\n    x = 2\nelse:\n    x = 3\nB[tx] = x"
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: x"):
        kernel("if tx < 3:\n    x = 1\nelif tx < 5:\n    x = 2\nelse:\n    pass\nB[tx] = x")


def test_loop_variable_reassigned():
    both(
        "for i in range(4):\n    i = i + 10\n    B[tx] = i",
        "for i in range(4):\n    i_1: T.int32 = i + 10\n    B[tx] = i_1",
        "for i in range(4):\n    i_1: T.let[T.int32] = i + 10\n    B[tx] = i_1",
    )
    text = body("for i in range(4):\n    if tx < 3:\n        i = i + 10\n    B[tx] = i")
    assert text == ("for i in range(4):\n    i_1: T.int32 = i\n    if tx < 3:\n        i_1 = i_1 + 10\n    B[tx] = i_1")


def test_parameter_reassigned():
    both(
        "s = s + 1\nB[tx] = s",
        "s_1: T.int32 = s + 1\nB[tx] = s_1",
        "s_1: T.let[T.int32] = s + 1\nB[tx] = s_1",
    )
    text = body("for i in range(3):\n    s = s * 2\nB[tx] = s")
    assert text == "s_1: T.int32 = s\nfor i in range(3):\n    s_1 = s_1 * 2\nB[tx] = s_1"


def test_buffers_and_pointers_are_aliases():
    assert body("C = B\nC[tx] = 1") == "B[tx] = 1"
    assert body("p = B.ptr_to([0])\nT.cuda.atomic_add(p, 1)") == (
        'p: T.let[T.handle("int32")] = T.address_of(B[0])\nT.cuda.atomic_add(p, 1)'
    )
    with pytest.raises(tirx.DiagnosticError, match="Pointer variable 'p' cannot be reassigned"):
        kernel("p = B.ptr_to([0])\np = B.ptr_to([1])")
    assert "p_1" in body("p = B.ptr_to([0])\np = B.ptr_to([1])\nT.cuda.atomic_add(p, 1)", "g2")


def test_one_element_buffer_by_name():
    text = body("z = T.alloc_local((1,), 'int32')\nz = 3\nz += 1\nB[tx] = z + z[0]")
    assert text == 'z = T.alloc_local((1,), "int32")\nz[0] = 3\nz[0] = z[0] + 1\nB[tx] = z[0] + z[0]'


def test_meta_var_binds_the_python_value():
    assert body("n = T.meta_var(2)\nfor i in range(n):\n    B[i] = n") == "for i in range(2):\n    B[i] = 2"
    assert body("a, b = T.meta_var((2, 3))\nB[a] = b") == "B[2] = 3"
    assert body("xs = T.meta_var([1, 2])\nfor x in xs:\n    B[x] = x") == "B[1] = 1\nB[2] = 2"


def test_lists():
    assert body("xs = [s, 2]\nxs[0] = 7\nB[tx] = xs[0] + xs[1]") == (
        "xs_0: T.int32 = s\nxs_1: T.int32 = 2\nxs_0 = 7\nB[tx] = xs_0 + xs_1"
    )
    assert body("xs = [s, 2]\nB[tx] = xs[0] + xs[1]", "g2") == "B[tx] = s + 2"
    # what is read from memory is read where the list is made
    assert body("xs = [B[0], 2]\nB[0] = 1\nB[tx] = xs[0]", "g2") == (
        "xs_0: T.let[T.int32] = B[0]\nB[0] = 1\nB[tx] = xs_0"
    )


# ---- annotated, augmented, tuples ----------------------------------------------------------------------------------


def test_annotations():
    both(
        "x: T.int32 = 3\nB[tx] = x",
        "x: T.int32 = 3\nB[tx] = x",
        "x = T.alloc_local((1,), T.int32)\nx[0] = 3\nB[tx] = x[0]",
    )
    assert body("x: T.int32\nx = 1\nB[tx] = x") == "x: T.int32 = 1\nB[tx] = x"
    assert body("x: 'T.int64' = s\nB[tx] = T.cast(x, 'int32')").startswith('x: T.int64 = T.Cast("int64", s)')
    assert body("q: T.float32[2, 3]\nq[1, 2] = 1.0") == 'q = T.alloc_local((2, 3), "float32")\nq[1, 2] = T.float32(1.0)'
    assert body("x: T.let = s + 1\nB[tx] = x") == "x: T.let[T.int32] = s + 1\nB[tx] = x"
    assert body("x: T.let[T.int64] = s\nB[tx] = T.cast(x, T.int32)").startswith(
        'x: T.let[T.int64] = T.Cast("int64", s)'
    )
    # a second declaration is a new variable, in an inner block a store
    assert body("x: T.int32 = 1\nx: T.float32 = 2.0\nA[tx] = x") == (
        "x: T.int32 = 1\nx_1: T.float32 = T.float32(2.0)\nA[tx] = x_1"
    )
    text = body("x: T.int32 = 1\nfor i in range(3):\n    x: T.int32 = i\nB[tx] = x")
    assert text == "x: T.int32 = 1\nfor i in range(3):\n    x = i\nB[tx] = x"


@pytest.mark.parametrize("sign", ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^"])
def test_augmented_operators(sign):
    shift = "3" if sign in ("<<", ">>") else "s"
    assert body(f"x: T.int32 = 4\nx {sign}= {shift}\nB[tx] = x") == (f"x: T.int32 = 4\nx = x {sign} {shift}\nB[tx] = x")
    assert body(f"B[tx] {sign}= {shift}") == f"B[tx] = B[tx] {sign} {shift}"


def test_all_right_sides_come_before_the_first_store():
    text = body("x: T.int32 = 1\ny: T.int32 = 2\nx, y = y, x")
    assert text == ("x: T.int32 = 1\ny: T.int32 = 2\nt: T.let[T.int32] = y\nt_1: T.let[T.int32] = x\nx = t\ny = t_1")
    text = body("B[0], B[1] = B[1], B[0]")
    assert text == "t: T.let[T.int32] = B[1]\nt_1: T.let[T.int32] = B[0]\nB[0] = t\nB[1] = t_1"
    text = body("x = s\ny = tx\nx, y = y, x\nB[x] = y", "g2")
    want = ["x: T.let[T.int32] = s", "y: T.let[T.int32] = tx", "x_1: T.let[T.int32] = y", "y_1: T.let[T.int32] = x"]
    assert text.split("\n") == [*want, "B[x_1] = y_1"]


def test_chained_assignment_takes_the_value_once():
    text = body("x: T.int32 = 1\nx = y = x + 1\nB[x] = y")
    assert text == "x: T.int32 = 1\nt: T.let[T.int32] = x + 1\nx = t\ny: T.int32 = t\nB[x] = y"


def test_starred_targets():
    text = body("a, *r, z = [1, s, tx, 4]\nB[a] = r[0] + r[1] + z", "g2")
    assert text == "B[1] = s + tx + 4"


# ---- what would silently differ from Python is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x = A\nif tx < 3:\n    x = A\nx[0] = 1.0",
        "n = T.meta_var(1)\nfor i in range(3):\n    B[i] = n\n    n = T.meta_var(2)",
        "for i in range(3):\n    pass\nB[tx] = i",
        "i: T.let = s\nfor i in range(3):\n    pass\nB[tx] = i",
    ],
)
def test_a_name_whose_value_depends_on_the_run_is_not_read(text):
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: "):
        kernel(text)


def test_names_of_python_are_never_written():
    assert body("N = N + 1\nB[tx] = N", N=4) == "N: T.int32 = 5\nB[tx] = N"


class Config:
    size = 8


def test_captured_values():
    import numpy as np

    limits = {"low": 3}

    def factory(k, dt):
        @T.prim_func
        def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), s: T.int32):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([64])
            B[tx] = k + limits["low"] + Config.size + np.int64(2)
            A[tx] = T.cast(dt(1.5), "float32") + np.float32(0.5)

        return f

    assert printed(factory(1, T.float32)) == "B[tx] = 14\nA[tx] = T.float32(2.0)"
    assert printed(factory(2, T.float32)) == "B[tx] = 15\nA[tx] = T.float32(2.0)"


def test_two_names_of_one_list():
    """As in Python, both are names of the same elements; in g1 these are cells."""
    for text in ("x = y = [1, tx]", "x = [1, tx]\ny = x"):
        assert body(f"{text}\nx[0] = 5\nB[tx] = y[0]") == "x_0: T.int32 = 1\nx_1: T.int32 = tx\nx_0 = 5\nB[tx] = x_0"
        assert body(f"{text}\nx[0] = 5\nB[tx] = y[0]", "g2") == "B[tx] = 5"
    assert body("x = [1, 2]\ny = [x, 3]\ny[0][1] = 7\nB[tx] = x[1]").endswith("x_1 = 7\nB[tx] = x_1")
    constant = [1, 2]
    assert body("x = C\nx[0] = 5\nB[tx] = x[0]", C=constant).endswith("x_0 = 5\nB[tx] = x_0")
    assert constant == [1, 2]


@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_targets_that_are_tuples_in_both_arms(dialect):
    text = "if tx < 1:\n    v, (w, u) = 1, (2, 3)\nelse:\n    [w, v, u] = 4, 5, 6\nB[tx] = v * 100 + w * 10 + u"
    _, b = run(kernel(text, dialect))
    assert b[0] == 123 and (b[1:] == 546).all()


@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_swaps_of_cells_elements_and_three_names(dialect):
    text = """
x = tx
y = tx + 100
if s == 0:
    x, y = y, x
    y, B[tx], x = x, y, y
a = [tx, 1, 2]
a[0], a[1], a[2] = a[2], a[0], a[1]
B[tx] = x * 1000 + y + a[0] * 100000 + a[1] - a[2]
"""
    _, b = run(kernel(text, dialect))
    tx = np.arange(64)
    x, y = tx + 100, tx
    y, x = x, y
    want = x * 1000 + y + 2 * 100000 + tx - 1
    np.testing.assert_array_equal(b, want)


def test_a_python_list_that_a_loop_would_change():
    for text in ("xs = {'a': 1}\nfor i in range(3):\n    xs['a'] = i", "for i in range(s):\n    table['a'] = tx"):
        with pytest.raises(tirx.DiagnosticError, match="'(xs|table)' is a Python value"):
            kernel(text, table={"a": 1})
