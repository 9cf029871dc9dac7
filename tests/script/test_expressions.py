# SPDX-License-Identifier: Apache-2.0
"""Expressions: the dtypes that operators give, parse-time logic, builtins, calls."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from script.kernels import body, kernel, run

import tirx
from tirx.script import tirx as T

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3fn".split()
HEAD = "".join(f"{d}: T.let = T.Cast('{d}', s)\n" for d in DTYPES)


def dtype_of(expression: str, dialect: str = "g1") -> str:
    """The dtype of an expression over one variable of every dtype, each under its dtype's name."""
    text = kernel(f"{HEAD}result: T.let = {expression}", dialect).script()
    return re.search(r"result: T\.let\[T\.(\w+)\]", text)[1]


def promoted(a: str, b: str) -> str:
    """The table of language.md 6.1 for two expressions, said independently."""
    if a == b:
        return a
    kind = {d: d.rstrip("0123456789").split("_")[0] for d in DTYPES}
    bits = {d: int(re.search(r"\d+", d)[0]) if d != "bool" else 1 for d in DTYPES}
    is_float = {d: "float" in d for d in DTYPES}
    if is_float[a] != is_float[b]:
        return a if is_float[a] else b
    if is_float[a]:
        if {a, b} == {"float16", "bfloat16"}:
            return "float16"
        return a if bits[a] > bits[b] else b
    if "bool" in (a, b):
        return b if a == "bool" else a
    if bits[a] != bits[b]:
        return a if bits[a] > bits[b] else b
    return a if kind[a] == "uint" else b


@pytest.mark.parametrize("a, b", itertools.combinations(DTYPES, 2))
def test_mixed_operands_promote_and_order_does_not_matter(a, b):
    if promoted(a, b) == "float8_e4m3fn" and "bool" in (a, b):
        pytest.skip("no arithmetic is specified between them")
    want = promoted(a, b)
    assert dtype_of(f"{a} * {b}") == want
    assert dtype_of(f"{b} * {a}") == want
    assert dtype_of(f"T.max({a}, {b})") == want
    assert dtype_of(f"{a} < {b}") == "bool"
    assert dtype_of(f"T.if_then_else(s < 3, {a}, {b})") == want
    assert dtype_of(f"T.Select(s < 3, {a}, {b})") == want
    assert dtype_of(f"{a} if s < 3 else {b}") == want


@pytest.mark.parametrize(
    "expression, want",
    [
        ("uint32 - 1", "uint32"),
        ("uint8 + 1", "uint8"),
        ("float16 * 2", "float16"),
        ("float32 + 1", "float32"),
        ("int32 + 5000000000", "int64"),
        ("int32 + 1.5", "float32"),
        ("float16 * 2.0", "float32"),
        ("bfloat16 * 2.0", "float32"),
        ("float64 * 2.0", "float64"),
        ("bool + bool", "int32"),
        ("bool & bool", "bool"),
        ("bool + int8", "int8"),
        ("~bool", "bool"),
        ("~int8", "int8"),
        ("-uint32", "uint32"),
        ("1 << int32", "int32"),
        ("int32 << 2", "int32"),
        ("T.exp(int32)", "float32"),
        ("T.exp(float16)", "float16"),
        ("T.sqrt(float64)", "float64"),
        ("T.isnan(float32)", "bool"),
        ("T.popcount(uint64)", "uint64"),
        ("T.pow(float32, 2)", "float32"),
        ("T.fma(float32, float32, 1)", "float32"),
        ("float32 ** 2", "float32"),
        ("int32 ** 3", "int32"),
        ("T.ceildiv(int64, 3)", "int64"),
        ("T.floordiv(int8, int16)", "int16"),
        ("T.truncmod(int32, 5)", "int32"),
        ("T.shift_left(uint32, 3)", "uint32"),
        ("T.bitwise_and(uint32, 3)", "uint32"),
        ("T.bitwise_not(int64)", "int64"),
        ("T.reinterpret('uint32', float32)", "uint32"),
        ("T.reinterpret(float32, ty=T.uint32)", "uint32"),
        ("T.cast(float32, T.int8)", "int8"),
        ("T.cast('int8', float32)", "int8"),
        ("float32.astype('int64')", "int64"),
        ("T.float16(int32)", "float16"),
        ("T.float32(int32)", "float32"),
        ("T.infinity('float16')", "float16"),
        ("T.max_value(ty=T.uint8)", "uint8"),
        ("T.min_value('int64')", "int64"),
        ("T.float32('nan')", "float32"),
        ("abs(int8)", "int8"),
        ("min(int8, int16, 3)", "int16"),
        ("max([int8, int32])", "int32"),
        ("round(float16)", "float16"),
        ("sum([int8, int16])", "int16"),
        ("T.cuda.elect_sync()", "bool"),
        ("T.cuda.uint_as_float(uint32)", "float32"),
        ("T.logical_and(bool, int32 > 3, bool)", "bool"),
        ("T.logical_not(bool)", "bool"),
    ],
)
def test_dtype(expression, want):
    assert dtype_of(expression) == want
    assert dtype_of(expression, "g2") == want


