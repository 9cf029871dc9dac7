# SPDX-License-Identifier: Apache-2.0
"""Random tensor maps, as tests of the encoder and of the driver use them."""

from __future__ import annotations

import random

NAMES = "im2col dtype dims strides box element_strides lower upper channels pixels interleave swizzle l2 oob".split()


def width(dtype: int, count: int) -> float:
    """Bytes of a row of `count` elements in shared memory."""
    bits = [8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 8, 8][dtype]
    return count * bits / 8


def random_fields(rng: random.Random, ndtypes: int = 16, nswizzles: int = 7) -> tuple:
    """A map that is right, in any of the first types and swizzle modes, and of the sizes."""
    im2col = rng.random() < 0.3
    rank = rng.randint(3 if im2col else 1, 5)
    dtype = rng.randrange(ndtypes)
    swizzle = rng.randrange(nswizzles)
    padded = dtype in (14, 15)
    if padded:
        swizzle = rng.choice([0, 3, 4] if dtype == 14 else [0, 3])
    span = [256, 32, 64, 128, 128, 128, 128][swizzle]
    rows = [n for n in range(1, 257) if width(dtype, n) % 16 == 0 and width(dtype, n) <= span]
    row = 128 if padded else rng.choice(rows)
    align = 32 if padded else 16
    most = 2**31 - 2**15 if im2col else 2**32
    dims = [rng.choice([rng.randint(1, 64), rng.randint(1, most)]) for _ in range(rank)]
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


def spoiled(rng: random.Random, fields: tuple) -> tuple:
    """The same with one number changed to something that is often wrong."""
    f = dict(zip(NAMES, fields, strict=True))
    lists = [n for n in ("dims", "strides", "box", "element_strides", "lower", "upper") if f[n]]
    singles = ["interleave", "swizzle", "l2", "oob", "dtype", *(["channels", "pixels"] if f["im2col"] else [])]
    name = rng.choice(lists + lists + singles)
    if name in lists:
        values = list(f[name])
        at = rng.randrange(len(values))
        near = {
            "dims": [0, 1, 2**31 - 9, 2**31 - 1, 2**31, 2**31 + 9, 2**32 - 9, 2**32 - 1, 2**32, 2**32 + 1],
            "strides": [0, 8, 16, 24, 2**40 - 16, 2**40, 2**40 + 16],
            "box": [0, 1, 2, 255, 256, 257, 300],
            "element_strides": [0, 1, 7, 8, 9],
            "lower": [-32769, -32768, -129, -128, -17, -16, 0, 15, 16, 127, 128],
            "upper": [-32768, -129, -128, -17, -16, 0, 15, 16, 127, 128, 32767, 32768],
        }[name]
        values[at] = rng.choice(near)
        f[name] = tuple(values)
    elif name == "dtype":
        f[name] = rng.randrange(16)
    else:
        near = {"channels": [0, 8, 255, 256, 257], "pixels": [0, 1, 1023, 1024, 1025]}
        f[name] = rng.choice(near.get(name, range(9)))
    return tuple(f[n] for n in NAMES)
