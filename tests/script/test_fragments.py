# SPDX-License-Identifier: Apache-2.0
"""T.cuda.wgmma.place and holder: which element of a matrix which register of which thread is, against the layout as a
list of extents and strides, and against what the emulator's matrix instructions do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T
from tirx.script.cuda_matrix import wgmma

# Row and column as digits, most significant first: (extent, what a step adds to, by how much).
ROW = [(4, "thread", 32), (2, "element", None), (8, "thread", 4)]


def digits(value, extents):
    out = []
    for e in reversed(extents):
        out.append(value % e)
        value //= e
    assert value == 0
    return out[::-1]


def by_layout(row, column, columns, per):
    at = {"thread": 0, "element": 0}
    shape = [(columns // (4 * per), "element", 2 * per), (4, "thread", 1), (per, "element", 1)]
    for d, (_, what, step) in zip(digits(row, [4, 2, 8]), ROW, strict=True):
        at[what] += d * (per if step is None else step)
    for d, (_, what, step) in zip(digits(column, [e for e, *_ in shape]), shape, strict=True):
        at[what] += d * step
    return at["thread"], at["element"]


@pytest.mark.parametrize(("columns", "per"), [(8, 2), (24, 2), (256, 2), (16, 2), (32, 4), (8, 1)])
def test_against_the_layout(columns, per):
    seen = set()
    for row, column in itertools.product(range(64), range(columns)):
        thread, i = wgmma.holder(row, column, per=per)
        assert (thread, i) == by_layout(row, column, columns, per)
        assert wgmma.place(i, thread, per=per) == (row, column)
        seen.add((thread, i))
    assert seen == set(itertools.product(range(128), range(columns // 2)))


N = 40


@T.prim_func
def product(
    A: T.Buffer((64, 16), "float16"),
    B: T.Buffer((N, 16), "float16"),
    C: T.Buffer((64, N), "float32"),
    H: T.Buffer((64, N), "float16"),
    P: T.Buffer((64, N), "float32"),
    M: T.Buffer((64, N), "int32"),
):
    """C and H = A @ B.T with accumulators of float32 and float16, A from registers; P by asking the holder."""
    T.device_entry()
    tx = T.thread_id([128])
    b = T.alloc_shared((N * 16,), "float16", align=16)
    whole = T.alloc_shared((64, N), "float32")
    acc = T.alloc_local((N // 2,), "float32")
    half = T.alloc_local((N // 4,), "uint32")
    a = T.alloc_local((4,), "uint32")
    for k in range(tx, N * 16, 128):  # core matrices of 8 rows x 16 bytes: [piece][group][row]
        b[k % 16 // 8 * (N * 8) + k // 16 * 8 + k % 8] = B[k // 16, k % 16]
    for r in T.unroll(4):
        pair = T.alloc_local((2,), "float16")
        for e in T.unroll(2):
            row, column = T.cuda.wgmma.place(2 * r + e)
            pair[e] = A[row, column]
        T.ptx.mov.b32(a[r], *[T.reinterpret("uint16", pair[e]) for e in range(2)])
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    desc: T.let = T.cuda.wgmma.matrix_descriptor(b.data, N, 8, 0)
    T.cuda.wgmma.fence_operand(*a)
    T.ptx.wgmma.fence.sync.aligned()
    T.ptx.wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16(*acc, *a, desc, False, 1, 1, 0)
    T.ptx.wgmma.mma_async.sync.aligned.m64n40k16.f16.f16.f16(*half, *a, desc, False, 1, 1, 0)
    T.ptx.wgmma.commit_group.sync.aligned()
    T.ptx.wgmma.wait_group.sync.aligned(0)
    for i in T.serial(N // 2, unroll=True):
        row, column = T.cuda.wgmma.place(i)
        C[row, column] = acc[i]
        M[row, column] = tx * 100 + i
        whole[row, column] = acc[i]
    for r in T.serial(N // 4, unroll=True):
        for e in T.unroll(2):
            row, column = T.cuda.wgmma.place(2 * r + e, tx)
            H[row, column] = T.reinterpret("float16", T.cast(half[r] >> (16 * e), "uint16"))
    T.cuda.cta_sync()
    for k in range(tx, 64 * N, 128):
        thread, i = T.cuda.wgmma.holder(k // N, k % N)
        P[k // N, k % N] = T.if_then_else(M[k // N, k % N] == thread * 100 + i, whole[k // N, k % N], -1.0)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_against_the_matrix_unit(target):
    rng = np.random.default_rng(2)
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    a, b = (rng.integers(-8, 8, (n, 16)).astype("float16") for n in (64, N))
    out = [np.zeros((64, N), t) for t in ("float32", "float16", "float32", "int32")]
    tensors = [tirx.runtime.tensor(x, device) for x in (a, b, *out)]
    tirx.compile(product, target=target)(*tensors)
    for t in tensors[2:5]:
        np.testing.assert_array_equal(t.numpy(), a.astype("float32") @ b.astype("float32").T)


def test_nvrtc_takes_it_and_folds(nvrtc):
    exe = tirx.compile(product, target="cuda:sm_90a")
    assert exe.cubin[:4] == b"\x7fELF"


@T.prim_func
def warp_tile(A: T.Buffer((16, 16), "float16"), B: T.Buffer((8, 16), "float16"), C: T.Buffer((16, 8), "float32")):
    T.device_entry()
    lane = T.thread_id([32])
    a, b = T.alloc_local((4,), "uint32"), T.alloc_local((2,), "uint32")
    c = T.alloc_local((4,), "float32")
    for r in T.unroll(4):
        row, column = T.cuda.wgmma.place(2 * r, lane)
        T.ptx.mov.b32(a[r], *[T.reinterpret("uint16", A[row, column + e]) for e in range(2)])
        c[r] = 0.0
    for r in T.unroll(2):
        T.ptx.mov.b32(b[r], *[T.reinterpret("uint16", B[lane // 4, 8 * r + lane % 4 * 2 + e]) for e in range(2)])
    T.ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32(*c, *a, *b, *c)
    for i in T.unroll(4):
        row, column = T.cuda.wgmma.place(i, lane)
        C[row, column] = c[i]


def test_a_lane_gives_the_places_of_a_warp():
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, (n, 16)).astype("float16") for n in (16, 8))
    c = np.zeros((16, 8), "float32")
    tirx.compile(warp_tile, target="cpu")(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32").T)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x = T.cuda.wgmma.place(-1)", "T.cuda.wgmma.place: i is 0..255, got -1"),
        ("x = T.cuda.wgmma.place(2**40)", "T.cuda.wgmma.place: i is 0..255, got 1099511627776"),
        ("x = T.cuda.wgmma.place(1.5)", "T.cuda.wgmma.place: i is an integer, got 1.5"),
        ("x = T.cuda.wgmma.place(1, 128)", "T.cuda.wgmma.place: thread is 0..127, got 128"),
        ("x = T.cuda.wgmma.holder(64, 0)", "T.cuda.wgmma.holder: row is 0..63, got 64"),
        ("x = T.cuda.wgmma.holder(0, -1)", "T.cuda.wgmma.holder: column is 0..1023, got -1"),
        ("x = T.cuda.wgmma.place(0, per=3)", "a thread holds 1, 2 or 4 neighbours of a row, got per=3"),
        ("x = T.cuda.wgmma.holder(0, 0, per=8)", "T.cuda.wgmma.holder: a thread holds 1, 2 or 4 neighbours"),
    ],
)
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    tx = T.thread_id([128])
    {line}
""")
    assert text in str(e.value)