@pytest.mark.parametrize(
    "expression, text",
    [
        ("T.max_value('int32')", "2147483647"),
        ("T.min_value('int32')", "-2147483648"),
        ("T.ceildiv(7, 2)", "4"),
        ("T.ceildiv(-7, 2)", "-3"),
        ("T.floordiv(-7, 2)", "-4"),
        ("T.floormod(-7, 2)", "1"),
        ("T.truncdiv(-7, 2)", "-3"),
        ("T.truncmod(-7, 2)", "-1"),
        ("T.int32(1.7)", "1"),
        ("T.min(3, 4) + T.max(3, 4)", "7"),
        ("T.cast(300, 'int8').astype('int32')", "44"),
        ("int(3.7) + len([1, 2])", "5"),
        ("[i * 2 for i in range(5)][3]", "6"),
        ("(lambda a: a + 1)(4)", "5"),
        ("{'a': 3}['a']", "3"),
        ("int(f'{3}4')", "34"),
        ("True and 7", "7"),
        ("0 or 8", "8"),
        ("1 if N > 3 else nosuch", "1"),
        ("N > 3 and 5", "5"),
    ],
)
def test_value_known_while_the_kernel_is_built(expression, text):
    assert body(f"B[tx] = {expression}", N=4) == f"B[tx] = {text}"


def test_logic_with_python_values_skips_what_cannot_matter():
    assert body("if False and nosuch:\n    B[tx] = 1") == ""
    assert body("if True or nosuch:\n    B[tx] = 1") == "B[tx] = 1"
    assert body("if N == 4 and tx < 3:\n    B[tx] = 1", N=4) == "if tx < 3:\n    B[tx] = 1"
    assert body("B[tx] = 1 if not N else 2", N=4) == "B[tx] = 2"
    assert body("if N is None or tx < 3:\n    B[tx] = 1", N=None) == "B[tx] = 1"
    assert body("if N is not None:\n    B[nosuch] = 1", N=None) == ""


def test_chains_take_each_side_once():
    assert body("if 0 <= tx < 5:\n    B[tx] = 1") == "if 0 <= tx and tx < 5:\n    B[tx] = 1"
    text = body("if 0 <= tx < B[tx] <= 9:\n    B[tx] = 1")
    assert text.count("B[tx]") == 2 and "T.Let(" in text
    # the third side is reached only if the first two hold
    text = body("if 0 < s < B[s] < 9:\n    B[tx] = 1")
    assert text.index("and T.Let(") > text.index("0")


def test_compile_time_sides_of_a_chain():
    assert body("if 1 < 2 < s:\n    B[tx] = 1") == "if 2 < s:\n    B[tx] = 1"
    assert body("if 3 < 2 < nosuch:\n    B[tx] = 1") == ""


