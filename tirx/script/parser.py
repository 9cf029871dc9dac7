# SPDX-License-Identifier: Apache-2.0
"""From a Python function's tree to IR: one Parser per kernel.

The Parser walks the tree once. Expressions are evaluated (expressions.py), statements recorded (statements.py), inline
functions expanded where they are called (functions.py); the functions of T find it through state.py. It holds what the
walk needs: the context and builder of the core, the scope of names, and what was made but not yet named.
"""

from __future__ import annotations

import ast
import builtins
import os
import warnings
from typing import Any

from tirx import _core
from tirx.errors import DiagnosticError, Error
from tirx.script import dtypes, source, state, symbols
from tirx.script.annotations import Constexpr, HandleType, NoneType, TensorType
from tirx.script.expressions import IR, Expr, Expressions, describe
from tirx.script.functions import Functions, shared_names
from tirx.script.scope import Scope

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_MAX_INLINE_DEPTH = 200
_PARAM_ABSENT = 1
_FLAG_PRIVATE, _FLAG_PERSISTENT, _FLAG_NO_CHECK, _FLAG_KERNEL = 1, 2, 4, 8


class Options:
    """Arguments of the decorator, and what .specialize() fixed."""

    __slots__ = ("absent", "check", "constants", "is_jit", "kernel", "persistent", "private")

    def __init__(self, private: bool = False, check: bool = True, persistent: bool = False, kernel: bool = False):
        self.kernel = kernel
        self.private = private
        self.check = check
        self.persistent = persistent
        self.is_jit = False
        self.constants: dict[str, Any] = {}
        self.absent: set[str] = set()


