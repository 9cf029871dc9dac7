# SPDX-License-Identifier: Apache-2.0
"""Modules: functions that call each other, and the IRModule that holds them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tirx
from tirx import _core as core
from tirx.script import ir as I
from tirx.script import tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clip(x: T.int32, low: T.int32) -> T.int32:
        if x < low:
            return low
        return Module.half(x)

    @T.prim_func(private=True)
    def half(x: T.int32) -> T.int32:
        return x // 2

    @T.prim_func(private=True)
    def put(A: T.Buffer(("n",), "int32"), i: T.int32):
        n = T.int32()
        if i >= n:
            return
        A[i] = A[i] * 10 + n

    @T.prim_func
    def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        B[tx] = Module.clip(A[tx], 5)
        cls.put(B, tx)  # noqa: F821

    @T.prim_func
    def second(A: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        A[tx] = Module.clip(A[tx], 7) + Module.half(tx)


def clip(x, low):
    return np.where(x < low, low, x // 2)


def test_members_compute_what_python_says():
    exe = tirx.compile(Module, target="cpu")
    a, b = np.arange(-10, 54, dtype=np.int32), np.zeros(64, np.int32)
    exe["main"](a, b)
    np.testing.assert_array_equal(b, clip(a, 5) * 10 + 64)
    c = a.copy()
    exe["second"](c)
    np.testing.assert_array_equal(c, clip(a, 7) + np.arange(64) // 2)


def test_a_module_prints_and_parses_back_at_every_stage():
    m = Module
    assert "A[tx] = Module.clip(A[tx], 7) + Module.half(tx)" in m.script()
    assert tirx.structural_equal(m, tirx.from_source(m.script()))
    for name in tirx.transform.names():
        m = getattr(tirx.transform, name)()(m, target="cuda:sm_90a")
        assert tirx.structural_equal(m, tirx.from_source(m.script())), name
        assert getattr(tirx.transform, name)()(m, target="cuda:sm_90a").script() == m.script()


def test_after_every_pass(golden):
    m, texts = Module, []
    for name in tirx.transform.names():
        m = getattr(tirx.transform, name)()(m, target="cuda:sm_90a")
        texts.append(f"# ==== {name}\n{m.script(header=False)}")
    golden("lower/module.passes.py.txt", "\n".join(texts))


def test_cuda_text(golden):
    golden("cuda/module.cu", tirx.compiler.cuda_text(Module, "cuda:sm_90a"))


def test_compiles(nvrtc):
    for arch in ("sm_80", "sm_90a", "sm_100a"):
        assert len(tirx.compile(Module, target=f"cuda:{arch}").cubin) > 0


@pytest.mark.gpu
def test_on_a_gpu():
    exe = tirx.compile(Module, target="cuda")
    a = np.arange(-10, 54, dtype=np.int32)
    there, out = tirx.tensor(a, tirx.cuda()), tirx.tensor(np.zeros(64, np.int32), tirx.cuda())
    exe["main"](there, out)
    np.testing.assert_array_equal(out.numpy(), clip(a, 5) * 10 + 64)


def test_a_member_alone_brings_what_it_calls():
    f = Module["second"]
    a = np.arange(64, dtype=np.int32)
    tirx.compile(f, target="cpu")(a)
    np.testing.assert_array_equal(a, clip(np.arange(64), 7) + np.arange(64) // 2)
    one = tirx.IRModule({"other": f})
    assert sorted(one) == ["clip", "half", "other"]
    assert tirx.structural_equal(one, tirx.from_source(one.script()))


# ---- what device functions may do -----------------------------------------------------------------------------------


def compiled(text: str):
    return tirx.compile(tirx.from_source(text), target="cpu")


def test_buffers_of_every_memory_and_views_by_pointer():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def sum3(X: T.Buffer((3,), "int32", scope="local")) -> T.int32:
        return X[0] + X[1] + X[2]
    @T.prim_func(private=True)
    def fill(X: T.Buffer((3,), "int32", scope="local"), first: T.int32):
        for i in range(3):
            X[i] = first + i
    @T.prim_func(private=True)
    def swap(S: T.Buffer((64,), "int32", scope="shared"), i: T.int32, j: T.int32):
        t: T.let = S[i]
        T.cuda.cta_sync()
        S[j] = t
        T.cuda.cta_sync()
    @T.prim_func(private=True)
    def read(p: T.handle("int32"), i: T.int32) -> T.int32:
        P = T.decl_buffer((64,), "int32", data=p)
        return P[i]
    @T.prim_func
    def k(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        s = T.alloc_shared((64,), "int32")
        v = T.alloc_local((3,), "int32")
        M.fill(v, A[tx])
        s[tx] = M.sum3(v)
        M.swap(s, tx, 63 - tx)
        B[tx] = s[tx] + M.read(A.data, 63 - tx) + M.read(A, 0)
""")
    a, b = np.arange(64, dtype=np.int32) * 3 + 2, np.zeros(64, np.int32)
    exe["k"](a, b)
    np.testing.assert_array_equal(b, (3 * a + 3)[::-1] + a[::-1] + a[0])


