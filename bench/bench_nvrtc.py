# SPDX-License-Identifier: Apache-2.0
"""NVRTC's time for the CUDA text of the kernels in examples/, alone and behind the headers that a generator of its kind
includes; CPU seconds, NVRTC's own cache turned off.

What tirx writes needs no header. The text of the original compilers begins with libcu++'s integer names, type traits
and limits in every kernel, and with the header of each narrow float type that occurs; texts that ask for the rank of a
thread, or use barriers as objects, include cooperative groups and cuda/barrier, too: the texts of their matrix products
and attention kernels do, for the index of a thread alone. So each text is compiled behind

    common    cuda/std/cstdint, cuda/std/type_traits, cuda/std/limits, and cuda_fp16.h or cuda_bf16.h as the kernel's
              elements want (both where it converts)
    groups    the same, cooperative_groups.h and cuda/barrier (kernels with barriers and clusters)

and to be reached are: at most half of the time behind what such a kernel includes there, and less than a second. The
typedefs of the text whose names the headers take are left out of it then.

    python bench/bench_nvrtc.py [folder of headers ...]      also found in CUDA_HOME and the installed NVIDIA wheels
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from common import contest, machine, rows_as_markdown

import tirx
from tirx import _core, toolchain

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

COMMON = ["cuda/std/cstdint", "cuda/std/type_traits", "cuda/std/limits"]
GROUPS = ["cooperative_groups.h", "cuda/barrier"]
BF16, F16 = ["cuda_bf16.h"], ["cuda_fp16.h"]


def kernels():
    from attention import attention
    from hopper_gemm import gemm
    from rmsnorm import rmsnorm
    from softmax import softmax
    from sum import total

    return {
        "Hopper GEMM, bf16": (gemm.specialize(), BF16, True),
        "attention, D 128": (attention.specialize(), BF16, True),
        "attention, D 128, causal": (attention.specialize(CAUSAL=True), BF16, True),
        "attention, D 64, fp16": (attention.specialize(D=64, dtype="float16"), F16, True),
        "softmax, rows of 4096": (softmax.specialize(N=4096), BF16, False),
        "softmax, rows of 8192": (softmax.specialize(N=8192), BF16, True),
        "RMSNorm, rows of 4096": (rmsnorm.specialize(N=4096), BF16, False),
        "sum": (total.specialize(), [], False),
    }


def behind(headers: list[str], text: str) -> str:
    """The text behind these headers, without the names of its own that they declare."""
    text = re.sub(r"^typedef [\w ]+ (u?int(8|16|32|64)_t);$", "", text, flags=re.M)
    if "cuda/barrier" in headers:  # which declares it, and leaves it open
        text = text.replace("struct alignas(64) CUtensorMap {", "struct alignas(64) CUtensorMap_st {")
    return "".join(f"#include <{h}>\n" for h in headers) + text


def folders(more: list[str]) -> list[str]:
    found = []
    for folder in [*more, *map(str, toolchain.include_folders())]:
        found += [f for f in (folder, str(Path(folder) / "cccl")) if Path(f).is_dir() and f not in found]
    return found


def missing(headers: list[str], where: list[str]) -> list[str]:
    return [h for h in headers if not any((Path(f) / h).is_file() for f in where)]


def main() -> bool:
    toolchain.need_nvrtc()
    print(machine())
    where = folders(sys.argv[1:])
    plain = ["--gpu-architecture=sm_90a", "--std=c++17", "--fmad=false"]
    for name, headers in (("common", [*COMMON, *BF16, *F16]), ("groups", GROUPS)):
        if lost := missing(headers, where):
            print(f"no column `{name}`: {', '.join(lost)} not found (pip install nvidia-cuda-runtime nvidia-cuda-cccl)")
    good, rows = True, []
    for name, (kernel, narrow, groups) in kernels().items():
        text = tirx.compile(kernel, target="cuda:sm_90a").source
        contestants = {"alone": lambda t=text: _core.nvrtc_compile(t, [*plain, "--minimal"])}
        columns = {"common": [*COMMON, *narrow]}
        if groups:
            columns["groups"] = [*COMMON, *narrow, *GROUPS]
        flags = [*plain, *(f"--include-path={f}" for f in where)]
        for column, headers in columns.items():
            if not missing(headers, where):
                full = behind(headers, text)
                contestants[column] = lambda t=full, f=flags: _core.nvrtc_compile(t, f)
        times = contest(contestants, repeat=3, least=0.01)
        alone = times["alone"]
        row = [name, str(text.count("\n")), f"{alone:.2f}"]
        for column in ("common", "groups"):
            row += [f"{times[column]:.2f}", f"{alone / times[column]:.2f}"] if column in times else ["", ""]
        good &= alone < 1 and alone <= list(times.values())[-1] / (2 if len(times) > 1 else 1)
        rows.append(row)
    head = ["kernel", "lines", "alone, s", "behind `common`", "ratio", "behind `groups`", "ratio"]
    print("\n" + rows_as_markdown(head, rows))
    return good


if __name__ == "__main__":
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    sys.exit(0 if main() else 1)
