# SPDX-License-Identifier: Apache-2.0
"""How single things print: every form, the text compared whole, and that it parses back to the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tirx
from tirx import _core
from tirx.script import tirx as T


def builder(dialect="g1", name="f"):
    ctx = _core.Context()
    b = _core.Builder(ctx, name, dialect)
    b.set_symbol(name)
    return ctx, b


def body(f, **options) -> str:
    """The text below the `def` line."""
    lines = f.script(**options).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line[4:] for line in lines[at + 1 :])


def device(make, *, dialect="g1"):
    """A kernel whose device zone holds what make(ctx, builder, A) emits; A is an int32 parameter of 64 elements."""
    ctx, b = builder(dialect)
    A = _core.buffer(ctx, "A", (64,), "int32")
    b.param("A", A)
    b.device_entry()
    make(ctx, b, A)
    return b.finish()


def statement(make, **options) -> str:
    return body(device(make), **options).removeprefix("T.device_entry()\n")


def expression(make) -> str:
    """The text of make(ctx, x, y), stored into A[0]; x and y are int32."""

    def emit(ctx, b, A):
        x, y = b.bind("x", A[1]), b.bind("y", A[2])
        b.store(A, (0,), make(ctx, x, y))

    f = device(emit)
    assert tirx.structural_equal(f, tirx.from_source(f.script())), f.script()
    return body(f).splitlines()[-1].removeprefix("A[0] = ")


# ---- expressions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, want", [("T.Min(1.5, 2)", "T.Min(T.float32(1.5), T.float32(2.0))"), ("T.EQ(1, 2)", "T.EQ(1, 2)")]
)
def test_node_constructors_of_plain_numbers(text, want):
    f = tirx.from_source(f"@T.prim_func\ndef f():\n    T.evaluate({text})\n")
    assert body(f) == f"T.evaluate({want})"


@pytest.mark.parametrize(
    "text",
    [
        "x + y - (x - y)",
        "x - (y + 1)",
        "(x + 1) * y",
        "x * y // 3 % 5",
        "x * (y // 3)",
        "x // (y * 3)",
        "-x * y",
        "-(x * y)",
        "~(x + y)",
        "x - -3",
        "x << y + 1",
        "(x << y) + 1",
        "x & y | x ^ y",
        "x & (y | x) ^ y",
        "(x ^ y) & 7",
        "x >> (y & 31)",
        "T.min(x + 1, T.max(y, 3))",
        "T.truncdiv(x, y) + T.truncmod(x, y)",
        "T.ceildiv(x, y)",
        "T.if_then_else(x < y, x, y)",
        "T.if_then_else(x < y and (x > 0 or y > 0), 1, 0)",
        "T.if_then_else(x < y and x > 0 or not y > 0, 1, 0)",
        "T.Select(not (x == y and x < 3), x, y)",
        "T.Select((x < y) == (y < 3), x, y)",
        'T.Cast("int32", T.Cast("int64", x) * T.int64(5000000000))',
        'T.Cast("int32", T.Cast("float32", x) / T.float32(3.0))',
        'T.reinterpret("int32", T.Cast("float32", x))',
        'T.Cast("int32", T.uint32(4294967295) - T.Cast("uint32", x))',
        "T.popcount(x) + T.clz(x)",
        'T.cuda.thread_idx("y") + T.cuda.lane_id()',
        "T.Add(1, 2) + x",
        "T.Mul(x, 0)",
        "T.Min(x, x)",
        "0 - x",
        "T.Select(T.LT(1, 2), x, y)",
        "T.Select(T.Not(T.bool(True)), x, y)",
        'T.call_intrin("int32", "ABS", -3)',
        'T.Cast("int32", T.exp(T.Cast("float32", x)))',
        "T.fma(x, y, 3)",
    ],
)
def test_expressions_print_as_they_are_written(text):
    source = f"""
@T.prim_func
def f(A: T.Buffer((64,), "int32")):
    T.device_entry()
    x: T.let[T.int32] = A[1]
    y: T.let[T.int32] = A[2]
    A[0] = {text}
