# SPDX-License-Identifier: Apache-2.0
"""tirx.rewrite: what takes the place of values and statements, what is refused and in which words."""

from __future__ import annotations

import gc
import subprocess
import sys

import kernels
import numpy as np
import pytest

import tirx
from tirx import ir

SOURCE = """\
@T.prim_func
def k(A: T.Buffer((64,), "float32"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([64])
    for i in range(4):
        if i < n:
            A[tx] = A[tx] * 2.0 + 1.0
"""


def kernel():
    return tirx.from_source(SOURCE)


def body(g) -> str:
    return g.script().partition("T.thread_id([64])\n")[2].replace("\n    ", "\n").strip()


def rewritten(fn) -> str:
    return body(tirx.rewrite(kernel(), fn))


def on(cls, fn):
    return lambda n: fn(n) if isinstance(n, cls) else None


def test_values():
    text = rewritten(on(ir.FloatImm, lambda n: n * 3.0))
    assert "A[tx] = A[tx] * T.float32(6.0) + T.float32(3.0)" in text
    assert "A[tx] = A[tx] + T.float32(1.0)" in rewritten(on(ir.Mul, lambda n: n.a))
    assert "if n < i:" in rewritten(on(ir.LT, lambda n: n.b < n.a))
    assert "A[tx] = T.float32(4.0)" in rewritten(on(ir.Add, lambda n: 4))
    assert "* T.float32(0.5)" in rewritten(on(ir.FloatImm, lambda n: 0.5))
    assert "A[0] = A[0] *" in rewritten(lambda n: 0 if isinstance(n, ir.Var) and n.name == "tx" else None)


def test_children_come_first_and_constants_fold():
    seen = []
    text = rewritten(lambda n: seen.append(str(n)) or (1.0 if isinstance(n, ir.FloatImm) else None))
    assert seen.index("T.float32(2.0)") < seen.index("A[tx] * T.float32(1.0)")
    assert "A[tx] = A[tx] * T.float32(1.0) + T.float32(1.0)" in text


def test_statements():
    assert rewritten(on(ir.BufferStore, lambda n: [n, n])).count("A[tx] =") == 2
    assert rewritten(on(ir.IfThenElse, lambda n: n.then)) == (
        "for i in range(4):\n    A[tx] = A[tx] * T.float32(2.0) + T.float32(1.0)"
    )
    assert rewritten(on(ir.For, lambda n: [])) == ""
    assert rewritten(on(ir.For, lambda n: ir.Evaluate(n.start))) == "T.evaluate(0)"
    assert "A[tx] = T.float32(7.0)" in rewritten(on(ir.BufferStore, lambda n: ir.BufferStore(n.buffer, 7.0, n.indices)))
    assert rewritten(on(ir.For, lambda n: ir.IfThenElse(n.stop > n.start, ir.Return(None), ir.Return(None)))) == (
        "if T.bool(True):\n    return\nelse:\n    return"
    )
    looped = rewritten(on(ir.BufferStore, lambda n: ir.SeqStmt([n, ir.Break()])))
    assert looped.endswith("+ T.float32(1.0)\n        break")
    assert "while i < n:" in rewritten(on(ir.IfThenElse, lambda n: ir.While(n.cond, [n.then, ir.Break()])))


def test_replace():
    assert "for i in T.unroll(4):" in rewritten(on(ir.For, lambda n: n.replace(kind="unroll")))
    assert "T.serial(4, unroll=2" in rewritten(on(ir.For, lambda n: n.replace(unroll=2, annotations={"a": 1})))
    assert "range(8)" in rewritten(on(ir.For, lambda n: n.replace(stop=8)))
    assert "A[0] = A[tx]" in rewritten(on(ir.BufferStore, lambda n: n.replace(indices=[0])))
    assert "A[tx] = A[tx]\n" in rewritten(on(ir.BufferStore, lambda n: n.replace(value=n.value.a.a))) + "\n"
    text = rewritten(on(ir.IfThenElse, lambda n: n.replace(else_=ir.SeqStmt([n.then]))))
    assert text.count("A[tx] =") == 2 and "else:" in text
    with pytest.raises(TypeError, match="^Mul has no field 'c' that can be replaced$"):
        rewritten(on(ir.Mul, lambda n: n.replace(c=1)))
    with pytest.raises(TypeError, match="^field 'var' of For cannot be replaced$"):
        rewritten(on(ir.For, lambda n: n.replace(var=n.var)))
    with pytest.raises(TypeError, match="by name"):
        rewritten(on(ir.For, lambda n: n.replace(3)))


