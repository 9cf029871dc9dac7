# SPDX-License-Identifier: Apache-2.0
"""T.cuda: packed values, conversions, addresses and copies, written over T.ptx and plain expressions: every back end
has them. What needs an instruction puts its result into a scalar of the thread."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state
from tirx.script.buffers import local_scalar
from tirx.script.ops import RECEIPT, Receipt
from tirx.script.ptx import ptx


def _cast(dtype: str, x: Any) -> Any:
    return _core.cast(state.context("T.cuda"), dtype, x)


def _bits(dtype: str, x: Any) -> Any:
    return _core.reinterpret(state.context("T.cuda"), dtype, x)


def _number(dtype: str, x: int) -> Any:
    return _core.literal(state.context("T.cuda"), dtype, x)


def _u32(x: Any) -> Any:
    return _cast("uint32", x)


def _f32_bits(x: Any) -> Any:
    return _bits("uint32", _cast("float32", x))


def _result(dtype: str, instruction: str, *operands: Any) -> Any:
    """The value that an instruction writes into its first operand."""
    d = local_scalar(dtype)
    ptx[instruction](d, *operands)
    return d[0]


# ---- pairs of float32 in 64 bits: x in the low half ----------------------------------------------------------------


def make_float2(x: Any, y: Any) -> Any:
    """Two float32 in a uint64."""
    return _cast("uint64", _f32_bits(x)) | _cast("uint64", _f32_bits(y)) << _number("uint64", 32)


def float2_x(pair: Any) -> Any:
    """The first float32 of a pair."""
    return _bits("float32", _u32(pair))


def float2_y(pair: Any) -> Any:
    """The second float32 of a pair."""
    return _bits("float32", _u32(_cast("uint64", pair) >> _number("uint64", 32)))


def fadd2_rn(a: Any, b: Any) -> Any:
    """Sums of two pairs, sm_100."""
    return _result("uint64", "add.rn.f32x2", a, b)


def fmul2_rn(a: Any, b: Any) -> Any:
    """Products of two pairs, sm_100."""
    return _result("uint64", "mul.rn.f32x2", a, b)


# ---- conversions ---------------------------------------------------------------------------------------------------


def float22bfloat162_rn(x: Any, y: Any) -> Any:
    """Two bfloat16 in a uint32: x in the low half."""
    return _result("uint32", "cvt.rn.bf16x2.f32", _cast("float32", y), _cast("float32", x))


def float22bfloat162_rn_from_float2(pair: Any) -> Any:
    """Two float32 in a uint64 as bfloat16x2, to nearest even."""
    return float22bfloat162_rn(float2_x(pair), float2_y(pair))


def bfloat1622float2(pair: Any) -> Any:
    """Two bfloat16 as a pair of float32."""
    p = _u32(pair)
    low = _cast("uint64", p << _number("uint32", 16))
    return low | _cast("uint64", p & _number("uint32", 0xFFFF0000)) << _number("uint64", 32)


def hmin2(a: Any, b: Any) -> Any:
    """The smaller of each of two bfloat16 values in a uint32."""
    return _result("uint32", "min.bf16x2", a, b)


def hmax2(a: Any, b: Any) -> Any:
    """The larger of each of two bfloat16 values in a uint32."""
    return _result("uint32", "max.bf16x2", a, b)


def fp8x4_e4m3_from_float4(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Four float8_e4m3fn in a uint32: x in the lowest byte."""
    x, y, z, w = (_cast("float32", v) for v in (x, y, z, w))
    low = _result("uint16", "cvt.rn.satfinite.e4m3x2.f32", y, x)
    high = _result("uint16", "cvt.rn.satfinite.e4m3x2.f32", w, z)
    return _u32(low) | _u32(high) << _number("uint32", 16)


def _halves_to_floats(dst: Any, src: Any, pairs: int) -> Receipt:
    for i in range(pairs):
        pair, low, high = local_scalar("uint32"), local_scalar("uint16"), local_scalar("uint16")
        x, y = local_scalar("float32"), local_scalar("float32")
        ptx["ld.b32"](pair, ptx.addr(src, 4 * i))
        ptx["mov.b32"](low, high, pair[0])
        ptx["cvt.f32.f16"](x, low[0])
        ptx["cvt.f32.f16"](y, high[0])
        ptx["st.v2.f32"](ptx.addr(dst, 8 * i), x[0], y[0])
    return RECEIPT


def _floats_to_halves(dst: Any, src: Any, pairs: int) -> Receipt:
    for i in range(pairs):
        x, y, pair = local_scalar("float32"), local_scalar("float32"), local_scalar("uint32")
        ptx["ld.v2.f32"](x, y, ptx.addr(src, 8 * i))
        ptx["cvt.rn.f16x2.f32"](pair, y[0], x[0])
        ptx["st.b32"](ptx.addr(dst, 4 * i), pair[0])
    return RECEIPT


