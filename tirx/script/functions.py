# SPDX-License-Identifier: Apache-2.0
"""Functions inside kernels: @T.inline helpers, expanded at every call, and plain Python functions.

An inline helper's parameters are bound by reference to what it is called with. Its free names are looked up where its
text stands: in the scopes of the kernel around it, as they are at the call, or in Python's.
"""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import threading
from collections import ChainMap
from typing import Any

from tirx.errors import DiagnosticError
from tirx.script import source, state
from tirx.script.assignment import is_scalar
from tirx.script.expressions import Buffer, Expr, is_impure
from tirx.script.scope import Names, Scope
from tirx.script.statements import _STATEMENTS, Statements

_MANY = 10  # nested expansions from which on Python's own recursion limit has to be raised
_RECURSION = 12000


class Expansion:
    """One call of an inline function that is being expanded."""

    __slots__ = ("depth", "function", "outer", "result", "run_time")

    def __init__(self, function: Inline, run_time: int, depth: int, outer: Expansion | None = None):
        self.function = function
        self.outer = outer
        self.result: Any = None
        self.run_time = run_time
        self.depth = depth


class Inline:
    """A helper whose statements are put where it is called."""

    def __init__(self, tree: ast.FunctionDef, file: Any, signature: Any, scope: Scope | None, outer: Any):
        self.__name__ = tree.name
        self.__doc__ = ast.get_docstring(tree)
        self._tree = tree
        self._file = file  # Source of a function outside kernels, or a Place
        self._signature = signature
        self._scope = scope  # the kernel scope around it, or None
        self._outer = outer  # (globals, closure) of a function outside kernels
        self._shared = shared_names(tree)
        self.owner: str | None = None  # the class around it, for its private names
        self.hygienic = True  # free names are those of the place where it stands, not of its callers

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        p = state.parser()
        if p is None:
            raise RuntimeError(f"{self.__name__} is an inline function: it can only be called inside a kernel")
        return self._tirx_expand(p, args, keywords)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else Method(self, owner)

    def __repr__(self) -> str:
        return f"<inline function {self.__name__}>"

    def _tirx_expand(self, p: Any, args: Any, keywords: dict[str, Any]) -> Any:
        try:
            bound = self._signature.bind(*args, **keywords)
        except TypeError as e:
            p.ctx.fail("BAD_CALL", f"{self.__name__}(): {e}")
        bound.apply_defaults()
        if p.operands:
            p.settle_operands()
        if not self.hygienic:
            around = p.scope.globals
            if self._outer is not None:
                around = ChainMap(around, self._outer[0])
            closure = {} if self._outer is None else self._outer[1]
            scope = Scope(p.scope, around, closure, p.scope.builtins)
        elif self._scope is not None:
            scope = Scope(self._scope, self._scope.globals, {}, self._scope.builtins)
        else:
            scope = Scope(None, self._outer[0], self._outer[1], vars(builtins))
        scope.shared = self._shared
        for name, value in bound.arguments.items():
            value = p.captured(value)
            if value.__class__ is Expr and value.op != "LOAD" and is_impure(value):
                # an element or a cell is passed as it is, for the helper may store into it; what is computed is a value
                value = p.builder.bind(name, value)
                p.emitted += 1
            scope.names[name] = value
            if value.__class__ is Buffer and is_scalar(value):
                scope.stored.add(name)
        return p.expand(self, scope)


class Method:
    """An inline function of a class, bound to an object."""

    __slots__ = ("_function", "_owner")

    def __init__(self, function: Inline, owner: Any):
        self._function = function
        self._owner = owner

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._function(self._owner, *args, **keywords)

    def _tirx_expand(self, p: Any, args: Any, keywords: dict[str, Any]) -> Any:
        return self._function._tirx_expand(p, (self._owner, *args), keywords)

    def __repr__(self) -> str:
        return f"<inline method {self._function.__name__}>"


