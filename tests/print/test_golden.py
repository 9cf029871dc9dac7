# SPDX-License-Identifier: Apache-2.0
"""The printed text of every shared kernel as written, and of some after each pass."""

from __future__ import annotations

import kernels
import odd_kernels
import pytest

from tirx import _core

MAKERS = {**{name: k.make for name, k in kernels.KERNELS.items()}, **odd_kernels.ODD}
AFTER_PASSES = ["scale_dynamic", "transpose_in_shared_memory", "softmax_by_shuffles", "two_regions_g2"]


@pytest.mark.parametrize("name", MAKERS)
def test_as_written(golden, name):
    golden(f"print/{name}.py.txt", MAKERS[name]().script())


@pytest.mark.parametrize("name", AFTER_PASSES)
def test_after_every_pass(golden, name):
    m = _core.Module({"main": MAKERS[name]()})
    texts = []
    for p, _, used in _core.passes():
        if used:
            m = _core.run_pass(p, m, "cuda:sm_90a", {})
            texts.append(f"# ==== {p}\n{m.script(header=False)}")
    golden(f"print/{name}.passes.py.txt", "\n".join(texts))
