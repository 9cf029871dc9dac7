# SPDX-License-Identifier: Apache-2.0
"""Tensor maps on a real GPU: our encoder against the driver's, maps that kernels get, and copies that use them."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import numpy as np
import pytest
from tensormap_fields import NAMES, random_fields, spoiled

import tirx
from tirx import _core
from tirx.script import tirx as T

pytestmark = pytest.mark.gpu
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


@pytest.fixture(scope="module")
def cuda():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    return torch


def answer(address: int, fields: tuple, arch: int, by: str) -> bytes | None:
    """The map, or None when it is refused."""
    try:
        return _core.tensormap_encode(address, fields, arch, by)
    except ValueError:
        assert by == "rules"
    except tirx.CUDAError as e:
        assert by == "driver" and e.code == 1
    return None


def maps(seed: int, n: int, change=None):
    rng = random.Random(seed)
    for _ in range(n):
        fields = random_fields(rng, 13, 4)
        if change is not None:
            fields = change(rng, fields)
        yield rng.randrange(16, 2**57, 16), fields


@pytest.mark.parametrize("seed", range(4))
def test_the_driver_encodes_the_same(seed, cuda):
    arch = _core.device_arch(0)
    if arch >= 100:
        pytest.skip("the encoding is that of sm_90")
    for address, fields in maps(seed, 1000):
        want = answer(address, fields, arch, "driver")
        assert want is not None, dict(zip(NAMES, fields, strict=True))
        assert answer(address, fields, arch, "rules") == want, dict(zip(NAMES, fields, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_the_driver_refuses_the_same(seed, cuda):
    arch = _core.device_arch(0)
    if arch >= 100:
        pytest.skip("the rules are those of sm_90")
    refused = 0
    for address, fields in maps(seed + 100, 1500, spoiled):
        want = answer(address, fields, arch, "driver")
        refused += want is None
        assert answer(address, fields, arch, "rules") == want, dict(zip(NAMES, fields, strict=True))
    assert 300 < refused < 1400


def test_what_sm_90_lacks_is_told_first(cuda):
    if _core.device_arch(0) >= 100:
        pytest.skip("only GPUs before sm_100 lack it")

    @T.prim_func
    def k(A: T.Buffer((32, 64), "float16"), out: T.Buffer((16,), "uint64"), swizzle: T.int32):
        m: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(
            m, A, 64, 32, 128, 16, 8, 1, 1, descriptor_dtype="float16", rank=2, swizzle=swizzle
        )  # fmt: skip
        T.device_entry()
        tx = T.thread_id([16])
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
        out[tx] = view[tx]

    exe = tirx.compile(k, target="cuda")
    a = cuda.zeros(32, 64, dtype=cuda.float16, device="cuda")
    out = cuda.zeros(16, dtype=cuda.uint64, device="cuda")
    with pytest.raises(ValueError) as e:
        exe(a, out, 4)
    assert str(e.value).endswith("\n  swizzle 4 needs sm_100, the GPU is sm_90")
    exe(a, out, 3)
    address, fields = _core.tensormap_decode(out.cpu().numpy().tobytes())
    assert address == a.data_ptr() and fields[11] == 3


def test_ready_maps_reach_the_kernel(cuda):
    @T.prim_func
    def k(m: T.TensorMap(), out: T.Buffer((16,), "uint64")):
        T.device_entry()
        tx = T.thread_id([16])
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
        out[tx] = view[tx]

    exe = tirx.compile(k, target="cuda")
    a = cuda.zeros(4, 32, 64, dtype=cuda.bfloat16, device="cuda")
    m = tirx.tensor_map(a[:, 1:, 8:], (32, 16, 2), swizzle="64B", l2_promotion="256B", oob_fill="nan")
    out = cuda.zeros(16, dtype=cuda.uint64, device="cuda")
    exe(m, out)
    assert out.cpu().numpy().tobytes() == bytes(m)
    assert _core.tensormap_decode(bytes(m))[0] == a.data_ptr() + 128 + 16
    host = tirx.tensor_map(np.zeros((32, 64), np.float16), (32, 16))
    with pytest.raises(ValueError, match="expected a map over a tensor on cuda, got one on cpu"):
        exe(host, out)


def copier(dtype: str, rank: int, box: tuple[int, ...], swizzle: int):
    """Each block loads one box and stores it again: a copy, whatever the swizzle."""
    size = np.dtype(dtype if dtype != "bfloat16" else "float16").itemsize
    count = int(np.prod(box))
    sides = (*box, 1, 1)
    row = {0: box[0] * size, 1: 32, 2: 64, 3: 128}[swizzle]
    image = row * (count // box[0]) // size
    LOAD = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    STORE = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"

    @T.prim_func
    def k(m: T.TensorMap(), w: T.TensorMap(), x: T.int32, y: T.int32, z: T.int32):
        T.device_entry()
        bx, by, bz = T.cta_id([x, y, z])
        tx = T.thread_id([32])
        sm = T.alloc_shared((image,), dtype, align=1024)
        bar = T.alloc_shared((1,), "uint64")
        at = T.meta_var([bx * sides[0], by * sides[1], bz * sides[2]][:rank])
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), count * size)
            T.ptx[LOAD](sm.ptr_to([0]), T.address_of(m), *at, bar.ptr_to([0]))
            T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
            T.ptx[STORE](T.address_of(w), *at, sm.ptr_to([0]))
            T.ptx.cp.async_.bulk.commit_group()
            T.ptx.cp.async_.bulk.wait_group(0)

    return k


COPIES = [
    ("float16", (64, 32), (64, 8), 3),
    ("float16", (72, 33), (64, 8), 3),
    ("bfloat16", (200, 100), (32, 64), 2),
    ("float32", (40, 40), (8, 8), 1),
    ("float32", (44, 7), (32, 4), 3),
    ("uint8", (1008, 9), (256, 4), 0),
    ("uint8", (48, 300), (16, 256), 1),
    ("int32", (64, 12, 5), (32, 4, 2), 3),
    ("float64", (18, 5, 7), (8, 2, 3), 2),
    ("float16", (4096,), (256,), 0),
]


@pytest.mark.parametrize("dtype, shape, box, swizzle", COPIES)
def test_copies(dtype, shape, box, swizzle, cuda):
    exe = tirx.compile(copier(dtype, len(shape), box, swizzle), target="cuda")
    a = cuda.randint(0, 100, shape[::-1], device="cuda").to(getattr(cuda, dtype))
    b = cuda.full_like(a, 7)
    mode = ("none", "32B", "64B", "128B")[swizzle]
    grid = [-(-n // m) for n, m in zip(shape, box, strict=True)] + [1, 1]
    exe(*(tirx.tensor_map(t, box, swizzle=mode) for t in (a, b)), *grid[:3])
    assert cuda.equal(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_example(dtype, cuda, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    transpose = runpy.run_path(str(EXAMPLES / "tma_copy.py"))["transpose"]
    exe = tirx.compile(transpose.specialize(dtype=dtype), target="cuda")
    for m, n in ((64, 64), (8, 8), (200, 72), (1000, 1048), (16, 4096)):
        a = cuda.randn(m, n, device="cuda").to(getattr(cuda, dtype))
        b = cuda.full((n, m), float("nan"), device="cuda", dtype=a.dtype)
        exe(a, b)
        assert cuda.equal(b, a.T)
