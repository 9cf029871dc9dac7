# SPDX-License-Identifier: Apache-2.0
"""With TIRX_ROUNDTRIP=1, every function that any test compiles is printed and parsed back: as it is written, in either
dialect, and after every pass. What differs is listed at the end of the run, which then fails."""

from __future__ import annotations

import tirx
from tirx import _core, compiler

seen: set[str] = set()
faults: list[tuple[str, str]] = []


def check(f) -> None:
    if not hasattr(f, "script"):
        return
    text = f.script()
    if text in seen:
        return
    seen.add(text)
    ops: set[str] = set()
    tirx.walk(f, lambda n: ops.add(n.op))
    if isinstance(f, _core.Function) and "CALL_FUNC" in ops:
        return  # a member of a module: its text alone names functions that are not there
    for dialect in (None, "g1", "g2"):
        parses_back(f, f.script(dialect=dialect) if dialect else text, f"in the dialect {dialect}" if dialect else "")
    if isinstance(f, _core.Function):
        m = _core.Module({f.__name__: f})
        for name, _, _ in _core.passes():
            try:
                m = _core.run_pass(name, m, "cpu", {})
            except tirx.Error:
                return  # refused: a test of messages
            if not parses_back(m, m.script(), f"after {name}"):
                return


def parses_back(f, text: str, when: str) -> bool:
    try:
        if tirx.structural_equal(f, tirx.from_source(text)):
            return True
        faults.append((f"not equal {when}", text))
    except Exception as e:
        faults.append((f"{when}: {e}", text))
    return False


def watch() -> None:
    compiled = tirx.compile

    def compile_and_check(f, *args, **options):
        check(f)
        return compiled(f, *args, **options)

    tirx.compile = compiler.compile = compile_and_check


def report() -> str:
    found = "".join(f"\n==== {why}\n{text}" for why, text in faults)
    return f"{len(seen)} functions were printed and parsed back, {len(faults)} fault(s){found}"
