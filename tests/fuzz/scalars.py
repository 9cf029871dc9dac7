# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the language in plain Python: every scalar dtype, promotion, conversion, operators. Nothing of tirx.

A value is a V(dtype, number): Python's int for integers and bools (0, 1), Python's float for floats of every format
(all of them fit a double exactly). Plain Python numbers are weak literals. A function that meets what has no
one value (a
division by zero, a shift count outside the width) gives what hardware gives and adds to `faults`.
"""

from __future__ import annotations

import ctypes
import functools
import math
import struct
from fractions import Fraction

INTS = {f"{s}int{b}": (b, s == "") for b in (8, 16, 32, 64) for s in ("", "u")}
#          exponent bits, mantissa bits, bias, what the top codes are, signed
FORMATS = {
    "float16": (5, 10, 15, "ieee", True),
    "bfloat16": (8, 7, 127, "ieee", True),
    "float32": (8, 23, 127, "ieee", True),
    "float64": (11, 52, 1023, "ieee", True),
    "float8_e3m4": (3, 4, 3, "ieee", True),
    "float8_e4m3": (4, 3, 7, "ieee", True),
    "float8_e5m2": (5, 2, 15, "ieee", True),
    "float8_e4m3fn": (4, 3, 7, "ones", True),
    "float8_e4m3b11fnuz": (4, 3, 11, "fnuz", True),
    "float8_e4m3fnuz": (4, 3, 8, "fnuz", True),
    "float8_e5m2fnuz": (5, 2, 16, "fnuz", True),
    "float8_e8m0fnu": (8, 0, 127, "ones", False),
    "float6_e2m3fn": (2, 3, 1, "finite", True),
    "float6_e3m2fn": (3, 2, 3, "finite", True),
    "float4_e2m1fn": (2, 1, 1, "finite", True),
}
WIDE = ("float16", "bfloat16", "float32", "float64")
MINI = tuple(t for t in FORMATS if t not in WIDE)
BITS = {"bool": 8, **{t: b for t, (b, _) in INTS.items()}, **{t: e + m + s for t, (e, m, _, _, s) in FORMATS.items()}}
DTYPES = ("bool", *INTS, *FORMATS)


class Refused(Exception):
    """The language refuses this program; the kernel that holds it must be refused too."""


class V:
    """A typed value; of a vector, v is a tuple of the lanes' numbers."""

    __slots__ = ("t", "v")

    def __init__(self, t, v):
        self.t = t
        self.v = v

    def __repr__(self):
        return f"{self.t}({self.v})"


faults: list[str] = []


# ---- floats --------------------------------------------------------------------------------------------------------


def largest(t: str) -> float:
    e, m, bias, top, _ = FORMATS[t]
    if top == "ieee":
        return math.ldexp(2 - 2.0**-m, 2**e - 2 - bias)
    if top == "ones":
        return math.ldexp(2 - 2.0 ** (1 - m), 2**e - 1 - bias) if m else math.ldexp(1.0, 2**e - 2 - bias)
    return math.ldexp(2 - 2.0**-m, 2**e - 1 - bias)


LARGEST = {t: largest(t) for t in FORMATS}
LEAST = {t: 1 - FORMATS[t][2] for t in FORMATS}  # exponent of the smallest normal number


def nearest(t: str, x) -> float:
    """x (a finite float or Fraction, not zero) as a multiple of its last place in t; the range has no end above."""
    _, m, _, _, _ = FORMATS[t]
    if isinstance(x, Fraction):
        e = x.numerator.bit_length() - x.denominator.bit_length() if x > 0 else (
            (-x.numerator).bit_length() - x.denominator.bit_length())  # fmt: skip
        if abs(x) < Fraction(2) ** e:
            e -= 1
        place = max(e, LEAST[t]) - m
        n = round(x / Fraction(2) ** place)
        return ldexp_wide(n, place) if n else math.copysign(0.0, 1 if x > 0 else -1)
    e = math.frexp(x)[1] - 1
    if t == "float8_e8m0fnu":
        low = math.ldexp(1.0, max(e, -127))
        return low if abs(x) / low < 1.5 else low * 2
    place = max(e, LEAST[t]) - m
    n = round(math.ldexp(x, -place))
    return ldexp_wide(n, place) if n else math.copysign(0.0, x)


def ldexp_wide(n: int, e: int) -> float:
    try:
        return math.ldexp(n, e)
    except OverflowError:
        return math.inf if n > 0 else -math.inf


