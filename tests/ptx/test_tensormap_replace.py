# SPDX-License-Identifier: Apache-2.0
"""tensormap.replace and tensormap.cp_fenceproxy: maps that a kernel changes, against maps encoded so."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx import T, _core

BASE = dict(dims=(64, 32, 5, 3, 2), strides=(128, 4096, 20480, 61440), box=(32, 16, 2, 1, 1), es=(1, 1, 2, 1, 1))


def encoded(dtype=6, dims=(), strides=(), box=(), es=(), interleave=0, swizzle=2, oob=0, address=4096) -> bytes:
    fields = (False, dtype, dims, strides, box, es, (), (), 0, 0, interleave, swizzle, 1, oob)
    return _core.tensormap_encode(address, fields, 90, "rules")


def cut(n: int) -> dict:
    """The base map with n dimensions."""
    return {k: v[: n - (k == "strides")] for k, v in BASE.items()}


def put(values: tuple, at: int, v: int) -> tuple:
    return (*values[:at], v, *values[at + 1 :])


FIVE = cut(5)
FAR = 1 << 39
CASES = [
    ("global_address.b64", (), 1 << 40, dict(FIVE, address=1 << 40)),
    *[("global_dim.b32", (d,), 77 + d, dict(FIVE, dims=put(FIVE["dims"], d, 77 + d))) for d in range(5)],
    *[
        ("global_stride.b64", (d,), FAR + d * 16, dict(FIVE, strides=put(FIVE["strides"], d, FAR + d * 16)))
        for d in range(4)
    ],
    *[("box_dim.b32", (d,), 8 + 8 * (d == 0), dict(FIVE, box=put(FIVE["box"], d, 8 + 8 * (d == 0)))) for d in range(5)],
    *[("element_stride.b32", (d,), 8 - d, dict(FIVE, es=put(FIVE["es"], d, 8 - d))) for d in range(1, 5)],
    *[("elemtype.b32", (v,), None, dict(FIVE, dtype=n)) for v, n in ((0, 0), (1, 1), (6, 6), (10, 9))],
    ("swizzle_mode.b32", (3,), None, dict(FIVE, swizzle=3)),
    ("fill_mode.b32", (1,), None, dict(FIVE, oob=1)),
]  # fmt: skip


def replacer(what: str, space: str, immediates: tuple, value):
    """A kernel that changes one field of a map which the caller gives, in shared or global memory."""
    field, _, width = what.partition(".")
    OP = f"tensormap.replace.tile.{field}.{space}.b1024.{width}"
    operands = (*immediates, *(() if value is None else (T.meta_var(value),)))

    @T.prim_func
    def k(m: T.Buffer((16,), "uint64", align=64), number: T.uint64):
        T.device_entry()
        tx = T.thread_id([1])
        s = T.alloc_shared((16,), "uint64", align=128)
        for i in range(16):
            s[i] = m[i]
        where = T.meta_var(s if space == "shared::cta" else m)
        if value is None:
            T.ptx[OP](where.ptr_to([0]), *immediates)
        elif width == "b64":
            T.ptx[OP](where.ptr_to([0]), *immediates, number)
        else:
            T.ptx[OP](where.ptr_to([0]), *immediates, T.cast(number, "int32"))
        if space == "shared::cta":
            for i in range(16):
                m[i] = s[i]

    return k


@pytest.mark.parametrize("space", ["shared::cta", "global"])
@pytest.mark.parametrize("what, immediates, value, changed", CASES)
def test_one_field(what, immediates, value, changed, space):
    m = np.frombuffer(encoded(**FIVE), np.uint64).copy()
    tirx.compile(replacer(what, space, immediates, value), target="cpu")(m, value or 0)
    want = np.frombuffer(encoded(**changed), np.uint64)
    assert [hex(x) for x in m[:8]] == [hex(x) for x in want[:8]]
    assert (m[8:] == np.frombuffer(encoded(**FIVE), np.uint64)[8:]).all()  # the driver's notes stay


def test_rank_counts_from_0():
    m = np.frombuffer(encoded(**FIVE), np.uint64).copy()
    tirx.compile(replacer("rank.b32", "global", (), 2), target="cpu")(m, 2)
    assert _core.tensormap_decode(m.tobytes())[1][2] == FIVE["dims"][:3]


BELOW = " of a tensor map (a multiple of 16 below 2**40)"


@pytest.mark.parametrize(
    "what, immediates, value, text",
    [
        ("global_address.b64", (), 4104, "tensormap.replace: 4104 is no address of a tensor map (a multiple of 16)"),
        ("global_stride.b64", (0,), 24, "tensormap.replace: 24 is no stride" + BELOW),
        ("global_stride.b64", (4,), 32, "tensormap.replace: 32 is no stride" + BELOW),
        ("box_dim.b32", (1,), 257, "tensormap.replace: 257 is no box size of a tensor map"),
        ("element_stride.b32", (1,), 0, "tensormap.replace: 0 is no element stride of a tensor map"),
        ("rank.b32", (), 5, "tensormap.replace: 5 is no rank less 1 of a tensor map"),
    ],
)  # fmt: skip
def test_numbers_that_no_map_has(what, immediates, value, text):
    m = np.frombuffer(encoded(**FIVE), np.uint64).copy()
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(replacer(what, "global", immediates, value), target="cpu")(m, value)
    assert str(e.value).splitlines()[0] == "misaligned: " + text


def grouped(rows: int):
    """Each block copies one of two tensors with a map that it makes from a template: address and rows differ."""

    @T.prim_func
    def k(
        A: T.Buffer((rows, 32), "int32"),
        B: T.Buffer((8, 32), "int32"),
        room: T.Buffer((2, 16), "uint64"),
        out: T.Buffer((2, 16, 32), "int32"),
    ):
        template: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(template, A, 32, rows, 128, 32, 16, 1, 1, descriptor_dtype="int32", rank=2)
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([32])
        s = T.alloc_shared((16,), "uint64", align=128)
        tile = T.alloc_shared((16, 32), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        words = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(template, 0, "uint64"))
        if tx < 16:
            s[tx] = words[tx]
        T.cuda.warp_sync()
        if tx == 0:
            if bx == 1:
                T.ptx["tensormap.replace.tile.global_address.shared::cta.b1024.b64"](
                    s.ptr_to([0]), T.reinterpret("uint64", B.data)
                )
                T.ptx["tensormap.replace.tile.global_dim.shared::cta.b1024.b32"](s.ptr_to([0]), 1, 8)
        T.cuda.warp_sync()
        T.ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"](
            room.ptr_to([bx, 0]), s.ptr_to([0])
        )
        if tx == 0:
            T.ptx["fence.proxy.tensormap::generic.acquire.gpu"](room.ptr_to([bx, 0]))
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), 16 * 128)
            T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
                tile.ptr_to([0, 0]), room.ptr_to([bx, 0]), 0, 0, bar.ptr_to([0])
            )
        T.cuda.cta_sync()
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        for r in range(16):
            out[bx, r, tx] = tile[r, tx]

    return k


def check_grouped(exe, put, get):
    a = np.arange(12 * 32, dtype=np.int32).reshape(12, 32)
    b = -np.arange(8 * 32, dtype=np.int32).reshape(8, 32)
    out = put(np.full((2, 16, 32), 7, np.int32))
    exe(put(a), put(b), put(np.zeros((2, 16), np.uint64)), out)
    got = get(out)
    assert (got[0, :12] == a).all() and not got[0, 12:].any()
    assert (got[1, :8] == b).all() and not got[1, 8:].any()


def test_a_map_that_the_kernel_makes():
    check_grouped(tirx.compile(grouped(12), target="cpu"), lambda x: x, lambda x: x)


def test_it_assembles(nvrtc):
    assert tirx.compile(grouped(12), target="cuda:sm_90a").cubin


@pytest.mark.gpu
def test_a_map_that_the_kernel_makes_on_a_gpu():
    torch = pytest.importorskip("torch")
    exe = tirx.compile(grouped(12), target="cuda")
    check_grouped(exe, lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy())


def test_a_race_on_the_map_is_reported():
    @T.prim_func
    def k(out: T.Buffer((16,), "uint64")):
        T.device_entry()
        tx = T.thread_id([64])
        s = T.alloc_shared((16,), "uint64", align=128)
        if tx < 16:
            s[tx] = T.uint64(0)
        if tx == 32:
            T.ptx["tensormap.replace.tile.rank.shared::cta.b1024.b32"](s.ptr_to([0]), T.uint32(1))
        T.cuda.cta_sync()
        if tx < 16:
            out[tx] = s[tx]

    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(k, target="cpu")(np.zeros(16, np.uint64))
    assert e.value.kind == "race" and e.value.buffer == "s"
