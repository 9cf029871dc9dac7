# SPDX-License-Identifier: Apache-2.0
"""The emulator knows every row of the PTX table: no choice of any slot is answered with "not known yet"."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_variants import kernel, variants

import tirx
from tirx import _core

BATCH = 40
# What is reported as unsupported when it is executed, and why. An entry that works fails its test.
EXCEPT = {
    r"tcgen05\.mma\.sp\.": "the manuals show where tensor memory holds the metadata in pictures only",
}
EVERY = list(variants())
FAMILIES = sorted({v.statement.split('"')[1].split(".")[0] for v in EVERY})


def unknown(batch) -> list[str]:
    """What the code of a kernel with these statements answers with a report."""
    module = tirx.from_source(kernel("k", batch))
    code = _core.vm_code(_core.lower(module, "cpu", {}))
    return re.findall(r"UNSUP.*", code)


def excepted(v) -> bool:
    return any(re.search(e, v.statement) for e in EXCEPT)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_variant_is_known(family):
    of = [v for v in EVERY if v.statement.split('"')[1].split(".")[0] == family and not excepted(v)]
    faults = []
    for i in range(0, len(of), BATCH):
        if unknown(of[i : i + BATCH]):
            faults += [v.statement for v in of[i : i + BATCH] if unknown([v])]
    assert not faults


@pytest.mark.parametrize("pattern", EXCEPT)
def test_exceptions_are_exact(pattern):
    of = [v for v in EVERY if re.search(pattern, v.statement)]
    assert of
    assert all(unknown([v]) for v in of)


def test_the_answer_names_the_reason():
    v = next(v for v in EVERY if excepted(v))
    g, o = np.zeros(4096, "uint8"), np.zeros(1024, "uint64")
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(tirx.from_source(kernel("k", [v])), target="cpu")(g, o, check=False)
    assert e.value.kind == "unsupported"
    assert re.search(r"does not know tcgen05\.mma\.sp\S+: the manuals show .* in pictures only", str(e.value))


def test_every_row_is_there():
    assert {v.row for v in EVERY} == {row[0] for row in _core.ptx_rows()}
