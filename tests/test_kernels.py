# SPDX-License-Identifier: Apache-2.0
"""The shared kernels compute what NumPy says, on the emulator and on a GPU; so do their printed forms."""

from __future__ import annotations

import kernels
import numpy as np
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


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("name", kernels.KERNELS)
def test_compiles_for(nvrtc, name, arch):
    exe = tirx.compile(kernels.KERNELS[name].make(), target=f"cuda:{arch}")
    assert len(exe.cubin) > 0


@pytest.mark.gpu
@pytest.mark.parametrize("name", kernels.KERNELS)
def test_on_a_gpu(name):
    k = kernels.KERNELS[name]
    kernels.check(k, OnDevice(tirx.compile(k.make(), target="cuda")))


class OnDevice:
    """Calls with copies of NumPy arrays on the GPU, and copies them back."""

    def __init__(self, exe):
        self.exe = exe

    def __call__(self, *args):
        there = [to_device(a) if isinstance(a, np.ndarray) else a for a in args]
        self.exe(*there)
        for a, t in zip(args, there, strict=True):
            if isinstance(a, np.ndarray):
                a[...] = t.numpy().reshape(a.shape) if a.flags.c_contiguous else a


def to_device(a):
    if not a.flags.c_contiguous:
        pytest.skip("tirx.tensor copies contiguous arrays")
    return tirx.tensor(a, tirx.cuda(0))
