# SPDX-License-Identifier: Apache-2.0
"""Small kernels that between them use every statement and every form of expression, in both dialects.

KERNELS: name -> Kernel(make, args, want, ...). make() gives the function, args(rng) fresh arguments, want(*args) what
the arguments hold afterwards, by number, from NumPy. `externs` are stand-ins for injected functions on the emulator.
"""

from __future__ import annotations

import dataclasses
import typing

import numpy as np

import tirx
from tirx.script import ir as I
from tirx.script import tirx as T


@dataclasses.dataclass
class Kernel:
    make: typing.Callable
    args: typing.Callable
    want: typing.Callable
    rtol: float = 0.0
    least: int = 80  # architecture
    externs: dict | None = None


KERNELS: dict[str, Kernel] = {}


def kernel(**fields):
    def register(make):
        KERNELS[make.__name__] = Kernel(make, **fields)
        return make

    return register


def run(name: str, target: str = "cpu", seed: int = 0, **options) -> None:
    """Compiles the kernel, calls it, and compares with NumPy."""
    k = KERNELS[name]
    check(k, tirx.compile(k.make(), target=target, externs=k.externs), seed, **options)


def check(k: Kernel, exe, seed: int = 0, **options) -> None:
    args = k.args(np.random.default_rng(seed))
    want = k.want(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    exe(*args, **options)
    for i, w in want.items():
        np.testing.assert_allclose(
            args[i].astype(np.float64),
            np.asarray(w).astype(np.float64),
            rtol=k.rtol,
            atol=k.rtol,
            err_msg=f"argument {i}",
        )


def f32(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def i32(rng, lo, hi, *shape):
    return rng.integers(lo, hi, shape, dtype=np.int32)


def zeros(dtype, *shape):
    return np.zeros(shape, dtype)


# ---- parameters and sizes ----------------------------------------------------------------------------------


@kernel(args=lambda r: (f32(r, 300), zeros(np.float32, 300), 2.5), want=lambda a, b, s: {1: a * np.float32(s)})
def scale_dynamic():
    @T.prim_func
    def f(a: T.handle, b: T.handle, s: T.float32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, 128)])
        tx = T.thread_id([128])
        i: T.let = bx * 128 + tx
        if i < n:
            B[i] = A[i] * s

    return f


@kernel(args=lambda r: (f32(r, 300), zeros(np.float32, 300), 2.5), want=lambda a, b, s: {1: a * np.float32(s)})
def scale_dynamic_g2():
    n = T.dynamic("n")

    @T.function
    def f(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32), s: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 256), block=256))
        i = T.cuda.block_idx("x") * 256 + T.cuda.thread_idx("x")
        if i < n:
            B[i] = A[i] * s

    return f


