# SPDX-License-Identifier: Apache-2.0
"""T.cuda.timer_*: where a group's words go, on a GPU; NVRTC takes them."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

GROUPS, BLOCKS, STRIDE = 2, 3, 6


@T.prim_func
def timed(P: T.Buffer((64,), "uint64"), A: T.Buffer((3 * 64,), "float32")):
    T.device_entry()
    bx = T.cta_id([3])
    warp = T.warp_id([2])
    lane = T.lane_id([32])
    tag = T.alloc_local((1,), "uint64")
    at = T.alloc_local((1,), "uint32")
    T.timer_init_cuda(P, tag, at, 2, warp)
    T.timer_start_cuda(5, P, tag, at, 6, lane == 0)
    A[bx * 64 + warp * 32 + lane] = 1.0
    T.timer_end_cuda(5, P, tag, at, 6, lane == 0)
    T.timer_finalize_cuda(P, tag, at, 6, lane == 0)


def test_both_names():
    text = timed.script().replace("timed", "k")
    lines = [
        "T.cuda.timer_init(P, tag, at, 2, warp)",
        "T.cuda.timer_start(5, P, tag, at, 6, lane == 0)",
        "A[bx * 64 + warp * 32 + lane] = 1.0",
        "T.cuda.timer_end(5, P, tag, at, 6, lane == 0)",
        "T.cuda.timer_finalize(P, tag, at, 6, lane == 0)",
    ]
    head = """@T.prim_func
def k(P: T.Buffer((64,), "uint64"), A: T.Buffer((3 * 64,), "float32")):
    T.device_entry()
    bx = T.cta_id([3])
    warp = T.warp_id([2])
    lane = T.lane_id([32])
    tag = T.alloc_local((1,), "uint64")
    at = T.alloc_local((1,), "uint32")
"""
    assert tirx.from_source(head + "".join(f"    {line}\n" for line in lines)).script() == text


def test_assembled(nvrtc):
    exe = tirx.compile(timed, target="cuda:sm_90a")
    assert exe.source.count("mov.u32 %0, %%globaltimer_lo;") == 1
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.gpu
def test_words():
    p = tirx.runtime.tensor(np.zeros(64, "uint64"), tirx.cuda(0))
    tirx.compile(timed, target="cuda")(p, tirx.runtime.tensor(np.zeros(192, "float32"), tirx.cuda(0)))
    words = [int(x) for x in p.numpy()]
    assert words[0] == GROUPS << 32 | BLOCKS
    for group in range(GROUPS * BLOCKS):
        mine = [w & 0xFFFFFFFF for w in words[1 + group :: STRIDE][:3]]
        assert mine == [group << 12 | 5 << 2, group << 12 | 5 << 2 | 1, group << 12 | 3]


def test_misuse():
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source("""
@T.prim_func
def k(P: T.Buffer((64,), "uint32")):
    T.device_entry()
    tx = T.thread_id([32])
    tag = T.alloc_local((1,), "uint64")
    T.cuda.timer_init(P, tag, tag, 1, 0)
""")
    assert "profiler_buffer must be a one-dimensional buffer of uint64" in str(e.value)
