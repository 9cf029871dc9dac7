# SPDX-License-Identifier: Apache-2.0
"""@T.inline: what arguments are, where names are looked up, what returns."""

from __future__ import annotations

import pytest
from script.kernels import body, kernel

import tirx
from tirx.script import tirx as T

SCALE = 3


@T.inline
def scaled(x):
    """Reads a global of this module."""
    return x * SCALE


@T.inline
def fill(buf, value, n=4):
    for i in range(n):
        buf[i] = value


@T.inline
def store_into(out, value):
    out = value


@T.inline
def down(buf, n):
    if n > 0:
        buf[n] = n
        down(buf, n - 1)


@T.inline
def pick(flag, x):
    if flag:
        return x + 1
    return x - 1


def test_defaults_keywords_and_a_missing_argument():
    text = body("fill(B, 7)\nfill(value=8, buf=B, n=2)", fill=fill)
    assert text == "for i in range(4):\n    B[i] = 7\nfor i_1 in range(2):\n    B[i_1] = 8"
    with pytest.raises(tirx.DiagnosticTypeError, match=r"fill\(\): missing a required argument: 'value'"):
        kernel("fill(B)", fill=fill)
    with pytest.raises(tirx.DiagnosticTypeError, match=r"got an unexpected keyword argument 'm'"):
        kernel("fill(B, 1, m=3)", fill=fill)


def test_arguments_are_by_reference_and_nothing_is_copied():
    assert body("B[tx] = scaled(tx)", scaled=scaled) == "B[tx] = tx * 3"
    text = body("c: T.int32 = 1\n@T.inline\ndef inc(x):\n    x += 1\ninc(c)\nB[tx] = c")
    assert text == "c: T.int32 = 1\nc = c + 1\nB[tx] = c"


def test_locals_are_fresh_at_every_call():
    text = body("@T.inline\ndef g(x):\n    t = x + 1\n    B[t] = t\ng(tx)\ng(s)")
    assert text == "t: T.int32 = tx + 1\nB[t] = t\nt_1: T.int32 = s + 1\nB[t_1] = t_1"


def test_names_are_looked_up_where_the_text_stands_and_as_late_as_the_call():
    text = body("@T.inline\ndef g():\n    B[tx] = later + 1\nlater: T.let = s * 2\ng()")
    assert text == "later: T.let[T.int32] = s * 2\nB[tx] = later + 1"
    text = body("for i in range(3):\n    @T.inline\n    def g():\n        B[i] = i\n    g()")
    assert text == "for i in range(3):\n    B[i] = i"


def test_the_callers_locals_are_not_visible():
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: hidden"):
        kernel("@T.inline\ndef g():\n    B[tx] = hidden\n@T.inline\ndef h():\n    hidden = 3\n    g()\nh()")


def test_a_helper_takes_and_calls_helpers():
    text = body("@T.inline\ndef apply(f, x):\n    return f(scaled(x))\nB[tx] = apply(scaled, tx)", scaled=scaled)
    assert text == "B[tx] = tx * 3 * 3"


@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_assigning_to_a_parameter_bound_to_a_cell(dialect):
    text = body("c: T.int32 = 1\nstore_into(c, 5)\nB[tx] = c", dialect, store_into=store_into)
    if dialect == "g1":  # stores into the caller's cell
        assert text == "c: T.int32 = 1\nc = 5\nB[tx] = c"
    else:  # rebinds the helper's own name
        assert text == "c = T.alloc_local((1,), T.int32)\nc[0] = 1\nB[tx] = c[0]"


def test_assigning_to_a_parameter_bound_to_a_value_is_local():
    assert body("store_into(tx, 5)\nB[tx] = tx", store_into=store_into) == "out: T.int32 = 5\nB[tx] = tx"


@pytest.mark.parametrize("declare", ["", "    nonlocal c\n"])
def test_assigning_to_a_cell_around_stores_into_it(declare):
    text = body(f"c: T.int32 = 1\n@T.inline\ndef g():\n{declare}    c = c + 2\ng()\nB[tx] = c")
    assert text == "c: T.int32 = 1\nc = c + 2\nB[tx] = c"


def test_nonlocal_makes_the_outer_name_a_cell_in_g2():
    text = body("c = 1\n@T.inline\ndef g():\n    nonlocal c\n    c = c + 2\ng()\nB[tx] = c", "g2")
    assert text == "c = T.alloc_local((1,), T.int32)\nc[0] = 1\nc[0] = c[0] + 2\nB[tx] = c[0]"


