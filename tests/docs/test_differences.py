# SPDX-License-Identifier: Apache-2.0
"""One test a sentence of docs/differences.md, under the sentence's name."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"


def test_every_sentence_has_a_test_and_every_test_a_sentence():
    sentences = set(re.findall(r"^- \*\*(\w+)\*\*", PAGE.read_text(), re.M))
    here = sys.modules[__name__]
    tests = {n.removeprefix("test_") for n, f in vars(here).items() if n.startswith("test_") and inspect.isfunction(f)}
    tests.remove("every_sentence_has_a_test_and_every_test_a_sentence")
    assert tests == sentences


def run(kernel, *args, **options):
    tirx.compile(kernel, target="cpu", **options)(*args)
    return args[-1]


def refused(text, *words, error=tirx.DiagnosticError, **names):
    """The lines are the body of a kernel over A, F, H and B, each of 32; the error must stand at the marked line."""
    lines = [
        "@T.prim_func",
        'def k(A: T.Buffer((32,), "int32"), F: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32")):',
    ]
    lines += ["    T.device_entry()", "    bx = T.cta_id([1])", "    tx = T.thread_id([32])"]
    body = text.splitlines()
    at = next(i for i, line in enumerate(body) if "# <--" in line)
    lines += ["    " + line for line in body]
    with pytest.raises(error) as info:
        tirx.from_source("\n".join(lines) + "\n", extra_vars=names)
    message = str(info.value)
    for word in words:
        assert word in message, message
    assert info.value.lineno == 6 + at, message
    assert "^" in message
    return info.value


def one(dtype="int32"):
    return np.zeros(32, dtype)


def test_int_wraps():
    @T.prim_func
    def k(A: T.Buffer((32,), "uint8"), B: T.Buffer((32,), "uint8")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = (A[tx] + T.uint8(250)) * T.uint8(3)

    a = np.arange(32, dtype=np.uint8)
    np.testing.assert_array_equal(run(k, a, one("uint8")), (a + np.uint8(250)) * np.uint8(3))


def test_literal_range():
    refused(
        "B[tx] = T.Cast('int32', T.uint8(300))  # <--", "Literal value 300 exceeds maximum of uint8", error=ValueError
    )

    @T.prim_func
    def k(B: T.Buffer((32,), "int8")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.Cast("int8", 300)

    np.testing.assert_array_equal(run(k, one("int8")), np.full(32, 44, np.int8))


def test_literal_types():
    seen = {}

    @T.prim_func
    def k(A: T.Buffer((32,), "uint16"), B: T.Buffer((32,), "int64")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        x = 7
        y = 5000000000
        z = 1.5
        seen.update(x=x.dtype, y=y.dtype, z=z.dtype, u=(A[tx] + 1).dtype)
        B[tx] = y + x + T.Cast("int64", z)

    np.testing.assert_array_equal(run(k, one("uint16"), one("int64")), np.full(32, 5000000008, np.int64))
    assert seen == {"x": "int32", "y": "int64", "z": "float32", "u": "uint16"}


def test_half_times_float():
    seen = {}

    @T.prim_func
    def k(A: T.Buffer((32,), "float16"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        seen.update(by_float=(A[tx] * 2.0).dtype, by_int=(A[tx] * 2).dtype)
        B[tx] = A[tx] * 2.0

    run(k, one("float16"), one("float32"))
    assert seen == {"by_float": "float32", "by_int": "float16"}


def test_bool_plus_bool():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = (A[tx] > 3) + (A[tx] > 7)

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), (a > 3).astype(np.int32) + (a > 7))


def test_true_division():
    refused(
        "B[tx] = A[tx] / 2  # <--",
        "integer '/' is ambiguous: use // (floor), T.truncdiv or T.ceildiv, or cast to float",
    )

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32, 2), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx, 0] = A[tx] // -5
        B[tx, 1] = A[tx] % -5

    a = np.arange(-16, 16, dtype=np.int32)
    want = [[x // -5, x % -5] for x in a.tolist()]
    np.testing.assert_array_equal(run(k, a, np.zeros((32, 2), np.int32)), want)


def division():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.truncdiv(7, A[tx])

    return k


def test_zero_division():
    refused("B[tx] = A[tx] // 0  # <--", "division by zero")
    exe = tirx.compile(division(), target="cpu")
    with pytest.raises(tirx.EmulationError) as info:
        exe(one(), one())
    assert info.value.kind == "arithmetic"
    b = one()
    exe(one(), b, check=False)
    np.testing.assert_array_equal(b, np.full(32, -1, np.int32))


def test_most_negative():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = A[tx] // T.int32(-1)

    a = np.full(32, -(2**31), np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a)


def test_shift_count():
    refused("B[tx] = A[tx] << 40  # <--", "shift by 40 is outside 0..31 for int32")

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32, 2), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx, 0] = T.int32(-5) << A[tx]
        B[tx, 1] = T.int32(-5) >> A[tx]

    a = np.full(32, 40, np.int32)
    b = np.zeros((32, 2), np.int32)
    tirx.compile(k, target="cpu")(a, b, check=False)
    np.testing.assert_array_equal(b, [[0, -1]] * 32)


def test_float_to_int():
    @T.prim_func
    def k(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.Cast("int32", A[tx])

    a = np.resize(np.array([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, 0.0, -0.5], np.float32), 32)
    want = np.resize(np.array([1, -1, 2**31 - 1, -(2**31), 0, 2**31 - 1, 0, 0], np.int64), 32)
    np.testing.assert_array_equal(run(k, a, one()), want)


def test_min_ignores_nan():
    @T.prim_func
    def k(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.min(T.max(A[tx], T.float32(1.0)), T.float32(3.0))

    a = np.resize(np.array([np.nan, 0.5, 2.0, 9.0], np.float32), 32)
    want = np.resize(np.array([1.0, 1.0, 2.0, 3.0], np.float32), 32)
    np.testing.assert_array_equal(run(k, a, one("float32")), want)


def test_fma_contraction():
    @T.prim_func
    def k(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = A[tx] * A[tx] - T.float32(1.0)

    a = (1 + np.arange(32, dtype=np.float32) * np.float32(2**-23)).astype(np.float32)
    once = (a.astype(np.float64) * a.astype(np.float64) - 1.0).astype(np.float32)
    twice = a * a - np.float32(1)
    assert (once != twice).any()
    np.testing.assert_array_equal(run(k, a, one("float32")), once)
    np.testing.assert_array_equal(run(k, a, one("float32"), contract=False), twice)


def test_no_big_float():
    refused("F[tx] = T.Cast('float32', T.float16(65520))  # <--", "exceeds maximum of float16", error=ValueError)

    @T.prim_func
    def k(B: T.Buffer((32,), "float16")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.float16(65519)

    assert run(k, one("float16"))[0] == 65504


def test_cell_dtype():
    with pytest.warns(UserWarning, match="may lose precision: float32 to int32"):

        @T.prim_func
        def k(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            x = 1
            x = A[tx]
            B[tx] = T.Cast("float32", x)

    a = np.full(32, 2.75, np.float32)
    np.testing.assert_array_equal(run(k, a, one("float32")), np.full(32, 2.0, np.float32))


def test_let_rebinds():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        x: T.let = A[tx]
        y: T.let = x + 1
        x = 40
        B[tx] = x + y

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a + 41)


def test_block_scope():
    refused("for i in range(3):\n    y = i\nB[tx] = y  # <--", "Undefined variable: y")


def test_loop_variable():
    @T.prim_func
    def k(B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s: T.int32 = 0
        for i in range(5):
            i = i + 10
            s = s * 2 + i
        B[tx] = s

    s = 0
    for i in range(5):
        i = i + 10
        s = s * 2 + i
    np.testing.assert_array_equal(run(k, one()), np.full(32, s, np.int32))
    refused("for i in range(3):\n    B[tx] = i\nB[tx] = i  # <--", "Undefined variable: i")


OUTSIDE = 5


def test_captured_values():
    global OUTSIDE

    def make():
        @T.prim_func
        def k(B: T.Buffer((32,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            B[tx] = OUTSIDE

        return k

    k = make()
    try:
        OUTSIDE = 6
        assert run(k, one())[0] == 5
        assert run(make(), one())[0] == 6
    finally:
        OUTSIDE = 5


def test_python_objects():
    class Held:
        x = 1

    refused("for i in range(3):\n    o.x = i  # <--", "'o.x' is a Python value", o=Held())
    refused("for i in range(3):\n    xs[0] = tx  # <--", "'xs' is a Python value", xs=[1])
    refused("xs.append(tx)\nfor i in range(3):\n    xs.append(i)  # <--", "the list of .append()", xs=[])
    held = Held()

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        held.x = A[tx]
        A[tx] = 5
        B[tx] = held.x

    np.testing.assert_array_equal(run(k, one(), one()), 5)

    @T.prim_func
    def places(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        x: T.int32 = 1
        held.x = x
        table = {"x": x}
        values = [x]
        x = 7
        A[tx] = 0
        B[tx] = held.x * 100 + table["x"] * 10 + values[0]

    np.testing.assert_array_equal(run(places, one(), one()), 771)


def test_no_negative_index():
    refused("B[tx] = A[-1]  # <--", "index -1 is outside 0..31")
    refused("B[tx] = A[32]  # <--", "index 32 is outside 0..31")


def test_no_boolean_index():
    refused("B[tx] = A[tx > 3]  # <--", "must be an integer, got a boolean")
    refused("A[A[tx] > 3] = 1  # <--", "must be an integer, got a boolean")


@T.inline
def double(x):
    x = x * 2


def test_inline_by_reference():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        v = A[tx]
        double(v)
        B[tx] = v

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a * 2)


def test_loop_bounds_once():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        n: T.int32 = A[tx]
        s: T.int32 = 0
        for i in range(n, -1, -2):
            n = n - 3
            s = s * 10 + i
        B[tx] = s * 100 + n

    def one_thread(n):
        s = 0
        for i in range(n, -1, -2):
            n -= 3
            s = s * 10 + i
        return s * 100 + n

    a = (np.arange(32, dtype=np.int32) % 7) - 2
    np.testing.assert_array_equal(run(k, a, one()), [one_thread(x) for x in a.tolist()])

    @T.prim_func
    def down(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        for i in range(T.uint32(3), -1, -1):
            B[tx] = B[tx] * 10 + T.cast(i, "int32")

    np.testing.assert_array_equal(run(down, one(), 0 * one()), 3210)


def test_grid_break():
    refused("for i, j in T.grid(3, 4):\n    if A[tx] > j:\n        break  # <--", "innermost")


def test_no_loop_else():
    refused("for i in range(3):\n    B[tx] = i\nelse:\n    B[tx] = 9  # <--", "else")
    refused("while A[tx] > 3:\n    B[tx] = 1\nelse:\n    B[tx] = 9  # <--", "else")


def test_python_condition():
    @T.prim_func
    def k(B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if OUTSIDE == 5:
            B[tx] = 1
        else:
            B[tx] = there_is_no_such_name  # noqa: F821

    assert run(k, one())[0] == 1


def test_run_time_membership():
    refused("if A[tx] in (1, 2):  # <--\n    B[tx] = 1", "in")
    refused("if A[tx] is True:  # <--\n    B[tx] = 1", "is")
    refused('if A[tx] == "x":  # <--\n    B[tx] = 1')


def test_logic_needs_bool():
    refused("if A[tx] and tx > 3:  # <--\n    B[tx] = 1", "'and' needs boolean operands, got int32", "write x != 0")


def test_unsupported_statements():
    statements = {
        "try:  # <--\n    B[tx] = 1\nexcept ValueError:\n    B[tx] = 2": "try",
        "raise ValueError  # <--": "raise",
        "del B  # <--": "del",
        "global B  # <--": "global",
        "import math  # <--": "import",
        "class X:  # <--\n    pass": "class",
        "match bx:  # <--\n    case 1:\n        B[tx] = 1": "match",
        "B[tx] = (y := 3)  # <--": ":=",
        "yield 3  # <--": "yield",
    }
    for text, name in statements.items():
        refused(text, name)


def sync_in_a_plain_helper():
    T.cuda.cta_sync()


def test_expression_statement():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        sync_in_a_plain_helper()
        B[tx] = sm[63 - tx]

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, np.zeros(64, np.int32)), a[::-1])


MODULE = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def half(x: T.int32) -> T.int32:
        return CALL
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = M.half(ARGUMENT)
"""


