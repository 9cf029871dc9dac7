# SPDX-License-Identifier: Apache-2.0
"""Kernels against the same text run by Python: names, loops, jumps, inline functions give Python's values."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from script.kernels import kernel, run

import tirx
from tirx.script import tirx as T

# Bodies that compute `r` from tx and s: as they stand they are Python, and a kernel's text.
BODIES = {
    "counting down": """
r = 0
for i in range(9, -1, -3):
    r = r * 10 + i
""",
    "run-time bounds and steps": """
r = 0
for i in range(tx % 5, s + 9, 2):
    r = r * 3 + i
for i in range(s + 7, tx % 4, -2):
    r = r + i
""",
    "swap": """
x = tx
y = s + 1
x, y = y, x
x, y = y + x, x - y
r = x * 100 + y
""",
    "swap in a loop": """
x = 0
y = 1
for i in range(tx % 10):
    x, y = y, x + y
r = x
""",
    "a store in a branch reaches the outer name": """
r = 1
if tx > 30:
    r = 2
    if tx > 40:
        r = r + 5
for i in range(3):
    if i == tx % 3:
        r += i * 100
""",
    "both arms bind": """
if tx < 9:
    q = tx * 2
elif tx < 20:
    q = tx * 3
else:
    q = s
r = q + 1
""",
    "the loop variable is rebound": """
r = 0
for i in range(5):
    i = i + 10
    r = r * 2 + i
    if tx > 3:
        i = i * 2
    r = r + i
""",
    "a parameter is rebound": """
r = s
for i in range(3):
    s = s + tx
    r = r + s
""",
    "the bound is taken once": """
n = tx % 7
r = 0
for i in range(n):
    n = n - 1
    r = r + 10
r = r + n
""",
    "while, break, continue": """
r = 0
i = 0
while True:
    i = i + 1
    if i % 3 == 0:
        continue
    if i > tx % 11:
        break
    r = r * 2 + i
""",
    "a loop under two conditions that all threads share": """
r = 0
c = s
while r < 3 and c == (c | s):
    r += 1
""",
    "nested loops and jumps": """
r = 0
for i in range(6):
    if i == tx % 6:
        continue
    for j in range(4):
        if j > i:
            break
        r = r + i * j
    if r > 20:
        break
""",
    "chained and augmented": """
x = y = tx * 3
x += 1
y -= x
x *= 2
y //= 3
x %= 7
y <<= 2
x |= 9
y ^= x
r = x * 1000 + y
""",
    "floor division and modulo": """
