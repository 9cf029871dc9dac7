# SPDX-License-Identifier: Apache-2.0
"""IRModule: functions by name. What is compiled, lowered and printed together."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tirx import _core


def core_of(x: Any, what: str) -> Any:
    """The C object behind a function or a module; TypeError for anything else."""
    if isinstance(x, IRModule):
        return x.module
    if isinstance(x, (_core.Function, _core.Module)):
        return x
    inner = getattr(x, "__tirx_function__", None)
    if isinstance(inner, _core.Function):
        return inner
    if callable(getattr(x, "specialize", None)):
        name = getattr(x, "__name__", "f")
        raise TypeError(f"{what}: '{name}' is a @T.jit function; call .specialize(...) first, then compile")
    raise TypeError(
        f"{what}: expected a function made by @T.prim_func or @T.function, or an IRModule, got {type(x).__name__}"
    )


class IRModule:
    """Functions by name: IRModule({"main": f}). Immutable."""

    __slots__ = ("module",)

    module: Any  # the C object

    def __init__(self, functions: Mapping[str, Any]) -> None:
        if isinstance(functions, _core.Module):
            object.__setattr__(self, "module", functions)
            return
        if not isinstance(functions, Mapping) or not all(isinstance(k, str) for k in functions):
            raise TypeError("IRModule: expected a dict of name to function")
        members = {name: core_of(f, f"IRModule: '{name}'") for name, f in functions.items()}
        for name, f in members.items():
            if not isinstance(f, _core.Function):
                raise TypeError(f"IRModule: '{name}' is a module, expected a function")
        object.__setattr__(self, "module", _core.Module(members))

    @staticmethod
    def from_expr(f: Any) -> IRModule:
        """A module of one function, under its own name."""
        f = core_of(f, "IRModule.from_expr")
        return IRModule(f) if isinstance(f, _core.Module) else IRModule({f.__name__: f})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("an IRModule cannot be changed")

    def __copy__(self) -> IRModule:
        return self

    @property
    def names(self) -> list[str]:
        return list(self.module.names)

    @property
    def functions(self) -> dict[str, Any]:
        return {name: self.module[name] for name in self.module.names}

    @property
    def attrs(self) -> dict:
        return self.module.attrs

    def __getitem__(self, name: str) -> Any:
        return self.module[name]

    def __contains__(self, name: object) -> bool:
        return name in self.module.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.module.names)

    def __len__(self) -> int:
        return len(self.module.names)

    def script(self, **options: Any) -> str:
        return self.module.script(**options)

    def show(self, style: str | None = None, **options: Any) -> None:
        """Print the text, coloured when it goes to a terminal and pygments is installed."""
        show(self, style, **options)

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"<tirx.IRModule of {', '.join(self.names) or 'nothing'}>"


def show(x: Any, style: str | None = None, **options: Any) -> None:
    """Print the text of a function or a module."""
    print(coloured(x.script(**options), style))


def coloured(text: str, style: str | None = None) -> str:
    if not sys.stdout.isatty():
        return text
    try:
        from pygments import highlight
        from pygments.formatters import TerminalFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return text
    return highlight(text, PythonLexer(), TerminalFormatter(bg=style or "dark")).rstrip("\n")


def structural_equal(a: Any, b: Any) -> bool:
    """Whether two functions or modules are the same but for names of bound variables and source places."""
    return _core.structural_equal(core_of(a, "structural_equal"), core_of(b, "structural_equal"))
