# SPDX-License-Identifier: Apache-2.0
"""A function under construction: the context and builder of the core, its parameters and sizes, the frames that are
open, and what was made but not yet named.

The functions of T and the frames work on the Building of this thread (state.py), whoever made it: the parser, which
walks a function's tree, or tirx.builder, whose functions are called one by one.
"""

from __future__ import annotations

import ast
import warnings
from typing import Any

from tirx import _core
from tirx.errors import UnusedWarning
from tirx.script import dtypes, state, symbols
from tirx.script.annotations import Constexpr, HandleType, NoneType, TensorType
from tirx.script.expressions import Expr, describe
from tirx.script.scope import Scope

_PARAM_ABSENT = 1
_FLAG_PRIVATE, _FLAG_PERSISTENT, _FLAG_NO_CHECK, _FLAG_KERNEL, _FLAG_DEVICE, _FLAG_CALLS = 1, 2, 4, 8, 16, 64


_told: dict[Any, Any] = {}  # by warnings: what was told already


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


class Building:
    """One function under construction. Python code that runs meanwhile may emit through T."""

    def __init__(self, ctx: Any, name: str, dialect: str, scope: Scope):
        self.ctx = ctx
        self.dialect = dialect
        self.scope = scope  # names that quoted sizes may use
        self.builder = _core.Builder(self.ctx, name, dialect)
        self.outer: Building | None = None
        self.in_annotation = False
        self.emitted = 0  # grows with everything that may have emitted a statement
        self.helper_depth = 0  # plain Python functions being run
        self.workspaces: list[Any] = []  # dtype and size of each T.workspace
        self.named_barriers = 0  # that T.named_barrier has given out

        self.effects: dict[int, Any] = {}  # variables of calls that were emitted when made, by identity
        self.fresh: dict[int, Any] = {}  # results that no name was given yet, by identity
        self.symbol_vars: dict[Any, tuple[Any, int]] = {}  # symbol -> (variable, span): made here or captured
        self.outside_symbols: dict[int, tuple[Any, Any]] = {}  # id of a Symbol -> (it, its variable)
        self.quoted_symbols: dict[str, Any] = {}  # symbols that a quoted shape made
        self.registered: set[Any] = set()  # symbols of shapes
        self.scalar_params: dict[str, Any] = {}
        self.handles: list[Any] = []  # handle parameters

        self.env_threads: list[tuple[Any, str]] = []  # indices that T.env_thread gave, and their axes
        self.function_name = name
        self.flags = 0  # TX_FUNC_*
        self.is_device_function = False  # private, without a device entry: device code calls it
        self.calls_members = False  # of the module around
        self.tells_unused = True
        self.frames: list[Any] = []  # open, outermost first
        self.pending_frames: list[Any] = []  # made, and flat unless `with` enters them next
        self.given_up: str | None = None  # the frame that an exception left
        self.traced = False  # plain Python code makes the IR, and places are those of its frames
        self.entries = 0
        self.entries_closed = False
        self.launch: Any = None
        self.given_name: str | None = None  # by T.func_name
        self.given_return: Any = None  # by T.func_ret
        self.thread_extents: list[Any] | None = None  # extents of T.thread_id

    def at(self, node: Any) -> int:
        raise NotImplementedError

    def quoted(self, text: str, node: ast.expr | None) -> Any:
        raise NotImplementedError

    def captured(self, value: Any) -> Any:
        raise NotImplementedError

    # ---- beginning and end -----------------------------------------------------------------------------------------

    def enter(self) -> None:
        """From now on this is what the functions of T work on; nests."""
        self.outer = state.enter(self)
        self.builder.activate()

    def leave(self) -> None:
        self.builder.deactivate()
        state.leave(self.outer)
        self.outer = None

    def finish(self, check: bool) -> Any:
        self.flatten_pending()
        if self.calls_members:
            self.builder.set_flags(self.flags | _FLAG_CALLS)
        if self.given_up is not None:
            self.ctx.fail("FUNCTION_GIVEN_UP", self.builder.name, self.given_up)
        self.close_flat(None)
        if self.frames:
            self.ctx.fail("FRAME_ORDER", "the function", self.frames[-1].what)
        return self.builder.finish(check)

    def show_warnings(self) -> None:
        """What the compiler has to say about a function that it has accepted."""
        for text, file, line, row in self.ctx.take_warnings():
            if row not in ("UNUSED_PARAMETER", "UNUSED_VARIABLE"):
                warnings.warn_explicit(text, UserWarning, file, line)
            elif self.tells_unused and not file.startswith("<tirx source"):  # printed text has no author to tell
                warnings.warn_explicit(text, UnusedWarning, file, line, registry=_told)

    def set_options(self, name: str, options: Options) -> None:
        self.tells_unused = not options.is_jit  # another specialisation may use it
        self.flags = (
            _FLAG_PRIVATE * options.private
            | _FLAG_PERSISTENT * options.persistent
            | _FLAG_NO_CHECK * (not options.check)
            | _FLAG_KERNEL * options.kernel
            | _FLAG_DEVICE * self.is_device_function
        )
        if self.flags:
            self.builder.set_flags(self.flags)
        self.builder.set_symbol(None if options.private else name)

    def block_shape(self) -> Any:
        """Extents of the block as far as they are written; None if they are not."""
        return self.thread_extents if self.thread_extents is not None else getattr(self.launch, "block", None)

    # ---- frames ----------------------------------------------------------------------------------------------------

    def add_pending(self, frame: Any) -> None:
        if self.pending_frames:
            self.settle_frames()
        self.pending_frames.append(frame)
        self.builder.before = self.settle_frames

    def settle_frames(self) -> None:
        """Before something is emitted: what can only have been meant flat is."""
        self.builder.before = None
        for frame in list(self.pending_frames):
            if frame.may_be_flat and frame in self.pending_frames:
                frame.flat()

    def set_name(self, name: str) -> None:
        """T.func_name."""
        self.name_once(name)
        self.builder.set_name(name)

    def name_once(self, name: str) -> None:
        if self.given_name is not None:
            raise ValueError(f"Duplicate prim func name: {self.given_name!r} and {name!r}")
        self.given_name = name

    def return_once(self, dtype: Any) -> None:
        """T.func_ret."""
        if self.given_return is not None:
            raise ValueError(f"Duplicate prim func return type: {self.given_return!r} and {dtype!r}")
        self.given_return = dtype
        self.builder.set_ret(dtype)

    def set_symbol(self, name: str | None) -> None:
        """The attribute "global_symbol"."""
        self.builder.set_symbol(name)

    def flatten_pending(self) -> None:
        """Frames that stood as statements in plain Python code: they are flat."""
        while self.pending_frames:
            self.pending_frames[0].flat()

    def close_flat(self, frame: Any) -> None:
        """The flat frames in `frame` end with it; the core closes their blocks."""
        while self.frames and self.frames[-1].is_flat and self.frames[-1] is not frame:
            self.frames[-1].run_callbacks()
            self.frames.pop()

    def leave_frame(self, frame: Any) -> None:
        self.close_flat(frame)
        if not self.frames or self.frames[-1] is not frame:
            if any(f is frame for f in self.frames):
                self.ctx.fail("FRAME_ORDER", frame.what, self.frames[-1].what)
            self.ctx.fail("FRAME_NOT_OPEN", frame.what)
        frame.run_callbacks()
        self.close_flat(frame)  # what the callbacks opened
        self.frames.pop()

    def give_up(self, frame: Any) -> None:
        if any(f is frame for f in self.frames):
            while self.frames.pop() is not frame:
                pass
        self.pending_frames.clear()
        self.given_up = self.given_up or frame.what

    # ---- parameters ------------------------------------------------------------------------------------------------

    def parameter(self, name: str, value: Any, options: Options, node: ast.expr | None = None) -> Any:
        """The next parameter: `value` is what stands behind its colon, `node` its text. Gives what the body uses."""
        if isinstance(value, Constexpr):
            self.ctx.fail("CONSTEXPR_PARAMETER", name)
        if isinstance(value, dtypes.Optional) or is_typing_optional(value):
            if not options.is_jit:
                self.ctx.fail("OPTIONAL_PARAMETER", name)
            if name in options.absent:
                return self.absent_parameter(name)
            value = value.inner if isinstance(value, dtypes.Optional) else typing_optional(value)
        value = dtypes.of_annotation(value)
        if isinstance(value, dtypes.DType):
            if value.dtype == "void" or "x" in value.dtype and not self.is_device_function:
                self.ctx.fail("BAD_PARAMETER", name, value.dtype)
            variable = self.scalar_params.get(name)
            if variable is None:
                variable = self.scalar_params[name] = _core.var(self.ctx, "param", name, value.dtype)
            return self.bind_parameter(name, variable)
        if isinstance(value, HandleType):
            variable = _core.var(self.ctx, "param", name, "handle", value.elem, value.scope)
            self.handles.append(variable)
            return self.bind_parameter(name, variable)
        if isinstance(value, TensorType):
            return self.bind_parameter(name, self.tensor(name, value, node))
        if isinstance(value, NoneType):
            return self.absent_parameter(name, True)
        if node is not None:
            self.at(node)
        self.ctx.fail("BAD_PARAMETER", name, describe(value))

    def bind_parameter(self, name: str, x: Any) -> Any:
        self.scope.names[name] = x
        self.builder.param(name, x)
        return x

    def absent_parameter(self, name: str, written: bool = False) -> None:
        """g1 leaves the parameter out of the call, g2 keeps its place."""
        self.scope.names[name] = None
        if written or self.dialect == "g2":
            self.builder.param(name, _core.var(self.ctx, "param", name, "handle"), _PARAM_ABSENT)

    def tensor(self, name: str, t: TensorType, node: ast.expr | None) -> Any:
        fields = {k: v for k, v in t.fields.items() if v is not None and v != 0}
        shape = [self.dimension(d, node) for d in t.shape]
        strides = fields.get("strides")
        if strides is not None:
            fields["strides"] = strides = [self.dimension(s, node) for s in strides]
        for key in ("elem_offset", "byte_offset"):
            if key in fields:
                fields[key] = self.dimension(fields[key], node)
        if node is not None:
            self.at(node)
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

    def make_symbol(self, name: str, dtype: str) -> Expr:
        variable = _core.var(self.ctx, "symbol", name, dtype)
        self.symbol_vars[variable] = (variable, self.ctx.span)
        return variable

    def new_symbol(self, dtype: str) -> Expr:
        """T.int32() in a kernel."""
        variable = _core.var(self.ctx, "free", "v", dtype)
        if dtype in ("int32", "int64", "uint32", "uint64") and self.in_head():
            self.symbol_vars[variable] = (variable, self.ctx.span)
        return self.add_fresh(variable)

    def in_head(self) -> bool:
        """Where sizes and buffers of parameters are declared: before the device code, or in a device function."""
        return self.builder.zone == "host" or self.is_device_function and self.builder.depth == 1

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
        return self.add_fresh(variable)

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

    # ---- results of calls ------------------------------------------------------------------------------------------

    def bind_droppable(self, what: str, call: Any) -> Expr:
        """What a call with an effect gives in plain Python code, which may drop it: the call is made here and now."""
        v = state.builder(what).bind(self.result_names("v")[0], call, None, True)
        self.effects[id(v)] = v
        return v

    def result_names(self, *defaults: str) -> list[str]:
        """Names for what a function of T gives, where its caller gives none."""
        return list(defaults)

    # ---- results without a name ------------------------------------------------------------------------------------

    def add_fresh(self, x: Any) -> Any:
        self.fresh[id(x)] = x
        return x

    def add_results(self, *results: Any) -> None:
        for x in results:
            self.fresh[id(x)] = x

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
