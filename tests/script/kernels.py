# SPDX-License-Identifier: Apache-2.0
"""What the tests of the front end share: kernels from bodies, their printed bodies, their values on the emulator."""

from __future__ import annotations

import textwrap

import numpy as np

import tirx

G1 = """\
@T.prim_func
def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), s: T.int32):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
"""
G2 = """\
@T.function
def k(A: T.Tensor((64,), T.float32), B: T.Tensor((64,), T.int32), s: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    tx: T.let = T.cuda.thread_idx("x")
"""


def kernel(body: str, dialect: str = "g1", **names):
    """A kernel over A (float32), B (int32), s (int32) with one CTA of 64 threads, tx the thread."""
    text = (G1 if dialect == "g1" else G2) + textwrap.indent(textwrap.dedent(body).strip("\n") + "\n", "    ")
    return tirx.from_source(text, names)


def printed(f) -> str:
    """The statements behind the ones of the head; the whole text must parse back to the same function."""
    text = f.script()
    again = tirx.from_source(text)
    assert again.script() == text
    assert tirx.structural_equal(f, again)
    lines = text.rstrip("\n").split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(("    tx = T.thread_id", "    tx: T.let")))
    return textwrap.dedent("\n".join(lines[start + 1 :]))


def body(text: str, dialect: str = "g1", **names) -> str:
    return printed(kernel(text, dialect, **names))


def run(f, s: int = 0, a=None, b=None, **options):
    """(A, B) after a run on the emulator; A is 0, 1, 2, ... and B is 0 unless given."""
    a = np.arange(64, dtype=np.float32) if a is None else a.copy()
    b = np.zeros(64, np.int32) if b is None else b.copy()
    tirx.compile(f, target="cpu")(a, b, s, **options)
    return a, b
