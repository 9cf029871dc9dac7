# SPDX-License-Identifier: Apache-2.0
"""Structural equality and hash: names and places leave no trace, everything else does."""

from __future__ import annotations

import itertools

import kernels
import pytest

import tirx
from tirx import _core
from tirx.script import tirx as T

BASE = """
@T.prim_func
def f(A: T.Buffer((64, 4), "float32"), B: T.Buffer(("n",), "float32"), s: T.int32):
    n = T.int32()
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([32])
    i: T.let[T.int32] = bx * 32 + tx
    v = T.alloc_local((4,), "float32")
    x: T.float32 = T.float32(0.5)
    for k in range(4):
        v[k] = A[i, k] * T.float32(2.0)
        x = x + v[k]
    if i < n and s > 0:
        B[i] = x
    else:
        B[i] = T.exp(x)
    T.cuda.cta_sync()
"""

# each changes the meaning
CHANGES = [
    ('(64, 4), "float32"', '(64, 5), "float32"'),
    ('(64, 4), "float32"', '(64, 4), "float32", align=16'),
    ('("n",), "float32"', '("n",), "float16"'),
    ("s: T.int32", "s: T.int64"),
    ("[2]", "[3]"),
    ("cta_id([2])", 'cta_id([2], dtype="uint32")'),
    ("bx * 32 + tx", "tx * 32 + bx"),
    ("bx * 32 + tx", "bx * 32 - tx"),
    ("bx * 32 + tx", "bx * 33 + tx"),
    ("T.alloc_local", "T.alloc_shared"),
    ("range(4)", "range(3)"),
    ("range(4)", "range(1, 4)"),
    ("range(4)", "T.unroll(4)"),
    ("range(4)", "T.serial(4, unroll=2)"),
    ("range(4)", 'T.serial(4, annotations={"a": 1})'),
    ("T.float32(2.0)", "T.float32(2.5)"),
    ("A[i, k]", "A[k, i]"),
    ("v[k] = A", "v[0] = A"),
    ("i < n", "i <= n"),
    ("i < n and s > 0", "i < n or s > 0"),
    ("T.exp", "T.log"),
    ("T.cuda.cta_sync()", "T.cuda.warp_sync()"),
    ("    T.cuda.cta_sync()\n", ""),
    ("@T.prim_func", "@T.prim_func(private=True)"),
    ("    n = T.int32()", '    T.func_attr({"a": 1})\n    n = T.int32()'),
    ("x = x + v[k]", "x = v[k] + x"),
    ("float32(0.5)", "float32(-0.5)"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_changes_show(old, new):
    assert old in BASE
    a, b = tirx.from_source(BASE), tirx.from_source(BASE.replace(old, new, 1))
    assert not tirx.structural_equal(a, b)
    assert a.structural_hash() != b.structural_hash()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tx", "thread"),
        ("bx", "v"),
        ("k]", "k ]"),
        ("A", "Matrix"),
        ("    x: T", "    # a comment\n    x: T"),
        ("range(4)", "range(0, 4, 1)"),
        ("n", "n"),
        ("T.exp(x)", "(T.exp(x))"),
    ],
)
def test_names_and_places_do_not(old, new):
    a, b = tirx.from_source(BASE), tirx.from_source(BASE.replace(old, new))
    assert tirx.structural_equal(a, b)
    assert a.structural_hash() == b.structural_hash()


def test_which_variable_it_is_shows():
    a = tirx.from_source(BASE.replace("A[i, k]", "A[tx, k]"))
    b = tirx.from_source(BASE.replace("A[i, k]", "A[bx, k]"))
    assert not tirx.structural_equal(a, b)


def test_two_sizes_are_not_one():
    def two(n, m):
        @T.function
        def f(A: T.Tensor((n,), T.float32), B: T.Tensor((m,), T.float32)):
            pass

        return f

    n, m = T.dynamic("n"), T.dynamic("m")
    assert tirx.structural_equal(two(n, m), two(m, n))
    assert not tirx.structural_equal(two(n, m), two(n, n))


def test_cells_and_arrays_of_one_are_equal():
    changes = {
        "x: T.float32 = T.float32(0.5)": 'x = T.alloc_local((1,), "float32")\n    x[0] = T.float32(0.5)',
        "x = x + v[k]": "x[0] = x[0] + v[k]",
        "] = x\n": "] = x[0]\n",
        "exp(x)": "exp(x[0])",
    }
    text = BASE
    for old, new in changes.items():
        text = text.replace(old, new)
    assert tirx.structural_equal(tirx.from_source(BASE), tirx.from_source(text))


def test_shared_and_repeated_expressions_are_equal():
    def make(share):
        ctx = _core.Context()
        b = _core.Builder(ctx, "f", "g1")
        A = _core.buffer(ctx, "A", (8,), "int32")
        b.param("A", A)
        x = b.bind("x", A[0])
        e = x * x
        b.store(A, (0,), e + e if share else x * x + x * x)
        return b.finish()

    assert tirx.structural_equal(make(True), make(False))
    assert make(True).structural_hash() == make(False).structural_hash()


def test_all_kernels_differ_and_equal_themselves():
    functions = [k.make() for k in kernels.KERNELS.values()]
    again = [k.make() for k in kernels.KERNELS.values()]
    for a, b in zip(functions, again, strict=True):
        assert tirx.structural_equal(a, b)
        assert a.structural_hash() == b.structural_hash()
    assert len({f.structural_hash() for f in functions}) >= len(functions) - 1
    for a, b in itertools.combinations(functions, 2):
        if a.structural_hash() != b.structural_hash():
            assert not tirx.structural_equal(a, b)


def test_expressions():
    ctx = _core.Context()
    x, y = (_core.var(ctx, "let", n, "int32") for n in "xy")
    A = _core.buffer(ctx, "A", (8,), "int32")
    assert _core.equal(x + 1, x + 1) and not _core.equal(x + 1, y + 1)
    assert _core.equal(A[x] + 1, A[x] + 1) and not _core.equal(A[x], A[y])
    v, w = (_core.var(ctx, "let", n, "int32") for n in "vw")
    assert _core.equal(_core.let(ctx, v, x, v + 1), _core.let(ctx, w, x, w + 1))
    assert not _core.equal(_core.let(ctx, v, x, v + 1), _core.let(ctx, w, x, x + 1))
