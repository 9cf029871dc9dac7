# SPDX-License-Identifier: Apache-2.0
"""Floating point: IEEE results, float16 and bfloat16 rounded once, conversions, NaN rules, library functions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from fuzz import scalars

import tirx
from tirx.script import tirx as T

NP = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    65504.0,
    6e-8,
    1e-40,
    1e30,
    7.0,
]


def run(kernel, *arrays, **options):
    tirx.compile(kernel, target="cpu", **options)(*arrays)


def bits(a):
    return a.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[a.dtype.itemsize])


def same(got, want):
    """Equal bits, any NaN being any other."""
    nan = np.isnan(want.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), nan)
    np.testing.assert_array_equal(bits(got)[~nan], bits(want)[~nan])


def pairs(dtype, n=4096):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        x = np.concatenate([np.repeat(SPECIAL, len(SPECIAL)), rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)])
        y = np.concatenate([np.tile(SPECIAL, len(SPECIAL)), rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)])
        x, y = x[: len(x) // 64 * 64], y[: len(y) // 64 * 64]
        return x.astype(NP[dtype]), y.astype(NP[dtype])


def binary(f, dtype, n, out=None):
    @T.prim_func
    def k(A: T.Buffer((n,), dtype), B: T.Buffer((n,), dtype), C: T.Buffer((n,), out or dtype)):
        T.device_entry()
        bx = T.cta_id([n // 64])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        C[i] = f(A[i], B[i])

    return k


def unary(f, dtype, n, out=None):
    @T.prim_func
    def k(A: T.Buffer((n,), dtype), C: T.Buffer((n,), out or dtype)):
        T.device_entry()
        bx = T.cta_id([n // 64])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        C[i] = f(A[i])

    return k


ARITH = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("op", ARITH)
def test_arithmetic_is_rounded_once(op, dtype):
    x, y = pairs(dtype)
    c = np.zeros_like(x)
    run(binary(ARITH[op], dtype, len(x)), x, y, c)
    wide = np.float64 if dtype != "float64" else np.float64
    want = ARITH[op](x.astype(wide), y.astype(wide))
    if dtype in ("float16", "bfloat16"):
        want = ARITH[op](x.astype(np.float32), y.astype(np.float32))  # 24 bits are enough to round twice
    same(c, want.astype(NP[dtype]))


def exact_fma(a, b, c, dtype):
    """a*b + c rounded once, by rational arithmetic."""
    if not all(math.isfinite(v) for v in (a, b, c)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    digits, least, top = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128)}[dtype]
    e = max(math.floor(math.log2(abs(exact))) - digits + 1, least)
    while abs(exact) / Fraction(2) ** e >= 2**digits:
        e += 1
    while e > least and abs(exact) / Fraction(2) ** e < 2 ** (digits - 1):
        e -= 1
    n = round(exact / Fraction(2) ** e)  # to even
    v = Fraction(n) * Fraction(2) ** e
    if abs(v) >= Fraction(2) ** top:
        return math.copysign(math.inf, v)
    return math.copysign(float(v), 1 if exact > 0 else -1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_fma_is_rounded_once(dtype):
    rng = np.random.default_rng(3)
    n = 1024
    a, b = (rng.standard_normal(n).astype(NP[dtype]) for _ in "ab")
    # near the product's negative, and far below it: both sides of every rounding
    c = (-(a.astype("f8") * b.astype("f8")) * rng.choice([1.0, 1.0009765625, -1.0, 1e-3, 1e-6, 2e-8], n)).astype(
        NP[dtype]
    )

    @T.prim_func
    def k(A: T.Buffer((n,), dtype), B: T.Buffer((n,), dtype), C: T.Buffer((n,), dtype), D: T.Buffer((n,), dtype)):
        T.device_entry()
        bx = T.cta_id([n // 64])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        D[i] = T.fma(A[i], B[i], C[i])

    d = np.zeros_like(a)
    run(k, a, b, c, d)
    want = [exact_fma(float(x), float(y), float(z), dtype) for x, y, z in zip(a, b, c, strict=True)]
    same(d, np.array(want).astype(NP[dtype]))


@pytest.mark.filterwarnings("ignore")
def test_contraction_is_decided_by_lowering():
    rng = np.random.default_rng(5)
    a, b, c = (rng.standard_normal(256).astype("f4") for _ in "abc")

    @T.prim_func
    def k(
        A: T.Buffer((256,), "float32"),
        B: T.Buffer((256,), "float32"),
        C: T.Buffer((256,), "float32"),
        D: T.Buffer((256,), "float32"),
    ):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        D[tx] = A[tx] * B[tx] + C[tx]

    d, e = np.zeros_like(a), np.zeros_like(a)
    run(k, a, b, c, d)
    run(k, a, b, c, e, contract=False)
    same(
        d,
        np.array([exact_fma(float(x), float(y), float(z), "float32") for x, y, z in zip(a, b, c, strict=True)]).astype(
            "f4"
        ),
    )
    same(e, a * b + c)
    assert (d != e).any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_min_and_max_ignore_nan(dtype):
    x, y = pairs(dtype, 256)
    lo, hi = np.zeros_like(x), np.zeros_like(x)
    run(binary(lambda a, b: T.min(a, b), dtype, len(x)), x, y, lo)
    run(binary(lambda a, b: T.max(a, b), dtype, len(x)), x, y, hi)
    wide = x.astype("f8"), y.astype("f8")
    np.testing.assert_array_equal(lo.astype("f8"), np.fmin(*wide))
    np.testing.assert_array_equal(hi.astype("f8"), np.fmax(*wide))


ZEROS = {
    "two rows": ("min(A[tx], B[tx])", "max(A[tx], B[tx])"),
    "a constant": ("T.min({t}(0.0), A[tx])", "T.max({t}(0.0), A[tx])"),
    "a constant behind": ("T.min(A[tx], {t}(-0.0))", "T.max(A[tx], {t}(-0.0))"),
    "uniform": ("T.min(A[0], B[0])", "T.max(A[0], B[0])"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ZEROS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e3m4"])
def test_negative_zero_is_less_than_zero(dtype, form):
    """As PTX's min and max order them."""
    lo, hi = (text.format(t="T." + dtype) for text in ZEROS[form])
    k = tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((4,), "{dtype}"), B: T.Buffer((4,), "{dtype}"), C: T.Buffer((2, 4), "{dtype}")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([4])
    C[0, tx] = {lo}
    C[1, tx] = {hi}
