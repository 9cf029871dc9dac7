# SPDX-License-Identifier: Apache-2.0
"""What the tests share.

@pytest.mark.gpu        needs a CUDA device
nvrtc                   fixture: needs libnvrtc, but no device
torch                   fixture: the module; the test is marked `torch`
golden(name, text)      fixture: compares with tests/golden/NAME; TIRX_GOLDEN=write writes it instead
run_python(code)        fixture: runs code in a fresh interpreter and returns what it printed

TIRX_REQUIRE_NVRTC=1    a missing NVRTC fails instead of skipping
TIRX_ROUNDTRIP=1        every function that is compiled is printed and parsed back, see every_function.py
TIRX_EXPECT_BUILD=dir   tirx must have been imported from there (sanitizer and debug builds)
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
HAS_GPU = Path("/dev/nvidia0").exists()


def pytest_configure(config):
    build = os.environ.get("TIRX_EXPECT_BUILD")
    if build:
        import tirx

        if Path(build).resolve() not in Path(tirx.__file__).resolve().parents:
            raise pytest.UsageError(f"tirx was imported from {tirx.__file__}, not from {build}")
    if os.environ.get("TIRX_ROUNDTRIP", "0") != "0":
        import every_function

        every_function.watch()


def pytest_sessionfinish(session):
    every_function = sys.modules.get("every_function")
    if every_function is not None:
        print("\n" + every_function.report())
        if every_function.faults:
            session.exitstatus = 1


def pytest_collection_modifyitems(items):
    no_gpu = pytest.mark.skip(reason="no CUDA device")
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")
        if "gpu" in item.keywords and not HAS_GPU:
            item.add_marker(no_gpu)


def has_nvrtc() -> bool:
    """Whether one of the places that tirx looks at holds a libnvrtc; nothing is loaded."""
    for wheel in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"):
        try:
            importlib.metadata.version(wheel)
            return True
        except importlib.metadata.PackageNotFoundError:
            pass
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    roots += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    return any(True for root in roots if root for _ in Path(root).glob("lib*/libnvrtc.so*"))


@pytest.fixture(scope="session")
def nvrtc():
    if not has_nvrtc():
        if os.environ.get("TIRX_REQUIRE_NVRTC", "0") != "0":
            pytest.fail("NVRTC is missing: pip install tirx[cuda]")
        pytest.skip("NVRTC is missing: pip install tirx[cuda]")


@pytest.fixture(scope="session")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def golden():
    def check(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if os.environ.get("TIRX_GOLDEN") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"tests/golden/{name} is missing; `make golden` writes it. It would hold:\n{text}"
        assert text == path.read_text(), f"tests/golden/{name} differs; `make golden` writes it, if it is right"

    return check


@pytest.fixture
def run_python(tmp_path):
    """Code goes through a file, so that kernels in it have source text."""

    def run(code: str, *, args=(), env=None, fails=False) -> str:
        path = tmp_path / "code.py"
        path.write_text(textwrap.dedent(code))
        command = [sys.executable, str(path), *args]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **(env or {})}, timeout=120
        )
        if fails:
            assert done.returncode != 0, f"it should have failed; it printed\n{done.stdout}"
            return done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
