# SPDX-License-Identifier: Apache-2.0
"""Type checkers: the committed stubs are those that the tables give, and pyright accepts what users write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import test_docs

import tirx

ROOT = Path(__file__).resolve().parent.parent


def test_the_stubs_are_current():
    done = subprocess.run([sys.executable, ROOT / "tools/stubs.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_marker_of_typed_packages_is_there():
    assert (ROOT / "tirx/py.typed").exists()


def test_every_lazy_name_is_in_the_stub_of_the_package():
    text = (ROOT / "tirx/__init__.pyi").read_text()
    assert all(f" as {name}\n" in text for name in tirx.__all__)


@pytest.fixture(scope="module")
def pyright():
    """Runs pyright over a folder with the settings of pyproject.toml; gives the lines that it prints."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = os.environ.get("TIRX_PYRIGHT") or shutil.which("basedpyright", path=beside)
    if not program:
        pytest.skip("basedpyright is not installed")

    def run(folder: Path) -> list[str]:
        settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
        config = {**settings, "include": ["."], "extraPaths": [str(ROOT)]}
        (folder / "pyrightconfig.json").write_text(json.dumps(config))
        done = subprocess.run([program, "-p", folder], capture_output=True, text=True, timeout=300)
        return [line.strip() for line in done.stdout.splitlines() if " - error: " in line]

    return run


@pytest.mark.slow
def test_pyright_accepts_the_examples_and_the_quickstart(pyright, tmp_path):
    for file in (ROOT / "examples").glob("*.py"):
        shutil.copy(file, tmp_path)
    for page in ("quickstart", "builder", "ir"):
        (tmp_path / f"{page}_page.py").write_text(test_docs.python_of(ROOT / f"docs/{page}.md"))
    assert pyright(tmp_path) == []


@pytest.mark.slow
def test_pyright_finds_what_is_wrong(pyright, tmp_path):
    (tmp_path / "wrong.py").write_text(
        "import tirx\n"
        "from tirx import T\n"
        "@T.prim_func\n"
        "def k(A: T.Buffer((4,), T.float32x4)):\n"
        "    T.device_entri()\n"
        "    A[0] = T.sqrt(1.0, 2.0)\n"
        "    T.serial()\n"
        "tirx.compile(k, targt='cpu')\n"
        "k.nosuch\n"
    )
    found = pyright(tmp_path)
    assert [line.partition("wrong.py:")[2].partition(":")[0] for line in found] == ["5", "6", "7", "8", "9"]
