# SPDX-License-Identifier: Apache-2.0
"""Writes what type checkers know: tirx/script/tirx.pyi (the namespace T), tirx/__init__.pyi, tirx/ir.pyi (nodes).

    python tools/stubs.py           write them
    python tools/stubs.py --check   fail if the committed files are other ones

T comes from the core's tables and from the modules of tirx/script, so the stub comes from T itself: a row of the op
table gives a function of its operands, a Python function its signature, a dtype a name. Values of the IR are Any: what
an expression may be is more than annotations of Python can say, and a wrong error is worse than none.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LANES = (2, 3, 4, 8, 16, 32, 64)

HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# Written by tools/stubs.py from T itself. Do not edit.
"""The namespace T, for type checkers."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from tirx._core import Function as _Function
from tirx.script import cuda as cuda
from tirx.script.decorators import JitFunction as _JitFunction
from tirx.script.dtypes import DType as _DType

'''
VARIABLES = """
_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

"""

# What the signature of the object does not say.
DECORATOR = """\
@overload
def {name}(func: Callable[..., Any]) -> _Function: ...
@overload
def {name}(func: None = None, {options}) -> PrimFuncFrame: ...
"""
SPECIAL = {
    "prim_func": DECORATOR.format(
        name="prim_func",
        options="private: bool = ..., check_well_formed: bool = ..., s_tir: bool = ..., persistent: bool = ..., "
        "kernel: bool = ...",
    ),
    "function": DECORATOR.format(
        name="function",
        options="*, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., kernel: bool = ...",
    ),
    "trace": """\
@overload
def trace(func: Callable[..., Any], *, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., dialect: str = ..., name: str | None = ..., annotations: dict[str, Any] | None = ...) -> _Function: ...
@overload
def trace(func: None = None, *, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., dialect: str = ..., name: str | None = ..., annotations: dict[str, Any] | None = ...) -> Callable[[Callable[..., Any]], _Function]: ...
""",
    "jit": """\
@overload
def jit(func: Callable[..., Any]) -> _JitFunction: ...
@overload
def jit(func: None = None, *, private: bool = ..., check_well_formed: bool = ..., is_stir: bool = ..., persistent: bool = ...) -> Callable[[Callable[..., Any]], _JitFunction]: ...
""",
    "inline": "@overload\ndef inline(func: _F) -> _F: ...\n@overload\ndef inline(func: None = None) -> Callable[[_F], _F]: ...\n",
    "macro": "@overload\ndef macro(func: _F, *, hygienic: bool = ...) -> _F: ...\n"
    "@overload\ndef macro(func: None = None, *, hygienic: bool = ...) -> Callable[[_F], _F]: ...\n",
    "meta_class": "def meta_class(cls: _C) -> _C: ...\n",
}
PLAIN = {"str", "int", "float", "bool", "str | None", "int | None", "bool | None", "dict[str, Any] | None"}


def _kind(text: Any) -> str:
    """An annotation that stands on its own in the stub, or Any."""
    return text if isinstance(text, str) and text in PLAIN else "Any"


def signature(name: str, f: Any) -> str:
    found = []
    star = False
    for p in inspect.signature(f).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            found.append(f"*{p.name}: Any")
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            found.append(f"**{p.name}: Any")
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            found.append("*")
            star = True
        found.append(f"{p.name}: {_kind(p.annotation)}" + ("" if p.default is p.empty else " = ..."))
    return f"def {name}({', '.join(found)}) -> Any: ...\n"


def listed(names: list[str]) -> str:
    return "\n__all__ = [\n" + "".join(f"    {n!r},\n" for n in names).replace("'", '"') + "]\n"


def rows() -> dict[str, str]:
    """Functions of the op table, by the operands of their rows."""
    from tirx import _core

    found = {}
    for _, _, spelling, operands, rule, props in _core.ops():
        short = spelling.removeprefix("T.")
        is_function = spelling.startswith("T.") and "." not in short and rule not in ("NONE", "VOID", "PTR")
        if is_function and operands > 0 and not props & (32 | 128):
            args = ", ".join(f"{c}: Any" for c in "abcdef"[:operands])
            found[short] = f"def {short}({args}, /) -> Any: ...\n"
    return found


def entry(name: str, x: Any) -> str:
    from tirx.script import dtypes

    if isinstance(x, dtypes.DType):
        return f"{name}: _DType\n"
    if inspect.isclass(x):
        if getattr(sys.modules[x.__module__], x.__name__, None) is not x:
            return (
                f"class {name}:\n    def __init__(self, *args: Any, **fields: Any) -> None: ...\n"  # made from a table
            )
        return f"from {x.__module__} import {x.__name__} as {name}\n"
    if isinstance(x, FunctionType):
        return signature(name, x)
    return f"{name}: Any\n"


def text() -> str:
    from tirx import _core
    from tirx.script import tirx as T

    table = rows()
    imports, names = [], []
    public = {n for n in dir(T) if not n.startswith("_") and n not in ("annotations", "Any")}
    for name in sorted(public):
        x = getattr(T, name)
        if name == "cuda" or isinstance(x, ModuleType):
            continue
        made = SPECIAL.get(name) or table.get(name) or entry(name, x)
        (imports if made.startswith("from ") else names).append(made)
    for kind, alias, cls, *_ in _core.dtypes():
        if cls in "BIUFGM":
            names += [
                f"{n}x{k}: _DType\n" for n in filter(None, (kind, alias)) for k in LANES if f"{n}x{k}" not in public
            ]
    # what is imported under another name is exported only if __all__ says so
    exported = sorted(public | {"cuda"})
    return HEAD + "".join(imports) + listed(exported) + VARIABLES + "".join(names)


def package() -> str:
    """tirx/__init__.pyi: what is loaded when it is first used, as imports."""
    import tirx

    lines = ["# SPDX-License-Identifier: Apache-2.0", "# Written by tools/stubs.py from tirx/__init__.py. Do not edit."]
    lines += ['"""The package tirx, for type checkers."""', ""]
    for name in sorted(tirx.__all__):
        module, attribute = tirx._LAZY.get(name, ("tirx.errors", name))
        if attribute is None:
            module, _, attribute = module.rpartition(".")
        lines.append(f"from {module} import {attribute} as {name}")
    return "\n".join([*lines, "", listed(sorted(tirx.__all__)) + "__version__: str", ""])


NODES = '''\
# SPDX-License-Identifier: Apache-2.0
# Written by tools/stubs.py from csrc/ir/nodes.def. Do not edit.
"""The IR as Python objects, for type checkers."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar, overload

from tirx._core import Buffer as Buffer
from tirx._core import Expr as _Expr
from tirx._core import Function as Function

PrimFunc = Function
_N = TypeVar("_N", bound=_Expr)
_F = TypeVar("_F")

class Node(_Expr): ...
class PrimExpr(Node): ...
class Stmt(Node): ...

'''
FUNCTIONS = """
CLASSES: dict[str, type]

