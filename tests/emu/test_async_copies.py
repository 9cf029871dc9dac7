# SPDX-License-Identifier: Apache-2.0
"""cp.async and bulk copies in the emulator: values under every schedule, what each wait makes visible, reports."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

SCHEDULES = ["late", "early", *range(8)]
HEAD = """
from tirx.script import tirx as T
BULK_IN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
BULK_OUT = "cp.async.bulk.global.shared::cta.bulk_group"

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, ({n},), {a!r}, align=16)
    B = T.match_buffer(B_ptr, ({m},), {a!r}, align=16)
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([{threads}])
    sm = T.alloc_shared(({smem},), {a!r}, align=128)
    bar = T.alloc_shared((2,), "uint64")
"""


def kernel(body, n=64, m=64, smem=64, threads=64, dtype="int32"):
    text = HEAD.format(n=n, m=m, smem=smem, threads=threads, a=dtype)
    return tirx.compile(tirx.from_source(text + "".join(f"    {line}\n" for line in body.split("\n"))), target="cpu")


def report(exe, *arrays, **options):
    with pytest.raises(tirx.EmulationError) as e:
        exe(*arrays, **options)
    return e.value


def ints(n, dtype="int32"):
    return np.random.default_rng(0).integers(-999, 999, n).astype(dtype)


def line_of(error, text):
    """Both source lines are shown in the report."""
    assert text in str(error), str(error)


INIT = """if tx == 0:
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
    T.ptx.fence.mbarrier_init.release.cluster()
T.cuda.cta_sync()"""


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("check", [True, False])
def test_cp_async_sizes(size, check):
    per = size // 4
    exe = kernel(
        f"""T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([tx * {per}]), A.ptr_to([tx * {per}]), {size})
T.ptx.cp.async_.commit_group()
T.ptx.cp.async_.wait_group(0)
T.cuda.cta_sync()
for i in range({per}):
    B[tx * {per} + i] = sm[{64 * per - 1} - tx * {per} - i]""",
        n=64 * per,
        m=64 * per,
        smem=64 * per,
    )
    a = ints(64 * per)
    for schedule in SCHEDULES:
        b = np.zeros_like(a)
        exe(a, b, schedule=schedule, check=check)
        np.testing.assert_array_equal(b, a[::-1])


def test_cp_async_fills_with_zeros():
    exe = kernel(
        """T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([tx * 4]), A.ptr_to([tx * 4]), 16, T.cast(tx % 5 * 4, "uint32"))
T.ptx.cp.async_.wait_all()
for i in range(4):
    B[tx * 4 + i] = sm[tx * 4 + i]""",
        n=256,
        m=256,
        smem=256,
    )
    a, b = ints(256), np.zeros(256, "int32")
    exe(a, b)
    keep = np.arange(4)[None, :] < (np.arange(64) % 5)[:, None]
    np.testing.assert_array_equal(b.reshape(64, 4), np.where(keep, a.reshape(64, 4), 0))


def test_cp_async_groups_of_a_ring():
    """Three stages, nine tiles, two groups in flight."""
    exe = kernel(
        """for s in range(2):
    T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([s * 64 + tx]), A.ptr_to([s * 64 + tx]), 4)
    T.ptx.cp.async_.commit_group()
for i in range(9):
    T.ptx.cp.async_.wait_group(1)
    T.cuda.cta_sync()
    B[i * 64 + tx] = sm[i % 3 * 64 + 63 - tx]
    if i + 2 < 9:
        T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([(i + 2) % 3 * 64 + tx]), A.ptr_to([(i + 2) * 64 + tx]), 4)
    T.ptx.cp.async_.commit_group()""",
        n=576,
        m=576,
        smem=192,
    )
    a = ints(576)
    for schedule in SCHEDULES:
        b = np.zeros_like(a)
        exe(a, b, schedule=schedule)
        np.testing.assert_array_equal(b.reshape(9, 64), a.reshape(9, 64)[:, ::-1])


@pytest.mark.parametrize("noinc", ["", ".noinc"])
def test_cp_async_arrives_on_an_mbarrier(noinc):
    exe = kernel(
        f"""if tx == 0:
    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32({64 if noinc else 128 - 64}))
    T.ptx.fence.mbarrier_init.release.cluster()
