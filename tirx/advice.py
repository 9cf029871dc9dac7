# SPDX-License-Identifier: Apache-2.0
"""What ptxas says about speed, as Python warnings at the kernel's lines: PerformanceWarning, which
`warnings.simplefilter("error", tirx.PerformanceWarning)` turns into errors. NVRTC keeps what it compiled on disk, and
gives no advice with a text that it has seen before."""

from __future__ import annotations

import re
import warnings
from typing import Any

from tirx.errors import PerformanceWarning

OPTIONS = ["--ptxas-options=--warn-on-spills", "--ptxas-options=--warn-on-local-memory-usage"]

_LINE = re.compile(r"^ptxas (?:info|warning|advisory)\s*: (?:\((C\d+)\) )?(.*)$", re.M)
_KERNEL = re.compile(r"function '(\w+)'")
_SPILLS = re.compile(r"Registers are spilled .*?, (\d+) bytes spill stores, (\d+) bytes spill loads")
_LOCAL = re.compile(r"Local memory used .*?, size of stack frame: (\d+) bytes")
# code -> what the kernel's line holds that it is about
_ABOUT = {"C7508": "setmaxnreg", "C7509": "setmaxnreg"}
_HELP = {
    "C7508": "the kernel needs __launch_bounds__ with a known block, and each warpgroup's role one branch of one if",
    "C7510": "the accumulators are used between the first T.ptx.wgmma.mma_async and its wait, or pass through a call",
    "C7511": "nothing may write the accumulators between T.ptx.wgmma.fence and the wait; or the tile is too large",
    "C7515": "another instruction defines accumulators: T.cuda.wgmma.fence_operand(*acc) belongs before the fence",
}


def _place(source: str, lowered: Any, lines: bytes, kernel: str | None, about: str | None) -> tuple[str, int] | None:
    """File and line of the first line of the kernel's text that holds `about`, or that has a place at all."""
    spans = memoryview(lines).cast("I")
    inside, fallback = False, None
    for number, text in enumerate(source.split("\n")):
        if "__global__" in text:
            inside = kernel is None or f" {kernel}(" in text
        if not inside or number >= len(spans) or not spans[number]:
            continue
        found = lowered.ctx.span_info(spans[number])
        if about is None or about in text:
            return found[0], found[1]
        fallback = fallback or (found[0], found[1])
    return fallback


def _text(code: str | None, words: str) -> tuple[str, str | None] | None:
    """The message, and what the line that it is about holds; None: no advice."""
    spills, local = _SPILLS.search(words), _LOCAL.search(words)
    if spills:
        return f"registers are spilled to memory: {spills[1]} bytes are stored and {spills[2]} loaded by a thread", None
    if local:
        return (
            f"a thread uses {local[1]} bytes of local memory, which is slow: an array that is indexed by run-time "
            "values, or registers that are spilled",
            None,
        )
    if code is None or not (code in _HELP or "Performance Loss" in words):
        return None
    help_text = f" ({_HELP[code]})" if code in _HELP else ""
    return f"ptxas {code}: {words}{help_text}", _ABOUT.get(code, "wgmma_mma_async")


def warn(log: str, source: str, lowered: Any, lines: bytes) -> None:
    """One PerformanceWarning for each different advice in NVRTC's log."""
    said = set()
    for code, words in _LINE.findall(log):
        kernel = _KERNEL.search(words)
        made = _text(code or None, words)
        if made is None or made[0] in said:
            continue
        said.add(made[0])
        place = _place(source, lowered, lines, kernel and kernel[1], made[1])
        if place is None or not place[1]:
            warnings.warn(made[0], PerformanceWarning, stacklevel=2)
        else:
            warnings.warn_explicit(made[0], PerformanceWarning, *place)