"""
    f = tirx.from_source(source)
    assert body(f).splitlines()[-1] == "A[0] = " + text
    again = tirx.from_source(f.script())
    assert tirx.structural_equal(f, again)


def test_operators_that_would_fold_keep_their_named_form():
    assert expression(lambda c, x, y: _core.make(c, "ADD", "int32", (x, 0))) == "T.Add(x, 0)"
    assert expression(lambda c, x, y: x + 0) == "x"
    assert expression(lambda c, x, y: _core.make(c, "FLOORDIV", "int32", (7, 2))) == "T.FloorDiv(7, 2)"
    assert expression(lambda c, x, y: _core.make(c, "CAST", "int32", (_core.literal(c, "int64", 7),))) == (
        'T.call_intrin("int32", "CAST", T.int64(7))'
    )


@pytest.mark.parametrize(
    ("dtype", "value", "text"),
    [
        ("float32", 2.0, "T.float32(2.0)"),
        ("float32", 0.1, "T.float32(0.1)"),
        ("float64", 0.1, "T.float64(0.1)"),
        ("float32", 1e-5, "T.float32(1e-05)"),
        ("float32", 1.5e-30, "T.float32(1.5e-30)"),
        ("float32", 1e15, "T.float32(999999986991104.0)"),
        ("float32", 3.4028234663852886e38, "T.float32(3.4028235e+38)"),
        ("float32", 16777216.0, "T.float32(16777216.0)"),
        ("float16", 0.1, "T.float16(0.1)"),
        ("float16", 65504.0, "T.float16(65504.0)"),
        ("bfloat16", 3.140625, "T.bfloat16(3.14)"),
        ("float32", -0.0, "T.float32(-0.0)"),
        ("float32", math.inf, 'T.float32("inf")'),
        ("float64", -math.inf, 'T.float64("-inf")'),
        ("float32", math.nan, 'T.float32("nan")'),
        ("int64", -5, "T.int64(-5)"),
        ("uint64", 2**64 - 1, "T.uint64(18446744073709551615)"),
        ("int8", -128, "T.int8(-128)"),
        ("uint32", 2**32 - 1, "T.uint32(4294967295)"),
        ("int32", -(2**31), "-2147483648"),
        ("bool", True, "T.bool(True)"),
    ],
)
def test_literals(dtype, value, text):
    ctx, b = builder()
    O = _core.buffer(ctx, "O", (1,), dtype)
    b.param("O", O)
    b.device_entry()
    b.store(O, (0,), _core.literal(ctx, dtype, value if math.isfinite(value) else str(value)))
    f = b.finish()
    assert body(f) == f"T.device_entry()\nO[0] = {text}"
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


@settings(max_examples=300, deadline=None)
@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False), st.floats(width=16, allow_nan=False))
def test_floats_read_back_exactly(a, b, c):
    for dtype, value in (("float32", a), ("float64", b), ("float16", c)):
        ctx = _core.Context()
        e = _core.literal(ctx, dtype, value if math.isfinite(value) else str(value))
        text = str(e)
        read = eval(text, {"T": _Literals()})
        made = np.dtype(dtype).type(read)
        assert made == value and math.copysign(1, made) == math.copysign(1, value), text
        if math.isfinite(value) and dtype == "float64":
            assert len(text) <= len(f"T.float64({value!r})") + 1


NARROW = [t for t, _, c, _, _ in _core.dtypes() if c == "M"]


@pytest.mark.parametrize("dtype", NARROW)
def test_every_narrow_float_reads_back(dtype):
    """The shortest text is one that the dtype's range check takes: 7.5 of float6_e2m3fn is not written 8.0."""
    bits = {t: b for t, _, _, b, _ in _core.dtypes()}[dtype]
    ctx = _core.Context()
    for code in range(1 << bits):
        value = _core.decode(dtype, code)
        if math.isfinite(value):
            text = str(_core.literal(ctx, dtype, value))
            head, _, number = text[:-1].partition("(")
            assert head == f"T.{dtype}"
            assert _core.literal(ctx, dtype, float(number)).value == value, text


class _Literals:
    float16 = float32 = float64 = staticmethod(float)


def body_of_vectors(statement: str):
    return tirx.from_source(f"""
@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    {statement}
""")


@pytest.mark.parametrize(
    "statement",
    [
        "B[tx, 0:2] = A[B[tx, 1] % 4, 6:8:1]",
        "B[tx, 1:5] = A[B[tx, 1] % 4, T.ramp(2, 1, 4)]",
        "v: T.let = A[tx, 0:4:1]\n    B[tx, 0:4] = v * v",
        "B[tx, 1:3] = A[tx, 2:4:1]",
        "for i in T.vectorized(4):\n        B[tx, i] = T.Select(A[tx, i] > 3, A[tx, i], B[tx, i])",
        "for i in T.vectorized(2):\n        B[tx, i] = T.Select(tx, A[tx, i], 2)",
        "if tx >= 0:\n        return\n    B[tx, 1] = 3",
        "B[A[tx, 1] ** 3 % 4, 1] //= 7",
        "B[tx, 1] = T.ceildiv(bx > A[0, 1] <= 1, A[tx, 0])",
        'B[tx, 1] = 1 >> (T.cuda.block_idx("z") | T.max_value("int32"))',
        'B[tx, 1] = A[tx, 1] << (T.cuda.block_idx("z") - 1)',
        'B[tx, 1] = T.truncdiv(2, T.cuda.thread_idx("y")) + A[tx, 1] // T.cuda.block_idx("y")',
        'B[tx, 1] = T.truncmod(A[tx, 1], T.cuda.block_idx("y")) + A[tx, 0] % T.cuda.block_idx("y")',
    ],
)
def test_what_lowering_makes_parses_back(statement):
    """Accesses of several lanes as make_vector indices, slices from a base that loads, choices lane by lane, no code
    behind a return, one T.Let in several places."""
    f = body_of_vectors(statement)
    assert tirx.structural_equal(f, tirx.from_source(f.script())), f.script()
    lowered = tirx.lower(f, target="cuda:sm_90a")
    assert tirx.structural_equal(lowered, tirx.from_source(lowered.script())), lowered.script()


