# SPDX-License-Identifier: Apache-2.0
"""The emulator knows every row of the PTX table: no choice of any slot is answered with "not known yet"."""

from __future__ import annotations

import re

import pytest
from ptx_variants import kernel, variants

import tirx
from tirx import _core

BATCH = 40
EVERY = list(variants())
FAMILIES = sorted({v.statement.split('"')[1].split(".")[0] for v in EVERY})


def unknown(batch) -> list[str]:
    """What the code of a kernel with these statements answers with a report."""
    module = tirx.from_source(kernel("k", batch))
    code = _core.vm_code(_core.lower(module, "cpu", {}))
    return re.findall(r"UNSUP.*", code)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_variant_is_known(family):
    of = [v for v in EVERY if v.statement.split('"')[1].split(".")[0] == family]
    faults = []
    for i in range(0, len(of), BATCH):
        if unknown(of[i : i + BATCH]):
            faults += [v.statement for v in of[i : i + BATCH] if unknown([v])]
    assert not faults


def test_every_row_is_there():
    assert {v.row for v in EVERY} == {row[0] for row in _core.ptx_rows()}
