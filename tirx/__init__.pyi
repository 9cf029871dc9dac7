# SPDX-License-Identifier: Apache-2.0
# Written by tools/stubs.py from tirx/__init__.py. Do not edit.
"""The package tirx, for type checkers."""

from tirx.errors import CUDAError as CUDAError
from tirx.errors import CompileError as CompileError
from tirx.errors import DiagnosticError as DiagnosticError
from tirx.errors import DiagnosticKeyError as DiagnosticKeyError
from tirx.errors import DiagnosticRuntimeError as DiagnosticRuntimeError
from tirx.errors import DiagnosticTypeError as DiagnosticTypeError
from tirx.errors import DiagnosticValueError as DiagnosticValueError
from tirx.errors import DispatchError as DispatchError
from tirx.errors import EmulationError as EmulationError
from tirx.errors import EmulationWarning as EmulationWarning
from tirx.errors import Error as Error
from tirx.compiler import Executable as Executable
from tirx._core import Function as Function
from tirx.module import IRModule as IRModule
from tirx.errors import InternalError as InternalError
from tirx.errors import NvrtcError as NvrtcError
from tirx.errors import PerformanceWarning as PerformanceWarning
from tirx._core import Function as PrimFunc
from tirx.script import tirx as T
from tirx.target import Target as Target
from tirx.tensormap import TensorMap as TensorMap
from tirx.errors import UnusedWarning as UnusedWarning
from tirx import builder as builder
from tirx.compiler import compile as compile
from tirx.runtime import cpu as cpu
from tirx.runtime import cuda as cuda
from tirx import errors as errors
from tirx.script.text import from_source as from_source
from tirx import ir as ir
from tirx.compiler import lower as lower
from tirx.runtime import register_func as register_func
from tirx.ir import rewrite as rewrite
from tirx import runtime as runtime
from tirx import script as script
from tirx.module import structural_equal as structural_equal
from tirx.module import structural_hash as structural_hash
from tirx import target as target
from tirx.runtime import tensor as tensor
from tirx.tensormap import tensor_map as tensor_map
from tirx import toolchain as toolchain
from tirx import transform as transform
from tirx.ir import walk as walk


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
    "Executable",
    "Function",
    "IRModule",
    "InternalError",
    "NvrtcError",
    "PerformanceWarning",
    "PrimFunc",
    "T",
    "Target",
    "TensorMap",
    "UnusedWarning",
    "builder",
    "compile",
    "cpu",
    "cuda",
    "errors",
    "from_source",
    "ir",
    "lower",
    "register_func",
    "rewrite",
    "runtime",
    "script",
    "structural_equal",
    "structural_hash",
    "target",
    "tensor",
    "tensor_map",
    "toolchain",
    "transform",
    "walk",
]
__version__: str