def class_of(node: _Expr) -> type: ...
def fields(node: _Expr) -> dict[str, Any]: ...
def walk(x: Any, fn: Callable[[Any], object], order: str = ...) -> None: ...
@overload
def nodes(x: Any, cls: type[_N]) -> Iterator[_N]: ...
@overload
def nodes(x: Any, cls: Any = None) -> Iterator[Any]: ...
def rewrite(x: _F, fn: Callable[[Any], Any]) -> _F: ...
"""


def nodes() -> str:
    """tirx/ir.pyi: the classes of nodes and their fields."""
    from tirx import _core, ir

    base = {row[1]: row[4] for row in _core.node_classes()}
    made = []
    for name, parent in base.items():
        cls = ir.CLASSES[name]
        members = "".join(f"    {f}: Any\n" for f in cls._fields if f not in ("op", "args", "dtype"))
        matched = "".join(f'"{f}", ' for f in cls.__match_args__).strip()
        members += f"    __match_args__ = ({matched})\n"
        made.append(f"class {name}({parent}):\n{members}    def __new__(cls, *args: Any, **fields: Any) -> Any: ...\n")
    return NODES + "\n".join(made) + FUNCTIONS


def files() -> dict[Path, str]:
    return {
        ROOT / "tirx/script/tirx.pyi": text(),
        ROOT / "tirx/__init__.pyi": package(),
        ROOT / "tirx/ir.pyi": nodes(),
    }


def main() -> int:
    sys.path.insert(0, str(ROOT))
    wrong = 0
    for file, made in files().items():
        if "--check" not in sys.argv[1:]:
            file.write_text(made)
        elif not file.exists() or file.read_text() != made:
            print(f"{file.relative_to(ROOT)} is not what the package gives: run python tools/stubs.py")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
