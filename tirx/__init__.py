# SPDX-License-Identifier: Apache-2.0
"""tirx: the TIRx GPU kernel language and its whole compiler, with a CPU emulator of the GPU.

    from tirx import T

    @T.prim_func
    def double(A: T.Buffer((256,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        A[tx] = A[tx] * 2.0

    exe = tirx.compile(double, target="cpu")

What is named here is loaded when it is first used, so that importing stays cheap.
"""

from __future__ import annotations

import importlib

from tirx.errors import (
    CompileError,
    CUDAError,
    DiagnosticError,
    DiagnosticKeyError,
    DiagnosticRuntimeError,
    DiagnosticTypeError,
    DiagnosticValueError,
    DispatchError,
    EmulationError,
    EmulationWarning,
    Error,
    InternalError,
    NvrtcError,
    PerformanceWarning,
    UnusedWarning,
)

# name -> (module, name there or None for the module itself)
_LAZY: dict[str, tuple[str, str | None]] = {
    "T": ("tirx.script.tirx", None),
    "script": ("tirx.script", None),
    "compile": ("tirx.compiler", "compile"),
    "lower": ("tirx.compiler", "lower"),
    "Executable": ("tirx.compiler", "Executable"),
    "Target": ("tirx.target", "Target"),
    "target": ("tirx.target", None),
    "runtime": ("tirx.runtime", None),
    "tensor": ("tirx.runtime", "tensor"),
    "tensor_map": ("tirx.tensormap", "tensor_map"),
    "TensorMap": ("tirx.tensormap", "TensorMap"),
    "register_func": ("tirx.runtime", "register_func"),
    "cuda": ("tirx.runtime", "cuda"),
    "cpu": ("tirx.runtime", "cpu"),
    "transform": ("tirx.transform", None),
    "toolchain": ("tirx.toolchain", None),
    "builder": ("tirx.builder", None),
    "errors": ("tirx.errors", None),
    "from_source": ("tirx.script.text", "from_source"),
    "structural_equal": ("tirx.module", "structural_equal"),
    "structural_hash": ("tirx.module", "structural_hash"),
    "ir": ("tirx.ir", None),
    "walk": ("tirx.ir", "walk"),
    "rewrite": ("tirx.ir", "rewrite"),
    "IRModule": ("tirx.module", "IRModule"),
    "PrimFunc": ("tirx._core", "Function"),
    "Function": ("tirx._core", "Function"),
}

__version__ = "0.1.0"
__all__ = [
    "CUDAError",
    "CompileError",
    "DiagnosticError",
    "DiagnosticKeyError",
    "DiagnosticRuntimeError",
    "DiagnosticTypeError",
    "DiagnosticValueError",
    "DispatchError",
    "EmulationError",
    "EmulationWarning",
    "Error",
    "InternalError",
    "NvrtcError",
    "PerformanceWarning",
    "UnusedWarning",
    *_LAZY,
]


def __getattr__(name: str) -> object:
    try:
        module, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(f"module 'tirx' has no attribute '{name}'") from None
    value = importlib.import_module(module)
    if attribute is not None:
        value = getattr(value, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
