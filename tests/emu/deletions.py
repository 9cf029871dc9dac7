# SPDX-License-Identifier: Apache-2.0
"""Deletes, one at a time, every statement of a kernel that waits, signals or fences; the emulator has to tell.

    python tests/emu/deletions.py [NAME ...]       all kernels, or those named; prints what escaped

The text of the kernel is printed, a line of it replaced by nothing, the rest parsed and run on a small shape. A
deletion is found if the run ends in a report (or a warning), if the text no longer compiles, or if the result is wrong.
What is not found has to stand in its kernel's `redundant`, with the reason why the kernel is right without it.
"""

from __future__ import annotations

import dataclasses
import re
import sys
import typing
import warnings
from pathlib import Path

import numpy as np

import tirx

ROOT = Path(__file__).resolve().parent.parent.parent
for folder in ROOT / "examples", ROOT / "tests", ROOT / "tests" / "emu":
    sys.path.insert(0, str(folder))

SIGNALS = re.compile(
    r"""^\s*(?:[\w:.\[\]\ ]+=\ )?T\.(
        cuda\.(cta_sync|cluster_sync|warp_sync|warpgroup_sync|named_barrier\w*|mbarrier_wait|thread_fence\w*|\w*fence\w*|grid_sync|\w*barrier\w*)\(
      | (tvm_storage_sync|syncthreads)\(
      | ptx\["(?!cp\.async\.bulk\.(tensor|shared|global))
        [^"]*(fence|wait|commit|arrive|bar\.|barrier|mbarrier|setmaxnreg)[^"]*"\]
    )""",
    re.X,
)


@dataclasses.dataclass
class Case:
    make: typing.Callable  # () -> kernel
    args: typing.Callable  # () -> (arguments, check(*arguments) that raises)
    schedules: tuple = (None,)
    redundant: dict = dataclasses.field(default_factory=dict)  # a part of the statement, or (part, which) -> reason
    missed: dict = dataclasses.field(default_factory=dict)  # the same, for what the checkers do not see yet


CASES: dict[str, Case] = {}


def close(got, want, rtol=2e-3):
    assert np.linalg.norm(got.astype(np.float64) - want) <= rtol * np.linalg.norm(want)


def deletable(text: str) -> list[int]:
    return [i for i, line in enumerate(text.splitlines()) if SIGNALS.match(line)]


def without(text: str, number: int) -> str:
    lines = text.splitlines()
    lines[number] = lines[number][: len(lines[number]) - len(lines[number].lstrip())] + "pass"
    return "\n".join(lines) + "\n"


