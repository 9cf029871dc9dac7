# SPDX-License-Identifier: Apache-2.0
"""Buffers and regions: attributes, subscripts, one element as a number, what is refused."""

from __future__ import annotations

import pytest

import tirx.errors  # noqa: F401
from tirx import _core


@pytest.fixture
def buffer(ctx):
    return lambda name, shape, dtype="float32", *args, **more: _core.buffer(ctx, name, shape, dtype, *args, **more)


def first_line(error, fn):
    with pytest.raises(error) as e:
        fn()
    return str(e.value).split("\n")[0].removeprefix("kernel.py:1:7: error: ")


def test_attributes(ctx, buffer, var):
    n = var("n", "int32")
    a = buffer("A", (n, 4), "float16", "shared", align=16, strides=(8, 1), elem_offset=n * 2)
    assert (a.name, a.dtype, a.scope(), a.align, a.is_cell) == ("A", "float16", "shared", 16, False)
    assert a.shape[0] is n and a.shape[1] == 4
    assert a.strides == (8, 1)
    assert str(a.elem_offset) == "n * 2"
    assert (a.data.dtype, a.data.elem, a.data.scope()) == ("handle", "float16", "shared")
    assert a.data.buffer is a
    assert a.value is a and a.buffer is a and a.origin is None
    assert a.layout == "default" and buffer("B", 4, layout=None).layout is None
    assert a.allocated_addr == [] and buffer("T", (1, 4), scope="tmem", allocated_addr=8).allocated_addr == [8]
    b = buffer("B", 7)
    assert (b.shape, b.given_strides, b.elem_offset, b.dtype, b.scope()) == ((7,), None, 0, "float32", "global")
    assert repr(a) == "Buffer(A: (n, 4), float16, shared)"
    assert buffer("C", ()).shape == ()


def test_there_is_one_object_a_buffer(ctx, buffer, var):
    a = buffer("A", (4,))
    load = a[var("i", "int32")]
    assert load.buffer is a
    assert len({a, load.buffer}) == 1
    del a
    again = load.buffer
    assert again.name == "A" and again is load.buffer


def test_loads(buffer, var):
    i = var("i", "int32")
    a = buffer("A", (4, 8), "int32")
    load = a[i, 3]
    assert (load.op, load.dtype, load.buffer) == ("LOAD", "int32", a)
    assert load.args[0] is i and load.args[1].value == 3
    assert str(a[(i, 3)]) == str(a[*(i, 3)]) == str(a.load(i, 3)) == "A[i, 3]"
    assert str(buffer("Z", ())[()]) == "Z[()]"
    cell = buffer("c", (1,), "int32")
    assert str(a[cell, cell + 1]) == "A[c[0], c[0] + 1]"


def test_pointers(ctx, buffer, var):
    a = buffer("A", (4, 8), "int32", "shared")
    p = a.ptr_to([1, 2])
    assert (p.op, p.dtype, p.elem, p.scope()) == ("ADDRESS_OF", "handle", "int32", "shared")
    assert str(p.args[0]) == "A[1, 2]"
    assert str(_core.address_of(ctx, a).args[0]) == "A[0, 0]"
    assert str(_core.address_of(ctx, a[1:3, 4:8]).args[0]) == "A[1, 4]"
    assert str(_core.address_of(ctx, a[1, 2]).args[0]) == "A[1, 2]"


def test_one_element_acts_as_a_number(buffer, var):
    z, c = buffer("z", (1, 1), "int32"), buffer("c", (1,), "float32")
    assert str(z + 1) == "z[0, 0] + 1"
    assert (2.0 * c).dtype == "float32"
    assert (z < c).dtype == "bool"
    assert (-c).op == "NEG" and abs(c).op == "ABS" and round(c).op == "ROUND"
    assert (+c).op == "LOAD"
    assert str(var("i", "int32") + z) == "i + z[0, 0]"
    assert hash(z) == hash(z)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((4,), "'z' is a buffer of shape (4,); index it: z[0]"),
        ((2, 3), "'z' is a buffer of shape (2, 3); index it: z[0, 0]"),
        ((1, 1, 2), "'z' is a buffer of shape (1, 1, 2); index it: z[0, 0, 0]"),
    ],
)
def test_more_elements_are_no_number(buffer, var, shape, text):
    z, i = buffer("z", shape), var("i", "int32")
    for fn in (lambda: z + 1, lambda: 1 - z, lambda: i * z, lambda: -z, lambda: z == 1, lambda: bool(z), lambda: z[z]):
        assert first_line(TypeError, fn) == text


def test_a_symbolic_shape_is_no_number(buffer, var):
    z = buffer("z", (var("n", "int32"), 1))
    assert first_line(TypeError, lambda: z + 1) == "'z' is a buffer of shape (n, 1); index it: z[0, 0]"


def test_regions(buffer, var):
    i = var("i", "int32")
    a = buffer("A", (16, 32))
    r = a[2:6, i : i + 8]
    assert isinstance(r, _core.Region) and r.buffer is a and r.dtype == "float32"
    assert r.start[0] == 2 and r.start[1] is i
    assert r.extent == (4, 8)
    assert str(r[1, 2]) == "A[3, i + 2]"
    assert (a[:, 4:].start, a[:, 4:].extent) == ((0, 4), (16, 28))
    row = a[i]
    assert row.start[0] is i and row.extent == (1, 32)
    assert str(row[3]) == str(a[i][3]) == "A[i, 3]"
    assert str(a[2:6][1][4]) == "A[3, 4]"
    assert a[4:12][2:4].start[0] == 6 and a[4:12][2:4].extent[0] == 2
    assert a[4:12][2:].extent[0] == 6
    assert a[i + 4 : i + 9].extent[0] == 5
    assert a[4 + i : i].extent[0] == -4