T.cuda.cta_sync()
T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([tx]), A.ptr_to([tx]), 4)
T.ptx["cp.async.mbarrier.arrive{noinc}.shared.b64"](bar.ptr_to([0]))
{"" if noinc else "T.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))"}
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
B[tx] = sm[63 - tx]"""
    )
    a = ints(64)
    for schedule in SCHEDULES:
        b = np.zeros_like(a)
        exe(a, b, schedule=schedule)
        np.testing.assert_array_equal(b, a[::-1])


def test_arrivals_of_several_stages_may_come_in_any_order():
    """A later arrival takes an earlier one's copies along; who waits for the earlier one has seen them all the same."""
    exe = kernel(
        """if tx == 0:
    for i in range(2):
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([i]), T.uint32(64))
    T.ptx.fence.mbarrier_init.release.cluster()
T.cuda.cta_sync()
for i in range(2):
    T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([64 * i + tx]), A.ptr_to([64 * i + tx]), 4)
    T.ptx["cp.async.mbarrier.arrive.noinc.shared.b64"](bar.ptr_to([i]))
for i in range(2):
    T.cuda.mbarrier_wait(bar.ptr_to([i]), 0)
    B[64 * i + tx] = sm[64 * i + 63 - tx]""",
        n=128,
        m=128,
        smem=128,
    )
    a = ints(128)
    for schedule in ["late", "early", *range(40)]:
        b = np.zeros_like(a)
        exe(a, b, schedule=schedule)
        np.testing.assert_array_equal(b.reshape(2, 64), a.reshape(2, 64)[:, ::-1])


APART = """full = T.alloc_shared((2,), "uint64")
empty = T.alloc_shared((2,), "uint64")
if tx == 0:
    for i in range(2):
        T.ptx.mbarrier.init.shared.b64(full.ptr_to([i]), T.uint32(1))
        T.ptx.mbarrier.init.shared.b64(empty.ptr_to([i]), T.uint32(64))
    T.ptx.fence.mbarrier_init.release.cluster()
T.cuda.cta_sync()
if tx == 9:
    for i in range(2):
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i]), T.uint32(256))
        T.ptx[BULK_IN](sm.ptr_to([64 * i]), A.ptr_to([64 * i]), T.uint32(256), full.ptr_to([i]))
for i in range(5):
    T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
    B[64 * i + tx] = sm[64 * (i % 2) + 7]
    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))
    {late}
    if tx == 9 and i + 2 < 5:
        T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), i // 2 % 2)
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(256))
        T.ptx[BULK_IN](sm.ptr_to([64 * (i % 2)]), A.ptr_to([64 * i + 128]), T.uint32(256), full.ptr_to([i % 2]))"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_went_apart_read_at_times_of_their_own(schedule):
    """The lane that fetches comes behind the others of its warp: what they read before they arrived is behind it."""
    a, b = ints(320), np.zeros(320, "int32")
    kernel(APART.format(late="pass"), n=320, m=320, smem=128)(a, b, schedule=schedule)
    np.testing.assert_array_equal(b.reshape(5, 64), np.repeat(a[7::64, None], 64, 1))
    late = "if tx == 20:\n        B[64 * i + tx] = sm[64 * (i % 2) + 7]"
    e = report(kernel(APART.format(late=late), n=320, m=320, smem=128), a, b, schedule=schedule)
    assert e.kind == "async" and e.buffer == "sm"


def test_the_destination_shows_the_old_value_until_the_wait():
    """With checks off and schedule="late" the bytes have not moved before the wait; with "early" they have."""
    exe = kernel(
        """sm[tx] = -5
T.cuda.cta_sync()
T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([tx]), A.ptr_to([tx]), 4)
B[tx] = sm[tx]
T.ptx.cp.async_.wait_all()
B[64 + tx] = sm[tx]""",
        m=128,
    )
    a, b = ints(64), np.zeros(128, "int32")
    exe(a, b, check=False, schedule="late")
    assert (b[:64] == -5).all() and (b[64:] == a).all()
    exe(a, b, check=False, schedule="early")
    assert (b[:64] == a).all() and (b[64:] == a).all()


def test_bulk_round_trip():
    exe = kernel(
        INIT
        + """
if tx == 0:
    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
    T.ptx[BULK_IN](sm.ptr_to([0]), A.ptr_to([0]), T.uint32(128), bar.ptr_to([0]))
    T.ptx[BULK_IN](sm.ptr_to([32]), A.ptr_to([32]), T.uint32(128), bar.ptr_to([0]))
