# SPDX-License-Identifier: Apache-2.0
"""The front end on a long kernel: parse, lower and CUDA text for each 1,000 lines of CUDA text, and `.script()`.

The kernel is made here: blocks of some thirty lines in the manner of written ones (registers of one element, loops,
conditions, conversions, PTX operations, shared memory). What is to be reached: 60 ms for 1,000 lines of CUDA text, and
10 ms for the script of a function of 10,000 nodes. The floor beside them is Python's own parser on the same source.
"""

from __future__ import annotations

import ast
import sys

from common import SCALE, contest, machine, rows_as_markdown

import tirx
from tirx import compiler

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
    return good


if __name__ == "__main__":
    sys.exit(not main())
