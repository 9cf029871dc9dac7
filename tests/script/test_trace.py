# SPDX-License-Identifier: Apache-2.0
"""@T.trace: what one run of a plain Python function makes is what the parser makes of the same kernel.

TRACED holds kernels of tests/kernels.py, written once more as plain Python, under the names that they have there.
"""

from __future__ import annotations

import linecache
import subprocess
import sys

import kernels
import numpy as np
import pytest

import tirx
import tirx.builder
from tirx.script import tirx as T

TRACED = {}


def traced(make):
    TRACED[make.__name__] = make
    return make


@traced
def scale_dynamic():
    @T.trace
    def f(a: T.handle, b: T.handle, s: T.float32):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, 128)])
        tx = T.thread_id([128])
        i = T.Bind(bx * 128 + tx)
        with T.If(i < n), T.Then():
            B[i] = A[i] * s

    return f


@traced
def tensor_map():
    @T.trace
    def f(a: T.handle, O: T.Buffer((16,), "uint32")):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (m, n), "float16")
        A_map = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(
            *(A_map, A, n, m, n * 2, 32, 16, 1, 2), descriptor_dtype="float16", rank=2, swizzle=2, oob_fill=1
        )
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        words = T.decl_buffer((32,), "uint32", data=T.ptr_byte_offset(T.address_of(A_map), 0, "uint32"))
        with T.If(tx < 16), T.Then():
            O[tx] = words[tx + 2]

    return f


@traced
def scale_dynamic_g2():
    n = T.dynamic("n")

    @T.trace(dialect="g2")
    def f(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32), s: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 256), block=256))
        i = T.Bind(T.cuda.block_idx("x") * 256 + T.cuda.thread_idx("x"))
        with T.If(i < n), T.Then():
            B[i] = A[i] * s

    return f


@traced
def quoted_shapes():
    @T.trace
    def f(A: T.Buffer(("n * 2",), "float32"), B: T.Buffer(("n",), "float32")):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        with T.If(tx < B.shape[0]), T.Then():
            B[tx] = A[2 * tx] + A[2 * tx + 1]

    return f


@traced
def wide_sizes():
    @T.trace
    def f(a: T.handle, b: T.handle):
        n, m = T.int64(), T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        T.device_entry()
        bx = T.cta_id([T.Cast("int32", n)])
        tx = T.thread_id([32])
        with T.If(tx < m):
            with T.Then():
                B[tx, bx] = A[bx, tx]

    return f


@traced
def every_loop():
    @T.trace
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        s = T.local_scalar("int32", 0)
        with T.serial(2, 10, step=3) as i:
            s[0] += i
        with T.serial(5, -3, step=-2) as i:
            s[0] = s * 2 + i
        with T.unroll(4) as i:
            with T.If(i == 2), T.Then():
                T.Continue()
            s[0] += i * A[tx]
        with T.grid(3, (1, 3)) as (i, j):
            s[0] += i * j
        with T.serial(A[tx], unroll=2, annotations={"note": "kept"}) as i:
            s[0] += i
            with T.If(s > 1000), T.Then():
                T.Break()
        B[tx] = s

    return f


@traced
def loops_that_end():
    @T.trace
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        x = T.local_scalar("int32", A[tx])
        steps = T.local_scalar("int32", 0)
        with T.While(True):
            with T.If(x == 1), T.Then():
                T.Break()
            with T.If(x % 2 == 0):
                with T.Then():
                    x[0] //= 2
                with T.Else():
                    x[0] = 3 * x + 1
            steps[0] += 1
            with T.If(steps % 2 == 0), T.Then():
                T.Continue()
            steps[0] += 2
        B[tx] = steps

    return f


@traced
def branches():
    @T.trace
    def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([64])
        x = T.local_scalar("int32")

        def chain(cases, last):
            """if / elif / else, made by recursion in plain Python"""
            if not cases:
                x[0] = last()
                return
            (condition, value), *others = cases
            with T.If(condition()):
                with T.Then():
                    x[0] = value()
                with T.Else():
                    chain(others, last)

        negative = lambda: A[tx] < -1, lambda: A[tx] * A[tx]
        zero = lambda: A[tx] == 0, lambda: 100
        large = lambda: A[tx] > 4, lambda: A[tx] - 1
        chain([negative, zero, large], lambda: -A[tx])
        B[tx] = x

    return f


