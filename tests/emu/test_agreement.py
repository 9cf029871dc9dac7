# SPDX-License-Identifier: Apache-2.0
"""The emulator against what an H200 answered for each form of the PTX table: agreement.npz, written by
tests/gpu/agreement.py. Results are equal bit for bit (a digest of them is kept), or near where they are approximate.

Every kernel of the table's forms runs, and one of several of the others; TIRX_AGREEMENT=all runs all of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import agreement_units
import pytest
from ptx_variants import Row

from tirx import _core

ANSWERS = agreement_units.load(Path(__file__).parent / "agreement.npz")
EVERY = agreement_units.every()
STEP = 1 if os.environ.get("TIRX_AGREEMENT") == "all" else 6


def chosen(kind: str):
    """Kernels by their first word, a few together."""
    of = [u for u in EVERY if kind_of(u) == kind]
    return of if kind == "table" else of[:: STEP if kind == "wgmma" else (STEP + 1) // 2]


def kind_of(unit) -> str:
    return "wgmma" if unit.name.startswith("wgmma") else "engines" if " " in unit.name else "table"


def groups():
    for kind in ("table", "wgmma", "engines"):
        of = chosen(kind)
        for i in range(0, len(of), 25):
            yield pytest.param(of[i : i + 25], id=f"{kind}-{i // 25}")


@pytest.mark.parametrize("units", list(groups()))
def test_what_an_h200_gave(units):
    faults = []
    for unit in units:
        forms = [f for f in unit.forms if f.name in ANSWERS]
        b = unit.batch("0")
        for f, rows in zip(unit.forms, b.results(agreement_units.emulate(b)), strict=True):
            if f not in forms:
                continue
            want = ANSWERS[f.name]
            if isinstance(want, int):
                text = "" if agreement_units.digest(rows) == want else "other bits"
            else:
                text = agreement_units.compare(f, rows, want)
            if text:
                faults.append(f"{f.name}: {text}")
    assert not faults


def test_every_form_has_an_answer():
    assert not {f.name for u in EVERY for f in u.forms} - set(ANSWERS)


# Rows of sm_90 that no kernel executes alone, and why.
ELSEWHERE = {
    r"^multimem": "wants a multicast object of several GPUs",
    r"^setmaxnreg": "is executed by the Hopper GEMM",
    r"im2col": "recorded with its maps: test_tma.py",
    r"^prefetch\.\{space\?=const": "a hint that wants a tensor map, without a result",
    r"^wgmma\.(fence|commit|wait)": "is in every kernel of wgmma",
    r"^mbarrier\.pending_count": "is in every kernel of mbarriers",
    r"^discard": "leaves bytes undefined",
}


def test_every_row_of_hopper_is_there():
    """A row of the table without a form here is one of ELSEWHERE."""
    here = {f.row for u in EVERY for f in u.forms}
    missing = set()
    for args in _core.ptx_rows():
        row = Row(*args)
        if not row.sm.startswith("100") and row.text not in here:
            missing.add(row.text)
    assert {p for t in missing for p in ELSEWHERE if re.search(p, t)} == set(ELSEWHERE)
    assert not {t for t in missing if not any(re.search(p, t) for p in ELSEWHERE)}
