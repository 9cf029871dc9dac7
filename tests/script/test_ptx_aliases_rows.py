# SPDX-License-Identifier: Apache-2.0
"""The function style of T.ptx: each name makes the same IR as the dialect's spelling, and NVRTC takes all of them."""

from __future__ import annotations

import pytest

import tirx
from tirx.errors import DiagnosticError

HEAD = """from tirx.script import tirx as T
@T.prim_func
def k(G: T.Buffer((4096,), "float32"), U: T.Buffer((4096,), "uint32"), m: T.TensorMap()):
    T.device_entry()
    bx = T.cta_id([2])
    rank = T.cta_id_in_cluster([2])
    tx = T.thread_id([128])
    bar = T.alloc_shared((1,), "uint64")
    S = T.alloc_shared((1024,), "float32", align=1024)
    R = T.alloc_local((128,), "uint32")
    F = T.alloc_local((64,), "float32")
    d: T.uint64 = T.cuda.wgmma.matrix_descriptor(S, 1, 64, 3)
    e: T.uint64 = T.cuda.wgmma.advance(d, 4096)
    t: T.uint32 = 0
    x: T.float32 = 0.0
    D: T.float64 = 0.0
"""
TMA = "cp.async.bulk.tensor.2d"
BYTES = "mbarrier::complete_tx::bytes"
R4 = "R[0], R[1], R[2], R[3]"
P4 = "T.address_of(R[0]), T.address_of(R[1]), T.address_of(R[2]), T.address_of(R[3])"
ZEROS = ", ".join(["T.uint32(0)"] * 4)
WG = "M=64, N=64, K=16, in_dtype='bfloat16', out_dtype='float32'"
SCALED = "d_dtype='float32', sfb_dtype='float8_e8m0fnu', use_a_tmem=False, cta_group=1"

