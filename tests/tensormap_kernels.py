# SPDX-License-Identifier: Apache-2.0
"""Kernels with tensor maps for the shared list. They read the maps as data, so that any architecture and the emulator
run them; what they give does not depend on where the tensors lie."""

from __future__ import annotations

import numpy as np
from kernels import kernel, zeros

from tirx.script import tirx as T


def halves(*words: int) -> np.ndarray:
    """Words 1, 2, ... of a map, as the kernels copy them."""
    return np.array([w >> s & 0xFFFFFFFF for w in words for s in (0, 32)], np.uint32)


@kernel(
    args=lambda r: (np.zeros((48, 64), np.float16), zeros(np.uint32, 16)),
    want=lambda a, out: {
        # rank 2, F16, 64-byte swizzle, NaN; stride 128; sizes 64 x 48; box 32 x 16, step 2; 512 bytes
        1: halves(1 << 4 | 6 << 7 | 2 << 13 | 1 << 15 | (128 >> 4) << 32, 0, 0, 63 | 47 << 32, 0, 1 << 35 | 31 << 56,
                  15, 512)
    },
)  # fmt: skip
def tensor_map():
    @T.prim_func
    def f(a: T.handle, O: T.Buffer((16,), "uint32")):
        n = T.int32()
        m = T.int32()
        A = T.match_buffer(a, (m, n), "float16")
        A_map: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
        T.call_packed(
            "runtime.cuTensorMapEncodeTiled", A_map, "float16", 2, A.data, n, m, n * 2, 32, 16, 1, 2, 0, 2, 0, 1
        )
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        words = T.decl_buffer((32,), "uint32", data=T.ptr_byte_offset(T.address_of(A_map), 0, "uint32"))
        if tx < 16:
            O[tx] = words[tx + 2]

    return f


@kernel(
    args=lambda r: (np.zeros((2, 4, 8, 64), np.float16), zeros(np.uint32, 16)),
    want=lambda a, out: {
        # im2col, rank 4, F16, 128-byte swizzle; strides 128, 1024, 4096; corners of 8 bits; 64 channels, 32 pixels
        1: halves(
            1 | 3 << 4 | 6 << 7 | 3 << 13 | (128 >> 4) << 32, 1024 >> 4 | (4096 >> 4) << 32, 0, 63 | 7 << 32,
            3 | 1 << 32, 1 << 38 | 63 << 56, 0xFF | 0xFE << 8 | 1 << 16 | 2 << 24 | 31 << 32, 64 * 32 * 2,
        )
    },
)  # fmt: skip
def im2col_map_g2():
    @T.function
    def f(A: T.Tensor((2, 4, 8, 64), T.float16), O: T.Tensor((16,), T.uint32)):
        m = T.stack_alloca("tensormap", 1)
        T.cuda.tensormap_encode_im2col(
            m, A, 64, 8, 4, 2, 128, 1024, 4096, -1, -2, 1, 2, 64, 32, 1, 1, 2, 1,
            descriptor_dtype=T.float16, rank=4, swizzle=3,
        )  # fmt: skip
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16))
        i = T.cuda.thread_idx("x")
        words = T.decl_buffer((32,), T.uint32, data=T.ptr_byte_offset(m, 0, "uint32"))
        O[i] = words[i + 2]

    return f
