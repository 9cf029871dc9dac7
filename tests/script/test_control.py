# SPDX-License-Identifier: Apache-2.0
"""Loops, branches, with blocks, jumps, assertions, attributes, and Python code that runs while the kernel is built."""

from __future__ import annotations

import re

import numpy as np
import pytest
from script.kernels import body, kernel, printed, run

import tirx
from tirx.script import tirx as T


@pytest.mark.parametrize(
    "head, text",
    [
        ("for i in range(4):", "for i in range(4):"),
        ("for i in range(s):", "for i in range(s):"),
        ("for i in range(2, s):", "for i in range(2, s):"),
        ("for i in range(10, 0, -3):", "for i in range(10, 0, -3):"),
        ("for i in T.serial(4):", "for i in range(4):"),
        ("for i in T.serial(1, 4):", "for i in range(1, 4):"),
        ("for i in T.serial(0, 8, step=2):", "for i in range(0, 8, 2):"),
        ("for i in T.serial(4, unroll=True):", "for i in T.serial(4, unroll=True):"),
        ("for i in T.serial(4, unroll=2):", "for i in T.serial(4, unroll=2):"),
        ("for i in T.serial(4, unroll=False):", "for i in T.serial(4, unroll=1):"),
        ("for i in T.serial(4, annotations={'pragma_unroll': True}):", "for i in T.serial(4, unroll=True):"),
        ("for i in T.serial(4, annotations={'tirx.pragma_unroll': 2}):", "for i in T.serial(4, unroll=2):"),
        ("for i in T.serial(4, annotations={'mine': 2}):", 'for i in T.serial(4, annotations={"mine": 2}):'),
        ("for i in T.unroll(4):", "for i in T.unroll(4):"),
        ("for i in T.unroll(4, 8, step=2):", "for i in T.unroll(4, 8, step=2):"),
        ("for i in T.vectorized(4):", "for i in T.vectorized(4):"),
        ("for i in T.parallel(4):", "for i in T.parallel(4):"),
        ("for i in T.serial(4, dtype='uint32'):", 'for i in T.serial(T.uint32(4), dtype="uint32"):'),
        ("for i in T.grid(4):", "for i in range(4):"),
        ("for i, j in T.grid(4, 2):", "for i in range(4):\n    for j in range(2):"),
        ("for i, j in T.grid(8, (1, 3)):", "for i in range(8):\n    for j in range(1, 4):"),
    ],
)
def test_loops(head, text):
    found = body(f"{head}\n    B[tx] = T.cast(i, 'int32')")
    if "uint32" in head:
        assert "uint32" in found.split("\n")[0]
    else:
        assert found.startswith(text)


@pytest.mark.parametrize(
    "iterable, message",
    [
        ("T.serial(4, unroll=0)", "unroll must be at least 1, got 0"),
        ("T.serial(4, unroll='x')", "unroll must be True, False or a positive int, got str"),
        ("T.serial(4, dtype='int64')", 'dtype of a loop/scope-id var must be "int32" or "uint32"'),
        ("range(0, 4, 0)", "range step cannot be zero"),
        ("range(0, 4, s)", "the sign of the loop step s is not known"),
        ("range(1.5)", "a loop bound must be an integer, got float32"),
        ("range(A[tx])", "a loop bound must be an integer, got float32"),
        ("T.unroll(s)", "Cannot unroll non-constant loop"),
        ("T.thread_binding(4)", "Thread cannot be None for thread_binding"),
        ("range()", "range() takes 1 to 3 arguments"),
        ("tx", "Expect the for loop to be one of the following: range, T.serial"),
        ("A", "Expect the for loop to be one of the following: range, T.serial"),
        ("None", "Expect the for loop to be one of the following: range, T.serial"),
    ],
)
def test_loops_that_are_refused(iterable, message):
    with pytest.raises(tirx.DiagnosticError, match=re.escape(message)):
        kernel(f"for i in {iterable}:\n    pass")


def test_bounds_are_taken_once():
    text = body("n: T.int32 = s\nfor i in range(n):\n    n = n - 1")
    assert text.startswith("n: T.int32 = s\ni_stop: T.let[T.int32] = n\nfor i in range(i_stop):")


