# SPDX-License-Identifier: Apache-2.0
"""ldmatrix, stmatrix, movmatrix and mma.sync in the emulator: against NumPy with fragments written out from the ISA's
figures, and against dot products that an H200 gave, bit by bit."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

HW = Path(__file__).resolve().parents[1] / "cases" / "hw"
_spec = importlib.util.spec_from_file_location("hw_load_accum", HW / "load.py")
load = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(load)

LANE = np.arange(32)
G, Q = LANE // 4, LANE % 4


# ---- fragments -------------------------------------------------------------------------------------------------------


def a_places(k, per):
    """(row, k) of each element: register, element in it, lane."""
    regs = 4 if k == 8 * per else 2
    return [[(G + 8 * (i % 2), per * Q + 4 * per * (i // 2) + e) for e in range(per)] for i in range(regs)]


def b_places(k, per):
    return [[(per * Q + 4 * per * i + e, G) for e in range(per)] for i in range(k // (4 * per))]


def c_places():
    return [(G + 8 * (i // 2), 2 * Q + i % 2) for i in range(4)]


def pack(codes, places, bits):
    """Registers (lane, register) of a matrix of codes."""
    out = np.zeros((32, len(places)), "uint32")
    for i, elements in enumerate(places):
        for e, at in enumerate(elements):
            out[:, i] |= codes[at].astype("uint32") << np.uint32(bits * e)
    return out


def kernel(op, na, nb, nc, nd, floats, tail=""):
    dtype = "float32" if floats else "uint32"
    group = lambda name, n: ", ".join(f"{name}[{i}]" for i in range(n))  # noqa: E731
    loads = "\n".join(
        f"    {x}[{i}] = {x.upper()}[w, tx, {i}]" for x, n in (("a", na), ("b", nb), ("c", nc)) for i in range(n)
    )
    return f"""
from tirx.script import tirx as T

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle, E_ptr: T.handle, D_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n, 32, {na}), "uint32")
    B = T.match_buffer(B_ptr, (n, 32, {nb}), "uint32")
    C = T.match_buffer(C_ptr, (n, 32, {nc}), {dtype!r})
    E = T.match_buffer(E_ptr, (n, 32), "uint32")
    D = T.match_buffer(D_ptr, (n, 32, {nd}), {dtype!r})
    T.device_entry()
    w = T.cta_id([n])
    tx = T.thread_id([32])
    a = T.alloc_local(({na},), "uint32")
    b = T.alloc_local(({nb},), "uint32")
    c = T.alloc_local(({nc},), {dtype!r})
    d = T.alloc_local(({nd},), {dtype!r})
    e = T.alloc_local((1,), "uint32")
{loads}
    e[0] = E[w, tx]
    T.ptx["{op}"]({group("d", nd)}, {group("a", na)}, {group("b", nb)}, {group("c", nc)}{tail})
    for i in range({nd}):
        D[w, tx, i] = d[i]
