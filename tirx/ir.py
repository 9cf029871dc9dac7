# SPDX-License-Identifier: Apache-2.0
"""The IR as Python objects: classes of nodes, walking, rewriting.

    for_loop = f.body
    isinstance(for_loop, tirx.ir.For), for_loop.var, for_loop.extent, for_loop.body
    tirx.walk(f, print)
    g = tirx.rewrite(f, lambda n: n.a if isinstance(n, tirx.ir.Add) and n.b == 0 else None)

A node is a tirx._core.Expr, whatever its class; the classes here are for isinstance, `match` and making nodes. They
come from the table of the core. An operation that has no class of its own is a Call, with `op` saying which.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from tirx import _core
from tirx.module import IRModule, core_of

Buffer = _core.Buffer
PrimFunc = Function = _core.Function


class NodeClass(type):
    """A class of nodes: what is an instance depends on the node's operation."""

    _ops: frozenset[str]

    def __instancecheck__(cls, x: object) -> bool:
        return x.__class__ is _core.Expr and x.op in cls._ops  # type: ignore[attr-defined]

    def __subclasscheck__(cls, other: type) -> bool:
        return isinstance(other, NodeClass) and other._ops <= cls._ops

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        return _make(cls, args, fields)

    def __repr__(cls) -> str:
        return f"<class tirx.ir.{cls.__name__}>"


def _classes() -> dict[str, NodeClass]:
    rows: dict[str, list[tuple]] = {}
    for row in _core.node_classes():
        rows.setdefault(row[1], []).append(row)
    found: dict[str, NodeClass] = {}
    for name, members in rows.items():
        children = tuple(word.rstrip("*") for word in members[0][2].split())
        others = tuple(members[0][3].split())
        space = {
            "_ops": frozenset(row[0] for row in members),
            "_fields": children + others if name != "Call" else ("op", "args", "dtype", *others),
            "__match_args__": children if name != "Call" else ("op", "args"),
            "__doc__": f"Fields: {', '.join(children + others) or 'none'}.",
            "__module__": "tirx.ir",
        }
        found[name] = NodeClass(name, (), space)
    for name in ("PrimExpr", "Stmt"):
        ops = frozenset(row[0] for row in _core.node_classes() if row[4] == name)
        found[name] = NodeClass(name, (), {"_ops": ops, "_fields": (), "__module__": "tirx.ir"})
    ops = found["PrimExpr"]._ops | found["Stmt"]._ops
    found["Node"] = NodeClass("Node", (), {"_ops": ops, "_fields": (), "__module__": "tirx.ir"})
    return found


CLASSES = _classes()
globals().update(CLASSES)
_BY_OP = {op: cls for name, cls in CLASSES.items() if name not in ("PrimExpr", "Stmt", "Node") for op in cls._ops}


def class_of(node: Any) -> NodeClass:
    """The class of a node: class_of(f.body) is tirx.ir.For."""
    return _BY_OP[_node(node, "class_of").op]


def fields(node: Any) -> dict[str, Any]:
    """The fields of a node by name."""
    return {name: getattr(node, name) for name in class_of(node)._fields}  # type: ignore[attr-defined]


def _node(x: Any, what: str) -> Any:
    if isinstance(x, _core.Expr):
        return x
    raise TypeError(f"{what}: expected a node, got {type(x).__name__}")


def _make(cls: NodeClass, args: tuple, given: dict[str, Any]) -> Any:
    """A node from its fields, in the function that the fields belong to."""
    names = list(cls.__match_args__) if hasattr(cls, "__match_args__") else []
    name = cls.__name__
    if name == "BufferStore":
        names = ["buffer", "value", "indices"]
    elif name == "Bind":
        names = ["var", "value"]
    elif name == "BufferLoad":
        names = ["buffer", "indices"]
    elif name == "Cast":
        names = ["dtype", "value"]
    elif name == "IfThenElse" and len(args) + len(given) == 2:
        given = {**given, "else_": None}
    if len(args) > len(names):
        raise TypeError(f"{name} takes {len(names)} field(s), got {len(args)}")
    values = {**dict(zip(names, args, strict=False)), **given}
    if set(values) != set(names) or len(values) != len(args) + len(given):
        raise TypeError(f"{name} takes the fields {', '.join(names) or 'none'}; got {', '.join(values) or 'none'}")
    found = [values[n] for n in names]
    ctx = _context(found) or _rewriting.ctx
    if ctx is None:
        raise TypeError(f"{name}: a field must be a node or a buffer, or tirx.rewrite running: whose is the node?")
    if name == "BufferLoad":
        indices = found[1] if isinstance(found[1], (tuple, list)) else (found[1],)
        return found[0].load(*indices)
    if name == "Cast":
        return _core.cast(ctx, *found)
    if isinstance(cls, NodeClass) and cls._ops <= _binary_rows():
        return _core.op(ctx, next(iter(cls._ops)), *found)
    return _core.make_statement(ctx, name, *found)


class _Rewriting(threading.local):
    ctx: Any = None  # of the function that this thread rewrites


_rewriting = _Rewriting()


def _binary_rows() -> frozenset[str]:
    return frozenset(row[1] for row in _core.ops() if row[4] in ("ARITH", "COMPARE", "LOGIC"))


def _context(values: list[Any]) -> Any:
    for v in values:
        if isinstance(v, (_core.Expr, _core.Buffer, _core.Region)):
            return v.ctx
        if isinstance(v, (list, tuple)):
            found = _context(list(v))
            if found is not None:
                return found
    return None


# ---- walking and rewriting -----------------------------------------------------------------------------------------


def _bodies(x: Any, what: str) -> list[Any]:
    if isinstance(x, _core.Expr):
        return [x]
    core = core_of(x, what)
    if isinstance(core, _core.Module):
        return [core[name].body for name in core.names]
    return [core.body]


def walk(x: Any, fn: Callable[[Any], object], order: str = "pre") -> None:
    """Calls fn with every node of a function, a module or a node: parents first, or with order="post" children first.
    In "pre" order the children of a node are left out where fn gives False."""
    if order not in ("pre", "post"):
        raise ValueError(f'walk: order is "pre" or "post", not {order!r}')
    todo: list[Any] = [iter(_bodies(x, "walk"))]
    around: list[Any] = []  # nodes whose children are being walked
    while todo:
        node = next(todo[-1], None)
        if node is None:
            todo.pop()
            if around:
                done = around.pop()
                if order == "post":
                    fn(done)
            continue
        if order == "pre" and fn(node) is False:
            continue
        around.append(node)
        todo.append(iter(node.children))


def nodes(x: Any, cls: Any = None) -> Iterator[Any]:
    """All nodes, or those of a class: `for s in tirx.ir.nodes(f, tirx.ir.BufferStore)`."""
    found: list[Any] = []
    walk(x, found.append)
    return iter(found if cls is None else [n for n in found if isinstance(n, cls)])


def rewrite(x: Any, fn: Callable[[Any], Any]) -> Any:
    """The function or module with other nodes. fn is called with every node, children first, and gives what takes its
    place, or None where it stays: for a value one of the same dtype, for a statement a statement or a list of them."""
    if not callable(fn):
        raise TypeError(f"rewrite: expected a function of a node, got {type(fn).__name__}")
    core = core_of(x, "rewrite")
    before = _rewriting.ctx
    try:
        _rewriting.ctx = core.ctx
        if isinstance(core, _core.Module):
            return IRModule({name: _core.rewrite(core[name], fn) for name in core.names})
        return _core.rewrite(core, fn)
    finally:
        _rewriting.ctx = before
