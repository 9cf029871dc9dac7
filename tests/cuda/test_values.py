# SPDX-License-Identifier: Apache-2.0
"""What kernels compute, on the emulator and, where there is one, on a GPU: integers against Python's, floats against
NumPy, functions against float64 within a bound; vectors, loops, lazy arms and warps against what they mean."""

from __future__ import annotations

import numpy as np
import pytest

import tirx

N = 256
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
HEAD = """
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([256])"""


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def run(request):
    """Runs the lines of a body with the arrays as buffers A, B, ... and gives back what they hold afterwards."""

    def call(body: str, *arrays: np.ndarray) -> list[np.ndarray]:
        params = ", ".join(f'{n}: T.Buffer(({a.size},), "{a.dtype}")' for n, a in zip("ABCD", arrays, strict=False))
        lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
        text = f"@T.prim_func\ndef k({params}):{HEAD}\n{lines}\n"
        exe = tirx.compile(tirx.from_source(text), target=request.param)
        device = tirx.cuda(0) if request.param == "cuda" else tirx.cpu()
        on = [tirx.runtime.tensor(a, device) for a in arrays]
        exe(*on, **({"check": False} if request.param == "cpu" else {}))  # division by zero and wide shifts are meant
        return [t.numpy() for t in on]

    return call


