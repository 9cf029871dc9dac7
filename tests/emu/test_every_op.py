# SPDX-License-Identifier: Apache-2.0
"""The emulator knows every op with every dtype that it takes: the kernels that the CUDA tests compile, run here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tirx

spec = importlib.util.spec_from_file_location("every_op", Path(__file__).parents[1] / "cuda" / "test_every_op.py")
every = importlib.util.module_from_spec(spec)
spec.loader.exec_module(every)


def array(t: str, n: int) -> np.ndarray:
    """Ones, twos and threes: no division by zero, no count outside a type."""
    dtype = getattr(ml_dtypes, t, None) or np.dtype(t)
    return np.resize(np.array([1, 2, 3, 1]), n).astype(dtype)


def run(t: str, lines: list[str]) -> None:
    n = 32 * len(lines) + 64
    exe = tirx.compile(tirx.from_source(every.kernel("k", t, lines)), target="cpu")
    exe(array(t, n), array(t, n), np.ones(n, bool), 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("t", every.INTS + every.FLOATS)
def test_arithmetic(t):
    run(t, every.lines_for(t))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("t", every.INTS + every.FLOATS)
def test_conversions(t):
    all_of_them = (*every.INTS, *every.FLOATS, "bool")
    run(t, [f"o(T.cast(T.cast(x, '{to}'), '{t}'))" for to in all_of_them if to != t])


@pytest.mark.parametrize("bits", every.BITS)
def test_reinterpretations_there_and_back(bits):
    for t in every.BITS[bits]:
        lines = [f"o(T.reinterpret('{t}', T.reinterpret('{to}', x)))" for to in every.BITS[bits]]
        n = 32 * len(lines) + 64
        exe = tirx.compile(tirx.from_source(every.kernel("k", t, lines)), target="cpu")
        a, b = array(t, n), array(t, n)
        exe(a, b, np.ones(n, bool), 1)
        got, want = b[: 32 * len(lines)].reshape(-1, 32), a[:32]
        assert (got.astype("f8") == want.astype("f8")).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("t", every.SHUFFLED)
def test_warp_exchange(t):
    lines = [f"o(T.tvm_warp_shuffle{s}(0xFFFFFFFF, x, 3, 32, 32))" for s in ("", "_up", "_down", "_xor")]
    if t in every.INTS + every.WIDE_FLOATS:
        lines += [f"o(T.cuda.warp_{op}(x))" for op in ("sum", "min", "max")]
    run(t, lines)
