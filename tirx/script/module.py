# SPDX-License-Identifier: Apache-2.0
"""@I.ir_module: a class whose members are kernel functions becomes a module of them.

All signatures are read first, then the bodies, so that members may call each other in any order: by the class's name,
or as cls.name. In device code a member is called that is private and has no device entry (a device function).
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from typing import Any

from tirx import _core
from tirx.module import IRModule
from tirx.script import decorators, state
from tirx.script.expressions import describe
from tirx.script.parser import Parser, annotations_of, new_parser, parse_function

Expr, Buffer = _core.Expr, _core.Buffer
_DEVICE = 16  # TX_FUNC_DEVICE
_ATTRS, _INFOS = "__tirx_module_attrs__", "__tirx_global_infos__"


def ir_module(cls: Any = None, **_: Any) -> Any:
    """A class whose members are kernel functions becomes a module of them.

    >>> import tirx
    >>> from tirx import T
    >>> from tirx.script import ir as I
    >>> @I.ir_module
    ... class Module:
    ...     @T.prim_func(private=True)
    ...     def twice(x: T.int32) -> T.int32:
    ...         return x + x
    ...     @T.prim_func
    ...     def main(A: T.Buffer((32,), "int32")):
    ...         T.device_entry()
    ...         tx = T.thread_id([32])
    ...         A[tx] = Module.twice(A[tx])
    >>> sorted(Module)
    ['main', 'twice']
    """
    if cls is None:
        return ir_module
    if not isinstance(cls, type):
        raise TypeError(f"ir_module decorates a class, got {cls!r}")
    module = Members(cls.__name__)
    found: dict[str, Any] = {}
    python: dict[str, Any] = {}
    for name, thing in vars(cls).items():
        if isinstance(thing, _core.Function):
            found[name] = thing
            module.add(Member.of_function(module, name, thing))
        elif hasattr(thing, "_tirx_member"):
            found[name] = None
            module.add(Member.of_python(module, name, thing))
        elif isinstance(thing, PyFunc):
            python[name] = thing
    if not found and not python:
        raise TypeError(f"class {cls.__name__} has no kernel functions")
    for member in module.members.values():
        if member.function is not None:
            dialect, options, around = member.function._tirx_member
            module.parsed = member
            found[member.name] = parse_function(member.function, member.source, dialect, options, around, module.names)
    attrs = vars(cls).get(_ATTRS, {})
    return IRModule(found, attrs=attrs, python=python, global_infos=vars(cls).get(_INFOS, {}))


# ---- members as their callers see them ------------------------------------------------------------------------------


class Named:
    """What the name of the class stands for in the bodies of its functions: its attributes are the members."""

    __slots__ = ("_tirx_module",)
    _tirx_placed = True  # an attribute that is missing is told at its place

    def __init__(self, module: Members):
        self._tirx_module = module

    def __getattr__(self, name: str) -> Member:
        if name.startswith("__") and name not in self._tirx_module.members:
            raise AttributeError(f"module {self._tirx_module.name} has no function '{name}'")
        return self._tirx_module.find(name)

    def __repr__(self) -> str:
        return f"<module {self._tirx_module.name} being defined>"


class Members:
    """A module that is being defined."""

    def __init__(self, name: str):
        self.name = name
        self.members: dict[str, Member] = {}
        self.calls: dict[str, set[str]] = {}  # between device functions, as far as bodies were parsed
        self.parsed: Member | None = None
        named = Named(self)
        self.names = {name: named, "cls": named}  # in the bodies

    def add(self, member: Member) -> None:
        self.members[member.name] = member

    def find(self, name: str) -> Member:
        if name in self.members:
            return self.members[name]
        import difflib

        close = difflib.get_close_matches(name, self.members, 1, 0.6)
        help = f"did you mean '{close[0]}'?" if close else None
        state.fail("MEMBER_UNKNOWN", self.name, name, outside=AttributeError, help=help)

    def way(self, start: str, end: str) -> list[str] | None:
        """Calls that lead from one device function to another."""
        todo = [[start]]
        seen = {start}
        while todo:
            path = todo.pop()
            if path[-1] == end:
                return path
            for name in sorted(self.calls.get(path[-1], ())):
                if name not in seen:
                    seen.add(name)
                    todo.append([*path, name])
        return None


class Parameter:
    """A parameter of a member: a scalar (dtype), a pointer (elem, scope) or a tensor (dtype, scope, shape)."""

    __slots__ = ("dtype", "elem", "kind", "name", "scope", "shape")

    def __init__(self, name: str, x: Any):
        self.name = name
        self.shape: tuple = ()
        self.elem: str | None = None
        if isinstance(x, Buffer):
            self.kind, self.dtype, self.scope = "tensor", x.dtype, x.scope()
            self.shape = tuple(d.value if isinstance(d, Expr) and d.op == "INT" else d for d in x.shape)
        elif x.dtype == "handle":
            self.kind, self.dtype, self.scope, self.elem = "pointer", "handle", x.scope(), x.elem
        else:
            self.kind, self.dtype, self.scope = "scalar", x.dtype, ""

    def text(self) -> str:
        if self.kind == "tensor":
            where = "" if self.scope == "global" else f" in {self.scope} memory"
            dims = ", ".join(str(d) if isinstance(d, int) else "..." for d in self.shape)
            comma = "," if len(self.shape) == 1 else ""
            return f"a buffer of shape ({dims}{comma}) and dtype {self.dtype}{where}"
        return "a pointer" if self.kind == "pointer" else self.dtype


class Member:
    """A function of a module that is being defined; called in another one's body."""

    __slots__ = ("__name__", "function", "is_device", "module", "name", "parameters", "ret", "source")

    def __init__(self, module: Members, name: str):
        self.module = module
        self.name = self.__name__ = name
        self.function: Any = None
        self.source: Any = None
        self.is_device = False
        self.parameters: list[Parameter] = []
        self.ret = "void"

    @staticmethod
    def of_function(module: Members, name: str, f: Any) -> Member:
        return Member(module, name)._like(f)

    @staticmethod
    def of_python(module: Members, name: str, f: Any) -> Member:
        made = Member(module, name)
        dialect, options, around = f._tirx_member
        made.function, made.source = f, decorators._source(f)
        parser = new_parser(f, made.source, dialect, around, module.names)
        declared = parser.read_signature(annotations_of(f), options)
        return made._like(declared)

    def _like(self, f: Any) -> Member:
        self.is_device = bool(f.flags & _DEVICE)
        self.parameters = [Parameter(name, x) for name, x in f.params]
        self.ret = f.ret_type or "void"
        return self

    def __repr__(self) -> str:
        return f"<{self.module.name}.{self.name}>"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        p = state.parser()
        name = f"{self.module.name}.{self.name}"
        if p is None:
            raise RuntimeError(f"{name} can only be called inside a function of its module: compile the module instead")
        if keywords:
            state.fail("MEMBER_KEYWORDS", name)
        if p.builder.zone == "device" and not self.is_device:
            state.fail("MEMBER_IN_DEVICE", self.name)
        if p.builder.zone != "device" and self.is_device:
            state.fail("MEMBER_IN_HOST", self.name)
        self._note_call()
        if len(args) != len(self.parameters):
            state.fail("MEMBER_ARITY", name, len(self.parameters), len(args), outside=TypeError)
        operands = tuple(self._operand(p, q, x) for q, x in zip(self.parameters, args, strict=True))
        p.calls_members = True
        made = _core.make(p.ctx, "CALL_FUNC", self.ret, operands, call=(self.name, None))
        if self.ret == "void":
            from tirx.script.ops import emit

            return emit(made)
        return p.bind_droppable(name, made) if p.helper_depth else made

    def _note_call(self) -> None:
        caller = self.module.parsed
        if caller is None:
            return
        self.module.calls.setdefault(caller.name, set()).add(self.name)
        back = self.module.way(self.name, caller.name)
        if back is not None:
            state.fail("MEMBER_RECURSION", " -> ".join([caller.name, *back]))

    def _operand(self, p: Parser, q: Parameter, x: Any) -> Any:
        def wrong() -> Any:
            got = Parameter("", x).text() if isinstance(x, Buffer) else describe(x)
            if isinstance(x, Buffer) and x.given_strides is not None:
                got += " with strides"
            state.fail("MEMBER_ARGUMENT", q.name, self.name, q.text(), got, outside=TypeError)

        if q.kind == "scalar":
            if isinstance(x, Buffer) and tuple(x.shape) == (1,):
                x = x[0]
            if isinstance(x, (bool, int, float)) and not isinstance(x, Expr):
                if isinstance(x, float) and "float" not in q.dtype or isinstance(x, bool) and q.dtype != "bool":
                    wrong()
                return _core.as_expr(p.ctx, x, q.dtype)
            if not hasattr(x, "__tirx_expr__") and not isinstance(x, Expr):
                wrong()
            e = _core.as_expr(p.ctx, x)
            return e if e.dtype == q.dtype else wrong()
        if isinstance(x, Buffer):
            if q.kind == "tensor" and not _fits(q, x):
                wrong()
            if q.scope != x.scope() or q.elem not in (None, "void", x.dtype):
                wrong()
            return _data(p, x)
        if isinstance(x, Expr) and x.dtype == "handle":
            wanted = q.dtype if q.kind == "tensor" else q.elem
            if q.scope != x.scope() or wanted not in (None, "void", x.elem) and x.elem not in (None, "void"):
                wrong()
            return x
        return wrong()


