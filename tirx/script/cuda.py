# SPDX-License-Identifier: Apache-2.0
"""T.cuda: synchronisation, warp and CTA collectives, coordinates, atomics, injected functions, printing.

A call without value is emitted when it is made; one with a value is an expression.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import later, state
from tirx.script.cuda_matrix import mma_fill, mma_fill_legacy, mma_store, mma_store_legacy, place_of, wgmma
from tirx.script.cuda_tcgen05 import (
    TCGen05BlockScaledInstrDescriptorAttrs,
    TCGen05InstrDescriptorAttrs,
    runtime_instr_desc,
    tcgen05,
    tcgen05_encode_instr_descriptor,
    tcgen05_encode_instr_descriptor_block_scaled,
    tcgen05_encode_matrix_descriptor,
)
from tirx.script.cuda_values import (
    bfloat1622float2,
    copy_8b,
    copy_16b,
    copy_32b,
    copy_64b,
    copy_128b,
    copy_bytes,
    fadd2_rn,
    float2_x,
    float2_y,
    float8tohalf8,
    float22bfloat162_rn,
    float22bfloat162_rn_from_float2,
    float22half2,
    fmul2_rn,
    fp8x4_e4m3_from_float4,
    get_tmem_addr,
    half8tofloat8,
    hmax2,
    hmin2,
    iket,
    ldg_vector,
    make_float2,
    sm100_2sm_leader_smem_addr,
    sm100_tma_2sm_mbarrier_addr,
    smem_addr_from_uint64,
)
from tirx.script.launch import (
    AccessPolicyWindow,
    KernelAttributes,
    LaunchCompletionEvent,
    LaunchConfig,
    MemSyncDomainMap,
    ProgrammaticEvent,
)
from tirx.script.ops import RECEIPT, Receipt, effect, emit
from tirx.script.tensormaps import tensormap_encode_im2col, tensormap_encode_tiled

__all__ = [
    "KernelAttributes",
    "AccessPolicyWindow",
    "LaunchCompletionEvent",
    "LaunchConfig",
    "MemSyncDomainMap",
    "ProgrammaticEvent",
    "TCGen05BlockScaledInstrDescriptorAttrs",
    "TCGen05InstrDescriptorAttrs",
    "bfloat1622float2",
    "copy_8b",
    "copy_16b",
    "copy_32b",
    "copy_64b",
    "copy_128b",
    "copy_bytes",
    "fadd2_rn",
    "float2_x",
    "float2_y",
    "float8tohalf8",
    "float22bfloat162_rn",
    "float22bfloat162_rn_from_float2",
    "float22half2",
    "fmul2_rn",
    "fp8x4_e4m3_from_float4",
    "get_tmem_addr",
    "half8tofloat8",
    "hmax2",
    "hmin2",
    "iket",
    "mma_fill",
    "mma_fill_legacy",
    "mma_store",
    "mma_store_legacy",
    "make_float2",
    "runtime_instr_desc",
    "sm100_2sm_leader_smem_addr",
    "sm100_tma_2sm_mbarrier_addr",
    "smem_addr_from_uint64",
    "tcgen05",
    "tcgen05_encode_instr_descriptor",
    "tcgen05_encode_instr_descriptor_block_scaled",
    "tcgen05_encode_matrix_descriptor",
    "tensormap_encode_im2col",
    "tensormap_encode_tiled",
    "wgmma",
]

_FULL_MASK = 0xFFFFFFFF


def _op(what: str, row: str, *args: Any) -> Any:
    """An effect whose dtype the table gives."""
    p = state.need(f"T.cuda.{what}")
    made = _core.op(p.ctx, row, *args)
    if made.dtype == "void":
        return emit(made)
    return p.bind_droppable(what, made) if p.helper_depth else made


def _dtype_of(x: Any) -> str:
    if hasattr(x, "dtype") and isinstance(x.dtype, str):
        return x.dtype
    return _core.as_expr(state.context("T.cuda"), x).dtype


# ---- synchronisation -----------------------------------------------------------------------------------------------


def cta_sync() -> Receipt:
    """__syncthreads(): all threads of the CTA."""
    return _op("cta_sync", "CTA_SYNC")


def warp_sync(mask: Any = None) -> Receipt:
    """__syncwarp(): the lanes of the warp, or those of a mask."""
    return _op("warp_sync", "WARP_SYNC", *(() if mask is None else (_mask(mask),)))


def warpgroup_sync(bar_id: Any) -> Receipt:
    """A named barrier of the 128 threads of a warpgroup."""
    if isinstance(bar_id, int) and not 0 <= bar_id <= 15:
        raise ValueError(f"warpgroup_sync needs a barrier id in 0..15, got {bar_id}")
    return _op("warpgroup_sync", "WARPGROUP_SYNC", bar_id)


def cluster_sync() -> Receipt:
    """All threads of the cluster."""
    return _op("cluster_sync", "CLUSTER_SYNC")


def grid_sync() -> Receipt:
    """All threads of the grid; needs a cooperative launch."""
    return _op("grid_sync", "GRID_SYNC")


def syncthreads_and(condition: Any) -> Any:
    """A barrier that tells whether the condition held in all threads."""
    return _op("syncthreads_and", "SYNC_AND", condition)


def syncthreads_or(condition: Any) -> Any:
    """A barrier that tells whether the condition held in any thread."""
    return _op("syncthreads_or", "SYNC_OR", condition)


def thread_fence() -> Receipt:
    """__threadfence()."""
    return _op("thread_fence", "THREAD_FENCE")


def elect_sync() -> Any:
    """True in one lane of the converged warp."""
    return effect("T.cuda.elect_sync", "ELECT_SYNC", "bool")


def mbarrier_wait(bar: Any, phase: Any) -> Receipt:
    """Waits until the barrier's phase of this parity has ended."""
    return _op("mbarrier_wait", "MBAR_WAIT", bar, phase)


