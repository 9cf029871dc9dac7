# SPDX-License-Identifier: Apache-2.0
"""An independent evaluator of integer expressions, on Python's integers, and a strategy that makes expressions.

Integers wrap in their dtype; // and % floor; division by zero gives all ones and its remainder the dividend; shift
counts beyond the width give 0 or the sign: the language's rules, written down a second time.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tirx import _core

BITS = {t: int(t.lstrip("uint")) for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")}


def wrap(dtype: str, v: int) -> int:
    if dtype == "bool":
        return int(v != 0)
    bits = BITS[dtype]
    v &= (1 << bits) - 1
    return v - (1 << bits) if dtype[0] == "i" and v >> (bits - 1) else v


def limits(dtype: str) -> tuple[int, int]:
    bits = BITS[dtype]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)


def truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shift_left(dtype: str, a: int, n: int) -> int:
    n = n if n >= 0 else 1 << 40
    return 0 if n >= BITS[dtype] else a << n


def shift_right(dtype: str, a: int, n: int) -> int:
    n = n if n >= 0 else 1 << 40
    return a >> min(n, 200)


BINARY = {
    "ADD": lambda t, a, b: a + b,
    "SUB": lambda t, a, b: a - b,
    "MUL": lambda t, a, b: a * b,
    "FLOORDIV": lambda t, a, b: a // b if b else -1,
    "FLOORMOD": lambda t, a, b: a % b if b else a,
    "DIV": lambda t, a, b: truncdiv(a, b) if b else -1,
    "MOD": lambda t, a, b: a - b * truncdiv(a, b) if b else a,
    "CEILDIV": lambda t, a, b: -(-a // b) if b else -1,
    "MIN": lambda t, a, b: min(a, b),
    "MAX": lambda t, a, b: max(a, b),
    "BAND": lambda t, a, b: a & b,
    "BOR": lambda t, a, b: a | b,
    "BXOR": lambda t, a, b: a ^ b,
    "SHL": shift_left,
    "SHR": shift_right,
    "EQ": lambda t, a, b: a == b,
    "NE": lambda t, a, b: a != b,
    "LT": lambda t, a, b: a < b,
    "LE": lambda t, a, b: a <= b,
    "GT": lambda t, a, b: a > b,
    "GE": lambda t, a, b: a >= b,
    "AND": lambda t, a, b: a and b,
    "OR": lambda t, a, b: a or b,
}
UNARY = {
    "NEG": lambda a: -a,
    "BNOT": lambda a: ~a,
    "ABS": abs,
    "NOT": lambda a: not a,
    "CAST": lambda a: a,
    "LIKELY": lambda a: a,
}


def evaluate(e, values: dict) -> int:
    """The value of an Expr with `values` (Expr of a variable or coordinate -> int)."""
    for v, x in values.items():
        if e.op == v.op and e.same_as(v):
            return x
    if e.op == "INT":
        return int(e.value)
    args = e.args
    if e.op in ("SELECT", "IF_THEN_ELSE"):
        return evaluate(args[1 if evaluate(args[0], values) else 2], values)
    if e.op in UNARY:
        return wrap(e.dtype, int(UNARY[e.op](evaluate(args[0], values))))
    a, b = (evaluate(x, values) for x in args)
    return wrap(e.dtype, int(BINARY[e.op](args[0].dtype, a, b)))


def size(e) -> int:
    return 1 + sum(size(a) for a in e.args)


CONSTANTS = st.one_of(st.integers(-9, 9), st.sampled_from([15, 16, 31, 32, 64, 100, 127, -128, 255, 256, 1 << 20]))
OPERATORS = [
    "ADD", "ADD", "SUB", "SUB", "MUL", "MUL", "FLOORDIV", "FLOORDIV", "FLOORMOD", "FLOORMOD", "DIV", "MOD", "CEILDIV",
    "MIN", "MAX", "BAND", "BOR", "BXOR", "SHL", "SHR",
]  # fmt: skip
COMPARISONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]


def trees():
    """Nested tuples: ("var", i), ("int", v), (op, tree, tree), (unary, tree), ("sel", op, a, b, x, y)."""
    leaf = st.one_of(
        st.tuples(st.just("var"), st.integers(0, 2)),
        st.tuples(st.just("var"), st.integers(0, 2)),
        st.tuples(st.just("int"), CONSTANTS),
    )

    def grow(t):
        return st.one_of(
            st.tuples(st.sampled_from(OPERATORS), t, t),
            st.tuples(st.sampled_from(OPERATORS), t, st.tuples(st.just("int"), CONSTANTS)),
            st.tuples(st.sampled_from(["NEG", "BNOT", "ABS"]), t),
            st.tuples(st.just("widen"), t),
            st.tuples(st.just("sel"), st.sampled_from(COMPARISONS), t, t, t, t),
        )

    return st.recursive(leaf, grow, max_leaves=9)


def build(ctx, dtype: str, variables: list, tree):
    """The Expr of a tree; None where the constructors refuse it (constant zero divisors, constant shift counts)."""
    kind = tree[0]
    if kind == "var":
        return variables[tree[1]]
    if kind == "int":
        return _core.cast(ctx, dtype, _core.as_expr(ctx, tree[1], "int64"))
    args = [build(ctx, dtype, variables, t) for t in tree[1:] if isinstance(t, tuple)]
    if any(a is None for a in args):
        return None
    if kind == "widen":
        wide = "int64" if dtype[0] == "i" else "uint64"
        return _core.cast(ctx, dtype, _core.cast(ctx, wide, args[0]))
    if kind == "sel":
        return _core.select(ctx, _core.op(ctx, tree[1], args[0], args[1]), args[2], args[3], False)
    if kind in UNARY:
        return _core.op(ctx, kind, args[0])
    b = args[1]
    if b.op == "INT" and (b.value == 0 and kind in ("FLOORDIV", "FLOORMOD", "DIV", "MOD", "CEILDIV")):
        return None
    if b.op == "INT" and kind in ("SHL", "SHR") and not 0 <= b.value < BITS[dtype]:
        return None
    return _core.op(ctx, kind, args[0], b)


@st.composite
def problems(draw):
    """(dtype, tree, ranges of three variables, samples of them inside the ranges)."""
    dtype = draw(st.sampled_from(["int8", "uint8", "int16", "int32", "int32", "uint32", "int64", "uint64"]))
    lo, hi = limits(dtype)
    ranges = []
    for _ in range(3):
        kind = draw(st.sampled_from(["all", "small", "any"]))
        if kind == "all":
            ranges.append((lo, hi))
        elif kind == "small":
            ranges.append((0, draw(st.integers(0, 40))))
        else:
            a, b = sorted(draw(st.tuples(st.integers(max(lo, -300), min(hi, 300)), st.integers(lo, hi))))
            ranges.append((a, b))
    samples = []
    for _ in range(6):
        samples.append([draw(st.one_of(st.integers(a, b), st.sampled_from([a, b]))) for a, b in ranges])
    return dtype, draw(trees()), ranges, samples
