# SPDX-License-Identifier: Apache-2.0
"""T.cuda.tcgen05: descriptors for the matrix instructions of Blackwell.

A matrix descriptor (64 bits) says where a tile lies in shared memory; an instruction descriptor (32 bits) says which
dtypes, shape and variants an instruction has. Both are plain integer expressions, the second a constant, so every back
end has them.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script.cuda_matrix import _ADDRESS_BITS, Wgmma, _cast, _number, _offset, shared_address, store_through
from tirx.script.ops import Receipt

# ---- matrix descriptors --------------------------------------------------------------------------------------------

# swizzle as T.cuda counts it -> bits 61-63: none, 32 B, 64 B, 128 B, 128 B with atoms of 32 B
_LAYOUTS = (0, 6, 4, 2, 1)


def matrix_descriptor(smem_ptr: Any, ldo: Any, sdo: Any, swizzle: int) -> Any:
    """The uint64 that says where a tile lies. ldo and sdo in units of 16 bytes; swizzle 0..3: none, 32 to 128 bytes, 4:
    128 bytes with atoms of 32."""
    what = "T.cuda.tcgen05.matrix_descriptor"
    if not isinstance(swizzle, int) or isinstance(swizzle, bool) or not 0 <= swizzle <= 4:
        raise ValueError(
            f"{what}: swizzle must be 0, 1, 2, 3 or 4 (none, 32, 64, 128 bytes, 128 with 32-byte atoms), "
            f"got {swizzle!r}"
        )
    address = shared_address(smem_ptr) & _number("uint32", _ADDRESS_BITS)
    low = _cast("uint64", address >> _number("uint32", 4))
    fields = _offset(what, "ldo", ldo) << _number("uint64", 16) | _offset(what, "sdo", sdo) << _number("uint64", 32)
    return low | (fields | _number("uint64", 1 << 46 | _LAYOUTS[swizzle] << 61))


# ---- instruction descriptors ---------------------------------------------------------------------------------------

_FP8 = {
    "float8_e4m3fn": 0,
    "float8_e5m2": 1,
    "float6_e2m3fn": 3,
    "float6_e3m2fn": 4,
    "float4_e2m1fn": 5,
}
_FORMATS = {
    "f16": {"float16": 0, "bfloat16": 1},
    "tf32": {"tensor_float32": 2, "float32": 2},
    "i8": {"uint8": 0, "int8": 1},
    "f8f6f4": _FP8,
    "mxf8f6f4": _FP8,
    "mxf4": {"float4_e2m1fn": 1},
    "mxf4nvf4": {"float4_e2m1fn": 1},
}
_RESULTS = {"float16": 0, "float32": 1, "int32": 2}
_SCALES = {"float8_e4m3fn": 0, "float8_e8m0fnu": 1}
_DENSE_K = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}


def _name(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype in ("tf32", "tensor_float32"):
        return "tensor_float32"
    return _core.parse_dtype(dtype)


def kind_of(d: str, a: str, b: str, sfa: str | None = None, sfb: str | None = None) -> str:
    """The kind of instruction that multiplies these dtypes."""
    if sfa is None and sfb is None:
        f16 = ("float16", "bfloat16")
        if (d == "float16" and (a, b) == ("float16", "float16")) or (d == "float32" and a in f16 and b in f16):
            return "f16"
        if d == "float32" and a in _FORMATS["tf32"] and b in _FORMATS["tf32"]:
            return "tf32"
        if d == "int32" and a in _FORMATS["i8"] and b in _FORMATS["i8"]:
            return "i8"
        if d in ("float32", "float16") and a in _FP8 and b in _FP8:
            return "f8f6f4"
    elif d == "float32" and sfa == sfb:
        if (a, b) == ("float4_e2m1fn",) * 2 and sfa == "float8_e8m0fnu":
            return "mxf4"
        if (a, b) == ("float4_e2m1fn",) * 2 and sfa == "float8_e4m3fn":
            return "mxf4nvf4"
        if a in _FP8 and b in _FP8 and sfa == "float8_e8m0fnu":
            return "mxf8f6f4"
    scales = "" if sfa is None and sfb is None else f", sfa: {sfa}, sfb: {sfb}"
    raise ValueError(f"Invalid multiplicand data types for Tcgen05 MMA, got d: {d}, a: {a}, b: {b}{scales}")


def _right_shape(kind: str, m: int, n: int, ctas: int, sparse: bool) -> bool:
    scaled = kind.startswith("mx")
    if ctas == 2:
        if scaled:
            return m in ((256,) if sparse else (128, 256)) and 16 <= n <= 256 and n % 16 == 0
        return m in (128, 256) and 32 <= n <= 256 and n % 32 == 0
    if scaled:
        return m == 128 and 8 <= n <= 256 and n % 8 == 0
    if kind == "i8":
        return m in (64, 128) and (n in (8, 24) or (16 <= n <= 256 and n % 16 == 0))
    if m == 64:
        return 8 <= n <= 256 and n % 8 == 0
    return m == 128 and 16 <= n <= 256 and n % 16 == 0


def _check_shape(kind: str, m: int, n: int, k: int, ctas: int, sparse: bool) -> None:
    dense = _DENSE_K[kind]
    depths = [dense * 2] if sparse else [dense, 96] if kind in ("mxf4", "mxf4nvf4") else [dense]
    if ctas not in (1, 2) or not _right_shape(kind, m, n, ctas, sparse) or k not in depths:
        raise ValueError(
            f"Invalid matrix shape for Tcgen05 MMA, check failed for kind: {kind}, M: {m}, N: {n}, K: {k}, "
            f"n_cta_groups: {ctas}, is_sparse: {sparse}; K must be {' or '.join(map(str, depths))}"
        )


def _check_variants(kind: str, a: str, b: str, trans_a: bool, trans_b: bool, negates: bool, saturates: bool) -> None:
    for name, dtype, transposed in (("a", a, trans_a), ("b", b, trans_b)):
        narrow = dtype.startswith(("float6", "float4"))
        if transposed and (narrow or (kind.startswith("mx") and not dtype.startswith("float8"))):
            raise ValueError(f"trans_{name} is not allowed for {dtype} in Tcgen05 MMA of kind {kind}")
    if negates and kind == "i8":
        raise ValueError("neg_a and neg_b are not allowed in Tcgen05 MMA of kind i8")
    if saturates and kind != "i8":
        raise ValueError(f"sat_d is only allowed in Tcgen05 MMA of kind i8, not {kind}")


def _shared_bits(
    formats: dict[str, int],
    a: str,
    b: str,
    M: int,
    N: int,
    is_sparse: bool,
    neg_a: bool,
    neg_b: bool,
    trans_a: bool,
    trans_b: bool,
) -> int:
    """What the descriptors of all kinds have at the same bits."""
    found = formats[a] << 7 | formats[b] << 10 | N >> 3 << 17 | M >> 4 << 24
    for bit, flag in ((2, is_sparse), (13, neg_a), (14, neg_b), (15, trans_a), (16, trans_b)):
        found |= bool(flag) << bit
    return found


def instr_descriptor(
    *,
    d_dtype: Any,
    a_dtype: Any,
    b_dtype: Any,
    M: int,
    N: int,
    K: int,
    trans_a: bool = False,
    trans_b: bool = False,
    n_cta_groups: int = 1,
    neg_a: bool = False,
    neg_b: bool = False,
    sat_d: bool = False,
    is_sparse: bool = False,
) -> int:
    """The instruction descriptor of the kinds f16, tf32, f8f6f4 and i8, which the dtypes choose. M counts the rows of
    both CTAs of a pair."""
    d, a, b = map(_name, (d_dtype, a_dtype, b_dtype))
    kind = kind_of(d, a, b)
    _check_shape(kind, M, N, K, n_cta_groups, bool(is_sparse))
    _check_variants(kind, a, b, bool(trans_a), bool(trans_b), bool(neg_a or neg_b), bool(sat_d))
    flags = is_sparse, neg_a, neg_b, trans_a, trans_b
    return _shared_bits(_FORMATS[kind], a, b, M, N, *flags) | bool(sat_d) << 3 | _RESULTS[d] << 4


def instr_descriptor_block_scaled(
    *,
    d_dtype: Any,
    a_dtype: Any,
    b_dtype: Any,
    sfa_dtype: Any,
    sfb_dtype: Any,
    M: int,
    N: int,
    K: int,
    trans_a: bool = False,
    trans_b: bool = False,
    n_cta_groups: int = 1,
    neg_a: bool = False,
    neg_b: bool = False,
    is_sparse: bool = False,
) -> int:
    """The instruction descriptor of the kinds mxf8f6f4, mxf4 and mxf4nvf4, with scale-factor ids of 0:
    runtime_instr_desc sets them."""
    d, a, b, sfa, sfb = map(_name, (d_dtype, a_dtype, b_dtype, sfa_dtype, sfb_dtype))
    kind = kind_of(d, a, b, sfa, sfb)
    _check_shape(kind, M, N, K, n_cta_groups, bool(is_sparse))
    _check_variants(kind, a, b, bool(trans_a), bool(trans_b), False, False)
    flags = is_sparse, neg_a, neg_b, trans_a, trans_b
    return _shared_bits(_FORMATS[kind], a, b, M, N, *flags) | _SCALES[sfa] << 23 | (K == 96) << 31


class TCGen05InstrDescriptorAttrs:
    """The fields of instr_descriptor as one object: attrs= of the encoders."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


