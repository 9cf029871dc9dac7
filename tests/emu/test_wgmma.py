# SPDX-License-Identifier: Apache-2.0
"""wgmma in the emulator: formats, majors, swizzles and sizes against NumPy, dot products that an H200 gave bit by bit,
groups in flight under every schedule, and the reports."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

HW = Path(__file__).resolve().parents[1] / "cases" / "hw"
_spec = importlib.util.spec_from_file_location("hw_load_wgmma", HW / "load.py")
load = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(load)

FORMATS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
WIDTH = {0: 16, 32: 32, 64: 64, 128: 128}
MODE = {0: 0, 128: 1, 64: 2, 32: 3}
SCHEDULES = ["late", "early", *range(4)]


# ---- images of shared memory, written out from the pictures of the layouts ------------------------------------------


def k_major(m, swizzle, at=0):
    """(image, LBO, SBO, start) of a matrix (rows, K) of 32 bytes a row; `at`: which 32 bytes of the atom's rows."""
    rows = m.view("uint8").reshape(len(m), 2, 16)  # two pieces of 16 bytes
    groups = len(m) // 8
    if not swizzle:  # core matrices of 8 rows x 16 bytes: [piece][group][row]
        return rows.reshape(groups, 8, 2, 16).transpose(2, 0, 1, 3).reshape(-1).copy(), groups * 128, 128, 0
    pieces = swizzle // 16
    image = np.full((groups, 8, pieces, 16), 0x7F, "uint8")
    for r in range(8):
        turn = r * pieces // 8
        for p in range(2):
            image[:, r, (2 * at + p) ^ turn] = rows.reshape(groups, 8, 2, 16)[:, r, p]
    return image.reshape(-1), 16, 8 * swizzle, 32 * at


