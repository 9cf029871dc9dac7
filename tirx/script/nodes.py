# SPDX-License-Identifier: Apache-2.0
"""Objects of the print form and names of types: T.Range, T.Var, T.Call, T.PrimType, ...

Most type names of the originals only stand in annotations and isinstance tests of helper code. They are here so that
such code loads; what can have a meaning in a kernel has it.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import dtypes, frames, ops, state
from tirx.script.annotations import HandleType, LetType, Ptr
from tirx.script.dtypes import ArrayAnnotation, DType
from tirx.script.ops import Receipt

Expr, Buffer, Region = _core.Expr, _core.Buffer, _core.Region


class Range(frames.Loop):
    """T.Range(begin, end), T.Range(end): an interval; a loop over it, and an index of T.TensorRegion."""

    __slots__ = ()

    def __init__(self, begin: Any, end: Any = None):
        super().__init__("serial", begin, end)

    @property
    def min(self) -> Any:
        return self.start

    @property
    def extent(self) -> Any:
        return self.stop - self.start

    @staticmethod
    def from_min_extent(begin: Any, extent: Any) -> Range:
        return Range(begin, begin + extent)

    def __repr__(self) -> str:
        return f"T.Range({self.start!r}, {self.stop!r})"


def Var(name: str, ty: Any = None, *, dtype: Any = None) -> Any:
    """A variable, to be bound by T.Let or by the annotation T.let[T.Var(...)]."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"T.Var needs a name that is an identifier, got {name!r}")
    given = ty if ty is not None else dtype
    p = state.need("T.Var")
    if isinstance(given, HandleType):
        return p.add_fresh(_core.var(p.ctx, "free", name, "handle", given.elem, given.scope))
    return p.add_fresh(_core.var(p.ctx, "free", name, "int32" if given is None else given))


def var(dtype: Any, name: str = "v") -> Any:
    """An older form of T.Var, with the dtype first."""
    return Var(name, dtype)


def Call(
    callee: Any, args: Any = (), attrs: Any = None, *, ty: Any = None, ret_ty: Any = None, dtype: Any = None
) -> Any:
    """T.Call("exp", [x], ty=T.float32), T.Call(Module.g, [x]): an operation by name, or a function."""
    if attrs:
        raise ValueError("T.Call(attrs=...) is not supported by tirx: use the operation's own function")
    if isinstance(callee, Op):
        callee = callee.name
    if not isinstance(callee, str):
        if not callable(callee):
            raise TypeError(f"T.Call needs the name of an operation or a function, got {type(callee).__name__}")
        return callee(*args)
    given = ty if ty is not None else ret_ty if ret_ty is not None else dtype
    return ops.call_intrin(callee, *args, ty=given)


def make_node(name: str, *args: Any, **fields: Any) -> Any:
    """The constructor that T has under this name, called."""
    from tirx.script import tirx as T

    return getattr(T, name.rpartition(".")[2])(*args, **fields)


def Tuple(*values: Any) -> tuple:
    """Several values as one: a Python tuple."""
    return values


def BufferLoad(buffer: Any, indices: Any) -> Any:
    """buffer[indices]."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"T.BufferLoad needs a buffer, got {type(buffer).__name__}")
    return buffer[tuple(indices) if isinstance(indices, (list, tuple)) else (indices,)]


TensorLoad = BufferLoad


def TensorRegion(buffer: Any, ranges: Any) -> Any:
    """buffer[a:b, ...] of T.Range objects."""
    return BufferLoad(buffer, [slice(r.start, r.stop) if isinstance(r, Range) else r for r in ranges])


def type_annotation(dtype: Any) -> Any:
    """A dtype as an argument of T.tvm_access_ptr."""
    return dtypes.dtype(_core.parse_dtype(dtype))


PrimType = Prim = DataTypeImm = type_annotation
PtrType = PointerType = Ptr


def GenericConst(value: Any, ty: Any = "int32") -> Any:
    """A literal."""
    return _core.literal(state.context("T.GenericConst"), ty, value)


class Op:
    """An operation by name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    @staticmethod
    def get(name: str) -> Op:
        return Op(name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return Call(self, args, **keywords)

    def __repr__(self) -> str:
        return f"T.Op({self.name!r})"


class Named:
    """Base of types that are only named: they keep what they were made of."""

    __slots__ = ("args", "fields")

    def __init__(self, *args: Any, **fields: Any):
        self.args = args
        self.fields = fields

    def __repr__(self) -> str:
        words = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.fields.items())]
        return f"T.{type(self).__name__}({', '.join(words)})"


class MissingType(Named):
    """The type of T.MISSING."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class CallEffectKind:
    """Names of how much an operation may do."""

    kExprAnnotation, kPure, kReadState, kUpdateState, kSpecialCallArg, kOpaque = range(6)


MISSING = Missing = MissingType()


def _named() -> dict[str, Any]:
    names = (
        "Type FuncType Func TensorRegionType StringType String OpaqueType Opaque Lambda ExecScope ScopeIdDef"
        " IRModuleFrame CallFFIKernelAttr"
    )
    return {name: type(name, (Named,), {"__slots__": (), "__doc__": "A type's name."}) for name in names.split()}


TYPES: dict[str, Any] = {
    **_named(),
    "LetAnnotation": LetType,
    "LocalVectorAnnotation": ArrayAnnotation,
    "DtypeConstructor": DType,
    "AlreadyEmitted": Receipt,
}