class Parser(Functions, Expressions):
    max_inline_depth = _MAX_INLINE_DEPTH

    def __init__(self, found: source.Source, dialect: str, scope: Scope):
        self.ctx = _core.Context()
        self.at = self.ctx.at
        self.dialect = dialect
        self.scope = scope
        self.source = found
        self.files: dict[int, int] = {}
        self.file = self.file_index(found)
        self.file_name = found.file
        self.line_offset = found.line_offset
        self.ctx.set_place(self.file, found.name, 0, found.line_offset)
        self.at(found.node)
        self.builder = _core.Builder(self.ctx, found.name, dialect)

        self.inlined: Any = None  # the Expansion that is being walked
        self.loops: list[tuple[str, int]] = []  # loops around, innermost last: ("run" | "python", run_time there)
        self.hoists: dict[str, list[Any]] = {}  # names that both arms of a branch around bind -> [scope, cell, depth]
        self.operands: list[list[Any]] = []  # values that wait for another operand of theirs
        self.run_time = 0  # run-time blocks around
        self.emitted = 0  # grows with everything that may have emitted a statement
        self.helper_depth = 0  # plain Python functions being run
        self.in_annotation = False

        self.fresh: dict[int, Any] = {}  # results that no name was given yet, by identity
        self.symbol_vars: dict[Any, tuple[Any, int]] = {}  # symbol -> (variable, span): made here or captured
        self.outside_symbols: dict[int, tuple[Any, Any]] = {}  # id of a Symbol -> (it, its variable)
        self.quoted_symbols: dict[str, Any] = {}  # symbols that a quoted shape made
        self.registered: set[Any] = set()  # symbols of shapes
        self.scalar_params: dict[str, Any] = {}
        self.handles: list[Any] = []  # handle parameters

        self.pending_frames: list[Any] = []
        self.open_ifs: list[Any] = []
        self.entries = 0
        self.entries_closed = False
        self.launch: Any = None

    # ---- the whole function ----------------------------------------------------------------------------------------

    def parse(self, annotations: dict[str, Any], options: Options) -> Any:
        node = self.source.node
        self.scope.shared = shared_names(node)
        outer = state.enter(self)
        self.builder.activate()
        try:
            self.set_options(options)
            self.signature_of_kernel(node, annotations, options)
            self.block(node.body)
            self.flatten_pending()
            self.at(node)
            made = self.builder.finish(options.check)
        except Exception as e:
            self.explain(e)
            raise
        finally:
            self.builder.deactivate()
            state.leave(outer)
        for text, file, line in self.ctx.take_warnings():
            warnings.warn_explicit(text, UserWarning, file, line)
        return made

    def set_options(self, options: Options) -> None:
        flags = (
            _FLAG_PRIVATE * options.private
            | _FLAG_PERSISTENT * options.persistent
            | _FLAG_NO_CHECK * (not options.check)
            | _FLAG_KERNEL * options.kernel
        )
        if flags:
            self.builder.set_flags(flags)
        self.builder.set_symbol(None if options.private else self.source.name)

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
            if self.inlined is not None and self.inlined.depth > 5:
                self.ctx.fail("INLINE_RECURSION", self.inlined.function.__name__)
            self.ctx.fail("PYTHON_RECURSION")
        trace = e.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            if not getattr(e, "_tirx_noted", False):
                file, line, *_ = self.ctx.span_info(self.ctx.span)
                e.add_note(f"while the kernel '{self.source.name}' was built: File \"{file}\", line {line}")
                e._tirx_noted = True  # type: ignore[attr-defined]
            return
        for kind, row in ((TypeError, "PYTHON_TYPE"), (ValueError, "PYTHON_VALUE")):
            if isinstance(e, kind):
                self.ctx.fail(row, str(e))
        self.ctx.fail("PYTHON_KEY" if isinstance(e, KeyError) else "PYTHON_OTHER", f"{type(e).__name__}: {e}")

    def flatten_pending(self) -> None:
        """Frames that stood as statements in plain Python code: they are flat."""
        while self.pending_frames:
            self.pending_frames[0].flat()

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
            self.parameter(arg, value, options)
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

    def parameter(self, arg: ast.arg, value: Any, options: Options) -> None:
        name = arg.arg
        if isinstance(value, Constexpr):
            self.ctx.fail("CONSTEXPR_PARAMETER", name)
        if isinstance(value, dtypes.Optional) or is_typing_optional(value):
            if not options.is_jit:
                self.ctx.fail("OPTIONAL_PARAMETER", name)
            if name in options.absent:
                self.absent_parameter(name)
                return
            value = value.inner if isinstance(value, dtypes.Optional) else typing_optional(value)
        if isinstance(value, dtypes.DType):
            variable = self.scalar_params.get(name)
            if variable is None:
                variable = self.scalar_params[name] = _core.var(self.ctx, "param", name, value.dtype)
            self.scope.names[name] = variable
            self.builder.param(name, variable)
        elif isinstance(value, HandleType):
            variable = _core.var(self.ctx, "param", name, "handle", value.elem, value.scope)
            self.handles.append(variable)
            self.scope.names[name] = variable
            self.builder.param(name, variable)
        elif isinstance(value, TensorType):
            buffer = self.tensor(name, value, arg)
            self.scope.names[name] = buffer
            self.builder.param(name, buffer)
        elif isinstance(value, NoneType):
            self.absent_parameter(name)
        else:
            if arg.annotation is not None:
                self.at(arg.annotation)
            self.ctx.fail("BAD_PARAMETER", name, describe(value))

    def absent_parameter(self, name: str) -> None:
        """g1 leaves the parameter out of the call, g2 keeps its place."""
        self.scope.names[name] = None
        if self.dialect == "g2":
            self.builder.param(name, _core.var(self.ctx, "param", name, "handle"), _PARAM_ABSENT)

    def tensor(self, name: str, t: TensorType, arg: ast.arg) -> Any:
        fields = {k: v for k, v in t.fields.items() if v is not None and v != 0}
        shape = [self.dimension(d, arg.annotation) for d in t.shape]
        strides = fields.get("strides")
        if strides is not None:
            fields["strides"] = strides = [self.dimension(s, arg.annotation) for s in strides]
        for key in ("elem_offset", "byte_offset"):
            if key in fields:
                fields[key] = self.dimension(fields[key], arg.annotation)
        if arg.annotation is not None:
            self.at(arg.annotation)
        if t.is_g2:
            fields["flags"] = 128
        buffer = _core.buffer(self.ctx, name, shape, t.dtype, **fields)
        self.add_equations(shape, strides)
        return buffer

    # ---- sizes -----------------------------------------------------------------------------------------------------

    def dimension(self, d: Any, node: ast.expr | None) -> Any:
        """An extent, stride or offset as it was written: a number, an expression, or a quoted one."""
        if node is not None:
            self.at(node)
        if isinstance(d, str):
            return self.quoted(d, node)
        if isinstance(d, symbols.Deferred):
            return d.__tirx_expr__(self.ctx)
        return self.captured(d)

    def quoted(self, text: str, node: ast.expr | None) -> Any:
        """ "m + 1" in a shape: names that are not bound become symbols."""
        try:
            tree = source.read_tree(text.strip(), mode="eval").body
        except SyntaxError:
            self.ctx.fail("QUOTED_SHAPE", text)
        for n in ast.walk(tree):
            if node is not None:
                ast.copy_location(n, node)
            if isinstance(n, ast.Name) and n.id not in self.scope.names:
                base = n.id
                if base == "T" or hasattr(builtins, base):
                    continue
                variable = self.scalar_params.get(base)
                if variable is None:
                    variable = self.quoted_symbols[base] = self.make_symbol(base, "int32")
                self.scope.names[base] = variable
        return self.value(tree)

    def make_symbol(self, name: str, dtype: str) -> Expr:
        variable = _core.var(self.ctx, "symbol", name, dtype)
        self.symbol_vars[variable] = (variable, self.ctx.span)
        return variable

    def new_symbol(self, dtype: str) -> Expr:
        """T.int32() in a kernel."""
        variable = _core.var(self.ctx, "free", "v", dtype)
        if dtype in ("int32", "int64", "uint32", "uint64") and self.builder.zone == "host":
            self.symbol_vars[variable] = (variable, self.ctx.span)
        self.fresh[id(variable)] = variable
        return variable

    def declares_quoted(self, name: str, value: Expr) -> bool:
        """`n = T.int32()` behind a parameter of shape ("n",): the printed form declares the symbol once more."""
        before = self.quoted_symbols.get(name)
        if before is None or value not in self.symbol_vars or self.scope.names.get(name) is not before:
            return False
        if before.dtype != value.dtype:
            return False
        self.forget_fresh(value)
        return True

    def new_pointer(self, made: HandleType) -> Expr:
        variable = _core.var(self.ctx, "free", "p", "handle", made.elem, made.scope)
        self.fresh[id(variable)] = variable
        return variable

    def captured_symbol(self, symbol: symbols.Symbol) -> Expr:
        found = self.outside_symbols.get(id(symbol))
        if found is None:
            found = self.outside_symbols[id(symbol)] = (symbol, self.make_symbol(symbol.name, symbol.dtype))
        return found[1]

    def type_parameter(self, variable: Any) -> Expr:
        """def f[n](...), def f[N: T.int64](...): a size."""
        found = self.outside_symbols.get(id(variable))
        if found is None:
            bound = variable.__bound__
            dtype = "int32" if bound in (None, int) else _core.parse_dtype(bound)
            found = self.outside_symbols[id(variable)] = (variable, self.make_symbol(variable.__name__, dtype))
        return found[1]

    def add_equations(self, shape: list[Any], strides: list[Any] | None) -> None:
        """Dimensions and strides of a parameter: what the call gets the symbols from."""
        for e in (*shape, *(strides or ())):
            if isinstance(e, Expr):
                self.register_symbols(e)

    def register_symbols(self, e: Expr) -> None:
        if e.op == "VAR":
            if e in self.symbol_vars and e not in self.registered:
                self.registered.add(e)
                self.builder.add_symbol(e)
            return
        for a in e.args:
            self.register_symbols(a)

    # ---- results without a name ------------------------------------------------------------------------------------

    def add_fresh(self, x: Any) -> Any:
        self.fresh[id(x)] = x
        return x

    def is_fresh(self, x: Any) -> bool:
        return id(x) in self.fresh

    def take_fresh(self, x: Any, name: str) -> None:
        del self.fresh[id(x)]
        _core.rename(x, name)

    def forget_fresh(self, x: Any) -> None:
        self.fresh.pop(id(x), None)


def is_typing_optional(x: Any) -> bool:
    args = getattr(x, "__args__", None)
    return args is not None and len(args) == 2 and type(None) in args


def typing_optional(x: Any) -> Any:
    return next(a for a in x.__args__ if a is not type(None))


def parse_function(
    function: Any,
    found: source.Source,
    dialect: str,
    options: Options,
    locals_around: dict[str, Any] | None = None,
) -> Any:
    """The IR of a Python function; `locals_around` has the names of the function that defines it."""
    closure: dict[str, Any] = dict(locals_around or {})
    closure.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    scope = Scope(None, function.__globals__, closure, vars(builtins))
    parser = Parser(found, dialect, scope)
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


__all__ = ["IR", "Options", "Parser", "parse_function"]