def rounded(t: str, x) -> float:
    """x, a float or Fraction, as conversion to dtype t makes it."""
    if type(x) is float:
        if t == "float64":
            return x
        if t == "float32":
            return ctypes.c_float(x).value
    _, _, _, top, signed = FORMATS[t]
    saturates = t not in WIDE
    if type(x) is float and x != x:
        return math.nan if top != "finite" else LARGEST[t]
    if not signed:
        x = abs(x)
        if x < 2.0**-127:
            return 2.0**-127
    if x == 0:
        r = x if type(x) is float else 0.0
    elif type(x) is float and math.isinf(x):
        r = x
    else:
        r = nearest(t, x)
    if abs(r) > LARGEST[t]:
        r = math.copysign(LARGEST[t] if saturates else math.inf, r)
    if r == 0 and top == "fnuz":
        r = 0.0
    return r


def to_bits(t: str, x) -> int:
    if t in INTS or t == "bool":
        return x & ((1 << BITS[t]) - 1)
    if t == "float32":
        return struct.unpack("<I", struct.pack("<f", x))[0]
    if t == "float64":
        return struct.unpack("<Q", struct.pack("<d", x))[0]
    e, m, bias, top, signed = FORMATS[t]
    ones = (1 << (e + m)) - 1
    if x != x:
        return 1 << (e + m) if top == "fnuz" else ones
    sign = (math.copysign(1, x) < 0 and signed) << (e + m)
    x = abs(x)
    if math.isinf(x):
        return sign | ones - (1 << m) + 1
    if x == 0:
        return sign
    k = math.frexp(x)[1] - 1
    if not signed:
        return k + bias
    if k < LEAST[t]:
        return sign | int(math.ldexp(x, m - LEAST[t]))
    return sign | k + bias << m | int(math.ldexp(x, m - k)) - (1 << m)


def from_bits(t: str, b: int):
    if t == "bool":
        return int(b != 0)
    if t in INTS:
        return wrap(t, b)
    if t == "float32":
        return struct.unpack("<f", struct.pack("<I", b))[0]
    if t == "float64":
        return struct.unpack("<d", struct.pack("<Q", b))[0]
    e, m, bias, top, signed = FORMATS[t]
    negative = signed and b >> (e + m) & 1
    code = b & ((1 << (e + m)) - 1)
    ones = (1 << (e + m)) - 1
    if top == "fnuz" and negative and code == 0 or top == "ones" and code == ones:
        return math.nan
    k, man = code >> m, code & ((1 << m) - 1)
    if top == "ieee" and k == (1 << e) - 1:
        return math.nan if man else -math.inf if negative else math.inf
    x = math.ldexp(man, LEAST[t] - m) if k == 0 and signed else math.ldexp(man + (1 << m), k - bias - m)
    return -x if negative else x


def wrap(t: str, v: int) -> int:
    bits, signed = INTS[t]
    v &= (1 << bits) - 1
    return v - (1 << bits) if signed and v >> (bits - 1) else v


@functools.cache
def limits(t: str) -> tuple[int, int]:
    if t == "bool":
        return 0, 1
    bits, signed = INTS[t]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


# ---- types ---------------------------------------------------------------------------------------------------------


@functools.cache
def promote(a: str, b: str) -> str:
    """language.md 6.1"""
    if a == b:
        return a
    if a == "bool" or b == "bool":
        return b if a == "bool" else a
    if a in INTS and b in INTS:
        (n, s), (m, r) = INTS[a], INTS[b]
        if s == r:
            return a if n >= m else b
        (signed, k), (unsigned, j) = ((a, n), (b, m)) if s else ((b, m), (a, n))
        return signed if k > j else unsigned
    if a in INTS or b in INTS:
        return b if a in INTS else a
    if BITS[a] != BITS[b]:
        return a if BITS[a] > BITS[b] else b
    return "float16" if BITS[a] == 16 else "float32"


def weak_type(x, other: str | None, compares: bool) -> str:
    """The dtype that a plain number takes beside an operand of dtype `other`."""
    if type(x) is bool:
        return "bool"
    if type(x) is int:
        alone = "int32" if -(1 << 31) <= x < 1 << 31 else "int64"
        if other is None or other == "bool":
            return alone
        if other in FORMATS:
            return other
        lo, hi = limits(other)
        return other if lo <= x <= hi else alone if alone == "int64" and BITS[other] <= 32 else other
    if other in FORMATS and (compares or BITS[other] >= 32):
        return other
    return "float32"


