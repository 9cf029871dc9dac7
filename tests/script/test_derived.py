# SPDX-License-Identifier: Apache-2.0
"""Functions of T that are written in T, macros, and loops that run while the kernel is built."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from script.kernels import body, kernel, run

import tirx
from tirx.script import tirx as T

tx = np.arange(64)


# ---- macros and compile-time loops -----------------------------------------------------------------------------------

offset = 100


@T.macro
def hygienic(B, i):
    B[i] = offset


@T.macro(hygienic=False)
def open_macro(i):
    B[i] = offset + step  # noqa: F821


def test_a_macro_captures_where_it_stands():
    assert body("offset = 3\nhygienic(B, tx)", hygienic=hygienic) == "offset: T.int32 = 3\nB[tx] = 100"


def test_an_unhygienic_macro_takes_names_of_its_caller():
    text = body("step = T.meta_var(7)\nopen_macro(tx)", open_macro=open_macro)
    assert text == "B[tx] = 107"
    text = body("step = T.meta_var(7)\noffset = T.meta_var(1)\nopen_macro(tx)", open_macro=open_macro)
    assert text == "B[tx] = 8"
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: step"):
        kernel("open_macro(tx)", open_macro=open_macro)


def test_an_unhygienic_macro_inside_a_kernel():
    text = """
        n: T.int32 = 1
        @T.macro(hygienic=False)
        def add():
            n = n + tx
        @T.inline
        def twice(n):
            add()
        add()
        m: T.int32 = 5
        twice(m)
        B[tx] = n * 100 + m
    """
    _, b = run(kernel(text))
    np.testing.assert_array_equal(b, (1 + tx) * 100 + 5 + tx)


def test_a_compile_time_while():
    text = """
        n = T.meta_var(1)
        while T.constexpr(n < 20):
            B[tx] += n
            n = T.meta_var(n * 3)
            if n == 9:
                continue
            if n > 26:
                break
    """
    assert body(text) == "B[tx] = B[tx] + 1\nB[tx] = B[tx] + 3\nB[tx] = B[tx] + 9"
    assert body("while T.constexpr(False):\n    nosuch()") == ""


# ---- vectors ---------------------------------------------------------------------------------------------------------


def test_masked_access_touches_only_what_the_mask_allows():
    text = """
        v: T.let = T.masked_load('float32x4', A, [T.ramp(tx, 1, 4)], T.ramp(tx, 1, 4) < 64)
        T.masked_store(B, T.ramp(tx, 1, 4), T.cast(v, 'int32x4'), T.ramp(tx, 1, 4) < T.min(tx + 1, 64))
    """
    _, b = run(kernel(text))
    np.testing.assert_array_equal(b, tx)
    _, b = run(kernel("if tx == 0:\n    T.masked_store(B, 63 + tx, 5, tx < 1)"))
    assert b[63] == 5 and b[:63].sum() == 0


def test_predicates_of_vector_access():
    text = """
        if tx < 32:
            v: T.let = A.vload([tx * 2 + 62], "float32x2", predicate=T.ramp(tx, 0, 2) < 1)
            B.vstore([tx * 2], T.cast(v, "int32x2") + T.ramp(tx, 1, 2), predicate=T.ramp(0, 1, 2) < tx)
            T.buffer_store(B, -1, [tx * 2], predicate=tx > 30)
            T.tensor_store(B, tx * 2 + 1, -2, predicate=tx == 0)
    """
    _, b = run(kernel(text))
    want = np.where(tx % 2 < tx // 2, tx // 2 + tx % 2, 0)
    want[62], want[1] = -1, -2
    np.testing.assert_array_equal(b, want)


def test_dp4a_of_every_sign():
    rng = np.random.default_rng(7)
    x, y, z = (rng.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(3))
    for at in (np.int8, np.uint8):
        for bt in (np.int8, np.uint8):
            words = [("int32" if t is np.int8 else "uint32") for t in (at, bt)]
            out = "uint32" if words == ["uint32", "uint32"] else "int32"
            f = tirx.from_source(
                textwrap.dedent(f"""
                @T.prim_func
                def k(X: T.Buffer((64,), "{words[0]}"), Y: T.Buffer((64,), "{words[1]}"),
                      Z: T.Buffer((64,), "{out}"), V: T.Buffer((64,), "{out}")):
                    T.device_entry()
                    tx = T.thread_id([64])
                    V[tx] = T.dp4a(T.reinterpret("{words[0][:-2]}8x4", X[tx]), Y[tx], Z[tx])
                """)
            )
            v = np.zeros(64, out)
            tirx.compile(f, target="cpu")(x.view(words[0]), y.view(words[1]), z.view(out), v)
            sums = (x.view(at).reshape(64, 4).astype(np.int64) * y.view(bt).reshape(64, 4)).sum(1)
            np.testing.assert_array_equal(v.view(np.uint32), (sums + z.astype(np.int64)).astype(np.uint32))


# ---- printing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, want",
    [
        ("T.print_buffer(B.data, 'int32', False, False, 1, 4)", "[0, 0, 0, 0]\n"),
        ("T.print_buffer(A.data, 'float32', False, False, 2, 2, 3)", "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]\n"),
        ("T.print_buffer(A.ptr_to([5]), 'float32', False, True, 0)", "5.0\n"),
        ("T.print_buffer(text.data, 'uint8', True, False, 1, 4)", "abc\n"),
        ("T.print_buffer(wide.data, 'int64', False, False, 1, 2)", "[-1, 7]\n"),
    ],
)
def test_print_buffer(call, want, capfd):
    head = """
        text = T.alloc_local((4,), 'uint8')
        for i in T.constexpr([(0, 97), (1, 98), (2, 99), (3, 0)]):
            text[i[0]] = i[1]
        wide = T.alloc_local((2,), 'int64')
        wide[0] = -1
        wide[1] = 7
        if tx == 0:
    """
    run(kernel(textwrap.dedent(head).strip("\n") + f"\n    {call}"))
    found = capfd.readouterr().out
    assert found.replace("00000", "") == want


# ---- reductions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op, function", [("sum", np.sum), ("max", np.max), ("min", np.min)])
@pytest.mark.parametrize("shape", [(64,), (256,), (16,), (32, 4)])
def test_allreduce(op, function, shape):
    threads = int(np.prod(shape))
    ids = f"{'tx' if len(shape) == 1 else 'tx, ty'} = T.thread_id({list(shape)})"
    index = "tx" if len(shape) == 1 else "ty * 32 + tx"
    f = tirx.from_source(
        f"@T.prim_func\ndef k(A: T.Buffer(({threads},), 'float32'), B: T.Buffer(({threads},), 'float32')):\n"
        f"    T.device_entry()\n    {ids}\n    i: T.let = {index}\n"
        f"    T.tvm_thread_allreduce(1, A[i], A[i] < 0.9, B[i], tx, op='{op}')\n"
    )
    a = np.random.default_rng(3).random(threads, np.float32)
    b = np.zeros_like(a)
    tirx.compile(f, target="cpu")(a, b)
    neutral = {"sum": 0, "max": -np.inf, "min": np.inf}[op]
    kept = np.where(a < 0.9, a, neutral).reshape(-1, shape[0])
    np.testing.assert_allclose(
        b.reshape(-1, shape[0]), np.broadcast_to(function(kept, 1, keepdims=True), kept.shape), 1e-5
    )


@pytest.mark.parametrize(
    "ids, message",
    [
        ("tx = T.thread_id([96])", "needs a power of 2 of threads, at most 1024, got 96"),
        ("tx, ty = T.thread_id([64, 2])", r"over 1 of the dimensions of a block of \(64, 2\) is not supported by tirx"),
        ("w = T.warp_id([2])\nT.lane_id([32])\ntx = w", "needs a block of constant size"),
    ],
)
def test_allreduce_refuses(ids, message):
    ids = textwrap.indent(ids, "    ")
    text = f"@T.prim_func\ndef k(B: T.Buffer((256,), 'int32')):\n    T.device_entry()\n{ids}\n"
    with pytest.raises(tirx.DiagnosticValueError, match=message):
        tirx.from_source(text + "    T.tvm_thread_allreduce(1, tx, True, B[tx], tx)\n")
