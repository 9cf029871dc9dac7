# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest that runs what the emulator has run without a word again, under early engines and eight seeds:

    PYTHONPATH=tests/emu python -m pytest -p every_schedule tests/emu tests/cases tests/long_kernels

It writes what is told then, and where the results differ, to every_schedule.log, each line with its test. Calls that
took longer than TIRX_SWEEP_SECONDS (0.15) are left alone. Tests that count calls or look at what is printed fail under
it; results differ where the test is about atomics that tell the order.
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
import pytest

import tirx

LIMIT = float(os.environ.get("TIRX_SWEEP_SECONDS", "0.15"))
LOG = open("every_schedule.log", "w", buffering=1)  # noqa: SIM115
compiled = tirx.compile
state = {"test": "", "calls": 0}


def emulation_warnings(exe, args, keywords):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = exe(*args, **keywords)
    return result, seen, [w.message for w in seen if isinstance(w.message, tirx.EmulationWarning)]


class Again:
    """An executable whose silent calls are repeated."""

    def __init__(self, exe):
        object.__setattr__(self, "exe", exe)

    def __getattr__(self, name):
        return getattr(self.exe, name)

    def __setattr__(self, name, value):
        setattr(self.exe, name, value)

    def __getitem__(self, name):
        return self.exe[name]

    def __call__(self, *args, **keywords):
        arrays = [a for a in args if isinstance(a, np.ndarray) and a.flags.writeable]
        before, start = [a.copy() for a in arrays], time.perf_counter()
        result, seen, told = emulation_warnings(self.exe, args, keywords)
        for w in seen:
            warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        plain = "schedule" not in keywords and keywords.get("check", True) is True
        if not plain or told or time.perf_counter() - start > LIMIT:
            return result
        after = [a.copy() for a in arrays]
        state["calls"] += 1
        for schedule in ("early", *range(8)):
            for a, b in zip(arrays, before, strict=True):
                a[...] = b
            try:
                told = emulation_warnings(self.exe, args, keywords | {"schedule": schedule})[2]
            except tirx.EmulationError as e:
                told = [e]
            if any(a.tobytes() != b.tobytes() for a, b in zip(arrays, after, strict=True)) or told:
                LOG.write(f"{state['test']}, schedule {schedule}: {told[0] if told else 'another result'}\n")
                break
        for a, b in zip(arrays, after, strict=True):
            a[...] = b
        return result


def again(*args, **keywords):
    exe = compiled(*args, **keywords)
    return Again(exe) if keywords.get("target", args[1] if len(args) > 1 else None) == "cpu" else exe


tirx.compile = tirx.build = again


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    state["test"] = item.nodeid


def pytest_sessionfinish(session):
    LOG.write(f"{state['calls']} calls\n")
