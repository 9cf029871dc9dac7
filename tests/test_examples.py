# SPDX-License-Identifier: Apache-2.0
"""Every example runs, and each checks its own result."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, run_python):
    assert "right" in run_python(f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')")
