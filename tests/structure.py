# SPDX-License-Identifier: Apache-2.0
"""How the C core is put together: who may include whom, how long a file may be, who may allocate.

`python tests/structure.py` prints what is wrong and fails; the suite runs the same checks one by one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"

# A folder may include itself and what stands here. cuda and emu do not know each other.
BELOW = {"base": []}
BELOW["ir"] = ["base"]
BELOW["arith"] = ["base", "ir"]
BELOW["layout"] = ["base", "ir", "arith"]
BELOW["tile"] = ["base", "ir", "arith", "layout"]
BELOW["lower"] = ["base", "ir", "arith", "layout", "tile"]
BELOW["cuda"] = ["base", "ir", "arith", "layout", "tile", "lower"]
BELOW["emu"] = ["base", "ir", "arith", "layout", "tile", "lower"]
BELOW["runtime"] = [*BELOW["cuda"], "cuda", "emu"]
BELOW["python"] = [*BELOW["runtime"], "runtime"]

# The header of a folder that the others include is FOLDER/FOLDER.h; tables (.def) are public, and all of base is.
# Further public headers, each with its reason.
PUBLIC_HEADERS: dict[str, str] = {
    "ir/ptx.h": "the matcher of the PTX table, which the printer, tile/, cuda/ and emu/ share",
}

# Files of more than 1,000 lines that are not tables, each with its reason.
LONG_FILES: dict[str, str] = {}
MAX_LINES = 1000

# Compile-time data lives in the arena; only these folders own memory of their own, and only base asks the C library for
# it, so that the counter which makes allocations fail sees each of them.
MAY_ALLOCATE = ("base", "emu", "runtime", "python")

# Once more for a newer instruction set, or for those who watch; not part of the amalgam, whose files are compiled with
# one set of flags.
ISA_ENDINGS = ("avx2.c", "avx512.c", "run_watch.c")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
ALLOCATES = re.compile(r"\b(tx_malloc|tx_calloc|tx_realloc|tx_free)\s*\(")
FROM_LIBC = re.compile(r"(?<![.>])\b(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign)\s*\(")
ENDS_OR_PRINTS = re.compile(r"(?<![.>])\b(printf|fprintf|puts|fputs|abort|exit|_exit|longjmp)\s*\(")


def files(*endings: str) -> list[Path]:
    return sorted(p for p in CSRC.rglob("*") if p.suffix in endings)


def name(path: Path) -> str:
    return path.relative_to(CSRC).as_posix()


def folder(path: Path) -> str:
    """The part that a file belongs to; "" for all.c."""
    parts = path.relative_to(CSRC).parts
    return parts[0] if len(parts) > 1 else ""


def code(path: Path) -> str:
    """The text without comments and literals; every line keeps its number."""
    return NOT_CODE.sub(lambda m: "\n" * m.group().count("\n") + " ", path.read_text())


def hits(path: Path, pattern: re.Pattern) -> list[str]:
    text = code(path)
    return [f"csrc/{name(path)}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(1)}" for m in pattern.finditer(text)]


def wrong_includes() -> list[str]:
    wrong = []
    for path in files(".c", ".h", ".def"):
        own = folder(path)
        if own == "":
            continue
        if own not in BELOW:
            wrong.append(f"csrc/{name(path)}: folder {own} has no place in the order of includes")
            continue
        for quoted, system in INCLUDE.findall(path.read_text()):
            where = f"csrc/{name(path)} includes {quoted or system}"
            if system:
                if system == "Python.h" and own != "python":
                    wrong.append(f"{where}: only csrc/python may")
                if system.startswith("numpy/") and name(path) != "python/npy.c":
                    wrong.append(f"{where}: only csrc/python/npy.c may")
                continue
            if (path.parent / quoted).is_file():
                target = (path.parent / quoted).resolve()
            elif (CSRC / quoted).is_file():
                target = (CSRC / quoted).resolve()
            else:
                wrong.append(f"{where}: no such file")
                continue
            to = folder(target)
            if to == own:
                continue
            if to not in BELOW[own]:
                wrong.append(f"{where}: {own} may not know {to or 'all.c'}")
            elif target.suffix == ".c":
                wrong.append(f"{where}: a C file of another folder")
            elif to != "base" and target.suffix == ".h" and target.stem != to and name(target) not in PUBLIC_HEADERS:
                wrong.append(f"{where}: private to {to}, whose public header is {to}/{to}.h")
    return wrong


def long_files() -> list[str]:
    wrong = []
    for path in files(".c", ".h"):
        lines = path.read_text().count("\n")
        if lines > MAX_LINES and name(path) not in LONG_FILES:
            wrong.append(f"csrc/{name(path)} has {lines} lines, more than {MAX_LINES}: look for the second idea in it")
    return wrong


def wrong_allocations() -> list[str]:
    own = [p for p in files(".c", ".h", ".def") if folder(p) and folder(p) not in MAY_ALLOCATE]
    wrong = [f"{hit} is called outside {', '.join(MAY_ALLOCATE)}" for p in own for hit in hits(p, ALLOCATES)]
    others = [p for p in files(".c", ".h", ".def") if folder(p) not in ("", "base")]
    return wrong + [f"{hit} of the C library is called outside base" for p in others for hit in hits(p, FROM_LIBC)]


def wrong_exits() -> list[str]:
    # base holds the assertions of debug builds, which print and stop.
    paths = [p for p in files(".c", ".h", ".def") if folder(p) not in ("", "base", "python")]
    return [
        f"{hit}: nothing below csrc/python prints or ends the process" for p in paths for hit in hits(p, ENDS_OR_PRINTS)
    ]


def missing_in_amalgam() -> list[str]:
    amalgam = CSRC / "all.c"
    if not amalgam.exists():
        return []
    listed = {quoted for quoted, _ in INCLUDE.findall(amalgam.read_text())}
    wanted = [name(p) for p in files(".c") if p != amalgam and not p.name.endswith(ISA_ENDINGS)]
    return [f"csrc/all.c does not include {w}" for w in wanted if w not in listed]


def stale_allowances() -> list[str]:
    return [
        f"tests/structure.py allows {f}, which is not there"
        for f in [*PUBLIC_HEADERS, *LONG_FILES]
        if not (CSRC / f).exists()
    ]


CHECKS = (wrong_includes, long_files, wrong_allocations, wrong_exits, missing_in_amalgam, stale_allowances)

if __name__ == "__main__":
    found = [line for check in CHECKS for line in check()]
    print("\n".join(found) or f"structure: {len(files('.c', '.h', '.def'))} files of csrc are in order")
    sys.exit(bool(found))
