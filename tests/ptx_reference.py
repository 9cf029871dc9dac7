# SPDX-License-Identifier: Apache-2.0
"""docs/ptx.md from the table: `python tests/ptx_reference.py` writes it, a test compares it."""

from __future__ import annotations

import re
from pathlib import Path

from ptx_variants import LETS

from tirx import _core

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "ptx.md"
LATER = ROOT / "csrc" / "emu" / "ptx_warp.c"  # lists the emulator's entries that only report

HEAD = """# PTX instructions

Generated from the table `csrc/ir/ptx.def` by `python tests/ptx_reference.py`; do not edit.

An instruction is written as a chain, `T.ptx.ld.global_.b32(d, p)`, or as text, `T.ptx["ld.global.b32"](d, p)`;
modifiers come in any order. In an opcode, `{slot=a|b}` is a choice that must be made and `{slot?=a|b}` one that may
be. Names in capitals stand for a list:

"""
OPERANDS = """
Operands are given in this order, groups one by one. `=d:T` is written, `+d:T` read and written, `d:T` read;
`[a:SPACE]` is an address, and `+` allows `T.ptx.addr(p, bytes)`; `{r:T}*N` is a group of N registers; `#n` a
constant; `?slot` is there with that modifier, `??` as you like; `T~` may be `T.ptx.SINK`. Text in quotes is not
given. The floor is the least architecture; `slot=a:90` raises it for that choice. The last column says whether the
emulator executes the instruction.
"""


def cell(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def reference() -> str:
    out = [HEAD.rstrip("\n"), ""]
    out += [f"- `{name}`: {', '.join(f'`{c}`' for c in choices.split('|'))}" for name, choices in LETS.items()]
    out += [OPERANDS.rstrip("\n"), ""]
    later = set(re.findall(r"\bLATER\((\w+)\)", LATER.read_text()))
    families: dict[str, list[tuple[str, ...]]] = {}
    for row in _core.ptx_rows():
        first = row[0].split(".")[0]
        for name in first.strip("{}").rpartition("=")[2].split("|"):
            families.setdefault(name, []).append((*row, "no" if row[4] in later else "yes"))
    for name in sorted(families):
        out += [f"## {name}", "", "| opcode | operands | floor | rules | emulated |", "|---|---|---|---|---|"]
        for opcode, operands, _, floor, _, rules, emulated in families[name]:
            out.append(
                f"| {cell(opcode)} | {cell(operands)} | {floor.replace('|', '&#124;')} | {cell(rules)} | {emulated} |"
            )
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    FILE.write_text(reference())
