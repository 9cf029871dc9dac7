# SPDX-License-Identifier: Apache-2.0
"""Expressions made outside kernels: sizes (T.dynamic) and what is computed from them.

They belong to no compilation. Each is a small tree that becomes IR when a kernel uses it, through
`__tirx_expr__(ctx)`; one symbol becomes one variable of the kernel, however often and wherever it is used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import state


class Deferred:
    """What Symbol, Literal and Operation share: arithmetic that waits for a kernel."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy scalars leave the operator to us

    def __tirx_expr__(self, ctx: Any) -> Any:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise TypeError(f"'{self!r}' is known at run time only; it has no truth value here")

    def __hash__(self) -> int:
        return id(self)


def _value(x: Any, ctx: Any) -> Any:
    return x.__tirx_expr__(ctx) if isinstance(x, Deferred) else x


def apply(sign: str, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args) now, if a kernel is being built, else when one uses the result."""
    p = state.parser()
    if p is not None:
        return function(*[_value(a, p.ctx) for a in args])
    return Operation(sign, function, args)


class Operation(Deferred):
    __slots__ = ("args", "function", "sign")

    def __init__(self, sign: str, function: Callable[..., Any], args: tuple):
        self.sign = sign
        self.function = function
        self.args = args

    def __tirx_expr__(self, ctx: Any) -> Any:
        return self.function(*[_value(a, ctx) for a in self.args])

    def __repr__(self) -> str:
        if self.sign.isidentifier() or "." in self.sign:
            return f"{self.sign}({', '.join(map(repr, self.args))})"
        if len(self.args) == 1:
            return f"{self.sign}{self.args[0]!r}"
        return f"({self.args[0]!r} {self.sign} {self.args[1]!r})"


class Symbol(Deferred):
    """A size that is known at the call. Two objects are two sizes, whatever their names."""

    __slots__ = ("__weakref__", "dtype", "name")

    def __init__(self, name: str, dtype: str):
        self.name = name
        self.dtype = dtype

    def __tirx_expr__(self, ctx: Any) -> Any:
        return state.need(f"symbol '{self.name}'").captured_symbol(self)

    def __repr__(self) -> str:
        return self.name


class Literal(Deferred):
    """T.float16(2.0) outside a kernel; the range is checked where it is used."""

    __slots__ = ("dtype", "value")

    def __init__(self, dtype: str, value: Any):
        self.dtype = dtype
        self.value = value

    def __tirx_expr__(self, ctx: Any) -> Any:
        if isinstance(self.value, (int, float, str)):
            return _core.literal(ctx, self.dtype, self.value)
        return _core.cast(ctx, self.dtype, _value(self.value, ctx))

    def __repr__(self) -> str:
        return f"T.{self.dtype}({self.value!r})"


def _install() -> None:
    binary = {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "truediv": "/",
        "floordiv": "//",
        "mod": "%",
        "lshift": "<<",
        "rshift": ">>",
        "and_": "&",
        "or_": "|",
        "xor": "^",
        "pow": "**",
    }
    for name, sign in binary.items():
        function = getattr(operator, name)
        plain = name.rstrip("_")
        setattr(Deferred, f"__{plain}__", lambda a, b, s=sign, f=function: apply(s, f, a, b))
        setattr(Deferred, f"__r{plain}__", lambda a, b, s=sign, f=function: apply(s, f, b, a))
    for name, sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
        function = getattr(operator, name)
        setattr(Deferred, f"__{name}__", lambda a, b, s=sign, f=function: apply(s, f, a, b))
    for name, sign in {"neg": "-", "invert": "~", "abs": "abs"}.items():
        function = getattr(operator, name)
        setattr(Deferred, f"__{name}__", lambda a, s=sign, f=function: apply(s, f, a))


_install()


def dynamic(name: str, dtype: Any = "int32") -> Symbol:
    """A size named `name`, known at the call: `n = T.dynamic("n")`, then `T.Tensor((n,), T.float32)`."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"T.dynamic needs a name that is an identifier, got {name!r}")
    text = _core.parse_dtype(dtype)
    if text not in ("int32", "int64", "uint32", "uint64"):
        raise ValueError(f"a size must be int32, int64, uint32 or uint64, got {text}")
    return Symbol(name, text)
