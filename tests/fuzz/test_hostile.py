# SPDX-License-Identifier: Apache-2.0
"""Spoilt texts of kernels are parsed, or refused in words. TIRX_FUZZ_SECONDS (3) bounds the run; the texts of seed 0
are always the same, then come those of TIRX_FUZZ_SEED (random, printed with what fails)."""

from __future__ import annotations

import os
import random

import pytest
from fuzz import hostile

SECONDS = float(os.environ.get("TIRX_FUZZ_SECONDS", "3"))
SEED = int(os.environ.get("TIRX_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1 << 40)


@pytest.mark.parametrize("seed", [0, SEED], ids=["same", "other"])
def test_spoilt_texts(seed):
    _, wrong = hostile.many(10**9 if seed else 600, seed, SECONDS)
    assert not wrong, "\n\n".join(f"seed {seed}: {said}\n{hostile.shortened(text, said)}" for said, text in wrong[:3])


@pytest.mark.parametrize(
    "text",
    [
        hostile.HEAD.replace('"int32"', '"int32", align=7j'),
        hostile.HEAD.replace('"int32"', '"int32", align="16"'),
        hostile.HEAD.replace('"int32"', '"int32", align=None'),
        hostile.HEAD.replace('"int32"', '"int32", offset_factor=2j'),
    ],
)
def test_what_was_found(text):
    assert hostile.try_one(text + "    B[tx] = 1\n") is None
