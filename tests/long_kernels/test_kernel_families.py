# SPDX-License-Identifier: Apache-2.0
"""Families of kernels, of the length and in the style of published ones: they are long, do not repeat
themselves and use many instructions; they print and parse back, at every stage; NVRTC takes them; and the emulator's
results are those of NumPy in float64, in any order of events."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from ptx_variants import Row

import tirx
import tirx.ir
import tirx.transform
from tirx import _core

sys.path.insert(0, str(Path(__file__).resolve().parent))

import block_scaled_gemm as gemm
import radix_select
import state_space

pytestmark = pytest.mark.slow  # under sanitizers

HERE = Path(__file__).resolve().parent
FILES = ("state_space", "block_scaled_gemm", "radix_select")
DTYPES = {
    **{name: getattr(ml_dtypes, name) for name in ("float8_e4m3fn", "float8_e5m2")},
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float32": np.float32,
    "int32": np.int32,
}
SCHEDULES = [{}, {"schedule": "early"}, {"schedule": 3, "check": False}]

# kernel, constants, architectures
VARIANTS = [
    (radix_select.topk, {"K": 64}, "90a 100a"),
    (radix_select.topk, {"K": 64, "dtype": "bfloat16"}, "90a 100a"),
    (radix_select.topk, {"K": 1000, "dtype": "int32", "THREADS": 512, "CLUSTER": 8, "LARGEST": False}, "90a 100a"),
    (radix_select.topk, {"K": 100, "SOFTMAX": True, "CLUSTER": 1, "BULK_COPY": False}, "90a 100a"),
    (radix_select.route, {}, "90a 100a"),
    (state_space.scan, {}, "90a 100a"),
    (state_space.scan, {"LOAD": "tensor", "STARTS": True, "CLUSTER": 4}, "90a 100a"),
    (state_space.scan, {"LOAD": "async", "dtype": "float32", "CLUSTER": 2, "GATE": False}, "90a 100a"),
    (state_space.scan, {"dtype": "float16", "PACKED": True}, "100a"),
    (state_space.update, {}, "90a 100a"),
    (state_space.update, {"STATE": "bfloat16", "N": 128, "NOISE": True}, "100a"),
    (state_space.convolve, {}, "90a 100a"),
    (gemm.arrange, {"GROUPS": 64}, "90a 100a"),
    (gemm.quantise, {"CHOICES": 8}, "100a"),
    (gemm.quantise_columns, {"dtype": "float8_e5m2"}, "100a"),
    (gemm.widen, {}, "100a"),
    (gemm.pack, {}, "90a 100a"),
    (gemm.multiply, {}, "100a"),
    (gemm.multiply, {"OUT": "float8_e4m3fn", "GATED": True, "ACTIVATION": "silu"}, "100a"),
    (gemm.multiply, {"dtype": "float8_e5m2", "BN": 256}, "100a"),
    (gemm.combine, {"CHOICES": 8}, "90a 100a"),
]
NAMES = [f"{k.__name__} " + " ".join(f"{n}={v}" for n, v in c.items()) for k, c, _ in VARIANTS]
every_variant = pytest.mark.parametrize("kernel, constants, archs", VARIANTS, ids=NAMES)


# ---- what they are ---------------------------------------------------------------------------------------------------


def tirx_part(name: str) -> list[str]:
    """The lines from the first helper to the references in NumPy."""
    text = (HERE / f"{name}.py").read_text()
    return text[text.index("\n@T.") + 1 : text.index("# ---- references")].rstrip().split("\n")


def repeated(lines: list[str], run: int = 4) -> int:
    """How many lines lie in runs of four or more that stand elsewhere, too, not counting the first of each."""
    lines = [line.strip() for line in lines if line.strip()]
    seen, again = set(), set()
    for i in range(len(lines) - run + 1):
        key = tuple(lines[i : i + run])
        if key in seen:
            again.update(range(i, i + run))
        seen.add(key)
    return len(again)


def test_repeats_are_found():
    assert repeated(list("abcdefg")) == 0
    assert repeated(list("abcdxabcdefg")) == 4
    assert repeated(["a", "b", "", "c", " d", "abc"[0], "b", "c", "d"]) == 4


@pytest.mark.parametrize("name", FILES)
def test_they_are_long_and_do_not_repeat_themselves(name):
    lines = tirx_part(name)
    assert len(lines) >= 800
    assert repeated(lines) <= 0.05 * len(lines)


def test_they_do_not_repeat_each_other():
    lines = [line for name in FILES for line in tirx_part(name)]
    assert repeated(lines) <= 0.05 * len(lines)


def row_patterns() -> list[tuple[str, re.Pattern]]:
    """For each row of the table what its opcodes look like; rows that differ in operands alone count once."""
    found = {}
    for row in map(lambda r: Row(*r), _core.ptx_rows()):
        if row.text not in found:
            pattern = ""
            for _, choices, optional in row.parts:
                one = r"\.(?:" + "|".join(re.escape(c) for c in choices if c) + ")"
                pattern += f"(?:{one})?" if optional else one
            found[row.text] = re.compile(pattern)
    return list(found.items())


def rows_of(function) -> set[str]:
    """The rows that a kernel's instructions belong to; the first of several that allow the opcode."""
    opcodes = set(re.findall(r'T\.ptx\["([^"]+)"\]', function.script()))
    rows = {op: next((r for r, pattern in PATTERNS if pattern.fullmatch("." + op)), None) for op in opcodes}
    assert None not in rows.values(), [op for op, row in rows.items() if row is None]
    return set(rows.values())


