# SPDX-License-Identifier: Apache-2.0
"""tirx.lang: what its classes emit, that NVRTC takes it, and what it computes on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from script.kernels import body, kernel, run

import tirx
import tirx.lang
from tirx.script import tirx as T

NAMES = {name: getattr(tirx.lang, name) for name in tirx.lang.__all__}
BAR = 'bar_buf = T.decl_buffer((2,), "uint64", data=pool_arena.data, scope="shared.dyn", align=8)'


def lines(text: str, **names) -> list[str]:
    """What stands behind the arena, without the declaration of its size."""
    found = body(text, **NAMES, **names).split("\n")
    return [line for line in found if "pool_arena = " not in line and "dyn_smem" not in line]


def with_bar(kind: str, text: str, more: str = "") -> list[str]:
    found = lines(f"pool = T.SMEMPool()\nbar = {kind}(pool, 2{more})\npool.commit()\n{text}")
    assert found[0] == BAR
    return found[1:]


def test_pipeline_state():
    text = body("st = PipelineState(4, 0)\nst.advance()\nB[tx] = st.stage + st.phase", **NAMES)
    assert text == (
        "st_stage: T.int32 = 0\nst_phase: T.int32 = 0\nst_stage = st_stage + 1\nif st_stage == 4:\n"
        "    st_stage = 0\n    st_phase = st_phase ^ 1\nB[tx] = st_stage + st_phase"
    )
    text = body("st = PipelineState(1)\nst.init(s)\nst.advance()", **NAMES)
    assert text == "st_stage: T.int32\nst_phase: T.int32\nst_stage = 0\nst_phase = s\nst_phase = st_phase ^ 1"
    text = body("st = PipelineState(2, 1)\nst.stage = 1\nst.phase ^= 1", **NAMES)
    assert text.endswith("st_stage = 1\nst_phase = st_phase ^ 1")


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
@pytest.mark.parametrize("phase", [0, 1])
def test_a_pipeline_state_goes_round(depth, phase):
    f = kernel(
        f"st = PipelineState({depth}, {phase})\nfor i in range(16):\n    B[i] = st.stage\n    B[32 + i] = st.phase\n"
        "    st.advance()",
        **NAMES,
    )
    b = np.zeros(64, np.int32)
    tirx.compile(f, target="cpu")(np.zeros(64, np.float32), b, 0, check=False)  # all threads write the same
    turns = np.arange(16)
    np.testing.assert_array_equal(b[:16], turns % depth)
    np.testing.assert_array_equal(b[32:48], (phase + turns // depth) % 2)


def test_mbarrier():
    first = "T.address_of(bar_buf[0])"
    assert with_bar("MBarrier", "bar.init(64)") == [
        "if T.cuda.thread_rank() == 0:",
        f'    T.ptx["mbarrier.init.shared.b64"]({first}, T.uint32(64))',
        '    T.ptx["mbarrier.init.shared.b64"](T.address_of(bar_buf[1]), T.uint32(64))',
    ]
    assert with_bar("MBarrier", "bar.init(s)", ", leader=tx == 3")[0] == "if tx == 3:"
    assert with_bar("MBarrier", "bar.init(s)", ", leader=True")[0].startswith('T.ptx["mbarrier.init')
    assert with_bar("MBarrier", "bar.init(s)", ", leader=False") == []
    assert with_bar("MBarrier", "bar.wait(0, s)") == [f'T.cuda.mbarrier_wait({first}, T.Cast("uint32", s))']
    assert with_bar("MBarrier", "bar.wait(0, s)", ", phase_offset=1") == [
        f'T.cuda.mbarrier_wait({first}, T.Cast("uint32", s ^ 1))'
    ]
    arrive = 'T.ptx["mbarrier.arrive.shared.b64"]'
    assert with_bar("MBarrier", "bar.arrive(0)\nbar.arrive(0, count=2, pred=tx < 3)") == [
        f"{arrive}({first}, T.uint32(1))",
        f"{arrive}({first}, T.uint32(2), pred=tx < 3)",
    ]
    assert with_bar("MBarrier", "p: T.let = bar.ptr_to(s)") == [
        'p: T.let[T.handle("uint64", "shared.dyn")] = T.address_of(bar_buf[s])'
    ]


def test_mbarriers_of_other_ctas():
    assert with_bar("MBarrier", "bar.arrive(0, remote=1)") == [
        "v: T.uint32",
        'T.ptx["mapa.shared::cluster.u32"](v, T.cuda.cvta_generic_to_shared(T.address_of(bar_buf[0])), T.uint32(1))',
        'T.ptx["mbarrier.arrive.shared::cluster.b64"](v, T.uint32(1))',
    ]
    found = with_bar("TMABar", "r = bar.remote_view(s)\nr.arrive(0)\nr.arrive(1, 16)")
    assert found[:2] == [
        "r_address: T.uint64",
        'T.ptx["mapa.u64"](r_address, T.address_of(bar_buf[0]), T.Cast("uint32", s))',
    ]
    assert found[2].startswith('r_buf = T.decl_buffer((2,), "uint64", data=T.ptr_byte_offset(T.reinterpret("handle", ')
    assert found[3:] == [
        'T.ptx["mbarrier.arrive.shared::cluster.b64"](T.address_of(r_buf[0]), T.uint32(1))',
        'T.ptx["mbarrier.arrive.expect_tx.shared::cluster.b64"](T.address_of(r_buf[1]), T.uint32(16))',
    ]


def test_tmabar():
    assert with_bar("TMABar", "bar.arrive(0, 1024)\nbar.arrive(0, tx_count=s, pred=tx == 0)\nbar.arrive(1)") == [
        'T.ptx["mbarrier.arrive.expect_tx.shared.b64"](T.address_of(bar_buf[0]), T.uint32(1024))',
        'T.ptx["mbarrier.arrive.expect_tx.shared.b64"](T.address_of(bar_buf[0]), T.Cast("uint32", s), pred=tx == 0)',
        'T.ptx["mbarrier.arrive.shared.b64"](T.address_of(bar_buf[1]), T.uint32(1))',
    ]
    found = with_bar("TMABar", "bar.arrive(0, 16, remote=1)")
    assert found[-1] == 'T.ptx["mbarrier.arrive.expect_tx.shared::cluster.b64"](v, T.uint32(16))'


def test_tcgen05bar():
    one = 'T.ptx["tcgen05.commit.cta_group::{}.mbarrier::arrive::one.shared::cluster.b64"](T.address_of(bar_buf[0]))'
    many = one.replace(".b64", ".multicast::cluster.b64").replace("[0]))", "[0]), {})")
    calls = {
        "bar.arrive(0)": one.format(1),
        "bar.arrive(0, cta_group=2)": one.format(2),
        "bar.arrive(0, cta_mask=2)": one.format(1),
        "bar.arrive(0, cta_mask=0)": one.format(1),
        "bar.arrive(0, cta_mask=T.uint16(4))": one.format(1),
        "bar.arrive(0, cta_group=2, cta_mask=3)": many.format(2, "T.uint16(3)"),
        "bar.arrive(0, cta_mask=s)": many.format(1, 'T.Cast("uint16", s)'),
        "bar.arrive(0, pred=tx == 0)": one.format(1)[:-1] + ", pred=tx == 0)",
    }
    for text, want in calls.items():
        assert with_bar("TCGen05Bar", text) == [want], text


def test_pipeline():
    found = lines(
        "pool = T.SMEMPool()\n"
        "pipe = Pipeline(pool, 2, full='tma', empty='mbar', init_empty=128, empty_phase_offset=1)\n"
        "pool.commit()\npipe.full.arrive(0, 64)\npipe.empty.wait(1, 0)\nB[tx] = pipe.stages"
    )
    assert [line for line in found if "decl_buffer" in line] == [
        'pipe_full_buf = T.decl_buffer((2,), "uint64", data=pool_arena.data, scope="shared.dyn", align=8)',
        'pipe_empty_buf = T.decl_buffer((2,), "uint64", data=pool_arena.data, '
        'byte_offset=16, scope="shared.dyn", align=8)',
    ]
    assert [line.strip().rpartition(", ")[2] for line in found if "mbarrier.init" in line] == [
        "T.uint32(1))",
        "T.uint32(1))",
        "T.uint32(128))",
        "T.uint32(128))",
    ]
    assert found[-3:] == [
        'T.ptx["mbarrier.arrive.expect_tx.shared.b64"](T.address_of(pipe_full_buf[0]), T.uint32(64))',
        "T.cuda.mbarrier_wait(T.address_of(pipe_empty_buf[1]), T.uint32(1))",
        "B[tx] = 2",
    ]


def test_smem_descriptor():
    text = "a = T.alloc_shared((1024,), 'float16', align=1024)\nd = SmemDescriptor()\nd.init(a.data, {}, {}, {})\n{}"
    found = lines(text.format(1, 64, 3, "d.make_lo_uniform()"))
    low = "(T.cuda.cvta_generic_to_shared(a.data) & T.uint32(262143)) >> T.uint32(4)"
    constant = 1 << 16 | 64 << 32 | 1 << 46 | 2 << 61  # offsets, version, swizzle of 128 bytes
    assert found[1] == f'd_desc: T.uint64 = T.Cast("uint64", {low}) | T.uint64({constant})'
    assert found[2] == (
        "d_desc = d_desc & T.uint64(18446744069414584320) | "
        'T.Cast("uint64", T.tvm_warp_shuffle(T.uint32(4294967295), T.Cast("uint32", d_desc), 0, 32, 32))'
    )


def test_an_offset_moves_the_low_word_of_a_descriptor_only():
    f = kernel(
        "d = SmemDescriptor()\nd.desc = T.uint64(0x12345678FFFFFFFE)\nx: T.uint64 = d.add_16B_offset(s + tx)\n"
        "d.make_lo_uniform()\nB[tx] = T.Cast('int32', x)\nA[tx] = T.Cast('float32', (x >> 32) == (d.desc >> 32))",
        **NAMES,
    )
    a, b = run(f, s=1)
    np.testing.assert_array_equal(b, np.arange(64) - 1)
    assert (a == 1).all()


def test_query_cancel():
    text = "h = T.alloc_shared((2,), 'uint64', align=16)\nd: T.uint32\nquery_cancel_first_ctaid_x(d, h{})\nB[tx] = d"
    found = lines(text.format(""))
    assert found[4:] == [
        'T.ptx["ld.acquire.cta.shared.b128"](v, h.data)',
        'T.ptx["clusterlaunchcontrol.query_cancel.is_canceled.pred.b128"](v_1, v)',
        "d = T.uint32(4294967295)",
        'T.ptx["clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128"](d, v, pred=v_1, preserve_dst=True)',
        'T.ptx["fence.proxy.async.shared::cta"]()',
        'B[tx] = T.Cast("int32", d)',
    ]
    assert 'T.ptx["ld.shared.b128"](v, h.data)' in lines(text.format(".data, use_ld_acquire=False"))


def test_roles():
    text = "w = T.warp_id([2])\nwith WarpRole(w, 0, regs=240, increase=True):\n    B[tx] = 2\n"
    assert body(text + "with WarpgroupRole(w, 1, 40):\n    B[tx] = 1", **NAMES) == (
        'w = T.warp_id([2])\nif w == 0:\n    T.ptx["setmaxnreg.inc.sync.aligned.u32"](240)\n    B[tx] = 2\n'
        'if w == 1:\n    T.ptx["setmaxnreg.dec.sync.aligned.u32"](40)\n    B[tx] = 1'
    )


RING = """
pool = T.SMEMPool()
slots = pool.alloc((2, 32), "int32")
pipe = Pipeline(pool, 2, full="mbar", empty="mbar", init_full=32, init_empty=32, empty_phase_offset=1)
pool.commit()
T.ptx.fence.mbarrier_init.release.cluster()
T.cuda.cta_sync()
w = T.warp_id([2])
lane = T.lane_id([32])
st = PipelineState(2, 0)
total: T.int32 = 0
for i in range(7):
    if w == 0:
        pipe.empty.wait(st.stage, st.phase)
        slots[st.stage, lane] = i * 100 + lane
        pipe.full.arrive(st.stage)
    else:
        {}
        total += slots[st.stage, 31 - lane]
        pipe.empty.arrive(st.stage)
    st.advance()