@traced
def arrays_and_early_return():
    @T.trace
    def f(A: T.Buffer((32, 6), "float32"), B: T.Buffer((32,), "float32")):
        T.device_entry()
        T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
        T.cta_id([1])
        tx = T.thread_id([32])
        v = T.alloc_local((2, 3), "float32")
        w = T.alloc_local((2,), "float32")
        with T.serial(6) as i:
            v[i // 3, i % 3] = A[tx, i]
        with T.If(v[0, 0] < 0.0), T.Then():
            B[tx] = 0.0
            T.Return()
        for k in range(2):
            w[k] = v[0, 0]
        with T.serial(2) as i, T.serial(3) as j:
            w[0] = T.max(w[0], v[i, j])
            w[1] = T.min(w[1], v[i, j])
        B[tx] = w[0] - w[1]

    return f


@traced
def lets_and_helpers():
    @T.inline
    def put(B, i, v):
        one: T.let = T.float32(1)
        B[i] = v + one

    @T.trace
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        i = T.Bind(T.Cast("int64", bx) * 32 + tx, T.int64)
        put(B, i, A[i] + A[i])

    return f


@traced
def checked():
    @T.trace
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.func_attr({"note": "kept", "level": 3})
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        T.Assert(A[tx] > 0, "not positive")
        T.Assert(A[tx] < 100, ("ValueError", ["A is ", "too large"]))
        B[tx] = A[tx] + 1

    return f


@traced
def transpose_in_shared_memory():
    @T.trace
    def f(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
        T.device_entry()
        T.cta_id([1])
        tx, ty = T.thread_id([32, 8])
        tile = T.alloc_shared((32, 33), "float32")
        with T.serial(4) as k:
            tile[ty + 8 * k, tx] = A[ty + 8 * k, tx]
        T.cuda.cta_sync()
        with T.serial(4) as k:
            B[ty + 8 * k, tx] = tile[tx, ty + 8 * k]

    return f


@traced
def sums_in_dynamic_shared_memory():
    @T.trace
    def f(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
        T.device_entry()
        bx = T.cta_id([4])
        tx = T.thread_id([64])
        part = T.alloc_buffer((64,), "float32", scope="shared.dyn")
        step = T.local_scalar("int32", 32)
        part[tx] = A[bx, tx]
        T.evaluate(T.cuda.cta_sync())
        with T.While(step > 0):
            with T.If(tx < step), T.Then():
                part[tx] += part[tx + step]
            T.cuda.cta_sync()
            step.buffer[0] = step // 2
        with T.If(tx == 0), T.Then():
            B[bx] = part[0]

    return f


@traced
def vectors():
    @T.trace
    def f(A: T.Buffer((128,), "float32", align=16), B: T.Buffer((128,), "float32", align=16)):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        B[tx * 4 : tx * 4 + 4] = A[tx * 4 : tx * 4 + 4] + T.Broadcast(T.float32(1), 4)

    return f


@traced
def vectorized_loop():
    @T.trace
    def f(A: T.Buffer((32, 8), "float32", align=32), B: T.Buffer((32, 8), "float32", align=32)):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        with T.vectorized(8) as i:
            B[tx, i] = A[tx, i] * 3.0

    return f


@traced
def views():
    @T.trace
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 4), "float32")):
        T.device_entry()
        T.cta_id([1])
        tx, ty = T.thread_id([4, 4])
        near = T.decl_buffer((4, 4), "float32", data=A.data, elem_offset=8)
        far = T.decl_buffer((4, 4), "float32", data=A.data, elem_offset=40, strides=[4, 1])
        B[tx, ty] = near[tx, ty] + far[tx, ty]

    return f


