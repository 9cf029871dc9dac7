# SPDX-License-Identifier: Apache-2.0
"""Engines and global memory: what bulk and tensor copies read and write there, against threads and each other."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

SCHEDULES = ["late", "early", *range(3)]
HEAD = """
from tirx.script import tirx as T
IN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
OUT = "cp.async.bulk.global.shared::cta.bulk_group"
ADD = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, F: T.Buffer((4,), "uint32")):
    A = T.match_buffer(A_ptr, (128,), "uint32", align=16)
    B = T.match_buffer(B_ptr, (128,), "uint32", align=16)
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    sm = T.alloc_shared((64,), "uint32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    seen = T.alloc_local((1,), "uint32")
    seen[0] = T.uint32(0)
    sm[tx] = T.uint32(tx)
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
"""
WAIT = "T.ptx.cp.async_.bulk.commit_group()\n    T.ptx.cp.async_.bulk.wait_group(0)"
READ = "T.ptx.cp.async_.bulk.commit_group()\n    T.ptx.cp.async_.bulk.wait_group.read(0)"
LOAD = """T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
    T.ptx[IN](sm.ptr_to([0]), A.ptr_to([64 * bx]), T.uint32(256), bar.ptr_to([0]))"""
SET = "T.ptx.st.release.gpu.global_.b32(F.ptr_to([0]), T.uint32(1))"
SPIN = """while seen[0] == T.uint32(0):
            T.ptx.ld.acquire.gpu.global_.b32(seen[0], F.ptr_to([0]))"""
SYNC = "T.cuda.cta_sync()\n"
FENCE = "T.ptx.fence.proxy.async_.global_()"


def run(body, schedule="late", head=HEAD, **options):
    exe = tirx.compile(tirx.from_source(head + "".join(f"    {line}\n" for line in body.split("\n"))), target="cpu")
    a, b, f = np.arange(128, dtype="uint32"), np.zeros(128, "uint32"), np.zeros(4, "uint32")
    return exe(a, b, f, schedule=schedule, **options), a, b


STORE = f"if tx == 0:\n    T.ptx[OUT](B.ptr_to([64 * bx]), sm.ptr_to([0]), T.uint32(256))\n    {WAIT}"
ACROSS = f"""if tx == 0:
    if bx == 0:
        T.ptx[OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
        {WAIT.replace("    ", "        ")}
        {SET}
    else:
        {SPIN}
        A[0] = B[5]"""
PRODUCE = f"""if bx == 0:
    A[tx] = T.uint32(tx)
    FIRST
    T.cuda.cta_sync()
    if tx == 0:
        {SET}
elif tx == 0:
        {SPIN}
        SECOND
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
        T.ptx[IN](sm.ptr_to([0]), A.ptr_to([0]), T.uint32(256), bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        B[0] = sm[63]"""
OWN = f"""A[64 * bx + tx] = T.uint32(7)
{FENCE}
T.cuda.cta_sync()
if tx == 0:
    {LOAD}
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
B[64 * bx + tx] = sm[63 - tx]"""
OVERWRITTEN = f"""if tx == 0:
    {LOAD}
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
A[64 * bx + tx] = sm[63 - tx]"""
SILENT = {
    "stored, waited for, read": f"{STORE}\nT.cuda.cta_sync()\nA[64 * bx + tx] = B[64 * bx + 63 - tx]",
    "read by the thread that waited": STORE + "\n    A[bx * 64] = B[bx * 64 + 9]",
    "stored behind reads": f"s: T.uint32 = B[64 * bx + tx]\nA[64 * bx + tx] = s\nT.cuda.cta_sync()\n{STORE}",
    "stored behind the writes of threads": f"B[64 * bx + tx] = T.uint32(1)\n{FENCE}\nT.cuda.cta_sync()\n{STORE}",
    "waited for by reading, and left": STORE.replace(WAIT, READ),
    "stored twice, with the wait between": STORE + STORE.replace("if tx == 0:", ""),
    "added by both CTAs": "if tx == 0:\n    T.ptx[ADD](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))\n    " + WAIT,
    "added beside atomics": "if tx == 0:\n    T.ptx.red.relaxed.gpu.global_.add.u32(B.ptr_to([bx]), T.uint32(1))\n"
    "if bx + tx == 0:\n    T.ptx[ADD](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))\n    " + WAIT,
    "another CTA's store, released": ACROSS,
    "another CTA's writes, fenced by the writers": PRODUCE.replace("FIRST", FENCE).replace("SECOND", "pass"),
    "another CTA's writes, fenced by the reader": PRODUCE.replace("FIRST", "pass").replace("SECOND", FENCE),
    "a fence for all memories": PRODUCE.replace("FIRST", "T.ptx.fence.proxy.async_()").replace("SECOND", "pass"),
    "loaded behind the writes of its CTA": OWN,
    "overwritten once it has been loaded": OVERWRITTEN,
    "the grid meets": f"""A[64 * bx + tx] = T.uint32(7)
{FENCE}
T.cuda.grid_sync()
if tx == 0:
    {LOAD.replace("64 * bx", "64 - 64 * bx")}
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
B[64 * bx + tx] = sm[63 - tx]""",
}


@pytest.mark.parametrize("what", SILENT)
def test_silent(what):
    for schedule in SCHEDULES:
        run(SILENT[what], schedule)


def but(name, *old_new):
    body = SILENT[name]
    for old, new in zip(old_new[::2], old_new[1::2], strict=True):
        assert old in body, (old, body)
        body = body.replace(old, new)
    return body


SHARED_FENCE = "T.ptx.fence.proxy.async_.shared__cta()"
ACROSS_IS = "another CTA's store, released"
READS = "another CTA's writes, fenced by the reader"
BROKEN = {
    "read behind the wait for the source": (but("read by the thread that waited", WAIT, READ), "async", "B"),
    "read without a wait": (but("read by the thread that waited", WAIT, "pass"), "async", "B"),
    "read by others that have not waited": (but("stored, waited for, read", "T.cuda.cta_sync()\nA", "A"), "async", "B"),
    "written while it is stored": (STORE.replace(WAIT, READ) + "\n    B[bx * 64 + 3] = T.uint32(0)", "async", "B"),
    "stored over unordered reads": (but("stored behind reads", SYNC, ""), "async", "B"),
    "stored over unordered writes": (but("stored behind the writes of threads", SYNC, ""), "async", "B"),
    "stored over writes without a fence": (but("stored behind the writes of threads", FENCE + "\n", ""), "proxy", "B"),
    "stored twice without a wait": (but("stored twice, with the wait between", WAIT, READ), "async", "B"),
    "stored by both CTAs": (STORE.replace("64 * bx", "0"), "race", "B"),
    "a store beside atomics": (but("added beside atomics", "T.ptx[ADD]", "T.ptx[OUT]"), "proxy", "B"),
    "another CTA's store, its source waited for": (but(ACROSS_IS, "_group(0)", "_group.read(0)"), "async", "B"),
    "another CTA's store, released too narrowly": (but(ACROSS_IS, "release.gpu", "release.cta"), "scope", "F"),
    "another CTA's store, not released": (but(ACROSS_IS, "st.release", "st.relaxed"), "race", "B"),
    "another CTA's writes without a proxy fence": (but(READS, FENCE, "pass"), "proxy", "A"),
    "another CTA's writes, fenced for shared memory": (but(READS, FENCE, SHARED_FENCE), "proxy", "A"),
    "another CTA's writes, fenced before they are acquired": (
        but(READS, "        " + FENCE + "\n", "", "elif tx == 0:\n", f"elif tx == 0:\n        {FENCE}\n"), "proxy", "A",
    ),
    "another CTA's writes, not acquired": (but(READS, "ld.acquire", "ld.relaxed"), "race", "A"),
    "loaded without a proxy fence": (but("loaded behind the writes of its CTA", FENCE + "\n", ""), "proxy", "A"),
    "loaded without the barrier": (but("loaded behind the writes of its CTA", SYNC + "if", "if"), "async", "A"),
    "overwritten while it is loaded": (
        OVERWRITTEN.replace("T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)\nA[64 * bx + tx] = sm[63 - tx]",
                            "A[64 * bx + tx] = T.uint32(1)\nT.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"), "async", "A",
    ),
    "the grid meets without a proxy fence": (but("the grid meets", FENCE + "\n", ""), "proxy", "A"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_broken(what):
    body, kind, buffer = BROKEN[what]
    for schedule in SCHEDULES:
        with pytest.raises(tirx.EmulationError) as e:
            run(body, schedule)
        lines = 1 if what == "stored by both CTAs" else 2
        assert (e.value.kind, e.value.buffer, len(e.value.lines)) == (kind, buffer, lines), str(e.value)


def test_messages():
    def first(what):
        with pytest.raises(tirx.EmulationError) as e:
            run(BROKEN[what][0])
        return str(e.value).splitlines()[0]

    assert first("read without a wait") == (
        "async: load of B[9], while a bulk copy of it is under way: it has not been waited for"
    )
    assert first("loaded without a proxy fence") == (
        "proxy: bulk copy of A[0] works through the async proxy: fence.proxy.async is missing after the store"
    )
    assert first("stored over unordered reads") == (
        "async: bulk copy of B[1] is not ordered after an earlier load by another thread"
    )
    assert first("stored by both CTAs") == (
        "race: bulk copy of B[0] races with a bulk copy by another CTA: nothing orders them"
    )


ASYNC = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer((128,), "uint32"), B: T.Buffer((128,), "uint32"), F: T.Buffer((4,), "uint32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    sm = T.alloc_shared((64,), "uint32", align=16)
    A[64 * bx + tx] = T.uint32(tx)
    SYNC
    if tx < 16:
        T.ptx.cp.async_.ca.shared__cta.global_(sm.ptr_to([4 * tx]), A.ptr_to([WHERE + 4 * tx]), 16)
    T.ptx.cp.async_.wait_all()
    T.cuda.cta_sync()
    B[64 * bx + tx] = sm[tx]
"""


@pytest.mark.parametrize(
    "sync, where, good",
    [("T.cuda.cta_sync()", "64 * bx", True), ("pass", "64 * bx", False), ("T.cuda.cta_sync()", "64 - 64 * bx", False)],
)
def test_cp_async_reads_as_a_thread_does(sync, where, good):
    text = ASYNC.replace("SYNC", sync).replace("WHERE", where)
    for schedule in SCHEDULES:
        if good:
            run("pass", schedule, text)
            continue
        with pytest.raises(tirx.EmulationError) as e:
            run("pass", schedule, text)
        assert e.value.kind == "race" and e.value.buffer == "A" and len(e.value.lines) == 2


TENSOR = """
from tirx.script import tirx as T

@T.prim_func
def k(m: T.TensorMap(), M: T.Buffer((16, 32), "float32"), OUT: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([64])
    sm = T.alloc_shared((8, 32), "float32", align=128)
    bar = T.alloc_shared((1,), "uint64")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    for r in range(4):
        sm[2 * r + tx // 32, tx % 32] = T.float32(1)
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
"""
STORE_BOX = """if tx == 0:
    T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](T.address_of(m), 0, 8 * bx, sm.ptr_to([0, 0]))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group(0)
T.cuda.cta_sync()
if tx < 32:
    OUT[32 * bx + tx] = M[8 * bx, tx]"""
LOAD_BOX = """for r in range(4):
    M[8 * bx + 2 * r + tx // 32, tx % 32] = T.float32(2)
T.ptx.fence.proxy.async_()
T.cuda.cta_sync()
if tx == 0:
    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(1024))
    T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
        sm.ptr_to([0, 0]), T.address_of(m), 0, 8 * bx, bar.ptr_to([0]))
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
if tx < 32:
    OUT[32 * bx + tx] = sm[7, tx]"""
BOXES = {
    "stored": (STORE_BOX, None),
    "loaded": (LOAD_BOX, None),
    "read without the wait": (STORE_BOX.replace("wait_group(0)", "wait_group.read(0)"), "async"),
    "both CTAs store the same": (STORE_BOX.replace("0, 8 * bx", "0, 7 * bx"), "race"),
    "no proxy fence": (LOAD_BOX.replace("T.ptx.fence.proxy.async_()\n", ""), "proxy"),
    "what the other CTA writes": (LOAD_BOX.replace("0, 8 * bx", "0, 8 - 8 * bx"), "race"),
}


@pytest.mark.parametrize("what", BOXES)
def test_tensor_copies(what):
    body, kind = BOXES[what]
    exe = tirx.compile(tirx.from_source(TENSOR + "".join(f"    {line}\n" for line in body.split("\n"))), target="cpu")
    for schedule in SCHEDULES:
        m, out = np.zeros((16, 32), "float32"), np.zeros(64, "float32")
        args = tirx.tensor_map(m, (32, 8)), m, out
        if kind is None:
            exe(*args, schedule=schedule)
            assert (out == (1 if what == "stored" else 2)).all()
            continue
        with pytest.raises(tirx.EmulationError) as e:
            exe(*args, schedule=schedule)
        assert (e.value.kind, e.value.buffer) == (kind, "M"), str(e.value)
        assert len(e.value.lines) == (1 if "same" in what else 2), str(e.value)
