# SPDX-License-Identifier: Apache-2.0
"""Random expressions of a given dtype, over the names in scope."""

from __future__ import annotations

import math

from . import scalars as S

PAIRS: dict[str, list] = {}
for _a in S.DTYPES:
    for _b in S.DTYPES:
        if _a != _b:
            PAIRS.setdefault(S.promote(_a, _b), []).append((_a, _b))

COMMON = ("int32", "float32", "bool", "int64", "uint32", "uint8", "int8", "int16", "uint16", "uint64", "float16",
          "bfloat16", "float64")  # fmt: skip
WEIGHTS = (24, 14, 8, 6, 6, 5, 5, 4, 4, 4, 5, 5, 5)
SIGNED = tuple(t for t, (_, s) in S.INTS.items() if s)
SAME_BITS = {
    t: [u for u in S.DTYPES if u != t and u != "bool" and S.BITS[u] == S.BITS[t]] for t in S.DTYPES if t != "bool"
}
STORABLE = tuple(t for t in S.DTYPES if S.BITS[t] >= 6)  # one to an address: what tensors of NumPy arrays can hold
ATOMIC = ("int32", "uint32", "int64", "uint64")


class Var:
    __slots__ = ("name", "t", "kind", "depth")

    def __init__(self, name, t, kind, depth):
        self.name, self.t, self.kind, self.depth = name, t, kind, depth


class Array:
    """where: "in" read anywhere, "out" own row, "local" own, "shared" read anywhere."""

    __slots__ = ("name", "t", "shape", "where", "symbol")

    def __init__(self, name, t, shape, where, symbol=None):
        self.name, self.t, self.shape, self.where, self.symbol = name, t, shape, where, symbol