class TCGen05BlockScaledInstrDescriptorAttrs(TCGen05InstrDescriptorAttrs):
    """The fields of instr_descriptor_block_scaled as one object."""


def _fields(what: str, attrs: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments, or those that one object holds."""
    for name, value in given.items():
        if isinstance(value, _core.Expr) and not name.endswith("_tmem_addr"):
            raise TypeError(f"{what}: {name} must be known while the kernel is built, got a run-time value")
    if attrs is None:
        return given
    if given:
        raise TypeError(f"{what} takes attrs= or single fields, not both")
    return vars(attrs).copy()


class Tcgen05:
    """T.cuda.tcgen05."""

    __slots__ = ()

    matrix_descriptor = staticmethod(matrix_descriptor)
    instr_descriptor = staticmethod(instr_descriptor)
    instr_descriptor_block_scaled = staticmethod(instr_descriptor_block_scaled)
    advance = staticmethod(Wgmma.advance)

    def __repr__(self) -> str:
        return "T.cuda.tcgen05"

    @staticmethod
    def encode_matrix_descriptor(desc: Any, smem_ptr: Any, ldo: Any, sdo: Any, swizzle: int) -> Receipt:
        """matrix_descriptor, stored where `desc` points to."""
        what = "T.cuda.tcgen05.encode_matrix_descriptor"
        return store_through(what, desc, matrix_descriptor(smem_ptr, ldo, sdo, swizzle))

    @staticmethod
    def encode_instr_descriptor(desc: Any, *, attrs: Any = None, **fields: Any) -> Receipt:
        """instr_descriptor, stored where `desc` points to."""
        what = "T.cuda.tcgen05.encode_instr_descriptor"
        value = instr_descriptor(**_fields(what, attrs, fields))
        return store_through(what, desc, _number("uint32", value))

    @staticmethod
    def encode_instr_descriptor_block_scaled(desc: Any, *, attrs: Any = None, **fields: Any) -> Receipt:
        """instr_descriptor_block_scaled, stored where `desc` points to; sfa_tmem_addr and sfb_tmem_addr are ignored."""
        what = "T.cuda.tcgen05.encode_instr_descriptor_block_scaled"
        fields.pop("sfa_tmem_addr", None)
        fields.pop("sfb_tmem_addr", None)
        value = instr_descriptor_block_scaled(**_fields(what, attrs, fields))
        return store_through(what, desc, _number("uint32", value))


tcgen05 = Tcgen05()


def runtime_instr_desc(desc: Any, sf_id: Any) -> Receipt:
    """Sets both scale-factor ids of a block-scaled instruction descriptor: which byte of their cells holds them."""
    what = "T.cuda.runtime_instr_desc"
    if isinstance(sf_id, int) and not 0 <= sf_id <= 3:
        raise ValueError(f"{what}: a scale-factor id is in 0..3, got {sf_id}")
    place = desc
    if isinstance(place, _core.Expr) and place.op == "ADDRESS_OF":
        place = place.args[0]
    if isinstance(place, _core.Expr) and place.op == "BUFFER_DATA":
        place = place.buffer
    if isinstance(place, _core.Buffer):
        place = place[(0,) * len(place.shape)]
    if not isinstance(place, _core.Expr) or place.op != "LOAD":
        raise TypeError(f"{what} changes a variable: pass T.address_of(x), where x: T.uint32")
    number = _cast("uint32", sf_id)
    ids = number << _number("uint32", 29) | number << _number("uint32", 4)
    return store_through(what, desc, place & _number("uint32", 0xFFFFFFFF & ~0x60000030) | ids)


tcgen05_encode_matrix_descriptor = Tcgen05.encode_matrix_descriptor
tcgen05_encode_instr_descriptor = Tcgen05.encode_instr_descriptor
tcgen05_encode_instr_descriptor_block_scaled = Tcgen05.encode_instr_descriptor_block_scaled
