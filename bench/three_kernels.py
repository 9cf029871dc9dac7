# SPDX-License-Identifier: Apache-2.0
"""The three kernels of the tables, each in a second shape and a second dtype, with arguments and NumPy references.

Not a script: the others import it. `hand` is the header-free CUDA text that a person would write for the same kernel.
"""

from __future__ import annotations

import numpy as np

from tirx.script import tirx as T


def vector_add(n=1 << 22, dtype="float32", block=256):
    @T.prim_func
    def add(A: T.Buffer((n,), dtype), B: T.Buffer((n,), dtype), C: T.Buffer((n,), dtype)):
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, block)])
        tx = T.thread_id([block])
        i: T.let = bx * block + tx
        if i < n:
            C[i] = A[i] + B[i]

    return add


def matmul(m=256, n=256, k=256, dtype="float32"):
    """C = A B in 32 x 32 tiles of shared memory; 32 x 8 threads with 4 accumulators each."""

    @T.prim_func
    def matmul(A: T.Buffer((m, k), dtype), B: T.Buffer((k, n), dtype), C: T.Buffer((m, n), dtype)):
        T.device_entry()
        bx, by = T.cta_id([n // 32, m // 32])
        tx, ty = T.thread_id([32, 8])
        As = T.alloc_shared((32, 32), dtype)
        Bs = T.alloc_shared((32, 32), dtype)
        acc = T.alloc_local((4,), dtype)
        for j in T.unroll(4):
            acc[j] = T.cast(0, dtype)
        for kt in range(k // 32):
            for j in T.unroll(4):
                As[ty + 8 * j, tx] = A[by * 32 + ty + 8 * j, kt * 32 + tx]
                Bs[ty + 8 * j, tx] = B[kt * 32 + ty + 8 * j, bx * 32 + tx]
            T.cuda.cta_sync()
            for kk in range(32):
                for j in T.unroll(4):
                    acc[j] = acc[j] + As[ty + 8 * j, kk] * Bs[kk, tx]
            T.cuda.cta_sync()
        for j in T.unroll(4):
            C[by * 32 + ty + 8 * j, bx * 32 + tx] = acc[j]

    return matmul


def softmax(rows=512, cols=1024, dtype="float32"):
    """One warp a row: maximum and sum by shuffles; arithmetic in float32."""
    per = cols // 32

    @T.prim_func
    def softmax(A: T.Buffer((rows, cols), dtype), B: T.Buffer((rows, cols), dtype)):
        T.device_entry()
        row = T.cta_id([rows])
        lane = T.thread_id([32])
        v = T.alloc_local((per,), "float32")
        top: T.float32 = T.float32("-inf")
        for j in range(per):
            v[j] = T.cast(A[row, j * 32 + lane], "float32")
            top = T.max(top, v[j])
        d: T.int32 = 16
        while d >= 1:
            top = T.max(top, T.tvm_warp_shuffle_xor(0xFFFFFFFF, top, d, 32, 32))
            d = d // 2
        total: T.float32 = 0.0
        for j in range(per):
            v[j] = T.exp(v[j] - top)
            total = total + v[j]
        d = 16
        while d >= 1:
            total = total + T.tvm_warp_shuffle_xor(0xFFFFFFFF, total, d, 32, 32)
            d = d // 2
        for j in range(per):
            B[row, j * 32 + lane] = T.cast(v[j] / total, dtype)

    return softmax


def softmax_numpy(a, out):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    np.divide(e, e.sum(axis=1, keepdims=True), out=out)


def rng(dtype, *shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32).astype(dtype)


# name, factory, arguments, NumPy's way, work a call, rate, relative tolerance
CASES = [
    (
        "vector add, 2^22 float32",
        lambda: vector_add(),
        lambda: (*(rng("float32", 1 << 22) for _ in "ab"), np.zeros(1 << 22, "float32")),
        lambda a, b, c: np.add(a, b, out=c),
        1 << 22,
        "Melem/s",
        0,
    ),
    (
        "vector add, 3,000,001 int32",
        lambda: vector_add(3_000_001, "int32", 128),
        lambda: (*(np.arange(3_000_001, dtype="int32") * k for k in (1, 7)), np.zeros(3_000_001, "int32")),
        lambda a, b, c: np.add(a, b, out=c),
        3_000_001,
        "Melem/s",
        0,
    ),
    (
        "matmul, 256^3 float32",
        lambda: matmul(),
        lambda: (rng("float32", 256, 256), rng("float32", 256, 256), np.zeros((256, 256), "float32")),
        lambda a, b, c: np.matmul(a, b, out=c),
        2 * 256**3,
        "MFLOP/s",
        1e-3,
    ),
    (
        "matmul, 128 x 192 x 320 float64",
        lambda: matmul(128, 192, 320, "float64"),
        lambda: (rng("float64", 128, 320), rng("float64", 320, 192), np.zeros((128, 192))),
        lambda a, b, c: np.matmul(a, b, out=c),
        2 * 128 * 192 * 320,
        "MFLOP/s",
        1e-9,
    ),
    (
        "softmax, 512 x 1024 float32",
        lambda: softmax(),
        lambda: (rng("float32", 512, 1024), np.zeros((512, 1024), "float32")),
        softmax_numpy,
        512 * 1024,
        "Melem/s",
        1e-4,
    ),
    (
        "softmax, 300 x 2048 float16",
        lambda: softmax(300, 2048, "float16"),
        lambda: (rng("float16", 300, 2048), np.zeros((300, 2048), "float16")),
        softmax_numpy,
        300 * 2048,
        "Melem/s",
        2e-2,
    ),
]

HAND = {
    "vector add": """extern "C" __global__ void __launch_bounds__(256)
add(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C) {
  int i = (int)blockIdx.x * 256 + (int)threadIdx.x;
  if (i < 4194304) {
    C[i] = A[i] + B[i];
  }
}
""",
    "matmul": """extern "C" __global__ void __launch_bounds__(256)
matmul(float* __restrict__ A, float* __restrict__ B, float* __restrict__ C) {
  __shared__ alignas(16) float As[1024];
  __shared__ alignas(16) float Bs[1024];
  float acc[4];
  int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  acc[0] = 0.0f; acc[1] = 0.0f; acc[2] = 0.0f; acc[3] = 0.0f;
  for (int kt = 0; kt < 8; ++kt) {
    As[ty * 32 + tx] = A[(by * 32 + ty) * 256 + kt * 32 + tx];
    Bs[ty * 32 + tx] = B[(kt * 32 + ty) * 256 + bx * 32 + tx];
    As[(ty + 8) * 32 + tx] = A[(by * 32 + ty + 8) * 256 + kt * 32 + tx];
    Bs[(ty + 8) * 32 + tx] = B[(kt * 32 + ty + 8) * 256 + bx * 32 + tx];
    As[(ty + 16) * 32 + tx] = A[(by * 32 + ty + 16) * 256 + kt * 32 + tx];
    Bs[(ty + 16) * 32 + tx] = B[(kt * 32 + ty + 16) * 256 + bx * 32 + tx];
    As[(ty + 24) * 32 + tx] = A[(by * 32 + ty + 24) * 256 + kt * 32 + tx];
    Bs[(ty + 24) * 32 + tx] = B[(kt * 32 + ty + 24) * 256 + bx * 32 + tx];
    __syncthreads();
    for (int kk = 0; kk < 32; ++kk) {
      acc[0] = fmaf(As[ty * 32 + kk], Bs[kk * 32 + tx], acc[0]);
      acc[1] = fmaf(As[(ty + 8) * 32 + kk], Bs[kk * 32 + tx], acc[1]);
      acc[2] = fmaf(As[(ty + 16) * 32 + kk], Bs[kk * 32 + tx], acc[2]);
      acc[3] = fmaf(As[(ty + 24) * 32 + kk], Bs[kk * 32 + tx], acc[3]);
    }
    __syncthreads();
  }
  C[(by * 32 + ty) * 256 + bx * 32 + tx] = acc[0];
  C[(by * 32 + ty + 8) * 256 + bx * 32 + tx] = acc[1];
  C[(by * 32 + ty + 16) * 256 + bx * 32 + tx] = acc[2];
  C[(by * 32 + ty + 24) * 256 + bx * 32 + tx] = acc[3];
}
""",
    "softmax": """extern "C" __global__ void __launch_bounds__(32)
softmax(float* __restrict__ A, float* __restrict__ B) {
  float v[32];
  int row = blockIdx.x, lane = threadIdx.x;
  float top = __int_as_float(0xff800000);
  for (int j = 0; j < 32; ++j) {
    v[j] = A[row * 1024 + j * 32 + lane];
    top = fmaxf(top, v[j]);
  }
  int d = 16;
#pragma unroll 1
  while (d >= 1) {
    top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFF, top, d, 32));
    d = d >> 1;
  }
  float total = 0.0f;
  for (int j = 0; j < 32; ++j) {
    v[j] = expf(v[j] - top);
    total = total + v[j];
  }
  d = 16;
#pragma unroll 1
  while (d >= 1) {
    total = total + __shfl_xor_sync(0xFFFFFFFF, total, d, 32);
    d = d >> 1;
  }
  for (int j = 0; j < 32; ++j) {
    B[row * 1024 + j * 32 + lane] = v[j] / total;
  }
}
""",
}
