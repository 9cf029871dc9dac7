# SPDX-License-Identifier: Apache-2.0
"""T.named_barrier: numbers of their own, and what they make threads do."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T


@T.prim_func
def handed_over(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    S = T.alloc_shared((64,), "int32")
    full = T.named_barrier(128)
    own = T.named_barrier(64)
    if tx < 64:
        S[63 - tx] = A[tx]
        own.sync()
        A[tx] = S[(tx + 1) % 64]
        full.arrive()
    else:
        full.sync()
        B[tx - 64] = S[tx - 64]


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_producer_that_does_not_wait(target):
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    values = np.arange(64, dtype="int32") * 3
    a, b = (tirx.runtime.tensor(x, device) for x in (values, np.zeros_like(values)))
    tirx.compile(handed_over, target=target)(a, b)
    np.testing.assert_array_equal(b.numpy(), values[::-1])
    np.testing.assert_array_equal(a.numpy(), np.roll(values[::-1], -1))


def test_numbers(nvrtc):
    text = handed_over.script()
    assert 'T.ptx["bar.sync"](T.uint32(14), T.uint32(64))' in text
    assert 'T.ptx["bar.arrive"](T.uint32(15), T.uint32(128))' in text
    assert tirx.compile(handed_over, target="cuda:sm_90a").cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["b = T.named_barrier(48)"], "multiple of 32 up to 1024, got 48"),
        (["b = T.named_barrier(2048)"], "multiple of 32 up to 1024, got 2048"),
        (["for i in [*range(16)]:", "    b = T.named_barrier(32)"], "a block has 15 of them"),
    ],
)
def test_misuse(lines, text):
    body = "".join(f"    {line}\n" for line in lines)
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"@T.prim_func\ndef k():\n    T.device_entry()\n    tx = T.thread_id([32])\n{body}")
    assert text in str(e.value)
