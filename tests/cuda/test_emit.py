# SPDX-License-Identifier: Apache-2.0
"""The CUDA text, whole (tests/golden/cuda), and that NVRTC takes it for every architecture."""

from __future__ import annotations

import functools
import keyword
import re
from pathlib import Path

import pytest

import tirx
from tirx import _core
from tirx.module import core_of

ARCHS = ("sm_80", "sm_90a", "sm_100a")
HEAD = """
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])"""


def kernel(name: str, params: str, body: str) -> str:
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return f"@T.prim_func\ndef {name}({params}):{HEAD}\n{lines}\n"


def buf(name: str, dtype: str, n: int = 128) -> str:
    return f'{name}: T.Buffer(({n},), "{dtype}")'


KERNELS = {
    "loops": (
        ", ".join([buf("A", "int32"), "n: T.int32"]),
        """
acc: T.int32 = 0
for i in range(tx, 64, 32):
    acc += A[i]
for i in range(n, 0, -2):
    acc += i
for i in range(0, n, 3):
    acc = acc * 3
for i in T.serial(4, unroll=True):
    for j in T.serial(0, 8, unroll=2):
        acc += i * j
for i in T.serial(4, unroll=False):
    acc += i
for i in T.unroll(3):
    acc += i
for i in range(2147483640, 2147483647, 5):
    acc += i
for i in range(tx, n, 7):
    if i % 2 == 0:
        continue
    elif i > 5 and A[i] > 3:
        break
    else:
        acc -= 1
j = 0
while j < 10 and A[j] > 0:
    j += 1
A[tx] = acc + j
""",
    ),
    "lazy": (
        ", ".join([buf("A", "int32"), buf("B", "int32")]),
        """
B[tx] = T.if_then_else(tx > 0, A[tx - 1], 7) + T.if_then_else(tx > 3, 1, 2)
if tx > 0 and T.if_then_else(tx > 3, A[tx - 1], B[tx]) > 3:
    B[tx] = 1
if tx < 3 or A[tx - 3] == 0 and not (A[tx] != 1):
    return
while T.if_then_else(tx > 3, A[tx - 1], B[tx]) > 3:
    B[tx] = T.Select(A[tx] > 2, A[tx + 1], -A[tx])
""",
    ),
    "order": (
        ", ".join([buf("A", "int32"), buf("B", "int32")]),
        """
B[tx] = T.cuda.atomic_add(A.ptr_to([0]), 1)
B[tx] = A[0] + T.cuda.atomic_add(A.ptr_to([0]), 1) + A[0]
B[tx] = T.cuda.atomic_add(A.ptr_to([0]), 1) - T.cuda.atomic_add(A.ptr_to([1]), 2)
B[tx] = A[tx] + T.tvm_warp_shuffle_down(0xFFFFFFFF, A[tx], 1, 32, 32)
""",
    ),
    "integers": (
        ", ".join([buf("A", "int32"), buf("C", "int8"), buf("L", "int64"), "n: T.int32"]),
        """
x: T.int32 = A[tx]
A[tx] = x + 1 - x * n
A[tx + 1] = (tx * 4 + 3) // 3 + (tx - 5) // 3 + (tx - 5) % 8 + x // 4 + x % 5
A[tx + 2] = x // T.max(n, 1) + x // n + T.truncdiv(x, n) + T.truncmod(tx, 5)
A[tx + 3] = (x << tx) + (x << n) + (x >> 3) + (1 << tx)
A[tx + 4] = -x + T.abs(x) + (~x & 3 | 4 ^ x)
C[tx] = C[tx] * C[tx + 1] + C[tx + 2]
C[tx + 1] = -C[tx] + (C[tx] << 2)
L[tx] = L[tx] * 3 + T.cast(x, "int64") * 8
A[(x + tx) % 128] = 0
""",
    ),
    "literals": (
        ", ".join(
            [
                buf("A", "float32"),
                buf("D", "float64"),
                buf("I", "int32"),
                buf("L", "int64"),
                buf("U", "uint64"),
                buf("H", "float16"),
                buf("Q", "uint8"),
            ]
        ),
        """
A[0] = 0.1
A[1] = 1e-20
A[2] = 0.3333333432674408
A[3] = T.infinity("float32")
A[4] = -T.infinity("float32")
A[5] = -2.5
A[6] = 16777216.0
A[7] = A[8] * 2.0 - -3.0
D[0] = T.float64(0.1)
D[1] = T.float64(3.141592653589793)
D[2] = T.infinity("float64")
I[0] = -2147483648
L[0] = T.int64(-9223372036854775808)
L[1] = 5
U[0] = T.uint64(18446744073709551615)
H[0] = T.float16(1.5)
Q[0] = 255
""",
    ),
    "casts": (
        ", ".join(
            [
                buf("A", "float32"),
                buf("H", "float16"),
                buf("B", "bfloat16"),
                buf("E", "float8_e4m3fn"),
                buf("I", "int32"),
                buf("C", "int8"),
            ]
        ),
        """
H[tx] = A[tx] + H[tx]
B[tx] = B[tx] * B[tx + 1] + B[tx + 2]
E[tx] = A[tx]
A[tx] = T.cast(E[tx], "float32") + T.exp(A[tx])
H[tx + 1] = T.exp(H[tx]) / H[tx + 2]
I[tx] = T.cast(A[tx], "int32")
C[tx] = T.cast(H[tx], "int8")
B[tx + 1] = T.cast(I[tx], "bfloat16")
I[tx + 1] = T.reinterpret("int32", A[tx])
if T.cast(A[tx], "bool"):
    H[tx + 2] = T.cast(A[tx] > 1.0, "float16")
""",
    ),
    "vectors": (
        ", ".join([buf("A", "float32"), buf("H", "float16", 256), buf("C", "float32")]),
        """
r = T.alloc_local((8,), "float16")
for v in T.vectorized(4):
    C[tx * 4 + v] = A[tx * 4 + v] * 2.0 + T.exp(H[tx * 4 + v])
for v in T.vectorized(8):
    r[v] = H[tx * 8 + v]
for v in T.vectorized(8):
    H[tx * 8 + v] = r[v] + T.float16(1.0)
for v in T.vectorized(4):
    C[tx + v] = A[tx + v]
""",
    ),
    "shared": (
        ", ".join([buf("A", "float32"), buf("H", "float16")]),
        """
small = T.alloc_shared((32,), "float32")
arena = T.alloc_buffer((1024,), "uint8", scope="shared.dyn")
f = T.decl_buffer((64,), "float32", data=arena.data)
h = T.decl_buffer((64,), "float16", data=arena.data, byte_offset=256)
small[tx] = A[tx]
f[tx] = A[tx]
h[tx] = H[tx]
T.cuda.cta_sync()
A[tx] = f[31 - tx] + h[tx] + small[31 - tx]
""",
    ),
    "views": (
        ", ".join([buf("A", "float32"), buf("B", "int32"), "n: T.int32"]),
        """
V = A.view(8, 16)
W = V.permute(1, 0)
X = V.sub[n % 8, 4:12]
Y = A.view("float32x4")
Z = A.rearrange("(a b) -> b a", a=4)
s = T.alloc_shared((128,), "float32")
r = s.view("int32").tile(0, (4, 32))[tx % 4]
t = T.alloc_local((4, 4), "float32")
u = t.permute(1, 0)
u[1, 2] = W[tx % 16, 3]
Y[tx] = Y[tx] + Y[tx]
s[tx] = X[tx % 8] + t[2, 1] + Z[tx, 1]
T.cuda.cta_sync()
B[tx] = r[31 - tx]
""",
    ),
    "pool": (
        ", ".join([buf("A", "float32"), buf("H", "float16")]),
        """
pool = T.SMEMPool()
flags = pool.alloc((3,), "uint8")
f = pool.alloc((4, 32), "float32", align=128)
h = pool.alloc((64,), "float16")
f[tx % 4, tx] = A[tx]
h[tx] = H[tx]
flags[2] = T.uint8(1)
T.cuda.cta_sync()
A[tx] = f[3, 31 - tx] + h[tx] + flags[2]
pool.move_base_to(0)
again = pool.alloc((128,), "float16", align=16)
again[tx * 4:tx * 4 + 4] = H[tx * 4:tx * 4 + 4]
pool.commit()
""",
    ),
    "copies": (
        ", ".join([buf("A", "float32"), buf("B", "float32"), "n: T.int32"]),
        """
t = T.alloc_local((2, 100), "float32")
t[:, 0:100] = A[0:100]
t[0, 1:100] = t[0, 0:99]
t[1, 0:n] = 2.0
B[n:n + 100] = t[1, :]
B[0:128:2] = 1.0
B[0:4] = A[4:8]
""",
    ),
    "half": (
        ", ".join(
            [
                buf("half", "int32"),
                buf("uint", "uint32"),
                "template: T.int32",
                "größe: T.int64",
                "expf: T.float32",
                "tirx_x: T.bool",
            ]
        ),
        """
new: T.int32 = template + 1
threadIdx: T.let = new * 2
half[tx] = threadIdx + T.cast(größe, "int32")
uint[tx] = T.cast(T.exp(expf), "uint32")
if tirx_x:
    half[tx + 1] = 5
""",
    ),
    "fp4": (
        ", ".join([buf("A", "float4_e2m1fn"), buf("B", "float32")]),
        """
r = T.alloc_local((4,), "float4_e2m1fn")
r[1] = A[tx]
B[tx] = T.cast(r[1], "float32")
for v in T.vectorized(2):
    A[tx * 2 + v] = T.cast(B[tx * 2 + v], "float4_e2m1fn")
""",
    ),
    "forms": (
        ", ".join([buf("A", "int32"), buf("B", "int32"), buf("H", "float16")]),
        """
B[tx] = T.dp4a(A[tx], T.reinterpret("uint8x4", A[tx + 1]), 7)
v: T.let = A[T.ramp(tx * 4, 1, 4)]
T.masked_store(B, [T.ramp(tx * 4, 1, 4)], T.vectorcombine(T.vectorhigh(v), T.vectorlow(v)), T.ramp(tx, 1, 4) < 20)
B[tx] = T.masked_load(A, [tx], tx % 2 == 0, -1)
T.tvm_thread_allreduce(1, A[tx], A[tx] < 100, B[tx + 32], tx, op="min")
with T.If(T.filter(tx, 3, 9)):
    with T.Then():
        H[tx] = T.Add(H[tx], T.float16(1.0))
T.print_buffer(A.data, "int32", False, False, 1, 2)
""",
    ),
}


