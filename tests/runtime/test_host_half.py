# SPDX-License-Identifier: Apache-2.0
"""The host half of a function: several device regions with statements around and between them, packed calls, host
functions without a region, and how long loops are stopped."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T


def compiled(text: str, **options):
    f = tirx.from_source(text)
    lowered = tirx.lower(f, "cuda:sm_90a")
    assert tirx.structural_equal(tirx.from_source(f.script()), f)
    assert tirx.structural_equal(tirx.from_source(lowered.script()), lowered)
    return tirx.compile(f, target="cpu", **options)


def run(body: str, *args, params: str = 'A: T.Buffer((64,), "int32"), n: T.int32', ret: str = "", dialect="prim_func"):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return compiled(f"@T.{dialect}\ndef f({params}){ret}:\n{lines}")(*args)


REGION = """
with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
    tx = T.cuda.thread_idx("x")
    A[tx] = x
"""


def value_of(body: str, n: int, dialect: str = "prim_func") -> int:
    """What the host variable x is when the region is launched."""
    a = np.zeros(64, np.int32)
    run(body.strip("\n") + REGION, a, n, dialect=dialect)
    assert (a == a[0]).all()
    return int(a[0])


def python_value(body: str, n: int) -> int:
    names = {"n": n}
    plain = body.replace(": T.int32", "").replace(": T.let", "")
    exec(plain.strip("\n"), names)
    return names["x"]


BODIES = {
    "a binding": "x = n * 3 + 1",
    "a variable": "x: T.int32 = n\nx = x * x",
    "sums": "x = 0\nfor i in range(n):\n    x = x + i",
    "break": "x = 0\nfor i in range(100):\n    if i == n:\n        break\n    x = x + i",
    "continue": "x = 0\nfor i in range(n):\n    if i % 3 == 1:\n        continue\n    x = x + i",
    "down": "x = 0\nfor i in range(n, -n, -2):\n    x = x * 2 + i",
    "while": "x = n\nwhile x < 100:\n    x = x + x // 2 + 1",
    "while with both": """
x = 0
k: T.int32 = 0
while True:
    k = k + 1
    if k % 2 == 0:
        continue
    if k > n:
        break
    x = x + k
""",
    "nested": """
x = 0
for i in range(n):
    for j in range(i, 20):
        if j > i + 3:
            break
        if (i + j) % 2 == 0:
            continue
        x = x + i * j
    x = x + 1
""",
    "branches": "if n > 3:\n    x = 5\nelse:\n    x = n - 1",
    "swap": "x = 1\ny: T.int32 = n\nfor i in range(3):\n    x, y = y, x + y",
    "loads are taken when they stand": "x = n\ny: T.let = x + 0\nx: T.int32 = 7\nx = x + 1\nx = y * 100 + x",
    "a step": "x = 0\nfor i in range(0, n, 3):\n    x = x + i",
}


@pytest.mark.parametrize("dialect", ["prim_func", "function"])
@pytest.mark.parametrize("name", BODIES)
def test_host_statements_compute_what_python_does(name, dialect):
    for n in (0, 1, 5, 11):
        assert value_of(BODIES[name], n, dialect) == python_value(BODIES[name], n), n


def test_the_last_turn_of_a_loop_does_not_wrap():
    assert value_of("x = 0\nfor i in range(2147483640, 2147483647, 5):\n    x = x + 1", 0) == 2


def test_regions_in_a_loop_see_the_variables_of_their_turn():
    a = np.zeros(64, np.int32)
    run(
        """
x = 1
while x < n:
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=x)):
        tx = T.cuda.thread_idx("x")
        A[tx] = A[tx] + x
    x = x * 2
if x > 10:
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1)):
        A[63] = x
""",
        a,
        30,
    )
    want = np.zeros(64, np.int32)
    for x in (1, 2, 4, 8, 16):
        want[:x] += x
    want[63] = 32
    np.testing.assert_array_equal(a, want)


@pytest.mark.gpu
def test_regions_in_a_loop_on_a_gpu():
    f = tirx.from_source("""
