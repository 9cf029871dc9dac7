# SPDX-License-Identifier: Apache-2.0
"""Every kind of loop computes what Python computes: one thread runs the body, NumPy arrays are the reference."""

import numpy as np
import pytest

import tirx

KINDS = ("range", "T.unroll", "T.vectorized", "T.parallel", "T.serial")

BODIES = {
    "copy": "B[v] = A[v]",
    "shifted": "B[v + 1] = A[v]",
    "backwards": "B[15 - v] = A[v]",
    "strided": "B[2 * (v % 8)] = A[v]",
    "arithmetic": "B[v] = A[v] * 3 - v",
    "one element": "B[0] = B[0] + A[v]",
    "carried": "B[v + 1] = B[v] + A[v]",
    "read ahead": "B[v] = B[v + 1] + 1",
    "two stores": "B[v] = A[v] + 1\n        A[v] = B[v] * 2",
    "crossed stores": "B[v] = A[v + 1]\n        A[v] = 7",
    "branch": "if A[v] > 8:\n            B[v] = 1\n        else:\n            B[v] = A[v] - v",
    "invariant": "B[v] = A[3] + v",
    "store behind an invariant": "B[v] = B[5] + 1",
}
RANGES = ("8", "4, 8", "1, 9", "0", "5", "6, 0, -1", "0, 8, 2", "1")


def reference(body, a, b, turns):
    names = {"A": a, "B": b}
    for v in range(*turns):
        exec(body.replace("\n        ", "\n"), {}, {**names, "v": v})


def loop(kind, turns):
    if len(turns) == 3 and kind != "range":
        return f"{kind}({turns[0]}, {turns[1]}, step={turns[2]})"
    return f"{kind}({', '.join(map(str, turns))})"


@pytest.mark.parametrize("text", BODIES)
@pytest.mark.parametrize("turns", RANGES)
def test_turns(text, turns):
    turns = tuple(int(t) for t in turns.split(","))
    want = []
    for kind in KINDS:
        a, b = np.arange(16, dtype=np.int32) ** 2 % 17, np.arange(16, dtype=np.int32) + 20
        if not want:
            x, y = a.copy(), b.copy()
            reference(BODIES[text], x, y, turns)
            want = [x, y]
        f = tirx.from_source(
            '@T.prim_func\ndef k(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):\n'
            "    T.device_entry()\n    tx = T.thread_id([1])\n"
            f"    for v in {loop(kind, turns)}:\n        {BODIES[text]}\n"
        )
        tirx.compile(f, target="cpu")(a, b)
        assert a.tolist() == want[0].tolist(), kind
        assert b.tolist() == want[1].tolist(), kind


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_vectors_of_every_dtype(dtype, n, nvrtc):
    f = tirx.from_source(
        f'@T.prim_func\ndef k(A: T.Buffer((1024,), "{dtype}"), B: T.Buffer((1024,), "{dtype}")):\n'
        "    T.device_entry()\n    tx = T.thread_id([32])\n"
        f"    for v in T.vectorized({n}):\n        B[tx * {n} + v] = A[tx * {n} + v]\n"
    )
    a = (np.arange(1024) * 37 % 113).astype(dtype)
    b = np.zeros(1024, dtype)
    tirx.compile(f, target="cpu")(a, b)
    assert b[: 32 * n].tolist() == a[: 32 * n].tolist()
    assert not b[32 * n :].any()
    tirx.compile(f, target="cuda:sm_80")


@pytest.mark.parametrize(
    ("source", "target", "n"),
    [
        ("float16", "float32", 8),
        ("float32", "float16", 8),
        ("int8", "int32", 4),
        ("int32", "float32", 4),
        ("int8", "int8", 16),
    ],
)
def test_vector_arithmetic(source, target, n, nvrtc):
    f = tirx.from_source(
        f'@T.prim_func\ndef k(A: T.Buffer((256,), "{source}"), B: T.Buffer((256,), "{target}"), s: T.{target}):\n'
        "    T.device_entry()\n    tx = T.thread_id([16])\n"
        f"    for v in T.vectorized({n}):\n"
        f'        B[tx * {n} + v] = T.Cast("{target}", A[tx * {n} + v]) * s + T.Cast("{target}", v)\n'
    )
    a = (np.arange(256) % 11).astype(source)
    b = np.zeros(256, target)
    tirx.compile(f, target="cpu")(a, b, 3)
    want = a.astype(target) * 3 + (np.arange(256) % n).astype(target)
    assert b[: 16 * n].tolist() == want[: 16 * n].astype(target).tolist()
    tirx.compile(f, target="cuda:sm_80")


