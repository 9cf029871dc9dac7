# SPDX-License-Identifier: Apache-2.0
"""Checks of a CUDA executable that come before any launch, with tensors that only claim to be on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from dlpack_capsules import Capsule

import tirx
from tirx.script import tirx as T


@T.prim_func
def add(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"), C: T.Buffer((2, 3), "float32")):
    T.device_entry()
    bx = T.cta_id([2])
    tx = T.thread_id([3])
    C[bx, tx] = A[bx, tx] + B[bx, tx]


SIGNATURE = "add(A: Tensor([2, 3], float32), B: Tensor([2, 3], float32), C: Tensor([2, 3], float32))"


@pytest.fixture(scope="module")
def exe(nvrtc):
    return tirx.compile(add, target="cuda:sm_90a")


class Tensor:
    def __init__(self, device_type=2, **fields):
        self.capsule = Capsule(device_type=device_type, **fields)
        self.stream = "not asked"

    def __dlpack__(self, *, stream=None, max_version=None):
        self.stream = stream
        return self.capsule.object

    def __dlpack_device__(self):
        return (self.capsule.m.tensor.device_type, self.capsule.m.tensor.device_id)


@pytest.mark.parametrize(
    "args, what, text",
    [
        ((0, 1), "Mismatched A.device_type on argument #0", "expected cuda, got cpu"),
        ((1, 1), "Mismatched B.device_type on argument #1", "expected cuda, got cpu"),
        ((2, 10), "Mismatched C.device_type on argument #2", "expected cuda, got another device"),
    ],
)
def test_tensors_must_be_on_a_gpu(exe, args, what, text):
    position, kind = args
    tensors = [Tensor(), Tensor(), Tensor()]
    tensors[position] = Tensor(kind)
    with pytest.raises(ValueError) as e:
        exe(*tensors)
    assert str(e.value) == f"{what} when calling:\n  `{SIGNATURE}`,\n  {text}"
    assert [t.capsule.deleted for t in tensors] == [1, 1, 1]


def test_numpy_arrays_are_not_on_a_gpu(exe):
    with pytest.raises(ValueError) as e:
        exe(*[np.zeros((2, 3), np.float32)] * 3)
    assert str(e.value) == (
        f"Mismatched A.device_type on argument #0 when calling:\n  `{SIGNATURE}`,\n  expected cuda, got cpu"
    )


def test_all_on_the_same_gpu(exe):
    with pytest.raises(ValueError) as e:
        exe(Tensor(device_id=1), Tensor(device_id=1), Tensor(device_id=0))
    assert str(e.value) == (
        f"Mismatched C.device_id on argument #2 when calling:\n  `{SIGNATURE}`,\n"
        "  expected to match A.device_id = 1, got 0"
    )


def test_a_null_pointer(exe):
    with pytest.raises(ValueError) as e:
        exe(Tensor(), Tensor(data=None), Tensor())
    assert str(e.value) == (
        f"B data pointer is NULL on argument #1 when calling:\n  `{SIGNATURE}`,\n  expected non-NULL data pointer"
    )


def test_a_read_only_tensor(exe):
    with pytest.raises(ValueError) as e:
        exe(Tensor(flags=1), Tensor(), Tensor(flags=1))
    assert str(e.value) == (
        f"Read-only tensor on argument #2 when calling:\n  `{SIGNATURE}`,\n  C is written by the kernel"
    )


def test_a_malformed_tensor(exe):
    tensors = [Tensor(), Tensor(ndim=-1), Tensor()]
    with pytest.raises(ValueError) as e:
        exe(*tensors)
    assert str(e.value) == (
        f"Malformed DLPack tensor on argument #1 when calling:\n  `{SIGNATURE}`,\n  ndim is -1, expected 0..16"
    )
    assert [t.capsule.deleted for t in tensors] == [1, 0, 0]


def test_producers_synchronise_with_the_stream_of_the_call(exe):
    for given, want in ((None, 1), (0, 1), (4096, 4096)):
        tensors = [Tensor(), Tensor(), Tensor(ndim=-1)]
        with pytest.raises(ValueError):
            exe(*tensors, stream=given)
        assert [t.stream for t in tensors] == [want] * 3


class Stream:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Protocol:
    def __cuda_stream__(self):
        return (0, 4096)


@pytest.mark.parametrize("stream", [4096, Stream(cuda_stream=4096), Stream(ptr=4096), Protocol()])
def test_forms_of_a_stream(exe, stream):
    t = Tensor(ndim=-1)
    with pytest.raises(ValueError):
        exe(t, Tensor(), Tensor(), stream=stream)
    assert t.stream == 4096


def test_what_is_no_stream(exe):
    with pytest.raises(TypeError) as e:
        exe(Tensor(), Tensor(), Tensor(), stream="fast")
    assert str(e.value) == "stream: expected a CUDA stream object or its address, got <class 'str'>"


@pytest.mark.skipif(tirx._core.driver_available()[0], reason="there is a GPU")
def test_a_missing_driver_is_said_after_the_checks(exe):
    with pytest.raises(tirx.CUDAError) as e:
        exe(Tensor(), Tensor(), Tensor())
    assert "there is no CUDA d" in str(e.value) and 'target="cpu"' in str(e.value)
    assert e.value.code in (0, 100)


def test_empty_tensors_and_grids_launch_nothing(nvrtc):
    @T.prim_func
    def copy(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, 32)])
        tx = T.thread_id([32])
        i: T.let = bx * 32 + tx
        if i < n:
            B[i] = A[i]

    empty = dict(shape=(0,), strides=(1,), data=None)
    tirx.compile(copy, target="cuda:sm_90a")(Tensor(**empty), Tensor(**empty))
