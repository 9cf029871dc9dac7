# SPDX-License-Identifier: Apache-2.0
"""Stores into regions, picked at random, against NumPy: numbers, regions of other buffers, and of the same one, where
the right side is taken as it was before. TIRX_COPIES=n tries n kernels a seed."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

import tirx

COUNT = int(os.environ.get("TIRX_COPIES", "15"))
SHAPES = {"A": (6, 80), "L": (5, 70), "M": (7, 9)}


def region(r, name, lengths):
    """A region of `name` that is as long as `lengths` in its last dimensions, as text; None: there is none."""
    shape = SHAPES[name]
    parts = []
    for d, n in enumerate(shape):
        back = d - (len(shape) - len(lengths))
        if back < 0:
            parts.append(str(r.randrange(n)))
            continue
        if lengths[back] > n:
            return None
        start = r.randint(0, n - lengths[back])
        at = "n + " if r.random() < 0.3 else ""  # n is 0, which only the call knows
        parts.append(f"{at}{start}:{at}{start + lengths[back]}")
    return f"{name}[{', '.join(parts)}]"


def statement(r):
    target = r.choice(list(SHAPES))
    rank = r.choice([1, 2])
    lengths = [r.randint(1, n) for n in SHAPES[target][-rank:]]
    to = region(r, target, lengths)
    kind = r.randrange(4)
    if kind == 0:
        return f"{to} = {r.randint(-9, 9)}"
    if kind == 1:
        return f"{to} = A[{r.randrange(6)}, n + {r.randrange(80)}] + 1"
    if kind == 2 and rank == 2:
        lengths = lengths[1:] if r.random() < 0.5 else [1, *lengths[1:]]
    source = region(r, target if kind == 3 else r.choice(list(SHAPES)), lengths)
    return None if source is None else f"{to} = {source}"


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_regions(seed):
    r = random.Random(seed)
    copies = refused = 0
    while copies < COUNT:
        lines = [s for s in (statement(r) for _ in range(4)) if s]
        text = (
            "@T.prim_func\ndef f(A: T.Buffer((6, 80), 'int32'), P: T.Buffer((5, 70), 'int32'), "
            "Q: T.Buffer((7, 9), 'int32'), n: T.int32):\n    T.device_entry()\n    tx = T.thread_id([1])\n"
            "    L = T.alloc_local((5, 70), 'int32')\n    M = T.alloc_shared((7, 9), 'int32')\n"
            "    L[:, :] = P\n    M[0:7, 0:9] = Q\n"
        )
        text += "".join(f"    {s}\n" for s in (*lines, "P[:, :] = L", "Q[:, :] = M"))
        try:
            f = tirx.from_source(text)
        except tirx.DiagnosticValueError as e:
            assert "may overlap" in str(e), text
            refused += 1
            continue
        rng = np.random.default_rng(seed * 1000 + copies)
        got = [rng.integers(-99, 99, shape, dtype=np.int32) for shape in SHAPES.values()]
        names = {"n": 0, **{k: v.copy() for k, v in zip(SHAPES, got, strict=True)}}
        for s in lines:
            left, _, right = s.partition(" = ")
            exec(f"value = {right}\n{left} = value.copy() if hasattr(value, 'copy') else value", names)
        tirx.compile(f, target="cpu")(*got, 0)
        for name, g in zip(SHAPES, got, strict=True):
            np.testing.assert_array_equal(g, names[name], err_msg=f"seed {seed}, {name}:\n{text}")
        copies += 1
    assert refused < 10 * COUNT