def test_a_misaligned_argument_is_refused_only_where_vectors_need_it():
    text = (
        '@T.prim_func\ndef k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):\n'
        "    T.device_entry()\n    tx = T.thread_id([16])\n    for v in {}(4):\n        B[tx * 4 + v] = A[tx * 4 + v]\n"
    )
    base = np.zeros(80, np.float32)
    start = 1 + (-(base.ctypes.data // 4)) % 4
    a, b = base[start : start + 64], np.zeros(64, np.float32)
    a[:] = np.arange(64)
    tirx.compile(tirx.from_source(text.format("range")), target="cpu")(a, b)
    assert b.tolist() == a.tolist()
    with pytest.raises(ValueError, match=r"Misaligned Tensor data on argument #0"):
        tirx.compile(tirx.from_source(text.format("T.vectorized")), target="cpu")(a, b)


def test_ids_through_two_dimensions():
    f = tirx.from_source(
        '@T.prim_func\ndef k(B: T.Buffer((3, 2, 256, 6), "int32")):\n'
        "    T.device_entry()\n    bx, by = T.cta_id([3, 2])\n    x, y, z = T.thread_id([8, 16, 2])\n"
        "    w = T.warp_id()\n    l = T.lane_id()\n    g = T.warpgroup_id()\n    wg = T.warp_id_in_wg()\n"
        "    tg = T.thread_id_in_wg()\n"
        "    t: T.let = x + 8 * y + 128 * z\n"
        "    B[bx, by, t, 0] = w\n    B[bx, by, t, 1] = l\n    B[bx, by, t, 2] = g\n    B[bx, by, t, 3] = wg\n"
        "    B[bx, by, t, 4] = tg\n    B[bx, by, t, 5] = bx * 2 + by\n"
    )
    b = np.full((3, 2, 256, 6), -1, np.int32)
    tirx.compile(f, target="cpu")(b)
    t = np.arange(256)
    for i in range(3):
        for j in range(2):
            want = np.stack([t // 32, t % 32, t // 128, t // 32 % 4, t % 128, np.full(256, i * 2 + j)], axis=-1)
            np.testing.assert_array_equal(b[i, j], want)


@pytest.mark.parametrize(("step", "wide"), [(4, True), (8, True), (2, False), (1, False)])
def test_slices_move_as_one_only_where_they_are_aligned(step, wide, nvrtc):
    f = tirx.from_source(
        '@T.prim_func\ndef k(A: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float16")):\n'
        "    T.device_entry()\n    tx = T.thread_id([1])\n"
        f"    for i in range(8):\n        B[i * {step}:i * {step} + 4] = A[i * {step}:i * {step} + 4]\n"
    )
    a, b = np.arange(256, dtype=np.float16), np.zeros(256, np.float16)
    exe = tirx.compile(f, target="cpu")
    exe(a, b)
    want = np.zeros(256, np.float16)
    want[: 7 * step + 4] = a[: 7 * step + 4] if step <= 4 else 0
    for i in range(8):
        want[i * step : i * step + 4] = a[i * step : i * step + 4]
    assert b.tolist() == want.tolist()
    assert ("uint2" in exe.source) == wide
    tirx.compile(f, target="cuda:sm_80")


def test_elements_that_are_vectors_need_their_alignment():
    f = tirx.from_source(
        '@T.prim_func\ndef k(A: T.Buffer((4,), "float32x4"), B: T.Buffer((4,), "float32x4")):\n'
        "    T.device_entry()\n    tx = T.thread_id([4])\n    B[tx] = A[tx] + A[tx]\n"
    )
    text = tirx.lower(f, target="cpu").script()
    assert 'A: T.Buffer((4,), "float32x4", align=16)' in text
