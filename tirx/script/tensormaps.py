# SPDX-License-Identifier: Apache-2.0
"""Tensor maps in the host zone: room for one, and the calls that encode it at each launch.

Every spelling becomes a packed call of the same name and order of arguments; the launch plan knows it.
"""

from __future__ import annotations

from typing import Any

from tirx import _core, tensormap
from tirx.script import ops, state

TILED = "runtime.cuTensorMapEncodeTiled"
IM2COL = "runtime.cuTensorMapEncodeIm2col"


def tvm_stack_alloca(dtype: str, n: int = 1) -> Any:
    """Room for a tensor map on the host: m: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)."""
    if dtype != "tensormap":
        raise ValueError(f'T.tvm_stack_alloca makes room for a "tensormap", got {dtype!r}')
    if n != 1 or isinstance(n, bool):
        raise ValueError(f"T.tvm_stack_alloca makes room for 1 tensor map, got {n!r}: call it once for each map")
    p = state.need("T.tvm_stack_alloca")
    if p.builder.zone == "device":
        raise ValueError("T.tvm_stack_alloca belongs before T.device_entry(): tensor maps are made on the host")
    made = _core.make(p.ctx, "STACK_ALLOCA", "handle", (_core.string(p.ctx, dtype), 1))
    return p.add_fresh(p.builder.bind("tensor_map", made))  # each call makes room once, whatever becomes of the result


stack_alloca = tvm_stack_alloca


def _encode(
    what: str, packed: str, args: tuple, count: int, numbers: str, fields: tuple[Any, ...], force: int
) -> ops.Receipt:
    descriptor_dtype, rank = fields[:2]
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise TypeError(f"{what}: rank must be a Python int, got {rank!r}")
    if len(args) != 2 + count:
        raise ValueError(
            f"{what} takes a map, an address and {numbers} numbers, for rank {rank} that is {count}, got {len(args)} "
            "operand(s) in all"
        )
    where, data, *rest = args
    if isinstance(data, _core.Buffer):
        data = data.data
    dtype = _core.parse_dtype(descriptor_dtype)
    forced = () if force == -1 else (force,)
    modes = [tensormap.number(what, *m) for m in zip(tensormap.MODES, fields[2:], strict=True)]
    return ops.call_packed(packed, where, dtype, rank, data, *rest, *modes, *forced)


def tensormap_encode_tiled(
    *args: Any,
    descriptor_dtype: Any,
    rank: int,
    interleave: Any = 0,
    swizzle: Any = 0,
    l2_promotion: Any = 0,
    oob_fill: Any = 0,
    force_cu_dtype: int = -1,
) -> ops.Receipt:
    """Encodes a map: (map, address, *dims, *strides, *box, *element_strides), innermost dimension first; strides are in
    bytes, and the innermost dimension has none. The modes are names or numbers: swizzle="128B" is swizzle=3."""
    fields = (descriptor_dtype, rank, interleave, swizzle, l2_promotion, oob_fill)
    count = 4 * rank - 1 if isinstance(rank, int) else 0
    return _encode("tensormap_encode_tiled", TILED, args, count, "4 * rank - 1", fields, force_cu_dtype)


def tensormap_encode_im2col(
    *args: Any,
    descriptor_dtype: Any,
    rank: int,
    interleave: Any = 0,
    swizzle: Any = 0,
    l2_promotion: Any = 0,
    oob_fill: Any = 0,
    force_cu_dtype: int = -1,
) -> ops.Receipt:
    """Encodes an im2col map: (map, address, *dims, *strides, *lower_corner, *upper_corner, channels, pixels,
    *element_strides)."""
    fields = (descriptor_dtype, rank, interleave, swizzle, l2_promotion, oob_fill)
    count = 5 * rank - 3 if isinstance(rank, int) else 0
    return _encode("tensormap_encode_im2col", IM2COL, args, count, "5 * rank - 3", fields, force_cu_dtype)