def compiled(name: str, target: str, **options):
    params, body = KERNELS[name]
    return tirx.compile(tirx.from_source(kernel(name, params, body)), target=target, **options)


@pytest.mark.parametrize("name", KERNELS)
def test_text(name, golden):
    golden(f"cuda/{name}.cu", compiled(name, "cuda:sm_90a").source)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", KERNELS)
def test_nvrtc_takes_it(name, arch, nvrtc):
    assert compiled(name, f"cuda:{arch}").cubin[:4] == b"\x7fELF"


def test_text_is_deterministic_and_the_same_for_all_targets():
    for name in KERNELS:
        texts = {compiled(name, target).source for target in ("cuda:sm_90a", "cuda:sm_90a", "cuda:sm_100a")}
        assert len(texts) == 1


def test_assert_prints_place_and_message_and_can_be_left_out(nvrtc):
    f = tirx.from_source(kernel("k", buf("A", "int32"), 'assert A[tx] > 0, "not 100% positive"\nA[tx] = 1'))
    exe = tirx.compile(f, target="cuda:sm_90a")
    lines = [line.strip() for line in exe.source.split("\n")]
    at = lines.index("if (!(A_ptr[tx] > 0)) {")
    assert re.fullmatch(r'printf\(".*:6: AssertionError: not 100%% positive\\n"\);', lines[at + 1])
    assert lines[at + 2 : at + 4] == ["__trap();", "}"]
    assert exe.cubin[:4] == b"\x7fELF"