HOPPER = {
    # mbarriers and registers
    "t = T.ptx.mbarrier.try_wait_once(bar, 0, 100)": [
        "y: T.uint32",
        'T.ptx["mbarrier.try_wait.parity.shared.b64"](y, bar, T.uint32(0), T.uint32(100))',
        "t = y",
    ],
    "t = T.ptx.mbarrier_test_wait_parity(bar, 1, 'acquire', 'cta', 'shared::cta')": [
        "y: T.uint32",
        'T.ptx["mbarrier.test_wait.parity.acquire.cta.shared::cta.b64"](y, bar, T.uint32(1))',
        "t = y",
    ],
    "U[tx] = T.cast(T.ptx.fetch_register(32, 'tid.x'), 'uint32')": ["U[tx] = T.cast(T.cuda.thread_idx('x'), 'uint32')"],
    # tensor copies
    "T.ptx.cp_async.bulk.tensor.g2c(2, S.data, bar, m, 0, 1, '', 0, 64)": [
        f'T.ptx["{TMA}.shared::cluster.global.{BYTES}"](S.data, T.address_of(m), 0, 64, bar)'
    ],
    "T.ptx.cp_async.bulk.tensor.g2c(2, S.data, bar, m, 3, 1, 'evict_last', 0, 64)": [
        f'T.ptx["{TMA}.shared::cluster.global.{BYTES}.multicast::cluster.L2::cache_hint"]('
        "S.data, T.address_of(m), 0, 64, bar, T.uint16(3), T.uint64(0x14F0000000000000))"
    ],
    "T.ptx.cp_async.bulk.tensor.g2c_bar_addr(2, S.data, t, m, 1, 1, '', 0, 64)": [
        f'T.ptx["{TMA}.shared::cluster.global.{BYTES}"](S.data, T.address_of(m), 0, 64, t)'
    ],
    "T.ptx.cp_async.bulk.tensor.s2g(2, S.data, m, '', 0, 64)": [
        f'T.ptx["{TMA}.global.shared::cta.tile.bulk_group"](T.address_of(m), 0, 64, S.data)'
    ],
    "T.ptx.cp_async.bulk.tensor.s2g(2, S.data, m, '', 0, 64, cache_policy=d)": [
        f'T.ptx["{TMA}.global.shared::cta.tile.bulk_group.L2::cache_hint"](T.address_of(m), 0, 64, S.data, d)'
    ],
    "T.ptx.cp_async.bulk.tensor.s2g_reduce(2, S.data, m, '', 'add', 0, 64)": [
        'T.ptx["cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"](T.address_of(m), 0, 64, S.data)'
    ],
    "T.ptx.cp_async.bulk.tensor.g2c_prefetch(2, m, '', 0, 64)": [
        'T.ptx["cp.async.bulk.prefetch.tensor.2d.L2.global.tile"](T.address_of(m), 0, 64)'
    ],
    # bulk copies
    "T.ptx.cp_async.bulk.s2c(S.data, S.data, 64, bar)": [
        f'T.ptx["cp.async.bulk.shared::cluster.shared::cta.{BYTES}"](S.data, S.data, T.uint32(64), bar)'
    ],
    "T.ptx.cp_async_bulk_g2s_cta(S.data, G.data, 64, bar)": [
        f'T.ptx["cp.async.bulk.shared::cta.global.{BYTES}"](S.data, G.data, T.uint32(64), bar)'
    ],
    "T.ptx.cp_async_bulk_g2s_cluster(S.data, G.data, 64, bar, 3)": [
        f'T.ptx["cp.async.bulk.shared::cluster.global.{BYTES}.multicast::cluster"]('
        "S.data, G.data, T.uint32(64), bar, T.uint16(3))"
    ],
    "T.ptx.cp_async_bulk_s2s_cluster(S.data, S.data, 64, bar)": [
        f'T.ptx["cp.async.bulk.shared::cluster.shared::cta.{BYTES}"](S.data, S.data, T.uint32(64), bar)'
    ],
    "T.ptx.cp_async_bulk_s2g(G.data, S.data, 64)": [
        'T.ptx["cp.async.bulk.global.shared::cta.bulk_group"](G.data, S.data, T.uint32(64))'
    ],
    "T.ptx.cp_async.bulk.commit_group()": ['T.ptx["cp.async.bulk.commit_group"]()'],
    "T.ptx.griddepcontrol.wait()": ['T.ptx["griddepcontrol.wait"]()'],
    # matrices
    f"T.ptx.ldmatrix(True, 4, '.b16', S.data, {P4})": [
        f'T.ptx["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"]({R4}, S.data)'
    ],
    f"T.ptx.stmatrix(False, 4, '.b16', S.data, {P4})": [
        f'T.ptx["stmatrix.sync.aligned.m8n8.x4.shared.b16"](S.data, {R4})'
    ],
    "T.ptx.mma('m16n8k16', 'row', 'col', 'float32', 'bfloat16', 'bfloat16', 'float32', "
    "[F[0], F[1], F[2], F[3]], [R[0], R[1], R[2], R[3]], [R[4], R[5]])": [
        'T.ptx["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"](*F[0:4], *R[0:4], *R[4:6], '
        "T.float32(0), T.float32(0), T.float32(0), T.float32(0))"
    ],
    "T.ptx.mma('m16n8k32', 'row', 'col', 'int32', 'int8', 'uint8', 'int32', "
    "[R[0], R[1], R[2], R[3]], [R[4], R[5], R[6], R[7]], [R[8], R[9]], [R[0], R[1], R[2], R[3]], saturate=True)": [
        'T.ptx["mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"](*R[0:4], *R[4:8], *R[8:10], *R[0:4])'
    ],
    f"T.ptx.wgmma.mma_async.ss(d, e, *F[0:32], {WG}, transA=False, transB=True, scaleA=1, scaleB=-1, scaleD=tx != 0)": [
        'T.ptx["wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"](*F[0:32], d, e, tx != 0, 1, -1, 0, 1)'
    ],
    f"T.ptx.wgmma.mma_async.rs(d, *R[0:4], *F[0:32], {WG}, transB=False, scaleA=True, scaleB=True, scaleD=True)": [
        'T.ptx["wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"](*F[0:32], *R[0:4], d, True, 1, 1, 0)'
    ],
    # scalar memory
    "x = T.ptx.ld(G.ptr_to([tx]), 'float32', 'f32', space='global', cop='cs')": [
        "y: T.float32",
        'T.ptx["ld.global.cs.f32"](y, G.ptr_to([tx]))',
        "x = y",
    ],
    f"T.ptx.ld(U.ptr_to([tx * 4]), 'uint32', 'b32', space='global', vec='v4', dst=[{P4}])": [
        f'T.ptx["ld.global.v4.b32"]({R4}, U.ptr_to([tx * 4]))'
    ],
    "t = T.ptx.ld_relaxed(U.ptr_to([0]), 'uint32', 'u32', scope='sys')": [
        "y: T.uint32",
        'T.ptx["ld.relaxed.sys.u32"](y, U.ptr_to([0]))',
        "t = y",
    ],
    "t = T.ptx.ld_acquire(U.ptr_to([0]), 'uint32', 'u32', space='global')": [
        "y: T.uint32",
        'T.ptx["ld.acquire.gpu.global.u32"](y, U.ptr_to([0]))',
        "t = y",
    ],
    "t = T.ptx.ld_volatile(U.ptr_to([0]), 'uint32', 'u32')": [
        "y: T.uint32",
        'T.ptx["ld.volatile.u32"](y, U.ptr_to([0]))',
        "t = y",
    ],
    "t = T.ptx.ld_mmio(U.ptr_to([0]), 'uint32', 'u32')": [
        "y: T.uint32",
        'T.ptx["ld.mmio.relaxed.sys.u32"](y, U.ptr_to([0]))',
        "t = y",
    ],
    "T.ptx.ld_global_acquire(t, U.ptr_to([0]))": ['T.ptx["ld.acquire.gpu.global.b32"](t, U.ptr_to([0]))'],
    "T.ptx.st(G.ptr_to([tx]), x, ptx_type='f32', space='global', cop='cs')": [
        'T.ptx["st.global.cs.f32"](G.ptr_to([tx]), x)'
    ],
    "T.ptx.st_release(U.ptr_to([0]), t, ptx_type='u32')": ['T.ptx["st.release.gpu.u32"](U.ptr_to([0]), t)'],
    "T.ptx.st_relaxed(U.ptr_to([0]), t, ptx_type='u32', scope='sys')": [
        'T.ptx["st.relaxed.sys.u32"](U.ptr_to([0]), t)'
    ],
    "T.ptx.st_volatile(U.ptr_to([0]), t, ptx_type='u32')": ['T.ptx["st.volatile.u32"](U.ptr_to([0]), t)'],
    "T.ptx.red_scalar(U.ptr_to([0]), t, sem='release', scope='gpu', space='global', op='add', ptx_type='u32')": [
        'T.ptx["red.release.gpu.global.add.u32"](U.ptr_to([0]), t)'
    ],
    "t = T.ptx.atom_scalar(U.ptr_to([0]), t, sem='acq_rel', scope='gpu', op='max', ptx_type='u32')": [
        "y: T.uint32",
        'T.ptx["atom.acq_rel.gpu.max.u32"](y, U.ptr_to([0]), t)',
        "t = y",
    ],
    "T.ptx.prefetch_tensormap(T.address_of(m))": ['T.ptx["prefetch.tensormap"](T.address_of(m))'],
    "t = T.ptx.mapa(t, 1)": ["y: T.uint32", 'T.ptx["mapa.shared::cluster.u32"](y, t, T.uint32(1))', "t = y"],
    "d = T.ptx.map_shared_rank(S.data, rank)": [
        "y: T.uint64",
        'T.ptx["mapa.u64"](y, S.data, T.cast(rank, "uint32"))',
        "d = y",
    ],
    # values
    "T.ptx.add_f32(T.address_of(x), x, x, rounding='rz', ftz=True)": ['T.ptx["add.rz.ftz.f32"](x, x, x)'],
    "T.ptx.sub_f64(D, D, D)": ['T.ptx["sub.rn.f64"](D, D, D)'],
    "T.ptx.mul_f32(x, x, x, sat=True)": ['T.ptx["mul.rn.sat.f32"](x, x, x)'],
    "T.ptx.fma_f32(x, x, x, x)": ['T.ptx["fma.rn.f32"](x, x, x, x)'],
    "t = T.ptx.fns_b32(t, 0, 1)": [
        "y: T.uint32",
        'T.ptx["fns.b32"](y, t, T.uint32(0), T.int32(1))',
        "t = y",
    ],
}
BLACKWELL = {
    "T.ptx.cp_async.bulk.tensor.g2c_tile_gather4(2, S.data, bar, m, 0, 1, '', 0, 1, 2, 3, 4)": [
        f'T.ptx["{TMA}.shared::cluster.global.tile::gather4.{BYTES}"](S.data, T.address_of(m), 0, 1, 2, 3, 4, bar)'
    ],
    "T.ptx.cp_async.bulk.tensor.g2c(2, S.data, bar, m, 0, 2, '', 0, 64)": [
        f'T.ptx["{TMA}.shared::cluster.global.{BYTES}.cta_group::2"](S.data, T.address_of(m), 0, 64, bar)'
    ],
    f"T.ptx.tcgen05.ld(t, {R4}, shape='32x32b', num=4)": [f'T.ptx["tcgen05.ld.sync.aligned.32x32b.x4.b32"]({R4}, t)'],
    f"T.ptx.tcgen05.ld(t, {R4}, shape='16x32bx2', num=4, row=16, col=8, pack=True)": [
        f'T.ptx["tcgen05.ld.sync.aligned.16x32bx2.x4.pack::16b.b32"]({R4}, T.cuda.get_tmem_addr(t, 16, 8), 8)'
    ],
    f"T.ptx.tcgen05.st(t, {R4}, shape='32x32b', num=4)": [f'T.ptx["tcgen05.st.sync.aligned.32x32b.x4.b32"](t, {R4})'],
    "T.ptx.tcgen05.cp(t, d, shape='32x128b', multicast='warpx4')": [
        'T.ptx["tcgen05.cp.cta_group::1.32x128b.warpx4"](t, d)'
    ],
    "T.ptx.tcgen05.mma(t, d, d, t, d_dtype='float32', a_dtype='bfloat16', b_dtype='bfloat16', "
    "use_a_tmem=False, cta_group=1, enable_input_d=tx != 0)": [
        f'T.ptx["tcgen05.mma.cta_group::1.kind::f16"](t, d, d, t, {ZEROS}, tx != 0)'
    ],
    "T.ptx.tcgen05.mma(t, d, d, t, d_dtype='float32', a_dtype='tf32', b_dtype='tf32', use_a_tmem=False, cta_group=1, "
    "scale_input_d=3)": [f'T.ptx["tcgen05.mma.cta_group::1.kind::tf32"](t, d, d, t, {ZEROS}, True, 3)'],
    "T.ptx.tcgen05.mma(t, t, d, t, d_dtype='float32', a_dtype='float8_e4m3fn', b_dtype='float8_e5m2', "
    "use_a_tmem=True, cta_group=1, pred=tx == 0)": [
        f'T.ptx["tcgen05.mma.cta_group::1.kind::f8f6f4"](t, t, d, t, {ZEROS}, True, pred=tx == 0)'
    ],
    "T.ptx.tcgen05.mma.sp(t, d, d, t, t, d_dtype='float32', a_dtype='float16', b_dtype='float16', "
    "use_a_tmem=False, cta_group=1)": [f'T.ptx["tcgen05.mma.sp.cta_group::1.kind::f16"](t, d, d, t, t, {ZEROS}, True)'],
    "T.ptx.tcgen05.mma.block_scale(t, d, d, t, t, t, a_dtype='float8_e4m3fn', b_dtype='float8_e4m3fn', "
    f"sfa_dtype='float8_e8m0fnu', {SCALED})": [
        'T.ptx["tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"](t, d, d, t, t, t, True)'
    ],
    "T.ptx.st_bulk(S.data, 64)": ['T.ptx["st.bulk"](S.data, T.uint64(64))'],
    "T.ptx.add_f32x2(d, d, d)": ['T.ptx["add.rn.f32x2"](d, d, d)'],
    "T.ptx.add_rn_f32_bf16(x, T.uint16(0))": ['T.ptx["add.rn.f32.bf16"](x, T.uint16(0), x)'],
    "T.ptx.clc_try_cancel(S.data, bar)": [
        f'T.ptx["clusterlaunchcontrol.try_cancel.async.shared::cta.{BYTES}.multicast::cluster::all.b128"](S.data, bar)'
    ],
}