def nano_sleep(ns: Any) -> Receipt:
    """__nanosleep(ns)."""
    return _op("nano_sleep", "NANO_SLEEP", ns)


# ---- warp exchange -------------------------------------------------------------------------------------------------


def _mask(mask: Any) -> Any:
    """A mask of lanes is uint32: 0xFFFFFFFF is meant so."""
    ctx = state.context("a warp operation")
    if isinstance(mask, int):
        if not 0 <= mask <= _FULL_MASK:
            raise ValueError(f"a mask of lanes is in 0..0xFFFFFFFF, got {mask}")
        return _core.literal(ctx, "uint32", mask)
    return _core.cast(ctx, "uint32", mask)


def shuffle(row: str, what: str, mask: Any, value: Any, lane: Any, width: Any, warp_size: Any = 32) -> Any:
    """One of the four shuffles; the fifth operand of the core's row is the warp size."""
    ctx = state.context(what)
    e = _core.as_expr(ctx, value)
    if isinstance(value, (int, float)):
        e = _core.cast(ctx, e.dtype, e)
    return effect(what, row, e.dtype, (_mask(mask), e, lane, width, warp_size))


def shfl_sync(mask: Any, value: Any, lane: Any, width: Any = 32) -> Any:
    """The value of another lane."""
    return shuffle("SHFL", "T.cuda.__shfl_sync", mask, value, lane, width)


def shfl_up_sync(mask: Any, value: Any, delta: Any, width: Any = 32) -> Any:
    """The value of the lane `delta` below."""
    return shuffle("SHFL_UP", "T.cuda.__shfl_up_sync", mask, value, delta, width)


def shfl_down_sync(mask: Any, value: Any, delta: Any, width: Any = 32) -> Any:
    """The value of the lane `delta` above."""
    return shuffle("SHFL_DOWN", "T.cuda.__shfl_down_sync", mask, value, delta, width)


def shfl_xor_sync(mask: Any, value: Any, lane_mask: Any, width: Any = 32) -> Any:
    """The value of the lane whose index differs by `lane_mask`."""
    return shuffle("SHFL_XOR", "T.cuda.__shfl_xor_sync", mask, value, lane_mask, width)


def activemask() -> Any:
    """The lanes that are active here."""
    return _core.op(state.context("T.cuda.__activemask"), "ACTIVEMASK")