def test_recursion_that_ends_at_compile_time():
    want = "B[3] = 3\nB[2] = 2\nB[1] = 1"
    assert body("down(B, 3)", down=down) == want
    inner = "@T.inline\ndef d(n):\n    if n > 0:\n        B[n] = n\n        d(n - 1)\nd(3)"
    assert body(inner) == want
    assert body(inner, "g2") == want
    assert len(body(inner.replace("d(3)", "d(60)")).split("\n")) == 60


def test_recursion_up_to_the_limit_and_one_past_it():
    text = "@T.inline\ndef d(n):\n    if n > 0:\n        d(n - 1)\n    else:\n        B[0] = 1\nd({})"
    assert body(text.format(199)) == "B[0] = 1"
    with pytest.raises(tirx.DiagnosticError, match="inline recursion in 'd' does not end"):
        kernel(text.format(200))


def test_return_at_the_end_is_the_value():
    assert body("B[tx] = scaled(tx) + 1", scaled=scaled) == "B[tx] = tx * 3 + 1"
    text = body("@T.inline\ndef g(x):\n    return x + 1, x + 2\na, b = g(tx)\nB[tx] = a * b", "g2")
    assert text == "a: T.let[T.int32] = tx + 1\nb: T.let[T.int32] = tx + 2\nB[tx] = a * b"


def test_return_under_a_compile_time_condition_skips_the_rest():
    assert body("B[tx] = pick(True, tx)\nB[tx] = pick(False, tx)", pick=pick) == "B[tx] = tx + 1\nB[tx] = tx - 1"
    text = "@T.inline\ndef g(n):\n    for i in (0, 1, 2):\n        if i == n:\n            return i\n    return 9\n"
    assert body(text + "B[0] = g(2)\nB[1] = g(7)") == "B[0] = 2\nB[1] = 9"


@pytest.mark.parametrize("head", ["if tx < 3:", "for i in range(3):", "while tx < 3:"])
def test_return_in_a_run_time_block_is_refused(head):
    with pytest.raises(tirx.DiagnosticError, match="early return under a run-time condition in an inline function"):
        kernel(f"@T.inline\ndef g():\n    {head}\n        return 1\n    return 2\nB[tx] = g()")


def test_outside_a_kernel():
    with pytest.raises(RuntimeError, match="scaled is an inline function: it can only be called inside a kernel"):
        scaled(3)


class Counter:
    """A plain class with inline methods, passed by meta_var."""

    def __init__(self, cell):
        self.counter = cell
        self.steps = 2

    @T.inline
    def bump(self, by=1):
        self.counter = self.counter + by
        self.counter += self.steps

    @T.inline
    def get(self):
        return self.counter


def test_methods_store_into_cells_of_their_object():
    text = body(
        "c = T.local_scalar('int32')\nx = T.meta_var(Counter(c))\nx.bump(by=4)\nB[tx] = x.get()", Counter=Counter
    )
    assert text == "c: T.int32\nc = c + 4\nc = c + 2\nB[tx] = c"


def test_loads_keep_their_order_with_helpers_that_store():
    text = body("@T.inline\ndef g():\n    B[0] = 5\n    return 1\nB[tx] = B[0] + g()")
    assert text == "v: T.let[T.int32] = B[0]\nB[0] = 5\nB[tx] = v + 1"


def test_what_is_computed_from_memory_is_computed_at_the_call():
    text = body("c: T.int32 = 1\n@T.inline\ndef g(x):\n    nonlocal c\n    c = 5\n    B[tx] = x + x\ng(c + 1)")
    assert text == "c: T.int32 = 1\nx: T.let[T.int32] = c + 1\nc = 5\nB[tx] = x + x"
    # an element is passed as it is: a helper may store into it
    assert body("@T.inline\ndef g(x):\n    A[0] = 5.0\n    A[tx] = x\ng(A[0])").endswith("A[tx] = A[0]")


def _endless(x):
    return _endless(x + 1)


@T.inline
def _deep(n, x):
    if n == 0:
        return _endless(x)
    return _deep(n - 1, x)


def test_a_plain_function_without_end_below_many_inline_calls():
    with pytest.raises(
        tirx.DiagnosticError, match="the Python function '_endless' calls itself without end: _endless -> "
    ):
        kernel("B[tx] = _deep(8, tx)", _deep=_deep)
