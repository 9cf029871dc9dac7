# SPDX-License-Identifier: Apache-2.0
"""The function style of T.ptx: which row an alias stands for, and when the row itself is meant."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError

ALIASES = {
    "T.ptx.mbarrier.init(bar, 1)": 'T.ptx["mbarrier.init.shared.b64"](',
    "T.ptx.mbarrier.arrive(bar)": 'T.ptx["mbarrier.arrive.shared.b64"](',
    "T.ptx.mbarrier.arrive(bar, 1, tx == 0, 2)": 'T.ptx["mbarrier.arrive.shared::cluster.b64"](',
    "T.ptx.mbarrier.arrive.expect_tx(bar, 4096)": 'T.ptx["mbarrier.arrive.expect_tx.shared.b64"](',
    "T.ptx.mbarrier.try_wait(bar, 0)": "T.cuda.mbarrier_wait(",
    'T.ptx.fence("acq_rel", "cluster")': 'T.ptx["fence.acq_rel.cluster"]()',
    "T.ptx.fence.proxy_async()": 'T.ptx["fence.proxy.async"]()',
    'T.ptx.fence.proxy_async("shared::cta")': 'T.ptx["fence.proxy.async.shared::cta"]()',
    "T.ptx.fence.mbarrier_init()": 'T.ptx["fence.mbarrier_init.release.cluster"]()',
    "T.ptx.bar.sync(1, 64)": 'T.ptx["bar.sync"](',
    "T.ptx.barrier.cluster.arrive()": 'T.ptx["barrier.cluster.arrive"]()',
    "T.ptx.barrier.cluster.wait(acquire=True)": 'T.ptx["barrier.cluster.wait.acquire.aligned"]()',
    "T.ptx.setmaxnreg(True, 232)": 'T.ptx["setmaxnreg.inc.sync.aligned.u32"](232)',
    "T.ptx.wgmma.fence()": 'T.ptx["wgmma.fence.sync.aligned"]()',
    "T.ptx.wgmma.wait_group(0)": 'T.ptx["wgmma.wait_group.sync.aligned"](0)',
    "T.ptx.tcgen05.fence.after_thread_sync()": 'T.ptx["tcgen05.fence::after_thread_sync"]()',
    "T.ptx.tcgen05.commit(bar)": 'T.ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"](',
    "T.ptx.tcgen05.commit(bar, 2, 3)": "multicast::cluster",
    "T.ptx.tcgen05.relinquish_alloc_permit(2)": 'T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()',
    "T.ptx.cp_async.commit_group()": 'T.ptx["cp.async.commit_group"]()',
    "T.ptx.cp_async.wait_group()": 'T.ptx["cp.async.wait_group"](0)',
    "T.ptx.cp_async.bulk.wait_group(0, read=False)": 'T.ptx["cp.async.bulk.wait_group"](0)',
    "T.ptx.cp_async(S.ptr_to([0]), A.ptr_to([0]), 16)": 'T.ptx["cp.async.cg.shared.global"](',
    "T.ptx.cp_async(S.ptr_to([0]), A.ptr_to([0]), 4, predicate=tx < 3, fill_mode='zero')": "cp.async.ca.shared.global",
    "T.ptx.cp_async(S.ptr_to([0]), A.ptr_to([0]), 8, cache_hint='evict_last')": "global.L2::cache_hint",
    # complete rows stay rows
    "T.ptx.mbarrier.init.b64(bar, T.uint32(1))": 'T.ptx["mbarrier.init.b64"](',
}  # fmt: skip


def kernel(*lines):
    body = "\n".join("    " + line for line in lines)
    return f"""from tirx.script import tirx as T
@T.prim_func
def k(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_buffer((1,), "uint64", scope="shared")
    S = T.alloc_buffer((32,), "float32", scope="shared")
{body}
"""


@pytest.mark.parametrize("written", ALIASES)
def test_expansion(written):
    assert ALIASES[written] in tirx.from_source(kernel(written)).script()


def test_values():
    f = tirx.from_source(
        kernel("if T.ptx.elect_sync():", "    A[tx] = T.ptx.exp2(T.float32(3)) + T.ptx.rcp(T.float32(4))")
    )
    a = np.zeros(32, "float32")
    tirx.compile(f, target="cpu")(a)
    assert a[0] == 8.25
    assert not a[1:].any()


def test_waiting_with_cluster_scope_is_assembled(nvrtc):
    twice = ["T.ptx.mbarrier.try_wait_acquire_cluster(bar, 0)"]
    twice += ["T.cuda.mbarrier_wait_acquire_cluster(bar.ptr_to([0]), 1)"]
    exe = tirx.compile(tirx.from_source(kernel(*twice)), target="cuda:sm_90a")
    assert exe.cubin[:4] == b"\x7fELF"
    assert "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64" in exe.source
    assert exe.source.count("while (") == 2


@pytest.mark.parametrize("written", ["T.ptx.mbarrier.init(bar)", "T.ptx.mbarrier.nothing(bar)", "T.ptx.nothing()"])
def test_the_error_is_the_rows(written):
    with pytest.raises((DiagnosticError, AttributeError)):
        tirx.from_source(kernel(written))
