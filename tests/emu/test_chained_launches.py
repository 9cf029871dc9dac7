# SPDX-License-Identifier: Apache-2.0
"""Several device regions of one function, of which the later may begin before the earlier has ended (programmatic
dependent launch): results, and what the emulator says where griddepcontrol.wait is missing."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

N, BLOCKS, THREADS = 4096, 8, 64
LATER = "T.cuda.LaunchConfig(grid=1, block=64, programmatic_stream_serialization=True)"


def chained(first: str, *later: str, launch: str = LATER) -> tirx.PrimFunc:
    """A function of regions with these bodies."""

    def region(launch: str, body: str) -> str:
        text = "\n".join("        " + line for line in body.strip("\n").split("\n"))
        ids = 'bx, t = T.cuda.block_idx("x"), T.cuda.thread_idx("x")'
        return f"    with T.device_entry(launch={launch}):\n        {ids}\n{text}\n"

    parts = region("T.cuda.LaunchConfig(grid=8, block=64)", first)
    parts += "".join(region(launch, body) for body in later)
    return tirx.from_source(
        '@T.prim_func\ndef k(A: T.Buffer((4096,), "float32"), P: T.Buffer((512,), "float32"), '
        f'S: T.Buffer((64,), "float32"), N: T.Buffer((4,), "int32")):\n{parts}'
    )


FIRST = """
mine: T.float32 = 0.0
for i in range(8):
    mine += A[(bx * 8 + i) * 64 + t]
P[bx * 64 + t] = mine
T.ptx.griddepcontrol.launch_dependents()
"""
SECOND = """
sum: T.float32 = 0.0
{before}
for i in range(8):
    sum += P[i * 64 + t]
