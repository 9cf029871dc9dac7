# SPDX-License-Identifier: Apache-2.0
"""The shared kernels compute what NumPy says, on the emulator and on a GPU; so do their printed forms."""

from __future__ import annotations

import kernels
import pytest

import tirx


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_on_the_emulator(name):
    kernels.run(name)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_the_printed_kernel_computes_the_same(name):
    k = kernels.KERNELS[name]
    f = k.make()
    for dialect in ("g1", "g2"):
        again = tirx.from_source(f.script(dialect=dialect))
        kernels.check(k, tirx.compile(again, target="cpu", externs=k.externs), seed=1)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_without_checks(name):
    kernels.run(name, seed=2, check=False)
