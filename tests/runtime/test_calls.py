# SPDX-License-Identifier: Apache-2.0
"""Calling an executable: what is refused and with which words, options, names, results, references, threads."""

from __future__ import annotations

import gc
import sys
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest
from dlpack_capsules import Capsule

import tirx
from tirx.script import tirx as T


@T.prim_func
def scale(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n * 2,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 32)])
    tx = T.thread_id([32])
    i: T.let = bx * 32 + tx
    if i < n:
        B[i] = A[2 * i] * s


@T.prim_func
def table(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8,), "float32", align=16), k: T.int32, on: T.bool):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([8])
    if on:
        B[tx] = A[k, tx]


@T.prim_func
def same(A: T.Buffer(("n", "m"), "int32"), B: T.Buffer(("n",), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    B[tx] = A[tx, 0]


@T.prim_func
def odd(A: T.Buffer(("3 * n + 1",), "int32"), B: T.Buffer((2,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    B[0] = n


@T.prim_func
def one(x: T.int8):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([1])
    T.evaluate(x)


@pytest.fixture(scope="module")
def exes():
    functions = {"scale": scale, "table": table, "same": same, "odd": odd, "one": one}
    return {name: tirx.compile(f, target="cpu") for name, f in functions.items()}


SIGNATURE = {
    "scale": "scale(A: Tensor([n * 2], float32), B: Tensor([n], float32), s: float32)",
    "table": "table(A: Tensor([4, 8], float32), B: Tensor([8], float32), k: int32, on: bool)",
    "same": "same(A: Tensor([n, m], int32), B: Tensor([n], int32))",
    "odd": "odd(A: Tensor([3 * n + 1], int32), B: Tensor([2], int32))",
    "one": "one(x: int8)",
}


def f32(*shape):
    return np.ones(shape, np.float32)


def i32(*shape):
    return np.ones(shape, np.int32)


def read_only(a):
    a.flags.writeable = False
    return a


def at_offset(nbytes, n):
    """n floats whose address is `nbytes` beyond a multiple of 16."""
    raw = np.zeros(4 * n + 64, np.uint8)
    start = -raw.ctypes.data % 16 + nbytes
    return raw[start : start + 4 * n].view(np.float32)


A, B = f32(4, 8), f32(8)

# kernel, arguments, class, what stands before and behind " when calling:\n  `SIGNATURE`"
REFUSED = {
    "no arguments": ("scale", (), TypeError, "Expected 3 arguments", ", got 0"),
    "too few": ("scale", (f32(8),), TypeError, "Expected 3 arguments", ", got 1"),
    "too many": ("scale", (f32(8), f32(4), 1.0, 2), TypeError, "Expected 3 arguments", ", got 4"),
    "one is singular": ("one", (), TypeError, "Expected 1 argument", ", got 0"),
    "number for tensor": ("scale", (1, f32(4), 1.0), TypeError, "Mismatched type on argument #0 (a)",
                          ",\n  expected Tensor, got int"),
    "none for tensor": ("scale", (f32(8), None, 1.0), TypeError, "Mismatched type on argument #1 (b)",
                        ",\n  expected Tensor, got None"),
    "list for tensor": ("table", ([1.0], B, 0, True), TypeError, "Mismatched type on argument #0",
                        ",\n  expected Tensor, got list"),
    "class for tensor": ("scale", (np.ndarray, f32(4), 1.0), TypeError, "Mismatched type on argument #0 (a)",
                         ",\n  expected Tensor, got type"),
    "rank": ("table", (f32(32), B, 0, True), ValueError, "Mismatched A.ndim on argument #0", ",\n  expected 2, got 1"),
    "rank 0": ("table", (A, f32(), 0, True), ValueError, "Mismatched B.ndim on argument #1", ",\n  expected 1, got 0"),
    "dtype": ("table", (A.astype(np.float64), B, 0, True), TypeError, "Mismatched A.dtype on argument #0",
              ",\n  expected float32, got float64"),
    "bfloat16": ("table", (A.astype(ml_dtypes.bfloat16), B, 0, True), TypeError, "Mismatched A.dtype on argument #0",
                 ",\n  expected float32, got bfloat16"),
    "byte order": ("table", (A.astype(">f4"), B, 0, True), TypeError, "Mismatched A.dtype on argument #0",
                   ",\n  expected float32, got >f4"),
    "objects": ("table", (A.astype(object), B, 0, True), TypeError, "Mismatched A.dtype on argument #0",
                ",\n  expected float32, got object"),
    "extent": ("table", (f32(4, 9), B, 0, True), ValueError, "Invalid A.shape[1] on argument #0",
               ",\n  expected 8, got 9"),
    "extent before strides": ("table", (f32(8, 4).T[:, :5], B, 0, True), ValueError,
                              "Invalid A.shape[1] on argument #0", ",\n  expected 8, got 5"),
    "computed extent": ("scale", (f32(9), f32(4), 1.0), ValueError, "Invalid A.shape[0] on argument #0 (a)",
                        ",\n  expected B.shape[0] * 2 = 8, got 9"),
    "symbol again": ("same", (i32(3, 5), i32(4)), ValueError, "Mismatched B.shape[0] on argument #1",
                     ",\n  expected to match A.shape[0] = 3, got 4"),
    "not divisible": ("odd", (i32(9), i32(2)), ValueError, "Invalid A.shape[0] on argument #0",
                      ",\n  expected 3 * n + 1, got 9"),
    "negative size": ("odd", (i32(0), i32(2)), ValueError, "Invalid A.shape[0] on argument #0",
                      ",\n  expected 3 * n + 1, got 0"),
    "strides": ("table", (f32(8, 4).T, B, 0, True), ValueError, "Mismatched A.strides on argument #0",
                ",\n  expected to be compact array"),
    "alignment": ("table", (A, at_offset(4, 8), 0, True), ValueError, "Misaligned Tensor data on argument #1",
                  ",\n  expected data alignment=16 bytes, got an address that is a multiple of 4"),
    "read-only": ("table", (A, read_only(f32(8)), 0, True), ValueError, "Read-only tensor on argument #1",
                  ",\n  B is written by the kernel"),
    "float for int": ("table", (A, B, 1.5, True), TypeError, "Mismatched type on argument #2",
                      ",\n  expected int, got float"),
    "text for int": ("table", (A, B, "1", True), TypeError, "Mismatched type on argument #2",
                     ",\n  expected int, got str"),
    "tensor for int": ("table", (A, B, B, True), TypeError, "Mismatched type on argument #2",
                       ",\n  expected int, got numpy.ndarray"),
    "float for bool": ("table", (A, B, 0, 1.0), TypeError, "Mismatched type on argument #3",
                       ",\n  expected boolean, got float"),
    "text for float": ("scale", (f32(8), f32(4), "x"), TypeError, "Mismatched type on argument #2",
                       ",\n  expected float, got str"),
    "int above": ("table", (A, B, 2**31, True), ValueError, "Invalid k on argument #2",
                  ",\n  2147483648 is out of range for int32 (-2147483648..2147483647)"),
    "int below": ("table", (A, B, -(2**31) - 1, True), ValueError, "Invalid k on argument #2",
                  ",\n  -2147483649 is out of range for int32 (-2147483648..2147483647)"),
    "int8 above": ("one", (128,), ValueError, "Invalid x on argument #0",
                   ",\n  128 is out of range for int8 (-128..127)"),
    "above int64": ("one", (2**63,), ValueError, "Invalid x on argument #0",
                    ",\n  9223372036854775808 is out of range for int8 (-128..127)"),
    "above uint64": ("one", (2**64,), ValueError, "Invalid x on argument #0",
                     ",\n  an int above 2**64 - 1 is out of range for int8 (-128..127)"),
    "below int64": ("one", (-(2**63) - 1,), ValueError, "Invalid x on argument #0",
                    ",\n  an int below -2**63 is out of range for int8 (-128..127)"),
    "int too large for a float": ("scale", (f32(8), f32(4), 10**400), ValueError, "Invalid s on argument #2",
                                  ",\n  expected a number in the range of a double"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_and_with_which_words(exes, case):
    kernel, args, cls, before, after = REFUSED[case]
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(cls) as e:
        exes[kernel](*args)
    assert type(e.value) is cls
    assert str(e.value) == f"{before} when calling:\n  `{SIGNATURE[kernel]}`{after}"
    for a, was in zip(args, copies, strict=True):
        if isinstance(a, np.ndarray):
            assert (a == was).all()


@T.prim_func
def shifted(a: T.handle, k: T.int32, B: T.Buffer((4,), "float32"), n: T.int32):
    A = T.match_buffer(a, (8,), "float32", elem_offset=k * n, offset_factor=4)
    T.device_entry()
    tx = T.thread_id([4])
    B[tx] = A[tx]


@T.prim_func
def wide(A: T.Buffer((4,), "float32x4"), p: T.handle("float32")):
    T.device_entry()
    tx = T.thread_id([4])
    A[tx] = T.broadcast(T.decl_buffer((4,), "float32", data=p)[tx], 4)


def test_null_data_is_refused_unless_the_tensor_is_empty(exes):
    def null(n):
        return Given(shape=(n,), strides=(1,), data=None)

    with pytest.raises(ValueError) as e:
        exes["scale"](null(8), f32(4), 1.0)
    assert str(e.value) == (
        f"A data pointer is NULL on argument #0 (a) when calling:\n  `{SIGNATURE['scale']}`,\n"
        "  expected non-NULL data pointer"
    )
    exes["scale"](null(0), null(0), 1.0)  # nothing is there, and nothing is done


class Given:
    """A tensor on the host that DLPack describes as the fields say."""

    def __init__(self, **fields):
        self.capsule = Capsule(**fields)

    def __dlpack__(self, *, stream=None, max_version=None):
        return self.capsule.object

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize(("k", "n"), [(1, 2), (3, 1), (2, -1)])
def test_an_offset_that_its_factor_does_not_divide(k, n):
    exe = tirx.compile(shifted, target="cpu")
    with pytest.raises(ValueError) as e:
        exe(f32(8), k, f32(4), n)
    assert str(e.value) == (
        "Misaligned Tensor data on argument #0 (a) when calling:\n  `shifted(A: Tensor([8], float32), k: int32, "
        f"B: Tensor([4], float32), n: int32)`,\n  expected data alignment=16 bytes, got elem_offset {k * n}, "
        "no multiple of 4"
    )
    b = f32(4)
    exe(np.arange(8, dtype=np.float32), 2, b, 2)
    assert b.tolist() == [4, 5, 6, 7]


def test_a_pointer_and_the_lanes_of_a_dtype():
    exe = tirx.compile(wide, target="cpu")
    with pytest.raises(TypeError) as e:
        exe(f32(4), f32(4))
    assert str(e.value).endswith(",\n  expected float32x4, got float32") and "Mismatched A.dtype" in str(e.value)
    with pytest.raises(TypeError) as e:
        exe(Given(shape=(4,), strides=(1,), lanes=4), 1.5)
    assert "Mismatched type on argument #1" in str(e.value) and str(e.value).endswith("expected pointer, got float")


def test_the_signature_and_the_names_can_be_read(exes):
    for name, exe in exes.items():
        assert exe.signature == SIGNATURE[name]
        assert repr(exe) == f"<tirx.Executable {SIGNATURE[name]} for cpu>"
    assert exes["scale"].param_names == ("a", "b", "s")
    assert exes["table"].param_names == ("A", "B", "k", "on")


# ---- what is accepted ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [2, 2.0, True, np.float32(2), np.float64(2), np.int8(2), ml_dtypes.bfloat16(2), 2**70])
def test_numbers_for_a_float(exes, s):
    a, b = np.arange(8, dtype=np.float32), f32(4)
    exes["scale"](a, b, s)
    np.testing.assert_array_equal(b, a[::2] * np.float32(s))


@pytest.mark.parametrize("k", [0, 3, True, np.int64(2), np.uint8(1)])
@pytest.mark.parametrize("on", [True, 1, np.True_, 2])
def test_numbers_for_an_int_and_a_bool(exes, k, on):
    a, b = np.arange(32, dtype=np.float32).reshape(4, 8), f32(8)
    exes["table"](a, b, k, on)
    np.testing.assert_array_equal(b, a[int(k)])


def test_extents_of_one_may_have_any_stride_and_offsets_are_free(exes):
    base = np.arange(100, dtype=np.float32)
    b = f32(4)
    exes["scale"](base[3:11], b, 1.0)
    np.testing.assert_array_equal(b, base[3:11:2])
    single = np.lib.stride_tricks.as_strided(base, (1, 1), (4096, 4096))
    exes["same"](single.astype(np.int32), i32(1))


def test_parameters_by_name(exes):
    a, b = np.arange(8, dtype=np.float32), f32(4)
    exes["scale"](a, s=3.0, b=b)
    np.testing.assert_array_equal(b, a[::2] * 3)
    with pytest.raises(TypeError) as e:
        exes["scale"](a, b, 1.0, a=a)
    assert str(e.value) == f"Argument 'a' is given twice when calling:\n  `{SIGNATURE['scale']}`"
    with pytest.raises(TypeError) as e:
        exes["scale"](a, b, t=1.0)
    assert str(e.value) == f"Unexpected argument 't' when calling:\n  `{SIGNATURE['scale']}`"
    with pytest.raises(TypeError) as e:
        exes["scale"](a, s=1.0)
    assert str(e.value) == f"Expected 3 arguments when calling:\n  `{SIGNATURE['scale']}`, got 2"


def test_calls_through_other_ways_of_calling(exes):
    a, b = np.arange(8, dtype=np.float32), f32(4)
    for call in (
        lambda: exes["scale"](*(a, b, 2.0)),
        lambda: exes["scale"](*(a, b), **{"s": 2.0}),
        lambda: exes["scale"].__call__(a, b, 2.0),
        lambda: type(exes["scale"]).__call__(exes["scale"], a, b, s=2.0, check=True),
        lambda: list(map(exes["scale"], [a], [b], [2.0])),
    ):
        b[:] = 0
        call()
        np.testing.assert_array_equal(b, a[::2] * 2)


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        {"check": False},
        {"check": True},
        {"schedule": 7},
        {"schedule": np.int64(-1)},
        {"schedule": "late"},
        {"schedule": "early"},
        {"schedule": None},
        {"numerics": "hardware"},
        {"numerics": "fast"},
        {"stream": None},
        {"check": False, "schedule": 3, "numerics": "fast"},
    ],
)
def test_options_change_no_value(exes, option):
    a, b = np.arange(8, dtype=np.float32), f32(4)
    assert exes["scale"](a, b, 2.0, **option) is None
    np.testing.assert_array_equal(b, a[::2] * 2)


@pytest.mark.parametrize(
    "option, text",
    [
        ({"check": 1}, 'check: expected True, False or "report", got 1'),
        ({"check": "all"}, "check: expected True, False or \"report\", got 'all'"),
        ({"schedule": 1.5}, 'schedule: expected an int, "late", "early" or None, got 1.5'),
        ({"schedule": True}, 'schedule: expected an int, "late", "early" or None, got True'),
        ({"numerics": None}, 'numerics: expected "fast" or "hardware", got None'),
        ({"numerics": "exact"}, 'numerics: expected "fast" or "hardware", got \'exact\''),
    ],
)
def test_bad_options(exes, option, text):
    with pytest.raises(ValueError) as e:
        exes["scale"](f32(8), f32(4), 2.0, **option)
    assert str(e.value) == text


# ---- reports ---------------------------------------------------------------------------------------------------------


@T.prim_func
def outside(A: T.Buffer((8,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = tx  # <-- outside


def line_of(mark):
    with open(__file__) as f:
        return next(i for i, line in enumerate(f, 1) if line.rstrip().endswith(f"# <-- {mark}"))


def test_a_report_is_raised_with_its_facts():
    exe = tirx.compile(outside, target="cpu")
    with pytest.raises(tirx.EmulationError) as e:
        exe(i32(8))
    assert isinstance(e.value, RuntimeError)
    assert (e.value.kind, e.value.buffer, e.value.lines) == ("out_of_bounds", "A", frozenset({line_of("outside")}))
    agent = e.value.agents[0]
    assert (agent["line"], agent["cta"], agent["thread"][1:]) == (line_of("outside"), (0, 0, 0), (0, 0))
    assert agent["file"] == __file__
    assert 8 <= agent["thread"][0] < 32
    assert len(str(e.value).splitlines()) <= 15


def test_reports_are_returned_instead(exes):
    reports = tirx.compile(outside, target="cpu")(i32(8), check="report")
    assert isinstance(reports, list) and reports
    assert {(type(r), r.kind, r.buffer) for r in reports} == {(tirx.EmulationError, "out_of_bounds", "A")}
    assert exes["scale"](f32(8), f32(4), 1.0, check="report") == []


@T.prim_func
def half_gone(A: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    sm = T.alloc_shared((64,), "int32")
    if tx < 32:
        sm[tx] = tx
        T.cuda.cta_sync()  # <-- barrier
        A[tx] = sm[31 - tx]


def test_a_warning_stands_at_the_kernels_line():
    exe = tirx.compile(half_gone, target="cpu")
    a = i32(64)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exe(a)
    np.testing.assert_array_equal(a[:32], np.arange(31, -1, -1))
    [w] = seen
    assert w.category is tirx.EmulationWarning
    assert (w.filename, w.lineno) == (__file__, line_of("barrier"))
    assert (w.message.kind, w.message.lines) == ("divergence", frozenset({line_of("barrier")}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tirx.EmulationWarning):
            exe(a)
    [report] = exe(a, check="report")
    assert type(report) is tirx.EmulationWarning


# ---- references, threads, copies -------------------------------------------------------------------------------------


def test_a_thousand_calls_leave_nothing(exes):
    a, b, bad, out = f32(8), f32(4), f32(9), i32(8)
    wrong = tirx.compile(outside, target="cpu")

    def turn():
        exes["scale"](a, b, 2.0)
        exes["scale"](a, b=b, s=2.0, schedule=3)
        for call in (lambda: exes["scale"](bad, b, 2.0), lambda: wrong(out), lambda: exes["scale"](a, b, check=3)):
            with pytest.raises(Exception):  # noqa: B017
                call()

    turn()
    watched = [a, b, bad, out, exes["scale"], wrong]
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(1000):
        turn()
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == before


def test_an_executable_is_freed_with_its_kernels():
    import weakref

    class Mark:
        pass

    mark = Mark()
    exe = tirx.compile(scale, target="cpu", externs={"f": lambda x, mark=mark: x})
    gone = weakref.ref(mark)
    del mark, exe
    gc.collect()
    assert gone() is None


def test_threads_share_an_executable(exes):
    wrong = []

    def work(seed):
        a = np.arange(8, dtype=np.float32) + seed
        b = np.zeros(4, np.float32)
        for _ in range(100):
            b[:] = 0
            exes["scale"](a, b, 2.0, check=bool(seed % 2))
            if not (b == a[::2] * 2).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_executables_cannot_be_changed(exes):
    with pytest.raises(AttributeError):
        exes["scale"].anything = 1
    with pytest.raises(TypeError):
        type(exes["scale"]).__call__ = None


def test_torch_tensors_on_the_emulator(exes, torch):
    a, b = torch.arange(8.0), torch.zeros(4)
    exes["scale"](a, b, 2.0)
    assert torch.equal(b, a[::2] * 2)
    exes["scale"](a, torch.nn.Parameter(b), 3.0)
    assert torch.equal(b, a[::2] * 3)
    with pytest.raises(TypeError) as e:
        exes["scale"](a, b.to(torch.bfloat16), 1.0)
    assert str(e.value) == (
        f"Mismatched B.dtype on argument #1 (b) when calling:\n  `{SIGNATURE['scale']}`,\n"
        "  expected float32, got bfloat16"
    )


def test_tensors_of_our_own(exes):
    a = tirx.runtime.tensor(np.arange(8, dtype=np.float32), tirx.cpu())
    b = tirx.runtime.tensor(np.zeros(4, np.float32))
    exes["scale"](a, b, 2.0)
    np.testing.assert_array_equal(b.numpy(), np.arange(0, 16, 4, dtype=np.float32))


def test_more_arguments_than_fit_the_stack():
    n = 70
    names = [f"p{i}" for i in range(n)]
    source = "@T.prim_func\ndef many(A: T.Buffer((1,), 'int64'), " + ", ".join(f"{p}: T.int64" for p in names) + "):\n"
    source += "    T.device_entry()\n    bx = T.cta_id([1])\n    tx = T.thread_id([1])\n    A[0] = 0\n"
    source += "".join(f"    A[0] = A[0] * 3 + {p}\n" for p in names)
    exe = tirx.compile(tirx.from_source(source), target="cpu")
    values = [(-1) ** i * i for i in range(n)]
    want = 0
    for v in values:
        want = (want * 3 + v + 2**63) % 2**64 - 2**63
    a = np.zeros(1, np.int64)
    exe(a, *values)
    assert a[0] == want
    a[0] = 0
    exe(a, *values[:40], **dict(zip(names[40:], values[40:], strict=True)), check=False)
    assert a[0] == want
    with pytest.raises(TypeError, match=r"Mismatched type on argument #70 when calling"):
        exe(a, *values[:-1], "last")
