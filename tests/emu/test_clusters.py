# SPDX-License-Identifier: Apache-2.0
"""Clusters in the emulator: memory of other CTAs, cluster barrier, remote mbarriers, multicast, register budgets."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

SCHEDULES = ["late", "early", *range(6)]
HEAD = """
from tirx.script import tirx as T
COPY = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
MANY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, ({n}, {size}, 64), "int32", align=16)
    B = T.match_buffer(B_ptr, ({n}, {size}, 64), "int32", align=16)
    T.device_entry()
    cl = T.cluster_id([{n}])
    rank = T.cta_id_in_cluster([{size}])
    tx = T.thread_id([64])
    sm = T.alloc_shared((64,), "int32", align=128)
    to = T.alloc_shared((64,), "int32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    at = T.alloc_local((1,), "uint32")
    at2 = T.alloc_local((1,), "uint32")
    v = T.alloc_local((1,), "int32")
    next: T.let = T.cast((rank + 1) % {size}, "uint32")
"""


def kernel(body, n=3, size=4):
    text = HEAD.format(n=n, size=size) + "".join(f"    {line}\n" for line in body.strip().split("\n"))
    return tirx.compile(tirx.from_source(text), target="cpu")


def data(n=3, size=4):
    a = np.random.default_rng(0).integers(-999, 999, (n, size, 64)).astype("int32")
    return a, np.zeros_like(a)


def right(body, want, **shape):
    exe = kernel(body, **shape)
    for schedule in SCHEDULES:
        for check in (True, False):
            a, b = data(**shape)
            exe(a, b, schedule=schedule, check=check)
            np.testing.assert_array_equal(b, want(a))


def reported(body, **options):
    with pytest.raises(tirx.EmulationError) as e:
        kernel(body)(*data(), **options)
    return e.value


ADDRESS = "T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared({p}), next)\n"


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_reads_of_the_next_cta(size):
    body = "sm[tx] = A[cl, rank, tx]\nT.cuda.cluster_sync()\n" + ADDRESS.format(p="sm.ptr_to([63 - tx])")
    body += "T.ptx.ld.shared__cluster.b32(v[0], at[0])\nB[cl, rank, tx] = v[0]\nT.cuda.cluster_sync()"
    right(body, lambda a: np.roll(a, -1, 1)[..., ::-1], size=size)


def test_generic_pointers_to_the_next_cta():
    body = """sm[tx] = A[cl, rank, tx]
T.cuda.cluster_sync()
p: T.uint64
T.ptx.mapa.u64(p, sm.ptr_to([tx]), next)
T.ptx.ld.b32(v[0], p)
B[cl, rank, tx] = v[0]
T.cuda.cluster_sync()"""
    right(body, lambda a: np.roll(a, -1, 1))


def test_stores_and_atomics_in_the_next_cta():
    body = "sm[tx] = 0\nto[tx] = 0\nT.cuda.cluster_sync()\n" + ADDRESS.format(p="sm.ptr_to([tx])")
    body += """T.ptx.st.shared__cluster.b32(at[0], A[cl, rank, tx])
T.ptx.mapa.shared__cluster.u32(at2[0], T.cuda.cvta_generic_to_shared(to.ptr_to([tx % 2])), next)
T.ptx.red.relaxed.cluster.shared__cluster.add.s32(at2[0], 1)
T.cuda.cluster_sync()
B[cl, rank, tx] = sm[tx] + to[tx % 2]"""
    right(body, lambda a: np.roll(a, 1, 1) + 32)


def test_the_barrier_in_two_halves():
    body = "sm[tx] = A[cl, rank, tx]\nT.ptx.barrier.cluster.arrive.release.aligned()\nmine: T.int32 = A[cl, rank, tx]\n"
    body += "T.ptx.barrier.cluster.wait.acquire.aligned()\n" + ADDRESS.format(p="sm.ptr_to([tx])")
    body += "T.ptx.ld.shared__cluster.b32(v[0], at[0])\nB[cl, rank, tx] = v[0] + mine\nT.cuda.cluster_sync()"
    right(body, lambda a: a + np.roll(a, -1, 1))


def test_remote_arrivals():
    """Each CTA fills its own memory and tells the one before it, which then reads it."""
    body = """if tx == 0:
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
T.cuda.cluster_sync()
sm[tx] = A[cl, rank, tx]
""" + ADDRESS.format(p="bar.ptr_to([0])").replace("next", 'T.cast((rank + 3) % 4, "uint32")')
    body += "T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(at[0])\n"
    body += 'done = T.alloc_local((1,), "bool")\ndone[0] = T.bool(False)\nwhile not done[0]:\n'
    body += (
        '    T.ptx["mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"](done[0], bar.ptr_to([0]), T.uint32(0))\n'
    )
    body += ADDRESS.format(p="sm.ptr_to([63 - tx])")
    body += "T.ptx.ld.shared__cluster.b32(v[0], at[0])\nB[cl, rank, tx] = v[0]\nT.cuda.cluster_sync()"
    right(body, lambda a: np.roll(a, -1, 1)[..., ::-1])


PREPARE = """if tx == 0:
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
    T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32({bytes}))
