# SPDX-License-Identifier: Apache-2.0
"""A wait, a signal, a fence or a barrier that is deleted from a right kernel is told (deletions.py has all kernels)."""

from __future__ import annotations

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
    "rmsnorm": ["race"],
    "tma_copy": [
        *("mbarrier", "proxy", "deadlock", "race", "async", "proxy", "async"),
        *("async (warning)", "async (warning)"),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_deletion_is_told(name):
    rows = list(deletions.deletions(name))
    assert [d.found or "" for d in rows] == EXPECTED[name]


@pytest.mark.parametrize("name", ["hopper_gemm_alone", "bulk_pipeline"])
def test_what_is_not_told_is_redundant(name):
    rows = list(deletions.deletions(name))
    assert len(rows) >= 5
    for d in rows:
        assert (d.found is None) == (d.reason is not None), d


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