def outcome(case: Case, text: str) -> str | None:
    """How the text gives itself away; None: it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exe = tirx.compile(tirx.from_source(text), target="cpu")
    except tirx.Error as e:
        return f"does not compile: {str(e).splitlines()[0][:80]}"
    for schedule in case.schedules:
        args, check = case.args()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                exe(*args, schedule=schedule)
            except tirx.EmulationError as e:
                return e.kind
        for w in seen:
            if isinstance(w.message, tirx.EmulationWarning):
                return f"{w.message.kind} (warning)"
        try:
            check(*args)
        except AssertionError:
            return "wrong result"
    return None


@dataclasses.dataclass
class Deletion:
    statement: str
    line: int
    found: str | None
    reason: str | None  # why it may go
    missed: str | None  # what the checkers do not see yet


def short(line: str) -> str:
    line = line.strip()
    return line if len(line) < 100 else line[:97] + "..."


def reason_of(reasons: dict, statement: str, before: list[str]) -> str | None:
    """`which` of a key counts the statements that have the part, from 0 on."""
    for key, reason in reasons.items():
        part, which = key if isinstance(key, tuple) else (key, None)
        if part in statement and which in (None, sum(part in s for s in before)):
            return reason
    return None


def deletions(name: str) -> typing.Iterator[Deletion]:
    case = CASES[name]
    text = case.make().script()
    assert outcome(case, text) is None, f"{name} is not clean itself: {outcome(case, text)}"
    before: list[str] = []
    for number in deletable(text):
        statement = text.splitlines()[number].strip()
        found = outcome(case, without(text, number))
        reasons = (reason_of(r, statement, before) for r in (case.redundant, case.missed))
        yield Deletion(short(statement), number + 1, found, *reasons)
        before.append(statement)


# ---- the kernels ---------------------------------------------------------------------------------------------------


def case(**fields):
    def register(make):
        CASES[make.__name__] = Case(make, **fields)
        return make

    return register


def matrices(M, N, K):
    def args():
        rng = np.random.default_rng(0)
        a, b = (rng.standard_normal((r, K)).astype(np.float16) for r in (M, N))
        c = np.full((M, N), np.nan, np.float16)
        want = a.astype(np.float64) @ b.astype(np.float64).T
        return (a, b, c), lambda a, b, c: close(c, want)

    return args


SETMAXNREG = {"setmaxnreg.inc": "without it the code has fewer registers: ptxas spills, the values stay the same"}
ALLOC = (
    "tcgen05.alloc and dealloc are synchronous; the fences order asynchronous operations, of which there are none here "
    "that nobody has waited for: loads of tensor memory ended with wait::ld"
)
EITHER = (
    "the wait for the sums and that for the slot both have one behind them, in front of the first mma; either is enough"
)
COLLECTIVE = "wait::ld is for the whole warp, so that no lane's load is open when lane 0 arrives"
BLACKWELL = {
    ("tcgen05.fence::before_thread_sync", 0): ALLOC,
    ("tcgen05.fence::before_thread_sync", 2): ALLOC,
    ("tcgen05.fence::after_thread_sync", 0): ALLOC,
    ("tcgen05.fence::after_thread_sync", 1): EITHER,
    ("tcgen05.fence::after_thread_sync", 2): EITHER,
    ("tcgen05.fence::after_thread_sync", 4): ALLOC,
    ("warp_sync", 2): COLLECTIVE,
}
PAIR = {
    ("cta_sync", 0): "a barrier of the cluster follows",
    ("cta_sync", 1): "a barrier of the cluster follows",
}


@case(args=matrices(264, 264, 328), redundant=SETMAXNREG)
def hopper_gemm():
    import hopper_gemm

    return hopper_gemm.gemm.specialize(dtype="float16", SMS=2, BN=64, STAGES=2)


@case(args=matrices(264, 72, 328), redundant=SETMAXNREG)
def hopper_gemm_alone():
    import hopper_gemm

    return hopper_gemm.gemm.specialize(dtype="float16", SMS=1, BN=64, STAGES=2, CLUSTER=1)


@case(args=matrices(264, 264, 456), redundant=BLACKWELL)
def blackwell_gemm():
    import blackwell_gemm

    return blackwell_gemm.gemm.specialize(PAIR=1, dtype="float16", SMS=1)


@case(args=matrices(520, 264, 456), redundant=BLACKWELL | PAIR)
def blackwell_gemm_pair():
    import blackwell_gemm

    return blackwell_gemm.gemm.specialize(PAIR=2, dtype="float16", SMS=2)


def attention_args():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, 64)).astype(np.float16) for n in (140, 520, 520))
    s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    e = np.exp(s - s.max(2, keepdims=True))
    want = e / e.sum(2, keepdims=True) @ v.astype(np.float64)
    o, lse = np.full_like(q, np.nan), np.full((2, 140), np.nan, np.float32)
    return (q, k, v, o, lse), lambda q, k, v, o, lse: close(o, want)


@case(
    args=attention_args,
    redundant=SETMAXNREG
    | {
        ("wgmma.fence", 2): "the fence in front of the wgmma of S comes after all writes of P and of the sums, too",
        ('mbarrier.arrive.shared.b64"](barrier_6', 0): "the last use of a slot of V: nobody waits for it any more",
        ("warpgroup_sync", 0): "wgmma.commit_group makes one group for the warpgroup: what one warp has waited for is "
        "complete; and each warp overwrites the rows of Q that its own part has read",
    },
)
def attention():
    import attention

    return attention.attention.specialize(D=64, CAUSAL=False, dtype="float16")


def transpose_args():
    a = np.random.default_rng(0).standard_normal((200, 136)).astype(np.float16)
    b = np.zeros((136, 200), np.float16)
    return (a, b), lambda a, b: np.testing.assert_array_equal(b, a.T)


@case(args=transpose_args)
def tma_copy():
    import tma_copy

    return tma_copy.transpose.specialize()


def sum_args():
    x = np.random.default_rng(0).integers(-8, 8, 70_000).astype(np.float32)
    return (x, np.zeros(1, np.float32)), lambda x, out: np.testing.assert_array_equal(out, [x.sum()])


@case(args=sum_args)
def sum_of_all():
    import sum as example

    return example.total.specialize(BLOCKS=4)


def matmul_args():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.float32) for s in ((200, 40), (40, 136)))
    return (a, b, np.zeros((200, 136), np.float32)), lambda a, b, c: np.testing.assert_array_equal(c, a @ b)


@case(args=matmul_args)
def matmul():
    import matmul

    return matmul.matmul.specialize()


def softmax_args():
    x = np.random.default_rng(0).standard_normal((3, 2500)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return (x, np.zeros_like(x)), lambda x, y: close(y, e / e.sum(1, keepdims=True), 1e-5)


@case(args=softmax_args)
def softmax():
    import softmax

    return softmax.softmax.specialize(N=2500, dtype="float32")


def rmsnorm_args():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 2048)).astype(np.float32), rng.standard_normal((1, 2048)).astype(np.float32)
    import rmsnorm

    want = rmsnorm.reference(x, w, 1e-5)
    return (x, w, np.zeros_like(x), 1e-5), lambda x, w, y, eps: close(y, want, 1e-5)


@case(args=rmsnorm_args)
def rmsnorm():
    import rmsnorm

    return rmsnorm.rmsnorm.specialize(N=2048, dtype="float32")


def chained_args():
    x = np.random.default_rng(0).integers(-8, 8, 4097).astype(np.float32)
    return (x, np.zeros(1, np.float32)), lambda x, out: np.testing.assert_array_equal(out, [x.sum()])


@case(args=chained_args)
def chained_sum():
    import chained_sum as example

    return example.total.specialize(THREADS=64, BLOCKS=4)


def lanes_args():
    a = np.random.default_rng(0).standard_normal(130).astype(np.float32)
    b = np.zeros_like(a)
    want = np.pad(a, (0, 30)).reshape(5, 32).max(1).repeat(32)[:130]
    return (a, b), lambda a, b: np.testing.assert_array_equal(b, want)


@case(args=lanes_args)  # shuffles need no barrier: there is nothing to delete
def warp_allreduce():
    import warp_allreduce as example

    return example.reduce_lanes.specialize(OP="max")


def add_args():
    a, b = (np.random.default_rng(i).standard_normal(1000).astype(np.float32) for i in range(2))
    return (a, b, np.zeros_like(a)), lambda a, b, c: np.testing.assert_array_equal(c, a + b)


@case(args=add_args)  # nothing either
def quickstart():
    import quickstart as example

    return example.add


def scaled_args(kind, vector, fmt, sf):
    """Operands of test_tcgen05.scaled_product: all ones but for the scales, so that a sum is a product of scales."""

    def args():
        import ml_dtypes

        r = np.random.default_rng(0)
        one = {"float8_e4m3fn": 0x38, "float4_e2m1fn": 0x22}[fmt]
        scales = [r.choice(np.array([0.5, 1, 2], np.float32), (n, vector)) for n in (128, 32)]
        cells = []
        for s in scales:
            padded = np.ones((len(s), 4), np.float32)
            padded[:, :vector] = s
            cells.append(padded.astype(getattr(ml_dtypes, sf)).view(np.uint32)[:, 0].copy())
        a, b = (np.full((n, 32), one, np.uint8) for n in (128, 32))
        want = 32 / vector * (2 if fmt[5] == "4" else 1) * scales[0] @ scales[1].T
        d = np.zeros((128, 32), np.float32)
        return (a, b, *cells, d), lambda *a: np.testing.assert_array_equal(a[4], want.astype(np.float32))

    return args


SCALED = {
    ("fence.mbarrier_init", 0): "fence.proxy.async follows, which every thread executes that knows the barrier",
    ("tcgen05.fence::before_thread_sync", 1): ALLOC,
}


@case(args=scaled_args("mxf8f6f4", 1, "float8_e4m3fn", "float8_e8m0fnu"), redundant=SCALED)
def scaled_fp8():
    import test_tcgen05

    return test_tcgen05.scaled_product("mxf8f6f4", 1, 128, 32, 32, "float8_e4m3fn", "float8_e8m0fnu", 32)


@case(args=scaled_args("mxf4nvf4", 4, "float4_e2m1fn", "float8_e4m3fn"), redundant=SCALED)
def scaled_fp4():
    import test_tcgen05

    return test_tcgen05.scaled_product("mxf4nvf4", 4, 128, 32, 64, "float4_e2m1fn", "float8_e4m3fn", 32)


def ring_args():
    a = np.arange(256, dtype=np.int32)
    return (a, np.zeros(64, np.int32)), lambda a, b: np.testing.assert_array_equal(b, a.reshape(4, 64).sum(0))


@case(args=ring_args)
def bulk_pipeline():
    import test_seeing

    return test_seeing.pipeline()


def main(names: list[str]) -> int:
    escaped = 0
    for name in names or CASES:
        rows = list(deletions(name))
        missed = [d for d in rows if d.found is None and d.reason is None and d.missed is None]
        print(f"{name}: {len(rows)} deletions, {sum(d.found is not None for d in rows)} found, {len(missed)} escaped")
        for d in rows:
            mark = d.found or (f"redundant: {d.reason}" if d.reason else f"ESCAPED {d.missed or ''}")
            print(f"  line {d.line:4}  {d.statement}\n             {mark}", flush=True)
        escaped += len(missed)
    return min(escaped, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
