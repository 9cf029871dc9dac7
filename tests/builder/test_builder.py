# SPDX-License-Identifier: Apache-2.0
"""tirx.builder: functions made by calls are those that the parser makes; frames, callbacks, names, places, nesting."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import tirx
import tirx.builder
from tirx import _core
from tirx.builder import IRBuilder
from tirx.builder import ir as I
from tirx.script import tirx as T


def same(made, parsed) -> None:
    assert tirx.structural_equal(made, parsed), f"{made.script()}\n{parsed.script()}"


def test_the_example_of_the_reference():
    with IRBuilder() as ib:
        with I.prim_func():
            I.func_name("f")
            I.func_attr({"global_symbol": "f"})
            A = I.arg("A", I.buffer((256,), "float32"))
            I.device_entry()
            tx = I.thread_id([256])
            with I.If(tx < 100), I.Then():
                A[tx] = A[tx] * 2.0
    f = ib.get()

    @T.prim_func
    def parsed(A: T.Buffer((256,), "float32")):
        T.device_entry()
        tx = T.thread_id([256])
        if tx < 100:
            A[tx] = A[tx] * 2.0

    same(f, parsed.with_attr("global_symbol", "f"))
    a = np.arange(256, dtype=np.float32)
    tirx.compile(f, target="cpu")(a)
    assert a[99] == 198 and a[100] == 100


def test_names_are_the_same_objects():
    for name in I.__all__:
        assert getattr(I, name) is getattr(T, name) is getattr(tirx.builder, name)
    assert I.exp is T.exp and tirx.builder.exp is T.exp and tirx.builder.ir is I
    with pytest.raises(AttributeError, match="nosuch"):
        I.nosuch


def test_every_frame():
    kinds = {}
    with IRBuilder() as ib:
        with I.prim_func() as f:
            kinds["prim_func"] = f
            A = I.arg("A", I.buffer((8, 8, 16), "int32"))
            n = I.arg("n", T.int32)
            with I.device_entry() as d:
                assert d is None
                tx = I.thread_id([4])
                with I.attr({"pragma_x": 1}), I.hint("fast"):
                    with I.serial(0, n, step=2, annotations={"k": 3}) as i:
                        with I.unroll(2) as j, I.vectorized(4) as k:
                            A[i % 8, j, k] = i + j + k
                    with I.grid(2, (1, 3)) as (i, j):
                        A[i, j, 0] = i * j
                    with I.parallel(4) as i:
                        with I.While(A[i, 0, 0] < 3):
                            A[i, 0, 0] = A[i, 0, 0] + 1
                            I.Break()
                        I.Continue()
                with I.If(tx == 0) as branch:
                    kinds["If"] = branch
                    with I.Then():
                        I.Return()
                    with I.Else():
                        I.Assert(n > 0, "positive")

    @T.prim_func
    def main(A: T.Buffer((8, 8, 16), "int32"), n: T.int32):
        with T.device_entry():
            tx = T.thread_id([4])
            with T.attr({"pragma_x": 1}):
                with T.hint("fast"):
                    for i in T.serial(0, n, step=2, annotations={"k": 3}):
                        for j in T.unroll(2):
                            for k in T.vectorized(4):
                                A[i % 8, j, k] = i + j + k
                    for i, j in T.grid(2, (1, 3)):
                        A[i, j, 0] = i * j
                    for i in T.parallel(4):
                        while A[i, 0, 0] < 3:
                            A[i, 0, 0] = A[i, 0, 0] + 1
                            break
                        continue
            if tx == 0:
                return
            else:
                assert n > 0, "positive"

    same(ib.get(), main)
    assert isinstance(kinds["prim_func"], I.PrimFuncFrame) and isinstance(kinds["If"], I.IfFrame)


def test_types_of_frames():
    with IRBuilder(), I.prim_func():
        n = I.arg("n", T.int32)
        loops = [I.serial(4), I.parallel(4), I.vectorized(4), I.unroll(4), I.grid(4, 4)]
        assert all(isinstance(x, I.ForFrame) for x in loops)
        for make, kind in (
            (lambda: I.While(n > 0), I.WhileFrame),
            (lambda: I.attr({"a": 1}), I.AttrFrame),
            (lambda: I.hint("h"), I.HintFrame),
        ):
            x = make()
            assert type(x) is kind
            with x:
                pass


def test_flat_forms():
    with IRBuilder() as ib:
        with I.prim_func():
            A = I.arg("A", I.buffer((32,), "float32"))
            I.device_entry()
            I.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
            bx = I.launch_thread("blockIdx.x", 1)
            with bx as b, I.launch_thread("threadIdx.x", 32) as tx:
                with I.serial(4) as i:
                    I.attr({"pragma_y": 2})
                    A[tx + b] = A[tx] + i

    @T.prim_func
    def main(A: T.Buffer((32,), "float32")):
        T.device_entry()
        T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
        b = T.launch_thread("blockIdx.x", 1)
        tx = T.launch_thread("threadIdx.x", 32)
        for i in range(4):
            T.attr({"pragma_y": 2})
            A[tx + b] = A[tx] + i

    same(ib.get(), main)


def test_a_store_settles_the_flat_form_before_it():
    with IRBuilder() as ib, I.prim_func():
        A = I.arg("A", I.buffer((32,), "float32"))
        I.device_entry()
        tx = I.thread_id([32])
        I.attr({"pragma_z": 1})
        A[tx] = 1.0
    assert 'T.attr({"pragma_z": 1})\n    A[' in ib.get().script()
    assert tx.name == "tx"


def test_every_function():
    with IRBuilder() as ib:
        with I.prim_func():
            I.func_name("all")
            I.func_attr({"tirx.noalias": True})
            p = I.arg("p", I.handle())
            A = I.match_buffer(p, (32,), "float32")
            I.device_entry()
            bx, by = I.cta_id([2, 1])
            tx = I.thread_id([32])
            S = I.alloc_shared((32,), "float32")
            L = I.alloc_local((4,), "float32")
            B = I.alloc_buffer((4,), "float32", scope="local")
            V = I.decl_buffer((8, 4), "float32", data=S.data, scope="shared")
            c = I.local_scalar("int32", 3)
            s = I.shared_scalar("int32")
            d = I.alloc_scalar("float32")
            e = I.decl_scalar("float32", L.data, "local")
            x = I.Bind(tx * 2 + bx + by)
            I.buffer_store(S, 1.0, [tx])
            c.buffer[0] = c + 1
            s[0] = 2
            d[0] = e[0]
            B[0] = V[0, 0]
            I.static_assert(True)
            I.evaluate(T.cuda.cta_sync())
            A[tx] = T.cast(x, "float32") + c

    @T.prim_func
    def all(p: T.handle):
        T.func_attr({"tirx.noalias": True})
        A = T.match_buffer(p, (32,), "float32")
        T.device_entry()
        bx, by = T.cta_id([2, 1])
        tx = T.thread_id([32])
        S = T.alloc_shared((32,), "float32")
        L = T.alloc_local((4,), "float32")
        B = T.alloc_buffer((4,), "float32", scope="local")
        V = T.decl_buffer((8, 4), "float32", data=S.data, scope="shared")
        c: T.int32 = 3
        s = T.shared_scalar("int32")
        d = T.alloc_scalar("float32")
        e = T.decl_scalar("float32", L.data, "local")
        x: T.let = tx * 2 + bx + by
        S[tx] = 1.0
        c = c + 1
        s = 2
        d[0] = e[0]
        B[0] = V[0, 0]
        T.cuda.cta_sync()
        A[tx] = T.cast(x, "float32") + c

    same(ib.get(), all)


def test_sizes_and_scalars():
    with IRBuilder() as ib:
        with I.prim_func():
            I.func_name("k")
            m = I.int32()
            A = I.arg("A", I.buffer((m, "n"), "float32"))
            I.arg("m", m)
            I.device_entry()
            tx = I.thread_id([32])
            A[0, tx] = T.cast(m, "float32")

    @T.prim_func
    def k(A: T.Buffer(("m", "n"), "float32"), m: T.int32):
        T.device_entry()
        tx = T.thread_id([32])
        A[0, tx] = T.cast(m, "float32")

    same(ib.get(), k)
    assert [name for name, _ in ib.get().params] == ["A", "m"]


def test_prim_func_without_a_function_is_a_decorator_too():
    @I.prim_func(private=True)
    def f(A: T.Buffer((4,), "int32")):
        T.device_entry()
        A[T.thread_id([4])] = 1

    assert isinstance(f, _core.Function) and f.symbol is None
    with IRBuilder() as ib, I.prim_func(private=True):
        A = I.arg("A", I.buffer((4,), "int32"))
        I.device_entry()
        A[I.thread_id([4])] = 1
    same(ib.get(), f)


def test_callbacks():
    order = []
    with IRBuilder() as ib, I.prim_func() as f:
        f.add_callback(lambda: order.append("function"))
        A = I.arg("A", I.buffer((4,), "int32"))
        loop = I.serial(4)
        loop.add_callback(lambda: (order.append("first"), I.buffer_store(A, 7, [0])))
        with loop as i:
            flat = I.attr({"pragma_x": 1})
            flat.add_callback(lambda: order.append("flat"))
            A[i] = 1
            loop.add_callback(lambda: order.append("second"))
            assert not order
    assert order == ["flat", "second", "first", "function"]
    assert ib.get().script().count("A[0] = 7") == 1
    assert "    for i in range(4):\n        T.attr" in ib.get().script()


def test_names():
    with IRBuilder() as ib, I.prim_func():
        A = I.arg("A", I.buffer((4,), "int32"))
        I.device_entry()
        tx = IRBuilder.name("tx", I.thread_id([4]))
        x, y = ib.name_many(["x", "y"], [I.Bind(tx + 1), I.local_scalar("int32", 2)])
        assert ib.name("nothing", 3) == 3
        A[tx] = x + y
    text = ib.get().script()
    assert "tx = T.thread_id([4])" in text and "A[tx] = x + y" in text


def test_nesting_builds_another_function():
    def inner():
        with IRBuilder() as ib, I.prim_func():
            assert IRBuilder.current() is ib
            I.func_name("inner")
            B = I.arg("B", I.buffer((2,), "int32"))
            B[0] = 3
        return ib.get()

    with IRBuilder() as ib:
        assert IRBuilder.current() is ib and ib.frames == []
        with I.prim_func() as f:
            A = I.arg("A", I.buffer((4,), "int32"))
            with I.serial(4) as i:
                made = inner()
                assert IRBuilder.current() is ib
                A[i] = 1
                assert ib.frames[0] is f and len(ib.frames) == 2
    assert not IRBuilder.is_in_scope()
    assert "B[0] = 3" in made.script() and "B[" not in ib.get().script()


def test_current_of_kernels():
    seen = []

    def look(x):
        seen.append((IRBuilder.is_in_scope(), len(IRBuilder.current().frames)))
        return x

    @T.prim_func
    def k(A: T.Buffer((4,), "int32")):
        A[0] = look(1)

    @T.trace
    def t(A: T.Buffer((4,), "int32")):
        with T.serial(4) as i:
            A[i] = look(1)

    assert seen == [(True, 0), (True, 1)]
    assert not IRBuilder.is_in_scope()


def lines_of(f, op):
    found = []

    def walk(n):
        if n.op == op:
            file, line, *_ = n.ctx.span_info(n.span)
            found.append((file, line))
        for a in n.args:
            if a is not None:
                walk(a)

    walk(f.body)
    return found


def here() -> int:
    return sys._getframe(1).f_lineno


def test_places_are_those_of_the_callers():
    def helper(A, i):
        A[i] = 2
        return here() - 1

    with IRBuilder() as ib, I.prim_func():
        A = I.arg("A", I.buffer((4,), "int32"))
        A[0] = 1
        lines = [here() - 1]
        lines.append(helper(A, 1))
        I.buffer_store(A, 3, [2])
        lines.append(here() - 1)
        with ib.with_source_span(("other.py", 77)):
            A[3] = 4
        A[0] = 5
        lines += [77, here() - 1]
    found = lines_of(ib.get(), "STORE")
    assert [line for _, line in found] == lines
    assert [file for file, _ in found] == [__file__, __file__, __file__, "other.py", __file__]


def test_values_outlive_their_builder():
    def make():
        with IRBuilder() as ib, I.prim_func():
            n = I.arg("n", T.int32)
            A = I.arg("A", I.buffer((4,), "int32"))
            x = n * 3 + 1
            A[0] = x
        return x, A, ib.frames

    x, A, frames = make()
    gc.collect()
    assert str(x) == "n * 3 + 1" and str(x + 1) == "n * 3 + 1 + 1" and A.shape == (4,) and frames == []
    assert str(A[0]) == "A[0]"
    with pytest.raises(tirx.Error, match="no builder is active"):
        A[0] = 1


def test_an_abandoned_builder_is_collected():
    def start():
        with IRBuilder(), I.prim_func():
            A = I.arg("A", I.buffer((4,), "int32"))
            with I.serial(3) as i:
                A[i] = 1
                yield A

    g = start()
    next(g)
    assert IRBuilder.is_in_scope()
    del g
    gc.collect()
    assert not IRBuilder.is_in_scope()


def test_builders_of_threads_do_not_meet():
    texts, errors = {}, []
    barrier = threading.Barrier(4)

    def build(k):
        try:
            for _ in range(20):
                with IRBuilder() as ib, I.prim_func():
                    I.func_name(f"k{k}")
                    A = I.arg("A", I.buffer((64,), "int32"))
                    barrier.wait(20)
                    with I.serial(k + 1) as i:
                        A[i] = k
                texts[k] = ib.get().script()
        except BaseException as e:  # noqa: B036
            errors.append(e)
            barrier.abort()

    threads = [threading.Thread(target=build, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    for k in range(4):
        assert f"def k{k}(" in texts[k] and f"range({k + 1}):\n        A[i] = {k}\n" in texts[k]


def test_another_thread_has_no_builder():
    caught = []

    def other(A):
        for use in (lambda: IRBuilder.current(), lambda: A.__setitem__(0, 1), lambda: I.thread_id([4])):
            try:
                use()
            except Exception as e:
                caught.append(str(e).split("\n")[0])

    with IRBuilder(), I.prim_func():
        A = I.arg("A", I.buffer((4,), "int32"))
        t = threading.Thread(target=other, args=(A,))
        t.start()
        t.join()
    assert caught[0] == "no builder is active"
    assert caught[1].endswith("error: no builder is active")
    assert caught[2] == "T.thread_id can only be used inside a kernel"


HOSTILE = """
import random, sys
from tirx import T
from tirx.builder import IRBuilder, ir as I
random.seed({seed})
pool = [1, 0, -1, 2.5, True, None, "A", (1, 2), [3], {{}}, object(), float("nan"), 2**70, I, T]
names = [n for n in I.__all__ if n not in ("prim_func",)] + ["exp", "min", "Cast", "if_then_else", "cuda", "ptx"]
seen = 0
for turn in range(150):
    ib = IRBuilder()
    try:
        with ib:
            with I.prim_func():
                pool.append(I.arg("A", I.buffer((8, 8), "float32")))
                pool.append(I.arg("n", T.int32))
                for _ in range(random.randrange(12)):
                    try:
                        f = getattr(I, random.choice(names))
                        args = [random.choice(pool) for _ in range(random.randrange(4))]
                        x = random.choice([
                            lambda: f(*args), lambda: args[0][args[1]], lambda: args[0] + args[1],
                            lambda: args[0].__setitem__(args[1], args[2]), lambda: args[0].__enter__(),
                            lambda: args[0].__exit__(None, None, None), lambda: args[0].add_callback(args[1]),
                        ])()
                        pool.append(x)
                    except Exception:
                        seen += 1
                    del pool[15:-40]
    except Exception:
        seen += 1
    assert not IRBuilder.is_in_scope()
    try:
        str(ib.get())
    except Exception:
        seen += 1
