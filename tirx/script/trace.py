# SPDX-License-Identifier: Apache-2.0
"""Functions that plain Python code makes while it runs: tirx.builder and @T.trace.

A Tracer is what is being built, as for a parsed kernel, but nobody walks a tree: the user's code calls the functions of
T, and the place of each node is the one that Python is at. Where text has to be read all the same (quoted sizes,
annotations in quotes, @T.inline helpers) the Tracer is the Parser that it is made from.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import threading
from collections.abc import Sequence
from types import CodeType
from typing import Any

from tirx import _core
from tirx.script import source, state
from tirx.script.building import Building, Options
from tirx.script.expressions import Expr, is_impure
from tirx.script.frames import BlockFrame
from tirx.script.parser import Parser, annotations_of
from tirx.script.scope import Scope
from tirx.script.targets import Targets

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_VARARGS, _VARKEYWORDS = 4, 8  # flags of a code object


def describe(code: CodeType) -> tuple[str, str, str, list[Any]] | None:
    """What the core has to know of code that makes IR: file, text, name, and a position for every code unit."""
    if code.co_filename.startswith(_PACKAGE):
        return None
    return code.co_filename, "".join(source.lines_of(code.co_filename)), code.co_name, list(code.co_positions())


def _nowhere(node: Any) -> int:
    return 0


class Tracer(Parser):
    """A function that is built by calls."""

    def __init__(self, name: str, dialect: str, options: Options, scope: Scope):
        ctx = _core.Context()
        self.at = _nowhere  # type: ignore[method-assign]
        self.files = {}
        self.file, self.file_name, self.line_offset = 0, "<builder>", 0
        self.options = options
        self.symbol_given = options.private
        self.sizes: list[tuple[list[Any], list[Any] | None]] = []  # shapes and strides of the parameters
        self.names: set[str] = set()  # of parameters
        self.targets = Targets()
        ctx.trace(describe)
        ctx.here()
        Building.__init__(self, ctx, name, dialect, scope)
        self.begin_walk()
        self.traced = True
        self.helper_depth = 1
        self.set_options(name, options)

    def go_to(self, file: str, line: int, col: int, end_line: int, end_col: int) -> None:
        """The current place, until the next call."""
        lines = source.lines_of(file)
        index = self.ctx.add_file(file, "".join(lines), 1)
        self.ctx.set_place(index, self.builder.name)
        self.ctx.at_pos(line, col, end_line, end_col)

    # ---- names -------------------------------------------------------------------------------------------------------

    def result_names(self, *defaults: str) -> list[str]:
        """What the calling code stores the results under."""
        if self.traced:
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
                frame = frame.f_back  # type: ignore[assignment]
            names = [] if frame is None else self.targets.of(frame)
            if len(names) == len(defaults):
                return names
        return list(defaults)

    def add_results(self, *results: Any) -> None:
        super().add_results(*results)
        for x, name in zip(results, self.result_names(*[""] * len(results)), strict=True):
            if name:
                _core.rename(x, name)

    def add_fresh(self, x: Any) -> Any:
        self.add_results(x)
        return x

    # ---- the function's head -----------------------------------------------------------------------------------------

    def add_argument(self, name: str, value: Any) -> Any:
        if self.builder.depth > 1:
            self.ctx.fail("ARG_PLACE")
        if name in self.names:
            self.ctx.fail("PARAMETER_TWICE", name)
        self.names.add(name)
        if isinstance(value, Expr) and self.is_fresh(value):  # I.arg("n", I.int32())
            self.take_fresh(value, name)
            self.symbol_vars.pop(value, None)
            if value.dtype == "handle":
                self.handles.append(value)
            return self.bind_parameter(name, value)
        self.in_annotation = True
        try:
            return self.parameter(name, value, self.options)
        finally:
            self.in_annotation = False

    def set_name(self, name: str) -> None:
        self.name_once(name)
        self.builder.set_name(name)
        if not self.symbol_given:
            self.builder.set_symbol(name)

    def set_symbol(self, name: str | None) -> None:
        self.symbol_given = True
        self.builder.set_symbol(name)

    def add_equations(self, shape: list[Any], strides: list[Any] | None) -> None:
        self.sizes.append((shape, strides))  # a later I.arg may be one of the sizes

    def finish(self, check: bool) -> Any:
        for shape, strides in self.sizes:
            super().add_equations(shape, strides)
        return super().finish(check)

    def leave(self) -> None:
        self.ctx.trace(None)
        super().leave()

    def take_result(self, result: Any, declared: bool) -> None:
        """What the Python function returned."""
        if declared and result is not None:
            self.builder.return_(result)
        elif isinstance(result, Expr) and is_impure(result):
            self.builder.evaluate(result)

    # ---- helpers that are read, not run ------------------------------------------------------------------------------

    def expand(self, function: Any, scope: Scope) -> Any:
        self.ctx.here()
        before = self.ctx.trace(None)
        saved = self.at, self.traced, self.helper_depth
        self.at, self.traced, self.helper_depth = self.ctx.at, False, 0  # type: ignore[method-assign]
        try:
            return super().expand(function, scope)
        finally:
            self.at, self.traced, self.helper_depth = saved  # type: ignore[method-assign]
            self.ctx.trace(before)


# ---- the decorator -------------------------------------------------------------------------------------------------


def trace_function(
    function: Any, dialect: str, options: Options, name: str, annotations: dict[str, Any], around: dict[str, Any]
) -> Any:
    """The IR that one run of the function makes."""
    closure: dict[str, Any] = dict(around)
    closure.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    tracer = Tracer(name, dialect, options, Scope(None, function.__globals__, closure, vars(builtins)))
    code = function.__code__
    line = code.co_firstlineno
    lines = source.lines_of(code.co_filename)
    text = lines[line - 1].rstrip() if 0 < line <= len(lines) else ""
    margin = len(text) - len(text.lstrip())
    tracer.enter()
    try:
        before = tracer.ctx.trace(None)
        tracer.go_to(code.co_filename, line, margin, line, len(text.encode()))
        tree = signature_tree(function, annotations)
        tracer.signature_of_kernel(tree, {**annotations_of(function), **_plain(annotations)}, options)
        tracer.ctx.trace(before)
        names = tracer.scope.names
        a = tree.args
        result = function(
            *[names[x.arg] for x in (*a.posonlyargs, *a.args)], **{x.arg: names[x.arg] for x in a.kwonlyargs}
        )
        tracer.take_result(result, tree.returns is not None)
        made = tracer.finish(options.check)
    finally:
        tracer.leave()
    tracer.show_warnings()
    return made


def _plain(annotations: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in annotations.items() if not isinstance(v, str)}


def signature_tree(function: Any, given: dict[str, Any]) -> ast.FunctionDef:
    """The head of a function that may have no text, from the object itself."""
    code = function.__code__
    names = list(code.co_varnames)
    try:
        written = dict(function.__annotations__)
    except Exception:  # evaluated when asked for (Python 3.14), and names may be missing
        written = {}
    written.update(given)
    unknown = [k for k in given if k not in names[: code.co_argcount + code.co_kwonlyargcount] and k != "return"]
    if unknown:
        raise TypeError(f"T.trace: {function.__name__} has no parameter '{unknown[0]}'")

    def arg(name: str) -> ast.arg:
        return ast.arg(name, _annotation_tree(written[name]) if name in written else None)

    positional = code.co_argcount
    end = positional + code.co_kwonlyargcount
    preset = function.__kwdefaults__ or {}
    made = ast.arguments(
        posonlyargs=[arg(n) for n in names[: code.co_posonlyargcount]],
        args=[arg(n) for n in names[code.co_posonlyargcount : positional]],
        kwonlyargs=[arg(n) for n in names[positional:end]],
        defaults=[ast.Constant(None) for _ in function.__defaults__ or ()],
        kw_defaults=[ast.Constant(None) if n in preset else None for n in names[positional:end]],
    )
    if code.co_flags & _VARARGS:
        made.vararg = ast.arg(names[end])
    if code.co_flags & _VARKEYWORDS:
        made.kwarg = ast.arg(names[end + bool(made.vararg)])
    returns = _annotation_tree(written["return"]) if written.get("return") is not None else None
    return ast.FunctionDef(function.__name__, made, [], [], returns)


def _annotation_tree(value: Any) -> ast.expr:
    if not isinstance(value, str):
        return ast.Constant(None)  # evaluated already
    try:
        return source.read_tree(value.strip(), mode="eval").body
    except SyntaxError:
        return ast.Constant(value)


# ---- the builder ---------------------------------------------------------------------------------------------------


class _Builders(threading.local):
    def __init__(self) -> None:
        self.open: list[IRBuilder] = []


_builders = _Builders()


class IRBuilder:
    """Builds one function by calls:

        with IRBuilder() as ib:
            with I.prim_func():
                ...
        f = ib.get()

    Builders nest; each builds a function of its own.
    """

    def __init__(self) -> None:
        self._building: Any = None
        self._result: Any = None
        self._why = "no `with I.prim_func():` was finished in it"
        self._entered = False

    def __enter__(self) -> IRBuilder:
        if self._entered:
            raise RuntimeError("an IRBuilder is entered once: make a new one")
        self._entered = True
        _builders.open.append(self)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not _builders.open or _builders.open[-1] is not self:
            if kind is None:
                raise RuntimeError("an IRBuilder is left while another one is open: leave that first")
            return
        _builders.open.pop()

    def get(self) -> Any:
        """The function that was built."""
        if self._result is None:
            raise RuntimeError(f"the builder has no function: {self._why}")
        return self._result

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder of this thread."""
        p = state.parser()
        inner = _builders.open[-1] if _builders.open else None
        if p is not None and (inner is None or inner._building is not p):
            around = IRBuilder()  # a kernel that is parsed or traced
            around._building, around._entered = p, True
            around._why = "the kernel is still being built"
            return around
        if inner is None:
            raise RuntimeError("no builder is active")
        return inner

    @staticmethod
    def is_in_scope() -> bool:
        """Whether something is being built on this thread."""
        return bool(_builders.open) or state.parser() is not None

    @property
    def frames(self) -> list[Any]:
        """The open frames, outermost first."""
        return [] if self._building is None else list(self._building.frames)

    @staticmethod
    def name(name: str, value: Any) -> Any:
        """Names a variable or buffer, for the printed form; gives the value back."""
        if not isinstance(name, str):
            raise TypeError(f"IRBuilder.name takes a str, got {type(name).__name__}")
        if isinstance(value, _core.Buffer) or isinstance(value, Expr) and value.op == "VAR":
            p = state.parser()
            if p is not None:
                p.forget_fresh(value)
            if not value.ctx.frozen:
                _core.rename(value, name)
        return value

    @staticmethod
    def name_many(names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        """The same for several."""
        if len(names) != len(values):
            raise ValueError(f"IRBuilder.name_many: {len(names)} names for {len(values)} values")
        return [IRBuilder.name(n, v) for n, v in zip(names, values, strict=True)]

    def with_source_span(self, span: Any) -> SourceSpan:
        """What is made inside stands at this place: (file, line), (file, line, col, end_line, end_col) or a node's
        `span`."""
        if self._building is None or self._building is not state.parser():
            raise RuntimeError("no builder is active")
        if not isinstance(self._building, Tracer):
            raise RuntimeError("a parsed kernel's places are those of its text")
        return SourceSpan(self._building, span)


class SourceSpan:
    """A place that the user gives."""

    def __init__(self, building: Any, span: Any):
        if isinstance(span, tuple) and len(span) == 2:
            span = (*span, 0, span[1], 0)
        is_place = isinstance(span, tuple) and len(span) == 5 and isinstance(span[0], str)
        if isinstance(span, bool) or not (isinstance(span, int) or is_place and all(type(n) is int for n in span[1:])):
            raise TypeError("a span is (file, line), (file, line, col, end_line, end_col) or the `span` of a node")
        self.building = building
        self.span = span
        self.before: Any = None

    def __enter__(self) -> None:
        p = self.building
        if isinstance(self.span, int):
            p.ctx.span = self.span
        else:
            p.go_to(*self.span)
        self.before = p.ctx.trace(None), p.traced
        p.traced = False

    def __exit__(self, *_: Any) -> None:
        trace, self.building.traced = self.before
        self.building.ctx.trace(trace)


class PrimFuncFrame(BlockFrame):
    """What T.prim_func() and T.function() give without a function: a decorator, and the frame of a function that is
    built."""

    __slots__ = ("_builder", "_decorate", "_dialect", "_options", "_tracer")
    what = "T.prim_func"

    def __init__(self, dialect: str, options: Options, decorate: Any):
        super().__init__()
        self._dialect = dialect
        self._options = options
        self._decorate = decorate
        self._tracer: Any = None
        self._builder: Any = None

    def __call__(self, function: Any) -> Any:
        return self._decorate(function)

    def __enter__(self) -> PrimFuncFrame:
        builder = _builders.open[-1] if _builders.open else None
        if builder is None:
            raise RuntimeError("no builder is active: `with IRBuilder():` comes around T.prim_func()")
        if self.used:
            state.fail("FRAME_TWICE", self.what, outside=RuntimeError)
        if builder._building is not None or builder._result is not None:
            raise RuntimeError("the builder has a function already: another function needs an IRBuilder of its own")
        self.used = True
        self._builder = builder
        tracer = self._tracer = Tracer("main", self._dialect, self._options, Scope(None, {}, {}, vars(builtins)))
        tracer.enter()
        tracer.frames.append(self)
        builder._building = tracer
        builder._why = "its function is still open"
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        tracer, builder = self._tracer, self._builder
        if tracer is None:
            state.fail("FRAME_NOT_OPEN", self.what, outside=RuntimeError)
        try:
            builder._why = "an error has ended it"
            if kind is None:
                if state.parser() is not tracer:
                    raise RuntimeError(f"{self.what} is left while another function is being built: leave that first")
                tracer.flatten_pending()
                tracer.leave_frame(self)
                builder._result = tracer.finish(self._options.check)
        finally:
            self._tracer = builder._building = None
            if state.parser() is tracer:
                tracer.leave()
        if kind is None:
            tracer.show_warnings()


def arg(name: str, annotation: Any) -> Any:
    """The next parameter of a function that is built: T.arg("A", T.buffer((256,), "float32"))."""
    p = state.need("T.arg")
    if not isinstance(name, str):
        raise TypeError(f"T.arg: a name is a str, got {type(name).__name__}")
    if not isinstance(p, Tracer):
        raise RuntimeError("T.arg is for functions made with tirx.builder: a kernel's parameters are in its signature")
    return p.add_argument(name, annotation)
