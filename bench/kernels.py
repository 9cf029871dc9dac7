# SPDX-License-Identifier: Apache-2.0
"""The kernels of examples/ on a GPU, beside libraries: GEMM beside cuBLAS, attention beside
cuDNN, row-wise kernels beside a copy.

    python bench/kernels.py [gemm] [rows | softmax] [attention] [nvrtc] [--quick]

How it is measured. Calls are captured in CUDA graphs, so that a launch costs what the GPU needs for it and not what the
host needs. Buffers rotate: a replay walks over several sets that together are larger than twice the L2, so inputs come
from memory. Inputs are random. Contestants take turns, and the figure is the median of the rounds, with the least in
brackets. Two states of the chip: "burst", a few calls after 60 ms of rest, and "sustained", after at least 3 s of load,
where the power limit lowers the clock; compare within a column only. Before anything is timed the output is poisoned
with NaN and compared with float64.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

os.environ["CUDA_CACHE_DISABLE"] = "1"  # NVRTC keeps nothing

import torch
from common import cpu, measure, rows_as_markdown

import tirx

L2 = 60e6
QUICK = "--quick" in sys.argv
ROUNDS = 5 if QUICK else 9


class Contestant:
    """A function of one set of buffers, captured once for every set."""

    def __init__(self, name, call, sets, calls):
        self.name = name
        call(*sets[0])
        torch.cuda.synchronize()
        self.calls = calls
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(calls):
                call(*sets[i % len(sets)])
        self.times = {}

    def run(self):
        """Seconds of one call."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / self.calls


def contest(contestants, state, rounds=ROUNDS):
    for c in contestants:
        c.graph.replay()
    torch.cuda.synchronize()
    if state == "sustained":
        stop = time.perf_counter() + (1 if QUICK else 3)
        while time.perf_counter() < stop:
            for c in contestants:
                c.graph.replay()
            torch.cuda.synchronize()
    for c in contestants:
        c.times[state] = []
    for _ in range(rounds):
        for c in contestants:
            if state == "burst":
                torch.cuda.synchronize()
                time.sleep(0.06)
                c.run()
            c.times[state].append(c.run())


def figure(times, work):
    return f"{work / statistics.median(times):,.0f} ({work / min(times):,.0f})"


def sets_of(make, nbytes, most=8):
    return [make() for _ in range(max(2, min(most, int(2 * L2 / nbytes) + 2)))]


# ---- GEMM ---------------------------------------------------------------------------------------------------------


def gemm_variants(M, N, K):
    from hopper_gemm import gemm

    found = {}
    options = [dict(BN=256, CLUSTER=2, GROUP=8)]
    if not QUICK:
        options += [
            dict(BN=256, CLUSTER=2, GROUP=4),
            dict(BN=256, CLUSTER=1, GROUP=16),
            dict(BN=128, CLUSTER=2, STAGES=6),
        ]
    for o in options:
        o.setdefault("STAGES", 4)
        found["tirx " + " ".join(f"{k}={v}" for k, v in o.items())] = tirx.compile(gemm.specialize(**o), target="cuda")
    return found


def bench_gemm(sizes):
    rows = []
    for M, N, K in sizes:

        def make(M=M, N=N, K=K):
            a, b = torch.randn(M, K, device="cuda").bfloat16(), torch.randn(N, K, device="cuda").bfloat16()
            return a, b, torch.full((M, N), float("nan"), device="cuda", dtype=torch.bfloat16)

        sets = sets_of(make, 2 * (M * K + N * K + M * N))
        seconds = 2.0 * M * N * K / 700e12
        calls = max(len(sets), min(400, int(4e-3 / max(seconds, 4e-6))))
        a, b, c = sets[0]
        want = a.double() @ b.double().T
        variants = gemm_variants(M, N, K)
        for name, exe in variants.items():
            c.fill_(float("nan"))
            exe(a, b, c)
            error = ((c.double() - want).norm() / want.norm()).item()
            assert error < 4e-3, f"{name} at {M} x {N} x {K}: relative error {error}"
        del want
        contestants = [Contestant("cuBLAS", lambda a, b, c: torch.mm(a, b.T, out=c), sets, calls)]
        contestants += [Contestant(n, e, sets, calls) for n, e in variants.items()]
        for state in ("burst", "sustained"):
            contest(contestants, state)
        work = 2e-12 * M * N * K
        for c in contestants:
            cells = []
            for state in ("burst", "sustained"):
                base = statistics.median(contestants[0].times[state])
                cells += [figure(c.times[state], work), f"{base / statistics.median(c.times[state]):.3f}"]
            rows.append([f"{M} x {N} x {K}", c.name, *cells])
            print(rows[-1], flush=True)
        torch.cuda.empty_cache()
    header = ["bf16 GEMM", "", "burst TFLOP/s", "x cuBLAS", "sustained TFLOP/s", "x cuBLAS"]
    print("\n" + rows_as_markdown(header, rows), flush=True)