def ballot_sync(mask: Any, predicate: Any) -> Any:
    """A bit per lane."""
    return _op("ballot_sync", "BALLOT", _mask(mask), predicate)


def any_sync(mask: Any, predicate: Any) -> Any:
    """Not 0 if the predicate holds in any lane."""
    return _op("any_sync", "ANY_SYNC", _mask(mask), predicate)


def reduce_add_sync_u32(mask: Any, value: Any) -> Any:
    return _op("reduce_add_sync_u32", "REDUX_ADD", _mask(mask), value)


def reduce_min_sync_u32(mask: Any, value: Any) -> Any:
    return _op("reduce_min_sync_u32", "REDUX_MIN", _mask(mask), value)


_REDUCTIONS = ("sum", "max", "min")


def warp_reduce(value: Any, op: str, width: int = 32) -> Any:
    """sum, max or min over groups of `width` lanes."""
    if op not in _REDUCTIONS:
        raise ValueError(f"warp_reduce: op must be one of {_REDUCTIONS}, got {op!r}")
    if not isinstance(width, int) or width not in (2, 4, 8, 16, 32):
        raise ValueError(
            "The warp_reduce width is invalid, expect a value within range [2, 32] and be a power of 2, "
            f"got {width if isinstance(width, int) else 'a run-time value'}"
        )
    ctx = state.context("T.cuda.warp_reduce")
    return effect("T.cuda.warp_reduce", "WARP_REDUCE", _dtype_of(value), (value, _core.string(ctx, op), width))


def warp_sum(value: Any, width: int = 32) -> Any:
    return warp_reduce(value, "sum", width)


def warp_max(value: Any, width: int = 32) -> Any:
    return warp_reduce(value, "max", width)


def warp_min(value: Any, width: int = 32) -> Any:
    return warp_reduce(value, "min", width)


def cta_reduce(value: Any, op: str, num_warps: int, scratch_ptr: Any) -> Any:
    """sum, max or min over the CTA; `scratch_ptr` points to one element per warp in shared memory."""
    if op not in _REDUCTIONS:
        raise ValueError(f"cta_reduce: op must be one of {_REDUCTIONS}, got {op!r}")
    if not isinstance(num_warps, int) or num_warps not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"cta_reduce: num_warps must be a power of 2 in 1..32, got {num_warps!r}")
    if isinstance(scratch_ptr, _core.Buffer):
        scratch_ptr = scratch_ptr.start
    ctx = state.context("T.cuda.cta_reduce")
    args = (value, _core.string(ctx, op), num_warps, scratch_ptr)
    return effect("T.cuda.cta_reduce", "CTA_REDUCE", _dtype_of(value), args)


def cta_sum(value: Any, num_warps: int, scratch_ptr: Any) -> Any:
    return cta_reduce(value, "sum", num_warps, scratch_ptr)


def cta_max(value: Any, num_warps: int, scratch_ptr: Any) -> Any:
    return cta_reduce(value, "max", num_warps, scratch_ptr)


def cta_min(value: Any, num_warps: int, scratch_ptr: Any) -> Any:
    return cta_reduce(value, "min", num_warps, scratch_ptr)


# ---- coordinates ---------------------------------------------------------------------------------------------------


def _axis_of(row: str, name: str) -> Any:
    def call(axis: Any = None) -> Any:
        p = state.need(f"T.cuda.{name}")
        if axis is None:
            raise TypeError(f"T.cuda.{name}: missing operand 'axis'")
        if axis not in ("x", "y", "z"):
            state.fail("AXIS")
        if row == "CLUSTER_DIM" and getattr(p.launch, "cluster", None) is None:
            state.fail("CLUSTER_DIM")
        return _core.coord(p.ctx, row, "xyz".index(axis))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f'T.cuda.{name}("x" | "y" | "z")'
    return call


def _plain(row: str, name: str) -> Any:
    def call() -> Any:
        return _core.op(state.context(f"T.cuda.{name}"), row)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"T.cuda.{name}()"
    return call