@traced
def shared_scalar():
    @T.trace
    def f(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        T.device_entry()
        T.cta_id([1])
        tx = T.thread_id([32])
        s = T.shared_scalar("int32")
        with T.If(tx == 3), T.Then():
            T.assign(s, A[tx] + 5)
        T.cuda.cta_sync()
        B[tx] = s

    return f


@traced
def grid_of_three():
    @T.trace
    def f(O: T.Buffer((3, 5, 8), "int32")):
        T.device_entry()
        bx, by, bz = T.cta_id([3, 5, 2])
        tx, ty = T.thread_id([2, 2], dtype="uint32")
        z = T.Bind(bz * 4 + T.Cast("int32", ty * T.uint32(2) + tx))
        O[bx, by, z] = (bx * 5 + by) * 8 + z

    return f


@traced
def two_regions_g2():
    @T.trace(dialect="g2")
    def f(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.float32), C: T.Tensor((64,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32)):
            i = T.Bind(T.cuda.block_idx("x") * 32 + T.cuda.thread_idx("x"))
            B[i] = A[i] + 1.0
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
            j = T.Bind(T.cuda.thread_idx("x"))
            C[j] = B[j] * 2.0

    return f


@traced
def outer_names_g2():
    @T.trace(dialect="g2")
    def f(A: T.Tensor((32,), T.int32), B: T.Tensor((32,), T.int32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tx = T.Bind(T.cuda.thread_idx("x"))
        v = T.alloc_tensor(ty_args=[T.Tensor((2,), T.int32, scope="local")])
        r = T.local_scalar("int32", 7)
        with T.If(A[tx] > 4), T.Then():
            v[0] = A[tx]
            v[1] = 3
            T.tensor_store(r, (0,), v[0] * v[1])
        B[tx] = r

    return f


@pytest.mark.parametrize("name", TRACED)
def test_traced_is_parsed(name):
    k = kernels.KERNELS[name]
    made, parsed = TRACED[name](), k.make()
    assert tirx.structural_equal(made, parsed), f"{made.script()}\n{parsed.script()}"
    assert made.structural_hash() == parsed.structural_hash()
    assert tirx.structural_equal(tirx.from_source(made.script()), made)
    kernels.check(k, tirx.compile(made, target="cpu", externs=k.externs))


# ---- without source ------------------------------------------------------------------------------------------------


@T.prim_func
def main(A: T.Buffer((8,), "int32"), n: T.int32):
    for i in range(8):
        A[i] = n + i


def test_a_lambda():
    made = T.trace(
        lambda A, n: [
            (loop := T.serial(8)),
            (i := loop.__enter__()),
            T.buffer_store(A, n + i, [i]),
            loop.__exit__(None, None, None),
        ],
        annotations={"A": T.Buffer((8,), "int32"), "n": "T.int32"},
    )
    assert tirx.structural_equal(made, main)


def test_code_without_text():
    text = (
        "@T.trace\n"
        "def main(A: T.Buffer((8,), 'int32'), n: 'T.int32'):\n"
        "    with T.serial(8) as i:\n"
        "        A[i] = n + i\n"
    )
    names = {"T": T}
    exec(compile(text, "<nowhere to be found>", "exec"), names)
    assert tirx.structural_equal(names["main"], main)
    bad = compile(text.replace("A[i] = n", "A[8] = n"), "<nowhere to be found>", "exec")
    with pytest.raises(tirx.DiagnosticError) as e:
        exec(bad, {"T": T})
    assert str(e.value) == "<nowhere to be found>:4:9: error: index 8 is outside 0..7 in dimension 0 of buffer A"


def test_a_method_of_interactive_python():
    text = """
from tirx import T
@T.trace
def k(A: T.Buffer((4,), "int32")):
    A[0] = 1

print(k.script())
"""
    made = subprocess.run([sys.executable, "-i", "-q"], input=text, capture_output=True, text=True)
    assert "    A[0] = 1" in made.stdout, made.stderr


def test_annotations_that_are_text():
    names = {"T": T, "N": 8}
    text = (
        "from __future__ import annotations\n@T.trace\n"
        "def main(A: T.Buffer((N,), 'int32'), n: T.int32):\n    with T.serial(N) as i:\n        A[i] = n + i\n"
    )
    linecache.cache["later.py"] = (len(text), None, text.splitlines(keepends=True), "later.py")
    exec(compile(text, "later.py", "exec"), names)
    assert tirx.structural_equal(names["main"], main)


def test_names_of_functions_around():
    def make(N):
        @T.trace
        def main(A: T.Buffer((N,), "int32"), n: T.int32):
            with T.serial(N) as i:
                A[i] = n + i

        return main

    assert tirx.structural_equal(make(8), main)


def test_options():
    f = T.trace(lambda: None, name="k", private=True, persistent=True)
    assert (f.__name__, f.symbol) == ("k", None)
    assert "private=True" in f.script() and "persistent=True" in f.script()


def test_every_kind_of_parameter():
    @T.trace
    def f(p: T.handle, q: T.handle("float32"), m: T.TensorMap(), /, x: T.float16, *, z: T.Buffer("n", T.int8)):
        assert [str(v) for v in (p, q, m, x)] == ["p", "q", "m", "x"]

    assert [name for name, _ in f.params] == ["p", "q", "m", "x", "z"]
    assert 'z: T.Buffer(("n",), "int8")' in f.script()


def test_what_a_function_returns():
    @T.trace
    def twice(x: T.int32) -> T.int32:
        return x * 2

    @T.prim_func
    def parsed(x: T.int32) -> T.int32:
        return x * 2

    assert tirx.structural_equal(twice.with_attr("global_symbol", "parsed"), parsed)


def test_plain_python_is_macro_expansion():
    table = {"a": 1, "b": 2}

    class Tile:
        def __init__(self, buffer, at):
            self.buffer, self.at = buffer, at

        def __setitem__(self, k, value):
            self.buffer[self.at + k] = value

        def __matmul__(self, other):
            return sum((self.buffer[self.at + k] * other for k in range(2)), start=0)

    @T.trace
    def main(A: T.Buffer((8,), "int32")):
        tile = Tile(A, 4)
        for k, (name, value) in enumerate(table.items()):
            if name != "a":
                try:
                    tile[k] = tile @ value
                finally:
                    pass

    @T.prim_func
    def parsed(A: T.Buffer((8,), "int32")):
        A[5] = 0 + A[4] * 2 + A[5] * 2

    assert tirx.structural_equal(main.with_attr("global_symbol", "parsed"), parsed)


def test_a_traced_function_runs():
    @T.trace
    def double(A: T.Buffer((256,), "float32")):
        T.device_entry()
        tx = T.thread_id([256])
        A[tx] = A[tx] * 2.0

    a = np.arange(256, dtype=np.float32)
    tirx.compile(double, target="cpu")(a)
    assert (a == 2 * np.arange(256)).all()


def test_the_users_own_exception_passes():
    with pytest.raises(ZeroDivisionError):
        T.trace(lambda: 1 // 0)
    assert not tirx.builder.IRBuilder.is_in_scope()