def float22half2(dst: Any, src: Any) -> Receipt:
    """Two float32 behind `src` to two float16 behind `dst`."""
    return _floats_to_halves(dst, src, 1)


def half8tofloat8(src: Any, dst: Any) -> Receipt:
    """Eight float16 behind `src` to float32 behind `dst`."""
    return _halves_to_floats(dst, src, 4)


def float8tohalf8(src: Any, dst: Any) -> Receipt:
    """Eight float32 behind `src` to float16 behind `dst`."""
    return _floats_to_halves(dst, src, 4)


# ---- addresses -----------------------------------------------------------------------------------------------------


def smem_addr_from_uint64(address: Any) -> Any:
    """The 32-bit shared address of what T.ptx.mapa wrote."""
    return _u32(address)


def sm100_2sm_leader_smem_addr(ptr: Any) -> Any:
    """The same offset in the even CTA of a pair."""
    where = _core.op(state.context("T.cuda.sm100_2sm_leader_smem_addr"), "CVTA_SHARED", ptr)
    return where & _number("uint32", 0xFEFFFFFF)


sm100_tma_2sm_mbarrier_addr = sm100_2sm_leader_smem_addr


def get_tmem_addr(address: Any, row: Any, col: Any) -> Any:
    """A tensor memory address moved by lanes and columns; the two fields do not carry into each other."""
    a, low = _u32(address), _number("uint32", 0xFFFF)
    lanes = ((a >> _number("uint32", 16)) + _u32(row)) & low
    return lanes << _number("uint32", 16) | ((a & low) + _u32(col)) & low


# ---- copies --------------------------------------------------------------------------------------------------------

_COPIES = {16: ("v4.b32", "uint32", 4), 8: ("b64", "uint64", 1), 4: ("b32", "uint32", 1), 2: ("b16", "uint16", 1)}
_COPIES[1] = ("b8", "uint8", 1)


def copy_bytes(dst: Any, src: Any, num_bytes: int) -> Receipt:
    """One load and one store of 1, 2, 4, 8 or 16 bytes."""
    if num_bytes not in _COPIES:
        raise ValueError(f"T.cuda.copy_bytes copies 1, 2, 4, 8 or 16 bytes, got {num_bytes!r}")
    form, dtype, n = _COPIES[num_bytes]
    values = [local_scalar(dtype) for _ in range(n)]
    ptx[f"ld.{form}"](*values, src)
    ptx[f"st.{form}"](dst, *(v[0] for v in values))
    return RECEIPT


def copy_128b(dst: Any, src: Any) -> Receipt:
    """Copy 16 bytes from one address to another."""
    return copy_bytes(dst, src, 16)


def copy_64b(dst: Any, src: Any) -> Receipt:
    """Copy 8 bytes."""
    return copy_bytes(dst, src, 8)


def copy_32b(dst: Any, src: Any) -> Receipt:
    """Copy 4 bytes."""
    return copy_bytes(dst, src, 4)


def copy_16b(dst: Any, src: Any) -> Receipt:
    """Copy 2 bytes."""
    return copy_bytes(dst, src, 2)


def copy_8b(dst: Any, src: Any) -> Receipt:
    """Copy one byte."""
    return copy_bytes(dst, src, 1)


def ldg_vector(addr: Any, dtype: Any, dst: Any, vec: str) -> Receipt:
    """Loads 2 or 4 elements through the read-only cache into `dst`."""
    if vec not in ("v2", "v4"):
        raise ValueError(f"T.cuda.ldg: vec must be 'v2' or 'v4', got {vec!r}")
    if dst is None:
        raise ValueError("vector cuda.ldg requires dst")
    if len(dst) != int(vec[1]):
        raise ValueError(f"T.cuda.ldg: dst needs {vec[1]} elements for {vec}, got {len(dst)}")
    bits = "".join(c for c in str(dtype) if c.isdigit())
    ptx[f"ld.global.nc.{vec}.b{bits}"](*dst, addr)
    return RECEIPT


# ---- profiler marks ------------------------------------------------------------------------------------------------


class Iket:
    """Marks of a profiler that tirx does not have: they do nothing, and a token is 0."""

    __slots__ = ()

    @staticmethod
    def _nothing(name: str = "", *args: Any, **options: Any) -> Receipt:
        return RECEIPT

    mark = range_end = range_push = range_pop = official_event = _nothing

    @staticmethod
    def range_start(name: str = "", *args: Any, **options: Any) -> int:
        return 0

    @staticmethod
    def sentinel_token(*args: Any, **options: Any) -> int:
        return 0


iket = Iket()
