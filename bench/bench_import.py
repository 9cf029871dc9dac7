# SPDX-License-Identifier: Apache-2.0
"""`import tirx` beyond bare Python, and the size of the wheel and of what it installs.

What is to be reached: 30 ms; a wheel of 1.5 MB, 5 MB installed (without NumPy).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from common import machine, rows_as_markdown


def cpu_seconds(code: str) -> float:
    """Least user + system time of whole interpreters that run `code`."""
    import resource

    best = float("inf")
    for _ in range(15):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def sizes(root: Path) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", folder, str(root)], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        subprocess.run([*pip, "install", "--no-deps", "--target", f"{folder}/site", str(wheel)], check=True)
        installed = sum(p.stat().st_size for p in Path(folder, "site").rglob("*") if p.is_file() and p.suffix != ".pyc")
        return wheel.stat().st_size / 1e6, installed / 1e6


def main():
    print(machine())
    script = "from tirx.script import tirx as T"
    bare, full, front = (cpu_seconds(code) for code in ("pass", "import tirx", f"import tirx; {script}"))
    wheel, installed = sizes(Path(__file__).resolve().parent.parent)
    rows = [
        ["import tirx, beyond bare Python (CPU ms)", f"{(full - bare) * 1e3:.1f}", "30"],
        [f"{script}, after that (CPU ms)", f"{(front - full) * 1e3:.1f}", ""],
        ["wheel (MB)", f"{wheel:.2f}", "1.5"],
        ["installed without NumPy (MB)", f"{installed:.2f}", "5"],
    ]
    print("\n" + rows_as_markdown(["", "measured", "reach"], rows))
    return all(float(r[1]) <= float(r[2]) for r in rows if r[2])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
