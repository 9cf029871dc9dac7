# SPDX-License-Identifier: Apache-2.0
"""Runs the examples for Hopper on a GPU and on the emulator with the hardware's numerics, and compares every element.

    python tests/gpu/agreement_examples.py [--only NAME]

Results are equal bit for bit where the kernel's arithmetic is exact or ordered; where it takes exponentials or
reciprocal roots from the special function unit, which the emulator gives within their bounds, they are near.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import multiprocessing
import sys
import time
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import attention
import hopper_gemm
import matmul
import rmsnorm
import softmax
import sum as sums
import tma_copy
import warp_allreduce

import tirx

warnings.simplefilter("ignore")  # of performance
BF16 = ml_dtypes.bfloat16


def normal(seed: int, *shape: int, dtype="float32", scale=1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def empty(*shape: int, dtype="float32") -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def cases():
    """name, kernel, arguments, relative error that is allowed (0: equal bit for bit)."""
    for op in ("sum", "max", "min"):
        for width in (2, 4, 8, 16, 32):
            kernel = warp_allreduce.reduce_lanes.specialize(OP=op, WIDTH=width)
            for n in (1, 100, 4096):
                yield f"warp_allreduce {op} {width} {n}", kernel, (normal(n, n), empty(n)), 0
    for tiles in ({}, dict(BM=32, BN=64, BK=8, TM=2, TN=4)):
        for M, N, K in ((64, 64, 64), (100, 70, 35), (1, 130, 3), (257, 129, 300)):
            args = normal(1, M, K), normal(2, K, N), empty(M, N)
            yield f"matmul {M} {N} {K} {tiles.get('BM', 64)}", matmul.matmul.specialize(**tiles), args, 0
    for dtype, rows, N, threads in (("float32", 5, 1000, 128), ("float16", 3, 4096, 128), ("float32", 2, 36, 64),
                                    ("float16", 40, 512, 128)):  # fmt: skip
        near = {"float32": 2e-6, "float16": 2e-3}[dtype]
        kernel = softmax.softmax.specialize(N=N, dtype=dtype, THREADS=threads)
        args = normal(3, rows, N, dtype=dtype, scale=5), empty(rows, N, dtype=dtype)
        yield f"softmax {dtype} {rows} {N}", kernel, args, near
        kernel = rmsnorm.rmsnorm.specialize(N=N, dtype=dtype, THREADS=threads)
        args = normal(4, rows, N, dtype=dtype), normal(5, 1, N, dtype=dtype), empty(rows, N, dtype=dtype), 1e-5
        yield f"rmsnorm {dtype} {rows} {N}", kernel, args, near
    for n in (1, 1000, 65_537, 300_000):
        kernel = sums.total.specialize(THREADS=64, BLOCKS=4, UNROLL=2)
        yield f"sum {n}", kernel, (normal(6, n), empty(1)), 0
    for dtype in ("float16", "float32"):
        for M, N in ((64, 64), (8, 8), (200, 72), (128, 1048)):
            args = normal(7, M, N, dtype=dtype), empty(N, M, dtype=dtype)
            yield f"tma_copy {dtype} {M} {N}", tma_copy.transpose.specialize(dtype=dtype), args, 0
    for tuning in ({}, dict(BN=64), dict(CLUSTER=1), dict(BN=64, STAGES=2, CLUSTER=1)):
        kernel = hopper_gemm.gemm.specialize(dtype="float16", SMS=4, **tuning)
        for M, N, K in ((128, 256, 64), (200, 264, 136), (8, 8, 8), (256, 512, 512), (264, 136, 520)):
            args = normal(8, M, K, dtype="float16"), normal(9, N, K, dtype="float16"), empty(M, N, dtype="float16")
            yield f"hopper_gemm {M} {N} {K} {tuning}", kernel, args, 0
    for M, N, K in ((128, 256, 64), (200, 264, 136), (256, 512, 512)):
        args = normal(8, M, K, dtype=BF16), normal(9, N, K, dtype=BF16), empty(M, N, dtype=BF16)
        yield f"hopper_gemm {M} {N} {K} bf16", hopper_gemm.gemm.specialize(dtype="bfloat16", SMS=4), args, 0
    for dtype, name, sizes in (
        ("float16", "float16", ((1, 128, 128), (2, 70, 200), (1, 1, 1), (2, 256, 512))),
        (BF16, "bfloat16", ((2, 70, 200), (1, 130, 130))),
    ):
        for D, causal, (heads, Lq, Lk) in itertools.product((64, 128), (False, True), sizes):
            q, k, v = (normal(10 + i, heads, n, D, dtype=dtype) for i, n in enumerate((Lq, Lk, Lk)))
            args = q, k, v, empty(heads, Lq, D, dtype=dtype), empty(heads, Lq)
            kernel = attention.attention.specialize(D=D, CAUSAL=causal, dtype=name)
            yield f"attention {name} {D} {causal} {heads} {Lq} {Lk}", kernel, args, 2e-3


def job(index: int) -> tuple[str, str]:
    name, kernel, args, near = list(cases())[index]
    written = [i for i, a in enumerate(args) if isinstance(a, np.ndarray) and np.isnan(a).all()]
    try:
        device = tirx.cuda(0)
        there = [tirx.runtime.tensor(a, device) if isinstance(a, np.ndarray) else a for a in args]
        tirx.compile(kernel, target="cuda:sm_90a")(*there)
        here = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        tirx.compile(kernel, target="cpu")(*here, numerics="hardware")
        for i in written:
            want, got = there[i].numpy(), here[i]
            if near == 0:
                size = want.itemsize
                apart = want.view(f"u{size}") != got.view(f"u{size}")
                if apart.any():
                    at = tuple(int(x[0]) for x in np.nonzero(apart))
                    return name, f"{apart.sum()} of {apart.size} differ, first at {at}: {got[at]!r}, H200 {want[at]!r}"
            else:
                want, got = want.astype("f8"), got.astype("f8")
                error = np.linalg.norm(np.where(want == got, 0, got - want)) / np.linalg.norm(want[np.isfinite(want)])
                if not error <= near:
                    return name, f"relative difference {error:.2e}, allowed {near:.0e}"
                if i == written[-1]:
                    return name, f"near: {error:.1e}"
        return name, "equal"
    except Exception as e:
        return name, f"{type(e).__name__}: {str(e)[:500]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=14)
    options = parser.parse_args()
    start = time.time()
    names = [c[0] for c in cases()]
    todo = [i for i, n in enumerate(names) if options.only in n]
    bad = 0
    with concurrent.futures.ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn")) as pool:
        for name, text in pool.map(job, reversed(todo)):
            print(f"{name}: {text}", flush=True)
            bad += text != "equal" and not text.startswith("near")
    print(f"{len(todo)} runs of examples, {bad} differ, {time.time() - start:.0f} s")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
