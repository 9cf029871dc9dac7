# SPDX-License-Identifier: Apache-2.0
"""What ptxas says about speed comes as warnings at the kernel's lines; the register usage level reaches it."""

from __future__ import annotations

import time
import warnings

import pytest

import tirx
import tirx.compiler
from tirx.script import tirx as T

WGMMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"


def multiply(touch):
    # NVRTC keeps what it compiled, without the advice: a text that it has never seen
    salt = float(time.time_ns() % 100_003)

    @T.prim_func
    def k(A: T.Buffer((128 * 128,), "float32")):
        T.device_entry()
        tx = T.thread_id([128])
        acc = T.alloc_local((128,), "float32")
        s = T.alloc_buffer((64 * 64 * 8,), "bfloat16", scope="shared.dyn", align=1024)
        da: T.let = T.cuda.wgmma.matrix_descriptor(s, 1, 64, 3)
        db: T.let = T.cuda.wgmma.matrix_descriptor(s.ptr_to([4096]), 1, 64, 3)
        T.ptx.wgmma.fence.sync.aligned()
        for i in T.serial(4, unroll=True):
            T.ptx[WGMMA](*acc, T.cuda.wgmma.advance(da, i * 32), T.cuda.wgmma.advance(db, i * 32), i != 0, 1, 1, 0, 0)
            if touch:
                acc[0] = acc[0] + salt
        T.ptx.wgmma.commit_group.sync.aligned()
        T.ptx.wgmma.wait_group.sync.aligned(0)
        T.cuda.wgmma.fence_operand(*acc)
        for i in T.serial(128, unroll=True):
            A[tx * 128 + i] = acc[i]

    return k


def many():
    salt = float(time.time_ns() % 100_003)

    @T.prim_func
    def k(A: T.Buffer((1024, 100), "float32"), n: T.int32):
        T.device_entry()
        tx = T.thread_id([1024])
        acc = T.alloc_local((100,), "float32")
        for i in T.serial(100, unroll=True):
            acc[i] = A[tx, i]
        for j in range(n):
            for i in T.serial(100, unroll=True):
                acc[i] = acc[i] * acc[(i + 1) % 100] + salt
        for i in T.serial(100, unroll=True):
            A[tx, i] = acc[i]

    return k


def said(kernel):
    """The warnings of a compilation whose image is not kept from another."""
    tirx.compiler.clear_cache()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tirx.compile(kernel, target="cuda:sm_90a")
    return [w for w in found if issubclass(w.category, tirx.PerformanceWarning)]


def line_of(text):
    with open(__file__) as f:
        return next(n for n, line in enumerate(f, 1) if text in line)


def test_serialized_matrix_instructions(nvrtc):
    (found,) = said(multiply(True))
    assert "wgmma.mma_async instructions are serialized" in str(found.message)
    assert str(found.message).startswith("ptxas C75")
    assert found.filename == __file__
    assert found.lineno == line_of("T.ptx[WGMMA]")


def test_spills(nvrtc):
    found = said(many())
    texts = [str(w.message) for w in found]
    assert any(t.startswith("registers are spilled to memory: ") for t in texts)
    assert any("bytes of local memory" in t for t in texts)
    assert all(w.filename == __file__ for w in found)


def test_a_good_kernel_is_not_talked_about(nvrtc):
    assert said(multiply(False)) == []


def test_advice_can_be_an_error(nvrtc):
    tirx.compiler.clear_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("error", tirx.PerformanceWarning)
        with pytest.raises(tirx.PerformanceWarning, match="serialized"):
            tirx.compile(multiply(True), target="cuda:sm_90a")


def with_level(level):
    @T.prim_func
    def k(A: T.Buffer((32,), "float32")):
        T.func_attr({"tirx.register_usage_level": level})
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = 1.0

    return k


def test_the_register_usage_level(nvrtc):
    for level in (0, 5, 10):
        assert tirx.compile(with_level(level), target="cuda:sm_90a").cubin[:4] == b"\x7fELF"
    with pytest.raises(ValueError, match="from 0 to 10, got 11"):
        tirx.compile(with_level(11), target="cuda:sm_90a")
