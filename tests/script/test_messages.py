# SPDX-License-Identifier: Apache-2.0
"""Every diagnostic of the front end, as the user reads it: messages.txt holds kernels and their whole messages.

A block is `==== ROW`, a kernel, `----`, the message. A kernel without `def` is the body of the kernel HEAD below. With
TIRX_GOLDEN=write the messages are written anew; read them before keeping them.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

import tirx
from tirx import _core
from tirx.script import tirx as T

FILE = Path(__file__).with_name("messages.txt")
HEAD = """\
@T.prim_func
def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), s: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
"""


class Holder:
    """What kernels of messages.txt may name as `holder`."""

    value = 3


def helper(x):
    return x


@T.meta_class
class Lost:
    def __init__(self):
        T.alloc_local((4,), "int32")


class Forgetful(Lost):
    """A subclass is a meta class, too; a view counts as a resource."""

    def __init__(self):
        self.kept = T.alloc_local((4,), "int32")
        self.kept.view(2, 2)


def endless(x):
    return endless(x + 1)


def turn_about(x):
    return and_back(x)


def and_back(x):
    return turn_about(x)


@T.prim_func
def kernel(A: T.Buffer((64,), "float32")):
    T.device_entry()
    A[T.thread_id([64])] = 0.0


VARIABLES = {
    "holder": Holder(),
    "helper": helper,
    "Lost": Lost,
    "Forgetful": Forgetful,
    "table": {"a": 1},
    "N": 16,
    "math": math,
    "np": np,
    "endless": endless,
    "turn_about": turn_about,
    "kernel": kernel,
}


def blocks() -> list[tuple[str, str, str]]:
    found = []
    for block in re.split(r"^==== ", FILE.read_text(), flags=re.M)[1:]:
        row, _, rest = block.partition("\n")
        text, _, message = rest.partition("\n----\n")
        found.append((row.strip(), text, message.rstrip("\n")))
    return found


def source_of(text: str) -> str:
    return text + "\n" if "def k" in text else HEAD + "".join(f"    {line}\n" for line in text.split("\n"))


def message_of(text: str) -> str:
    with pytest.raises(tirx.DiagnosticError) as info:
        tirx.from_source(source_of(text), VARIABLES)
    e = info.value
    assert e.lineno and e.offset, "it names no place"
    return re.sub(r"<tirx source \d+>", "k.py", str(e)).rstrip("\n")


def pattern(row: str) -> re.Pattern:
    text = next(t for name, _, t, _ in _core.diags() if name == row)
    parts = re.split(r"%(?:\d\$)?(?:lld|[sd])", text)
    return re.compile("error: " + ".*".join(map(re.escape, parts)) + "$", re.S)


@pytest.mark.parametrize("row, text, message", blocks(), ids=lambda x: x.split("\n")[0][:40])
def test_message(row, text, message):
    if os.environ.get("TIRX_GOLDEN") == "write":
        pytest.skip("written by test_write")
    found = message_of(text)
    assert found == message
    assert pattern(row).search(found.split("\n")[0]), f"that is not the diagnostic {row}"


def test_write():
    if os.environ.get("TIRX_GOLDEN") == "write":
        FILE.write_text("\n".join(f"==== {row}\n{text}\n----\n{message_of(text)}\n" for row, text, _ in blocks()))


def test_every_row_of_the_front_end_has_a_message():
    table = (Path(__file__).resolve().parents[2] / "csrc/base/diag.def").read_text()
    section = table.partition("/* ---- script")[2].partition("/* ----")[0]
    rows = set(re.findall(r"^DIAG\((\w+)", section, re.M))
    assert len(rows) > 50
    # a text without source, a recursion that is not of inline functions and the builder have tests of their own
    elsewhere = {"NO_SOURCE", "PYTHON_RECURSION", "NOTHING_DEFINED"}
    elsewhere |= {"FUNCTION_GIVEN_UP", "ARG_PLACE", "PARAMETER_TWICE"}
    assert rows - {row for row, _, _ in blocks()} - elsewhere == set()