class Expressions:
    """Half of programs.Program."""

    # ---- small choices ----------------------------------------------------------------------------------------

    def fresh(self, head: str) -> str:
        self.n += 1
        return f"{head}{self.n}"

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def dtype(self) -> str:
        if self.chance(0.12):
            return self.r.choice(S.MINI)
        return self.r.choices(COMMON, WEIGHTS)[0]

    def int_dtype(self) -> str:
        return self.r.choice(["int32", "int32", "int32", *S.INTS])

    def float_dtype(self) -> str:
        return self.r.choice(["float32", "float32", *S.WIDE])

    def number(self, t: str):
        """A value of dtype t, ends and odd ones more often."""
        r = self.r
        if t == "bool":
            return r.randrange(2)
        if t in S.INTS:
            lo, hi = S.limits(t)
            k = r.random()
            if k < 0.35:
                return max(lo, min(hi, r.randrange(-5, 12)))
            if k < 0.5:
                return r.choice([lo, hi, lo + 1, hi - 1, max(lo, -1), 0, 1, 1 << r.randrange(S.BITS[t] - 1)])
            if k < 0.55 and S.BITS[t] == 64:  # where conversions to floats tie
                x = (1 << 62) + (1 << 62 - r.choice([8, 9, 11, 12, 24, 25])) + r.choice([-1, 0, 1, 2])
                return x * r.choice([1, -1]) if lo < 0 else x
            if k < 0.62:  # few bits set, and their neighbours
                x = (1 << r.randrange(S.BITS[t])) + (1 << r.randrange(S.BITS[t])) + r.choice([-1, 0, 1])
                return S.wrap(t, r.choice([x, -x]))
            return r.randint(lo, hi) >> r.choice([0, 0, S.BITS[t] // 2, S.BITS[t] - 5])
        k = r.random()
        if k < 0.25:
            x = float(r.randrange(-6, 9)) / r.choice([1, 1, 2, 4])
        elif k < 0.4:
            odd = [0.0, -0.0, 0.0, -0.0, math.nan, math.nan, 1.0, math.inf, -math.inf, S.LARGEST[t], -S.LARGEST[t]]
            x = r.choice([*odd, S.from_bits(t, 1), S.from_bits(t, 1 << FORMAT_MAN[t])])
        elif k < 0.55:  # between two neighbours of a narrower format, and beside the middle
            u = r.choice([f for f in S.FORMATS if S.BITS[f] < S.BITS[t]] or [t])
            c = r.randrange(1 << (S.BITS[u] - 1))
            x, y = S.from_bits(u, c), S.from_bits(u, (c + 1) % (1 << S.BITS[u]))
            if r.random() < 0.15 or not (math.isfinite(x) and math.isfinite(y)):
                x, y = S.LARGEST[u], S.LARGEST[u] * (1 + r.choice([2.0**-12, 2.0**-11, 2.0**-8, 0.25]))
            x = ((x + y) / 2) * (1 + r.choice([0, 0, 2.0**-20, -(2.0**-20), 2.0**-50, -(2.0**-50)])) * r.choice([1, -1])
        elif k < 0.62:  # ends of integers
            x = float(r.choice(S.limits(r.choice(list(S.INTS))))) * r.choice([1, 1, 0.5, 0.75, 1.25]) + r.choice(
                [0, 0.5, -0.5]
            )
        elif k < 0.82:
            x = r.uniform(-8, 8) * 2.0 ** r.randrange(-4, 6)
        else:
            return S.from_bits(t, r.getrandbits(S.BITS[t]))
        return S.rounded(t, x)

    # ---- literals and names -----------------------------------------------------------------------------------

    def literal(self, t: str) -> str:
        if t == "bool":
            return self.r.choice(["T.bool(True)", "T.bool(False)"])
        x = self.number(t)
        if t in S.INTS:
            return f"T.{t}({x})"
        if not math.isfinite(x):
            if x != x and t in ("float32", "float64", "float16"):
                return f'T.{t}("nan")'
            return f'T.{t}("{x}")' if x == x and S.FORMATS[t][3] == "ieee" else f"T.{t}(1)"
        return f"T.{t}({x!r})"

    def weak(self, t: str) -> str | None:
        """A plain number that takes dtype t beside an operand of dtype t."""
        r = self.r
        if t in S.INTS:
            lo, hi = S.limits(t)
            x = max(lo, min(hi, r.choice([0, 1, 2, 3, 5, 7, 16, 100, -1, -2, -7, 255, 65535])))
            return str(x) if lo <= x <= hi else None
        if t in ("float32", "float64"):
            return r.choice(["0.5", "1.5", "2", "3", "-0.25", "0.1", "1e3", "-2"])
        if t in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
            return r.choice(["1", "2", "3", "-2"])
        return None

    def names(self, t: str) -> list[str]:
        return [v.name for v in self.vars if v.t == t]

    def leaf(self, t: str) -> str:
        r = self.r
        if self.constant:
            return self.literal(t)
        names = self.names(t)
        k = r.random()
        if names and k < 0.5:
            return r.choice(names)
        if k < 0.8:
            readable = [a for a in self.arrays if a.t == t]
            if readable:
                return self.element(r.choice(readable))
        if t == "int32" and k < 0.9:
            return self.coordinate()
        if k < 0.93:
            other = r.choice(self.vars) if self.vars else None
            if other and other.t != t and not (t == "float8_e8m0fnu" and other.t in S.MINI):
                return self.cast_text(t, other.name)
        if k < 0.95 and t in S.INTS:
            return r.choice([f'T.max_value("{t}")', f'T.min_value("{t}")'])
        if k < 0.96 and t in ("float16", "float32", "float64", "bfloat16"):
            return f'T.infinity("{t}")'
        return self.literal(t)

    def coordinate(self) -> str:
        choices = ["tid", "tid"]
        choices += [f'T.cuda.{f}("{a}")' for f in ("thread_idx", "block_idx", "block_dim", "grid_dim") for a in "xyz"]
        choices += ["T.cuda.linear_thread_id()", "T.cuda.thread_rank()"]
        if math.prod(self.block) % 32 == 0:
            choices += ["T.cuda.lane_id()", "T.cuda.warp_id()"] * 3
        choices += [name for name, _ in self.loops] * 3
        return self.r.choice(choices)

    # ---- elements ---------------------------------------------------------------------------------------------

    def index(self, n: int, symbol: str | None = None, d: int = 1) -> str:
        """An expression with a value in 0 .. n-1."""
        r = self.r
        fitting = [name for name, m in self.loops if m <= n]
        k = r.random()
        if symbol is None:
            if k < 0.25 or n == 1:
                return str(r.randrange(n))
            if k < 0.3 and self.block[0] <= n:
                return "tx" if self.has_tx else 'T.cuda.thread_idx("x")'
            if k < 0.36:
                return f"{self.affine(2)} % {n}"
            if fitting and k < 0.6:
                return r.choice(fitting)
            bound = str(n)
        else:
            bound = symbol
        if k < 0.75:
            return f"(tid + {r.randrange(4)}) % {bound}"
        t = r.choice(["int32", "int32", "int64", "uint32", "int16"])
        e = self.expr(t, d)
        if t == "uint32" and symbol:
            return f"(tid % {bound})"
        return f"{e} % {bound}" if e.isidentifier() or e.endswith(")") else f"({e}) % {bound}"

    def element(self, a: Array) -> str:
        if a.where == "out":
            inner = self.index(a.shape[-1])
            return f"{a.name}[{self.row(a)}, {inner}]"
        return f"{a.name}[{', '.join(self.index(n, a.symbol) for n in a.shape)}]"

    def row(self, a: Array) -> str:
        return "gid" if len(a.shape) == 2 else "bid, tid"

    # ---- expressions ------------------------------------------------------------------------------------------

    def cast_text(self, t: str, e: str) -> str:
        k = self.r.randrange(4)
        if k == 0:
            return f'T.cast({e}, "{t}")'
        if k == 1:
            return f'T.Cast("{t}", {e})'
        if k == 2:
            return f"T.cast({e}, T.{t})"
        return f'{e}.astype("{t}")' if e.isidentifier() else f"T.cast({e}, T.{t})"

    def expr(self, t: str, d: int) -> str:
        if d <= 0 or self.chance(0.12):
            return self.leaf(t)
        if not self.constant and self.chance(0.06):  # what is known when the kernel is built
            self.constant = True
            e = self.expr(t, max(d, 2))
            self.constant = False
            return e
        if t == "bool":
            return self.condition(d)
        k = self.r.random()
        if k < 0.14:
            return self.conversion(t, d)
        if k < 0.24:
            return self.choice(t, d)
        if k < 0.28:
            return self.odd(t, d)
        if t in S.INTS:
            return self.int_expr(t, d)
        return self.float_expr(t, d)

    def conversion(self, t: str, d: int) -> str:
        r = self.r
        if r.random() < 0.25 and SAME_BITS.get(t):
            u = r.choice(SAME_BITS[t])
            e = self.leaf(u) if u in S.FORMATS else self.expr(u, d - 1)
            if u in S.FORMATS:
                if u in S.MINI and S.FORMATS[u][3] != "finite" or u in S.WIDE:
                    safe = "1" if u in S.MINI else "1.5"
                    e = f"T.Select(T.isnan({e}), T.{u}({safe}), {e})"
            return f'T.reinterpret("{t}", {e})' if self.g1 or r.random() < 0.5 else f"T.reinterpret({e}, ty=T.{t})"
        u = self.dtype()
        if u == t:
            u = "int32" if t != "int32" else "float32"
        e = self.expr(u, d - 1)
        if r.random() < 0.2 and t != "float8_e8m0fnu":  # an integer by way of a float
            u, v = self.float_dtype(), self.int_dtype()
            return self.cast_text(t, f"T.cast({self.leaf(v)}, T.{u})")
        if t == "float8_e8m0fnu":
            e = f"T.abs({self.expr('float32', d - 1)})"
        return self.cast_text(t, e)

    def choice(self, t: str, d: int) -> str:
        r = self.r
        c = self.condition(d - 1) if r.random() < 0.9 else self.leaf(r.choice(["int32", "float32", "uint8"]))
        a, b = self.expr(t, d - 1), self.expr(t, d - 1)
        if t in PAIRS and r.random() < 0.2:
            x, y = r.choice(PAIRS[t])
            a, b = self.expr(x, d - 1), self.expr(y, d - 1)
        elif r.random() < 0.15 and (w := self.weak(t)) is not None:
            a, b = (a, w) if r.random() < 0.5 else (w, b)
        k = r.random()
        if k < 0.3:
            return f"T.Select({c}, {a}, {b})"
        if k < 0.6:
            return f"T.if_then_else({c}, {a}, {b})"
        if k < 0.65 and not self.g1:
            return f"T.select({c}, {a}, {b})"
        return f"({a} if {c} else {b})"

    def odd(self, t: str, d: int) -> str:
        """Rare forms."""
        r = self.r
        k = r.randrange(6)
        if k == 0:
            return f"T.likely({self.expr(t, d - 1)})"
        if k == 1 and t not in S.MINI:
            return f"sum([{self.expr(t, d - 1)}, {self.expr(t, d - 1)}, {self.expr(t, d - 1)}])"
        if k == 2 and t in ("int32", "float32", "int64"):
            if t == "int32":
                return f"sum([{r.choice(self.names(t) or ['tid'])} * k for k in range({r.randrange(1, 4)})])"
            return f"({self.leaf(t)} ** {r.randrange(1, 4)})"
        if k == 3:
            found = [v for v in self.arrays if v.t == t and v.where == "in" and v.symbol is None]
            if found:
                a = r.choice(found)
                at = ", ".join(self.index(n) for n in a.shape)
                pointer = r.choice([f"{a.name}.ptr_to([{at}])", f"T.address_of({a.name}[{at}])"])
                if len(a.shape) == 1 and S.BITS[t] % 8 == 0 and r.random() < 0.7:
                    step = S.BITS[t] // 8
                    base = r.choice([f"{a.name}.data", f"{a.name}.ptr_to([0])"])
                    pointer = f'T.ptr_byte_offset({base}, ({at}) * {step}, "{t}")'
                return f'T.cuda.ldg({pointer}, "{t}")'
        if k == 4:
            found = [a for a in self.arrays if a.t == t and a.where == "in" and a.symbol is None and a.shape[-1] >= 4]
            if found:
                a = r.choice(found)
                head = [self.index(n) for n in a.shape[:-1]]
                at = ", ".join([*head, f"{r.randrange(a.shape[-1] - 3)}"])
                return f'T.Shuffle([{a.name}.vload([{at}], "{t}x4")], [{r.randrange(4)}])'
        if k == 5 and self.helpers and not self.pure:
            fits = [h for h in self.helpers if h[2] == t and not h[3]]
            if fits:
                name, types, _, _ = r.choice(fits)
                return f"{name}({', '.join(self.leaf(u) for u in types)})"
        return self.leaf(t)

    def operands(self, t: str, d: int) -> tuple[str, str]:
        r = self.r
        k = r.random()
        if k < 0.2 and t in PAIRS:
            a, b = r.choice(PAIRS[t])
            if t == "float16" and r.random() < 0.3:
                a, b = r.choice([("float16", "bfloat16"), ("bfloat16", "float16")])
            return self.expr(a, d - 1), self.expr(b, d - 1)
        a, b = self.expr(t, d - 1), self.expr(t, d - 1)
        if k < 0.45 and (w := self.weak(t)) is not None:
            return (a, w) if r.random() < 0.6 else (w, b)
        return a, b

    def int_expr(self, t: str, d: int) -> str:
        r = self.r
        bits, signed = S.INTS[t]
        if t == "int32" and r.random() < 0.25:
            e = self.affine(d)
            return e if any(c.isalpha() for c in e) else f"({e} + tid)"  # a plain number has no dtype of its own
        k = r.random()
        if k < 0.4:
            a, b = self.operands(t, d)
            return f"({a} {r.choice(['+', '-', '*', '+', '-', '*', '&', '|', '^'])} {b})"
        if k < 0.58:
            a = self.expr(t, d - 1)
            if r.random() < 0.45:
                b = str(r.choice([1, 2, 3, 4, 5, 7, 8, 10, 16, 64, 100, *([-1, -2, -3, -7, -8] if signed else [])]))
            else:
                e = self.expr(t, d - 1)
                b = f"({e} | 1)" if r.random() < 0.9 or self.constant else e
            f = r.choice(["//", "%", "//", "%", "truncdiv", "truncmod", "ceildiv", "floordiv", "floormod"])
            return f"({a} {f} {b})" if f in ("//", "%") else f"T.{f}({a}, {b})"
        if k < 0.7:
            a = self.expr(t, d - 1)
            if r.random() < 0.5:
                n = str(r.choice([0, 1, 2, 3, bits // 2, bits - 1, r.randrange(bits)]))
            else:
                e = self.expr(t, d - 1)
                n = f"({e} & {bits - 1})" if r.random() < 0.9 or self.constant else e
            return f"({a} {r.choice(['<<', '>>'])} {n})"
        if k < 0.8:
            a, b = self.operands(t, d)
            f = r.choice(["min", "max"])
            return f"{r.choice([f, 'T.' + f])}({a}, {b})"
        if k < 0.92:
            a = self.expr(t, d - 1)
            f = r.choice(["-", "~", "abs", "T.abs", "T.popcount", "T.clz", "-", "~"])
            return f"({f}{a})" if f in "-~" else f"{f}({a})"
        if k < 0.95 and t == "int32":
            return r.choice([f"T.cuda.ffs_u32({self.expr('uint32', d - 1)})", f"({self.condition(d - 1)} + "
                            f"{self.condition(d - 1)})"])  # fmt: skip
        a, b, c = (self.expr(t, d - 1) for _ in range(3))
        return f"T.fma({a}, {b}, {c})"

    def affine(self, d: int) -> str:
        """Index arithmetic: what the simplifier and its proofs are made for."""
        r = self.r
        if d <= 0:
            names = ["tid", "gid", "bid", "tid", 'T.cuda.thread_idx("x")', 'T.cuda.block_idx("x")']
            return r.choice([*names, *[name for name, _ in self.loops] * 3, str(r.randrange(-4, 10))])
        a = self.affine(d - 1)
        k = r.randrange(12)
        c = r.choice([1, 2, 3, 4, 4, 5, 6, 8, 12, 16, 32])
        if k < 2:
            return f"({a} {r.choice('+-')} {self.affine(d - 1)})"
        if k == 2:
            return f"({a} * {r.choice([c, -c])})"
        if k < 6:
            return f"({a} {r.choice(['//', '%'])} {r.choice([c, c, c, -c])})"
        if k == 6:
            return f"T.{r.choice(['truncdiv', 'truncmod', 'ceildiv'])}({a}, {c})"
        if k == 7:
            return f"T.{r.choice(['min', 'max'])}({a}, {r.choice([str(c), self.affine(d - 1)])})"
        if k == 8:
            return f"({a} {r.choice('&|^')} {r.choice(['1', '3', '7', '15', '8', '-4', '-8', self.affine(d - 1)])})"
        if k == 9:
            return f"({a} {r.choice(['<<', '>>'])} {r.randrange(4)})"
        if k == 10:
            return f"T.abs({a})" if r.random() < 0.5 else f"(-{a})"
        return f"({a} if {self.affine_condition(d)} else {self.affine(d - 1)})"

    def affine_condition(self, d: int) -> str:
        r = self.r
        a = f"({self.affine(d - 1)} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {self.affine(d - 2)})"
        if r.random() < 0.15:  # true, and some analysis may know it
            a = r.choice(["(tid >= 0)", "(gid > -1)", f"(tid < {math.prod(self.block)})", "(bid % 2 <= 1)"])
        if r.random() < 0.4:
            return f"({a} {r.choice(['and', 'or'])} {self.affine_condition(d - 1)})"
        return a

    def float_expr(self, t: str, d: int) -> str:
        r = self.r
        if t == "float8_e8m0fnu":
            return self.cast_text(t, f"T.abs({self.expr('float32', d - 1)})")
        k = r.random()
        if k < 0.5:
            if t == "float32" and r.random() < 0.12:  # a plain float lifts what is narrower
                a = self.expr(r.choice(["float16", "bfloat16", "int32", "int8", "uint64", "float8_e4m3fn"]), d - 1)
                return f"({a} {r.choice('+-*')} {r.choice(['0.5', '1.25', '3.0'])})"
            a, b = self.operands(t, d)
            return f"({a} {r.choice('+-*+-*/')} {b})"
        if k < 0.62:
            a, b = self.operands(t, d)
            f = r.choice(["min", "max"])
            if r.random() < 0.2:
                b = f"T.{t}({r.choice(['0.0', '-0.0'])})"
            return f"{r.choice([f, 'T.' + f])}({a}, {b})"
        if k < 0.74:
            a = self.expr(t, d - 1)
            f = r.choice(["-", "abs", "T.abs", "T.fabs", "-"])
            return f"({f}{a})" if f == "-" else f"{f}({a})"
        if k < 0.82:
            a, b, c = (self.expr(t, d - 1) for _ in range(3))
            return f"T.fma({a}, {b}, {c})"
        if t in S.MINI:
            return self.leaf(t)
        a = self.expr(t, d - 1)
        k = r.randrange(8)
        if k < 4:
            f = r.choice(["T.floor", "T.ceil", "T.trunc", "T.round", "T.nearbyint", "round", "T.sqrt"])
            return f"{f}({a})"
        if k == 4:
            return f"T.fmod({a}, {self.expr(t, d - 1)})"
        if k == 5:
            e = self.leaf(t)
            return f"T.copysign({a}, T.Select(T.isnan({e}), T.{t}(-1), {e}))"
        if k == 6 and t in ("float32", "float64"):
            return f"T.nextafter({a}, {self.expr(t, d - 1)})"
        return f"T.ldexp({a}, {self.expr('int32', d - 1)} % {r.choice([8, 40, 200])})"

    def condition(self, d: int) -> str:
        r = self.r
        if d <= 0:
            names = self.names("bool")
            if names and r.random() < 0.3:
                return r.choice(names)
            t = self.dtype()
            if t == "bool":
                t = "int32"
            op = r.choice(["<", "<=", ">", ">=", "==", "!="])
            return f"({self.leaf(t)} {op} {self.weak(t) or self.leaf(t)})"
        if r.random() < 0.12 and not self.constant:
            return self.affine_condition(d)
        k = r.random()
        if k < 0.08:  # one value twice, and a plain float beside a narrow one
            t = self.dtype()
            if t in ("float16", "bfloat16") and r.random() < 0.3:  # equal in the narrow dtype
                x = r.choice(["0.1", "2.7", "1.001", "-0.3"])
                return f"(T.{t}({x}) {r.choice(['<', '>=', '=='])} {x})"
            if t in ("float16", "bfloat16") and r.random() < 0.7:
                return f"({self.leaf(t)} {r.choice(['<', '>=', '=='])} {r.choice(['0.1', '2.5', '1.001', '-0.3'])})"
            twice = [v.name for v in self.vars if v.t in S.WIDE and v.kind == "let"]
            e = r.choice(twice) if twice and r.random() < 0.7 else self.leaf(t)
            return f"({e} {r.choice(['==', '!=', '<='])} {e})"
        if k < 0.4:
            t = self.dtype()
            if r.random() < 0.2 and t in PAIRS:
                x, y = r.choice(PAIRS[t])
                a, b = self.expr(x, d - 1), self.expr(y, d - 1)
            else:
                a, b = self.operands(t, d)
            return f"({a} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {b})"
        if k < 0.5:
            t = self.dtype()
            a, b, c = self.leaf(t), self.expr(t, d - 1), self.leaf(t)
            ops = [r.choice(["<", "<=", ">", ">=", "==", "!="]) for _ in range(2)]
            return f"({a} {ops[0]} {b} {ops[1]} {c})"
        a = self.condition(d - 1)
        if k < 0.66:
            return f"({a} {r.choice(['and', 'or'])} {self.condition(d - 1)})"
        if k < 0.74:
            return f"(not {a})"
        if k < 0.8:
            return f"(~{a})"
        if k < 0.88:
            return f"({a} {r.choice('&|^')} {self.condition(d - 1)})"
        if k < 0.94:
            return f"T.{r.choice(['isnan', 'isinf', 'isfinite'])}({self.expr(self.float_dtype(), d - 1)})"
        if k < 0.97:
            return f"T.Select({a}, {self.condition(d - 1)}, {self.condition(d - 1)})"
        pointers = [x for x in self.arrays if x.where == "in" and x.symbol is None]
        if pointers:
            x = r.choice(pointers)
            return f"(not T.isnullptr({x.name}.ptr_to([{', '.join('0' * len(x.shape))}])))"
        return self.cast_text("bool", self.leaf("int32"))

    def value(self, t: str) -> str:
        return self.expr(t, self.r.choice([1, 2, 2, 3]))


FORMAT_MAN = {t: m for t, (_, m, _, _, _) in S.FORMATS.items()}