sm[tx] = A[cl, rank, tx]
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cluster_sync()
"""
TAIL = "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)\nB[cl, rank, tx] = to[63 - tx]\nT.cuda.cluster_sync()"


def test_bulk_copies_between_ctas():
    body = (
        PREPARE.format(bytes=256)
        + """if tx == 0:
    T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([0])), next)
    T.ptx.mapa.shared__cluster.u32(at2[0], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), next)
    T.ptx[COPY](at[0], sm.ptr_to([0]), T.uint32(256), at2[0])
"""
        + TAIL
    )
    right(body, lambda a: np.roll(a, 1, 1)[..., ::-1])


def test_multicast():
    """Each CTA fetches a quarter for all four."""
    body = (
        PREPARE.format(bytes=256)
        + """if tx == 0:
    T.ptx[MANY](to.ptr_to([rank * 16]), A.ptr_to([cl, 0, rank * 16]), T.uint32(64), bar.ptr_to([0]), T.uint16(15))
"""
        + TAIL
    )
    right(body, lambda a: np.repeat(a[:, :1, ::-1], 4, 1))


# ---- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_read_that_nothing_orders(schedule):
    body = "sm[tx] = A[cl, rank, tx]\nT.cuda.cta_sync()\n" + ADDRESS.format(p="sm.ptr_to([tx])")
    body += "T.ptx.ld.shared__cluster.b32(v[0], at[0])\nB[cl, rank, tx] = v[0]\nT.cuda.cluster_sync()"
    e = reported(body, schedule=schedule)
    assert e.kind in ("race", "uninitialised") and e.buffer == "sm"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_cta_that_leaves_too_early(schedule):
    body = "sm[tx] = A[cl, rank, tx]\nT.cuda.cluster_sync()\n" + ADDRESS.format(p="sm.ptr_to([tx])")
    body += "if rank > 0:\n    T.ptx.ld.shared__cluster.b32(v[0], at[0])\n    B[cl, rank, tx] = v[0]"
    e = reported(body, schedule=schedule)
    assert e.kind == "cluster" and len(e.lines) == 1


def test_a_rank_that_is_not_there():
    body = "sm[tx] = A[cl, rank, tx]\nT.cuda.cluster_sync()\n"
    body += "T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(sm.ptr_to([tx])), T.uint32(4))\n"
    body += "T.ptx.ld.shared__cluster.b32(v[0], at[0])\nB[cl, rank, tx] = v[0]\nT.cuda.cluster_sync()"
    e = reported(body)
    assert e.kind == "cluster" and "CTA 4 of a cluster of 4" in str(e)


def test_arrivals_and_waits_alternate():
    e = reported("T.ptx.barrier.cluster.arrive()\nT.ptx.barrier.cluster.arrive()\nT.ptx.barrier.cluster.wait()")
    assert e.kind == "barrier" and e.buffer == "cluster barrier" and "a second arrival" in str(e)
    e = reported("T.ptx.barrier.cluster.wait()")
    assert e.kind == "barrier" and "a wait without an arrival" in str(e)


def test_a_dead_lock_of_two_ctas_names_both_waits():
    body = """if tx == 0:
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
T.cuda.cluster_sync()
if rank == 0:
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
T.cuda.cluster_sync()"""
    e = reported(body)
    assert e.kind == "deadlock" and len(e.lines) == 2
    assert "bar[0] for phase 0: 1 of 1 arrivals are missing" in str(e) and "waits at the cluster barrier" in str(e)


def test_registers_move_between_warpgroups():
    text = """