SOURCE = """
#define SCALE 3
__device__ float scaled(float x) { return x * SCALE; }
"""


def test_injected_source_is_verbatim_and_its_macros_are_avoided(nvrtc):
    text = kernel(
        "k",
        buf("A", "float32"),
        "SCALE = A[tx]\nA[tx] = T.cuda.func_call('scaled', SCALE, source_code=SOURCE, return_type='float32')",
    )
    f = tirx.from_source(text, {"SOURCE": SOURCE})
    exe = tirx.compile(f, target="cuda:sm_90a")
    assert SOURCE in exe.source
    assert "float SCALE_1 = A_ptr[tx];" in exe.source
    assert "A_ptr[tx] = scaled(SCALE_1);" in exe.source
    assert exe.cubin[:4] == b"\x7fELF"


def test_nvrtc_errors_point_at_the_python_line(nvrtc):
    text = kernel(
        "k", buf("A", "float32"), "A[tx] = A[tx] + 1.0\nA[tx] = T.call_extern('float32', 'no_such_function', A[tx])"
    )
    with pytest.raises(tirx.CompileError) as caught:
        _ = tirx.compile(tirx.from_source(text), target="cuda:sm_90a").cubin
    assert re.search(r':7:\d+: error: identifier "no_such_function" is undefined', str(caught.value))
    assert "tirx_kernels.cu(" not in str(caught.value)


