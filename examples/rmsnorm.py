# SPDX-License-Identifier: Apache-2.0
"""RMSNorm over the rows of a matrix: y = x * w / sqrt(mean(x ** 2) + eps), each element read once and written once.

A block holds a row in registers, PIECES vectors of 16 bytes a thread: squares are added up thread by thread, then over
the warp (`T.cuda.warp_sum`), then over the warps through shared memory with one barrier; then the registers are scaled
and stored. The sum is kept in float32 whatever the dtype of the tensors.

There is a block for each row, see softmax.py. The weights are the same for all rows, so they come from a cache, and
soon enough when they are asked for behind the barrier.

    python examples/rmsnorm.py                     runs on a GPU if there is one, else on the emulator
"""

from __future__ import annotations

import numpy as np
from quickstart import place
from softmax import two_vectors_each

import tirx
from tirx.script import tirx as T


@T.inline
def load_row(registers, tensor, row, tid, N, VEC, PIECES, THREADS):
    for p in T.unroll(PIECES):
        c: T.let = (p * THREADS + tid) * VEC
        if c < N:
            for i in T.vectorized(VEC):
                registers[p * VEC + i] = tensor[row, c + i]


@T.jit
def rmsnorm(
    x: T.handle,
    w: T.handle,
    y: T.handle,
    eps: T.float32,
    *,
    N: T.constexpr,
    dtype: T.constexpr = "bfloat16",
    THREADS: T.constexpr = None,
):
    rows = T.int32()
    X = T.match_buffer(x, (rows, N), dtype, align=16)
    W = T.match_buffer(w, (1, N), dtype, align=16)
    Y = T.match_buffer(y, (rows, N), dtype, align=16)
    VEC = T.meta_var(4 if dtype == "float32" else 8)
    THREADS = T.meta_var(THREADS or two_vectors_each(N, VEC))
    PIECES = T.meta_var(-(-N // (VEC * THREADS)))
    WARPS = T.meta_var(THREADS // 32)
    T.device_entry()
    row = T.cta_id([rows])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])
    v = T.alloc_local((PIECES * VEC,), dtype)
    weight = T.alloc_local((PIECES * VEC,), dtype)
    scratch = T.alloc_shared((WARPS,), "float32")
    for i in T.unroll(PIECES * VEC):  # what lies behind the end of the row stays 0
        v[i] = T.cast(0, dtype)
    load_row(v, X, row, tid, N, VEC, PIECES, THREADS)
    total: T.float32 = 0.0
    for i in T.unroll(PIECES * VEC):
        total += T.cast(v[i], "float32") * T.cast(v[i], "float32")
    total = T.cuda.warp_sum(total)
    if lane == 0:
        scratch[warp] = total
    T.cuda.cta_sync()
    load_row(weight, W, 0, tid, N, VEC, PIECES, THREADS)
    total = T.cuda.warp_sum(scratch[lane % WARPS], WARPS)
    factor: T.float32 = T.rsqrt(total * (1.0 / N) + eps)
    for p in T.unroll(PIECES):
        c: T.let = (p * THREADS + tid) * VEC
        if c < N:
            for i in T.vectorized(VEC):
                Y[row, c + i] = T.cast(
                    T.cast(v[p * VEC + i], "float32") * factor * T.cast(weight[p * VEC + i], "float32"),
                    dtype,
                )


def reference(x: np.ndarray, w: np.ndarray, eps: float) -> np.ndarray:
    x = x.astype("float64")
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * w.astype("float64")


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    for dtype, rows, N, threads in [("float32", 5, 1000, 128), ("float16", 7, 2048, None), ("float32", 2, 36, None)]:
        exe = tirx.compile(rmsnorm.specialize(N=N, dtype=dtype, THREADS=threads), target=target)
        x = rng.standard_normal((rows, N)).astype(dtype)
        w = rng.standard_normal((1, N)).astype(dtype)
        y = put(np.full((rows, N), np.nan, dtype))
        exe(put(x), put(w), y, 1e-5)
        want, got = reference(x, w, 1e-5), get(y).astype("float64")
        bound = {"float32": 1e-6, "float16": 1e-3}[dtype]
        assert np.linalg.norm(got - want) < bound * np.linalg.norm(want), (dtype, N)
        print(f"RMSNorm over {rows} rows of {N} {dtype} on {name}: right.")


if __name__ == "__main__":
    main()
