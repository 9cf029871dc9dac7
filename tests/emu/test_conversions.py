# SPDX-License-Identifier: Apache-2.0
"""Every code of every dtype of at most 16 bits, converted to every dtype: against the formats' definitions, and against
ml_dtypes where that means the same (it does not saturate)."""

from __future__ import annotations

import float_model as model
import ml_dtypes
import numpy as np
import pytest

import tirx

NARROW = ["bool", "int8", "uint8", "int16", "uint16", *model.FLOATS]
ALL = ["bool", *model.INTS, "float32", "float64", *model.FLOATS]
FP4 = "float4_e2m1fn"


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(name) if name not in model.FLOATS or name == "float16" else np.dtype(getattr(ml_dtypes, name))


def codes_of(name: str) -> np.ndarray:
    """Every code, as the integers that it is stored in."""
    if name == "bool":
        return np.array([False, True])
    if name in model.INTS:
        info = np.iinfo(name)
        return np.arange(info.min, info.max + 1).astype(name)
    bits = model.FLOATS[name].bits
    return np.arange(1 << bits, dtype=np.uint16 if bits > 8 else np.uint8)


def converted(source: str, to: str, values: np.ndarray, target: str = "cpu") -> np.ndarray:
    """What the emulator, or a GPU, makes of them, in the dtype `to`. Elements of four bits, of which two share a byte,
    come and go as float32, which holds them exactly."""
    src, dst = ("float32" if t == FP4 else t for t in (source, to))
    value = "A[i]" if source != FP4 else f"T.cast(A[i], '{FP4}')"
    value = f"T.cast({value}, '{to}')"
    if to == FP4:
        value = f"T.cast({value}, 'float32')"
    text = f"""
@T.prim_func
def k(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "{src}")
    B = T.match_buffer(b, (n,), "{dst}")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        B[i] = {value}
"""
    out = np.zeros(values.size, numpy_dtype(dst))
    exe = tirx.compile(tirx.from_source(text), target=target)
    if target == "cpu":
        exe(values, out)
        return out
    device = [tirx.runtime.tensor(a, tirx.cuda(0)) for a in (values, out)]
    exe(*device)
    return device[1].numpy()


def as_codes(name: str, x: np.ndarray) -> np.ndarray:
    if name == FP4:
        return model.encode(name, x.astype(np.float64))
    if name not in model.FLOATS:
        return x
    return x.view(np.uint16 if x.dtype.itemsize == 2 else np.uint8)


def same(to: str, got: np.ndarray, want: np.ndarray) -> None:
    """Equal codes, where any NaN is as good as another."""
    if to in model.FLOATS:
        nan = np.isnan(model.decoded(to)[want])
        assert (np.isnan(model.decoded(to)[got]) == nan).all()
        got, want = got[~nan], want[~nan]
    np.testing.assert_array_equal(got, want)
    if to in ("float32", "float64"):
        np.testing.assert_array_equal(np.signbit(got[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("name", model.FLOATS)
def test_the_model_agrees_with_ml_dtypes(name):
    """Every code, and numbers between all of them, up to the largest."""
    values = model.decoded(name)
    codes = codes_of(name)
    np.testing.assert_array_equal(codes.view(numpy_dtype(name)).astype(np.float64), values)
    finite = np.unique(values[np.isfinite(values)]).astype(np.float32)
    x = np.concatenate([finite, finite[1:] / 2 + finite[:-1] / 2])
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    x = x[np.abs(x) <= np.abs(finite).max()]
    if name == "float8_e8m0fnu":
        x = x[x >= 2.0**-126]  # among float32's subnormals ml_dtypes rounds 1.4999 up
    same(name, model.encode(name, x.astype(np.float64)), x.astype(numpy_dtype(name)).view(codes.dtype))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("source", NARROW)
def test_every_code(source, to):
    check_every_code(source, to, "cpu")


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", NARROW)
def test_every_code_on_a_gpu(source):
    for to in ALL:
        check_every_code(source, to, "cuda")


def check_every_code(source: str, to: str, target: str) -> None:
    codes = codes_of(source)
    x = model.number(source, codes)
    if source == FP4:
        values = x.astype(np.float32)
    else:
        values = codes.view(numpy_dtype(source)) if source in model.FLOATS else codes
    got = as_codes(to, converted(source, to, values, target))
    if source in model.INTS and to in model.INTS:
        want = codes.astype(to)
    elif source == to:
        want = codes
    else:
        want = model.convert(to, x)
    same(to, got, want)
    if source not in ("bool", FP4) and to in model.FLOATS and to not in (FP4, "float8_e8m0fnu"):
        limit = np.abs(model.decoded(to)[np.isfinite(model.decoded(to))]).max()
        kept = np.abs(x) <= limit
        # by way of float32, which holds x exactly: ml_dtypes has no table of every pair
        there = x[kept].astype(np.float32).astype(numpy_dtype(to))
        same(to, got[kept], there.view(np.uint16 if there.dtype.itemsize == 2 else np.uint8))


def telling(to: str, source: type) -> np.ndarray:
    """Numbers that tell rounding apart: the numbers of the narrow dtype, what lies between two, and the neighbours of
    each; the ends of the ranges; NaN and infinities; and random bits."""
    if to in model.FLOATS:
        finite = np.unique(model.decoded(to)[np.isfinite(model.decoded(to))])
    elif to in model.INTS:
        bits, signed = model.INTS[to]
        ends = [0.0, 1.0, 2.0 ** (bits - signed), 2.0 ** (bits - signed) - 1, -(2.0 ** (bits - 1))]
        finite = np.unique(np.array(ends + [e + d for e in ends for d in (-1.5, -1, -0.5, 0.5, 1, 1.5)]))
    else:
        finite = np.array([-1.0, 0.0, 1.0, 65504.0, 1e-40, 3e38])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, -finite]).astype(source)
        x = np.concatenate([x, np.nextafter(x, source(np.inf)), np.nextafter(x, source(-np.inf))])
        raw = np.random.default_rng(11).integers(0, 2**63, 1 << 14, dtype=np.uint64)
        raw = (
            (raw >> np.uint64(32)).astype(np.uint32).view(np.float32) if source is np.float32 else raw.view(np.float64)
        )
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(source).max, np.finfo(source).tiny], source)
        return np.concatenate([x, special, raw.astype(source)])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", ALL)
@pytest.mark.parametrize("source", [np.float32, np.float64], ids=["float32", "float64"])
def test_wide_floats(source, to):
    check_wide_floats(source, to, "cpu")


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", [np.float32, np.float64], ids=["float32", "float64"])
def test_wide_floats_on_a_gpu(source):
    for to in ALL:
        check_wide_floats(source, to, "cuda")


def check_wide_floats(source: type, to: str, target: str) -> None:
    x = telling(to, source)
    got = as_codes(to, converted(source.__name__, to, x, target))
    want = x.astype(to) if to in ("float32", "float64") else model.convert(to, x.astype(np.float64))
    same(to, got, want)
