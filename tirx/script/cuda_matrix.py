# SPDX-License-Identifier: Apache-2.0
"""T.cuda.wgmma: what stands around the matrix instructions of Hopper: descriptors of tiles in shared memory, and the
registers of accumulators. Descriptors are plain uint64 expressions, so every back end has them. Also the 16 x 16 tiles
of a warp."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state
from tirx.script.ops import RECEIPT, Receipt, emit

_ADDRESS_BITS = 0x3FFFF  # of a shared address; the lowest four are dropped


def _number(dtype: str, x: int) -> Any:
    return _core.literal(state.context("T.cuda"), dtype, x)


def _cast(dtype: str, x: Any) -> Any:
    return _core.cast(state.context("T.cuda"), dtype, x)


def shared_address(smem_ptr: Any) -> Any:
    """The 32-bit address of a pointer, a buffer, or an address that is one already."""
    ctx = state.context("T.cuda")
    if isinstance(smem_ptr, _core.Buffer) and not smem_ptr.is_cell:
        smem_ptr = smem_ptr.data
    if isinstance(smem_ptr, _core.Expr) and smem_ptr.dtype == "handle":
        return _core.op(ctx, "CVTA_SHARED", smem_ptr)
    return _core.cast(ctx, "uint32", smem_ptr)


def place_of(what: str, pointer: Any) -> Any:
    """The scalar or element that `pointer` leads to: T.address_of(x), x.ptr_to([i]), or x itself."""
    place = pointer
    if isinstance(place, _core.Expr) and place.op == "ADDRESS_OF":
        place = place.args[0]
    if isinstance(place, _core.Expr) and place.op == "BUFFER_DATA":
        place = place.buffer
    if isinstance(place, _core.Buffer):
        place = place[(0,) * len(place.shape)]
    if not isinstance(place, _core.Expr) or place.op != "LOAD":
        raise TypeError(f"{what} writes into a variable: pass T.address_of(x), where x: T.uint64")
    return place


def store_through(what: str, pointer: Any, value: Any) -> Receipt:
    place = place_of(what, pointer)
    state.builder(what).store(place.buffer, list(place.args), value)
    return RECEIPT


def _offset(what: str, name: str, x: Any) -> Any:
    if isinstance(x, int):
        if not 0 <= x < 1 << 14:
            raise ValueError(f"{what}: {name} is in units of 16 bytes, 0..16383, got {x}")
        return _number("uint64", x)
    return _cast("uint64", x) & _number("uint64", 0x3FFF)


def _neighbours(what: str, per: Any) -> None:
    if per not in (1, 2, 4) or isinstance(per, bool):
        raise ValueError(f"{what}: a thread holds 1, 2 or 4 neighbours of a row, got per={per!r}")


def _place_number(what: str, name: str, x: Any, end: int) -> None:
    """A number of a fragment: an integer below `end`, or an integer expression."""
    integer = isinstance(x, int) and not isinstance(x, bool)
    if not integer and not (isinstance(x, (_core.Expr, _core.Buffer)) and "int" in x.dtype):
        raise TypeError(f"{what}: {name} is an integer, got {x.dtype if hasattr(x, 'dtype') else repr(x)}")
    if integer and not 0 <= x < end:
        raise ValueError(f"{what}: {name} is 0..{end - 1}, got {x}")


class Wgmma:
    """T.cuda.wgmma."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "T.cuda.wgmma"

    @staticmethod
    def matrix_descriptor(smem_ptr: Any, ldo: Any, sdo: Any, swizzle: int) -> Any:
        """The uint64 that says where a tile lies. ldo and sdo in units of 16 bytes; swizzle 0..3: none, 32 to 128 B."""
        what = "T.cuda.wgmma.matrix_descriptor"
        if not isinstance(swizzle, int) or swizzle not in (0, 1, 2, 3):
            raise ValueError(f"{what}: swizzle must be 0, 1, 2 or 3 (none, 32, 64, 128 bytes), got {swizzle!r}")
        mode = (0, 3, 2, 1)[swizzle]
        address = shared_address(smem_ptr) & _number("uint32", _ADDRESS_BITS)
        low = _cast("uint64", address >> _number("uint32", 4))
        fields = _offset(what, "ldo", ldo) << _number("uint64", 16) | _offset(what, "sdo", sdo) << _number("uint64", 32)
        return low | (fields | _number("uint64", mode << 62))

    @staticmethod
    def encode_matrix_descriptor(desc: Any, smem_ptr: Any, ldo: Any, sdo: Any, swizzle: int) -> Receipt:
        """matrix_descriptor, stored where `desc` points to."""
        what = "T.cuda.wgmma.encode_matrix_descriptor"
        return store_through(what, desc, Wgmma.matrix_descriptor(smem_ptr, ldo, sdo, swizzle))

    @staticmethod
    def advance(desc: Any, nbytes: Any) -> Any:
        """The descriptor of the tile `nbytes` further on: only its low 32 bits change, so that the rest can stay in a
        uniform register."""
        if isinstance(nbytes, int) and nbytes % 16:
            raise ValueError(f"T.cuda.wgmma.advance: a tile starts at a multiple of 16 bytes, got {nbytes}")
        d = _cast("uint64", desc)
        step = (
            _number("uint32", nbytes >> 4 & 0xFFFFFFFF)
            if isinstance(nbytes, int)
            else _cast("uint32", nbytes) >> _number("uint32", 4)
        )
        high = d >> _number("uint64", 32) << _number("uint64", 32)
        return high | _cast("uint64", _cast("uint32", d) + step)

    @staticmethod
    def place(i: Any, thread: Any = None, *, per: int = 2) -> tuple[Any, Any]:
        """Row and column of element `i` of this thread's part of an accumulator of 64 rows (or of A in registers), as
        numbers or expressions. `thread`: another one of the warpgroup; a lane gives the places of mma.sync. `per`:
        neighbours that a thread holds, 2 for accumulators and A of 16 bits, 4 for A of bytes, 1 for A of tf32."""
        what = "T.cuda.wgmma.place"
        _neighbours(what, per)
        if thread is None:
            thread = _core.op(state.context(what), "THREAD_IN_WG")
        _place_number(what, "i", i, 256)
        _place_number(what, "thread", thread, 128)
        row = thread // 32 * 16 + thread % 32 // 4 + i // per % 2 * 8
        return row, thread % 4 * per + (i // (2 * per) * (4 * per) + i % per)

    @staticmethod
    def holder(row: Any, column: Any, *, per: int = 2) -> tuple[Any, Any]:
        """The thread of the warpgroup that holds the element at this row and column, and which of its elements it is:
        place(i, thread) turned round."""
        what = "T.cuda.wgmma.holder"
        _neighbours(what, per)
        _place_number(what, "row", row, 64)
        _place_number(what, "column", column, 1024)
        thread = row // 16 * 32 + row % 8 * 4 + column // per % 4
        return thread, column // (4 * per) * (2 * per) + row // 8 % 2 * per + column % per

    @staticmethod
    def fence_operand(*registers: Any) -> Receipt:
        """Keeps what computes these registers before this place, and what uses them behind it: fence_operand(*acc)
        stands before the first T.ptx.wgmma.mma_async and behind the wait for the last."""
        ctx = state.context("T.cuda.wgmma.fence_operand")
        places = []
        for r in registers:
            if isinstance(r, _core.Buffer):
                r = r[(0,) * len(r.shape)]
            if isinstance(r, _core.Expr) and r.op == "ADDRESS_OF":
                r = r.args[0]
            if not isinstance(r, _core.Expr) or r.op != "LOAD" or r.buffer.scope() != "local":
                raise TypeError("T.cuda.wgmma.fence_operand takes registers: elements of local buffers, or *acc")
            if r.dtype not in ("float32", "uint32", "int32"):
                raise TypeError(f"T.cuda.wgmma.fence_operand takes 32-bit registers, got {r.dtype}")
            places.append(_core.address_of(ctx, r))
        return emit(_core.make(ctx, "FENCE_OPERAND", "void", tuple(places))) if places else RECEIPT

    @staticmethod
    def noop_barrier(register: Any) -> Receipt:
        """fence_operand of one register."""
        return Wgmma.fence_operand(register)


wgmma = Wgmma()


# ---- tiles of 16 x 16 in the registers of a warp --------------------------------------------------------------------


def _element(what: str, ptr: Any, offset: Any) -> tuple[Any, Any]:
    """The buffer behind a pointer and the index that `offset` elements on has."""
    if isinstance(ptr, _core.Buffer):
        where, at = ptr, (0,) * len(ptr.shape)
    else:
        if isinstance(ptr, _core.Expr) and ptr.op == "BUFFER_DATA":
            where, at = ptr.buffer, (0,) * len(ptr.buffer.shape)
        elif isinstance(ptr, _core.Expr) and ptr.op == "ADDRESS_OF":
            where, at = ptr.args[0].buffer, tuple(ptr.args[0].args)
        else:
            raise TypeError(f"{what} needs a pointer into a buffer: A.ptr_to([i]) or A.data")
    return where, (*at[:-1], at[-1] + offset)


def mma_fill(dtype: Any, local_size: int, ptr: Any, offset: Any = 0) -> Receipt:
    """Zeros into `local_size` registers."""
    for i in range(local_size):
        where, at = _element("T.cuda.mma_fill", ptr, offset + i)
        state.builder("T.cuda.mma_fill").store(where, list(at), _number(str(dtype), 0))
    return RECEIPT


def mma_store(dtype: Any, m: int, n: int, dst: Any, src: Any, src_offset: Any, dst_stride: Any) -> Receipt:
    """The 16 x 16 sums of a warp, eight a lane, into rows that are `dst_stride` elements apart."""
    what = "T.cuda.mma_store"
    if (m, n) != (16, 16):
        raise ValueError(f"{what} stores tiles of 16 x 16, got {m} x {n}")
    ctx = state.context(what)
    lane = _core.op(ctx, "LANE_ID")
    for e in range(8):
        row = lane // 4 + 8 * (e >> 1 & 1)
        column = lane % 4 * 2 + (8 * (e >> 2) + (e & 1))
        where, at = _element(what, dst, column)
        if len(at) > 1 and isinstance(dst_stride, int) and where.shape[-1] == dst_stride:
            at = (*at[:-2], at[-2] + row, at[-1])
        else:
            at = (*at[:-1], at[-1] + row * dst_stride)
        source, index = _element(what, src, src_offset + e)
        state.builder(what).store(where, list(at), source[tuple(index)])
    return RECEIPT


mma_fill_legacy, mma_store_legacy = mma_fill, mma_store
