# SPDX-License-Identifier: Apache-2.0
"""Conversions of single elements, exhaustively against NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tirx import _core as core

FORMATS = ["float16", "bfloat16", "float32", "float64"]
FORMATS += [f"float8_{f}" for f in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")]
FORMATS += ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
SMALL = [f for f in FORMATS if f not in ("float32", "float64")]
BITS = {name: bits for name, _, _, bits, _ in core.dtypes()}


def reference(name: str) -> np.dtype:
    return np.dtype(name) if name in ("float16", "float32", "float64") else np.dtype(getattr(ml_dtypes, name))


def all_codes(name: str) -> np.ndarray:
    return np.arange(1 << BITS[name], dtype=np.uint16 if BITS[name] == 16 else np.uint8)


def values(name: str) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return all_codes(name).view(reference(name)).astype(np.float64)


@pytest.mark.parametrize("name", SMALL)
def test_every_code_decodes(name):
    want = values(name)
    got = np.array([core.decode(name, int(c)) for c in all_codes(name)])
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("name", SMALL)
def test_every_number_encodes_to_its_code(name):
    want = values(name)
    saturates = BITS[name] < 16
    for code, v in zip(all_codes(name), want, strict=True):
        if not np.isnan(v) and not (saturates and np.isinf(v)):
            assert core.encode(name, v) == code


@pytest.mark.parametrize("name", SMALL)
def test_what_lies_between_rounds_to_nearest_even(name):
    """Each midpoint of neighbours and the float32 numbers next to it; ml_dtypes converts by way of float32."""
    numbers = np.unique(values(name)[np.isfinite(values(name))])
    numbers = numbers[numbers > 0] if name == "float8_e8m0fnu" else numbers
    mid = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    up, down = np.nextafter(mid, np.float32(np.inf)), np.nextafter(mid, np.float32(-np.inf))
    x = np.concatenate([mid, up, down])
    x = x[(x != 0) & (np.abs(x) <= np.abs(numbers).max())]
    if name == "float8_e8m0fnu":
        x = x[x >= 2.0**-126]  # among float32's subnormals ml_dtypes rounds 1.4999 up
    want = x.astype(reference(name)).view(all_codes(name).dtype)
    got = np.array([core.encode(name, float(v)) for v in x])
    np.testing.assert_array_equal(got, want)


ENDS = {
    "float16": (0x7BFF, 0x7C00, 0x7FFF),  # largest number, beyond it, NaN
    "bfloat16": (0x7F7F, 0x7F80, 0x7FFF),
    "float8_e3m4": (0x6F, 0x6F, 0x7F),
    "float8_e4m3": (0x77, 0x77, 0x7F),
    "float8_e4m3b11fnuz": (0x7F, 0x7F, 0x80),
    "float8_e4m3fn": (0x7E, 0x7E, 0x7F),
    "float8_e4m3fnuz": (0x7F, 0x7F, 0x80),
    "float8_e5m2": (0x7B, 0x7B, 0x7F),
    "float8_e5m2fnuz": (0x7F, 0x7F, 0x80),
    "float8_e8m0fnu": (0xFE, 0xFE, 0xFF),
    "float6_e2m3fn": (0x1F, 0x1F, 0x1F),
    "float6_e3m2fn": (0x1F, 0x1F, 0x1F),
    "float4_e2m1fn": (0x7, 0x7, 0x7),
}


@pytest.mark.parametrize("name", SMALL)
def test_overflow_and_nan(name):
    largest, beyond, nan = ENDS[name]
    assert core.decode(name, largest) == float(ml_dtypes.finfo(reference(name)).max)
    assert [core.encode(name, v) for v in (1e300, float("inf"))] == [beyond, beyond]
    assert core.encode(name, float("nan")) == nan
    if name != "float8_e8m0fnu":
        sign = 1 << (BITS[name] - 1)
        assert core.encode(name, -1e300) == beyond | sign


def test_float8_e8m0fnu_has_no_zero():
    assert [core.encode("float8_e8m0fnu", v) for v in (0.0, 1e-300, -2.0)] == [0, 0, 128]


@pytest.mark.parametrize(
    "name, lo, hi", [("int8", -128, 127), ("uint8", 0, 255), ("int16", -32768, 32767), ("uint32", 0, 2**32 - 1)]
)
def test_floats_to_integers_saturate(name, lo, hi):
    mask = (1 << BITS[name]) - 1
    rows = [
        (1e30, hi),
        (-1e30, lo),
        (float("inf"), hi),
        (float("-inf"), lo),
        (float("nan"), 0),
        (1.9, 1),
        (-0.9, 0),
        (hi, hi),
    ]
    for v, want in rows:
        assert core.encode(name, v) == want & mask


@pytest.mark.parametrize(
    "a, b, want",
    [
        ("int32", "int64", "int64"),
        ("int32", "uint32", "uint32"),
        ("uint32", "int64", "int64"),
        ("int8", "uint8", "uint8"),
        ("bool", "int16", "int16"),
        ("int64", "float16", "float16"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float16", "float16"),
        ("float8_e4m3fn", "float32", "float32"),
        ("float32x4", "float32", "float32x4"),
    ],
)
def test_promotion(a, b, want):
    assert core.promote(a, b) == core.promote(b, a) == want


@pytest.mark.parametrize(
    "text", ["float99", "", "int32x1", "int32x65", "int32x", "x4", "handlex2", "int128x2", " int32"]
)
def test_unknown_dtypes_are_refused_at_once(text):
    with pytest.raises(ValueError):
        core.parse_dtype(text)


def test_every_dtype_parses_with_its_lanes():
    for name, alias, cls, bits, _ in core.dtypes():
        assert core.parse_dtype(name) == name
        if alias:
            assert core.parse_dtype(alias) == name
        if cls in "BIUFGM" and bits <= 64:
            assert core.parse_dtype(name + "x4") == name + "x4"
