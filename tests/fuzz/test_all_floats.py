# SPDX-License-Identifier: Apache-2.0
"""All 2**32 float32 numbers, converted to every dtype, against the formats' definitions.

A conversion to a narrow float is a staircase over the numbers in order; float_model.py gives its steps, and what a
block of neighbouring numbers must become is filled in between them. TIRX_FUZZ_SECONDS (3) bounds the whole. Blocks are
taken in an order that spreads over the range, so that a short run sees every exponent; all take less than an hour of
one core. TIRX_FUZZ_PART=3/16 takes every sixteenth block from the third on: sixteen such runs are one on 16 cores.
"""

from __future__ import annotations

import os
import time

import float_model as model
import numpy as np
import pytest
from emu import test_conversions as conversions

import tirx

pytestmark = pytest.mark.fuzz

BLOCK = 1 << 20
BLOCKS = 1 << 12
INFINITY = 0x7F800000
TARGETS = [name for name in conversions.ALL if name != "float32"]


class Staircase:
    """Codes of the numbers from 0 to infinity: code[k] from the float32 whose bits are first[k] on."""

    def __init__(self, name: str):
        values = model.decoded(name)
        codes = np.arange(values.size)
        f = model.FLOATS[name]
        kept = np.isfinite(values) & (codes < 1 << (f.exp + f.man))
        order = np.argsort(values[kept], kind="stable")
        values, codes = values[kept][order], codes[kept][order]
        middle = values[:-1] + (values[1:] - values[:-1]) / 2
        if not f.saturates:
            middle = np.append(middle, values[-1] + (values[-1] - values[-2]) / 2)
            codes = np.append(codes, codes[-1] + 1)
        bits = middle.astype(np.float32).view(np.uint32).astype(np.int64)
        assert (middle.astype(np.float32) == middle).all()
        to_even = (codes[1:] & 1 == 0) | (f.man == 0)  # a tie goes to the code above
        self.name = name
        self.first = np.concatenate([[0], np.where(to_even, bits, bits + 1)])
        self.code = codes
        for shift in (0, -1):  # the staircase is the model's
            at = np.maximum(self.first[1:] + shift, 0).astype(np.uint32).view(np.float32).astype(np.float64)
            assert (model.encode(name, at) == codes[1 + shift : codes.size + shift]).all()

    def codes(self, start: int) -> np.ndarray:
        """Of the block of numbers whose bits begin at `start`."""
        f = model.FLOATS[self.name]
        low = start & 0x7FFFFFFF
        k = int(np.searchsorted(self.first, low, side="right")) - 1
        end = int(np.searchsorted(self.first, low + BLOCK, side="left"))
        edges = np.append(np.maximum(self.first[k:end], low), low + BLOCK)
        found = np.repeat(self.code[k:end], np.diff(edges))
        if start >> 31 and f.signed:
            negative = found | 1 << (f.exp + f.man)
            found = np.where(found == 0, 0, negative) if f.nan == "negative zero" else negative
        return found


def kernel(to: str):
    dst = "float32" if to == conversions.FP4 else to
    value = f"T.cast(A[i], '{to}')" if to != conversions.FP4 else f"T.cast(T.cast(A[i], '{to}'), 'float32')"
    text = f"""
@T.prim_func
def k(A: T.Buffer(({BLOCK},), "float32"), B: T.Buffer(({BLOCK},), "{dst}")):
    T.device_entry()
    bx = T.cta_id([{BLOCK // 256}])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    B[i] = {value}
"""
    return tirx.compile(tirx.from_source(text), target="cpu"), np.zeros(BLOCK, conversions.numpy_dtype(dst))


def integers(to: str, x: np.ndarray, start: int) -> np.ndarray | int:
    """What a block becomes as integers. A block has one sign and one power of two, so that it lies inside of the range
    or beyond it as a whole."""
    if to == "bool":
        return x != 0
    bits, signed = model.INTS[to]
    power = (start >> 23 & 255) - 127
    if start >> 31:
        if not signed or power < 0:
            return 0
        return x.astype(np.int64) if power < bits - 1 else -(1 << bits - 1)
    top = bits - signed
    return x.astype(np.uint64) if power < top else (1 << top) - 1


def equal(got: np.ndarray, want: np.ndarray | int) -> None:
    if not (got == want).all():
        np.testing.assert_array_equal(got, want)


def check(to: str, steps: Staircase | None, out: np.ndarray, x: np.ndarray, start: int) -> None:
    low = start & 0x7FFFFFFF
    numbers = max(0, min(BLOCK, INFINITY + 1 - low))
    if low < INFINITY and to == "float64":
        equal(out.view(np.uint64), x.astype(np.float64).view(np.uint64))
    elif low < INFINITY and steps is None:
        equal(out, integers(to, x, start))
    elif to == conversions.FP4 and numbers == BLOCK:
        equal(out, model.decoded(to)[steps.codes(start)])
    elif numbers == BLOCK:
        equal(conversions.as_codes(to, out), steps.codes(start))
    else:  # infinity and NaNs
        want = x.astype(np.float64) if to == "float64" else model.convert(to, x.astype(np.float64))
        conversions.same(to, conversions.as_codes(to, out), want)


@pytest.mark.filterwarnings("ignore")
def test_every_float32():
    end = time.monotonic() + float(os.environ.get("TIRX_FUZZ_SECONDS", "3"))
    kernels = {to: kernel(to) for to in TARGETS}
    steps = {to: Staircase(to) for to in TARGETS if to in model.FLOATS}
    first, step = map(int, os.environ.get("TIRX_FUZZ_PART", "0/1").split("/"))
    done = 0
    for k in range(first, BLOCKS, step):
        start = int(f"{k:012b}"[::-1], 2) * BLOCK  # bits reversed: 0, half, a quarter, ...
        x = (np.arange(BLOCK, dtype=np.uint32) + np.uint32(start)).view(np.float32)
        for to, (exe, out) in kernels.items():
            exe(x, out, check=False)
            check(to, steps.get(to), out, x, start)
        done += 1
        if time.monotonic() > end:
            break
    print(f"{done} of {BLOCKS} blocks of {BLOCK} numbers")
