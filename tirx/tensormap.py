# SPDX-License-Identifier: Apache-2.0
"""Ready tensor maps: what a kernel with a T.TensorMap() parameter is called with.

A kernel may as well encode its maps itself, in its host zone; then the caller passes only tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tirx import _core

TensorMap = _core.TensorMap

INTERLEAVE = ("none", "16B", "32B")
SWIZZLE = ("none", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B")
L2_PROMOTION = ("none", "64B", "128B", "256B")
OOB_FILL = ("zeros", "nan")
MODES = {"interleave": INTERLEAVE, "swizzle": SWIZZLE, "l2_promotion": L2_PROMOTION, "oob_fill": OOB_FILL}
# The driver's names of the element types, by their numbers.
DTYPES = (
    "U8 U16 U32 S32 U64 S64 F16 F32 F64 BF16 F32_FTZ TF32 TF32_FTZ 16U4_ALIGN8B 16U4_ALIGN16B 16U6_ALIGN16B".split()
)


def number(who: str, mode: str, value: Any) -> Any:
    """The number of a mode that is given by its name; anything else as it is."""
    return _index(who, mode, MODES[mode], value) if isinstance(value, str) else value


def _index(who: str, what: str, names: Sequence[str], value: str) -> int:
    if value not in names:
        raise ValueError(f"{who}: {what} must be one of {', '.join(map(repr, names))}, got {value!r}")
    return names.index(value)


def _element_type(dtype: str, given: Any) -> int:
    force = -1 if given is None else given
    if isinstance(force, str):
        force = _index("tensor_map", "dtype", DTYPES, force)
    number = _core.tensormap_dtype(dtype, force)
    if number is None and given is None:
        raise TypeError(f"tensor_map: no tensor map has elements of dtype {dtype}")
    if number is None:
        raise ValueError(f"tensor_map: dtype {given!r} does not go with elements of dtype {dtype}")
    return number


def _bytes_between(dtype: str, elements: int) -> int:
    """Bytes between neighbours that are `elements` elements apart."""
    bits = next(size * 8 if b >= 6 else b for name, _, _, b, size in _core.dtypes() if name == dtype)
    if elements * bits % 8:
        raise ValueError(
            f"tensor_map: neighbours that are {elements} elements of {dtype} apart are no whole bytes apart"
        )
    return elements * bits // 8


def tensor_map(
    tensor: Any,
    box: Sequence[int] = (),
    *,
    dims: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    element_strides: Sequence[int] | None = None,
    offset: int = 0,
    dtype: str | int | None = None,
    interleave: str | int = "none",
    swizzle: str | int = "none",
    l2_promotion: str | int = "none",
    oob_fill: str | int = "zeros",
    lower_corner: Sequence[int] | None = None,
    upper_corner: Sequence[int] | None = None,
    channels: int = 0,
    pixels: int = 0,
) -> TensorMap:
    """A tensor map over `tensor`, which may be on the host (for the emulator) or on a GPU.

    Everything counts from the innermost dimension, as coordinates in a kernel do: `box` gives the elements that one
    copy moves along each dimension, `dims` and `strides` (in bytes, of all dimensions but the innermost) default to
    those of the tensor, reversed. `offset` is in bytes from its first element. With `channels` and `pixels`
    instead of a box the map is an im2col map, whose window the corners bound.

        m = tirx.tensor_map(a, (64, 32), swizzle="128B")
        exe(m, out)
    """
    a = _core.describe_arg(tensor)
    if a["kind"] != "tensor":
        raise TypeError(f"tensor_map: expected a tensor, got {type(tensor).__name__}")
    if not a["known"]:
        raise TypeError(f"tensor_map: a tensor of dtype {a['dtype']} is not supported")
    shape, steps = a["shape"], a["strides"]
    if steps is None:
        steps = [1] * len(shape)
        for d in reversed(range(len(shape) - 1)):
            steps[d] = steps[d + 1] * shape[d + 1]
    if dims is None:
        dims = shape[::-1]
        if shape and steps[-1] != 1 and shape[-1] != 1:
            raise ValueError(
                f"tensor_map: the innermost dimension must be contiguous, its stride is {steps[-1]} elements"
            )
    if strides is None:
        if len(dims) != len(shape):
            raise ValueError(f"tensor_map: strides are needed for {len(dims)} dimensions of a tensor of {len(shape)}")
        strides = [_bytes_between(a["dtype"], s) for s in steps[-2::-1]] if len(shape) > 1 else []
    im2col = bool(channels or pixels)
    spatial = max(len(dims) - 2, 0) if im2col else 0
    fields = (
        im2col,
        _element_type(a["dtype"], dtype),
        tuple(dims),
        tuple(strides),
        tuple(box),
        (1,) * len(dims) if element_strides is None else tuple(element_strides),
        (0,) * spatial if lower_corner is None else tuple(lower_corner),
        (0,) * spatial if upper_corner is None else tuple(upper_corner),
        channels,
        pixels,
        *(number("tensor_map", *m) for m in zip(MODES, (interleave, swizzle, l2_promotion, oob_fill), strict=True)),
    )
    over = f"im2col, {channels} channels, {pixels} pixels" if im2col else f"box {tuple(box)}"
    return TensorMap(tensor, fields, offset, f"<tirx.TensorMap of {a['dtype']} {tuple(dims)}, {over}>")
