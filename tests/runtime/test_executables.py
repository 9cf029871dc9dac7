# SPDX-License-Identifier: Apache-2.0
"""What an executable tells of itself, modules of several functions, stand-ins, packed calls, host functions."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T


@T.prim_func
def double(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = A[tx] * 2.0


@T.prim_func
def negate(A: T.Buffer((32,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = -A[tx]


def values():
    return np.arange(32, dtype=np.float32)


# ---- texts and images ------------------------------------------------------------------------------------------------


def test_the_emulators_executable_shows_cuda_text_on_demand():
    exe = tirx.compile(double, target="cpu")
    assert 'extern "C" __global__ void __launch_bounds__(32) double_kernel(' in exe.source
    assert exe.mod.imports[0].inspect_source() == exe.source
    assert exe.mod.imports[0].inspect_source("cuda") == exe.source
    for what in ("ptx", "cubin"):
        with pytest.raises(AttributeError, match=f"an executable for the emulator has no {what}".replace("ptx", "PTX")):
            getattr(exe, what)
        assert not hasattr(exe, what)
    with pytest.raises(ValueError) as e:
        exe.mod.imports[0].inspect_source("ll")
    assert str(e.value) == 'inspect_source: expected "cuda", "ptx" or "cubin", got \'ll\''
    assert [n for n in exe.mod.lowered] == ["double", "double_kernel"]
    assert not hasattr(exe, "no_such_attribute")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_an_executable_for_cuda_needs_no_device(nvrtc, arch):
    exe = tirx.compile(double, target=f"cuda:{arch}")
    assert exe.cubin[:4] == b"\x7fELF" == exe.mod.imports[0].inspect_source("cubin")[:4]
    assert f".target {arch}" in exe.ptx and exe.mod.imports[0].inspect_source("ptx") == exe.ptx
    assert "double_kernel" in exe.source
    assert repr(exe) == f"<tirx.Executable double(A: Tensor([32], float32)) for cuda:{arch}>"


def test_compiling_again_gives_the_same_image(nvrtc):
    first = tirx.compile(double, target="cuda:sm_90a")
    again = tirx.compile(double, target="cuda:sm_90a")
    assert again.cubin is first.cubin
    assert tirx.compile(double, target="cuda:sm_80").cubin != first.cubin
    assert tirx.compile(double, target="cuda:sm_90a", lineinfo=True).cubin != first.cubin


def test_a_fault_in_injected_source_is_shown_with_the_compilers_words(nvrtc):
    source = "__device__ float broken(float x) { return y; }"

    @T.prim_func
    def bad(A: T.Buffer((32,), "float32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        A[tx] = T.cuda.func_call("broken", A[tx], source_code=source, return_type="float32")

    with pytest.raises(tirx.NvrtcError) as e:
        tirx.compile(bad, target="cuda:sm_90a")
    assert isinstance(e.value, tirx.CompileError)
    assert 'identifier "y" is undefined' in e.value.log
    assert str(e.value).startswith("NVRTC compilation failed: ") and e.value.log in str(e.value)


# ---- modules ---------------------------------------------------------------------------------------------------------


def test_a_module_of_one_function():
    for module in (tirx.IRModule({"main": double}), tirx.IRModule({"f": double}), tirx.IRModule.from_expr(double)):
        exe = tirx.compile(module, target="cpu")
        for call in (exe, exe["main"]):
            a = values()
            call(a)
            np.testing.assert_array_equal(a, values() * 2)


def test_a_module_of_several_functions():
    exe = tirx.compile(tirx.IRModule({"double": double, "negate": negate}), target="cpu")
    assert exe.functions == ("double", "negate")
    assert repr(exe) == "<tirx.Executable of 2 functions for cpu>"
    with pytest.raises(TypeError) as e:
        exe(values())
    assert str(e.value) == (
        'the module has several functions, none of them "main": choose one, as in exe["double"](...)'
    )
    a = values()
    exe["double"](a)
    exe["negate"](a)
    np.testing.assert_array_equal(a, values() * -2)
    assert exe["negate"].signature == "negate(A: Tensor([32], float32))"
    assert exe["negate"]["double"].signature == exe["double"].signature
    with pytest.raises(KeyError):
        exe["other"]
    source = exe.source
    assert "double_kernel" in source and "negate_kernel" in source


def test_main_is_the_entry():
    exe = tirx.compile(tirx.IRModule({"other": negate, "main": double}), target="cpu")
    a = values()
    exe(a)
    np.testing.assert_array_equal(a, values() * 2)
    assert exe["main"] is exe


def test_irmodule():
    m = tirx.IRModule({"double": double, "negate": negate})
    assert m.names == list(m) == ["double", "negate"] and len(m) == 2
    assert "double" in m and "main" not in m
    assert tirx.structural_equal(m["negate"], negate)
    assert tirx.structural_equal(m, tirx.IRModule(m.functions))
    assert not tirx.structural_equal(m, tirx.IRModule({"double": double}))
    assert "def double(" in m.script() and str(m) == m.script()
    with pytest.raises(TypeError) as e:
        tirx.IRModule([double])
    assert str(e.value) == "IRModule: expected a dict of name to function"
    with pytest.raises(TypeError) as e:
        tirx.IRModule({"main": 3})
    assert str(e.value) == (
        "IRModule: 'main': expected a function made by @T.prim_func or @T.function, or an IRModule, got int"
    )
    with pytest.raises(AttributeError):
        m.module = None


def test_lower_and_the_passes():
    low = tirx.lower(double)
    assert low.names == ["double", "double_kernel"]
    assert tirx.structural_equal(low, tirx.lower(double, "cpu"))
    names = tirx.transform.names()
    assert "SplitHostDevice" in names
    m = tirx.IRModule({"double": double})
    for name in names:
        m = getattr(tirx.transform, name)()(m)
    assert m.names == ["double", "double_kernel"]
    with pytest.raises(AttributeError, match="has no pass 'NoSuchPass'"):
        tirx.transform.NoSuchPass


# ---- the host half ---------------------------------------------------------------------------------------------------


def test_a_function_without_a_device_region():
    @T.prim_func
    def host(n: T.int32) -> T.int32:
        return n * 2 + 1

    exe = tirx.compile(host, target="cpu")
    assert exe(20) == 41 and exe(-3) == -5
    with pytest.raises(IndexError) as e:
        exe.mod.imports[0]
    assert str(e.value) == "the function has no device region: nothing runs on a GPU"
    with pytest.raises(AttributeError, match="the function has no device region"):
        exe.source


def test_an_assertion_of_the_host_half():
    @T.prim_func
    def positive(n: T.int32) -> T.int32:
        assert n > 0, "n must be positive"
        return n

    exe = tirx.compile(positive, target="cpu")
    assert exe(1) == 1
    with pytest.raises(AssertionError) as e:
        exe(0)
    assert "n must be positive" in str(e.value)


def test_packed_calls():
    seen = []

    @tirx.register_func("tests.packed_calls.note")
    def note(*args):
        seen.append(args)
        return 3

    @T.prim_func
    def calling(A: T.Buffer((32,), "float32"), s: T.float32, k: T.int32):
        T.evaluate(T.call_packed("tests.packed_calls.note", A.data, s, k + 1, "text"))
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        A[tx] = A[tx] * s

    exe = tirx.compile(calling, target="cpu")
    a = values()
    exe(a, 0.5, 41)
    [(tensor, s, k, text)] = seen
    assert tensor is a and (s, k, text) == (0.5, 42, "text")
    np.testing.assert_array_equal(a, values() * 0.5)
    with pytest.raises(ValueError) as e:
        tirx.register_func("tests.packed_calls.note", note)
    assert str(e.value) == "register_func: 'tests.packed_calls.note' is registered already; override=True replaces it"

    def fail(*args):
        raise OSError("disk full")

    tirx.register_func("tests.packed_calls.note", fail, override=True)
    with pytest.raises(OSError, match="disk full"):
        exe(a, 0.5, 41)
    del tirx._core.packed_functions["tests.packed_calls.note"]
    with pytest.raises(RuntimeError) as e:
        exe(a, 0.5, 41)
    name = "tests.packed_calls.note"
    assert str(e.value) == (
        f"packed function '{name}' is not registered: "
        f'tirx.register_func("{name}", f), or externs={{"{name}": f}} of tirx.compile'
    )
    tirx.compile(calling, target="cpu", externs={name: note})(a, 1.0, 0)
    assert seen[-1][1:] == (1.0, 1, "text")


# ---- stand-ins -------------------------------------------------------------------------------------------------------

SOURCE = "__device__ __forceinline__ float my_relu(float x) { return x > 0.0f ? x : 0.0f; }"


@T.prim_func
def relu(A: T.Buffer((40,), "float32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
    if tx < 40:
        A[tx] = T.cuda.func_call("my_relu", A[tx], source_code=SOURCE, return_type="float32")


def test_a_stand_in_gets_the_values_of_the_active_lanes():
    sizes = []

    def my_relu(x):
        assert isinstance(x, np.ndarray) and x.dtype == np.float32
        sizes.append(x.size)
        return np.maximum(x, 0)

    exe = tirx.compile(relu, target="cpu", externs={"my_relu": my_relu})
    a = np.linspace(-1, 1, 40, dtype=np.float32)
    want = np.maximum(a, 0)
    exe(a)
    np.testing.assert_array_equal(a, want)
    assert sum(sizes) == 40
    assert SOURCE in exe.source


def test_without_a_stand_in_the_emulator_says_what_it_needs():
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(relu, target="cpu")(np.zeros(40, np.float32))
    assert e.value.kind == "unsupported" and "my_relu" in str(e.value)


@pytest.mark.parametrize(
    "f, error, text",
    [
        (lambda x: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda x: np.zeros(3), ValueError, "a stand-in gave 3 values, expected"),
        (lambda x: "text", ValueError, "could not convert"),
    ],
)
def test_faults_of_a_stand_in(f, error, text):
    with pytest.raises(error, match=text):
        tirx.compile(relu, target="cpu", externs={"my_relu": f})(np.zeros(40, np.float32))


def test_a_stand_in_may_give_one_value_for_all():
    a = np.zeros(40, np.float32)
    tirx.compile(relu, target="cpu", externs={"my_relu": lambda x: 7})(a)
    assert (a == 7).all()


def test_printf_goes_to_pythons_stdout(capsys):
    @T.prim_func
    def say(n: T.int32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        if tx == 5:
            T.cuda.printf("thread %d of %d\n", tx, n)

    tirx.compile(say, target="cpu")(7)
    assert capsys.readouterr().out == "thread 5 of 7\n"


def test_ctrl_c_ends_an_endless_kernel(run_python):
    out = run_python(
        """
        import os, signal, threading, time
        import numpy as np
        import tirx
        from tirx.script import tirx as T

        @T.prim_func
        def forever(A: T.Buffer((1,), "int32")):
            T.device_entry()
            bx = T.cta_id([1])
            tx = T.thread_id([1])
            while A[0] >= 0:
                A[0] = (A[0] + 1) & 1023

        exe = tirx.compile(forever, target="cpu")
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.time()
        try:
            exe(np.zeros(1, np.int32))
        except KeyboardInterrupt:
            print("interrupted", time.time() - start < 20)
        """
    )
    assert out == "interrupted True\n"