thread_idx = _axis_of("THREAD_IDX", "thread_idx")
block_idx = _axis_of("BLOCK_IDX", "block_idx")
block_dim = _axis_of("BLOCK_DIM", "block_dim")
grid_dim = _axis_of("GRID_DIM", "grid_dim")
cluster_id = _axis_of("CLUSTER_ID", "cluster_id")
cluster_cta_id = _axis_of("CLUSTER_CTA", "cluster_cta_id")
cluster_dim = _axis_of("CLUSTER_DIM", "cluster_dim")
cluster_ctarank = _plain("CLUSTER_RANK", "cluster_ctarank")
cta_pair_id = _plain("CTA_PAIR", "cta_pair_id")
linear_thread_id = _plain("LINEAR_TID", "linear_thread_id")
thread_rank = _plain("THREAD_RANK", "thread_rank")
warp_id = _plain("WARP_ID", "warp_id")
lane_id = _plain("LANE_ID", "lane_id")
warpgroup_id = _plain("WARPGROUP_ID", "warpgroup_id")
warp_in_warpgroup = _plain("WARP_IN_WG", "warp_in_warpgroup")
thread_in_warpgroup = _plain("THREAD_IN_WG", "thread_in_warpgroup")


# ---- memory --------------------------------------------------------------------------------------------------------


def _pointee(what: str, ptr: Any, value: Any) -> tuple[Any, Any]:
    """The pointer, and the value in the dtype of what it points to."""
    ctx = state.context(what)
    if isinstance(ptr, _core.Buffer):
        ptr = ptr.start
    if not isinstance(ptr, _core.Expr) or ptr.dtype != "handle":
        raise TypeError(f"{what} needs a pointer, got {_described(ptr)}: write A.ptr_to([i]) or T.address_of(A[i])")
    elem = ptr.elem
    if elem is None or elem == "void":
        return ptr, value
    exact = isinstance(value, float) and value.is_integer()
    if "float" in _dtype_of(value) and "int" in elem and not exact:
        raise TypeError(f"{what} on {elem} elements takes integers, got {_described(value)}: say how with T.cast")
    return ptr, _core.cast(ctx, elem, value)


def _described(x: Any) -> str:
    return x.dtype if isinstance(x, _core.Expr) else repr(x) if isinstance(x, (int, float, str)) else type(x).__name__


def atomic_add(ptr: Any, value: Any) -> Any:
    """Adds to what `ptr` points to; gives the old value."""
    ptr, value = _pointee("T.cuda.atomic_add", ptr, value)
    return effect("T.cuda.atomic_add", "ATOMIC_ADD", _dtype_of(value), (ptr, value))


def atomic_cas(ptr: Any, expected: Any, new: Any) -> Any:
    """Stores `new` if `ptr` points to `expected`; gives the old value."""
    where, expected = _pointee("T.cuda.atomic_cas", ptr, expected)
    _, new = _pointee("T.cuda.atomic_cas", ptr, new)
    return effect("T.cuda.atomic_cas", "ATOMIC_CAS", _dtype_of(expected), (where, expected, new))


def ldg(addr: Any, dtype: Any = None, *, ty: Any = None, dst: Any = None, vec: str = "") -> Any:
    """A load through the read-only cache."""
    ctx = state.context("T.cuda.ldg")
    if isinstance(addr, _core.Buffer):
        addr = addr.start
    given = dtype if dtype is not None else ty if ty is not None else addr.elem
    if dst is not None or vec:
        return ldg_vector(addr, given, dst, vec)
    return _core.make(ctx, "LDG", given, (addr,))


def cvta_generic_to_shared(ptr: Any) -> Any:
    """The 32-bit address of a pointer into shared memory."""
    return _core.op(state.context("T.cuda.cvta_generic_to_shared"), "CVTA_SHARED", ptr)


# ---- values --------------------------------------------------------------------------------------------------------


def fdividef(x: Any, y: Any) -> Any:
    """The fast approximate quotient."""
    return _core.op(state.context("T.cuda.fdividef"), "FDIVIDEF", x, y)


def ffs_u32(value: Any) -> Any:
    """1-based index of the lowest bit that is set, 0 for 0."""
    return _core.op(state.context("T.cuda.ffs_u32"), "FFS", value)


def half2float(x: Any) -> Any:
    return _core.cast(state.context("T.cuda.half2float"), "float32", x)


