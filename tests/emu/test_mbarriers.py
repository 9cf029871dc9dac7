# SPDX-License-Identifier: Apache-2.0
"""mbarriers in the emulator: sequences that an H200 answered, pipelines between warps, order, dead locks."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

HW = Path(__file__).resolve().parents[1] / "cases" / "hw"
_spec = importlib.util.spec_from_file_location("hw_load_mbarrier", HW / "load.py")
load = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(load)
SCRIPTS = {s["script"]: s["steps"] for s in load.plain("mbarrier")}

# The step at which the hardware traps; ours reports there, or at init where that is the fault.
TRAPS = {
    4: "expect_tx(1)",
    5: "complete_tx(1)",
    8: "arrive(3)",
    21: "expect_tx(0x100000)",
    22: "complete_tx(1)",
    23: "complete_tx(0x100000)",
    25: "arrive(3)",
    27: "arrive_drop(3)",
    30: "init(0)",
    31: "init(0x100000)",
    35: "arrive(1)",
}
# What the hardware takes without complaint, ours reports: impossible counts at init, an arrival after inval, an arrival
# with .noComplete that completes the phase.
REFUSED = {11: "1..1048575", 32: "1..1048575", 33: "nobody has initialised it", 28: "noComplete"}


def step_text(step, n, arrivals):
    op, arg = step["op"], step.get("arg", 0)
    bar = "bar.ptr_to([0])"
    if op in ("init", "inval"):
        return f"T.ptx.mbarrier.{op}.shared.b64({bar}" + (f", T.uint32({arg}))" if op == "init" else ")")
    if op in ("expect_tx", "complete_tx"):
        return f"T.ptx.mbarrier.{op}.relaxed.cta.shared.b64({bar}, T.uint32({arg}))"
    if op.startswith("arrive"):
        return f'T.ptx["mbarrier.{op}.shared.b64"](states[{arrivals}], {bar}, T.uint32({arg}))'
    if op == "pending_count":
        state = f"T.cast(states[{step['of'] - 1}], 'uint64')"
        return f"T.ptx.mbarrier.pending_count.b64(count[0], {state})\nOUT[{n}] = T.cast(count[0], 'int64')"
    kind = "try_wait" if op.startswith("try") else "test_wait"
    if op.endswith("state"):
        call = f'T.ptx["mbarrier.{kind}.shared.b64"](done[0], {bar}, states[{step["of"] - 1}])'
    else:
        call = f'T.ptx["mbarrier.{kind}.parity.shared.b64"](done[0], {bar}, T.uint32({op[-1]}))'
    return f"{call}\nOUT[{n}] = T.cast(done[0], 'int64')"


def script_kernel(steps):
    lines, arrivals, live = [], 0, False
    for n, step in enumerate(steps):
        if step["op"] == "init" and live:
            lines.append("T.ptx.mbarrier.inval.shared.b64(bar.ptr_to([0]))")
        live = step["op"] != "inval" and (live or step["op"] == "init")
        lines += step_text(step, n, arrivals).split("\n")
        if step["op"].startswith("arrive"):
            lines.append(f"OUT[{n}] = T.cast(states[{arrivals}] >> T.int64(32), 'int64') & T.int64(0xFFFFFFFF)")
            arrivals += 1
    body = "\n".join("        " + line for line in lines)
    return f"""
from tirx.script import tirx as T

