# SPDX-License-Identifier: Apache-2.0
"""Constant folding gives what Python's integers and NumPy's floats give, wrapped or rounded to the dtype."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tirx import _core as core

CTX = core.Context()
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def limits(dtype: str) -> tuple[int, int]:
    bits = int(dtype.strip("uint"))
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def wrap(dtype: str, v: int) -> int:
    lo, hi = limits(dtype)
    return (v - lo) % (hi - lo + 1) + lo


def truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


ARITH = {
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "DIV": truncdiv,
    "MOD": lambda a, b: a - b * truncdiv(a, b),
    "FLOORDIV": operator.floordiv,
    "FLOORMOD": operator.mod,
    "CEILDIV": lambda a, b: -(-a // b),
    "MIN": min,
    "MAX": max,
    "BAND": operator.and_,
    "BOR": operator.or_,
    "BXOR": operator.xor,
    "SHL": operator.lshift,
    "SHR": operator.rshift,
}
DIVISIONS = ("DIV", "MOD", "FLOORDIV", "FLOORMOD", "CEILDIV")
COMPARE = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


@st.composite
def operands(draw, op):
    dtype = draw(st.sampled_from(INTS))
    lo, hi = limits(dtype)
    near = st.sampled_from([v for v in (lo, lo + 1, hi - 1, hi, -2, -1, 0, 1, 2) if lo <= v <= hi])
    number = st.one_of(near, st.integers(lo, hi), st.integers(max(lo, -20), 20))
    a, b = draw(number), draw(number)
    if op in ("SHL", "SHR"):
        b %= int(dtype.strip("uint"))
    if op in DIVISIONS and b == 0:
        b = 1
    return dtype, a, b


@pytest.mark.parametrize("op", ARITH)
def test_integers_wrap_in_their_dtype(op):
    @settings(max_examples=300, deadline=None)
    @given(operands(op))
    def check(case):
        dtype, a, b = case
        e = core.op(CTX, op, core.literal(CTX, dtype, a), core.literal(CTX, dtype, b))
        assert (e.op, e.dtype, e.value) == ("INT", dtype, wrap(dtype, ARITH[op](a, b)))

    check()


@pytest.mark.parametrize("op", COMPARE)
def test_integers_compare_by_value(op):
    @settings(max_examples=200, deadline=None)
    @given(operands(op))
    def check(case):
        dtype, a, b = case
        e = core.op(CTX, op, core.literal(CTX, dtype, a), core.literal(CTX, dtype, b))
        assert (e.op, e.dtype, bool(e.value)) == ("INT", "bool", COMPARE[op](a, b))

    check()


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op, f", [("ADD", np.add), ("SUB", np.subtract), ("MUL", np.multiply), ("DIV", np.divide)])
def test_floats_round_once(name, op, f):
    unsigned = {"float16": np.uint16, "float32": np.uint32, "float64": np.uint64}[name]
    bits = np.random.default_rng(5).integers(0, np.iinfo(unsigned).max, 1500, dtype=unsigned, endpoint=True)
    x = bits.view(name)
    x = x[~np.isnan(x)]
    folded = 0
    with np.errstate(all="ignore"):
        for a, b in zip(x[::2], x[1::2], strict=False):
            want = f(a, b)
            e = core.op(CTX, op, core.literal(CTX, name, float(a)), core.literal(CTX, name, float(b)))
            if np.isnan(want):
                assert e.op == op  # which NaN is the machine's business
                continue
            folded += 1
            assert e.op == "FLOAT" and e.value == float(want) and np.signbit(e.value) == np.signbit(want)
    assert folded > 500


@settings(max_examples=300, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(INTS))
def test_casts_between_integers_wrap(v, dtype):
    e = core.cast(CTX, dtype, core.literal(CTX, "int64", v))
    assert (e.op, e.value) == ("INT", wrap(dtype, v))


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32), st.sampled_from(INTS))
def test_casts_of_floats_saturate(v, dtype):
    lo, hi = limits(dtype)
    want = 0 if v != v else lo if v <= lo else hi if v >= hi else int(v)
    assert core.cast(CTX, dtype, core.literal(CTX, "float32", v)).value == want


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.builds(lambda m, s, d: (m << s) + d, st.integers(1, 2**26), st.integers(0, 36), st.integers(-1, 1)),
    )
)
def test_casts_of_integers_to_floats_round_once(v):
    assert core.cast(CTX, "float32", core.literal(CTX, "int64", v)).value == float(np.int64(v).astype(np.float32))
    assert core.cast(CTX, "float64", core.literal(CTX, "int64", v)).value == float(v)


# Identities. x and y are unknown; "load" is an element of a buffer, whose read must not be lost.

X = core.var(CTX, "free", "x", "int32")
Y = core.var(CTX, "free", "y", "int32")
F = core.var(CTX, "free", "f", "float32")
P = core.var(CTX, "free", "p", "bool")
A = core.buffer(CTX, "A", (8,), "int32")
LOAD = A.load(X)
ZERO, ONE = core.literal(CTX, "int32", 0), core.literal(CTX, "int32", 1)


def test_identities_that_fire():
    for e in (X + 0, 0 + X, X - 0, X * 1, 1 * X, X // 1, X | 0, X ^ 0, X << 0, X >> 0, X & -1):
        assert e.same_as(X)
    for e in (X * 0, 0 * X, X - X, X ^ X, X % 1, X & 0):
        assert (e.op, e.value, e.dtype) == ("INT", 0, "int32")
    assert core.op(CTX, "MIN", X, X).same_as(X)
    assert (X == X).value == 1 and (X < X).value == 0  # noqa: PLR0124
    assert core.op(CTX, "NOT", core.op(CTX, "NOT", P)).same_as(P)
    assert core.cast(CTX, "int32", core.cast(CTX, "int64", X)).same_as(X)
    assert core.cast(CTX, "float32", core.cast(CTX, "float64", F)).same_as(F)
    assert core.select(CTX, core.literal(CTX, "bool", True), X, LOAD, True).same_as(X)


def test_identities_that_must_not_fire():
    for e, op in [
        (F * 0.0, "MUL"),
        (F - F, "SUB"),
        (F + 0.0, "ADD"),
        (F - 0.0, "SUB"),
        (F == F, "EQ"),  # noqa: PLR0124
        (LOAD - LOAD, "SUB"),
        (LOAD * 0, "MUL"),
        (LOAD == LOAD, "EQ"),  # noqa: PLR0124
        (0 - X, "SUB"),
        (1 // X, "FLOORDIV"),
        (X // -1, "FLOORDIV"),
        (X * -1, "MUL"),
        (core.cast(CTX, "float64", core.cast(CTX, "int32", F)), "CAST"),
        (core.cast(CTX, "int32", core.cast(CTX, "float32", X)), "CAST"),
        (core.cast(CTX, "int32", core.cast(CTX, "int8", X)), "CAST"),
        (core.select(CTX, core.literal(CTX, "bool", True), X, LOAD, False), "SELECT"),
    ]:
        assert e.op == op


def test_saturating_chain_is_kept():
    """int32 -> float32 -> int8 saturates, int32 -> int8 wraps."""
    e = core.cast(CTX, "int8", core.cast(CTX, "float64", X))
    assert e.op == "CAST" and e.args[0].op == "CAST"


def test_logic_short_circuits():
    true, false = core.literal(CTX, "bool", True), core.literal(CTX, "bool", False)
    reads = LOAD > 0
    assert core.op(CTX, "AND", false, reads).value == 0  # never read
    assert core.op(CTX, "OR", true, reads).value == 1
    assert core.op(CTX, "AND", true, reads).same_as(reads)
    assert core.op(CTX, "AND", reads, false).op == "AND"  # read first
    assert core.op(CTX, "AND", P, false).value == 0


def test_equal_expressions_are_one_value():
    assert (X * 3 + Y).same_as(X * 3 + Y)
    assert not (X * 3 + Y).same_as(Y + X * 3)
    assert not LOAD.same_as(A.load(X))
