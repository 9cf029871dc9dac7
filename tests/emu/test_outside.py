# SPDX-License-Identifier: Apache-2.0
"""What kernels ask of the world outside: printf, stand-ins for injected functions, assertions, what is not emulated."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

RELU = "__device__ float my_relu(float x) { return x > 0.f ? x : 0.f; }"


def relu(ctas=1):
    @T.prim_func
    def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        bx = T.cta_id([ctas])
        tx = T.thread_id([64])
        if tx % 3 != 0:
            B[tx] = T.cuda.func_call("my_relu", A[tx], source_code=RELU, return_type="float32")

    return k


def test_a_stand_in_sees_the_active_lanes():
    sizes = []

    def my_relu(x):
        sizes.append(np.size(x))
        return np.maximum(x, 0)

    a = np.random.default_rng(0).standard_normal(64).astype("f4")
    b = np.zeros_like(a)
    tirx.compile(relu(), target="cpu", externs={"my_relu": my_relu})(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(64) % 3 != 0, np.maximum(a, 0), 0))
    assert sum(sizes) == sum(1 for t in range(64) if t % 3)


def test_without_a_stand_in():
    with pytest.raises(tirx.EmulationError, match=r"externs=\{\"my_relu\": f\}") as e:
        tirx.compile(relu(), target="cpu")(np.zeros(64, "f4"), np.zeros(64, "f4"))
    assert e.value.kind == "unsupported"


def test_an_exception_of_a_stand_in_passes():
    def my_relu(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tirx.compile(relu(), target="cpu", externs={"my_relu": my_relu})(np.zeros(64, "f4"), np.zeros(64, "f4"))


@pytest.mark.parametrize("check, ctas", [(True, 1), (False, 1), (False, 64)])
def test_a_stand_in_may_run_kernels_but_not_for_ever(check, ctas, monkeypatch):
    monkeypatch.setenv("TIRX_THREADS", "3")
    depth = 0

    def twice(x):
        nonlocal depth
        depth += 1
        if depth < 5:
            exe(np.ones(64, "f4"), np.ones(64, "f4"), check=check)
        return x * 2

    exe = tirx.compile(relu(), target="cpu", externs={"my_relu": twice})
    a, b = np.ones(64, "f4"), np.zeros(64, "f4")
    exe(a, b, check=check)
    np.testing.assert_array_equal(b, np.where(np.arange(64) % 3 != 0, 2, 0))

    def endless(x):
        again(np.ones(64, "f4"), np.ones(64, "f4"), check=check)

    again = tirx.compile(relu(ctas), target="cpu", externs={"my_relu": endless})
    for _ in range(2):
        with pytest.raises(RecursionError, match="'my_relu' was called by a kernel within 16 other such calls"):
            again(a, b, check=check)


@pytest.mark.parametrize(
    "fmt, values, error",
    [
        ("%d %d", (1,), "the format has 2 conversion(s), got 1 value(s)"),
        ("%%", (1,), "the format has 0 conversion(s), got 1 value(s)"),
        ("%*d", (1,), "the format has 2 conversion(s), got 1 value(s)"),
        ("%s", (1,), "'%s' does not print int32"),
        ("%n", (1,), "'%n' is not a conversion that a device has"),
        ("100%", (1,), "'%' is not a conversion that a device has"),
        ("%5.2f", (1,), "'%5.2f' does not print int32"),
        ("%d", (1.0,), "'%d' does not print float32"),
        ("%-4d", (2**40,), "'%-4d' does not print int64: write '%-4lld'"),
        ("%lld", (1,), "'%lld' does not print int32: write '%d'"),
    ],
)
def test_a_format_fits_its_values(fmt, values, error):
    with pytest.raises(tirx.DiagnosticError) as e:

        @T.prim_func
        def k(A: T.Buffer((32,), "int32")):
            T.device_entry()
            tx = T.thread_id([32])
            T.cuda.printf(fmt, *values)

    assert f"error: T.cuda.printf: {error}\n" in str(e.value)


def test_printf(capfd):
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"), F: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if tx < 2:
            T.cuda.printf("%d %5.2f %x|%-4u|%%\n", A[tx], F[tx], A[tx], T.uint32(7))

    tirx.compile(k, target="cpu")(np.array([-1, 255] * 16, "int32"), np.array([1.5, -2.25] * 16, "f4"))
    assert capfd.readouterr().out == "-1  1.50 ffffffff|7   |%\n255 -2.25 ff|7   |%\n"


def test_assertions():
    @T.prim_func
    def k(A: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        assert A[tx] < 10, "too large"

    exe = tirx.compile(k, target="cpu")
    a = np.zeros(64, "int32")
    exe(a)
    a[41] = 10
    with pytest.raises(tirx.EmulationError, match="too large") as e:
        exe(a)
    assert e.value.kind == "assert" and "thread (41, 0, 0)" in str(e.value) and len(e.value.lines) == 1


def test_interrupts_end_a_run(run_python):
    code = """
        import os, signal, threading, time
        import numpy as np, tirx
        from tirx.script import tirx as T

        @T.prim_func
        def k(B: T.Buffer((1,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([1])
            v: T.int32 = 0
            while v >= 0:
                v = (v + 1) % 1000003
            B[0] = v

        exe = tirx.compile(k, target="cpu")
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        for check in (True,):
            try:
                exe(np.zeros(1, "int32"), check=check)
            except KeyboardInterrupt:
                print("stopped")
    """
    assert run_python(code) == "stopped\n"
