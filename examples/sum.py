# SPDX-License-Identifier: Apache-2.0
"""The sum of all elements of a tensor, in one launch, the same bits every time.

Reading is all there is to do, so the kernel is a loop of loads: UNROLL loads of 16 bytes a thread are in flight before
the first is used, which with 8 blocks an SM is enough to keep the memory busy.

Each thread adds up in float32, each block reduces to one number (`T.cuda.cta_sum`). The blocks' numbers have to meet,
and there are three ways: atomic additions to the result (which must be cleared before, and whose order, so whose
rounding, changes from run to run), a second kernel, or, as here, the last block to finish adds them up. Who is last is
found with a ticket: each block writes its partial sum, makes it visible to the others (`T.cuda.thread_fence`), and
draws a number. The one that draws the highest knows that all partial sums are there; it adds them in a fixed order,
whoever it is, and puts the ticket back to 0 for the next call. Both are memory of the kernel's own, `T.workspace`,
which is 0 before the first call.

    python examples/sum.py                         runs on a GPU if there is one, else on the emulator
"""

from __future__ import annotations

import numpy as np
from quickstart import place

import tirx
from tirx.script import tirx as T


@T.jit
def total(
    x: T.handle,
    out: T.handle,
    *,
    dtype: T.constexpr = "float32",
    THREADS: T.constexpr = 256,
    BLOCKS: T.constexpr = 132 * 8,
    UNROLL: T.constexpr = 8,
):
    n = T.int64()
    X = T.match_buffer(x, (n,), dtype, align=16)
    OUT = T.match_buffer(out, (1,), "float32")
    PARTIAL = T.workspace(BLOCKS, "float32")
    TICKET = T.workspace(1, "uint32")
    VEC = T.meta_var(4 if dtype == "float32" else 8)
    STEP = T.meta_var(THREADS * VEC * UNROLL)  # elements that a block takes at once
    T.device_entry()
    block = T.cta_id([BLOCKS])
    tid = T.thread_id([THREADS])
    loaded = T.alloc_local((UNROLL * VEC,), dtype)
    scratch = T.alloc_shared((THREADS // 32,), "float32")
    last = T.alloc_shared((1,), "uint32")
    sums = T.alloc_local((VEC,), "float32")
    for i in T.unroll(VEC):
        sums[i] = 0.0
    whole: T.int64 = n // STEP * STEP
    for base in range(T.int64(block) * STEP, whole, BLOCKS * STEP):
        for u in T.unroll(UNROLL):
            for i in T.vectorized(VEC):
                loaded[u * VEC + i] = X[base + (u * THREADS + tid) * VEC + i]
        for u in T.unroll(UNROLL):
            for i in T.unroll(VEC):
                sums[i] += T.cast(loaded[u * VEC + i], "float32")
    for k in range(whole + block * THREADS + tid, n, BLOCKS * THREADS):  # the rest, one by one
        sums[0] += T.cast(X[k], "float32")
    mine: T.float32 = 0.0
    for i in T.unroll(VEC):
        mine += sums[i]
    mine = T.cuda.cta_sum(mine, THREADS // 32, scratch.data)
    if tid == 0:
        PARTIAL[block] = mine
        T.cuda.thread_fence()
        last[0] = T.cuda.atomic_add(TICKET.ptr_to([0]), T.uint32(1))
    T.cuda.cta_sync()
    if last[0] == BLOCKS - 1:
        T.cuda.thread_fence()
        mine = 0.0
        for k in range(tid, BLOCKS, THREADS):
            part: T.float32
            T.ptx.ld.volatile.global_.f32(part, PARTIAL.ptr_to([k]))
            mine += part
        mine = T.cuda.cta_sum(mine, THREADS // 32, scratch.data)
        if tid == 0:
            OUT[0] = mine
            TICKET[0] = T.uint32(0)


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    exe = tirx.compile(total.specialize(THREADS=64, BLOCKS=4, UNROLL=2), target=target)
    for n in (1, 1000, 65_537):
        x = rng.standard_normal(n).astype("float32")
        out = put(np.full(1, np.nan, "float32"))
        exe(put(x), out)
        first = get(out)[0]
        assert abs(first - x.astype("float64").sum()) < 1e-6 * np.abs(x).sum(), n
        exe(put(x), out)
        assert get(out)[0] == first, "a second run gave other bits"
    print(f"Sums of 1, 1000 and 65537 elements on {name}: right, and the same twice.")


if __name__ == "__main__":
    main()
