# SPDX-License-Identifier: Apache-2.0
"""What a first suite of the language must hold, row by row of its reference.

The eleven meanings of a bare assignment, loops that count down, and the nineteen places where users of the originals
stumble stand here, each with its value; ELSEWHERE says which tests hold the other tables, and that they exist.
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from script.kernels import body, kernel, run

import tirx
from tirx.script import tirx as T

TESTS = Path(__file__).resolve().parents[1]
tx = np.arange(64)

# file -> row -> the test that holds it
ELSEWHERE = {
    "script/test_expressions.py": {
        "operators: the result types of mixed operands": "test_dtype",
        "operators: order does not matter": "test_mixed_operands_promote_and_order_does_not_matter",
    },
    "script/test_values.py": {
        "operators: values in every dtype": "test_a_kernel_computes_what_python_does",
        "operators: both arms of a choice": "test_choice_promotes",
    },
    "script/test_inline.py": {
        "inline: arguments are by reference": "test_arguments_are_by_reference_and_nothing_is_copied",
        "inline: fresh locals": "test_locals_are_fresh_at_every_call",
        "inline: free names": "test_names_are_looked_up_where_the_text_stands_and_as_late_as_the_call",
        "inline: never the caller's locals": "test_the_callers_locals_are_not_visible",
        "inline: globals, inlines as arguments": "test_a_helper_takes_and_calls_helpers",
        "inline: assignment to a parameter that is a cell": "test_assigning_to_a_parameter_bound_to_a_cell",
        "inline: assignment to another parameter": "test_assigning_to_a_parameter_bound_to_a_value_is_local",
        "inline: outer cells, with nonlocal and without": "test_assigning_to_a_cell_around_stores_into_it",
        "inline: nonlocal in g2": "test_nonlocal_makes_the_outer_name_a_cell_in_g2",
        "inline: recursion that ends": "test_recursion_that_ends_at_compile_time",
        "inline: recursion that does not": "test_recursion_up_to_the_limit_and_one_past_it",
        "inline: return at the end": "test_return_at_the_end_is_the_value",
        "inline: return under a compile-time condition": "test_return_under_a_compile_time_condition_skips_the_rest",
        "inline: return under a run-time condition": "test_return_in_a_run_time_block_is_refused",
        "inline: outside a kernel": "test_outside_a_kernel",
        "inline: methods": "test_methods_store_into_cells_of_their_object",
        "inline: defaults, keywords, a missing argument": "test_defaults_keywords_and_a_missing_argument",
    },
    "lower/test_scope_ids.py": {
        "scope ids: extents, closure, inference, limits": "test_refused",
        "scope ids: launch shapes": "test_launch_shape",
        "scope ids: values": "test_values",
        "scope ids: with a configuration": "test_ids_and_configuration_may_be_mixed",
    },
    "script/test_signature.py": {
        "scope ids: a bare extent, a deferred one": "test_scope_ids_take_a_bare_extent_and_none",
        "scope ids: behind the entry": "test_scope_ids_stand_behind_the_entry",
        "launch: fields that are refused": "test_launch_configurations_that_are_refused",
        "launch: attributes that are refused": "test_kernel_attributes_that_are_refused",
        "launch: attributes against the launch": "test_kernel_attributes_against_the_launch",
        "launch: attributes need a launch": "test_kernel_attributes_need_a_launch",
    },
    "runtime/test_calls.py": {
        "calls: what is refused, in words": "test_what_is_refused_and_with_which_words",
        "calls: numbers": "test_numbers_for_an_int_and_a_bool",
        "calls: strides and offsets": "test_extents_of_one_may_have_any_stride_and_offsets_are_free",
    },
}


@pytest.mark.parametrize("path, row", [(path, row) for path, rows in ELSEWHERE.items() for row in rows])
def test_it_is_in_the_suite(path, row):
    tree = ast.parse((TESTS / path).read_text())
    assert ELSEWHERE[path][row] in {s.name for s in tree.body if isinstance(s, ast.FunctionDef)}


# ---- a bare assignment, in both dialects -----------------------------------------------------------------------------

# row -> (text, what B holds afterwards; or the words of the error)
ASSIGNMENTS = {
    "first": ("x = tx * 2\nB[tx] = x", tx * 2),
    "second in the same scope": ("x = tx\nx = x + 5\nB[tx] = x", tx + 5),
    "in an inner block": ("x = 0\nif tx > 3:\n    x = 5\nB[tx] = x", np.where(tx > 3, 5, 0)),
    "accumulating in a loop": ("x = 0\nfor i in range(5):\n    x = x + i\nB[tx] = x", tx * 0 + 10),
    "augmented": ("x = 3\nx += 1\nx <<= 2\nB[tx] = x", tx * 0 + 16),
    "in one branch only": ("if tx > 3:\n    x = 5\nB[tx] = x", "Undefined variable: x"),
    "in both branches": ("if tx > 3:\n    x = 5\nelse:\n    x = tx\nB[tx] = x", np.where(tx > 3, 5, tx)),
    "a loop variable": ("for i in range(4):\n    i = i + 10\n    B[i] = i", np.where((tx > 9) & (tx < 14), tx, 0)),
    "a parameter": ("s = s + 1\nB[tx] = s", tx * 0 + 1),
    "a buffer": ("x = B\nx[tx] = tx", tx),
    "a pointer": ("p = B.data\nv = T.decl_buffer((64,), 'int32', data=p)\nv[tx] = tx", tx),
    "a buffer of one element": ("z = T.alloc_local((1,), 'int32')\nz = 3\nB[tx] = z", tx * 0 + 3),
    "a meta_var": ("x = T.meta_var([tx, 2])\nn = T.meta_var(2)\nfor i in range(n):\n    B[tx] = x[0] + x[1]", tx + 2),
    "a list": ("x = [tx, 2]\nx[1] = 7\nB[tx] = x[0] + x[1]", tx + 7),
    "a tuple": ("x = (tx, 2)\nB[tx] = x[0] + x[1]", tx + 2),
}


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("row", ASSIGNMENTS)
def test_a_bare_assignment(row, dialect):
    text, want = ASSIGNMENTS[row]
    if isinstance(want, str):
        with pytest.raises(tirx.DiagnosticError, match=want):
            kernel(text, dialect)
        return
    _, b = run(kernel(text, dialect), check=False)  # several threads write the same values
    np.testing.assert_array_equal(b, want)


def test_where_the_dialects_differ():
    assert body("x = 1\nx = 2.5\nA[tx] = x").startswith("x: T.int32 = 1\nx = 2")  # the cell keeps its dtype
    assert body("x = 1\nx = 2.5\nA[tx] = x", "g2") == "A[tx] = T.float32(2.5)"
    with pytest.raises(tirx.DiagnosticError, match="Pointer variable 'p' cannot be reassigned"):
        kernel("p = A.data\np = B.data")
    assert "B.data" in body("p = A.data\np = B.data\nv = T.decl_buffer((4,), 'int32', data=p)\nv[0] = 1", "g2")


# ---- loops that count down -----------------------------------------------------------------------------------------

RANGES = [(10, 0, -1), (10, -1, -1), (10, 0, -3), (0, 10, -1), (5, 5, -1), (-2, -9, -2), (9, 0, -10), (3, -3, -6)]


LOOPS = [
    "range({0}, {1}, {2})",
    "range(s + {0}, s + {1}, {2})",
    "T.serial({0}, {1}, step={2})",
    "T.serial({0}, {1}, step={2}, unroll=2)",
    "T.unroll({0}, {1}, step={2})",
]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_a_loop_that_counts_down(bounds, loop):
    text = f"n: T.int32 = 0\nfor i in {loop.format(*bounds)}:\n    B[n] = i\n    n += 1\nB[63] = n"
    _, b = run(kernel(text), check=False)
    turns = list(range(*bounds))
    assert list(b[: len(turns)]) == turns and b[63] == len(turns)


def test_a_step_must_have_a_known_sign():
    with pytest.raises(tirx.DiagnosticError, match="range step cannot be zero"):
        kernel("for i in range(3, 0, 0):\n    B[i] = 1")
    with pytest.raises(tirx.DiagnosticError, match="the sign of the loop step s is not known"):
        kernel("for i in range(3, 0, s):\n    B[i] = 1")


# ---- where users of the originals stumble ----------------------------------------------------------------------------


def value(text: str, dialect: str = "g1", s: int = 0, **names):
    return run(kernel(text, dialect, **names), s=s, check=False)[1]


def refused(text: str, words: str, **names):
    with pytest.raises(tirx.DiagnosticError, match=words):
        kernel(text, **names)


def test_01_a_negative_step_runs():
    assert list(value("for i in range(3, 0, -1):\n    B[i] = i")[:5]) == [0, 1, 2, 3, 0]


def test_02_a_swap_loses_nothing():
    for dialect in ("g1", "g2"):
        assert (value("x = tx\ny = 7\nif s == 0:\n    x, y = y, x\nB[tx] = x * 100 + y", dialect) == 700 + tx).all()


def test_03_an_inner_assignment_reaches_the_outer_name():
    for dialect in ("g1", "g2"):
        assert (value("x = 1\nfor i in range(3):\n    if i == s:\n        x = 5\nB[tx] = x", dialect) == 5).all()


def test_04_an_early_return_of_a_helper_drops_nothing():
    text = "@T.inline\ndef g():\n    if tx < 3:\n        return\n    B[tx] = 1\ng()"
    refused(text, "early return under a run-time condition in an inline function")


def test_05_a_call_in_a_plain_helper_is_not_dropped():
    def helper():
        T.ptx.griddepcontrol.wait()

    assert "griddepcontrol.wait" in body("helper()", helper=helper)


def test_06_a_choice_has_the_type_of_both_arms():
    a, _ = run(kernel("A[tx] = T.if_then_else(tx < 3, tx, 0.5)", "g2"))
    np.testing.assert_array_equal(a, np.where(tx < 3, tx, 0.5).astype(np.float32))


def test_07_no_else_and_no_parameter_is_dropped():
    for head in ("for i in range(3)", "while tx < 3"):
        refused(f"{head}:\n    B[0] = 1\nelse:\n    B[1] = 1", "else")
    with pytest.raises(tirx.DiagnosticError, match=r"\*rest"):
        tirx.from_source("@T.prim_func\ndef f(A: T.Buffer((4,)), *rest):\n    T.device_entry()")


def test_08_nonlocal_stores_into_the_outer_name():
    for dialect in ("g1", "g2"):
        text = "c = 1\n@T.inline\ndef g():\n    nonlocal c\n    c = c + tx\ng()\nB[tx] = c"
        assert (value(text, dialect) == 1 + tx).all()


def test_09_a_single_fp4_element_keeps_its_neighbour():
    text = "q = T.alloc_local((4,), 'float4_e2m1fn')\nfor i in range(4):\n    q[i] = T.float32(1.0) + i * 0.5\n"
    a, _ = run(kernel(text + "q[1] = 3.0\nA[tx] = T.cast(q[tx % 4], 'float32')"))
    np.testing.assert_array_equal(a[:4], [1, 3, 2, 2])  # 2.5 is none of the sixteen values: ties to even
    f = kernel("q = T.alloc_shared((4,), 'float4_e2m1fn')\nq[s] = 3.0")
    with pytest.raises(tirx.DiagnosticError, match="(?i)fp4|float4"):
        tirx.compile(f, target="cuda:sm_100a")


def test_10_indices_are_inside():
    for index, words in (("64", "outside 0..63"), ("-1", "outside 0..63"), ("1.5", "must be an integer")):
        refused(f"B[{index}] = 1", words)


def test_11_sizes_that_no_device_has():
    head = "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    T.device_entry()\n    "
    tail = "\n    tx = T.thread_id([32])\n    A[0] = 1"
    for text, words in (
        (head + "tx = T.thread_id([2048])\n    A[0] = 1", "1024"),
        (head + "bx = T.cta_id([0])" + tail, "grid|extent|positive"),
        (head + "s = T.alloc_shared((65536,), 'int32')\n    s[0] = 1" + tail, "static shared memory of 262144 bytes"),
    ):
        with pytest.raises(tirx.DiagnosticError, match=words):
            tirx.compile(tirx.from_source(text), target="cpu")


def test_12_a_view_has_as_many_elements():
    refused("V = A.view(63, 4)", "view: source and result must have equal element counts")


def test_13_a_let_keeps_its_dtype():
    assert "x: T.let[T.int64] = T.int64(3)" in body("x: T.let[T.int64] = T.int64(3)\nB[tx] = T.cast(x, 'int32')")
    assert (value("x: T.let[T.int64] = T.int64(2**40) + tx\nB[tx] = T.cast(x >> 38, 'int32')") == 4).all()


def test_14_a_scalar_argument_is_inside_its_range():
    exe = tirx.compile(kernel("B[tx] = s"), target="cpu")
    with pytest.raises(ValueError, match="1099511627776"):
        exe(np.zeros(64, np.float32), np.zeros(64, np.int32), 2**40)


def test_15_what_a_helper_returns_is_a_value():
    text = "@T.inline\ndef g(x):\n    return x + 1, x * 2\na, b = g(tx)\nB[tx] = a * 100 + b"
    for dialect in ("g1", "g2"):
        assert (value(text, dialect) == (tx + 1) * 100 + tx * 2).all()


def test_16_fma(nvrtc):
    f = kernel("A[tx] = T.fma(A[tx], 2.0, 1.0)")
    np.testing.assert_array_equal(run(f)[0], 2 * tx + 1)
    assert tirx.compile(f, target="cuda:sm_80").cubin[:4] == b"\x7fELF"


def test_17_a_jump_out_of_an_unrolled_loop(nvrtc):
    f = kernel("for i in T.unroll(8):\n    if i == s:\n        break\n    B[i] = i + 1")
    assert list(run(f, s=3, check=False)[1][:5]) == [1, 2, 3, 0, 0]
    assert tirx.compile(f, target="cuda:sm_80").cubin[:4] == b"\x7fELF"


def test_18_an_assertion_on_the_device(nvrtc):
    f = kernel("assert tx < s, 'too far'\nB[tx] = 1")
    with pytest.raises(tirx.EmulationError, match="too far"):
        run(f, s=63)
    assert run(f, s=64)[1].all()
    assert tirx.compile(f, target="cuda:sm_80").cubin[:4] == b"\x7fELF"


def test_19_what_was_found_late_is_found_at_its_line():
    refused("x = T.alloc_local((4,), 'float99')", "unknown dtype 'float99'")
    refused("x = T.alloc_buffer((4,), 'int32', scope='foo')", "unknown storage scope 'foo'")
    for text, words in (
        ("tx = T.thread_id([32])\n    T.device_entry()", "T.thread_id"),
        ("T.device_entry()\n    tx = T.thread_id([32])\n    T.device_entry()", "device_entry|device region"),
        ("n = T.int32()\n    T.device_entry()\n    tx = T.thread_id([32])\n    A[n] = 1", "symbol 'n'|variable n"),
    ):
        with pytest.raises(tirx.DiagnosticError, match=words) as info:
            f = tirx.from_source(f"@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    {text}\n")
            tirx.compile(f, target="cpu")
        assert info.value.lineno in (3, 4, 5, 6)
    host = tirx.from_source("@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    pass\n")
    with pytest.raises(AttributeError, match="the function has no device region"):
        _ = tirx.compile(host, target="cuda:sm_80").source
