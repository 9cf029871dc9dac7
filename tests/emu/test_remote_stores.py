# SPDX-License-Identifier: Apache-2.0
"""st.async, red.async, st.bulk, multimem with one replica, accesses of 128 bits, cluster launch control."""

from __future__ import annotations

import collections
import re

import numpy as np
import pytest

import tirx

SCHEDULES = ["late", "early", *range(6)]
SIZE = 4


def kernel(text):
    return tirx.compile(tirx.from_source("from tirx.script import tirx as T\n\n@T.prim_func\n" + text), target="cpu")


def kind_of(text, *arrays, **options):
    with pytest.raises(tirx.EmulationError) as e:
        kernel(text)(*arrays, **options)
    return e.value


# ---- st.async and red.async: every CTA of a cluster writes to the next one ------------------------------------------

REMOTE = """
def k(A: T.Buffer((4, 32, 2), "{t}"), B: T.Buffer((4, {n}), "{t}")):
    T.device_entry()
    cl = T.cluster_id([1])
    rank = T.cta_id_in_cluster([4])
    tx = T.thread_id([32])
    sm = T.alloc_shared(({n},), "{t}", align=128)
    bar = T.alloc_shared((1,), "uint64")
    at = T.alloc_local((2,), "uint32")
    next: T.let = T.cast((rank + 1) % 4, "uint32")
    for i in range(({n} + 31) // 32):
        if i * 32 + tx < {n}:
            sm[i * 32 + tx] = T.cast({start}, "{t}")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
        T.ptx["mbarrier.arrive.expect_tx.shared.b64"](bar.ptr_to([0]), {expect})
    T.cuda.cluster_sync()
    {body}
    {wait}
    for i in range(({n} + 31) // 32):
        if i * 32 + tx < {n}:
            B[rank, i * 32 + tx] = sm[i * 32 + tx]
"""
TO = """T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(sm.ptr_to([{i}])), next)
    T.ptx.mapa.shared__cluster.u32(at[1], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), next)
    """
STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
WAIT = "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"


def remote(t, body, n=64, start=1, expect=None, wait=WAIT, i="2 * tx"):
    size = np.dtype(t).itemsize
    return REMOTE.format(
        t=t, n=n, start=start, expect=64 * size if expect is None else expect, body=TO.format(i=i) + body, wait=wait
    )


def data(t):
    x = np.random.default_rng(1).integers(0, 2**31, (4, 32, 2))
    return x.astype(t) if np.dtype(t).kind != "f" else x.astype(t) / 7


@pytest.mark.parametrize("t", ["int32", "uint32", "float32", "int64", "uint64", "float64"])
@pytest.mark.parametrize("vec", [False, True])
def test_async_stores(t, vec):
    letter = {"i": "s", "u": "b", "f": "f"}[np.dtype(t).kind] + str(8 * np.dtype(t).itemsize)
    if vec:
        body = f'T.ptx["{STORE}.v2.{letter}"](at[0], A[rank, tx, 0], A[rank, tx, 1], at[1])'
    else:
        body = f"""T.ptx["{STORE}.{letter}"](at[0], A[rank, tx, 0], at[1])
    T.ptx["{STORE}.{letter}"](at[0] + T.uint32({np.dtype(t).itemsize}), A[rank, tx, 1], at[1])"""
    exe = kernel(remote(t, body))
    a = data(t)
    for schedule in SCHEDULES:
        for check in (True, False):
            b = np.zeros((4, 64), t)
            exe(a, b, schedule=schedule, check=check)
            np.testing.assert_array_equal(b, np.roll(a.reshape(4, 64), 1, 0))


