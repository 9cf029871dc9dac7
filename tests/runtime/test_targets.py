# SPDX-License-Identifier: Apache-2.0
"""Targets in every form, and the options of tirx.compile."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import tirx
from tirx.script import tirx as T
from tirx.target import resolve

NO_GPU = not tirx._core.driver_available()[0]


@T.prim_func
def kernel(A: T.Buffer((32,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = tx


@pytest.mark.parametrize(
    "spec, text",
    [
        ("cuda:sm_80", "cuda:sm_80"),
        ("cuda:sm_90a", "cuda:sm_90a"),
        ("cuda:sm_100a", "cuda:sm_100a"),
        ("cuda:sm_100f", "cuda:sm_100f"),
        ({"kind": "cuda", "arch": "sm_90"}, "cuda:sm_90"),
        ({"kind": "cuda"}, "cuda"),
        (tirx.Target("cuda:sm_90a"), "cuda:sm_90a"),
        (tirx.Target({"kind": "cuda", "arch": "sm_80"}), "cuda:sm_80"),
        ("cpu", "cpu"),
        ("llvm", "cpu"),
        ("c", "cpu"),
        ({"kind": "cpu"}, "cpu"),
        ({"kind": "llvm"}, "cpu"),
    ],
)
def test_forms(spec, text):
    target = tirx.Target(spec)
    assert str(target) == text
    assert target == tirx.Target(text) and hash(target) == hash(tirx.Target(text))
    assert repr(target) == f'Target("{text}")'
    assert tirx.Target is tirx.target.Target


@pytest.mark.parametrize("spec", ["", "cud", "cuda:", "cuda:90", "cuda:sm_", "cuda:sm_90b", "cuda:sm_99999999", "hip"])
def test_what_is_no_target(spec):
    with pytest.raises(ValueError, match="target"):
        tirx.Target(spec)


def test_other_types_are_refused():
    with pytest.raises(TypeError) as e:
        tirx.Target(90)
    assert str(e.value) == "target: expected a str, a dict, a Target or None, got int"
    with pytest.raises(ValueError) as e:
        tirx.Target({"kind": "cuda", "archs": "sm_90"})
    assert str(e.value) == """target: expected {"kind": ..., "arch": ...}, got {'kind': 'cuda', 'archs': 'sm_90'}"""
    with pytest.raises(AttributeError):
        tirx.Target("cpu").kind = "cuda"


def test_with_gives_the_target_of_its_thread():
    assert tirx.Target.current() is None
    with tirx.Target("cuda:sm_80") as outer:
        with tirx.Target("cpu"):
            assert resolve(None) == tirx.Target("cpu")
            assert tirx.compile(kernel).target == "cpu"
        assert tirx.Target.current() is outer
        assert resolve(None) == outer
        assert resolve("cpu") == tirx.Target("cpu")
        seen = []
        t = threading.Thread(target=lambda: seen.append(tirx.Target.current()))
        t.start()
        t.join()
        assert seen == [None]
    assert tirx.Target.current() is None
    with pytest.raises(ValueError) as e:
        tirx.Target.current(allow_none=False)
    assert str(e.value) == "there is no enclosing `with target:`"


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_without_a_gpu_the_default_is_the_emulator_and_cuda_says_what_to_do():
    assert tirx.compile(kernel).target == "cpu"
    with pytest.raises(tirx.CompileError) as e:
        tirx.compile(kernel, target="cuda")
    text = str(e.value)
    assert text.startswith('target "cuda" is the architecture of device 0, and there is no CUDA d')
    assert text.endswith('name one to compile without a device: target="cuda:sm_90a"')


@pytest.mark.gpu
def test_with_a_gpu_the_default_is_its_architecture():
    arch = tirx._core.device_arch(0)
    want = f"cuda:sm_{arch}{'a' if arch >= 90 else ''}"
    assert tirx.compile(kernel).target == want
    assert tirx.compile(kernel, target="cuda").target == want


@pytest.mark.parametrize("name", ["default", "tirx", None])
def test_pipelines_that_are_known(name):
    assert tirx.compile(kernel, "cpu", name).target == "cpu"
    assert tirx.compile(kernel, "cpu", tir_pipeline=name, relax_pipeline="anything").target == "cpu"


@pytest.mark.parametrize("how", [{"pipeline": "nosuch"}, {"tir_pipeline": "nosuch"}])
def test_other_pipelines_are_refused(how):
    with pytest.raises(ValueError) as e:
        tirx.compile(kernel, "cpu", **how)
    assert str(e.value) == 'Unknown pre-built pipeline nosuch, candidates are ["default", "tirx"]'


@pytest.mark.parametrize(
    "change, text",
    [
        ({"fast_math": 1}, "tirx.compile: fast_math is True or False, got 1"),
        ({"contract": None}, "tirx.compile: contract is True or False, got None"),
        ({"lineinfo": "yes"}, "tirx.compile: lineinfo is True or False, got 'yes'"),
        ({"externs": [print]}, "tirx.compile: externs is a dict of name to function, got list"),
        ({"externs": {"f": 3}}, "tirx.compile: externs['f'] is 3, expected a function under a name"),
    ],
)
def test_bad_options(change, text):
    with pytest.raises(TypeError) as e:
        tirx.compile(kernel, "cpu", **change)
    assert str(e.value) == text


def test_what_cannot_be_compiled():
    @T.jit
    def later(A: T.Buffer((32,), "int32"), *, N: T.constexpr):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        A[tx] = N

    with pytest.raises(TypeError) as e:
        tirx.compile(later, "cpu")
    assert str(e.value) == ("tirx.compile: 'later' is a @T.jit function; call .specialize(...) first, then compile")
    with pytest.raises(TypeError) as e:
        tirx.compile(print, "cpu")
    assert str(e.value) == (
        "tirx.compile: expected a function made by @T.prim_func or @T.function, or an IRModule, "
        "got builtin_function_or_method"
    )
    assert tirx.compile(later.specialize(N=3), "cpu").param_names == ("A",)


@pytest.mark.parametrize(
    "x", [tirx.Target("cuda"), tirx.Target("cuda:sm_90a"), tirx.Target("cpu"), tirx.cuda(1), tirx.cpu()]
)
def test_copies(x):
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is type(x) and y == x and repr(y) == repr(x)
