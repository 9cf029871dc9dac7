# SPDX-License-Identifier: Apache-2.0
"""@I.ir_module: a class whose members are kernel functions becomes a module of them."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.module import IRModule
from tirx.script import decorators
from tirx.script.parser import parse_function


def ir_module(cls: Any = None, **_: Any) -> Any:
    """A class whose members are kernel functions becomes a module of them."""
    if cls is None:
        return ir_module
    if not isinstance(cls, type):
        raise TypeError(f"ir_module decorates a class, got {cls!r}")
    found: dict[str, Any] = {}
    for name, member in vars(cls).items():
        if isinstance(member, _core.Function):
            found[name] = member
            continue
        mark = getattr(member, "_tirx_member", None)
        if mark is not None:
            dialect, options = mark
            found[name] = parse_function(member, decorators._source(member), dialect, options, None)
    if not found:
        raise TypeError(f"class {cls.__name__} has no kernel functions")
    return IRModule(found)
