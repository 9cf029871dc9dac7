# SPDX-License-Identifier: Apache-2.0
"""The PTX dialect as it is written down: spellings, operands, guards and the assembly text, a test for each sentence
that no whole message (tests/messages/ptx.txt) covers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

HEAD = """
@T.prim_func
def k(A: T.Buffer((64,), "float32"), U: T.Buffer((64,), "uint32")):
    T.device_entry()
    tx = T.thread_id([32])
    x: T.float32 = 0.0
    u: T.uint32 = 0
    v: T.uint64 = 0
    s = T.alloc_shared((64,), "uint32", align=128)
"""


def kernel(body: str) -> tirx.PrimFunc:
    return tirx.from_source(HEAD + "\n".join("    " + line for line in body.split("\n")) + "\n")


def line_of(body: str) -> str:
    """How the last instruction is printed."""
    return [line.strip() for line in kernel(body).script().split("\n") if "T.ptx" in line][-1]


def asm_of(body: str, target: str = "cuda:sm_90a") -> str:
    """The text of the last instruction, which NVRTC takes."""
    exe = tirx.compile(kernel(body), target=target)
    assert exe.cubin[:4] == b"\x7fELF"
    return re.findall(r"asm.*", exe.source)[-1]


def said(body: str, target: str | None = None) -> str:
    with pytest.raises(DiagnosticError) as e:
        f = kernel(body)
        if target:
            tirx.compile(f, target=target)
    return str(e.value)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("T.ptx.ld.acquire.gpu.global_.b32(u, U.ptr_to([0]))", "ld.acquire.gpu.global.b32"),
        ("T.ptx.ld.b32.global_.gpu.acquire(u, U.ptr_to([0]))", "ld.acquire.gpu.global.b32"),
        ("T.ptx.ld.shared_.b32_(u, s.ptr_to([0]))", "ld.shared.b32"),
        ("T.ptx.ld.shared__cta.b32(u, s.ptr_to([0]))", "ld.shared::cta.b32"),
        ("T.ptx['ld.shared::cta.b32'](u, s.ptr_to([0]))", "ld.shared::cta.b32"),
        ("T.ptx['shfl_sync.idx.b32'](u, u, 0, 31, T.uint32(1))", "shfl.sync.idx.b32"),
        ("T.ptx['shfl.sync.idx.b32'](u, u, 0, 31, T.uint32(1))", "shfl.sync.idx.b32"),
        ("T.ptx.shfl_sync.idx.b32(u, u, 0, 31, T.uint32(1))", "shfl.sync.idx.b32"),
        ("T.ptx.shfl.sync.idx.b32(u, u, 0, 31, T.uint32(1))", "shfl.sync.idx.b32"),
        ("T.ptx.and_.b32(u, u, u)", "and.b32"),
        ("T.ptx.vote_sync.ballot.b32(u, tx == 3, T.uint32(1))", "vote.sync.ballot.b32"),
        ("T.ptx.redux_sync.add.u32(u, u, T.uint32(1))", "redux.sync.add.u32"),
        ("chain = T.ptx.ld.global_\nchain.u32(u, U.ptr_to([1]))", "ld.global.u32"),
        ("T.ptx.ld.global_.u32(u, U)", "ld.global.u32"),
        ("T.ptx.ld.global_.u32(u, v)", "ld.global.u32"),
    ],
)
def test_spellings(written, printed):
    assert line_of(written).startswith(f'T.ptx["{printed}"](')


def test_a_lone_colon_has_a_name():
    assert "'sp::2:4' is not a valid modifier for 'ld'" in said("T.ptx.ld.sp__2__colon__4.u32(u, v)")


def test_a_chain_knows_what_can_follow():
    follow = dir(T.ptx.ld.global_)
    assert {"acquire", "u32", "L2__cache_hint", "L1__no_allocate"} <= set(follow)
    assert not {"shared", "global", "global_"} & set(follow)
    assert {"ld", "wgmma", "shfl", "and_"} <= set(dir(T.ptx))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("T.ptx.add.u32(u, u, 1.5)", "operand 'b' must have dtype uint32 (from .u32), got a float literal"),
        ("T.ptx.ld.global_.u32(u, s.ptr_to([0]))", "an address in .global, got a pointer to shared memory"),
        ("T.ptx.ld.global_.u32(u, u)", "operand 'a' must be a pointer or a uint64 address, got uint32"),
        ("T.ptx.ld.u32(u, u)", "operand 'a' must be a pointer or a uint64 address, got uint32"),
        ("T.ptx.ld.shared.u32(u, v)", "must be a pointer or a uint32 address (.shared), got uint64"),
        ("T.ptx.ld.global_.u32(u, T.ptx.addr(T.ptx.addr(U, 4), 8))", "displacements do not nest"),
        ('T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](u, T.ptx.addr(u, 4))', "'t' takes no displacement"),
        (
            'T.ptx["tcgen05.ld.sync.aligned.32x32b.x1.b32"](u, s.ptr_to([0]))',
            "'t' is a tensor memory address (uint32), got a pointer",
        ),
        ("T.ptx.wgmma.wait_group.sync.aligned(9)", "operand 'n' must be one of 0..7, got 9"),
        (
            "T.ptx.selp.b32(u, u, u, u)",
            "must be a predicate: write a comparison, or T.ptx.pred(x) for an integer; got uint32",
        ),
        ("T.ptx.selp.b32(u, u, u, 2)", "must be a predicate"),
        ("T.ptx.add.u32(u, u, T.ptx.pred(u))", "operand 'b' is no predicate; T.ptx.pred does not belong here"),
        ("T.ptx.add.u32(u, u, u, preserve_dst=True)", "preserve_dst=True needs pred="),
        ("y: T.let = T.uint32(3)\nT.ptx.add.u32(y, u, u)", "a T.let binding is immutable"),
        ("T.ptx.add.u32(7, u, u)", "destination 'd' must be a writable scalar or buffer element"),
        ("T.ptx.ld.global_.v2.u32(T.ptx.SINK, u, U)", "operand 'd' cannot be T.ptx.SINK"),
        ("T.ptx.mov.b64(T.ptx.SINK, T.ptx.SINK, v)", "T.ptx.SINK"),
        ("T.ptx.ld.global_(u, U)", "ld: missing required modifier(s): type"),
        ("T.ptx.ld.global_.v4.u32(u, u, U)", "expects"),
    ],
)
def test_refused(body, text):
    assert text in said(body)


def test_an_immediate_may_come_from_an_unrolled_loop(nvrtc):
    asm = asm_of("for i in T.unroll(2):\n    T.ptx.wgmma.wait_group.sync.aligned(i)")
    assert asm.startswith('asm volatile("wgmma.wait_group.sync.aligned 1;"')
    assert "operand 'n' must be a constant" in said("T.ptx.wgmma.wait_group.sync.aligned(tx)", "cuda:sm_90a")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        # volatile, but for what only moves or computes; memory is clobbered where there is an address or an order
        ("T.ptx.mov.b32(u, u)", 'asm("mov.b32 %0, %1;" : "=r"(a0) : "r"(a1));'),
        ("T.ptx.add.u32(u, u, u)", 'asm("add.u32 %0, %1, %2;" : "=r"(a0) : "r"(a1), "r"(a2));'),
        ("T.ptx.ld.global_.u32(u, U)", 'asm volatile("ld.global.u32 %0, [%1];" : "=r"(a0) : "l"(a1) : "memory");'),
        ("T.ptx.st.shared.u32(s, u)", 'asm volatile("st.shared.u32 [%0], %1;" :  : "r"(a0), "r"(a1) : "memory");'),
        ("T.ptx.ld.global_.u32(u, T.ptx.addr(U, 12))", "[%1+12]"),
        ("T.ptx.ld.global_.u32(u, T.ptx.addr(U, -4))", "[%1+-4]"),
        ("T.ptx.ld.global_.u32(u, T.ptx.addr(U, 0))", "[%1];"),
        ("T.ptx.st.shared.u32(T.ptx.addr(s.ptr_to([tx]), 8), u)", "[%0+8]"),
        ("for i in T.unroll(3):\n    T.ptx.ld.global_.u32(u, T.ptx.addr(U, 4 * i))", "[%1+8]"),
        ("T.ptx.ld.global_.u32(u, T.ptx.addr(U, 4 * tx))", "[%1];"),  # not a constant: added before
        # predicates are set inside, results selected
        ("T.ptx.selp.b32(u, u, u, tx == 3)", "{ .reg .pred b0; setp.ne.b32 b0, %3, 0; selp.b32 %0, %1, %2, b0; }"),
        ("T.ptx.selp.b32(u, u, u, 1)", "setp.ne.b32 b0, %3, 0;"),
        ("T.ptx.setp.lt.u32(u, u, u)", "selp.b32 %0, 1, 0, b0; }"),
        # a guard: undefined when false, or kept
        ("T.ptx.add.u32(u, u, u, pred=tx)", '@g add.u32 %0, %1, %2; }" : "=r"(a0)'),
        ("T.ptx.add.u32(u, u, u, pred=u, preserve_dst=True)", '@g add.u32 %0, %1, %2; }" : "+r"(a0)'),
        # groups in braces, also of one
        ("T.ptx.ld.global_.v2.u32(u, U[3], U)", "{%0, %1}, [%2]"),
    ],
)  # fmt: skip
def test_assembly(body, text, nvrtc):
    assert text in asm_of(body)


def test_displacements():
    f = kernel(
        "for i in T.unroll(3):\n"
        "    T.ptx.ld.global_.u32(s[tx % 32 * 2 + i % 2], T.ptx.addr(U.ptr_to([tx]), 4 * i + 4))\n"
        "T.ptx.st.shared.u32(T.ptx.addr(s.ptr_to([tx * 2]), 4), T.uint32(9))\n"
        "T.ptx.ld.global_.u32(u, T.ptx.addr(U.ptr_to([tx + 2]), -8))\n"
        "A[tx] = T.cast(s[tx * 2] * T.uint32(1000) + s[tx * 2 + 1] * T.uint32(100) + u, 'float32')"
    )
    a, u = np.zeros(64, "float32"), np.arange(64, dtype="uint32")
    tirx.compile(f, target="cpu")(a, u)
    np.testing.assert_array_equal(a[:32], (np.arange(32) + 3) * 1000 + 900 + np.arange(32))


def test_bytes_ride_in_wider_registers(nvrtc):
    asm = asm_of("b = T.alloc_local((1,), 'uint8')\nT.ptx.cvt.rn.satfinite.e2m1x2.f32(b[0], x, x)", "cuda:sm_100a")
    assert ".reg .b8 b0; cvt.rn.satfinite.e2m1x2.f32 b0, %1, %2; cvt.u16.u8 %0, b0;" in asm and '"=h"' in asm


def test_a_helper_is_written_once(nvrtc):
    twice = (
        "T.ptx.add.u32(u, u, u)\nT.ptx.add.u32(U[1], u, 3)\nA[tx] = T.cuda.warp_sum(x) + T.cuda.cta_sum(x, 1, s.data)"
    )
    exe = tirx.compile(kernel(twice), target="cuda:sm_90a")
    assert exe.source.count('asm("add.u32') == 1
    assert exe.cubin[:4] == b"\x7fELF"


def test_pred_of_any_type_and_kept_values():
    f = kernel(
        "u = T.cast(tx, 'uint32')\n"
        "T.ptx.add.u32(u, u, T.uint32(100), pred=tx % 2, preserve_dst=True)\n"
        "T.ptx.add.u32(u, u, T.uint32(1000), pred=T.ptx.pred(tx & 4) if False else tx > 15, preserve_dst=True)\n"
        "T.ptx.selp.b32(U[32 + tx], u, u + T.uint32(7), T.ptx.pred(tx & 2))\n"
        "U[tx] = u"
    )
    a, u = np.zeros(64, "float32"), np.zeros(64, "uint32")
    tirx.compile(f, target="cpu")(a, u)
    t = np.arange(32)
    want = t + 100 * (t % 2) + 1000 * (t > 15)
    np.testing.assert_array_equal(u[:32], want)
    np.testing.assert_array_equal(u[32:], np.where(t & 2, want, want + 7))
