# SPDX-License-Identifier: Apache-2.0
"""Statements: one function per node of Python's ast.

A statement function gives None, or the name of the jump that ends the block while the kernel is being built: "return",
"break" or "continue". Run-time jumps are emitted; the rest of their block can never run and is not walked.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tirx.script import frames
from tirx.script.assignment import Assignments, arms_store, stores_of
from tirx.script.control import check_kind
from tirx.script.expressions import IR, Buffer, Expr, MetaVar, describe
from tirx.script.objects import Objects
from tirx.script.recovery import Recovery
from tirx.script.scope import MISSING, Lost


class Statements(Assignments, Recovery, Objects):
    """The part of the Parser that walks statements."""

    def block(self, nodes: list[ast.stmt]) -> str | None:
        for node in nodes:
            before = self.state_before()
            try:
                visit = _STATEMENTS.get(node.__class__)
                if visit is None:
                    self.at(node)
                    self.refuse_statement(node)
                jump = visit(self, node)
                if self.pending_frames:
                    self.flatten_pending()
            except Exception as e:
                if not self.recover(node, e, before):
                    raise
                continue
            if jump is not None:
                return jump
        return None

    def refuse_statement(self, node: ast.stmt) -> None:
        name, instead = _REFUSED.get(type(node), (type(node).__name__, None))
        self.ctx.fail("UNSUPPORTED_STATEMENT", name, help=instead)

    def inner(self, nodes: list[ast.stmt], what: str) -> None:
        """A block of its own at run time."""
        self.scope.open()
        self.run_time += 1
        self.open_block()
        try:
            self.block(nodes)
        finally:
            self.close_block()
            self.run_time -= 1
        self.scope.close(what)

    # ---- control ---------------------------------------------------------------------------------------------------

    def expression(self, node: ast.Expr) -> None:
        if node.value.__class__ is ast.Constant:
            return  # docstrings, ..., numbers: nothing to do
        value = self.value(node.value)
        self.at(node)
        self.discard(value, node)

    def discard(self, value: Any, node: ast.stmt) -> None:
        """A value that stands as a statement."""
        if value.__class__ is Expr:
            if value.op != "VAR":
                self.emitted += 1
                self.builder.evaluate(value)
        elif isinstance(value, frames.Frame):
            if not value.used:
                value.flat()
        elif value.__class__ in (list, tuple):
            for v in value:
                self.discard(v, node)
        elif isinstance(value, (frames.Loop, frames.Grid)):
            self.ctx.fail("UNEXPECTED_STATEMENT", describe(value))

    def pass_(self, node: ast.Pass) -> None:
        pass

    def nonlocal_(self, node: ast.Nonlocal) -> None:
        for name in node.names:
            if self.scope.parent is None or self.scope.parent.owner(name) is None:
                self.at(node)
                self.ctx.fail("NO_NONLOCAL", name)
            self.scope.nonlocals.add(name)

    def if_(self, node: ast.If) -> str | None:
        test = self.value(node.test)
        if not isinstance(test, IR):
            return self.block(node.body if self.truth(node.test, test) else node.orelse)
        self.prepare(node)
        self.at(node.test)
        self.emitted += 1
        outer, level = self.hoists, self.builder.depth - 1
        new = {n for n in arms_store(node) if n not in outer and self.unbound(n)}
        if new:
            self.hoists = {**outer, **{n: [self.scope, None, level] for n in new}}
        try:
            self.builder.open_if(test)
            self.inner(node.body, "a branch")
            self.builder.close()
            if node.orelse:
                self.builder.open_else()
                self.inner(node.orelse, "a branch")
                self.builder.close()
        finally:
            made, self.hoists = self.hoists, outer
        for n in new:
            if made[n][1] is not None:
                self.scope.bind(n, made[n][1])
        return None

    def unbound(self, name: str) -> bool:
        value = self.scope.names.get(name, MISSING)
        return value is MISSING or value.__class__ is Lost

    def truth(self, node: ast.expr, test: Any) -> bool:
        test = self.captured(test)
        if test is None or isinstance(test, (bool, int, float)):
            return bool(test)
        self.at(node)
        self.ctx.fail("CONDITION_KIND", describe(test))
        return False

    def while_(self, node: ast.While) -> str | None:
        if node.orelse:
            self.at(node.orelse[0])
            self.ctx.fail("LOOP_ELSE", "while")
        if self.is_call_of(node.test, "constexpr"):
            return self.python_while(node)
        self.prepare(node)
        self.scope.open()
        self.forbid_early_reads(node, set())
        before = self.emitted
        test = self.value(node.test)
        if self.emitted != before:
            self.at(node.test)
            self.ctx.fail("LAZY_EMITS", "a while condition")
        if not isinstance(test, IR) and not self.truth(node.test, test):
            self.scope.close("a loop")
            return None
        self.at(node.test)
        self.emitted += 1
        self.builder.open_while(test if isinstance(test, IR) else True)
        self.loop_body(node.body)
        self.builder.close()
        self.scope.close("a loop")
        return None

    def python_while(self, node: ast.While) -> str | None:
        """while T.constexpr(condition): the body as often as the condition holds, while the kernel is built."""
        outer, self.loops = self.loops, [*self.loops, ("python", self.run_time)]
        turns = 0
        try:
            while self.truth(node.test, self.value(node.test)):
                if turns >= 65536:
                    self.at(node)
                    self.ctx.fail("TOO_MANY_TURNS", 65536)
                turns += 1
                jump = self.block(node.body)
                if jump == "break":
                    break
                if jump == "return":
                    return jump
        finally:
            self.loops = outer
        return None

    def is_call_of(self, node: ast.expr, name: str) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name

    def loop_body(self, nodes: list[ast.stmt], kind: str = "run") -> None:
        outer, self.loops = self.loops, [*self.loops, (kind, 0)]
        self.run_time += 1
        self.open_block()
        try:
            self.block(nodes)
        finally:
            self.close_block()
            self.loops = outer
            self.run_time -= 1

    def for_(self, node: ast.For) -> str | None:
        if node.orelse:
            self.at(node.orelse[0])
            self.ctx.fail("LOOP_ELSE", "for")
        loop = self.loop_of(node.iter)
        if isinstance(loop, (frames.Loop, frames.Grid)):
            return self.run_time_loop(node, loop.loops if isinstance(loop, frames.Grid) else [loop])
        return self.python_loop(node, loop)

    def loop_of(self, node: ast.expr) -> Any:
        if node.__class__ is ast.Call and node.func.__class__ is ast.Name and not node.keywords:  # type: ignore[attr-defined]
            if self.value(node.func) is range:  # type: ignore[attr-defined]
                args = self.elements(node.args)  # type: ignore[attr-defined]
                self.at(node)
                if not 1 <= len(args) <= 3:
                    self.ctx.fail("RANGE_ARITY")
                if len(args) == 1:
                    return frames.Loop("serial", 0, args[0])
                return frames.Loop("serial", args[0], args[1], args[2] if len(args) == 3 else 1)
        value = self.value(node)
        if isinstance(value, (list, tuple, range, dict, set, frozenset, enumerate, zip, map, filter, reversed)):
            return value
        if hasattr(value, "__next__") or isinstance(
            value, (frames.Loop, frames.Grid, type({}.items()), type({}.keys()))
        ):
            return value
        if isinstance(value, type({}.values())):
            return value
        self.at(node)
        self.ctx.fail("FOR_ITERABLE", describe(value))
        return None

    def run_time_loop(self, node: ast.For, loops: list[frames.Loop]) -> None:
        target = node.target
        if len(loops) == 1 and isinstance(target, ast.Name):
            names = [target.id]
        elif isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == len(loops):
            names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
        else:
            names = [""]
        if "" in names:
            self.at(target)
            self.ctx.fail("LOOP_TARGET", len(loops))
        own = set(names)
        if self.builder.zone == "device" or not isinstance(loops[0], frames.ThreadLoop):
            self.prepare(node, own)  # device code does not set variables of the host
        self.at(node.iter)
        self.emitted += 1
        variables = [loop.open(self.builder, name) for loop, name in zip(loops, names, strict=False)]
        self.scope.open()
        self.forbid_early_reads(node, own)
        for name, variable in zip(names, variables, strict=False):
            self.scope.bind(name, variable)
        self.loop_body(node.body, "run" if len(loops) == 1 else "grid")
        self.scope.close_loop("a loop", own)
        for loop in reversed(loops):
            loop.close(self.builder)

    def python_loop(self, node: ast.For, values: Any) -> str | None:
        """A Python sequence: the body once per element, while the kernel is built."""
        outer, self.loops = self.loops, [*self.loops, ("python", self.run_time)]
        try:
            for k, value in enumerate(values):
                if k >= 65536:
                    self.at(node)
                    self.ctx.fail("TOO_MANY_TURNS", 65536)
                self.bind_python(node.target, value, node)
                jump = self.block(node.body)
                if jump == "break":
                    break
                if jump == "return":
                    return jump
        finally:
            self.loops = outer
        return None

    def bind_python(self, target: ast.expr, value: Any, loop: ast.For | None = None) -> None:
        if isinstance(target, ast.Name):
            value = self.captured(value)
            borrowed = loop is not None and value.__class__ is Buffer and value.is_cell
            if borrowed and any(self.scope.get(n) is value for n in stores_of(loop) if n != target.id):
                self.at(target)
                value, borrowed = self.builder.bind(target.id, value), False  # what it is now
            self.bind_name(target.id, value)
            if borrowed:
                self.scope.borrowed.add(target.id)
        elif (
            loop is not None
            and isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, (tuple, list))
            and len(value) == len(target.elts)
            and not any(isinstance(t, ast.Starred) for t in target.elts)
        ):
            for t, v in zip(target.elts, value, strict=True):
                self.bind_python(t, v, loop)
        else:
            self.assign_to(target, MetaVar(value), target)  # type: ignore[arg-type]

    def jump(self, node: ast.Break | ast.Continue) -> str:
        # Python itself refuses a jump outside of a loop
        word = "break" if isinstance(node, ast.Break) else "continue"
        self.at(node)
        kind, depth = self.loops[-1]
        if kind == "python":
            if self.run_time > depth:
                self.ctx.fail("PYTHON_LOOP_JUMP", word)
            return word
        if word == "break" and kind == "grid":
            self.ctx.fail("GRID_BREAK")
        self.emitted += 1
        if word == "break":
            self.builder.break_()
        else:
            self.builder.continue_()
        return word

    def return_(self, node: ast.Return) -> str:
        value = None if node.value is None else self.value(node.value)
        self.at(node)
        if self.inlined is not None:
            if self.run_time > self.inlined.run_time:
                self.ctx.fail("EARLY_RETURN")
            self.inlined.result = value
            return "return"
        self.emitted += 1
        self.builder.return_(value)
        return "return"

    def assert_(self, node: ast.Assert) -> None:
        test = self.value(node.test)
        kind, parts = "AssertionError", []
        if node.msg is not None:
            kind, parts = self.assert_message(node.msg)
        self.at(node)
        if not isinstance(test, IR):
            if node.test.__class__ is ast.Tuple and test:
                self.at(node.test)
                self.ctx.fail("ASSERT_OF_TUPLE")
            if not test:
                self.ctx.fail("STATIC_ASSERT", ": " + "".join(parts) if parts else "")
            return
        self.emitted += 1
        self.builder.assert_(test, kind, parts)

    def assert_message(self, node: ast.expr) -> tuple[str, list[str]]:
        message = self.value(node)
        self.at(node)
        if isinstance(message, str):
            return "AssertionError", [message]
        if not isinstance(message, tuple):
            self.ctx.fail("ASSERT_MESSAGE", describe(message))
        if len(message) != 2 or not isinstance(message[1], (list, tuple)):
            self.ctx.fail("ASSERT_TUPLE")
        if not isinstance(message[0], str):
            self.ctx.fail("ASSERT_KIND")
        check_kind(message[0])
        return message[0], [str(part) for part in message[1]]

    def with_(self, node: ast.With) -> str | None:
        entered: list[Any] = []
        if not self.is_call_of(node.items[0].context_expr, "device_entry"):
            self.prepare(node)  # device code does not set variables of the host
        self.scope.open()
        self.run_time += 1
        try:
            for item in node.items:
                manager = self.value(item.context_expr)
                self.at(item.context_expr)
                if not self.is_manager(manager):
                    self.ctx.fail("WITH_CONTEXT", describe(manager))
                value = manager.__enter__()
                entered.append(manager)
                if item.optional_vars is not None:
                    self.bind_python(item.optional_vars, value)
            self.block(node.body)
        finally:
            self.run_time -= 1
        # after a fault nothing is closed: the function is given up
        for manager in reversed(entered):
            self.at(node)
            manager.__exit__(None, None, None)
        self.scope.close("a with block")
        return None

    def is_manager(self, x: Any) -> bool:
        if isinstance(x, (frames.Frame, frames.Loop, frames.Grid)):
            return True
        kind = type(x)
        if not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
            return False
        return hasattr(kind, "_tirx_name_resources") or kind.__name__ == "_GeneratorContextManager"


_STATEMENTS: dict[type, Callable[[Any, Any], str | None]] = {
    ast.Assign: Statements.assign,
    ast.AugAssign: Statements.aug_assign,
    ast.AnnAssign: Statements.ann_assign,
    ast.Expr: Statements.expression,
    ast.Pass: Statements.pass_,
    ast.If: Statements.if_,
    ast.For: Statements.for_,
    ast.While: Statements.while_,
    ast.With: Statements.with_,
    ast.Break: Statements.jump,
    ast.Continue: Statements.jump,
    ast.Return: Statements.return_,
    ast.Assert: Statements.assert_,
    ast.Nonlocal: Statements.nonlocal_,
}
# statements that a kernel may not hold: name, what to write instead
_REFUSED: dict[type, tuple[str, str | None]] = {
    ast.Try: ("try", "a kernel has no exceptions; test what may go wrong"),
    ast.Raise: ("raise", 'assert a condition: assert x > 0, "text"'),
    ast.Delete: ("del", "a name ends with the block that binds it"),
    ast.Global: ("global", "a kernel cannot assign to names outside it; pass a buffer"),
    ast.Import: ("import", "import outside the kernel"),
    ast.ImportFrom: ("import", "import outside the kernel"),
    ast.ClassDef: ("class", "define the class outside the kernel, with @T.meta_class if its methods make code"),
    ast.Match: ("match", "write if / elif / else"),
    ast.AsyncFor: ("async for", None),
    ast.AsyncWith: ("async with", None),
    ast.AsyncFunctionDef: ("async def", None),
}
if hasattr(ast, "TryStar"):
    _REFUSED[ast.TryStar] = _REFUSED[ast.Try]
