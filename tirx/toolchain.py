# SPDX-License-Identifier: Apache-2.0
"""Where NVRTC is: the wheels of the `cuda` extra, what cuda-pathfinder knows, PyTorch's own, a system toolkit.

Nothing is imported or opened before the first compilation for CUDA; torch never is.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tirx import _core
from tirx.errors import CompileError

_lock = threading.Lock()
_ready = False

# libnvrtc.so.13, libnvrtc-672ee683.so.11.2 (PyTorch's renamed copy); neither the builtins nor the alternative library
_LIBRARY = re.compile(r"^libnvrtc(-[0-9a-f]+)?\.so(\.\d+)*$")


def _in_folder(folder: Path) -> Iterator[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    found = [n for n in names if _LIBRARY.match(n)]
    # the highest version first; a name without a version is a link to one of the others
    found.sort(key=lambda n: [int(x) for x in re.findall(r"\.(\d+)", n)], reverse=True)
    yield from (folder / n for n in found)


def _roots() -> list[Path]:
    roots = [Path(p) for p in sys.path if p]
    return [r for r in roots if r.is_dir()]


def _wheel_folders(kind: str) -> Iterator[Path]:
    """nvidia/*/KIND of the installed wheels: cu13 before the packages of CUDA 12."""
    for root in _roots():
        nvidia = root / "nvidia"
        if nvidia.is_dir():
            yield from sorted((p / kind for p in nvidia.iterdir()), key=lambda p: not p.parent.name.startswith("cu1"))


def _toolkits() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    yield Path("/usr/local/cuda")


def _from_pathfinder() -> Iterator[Path]:
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib
    except ImportError:
        return
    try:
        found = load_nvidia_dynamic_lib("nvrtc").abs_path
    except Exception:  # its classes differ between versions; not found is all that matters here
        return
    if found:
        yield Path(found)


def candidates() -> Iterator[Path]:
    """Files that may be NVRTC, best first."""
    for folder in _wheel_folders("lib"):
        yield from _in_folder(folder)
    yield from _from_pathfinder()
    for root in _roots():
        yield from _in_folder(root / "torch" / "lib")
    for toolkit in _toolkits():
        for lib in ("lib64", "lib", "targets/x86_64-linux/lib"):
            yield from _in_folder(toolkit / lib)


def include_folders() -> list[str]:
    """Folders with the toolkit's headers, for injected source that includes them."""
    folders = [*_wheel_folders("include"), *(t / "include" for t in _toolkits())]
    return [str(f) for f in folders if (f / "cuda_fp16.h").exists() or (f / "cuda_runtime.h").exists()]


def need_nvrtc() -> None:
    """Opens NVRTC, or raises CompileError that says how to install it."""
    global _ready
    if _ready:
        return
    with _lock:
        if _ready:
            return
        for path in candidates():
            _core.nvrtc_set_path(str(path))
            if _core.nvrtc_available()[0]:
                break
        else:
            _core.nvrtc_set_path(None)
        ok, why = _core.nvrtc_available()
        if not ok:
            raise CompileError(why)
        _ready = True
