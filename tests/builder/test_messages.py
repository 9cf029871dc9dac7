# SPDX-License-Identifier: Apache-2.0
"""What a user of tirx.builder and @T.trace does wrong, with the whole message.

messages.txt: `==== what`, Python code, `----`, the exception as Python would name it, the text. With TIRX_GOLDEN=write
the messages are written anew; read them before keeping them.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from pathlib import Path

import pytest

import tirx
from tirx.builder import IRBuilder
from tirx.builder import ir as I
from tirx.script import tirx as T

FILE = Path(__file__).with_name("messages.txt")


@T.inline
def store_behind(A, n):
    A[n + 4] = 0.0


def blocks() -> list[tuple[str, str, str]]:
    found = []
    for block in re.split(r"^==== ", FILE.read_text(), flags=re.M)[1:]:
        what, _, rest = block.partition("\n")
        text, _, message = rest.partition("\n----\n")
        found.append((what, text + "\n", message.rstrip("\n")))
    return found


def message_of(text: str) -> str:
    linecache.cache["b.py"] = (len(text), None, text.splitlines(keepends=True), "b.py")
    names = {"tirx": tirx, "IRBuilder": IRBuilder, "I": I, "T": T, "store_behind": store_behind}
    with pytest.raises(Exception) as info:
        exec(compile(text, "b.py", "exec"), names)
    assert not IRBuilder.is_in_scope(), "something stays open"
    e = info.value
    here = re.escape(__file__)
    text = re.sub(here + r":\d+", "here.py:N", f"{type(e).__name__}: {e}").rstrip("\n")
    text = text.replace("<tirx source", "<source")
    return re.sub(r" at 0x[0-9a-f]+>", ">", text)


@pytest.mark.parametrize("what, text, message", blocks(), ids=lambda x: x.split("\n")[0][:40])
def test_message(what, text, message):
    if os.environ.get("TIRX_GOLDEN") == "write":
        pytest.skip("written by test_write")
    found = re.sub(r"<source \d+>", "k.py", message_of(text))
    if sys.version_info >= (3, 13):  # positions of `with` and `for` are others there: only the lines are the same
        found, message = (re.sub(r"^(\w+: b\.py:\d+):\d+|\n *\^+", r"\1", m) for m in (found, message))
    assert found == message


def test_write():
    if os.environ.get("TIRX_GOLDEN") == "write":
        made = [f"==== {w}\n{t}----\n{re.sub(r'<source [0-9]+>', 'k.py', message_of(t))}\n" for w, t, _ in blocks()]
        FILE.write_text("\n".join(made))
