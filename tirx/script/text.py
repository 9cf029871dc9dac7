# SPDX-License-Identifier: Apache-2.0
"""tirx.from_source: kernels from text, as `script()` prints them or as a file would hold them.

The text is Python that is run with T, I and what `extra_vars` adds. Import lines of the language's own names are read
over; other imports are refused.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import Any

from tirx import _core
from tirx.errors import DiagnosticError
from tirx.module import IRModule
from tirx.script import source
from tirx.script.symbols import dynamic

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")  # what no source text can hold
_ROOTS = ("tirx", "tvm", "tvm_tirx", "__future__")
_count = itertools.count(1)


def from_source(text: str, extra_vars: dict[str, Any] | None = None) -> Any:
    """The function or module that the text defines.

    >>> import tirx
    >>> f = tirx.from_source('''
    ... @T.prim_func
    ... def f(A: T.Buffer((32,), "int32")):
    ...     T.device_entry()
    ...     bx = T.cta_id([1])
    ...     tx = T.thread_id([32])
    ...     A[tx] = tx
    ... ''')
    >>> f.__name__
    'f'
    """
    if not isinstance(text, str):
        raise TypeError(f"from_source takes text, got {type(text).__name__}")
    name = f"<tirx source {next(_count)}>"
    ctx = _core.Context()
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    ctx.set_place(ctx.add_file(name, _NO_CHARACTER.sub("\ufffd", text)), "")
    bad = _NO_CHARACTER.search(text)
    if bad is not None:
        line = text.count("\n", 0, bad.start()) + 1
        column = len(text[text.rfind("\n", 0, bad.start()) + 1 : bad.start()].encode())
        ctx.at_pos(line, column, line, column + 3)
        what = "a null character" if bad[0] == "\0" else f"U+{ord(bad[0]):04X}, half of a surrogate pair,"
        ctx.fail("BAD_SOURCE", f"{what} cannot stand in source text")
    names = _names()
    text = _without_type_parameters(text, names)
    try:
        tree = source.read_tree(text, name)
        plain = _without_known_imports(ctx, text, tree) if "import" in text else text
        code = compile(plain, name, "exec", dont_inherit=True)
    except SyntaxError as e:
        if isinstance(e, DiagnosticError):
            raise
        line = e.lineno or 1
        column = max((e.offset or 1) - 1, 0)
        ctx.at_pos(line, column, line, column + 1)
        ctx.fail("BAD_SOURCE", e.msg)
    except (RecursionError, MemoryError):
        ctx.at_pos(1, 0, 1, 0)
        ctx.fail("PYTHON_RECURSION")
    names.update(extra_vars or {})
    before = set(names)
    source.register(name, text, tree)
    try:
        exec(code, names)
    except NameError as e:
        raised = e.__traceback__.tb_next if e.__traceback__ else None
        if raised is not None and raised.tb_next is not None:
            raise  # in a function that the text calls: its own traceback says where
        line = raised.tb_lineno if raised is not None else 1
        ctx.at_pos(line, 0, line, 0)
        ctx.fail("UNDEFINED_NAME", e.name or str(e), "")
    finally:
        source.forget(name)
    made = {k: v for k, v in names.items() if k not in before and isinstance(v, (_core.Function, IRModule))}
    if not made:
        from tirx.script.decorators import JitFunction

        jits = [v for k, v in names.items() if k not in before and isinstance(v, JitFunction)]
        if len(jits) == 1:
            return jits[0]
        ctx.at_pos(1, 0, 1, 0)
        ctx.fail("NOTHING_DEFINED")
    modules = [v for v in made.values() if isinstance(v, IRModule)]
    if modules:
        return modules[-1]
    if len(made) == 1:
        return next(iter(made.values()))
    return IRModule(made)


def _without_known_imports(ctx: Any, text: str, tree: ast.Module) -> str:
    """The text with `pass` for the imports of the language's own names; every line keeps its number."""
    lines = text.split("\n")
    for s in reversed(tree.body):  # a later one on the same line first
        if not isinstance(s, (ast.Import, ast.ImportFrom)):
            continue
        modules = [s.module or ""] if isinstance(s, ast.ImportFrom) else [a.name for a in s.names]
        for module in modules:
            if module.partition(".")[0] not in _ROOTS:
                ctx.at(s)
                ctx.fail("IMPORT_IN_SOURCE", module)
        if isinstance(s, ast.ImportFrom) and s.module == "__future__":
            continue
        first, last = s.lineno - 1, (s.end_lineno or s.lineno) - 1
        behind = lines[last].encode()[s.end_col_offset :].decode()
        before = lines[first].encode()[: s.col_offset].decode()
        for k in range(first, last + 1):
            lines[k] = ""
        lines[first] = before + "pass"
        lines[last] += behind
    return "\n".join(lines)


_TYPE_PARAMETERS = re.compile(r"^([ \t]*def[ \t]+\w+)\[([^\]\n]*)\]\(", re.M)


def _without_type_parameters(text: str, names: dict[str, Any]) -> str:
    """`def f[n, m: T.int64](...)`, which only Python 3.12 reads: its names become sizes."""

    def change(found: re.Match) -> str:
        for parameter in found[2].split(","):
            name, _, dtype = (part.strip() for part in parameter.partition(":"))
            if name:
                names[name] = dynamic(name, dtype.removeprefix("T.") if dtype not in ("", "int") else "int32")
        return f"{found[1]}({' ' * (len(found[2]) + 2)}"

    return _TYPE_PARAMETERS.sub(change, text)


def _names() -> dict[str, Any]:
    """What a text may use without saying where it comes from."""
    import tirx
    from tirx.script import ir
    from tirx.script import tirx as T

    return {"__name__": "tirx_source", "T": T, "I": ir, "tirx": tirx}