def test_python_sequences_are_expanded():
    assert body("for v in (1, 2):\n    B[v] = v") == "B[1] = 1\nB[2] = 2"
    assert body("for k, (a, b) in enumerate(zip([1, 2], [tx, s])):\n    B[a + k] = b") == "B[1] = tx\nB[3] = s"
    assert body("for k in {'a': 1}:\n    B[0] = len(k)") == "B[0] = 1"
    text = (
        "for v in T.constexpr(range(5)):\n    if v == 1:\n        continue\n    if v == 3:\n        break\n    B[v] = v"
    )
    assert body(text) == "B[0] = 0\nB[2] = 2"
    assert body("for b in (A, B):\n    b[tx] = 1") == "A[tx] = T.float32(1.0)\nB[tx] = 1"


def test_a_jump_ends_the_block_that_it_stands_in():
    assert body("while True:\n    break\n    B[tx] = nosuch") == "while True:\n    break"
    assert body("return\nB[tx] = nosuch") == "return"
    assert body("if tx < 3:\n    return\nB[tx] = 1") == "if tx < 3:\n    return\nB[tx] = 1"


@pytest.mark.parametrize("value, taken", [("True", 1), ("None", 0), ("0", 0), ("3", 1), ("0.0", 0), ("N > 3", 1)])
def test_python_conditions_are_decided_now_and_open_no_block(value, taken):
    text = f"if {value}:\n    y = 1\nelse:\n    y = 0\nB[tx] = y"
    assert body(text, "g2", N=4) == f"B[tx] = {taken}"
    assert body(f"if T.constexpr({value}):\n    y = 1\nelse:\n    y = 0\nB[tx] = y", "g2", N=4) == f"B[tx] = {taken}"
    assert body(f"B[tx] = 1 if {value} else 0", N=4) == f"B[tx] = {taken}"


def test_builder_style_blocks():
    text = "with T.If(tx < 3):\n    with T.Then():\n        B[tx] = 1\n    with T.Else():\n        B[tx] = 2"
    assert body(text) == "if tx < 3:\n    B[tx] = 1\nelse:\n    B[tx] = 2"
    lower = text.replace("If", "if_").replace("Then", "then_").replace("Else", "else_")
    assert body(lower) == body(text)
    assert body("with T.serial(4) as i:\n    B[i] = i") == "for i in range(4):\n    B[i] = i"
    assert (
        body("with T.grid(2, 3) as (i, j):\n    B[i] = j")
        == "for i in range(2):\n    for j in range(3):\n        B[i] = j"
    )
    assert body("with T.While(tx < 3):\n    T.Break()") == "while tx < 3:\n    break"


def test_attributes():
    assert body('T.attr({"tirx.max_registers": 64})\nB[tx] = 1') == 'T.attr({"tirx.max_registers": 64})\nB[tx] = 1'
    assert body('T.attr(0, "mine", 3)\nB[tx] = 1') == 'T.attr({"mine": 3})\nB[tx] = 1'
    text = body('with T.attr({"mine": 3}):\n    B[tx] = 1\nB[tx] = 2')
    assert text == 'with T.attr({"mine": 3}):\n    B[tx] = 1\nB[tx] = 2'
    f = tirx.from_source(
        '@T.prim_func\ndef k(A: T.Buffer((64,), "int32")):\n'
        '    T.func_attr({"global_symbol": "renamed", "mine": 1})\n    T.device_entry()\n    tx = T.thread_id([64])\n'
    )
    assert f.symbol == "renamed" and f.attrs["mine"] == 1


def test_an_attribute_in_a_helper_covers_the_rest_of_the_callers_block():
    text = body('@T.inline\ndef g():\n    T.attr({"mine": 3})\ng()\nB[tx] = 1')
    assert text == 'T.attr({"mine": 3})\nB[tx] = 1'
    text = body("def g():\n    T.attr({'mine': 3})\n    T.evaluate(T.cuda.cta_sync())\ng()\nB[tx] = 1")
    assert text == 'T.attr({"mine": 3})\nT.cuda.cta_sync()\nB[tx] = 1'


