# SPDX-License-Identifier: Apache-2.0
"""Launches on a GPU: the attributes of a launch, clusters, empty grids, what the driver refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

pytestmark = pytest.mark.gpu


def configured(**config):
    @T.function
    def k(A: T.Tensor((64,), T.int32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=16, block=32, **config))
        if T.cuda.thread_idx("x") == 0:
            A[T.cuda.block_idx("x")] = T.cuda.block_idx("x") + 1

    return k


def filled(kernel) -> np.ndarray:
    a = tirx.runtime.tensor(np.zeros(64, np.int32), tirx.cuda(0))
    tirx.compile(kernel, target="cuda")(a)
    return a.numpy()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"cluster": 1},
        {"cluster": 2},
        {"cluster": 8},
        {"cluster": 16},
        {"cluster": 2, "preferred_cluster": 4},
        {"cooperative": True},
        {"programmatic_stream_serialization": True},
        {"priority": -1},
        {"dynamic_smem_bytes": 200 * 1024},
    ],
    ids=str,
)
def test_attributes(config):
    np.testing.assert_array_equal(filled(configured(**config))[:16], np.arange(1, 17))


def test_dynamic_shared_memory_that_grows_from_call_to_call():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, dynamic_smem_bytes=n))
        A[T.cuda.thread_idx("x")] = n

    exe = tirx.compile(k, target="cuda")
    a = tirx.runtime.tensor(np.zeros(64, np.int32), tirx.cuda(0))
    for n in (1024, 100 * 1024, 60 * 1024, 200 * 1024):
        exe(a, n)
        assert a.numpy()[31] == n
    with pytest.raises(
        tirx.CUDAError, match="Failed to set the allowed dynamic shared memory size to 1000000 bytes for k_kernel"
    ):
        exe(a, 1000000)
    exe(a, 1024)
    assert a.numpy()[0] == 1024


@pytest.mark.parametrize("kib", [46, 47, 48])
def test_static_and_dynamic_shared_memory_count_together(kib):
    """The driver grants 48 KiB without being asked for more, of both kinds together."""
    words = kib * 256

    @T.prim_func
    def k(A: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        big = T.alloc_buffer((words,), "int32", scope="shared.dyn")
        small = T.alloc_shared((512,), "int32")
        big[words - 1 - tx] = tx
        small[tx] = tx
        T.cuda.cta_sync()
        A[tx] = big[words - 64 + tx] + small[63 - tx] * 100

    np.testing.assert_array_equal(filled(k), 101 * np.arange(64)[::-1])


def test_a_grid_of_zero_launches_nothing():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), n: T.int32):
        T.device_entry()
        bx = T.cta_id([n])
        tx = T.thread_id([32])
        A[tx] = 1

    exe = tirx.compile(k, target="cuda")
    a = tirx.runtime.tensor(np.zeros(64, np.int32), tirx.cuda(0))
    exe(a, 0)
    assert not a.numpy().any()
    exe(a, 1)
    assert a.numpy()[:32].all()


def test_scalars_of_every_width():
    kinds = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
             "float32", "float64", "float8_e4m3fn")  # fmt: skip
    params = ", ".join(f"s{i}: T.{t}" for i, t in enumerate(kinds))
    lines = "\n".join(f"    A[{i}] = T.cast(s{i}, 'float64')" for i in range(len(kinds)))
    text = f"""
@T.prim_func
def k(A: T.Buffer((64,), "float64"), {params}):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
{lines}
"""
    a = tirx.runtime.tensor(np.zeros(64), tirx.cuda(0))
    values = [True, -5, -300, -70000, -(2**40), 200, 60000, 2**31 + 8, 2**40, 1.5, -2.5, 0.25, 1e100, 3.5]
    tirx.compile(tirx.from_source(text), target="cuda")(a, *values)
    np.testing.assert_array_equal(a.numpy()[: len(values)], np.array(values, np.float64))


def test_many_arguments():
    n = 100
    params = ", ".join(f"s{i}: T.int32" for i in range(n))
    lines = "\n".join(f"    A[{i}] = s{i}" for i in range(n))
    text = f"""
@T.prim_func
def k(A: T.Buffer(({n},), "int32"), {params}):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
{lines}
"""
    a = tirx.runtime.tensor(np.zeros(n, np.int32), tirx.cuda(0))
    tirx.compile(tirx.from_source(text), target="cuda")(a, *range(n))
    np.testing.assert_array_equal(a.numpy(), np.arange(n))


def test_threads_share_an_executable():
    import threading

    exe = tirx.compile(configured(), target="cuda")
    wrong = []

    def work():
        a = tirx.runtime.tensor(np.zeros(64, np.int32), tirx.cuda(0))
        for _ in range(50):
            exe(a)
        if not (a.numpy()[:16] == np.arange(1, 17)).all():
            wrong.append(a.numpy())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
