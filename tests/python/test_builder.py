# SPDX-License-Identifier: Apache-2.0
"""The Builder: every statement it makes, as printed; what it refuses; which one is current."""

from __future__ import annotations

import threading

import pytest

from tirx import _core

HEADER = "# from tirx.script import tirx as T\n\n"


def first_line(error, fn):
    with pytest.raises(error) as e:
        fn()
    return str(e.value).split("\n")[0].removeprefix("kernel.py:1:7: error: ")


@pytest.fixture
def kernel(ctx):
    """kernel(body): the printed statements of a device zone that body(builder, A) makes; A is a parameter."""

    def make(body, dialect="g1"):
        b = _core.Builder(ctx, "k", dialect)
        a = _core.buffer(ctx, "A", (64,), "float32")
        b.param("A", a)
        b.set_symbol("k")
        b.activate()
        try:
            b.device_entry()
            b.scope_id("thread_id", ["tx"], [32])
            body(b, a)
            text = b.finish().script()
        finally:
            b.deactivate()
        lines = text.split("\n    tx = T.thread_id([32])\n")[1].rstrip("\n").split("\n")
        return [line[4:] for line in lines]

    return make


def test_stores_and_values(kernel, ctx):
    def body(b, a):
        x = b.bind("x", 3)
        y = b.bind("y", 2.5)
        z = b.bind("z", 7, "uint8")
        assert (x.dtype, y.dtype, z.dtype) == ("int32", "float32", "uint8")
        a[x] = y
        a[0] = 1
        a[1] = x
        b.store(a, [2], 2)
        c = b.cell("c", "int64", z)
        assert c.is_cell and c.shape == (1,)
        c[0] = c + 1
        a[4:8] = a[0:4]
        a[8:12] = 0
        b.evaluate(x)

    assert kernel(body) == [
        "x: T.let[T.int32] = 3",
        "y: T.let[T.float32] = T.float32(2.5)",
        "z: T.let[T.uint8] = T.uint8(7)",
        "A[x] = y",
        "A[0] = T.float32(1.0)",
        'A[1] = T.Cast("float32", x)',
        "A[2] = T.float32(2.0)",
        'c: T.int64 = T.Cast("int64", z)',
        "c = c + T.int64(1)",
        "A[4:8] = A[0:4]",
        "A[8:12] = T.Broadcast(T.float32(0.0), 4)",
        "T.evaluate(x)",
    ]


def test_control(kernel, ctx):
    def body(b, a):
        i = b.open_for("i", 0, 4)
        assert b.in_loop and i.dtype == "int32"
        b.open_if(i < 2)
        a[i] = 1.0
        b.continue_()
        b.close()
        b.open_else()
        b.break_()
        b.close()
        b.close()
        assert not b.in_loop
        b.open_for("j", 3, 30, 3, kind="unroll", annotations={"k": 1})
        b.close()
        b.open_for("v", 0, 4, kind="vectorized")
        b.close()
        c = b.cell("c", "int32", 0)
        b.open_while(c < 4)
        c[0] = c + 1
        b.close()
        b.open_if(c)
        b.return_()
        b.close()
        b.assert_(c == 4, "ValueError", ["c is ", "wrong"])

    assert kernel(body) == [
        "for i in range(4):",
        "    if i < 2:",
        "        A[i] = T.float32(1.0)",
        "        continue",
        "    else:",
        "        break",
        'for j in T.unroll(3, 30, step=3, annotations={"k": 1}):',
        "    pass",
        "for v in T.vectorized(4):",
        "    pass",
        "c: T.int32 = 0",
        "while c < 4:",
        "    c = c + 1",
        "if c != 0:",
        "    return",
        'assert c == 4, ("ValueError", ["c is ", "wrong"])',
    ]


def test_a_flat_form_ends_with_the_block_around_it(kernel):
    def body(b, a):
        b.open_for("i", 0, 4)
        b.attr("pragma_x", 1)
        depth = b.depth
        a[0] = 1.0
        b.close()
        assert b.depth == depth - 2
        b.open_attr("pragma_y", "s")
        a[1] = 1.0
        b.close()
        a[2] = 1.0

    text = "\n".join(kernel(body))
    assert "pragma_x" in text and "pragma_y" in text
    assert text.split("\n")[-1] == "A[2] = T.float32(1.0)"


