# SPDX-License-Identifier: Apache-2.0
"""Symbols: what defines each, what is checked, what cannot be solved (language.md 4.3)."""

import numpy as np
import pytest

import tirx


def make(shapes, use="n", symbols="n = T.int32()", params=""):
    names = [chr(ord("a") + i) for i in range(len(shapes))]
    text = f"@T.prim_func\ndef k({', '.join(f'{x}: T.handle' for x in names)}, out: T.handle{params}):\n    {symbols}\n"
    for x, shape in zip(names, shapes, strict=True):
        text += f'    {x.upper()} = T.match_buffer({x}, {shape}, "float32")\n'
    text += '    OUT = T.match_buffer(out, (4,), "int32")\n'
    text += "    T.device_entry()\n    tx = T.thread_id([1])\n"
    for i, v in enumerate(use.split()):
        text += f"    OUT[{i}] = {v}\n"
    return tirx.from_source(text)


@pytest.mark.parametrize(
    ("shapes", "extents", "use", "want"),
    [
        (["(n,)"], [7], "n", [7]),
        (["(n * 2,)"], [8], "n", [4]),
        (["(2 * n + 1,)"], [9], "n", [4]),
        (["(n - 3,)"], [4], "n", [7]),
        (["(10 - n,)"], [4], "n", [6]),
        (["(n << 2,)"], [12], "n", [3]),
        (["(n * 2,)", "(n,)"], [8, 4], "n", [4]),
        (["(n + m,)", "(m,)"], [10, 3], "n m", [7, 3]),
        (["(n + m,)", "(m * 2,)"], [10, 6], "n m", [7, 3]),
        (["(n * 3 + k,)"], [14], "n", [4]),
    ],
)
def test_solved(shapes, extents, use, want):
    symbols = "n = T.int32(); m = T.int32()" if "m" in use else "n = T.int32()"
    scalar = "k" in "".join(shapes)
    f = make(shapes, use, symbols, ", k: T.int32" if scalar else "")
    out = np.zeros(4, np.int32)
    args = [np.zeros(e, np.float32) for e in extents] + [out] + ([2] if scalar else [])
    tirx.compile(f, target="cpu")(*args)
    assert out[: len(want)].tolist() == want


@pytest.mark.parametrize(
    ("shapes", "extents"),
    [
        (["(n * 2,)"], [7]),
        (["(n * 2,)", "(n,)"], [8, 5]),
        (["(n, n)"], [(3, 4)]),
        (["(n - 3,)", "(n,)"], [4, 4]),
        (["(10 - n,)"], [11]),
    ],
)
def test_extents_that_disagree_are_refused_at_the_call(shapes, extents):
    exe = tirx.compile(make(shapes), target="cpu")
    out = np.full(4, -1, np.int32)
    with pytest.raises(ValueError, match=r"on argument #\d"):
        exe(*[np.zeros(e, np.float32) for e in extents], out)
    assert (out == -1).all()


@pytest.mark.parametrize("shape", ["(n * n,)", "(n // 2,)", "(n + m,)", "(T.max(n, 4),)"])
def test_what_stays_unknown_is_refused(shape):
    with pytest.raises(tirx.DiagnosticError) as info:
        tirx.lower(make([shape], symbols="n = T.int32(); m = T.int32()"), target="cpu")
    assert "symbol 'n' cannot be inferred: no parameter has a dimension that is exactly n, or c*n + d" in str(
        info.value
    )


def test_a_symbol_that_no_shape_has_is_refused():
    with pytest.raises(tirx.DiagnosticError) as info:
        tirx.lower(make(["(8,)"]), target="cpu")
    assert "symbol 'n' is not bound by any parameter shape" in str(info.value)
