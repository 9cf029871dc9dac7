# SPDX-License-Identifier: Apache-2.0
"""Dtypes as objects: T.int32 is a dtype, a literal maker, a cast, a symbol maker and an annotation.

Names, aliases and widths come from the core's table. Vector names ("float32x4") are made when first asked for.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state, symbols


class DType:
    """T.int32(5) a literal, T.int32(expr) a cast, T.int32() a new symbol, x: T.int32[4] a local array."""

    __slots__ = ("__tirx_dtype__", "_class")

    def __init__(self, text: str, cls: str = ""):
        self.__tirx_dtype__ = text
        self._class = cls

    @property
    def dtype(self) -> str:
        return self.__tirx_dtype__

    def __str__(self) -> str:
        return self.__tirx_dtype__

    def __repr__(self) -> str:
        return f"T.{self.__tirx_dtype__}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.__tirx_dtype__ == other.__tirx_dtype__
        return isinstance(other, str) and self.__tirx_dtype__ == other

    def __hash__(self) -> int:
        return hash(self.__tirx_dtype__)

    def __reduce__(self):
        return dtype, (self.__tirx_dtype__,)

    def __or__(self, other: object) -> Any:
        return optional(self, other)

    __ror__ = __or__

    __iter__ = None  # a subscript is an annotation: without this, Python would iterate over 0, 1, 2, ... for ever

    def __getitem__(self, shape: Any) -> ArrayAnnotation:
        return ArrayAnnotation(self, shape if isinstance(shape, tuple) else (shape,))

    def __call__(self, *value: Any) -> Any:
        p = state.parser()
        if not value:
            return symbols.Symbol("v", self.__tirx_dtype__) if p is None else p.new_symbol(self.__tirx_dtype__)
        if len(value) > 1:
            raise TypeError(f"T.{self} takes at most one value, got {len(value)}")
        if p is None:
            return symbols.Literal(self.__tirx_dtype__, value[0])
        x = value[0]
        if isinstance(x, (int, float, str)):
            return _core.literal(p.ctx, self.__tirx_dtype__, x)
        return _core.cast(p.ctx, self.__tirx_dtype__, x)


class ArrayAnnotation:
    """x: T.float32[4]: a local array."""

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: DType, shape: tuple):
        self.dtype = dtype
        self.shape = shape


class Optional:
    """T.Optional(X), X | None: a parameter of a @T.jit function that may be absent."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any):
        self.inner = inner


def optional(inner: Any, other: object) -> Any:
    return Optional(inner) if other is None else NotImplemented


_made: dict[str, DType] = {}


def dtype(text: str) -> DType:
    """The object of a dtype's text; the same text gives the same object."""
    found = _made.get(text)
    if found is None:
        canonical = _core.parse_dtype(text)
        found = _made.setdefault(canonical, DType(canonical))
    return found


def of_name(name: str) -> DType | None:
    """The dtype that T.<name> names, or None."""
    if name in _made:
        return _made[name]
    if not name[-1:].isdigit() or "x" not in name:
        return None
    try:
        return dtype(name)
    except ValueError:
        return None


def is_dtype(x: Any) -> bool:
    """Whether x, in a place where a name could stand too, says a dtype."""
    if isinstance(x, str):
        try:
            _core.parse_dtype(x)
        except ValueError:
            return False
        return True
    return hasattr(x, "__tirx_dtype__") or _is_foreign(x)


def _is_foreign(x: Any) -> bool:
    """Whether x is a dtype, or a class of scalars, of NumPy or torch."""
    kinds = (x,) if isinstance(x, type) else [c for c in type(x).__mro__ if c.__name__ == "dtype"]
    if not any(c.__module__.partition(".")[0] in ("numpy", "torch", "ml_dtypes") for c in kinds):
        return False
    try:
        _core.parse_dtype(x)
    except (TypeError, ValueError):
        return False
    return True


def of_annotation(x: Any) -> Any:
    """The dtype that stands behind a colon; what is none is given back."""
    return dtype(_core.parse_dtype(x)) if _is_foreign(x) else x


def names() -> dict[str, DType]:
    """Every scalar dtype by its names in T."""
    table: dict[str, DType] = {}
    for text, alias, cls, _, _ in _core.dtypes():
        found = _made.setdefault(text, DType(text, cls))
        table[text] = found
        if alias:
            table[alias] = found
    return table