from tirx.script import tirx as T

@T.prim_func
def k(B: T.Buffer((384,), "int32")):
    T.device_entry()
    T.attr({"tirx.max_registers": 168})
    bx = T.cta_id([1])
    tx = T.thread_id([384])
    wg = T.warpgroup_id([3])
    if wg == 0:
        T.ptx.setmaxnreg.dec.sync.aligned.u32(24)
    else:
        T.ptx.setmaxnreg.inc.sync.aligned.u32(AMOUNT)
    B[tx] = tx
"""
    for schedule in SCHEDULES:
        b = np.zeros(384, "int32")
        tirx.compile(tirx.from_source(text.replace("AMOUNT", "240")), target="cpu")(b, schedule=schedule)
        np.testing.assert_array_equal(b, np.arange(384))
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(tirx.from_source(text.replace("AMOUNT", "248")), target="cpu")(np.zeros(384, "int32"))
    assert e.value.kind == "deadlock" and "waits for registers" in str(e.value) and len(e.value.lines) == 1


# ---- relaxed arrivals order what is behind a fence -------------------------------------------------------------------

RELAXED = (
    """sm[tx] = A[cl, rank, tx]
{fence}
T.ptx["barrier.cluster.arrive.relaxed.aligned"]()
T.ptx["barrier.cluster.wait.acquire.aligned"]()
"""
    + ADDRESS.format(p="sm.ptr_to([63 - tx])")
    + """T.ptx["ld.shared::cluster.s32"](v[0], at[0])
B[cl, rank, tx] = v[0]
T.cuda.cluster_sync()"""
)


@pytest.mark.parametrize("fence", ["acq_rel.cluster", "sc.cluster", "acq_rel.gpu", "release.cluster"])
def test_relaxed_arrivals_behind_a_fence(fence):
    body = RELAXED.format(fence=f'T.ptx["fence.{fence}"]()')
    right(body, lambda a: np.roll(a, -1, 1)[:, :, ::-1])


@pytest.mark.parametrize("fence", ["pass", 'T.ptx["fence.acq_rel.cta"]()', 'T.ptx["fence.acquire.cluster"]()'])
def test_relaxed_arrivals_without_it_are_races(fence):
    assert reported(RELAXED.format(fence=fence)).kind == "race"


def test_what_is_written_behind_the_fence_is_a_race():
    body = RELAXED.format(fence='T.ptx["fence.acq_rel.cluster"]()\nsm[tx] = A[cl, rank, tx] + 1')
    assert reported(body).kind == "race"


@pytest.mark.parametrize("form", ["mapa.u64", "mapa.shared::cluster.u64"])
@pytest.mark.parametrize("who", ["next", "T.cast(rank, 'uint32')"])
def test_the_low_half_of_a_mapped_pointer_is_a_shared_address(form, who):
    body = f"""p: T.uint64
sm[tx] = A[cl, rank, tx]
T.cuda.cluster_sync()
T.ptx["{form}"](p, sm.ptr_to([tx]), {who})
T.ptx["ld.shared::cluster.s32"](v[0], T.cuda.smem_addr_from_uint64(p))
B[cl, rank, tx] = v[0]
T.ptx["ld.s32"](v[0], p)
B[cl, rank, tx] += v[0]
T.cuda.cluster_sync()"""
    right(body, lambda a: 2 * (np.roll(a, -1, 1) if who == "next" else a))
