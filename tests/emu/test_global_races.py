# SPDX-License-Identifier: Apache-2.0
"""Races through global memory: within a CTA, between CTAs, what orders them, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

SCHEDULES = ["late", *range(4)]
HEAD = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer(({n},), {t!r}), B: T.Buffer(({n},), {t!r}), F: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([{ctas}])
    tx = T.thread_id([64])
    seen = T.alloc_local((1,), "uint32")
    seen[0] = T.uint32(0)
"""


def kernel(body, n=256, ctas=4, t="int32"):
    text = HEAD.format(n=n, ctas=ctas, t=t) + "".join(f"    {line}\n" for line in body.split("\n"))
    return tirx.compile(tirx.from_source(text), target="cpu")


def run(body, schedule="late", **shape):
    n = shape.get("n", 256)
    a = np.arange(n).astype(shape.get("t", "int32"))
    b, f = np.zeros_like(a), np.zeros(4, "uint32")
    kernel(body, **shape)(a, b, f, schedule=schedule)
    return a, b


def reported(body, schedule="late", **shape):
    with pytest.raises(tirx.EmulationError) as e:
        run(body, schedule, **shape)
    return e.value


FENCED = """if bx == 0:
    B[tx] = tx + 1
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st.release.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
elif bx == 1:
    if tx == 0:
        while seen[0] == T.uint32(0):
            LOAD
        T.cuda.thread_fence()
    T.cuda.cta_sync()
    A[64 + tx] = B[63 - tx]"""
RELAXED = {
    "a relaxed load": "T.ptx.ld.relaxed.gpu.global_.b32(seen[0], F.ptr_to([0]))",
    "a volatile load": "T.ptx.ld.volatile.global_.b32(seen[0], F.ptr_to([0]))",
    "an atomic": "T.ptx.atom.relaxed.gpu.global_.or_.b32(seen[0], F.ptr_to([0]), T.uint32(0))",
    "T.cuda's atomic": "seen[0] = T.cuda.atomic_add(F.ptr_to([0]), T.uint32(0))",
}
CHAIN = """if tx == 0:
    if bx == 0:
        B[0] = 5
        T.ptx.fence.acq_rel.gpu()
        T.ptx.st.relaxed.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
    elif bx < 3:
        while seen[0] == T.uint32(0):
            T.ptx.ld.relaxed.gpu.global_.b32(seen[0], F.ptr_to([bx - 1]))
        T.ptx.fence.acq_rel.SCOPE()
        if bx == 2:
            A[0] = B[0]
        T.ptx.st.relaxed.gpu.global_.b32(F.ptr_to([bx]), T.uint32(1))"""
READERS = """if tx == 0:
    if bx < 3:
        A[bx * 64] = B[0]
        if bx == 2:
            T.ptx.red.release.gpu.global_.add.u32(F.ptr_to([0]), T.uint32(1))
    else:
        while seen[0] != T.uint32(1):
            T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([0]))
        B[0] = 7"""
TICKET = """if tx == 0:
    B[bx] = bx
    T.cuda.thread_fence()
    seen[0] = T.cuda.atomic_add(F.ptr_to([0]), T.uint32(1))
    T.cuda.thread_fence()
    if seen[0] == T.uint32(3):
        for i in range(4):
            A[0] = A[0] + B[i]"""

