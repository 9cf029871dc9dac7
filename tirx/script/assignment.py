# SPDX-License-Identifier: Apache-2.0
"""Assignments: what a name, an element or an attribute on the left means.

In the g1 dialect a scalar name is a mutable cell from the start. In g2, and in the host zone of both, it is an
immutable binding. Where a loop or branch will assign to an immutable name that is bound outside, the name becomes a
cell before the loop or branch is entered, so that the assignment reaches the outer variable as in Python. Where that
is not possible (buffers, pointers, Python values) the name is lost behind the block, and reading it is an error.
"""

from __future__ import annotations

import ast
from typing import Any

from tirx import _core
from tirx.script import dtypes, frames, source
from tirx.script.annotations import HandleType, LetType, TensorType
from tirx.script.expressions import (
    _INPLACE,
    IR,
    Buffer,
    Expr,
    MetaVar,
    describe,
    is_impure,
    is_number,
    subscript_text,
)
from tirx.script.scope import MISSING, Lost

_SIMPLE = ("VAR", "INT", "FLOAT")
_JUMPS = (ast.Return, ast.Break, ast.Continue)


# ---- which names a block assigns; kept on the nodes ----------------------------------------------------------------


def stores(nodes: list[ast.stmt]) -> dict[str, bool]:
    """Names that the statements assign to -> whether every assignment is of a meta_var."""
    found: dict[str, bool] = {}

    def add(target: ast.expr, meta: bool) -> None:
        if isinstance(target, ast.Name):
            found[target.id] = found.get(target.id, True) and meta
        elif isinstance(target, (ast.Tuple, ast.List)):
            for t in target.elts:
                add(t, meta)
        elif isinstance(target, ast.Starred):
            add(target.value, meta)

    def walk(body: list[ast.stmt]) -> None:
        for s in body:
            if isinstance(s, ast.Assign):
                f = s.value.func if isinstance(s.value, ast.Call) else None
                for t in s.targets:
                    add(t, isinstance(f, ast.Attribute) and f.attr == "meta_var")
            elif isinstance(s, (ast.AugAssign, ast.AnnAssign)):
                add(s.target, False)
            elif isinstance(s, (ast.For, ast.While, ast.If, ast.With)):
                walk(s.body)
                walk(getattr(s, "orelse", []))

    walk(nodes)
    return found


def stores_of(node: ast.stmt) -> dict[str, bool]:
    try:
        return node._tirx_stores  # type: ignore[attr-defined]
    except AttributeError:
        node._tirx_stores = found = stores([node])  # type: ignore[attr-defined]
        return found


def always_stores(nodes: list[ast.stmt]) -> set[str]:
    """Names that the statements assign to on every way through them."""
    found: set[str] = set()
    for s in nodes:
        if isinstance(s, ast.Assign):
            todo = list(s.targets)
            for t in todo:
                if isinstance(t, ast.Name):
                    found.add(t.id)
                elif isinstance(t, (ast.Tuple, ast.List)):
                    todo.extend(t.elts)
        elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is not None:
            found.add(s.target.id)
        elif isinstance(s, ast.If):
            found |= arms_store(s)
    return found


def arms_store(node: ast.If) -> set[str]:
    """Names that are assigned to in every arm whose end is reached."""
    try:
        return node._tirx_arms  # type: ignore[attr-defined]
    except AttributeError:
        ends = [always_stores(a) for a in (node.body, node.orelse) if not (a and isinstance(a[-1], _JUMPS))]
        found = set.intersection(*ends) if ends else set()
        node._tirx_arms = found  # type: ignore[attr-defined]
        return found


def is_scalar(buffer: Buffer) -> bool:
    """Whether an assignment to the buffer's name stores its one element."""
    if buffer.is_cell:
        return True
    shape = buffer.shape
    return len(shape) == 1 and shape[0].__class__ is int and shape[0] == 1


