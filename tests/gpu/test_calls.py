# SPDX-License-Identifier: Apache-2.0
"""Calls of CUDA executables on a real GPU, with torch tensors and with our own."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def cuda():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


@T.prim_func
def add(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        C[i] = A[i] + B[i]


@pytest.fixture(scope="module")
def exe():
    return tirx.compile(add, target="cuda")


SIGNATURE = "add(A: Tensor([n], float32), B: Tensor([n], float32), C: Tensor([n], float32))"


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1 << 20])
def test_torch_tensors(exe, cuda, n):
    a, b, c = (cuda.randn(n, device="cuda") for _ in range(3))
    exe(a, b, c)
    assert cuda.equal(c, a + b)


def test_views_and_parameters(exe, cuda):
    base = cuda.arange(1000.0, device="cuda")
    out = cuda.full((1000,), -1.0, device="cuda")
    exe(base[7:107], cuda.nn.Parameter(base[100:200]), out[50:150])
    assert cuda.equal(out[50:150], base[7:107] + base[100:200])
    assert (out[:50] == -1).all() and (out[150:] == -1).all()


def test_tensors_of_our_own_need_no_torch(exe):
    x = np.arange(1000, dtype=np.float32)
    a, b = (tirx.runtime.tensor(x, tirx.cuda(0)) for _ in range(2))
    c = tirx.runtime.tensor(np.zeros_like(x), tirx.cuda(0))
    assert c.__dlpack_device__() == (2, 0)
    exe(a, b, c)
    np.testing.assert_array_equal(c.numpy(), x + x)
    again = tirx.runtime.tensor(c)
    assert again.device == tirx.cuda(0)
    np.testing.assert_array_equal(again.numpy(), x + x)
    np.testing.assert_array_equal(tirx.runtime.tensor(c, tirx.cpu()).numpy(), x + x)


def test_torch_takes_our_tensors(cuda):
    t = tirx.runtime.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), tirx.cuda(0))
    x = cuda.from_dlpack(t)
    del t
    assert x.is_cuda and x.sum().item() == 15


def test_cuda_array_interface(exe, cuda):
    class Array:
        def __init__(self, t):
            self.t = t
            self.__cuda_array_interface__ = t.__cuda_array_interface__

    a, b, c = (cuda.randn(100, device="cuda") for _ in range(3))
    exe(Array(a), Array(b), Array(c))
    assert cuda.equal(c, a + b)


def test_managed_and_pinned_memory_can_be_read(exe, cuda):
    a = cuda.randn(100).pin_memory()
    b, c = (cuda.randn(100, device="cuda") for _ in range(2))
    try:
        exe(a, b, c)
    except ValueError as e:  # torch describes pinned memory as the host's
        assert "expected cuda, got cpu" in str(e)
        return
    assert cuda.equal(c, a.cuda() + b)


def test_refusals(exe, cuda):
    good = cuda.zeros(8, device="cuda")
    with pytest.raises(ValueError) as e:
        exe(good, good, cuda.zeros(8))
    assert str(e.value) == (
        f"Mismatched C.device_type on argument #2 when calling:\n  `{SIGNATURE}`,\n  expected cuda, got cpu"
    )
    with pytest.raises(ValueError) as e:
        exe(good, good[:7], good)
    assert str(e.value) == (
        f"Mismatched B.shape[0] on argument #1 when calling:\n  `{SIGNATURE}`,\n"
        "  expected to match A.shape[0] = 8, got 7"
    )
    with pytest.raises(TypeError) as e:
        exe(good, good.half(), good)
    assert str(e.value) == (
        f"Mismatched B.dtype on argument #1 when calling:\n  `{SIGNATURE}`,\n  expected float32, got float16"
    )
    with pytest.raises(ValueError) as e:
        exe(good, cuda.zeros(16, device="cuda")[::2], good)
    assert str(e.value) == (
        f"Mismatched B.strides on argument #1 when calling:\n  `{SIGNATURE}`,\n  expected to be compact array"
    )


SCALARS = {
    "bool": True,
    "int8": -100,
    "int16": -30000,
    "int64": -(2**40),
    "uint8": 200,
    "uint16": 60000,
    "uint32": 2**32 - 1,
    "uint64": 2**64 - 1,
    "float16": 1.5,
    "bfloat16": -2.5,
    "float32": 0.1,
    "float64": 0.1,
}


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalars_of_every_type(dtype):
    wide = "float64" if "float" in dtype else "uint64" if dtype.startswith("u") or dtype == "bool" else "int64"

    @T.prim_func
    def store(before: T.int8, x: getattr(T, dtype), after: T.int32, A: T.Buffer((3,), wide)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([1])
        A[0] = T.cast(before, wide)
        A[1] = T.cast(x, wide)
        A[2] = T.cast(after, wide)

    value = SCALARS[dtype]
    out = tirx.runtime.tensor(np.zeros(3, wide), tirx.cuda(0))
    tirx.compile(store, target="cuda")(1, value, 7, out)
    want = np.float32(value) if dtype == "float32" else value
    assert out.numpy().tolist() == [1, want, 7]


def test_no_tensor_at_all_uses_the_current_device():
    @T.prim_func
    def nothing(x: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        T.evaluate(x)

    tirx.compile(nothing, target="cuda")(3)
    tirx.cuda(0).sync()


# ---- streams, graphs, threads ----------------------------------------------------------------------------------------


@T.prim_func
def slow(A: T.Buffer(("n",), "float32"), rounds: T.int32):
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        for r in range(rounds):
            A[i] = A[i] * 0.5 + 1.0


def test_the_current_stream_of_torch_is_used(cuda):
    exe = tirx.compile(slow, target="cuda")
    a = cuda.zeros(1024, device="cuda")
    s = cuda.cuda.Stream()
    s.wait_stream(cuda.cuda.current_stream())
    with cuda.cuda.stream(s):
        exe(a, 2_000_000)
        done = cuda.cuda.Event()
        done.record()
    assert not done.query(), "the kernel did not run on the stream that was current"
    s.synchronize()
    assert cuda.allclose(a, cuda.full_like(a, 2.0))


def test_a_stream_can_be_given(cuda):
    exe = tirx.compile(slow, target="cuda")
    for form in (lambda s: s, lambda s: s.cuda_stream):
        a = cuda.zeros(1024, device="cuda")
        cuda.cuda.synchronize()
        s = cuda.cuda.Stream()
        exe(a, 2_000_000, stream=form(s))
        assert not s.query()
        s.synchronize()
        assert cuda.allclose(a, cuda.full_like(a, 2.0))


def test_calls_are_captured_into_a_graph(exe, cuda):
    a, b, c = (cuda.randn(1000, device="cuda") for _ in range(3))
    exe(a, b, c)
    cuda.cuda.synchronize()
    g = cuda.cuda.CUDAGraph()
    with cuda.cuda.graph(g):
        exe(a, b, c)
        exe(c, b, c)
    for _ in range(3):
        a.normal_()
        g.replay()
        cuda.cuda.synchronize()
        assert cuda.equal(c, (a + b) + b)


def test_the_first_call_may_be_captured(cuda):
    fresh = tirx.compile(add, target="cuda")
    a, b, c = (cuda.randn(1000, device="cuda") for _ in range(3))
    g = cuda.cuda.CUDAGraph()
    with cuda.cuda.graph(g):
        fresh(a, b, c)
    g.replay()
    cuda.cuda.synchronize()
    assert cuda.equal(c, a + b)


def test_threads_share_an_executable(exe, cuda):
    wrong = []

    def work(seed):
        g = cuda.Generator(device="cuda").manual_seed(seed)
        for _ in range(50):
            a, b = (cuda.randn(1000, device="cuda", generator=g) for _ in range(2))
            c = cuda.empty_like(a)
            exe(a, b, c)
            if not cuda.equal(c, a + b):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_many_calls_leave_nothing(exe, cuda):
    a, b, c = (cuda.zeros(64, device="cuda") for _ in range(3))
    exe(a, b, c)
    gc.collect()
    before = [sys.getrefcount(x) for x in (a, b, c, exe)], cuda.cuda.memory_allocated()
    for _ in range(1000):
        exe(a, b, c)
    cuda.cuda.synchronize()
    gc.collect()
    assert ([sys.getrefcount(x) for x in (a, b, c, exe)], cuda.cuda.memory_allocated()) == before


# ---- launches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kib", [47, 48, 49, 64, 200])
def test_dynamic_shared_memory(kib):
    n = kib * 256  # floats

    @T.prim_func
    def reverse(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([256])
        sm = T.alloc_buffer((n,), "float32", scope="shared.dyn")
        for i in range(kib):
            sm[i * 256 + tx] = A[i * 256 + tx]
        T.cuda.cta_sync()
        for i in range(kib):
            B[i * 256 + tx] = sm[n - 1 - (i * 256 + tx)]

    x = np.arange(n, dtype=np.float32)
    a, b = tirx.runtime.tensor(x, tirx.cuda(0)), tirx.runtime.tensor(np.zeros_like(x), tirx.cuda(0))
    tirx.compile(reverse, target="cuda")(a, b)
    np.testing.assert_array_equal(b.numpy(), x[::-1])


def needs_hopper():
    if tirx._core.device_arch(0) < 90:
        pytest.skip("clusters need sm_90")


@pytest.mark.parametrize("size", [1, 2, 8, 16])
def test_clusters(size):
    needs_hopper()

    @T.prim_func
    def ranks(A: T.Buffer((32,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=32, block=32, cluster=size))
        bx = T.cuda.block_idx("x")
        if T.cuda.thread_idx("x") == 0:
            A[bx] = bx + 1

    out = tirx.runtime.tensor(np.zeros(32, np.int32), tirx.cuda(0))
    tirx.compile(ranks, target="cuda")(out)
    np.testing.assert_array_equal(out.numpy(), np.arange(1, 33))


@pytest.mark.parametrize("option", ["cooperative", "programmatic_stream_serialization"])
def test_launch_attributes(option):
    needs_hopper()

    @T.prim_func
    def count(A: T.Buffer((64,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32, **{option: True}))
        i = T.cuda.block_idx("x") * 32 + T.cuda.thread_idx("x")
        A[i] = i

    try:
        exe = tirx.compile(count, target="cuda")
    except TypeError as e:
        pytest.skip(f"LaunchConfig has no {option}: {e}")
    out = tirx.runtime.tensor(np.zeros(64, np.int32), tirx.cuda(0))
    exe(out)
    np.testing.assert_array_equal(out.numpy(), np.arange(64))


def test_a_cubin_of_another_architecture_is_said(cuda):
    arch = "sm_80" if tirx._core.device_arch(0) != 80 else "sm_90a"
    exe = tirx.compile(add, target="cuda:sm_100a" if tirx._core.device_arch(0) < 100 else f"cuda:{arch}")
    a = cuda.zeros(8, device="cuda")
    with pytest.raises(tirx.CUDAError) as e:
        exe(a, a, a)
    assert "cuModuleLoadData failed with error: CUDA_ERROR_" in str(e.value)
    assert e.value.code != 0


def test_a_fault_of_the_kernel_ends_only_its_process(run_python):
    err = run_python(
        """
        import numpy as np
        import tirx
        from tirx.script import tirx as T

        @T.prim_func
        def wild(p: T.handle("float32", "global")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([1])
            A = T.decl_buffer((1,), "float32", data=p)
            A[0] = 1.0

        tirx.compile(wild, target="cuda")(16)
        tirx.cuda(0).sync()
        """,
        fails=True,
    )
    assert "CUDAError: cuCtxSynchronize failed with error: CUDA_ERROR_" in err


def test_a_forked_child_says_that_it_cannot_use_cuda(run_python):
    out = run_python(
        """
        import os, sys
        import numpy as np
        import tirx
        t = tirx.runtime.tensor(np.zeros(3), tirx.cuda(0))
        pid = os.fork()
        if pid == 0:
            try:
                tirx.runtime.tensor(np.zeros(3), tirx.cuda(0))
            except tirx.CUDAError as e:
                print("child:", e, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print("parent:", t.numpy().sum())
        """
    )
    assert out.startswith("child: CUDA was in use when this process was forked, and cannot be used in the child")
    assert out.endswith("parent: 0.0\n")


def test_a_second_gpu(cuda):
    if cuda.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    exe = tirx.compile(add, target="cuda")
    for device in (1, 0, 1):
        a, b, c = (cuda.randn(1000, device=f"cuda:{device}") for _ in range(3))
        exe(a, b, c)
        assert cuda.equal(c, a + b)
    with pytest.raises(ValueError) as e:
        exe(a, b, c.to("cuda:0"))
    assert "expected to match A.device_id = 1, got 0" in str(e.value)