def module(call: str, argument: str):
    return tirx.from_source(MODULE.replace("CALL", call).replace("ARGUMENT", argument))


def test_no_device_recursion():
    with pytest.raises(tirx.DiagnosticError, match="functions of a module cannot be recursive: half -> half"):
        module("M.half(x // 2)", "tx")


def test_exact_arguments():
    a = one()
    tirx.compile(module("x // 2", "9"), target="cpu")(a)
    assert (a == 4).all()
    for argument in ("T.int64(tx)", "tx * 1.0", "1.5", "T.uint8(3)"):
        with pytest.raises(tirx.DiagnosticTypeError, match=r"argument 'x' of half\(\) must be int32, got"):
            module("x // 2", argument)


def test_host_variables():
    text = """
@T.prim_func
def k(A: T.Buffer((32,), "int32"), n: T.int32):
    x: T.int32 = 0
    for i in range(n):
        x = x + i
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16)):
        A[T.cuda.thread_idx("x")] = x
    x = x * 2
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16)):
        A[T.cuda.thread_idx("x") + 16] = x
"""
    a = one()
    tirx.compile(tirx.from_source(text), target="cpu")(a, 5)
    assert (a == np.repeat([10, 20], 16)).all()
    with pytest.raises(tirx.DiagnosticError, match="variable 'x' belongs to the host zone"):
        tirx.lower(tirx.from_source(text + "        x = 3\n"))