if w == 1:
    B[lane] = total
"""


def test_a_ring_of_slots_on_the_emulator_and_its_broken_twin():
    f = kernel(RING.format("pipe.full.wait(st.stage, st.phase)"), **NAMES)
    for schedule in (None, 1, 2, 3):
        _, b = run(f, schedule=schedule)
        np.testing.assert_array_equal(b[:32], 2100 + 7 * (31 - np.arange(32)))
    broken = kernel(RING.format("pass"), **NAMES)
    with pytest.raises(tirx.EmulationError) as info:
        run(broken)
    assert info.value.kind in ("race", "uninitialised")


HOPPER = """
pool = T.SMEMPool()
slots = pool.alloc((64,), "float16", align=1024)
bar = TMABar(pool, 2)
pipe = Pipeline(pool, 2, full="tma", empty="mbar", init_empty=64, empty_phase_offset=1)
pool.commit()
bar.init(1)
st = PipelineState(2, 0)
for i in range(s):
    bar.arrive(st.stage, 16, pred=tx == 0)
    pipe.full.wait(st.stage, st.phase)
    pipe.empty.arrive(st.stage)
    st.advance()
bar.arrive(0, 16, remote=1)
other = bar.remote_view(s)
other.arrive(1, pred=tx == 0)
d = SmemDescriptor()
d.init(slots.data, 1, 2, 0)
d.make_lo_uniform()
B[tx] = T.Cast("int32", d.add_16B_offset(s))
"""
BLACKWELL = """
pool = T.SMEMPool()
response = pool.alloc((2,), "uint64", align=16)
bar = TCGen05Bar(pool, 2)
pool.commit()
bar.init(1)
bar.arrive(0)
bar.arrive(1, cta_mask=3)
bar.arrive(1, cta_mask=s, pred=tx == 0)
first: T.uint32
query_cancel_first_ctaid_x(first, response)
B[tx] = first
"""


@pytest.mark.parametrize("arch, text", [("sm_90a", HOPPER), ("sm_100a", HOPPER), ("sm_100a", BLACKWELL)])
def test_nvrtc_takes_it(arch, text, nvrtc):
    assert tirx.compile(kernel(text, **NAMES), target=f"cuda:{arch}").cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "text, message",
    [
        ("PipelineState(0)", "PipelineState: depth must be a positive constant, got 0"),
        ("PipelineState(s)", "PipelineState: depth must be a positive constant, got s"),
        ("Pipeline(pool, 2, full='tma', empty='cp')", "Pipeline: empty must be one of tma, tcgen05, mbar, got 'cp'"),
        ("bar.remote_view(1).init(1)", "MBarrier.init: not on a view of another CTA's barriers"),
        ("bar.remote_view(1).wait(0, 0)", "MBarrier.wait: not on a view of another CTA's barriers"),
        ("bar.remote_view(1).remote_view(0)", "MBarrier.remote_view: not on a view of another CTA's barriers"),
        ("bar.remote_view(1).arrive(0, remote=1)", "MBarrier.arrive(remote=...): not on a view of another CTA's"),
        ("TMABar(pool, 1).arrive(0, 16, count=2)", "TMABar.arrive: an arrival that expects bytes counts as one"),
        ("TCGen05Bar(pool, 1).arrive(0, cta_group=3)", "TCGen05Bar.arrive: cta_group must be 1 or 2, got 3"),
        ("SmemDescriptor().init(A.data, 1, 1, 5)", "swizzle must be"),
        ("bar.wait(2, 0)", "index 2 is outside 0..1 in dimension 0 of buffer bar_buf"),
    ],
)
def test_misuse(text, message):
    source = f"pool = T.SMEMPool()\nbar = MBarrier(pool, 2)\nx = {text}"
    with pytest.raises(tirx.DiagnosticValueError) as info:
        kernel(source, **NAMES)
    assert message in str(info.value)
    assert text in str(info.value), "the message does not show the line"


def test_misuse_of_the_destination():
    with pytest.raises(tirx.DiagnosticTypeError, match="writes into a variable: dst: T.uint32"):
        kernel("query_cancel_first_ctaid_x(tx, A)", **NAMES)


def test_outside_a_kernel():
    with pytest.raises(RuntimeError, match="can only be used inside a kernel"):
        NAMES["PipelineState"](2)
    with pytest.raises(RuntimeError, match="can only be used inside a kernel"):
        T.SMEMPool()
