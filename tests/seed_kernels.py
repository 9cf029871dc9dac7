# SPDX-License-Identifier: Apache-2.0
"""The kernels of the documents that the language began from, as a user writes them. Bodies that a document leaves out
("...") are those that its text describes. SEEDS: name -> Seed(make, args, want, ...)."""

from __future__ import annotations

import dataclasses
import typing

import numpy as np

import tirx
from tirx.script import tirx as T


@dataclasses.dataclass
class Seed:
    make: typing.Callable  # () -> kernel
    args: typing.Callable  # (n) -> fresh arguments
    want: typing.Callable  # (*args) -> {argument number: expected contents}
    sizes: tuple = (256,)
    text: tuple = ()  # lines that the CUDA text must hold, as the documents show them
    launch: int = 80  # least architecture that it can be launched on
    externs: dict | None = None


SEEDS: dict[str, Seed] = {}


def seed(**fields):
    def register(make):
        SEEDS[make.__name__] = Seed(make, **fields)
        return make

    return register


def floats(n, *more):
    return np.random.default_rng(n).standard_normal((n, *more)).astype(np.float32)


# ---- defining a function -------------------------------------------------------------------------------------------


@seed(args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a})
def match_buffer_with_alignment():
    @T.prim_func
    def f(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (256,), "float32", align=16)
        B = T.match_buffer(B_ptr, (256,), "float32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        B[tx] = A[tx]

    return f


@seed(args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a})
def buffer_annotation():
    @T.prim_func
    def f(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        B[tx] = A[tx]

    return f


@seed(args=lambda n: (floats(n), np.zeros(n, np.float32), 3.0), want=lambda a, b, s: {1: a * np.float32(s)})
def scal():
    @T.prim_func
    def scal(A_ptr: T.handle, B_ptr: T.handle, s: T.float32):
        A = T.match_buffer(A_ptr, (256,), "float32")
        B = T.match_buffer(B_ptr, (256,), "float32")
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])  # fmt: skip
        B[tx] = A[tx] * s

    return scal


@seed(
    sizes=(100, 200),
    args=lambda n: (floats(n), np.zeros(n, np.float32)),
    want=lambda a, b: {1: a * 2},
    text=(
        "scale_dyn_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, int n) {",
        "  for (int i = 0; i < n; ++i) {",
        "    B_ptr[i] = A_ptr[i] * 2.0f;",
    ),
)
def scale_dyn():
    @T.prim_func
    def scale_dyn(a: T.handle, b: T.handle):
        n = T.int32()  # free symbolic extent  # fmt: skip
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        T.device_entry()
        bx = T.cta_id([1]); tx = T.thread_id([1])  # fmt: skip
        for i in range(n):  # loop / launch bounds may use n  # fmt: skip
            B[i] = A[i] * T.float32(2.0)

    return scale_dyn


@T.jit
def add(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32"),
        C: T.Buffer((N,), "float32"), *, N: T.constexpr):  # fmt: skip
    T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([N])  # fmt: skip
    C[tx] = A[tx] + B[tx]


@seed(args=lambda n: (floats(n), floats(n) + 1, np.zeros(n, np.float32)), want=lambda a, b, c: {2: a + b})
def jit_add():
    return add.specialize(N=256)


@seed(
    args=lambda n: (np.zeros((6, 5, 128, 4), np.int32),),
    want=lambda a: {0: coordinates()},
    text=("__launch_bounds__(128)",),
)
def scope_ids():
    GM, GN = 6, 5

    @T.prim_func
    def ids(A: T.Buffer((6, 5, 128, 4), "int32")):
        T.device_entry()
        bx, by = T.cta_id([GM, GN])  # blockIdx.x / .y  (grid extents)  # fmt: skip
        warp_id = T.warp_id([4])  # cta -> warp  # fmt: skip
        lane_id = T.lane_id([32])  # warp -> thread  # fmt: skip
        tx = T.thread_id([128])  # cta -> flat thread id  # fmt: skip
        A[bx, by, tx, 0] = bx
        A[bx, by, tx, 1] = by
        A[bx, by, tx, 2] = warp_id
        A[bx, by, tx, 3] = lane_id

    return ids


