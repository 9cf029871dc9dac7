# SPDX-License-Identifier: Apache-2.0
"""Every allocation of the C core may fail: the result is a MemoryError, and afterwards all works as before.

The n-th allocation is made to fail, n going up until none is left to fail. In the suite only every few are tried;
TIRX_OOM_ALL=1 (`make oom`, in a build with assertions) tries each.
"""

from __future__ import annotations

import os

import pytest
from workload_kernels import SHARED_KERNELS

ALL = os.environ.get("TIRX_OOM_ALL", "0") != "0"

CODE = """
import sys
import numpy as np
import tirx
from tirx import _core
from tirx.script import ir as I
from tirx.script import tirx as T

a = np.arange(64, dtype=np.int32)
"""
CODE += SHARED_KERNELS
CODE += """
def kernel():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        T.cuda.cta_sync()
        for i in range(3):
            if tx > i:
                sm[tx] = sm[tx] + i
        B[tx] = sm[tx]
    return k

def viewed():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([1])
        pool = T.SMEMPool()
        sm = pool.alloc((8, 8), "int32", align=16)
        pool.commit()
        sm[:, :] = A.view(8, 8)
        turned = sm.permute(1, 0).sub[2:6, ::2]
        B[0:4] = turned[0:4, 1]
        B[8:64] = A[0:56]
    return k

def module():
    @I.ir_module
    class M:
        @T.prim_func(private=True)
        def half(x: T.int32) -> T.int32:
            if x < 0:
                return 0
            return x // 2
        @T.prim_func(private=True)
        def put(A: T.Buffer(("n", 2), "int32"), i: T.int32, unused: T.int32):
            n = T.int32()
            A[i % n, 0] = M.half(A[i % n, 1])
        @T.prim_func
        def main(A: T.Buffer((32, 2), "int32"), n: T.int32):
            x: T.int32 = n
            while x > 3:
                x = x // 2
                if x == 5:
                    continue
                domains = T.cuda.MemSyncDomainMap()
                with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=x, mem_sync_domain_map=domains)):
                    M.put(A, T.cuda.thread_idx("x"), x)
    return M

def chained():
    @T.prim_func
    def k(A: T.Buffer((512,), "uint32"), B: T.Buffer((512,), "uint32")):
        many: T.let = T.device.max_active_clusters()
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=many, block=64)):
            bx, t = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
            acc = T.alloc_local((16,), "uint32")
            for i in T.unroll(16):
                acc[i] = T.uint32(i)
            T.cuda.wgmma.fence_operand(*acc)
            A[bx * 64 + t] = acc[3]
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=8, block=64, programmatic_stream_serialization=True)):
            bx, t = T.cuda.block_idx("x"), T.cuda.thread_idx("x")
            if t == 0:
                T.ptx.griddepcontrol.wait()
            T.cuda.cta_sync()
            B[bx * 64 + t] = A[bx * 64 + t]
    return k

U = [np.zeros(512, np.uint32) for _ in range(2)]

def refused():
    try:
        @T.prim_func
        def k(A: T.Buffer((64,), "int32")):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = no_such_name
    except tirx.DiagnosticError:
        return
    raise AssertionError("the name should have been refused")

H, b = np.zeros((8, 64), np.float16), np.zeros(64, np.int32)
K = kernel()
EXE = tirx.compile(K, target="cpu")

def run(exe=EXE):
    b = np.zeros(64, np.int32)
    exe(a, b)
    i = np.arange(64)
    assert (b == i + np.where(i > 1, 1, 0) + np.where(i > 2, 2, 0)).all()

def work():
    WORK

work()
n, failed, step = 1, 0, int(sys.argv[1])
while True:
    _core.fail_alloc_at(n)
    try:
        work()
        # Done without the failure: either there are fewer allocations, or the failing one was not needed (a cache).
        through = _core.alloc_count() < n
    except MemoryError:
        through = False
        failed += 1
    finally:
        _core.fail_alloc_at(0)
    if through:
        break
    work()
    n += step if n > 32 else 1
run(tirx.compile(kernel(), target="cpu"))
print(f"{failed} of {n} allocations failed, each with a MemoryError")
assert failed > 0
"""

WORKLOADS = {
    "parse": "kernel()",
    "parse refused": "refused()",
    "module": "tirx.compile(module(), target='cpu')(np.zeros((32, 2), np.int32), 20)",
    "print": "K.script()",
    "compile": "tirx.compile(K, target='cpu')",
    "cuda text": "tirx.compile(K, target='cpu').source",
    "call": "run()",
    "trace": "traced().script()",
    "rewrite": "tirx.rewrite(kernel(), lambda n: [n, n.replace(value=n.value + 1)] if n.op == 'STORE' else None)",
    "chained text": "tirx.compile(chained(), target='cpu').source",
    "chained": "tirx.compile(chained(), target='cpu')(*U)",
    "views": "tirx.compile(viewed(), target='cpu')",
    "tensor maps": "tirx.compile(mapped(), target='cpu')(H, 9, tirx.tensor_map(H, (32, 4)), b)",
    "views printed": "viewed().script()",
}


@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_an_allocation_that_fails_is_a_memory_error(work, run_python):
    from tirx import _core

    if not hasattr(_core, "fail_alloc_at"):
        pytest.skip("this build does not count allocations")
    run_python(CODE.replace("    WORK", "    " + work), args=["1" if ALL else "17"])
