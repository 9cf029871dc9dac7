# SPDX-License-Identifier: Apache-2.0
"""Our own labelled pairs (folder pairs): the broken kernel is told with kind, buffer and lines, its repaired twin runs
in silence and gives what NumPy gives, under late and early engines and two seeds; TIRX_PAIR_SEEDS asks for more.

    python tests/emu/test_pairs.py [--seeds N] [NAME ...]      what each pair says

They are written as those of cases/checkers, with its harness.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import pytest

import tirx

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("expect_of_pairs", HERE.parent / "cases" / "checkers" / "expect.py")
E = sys.modules[_spec.name] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(E)
E.CLASSES = (
    *("memory", "arithmetic", "race", "scope", "barrier", "deadlock", "mbarrier", "tx-bytes", "phase", "cp.async"),
    *("bulk", "tensor", "proxy", "ring", "matrix", "wgmma", "tcgen05", "warp", "cluster", "remote", "launch"),
)
PAIRS = E.load(HERE / "pairs")
SEEDS = int(os.environ.get("TIRX_PAIR_SEEDS", "2"))
each = pytest.mark.parametrize("pair", PAIRS, ids=[f"{p.cls}-{p.name}" for p in PAIRS])


def runs(pair, fixed, schedules):
    """(schedule, report or None, arguments) of one compiled twin under each schedule."""
    exe = tirx.compile(pair.clean() if fixed else pair.broken(), target="cpu")
    for schedule in schedules:
        args = pair.args()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                exe(*args, schedule=schedule)
                found = next((w.message for w in seen if isinstance(w.message, tirx.EmulationWarning)), None)
            except tirx.EmulationError as e:
                found = e
        yield schedule, found and E._report(pair, found), args


def fault(pair, report):
    """What is wrong with the report of a broken twin; None: nothing."""
    if report is None:
        return f"nothing reported; expected {pair.kind} on {pair.buffer} at {sorted(pair.lines)}"
    if all(E.judge(pair, report)):
        return None
    want = f"{pair.kind} on {pair.buffer} at {sorted(pair.lines)}"
    return f"expected {want}, got {report.kind} on {report.buffer} at {sorted(report.lines)}:\n{report.text}"


@each
def test_the_broken_kernel_is_told(pair):
    for _, report, _ in runs(pair, False, ["late"]):
        assert fault(pair, report) is None, fault(pair, report)


@each
def test_the_repaired_twin_is_silent_and_right(pair):
    for schedule, report, args in runs(pair, True, ["late", "early", *range(SEEDS)]):
        assert report is None, f"{schedule}: {report.text}"
        E.check_values(pair, args)


def test_there_are_enough():
    assert len(PAIRS) >= 60
    kinds = [p.kind for p in PAIRS]
    assert all(kinds.count(kind) >= 2 for kind in E.KINDS if kind != "unsupported"), kinds


def main(words):
    seeds = int(words[words.index("--seeds") + 1]) if "--seeds" in words else 8
    wrong = 0
    for pair in PAIRS:
        if (names := [w for w in words if not w.startswith("--") and not w.isdigit()]) and pair.name not in names:
            continue
        text = []
        try:
            for schedule, report, _ in runs(pair, False, ["late", "early", *range(seeds)]):
                if (f := fault(pair, report)) is not None and schedule == "late":
                    text.append(f"  broken, {schedule}: {f}")
                    break
                if f is not None:
                    print(f"  note: {pair.name}, {schedule}: {f.splitlines()[0]}")
            for schedule, report, args in runs(pair, True, ["late", "early", *range(seeds)]):
                if report is not None:
                    text.append(f"  clean, {schedule}: {report.text}")
                    break
                E.check_values(pair, args)
        except Exception as e:  # whatever it is, the pair did not run
            text.append(f"  {type(e).__name__}: {e}")
        wrong += bool(text)
        print(f"{pair.cls}/{pair.name}: {'right' if not text else 'WRONG'}", *text, sep="\n", flush=True)
    print(f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
