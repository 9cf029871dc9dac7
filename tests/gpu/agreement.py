# SPDX-License-Identifier: Apache-2.0
"""Runs every form of the PTX table that can run alone on a Hopper GPU and on the emulator, and compares the results.

    python tests/gpu/agreement.py --out DIR [--processes 14] [--seeds 4] [--only PATTERN]

Results are compared bit for bit, approximate functions within their bounds. Writes DIR/agreement.npz, the answers of
the first seed that tests/emu/test_agreement.py reads (digests where results are exact, the results themselves where
they are approximate), and DIR/differences.npz with what both sides gave where they differ. Exits with 1 if any does.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import agreement_forms
import agreement_units

import tirx

DEAD = False  # a fault of the device ends the use of its context
warnings.simplefilter("ignore")  # of performance


def on_gpu(unit, batches):
    """The arguments after the run, for each batch; a kernel serves all seeds."""
    exe = tirx.compile(tirx.from_source(batches[0].source), target="cuda:sm_90a")
    device = tirx.cuda(0)
    out = []
    for b in batches:
        args = [tirx.runtime.tensor(a, device) for a in b.args]
        exe(*args, **b.options("cuda"))
        out.append([np.array(a.numpy()) for a in args])
    return out


def on_emulator(unit, batches):
    return [agreement_units.emulate(b) for b in batches]


def job(index: int, seeds: int, only: list[int] | None):
    """What came of a unit: form names, {form: message}, {form: both results}, {form: what is kept}."""
    global DEAD
    unit = agreement_units.every()[index]
    if only is not None:
        unit = agreement_forms.Unit(unit.name, [unit.forms[i] for i in only], unit.build)
    if DEAD:
        return "again", index, only
    names = [f.name for f in unit.forms]
    batches = [unit.batch(str(s)) for s in range(seeds)]
    try:
        gpu = on_gpu(unit, batches)
    except (tirx.CompileError, ValueError, RuntimeError) as e:
        if isinstance(e, tirx.CUDAError):
            DEAD = True
        if isinstance(e, tirx.CompileError) and len(unit.forms) > 1:
            return "split", index, only
        return "done", names, {n: f"on the GPU: {type(e).__name__} {str(e)[:600]}" for n in names}, {}, {}
    recorded = {
        f.name: agreement_units.record(f, r) for f, r in zip(unit.forms, batches[0].results(gpu[0]), strict=True)
    }
    try:
        cpu = on_emulator(unit, batches)
    except Exception as e:
        return "done", names, {n: f"on the emulator: {type(e).__name__} {str(e)[:600]}" for n in names}, {}, recorded
    faults, both = {}, {}
    for seed, (b, g, c) in enumerate(zip(batches, gpu, cpu, strict=True)):
        for f, want, got in zip(unit.forms, b.results(g), b.results(c), strict=True):
            text = agreement_units.compare(f, got, want)
            if text and f.name not in faults:
                faults[f.name] = f"seed {seed}: {text}"
                both[f.name] = (seed, got, want)
    return "done", names, faults, both, recorded


def until(pool, jobs, seconds: float):
    """Futures as they end; when time is over, what has not ended ends with its process."""
    try:
        yield from concurrent.futures.as_completed(jobs, timeout=max(seconds, 1))
    except TimeoutError:
        left = [f for f in jobs if not f.done()]
        for process in list(pool._processes.values()):
            process.kill()
        yield from left


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--only", default="", help="pattern of the names of kernels")
    parser.add_argument("--limit", type=float, default=300, help="seconds")
    options = parser.parse_args()
    start = time.time()
    units = agreement_units.every()
    todo = [(i, None) for i, u in enumerate(units) if re.search(options.only, u.name)]
    todo.sort(key=lambda t: not units[t[0]].name.startswith(("wgmma", "memory")))
    faults, both, recorded, count = {}, {}, {}, 0
    context = multiprocessing.get_context("spawn")
    for _ in range(12):
        again = []
        with concurrent.futures.ProcessPoolExecutor(options.processes, mp_context=context) as pool:
            jobs = {pool.submit(job, i, options.seeds, only): (i, only) for i, only in todo}
            for future in until(pool, jobs, options.limit - (time.time() - start)):
                i, only = jobs[future]
                try:
                    what, *rest = future.result()
                except Exception as e:  # the process has ended
                    faults[units[i].name] = f"{type(e).__name__} {str(e)[:300]}"
                    continue
                if what == "again":
                    again.append((i, only))
                elif what == "split":
                    of = only or list(range(len(units[i].forms)))
                    again += [(i, of[: len(of) // 2]), (i, of[len(of) // 2 :])]
                else:
                    names, f, d, r = rest
                    count += len(names)
                    faults.update(f)
                    both.update(d)
                    recorded.update(r)
        todo = again
        if not todo:
            break
    options.out.mkdir(parents=True, exist_ok=True)
    agreement_units.save(options.out / "agreement.npz", recorded)
    shown = {}
    size = 0
    for k, (name, (seed, got, want)) in enumerate(sorted(both.items())):
        for side, rows in (("cpu", got), ("gpu", want)):
            for j, row in enumerate(rows):
                row = row[:2] if row.ndim > 2 else row
                if size < 8 << 20:
                    shown[f"{k}.{side}.{j}"] = row
                    size += row.nbytes
    shown["names"] = np.array(json.dumps([[name, seed] for name, (seed, _, _) in sorted(both.items())]))
    np.savez_compressed(options.out / "differences.npz", **shown)
    for name, text in sorted(faults.items()):
        print(f"{name}: {text}"[:400])
    print(f"{count} forms, {len(faults)} differ, {options.seeds} seeds, {time.time() - start:.0f} s")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
