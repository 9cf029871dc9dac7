# SPDX-License-Identifier: Apache-2.0
"""The front end on a long kernel: parse, lower and CUDA text for each 1,000 lines of CUDA text, and `.script()`.

The kernel is made here: blocks of some thirty lines in the manner of written ones (registers of one element, loops,
conditions, conversions, PTX operations, shared memory). What is to be reached: 60 ms for 1,000 lines of CUDA text, and
10 ms for the script of a function of 10,000 nodes. The floor beside them is Python's own parser on the same source.

Then the written ones, of tests/long_kernels: most of their source is helpers, which are expanded again at each call.
With NVRTC's time for the text, its own cache off.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from common import SCALE, contest, machine, rows_as_markdown

import tirx
from tirx import _core, compiler, toolchain

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "long_kernels"))

import block_scaled_gemm
import radix_select
import state_space

HEAD = """from tirx.script import tirx as T

@T.prim_func
def long_kernel(
    A: T.Buffer((64, 4096), "float32"), B: T.Buffer((64, 4096), "float16"), C: T.Buffer((64, 4096), "float32")
):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([128])
    tile = T.alloc_shared((128, 8), "float32")
"""
BLOCK = """
    acc_{k} = T.alloc_local((4,), "float32")
    for i in T.unroll(4):
        acc_{k}[i] = 0.0
    start_{k}: T.int32 = tx * 4 + {k}
    for step in T.serial(0, 16):
        at = step * 128 + start_{k}
        if at < 4096:
            a_{k} = A[bx, at]
            b_{k} = T.cast(B[bx, at], "float32")
            acc_{k}[0] = acc_{k}[0] + a_{k} * b_{k}
            acc_{k}[1] = T.max(acc_{k}[1], a_{k} - b_{k})
            acc_{k}[2] += T.exp2(a_{k}) * T.float32(0.5)
            acc_{k}[3] = T.if_then_else(a_{k} > b_{k}, acc_{k}[3] + 1.0, acc_{k}[3])
        else:
            acc_{k}[0] = acc_{k}[0] + 1.0
    tile[tx % 128, {k} % 8] = acc_{k}[0] + acc_{k}[1]
    T.cuda.cta_sync()
    bits_{k}: T.uint32 = T.reinterpret("uint32", acc_{k}[2])
    bits_{k} = (bits_{k} >> T.uint32(3)) ^ (bits_{k} << T.uint32(5))
    mixed_{k} = T.local_scalar("uint32")
    T.ptx.mul.lo.u32(mixed_{k}, bits_{k}, T.uint32(17))
    if mixed_{k} > T.uint32(100) and tx < 64:
        C[bx, tx * 4] = tile[(tx + 1) % 128, {k} % 8] + T.cast(mixed_{k}, "float32")
    C[bx, tx * 4 + 1] = acc_{k}[2] * acc_{k}[3]
"""
BLOCKS = (10, 40, 160)
ARCH = "sm_100a"
LONG = {
    "state_space.scan": (state_space.scan, {"LOAD": "tensor", "STARTS": True, "CLUSTER": 4}),
    "block_scaled_gemm.multiply": (block_scaled_gemm.multiply, {"OUT": "float8_e4m3fn"}),
    "radix_select.topk": (radix_select.topk, {"K": 1000, "THREADS": 512, "CLUSTER": 8}),
}


def source(blocks: int) -> str:
    return HEAD + "".join(BLOCK.format(k=k) for k in range(blocks))


def main() -> bool:
    print(machine())
    rows, good = [], True
    for blocks in BLOCKS:
        text = source(blocks)
        f = tirx.from_source(text)
        lines = compiler.cuda_text(f, "cuda:sm_90a").count("\n")
        times = contest(
            {
                "ast": lambda t=text: ast.parse(t),
                "parse": lambda t=text: tirx.from_source(t),
                "lower and text": lambda f=f: compiler.cuda_text(f, "cuda:sm_90a"),
                "script": f.script,
            },
            repeat=7,
        )
        per = {name: t * SCALE["ms"] * 1000 / lines for name, t in times.items()}
        whole = per["parse"] + per["lower and text"]
        good &= whole <= 60
        row = [f"{text.count(chr(10)):,} / {lines:,}"]
        row += [f"{per[name]:.1f}" for name in ("ast", "parse", "lower and text")]
        rows.append([*row, f"{whole:.1f}" + ("" if whole <= 60 else " MISSED"), f"{per['script']:.1f}"])
    print("\nCPU milliseconds for 1,000 lines of CUDA text; reach: whole at most 60\n")
    header = ["lines of source / CUDA text", "Python's ast.parse", "parse", "lower and text", "whole", "`.script()`"]
    print(rows_as_markdown(header, rows))
    return written_ones() and good


def written_ones() -> bool:
    try:
        toolchain.need_nvrtc()
        options = [f"--gpu-architecture={ARCH}", "--std=c++17", "--minimal"]
    except tirx.CompileError as e:
        print(f"\nno NVRTC: {e}")
        options = None
    rows, good = [], True
    for name, (kernel, constants) in LONG.items():

        def parse(kernel=kernel, constants=constants):
            kernel._made.clear()  # what it has parsed before
            return kernel.specialize(**constants)

        f = parse()
        text = compiler.cuda_text(f, f"cuda:{ARCH}")
        lines = text.count("\n")
        times = contest({"parse": parse, "lower": lambda f=f: compiler.cuda_text(f, f"cuda:{ARCH}")}, repeat=5)
        parsed, lowered = (times[key] * SCALE["ms"] * 1000 / lines for key in ("parse", "lower"))
        whole = parsed + lowered
        good &= whole <= 60
        row = [
            name,
            f"{lines:,}",
            f"{parsed:.1f}",
            f"{lowered:.1f}",
            f"{whole:.1f}" + (" MISSED" if whole > 60 else ""),
        ]
        if options:
            nvrtc = contest({"": lambda text=text: _core.nvrtc_compile(text, options)}, repeat=3)[""]
            row.append(f"{nvrtc * SCALE['ms']:.0f}")
        rows.append(row)
    print("\nThe same for written kernels; NVRTC: CPU milliseconds for the whole text\n")
    header = ["kernel", "lines of CUDA text", "parse", "lower and text", "whole", "NVRTC"]
    print(rows_as_markdown(header if options else header[:-1], rows))
    return good


if __name__ == "__main__":
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    sys.exit(not main())