def coordinates():
    g = np.indices((6, 5, 128)).astype(np.int32)
    return np.stack([g[0], g[1], g[2] // 32, g[2] % 32], axis=-1)


@seed(
    launch=90,
    args=lambda n: (np.zeros((8, 2), np.int32),),
    want=lambda a: {0: np.stack([np.arange(8) // 2, np.arange(8) % 2], axis=-1).astype(np.int32)},
)
def cluster_ids():
    NUM_CLUSTERS, CLUSTER_SIZE = 4, 2

    @T.prim_func
    def clusters(A: T.Buffer((8, 2), "int32")):
        T.device_entry()
        cid  = T.cluster_id([NUM_CLUSTERS])  # kernel -> cluster (grid of clusters)  # fmt: skip
        rank = T.cta_id_in_cluster(
            [CLUSTER_SIZE],  # cluster -> cta  # fmt: skip
            preferred=[CLUSTER_SIZE],
        )
        tx = T.thread_id([32])
        if tx == 0:
            A[cid * CLUSTER_SIZE + rank, 0] = cid
            A[cid * CLUSTER_SIZE + rank, 1] = rank

    return clusters


@seed(
    args=lambda n: (floats(n), np.zeros(n, np.float32)),
    want=lambda a, b: {1: a * 2},
    text=('extern "C" __global__ void __launch_bounds__(256, 2) scale_kernel(',),
)
def min_blocks_per_sm():
    @T.prim_func
    def scale(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        T.device_entry()
        T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})  # second launch-bounds arg  # fmt: skip
        bx = T.cta_id([1]); tx = T.thread_id([256])  # fmt: skip
        B[tx] = A[tx] * T.float32(2.0)

    return scale


# ---- metaprogramming -----------------------------------------------------------------------------------------------


def make_add(dtype, value, block=128):
    n = T.dynamic("n")

    @T.function
    def add(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, block), block=block))
        i = T.cuda.block_idx("x") * block + T.cuda.thread_idx("x")
        if i < n:
            B[i] = A[i] + dtype(value)

    return add


@seed(
    sizes=(10, 1000),
    args=lambda n: (np.arange(n).astype(np.float16), np.zeros(n, np.float16)),
    want=lambda a, b: {1: a + np.float16(2)},
)
def add_two_f16():
    return make_add(T.float16, 2)


@seed(sizes=(10, 1000), args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a + np.float32(1)})
def add_one_f32():
    return make_add(T.float32, 1)


@T.inline
def add_one_if_valid(A, B, i, n):
    if i < n:
        B[i] = A[i] + 1


@seed(sizes=(1, 511, 512, 1025), args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a + 1})
def add_one_pairs():
    n = T.dynamic("n")

    @T.function
    def add_one_pairs(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 512), block=256))
        i = (T.cuda.block_idx("x") * 256 + T.cuda.thread_idx("x")) * 2
        add_one_if_valid(A, B, i, n)
        add_one_if_valid(A, B, i + 1, n)

    return add_one_pairs


@seed(sizes=(1, 511, 512, 1025), args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a + 1})
def add_one_pairs_expanded():
    n = T.dynamic("n")

    @T.function
    def add_one_pairs(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 512), block=256))
        i = (T.cuda.block_idx("x") * 256 + T.cuda.thread_idx("x")) * 2
        if i < n:
            B[i] = A[i] + 1
        if i + 1 < n:
            B[i + 1] = A[i + 1] + 1

    return add_one_pairs


@T.jit
def add_one(A: T.Tensor((N,), T.float32), B: T.Tensor((N,), T.float32), *, N: T.constexpr):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(N, 128), block=128))
    i = T.cuda.block_idx("x") * 128 + T.cuda.thread_idx("x")
    if i < N:
        B[i] = A[i] + 1


@seed(args=lambda n: (floats(n), np.zeros(n, np.float32)), want=lambda a, b: {1: a + 1})
def add_one_256():
    return add_one.specialize(N=256)


# ---- intrinsics ----------------------------------------------------------------------------------------------------


