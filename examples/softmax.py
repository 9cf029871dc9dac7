# SPDX-License-Identifier: Apache-2.0
"""Softmax over the rows of a matrix, at the speed of memory: each element is read once and written once.

    y[i] = exp(x[i] - m) / sum over j of exp(x[j] - m),    m the largest element of the row

Textbook versions read a row three times: for m, for the sum, for the quotient. Here a block holds its row in registers,
PIECES vectors of 16 bytes a thread, and does everything there. What remains is two reductions over the block, and they
are made one: every warp finds its own maximum mw and its own sum of exp(x - mw), and the pair is exchanged once.

    m = max of all mw,    s = sum over warps of sw * exp(mw - m),    y = exp(x - mw) * (exp(mw - m) / s)

so each exponential is computed once, too. They are powers of two, as the hardware has those: exp(x - m) is
2 ** (x * log2(e) - m * log2(e)), one multiply-add and one instruction (T.ptx.exp2).

The exchange goes through shared memory: 8 bytes a warp, one barrier.

There is a block for each row, and no loop over rows: the GPU holds several blocks on an SM, some of which read while
others add up, wait or write, and a block that ends makes room for the next. On an H200 this was faster than blocks that
stay and walk over the rows, with the next row's loads in flight in registers or in a ring of shared memory, and no hint
to the caches helped (docs/benchmarks.md). A thread asks for two vectors or four.
THREADS is a power of two from 64 on.

Loads and stores are spelled as instructions here (in rmsnorm.py they are loops over vectors): 16 bytes at once, through
the read-only path. N must be a multiple of the elements of 16 bytes, and rows start at multiples of 16 bytes, which the
call checks. Elements behind the end of a row count as minus infinity, whose exponential is 0.

    python examples/softmax.py                     runs on a GPU if there is one, else on the emulator
"""

from __future__ import annotations

import math

import numpy as np
from quickstart import place

import tirx
from tirx.script import tirx as T

LOG2E = math.log2(math.e)
MINUS_INFINITY = {"float32": 0xFF800000, "bfloat16": 0xFF80FF80, "float16": 0xFC00FC00}  # in every element of 32 bits
PACK = {"bfloat16": "cvt.rn.bf16x2.f32", "float16": "cvt.rn.f16x2.f32"}


def two_vectors_each(N, VEC):
    """Threads of a block: a power of two, from 64 to 512, and 1024 where these would hold more than eight vectors."""
    return min(512 if N <= 512 * 8 * VEC else 1024, max(64, 1 << (N // (2 * VEC) - 1).bit_length()))


@T.jit
def softmax(
    x: T.handle,
    y: T.handle,
    *,
    N: T.constexpr,
    dtype: T.constexpr = "bfloat16",
    THREADS: T.constexpr = None,
):
    rows = T.int32()
    X = T.match_buffer(x, (rows, N), dtype, align=16)
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
    word = T.alloc_local((PIECES * 4,), "uint32")  # 16 bytes are four registers
    v = T.alloc_local((PIECES * VEC,), "float32")
    scratch = T.alloc_shared((WARPS, 2), "float32")

    for p in T.unroll(PIECES):
        c: T.let = (p * THREADS + tid) * VEC
        if c < N:
            T.ptx.ld.global_.nc.v4.b32(*word[p * 4 : p * 4 + 4], X.ptr_to([row, c]))
        else:
            for i in T.unroll(4):
                word[p * 4 + i] = T.uint32(MINUS_INFINITY[dtype])
    for i in T.unroll(PIECES * 4):
        if dtype == "float32":
            v[i] = T.reinterpret("float32", word[i])
        elif dtype == "bfloat16":  # the upper half of a float32
            v[2 * i] = T.reinterpret("float32", word[i] << 16)
            v[2 * i + 1] = T.reinterpret("float32", word[i] & T.uint32(0xFFFF0000))
        else:
            low: T.let = T.reinterpret("float16", T.cast(word[i] & T.uint32(0xFFFF), "uint16"))
            high: T.let = T.reinterpret("float16", T.cast(word[i] >> 16, "uint16"))
            v[2 * i] = T.cast(low, "float32")
            v[2 * i + 1] = T.cast(high, "float32")

    top: T.float32 = v[0]
    for i in T.unroll(1, PIECES * VEC):
        top = T.max(top, v[i])
    top = T.cuda.warp_max(top) * LOG2E
    # a warp that holds nothing but minus infinities must not subtract them from each other
    shift: T.float32 = T.if_then_else(top == -T.infinity("float32"), T.float32(0), top)
    total: T.float32 = 0.0
    for i in T.unroll(PIECES * VEC):
        v[i] = T.ptx.exp2(v[i] * LOG2E - shift)
        total += v[i]
    total = T.cuda.warp_sum(total)
    if lane == 0:
        scratch[warp, 0] = top
        scratch[warp, 1] = total
    T.cuda.cta_sync()
    theirs: T.let = scratch[lane % WARPS, 0]  # each lane looks at one warp, all lanes learn the result
    largest: T.float32 = T.cuda.warp_max(theirs, WARPS)
    total = T.cuda.warp_sum(scratch[lane % WARPS, 1] * T.ptx.exp2(theirs - largest), WARPS)
    factor: T.float32 = T.ptx.exp2(top - largest) / total

    for p in T.unroll(PIECES):
        c: T.let = (p * THREADS + tid) * VEC
        if c < N:
            for i in T.unroll(4):
                if dtype == "float32":
                    word[i] = T.reinterpret("uint32", v[p * 4 + i] * factor)
                else:
                    pair: T.let = p * 8 + 2 * i
                    T.ptx[PACK[dtype]](word[i], v[pair + 1] * factor, v[pair] * factor)
            T.ptx.st.global_.v4.b32(Y.ptr_to([row, c]), *word[0:4])


def reference(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype("float64") - x.max(axis=1, keepdims=True).astype("float64"))
    return e / e.sum(axis=1, keepdims=True)


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    for dtype, rows, N, threads in [("float32", 5, 1000, 128), ("float16", 3, 8192, None), ("float32", 2, 36, None)]:
        kernel = softmax.specialize(N=N, dtype=dtype, THREADS=threads)
        exe = tirx.compile(kernel, target=target)
        x = (rng.standard_normal((rows, N)) * 5).astype(dtype)
        x[0, 1:] = -np.inf  # nothing but one element,
        x[0, 0] = -3000  # far from 0
        y = put(np.full((rows, N), np.nan, dtype))
        exe(put(x), y)
        want, got = reference(x), get(y).astype("float64")
        bound = {"float32": 1e-6, "float16": 1e-3}[dtype]
        assert np.linalg.norm(got - want) < bound * np.linalg.norm(want), (dtype, N)
        print(f"Softmax over {rows} rows of {N} {dtype} on {name}: right.")


if __name__ == "__main__":
    main()
