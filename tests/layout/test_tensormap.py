# SPDX-License-Identifier: Apache-2.0
"""The encoding of tensor maps: against what the driver of an H200 answered, and decoded back."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest

from tirx import _core

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cases" / "hw"))
import load

RECORDS = load.plain("tensormap")
NAMES = "im2col dtype dims strides box element_strides lower upper channels pixels interleave swizzle l2 oob".split()


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


def width(dtype: int, count: int) -> float:
    """Bytes of a row of `count` elements in shared memory."""
    bits = [8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 8, 8][dtype]
    return count * bits / 8


def random_fields(rng: random.Random) -> tuple:
    """A map that is right, in any of the types, sizes and modes."""
    im2col = rng.random() < 0.3
    rank = rng.randint(3 if im2col else 1, 5)
    dtype = rng.randrange(16)
    swizzle = rng.randrange(7)
    padded = dtype in (14, 15)
    if padded:
        swizzle = rng.choice([0, 3, 4] if dtype == 14 else [0, 3])
    span = [256, 32, 64, 128, 128, 128, 128][swizzle]
    rows = [n for n in range(1, 257) if width(dtype, n) % 16 == 0 and width(dtype, n) <= span]
    row = 128 if padded else rng.choice(rows)
    align = 32 if padded else 16
    dims = [rng.choice([rng.randint(1, 64), rng.randint(1, 2**32)]) for _ in range(rank)]
    dims[0] = max(dims[0] // 128 * 128, 128)
    strides = [rng.randrange(0, rng.choice([2**16, 2**40]), align) for _ in range(rank - 1)]
    estrides = [1] + [rng.randint(1, 8) for _ in range(rank - 1)]
    box = [row] + [rng.randint(1, 4) for _ in range(rank - 1)]
    limit = {3: 15, 4: 7, 5: 4}[max(rank, 3)]
    corners = [
        [rng.randint(-(2**limit), 0) if k == 0 else rng.randint(0, 2**limit - 1) for _ in range(rank - 2)]
        for k in (0, 1)
    ]
    lower, upper = ([tuple(c) for c in corners]) if im2col else ((), ())
    oob = rng.randrange(2) if 6 <= dtype <= 12 else 0
    tail = (0, swizzle, rng.randrange(4), oob)
    channels, pixels = (row, rng.randint(1, 512)) if im2col else (0, 0)
    return (
        im2col,
        dtype,
        tuple(dims),
        tuple(strides),
        () if im2col else tuple(box),
        tuple(estrides),
        lower,
        upper,
        channels,
        pixels,
        *tail,
    )


@pytest.mark.parametrize("seed", range(8))
def test_decoded_is_what_was_encoded(seed):
    rng = random.Random(seed)
    for _ in range(100):
        fields, address = random_fields(rng), rng.randrange(0, 2**57, 32)
        data = _core.tensormap_encode(address, fields, 0, "tirx")
        assert _core.tensormap_decode(data) == (address, fields), dict(zip(NAMES, fields, strict=True))


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
