# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma.sp against NumPy: the kept elements of A, and metadata at the places that a table written from the
manuals' pictures says."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
# kind: K, elements of a group, kept of it, dtypes of A and B, their codes in the descriptor, of D
KINDS = {
    "f16": (32, 4, 2, "float16", "float16", 0, 0, 1),
    "f16 bf16": (32, 4, 2, "bfloat16", "bfloat16", 1, 1, 1),
    "f16 to f16": (32, 4, 2, "float16", "float16", 0, 0, 0),
    "tf32": (16, 2, 1, "float32", "float32", 2, 2, 1),
    "f8f6f4": (64, 4, 2, "float8_e4m3fn", "float8_e5m2", 0, 1, 1),
    "i8": (64, 4, 2, "int8", "uint8", 1, 0, 2),
    "mxf8f6f4": (64, 4, 2, "float8_e4m3fn", "float8_e4m3fn", 0, 0, 1),
    "mxf4": (128, 8, 4, "float4_e2m1fn", "float4_e2m1fn", 1, 1, 1),
    "mxf4nvf4": (128, 8, 4, "float4_e2m1fn", "float4_e2m1fn", 1, 1, 1),
}
BLOCKS = {"mxf8f6f4": ("block32", 1), "mxf4": ("block32", 2), "mxf4nvf4": ("block16", 4)}
N = 32


def metadata(kept, k, selector, rng):
    """Columns of 128 cells. kept[row, group]: which elements (pairs of them for 4 bits), two numbers below 4."""
    narrow = k >= 64  # 8 and 4 bits: a row's lane, first to last group
    cells = rng.integers(0, 2**32, (128, 4), dtype=np.uint64)
    bits = kept[..., 0] | kept[..., 1] << 2  # [row, group]
    for row in range(128):
        for g in range(bits.shape[1]):
            if narrow:
                lane, column, nibble = row, g // 8, g % 8
            else:  # 8 lanes hold half of the groups of 16 rows, low and high halves of a cell are of rows 8 apart
                lane = row // 16 * 16 + g // 4 * 8 + row % 8
                column, nibble = selector, row % 16 // 8 * 4 + g % 4
            cells[lane, column] &= np.uint64(0xFFFFFFFF ^ 0xF << 4 * nibble)
            cells[lane, column] |= np.uint64(int(bits[row, g]) << 4 * nibble)
    return cells.astype(np.uint32)


def codes(v, dtype):
    """Bytes of rows; elements of 4 bits are packed, the first one low."""
    if dtype == "float4_e2m1fn":
        x = v.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
        return x[:, 0::2] | x[:, 1::2] << 4
    return v.astype(getattr(ml_dtypes, dtype, None) or dtype).view(np.uint8)


