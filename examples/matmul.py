# SPDX-License-Identifier: Apache-2.0
"""C = A @ B in float32 without tensor cores: tiles in shared memory, and in registers. Any sizes.

A GPU can multiply about twenty numbers in the time in which it loads one from memory, so what decides is how often a
number that was loaded is used:

    a block computes BM x BN elements of C. It walks along K in steps of BK; in each step its threads together copy a
    BM x BK tile of A and a BK x BN tile of B into shared memory, where each number is used BN or BM times
    a thread computes TM x TN of them, in registers. For each k it reads TM numbers of A and TN of B from shared memory
    and makes TM * TN multiplications: 8 loads, 16 multiplications for 4 x 4

Two barriers a step: one when the tiles are complete, before anybody reads them; one when all have read, before the
next tiles overwrite them. Leave out either and the emulator says which two threads race, and where.

A's tile is stored with its axes exchanged (k first), so that the threads of a warp read neighbouring words and the four
values of a thread are one 16-byte load; the padding of 4 keeps the writes of that exchange from hitting one bank.

Edges: loads outside A and B give 0, which adds nothing, and stores outside C are left out. The tile sizes are
compile-time parameters of the `T.jit` kernel, the matrix sizes come with the tensors of each call.

    python examples/matmul.py                      runs on a GPU if there is one, else on the emulator

For the tensor cores see hopper_gemm.py.
"""

from __future__ import annotations

import numpy as np
from quickstart import place

import tirx
from tirx.script import tirx as T


@T.jit
def matmul(
    a: T.handle,
    b: T.handle,
    c: T.handle,
    *,
    BM: T.constexpr = 64,
    BN: T.constexpr = 64,
    BK: T.constexpr = 16,
    TM: T.constexpr = 4,
    TN: T.constexpr = 4,
):
    M, N, K = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (M, K), "float32")
    B = T.match_buffer(b, (K, N), "float32")
    C = T.match_buffer(c, (M, N), "float32")
    THREADS = T.meta_var(BM // TM * (BN // TN))
    T.device_entry()
    bn, bm = T.cta_id([T.ceildiv(N, BN), T.ceildiv(M, BM)])
    tid = T.thread_id([THREADS])
    A_tile = T.alloc_shared((BK, BM + 4), "float32")
    B_tile = T.alloc_shared((BK, BN), "float32")
    acc = T.alloc_local((TM, TN), "float32")
    left = T.alloc_local((TM,), "float32")
    right = T.alloc_local((TN,), "float32")
    row: T.let = tid // (BN // TN) * TM  # of the first element of this thread in the tile
    column: T.let = tid % (BN // TN) * TN
    for i, j in T.grid(TM, TN):
        acc[i, j] = 0.0

    for k0 in range(0, K, BK):
        for i in T.unroll(BM * BK // THREADS):
            e: T.let = i * THREADS + tid
            m: T.let = bm * BM + e // BK
            k: T.let = k0 + e % BK
            A_tile[e % BK, e // BK] = T.if_then_else(T.And(m < M, k < K), A[m, k], 0.0)
        for i in T.unroll(BK * BN // THREADS):
            e: T.let = i * THREADS + tid
            k: T.let = k0 + e // BN
            n: T.let = bn * BN + e % BN
            B_tile[e // BN, e % BN] = T.if_then_else(T.And(k < K, n < N), B[k, n], 0.0)
        T.cuda.cta_sync()
        for k in T.unroll(BK):
            for i in T.vectorized(TM):
                left[i] = A_tile[k, row + i]
            for j in T.vectorized(TN):
                right[j] = B_tile[k, column + j]
            for i in T.unroll(TM):
                for j in T.unroll(TN):
                    acc[i, j] += left[i] * right[j]
        T.cuda.cta_sync()

    for i in T.unroll(TM):
        for j in T.unroll(TN):
            if T.And(bm * BM + row + i < M, bn * BN + column + j < N):
                C[bm * BM + row + i, bn * BN + column + j] = acc[i, j]


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    kernels = {
        "64 x 64 x 16 tiles": matmul.specialize(),
        "32 x 64 x 8 tiles": matmul.specialize(BM=32, BN=64, BK=8, TM=2, TN=4),
    }
    for tiles, kernel in kernels.items():
        exe = tirx.compile(kernel, target=target)
        for M, N, K in [(64, 64, 64), (100, 70, 35), (1, 130, 3)]:
            x = rng.standard_normal((M, K)).astype("float32")
            y = rng.standard_normal((K, N)).astype("float32")
            c = put(np.full((M, N), np.nan, "float32"))
            exe(put(x), put(y), c)
            want = x.astype("float64") @ y.astype("float64")
            assert np.linalg.norm(get(c) - want) < 1e-6 * np.linalg.norm(want), (tiles, M, N, K)
        print(f"Products of three sizes on {name}, {tiles}: right.")


if __name__ == "__main__":
    main()
