# SPDX-License-Identifier: Apache-2.0
"""PTX accesses to memory, guards, named barriers and what is not emulated yet, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

HEAD = "from tirx.script import tirx as T\n@T.prim_func\n"


def run(params, body, *arrays, threads=32, **options):
    lines = [
        f"def k({params}):",
        "    T.device_entry()",
        "    bx = T.cta_id([1])",
        f"    tx = T.thread_id([{threads}])",
    ]
    lines += ["    " + line for line in body.strip("\n").split("\n")]
    tirx.compile(tirx.from_source(HEAD + "\n".join(lines) + "\n"), target="cpu")(*arrays, **options)


def test_vectors_of_every_space():
    a, b = np.arange(128, dtype="float32"), np.zeros(128, "float32")
    body = """
S = T.alloc_buffer((128,), "float32", scope="shared")
v = T.alloc_buffer((4,), "float32", scope="local")
T.ptx["ld.global.v4.f32"](v[0], v[1], v[2], v[3], A.ptr_to([tx * 4]))
T.ptx["st.shared.v4.f32"](S.ptr_to([tx * 4]), v[3], v[2], v[1], v[0])
T.cuda.cta_sync()
T.ptx["ld.shared.v2.f32"](v[0], v[1], T.ptx.addr(S.ptr_to([tx * 4]), 8))
T.ptx["st.global.v2.f32"](T.ptx.addr(B.ptr_to([tx * 4]), 8), v[0], v[1])
"""
    run('A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")', body, a, b)
    want = np.zeros((32, 4), "float32")
    want[:, 2:4] = a.reshape(32, 4)[:, 1::-1]
    np.testing.assert_array_equal(b.reshape(32, 4), want)


def test_addresses_in_the_shared_window():
    b = np.zeros(32, "uint32")
    body = """
S = T.alloc_buffer((64,), "uint32", scope="shared")
R = T.alloc_buffer((64,), "uint32", scope="shared")
d: T.uint32
inside: T.uint32
at: T.uint32 = T.cuda.cvta_generic_to_shared(R.ptr_to([0]))
T.ptx["st.shared.u32"](at + T.cast(tx * 4, "uint32"), T.cast(tx, "uint32") * T.uint32(3))
T.cuda.cta_sync()
T.ptx["ld.shared.u32"](d, T.ptx.addr(at, 8))
T.ptx["isspacep.shared"](inside, R.ptr_to([0]))
B[tx] = R[tx] + d * inside
"""
    run('B: T.Buffer((32,), "uint32")', body, b)
    np.testing.assert_array_equal(b, np.arange(32) * 3 + 6)


OPERATIONS = {
    "add.u32": lambda o, v: o + v, "min.u32": min, "max.u32": max, "and.b32": lambda o, v: o & v,
    "or.b32": lambda o, v: o | v, "xor.b32": lambda o, v: o ^ v, "exch.b32": lambda o, v: v,
    "inc.u32": lambda o, v: 0 if o >= v else o + 1, "dec.u32": lambda o, v: v if o == 0 or o > v else o - 1,
}  # fmt: skip


@pytest.mark.parametrize("op", OPERATIONS)
def test_atomics_of_one_cell_are_in_the_order_of_the_lanes(op):
    values = np.random.default_rng(3).integers(0, 40, 32).astype("uint32")
    cell, old = np.array([17], "uint32"), np.zeros(32, "uint32")
    body = f'd: T.uint32\nT.ptx["atom.global.{op}"](d, C.ptr_to([0]), V[tx])\nO[tx] = d'
    run(
        'C: T.Buffer((1,), "uint32"), V: T.Buffer((32,), "uint32"), O: T.Buffer((32,), "uint32")',
        body,
        cell,
        values,
        old,
    )
    x, want = 17, []
    for v in values:
        want.append(x)
        x = OPERATIONS[op](x, int(v))
    assert old.tolist() == want
    assert int(cell[0]) == x


def test_signed_minimum_and_compare_and_swap():
    cells = np.array([5, 7], "int32")
    body = """
