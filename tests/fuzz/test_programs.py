# SPDX-License-Identifier: Apache-2.0
"""Random kernels: the emulator computes what the reference does, and every text parses back. TIRX_FUZZ_SECONDS (4)
bounds the run; seeds 0 .. are always the same, then come those of TIRX_FUZZ_SEED (random, printed with what fails)."""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
from pathlib import Path

import pytest
from fuzz import driver

import tirx

pytestmark = pytest.mark.filterwarnings("ignore")
SECONDS = float(os.environ.get("TIRX_FUZZ_SECONDS", "4"))
SEED = int(os.environ.get("TIRX_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1 << 40)
FOUND = sorted((Path(__file__).parent / "found").glob("*.txt"))


def told(tally: driver.Tally, sync: bool = False) -> None:
    if tally.failures:
        pytest.fail("\n\n".join(driver.report(*f, sync) for f in tally.failures[:2]))
    n = sum(tally.kinds.values())
    assert tally.kinds["same"] >= 0.9 * n - 2, (tally.kinds, tally.reasons)


def test_the_same_kernels_every_time():
    told(driver.many(0, 150, SECONDS))


def test_other_kernels_every_time():
    told(driver.many(SEED, 10**9, SECONDS, most=2))


@pytest.mark.parametrize("first", [0, SEED], ids=["the same", "others"])
def test_kernels_whose_threads_meet(first):
    """Under three schedules each: one result, and nothing to report."""
    told(driver.many(first, 10**9, SECONDS / 2, most=2, sync=True), sync=True)


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_what_was_found(path):
    """Kernels that once failed, smaller: the text, then a line `# {arguments}`."""
    text, _, args = path.read_text().rpartition("\n# ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(12):
            o = driver.check(text + "\n", eval(args, {"inf": float("inf"), "nan": float("nan")}), seed=seed)
            assert o.kind == "same", o.text


def test_time_is_bounded():
    start = time.monotonic()
    driver.many(5, 10**9, 0.1)
    assert time.monotonic() - start < 10


def test_the_text_of_some_is_accepted(nvrtc):
    """One module of random kernels through NVRTC."""
    functions = {}
    texts = [driver.programs.Program(seed, size=6).text for seed in range(4)]
    texts += [driver.meetings.Meetings(seed).text for seed in range(4)]
    for seed, text in enumerate(texts):
        with contextlib.suppress(tirx.DiagnosticError):
            functions[f"k{seed}"] = tirx.from_source(text.replace("def k(", f"def k{seed}("))
    assert tirx.compile(tirx.IRModule(functions), target="cuda:sm_90a").cubin[:4] == b"\x7fELF"


def test_each_mutant_can_be_planted():
    """mutants.py plants them, which takes long; here only that the table still fits the core."""
    from fuzz import mutants

    table = mutants.read_table()
    assert len(table) >= 100
    for m in table:
        mutants.apply(m)