# ---- statements --------------------------------------------------------------------------------------------


def test_cells_print_as_typed_names():
    def emit(ctx, b, A):
        x = b.cell("x", "int32", 0)
        y = b.cell("y", "float32")
        b.store(x, (0,), x.load(0) + A[1])
        b.store(y, (0,), 1.5)
        b.store(A, (0,), x.load(0))

    assert statement(emit) == "x: T.int32 = 0\ny: T.float32\nx = x + A[1]\ny = T.float32(1.5)\nA[0] = x"
    assert statement(emit, dialect="g2") == (
        "x = T.alloc_local((1,), T.int32)\nx[0] = 0\ny = T.alloc_local((1,), T.float32)\n"
        "x[0] = x[0] + A[1]\ny[0] = T.float32(1.5)\nA[0] = x[0]"
    )
    assert statement(emit, syntax_sugar=False).startswith('x = T.local_scalar("int32")\nx = 0\n')


def test_a_first_store_that_reads_the_cell_stands_alone():
    def emit(ctx, b, A):
        x = b.cell("x", "int32")
        b.store(x, (0,), x.load(0) + 1)

    assert statement(emit) == "x: T.int32\nx = x + 1"


def test_an_array_of_one_element_prints_as_written():
    f = device(lambda c, b, A: (v := _core.buffer(c, "v", (1,), "int32", "local"), b.alloc(v), b.store(v, (0,), 3)))
    assert body(f) == 'T.device_entry()\nv = T.alloc_local((1,), "int32")\nv[0] = 3'


def test_names_are_unique_in_the_order_of_printing():
    def emit(ctx, b, A):
        for _ in range(3):
            k = b.open_for("k", 0, 4)
            b.store(A, (k,), k)
            b.close()
        b.store(A, (0,), b.bind("A", 1))
        b.store(A, (0,), b.bind("for", 1))
        b.store(A, (0,), b.bind("a b", 1))
        b.store(A, (0,), b.bind("", 1))
        b.store(A, (0,), b.bind("T", 1))

    lines = statement(emit).splitlines()
    assert lines[0:6:2] == ["for k in range(4):", "for k_1 in range(4):", "for k_2 in range(4):"]
    assert [line.split(":")[0] for line in lines[6::2]] == ["A_1", "for_1", "a_b", "v", "T_1"]


def test_loops():
    def emit(ctx, b, A):
        for start, stop, step, options in [
            (0, 4, 1, {}),
            (1, 4, 1, {}),
            (8, 0, -2, {}),
            (0, 4, 1, {"unroll": -1}),
            (0, 4, 1, {"unroll": 4}),
            (2, 9, 3, {"kind": "unroll"}),
            (0, 4, 1, {"kind": "vectorized"}),
            (0, 4, 1, {"annotations": {"a": 1, "b": "text", "c": True}}),
        ]:
            b.open_for("i", start, stop, step, **options)
            b.close()

    assert [line for line in statement(emit).splitlines() if line.startswith("for")] == [
        "for i in range(4):",
        "for i_1 in range(1, 4):",
        "for i_2 in range(8, 0, -2):",
        "for i_3 in T.serial(4, unroll=True):",
        "for i_4 in T.serial(4, unroll=4):",
        "for i_5 in T.unroll(2, 9, step=3):",
        "for i_6 in T.vectorized(4):",
        'for i_7 in T.serial(4, annotations={"a": 1, "b": "text", "c": True}):',
    ]


def test_branches():
    def emit(ctx, b, A):
        b.open_if(A[0] < 1)
        b.close()
        b.open_else()
        b.open_if(A[0] < 2)
        b.store(A, (0,), 1)
        b.close()
        b.open_else()
        b.store(A, (0,), 2)
        b.close()
        b.close()

    assert statement(emit) == "if A[0] < 1:\n    pass\nelif A[0] < 2:\n    A[0] = 1\nelse:\n    A[0] = 2"


def test_strings_are_printed_in_line():
    text = 'a "quoted"\n\ttext \\ with \x01 and ü'

    @T.prim_func
    def f():
        T.device_entry()
        T.cuda.func_call("g", source_code=text)

    line = body(f).splitlines()[-1]
    assert line == (
        'T.cuda.func_call("g", source_code="a \\"quoted\\"\\n\\ttext \\\\ with \\x01 and ü", return_type="void")'
    )
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


