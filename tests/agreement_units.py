# SPDX-License-Identifier: Apache-2.0
"""All kernels of the agreement with an H200, how they run on the emulator, and how results are compared and kept."""

from __future__ import annotations

import functools
import hashlib
import json

import agreement_engines
import agreement_forms
import agreement_wgmma
import numpy as np

import tirx


@functools.cache
def every() -> list[agreement_forms.Unit]:
    table = agreement_forms.units(agreement_forms.table_forms())
    return table + agreement_wgmma.wgmma_units() + agreement_engines.engine_units()


def aligned(a: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 256 bytes, as memory of a GPU does."""
    raw = np.zeros(a.nbytes + 256, "uint8")
    first = -raw.ctypes.data % 256
    out = raw[first : first + a.nbytes].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def emulate(b: agreement_forms.Batch, **options) -> list[np.ndarray]:
    exe = tirx.compile(tirx.from_source(b.source), target="cpu")
    args = [aligned(a) for a in b.args]
    exe(*args, numerics="hardware", **options, **b.options("cpu"))
    return args


# ---- how near approximate results are ------------------------------------------------------------------------------

# codes apart, or so far apart
NEAR = {
    "ex2.f32": (3, 0), "lg2.f32": (4, 4.4e-7), "rcp.f32": (1, 0), "rsqrt.f32": (2, 0), "sqrt.f32": (1, 0),
    "tanh.f32": (140, 0), "div.f32": (2, 0), "sin.f32": (0, 5e-7), "cos.f32": (0, 5e-7),
}  # fmt: skip


def ordered(codes: np.ndarray) -> np.ndarray:
    """Codes as numbers whose difference counts the floats in between."""
    size = codes.itemsize * 8
    c = codes.view(f"uint{size}").astype("int64")
    sign = np.int64(1) << np.int64(size - 1) if size < 64 else np.int64(-(2**63))
    return np.where(c & sign, -(c & ~sign), c)


def near(form: str, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where results are as near as they have to be."""
    same = got.view(f"uint{8 * got.itemsize}") == want.view(f"uint{8 * got.itemsize}")
    name, kind = form.split(".")
    if kind in ("f16x2", "bf16x2"):
        halves = [
            near(f"{name}.{kind[:-2]}", *(x.view("uint16").reshape(-1, 2)[:, i].copy() for x in (got, want)))
            for i in (0, 1)
        ]
        return halves[0] & halves[1]
    if kind in ("f16", "bf16"):
        top = 0x7C00 if kind == "f16" else 0x7F80
        nan = (want & 0x7FFF) > top
        return same | ~nan & (np.abs(ordered(got) - ordered(want)) <= 1)
    if kind == "f64":  # the upper half is given, 20 bits of fraction
        return same | np.isfinite(want) & (np.abs(ordered(got) - ordered(want)) <= 1 << 33)
    codes, apart = NEAR[form]
    special = ~np.isfinite(want)
    close = np.abs(ordered(got) - ordered(want)) <= codes
    if apart:
        with np.errstate(all="ignore"):
            close |= np.abs(got.astype("f8") - want.astype("f8")) <= apart
    return same | ~special & np.isfinite(got) & close


def compare(form: agreement_forms.Form, got, want) -> str:
    """Empty, or how the results differ."""
    for j, (g, w) in enumerate(zip(got, want, strict=True)):
        ok = near(form.near, g, w) if form.near else g.view(f"uint{8 * g.itemsize}") == w.view(f"uint{8 * w.itemsize}")
        if not ok.all():
            at = tuple(int(x[0]) for x in np.nonzero(~ok))
            codes = [f"{x.view(f'uint{8 * x.itemsize}')[at]:#x}" for x in (g, w)]
            return (
                f"result {j}, {int((~ok).sum())} of {ok.size}, first at {at}: {codes[0]} here, {codes[1]} on the H200"
            )
    return ""


def digest(rows) -> int:
    h = hashlib.blake2b(digest_size=8)
    for r in rows:
        h.update(np.ascontiguousarray(r).tobytes())
    return int.from_bytes(h.digest(), "little")


def record(form: agreement_forms.Form, rows):
    """What is kept of a GPU's answers: a digest; or all of them, where ours need only be near."""
    return [np.array(r) for r in rows] if form.near else digest(rows)


def save(path, recorded: dict) -> None:
    exact = sorted(n for n, r in recorded.items() if isinstance(r, int))
    rough = sorted(n for n, r in recorded.items() if not isinstance(r, int))
    arrays = {f"{i}.{j}": a for i, n in enumerate(rough) for j, a in enumerate(recorded[n])}
    names = np.frombuffer(json.dumps([exact, rough]).encode(), "uint8")
    np.savez_compressed(path, names=names, digests=np.array([recorded[n] for n in exact], "uint64"), **arrays)


def load(path) -> dict:
    with np.load(path) as z:
        exact, rough = json.loads(z["names"].tobytes())
        out = dict(zip(exact, (int(x) for x in z["digests"]), strict=True))
        for i, n in enumerate(rough):
            out[n] = [z[f"{i}.{j}"] for j in range(sum(1 for f in z.files if f.startswith(f"{i}.")))]
    return out