def test_sizes_of_two_dimensions_and_strides_of_the_caller():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def at(X: T.Buffer(("n", "m * 2 + 1"), "float32"), i: T.int32) -> T.float32:
        n = T.int32()
        m = T.int32()
        return X[i // (m * 2 + 1), i % (m * 2 + 1)] + T.Cast("float32", n * 1000 + m * 100)
    @T.prim_func
    def k(A: T.Buffer(("a", "b"), "float32"), B: T.Buffer(("a * b",), "float32")):
        a = T.int32()
        b = T.int32()
        T.device_entry()
        bx = T.cta_id([T.ceildiv(a * b, 64)])
        tx = T.thread_id([64])
        i: T.let = bx * 64 + tx
        if i < a * b:
            B[i] = M.at(A, T.int32(i))
""")
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    b = np.zeros(35, np.float32)
    exe["k"](a, b)
    np.testing.assert_array_equal(b, a.reshape(-1) + 5000 + 300)


def test_indices_inside_a_device_function():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def where() -> T.int32:
        return T.cuda.warp_id() * 1000 + T.cuda.lane_id() + T.cuda.block_idx("x") * 100000
    @T.prim_func
    def k(A: T.Buffer((2, 128), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx, ty = T.thread_id([32, 4])
        A[bx, ty * 32 + tx] = M.where()
""")
    a = np.zeros((2, 128), np.int32)
    exe["k"](a)
    t = np.arange(128)
    np.testing.assert_array_equal(a, np.stack([t // 32 * 1000 + t % 32 + b * 100000 for b in range(2)]))


def test_returns_from_loops_and_in_conditions():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def first_divisor(n: T.int32) -> T.int32:
        d: T.int32 = 2
        while d * d <= n:
            if n % d == 0:
                return d
            d = d + 1
        return n
    @T.prim_func(private=True)
    def forever(n: T.int32) -> T.int32:
        i: T.int32 = n
        while True:
            i = i + 1
            if i % 7 == 0:
                return i
    @T.prim_func
    def k(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
        T.device_entry()
        tx = T.thread_id([128])
        if M.first_divisor(tx + 2) == tx + 2 and tx < 100:
            A[tx] = M.forever(tx)
        for i in range(M.first_divisor(tx + 2)):
            B[tx] = i
""")
    a, b = np.full(128, -1, np.int32), np.zeros(128, np.int32)
    exe["k"](a, b)

    def divisor(n):
        return next((d for d in range(2, n) if d * d <= n and n % d == 0), n)

    want = [(t // 7 + 1) * 7 if divisor(t + 2) == t + 2 and t < 100 else -1 for t in range(128)]
    np.testing.assert_array_equal(a, want)
    np.testing.assert_array_equal(b, [divisor(t + 2) - 1 for t in range(128)])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float64"])
def test_scalars_of_every_kind_pass(nvrtc, dtype):
    text = f"""
@T.ir_module
class M:
    @T.function(private=True)
    def same(x: T.{dtype}) -> T.{dtype}:
        return x
    @T.function
    def k(A: T.Tensor((32,), T.{dtype}), B: T.Tensor((32,), T.{dtype})):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tx = T.cuda.thread_idx("x")
        B[tx] = M.same(A[tx])
"""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    t = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    a = (np.arange(32) % 2 if dtype == "bool" else np.arange(32) - 3 * (dtype[0] != "u")).astype(t)
    b = np.zeros(32, t)
    compiled(text)["k"](a, b)
    np.testing.assert_array_equal(a, b)
    assert tirx.compile(tirx.from_source(text), target="cuda:sm_90a").cubin


def test_names_that_cuda_has(nvrtc):
    m = tirx.from_source("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def max(x: T.int32, y: T.int32) -> T.int32:
        return T.max(x, y) + 1
    @T.prim_func(private=True)
    def größe(x: T.int32) -> T.int32:
        return x
    @T.prim_func(private=True)
    def k_kernel(x: T.int32) -> T.int32:
        return x
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = M.max(M.größe(tx), 5) + M.k_kernel(1)
""")
    exe = tirx.compile(m, target="cuda:sm_90a")
    assert "int max_device(int x, int y)" in exe.source and "k_kernel_1(" in exe.source


def test_nothing_of_a_device_functions_alignment_is_assumed(nvrtc):
    """A vectorised access behind a passed pointer would need an alignment that no call checks."""
    text = tirx.compiler.cuda_text(
        tirx.from_source("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def copy(X: T.Buffer((64,), "float32"), Y: T.Buffer((64,), "float32")):
        for i in T.vectorized(4):
            Y[i] = X[i]
    @T.prim_func
    def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.device_entry()
        tx = T.thread_id([32])
        if tx == 0:
            M.copy(A, B)
"""),
        "cuda:sm_90a",
    )
    assert "float4" not in text and "__restrict__" not in text.partition("extern")[0]


def test_a_tensor_written_in_a_device_function_cannot_be_read_only():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def deep(X: T.Buffer((32,), "int32"), i: T.int32):
        X[i] = i
    @T.prim_func(private=True)
    def put(X: T.Buffer((32,), "int32"), i: T.int32):
        M.deep(X, i)
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        M.put(A, tx)
""")
    a = np.zeros(32, np.int32)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="A is written by the kernel"):
        exe["k"](a)


def test_a_report_names_the_line_in_the_device_function():
    exe = compiled("""
@I.ir_module
class M:
    @T.prim_func(private=True)
    def put(X: T.Buffer((32,), "int32"), i: T.int32):
        X[i + 1] = i
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        M.put(A, tx)
""")
    with pytest.raises(tirx.EmulationError) as e:
        exe["k"](np.zeros(32, np.int32))
    assert e.value.kind == "out_of_bounds" and "X[i + 1] = i" in str(e.value)


def test_calls_from_plain_python_helpers():
    def helper(f, x):
        f(x)  # its value is dropped, the call is not
        return f(x) * 2

    m = tirx.from_source(
        """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def one(x: T.int32) -> T.int32:
        return x + 1
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = helper(M.one, tx)
""",
        {"helper": helper},
    )
    assert m.script().count("M.one") + m.script().count("Module.one") == 2
    a = np.zeros(32, np.int32)
    tirx.compile(m, target="cpu")["k"](a)
    np.testing.assert_array_equal(a, (np.arange(32) + 1) * 2)


def test_a_member_is_called_inside_kernels_only():
    kept = []

    def keep(x):
        kept.append(x)

    tirx.from_source(
        """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def one(x: T.int32) -> T.int32:
        return x + 1
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        keep(M.one)
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = M.one(tx)
""",
        {"keep": keep},
    )
    with pytest.raises(RuntimeError, match=r"M\.one can only be called inside a function of its module"):
        kept[0](1)


# ---- calls on the host -----------------------------------------------------------------------------------------

HOST = """
@I.ir_module
class M:
    @T.prim_func
    def add(A: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "int32"), k: T.int32):
        n = T.int32()
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, 32)])
        tx = T.thread_id([32])
        if bx * 32 + tx < n:
            B[bx * 32 + tx] = A[bx * 32 + tx] + k
    @T.prim_func
    def twice(a: T.handle, b: T.handle):
        n = T.int32()
        X = T.match_buffer(a, (n,), "int32")
        Y = T.match_buffer(b, (n,), "int32")
        M.add(X, Y, 1)
        M.add(Y, X, n * 10)
    @T.prim_func
    def main(A: T.Buffer((70,), "int32"), B: T.Buffer((70,), "int32"), n: T.int32):
        x: T.int32 = 0
        for i in range(n):
            M.twice(A, B)
            x = x + i
        if n > 2:
            M.add(A, B, x)
    @T.prim_func
    def unequal(A: T.Buffer(("m",), "int32"), B: T.Buffer((70,), "int32")):
        m = T.int32()
        M.add(A, B, 1)
"""


def test_functions_with_regions_call_each_other_on_the_host(nvrtc):
    m = tirx.from_source(HOST)
    assert "Module.twice(A, B)" in m.script() and tirx.structural_equal(m, tirx.from_source(m.script()))
    lowered = tirx.lower(m, "cuda:sm_90a")
    assert tirx.structural_equal(lowered, tirx.from_source(lowered.script()))
    a, b = np.arange(70), np.zeros(70)
    for _ in range(3):
        b = a + 1
        a = b + 700
    b = a + 3
    for exe in (tirx.compile(m, target="cpu"), tirx.compile(m["main"], target="cpu")):
        x, y = np.arange(70, dtype=np.int32), np.zeros(70, np.int32)
        exe(x, y, 3)
        np.testing.assert_array_equal(x, a)
        np.testing.assert_array_equal(y, b)
    source = tirx.compile(m, target="cuda:sm_90a").source
    assert [f"{name}_kernel" in source for name in ("add", "twice", "main", "main_kernel_1", "unequal")] == [
        True, True, True, False, True,
    ]  # fmt: skip


def test_extents_of_a_call_on_the_host_are_checked():
    exe = compiled(HOST)
    b = np.zeros(70, np.int32)
    exe["unequal"](np.ones(70, np.int32), b)
    assert (b == 2).all()
    with pytest.raises(ValueError, match=r"^B.shape\[0\] does not match what add\(\) expects$"):
        exe["unequal"](np.ones(69, np.int32), b)


@pytest.mark.parametrize(
    ("head", "call", "why"),
    [
        ("T.func_attr({'a': 1})", "M.f(A)", "it has attributes of its own"),
        ("pass", "M.f(A.data)", "it needs a buffer, not a pointer"),
    ],
)
def test_what_cannot_be_called_on_the_host(head, call, why):
    m = tirx.from_source(f"""
@I.ir_module
class M:
    @T.prim_func
    def f(A: T.Buffer((32,), "int32")):
        {head}
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = 1
    @T.prim_func
    def main(A: T.Buffer((32,), "int32"), p: T.handle("int32")):
        {call.replace("A.data", "p")}
""")
    with pytest.raises(tirx.DiagnosticError, match=f"'f' cannot be called on the host: {why}"):
        tirx.lower(m)


# ---- IR that no text makes ------------------------------------------------------------------------------------------


def made(name: str, callee: str, nargs: int = 0):
    ctx = core.Context()
    ctx.set_place(ctx.add_file("k.py", "one\ntwo\nthree\n"), name)
    b = core.Builder(ctx, name, "g1")
    b.set_flags(1 | 16 | 64)
    b.set_symbol(None)
    ctx.at_pos(2, 0, 2, 3)
    b.evaluate(core.make(ctx, "CALL_FUNC", "void", (1,) * nargs, call=(callee, None)))
    return b.finish()


def test_calls_in_a_circle():
    with pytest.raises(tirx.DiagnosticError) as e:
        tirx.IRModule({"f": made("f", "g"), "g": made("g", "f")})
    assert str(e.value) == (
        "k.py:2:1: error: functions of a module cannot be recursive: 'f' calls itself\ntwo\n^^^\n  help: use a loop"
    )


def test_a_callee_that_is_not_there():
    with pytest.raises(tirx.DiagnosticError) as e:
        tirx.IRModule({"f": made("f", "g")})
    assert str(e.value) == "k.py:2:1: error: the module has no function 'g'\ntwo\n^^^"


def test_a_call_with_too_many_arguments():
    g = tirx.from_source("@T.prim_func(private=True)\ndef g(x: T.int32):\n    T.evaluate(x)\n")
    with pytest.raises(tirx.DiagnosticTypeError) as e:
        tirx.lower(tirx.IRModule({"f": made("f", "g", 2), "g": g}))
    assert str(e.value) == "k.py:2:1: error: g() takes 1 argument(s), got 2\ntwo\n^^^"


def test_calls_that_multiply():
    functions = "".join(
        f"    @T.prim_func(private=True)\n    def f{i}(x: T.int32) -> T.int32:\n"
        f"        return {' + '.join([f'M.f{i + 1}(x)'] * 10) if i < 4 else 'x'}\n"
        for i in range(5)
    )
    text = (
        "@I.ir_module\nclass M:\n" + functions + "    @T.prim_func\n"
        '    def k(A: T.Buffer((32,), "int32")):\n        T.device_entry()\n        tx = T.thread_id([32])\n'
        "        A[tx] = M.f0(tx)\n"
    )
    with pytest.raises(tirx.DiagnosticError) as e:
        compiled(text)
    assert re.search(
        r":\d+:\d+: error: calls of device functions are expanded more than 10000 times in the emulator\n +return M",
        str(e.value),
    )
    assert tirx.compiler.cuda_text(tirx.from_source(text), "cuda:sm_90a").count("static __device__") == 10


# ---- the module from Python -----------------------------------------------------------------------------------------


def test_members_by_name():
    assert list(Module) == ["clip", "half", "put", "main", "second"]
    assert len(Module) == 5 and "main" in Module and "nosuch" not in Module
    assert Module["main"].__name__ == "main" and dict(Module.items())["put"].ret_type is None
    with pytest.raises(KeyError, match="no function 'nosuch'; it has clip, half, put, main, second"):
        Module["nosuch"]


def test_changed_copies():
    f = Module["main"]
    more = Module.with_function("extra", f)
    assert "extra" in more and "extra" not in Module
    assert list(more.without_function("extra")) == list(Module)
    assert list(Module.update({"third": f})) == [*Module, "third"]
    assert list(Module.update(tirx.IRModule({"third": f})))[-1] == "third"
    with pytest.raises(KeyError):
        Module.without_function("nosuch")
    with pytest.raises(ValueError, match="another function of the module calls 'half'"):
        Module.without_function("half")
    with pytest.raises(TypeError, match="cannot be changed; module.with_function"):
        Module["main"] = f
    with pytest.raises(AttributeError, match="cannot be changed"):
        Module.module = None


def test_attributes_of_a_module():
    @I.ir_module
    class Attributed:
        I.module_attrs({"author": "someone", "version": 3})
        I.module_set_attr("more", [1, 2])
        assert I.module_get_attr("version") == 3 and I.module_get_attr("nosuch") is None

        @T.prim_func
        def k(A: T.Buffer((32,), "int32")):
            T.device_entry()
            tx = T.thread_id([32])
            A[tx] = 1

    assert Attributed.attrs == {"author": "someone", "version": 3, "more": [1, 2]}
    again = tirx.from_source(Attributed.script())
    assert again.attrs == Attributed.attrs and tirx.structural_equal(again, Attributed)
    assert Attributed.with_attr("version", 4).attrs["version"] == 4
    assert "version" not in Attributed.without_attr("version").attrs
    with pytest.raises(ValueError, match="set already"):

        @I.ir_module
        class Twice:
            I.module_set_attr("a", 1)
            I.module_set_attr("a", 2)

    with pytest.raises(RuntimeError, match="stands in the body of a class"):
        I.module_attrs({})


def test_python_functions_and_functions_made_elsewhere():
    f = Module["main"]

    @I.ir_module
    class Mixed:
        I.module_global_infos({"vdevice": []})
        I.decl_function("given", f)

        @I.pyfunc
        def plus(a, b):
            return a + b

    assert Mixed["plus"](1, 2) == 3 and "plus" in Mixed and set(Mixed) == {"given", "put", "clip", "half"}
    again = tirx.from_source(Mixed.script())
    assert again["plus"](1, 2) == 3 and again.global_infos == {"vdevice": []}
    assert tirx.structural_equal(again, Mixed)


def test_device_functions_alone_are_nothing_to_call():
    exe = tirx.compile(Module["half"], target="cpu")
    with pytest.raises(TypeError, match="the module has only device functions: there is nothing to call"):
        exe(3)
    with pytest.raises(KeyError, match="half"):
        tirx.compile(Module, target="cpu")["half"]


def test_a_class_without_functions():
    with pytest.raises(TypeError, match="class Empty has no kernel functions"):

        @I.ir_module
        class Empty:
            x = 1


def test_a_module_made_in_a_function_sees_its_names():
    def make(n):
        @I.ir_module
        class Local:
            @T.prim_func(private=True)
            def add(x: T.int32) -> T.int32:
                return x + n

            @T.prim_func
            def k(A: T.Buffer((n,), "int32")):
                T.device_entry()
                tx = T.thread_id([n])
                A[tx] = Local.add(tx)

        return Local

    for n in (32, 64):
        a = np.zeros(n, np.int32)
        tirx.compile(make(n), target="cpu")["k"](a)
        np.testing.assert_array_equal(a, np.arange(n) + n)


def test_two_members_of_one_name_are_told_at_the_second():
    with pytest.raises(tirx.DiagnosticError, match="module Twice has two functions named 'f'") as e:

        @I.ir_module
        class Twice:
            @T.prim_func(private=True)
            def f(x: T.int32) -> T.int32:
                return x

            @T.prim_func(private=True)
            def f(second: T.int32) -> T.int32:
                return second

    assert e.value.text.strip() == "def f(second: T.int32) -> T.int32:"


def test_a_call_that_gives_no_value_is_named_so():
    with pytest.raises(tirx.DiagnosticError, match="cannot hold the result of a call that gives no value"):

        @T.prim_func
        def k(A: T.Buffer((64,), "int32")):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = T.cuda.cta_sync()