def test_assertions():
    assert body("assert tx < 64") == 'assert tx < 64, ("AssertionError", [])'
    assert body('assert tx < 64, "no"') == 'assert tx < 64, ("AssertionError", ["no"])'
    assert body('assert tx < 64, ("ValueError", ["a", "b"])') == 'assert tx < 64, ("ValueError", ["a", "b"])'
    assert body("assert N == 4", N=4) == ""


def test_plain_functions_run_while_the_kernel_is_built():
    text = """
def helper(x, n=2):
    T.cuda.cta_sync()
    buf = T.alloc_local((n,), "float32")
    buf[0] = x
    with T.If(tx < 3):
        with T.Then():
            T.buffer_store(B, 1, [tx])
    return [buf[0] + float(i) for i in range(n)]
ys = T.meta_var(helper(A[tx]))
A[tx] = ys[0] + ys[1]
"""
    assert body(text) == (
        'T.cuda.cta_sync()\nbuffer = T.alloc_local((2,), "float32")\nbuffer[0] = A[tx]\nif tx < 3:\n    B[tx] = 1\n'
        "A[tx] = buffer[0] + T.float32(0.0) + (buffer[0] + T.float32(1.0))"
    )
    assert body("f = lambda u: u + s\nB[tx] = f(tx)") == "B[tx] = tx + s"


def test_python_code_that_needs_a_run_time_value():
    message = "this Python code runs while the kernel is built; use T.If, or decorate the helper with @T.inline"
    for text in ("def h(x):\n    return 1 if x > 3 else 2\nB[tx] = h(tx)", "B[tx] = [x for x in (1, 2) if x > tx][0]"):
        with pytest.raises(tirx.DiagnosticError, match=message):
            kernel(text)


def test_an_exception_of_the_users_code_passes_with_a_note():
    def broken(x):
        return {}[x]

    with pytest.raises(KeyError) as info:
        kernel("B[tx] = broken(3)", broken=broken)
    assert not isinstance(info.value, SyntaxError)
    assert re.fullmatch(r"while the kernel 'k' was built: File \"<tirx source \d+>\", line 6", info.value.__notes__[0])


@T.meta_class
class Holder:
    def __init__(self, n, shared=None):
        self.buf = T.alloc_local((n,), "float32")
        self.count = T.local_scalar("int32")
        self.more = [T.alloc_local((2,), "int32")]
        self.shared = shared

    @T.inline
    def init(self):
        self.count = 0
        for i in range(4):
            self.buf[i] = 0.0


def test_meta_class():
    text = body(
        "sm = T.alloc_shared((4,), 'int32')\nh = Holder(4, sm)\nh.init()\nh.count += 2\nh.shared[0] = h.count",
        Holder=Holder,
    )
    assert text == (
        'sm = T.alloc_shared((4,), "int32")\nh_buf = T.alloc_local((4,), "float32")\nh_count: T.int32\n'
        'h_more_0 = T.alloc_local((2,), "int32")\nh_count = 0\nfor i in range(4):\n    h_buf[i] = T.float32(0.0)\n'
        "h_count = h_count + 2\nsm[0] = h_count"
    )


def test_modules():
    from tirx.script import ir as I

    @I.ir_module
    class Both:
        @T.prim_func
        def main(A: T.Buffer((64,), "int32")):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = 1

        @T.function
        def other(A: T.Tensor((64,), T.int32)):
            T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
            A[T.cuda.thread_idx("x")] = 1

    assert isinstance(Both, tirx.IRModule) and Both.names == ["main", "other"]
    assert printed(Both["main"]) == "A[tx] = 1"
    assert I.meta_var is T.meta_var


def test_kernels_in_a_class_that_is_no_module():
    class Kernels:
        @T.prim_func
        def k(A: T.Buffer((64,), "int32")):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = 1

    assert printed(Kernels.k) == "A[tx] = 1"


