# SPDX-License-Identifier: Apache-2.0
"""Names of a kernel and of the inline functions expanded in it.

One Scope per expanded function: what is bound now, in one table. A block (loop body, run-time branch) remembers what
it shadows and gives it back at its end. Python would let a name that was rebound inside go on with the new value,
which is known at run time only; such a name becomes Lost, and reading it is an error that says so. Nothing is
silently different.
"""

from __future__ import annotations

from typing import Any


class _Missing:
    """No value: a name that is not bound."""

    __slots__ = ()


MISSING = _Missing()


class Lost:
    """A name that was bound inside a block that has ended."""

    __slots__ = ("why",)

    def __init__(self, why: str):
        self.why = why


class Failed:
    """A name whose statement failed: reading it is a fault that was told already."""

    __slots__ = ()


class Scope:
    """Names of one expanded function. `parent` is where the text of an inner function stands, not its caller."""

    __slots__ = (
        "blocks",
        "borrowed",
        "builtins",
        "cells",
        "closure",
        "globals",
        "names",
        "nonlocals",
        "parent",
        "shared",
        "stored",
    )

    def __init__(
        self, parent: Scope | None, globals_: dict[str, Any], closure: dict[str, Any], builtins_: dict[str, Any]
    ):
        self.parent = parent
        self.globals = globals_
        self.closure = closure  # name -> cell object, or any value
        self.builtins = builtins_
        self.names: dict[str, Any] = {}
        self.blocks: list[dict[str, Any]] = []
        self.nonlocals: set[str] = set()
        self.shared: frozenset[str] = frozenset()  # stored into by inner functions with `nonlocal`
        self.stored: set[str] = set()  # parameters of an inline function that are bound to cells
        self.borrowed: set[str] = set()  # names of loops over Python values that are bound to cells of others

    def bind(self, name: str, value: Any) -> None:
        if self.blocks:
            shadowed = self.blocks[-1]
            if name not in shadowed:
                shadowed[name] = self.names.get(name, MISSING)
        self.names[name] = value
        if self.stored or self.borrowed:
            self.stored.discard(name)
            self.borrowed.discard(name)

    def open(self) -> None:
        self.blocks.append({})

    def close(self, what: str) -> None:
        """Ends a block. What it bound is gone; what it rebound is lost."""
        names = self.names
        for name, before in self.blocks.pop().items():
            if names[name].__class__ is Failed:
                continue
            if before is MISSING:
                names[name] = Lost(f" (it was bound inside {what} that has ended)")
            elif isinstance(before, Lost):
                names[name] = before
            else:
                names[name] = Lost(f" (it was given another value inside {what} that has ended)")

    def close_loop(self, what: str, variables: set[str]) -> None:
        """The same for a loop; its variables are gone, too."""
        self.close(what)
        for name in variables:
            self.names[name] = Lost(f" (the loop over '{name}' has ended)")

    def is_outer(self, name: str) -> bool:
        """Whether the name is bound outside the innermost block."""
        return bool(self.blocks) and name in self.names and name not in self.blocks[-1]

    def owner(self, name: str) -> Scope | None:
        """The scope of the kernel text that binds the name: this one or one around it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope
            scope = scope.parent
        return None

    def get(self, name: str) -> Any:
        """The value, Lost, or MISSING."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.names.get(name, MISSING)
            if value is not MISSING:
                return value
            scope = scope.parent
        return self.captured(name)

    def captured(self, name: str) -> Any:
        """The value that Python's own scopes give the name, or MISSING."""
        scope: Scope | None = self
        while scope is not None:
            cell = scope.closure.get(name, MISSING)
            if cell is not MISSING:
                try:
                    return cell.cell_contents
                except AttributeError:
                    return cell
                except ValueError:  # not bound yet
                    pass
            scope = scope.parent
        value = self.globals.get(name, MISSING)
        return value if value is not MISSING else self.builtins.get(name, MISSING)

    def visible(self) -> set[str]:
        """All names that can be meant, for suggestions."""
        found: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            found |= {k for k, v in scope.names.items() if not isinstance(v, Lost)} | set(scope.closure)
            scope = scope.parent
        return found | {k for k in self.globals if not k.startswith("_")}


class Names(dict):
    """A scope as the globals of code that Python evaluates as it stands: lambdas, comprehensions, plain functions."""

    def __init__(self, scope: Scope, read: Any):
        super().__init__()
        self._scope = scope
        self._read = read
        self["__builtins__"] = scope.builtins
        self["__name__"] = scope.globals.get("__name__", "")

    def __missing__(self, name: str) -> Any:
        value = self._scope.get(name)
        if value is MISSING:
            raise KeyError(name)
        return self._read(name, value)
