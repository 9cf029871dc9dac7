# SPDX-License-Identifier: Apache-2.0
"""Random kernels as text, and what they mean: the same text run by Python, once for every thread.

A program has cells that wrap, local arrays, nested conditionals, loops whose turns differ from thread to thread, early
returns, break and continue; its result is a row of numbers for each thread.
"""

from __future__ import annotations

import random
import textwrap


def wrap(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


class I32:
    """A 32-bit integer with the operators of the language."""

    def __init__(self, v):
        self.v = wrap(int(v))

    def _two(self, o, f):
        return I32(f(self.v, int(o)))

    def __int__(self):
        return self.v

    def __index__(self):
        return self.v

    def __add__(self, o):
        return self._two(o, lambda a, b: a + b)  # noqa: E704

    def __sub__(self, o):
        return self._two(o, lambda a, b: a - b)  # noqa: E704

    def __mul__(self, o):
        return self._two(o, lambda a, b: a * b)  # noqa: E704

    def __floordiv__(self, o):
        return self._two(o, lambda a, b: a // b)  # noqa: E704

    def __mod__(self, o):
        return self._two(o, lambda a, b: a % b)  # noqa: E704

    def __and__(self, o):
        return self._two(o, lambda a, b: a & b)  # noqa: E704

    def __xor__(self, o):
        return self._two(o, lambda a, b: a ^ b)  # noqa: E704

    def __or__(self, o):
        return self._two(o, lambda a, b: a | b)  # noqa: E704

    def __rshift__(self, o):
        return self._two(o, lambda a, b: a >> b)  # noqa: E704

    def __lshift__(self, o):
        return self._two(o, lambda a, b: a << b)  # noqa: E704

    def __neg__(self):
        return I32(-self.v)  # noqa: E704

    def __lt__(self, o):
        return self.v < int(o)  # noqa: E704

    def __le__(self, o):
        return self.v <= int(o)  # noqa: E704

    def __gt__(self, o):
        return self.v > int(o)  # noqa: E704

    def __ge__(self, o):
        return self.v >= int(o)  # noqa: E704

    def __eq__(self, o):
        return self.v == int(o)  # noqa: E704

    def __ne__(self, o):
        return self.v != int(o)  # noqa: E704

    __hash__ = None


class Program:
    def __init__(self, seed: int, size: int = 14):
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.vars = ["a", "b", "c"]
        self.loops = 0
        self.left = size
        self.fresh = 0
        self.block("    ", 0)

    # expressions: small constants, so that shifts and divisions stay in range
    def expr(self, depth=2) -> str:
        r = self.r
        if depth == 0 or r.random() < 0.25:
            return r.choice([*self.vars, "tx", "lane", "w", f"I({r.randint(-9, 40)})", f"m[{self.index()}]"])
        op = r.choice("+-*+-*&|^/%<>m?")
        x = self.expr(depth - 1)
        if op in "/%":
            return f"({x} {'//' if op == '/' else '%'} {r.choice([3, 7, 8, -5, 32, 1])})"
        if op in "<>":
            return f"({x} {'<<' if op == '<' else '>>'} {r.randint(0, 5)})"
        y = self.expr(depth - 1)
        if op == "m":
            return f"{r.choice(['MIN', 'MAX'])}({x}, {y})"
        if op == "?":
            return f"PICK({self.cond(1)}, lambda: {x}, lambda: {y})"
        return f"({x} {op} {y})"

    def index(self) -> str:
        return self.r.choice(["0", "1", "2", "3", "(tx % 4)", f"({self.r.choice(self.vars)} & 3)"])

    def cond(self, depth=1) -> str:
        r = self.r
        if depth and r.random() < 0.3:
            return f"({self.cond(depth - 1)} {r.choice(['and', 'or'])} {self.cond(depth - 1)})"
        return f"({self.expr(1)} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {self.expr(1)})"

    def block(self, pad: str, depth: int) -> None:
        for _ in range(self.r.randint(1, 4)):
            if self.left <= 0:
                break
            self.left -= 1
            self.statement(pad, depth)
        if not self.lines or not self.lines[-1].startswith(pad) or self.lines[-1].rstrip().endswith(":"):
            self.lines.append(f"{pad}c = c + 1")

    def statement(self, pad: str, depth: int) -> None:
        r, kind = self.r, self.r.random()
        if kind < 0.35 or depth >= 4:
            self.lines.append(f"{pad}{r.choice(['a', 'b', 'c'])} = {self.expr()}")
        elif kind < 0.5:
            self.lines.append(f"{pad}m[{self.index()}] = {self.expr()}")
        elif kind < 0.7:
            self.lines.append(f"{pad}if {self.cond(2)}:")
            self.block(pad + "    ", depth + 1)
            if r.random() < 0.5:
                self.lines.append(f"{pad}else:")
                self.block(pad + "    ", depth + 1)
        elif kind < 0.9:
            self.fresh += 1
            name = f"i{self.fresh}"
            stop = r.choice(["3", "5", "(tx % 4)", "(lane & 3)", "(a & 7)", "(w + 2)", "20"])
            step = r.choice(["1", "1", "2", "3"])
            back = r.random() < 0.2
            turns = f"{stop}, -1, -{step}" if back else f"{r.choice(['0', '1', '(b & 1)'])}, {stop}, {step}"
            self.lines.append(f"{pad}for {name} in range({turns}):")
            self.vars.append(name)
            self.loops += 1
            self.block(pad + "    ", depth + 1)
            if r.random() < 0.5:
                self.lines.append(f"{pad}    if {self.cond()}:")
                self.lines.append(f"{pad}        {r.choice(['break', 'continue'])}")
                self.lines.append(f"{pad}    b = b + {name}")
            self.loops -= 1
            self.vars.remove(name)
        elif kind < 0.96:
            self.fresh += 1
            name = f"n{self.fresh}"
            self.lines.append(f"{pad}{name} = NEW({self.expr(1)} & 7)")
            self.lines.append(f"{pad}while {name} > 0 and {self.cond(0)}:")
            self.vars.append(name)
            self.block(pad + "    ", depth + 1)
            self.vars.remove(name)
            self.lines.append(f"{pad}    {name} = {name} - 1")
        else:
            self.lines.append(f"{pad}if {self.cond(0)}:")
            self.lines.append(f"{pad}    STORE")
            self.lines.append(f"{pad}    return")

    def kernel(self, threads: int) -> str:
        body = "\n".join(self.lines)
        for name in sorted(
            {w for w in body.replace("(", " ").replace(")", " ").split() if w.startswith("n") and w[1:].isdigit()}
        ):
            body = body.replace(f"{name} = NEW(", f"{name}: T.int32 = (")
        pad = [line[: len(line) - len(line.lstrip())] for line in body.splitlines() if "STORE" in line]
        for p in pad:
            body = body.replace(f"{p}STORE", store(p), 1)
        body = (
            body.replace("PICK(", "PICK(").replace("MIN(", "T.min(").replace("MAX(", "T.max(").replace("I(", "T.int32(")
        )
        text = f"""
@T.prim_func
def k(A: T.Buffer(({threads},), "int32"), B: T.Buffer(({threads}, 7), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([{threads}])
    lane: T.let = tx % 32
    w: T.let = tx // 32
    m = T.alloc_local((4,), "int32")
    for j in range(4):
        m[j] = j * 5 - tx
    a: T.int32 = A[tx]
    b: T.int32 = tx
    c: T.int32 = 0
{body}
{store("    ")}
"""
        return picks(text)

    def python(self):
        body = "\n".join(self.lines).replace("NEW(", "I(").replace("STORE", "pass").replace("range(", "RANGE(")
        text = (
            "def thread(tx, lane, w, a, b, c, m):\n"
            "    def run():\n        nonlocal a, b, c\n"
            + textwrap.indent(body, "    ")
            + "\n    run()\n    return [a, b, c, *m]\n"
        )
        env = {
            "I": I32, "MIN": lambda x, y: x if x < y else y, "MAX": lambda x, y: x if x > y else y,
            "PICK": lambda c, x, y: x() if c else y(),
            "RANGE": lambda *s: (I32(i) for i in range(*(int(x) for x in s))),
        }  # fmt: skip
        exec(text, env)
        return lambda tx, a: [
            int(v)
            for v in env["thread"](
                *(I32(x) for x in (tx, tx % 32, tx // 32, a, tx, 0)), m=[I32(j * 5 - tx) for j in range(4)]
            )
        ]


def store(pad: str) -> str:
    lines = [f"{pad}B[tx, {i}] = {n}" for i, n in enumerate("abc")]
    return "\n".join([*lines, *(f"{pad}B[tx, {3 + j}] = m[{j}]" for j in range(4))])


def picks(text: str) -> str:
    """PICK(c, lambda: x, lambda: y) as the language spells it."""
    return text.replace("PICK(", "T.if_then_else(").replace("lambda: ", "")
