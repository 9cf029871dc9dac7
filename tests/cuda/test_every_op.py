# SPDX-License-Identifier: Apache-2.0
"""Every op with every dtype that it takes compiles for every architecture: one kernel a dtype, one line an op."""

from __future__ import annotations

import pytest

import tirx

ARCHS = ("sm_90a", pytest.param("sm_80", marks=pytest.mark.slow), pytest.param("sm_100a", marks=pytest.mark.slow))
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
WIDE_FLOATS = ("float16", "bfloat16", "float32", "float64")
MINI = (
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
)
FLOATS = WIDE_FLOATS + MINI
MATH1 = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf"
    " sigmoid floor ceil round trunc"
).split()
MATH2 = "atan2 pow fmod hypot copysign nextafter".split()
COMPARE = ("==", "!=", "<", ">=", ">", "<=")


def lines_for(t: str) -> list[str]:
    """Statements over x, y, z of dtype t (read from memory), c: bool, i: int32; o(value) stores into a buffer of
    dtype t, p(value) into one of bool."""
    both = [f"o(x {op} y)" for op in "+-*"] + ["o(T.min(x, y))", "o(T.max(x, y))", "o(T.Select(c, x, y))"]
    both += ["o(T.if_then_else(c, A[tx + 1], y))"]
    both += [f"p(x {op} y)" for op in COMPARE] + [
        "o(-x)",
        "o(T.abs(x))",
        "p(T.isnan(x))",
        "p(T.isinf(x))",
        "p(T.isfinite(x))",
    ]
    if t in INTS:
        both += [f"o(x {op} y)" for op in ("//", "%", "&", "|", "^", "<<", ">>")]
        both += [
            "o(T.truncdiv(x, y))",
            "o(T.truncmod(x, y))",
            "o(T.ceildiv(x, y))",
            "o(~x)",
            "o(T.popcount(x))",
            "o(T.clz(x))",
        ]
        both += [f"o(x {op} {k})" for op in ("//", "%", "*", "<<", ">>") for k in (1, 3, 4)]
        both += [f"o(T.truncdiv(x, {k}))" for k in (3, 4)] + [f"o(T.truncmod(x, {k}))" for k in (3, 4)]
        both += ["o(T.fma(x, y, z))"]
        if t in SIGNED:
            both += ["o(x // -3)", "o(x % -3)"]
    else:
        both += ["o(x / y)", "o(T.fma(x, y, z))", "o(T.ldexp(x, i))"]
        both += [f"o(T.{name}(x))" for name in (MATH1 if t in WIDE_FLOATS else ("exp", "floor"))]
        both += [f"o(T.{name}(x, y))" for name in (MATH2 if t in WIDE_FLOATS else ("pow",))]
    return both


def kernel(name: str, t: str, lines: list[str], more: str = "") -> str:
    body = "\n".join(
        f"    {'P' if line[0] == 'p' else 'B'}[tx + {32 * i}] = {line[2:-1]}" for i, line in enumerate(lines)
    )
    n = 32 * len(lines) + 64
    return f"""
@T.prim_func
def {name}(A: T.Buffer(({n},), "{t}"), B: T.Buffer(({n},), "{t}"), P: T.Buffer(({n},), "bool"), k: T.int32{more}):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    x = A[tx]
    y = A[tx + 2]
    z = A[tx + 3]
    c = P[tx]
    i = k + tx
{body}
"""


def compile_all(texts: dict[str, str], arch: str) -> None:
    module = tirx.IRModule({name: tirx.from_source(text) for name, text in texts.items()})
    exe = tirx.compile(module, target=f"cuda:{arch}")
    assert exe.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "kinds", [SIGNED, UNSIGNED, WIDE_FLOATS, MINI], ids=["signed", "unsigned", "floats", "minifloats"]
)
def test_arithmetic(kinds, arch, nvrtc):
    compile_all({t: kernel(t, t, lines_for(t)) for t in kinds}, arch)


@pytest.mark.parametrize("arch", ARCHS)
def test_conversions(arch, nvrtc):
    every = (*INTS, *FLOATS, "bool")
    texts = {}
    for t in every:
        lines = []
        for to in every:
            back = f"T.cast(T.cast(x, '{to}'), '{t}')" if to != t else "x"
            lines.append(f"o({back})")
        texts[t] = kernel(t, t, lines)
    compile_all(texts, arch)


BITS = {8: ("int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 16: ("int16", "uint16", "float16", "bfloat16"),
        32: ("int32", "uint32", "float32"), 64: ("int64", "uint64", "float64")}  # fmt: skip


def test_reinterpretations(nvrtc):
    texts = {}
    for kinds in BITS.values():
        for t in kinds:
            lines = [f"o(T.reinterpret('{t}', T.reinterpret('{to}', x)))" for to in kinds]
            texts[t] = kernel(t, t, lines)
    compile_all(texts, "sm_90a")


SHUFFLED = (*INTS, *WIDE_FLOATS, "float8_e4m3fn", "bool")


@pytest.mark.parametrize("arch", ARCHS)
def test_warp_exchange(arch, nvrtc):
    texts = {}
    for t in SHUFFLED:
        lines = [f"o(T.tvm_warp_shuffle{s}(0xFFFFFFFF, x, 3, 32, 32))" for s in ("", "_up", "_down", "_xor")]
        if t in INTS + WIDE_FLOATS:
            lines += [f"o(T.cuda.warp_{op}(x))" for op in ("sum", "min", "max")]
        texts[t] = kernel(t, t, lines)
    compile_all(texts, arch)


ATOMIC_ADD = ("int32", "uint32", "int64", "uint64", "float32", "float64", "float16", "bfloat16")
ATOMIC_CAS = (*ATOMIC_ADD, "int16", "uint16")


@pytest.mark.parametrize("arch", ARCHS)
def test_atomics(arch, nvrtc):
    texts = {}
    for t in ATOMIC_CAS:
        lines = ["o(T.cuda.atomic_cas(B.ptr_to([0]), x, y))"]
        if t in ATOMIC_ADD:
            lines.append("o(T.cuda.atomic_add(B.ptr_to([1]), x))")
        texts[t] = kernel(t, t, lines)
    compile_all(texts, arch)


@pytest.mark.parametrize("op", ["sum", "min", "max"])
def test_cta_reductions(op, nvrtc):
    texts = {}
    for t in INTS + WIDE_FLOATS:
        texts[t] = f"""
@T.prim_func
def {t}(A: T.Buffer((64,), "{t}"), B: T.Buffer((64,), "{t}")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    scratch = T.alloc_shared((2,), "{t}")
    B[tx] = T.cuda.cta_{op}(A[tx], 2, scratch.ptr_to([0]))
"""
    compile_all(texts, "sm_90a")
