# SPDX-License-Identifier: Apache-2.0
"""docs/reference.md is what tools/reference.py writes, and says something of every public name."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_reference_is_current():
    done = subprocess.run([sys.executable, ROOT / "tools/reference.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_name_is_explained():
    page = (ROOT / "docs" / "reference.md").read_text()
    rows = re.findall(r"^\| `(.+?)` \| (.*) \|$", page, re.M)
    assert len(rows) > 400
    assert [name for name, told in rows if not told.strip()] == []
