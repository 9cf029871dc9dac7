# SPDX-License-Identifier: Apache-2.0
"""Plants the faults of mutants.txt in the core, one at a time, and tells which the fuzzer does not find.

    python -m fuzz.mutants                    all; in tests/
    python -m fuzz.mutants 3 17               some
    python -m fuzz.mutants --sync             those that kernels whose threads meet find
    TIRX_FUZZ_PROCESSES=16 TIRX_FUZZ_SECONDS=20 python -m fuzz.mutants

A mutant is found when a random kernel differs, crashes, is reported, is not printed back, or when many are refused; or
when it does not end. Each is one file compiled (with -O1, faults in the interpreter's loops with -O0) and a link.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
TABLE = Path(__file__).with_suffix(".txt")
FLAGS = ["-std=c11", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-w", "-DPy_LIMITED_API=0x030B0000"]
SECONDS = float(os.environ.get("TIRX_FUZZ_SECONDS", "20"))
KERNELS = int(os.environ.get("TIRX_FUZZ_KERNELS", "1000000"))
PROCESSES = int(os.environ.get("TIRX_FUZZ_PROCESSES", "1"))


@dataclasses.dataclass
class Mutant:
    number: int
    file: str
    compiled: list[str]
    old: str
    new: str
    sync: bool

    def __str__(self) -> str:
        return f"{self.number} {self.file}: {self.old.strip().splitlines()[0]} -> {self.new.strip().splitlines()[:1]}"


def read_table() -> list[Mutant]:
    mutants = []
    for entry in re.split(r"\n\n+", TABLE.read_text().strip())[1:]:
        head, *lines = entry.split("\n")
        file, *compiled = head.split()
        old, new = ("\n".join(line[2:] for line in lines if line[0] == sign) for sign in "-+")
        sync, compiled = "@sync" in compiled, [c for c in compiled if c != "@sync"]
        mutants.append(Mutant(len(mutants), file, compiled or [file], old, new, sync))
    return mutants


def apply(m: Mutant) -> str:
    """The file with the fault in it; its text must stand there once."""
    text = (CSRC / m.file).read_text()
    # indentation and the table's spaces are one
    pattern = r"\s+".join(re.escape(w) for w in m.old.split())
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{len(found)} places for {m}"
    return re.sub(pattern, lambda _: m.new, text)


def sources() -> list[str]:
    found = (p.relative_to(CSRC).as_posix() for p in CSRC.rglob("*.c"))
    return sorted(s for s in found if s not in ("all.c", "emu/run_avx2.c", "emu/run_avx512.c"))


def includes() -> list[str]:
    import numpy

    return [f"-I{sysconfig.get_paths()['include']}", f"-I{numpy.get_include()}"]


def own_flags(source: str, once: bool) -> list[str]:
    """The interpreter alone, without its copies for other processors, which take long."""
    return ["-O1" if once else "-O0", "-DTX_AMALGAM"] if source == "emu/run.c" else ["-O1"]


def compile_one(source: str, csrc: list[Path], out: Path, base: Path) -> None:
    """The first folder of csrc that has the file and its headers wins."""
    out.parent.mkdir(parents=True, exist_ok=True)
    at = next(c / source for c in csrc if (c / source).exists())
    command = ["cc", *FLAGS, *own_flags(source, len(csrc) == 1), *(f"-I{c}" for c in csrc), *includes(), "-c", str(at)]
    subprocess.run([*command, "-o", str(out)], check=True, cwd=base)


def link(objects: list[Path], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", *map(str, objects), "-o", str(out), "-lm", "-ldl", "-lpthread"], check=True)


RUN = """
import sys
from fuzz import driver
seconds = float(sys.argv[1])
tally = driver.many(int(sys.argv[2]), int(sys.argv[3]), seconds, most=1, sync=len(sys.argv) > 4)
n = sum(tally.kinds.values())
if tally.failures:
    print("found after", n, tally.failures[0][0], tally.failures[0][1])
elif tally.kinds["refused"] > 3 + n * 0.05:
    print("found after", n, "refused", tally.reasons.most_common(1))
else:
    print("SURVIVED", n, dict(tally.kinds))
"""


def run(tree: Path, seconds: float, seed: int, sync: bool = False) -> str:
    env = {**os.environ, "PYTHONPATH": f"{tree}:{ROOT / 'tests'}", "TIRX_EMU_ISA": "base", "PYTHONSAFEPATH": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(seconds), str(seed), str(KERNELS), *["sync"] * sync], env=env,
            capture_output=True, text=True, timeout=seconds * 3 + 60, cwd=tree,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "found: does not end"
    if done.returncode:
        return "found: " + (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:150]
    return done.stdout.strip()


def test_one(m: Mutant, temp: Path, objects: dict[str, Path]) -> tuple[Mutant, str]:
    folder = temp / f"mutant{m.number}"
    try:
        own = folder / "csrc"
        (own / m.file).parent.mkdir(parents=True)
        (own / m.file).write_text(apply(m))
        made = dict(objects)
        for s in m.compiled:
            made[s] = folder / "obj" / (s.replace("/", "_") + ".o")
            compile_one(s, [own, CSRC], made[s], folder)
        tree = folder / "tree"
        shutil.copytree(ROOT / "tirx", tree / "tirx", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        link(list(made.values()), tree / "tirx" / "_core.abi3.so")
        return m, run(tree, SECONDS, 10_000_000 + 10_000 * m.number, m.sync)
    except subprocess.CalledProcessError:
        return m, "DOES NOT COMPILE"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    mutants = read_table()
    chosen = [int(a) for a in sys.argv[1:] if a.isdigit()]
    mutants = [m for m in mutants if (not chosen or m.number in chosen) and (m.sync or "--sync" not in sys.argv)]
    for m in mutants:
        apply(m)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(PROCESSES) as pool:
        temp = Path(name)
        objects = {s: temp / "obj" / (s.replace("/", "_") + ".o") for s in sources()}
        list(pool.map(lambda s: compile_one(s, [CSRC], objects[s], temp), objects))
        tree = temp / "clean"
        shutil.copytree(ROOT / "tirx", tree / "tirx", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        link(list(objects.values()), tree / "tirx" / "_core.abi3.so")
        print(f"{len(objects)} files compiled ({time.monotonic() - start:.0f} s)", flush=True)
        clean = [pool.submit(run, tree, min(SECONDS, 20), 9_000_000, sync) for sync in (False, True)]
        missed = []
        for m, said in pool.map(lambda m: test_one(m, temp, objects), mutants):
            print(f"{said[:90]:90} {m}", flush=True)
            if not said.startswith("found"):
                missed.append((m, said))
        for said in (c.result() for c in clean):
            print(f"without a fault: {said}")
            assert said.startswith("SURVIVED"), "the fuzzer must be silent on the core as it is"
    print(f"{len(mutants) - len(missed)} of {len(mutants)} found in {time.monotonic() - start:.0f} s")
    for m, said in missed:
        print(f"  not found: {m}: {said}")
    return len(missed) * 20 > len(mutants)


if __name__ == "__main__":
    sys.exit(main())
