# SPDX-License-Identifier: Apache-2.0
"""NVRTC assembles each choice of each slot of every row of the PTX table at the architecture that the row claims."""

from __future__ import annotations

import collections

import pytest
from ptx_variants import ORDER, kernel, variants

import tirx
from tirx import _core

OLDEST = "75"  # that NVRTC 13 knows
BATCH = 40  # variants a kernel

# Assemblers before 13.5 refuse these: the ISA has them, ptxas 13.0 has not.
NEEDS_NEWER = (
    "s2f6x2",
    "ld.volatile.local",
    "st.volatile.local",
    "cvt.rn.bf16x2.e",
    "cvt.rn.relu.bf16x2.e",
    "cvt.rn.satfinite.bf16x2.e",
)


def by_arch():
    groups = collections.defaultdict(list)
    for v in variants():
        if not any(text in v.statement for text in NEEDS_NEWER) and "scaled::n2::ue8m0" not in v.statement:
            groups[OLDEST if v.arch in ("50", "70") else v.arch].append(v)
    return groups


GROUPS = by_arch()


def compile_all(batch, arch):
    module = tirx.from_source(kernel("k", batch))
    return tirx.compile(module, target=f"cuda:sm_{arch}").cubin


@pytest.mark.parametrize("arch", [a for a in ORDER if a in GROUPS])
def test_every_variant_is_assembled(arch, nvrtc):
    faults = []
    todo = [GROUPS[arch][i : i + BATCH] for i in range(0, len(GROUPS[arch]), BATCH)]
    while todo:
        batch = todo.pop()
        try:
            assert compile_all(batch, arch)[:4] == b"\x7fELF"
        except tirx.CompileError as e:
            if len(batch) == 1:
                faults.append(f"{batch[0].statement}: {str(e)[:300]}")
            else:
                todo += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
    assert not faults, f"{len(faults)} of {len(GROUPS[arch])}:\n" + "\n".join(faults[:20])


def test_all_rows_and_most_variants_are_there():
    every = list(variants())
    assert {v.row for v in every} == {row[0] for row in _core.ptx_rows()}
    assert len(every) - sum(len(g) for g in GROUPS.values()) <= 50
