# SPDX-License-Identifier: Apache-2.0
"""Classes that most kernels for Hopper and Blackwell are written with: phases of pipelines, barriers, descriptors.

    from tirx.lang import Pipeline, PipelineState

Written over T: what a method emits could be written in the kernel as well, and prints as such. Objects are made inside
a kernel; what they allocate is named after the variable that holds them.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import tirx as T
from tirx.script.annotations import HandleType

Buffer = _core.Buffer

__all__ = [
    "MBarrier",
    "Pipeline",
    "PipelineState",
    "SmemDescriptor",
    "TCGen05Bar",
    "TMABar",
    "WarpRole",
    "WarpgroupRole",
    "query_cancel_first_ctaid_x",
]


@T.meta_class
class PipelineState:
    """Where in a ring of `depth` slots a thread stands, and in which phase: cells `stage` and `phase`."""

    def __init__(self, depth: int, phase: Any = None):
        if isinstance(depth, bool) or not isinstance(depth, int) or depth < 1:
            raise ValueError(f"PipelineState: depth must be a positive constant, got {depth}")
        self.depth = depth
        self.stage = T.local_scalar("int32", None if phase is None else 0)
        self.phase = T.local_scalar("int32", phase)

    def init(self, phase: Any) -> None:
        """To slot 0, in this phase."""
        T.assign(self.stage, 0)
        T.assign(self.phase, phase)

    def advance(self) -> None:
        """To the next slot; the phase turns where the ring begins again."""
        if self.depth == 1:
            T.assign(self.phase, self.phase ^ 1)
            return
        T.assign(self.stage, self.stage + 1)
        with T.If(self.stage == self.depth), T.Then():
            T.assign(self.stage, 0)
            T.assign(self.phase, self.phase ^ 1)


@T.meta_class
class MBarrier:
    """`depth` mbarriers in shared memory, `buf`. A wait is for the phase xor `phase_offset`; `leader` says which thread
    initialises, by default the first one of the CTA."""

    def __init__(self, pool: Any, depth: int, phase_offset: int = 0, leader: Any = None):
        self.depth = depth
        self.phase_offset = phase_offset
        self.leader = leader
        self.is_remote = False
        self.buf = pool.alloc((depth,), "uint64", align=8)

    def init(self, count: Any) -> None:
        """One mbarrier.init a slot by the leader. The caller fences and synchronises."""
        self._local("init")
        leader = T.cuda.thread_rank() == 0 if self.leader is None else self.leader
        if isinstance(leader, bool):
            if leader:
                self._init_slots(count)
            return
        with T.If(leader), T.Then():
            self._init_slots(count)

    def _init_slots(self, count: Any) -> None:
        for i in range(self.depth):
            T.ptx["mbarrier.init.shared.b64"](self.ptr_to(i), T.uint32(count))

    def wait(self, stage: Any, phase: Any) -> None:
        """Until the slot has left the phase."""
        self._local("wait")
        T.cuda.mbarrier_wait(self.ptr_to(stage), phase ^ self.phase_offset if self.phase_offset else phase)

    def arrive(self, stage: Any, remote: Any = None, pred: Any = None, count: Any = None) -> None:
        """One arrival, or `count`; at the slot of CTA `remote` of the cluster where that is given."""
        space, address = self._place(stage, remote)
        more = (T.uint32(1 if count is None else count),)
        T.ptx[f"mbarrier.arrive.{space}.b64"](address, *more, pred=pred)

    def ptr_to(self, idx: Any) -> Any:
        """A pointer to a slot."""
        return self.buf.ptr_to([idx])

    def remote_view(self, rank: Any) -> Any:
        """The same barriers of CTA `rank` of the cluster, to arrive at; mapped once."""
        self._local("remote_view")
        address = T.local_scalar("uint64")
        T.ptx["mapa.u64"](address, self.ptr_to(0), T.uint32(rank))
        pointer = T.reinterpret(HandleType("uint64", "shared"), address)
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view.is_remote = True
        view.address = address
        view.buf = T.decl_buffer((self.depth,), "uint64", data=pointer, scope="shared")
        return view

    def _local(self, what: str) -> None:
        if self.is_remote:
            raise ValueError(f"{type(self).__name__}.{what}: not on a view of another CTA's barriers")

    def _place(self, stage: Any, remote: Any) -> tuple[str, Any]:
        """The space and the address of an arrival."""
        if self.is_remote:
            if remote is not None:
                self._local("arrive(remote=...)")
            return "shared::cluster", self.ptr_to(stage)
        if remote is None:
            return "shared", self.ptr_to(stage)
        address = T.local_scalar("uint32")
        here = T.cuda.cvta_generic_to_shared(self.ptr_to(stage))
        T.ptx["mapa.shared::cluster.u32"](address, here, T.uint32(remote))
        return "shared::cluster", address[0]


class TMABar(MBarrier):
    """mbarriers that copies by the tensor memory accelerator complete."""

    def arrive(self, stage: Any, tx_count: Any = None, remote: Any = None, pred: Any = None, count: Any = None) -> None:
        """One arrival that expects `tx_count` bytes, where that is given."""
        if tx_count is None:
            MBarrier.arrive(self, stage, remote, pred, count)
            return
        if count is not None:
            raise ValueError("TMABar.arrive: an arrival that expects bytes counts as one")
        space, address = self._place(stage, remote)
        T.ptx[f"mbarrier.arrive.expect_tx.{space}.b64"](address, T.uint32(tx_count), pred=pred)


class TCGen05Bar(MBarrier):
    """mbarriers that the end of matrix instructions of the fifth generation arrives at."""

    def arrive(self, stage: Any, cta_group: int = 1, cta_mask: Any = None, pred: Any = None) -> None:
        """An arrival when what this thread has issued is done, at the same slot of the CTAs in `cta_mask`. The caller
        elects one thread."""
        if cta_group not in (1, 2):
            raise ValueError(f"TCGen05Bar.arrive: cta_group must be 1 or 2, got {cta_group}")
        name = f"tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"
        mask = cta_mask.value if isinstance(cta_mask, _core.Expr) and cta_mask.op == "INT" else cta_mask
        if mask is None or isinstance(mask, int) and mask & (mask - 1) == 0:
            T.ptx[f"{name}.b64"](self.ptr_to(stage), pred=pred)
            return
        T.ptx[f"{name}.multicast::cluster.b64"](self.ptr_to(stage), T.uint16(mask), pred=pred)


_KINDS = {"tma": TMABar, "tcgen05": TCGen05Bar, "mbar": MBarrier}


@T.meta_class
class Pipeline:
    """The barriers of a ring of `stages` slots: `full` says that a slot was filled, `empty` that it was read. Each is
    "tma", "tcgen05" or "mbar", by who arrives at it."""

    def __init__(
        self,
        pool: Any,
        stages: int,
        *,
        full: str,
        empty: str,
        init_full: Any = 1,
        init_empty: Any = 1,
        empty_phase_offset: int = 0,
        leader: Any = None,
    ):
        for which, kind in (("full", full), ("empty", empty)):
            if kind not in _KINDS:
                raise ValueError(f"Pipeline: {which} must be one of {', '.join(_KINDS)}, got {kind!r}")
        self.stages = stages
        self.full = _KINDS[full](pool, stages, 0, leader)
        self.empty = _KINDS[empty](pool, stages, empty_phase_offset, leader)
        self.full.init(init_full)
        self.empty.init(init_empty)


@T.meta_class
class SmemDescriptor:
    """The descriptor of a tile in shared memory for matrix instructions of the fifth generation, in the cell `desc`."""

    def __init__(self):
        self.desc = T.local_scalar("uint64")

    def init(self, smem_ptr: Any, ldo: Any, sdo: Any, swizzle: int) -> None:
        """ldo and sdo in units of 16 bytes; swizzle 0..3: none, 32 to 128 bytes, 4: 128 bytes with atoms of 32."""
        T.cuda.tcgen05.encode_matrix_descriptor(T.address_of(self.desc), smem_ptr, ldo, sdo, swizzle)

    def add_16B_offset(self, n: Any) -> Any:
        """The descriptor n * 16 bytes further on: the low 32 bits move, the high ones stay."""
        return self._high() | T.uint64(T.uint32(self.desc) + T.uint32(n))

    def make_lo_uniform(self) -> None:
        """Takes the low word from lane 0, so that the compiler knows it to be the same in all lanes."""
        low = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), T.uint32(self.desc), 0, 32, 32)
        T.assign(self.desc, self._high() | T.uint64(low))

    def _high(self) -> Any:
        return self.desc & T.uint64(0xFFFFFFFF00000000)


@T.meta_class
class WarpRole:
    """`with role:` is what the warp with number `id` does, after it has changed its registers to `regs`."""

    def __init__(self, warp_id: Any, id: Any, regs: int | None = None, increase: bool = False):
        self.warp_id = warp_id
        self.id = id
        self.regs = regs
        self.increase = increase

    def __enter__(self) -> WarpRole:
        self._frames = (T.If(self.warp_id == self.id), T.Then())
        for frame in self._frames:
            frame.__enter__()
        if self.regs is not None:
            T.ptx[f"setmaxnreg.{'inc' if self.increase else 'dec'}.sync.aligned.u32"](self.regs)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for frame in reversed(self._frames):
            frame.__exit__(kind, error, trace)


class WarpgroupRole(WarpRole):
    """The same for a warpgroup."""


def query_cancel_first_ctaid_x(dst: Any, handle: Any, *, use_ld_acquire: bool = True) -> None:
    """Reads the response of clusterlaunchcontrol.try_cancel behind `handle`: into `dst` goes x of the first CTA that
    was cancelled, 0xFFFFFFFF where there was none."""
    if not isinstance(dst, Buffer) or dst.dtype != "uint32":
        raise TypeError("query_cancel_first_ctaid_x writes into a variable: dst: T.uint32")
    response = T.local_scalar("uint128")
    canceled = T.local_scalar("bool")
    pointer = handle.start if isinstance(handle, Buffer) else handle
    T.ptx["ld.acquire.cta.shared.b128" if use_ld_acquire else "ld.shared.b128"](response, pointer)
    T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](canceled, response)
    T.assign(dst, T.uint32(0xFFFFFFFF))
    first = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"
    T.ptx[first](dst, response, pred=canceled[0], preserve_dst=True)
    T.ptx["fence.proxy.async.shared::cta"]()
