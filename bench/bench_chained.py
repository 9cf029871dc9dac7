# SPDX-License-Identifier: Apache-2.0
"""What programmatic dependent launch saves: the two kernels of examples/chained_sum.py, chained and not, a call of both
in microseconds. Calls are captured in CUDA graphs; the two contestants take turns. Needs a GPU and PyTorch."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import torch

import tirx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from chained_sum import total  # noqa: E402

CALLS, ROUNDS = 200, 9


def captured(exe, x, out):
    exe(x, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            exe(x, out)
    return graph


def once(graph):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / CALLS


def main():
    chained, plain = (tirx.compile(total.specialize(CHAINED=c), target="cuda") for c in (True, False))
    print(f"{torch.cuda.get_device_name(0)}; us a call of two kernels, median of {ROUNDS} rounds of {CALLS} calls")
    print(f"{'elements':>10} {'plain':>8} {'chained':>8} {'saved':>6}")
    for n in (1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26):
        x, outs = torch.randn(n, device="cuda"), [torch.full((1,), float("nan"), device="cuda") for _ in range(2)]
        graphs = [captured(exe, x, out) for exe, out in zip((plain, chained), outs, strict=True)]
        for g in graphs:
            g.replay()
        times = [[once(g) for g in graphs] for _ in range(ROUNDS)]
        assert torch.equal(outs[0], outs[1]), "the overlap changed the result"
        assert abs(outs[0].item() - x.double().sum().item()) < 1e-5 * x.abs().sum().item() + 1e-3
        a, b = (statistics.median(t[i] for t in times) for i in range(2))
        print(f"{n:10} {a:8.2f} {b:8.2f} {a - b:6.2f}")


if __name__ == "__main__":
    main()