T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
v: T.int32 = sm[63 - tx]
T.cuda.cta_sync()
sm[tx] = v * 7
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cta_sync()
if tx == 0:
    T.ptx[BULK_OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group(0)"""
    )
    a = ints(64)
    for check in (True, False):
        for schedule in SCHEDULES:
            b = np.zeros_like(a)
            exe(a, b, schedule=schedule, check=check)
            np.testing.assert_array_equal(b, a[::-1] * 7)


def test_a_read_wait_frees_the_source_only():
    """Late: after wait_group.read the source may be overwritten; the destination comes with the full wait."""
    exe = kernel(
        """sm[tx] = tx
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cta_sync()
if tx == 0:
    T.ptx[BULK_OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group.read(0)
T.cuda.cta_sync()
sm[tx] = -1
if tx == 0:
    A[0] = B[0] + B[63]
    T.ptx.cp.async_.bulk.wait_group(0)
    A[1] = B[0] + B[63]"""
    )
    a, b = ints(64), np.full(64, -9, "int32")
    for early in exe(a, b, schedule="late", check="report"):  # two loads that are too early
        assert early.kind == "async" and early.buffer == "B" and len(early.lines) == 2
    np.testing.assert_array_equal(b, np.arange(64))
    assert a[0] == -18 and a[1] == 63


@pytest.mark.parametrize("wait", [True, False])
def test_a_tile_that_many_copies_still_read(wait):
    """256 stores of one tile are under way; a count of them in a byte would be none."""
    body = """sm[tx] = tx
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cta_sync()
if tx == 0:
    for i in range(256):
        T.ptx[BULK_OUT](B.ptr_to([i * 64]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group.read(0)
    sm[5] = -1
    T.ptx.cp.async_.bulk.wait_group(0)"""
    if not wait:
        body = body.replace("    T.ptx.cp.async_.bulk.wait_group.read(0)\n", "")
    exe = kernel(body, m=64 * 256)
    a, b = ints(64), np.zeros(64 * 256, "int32")
    if wait:
        exe(a, b)
        np.testing.assert_array_equal(b, np.tile(np.arange(64), 256))
    else:
        error = report(exe, a, b)
        assert error.kind == "async" and error.buffer == "sm" and len(error.lines) == 2


@pytest.mark.parametrize("dtype, op, ref", [
    ("int32", "add.s32", np.add), ("int32", "min.s32", np.minimum), ("uint32", "max.u32", np.maximum),
    ("uint32", "xor.b32", np.bitwise_xor), ("float32", "add.f32", np.add), ("uint64", "add.u64", np.add),
])  # fmt: skip
def test_bulk_reductions(dtype, op, ref):
    n = 32 if dtype == "uint64" else 64
    exe = kernel(
        f"""if tx < {n}:
    sm[tx] = A[tx]
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cta_sync()
if tx == 0:
    T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}"](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group(0)""",
        n=n,
        m=n,
        smem=n,
        dtype=dtype,
    )
    rng = np.random.default_rng(1)
    low = 0 if dtype.startswith("u") else -99
    a, b = (rng.integers(low, 99, n).astype(dtype) for _ in range(2))
    want = ref(a, b)
    exe(a, b)
    np.testing.assert_array_equal(b, want)


# ---- reports ---------------------------------------------------------------------------------------------------------

COPY_IN = """if tx == 0:
    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
    T.ptx[BULK_IN](sm.ptr_to([0]), A.ptr_to([0]), T.uint32(256), bar.ptr_to([0]))"""


def test_a_load_before_the_wait_shows_both_lines():
    exe = kernel(f"{INIT}\n{COPY_IN}\nB[tx] = sm[tx]\nT.cuda.mbarrier_wait(bar.ptr_to([0]), 0)")
    e = report(exe, ints(64), ints(64))
    assert e.kind == "async" and e.buffer == "sm" and len(e.lines) == 2
    line_of(e, "B[tx] = sm[tx]")
    line_of(e, "T.ptx[BULK_IN](sm.ptr_to([0]), A.ptr_to([0]), T.uint32(256), bar.ptr_to([0]))")
    assert len(str(e).split("\n")) <= 15


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_by_one_thread_tells_the_others_nothing(schedule):
    wait = "if tx == 0:\n    T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"
    exe = kernel(f"{INIT}\n{COPY_IN}\n{wait}\nB[tx] = sm[tx]")
    e = report(exe, ints(64), ints(64), schedule=schedule)
    assert e.kind == "async" and e.buffer == "sm" and len(e.lines) == 2
    a, b = ints(64), np.zeros(64, "int32")
    kernel(f"{INIT}\n{COPY_IN}\n{wait}\nT.cuda.cta_sync()\nB[tx] = sm[tx]")(a, b, schedule=schedule)
    np.testing.assert_array_equal(b, a)


def test_a_stage_overwritten_in_flight():
    e = report(kernel(f"{INIT}\n{COPY_IN}\nif tx == 40:\n    sm[3] = 1\nT.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"),
               ints(64), ints(64))  # fmt: skip
    assert e.kind == "async" and e.buffer == "sm"
    line_of(e, "sm[3] = 1")


def test_two_copies_into_one_stage():
    e = report(kernel(f"{INIT}\n{COPY_IN}\n{COPY_IN}\nT.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"), ints(64), ints(64))
    assert e.kind in ("async", "mbarrier")


def test_a_copy_that_nobody_waits_for():
    e = report(kernel(f"{INIT}\n{COPY_IN}\nB[tx] = A[tx]"), ints(64), ints(64))
    assert e.kind == "async" and e.buffer == "sm" and "still under way when the CTA exits" in str(e)


def test_a_store_that_nobody_waits_for_is_a_warning():
    exe = kernel(
        """sm[tx] = A[tx]
T.ptx.fence.proxy.async_.shared__cta()
T.cuda.cta_sync()
if tx == 0:
    T.ptx[BULK_OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))"""
    )
    a, b = ints(64), np.zeros(64, "int32")
    with pytest.warns(tirx.EmulationWarning) as seen:
        exe(a, b)
    assert [w.message.kind for w in seen] == ["async"]
    np.testing.assert_array_equal(b, a)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exe(a, b, check=False)


@pytest.mark.parametrize("who, kind", [("writers", None), ("issuer", None), ("nobody", "proxy")])
def test_a_proxy_fence_counts_wherever_it_stands_between(who, kind):
    fence = "T.ptx.fence.proxy.async_.shared__cta()"
    exe = kernel(
        f"""sm[tx] = A[tx]
{fence if who == "writers" else "T.cuda.warp_sync()"}
T.cuda.cta_sync()
if tx == 0:
    {fence if who == "issuer" else "T.ptx.fence.acq_rel.cta()"}
    T.ptx[BULK_OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group(0)"""
    )
    a, b = ints(64), np.zeros(64, "int32")
    if kind:
        e = report(exe, a, b)
        assert e.kind == kind and e.buffer == "sm" and len(e.lines) == 2
    else:
        exe(a, b)
        np.testing.assert_array_equal(b, a)


def test_a_fence_before_the_write_does_not_count():
    exe = kernel(
        """T.ptx.fence.proxy.async_.shared__cta()
sm[tx] = A[tx]
T.cuda.cta_sync()
if tx == 0:
    T.ptx[BULK_OUT](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))
    T.ptx.cp.async_.bulk.commit_group()
    T.ptx.cp.async_.bulk.wait_group(0)"""
    )
    assert report(exe, ints(64), ints(64)).kind == "proxy"


@pytest.mark.parametrize("at, kind", [("sm.ptr_to([1]), A.ptr_to([0]), T.uint32(128)", "misaligned"),
                                      ("sm.ptr_to([0]), A.ptr_to([2]), T.uint32(128)", "misaligned"),
                                      ("sm.ptr_to([0]), A.ptr_to([0]), T.uint32(120)", "misaligned"),
                                      ("sm.ptr_to([0]), A.ptr_to([48]), T.uint32(128)", "out_of_bounds"),
                                      ("sm.ptr_to([48]), A.ptr_to([0]), T.uint32(128)", "out_of_bounds")])  # fmt: skip
def test_addresses_and_sizes(at, kind):
    exe = kernel(f"{INIT}\nif tx == 0:\n    T.ptx[BULK_IN]({at}, bar.ptr_to([0]))")
    for check in (True, False):
        e = report(exe, ints(64), ints(64), check=check)
        assert e.kind == kind


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_producer_and_consumers_share_a_ring(schedule):
    """Two stages, seven tiles, a producer warp, two consumer warps that hand stages back with one arrival a warp."""

    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (7, 64), "int32", align=16)
        B = T.match_buffer(B_ptr, (7, 64), "int32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([96])
        sm = T.alloc_shared((2, 64), "int32", align=128)
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(2))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        if tx >= 64:
            if tx == 64:
                for i in range(7):
                    T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 2]), T.uint32(256))
                    T.ptx.cp.async_.bulk.shared__cta.global_.mbarrier__complete_tx__bytes(
                        sm.ptr_to([i % 2, 0]), A.ptr_to([i, 0]), T.uint32(256), full.ptr_to([i % 2])
                    )
        else:
            for i in range(7):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
                B[i, tx] = sm[i % 2, 63 - tx] + i
                T.cuda.warp_sync()
                if tx % 32 == 0:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))

    a = ints(7 * 64).reshape(7, 64)
    b = np.zeros_like(a)
    tirx.compile(k, target="cpu")(a, b, schedule=schedule)
    np.testing.assert_array_equal(b, a[:, ::-1] + np.arange(7)[:, None])