def literal(t: str, x) -> V:
    if t == "bool":
        return V(t, int(bool(x)))
    if t in INTS:
        x = int(x)
        lo, hi = limits(t)
        if not lo <= x <= hi:
            raise Refused(f"literal {x} of {t}")
        return V(t, x)
    x = rounded(t, Fraction(x) if type(x) is int and x and abs(x) >> 53 else float(x))
    return V(t, x)


def typed(x, other: str | None = None, compares: bool = False) -> V:
    if type(x) is V:
        return x
    return small_literal(x, other, compares) if type(x) is int else literal(weak_type(x, other, compares), x)


@functools.lru_cache(maxsize=1 << 14)
def small_literal(x: int, other: str | None, compares: bool) -> V:
    return literal(weak_type(x, other, compares), x)


def pair(a, b, compares=False) -> tuple[V, V]:
    a_typed, b_typed = type(a) is V, type(b) is V
    if not a_typed:
        a = typed(a, scalar(b.t) if b_typed else None, compares)
    if not b_typed:
        b = typed(b, scalar(a.t) if a_typed else None, compares)
    return a, b


@functools.cache
def scalar(t: str) -> str:
    head, _, lanes = t.rpartition("x")
    return head if lanes.isdigit() and head else t


@functools.cache
def lanes(t: str) -> int:
    head, _, n = t.rpartition("x")
    return int(n) if n.isdigit() and head else 1


def convert(t: str, s: str, x):
    """x of dtype s as a value of dtype t."""
    if t == s:
        return x
    if t == "bool":
        return int(x != 0)
    if t in INTS:
        if s in FORMATS:
            if x != x:
                return 0
            lo, hi = limits(t)
            return hi if x >= hi else lo if x <= lo else int(x)
        return wrap(t, x)
    if s in FORMATS:
        return rounded(t, x)
    if t == "float64":
        return float(x)
    return rounded(t, Fraction(x)) if x >> 53 not in (0, -1) else rounded(t, float(x))


def cast(t: str, a) -> V:
    if type(a) is not V:
        a = typed(a)
    if type(a.v) is tuple:
        s = scalar(a.t)
        return V(f"{scalar(t)}x{len(a.v)}", tuple(convert(scalar(t), s, x) for x in a.v))
    n = lanes(t)
    if n > 1:
        return V(t, (convert(scalar(t), a.t, a.v),) * n)
    return V(t, convert(t, a.t, a.v))


def stored(t: str, a) -> V:
    """As a store into dtype t converts it: a plain number becomes a literal of the element's dtype."""
    return cast(t, a if type(a) is V or t in INTS and type(a) is float else literal(t, a))


# ---- operators on numbers of one dtype -----------------------------------------------------------------------------