PATTERNS = row_patterns()


def test_they_use_many_instructions():
    rows = set().union(*(rows_of(kernel.specialize(**constants)) for kernel, constants, _ in VARIANTS))
    assert len(rows) >= 60, sorted(rows)


# ---- every form of them ----------------------------------------------------------------------------------------------


@every_variant
def test_they_print_and_parse_back(kernel, constants, archs):
    f = kernel.specialize(**constants)
    for dialect in ("g1", "g2"):
        text = f.script(dialect=dialect)
        again = tirx.from_source(text)
        assert tirx.structural_equal(f, again)
        assert again.script() == text


@every_variant
def test_they_print_at_every_stage(kernel, constants, archs):
    target = f"cuda:sm_{archs.split()[-1]}"
    module = tirx.IRModule({kernel.__name__: kernel.specialize(**constants)})
    for name in tirx.transform.names():
        module = getattr(tirx.transform, name)()(module, target=target)
        again = tirx.from_source(module.script())
        assert tirx.structural_equal(module, again), name


@every_variant
def test_they_are_assembled(kernel, constants, archs, nvrtc):
    for arch in archs.split():
        exe = tirx.compile(kernel.specialize(**constants), target=f"cuda:sm_{arch}")
        assert exe.cubin[:4] == b"\x7fELF"
        assert ".local" not in exe.ptx


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def build(request):
    """Compiles for the emulator or the GPU; calls take NumPy arrays, and options for the emulator."""

    def compiled(f):
        try:
            exe = tirx.compile(f, target=request.param)
        except (tirx.DiagnosticError, tirx.CompileError) as e:
            if request.param == "cpu" or "needs sm_100" not in str(e):
                raise
            pytest.skip("needs a newer GPU")
        return exe if request.param == "cpu" else lambda *args, **options: on_gpu(exe, args)

    return compiled


def on_gpu(exe, args):
    device = tirx.cuda(0)
    there = [tirx.runtime.tensor(a, device) if isinstance(a, np.ndarray) else a for a in args]
    exe(*there)
    for a, b in zip(args, there, strict=True):
        if isinstance(a, np.ndarray):
            a[...] = b.numpy()


# ---- top-k -----------------------------------------------------------------------------------------------------------


