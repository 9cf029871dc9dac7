# SPDX-License-Identifier: Apache-2.0
"""Tracing: what @T.trace costs for each 1,000 lines of CUDA text, on the long kernel of bench_front_end.py.

The kernel is traced in both ways that collections are written in: one function whose Python loop makes block after
block, and straight-line code, where every line is met once. To be reached: 28 ms for 1,000 lines of CUDA text. The
parser on the same kernel stands beside it; the IR of the three is the same.
"""

from __future__ import annotations

import linecache
import sys

import bench_front_end
from common import SCALE, contest, machine, rows_as_markdown

import tirx
from tirx import compiler
from tirx.script import tirx as T

REACH = 28
HEAD = """def long_kernel(
    A: T.Buffer((64, 4096), "float32"), B: T.Buffer((64, 4096), "float16"), C: T.Buffer((64, 4096), "float32")
):
    T.device_entry()
    bx = T.cta_id([64])
    tx = T.thread_id([128])
    tile = T.alloc_shared((128, 8), "float32")
"""
BLOCK = """
    acc = T.alloc_local((4,), "float32")
    with T.unroll(4) as i:
        acc[i] = 0.0
    start = T.local_scalar("int32", tx * 4 + {k})
    with T.serial(0, 16) as step:
        at = T.local_scalar("int32", step * 128 + start)
        with T.If(at < 4096):
            with T.Then():
                a = T.local_scalar("float32", A[bx, at])
                b = T.local_scalar("float32", T.cast(B[bx, at], "float32"))
                acc[0] = acc[0] + a * b
                acc[1] = T.max(acc[1], a - b)
                acc[2] += T.exp2(a) * T.float32(0.5)
                acc[3] = T.if_then_else(a > b, acc[3] + 1.0, acc[3])
            with T.Else():
                acc[0] = acc[0] + 1.0
    tile[tx % 128, {k} % 8] = acc[0] + acc[1]
    T.cuda.cta_sync()
    bits = T.local_scalar("uint32", T.reinterpret("uint32", acc[2]))
    bits[0] = (bits >> T.uint32(3)) ^ (bits << T.uint32(5))
    mixed = T.local_scalar("uint32")
    T.ptx.mul.lo.u32(mixed, bits, T.uint32(17))
    with T.If(T.logical_and(mixed > T.uint32(100), tx < 64)), T.Then():
        C[bx, tx * 4] = tile[(tx + 1) % 128, {k} % 8] + T.cast(mixed, "float32")
    C[bx, tx * 4 + 1] = acc[2] * acc[3]
"""
BLOCKS = (10, 40, 160)


def function(text: str, name: str):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"T": T}
    exec(compile(text, name, "exec"), names)
    return names["long_kernel"]


def in_a_loop(blocks: int):
    body = BLOCK.format(k="k").replace("\n    ", "\n        ")
    return function(f"{HEAD}    for k in range({blocks}):{body}", f"loop_{blocks}.py")


def straight(blocks: int):
    return function(HEAD + "".join(BLOCK.format(k=k) for k in range(blocks)), f"straight_{blocks}.py")


def main() -> bool:
    print(machine())
    rows, good = [], True
    for blocks in BLOCKS:
        text = bench_front_end.source(blocks)
        parsed, loop, line = tirx.from_source(text), in_a_loop(blocks), straight(blocks)
        for traced in (T.trace(loop), T.trace(line)):
            assert tirx.structural_equal(traced, parsed)
        lines = compiler.cuda_text(parsed, "cuda:sm_90a").count("\n")
        times = contest(
            {
                "parsed": lambda t=text: tirx.from_source(t),
                "loop": lambda f=loop: T.trace(f),
                "straight": lambda f=line: T.trace(f),
            },
            repeat=7,
        )
        per = {name: t * SCALE["ms"] * 1000 / lines for name, t in times.items()}
        worst = max(per["loop"], per["straight"])
        good &= worst <= REACH
        mark = "" if worst <= REACH else " MISSED"
        rows.append([f"{lines:,}", *(f"{per[n]:.1f}" for n in ("parsed", "loop")), f"{per['straight']:.1f}{mark}"])
    print(f"\nCPU milliseconds for 1,000 lines of CUDA text; reach: traced at most {REACH}\n")
    header = ["lines of CUDA text", "parsed", "traced, a Python loop", "traced, straight-line code"]
    print(rows_as_markdown(header, rows))
    return good


if __name__ == "__main__":
    sys.exit(not main())
