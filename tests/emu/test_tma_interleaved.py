# SPDX-License-Identifier: Apache-2.0
"""Copies by interleaved tensor maps: what an H200 loaded (interleaved.json: the map's arguments, the coordinates, the
bytes that the barrier counted, a digest of shared memory), stores and reductions against NumPy."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import tirx
from tirx import _core

RECORDS = json.loads((Path(__file__).parent / "interleaved.json").read_text())
KERNEL = """
from tirx.script import tirx as T

@T.prim_func
def k(m: T.TensorMap(), M_: T.handle, IN_: T.handle, OUT_: T.handle):
    M = T.match_buffer(M_, (131072,), "uint8", align=256)
    IN = T.match_buffer(IN_, ({size},), "uint8")
    OUT = T.match_buffer(OUT_, ({size},), "uint8")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    sm = T.alloc_shared(({size},), "uint8", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    for i in range({size} // 128):
        sm[i * 128 + tx] = IN[i * 128 + tx]
    if tx == 0:
        OUT[0] = M[0]
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    if tx == 0:
{body}
    T.cuda.cta_sync()
    for i in range({size} // 128):
        OUT[i * 128 + tx] = sm[i * 128 + tx]
"""
LOAD = """
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32({tx}))
        T.ptx["cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"](
            sm.ptr_to([0]), T.address_of(m), {coords}, bar.ptr_to([0]){offsets})
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
"""
STORE = """
        T.ptx["cp{reduce}.async.bulk.tensor.{rank}d.global.shared::cta{op}.bulk_group"](
            T.address_of(m), {coords}, sm.ptr_to([0]))
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)
"""


def aligned(data):
    raw = np.zeros(data.nbytes + 256, "uint8")
    first = -raw.ctypes.data % 256
    raw[first : first + data.nbytes] = data.view("uint8")
    return raw[first : first + data.nbytes]


def move(record, form, memory, image, op="", **options):
    dtype, dims, strides, box, es, interleave, swizzle, coords, tx, _ = record
    memory, out = aligned(memory), np.zeros(len(image), "uint8")
    im2col = isinstance(box[0], list)  # corners of the window, channels, pixels, offsets
    lower, upper, channels, pixels, offsets = box if im2col else ((), (), 0, 0, ())
    shape = () if im2col else tuple(box), tuple(es), tuple(lower), tuple(upper), channels, pixels
    fields = (im2col, dtype, tuple(dims), tuple(strides), *shape, interleave, swizzle, 0, 0)
    m = np.frombuffer(_core.tensormap_encode(memory.ctypes.data, fields, 90, "rules"), "uint8")
    body = form.format(
        tx=tx, rank=len(dims), coords=", ".join(map(str, coords)), reduce=".reduce" if op else "", op=op,
        mode="im2col" if im2col else "tile", offsets="".join(f", T.uint16({o})" for o in offsets),
    )  # fmt: skip
    exe = tirx.compile(tirx.from_source(KERNEL.format(size=len(image), body=body)), target="cpu")
    exe(m, memory, image.copy(), out, **options)
    return memory, out


def size_of(record):
    return -(-record[8] // 1024) * 1024


@pytest.mark.parametrize("part", range(5))
def test_recorded_loads(part):
    memory = np.arange(1 << 16, dtype="uint16")
    for record in RECORDS[part::5]:
        _, image = move(record, LOAD, memory, np.full(size_of(record), 0xCD, "uint8"))
        assert hashlib.blake2b(image.tobytes(), digest_size=8).hexdigest() == record[9], record


def cells(record):
    """(place in shared memory, in global memory or None) of each 16 bytes of the box, in the order of the copy."""
    _, dims, strides, box, es, interleave, swizzle, coords, tx, _ = record
    rank, unit = len(dims), 16 * interleave
    walked = [0, *(d for d in range(1, rank) if d != rank - 2)]
    counts = [-(-box[d] // es[d]) for d in walked]
    for n in range(int(np.prod(counts))):
        g, rest = list(coords), n
        for d, count in zip(walked, counts, strict=True):
            g[d] = coords[d] + rest % count * es[d]
            rest //= count
        inside = all(0 <= x < dim for x, dim in zip(g, dims, strict=True))
        at = g[0] * unit + sum(x * s for x, s in zip(g[1:], strides, strict=True))
        for piece in range(interleave):
            o = n * unit + piece * 16
            yield o ^ (o >> 3 & (0, 0x10, 0x30, 0x70)[swizzle]), at + 16 * piece if inside else None


STORES = [r for r in RECORDS if not isinstance(r[3][0], list) and min(r[7]) >= 0 and len({p for _, p in cells(r)}) > 1]


@pytest.mark.parametrize("op", ["", ".add"])
def test_stores(op):
    """Stores go where loads come from."""
    rng = np.random.default_rng(1)
    assert len(STORES) >= 8
    for record in STORES[:: 2 - bool(op)]:
        if op and record[0] != 2:  # bytes and halves of words are not added
            continue
        memory = rng.integers(0, 2**16, 1 << 16).astype("uint16")
        image = rng.integers(0, 256, size_of(record)).astype("uint8")
        got, _ = move(record, STORE, memory, image, op)
        want = memory.view("uint8").copy()
        for here, there in cells(record):
            if there is not None:
                new = image[here : here + 16]
                if op:
                    new = (want[there : there + 16].view("uint32") + new.view("uint32")).view("uint8")
                want[there : there + 16] = new
        np.testing.assert_array_equal(got, want)


WINDOWS = [r for r in RECORDS if isinstance(r[3][0], list)]


@pytest.mark.parametrize("way", [-1, 1])
def test_windows_begin_inside(way):
    """39 of 39 copies of an H200 that began outside the window of their map ended in an illegal instruction."""
    memory = np.arange(1 << 16, dtype="uint16")
    for record in WINDOWS[::9]:
        lower, upper, *_ = record[3]
        where = lower[0] - 1 if way < 0 else record[1][0] + upper[0]
        spoilt = [*record[:7], [where, *record[7][1:]], *record[8:]]
        with pytest.raises(tirx.EmulationError, match=f"coordinate 0 is {where}, outside the window of the map") as e:
            move(spoilt, LOAD, memory, np.full(size_of(record), 0xCD, "uint8"))
        assert e.value.kind == "out_of_bounds"
