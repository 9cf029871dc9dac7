# SPDX-License-Identifier: Apache-2.0
"""The emulator's matrix units beside NumPy: the GEMMs of examples/ at 1024 cubed, on all cores.

What is to be reached on two cores: 1/30 of NumPy's float32 product with checks, 1/8 without.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from common import contest, machine, table, wall

import tirx

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
import blackwell_gemm  # noqa: E402
import hopper_gemm  # noqa: E402

N = 1024
KERNELS = {
    "Hopper GEMM (TMA, wgmma)": lambda: hopper_gemm.gemm.specialize(dtype="float16", SMS=4),
    "Blackwell GEMM (TMA, tcgen05)": lambda: blackwell_gemm.gemm.specialize(dtype="float16", PAIR=1, SMS=4),
    "Blackwell GEMM, pairs": lambda: blackwell_gemm.gemm.specialize(dtype="float16", PAIR=2, SMS=4),
}


def main() -> bool:
    print(machine())
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((N, N)).astype(np.float16) for _ in range(2))
    c = np.zeros((N, N), np.float16)
    wide = a.astype(np.float32), np.ascontiguousarray(b.astype(np.float32).T)
    out = np.empty((N, N), np.float32)
    good = True
    for name, make in KERNELS.items():
        exe = tirx.compile(make(), target="cpu")
        exe(a, b, c, check=False)
        want = a.astype(np.float64) @ b.astype(np.float64).T
        assert np.linalg.norm(c - want) < 1e-3 * np.linalg.norm(want)
        times = contest(
            {
                "NumPy float32": lambda: np.matmul(*wide, out=out),
                "checks off": lambda: exe(a, b, c, check=False),  # noqa: B023
                "checks on": lambda: exe(a, b, c),  # noqa: B023
            },
            repeat=3,
            clock=wall,
        )
        good &= table(
            f"{name}, {N} cubed: wall seconds, {os.cpu_count()} cores",
            times,
            baseline="NumPy float32",
            unit="ms",
            work=2 * N**3,
            rate="GFLOP/s",
            reach={"checks off": 8, "checks on": 30},
        )
    return good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