def test_making_values():
    text = rewritten(on(ir.Add, lambda n: ir.Max(ir.Mul(n.a, 2.0), ir.Cast("float32", n.b))))
    assert "A[tx] = T.max(A[tx] * T.float32(2.0) * T.float32(2.0), T.float32(1.0))" in text
    assert "A[tx] = A[3]" in rewritten(on(ir.Add, lambda n: ir.BufferLoad(n.a.a.buffer, 3)))
    with pytest.raises(TypeError, match="^Add takes the fields a, b; got a$"):
        rewritten(on(ir.Add, lambda n: ir.Add(n)))
    with pytest.raises(TypeError, match="^For is not made so: replace fields of a node that is there, or"):
        rewritten(on(ir.For, lambda n: ir.For(n.start, n.stop, n.step, n.body)))
    with pytest.raises(TypeError, match="^Add: a field must be a node or a buffer"):
        ir.Add(1, 2)


MESSAGES = [
    (
        lambda n: "x" if isinstance(n, ir.Mul) else None,
        """k.py:7:21: error: str cannot take the place of A[tx] * T.float32(2.0); expected float32, or None
            A[tx] = A[tx] * 2.0 + 1.0
                    ^^^^^^^^^^^""",
    ),
    (
        lambda n: n.a < n.b if isinstance(n, ir.Add) else None,
        """k.py:7:21: error: bool cannot take the place of A[tx] * T.float32(2.0) + T.float32(1.0); expected \
float32, or None
            A[tx] = A[tx] * 2.0 + 1.0
                    ^^^^^^^^^^^^^^^^^""",
    ),
    (
        lambda n: 2.5 if isinstance(n, ir.Var) and n.name == "n" else None,
        """k.py:6:12: error: float cannot take the place of n; expected int32, or None
        if i < n:
           ^^^^^""",
    ),
    (
        lambda n: n.cond if isinstance(n, ir.IfThenElse) else None,
        """k.py:6:12: error: an expression cannot take the place of if i < n: ...; expected a statement of the same \
function, a list of them, or None
        if i < n:
           ^^^^^""",
    ),
    (
        lambda n: 3 if isinstance(n, ir.For) else None,
        """k.py:5:14: error: int cannot take the place of for i in range(4): ...; expected a statement of the same \
function, a list of them, or None
    for i in range(4):
             ^^^^^^^^""",
    ),
    (
        lambda n: [n, 3] if isinstance(n, ir.For) else None,
        """k.py:5:14: error: list cannot take the place of for i in range(4): ...; expected a statement of the same \
function, a list of them, or None
    for i in range(4):
             ^^^^^^^^""",
    ),
    (
        lambda n: kernel().body if isinstance(n, ir.For) else None,
        """k.py:5:14: error: a node of another function cannot take the place of for i in range(4): ...; expected a \
statement of the same function, a list of them, or None
    for i in range(4):
             ^^^^^^^^""",
    ),
    (
        lambda n: n.replace(indices=[64]) if isinstance(n, ir.BufferLoad) else None,
        """k.py:7:21: error: index 64 is outside 0..63 in dimension 0 of buffer A
            A[tx] = A[tx] * 2.0 + 1.0
                    ^^^^^""",
    ),
    (
        lambda n: n.body if isinstance(n, ir.For) else None,
        """k.py:6:12: error: Invalid use of undefined variable""",
    ),
    (
        lambda n: n + n.replace() if isinstance(n, ir.For) else None,
        """error: a statement is not a value: for i in range(4):""",
    ),
]


@pytest.mark.parametrize("fn, message", MESSAGES, ids=range(len(MESSAGES)))
def test_what_is_refused(fn, message):
    import re

    with pytest.raises(tirx.DiagnosticError) as e:
        tirx.rewrite(kernel(), fn)
    text = re.sub(r"<tirx source \d+>", "k.py", str(e.value))
    assert text == message or len(message.split("\n")) == 1 and message in text


