# SPDX-License-Identifier: Apache-2.0
"""What the reference runs on: variables, arrays, frames, threads; and how names of the language are read."""

from __future__ import annotations

import ast
import functools

from . import scalars as S
from .scalars import V

SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
ALIASES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "boolean": "bool",
    **{f"{a}{b}": f"{n}{b}" for a, n in (("i", "int"), ("u", "uint")) for b in (8, 16, 32, 64)},
}  # fmt: skip


class Cell:
    __slots__ = ("t", "v")

    def __init__(self, t, v=None):
        self.t, self.v = t, v


class Buf:
    """An array; `at` is where its first element is in the shared list."""

    __slots__ = ("t", "shape", "data", "at", "strides")

    def __init__(self, t, shape, data=None, at=0):
        self.t, self.shape, self.at = t, tuple(shape), at
        self.strides = []
        n = 1
        for extent in reversed(self.shape):
            self.strides.insert(0, n)
            n *= extent
        self.data = [None] * n if data is None else data


class Ptr:
    __slots__ = ("buf", "at")

    def __init__(self, buf, at):
        self.buf, self.at = buf, at


class Func:
    __slots__ = ("node", "frame", "kernel", "body", "defaults")


class Frame:
    __slots__ = ("names", "parent", "trail", "outer", "thread", "cells", "own")

    def __init__(self, thread, parent=None):
        self.names = {}
        self.parent = parent
        self.trail = []
        self.outer = frozenset()
        self.thread = thread
        self.cells = frozenset()
        self.own = frozenset()  # g2: parameters, which an assignment rebinds

    def find(self, name):
        f = self
        while f is not None:
            if name in f.names:
                return f.names[name]
            f = f.parent
        raise S.Refused(f"undefined variable {name}")

    def bind(self, name, value):
        self.trail.append((name, self.names.get(name)))
        self.names[name] = value

    def leave(self, mark):
        trail = self.trail
        while len(trail) > mark:
            name, old = trail.pop()
            if old is None:
                del self.names[name]
            else:
                self.names[name] = old


class Thread:
    """got: values of calls where threads met; skips: "continue" or "break", until the loop's end; pending, groups:
    copies of cp.async that nobody has waited for."""

    __slots__ = (
        "kernel",
        "tid",
        "bid",
        "frame",
        "done",
        "turns",
        "result",
        "got",
        "cta",
        "skips",
        "arrived",
        "pending",
        "groups",
    )


def number(x):
    """An operand: a cell or a one-element buffer is its value."""
    if type(x) is Buf:
        return V(x.t, x.data[x.at])
    if type(x) is Cell:
        return V(x.t, x.v)
    return x


def truth(x) -> bool:
    x = number(x)
    return bool(x.v) if type(x) is V else bool(x)


def as_int(x) -> int:
    x = number(x)
    return x.v if type(x) is V else int(x)


def is_T(node) -> str | None:
    """T.name, T.cuda.name, T.ptx["name"] -> "name", "cuda.name", "ptx.name"."""
    if isinstance(node, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id == "T":
            return node.attr
        head = is_T(node.value)
        if head:
            return f"{head}.{node.attr}"
    elif isinstance(node, ast.Subscript) and is_T(node.value) == "ptx":
        return f"ptx.{node.slice.value}"
    return None


@functools.cache
def ptx_tokens(name: str) -> list[str]:
    """ptx.cp.async_.shared__cta -> cp, async, shared::cta."""
    return [t.rstrip("_").replace("__", "::") for t in name.split(".")[1:]]


def dtype_name(text: str) -> str | None:
    text = ALIASES.get(text, text)
    return text if S.scalar(text) in S.BITS else None


def dtype_of(node) -> str | None:
    if isinstance(node, ast.Constant) and type(node.value) is str:
        return dtype_name(node.value)
    name = is_T(node)
    return dtype_name(name) if name else None


@functools.lru_cache(maxsize=4)
def parsed(text: str) -> ast.Module:
    """Not to be changed."""
    return ast.parse(text)