@pytest.mark.parametrize("op", ["and", "or"])
def test_logic_needs_bools(op):
    with pytest.raises(tirx.DiagnosticTypeError, match=f"'{op}' needs boolean operands, got int32"):
        kernel(f"if tx < 3 {op} s:\n    B[tx] = 1")


def test_conditions_take_numbers():
    assert body("if s:\n    B[tx] = 1") == "if s != 0:\n    B[tx] = 1"
    assert body("while A[tx]:\n    A[tx] = 0.0").startswith("while A[tx] != T.float32(0.0):")


@pytest.mark.parametrize(
    "literal, message",
    [
        ("T.uint8(300)", "Literal value 300 exceeds maximum of uint8"),
        ("T.int8(-129)", "exceeds range of int8"),
        ("T.uint32(-1)", "cannot make uint from negative value -1"),
        ("T.float16(65520)", "exceeds maximum of float16"),
        ("T.uint64(2**64)", "exceeds maximum of uint64"),
    ],
)
def test_literals_are_checked(literal, message):
    with pytest.raises(tirx.DiagnosticValueError, match=re.escape(message)):
        kernel(f"x: T.let = {literal}")


@pytest.mark.parametrize("literal", ["T.uint64(2**64 - 1)", "T.float16(65519)", "T.int8(-128)", "T.float32('-inf')"])
def test_literals_at_the_limit(literal):
    kernel(f"x: T.let = {literal}")


def test_vectors():
    text = body("v = T.alloc_local((1,), 'float32x4')\nv[0] = T.broadcast(A[tx], 4)\nA[T.ramp(0, 1, 4)] = v[0]")
    assert "T.Broadcast(A[tx], 4)" in text
    assert dtype_of("T.Broadcast(int32, 4)") == "int32x4"
    assert dtype_of("T.Ramp(int32, 2, 8)") == "int32x8"
    assert dtype_of("T.Shuffle([T.Broadcast(int32, 4)], [0, 2])") == "int32x2"


def test_argument_orders_of_both_generations():
    source = "__device__ int f(int x) { return x; }"
    a = body("B[tx] = T.cuda.func_call('f', tx, source_code=SRC, return_type='int32')", SRC=source)
    b = body("B[tx] = T.cuda.func_call('f', tx, SRC, ty=T.int32)", SRC=source)
    assert a == b
    assert body("B[tx] = T.call_extern('int32', 'f', tx)") == body("B[tx] = T.call_extern('f', tx, ty=T.int32)")
    assert body("B[tx] = T.cuda.ldg(B.ptr_to([0]), 'int32')") == body("B[tx] = T.cuda.ldg(B.ptr_to([0]), ty='int32')")
    assert body("T.buffer_store(B, 3, [tx])") == body("T.tensor_store(B, [tx], 3)") == "B[tx] = 3"


def test_calls_without_value_are_emitted_once():
    assert body("T.cuda.cta_sync()") == "T.cuda.cta_sync()"
    assert body("T.evaluate(T.cuda.cta_sync())") == "T.cuda.cta_sync()"
    assert body("x = T.cuda.cta_sync()\nT.evaluate(x)") == "T.cuda.cta_sync()"
    assert body("T.tvm_storage_sync('shared')") == "T.cuda.cta_sync()"


def test_statements_without_effect():
    assert body('"""text"""\n...\nNone\n5\ntx\nB\npass') == ""
    assert body("tx + 1") == "T.evaluate(tx + 1)"
    assert body("T.cuda.atomic_add(B.ptr_to([0]), 1)") == "T.cuda.atomic_add(T.address_of(B[0]), 1)"
    assert body("[T.cuda.atomic_add(B.ptr_to([i]), 1) for i in range(2)]") == (
        "T.cuda.atomic_add(T.address_of(B[0]), 1)\nT.cuda.atomic_add(T.address_of(B[1]), 1)"
    )
    assert body("x = [T.cuda.atomic_add(B.ptr_to([i]), 1) for i in range(2)]\nB[3] = x[0]") == (
        "v: T.let[T.int32] = T.cuda.atomic_add(T.address_of(B[0]), 1)\n"
        "v_1: T.let[T.int32] = T.cuda.atomic_add(T.address_of(B[1]), 1)\n"
        "x_0: T.int32 = v\nx_1: T.int32 = v_1\nB[3] = x_0"
    )