SILENT = {
    "each thread its own element": "B[bx * 64 + tx] = A[bx * 64 + tx]",
    "rows that begin off the blocks of the records": "if tx < 50:\n    B[bx * 50 + tx + 3] = A[tx]",
    "every second element": "B[(bx * 32 + tx // 2) * 2 + tx % 2] = A[tx]",
    "written twice by the same thread": "B[bx * 64 + tx] = A[tx]\nB[bx * 64 + tx] = A[tx] + 1",
    "read by others behind a barrier": (
        "B[bx * 64 + tx] = A[tx]\nT.cuda.cta_sync()\nif tx == 0:\n    A[bx] = B[bx * 64 + 63]"
    ).replace("A[tx]\n", "tx\n"),
    "additions of the whole GPU": "T.ptx.red.relaxed.gpu.global_.add.s32(B.ptr_to([0]), 1)",
    "compare and swap": (
        "old: T.int32 = B[0]\nT.cuda.cta_sync()\nseen2: T.int32 = T.cuda.atomic_cas(B.ptr_to([0]), old, tx + 1)"
    ),
    "a flag that is released": """if bx == 0:
    B[tx] = tx + 1
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st.release.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
elif bx == 1:
    while seen[0] == T.uint32(0):
        T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([0]))
    A[64 + tx] = B[63 - tx]""",
    "a fence by every writer": """if bx == 0:
    B[tx] = tx + 1
    T.cuda.thread_fence()
    T.cuda.cta_sync()
    if tx == 0:
        T.ptx.st.relaxed.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
elif bx == 1:
    if tx == 0:
        while seen[0] == T.uint32(0):
            T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([0]))
    T.cuda.cta_sync()
    A[64 + tx] = B[63 - tx]""",
    "a chain of three CTAs": """if bx == 0:
    if tx == 0:
        B[0] = 5
        T.ptx.st.release.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
elif bx < 3:
    if tx == 0:
        while seen[0] == T.uint32(0):
            T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([bx - 1]))
        if bx == 2:
            A[0] = B[0]
        T.ptx.st.release.gpu.global_.b32(F.ptr_to([bx]), T.uint32(1))""",
    **{f"a fence behind {how}": FENCED.replace("LOAD", load) for how, load in RELAXED.items()},
    "a fence by every reader": FENCED.replace("LOAD", RELAXED["a relaxed load"])
    .replace("        T.cuda.thread_fence()\n", "")
    .replace("    A[64", "    T.cuda.thread_fence()\n    A[64"),
    "fences of two kinds": FENCED.replace("LOAD", RELAXED["a relaxed load"]).replace(
        "        T.cuda.thread_fence()\n    T", "        T.ptx.fence.acquire.gpu()\n    T"
    ),
    "read by CTAs that are all waited for": READERS.replace("bx == 2", "bx < 3").replace(
        "T.uint32(1):", "T.uint32(3):"
    ),
    "a chain through a fence": CHAIN.replace("SCOPE", "gpu"),
    "a volatile load of what was stored volatile": "T.ptx.st.volatile.global_.b32(F.ptr_to([0]), T.uint32(1))\n"
    "T.ptx.ld.volatile.global_.b32(seen[0], F.ptr_to([0]))",
    "a ticket drawn behind a fence": TICKET,
}


@pytest.mark.parametrize("what", SILENT)
def test_silent(what):
    for schedule in SCHEDULES:
        run(SILENT[what], schedule)