def numbers(rng, rows, n, dtype):
    """With many that are equal, and what is not a number."""
    if dtype == "int32":
        x = rng.integers(-50, 50, (rows, n))
        x[0, n // 2] = np.iinfo("int32").min
        return x.astype("int32")
    x = rng.standard_normal((rows, n))
    x[:, ::3] = np.round(x[:, ::3], 1)
    x[0, n // 2] = np.nan
    x[1, 0], x[-1, -1] = np.inf, -np.inf
    return x.astype(DTYPES[dtype])


SMALL = {"CLUSTER": 2, "CLUSTERS": 2, "CAPACITY": 2048}


@pytest.mark.parametrize(
    "n, constants",
    [
        (1000, {"K": 5, **SMALL}),
        (1001, {"K": 5, **SMALL}),  # rows that begin anywhere
        (9001, {"K": 5, **SMALL}),  # more than a CTA keeps
        (3, {"K": 5, **SMALL}),  # fewer than are asked for
        (1000, {"K": 17, "dtype": "int32", **SMALL}),
        (1000, {"K": 5, "dtype": "bfloat16", **SMALL}),
        (3000, {"K": 100, "LARGEST": False, **SMALL}),
        (3000, {"K": 600, "CLUSTER": 4, "CLUSTERS": 1, "CAPACITY": 1024}),
        (3000, {"K": 1024, "CLUSTER": 1, "CLUSTERS": 2, "CAPACITY": 4096, "THREADS": 512}),
        (700, {"K": 1, "CLUSTER": 8, "CLUSTERS": 2, "CAPACITY": 1024, "THREADS": 128}),
    ],
    ids=str,
)
def test_topk(n, constants, build):
    dtype, k = constants.get("dtype", "float32"), constants["K"]
    x = numbers(np.random.default_rng(n), 3, n, dtype)
    want = radix_select.order(x, constants.get("LARGEST", True))[:, :k]
    exe = build(radix_select.topk.specialize(**constants))
    for options in SCHEDULES:
        values, indices = np.ones((3, k), x.dtype), np.zeros((3, k), "int32")
        exe(x, values, indices, **options)
        np.testing.assert_array_equal(indices[:, :n], want)
        got = values[:, :n].astype("float64")
        np.testing.assert_array_equal(got, np.take_along_axis(x, want, 1).astype("float64"))
        assert (indices[:, n:] == -1).all() and (values[:, n:] == 0).all()


def test_topk_of_equal_numbers_takes_the_first(build):
    x = np.full((2, 2000), 0.5, "float32")
    values, indices = np.zeros((2, 300), "float32"), np.zeros((2, 300), "int32")
    build(radix_select.topk.specialize(K=300, **SMALL))(x, values, indices)
    np.testing.assert_array_equal(indices, np.tile(np.arange(300), (2, 1)))


@pytest.mark.parametrize("n", [7, 1000])
def test_topk_with_softmax(n, build):
    x = np.random.default_rng(n).standard_normal((3, n)).astype("float32")
    values, indices = np.zeros((3, 40), "float32"), np.zeros((3, 40), "int32")
    build(radix_select.topk.specialize(K=40, SOFTMAX=True, **SMALL))(x, values, indices)
    order = radix_select.order(x)[:, :40]
    want = np.exp(np.take_along_axis(x, order, 1).astype("float64"))
    np.testing.assert_array_equal(indices[:, :n], order)
    np.testing.assert_allclose(values[:, :n], want / want.sum(1, keepdims=True), rtol=1e-6)
    assert (indices[:, n:] == -1).all() and (values[:, n:] == 0).all()


@pytest.mark.parametrize(
    "constants", [{}, {"EXPERTS": 128, "GROUPS": 4, "KEEP": 2, "K": 6}, {"GROUPS": 1, "KEEP": 1}], ids=str
)
def test_route(constants, build):
    rng = np.random.default_rng(1)
    experts, groups, keep, k = (
        constants.get(n, d) for n, d in zip(("EXPERTS", "GROUPS", "KEEP", "K"), (256, 8, 4, 8), strict=True)
    )
    logits = rng.standard_normal((9, experts)).astype("float32")
    bias = (0.1 * rng.standard_normal(experts)).astype("float32")
    weights, chosen, loads = np.zeros((9, k), "float32"), np.zeros((9, k), "int32"), np.zeros(experts, "uint32")
    exe = build(radix_select.route.specialize(**constants))
    exe(logits, bias, weights, chosen, loads)
    want, order = radix_select.routed(logits, bias, groups, keep, k, 2.5)
    np.testing.assert_array_equal(chosen, order)
    np.testing.assert_allclose(weights, want, rtol=1e-5)
    np.testing.assert_array_equal(loads, np.bincount(order.ravel(), minlength=experts))


# ---- the scan --------------------------------------------------------------------------------------------------------


def near(got, want, dtype, exact=3e-5):
    """To the last bit but one of the dtype, or of what the approximate exponentials give."""
    last = {"float32": exact, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=last, atol=last)


class Problem:
    """Operands of a scan over `length` times, or of an update (length None)."""

    def __init__(self, seed, batches, dim, groups, n, length, dtype):
        rng = np.random.default_rng(seed)

        def normal(*shape):
            return rng.standard_normal(shape)

        times = () if length is None else (length,)
        to = DTYPES[dtype]
        self.u, self.z = (normal(batches, dim, *times).astype(to) for _ in range(2))
        self.delta = (0.5 * normal(batches, dim, *times) - 1).astype(to)
        self.A = -np.exp(normal(dim, n)).astype("float32")
        self.B, self.C = (normal(batches, groups, n, *times).astype(to) for _ in range(2))
        self.D, self.bias = normal(dim).astype("float32"), (0.1 * normal(dim)).astype("float32")
        self.states = normal(batches, dim, n).astype("float32")
        self.out = np.full(self.u.shape, np.nan, to)


@pytest.mark.parametrize(
    "length, dtype, n, constants",
    [
        (8, "float32", 4, {}),
        (136, "float32", 4, {"LOAD": "async"}),
        (392, "float32", 4, {"LOAD": "tensor", "STAGES": 3}),
        (392, "float32", 4, {"LOAD": "async", "CLUSTER": 2}),
        (520, "float32", 4, {"LOAD": "tensor", "CLUSTER": 2, "STARTS": True}),
        (520, "float32", 4, {"LOAD": "async", "CLUSTER": 4, "STARTS": True, "STAGES": 4}),
        (392, "float32", 4, {"CLUSTER": 8}),  # more CTAs than tiles
        (264, "bfloat16", 16, {"PACKED": True}),
        (264, "float16", 16, {"LOAD": "async", "GATE": False}),
    ],
    ids=str,
)
def test_scan(length, dtype, n, constants, build):
    p = Problem(length, 2, 8, 2, n, length, dtype)
    starts = np.zeros((2, length), "uint8")
    starts[0, [5, 130 % length]] = 1
    starts[1, length - 3] = 200
    want, last = state_space.scanned(
        *(p.u, p.delta, p.z, p.A, p.B, p.C, p.D, p.bias, p.states, constants.get("GATE", True)),
        starts if constants.get("STARTS") else None,
    )
    f = state_space.scan.specialize(dtype=dtype, N=n, GROUPS=2, WARPS=2, **constants)
    exe = build(f)
    for options in SCHEDULES:
        out, states = np.full_like(p.out, np.nan), p.states.copy()
        exe(p.u, p.delta, p.z, p.A, p.B, p.C, p.D, p.bias, states, out, starts, **options)
        near(out, want, dtype)
        near(states, last, "float32")


@pytest.mark.parametrize(
    "n, dtype, state, groups, noise",
    [
        (4, "float32", "float32", 1, False),
        (16, "float32", "float32", 2, False),
        (64, "bfloat16", "float32", 2, False),
        (128, "float16", "bfloat16", 1, False),
        (8, "float32", "bfloat16", 2, True),
    ],
)
def test_update(n, dtype, state, groups, noise, build):
    lanes = n // 4
    p = Problem(n, 3, groups * (32 // lanes) * 2, groups, n, None, dtype)
    cache = np.random.default_rng(0).standard_normal((5, *p.A.shape)).astype(DTYPES[state])
    slots, live = np.array([3, -1, 0], "int32"), [0, 2]
    want_cache = cache.astype("float64")
    want, last = state_space.scanned(
        *(t[live][..., None] for t in (p.u, p.delta, p.z)),
        p.A,
        *(t[live][..., None] for t in (p.B, p.C)),
        *(p.D, p.bias, want_cache[slots[live]]),
    )
    want_cache[slots[live]] = last
    f = state_space.update.specialize(dtype=dtype, STATE=state, N=n, GROUPS=groups, WARPS=1, NOISE=noise)
    build(f)(p.u, p.delta, p.z, p.A, p.B, p.C, p.D, p.bias, cache, slots, p.out, 7)
    near(p.out[live], want[..., 0], dtype)
    assert not p.out[1].any()
    near(cache, want_cache, state)


def test_noise_keeps_the_mean(build):
    """What is rounded by chance is right on average; to nearest, all of it would go one way."""
    p = Problem(0, 1, 64, 1, 8, None, "float32")
    p.u[:] = p.delta[:] = 0
    p.A[:] = p.bias[:] = 0  # nothing is fed, nothing decays but by rounding: start between two numbers
    p.A[:] = -(2.0**-10) / np.log(2)
    cache = np.ones((1, 64, 8), DTYPES["bfloat16"])
    f = state_space.update.specialize(dtype="float32", STATE="bfloat16", N=8, WARPS=1, NOISE=True)
    exe = build(f)
    exe(p.u, p.delta, p.z, p.A, p.B, p.C, p.D, p.bias, cache, np.zeros(1, "int32"), p.out, 11)
    below, one = 1 - 2.0**-8, 1.0
    got = cache.astype("float64")
    assert set(np.unique(got)) == {below, one}
    # exp(-2^-10) lies a quarter of the way down; 512 draws have a standard deviation of 0.02
    assert abs((got == below).mean() - 0.25) < 0.1


@pytest.mark.parametrize(
    "length, dtype, constants",
    [
        (8, "float32", {}),
        (392, "float32", {"TILES": 2}),
        (264, "bfloat16", {}),
        (1032, "float16", {"TILES": 4, "WARPS": 2}),
    ],
    ids=str,
)
def test_convolve(length, dtype, constants, build):
    rng = np.random.default_rng(length)
    x, window = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in ((2, 8, length), (2, 2, 8, 3)))
    weight, bias = (rng.standard_normal(s).astype("float32") for s in ((8, 4), 8))
    out = np.full(x.shape, np.nan, x.dtype)
    want, last = state_space.convolved(x, weight, bias, window[:, 0])
    build(state_space.convolve.specialize(dtype=dtype, **constants))(x, weight, bias, window, out)
    near(out, want, dtype)
    np.testing.assert_array_equal(window[:, 1].astype("float64"), last)


# ---- experts ---------------------------------------------------------------------------------------------------------


def scaled(rng, rows, k, dtype="float8_e4m3fn"):
    """fp8 numbers and codes of their scales."""
    numbers = rng.standard_normal((*rows, k)).astype(DTYPES[dtype])
    return numbers, rng.integers(120, 130, (*rows, k // 32)).astype("uint8")


def quantised(x, dtype):
    """Codes of scales, as small as they may be, and numbers, in the way of the kernels: x in float64."""
    most = np.abs(x.reshape(*x.shape[:-1], -1, 32)).max(-1)
    codes = np.clip(np.ceil(np.log2(np.maximum(most / gemm.LARGEST[dtype], 2.0**-127))) + 127, 0, 254)
    scale = np.repeat(2.0 ** (codes - 127), 32, axis=-1)
    return (x / scale).astype("float32").astype(DTYPES[dtype]), codes.astype("uint8")


def layout(sizes):
    padded = (sizes + 127) // 128 * 128
    return (np.cumsum(padded) - padded).astype("int32"), int(padded.sum())


def test_scales_pack_and_unpack():
    codes = np.random.default_rng(0).integers(0, 255, (2, 256, 8)).astype("uint8")
    words = gemm.pack_scales(codes)
    np.testing.assert_array_equal(gemm.unpack_scales(words), codes)
    # row 37, block 6: the second 512 bytes, byte 16 * 5 + 4 * 1 + 2
    assert words.view("uint8").reshape(2, 2, 2, 512)[1, 0, 1, 16 * 5 + 4 + 2] == codes[1, 37, 6]


@pytest.mark.parametrize("blocks", [3, 8])
def test_pack(blocks, build):
    codes = np.random.default_rng(0).integers(0, 255, (256, 4 * blocks)).astype("uint8")
    words = np.zeros((2, blocks, 128), "uint32")
    build(gemm.pack.specialize())(codes.view("uint32"), words)
    np.testing.assert_array_equal(words, gemm.pack_scales(codes))


def test_arrange(build):
    rng = np.random.default_rng(2)
    experts = rng.integers(-1, 40, 700).astype("int32")
    experts[experts == 7] = 8  # one has nothing
    starts, sizes, places = (np.zeros(n, "int32") for n in (40, 40, 700))
    build(gemm.arrange.specialize(GROUPS=40))(experts, starts, sizes, places)
    np.testing.assert_array_equal(sizes, np.bincount(experts[experts >= 0], minlength=40))
    np.testing.assert_array_equal(starts, layout(sizes)[0])
    for expert in range(40):
        np.testing.assert_array_equal(places[experts == expert], starts[expert] + np.arange(sizes[expert]))
    assert (places[experts < 0] == -1).all()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_quantise(dtype, build):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((6, 256)) * 2.0 ** rng.integers(-20, 20, (6, 256))).astype(DTYPES["bfloat16"])
    x[2, 32:64] = 0
    places = rng.permutation(256)[:12].reshape(6, 2).astype("int32")
    places[4, 1] = -1
    a, scales = np.zeros((256, 256), DTYPES[dtype]), np.zeros((2, 2, 128), "uint32")
    build(gemm.quantise.specialize(CHOICES=2, dtype=dtype))(x, places, a, scales)
    want, codes = quantised(x.astype("float64"), dtype)
    for choice in range(2):
        rows = places[:, choice] >= 0
        np.testing.assert_array_equal(a[places[rows, choice]].view("uint8"), want[rows].view("uint8"))
        np.testing.assert_array_equal(gemm.unpack_scales(scales)[places[rows, choice]], codes[rows])


def test_quantise_columns(build):
    x = np.random.default_rng(4).standard_normal((256, 128)).astype(DTYPES["bfloat16"])
    a, scales = np.zeros((128, 256), DTYPES["float8_e4m3fn"]), np.zeros((1, 2, 32, 4, 4), "uint8")
    build(gemm.quantise_columns.specialize())(x, a, scales)
    want, codes = quantised(x.astype("float64").T, "float8_e4m3fn")
    np.testing.assert_array_equal(a.view("uint8"), want.view("uint8"))
    np.testing.assert_array_equal(gemm.unpack_scales(scales.view("uint32").reshape(1, 2, 128)), codes)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_widen(dtype, build):
    numbers, codes = scaled(np.random.default_rng(5), (128,), 256, dtype)
    out = np.zeros((128, 256), DTYPES["bfloat16"])
    build(gemm.widen.specialize(dtype=dtype))(numbers, gemm.pack_scales(codes), out)
    np.testing.assert_array_equal(out.astype("float64"), gemm.wide(numbers, codes))  # all are exact


@pytest.mark.parametrize(
    "sizes, n, k, constants",
    [
        ([128], 128, 128, {}),
        ([300, 0, 77], 128, 256, {}),
        ([140, 256, 1], 256, 256, {"OUT": "float8_e4m3fn", "ACTIVATION": "silu"}),
        ([300, 5], 384, 384, {"dtype": "float8_e5m2", "BN": 256, "STAGES": 2}),
        ([130, 31], 128, 640, {"ACTIVATION": "silu", "GATED": True, "STAGES": 3}),
        ([130], 384, 128, {"ACTIVATION": "silu", "GATED": True, "OUT": "float8_e5m2", "BN": 256}),
    ],
    ids=str,
)
def test_multiply(sizes, n, k, constants, build):
    rng = np.random.default_rng(n + k)
    sizes, dtype, gated = (
        np.array(sizes, "int32"),
        constants.get("dtype", "float8_e4m3fn"),
        constants.get("GATED", False),
    )
    starts, rows = layout(sizes)
    a, codes_a = scaled(rng, (rows,), k, dtype)
    b, codes_b = scaled(rng, (len(sizes), n), k, dtype)
    alpha = rng.uniform(0.5, 2, len(sizes)).astype("float32")
    want = gemm.multiplied(a, codes_a, b, codes_b, starts, sizes, alpha, constants.get("ACTIVATION"), gated)
    live = ~np.isnan(want)
    width, out = want.shape[1], constants.get("OUT", "bfloat16")
    blocks = -(-width // 128)
    exe = build(gemm.multiply.specialize(SMS=4, **constants))
    for options in ({}, {"schedule": 3}) if k < 300 else ({},):
        c, scales = np.full(want.shape, np.nan, DTYPES[out]), np.zeros((rows // 128, blocks, 32, 4, 4), "uint8")
        exe(a, gemm.pack_scales(codes_a), b, gemm.pack_scales(codes_b), starts, sizes, alpha, c, scales, **options)
        np.testing.assert_array_equal(np.isnan(c.astype("float64")), ~live)  # other groups' rows and padding
        if out == "bfloat16":
            got = c.astype("float64")
            np.testing.assert_allclose(got[live], want[live], rtol=2.0**-7, atol=1e-4 * np.abs(want[live]).max())
        else:
            words = scales.view("uint32").reshape(rows // 128, blocks, 128)
            got_codes = gemm.unpack_scales(words)[:, : width // 32]
            most = np.abs(want.reshape(rows, -1, 32)).max(-1)
            scale = 2.0 ** (got_codes.astype("float64") - 127)
            inside = ~np.isnan(most)
            assert (most <= scale * gemm.LARGEST[out] * (1 + 1e-5))[inside].all()  # and not twice too large
            assert (most > scale * gemm.LARGEST[out] / 2 * (1 - 1e-5))[inside].all()
            half = {"float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}[out]
            error = np.abs(gemm.wide(c, got_codes) - want)
            limit = half * np.abs(want) + np.repeat(scale, 32, axis=-1) * 2.0**-9
            assert (error <= 1.01 * limit)[live].all()


def test_combine(build):
    rng = np.random.default_rng(6)
    c = rng.standard_normal((40, 264)).astype(DTYPES["bfloat16"])
    places, weights = rng.integers(-1, 40, (5, 3)).astype("int32"), rng.uniform(0, 1, (5, 3)).astype("float32")
    out = np.full((5, 264), np.nan, DTYPES["bfloat16"])
    build(gemm.combine.specialize(CHOICES=3, THREADS_A_TOKEN=32))(c, places, weights, out)
    rows = np.where((places >= 0)[..., None], c[places].astype("float64"), 0)
    near(out, (rows * weights[..., None]).sum(1), "bfloat16")


def test_a_layer_of_experts(build):
    """From tokens to tokens: what one kernel writes the next one reads."""
    rng = np.random.default_rng(7)
    tokens, experts, choices, k, hidden = 50, 3, 2, 128, 128
    x = rng.standard_normal((tokens, k)).astype(DTYPES["bfloat16"])
    up, down = (rng.standard_normal(s) / 8 for s in ((experts, 2 * hidden, k), (experts, k, hidden)))
    (up, up_codes), (down, down_codes) = (quantised(w, "float8_e4m3fn") for w in (up, down))
    chosen = np.argsort(rng.random((tokens, experts)), axis=1)[:, :choices].astype("int32")
    weights = rng.uniform(0.2, 1, (tokens, choices)).astype("float32")
    rows = 128 * experts

    def run(kernel, *args, **constants):
        build(kernel.specialize(**constants))(*args)

    starts, sizes = np.zeros(experts, "int32"), np.zeros(experts, "int32")
    places = np.zeros((tokens, choices), "int32")
    run(gemm.arrange, chosen.reshape(-1), starts, sizes, places.reshape(-1), GROUPS=experts)
    a, scales_a = np.zeros((rows, k), DTYPES["float8_e4m3fn"]), np.zeros((experts, 1, 128), "uint32")
    run(gemm.quantise, x, places, a, scales_a, CHOICES=choices)
    h, scales_h = np.zeros((rows, hidden), a.dtype), np.zeros((experts, 1, 32, 4, 4), "uint8")
    one = np.ones(experts, "float32")
    run(
        *(gemm.multiply, a, scales_a, up, gemm.pack_scales(up_codes), starts, sizes, one, h, scales_h),
        **{"OUT": "float8_e4m3fn", "ACTIVATION": "silu", "GATED": True, "SMS": 4},
    )
    c = np.zeros((rows, k), x.dtype)
    words = scales_h.view("uint32").reshape(experts, 1, 128)
    run(gemm.multiply, h, words, down, gemm.pack_scales(down_codes), starts, sizes, one, c, scales_h, SMS=4)
    out = np.zeros_like(x)
    run(gemm.combine, c, places, weights, out, CHOICES=choices)

    def expert(v, e):
        y = v @ gemm.wide(up, up_codes)[e].T
        gate, other = np.moveaxis(y.reshape(-1, 2, 32), 1, 0).reshape(2, -1)
        return gemm.wide(down, down_codes)[e] @ (gate / (1 + np.exp(-gate)) * other)

    want = np.array(
        [
            sum(w * expert(v, e) for w, e in zip(ws, es, strict=True))
            for v, ws, es in zip(x.astype("float64"), weights, chosen, strict=True)
        ]
    )
    error = np.linalg.norm(out.astype("float64") - want) / np.linalg.norm(want)
    assert error < 0.06  # two roundings to three bits of mantissa