@T.prim_func
def k(OUT: T.Buffer(({len(steps)},), "int64")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    states = T.alloc_local(({max(arrivals, 1)},), "int64")
    done = T.alloc_local((1,), "bool")
    count = T.alloc_local((1,), "uint32")
    if tx == 0:
{body}
"""


def run_script(steps):
    out = np.full(len(steps), -1, "int64")
    tirx.compile(tirx.from_source(script_kernel(steps)), target="cpu")(out)
    return out


@pytest.mark.parametrize("number", sorted(set(SCRIPTS) - set(TRAPS) - set(REFUSED)))
def test_recorded_sequences(number):
    steps = SCRIPTS[number]
    assert steps[-1]["op"] != "trap"
    got = run_script(steps)
    for n, step in enumerate(steps):
        if "state_hi" in step:
            assert got[n] == int(step["state_hi"], 16), (n, step)
        elif "result" in step:
            assert got[n] == step["result"], (n, step)


@pytest.mark.parametrize("number", sorted(TRAPS))
def test_what_traps_on_the_hardware_is_reported(number):
    assert number in SCRIPTS
    op, arg = TRAPS[number].rstrip(")").split("(")
    steps = [s for s in SCRIPTS[number] if s["op"] != "trap"]
    if op != "init":
        run_script(steps)
        steps = [*steps, {"op": op, "arg": int(arg, 0)}]
    with pytest.raises(tirx.EmulationError) as e:
        run_script(steps)
    assert e.value.kind == "mbarrier" and e.value.buffer == "bar"


@pytest.mark.parametrize("number", sorted(REFUSED))
def test_what_the_hardware_lets_pass_and_ours_does_not(number):
    with pytest.raises(tirx.EmulationError) as e:
        run_script(SCRIPTS[number])
    assert e.value.kind == "mbarrier" and REFUSED[number] in str(e.value)


def test_word_after_inval():
    """The word of init 1, as an H200 leaves it; after one arrival of three and 32 bytes announced."""

    @T.prim_func
    def k(OUT: T.Buffer((2,), "uint64")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            T.ptx.mbarrier.inval.shared.b64(bar.ptr_to([0]))
            OUT[0] = bar[0]
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(3))
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(32))
            T.ptx.mbarrier.inval.shared.b64(bar.ptr_to([0]))
            OUT[1] = bar[0]

    out = np.zeros(2, "uint64")
    tirx.compile(k, target="cpu")(out)
    assert out[0] == 0x7FFFF800001FFFFE
    pending, tx, expected = (-2) % 2**20, (-32) % 2**21, (-3) % 2**20
    assert out[1] == pending << 43 | tx << 21 | expected << 1


SCHEDULES = ["late", "early", 0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("check", [True, False])
def test_ring_of_three_stages(schedule, check):
    """Eleven tiles through three stages, filled by one warp with plain stores and emptied by another."""

    @T.prim_func
    def k(A: T.Buffer((3, 11, 32), "int32"), B: T.Buffer((3, 11, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([3])
        tx = T.thread_id([64])
        sm = T.alloc_shared((3, 32), "int32")
        full = T.alloc_shared((3,), "uint64")
        empty = T.alloc_shared((3,), "uint64")
        if tx == 0:
            for s in range(3):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(32))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(1))
        T.cuda.cta_sync()
        if tx < 32:
            for i in range(11):
                T.cuda.mbarrier_wait(empty.ptr_to([i % 3]), (i // 3 + 1) % 2)
                sm[i % 3, tx] = A[bx, i, tx] * 2
                T.ptx.mbarrier.arrive.shared.b64(full.ptr_to([i % 3]))
        else:
            for i in range(11):
                T.cuda.mbarrier_wait(full.ptr_to([i % 3]), i // 3 % 2)
                B[bx, i, tx - 32] = sm[i % 3, 63 - tx]
                T.cuda.warp_sync()
                if tx == 32:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 3]))

    a = np.arange(3 * 11 * 32, dtype="int32").reshape(3, 11, 32)
    b = np.zeros_like(a)
    tirx.compile(k, target="cpu")(a, b, schedule=schedule, check=check)
    np.testing.assert_array_equal(b, a[..., ::-1] * 2)


@pytest.mark.parametrize("form", ["parity", "state"])
def test_a_hand_written_wait_loop(form):
    """try_wait in a loop, by parity and by the state that arrive gave."""

    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        bar = T.alloc_shared((1,), "uint64")
        state = T.alloc_local((1,), "int64")
        done = T.alloc_local((1,), "bool")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
        T.cuda.cta_sync()
        sm[tx] = A[tx]
        T.ptx.mbarrier.arrive.shared.b64(state[0], bar.ptr_to([0]))
        done[0] = T.bool(False)
        while not done[0]:
            if form == "parity":
                T.ptx["mbarrier.try_wait.parity.shared.b64"](done[0], bar.ptr_to([0]), T.uint32(0))
            else:
                T.ptx["mbarrier.try_wait.shared.b64"](done[0], bar.ptr_to([0]), state[0])
        B[tx] = sm[63 - tx]

    a = np.arange(64, dtype="int32")
    for schedule in SCHEDULES:
        b = np.zeros_like(a)
        tirx.compile(k, target="cpu")(a, b, schedule=schedule)
        np.testing.assert_array_equal(b, a[::-1])


def test_relaxed_arrivals_order_nothing():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32")
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(64))
        T.cuda.cta_sync()
        sm[tx] = A[tx]
        T.ptx["mbarrier.arrive.relaxed.cta.shared.b64"](bar.ptr_to([0]))
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        B[tx] = sm[63 - tx]

    a = np.arange(64, dtype="int32")
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(k, target="cpu")(a, np.zeros_like(a))
    assert e.value.kind == "race" and e.value.buffer == "sm" and len(e.value.lines) == 2


def test_a_dead_lock_says_what_is_missing():
    @T.prim_func
    def k():
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([1]), T.uint32(3))
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([1]), T.uint32(48))
        T.cuda.cta_sync()
        T.cuda.mbarrier_wait(bar.ptr_to([1]), 0)

    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(k, target="cpu")()
    assert str(e.value).split("\n")[0] == (
        "deadlock: no thread can go on: warp 0 waits at bar[1] for phase 0: 2 of 3 arrivals and 48 bytes are missing"
    )
    assert e.value.kind == "deadlock" and e.value.buffer == "bar"


def test_the_word_of_a_live_barrier_is_not_data():
    @T.prim_func
    def k(OUT: T.Buffer((1,), "uint64")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
            OUT[0] = bar[0]

    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(k, target="cpu")(np.zeros(1, "uint64"))
    assert e.value.kind == "mbarrier" and e.value.buffer == "bar"
    assert str(e.value).startswith("mbarrier: load of bar[0], which holds a live mbarrier")


@T.prim_func
def peeked(A: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([32])
    bar = T.alloc_shared((1,), "uint64")
    room = T.alloc_shared((32,), "int32")
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 32)
    T.cuda.cluster_sync()
    early: T.bool = T.cuda.mbarrier_peek(bar.ptr_to([0]), 0)
    T.cuda.cluster_sync()
    peer: T.uint32
    T.ptx.mapa.shared__cluster.u32(peer, T.cuda.cvta_generic_to_shared(room.ptr_to([tx])), T.cast(1 - rank, "uint32"))
    T.ptx.st.shared__cluster.u32(peer, T.cast(rank * 100 + tx, "uint32"))
    T.ptx.mapa.shared__cluster.u32(peer, T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), T.cast(1 - rank, "uint32"))
    T.ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(peer)
    T.cuda.mbarrier_wait_acquire_cluster(bar.ptr_to([0]), 0)
    late: T.bool = T.cuda.mbarrier_peek(bar.ptr_to([0]), 0)
    A[rank * 32 + tx] = room[31 - tx] + T.cast(early, "int32") * 1000 + T.cast(late, "int32") * 2000
    T.cuda.cluster_sync()


@pytest.mark.parametrize("schedule", ["late", "early", 5])
def test_peeking_and_waiting_for_the_cluster(schedule):
    a = np.zeros(64, "int32")
    tirx.compile(peeked, target="cpu")(a, schedule=schedule)
    np.testing.assert_array_equal(a, np.concatenate([131 - np.arange(32), 31 - np.arange(32)]) + 2000)


def test_peeking_is_assembled(nvrtc):
    exe = tirx.compile(peeked, target="cuda:sm_90a")
    assert exe.cubin[:4] == b"\x7fELF" and exe.source.count("mbarrier.test_wait.parity.shared.b64") == 1
