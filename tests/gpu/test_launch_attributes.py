# SPDX-License-Identifier: Apache-2.0
"""The attributes of a launch as the driver has them: it is captured into a graph, whose node is asked. No driver tells
the preferred cluster, nor, of policies, the default."""

from __future__ import annotations

import ctypes
import struct
import time

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

pytestmark = pytest.mark.gpu

# CUlaunchAttributeID in cuda.h
WINDOW, COOPERATIVE, CLUSTER, SCHEDULING, PRIORITY = 1, 2, 4, 5, 8
DOMAIN_MAP, DOMAIN, CARVEOUT = 9, 10, 14
NOT_READY, TOO_LARGE = 600, 720  # CUDA_ERROR_NOT_READY, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


class Driver:
    """The driver's own functions, each of which must succeed."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def __getattr__(self, name):
        def call(*arguments):
            assert getattr(self.library, name)(*arguments) == 0, name

        return call


@pytest.fixture(scope="module")
def driver():
    if tirx._core.device_arch(0) < 90:
        pytest.skip("clusters and domains need sm_90")
    tirx.cuda(0).sync()  # a context is current
    return Driver()


@pytest.fixture
def stream(driver):
    s = ctypes.c_void_p()
    driver.cuStreamCreate(ctypes.byref(s), 1)
    yield s.value
    driver.cuStreamDestroy_v2(ctypes.c_void_p(s.value))


def attribute(driver, stream, which, call) -> bytes:
    """Of the one kernel that `call` launches, and it has run."""
    graph, ready, node = (ctypes.c_void_p() for _ in range(3))
    count, value = ctypes.c_size_t(1), ctypes.create_string_buffer(64)
    driver.cuStreamBeginCapture_v2(ctypes.c_void_p(stream), 2)
    call()
    driver.cuStreamEndCapture(ctypes.c_void_p(stream), ctypes.byref(graph))
    driver.cuGraphGetNodes(graph, ctypes.byref(node), ctypes.byref(count))
    assert count.value == 1
    driver.cuGraphKernelNodeGetAttribute(node, which, value)
    driver.cuGraphInstantiateWithFlags(ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
    driver.cuGraphLaunch(ready, ctypes.c_void_p(stream))
    driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    driver.cuGraphExecDestroy(ready)
    driver.cuGraphDestroy(graph)
    return value.raw


def numbered(**config):
    @T.function
    def k(A: T.Tensor((64,), T.int32)):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=16, block=32, **config))
        if T.cuda.thread_idx("x") == 0:
            A[T.cuda.block_idx("x")] = T.cuda.block_idx("x") + 1

    return k


def zeros(n=64):
    return tirx.runtime.tensor(np.zeros(n, np.int32), tirx.cuda(0))


@pytest.mark.parametrize(
    "config, which, want",
    [
        ({"cooperative": True}, COOPERATIVE, (1,)),
        ({"cooperative": False}, COOPERATIVE, (0,)),
        ({"cluster": 2}, CLUSTER, (2, 1, 1)),
        ({"cluster": 2, "cluster_scheduling_policy": "spread"}, SCHEDULING, (1,)),
        ({"cluster": 2, "cluster_scheduling_policy": "load_balancing"}, SCHEDULING, (2,)),
        ({"priority": 0}, PRIORITY, (0,)),
        ({"priority": -3}, PRIORITY, (-3,)),
        ({"mem_sync_domain": "default"}, DOMAIN, (0,)),
        ({"mem_sync_domain": "remote"}, DOMAIN, (1,)),
        ({"mem_sync_domain_map": T.cuda.MemSyncDomainMap(1, 0)}, DOMAIN_MAP, b"\1\0"),
        ({"mem_sync_domain_map": T.cuda.MemSyncDomainMap(2, 3)}, DOMAIN_MAP, b"\2\3"),
        ({"preferred_shared_memory_carveout": 0}, CARVEOUT, (0,)),
        ({"preferred_shared_memory_carveout": 75}, CARVEOUT, (75,)),
    ],
    ids=str,
)
def test_a_node_has_the_attribute(config, which, want, driver, stream):
    exe = tirx.compile(numbered(**config), target="cuda")
    a = zeros()
    found = attribute(driver, stream, which, lambda: exe(a, stream=stream))
    if isinstance(want, tuple):
        want = struct.pack(f"{len(want)}i", *want)
    assert found[: len(want)] == want
    np.testing.assert_array_equal(a.numpy()[:16], np.arange(1, 17))


def test_a_node_has_the_window(driver, stream):
    """Its pointer, its size and its numbers are computed at the call."""

    @T.prim_func
    def k(A: T.Buffer(("n",), "int32"), B: T.Buffer((32,), "int32")):
        n = T.int32()
        window = T.meta_var(T.cuda.AccessPolicyWindow(A.data, n * 4, 0.5, "persisting", "streaming"))
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, access_policy_window=window))
        B[T.cuda.thread_idx("x")] = A[T.cuda.thread_idx("x")] + 1

    exe = tirx.compile(k, target="cuda")
    for n in (32, 1000):
        a, b = zeros(n), zeros(32)
        found = attribute(driver, stream, WINDOW, lambda a=a, b=b: exe(a, b, stream=stream))
        assert struct.unpack("QQfii", found[:28]) == (a._memory.pointer, 4 * n, 0.5, 2, 1)
        assert (b.numpy() == 1).all()


@pytest.mark.parametrize("blocks", [64, 100_000])
def test_a_cooperative_grid_is_there_at_once(blocks, driver):
    """Blocks wait for each other, which the driver grants or refuses."""

    @T.prim_func
    def k(A: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "int32")):
        n = T.int32()
        T.device_entry(launch=T.cuda.LaunchConfig(grid=n, block=32, cooperative=True))
        A[T.cuda.block_idx("x")] = T.cuda.block_idx("x")
        T.cuda.grid_sync()
        B[T.cuda.block_idx("x")] = A[n - 1 - T.cuda.block_idx("x")]

    exe = tirx.compile(k, target="cuda")
    a, b = zeros(blocks), zeros(blocks)
    if blocks == 64:
        exe(a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(64)[::-1])
    else:
        with pytest.raises(tirx.CUDAError) as e:
            exe(a, b)
        assert e.value.code == TOO_LARGE


EVENTS = {
    "begun": ("launch_completion_event", lambda e: T.cuda.LaunchCompletionEvent(e)),
    "triggered at the start": ("programmatic_event", lambda e: T.cuda.ProgrammaticEvent(e, 0, True)),
    "ended": ("programmatic_event", lambda e: T.cuda.ProgrammaticEvent(e)),
}


@pytest.mark.parametrize("when", EVENTS)
def test_an_event_comes(when, driver, stream):
    """Of a kernel that takes long. What is triggered early may come early: the driver does not say when it is seen."""
    field, record = EVENTS[when]

    @T.prim_func
    def k(A: T.Buffer((32,), "float32"), event: T.uint64, rounds: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, **{field: record(event)}))
        x: T.float32 = A[T.cuda.thread_idx("x")]
        for r in range(rounds):
            x = x * 0.5 + 1.0
        A[T.cuda.thread_idx("x")] = x

    exe = tirx.compile(k, target="cuda")
    event, a = ctypes.c_void_p(), tirx.runtime.tensor(np.zeros(32, np.float32), tirx.cuda(0))
    driver.cuEventCreate(ctypes.byref(event), 2)  # without timing
    exe(a, event.value, 1, stream=stream)
    driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    exe(a, event.value, 200_000_000, stream=stream)  # about half a second
    if when == "ended":
        time.sleep(0.02)
        assert driver.library.cuEventQuery(event) == NOT_READY
    driver.cuEventSynchronize(event)
    if when == "begun":
        assert driver.library.cuStreamQuery(ctypes.c_void_p(stream)) == NOT_READY
    driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    driver.cuEventDestroy_v2(event)
    np.testing.assert_array_equal(a.numpy(), np.full(32, 2, np.float32))


def test_a_dependent_waits_for_what_it_needs(driver, stream):
    """The second launch may begin while the first still runs, and sees its results behind griddepcontrol.wait."""

    @T.prim_func
    def first(A: T.Buffer((32,), "float32"), rounds: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        T.ptx.griddepcontrol.launch_dependents()
        x: T.float32 = 0.0
        for r in range(rounds):
            x = x * 0.5 + 1.0
        A[T.cuda.thread_idx("x")] = x

    @T.prim_func
    def second(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, programmatic_stream_serialization=True))
        T.ptx.griddepcontrol.wait()
        B[T.cuda.thread_idx("x")] = A[T.cuda.thread_idx("x")] * 2

    one, two = (tirx.compile(k, target="cuda") for k in (first, second))
    a, b = (tirx.runtime.tensor(np.zeros(32, np.float32), tirx.cuda(0)) for _ in range(2))
    for _ in range(3):
        one(a, 1_000_000, stream=stream)
        two(a, b, stream=stream)
    driver.cuStreamSynchronize(ctypes.c_void_p(stream))
    np.testing.assert_array_equal(b.numpy(), np.full(32, 4, np.float32))


def test_an_attribute_that_the_driver_does_not_know_is_said(driver):
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    exe = tirx.compile(numbered(nvlink_util_centric_scheduling=True), target="cuda")
    a = zeros()
    if version.value >= 13020:
        exe(a)
        np.testing.assert_array_equal(a.numpy()[:16], np.arange(1, 17))
    else:
        has = f"{version.value // 1000}.{version.value % 1000 // 10}"
        with pytest.raises(RuntimeError) as e:
            exe(a)
        assert str(e.value).endswith(
            f"LaunchConfig.nvlink_util_centric_scheduling requires CUDA >= 13.2, the driver has {has}"
        )