class Assignments:
    """The part of the Parser that assigns."""

    ctx: Any
    builder: Any
    scope: Any

    # ---- assignment ------------------------------------------------------------------------------------------------

    def assign(self, node: ast.Assign) -> None:
        value = self.right_side(node.value)
        if len(node.targets) > 1 and isinstance(value, IR) and not self.is_fresh(value):
            self.at(node)
            value = self.once(value)
        for target in node.targets:
            self.assign_to(target, value, node)
            if value.__class__ in (list, tuple) and target.__class__ is ast.Name:
                value = self.scope.names.get(target.id, value)  # the next name is for the same cells

    def right_side(self, node: ast.expr) -> Any:
        self.emitted += 1
        if node.__class__ is ast.Tuple:
            return tuple(self.elements(node.elts, True))  # type: ignore[attr-defined]
        if node.__class__ is ast.List:
            return self.note_made(self.elements(node.elts, True))  # type: ignore[attr-defined]
        return self.eval(node)

    def once(self, value: Any) -> Any:
        """A value that several stores use, or that a store may change."""
        if isinstance(value, Buffer) and not is_scalar(value):
            return value
        if isinstance(value, Expr) and value.op in _SIMPLE:
            return value
        return self.builder.bind("t", value)

    def assign_to(self, target: ast.expr, value: Any, node: ast.stmt) -> None:
        kind = target.__class__
        if kind is ast.Name:
            self.at(node)
            self.assign_name(target.id, value, node)  # type: ignore[attr-defined]
        elif kind is ast.Subscript:
            self.assign_item(target, value, node)  # type: ignore[arg-type]
        elif kind is ast.Attribute:
            self.assign_attribute(target, value, node)  # type: ignore[arg-type]
        elif kind is ast.Tuple or kind is ast.List:
            self.unpack(target, value, node)  # type: ignore[arg-type]
        else:
            self.at(target)
            self.ctx.fail("UNSUPPORTED_STATEMENT", f"assignment to {type(target).__name__}")

    def unpack(self, target: ast.Tuple | ast.List, value: Any, node: ast.stmt) -> None:
        meta = isinstance(value, MetaVar)
        if meta:
            value = value.value
        self.at(node)
        if isinstance(value, IR):
            self.ctx.fail("UNPACK_VALUE", describe(value))
        try:
            values = list(value)
        except TypeError:
            self.ctx.fail("UNPACK_VALUE", describe(value))
        if meta:
            values = [MetaVar(v) for v in values]
        elif any(map(self.is_store, target.elts)):
            # all right sides are taken before the first store
            values = [self.once(v) if isinstance(v, IR) and not self.is_fresh(v) else v for v in values]
        names = target.elts
        star = [k for k, t in enumerate(names) if isinstance(t, ast.Starred)]
        if len(star) > 1 or (len(values) != len(names) if not star else len(values) < len(names) - 1):
            self.ctx.fail("UNPACK_COUNT", len(names) - len(star), len(values))
        if star:
            k = star[0]
            behind = len(names) - k - 1
            middle = values[k : len(values) - behind]
            for t, v in zip(names[:k], values[:k], strict=False):
                self.assign_to(t, v, node)
            self.assign_to(names[k].value, self.note_made(middle), node)  # type: ignore[attr-defined]
            for t, v in zip(names[k + 1 :], values[len(values) - behind :], strict=False):
                self.assign_to(t, v, node)
            return
        for t, v in zip(names, values, strict=False):
            self.assign_to(t, v, node)

    def is_store(self, target: ast.expr) -> bool:
        """Whether assigning to the target writes memory that another right side may read."""
        if isinstance(target, ast.Name):
            return self.cell_of(target.id) is not None
        return True

    def cell_of(self, name: str) -> Buffer | None:
        """The buffer that an assignment to the name stores into, or None when the name is bound anew."""
        scope = self.scope
        if name in scope.nonlocals:
            scope = scope.parent.owner(name) if scope.parent is not None else None
            value = MISSING if scope is None else scope.names[name]
        else:
            value = scope.names.get(name, MISSING)
            if value is MISSING and scope.parent is not None:
                owner = scope.parent.owner(name)
                value = MISSING if owner is None else owner.names[name]
                if value.__class__ is Buffer and not value.is_cell:
                    return None
            elif self.is_others(scope, name):
                return None
        return value if value.__class__ is Buffer and is_scalar(value) else None

    def is_others(self, scope: Any, name: str) -> bool:
        """Whether the name, though bound to a cell, is a local of its own as in Python: a loop's over Python values,
        or in g2 a parameter of an inline function."""
        return name in scope.borrowed or self.dialect == "g2" and name in scope.stored

    def bind_name(self, name: str, value: Any) -> None:
        scope = self.scope
        if name in scope.nonlocals:
            owner = scope.parent.owner(name) if scope.parent is not None else None
            if owner is not None:
                owner.bind(name, value)
                return
        scope.bind(name, value)

    def assign_name(self, name: str, value: Any, node: ast.stmt) -> None:
        cls = value.__class__
        if cls is MetaVar:
            self.bind_name(name, value.value)
            return
        if cls is Buffer:
            if self.is_fresh(value):
                self.take_fresh(value, name)
                self.bind_name(name, value)
                return
            if not value.is_cell:
                self.bind_name(name, value)  # an alias
                return
        elif cls is Expr:
            if value.dtype == "handle":
                self.assign_pointer(name, value)
                return
            if self.is_fresh(value):
                if self.declares_quoted(name, value):
                    return
                self.take_fresh(value, name)
                self.bind_name(name, value)
                return
        elif not isinstance(value, (int, float)):
            self.assign_object(name, value)
            return
        cell = self.cell_of(name)
        if cell is not None:
            self.builder.store(cell, (0,), value)
            return
        hoist = self.hoists.get(name)
        if hoist is not None and self.may_hoist(name, hoist):
            self.bind_hoisted(name, hoist, value)
            return
        self.declare(name, value)

    def declare(self, name: str, value: Any) -> None:
        """A scalar name that is bound anew."""
        if self.dialect == "g1" and self.builder.zone == "device" or name in self.scope.shared:
            self.bind_name(name, self.builder.cell(name, self.dtype_of(value), value))
        elif value.__class__ is Expr and value.op in ("INT", "FLOAT"):
            self.bind_name(name, value)
        elif isinstance(value, IR):
            self.bind_name(name, self.builder.bind(name, value))
        elif self.builder.zone == "host":
            self.bind_name(name, value)
        else:
            self.bind_name(name, _core.literal(self.ctx, self.dtype_of(value), value))

    def dtype_of(self, value: Any) -> str:
        if isinstance(value, IR):
            return value.dtype
        if isinstance(value, bool):
            return "bool"
        if isinstance(value, float):
            return "float32"
        return "int32" if -(2**31) <= value < 2**31 else "int64"

    def assign_pointer(self, name: str, value: Expr) -> None:
        before = self.scope.names.get(name)
        if before.__class__ is Expr and before.dtype == "handle":
            if self.dialect == "g1" or self.scope.is_outer(name):
                self.ctx.fail("POINTER_REASSIGNED", name)
        if self.is_fresh(value) and value.elem == "tensormap":
            self.take_fresh(value, name)
            self.bind_name(name, value)
            return
        self.bind_name(name, value if self.is_fresh(value) else self.builder.bind(name, value))
        self.forget_fresh(value)

    def assign_object(self, name: str, value: Any) -> None:
        """A Python value; in g1 the scalars in a list become cells, so that xs[0] = e stores. A list of cells that has
        a name gets another one."""
        if id(value) in self.lists:
            self.bind_name(name, value)
            return
        made = value
        if self.dialect == "g1" and self.builder.zone == "device" and value.__class__ in (list, tuple):
            runtime = value.__class__ is list or any(isinstance(v, IR) for v in value)
            if runtime and all(isinstance(v, IR) or is_number(v) for v in value):
                value = value.__class__(self.cell_element(f"{name}_{k}", v) for k, v in enumerate(value))
        elif self.builder.zone == "device" and value.__class__ in (list, tuple) and any(map(is_impure, value)):
            # what is read later must be what is read now
            value = value.__class__(self.settled(f"{name}_{k}", v, True) for k, v in enumerate(value))
        elif self.builder.zone == "device" and value.__class__ is dict:
            for k, v in value.items():
                value[k] = self.settled(name, v)
        elif isinstance(value, frames.Frame):
            value = value.flat()
        name_resources = getattr(type(value), "_tirx_name_resources", None)
        if name_resources is not None:
            name_resources(value, self, name)
        if value is not made and value.__class__ in (list, tuple):
            self.lists[id(value)] = self.note_made(value)
        self.bind_name(name, value)

    def settled(self, name: str, value: Any, cells: bool = False) -> Any:
        if cells and value.__class__ is Buffer and value.is_cell and not self.is_fresh(value):
            return self.builder.bind(name, value)
        return self.builder.bind(name, value) if value.__class__ is Expr and is_impure(value) else value

    def cell_element(self, name: str, value: Any) -> Any:
        if self.is_fresh(value):
            self.take_fresh(value, name)
            return value
        if isinstance(value, Buffer) and not value.is_cell:
            return value
        if isinstance(value, Expr) and value.dtype == "handle":
            return value
        return self.builder.cell(name, self.dtype_of(value), value)

    def assign_item(self, target: ast.Subscript, value: Any, node: ast.stmt) -> None:
        owner = self.value(target.value)
        index = self.value(target.slice)
        self.at(target)
        if isinstance(value, MetaVar):
            value = value.value
        if owner.__class__ is Buffer and node.__class__ is ast.Assign and target in node.targets:  # type: ignore[attr-defined]
            self.check_stored(owner, value, node.value)  # type: ignore[attr-defined]
            self.at(target)
        self.store_item(target, owner, index, value)

    def check_stored(self, owner: Buffer, value: Any, node: ast.expr) -> None:
        """What is wrong with a Python value as an element is told where the value stands."""
        if isinstance(value, (IR, _core.Region)):
            return
        self.at(node)
        if not is_number(value):
            help = None
            if value is None and node.__class__ is ast.Call:
                help = "the function gives no value: end it with `return value`"
            self.ctx.fail("STORE_VALUE", owner.name, describe(value), help=help)
        if value.__class__ is int and value.bit_length() > 64:
            _core.as_expr(self.ctx, value)

    def store_item(self, target: ast.Subscript, owner: Any, index: Any, value: Any) -> None:
        if owner.__class__ is Buffer:
            if not (isinstance(value, (IR, _core.Region)) or is_number(value)):
                self.ctx.fail("STORE_VALUE", owner.name, describe(value))
            owner[index] = value
            return
        if owner.__class__ in (list, tuple) and isinstance(index, int) and -len(owner) <= index < len(owner):
            held = owner[index]
            if held.__class__ is Buffer and held.is_cell and (isinstance(value, IR) or is_number(value)):
                self.builder.store(held, (0,), value)
                return
        if not isinstance(owner, (IR, _core.Region)) and owner is not None:
            self.check_item(target, owner)
        if self.builder.zone == "device" and isinstance(owner, (list, dict)):
            value = self.settled("v", value, isinstance(owner, list) and self.dialect == "g2")
        try:
            owner[index] = value
        except (TypeError, KeyError, IndexError) as e:
            if isinstance(e, SyntaxError):
                raise
            if owner is None and isinstance(target.value, ast.Name):
                self.absent(target.value.id)
            if isinstance(owner, Expr):
                self.ctx.fail("STORE_INTO_VALUE", describe(owner))
            if isinstance(index, IR):
                self.ctx.fail("RUN_TIME_SUBSCRIPT", describe(owner))
            self.ctx.fail("BAD_SUBSCRIPT", describe(owner), subscript_text(e))

    def assign_attribute(self, target: ast.Attribute, value: Any, node: ast.stmt) -> None:
        owner = self.value(target.value)
        self.at(node)
        held = getattr(owner, target.attr, MISSING)
        meta = isinstance(value, MetaVar)
        if meta:
            value = value.value
        elif self.stores_into_field(held, value):  # also of classes that are no meta classes
            return
        if isinstance(owner, (Expr, Buffer)):
            self.ctx.fail("STORE_ATTRIBUTE", target.attr, describe(owner))
        if held is not value and (held is not MISSING or value.__class__ in (int, float, bool, str, type(None))):
            self.check_attribute(target, owner, held)
        if isinstance(value, IR) and self.is_fresh(value):
            self.take_fresh(value, target.attr)
        elif value.__class__ is Expr and value.op != "LOAD" and self.builder.zone == "device" and not meta:
            value = self.settled(target.attr, value)  # an element stays the place that it is
        elif hasattr(type(value), "_tirx_name_resources"):
            value._tirx_name_resources(self, target.attr)
        try:
            self.set_field(owner, target.attr, value)
        except (AttributeError, TypeError) as e:
            self.ctx.fail("NO_ATTRIBUTE", str(e))

    def stores_into_field(self, held: Any, value: Any) -> bool:
        """Stores the value where the field that it is assigned to holds a cell."""
        if self.binds_field:
            self.binds_field = False  # a property's code assigns as always
            return False
        if held.__class__ is not Buffer or not is_scalar(held):
            return False
        if not (isinstance(value, IR) or is_number(value)) or self.is_fresh(value):
            return False
        if value.__class__ is Buffer and not value.is_cell:
            return False
        if value is not held:
            self.emitted += 1
            self.builder.store(held, (0,), value)
        return True

    def set_field(self, owner: Any, name: str, value: Any) -> None:
        """The attribute itself, also of a meta class, whose plain methods store into cells."""
        outer, self.binds_field = self.binds_field, hasattr(type(owner), "_tirx_name_resources")
        try:
            setattr(owner, name, value)
        finally:
            self.binds_field = outer

    def aug_assign(self, node: ast.AugAssign) -> None:
        self.emitted += 1
        target = node.target
        if target.__class__ is ast.Name:
            current = self.name(target)  # type: ignore[arg-type]
            current, right = self.beside(current, node.value)
            value = self.updated(node, current, right)
            if value is not None:
                if not (isinstance(value, IR) or isinstance(value, (int, float))):
                    if value is current:  # a list, which has grown in place
                        self.check_changes(value, target.id)  # type: ignore[attr-defined]
                    self.bind_name(target.id, value)  # type: ignore[attr-defined]
                    return
                if self.run_time and not isinstance(current, IR) and self.scope.is_outer(target.id):  # type: ignore[attr-defined]
                    self.ctx.fail("PYTHON_VALUE_CHANGES", target.id)  # type: ignore[attr-defined]
                self.assign_name(target.id, value, node)  # type: ignore[attr-defined]
        elif target.__class__ is ast.Subscript:
            owner = self.value(target.value)  # type: ignore[attr-defined]
            index = self.value(target.slice)  # type: ignore[attr-defined]
            self.at(target)
            current = self.item(target, owner, index)  # type: ignore[arg-type]
            current, right = self.beside(current, node.value)
            value = self.updated(node, current, right)
            if value is not None:
                self.at(target)
                self.store_item(target, owner, index, value)  # type: ignore[arg-type]
        else:
            owner = self.value(target.value)  # type: ignore[attr-defined]
            try:
                current = getattr(owner, target.attr)  # type: ignore[attr-defined]
            except AttributeError as e:
                self.at(node)
                self.ctx.fail("NO_ATTRIBUTE", str(e))
            current, right = self.beside(current, node.value)
            value = self.updated(node, current, right)
            if current.__class__ is Buffer and is_scalar(current):
                self.builder.store(current, (0,), value)
            elif value is not None:
                self.check_attribute(target, owner, current)  # type: ignore[arg-type]
                self.set_field(owner, target.attr, value)  # type: ignore[attr-defined]

    def updated(self, node: ast.AugAssign, current: Any, right: Any) -> Any:
        return self.operate(node, _INPLACE[node.op.__class__], current, right)

    # ---- annotated assignment --------------------------------------------------------------------------------------

    def ann_assign(self, node: ast.AnnAssign) -> None:
        self.emitted += 1
        annotation = self.annotation(node.annotation)
        target = node.target
        self.at(node)
        if isinstance(annotation, LetType):
            self.ann_let(node, annotation)
            return
        if isinstance(annotation, dtypes.ArrayAnnotation):
            if node.value is not None:
                self.ctx.fail("ARRAY_INITIAL_VALUE")
            array = _core.buffer(self.ctx, self.target_name(target), annotation.shape, annotation.dtype, "local")
            self.builder.alloc(array)
            self.bind_target(target, array)
            return
        if annotation in (int, float, bool):
            instead = {int: "T.int32", float: "T.float32", bool: "T.bool"}[annotation]
            self.at(node.annotation)
            self.ctx.fail("PYTHON_ANNOTATION", annotation.__name__, help=f"use {instead}")
        if isinstance(annotation, (HandleType, TensorType)):
            self.at(node.annotation)
            self.ctx.fail("LET_FOR_POINTERS")
        if not isinstance(annotation, dtypes.DType):
            self.at(node.annotation)
            self.ctx.fail("BAD_ANNOTATION", describe(annotation))
        value = None
        if node.value is not None:
            value = self.value(node.value)
            self.at(node)
            if isinstance(value, _core.Region):  # the vector of its elements
                value = _core.as_expr(self.ctx, value)
            if not (isinstance(value, IR) or is_number(value)):
                self.ctx.fail("CELL_VALUE", annotation, describe(value))
        name = self.target_name(target)
        if isinstance(target, ast.Name):
            cell = self.cell_of(name)
            if cell is not None and cell.is_cell and cell.dtype == annotation.dtype and self.scope.is_outer(name):
                if value is not None:
                    self.builder.store(cell, (0,), value)
                return
            hoist = self.hoists.get(name)
            if hoist is not None and value is not None and self.may_hoist(name, hoist):
                self.bind_hoisted(name, hoist, value, annotation.dtype)
                return
        self.bind_target(target, self.builder.cell(name, annotation.dtype, value))

    def target_name(self, target: ast.expr) -> str:
        if isinstance(target, ast.Name):
            return target.id
        if isinstance(target, ast.Attribute):
            return target.attr
        self.at(target)
        self.ctx.fail("UNSUPPORTED_STATEMENT", "annotated assignment to a subscript")
        return ""

    def bind_target(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.bind_name(target.id, value)
        else:
            owner = self.value(target.value)  # type: ignore[attr-defined]
            held = getattr(owner, target.attr, MISSING)  # type: ignore[attr-defined]
            if held is not MISSING:
                self.at(target)
                self.check_attribute(target, owner, held)  # type: ignore[arg-type]
            self.set_field(owner, target.attr, value)  # type: ignore[attr-defined]

    def ann_let(self, node: ast.AnnAssign, annotation: LetType) -> None:
        if node.value is None:
            self.ctx.fail("LET_NEEDS_VALUE")
        value = self.value(node.value)  # type: ignore[arg-type]
        self.at(node)
        if isinstance(value, _core.Region):
            value = _core.as_expr(self.ctx, value)
        if not (isinstance(value, IR) or is_number(value)):
            self.ctx.fail("CELL_VALUE", "let", describe(value))
        name = self.target_name(node.target)
        before = self.scope.names.get(name)
        if before.__class__ is Expr and before.dtype == "handle" and self.scope.is_outer(name):
            self.ctx.fail("POINTER_REASSIGNED", name)
        if self.is_fresh(value) and value.__class__ is Expr and value.elem == "tensormap" and annotation.dtype is None:
            self.take_fresh(value, name)
            self.bind_target(node.target, value)
            return
        dtype = annotation.dtype
        if dtype is None and not isinstance(value, IR):
            dtype = self.dtype_of(value)
        self.forget_fresh(value)
        self.bind_target(node.target, self.builder.bind(name, value, dtype))

    def annotation(self, node: ast.expr) -> Any:
        """The value of an annotation; a quoted one is read."""
        value = self.value(node)
        if isinstance(value, str) and not dtypes.is_dtype(value):
            try:
                tree = source.read_tree(value.strip(), mode="eval").body
            except SyntaxError:
                self.at(node)
                self.ctx.fail("BAD_ANNOTATION", repr(value))
            for n in ast.walk(tree):
                ast.copy_location(n, node)
            return self.annotation(tree)
        if isinstance(value, str):
            return dtypes.dtype(value)
        return dtypes.of_annotation(value)

    # ---- names that become cells, names of both arms ---------------------------------------------------------------

    def prepare(self, node: ast.stmt, own: set[str] | frozenset[str] = frozenset()) -> None:
        """Before a run-time block: names bound outside that it assigns to become cells."""
        for name, meta in stores_of(node).items():
            if name in own:
                continue
            scope = self.scope.owner(name) if name in self.scope.nonlocals else self.scope
            value = MISSING if scope is None else scope.names.get(name, MISSING)
            if value is MISSING or value.__class__ is Lost:
                continue
            cell = value.__class__ is Buffer and is_scalar(value)
            if cell and not self.is_others(scope, name):
                continue
            scalar = (
                cell or value.__class__ is Expr and value.dtype != "handle" or value.__class__ in (int, float, bool)
            )
            if scalar and not meta:
                self.at(node)
                self.emitted += 1
                cell = self.builder.cell(name, self.dtype_of(value), value)
                scope.bind(name, cell)

    def forbid_early_reads(self, node: ast.stmt, own: set[str]) -> None:
        """In a loop: a Python value, buffer or pointer that a later line of the body replaces."""
        for name in stores_of(node):
            value = self.scope.names.get(name, MISSING)
            if name in own or value is MISSING or value.__class__ is Lost:
                continue
            if value.__class__ is Buffer and is_scalar(value):
                continue
            if value.__class__ is Expr and value.dtype == "handle" and self.dialect == "g1":
                continue  # the assignment itself is refused
            self.scope.bind(name, Lost(" (this loop gives it another value, which is known at run time only)"))

    def may_hoist(self, name: str, hoist: list[Any]) -> bool:
        """Whether the assignment stands in an arm of the branch that declares the name for both arms."""
        return hoist[0] is self.scope and (self.unbound(name) or hoist[1] is not None)

    def bind_hoisted(self, name: str, hoist: list[Any], value: Any, dtype: str | None = None) -> None:
        scope, cell, level = hoist
        if cell is None:
            cell = self.builder.hoist_cell(name, dtype or self.dtype_of(value), level)
            hoist[1] = cell
        self.builder.store(cell, (0,), value)
        scope.bind(name, cell)
