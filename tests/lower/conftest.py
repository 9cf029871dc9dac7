# SPDX-License-Identifier: Apache-2.0
"""Kernels as text, so that messages and printed passes can be compared whole."""

from __future__ import annotations

import re
import textwrap

import pytest

import tirx

ORDER = ("LowerTIRx", "FlattenBuffer", "UnrollLoop", "SplitHostDevice")


@pytest.fixture
def kernel():
    """kernel(body, params=..., dialect=...): a function `k` whose body is the text."""

    def make(body: str, params: str = 'A: T.Buffer((64,), "int32")', decorator: str = "T.prim_func"):
        return tirx.from_source(
            f"@{decorator}\ndef k({params}):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
        )

    return make


@pytest.fixture
def after(kernel):
    """after(pass, body, ...): the printed statements of the module's functions after that pass, by name."""

    def run(last: str, body: str, *args, **options) -> dict[str, str]:
        module = tirx.IRModule({"main": kernel(body, *args)})
        for name in ORDER[: ORDER.index(last) + 1]:
            module = getattr(tirx.transform, name)()(module, **options)
        again = getattr(tirx.transform, last)()(module, **options)
        assert again.script() == module.script(), "the second run changed something"
        parts = re.split(r"(?m)^    def (\w+)\(.*\n", module.script())
        return {
            name: textwrap.dedent(text.split("\n\n")[0]).strip()
            for name, text in zip(parts[1::2], parts[2::2], strict=True)
        }

    return run


@pytest.fixture
def refused(kernel):
    """refused(body, ...): the whole message of compiling it, with the name of the text left out."""

    def run(body: str, *args, error: type[Exception] = tirx.DiagnosticError) -> str:
        with pytest.raises(error) as info:
            tirx.lower(kernel(body, *args), target="cpu")
        return re.sub(r"<tirx source \d+>:", "", str(info.value))

    return run
