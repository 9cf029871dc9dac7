# SPDX-License-Identifier: Apache-2.0
"""The C checks of tests/c, compiled with the sanitizers and assertions on. They need a C compiler and no Python API."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "c" / "test_core.c"
SECTIONS = re.findall(r'\{"(\w+)", test_\w+\}', SOURCE.read_text())

pytestmark = [pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc"), pytest.mark.nosanitize]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    out = tmp_path_factory.mktemp("core") / "test_core"
    files = [str(p) for folder in ("base", "ir") for p in sorted((ROOT / "csrc" / folder).glob("*.c"))]
    flags = ["-std=c11", "-O1", "-g", "-DTX_DEBUG", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{ROOT / 'csrc'}"]
    done = subprocess.run(["gcc", *flags, str(SOURCE), *files, "-lm", "-o", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def test_sections_are_found():
    assert len(SECTIONS) >= 18


@pytest.mark.parametrize("section", SECTIONS)
def test_section(program, section):
    done = subprocess.run([str(program), section], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