class Place:
    """Where the text of a helper inside a kernel stands: that of the kernel."""

    __slots__ = ("index", "line_offset", "name", "path")

    def __init__(self, index: int, path: str, line_offset: int, name: str):
        self.index = index
        self.path = path
        self.line_offset = line_offset
        self.name = name


def of_python(function: Any) -> Inline:
    """An inline function that is defined outside kernels."""
    import inspect

    try:
        found = source.of_function(function)
    except source.NoSource:
        raise no_source(function) from None
    closure = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    made = Inline(found.node, found, inspect.signature(function), None, (function.__globals__, closure))
    made.owner = class_around(function.__qualname__)
    functools.update_wrapper(made, function)
    return made


def class_around(name: str) -> str | None:
    """The class whose body a function stands in, by its qualified name."""
    around = name.rpartition(".")[0].rpartition(".")[2]
    return None if around in ("", "<locals>") else around.lstrip("_") or None


def no_source(function: Any) -> DiagnosticError:
    """The exception for a function whose text is not there."""
    from tirx import _core

    ctx = _core.Context()
    try:
        ctx.fail("NO_SOURCE", function.__name__)
    except DiagnosticError as e:
        return e.with_traceback(None)
    raise AssertionError("fail() returned")


def fault_at(found: source.Source, row: str, *words: str) -> DiagnosticError:
    """The exception for a function as a whole, at its `def`."""
    from tirx import _core

    ctx = _core.Context()
    ctx.set_place(ctx.add_file(found.file, found.text, found.first_line), found.name, 0, found.line_offset)
    line, column = found.node.lineno, found.node.col_offset
    ctx.at_pos(line, column, line, column + len("def ") + len(found.name))
    try:
        ctx.fail(row, *words)
    except DiagnosticError as e:
        return e.with_traceback(None)
    raise AssertionError("fail() returned")


def _statements(node: ast.AST) -> list[ast.stmt]:
    """All statements inside a statement, nested ones too; expressions, most of a tree, are not looked into."""
    found: list[Any] = []
    todo: list[Any] = [node]
    while todo:
        s = todo.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(s, field, None)
            if inner.__class__ is list:
                found += inner
                todo += inner
    return found


def shared_names(tree: ast.FunctionDef) -> frozenset[str]:
    """Names that functions inside this one declare `nonlocal`; found once per tree."""
    try:
        return tree._tirx_shared  # type: ignore[attr-defined]
    except AttributeError:
        inner = [s for s in _statements(tree) if isinstance(s, ast.FunctionDef)]
        found = {name for f in inner for s in _statements(f) if isinstance(s, ast.Nonlocal) for name in s.names}
        tree._tirx_shared = shared = frozenset(found)  # type: ignore[attr-defined]
        return shared


