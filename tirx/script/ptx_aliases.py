# SPDX-License-Identifier: Apache-2.0
"""The function style of the first dialect: T.ptx.mbarrier.init(bar, 1) and others, written over the rows of the table.

A call is first tried as a row of the table. Only when the tokens make no complete row, or no row takes the operands, is
the alias of that name meant. When neither fits, the error is the row's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import cuda, ptx_aliases_rows, state
from tirx.script.buffers import local_scalar
from tirx.script.ops import Receipt
from tirx.script.ptx import ptx

TABLE: dict[str, Callable[..., Any]] = {}


def _alias(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(f: Callable[..., Any]) -> Callable[..., Any]:
        TABLE[name] = f
        return f

    return keep


def _u32(x: Any) -> Any:
    return _core.cast(state.context("T.ptx"), "uint32", x)


def _remote(bar: Any, cta_id: Any) -> Any:
    """The address of the same barrier in another CTA of the cluster."""
    where = local_scalar("uint32")
    pointer = bar.start if isinstance(bar, _core.Buffer) else bar
    ptx["mapa.shared::cluster.u32"](where, cuda.cvta_generic_to_shared(pointer), _u32(cta_id))
    return where[0]


# ---- mbarriers -----------------------------------------------------------------------------------------------------


@_alias("mbarrier.init")
def mbarrier_init(bar: Any, thread_count: Any) -> Receipt:
    return ptx["mbarrier.init.shared.b64"](bar, _u32(thread_count))


@_alias("mbarrier.arrive")
def mbarrier_arrive(bar: Any, cta_id: Any = None, pred: Any = None, count: Any = None) -> Receipt:
    more = () if count is None else (_u32(count),)
    if cta_id is None:
        return ptx["mbarrier.arrive.shared.b64"](bar, *more)
    return ptx["mbarrier.arrive.shared::cluster.b64"](_remote(bar, cta_id), *more, pred=pred)


@_alias("mbarrier.arrive.cluster_count")
def mbarrier_arrive_cluster_count(bar: Any, cta_id: Any, count: Any) -> Receipt:
    return mbarrier_arrive(bar, cta_id, None, count)


@_alias("mbarrier.arrive.expect_tx")
def mbarrier_expect_tx(bar: Any, byte_count: Any, cta_id: Any = None, pred: Any = None) -> Receipt:
    if cta_id is None:
        return ptx["mbarrier.arrive.expect_tx.shared.b64"](bar, _u32(byte_count), pred=pred)
    return ptx["mbarrier.arrive.expect_tx.shared::cluster.b64"](_remote(bar, cta_id), _u32(byte_count), pred=pred)


@_alias("mbarrier.try_wait")
def mbarrier_try_wait(bar: Any, phase: Any) -> Receipt:
    return cuda.mbarrier_wait(bar.start if isinstance(bar, _core.Buffer) else bar, phase)


@_alias("mbarrier.try_wait_acquire_cluster")
def mbarrier_try_wait_acquire_cluster(bar: Any, phase: Any) -> Receipt:
    return cuda.mbarrier_wait_acquire_cluster(bar, phase)


# ---- fences and barriers -------------------------------------------------------------------------------------------


@_alias("fence")
def fence(sem: str, scope: str) -> Receipt:
    return ptx[f"fence.{sem}.{scope}"]()


@_alias("fence.proxy_async")
def fence_proxy_async(space: str = "") -> Receipt:
    return ptx["fence.proxy.async" + (f".{space}" if space else "")]()


@_alias("fence.mbarrier_init")
def fence_mbarrier_init() -> Receipt:
    return ptx["fence.mbarrier_init.release.cluster"]()


@_alias("bar.sync")
def bar_sync(barrier: Any, thread_count: Any) -> Receipt:
    return ptx["bar.sync"](_u32(barrier), _u32(thread_count))


@_alias("bar.arrive")
def bar_arrive(barrier: Any, thread_count: Any) -> Receipt:
    return ptx["bar.arrive"](_u32(barrier), _u32(thread_count))


@_alias("barrier.cluster.arrive")
def cluster_arrive(sem: str = "", aligned: bool = True) -> Receipt:
    return ptx["barrier.cluster.arrive" + (f".{sem}" if sem else "") + (".aligned" if aligned else "")]()


@_alias("barrier.cluster.wait")
def cluster_wait(acquire: bool = False, aligned: bool = True) -> Receipt:
    return ptx["barrier.cluster.wait" + (".acquire" if acquire else "") + (".aligned" if aligned else "")]()


@_alias("elect.sync")
def elect_sync() -> Any:
    return cuda.elect_sync()


@_alias("any_sync")
def any_sync(mask: Any, predicate: Any) -> Any:
    return cuda.any_sync(mask, predicate)


@_alias("setmaxnreg")
def setmaxnreg(inc: bool, nreg: int) -> Receipt:
    return ptx[f"setmaxnreg.{'inc' if inc else 'dec'}.sync.aligned.u32"](nreg)


# ---- copies --------------------------------------------------------------------------------------------------------


@_alias("cp.async")
def cp_async(
    dst: Any,
    src: Any,
    cp_size: int,
    *,
    cache_hint: str = "",
    cache_policy: Any = None,
    prefetch_size: int = -1,
    predicate: Any = -1,
    fill_mode: str = "",
) -> Receipt:
    ctx = state.context("T.ptx.cp_async")
    policy = ptx_aliases_rows.policy("cp_async", cache_hint, cache_policy)
    name = f"cp.async.{'cg' if cp_size == 16 else 'ca'}.shared.global"
    name += ".L2::cache_hint" if policy else ""
    name += f".L2::{prefetch_size}B" if prefetch_size != -1 else ""
    if isinstance(predicate, int) and predicate == -1:
        return ptx[name](dst, src, cp_size, *policy)
    if fill_mode == "zero":
        size = _core.cast(ctx, "uint32", _core.cast(ctx, "bool", predicate)) * _core.literal(ctx, "uint32", cp_size)
        return ptx[name](dst, src, cp_size, size, *policy)
    return ptx[name](dst, src, cp_size, *policy, pred=predicate)


@_alias("cp.async.wait_group")
def cp_wait_group(n: int = 0) -> Receipt:
    return ptx["cp.async.wait_group"](n)


@_alias("cp.async.bulk.wait_group")
def bulk_wait_group(n: int = 0, read: bool = True) -> Receipt:
    return ptx["cp.async.bulk.wait_group" + (".read" if read else "")](n)


@_alias("cp.async.mbarrier.arrive")
def cp_mbarrier_arrive(bar: Any) -> Receipt:
    return ptx["cp.async.mbarrier.arrive.shared.b64"](bar)


# ---- matrix units --------------------------------------------------------------------------------------------------


def _in_order(name: str, opcode: str) -> None:
    """A name whose operands are the row's, in its order."""

    def call(*operands: Any) -> Receipt:
        return ptx[opcode](*operands)

    call.__name__ = call.__qualname__ = name.replace(".", "_")
    TABLE[name] = call