def _fits(q: Parameter, x: Any) -> bool:
    if x.dtype != q.dtype or len(x.shape) != len(q.shape) or x.given_strides is not None:
        return False
    return all(
        not isinstance(a, int) or not (isinstance(b, int) or isinstance(b, Expr) and b.op == "INT") or a == int(_int(b))
        for a, b in zip(q.shape, x.shape, strict=True)
    )


def _int(x: Any) -> int:
    return x.value if isinstance(x, Expr) else x


def _data(p: Parser, x: Any) -> Any:
    """Where the buffer's first element stands."""
    return x.data if not _has_offset(x) else _core.address_of(p.ctx, x)


def _has_offset(x: Any) -> bool:
    for offset in (x.elem_offset, getattr(x, "byte_offset_value", None)):
        if offset is not None and not (isinstance(offset, int) and offset == 0):
            if not (isinstance(offset, Expr) and offset.op == "INT" and offset.value == 0):
                return True
    return False


# ---- what else stands in a module -----------------------------------------------------------------------------------


class PyFunc:
    """A Python function of a module: kept and printed, called as Python."""

    def __init__(self, function: Any):
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)

    def text(self) -> str:
        try:
            return textwrap.dedent(inspect.getsource(self.function))
        except (OSError, TypeError):
            return f"@I.pyfunc\ndef {self.__name__}(*args, **kwargs):\n    ...\n"