def test_unused_is_told():
    with pytest.warns(tirx.UnusedWarning) as told:

        @T.prim_func
        def k(A: T.Buffer((32,), "int32"), n: T.int32):
            T.device_entry()
            tx = T.thread_id([32])
            x: T.int32 = tx
            A[tx] = 1

    assert sorted(str(w.message) for w in told) == ["'x' is set, but never read", "parameter 'n' is not used"]
    assert "x: T.int32 = tx" in k.script() and "n: T.int32" in k.script()


def test_device_assert():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        assert A[tx] >= 0, "negative input"
        B[tx] = A[tx]

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a)
    with pytest.raises(tirx.EmulationError) as info:
        run(k, -a, one())
    assert info.value.kind == "assert"
    assert "negative input" in str(info.value)
    refused('assert A[tx] >= 0, ("NoError", ["text"])  # <--', "'NoError' is not the name of a Python exception")


def test_thread_return():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if A[tx] % 3 == 0:
            return
        B[tx] = A[tx]

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), np.where(a % 3 == 0, 0, a))


def test_positional_signature():
    for signature in ("A: T.Buffer((32,), 'int32'), *rest", "A: T.Buffer((32,), 'int32'), s: T.int32 = 3", "**kw"):
        with pytest.raises(tirx.DiagnosticError):
            tirx.from_source(
                f"@T.prim_func\ndef k({signature}):\n    T.device_entry()\n    bx = T.cta_id([1])\n"
                "    tx = T.thread_id([32])\n"
            )


