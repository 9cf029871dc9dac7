# SPDX-License-Identifier: Apache-2.0
"""What is being built by this thread, and how the functions of T find it.

While a function is built, by the parser or by tirx.builder, its Building stands on this thread's stack. Functions of T
that make IR take the context from it, and those that emit statements take the builder; both raise a RuntimeError when
nothing is being built.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn

from tirx import _core

if TYPE_CHECKING:
    from tirx.script.building import Building


class _Thread(threading.local):
    building: Building | None = None


_thread = _Thread()


def parser() -> Building | None:
    """The kernel that this thread is building, or None."""
    return _thread.building


def enter(p: Building) -> Building | None:
    """Makes p the current one; gives the one to go back to with `leave`."""
    outer = _thread.building
    _thread.building = p
    return outer


def leave(outer: Building | None) -> None:
    _thread.building = outer


def need(what: str) -> Building:
    p = _thread.building
    if p is None:
        raise RuntimeError(f"{what} can only be used inside a kernel")
    if p.traced:
        p.ctx.here()
    return p


def context(what: str) -> Any:
    return need(what).ctx


def builder(what: str) -> Any:
    """The builder, for a function that emits: counts the emission and settles what waits to be flat."""
    p = _thread.building
    if p is None:
        raise RuntimeError(f"{what} can only be used inside a kernel")
    p.emitted += 1
    if p.traced:
        p.ctx.here()
    if p.pending_frames:
        p.settle_frames()
    return p.builder


def give_up(frame: Any) -> None:
    """An exception leaves a frame: what it holds is not complete, and no function comes of it."""
    p = _thread.building
    if p is not None:
        p.give_up(frame)


def is_ir(x: Any) -> bool:
    """Whether x is a value known at run time only."""
    return isinstance(x, IR_TYPES)


IR_TYPES = (_core.Expr, _core.Buffer)


def fail(row: str, *args: object, outside: type[Exception] = ValueError, help: str | None = None) -> NoReturn:
    """The diagnostic `row` inside a kernel; outside, the builtin exception with the same text."""
    p = _thread.building
    words = [str(a) for a in args]
    if p is not None:
        p.ctx.fail(row, *words, help=help)
    raise outside(diagnostic_text(row) % tuple(words))


def diagnostic_text(row: str) -> str:
    for name, _, text, _ in _core.diags():
        if name == row:
            return text
    raise KeyError(row)