bfloat162float = half2float


def uint_as_float(x: Any) -> Any:
    """The bits of a uint32 as a float32."""
    return _core.reinterpret(state.context("T.cuda.uint_as_float"), "float32", x)


def float_as_uint(x: Any) -> Any:
    """The bits of a float32 as a uint32."""
    return _core.reinterpret(state.context("T.cuda.float_as_uint"), "uint32", x)


# ---- calls ---------------------------------------------------------------------------------------------------------


def func_call(name: str, *args: Any, source_code: str | None = None, return_type: Any = None, ty: Any = None) -> Any:
    """Calls a CUDA function whose source is injected once: source_code=, or as the last positional argument."""
    if source_code is None:
        if not args or not isinstance(args[-1], str):
            raise TypeError("T.cuda.func_call needs the function's source: source_code=SRC")
        *args, source_code = args  # type: ignore[assignment]
    if return_type is not None and ty is not None:
        raise TypeError("T.cuda.func_call takes one of return_type and ty")
    given = return_type if return_type is not None else ty if ty is not None else "void"
    if not isinstance(name, str) or not name.replace("::", "_").isidentifier():
        raise ValueError(f"T.cuda.func_call needs the name of a function, got {name!r}")
    return effect("T.cuda.func_call", "FUNC_CALL", given, args, call=(name, source_code))


def printf(fmt: str, *args: Any) -> Receipt:
    """printf on the device."""
    if not isinstance(fmt, str):
        raise TypeError("T.cuda.printf needs a string literal as its format")
    ctx = state.context("T.cuda.printf")
    from tirx.script.formats import check_format  # not before a kernel prints

    check_format(fmt, ["a string" if isinstance(x, str) else _dtype_of(x) for x in args])
    return _op("printf", "PRINTF", _core.string(ctx, fmt), *args)


def trap_when_assert_failed(condition: Any) -> Receipt:
    """Stops the kernel unless the condition holds."""
    return _op("trap_when_assert_failed", "TRAP_UNLESS", condition)


def clock64() -> Any:
    """The SM's cycle counter."""
    return effect("T.cuda.clock64", "CLOCK64", "uint64")


_SPECIAL = {
    "laneid": lambda: lane_id(),
    "cluster_ctarank": lambda: cluster_ctarank(),
    **{
        f"{name}.{axis}": lambda f=f, axis=axis: f(axis)
        for name, f in {
            "tid": thread_idx,
            "ntid": block_dim,
            "ctaid": block_idx,
            "nctaid": grid_dim,
            "clusterid": cluster_id,
            "cluster_ctaid": cluster_cta_id,
        }.items()
        for axis in "xyz"
    },
}


def mov_sreg(bits: int, name: str) -> Any:
    """A special register. Coordinates are those of T.cuda; others have no meaning on the emulator."""
    if bits not in (32, 64):
        raise ValueError("Only support 32/64 bits")
    if not isinstance(name, str) or not name.replace(".", "_").isidentifier():
        raise ValueError(f"T.cuda.mov_sreg needs the name of a special register, got {name!r}")
    if bits == 32 and name in _SPECIAL:
        return _SPECIAL[name]()
    function = f"tirx_cuda_sreg_{bits}_{name.replace('.', '_')}"
    c_type, letter = ("int", "r") if bits == 32 else ("long long", "l")
    source = f"""
static __forceinline__ __device__ {c_type} {function}() {{
  {c_type} r;
  asm volatile("mov.u{bits} %0, %%{name};" : "={letter}"(r));
  return r;
}}
"""
    return func_call(function, source_code=source, return_type=f"int{bits}")


