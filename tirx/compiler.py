# SPDX-License-Identifier: Apache-2.0
"""tirx.compile and tirx.lower: from a function or a module to something that can be called, or read.

The steps are the C core's (lower, CUDA text, NVRTC, launch plans); here they are put in a row, and what they made is
kept for whoever asks: exe.source, exe.ptx, exe.cubin, exe.mod. (The file is not called compile.py, as tirx.compile is
the function.)
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from tirx import _core, toolchain
from tirx.errors import CompileError
from tirx.module import IRModule, core_of
from tirx.target import Target, resolve

Executable = _core.Executable

_PIPELINES = ("default", "tirx")
_KERNEL, _DEVICE = 8, 16  # TX_FUNC_*
_LEAST_ARCH = 75  # that a target can name


class _Images:
    """Cubins and PTX by everything that they depend on; the least recently used go first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lock = threading.Lock()
        self.at: OrderedDict[tuple, bytes] = OrderedDict()

    def get(self, key: tuple) -> bytes | None:
        with self.lock:
            if key in self.at:
                self.at.move_to_end(key)
            return self.at.get(key)

    def clear(self) -> None:
        with self.lock:
            self.at.clear()

    def put(self, key: tuple, image: bytes) -> None:
        with self.lock:
            self.at[key] = image
            self.at.move_to_end(key)
            while len(self.at) > self.limit:
                self.at.popitem(last=False)


_images = _Images(256)


def clear_cache() -> None:
    """Forget all cubins: the next compilations run NVRTC again."""
    _images.clear()


def _nvrtc(
    lowered: Any, source: str, lines: bytes, target: Target, options: Mapping[str, bool], want_ptx: bool
) -> bytes:
    toolchain.need_nvrtc()
    known = _core.parse_target(str(target))
    needs = _core.cuda_needs(lowered)
    flags = _core.nvrtc_options(
        known["arch"],
        known["suffix"] or "",
        options["fast_math"],
        options["lineinfo"],
        needs["injected"],
        needs["int128"],
        want_ptx,
    )
    if needs["toolkit_headers"]:
        folders = toolchain.include_folders()
        if not folders:
            raise CompileError(
                "the injected source includes headers of the CUDA toolkit, and none are found: "
                "pip install nvidia-cuda-runtime, or set CUDA_HOME"
            )
        flags += [f"--include-path={f}" for f in folders]
    if not want_ptx:
        from tirx import advice  # not before something is compiled

        flags += [*advice.OPTIONS, *_usage_level(lowered)]
    key = (source, tuple(flags), _core.nvrtc_version())
    image = _images.get(key)
    if image is None:
        image, log = _core.nvrtc_compile(source, flags, want_ptx, lowered, lines)
        if log and not want_ptx:
            advice.warn(log, source, lowered, lines)
        _images.put(key, image)
    return image


def _plain(x: Any) -> Any:
    """The number or the text of an attribute's element."""
    return getattr(x, "value", x)


def _usage_level(lowered: Any) -> list[str]:
    """tirx.register_usage_level of the kernels: 0 asks ptxas for few registers, 10 for speed."""
    found = {lowered[name].attrs.get("tirx.register_usage_level") for name in lowered.names} - {None}
    levels = {getattr(x, "value", x) for x in found}
    if not levels:
        return []
    if len(levels) > 1:
        raise ValueError(f"the kernels of a module ask for different register usage levels: {sorted(levels)}")
    level = levels.pop()
    if not isinstance(level, int) or not 0 <= level <= 10:
        raise ValueError(f"tirx.register_usage_level is a number from 0 to 10, got {level!r}")
    return [f"--ptxas-options=--register-usage-level={level}"]


class Import:
    """The device half of a compiled module, as older call sites name it."""

    __slots__ = ("_package",)

    def __init__(self, package: Package) -> None:
        self._package = package

    def inspect_source(self, fmt: str = "") -> str | bytes:
        """The text as "cuda" or "ptx", or the bytes of the "cubin"."""
        if fmt in ("", "cuda", "cu"):
            return self._package.source
        if fmt == "ptx":
            return self._package.ptx
        if fmt == "cubin":
            return self._package.cubin
        raise ValueError(f'inspect_source: expected "cuda", "ptx" or "cubin", got {fmt!r}')

    get_source = inspect_source


class _Imports(tuple):
    def __getitem__(self, index: Any) -> Any:
        if not self:
            raise IndexError("the function has no device region: nothing runs on a GPU")
        return super().__getitem__(index)


class Compiled:
    """exe.mod: what was compiled."""

    __slots__ = ("lowered", "imports")

    def __init__(self, package: Package) -> None:
        self.lowered = IRModule(package.lowered)
        self.imports = _Imports((Import(package),) if package.has_kernels else ())


