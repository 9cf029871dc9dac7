# SPDX-License-Identifier: Apache-2.0
"""The exceptions of tirx, one tree.

A fault in a kernel's source, whichever stage finds it, is a DiagnosticError with the place in the file; where a
builtin class says it better (ValueError, TypeError, ...) it is also one of those. Calls of a compiled kernel raise
the builtins. The C core raises these classes through the table that is handed to it below.
"""

from __future__ import annotations

from tirx import _core


class Error(Exception):
    """What every exception of tirx derives from."""


class DiagnosticError(Error, SyntaxError):
    """A fault in a kernel's source: filename, lineno, offset, end_lineno, end_offset and text say where.

    str(e) is the whole message: place, text, the line with a caret, help. `others` holds further faults of the same
    kernel, whose messages are in str(e), too.
    """

    others: tuple[DiagnosticError, ...] = ()

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class DiagnosticValueError(DiagnosticError, ValueError):
    pass


class DiagnosticTypeError(DiagnosticError, TypeError):
    pass


class DiagnosticRuntimeError(DiagnosticError, RuntimeError):
    pass


class DiagnosticKeyError(DiagnosticError, KeyError):
    pass


class DispatchError(DiagnosticError, RuntimeError):
    """A tile operation that no rule implements."""


class CompileError(Error, RuntimeError):
    """The target or the toolchain cannot compile this kernel."""


class NvrtcError(CompileError):
    """NVRTC refused the generated text; `log` is its output with the kernel's own lines."""

    log: str = ""


class CUDAError(Error, RuntimeError):
    """The CUDA driver reported `code`."""

    code: int = 0


class InternalError(Error, RuntimeError):
    """A bug in tirx."""


class EmulationError(Error, RuntimeError):
    """The emulator found what a GPU would do silently: `kind`, `buffer`, `lines`."""

    kind: str = ""
    buffer: str | None = None
    lines: tuple = ()


class EmulationWarning(UserWarning):
    """The emulator saw something doubtful that is no error."""


class UnusedWarning(UserWarning):
    """A kernel has a parameter that nothing uses, or sets a variable that nothing reads. Told once, at its line; a name
    that begins with an underscore is meant so. `warnings.simplefilter("ignore", tirx.UnusedWarning)` silences all."""


class PerformanceWarning(UserWarning):
    """ptxas says what costs speed: serialized matrix instructions, spilled registers, local memory."""


TABLE = {
    c.__name__: c
    for c in (
        DiagnosticError,
        DiagnosticValueError,
        DiagnosticTypeError,
        DiagnosticRuntimeError,
        DiagnosticKeyError,
        DispatchError,
        CompileError,
        NvrtcError,
        CUDAError,
        InternalError,
        EmulationError,
        EmulationWarning,
    )
}
_core.register_errors(TABLE)
