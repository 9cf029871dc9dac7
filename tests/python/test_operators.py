# SPDX-License-Identifier: Apache-2.0
"""Operators on Exprs: dtypes of results, folding against Python's and NumPy's own arithmetic, what is refused."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tirx.errors
from tirx import _core

ARITH = [operator.add, operator.sub, operator.mul]
INTS = [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]

# Every row of language.md 6.1: operands (a dtype: a variable of it; else a Python number) and the dtype of `a + b`.
PROMOTION = [
    ("uint32", 1, "uint32"),
    ("int8", 1, "int8"),
    ("int64", 1, "int64"),
    ("float32", 1, "float32"),
    ("float16", 2, "float16"),
    ("bfloat16", 2, "bfloat16"),
    ("int32", 5000000000, "int64"),
    ("int32", 1.5, "float32"),
    ("int64", 1.5, "float32"),
    ("float64", 1.5, "float64"),
    ("float16", 2.0, "float32"),
    ("bfloat16", 2.0, "float32"),
    ("int32", "int64", "int64"),
    ("int8", "int32", "int32"),
    ("uint8", "uint64", "uint64"),
    ("int32", "uint32", "uint32"),
    ("int64", "uint64", "uint64"),
    ("uint32", "int64", "int64"),
    ("uint8", "int32", "int32"),
    ("int8", "uint8", "uint8"),
    ("bool", "int32", "int32"),
    ("bool", "uint8", "uint8"),
    ("bool", "bool", "int32"),
    ("int32", "float16", "float16"),
    ("int64", "float32", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("float8_e4m3fn", "float32", "float32"),
    ("bfloat16", "float16", "float16"),
    ("bfloat16", "float32", "float32"),
    ("float32x4", "float32", "float32x4"),
    ("int32x2", 3, "int32x2"),
    ("int32", True, "int32"),
]


@pytest.fixture
def operand(ctx, var):
    return lambda x: var("x", x) if isinstance(x, str) else x


@pytest.mark.parametrize(("a", "b", "result"), PROMOTION, ids=str)
def test_promotion(operand, a, b, result):
    x, y = operand(a), operand(b)
    for op in ARITH:
        assert op(x, y).dtype == result
        assert op(y, x).dtype == result


@pytest.mark.parametrize(("a", "b", "result"), PROMOTION, ids=str)
def test_comparisons_give_bool_of_the_lanes(operand, a, b, result):
    x, y = operand(a), operand(b)
    lanes = result.partition("x")[2] if "x" in result else ""
    for op in COMPARE:
        assert op(x, y).dtype == ("boolx" + lanes if lanes else "bool")
        assert op(y, x).dtype == op(x, y).dtype


def test_a_comparison_keeps_the_dtype_of_half_floats(var):
    h = var("h", "float16")
    assert [x.dtype for x in (h < 2.0).args] == ["float16", "float16"]
    assert [x.dtype for x in (h * 2.0).args] == ["float32", "float32"]


@pytest.mark.parametrize("op", INTS)
def test_integer_operators_promote_too(var, op):
    assert op(var("a", "int32"), var("b", "int64")).dtype == "int64"
    assert op(var("a", "uint8"), 3).dtype == "uint8"


def test_bits_of_bools_are_bools(var):
    a, b = var("a", "bool"), var("b", "bool")
    assert [(a & b).dtype, (a | b).dtype, (a ^ b).dtype, (~a).dtype] == ["bool"] * 4
    assert (~a).op == "NOT"


def wrap(value, info):
    """Two's complement of the integer in a dtype."""
    lo, hi = int(info.min), int(info.max)
    return (value - lo) % (hi - lo + 1) + lo


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_constants_fold_as_numpy_computes(ctx, dtype):
    info = np.iinfo(dtype)
    values = [int(info.min), int(info.max), 0, 1, 3, 7, 100, *([-1, -7, -100] if info.min else [])]
    with np.errstate(over="ignore"):
        for a in values:
            for b in values:
                x, y = _core.literal(ctx, dtype, a), _core.literal(ctx, dtype, b)
                n, m = np.array(a, dtype), np.array(b, dtype)
                for op in (*ARITH, operator.and_, operator.or_, operator.xor):
                    assert op(x, y).value == int(op(n, m)), (op, a, b)
                for op in COMPARE:
                    assert op(x, y).value is bool(op(a, b))
                for op in (operator.floordiv, operator.mod) if b else ():
                    assert op(x, y).value == wrap(op(a, b), info), (op, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_float_constants_fold_as_numpy_computes(ctx, dtype):
    values = [0.5, -2.25, 3.0, 1e-3, 100.0]
    for a in values:
        for b in values:
            x, y = _core.literal(ctx, dtype, a), _core.literal(ctx, dtype, b)
            n, m = np.array(a, dtype), np.array(b, dtype)
            with np.errstate(over="ignore"):
                for op in (*ARITH, operator.truediv):
                    assert op(x, y).value == float(op(n, m)), (op, a, b)


def test_divmod_abs_round_and_unary(ctx, var):
    q, r = divmod(_core.literal(ctx, "int32", -7), 2)
    assert (q.value, r.value) == divmod(-7, 2)
    q, r = divmod(var("a", "int32"), 4)
    assert (q.op, r.op) == ("FLOORDIV", "FLOORMOD")
    assert abs(_core.literal(ctx, "int32", -5)).value == 5
    assert abs(var("f", "float32")).op == "ABS"
    assert round(var("f", "float32")).op == "ROUND"
    assert round(var("i", "int32")).op == "VAR"
    assert (-_core.literal(ctx, "uint8", 3)).value == 253
    a = var("a", "int32")
    assert +a is a
    assert (~a).op == "BNOT"


def test_powers(ctx, var):
    assert (_core.literal(ctx, "int32", 3) ** 5).value == 3**5
    assert (_core.literal(ctx, "int32", -2) ** 3).value == -8
    assert (_core.literal(ctx, "uint8", 7) ** 3).value == 7**3 % 256
    x, f = var("x", "int32"), var("f", "float32")
    assert (x**0).value == 1
    assert x**1 is x
    assert str(x**4) == "x * x * (x * x)"
    assert str(f**2) == "f * f"
    assert (f**5).op == "POW"
    assert (f**0.5).op == "POW"
    assert (2.0**f).dtype == "float32"
    assert (f**x).op == "POW"


def test_the_base_of_a_power_is_loaded_once(ctx):
    p = _core.buffer(ctx, "A", (4,), "int32")[1] ** 2
    assert p.op == "LET"
    assert [x.op for x in p.args] == ["LOAD", "MUL"]
    assert [x.op for x in p.args[1].args] == ["VAR", "VAR"]


def message(ctx, error, fn):
    """The whole text of what fn raises."""
    with pytest.raises(error) as e:
        fn()
    assert isinstance(e.value, tirx.errors.DiagnosticError)
    return str(e.value)


PLACE = "kernel.py:1:7: error: "
EXCERPT = "\none = a + b\n      ^^^^^"


@pytest.mark.parametrize(
    ("fn", "error", "text", "help"),
    [
        (lambda i, f, p: i / 2, TypeError,
         "integer '/' is ambiguous: use // (floor), T.truncdiv or T.ceildiv, or cast to float", None),
        (lambda i, f, p: 2 / i, TypeError,
         "integer '/' is ambiguous: use // (floor), T.truncdiv or T.ceildiv, or cast to float", None),
        (lambda i, f, p: f // 2, TypeError, "'//' needs integers, got float32",
         "use '/' for floats, or T.floor(a / b)"),
        (lambda i, f, p: 7 % f, TypeError, "'%' needs integers, got float32", "use '/' for floats, or T.floor(a / b)"),
        (lambda i, f, p: i // 1.5, TypeError, "'//' needs integers, got float32",
         "use '/' for floats, or T.floor(a / b)"),
        (lambda i, f, p: divmod(f, f), TypeError, "'//' needs integers, got float32",
         "use '/' for floats, or T.floor(a / b)"),
        (lambda i, f, p: i**i, TypeError, "'**' on integers needs a constant exponent from 0 to 64",
         "use floats and T.pow, or multiply"),
        (lambda i, f, p: i**-1, TypeError, "'**' on integers needs a constant exponent from 0 to 64",
         "use floats and T.pow, or multiply"),
        (lambda i, f, p: pow(i, 2, 3), TypeError, "operator 'pow' does not take a modulus", None),
        (lambda i, f, p: round(f, 2), TypeError, "operator 'round' does not take a number of digits", None),
        (lambda i, f, p: i + "s", TypeError, "operator '+' does not take str", None),
        (lambda i, f, p: "s" + i, TypeError, "operator '+' does not take str", None),
        (lambda i, f, p: i + None, TypeError, "operator '+' does not take None", None),
        (lambda i, f, p: i * [1], TypeError, "operator '*' does not take list", None),
        (lambda i, f, p: i + np.zeros(3), TypeError, "operator '+' does not take numpy.ndarray", None),
        (lambda i, f, p: np.zeros(3) + i, TypeError, "operator '+' does not take numpy.ndarray", None),
        (lambda i, f, p: i + 1j, TypeError, "operator '+' does not take complex", None),
        (lambda i, f, p: i == "s", TypeError, "operator '==' does not take str", None),
        (lambda i, f, p: i != None, TypeError, "operator '!=' does not take None", None),  # noqa: E711
        (lambda i, f, p: i < object(), TypeError, "operator '<' does not take object", None),
        (lambda i, f, p: p + 1, TypeError, "operator '+' does not take a pointer", None),
        (lambda i, f, p: f & 1, TypeError, "operator '&' does not take float32", None),
        (lambda i, f, p: ~f, TypeError, "operator '~' does not take float32", None),
        (lambda i, f, p: i // 0, ValueError, "division by zero", None),
        (lambda i, f, p: i << 40, ValueError, "shift by 40 is outside 0..31 for int32",
         "widen the left side first: T.int64(i) << 40"),
        (lambda i, f, p: i + 2**64, ValueError, f"Literal value {2**64} exceeds maximum of uint64", None),
        (lambda i, f, p: i - (-(2**63) - 1), ValueError, f"Literal value {-(2**63) - 1} exceeds range of int64", None),
        (lambda i, f, p: f * 10**400, ValueError, f"Literal value {10**400} exceeds maximum of float32", None),
        (lambda i, f, p: bool(i < 3), TypeError,
         "this Python code runs while the kernel is built; use T.If, or decorate the helper with @T.inline", None),
        (lambda i, f, p: min(i, 3), TypeError,
         "this Python code runs while the kernel is built; use T.If, or decorate the helper with @T.inline", None),
        (lambda i, f, p: int(i), TypeError, "a run-time value of type int32 is not a Python number",
         "this Python code runs while the kernel is built"),
        (lambda i, f, p: float(f), TypeError, "a run-time value of type float32 is not a Python number",
         "this Python code runs while the kernel is built"),
        (lambda i, f, p: [1, 2][i], TypeError, "a run-time value of type int32 is not a Python number",
         "this Python code runs while the kernel is built"),
        (lambda i, f, p: i[0], TypeError, "a value of type int32 cannot be indexed", None),
        (lambda i, f, p: p[0], TypeError, "a value of type handle cannot be indexed", None),
    ],
)  # fmt: skip
def test_refused_operands(ctx, var, fn, error, text, help):
    i, f, p = var("i", "int32"), var("f", "float32"), var("p", "handle", elem="float32")
    whole = message(ctx, error, lambda: fn(i, f, p))
    first, *rest = whole.split("\n")
    assert first == PLACE + text
    assert "\n" + "\n".join(rest[:2]) == EXCERPT
    helps = [line.strip().removeprefix("help: ") for line in rest[2:]]
    assert helps == ([help] if help else [])


def test_integers_beyond_int64(ctx, var):
    u = var("u", "uint64")
    assert (u + (2**64 - 1)).args[1].value == 2**64 - 1
    assert (u + (2**64 - 1)).dtype == "uint64"
    assert (var("i", "int32") + 2**63).dtype == "uint64"
    assert (var("f", "float64") * 2**70).args[1].value == float(2**70)
    assert _core.literal(ctx, "uint64", 2**64 - 1).value == 2**64 - 1
    assert int(_core.literal(ctx, "uint64", 2**64 - 1)) == 2**64 - 1
    assert float(_core.literal(ctx, "uint64", 2**64 - 1)) == 2.0**64


class Kind(int):
    pass


class Ratio(float):
    pass


class Index:
    def __index__(self):
        return 7


class Symbol:
    def __init__(self, value):
        self.value = value

    def __tirx_expr__(self, ctx):
        return self.value


class Known:
    def __radd__(self, other):
        return "radd"


def test_what_counts_as_a_number(var):
    i = var("i", "int32")
    for x, dtype, value in [
        (Kind(5), "int32", 5),
        (Ratio(0.5), "float32", 0.5),
        (Index(), "int32", 7),
        (np.int8(5), "int32", 5),
        (np.uint64(2**64 - 1), "uint64", 2**64 - 1),
        (np.float16(0.5), "float32", 0.5),
        (np.float64(0.25), "float32", 0.25),
        (Symbol(3), "int32", 3),
        (Symbol(i), "int32", None),
    ]:
        assert (i + x).dtype == (x + i).dtype == dtype
        assert value is None or (i + x).args[1].value == value
    assert (i + np.bool_(True)).args[1].value == 1
    assert i + Known() == "radd"


def test_an_expression_object_that_gives_itself_is_refused(var):
    s = Symbol(None)
    s.value = s
    with pytest.raises(TypeError):
        var("i", "int32") + s


def test_errors_of_the_users_own_code_pass_unchanged(var):
    class Bad:
        def __tirx_expr__(self, ctx):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        var("i", "int32") + Bad()


def test_identity_and_hash(ctx, var):
    a = var("a", "int32")
    assert hash(a) == hash(a)
    table = {a: 1, a + 1: 2}
    assert table[a] == 1
    assert (a + 1).same_as(a + 1)
    assert not (a + 1).same_as(a + 2)
    assert (a + 1).args[0] is a
    load = _core.buffer(ctx, "A", (4,), "int32")[a]
    assert not load.same_as(_core.buffer(ctx, "A", (4,), "int32")[a])
    assert _core.equal(a * 2, a * 2)
    assert not _core.equal(a * 2, a * 3)


def test_constants_are_python_numbers(ctx):
    three, half = _core.literal(ctx, "int32", 3), _core.literal(ctx, "float32", 0.5)
    assert (int(three), float(three), float(half), bool(three)) == (3, 3.0, 0.5, True)
    assert [10, 20, 30, 40][three] == 40
    assert list(range(three)) == [0, 1, 2]
    assert bool(three == 3) and not bool(three < 3)
    with pytest.raises(TypeError):
        range(half)


def test_other_contexts(ctx, var):
    other = _core.Context()
    a, b = var("a", "int32"), _core.var(other, "param", "b", "int32")
    with pytest.raises(ValueError) as e:
        a + b
    assert str(e.value).split("\n")[0] == PLACE + "'b' belongs to another kernel"
    assert str(e.value).split("\n")[-1].strip() == "help: pass it as a parameter, or make it inside this kernel"
    assert (a + _core.literal(other, "int32", 4)).args[1].value == 4
    assert (a + _core.as_expr(other, 4)).dtype == "int32"
    with pytest.raises(ValueError, match="'B' belongs to another kernel"):
        a + _core.buffer(other, "B", (1,), "int32")


def test_expressions_keep_their_context(ctx):
    c = _core.Context()
    e = _core.var(c, "param", "a", "int32") + 1
    del c
    assert str(e * 2) == "(a + 1) * 2"
    assert isinstance(e.ctx, _core.Context)


def test_expressions_cannot_be_made_or_iterated():
    with pytest.raises(TypeError):
        _core.Expr()
    e = _core.literal(_core.Context(), "int32", 1)
    with pytest.raises(TypeError):
        iter(e)
