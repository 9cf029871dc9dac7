# SPDX-License-Identifier: Apache-2.0
"""Conversions of numbers from the formats' definitions: an independent reference, without tirx or ml_dtypes.

A number of any format but the widest integers is a float64, exactly; integers of 64 bits are Python's.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np


@dataclasses.dataclass(frozen=True)
class Format:
    """sign (if signed), exponent, mantissa; value = (1 + m / 2**man) * 2**(e - bias), subnormals below."""

    exp: int
    man: int
    bias: int
    inf: bool  # the last exponent holds infinities and NaNs, as IEEE's
    nan: str  # "ieee"; "last": only the code of all ones; "negative zero"; "none"
    signed: bool = True
    saturates: bool = True

    @property
    def bits(self) -> int:
        return self.exp + self.man + self.signed


FLOATS = {
    "float16": Format(5, 10, 15, True, "ieee", saturates=False),
    "bfloat16": Format(8, 7, 127, True, "ieee", saturates=False),
    "float8_e3m4": Format(3, 4, 3, True, "ieee"),
    "float8_e4m3": Format(4, 3, 7, True, "ieee"),
    "float8_e4m3b11fnuz": Format(4, 3, 11, False, "negative zero"),
    "float8_e4m3fn": Format(4, 3, 7, False, "last"),
    "float8_e4m3fnuz": Format(4, 3, 8, False, "negative zero"),
    "float8_e5m2": Format(5, 2, 15, True, "ieee"),
    "float8_e5m2fnuz": Format(5, 2, 16, False, "negative zero"),
    "float8_e8m0fnu": Format(8, 0, 127, False, "last", signed=False),
    "float6_e2m3fn": Format(2, 3, 1, False, "none"),
    "float6_e3m2fn": Format(3, 2, 3, False, "none"),
    "float4_e2m1fn": Format(2, 1, 1, False, "none"),
}
INTS = {f"{u}int{b}": (b, not u) for u in ("", "u") for b in (8, 16, 32, 64)}  # bits, signed


@functools.cache
def decoded(name: str) -> np.ndarray:
    """The number of every code."""
    f = FLOATS[name]
    codes = np.arange(1 << f.bits)
    sign = np.where(codes >> (f.exp + f.man) & f.signed, -1.0, 1.0)
    e, m = codes >> f.man & ((1 << f.exp) - 1), codes & ((1 << f.man) - 1)
    if name == "float8_e8m0fnu":
        value = 2.0 ** (codes - 127.0)
    else:
        normal = (1 + m / 2.0**f.man) * 2.0 ** (e - float(f.bias))
        value = sign * np.where(e == 0, m / 2.0**f.man * 2.0 ** (1.0 - f.bias), normal)
    last = e == (1 << f.exp) - 1
    if f.inf:
        value[last] = np.where(m[last] == 0, sign[last] * np.inf, np.nan)
    elif f.nan == "last":
        value[last & (m == (1 << f.man) - 1)] = np.nan
    elif f.nan == "negative zero":
        value[1 << (f.exp + f.man)] = np.nan
    return value


@functools.cache
def _sorted(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The finite numbers that are not negative, ascending, and their codes."""
    values = decoded(name)
    codes = np.arange(values.size)
    f = FLOATS[name]
    kept = np.isfinite(values) & (codes < 1 << (f.exp + f.man))
    order = np.argsort(values[kept], kind="stable")
    return values[kept][order], codes[kept][order]


def encode(name: str, x: np.ndarray) -> np.ndarray:
    """Codes of float64 numbers: to nearest, ties to even; beyond the largest the largest, or infinity for 16 bits; NaN
    is a NaN, or the largest where there is none."""
    f = FLOATS[name]
    values, codes = _sorted(name)
    size = np.abs(x)
    at = np.clip(np.searchsorted(values, size, side="right") - 1, 0, values.size - 1)
    up = np.minimum(at + 1, values.size - 1)
    low, high = values[at], values[up]
    middle = low + (high - low) / 2
    odd = codes[at] & 1 if f.man or f.exp < 8 else np.ones_like(at)  # powers of two: ties go up
    rises = (size > middle) | (size == middle) & (odd == 1) & (at != up)
    at = np.where(rises & (size > low), up, at)
    found = codes[at]
    if not f.saturates:
        beyond = size >= values[-1] + (values[-1] - values[-2]) / 2
        found = np.where(beyond, codes[-1] + 1, found)
    if f.signed:
        negative = np.signbit(x) & ~np.isnan(x)
        if f.nan == "negative zero":
            negative &= found != 0
        found = np.where(negative, found | 1 << (f.exp + f.man), found)
    nan = {"ieee": (1 << (f.exp + f.man)) - 1, "last": (1 << (f.bits - f.signed)) - 1}
    nan |= {"negative zero": 1 << (f.exp + f.man), "none": codes[-1]}
    return np.where(np.isnan(x), nan[f.nan], found)


def to_int(name: str, x: np.ndarray) -> np.ndarray:
    """float64 to an integer: toward zero, the nearest end beyond the range, NaN to 0."""
    bits, signed = INTS[name]
    lo, hi = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    inside = np.where(np.isnan(x), 0.0, np.trunc(x))
    inside = np.where((inside >= lo) & (inside < hi), inside, 0.0)
    found = inside.astype(name)
    found = np.where(x >= hi, np.iinfo(name).max, found)
    return np.where(x <= lo, np.iinfo(name).min, found).astype(name)


def number(name: str, codes: np.ndarray) -> np.ndarray:
    """Codes of a narrow dtype as float64."""
    return decoded(name)[codes] if name in FLOATS else codes.astype(np.float64)


def convert(to: str, x: np.ndarray) -> np.ndarray:
    """What float64 numbers become, as codes: unsigned integers for narrow floats, else the dtype itself."""
    if to == "bool":
        return x != 0
    if to in INTS:
        return to_int(to, x)
    if to in FLOATS:
        return encode(to, x)
    with np.errstate(over="ignore"):
        return x.astype(to)
