# SPDX-License-Identifier: Apache-2.0
"""Python objects that a kernel changes while it is built.

An attribute or item is set once, when the kernel is built; a branch may not run, and a loop runs again. So inside a
run-time block only objects that were made in it may change: they end with it. What was made where is noted as the
objects come up, by identity, and only inside run-time blocks.
"""

from __future__ import annotations

import ast
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from tirx.script import frames

_CONTAINERS = (list, dict, set)
_CHANGING = frozenset(
    "append extend insert remove pop clear sort reverse update setdefault popitem add discard "
    "difference_update intersection_update symmetric_difference_update".split()
)


class Objects:
    """The part of the Parser that knows which objects may change."""

    ctx: Any
    frames: list[Any]

    def begin_objects(self) -> None:
        self.run_time_blocks: list[int] = []  # numbers of the open ones that may run any number of times
        self.blocks_made = 0
        self.made_in: dict[int, tuple[Any, Any]] = {}  # id -> (the object, block in which it was made)

    def open_block(self) -> None:
        self.blocks_made += 1
        self.run_time_blocks.append(self.blocks_made)

    def close_block(self) -> None:
        self.run_time_blocks.pop()

    def block_here(self) -> Any:
        """The innermost block that may run any number of times: of the text, or a frame of plain Python code."""
        if not self.run_time_blocks and not self.frames:
            return None
        for f in reversed(self.frames):
            if isinstance(f, (frames.Then, frames.Else, frames.While, frames.ForFrame)):
                return (self.run_time_blocks[-1:], f)
        return (self.run_time_blocks[-1:], None) if self.run_time_blocks else None

    def note_made(self, x: Any) -> Any:
        """An object that was made just now."""
        here = self.block_here()
        if here is not None:
            self.made_in[id(x)] = (x, here)
        return x

    def note_result(self, x: Any, function: Any, args: Any, keywords: dict[str, Any]) -> None:
        """What a call of Python code gave: new, unless it was within the function's reach before."""
        if self.block_here() is None or id(x) in self.made_in:
            return
        reach: list[Any] = [*args, *keywords.values()]
        if isinstance(function, MethodType):
            reach += [function.__self__, *getattr(function.__self__, "__dict__", {}).values()]
            function = function.__func__
        if isinstance(function, FunctionType):
            reach += function.__globals__.values()
            for cell in function.__closure__ or ():
                try:
                    reach.append(cell.cell_contents)
                except ValueError:  # not bound yet
                    pass
        elif not isinstance(function, (type, BuiltinFunctionType)):
            return  # it may remember what it gave before
        for held in reach:
            if held is x or isinstance(held, (list, tuple)) and any(v is x for v in held):
                return
            if isinstance(held, dict) and any(v is x for v in held.values()):
                return
        self.note_made(x)

    def check_changes(self, x: Any, what: str, help: str | None = None) -> None:
        """The object x is about to change: not in a block that may not run, or run again."""
        here = self.block_here()
        if here is None:
            return
        made = self.made_in.get(id(x))
        if made is None or made[1] != here:
            self.ctx.fail("PYTHON_VALUE_CHANGES", what, help=help or "make a new one inside the block")

    def check_attribute(self, target: ast.Attribute, owner: Any, held: Any) -> None:
        """An attribute of a Python object, which is about to get another value."""
        descriptor = getattr(type(owner), target.attr, None)
        if isinstance(descriptor, property):
            return  # the user's own code, which may make statements
        what = ast.unparse(target)
        dtype = {float: "float32", bool: "bool"}.get(type(held)) or getattr(held, "dtype", "int32")
        self.check_changes(owner, what, f"declare a variable before the block: {what}: T.{dtype} = ...")

    def check_item(self, target: ast.Subscript, owner: Any) -> None:
        """An item of a Python object; a class of the user's may make statements of it."""
        if not isinstance(getattr(type(owner), "__setitem__", None), FunctionType):
            self.check_changes(owner, ast.unparse(target.value), "declare a variable: x: T.int32 = ...")

    def check_method(self, function: Any) -> None:
        """A call of xs.append and the like."""
        owner = getattr(function, "__self__", None)
        if isinstance(owner, _CONTAINERS) and function.__name__ in _CHANGING:
            self.check_changes(owner, f"the {type(owner).__name__} of .{function.__name__}()")
