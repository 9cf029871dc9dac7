# SPDX-License-Identifier: Apache-2.0
"""The rest of the function style: scalar memory, bulk copies, matrix instructions of every generation, cluster launch
control. A register is named by a pointer to it, or by itself; values come back in a scalar of the thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import cuda, state
from tirx.script.buffers import local_scalar
from tirx.script.ops import Receipt
from tirx.script.ptx import ptx

_TYPES = {
    "float16": "f16",
    "fp16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "fp32": "f32",
    "float64": "f64",
    "fp64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float6_e2m3fn": "e2m3",
    "float6_e3m2fn": "e3m2",
    "float4_e2m1fn": "e2m1",
}


def _cast(dtype: str, x: Any) -> Any:
    return _core.cast(state.context("T.ptx"), dtype, x)


def _u32(x: Any) -> Any:
    return _cast("uint32", x)


def policy(what: str, cache_hint: str, cache_policy: Any) -> tuple:
    """The operand of a cache policy: the one given, or the constant of a name; nothing without either."""
    if cache_policy is not None:
        return (cache_policy,)
    if not cache_hint:
        return ()
    if cache_hint not in cuda.POLICIES:
        raise ValueError(f"T.ptx.{what}: cache_hint must be one of {', '.join(cuda.POLICIES)}, got {cache_hint!r}")
    return (_core.literal(state.context("T.ptx"), "uint64", cuda.POLICIES[cache_hint]),)


def _register(x: Any) -> Any:
    """The place that a pointer leads to."""
    if isinstance(x, _core.Expr) and x.op == "ADDRESS_OF":
        return x.args[0]
    if isinstance(x, _core.Expr) and x.op == "BUFFER_DATA":
        x = x.buffer
    if isinstance(x, _core.Buffer):
        return x[(0,) * len(x.shape)]
    return x


def _registers(x: Any) -> tuple:
    return tuple(map(_register, x if isinstance(x, (list, tuple)) else (x,)))


def _type(dtype: Any) -> str:
    name = str(dtype)
    return _TYPES.get(name, name)


def _multicast(mask: Any) -> bool:
    return not (isinstance(mask, int) and mask & (mask - 1) == 0)


def _map(tensormap: Any) -> Any:
    if isinstance(tensormap, _core.Expr) and tensormap.op == "VAR" and tensormap.elem == "tensormap":
        return _core.address_of(state.context("T.ptx"), tensormap)
    return tensormap


def _dotted(*parts: str) -> str:
    return ".".join(p for p in parts if p)


# ---- mbarriers ------------------------------------------------------------------------------------------------------


def try_wait_once(bar: Any, phase: Any, ticks: Any = None) -> Any:
    done = local_scalar("uint32")
    hint = () if ticks is None else (_u32(ticks),)
    ptx["mbarrier.try_wait.parity.shared.b64"](done, bar, _u32(phase), *hint)
    return done[0]


def test_wait_parity(bar: Any, phase: Any, sem: str = "", scope: str = "", space: str = "shared") -> Any:
    done = local_scalar("uint32")
    ptx[_dotted("mbarrier.test_wait.parity", sem, scope, space, "b64")](done, bar, _u32(phase))
    return done[0]


def fetch_register(bits: int, name: str) -> Any:
    return cuda.mov_sreg(bits, name)


# ---- bulk copies ----------------------------------------------------------------------------------------------------

_BYTES = "mbarrier::complete_tx::bytes"


def _load(
    form: str,
    dim: int,
    dst: Any,
    bar: Any,
    tensormap: Any,
    cta_mask: Any,
    cta_group: int,
    hint: str,
    coords: Any,
    given: Any,
) -> Receipt:
    pol = policy("cp_async.bulk.tensor.g2c", hint, given)
    many = _multicast(cta_mask)
    name = _dotted(
        f"cp.async.bulk.tensor.{dim}d.shared::cluster.global",
        form,
        _BYTES,
        "multicast::cluster" if many else "",
        "cta_group::2" if cta_group == 2 else "",
        "L2::cache_hint" if pol else "",
    )
    mask = (_cast("uint16", cta_mask),) if many else ()
    return ptx[name](dst, _map(tensormap), *coords, bar, *mask, *pol)


def tensor_g2c(
    dim: int,
    dst: Any,
    bar: Any,
    tensormap: Any,
    cta_mask: Any,
    cta_group: int,
    cache_hint: str,
    *coords: Any,
    cache_policy: Any = None,
) -> Receipt:
    return _load("", dim, dst, bar, tensormap, cta_mask, cta_group, cache_hint, coords, cache_policy)


def tensor_g2c_gather4(
    dim: int,
    dst: Any,
    bar: Any,
    tensormap: Any,
    cta_mask: Any,
    cta_group: int,
    cache_hint: str,
    *coords: Any,
    cache_policy: Any = None,
) -> Receipt:
    return _load("tile::gather4", dim, dst, bar, tensormap, cta_mask, cta_group, cache_hint, coords, cache_policy)


def tensor_s2g(dim: int, src: Any, tensormap: Any, cache_hint: str, *coords: Any, cache_policy: Any = None) -> Receipt:
    pol = policy("cp_async.bulk.tensor.s2g", cache_hint, cache_policy)
    name = f"cp.async.bulk.tensor.{dim}d.global.shared::cta.tile.bulk_group" + (".L2::cache_hint" if pol else "")
    return ptx[name](_map(tensormap), *coords, src, *pol)


def tensor_s2g_reduce(
    dim: int, src: Any, tensormap: Any, cache_hint: str, red_op: str, *coords: Any, cache_policy: Any = None
) -> Receipt:
    pol = policy("cp_async.bulk.tensor.s2g_reduce", cache_hint, cache_policy)
    name = f"cp.reduce.async.bulk.tensor.{dim}d.global.shared::cta.{red_op}.tile.bulk_group"
    return ptx[name + (".L2::cache_hint" if pol else "")](_map(tensormap), *coords, src, *pol)


def tensor_prefetch(dim: int, tensormap: Any, cache_hint: str, *coords: Any, cache_policy: Any = None) -> Receipt:
    pol = policy("cp_async.bulk.tensor.g2c_prefetch", cache_hint, cache_policy)
    name = f"cp.async.bulk.prefetch.tensor.{dim}d.L2.global.tile" + (".L2::cache_hint" if pol else "")
    return ptx[name](_map(tensormap), *coords, *pol)


def bulk_s2s_cluster(dst: Any, src: Any, size: Any, bar: Any) -> Receipt:
    return ptx[f"cp.async.bulk.shared::cluster.shared::cta.{_BYTES}"](dst, src, _u32(size), bar)


def bulk_g2s_cta(dst: Any, src: Any, size: Any, bar: Any, cache_hint: str = "", cache_policy: Any = None) -> Receipt:
    pol = policy("cp_async_bulk_g2s_cta", cache_hint, cache_policy)
    name = f"cp.async.bulk.shared::cta.global.{_BYTES}" + (".L2::cache_hint" if pol else "")
    return ptx[name](dst, src, _u32(size), bar, *pol)


def bulk_g2s_cluster(
    dst: Any, src: Any, size: Any, bar: Any, cta_mask: Any = 0, cache_hint: str = "", cache_policy: Any = None
) -> Receipt:
    pol = policy("cp_async_bulk_g2s_cluster", cache_hint, cache_policy)
    many = _multicast(cta_mask)
    name = _dotted(
        f"cp.async.bulk.shared::cluster.global.{_BYTES}",
        "multicast::cluster" if many else "",
        "L2::cache_hint" if pol else "",
    )
    mask = (_cast("uint16", cta_mask),) if many else ()
    return ptx[name](dst, src, _u32(size), bar, *mask, *pol)


def bulk_s2g(dst: Any, src: Any, size: Any, cache_hint: str = "", cache_policy: Any = None) -> Receipt:
    pol = policy("cp_async_bulk_s2g", cache_hint, cache_policy)
    name = "cp.async.bulk.global.shared::cta.bulk_group" + (".L2::cache_hint" if pol else "")
    return ptx[name](dst, src, _u32(size), *pol)


# ---- matrix instructions of warps -----------------------------------------------------------------------------------


def mma(
    shape: str,
    a_layout: str,
    b_layout: str,
    d_type: Any,
    a_type: Any,
    b_type: Any,
    c_type: Any,
    d_ptrs: Any,
    a_ptrs: Any,
    b_ptrs: Any,
    c_ptrs: Any = None,
    saturate: bool = False,
    bit_op: Any = None,
) -> Receipt:
    if bit_op is not None:
        raise ValueError("T.ptx.mma: single-bit products are not supported by tirx")
    d, a, b = _registers(d_ptrs), _registers(a_ptrs), _registers(b_ptrs)
    if c_ptrs is None:
        c = tuple(_core.literal(state.context("T.ptx.mma"), r.dtype, 0) for r in d)
    else:
        c = _registers(c_ptrs)
    types = map(_type, (d_type, a_type, b_type, c_type))
    name = _dotted("mma.sync.aligned", shape, a_layout, b_layout, "satfinite" if saturate else "", *types)
    return ptx[name](*d, *a, *b, *c)


def ldmatrix(trans: bool, num: int, dtype: str, smem: Any, *dst_ptrs: Any) -> Receipt:
    name = _dotted(f"ldmatrix.sync.aligned.m8n8.x{num}", "trans" if trans else "", "shared", dtype.lstrip("."))
    return ptx[name](*_registers(dst_ptrs), smem)


def stmatrix(
    trans: bool, num: int, dtype: str, smem: Any, *src_ptrs: Any, shape: str = "m8n8", space: str = "shared"
) -> Receipt:
    name = _dotted(f"stmatrix.sync.aligned.{shape}.x{num}", "trans" if trans else "", space, dtype.lstrip("."))
    return ptx[name](smem, *_registers(src_ptrs))


# ---- wgmma ----------------------------------------------------------------------------------------------------------


def _sign(name: str, scale: Any) -> int:
    if scale not in (True, False, 1, -1):
        raise ValueError(f"T.ptx.wgmma.mma_async: {name} must be 1 or -1, got {scale!r}")
    return 1 if scale in (True, 1) else -1


def _wgmma(
    count: int,
    M: int,
    N: int,
    K: int,
    in_dtype: Any,
    out_dtype: Any,
    scales: tuple,
    trans: tuple,
) -> tuple[str, tuple]:
    if str(out_dtype) not in ("float32", "f32"):
        raise ValueError(f"T.ptx.wgmma.mma_async: out_dtype must be float32, got {out_dtype}")
    if count != M * N // 128:
        raise ValueError(f"T.ptx.wgmma.mma_async: m{M}n{N} has {M * N // 128} accumulators, got {count}")
    t = _type(in_dtype)
    signs = (_sign("scaleA", scales[0]), _sign("scaleB", scales[1]))
    wide = t in ("f16", "bf16")
    if not wide and any(trans):
        raise ValueError(f"T.ptx.wgmma.mma_async: {t} tiles cannot be transposed")
    t = "tf32" if t == "f32" else t
    return f"wgmma.mma_async.sync.aligned.m{M}n{N}k{K}.f32.{t}.{t}", (*signs, *(map(int, trans) if wide else ()))


def wgmma_ss(
    descA: Any,
    descB: Any,
    *acc: Any,
    M: int,
    N: int,
    K: int,
    in_dtype: Any,
    out_dtype: Any,
    transA: bool,
    transB: bool,
    scaleA: Any,
    scaleB: Any,
    scaleD: Any,
) -> Receipt:
    name, rest = _wgmma(len(acc), M, N, K, in_dtype, out_dtype, (scaleA, scaleB), (transA, transB))
    return ptx[name](*_registers(acc), descA, descB, ptx.pred(scaleD), *rest)


def wgmma_rs(
    descB: Any,
    *registers: Any,
    M: int,
    N: int,
    K: int,
    in_dtype: Any,
    out_dtype: Any,
    transA: bool = False,
    transB: bool,
    scaleA: Any,
    scaleB: Any,
    scaleD: Any,
) -> Receipt:
    if transA:
        raise ValueError("T.ptx.wgmma.mma_async.rs: A comes from registers and cannot be transposed")
    a, acc = _registers(registers[:4]), _registers(registers[4:])
    name, rest = _wgmma(len(acc), M, N, K, in_dtype, out_dtype, (scaleA, scaleB), (transB,))
    return ptx[name](*acc, *a, descB, ptx.pred(scaleD), *rest)


# ---- tcgen05 --------------------------------------------------------------------------------------------------------


def _tmem(address: Any, row: Any, col: Any) -> Any:
    if isinstance(row, int) and isinstance(col, int) and row == col == 0:
        return _u32(address)
    return cuda.get_tmem_addr(address, row, col)


def tcgen05_ld(
    address: Any, *registers: Any, shape: str, num: int, row: Any = 0, col: Any = 0, pack: bool = False
) -> Receipt:
    name = _dotted(f"tcgen05.ld.sync.aligned.{shape}.x{num}", "pack::16b" if pack else "", "b32")
    split = (num * (2 if pack else 1),) if shape == "16x32bx2" else ()
    return ptx[name](*_registers(registers), _tmem(address, row, col), *split)


def tcgen05_st(
    address: Any, *registers: Any, shape: str, num: int, row: Any = 0, col: Any = 0, unpack: bool = False
) -> Receipt:
    name = _dotted(f"tcgen05.st.sync.aligned.{shape}.x{num}", "unpack::16b" if unpack else "", "b32")
    split = (num * (2 if unpack else 1),) if shape == "16x32bx2" else ()
    return ptx[name](_tmem(address, row, col), *split, *_registers(registers))


def tcgen05_cp(
    address: Any,
    desc: Any,
    *,
    shape: str,
    cta_group: int = 1,
    multicast: str = "",
    decompress: str = "",
    row: Any = 0,
    col: Any = 0,
) -> Receipt:
    name = _dotted(f"tcgen05.cp.cta_group::{cta_group}.{shape}", multicast, decompress)
    return ptx[name](_tmem(address, row, col), desc)


_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")


def _kind(a_dtype: Any, b_dtype: Any) -> str:
    a, b = _type(a_dtype), _type(b_dtype)
    if a in ("f16", "bf16") and b in ("f16", "bf16"):
        return "kind::f16"
    if a in ("tf32", "f32") and b in ("tf32", "f32"):
        return "kind::tf32"
    if a in _SMALL and b in _SMALL:
        return "kind::f8f6f4"
    if a in ("s8", "u8") and b in ("s8", "u8"):
        return "kind::i8"
    raise ValueError(f"Invalid multiplicand data types for Tcgen05 MMA: {a_dtype} and {b_dtype}")


def _masks(given: tuple, cta_group: int) -> tuple:
    if given:
        return tuple(map(_u32, given))
    return tuple(_core.literal(state.context("T.ptx.tcgen05.mma"), "uint32", 0) for _ in range(4 * cta_group))


def _plain_mma(what: str, scale_input_d: int) -> None:
    if scale_input_d:
        raise ValueError(f"T.ptx.{what}: scale_input_d is not supported by tirx yet")


def _tmem_operand(use_a_tmem: bool, a: Any) -> Any:
    return _u32(a) if use_a_tmem else _cast("uint64", a)


def tcgen05_mma(
    d: Any,
    a: Any,
    b_desc: Any,
    i_desc: Any,
    *lane_masks: Any,
    d_dtype: Any,
    a_dtype: Any,
    b_dtype: Any,
    use_a_tmem: bool,
    cta_group: int,
    enable_input_d: Any = 1,
    scale_input_d: int = 0,
    pred: Any = None,
) -> Receipt:
    scaled = (scale_input_d,) if scale_input_d else ()
    name = f"tcgen05.mma.cta_group::{cta_group}.{_kind(a_dtype, b_dtype)}"
    masks = _masks(lane_masks, cta_group)
    return ptx[name](
        *(_u32(d), _tmem_operand(use_a_tmem, a), b_desc, _u32(i_desc)),
        *(*masks, ptx.pred(enable_input_d), *scaled),
        pred=pred,
    )


def tcgen05_mma_sp(
    d: Any,
    a: Any,
    b_desc: Any,
    sp_tmem: Any,
    i_desc: Any,
    *lane_masks: Any,
    d_dtype: Any,
    a_dtype: Any,
    b_dtype: Any,
    use_a_tmem: bool,
    cta_group: int,
    enable_input_d: Any = 1,
    scale_input_d: int = 0,
    pred: Any = None,
) -> Receipt:
    _plain_mma("tcgen05.mma.sp", scale_input_d)
    name = f"tcgen05.mma.sp.cta_group::{cta_group}.{_kind(a_dtype, b_dtype)}"
    masks = _masks(lane_masks, cta_group)
    return ptx[name](
        *(_u32(d), _tmem_operand(use_a_tmem, a), b_desc, _u32(sp_tmem), _u32(i_desc)),
        *(*masks, ptx.pred(enable_input_d)),
        pred=pred,
    )


def _scaled_kind(a_dtype: Any, b_dtype: Any, sfa_dtype: Any) -> tuple[str, str]:
    a, b, scale = _type(a_dtype), _type(b_dtype), str(sfa_dtype)
    if a == b == "e2m1" and "e8m0" in scale:
        return "kind::mxf4", "2X"
    if a == b == "e2m1" and "e4m3" in scale:
        return "kind::mxf4nvf4", "4X"
    if a in _SMALL and b in _SMALL and "e8m0" in scale:
        return "kind::mxf8f6f4", "1X"
    raise ValueError(f"Invalid multiplicand data types for Tcgen05 MMA: {a_dtype}, {b_dtype} with scales {sfa_dtype}")


def tcgen05_mma_block_scale(
    d: Any,
    a: Any,
    b_desc: Any,
    sfa: Any,
    sfb: Any,
    i_desc: Any,
    *,
    d_dtype: Any,
    a_dtype: Any,
    b_dtype: Any,
    sfa_dtype: Any,
    sfb_dtype: Any,
    use_a_tmem: bool,
    cta_group: int,
    enable_input_d: Any = 1,
    pred: Any = None,
) -> Receipt:
    kind, scale = _scaled_kind(a_dtype, b_dtype, sfa_dtype)
    name = f"tcgen05.mma.cta_group::{cta_group}.{kind}.block_scale.scale_vec::{scale}"
    return ptx[name](
        *(_u32(d), _tmem_operand(use_a_tmem, a), b_desc, _u32(i_desc), _u32(sfa), _u32(sfb)),
        ptx.pred(enable_input_d),
        pred=pred,
    )


# ---- scalar memory --------------------------------------------------------------------------------------------------


def _loaded(name: str, dtype: Any, address: Any, vec: str, dst: Any, pol: tuple) -> Any:
    if vec:
        if dst is None:
            raise ValueError(f"T.ptx.{name.split('.')[0]}: a vector needs dst")
        return ptx[name](*_registers(dst), address, *pol)
    if dst is not None:
        return ptx[name](_register(dst), address, *pol)
    d = local_scalar(str(dtype))
    ptx[name](d, address, *pol)
    return d[0]


def ld(
    address: Any,
    return_dtype: Any,
    ptx_type: str,
    *,
    scope: str = "",
    space: str = "",
    cop: str = "",
    vec: str = "",
    dst: Any = None,
    nc: bool = False,
    cache_hint: str = "",
    cache_policy: Any = None,
) -> Any:
    pol = policy("ld", cache_hint, cache_policy)
    name = _dotted("ld", scope, space, cop, "nc" if nc else "", "L2::cache_hint" if pol else "", vec, ptx_type)
    return _loaded(name, return_dtype, address, vec, dst, pol)


def _ordered_load(sem: str) -> Callable[..., Any]:
    def call(
        address: Any,
        return_dtype: Any,
        ptx_type: str,
        *,
        scope: str = "gpu",
        space: str = "",
        vec: str = "",
        dst: Any = None,
    ) -> Any:
        return _loaded(_dotted("ld", sem, scope, space, vec, ptx_type), return_dtype, address, vec, dst, ())

    return call


def ld_volatile(
    address: Any, return_dtype: Any, ptx_type: str, *, space: str = "", vec: str = "", dst: Any = None
) -> Any:
    return _loaded(_dotted("ld.volatile", space, vec, ptx_type), return_dtype, address, vec, dst, ())


def ld_mmio(address: Any, return_dtype: Any, ptx_type: str, *, space: str = "") -> Any:
    return _loaded(_dotted("ld.mmio.relaxed.sys", space, ptx_type), return_dtype, address, "", None, ())


def ld_global_acquire(res: Any, address: Any) -> Receipt:
    place = _register(res)
    return ptx[f"ld.acquire.gpu.global.b{_bits(place.dtype)}"](place, address)


def _bits(dtype: str) -> int:
    return int("".join(c for c in dtype if c.isdigit()))


def st(
    address: Any,
    *values: Any,
    ptx_type: str,
    space: str = "",
    cop: str = "",
    vec: str = "",
    cache_hint: str = "",
    cache_policy: Any = None,
) -> Receipt:
    pol = policy("st", cache_hint, cache_policy)
    return ptx[_dotted("st", space, cop, "L2::cache_hint" if pol else "", vec, ptx_type)](address, *values, *pol)


def _ordered_store(sem: str) -> Callable[..., Any]:
    def call(address: Any, *values: Any, ptx_type: str, scope: str = "gpu", space: str = "", vec: str = "") -> Receipt:
        return ptx[_dotted("st", sem, scope, space, vec, ptx_type)](address, *values)

    return call


def st_volatile(address: Any, *values: Any, ptx_type: str, space: str = "", vec: str = "") -> Receipt:
    return ptx[_dotted("st.volatile", space, vec, ptx_type)](address, *values)


def red_scalar(
    address: Any, value: Any, *, sem: str = "", scope: str = "", space: str = "", op: str = "add", ptx_type: str
) -> Receipt:
    return ptx[_dotted("red", sem, scope, space, op, ptx_type)](address, value)


def atom_scalar(
    address: Any, *values: Any, sem: str = "", scope: str = "", space: str = "", op: str = "add", ptx_type: str
) -> Any:
    dtype = {"f": "float", "s": "int"}.get(ptx_type[0], "uint") + ptx_type.lstrip("bfsu")
    d = local_scalar(dtype)
    ptx[_dotted("atom", sem, scope, space, op, ptx_type)](d, address, *values)
    return d[0]


def st_bulk(address: Any, nbytes: Any) -> Receipt:
    return ptx["st.bulk.weak.shared::cta"](address, _cast("uint64", nbytes))


def mapa(address: Any, rank: Any) -> Any:
    narrow = getattr(address, "is_cell", True) and address.dtype == "uint32"
    d = local_scalar("uint32" if narrow else "uint64")
    ptx["mapa.shared::cluster.u32" if narrow else "mapa.u64"](
        d, address.start if isinstance(address, _core.Buffer) and not narrow else address, _u32(rank)
    )
    return d[0]


# ---- values ---------------------------------------------------------------------------------------------------------


def _arithmetic(op: str, kind: str) -> Callable[..., Any]:
    def call(dst: Any, *operands: Any, rounding: str = "rn", ftz: bool = False, sat: bool = False) -> Receipt:
        name = _dotted(op, rounding, "ftz" if ftz else "", "sat" if sat else "", kind)
        return ptx[name](_register(dst), *operands)

    return call


def add_rn_f32_bf16(acc: Any, x: Any) -> Receipt:
    place = _register(acc)
    return ptx["add.rn.f32.bf16"](place, x, place)


def fns_b32(mask: Any, base: Any, offset: Any) -> Any:
    d = local_scalar("uint32")
    ptx["fns.b32"](d, _u32(mask), _u32(base), _cast("int32", offset))
    return d[0]


# ---- cluster launch control -----------------------------------------------------------------------------------------


def clc_try_cancel(handle: Any, mbar: Any) -> Receipt:
    name = f"clusterlaunchcontrol.try_cancel.async.shared::cta.{_BYTES}.multicast::cluster::all.b128"
    return ptx[name](handle, mbar)


def clc_query_cancel(handle: Any) -> Any:
    """The first CTA of the cluster that was cancelled, 0xFFFFFFFF if there is none."""
    response, found, first = local_scalar("uint128"), local_scalar("uint32"), local_scalar("uint32")
    ptx["ld.shared.b128"](response, handle)
    ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](found, response[0])
    ptx["mov.u32"](first, _core.literal(state.context("T.ptx"), "uint32", 0xFFFFFFFF))
    ptx["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"](
        first, response[0], pred=found[0], preserve_dst=True
    )
    ptx["fence.proxy.async.shared::cta"]()
    return first[0]


TABLE: dict[str, Callable[..., Any]] = {
    "mbarrier.try_wait_once": try_wait_once,
    "mbarrier_test_wait_parity": test_wait_parity,
    "fetch_register": fetch_register,
    "cp.async.bulk.tensor.g2c": tensor_g2c,
    "cp.async.bulk.tensor.g2c_bar_addr": tensor_g2c,
    "cp.async.bulk.tensor.g2c_tile_gather4": tensor_g2c_gather4,
    "cp.async.bulk.tensor.g2c_tile_gather4_bar_addr": tensor_g2c_gather4,
    "cp.async.bulk.tensor.s2g": tensor_s2g,
    "cp.async.bulk.tensor.s2g_reduce": tensor_s2g_reduce,
    "cp.async.bulk.tensor.g2c_prefetch": tensor_prefetch,
    "cp.async.bulk.s2c": bulk_s2s_cluster,
    "cp_async_bulk_s2s_cluster": bulk_s2s_cluster,
    "cp_async_bulk_g2s_cta": bulk_g2s_cta,
    "cp_async_bulk_g2s_cluster": bulk_g2s_cluster,
    "cp_async_bulk_s2g": bulk_s2g,
    "mma": mma,
    "ldmatrix": ldmatrix,
    "stmatrix": stmatrix,
    "wgmma.mma_async.ss": wgmma_ss,
    "wgmma.mma_async.rs": wgmma_rs,
    "tcgen05.ld": tcgen05_ld,
    "tcgen05.st": tcgen05_st,
    "tcgen05.cp": tcgen05_cp,
    "tcgen05.mma": tcgen05_mma,
    "tcgen05.mma.sp": tcgen05_mma_sp,
    "tcgen05.mma.block_scale": tcgen05_mma_block_scale,
    "ld": ld,
    "ld_relaxed": _ordered_load("relaxed"),
    "ld_acquire": _ordered_load("acquire"),
    "ld_volatile": ld_volatile,
    "ld_mmio": ld_mmio,
    "ld_global_acquire": ld_global_acquire,
    "st": st,
    "st_relaxed": _ordered_store("relaxed"),
    "st_release": _ordered_store("release"),
    "st_volatile": st_volatile,
    "st.bulk": st_bulk,
    "red_scalar": red_scalar,
    "atom_scalar": atom_scalar,
    "mapa": mapa,
    "add_rn_f32_bf16": add_rn_f32_bf16,
    "fns_b32": fns_b32,
    "clc_try_cancel": clc_try_cancel,
    "clc_query_cancel": clc_query_cancel,
    **{
        f"{op}_{kind}": _arithmetic(op, kind) for op in ("add", "sub", "mul", "fma") for kind in ("f32", "f32x2", "f64")
    },
}
