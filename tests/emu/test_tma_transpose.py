# SPDX-License-Identifier: Apache-2.0
"""examples/tma_copy.py under every schedule, and its broken twins: each line that its explanation calls needed is."""

from __future__ import annotations

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

import tirx

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def kernel():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        return runpy.run_path(str(EXAMPLES / "tma_copy.py"))["transpose"].specialize(dtype="float16")


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype("float16")


OPTIONS = [{}, dict(schedule="late"), dict(schedule="early"), dict(schedule=5), dict(check=False)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_schedule(kernel, options):
    a, b = matrix(200, 72), np.full((72, 200), np.nan, "float16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tirx.compile(kernel, target="cpu")(a, b, **options)
    np.testing.assert_array_equal(b, a.T)


BROKEN = {
    'T.ptx["fence.proxy.async.shared::cta"]()': ("pass", "proxy", "turned"),
    "T.cuda.mbarrier_wait(T.address_of(come[0]), T.uint32(0))": ("pass", "async", "tile"),
    "T.uint32(8192)": ("T.uint32(8192 + 16)", "deadlock", "come"),
    'T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](B_map, row * 64,': (
        'T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](B_map, row * 64 - 64,',
        "out_of_bounds",
        "B",
    ),
    "T.address_of(tile[0]), A_map, column * 64,": (
        "T.address_of(tile[0]), A_map, column * 64 + 4,",
        "misaligned",
        "A",
    ),
}


@pytest.mark.parametrize("line", BROKEN)
def test_broken_twins(kernel, line):
    instead, kind, buffer = BROKEN[line]
    text = kernel.script()
    assert text.count(line) == 1
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(tirx.from_source(text.replace(line, instead)), target="cpu")(
            matrix(64, 64), np.zeros((64, 64), "float16")
        )
    assert e.value.kind == kind
    assert e.value.buffer == buffer
