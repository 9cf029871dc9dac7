# SPDX-License-Identifier: Apache-2.0
"""Kernels that apply one PTX instruction to every element of arrays."""

from __future__ import annotations

import numpy as np

import tirx

THREADS = 256


def text(statement: str, ins: list[str], outs: list[str], n: int) -> str:
    """`statement` reads a, b, c, ... and writes d0, d1, ..."""
    names = "abcdefgh"
    params = [f"{names[i].upper()}: T.Buffer(({n},), {t!r})" for i, t in enumerate(ins)]
    params += [f"D{i}: T.Buffer(({n},), {t!r})" for i, t in enumerate(outs)]
    lines = [
        "from tirx.script import tirx as T",
        "",
        "@T.prim_func",
        f"def k({', '.join(params)}):",
        "    T.device_entry()",
        f"    bx = T.cta_id([{-(-n // THREADS)}])",
        f"    tx = T.thread_id([{THREADS}])",
        f"    i: T.int32 = bx * {THREADS} + tx",
        f"    if i < {n}:",
    ]
    lines += [f"        {names[i]}: T.{t} = {names[i].upper()}[i]" for i, t in enumerate(ins)]
    lines += [f"        d{i}: T.{t}" for i, t in enumerate(outs)]
    lines += [f"        {statement}"]
    lines += [f"        D{i}[i] = d{i}" for i in range(len(outs))]
    return "\n".join(lines) + "\n"


def apply(statement: str, arrays, outs: list[str]):
    """The results of the statement for every element, on the emulator."""
    arrays = [np.ascontiguousarray(a) for a in arrays]
    n = len(arrays[0])
    module = tirx.from_source(text(statement, [a.dtype.name for a in arrays], outs, n))
    results = [np.zeros(n, t) for t in outs]
    tirx.compile(module, target="cpu")(*arrays, *results)
    return results[0] if len(results) == 1 else results