@seed(
    args=lambda n: (np.zeros(32, np.float32),),
    want=lambda a: {0: np.full(32, sum(range(32)), np.float32)},
    text=("v_ptr[0] = v_ptr[0] + __shfl_xor_sync(0xFFFFFFFF, v_ptr[0], i_ptr[0], 32);",),
)
def warp_reduce():
    @T.prim_func
    def warp_reduce(A_ptr: T.handle):
        A = T.match_buffer(A_ptr, (32,), "float32", align=16)
        T.device_entry()
        cta_id = T.cta_id([1]); warp_id = T.warp_id([1]); lane_id = T.lane_id([32])  # fmt: skip
        v = T.alloc_local((1,), "float32"); i = T.alloc_local((1,), "int32")  # fmt: skip
        v[0] = T.float32(31 - lane_id)
        i[0] = 16
        while i[0] >= 1:
            v[0] += T.tvm_warp_shuffle_xor(0xFFFFFFFF, v[0], i[0], 32, 32)
            i[0] = i[0] // 2
        A[lane_id] = v[0]

    return warp_reduce


SRC = r"""
__device__ __forceinline__ float my_relu(float x) { return x > 0.f ? x : 0.f; }
"""


@seed(
    args=lambda n: (floats(n), np.zeros(n, np.float32)),
    want=lambda a, b: {1: np.maximum(a, 0)},
    text=(SRC.strip(), "B_ptr[tx] = my_relu(A_ptr[tx]);"),
    externs={"my_relu": lambda x: np.maximum(x, 0)},
)
def injected_source():
    @T.prim_func
    def k(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (256,), "float32")
        B = T.match_buffer(B_ptr, (256,), "float32")
        T.device_entry(); bx = T.cta_id([1]); tx = T.thread_id([256])  # fmt: skip
        B[tx] = T.cuda.func_call("my_relu", A[tx], source_code=SRC, return_type="float32")

    return k


@seed(
    args=lambda n: (floats(n), np.zeros(1, np.float32)),
    want=lambda a, b: {1: a.astype(np.float64).sum(keepdims=True).astype(np.float32)},
    text=("__syncthreads();",),
)
def cta_sum():
    @T.prim_func
    def total(A: T.Buffer((256,), "float32"), B: T.Buffer((1,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        scratch = T.alloc_shared((8,), "float32")
        val: T.float32 = A[tx]
        T.cuda.cta_sync()  # block barrier (__syncthreads)  # fmt: skip
        s: T.float32 = T.cuda.cta_sum(val, 8, scratch.ptr_to([0]))  # block-level reduction  # fmt: skip
        if tx == 0:
            B[0] = s

    return total


@seed(
    args=lambda n: (np.arange(256, dtype=np.int32), np.zeros(256, np.int32)),
    want=lambda a, b: {1: a.reshape(2, 128)[:, ::-1].ravel()},
)
def warpgroup_barrier():
    @T.prim_func
    def groups(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        wg_id = T.warpgroup_id([2])
        t = T.thread_id_in_wg([128])
        sm = T.alloc_shared((2, 128), "int32")
        sm[wg_id, t] = A[wg_id * 128 + t]
        T.cuda.warp_sync()  # __syncwarp  # fmt: skip
        T.cuda.warpgroup_sync(wg_id + 8)  # warpgroup barrier  # fmt: skip
        B[wg_id * 128 + t] = sm[wg_id, 127 - t]

    return groups


def run(exe, seed: Seed, n: int, to_device=lambda x: x, to_host=np.asarray):
    """Run and compare; arrays go through to_device and come back through to_host."""
    args = seed.args(n)
    given = [to_device(a) if isinstance(a, np.ndarray) else a for a in args]
    exe(*given)
    for i, want in seed.want(*seed.args(n)).items():
        got = to_host(given[i])
        rtol = 1e-5 if got.dtype == np.float32 else 0
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


def compile_seed(name, target, **options):
    """As the documents do: through an IRModule and a Target."""
    return tirx.compile(
        tirx.IRModule({"main": SEEDS[name].make()}),
        target=tirx.Target(target),
        tir_pipeline="tirx",
        externs=SEEDS[name].externs if target == "cpu" else None,
        **options,
    )