def integers(dtype: str, n: int = N) -> np.ndarray:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(7)
    edge = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 5, 7]
    if info.min < 0:
        edge += [-1, -2, -3, -7]
    wide = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    wide[: len(edge)] = edge
    wide[n // 2 :] = rng.integers(-9 if info.min < 0 else 0, 9, n - n // 2)
    return rng.permutation(wide)


def wrapped(value: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype[0] == "i" and value >> (bits - 1) else value


def divided(a: int, b: int, dtype: str, floors: bool) -> tuple[int, int]:
    if b == 0:
        return wrapped(-1, dtype), a
    if floors:
        return a // b, a % b
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return q, a - q * b


def shifted(a: int, n: int, dtype: str, left: bool) -> int:
    bits = np.iinfo(dtype).bits
    n = bits if n < 0 or n > bits else n
    return a << n if left else a >> n


BINARY = {
    "a + b": lambda a, b, t: a + b,
    "a - b": lambda a, b, t: a - b,
    "a * b": lambda a, b, t: a * b,
    "a // b": lambda a, b, t: divided(a, b, t, True)[0],
    "a % b": lambda a, b, t: divided(a, b, t, True)[1],
    "T.truncdiv(a, b)": lambda a, b, t: divided(a, b, t, False)[0],
    "T.truncmod(a, b)": lambda a, b, t: divided(a, b, t, False)[1],
    "a & b": lambda a, b, t: a & b,
    "a | b": lambda a, b, t: a | b,
    "a ^ b": lambda a, b, t: a ^ b,
    "a << b": lambda a, b, t: shifted(a, b, t, True),
    "a >> b": lambda a, b, t: shifted(a, b, t, False),
    "T.min(a, b)": lambda a, b, t: min(a, b),
    "T.max(a, b)": lambda a, b, t: max(a, b),
    "-a": lambda a, b, t: -a,
    "~a": lambda a, b, t: ~a,
    "T.abs(a)": lambda a, b, t: abs(a),
    "a // 3": lambda a, b, t: a // 3,
    "a % 3": lambda a, b, t: a % 3,
    "a // 8": lambda a, b, t: a // 8,
    "a % 8": lambda a, b, t: a % 8,
    "a * 3 // 3": lambda a, b, t: wrapped(a * 3, t) // 3,
    "T.popcount(a)": lambda a, b, t: bin(a & ((1 << np.iinfo(t).bits) - 1)).count("1"),
    "T.clz(a)": lambda a, b, t: np.iinfo(t).bits - (a & ((1 << np.iinfo(t).bits) - 1)).bit_length(),
    "T.fma(a, b, a)": lambda a, b, t: a * b + a,
    "T.cast(a + 1 > a, A_DTYPE)": lambda a, b, t: int(wrapped(a + 1, t) > a),
}


@pytest.mark.parametrize("dtype", INTS)
def test_integer_arithmetic(dtype, run):
    a, b = integers(dtype), integers(dtype)[::-1].copy()
    out = np.zeros(N * len(BINARY), dtype)
    lines = [f"C[tx + {i * N}] = {e.replace('A_DTYPE', repr(dtype))}" for i, e in enumerate(BINARY)]
    body = "a = A[tx]\nb = B[tx]\n" + "\n".join(lines)
    got = run(body, a, b, out)[2].reshape(-1, N)
    for i, (expression, f) in enumerate(BINARY.items()):
        want = [wrapped(f(int(x), int(y), dtype), dtype) for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(got[i], np.array(want, dtype), err_msg=expression)


FLOATS = ("float16", "float32", "float64")


def floats(dtype, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)
    x[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 65504.0, 1e-8, 300.0]
    with np.errstate(over="ignore"):
        return x.astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic_is_rounded_once(dtype, run):
    a, b = floats(dtype), np.roll(floats(dtype), 17)
    out = np.zeros(N * 6, dtype)
    body = "a = A[tx]\nb = B[tx]\n" + "\n".join(
        f"C[tx + {i * N}] = {e}" for i, e in enumerate(("a + b", "a - b", "a * b", "a / b", "T.sqrt(a)", "-a"))
    )
    got = run(body, a, b, out)[2].reshape(-1, N)
    with np.errstate(all="ignore"):
        for row, want in zip(got, (a + b, a - b, a * b, a / b, np.sqrt(a), -a), strict=True):
            np.testing.assert_array_equal(row, want)


def test_bfloat16_is_rounded_once(run):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(5)
    a, b, c = ((rng.standard_normal(N) * 8.0 ** rng.integers(-5, 5, N)).astype(ml_dtypes.bfloat16) for _ in range(3))
    expressions = ("a + b", "a - b", "a * b", "a / b", "-a", "T.abs(a)", "T.max(a, b)", "T.fma(a, b, c)")
    body = "a = A[tx]\nb = B[tx]\nc = C[tx]\n" + "\n".join(f"D[tx + {i * N}] = {e}" for i, e in enumerate(expressions))
    got = run(body, a, b, c, np.zeros(N * len(expressions), ml_dtypes.bfloat16))[3].reshape(-1, N)
    x, y, z = (v.astype(np.float64) for v in (a, b, c))
    for row, e, want in zip(
        got, expressions, (x + y, x - y, x * y, x / y, -x, abs(x), np.maximum(x, y), x * y + z), strict=True
    ):
        # float64 holds sums and products of 8-bit mantissas exactly, bar far apart exponents that do not occur here
        want = np.array([nearest(float(v), ml_dtypes.bfloat16) for v in want])
        np.testing.assert_array_equal(row.astype(np.float32), want.astype(np.float32), err_msg=e)


def nearest(v: float, dtype):
    """v rounded once: by way of float32 rounded to odd."""
    f = np.float32(v)
    if float(f) != v:
        if abs(float(f)) > abs(v):
            f = np.nextafter(f, np.float32(0))
        f = (f.view(np.uint32) | np.uint32(1)).view(np.float32)
    return f.astype(dtype)


SMALL = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3", "float8_e4m3fnuz", "float6_e2m3fn", "float6_e3m2fn")


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_small_floats(source, run):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = floats(source)
    lines = [f"B[tx + {i * N}] = T.cast(T.cast(A[tx], '{t}'), 'float32')" for i, t in enumerate(SMALL)]
    got = run("\n".join(lines), x, np.zeros(N * len(SMALL), np.float32))[1].reshape(-1, N)
    for row, name in zip(got, SMALL, strict=True):
        dtype = getattr(ml_dtypes, name)
        top = float(ml_dtypes.finfo(dtype).max)
        want = np.array([nearest(min(max(float(v), -top), top), dtype) for v in x]).astype(np.float32)
        if name.startswith("float6"):
            want[np.isnan(x)] = top  # they have no NaN
        np.testing.assert_array_equal(row, want, err_msg=name)


def test_min_and_max_ignore_nan(run):
    a, b = floats("float32"), np.roll(floats("float32"), 17)
    got = run("C[tx] = T.min(A[tx], B[tx])\nC[tx + 256] = T.max(A[tx], B[tx])", a, b, np.zeros(2 * N, np.float32))[2]
    np.testing.assert_array_equal(got[:N], np.fmin(a, b))
    np.testing.assert_array_equal(got[N:], np.fmax(a, b))


@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_to_integer_saturates(dtype, to, run):
    with np.errstate(over="ignore"):
        x = np.concatenate([floats(dtype)[: N // 2], (floats("float64")[N // 2 :] * 1e12).astype(dtype)])
    got = run(f"B[tx] = T.cast(A[tx], '{to}')", x, np.zeros(N, to))[1]
    info = np.iinfo(to)
    want = [
        0 if np.isnan(v) else info.max if v > info.max else info.min if v < info.min else int(v) for v in x.tolist()
    ]
    np.testing.assert_array_equal(got, np.array(want, to))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_integer_to_float_is_rounded_once(dtype, run):
    x = integers(dtype)
    x[:64] = (np.arange(64) + 1) * 2049 + (np.uint64(1) << np.uint64(11)).astype(x.dtype)
    half, single = np.zeros(N, np.float16), np.zeros(N, np.float32)
    _, h, f = run("B[tx] = T.cast(A[tx], 'float16')\nC[tx] = T.cast(A[tx], 'float32')", x, half, single)
    with np.errstate(over="ignore"):
        want = [np.float16(float(int(v))) for v in x]  # beyond 2^53 all is infinite
    np.testing.assert_array_equal(h, want)
    np.testing.assert_array_equal(f, x.astype(np.float32))


FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("float32", 1e-6), ("float64", 1e-14)])
def test_functions(dtype, tolerance, run):
    x = np.linspace(0.01, 9, N).astype(dtype)
    lines = [f"B[tx + {i * N}] = T.{name}(A[tx])" for i, name in enumerate(FUNCTIONS)]
    got = run("\n".join(lines), x, np.zeros(N * len(FUNCTIONS), dtype))[1].reshape(-1, N)
    for row, (name, f) in zip(got, FUNCTIONS.items(), strict=True):
        want = f(x.astype(np.float64)).astype(dtype)
        np.testing.assert_allclose(row, want, rtol=tolerance, atol=tolerance, err_msg=name)


def test_vectors_lazy_arms_and_loops(run):
    a = np.arange(1024, dtype=np.float32)
    h = (np.arange(4096) % 100).astype(np.float16)
    body = """
r = T.alloc_local((8,), "float16")
for v in T.vectorized(4):
    C[tx * 4 + v] = A[tx * 4 + v] * 2.0 + B[tx * 4 + v]
for v in T.vectorized(8):
    r[v] = B[tx * 8 + v]
for v in T.vectorized(8):
    B[tx * 8 + v + 2048] = r[v] + T.float16(1.0)
n: T.int32 = 0
for i in range(tx, 1000, 7):
    if i % 2 == 0:
        continue
    if i > 900:
        break
    n += i
D[tx] = n + T.if_then_else(tx > 0, D[tx - 1] * 0, 5)
"""
    _, got_h, c, d = run(body, a, h, np.zeros(1024, np.float32), np.zeros(N, np.int32))
    np.testing.assert_array_equal(c, a * 2 + h[:1024].astype(np.float32))
    np.testing.assert_array_equal(got_h[2048:], h[:2048] + np.float16(1))
    want = [sum(i for i in range(t, 901, 7) if i % 2) + (5 if t == 0 else 0) for t in range(N)]
    np.testing.assert_array_equal(d, want)


def test_cells_wrap_at_the_ends(run):
    body = """
x: T.int32 = 2147483647
x += 1
y: T.int32 = tx + 2147483600
y = y + 100
z: T.int32 = 0
while z < tx * 3:
    z += 7
w: T.int32 = 1
for i in range(40):
    w = w * 3
A[tx] = x
A[tx + 256] = y
A[tx + 512] = z
A[tx + 768] = w
A[tx + 1024] = T.cast(x < 0 and y - 1 < y, "int32")
"""
    got = run(body, np.zeros(5 * N, np.int32))[0].reshape(5, N)
    t = np.arange(N)
    want_y = (t + 2147483700).astype(np.int64).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(got[0], np.full(N, -(2**31)))
    np.testing.assert_array_equal(got[1], want_y)
    np.testing.assert_array_equal(got[2], (t * 3 + 6) // 7 * 7)
    np.testing.assert_array_equal(got[3], np.full(N, wrapped(3**40, "int32")))
    np.testing.assert_array_equal(got[4], want_y != -(2**31))


def test_warps_atomics_and_reductions(run):
    a = np.arange(N, dtype=np.int32)
    body = """
s = T.alloc_shared((8,), "int32")
B[tx] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[tx], 5, 32, 32)
B[tx + 256] = T.cuda.warp_sum(A[tx])
B[tx + 512] = T.cuda.cta_max(A[tx], 8, s.ptr_to([0]))
T.cuda.atomic_add(C.ptr_to([0]), A[tx])
D[tx] = T.cast(T.cuda.ballot_sync(0xFFFFFFFF, tx % 3 == 0), "int32")
"""
    _, b, c, d = run(body, a, np.zeros(3 * N, np.int32), np.zeros(1, np.int32), np.zeros(N, np.int32))
    np.testing.assert_array_equal(b[:N], a ^ 5)
    np.testing.assert_array_equal(b[N : 2 * N], np.repeat(a.reshape(8, 32).sum(1), 32))
    assert (b[2 * N :] == N - 1).all() and c[0] == a.sum()
    votes = [sum(1 << k for k in range(32) if (w * 32 + k) % 3 == 0) for w in range(8)]
    np.testing.assert_array_equal(d.view(np.uint32), np.repeat(np.array(votes, np.uint32), 32))


def test_dynamic_shared_memory_above_the_default(run):
    body = """
big = T.alloc_buffer((100 * 1024,), "uint8", scope="shared.dyn")
f = T.decl_buffer((25 * 1024,), "float32", data=big.data)
f[tx + 25000] = A[tx]
T.cuda.cta_sync()
B[tx] = f[25255 - tx]
"""
    a = np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(run(body, a, np.zeros_like(a))[1], a[::-1])


@pytest.mark.gpu
def test_a_forked_child_is_told():
    import multiprocessing

    tirx.runtime.tensor(np.zeros(1, np.float32), tirx.cuda(0))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()

    def child():
        try:
            tirx.runtime.tensor(np.zeros(1, np.float32), tirx.cuda(0))
            queue.put("nothing raised")
        except tirx.CUDAError as e:
            queue.put(str(e))

    p = context.Process(target=child)
    p.start()
    said = queue.get(timeout=60)
    p.join()
    assert said == (
        "CUDA was in use when this process was forked, and cannot be used in the child; "
        'start processes with the "spawn" or "forkserver" method'
    )
