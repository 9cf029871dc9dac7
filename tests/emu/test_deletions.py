# SPDX-License-Identifier: Apache-2.0
"""A wait, a signal, a fence or a barrier that is deleted from a right kernel is told (deletions.py has all kernels)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import deletions

import tirx

# name -> how each deletion is found, in the order of the text; "" for what is redundant
EXPECTED = {
    "matmul": ["race", "race"],
    "softmax": ["uninitialised"],
    "rmsnorm": ["uninitialised"],
    "sum_of_all": ["race", "race", "race"],
    "chained_sum": ["race"],
    "warp_allreduce": [],
    "quickstart": [],
    "tma_copy": [
        *("mbarrier", "proxy", "deadlock", "race", "async", "proxy", "async"),
        *("async (warning)", "async (warning)"),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_deletion_is_told(name):
    rows = list(deletions.deletions(name))
    assert [d.found or "" for d in rows] == EXPECTED[name]


# A minute and more: `make fuzz` runs them.
far = pytest.mark.skipif("TIRX_FUZZ_SECONDS" not in os.environ, reason="TIRX_FUZZ_SECONDS asks for long runs")
LONG = {"hopper_gemm": 23, "blackwell_gemm": 31, "blackwell_gemm_pair": 33, "attention": 39}
OTHERS = {"hopper_gemm_alone": 21, "bulk_pipeline": 6, "scaled_fp8": 14, "scaled_fp4": 14}


@pytest.mark.parametrize("name", [*OTHERS, *(pytest.param(n, marks=far) for n in LONG)])
def test_what_is_not_told_is_redundant(name):
    rows = list(deletions.deletions(name))
    assert len(rows) == (OTHERS | LONG)[name]
    for d in rows:
        assert (d.found is None) == (d.reason is not None), d


def test_no_kernel_is_forgotten():
    assert set(EXPECTED) | set(OTHERS) | set(LONG) == set(deletions.CASES)
    assert not any(case.missed for case in deletions.CASES.values())


def test_a_right_text_passes_and_a_line_can_go():
    text = "a\n    T.cuda.cta_sync()\nb\n"
    assert deletions.deletable(text) == [1]
    assert deletions.without(text, 1) == "a\n    pass\nb\n"


def test_fences_of_tensor_memory():
    """Behind the epilogue's loads and behind the wait for the sums: one on each side of a meeting of threads."""
    case = deletions.CASES["blackwell_gemm"]
    text = case.make().script()
    fences = [i for i in deletions.deletable(text) if "tcgen05.fence" in text.splitlines()[i]]
    before = [i for i in fences if "before_thread_sync" in text.splitlines()[i]]
    after = [i for i in fences if "after_thread_sync" in text.splitlines()[i]]
    assert (len(before), len(after)) == (3, 5)
    for number, why in (before[1], "before_thread_sync after"), (after[3], "after_thread_sync, and after"):
        exe = tirx.compile(tirx.from_source(deletions.without(text, number)), target="cpu")
        with pytest.raises(tirx.EmulationError, match=f"without tcgen05.fence::{why}") as e:
            exe(*case.args()[0])
        assert e.value.kind == "proxy" and len(e.value.lines) == 2


def test_the_first_wgmma_needs_its_fence():
    case = deletions.CASES["hopper_gemm_alone"]
    text = case.make().script()
    (fence,) = [i for i in deletions.deletable(text) if "wgmma.fence" in text.splitlines()[i]]
    exe = tirx.compile(tirx.from_source(deletions.without(text, fence)), target="cpu")
    with pytest.raises(tirx.EmulationError, match="the first wgmma of the warp: wgmma.fence is missing before it"):
        exe(*case.args()[0])
