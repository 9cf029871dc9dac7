# SPDX-License-Identifier: Apache-2.0
"""Every example runs, and each checks its own result."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, run_python, nvrtc):
    here = str(path.parent)
    run = f"import runpy, sys\nsys.path.insert(0, {here!r})\nrunpy.run_path({str(path)!r}, run_name='__main__')"
    said = run_python(run)
    assert "right" in said
