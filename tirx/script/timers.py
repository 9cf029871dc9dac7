# SPDX-License-Identifier: Apache-2.0
"""T.cuda.timer_*: events of thread groups in a ring of 64-bit words: the clock's low half above, then tag, event, kind.

Word 0 holds the numbers of groups and blocks. A group begins at word 1 + its number and goes on in strides, so that the
groups interleave. Kinds: 0 begin, 1 end, 3 the last word of a group. Only the thread for which the leader's condition
holds writes.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state
from tirx.script.ops import RECEIPT, Receipt

_BEGIN, _END, _FINAL = 0, 1, 3


def _cast(dtype: str, x: Any) -> Any:
    return _core.cast(state.context("T.cuda.timer"), dtype, x)


def _number(dtype: str, x: int) -> Any:
    return _core.literal(state.context("T.cuda.timer"), dtype, x)


def _buffer(what: str, x: Any, dtypes: tuple[str, ...]) -> Any:
    if isinstance(x, _core.Expr) and x.op == "BUFFER_DATA":
        x = x.buffer
    if not isinstance(x, _core.Buffer) or len(x.shape) != 1 or x.dtype not in dtypes:
        raise TypeError(f"{what} must be a one-dimensional buffer of {' or '.join(dtypes)}")
    return x


def _operands(what: str, ring: Any, tag: Any, offset: Any) -> tuple[Any, Any, Any]:
    words = ("uint32", "uint64", "int32", "int64")
    return (
        _buffer(f"{what}: profiler_buffer", ring, ("uint64",)),
        _buffer(f"{what}: profiler_tag", tag, words),
        _buffer(f"{what}: profiler_write_offset", offset, words),
    )


def timer_init(
    profiler_buffer: Any, profiler_tag: Any, profiler_write_offset: Any, num_groups: Any, group_id: Any
) -> Receipt:
    """Sets the tag and the first offset of this thread's group; one thread of the grid writes word 0."""
    from tirx.script import cuda

    what = "T.cuda.timer_init"
    ring, tag, offset = _operands(what, profiler_buffer, profiler_tag, profiler_write_offset)
    b = state.builder(what)
    blocks = cuda.grid_dim("x") * cuda.grid_dim("y") * cuda.grid_dim("z")
    block = cuda.block_idx("x") + cuda.grid_dim("x") * (cuda.block_idx("y") + cuda.grid_dim("y") * cuda.block_idx("z"))
    ctx = state.context(what)
    b.open_if(_core.op(ctx, "EQ", block + cuda.linear_thread_id(), 0))
    b.store(ring, [0], _cast("uint64", num_groups) << _number("uint64", 32) | _cast("uint64", blocks))
    b.close()
    mine = block * num_groups + group_id
    b.store(tag, [0], _cast(tag.dtype, mine << 12))
    b.store(offset, [0], _cast(offset.dtype, mine + 1))
    return RECEIPT


def _write(
    what: str, kind: int, event: Any, ring: Any, tag: Any, offset: Any, stride: Any, leader_cond: Any
) -> Receipt:
    from tirx.script import cuda

    ring, tag, offset = _operands(what, ring, tag, offset)
    ctx = state.context(what)
    b = state.builder(what)
    b.open_if(_core.condition(ctx, leader_cond))
    clock = _cast("uint64", _cast("uint32", cuda.mov_sreg(32, "globaltimer_lo"))) << _number("uint64", 32)
    word = _cast("uint64", tag[0]) | _cast("uint64", event) << _number("uint64", 2) | _number("uint64", kind)
    state.builder(what).store(ring, [_cast("int64", offset[0])], clock | word)
    if stride is not None:
        b.store(offset, [0], offset[0] + _cast(offset.dtype, stride))
    b.close()
    return RECEIPT


def timer_start(
    event_type: Any,
    profiler_buffer: Any,
    profiler_tag: Any,
    profiler_write_offset: Any,
    profiler_write_stride: Any,
    leader_cond: Any,
) -> Receipt:
    """The event begins."""
    places = (profiler_buffer, profiler_tag, profiler_write_offset, profiler_write_stride)
    return _write("T.cuda.timer_start", _BEGIN, event_type, *places, leader_cond)


def timer_end(
    event_type: Any,
    profiler_buffer: Any,
    profiler_tag: Any,
    profiler_write_offset: Any,
    profiler_write_stride: Any,
    leader_cond: Any,
) -> Receipt:
    """The event ends."""
    places = (profiler_buffer, profiler_tag, profiler_write_offset, profiler_write_stride)
    return _write("T.cuda.timer_end", _END, event_type, *places, leader_cond)


def timer_finalize(
    profiler_buffer: Any, profiler_tag: Any, profiler_write_offset: Any, profiler_write_stride: Any, leader_cond: Any
) -> Receipt:
    """The last word of a group."""
    places = (profiler_buffer, profiler_tag, profiler_write_offset, profiler_write_stride)
    return _write("T.cuda.timer_finalize", _FINAL, 0, *places, leader_cond)