def test_other_misuse():
    with pytest.raises(TypeError, match="^rewrite: expected a function of a node, got int$"):
        tirx.rewrite(kernel(), 3)
    with pytest.raises(TypeError, match="^rewrite: expected a function made by"):
        tirx.rewrite(kernel().body, lambda n: None)
    with pytest.raises(ZeroDivisionError):
        tirx.rewrite(kernel(), lambda n: 1 // 0)
    with pytest.raises(TypeError, match="^Break: a field must be a node or a buffer, or tirx.rewrite running"):
        ir.Break()


def test_nothing_changed_is_the_function_itself():
    g = kernel()
    assert tirx.rewrite(g, lambda n: None) is g
    assert tirx.rewrite(g, lambda n: n) is g


def test_the_function_before_stays():
    g = kernel()
    before = g.script()
    made = tirx.rewrite(g, on(ir.FloatImm, lambda n: 0.0))
    del g
    gc.collect()
    assert "T.float32(0.0)" in made.script() and made.script() != before


def test_reentrant():
    g = kernel()

    def fn(n):
        if isinstance(n, ir.For):
            inner = tirx.rewrite(g, on(ir.FloatImm, lambda m: 3.0))
            assert "T.float32(3.0)" in inner.script()
            return n.replace(stop=2)

    assert "range(2)" in body(tirx.rewrite(g, fn))


def test_modules():
    m = tirx.rewrite(kernels.module_of_two(), on(ir.FloatImm, lambda n: 9.0))
    assert m.names == kernels.module_of_two().names and "T.float32(9.0)" in m.script()


def test_what_was_rewritten_runs():
    g = tirx.rewrite(kernel(), on(ir.For, lambda n: n.replace(stop=2)))
    a = np.ones(64, np.float32)
    tirx.compile(g, target="cpu")(a, 9)
    assert (a == 7).all()


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_rebuilding_every_node_changes_nothing(name):
    """Each value is made anew from its children; what comes of it is the same function."""
    g = kernels.KERNELS[name].make()
    again = tirx.rewrite(g, lambda n: n.replace(value=n.value) if isinstance(n, (ir.BufferStore, ir.Cast)) else None)
    assert tirx.structural_equal(again, g)
    kernels.check(kernels.KERNELS[name], tirx.compile(again, target="cpu", externs=kernels.KERNELS[name].externs))


HOSTILE = """
import random
import tirx
from tirx import T, ir, _core
random.seed({seed})

def make():
    @T.prim_func
    def k(A: T.Buffer((8, 8), "float32"), n: T.int32, h: T.handle):
        H = T.match_buffer(h, (n,), "float32")
        T.device_entry()
        tx, ty = T.thread_id([8, 4])
        L = T.alloc_local((4,), "float32")
        T.attr({{"a": 1}})
        for i in T.serial(n, annotations={{"b": 2}}):
            if i < tx and n > 3:
                A[tx, 0:4] = A[tx, 4:8] + T.Broadcast(H[i], 4)
            else:
                T.cuda.cta_sync()
            while L[0] < 2.0:
                L[0] = T.Select(i > 2, L[1], T.exp(L[2])) + T.cast(i, "float32")
                break
        assert n > 0, "text"
        return
    return k

f = make()
base = [1, -1, 2.5, True, None, "x", (), [], (1, 2), {{}}, object(), 2**70, float("nan"), f, T, ir.For]
names = [n for c in ir.CLASSES.values() for n in getattr(c, "_fields", ())] + ["kind", "unroll", "nosuch"]
seen = made = 0
for turn in range(600):
    if turn % 50 == 0:
        f = make()
        old = list(ir.nodes(f))
        pool = base + old + list(ir.nodes(tirx.lower(f, target="cuda:sm_90a"))) + [f.params[0][1]]
    pick = lambda: random.choice(pool)
    try:
        what = random.randrange(5)
        if what == 0:
            x = random.choice(old)
            pool.append(x.replace(**{{random.choice(names): pick()}}))
        elif what == 1:
            c = random.choice(list(ir.CLASSES.values()))
            pool.append(c(*[pick() for _ in range(random.randrange(4))]))
        elif what == 2:
            g = tirx.rewrite(f, lambda n: pick() if random.random() < 0.1 else None)
            g.script(), tirx.structural_hash(g)
            tirx.lower(g, target="cuda:sm_90a")
            made += 1
        elif what == 3:
            a, b = pick(), pick()
            tirx.structural_equal(a, b, True), a == b, hash(a), repr(a)
        else:
            x = random.choice(pool)
            [getattr(x, n, None) for n in names], repr(x)
    except Exception:
        seen += 1
print("done", seen > 100)
"""


@pytest.mark.parametrize("seed", range(3))
def test_nothing_crashes_the_interpreter(seed, tmp_path):
    """Random replacements, living and of other functions: exceptions only."""
    (tmp_path / "hostile.py").write_text(HOSTILE.format(seed=seed))
    command = [sys.executable, "-X", "faulthandler", str(tmp_path / "hostile.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done True\n", done.stderr[-3000:]
