# SPDX-License-Identifier: Apache-2.0
"""What the host zone computes: properties of the device in launch extents, and divisors for fast division."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def on(target, *arrays):
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    return [tirx.runtime.tensor(a, device) for a in arrays]


@T.prim_func
def persistent(a: T.handle, s: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int32")
    S = T.match_buffer(s, (3,), "int32")
    sms: T.let = T.device.num_sms()
    l2: T.let = T.device.l2_bytes()
    smem: T.let = T.device.block_smem_bytes()
    T.device_entry()
    bx = T.cta_id([T.min(sms, T.ceildiv(n, 32))])
    tx = T.thread_id([32])
    for part in range(bx, T.ceildiv(n, 32), T.cuda.grid_dim("x")):
        i: T.let = part * 32 + tx
        if i < n:
            A[i] += 1
    if T.And(bx == 0, tx == 0):
        S[0] = sms
        S[1] = l2
        S[2] = smem


@pytest.mark.parametrize("target", TARGETS)
def test_properties_of_the_device(target):
    exe = tirx.compile(persistent, target=target)
    for n in (1, 100, 5000):
        a, s = on(target, np.arange(n, dtype="int32"), np.zeros(3, "int32"))
        exe(a, s)
        np.testing.assert_array_equal(a.numpy(), np.arange(1, n + 1))
        if target == "cpu":
            assert list(s.numpy()) == [8, 1 << 22, 232448]
        else:
            import torch

            have = torch.cuda.get_device_properties(0)
            assert list(s.numpy()) == [have.multi_processor_count, have.L2_cache_size, 232448]


def test_they_read_back():
    text = persistent.script()
    assert 'T.call_packed("runtime.device_sm_count")' in text
    assert tirx.structural_equal(tirx.from_source(text), persistent)


@T.prim_func
def divided(x: T.handle, q: T.handle, r: T.handle, d: T.int32):
    n = T.int32()
    X = T.match_buffer(x, (n,), "int32")
    Q = T.match_buffer(q, (n,), "int32")
    R = T.match_buffer(r, (n,), "int32")
    by = T.fastdiv(d)
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 32)])
    tx = T.thread_id([32])
    i: T.let = bx * 32 + tx
    if i < n:
        Q[i] = X[i] // by
        quotient, rest = by.divmod(X[i])
        R[i] = rest + X[i] % by - by.mod(X[i]) + quotient - by.div(X[i])


@pytest.mark.parametrize("target", TARGETS)
def test_fast_division(target):
    exe = tirx.compile(divided, target=target)
    rng = np.random.default_rng(3)
    top = 2**31 - 1
    divisors = [1, 2, 3, 5, 7, 10, 641, 2**16 - 1, 2**16, 2**16 + 1, 2**30, 2**30 + 1, top - 1, top]
    for d in [*divisors, *map(int, rng.integers(1, top, 20))]:
        near = np.array([k * d + e for k in (1, 2, 3, top // d) for e in (-1, 0, 1)])
        x = np.concatenate([[0, 1, top - 1, top], near[(near >= 0) & (near <= top)], rng.integers(0, top, 40)])
        x, q, r = on(target, x.astype("int32"), np.zeros(x.size, "int32"), np.zeros(x.size, "int32"))
        exe(x, q, r, d)
        np.testing.assert_array_equal(q.numpy(), x.numpy() // d, err_msg=str(d))
        np.testing.assert_array_equal(r.numpy(), x.numpy() % d, err_msg=str(d))


def test_fast_division_divides_nothing_on_the_device(nvrtc):
    exe = tirx.compile(divided, target="cuda:sm_90a")
    assert "/" not in exe.source.split("__global__")[1]
    assert "div." not in exe.ptx
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("d", [0, -3])
def test_the_divisor_is_positive(d):
    exe = tirx.compile(divided, target="cpu")
    x = np.zeros(4, "int32")
    with pytest.raises(ValueError, match="the divisor must be positive"):
        exe(x, x.copy(), x.copy(), d)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("s = T.device.num_sms()", "T.device.num_sms stands before T.device_entry()"),
        ("s = T.device.max_active_clusters()", "T.device.max_active_clusters stands before T.device_entry()"),
        ("d = T.fastdiv(3)", "T.fastdiv stands before T.device_entry()"),
        ("s = T.device.cores()", "'Device' object has no attribute 'cores'"),
    ],
)
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"""
@T.prim_func
def k(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    {line}
""")
    assert text in str(e.value)


def occupied(cluster, threads, smem, wide=1):
    """A persistent kernel: as many clusters as can be active at once share out the parts."""

    @T.prim_func
    def k(a: T.handle, s: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        S = T.match_buffer(s, (3,), "int32")
        clusters: T.let = T.device.max_active_clusters()
        blocks: T.let = T.device.max_active_blocks_per_sm()
        T.device_entry()
        bx = T.cta_id([clusters * cluster])
        cx = T.cta_id_in_cluster([cluster])
        tx = T.thread_id([threads])
        room = T.alloc_buffer((smem,), "uint8", scope="shared.dyn")
        if T.And(bx == 0, tx == 0):
            room[smem - 1] = T.uint8(cx)
            S[0] = clusters
            S[1] = blocks
            S[2] = T.cuda.grid_dim("x")
        for part in range(bx, T.ceildiv(n, threads), T.cuda.grid_dim("x")):
            i: T.let = part * threads + tx
            if i < n:
                A[i] += 1

    return k


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("cluster", "threads", "smem"), [(1, 128, 1024), (2, 256, 100_000), (4, 384, 220_000), (16, 64, 4096)]
)
def test_active_clusters(target, cluster, threads, smem):
    exe = tirx.compile(occupied(cluster, threads, smem), target=target)
    n = 5000
    for _ in range(2):  # the second answer is one that was kept
        a, s = on(target, np.arange(n, dtype="int32"), np.zeros(3, "int32"))
        exe(a, s)
        np.testing.assert_array_equal(a.numpy(), np.arange(1, n + 1))
        clusters, blocks, grid = map(int, s.numpy())
        assert grid == clusters * cluster
        if target == "cpu":
            assert (clusters, blocks) == (max(8 // cluster, 1), 1)
        else:
            import torch

            sms = torch.cuda.get_device_properties(0).multi_processor_count
            # shared memory decides here: 228 KB an SM, 1 KB of which each block takes for itself
            assert blocks == min((228 << 10) // (smem + 1024), 2048 // threads, 32)
            assert 1 <= clusters <= sms * blocks // cluster
            assert cluster > 1 or clusters == sms * blocks


def test_the_question_names_the_kernel_when_lowered():
    m = tirx.lower(occupied(2, 256, 4096), target="cuda:sm_90a")
    text = m.script()
    assert 'T.call_packed("runtime.max_active_clusters", "k_kernel", 256, 1, 1, 2, 1, 1, 4096)' in text
    assert 'T.call_packed("runtime.max_active_blocks_per_sm", "k_kernel", 256, 1, 1, 2, 1, 1, 4096)' in text
    assert tirx.structural_equal(tirx.from_source(text), m)


@T.prim_func
def two_shapes(S: T.Buffer((4,), "int32"), width: T.int32):
    threads: T.let = width * 32
    one: T.let = T.device.max_active_clusters()
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=(one * 2, 2), block=threads, cluster=(2, 2))):
        if T.And(T.cuda.block_idx("x") + T.cuda.block_idx("y") == 0, T.cuda.thread_idx("x") == 0):
            S[0] = one
            S[1] = T.cuda.grid_dim("x")
    two: T.let = T.device.max_active_clusters()
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=two * 8, block=32, cluster=8)):
        if T.And(T.cuda.block_idx("x") + T.cuda.block_idx("y") == 0, T.cuda.thread_idx("x") == 0):
            S[2] = two
            S[3] = T.cuda.grid_dim("x")


def test_each_region_has_its_own_answer():
    s = np.zeros(4, "int32")
    exe = tirx.compile(two_shapes, target="cpu")
    exe(s, 3)
    assert list(s) == [2, 4, 1, 8]
    with pytest.raises(
        ValueError, match=r'block.x is 1056 where "max_active_clusters" is asked when calling:\n.*\n.*1\.\.1024'
    ):
        exe(s, 33)
