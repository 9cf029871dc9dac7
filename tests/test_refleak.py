# SPDX-License-Identifier: Apache-2.0
"""What can be done again and again leaves nothing behind: neither Python objects nor memory of the C core.

Each workload runs in a process of its own: warmed up, then repeated, TIRX_LEAK_REPEAT times (`make refleak`: 300).
A reference that leaks once a turn shows as at least one block a turn, and memory that leaks as growth of the heap.
"""

from __future__ import annotations

import os

import pytest
from workload_kernels import SHARED_KERNELS

REPEAT = int(os.environ.get("TIRX_LEAK_REPEAT", "40"))

HEADER = """
import gc, sys
import numpy as np
import tirx, tirx.builder
from tirx.script import tirx as T

a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
"""
HEADER += SHARED_KERNELS
HEADER += """
def kernel():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        T.cuda.cta_sync()
        B[tx] = sm[63 - tx] + 1
    return k

def racing():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        sm[tx] = A[tx]
        B[tx] = sm[63 - tx]
    return k

def refused():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        A[tx] = no_such_name
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
        turned = sm.permute(1, 0).rearrange("(a b) c -> b a c", a=2).sub[1, :, ::2]
        B[0:2] = turned[0:2, 1]
        B[8:64] = A[0:56]
    return k

def refused_view():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([1])
        A.view(8, 8).sub[9]
    return k

def refused_trace():
    @T.trace
    def k(A: T.Buffer((64,), "int32")):
        with T.serial(3):
            A[64] = 1
    return k

def abandoned():
    def start():
        with tirx.builder.IRBuilder(), T.prim_func():
            A = T.arg("A", T.buffer((4,), "int32"))
            with T.serial(3) as i:
                T.attr({"pragma_a": 1})
                yield A
    next(start())

def rewritten():
    fn = lambda n: [n, n] if isinstance(n, tirx.ir.BufferStore) else n + 1 if isinstance(n, tirx.ir.Mul) else None
    # K's own memory grows with what is made in it
    return tirx.rewrite(kernel(), fn)

def walked():
    for n in tirx.ir.nodes(K):
        tirx.ir.fields(n), repr(n), n.children
    return tirx.structural_hash(K.body)

def raises(error, fn, *args):
    try:
        fn(*args)
    except error:
        return
    raise AssertionError(f"{error} was expected")

K = kernel()
EXE = tirx.compile(K, target="cpu")
RACE = tirx.compile(racing(), target="cpu")
H = np.zeros((8, 64), np.float16)
MAPPED = tirx.compile(mapped(), target="cpu")
"""

FOOTER = """
def heap():
    # Bytes that malloc has handed out, from glibc: the arena's blocks are there, Python's small objects are not.
    import ctypes
    class Info(ctypes.Structure):
        names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
        _fields_ = [(n, ctypes.c_size_t) for n in names.split()]
    try:
        fn = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    fn.restype = Info
    info = fn()
    return info.uordblks + info.hblkhd

def turns(n):
    for _ in range(n):
        work()

heap()
repeat = int(sys.argv[1])
growth = []
turns(max(100, repeat // 4))
for _ in range(6):
    gc.collect()
    blocks, used = sys.getallocatedblocks(), heap()
    turns(repeat)
    gc.collect()
    growth.append((sys.getallocatedblocks() - blocks, heap() - used))
blocks, used = min(g[0] for g in growth), min(g[1] for g in growth)
print(f"{repeat} turns: {blocks} blocks, {used} bytes", growth)
# Caches of Python and of the allocator settle; a leak grows in every round.
assert blocks < repeat * 0.5, f"{blocks / repeat:.2f} Python objects leak in a turn"
assert used < repeat * 16, f"{used / repeat:.0f} bytes leak in a turn"
"""

WORKLOADS = {
    "parse": "kernel()",
    "parse refused": "raises(tirx.DiagnosticError, refused)",
    "print": "K.script()",
    "print and read": "tirx.from_source(K.script())",
    "compile": "tirx.compile(K, target='cpu')",
    "cuda text": "tirx.compile(K, target='cpu').source",
    "call": "EXE(a, b)",
    "call, no checks": "EXE(a, b, check=False)",
    "call, keywords": "EXE(a, b, schedule=3)",
    "call refused": "raises((TypeError, ValueError), EXE, a, b[:5])",
    "call, too few": "raises(TypeError, EXE, a)",
    "trace": "traced()",
    "trace refused": "raises(tirx.DiagnosticError, refused_trace)",
    "builder abandoned": "abandoned(); gc.collect()",
    "rewrite": "rewritten()",
    "rewrite refused": "raises(tirx.DiagnosticError, tirx.rewrite, kernel(), lambda n: 'x')",
    "walk": "walked()",
    "views": "viewed().script()",
    "views refused": "raises(tirx.DiagnosticError, refused_view)",
    "report": "raises(tirx.EmulationError, RACE, a, b)",
    "tensor maps": "MAPPED(H, 9, tirx.tensor_map(H, (32, 4)), b)",
    "tensor maps compiled": "tirx.compile(mapped(), target='cpu')",
    "tensor map refused": "raises(ValueError, tirx.tensor_map, H, (32, 400))",
    "tensor maps refused": "raises((ValueError, TypeError), MAPPED, H, 3, H, b)",
}


@pytest.mark.nosanitize
@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_repeating_it_leaves_nothing_behind(work, run_python):
    run_python(f"{HEADER}\ndef work():\n    {work}\n{FOOTER}", args=[str(REPEAT)])