"""


def mma(op, a, b, c, per, half=False, floats=True, meta=None, select=0, ka=None, **options):
    """D codes of a batch: a (n, 16, K), b (n, K, 8), c (n, 16, 8) as codes; K of a may be halved for sparse forms."""
    n, k, bits = len(a), b.shape[1], 32 // per
    pa = a_places(ka or k, per)
    ra = np.stack([pack(x, pa, bits) for x in a])
    rb = np.stack([pack(x, b_places(k, per), bits) for x in b])
    if half:
        pc = [[(G + 8 * i, 2 * Q + e) for e in range(2)] for i in range(2)]
    else:
        pc = [[at] for at in c_places()]
    rc = np.stack([pack(x, pc, 16 if half else 32) for x in c])
    rd = np.zeros_like(rc)
    meta = np.zeros((n, 32), "uint32") if meta is None else meta
    text = kernel(
        op, ra.shape[2], rb.shape[2], rc.shape[2], rd.shape[2], floats, f", e[0], {select}" if ".sp" in op else ""
    )
    view = "float32" if floats else "uint32"
    exe = tirx.compile(tirx.from_source(text), target="cpu")
    exe(ra, rb, rc.view(view), meta, rd.view(view), **options)
    d = np.zeros(c.shape, "uint32")
    for i, elements in enumerate(pc):
        for e, at in enumerate(elements):
            d[(slice(None), *at)] = rd[:, :, i] >> np.uint32(16 * e) & (0xFFFF if half else 0xFFFFFFFF)
    return d


FORMATS = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2, "s8": np.int8, "u8": np.uint8,
}  # fmt: skip
CODES = {1: "uint8", 2: "uint16", 4: "uint32"}


def some(shape, fmt, seed):
    x = np.random.default_rng(seed).integers(-8, 8, shape)
    if fmt == "u8":
        x = x + 8
    return x.astype(FORMATS[fmt])


def codes(x):
    return x.view(CODES[x.dtype.itemsize]).astype("uint32")


DENSE = [
    ("m16n8k8", "f32.f16.f16.f32", 8), ("m16n8k16", "f32.f16.f16.f32", 16), ("m16n8k8", "f32.bf16.bf16.f32", 8),
    ("m16n8k16", "f32.bf16.bf16.f32", 16), ("m16n8k4", "f32.tf32.tf32.f32", 4), ("m16n8k8", "f32.tf32.tf32.f32", 8),
    ("m16n8k32", "f32.e4m3.e4m3.f32", 32), ("m16n8k32", "f32.e5m2.e4m3.f32", 32), ("m16n8k32", "f32.e4m3.e5m2.f32", 32),
]  # fmt: skip


@pytest.mark.parametrize("numerics", ["fast", "hardware"])
@pytest.mark.parametrize("shape, types, k", DENSE)
def test_dense_floats(shape, types, k, numerics):
    _, at, bt, _ = types.split(".")
    a, b = some((3, 16, k), at, 1), some((3, k, 8), bt, 2)
    c = np.random.default_rng(3).integers(-50, 50, (3, 16, 8)).astype("float32")
    per = 4 // np.dtype(FORMATS[at]).itemsize
    op = f"mma.sync.aligned.{shape}.row.col.{types}"
    d = mma(op, codes(a), codes(b), codes(c), per, numerics=numerics).view("float32")
    np.testing.assert_array_equal(d, a.astype("float64") @ b.astype("float64") + c)


@pytest.mark.parametrize("numerics", ["fast", "hardware"])
@pytest.mark.parametrize("k", [8, 16])
def test_dense_half_accumulators(k, numerics):
    a, b, c = some((2, 16, k), "f16", 1), some((2, k, 8), "f16", 2), some((2, 16, 8), "f16", 3)
    op = f"mma.sync.aligned.m16n8k{k}.row.col.f16.f16.f16.f16"
    d = mma(op, codes(a), codes(b), codes(c), 2, half=True, floats=False, numerics=numerics)
    np.testing.assert_array_equal(d.astype("uint16").view("float16"), a.astype("float32") @ b.astype("float32") + c)


@pytest.mark.parametrize("sat", ["", ".satfinite"])
@pytest.mark.parametrize("at, bt", [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")])
@pytest.mark.parametrize("k", [16, 32])
def test_dense_integers(k, at, bt, sat):
    a, b = some((2, 16, k), at, 1), some((2, k, 8), bt, 2)
    c = np.random.default_rng(3).choice([2**31 - 3, -(2**31) + 2, 7, -9], (2, 16, 8)).astype("int32")
    d = mma(f"mma.sync.aligned.m16n8k{k}.row.col{sat}.s32.{at}.{bt}.s32", codes(a), codes(b), codes(c), 4, floats=False)
    exact = a.astype("int64") @ b.astype("int64") + c
    want = np.clip(exact, -(2**31), 2**31 - 1) if sat else (exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(d.view("int32"), want)


def test_dense_doubles():
    @T.prim_func
    def k(A: T.Buffer((8, 4), "float64"), B: T.Buffer((4, 8), "float64"), C: T.Buffer((8, 8), "float64")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        r = T.alloc_local((6,), "float64")
        r[0] = A[tx // 4, tx % 4]
        r[1] = B[tx % 4, tx // 4]
        r[2] = C[tx // 4, tx % 4 * 2]
        r[3] = C[tx // 4, tx % 4 * 2 + 1]
        T.ptx.mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64(r[4], r[5], r[0], r[1], r[2], r[3])
        C[tx // 4, tx % 4 * 2] = r[4]
        C[tx // 4, tx % 4 * 2 + 1] = r[5]

    rng = np.random.default_rng(0)
    a, b, c = rng.integers(-99, 99, (8, 4)), rng.integers(-99, 99, (4, 8)), rng.integers(-99, 99, (8, 8))
    got = c.astype("float64")
    tirx.compile(k, target="cpu")(a.astype("float64"), b.astype("float64"), got)
    np.testing.assert_array_equal(got, a @ b + c)


@pytest.mark.parametrize("at", ["f16", "bf16"])
@pytest.mark.parametrize("k, select", [(32, 0), (32, 1), (16, 0), (16, 1), (16, 2), (16, 3)])
def test_sparse(k, select, at):
    rng = np.random.default_rng(k + select)
    n, groups = 2, k // 4
    dense = np.zeros((n, 16, k), FORMATS[at])
    packed = some((n, 16, k // 2), at, 4)
    meta = np.zeros((n, 32), "uint32")
    for w in range(n):
        for row in range(16):
            for group in range(groups):
                i, j = sorted(rng.choice(4, 2, replace=False))
                dense[w, row, 4 * group + i], dense[w, row, 4 * group + j] = packed[w, row, 2 * group : 2 * group + 2]
                lane = row % 8 * 4 + (2 * select + group // 4 if k == 32 else select)
                meta[w, lane] |= np.uint32((i | j << 2) << (4 * (4 * (row // 8) + group % 4)))
    b = some((n, k, 8), at, 5)
    c = rng.integers(-50, 50, (n, 16, 8)).astype("float32")
    op = f"mma.sp.sync.aligned.m16n8k{k}.row.col.f32.{at}.{at}.f32"
    d = mma(op, codes(packed), codes(b), codes(c), 2, meta=meta, select=select, ka=k // 2).view("float32")
    np.testing.assert_array_equal(d, dense.astype("float32") @ b.astype("float32") + c)


# ---- recorded dot products -------------------------------------------------------------------------------------------

NAMES = ["f16", "bf16", "tf32", "e4m3", "e5m2", "f32"]
ACCUM = [(m, x) for m, x in load.records("accum") if m["op"].startswith("mma.")]


@pytest.mark.parametrize("index", range(len(ACCUM)), ids=[f"{m['op']}-{m['set']}" for m, _ in ACCUM])
def test_recorded_dot_products(index):
    m, x = ACCUM[index]
    half = m["fmt_c"] == 0
    at, bt = NAMES[m["fmt_a"]], NAMES[m["fmt_b"]]
    per = 4 // x["a"].dtype.itemsize
    n = len(x["c"]) // 8  # eight cases an instruction, on the diagonal
    a, b, c = np.zeros((n, 16, m["K"]), "uint32"), np.zeros((n, m["K"], 8), "uint32"), np.zeros((n, 16, 8), "uint32")
    for i in range(8):
        a[:, i], b[:, :, i], c[:, i, i] = x["a"][i::8], x["b"][i::8], x["c"][i::8]
    acc = "f16" if half else "f32"
    op = f"mma.sync.aligned.m16n8k{m['K']}.row.col.{acc}.{at}.{bt}.{acc}"
    d = mma(op, a, b, c, per, half=half, floats=not half, numerics="hardware")
    for i in range(8):
        np.testing.assert_array_equal(d[:, i, i], x["d"][i::8])


# ---- ldmatrix and its like -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_and_stmatrix(num, trans):
    regs = ", ".join(f"r[{i}]" for i in range(num))
    tail = ".trans" if trans else ""
    text = f"""
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer(({num * 8}, 8), "uint16"), R: T.Buffer((32, {num}), "uint32"), B: T.Buffer(({num * 8}, 8), "uint16")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    sm = T.alloc_shared(({num * 8}, 8), "uint16", align=16)
    out = T.alloc_shared(({num * 8}, 8), "uint16", align=16)
    r = T.alloc_local(({num},), "uint32")
    if tx < {num * 8}:
        for i in range(8):
            sm[tx, i] = A[tx, i]
    T.cuda.warp_sync()
    T.ptx["ldmatrix.sync.aligned.m8n8.x{num}{tail}.shared.b16"]({regs}, sm.ptr_to([tx % {num * 8}, 0]))
    for i in range({num}):
        R[tx, i] = r[i]
    T.ptx["stmatrix.sync.aligned.m8n8.x{num}{tail}.shared.b16"](out.ptr_to([tx % {num * 8}, 0]), {regs})
    T.cuda.warp_sync()
    if tx < {num * 8}:
        for i in range(8):
            B[tx, i] = out[tx, i]