# ---- attention ----------------------------------------------------------------------------------------------------


def bench_attention():
    from attention import attention, reference
    from torch.nn.attention import SDPBackend, sdpa_kernel

    rows = []
    for D, heads, batch, L in [(128, 16, 4, 4096), (64, 32, 4, 4096)]:
        for causal in (False, True):

            def make(D=D, heads=heads, batch=batch, L=L):
                q, k, v = (torch.randn(batch * heads, L, D, device="cuda").bfloat16() for _ in range(3))
                return q, k, v, torch.full_like(q, float("nan")), torch.empty(batch * heads, L, device="cuda")

            def library(q, k, v, o, lse, batch=batch, causal=causal):
                q, k, v = (x.unflatten(0, (batch, -1)) for x in (q, k, v))
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

            sets = sets_of(make, 8 * batch * heads * L * D)
            exe = tirx.compile(attention.specialize(D=D, CAUSAL=causal), target="cuda")
            q, k, v, o, lse = sets[0]
            exe(q, k, v, o, lse)
            want = reference(q[:4], k[:4], v[:4], causal)[0]
            error = ((o[:4].double() - want).norm() / want.norm()).item()
            assert error < 5e-3, f"attention D {D} causal {causal}: relative error {error}"
            work = 4e-12 * batch * heads * L * L * D * (0.5 if causal else 1)
            calls = max(len(sets), int(4e-3 / (work / 500)))
            contestants = [Contestant("cuDNN", library, sets, calls), Contestant("tirx", exe, sets, calls)]
            for state in ("burst", "sustained"):
                contest(contestants, state)
            for c in contestants:
                cells = []
                for state in ("burst", "sustained"):
                    base = statistics.median(contestants[0].times[state])
                    cells += [figure(c.times[state], work), f"{base / statistics.median(c.times[state]):.3f}"]
                rows.append([f"D {D}, {batch} x {heads} heads, L {L}{', causal' * causal}", c.name, *cells])
                print(rows[-1], flush=True)
            torch.cuda.empty_cache()
    header = ["bf16 attention", "", "burst TFLOP/s", "x cuDNN", "sustained TFLOP/s", "x cuDNN"]
    print("\n" + rows_as_markdown(header, rows), flush=True)


# ---- kernels that memory limits -------------------------------------------------------------------------------------


