# SPDX-License-Identifier: Apache-2.0
"""The passes of the pipeline, one by one: tirx.transform.FlattenBuffer()(module) gives the module after it.

`names()` lists them in the order in which tirx.lower runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.module import IRModule, core_of
from tirx.target import Target


class Pass:
    """A pass: called with a function or a module, gives a module."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, mod: Any, target: Any = None, **options: bool) -> IRModule:
        spec = target if target is not None else Target.current() or "cpu"
        core = core_of(mod, f"tirx.transform.{self.name}")
        if isinstance(core, _core.Function):
            core = _core.Module({core.__name__: core})
        return IRModule(_core.run_pass(self.name, core, str(Target(spec)), options))

    def __repr__(self) -> str:
        return f"tirx.transform.{self.name}()"


def names() -> list[str]:
    return [name for name, _, in_pipeline in _core.passes() if in_pipeline]


def __getattr__(name: str) -> Callable[[], Pass]:
    for known, aliases, _ in _core.passes():
        if name == known or name in aliases.split():
            return lambda: Pass(known)
    raise AttributeError(f"module 'tirx.transform' has no pass '{name}'; there are {', '.join(names())}")


def __dir__() -> list[str]:
    return sorted({*globals(), *(name for name, _, _ in _core.passes())})
