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