@T.jit
def scaled(A: T.Buffer((N,), "int32"), *, N: T.constexpr):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([N])
    A[tx] = A[tx] * 2


def test_jit_needs_specialize():
    with pytest.raises(TypeError, match=r"call .specialize\(...\) first, then compile"):
        scaled(one())
    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(scaled.specialize(N=32), a.copy()), a * 2)


def test_nothing_outside():
    with pytest.raises(RuntimeError, match="kernel"):
        T.alloc_shared((3,), "int32")
    with pytest.raises(RuntimeError, match="double is an inline function: it can only be called inside a kernel"):
        double(3)


def test_node_constructors():
    refused("B[tx] = T.Cast('int32', T.Add(F[tx], A[tx]))  # <--", "T.Add needs operands of one dtype", error=TypeError)

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        B[tx] = T.Add(2, 3) + T.Add(A[tx], 1)

    assert "T.Add(2, 3)" in k.script()
    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a + 6)


def test_hints_do_nothing():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        T.hint("as it is", level=3)
        T.assume(tx < 3)
        T.assume_aligned(A, 1 << 20)
        B[tx] = A[tx] + T.undef("int32")

    assert 'T.hint("as it is")' in k.script() and "T.hint(level=3)" in k.script()
    a = np.arange(33, dtype=np.int32)[1:]
    np.testing.assert_array_equal(run(k, a, one()), a)


