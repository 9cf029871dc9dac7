# SPDX-License-Identifier: Apache-2.0
"""Random programs over a few integer names: a kernel computes what Python computes, or refuses the text, and its
printed form parses back to the same function. TIRX_RANDOM=first:count runs other seeds."""

from __future__ import annotations

import os
import random
import textwrap

import numpy as np
import pytest
from script.kernels import kernel, run

import tirx

NAMES = "abcd"
FIRST, COUNT = map(int, os.environ.get("TIRX_RANDOM", "0:30").split(":"))


class Program:
    """Statements that always end; values stay small through `% 97`."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.loops = 0
        self.helpers: list[str] = []

    def value(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice([*NAMES, "tx", "s", str(r.randrange(-5, 9))])
        kind = r.randrange(8)
        a, b = self.value(depth - 1), self.value(depth - 1)
        if kind == 0:
            return f"({a} if {self.condition()} else {b})"
        if kind == 1:
            return f"{r.choice(['min', 'max'])}({a}, {b})"
        if kind == 2:
            return f"({a} {r.choice(['//', '%'])} {r.choice([3, 5, -4])})"
        if kind == 3 and self.helpers:
            return f"{r.choice(self.helpers)}({a}, {b})"
        return f"({a} {r.choice(['+', '-', '*', '&', '|', '^'])} {b})"

    def condition(self) -> str:
        r = self.random
        a, b, c = (self.value(1) for _ in range(3))
        sign = [r.choice(["<", "<=", "==", "!=", ">"]) for _ in range(2)]
        return r.choice(
            [
                f"{a} {sign[0]} {b}",
                f"{a} {sign[0]} {b} {sign[1]} {c}",
                f"{a} {sign[0]} {b} and {b} {sign[1]} {c}",
                f"not {a} {sign[0]} {b}",
                f"{a} {sign[0]} {b} or {c} {sign[1]} {a}",
            ]
        )

    def block(self, depth: int, in_loop: bool) -> list[str]:
        return [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(depth, in_loop)]

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        r = self.random
        name = r.choice(NAMES)
        kind = r.randrange(12) if depth else r.randrange(6)
        if kind < 3:
            return [f"{name} = {self.value()} % 97"]
        if kind == 3:
            return [f"{name} {r.choice(['+', '-', '^'])}= {self.value(1)}", f"{name} = {name} % 97"]
        if kind == 4:
            x, y = r.sample(NAMES, 2)
            return [f"{x}, {y} = {self.value(1)} % 97, {self.value(1)} % 97"]
        if kind == 5:
            if in_loop and r.random() < 0.5:
                return [f"if {self.condition()}:", f"    {r.choice(['break', 'continue'])}"]
            x, y = r.sample(NAMES, 2)
            return [f"{x} = {y} = {self.value(1)} % 97"]
        inner = "    "
        if kind < 9:
            lines = [
                f"if {self.condition()}:",
                *textwrap.indent("\n".join(self.block(depth - 1, in_loop)), inner).split("\n"),
            ]
            if r.random() < 0.6:
                lines += ["else:", *textwrap.indent("\n".join(self.block(depth - 1, in_loop)), inner).split("\n")]
            return lines
        body = textwrap.indent("\n".join(self.block(depth - 1, True)), inner).split("\n")
        self.loops += 1
        if kind < 11:
            variable = name if r.random() < 0.1 else f"i{self.loops}"
            start, stop = r.choice(
                [("0", "3"), (f"{self.value(1)} % 3", f"{self.value(1)} % 5"), ("4", f"{self.value(1)} % 3")]
            )
            step = r.choice(["1", "2", "-1", "-2"])
            return [f"for {variable} in range({start}, {stop}, {step}):", *body]
        return [
            f"n{self.loops} = 0",
            f"while n{self.loops} < 3 and ({self.condition()}):",
            f"    n{self.loops} += 1",
            *body,
        ]

    def text(self) -> str:
        lines = [f"{n} = {self.value(0) if n == 'a' else self.random.choice(['tx', 's', '3'])}" for n in NAMES]
        lines[0] = "a = tx * 2"
        if self.random.random() < 0.5:
            target = self.random.choice(NAMES)
            lines += [
                "@T.inline",
                "def h(x, y):",
                f"    nonlocal {target}",
                f"    {target} = (x + {target}) % 97",
                "    z = x - y",
                "    return z * 2",
            ]
            lines += [f"h({self.value(1)}, b)"]
        for _ in range(5):
            lines += self.statement(2, False)
        return "\n".join([*lines, "r = a + b * 100 + c * 10000 + d"])


def python_values(text: str, s: int) -> list[int]:
    names: dict = {}
    exec("def f(tx, s):\n" + textwrap.indent(text.replace("@T.inline\n", ""), "    ") + "\n    return r\n", names)
    return [names["f"](tx, s) for tx in range(64)]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_a_random_program(seed, dialect):
    text = Program(seed).text()
    try:
        want = {s: python_values(text, s) for s in (3, -2)}
    except NameError:
        pytest.skip("Python finds a name unbound")
    try:
        f = kernel(text + "\nB[tx] = r", dialect)
    except tirx.DiagnosticError as e:
        assert "Undefined variable" in str(e), text
        pytest.skip("refused: a name is read whose value depends on the run")
    again = tirx.from_source(f.script())
    assert tirx.structural_equal(f, again), text
    for s, values in want.items():
        np.testing.assert_array_equal(run(f, s)[1], values, err_msg=f"s = {s}\n{text}")