def trunc_div(x, y):
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def divide(op, t, x, y):
    """Integer division; by zero as PTX: quotient all ones, remainder the dividend."""
    if y == 0:
        faults.append("NaN" if op == "ceildiv" else "division")  # a ceiling of all ones is nobody's
        return x if op in ("%", "truncmod") else wrap(t, -1)
    if op == "//":
        return wrap(t, x // y)
    if op == "%":
        return wrap(t, x % y)
    if op == "ceildiv":
        return wrap(t, -(-x // y))
    q = trunc_div(x, y)
    return wrap(t, q if op == "truncdiv" else x - q * y)


class Unsure(Exception):
    """The reference does not know: nothing is compared."""


def shift(op, t, x, n):
    bits, _ = INTS[t]
    if not 0 <= n < bits:
        faults.append("shift")
        return 0 if op == "<<" or x >= 0 else -1
    return wrap(t, x << n) if op == "<<" else x >> n


def float_div(x: float, y: float) -> float:
    if y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)
    return x / y


def float_min(x, y, larger):
    if x != x:
        return y
    if y != y:
        return x
    if x == y == 0:
        neg = math.copysign(1, x) < 0 or math.copysign(1, y) < 0
        pos = math.copysign(1, x) > 0 or math.copysign(1, y) > 0
        return (0.0 if pos else -0.0) if larger else (-0.0 if neg else 0.0)
    return max(x, y) if larger else min(x, y)


def arith(op: str, t: str, x, y):
    """x op y, both of dtype t, in dtype t."""
    if t in FORMATS:
        if op == "+":
            r = x + y
        elif op == "-":
            r = x - y
        elif op == "*":
            r = x * y
        elif op == "/":
            r = float_div(x, y)
        elif op in ("min", "max"):
            return rounded(t, float_min(x, y, op == "max"))
        else:
            raise Refused(f"{op} of {t}")
        return r if t == "float64" else rounded(t, r)
    if op in ("//", "%", "truncdiv", "truncmod", "ceildiv"):
        return divide(op, t, x, y)
    if op in ("<<", ">>"):
        return shift(op, t, x, y)
    if op == "min":
        return min(x, y)
    if op == "max":
        return max(x, y)
    if op == "+":
        r = x + y
    elif op == "-":
        r = x - y
    elif op == "*":
        r = x * y
    elif op == "&":
        r = x & y
    elif op == "|":
        r = x | y
    elif op == "^":
        r = x ^ y
    else:
        raise Refused(f"{op} of {t}")
    return wrap(t, r)


def map_lanes(t, f, *vectors):
    """f over the lanes; scalars are spread."""
    for v in vectors:
        if type(v) is tuple:
            break
    else:
        return V(t, f(*vectors))
    n = max(len(v) if type(v) is tuple else 1 for v in vectors)
    if n == 1:
        return V(t, f(*vectors))
    spread = [v if type(v) is tuple else (v,) * n for v in vectors]
    return V(f"{t}x{n}", tuple(f(*row) for row in zip(*spread, strict=True)))


def binary(op: str, a, b) -> V:
    a, b = pair(a, b)
    s, r = scalar(a.t), scalar(b.t)
    t = promote(s, r)
    if t == "bool" and op not in ("&", "|", "^"):
        t = "int32"
    if t == "bool":
        return map_lanes(t, lambda x, y: x & y if op == "&" else x | y if op == "|" else x ^ y, a.v, b.v)
    if type(a.v) is not tuple and type(b.v) is not tuple:
        return V(t, arith(op, t, convert(t, s, a.v), convert(t, r, b.v)))
    return map_lanes(t, lambda x, y: arith(op, t, convert(t, s, x), convert(t, r, y)), a.v, b.v)


COMPARE = {
    "==": lambda x, y: x == y, "!=": lambda x, y: x != y, "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
}  # fmt: skip


def compare(op: str, a, b) -> V:
    a, b = pair(a, b, True)
    s, r = scalar(a.t), scalar(b.t)
    t = promote(s, r)
    f = COMPARE[op]
    if type(a.v) is not tuple and type(b.v) is not tuple:
        return V("bool", int(f(convert(t, s, a.v), convert(t, r, b.v))))
    return map_lanes("bool", lambda x, y: int(f(convert(t, s, x), convert(t, r, y))), a.v, b.v)


def fma(a, b, c) -> V:
    a, b = pair(a, b)
    t = promote(promote(scalar(a.t), scalar(b.t)), scalar(typed(c, scalar(a.t)).t))
    if t == "bool":
        t = "int32"
    a, b, c = (cast(t, typed(x, t)) for x in (a, b, c))
    return map_lanes(t, lambda x, y, z: fma_number(t, x, y, z), a.v, b.v, c.v)


def fma_number(t, x, y, z):
    if t in INTS:
        return wrap(t, x * y + z)
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        if math.isfinite(x) and math.isfinite(y):
            return rounded(t, z)  # however large the product is
        return rounded(t, x * y + z)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        sign = math.copysign(1, x) * math.copysign(1, y)
        product_zero = x == 0 or y == 0
        if z == 0 and product_zero:
            return rounded(t, -0.0 if sign < 0 and math.copysign(1, z) < 0 else 0.0)
        return rounded(t, 0.0)
    return rounded(t, exact)


def negate(a) -> V:
    a = typed(a)
    t = scalar(a.t)
    if t == "bool":
        a, t = cast("int32", a), "int32"
    return map_lanes(t, lambda x: wrap(t, -x) if t in INTS else rounded(t, -x), a.v)


def invert(a) -> V:
    a = typed(a)
    t = scalar(a.t)
    return map_lanes(t, lambda x: 1 - x if t == "bool" else wrap(t, ~x), a.v)


def absolute(a) -> V:
    a = typed(a)
    t = scalar(a.t)
    if t == "bool":
        a, t = cast("int32", a), "int32"
    return map_lanes(t, lambda x: wrap(t, abs(x)) if t in INTS else rounded(t, abs(x)), a.v)


def count_bits(name, a) -> V:
    a = typed(a)
    t = scalar(a.t)
    if t == "bool":
        a, t = cast("int32", a), "int32"
    bits = BITS[t]

    def one(x):
        x &= (1 << bits) - 1
        return x.bit_count() if name == "popcount" else bits - x.bit_length()

    return map_lanes(t, one, a.v)


def reinterpret(t: str, a) -> V:
    a = typed(a)
    s, n = scalar(a.t), lanes(a.t)
    word = 0
    for i, x in enumerate(a.v if n > 1 else (a.v,)):
        if x != x:
            if a.t == t:
                return a
            faults.append("NaN")
            x = 0.0
        word |= to_bits(s, x) << i * BITS[s]
    u, m = scalar(t), lanes(t)
    mask = (1 << BITS[u]) - 1
    out = tuple(from_bits(u, word >> i * BITS[u] & mask) for i in range(m))
    return V(t, out if m > 1 else out[0])


# ---- functions -----------------------------------------------------------------------------------------------------


def to_float(a) -> V:
    a = typed(a)
    return a if scalar(a.t) in FORMATS else cast("float32", a)


def round_even(x):
    if x != x or abs(x) >= 2.0**52 or x == 0:
        return x
    return math.copysign(float(round(x)), x)


def keep(f):
    """A function of finite numbers that keeps infinities, NaN, zeros, and the sign of a zero result."""
    return lambda x: x if not math.isfinite(x) or x == 0 else math.copysign(float(f(x)), x)


EXACT = {  # name: function of a double; its value in the operand's dtype is exact, or rounded once
    "floor": lambda x: x if not math.isfinite(x) or x == 0 else float(math.floor(x)),
    "ceil": keep(math.ceil),
    "trunc": keep(math.trunc),
    "round": round_even,
    "nearbyint": round_even,
    "sqrt": lambda x: x if x != x or x == 0 or x == math.inf else math.nan if x < 0 else math.sqrt(x),
}  # fmt: skip


def guarded(f, *points):
    """f, where Python raises instead: NaN (ValueError) or an infinity (OverflowError)."""

    def g(*x):
        if any(v != v for v in x):
            return math.nan
        for at, value in points:
            if x == (at,):
                return value
        try:
            return f(*x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf
        except ZeroDivisionError:
            return math.inf

    return g


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0 if x < -745 else math.exp(x)


INF = math.inf
NEAR = {  # functions with an error bound
    "exp": guarded(math.exp, (-INF, 0.0)),
    "exp2": guarded(lambda x: 2.0**x),
    "exp10": guarded(lambda x: 10.0**x),
    "log": guarded(math.log, (0.0, -INF), (INF, INF)),
    "log2": guarded(math.log2, (0.0, -INF), (INF, INF)),
    "log10": guarded(math.log10, (0.0, -INF), (INF, INF)),
    "log1p": guarded(math.log1p, (-1.0, -INF), (INF, INF)),
    "rsqrt": guarded(lambda x: 1 / math.sqrt(x) if x else math.copysign(INF, x), (INF, 0.0)),
    "sin": guarded(math.sin), "cos": guarded(math.cos), "tan": guarded(math.tan),
    "asin": guarded(math.asin), "acos": guarded(math.acos), "atan": guarded(math.atan),
    "sinh": guarded(lambda x: math.sinh(x) if abs(x) < 710 else math.copysign(INF, x)),
    "cosh": guarded(math.cosh), "tanh": guarded(math.tanh),
    "asinh": guarded(math.asinh), "acosh": guarded(math.acosh),
    "atanh": guarded(math.atanh, (1.0, INF), (-1.0, -INF)),
    "erf": guarded(math.erf), "sigmoid": guarded(sigmoid),
}  # fmt: skip


def fmod(x, y):
    if x != x or y != y or math.isinf(x) or y == 0:
        return math.nan
    return math.fmod(x, y)


def power(x, y):
    try:
        return math.pow(x, y)
    except ValueError:
        if x == 0:  # a pole
            return math.copysign(INF, x) if y == math.floor(y) and y % 2 == 1 else INF
        return math.nan
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF


def hypot(x, y):
    return math.inf if math.isinf(x) or math.isinf(y) else math.hypot(x, y)


EXACT2 = {"fmod": fmod}
NEAR2 = {"atan2": lambda x, y: math.nan if x != x or y != y else math.atan2(x, y), "pow": power, "hypot": hypot}


def next_after(t, x, y):
    if x != x or y != y:
        return math.nan
    if x == y:
        return y
    if x == 0:
        return math.copysign(from_bits(t, 1), y)
    b = to_bits(t, x)
    return from_bits(t, b + 1 if (y > x) == (x > 0) else b - 1)


def copy_sign(x, y):
    if y != y:
        faults.append("NaN")
    return math.copysign(x, y)


def scale(t, x, n):
    if x == 0 or not math.isfinite(x):
        return x
    n = max(-5000, min(5000, n))
    return rounded(t, Fraction(x) * Fraction(2) ** n)
