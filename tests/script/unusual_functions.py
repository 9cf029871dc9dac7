# SPDX-License-Identifier: Apache-2.0
"""Whole functions for test_unusual.py: name -> (text, arguments, what the last array among them holds afterwards)."""

from __future__ import annotations

import numpy as np


def i32(*shape):
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


def z(*shape):
    return np.zeros(shape, np.int32)


COPIED = i32(4, 8)
COPIED[1, 2:6] = COPIED[3, 0:4]
COPIED = COPIED.T.copy()

FUNCTIONS = {
    "kwonly": (
        """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), *, s: T.int32, B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id(8)
    B[tx] = A[tx] + s
""",
        [i32(8), 3, z(8)],
        i32(8) + 3,
    ),
    "posonly": (
        """
@T.function
def f(A: T.Tensor((8,), T.int32), /, B: T.Tensor(8, "int32")):
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=8)):
        B[T.cuda.thread_idx("x")] = A[T.cuda.thread_idx(axis="x")]
""",
        [i32(8), z(8)],
        i32(8),
    ),
    "sym n*2": (
        """
@T.prim_func
def f(A: T.Buffer(("n * 2",), "int32"), B: T.Buffer(("n",), "int32")):
    n = T.int32()
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 4)])
    tx = T.thread_id([4])
    i: T.let = bx * 4 + tx
    if i < n:
        B[i] = A[2 * i] + A[2 * i + 1]
""",
        [i32(10), z(5)],
        [1, 5, 9, 13, 17],
    ),
    "sym 3n+1 alone": (
        """
@T.prim_func
def f(A: T.Buffer(("3 * n + 1",), "int32"), B: T.Buffer((1,), "int32")):
    T.device_entry()
    tx = T.thread_id([1])
    B[0] = T.cast(n, "int32") + A[3 * n]
""",
        [i32(13), z(1)],
        [4 + 12],
    ),
    "shape expr of scalar": (
        """
@T.prim_func
def f(a: T.handle, b: T.handle, m: T.int32, k: T.int64):
    A = T.match_buffer(a, (m * T.int64(2), k), "int32")
    B = T.match_buffer(b, shape=k, dtype="int32")
    T.device_entry()
    tx = T.thread_id([1])
    for i in range(k):
        B[i] = 0
        for j in T.serial(m * 2):
            B[i] += A[j, i]
""",
        [i32(4, 3), z(3), 2, 3],
        i32(4, 3).sum(0),
    ),
    "strides sym": (
        """
@T.prim_func
def f(a: T.handle, B: T.Buffer((6,), "int32")):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "int32", strides=["s0", 1])
    T.device_entry()
    tx = T.thread_id([6])
    B[tx] = A[tx // 3, tx % 3] if tx < n * m else -1
""",
        [i32(4, 5)[:2, :3], z(6)],
        [0, 1, 2, 5, 6, 7],
    ),
    "scalars all": (
        """
@T.prim_func
def f(a: T.int8, b: T.uint8, c: T.int16, d: T.uint16, e: T.uint32, g: T.uint64, h: T.bool, i: T.float16,
      j: T.float64, k: T.bfloat16, B: T.Buffer((10,), "int32")):
    T.device_entry()
    tx = T.thread_id([1])
    for n, v in enumerate([a, b, c, d, e, g, h, i, j, k]):
        B[n] = T.cast(v, "int32")
""",
        [-1, 255, -300, 65535, 7, 8, True, 1.5, 2.5, 3.5, z(10)],
        [-1, 255, -300, 65535, 7, 8, 1, 1, 2, 3],
    ),
    "host let": (
        """
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), B: T.Buffer((4,), "int32")):
    n = T.int32()
    m: T.let = n * 2
    k = n + 1
    T.device_entry()
    bx = T.cta_id([m - n])
    tx = T.thread_id([4])
    if bx == n - 1:
        B[tx] = m * 100 + k
""",
        [i32(3), z(4)],
        [604] * 4,
    ),
    "host if": (
        """
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), B: T.Buffer((4,), "int32")):
    n = T.int32()
    if n > 2:
        with T.device_entry():
            tx = T.thread_id([4])
            B[tx] = n
    else:
        with T.device_entry():
            tx = T.thread_id([4])
            B[tx] = -n
""",
        [i32(3), z(4)],
        [3] * 4,
    ),
    "host loop": (
        """
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), B: T.Buffer((4,), "int32")):
    n = T.int32()
    for i in range(n, 0, -1):
        with T.device_entry():
            tx = T.thread_id([4])
            B[tx] = B[tx] * 10 + i
""",
        [i32(3), z(4)],
        [321] * 4,
    ),
    "two regions": (
        """
@T.function
def f(A: T.Tensor((8,), T.int32), B: T.Tensor((8,), T.int32)):
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=4)):
        i = T.cuda.block_idx("x") * 4 + T.cuda.thread_idx("x")
        A[i] = A[i] * 2
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=(1, 2, 2), block=(2, 1, 1))):
        i = (T.cuda.block_idx("z") * 2 + T.cuda.block_idx("y")) * 2 + T.cuda.thread_idx("x")
        B[7 - i] = A[i]
""",
        [i32(8), z(8)],
        i32(8)[::-1] * 2,
    ),
    "dynamic": (
        """
n = T.dynamic("n")
@T.function
def f(A: T.Tensor((n, 2), T.int32), B: T.Tensor((n,), T.int32)):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 2), block=2))
    i = T.cuda.block_idx("x") * 2 + T.cuda.thread_idx("x")
    if i < n:
        B[i] = A[i, 0] * A[i, 1]
""",
        [i32(3, 2), z(3)],
        [0, 6, 20],
    ),
    "mixed launch": (
        """
@T.function
def f(A: T.Tensor((8,), T.int32), B: T.Tensor((8,), T.int32)):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=4))
    bx = T.cta_id([2])
    tx = T.thread_id()
    B[bx * 4 + tx] = A[T.cuda.block_idx("x") * 4 + T.cuda.linear_thread_id()]
    B[bx * 4 + tx] += T.cuda.grid_dim("x") * 10 + T.cuda.block_dim("x") * 100
""",
        [i32(8), z(8)],
        i32(8) + 420,
    ),
    "scope ids": (
        """
@T.prim_func
def f(B: T.Buffer((256,), "int32")):
    T.device_entry()
    wg = T.warpgroup_id([2])
    w = T.warp_id_in_wg()
    l = T.lane_id()
    tx = T.thread_id()
    t2 = T.thread_id_in_wg([128])
    w2 = T.warp_id()
    B[tx] = ((wg * 4 + w) * 32 + l) + (t2 - tx % 128) + (w2 - tx // 32)
""",
        [z(256)],
        i32(256),
    ),
    "2d ids": (
        """
@T.prim_func
def f(B: T.Buffer((2, 3, 4, 8), "int32")):
    T.device_entry()
    bx, by = T.cta_id([2, 3])
    tx, ty = T.thread_id([4, 8])
    B[bx, by, tx, ty] = ((bx * 3 + by) * 4 + tx) * 8 + ty
""",
        [z(2, 3, 4, 8)],
        i32(2, 3, 4, 8),
    ),
    "launch_thread": (
        """
@T.prim_func
def f(B: T.Buffer((8,), "int32")):
    bx = T.launch_thread("blockIdx.x", 2)
    with T.launch_thread("threadIdx.x", 4) as tx:
        B[bx * 4 + tx] = bx * 4 + tx
""",
        [z(8)],
        i32(8),
    ),
    "thread_binding": (
        """
@T.prim_func
def f(B: T.Buffer((8,), "int32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(4, thread="threadIdx.x"):
            B[bx * 4 + tx] = bx * 4 + tx
""",
        [z(8)],
        i32(8),
    ),
    "early nested id": (
        """
@T.prim_func
def f(B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    if tx < 32:
        l = T.lane_id([32])
        B[tx] = l
    else:
        w = T.warp_id([2])
        B[tx] = w * 100
""",
        [z(64)],
        list(range(32)) + [100] * 32,
    ),
    "handle ptr": (
        """
@T.prim_func
def f(p: T.handle("int32", "global"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    A = T.decl_buffer((4,), "int32", data=p)
    q: T.let[T.handle("int32")] = T.ptr_byte_offset(p, 4, "int32")
    C = T.decl_buffer((3,), "int32", data=q)
    B[tx] = A[tx] + C[T.min(tx, 2)]
""",
        [i32(4), z(4)],
        [0 + 1, 1 + 2, 2 + 3, 3 + 3],
    ),
    "module": (
        """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def g(x: T.int32, y: T.float32) -> T.float32:
        z = x * 2
        if x > 2:
            return T.cast(z, "float32") + y
        for i in range(x):
            y = y + 1.0
        return y
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.device_entry()
        tx = T.thread_id([4])
        B[tx] = M.g(tx, A[tx]) * M.g(T.int32(1), T.float32(0.5))
""",
        [np.arange(4, dtype=np.float32), np.zeros(4, np.float32)],
        [0.0 * 1.5, 2 * 1.5, 4 * 1.5, 9 * 1.5],
    ),
    "alloc 2 shared dyn pool": (
        """
@T.prim_func
def f(B: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    pool = T.SMEMPool()
    a = pool.alloc((32,), "int32")
    b = pool.alloc((4, 8), "float32", align=128)
    pool.move_base_to(0)
    c = pool.alloc((8,), "int64")
    pool.commit()
    b[tx // 8, tx % 8] = tx
    T.cuda.cta_sync()
    B[tx] = T.cast(b[(31 - tx) // 8, (31 - tx) % 8], "int32")
""",
        [z(32)],
        i32(32)[::-1],
    ),
    "warp collectives": (
        """
@T.prim_func
def f(B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
    m = T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), tx % 3 == 0)
    r = T.cuda.warp_sum(tx)
    q = T.cuda.warp_max(T.cast(tx, "float32"))
    B[tx] = T.popcount(m) * 10000 + r + T.cast(q, "int32")
""",
        [z(64)],
        [11 * 10000 + 496 + 31] * 32 + [11 * 10000 + 496 + 1024 + 63] * 32,
    ),
    "cluster": (
        """
@T.prim_func
def f(B: T.Buffer((4,), "int32")):
    T.device_entry()
    cl = T.cluster_id([2])
    r = T.cta_id_in_cluster([2])
    bx = T.cta_id()
    tx = T.thread_id([1])
    if tx == 0:
        B[bx] = cl * 10 + r
""",
        [z(4)],
        [0, 1, 10, 11],
    ),
    "opt jit": (
        """
@T.prim_func
def f(B: T.Buffer((), "int32"), C: T.Buffer((1, 1), "int32")):
    T.device_entry()
    tx = T.thread_id([1])
    B[()] = 5
    C[0, 0] = B[()] + 1
""",
        [z(), z(1, 1)],
        [[6]],
    ),
    "f16 buf": (
        """
@T.prim_func
def f(A: T.Buffer((4,), T.float16), B: T.Buffer((4,), np.int32)):
    T.device_entry()
    tx = T.thread_id([4])
    v = A[tx] * A[tx]
    v += 1
    B[tx] = T.cast(v, np.int32) if v > T.float16(2) else T.int32(-1)
""",
        [np.arange(4, dtype=np.float16), z(4)],
        [-1, -1, 5, 10],
    ),
    "serial in vector store": (
        """
@T.prim_func
def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    for v in T.vectorized(4):
        B[tx * 4 + v] = A[tx * 4 + v] * 2 + v
""",
        [i32(32), z(32)],
        i32(32) * 2 + i32(32) % 4,
    ),
    "vec misaligned": (
        """
@T.prim_func
def f(A: T.Buffer((33,), "int32"), B: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    B[tx * 4:tx * 4 + 4] = A[tx * 4 + 1:tx * 4 + 5]
""",
        [i32(33), z(32)],
        i32(32) + 1,
    ),
    "copy slices": (
        """
@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((8, 4), "int32")):
    T.device_entry()
    tx = T.thread_id([1])
    L = T.alloc_local((4, 8), "int32")
    L[:, :] = A[:, :]
    L[1, 2:6] = A[3, 0:4]
    for i in range(8):
        B[i, 0:4] = 0
        for j in range(4):
            B[i, j] = L[j, i]
""",
        [i32(4, 8), z(8, 4)],
        COPIED,
    ),
    "printing names": (
        """
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    lambda_ = A[tx]
    T_1 = lambda_ + 1
    range_ = T_1 * 2
    A_1 = A
    int32 = range_ + A_1[tx]
    B[tx] = int32
""",
        [i32(4), z(4)],
        (i32(4) + 1) * 2 + i32(4),
    ),
    "shadow builtins": (
        """
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    max = A[tx]
    len = max + 1
    for range in T.serial(3):
        len += range
    B[tx] = len
""",
        [i32(4), z(4)],
        i32(4) + 4,
    ),
    "name T shadow loop var": (
        """
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4])
    x = 0
    for i in range(3):
        for i in range(2):
            x += i
        x += 10
    B[tx] = x
""",
        [i32(4), z(4)],
        [33] * 4,
    ),
    "int64 idx": (
        """
@T.prim_func
def f(A: T.Buffer((T.int64(4),), "int32"), B: T.Buffer((4,), "int32")):
    T.device_entry()
    tx = T.thread_id([4], dtype="uint32")
    B[tx] = A[T.cast(tx, "uint64")] + A[T.int8(1)]
""",
        [i32(4), z(4)],
        i32(4) + 1,
    ),
    "func_attr etc": (
        """
@T.prim_func(persistent=True)
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    T.func_attr({"global_symbol": "other", "tirx.noalias": True})
    T.device_entry()
    T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    B[tx] = A[tx]
""",
        [i32(4), z(4)],
        i32(4),
    ),
    "grid 0": (
        """
@T.prim_func
def f(A: T.Buffer(("n",), "int32"), B: T.Buffer((4,), "int32")):
    n = T.int32()
    T.device_entry()
    bx = T.cta_id([n])
    tx = T.thread_id([4])
    B[tx] = 1
""",
        [z(0), z(4)],
        [0] * 4,
    ),
    "unroll grid nested break": (
        """
@T.prim_func
def f(B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    for i in T.unroll(3):
        for j in T.unroll(4):
            if j > tx:
                break
            if i == 1:
                continue
            B[tx] += 1
""",
        [z(8)],
        [2 * min(t + 1, 4) for t in range(8)],
    ),
    "while cond load": (
        """
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    T.device_entry()
    tx = T.thread_id([8])
    i: T.int32 = tx
    while i < 8 and A[i] < 5:
        i += 1
    B[tx] = i
""",
        [i32(8), z(8)],
        [max(t, 5) for t in range(8)],
    ),
    "cell types": (
        """
@T.function
def f(A: T.Tensor((8,), T.int32), B: T.Tensor((8,), T.int32)):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=8))
    tx = T.cuda.thread_idx("x")
    x = 1
    y = x + tx
    x = y * 2.5
    if tx > 3:
        y = 100
    z = 0
    for i in range(3):
        z = z + y
        w = z
        if i == 1:
            x = x + 1
    B[tx] = T.cast(x, "int32") + z
""",
        [i32(8), z(8)],
        [int((1 + t) * 2.5 + 1) + 3 * (100 if t > 3 else 1 + t) for t in range(8)],
    ),
}
