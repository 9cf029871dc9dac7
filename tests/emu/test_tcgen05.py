# SPDX-License-Identifier: Apache-2.0
"""Tensor memory and the fifth-generation matrix unit: images of loads and stores, copies, products; misuse.

References are written from the tables of the PTX ISA (where an element lies) and from NumPy's products.
"""

import re

import ml_dtypes
import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"


def emulate(f, *args, **options):
    tirx.compile(f, target="cpu")(*args, **options)
    return args[-1]


# ---- loads and stores ----------------------------------------------------------------------------------------------


def image(shape, lane, r):
    """Row and column, from the start of the access, of register r of a lane."""
    return {
        "32x32b": (lane, r),
        "16x64b": (lane // 4 + 8 * (lane % 2), lane // 2 % 2 + 2 * r),
        "16x128b": (lane // 4 + 8 * (r % 2), lane % 4 + 4 * (r // 2)),
        "16x256b": (lane // 4 + 8 * (r // 2 % 2), r % 2 + 2 * (lane % 4) + 8 * (r // 4)),
    }[shape]


def load_store(shape, num, regs):
    @T.prim_func
    def k(A: T.Buffer((128, 16), "uint32"), B: T.Buffer((128, regs), "uint32")):
        T.device_entry()
        tx = T.thread_id([128])
        w = T.warp_id([4])
        addr = T.alloc_shared((1,), "uint32")
        v = T.alloc_local((16,), "uint32")
        r = T.alloc_local((regs,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(32))
        T.cuda.cta_sync()
        for j in range(16):
            v[j] = A[tx, j]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x16.b32"](T.cuda.get_tmem_addr(addr[0], w * 32, 0), *v[0:16])
        T.ptx["tcgen05.wait::st.sync.aligned"]()
        T.ptx[f"tcgen05.ld.sync.aligned.{shape}.{num}.b32"](*r[0:regs], addr[0])
        T.ptx["tcgen05.wait::ld.sync.aligned"]()
        for j in range(regs):
            B[tx, j] = r[j]
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(32))

    return k


@pytest.mark.parametrize(
    "shape, num, regs", [("32x32b", "x8", 8), ("16x64b", "x8", 8), ("16x128b", "x4", 8), ("16x256b", "x2", 8)]
)
def test_the_image_of_a_load(shape, num, regs):
    a = np.arange(128 * 16, dtype=np.uint32).reshape(128, 16)
    got = emulate(load_store(shape, num, regs), a, np.zeros((128, regs), np.uint32))
    want = np.zeros_like(got)
    for thread in range(128):
        for r in range(regs):
            row, column = image(shape, thread % 32, r)
            want[thread, r] = a[thread // 32 * 32 + row, column]
    np.testing.assert_array_equal(got, want)


# ---- copies --------------------------------------------------------------------------------------------------------


def copy(shape, rows, columns):
    @T.prim_func
    def k(A: T.Buffer((rows, columns), "uint32"), B: T.Buffer((128, columns), "uint32")):
        T.device_entry()
        tx = T.thread_id([128])
        w = T.warp_id([4])
        s = T.alloc_shared((columns // 4, rows, 4), "uint32", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        d = T.alloc_local((1,), "uint64")
        r = T.alloc_local((columns,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(32))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        if tx < rows:
            for j in range(columns):
                s[j // 4, tx, j % 4] = A[tx, j]
        T.ptx.fence.proxy.async_.shared__cta()
        for j in range(columns):
            r[j] = T.uint32(0)
        T.cuda.cta_sync()
        if columns == 4:
            T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](addr[0], *r[0:columns])
        else:
            T.ptx["tcgen05.st.sync.aligned.32x32b.x8.b32"](addr[0], *r[0:columns])
        T.ptx["tcgen05.wait::st.sync.aligned"]()
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        T.ptx["tcgen05.fence::after_thread_sync"]()
        if tx == 0:
            T.cuda.tcgen05.encode_matrix_descriptor(d.ptr_to([0]), s.ptr_to([0, 0, 0]), rows, 8, 0)
            T.ptx[f"tcgen05.cp.cta_group::1.{shape}"](addr[0], d[0])
            T.ptx[COMMIT](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx["tcgen05.fence::after_thread_sync"]()
        if columns == 4:
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x4.b32"](*r[0:columns], addr[0])
        else:
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x8.b32"](*r[0:columns], addr[0])
        T.ptx["tcgen05.wait::ld.sync.aligned"]()
        for j in range(columns):
            B[tx, j] = r[j]
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(32))

    return k


@pytest.mark.parametrize(
    "shape, rows, columns, lanes",
    [
        ("128x256b", 128, 8, lambda r: [r]),
        ("128x128b", 128, 4, lambda r: [r]),
        ("64x128b.warpx2::02_13", 64, 4, lambda r: [r, r + 64]),
        ("64x128b.warpx2::01_23", 64, 4, lambda r: [64 * (r // 32) + r % 32, 64 * (r // 32) + r % 32 + 32]),
        ("32x128b.warpx4", 32, 4, lambda r: [r, r + 32, r + 64, r + 96]),
    ],
)
@pytest.mark.parametrize("schedule", ["late", "early", 5])
def test_the_shapes_of_copies(shape, rows, columns, lanes, schedule):
    a = np.arange(1, rows * columns + 1, dtype=np.uint32).reshape(rows, columns)
    got = emulate(copy(shape, rows, columns), a, np.zeros((128, columns), np.uint32), schedule=schedule)
    want = np.zeros_like(got)
    for r in range(rows):
        want[lanes(r)] = a[r]
    np.testing.assert_array_equal(got, want)


# ---- products ------------------------------------------------------------------------------------------------------


def product(kind, M, N, K, a_dtype, b_dtype, d_dtype, container, steps=1, M_named=None):
    """D = A @ B.T of `steps` instructions; operands as bytes, K-major without swizzle."""
    row = K * steps * container
    chunks = row // 16
    step = K * container // 16

    @T.prim_func
    def k(A: T.Buffer((M, row), "uint8"), B: T.Buffer((N, row), "uint8"), D: T.Buffer((128, N), "uint32")):
        T.device_entry()
        tx = T.thread_id([128])
        w = T.warp_id([4])
        sa = T.alloc_shared((chunks, M, 16), "uint8", align=128)
        sb = T.alloc_shared((chunks, N, 16), "uint8", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((N,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(64))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for i in range(tx, M * row, 128):
            sa[i % row // 16, i // row, i % 16] = A[i // row, i % row]
        for i in range(tx, N * row, 128):
            sb[i % row // 16, i // row, i % 16] = B[i // row, i % row]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        if tx == 0:
            T.cuda.tcgen05.encode_instr_descriptor(
                di.ptr_to([0]),
                d_dtype=d_dtype,
                a_dtype=a_dtype,
                b_dtype=b_dtype,
                M=M_named or M,
                N=N,
                K=K,
                trans_a=False,
                trans_b=False,
                n_cta_groups=1,
            )
            for s in T.unroll(steps):
                T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([s * step, 0, 0]), M, 8, 0)
                T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([s * step, 0, 0]), N, 8, 0)
                T.ptx[f"tcgen05.mma.cta_group::1.kind::{kind}"](
                    addr[0], da[0], db[0], di[0], T.uint32(0), T.uint32(0), T.uint32(0), T.uint32(0), T.bool(s > 0)
                )
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


def operand(rng, rows, K, dtype):
    """Small values, exact in every format, and their bytes."""
    if dtype in ("int8", "uint8"):
        v = rng.integers(0 if dtype == "uint8" else -100, 100, (rows, K))
        return v, v.astype(dtype).view(np.uint8)
    v = rng.choice(np.array([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2], np.float32), (rows, K))
    if dtype == "tf32":
        return v, v.view(np.uint8)
    return v, v.astype(getattr(ml_dtypes, dtype, None) or dtype).view(np.uint8)


@pytest.mark.parametrize(
    "kind, K, a_dtype, b_dtype, d_dtype, container",
    [
        ("f16", 16, "float16", "float16", "float32", 2),
        ("f16", 16, "bfloat16", "bfloat16", "float32", 2),
        ("f16", 16, "float16", "float16", "float16", 2),
        ("tf32", 8, "tf32", "tf32", "float32", 4),
        ("f8f6f4", 32, "float8_e4m3fn", "float8_e5m2", "float32", 1),
        ("i8", 32, "int8", "uint8", "int32", 1),
    ],
)
@pytest.mark.parametrize("numerics", ["fast", "hardware"])
def test_products(kind, K, a_dtype, b_dtype, d_dtype, container, numerics):
    rng = np.random.default_rng(1)
    steps, M, N = 2, 128, 32
    a, a_bytes = operand(rng, M, K * steps, a_dtype)
    b, b_bytes = operand(rng, N, K * steps, b_dtype)
    f = product(kind, M, N, K, a_dtype, b_dtype, d_dtype, container, steps)
    got = emulate(f, a_bytes, b_bytes, np.zeros((128, N), np.uint32), numerics=numerics)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    if d_dtype == "float16":
        got = (got & 0xFFFF).astype(np.uint16).view(np.float16)
    else:
        got = got.view(np.int32 if d_dtype == "int32" else np.float32)
    np.testing.assert_array_equal(got.astype(np.float64), want)


def test_64_rows_lie_in_every_other_half_window():
    rng = np.random.default_rng(2)
    a, a_bytes = operand(rng, 64, 16, "float16")
    b, b_bytes = operand(rng, 32, 16, "float16")
    f = product("f16", 64, 32, 16, "float16", "float16", "float32", 2)
    with pytest.raises(tirx.EmulationError) as e:  # lanes 16 to 31 of each window hold nothing
        emulate(f, a_bytes, b_bytes, np.zeros((128, 32), np.uint32))
    assert e.value.kind == "uninitialised" and e.value.buffer == "tmem"
    got = emulate(f, a_bytes, b_bytes, np.zeros((128, 32), np.uint32), check=False).view(np.float32)
    rows = [r // 16 * 32 + r % 16 for r in range(64)]
    np.testing.assert_array_equal(got[rows], a.astype(np.float64) @ b.astype(np.float64).T)


def weight_stationary(M, N, mask):
    """product() with tcgen05.mma.ws and a mask of zero columns."""
    text = product("f16", M, N, 16, "float16", "float16", "float32", 2, M_named=128).script()
    named = re.search(r"di\[0\] = ([^\n]*)\n", text)
    text = text.replace(named[0], f"di[0] = T.uint32({1 << 4 | N >> 3 << 17 | M >> 4 << 24})\n")
    call = re.search(r'T\.ptx(\.tcgen05\.mma\.[\w.]+|\["tcgen05\.mma[^"]*"\])\(([^\n]*)\)\n', text)
    words = call[2].split(", ")
    new = f'T.ptx["tcgen05.mma.ws.cta_group::1.kind::f16"]({", ".join(words[:4] + words[8:])}, T.uint64({mask}))\n'
    return tirx.from_source(text[: call.start()] + new + text[call.end() :])


def spans(size, start, first, use, zeros):
    """Which columns of a part are zeros, from the pattern written out."""
    turn = [1] * zeros + [0] * use if first else [0] * use + [1] * zeros
    return np.array((turn * (start + size))[start : start + size])


@pytest.mark.parametrize("M", [128, 64, 32])
@pytest.mark.parametrize(
    "enabled, use, zeros, starts, firsts",
    [
        (1, 1, 1, (0, 0, 0, 0), (0, 0, 0, 0)),
        (1, 3, 2, (0, 1, 2, 7), (0, 1, 0, 1)),
        (1, 40, 5, (38, 3, 41, 200), (0, 0, 1, 1)),
        (0, 3, 2, (0, 1, 2, 3), (1, 1, 1, 1)),
    ],
)
def test_masks_of_zero_columns(M, enabled, use, zeros, starts, firsts):
    rng = np.random.default_rng(5)
    N, parts = 64, 128 // M
    a, a_bytes = operand(rng, M, 16, "float16")
    b, b_bytes = operand(rng, N, 16, "float16")
    mask = enabled << 39 | use - 1 << 40 | zeros - 1 << 48
    for i in range(4):
        mask |= starts[i] << 8 * i | firsts[i] << 32 + i
    size = N // parts
    gone = np.concatenate([spans(size, starts[i], firsts[i], use, zeros) for i in range(parts)]) * enabled
    want = a.astype(np.float64) @ (b * (1 - gone)[:, None]).astype(np.float64).T
    f = weight_stationary(M, N, mask)
    got = emulate(f, a_bytes, b_bytes, np.zeros((128, N), np.uint32), check=False).view(np.float32)
    for i in range(parts):  # parts of N lie in windows of lanes
        np.testing.assert_array_equal(got[M * i : M * i + M, :size], want[:, size * i : size * i + size])


def test_masks_that_shift_columns():
    f = weight_stationary(128, 32, 1 << 39 | 4 << 56)
    with pytest.raises(tirx.EmulationError) as e:
        emulate(f, np.zeros((128, 32), np.uint8), np.zeros((32, 32), np.uint8), np.zeros((128, 32), np.uint32))
    assert e.value.kind == "unsupported" and "that shifts columns (by 4) is not emulated" in str(e.value)


# ---- misuse --------------------------------------------------------------------------------------------------------

HEAD = """
@T.prim_func
def k(B: T.Buffer((128,), "uint32")):
    T.device_entry()
    tx = T.thread_id([128])
    w = T.warp_id([4])
    addr = T.alloc_shared((1,), "uint32")
    r = T.alloc_local((1,), "uint32")
    r[0] = T.uint32(1)
    if w == 0:
        T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32({n}))
    T.cuda.cta_sync()
"""


def misuse(body, n=32):
    text = HEAD.format(n=n) + "".join(f"    {line}\n" for line in body.strip().splitlines())
    with pytest.raises(tirx.EmulationError) as e:
        emulate(tirx.from_source(text), np.zeros(128, np.uint32))
    return e.value


ST = 'T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"]'
LD = 'T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"]'
FREE = 'if w == 0:\n    T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"]({})'


@pytest.mark.parametrize(
    "body, n, kind, words",
    [
        ("B[tx] = 1", 24, "tmem", "of 24 columns: the number is a power of two in 32..512"),
        (
            "B[tx] = 1",
            32,
            "tmem",
            "the CTA exits with 32 columns of tensor memory, from 0 on, that it has not given back",
        ),
        (f"{ST}(addr[0] + T.uint32(32), r[0])", 32, "tmem", "column 32 is not allocated"),
        (f"{ST}(addr[0] + T.uint32(600), r[0])", 32, "tmem", "tensor memory has 512"),
        (f"{ST}(T.cuda.get_tmem_addr(addr[0], 32, 0), r[0])", 32, "tmem", "which reaches lanes 96..127"),
        (f"{LD}(r[0], addr[0])\nT.cuda.cta_sync()", 32, "uninitialised", "which nobody has written"),
        (f"{ST}(addr[0], r[0])\n{LD}(r[0], addr[0])", 32, "async", "before tcgen05.wait::st of"),
        (FREE.format("addr[0], T.uint32(64)"), 32, "tmem", "the allocation is of 32 from 0 on"),
        (FREE.format("T.uint32(32), T.uint32(32)"), 32, "tmem", "which are not allocated"),
        (f"if tx < 40:\n    {ST}(addr[0], r[0])", 32, "divergence", "names lane 8"),
    ],
)
def test_misuse_is_reported(body, n, kind, words):
    e = misuse(body, n)
    assert (e.kind, words in str(e)) == (kind, True), str(e)


def test_allocation_after_giving_up_the_right():
    e = misuse(
        'T.cuda.cta_sync()\nif w == 0:\n    T.ptx["tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned"]()\n'
        '    T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(32))'
    )
    assert e.kind == "tmem" and "given up the right" in str(e)


# ---- copies that unpack; block scales -------------------------------------------------------------------------------


@pytest.mark.parametrize("bits, suffix", [(4, "b4x16_p64"), (6, "b6x16_p32")])
def test_copies_that_unpack(bits, suffix):
    """Sixteen values packed at the beginning of each 16 bytes become a byte each; four-bit ones two bits higher."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 1 << bits, (128, 16), dtype=np.uint64)
    packed = np.zeros((128, 16), np.uint8)
    for r in range(128):
        word = sum(int(v) << bits * i for i, v in enumerate(values[r]))
        packed[r] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    got = emulate(copy(f"128x128b.b8x16.{suffix}", 128, 4), packed.view(np.uint32), np.zeros((128, 4), np.uint32))
    want = (values << (2 if bits == 4 else 0)).astype(np.uint8)
    np.testing.assert_array_equal(got.view(np.uint8), want)


def scaled_product(kind, vector, M, N, K, fmt, sf, row):
    """D = (A * its scales) @ (B * their scales).T of one instruction; scales as cells, columns 64 and 68 on."""
    chunks = row // 16

    @T.prim_func
    def k(
        A: T.Buffer((M, row), "uint8"),
        B: T.Buffer((N, row), "uint8"),
        SA: T.Buffer((M,), "uint32"),
        SB: T.Buffer((N,), "uint32"),
        D: T.Buffer((M, N), "float32"),
    ):
        T.device_entry()
        tx = T.thread_id([128])
        w = T.warp_id([4])
        lane = T.lane_id([32])
        sa = T.alloc_shared((chunks, M, 16), "uint8", align=128)
        sb = T.alloc_shared((chunks, N, 16), "uint8", align=128)
        addr = T.alloc_shared((1,), "uint32")
        bar = T.alloc_shared((1,), "uint64")
        da = T.alloc_local((1,), "uint64")
        db = T.alloc_local((1,), "uint64")
        di = T.alloc_local((1,), "uint32")
        r = T.alloc_local((N,), "float32")
        s = T.alloc_local((4,), "uint32")
        if w == 0:
            T.ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](addr.ptr_to([0]), T.uint32(128))
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.fence.mbarrier_init.release.cluster()
        for i in range(tx, M * row, 128):
            sa[i % row // 16, i // row, i % 16] = A[i // row, i % row]
        for i in range(tx, N * row, 128):
            sb[i % row // 16, i // row, i % 16] = B[i // row, i % row]
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        for q in T.unroll(4):
            s[q] = SA[q * 32 + lane]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](addr[0] + T.uint32(64), *s[0:4])
        s[0] = SB[lane]
        T.ptx["tcgen05.st.sync.aligned.32x32b.x1.b32"](addr[0] + T.uint32(68), s[0])
        T.ptx["tcgen05.wait::st.sync.aligned"]()
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        T.ptx["tcgen05.fence::after_thread_sync"]()
        if tx == 0:
            T.cuda.tcgen05.encode_instr_descriptor_block_scaled(
                *(di.ptr_to([0]),), d_dtype="float32", a_dtype=fmt, b_dtype=fmt, sfa_dtype=sf, sfb_dtype=sf,
                sfa_tmem_addr=0, sfb_tmem_addr=0, M=M, N=N, K=K, trans_a=False, trans_b=False, n_cta_groups=1,
            )  # fmt: skip
            T.cuda.tcgen05.encode_matrix_descriptor(da.ptr_to([0]), sa.ptr_to([0, 0, 0]), M, 8, 0)
            T.cuda.tcgen05.encode_matrix_descriptor(db.ptr_to([0]), sb.ptr_to([0, 0, 0]), N, 8, 0)
            T.ptx[f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.scale_vec::{vector}X"](
                addr[0], da[0], db[0], di[0], addr[0] + T.uint32(64), addr[0] + T.uint32(68), T.bool(False)
            )
            T.ptx[COMMIT](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        T.ptx["tcgen05.fence::after_thread_sync"]()
        T.ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](*r[0:N], addr[0])
        T.ptx["tcgen05.wait::ld.sync.aligned"]()
        for j in range(N):
            D[tx, j] = r[j]
        T.ptx["tcgen05.fence::before_thread_sync"]()
        T.cuda.cta_sync()
        if w == 0:
            T.ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](addr[0], T.uint32(128))

    return k


@pytest.mark.parametrize(
    "kind, vector, K, fmt, sf",
    [
        ("mxf8f6f4", 1, 32, "float8_e4m3fn", "float8_e8m0fnu"),
        ("mxf4", 2, 64, "float4_e2m1fn", "float8_e8m0fnu"),
        ("mxf4nvf4", 4, 64, "float4_e2m1fn", "float8_e4m3fn"),
    ],
)
def test_products_with_block_scales(kind, vector, K, fmt, sf):
    rng = np.random.default_rng(4)
    M, N, block = 128, 32, K // vector
    values = np.array([-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    a, b = (rng.choice(values, (rows, K)) for rows in (M, N))
    scales = np.array([0.25, 0.5, 1, 2, 4] if sf == "float8_e8m0fnu" else [0.5, 0.75, 1, 1.5, 3], np.float32)
    sa, sb = (rng.choice(scales, (rows, vector)) for rows in (M, N))

    def operand_bytes(v):
        codes = v.astype(getattr(ml_dtypes, fmt)).view(np.uint8)
        return codes if fmt == "float8_e4m3fn" else (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)

    def cells(s):
        padded = np.ones((len(s), 4), np.float32)
        padded[:, :vector] = s
        return padded.astype(getattr(ml_dtypes, sf)).view(np.uint32)[:, 0].copy()

    row = operand_bytes(a).shape[1]
    f = scaled_product(kind, vector, M, N, K, fmt, sf, row)
    got = emulate(f, operand_bytes(a), operand_bytes(b), cells(sa), cells(sb), np.zeros((M, N), np.float32))
    wide = [np.repeat(s, block, 1).astype(np.float64) for s in (sa, sb)]
    np.testing.assert_array_equal(got, (a * wide[0]) @ (b * wide[1]).T)