print("seen", seen > 100)
"""


@pytest.mark.parametrize("seed", range(3))
def test_nothing_crashes_the_interpreter(seed):
    """Random calls with random arguments, living and dead: exceptions only."""
    made = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", HOSTILE.format(seed=seed)], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr[-3000:]
    assert made.stdout == "seen True\n"


def test_results_are_named_as_their_targets():
    class Owner:
        pass

    def make(self):
        self.inside = T.alloc_local((4,), "int32")
        return self

    with IRBuilder() as ib, I.prim_func():
        A = I.arg("a", I.buffer((64, 4), "int32"))
        I.device_entry()
        bx, by = I.cta_id([1, 1])
        (tx,) = [I.thread_id([64])]
        tile = I.alloc_shared((64,), "int32")
        own = make(Owner())
        x = I.Bind(bx + by)
        count = I.local_scalar("int32", 0)
        seen = T.cuda.atomic_add(A.ptr_to([0, 0]), 1)
        with I.serial(4) as step, I.grid(2, 2) as (row, col):
            tile[row] = own.inside[col] + x + count + step + seen + tx
        for k in range(2):
            again = I.Bind(tile[k] + 1)
            tile[k] = again

        def closure():
            return bx, tile  # so that both are cells of Python

        deep = I.Bind(tile[9] * 2)
        (lambda: deep)()
    text = ib.get().script()
    for line in (
        "bx, by = T.cta_id([1, 1])",
        "v = T.thread_id([64])",
        "tile = T.alloc_shared((64,), \"int32\")",
        "inside = T.alloc_local((4,), \"int32\")",
        "x: T.let[T.int32] = bx + by",
        "count: T.int32 = 0",
        "seen: T.let[T.int32] = T.cuda.atomic_add",
        "for step in range(4):",
        "for row in range(2):",
        "again: T.let[T.int32] = tile[0] + 1",
        "again_1: T.let[T.int32] = tile[1] + 1",
        "deep: T.let[T.int32] = tile[9] * 2",
    ):
        assert line in text, text


def test_names_of_module_level_code():
    text = "with IRBuilder() as ib, I.prim_func():\n    big = I.alloc_local((4,), 'int32')\n    big[0] = 1\n"
    names = {"IRBuilder": IRBuilder, "I": I, **{f"unused_{k}": k for k in range(300)}}
    fill = "".join(f"unused_{k} = {k}\n" for k in range(300))  # the index of the name needs more than a byte
    exec(compile(fill + text, "<module>", "exec"), names)
    assert "big = T.alloc_local" in names["ib"].get().script()


def test_thread_binding():
    with IRBuilder() as ib, I.prim_func():
        A = I.arg("A", I.buffer((64,), "float32"))
        blocks, threads = I.thread_binding(0, 2, thread="blockIdx.x"), I.thread_binding(32, thread="threadIdx.x")
        assert isinstance(blocks, I.ForFrame)
        with blocks as bx, threads as tx:
            assert ib.frames[-1] is threads
            A[bx * 32 + tx] = 1.0
    a = np.zeros(64, np.float32)
    tirx.compile(ib.get(), target="cpu")(a)
    assert (a == 1).all()


EVIL = """
import gc, threading, tirx
from tirx import T, ir
from tirx.builder import IRBuilder, ir as I

