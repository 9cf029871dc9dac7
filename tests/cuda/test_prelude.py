# SPDX-License-Identifier: Apache-2.0
"""The prelude's conversions of 8-, 6- and 4-bit floats, compiled for the host from the text that a kernel gets,
against ml_dtypes: every code is read, and around every code and every midpoint between two a value is written."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

import tirx

ml_dtypes = pytest.importorskip("ml_dtypes")

KINDS = {
    "e3m4": "float8_e3m4",
    "e4m3": "float8_e4m3",
    "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e4m3fn": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2": "float8_e5m2",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e8m0fnu": "float8_e8m0fnu",
    "e2m3fn": "float6_e2m3fn",
    "e3m2fn": "float6_e3m2fn",
    "e2m1fn": "float4_e2m1fn",
}
SHIM = """
#include <cstring>
#include <cmath>
#define __device__
#define __forceinline__ inline
static unsigned __float_as_uint(float x) { unsigned r; memcpy(&r, &x, 4); return r; }
static float __uint_as_float(unsigned x) { float r; memcpy(&r, &x, 4); return r; }
"""


def text_of(kind: str) -> str:
    return tirx.compile(
        tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    B[tx] = T.cast(T.cast(A[tx], "{kind}"), "float32")
"""),
        target="cuda:sm_90a",
    ).source


@pytest.fixture(scope="module")
def prelude(tmp_path_factory):
    if not shutil.which("g++"):
        pytest.skip("g++ is not installed")
    pieces = {}
    for kind in KINDS.values():
        head = text_of(kind).split('extern "C"')[0]
        for piece in re.split(r"(?m)^(?=static |typedef )", head):
            pieces[piece] = None
    folder = tmp_path_factory.mktemp("prelude")
    out = [SHIM, *pieces]
    for name in KINDS:
        out.append(f'extern "C" float to_f32_{name}(unsigned char x) {{ return tirx_{name}_to_f32(x); }}\n')
        out.append(
            f'extern "C" void from_f32_{name}(const float* x, unsigned char* y, int n) '
            f"{{ for (int i = 0; i < n; ++i) y[i] = tirx_f32_to_{name}(x[i]); }}\n"
        )
    (folder / "p.cpp").write_text("".join(out))
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", folder / "p.so", folder / "p.cpp"], check=True)
    lib = ctypes.CDLL(str(folder / "p.so"))
    for name in KINDS:
        f = getattr(lib, f"to_f32_{name}")
        f.restype, f.argtypes = ctypes.c_float, [ctypes.c_ubyte]
    return lib


def codes(kind: str) -> np.ndarray:
    bits = int(re.search(r"float(\d)", kind)[1])
    return np.arange(1 << bits, dtype=np.uint8)


def decoded(kind: str) -> np.ndarray:
    return codes(kind).view(getattr(ml_dtypes, kind)).astype(np.float32)


@pytest.mark.parametrize("name", KINDS)
def test_every_code_is_read_exactly(name, prelude):
    want = decoded(KINDS[name])
    got = np.array([getattr(prelude, f"to_f32_{name}")(int(c)) for c in codes(KINDS[name])], np.float32)
    np.testing.assert_array_equal(got, want)
    keep = ~np.isnan(want)
    assert (np.signbit(got) == np.signbit(want))[keep].all()


def samples(kind: str) -> np.ndarray:
    """All values, all midpoints, their neighbours, and far beyond, of both signs."""
    v = np.unique(decoded(kind)[np.isfinite(decoded(kind))].astype(np.float64))
    top = v[-1] + (v[-1] - v[-2])
    at = np.concatenate([v, (v[1:] + v[:-1]) / 2, [top, (top + v[-1]) / 2]]).astype(np.float32)
    up, down = np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-np.inf))
    return np.concatenate([at, up, down, np.float32([0, 1e-45, 1e-30, 1e30, 3e38])])


@pytest.mark.parametrize("name", KINDS)
def test_writing_rounds_to_nearest_even_and_saturates(name, prelude):
    kind = KINDS[name]
    dtype = getattr(ml_dtypes, kind)
    x = samples(kind)
    if name == "e8m0fnu":
        x = x[x >= 2.0**-126]  # among float32's subnormals ml_dtypes rounds 1.4999 up
    else:
        x = np.concatenate([x, -x])
    got = np.empty(x.size, np.uint8)
    getattr(prelude, f"from_f32_{name}")(x.ctypes.data_as(ctypes.c_void_p), got.ctypes.data_as(ctypes.c_void_p), x.size)
    finite = decoded(kind)[np.isfinite(decoded(kind))]
    want = np.clip(x, finite.min(), finite.max()).astype(dtype)
    np.testing.assert_array_equal(got & (len(codes(kind)) - 1), want.view(np.uint8) & (len(codes(kind)) - 1))


@pytest.mark.parametrize("name", KINDS)
def test_infinities_saturate_and_nan_is_canonical(name, prelude):
    kind = KINDS[name]
    x = np.array([np.inf, np.nan], np.float32)
    got = np.empty(2, np.uint8)
    getattr(prelude, f"from_f32_{name}")(x.ctypes.data_as(ctypes.c_void_p), got.ctypes.data_as(ctypes.c_void_p), 2)
    values = decoded(kind)
    largest = values[np.isfinite(values)].max()
    assert values[got[0]] == largest
    if np.isnan(values).any():
        assert np.isnan(values[got[1]])
    else:
        assert values[got[1]] == largest
