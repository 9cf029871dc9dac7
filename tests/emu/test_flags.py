# SPDX-License-Identifier: Apache-2.0
"""Flags in shared memory: what strong operations on them order, within a CTA and between the CTAs of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

SCHEDULES = ["late", "early", *range(3)]
HEAD = """
from tirx.script import tirx as T

@T.prim_func
def k(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    s = T.alloc_shared((64,), "int32")
    f = T.alloc_shared((4,), "uint32")
    seen = T.alloc_local((1,), "uint32")
    seen[0] = T.uint32(0)
    if tx < 4:
        f[tx] = T.uint32(0)
    T.cuda.cta_sync()
"""
PASS = """if tx == 0:
    s[5] = 7
    WRITE
elif tx == 32:
    while seen[0] == T.uint32(0):
        READ
    AFTER
    B[0] = s[5]"""
FENCE = "T.ptx.fence.acq_rel.cta()\n"
RELEASE = {
    "a store": "T.ptx.st.release.cta.shared__cta.b32(f.ptr_to([0]), T.uint32(1))",
    "an atomic": "T.ptx.atom.release.cta.shared__cta.exch.b32(seen[0], f.ptr_to([0]), T.uint32(1))",
    "a reduction": "T.ptx.red.release.cta.shared__cta.or_.b32(f.ptr_to([0]), T.uint32(1))",
    "a fence of the GPU": "T.cuda.thread_fence()\n    seen[0] = T.cuda.atomic_add(f.ptr_to([0]), T.uint32(1))",
    "a fence of the CTA": FENCE + "    T.ptx.st.relaxed.cta.shared__cta.b32(f.ptr_to([0]), T.uint32(1))",
    "volatile": "T.ptx.fence.acq_rel.cta()\n    T.ptx.st.volatile.shared__cta.b32(f.ptr_to([0]), T.uint32(1))",
}
ACQUIRE = {
    "a load": ("T.ptx.ld.acquire.cta.shared__cta.b32(seen[0], f.ptr_to([0]))", "pass"),
    "an atomic": ("T.ptx.atom.acquire.cta.shared__cta.or_.b32(seen[0], f.ptr_to([0]), T.uint32(0))", "pass"),
    "a fence of the CTA": (
        "T.ptx.ld.relaxed.cta.shared__cta.b32(seen[0], f.ptr_to([0]))", "T.ptx.fence.acq_rel.cta()",
    ),
    "a fence of the GPU": ("seen[0] = T.cuda.atomic_add(f.ptr_to([0]), T.uint32(0))", "T.cuda.thread_fence()"),
    "volatile": ("T.ptx.ld.volatile.shared__cta.b32(seen[0], f.ptr_to([0]))", "T.ptx.fence.acq_rel.cta()"),
}  # fmt: skip


def passed(release, acquire):
    read, after = ACQUIRE[acquire]
    return PASS.replace("WRITE", RELEASE[release]).replace("READ", read).replace("AFTER", after)


def run(body, schedule="late", head=HEAD):
    b = np.zeros(64, "int32")
    text = head + "".join(f"    {line}\n" for line in body.split("\n"))
    tirx.compile(tirx.from_source(text), target="cpu")(b, schedule=schedule)
    return b


@pytest.mark.parametrize("acquire", ACQUIRE)
@pytest.mark.parametrize("release", RELEASE)
def test_a_flag_orders(release, acquire):
    for schedule in SCHEDULES:
        assert run(passed(release, acquire), schedule)[0] == 7


LOCK = """if tx % 32 == 0:
    while seen[0] == T.uint32(0):
        T.ptx.atom.acquire.cta.shared__cta.exch.b32(seen[0], f.ptr_to([0]), T.uint32(1))
        seen[0] = T.uint32(1) - seen[0]
    s[0] = s[0] + 1
    T.ptx.st.release.cta.shared__cta.b32(f.ptr_to([0]), T.uint32(0))"""
SILENT = {
    "a lock": LOCK.replace("if tx", "if tx == 0:\n    s[0] = 0\nT.cuda.cta_sync()\nif tx"),
    "a counter without order": "old = T.cuda.atomic_add(f.ptr_to([0]), T.uint32(1))\nB[T.cast(old, 'int32')] = tx",
    "a histogram behind a fence": "T.cuda.thread_fence()\nold = T.cuda.atomic_add(f.ptr_to([tx % 4]), T.uint32(1))\n"
    "T.cuda.cta_sync()\nB[tx] = T.cast(f[tx % 4], 'int32')",
    "a chain of three": """if tx == 0:
    s[5] = 7
    T.ptx.st.release.cta.shared__cta.b32(f.ptr_to([0]), T.uint32(1))
elif tx == 32:
    while seen[0] == T.uint32(0):
        T.ptx.ld.acquire.cta.shared__cta.b32(seen[0], f.ptr_to([0]))
    T.ptx.st.release.cta.shared__cta.b32(f.ptr_to([1]), T.uint32(1))
elif tx == 1:
    while seen[0] == T.uint32(0):
        T.ptx.ld.acquire.cta.shared__cta.b32(seen[0], f.ptr_to([1]))
    B[0] = s[5]""",
    "two that release, one that waits for both": """if tx == 0 or tx == 32:
    s[tx] = 7
    T.ptx.red.release.cta.shared__cta.add.u32(f.ptr_to([0]), T.uint32(1))
elif tx == 33:
    while seen[0] != T.uint32(2):
        T.ptx.ld.acquire.cta.shared__cta.b32(seen[0], f.ptr_to([0]))
    B[0] = s[0] + s[32]""",
}


@pytest.mark.parametrize("what", SILENT)
def test_silent(what):
    for schedule in SCHEDULES:
        run(SILENT[what], schedule)


def broken(release="a store", acquire="a load", **swap):
    body = passed(release, acquire)
    for old, new in swap.values():
        assert old in body
        body = body.replace(old, new)
    return body


RACES = {
    "a relaxed store": broken(x=("st.release", "st.relaxed")),
    "a relaxed load": broken(x=("ld.acquire", "ld.relaxed")),
    "a volatile load": broken(x=("ld.acquire.cta", "ld.volatile")),
    "a relaxed atomic": broken(acquire="an atomic", x=("atom.acquire", "atom.relaxed")),
    "no fence before": broken("a fence of the CTA", x=("T.ptx.fence.acq_rel.cta()\n    T.ptx.st", "T.ptx.st")),
    "no fence behind": broken(acquire="a fence of the CTA", x=("    T.ptx.fence.acq_rel.cta()\n    B", "    B")),
    "the fence behind the flag": broken(
        "a fence of the CTA", x=(FENCE + "    T.ptx.st", "T.ptx.st"), y=("elif", "    " + FENCE + "elif"),
    ),
    "written behind the release": broken(x=("elif", "    s[5] = 8\nelif")),
    "a lock that is left relaxed": SILENT["a lock"].replace("st.release", "st.relaxed"),
    "a lock taken relaxed": SILENT["a lock"].replace("atom.acquire", "atom.relaxed"),
    "a flag that is a plain store": broken(x=(RELEASE["a store"], "f[0] = T.uint32(1)")),
    "a flag read by a plain load": broken(x=(ACQUIRE["a load"][0], "seen[0] = f[0]")),
}  # fmt: skip


@pytest.mark.parametrize("what", RACES)
def test_races(what):
    for schedule in SCHEDULES:
        with pytest.raises(tirx.EmulationError) as e:
            run(RACES[what], schedule)
        assert e.value.kind == "race" and len(e.value.lines) == (1 if "lock" in what else 2), str(e.value)
        assert e.value.buffer == ("f" if what.startswith("a flag") else "s")


def test_the_message():
    with pytest.raises(tirx.EmulationError) as e:
        run(RACES["a relaxed load"])
    assert str(e.value).splitlines()[0] == (
        "race: load of s[5] races with a store by another thread, which has released it: what has read the flag here "
        "is relaxed, and no fence follows, so it does not acquire"
    )


CLUSTER = """
from tirx.script import tirx as T

@T.prim_func
def k(B: T.Buffer((64,), "int32")):
    T.device_entry()
    cl = T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    f = T.alloc_shared((1,), "uint32")
    s = T.alloc_shared((1,), "int32")
    seen = T.alloc_local((1,), "uint32")
    there = T.alloc_local((1,), "uint32")
    data = T.alloc_local((1,), "uint32")
    seen[0] = T.uint32(0)
    if tx == 0:
        f[0] = T.uint32(0)
        s[0] = 0
    T.ptx.barrier.cluster.arrive.aligned()
    T.ptx.barrier.cluster.wait.aligned()
"""
REMOTE = """if tx == 0:
    if rank == 0:
        T.ptx.mapa.shared__cluster.u32(there[0], T.cuda.cvta_generic_to_shared(f.ptr_to([0])), T.uint32(1))
        T.ptx.mapa.shared__cluster.u32(data[0], T.cuda.cvta_generic_to_shared(s.ptr_to([0])), T.uint32(1))
        T.ptx.st.shared__cluster.b32(data[0], T.uint32(7))
        T.ptx.st.release.cluster.shared__cluster.b32(there[0], T.uint32(1))
    else:
        while seen[0] == T.uint32(0):
            T.ptx.ld.acquire.cluster.shared__cta.b32(seen[0], f.ptr_to([0]))
        B[0] = s[0]
T.ptx.barrier.cluster.arrive.aligned()
T.ptx.barrier.cluster.wait.aligned()"""


def test_a_flag_of_another_cta():
    for schedule in SCHEDULES:
        assert run(REMOTE, schedule, CLUSTER)[0] == 7


@pytest.mark.parametrize("side", ["ld.acquire", "st.release"])
def test_a_scope_of_one_cta(side):
    old, new = f"{side}.cluster", f"{side}.cta"
    for schedule in SCHEDULES:
        with pytest.raises(tirx.EmulationError) as e:
            run(REMOTE.replace(old, new), schedule, CLUSTER)
        assert e.value.kind == "scope" and len(e.value.lines) == 2, str(e.value)
        assert e.value.buffer in ("f", "s")


BARRIER = CLUSTER.replace(
    "    seen[0] =",
    """    bar = T.alloc_shared((1,), "uint64")
    done = T.alloc_local((1,), "bool")
    done[0] = T.bool(False)
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
    seen[0] =""",
)
HAND_OVER = """if tx == 0:
    if rank == 0:
        T.ptx.mapa.shared__cluster.u32(there[0], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(1))
        T.ptx.mapa.shared__cluster.u32(data[0], T.cuda.cvta_generic_to_shared(s.ptr_to([0])), T.uint32(1))
        T.ptx.st.shared__cluster.b32(data[0], T.uint32(7))
        T.ptx["mbarrier.arrive ARRIVE.shared::cluster.b64"](there[0])
    else:
        while not done[0]:
            T.ptx["mbarrier.try_wait.parity WAIT.shared::cta.b64"](done[0], bar.ptr_to([0]), T.uint32(0))
        B[0] = s[0]
T.ptx.barrier.cluster.arrive.aligned()
T.ptx.barrier.cluster.wait.aligned()"""


@pytest.mark.parametrize("arrive", ["", ".release.cluster", ".release.cta"])
@pytest.mark.parametrize("wait", ["", ".acquire.cluster", ".acquire.cta"])
def test_a_scope_that_is_written_is_taken_at_its_word(arrive, wait):
    body = HAND_OVER.replace(" ARRIVE", arrive).replace(" WAIT", wait)
    for schedule in SCHEDULES:
        if ".cta" not in arrive + wait:
            assert run(body, schedule, BARRIER)[0] == 7
            continue
        with pytest.raises(tirx.EmulationError) as e:
            run(body, schedule, BARRIER)
        assert (e.value.kind, e.value.buffer, len(e.value.lines)) == ("scope", "s", 2), str(e.value)


RELAY = """if rank == 0:
    if tx == 0:
        T.ptx.mapa.shared__cluster.u32(there[0], T.cuda.cvta_generic_to_shared(f.ptr_to([0])), T.uint32(1))
        T.ptx.mapa.shared__cluster.u32(data[0], T.cuda.cvta_generic_to_shared(s.ptr_to([0])), T.uint32(1))
        T.ptx.st.shared__cluster.b32(data[0], T.uint32(7))
        T.ptx.st.release.cluster.shared__cluster.b32(there[0], T.uint32(1))
elif tx == 1:
    while seen[0] == T.uint32(0):
        T.ptx.ld.acquire.cluster.shared__cta.b32(seen[0], f.ptr_to([0]))
    T.ptx["mbarrier.arrive.release.cta.shared::cta.b64"](bar.ptr_to([0]))
elif tx == 0:
    while not done[0]:
        T.ptx["mbarrier.try_wait.parity.acquire.cta.shared::cta.b64"](done[0], bar.ptr_to([0]), T.uint32(0))
    B[0] = s[0]
T.ptx.barrier.cluster.arrive()
T.ptx.barrier.cluster.wait()"""


def test_what_a_thread_of_the_cta_hands_on_counts():
    for schedule in SCHEDULES:
        assert run(RELAY, schedule, BARRIER)[0] == 7


READERS = """if rank == 1:
    T.ptx.mapa.shared__cluster.u32(there[0], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.uint32(0))
    T.ptx.mapa.shared__cluster.u32(data[0], T.cuda.cvta_generic_to_shared(s.ptr_to([0])), T.uint32(0))
    if tx < 8:
        T.ptx.ld.shared__cluster.b32(seen[0], data[0])
        B[tx] = T.cast(seen[0], "int32")
    if tx >= FIRST and tx < 8:
        T.ptx["mbarrier.arrive.release.cluster.shared::cluster.b64"](there[0])
elif tx == 0:
    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
    s[0] = 5
T.ptx.barrier.cluster.arrive()
T.ptx.barrier.cluster.wait()"""


@pytest.mark.parametrize("first", [0, 1, 4])
def test_readers_of_another_cta_are_all_kept(first):
    """Eight threads have read; those that arrive are not all of them."""
    head = BARRIER.replace("bar.ptr_to([0]), T.uint32(1))", f"bar.ptr_to([0]), T.uint32({8 - first}))")
    for schedule in SCHEDULES:
        if first == 0:
            run(READERS.replace("FIRST", "0"), schedule, head)
            continue
        with pytest.raises(tirx.EmulationError) as e:
            run(READERS.replace("FIRST", str(first)), schedule, head)
        assert (e.value.kind, e.value.buffer, len(e.value.lines)) == ("race", "s", 2), str(e.value)
