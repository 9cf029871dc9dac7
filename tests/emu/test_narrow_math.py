# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and mathematics on every code of the 8- and 6-bit floats: computed in float32, rounded once."""

from __future__ import annotations

import math

import float_model as model
import numpy as np
import pytest
from emu import test_conversions as conversions

import tirx

NARROW = [name for name, f in model.FLOATS.items() if 4 < f.bits <= 8]
ONE = {
    **{name: getattr(np, name) for name in "exp exp2 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh".split()},
    **{name: getattr(np, name) for name in "floor ceil trunc".split()},
    "exp10": lambda x: 10.0**x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "round": np.rint,
    "abs": np.abs,
}
TWO = {
    "x + y": np.add,
    "x - y": np.subtract,
    "x * y": np.multiply,
    "x / y": np.divide,
    "T.min(x, y)": np.fmin,
    "T.max(x, y)": np.fmax,
    "T.pow(x, y)": np.power,
    "T.atan2(x, y)": np.arctan2,
    "T.hypot(x, y)": np.hypot,
    "T.fmod(x, y)": np.fmod,
    "T.fma(x, y, x)": lambda x, y: x * y + x,
}


def computed(name: str, text: str, *operands: np.ndarray) -> np.ndarray:
    """Codes of an expression over x (and y)."""
    n = operands[0].size
    params = "".join(f'{v}: T.Buffer(({n},), "{name}"), ' for v in "AC"[: len(operands)])
    lets = "".join(f"    {v}: T.let = {b}[i]\n" for v, b in zip("xy"[: len(operands)], "AC", strict=False))
    source = (
        f"@T.prim_func\ndef k({params}B: T.Buffer(({n},), '{name}')):\n    T.device_entry()\n"
        f"    bx = T.cta_id([{n // 64}])\n    tx = T.thread_id([64])\n    i: T.let = bx * 64 + tx\n"
        f"{lets}    B[i] = {text}\n"
    )
    out = np.zeros(n, conversions.numpy_dtype(name))
    tirx.compile(tirx.from_source(source), target="cpu", contract=False)(*operands, out)
    return out.view(np.uint8)


def same(name: str, got: np.ndarray, exact: np.ndarray) -> None:
    """Equal, or the neighbour where the exact value is so near to the middle that float32 cannot tell."""
    exact = exact.astype(np.float64)
    values = model.decoded(name)
    nearby = [model.encode(name, exact * k) for k in (1, 1 - 2.0**-21, 1 + 2.0**-21)]
    fits = np.any([got == n for n in nearby], axis=0)
    fits |= np.isnan(values[got]) & np.isnan(values[nearby[0]])
    zero = (values[got] == 0) & (values[nearby[0]] == 0)
    bad = np.flatnonzero(~(fits | zero))
    assert bad.size == 0, [(int(i), float(exact[i]), float(values[got[i]])) for i in bad[:5]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("name", NARROW)
def test_of_one(name, function):
    codes = conversions.codes_of(name)
    x = model.decoded(name)
    got = computed(name, f"T.{function}(x)", codes.view(conversions.numpy_dtype(name)))
    with np.errstate(all="ignore"):
        same(name, got, ONE[function](x))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", TWO)
@pytest.mark.parametrize("name", NARROW)
def test_of_two(name, text):
    codes = conversions.codes_of(name)
    x, y = (c.ravel() for c in np.meshgrid(codes, codes))
    got = computed(name, text, *(c.view(conversions.numpy_dtype(name)) for c in (x, y)))
    with np.errstate(all="ignore"):
        same(name, got, TWO[text](model.decoded(name)[x], model.decoded(name)[y]))