@T.prim_func
def f(A: T.Buffer((256,), "int32"), n: T.int32):
    width: T.int32 = 256
    while width > n:
        width = width // 2
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=width)):
            i = T.cuda.thread_idx("x")
            A[i] = A[i] + A[i + width]
""")
    a = tirx.tensor(np.arange(256, dtype=np.int32), tirx.cuda())
    tirx.compile(f, target="cuda")(a, 1)
    assert a.numpy()[0] == 255 * 128


def test_a_return_ends_the_host_half():
    body = """
if n < 0:
    return
with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
    A[T.cuda.thread_idx("x")] = n
for i in range(5):
    if i == n:
        return
with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
    A[T.cuda.thread_idx("x")] = 99
"""
    for n, want in ((-1, 0), (3, 3), (7, 99)):
        a = np.zeros(64, np.int32)
        run(body, a, n)
        assert (a == want).all(), n


@pytest.mark.parametrize(
    "message, error, text",
    [
        ('"n is small"', AssertionError, "n is small"),
        ('("ValueError", ["n is ", "small"])', ValueError, "n is small"),
    ],
)
def test_assertions_raise_what_they_name(message, error, text):
    body = f"assert n > 3, {message}{REGION.replace('= x', '= n')}"
    run(body, np.zeros(64, np.int32), 4)
    a = np.zeros(64, np.int32)
    with pytest.raises(error) as e:
        run(body, a, 3)
    assert str(e.value) == text and not a.any()


# ---- host functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ret, body, n, want",
    [
        ("int32", "return n * 2", 5, 10),
        ("int64", "return T.Cast('int64', n) * 2147483647", 5, 5 * 2147483647),
        ("bool", "return n > 3", 5, True),
        ("float32", "return T.Cast('float32', n) / 2", 5, 2.5),
        (
            "int32",
            "x: T.int32 = 1\nfor i in range(n):\n    x = x * 3\n    if x > 50:\n        return x\nreturn 0 - x",
            9,
            81,
        ),
        (
            "int32",
            "x: T.int32 = 1\nfor i in range(n):\n    x = x * 3\n    if x > 50:\n        return x\nreturn 0 - x",
            2,
            -9,
        ),
        ("uint8", "return n + 255", 5, 4),
    ],
)
def test_host_functions_return_values(ret, body, n, want):
    got = run(body, n, params="n: T.int32", ret=f" -> T.{ret}")
    assert got == want and type(got) is type(want)


# ---- packed calls ---------------------------------------------------------------------------------------------------


def test_packed_calls_get_tensors_numbers_and_strings_and_give_a_number():
    seen = []

    def choose(tensor, k, s, on, text):
        seen.append((tensor, k, s, on, text))
        tensor[:] = k
        return 40 + len(seen)

    exe = compiled(
        """
@T.prim_func
def f(A: T.Buffer((64,), "int32"), n: T.int32, s: T.float32):
    x = 0
    for i in range(n):
        x = x + T.call_packed("choose", A, i, s * 2, n > 1, "word")
    y: T.let = T.call_packed("choose", A, 7, s, False, "last")
    T.device_entry()
    tx = T.thread_id([64])
    A[tx] = A[tx] + x * 1000 + y
