# SPDX-License-Identifier: Apache-2.0
"""The encoding of tensor maps: against what the driver of an H200 answered, and decoded back."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest
from tensormap_fields import NAMES, random_fields

from tirx import _core

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cases" / "hw"))
import load

RECORDS = load.plain("tensormap")


def fields_of(r: dict) -> tuple:
    """The arguments of a recorded call, as _core takes them."""
    im2col = r["kind"] == "im2col"
    return (
        im2col,
        r["dtype"],
        tuple((r["dim"] + [1] * 6)[: r["rank"]]),
        tuple(r["stride"]),
        () if im2col else tuple(r["box"]),
        tuple(r["estride"]),
        tuple(r["lower"]) if im2col else (),
        tuple(r["upper"]) if im2col else (),
        r.get("channels", 0),
        r.get("pixels", 0),
        r["interleave"],
        r["swizzle"],
        r["l2"],
        r["oob"],
    )


@pytest.mark.parametrize("index", range(len(RECORDS)))
def test_recorded(index):
    r = RECORDS[index]
    fields, address = fields_of(r), int(r["addr"], 16)
    if r["rc"] != 0:
        with pytest.raises(ValueError):
            _core.tensormap_encode(address, fields, 90, "rules")
        return
    got = _core.tensormap_encode(address, fields, 90, "rules")
    want = [int(w, 16) for w in r["words"]] + [0] * 6
    assert [f"{w:016x}" for w in struct.unpack("<16Q", got)] == [f"{w:016x}" for w in want]


@pytest.mark.parametrize("seed", range(8))
def test_decoded_is_what_was_encoded(seed):
    rng = random.Random(seed)
    for _ in range(100):
        fields, address = random_fields(rng), rng.randrange(0, 2**57, 32)
        data = _core.tensormap_encode(address, fields, 0, "tirx")
        assert _core.tensormap_decode(data) == (address, fields), dict(zip(NAMES, fields, strict=True))


# What the driver of an H200 said to im2col maps with a spatial size of 2**31 + n: corners that it took, of those below.
CORNERS = [(0, 0), (-128, 0), (0, 127), (0, -128), (-128, 127), (127, -128), (-1, 1), (-5, 5)]
TAKEN = {
    -128: CORNERS,
    -127: [c for c in CORNERS if c[1] != 127],
    -2: [c for c in CORNERS if c[1] not in (127, 5)],
    -1: [c for c in CORNERS if c[1] <= 0],
    0: [(0, -128), (127, -128)],
    127: [(0, -128), (127, -128)],
    128: [],
    2**30: [],
    2**31 - 130: [(-128, 127)],
    2**31 - 127: [(-128, 0), (-128, 127)],
    2**31 - 10: [(-128, 0), (0, 127), (-128, 127)],
    2**31 - 2: [(-128, 0), (0, 127), (-128, 127), (-5, 5)],
    2**31 - 1: [(-128, 0), (0, 127), (-128, 127), (-5, 5), (-1, 1)],
    2**31: [(-128, 0), (0, 127), (-128, 127), (-5, 5), (-1, 1)],
}


@pytest.mark.parametrize("n", TAKEN)
def test_windows_of_large_sizes(n):
    taken = []
    for lower, upper in CORNERS:
        fields = (
            True,
            6,
            (64, 2**31 + n, 4, 3),
            (128, 4096, 65536),
            (),
            (1,) * 4,
            (lower, 0),
            (upper, 0),
            64,
            16,
            0,
            0,
            0,
            0,
        )
        try:
            _core.tensormap_encode(4096, fields, 90, "rules")
        except ValueError:
            continue
        taken.append((lower, upper))
    assert sorted(taken) == sorted(TAKEN[n])


def test_decode_refuses_what_is_no_map():
    assert _core.tensormap_decode(bytes(127)) is None
    assert _core.tensormap_decode(b"\xff" * 128) is None
    good = _core.tensormap_encode(64, random_fields(random.Random(1)), 0, "tirx")
    for at in range(80, 128):
        assert _core.tensormap_decode(good[:at] + b"\x01" + good[at + 1 :]) is None


def test_notes_of_the_driver_do_not_matter():
    """tensormap.replace leaves words 8 and 9 as they were."""
    fields = random_fields(random.Random(2))
    data = _core.tensormap_encode(64, fields, 0, "tirx")
    assert _core.tensormap_decode(data[:64] + bytes(64)) == (64, fields)


@pytest.mark.parametrize("interleave, swizzle", [(0, 0), (1, 0), (1, 3), (2, 1)])
@pytest.mark.parametrize("im2col", [False, True])
def test_rows_of_16_bytes_in_interleaved_maps_too(interleave, swizzle, im2col):
    """So the driver: 169 calls of 259 with such maps were refused, all those with other rows."""

    def encode(row):
        box, corners = ((), ((0, 0), (0, 0), row, 8)) if im2col else ((row, 2, 2, 1), ((), (), 0, 0))
        fields = (im2col, 1, (8, 4, 4, 2), (128, 512, 2048), box, (1,) * 4, *corners, interleave, swizzle, 0, 0)
        return _core.tensormap_encode(4096, fields, 90, "rules")

    encode(8)
    for row in (1, 4, 12):
        with pytest.raises(ValueError, match="expected a multiple of 16 bytes"):
            encode(row)