d: T.int32
T.ptx["red.global.min.s32"](C.ptr_to([0]), tx - 16)
u: T.int32
T.ptx["atom.global.cas.b32"](u, C.ptr_to([1]), 7 + tx, 8 + tx)
"""
    run('C: T.Buffer((2,), "int32")', body, cells)
    assert cells.tolist() == [-16, 39]


def test_guards():
    b = np.zeros((3, 32), "uint32")
    body = """
d: T.uint32 = 5
T.ptx["add.u32"](d, d, T.uint32(1), pred=tx < 10, preserve_dst=True)
B[0, tx] = d
T.ptx["st.global.u32"](B.ptr_to([1, tx]), T.uint32(9), pred=tx % 2 == 0)
e: T.uint32 = 1
T.ptx["add.u32"](e, e, e, pred=True)
B[2, tx] = e
"""
    run('B: T.Buffer((3, 32), "uint32")', body, b)
    lanes = np.arange(32)
    np.testing.assert_array_equal(b, [np.where(lanes < 10, 6, 5), np.where(lanes % 2 == 0, 9, 0), np.full(32, 2)])


def test_producers_arrive_and_consumers_wait():
    b = np.zeros(64, "int32")
    body = """
S = T.alloc_buffer((64,), "int32", scope="shared")
if tx < 64:
    S[tx] = tx * tx
    T.ptx.bar.arrive(T.uint32(3), T.uint32(128))
else:
    T.ptx.bar.sync(T.uint32(3), T.uint32(128))
    B[tx - 64] = S[tx - 64]
"""
    run('B: T.Buffer((64,), "int32")', body, b, threads=128)
    np.testing.assert_array_equal(b, np.arange(64) ** 2)


def test_barriers_that_reduce():
    b = np.zeros((3, 64), "uint32")
    body = """
d: T.uint32
T.ptx["bar.red.popc.u32"](d, T.uint32(1), tx % 3 == 0)
B[0, tx] = d
T.ptx["bar.red.and.pred"](d, T.uint32(1), T.uint32(64), tx < 63)
B[1, tx] = d
T.ptx["bar.red.or.pred"](d, T.uint32(2), tx == 40)
B[2, tx] = d
"""
    run('B: T.Buffer((3, 64), "uint32")', body, b, threads=64)
    np.testing.assert_array_equal(b, np.repeat([[22], [0], [1]], 64, 1))


def report(params, body, *arrays, **options):
    with pytest.raises(tirx.EmulationError) as e:
        run(params, body, *arrays, **options)
    return e.value


def test_reports():
    a = np.zeros(64, "float32")
    one = 'A: T.Buffer((64,), "float32")'
    e = report(
        one,
        'v = T.alloc_buffer((2,), "float32", scope="local")\nT.ptx["ld.global.v2.f32"](v[0], v[1], A.ptr_to([tx + 1]))',
        a,
    )
    assert e.kind == "misaligned"
    assert e.buffer == "A"
    e = report(one, 'd: T.float32\nT.ptx["ld.global.f32"](d, A.ptr_to([tx + 40]))', a)
    assert e.kind == "out_of_bounds"
    e = report(one, "T.ptx.bar.sync(T.uint32(1), T.uint32(33))", a)
    assert e.kind == "barrier"


def test_local_memory_has_addresses_of_its_own(nvrtc):
    """A pointer to an array of a thread is generic; ld.local and st.local take what cvta makes of it."""

    @T.prim_func
    def k(A: T.Buffer((32,), "uint32")):
        T.device_entry()
        tx = T.thread_id([32])
        own = T.alloc_local((4,), "uint32")
        v: T.uint32
        for i in range(4):
            own[i] = A[tx]
        T.ptx["ld.local.u32"](v, T.address_of(own[1]))
        T.ptx["st.local.u32"](T.address_of(own[2]), v + T.uint32(1))
        A[tx] = own[2]

    source = tirx.compile(k, target="cuda:sm_90").source
    assert source.count("(const void*)__cvta_generic_to_local(&own") == 2
    a = np.arange(32, dtype="uint32")
    tirx.compile(k, target="cpu")(a)
    assert (a == np.arange(32) + 1).all()
