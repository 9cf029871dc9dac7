# SPDX-License-Identifier: Apache-2.0
"""From a Python function's tree to IR: one Parser per kernel.

The Parser walks the tree once. Expressions are evaluated (expressions.py), statements recorded (statements.py), inline
functions expanded where they are called (functions.py). What does not depend on a tree is in building.py: the function
that is being built, its parameters and sizes.
"""

from __future__ import annotations

import ast
import builtins
import os
from typing import Any

from tirx import _core
from tirx.errors import DiagnosticError, Error
from tirx.script import dtypes, source
from tirx.script.annotations import Constexpr
from tirx.script.building import Building, Options, is_typing_optional
from tirx.script.expressions import IR, Expressions
from tirx.script.functions import Functions, shared_names
from tirx.script.recovery import Followed
from tirx.script.scope import Scope

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_INLINE_DEPTH = 200
_ENTRIES = frozenset(("device_entry", "launch_thread", "thread_binding", "env_thread"))


class Parser(Functions, Expressions, Building):
    max_inline_depth = _MAX_INLINE_DEPTH

    def __init__(self, found: source.Source, dialect: str, scope: Scope):
        self.ctx = _core.Context()
        self.at = self.ctx.at
        self.source = found
        self.files: dict[int, int] = {}
        self.file = self.file_index(found)
        self.file_name = found.file
        self.line_offset = found.line_offset
        self.ctx.set_place(self.file, found.name, 0, found.line_offset)
        self.at(found.node)
        super().__init__(self.ctx, found.name, dialect, scope)
        self.begin_walk()

    def begin_walk(self) -> None:
        self.inlined: Any = None  # the Expansion that is being walked
        self.loops: list[tuple[str, int]] = []  # loops around: ("run" | "grid" | "python", run_time there)
        self.hoists: dict[str, list[Any]] = {}  # names that both arms of a branch around bind -> [scope, cell, depth]
        self.operands: list[list[Any]] = []  # values that wait for another operand of theirs
        self.run_time = 0  # run-time blocks around
        self.lists: dict[int, Any] = {}  # lists whose elements were made cells, by identity
        self.binds_field = False  # the next setattr binds, and stores nothing
        self.begin_objects()
        self.begin_recovery()

    # ---- the whole function ----------------------------------------------------------------------------------------

    def parse(self, annotations: dict[str, Any], options: Options) -> Any:
        node = self.source.node
        self.scope.shared = shared_names(node)
        self.enter()
        try:
            self.read_head(annotations, options)
            self.block(node.body)
            if self.faults:
                raise Followed  # what was told on the way is raised below
            self.flatten_pending()
            self.at(node)
            made = self.finish(options.check)
        except Exception as e:
            raise self.fault_of(e) from None
        finally:
            self.leave()
        self.show_warnings()
        return made

    def read_head(self, annotations: dict[str, Any], options: Options) -> None:
        node = self.source.node
        self.is_device_function = options.private and not options.kernel and not has_entry(node)
        self.set_options(self.source.name, options)
        self.signature_of_kernel(node, annotations, options)

    def read_signature(self, annotations: dict[str, Any], options: Options) -> Any:
        """The parameters and the return type alone, for callers in the same module."""
        self.enter()
        try:
            self.read_head(annotations, options)
            return self.finish(False)
        except Exception as e:
            raise self.fault_of(e) from None
        finally:
            self.leave()

    def fault_of(self, e: Exception) -> Exception:
        """What to raise for an exception that has ended the walk."""
        if not self.faults:
            try:
                self.explain(e)
            except DiagnosticError as told:
                return told
            return e
        return self.all_faults(e)

    def file_index(self, found: source.Source) -> int:
        index = self.files.get(id(found))
        if index is None:
            index = self.files[id(found)] = self.ctx.add_file(found.file, found.text, found.first_line)
        return index

    def explain(self, e: Exception) -> None:
        """An exception that leaves the walk. A fault in the kernel becomes a diagnostic at the current place; an
        exception of the user's own Python code passes, with a note that names the kernel's line."""
        if isinstance(e, (Error, MemoryError)):
            return
        if isinstance(e, RecursionError):
            names = round_of_helpers(e)
            if names:
                self.ctx.fail("HELPER_RECURSION", names[0], " -> ".join(names))
            if self.inlined is not None and self.inlined.depth > 5:
                self.ctx.fail("INLINE_RECURSION", self.inlined.function.__name__, help=self.round_of_inlines())
            self.ctx.fail("PYTHON_RECURSION")
        trace = e.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            if not getattr(e, "_tirx_noted", False):
                file, line, *_ = self.ctx.span_info(self.ctx.span)
                e.add_note(f"while the kernel '{self.builder.name}' was built: File \"{file}\", line {line}")
                e._tirx_noted = True  # type: ignore[attr-defined]
            return
        for kind, row in ((TypeError, "PYTHON_TYPE"), (ValueError, "PYTHON_VALUE")):
            if isinstance(e, kind):
                self.ctx.fail(row, str(e))
        self.ctx.fail("PYTHON_KEY" if isinstance(e, KeyError) else "PYTHON_OTHER", f"{type(e).__name__}: {e}")

    # ---- the signature ---------------------------------------------------------------------------------------------

    def signature_of_kernel(self, node: ast.FunctionDef, annotations: dict[str, Any], options: Options) -> None:
        a = node.args
        for star, sign in ((a.vararg, "*"), (a.kwarg, "**")):
            if star is not None:
                self.at(star)
                self.ctx.fail("STAR_PARAMETER", sign + star.arg)
        args = [*a.posonlyargs, *a.args, *a.kwonlyargs]
        defaults = self.defaults(a)
        found: dict[str, Any] = {}
        self.scope.names.update(options.constants)  # annotations may name them
        self.in_annotation = True
        self.scope.names.update(options.constants)
        for arg in args:
            # scalars first: shapes may name scalars that come later
            value = annotations.get(arg.arg, arg.annotation)
            if isinstance(value, ast.expr) or isinstance(value, str):
                if not isinstance(arg.annotation, (ast.Name, ast.Attribute)):
                    continue
                value = self.annotation(arg.annotation)
            if isinstance(value, dtypes.DType):
                self.at(arg)
                variable = _core.var(self.ctx, "param", arg.arg, value.dtype)
                self.scalar_params[arg.arg] = variable
                if arg.arg not in options.constants:
                    self.scope.names[arg.arg] = variable
            found[arg.arg] = value
        for arg in args:
            if arg.arg in options.constants:
                continue
            if arg.annotation is None:
                self.at(arg)
                self.ctx.fail("PARAMETER_ANNOTATION", arg.arg)
            value = found[arg.arg] if arg.arg in found else annotations.get(arg.arg)
            if value is None or isinstance(value, str):
                self.at(arg.annotation)
                value = self.annotation(arg.annotation)
            if arg.arg in defaults and not isinstance(value, Constexpr):
                self.at(defaults[arg.arg])
                self.ctx.fail("PARAMETER_DEFAULT", arg.arg)
            self.at(arg)
            self.parameter(arg.arg, value, options, arg.annotation)
        self.in_annotation = False
        if node.returns is not None and not (isinstance(node.returns, ast.Constant) and node.returns.value is None):
            self.at(node.returns)
            returned = annotations.get("return")
            if returned is None or isinstance(returned, str):
                returned = self.annotation(node.returns)
            self.builder.set_ret(returned)

    def defaults(self, a: ast.arguments) -> dict[str, ast.expr]:
        positional = [*a.posonlyargs, *a.args]
        found = {
            arg.arg: d for arg, d in zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=False)
        }
        found.update({arg.arg: d for arg, d in zip(a.kwonlyargs, a.kw_defaults, strict=False) if d is not None})
        return found

    # ---- sizes -----------------------------------------------------------------------------------------------------

    def quoted(self, text: str, node: ast.expr | None) -> Any:
        """ "m + 1" in a shape: names that are not bound become symbols."""
        try:
            tree = source.read_tree(text.strip(), mode="eval").body
        except SyntaxError:
            self.ctx.fail("QUOTED_SHAPE", text)
        called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        called |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        for n in ast.walk(tree):
            if node is not None:
                ast.copy_location(n, node)
            if isinstance(n, ast.Name) and n.id not in self.scope.names:
                base = n.id
                if id(n) in called and (base == "T" or hasattr(builtins, base)):
                    continue
                variable = self.scalar_params.get(base)
                if variable is None:
                    variable = self.quoted_symbols[base] = self.make_symbol(base, "int32")
                self.scope.names[base] = variable
        return self.value(tree)


