# SPDX-License-Identifier: Apache-2.0
"""All 2**32 float32 numbers, converted to every dtype, against the formats' definitions. Hours; TIRX_FUZZ_SECONDS (3)
bounds the whole, and blocks are taken in an order that spreads over the range, so that a short run sees some of each
exponent. A full run: TIRX_FUZZ_SECONDS=1000000."""

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
TARGETS = [name for name in conversions.ALL if name != "float32"]


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


@pytest.mark.filterwarnings("ignore")
def test_every_float32():
    end = time.monotonic() + float(os.environ.get("TIRX_FUZZ_SECONDS", "3"))
    kernels = {to: kernel(to) for to in TARGETS}
    done = 0
    for k in range(BLOCKS):
        block = int(f"{k:012b}"[::-1], 2)  # bits reversed: 0, half, a quarter, ...
        x = (np.arange(BLOCK, dtype=np.uint32) + np.uint32(block * BLOCK)).view(np.float32)
        exact = x.astype(np.float64)
        for to, (exe, out) in kernels.items():
            exe(x, out, check=False)
            got = conversions.as_codes(to, out)
            conversions.same(to, got, exact if to == "float64" else model.convert(to, exact))
        done += 1
        if time.monotonic() > end:
            break
    print(f"{done} of {BLOCKS} blocks of {BLOCK} numbers")
