# SPDX-License-Identifier: Apache-2.0
"""Where NVRTC is looked for, in which order, and what is said when there is none."""

from __future__ import annotations

import sys

import pytest

from tirx import toolchain


def make(root, *files):
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


@pytest.fixture
def places(tmp_path, monkeypatch):
    """A machine without any NVRTC but what the test puts there."""
    site, cuda = tmp_path / "site", tmp_path / "cuda"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.setattr(toolchain, "_from_pathfinder", lambda: iter(()))
    monkeypatch.setattr(toolchain, "_toolkits", lambda: iter([cuda]))
    return site, cuda


def found(root):
    return [str(p.relative_to(root.parent)) for p in toolchain.candidates()]


def test_nothing_is_found_where_nothing_is(places):
    assert list(toolchain.candidates()) == []


def test_wheels_come_first_then_torch_then_the_toolkit(places):
    site, cuda = places
    make(
        site,
        "nvidia/cu13/lib/libnvrtc.so.13",
        "nvidia/cu13/lib/libnvrtc.alt.so.13",
        "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
        "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "torch/lib/libnvrtc-672ee683.so.11.2",
        "torch/lib/libtorch.so",
    )
    make(cuda, "lib64/libnvrtc.so", "lib64/libnvrtc.so.12", "lib64/libnvrtc.so.12.8.93", "lib64/libnvrtc_static.a")
    assert found(site) == [
        "site/nvidia/cu13/lib/libnvrtc.so.13",
        "site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
        "site/torch/lib/libnvrtc-672ee683.so.11.2",
        "cuda/lib64/libnvrtc.so.12.8.93",
        "cuda/lib64/libnvrtc.so.12",
        "cuda/lib64/libnvrtc.so",
    ]


def test_headers_are_found_beside_it(places):
    site, cuda = places
    make(site, "nvidia/cu13/include/cuda_fp16.h", "nvidia/other/include/other.h")
    make(cuda, "include/cuda_runtime.h")
    assert toolchain.include_folders() == [str(site / "nvidia/cu13/include"), str(cuda / "include")]


def test_folders_of_toolkits(monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/opt/one")
    monkeypatch.setenv("CUDA_PATH", "/opt/two")
    assert [str(p) for p in toolchain._toolkits()] == ["/opt/one", "/opt/two", "/usr/local/cuda"]
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.delenv("CUDA_PATH")
    assert [str(p) for p in toolchain._toolkits()] == ["/usr/local/cuda"]


def test_what_is_said_when_there_is_none(run_python):
    out = run_python(
        """
        import tirx
        from tirx import toolchain
        from tirx.script import tirx as T

        @T.prim_func
        def k(A: T.Buffer((32,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            A[tx] = tx

        toolchain.candidates = lambda: iter(())
        try:
            tirx.compile(k, target="cuda:sm_90a")
            print("the system's loader knows one")
        except tirx.CompileError as e:
            print(e)
        """
    )
    if "the system's loader knows one" in out:
        pytest.skip("NVRTC is where the loader finds it")
    assert out.startswith("NVRTC is missing (")
    assert out.endswith("install it with `pip install tirx[cuda]`\n")


def test_compiling_loads_nvrtc_and_neither_torch_nor_the_driver(nvrtc, run_python):
    out = run_python(
        """
        import sys
        import tirx
        from tirx.script import tirx as T

        @T.prim_func
        def k(A: T.Buffer((32,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            A[tx] = tx

        maps = lambda: open("/proc/self/maps").read()
        print("libnvrtc" in maps())
        exe = tirx.compile(k, target="cuda:sm_90a")
        print("libnvrtc" in maps(), "libcuda.so" in maps(), [m for m in ("torch", "numpy") if m in sys.modules])
        """
    )
    assert out == "False\nTrue False []\n"