@kernel(args=lambda r: (f32(r, 12), zeros(np.float32, 6)), want=lambda a, b: {1: a[0::2] + a[1::2]})
def quoted_shapes():
    @T.prim_func
    def f(A: T.Buffer(("n * 2",), "float32"), B: T.Buffer(("n",), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if tx < B.shape[0]:
            B[tx] = A[2 * tx] + A[2 * tx + 1]

    return f


@kernel(args=lambda r: (f32(r, 5, 7), zeros(np.float32, 7, 5)), want=lambda a, b: {1: a.T})
def wide_sizes():
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        T.device_entry()
        bx = T.cta_id([T.Cast("int32", n)])
        tx = T.thread_id([32])
        if tx < m:
            B[tx, bx] = A[bx, tx]

    return f


def _strided(r):
    return f32(r, 8, 16)[:, :6], zeros(np.float32, 8, 6)


@kernel(args=_strided, want=lambda a, b: {1: a + 1})
def strided_parameter():
    @T.prim_func
    def f(a: T.handle, b: T.handle):
        s = T.int32()
        A = T.match_buffer(a, (8, 6), "float32", strides=[s, 1])
        B = T.match_buffer(b, (8, 6), "float32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx, ty = T.thread_id([8, 6])
        B[tx, ty] = A[tx, ty] + 1.0

    return f


@kernel(
    args=lambda r: (zeros(np.float64, 32), 7, -3, 200, 2**40, 1.5, True, 40000),
    want=lambda o, *s: {0: np.full(32, 7 - 3 + 200 + 2**40 + 1.5 + 1 + 40000)},
)
def scalar_parameters():
    @T.prim_func
    def f(
        O: T.Buffer((32,), "float64"),
        a: T.int32,
        b: T.int8,
        c: T.uint8,
        d: T.int64,
        e: T.float64,
        g: T.bool,
        h: T.uint16,
    ):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        total: T.int64 = a + b + T.Cast("int64", c) + d + T.Cast("int64", h)
        if g:
            total += 1
        O[tx] = T.Cast("float64", total) + e

    return f


# ---- integers ----------------------------------------------------------------------------------------------


def _floordiv(a, b):
    return a // b


@kernel(
    args=lambda r: (
        i32(r, -50, 50, 64),
        np.where(i32(r, 0, 2, 64) == 0, i32(r, 1, 9, 64), -i32(r, 1, 9, 64)),
        zeros(np.int32, 14, 64),
    ),
    want=lambda a, b, o: {
        2: np.stack(
            [
                a + b,
                a - b,
                a * b,
                a // b,
                a % b,
                np.fix(a / b),
                a - b * np.fix(a / b),
                -(-a // b),
                np.minimum(a, b),
                np.maximum(a, b),
                a & b,
                a | b,
                a ^ b,
                ~a + np.abs(b) + -a,
            ]
        )
    },
)
def integer_operators():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), O: T.Buffer((14, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        a: T.let = A[tx]
        b: T.let[T.int32] = B[tx]
        O[0, tx] = a + b
        O[1, tx] = a - b
        O[2, tx] = a * b
        O[3, tx] = a // b
        O[4, tx] = a % b
        O[5, tx] = T.truncdiv(a, b)
        O[6, tx] = T.truncmod(a, b)
        O[7, tx] = T.ceildiv(a, b)
        O[8, tx] = T.min(a, b)
        O[9, tx] = T.max(a, b)
        O[10, tx] = a & b
        O[11, tx] = a | b
        O[12, tx] = a ^ b
        O[13, tx] = ~a + T.abs(b) + -a

    return f


@kernel(
    args=lambda r: (
        r.integers(0, 256, 64, dtype=np.uint8),
        r.integers(-128, 128, 64, dtype=np.int8),
        zeros(np.uint8, 64),
        zeros(np.int8, 64),
    ),
    want=lambda a, b, c, d: {
        2: (a * np.uint8(3) - np.uint8(200)) ^ (a >> np.uint8(1)),
        3: ((b.astype(np.int32) * 5 + 1 + 128) % 256 - 128),
    },
)
def narrow_integers():
    @T.prim_func
    def f(
        A: T.Buffer((64,), "uint8"), B: T.Buffer((64,), "int8"), C: T.Buffer((64,), "uint8"), D: T.Buffer((64,), "int8")
    ):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        C[tx] = (A[tx] * 3 - 200) ^ (A[tx] >> 1)
        D[tx] = B[tx] * 5 + T.int8(1)

    return f


@kernel(
    args=lambda r: (i32(r, 0, 1000, 32), zeros(np.int32, 32)),
    want=lambda a, o: {1: ((a << 3) | (a >> 2)) - ((a + 1) * (a - (2 - a)) // (a % 7 + 1)) + (a & (a ^ 12) | 5)},
)
def precedence():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), O: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        a: T.let = A[tx]
        O[tx] = ((a << 3) | (a >> 2)) - ((a + 1) * (a - (2 - a)) // (a % 7 + 1)) + (a & (a ^ 12) | 5)

    return f


@kernel(
    args=lambda r: (i32(r, -5, 6, 64), zeros(np.bool_, 64), zeros(np.int32, 64)),
    want=lambda a, b, o: {
        1: (((a > 0) & (a != 3)) | ~(a >= -2)) & ((-4 < a) & (a <= 4)),
        2: np.where(a < 0, -1, np.where(a == 0, 0, a * 2)) + np.where(a % 2 == 0, 10, 20),
    },
)
def conditions():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "bool"), O: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        a: T.let = A[tx]
        B[tx] = (a > 0 and a != 3 or not a >= -2) and -4 < a <= 4
        x = T.if_then_else(a < 0, -1, T.if_then_else(a == 0, 0, a * 2))
        y = 10 if a % 2 == 0 else 20
        O[tx] = T.Select(a > 100, 7, x + y)

    return f


@kernel(
    args=lambda r: (i32(r, -8, 8, 32), zeros(np.int64, 32), zeros(np.uint32, 32)),
    want=lambda a, b, c: {1: a.astype(np.int64) * 5_000_000_000 - 1, 2: a.astype(np.uint32) + np.uint32(4_000_000_000)},
)
def literals():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int64"), C: T.Buffer((32,), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = T.Cast("int64", A[tx]) * 5_000_000_000 - T.int64(1)
        C[tx] = T.Cast("uint32", A[tx]) + T.uint32(4_000_000_000)

    return f


# ---- floats ------------------------------------------------------------------------------------------------


@kernel(
    args=lambda r: (r.uniform(0.1, 0.9, 64).astype(np.float32), zeros(np.float32, 12, 64)),
    want=lambda a, o: {
        1: np.stack(
            [
                np.exp(a),
                np.log(a) / np.float32(0.1),
                np.sqrt(a) + 1 / np.sqrt(a),
                np.sin(a) * np.cos(a),
                np.tanh(a),
                np.arctan2(a, np.float32(0.5)),
                a ** np.float32(1.5),
                np.floor(a * 3) + np.ceil(a * 3) + np.round(a * 3),
                np.fmod(a * 7, np.float32(2)),
                np.abs(-a),
                a * a + np.float32(1.5e-5),
                np.maximum(np.minimum(a, np.float32(0.75)), np.float32(0.25)),
            ]
        )
    },
    rtol=2e-5,
)
def mathematics():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), O: T.Buffer((12, 64), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        a: T.let = A[tx]
        O[0, tx] = T.exp(a)
        O[1, tx] = T.log(a) / 0.1
        O[2, tx] = T.sqrt(a) + T.rsqrt(a)
        O[3, tx] = T.sin(a) * T.cos(a)
        O[4, tx] = T.tanh(a)
        O[5, tx] = T.atan2(a, T.float32(0.5))
        O[6, tx] = T.pow(a, T.float32(1.5))
        O[7, tx] = T.floor(a * 3.0) + T.ceil(a * 3.0) + T.round(a * 3.0)
        O[8, tx] = T.fmod(a * 7.0, T.float32(2.0))
        O[9, tx] = T.abs(-a)
        O[10, tx] = T.fma(a, a, T.float32(1.5e-5))
        O[11, tx] = T.max(T.min(a, 0.75), 0.25)

    return f


@kernel(
    args=lambda r: (
        f32(r, 32) * 100,
        zeros(np.float16, 32),
        zeros(np.int32, 32),
        zeros(np.float64, 32),
        zeros(np.uint32, 32),
    ),
    want=lambda a, h, i, d, u: {
        1: a.astype(np.float16) * np.float16(0.5),
        2: np.trunc(a).astype(np.int32),
        3: a.astype(np.float64) / 3,
        4: a.view(np.uint32),
    },
)
def conversions():
    @T.prim_func
    def f(
        A: T.Buffer((32,), "float32"),
        H: T.Buffer((32,), "float16"),
        N: T.Buffer((32,), "int32"),
        D: T.Buffer((32,), "float64"),
        U: T.Buffer((32,), "uint32"),
    ):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        H[tx] = T.cast(A[tx], "float16") * T.float16(0.5)
        N[tx] = T.Cast("int32", A[tx])
        D[tx] = A[tx].astype("float64") / T.float64(3)
        U[tx] = T.reinterpret("uint32", A[tx])

    return f


@kernel(
    args=lambda r: (
        np.array([0, 1, np.inf, -np.inf, np.nan, -2, 3, 4] * 4, np.float32),
        zeros(np.int32, 32),
        zeros(np.float32, 32),
    ),
    want=lambda a, b, c: {
        1: np.isnan(a) * 1 + np.isinf(a) * 2 + np.isfinite(a) * 4,
        2: np.where(np.isnan(a), -np.inf, 0.1),
    },
    rtol=1e-7,
)
def special_values():
    @T.prim_func
    def f(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "int32"), C: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = (
            T.Cast("int32", T.isnan(A[tx]))
            + T.Cast("int32", T.isinf(A[tx])) * 2
            + T.Cast("int32", T.isfinite(A[tx])) * 4
        )
        C[tx] = T.if_then_else(T.isnan(A[tx]), T.float32("-inf"), T.float32(0.1))

    return f


# ---- statements --------------------------------------------------------------------------------------------


def _collatz(a):
    out = []
    for x in a.tolist():
        steps = 0
        while True:
            if x == 1:
                break
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            steps += 1
            if steps % 2 == 0:
                continue
            steps += 2
        out.append(steps)
    return np.array(out, np.int32)


@kernel(args=lambda r: (i32(r, 1, 30, 32), zeros(np.int32, 32)), want=lambda a, b: {1: _collatz(a)})
def loops_that_end():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        x = A[tx]
        steps = 0
        while True:
            if x == 1:
                break
            if x % 2 == 0:
                x //= 2
            else:
                x = 3 * x + 1
            steps += 1
            if steps % 2 == 0:
                continue
            steps += 2
        B[tx] = steps

    return f


def _turns(a):
    total = np.zeros(32, np.int32)
    for t in range(32):
        s = 0
        for i in range(2, 10, 3):
            s += i
        for i in range(5, -3, -2):
            s = s * 2 + i
        for i in range(4):
            if i == 2:
                continue
            s += i * int(a[t])
        for i in range(3):
            for j in range(1, 4):
                s += i * j
        for i in range(int(a[t])):
            s += i
            if s > 1000:
                break
        total[t] = s
    return total


@kernel(args=lambda r: (i32(r, 0, 9, 32), zeros(np.int32, 32)), want=lambda a, b: {1: _turns(a)})
def every_loop():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s = 0
        for i in range(2, 10, 3):
            s += i
        for i in range(5, -3, -2):
            s = s * 2 + i
        for i in T.unroll(4):
            if i == 2:
                continue
            s += i * A[tx]
        for i, j in T.grid(3, (1, 3)):
            s += i * j
        for i in T.serial(A[tx], unroll=2, annotations={"note": "kept"}):
            s += i
            if s > 1000:
                break
        B[tx] = s

    return f


@kernel(
    args=lambda r: (i32(r, -4, 8, 64), zeros(np.int32, 64)),
    want=lambda a, b: {1: np.select([a < -1, a == 0, a > 4], [a * a, 100, a - 1], -a)},
)
def branches():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        x: T.int32
        if A[tx] < -1:
            x = A[tx] * A[tx]
        elif A[tx] == 0:
            x = 100
        else:
            if A[tx] > 4:
                x = A[tx] - 1
            else:
                x = -A[tx]
        B[tx] = x

    return f


@kernel(
    args=lambda r: (f32(r, 32, 6), zeros(np.float32, 32)),
    want=lambda a, b: {1: np.where(a[:, 0] < 0, 0, a.max(1) - a.min(1))},
)
def arrays_and_early_return():
    @T.prim_func
    def f(A: T.Buffer((32, 6), "float32"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        v = T.alloc_local((2, 3), "float32")
        w: T.float32[2]
        for i in range(6):
            v[i // 3, i % 3] = A[tx, i]
        if v[0, 0] < 0.0:
            B[tx] = 0.0
            return
        w[0] = v[0, 0]
        w[1] = v[0, 0]
        for i in range(2):
            for j in range(3):
                w[0] = T.max(w[0], v[i, j])
                w[1] = T.min(w[1], v[i, j])
        B[tx] = w[0] - w[1]

    return f


@kernel(args=lambda r: (f32(r, 64), zeros(np.float32, 64)), want=lambda a, b: {1: a * 2 + 1})
def lets_and_helpers():
    @T.inline
    def twice(x):
        return x + x

    @T.inline
    def put(B, i, v):
        one: T.let = T.float32(1)
        B[i] = v + one

    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        i: T.let[T.int64] = T.Cast("int64", bx) * 32 + tx
        put(B, i, twice(A[i]))

    return f


@kernel(args=lambda r: (i32(r, 1, 9, 32), zeros(np.int32, 32)), want=lambda a, b: {1: a + 1})
def checked():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.func_attr({"note": "kept", "level": 3})
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        assert A[tx] > 0, "not positive"
        assert A[tx] < 100, ("ValueError", ["A is ", "too large"])
        B[tx] = A[tx] + 1

    return f


# ---- memory ------------------------------------------------------------------------------------------------


@kernel(args=lambda r: (f32(r, 32, 32), zeros(np.float32, 32, 32)), want=lambda a, b: {1: a.T})
def transpose_in_shared_memory():
    @T.prim_func
    def f(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx, ty = T.thread_id([32, 8])
        tile = T.alloc_shared((32, 33), "float32")
        for k in range(4):
            tile[ty + 8 * k, tx] = A[ty + 8 * k, tx]
        T.cuda.cta_sync()
        for k in range(4):
            B[ty + 8 * k, tx] = tile[tx, ty + 8 * k]

    return f


@kernel(args=lambda r: (f32(r, 4, 64), zeros(np.float32, 4)), want=lambda a, b: {1: a.sum(1)}, rtol=1e-5)
def sums_in_dynamic_shared_memory():
    @T.prim_func
    def f(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
        T.device_entry()
        bx = T.cta_id([4])
        tx = T.thread_id([64])
        part = T.alloc_buffer((64,), "float32", scope="shared.dyn")
        step: T.int32 = 32
        part[tx] = A[bx, tx]
        T.cuda.cta_sync()
        while step > 0:
            if tx < step:
                part[tx] = part[tx] + part[tx + step]
            T.cuda.cta_sync()
            step = step // 2
        if tx == 0:
            B[bx] = part[0]

    return f


@kernel(args=lambda r: (f32(r, 128), zeros(np.float32, 128)), want=lambda a, b: {1: a + 1})
def vectors():
    @T.prim_func
    def f(A: T.Buffer((128,), "float32", align=16), B: T.Buffer((128,), "float32", align=16)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx * 4 : tx * 4 + 4] = A[tx * 4 : tx * 4 + 4] + T.Broadcast(T.float32(1), 4)

    return f


@kernel(args=lambda r: (f32(r, 32, 8), zeros(np.float32, 32, 8)), want=lambda a, b: {1: a * 3})
def vectorized_loop():
    @T.prim_func
    def f(A: T.Buffer((32, 8), "float32", align=32), B: T.Buffer((32, 8), "float32", align=32)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        for i in T.vectorized(8):
            B[tx, i] = A[tx, i] * 3.0

    return f


@kernel(
    args=lambda r: (i32(r, 0, 8, 256), zeros(np.int32, 8), zeros(np.int32, 1)),
    want=lambda a, b, c: {1: np.bincount(a, minlength=8), 2: [a.max()]},
)
def atomics():
    @T.prim_func
    def f(A: T.Buffer((256,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
        T.device_entry()
        bx = T.cta_id([4])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        T.cuda.atomic_add(B.ptr_to([A[i]]), 1)
        old: T.int32 = C[0] * 0
        seen: T.int32 = -1
        while seen != old:
            seen = old
            if A[i] > seen:
                old = T.cuda.atomic_cas(C.ptr_to([0]), seen, A[i])
        T.evaluate(old)

    return f


@kernel(args=lambda r: (f32(r, 64), zeros(np.float32, 16)), want=lambda a, b: {1: a[8:24] + a[40:56]})
def views():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 4), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx, ty = T.thread_id([4, 4])
        near = T.decl_buffer((4, 4), "float32", data=A.data, elem_offset=8)
        far = T.decl_buffer((4, 4), "float32", data=A.data, elem_offset=40, strides=[4, 1])
        B[tx, ty] = near[tx, ty] + far[tx, ty]

    return f


KERNELS["views"].args = lambda r: (f32(r, 64), zeros(np.float32, 4, 4))
KERNELS["views"].want = lambda a, b: {1: (a[8:24] + a[40:56]).reshape(4, 4)}


@kernel(args=lambda r: (i32(r, 0, 99, 32), zeros(np.int32, 32)), want=lambda a, b: {1: np.full(32, a[3] + 5)})
def shared_scalar():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s = T.shared_scalar("int32")
        if tx == 3:
            s = A[tx] + 5
        T.cuda.cta_sync()
        B[tx] = s

    return f


# ---- threads -----------------------------------------------------------------------------------------------


def _softmax(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@kernel(args=lambda r: (f32(r, 8, 64), zeros(np.float32, 8, 64)), want=lambda a, b: {1: _softmax(a)}, rtol=1e-5)
def softmax_by_shuffles():
    @T.prim_func
    def f(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
        T.device_entry()
        bx = T.cta_id([4])
        warp = T.warp_id([2])
        lane = T.lane_id([32])
        row: T.let = bx * 2 + warp
        m = T.max(A[row, lane], A[row, lane + 32])
        for k in T.unroll(5):
            m = T.max(m, T.tvm_warp_shuffle_xor(T.uint32(0xFFFFFFFF), m, 1 << k, 32, 32))
        s = T.exp(A[row, lane] - m) + T.exp(A[row, lane + 32] - m)
        s = T.cuda.warp_sum(s)
        for k in range(2):
            B[row, lane + 32 * k] = T.exp(A[row, lane + 32 * k] - m) / s

    return f


@kernel(
    args=lambda r: (zeros(np.int32, 3, 5, 8),),
    want=lambda o: {0: np.arange(120).reshape(3, 5, 8)},
)
def grid_of_three():
    @T.prim_func
    def f(O: T.Buffer((3, 5, 8), "int32")):
        T.device_entry()
        bx, by, bz = T.cta_id([3, 5, 2])
        tx, ty = T.thread_id([2, 2], dtype="uint32")
        z: T.let = bz * 4 + T.Cast("int32", ty * T.uint32(2) + tx)
        O[bx, by, z] = (bx * 5 + by) * 8 + z

    return f


@kernel(
    args=lambda r: (f32(r, 64), zeros(np.float32, 64)),
    want=lambda a, b: {1: np.maximum(a, 0)},
    externs={"my_relu": lambda x: np.maximum(x, np.float32(0))},
)
def injected_source():
    source = """
__device__ __forceinline__ float my_relu(float x) {
  return x > 0.0f ? x : 0.0f;  // "quoted" \\ and more
}
"""

    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        B[tx] = T.cuda.func_call("my_relu", A[tx], source_code=source, return_type="float32")

    return f


# ---- the second dialect ------------------------------------------------------------------------------------


@kernel(args=lambda r: (f32(r, 4, 64), zeros(np.float32, 4)), want=lambda a, b: {1: (a * a).sum(1)}, rtol=1e-5)
def squares_g2():
    @T.function
    def f(A: T.Tensor((4, 64), T.float32), B: T.Tensor((4,), T.float32)):
        T.device_entry(
            launch=T.cuda.LaunchConfig(grid=(2, 2), block=(32,)),
            kernel_attrs=T.cuda.KernelAttributes(min_blocks_per_sm=4),
        )
        row = T.cuda.block_idx("x") * 2 + T.cuda.block_idx("y")
        lane = T.cuda.lane_id()
        total = T.float32(0)
        for k in range(2):
            x = A[row, lane + 32 * k]
            total += x * x
        total = T.cuda.warp_sum(total)
        if lane == 0:
            B[row] = total

    return f


@kernel(args=lambda r: (i32(r, 0, 50, 64), zeros(np.float32, 64)), want=lambda a, b: {1: (a[::-1] + 1) * 0.5})
def rebinding_g2():
    @T.function
    def f(A: T.Tensor((64,), T.int32), B: T.Tensor((64,), T.float32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        tx = T.cuda.thread_idx("x")
        buf = T.alloc_shared((64,), T.int32)
        buf[63 - tx] = A[tx]
        T.cuda.cta_sync()
        x = buf[tx] + 1
        x = T.Cast("float32", x) * T.float32(0.5)
        B[tx] = x

    return f


@kernel(
    args=lambda r: (f32(r, 64), zeros(np.float32, 64), zeros(np.float32, 64)),
    want=lambda a, b, c: {1: a + 1, 2: (a + 1) * 2},
)
def two_regions_g2():
    @T.function
    def f(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.float32), C: T.Tensor((64,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32)):
            i = T.cuda.block_idx("x") * 32 + T.cuda.thread_idx("x")
            B[i] = A[i] + 1.0
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
            j = T.cuda.thread_idx("x")
            C[j] = B[j] * 2.0

    return f


@kernel(args=lambda r: (i32(r, 0, 9, 32), zeros(np.int32, 32)), want=lambda a, b: {1: np.where(a > 4, a * 3, 7)})
def outer_names_g2():
    @T.function
    def f(A: T.Tensor((32,), T.int32), B: T.Tensor((32,), T.int32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tx = T.cuda.thread_idx("x")
        v = T.alloc_tensor(ty_args=[T.Tensor((2,), T.int32, scope="local")])
        r = 7
        if A[tx] > 4:
            v[0] = A[tx]
            v[1] = 3
            r = v[0] * v[1]
        B[tx] = r

    return f


# ---- modules -----------------------------------------------------------------------------------------------


def module_of_two():
    @I.ir_module
    class Module:
        @T.prim_func
        def first(A: T.Buffer((32,), "float32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            A[tx] = A[tx] + 1.0

        @T.prim_func
        def second(A: T.Buffer((32,), "float32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            A[tx] = A[tx] * 2.0

    return Module


import form_kernels  # noqa: E402, F401
import tensormap_kernels  # noqa: E402, F401  (these add their kernels to KERNELS)
import view_kernels  # noqa: E402, F401