def round_of_helpers(e: RecursionError) -> list[str] | None:
    """The functions of the user that call each other without end, the first one again at the end."""
    called: list[Any] = []
    trace = e.__traceback__
    while trace is not None:
        called.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    own = [c for c in called[-200:] if not c.co_filename.startswith(_PACKAGE)]
    if len(own) < 100 or own[-1] not in own[:-1]:
        return None  # it is the kernel's text that is deep
    own.reverse()
    turn = own[: own.index(own[0], 1)][::-1]
    first = turn.index(next(c for c in called if c in turn))  # the one that was called first
    return [c.co_name for c in (*turn[first:], *turn[:first], turn[first])]


def has_entry(tree: ast.AST) -> bool:
    """Whether the text opens a device region; a private function that does not is a device function."""
    for n in ast.walk(tree):
        if isinstance(n, ast.Attribute) and n.attr in _ENTRIES or isinstance(n, ast.Name) and n.id in _ENTRIES:
            return True
        if isinstance(n, ast.Constant) and n.value == "tirx.device_entry":
            return True
    return False


def new_parser(
    function: Any,
    found: source.Source,
    dialect: str,
    locals_around: dict[str, Any] | None = None,
    names: dict[str, Any] | None = None,
) -> Parser:
    """`locals_around` has the names of the function that defines it, `names` those that hide them."""
    closure: dict[str, Any] = dict(locals_around or {})
    closure.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    scope = Scope(None, function.__globals__, closure, vars(builtins))
    scope.names.update(names or {})
    return Parser(found, dialect, scope)


def parse_function(
    function: Any,
    found: source.Source,
    dialect: str,
    options: Options,
    locals_around: dict[str, Any] | None = None,
    names: dict[str, Any] | None = None,
) -> Any:
    """The IR of a Python function."""
    parser = new_parser(function, found, dialect, locals_around, names)
    try:
        return parser.parse(annotations_of(function), options)
    except DiagnosticError as e:
        # the walk's own frames, and what it made the diagnostic from, say nothing to the user
        e.__traceback__ = None
        e.__suppress_context__ = True
        raise


def annotations_of(function: Any) -> dict[str, Any]:
    """Annotations as Python evaluated them; those that it has not are left to the parser."""
    try:
        return {k: v for k, v in function.__annotations__.items() if not isinstance(v, str)}
    except Exception:  # evaluated when asked for (Python 3.14), and names may be missing
        return {}


__all__ = ["IR", "Options", "Parser", "is_typing_optional", "parse_function"]
