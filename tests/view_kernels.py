# SPDX-License-Identifier: Apache-2.0
"""More of kernels.KERNELS: views, parts, pools and copies of regions."""

from __future__ import annotations

import numpy as np
from kernels import KERNELS, f32, i32, kernel, zeros

from tirx.script import tirx as T


@kernel(
    args=lambda r: (f32(r, 4, 64), zeros(np.float32, 64, 4), zeros(np.int32, 64)),
    want=lambda a, b, c: {1: a.T + 1, 2: a[0].view(np.int32)},
)
def views_of_shared_and_local():
    @T.prim_func
    def f(A: T.Buffer((4, 64), "float32"), B: T.Buffer((64, 4), "float32"), C: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        s = T.alloc_shared((256,), "float32")
        rows = s.view(4, 64)
        for i in range(4):
            rows[i, tx] = A[i, tx]
        T.cuda.cta_sync()
        turned = rows.permute(1, 0)
        bits = rows.view("int32")
        r = T.alloc_local((4,), "float32")
        square = r.view(2, 2)
        for i, j in T.grid(2, 2):
            square[i, j] = turned[tx, i * 2 + j] + 1.0
        flat = square.local()
        for i in range(4):
            B[tx, i] = flat[i]
        C[tx] = bits[0, tx]

    return f


def _parts(a, o):
    return {
        1: np.stack(
            [
                a[2, 4:8, ::4].ravel(),
                a[2:6, 1, 2:4].ravel(),
                a.reshape(8, 2, 4, 8)[3, :, 1, :4].ravel(),
                a[4:8, 2:4, 7:8].ravel(),
                a.reshape(2, 4, 64).transpose(1, 0, 2)[1, :, :4].ravel(),
                a.transpose(2, 0, 1)[5, :4, 6:8].ravel(),
            ]
        )
    }


@kernel(args=lambda r: (i32(r, 0, 99, 8, 8, 8), zeros(np.int32, 6, 8)), want=_parts)
def parts_of_a_tensor():
    @T.prim_func
    def f(A: T.Buffer((8, 8, 8), "int32"), O: T.Buffer((6, 8), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([8])
        a = A.sub[2, 4:8, ::4]
        b = A.sub[2:6, 1, 2:4]
        c = A.tile(1, (2, 4))[:, 1].sub[3, :, 0:4]
        d = A.chunk((2, 4, 8))[1, 1, 7]
        e = A.rearrange("(a b) c d -> b a (c d)", a=2).sub[1, :, 0:4]
        g = A.permute(2, 0, 1).sub[5, :4, 6:]
        O[0, tx] = a[tx // 2, tx % 2]
        O[1, tx] = b[tx // 2, tx % 2]
        O[2, tx] = c[tx // 4, tx % 4]
        O[3, tx] = d[tx // 2, tx % 2, 0]
        O[4, tx] = e[tx // 4, tx % 4]
        O[5, tx] = g[tx // 2, tx % 2]

    return f


@kernel(
    args=lambda r: (f32(r, 12, 4), zeros(np.float32, 48)),
    want=lambda a, b: {1: a.ravel() + np.tile(a[:, 2], 4) + a.ravel() + np.tile(a[:, 1], 4)},
)
def views_of_symbolic_sizes():
    @T.prim_func
    def f(a: T.handle, B: T.Buffer((48,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([48])
        V = A.view(n * 4)
        W = A.permute(1, 0)
        X = A.view(-1, 2)
        Y = A.sub[tx % n, 1:]
        if tx < n * 4:
            B[tx] = V[tx] + W[2, tx % n] + X[tx // 2, tx % 2] + Y[0]

    return f


@kernel(
    args=lambda r: (f32(r, 64), zeros(np.float32, 64), zeros(np.float32, 64)),
    want=lambda a, b, c: {1: a[::-1] + 2, 2: a * 3},
)
def parts_of_a_pool():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        pool = T.SMEMPool()
        flags = pool.alloc((3,), "uint8")
        a = pool.alloc((64,), "float32", align=128)
        h = pool.alloc((64,), "float16")
        if tx == 0:
            flags[2] = T.uint8(2)
        a[tx] = A[tx]
        h[tx] = T.float16(3)
        T.cuda.cta_sync()
        B[tx] = a[63 - tx] + flags[2]
        c = h[tx] * A[tx]
        T.cuda.cta_sync()
        pool.move_base_to(0)
        again = pool.alloc((64,), "float32")
        again[tx] = c
        C[tx] = again[tx]
        pool.commit()

    return f


def _copies(a, b, n):
    w = np.zeros((6, 96), np.float32)
    w[0], w[1], w[3], w[4], w[5] = a, 7, 1, a, a
    w[2, :n] = a[:n]
    w[3, ::3] = 2
    w[4, 1:] = a[:-1]
    w[5, :-2] = a[2:]
    return {1: w}


@kernel(args=lambda r: (f32(r, 96), zeros(np.float32, 6, 96), 70), want=_copies)
def copies_of_regions():
    @T.prim_func
    def f(A: T.Buffer((96,), "float32"), B: T.Buffer((6, 96), "float32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        L = T.alloc_local((2, 96), "float32")
        L[0:2, :] = A
        B[0, :] = L[1, :]
        B[1, 0:96] = 7.0
        B[2, 0:n] = A[0:n]
        B[3, :] = 1.0
        B[3, 0:96:3] = 2.0
        L[0, 1:96] = L[0, 0:95]
        L[1, 0:94] = L[1, 2:96]
        B[4:6, 0:96] = L

    return f


@kernel(args=lambda r: (f32(r, 8, 8), zeros(np.float32, 64)), want=lambda a, b: {1: a.ravel() * 2})
def vload_and_vstore():
    @T.prim_func
    def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([16])
        v = A.vload([tx // 2, tx % 2 * 4], "float32x4")
        B.vstore([tx * 4], v + v)

    return f


__all__ = ["KERNELS"]
