# SPDX-License-Identifier: Apache-2.0
"""T.cuda.tcgen05's descriptors against the bits of the ISA, 16 x 16 tiles of a warp, special registers, waiting for a
word in memory, the barrier of the whole grid."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T
from tirx.script.cuda_tcgen05 import tcgen05

BF16 = dict(d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", trans_a=False, trans_b=False)


@pytest.mark.parametrize(
    ("fields", "bits"),
    [
        (dict(BF16, M=128, N=256, K=16), 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 8 << 24),
        (dict(BF16, M=256, N=256, K=16, n_cta_groups=2), 1 << 4 | 1 << 7 | 1 << 10 | 32 << 17 | 16 << 24),
        (dict(BF16, M=64, N=8, K=16, trans_b=True), 1 << 4 | 1 << 7 | 1 << 10 | 1 << 16 | 1 << 17 | 4 << 24),
        (dict(BF16, M=128, N=16, K=16, neg_a=True), 1 << 4 | 1 << 7 | 1 << 10 | 1 << 13 | 2 << 17 | 8 << 24),
        (dict(BF16, M=128, N=32, K=32, is_sparse=True), 1 << 2 | 1 << 4 | 1 << 7 | 1 << 10 | 4 << 17 | 8 << 24),
        (
            dict(d_dtype="int32", a_dtype="int8", b_dtype="uint8", trans_a=0, trans_b=0, M=64, N=24, K=32, sat_d=True),
            1 << 3 | 2 << 4 | 1 << 7 | 3 << 17 | 4 << 24,
        ),
        (
            dict(
                d_dtype="float16",
                a_dtype="float8_e5m2",
                b_dtype="float4_e2m1fn",
                trans_a=0,
                trans_b=0,
                M=128,
                N=64,
                K=32,
            ),
            1 << 7 | 5 << 10 | 8 << 17 | 8 << 24,
        ),
    ],
)
def test_instruction_descriptors(fields, bits):
    assert tcgen05.instr_descriptor(**fields) == bits


@pytest.mark.parametrize(
    ("a", "scale", "K", "bits"),
    [
        ("float8_e4m3fn", "float8_e8m0fnu", 32, 1 << 23),
        ("float4_e2m1fn", "float8_e8m0fnu", 64, 1 << 7 | 1 << 10 | 1 << 23),
        ("float4_e2m1fn", "float8_e4m3fn", 64, 1 << 7 | 1 << 10),
    ],
)
def test_block_scaled_instruction_descriptors(a, scale, K, bits):
    made = tcgen05.instr_descriptor_block_scaled(
        d_dtype="float32", a_dtype=a, b_dtype=a, sfa_dtype=scale, sfb_dtype=scale, M=128, N=128, K=K,
        trans_a=False, trans_b=False,
    )  # fmt: skip
    assert made == bits | 16 << 17 | 8 << 24


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (dict(BF16, M=100, N=256, K=16), "Invalid matrix shape"),
        (dict(BF16, M=128, N=8, K=16), "Invalid matrix shape"),
        (dict(BF16, M=128, N=256, K=32), "Invalid matrix shape"),
        (dict(BF16, M=64, N=64, K=16, n_cta_groups=2), "Invalid matrix shape"),
        (dict(BF16, M=128, N=256, K=16, sat_d=True), "sat_d is only allowed"),
        (dict(BF16, M=128, N=64, K=16) | dict(a_dtype="int8"), "Invalid multiplicand data types"),
    ],
)
def test_what_is_no_instruction(fields, text):
    with pytest.raises(ValueError, match=text):
        tcgen05.instr_descriptor(**fields)


def test_matrix_descriptors():
    @T.prim_func
    def k(D: T.Buffer((5,), "uint64"), I: T.Buffer((2,), "uint32"), where: T.uint32):
        T.device_entry()
        tx = T.thread_id([1])
        made: T.uint64
        for s in [0, 1, 2, 3, 4]:
            T.cuda.tcgen05_encode_matrix_descriptor(T.address_of(made), where, 1, 64, s)
            D[s] = made
        word: T.uint32
        T.cuda.tcgen05.encode_instr_descriptor(
            T.address_of(word), d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=64, K=16,
            trans_a=False, trans_b=False,
        )  # fmt: skip
        I[0] = word
        T.cuda.runtime_instr_desc(T.address_of(word), 2)
        I[1] = word

    d, i = np.zeros(5, "uint64"), np.zeros(2, "uint32")
    tirx.compile(k, target="cpu")(d, i, 0x1C400)
    base = 0x1C400 >> 4 | 1 << 16 | 64 << 32 | 1 << 46
    assert [int(x) for x in d[:5]] == [base | layout << 61 for layout in (0, 6, 4, 2, 1)]
    plain = 1 << 4 | 8 << 17 | 8 << 24
    assert int(i[0]) == plain
    assert int(i[1]) == (plain & ~0x60000030) | 2 << 29 | 2 << 4


def test_tiles_of_a_warp():
    @T.prim_func
    def k(C: T.Buffer((16, 24), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        acc = T.alloc_local((10,), "float32")
        T.cuda.mma_fill("float32", 8, acc.data, 2)
        for e in T.unroll(8):
            acc[2 + e] += T.cast(tx * 8 + e, "float32")
        T.cuda.mma_store("float32", 16, 16, C.ptr_to([0, 4]), acc.data, 2, 24)

    c = np.full((16, 24), -1, "float32")
    tirx.compile(k, target="cpu")(c)
    want = np.full((16, 24), -1, "float32")
    for lane in range(32):
        for e in range(8):
            want[8 * (e >> 1 & 1) + lane // 4, 4 + 8 * (e >> 2) + 2 * (lane % 4) + (e & 1)] = lane * 8 + e
    np.testing.assert_array_equal(c, want)


@T.prim_func
def words(A: T.Buffer((64,), "int32"), flag: T.Buffer((1,), "uint32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    seen: T.uint32
    if bx == 1:
        T.cuda.wait_until(seen, flag.ptr_to([0]), seen == 7, backoff_ns=20)
        A[32 + tx] = A[tx] + 100
    else:
        A[tx] = T.cuda.mov_sreg(32, "tid.x")
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.st.release.gpu.global_.u32(flag.ptr_to([0]), T.uint32(7))


def test_waiting_for_a_word():
    a, flag = np.zeros(64, "int32"), np.zeros(1, "uint32")
    tirx.compile(words, target="cpu")(a, flag)
    np.testing.assert_array_equal(a, np.concatenate([np.arange(32), np.arange(100, 132)]))


@T.prim_func
def rotate(A: T.Buffer((8, 32), "int32"), B: T.Buffer((8, 32), "int32")):
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([32])
    for i in range(3):
        B[(bx + 1) % 8, tx] = A[bx, tx]
        T.cuda.grid_sync()
        A[bx, tx] = B[bx, tx] + 1
        T.cuda.grid_sync()


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_grid_meets(target):
    a = np.arange(256, dtype="int32").reshape(8, 32)
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    x, y = tirx.runtime.tensor(a, device), tirx.runtime.tensor(np.zeros_like(a), device)
    exe = tirx.compile(rotate, target=target)
    for turn in range(1, 3):
        exe(x, y)
        np.testing.assert_array_equal(x.numpy(), np.roll(a, 3 * turn, axis=0) + 3 * turn)


def test_all_are_assembled(nvrtc):
    @T.prim_func
    def registers(A: T.Buffer((64,), "int64")):
        T.device_entry()
        tx = T.thread_id([64])
        A[tx] = T.cuda.mov_sreg(64, "globaltimer") + T.cast(T.cuda.mov_sreg(32, "smid"), "int64")

    for kernel in (words, rotate, registers):
        assert tirx.compile(kernel, target="cuda:sm_90a").cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x = T.cuda.mov_sreg(16, 'tid.x')", "Only support 32/64 bits"),
        ("x = T.cuda.mov_sreg(32, 'tid x')", "the name of a special register"),
        ("T.cuda.wait_until(x, A.data, x == 1, scope='world')", "scope must be"),
        ("T.cuda.wait_until(x, A.data, x == 1, space='shared')", "waits for global memory"),
        ("T.cuda.wait_until(x, A.data, x == 1, ptx_type='u64')", "is not as wide"),
        (
            "x = T.cuda.cache_policy('evict')",
            "T.cuda.cache_policy: expected one of evict_normal, evict_first, evict_last",
        ),
        ("T.cuda.mma_store('float32', 8, 16, A.data, A.data, 0, 1)", "tiles of 16 x 16"),
    ],
)
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((32,), "uint32")):
    T.device_entry()
    tx = T.thread_id([32])
    x: T.uint32 = 0
    {line}
""")
    assert text in str(e.value)


def test_cache_policies(nvrtc):
    """The constants are what createpolicy gives for all of an access."""

    @T.prim_func
    def k(A: T.Buffer((3,), "uint64"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        tx = T.thread_id([32])
        x: T.float32
        T.ptx.ld.global_.L2__cache_hint.f32(x, B.ptr_to([tx]), T.cuda.cache_policy("evict_first"))
        B[tx] = x + 1.0
        if tx == 0:
            A[0] = T.cuda.cache_policy("evict_normal")
            A[1] = T.cuda.cache_policy("evict_last")
            A[2] = T.cuda.cache_policy("evict_first")

    a, b = np.zeros(3, "uint64"), np.arange(32, dtype="float32")
    tirx.compile(k, target="cpu")(a, b)
    assert [int(x) for x in a] == [0x1000000000000000, 0x14F0000000000000, 0x12F0000000000000]
    np.testing.assert_array_equal(b, np.arange(1, 33))
    assert tirx.compile(k, target="cuda:sm_90a").cubin[:4] == b"\x7fELF"
