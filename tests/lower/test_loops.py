# SPDX-License-Identifier: Apache-2.0
"""UnrollLoop: copies, pragmas, vectors, and what simplification leaves of statements (lowering.md 4.5, 4.10, 4.11)."""

import pytest
from lower_text import plain

HEAD = "T.device_entry()\nbx = T.cta_id([8])\ntx = T.thread_id([64])\n"


def shaped(after, body, params='A: T.Buffer((512,), "float32"), B: T.Buffer((512,), "float32"), m: T.int32'):
    got = after("UnrollLoop", HEAD + body, params)["main"]
    i = got.index("T.device_entry(")
    kept = [line for line in got[i:].splitlines()[1:] if not line.startswith(("bx: T.let", "tx: T.let"))]
    return plain("\n".join(kept))


@pytest.mark.parametrize(
    ("loop", "want"),
    [
        ("T.unroll(3)", [0, 1, 2]),
        ("T.unroll(2, 5)", [2, 3, 4]),
        ("T.unroll(7, -1, step=-3)", [7, 4, 1]),
        ("T.unroll(0)", []),
        ("T.unroll(5, 2)", []),
    ],
)
def test_unrolled_turns_are_pythons(after, loop, want):
    got = shaped(after, f"for i in {loop}:\n    B[i] = 1.0\nA[0] = 0.0")
    assert got == "\n".join([f"B[{i}] = T.float32(1.0)" for i in want] + ["A[0] = T.float32(0.0)"])


def test_copies_have_variables_and_buffers_of_their_own(after):
    body = """
for i in T.unroll(2):
    r = T.alloc_local((2,), "float32")
    x: T.let = A[i]
    r[0] = x
    B[i] = r[0]
"""
    assert shaped(after, body) == (
        'r = T.alloc_local((2,), "float32")\n'
        "x: T.let[T.float32] = A[0]\n"
        "r[0] = x\n"
        "B[0] = r[0]\n"
        'r_1 = T.alloc_local((2,), "float32")\n'
        "x_1: T.let[T.float32] = A[1]\n"
        "r_1[0] = x_1\n"
        "B[1] = r_1[0]"
    )


@pytest.mark.parametrize("jump", ["break", "continue"])
def test_a_loop_with_a_jump_stays_a_loop(after, jump):
    got = shaped(after, f"for i in T.unroll(4):\n    if A[i] > 0.0:\n        {jump}\n    B[i] = 1.0")
    assert got.startswith("for i in T.serial(4, unroll=True):\n")
    assert f"        {jump}\n" in got


def test_a_jump_of_an_inner_loop_is_its_own(after):
    got = shaped(
        after,
        "for i in T.unroll(2):\n    for j in range(9):\n        if A[j] > 0.0:\n            break\n    B[i] = 1.0",
    )
    assert got.count("for j") == 2
    assert got.count("break") == 2
    assert "unroll" not in got


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("for v in T.vectorized(4):\n    B[tx * 4 + v] = A[tx * 4 + v]",
         "B[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4]"),
        ("for v in T.vectorized(4):\n    i: T.let = tx * 4 + v\n    B[i] = A[i] + 1.0",
         "B[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4] + T.Broadcast(T.float32(1.0), 4)"),
        ("for v in T.vectorized(8):\n    B[tx * 8 + v] = 1.0",
         "B[tx * 8:tx * 8 + 4] = T.Broadcast(T.float32(1.0), 4)\n"
         "B[tx * 8 + 4:tx * 8 + 4 + 4] = T.Broadcast(T.float32(1.0), 4)"),
        ("for v in T.vectorized(4, 8):\n    B[v] = 1.0", "B[4:8] = T.Broadcast(T.float32(1.0), 4)"),
        ("for v in T.vectorized(6):\n    B[tx * 6 + v] = 1.0",
         "B[tx * 6:tx * 6 + 2] = T.Broadcast(T.float32(1.0), 2)\n"
         "B[tx * 6 + 2:tx * 6 + 2 + 2] = T.Broadcast(T.float32(1.0), 2)\n"
         "B[tx * 6 + 4:tx * 6 + 4 + 2] = T.Broadcast(T.float32(1.0), 2)"),
        ("for v in T.vectorized(2):\n    B[tx * 2 + v] = T.Cast(\"float32\", v)",
         "B[tx * 2:tx * 2 + 2] = T.Cast(\"float32x2\", T.Ramp(0, 1, 2))"),
        ("for v in T.vectorized(2):\n    B[tx * 2 + v] = A[tx]", "B[tx * 2:tx * 2 + 2] = T.Broadcast(A[tx], 2)"),
    ],
)  # fmt: skip
def test_vectors(after, body, want):
    assert shaped(after, body) == want


def test_views_of_one_arena_that_do_not_meet(after):
    body = """
arena = T.alloc_shared((1024,), "float32")
s = T.decl_buffer((512,), "float32", data=arena.data, scope="shared")
t = T.decl_buffer((512,), "float32", data=arena.data, elem_offset=512, scope="shared")
for v in T.vectorized(4):
    s[tx * 4 + v] = t[tx * 4 + v]
for v in T.vectorized(4):
    s[tx * 4 + v] = s[tx * 4 + v + 4]
"""
    got = shaped(after, body)
    assert "s[tx * 4:tx * 4 + 4] = t[tx * 4 + 512:tx * 4 + 512 + 4]" in got
    assert got.count("for v in range(4):") == 0