def parsed(lines):
    return tirx.from_source(HEAD + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize("written", [*HOPPER, *BLACKWELL])
def test_the_same_as_the_dialects_spelling(written):
    table = HOPPER if written in HOPPER else BLACKWELL
    one, other = parsed([written]), parsed(table[written])
    assert tirx.structural_equal(one, other), f"{one.script()}\n{other.script()}"


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_all_are_assembled(nvrtc, arch):
    lines = [w for w in HOPPER if arch == "sm_90a" or "wgmma" not in w]
    if arch == "sm_100a":
        lines += [*BLACKWELL, "t = T.ptx.clc_query_cancel(S.data)"]
        lines = [w for w in lines if "pack=True" not in w and "cta_group::2" not in w and "0, 2, ''" not in w]
    f = parsed([*lines, "U[tx] = t", "G[tx] = x + F[0]"])
    assert tirx.compile(f, target=f"cuda:{arch}").cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("T.ptx.cp_async.bulk.tensor.s2g(2, S.data, m, 'keep', 0, 64)", "cache_hint must be one of"),
        (f"T.ptx.wgmma.mma_async.ss(d, e, *F[0:16], {WG}, transA=0, transB=0, scaleA=1, scaleB=1, scaleD=1)", "has 32"),
        ("T.ptx.tcgen05.mma(t, d, d, t, d_dtype='float32', a_dtype='int8', b_dtype='float16', use_a_tmem=False, "
         "cta_group=1)", "Invalid multiplicand data types"),
        ("T.ptx.mma('m8n8k128', 'row', 'col', 'int32', 'b1', 'b1', 'int32', [t], [t], [t], bit_op='xor')", "bit"),
    ],
)  # fmt: skip
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        parsed([line])
    assert text in str(e.value)
