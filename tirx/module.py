# SPDX-License-Identifier: Apache-2.0
"""IRModule: functions by name. What is compiled, lowered and printed together."""

from __future__ import annotations

import sys
import textwrap
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
    """Functions by name: IRModule({"main": f}). Immutable; `with_function` and its kin give changed copies.

    >>> import tirx
    >>> f = tirx.from_source('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "int32")):
    ...     T.device_entry()
    ...     tx = T.thread_id([32])
    ...     A[tx] = tx
    ... ''')
    >>> m = tirx.IRModule({"main": f}).with_function("other", f)
    >>> list(m), "main" in m, list(m.without_function("main"))
    (['main', 'other'], True, ['other'])
    """

    __slots__ = ("global_infos", "module", "python")

    module: Any  # the C object
    python: dict[str, Any]  # members that are Python functions
    global_infos: dict[str, Any]

    def __init__(
        self,
        functions: Mapping[str, Any] | None = None,
        *,
        attrs: Mapping[str, Any] | None = None,
        python: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Any] | None = None,
    ) -> None:
        object.__setattr__(self, "python", dict(python or {}))
        object.__setattr__(self, "global_infos", dict(global_infos or {}))
        if isinstance(functions, _core.Module):
            object.__setattr__(self, "module", functions)
            return
        functions = {} if functions is None else functions
        if not isinstance(functions, Mapping) or not all(isinstance(k, str) for k in functions):
            raise TypeError("IRModule: expected a dict of name to function")
        members = {name: core_of(f, f"IRModule: '{name}'") for name, f in functions.items()}
        for name, f in members.items():
            if not isinstance(f, _core.Function):
                raise TypeError(f"IRModule: '{name}' is a module, expected a function")
        object.__setattr__(self, "module", _core.Module(members, dict(attrs or {})))

    @staticmethod
    def from_expr(f: Any) -> IRModule:
        """A module of one function, under its own name."""
        f = core_of(f, "IRModule.from_expr")
        return IRModule(f) if isinstance(f, _core.Module) else IRModule({f.__name__: f})

    def _copy(self, functions: Mapping[str, Any], attrs: Mapping[str, Any]) -> IRModule:
        return IRModule(functions, attrs=attrs, python=self.python, global_infos=self.global_infos)

    def with_function(self, name: str, function: Any) -> IRModule:
        """A copy with one function more, or another one of that name."""
        return self._copy({**self.functions, name: function}, self.attrs)

    def without_function(self, name: str) -> IRModule:
        """A copy without a function; KeyError when there is none of that name, ValueError when another one calls it."""
        functions = self.functions
        del functions[name]
        made = self._copy(functions, self.attrs)
        if name in made.names:
            raise ValueError(f"without_function: another function of the module calls '{name}'")
        return made

    def update(self, other: IRModule | Mapping[str, Any]) -> IRModule:
        """A copy with the functions of another module, or dict, in addition or instead."""
        more = other.functions if isinstance(other, IRModule) else dict(other)
        return self._copy({**self.functions, **more}, self.attrs)

    def with_attr(self, key: str, value: Any) -> IRModule:
        return self._copy(self.functions, {**self.attrs, key: value})

    def without_attr(self, key: str) -> IRModule:
        return self._copy(self.functions, {k: v for k, v in self.attrs.items() if k != key})

    def __setitem__(self, name: str, function: Any) -> None:
        raise TypeError("an IRModule cannot be changed; module.with_function(name, f) gives a changed copy")

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
        if name in self.python:
            return self.python[name]
        try:
            return self.module[name]
        except KeyError:
            raise KeyError(f"the module has no function {name!r}; it has {', '.join(self.names) or 'none'}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.module.names or name in self.python

    def items(self) -> list[tuple[str, Any]]:
        return list(self.functions.items())

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.module.names)

    def __len__(self) -> int:
        return len(self.module.names)

    def script(self, **options: Any) -> str:
        """Text that `tirx.from_source` reads back."""
        text = self.module.script(**options)
        if self.global_infos:
            head, line, body = text.partition(":\n")
            text = f"{head}{line}    I.module_global_infos({self.global_infos!r})\n{body}"
        for f in self.python.values():
            text = text.removesuffix("    pass\n") + "\n" + textwrap.indent(f.text(), "    ")
        return text

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


def structural_equal(a: Any, b: Any, map_free_vars: bool = False) -> bool:
    """Whether two functions, modules or nodes are the same but for names of bound variables and source places.

    Variables that a node does not bind itself are the same if they are one variable; with map_free_vars, if they are
    first used in the same order, as those of two functions."""
    if isinstance(a, _core.Expr) or isinstance(b, _core.Expr):
        for x in (a, b):
            if not isinstance(x, _core.Expr):
                raise TypeError(f"structural_equal: a node is compared with a node, got {type(x).__name__}")
        return _core.nodes_equal(a, b, map_free_vars)
    return _core.structural_equal(core_of(a, "structural_equal"), core_of(b, "structural_equal"))


def structural_hash(x: Any, map_free_vars: bool = False) -> int:
    """Equal for what is structurally equal."""
    if isinstance(x, _core.Expr):
        return _core.node_hash(x, map_free_vars)
    core = core_of(x, "structural_hash")
    if isinstance(core, _core.Function):
        return core.structural_hash()
    return hash(tuple((name, core[name].structural_hash()) for name in sorted(core.names)))
