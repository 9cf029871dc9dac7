# SPDX-License-Identifier: Apache-2.0
"""Going on behind a fault, so that one look at a kernel tells all of its independent faults.

A statement that fails is left out; the names that it would have bound become Failed, and a statement that reads one
of them fails silently, since its fault may be the first one's doing. Behind a statement that changes what all others
mean (device_entry, a `with`), nothing is told. In the end all faults are raised as one DiagnosticError: the first, with
the others in its text and in `others`. No function is made.
"""

from __future__ import annotations

import ast
from typing import Any

from tirx.errors import DiagnosticError
from tirx.script.scope import MISSING, Failed, Lost

MOST = 10  # faults told at once
_DECISIVE = {"device_entry", "launch_thread", "attr", "hint", "LaunchConfig", "match_buffer"}


class Followed(DiagnosticError):
    """A statement that reads what a failed one should have bound."""


class Recovery:
    """The part of the Parser that collects faults."""

    ctx: Any
    builder: Any
    scope: Any
    inlined: Any
    loops: list[Any]
    pending_frames: list[Any]
    explain: Any

    def begin_recovery(self) -> None:
        self.faults: dict[tuple, DiagnosticError] = {}

    def state_before(self) -> tuple:
        return self.builder.depth, len(self.scope.blocks), len(self.loops)

    def recover(self, node: ast.stmt, e: Exception, before: tuple) -> bool:
        """Notes the fault of a statement; whether the walk can go on behind it."""
        if self.inlined is not None or isinstance(e, (MemoryError, RecursionError)):
            return False
        if not isinstance(e, DiagnosticError):
            try:
                self.explain(e)
            except DiagnosticError as told:
                told.__suppress_context__ = True
                e = told
            else:
                return False
        if getattr(e, "_tirx_final", False):
            return False
        self.note_fault(e)
        if _is_decisive(node) or len(self.faults) >= MOST or not self.unwind(before):
            e._tirx_final = True  # type: ignore[attr-defined]
            return False
        for name in _bound_by(node):
            if self.scope.names.get(name, MISSING).__class__ in (MISSING.__class__, Lost):
                self.scope.bind(name, Failed())
        return True

    def note_fault(self, e: DiagnosticError) -> None:
        e.__traceback__ = None
        if not isinstance(e, Followed):
            self.faults.setdefault((e.filename, e.lineno, e.offset, e.msg), e)

    def unwind(self, before: tuple) -> bool:
        """Closes what the statement had opened."""
        depth, blocks, loops = before
        if self.pending_frames:
            return False
        while len(self.scope.blocks) > blocks:
            self.scope.close("a block")
        del self.loops[loops:]
        try:
            while self.builder.depth > depth:
                self.builder.close()
        except Exception:
            return False
        return self.builder.depth == depth

    def all_faults(self, last: Exception) -> Exception:
        """What is to be raised: the first fault, with the others in it; `last` is what ended the walk."""
        if isinstance(last, DiagnosticError):
            self.note_fault(last)
        faults = list(self.faults.values())
        if not faults:
            return last
        first = faults[0]
        if len(faults) > 1:
            count = f"{len(faults)} errors" if len(faults) < MOST else f"{MOST} errors; more are not looked for"
            told = [str(f) for f in faults]
            first.args = ("\n\n".join([*told, count]), *first.args[1:])
            first.others = tuple(faults[1:])
            for text in [*told[1:], count]:
                first.add_note(text)
        return first


def _is_decisive(node: ast.stmt) -> bool:
    if isinstance(node, ast.With):
        return True
    value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _DECISIVE


def _bound_by(node: ast.stmt) -> set[str]:
    """Every name that the statement, or one inside it, might have bound."""
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(a.asname or a.name).partition(".")[0] for a in node.names}
    found = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return found | {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)}
