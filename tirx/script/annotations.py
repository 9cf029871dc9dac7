# SPDX-License-Identifier: Apache-2.0
"""What may stand behind a colon: tensors, pointers, lets, compile-time parameters.

These objects are made by Python when the `def` runs, outside any kernel, so they only hold what was written. The parser
turns them into buffers and variables of the kernel.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import dtypes, state


def _natural(name: str, value: Any) -> int:
    """-1 is the older way to say nothing."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a number of bytes, got {value!r}")
    return max(value, 0)


class MemoryScope(str):
    """The name of a memory space, equal to the string."""

    __slots__ = ()

    def __new__(cls, name: str) -> MemoryScope:
        if name not in _core.scopes():
            raise ValueError(f"unknown storage scope '{name}', expected one of {', '.join(_core.scopes())}")
        return super().__new__(cls, name)


def _old(spelling: str, now: str) -> None:
    import warnings

    warnings.warn(f"{spelling} is an old spelling: write {now}", DeprecationWarning, stacklevel=3)


class TensorType:
    """T.Buffer((n, 4), "float32") or T.Tensor((n, 4), T.float32)."""

    __slots__ = ("dtype", "fields", "is_g2", "shape")

    def __init__(self, shape: Any, dtype: Any, is_g2: bool, fields: dict[str, Any]):
        if isinstance(shape, list):
            shape = tuple(shape)
        if not isinstance(shape, tuple):
            shape = (shape,)
        scope = fields.get("scope", "global")
        if scope not in _core.scopes():
            raise ValueError(f"unknown storage scope '{scope}', expected one of {', '.join(_core.scopes())}")
        self.shape = shape
        self.dtype = _core.parse_dtype(dtype)
        self.is_g2 = is_g2
        self.fields = fields

    def __or__(self, other: object) -> Any:
        return dtypes.optional(self, other)

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"T.{'Tensor' if self.is_g2 else 'Buffer'}({self.shape!r}, {self.dtype!r})"


class _BufferMaker:
    """T.Buffer: called, or (an old spelling) subscripted."""

    __slots__ = ()

    def __call__(
        self,
        shape: Any,
        dtype: Any = "float32",
        data: Any = None,
        strides: Any = None,
        elem_offset: Any = None,
        byte_offset: Any = None,
        scope: str = "global",
        align: int = 0,
        offset_factor: int = 0,
        layout: Any = "default",
    ) -> TensorType:
        fields = {
            "strides": strides,
            "elem_offset": elem_offset,
            "byte_offset": byte_offset,
            "scope": scope,
            "align": _natural("align", align),
            "offset_factor": offset_factor,
            "layout": check_layout(layout),
        }
        if data is not None:
            raise TypeError("T.Buffer(..., data=...) is not an annotation: use T.decl_buffer(shape, dtype, data=...)")
        if elem_offset is not None and byte_offset is not None:
            raise ValueError("elem_offset and byte_offset cannot be set at the same time")
        return TensorType(shape, dtype, False, fields)

    __iter__ = None  # a subscript is an annotation: without this, Python would iterate over 0, 1, 2, ... for ever

    def __getitem__(self, item: Any) -> TensorType:
        _old("T.Buffer[...]", "T.Buffer(shape, dtype)")
        return self(*item) if isinstance(item, tuple) and len(item) == 2 and dtypes.is_dtype(item[1]) else self(item)

    def __repr__(self) -> str:
        return "T.Buffer"


def check_layout(layout: Any) -> Any:
    """The value of `layout=`: there are no layouts yet but the dense one and none."""
    if layout is None or isinstance(layout, str) and layout == "default":
        return layout
    if isinstance(layout, (str, bool, int, float, tuple, list, dict)):
        raise TypeError(f"layout must be a Layout, None, or 'default', got {layout!r}")
    raise ValueError("a layout is not supported by tirx yet: give a shape and strides")


class _TensorMaker:
    """T.Tensor: the dtype is required."""

    __slots__ = ()

    def __call__(
        self,
        shape: Any,
        dtype: Any,
        scope: str = "global",
        align: int = 0,
        layout: Any = None,
        *,
        data_alignment: int | None = None,
    ) -> TensorType:
        fields = {
            "scope": scope,
            "align": data_alignment if data_alignment is not None else _natural("align", align),
            "layout": "default" if layout is None else check_layout(layout),
        }
        return TensorType(shape, dtype, True, fields)

    def __repr__(self) -> str:
        return "T.Tensor"