def test_shuffle_names_inside_classes():
    names = ["__shfl_xor_sync", "_shfl_xor_sync", "shfl_xor_sync", "_Pool__shfl_xor_sync"]
    texts = {body(f"A[tx] = T.cuda.{n}(0xFFFFFFFF, A[tx], 1, 32)") for n in names}
    assert len(texts) == 1
    assert body("A[tx] = T.gpu_warp_shuffle_xor(0xFFFFFFFF, A[tx], 1, 32, 32)") in texts


def test_long_sums_do_not_recurse():
    kernel("B[tx] = " + " + ".join(f"B[{i % 64}]" for i in range(900)))
    with pytest.raises(tirx.DiagnosticError, match="nesting deeper than 1000 levels"):
        kernel("B[tx] = " + " + ".join(f"B[{i % 64}]" for i in range(1200)))
    with pytest.raises(tirx.DiagnosticError, match="the kernel is nested too deeply"):
        kernel("B[tx] = " + " + ".join(f"B[{i % 64}]" for i in range(100000)))


@pytest.mark.parametrize(
    "statement, message",
    [
        ("B[tx] = 2**63", "Literal value 9223372036854775808 exceeds maximum of int32"),
        ("B[tx] = 2**64 - 1", "Literal value 18446744073709551615 exceeds maximum of int32"),
        ("x: T.int64 = 2**63", "Literal value 9223372036854775808 exceeds maximum of int64"),
        ("x: T.let[T.int32] = 2**63", "Literal value 9223372036854775808 exceeds maximum of int32"),
        ("x = 1\nx = 2**63", "Literal value 9223372036854775808 exceeds maximum of int32"),
    ],
)
def test_values_above_int64_are_checked_where_they_are_kept(statement, message):
    with pytest.raises(tirx.DiagnosticValueError, match=re.escape(message)):
        kernel(statement)


def test_what_a_typed_constant_or_a_wide_place_takes():
    assert "T.uint64(9223372036854775808)" in body("x: T.uint64 = 2**63")
    kernel("B[tx] = BIG", BIG=T.uint64(2**63))  # typed: a conversion, as any other
    kernel("A[tx] = 2**63")


@pytest.mark.parametrize(
    "call, message",
    [
        ("atomic_add(5, 1)", "T.cuda.atomic_add needs a pointer, got 5: write A.ptr_to([i]) or T.address_of(A[i])"),
        ("atomic_add(B[tx], 1)", "T.cuda.atomic_add needs a pointer, got int32"),
        ("atomic_add(B.ptr_to([0]), 1.5)", "T.cuda.atomic_add on int32 elements takes integers, got 1.5"),
        ("atomic_add(B.ptr_to([0]), A[tx])", "T.cuda.atomic_add on int32 elements takes integers, got float32"),
        ("atomic_cas(B.ptr_to([0]), 0, 0.5)", "T.cuda.atomic_cas on int32 elements takes integers, got 0.5"),
    ],
)
def test_operands_of_atomics(call, message):
    with pytest.raises(tirx.DiagnosticTypeError, match=re.escape(message)):
        kernel(f"T.cuda.{call}")


@pytest.mark.parametrize("call", ["'int32', 5", "'int32', 'bad name', s", "'f(', ty='int32'", "''"])
def test_functions_from_outside_have_a_name(call):
    with pytest.raises(tirx.DiagnosticError, match="T.call_extern needs the name of a function, got"):
        kernel(f"T.call_extern({call})")


@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_the_value_of_a_variable_in_another_dtype(dialect):
    f = kernel("c: T.float32 = A[tx] + 0.75\nB[tx] = c.astype('int32') + c.astype(T.int8)", dialect)
    _, b = run(f)
    np.testing.assert_array_equal(b, 2 * np.arange(64))
