# SPDX-License-Identifier: Apache-2.0
"""A context with a source text in it, and an active builder, for tests of the C module on its own."""

from __future__ import annotations

import pytest

from tirx import _core

TEXT = "one = a + b\ntwo = f(a, 'ä', b)\nthree\n"


@pytest.fixture
def ctx():
    """A context whose current span is `a + b` of the first line."""
    c = _core.Context()
    c.set_place(c.add_file("kernel.py", TEXT), "k")
    c.at_pos(1, 6, 1, 11)
    return c


@pytest.fixture
def var(ctx):
    """var("a", "int32"): a parameter's variable."""
    return lambda name, dtype, **more: _core.var(ctx, "param", name, dtype, **more)


@pytest.fixture
def builder(ctx):
    """An active builder with its device zone open."""
    b = _core.Builder(ctx, "k", "g1")
    b.activate()
    b.device_entry()
    yield b
    b.deactivate()