@pytest.mark.parametrize(
    "statement",
    [
        "B[tx + v] = A[tx * 4 + v]",  # not aligned
        "B[tx * 4 + v] = A[tx * 4 + v + 1]",  # not aligned
        "B[v * 64 + tx] = 1.0",  # not contiguous
        "B[tx * 4 + 3 - v] = 1.0",  # backwards
        "if v < m:\n        B[tx * 4 + v] = 1.0",  # lanes differ
        "B[0] = A[tx * 4 + v]",  # all lanes to one element
        "B[tx * 4 + v] = B[tx * 8 + v]",  # may meet another turn's store
        "B[4 + v] = B[v + 5]",
        "B[tx * 4 + v] = B[0]",
        "B[tx * 4 + v] = T.if_then_else(v < m, A[tx * 4 + v], 0.0)",
        "B[m * tx + v] = 1.0",  # alignment not known
    ],
)
def test_what_cannot_be_a_vector_stays_a_serial_loop(after, statement):
    got = shaped(after, "for v in T.vectorized(4):\n    " + statement)
    assert got.startswith("for v in range(4):\n"), got
    assert ":" + "tx" not in got


def test_a_vector_of_a_parameter_records_its_alignment(after):
    params = 'A: T.Buffer((512,), "float16"), B: T.Buffer((512,), "float16"), C: T.Buffer((512,), "float16")'
    got = after(
        "SplitHostDevice", HEAD + "for v in T.vectorized(8):\n    B[tx * 8 + v] = A[tx * 8 + v]\nC[tx] = A[tx]", params
    )
    assert "B[tx * 8:tx * 8 + 8] = A[tx * 8:tx * 8 + 8]" in got["k_kernel"]


def test_facts_of_branches_and_exits(after):
    body = """
if tx >= 32:
    return
if tx < 32:
    B[tx] = 1.0
if bx * 64 + tx < 1000:
    B[tx] = 2.0
if tx > 40:
    B[tx] = 3.0
"""
    assert shaped(after, body) == "if tx >= 32:\n    return\nB[tx] = T.float32(1.0)\nB[tx] = T.float32(2.0)"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("for i in range(1):\n    B[tx + i] = 1.0", "B[tx] = T.float32(1.0)"),
        ("for i in range(5, 5):\n    B[i] = 1.0\nB[0] = 0.0", "B[0] = T.float32(0.0)"),
        ("if T.bool(False):\n    B[0] = 1.0\nelse:\n    B[0] = 2.0", "B[0] = T.float32(2.0)"),
        ("B[tx] = B[tx]\nA[tx] = 1.0", "A[tx] = T.float32(1.0)"),
        ("x: T.let = tx * 3\nA[tx] = 1.0", "A[tx] = T.float32(1.0)"),
        ("x: T.let = A[tx]\nA[tx] = 1.0", "x: T.let[T.float32] = A[tx]\nA[tx] = T.float32(1.0)"),
        ("T.evaluate(tx + 1)\nA[tx] = 1.0", "A[tx] = T.float32(1.0)"),
        ("B[(tx * 4 + bx) // 4 * 4 % 4] = 1.0", "B[0] = T.float32(1.0)"),
    ],
)
def test_simplified_statements(after, body, want):
    assert shaped(after, body) == want


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("for i in T.unroll(m):\n    B[i] = 1.0",
         "6:14: error: Cannot unroll non-constant loop\n    for i in T.unroll(m):\n             ^^^^^^^^^^^\n"
         "  help: use range(n), or T.serial(n, unroll=4)"),
        ("for i in T.unroll(100000):\n    B[0] = 1.0",
         "6:14: error: T.unroll copies at most 65536 turns, this loop has 100000\n    for i in T.unroll(100000):\n"
         "             ^^^^^^^^^^^^^^^^\n  help: use T.serial(n, unroll=4)"),
        ("for i in T.vectorized(m):\n    B[i] = 1.0",
         "6:14: error: Failed to vectorize loop with extent m\n    for i in T.vectorized(m):\n"
         "             ^^^^^^^^^^^^^^^\n"
         "  help: T.vectorized needs constant bounds"),
        ("for i in T.vectorized(4):\n    if A[i] > 0.0:\n        break\n    B[i] = 1.0",
         "6:14: error: break inside a T.vectorized loop\n    for i in T.vectorized(4):\n"
         "             ^^^^^^^^^^^^^^^\n  help: use T.serial"),
    ],
)  # fmt: skip
def test_refused(refused, body, message):
    params = 'A: T.Buffer((512,), "float32"), B: T.Buffer((512,), "float32"), m: T.int32'
    assert refused(HEAD + body, params) == message


def test_a_chain_of_bindings_stays_small(after):
    chain = "".join(f"    x{i}: T.let = x{i - 1} * x{i - 1} + 1\n" for i in range(1, 40))
    got = shaped(after, f"for v in T.vectorized(4):\n    x0: T.let = v + m\n{chain}    B[v] = T.Cast('float32', x39)")
    assert 100 < len(got) < 30000