def test_bounds_are_taken_once(kernel):
    def body(b, a):
        n = b.cell("n", "int32", 4)
        b.open_for("i", n, n + 8)
        n[0] = 0
        b.close()

    assert kernel(body) == [
        "n: T.int32 = 4",
        "i_stop: T.let[T.int32] = n + 8",
        "for i in range(n, i_stop):",
        "    n = 0",
    ]


@pytest.mark.parametrize(
    ("start", "stop", "dtype", "result"),
    [
        (0, 10, None, "int32"),
        (0, 2**40, None, "int64"),
        (0, "int64", None, "int64"),
        ("uint32", 8, None, "uint32"),
        ("int32", "int64", None, "int64"),
        (0, "int64", "int32", "int32"),
        (0, 4, "uint32", "uint32"),
    ],
)
def test_dtype_of_the_loop_variable(ctx, var, builder, start, stop, dtype, result):
    bound = [var("n", x) if isinstance(x, str) else x for x in (start, stop)]
    assert builder.open_for("i", *bound, dtype=dtype).dtype == result


def test_hoisted_cells_stand_before_the_open_blocks(kernel):
    def body(b, a):
        level = b.depth - 1
        b.open_if(a[0] < 1.0)
        c = b.hoist_cell("c", "float32", level)
        c[0] = 1.0
        b.close()
        a[0] = c

    assert kernel(body) == [
        "c: T.float32",
        "if A[0] < T.float32(1.0):",
        "    c = T.float32(1.0)",
        "A[0] = c",
    ]


def test_handles_become_the_buffer_they_are_matched_with(ctx):
    b = _core.Builder(ctx, "k", "g1")
    p = _core.var(ctx, "param", "A_ptr", "handle")
    n = _core.var(ctx, "symbol", "n", "int32")
    b.param("A_ptr", p)
    b.add_symbol(n)
    b.add_symbol(n)
    a = _core.buffer(ctx, "A", (n,), "float16")
    b.match(p, a)
    b.device_entry(launch={"grid": [n], "block": [64], "cluster": None, "pdl": 1})
    f = b.finish()
    (name, x), *rest = f.params
    assert (name, x, rest) == ("A_ptr", a, [])
    assert a.data.elem == "float16"


def test_the_head_of_a_function(ctx):
    b = _core.Builder(ctx, "k", "g2")
    x = _core.var(ctx, "param", "x", "int32")
    b.param("x", x)
    b.set_name("other")
    b.set_symbol("sym")
    b.set_ret("int32")
    b.set_flags(2)
    b.set_attr("a", 1)
    b.set_attr("b", "text")
    b.set_attr("a", 2)
    b.set_attr("c", [1, "two", 3.0, True])
    assert (b.name, b.dialect, b.flags, b.zone) == ("other", "g2", 2, "host")
    b.return_(x + 1)
    f = b.finish()
    assert (f.__name__, f.symbol, f.dialect, f.flags, f.ret_type) == ("other", "sym", "g2", 2, "int32")
    assert f.attrs == {"a": 2, "b": "text", "c": [1, "two", 3.0, True], "global_symbol": "sym"}
    assert f.params == [("x", x)]
    assert f.ctx is ctx and ctx.frozen


def test_nothing_is_current_by_default(ctx, var):
    assert _core.current() is None
    a = _core.buffer(ctx, "A", (4,))
    assert first_line(RuntimeError, lambda: a.__setitem__(0, 1)) == "no builder is active"


