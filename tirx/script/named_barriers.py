# SPDX-License-Identifier: Apache-2.0
"""T.named_barrier: barriers of a part of a block's threads, numbered by the language."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state
from tirx.script.ops import Receipt
from tirx.script.ptx import ptx

_LAST = 15  # barrier 0 is T.cuda.cta_sync's


class NamedBarrier:
    """A barrier of `threads` threads: whole warps, some of which may only announce themselves."""

    __slots__ = ("id", "threads")

    def __init__(self, number: int, threads: int):
        self.id = number
        self.threads = threads

    def _operands(self) -> tuple[Any, Any]:
        ctx = state.context("T.named_barrier")
        return _core.literal(ctx, "uint32", self.id), _core.literal(ctx, "uint32", self.threads)

    def sync(self) -> Receipt:
        """Waits until all threads of the barrier have come, by sync() or arrive()."""
        return ptx["bar.sync"](*self._operands())

    def arrive(self) -> Receipt:
        """Comes to the barrier and does not wait."""
        return ptx["bar.arrive"](*self._operands())


def named_barrier(threads: int) -> NamedBarrier:
    """A new one. Numbers go down from 15, so that those which a kernel names itself, from 1 up, stay free."""
    p = state.need("T.named_barrier")
    if not isinstance(threads, int) or isinstance(threads, bool) or not 32 <= threads <= 1024 or threads % 32:
        raise ValueError(f"T.named_barrier: the number of threads must be a multiple of 32 up to 1024, got {threads!r}")
    if p.named_barriers == _LAST:
        raise ValueError("T.named_barrier: a block has 15 of them")
    p.named_barriers += 1
    return NamedBarrier(_LAST + 1 - p.named_barriers, threads)
