# SPDX-License-Identifier: Apache-2.0
"""What a kernel does on the emulator: exe.trace(...) and exe.stats(...), and their command lines.

    python -m tirx trace FILE:kernel [-o OUT.json]
    python -m tirx stats FILE:kernel

FILE is a Python file that has the kernel, and beside it a function `kernel_args()` that returns the tuple of its
arguments.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Iterable
from typing import Any

_TIMELINE, _COUNTS = 1, 2


def trace(exe: Any, *args: Any, file: Any = None, limit: int = 2_000_000, **options: Any) -> dict:
    """A call on the emulator as a timeline, for ui.perfetto.dev and chrome://tracing.

    Gives the trace as a dict; file is a path that it is written to. A microsecond of the timeline is a step, one
    instruction of the emulator. options are those of a call: check, schedule, numerics. After `limit` events no more
    are kept.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"trace: limit is a number of events from 1 on, got {limit!r}")
    if file is not None and not isinstance(file, str | os.PathLike):
        raise TypeError(f"trace: file is a path or None, got {type(file).__name__}")
    text, _ = exe._watch(_TIMELINE, limit, *args, **options)
    text = f'{{"displayTimeUnit":"ms","traceEvents":[\n{text}\n]}}\n'
    if file is not None:
        with open(file, "w") as out:
            out.write(text)
    return json.loads(text)


def stats(exe: Any, *args: Any, **options: Any) -> Stats:
    """A call on the emulator, counted. print(exe.stats(...)) shows the costly lines."""
    text, _ = exe._watch(_COUNTS, 0, *args, **options)
    return Stats(json.loads(f"[{text}]"))


_CLASSES = (
    ("shared and global memory", ("LD", "ST", "LDP", "STP", "ATOM", "ALIGN", "CHKB")),
    ("synchronisation", ("BAR", "WSYNC", "FENCE", "SLEEP")),
    ("warp", ("SHFL", "VOTE", "WREDUCE", "ACTIVE", "PTXW")),
    ("control", ("JMP JZ LOOPJ IF ELSE ENDIF LOOP LTEST LCONT LEND BREAK CONTINUE FORT FORN RET END".split())),
    ("moves", ("MOV BC MOVM BCM SELS LANE MOVS MOVMB LROW SROW CHKI SETI CLRI CVTA CVTP".split())),
    ("outside", ("ASSERT", "PRINTF", "EXTERN", "UNSUP", "CLOCK")),
)
_CHECKS = ("CHK", "SETI", "CLRI", "ALIGN")  # of the emulator, not of the kernel


def _class_of(name: str) -> str | None:
    if name.startswith("ptx "):
        return "PTX " + name[4:]
    stem, _, types = name.partition(".")
    if stem.startswith(_CHECKS):
        return None
    for title, stems in _CLASSES:
        if stem in stems or stem.rstrip("0123456789B") in stems or stem.split("_")[0] in stems:
            return title
    return "floating point" if "F32" in stem + types or "F64" in stem + types else "integer"


