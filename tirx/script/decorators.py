# SPDX-License-Identifier: Apache-2.0
"""The decorators: prim_func and function parse at once, jit when it is specialised, inline when it is called."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

from tirx.script import dtypes, functions, source
from tirx.script import trace as trace_
from tirx.script.annotations import Constexpr, TensorType
from tirx.script.parser import Options, is_typing_optional, parse_function

_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: the code of a function
_ASYNC = 0x80 | 0x200  # inspect.CO_COROUTINE, CO_ASYNC_GENERATOR
_NO_PLAIN_FUNCTION = 0x20 | _ASYNC  # and CO_GENERATOR: it would run to its first yield only


def prim_func(
    func: Any = None,
    private: bool = False,
    check_well_formed: bool = True,
    s_tir: bool = False,
    persistent: bool = False,
    kernel: bool = False,
) -> Any:
    """A kernel of the g1 dialect, parsed where it stands. `kernel` is the printed form of a device function after the
    host half was split off."""
    if s_tir:
        raise TypeError("T.prim_func(s_tir=True) is not supported by tirx: write the kernel with T.device_entry()")
    return _parse_or_wait(func, "g1", Options(private, check_well_formed, persistent, kernel))


def function(
    func: Any = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    persistent: bool = False,
    kernel: bool = False,
) -> Any:
    """A kernel of the g2 dialect, parsed where it stands."""
    return _parse_or_wait(func, "g2", Options(private, check_well_formed, persistent, kernel))


def _parse_or_wait(func: Any, dialect: str, options: Options) -> Any:
    caller = sys._getframe(2)

    def decorate(f: Any, frame: Any) -> Any:
        _check_function(f)
        if _is_module_class(frame):
            if f.__name__ in frame.f_locals:
                name = frame.f_locals.get("__qualname__", "Module").rpartition(".")[2]
                raise functions.fault_at(_source(f), "MEMBER_DUPLICATE", name, f.__name__)
            f._tirx_member = (dialect, options, _locals_around(f, frame))
            return f
        return parse_function(f, _source(f), dialect, options, _locals_around(f, frame))

    if func is None:
        return trace_.PrimFuncFrame(dialect, options, lambda f: decorate(f, sys._getframe(2)))
    return decorate(func, caller)


def trace(
    func: Any = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    persistent: bool = False,
    dialect: str = "g1",
    name: str | None = None,
    annotations: dict[str, Any] | None = None,
) -> Any:
    """A kernel made by running the function once, as plain Python: its `if`s and `for`s are decided now, and what it
    calls of T is what the kernel does. Needs no source text. `annotations` are for what has none, as a lambda."""
    if dialect not in ("g1", "g2"):
        raise ValueError(f'dialect is "g1" or "g2", not {dialect!r}')

    def decorate(f: Any) -> Any:
        if not isinstance(f, types.FunctionType):  # a lambda, too: it is run, not read
            raise TypeError(f"Expect a function, but got: {f!r}")
        if f.__code__.co_flags & _NO_PLAIN_FUNCTION:
            raise TypeError(f"Expect a plain function, but got a generator or an async one: {f!r}")
        called = name or (f.__name__ if f.__name__.isidentifier() else "main")
        if not called.isidentifier():
            raise ValueError(f"T.trace: a name is an identifier, got {called!r}")
        options = Options(private, check_well_formed, persistent)
        around = _locals_around(f, sys._getframe(1)) or {}
        return trace_.trace_function(f, dialect, options, called, annotations or {}, around)

    return decorate if func is None else decorate(func)


def _check_function(f: Any) -> None:
    if not isinstance(f, types.FunctionType):
        raise TypeError(f"Expect a function, but got: {f!r}")
    if f.__name__ == "<lambda>":
        raise TypeError(f"Expect a function with statements, but got: {f!r}; write it with def")
    if f.__code__.co_flags & _ASYNC:  # a yield is refused where it stands
        raise TypeError(f"Expect a plain function, but got an async one: {f!r}")


def _source(f: Any) -> source.Source:
    try:
        return source.of_function(f)
    except source.NoSource:
        raise functions.no_source(f) from None


def _is_module_class(frame: Any) -> bool:
    """Whether the frame is the body of a class that is decorated as a module."""
    code = frame.f_code
    if code.co_flags & _OPTIMIZED or "__qualname__" not in frame.f_locals:
        return False
    lines = source.lines_of(code.co_filename)
    for line in lines[code.co_firstlineno - 1 :]:
        text = line.strip()
        if text.startswith("class "):
            return False
        if text.startswith("@") and "ir_module" in text:
            return True
    return False


def _locals_around(f: Any, frame: Any) -> dict[str, Any] | None:
    """Names of the functions around, for annotations that Python did not evaluate (they capture nothing)."""
    try:
        if not any(isinstance(a, str) for a in f.__annotations__.values()):
            return None
    except Exception:
        pass
    found: dict[str, Any] = {}
    around = [name.rpartition(".")[2] for name in f.__qualname__.split(".<locals>.")[:-1]]
    while around and frame is not None:
        if frame.f_code.co_name == around[-1] and frame.f_code.co_filename == f.__code__.co_filename:
            around.pop()
            for name, value in frame.f_locals.items():
                found.setdefault(name, value)
        frame = frame.f_back
    return found


# ---- jit -----------------------------------------------------------------------------------------------------------


def jit(
    func: Any = None,
    *,
    private: bool = False,
    check_well_formed: bool = True,
    is_stir: bool = False,
    persistent: bool = False,
) -> Any:
    """A kernel with compile-time parameters (T.constexpr), parsed by .specialize(...)."""
    if is_stir:
        raise TypeError("T.jit(is_stir=True) is not supported by tirx: write the kernel with T.device_entry()")
    options = (private, check_well_formed, persistent)
    if func is not None:
        return JitFunction(func, options, sys._getframe(1))
    return lambda f: JitFunction(f, options, sys._getframe(1))


class JitFunction:
    """What @T.jit makes. `.specialize(N=256)` gives an ordinary function; the same values give the same object."""

    def __init__(self, func: Any, options: tuple, frame: Any):
        _check_function(func)
        self.__name__ = func.__name__
        self.__doc__ = func.__doc__
        self._function = func
        self._source = _source(func)
        self._options = options
        self._locals = _locals_around(func, frame)
        self._made: dict[Any, Any] = {}
        self._lock = threading.RLock()
        self._kinds: dict[str, str] | None = None
        self._dialect = "g1"

    def __repr__(self) -> str:
        return f"<jit function {self.__name__}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        raise TypeError(f"{self.__name__} is a @T.jit function: call .specialize(...) first, then compile")

    def _find_kinds(self) -> dict[str, str]:
        """Parameter -> "constexpr", "optional" or "run-time", by annotation."""
        if self._kinds is not None:
            return self._kinds
        import ast

        kinds: dict[str, str] = {}
        a = self._source.node.args
        evaluated = _evaluated_annotations(self._function)
        is_g2 = False
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs):
            value = evaluated.get(arg.arg)
            node = arg.annotation
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                try:
                    node = source.read_tree(node.value.strip(), mode="eval").body
                except SyntaxError:
                    node = None
            text = "" if node is None else ast.unparse(node)
            if isinstance(value, Constexpr) or text.rpartition(".")[2] == "constexpr":
                kinds[arg.arg] = "constexpr"
            elif (
                isinstance(value, dtypes.Optional)
                or is_typing_optional(value)
                or value is None
                and ("Optional" in text or text.endswith("| None") or text.startswith("None |"))
            ):
                kinds[arg.arg] = "optional"
            else:
                kinds[arg.arg] = "run-time"
            inner = value.inner if isinstance(value, dtypes.Optional) else value
            is_g2 = is_g2 or isinstance(inner, TensorType) and inner.is_g2 or value is None and "Tensor(" in text
        self._dialect = "g2" if is_g2 else "g1"
        self._kinds = kinds
        return kinds

    def _defaults(self) -> dict[str, Any]:
        f = self._function
        found = dict(f.__kwdefaults__ or {})
        if f.__defaults__:
            names = f.__code__.co_varnames[: f.__code__.co_argcount]
            found.update(zip(names[-len(f.__defaults__) :], f.__defaults__, strict=True))
        return found

    def specialize(self, **values: Any) -> Any:
        """The function with these compile-time values; an optional parameter given as None is absent."""
        kinds = self._find_kinds()
        name = self.__name__
        allowed = [k for k, kind in kinds.items() if kind != "run-time"]
        unexpected = [k for k in values if k not in allowed]
        if unexpected:
            raise TypeError(f"{name}.specialize() got unexpected arg(s): {unexpected}; it takes {allowed}")
        constants: dict[str, Any] = {}
        absent: set[str] = set()
        defaults = self._defaults()
        missing = []
        for k in allowed:
            if kinds[k] == "optional":
                if k in values:
                    if values[k] is not None:
                        raise TypeError(
                            f"{name}.specialize(): '{k}': optional parameters only accept None; "
                            "pass actual tensors when calling the compiled kernel"
                        )
                    absent.add(k)
            elif k in values:
                constants[k] = values[k]
            elif k in defaults:
                constants[k] = defaults[k]
            else:
                missing.append(k)
        if missing:
            raise TypeError(f"{name}.specialize() missing constexpr arg(s) (no default provided): {missing}")
        try:
            key = (tuple((k, _key_of(v)) for k, v in sorted(constants.items())), frozenset(absent))
            hash(key)
        except TypeError as e:
            raise TypeError(f"{name}.specialize(): all constexpr values must be hashable: {e}") from None
        with self._lock:
            made = self._made.get(key)
            if made is None:
                options = Options(*self._options)
                options.is_jit = True
                options.constants = constants
                options.absent = absent
                made = parse_function(self._function, self._source, self._dialect, options, self._locals)
                self._made[key] = made
            return made


def _key_of(value: Any) -> Any:
    """Equal keys only for values of equal type, inside tuples and frozensets too; -0.0 is not 0.0."""
    if isinstance(value, tuple):
        return (type(value), tuple(map(_key_of, value)))
    if isinstance(value, frozenset):
        return (type(value), frozenset(map(_key_of, value)))
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


def _evaluated_annotations(f: Any) -> dict[str, Any]:
    try:
        return {k: v for k, v in f.__annotations__.items() if not isinstance(v, str)}
    except Exception:
        return {}


# ---- inline --------------------------------------------------------------------------------------------------------


def inline(func: Any = None) -> Any:
    """A helper whose statements are expanded at every call."""
    if func is None:
        return inline
    _check_function(func)
    return functions.of_python(func)


def macro(func: Any = None, *, hygienic: bool = True) -> Any:
    """An older name of inline. With hygienic=False its free names are those of the place that calls it."""
    if hygienic:
        return macro if func is None else inline(func)
    return _unhygienic if func is None else _unhygienic(func)


def _unhygienic(func: Any) -> Any:
    _check_function(func)
    made = functions.of_python(func)
    made.hygienic = False
    return made


def is_inline(x: Any) -> bool:
    return x is inline or x is macro or x is _unhygienic


def is_hygienic(x: Any) -> bool:
    return x is not _unhygienic
