# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference.md: every public name of tirx, T and T.cuda with its signature and what its docstring says.

python tools/reference.py           write it
python tools/reference.py --check   fail if the committed file is another one
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import tirx
from tirx import _core
from tirx.script import tirx as T
from tirx.script.dtypes import DType

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "reference.md"

HEAD = """\
# Reference

Written by `python tools/reference.py` from the program itself; do not edit. Explanations with examples are in the
[user guide](guide.md); instructions of the hardware, `T.ptx`, are in [ptx](ptx.md).
"""

# Modules of tirx/script in the order of the page -> their titles.
SECTIONS = {
    "decorators": "Kernels and helpers",
    "trace": "Kernels without source text",
    "meta": "Classes that build kernels",
    "module": "Modules",
    "annotations": "Parameters and annotations",
    "symbols": "Sizes known at the call",
    "control": "Statements, scope ids and launch",
    "frames": "Blocks and loops",
    "forms": "Statements as calls",
    "buffers": "Memory",
    "pools": "Pools of shared memory",
    "ops": "Expressions",
    "derived": "Expressions made of others",
    "nodes": "Nodes as text prints them",
    "tensormaps": "Tensor maps",
    "named_barriers": "Named barriers",
    "host": "The host's side",
}
RULES = {
    "ARITH": "operands are promoted to one dtype, which the result has",
    "COMPARE": "operands are promoted; the result is bool",
    "LOGIC": "bools",
    "SHIFT": "operands are promoted to one dtype, which the result has",
    "SAME": "the result has the operand's dtype",
    "FLOAT": "floats; an integer becomes float32",
    "FLOAT2": "operands are promoted to a float dtype, which the result has",
    "BOOL1": "the result is bool",
    "I32": "the result is int32",
    "U32": "the result is uint32",
}


def signature(f: Any) -> str:
    """Parameters and defaults; annotations of the form Any say nothing and are left out."""
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=parameters, return_annotation=found.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def first_paragraph(x: Any) -> str:
    text = inspect.getdoc(x) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def rows() -> dict[str, tuple]:
    return {spelling: (name, operands, rule) for _, name, spelling, operands, rule, _ in _core.ops()}


def line(space: str, name: str, x: Any, table: dict[str, tuple]) -> str:
    path = f"{space}.{name}"
    told = first_paragraph(x)
    shape = "" if isinstance(x, DType) or not callable(x) else signature(x)
    if path in table and (not told or " of the op table" in told):
        row, operands, rule = table[path]
        shape = f"({', '.join('xyz'[:operands])})" if 0 <= operands <= 3 else "(*operands)"
        told = RULES.get(rule, "an operation")
    return f"| `{path}{shape}` | {told or ''} |".replace("`T.T.", "`T.")


def names_of(space: Any) -> dict[str, Any]:
    listed = getattr(space, "__all__", None)
    names = listed if listed is not None else [n for n in dir(space) if not n.startswith("_")]
    found = {n: getattr(space, n) for n in names}
    skipped = {"annotations", "Any", "Callable", "ModuleType"}
    return {n: x for n, x in found.items() if n not in skipped and not isinstance(x, ModuleType)}


def part_of(x: Any) -> str:
    module = getattr(x, "__module__", None) or type(x).__module__
    return module.rpartition(".")[2] if str(module).startswith("tirx") else ""


def table_of(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", "| name | |", "|---|---|", *lines, ""]


def text() -> str:
    table = rows()
    out = [HEAD]
    public = names_of(tirx)
    errors = {n: x for n, x in public.items() if isinstance(x, type) and issubclass(x, BaseException)}
    out += table_of("tirx", [line("tirx", n, x, table) for n, x in sorted(public.items()) if n not in errors])
    out += table_of("Exceptions and warnings", [line("tirx", n, x, table) for n, x in sorted(errors.items())])
    everything = names_of(T)
    dtypes = {n: x for n, x in everything.items() if isinstance(x, DType)}
    groups: dict[str, dict[str, Any]] = {}
    for n, x in everything.items():
        if n not in dtypes:
            groups.setdefault(part_of(x), {})[n] = x
    for module, title in SECTIONS.items():
        members = groups.pop(module, {})
        if members:
            out += table_of(f"T: {title}", [line("T", n, x, table) for n, x in sorted(members.items())])
    rest = {n: x for members in groups.values() for n, x in members.items()}
    if rest:
        out += table_of("T: others", [line("T", n, x, table) for n, x in sorted(rest.items())])
    plain = sorted(n for n in dtypes if "x" not in n.rpartition("_")[2])
    out += [
        "## T: dtypes",
        "",
        "Each converts when it is called, `T.float32(x)`; vectors end in `x` and their lanes.",
        "",
    ]
    out += [", ".join(f"`{n}`" for n in plain), ""]
    cuda = {n: x for n, x in names_of(T.cuda).items() if part_of(x).startswith(("cuda", "launch", "timers"))}
    out += table_of("T.cuda", [line("T.cuda", n, x, table) for n, x in sorted(cuda.items())])
    return "\n".join(out)


def main() -> int:
    new = text()
    if "--check" in sys.argv[1:]:
        if FILE.read_text() != new:
            print("docs/reference.md is not what the program says: python tools/reference.py")
            return 1
        return 0
    FILE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