def test_allreduce_operator():
    refused(
        "T.comm_reducer(lambda x, y: x + y, [0])  # <--",
        "T.comm_reducer is not supported by tirx: use T.cuda.cta_reduce or T.tvm_thread_allreduce",
    )

    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        T.tvm_thread_allreduce(1, A[tx], True, B[tx], tx, op="max")

    a = np.random.default_rng(5).integers(-1000, 1000, 32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), np.full(32, a.max()))


FACTOR = 32


@T.macro
def closed_macro(x):
    return x * FACTOR


@T.macro(hygienic=False)
def open_macro(x):
    return x * FACTOR


def test_macro_scope():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        FACTOR = T.meta_var(2)  # noqa: N806
        B[tx] = closed_macro(A[tx]) + open_macro(A[tx])

    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(k, a, one()), a * (32 + 2))


def test_kept_calls():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        T.evaluate(T.call_kernel("extern source", [1, 32], A.data))

    assert 'T.call_kernel("extern source", 1, 32, A.data, dtype="int32")' in k.script()
    assert tirx.structural_equal(k, tirx.from_source(k.script()))
    with pytest.raises(
        tirx.DiagnosticError, match="T.call_kernel is parsed and printed, but compiling it is not supported"
    ):
        tirx.compile(k, target="cpu")


def test_tensor_map_checks():
    def kernel(step):
        @T.prim_func
        def k(A: T.Buffer((32, 32), "int32")):
            m: T.let = T.tvm_stack_alloca("tensormap", 1)
            T.tensormap_encode_tiled(m, A, 32, 32, 128, 32, 8, step, 1, descriptor_dtype="int32", rank=2)
            T.device_entry()
            tx = T.thread_id([32])
            T.ptx.prefetch_tensormap(m)

        return k

    assert tirx.compile(kernel(1), target="cpu")
    with pytest.raises(tirx.DiagnosticError, match=r"tensor map m: element_strides\[0\] is 2, expected 1"):
        tirx.compile(kernel(2), target="cpu")


def test_one_map_for_equal_ones():
    @T.prim_func
    def k(A: T.Buffer((32, 32), "int32")):
        m: T.let = T.tvm_stack_alloca("tensormap", 1)
        w: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(m, A, 32, 32, 128, 32, 8, 1, 1, descriptor_dtype="int32", rank=2)
        T.tensormap_encode_tiled(w, A, 32, 32, 128, 32, 8, 1, 1, descriptor_dtype="int32", rank=2)
        T.device_entry()
        tx = T.thread_id([32])
        T.ptx.prefetch_tensormap(m)
        T.ptx.prefetch_tensormap(w)

    assert tirx.compile(k, target="cpu").source.count("CUtensorMap m") == 1
    assert "CUtensorMap w" not in tirx.compile(k, target="cpu").source


def test_refused_names():
    refused("T.tvm_mma_sync(A.data)  # <--", "T.tvm_mma_sync is not supported by tirx: use T.ptx.mma")


def test_either_dialect():
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        x = A[tx]
        x += 1
        B[tx] = x

    assert "@T.prim_func" in k.script() and "x: T.int32 = A[tx]" in k.script()
    other = tirx.from_source(k.script(dialect="g2"))
    assert "@T.function" in other.script() and "A: T.Tensor((32,), T.int32)" in other.script()
    assert tirx.structural_equal(k, other)
    a = np.arange(32, dtype=np.int32)
    np.testing.assert_array_equal(run(other, a, one()), a + 1)


def test_traced_names():
    @T.trace
    def k(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        x = A[tx]
        A[tx] = 7
        B[tx] = x

    a = np.arange(32, dtype=np.int32)
    assert (run(k, a, np.zeros(32, np.int32)) == 7).all()


def test_traced_conditions():
    for line in ("if n > 3: pass", "while n > 3: pass", "n > 3 and n < 5", "not n > 3", "min(n, 3)", "range(n)"):
        names = {"T": T}
        text = f"def k(n: T.int32):\n    {line}\n"
        exec(compile(text, "traced.py", "exec"), names)
        with pytest.raises(tirx.DiagnosticError) as info:
            T.trace(names["k"])
        assert info.value.lineno == 2 and info.value.filename == "traced.py"