_in_order("wgmma.fence", "wgmma.fence.sync.aligned")
_in_order("wgmma.commit_group", "wgmma.commit_group.sync.aligned")
_in_order("wgmma.wait_group", "wgmma.wait_group.sync.aligned")
_in_order("tcgen05.wait.ld", "tcgen05.wait::ld.sync.aligned")
_in_order("tcgen05.wait.st", "tcgen05.wait::st.sync.aligned")
_in_order("tcgen05.fence.before_thread_sync", "tcgen05.fence::before_thread_sync")
_in_order("tcgen05.fence.after_thread_sync", "tcgen05.fence::after_thread_sync")


@_alias("tcgen05.alloc")
def tcgen05_alloc(dst: Any, n_cols: Any, cta_group: int = 1) -> Receipt:
    return ptx[f"tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32"](dst, _u32(n_cols))


@_alias("tcgen05.dealloc")
def tcgen05_dealloc(taddr: Any, n_cols: Any, cta_group: int = 1) -> Receipt:
    return ptx[f"tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32"](_u32(taddr), _u32(n_cols))


@_alias("tcgen05.relinquish_alloc_permit")
def tcgen05_relinquish(cta_group: int = 1) -> Receipt:
    return ptx[f"tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned"]()


@_alias("tcgen05.shift")
def tcgen05_shift(taddr: Any, cta_group: int = 1) -> Receipt:
    return ptx[f"tcgen05.shift.cta_group::{cta_group}.down"](_u32(taddr))


@_alias("tcgen05.commit")
def tcgen05_commit(bar: Any, cta_group: int = 1, cta_mask: Any = 0, *, pred: Any = None) -> Receipt:
    one = isinstance(cta_mask, int) and cta_mask & (cta_mask - 1) == 0
    name = f"tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"
    if one:
        return ptx[f"{name}.b64"](bar, pred=pred)
    mask = _core.cast(state.context("T.ptx.tcgen05.commit"), "uint16", cta_mask)
    return ptx[f"{name}.multicast::cluster.b64"](bar, mask, pred=pred)


# ---- values --------------------------------------------------------------------------------------------------------


def _f32(instruction: str, *operands: Any) -> Any:
    d = local_scalar("float32")
    ctx = state.context("T.ptx")
    ptx[instruction](d, *(_core.cast(ctx, "float32", x) for x in operands))
    return d[0]


@_alias("exp2")
def exp2(x: Any) -> Any:
    return _f32("ex2.approx.ftz.f32", x)


@_alias("rcp")
def rcp(x: Any) -> Any:
    return _f32("rcp.approx.ftz.f32", x)


@_alias("max_f32")
def max_f32(a: Any, b: Any, ftz: bool = False, nan: bool = False) -> Any:
    return _f32("max" + (".ftz" if ftz else "") + (".NaN" if nan else "") + ".f32", a, b)


@_alias("reduce3_max_f32")
def reduce3_max_f32(a: Any, b: Any, c: Any) -> Any:
    return _f32("max.f32", a, b, c)


@_alias("reduce3_min_f32")
def reduce3_min_f32(a: Any, b: Any, c: Any) -> Any:
    return _f32("min.f32", a, b, c)


@_alias("map_shared_rank")
def map_shared_rank(ptr: Any, rank: Any) -> Any:
    d = local_scalar("uint64")
    ptx["mapa.u64"](d, ptr.start if isinstance(ptr, _core.Buffer) else ptr, _u32(rank))
    return d[0]


@_alias("prefetch_tensormap")
def prefetch_tensormap(tensormap: Any, space: str = "") -> Receipt:
    return ptx["prefetch" + (f".{space}" if space else "") + ".tensormap"](tensormap)


TABLE.update(ptx_aliases_rows.TABLE)
PREFIXES = {name[:i] for name in TABLE for i in range(len(name) + 1) if i == len(name) or name[i] == "."}
