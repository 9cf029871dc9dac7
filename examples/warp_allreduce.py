# SPDX-License-Identifier: Apache-2.0
"""All lanes of a warp learn the sum (or the largest, or the least) of what the lanes hold.

The 32 threads of a warp run together and can read each other's registers: `T.cuda.shfl_xor_sync(mask, x, m)` gives lane
l the value that lane l ^ m passed. With m = 16, 8, 4, 2, 1 every lane has met every other after five steps:

    step m = 16    lane l holds the sum of lanes l and l ^ 16
    step m = 8     ... of the four lanes that differ from l in bits 3 and 4
    ...
    step m = 1     ... of all 32

This is an all-reduce: no lane is special, and nobody has to send the result back. Since floating-point addition is
commutative, lanes l and l ^ m add the same two numbers, so all lanes get the same bits. Sums over groups of 2, 4, 8 or
16 lanes are the same loop with fewer steps: that is the parameter WIDTH. No shared memory and no barrier are needed.

`T.cuda.warp_sum(x, width)` is this loop as a part of the language; the kernel below writes it out. Reductions of whole
blocks begin with it: see softmax.py.

The parameters of a `T.jit` kernel behind the `*` are chosen when the kernel is compiled. OP is a string there, and the
`if` on it is Python's: only the line of the chosen operation exists in the compiled kernel.

    python examples/warp_allreduce.py              runs on a GPU if there is one, else on the emulator
"""

from __future__ import annotations

import numpy as np
from quickstart import place

import tirx
from tirx.script import tirx as T

WARPS = 4  # of a block


@T.inline
def all_reduce(x, op, width):
    """Leaves in x the reduction over the group of `width` lanes that this lane belongs to."""
    for m in [16, 8, 4, 2, 1]:
        if m < width:
            other: T.let = T.cuda.shfl_xor_sync(0xFFFFFFFF, x, m)
            if op == "sum":
                x = x + other
            elif op == "max":
                x = T.max(x, other)
            else:
                x = T.min(x, other)


@T.jit
def reduce_lanes(a: T.handle, b: T.handle, *, OP: T.constexpr, WIDTH: T.constexpr = 32):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    block = T.cta_id([T.ceildiv(n, WARPS * 32)])
    thread = T.thread_id([WARPS * 32])
    i: T.let = block * (WARPS * 32) + thread
    x: T.float32 = 0.0
    if i < n:
        x = A[i]
    all_reduce(x, OP, WIDTH)  # all 32 lanes take part, also those beyond the end
    if i < n:
        B[i] = x


def main():
    target, name, put, get = place()
    x = np.random.default_rng(0).standard_normal(4096).astype("float32")
    for op, reference in (("sum", np.sum), ("max", np.max), ("min", np.min)):
        for width in (2, 8, 32):
            exe = tirx.compile(reduce_lanes.specialize(OP=op, WIDTH=width), target=target)
            a, b = put(x), put(np.full_like(x, np.nan))
            exe(a, b)
            want = np.repeat(reference(x.astype("float64").reshape(-1, width), axis=1), width)
            np.testing.assert_allclose(get(b), want, rtol=0, atol=1e-5)
    print(f"All-reduce over 2, 8 and 32 lanes on {name}: sums, maxima and minima are right.")


if __name__ == "__main__":
    main()
