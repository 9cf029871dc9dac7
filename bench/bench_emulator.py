# SPDX-License-Identifier: Apache-2.0
"""The emulator beside NumPy on the same arguments: checks on, one thread (CPU seconds); checks off, all cores (wall).

What is to be reached: with checks, 1/20, 1/300 and 1/15 of NumPy's speed. Without checks and on two cores, four times
the rates that these fractions were meant as (100 Melem/s, 500 MFLOP/s, 30 Melem/s); the ratio to the run with checks is
printed beside it, but where checks cost next to nothing it cannot be four.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from common import RATE, contest, machine, table, wall
from three_kernels import CASES

import tirx

REACH = {"vector add": 20, "matmul": 300, "softmax": 15}
STATED = {"vector add": 100e6, "matmul": 500e6, "softmax": 30e6}  # a second


def main():
    print(machine())
    good = True
    for title, make, args_of, numpy_way, work, rate, rtol in CASES:
        exe = tirx.compile(make(), target="cpu")
        args, ref = args_of(), args_of()
        numpy_way(*ref)
        exe(*args)
        np.testing.assert_allclose(args[-1].astype("float64"), ref[-1].astype("float64"), rtol=rtol, atol=rtol)
        times = contest({"NumPy": lambda: numpy_way(*ref), "checks on": lambda: exe(*args)}, repeat=5)  # noqa: B023
        reach = {"checks on": next(v for k, v in REACH.items() if title.startswith(k))}
        good &= table(f"{title}: CPU seconds, one thread", times, baseline="NumPy", work=work, rate=rate, reach=reach)
        times = contest(
            {"checks on": lambda: exe(*args), "checks off, all cores": lambda: exe(*args, check=False)},  # noqa: B023
            repeat=5,
            clock=wall,
        )
        table(f"{title}: wall seconds, {os.cpu_count()} cores", times, baseline="checks on", work=work, rate=rate)
        want = 4 * next(v for k, v in STATED.items() if title.startswith(k))
        got = work / times["checks off, all cores"]
        good &= got >= want
        unit = RATE[rate]
        print(f"\nchecks off: {got * unit:,.0f} {rate}, to reach {want * unit:,.0f}{'' if got >= want else ' MISSED'}")
    return good


if __name__ == "__main__":
    # NumPy's own threads would make CPU seconds and one thread two different things
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, *sys.argv])
    main()