def pyfunc(function: Any = None) -> Any:
    """A Python function as a member of a module."""
    if function is None:
        return pyfunc
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(f"pyfunc decorates a function, got {type(function).__name__}")
    return PyFunc(function)


def _class_names(what: str) -> dict[str, Any]:
    frame = sys._getframe(2)
    if frame.f_code.co_flags & 1 or "__qualname__" not in frame.f_locals:
        raise RuntimeError(f"{what} stands in the body of a class decorated with ir_module")
    return frame.f_locals


def module_attrs(attrs: dict[str, Any], allow_overwrite: bool = False) -> None:
    """Attributes of the module: I.module_attrs({"key": value})."""
    names = _class_names("module_attrs")
    if _ATTRS in names and not allow_overwrite:
        raise ValueError("module_attrs stands twice in a module; use module_set_attr, or allow_overwrite=True")
    names[_ATTRS] = dict(attrs)


def module_get_attr(key: str) -> Any:
    """An attribute of the module being defined, or None."""
    return _class_names("module_get_attr").get(_ATTRS, {}).get(key)


def module_set_attr(key: str, value: Any, allow_overwrite: bool = False) -> None:
    """Sets one attribute of the module being defined."""
    found = _class_names("module_set_attr").setdefault(_ATTRS, {})
    if key in found and not allow_overwrite:
        raise ValueError(f"attribute '{key}' of the module is set already; use allow_overwrite=True")
    found[key] = value


def module_global_infos(infos: dict[str, list]) -> None:
    """Global infos: kept on the module."""
    _class_names("module_global_infos")[_INFOS] = dict(infos)


def decl_function(name: str, function: Any) -> Any:
    """A function that was made elsewhere, as a member of the module being defined."""
    if not isinstance(function, _core.Function):
        raise TypeError(f"decl_function: expected a function made by @T.prim_func or @T.function, got {function!r}")
    _class_names("decl_function")[name] = function
    return function
