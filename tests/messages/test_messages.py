# SPDX-License-Identifier: Apache-2.0
"""Every diagnostic, whole: place, text, caret and help, as a user of the public API sees it.

The cases stand in the .txt files beside this one, grouped as csrc/base/diag.def is. A case is

    === ROW [target]         the row it triggers; a target compiles the kernel for it, else it is only parsed
    ...                      the source: one function or module, as tirx.from_source takes it
    ---
    kernel.py:3:4: error: ...

With TIRX_GOLDEN=write the messages are written anew; read them before keeping them. The front end has its own file of
the same kind, tests/script/messages.txt. A row without a case in either must say in ELSEWHERE which test triggers it.
missing.txt lists the rows that still need one; it only ever gets shorter.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest

import tirx
from tirx import _core as core

HERE = Path(__file__).resolve().parent
ROWS = {name: (cls, text) for name, cls, text, _ in core.diags()}

ELSEWHERE = {
    "NO_MEMORY": "tests/test_oom.py",
    "INTERNAL": "a bug of ours: no input is known",
    "TOO_MANY_NODES": "tests/c/test_core.c, limits: takes gigabytes otherwise",
    "STRING_TOO_LONG": "tests/c/test_core.c, limits",
    "SOURCE_TOO_LONG": "tests/c/test_core.c, limits",
    "RANK_LIMIT": "tests/c/test_core.c, limits",
    "OTHER_CONTEXT": "tests/python/test_operators.py",
    "EXPR_NUMBER": "tests/python/test_operators.py; script/ has better words for its kernels",
    "NO_BUILDER": "tests/python/test_builder.py",
    "BUILDER_DONE": "tests/python/test_builder.py",
    "BLOCK_MISMATCH": "tests/python/test_builder.py",
    "PARAM_LIMIT": "tests/python/test_builder.py",
    "INLINE_DEPTH": "tests/python/test_context.py",
    "BAD_TARGET": "tests/runtime/test_targets.py: a ValueError, for it is no fault of the kernel",
    "NO_SOURCE": "test_made_elsewhere.py",
    "PYTHON_RECURSION": "test_made_elsewhere.py",
    "NOTHING_DEFINED": "test_made_elsewhere.py",
    **dict.fromkeys(["FUNCTION_GIVEN_UP", "ARG_PLACE", "PARAMETER_TWICE"], "tests/builder/test_builder.py"),
    **dict.fromkeys(["STATEMENT_AS_VALUE", "REPLACEMENT"], "tests/ir/test_rewrite.py"),
    "HOST_STMT": "what the launch plan has no step for is refused before it is made",
    **dict.fromkeys(["UNUSED_PARAMETER", "UNUSED_VARIABLE"], "tests/script/test_unused.py: not told of texts"),
    **dict.fromkeys(
        ["CALL_CIRCLE", "CALL_UNKNOWN", "CALL_ARGUMENTS", "CALL_MANY"], "tests/script/test_modules.py: made IR"
    ),
    **dict.fromkeys(
        "VAR_OUT_OF_SCOPE REDEFINED_NESTED REDEFINED BUFFER_UNDECLARED BUFFER_OUT_OF_SCOPE OUTSIDE_LOOP "
        "SCOPE_RANK SCOPE_DEFERRED_VARS KERNEL_PARAMS HOST_TOO_LONG".split(),
        "test_made_elsewhere.py: the parser makes no such kernel",
    ),
}


def read_cases(path: Path):
    text = path.read_text()
    for block in re.split(r"^=== ", text, flags=re.M)[1:]:
        head, rest = block.split("\n", 1)
        source, _, want = rest.partition("\n---\n")
        name, _, target = head.partition(" ")
        yield pytest.param(name, target.strip(), source + "\n", want.strip("\n"), id=f"{path.stem}-{name}")


MISSING = set((HERE / "missing.txt").read_text().split())
FILES = [path for path in sorted(HERE.glob("*.txt")) if path.stem != "missing"]
CASES = [case for path in FILES for case in read_cases(path)]


# Rows whose cases stand in the front end's file.
FRONT_END = set(re.findall(r"^==== (\w+)", (HERE.parent / "script" / "messages.txt").read_text(), re.M))


def pattern_of(text: str) -> str:
    """A row's printf text as a regular expression."""
    parts = re.split(r"(%(?:\d\$)?[-+ #0-9.]*(?:ll|l|z)?[a-zA-Z]|%%)", text)
    return "".join("%" if p == "%%" else ".*" if p.startswith("%") else re.escape(p) for p in parts)


def tidy(message: str) -> str:
    return re.sub(r"<tirx source \d+>", "kernel.py", message)


def message_of(source: str, target: str) -> str:
    """What comes: the message of the exception, or the warnings, a line each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run(source, target)
        except tirx.Error as e:
            return tidy(str(e)).rstrip("\n")
    return "\n".join(str(w.message) for w in caught)


def run(source: str, target: str) -> None:
    f = tirx.from_source(source)
    if target:
        tirx.compile(f, target=target)


@pytest.mark.parametrize("row, target, source, want", CASES)
def test_message(row, target, source, want):
    cls, text = ROWS[row]
    assert re.search(pattern_of(text), want), "the expected text is not of this row"
    assert message_of(source, target) == want
    builtin = {"VALUE": ValueError, "TYPE": TypeError, "RUNTIME": RuntimeError, "KEY": KeyError}.get(cls, tirx.Error)
    if cls != "WARNING":
        with pytest.raises(builtin):
            run(source, target)


@pytest.mark.skipif(os.environ.get("TIRX_GOLDEN") != "write", reason="only with TIRX_GOLDEN=write")
def test_write():
    for path in FILES:
        title = re.split(r"^=== ", path.read_text(), flags=re.M)[0].strip() or f"{path.stem.capitalize()}."
        blocks = [
            f"=== {row} {target}".rstrip() + f"\n{source}---\n{message_of(source, target)}\n"
            for row, target, source, _ in (case.values for case in read_cases(path))
        ]
        path.write_text("\n".join([title + "\n", *blocks]))


@pytest.mark.parametrize("row", ROWS)
def test_every_row_is_triggered(row):
    triggered = {case.values[0] for case in CASES} | FRONT_END
    places = [row in triggered, row in ELSEWHERE, row in MISSING]
    assert places.count(True) == 1, "needs a case here, or a line in ELSEWHERE, and not both"


def test_elsewhere_names_rows():
    assert set(ELSEWHERE) <= set(ROWS)
