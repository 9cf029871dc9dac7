# SPDX-License-Identifier: Apache-2.0
"""Targets: what a kernel is compiled for.

"cuda"                   the architecture of device 0, with its "a" suffix
"cuda:sm_90a"            that architecture, without any device
{"kind": "cuda", "arch": "sm_90a"}
"cpu"                    the emulator ("llvm" and "c" mean the same)
None                     the target of the enclosing `with target:`, else a GPU if there is one, else the emulator
"""

from __future__ import annotations

import threading
from typing import Any

from tirx import _core
from tirx.errors import CompileError

_entered = threading.local()
_EMULATOR = ("cpu", "llvm", "c", "emulator")


class Target:
    """A target: `kind` is "cuda" or "cpu"; `arch` is "sm_90a", or None where device 0 decides. Works in `with`, too."""

    __slots__ = ("kind", "arch")

    kind: str
    arch: str | None

    def __init__(self, spec: str | dict | Target = "cuda", host: Any = None) -> None:
        kind, arch = _parse(spec)
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "arch", arch)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Target cannot be changed")

    def __reduce__(self) -> Any:
        return Target, (str(self),)

    def __str__(self) -> str:
        return self.kind if self.arch is None else f"{self.kind}:{self.arch}"

    def __repr__(self) -> str:
        return f'Target("{self}")'

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __enter__(self) -> Target:
        _stack().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack().pop()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost enclosing `with target:` of this thread."""
        if _stack():
            return _stack()[-1]
        if allow_none:
            return None
        raise ValueError("there is no enclosing `with target:`")


def _stack() -> list[Target]:
    try:
        return _entered.stack
    except AttributeError:
        _entered.stack = []
        return _entered.stack


def _parse(spec: str | dict | Target) -> tuple[str, str | None]:
    if isinstance(spec, Target):
        return spec.kind, spec.arch
    if isinstance(spec, dict):
        unknown = sorted(set(spec) - {"kind", "arch", "tag", "keys"})
        if unknown or not isinstance(spec.get("kind"), str):
            raise ValueError(f'target: expected {{"kind": ..., "arch": ...}}, got {spec!r}')
        arch = spec.get("arch")
        return _parse(spec["kind"] if arch is None else f"{spec['kind']}:{arch}")
    if not isinstance(spec, str):
        raise TypeError(f"target: expected a str, a dict, a Target or None, got {type(spec).__name__}")
    if spec in _EMULATOR:
        return "cpu", None
    if spec == "cuda":
        return "cuda", None
    known = _core.parse_target(spec)  # ValueError for what is no target
    if known["kind"] == "cpu":
        return "cpu", None
    return "cuda", f"sm_{known['arch']}{known['suffix'] or ''}" if known["arch"] else None


def device_target(index: int = 0) -> Target:
    """The target of a GPU of this machine."""
    ok, why = _core.driver_available()
    if not ok:
        raise CompileError(
            f'target "cuda" is the architecture of device {index}, and {why}; name one to compile without a device: '
            'target="cuda:sm_90a"'
        )
    arch = _core.device_arch(index)
    return Target(f"cuda:sm_{arch}{'a' if arch >= 90 else ''}")


def resolve(spec: str | dict | Target | None) -> Target:
    """The target to compile for, with its architecture."""
    if spec is None:
        spec = Target.current()
    if spec is None:
        spec = "cuda" if _core.driver_available()[0] and _core.device_count() > 0 else "cpu"
    target = spec if isinstance(spec, Target) else Target(spec)
    return device_target() if target.kind == "cuda" and target.arch is None else target
