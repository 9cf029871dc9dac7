# SPDX-License-Identifier: Apache-2.0
"""Long kernels in the manner of hand-written ones: they parse, print and parse back, NVRTC assembles them for Hopper
and Blackwell, and the emulator computes what a reference in float64 does."""

from __future__ import annotations

import ast
import collections
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tirx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import selective_scan  # noqa: E402
import unrolled_topk  # noqa: E402

KERNELS = {"selective_scan": selective_scan.selective_scan, "unrolled_topk": unrolled_topk.unrolled_topk}

pytestmark = pytest.mark.slow  # under sanitizers


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_long_and_does_not_repeat_itself(name):
    text = (HERE / f"{name}.py").read_text()
    ast.parse(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert len(text.splitlines()) >= 800
    repeated = sum(n - 1 for line, n in collections.Counter(lines).items() if len(line) > 3)
    assert repeated <= 0.05 * len(lines)


def test_instructions():
    used = set()
    for kernel in KERNELS.values():
        used |= set(re.findall(r'T\.ptx\["([^"]+)"\]', kernel.script()))
    assert len(used) >= 60, sorted(used)


@pytest.mark.parametrize("name", KERNELS)
def test_round_trip(name):
    kernel = KERNELS[name]
    assert tirx.structural_equal(tirx.from_source(kernel.script()), kernel)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", KERNELS)
def test_assembled(name, arch, nvrtc):
    exe = tirx.compile(KERNELS[name], target=f"cuda:{arch}")
    assert ".local" not in exe.ptx
    assert exe.cubin[:4] == b"\x7fELF"


def bf16(x):
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("length", "channels"), [(4, 128), (12, 200)])
def test_selective_scan(length, channels, target):
    pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(1)
    x, dt, z = (bf16(rng.standard_normal((length, channels))) for _ in range(3))
    a = -np.exp(rng.standard_normal((channels, 16))).astype("float32")
    b, c = (rng.standard_normal((length, 16)).astype("float32") for _ in range(2))
    skip, bias = (rng.standard_normal(channels).astype("float32") for _ in range(2))
    bias[:3] = 25, -25, 0  # where softplus is its argument, and where it is nearly 0
    h = rng.standard_normal((channels, 16)).astype("float32")
    y = bf16(np.full((length, channels), np.nan))
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    on = [tirx.runtime.tensor(v, device) for v in (x, dt, z, a, b, c, skip, bias, h, y)]
    tirx.compile(selective_scan.selective_scan, target=target)(*on)

    state, want = h.astype("float64"), np.zeros((length, channels))
    xs, dts, zs = (v.astype("float64") for v in (x, dt, z))
    for t in range(length):
        delta = np.logaddexp(0, dts[t] + bias)
        state = np.exp(delta[:, None] * a) * state + (delta * xs[t])[:, None] * b[t]
        want[t] = (state @ c[t] + skip * xs[t]) * zs[t] / (1 + np.exp(-zs[t]))
    np.testing.assert_allclose(on[8].numpy(), state, rtol=1e-5, atol=1e-5)
    got = on[9].numpy().astype("float64")
    assert np.linalg.norm(got - want) < 4e-3 * np.linalg.norm(want)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("rows", "n", "k"), [(2, 8, 8), (3, 1000, 37), (2, 16384, 64), (1, 4096, 4096)])
def test_unrolled_topk(rows, n, k, target):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((rows, n)).astype("float32")
    if n == 1000:
        x = np.round(2 * x)  # many are equal, and some are 0 and -0, which the order tells apart
    v, i = np.full((rows, k), np.nan, "float32"), np.full((rows, k), -1, "int32")
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    on = [tirx.runtime.tensor(a, device) for a in (x, v, i)]
    tirx.compile(unrolled_topk.unrolled_topk, target=target)(*on)
    v, i = (t.numpy() for t in on[1:])
    np.testing.assert_array_equal(np.sort(v, 1), np.sort(x, 1)[:, n - k :])
    assert all(len(set(columns)) == k for columns in i.tolist())
    np.testing.assert_array_equal(np.take_along_axis(x, i, 1), v)


def test_unrolled_topk_refuses():
    exe = tirx.compile(unrolled_topk.unrolled_topk, target="cpu")
    for n, k, said in ((16388, 4, "16384 columns at most"), (8, 9, "fewer than K columns")):
        with pytest.raises(AssertionError, match=said):
            exe(np.zeros((1, n), "float32"), np.zeros((1, k), "float32"), np.zeros((1, k), "int32"))
