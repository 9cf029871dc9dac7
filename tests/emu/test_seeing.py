# SPDX-License-Identifier: Apache-2.0
"""exe.trace and exe.stats: counts against hand-computed ones, timelines that hang together, command line, misuse."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T


def tile(pad: int):
    @T.prim_func
    def f(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s = T.alloc_shared((32, 32 + pad), "float32")
        for r in range(32):
            s[r, tx] = A[r, tx]
        T.cuda.cta_sync()
        for r in range(32):
            B[r, tx] = s[tx, r]

    return f


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def row(stats, space, kind):
    (found,) = [r for r in stats.lines if r.get("space") == space and r.get("kind") == kind]
    return found


def counts(row):
    return tuple(row[k] for k in ("accesses", "bytes", "units", "least"))


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("pad, turns", [(0, 32), (1, 1), (2, 2), (4, 4), (16, 16)])
def test_rows_and_columns_of_a_tile(pad, turns, check):
    """A column of 32 floats with a pitch of 32 + pad words meets gcd(pitch, 32) words of a bank."""
    a, b = floats(32, 32), floats(32, 32)
    stats = tirx.compile(tile(pad), target="cpu").stats(a, b, check=check)
    assert (b == a.T).all()
    assert counts(row(stats, "shared", "store")) == (32, 4096, 32, 32)
    assert counts(row(stats, "shared", "load")) == (32, 4096, 32 * turns, 32)
    assert counts(row(stats, "global", "load")) == (32, 4096, 128, 128)
    assert stats.conflicts == 32 * (turns - 1)
    assert stats.bytes == {"shared": 8192, "global": 8192, "async": 0}
    assert stats.waits == 1


@pytest.mark.parametrize("dtype, size", [("uint8", 1), ("float16", 2), ("float32", 4), ("float64", 8)])
@pytest.mark.parametrize("stride", [1, 2, 8, 32])
def test_sectors_of_strided_loads(dtype, size, stride):
    @T.prim_func
    def f(A: T.Buffer((32 * stride,), dtype), B: T.Buffer((32,), dtype)):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        B[tx] = A[tx * stride]

    a, b = np.arange(32 * stride).astype(dtype), np.zeros(32, dtype)
    stats = tirx.compile(f, target="cpu").stats(a, b)
    touched = len({i * stride * size // 32 for i in range(32)})
    assert counts(row(stats, "global", "load")) == (1, 32 * size, touched, size)
    assert counts(row(stats, "global", "store")) == (1, 32 * size, size, size)
    assert (stats.sectors, stats.least_sectors) == (touched + size, 2 * size)


def test_all_lanes_at_one_word_are_one_turn():
    @T.prim_func
    def f(B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        s = T.alloc_shared((64,), "int32")
        s[tx] = tx
        T.cuda.cta_sync()
        B[tx] = s[tx // 32 * 7] + s[7]

    stats = tirx.compile(f, target="cpu").stats(np.zeros(64, np.int32))
    loads = [r for r in stats.lines if r.get("kind") == "load"]
    assert sum(r["accesses"] for r in loads) == 4
    assert sum(r["units"] for r in loads) == sum(r["least"] for r in loads) == 4
    assert stats.conflicts == 0


def test_a_vector_is_one_access():
    """16 bytes a lane: 128 words take at least 4 turns, and no more."""

    @T.prim_func
    def f(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s = T.alloc_shared((128,), "float32")
        for i in T.vectorized(4):
            s[tx * 4 + i] = A[tx * 4 + i]
        T.cuda.cta_sync()
        for i in T.vectorized(4):
            B[tx * 4 + i] = s[tx * 4 + i]

    stats = tirx.compile(f, target="cpu").stats(floats(128), floats(128))
    for space, least in ("shared", 4), ("global", 16):
        for kind in "load", "store":
            assert counts(row(stats, space, kind)) == (1, 512, least, least)


def two_warps():
    """The second warp waits for the first, which works longer."""

    @T.prim_func
    def f(A: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        s = T.alloc_shared((1,), "int32")
        if tx < 32:
            for i in range(100):
                if tx == 0:
                    s[0] = i
        T.cuda.cta_sync()
        if bx == 0:
            A[tx] = s[0]

    return f


def spans(events, cat):
    return [e for e in events if e["ph"] == "X" and e["cat"] == cat]


def check_timeline(events):
    """Spans of a track follow each other; each begin of a work has one end, not before it."""
    tracks, open_works = {}, {}
    for e in events:
        assert e["ph"] in "MXbe" and e["ts"] >= 0
        if e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] == "b":
            assert e["id"] not in open_works
            open_works[e["id"]] = e
        elif e["ph"] == "e":
            begin = open_works.pop(e["id"])
            assert (begin["name"], begin["pid"]) == (e["name"], e["pid"]) and begin["ts"] <= e["ts"]
    assert not open_works
    for track in tracks.values():
        track.sort()
        assert all(a[1] <= b[0] for a, b in zip(track, track[1:], strict=False))


def test_a_timeline_of_two_warps(tmp_path):
    a = np.zeros(64, np.int32)
    exe = tirx.compile(two_warps(), target="cpu")
    trace = exe.trace(a, file=tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == trace
    assert (a == 99).all()
    events = trace["traceEvents"]
    check_timeline(events)
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"f_kernel: CTA (0, 0, 0)", "f_kernel: CTA (1, 0, 0)"}
    for cta in 0, 1:
        (wait,) = [e for e in spans(events, "wait") if e["pid"] == cta]
        (barrier,) = [e for e in spans(events, "barrier") if e["pid"] == cta]
        assert wait["name"] == "waits at barrier 0" and barrier["name"] == "barrier 0: phase 0"
        assert (wait["ts"], wait["dur"]) == (barrier["ts"], barrier["dur"])
        assert wait["dur"] >= 100  # a step a turn of the loop at least
        line = open(__file__).read().splitlines()[wait["args"]["line"] - 1]
        assert line.strip() == "T.cuda.cta_sync()"
        ran = [e for e in spans(events, "run") if e["pid"] == cta]
        assert len(ran) == 3  # the first warp in one piece, the other before and after its wait
    steps = sum(e["dur"] for e in spans(events, "run"))
    assert steps == sum(n for launch in exe.stats(a).launches for _, n in launch["instructions"])


def pipeline():
    @T.prim_func
    def f(A: T.Buffer((256,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        s = T.alloc_shared((64,), "int32", align=16)
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        for i in range(4):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), 256)
                T.ptx.cp.async_.bulk.shared__cluster.global_.mbarrier__complete_tx__bytes(
                    s.ptr_to([0]), A.ptr_to([64 * i]), 256, bar.ptr_to([0])
                )
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            B[tx] = B[tx] + s[tx]
            T.cuda.cta_sync()

    return f


@pytest.mark.parametrize("schedule", ["late", "early", 5])
def test_copies_and_phases(schedule):
    a, b = np.arange(256, dtype=np.int32), np.zeros(64, np.int32)
    exe = tirx.compile(pipeline(), target="cpu")
    events = exe.trace(a, b, schedule=schedule)["traceEvents"]
    assert (b == a.reshape(4, 64).sum(0)).all()
    check_timeline(events)
    assert sum(e["ph"] == "b" for e in events) == 4
    phases = sorted(spans(events, "mbarrier"), key=lambda e: e["ts"])
    assert [e["name"] for e in phases] == [f"bar[0]: phase {i}" for i in range(4)]
    stats = exe.stats(a, b)
    (copies,) = [r for r in stats.lines if "transfers" in r]
    assert (copies["transfers"], copies["transfer_bytes"], stats.bytes["async"]) == (4, 1024, 1024)


def test_the_text_names_the_costly_lines_first():
    text = str(tirx.compile(tile(0), target="cpu").stats(floats(32, 32), floats(32, 32)))
    lines = text.splitlines()
    assert lines[0] == "f_kernel: grid 1x1x1, block 32x1x1"
    first = lines[lines.index("lines:") + 1]
    assert first.endswith("s  32 shared loads, 4,096 bytes, 1,024 turns of the banks (least 32)")
    assert "8,192  bytes of shared memory, 992 bank conflicts" in text


def test_a_limit_of_events():
    events = tirx.compile(two_warps(), target="cpu").trace(np.zeros(64, np.int32), limit=3)["traceEvents"]
    assert len(events) == 3


def test_misuse():
    exe = tirx.compile(two_warps(), target="cpu")
    a = np.zeros(64, np.int32)
    with pytest.raises(ValueError, match="trace: limit is a number of events from 1 on, got 0"):
        exe.trace(a, limit=0)
    with pytest.raises(TypeError, match="trace: file is a path or None, got int"):
        exe.trace(a, file=3)
    with pytest.raises(ValueError, match="schedule: expected an int"):
        exe.stats(a, schedule="later")
    with pytest.raises(TypeError, match="_watch"):
        exe._watch(1)
    with pytest.raises(TypeError):
        exe.stats()


def test_a_report_comes_through():
    @T.prim_func
    def f(A: T.Buffer((32,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        A[tx + 1] = tx

    exe = tirx.compile(f, target="cpu")
    for call in exe.trace, exe.stats:
        with pytest.raises(tirx.EmulationError) as e:
            call(np.zeros(32, np.int32))
        assert e.value.kind == "out_of_bounds"


KERNEL = """
import numpy as np
from tirx.script import tirx as T

@T.prim_func
def twice(A: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] * 2

def twice_args():
    return (np.arange(32, dtype=np.int32),)

def lone(): pass
"""


def command(*args, cwd):
    done = subprocess.run([sys.executable, "-m", "tirx", *args], capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def test_command_line(tmp_path):
    (tmp_path / "k.py").write_text(KERNEL)
    assert command("trace", "k.py:twice", "-o", "t.json", cwd=tmp_path) == (
        0,
        "3 events in t.json: open it in ui.perfetto.dev\n",
        "",
    )
    assert len(json.loads((tmp_path / "t.json").read_text())["traceEvents"]) == 3
    code, out, _ = command("stats", "k.py:twice", cwd=tmp_path)
    assert code == 0 and "256  bytes of global memory in 8 sectors of 32 bytes, at least 8" in out
    for what, wrong in {
        "k.py": "expected FILE:kernel, got 'k.py'",
        "no.py:f": "no.py: no such file",
        "k.py:g": "k.py has no 'g'",
        "k.py:lone": "k.py has no function lone_args(): it returns the tuple of arguments of lone",
    }.items():
        code, _, err = command("trace", what, cwd=tmp_path)
        assert code == 1 and err.startswith(wrong)
