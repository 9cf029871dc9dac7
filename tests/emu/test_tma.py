# SPDX-License-Identifier: Apache-2.0
"""Tensor copies in the emulator: loads, stores, reductions and im2col against what an H200 moved, and the reports."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tirx
from tirx import _core

HW = Path(__file__).resolve().parents[1] / "cases" / "hw"
_spec = importlib.util.spec_from_file_location("hw_load_tma", HW / "load.py")
load = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(load)
RECORDS = list(load.records("tma"))

KERNEL = """
from tirx.script import tirx as T

@T.prim_func
def k(m: T.TensorMap(), M: T.Buffer(({mem},), "uint8"), IN: T.Buffer(({size},), "uint8"),
      OUT: T.Buffer(({size},), "uint8")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    sm = T.alloc_shared(({size},), "uint8", align=1024)
    bar = T.alloc_shared((1,), "uint64")
    for i in range({turns}):
        if i * 128 + tx < {size}:
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
    for i in range({turns}):
        if i * 128 + tx < {size}:
            OUT[i * 128 + tx] = sm[i * 128 + tx]
"""
LOAD = """
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32({tx}))
        T.ptx["cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"](
            sm.ptr_to([{dst}]), T.address_of(m), {coords}, bar.ptr_to([0]){offsets})
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
"""
STORE = """
        T.ptx["cp{reduce}.async.bulk.tensor.{rank}d.global.shared::cta{op}.tile.bulk_group"](
            T.address_of(m), {coords}, sm.ptr_to([{dst}]))
        T.ptx.cp.async_.bulk.commit_group()
        T.ptx.cp.async_.bulk.wait_group(0)
"""


def aligned(data):
    raw = np.zeros(len(data) + 256, "uint8")
    first = -raw.ctypes.data % 256
    raw[first : first + len(data)] = data
    return raw[first : first + len(data)]


def tensor_map(r, mem):
    im2col = r["kind"] == "im2col"
    fields = (
        im2col,
        r["dtype"],
        tuple(r["dim"]),
        tuple(r["stride"]),
        () if im2col else tuple(r["box"]),
        tuple(r["estride"]),
        tuple(r["lower"]) if im2col else (),
        tuple(r["upper"]) if im2col else (),
        r.get("channels", 0),
        r.get("pixels", 0),
        r["interleave"],
        r["swizzle"],
        0,
        r["oob"],
    )
    return np.frombuffer(_core.tensormap_encode(mem.ctypes.data, fields, 90, "rules"), "uint8")


def move(r, mem, image, dst, **options):
    """mem and the image afterwards."""
    coords = ", ".join(str(c) for c in r["coord"])
    im2col = r["kind"] == "im2col"
    offsets = "".join(f", T.uint16({o})" for o in r["im2col_offsets"][: r["rank"] - 2]) if im2col else ""
    op = r["op"].removeprefix("reduce")
    form = LOAD if op == "load" else STORE
    body = form.format(
        tx=r.get("tx_bytes"), rank=r["rank"], mode="im2col" if im2col else "tile", dst=dst, coords=coords,
        offsets=offsets, reduce="" if op == "store" else ".reduce", op="" if op == "store" else op,
    )  # fmt: skip
    size = len(image)
    text = KERNEL.format(mem=len(mem), size=size, turns=-(-size // 128), body=body)
    mem, out = aligned(mem), np.zeros(size, "uint8")
    exe = tirx.compile(tirx.from_source(text), target="cpu")
    exe(tensor_map(r, mem), mem, image.copy(), out, **options)
    return mem, out


@pytest.mark.parametrize(
    "index", range(len(RECORDS)), ids=[f"{i}-{m['op']}-{m['kind']}" for i, (m, _) in enumerate(RECORDS)]
)
def test_recorded(index):
    r, arrays = RECORDS[index]
    for check in (True, False):
        # What hangs over the end of a row that is no multiple of 16 bytes is a report; the hardware writes it.
        over = r["op"] != "load" and r["dim"][0] * (len(arrays["mem"]) and element(r)) % 16
        if check and over:
            continue
        if r["op"] == "load":
            image = np.full(r["image_at"] + len(arrays["image"]), 0xCD, "uint8")
            mem, out = move(r, arrays["mem"], image, r["dst"], check=check)
            np.testing.assert_array_equal(out[r["image_at"] :], arrays["image"])
            np.testing.assert_array_equal(mem, arrays["mem"])
        else:
            mem, out = move(r, arrays["mem"], arrays["image"], r["src"], check=check)
            np.testing.assert_array_equal(mem, arrays["mem_after"])
            np.testing.assert_array_equal(out, arrays["image"])


def element(r):
    return [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4][r["dtype"]]


# ---- reports ---------------------------------------------------------------------------------------------------------


def record(**changes):
    r = {"op": "load", "kind": "tiled", "dtype": 2, "rank": 2, "dim": [16, 8], "stride": [64], "box": [8, 4]}
    r |= {"estride": [1, 1], "interleave": 0, "swizzle": 0, "oob": 0, "coord": [0, 0], "tx_bytes": 128}
    return r | changes


FAULTS = {
    "coordinate 0 within 16 bytes": (record(coord=[2, 0]), 0, "misaligned", "coordinate 0 is 2"),
    "destination not on 128 bytes": (record(), 64, "misaligned", "not a multiple of 128"),
    "negative coordinate of a store": (record(op="store", coord=[0, -1]), 0, "out_of_bounds", "coordinate 1 is -1"),
    "a store behind the end of a row": (record(op="store", dim=[15, 8], coord=[8, 0]), 0, "out_of_bounds",
                                        "writes 4 bytes too many"),
    "the map is larger than the tensor": (record(dim=[16, 80], coord=[0, 60]), 0, "out_of_bounds", "reaches byte"),
    "a box larger than the array": (record(box=[8, 40]), 0, "out_of_bounds", "tma load of 1280 bytes"),
    "other dimensions than the map": (record(coord=[0, 0, 0], rank=3), 0, "out_of_bounds", "a map of rank 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_faults(what):
    r, dst, kind, text = FAULTS[what]
    with pytest.raises(tirx.EmulationError) as e:
        move(r, np.zeros(512, "uint8"), np.zeros(512, "uint8"), dst)
    assert e.value.kind == kind and text in str(e.value), str(e.value)
    assert len(e.value.lines) == 1 and "T.ptx[" in str(e.value)


def test_a_clipped_store_needs_only_its_own_bytes():
    """Rows that hang over the tensor's end may be unwritten in shared memory."""
    body = """        for i in range(64):
            sm[i] = T.uint8(7)
        T.ptx.fence.proxy.async_.shared__cta()
""" + STORE.format(reduce="", op="", rank=2, coords="0, 6", dst=0)
    text = KERNEL.format(mem=512, size=512, turns=4, body=body).replace("if i * 128 + tx < 512", "if i * 128 + tx < 1")
    mem = aligned(np.zeros(512, "uint8"))
    r = record()
    tirx.compile(tirx.from_source(text), target="cpu")(
        tensor_map(r, mem), mem, np.zeros(512, "uint8"), np.zeros(512, "uint8")
    )
    want = np.zeros((8, 64), "uint8")
    want[6:, :32] = 7
    np.testing.assert_array_equal(mem.reshape(8, 64), want)