"""
    a = np.random.default_rng(0).integers(0, 2**16, (num * 8, 8)).astype("uint16")
    r, b = np.zeros((32, num), "uint32"), np.zeros_like(a)
    tirx.compile(tirx.from_source(text), target="cpu")(a, r, b)
    for i in range(num):
        m = a[8 * i : 8 * i + 8]
        m = m.T if trans else m
        np.testing.assert_array_equal(r[:, i], m[G, 2 * Q] | m[G, 2 * Q + 1].astype("uint32") << np.uint32(16))
    np.testing.assert_array_equal(b, a)


BYTES = """
from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer(({rows}, 16), "uint8"), R: T.Buffer((32, {regs}), "uint32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    sm = T.alloc_shared(({rows}, 16), "uint8", align=16)
    r = T.alloc_local(({regs},), "uint32")
    for i in range({regs}):
        r[i] = R[tx, i]
    if tx < {rows}:
        for i in range(16):
            sm[tx, i] = A[tx, i]
    {sync}
    {body}
    T.cuda.warp_sync()
    for i in range({regs}):
        R[tx, i] = r[i]
    if tx < {rows}:
        for i in range(16):
            A[tx, i] = sm[tx, i]
"""


def bytes_of(body, a, r, sync="T.cuda.warp_sync()", **options):
    rows, regs = len(a), r.shape[1]
    names = ", ".join(f"r[{i}]" for i in range(regs))
    body = body.format(r=names, p=f"sm.ptr_to([tx % {rows}, 0])")
    text = BYTES.format(rows=rows, regs=regs, body=body, sync=sync)
    tirx.compile(tirx.from_source(text), target="cpu")(a, r, **options)
    return r.view("uint8").reshape(32, regs, 4)


def some_bytes(rows):
    return np.random.default_rng(rows).integers(0, 256, (rows, 16)).astype("uint8")


@pytest.mark.parametrize("num", [1, 2])
def test_ldmatrix_of_transposed_bytes(num):
    """Of the transposed matrix, lane l holds four elements of row l / 4, and as many of the row eight below."""
    a = some_bytes(16 * num)
    op = f'T.ptx["ldmatrix.sync.aligned.m16n16.x{num}.trans.shared.b8"]({{r}}, {{p}})'
    for check in (True, False):
        r = bytes_of(op, a.copy(), np.zeros((32, 2 * num), "uint32"), check=check)
        for i in range(num):
            m = a[16 * i : 16 * i + 16].T
            for h in range(2):
                want = m.reshape(2, 8, 4, 4)[h].reshape(32, 4)  # lane: row, group of four
                np.testing.assert_array_equal(r[:, 2 * i + h], want)


@pytest.mark.parametrize("num", [1, 2, 4])
def test_stmatrix_of_transposed_bytes(num):
    """The accumulator's places: rows l / 4 and eight below, two columns each; memory holds the columns."""
    a = some_bytes(8 * num)
    regs = np.random.default_rng(1).integers(0, 2**32, (32, num)).astype("uint32")
    want = np.zeros_like(a)
    b = regs.view("uint8").reshape(32, num, 4)
    for i in range(num):
        m = np.zeros((16, 8), "uint8")
        for h in range(2):
            for e in range(2):
                m[G + 8 * h, 2 * Q + e] = b[:, i, 2 * h + e]
        want[8 * i : 8 * i + 8] = m.T
    op = f'T.ptx["stmatrix.sync.aligned.m16n8.x{num}.trans.shared.b8"]({{p}}, {{r}})'
    for check in (True, False):
        got = a.copy()
        bytes_of(op, got, regs.copy(), check=check)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("bits, form", [(4, "b4x16_p64"), (6, "b6x16_p32")])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_of_packed_elements(num, bits, form):
    a = some_bytes(8 * num)
    op = f'T.ptx["ldmatrix.sync.aligned.m8n16.x{num}.shared.b8x16.{form}"]({{r}}, {{p}})'
    for check in (True, False):
        r = bytes_of(op, a.copy(), np.zeros((32, num), "uint32"), check=check)
        stream = np.unpackbits(a, axis=1, bitorder="little")[:, : 16 * bits].reshape(-1, 16, bits)
        values = (stream << np.arange(bits)).sum(2) << (2 if bits == 4 else 0)
        for i in range(num):
            np.testing.assert_array_equal(r[:, i], values[8 * i : 8 * i + 8].reshape(32, 4))


@pytest.mark.parametrize(
    "op, rows, regs",
    [
        ('ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8"]({r}, {p})', 16, 2),
        ('ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64"]({r}, {p})', 8, 1),
        ('stmatrix.sync.aligned.m16n8.x1.trans.shared.b8"]({p}, {r})', 8, 1),
    ],
)
def test_faults_of_matrices_of_bytes(op, rows, regs):
    def fault(body, **options):
        with pytest.raises(tirx.EmulationError) as e:
            bytes_of('T.ptx["' + body, some_bytes(rows), np.zeros((32, regs), "uint32"), **options)
        return e.value

    assert fault(op, sync="").kind == "race"
    shifted = op.replace("{p}", f"sm.ptr_to([tx % {rows}, 8])")
    assert fault(shifted).kind == "misaligned"
    behind = op.replace("{p}", f"sm.ptr_to([tx % {rows} + 1, 0])")
    assert fault(behind).kind == "out_of_bounds"


def test_movmatrix():
    @T.prim_func
    def k(A: T.Buffer((32,), "uint32"), B: T.Buffer((32,), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        r = T.alloc_local((2,), "uint32")
        r[0] = A[tx]
        T.ptx.movmatrix.sync.aligned.m8n8.trans.b16(r[1], r[0])
        B[tx] = r[1]

    a = np.random.default_rng(0).integers(0, 2**32, 32).astype("uint32")
    b = np.zeros_like(a)
    tirx.compile(k, target="cpu")(a, b)
    np.testing.assert_array_equal(b.view("uint16").reshape(8, 8), a.view("uint16").reshape(8, 8).T)


def reported(kernel, *arrays):
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(kernel, target="cpu")(*arrays)
    return e.value


def test_ldmatrix_faults():
    def made(start, guard):
        @T.prim_func
        def k(R: T.Buffer((32,), "uint32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([32])
            sm = T.alloc_shared((80,), "uint16", align=16)
            r = T.alloc_local((1,), "uint32")
            for i in range(80):
                if tx == 0:
                    sm[i] = T.uint16(i)
            T.cuda.warp_sync()
            r[0] = T.uint32(0)
            if tx < guard:
                T.ptx.ldmatrix.sync.aligned.m8n8.x1.shared.b16(r[0], sm.ptr_to([start + tx % 8 * 8]))
            R[tx] = r[0]

        return k

    out = np.zeros(32, "uint32")
    tirx.compile(made(0, 32), target="cpu")(out)
    e = reported(made(4, 32), out)
    assert e.kind == "misaligned" and e.buffer == "sm"
    e = reported(made(24, 32), out)
    assert e.kind == "out_of_bounds" and e.buffer == "sm"
    e = reported(made(0, 16), out)
    assert e.kind == "divergence" and len(e.lines) == 1


def test_ldmatrix_races_with_an_unordered_store():
    @T.prim_func
    def k(R: T.Buffer((32,), "uint32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((32, 2), "uint16", align=16)
        r = T.alloc_local((1,), "uint32")
        sm[tx, 0] = T.uint16(1)
        sm[tx, 1] = T.uint16(2)
        T.ptx.ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16(r[0], sm.ptr_to([tx % 8 * 4, 0]))
        R[tx] = r[0]

    e = reported(k, np.zeros(32, "uint32"))
    assert e.kind == "race" and e.buffer == "sm" and len(e.lines) == 2
