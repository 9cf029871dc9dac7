# SPDX-License-Identifier: Apache-2.0
"""All the shared memory that a CTA can have, offsets beyond 2**31, and rings of slots, on a GPU."""

from __future__ import annotations

import pytest

import tirx
from tirx.lang import Pipeline, PipelineState
from tirx.script import tirx as T

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

SMEM = {(7, 5): 64, (8, 0): 163, (8, 6): 99, (8, 7): 163, (8, 9): 99, (12, 0): 99, (12, 1): 99}


def test_all_of_shared_memory():
    words = SMEM.get(torch.cuda.get_device_capability(), 227) * 256

    @T.prim_func
    def f(B: T.Buffer((1024,), "float32")):
        T.device_entry()
        tx = T.thread_id([1024])
        pool = T.SMEMPool()
        a = pool.alloc((words,), "float32")
        pool.commit()
        a[words - 1 - tx] = tx
        T.cuda.cta_sync()
        B[tx] = a[words - 1024 + tx]

    b = torch.zeros(1024, device="cuda")
    tirx.compile(f, target="cuda")(b)
    assert torch.equal(b, 1023 - torch.arange(1024, device="cuda", dtype=torch.float32))


def test_a_part_beyond_two_to_31():
    if torch.cuda.mem_get_info()[0] < 5 * 2**30:
        pytest.skip("4 GiB do not fit")

    @T.prim_func
    def f(A: T.Buffer((4, 2**30), "int8")):
        T.device_entry()
        tx = T.thread_id([4])
        V = A.sub[tx, 5:]
        V[2**30 - 6] = T.int8(tx + 1)

    a = torch.zeros((4, 2**30), dtype=torch.int8, device="cuda")
    tirx.compile(f, target="cuda")(a)
    assert a[:, -1].tolist() == [1, 2, 3, 4]
    assert int(a.view(torch.int64).count_nonzero()) == 4


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_ring_of_slots(depth):
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("mbarriers that are waited for")

    @T.prim_func
    def f(B: T.Buffer((32,), "int32"), n: T.int32):
        T.device_entry()
        w = T.warp_id([2])
        lane = T.lane_id([32])
        pool = T.SMEMPool()
        slots = pool.alloc((depth, 32), "int32")
        pipe = Pipeline(pool, depth, full="mbar", empty="mbar", init_full=32, init_empty=32, empty_phase_offset=1)
        pool.commit()
        T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        at = PipelineState(depth, 0)
        total: T.int32 = 0
        for i in range(n):
            if w == 0:
                pipe.empty.wait(at.stage, at.phase)
                slots[at.stage, lane] = i * lane
                pipe.full.arrive(at.stage)
            else:
                pipe.full.wait(at.stage, at.phase)
                total += slots[at.stage, 31 - lane]
                pipe.empty.arrive(at.stage)
            at.advance()
        if w == 1:
            B[lane] = total

    b = torch.zeros(32, dtype=torch.int32, device="cuda")
    tirx.compile(f, target="cuda")(b, 100)
    assert torch.equal(b, 4950 * (31 - torch.arange(32, dtype=torch.int32, device="cuda")))