a = tx - 32
r = (a // 5) * 1000 + (a % 5) * 10 + a // -3 + a % -4
""",
    "comparison chains": """
r = 0
if 3 < tx <= 20 < 50:
    r = 1
elif 20 < tx < 40 != s:
    r = 2
""",
    "conditional expressions": """
r = tx if tx > s else (5 if tx == 1 else -tx)
""",
    "short circuit": """
r = 0
if tx != 0 and 100 // tx > 9:
    r = 1
if tx == 0 or 64 // tx < 4:
    r = r + 2
""",
    "builtins": """
r = abs(tx - 30) + min(tx, 7, s) * 100 + max(tx, s) + sum([tx, s, 3])
""",
    "a helper with results": """
def g(x, y=2):
    t = x * y
    return t + 1, t - 1
a, b = g(tx)
c, d = g(y=s, x=tx + 1)
r = a + b * 10 + c * 100 + d
""",
    "a helper stores outside": """
r = 0
def add(x):
    nonlocal r
    r = r + x
for i in range(4):
    add(i * tx)
""",
    "recursion": """
def power(x, n):
    if n == 0:
        return 1
    return x * power(x, n - 1)
r = power(tx % 5, 4)
""",
    "python sequences": """
r = 0
for k, v in enumerate([3, tx, s]):
    if k == 5:
        break
    r = r * 5 + v
""",
    "starred": """
a, *m, z = [1, tx, s, 4]
r = a + m[0] * 10 + m[1] * 100 + z * 1000
""",
    "comprehensions": """
xs = [tx * k for k in range(4)]
r = xs[3] - xs[1] + len(xs)
""",
}


def python_values(body: str, s: int) -> list[int]:
    code = "def f(tx, s):\n" + textwrap.indent(body, "    ") + "    return r\n"
    names: dict = {}
    exec(code, names)
    return [names["f"](tx, s) for tx in range(64)]


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_computes_what_python_does(name, dialect):
    body = BODIES[name]
    if name in ("a helper with results", "a helper stores outside", "recursion"):
        text = body.replace("def ", "@T.inline\ndef ")
    else:
        text = body
    f = kernel(text + "B[tx] = r", dialect)
    for s in (2, -3):
        _, b = run(f, s)
        np.testing.assert_array_equal(b, python_values(body, s))
    again = tirx.from_source(f.script())
    np.testing.assert_array_equal(run(again, -3)[1], python_values(body, -3))


def test_right_sides_of_elements_come_first():
    f = kernel("if tx < 32:\n    B[tx], B[tx + 32] = B[tx + 32], B[tx]")
    start = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(run(f, b=start)[1], np.roll(start, 32))


def test_integers_wrap_in_their_own_dtype():
    f = kernel("x: T.uint8 = T.cast(tx, 'uint8') - T.uint8(10)\nB[tx] = T.cast((x << 4) >> 4, 'int32')")
    want = (((np.arange(64) - 10) % 256 << 4) % 256) >> 4
    np.testing.assert_array_equal(run(f)[1], want)


def test_choice_promotes():
    f = kernel("A[tx] = T.if_then_else(tx < 3, tx, A[tx] + 0.5)")
    want = np.arange(64, dtype=np.float32) + np.where(np.arange(64) < 3, 0, 0.5).astype(np.float32)
    np.testing.assert_array_equal(run(f)[0], want)


def test_lets_keep_their_dtype():
    f = kernel("w: T.let[T.int64] = T.int64(3)\nB[tx] = T.cast((w * 2000000000 * tx) >> 3, 'int32')")
    want = ((3 * 2000000000 * np.arange(64, dtype=np.int64)) >> 3).astype(np.int32)
    np.testing.assert_array_equal(run(f)[1], want)


def test_calls_in_plain_helpers_are_not_dropped():
    def count(buf, tx):
        T.cuda.atomic_add(buf.ptr_to([0]), 1)
        T.evaluate(T.cuda.atomic_add(buf.ptr_to([1]), tx))

    _, b = run(kernel("count(B, tx)", count=count))
    assert b[0] == 64 and b[1] == 63 * 64 // 2


def test_bare_return_ends_the_thread():
    f = kernel("if tx % 2 == 1:\n    return\nB[tx] = tx")
    np.testing.assert_array_equal(run(f)[1], np.where(np.arange(64) % 2, 0, np.arange(64)))


def test_device_assertions():
    f = kernel('assert tx < s, "out of luck"\nB[tx] = 1')
    assert run(f, 64)[1].sum() == 64
    with pytest.raises(tirx.EmulationError, match="out of luck"):
        run(f, 60)


def test_locals_of_a_loop_start_anew():
    f = kernel("for i in range(3):\n    x: T.int32 = i\n    x = x + tx\n    B[tx] = B[tx] + x")
    np.testing.assert_array_equal(run(f)[1], 3 + 3 * np.arange(64))


def test_factories_give_one_kernel_per_call():
    def make(add):
        @T.prim_func
        def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32"), s: T.int32):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([64])
            B[tx] = tx + add

        return k

    kernels = [make(v) for v in (1, 5, -7)]
    for f, v in zip(kernels, (1, 5, -7), strict=True):
        np.testing.assert_array_equal(run(f)[1], np.arange(64) + v)
