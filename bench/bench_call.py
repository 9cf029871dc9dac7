# SPDX-License-Identifier: Apache-2.0
"""Host cost of a call with three torch CUDA tensors, beside a C loop of cuLaunchKernelEx with the same kernel.

What is to be reached: at most 1.2 times the C loop. torch.add, CuPy and Triton are measured where they can be imported.
Without a GPU the cost of a call on the emulator is shown for what it is: everything but the launch.

Each figure is wall time for the host to hand over one launch: the queue is drained between batches that fit in it.
"""

from __future__ import annotations

import sys
import time

from common import machine, table

import tirx
from tirx import _core
from tirx.script import tirx as T

N = 1024
BATCH = 400  # launches that the driver's queue takes without waiting for the GPU
REPEAT = 60


@T.prim_func
def add(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        C[i] = A[i] + B[i]


def batches(contestants, drain):
    """Seconds of one launch: the least over many batches; contestants take turns."""
    best = dict.fromkeys(contestants, float("inf"))
    for run in contestants.values():
        run()
    drain()
    for _ in range(REPEAT):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - start) / BATCH)
            drain()
    return best


def loop(fn, *args):
    def run():
        for _ in range(BATCH):
            fn(*args)

    return run


def triton_add():
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(a, b, c, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < n
        tl.store(c + i, tl.load(a + i, mask=mask) + tl.load(b + i, mask=mask), mask=mask)

    return lambda a, b, c: kernel[(4,)](a, b, c, N, BLOCK=256)


def on_gpu(torch):
    exe = tirx.compile(add, target="cuda")
    a, b, c = (torch.randn(N, device="cuda") for _ in range(3))
    exe(a, b, c)
    assert torch.equal(c, a + b)
    contestants = {
        "cuLaunchKernelEx in C": lambda: exe._repeat(BATCH, a, b, c),
        "tirx": loop(exe, a, b, c),
        "torch.add": loop(lambda x, y, z: torch.add(x, y, out=z), a, b, c),
    }
    try:
        fn = triton_add()
        fn(a, b, c)
        contestants["Triton"] = loop(fn, a, b, c)
    except Exception as e:  # not installed, or it finds no compiler here
        print(f"(no Triton: {type(e).__name__})")
    try:
        import cupy

        x, y, z = (cupy.from_dlpack(t) for t in (a, b, c))
        contestants["CuPy"] = loop(lambda x, y, z: cupy.add(x, y, out=z), x, y, z)
    except Exception as e:
        print(f"(no CuPy: {type(e).__name__})")
    times = batches(contestants, torch.cuda.synchronize)
    return table(
        "host cost of a call with three torch CUDA tensors",
        times,
        baseline="cuLaunchKernelEx in C",
        unit="us",
        reach={"tirx": 1.2},
    )


def on_emulator():
    import numpy as np

    @T.prim_func
    def nothing(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
        T.device_entry()
        bx = T.cta_id([n // 1024 - 1])  # no CTA: only the call itself is left
        tx = T.thread_id([1])
        C[tx] = A[tx] + B[tx]

    exe = tirx.compile(nothing, target="cpu")
    arrays = [np.zeros(N, np.float32) for _ in range(3)]
    contestants = {"NumPy arrays": loop(exe, *arrays)}
    try:
        import torch

        contestants["torch tensors"] = loop(exe, *(torch.zeros(N) for _ in range(3)))
    except ImportError:
        pass
    contestants["numpy.add"] = loop(lambda x, y, z: np.add(x, y, out=z), *(x[:1] for x in arrays))
    times = batches(contestants, lambda: None)
    return table("a call that launches nothing: arguments, checks, launch plan", times, baseline="numpy.add", unit="us")


def main():
    print(machine())
    ok, why = _core.driver_available()
    if not ok:
        print(f"no GPU: {why}")
        return on_emulator()
    try:
        import torch
    except ImportError:
        print("no PyTorch")
        return True
    return on_gpu(torch)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
