# SPDX-License-Identifier: Apache-2.0
"""Accumulators of matrix instructions: starred operands are the elements, each a place to write to; descriptors against
the bits of the ISA; the launch bounds that setmaxnreg needs."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

HEAD = """from tirx.script import tirx as T
@T.prim_func
def k(A: T.Buffer((4096,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    acc = T.alloc_local((64,), "float32")
    grid = T.alloc_local((2, 4), "float32")
    d: T.uint64 = 0
"""
WGMMA = 'T.ptx["wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"]({}, d, d, True, 1, 1, 0, 0)'


def parsed(*lines):
    return tirx.from_source(HEAD + "".join(f"    {line}\n" for line in lines))


@pytest.mark.parametrize(
    ("starred", "spelled"),
    [
        ("*acc[0:32]", ", ".join(f"acc[{i}]" for i in range(32))),
        ("*acc[8:40]", ", ".join(f"acc[{i}]" for i in range(8, 40))),
        ("*acc[0:16], *acc[48:64]", ", ".join(f"acc[{i}]" for i in [*range(16), *range(48, 64)])),
        ("*[acc[i + 4] for i in range(32)]", ", ".join(f"acc[{i}]" for i in range(4, 36))),
        ("*[*acc[0:32]]", ", ".join(f"acc[{i}]" for i in range(32))),
    ],
)
def test_a_starred_buffer_is_its_elements(starred, spelled):
    one, other = parsed(WGMMA.format(starred)), parsed(WGMMA.format(spelled))
    assert one.script() == other.script()


def test_rows_and_loop_variables_can_be_starred():
    one = parsed("for i in range(2):", '    T.ptx["st.v4.f32"](A.ptr_to([tx * 4]), *grid[i])')
    other = parsed(
        "for i in range(2):",
        '    T.ptx["st.v4.f32"](A.ptr_to([tx * 4]), grid[i, 0], grid[i, 1], grid[i, 2], grid[i, 3])',
    )
    assert one.script() == other.script()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (WGMMA.format("*acc"), "expects 39 operand(s)"),
        ("T.cuda.wgmma.fence_operand(*A)", "'*' of buffer A, which has more than 256 elements"),
        ("T.cuda.wgmma.fence_operand(*acc[0:tx])", "no constant length"),
        ("T.cuda.wgmma.fence_operand(A[0])", "takes registers"),
        ("T.cuda.wgmma.fence_operand(d)", "takes 32-bit registers, got uint64"),
        ("d = T.cuda.wgmma.matrix_descriptor(A, 1, 64, 4)", "swizzle must be 0, 1, 2 or 3"),
        ("d = T.cuda.wgmma.matrix_descriptor(A, 1, 1 << 14, 3)", "units of 16 bytes"),
        ("d = T.cuda.wgmma.advance(d, 8)", "multiple of 16 bytes"),
        ("T.cuda.wgmma.encode_matrix_descriptor(tx, A, 1, 64, 3)", "pass T.address_of(x)"),
    ],
)
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        parsed(line)
    assert text in str(e.value)


def test_descriptors_have_the_bits_of_the_isa():
    @T.prim_func
    def k(D: T.Buffer((4, 2), "uint64"), where: T.uint32):
        T.device_entry()
        tx = T.thread_id([1])
        made: T.uint64
        for s in [0, 1, 2, 3]:
            D[s, 0] = T.cuda.wgmma.matrix_descriptor(where, 3, 64, s)
        T.cuda.wgmma.encode_matrix_descriptor(T.address_of(made), where, 1, 32, 3)
        D[0, 1] = made
        D[1, 1] = T.cuda.wgmma.advance(made, 32)
        D[2, 1] = T.cuda.wgmma.advance(made, -32)
        D[3, 1] = T.cuda.wgmma.advance(made, where)

    def expected(address, ldo, sdo, swizzle):
        return (address & 0x3FFFF) >> 4 | ldo << 16 | sdo << 32 | (0, 3, 2, 1)[swizzle] << 62

    at = 0x1C400
    d = np.zeros((4, 2), "uint64")
    tirx.compile(k, target="cpu")(d, at)
    assert [int(x) for x in d[:, 0]] == [expected(at, 3, 64, s) for s in range(4)]
    base = expected(at, 1, 32, 3)
    assert [int(x) for x in d[:, 1]] == [base, base + 2, base - 2, base + (at >> 4)]


def accumulate(loop):
    @T.prim_func
    def k(A: T.Buffer((128 * 128,), "float32")):
        T.device_entry()
        tx = T.thread_id([128])
        acc = T.alloc_local((128,), "float32")
        s = T.alloc_buffer((64 * 64 * 8,), "bfloat16", scope="shared.dyn", align=1024)
        da: T.let = T.cuda.wgmma.matrix_descriptor(s, 1, 64, 3)
        db: T.let = T.cuda.wgmma.matrix_descriptor(s.ptr_to([4096]), 1, 64, 3)
        for j in T.serial(4, unroll=loop):
            T.cuda.wgmma.fence_operand(*acc)
            T.ptx.wgmma.fence.sync.aligned()
            for i in T.serial(4, unroll=True):
                T.ptx.wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16(
                    *acc,
                    T.cuda.wgmma.advance(da, i * 32),
                    T.cuda.wgmma.advance(db, i * 32),
                    T.ptx.pred((i > 0) | (j > 0)),
                    *(1, 1, 0, 0),
                )
            T.ptx.wgmma.commit_group.sync.aligned()
            T.ptx.wgmma.wait_group.sync.aligned(0)
            T.cuda.wgmma.fence_operand(*acc)
        for i in T.serial(128, unroll=True):
            A[tx * 128 + i] = acc[i]

    return k


@pytest.mark.parametrize("loop", [1, 2, True])
def test_accumulators_stay_in_registers(nvrtc, loop):
    exe = tirx.compile(accumulate(loop), target="cuda:sm_90a")
    assert exe.source.count("wgmma.mma_async") == 1  # loops stay loops: one copy of the instruction
    assert ".local" not in exe.ptx
    assert exe.cubin[:4] == b"\x7fELF"
    assert b".nv.local" not in exe.cubin


def test_a_kernel_with_setmaxnreg_has_one_block_an_sm():
    @T.prim_func
    def k(A: T.Buffer((3,), "float32")):
        T.device_entry()
        wg = T.warpgroup_id([3])
        tx = T.thread_id([384])
        if wg == 0:
            T.ptx.setmaxnreg.dec.sync.aligned.u32(40)
        else:
            T.ptx.setmaxnreg.inc.sync.aligned.u32(232)
        A[wg] = 1.0

    assert "__launch_bounds__(384, 1)" in tirx.compile(k, target="cuda:sm_90a").source