class Evil:
    def __init__(self, act):
        self.act = act
    def __tirx_expr__(self, ctx):
        self.act()
        return 1
    def __index__(self):
        self.act()
        return 1

def run(make_act, use):
    ib = IRBuilder()
    try:
        with ib:
            f = I.prim_func()
            with f:
                A = I.arg("A", I.buffer((8, 8), "int32"))
                I.device_entry()
                tx = I.thread_id([8])
                loop = I.serial(4)
                with loop as i:
                    use(A, tx, i, Evil(make_act(ib, f, loop, A)))
    except Exception as e:
        str(e)
    try:
        str(ib.get())
    except Exception:
        pass
    gc.collect()

def acts():
    yield lambda ib, f, loop, A: lambda: f.__exit__(None, None, None)
    yield lambda ib, f, loop, A: lambda: (loop.__exit__(None, None, None), f.__exit__(None, None, None))
    yield lambda ib, f, loop, A: lambda: loop.__exit__(None, None, None)
    yield lambda ib, f, loop, A: lambda: I.If(A[0, 0] > 1).__enter__()
    yield lambda ib, f, loop, A: lambda: A.__setitem__((0, 0), 3)
    yield lambda ib, f, loop, A: lambda: loop.add_callback(lambda: loop.__exit__(None, None, None))
    yield lambda ib, f, loop, A: lambda: T.trace(lambda: None)
    yield lambda ib, f, loop, A: lambda: (_ for _ in ()).throw(KeyError("mine"))
    yield lambda ib, f, loop, A: lambda: gc.collect()
    yield lambda ib, f, loop, A: lambda: ib.__exit__(None, None, None)
    yield lambda ib, f, loop, A: lambda: A.ctx.trace(None)
    yield lambda ib, f, loop, A: lambda: A.ctx.trace(lambda code: A[0, 0] + 1)
    def in_thread(ib, f, loop, A):
        def act():
            def other():
                try:
                    f.__exit__(None, None, None)
                except Exception:
                    pass
            t = threading.Thread(target=other)
            t.start()
            t.join()
        return act
    yield in_thread