def reserved_words() -> list[str]:
    text = (Path(__file__).resolve().parents[2] / "csrc/cuda/names.c").read_text()
    return re.findall(r'"(\w+)"', text[text.index("name_reserved[]") : text.index("};")])


def test_reserved_words_are_in_order():
    words = reserved_words()
    assert words == sorted(set(words))


def test_variables_may_have_any_name(nvrtc):
    """One cell for each reserved word that Python allows, all in the reach of calls of the functions that they name."""
    words = [w for w in reserved_words() if not keyword.iskeyword(w)]
    body = "\n".join(f"{w}: T.float32 = A[tx + {i}]" for i, w in enumerate(words))
    calls = " + ".join(f"T.{f}(A[tx])" for f in ("exp", "sin", "floor", "sqrt", "abs", "tanh"))
    body += f"\nA[tx] = {' + '.join(words)} + {calls} + T.max(A[tx], T.fma(A[tx], 2.0, 1.0))"
    text = kernel("k", buf("A", "float32", len(words) + 32), body)
    exe = tirx.compile(tirx.from_source(text), target="cuda:sm_90a")
    assert "float printf_1 = " in exe.source
    assert exe.cubin[:4] == b"\x7fELF"


def test_a_graph_that_is_a_huge_tree_is_written_with_variables(nvrtc):
    """x = x + x, over and over while the kernel is built."""
    doubled = tirx.from_source(
        kernel("k", buf("A", "float32") + ", s: T.float32", "A[tx] = doubled(s)"),
        {"doubled": lambda x: functools.reduce(lambda y, _: y + y, range(14), x)},
    )
    exe = tirx.compile(doubled, target="cuda:sm_90a")
    assert len(exe.source) < 4000
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("name", KERNELS)
def test_no_text_with_holes_when_memory_runs_out(name):
    """Each allocation fails in turn: an error, or the whole text (without a bound it may be longer)."""
    params, body = KERNELS[name]
    lowered = core_of(tirx.lower(tirx.from_source(kernel(name, params, body)), target="cuda:sm_90a"), "module")
    whole = _core.cuda_source(lowered, "cuda:sm_90a")[0]
    failed = 0
    for n in range(1, 1000):
        _core.fail_alloc_at(n)
        try:
            text = _core.cuda_source(lowered, "cuda:sm_90a")[0]
            done = _core.alloc_count()
        except MemoryError:
            failed += 1
            continue
        finally:
            _core.fail_alloc_at(0)
        assert text.count("\n") >= whole.count("\n")
        if n > done:
            break
    assert failed > 10
    assert text == whole


def test_line_directives_only_with_lineinfo(nvrtc):
    f = tirx.from_source(kernel("k", buf("A", "float32"), "A[tx] = A[tx] + 1.0\nA[tx] = A[tx] * 2.0"))
    plain = tirx.compile(f, target="cuda:sm_90a")
    lined = tirx.compile(f, target="cuda:sm_90a", lineinfo=True)
    lines = lined.source.split("\n")
    assert "#line" not in plain.source
    assert "\n".join(line for line in lines if not line.startswith("#line")) == plain.source
    at = lines.index("  A_ptr[tx] = A_ptr[tx] + 1.0f;")
    said = max(i for i in range(at) if lines[i].startswith("#line"))
    assert int(lines[said].split()[1]) + at - said - 1 == 6  # the lines between count on from there
    assert lined.cubin[:4] == b"\x7fELF"