class _DeepRecursion:
    """Raises Python's recursion limit while any thread expands many helpers in each other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limit = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.users == 0:
                self.limit = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self.limit, _RECURSION))
            self.users += 1

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                sys.setrecursionlimit(self.limit)


deep_recursion = _DeepRecursion()


class Functions(Statements):
    """The part of the Parser for functions inside kernels."""

    def expand(self, function: Inline, scope: Scope) -> Any:
        outer = self.inlined
        depth = 1 if outer is None else outer.depth + 1
        if depth > self.max_inline_depth:
            self.ctx.fail("INLINE_RECURSION", function.__name__, help=self.round_of_inlines(function))
        if depth == _MANY:
            with deep_recursion:
                return self.expand_here(function, scope, depth)
        return self.expand_here(function, scope, depth)

    def round_of_inlines(self, function: Inline | None = None) -> str | None:
        """The inline functions that call each other without end, in words."""
        names: list[str] = [] if function is None else [function.__name__]
        around = self.inlined
        while around is not None and names.count(names[0] if names else "") < 2:
            names.append(around.function.__name__)
            around = around.outer
        return f"the calls go round: {' -> '.join(reversed(names))}" if len(names) > 1 else None

    def expand_here(self, function: Inline, scope: Scope, depth: int) -> Any:
        place = function._file
        if isinstance(place, source.Source):
            index, path = self.file_index(place), place.file
        else:
            index, path = place.index, place.path
        saved = (self.scope, self.inlined, self.loops, self.hoists, self.operands, self.file_name, self.line_offset)
        saved_place = self.file
        expansion = Expansion(function, self.run_time, depth, self.inlined)
        self.ctx.push_inline(index, function.__name__, 0, place.line_offset)
        self.scope, self.inlined, self.loops, self.hoists, self.operands = scope, expansion, [], {}, []
        self.file_name, self.line_offset = path, place.line_offset
        self.file = index
        try:
            self.block(function._tree.body)
        except Exception as e:
            self.explain(e)
            raise
        finally:
            self.scope, self.inlined, self.loops, self.hoists, self.operands, self.file_name, self.line_offset = saved
            self.file = saved_place
            self.ctx.pop_inline()
        return expansion.result

    def function_def(self, node: ast.FunctionDef) -> None:
        """A function inside the kernel: an inline helper, or Python's own."""
        from tirx.script import decorators

        kinds = [self.value(d) for d in node.decorator_list]
        self.at(node)
        if not kinds:
            self.bind_name(node.name, self.plain_function(node))
            return
        for d, kind in zip(node.decorator_list, kinds, strict=False):
            if not decorators.is_inline(kind):
                self.at(d)
                self.ctx.fail("BAD_DECORATOR", getattr(kind, "__name__", repr(kind)))
        place = Place(self.file, self.file_name, self.line_offset, node.name)
        made = Inline(node, place, self.signature(node), self.scope, None)
        made.hygienic = all(map(decorators.is_hygienic, kinds))
        self.bind_name(node.name, made)

    def signature(self, node: ast.FunctionDef) -> Any:
        """The signature of a helper inside the kernel; defaults are evaluated at the definition."""
        import inspect

        a = node.args
        P = inspect.Parameter
        made: list[Any] = []
        positional = [*a.posonlyargs, *a.args]
        defaults = [P.empty] * (len(positional) - len(a.defaults)) + [self.value(d) for d in a.defaults]
        for k, (arg, default) in enumerate(zip(positional, defaults, strict=False)):
            kind = P.POSITIONAL_ONLY if k < len(a.posonlyargs) else P.POSITIONAL_OR_KEYWORD
            made.append(P(arg.arg, kind, default=default))
        if a.vararg:
            made.append(P(a.vararg.arg, P.VAR_POSITIONAL))
        for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=False):
            made.append(P(arg.arg, P.KEYWORD_ONLY, default=P.empty if d is None else self.value(d)))
        if a.kwarg:
            made.append(P(a.kwarg.arg, P.VAR_KEYWORD))
        return inspect.Signature(made)

    def plain_function(self, node: ast.FunctionDef) -> Any:
        """An undecorated function: Python's own, over the names of the kernel."""
        from tirx.script.expressions import shifted

        code = getattr(node, "_tirx_code", None)
        if code is None:
            for n in ast.walk(node):
                if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)):
                    self.at(n)
                    self.ctx.fail("UNSUPPORTED_EXPRESSION", type(n).__name__)
                if isinstance(n, (ast.Nonlocal, ast.Global)):
                    self.at(n)
                    self.ctx.fail(
                        "UNSUPPORTED_STATEMENT",
                        f"{type(n).__name__.lower()} in a plain function",
                        help="decorate the function with @T.inline",
                    )
            module = ast.Module([node], [])
            code = shifted(compile(module, self.file_name, "exec", dont_inherit=True), self.line_offset)
            node._tirx_code = code  # type: ignore[attr-defined]
        made: dict[str, Any] = {}
        names = Names(self.scope, self.read)
        names["__name__"] = "kernel"
        exec(code, names, made)
        return made[node.name]


_STATEMENTS[ast.FunctionDef] = Functions.function_def