S[t] = sum
"""


def call(f, **options):
    rng = np.random.default_rng(7)
    a, p, s, n = (
        rng.integers(-50, 50, N).astype("float32"),
        *(np.zeros(k, "float32") for k in (512, 64)),
        np.zeros(4, "int32"),
    )
    tirx.compile(f, target="cpu")(a, p, s, n, **options)
    return a, p, s, n


def said(f, **options) -> tirx.EmulationError:
    with pytest.raises(tirx.EmulationError) as e:
        call(f, **options)
    assert e.value.kind == "race"
    return e.value


WAIT = "T.ptx.griddepcontrol.wait()"


@pytest.mark.parametrize("schedule", ["late", "early", 3])
@pytest.mark.parametrize(
    "before",
    [
        WAIT,
        f"if t == 5:\n    {WAIT}\nT.cuda.cta_sync()",
        f"if t >= 32:\n    {WAIT}\n    T.ptx.bar.arrive(1, 64)\nelse:\n    T.ptx.bar.sync(1, 64)",
    ],
)
def test_behind_the_wait_all_is_there(before, schedule):
    a, _, s, _ = call(chained(FIRST, SECOND.format(before=before)), schedule=schedule)
    np.testing.assert_array_equal(s, a.reshape(64, 64).sum(0))


def test_without_the_wait():
    f = chained(FIRST, SECOND.format(before="pass"))
    e = said(f)
    assert str(e).startswith(
        "race: load of P[0] before griddepcontrol.wait races with a store by k_kernel, which may still run"
    )
    assert (e.buffer, len(e.lines)) == ("P", 1)
    call(f, check=False)
    call(chained(FIRST, SECOND.format(before="pass"), launch="T.cuda.LaunchConfig(grid=1, block=64)"))


def test_a_wait_is_for_those_who_meet_the_waiter():
    assert "load of P" in str(said(chained(FIRST, SECOND.format(before=f"if t == 5:\n    {WAIT}"))))
    # the warp that waited is not waited for
    lost = f"if t >= 32:\n    {WAIT}\n    T.ptx.bar.sync(1, 32)\nelse:\n    T.ptx.bar.sync(2, 32)"
    assert "load of P[0]" in str(said(chained(FIRST, SECOND.format(before=lost))))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("A[t] = 1.0", "store of A[0] before griddepcontrol.wait races with a load by k_kernel"),
        ("P[t] = 1.0", "store of P[0] before griddepcontrol.wait races with a store by k_kernel"),
        ("T.cuda.atomic_add(P.ptr_to([t]), T.float32(1))", "atomic of P"),
        ("x: T.float32\nT.ptx.ld.global_.f32(x, P.ptr_to([t + 3]))\nS[t] = x", "load of P"),
    ],
)
def test_every_access_counts(body, text):
    assert text in str(said(chained(FIRST, body)))
    call(chained(FIRST, WAIT + "\n" + body))
    call(chained(FIRST, body + "\n" + WAIT, launch="T.cuda.LaunchConfig(grid=1, block=64)"))


COPIES = {
    "cp.async": (
        "room = T.alloc_shared((64,), 'float32')\n{before}\n"
        "T.ptx.cp['async'].ca.shared.global_(room.ptr_to([t]), P.ptr_to([t]), 4)\n"
        "T.ptx.cp['async'].wait_all()\nS[t] = room[t]"
    ),
    "bulk load": (
        "room = T.alloc_shared((64,), 'float32', align=16)\nbar = T.alloc_shared((1,), 'uint64')\n"
        "if t == 0:\n    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)\n    T.ptx.fence.mbarrier_init()\n"
        "T.cuda.cta_sync()\n{before}\n"
        "if t == 0:\n    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), 256)\n"
        "    T.ptx['cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes'](\n"
        "        room.ptr_to([0]), P.ptr_to([0]), 256, bar.ptr_to([0]))\n"
        "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)\nS[t] = room[t]"
    ),
    "bulk store": (
        "room = T.alloc_shared((64,), 'float32', align=16)\nroom[t] = 2.0\n"
        "T.ptx.fence.proxy['async']['shared::cta']()\nT.cuda.cta_sync()\n{before}\n"
        "if t == 0:\n"
        "    T.ptx.cp['async'].bulk['global']['shared::cta'].bulk_group(A.ptr_to([0]), room.ptr_to([0]), 256)\n"
        "    T.ptx.cp['async'].bulk.commit_group()\n    T.ptx.cp['async'].bulk.wait_group(0)\nS[t] = room[t]"
    ),
}


@pytest.mark.parametrize("copy", COPIES)
def test_engines_count_too(copy):
    assert "before griddepcontrol.wait" in str(said(chained(FIRST, COPIES[copy].format(before="pass"))))
    a, p, s, _ = call(chained(FIRST, COPIES[copy].format(before=WAIT)))
    np.testing.assert_array_equal(s, np.full(64, 2.0) if copy == "bulk store" else p[:64])


def test_what_the_earlier_kernel_does_not_touch_is_free():
    first = "if bx == 0 and t < 16:\n    S[t * 2] = A[t]"  # every other one
    a, p, s, _ = call(chained(first, f"if t < 16:\n    S[t * 2 + 1] = A[t]\n{WAIT}\nT.cuda.cta_sync()\nP[t] = S[t]"))
    np.testing.assert_array_equal(s[:32], np.repeat(a[:16], 2))
    np.testing.assert_array_equal(p[:64], s)


def test_both_may_count():
    count = "T.cuda.atomic_add(N.ptr_to([0]), T.int32(1))"
    assert call(chained(count, count))[3][0] == 8 * 64 + 64
    assert "load of N[0]" in str(said(chained(count, "S[t] = T.cast(N[0], 'float32')")))


def test_a_protocol_of_their_own_is_believed():
    publish = (
        "P[bx * 64 + t] = A[t]\nT.cuda.thread_fence()\n"
        "if t == 0:\n    T.ptx.red.release.gpu.global_.add.u32(N.ptr_to([0]), T.uint32(1))"
    )
    take = "seen: T.int32 = 0\nwhile seen < 8:\n    T.ptx.ld.acquire.gpu.global_.s32(seen, N.ptr_to([0]))\nS[t] = P[t]"
    a, _, s, _ = call(chained(publish, take))
    np.testing.assert_array_equal(s, a[:64])


def test_the_third_one_waits_for_the_second_only():
    second, third = "if t < 4:\n    N[t] = 1", f"{WAIT}\nS[t] = P[t]"
    e = said(chained(FIRST, second, third))
    assert (
        "load of P[0] races with a store by k_kernel: a wait is only for the launch before this one, k_kernel_1, which"
        in str(e)
    )
    a, p, s, _ = call(chained(FIRST, WAIT + "\n" + second, third))
    np.testing.assert_array_equal(s, p[:64])
    call(chained(FIRST, second, third.replace("P[t]", "T.cast(N[t % 4], 'float32')")))


def test_clusters_meet():
    launch = "T.cuda.LaunchConfig(grid=2, block=64, cluster=2, programmatic_stream_serialization=True)"
    meet = f"if bx == 1:\n    {WAIT}\nT.cuda.cluster_sync()\nif bx == 0:\n    S[t] = P[t]"
    _, p, s, _ = call(chained(FIRST, meet, launch=launch))
    np.testing.assert_array_equal(s, p[:64])
    assert "load of P" in str(said(chained(FIRST, meet.replace("T.cuda.cluster_sync()", "pass"), launch=launch)))


@T.prim_func
def steps(A: T.Buffer((64,), "int32"), times: T.int32, hasty: T.int32):
    for k in range(times):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64, programmatic_stream_serialization=True)):
            t = T.cuda.thread_idx("x")
            if hasty == 0:
                T.ptx.griddepcontrol.wait()
            A[t] = A[t] * 2 + k


def test_launches_of_a_loop():
    exe = tirx.compile(steps, target="cpu")
    a = np.arange(64, dtype="int32")
    exe(a, 4, 0)
    np.testing.assert_array_equal(a, ((np.arange(64) * 2 * 2 + 1) * 2 + 2) * 2 + 3)
    exe(a, 1, 1)  # what ran before the call has ended
    with pytest.raises(tirx.EmulationError, match=r"load of A\[0\] before griddepcontrol.wait"):
        exe(a, 2, 1)


def test_the_text_and_the_launches(golden):
    f = chained(FIRST, SECOND.format(before=WAIT))
    exe = tirx.compile(f, target="cuda:sm_90a")
    golden("cuda/chained.cu", exe.source)
    first, second = exe.source.split("__global__")[1:]
    assert "griddepcontrol_launch_dependents" in first and "griddepcontrol_wait" in second
    assert "griddepcontrol_wait" not in first and "griddepcontrol_launch" not in second
    # what a kernel reads that others may still write is not taken for constant
    assert "float* P_ptr, float* __restrict__ S_ptr" in second
    assert "ld.global.nc" not in exe.ptx.split(".entry k_kernel_1(")[1]
    assert f.script().count("programmatic_stream_serialization=True") == 1