def wait_until(
    dst: Any,
    ptr: Any,
    predicate: Any,
    scope: str = "gpu",
    space: str = "global",
    ptx_type: str | None = None,
    backoff_ns: int | None = None,
) -> Receipt:
    """Reads what `ptr` points to into `dst` until the predicate, which is about dst, holds; then orders what follows
    behind whoever wrote it."""
    from tirx.script.buffers import local_scalar
    from tirx.script.ptx import ptx

    what = "T.cuda.wait_until"
    place = place_of(what, dst)
    if place.dtype not in ("int32", "uint32", "int64", "uint64"):
        raise ValueError(f"{what} waits for a word of 32 or 64 bits, got {place.dtype}")
    if scope not in ("cta", "cluster", "gpu", "sys"):
        raise ValueError(f"{what}: scope must be cta, cluster, gpu or sys, got {scope!r}")
    if space != "global":
        raise ValueError(f"{what} waits for global memory, not {space!r}")
    bits = place.dtype.lstrip("uint")
    kind = ptx_type or f"b{bits}"
    if kind.lstrip("bus") != bits:
        raise ValueError(f"{what}: ptx_type {kind} is not as wide as {place.dtype}")
    ptx[f"ld.relaxed.{scope}.global.{kind}"](place, ptr)
    b = state.builder(what)
    b.open_while(_core.op(state.context(what), "NOT", predicate))
    if backoff_ns:
        nano_sleep(backoff_ns)
    ptx[f"ld.relaxed.{scope}.global.{kind}"](place, ptr)
    b.close()
    seen = local_scalar(place.dtype)
    return ptx[f"ld.acquire.{scope}.global.{kind}"](seen, ptr)


def _asks(what: str, row: str, bar: Any, phase: Any) -> Any:
    """A flag that says whether the phase has ended, and the function that asks."""
    from tirx.script.buffers import local_scalar
    from tirx.script.ptx import ptx

    parity = _core.cast(state.context(what), "uint32", phase)
    done = local_scalar("bool", False)
    return done, lambda: ptx[row](done, bar, parity)


def mbarrier_wait_acquire_cluster(bar: Any, phase: Any) -> Receipt:
    """mbarrier_wait that also orders after what other CTAs of the cluster wrote."""
    what = "T.cuda.mbarrier_wait_acquire_cluster"
    done, ask = _asks(what, "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", bar, phase)
    b = state.builder(what)
    b.open_while(_core.op(state.context(what), "NOT", done))
    ask()
    b.close()
    return RECEIPT


def mbarrier_peek(bar: Any, phase: Any) -> Any:
    """Whether the barrier's phase of this parity has ended, without waiting: ask early, and wait later only if not."""
    done, ask = _asks("T.cuda.mbarrier_peek", "mbarrier.test_wait.parity.shared.b64", bar, phase)
    ask()
    return done


def cache_policy(name: str) -> Any:
    """The uint64 of a policy that holds for all of an access, for operands behind .L2::cache_hint: "evict_first",
    "evict_last" or "evict_normal"."""
    if name not in POLICIES:
        raise ValueError(f"T.cuda.cache_policy: expected one of {', '.join(POLICIES)}, got {name!r}")
    return _core.literal(state.context("T.cuda.cache_policy"), "uint64", POLICIES[name])


# What createpolicy.fractional gives for the fraction 1.
POLICIES = {
    "evict_normal": 0x1000000000000000,
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
}


def _timer(name: str) -> Any:
    def call(*args: Any, **fields: Any) -> Receipt:
        from tirx.script import timers  # not before a kernel has one

        return getattr(timers, name)(*args, **fields)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"T.cuda.{name}: see tirx/script/timers.py."
    return call


timer_init, timer_start, timer_end, timer_finalize = map(
    _timer, ("timer_init", "timer_start", "timer_end", "timer_finalize")
)

_MANGLED = {
    "shfl_sync": shfl_sync,
    "shfl_up_sync": shfl_up_sync,
    "shfl_down_sync": shfl_down_sync,
    "shfl_xor_sync": shfl_xor_sync,
    "activemask": activemask,
}


def __getattr__(name: str) -> Any:
    # __shfl_sync, _shfl_sync, and the same with the name of a class that Python puts before it
    plain = name.rpartition("__")[2].lstrip("_") if "__" in name else name.lstrip("_")
    found = _MANGLED.get(plain) if name.startswith("_") else None
    member = name.removeprefix("wgmma_")
    if member != name and not member.startswith("_") and hasattr(wgmma, member):
        found = getattr(wgmma, member)  # the flat name: wgmma_encode_matrix_descriptor
    if found is not None:
        return found
    raise AttributeError(later.text("T.cuda", name, globals()))