""")
    np_dtype = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    a, b = np.array([0.0, -0.0, 0.0, -0.0], np_dtype), np.array([-0.0, 0.0, 0.0, -0.0], np_dtype)
    c = np.ones((2, 4), np_dtype)
    run(k, a, b, c)
    x = np.signbit(a.astype("f4"))
    y = {"two rows": np.signbit(b.astype("f4")), "a constant": False, "a constant behind": True}.get(form, True)
    x = x if form != "uniform" else np.zeros(4, bool)
    np.testing.assert_array_equal(np.signbit(c.astype("f4")), np.stack([x | y, x & y]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float6_e2m3fn", "float6_e3m2fn"])
def test_fma_of_narrow_floats_is_rounded_once(dtype):
    np_dtype = getattr(ml_dtypes, dtype)
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 64 if "float6" in dtype else 256, (3, 4096), dtype=np.uint8).view(np_dtype)
    x, y, z = (c.astype("f8") for c in codes)
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    a, b, c = (np.where(finite, v, 1.0).astype(np_dtype) for v in (x, y, z))
    x, y, z = (v.astype("f8") for v in (a, b, c))

    @T.prim_func
    def k(
        A: T.Buffer((4096,), dtype),
        B: T.Buffer((4096,), dtype),
        C: T.Buffer((4096,), dtype),
        D: T.Buffer((4096,), dtype),
    ):
        T.device_entry()
        bx = T.cta_id([64])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        D[i] = T.fma(A[i], B[i], C[i])

    d = np.zeros_like(a)
    run(k, a, b, c, d)
    want = [scalars.fma_number(dtype, *row) for row in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    np.testing.assert_array_equal(d.astype("f8"), want)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"])
def test_the_sign_of_what_is_known_when_the_kernel_is_built(dtype):
    """Constants that no folder has seen: of an unrolled loop, of a cell, behind a hint."""
    np_dtype = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)

    @T.prim_func
    def k(A: T.Buffer((8, 4), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([4])
        for i in range(4):
            A[i, tx] = -T.cast(i - 1, dtype)
        for i in range(2):
            A[i + 4, tx] = T.abs(T.cast(i - 3, dtype))
        c = T.cast(3, dtype)
        A[6, tx] = -c
        A[7, tx] = T.abs(T.likely(T.cast(-2, dtype)))

    a = np.zeros((8, 4), np_dtype)
    run(k, a)
    np.testing.assert_array_equal(a[:, 0].astype("f4"), [1, -0.0, -1, -2, 3, 2, -3, 2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_comparisons_with_nan(dtype):
    x, y = pairs(dtype, 256)
    for f in (
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
        lambda a, b: a == b,
        lambda a, b: a != b,
    ):
        c = np.zeros(len(x), "int32")
        run(binary(lambda a, b, f=f: T.cast(f(a, b), "int32"), dtype, len(x), "int32"), x, y, c)
        np.testing.assert_array_equal(c, f(x.astype("f8"), y.astype("f8")).astype("int32"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_classes_of_numbers(dtype):
    x, _ = pairs(dtype, 256)
    for f, want in ((T.isnan, np.isnan), (T.isinf, np.isinf), (T.isfinite, np.isfinite)):
        c = np.zeros(len(x), "int32")
        run(unary(lambda a, f=f: T.cast(f(a), "int32"), dtype, len(x), "int32"), x, c)
        np.testing.assert_array_equal(c, want(x.astype("f8")).astype("int32"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_every_code_becomes_float32_exactly(dtype):
    n = 1 << 8 * NP[dtype](0).itemsize
    codes = np.arange(n, dtype="uint16" if n > 256 else "uint8").view(NP[dtype])
    c = np.zeros(n, "float32")
    run(unary(lambda a: T.cast(a, "float32"), dtype, n, "float32"), codes, c)
    same(c, codes.astype("float32"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_float32_rounds_to_nearest_even(dtype):
    rng = np.random.default_rng(2)
    u = rng.integers(0, 2**32, 1 << 14, dtype=np.uint64).astype(np.uint32)
    all_codes = np.arange(1 << 16, dtype="uint16").view(NP[dtype]).astype("float32")
    middles = all_codes + (np.nextafter(all_codes, np.float32(np.inf)) - all_codes)
    next_code = (np.arange(1 << 16, dtype="uint32") + 1).astype("uint16").view(NP[dtype]).astype("float32")
    ties = (all_codes.astype("f8") / 2 + next_code.astype("f8") / 2).astype("float32")
    x = np.concatenate([u.view("float32"), all_codes, middles, ties])
    c = np.zeros(len(x), NP[dtype])
    run(unary(lambda a: T.cast(a, dtype), "float32", len(x), dtype), x, c)
    same(c, x.astype(NP[dtype]))


INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_to_integers_truncates_and_saturates(dtype, to):
    info = np.iinfo(to)
    x = [
        0.0,
        0.9,
        -0.9,
        1.5,
        -1.5,
        127.9,
        128.0,
        255.5,
        256.0,
        300.0,
        -129.0,
        -300.0,
        1e9,
        -1e9,
        1e20,
        -1e20,
        math.inf,
        -math.inf,
        math.nan,
    ]
    x += [float(info.max), float(info.min), float(info.max) + 1, 65504.0]
    x = np.array((x * 4)[:64]).astype(NP[dtype])
    c = np.zeros(64, to)
    run(unary(lambda a: T.cast(a, to), dtype, 64, to), x, c)
    want = []
    for v in x.astype("f8").tolist():
        want.append(0 if math.isnan(v) else info.max if v >= info.max else info.min if v <= info.min else int(v))
    assert c.tolist() == want


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("dtype", INTS)
def test_from_integers_rounds_once(dtype, to):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.integers(info.min, info.max, 200, dtype=dtype, endpoint=True), np.array([info.min, info.max, 0, 1], dtype)]
    )
    x = np.concatenate([x, (x >> (info.bits // 2))])[:320]
    if info.bits == 64:  # exactly in the middle, and one more: two roundings would lose the one
        x[:8] = (
            [(1 << 62) + (1 << (62 - 8)) + d for d in (-1, 0, 1)]
            + [(1 << 40) + (1 << 16) + d for d in (-1, 0, 1)]
            + [3, 4]
        )
    x = x[: len(x) // 64 * 64]
    c = np.zeros(len(x), NP[to])
    run(unary(lambda a: T.cast(a, to), dtype, len(x), to), x, c)
    digits, top = {"float16": (11, 16), "bfloat16": (8, 128), "float32": (24, 128), "float64": (53, 1024)}[to]
    want = []
    for v in x.tolist():
        e = max(abs(v).bit_length() - digits, 0)
        r = round(Fraction(v, 2**e)) * 2**e
        want.append(math.copysign(math.inf, r) if abs(r) >= 2**top else float(r))
    same(c, np.array(want).astype(NP[to]))


FUNCTIONS = {
    "exp": (T.exp, np.exp, (-87, 88)),
    "exp2": (T.exp2, np.exp2, (-126, 127)),
    "exp10": (T.exp10, lambda x: 10.0**x, (-37, 38)),
    "log": (T.log, np.log, (1e-30, 1e30)),
    "log2": (T.log2, np.log2, (1e-30, 1e30)),
    "log10": (T.log10, np.log10, (1e-30, 1e30)),
    "log1p": (T.log1p, np.log1p, (-0.9, 1e3)),
    "sqrt": (T.sqrt, np.sqrt, (0, 1e30)),
    "rsqrt": (T.rsqrt, lambda x: 1 / np.sqrt(x), (1e-30, 1e30)),
    "sin": (T.sin, np.sin, (-100, 100)),
    "cos": (T.cos, np.cos, (-100, 100)),
    "tan": (T.tan, np.tan, (-1.5, 1.5)),
    "asin": (T.asin, np.arcsin, (-1, 1)),
    "acos": (T.acos, np.arccos, (-1, 1)),
    "atan": (T.atan, np.arctan, (-1e3, 1e3)),
    "sinh": (T.sinh, np.sinh, (-80, 80)),
    "cosh": (T.cosh, np.cosh, (-80, 80)),
    "tanh": (T.tanh, np.tanh, (-10, 10)),
    "asinh": (T.asinh, np.arcsinh, (-1e3, 1e3)),
    "acosh": (T.acosh, np.arccosh, (1, 1e3)),
    "atanh": (T.atanh, np.arctanh, (-0.99, 0.99)),
    "erf": (T.erf, np.vectorize(math.erf), (-4, 4)),
    "sigmoid": (T.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (-20, 20)),
    "floor": (T.floor, np.floor, (-1e3, 1e3)),
    "ceil": (T.ceil, np.ceil, (-1e3, 1e3)),
    "trunc": (T.trunc, np.trunc, (-1e3, 1e3)),
    "round": (T.round, np.rint, (-1e3, 1e3)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(name, dtype):
    f, want, (lo, hi) = FUNCTIONS[name]
    rng = np.random.default_rng(4)
    x = rng.uniform(lo, hi, 1024) if abs(lo) > 1e-9 else np.exp(rng.uniform(math.log(1e-30), math.log(1e30), 1024))
    x = np.concatenate([x[:1014], [0.5, -0.5, 1.5, 2.5, lo, hi, 0.0, 1.0, math.inf, math.nan]]).astype(NP[dtype])
    c = np.zeros_like(x)
    run(unary(f, dtype, len(x)), x, c)
    ref = want(x.astype("f8"))
    if dtype == "float64":
        np.testing.assert_allclose(c, ref, rtol=4e-16 * 2, atol=1e-300)
    elif dtype == "float32":  # rounded from float64: half a unit in the last place, and nothing to spare
        same(c[np.isfinite(ref)], ref.astype("f4")[np.isfinite(ref)])
    else:
        same(c[np.isfinite(ref)], ref.astype("f4").astype(NP[dtype])[np.isfinite(ref)])


@pytest.mark.filterwarnings("ignore")
def test_functions_of_two():
    rng = np.random.default_rng(6)
    x, y = rng.uniform(0.1, 9, 256).astype("f4"), rng.uniform(-3, 3, 256).astype("f4")
    for f, want in (
        (T.atan2, np.arctan2),
        (T.pow, np.power),
        (T.fmod, np.fmod),
        (T.hypot, np.hypot),
        (T.copysign, np.copysign),
    ):
        c = np.zeros_like(x)
        run(binary(f, "float32", 256), x, y, c)
        same(c, want(x.astype("f8"), y.astype("f8")).astype("f4"))
    c = np.zeros_like(x)
    run(binary(T.nextafter, "float32", 256), x, y, c)
    same(c, np.nextafter(x, y))


def test_exp_at_the_ends():
    x = np.array(
        [
            0.0,
            -0.0,
            88.72,
            88.73,
            -103.9,
            -104.0,
            math.inf,
            -math.inf,
            math.nan,
            1e-30,
            -87.4,
            1.0,
            200,
            -200,
            0.5,
            -0.5,
        ]
        * 4,
        "f4",
    )
    c = np.zeros_like(x)
    run(unary(T.exp, "float32", 64), x, c)
    with np.errstate(over="ignore", under="ignore"):
        same(c, np.exp(x.astype("f8")).astype("f4"))


@pytest.mark.filterwarnings("ignore")
def test_bits():
    x = np.array(SPECIAL + [3.25] * 15 + [1e-45] * 32, "f4")[:64]
    u, back = np.zeros(64, "uint32"), np.zeros(64, "f4")

    @T.prim_func
    def k(A: T.Buffer((64,), "float32"), U: T.Buffer((64,), "uint32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        U[tx] = T.reinterpret("uint32", A[tx])
        B[tx] = T.reinterpret("float32", U[tx] ^ T.uint32(0x80000000))

    run(k, x, u, back)
    np.testing.assert_array_equal(u, x.view("uint32"))
    np.testing.assert_array_equal(back.view("uint32"), (-x).view("uint32"))


def test_moves_keep_every_nan():
    codes = np.arange(1 << 16, dtype="uint16").view("float16")
    c = np.zeros_like(codes)
    run(unary(lambda a: a, "float16", 1 << 16), codes, c)
    np.testing.assert_array_equal(c.view("uint16"), codes.view("uint16"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_true(dtype):
    """As a number that is read and as one that is known when the kernel is built."""
    np_dtype = np.dtype(NP[dtype])
    nan = getattr(T, dtype)

    @T.prim_func
    def k(A: T.Buffer((1,), dtype), B: T.Buffer((4,), "bool")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        B[0] = A[0]
        B[1] = T.cast(A[0], "bool")
        B[2] = nan("nan")
        B[3] = T.cast(nan("nan"), "bool")

    b = np.zeros(4, bool)
    run(k, np.full(1, np.nan, np_dtype), b)
    assert b.all()