RACES = {
    "two CTAs, one element": ("B[tx] = A[tx]", "race", 1),
    "the last element of the row before": ("B[bx * 63 + tx] = A[tx]", "race", 1),
    "two threads of a warp": ("B[bx * 64 + tx // 2] = A[tx]", "race", 1),
    "two warps": ("B[bx * 64 + tx % 32] = A[tx]", "race", 1),
    "a read of another thread's element": (
        "B[bx * 64 + tx] = 1\nA[bx * 64 + tx] = B[bx * 64 + (tx + 1) % 64]", "race", 2,
    ),
    "a read of another CTA's element": ("B[bx * 64 + tx] = 1\nA[bx * 64 + tx] = B[(bx + 1) % 4 * 64 + tx]", "race", 2),
    "additions of a CTA each": ("T.ptx.red.relaxed.cta.global_.add.s32(B.ptr_to([0]), 1)", "scope", 1),
    "a plain store beside additions": (
        "if bx == 3:\n    if tx == 0:\n        B[0] = 0\nT.ptx.red.relaxed.gpu.global_.add.s32(B.ptr_to([0]), 1)",
        "race", 2,
    ),
    "read by all, written by the last of them": (
        "A[bx * 64 + tx] = B[bx * 64]\nif tx == 63:\n    B[bx * 64] = 1", "race", 2,
    ),
    "read by three CTAs, of which one is waited for": (READERS.replace("bx == 2", "bx == 1"), "race", 2),
    "a flag that is not released": (
        SILENT["a flag that is released"].replace("st.release", "st.relaxed"), "race", 2,
    ),
    "a flag released to the CTA only": (
        SILENT["a flag that is released"].replace("st.release.gpu", "st.release.cta"), "scope", 2,
    ),
    "a chain with a weak link": (
        SILENT["a chain of three CTAs"].replace("ld.acquire.gpu.global_.b32(seen[0], F", "ld.global_.b32(seen[0], F"),
        "race", 2,
    ),
    **{
        f"{how} that nothing makes acquire": (
            FENCED.replace("LOAD", load).replace("        T.cuda.thread_fence()\n    T", "    T"), "race", 2,
        )
        for how, load in RELAXED.items()
    },
    "a flag acquired for the CTA only": (
        SILENT["a flag that is released"].replace("ld.acquire.gpu", "ld.acquire.cta"), "scope", 2,
    ),
    "a fence for the CTA only": (
        FENCED.replace("LOAD", RELAXED["a relaxed load"]).replace("thread_fence()", "thread_fence_block()")
        .replace("T.cuda.thread_fence_block()", "T.ptx.fence.acq_rel.cta()"), "scope", 2,
    ),
    "a chain through a fence for the CTA only": (CHAIN.replace("SCOPE", "cta"), "scope", 2),
    "a fence before the flag is read": (
        FENCED.replace("LOAD", RELAXED["a relaxed load"]).replace("        T.cuda.thread_fence()\n    T", "    T")
        .replace("        while", "        T.cuda.thread_fence()\n        while"), "race", 2,
    ),
    "a ticket whose drawer has no fence behind it": (
        TICKET.replace("    T.cuda.thread_fence()\n    if", "    if"), "race", 2,
    ),
    "a fence that only releases": (
        FENCED.replace("LOAD", RELAXED["a relaxed load"]).replace("T.cuda.thread_fence()", "T.ptx.fence.release.gpu()"),
        "race", 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", RACES)
def test_races(what):
    body, kind, lines = RACES[what]
    for schedule in SCHEDULES:
        e = reported(body, schedule)
        assert e.kind == kind and len(e.lines) == lines, str(e)
        assert len(str(e).split("\n")) <= 15


@pytest.mark.parametrize("t", ["int8", "float16", "float64"])
def test_other_sizes(t):
    for schedule in SCHEDULES:
        run("B[bx * 64 + tx] = A[bx * 64 + tx]", schedule, t=t)
        assert reported("B[bx * 63 + tx] = A[tx]", schedule, t=t).kind == "race"


def test_the_message_of_a_missing_acquire():
    e = reported(RACES["a relaxed load that nothing makes acquire"][0])
    assert str(e).splitlines()[0] == (
        "race: load of B[31] races with a store by another CTA, which has released it: what has read the flag here is "
        "relaxed, and no fence follows, so it does not acquire"
    )
    assert e.buffer == "B" and [x["cta"] for x in e.agents] == [(1, 0, 0), (0, 0, 0)]


CLUSTER = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer((2,), "int32"), F: T.Buffer((1,), "uint32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    cl = T.cluster_id([1])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    seen = T.alloc_local((1,), "uint32")
    seen[0] = T.uint32(0)
    if rank == 0:
        if tx == 0:
            A[0] = 5
            T.ptx.fence.acq_rel.WRITER()
            T.ptx.st.relaxed.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))
    else:
        if tx == 0:
            while seen[0] == T.uint32(0):
                T.ptx.ld.relaxed.gpu.global_.b32(seen[0], F.ptr_to([0]))
            T.ptx.fence.acq_rel.READER()
        T.cuda.warp_sync()
        B[tx] = A[0]
"""


WRITER_READER = [("gpu", "gpu"), ("cluster", "gpu"), ("gpu", "cluster"), ("cta", "gpu"), ("gpu", "cta")]


@pytest.mark.parametrize("writer, reader", WRITER_READER)
def test_fences_of_a_cluster(writer, reader):
    text = CLUSTER.replace("WRITER", writer).replace("READER", reader)
    exe = tirx.compile(tirx.from_source(text), target="cpu")
    args = np.zeros(2, "int32"), np.zeros(1, "uint32"), np.zeros(32, "int32")
    if "cta" not in (writer, reader):
        exe(*args)
        assert (args[2] == 5).all()
        return
    with pytest.raises(tirx.EmulationError) as e:
        exe(*args)
    assert e.value.kind == "scope" and e.value.buffer == "A" and len(e.value.lines) == 2
