# SPDX-License-Identifier: Apache-2.0
"""The examples and their like (deletions.py has their arguments) are silent and right under late and early engines and
under a seed; under eight, and the long ones, with `make fuzz`. every_schedule.py does the same to other tests."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import deletions

import tirx

SEEDS = int(os.environ.get("TIRX_PAIR_SEEDS", "1"))
FAR = {"hopper_gemm", "hopper_gemm_alone", "blackwell_gemm", "blackwell_gemm_pair", "attention"}  # seconds each


@pytest.mark.parametrize(
    "name", deletions.CASES if "TIRX_FUZZ_SECONDS" in os.environ else sorted(set(deletions.CASES) - FAR)
)
def test_examples_under_all_schedules(name):
    case = deletions.CASES[name]
    exe = tirx.compile(case.make(), target="cpu")
    for schedule in ("late", "early", *range(SEEDS)):
        args, check = case.args()
        with warnings.catch_warnings():
            warnings.simplefilter("error", tirx.EmulationWarning)
            exe(*args, schedule=schedule)
        check(*args)
