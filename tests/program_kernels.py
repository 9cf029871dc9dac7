# SPDX-License-Identifier: Apache-2.0
"""The kernels of examples/ and bench/, to be printed, parsed and lowered. PROGRAMS: name -> maker."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import tirx

_ROOT = Path(__file__).resolve().parents[1]


def module(path: str):
    file = _ROOT / path
    name = f"program_{file.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = made = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(file.parent))
        try:
            spec.loader.exec_module(made)
        finally:
            sys.path.remove(str(file.parent))
    return sys.modules[name]


def _specialized(path: str, name: str, **values):
    return lambda: getattr(module(path), name).specialize(**values)


PROGRAMS = {
    "quickstart": lambda: module("examples/quickstart.py").add,
    "matmul": _specialized("examples/matmul.py", "matmul"),
    "softmax": _specialized("examples/softmax.py", "softmax", N=1000),
    "rmsnorm": _specialized("examples/rmsnorm.py", "rmsnorm", N=1000),
    "sum": _specialized("examples/sum.py", "total"),
    "chained_sum": _specialized("examples/chained_sum.py", "total"),
    "warp_allreduce": _specialized("examples/warp_allreduce.py", "reduce_lanes", OP="sum"),
    "hopper_gemm": _specialized("examples/hopper_gemm.py", "gemm"),
    "blackwell_gemm": _specialized("examples/blackwell_gemm.py", "gemm"),
    "attention": _specialized("examples/attention.py", "attention", CAUSAL=True),
    "tma_copy": _specialized("examples/tma_copy.py", "transpose"),
    "bench_add": lambda: module("bench/three_kernels.py").vector_add(),
    "bench_matmul": lambda: module("bench/three_kernels.py").matmul(),
    "bench_softmax": lambda: module("bench/three_kernels.py").softmax(),
    "bench_front_end": lambda: tirx.from_source(module("bench/bench_front_end.py").source(2)),
}