def mn_major(m, swizzle):
    """The same of a 16-bit matrix (rows, 16) whose rows lie side by side."""
    t = m.T.copy().view("uint8").reshape(16, -1)  # [k][byte of the row index]
    if not swizzle:  # core matrices of 8 k x 16 bytes: [group of rows][group of k][k]
        n = t.shape[1] // 16
        image = t.reshape(2, 8, n, 16).transpose(2, 0, 1, 3)
        return image.reshape(-1).copy(), 128, 256, 0
    wide = -(-t.shape[1] // swizzle)
    full = np.full((16, wide * swizzle), 0x7F, "uint8")
    full[:, : t.shape[1]] = t
    pieces = swizzle // 16
    image = np.zeros((wide, 2, 8, pieces, 16), "uint8")  # [block of rows][group of k][k][piece]
    for k in range(16):
        for p in range(pieces):
            image[:, k // 8, k % 8, p ^ (k % 8 * pieces // 8)] = full[k].reshape(wide, pieces, 16)[:, p]
    return image.reshape(-1), 16 * swizzle, 8 * swizzle, 0


def descriptor(lbo, sbo, swizzle):
    return lbo >> 4 << 16 | sbo >> 4 << 32 | MODE[swizzle] << 62


KERNEL = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer(({na},), "uint8"), B: T.Buffer(({nb},), "uint8"), R: T.Buffer((128, {words}), "uint32"),
      C: T.Buffer((128, {regs}), {acc!r}), D: T.Buffer((128, {regs}), {acc!r})):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    sa = T.alloc_shared(({na},), "uint8", align=1024)
    sb = T.alloc_shared(({nb},), "uint8", align=1024)
    acc = T.alloc_local(({regs},), {acc!r})
    r = T.alloc_local(({words},), "uint32")
    for i in range({ta}):
        if i * 128 + tx < {na}:
            sa[i * 128 + tx] = A[i * 128 + tx]
    for i in range({tb}):
        if i * 128 + tx < {nb}:
            sb[i * 128 + tx] = B[i * 128 + tx]
    for i in range({words}):
        r[i] = R[tx, i]
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    for i in range({regs}):
        acc[i] = C[tx, i]
    da: T.let = T.uint64({da}) | T.cast(T.cuda.cvta_generic_to_shared(sa.ptr_to([{at_a}])) >> T.uint32(4), "uint64")
    db: T.let = T.uint64({db}) | T.cast(T.cuda.cvta_generic_to_shared(sb.ptr_to([{at_b}])) >> T.uint32(4), "uint64")
    T.ptx.wgmma.fence.sync.aligned()
    T.ptx["wgmma.mma_async{sp}.sync.aligned.{op}"](*acc, {a}, db, {meta}T.bool({scale_d}){tail})
    T.ptx.wgmma.commit_group.sync.aligned()
    T.ptx.wgmma.wait_group.sync.aligned(0)
    for i in range({regs}):
        D[tx, i] = acc[i]
"""

TX = np.arange(128)
W, G, Q = TX // 32, TX % 32 // 4, TX % 4


def spread(c, half):
    """(64, N) to registers (128, n)."""
    n = c.shape[1]
    out = []
    for j in range(n // 8):
        for h in range(2):
            rows = 16 * W + G + 8 * h
            pair = [c[rows, 8 * j + 2 * Q + e] for e in range(2)]
            out += [pair[0] | pair[1] << 16] if half else pair
    return np.stack(out, 1)


def collect(d, n, half):
    c = np.zeros((64, n), "uint32")
    for j in range(n // 8):
        for h in range(2):
            rows = 16 * W + G + 8 * h
            for e in range(2):
                v = d[:, 2 * j + h] >> np.uint32(16 * e) & 0xFFFF if half else d[:, 4 * j + 2 * h + e]
                c[rows, 8 * j + 2 * Q + e] = v
    return c


def wgmma(
    op,
    a,
    b,
    c,
    a_image,
    b_image,
    *,
    half=False,
    floats=True,
    registers=False,
    scale_d=True,
    tail="",
    meta=None,
    select=0,
    **options,
):
    """The (64, N) codes of D. a (64, K), b (N, K); images as k_major and mn_major give them, with the swizzle."""
    (ia, lbo_a, sbo_a, at_a), swz_a = a_image
    (ib, lbo_b, sbo_b, at_b), swz_b = b_image
    regs = spread(c, half)
    acc = "float32" if floats else "uint32"
    per = 4 // a.dtype.itemsize
    codes = a.view({1: "uint8", 2: "uint16", 4: "uint32"}[a.dtype.itemsize]).astype("uint32")
    r = np.zeros((128, 4), "uint32")
    for i in range(4):
        for e in range(per):
            r[:, i] |= codes[16 * W + G + 8 * (i % 2), per * Q + 4 * per * (i // 2) + e] << np.uint32(32 // per * e)
    if meta is not None:
        r = np.concatenate([r, meta[:, None]], 1)
    text = KERNEL.format(
        na=len(ia), nb=len(ib), regs=regs.shape[1], acc=acc, ta=-(-len(ia) // 128), tb=-(-len(ib) // 128), at_a=at_a,
        at_b=at_b, da=descriptor(lbo_a, sbo_a, swz_a), db=descriptor(lbo_b, sbo_b, swz_b), op=op, scale_d=scale_d,
        a="r[0], r[1], r[2], r[3]" if registers else "da", tail=tail, words=r.shape[1],
        sp=".sp" if meta is not None else "", meta=f"r[4], {select}, " if meta is not None else "",
    )  # fmt: skip
    d = np.zeros(regs.shape, "uint32")
    exe = tirx.compile(tirx.from_source(text), target="cpu")
    exe(ia, ib, r, regs.astype("uint32").view(acc), d.view(acc), **options)
    return collect(d, c.shape[1], half)


def some(shape, fmt, seed):
    x = np.random.default_rng(seed).integers(-8, 8, shape)
    return (x + 8 if fmt == "u8" else x).astype(FORMATS[fmt])


def product(a, b):
    return a.astype("float64") @ b.astype("float64").T


KINDS = [("f16", "f16", 16), ("bf16", "bf16", 16), ("tf32", "tf32", 8), ("e4m3", "e5m2", 32), ("e5m2", "e4m3", 32)]


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("at, bt, k", KINDS)
def test_k_major(at, bt, k, swizzle):
    a, b = some((64, k), at, 1), some((24, k), bt, 2)
    c = np.random.default_rng(3).integers(-50, 50, (64, 24)).astype("float32")
    tail = ", 1, 1, 0, 0" if k == 16 else ", 1, 1"
    column = max(0, swizzle // 32 - 1)
    images = (k_major(a, swizzle, column), swizzle), (k_major(b, swizzle, column), swizzle)
    op = f"m64n24k{k}.f32.{at}.{bt}"
    for options in ({}, {"check": False}, {"numerics": "hardware"}):
        d = wgmma(op, a, b, c.view("uint32"), *images, tail=tail, **options)
        np.testing.assert_array_equal(d.view("float32"), product(a, b) + c)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("major_a, major_b", [(1, 0), (0, 1), (1, 1)])
def test_mn_major(major_a, major_b, swizzle):
    a, b = some((64, 16), "bf16", 1), some((32, 16), "bf16", 2)
    c = np.random.default_rng(3).integers(-50, 50, (64, 32)).astype("float32")
    images = [((mn_major if major else k_major)(m, swizzle), swizzle) for m, major in ((a, major_a), (b, major_b))]
    for options in ({}, {"check": False}, {"numerics": "hardware"}):
        d = wgmma(
            "m64n32k16.f32.bf16.bf16", a, b, c.view("uint32"), *images, tail=f", 1, 1, {major_a}, {major_b}", **options
        )
        np.testing.assert_array_equal(d.view("float32"), product(a, b) + c)


# ---- sparse A: two of four along K, named by metadata ---------------------------------------------------------------


def k_major_wide(m, swizzle):
    """k_major of rows of 64 bytes."""
    rows = m.view("uint8").reshape(len(m) // 8, 8, 4, 16)
    if not swizzle:
        return rows.transpose(2, 0, 1, 3).reshape(-1).copy(), len(m) * 16, 128, 0
    pieces = swizzle // 16
    image = np.full((len(m) // 8, 8, pieces, 16), 0x7F, "uint8")
    for r in range(8):
        for p in range(4):
            image[:, r, p ^ (r * pieces // 8)] = rows[:, r, p]
    return image.reshape(-1), 16, 8 * swizzle, 0


def sparse(seed, fmt, select):
    """A with two of four, its kept elements, and the metadata of each thread."""
    r = np.random.default_rng(seed)
    kept = np.sort(np.argsort(r.random((64, 8, 4)), 2)[..., :2], 2)
    short = some((64, 8, 2), fmt, seed + 1)
    full = np.zeros((64, 8, 4), short.dtype)
    np.put_along_axis(full, kept, short, 2)
    nibbles = (kept[..., 0] | kept[..., 1] << 2).astype("uint64")  # row, group
    meta = r.integers(0, 2**32, 128).astype("uint32")  # what is not selected does not count
    for t in range(128):
        h = t % 4 - 2 * select
        if 0 <= h < 2:
            row = 16 * (t // 32) + t % 32 // 4
            word = [nibbles[row + 8 * (n // 4), 4 * h + n % 4] << np.uint64(4 * n) for n in range(8)]
            meta[t] = int(np.bitwise_or.reduce(word))
    return full.reshape(64, 32), short.reshape(64, 16), meta


@pytest.mark.parametrize("swizzle", [0, 64, 128])
@pytest.mark.parametrize("select, registers", [(0, False), (1, False), (0, True), (1, True)])
@pytest.mark.parametrize("fmt, major_b", [("f16", 0), ("bf16", 1)])
def test_sparse(fmt, select, registers, swizzle, major_b):
    full, short, meta = sparse(7, fmt, select)
    b = some((32, 32), fmt, 2)
    c = np.random.default_rng(3).integers(-50, 50, (64, 32)).astype("float32")
    if major_b:  # blocks of rows, in them 32 rows of K: those of the first half and then the others
        t = [mn_major(np.ascontiguousarray(b[:, k : k + 16]), swizzle) for k in (0, 16)]
        wide = -(-64 // swizzle) if swizzle else 4
        image = np.concatenate([x[0].reshape(wide, 2, -1) for x in t], 1)
        of_b = (image.reshape(-1).copy(), *((32 * swizzle, 8 * swizzle) if swizzle else (128, 512)), 0)
    else:
        of_b = k_major_wide(b, swizzle)
    tail = f", 1, 1, {major_b}" if registers else f", 1, 1, 0, {major_b}"
    for options in ({}, {"check": False}, {"numerics": "hardware"}, {"schedule": "early"}):
        d = wgmma(
            f"m64n32k32.f32.{fmt}.{fmt}", short, b, c.view("uint32"), (k_major(short, swizzle), swizzle),
            (of_b, swizzle), registers=registers, tail=tail, meta=meta, select=select, **options,
        )  # fmt: skip
        np.testing.assert_array_equal(d.view("float32"), product(full, b) + c)


@pytest.mark.parametrize("n", [8, 64, 128, 200, 256])
def test_sizes(n):
    a, b = some((64, 16), "f16", 1), some((n, 16), "f16", 2)
    c = np.random.default_rng(3).integers(-50, 50, (64, n)).astype("float32")
    images = (k_major(a, 128), 128), (k_major(b, 128), 128)
    d = wgmma(f"m64n{n}k16.f32.f16.f16", a, b, c.view("uint32"), *images, tail=", 1, 1, 0, 0")
    np.testing.assert_array_equal(d.view("float32"), product(a, b) + c)


@pytest.mark.parametrize("at, bt, k", KINDS)
def test_a_in_registers(at, bt, k):
    a, b = some((64, k), at, 1), some((16, k), bt, 2)
    c = np.random.default_rng(3).integers(-50, 50, (64, 16)).astype("float32")
    images = (k_major(a, 0), 0), (k_major(b, 64), 64)
    tail = ", 1, 1, 0" if k == 16 else ", 1, 1"
    d = wgmma(f"m64n16k{k}.f32.{at}.{bt}", a, b, c.view("uint32"), *images, registers=True, tail=tail)
    np.testing.assert_array_equal(d.view("float32"), product(a, b) + c)


@pytest.mark.parametrize("at, bt", [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")])
@pytest.mark.parametrize("sat", ["", ".satfinite"])
@pytest.mark.parametrize("registers", [False, True])
def test_integers(at, bt, sat, registers):
    a, b = some((64, 32), at, 1), some((16, 32), bt, 2)
    c = np.random.default_rng(3).choice([2**31 - 3, -(2**31) + 2, 7, -9], (64, 16)).astype("int32")
    images = (k_major(a, 32), 32), (k_major(b, 32), 32)
    d = wgmma(f"m64n16k32{sat}.s32.{at}.{bt}", a, b, c.view("uint32"), *images, floats=False, registers=registers)
    exact = a.astype("int64") @ b.astype("int64").T + c
    want = np.clip(exact, -(2**31), 2**31 - 1) if sat else (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(d.view("int32"), want)


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("at, bt, k", [("f16", "f16", 16), ("e4m3", "e4m3", 32), ("e5m2", "e4m3", 32)])
def test_half_accumulators(at, bt, k, registers):
    a, b, c = some((64, k), at, 1), some((16, k), bt, 2), some((64, 16), "f16", 3)
    images = (k_major(a, 64), 64), (k_major(b, 64), 64)
    tail = "" if k == 32 else ", 0" if registers else ", 0, 0"
    d = wgmma(f"m64n16k{k}.f16.{at}.{bt}", a, b, c.view("uint16").astype("uint32"), *images, half=True, floats=False,
              registers=registers, tail=", 1, 1" + tail)  # fmt: skip
    np.testing.assert_array_equal(d.astype("uint16").view("float16"), product(a, b) + c.astype("float64"))


@pytest.mark.parametrize("numerics", ["fast", "hardware"])
def test_negation_and_overwriting(numerics):
    a, b = some((64, 16), "f16", 1), some((16, 16), "f16", 2)
    c = np.full((64, 16), np.nan, "float32")
    images = (k_major(a, 64), 64), (k_major(b, 64), 64)
    op = "m64n16k16.f32.f16.f16"
    for sa, sb in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
        d = wgmma(op, a, b, c.view("uint32"), *images, scale_d=False, tail=f", {sa}, {sb}, 0, 0", numerics=numerics)
        np.testing.assert_array_equal(d.view("float32") + 0.0, sa * sb * product(a, b) + 0.0)


# ---- recorded dot products ------------------------------------------------------------------------------------------

NAMES = ["f16", "bf16", "tf32", "e4m3", "e5m2", "f32"]
ACCUM = [(m, x) for m, x in load.records("accum") if m["op"].startswith("wg_")]


@pytest.mark.parametrize("index", range(len(ACCUM)), ids=[f"{m['op']}-{m['set']}" for m, _ in ACCUM])
def test_recorded_dot_products(index):
    m, x = ACCUM[index]
    half, k, bits = m["fmt_c"] == 0, m["K"], x["a"].dtype
    at, bt, acc = NAMES[m["fmt_a"]], NAMES[m["fmt_b"]], "f16" if m["fmt_c"] == 0 else "f32"
    n = 64
    for first in range(0, len(x["c"]), n):
        a, b = x["a"][first : first + n].astype(bits), x["b"][first : first + n].astype(bits)
        c = np.zeros((64, n), "uint32")
        c[np.arange(n), np.arange(n)] = x["c"][first : first + n]
        images = (k_major(np.ascontiguousarray(a), 0), 0), (k_major(np.ascontiguousarray(b), 0), 0)
        tail = ", 1, 1, 0, 0" if k == 16 else ", 1, 1"
        d = wgmma(f"m64n{n}k{k}.{acc}.{at}.{bt}", a, b, c, *images, half=half, floats=not half, tail=tail,
                  numerics="hardware", check=False)  # fmt: skip
        np.testing.assert_array_equal(d[np.arange(n), np.arange(n)], x["d"][first : first + n])


# ---- a pipeline -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("check", [True, False])
def test_gemm_with_a_ring_of_tensor_copies(schedule, check):
    """Two output tiles a CTA, five K steps through a ring of three stages, one group of wgmma left in flight."""
    K, STAGES = 5 * 64, 3

    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
        A = T.match_buffer(A_ptr, (256, K), "float16", align=16)
        B = T.match_buffer(B_ptr, (32, K), "float16", align=16)
        C = T.match_buffer(C_ptr, (256, 32), "float32", align=16)
        A_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.call_packed(
            "runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, K, 256, K * 2, 64, 64, 1, 1, 0, 3, 0, 0
        )
        T.call_packed(
            "runtime.cuTensorMapEncodeTiled", B_map, "float16", 2, B.data, K, 32, K * 2, 64, 32, 1, 1, 0, 3, 0, 0
        )
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([160])
        sa = T.alloc_shared((STAGES, 64, 64), "float16", align=1024)
        sb = T.alloc_shared((STAGES, 32, 64), "float16", align=1024)
        full = T.alloc_shared((STAGES,), "uint64")
        empty = T.alloc_shared((STAGES,), "uint64")
        acc = T.alloc_local((16,), "float32")
        if tx == 0:
            for s in range(STAGES):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(4))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        slot: T.int32 = 0
        phase: T.uint32 = 0
        if tx >= 128:
            if tx == 128:
                for tile in range(2):
                    for i in range(5):
                        T.cuda.mbarrier_wait(empty.ptr_to([slot]), phase ^ T.uint32(1))
                        T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([slot]), T.uint32(96 * 128))
                        T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"](
                            sa.ptr_to([slot, 0, 0]),
                            T.address_of(A_map),
                            i * 64,
                            (bx * 2 + tile) * 64,
                            full.ptr_to([slot]),
                        )
                        T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"](
                            sb.ptr_to([slot, 0, 0]), T.address_of(B_map), i * 64, 0, full.ptr_to([slot])
                        )
                        slot = slot + 1
                        if slot == STAGES:
                            slot = 0
                            phase = phase ^ T.uint32(1)
        else:
            for tile in range(2):
                before: T.int32 = slot
                for i in range(5):
                    T.cuda.mbarrier_wait(full.ptr_to([slot]), phase)
                    T.ptx.wgmma.fence.sync.aligned()
                    for kk in T.unroll(4):
                        da: T.let = T.cuda.wgmma.matrix_descriptor(sa.ptr_to([slot, 0, kk * 16]), 1, 64, 3)
                        db: T.let = T.cuda.wgmma.matrix_descriptor(sb.ptr_to([slot, 0, kk * 16]), 1, 64, 3)
                        T.ptx["wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"](
                            *acc, da, db, T.ptx.pred((i != 0) | (kk != 0)), 1, 1, 0, 0
                        )
                    T.ptx.wgmma.commit_group.sync.aligned()
                    T.ptx.wgmma.wait_group.sync.aligned(1)
                    if i > 0:
                        if tx % 32 == 0:
                            T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([before]))
                    before = slot
                    slot = slot + 1
                    if slot == STAGES:
                        slot = 0
                        phase = phase ^ T.uint32(1)
                T.ptx.wgmma.wait_group.sync.aligned(0)
                if tx % 32 == 0:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([before]))
                for j in T.unroll(16):
                    C[
                        (bx * 2 + tile) * 64 + tx // 32 * 16 + tx % 32 // 4 + j % 4 // 2 * 8,
                        j // 4 * 8 + tx % 4 * 2 + j % 2,
                    ] = acc[j]

    a, b = some((256, K), "f16", 1), some((32, K), "f16", 2)
    c = np.zeros((256, 32), "float32")
    tirx.compile(k, target="cpu")(a, b, c, schedule=schedule, check=check)
    np.testing.assert_array_equal(c, product(a, b))


# ---- reports --------------------------------------------------------------------------------------------------------

BODY = """
from tirx.script import tirx as T
OP = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"

@T.prim_func
def k(A: T.Buffer((1024,), "float16"), D: T.Buffer((128, 4), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    sa = T.alloc_shared((1024,), "float16", align=128)
    sb = T.alloc_shared((128,), "float16", align=128)
    acc = T.alloc_local((4,), "float32")
    for i in range(8):
        sa[i * 128 + tx] = A[i * 128 + tx]
    sb[tx] = A[tx]
    {proxy}
    T.cuda.cta_sync()
    da: T.let = T.cuda.wgmma.matrix_descriptor(sa.ptr_to([0]), 64, 8, 0)
    db: T.let = T.cuda.wgmma.matrix_descriptor(sb.ptr_to([0]), {lbo}, 8, 0)
    {zero}
    {fence}
    T.ptx[OP](acc[0], acc[1], acc[2], acc[3], da, db, T.bool({scale_d}), 1, 1, 0, 0)
    T.ptx.wgmma.commit_group.sync.aligned()
    {between}
    T.ptx.wgmma.wait_group.sync.aligned({newest})
    for i in range(4):
        D[tx, i] = acc[i]
"""
GOOD = {"proxy": "T.ptx.fence.proxy.async_.shared__cta()", "lbo": "8", "newest": "0", "between": "pass"}
GOOD["scale_d"] = "True"
GOOD["fence"] = "T.ptx.wgmma.fence.sync.aligned()"
GOOD["zero"] = "acc[0] = acc[1] = acc[2] = acc[3] = T.float32(0)"
BAD = {
    "no fence for the operands": ({"proxy": "pass"}, "proxy", "sa", 2),
    "accumulators written behind the last fence": ({"fence": "pass"}, "proxy", "acc", 2),
    "no fence before the first": ({"fence": "pass", "zero": "pass", "scale_d": "False"}, "proxy", None, 1),
    "accumulators never written": ({"zero": "pass"}, "uninitialised", None, 1),
    "an accumulator written in flight": ({"between": "acc[1] = T.float32(3)"}, "async", "acc", 2),
    "one group too many left open": ({"newest": "1"}, "async", "acc", 2),
    "a descriptor that leads outside": ({"lbo": "16000"}, "out_of_bounds", None, 1),
    "a fill of B in flight": ({"between": "sb[tx] = T.float16(1)"}, "async", "sb", 2),
}


def made_parts(changes):
    parts = GOOD | changes
    zero = parts["zero"]
    if zero.startswith("acc"):
        parts["zero"] = "for z in T.unroll(4):\n        acc[z] = T.float32(0)"
    return parts


def made(changes):
    return tirx.compile(tirx.from_source(BODY.format(**made_parts(changes))), target="cpu")


def test_the_right_kernel_is_silent():
    for schedule in SCHEDULES:
        made({})(np.ones(1024, "float16"), np.zeros((128, 4), "float32"), schedule=schedule)


AGAIN = """T.ptx.wgmma.wait_group.sync.aligned(0)
    for q in T.unroll(4):
        D[tx, q] = acc[q]
    BEFORE
    T.ptx[OP](acc[0], acc[1], acc[2], acc[3], da, db, T.bool(True), 1, 1, 0, 0)
    T.ptx.wgmma.commit_group.sync.aligned()"""


def test_accumulators_that_are_read_before_the_next_product():
    """The fence stands between every access and the wgmma that works on the register, reads too."""
    for schedule in SCHEDULES:
        d = np.zeros((128, 4), "float32")
        made({"between": AGAIN.replace("BEFORE", GOOD["fence"])})(np.ones(1024, "float16"), d, schedule=schedule)
        assert (d == 32).all()
        unread = AGAIN.replace("D[tx, q] = acc[q]", "D[tx, q] = T.float32(0)").replace("BEFORE", "pass")
        made({"between": unread})(np.ones(1024, "float16"), d, schedule=schedule)  # products follow each other
        with pytest.raises(tirx.EmulationError) as e:
            made({"between": AGAIN.replace("BEFORE", "pass")})(np.ones(1024, "float16"), d, schedule=schedule)
        assert (e.value.kind, e.value.buffer, len(e.value.lines)) == ("proxy", "acc", 2), str(e.value)
        assert str(e.value).splitlines()[0] == (
            "proxy: wgmma works on registers of acc that ordinary code has read: wgmma.fence is missing between"
        )


@pytest.mark.parametrize("what", BAD)
def test_reports(what):
    changes, kind, buffer, lines = BAD[what]
    for schedule in SCHEDULES:
        with pytest.raises(tirx.EmulationError) as e:
            made(changes)(np.ones(1024, "float16"), np.zeros((128, 4), "float32"), schedule=schedule)
        assert (e.value.kind, e.value.buffer, len(e.value.lines)) == (kind, buffer, lines), str(e.value)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_thread_of_the_warpgroup_gives_the_operands_back(schedule):
    """wgmma is the warpgroup's: when one warp has waited, the operands of all four have been read."""
    text = BODY.format(**made_parts({})).replace(
        "    for i in range(4):\n        D",
        "    if tx < 32:\n        for i in range(4):\n            sb[tx * 4 + i] = T.float16(9)\n"
        "    for i in range(4):\n        D",
    )
    a, d = np.random.default_rng(0).integers(-4, 5, 1024).astype("float16"), np.zeros((128, 4), "float32")
    tirx.compile(tirx.from_source(text), target="cpu")(a, d, schedule=schedule)
    ma = a.reshape(2, 64, 8).transpose(1, 0, 2).reshape(64, 16)
    mb = a[:128].reshape(2, 8, 8).transpose(1, 0, 2).reshape(8, 16)
    np.testing.assert_array_equal(collect(d.view("uint32"), 8, False).view("float32"), product(ma, mb))