def test_launch_configurations():
    @T.function
    def f(A: T.Tensor((64,), T.float32)):
        T.device_entry(
            launch=T.cuda.LaunchConfig(
                grid=(2, 3), block=64, cluster=(2, 1), dynamic_smem_bytes=1024, cooperative=True
            ),
            kernel_attrs=T.cuda.KernelAttributes(min_blocks_per_sm=2, max_blocks_per_cluster=4),
        )
        A[T.cuda.thread_idx("x")] = 0.0

    assert f.script().splitlines()[4] == (
        "    T.device_entry(launch=T.cuda.LaunchConfig(grid=(2, 3), block=64, cluster=(2, 1), dynamic_smem_bytes=1024, "
        "cooperative=True), kernel_attrs=T.cuda.KernelAttributes(min_blocks_per_sm=2, max_blocks_per_cluster=4))"
    )
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


# ---- frames ------------------------------------------------------------------------------------------------


def test_signature_of_g1():
    @T.prim_func(private=True)
    def f(a: T.handle, B: T.Buffer(("m + 1", 4), "int8"), s: T.float64, p: T.handle("float16")):
        n = T.int32()
        A = T.match_buffer(a, (n, n * 2), "float16", align=16)
        pass

    assert f.script() == (
        "# from tirx.script import tirx as T\n\n"
        "@T.prim_func(private=True)\n"
        'def f(A: T.Buffer(("n", "n * 2"), "float16", align=16), B: T.Buffer(("m + 1", 4), "int8"), s: T.float64, '
        'p: T.handle("float16")):\n'
        "    n = T.int32()\n"
        "    m = T.int32()\n"
    )
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


def test_signature_of_g2():
    n, m = T.dynamic("n"), T.dynamic("n", "int64")

    @T.function
    def f(A: T.Tensor((n, 4), T.float16), B: T.Tensor((m,), T.float32, align=16), s: T.int64):
        pass

    assert f.script() == (
        "# from tirx.script import tirx as T\n\n"
        'n = T.dynamic("n")\n'
        'n_1 = T.dynamic("n_1", dtype="int64")\n\n'
        "@T.function\n"
        "def f(A: T.Tensor((n, 4), T.float16), B: T.Tensor((n_1,), T.float32, align=16), s: T.int64):\n"
        "    pass\n"
    )
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


def test_attributes_and_symbol():
    ctx, b = builder(name="f")
    b.set_symbol("other")
    b.set_attr("level", 3)
    b.set_attr("note", "kept")
    f = b.finish()
    assert body(f) == 'T.func_attr({"global_symbol": "other", "level": 3, "note": "kept"})'
    assert f.script(name="other").splitlines()[3:] == [
        "def other():",
        '    T.func_attr({"level": 3, "note": "kept"})',
    ]


def test_options():
    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = i

    assert f.script(header=False, indent_spaces=2) == (
        '@T.prim_func\ndef f(A: T.Buffer((4,), "int32")):\n  for i in range(4):\n    A[i] = i\n'
    )
    numbered = f.script(print_line_numbers=True).splitlines()
    assert numbered[3] == '   4  def f(A: T.Buffer((4,), "int32")):'


def test_text_is_python():
    import ast

    import kernels

    for k in kernels.KERNELS.values():
        f = k.make()
        for dialect in ("g1", "g2"):
            ast.parse(f.script(dialect=dialect))


def test_numbers_of_instructions():
    """A number without a type is of the operand's first type: other ones say which they have."""

    @T.prim_func
    def f(x: T.handle):
        X = T.match_buffer(x, (32,), "int32")
        T.device_entry()
        t = T.thread_id([32])
        d: T.int32
        T.ptx.add.s32(d, t, 1)
        T.ptx.and_.b32(d, d, T.int32(-3))
        T.ptx.and_.b32(d, d, 3)
        T.ptx.bmsk.clamp.b32(d, T.int32(0), d)
        T.ptx.shr.s32(d, d, 5)
        T.ptx.st.global_.b32(X.ptr_to([t]), T.int32(7))

    said = [line for line in f.script().splitlines() if "T.ptx" in line]
    assert [line.strip() for line in said] == [
        'T.ptx["add.s32"](d, t, 1)',
        'T.ptx["and.b32"](d, d, T.int32(-3))',
        'T.ptx["and.b32"](d, d, T.uint32(3))',
        'T.ptx["bmsk.clamp.b32"](d, T.int32(0), d)',
        'T.ptx["shr.s32"](d, d, T.uint32(5))',
        'T.ptx["st.global.b32"](T.address_of(X[t]), T.int32(7))',
    ]
    assert tirx.structural_equal(tirx.from_source(f.script()), f)
