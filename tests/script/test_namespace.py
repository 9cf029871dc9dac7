# SPDX-License-Identifier: Apache-2.0
"""The namespace T: its names, dtypes as objects, and its functions outside kernels."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from script.kernels import body

import tirx
from tirx import _core
from tirx.script import tirx as T


def test_one_object_by_all_ways():
    from tirx import T as a
    from tirx.script.tirx import cuda

    assert a is T and cuda is T.cuda and tirx.T is T


def test_dtypes():
    assert str(T.float16) == T.float16.dtype == "float16" and T.f16 is T.float16 and T.boolean is T.bool
    assert T.float16 == "float16" and T.float16 != T.float32 and T.float32x4.dtype == "float32x4"
    assert T.float8_e4m3fn.dtype == "float8_e4m3fn" and repr(T.int32) == "T.int32"
    assert len({T.int32, T.i32, T.int64}) == 2
    assert pickle.loads(pickle.dumps(T.int32)) == copy.deepcopy(T.int32) == T.int32
    for text, alias, *_ in _core.dtypes():
        if text != "tensormap":
            assert getattr(T, text).__tirx_dtype__ == text
            assert alias is None or getattr(T, alias).__tirx_dtype__ == text


@pytest.mark.parametrize("x", ["int16", T.int16, T.i16, "i16", np.dtype("int16"), np.int16])
def test_whatever_says_a_dtype(x):
    assert body("B[tx] = T.cast(A[tx], x)", x=x) == 'B[tx] = T.Cast("int32", T.Cast("int16", A[tx]))'
    assert (
        'T.Buffer((4,), "int16")'
        in tirx.from_source(
            "@T.prim_func\ndef k(A: T.Buffer((4,), x)):\n    T.device_entry()\n    tx = T.thread_id([4])\n", {"x": x}
        ).script()
    )


@pytest.mark.parametrize("make", [T.Buffer, T.Tensor])
def test_annotations_check_what_they_can(make):
    with pytest.raises(ValueError, match="float99"):
        make((4,), "float99")
    with pytest.raises(ValueError, match="unknown storage scope 'foo'"):
        make((4,), "float32", scope="foo")


@pytest.mark.parametrize(
    "call",
    [
        lambda: T.cuda.cta_sync(),
        lambda: T.exp(1.0),
        lambda: T.alloc_local((4,), "int32"),
        lambda: T.thread_id([4]),
        lambda: T.device_entry(),
        lambda: T.evaluate(1),
        lambda: T.attr({"a": 1}),
        lambda: T.cuda.atomic_add(None, 1),
        lambda: T.tvm_warp_shuffle(1, 1.0, 1, 32, 32),
        lambda: T.match_buffer(None, (4,)),
        lambda: T.cast(1, "int32"),
        lambda: T.Select(True, 1, 2),
        lambda: T.If(True),
        lambda: T.local_scalar("int32"),
    ],
)
def test_outside_a_kernel(call):
    with pytest.raises(RuntimeError, match="can only be used inside a kernel") as info:
        call()
    assert not isinstance(info.value, tirx.Error)


@pytest.mark.parametrize(
    "name, message",
    [
        ("nosuch", "T has no attribute 'nosuch'"),
        ("TMEMPool", "T.TMEMPool is not supported by tirx yet"),
        ("tvm_mma_sync", "T.tvm_mma_sync is not supported by tirx: use T.ptx.mma"),
        ("webgpu", "T.webgpu is not supported by tirx"),
        ("float99", "T has no attribute 'float99'"),
        ("elected", "T.elected() is no longer available. Write explicitly: `if T.cuda.elect_sync(): ...`"),
    ],
)
def test_names_that_are_not_there(name, message):
    with pytest.raises(AttributeError) as info:
        getattr(T, name)
    assert str(info.value) == message


def test_every_operation_that_is_spelled_as_a_call_can_be_called():
    missing = []
    for _, row, spelling, _, _, props in _core.ops():
        parts = spelling.split(".")
        if parts[0] != "T" or len(parts) == 1 or row in ("PTX", "VECTOR"):
            continue
        owner = T
        for part in parts[1:]:
            owner = getattr(owner, part, None)
        if not callable(owner):
            missing.append(spelling)
    assert missing == []


def test_expressions_made_outside_wait_for_a_kernel():
    n = T.dynamic("n")
    half = (n + 1) // 2 * T.int64(3) - T.ceildiv(n, 4)
    assert repr(n) == "n" and "n" in repr(half)
    with pytest.raises(TypeError, match="known at run time only"):
        bool(n < 3)
    head = "@T.function\ndef k(A: T.Tensor((n,), T.int64)):\n    T.device_entry()\n    tx = T.thread_id([32])\n"
    text = head + "    A[0] = half\n"
    f = tirx.from_source(text, {"n": n, "half": half})
    assert "A[0] = T.Cast(" in f.script() or "T.int64(3)" in f.script()
    with pytest.raises(ValueError, match="needs a name that is an identifier"):
        T.dynamic("a b")
    with pytest.raises(ValueError, match="must be int32, int64"):
        T.dynamic("n", "float32")


def test_import_loads_only_what_is_light(run_python):
    loaded = run_python(
        "import sys, tirx\nprint([m for m in ('numpy', 'ast', 'inspect', 'tirx.script') if m in sys.modules])"
    )
    assert loaded.strip() == "[]"
    loaded = run_python("import sys\nfrom tirx import T\nprint('numpy' in sys.modules, 'torch' in sys.modules)")
    assert loaded.split() == ["False", "False"]
    assert "T" in dir(tirx) and "compile" in dir(tirx)
    with pytest.raises(AttributeError, match="module 'tirx' has no attribute 'nosuch'"):
        tirx.nosuch


def test_show_prints_the_text(capsys):
    f = tirx.from_source("@T.prim_func\ndef k(s: T.int32):\n    T.device_entry()\n    tx = T.thread_id([4])\n")
    f.show()
    f.show("light", name="other")
    tirx.IRModule({"main": f}).show()
    shown = capsys.readouterr().out
    assert shown.startswith(f.script()) and "def other(" in shown and "class Module:" in shown


@pytest.mark.parametrize("x", [T.int32, T.Buffer, T.let, T.ptx, T.ptx.add])
def test_subscripts_do_not_make_an_iterable(x):
    """Python would try x[0], x[1], ... for ever."""
    with pytest.raises(TypeError, match="not iterable"):
        iter(x)
    with pytest.raises(TypeError, match="not iterable"):
        first, second = x