def test_a_row_of_a_region_is_a_vector(ctx, buffer, var):
    i = var("i", "int32")
    a = buffer("A", (4, 32))
    assert (a[1, 4:8] + 1.0).dtype == "float32x4"
    assert _core.as_expr(ctx, a[1, i : i + 2]).args[1].op == "RAMP"
    assert _core.as_expr(ctx, a[1, i : i + 1]).dtype == "float32"
    assert a[1, 0:4:1].op == "LOAD" and a[1, 0:4:1].dtype == "float32x4"
    assert first_line(TypeError, lambda: a[0:2, 0:4] + 1) == (
        "a number or an expression is expected, got a region of several rows"
    )
    assert first_line(ValueError, lambda: a[0, i:] + 1) == "the slice of dimension 1 of buffer A has no constant length"


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda a, i, f: a[i, i], ValueError,
         "Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices"),
        (lambda a, i, f: a[i:, i], ValueError,
         "Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices"),
        (lambda a, i, f: a.load(), ValueError,
         "Buffer A is 1-dimensional, cannot be indexed with the 0-dimensional indices"),
        (lambda a, i, f: a.ptr_to([i, i]), ValueError,
         "Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices"),
        (lambda a, i, f: a[0:4][0, 1], ValueError,
         "Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices"),
        (lambda a, i, f: a[f], TypeError, "index 0 of buffer A must be an integer, got float32"),
        (lambda a, i, f: a[1.0], TypeError, "index 0 of buffer A must be an integer, got float32"),
        (lambda a, i, f: a[0:f], TypeError, "index 0 of buffer A must be an integer, got float32"),
        (lambda a, i, f: a[16], ValueError, "index 16 is outside 0..15 in dimension 0 of buffer A"),
        (lambda a, i, f: a[-1], ValueError, "index -1 is outside 0..15 in dimension 0 of buffer A"),
        (lambda a, i, f: a["x"], TypeError, "a number or an expression is expected, got str"),
        (lambda a, i, f: a[None], TypeError, "a number or an expression is expected, got None"),
        (lambda a, i, f: a[0:8:2], ValueError, "Buffer slices with a non-unit step are not supported"),
        (lambda a, i, f: a[0:8:i], ValueError, "Buffer slices with a non-unit step are not supported"),
        (lambda a, i, f: a[0:16][0:8:2], ValueError, "Buffer slices with a non-unit step are not supported"),
        (lambda a, i, f: a[4:2:1], ValueError,
         "a slice of -2 elements of buffer A is not a vector: 1 to 64 lanes are possible"),
    ],
)  # fmt: skip
def test_refused_subscripts(buffer, var, fn, error, text):
    a, i, f = buffer("A", (16,)), var("i", "int32"), var("f", "float32")
    assert first_line(error, lambda: fn(a, i, f)) == text


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda b, v: b("A", (2, -3)), ValueError, "extent 1 of the shape is negative: -3"),
        (lambda b, v: b("A", (2.5,)), TypeError, "extent 0 of the shape must be an integer, got float32"),
        (lambda b, v: b("A", (1,) * 17), ValueError, "buffer A has 17 dimensions, more than 16"),
        (lambda b, v: b("A", (1,), "float33"), ValueError, "unknown dtype 'float33'; did you mean 'float32'?"),
        (lambda b, v: b("A", (1,), 7), ValueError, "unknown dtype '7'"),
        (lambda b, v: b("A", (1,), scope="shard"), ValueError, "unknown storage scope 'shard'"),
        (lambda b, v: b("A", (1,), elem_offset=1, byte_offset=4), ValueError,
         "elem_offset and byte_offset cannot be set at the same time"),
        (lambda b, v: b("A", (2, 2), strides=(1,)), ValueError,
         "Buffer A is 2-dimensional, cannot be indexed with the 1-dimensional indices"),
    ],
)  # fmt: skip
def test_refused_buffers(buffer, var, make, error, text):
    assert first_line(error, lambda: make(buffer, var)) == text


def test_the_largest_rank(buffer):
    assert len(buffer("A", (1,) * 16).shape) == 16


def test_views_share_the_data_variable(buffer):
    a = buffer("A", (16,))
    v = buffer("V", (4, 4), data=a.data)
    assert v.origin is a
    assert (v.data.elem, v.data.scope()) == ("float32", "global")


def test_dtypes_of_other_libraries(ctx):
    import ml_dtypes
    import numpy as np

    class Mine:
        __tirx_dtype__ = "uint16"

    for x, text in [
        (np.float32, "float32"),
        (np.dtype("int8"), "int8"),
        (np.bool_, "bool"),
        (np.dtype(bool), "bool"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.float8_e4m3fn), "float8_e4m3fn"),
        (ml_dtypes.float4_e2m1fn, "float4_e2m1fn"),
        (Mine(), "uint16"),
        ("f16", "float16"),
        ("boolean", "bool"),
        ("float32x4", "float32x4"),
    ]:
        assert _core.parse_dtype(x) == text
        assert _core.as_expr(ctx, 1, x).dtype == text
    for x in ("float99", "float32x", "", None, 3, int, np.dtype("datetime64[s]"), "float32x65"):
        with pytest.raises(ValueError, match="unknown dtype"):
            _core.parse_dtype(x)


def test_dtypes_of_torch(torch):
    for name in ("float32", "bfloat16", "int64", "uint8", "bool", "float8_e4m3fn"):
        assert _core.parse_dtype(getattr(torch, name)) == name
    assert _core.parse_dtype(torch.half) == "float16"