def test_builders_nest_and_belong_to_their_thread(ctx):
    a, b = _core.Builder(ctx, "a", "g1"), _core.Builder(ctx, "b", "g1")
    a.activate()
    b.activate()
    seen = []

    def other():
        c = _core.Builder(_core.Context(), "c", "g1")
        seen.append(_core.current())
        c.activate()
        seen.append(_core.current() is c)
        c.deactivate()
        seen.append(_core.current())

    t = threading.Thread(target=other)
    t.start()
    t.join()
    assert seen == [None, True, None]
    assert _core.current() is b
    with pytest.raises(RuntimeError):
        a.deactivate()
    with pytest.raises(RuntimeError):
        b.activate()
    b.deactivate()
    assert _core.current() is a
    a.deactivate()
    assert _core.current() is None
    with pytest.raises(RuntimeError):
        a.deactivate()


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (lambda b, i, f: b.open_for("i", 0, f), TypeError, "a loop bound must be an integer, got float32"),
        (lambda b, i, f: b.open_for("i", 0, 1.5), TypeError, "a loop bound must be an integer, got float32"),
        (lambda b, i, f: b.open_for("i", 0, 4, 0), ValueError, "range step cannot be zero"),
        (lambda b, i, f: b.open_for("i", 0, 4, i), ValueError, "the sign of the loop step i is not known"),
        (lambda b, i, f: b.open_for("i", 0, 4, dtype="int64"), ValueError,
         'dtype of a loop/scope-id var must be "int32" or "uint32"'),
        (lambda b, i, f: b.scope_id("warp_id", ["w"], [4], dtype="int64"), ValueError,
         'dtype of a loop/scope-id var must be "int32" or "uint32"'),
        (lambda b, i, f: b.scope_id("cta_id", ["w"], [1, 1, 1, 1]), ValueError, "T.cta_id takes 1 to 3 extents, got 4"),
        (lambda b, i, f: b.close(), RuntimeError, "the end of a block without an open block that it belongs to"),
        (lambda b, i, f: b.open_else(), RuntimeError, "else without an open block that it belongs to"),
        (lambda b, i, f: b.attr("k", object()), TypeError,
         "attribute 'k' takes a number, a string, an expression or a list of them, got object"),
        (lambda b, i, f: b.set_attr("k", [[1]]), TypeError,
         "attribute 'k' takes a number, a string, an expression or a list of them, got a list of lists"),
        (lambda b, i, f: b.match(i, _core.buffer(b.ctx, "A", (1,))), ValueError,
         "Can not bind non-input param to buffer."),
        (lambda b, i, f: b.cell("c", "int33"), ValueError, "unknown dtype 'int33'; did you mean 'int32'?"),
        (lambda b, i, f: b.cell("c", "int32", scope="lokal"), ValueError, "unknown storage scope 'lokal'"),
        (lambda b, i, f: b.store(_core.buffer(b.ctx, "A", (4, 4)), (i,), 1), ValueError,
         "Buffer A is 2-dimensional, cannot be indexed with the 1-dimensional indices"),
        (lambda b, i, f: b.store(_core.buffer(b.ctx, "A", (4, 4)), (slice(0, 5), i), 1), ValueError,
         "index 4 is outside 0..3 in dimension 0 of buffer A"),
        (lambda b, i, f: b.store(_core.buffer(b.ctx, "A", (99,)), (slice(9, 9),), 1), ValueError,
         "a slice of 0 elements of buffer A is not a vector: 1 to 64 lanes are possible"),
        (lambda b, i, f: b.store(_core.buffer(b.ctx, "A", (99,)), slice(0, 2),
                                 _core.buffer(b.ctx, "B", (9,))[0:4]), TypeError,
         "Incompatible types in BufferStore: LHS is `T.float32x2`, RHS is `T.float32x4`"),
    ],
)  # fmt: skip
def test_refused_statements(ctx, var, builder, fn, error, text):
    assert first_line(error, lambda: fn(builder, var("i", "int32"), var("f", "float32"))) == text


def test_a_float_stored_to_an_integer_warns(ctx, builder, var):
    _core.buffer(ctx, "A", (4,), "int32")[0] = var("f", "float32")
    assert ctx.take_warnings() == [
        ("Casting in BufferStore may lose precision: float32 to int32", "kernel.py", 1, "STORE_PRECISION")
    ]
    assert ctx.take_warnings() == []


def test_a_finished_builder_takes_nothing_more(ctx):
    b = _core.Builder(ctx, "k", "g1")
    b.finish()
    for fn in (b.break_, b.close, b.finish, lambda: b.bind("x", 1), lambda: b.device_entry()):
        assert first_line(RuntimeError, fn) == "the builder of 'k' is finished"


def test_a_function_has_at_most_512_parameters(ctx):
    b = _core.Builder(ctx, "k", "g1")
    for i in range(512):
        b.param(f"x{i}", _core.var(ctx, "param", f"x{i}", "int32"))
    y = _core.var(ctx, "param", "y", "int32")
    assert first_line(ValueError, lambda: b.param("y", y)) == "more than 512 parameters"


def test_an_ill_formed_function_is_refused(ctx, builder):
    a = _core.buffer(ctx, "A", (4,))
    a[0] = 1.0
    with pytest.raises(SyntaxError):
        builder.finish()
