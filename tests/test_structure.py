# SPDX-License-Identifier: Apache-2.0
"""The tree, the built module and what importing it costs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
import structure

import tirx

PACKAGE = Path(tirx.__file__).parent

# Data that the module may write to after it is loaded, each with its reason. All else is const, or belongs to a context
# or to the module's state. Tables that CPython's API does not take as const are known by their names.
CPYTHON_TABLES = re.compile(r"^(module_?def|.*(methods|members|getset|getsets|slots|spec))(\.\d+)?$")
WRITABLE: dict[str, str] = {
    "alloc_done": "counts a thread's allocations, for tests that make one fail",
    "alloc_fail_at": "the one to fail",
    "nested_callbacks": "how deep a thread is in kernels that call Python that calls kernels",
    "tx_driver_state": "the CUDA driver's functions and its primary contexts, opened on first use",
    "tx_nvrtc": "NVRTC's functions, opened on first use",
    "tx_ptx_table": "the parsed PTX table, immutable once set",
    "PyArray_API": "NumPy's functions, process-wide as NumPy is; read when the first array is seen",
    "PyArray_RUNTIME_VERSION": "of that table",
}
TOOLCHAIN = re.compile(
    r"^(__cpu_model|__cpu_features2|completed\.\d+|__dso_handle|__TMC_END__|_edata|_end|__bss_start)$"
)


@pytest.mark.parametrize("check", structure.CHECKS, ids=lambda c: c.__name__)
def test_the_c_core_is_in_order(check):
    wrong = check()
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.fixture(scope="module")
def module() -> Path:
    found = [p for p in PACKAGE.glob("_core*.so")]
    assert len(found) == 1, f"one built module expected in {PACKAGE}, found {[p.name for p in found]}"
    return found[0]


@pytest.mark.nosanitize
def test_the_module_has_no_writable_data_but_what_is_listed(module):
    if not shutil.which("nm"):
        pytest.skip("nm is not installed")
    table = subprocess.run(["nm", "--format=sysv", str(module)], capture_output=True, text=True, check=True).stdout
    wrong = []
    for line in table.splitlines():
        columns = [c.strip() for c in line.split("|")]
        if len(columns) < 7 or columns[6].split(" ")[0] not in (".data", ".bss", ".tdata", ".tbss"):
            continue
        symbol = columns[0]
        if columns[3] in ("OBJECT", "TLS") and not TOOLCHAIN.match(symbol) and not CPYTHON_TABLES.match(symbol):
            if re.sub(r"\.\d+$", "", symbol) not in WRITABLE:
                wrong.append(f"{symbol} in {columns[6]}")
    assert not wrong, "make it const, or keep it in a context or in the module's state: " + ", ".join(wrong)


def test_the_module_runs_on_glibc_2_34(module):
    asked = {int(m) for m in re.findall(rb"GLIBC_2\.(\d+)", module.read_bytes())}
    assert max(asked, default=0) <= 34


def test_importing_needs_neither_numpy_nor_torch_nor_cuda(run_python):
    out = run_python(
        """
        import sys
        import tirx
        from tirx.script import tirx as T
        print("modules", [m for m in ("numpy", "torch", "ctypes", "cuda", "ml_dtypes") if m in sys.modules])
        maps = open("/proc/self/maps").read()
        print("libraries", [lib for lib in ("libcuda.so", "libnvrtc", "libcudart") if lib in maps])
        """
    )
    assert out == "modules []\nlibraries []\n"


@pytest.mark.nosanitize
def test_importing_takes_no_more_than_30_ms(run_python):
    code = "import time; t = time.process_time(); import tirx; print(time.process_time() - t)"
    run_python(code)
    best = min(float(run_python(code)) for _ in range(5))
    assert best <= 0.030, f"import tirx takes {1e3 * best:.1f} ms of processor time"


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.nosanitize
@pytest.mark.skipif(not (structure.CSRC / "all.c").exists(), reason="no amalgam yet")
def test_the_amalgam_compiles():
    cc = shutil.which("gcc") or shutil.which("cc")
    if not cc:
        pytest.skip("no C compiler is installed")
    import numpy

    dirs = [structure.CSRC, sysconfig.get_path("include"), numpy.get_include()]
    macros = ["-DPy_LIMITED_API=0x030B0000", "-DNPY_TARGET_VERSION=NPY_1_25_API_VERSION"]
    command = [cc, "-std=c11", "-fsyntax-only", *macros, *(f"-I{d}" for d in dirs), str(structure.CSRC / "all.c")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