def bench_rows(softmax_only=False):
    from rmsnorm import rmsnorm
    from softmax import softmax
    from sum import total

    rows = []

    def go(title, nbytes, make, contestants, gate):
        sets = sets_of(make, nbytes)
        for name, call in contestants.items():
            gate(name, call, sets[0])
        calls = max(len(sets), int(2e-3 / (nbytes / 4e12)))
        ready = [Contestant("copy", lambda x, y, *_: y.copy_(x), sets, calls)]
        ready += [Contestant(n, f, sets, calls) for n, f in contestants.items()]
        contest(ready, "sustained")
        base = None
        for c in ready:
            moved = nbytes if c.name != "copy" else 2 * sets[0][0].numel() * sets[0][0].element_size()
            rate = moved / statistics.median(c.times["sustained"])
            base = base or rate
            rows.append([title, c.name, figure(c.times["sustained"], moved * 1e-9), f"{rate / base:.3f}"])
            print(rows[-1], flush=True)
        torch.cuda.empty_cache()

    for N in (4096, 8192):
        R = 2**26 // N * 2

        def make(N=N, R=R):
            x = torch.randn(R, N, device="cuda").bfloat16()
            return x, torch.empty_like(x)

        contestants = {
            f"tirx {t} threads": tirx.compile(softmax.specialize(N=N, THREADS=t), target="cuda")
            for t in (N // 32, N // 16)  # four or two vectors a thread
        }
        contestants["torch"] = lambda x, y: torch.softmax(x, 1, out=y)

        def gate(name, call, s):
            x, y = s
            y.fill_(float("nan"))
            call(x, y)
            want = torch.softmax(x[:4096].double(), 1)
            assert ((y[:4096].double() - want).norm() / want.norm()).item() < 4e-3, name
            assert not y.isnan().any(), name

        go(f"softmax bf16 {R} x {N}", 4 * R * N, make, contestants, gate)

        if softmax_only:
            continue

        def make_rms(N=N, R=R):
            x = torch.randn(R, N, device="cuda").bfloat16()
            return x, torch.empty_like(x), torch.randn(1, N, device="cuda").bfloat16()

        exes = {
            f"tirx {t} threads": tirx.compile(rmsnorm.specialize(N=N, THREADS=t), target="cuda")
            for t in (N // 32, N // 16)
        }
        contestants = {n: lambda x, y, w, e=e: e(x, w, y, 1e-5) for n, e in exes.items()}

        def gate_rms(name, call, s, N=N):
            x, y, w = s
            y.fill_(float("nan"))
            call(x, y, w)
            want = torch.nn.functional.rms_norm(x[:4096].double(), (N,), w[0].double(), 1e-5)
            assert ((y[:4096].double() - want).norm() / want.norm()).item() < 4e-3, name
            assert not y.isnan().any(), name

        go(f"RMSNorm bf16 {R} x {N}", 4 * R * N, make_rms, contestants, gate_rms)

    if softmax_only:
        return print("\n" + rows_as_markdown(["", "", "GB/s", "x copy"], rows), flush=True)
    n = 2**26

    def make_sum():
        x = torch.randn(n, device="cuda")
        return x, torch.empty_like(x), torch.empty(1, device="cuda")

    contestants = {}
    for threads, blocks, unroll in [(256, 4, 8), (256, 8, 4), (512, 4, 4), (256, 8, 8)]:
        exe = tirx.compile(total.specialize(THREADS=threads, BLOCKS=132 * blocks, UNROLL=unroll), target="cuda")
        name = f"tirx {threads} threads x {blocks}, {unroll} loads"
        contestants[name] = lambda x, y, o, e=exe: e(x, o)
    contestants["torch"] = lambda x, y, o: torch.sum(x, 0, keepdim=True, out=o)

    def gate_sum(name, call, s):
        x, _, o = s
        o.fill_(float("nan"))
        call(*s)
        assert abs(o.item() - x.double().sum().item()) < 1e-6 * x.double().abs().sum().item(), name

    go("sum fp32 of 2^26", 4 * n, make_sum, contestants, gate_sum)
    print("\n" + rows_as_markdown(["", "", "GB/s", "x copy"], rows), flush=True)


# ---- compile time ---------------------------------------------------------------------------------------------------


def bench_nvrtc():
    """CPU seconds of one thread, without what NVRTC keeps of texts that it has seen."""
    from attention import attention
    from blackwell_gemm import gemm as blackwell_gemm
    from hopper_gemm import gemm
    from rmsnorm import rmsnorm
    from softmax import softmax
    from sum import total

    kernels = {
        "Hopper GEMM": (gemm.specialize(), "cuda:sm_90a"),
        "attention D 128": (attention.specialize(D=128), "cuda:sm_90a"),
        "attention D 64": (attention.specialize(D=64), "cuda:sm_90a"),
        "Blackwell GEMM, pair": (blackwell_gemm.specialize(PAIR=2), "cuda:sm_100a"),
        "softmax, 4096": (softmax.specialize(N=4096), "cuda:sm_90a"),
        "softmax, 8192": (softmax.specialize(N=8192), "cuda:sm_90a"),
        "RMSNorm, 4096": (rmsnorm.specialize(N=4096), "cuda:sm_90a"),
        "sum": (total.specialize(), "cuda:sm_90a"),
    }
    tirx.compile(total.specialize(UNROLL=1), target="cuda:sm_90a")  # NVRTC is loaded
    rows = []
    for name, (kernel, target) in kernels.items():
        lower = measure(lambda: tirx.lower(kernel, target=target), repeat=3, least=0.01)  # noqa: B023
        tirx.compiler.clear_cache()
        start = cpu()
        exe = tirx.compile(kernel, target=target)
        rows.append([name, f"{lower * 1e3:.1f}", f"{(cpu() - start):.2f}", str(exe.source.count("\n"))])
    print("\n" + rows_as_markdown(["", "lower, ms", "tirx.compile, s", "lines of CUDA text"], rows), flush=True)


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")] or ["nvrtc", "rows", "attention", "gemm"]
    if "nvrtc" in wanted:
        bench_nvrtc()
    if wanted == ["nvrtc"]:  # needs no GPU
        return
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    if "rows" in wanted or "softmax" in wanted:
        bench_rows("rows" not in wanted)
    if "attention" in wanted:
        bench_attention()
    if "gemm" in wanted:
        bench_gemm([(4096,) * 3, (8192,) * 3] if QUICK else [(1024,) * 3, (2048,) * 3, (4096,) * 3, (8192,) * 3])


if __name__ == "__main__":
    main()