def kernel(kind, descriptor, scales):
    block = f".block_scale.{scales}" if scales else ""
    op = f"tcgen05.mma.sp.cta_group::1.kind::{kind}{block}"

    @T.prim_func
    def k(
        A: T.Buffer((128, 32), "uint8"),
        B: T.Buffer((N, 64), "uint8"),
        E: T.Buffer((128, 4), "uint32"),
        S: T.Buffer((128, 8), "uint32"),
        D: T.Buffer((128, N), "uint32"),
    ):
        T.device_entry()
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 16), "uint8", align=128)
        sb = T.alloc_shared((4, N, 16), "uint8", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        r = T.alloc_local((N,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for i in range(32):
            sa[i // 16, tx, i % 16] = A[tx, i]
        for i in range(tx, N * 64, 128):
            sb[i % 64 // 16, i // 64, i % 16] = B[i // 64, i % 64]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for i in range(4):
            r[i] = E[tx, i]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](addr[0] + T.uint32(32), *r[0:4])
        for i in range(8):
            r[i] = S[tx, i]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x8.b32"](addr[0] + T.uint32(40), *r[0:8])
        T.ptx["tcgen05.wait::st.sync.aligned"]()
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        T.ptx["tcgen05.fence::after_thread_sync"]()
        if tx == 0:
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), N, 8, 0)
            if scales != "":
                T.ptx[op](addr[0], da[0], db[0], addr[0] + T.uint32(32), T.uint32(descriptor),
                          addr[0] + T.uint32(40), addr[0] + T.uint32(44), T.bool(False))  # fmt: skip
            else:
                T.ptx[op](addr[0], da[0], db[0], addr[0] + T.uint32(32), T.uint32(descriptor),
                          T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(False))  # fmt: skip
            T.ptx[COMMIT](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx["tcgen05.fence::after_thread_sync"]()
        for j in range(N // 8):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x8.b32"](
                *[r[i] for i in range(8)], T.cuda.get_tmem_addr(addr[0], 0, j * 8)
            )
            T.ptx["tcgen05.wait::ld.sync.aligned"]()
            for i in range(8):
                D[tx, j * 8 + i] = r[i]
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(64))

    return k


def problem(name, selector, seed=1):
    """Arguments of the kernel, its descriptor, and the product."""
    K, group, count, at, bt, fa, fb, fd = KINDS[name]
    kind, rng = name.split()[0], np.random.default_rng(seed)
    groups = K // group
    kept = np.sort(np.argsort(rng.random((128, groups, 4)), 2)[..., :2], 2)  # two of four units
    if count == 1:  # one of two: its halves
        kept = np.repeat(rng.integers(0, 2, (128, groups, 1)) * 2, 2, 2) + [0, 1]
    few = np.array([-2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2])
    short = rng.choice(few, (128, groups, count)) if kind != "i8" else rng.integers(-100, 100, (128, groups, count))
    b = rng.choice(few, (N, K)) if kind != "i8" else rng.integers(0, 200, (N, K))
    full = np.zeros((128, groups, group))
    for i in range(count):  # places in the group
        place = {1: lambda i: kept[..., 0] // 2, 2: lambda i: kept[..., i], 4: lambda i: 2 * kept[..., i // 2] + i % 2}
        np.put_along_axis(full, place[count](i)[..., None], short[..., i : i + 1].astype(float), 2)
    scale_a, scale_b, scales, blocks = np.ones((128, 1)), np.ones((N, 1)), "", 1
    cells = np.zeros((128, 8), np.uint32)
    if kind in BLOCKS:
        scales, blocks = BLOCKS[kind]
        ea, eb = rng.integers(-2, 3, (128, blocks)), rng.integers(-2, 3, (N, blocks))
        scale_a, scale_b = 2.0**ea, 2.0**eb
        bias, shift = (127, 0) if kind != "mxf4nvf4" else (7, 3)  # ue8m0, or ue4m3
        for q in range(blocks):  # cell (row % 32) of column row / 32, in every window
            for row in range(128):
                cells[row % 32 :: 32, row // 32] |= np.uint32(int(ea[row, q] + bias) << shift << 8 * q)
            for row in range(N):
                cells[row % 32 :: 32, 4 + row // 32] |= np.uint32(int(eb[row, q] + bias) << shift << 8 * q)
    want = np.zeros((128, N))
    size = K // blocks
    for q in range(blocks):
        part = full.reshape(128, K)[:, q * size : (q + 1) * size] @ b[:, q * size : (q + 1) * size].T.astype(float)
        want += part * scale_a[:, q : q + 1] * scale_b[:, q : q + 1].T
    descriptor = selector | 1 << 2 | fa << 7 | fb << 10 | N >> 3 << 17 | 128 >> 4 << 24
    descriptor |= (kind in ("mxf8f6f4", "mxf4")) << 23 if kind in BLOCKS else fd << 4
    e = metadata(kept, K, selector, rng)
    args = codes(short.reshape(128, -1), at), codes(b, bt), e, cells, np.zeros((128, N), np.uint32)
    return kernel(kind, descriptor, scales), [np.ascontiguousarray(x) for x in args], want


CASES = [(k, s) for k in KINDS for s in ((0, 1) if k.split()[0] in ("f16", "tf32") else (0,))]


@pytest.mark.parametrize("name, selector", CASES)
def test_products(name, selector):
    f, args, want = problem(name, selector)
    exe = tirx.compile(f, target="cpu")
    for options in ({}, {"check": False}, {"schedule": "early"}, {"numerics": "hardware"}):
        d = np.zeros((128, N), np.uint32)
        exe(*args[:-1], d, **options)
        if name == "f16 to f16":
            d = d.astype(np.uint16).view(np.float16)
        else:
            d = d.view(np.int32 if name == "i8" else np.float32)
        np.testing.assert_array_equal(d.astype(float), want)


def spoiled(name, change):
    f, args, _ = problem(name, 0)
    text = f.script()
    new = change(text)
    assert new != text
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(tirx.from_source(new), target="cpu")(*args)
    return e.value


DESCRIPTOR = 1 << 2 | 1 << 4 | N >> 3 << 17 | 128 >> 4 << 24
MISUSES = {
    "dense descriptor": (DESCRIPTOR & ~4, "tmem", r"does not say that A is sparse \(bit 2\)"),
    "selector": (DESCRIPTOR | 2, "tmem", "sparsity selector 2, of which the kind has 2"),
    "64 rows": (DESCRIPTOR & ~(31 << 24) | 4 << 24, "unsupported", "where the metadata of M 64 lies is not known"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses(name):
    descriptor, kind, text = MISUSES[name]
    e = spoiled("f16", lambda t: t.replace(f"T.uint32({DESCRIPTOR})", f"T.uint32({descriptor})"))
    assert e.kind == kind
    assert re.search(text, str(e))


def pair_kernel(descriptor):
    """Two CTAs multiply together: each has half of the rows of A, their metadata, and half of the rows of B."""
    COMMIT_PAIR = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"

    @T.prim_func
    def k(
        A: T.Buffer((2, 128, 32), "uint8"),
        B: T.Buffer((2, N, 64), "uint8"),
        E: T.Buffer((2, 128, 4), "uint32"),
        D: T.Buffer((2, 128, 2 * N), "uint32"),
    ):
        T.device_entry()
        cl = T.cluster_id([1])
        rank = T.cta_id_in_cluster([2])
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((2, 128, 16), "uint8", align=128)
        sb = T.alloc_shared((4, N, 16), "uint8", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        r = T.alloc_local((2 * N,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(128))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for i in range(32):
            sa[i // 16, tx, i % 16] = A[rank, tx, i]
        for i in range(tx, N * 64, 128):
            sb[i % 64 // 16, i // 64, i % 16] = B[rank, i // 64, i % 64]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for i in range(4):
            r[i] = E[rank, tx, i]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](addr[0] + T.uint32(64), *r[0:4])
        T.ptx["tcgen05.wait::st.sync.aligned"]()
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cluster_sync()
        T.ptx["tcgen05.fence::after_thread_sync"]()
        if tx == 0:
            if rank == 0:
                T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), 128, 8, 0)
                T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), N, 8, 0)
                T.ptx["tcgen05.mma.sp.cta_group::2.kind::f16"](
                    addr[0], da[0], db[0], addr[0] + T.uint32(64), T.uint32(descriptor), T.uint32(0), T.uint32(0),
                    T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(False),
                )  # fmt: skip
                T.ptx[COMMIT_PAIR](bar.ptr_to([0]), T.uint16(3))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx["tcgen05.fence::after_thread_sync"]()
        for j in range(2 * N // 8):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x8.b32"](
                *[r[i] for i in range(8)], T.cuda.get_tmem_addr(addr[0], 0, j * 8)
            )
            T.ptx["tcgen05.wait::ld.sync.aligned"]()
            for i in range(8):
                D[rank, tx, j * 8 + i] = r[i]
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cluster_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](addr[0], T.uint32(128))

    return k


def test_a_pair_of_ctas():
    parts = [problem("f16", 1, seed) for seed in (2, 3)]  # of A; each has rows of B of its own
    a, b, e = (np.stack([p[1][i] for p in parts]) for i in range(3))
    descriptor = 1 | 1 << 2 | 1 << 4 | 2 * N >> 3 << 17 | 256 >> 4 << 24
    d = np.zeros((2, 128, 2 * N), np.uint32)
    tirx.compile(pair_kernel(descriptor), target="cpu")(a, b, e, d)
    for half, (_, args, want) in enumerate(parts):
        own = d.view(np.float32)[half, :, half * N : half * N + N]
        np.testing.assert_array_equal(own, want)
        other = problem_of(args, parts[1 - half][1])
        np.testing.assert_array_equal(d.view(np.float32)[half, :, N - half * N : 2 * N - half * N], other)


def problem_of(args, others):
    """The product of these rows of A with the other's B, from what the bytes say."""
    a, meta = args[0].view(np.float16).astype(float), args[2]
    full = np.zeros((128, 32))
    for row in range(128):
        for g in range(8):
            cell = int(meta[row // 16 * 16 + g // 4 * 8 + row % 8, 1]) >> 4 * (row % 16 // 8 * 4 + g % 4)
            full[row, 4 * g + (cell & 3)], full[row, 4 * g + (cell >> 2 & 3)] = a[row, 2 * g], a[row, 2 * g + 1]
    return full @ others[1].view(np.float16).astype(float).T