@pytest.mark.parametrize(
    "loop, message",
    [
        ("range(T.uint64(3), T.uint64(0), -1)", "cannot make uint from negative value -1"),
        ("range(T.uint32(3), -2, T.int32(-2))", "cannot make uint from negative value -2"),
        ("T.serial(-3, -8, step=-1, dtype='uint32')", "cannot make uint from negative value -3"),
        ("range(256, T.uint8(3), -1)", "Literal value 256 exceeds maximum of uint8"),
        ("range(-1, T.uint32(3))", "cannot make uint from negative value -1"),
        ("T.serial(2**40, dtype='int32')", "Literal value 1099511627776 exceeds maximum of int32"),
    ],
)
def test_numbers_of_a_loop_fit_its_dtype(loop, message):
    with pytest.raises(tirx.DiagnosticValueError, match=re.escape(message)):
        kernel(f"for i in {loop}:\n    B[tx] = 1")


UNSIGNED_DOWN = [  # start, stop, step, dtype of the bounds
    (5, 0, -1, "uint32"),
    (5, -1, -1, "uint32"),
    (0, -1, -1, "uint32"),
    (0, 0, -1, "uint32"),
    (3, 7, -1, "uint32"),
    (250, 3, -60, "uint8"),
    (9, 2, -3, "uint16"),
    (2**32 - 1, 2**32 - 4, -1, "uint32"),
]


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize(("start", "stop", "step", "dtype"), UNSIGNED_DOWN)
def test_unsigned_bounds_count_down(start, stop, step, dtype, dialect):
    """A step of -1 has no place in an unsigned dtype; the turns are Python's all the same."""
    expected, count = 0, 0
    for i in range(start, stop, step):
        expected, count = (expected * 31 + i) & 0xFFFFFFFF, count + 1
    text = f"""
        n: T.{dtype} = {start}
        sum: T.uint32 = 0
        count: T.int32 = 0
        for i in LOOP:
            sum = sum * T.uint32(31) + T.cast(i, "uint32")
            count += 1
        B[tx] = T.reinterpret("int32", sum)
        A[tx] = count
    """
    loops = [f"range(n, {stop}, {step})", f"T.serial(n, {stop}, step={step})"]
    if stop >= 0:
        loops += [f"range({start}, T.{dtype}({stop}), {step})", f"T.unroll(T.{dtype}({start}), {stop}, step={step})"]
    for loop in loops:
        a, b = run(kernel(text.replace("LOOP", loop), dialect))
        assert (int(a[0]), int(b[0]) & 0xFFFFFFFF) == (count, expected), loop


def test_a_loop_that_counts_down_has_the_dtype_that_was_asked_for():
    f = kernel("for i in T.serial(4, 0, step=-1, dtype='uint32'):\n    B[tx] += T.cast(i - 5 > 0, 'int32')")
    assert run(f)[1][0] == 4  # 4 - 5 wraps


@pytest.mark.parametrize("divisor", ["i", "z"])
def test_a_zero_that_unrolling_brings_to_light_is_one_at_run_time(divisor):
    text = f"z = 0\nfor i in T.unroll(2):\n    if tx > 70:\n        B[tx] = T.ceildiv(tx, {divisor})\n    A[tx] = 1"
    f = kernel(text)
    assert (run(f)[0] == 1).all()  # nobody divides
    tirx.compile(f, target="cuda:sm_90").cubin  # noqa: B018
    with pytest.raises(tirx.EmulationError, match="integer division by zero"):
        run(kernel(text.replace("tx > 70", "tx < 3")))


def test_strides_of_dense_buffers_are_known():
    text = """
        V = A.view(2, 8, 4)
        W = V.permute(2, 0, 1)
        B[tx] = A.strides[0] * 1000 + V.strides[0] * 100 + V.strides[1] * 10 + V.strides[2] + W.strides[0] * 7
    """
    assert run(kernel(text))[1][0] == 1000 + 3200 + 40 + 1 + 7
    f = tirx.from_source("""
@T.prim_func
def k(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer((4,), "int32"), z: T.Buffer((), "int32")):
    m = T.int32()
    T.device_entry()
    tx = T.thread_id([1])
    B[0] = A.strides[0]
    B[1] = A.strides[1]
    B[2] = len(z.strides) if False else 5
""")
    b = np.zeros(4, np.int32)
    tirx.compile(f, target="cpu")(np.zeros((3, 7), np.int32), b, np.zeros((), np.int32))
    assert b.tolist() == [7, 1, 5, 0]
    assert f.params[1][1].strides == (1,) and f.params[1][1].given_strides is None
