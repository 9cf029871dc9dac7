# SPDX-License-Identifier: Apache-2.0
"""FlattenBuffer: one element index for each access, 64 bits wide unless it provably fits in 32."""

import pytest
from lower_text import plain


def flat(after, body, params):
    lines = after("FlattenBuffer", "T.device_entry()\nbx = T.cta_id([8])\ntx = T.thread_id([64])\n" + body, params)[
        "main"
    ]
    return [line.strip() for line in plain(lines).splitlines()]


@pytest.mark.parametrize(
    ("shape", "index", "want"),
    [
        ("(8, 64)", "bx, tx", "bx * 64 + tx"),
        ("(8, 4, 16)", "bx, tx // 16, tx % 16", "bx * 64 + tx // 16 * 16 + tx % 16"),
        ("(8, 64, 1)", "bx, tx, 0", "bx * 64 + tx"),
        ("(64,)", "tx", "tx"),
        ("(3, 1073741824)", "bx % 3, tx", 'T.Cast("int64", bx % 3) * T.int64(1073741824) + T.Cast("int64", tx)'),
        ("(4, 1073741824)", "0, tx", "tx"),
        ("(2, 1073741823)", "bx % 2, tx", "bx % 2 * 1073741823 + tx"),
    ],
)
def test_constant_shapes(after, shape, index, want):
    got = flat(after, f"A[{index}] = 1", f'A: T.Buffer({shape}, "int32")')
    assert f"A[{want}] = 1" in got


@pytest.mark.parametrize(
    ("index", "want"),
    [
        ("bx, tx", 'T.Cast("int64", bx) * T.Cast("int64", n) + T.Cast("int64", tx)'),
        ("0, tx", "tx"),
    ],
)
def test_symbolic_rows_are_64_bits_wide_unless_the_index_is_small(after, index, want):
    body = 'n = T.int32()\nA = T.match_buffer(a, (8, n), "int32")\nT.device_entry()\n'
    body += f"bx = T.cta_id([8])\ntx = T.thread_id([64])\nA[{index}] = 1"
    got = plain(after("FlattenBuffer", body, "a: T.handle")["main"])
    assert f"A[{want}] = 1" in got


def test_a_single_int32_index_stays_as_it_is(after):
    body = 'n = T.int32()\nA = T.match_buffer(a, (n,), "int32")\nT.device_entry()\n'
    body += "bx = T.cta_id([T.ceildiv(n, 64)])\ntx = T.thread_id([64])\nif bx * 64 + tx < n:\n    A[bx * 64 + tx] = 1"
    assert "A[bx * 64 + tx] = 1" in plain(after("FlattenBuffer", body, "a: T.handle")["main"])


def test_a_wide_index_keeps_its_width(after):
    got = flat(after, 'A[T.Cast("int64", tx) + T.int64(4294967296) * i] = 1', 'A: T.Buffer((64,), "int32"), i: T.int64')
    assert 'A[T.Cast("int64", tx) + T.int64(4294967296) * i] = 1' in got, got


def test_strides_and_offsets(after):
    body = """
        A = T.match_buffer(a, (8, 64), "int32", strides=[100, 1])
        T.device_entry()
        bx = T.cta_id([8])
        tx = T.thread_id([64])
        sm = T.alloc_shared((256,), "float32")
        half = T.decl_buffer((128,), "float16", data=sm.data, byte_offset=512, scope="shared")
        quarter = T.decl_buffer((64,), "float32", data=sm.data, elem_offset=64, scope="shared")
        half[tx] = T.float16(1)
        quarter[tx] = T.float32(1)
        A[bx, tx] = 1
    """
    got = after("FlattenBuffer", body, "a: T.handle")["main"]
    assert "[tx + 256] = " in got, got
    assert "[tx + 64] = " in got, got
    assert "[bx * 100 + tx] = 1" in got, got


def test_vector_slices(after):
    got = flat(
        after, "B[bx, tx * 4:tx * 4 + 4] = A[bx, tx * 4:tx * 4 + 4]", "A: T.Buffer((8, 256)), B: T.Buffer((8, 256))"
    )
    assert "B[bx * 256 + tx * 4:bx * 256 + tx * 4 + 4] = A[bx * 256 + tx * 4:bx * 256 + tx * 4 + 4]" in got


def test_a_loop_bound_that_reads_memory_is_taken_before_the_loop(after):
    got = flat(after, "for i in T.serial(A[tx]):\n    A[i] = 2", 'A: T.Buffer((64,), "int32")')
    i = next(k for k, line in enumerate(got) if line.startswith("for i"))
    assert got[i - 1].endswith("= A[tx]"), got
    assert got[i] == f"for i in range({got[i - 1].split(':')[0]}):", got


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('B = T.alloc_buffer((4,), "int32")\nB[0] = 1',
         "5:9: error: Cannot allocate global memory when targeting CUDA. You must pass all global arrays as input "
         "instead\n"
         '    B = T.alloc_buffer((4,), "int32")\n'
         "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
        ('B = T.alloc_local((m,), "int32")\nB[0] = 1',
         "5:9: error: Can only handle constant size stack allocation for now: 'B' has extent m\n"
         '    B = T.alloc_local((m,), "int32")\n'
         "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
        ('B = T.alloc_shared((0,), "int32")\nA[0] = 1',
         "5:9: error: 'B' has extent 0: an allocation has at least one element\n"
         '    B = T.alloc_shared((0,), "int32")\n'
         "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
        ('B = T.alloc_shared((65536, 65536), "int32")\nB[0, 0] = 1',
         "5:9: error: buffer 'B' is too large\n"
         '    B = T.alloc_shared((65536, 65536), "int32")\n'
         "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"),
        ("for i in T.serial(0, 4, step=m):\n    A[i] = 1",
         "5:14: error: the sign of the loop step m is not known\n"
         "    for i in T.serial(0, 4, step=m):\n"
         "             ^^^^^^^^^^^^^^^^^^^^^^\n"
         "  help: use a constant step"),
    ],
)  # fmt: skip
def test_refused(refused, body, message):
    got = refused("T.device_entry()\ntx = T.thread_id([64])\n" + body, 'A: T.Buffer((64,), "int32"), m: T.int32')
    assert got == message
