# SPDX-License-Identifier: Apache-2.0
"""check="report": a run collects what it would have stopped at, for each labelled kernel; what reports hold."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tirx

HERE = Path(__file__).resolve().parents[1] / "cases" / "checkers"
_spec = importlib.util.spec_from_file_location("expect", HERE / "expect.py")
E = importlib.util.module_from_spec(_spec)
sys.modules["expect"] = E
_spec.loader.exec_module(E)
PAIRS = E.load(HERE)


@pytest.mark.parametrize("pair", PAIRS, ids=[p.name for p in PAIRS])
def test_a_broken_kernel_runs_on_and_is_told(pair):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reports = tirx.compile(pair.broken(), target="cpu")(*pair.args(), check="report")
    assert any(all(E.judge(pair, E._report(pair, r))) for r in reports), [str(r) for r in reports]
    for r in reports:
        assert isinstance(r, (tirx.EmulationError, tirx.EmulationWarning)) and r.kind in E.KINDS
        assert len(str(r).splitlines()) <= 15
        assert {agent["line"] for agent in r.agents} == set(r.lines)
        for agent in r.agents:
            assert agent["role"] and len(agent["cta"]) == len(agent["thread"]) == 3
            assert agent["warp"] * 32 + agent["lane"] >= agent["thread"][0]


def test_several_faults_are_all_collected():
    from tirx.script import tirx as T

    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), m: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        s = T.alloc_shared((64,), "int32")
        s[tx] = tx // (m - 1)
        A[tx] = s[63 - tx]
        A[tx + 1] = 7

    reports = tirx.compile(k, target="cpu")(np.zeros(64, "int32"), 1, check="report")
    assert [r.kind for r in reports][0] == "arithmetic"
    assert {r.kind for r in reports} == {"arithmetic", "uninitialised", "race", "out_of_bounds"}
