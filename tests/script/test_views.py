# SPDX-License-Identifier: Apache-2.0
"""Views: each method against NumPy's view of the same array, the reports that name them, and what they print."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from script.kernels import body, kernel, run

import tirx
from tirx.script import tirx as T

# expression over A of (4, 6, 8) int32 -> the same in NumPy
VIEWS = {
    "A.view(24, 8)": lambda a: a.reshape(24, 8),
    "A.view(-1)": lambda a: a.ravel(),
    "A.view(2, -1, 12)": lambda a: a.reshape(2, -1, 12),
    "A.view([8, 24])": lambda a: a.reshape(8, 24),
    "A.permute(2, 0, 1)": lambda a: a.transpose(2, 0, 1),
    "A.permute((1, 0, -1))": lambda a: a.transpose(1, 0, 2),
    "A.permute(1, 0, 2).view(6, 4, 2, 4)": lambda a: a.transpose(1, 0, 2).reshape(6, 4, 2, 4),
    "A.permute(2, 0, 1).view(8, 24)": lambda a: a.transpose(2, 0, 1).reshape(8, 24),
    "A.rearrange('(a b) c d -> b a (c d)', a=2)": lambda a: a.reshape(2, 2, 48).transpose(1, 0, 2),
    "A.rearrange('a b (c d) -> c (a b) d', d=4)": lambda a: a.reshape(24, 2, 4).transpose(1, 0, 2),
    "A.rearrange('a b c -> a (b c) 1')": lambda a: a.reshape(4, 48, 1),
    "A.sub[2]": lambda a: a[2],
    "A.sub[2, 1:4, ::2]": lambda a: a[2, 1:4, ::2],
    "A.sub[..., 3]": lambda a: a[..., 3],
    "A.sub[1:3, ..., 1::2]": lambda a: a[1:3, ..., 1::2],
    "A.sub[1:4, 0:5:2]": lambda a: a[1:4, 0:5:2],
    "A.sub[1:].sub[:, 2:].sub[0, 1]": lambda a: a[1:][:, 2:][0, 1],
    "A.sub[:, 3].view(8, 4)": None,  # no strides
    "A.sub[:, 3].permute(1, 0)": lambda a: a[:, 3].T,
    "A.tile(1, (2, 3))[1]": lambda a: a.reshape(4, 2, 3, 8)[:, 1],
    "A.tile(1, (2, 3))[:, 2]": lambda a: a.reshape(4, 2, 3, 8)[:, :, 2],
    "A.tile(-1, (2, 2, -1))[1, :, 0]": lambda a: a.reshape(4, 6, 2, 2, 2)[:, :, 1, :, 0],
    "A.tile(0, 2)[1, 1:]": lambda a: a.reshape(2, 2, 6, 8)[1, 1:],
    "A.chunk((2, 3, 4))[1, 2, 0]": lambda a: a[2:4, 4:6, 0:2],
    "A.chunk((2, 1, 4))[1, 3]": lambda a: a[2:4, :, 6:8],
    "A.chunk(2)[0]": lambda a: a[:2],
    "A.local()": lambda a: a.ravel(),
    "A.local(12, 16)": lambda a: a.reshape(12, 16),
    "A.view('int16')": lambda a: a.view(np.int16),
    "A.view('int64')": lambda a: a.view(np.int64),
    "A.sub[1, 2:4].view(dtype='uint8')": lambda a: np.ascontiguousarray(a[1, 2:4]).view(np.uint8),
    "A.view(96, 2, dtype='int32')": lambda a: a.reshape(96, 2),
    "A.with_dtype('uint32')": lambda a: a.view(np.uint32),
    "A.with_dtype('int16')": lambda a: a.ravel().view(np.int16)[:192].reshape(4, 6, 8),
    "A.get_flattened_buffer()": lambda a: a.ravel(),
    "A.sub[1, :, 5].get_flattened_buffer()": lambda a: a.ravel()[53 : 53 + 41],
    "T.match_buffer(A[1:3, 2:4, 0:8])": lambda a: a[1:3, 2:4],
    "T.match_buffer(A[1:3, 0:6, 0:8], (2, 48))": lambda a: a[1:3].reshape(2, 48),
}
LIMITS = {"int16": 1, "int64": 1, "uint8": 1, "uint32": 1}


def copy_of(expression: str, shape: tuple, dtype: str, where: str):
    """A kernel that copies the view into O, through A in global, shared or local memory."""
    indices = ", ".join(f"i{d}" for d in range(len(shape)))
    loops = f"for {indices} in T.grid({', '.join(map(str, shape))}):" if shape else "if True:"
    if where == "global":
        fill, name = "", "A"
    else:
        fill = f"M = T.alloc_{where}((4, 6, 8), 'int32')\n    M[:, :, :] = A"
        name = "M"
    text = f"""
