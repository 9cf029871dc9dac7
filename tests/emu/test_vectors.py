# SPDX-License-Identifier: Apache-2.0
"""Vectors: arithmetic, comparison, choice, conversion and bits element by element, ramps, broadcasts and shuffles, for
every width; on the emulator against NumPy, and through NVRTC."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tirx

N = 32
DTYPES = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()


def numpy_dtype(t: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if t == "bfloat16" else np.dtype(t)


def operands(t: str, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(17)
    dtype = numpy_dtype(t)
    if "int" in t:
        info = np.iinfo(t)
        return tuple(rng.integers(info.min, info.max, (N, lanes), dtype=t, endpoint=True) for _ in range(2))
    return tuple((rng.standard_normal((N, lanes)) * 8).astype(dtype) for _ in range(2))


def run(t: str, lanes: int, out: str, out_lanes: int, text: str, nvrtc_target: str | None = None) -> np.ndarray:
    """Z[tx] = text over the vectors x and y, the scalar s (the first element of x) and tx."""
    source = f"""
@T.prim_func
def k(X: T.Buffer(({N}, {lanes}), "{t}"), Y: T.Buffer(({N}, {lanes}), "{t}"), Z: T.Buffer(({N}, {out_lanes}), "{out}")):
    T.device_entry()
    tx = T.thread_id([{N}])
    x: T.let = X[tx, T.ramp(0, 1, {lanes})]
    y: T.let = Y[tx, T.ramp(0, 1, {lanes})]
    s: T.let = X[tx, 0]
    Z[tx, {f"T.ramp(0, 1, {out_lanes})" if out_lanes > 1 else "0"}] = {text}
"""
    f = tirx.from_source(source)
    assert tirx.structural_equal(f, tirx.from_source(f.script()))
    x, y = operands(t, lanes)
    z = np.zeros((N, out_lanes), numpy_dtype(out))
    tirx.compile(f, target="cpu", contract=False)(x, y, z)
    if nvrtc_target:
        assert tirx.compile(f, target=nvrtc_target).cubin
    return z


def same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got.astype(np.float64) if got.dtype.kind == "V" else got, want.astype(got.dtype))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("t", DTYPES)
def test_element_by_element(t, lanes, nvrtc):
    x, y = operands(t, lanes)
    rows = {
        "x + y": x + y,
        "x - y": x - y,
        "x * y": x * y,
        "x + 3": x + np.asarray(3, x.dtype),
        "x * s": x * x[:, :1],
        "T.max(x, y)": np.maximum(x, y),
        "T.Select(x < y, x, y)": np.where(x < y, x, y),
        f"T.broadcast(s, {lanes})": np.broadcast_to(x[:, :1], x.shape),
        f"T.Shuffle([x, y], {[*range(2 * lanes)][::2]})": np.concatenate([x, y], 1)[:, ::2],
        f"T.Shuffle([x], {[*range(lanes)][::-1]})": x[:, ::-1],
    }
    if "int" in t:
        rows |= {"x & y": x & y, "x ^ y": x ^ y, "~x": ~x, "x >> 1": x >> 1, "x << 1": x << 1}
        rows |= {"x // 3": x // np.asarray(3, t), "x % 3": x % np.asarray(3, t)}
    else:
        rows |= {
            "x / y": x / y,
            "T.abs(x)": np.abs(x),
            "T.sqrt(x * x)": np.sqrt((x * x).astype(np.float64)).astype(x.dtype),
        }
    with np.errstate(all="ignore"):
        for k, (text, want) in enumerate(rows.items()):
            same(run(t, lanes, t, lanes, text, "cuda:sm_90a" if k % 3 == lanes % 3 else None), want)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", ["int8", "int32", "uint64", "float16", "float32", "float8_e4m3fn"])
@pytest.mark.parametrize("t", ["int16", "uint32", "float16", "float32", "float64"])
def test_conversions(t, to, nvrtc):
    import float_model as model

    x, _ = operands(t, 4)
    got = run(t, 4, to if to != "float8_e4m3fn" else "uint8", 4, convert_text(to), "cuda:sm_90a")
    if "int" in t and "int" in to:
        want = x.astype(to)
    elif to == "float16":
        want = x.astype(np.float64).astype(np.float16)
    else:
        want = model.convert(to, x.astype(np.float64))
    same(got, want)


def convert_text(to: str) -> str:
    text = f"T.cast(x, '{to}x4')"
    return f"T.reinterpret('uint8x4', {text})" if to == "float8_e4m3fn" else text


@pytest.mark.parametrize(
    "t, lanes, to, to_lanes", [("uint32", 2, "float16", 4), ("float64", 2, "uint32", 4), ("int8", 8, "int64", 1)]
)
def test_bits(t, lanes, to, to_lanes, nvrtc):
    name = f"{to}x{to_lanes}" if to_lanes > 1 else to
    got = run(t, lanes, to, to_lanes, f"T.reinterpret('{name}', x)", "cuda:sm_90a")
    x, _ = operands(t, lanes)
    np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_ramps(lanes, nvrtc):
    got = run("int32", lanes, "int32", lanes, f"T.ramp(tx * 3, -2, {lanes}) + x * 0", "cuda:sm_90a")
    np.testing.assert_array_equal(got, np.arange(N)[:, None] * 3 - 2 * np.arange(lanes))


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_vector_cells_and_arrays(lanes, nvrtc):
    source = f"""
@T.prim_func
def k(X: T.Buffer(({N}, {lanes}), "float32"), Z: T.Buffer(({N}, {lanes}), "float32")):
    T.device_entry()
    tx = T.thread_id([{N}])
    v = T.alloc_local((2,), "float32x{lanes}")
    c: T.float32x{lanes} = X[tx, T.ramp(0, 1, {lanes})]
    v[0] = c + c
    v[1] = T.broadcast(T.float32(1), {lanes})
    for i in range(3):
        v[1] = v[1] * v[0]
        c = c - v[i % 2]
    Z[tx, T.ramp(0, 1, {lanes})] = c + v[1]
"""
    x, _ = operands("float32", lanes)
    z = np.zeros_like(x)
    f = tirx.from_source(source)
    tirx.compile(f, target="cpu", contract=False)(x, z)
    assert tirx.compile(f, target="cuda:sm_90a").cubin
    v, c = [x + x, np.ones_like(x)], x
    for i in range(3):
        v[1] = v[1] * v[0]
        c = c - v[i % 2]
    np.testing.assert_array_equal(z, c + v[1])
