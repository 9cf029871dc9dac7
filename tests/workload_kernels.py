# SPDX-License-Identifier: Apache-2.0
"""Texts that the programs of test_oom.py and test_refleak.py have in common; they run in processes of their own."""

from __future__ import annotations

SHARED_KERNELS = """
def traced():
    @T.trace
    def k(A: T.Buffer((64,), "int32"), n: T.int32):
        T.device_entry()
        T.attr({"pragma_a": 1})
        tx = T.thread_id([64])
        T.cuda.atomic_add(A.ptr_to([0]), 1)
        with T.serial(n, annotations={"b": 2}) as i, T.If(i < tx), T.Then():
            A[tx] = A[tx] * 2 + i
    return k

def mapped():
    @T.prim_func
    def k(A: T.Buffer((8, 64), "float16"), n: T.int32, ready: T.TensorMap(), B: T.Buffer((64,), "int32")):
        maps = T.meta_var([T.tvm_stack_alloca("tensormap", 1) for _ in range(6)])
        for i, m in enumerate(maps):
            T.tensormap_encode_tiled(
                m, A.ptr_to([1, 0]), 64, n - i, 128, 32, 4, 1, 1, descriptor_dtype="float16", rank=2
            )
        T.device_entry()
        tx = T.thread_id([8])
        for m in maps:
            words = T.decl_buffer((32,), "int32", data=T.ptr_byte_offset(m, 0, "int32"))
            B[tx] = B[tx] + words[tx + 2]
        words = T.decl_buffer((32,), "int32", data=T.ptr_byte_offset(ready, 0, "int32"))
        B[tx + 8] = words[tx + 2]
    return k
"""
