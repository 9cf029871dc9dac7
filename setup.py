# SPDX-License-Identifier: Apache-2.0
"""Builds tirx._core: every C file under csrc/ except the amalgam all.c, in parallel, recompiling only what changed.

What steers it (environment):

    TIRX_WERROR=1     -Wall -Wextra -Werror
    TIRX_DEBUG=1      -O0 -g -DTX_DEBUG: assertions on, the verifier runs after every pass
    TIRX_SANITIZE=1   AddressSanitizer and UndefinedBehaviorSanitizer; needs libasan preloaded (see `make asan`)
    TIRX_FULL_API=1   compile against CPython's full API instead of the limited API of 3.11
    TIRX_JOBS=n       compilers to run at once (default: the number of processors)

Objects are kept under build/obj/, in one folder for each set of flags, so that switching between these recompiles
nothing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


def on(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")


FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
LIMITED_API = not FREE_THREADED and not on("TIRX_FULL_API")
X86_64 = platform.machine().lower() in ("x86_64", "amd64") and sys.maxsize > 2**32

# Files that hold the emulator's hot loops once more for a newer instruction set, by the end of their name. They are
# compiled on x86-64 only, and the code that picks one at load checks the processor first. Contraction stays off in all
# of them, so that every variant gives the same bits.
ISA_FLAGS = {
    "avx2.c": ["-mavx2", "-mfma", "-mf16c"],
    "avx512.c": ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mf16c"],
}


def isa_flags(source: str) -> list[str] | None:
    """The extra flags of a source file, or None if it is not one of the files that need some."""
    return next((flags for end, flags in ISA_FLAGS.items() if source.endswith(end)), None)


# The interpreter's loops, which take minutes to optimise with sanitizers in them, and the most of any file without.
HOT = "csrc/emu/run"


def sources() -> list[str]:
    found = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "csrc").rglob("*.c"))
    kept = [s for s in found if s != "csrc/all.c" and (X86_64 or isa_flags(s) is None)]
    return sorted(kept, key=lambda s: not s.startswith(HOT))  # the longest compilations first


def compile_flags() -> list[str]:
    # -g0 and -O2 come after the flags that CPython was built with, and override them.
    flags = ["-std=c11", "-fvisibility=hidden", "-ffp-contract=off"]
    if on("TIRX_SANITIZE"):
        flags += [
            "-O1",
            "-g",
            "-fno-omit-frame-pointer",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-UNDEBUG",
        ]
    if on("TIRX_DEBUG"):
        flags += ["-g", "-DTX_DEBUG", "-UNDEBUG"]
        flags += [] if on("TIRX_SANITIZE") else ["-O0"]
    if not on("TIRX_SANITIZE") and not on("TIRX_DEBUG"):
        flags += ["-O2", "-g0"]
    if on("TIRX_WERROR"):
        flags += ["-Wall", "-Wextra", "-Werror"]
    return flags


def link_flags() -> list[str]:
    return ["-pthread"] + (["-fsanitize=address,undefined"] if on("TIRX_SANITIZE") else [])


class BuildExt(build_ext):
    """Compiles several files at once, each with its own flags; skips what is newer than all that it includes."""

    def build_extension(self, ext: Extension) -> None:
        if self.compiler.compiler_type != "unix":
            super().build_extension(ext)
            return
        import numpy  # only the headers, and only csrc/python/npy.c includes them

        ext.include_dirs = [*ext.include_dirs, *self.compiler.include_dirs]
        key = repr((self.compiler.compiler_so, ext.extra_compile_args, ext.define_macros, ext.include_dirs))
        temp = Path("build/obj") / hashlib.sha256(key.encode()).hexdigest()[:12]
        ext.include_dirs.append(
            numpy.get_include()
        )  # not in the key: a build in isolation finds it elsewhere every time
        stale, objects = [], []
        for source in ext.sources:
            obj = temp / Path(source).with_suffix(".o")
            objects.append(str(obj))
            if self.force or not up_to_date(obj):
                obj.parent.mkdir(parents=True, exist_ok=True)
                stale.append((source, obj))

        def compile_one(job: tuple[str, Path]) -> str | None:
            source, obj = job
            macros = [f"-D{name}={value}" if value is not None else f"-D{name}" for name, value in ext.define_macros]
            dirs = [f"-I{d}" for d in ext.include_dirs]
            command = [*self.compiler.compiler_so, *macros, *dirs, *ext.extra_compile_args, *(isa_flags(source) or [])]
            command += ["-O0"] if on("TIRX_SANITIZE") and source.startswith(HOT) else []
            command += ["-MMD", "-MF", str(obj.with_suffix(".d")), "-c", source, "-o", str(obj)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.stderr:
                sys.stderr.write(done.stderr)
            if done.returncode != 0:
                obj.unlink(missing_ok=True)
                return source
            return None

        if stale:
            print(f"tirx._core: compiling {len(stale)} of {len(objects)} files", flush=True)
        jobs = int(os.environ.get("TIRX_JOBS", "0")) or os.cpu_count() or 1
        with ThreadPoolExecutor(jobs) as pool:
            failed = [source for source in pool.map(compile_one, stale) if source]
        if failed:
            raise SystemExit("tirx._core: cannot compile " + ", ".join(failed))
        self.compiler.link_shared_object(
            objects,
            self.get_ext_fullpath(ext.name),
            libraries=ext.libraries,
            extra_postargs=ext.extra_link_args,
            target_lang="c",
        )


def up_to_date(obj: Path) -> bool:
    """True if obj is newer than every file that the compiler read to make it; its list is the .d file beside it."""
    deps = obj.with_suffix(".d")
    try:
        made = obj.stat().st_mtime_ns
        text = deps.read_text().replace("\\\n", " ").replace("\\ ", "\0")
        files = [f.replace("\0", " ") for f in text.split(":", 1)[1].split()]
        return all(os.stat(f).st_mtime_ns <= made for f in files)
    except (OSError, IndexError):
        return False


def extensions() -> list[Extension]:
    files = sources()
    if not files:
        return []
    macros = [("NPY_NO_DEPRECATED_API", "NPY_1_25_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_1_25_API_VERSION")]
    if LIMITED_API:
        macros.append(("Py_LIMITED_API", "0x030B0000"))
    return [
        Extension(
            "tirx._core",
            sources=files,
            include_dirs=["csrc"],
            define_macros=macros,
            extra_compile_args=compile_flags(),
            extra_link_args=link_flags(),
            libraries=["m", "dl"] if sys.platform.startswith("linux") else [],
            py_limited_api=LIMITED_API,
        )
    ]


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildExt},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED_API else {},
)
