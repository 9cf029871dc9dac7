# SPDX-License-Identifier: Apache-2.0
"""Scalar PTX instructions on the emulator against Python's integers and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ptx_kernels import apply

RNG = np.random.default_rng(7)
N = 64


def words(bits, signed=False, n=N):
    edge = [0, 1, 2, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 1, 2**bits - 2, 0x55, 31, 32, 33]
    some = [int(x) & (2**bits - 1) for x in RNG.integers(0, 2**63, n)]
    values = np.array((edge + some)[:n], dtype="uint64").astype(f"uint{bits}")
    values = RNG.permutation(values)
    return values.view(f"int{bits}") if signed else values


def ints(a):
    return [int(x) for x in a]


def signed(v, bits):
    v &= 2**bits - 1
    return v - 2**bits if v >> (bits - 1) else v


def check(op, dtypes, out, ref, operands=None):
    arrays = [words(int("".join(c for c in t if c.isdigit())), t[0] == "i") for t in dtypes]
    names = ", ".join("abcd"[: len(arrays)])
    got = apply(f'T.ptx["{op}"](d0, {operands or names})', arrays, [out])
    bits = np.dtype(out).itemsize * 8
    want = [ref(*v) & (2**bits - 1) for v in zip(*map(ints, arrays), strict=True)]
    assert [int(x) & (2**bits - 1) for x in got] == want


KIND = {
    "u16": ("uint16", 16),
    "u32": ("uint32", 32),
    "u64": ("uint64", 64),
    "s16": ("int16", 16),
    "s32": ("int32", 32),
    "s64": ("int64", 64),
}


@pytest.mark.parametrize("t", KIND)
def test_integer_arithmetic(t):
    dtype, bits = KIND[t]
    check(f"add.{t}", [dtype] * 2, dtype, lambda x, y: x + y)
    check(f"sub.{t}", [dtype] * 2, dtype, lambda x, y: x - y)
    check(f"mul.lo.{t}", [dtype] * 2, dtype, lambda x, y: x * y)
    check(f"mul.hi.{t}", [dtype] * 2, dtype, lambda x, y: x * y >> bits)
    check(f"mad.lo.{t}", [dtype] * 3, dtype, lambda x, y, z: x * y + z)
    check(f"mad.hi.{t}", [dtype] * 3, dtype, lambda x, y, z: (x * y >> bits) + z)
    check(f"min.{t}", [dtype] * 2, dtype, min)
    check(f"max.{t}", [dtype] * 2, dtype, max)
    check(f"sad.{t}", [dtype] * 3, dtype, lambda x, y, z: z + abs(x - y))
    check(
        f"div.{t}",
        [dtype] * 2,
        dtype,
        lambda x, y: -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    )
    check(f"rem.{t}", [dtype] * 2, dtype, lambda x, y: -1 if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1))


def test_wide_and_24_bit_products():
    check("mul.wide.s32", ["int32"] * 2, "int64", lambda x, y: x * y)
    check("mad.wide.u16", ["uint16", "uint16", "uint32"], "uint32", lambda x, y, z: x * y + z)
    low = lambda x: signed(x, 24)  # noqa: E731
    check("mul24.lo.s32", ["int32"] * 2, "int32", lambda x, y: low(x) * low(y))
    check("mul24.hi.u32", ["uint32"] * 2, "uint32", lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF) >> 16)
    clamp = lambda v: max(-(2**31), min(2**31 - 1, v))  # noqa: E731
    check("add.sat.s32", ["int32"] * 2, "int32", lambda x, y: clamp(x + y))
    check("sub.sat.s32", ["int32"] * 2, "int32", lambda x, y: clamp(x - y))
    check("mad.hi.sat.s32", ["int32"] * 3, "int32", lambda x, y, z: clamp((x * y >> 32) + z))


def prmt(a, b, c):
    v, r = b << 32 | a, 0
    for i in range(4):
        s = c >> 4 * i & 15
        byte = v >> 8 * (s & 7) & 255
        r |= ((255 if byte >> 7 else 0) if s & 8 else byte) << 8 * i
    return r


def bfe(bits, is_signed):
    def ref(a, p, n):
        a = a & (2**bits - 1)
        p, n = (p & 255, n & 255) if bits == 32 else (p & 0xFFFFFFFF, n & 0xFFFFFFFF)  # so on an H200
        if n == 0:
            return 0
        sign = is_signed and a >> min(p + n - 1, bits - 1) & 1
        return sum(((a >> (p + i) & 1) if i < n and p + i < bits else int(bool(sign))) << i for i in range(bits))

    return ref


def test_bits():
    check("shf.l.clamp.b32", ["uint32"] * 3, "uint32", lambda a, b, c: ((b << 32 | a) << min(c, 32)) >> 32)
    check("shf.r.wrap.b32", ["uint32"] * 3, "uint32", lambda a, b, c: (b << 32 | a) >> (c & 31))
    check("shf.r.clamp.b32", ["uint32"] * 3, "uint32", lambda a, b, c: (b << 32 | a) >> min(c, 32))
    check("shl.b32", ["uint32"] * 2, "uint32", lambda a, b: a << b if b < 32 else 0)
    check("shr.s32", ["int32", "uint32"], "int32", lambda a, b: a >> min(b, 31))
    check("shr.u64", ["uint64", "uint32"], "uint64", lambda a, b: a >> b if b < 64 else 0)
    check("prmt.b32", ["uint32"] * 3, "uint32", prmt)
    check("lop3.b32", ["uint32"] * 3, "uint32", lambda a, b, c: (a & b) ^ c, "a, b, c, 0x6A")
    check("bfe.u32", ["uint32"] * 3, "uint32", bfe(32, False))
    check("bfe.s32", ["int32", "uint32", "uint32"], "int32", bfe(32, True))
    check("bfe.s64", ["int64", "uint32", "uint32"], "int64", bfe(64, True))

    def bfi(a, b, p, n):
        p, n = p & 255, n & 255
        mask = (((1 << n) - 1) << p) & 0xFFFFFFFF
        return b & ~mask | a << p & mask

    check("bfi.b32", ["uint32"] * 4, "uint32", bfi)
    check("brev.b32", ["uint32"], "uint32", lambda a: int(f"{a:032b}"[::-1], 2))
    check("popc.b64", ["uint64"], "uint32", lambda a: bin(a).count("1"))
    check("clz.b32", ["uint32"], "uint32", lambda a: 32 - a.bit_length())
    check("bfind.u32", ["uint32"], "uint32", lambda a: a.bit_length() - 1)
    check("bfind.shiftamt.u64", ["uint64"], "uint32", lambda a: 64 - a.bit_length() if a else -1)
    check("bfind.s32", ["int32"], "uint32", lambda a: (a if a >= 0 else ~a).bit_length() - 1)
    check("bmsk.clamp.b32", ["uint32"] * 2, "uint32", lambda a, b: ((1 << min(b, 32)) - 1) << a if a < 32 else 0)
    check("szext.wrap.s32", ["int32", "uint32"], "int32", lambda a, b: signed(a, b & 31) if b & 31 else 0)
    check("szext.clamp.u32", ["uint32", "uint32"], "uint32", lambda a, b: a & ((1 << min(b, 32)) - 1))
    check("cnot.b32", ["uint32"], "uint32", lambda a: a == 0)


def test_dot_products_and_packing():
    def dp4a(a, b, c):
        return c + sum((a >> i & 255) * signed(b >> i, 8) for i in (0, 8, 16, 24))

    check("dp4a.u32.s32", ["uint32", "int32", "int32"], "int32", dp4a)
    check(
        "dp2a.hi.u32.u32",
        ["uint32"] * 3,
        "uint32",
        lambda a, b, c: c + (a & 0xFFFF) * (b >> 16 & 255) + (a >> 16) * (b >> 24),
    )
    clamp = lambda v, lo, hi: max(lo, min(hi, v))  # noqa: E731
    check(
        "cvt.pack.sat.s16.s32",
        ["int32"] * 2,
        "uint32",
        lambda a, b: (clamp(a, -32768, 32767) & 0xFFFF) << 16 | clamp(b, -32768, 32767) & 0xFFFF,
    )
    check(
        "cvt.pack.sat.u8.s32.b32",
        ["int32", "int32", "uint32"],
        "uint32",
        lambda a, b, c: c << 16 | clamp(a, 0, 255) << 8 | clamp(b, 0, 255),
    )
    check("slct.u32.s32", ["uint32", "uint32", "int32"], "uint32", lambda a, b, c: a if c >= 0 else b)
    check("setp.hi.u32", ["uint32"] * 2, "uint32", lambda a, b: a > b)
    check("set.le.u32.s32", ["int32"] * 2, "uint32", lambda a, b: 0xFFFFFFFF if a <= b else 0)
    got = apply('T.ptx["mov.b32"](d0, d1, a)', [words(32)], ["uint16", "uint16"])
    assert (
        apply('T.ptx["mov.b32"](d0, a, b)', got, ["uint32"])
        == got[0].astype("uint32") + (got[1].astype("uint32") << 16)
    ).all()


# ---- floats: exact results in fractions, rounded here --------------------------------------------------------------

FLOATS = {"f32": ("float32", 23, 8), "f64": ("float64", 52, 11)}


def rounded(x, mant, exp, mode):
    """The code of a fraction that is not 0."""
    bias, neg, a = 2 ** (exp - 1) - 1, x < 0, abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    while Fraction(2) ** e > a:
        e -= 1
    while Fraction(2) ** (e + 1) <= a:
        e += 1
    e = max(e, 1 - bias)
    units = a / Fraction(2) ** (e - mant)
    k, rest = int(units), units - int(units)
    up = {
        "rn": rest > Fraction(1, 2) or rest == Fraction(1, 2) and k & 1,
        "rz": False,
        "rm": neg and rest > 0,
        "rp": not neg and rest > 0,
    }[mode]
    code = ((e + bias - 1) << mant) + k + bool(up)
    top = (2**exp - 1) << mant
    if code >= top:
        code = top if mode == "rn" or mode == ("rm" if neg else "rp") else top - 1
    return code | neg << (mant + exp)


def numbers(dtype, mant, exp):
    bits = mant + exp + 1
    ends = [1, 2, (1 << mant) - 1, 1 << mant, ((2**exp - 1) << mant) - 1, (2 ** (exp - 1) - 1) << mant]
    spread = [int(RNG.integers(0, 2 ** (exp) - 1)) << mant | int(RNG.integers(0, 2**mant)) for _ in range(20)]
    middle = [
        (2 ** (exp - 1) - 1 + int(RNG.integers(-3, 3))) << mant | int(RNG.integers(0, 2**mant)) for _ in range(102)
    ]
    codes = [c | int(RNG.integers(0, 2)) << (bits - 1) for c in ends + spread + middle]
    return RNG.permutation(np.array(codes, dtype=f"uint{bits}")).view(dtype)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("t", FLOATS)
def test_float_arithmetic_is_rounded_once(t, mode):
    dtype, mant, exp = FLOATS[t]
    a, b, c = (numbers(dtype, mant, exp) for _ in range(3))
    exact = {
        f"add.{mode}": (lambda x, y, z: x + y, "a, b"),
        f"sub.{mode}": (lambda x, y, z: x - y, "a, b"),
        f"mul.{mode}": (lambda x, y, z: x * y, "a, b"),
        f"fma.{mode}": (lambda x, y, z: x * y + z, "a, b, c"),
        f"div.{mode}": (lambda x, y, z: x / y, "a, b"),
        f"rcp.{mode}": (lambda x, y, z: 1 / x, "a"),
    }
    for op, (f, operands) in exact.items():
        got = apply(f'T.ptx["{op}.{t}"](d0, {operands})', [a, b, c], [dtype]).view(f"uint{mant + exp + 1}")
        for i in range(len(a)):
            x, y, z = (Fraction(float(v[i])) for v in (a, b, c))
            want = f(x, y, z)
            if want != 0:
                assert int(got[i]) == rounded(want, mant, exp, mode), (op, a[i], b[i], c[i])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_square_roots(mode):
    for t, (dtype, mant, exp) in FLOATS.items():
        a = np.abs(numbers(dtype, mant, exp))
        got = apply(f'T.ptx["sqrt.{mode}.{t}"](d0, a)', [a], [dtype])
        for x, r in zip(a, got, strict=True):
            below, above = np.nextafter(r, np.dtype(dtype).type(0)), np.nextafter(r, np.dtype(dtype).type(np.inf))
            fx, fr, fb, fa = Fraction(float(x)), Fraction(float(r)), Fraction(float(below)), Fraction(float(above))
            if mode == "rn":
                assert ((fr + fb) / 2) ** 2 <= fx <= ((fr + fa) / 2) ** 2
            elif mode == "rp":
                assert fb**2 < fx <= fr**2
            else:
                assert fr**2 <= fx < fa**2


def test_halves_match_numpy():
    codes = RNG.integers(0, 0x7C00, 256).astype("uint16") | RNG.integers(0, 2, 256).astype("uint16") << 15
    a, b, c = codes, np.roll(codes, 1), np.roll(codes, 2)
    wide = [x.view("float16").astype("float64") for x in (a, b, c)]
    with np.errstate(over="ignore"):
        want = {
            "add.f16": wide[0] + wide[1],
            "mul.f16": wide[0] * wide[1],
            "sub.f16": wide[0] - wide[1],
            "fma.rn.f16": wide[0] * wide[1] + wide[2],
        }
        for op, exact in want.items():
            names = "a, b, c" if op.startswith("fma") else "a, b"
            got = apply(f'T.ptx["{op}"](d0, {names})', [a, b, c], ["uint16"])
            np.testing.assert_array_equal(got, exact.astype("float16").view("uint16"))
            pair = [x.astype("uint32") << 16 | np.roll(x, 5) for x in (a, b, c)]
            both = apply(f'T.ptx["{op}x2"](d0, {names})', pair, ["uint32"])
            np.testing.assert_array_equal(both, got.astype("uint32") << 16 | np.roll(got, 5))


def test_modifiers_of_floats():
    nan, inf, tiny = np.float32("nan"), np.float32("inf"), np.float32(1e-40)
    x = np.array([nan, -3, 2, 0.25, inf, -inf, tiny, -tiny, -0.0], "float32")
    one = np.ones_like(x)
    bits = lambda a: a.view("uint32").tolist()  # noqa: E731
    sat = apply('T.ptx["add.sat.f32"](d0, a, b)', [x, np.zeros_like(x)], ["float32"])
    assert bits(sat) == bits(np.array([0, 0, 1, 0.25, 1, 0, tiny, 0, 0], "float32"))
    ftz = apply('T.ptx["mul.ftz.f32"](d0, a, b)', [x, one], ["float32"])
    assert bits(ftz)[5:] == [0xFF800000, 0, 0x80000000, 0x80000000]
    assert bits(ftz)[0] == 0x7FFFFFFF
    assert bits(apply('T.ptx["min.f32"](d0, a, b)', [x, one], ["float32"]))[0] == 0x3F800000
    assert bits(apply('T.ptx["min.NaN.f32"](d0, a, b)', [x, one], ["float32"]))[0] == 0x7FFFFFFF
    assert (
        bits(apply('T.ptx["max.xorsign.abs.f32"](d0, a, b)', [x, one], ["float32"]))[1]
        == bits(np.array([-3], "float32"))[0]
    )
    assert apply('T.ptx["setp.ltu.f32"](d0, a, b)', [x, one], ["uint32"]).tolist() == [1, 1, 0, 1, 0, 1, 1, 1, 1]
    assert apply('T.ptx["testp.subnormal.f32"](d0, a)', [x], ["uint32"]).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 0]
    assert bits(apply('T.ptx["copysign.f32"](d0, a, b)', [x, one], ["float32"]))[1] == 0xBF800000


@pytest.mark.parametrize("t", ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])
def test_narrow_formats_match_ml_dtypes(t):
    ml = pytest.importorskip("ml_dtypes")
    dtype = {
        "e4m3": ml.float8_e4m3fn,
        "e5m2": ml.float8_e5m2,
        "e2m3": ml.float6_e2m3fn,
        "e3m2": ml.float6_e3m2fn,
        "e2m1": ml.float4_e2m1fn,
    }[t]
    top = float(ml.finfo(dtype).max)
    x = np.concatenate([RNG.normal(0, top / 3, 200), RNG.normal(0, 0.1, 56)]).astype("float32")
    want = np.clip(x, -top, top).astype(dtype).view("uint8").astype("uint16")
    if t == "e2m1":
        got = apply(f'T.ptx["cvt.rn.satfinite.{t}x2.f32"](d0, a, b)', [x, np.roll(x, 1)], ["uint8"])
        np.testing.assert_array_equal(got, want << 4 | np.roll(want, 1))
        return
    got = apply(f'T.ptx["cvt.rn.satfinite.{t}x2.f32"](d0, a, b)', [x, np.roll(x, 1)], ["uint16"])
    np.testing.assert_array_equal(got, want << 8 | np.roll(want, 1))
