# SPDX-License-Identifier: Apache-2.0
"""The tensor core kernels of examples/: NVRTC takes every variant, and the emulator and a Hopper GPU are held against
float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tirx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

import attention
import blackwell_gemm
import hopper_gemm

GEMMS = [
    {},
    {"dtype": "float16"},
    {"CLUSTER": 1, "GROUP": 4},
    {"BN": 128, "STAGES": 6},
    {"BN": 192, "STAGES": 4},
    {"BN": 64, "STAGES": 4, "CLUSTER": 1},
]
ATTENTIONS = [{"D": d, "CAUSAL": c} for d in (64, 128) for c in (False, True)] + [{"dtype": "float16"}]


def names(variants):
    return [" ".join(f"{k}={v}" for k, v in o.items()) or "default" for o in variants]


def is_good(kernel, instructions):
    exe = tirx.compile(kernel, target="cuda:sm_90a")
    assert exe.source.count("wgmma.mma_async") == instructions
    assert ".local" not in exe.ptx
    assert "__launch_bounds__(384, 1)" in exe.source
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("variant", GEMMS, ids=names(GEMMS))
def test_gemm_is_assembled(variant, nvrtc):
    is_good(hopper_gemm.gemm.specialize(**variant), 1)


@pytest.mark.parametrize("variant", ATTENTIONS, ids=names(ATTENTIONS))
def test_attention_is_assembled(variant, nvrtc):
    is_good(attention.attention.specialize(**variant), 2)


@pytest.mark.parametrize("variant", [{"PAIR": 1}, {"PAIR": 2}, {"PAIR": 2, "dtype": "float16"}], ids=str)
def test_blackwell_gemm_is_assembled(variant, nvrtc):
    exe = tirx.compile(blackwell_gemm.gemm.specialize(**variant), target="cuda:sm_100a")
    assert f"tcgen05.mma.cta_group::{variant['PAIR']}.kind::f16" in exe.source
    assert ".local" not in exe.ptx
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "variant", [{}, {"CLUSTER": 1, "BN": 64, "STAGES": 2}, {"BN": 192, "GROUP": 1}, {"CLUSTER": 4}], ids=str
)
def test_gemm_on_the_emulator(variant):
    hopper_gemm.emulate(((136, 264, 72), (8, 8, 8)), **variant)


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_on_the_emulator(D, causal):
    attention.emulate(D, causal, ((1, 128, 128), (2, 70, 200), (1, 130, 130)))


@pytest.mark.gpu
@pytest.mark.parametrize("variant", GEMMS, ids=names(GEMMS))
def test_gemm(variant, torch):
    hopper_gemm.check(**{"dtype": "bfloat16", **variant})


@pytest.mark.gpu
@pytest.mark.parametrize("variant", ATTENTIONS, ids=names(ATTENTIONS))
def test_attention(variant, torch):
    attention.check(variant.get("D", 128), variant.get("CAUSAL", False), variant.get("dtype", "bfloat16"))


@pytest.mark.parametrize("schedule", ["late", "early", 11])
@pytest.mark.parametrize("pair", [1, 2])
@pytest.mark.parametrize("M, N, K", [(128, 256, 64), (264, 520, 200), (512, 512, 704)])
def test_blackwell_gemm_on_the_emulator(pair, M, N, K, schedule):
    """The last shape has rings that wrap, and two tiles a CTA."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((r, K)).astype(np.float16) for r in (M, N))
    c = np.full((M, N), np.nan, np.float16)
    kernel = blackwell_gemm.gemm.specialize(PAIR=pair, dtype="float16", SMS=4)
    tirx.compile(kernel, target="cpu")(a, b, c, schedule=schedule)
    want = a.astype(np.float64) @ b.astype(np.float64).T
    assert np.linalg.norm(c - want) < 4e-4 * np.linalg.norm(want)