class Package:
    """The Python half of the executables of one module: texts and images, made when somebody asks for them."""

    def __init__(self, lowered: Any, target: Target, options: dict[str, bool]) -> None:
        self.lowered = lowered
        self.compiled_for = target
        self.options = options
        self.has_kernels = any(lowered[name].flags & _KERNEL for name in lowered.names)
        self._text: tuple[str, bytes] | None = None
        self._cubin: bytes | None = None
        self._workspaces: dict[tuple, tuple] = {}
        self._lock = threading.Lock()

    def text(self) -> tuple[str, bytes]:
        if not self.has_kernels:
            raise AttributeError("the function has no device region: there is no CUDA text")
        if self._text is None:
            target = self.compiled_for
            if target.kind == "cpu":  # the least architecture that the kernel needs
                arch, suffix = _core.cuda_needs(self.lowered)["floor"]
                target = Target(f"cuda:sm_{max(arch, _LEAST_ARCH)}{suffix or ''}")
            self._text = _core.cuda_source(self.lowered, str(target), self.options)
        return self._text

    def image(self, want_ptx: bool) -> bytes:
        if self.compiled_for.kind == "cpu":
            what = "PTX" if want_ptx else "cubin"
            raise AttributeError(f'an executable for the emulator has no {what}: compile with target="cuda:sm_90a"')
        source, lines = self.text()
        return _nvrtc(self.lowered, source, lines, self.compiled_for, self.options, want_ptx)

    @property
    def source(self) -> str:
        """The CUDA C++ text of the kernels."""
        return self.text()[0]

    @property
    def ptx(self) -> str:
        return self.image(True).decode()

    @property
    def cubin(self) -> bytes:
        if self._cubin is None:
            self._cubin = self.image(False)
        return self._cubin

    @property
    def mod(self) -> Compiled:
        return Compiled(self)

    def jit(self) -> Package:
        return self

    def workspace(self, name: str, args: tuple) -> tuple | None:
        """The memory that T.workspace gave function `name` on the device of a call: made at the first, then kept."""
        made = self.lowered[name].attrs.get("tirx.workspace")
        if made is None:
            return None
        from tirx import runtime

        where = runtime.device_of(args) if self.compiled_for.kind == "cuda" else runtime.cpu()
        with self._lock:
            kept = self._workspaces.get((name, where))
            if kept is None:
                sizes = [(str(_plain(d)), int(_plain(n))) for d, n in zip(made[::2], made[1::2], strict=True)]
                kept = tuple(runtime.zeros(n, dtype, where) for dtype, n in sizes)
                self._workspaces[name, where] = kept
        return kept


def _pipeline(name: Any) -> None:
    if name is None or name in _PIPELINES:
        return
    candidates = ", ".join(f'"{p}"' for p in _PIPELINES)
    raise ValueError(f"Unknown pre-built pipeline {name}, candidates are [{candidates}]")


def _options(**given: Any) -> dict[str, bool]:
    for name, value in given.items():
        if not isinstance(value, bool):
            raise TypeError(f"tirx.compile: {name} is True or False, got {value!r}")
    return given


def _lower(core: Any, target: str, options: dict[str, bool]) -> Any:
    """All passes; what they warn of stands at the kernel's lines."""
    lowered = _core.lower(core, target, options)
    for text, file, line, _ in lowered.ctx.take_warnings():
        warnings.warn_explicit(text, UserWarning, file, line)
    return lowered


def _externs(externs: Any) -> dict[str, Callable] | None:
    if externs is None:
        return None
    if not isinstance(externs, Mapping):
        raise TypeError(f"tirx.compile: externs is a dict of name to function, got {type(externs).__name__}")
    for name, f in externs.items():
        if not isinstance(name, str) or not callable(f):
            raise TypeError(f"tirx.compile: externs[{name!r}] is {f!r}, expected a function under a name")
    return dict(externs)


def compile(
    mod: Any,
    target: str | dict | Target | None = None,
    pipeline: str | None = "default",
    *,
    fast_math: bool = False,
    contract: bool = True,
    lineinfo: bool = False,
    externs: Mapping[str, Callable] | None = None,
    tir_pipeline: str | None = None,
    relax_pipeline: Any = None,
) -> Executable:
    """Compile a function or a module; the result is called with tensors and numbers.

    target      "cuda" (device 0), "cuda:sm_90a" (no device needed), "cpu" (the emulator), or None: a GPU if there is
                one, else the emulator
    fast_math   approximate functions and division
    contract    a*b + c becomes one fused operation, on every target
    lineinfo    source lines for profilers and debuggers
    externs     {"name": f}: what the emulator calls, with NumPy arrays, in place of an injected CUDA function

    tir_pipeline is an older name of pipeline; relax_pipeline is ignored.
    """
    core = core_of(mod, "tirx.compile")
    _pipeline(pipeline if tir_pipeline is None else tir_pipeline)
    options = _options(fast_math=fast_math, contract=contract, lineinfo=lineinfo)
    functions = _externs(externs)
    goal = resolve(target)
    name = str(goal)
    lowered = _lower(core, name, options)
    package = Package(lowered, goal, options)
    cubin = package.cubin if goal.kind == "cuda" and package.has_kernels else None
    entry = core.__name__ if isinstance(core, _core.Function) and not core.flags & _DEVICE else None
    return Executable(lowered, entry, name, cubin=cubin, externs=functions, owner=package)


build = compile


def cuda_text(mod: Any, target: str | dict | Target | None = None, **options: bool) -> str:
    """The CUDA C++ text alone, as exe.source gives it; nothing is compiled."""
    goal = resolve(target)
    given = _options(**options)
    return _core.cuda_source(_core.lower(core_of(mod, "tirx.compile"), str(goal), given), str(goal), given)[0]


def lower(mod: Any, target: str | dict | Target | None = None, **options: bool) -> IRModule:
    """The module after all passes: host functions and kernels, to be read."""
    core = core_of(mod, "tirx.lower")
    spec = Target.current() if target is None else Target(target)
    goal = Target("cpu") if spec is None else resolve(spec)
    return IRModule(_lower(core, str(goal), _options(**options)))
