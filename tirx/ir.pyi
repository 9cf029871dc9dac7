# SPDX-License-Identifier: Apache-2.0
# Written by tools/stubs.py from csrc/ir/nodes.def. Do not edit.
"""The IR as Python objects, for type checkers."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from tirx._core import Buffer as Buffer
from tirx._core import Expr as _Expr
from tirx._core import Function as Function

PrimFunc = Function
_N = TypeVar("_N", bound=_Expr)
_F = TypeVar("_F")

class Node(_Expr): ...
class PrimExpr(Node): ...
class Stmt(Node): ...

class Var(PrimExpr):
    name: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class IntImm(PrimExpr):
    value: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class FloatImm(PrimExpr):
    value: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class StringImm(PrimExpr):
    value: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class EQ(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class NE(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class LT(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class GE(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class GT(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class LE(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Add(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Sub(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Mul(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Div(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Mod(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class FloorDiv(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class FloorMod(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Call(PrimExpr):
    name: Any
    source: Any
    __match_args__ = ("op", "args",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Min(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Max(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class And(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Or(PrimExpr):
    a: Any
    b: Any
    __match_args__ = ("a", "b",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Not(PrimExpr):
    a: Any
    __match_args__ = ("a",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Cast(PrimExpr):
    value: Any
    __match_args__ = ("value",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Select(PrimExpr):
    cond: Any
    t: Any
    f: Any
    __match_args__ = ("cond", "t", "f",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Let(PrimExpr):
    value: Any
    body: Any
    var: Any
    __match_args__ = ("value", "body",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Ramp(PrimExpr):
    base: Any
    stride: Any
    lanes: Any
    __match_args__ = ("base", "stride",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Broadcast(PrimExpr):
    value: Any
    lanes: Any
    __match_args__ = ("value",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Shuffle(PrimExpr):
    vectors: Any
    indices: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class BufferLoad(PrimExpr):
    indices: Any
    buffer: Any
    __match_args__ = ("indices",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class SeqStmt(Stmt):
    seq: Any
    __match_args__ = ("seq",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Bind(Stmt):
    value: Any
    var: Any
    __match_args__ = ("value",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class BufferStore(Stmt):
    value: Any
    indices: Any
    buffer: Any
    __match_args__ = ("value", "indices",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class AllocBuffer(Stmt):
    buffer: Any
    annotations: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class DeclBuffer(Stmt):
    data: Any
    buffer: Any
    __match_args__ = ("data",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class For(Stmt):
    start: Any
    stop: Any
    step: Any
    body: Any
    var: Any
    min: Any
    extent: Any
    kind: Any
    unroll: Any
    annotations: Any
    __match_args__ = ("start", "stop", "step", "body",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class While(Stmt):
    cond: Any
    body: Any
    __match_args__ = ("cond", "body",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class IfThenElse(Stmt):
    cond: Any
    then: Any
    else_: Any
    __match_args__ = ("cond", "then", "else_",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Break(Stmt):
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Continue(Stmt):
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Return(Stmt):
    value: Any
    __match_args__ = ("value",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Evaluate(Stmt):
    expr: Any
    __match_args__ = ("expr",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class AssertStmt(Stmt):
    cond: Any
    kind: Any
    parts: Any
    __match_args__ = ("cond",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class AttrStmt(Stmt):
    value: Any
    body: Any
    key: Any
    __match_args__ = ("value", "body",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class MatchBuffer(Stmt):
    param: Any
    buffer: Any
    __match_args__ = ("param",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class DeviceEntry(Stmt):
    body: Any
    grid_x: Any
    grid_y: Any
    grid_z: Any
    block_x: Any
    block_y: Any
    block_z: Any
    cluster_x: Any
    cluster_y: Any
    cluster_z: Any
    preferred_x: Any
    preferred_y: Any
    preferred_z: Any
    dyn_smem: Any
    stream: Any
    priority: Any
    with_form: Any
    __match_args__ = ("body", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "cluster_x", "cluster_y", "cluster_z", "preferred_x", "preferred_y", "preferred_z", "dyn_smem", "stream", "priority",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class ScopeIdDef(Stmt):
    vars: Any
    extents: Any
    preferred: Any
    binding: Any
    __match_args__ = ()
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class Launch(Stmt):
    body: Any
    grid_x: Any
    grid_y: Any
    grid_z: Any
    block_x: Any
    block_y: Any
    block_z: Any
    cluster_x: Any
    cluster_y: Any
    cluster_z: Any
    preferred_x: Any
    preferred_y: Any
    preferred_z: Any
    dyn_smem: Any
    stream: Any
    priority: Any
    kernel: Any
    __match_args__ = ("body", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "cluster_x", "cluster_y", "cluster_z", "preferred_x", "preferred_y", "preferred_z", "dyn_smem", "stream", "priority", "args",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

class TilePrimitiveCall(Stmt):
    __match_args__ = ("args",)
    def __new__(cls, *args: Any, **fields: Any) -> Any: ...

CLASSES: dict[str, type]

def class_of(node: _Expr) -> type: ...
def fields(node: _Expr) -> dict[str, Any]: ...
def walk(x: Any, fn: Callable[[Any], object], order: str = ...) -> None: ...
@overload
def nodes(x: Any, cls: type[_N]) -> Iterator[_N]: ...
@overload
def nodes(x: Any, cls: Any = None) -> Iterator[Any]: ...
def rewrite(x: _F, fn: Callable[[Any], Any]) -> _F: ...
