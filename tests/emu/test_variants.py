# SPDX-License-Identifier: Apache-2.0
"""The interpreter is compiled for several instruction sets; all give the same bits."""

from __future__ import annotations

import kernels
import ml_dtypes
import numpy as np
import program_kernels
import pytest

import tirx
from tirx.script import tirx as T


def features() -> set[str]:
    try:
        return set(next(x for x in open("/proc/cpuinfo") if x.startswith("flags")).split())
    except (OSError, StopIteration):
        return set()


VARIANTS = ["base"] + [
    v
    for v, flags in (("avx2", {"avx2", "fma"}), ("avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}))
    if flags <= features()
]


@T.prim_func
def mixture(
    A: T.Buffer((256,), "float32"),
    B: T.Buffer((256,), "float32"),
    H: T.Buffer((256,), "float16"),
    D: T.Buffer((256,), "float64"),
):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])
    x: T.float32 = A[tx]
    acc: T.float32 = 0.0
    for i in range(9):
        acc = acc * T.float32(0.75) + T.exp(x - T.cast(i, "float32")) / (acc + T.float32(1.5))
        if acc > x:
            acc = T.sqrt(acc) + T.exp2(x)
    B[tx] = acc
    H[tx] = T.cast(acc, "float16") * T.cast(x, "float16") + T.float16(0.1)
    D[tx] = T.rsqrt(T.cast(T.abs(x), "float64") + T.float64(0.3)) + T.cast(
        T.cast(acc * T.float32(1e6), "int64"), "float64"
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_agree_bit_for_bit(variant, monkeypatch):
    exe = tirx.compile(mixture, target="cpu")
    a = np.random.default_rng(0).standard_normal(256).astype("f4") * 3

    def out():
        r = np.zeros(256, "f4"), np.zeros(256, "f2"), np.zeros(256, "f8")
        exe(a, *r)
        return [x.tobytes() for x in r]

    monkeypatch.setenv("TIRX_EMU_ISA", "base")
    want = out()
    monkeypatch.setenv("TIRX_EMU_ISA", variant)
    assert out() == want


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", sorted(kernels.KERNELS))
def test_all_kernels_of_the_suite_run_on_each(name, variant, monkeypatch):
    monkeypatch.setenv("TIRX_EMU_ISA", variant)
    kernels.run(name)


@pytest.mark.parametrize("name", ["hopper_gemm", "blackwell_gemm"])
def test_matrix_units_give_the_same_bits(name, monkeypatch):
    """Products are fused with sums only where the product is exact: here some of bfloat16's are subnormal."""
    gemm = program_kernels.module(f"examples/{name}.py").gemm
    exe = tirx.compile(gemm.specialize(dtype="bfloat16", SMS=4), target="cpu")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, 72)).astype("float32") for n in (136, 264))
    a[5] *= 1e-25
    b[7] *= 1e-18
    a[6] *= 3e30
    args = [x.astype(ml_dtypes.bfloat16) for x in (a, b)]

    def out(**how):
        c = np.zeros((136, 264), ml_dtypes.bfloat16)
        exe(*args, c, **how)
        return c

    monkeypatch.setenv("TIRX_EMU_ISA", "base")
    want = out(check=False)
    product = args[0].astype("float64") @ args[1].astype("float64").T
    assert 0 < abs(product[5, 7]) < 1e-40  # below the normal numbers
    np.testing.assert_allclose(want.astype("float64"), product, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(want.astype("float64")[5], product[5], rtol=5e-2, atol=1e-27)
    for variant in VARIANTS:
        monkeypatch.setenv("TIRX_EMU_ISA", variant)
        assert out(check=False).tobytes() == want.tobytes()
    assert out().tobytes() == want.tobytes()