""",
        externs={"choose": choose},
    )
    a = np.zeros(64, np.int32)
    exe(a, 2, 1.5)
    assert [s[0] is a for s in seen] == [True] * 3
    assert [s[1:] for s in seen] == [(0, 3.0, True, "word"), (1, 3.0, True, "word"), (7, 1.5, False, "last")]
    assert (a == 7 + 83 * 1000 + 43).all()


def test_an_exception_of_a_packed_function_passes_and_stops_the_call():
    def fails(n):
        raise KeyError(n)

    exe = compiled(
        "@T.prim_func\ndef f(n: T.int32):\n    for i in range(10):\n        T.call_packed('fails', i + n)\n",
        externs={"fails": fails},
    )
    with pytest.raises(KeyError, match="5"):
        exe(5)


def test_a_packed_function_that_is_not_there():
    exe = compiled("@T.prim_func\ndef f(n: T.int32):\n    T.call_packed('no.such.function', n)\n")
    with pytest.raises(RuntimeError) as e:
        exe(5)
    assert str(e.value) == (
        "packed function 'no.such.function' is not registered: tirx.register_func(\"no.such.function\", f), or "
        'externs={"no.such.function": f} of tirx.compile'
    )


# ---- loops without end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    ["while True:\n    x = x + 1", "for i in range(2147483647):\n    for j in range(2147483647):\n        x = x + 1"],
)
def test_a_loop_can_be_interrupted(body):
    exe = compiled(
        "@T.prim_func\ndef f(n: T.int32):\n    x: T.int32 = n\n" + "".join(f"    {s}\n" for s in body.split("\n"))
    )

    def stop():
        time.sleep(0.2)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=stop)
    thread.start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            exe(1)
        assert time.monotonic() - started < 30
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)


# ---- parameters -----------------------------------------------------------------------------------------------------


def test_sizes_over_scalars_are_checked():
    exe = compiled("""
@T.prim_func
def f(A: T.Buffer(("k * 2", 3), "int32"), k: T.int32, B: T.Buffer(("n + k",), "int32")):
    n = T.int32()
    T.device_entry()
    tx = T.thread_id([32])
    if tx == 0:
        A[0, 0] = n
""")
    a = np.zeros((8, 3), np.int32)
    exe(a, 4, np.zeros(9, np.int32))
    assert a[0, 0] == 5
    signature = "f(A: Tensor([k * 2, 3], int32), k: int32, B: Tensor([n + k], int32))"
    for args, text in (
        (
            (a, 5, np.zeros(9, np.int32)),
            "Invalid A.shape[0] on argument #0 when calling:\n  `%s`,\n  expected k * 2 = 10, got 8",
        ),
        (
            (a, 4, np.zeros(3, np.int32)),
            "Invalid B.shape[0] on argument #2 when calling:\n  `%s`,\n  "
            "n would be -1, which is out of range for a size of type int32",
        ),
    ):
        with pytest.raises(ValueError) as e:
            exe(*args)
        assert str(e.value) == text % signature


@T.jit
def with_bias(A: T.Tensor((32,), T.float32), bias: T.Optional(T.Tensor((32,), T.float32)), N: T.constexpr):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    tx = T.cuda.thread_idx("x")
    A[tx] = A[tx] * N
    if T.constexpr(bias is not None):
        A[tx] = A[tx] + bias[tx]


def test_optional_tensors_present_and_absent():
    present = tirx.compile(with_bias.specialize(N=2), target="cpu")
    absent = tirx.compile(with_bias.specialize(N=2, bias=None), target="cpu")
    a, bias = np.ones(32, np.float32), np.arange(32, dtype=np.float32)
    present(a, bias)
    np.testing.assert_array_equal(a, 2 + bias)
    a = np.ones(32, np.float32)
    absent(a, None)
    np.testing.assert_array_equal(a, np.full(32, 2, np.float32))
    with pytest.raises(TypeError) as e:
        present(a, None)
    assert str(e.value) == (
        "Mismatched type on argument #1 when calling:\n  `with_bias(A: Tensor([32], float32), "
        "bias: Tensor([32], float32))`,\n  expected Tensor, got None"
    )
    with pytest.raises(TypeError) as e:
        absent(a, bias)
    assert str(e.value) == (
        "Mismatched type on argument #1 when calling:\n  `with_bias(A: Tensor([32], float32), bias: None)`,\n"
        "  expected None, got numpy.ndarray"
    )