class Stats:
    """What a call cost.

    instructions  dict: class -> instructions, counted once a warp
    bytes         dict: "shared", "global", "async" -> bytes; what several lanes of an access share counts once
    conflicts     turns of the banks of shared memory beyond the least
    sectors       sectors of global memory that were touched; least_sectors: that as many bytes need
    waits         waits at barriers and mbarriers, counted once a warp (or part of a warp)
    lines         one row a place in the source, the costliest first; a row is a dict
    """

    def __init__(self, launches: Iterable[dict]) -> None:
        self.launches = list(launches)
        self.instructions: dict[str, int] = {}
        rows: dict[tuple, dict] = {}
        for launch in self.launches:
            for name, n in launch["instructions"]:
                kind = _class_of(name)
                if kind is not None:
                    self.instructions[kind] = self.instructions.get(kind, 0) + n
            for place in launch["places"]:
                key = tuple(place.get(k) for k in ("file", "line", "buffer", "role", "space", "kind"))
                row = rows.setdefault(key, {k: v for k, v in place.items() if isinstance(v, str) or k == "line"})
                for k, v in place.items():
                    if k != "line" and isinstance(v, int):
                        row[k] = row.get(k, 0) + v
        self.lines = sorted(rows.values(), key=lambda r: (-_excess(r), -r.get("bytes", 0), r["file"], r["line"]))
        self.bytes = {
            "shared": self._sum("bytes", "shared"),
            "global": self._sum("bytes", "global"),
            "async": sum(r.get("transfer_bytes", 0) for r in self.lines),
        }
        self.conflicts = self._sum("units", "shared") - self._sum("least", "shared")
        self.sectors = self._sum("units", "global")
        self.least_sectors = self._sum("least", "global")
        self.waits = sum(r.get("waits", 0) for r in self.lines)

    def _sum(self, what: str, space: str) -> int:
        return sum(r[what] for r in self.lines if r.get("space") == space)

    def line(self, number: int) -> list[dict]:
        """The rows of a line of the source."""
        return [r for r in self.lines if r["line"] == number]

    def __repr__(self) -> str:
        return f"<tirx stats: {sum(self.instructions.values())} instructions, {self.conflicts} bank conflicts>"

    def __str__(self) -> str:
        out = []
        for launch in self.launches:
            grid, block = ("x".join(map(str, launch[k])) for k in ("grid", "block"))
            out.append(f"{launch['kernel']}: grid {grid}, block {block}")
        out.append("instructions, counted once a warp:")
        out += [f"  {n:>12,}  {k}" for k, n in sorted(self.instructions.items(), key=lambda x: (-x[1], x[0]))]
        out.append("memory:")
        out.append(f"  {self.bytes['shared']:>12,}  bytes of shared memory, {self.conflicts:,} bank conflicts")
        out.append(
            f"  {self.bytes['global']:>12,}  bytes of global memory in {self.sectors:,} sectors"
            f" of 32 bytes, at least {self.least_sectors:,}"
        )
        out.append(f"  {self.bytes['async']:>12,}  bytes by asynchronous copies")
        out.append(f"  {self.waits:>12,}  waits at barriers")
        shown = [t for t in map(_describe, self.lines[:24]) if t]
        if shown:
            out.append("lines:")
            out += [f"  {t}" for t in shown]
        return "\n".join(out)


def _excess(row: dict) -> int:
    return row.get("units", 0) - row.get("least", 0)


def _describe(r: dict) -> str:
    at = f"{os.path.basename(r['file'])}:{r['line']}  {r['buffer'] or r['role']}"
    parts = []
    if "accesses" in r:
        unit = "turns of the banks" if r["space"] == "shared" else "sectors"
        size = f"{r['bytes']:,} bytes, {r['units']:,} {unit} (least {r['least']:,})"
        parts.append(f"{r['accesses']:,} {r['space']} {r['kind']}s, {size}")
    if "transfers" in r:
        parts.append(f"{r['transfers']:,} asynchronous ({r['role']}), {r['transfer_bytes']:,} bytes")
    if "waits" in r:
        parts.append(f"{r['waits']:,} waits, {r['steps']:,} steps")
    return f"{at}  " + "; ".join(parts) if parts else ""


# ---- python -m tirx ------------------------------------------------------------------------------------------------

USAGE = """usage: python -m tirx trace FILE:kernel [-o OUT.json]     a timeline for ui.perfetto.dev
       python -m tirx stats FILE:kernel                   what the kernel costs, by line

FILE has the kernel and a function kernel_args() that returns the tuple of its arguments."""


def _load(what: str) -> tuple[Any, tuple]:
    path, _, name = what.rpartition(":")
    if not path or not name:
        raise SystemExit(f"expected FILE:kernel, got {what!r}\n{USAGE}")
    if not os.path.isfile(path):
        raise SystemExit(f"{path}: no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    names = runpy.run_path(path, run_name="tirx_kernel_file")
    if name not in names:
        raise SystemExit(f"{path} has no {name!r}")
    if not callable(names.get(name + "_args")):
        raise SystemExit(f"{path} has no function {name}_args(): it returns the tuple of arguments of {name}")
    args = names[name + "_args"]()
    if not isinstance(args, tuple):
        raise SystemExit(f"{name}_args() returns a tuple of arguments, got {type(args).__name__}")
    return names[name], args


def main(argv: list[str]) -> int:
    out = "trace.json"
    if "-o" in argv[:-1]:
        at = argv.index("-o")
        out = argv[at + 1]
        argv = argv[:at] + argv[at + 2 :]
    if len(argv) != 2 or argv[0] not in ("trace", "stats"):
        raise SystemExit(USAGE)
    from tirx.compiler import compile

    kernel, args = _load(argv[1])
    exe = compile(kernel, target="cpu")
    if argv[0] == "stats":
        print(stats(exe, *args))
    else:
        events = trace(exe, *args, file=out)["traceEvents"]
        print(f"{len(events)} events in {out}: open it in ui.perfetto.dev")
    return 0
