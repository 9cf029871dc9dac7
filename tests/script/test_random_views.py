# SPDX-License-Identifier: Apache-2.0
"""Chains of views, picked at random, against NumPy's views of the same array. Where NumPy has to copy, because no
strides give the shape, the kernel is refused. A failure names its seed; TIRX_VIEWS=n tries n chains a seed."""

from __future__ import annotations

import math
import os
import random

import numpy as np
import pytest

import tirx

COUNT = int(os.environ.get("TIRX_VIEWS", "25"))


def factors(n: int) -> list[int]:
    return [k for k in range(1, n + 1) if n % k == 0]


def view(r, v, e):
    rest, dims = v.size, []
    while rest > 1 and r.random() < 0.8:
        dims.append(r.choice(factors(rest)))
        rest //= dims[-1]
    return v.reshape(*dims, rest), f"{e}.view({', '.join(map(str, (*dims, rest)))})"


def permute(r, v, e):
    order = r.sample(range(v.ndim), v.ndim)
    return v.transpose(order), f"{e}.permute({', '.join(map(str, order))})" if order else e


def sub(r, v, e):
    index = []
    for n in v.shape:
        start = r.randrange(n)
        step = r.choice(factors(n))
        index.append(r.choice([f"{start}", f"{start}:{r.randint(start + 1, n)}", f"{start % step}::{step}", ":"]))
    text = ", ".join(index)
    return v[eval(f"np.s_[..., {text}]")], f"{e}.sub[{text}]"  # with `...` an element is a view, too


def tile(r, v, e):
    d = r.randrange(v.ndim)
    n = r.choice(factors(v.shape[d]))
    pick = r.randrange(n)
    split = v.reshape(*v.shape[:d], n, v.shape[d] // n, *v.shape[d + 1 :])
    return split[(slice(None),) * d + (pick,)], f"{e}.tile({d}, ({n}, -1))[{pick}]"


def chunk(r, v, e):
    spec = [r.choice(factors(n)) for n in v.shape]
    picks = [r.randrange(n) for n in spec]
    parts = tuple(slice(p * (n // k), (p + 1) * (n // k)) for p, k, n in zip(picks, spec, v.shape, strict=True))
    return v[parts], f"{e}.chunk([{', '.join(map(str, spec))}])[{', '.join(map(str, picks))}]"


def chain(r):
    """An array, the view that NumPy gives (None: it would copy), and the expression."""
    shape = tuple(r.choice([1, 2, 3, 4, 6, 8]) for _ in range(r.randint(1, 4)))
    a = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    v, e = a, "A"
    for _ in range(r.randint(1, 4)):
        method = r.choice([view, permute, sub, tile, chunk])
        if method in (sub, tile, chunk) and v.ndim == 0:
            continue
        if method is sub and all(n == 1 for n in v.shape):
            continue
        made, e = method(r, v, e)
        if not np.shares_memory(made, a):
            return a, (None if method is view else made), e
        v = made
    return a, v, e


@pytest.mark.parametrize("seed", range(6))
def test_chains_of_views(seed):
    r = random.Random(seed)
    for _ in range(COUNT):
        a, v, e = chain(r)
        shape = v.shape if v is not None else (1,)
        names = ", ".join(f"i{d}" for d in range(len(shape)))
        loop = f"for {names} in T.grid({', '.join(map(str, shape))}):" if shape else "if True:"
        text = (
            f"@T.prim_func\ndef f(A: T.Buffer({a.shape}, 'int32'), O: T.Buffer({shape}, 'int32')):\n"
            f"    T.device_entry()\n    tx = T.thread_id([1])\n    V = {e}\n"
            f"    {loop}\n        O[{names or '()'}] = V[{names or '()'}]\n"
        )
        if v is None:
            with pytest.raises(tirx.DiagnosticValueError, match="no strides give it the shape"):
                tirx.from_source(text)
            continue
        f = tirx.from_source(text)
        assert tirx.structural_equal(f, tirx.from_source(f.script())), text
        got = np.zeros(shape, np.int32)
        tirx.compile(f, target="cpu")(a, got)
        np.testing.assert_array_equal(got, v, err_msg=f"seed {seed}:\n{text}")