REDUCTIONS = {
    "add.u32": ("uint32", 3, lambda x, s: np.uint32((int(x.astype("u8").sum()) + s) % 2**32)),
    "add.u64": ("uint64", 3, lambda x, s: np.uint64((int(sum(map(int, x))) + s) % 2**64)),
    "add.s32": ("int32", 3, lambda x, s: np.uint32((int(x.astype("i8").sum()) + s) % 2**32).view("i4")),
    "min.s32": ("int32", 2**31 - 1, lambda x, s: x.min()),
    "max.u32": ("uint32", 0, lambda x, s: x.max()),
    "and.b32": ("uint32", 2**32 - 1, lambda x, s: np.bitwise_and.reduce(x)),
    "or.b32": ("uint32", 0, lambda x, s: np.bitwise_or.reduce(x)),
    "xor.b32": ("uint32", 5, lambda x, s: np.bitwise_xor.reduce(x) ^ np.uint32(s)),
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_async_reductions_of_one_word(op):
    t, start, want = REDUCTIONS[op]
    body = f"""T.ptx["{RED}.{op}"](at[0], A[rank, tx, 0], at[1])
    T.ptx["{RED}.{op}"](at[0], A[rank, tx, 1], at[1])"""
    exe = kernel(remote(t, body, n=1, start=start, i="0"))
    a = data(t)
    for schedule in SCHEDULES:
        for check in (True, False):
            b = np.zeros((4, 1), t)
            exe(a, b, schedule=schedule, check=check)
            assert [b[(r + 1) % 4, 0] for r in range(4)] == [want(a[r].reshape(-1), start) for r in range(4)]


PUT = f'T.ptx["{STORE}.v2.s32"](at[0], A[rank, tx, 0], A[rank, tx, 1], at[1])'
HERE = "T.ptx.mapa.shared__cluster.u32(at[1], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.cast(rank, 'uint32'))"
MISUSES = {
    "not waited for": (dict(wait=""), PUT, "async", "load of sm.* st async .* waited for"),
    "too few bytes announced": (dict(expect=252), PUT, "mbarrier|deadlock|async", ""),
    "too many bytes announced": (dict(expect=260), PUT, "deadlock", "4 bytes are missing"),
    "odd address": (dict(), PUT.replace("at[0],", "at[0] + T.uint32(4),"), "misaligned", "is not a multiple of 8"),
    "behind the end": (dict(i="2 * tx + 2"), PUT, "mbarrier", "touches a live mbarrier"),
    "barrier elsewhere": (
        dict(), HERE + "\n    " + PUT, "mbarrier",
        "to CTA . of the cluster signals bar.0. of CTA .: the two lie in one CTA",
    ),
    "no barrier": (dict(), PUT.replace("at[1])", "at[0])"), "mbarrier", "there is no mbarrier here"),
    "twice": (dict(), PUT + "\n    " + PUT, "async", "begins before the end of another"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_misused_async_stores(name):
    options, body, kind, text = MISUSES[name]
    e = kind_of(remote("int32", body, **options), data("int32"), np.zeros((4, 64), "i4"))
    assert e.kind in kind.split("|")
    assert re.search(text, str(e))


def test_a_reduction_and_a_store_do_not_mix():
    body = f"""T.ptx["{RED}.add.s32"](at[0], A[rank, tx, 0], at[1])
    T.ptx["{STORE}.s32"](at[0], A[rank, tx, 1], at[1])"""
    e = kind_of(remote("int32", body), data("int32"), np.zeros((4, 64), "i4"))
    assert e.kind == "async" and "begins before the end of another" in str(e)


# ---- st.bulk --------------------------------------------------------------------------------------------------------

BULK = """
def k(B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    sm = T.alloc_shared((64,), "int32", align=128)
    sm[tx] = tx + 1
    {sync}
    if tx == 0:
        T.ptx["st.bulk.weak.shared::cta"](sm.ptr_to([{at}]), T.uint64({n}))
    T.cuda.cta_sync()
    B[tx] = sm[tx]
"""


@pytest.mark.parametrize("at, n", [(0, 256), (2, 8), (10, 120), (4, 0)])
def test_bulk_zeros(at, n):
    exe = kernel(BULK.format(at=at, n=n, sync="T.cuda.cta_sync()"))
    want = np.arange(1, 65)
    want[at : at + n // 4] = 0
    for check in (True, False):
        b = np.full(64, -1, "i4")
        exe(b, check=check)
        np.testing.assert_array_equal(b, want)


@pytest.mark.parametrize(
    "at, n, sync, kind, text",
    [
        (1, 8, "T.cuda.cta_sync()", "misaligned", "byte 4 of sm is not a multiple of 8"),
        (0, 12, "T.cuda.cta_sync()", "misaligned", "of 12 bytes: the size is a multiple of 8"),
        (62, 16, "T.cuda.cta_sync()", "out_of_bounds", "16 bytes at byte 248 of sm, which has 256 bytes"),
        (0, 256, "", "race", "store of sm"),
    ],
)
def test_misused_bulk_zeros(at, n, sync, kind, text):
    e = kind_of(BULK.format(at=at, n=n, sync=sync), np.zeros(64, "i4"))
    assert e.kind == kind and text in str(e)


# ---- multimem: one replica is ordinary memory -----------------------------------------------------------------------


def test_multimem():
    exe = kernel("""
def k(A: T.Buffer((32, 4), "float32"), B: T.Buffer((32, 4), "float32"), H: T.Buffer((32, 4), "uint32"),
      I: T.Buffer((32,), "int32"), S: T.Buffer((4,), "int32"), F: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    v = T.alloc_local((4,), "float32")
    h = T.alloc_local((4,), "uint32")
    i = T.alloc_local((1,), "int32")
    T.ptx["multimem.ld_reduce.relaxed.gpu.global.add.v4.f32"](*v, A.ptr_to([tx, 0]))
    T.ptx["multimem.st.release.gpu.global.v4.f32"](B.ptr_to([31 - tx, 0]), *v)
    T.ptx["multimem.ld_reduce.global.add.acc::f32.v4.f16x2"](*h, H.ptr_to([tx, 0]))
    T.ptx["multimem.red.relaxed.gpu.global.add.v4.f16x2"](H.ptr_to([tx, 0]), *h)
    T.ptx["multimem.ld_reduce.global.max.s32"](i[0], I.ptr_to([tx]))
    T.ptx["multimem.red.relaxed.gpu.global.max.s32"](S.ptr_to([0]), i[0])
    T.ptx["multimem.red.relaxed.gpu.global.add.s32"](S.ptr_to([1]), i[0])
    T.ptx["multimem.red.relaxed.gpu.global.add.v4.f32"](F.ptr_to([0]), *v)
    if tx == 3:
        T.ptx["multimem.st.global.s32"](S.ptr_to([2]), i[0])
""")
    r = np.random.default_rng(0)
    a, i = r.integers(-9, 9, (32, 4)).astype("f4"), r.integers(-99, 99, 32).astype("i4")
    h = r.integers(-50, 50, (32, 8)).astype("f2")
    b, s, f, h2 = np.zeros_like(a), np.full(4, -200, "i4"), np.ones(4, "f4"), h.copy()
    exe(a, b, h2.view("u4"), i, s, f)
    np.testing.assert_array_equal(b, a[::-1])
    np.testing.assert_array_equal(h2, h + h)
    assert s.tolist() == [i.max(), i.sum() - 200, i[3], -200]
    np.testing.assert_array_equal(f, a.sum(0) + 1)


# ---- 128 bits -------------------------------------------------------------------------------------------------------

WIDE = """
def k(A: T.Buffer((64, 2), "uint64"), B: T.Buffer((64, 2), "uint64"), G: T.Buffer((64, 2), "uint64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    v: T.uint128
    w: T.uint128
    old: T.uint128
    m = T.alloc_shared((65,), "uint128", align=16)
    T.ptx["ld.global.b128"](v, A.ptr_to([tx, 0]))
    T.ptx["st.shared.b128"](m.ptr_to([63 - tx]), v)
    T.cuda.cta_sync()
    {body}
    T.ptx["st.release.gpu.global.b128"](B.ptr_to([tx, 0]), old)
"""


def wide_data():
    r = np.random.default_rng(5)
    a = r.integers(0, 2**64, (64, 2), dtype=np.uint64)
    g = a.copy()
    g[::3, 0] += np.uint64(1)
    g[1::3, 1] ^= np.uint64(1 << 63)
    return a, np.zeros_like(a), g


def test_wide_accesses_and_atomics():
    a, b, g = wide_data()
    before = g.copy()
    kernel(WIDE.format(body="""T.ptx["ld.shared.b128"](w, m.ptr_to([tx]))
    T.ptx["atom.acq_rel.gpu.global.cas.b128"](old, G.ptr_to([tx, 0]), v, w)"""))(a, b, g)  # fmt: skip
    np.testing.assert_array_equal(b, before)
    same = (before == a).all(1)
    assert 0 < same.sum() < 64
    np.testing.assert_array_equal(g, np.where(same[:, None], a[::-1], before))


def test_wide_exchange_in_shared_memory():
    a, b, g = wide_data()
    kernel(WIDE.format(body='T.ptx["atom.shared.exch.b128"](old, m.ptr_to([0]), v)'))(a, b, g)
    left = collections.Counter(map(tuple, [*a.tolist(), a[63].tolist()]))
    left.subtract(map(tuple, b.tolist()))
    assert min(left.values()) == 0 and sum(left.values()) == 1  # each value comes out but the last one


@pytest.mark.parametrize(
    "body, kind, text",
    [
        ('T.ptx["ld.global.b128"](old, A.ptr_to([0, 1]))', "misaligned", "16"),
        ('T.ptx["ld.global.b128"](old, A.ptr_to([tx + 1, 0]))', "out_of_bounds", "A"),
        ('T.ptx["ld.shared.b128"](old, m.ptr_to([tx + 1]))', "uninitialised", "nobody has written"),
        ('T.ptx["atom.global.exch.b128"](old, A.ptr_to([0, 1]), v)', "misaligned", "not a multiple of 16"),
        ('T.ptx["atom.shared.exch.b128"](old, m.ptr_to([tx + 65]), v)', "out_of_bounds", "of m, which has 1040 bytes"),
        ("pass", "uninitialised", "old"),
    ],
)
def test_misused_wide_accesses(body, kind, text):
    e = kind_of(WIDE.format(body=body), *wide_data())
    assert e.kind == kind and text in str(e)


# ---- cluster launch control -----------------------------------------------------------------------------------------

ONE = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
ALL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128"
FIRST = "clusterlaunchcontrol.query_cancel.get_first_ctaid"
TILES = """
def k(O: T.Buffer((4, 3, 5), "int32"), N: T.Buffer((1,), "int32")):
    T.device_entry()
    bx, by, bz = T.cta_id([5, 3, 4])
    tx = T.thread_id([64])
    answer = T.alloc_shared((1,), "uint128", align=16)
    bar = T.alloc_shared((1,), "uint64")
    at = T.alloc_local((3,), "uint32")
    go: T.uint32
    turn: T.int32
    go = T.uint32(1)
    turn = 0
    at[0] = T.cast(bx, "uint32")
    at[1] = T.cast(by, "uint32")
    at[2] = T.cast(bz, "uint32")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
        T.ptx.red.add.s32(N.ptr_to([0]), 1)
    while go != T.uint32(0):
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx["{one}"](answer.ptr_to([0]), bar.ptr_to([0]))
            T.ptx["mbarrier.arrive.expect_tx.shared.b64"](bar.ptr_to([0]), 16)
            O[at[2], at[1], at[0]] += 1
        {wait}
        turn = turn + 1
        T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](go, answer[0])
        {behind}
"""
SINGLY = f"""if go != T.uint32(0):
            T.ptx["{FIRST}::x.b32.b128"](at[0], answer[0])
            T.ptx["{FIRST}::y.b32.b128"](at[1], answer[0])
            T.ptx["{FIRST}::z.b32.b128"](at[2], answer[0])"""
FOUR = f'T.ptx["{FIRST}.v4.b32.b128"](at[0], at[1], at[2], T.ptx.SINK, answer[0], pred=go)'
DONE = "T.cuda.mbarrier_wait(bar.ptr_to([0]), turn % 2)"


def tiles(wait=DONE, behind=SINGLY):
    return TILES.format(one=ONE, wait=wait, behind=behind)


@pytest.mark.parametrize("behind", [SINGLY, FOUR], ids=["singly", "four"])
def test_every_tile_is_done_once(behind):
    exe = kernel(tiles(behind=behind))
    for schedule in SCHEDULES:
        for check in (True, False):
            o, n = np.zeros((4, 3, 5), "i4"), np.zeros(1, "i4")
            exe(o, n, schedule=schedule, check=check)
            assert (o == 1).all() and 1 <= n[0] < 60


@pytest.mark.parametrize("workers", [1, 3])
def test_every_tile_is_done_once_by_several_workers(workers, monkeypatch):
    monkeypatch.setenv("TIRX_THREADS", str(workers))
    o, n = np.zeros((4, 3, 5), "i4"), np.zeros(1, "i4")
    kernel(tiles())(o, n, check=False)
    assert (o == 1).all()


def test_the_answer_goes_to_all_ctas_of_the_cluster():
    exe = kernel(f"""
def k(O: T.Buffer((12,), "int32")):
    T.device_entry()
    cl = T.cluster_id([6])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    answer = T.alloc_shared((1,), "uint128", align=16)
    bar = T.alloc_shared((1,), "uint64")
    x: T.uint32
    go: T.uint32
    turn: T.int32
    x = T.cast(cl * 2, "uint32")
    go = T.uint32(1)
    turn = 0
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cluster_sync()
    while go != T.uint32(0):
        if tx == 0:
            T.ptx["mbarrier.arrive.expect_tx.shared.b64"](bar.ptr_to([0]), 16)
            if rank == 0:
                T.ptx["{ALL}"](answer.ptr_to([0]), bar.ptr_to([0]))
            O[T.cast(x, "int32") + rank] += 1
        T.cuda.mbarrier_wait(bar.ptr_to([0]), turn % 2)
        turn = turn + 1
        T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](go, answer[0])
        T.ptx["{FIRST}::x.b32.b128"](x, answer[0], pred=go)
        T.cuda.cluster_sync()
""")
    for schedule in SCHEDULES:
        for check in (True, False):
            o = np.zeros(12, "i4")
            exe(o, schedule=schedule, check=check)
            assert (o == 1).all()


REFUSED = SINGLY.replace("if go != T.uint32(0):", "if turn > 0:")
AGAIN = SINGLY + "\n        go = T.uint32(1)"


@pytest.mark.parametrize(
    "change, kind, text",
    [
        (dict(wait="T.cuda.cta_sync()"), "async", "load of answer"),
        (dict(behind=REFUSED), "cluster", "get_first_ctaid of a request that has failed: is_canceled tells"),
        (dict(behind=AGAIN), "cluster", "try_cancel after a request that this CTA knows to have failed"),
    ],
)
def test_misused_launch_control(change, kind, text):
    e = kind_of(tiles(**change), np.zeros((4, 3, 5), "i4"), np.zeros(1, "i4"))
    assert e.kind == kind and text in str(e)


def test_an_answer_that_is_none():
    e = kind_of("""
def k(O: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    go: T.uint32
    T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](go, T.uint128(77))
    if tx == 0:
        O[0] = go
""", np.zeros(1, "u4"))  # fmt: skip
    assert e.kind == "cluster" and "query_cancel of 16 bytes that no try_cancel has answered" in str(e)