@T.prim_func
def f(A: T.Buffer((4, 6, 8), "int32"), O: T.Buffer({shape}, "{dtype}")):
    T.device_entry()
    tx = T.thread_id([1])
    {fill}
    V = {expression.replace("A", name)}
    {loops}
        O[{indices if shape else "()"}] = V[{indices if shape else "()"}]
"""
    return tirx.from_source(text)


@pytest.mark.parametrize("where", ["global", "shared", "local"])
@pytest.mark.parametrize("expression", [e for e in VIEWS if VIEWS[e]])
def test_is_numpys_view(expression, where):
    a = np.random.default_rng(1).integers(-(2**31), 2**31, (4, 6, 8), dtype=np.int32)
    want = VIEWS[expression](a)
    f = copy_of(expression, want.shape, str(want.dtype), where)
    again = tirx.from_source(f.script())
    assert tirx.structural_equal(f, again)
    got = np.zeros(want.shape, want.dtype)
    tirx.compile(f, target="cpu")(a, got)
    np.testing.assert_array_equal(got, want)


def test_nvrtc_takes_the_views(nvrtc):
    for expression, where in zip([e for e in VIEWS if VIEWS[e]], itertools.cycle(["global", "shared", "local"])):
        want = VIEWS[expression](np.zeros((4, 6, 8), np.int32))
        f = copy_of(expression, want.shape, str(want.dtype), where)
        assert tirx.compile(f, target="cuda:sm_90a").cubin[:4] == b"\x7fELF", expression


def test_a_view_of_symbolic_sizes_multiplies_in_64_bits():
    @T.prim_func
    def f(a: T.handle, O: T.Buffer((1,), "int8")):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "int8")
        T.device_entry()
        tx = T.thread_id([1])
        V = A.sub[n - 1].sub[m - 2 : m]
        O[0] = V[1]

    assert 'T.Cast("int64", n - 1) * T.Cast("int64", m)' in f.script()
    text = tirx.compile(f, target="cuda:sm_90a").source
    assert "(int64_t)" in text
    o = np.zeros(1, np.int8)
    tirx.compile(f, target="cpu")(np.arange(12, dtype=np.int8).reshape(3, 4), o)
    assert o[0] == 11


def test_a_part_of_a_large_tensor_is_found_in_64_bits():
    @T.prim_func
    def f(A: T.Buffer((4, 2**30), "int8")):
        T.device_entry()
        tx = T.thread_id([4])
        V = A.sub[tx, 5:]
        V[1] = T.int8(1)

    assert 'T.Cast("int64", tx) * T.int64(1073741824)' in f.script()
    assert "(int64_t)tx * 1073741824" in tirx.compile(f, target="cuda:sm_90a").source


def test_a_view_stays_where_it_was_made():
    text = body("c: T.int32 = 3\nV = A.sub[c:c + 4]\nW = A.sub[c]\nc = 5\nB[tx] = V[0] + W")
    assert text.startswith("c: T.int32 = 3\nv: T.let[T.int32] = c\nV = T.decl_buffer((4,), ")
    a, b = run(kernel("c: T.int32 = 3\nV = A.sub[c:c + 4]\nc = 5\nB[tx] = V[0]"))
    assert (b == 3).all()


def test_printed_forms():
    assert body("V = A.view(8, 8)\nW = V.permute(1, 0)\nX = W.view(8, 2, 4)\nB[tx] = X[0, 0, 0]").split("\n")[:3] == [
        "V = A.view(8, 8)",
        "W = V.permute(1, 0)",
        'X = T.decl_buffer((8, 2, 4), "float32", data=W.data, strides=(1, 32, 8))',
    ]
    assert body('V = A.view("float16")\nW = A.view("float32x4")').split("\n") == [
        'V = A.view("float16")',
        'W = A.view("float32x4")',
    ]
    # what a method would not give again is printed in full
    for line in (
        'V = T.decl_buffer((8, 4), "float32", data=A.data)',
        'V = T.decl_buffer((64,), "float32", data=A.data, elem_offset=1)',
        'V = T.decl_buffer((8, 8), "float32", data=A.data, strides=(8, 1))',
        'V = T.decl_buffer((8, 8), "float32", data=A.data, align=16)',
        'V = T.decl_buffer((8, 8), "float32", data=A.data, layout=None)',
        'V = T.decl_buffer((128,), "float16", data=A.data, elem_offset=2)',
    ):
        assert body(line) == line


def test_unnamed_views_are_named_after_what_they_view():
    assert body("B[tx] = T.int32(A.view(8, 8)[tx // 8, tx % 8])").startswith("A_1 = A.view(8, 8)\n")


def test_attributes_of_a_view():
    seen = []

    def look(*values):
        seen.extend(values)

    kernel(
        "V = A.view(8, 8).sub[2:4, 3]\n"
        "look(V.shape, V.strides, V.elem_offset, V.byte_offset, V.scope(), V.dtype, V.name)\n"
        "look(V.elem_offset_of([1]), V.offset_of(1), V.data.dtype, V.data_alignment, V.allocated_addr, V.layout)\n"
        'W = T.decl_buffer((4,), "float16", data=A.data, byte_offset=6)\nlook(W.elem_offset, W.byte_offset)\n'
        'X = T.decl_buffer((4,), "float4_e2m1fn", data=A.data, byte_offset=6)\n'
        "look(X.elem_offset, X.view(4).byte_offset)",
        look=look,
    )
    assert seen == [(2,), (8,), 19, 76, "global", "float32", "V", 27, [27], "handle", 0, [], "default", 3, 6, 12, 6]
    assert isinstance(seen[4], T.MemoryScope)


def test_access_ptr_points_behind_the_first_element():
    text = body('p: T.let = A.view(8, 8).sub[1].access_ptr("r", offset=2)\nT.evaluate(p)')
    assert 'T.ptr_byte_offset(A_2.data, 40, "float32")' in text

    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4,), "float32")):
        T.device_entry()
        tx = T.thread_id([4])
        P = T.decl_buffer((4,), "float32", data=A.sub[8:].access_ptr("rw", offset=3))
        B[tx] = P[tx]

    b = np.zeros(4, np.float32)
    tirx.compile(f, target="cpu")(np.arange(64, dtype=np.float32), b)
    assert list(b) == [11, 12, 13, 14]


# ---- reports name the view and its own shape -----------------------------------------------------------------------


def report(f, *args):
    with pytest.raises(tirx.EmulationError) as info:
        tirx.compile(f, target="cpu")(*args)
    return info.value


@pytest.mark.parametrize(
    "declare, index, text",
    [
        ("V = A.view(8, 8)", "0, 8 + s", "V[0, 8]: index 8 of dimension 1 is outside 0..7"),
        ("V = A.view(8, 8).sub[2:4]", "2 + s, 0", "V[2, 0]: index 2 of dimension 0 is outside 0..1"),
        ("V = A.sub[8:12]", "-1 + s", "V[-1] is outside its 4 elements"),
        ("V = A.view(8, 8).permute(1, 0).sub[:, 1]", "8 + s", "V[8] is outside its 8 elements"),
        ("V = A.view('float16')", "128 + s", "V[128] is outside its 128 elements"),
        (
            "s_ = T.alloc_shared((16,))\nV = s_.view(4, 4)",
            "0, 4 + s",
            "V[0, 4]: index 4 of dimension 1 is outside 0..3",
        ),
        ("l = T.alloc_local((16,))\nV = l.view(4, 4)", "0, 4 + s", "V[0, 4]: index 4 of dimension 1 is outside 0..3"),
        (
            "p = T.SMEMPool()\nU = p.alloc((4,))\nV = p.alloc((4,))\np.commit()",
            "s - 1",
            "V[-1] is outside its 4 elements",
        ),
    ],
)
def test_an_index_outside_of_a_view(declare, index, text):
    f = kernel(f"{declare}\nV[{index}] = 1.0")
    e = report(f, np.zeros(64, np.float32), np.zeros(64, np.int32), 0)
    assert e.kind == "out_of_bounds"
    assert e.buffer == "V"
    assert text in str(e)


@pytest.mark.parametrize(
    "declare, index, text",
    [
        (
            "V = T.decl_buffer((99,), 'float32', data=A.data)",
            "70 + s",
            "V[70] is outside the memory of A, which has 256",
        ),
        ("V = T.decl_buffer((9,), 'float32', data=A.data, elem_offset=-4)", "s", "V[0] is outside the memory of A"),
        ("V = A.sub[s + 60:s + 68]", "7", "V[7] is outside the memory of A, which has 256 bytes"),
        ("S = T.alloc_shared((4,))\nV = T.decl_buffer((9,), data=S.data)", "5 + s", "V[5] is outside the memory of S"),
        ("S = T.alloc_local((4,))\nV = T.decl_buffer((9,), data=S.data)", "5 + s", "V[5] is outside its 4 elements"),
        (
            "P = T.SMEMPool()\nU = P.alloc((4,))\nP.commit()\nV = T.decl_buffer((9,), data=P.ptr)",
            "5 + s",
            "V[5] is outside the memory of P_arena, which has 16 bytes",
        ),
    ],
)
def test_a_view_that_is_larger_than_its_memory(declare, index, text):
    e = report(kernel(f"{declare}\nV[{index}] = 1.0"), np.zeros(64, np.float32), np.zeros(64, np.int32), 0)
    assert e.kind == "out_of_bounds" and e.buffer == "V"
    assert text in str(e)


def test_a_race_through_two_views_and_its_repaired_twin():
    text = "S = T.alloc_shared((64,))\nV = S.view(8, 8)\nW = V.permute(1, 0)\n"
    text += "V[tx // 8, tx % 8] = A[tx]\n{}A[tx] = W[tx // 8, tx % 8]"
    e = report(kernel(text.format("")), np.zeros(64, np.float32), np.zeros(64, np.int32), 0)
    assert e.kind == "race"
    a, _ = run(kernel(text.format("T.cuda.cta_sync()\n")))
    np.testing.assert_array_equal(a, np.arange(64).reshape(8, 8).T.ravel())


def test_elements_never_written_are_found_through_a_view():
    f = kernel("L = T.alloc_local((8,))\nL[0] = 1.0\nV = L.view(2, 4)\nA[tx] = V[0, 0] + V[s, 1]")
    assert report(f, np.zeros(64, np.float32), np.zeros(64, np.int32), 1).kind == "uninitialised"


# ---- alignment and zones -------------------------------------------------------------------------------------------


def test_an_element_of_vector_type_must_be_aligned():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4,), "float32"), k: T.int32):
        T.device_entry()
        tx = T.thread_id([1])
        V = T.decl_buffer((4,), "float32x2", data=A.ptr_to([k]))
        x: T.float32x2 = V[0]
        B[0:2] = x
        if k == 3:
            V[1] = x

    a, b = np.arange(64, dtype=np.float32), np.zeros(4, np.float32)
    tirx.compile(f, target="cpu")(a, b, 2)
    assert list(b[:2]) == [2, 3]
    e = report(f, a, b, 1)
    assert e.kind == "misaligned"
    assert "load of V[0]: the address is not a multiple of the size" in str(e)


def test_what_a_view_relies_on_is_checked_at_the_call():
    f = kernel('V = A.view("float32x4")\nif tx < 16:\n    V[tx] = V[tx] + V[tx]')
    assert "*(float4*)(A_ptr + tx * 4)" in tirx.compile(f, target="cuda:sm_90a").source
    a, _ = run(f)
    np.testing.assert_array_equal(a, 2 * np.arange(64))
    shifted = (
        np.zeros(65, np.float32)[1:] if np.zeros(65, np.float32).ctypes.data % 16 == 0 else np.zeros(64, np.float32)
    )
    if shifted.ctypes.data % 16:
        with pytest.raises(ValueError, match="expected data alignment=16 bytes"):
            tirx.compile(f, target="cpu")(shifted, np.zeros(64, np.int32), 0)


@pytest.mark.parametrize("offset, wide", [(0, True), (4, True), (1, False), (6, False)])
def test_a_vector_of_a_view_is_one_access_where_that_is_aligned(offset, wide):
    f = kernel(f"V = A.sub[{offset}:{offset + 8}]\nl = T.alloc_local((4,))\nl[0:4] = V[0:4]\nA[tx] = l[0]")
    assert ("*(float4*)(A_ptr" in tirx.compile(f, target="cuda:sm_90a").source) == wide


def test_views_of_the_host_zone():
    @T.prim_func
    def f(a: T.handle, B: T.Buffer((32,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        half: T.let = n // 2
        V = A.view(half, 2)
        W = V.permute(1, 0)
        T.device_entry()
        tx = T.thread_id([32])
        B[tx] = V[tx, 1] + W[0, tx]

    a, b = np.arange(64, dtype=np.float32), np.zeros(32, np.float32)
    tirx.compile(f, target="cpu")(a, b)
    np.testing.assert_array_equal(b, a[::2] + a[1::2])
    assert "A_ptr[tx * 2 + 1] + A_ptr[tx * 2]" in tirx.compile(f, target="cuda:sm_90a").source


def test_a_view_of_the_host_zone_in_two_regions():
    @T.function
    def f(A: T.Tensor((64,), T.float32)):
        V = A.view(8, 8)
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=8)):
            V[T.cuda.thread_idx("x"), 0] = 1.0
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=8)):
            V[0, T.cuda.thread_idx("x")] = 2.0

    a = np.zeros(64, np.float32)
    tirx.compile(f, target="cpu")(a)
    assert (a.reshape(8, 8)[0] == 2).all() and (a.reshape(8, 8)[1:, 0] == 1).all()


def test_volatile_storage():
    text = body("x = T.alloc_shared((64,), 'int32', annotations={'volatile': True})\nx[tx] = tx\nB[tx] = x[tx]")
    assert text.startswith('x = T.alloc_shared((64,), "int32", annotations={"volatile": True})')
    f = kernel("x = T.alloc_shared((64,), 'int32', annotations={'volatile': True})\nx[tx] = tx\nB[tx] = x[tx]")
    source = tirx.compile(f, target="cuda:sm_90a").source
    assert source.count("((volatile int*)x_ptr)[tx]") == 2
    assert (run(f)[1] == np.arange(64)).all()


def test_ends_of_a_slice_that_read_memory_or_have_an_effect():
    text = body("i: T.int32 = tx\nA[i:i + 4] = A[i + 4:i + 8]\nV = A.sub[i:i + 2]")
    assert "A[i:i + 4] = A[i + 4:i + 4 + 4]" in text and "T.decl_buffer((2,)" in text
    call = "T.cuda.atomic_add(B.ptr_to([0]), 1)"
    assert body(f"x = A.sub[{call}:{call} + 4]").count("atomic_add") == 2, "each call is made once"
    with pytest.raises(tirx.DiagnosticError, match="the slice of dimension 0 of buffer A has no constant length"):
        kernel(f"A[{call}:{call} + 4] = 1.0")


# ---- element types -------------------------------------------------------------------------------------------------

# body -> what A (float32) or B (int32) holds, from the bytes as NumPy reads them
TYPED = {
    "q = T.alloc_local((8,), 'float4_e2m1fn')\nfor i in range(8):\n    q[i] = T.float32(0.5) * i\n"
    "u = q.view('uint8')\nB[tx] = u[tx % 4]": ("B", [0x10, 0x32, 0x44, 0x65]),
    "u = T.alloc_local((4,), 'uint8')\nu[0:4] = 0x25\nu[2] = 0x71\nq = u.view('float4_e2m1fn').sub[2:6]\n"
    "A[tx] = T.cast(q[tx % 4], 'float32')": ("A", [3.0, 1.0, 0.5, 6.0]),
    "q = T.alloc_local((4, 6), 'float4_e2m1fn')\nq[:, :] = 1.5\nq[1, 2] = 4.0\np = q.permute(1, 0)\n"
    "A[tx] = T.cast(p[2, tx % 4], 'float32')": ("A", [1.5, 4.0, 1.5, 1.5]),
    "h = T.alloc_local((8,), 'float8_e4m3fn')\nh[0:8] = 1.5\nw = h.view('int32')\nB[tx] = w[tx % 2]": (
        "B",
        [0x3C3C3C3C] * 4,
    ),
    "h = T.alloc_local((4,), 'bfloat16')\nh[0:4] = 1.0\nw = h.view('uint32')\nB[tx] = T.cast(w[tx % 2], 'int32')": (
        "B",
        [0x3F803F80] * 4,
    ),
    "m = T.alloc_local((4,), 'bool')\nm[0:4] = True\nu = m.view('uint8')\nB[tx] = u[tx % 4]": ("B", [1] * 4),
    "d = T.alloc_local((4,), 'float64')\nd[0:4] = 1.0\nw = d.view('uint32')\nB[tx] = T.cast(w[tx % 4], 'int32')": (
        "B",
        [0, 0x3FF00000] * 2,
    ),
    "v = T.alloc_local((4,), 'float32x4')\nv[0:4] = 2.0\nv[1] = T.broadcast(3.0, 4)\n"
    "f = v.view('float32').view(4, 4)\nA[tx] = f[tx % 4, 3]": ("A", [2.0, 3.0, 2.0, 2.0]),
    "x: T.float32 = 1.0\ny = x.view('int32')\nB[tx] = y": ("B", [0x3F800000] * 4),
    "x: T.float32 = 1.0\ny = x.view('int32')\ny = 0x40000000\nA[tx] = x": ("A", [2.0] * 4),
}


@pytest.mark.parametrize("text", TYPED, ids=lambda t: t.partition("'")[2].partition("'")[0] or "cell")
def test_element_types(text, nvrtc):
    which, want = TYPED[text]
    f = kernel(text)
    got = run(f)["AB".index(which)]
    np.testing.assert_array_equal(got[:4], want)
    assert tirx.compile(f, target="cuda:sm_100a").cubin[:4] == b"\x7fELF"


def test_views_of_a_parameter_with_strides_that_the_call_knows():
    @T.prim_func
    def f(a: T.handle, O: T.Buffer((4, 8, 6), "int32")):
        s = T.int32()
        A = T.match_buffer(a, (8, 6), "int32", strides=[s, 1])
        T.device_entry()
        tx = T.thread_id([1])
        V = A.view(8, 2, 3)
        W = A.permute(1, 0)
        X = A.sub[2:6, ::2]
        Y = A.view("uint8")
        for i, j in T.grid(8, 6):
            O[0, i, j] = V[i, j // 3, j % 3]
            O[1, i, j] = W[j, i]
            O[2, i, j] = X[i // 2, j // 2]
            O[3, i, j] = Y[i, j * 4]

    a = np.arange(8 * 16, dtype=np.int32).reshape(8, 16)[:, :6]
    o = np.zeros((4, 8, 6), np.int32)
    tirx.compile(f, target="cpu")(a, o)
    i, j = np.ogrid[0:8, 0:6]
    for got, want in zip(o, (a, a, a[2 + i // 2, j // 2 * 2], a & 255), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_view_that_unknown_strides_cannot_give():
    with pytest.raises(tirx.DiagnosticValueError, match="no strides give it the shape"):

        @T.prim_func
        def f(a: T.handle):
            s = T.int32()
            A = T.match_buffer(a, (8, 6), "int32", strides=[s, 1])
            T.device_entry()
            A.view(48)


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_storage_reaches_from_the_pointer_to_the_last_element(scope):
    f = kernel(
        f"x = T.alloc_buffer((4, 5), 'int32', strides=(8, 1), elem_offset=3, scope='{scope}')\n"
        "if tx == 0:\n    for i, j in T.grid(4, 5):\n        x[i, j] = i * 10 + j\n"
        "    for i, j in T.grid(4, 5):\n        B[i * 5 + j] = x[i, j]"
    )
    _, b = run(f)
    np.testing.assert_array_equal(b[:20].reshape(4, 5), np.add.outer(np.arange(4) * 10, np.arange(5)))
    assert "int x_ptr[32];" in tirx.compile(f, target="cuda:sm_90a").source  # 3 + 3 * 8 + 4 + 1
    f = kernel(f"x = T.alloc_buffer((4,), 'int32', elem_offset=s, scope='{scope}')\nx[tx % 4] = 1")
    with pytest.raises(tirx.DiagnosticValueError, match="Can only handle constant size stack allocation for now"):
        tirx.compile(f, target="cpu")
