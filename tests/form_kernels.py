# SPDX-License-Identifier: Apache-2.0
"""Kernels of the forms that are written in T itself or called from plain Python; they join tests/kernels.py."""

from __future__ import annotations

import numpy as np
from kernels import i32, kernel, zeros

from tirx.script import tirx as T

TX = np.arange(64)


def _bytes_of(a):
    return a.view(np.int8).reshape(-1, 4).astype(np.int32)


@kernel(
    args=lambda r: (i32(r, -(2**31), 2**31, 64), zeros(np.int32, 64, 6)),
    want=lambda a, b: {
        1: np.stack(
            [
                (_bytes_of(a) * _bytes_of(a[::-1].copy())).sum(1) + TX,
                a[TX // 4 * 4 + 2],
                np.where(TX % 3 == 0, a, -1),
                np.where(a > 0, 0, a),
                np.full(64, a.max()),
                np.full(64, (a & 7).sum()),
            ],
            1,
        )
    },
)
def derived_forms():
    @T.macro
    def put(B, i, k, v):
        B[i, k] = v

    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64, 6), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        T.hint("forms", level=2)
        put(B, tx, 0, T.dp4a(A[tx], T.reinterpret("int8x4", A[63 - tx]), tx))
        v: T.let = A[T.ramp(tx // 4 * 4, 1, 4)]
        high: T.let = T.vectorhigh("int32x2", v)
        both: T.let = T.vectorcombine(high, T.vectorlow(v))
        put(B, tx, 1, T.Shuffle([both], [0]))
        put(B, tx, 2, T.masked_load(A, [tx], tx % 3 == 0, -1))
        T.masked_store(B, [tx, 3], A[tx], A[tx] <= 0)
        most = T.alloc_local((1,), "int32")
        T.tvm_thread_allreduce(1, A[tx], True, most[0], tx, op="max")
        put(B, tx, 4, most[0])
        T.gpu_thread_allreduce(1, A[tx] & 7, True, most[0], tx)
        put(B, tx, 5, most[0])

    return f


def _collatz(x, steps):
    """Steps until 1, at most `steps`: branches and loops from plain Python."""
    count = T.local_scalar("int32")
    T.assign(count, 0)
    with T.for_(T.range_(steps)):
        with T.if_(x == 1), T.then_():
            T.break_()
        with T.If(x % 2 == 0):
            with T.Then():
                T.assign(x, x // 2)
            with T.Else():
                T.assign(x, x * 3 + 1)
        T.assign(count, count + 1)
    return count


def _steps(n):
    count = 0
    while n != 1 and count < 40:
        n = n // 2 if n % 2 == 0 else n * 3 + 1
        count += 1
    return count


@kernel(
    args=lambda r: (i32(r, 1, 1000, 64), zeros(np.int32, 64)),
    want=lambda a, b: {1: np.array([_steps(int(n)) for n in a]) * 5 + 10},
)
def builder_forms():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        x: T.int32 = A[tx]
        count = _collatz(x, 40)
        k = T.meta_var(1)
        while T.constexpr(k < 5):
            B[tx] += k
            k = T.meta_var(k + 1)
        with T.While(T.BufferLoad(B, [tx]) % 5 != 0):
            T.buffer_store(B, B[tx] + 1, [tx])
        B[tx] = B[tx] + T.Call("tirx.popcount", [T.IntImm("int32", 31)], ty=T.int32) * count

    return f
