# SPDX-License-Identifier: Apache-2.0
"""Random kernels on the emulator, with and without checks, against the same text run by Python."""

from __future__ import annotations

import os
import random

import emu_programs as programs
import numpy as np
import pytest

import tirx

SEEDS = int(os.environ.get("TIRX_FUZZ", "40"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_control_flow_means_what_python_means(seed):
    p = programs.Program(seed, size=8 + seed % 20)
    threads = random.Random(seed).choice([1, 32, 40, 64])
    text = p.kernel(threads)
    a = np.random.default_rng(seed).integers(-20, 40, threads).astype(np.int32)
    thread = p.python()
    want = np.array([thread(t, int(a[t])) for t in range(threads)], np.int64).astype(np.int32)
    exe = tirx.compile(tirx.from_source(text), target="cpu")
    for options in ({}, {"check": False}):
        b = np.zeros((threads, 7), np.int32)
        exe(a, b, **options)
        np.testing.assert_array_equal(b, want, err_msg=text)
