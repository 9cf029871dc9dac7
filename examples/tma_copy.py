# SPDX-License-Identifier: Apache-2.0
"""Transposes a matrix with the copy engine (TMA): boxes in, boxes out, no thread computes a global address.

What a tensor map is. The copy engine moves boxes, not addresses. A kernel gives it a *tensor map*, 128 bytes that
describe a tensor in global memory (where it lies, its element type, its sizes and strides, the box that one copy
moves), and the coordinates of a box; one thread asks, and the engine does the address arithmetic, the bounds checks
and the copy. The map is made on the host, from the tensors of the call:

    A_map: T.let = T.tvm_stack_alloca("tensormap", 1)         room for it
    T.tensormap_encode_tiled(A_map, A, ...)                    filled at each call, checked before the driver sees it

and the kernel takes it by value. All lists of a map count from the innermost dimension: sizes (columns, rows), one
stride less than sizes (the innermost is contiguous) in bytes, the box, and steps between the elements of a box.

How the kernel knows that a box has come. An mbarrier in shared memory counts two things: arrivals of threads, here 1,
and bytes still to come. The thread that asks for the copy arrives and says how many bytes to expect; the engine takes
them off as they land, and when nothing is left the phase ends and every waiter goes on. The count is always that of
the full box, also at the edges of the tensor, where the engine fills in zeros.

    thread 0     init(1) - fence - arrive.expect_tx(bytes) - copy ........ wait
    the others   ------------------------------------------------------- wait

Why the tile is swizzled. A box of 64 x 64 two-byte elements has rows of 128 bytes, which is once round the 32 banks of
shared memory: reading down a column would hit the same bank again and again. With swizzle="128B" the engine permutes
the eight 16-byte pieces of a row by exclusive or with the row number, so that a column meets eight banks, not one.
Everything stays in its row of 128 bytes; whoever reads the tile has to do the same exclusive or. The row number is that
of the address in shared memory, which is why the tile starts at a multiple of 1024: then it is the row of the box.

The way out. Threads write the transposed tile into a second one, swizzled the same way. Threads and the copy engine
reach shared memory on different paths ("proxies"), so the writes are fenced before one thread asks for the store;
without the fence the engine may copy what stood there before. A store has no barrier: copies are gathered in groups,
and the thread waits for its group before the block ends, because the engine still reads the tile. At the edges the
engine leaves out what lies outside.

What the engine wants: addresses and strides that are multiples of 16 bytes (so rows and columns are multiples of 8
elements here), boxes of at most 256 elements along each dimension, a swizzled row of at most 128 bytes, a box at an
address in shared memory that is a multiple of 128 (1024 for this swizzle). What is not so is told in words, at the line
if it is a constant, else at the call.

    python examples/tma_copy.py                    runs on a GPU (of compute capability 9.0 on), else on the emulator
"""

from __future__ import annotations

import numpy as np
from quickstart import place

import tirx
from tirx.script import tirx as T


@T.jit
def transpose(a: T.handle, b: T.handle, *, dtype: T.constexpr = "float16", THREADS: T.constexpr = 256):
    M, N = T.int32(), T.int32()
    A = T.match_buffer(a, (M, N), dtype)
    B = T.match_buffer(b, (N, M), dtype)
    SIZE = T.meta_var(4 if dtype == "float32" else 2)
    TILE = T.meta_var(128 // SIZE)  # elements in a row of 128 bytes
    PIECE = T.meta_var(16 // SIZE)  # elements in 16 bytes
    A_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    #                              sizes  strides    box         steps
    T.tensormap_encode_tiled(
        *(A_map, A, N, M, N * SIZE, TILE, TILE, 1, 1), descriptor_dtype=dtype, rank=2, swizzle="128B"
    )
    T.tensormap_encode_tiled(
        *(B_map, B, M, N, M * SIZE, TILE, TILE, 1, 1), descriptor_dtype=dtype, rank=2, swizzle="128B"
    )

    T.device_entry()
    column, row = T.cta_id([T.ceildiv(N, TILE), T.ceildiv(M, TILE)])
    tid = T.thread_id([THREADS])
    tile = T.alloc_shared((TILE * TILE,), dtype, align=1024)
    turned = T.alloc_shared((TILE * TILE,), dtype, align=1024)
    come = T.alloc_shared((1,), "uint64")

    if tid == 0:
        T.ptx.mbarrier.init.shared.b64(come.ptr_to([0]), 1)
        T.ptx.fence.mbarrier_init.release.cluster()
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(come.ptr_to([0]), TILE * TILE * SIZE)
        T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
            tile.ptr_to([0]), T.address_of(A_map), column * TILE, row * TILE, come.ptr_to([0])
        )
    T.cuda.cta_sync()  # the barrier is there
    T.cuda.mbarrier_wait(come.ptr_to([0]), 0)

    for i in range(tid, TILE * TILE, THREADS):
        r: T.let = i % TILE  # neighbours read down a column and write along a row
        c: T.let = i // TILE
        turned[c * TILE + (r // PIECE ^ c % 8) * PIECE + r % PIECE] = tile[
            r * TILE + (c // PIECE ^ r % 8) * PIECE + c % PIECE
        ]
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    if tid == 0:
        T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](
            T.address_of(B_map), row * TILE, column * TILE, turned.ptr_to([0])
        )
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)


SHAPES = [(64, 64), (8, 8), (200, 72), (128, 1048)]


def main():
    target, name, put, get = place()
    rng = np.random.default_rng(0)
    for dtype in ("float16", "float32"):
        exe = tirx.compile(transpose.specialize(dtype=dtype), target=target)
        for m, n in SHAPES:
            a = rng.standard_normal((m, n)).astype(dtype)
            b = put(np.full((n, m), np.nan, dtype))
            exe(put(a), b)
            assert np.array_equal(get(b), a.T), f"{dtype} {m} x {n}: wrong"
            print(f"Transposed {m} x {n} {dtype} on {name}: right.")


if __name__ == "__main__":
    main()
