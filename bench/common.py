# SPDX-License-Identifier: Apache-2.0
"""Timing and tables for the scripts of this folder.

    from common import contest, table

    times = contest({"tirx": lambda: exe(a, b, c), "numpy": lambda: np.add(a, b, out=c)})
    table("vector add, 2^22 floats", times, baseline="numpy", unit="ms", work=2**22, rate="Melem/s")

A figure is the least of several repetitions, in processor seconds unless said otherwise: machines are shared, and what
disturbs a run only ever makes it longer. Contestants take turns, so that a slow spell meets all of them.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Mapping

SCALE = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
RATE = {
    "elem/s": 1.0,
    "Kelem/s": 1e-3,
    "Melem/s": 1e-6,
    "Gelem/s": 1e-9,
    "MFLOP/s": 1e-6,
    "GFLOP/s": 1e-9,
    "GB/s": 1e-9,
}

cpu = time.process_time  # all threads of the process
wall = time.perf_counter


def _calls_per_repetition(fn: Callable[[], object], clock: Callable[[], float], least: float) -> int:
    calls = 1
    while True:
        start = clock()
        for _ in range(calls):
            fn()
        took = clock() - start
        if took >= least:
            return calls
        calls = calls * 2 if took < least / 10 else max(calls + 1, int(calls * 1.2 * least / took))


def contest(
    contestants: Mapping[str, Callable[[], object]],
    *,
    repeat: int = 7,
    least: float = 0.05,
    clock: Callable[[], float] = cpu,
) -> dict[str, float]:
    """Seconds of one call of each: the least of `repeat` repetitions, each of which lasts at least `least` seconds."""
    calls = {name: _calls_per_repetition(fn, clock, least) for name, fn in contestants.items()}
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(repeat):
        for name, fn in contestants.items():
            start = clock()
            for _ in range(calls[name]):
                fn()
            best[name] = min(best[name], (clock() - start) / calls[name])
    return best


def measure(fn: Callable[[], object], **how) -> float:
    """Seconds of one call."""
    return contest({"": fn}, **how)[""]


def rows_as_markdown(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells):
        padded = [cells[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def table(
    title: str,
    times: Mapping[str, float],
    *,
    baseline: str,
    unit: str = "ms",
    work: float | None = None,
    rate: str = "Melem/s",
    reach: Mapping[str, float] | None = None,
) -> bool:
    """Print a table: time, rate if `work` (elements, operations or bytes a call) is given, time over the baseline's.

    `reach` gives the largest ratio that a contestant may have; the result is False if one has more.
    """
    header = ["", unit] + ([rate] if work is not None else []) + [f"time / {baseline}"] + (["reach"] if reach else [])
    rows, good = [], True
    for name, seconds in times.items():
        ratio = seconds / times[baseline]
        row = [name, f"{seconds * SCALE[unit]:.3f}"]
        if work is not None:
            row.append(f"{work / seconds * RATE[rate]:,.1f}")
        row.append(f"{ratio:.2f}")
        if reach:
            limit = reach.get(name)
            missed = limit is not None and ratio > limit
            good = good and not missed
            row.append("" if limit is None else f"{limit:g}{' MISSED' if missed else ''}")
        rows.append(row)
    print(f"\n{title}\n\n{rows_as_markdown(header, rows)}", flush=True)
    return good


def machine() -> str:
    """One line on what the figures were measured with."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as info:
            model = next(line.split(":", 1)[1].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} processors, Python {sys.version.split()[0]}"