def uses():
    yield lambda A, tx, i, e: A.__setitem__((tx, e), 1)
    yield lambda A, tx, i, e: A.__setitem__((tx, 0), e)
    yield lambda A, tx, i, e: A[e, e] + e
    yield lambda A, tx, i, e: tx + e
    yield lambda A, tx, i, e: I.serial(e).__enter__()
    yield lambda A, tx, i, e: I.While(e).__enter__()
    yield lambda A, tx, i, e: I.alloc_local((e, 4), "int32")
    yield lambda A, tx, i, e: I.Bind(e)
    yield lambda A, tx, i, e: I.local_scalar("int32", e)
    yield lambda A, tx, i, e: I.evaluate(T.exp(e))
    yield lambda A, tx, i, e: I.attr({"a": e}).__enter__()
    yield lambda A, tx, i, e: A[e:4, 0:e]
    yield lambda A, tx, i, e: A.__setitem__((0, slice(0, 4)), A[e, 0:4])
    yield lambda A, tx, i, e: I.Return(e)
    yield lambda A, tx, i, e: I.thread_id([e])
    yield lambda A, tx, i, e: T.cuda.printf("%d", e)

for act in acts():
    for use in uses():
        run(act, use)

@T.prim_func
def k(A: T.Buffer((8,), "int32")):
    for i in range(4):
        A[i] = i + 1

quiet = Evil(gc.collect)
for inner in (lambda n: gc.collect(), lambda n: quiet, lambda n: n.replace(value=quiet), lambda n: [quiet],
              lambda n: tirx.rewrite(k, lambda m: None) and None):
    try:
        tirx.rewrite(k, inner)
    except Exception as e:
        str(e)
print("alive")
"""


def test_code_that_runs_in_the_middle_cannot_crash(tmp_path):
    """Operands whose conversion leaves frames, finishes the function, changes threads or raises."""
    (tmp_path / "evil.py").write_text(EVIL)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(tmp_path / "evil.py")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout == "alive\n", done.stderr[-3000:]