class HandleType:
    """T.handle, T.handle("float32", "global"), T.Ptr(T.float32), T.TensorMap()."""

    __slots__ = ("elem", "scope")
    __tirx_dtype__ = "handle"

    def __init__(self, elem: str | None = None, scope: str = "global"):
        self.elem = elem
        self.scope = scope

    @property
    def dtype(self) -> str:
        return "handle"

    def __call__(self, elem: Any = None, storage_scope: str = "global") -> Any:
        if elem is None:
            return HandleType(None, storage_scope)
        if isinstance(elem, str) and elem.lower() == "tensormap":
            return HandleType("tensormap", storage_scope)
        text = _core.parse_dtype(elem)
        made = HandleType(None if text == "void" else text, storage_scope)
        if storage_scope not in _core.scopes():
            raise ValueError(f"unknown storage scope '{storage_scope}', expected one of {', '.join(_core.scopes())}")
        p = state.parser()
        if p is not None and not p.in_annotation:
            # print form: a pointer variable that is declared before its use
            return p.new_pointer(made)
        return made

    def __or__(self, other: object) -> Any:
        return dtypes.optional(self, other)

    __ror__ = __or__

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HandleType) and (self.elem, self.scope) == (other.elem, other.scope) or other == "handle"
        )

    def __hash__(self) -> int:
        return hash("handle")

    def __str__(self) -> str:
        return "handle"

    def __repr__(self) -> str:
        return "T.handle" if self.elem is None else f"T.handle({self.elem!r}, {self.scope!r})"


class LetType:
    """T.let, T.let[T.int64]: an immutable binding."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any = None):
        self.inner = inner

    __iter__ = None  # a subscript is an annotation: without this, Python would iterate over 0, 1, 2, ... for ever

    def __getitem__(self, inner: Any) -> LetType:
        return LetType(inner)

    @property
    def dtype(self) -> str | None:
        if self.inner is None or isinstance(self.inner, HandleType):
            return None
        if isinstance(self.inner, _core.Expr):
            return None if self.inner.dtype == "handle" else self.inner.dtype
        return _core.parse_dtype(self.inner)

    def __repr__(self) -> str:
        return "T.let" if self.inner is None else f"T.let[{self.inner!r}]"


class NoneType:
    """T.NoneType(): the printed form of an optional parameter that is absent."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "T.NoneType()"


class Constexpr:
    """T.constexpr: a parameter that .specialize() gives; T.constexpr(x): x must be known while the kernel is built."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        if len(value) != 1:
            raise TypeError(f"T.constexpr takes exactly one argument, got {len(value)}")
        if state.is_ir(value[0]):
            state.fail("CONSTEXPR_AT_RUN_TIME", value[0].dtype, outside=TypeError)
        return value[0]

    def __repr__(self) -> str:
        return "T.constexpr"


Buffer = _BufferMaker()
Tensor = _TensorMaker()
handle = HandleType()
let = LetType()
constexpr = Constexpr()


def TensorMap() -> HandleType:
    """A CUDA tensor map: 128 bytes that the kernel takes by value."""
    return HandleType("tensormap")


class _PtrMaker:
    """T.Ptr(T.float32, "global"): a typed pointer; T.Ptr(T.void) is T.handle."""

    __slots__ = ()

    def __call__(self, elem: Any = None, scope: str = "global") -> HandleType:
        text = None if elem is None else _core.parse_dtype(elem)
        return HandleType(None if text == "void" else text, scope)

    __iter__ = None

    def __getitem__(self, item: Any) -> HandleType:
        _old("T.Ptr[...]", "T.Ptr(dtype, scope)")
        return self(*item) if isinstance(item, tuple) else self(item)

    def __repr__(self) -> str:
        return "T.Ptr"


Ptr = _PtrMaker()
buffer = buffer_decl = Buffer  # older names
buffer_var = Ptr


def Optional(inner: Any) -> dtypes.Optional:
    """A parameter of a @T.jit function that may be absent."""
    return dtypes.Optional(inner)
