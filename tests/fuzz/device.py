# SPDX-License-Identifier: Apache-2.0
"""Random kernels on a GPU against the reference, many in one module, in several processes.

    python -m fuzz.device 0 2000              kernels whose threads meet, seeds 0 .. 1999; in tests/
    python -m fuzz.device --plain 0 2000      those of programs.py
    TIRX_FUZZ_PROCESSES=16 TIRX_FUZZ_MODULE=100

Bit for bit, but for the bits of a NaN, and functions with an error bound, which are not compared. What has no defined
value (a division by zero, a shift count outside the width) is left out.
"""

from __future__ import annotations

import collections
import os
import sys
import time
import warnings

import tirx

from . import driver, reference
from . import scalars as S

PROCESSES = int(os.environ.get("TIRX_FUZZ_PROCESSES", "1"))
MODULE = int(os.environ.get("TIRX_FUZZ_MODULE", "100"))
TARGET = os.environ.get("TIRX_FUZZ_TARGET", "cuda:sm_90a")


def wanted(seed: int, sync: bool):
    """(program, function, results), or the word why not."""
    p = driver.program(seed, sync)
    name = f"k{seed}"
    try:
        f = tirx.from_source(p.text.replace("def k(", f"def {name}("))
    except tirx.DiagnosticError:
        return "refused"
    try:
        want = reference.run(p.text, p.args)
    except (S.Unsure, S.Refused):
        return "unsure"
    return "a fault" if S.faults else (p, f, want)


def module(job) -> tuple[collections.Counter, list]:
    """Seeds of one module."""
    seeds, sync, device = job
    kinds, failures, kernels = collections.Counter(), [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            made = wanted(seed, sync)
            if isinstance(made, str):
                kinds[made] += 1
            else:
                kernels[seed] = made
        try:
            exe = tirx.compile(
                tirx.IRModule({f"k{s}": f for s, (_, f, _) in kernels.items()}), target=TARGET, contract=False
            )
        except Exception as e:
            return kinds, [(list(seeds), "does not compile", f"{type(e).__name__}: {e}"[:3000])]
        if not device:
            kinds["compiled"] += len(kernels)
            return kinds, failures
        for seed, (p, _, want) in kernels.items():
            arrays, call = driver.fresh(p.args, p.text)
            there = {k: tirx.runtime.tensor(a, tirx.cuda(0)) for k, a in arrays.items()}
            names = [n for n, _ in driver.parameters(p.text)]
            try:
                exe[f"k{seed}"](*(there.get(n, x) for n, x in zip(names, call, strict=True)))
                back = {k: t.numpy().view(arrays[k].dtype).reshape(arrays[k].shape) for k, t in there.items()}
            except Exception as e:
                failures.append((seed, "crash", f"{type(e).__name__}: {e}"[:2000]))
                kinds["not run after a crash"] += 1
                break  # the context is lost
            wrong = driver.compare(p.text, back, {k: b for k, b in want.items() if k not in p.near}, ())
            kinds["differs" if wrong else "same"] += 1
            if wrong:
                failures.append((seed, "differs", wrong))
    return kinds, failures


def main() -> int:
    first, n = (int(a) for a in sys.argv[1:] if a.lstrip("-").isdigit())
    sync, device = "--plain" not in sys.argv, "--compile" not in sys.argv
    per = max(1, min(MODULE, -(-n // PROCESSES)))
    jobs = [(range(k, min(k + per, first + n)), sync, device) for k in range(first, first + n, per)]
    start, kinds, failures = time.monotonic(), collections.Counter(), []
    if PROCESSES > 1:
        import multiprocessing

        with multiprocessing.get_context("spawn").Pool(PROCESSES, maxtasksperchild=1) as pool:
            for k, f in pool.imap_unordered(module, jobs):
                kinds += k
                failures += f
                print(f"{time.monotonic() - start:6.1f} s: {dict(kinds)}, {len(failures)} failures", flush=True)
    else:
        for job in jobs:
            k, f = module(job)
            kinds += k
            failures += f
    print(f"{sum(kinds.values())} kernels, {len(jobs)} modules, in {time.monotonic() - start:.0f} s: {dict(kinds)}")
    for f in failures[:20]:
        print(*f)
    print("failing seeds:", [f[0] for f in failures])
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
