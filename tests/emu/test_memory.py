# SPDX-License-Identifier: Apache-2.0
"""Memories: shared, local and addressable arrays, pointers, atomics; and the reports of accesses that go wrong."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tirx
from tirx.script import tirx as T


def run(kernel, *arrays, **options):
    return tirx.compile(kernel, target="cpu")(*arrays, **options)


def report(kernel, *arrays, **options):
    with pytest.raises(tirx.EmulationError) as e:
        run(kernel, *arrays, **options)
    return e.value


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"])
def test_every_memory_holds_every_dtype(dtype):
    @T.prim_func
    def k(A: T.Buffer((96,), dtype), B: T.Buffer((96,), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([96])
        sm = T.alloc_shared((96,), dtype)
        lo = T.alloc_local((3,), dtype)
        sm[(tx * 5) % 96] = A[tx]
        T.cuda.cta_sync()
        for i in range(3):
            lo[(tx + i) % 3] = sm[(tx + 32 * i) % 96]
        B[tx] = lo[tx % 3]

    a = (np.random.default_rng(0).integers(0, 100, 96) % (2 if dtype == "bool" else 100)).astype(dtype)
    b = np.zeros_like(a)
    run(k, a, b)
    sm = np.zeros_like(a)
    sm[np.arange(96) * 5 % 96] = a
    np.testing.assert_array_equal(b, sm)


def test_local_arrays_whose_address_is_taken():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        lo = T.alloc_local((4,), "int32")
        for i in range(4):
            lo[i] = A[tx] * (i + 1)
        old: T.int32 = T.cuda.atomic_add(lo.ptr_to([tx % 4]), 1000)
        B[tx] = lo[tx % 4] * 10 + old

    a = np.arange(64).astype("int32")
    b = np.zeros_like(a)
    run(k, a, b)
    old = a * (np.arange(64) % 4 + 1)
    np.testing.assert_array_equal(b, (old + 1000) * 10 + old)


def test_unwritten_addressable_local_arrays():
    @T.prim_func
    def k(B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        lo = T.alloc_local((2,), "int32")
        lo[0] = 1
        B[tx] = T.cuda.atomic_add(lo.ptr_to([0]), 1) + lo[tx // 31]

    e = report(k, np.zeros(32, "int32"))
    assert e.kind == "uninitialised" and e.buffer == "lo" and "lane 31" in str(e)


def test_dynamic_shared_memory():
    @T.prim_func
    def k(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_buffer((128,), "float32", scope="shared.dyn")
        sm[tx] = A[tx]
        T.cuda.cta_sync()
        B[tx] = sm[127 - tx]

    a = np.random.default_rng(0).standard_normal(128).astype("f4")
    b = np.zeros_like(a)
    run(k, a, b)
    np.testing.assert_array_equal(b, a[::-1])


ATOMICS = ["int32", "uint32", "int64", "uint64", "float32", "float64", "float16", "bfloat16"]


@pytest.mark.parametrize("where", ["global", "shared"])
@pytest.mark.parametrize("dtype", ATOMICS)
def test_atomic_add(dtype, where):
    np_dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)

    @T.prim_func
    def k(A: T.Buffer((32,), dtype), B: T.Buffer((4,), dtype), C: T.Buffer((32,), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((4,), dtype)
        if tx < 4:
            sm[tx] = B[tx]
        T.cuda.cta_sync()
        if where == "shared":
            C[tx] = T.cuda.atomic_add(sm.ptr_to([tx % 4]), A[tx])
        else:
            C[tx] = T.cuda.atomic_add(B.ptr_to([tx % 4]), A[tx])
        T.cuda.cta_sync()
        if where == "shared":
            if tx < 4:
                B[tx] = sm[tx]

    a = np.random.default_rng(0).integers(0, 3, 32).astype(np_dtype)
    b, c = np.ones(4, np_dtype), np.zeros(32, np_dtype)
    run(k, a, b, c)
    sums = np.ones(4, "f8")
    for t in range(32):  # lanes in order
        assert float(c[t]) == sums[t % 4]
        sums[t % 4] += float(a[t])
    np.testing.assert_array_equal(b.astype("f8"), sums)


def test_float32_additions_to_global_memory_flush_subnormals():
    tiny = np.float32(1e-40)

    @T.prim_func
    def k(B: T.Buffer((1,), "float32"), v: T.float32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        sm = T.alloc_shared((1,), "float32")
        sm[0] = v
        old: T.float32 = T.cuda.atomic_add(sm.ptr_to([0]), v)
        old = T.cuda.atomic_add(B.ptr_to([0]), v)
        if sm[0] == v + v:
            B[0] = B[0] + T.float32(1)

    b = np.array([tiny], "f4")
    run(k, b, float(tiny))
    assert b[0] == 1


def test_compare_and_swap():
    @T.prim_func
    def k(L: T.Buffer((1,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = T.cuda.atomic_cas(L.ptr_to([0]), tx, tx + 1)

    lock, b = np.zeros(1, "int32"), np.zeros(64, "int32")
    run(k, lock, b)
    assert lock[0] == 64 and b.tolist() == list(range(64))


@pytest.mark.parametrize("check", [True, False])
def test_outside_is_found_with_and_without_checks(check):
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), d: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = A[tx + d]

    a, b = np.arange(64).astype("int32"), np.zeros(64, "int32")
    run(k, a, b, 0, check=check)
    e = report(k, a, b, 1, check=check)
    assert e.kind == "out_of_bounds" and "load of A[64] is outside its 64 elements" in str(e)
    e = report(k, a, b, -1, check=check)
    assert "load of A[-1] is outside its 64 elements" in str(e)
    e = report(k, a, b, 2**31 - 1, check=check)
    assert e.kind == "out_of_bounds"


def test_a_view_is_bounded_by_its_own_shape():
    @T.prim_func
    def k(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4, 4), "int32"), c: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([4])
        B[tx, 0] = A[tx, c]

    a = np.arange(16).reshape(4, 4).astype("int32")
    b = np.zeros_like(a)
    run(k, a, b, 3)
    np.testing.assert_array_equal(b[:, 0], a[:, 3])
    e = report(k, a, b, 4)
    assert "load of A[0, 4]: index 4 of dimension 1 is outside 0..3" in str(e)


def test_arguments_keep_what_was_written_before_the_report():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        B[bx * 32 + tx] = A[bx * 33 + tx]

    b = np.zeros(64, "int32")
    report(k, np.ones(64, "int32"), b)
    assert b[:32].all() and not b[32:].any()


def test_a_report_whole():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        T.cuda.cta_sync()
        sm[tx] = 3  # the store
        B[tx] = sm[63 - tx]  # the load

    e = report(k, np.ones(64, "int32"), np.zeros(64, "int32"))
    line = next(n for n, text in enumerate(open(__file__), 1) if text.endswith("# the store\n"))
    assert str(e) == (
        f"race: store of sm[0] races with a load by another thread of the CTA: nothing orders them\n"
        f"  in kernel k_kernel\n"
        f"  store by thread (0, 0, 0) of CTA (0, 0, 0), warp 0, lane 0\n"
        f"    {__file__}:{line}\n"
        f"        sm[tx] = 3  # the store\n"
        f"  load by thread (63, 0, 0) of CTA (0, 0, 0), warp 1, lane 31\n"
        f"    {__file__}:{line + 1}\n"
        f"        B[tx] = sm[63 - tx]  # the load"
    )
    assert e.kind == "race" and e.buffer == "sm" and e.lines == {line, line + 1}


def test_threads_may_write_different_bytes_of_one_word():
    @T.prim_func
    def k(A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "uint8")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "uint8")
        sm[(tx * 9) % 64] = A[tx]
        T.cuda.cta_sync()
        B[tx] = sm[tx]

    a = np.arange(64).astype("uint8")
    b = np.zeros_like(a)
    run(k, a, b)
    want = np.zeros_like(a)
    want[np.arange(64) * 9 % 64] = a
    np.testing.assert_array_equal(b, want)


def test_reports_are_collected():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        i: T.let = bx * 32 + tx
        B[i] = A[i + 1] // A[i]

    a = np.ones(64, "int32")
    a[7] = 0
    b = np.full(64, 9, "int32")
    reports = run(k, a, b, check="report")
    assert sorted(r.kind for r in reports) == ["arithmetic", "out_of_bounds"]
    assert b[3] == 1 and b[63] == 0


def test_seeded_runs_repeat():
    @T.prim_func
    def k(N: T.Buffer((1,), "int32"), B: T.Buffer((8, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([8])
        tx = T.thread_id([64])
        B[bx, tx] = T.cuda.atomic_add(N.ptr_to([0]), 1)

    exe = tirx.compile(k, target="cpu")
    seen = set()
    for seed in (1, 2, 1, 2, 3):
        n, b = np.zeros(1, "int32"), np.zeros((8, 64), "int32")
        exe(n, b, schedule=seed)
        assert sorted(b.ravel()) == list(range(512))
        seen.add((seed, b.tobytes()))
    assert len(seen) == 3


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_workers_give_the_same_integers(threads, monkeypatch):
    monkeypatch.setenv("TIRX_THREADS", threads)

    @T.prim_func
    def k(A: T.Buffer((200, 64), "int32"), B: T.Buffer((200, 64), "int32"), S: T.Buffer((1,), "int64")):
        T.device_entry()
        bx = T.cta_id([200])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[bx, tx]
        T.cuda.cta_sync()
        B[bx, tx] = sm[63 - tx] * 3
        T.cuda.atomic_add(S.ptr_to([0]), T.int64(A[bx, tx]))

    a = np.random.default_rng(0).integers(-99, 99, (200, 64)).astype("int32")
    b, s = np.zeros_like(a), np.zeros(1, "int64")
    run(k, a, b, s, check=False)
    np.testing.assert_array_equal(b, a[:, ::-1] * 3)
    assert s[0] == a.sum()


@pytest.mark.parametrize("check", [True, False])
def test_negative_strides(check):
    @T.prim_func
    def k(a: T.handle, B: T.Buffer((40, 100), "float32"), D: T.Buffer((40, 100), "float32")):
        s, t = T.int32(), T.int32()
        A = T.match_buffer(a, (40, 100), "float32", strides=[s, t])
        T.device_entry()
        bx = T.cta_id([40])
        tx = T.thread_id([64])
        for j in T.serial(tx, 100, step=64):
            B[bx, j] = A[bx, j]
            A[bx, j] = D[bx, j]

    x, d = np.random.default_rng(0).standard_normal((2, 40, 100)).astype("f4")
    for view in (x[::-1], x[:, ::-1], x[::-1, ::-1], np.zeros((40, 300), "f4")[::-1, ::-3]):
        want, got = view.copy(), np.zeros_like(d)
        run(k, view, got, d, check=check)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(view, d)


def test_outside_of_negative_strides():
    @T.prim_func
    def k(a: T.handle, B: T.Buffer((1,), "float32"), i: T.int32):
        s = T.int32()
        A = T.match_buffer(a, (8,), "float32", strides=[s])
        T.device_entry()
        tx = T.thread_id([1])
        p: T.let = A.ptr_to([0])
        T.cuda.atomic_add(T.ptr_byte_offset(p, i * 4, "float32"), T.float32(1))
        B[tx] = A[0]

    x = np.zeros(8, "f4")
    run(k, x[::-1], np.zeros(1, "f4"), -7)
    assert x[0] == 1
    assert report(k, x[::-1], np.zeros(1, "f4"), -8).kind == "out_of_bounds"
    assert report(k, x[::-1], np.zeros(1, "f4"), 1).kind == "out_of_bounds"


def test_dynamic_shared_memory_has_a_limit():
    def k(nbytes):
        @T.prim_func
        def f(A: T.Buffer((32,), "uint8")):
            T.device_entry()
            tx = T.thread_id([32])
            s = T.alloc_buffer((nbytes,), "uint8", scope="shared.dyn")
            s[nbytes - 1 - tx] = T.uint8(tx)
            A[tx] = s[nbytes - 1 - tx]

        return f

    a = np.zeros(32, "u1")
    run(k(227 * 1024), a)
    assert list(a) == list(range(32))
    with pytest.raises(tirx.DiagnosticValueError, match="needs 232449 bytes of shared memory, at most 232448"):
        run(k(227 * 1024 + 1), a)

    @T.function
    def at_the_call(A: T.Tensor((32,), T.uint8), n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, dynamic_smem_bytes=n))
        A[T.cuda.thread_idx("x")] = 1

    run(at_the_call, a, 227 * 1024)
    with pytest.raises(ValueError, match=r"(?s)shared memory of .*_kernel is 232449 bytes .*expected at most 232448"):
        run(at_the_call, a, 227 * 1024 + 1)
