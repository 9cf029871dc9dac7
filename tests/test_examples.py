# SPDX-License-Identifier: Apache-2.0
"""Every example runs, and each checks its own result."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


GPU_ONLY = {"attention", "hopper_gemm"}


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=pytest.mark.gpu if p.stem in GPU_ONLY else ()) for p in EXAMPLES]
)
def test_example(path, run_python):
    here = str(path.parent)
    run = f"import runpy, sys\nsys.path.insert(0, {here!r})\nrunpy.run_path({str(path)!r}, run_name='__main__')"
    assert "right" in run_python(run)
