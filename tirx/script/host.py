# SPDX-License-Identifier: Apache-2.0
"""What the host zone can compute for a kernel beyond arithmetic: T.device, what the GPU of the call has; T.fastdiv,
division by a number that is known only at the call, without a division on the device."""

from __future__ import annotations

import re
from typing import Any

from tirx import _core
from tirx.script import state


def _need_host(what: str) -> Any:
    p = state.need(what)
    if p.builder.zone != "host":
        raise ValueError(f"{what} stands before T.device_entry(): the host computes it")
    return p


class Device:
    """T.device: properties of the device that the kernel is called on, as host values. The emulator has 8 SMs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "T.device"

    @staticmethod
    def _ask(name: str, short: str) -> Any:
        what = f"T.device.{short}"
        p = _need_host(what)
        call = _core.make(p.ctx, "CALL_PACKED", "int32", (), call=(name, None))
        return state.builder(what).bind(short, call)

    @staticmethod
    def num_sms() -> Any:
        """The number of multiprocessors."""
        return Device._ask("runtime.device_sm_count", "num_sms")

    @staticmethod
    def l2_bytes() -> Any:
        """The size of the L2 cache."""
        return Device._ask("runtime.device_l2_bytes", "l2_bytes")

    @staticmethod
    def block_smem_bytes() -> Any:
        """The most shared memory that a block can have."""
        return Device._ask("runtime.device_block_smem_bytes", "block_smem_bytes")

    @staticmethod
    def max_active_clusters() -> Any:
        """How many clusters of the kernel that the next device region becomes can run at once, with its block, cluster
        and dynamic shared memory; blocks, for a kernel without clusters. The emulator holds 8 blocks."""
        return Device._ask("runtime.max_active_clusters", "max_active_clusters")

    @staticmethod
    def max_active_blocks_per_sm() -> Any:
        """How many blocks of the kernel that the next device region becomes an SM can hold; 1 in the emulator."""
        return Device._ask("runtime.max_active_blocks_per_sm", "max_active_blocks_per_sm")


class FastDiv:
    """A divisor d from 1 to 2**31 - 1 of numbers x from 0 to 2**31 - 1: x // d is one wide multiplication and a shift.

    With l the least number for which 2**l >= d, and m = ceil(2**(31 + l) / d), x // d = x * m >> 31 + l: m exceeds the
    true quotient by less than 1, so the product by less than 2**31 <= 2**(31 + l) / d, which is too little to reach the
    next multiple."""

    __slots__ = ("divisor", "multiplier", "shift")

    def __init__(self, divisor: Any, multiplier: Any, shift: Any):
        self.divisor = divisor
        self.multiplier = multiplier
        self.shift = shift

    def div(self, x: Any) -> Any:
        ctx = state.context("T.fastdiv")
        wide = _core.cast(ctx, "uint64", _core.cast(ctx, "uint32", x)) * _core.cast(ctx, "uint64", self.multiplier)
        return _core.cast(ctx, "int32", wide >> _core.cast(ctx, "uint64", self.shift))

    def divmod(self, x: Any) -> tuple[Any, Any]:
        q = self.div(x)
        return q, x - q * self.divisor

    def mod(self, x: Any) -> Any:
        return self.divmod(x)[1]

    __rfloordiv__ = div
    __rmod__ = mod
    __rdivmod__ = divmod


def fastdiv(divisor: Any) -> FastDiv:
    """T.fastdiv(n) in the host zone; then x // d, x % d, d.divmod(x) in the device zone."""
    p = _need_host("T.fastdiv")
    ctx, b = p.ctx, state.builder("T.fastdiv")
    d = _core.cast(ctx, "int32", divisor)
    b.assert_(_core.op(ctx, "GT", d, 0), "ValueError", ["T.fastdiv: the divisor must be positive"])
    power = _core.as_expr(ctx, 0, "int32")
    for i in range(31):
        power = power + _core.cast(ctx, "int32", _core.op(ctx, "GT", d, 1 << i))
    power = b.bind("power", power)
    one = _core.literal(ctx, "int64", 1)
    wide = _core.cast(ctx, "int64", d)
    top = one << _core.cast(ctx, "int64", power + 31)
    multiplier = b.bind("multiplier", _core.cast(ctx, "uint32", _core.op(ctx, "FLOORDIV", top + wide - one, wide)))
    shift = b.bind("shift", _core.cast(ctx, "uint32", power + 31))
    return FastDiv(d, multiplier, shift)


_MOST_WORKSPACE = 1 << 40


def workspace(size: int, dtype: Any = "uint32") -> Any:
    """Memory of the kernel's own: `size` elements that are 0 before the first call on a device, and stay as calls leave
    them. It is a parameter behind the caller's that the executable fills in: counters that go back to 0, tickets,
    partial sums. Calls that run at the same time share it."""
    p = _need_host("T.workspace")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= _MOST_WORKSPACE:
        raise ValueError(f"T.workspace: the size must be a positive number that is known here, got {size!r}")
    name = f"workspace{len(p.workspaces) // 2 or ''}"
    made = _core.buffer(p.ctx, name, [size], dtype, "global")
    if re.fullmatch(r"(?:u?int|b?float)(8|16|32|64)", made.dtype) is None:
        raise TypeError(f"T.workspace: the dtype must be one of numbers of 8 to 64 bits, got {made.dtype}")
    p.workspaces += [made.dtype, size]
    p.builder.param(name, made)
    p.builder.set_attr("tirx.workspace", p.workspaces)
    return made


device = Device()
