# SPDX-License-Identifier: Apache-2.0
"""The sum of all elements, in two kernels of one launch plan, the second of which starts before the first has ended.

`examples/sum.py` needs a ticket to learn which block is the last. With two kernels nobody asks: the first writes a
partial sum for each block, the second adds these up. What that costs is the pause between two kernels, in which the
GPU drains, launches and fills again: little beside a long kernel, much in a chain of short ones.

Programmatic dependent launch takes away a part of it, about 0.3 microseconds here. The second region says in its launch
configuration that it may overlap the one before it (`programmatic_stream_serialization=True`). Its blocks become
resident as soon as every block of the first kernel has executed `griddepcontrol.launch_dependents` (or ended): they set
themselves up, and stand at `griddepcontrol.wait` until the first kernel has ended and what it wrote is visible. Before
the wait a kernel may only touch what the earlier one does not write, and may not overwrite what the earlier one reads:
the emulator says so where it does.

    python examples/chained_sum.py                 runs on a GPU if there is one, else on the emulator
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
    CHAINED: T.constexpr = True,
    THREADS: T.constexpr = 256,
    BLOCKS: T.constexpr = 132 * 4,
):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32", align=16)
    OUT = T.match_buffer(out, (1,), "float32")
    PARTIAL = T.workspace(BLOCKS, "float32")
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=BLOCKS, block=THREADS)):
        block, tid = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
        scratch = T.alloc_shared((THREADS // 32,), "float32")
        loaded = T.alloc_local((4,), "float32")
        mine: T.float32 = 0.0
        for k in range(T.int64(block) * THREADS + tid, n // 4, BLOCKS * THREADS):
            for i in T.vectorized(4):
                loaded[i] = X[k * 4 + i]
            mine += loaded[0] + loaded[1] + (loaded[2] + loaded[3])
        T.ptx.griddepcontrol.launch_dependents()  # no more loads are to come: the next kernel may take its place
        mine = T.cuda.cta_sum(mine, THREADS // 32, scratch.data)
        if tid == 0:
            PARTIAL[block] = mine
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS, programmatic_stream_serialization=CHAINED)):
        lane = T.cuda.thread_idx("x")
        room = T.alloc_shared((THREADS // 32,), "float32")
        sum: T.float32 = 0.0
        if lane < n % 4:
            sum = X[n // 4 * 4 + lane]  # X is only read: it is there already
        T.ptx.griddepcontrol.wait()
        for k in range(lane, BLOCKS, THREADS):
            sum += PARTIAL[k]
        sum = T.cuda.cta_sum(sum, THREADS // 32, room.data)
        if lane == 0:
            OUT[0] = sum


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    small = {} if target == "cuda" else {"THREADS": 64, "BLOCKS": 4}
    sizes = (1, 1000, 65_537, 1 << 22) if target == "cuda" else (1, 1000, 4097)
    chained, plain = (tirx.compile(total.specialize(CHAINED=c, **small), target=target) for c in (True, False))
    for n in sizes:
        x = rng.standard_normal(n).astype("float32")
        out, other = put(np.full(1, np.nan, "float32")), put(np.full(1, np.nan, "float32"))
        chained(put(x), out)
        plain(put(x), other)
        assert abs(get(out)[0] - x.astype("float64").sum()) < 1e-6 * np.abs(x).sum() + 1e-6, n
        assert get(out)[0] == get(other)[0], "the overlap changed the result"
    print(f"Sums of {', '.join(map(str, sizes))} elements by two chained kernels on {name}: right.")


if __name__ == "__main__":
    main()
