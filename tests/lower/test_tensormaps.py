# SPDX-License-Identifier: Apache-2.0
"""Identical tensor maps of a host zone become one kernel parameter; different ones stay."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tirx
from tirx import T, _core

NUMBERS = (64, 32, 128, 32, 16, 1, 1)


def two_maps(second):
    @T.prim_func
    def k(
        A: T.Buffer((32, 64), "float16"), B: T.Buffer((32, 64), "float16"), out: T.Buffer((2, 16), "uint64"), n: T.int32
    ):
        first: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(first, A, 64, n, 128, 32, 16, 1, 1, descriptor_dtype="float16", rank=2, swizzle=2)
        other: T.let = T.tvm_stack_alloca("tensormap", 1)
        second(first, other, A, B, n)
        T.device_entry()
        tx = T.thread_id([16])
        a = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(first, 0, "uint64"))
        b = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(other, 0, "uint64"))
        out[0, tx] = a[tx]
        out[1, tx] = b[tx]

    return k


def encode(m, tensor, n, swizzle=2):
    T.tensormap_encode_tiled(
        m, tensor, 64, n, 128, 32, 16, 1, 1, descriptor_dtype="float16", rank=2, swizzle=swizzle
    )  # fmt: skip


def twice(m, A, n):
    encode(m, A, n)
    encode(m, A, n)


CASES = {
    "the same": (lambda first, other, A, B, n: encode(other, A, n), 1),
    "another tensor": (lambda first, other, A, B, n: encode(other, B, n), 2),
    "another element": (lambda first, other, A, B, n: encode(other, A.ptr_to([1, 0]), n), 2),
    "another size": (lambda first, other, A, B, n: encode(other, A, n - 1), 2),
    "another swizzle": (lambda first, other, A, B, n: encode(other, A, n, 3), 2),
    "encoded twice": (lambda first, other, A, B, n: twice(other, A, n), 2),
    "the first once more": (lambda first, other, A, B, n: (encode(other, A, n), encode(first, B, n)), 2),
}


@pytest.mark.parametrize("case", CASES)
def test_merging(case):
    second, want = CASES[case]
    kernel = two_maps(second)
    head = re.search(r"def k_kernel\((.*)\)", tirx.lower(kernel).script()).group(1)
    assert head.count("T.TensorMap()") == want
    a, b, out = np.zeros((32, 64), np.float16), np.zeros((32, 64), np.float16), np.zeros((2, 16), np.uint64)
    tirx.compile(kernel, target="cpu")(a, b, out, 20)
    alike = case in ("the same", "encoded twice")
    assert (out[0] == out[1]).all() == alike
    assert out[:, 1].all()  # both are there


def test_host_half_as_ir():
    """What MakePackedAPI writes reads back, and names the kinds of parameters as the messages of a call do."""

    @T.prim_func
    def k(A: T.Buffer((32, 64), "float16"), ready: T.TensorMap()):
        m: T.let = T.tvm_stack_alloca("tensormap", 1)
        encode(m, A, 32)
        T.device_entry()
        tx = T.thread_id([16])
        T.ptx.prefetch_tensormap(m)
        T.ptx.prefetch_tensormap(ready)

    module = _core.Module({"main": k})
    for name, _, _ in _core.passes():
        module = _core.run_pass(name, module, "cuda:sm_90a", {})
        assert tirx.structural_equal(tirx.from_source(module.script()), module), name
    assert "k(A: Tensor([32, 64], float16), ready: TensorMap)" in module.script()
    assert tirx.compile(k, target="cpu").signature == "k(A: Tensor([32, 64], float16), ready: TensorMap)"


def test_lowered_kernel_takes_maps_after_the_users_parameters():
    @T.prim_func
    def k(out: T.Buffer(("n",), "int32"), m: T.TensorMap(), A: T.Buffer((32, 64), "float16")):
        n = T.int32()
        w: T.let = T.tvm_stack_alloca("tensormap", 1)
        encode(w, A, 32)
        T.device_entry()
        tx = T.thread_id([16])
        if tx < n:
            T.ptx.prefetch_tensormap(w)
            T.ptx.prefetch_tensormap(m)
            out[tx] = n

    source = tirx.compile(k, target="cpu").source
    head = re.search(r"k_kernel\((.*)\)", source).group(1)
    assert head == (
        "int* __restrict__ out_ptr, const __grid_constant__ CUtensorMap m, const __grid_constant__ CUtensorMap w, int n"
    )
