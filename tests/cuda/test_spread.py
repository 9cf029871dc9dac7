# SPDX-License-Identifier: Apache-2.0
"""Accumulators in the CUDA text: an array that an instruction takes many elements of, and whose elements are all named
by constants, is single variables there."""

from __future__ import annotations

import pytest

import tirx

KERNEL = """
@T.prim_func
def k(A: T.Buffer((4096,), "float32"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([128])
    acc = T.alloc_local((32,), "float32"{options})
    for i in {loop}:
        acc[i] = A[tx * 32 + i]
    {before}
    T.cuda.wgmma.fence_operand({operands})
    {after}
    for i in T.unroll(32):
        A[i * 128 + tx] = acc[i]
"""


def source(loop="T.unroll(32)", operands="*acc", before="pass", after="pass", options="") -> str:
    f = tirx.from_source(KERNEL.format(loop=loop, operands=operands, before=before, after=after, options=options))
    exe = tirx.compile(f, target="cuda:sm_90a")
    assert exe.cubin[:4] == b"\x7fELF"
    return exe.source


def test_spread(nvrtc, golden):
    text = source(after="acc_3: T.float32 = acc[3]\n    acc[7] += acc_3 * acc[8]")
    golden("cuda/spread.cu", text)
    assert "float acc_0, acc_1, acc_2" in text and "acc_ptr" not in text
    assert text.count("float acc_3 =") + text.count("float acc_3_1 =") == 1  # the user's own, beside the element


@pytest.mark.parametrize(
    "how",
    [
        {"loop": "T.serial(32, unroll=True)"},
        {"after": "acc[n] = 1.0"},
        {"after": "A[0] = acc[n & 31]"},
        {"operands": "*acc[0:8]"},  # not many
        {"after": "view = T.decl_buffer((32,), 'int32', data=acc.data, scope='local')\n    view[3] += 1"},
        {"after": "for i in T.vectorized(4):\n        A[tx * 4 + i] = acc[8 + i]"},
        {
            "before": "src = '__device__ void look(float* p) {}'",
            "after": "T.evaluate(T.cuda.func_call('look', acc.ptr_to([3]), source_code=src))",
        },
        {"after": "x: T.float32\n    T.ptx.ld.f32(x, acc.ptr_to([2]))\n    A[0] = x"},
    ],
    ids=lambda how: " ".join(how.values())[:30],
)
def test_what_needs_an_array_stays_one(how, nvrtc):
    text = source(**how)
    assert "float acc_ptr[32]" in text and "acc_0" not in text


def test_in_a_branch_and_twice(nvrtc):
    text = tirx.compile(
        tirx.from_source("""
@T.prim_func
def k(A: T.Buffer((4096,), "uint32"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([128])
    for j in range(n):
        part = T.alloc_local((16,), "uint32")
        if j % 2 == 0:
            for i in T.unroll(16):
                part[i] = A[tx * 16 + i]
        else:
            for i in T.unroll(16):
                part[i] = T.uint32(i)
        T.cuda.wgmma.fence_operand(*part)
        A[tx] += part[15]
    other = T.alloc_local((16,), "uint32")
    for i in T.unroll(16):
        other[i] = A[tx + i]
    T.cuda.wgmma.fence_operand(*other)
    A[tx] = other[3]
"""),
        target="cuda:sm_90a",
    )
    assert text.cubin[:4] == b"\x7fELF"
    assert "uint part_0," in text.source and "uint other_0," in text.source and "_ptr[16]" not in text.source
