# SPDX-License-Identifier: Apache-2.0
"""The IR as Python objects: classes, fields, children, walks, structural equality, and who keeps whom alive."""

from __future__ import annotations

import gc
import re
import sys
import threading
import weakref
from pathlib import Path

import kernels
import pytest

import tirx
from tirx import _core, ir
from tirx.script import tirx as T

ROOT = Path(__file__).resolve().parents[2]


@T.prim_func
def f(A: T.Buffer((64, 4), "float32"), n: T.int32, s: T.handle):
    S = T.match_buffer(s, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([1], preferred=[1])
    tx, ty = T.thread_id([32, 2])
    L = T.alloc_local((4,), "float32")
    V = T.decl_buffer((2, 2), "float32", data=L.data)
    x: T.let = tx * 2
    T.attr({"pragma_a": 7})
    for i in T.serial(2, n, step=3, unroll=4, annotations={"note": "kept"}):
        if i < tx and n > 3:
            A[tx, ty] = T.Select(i > 5, A[tx, 1], 2.5) + T.exp(S[i])
        else:
            T.cuda.cta_sync()
    while n > 2:
        break
    for j in T.unroll(4):
        if j == 2:
            continue
        V[j // 2, j % 2] = 1.0
    A[tx, 0:4] = T.Broadcast(T.float32(1), 4)
    assert x > 0, ("ValueError", ["x", " is small"])
    return


def only(cls, where=f, index=0):
    found = list(ir.nodes(where, cls))
    assert len(found) > index, cls
    return found[index]


def text(x):
    return str(x).strip()


def test_fields_of_statements():
    loop = only(ir.For)
    assert (text(loop.var), text(loop.start), text(loop.stop), text(loop.step)) == ("i", "2", "n", "3")
    assert (text(loop.min), text(loop.extent), loop.kind, loop.unroll) == ("2", "n - 2", "serial", 4)
    assert loop.annotations == {"note": "kept"}
    assert only(ir.For, index=1).kind == "unroll"
    branch = loop.body
    assert isinstance(branch, ir.IfThenElse) and text(branch.cond) == "i < tx and n > 3"
    assert isinstance(branch.then, ir.BufferStore) and isinstance(branch.else_, ir.Evaluate)
    assert only(ir.IfThenElse, index=1).else_ is None
    store = branch.then
    assert store.buffer is f.params[0][1] and [text(i) for i in store.indices] == ["tx", "ty"]
    assert isinstance(store.value, ir.Add)
    call = branch.else_.expr
    assert isinstance(call, ir.Call) and call.op == "CTA_SYNC" and call.args == () and call.dtype == "void"
    assert text(only(ir.While).cond) == "n > 2" and isinstance(only(ir.While).body, ir.Break)
    assert isinstance(only(ir.Continue), ir.Stmt)
    bind = only(ir.Bind)
    assert bind.var.name == "x" and text(bind.value) == "tx * 2"
    attr = only(ir.AttrStmt)
    assert attr.key == "pragma_a" and attr.value.value == 7 and isinstance(attr.body, ir.SeqStmt)
    check = only(ir.AssertStmt)
    assert (check.kind, check.parts, text(check.cond)) == ("ValueError", ("x", " is small"), "x > 0")
    assert only(ir.Return).value is None
    assert only(ir.AllocBuffer).buffer.name == "L" and only(ir.AllocBuffer).annotations == {}
    assert only(ir.DeclBuffer).buffer.name == "V" and text(only(ir.DeclBuffer).data) == "L.data"
    ids = only(ir.ScopeIdDef, index=1)
    assert [v.name for v in ids.vars] == ["tx", "ty"] and [e.value for e in ids.extents] == [32, 2]
    assert ids.binding == "cta->thread" and ids.preferred == ()
    assert [e.value for e in only(ir.ScopeIdDef).preferred] == [1]
    entry = only(ir.DeviceEntry)
    assert entry.with_form is False and entry.grid_x is None and entry.body is not None
    assert isinstance(f.body, ir.Stmt)


def test_fields_of_values():
    select = only(ir.Select)
    assert text(select.cond) == "i > 5" and text(select.t) == "A[tx, 1]" and select.f.value == 2.5
    load = select.t
    assert isinstance(load, ir.BufferLoad) and load.buffer.name == "A" and load.indices[1].value == 1
    assert isinstance(only(ir.Broadcast).value, ir.FloatImm) and only(ir.Broadcast).lanes == 4
    ramp = only(ir.Ramp)
    assert (text(ramp.base), text(ramp.stride), ramp.lanes) == ("0", "1", 4)
    call = next(n for n in ir.nodes(f, ir.Call) if n.args)
    assert (call.op, text(call.args[0]), call.name) == ("EXP", "S[i]", None)
    assert only(ir.Var).dtype == "int32" and isinstance(only(ir.Mul).b, ir.IntImm)
    assert not isinstance(only(ir.Mul), (ir.Add, ir.Stmt, ir.Call)) and isinstance(only(ir.Mul), ir.PrimExpr)
    assert not isinstance(3, ir.PrimExpr) and not isinstance(f, ir.Node)


def test_match_statement():
    match only(ir.Mul):
        case ir.Add(a, b):
            pytest.fail("it is no sum")
        case ir.Mul(a, ir.IntImm(value=2)):
            assert a.name == "tx"
        case _:
            pytest.fail("it is a product")


def test_repr_shows_the_class():
    assert repr(only(ir.Mul)) == "<Mul: tx * 2, int32>"
    assert repr(only(ir.Bind)) == "<Bind: x: T.let[T.int32] = tx * 2>"
    assert repr(only(ir.While)) == "<While: while n > 2: ...>"
    assert repr(ir.For) == "<class tirx.ir.For>"


def test_unknown_fields():
    with pytest.raises(AttributeError, match="^For has no field 'cond'$"):
        only(ir.For).cond  # noqa: B018
    with pytest.raises(AttributeError, match="^Mul has no field 'c'$"):
        only(ir.Mul).c  # noqa: B018
    assert not hasattr(only(ir.Var), "body")


def test_the_table_knows_every_operation():
    rows = _core.node_classes()
    assert [row[0] for row in rows] == [row[1] for row in _core.ops()]
    listed = re.findall(r"^NODE_CLASS\((\w+), +(\w+),", (ROOT / "csrc/ir/nodes.def").read_text(), re.M)
    assert {(op, cls) for cls, op in listed} <= {(row[0], row[1]) for row in rows}
    assert {row[1] for row in rows} == {cls for cls, _ in listed} | {"Call"}
    for name, cls in ir.CLASSES.items():
        assert getattr(ir, name) is cls
    for row in rows:
        props = next(p for _, name, _, _, _, p in _core.ops() if name == row[0])
        assert row[4] == ("Stmt" if props & 128 else "PrimExpr")
        assert row[1] == "Call" or row[4] == "PrimExpr" or issubclass(ir.CLASSES[row[1]], ir.Stmt)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_every_node_of_the_corpus_has_its_fields(name):
    """Each field of each node can be read, and the children among them are the node's children."""
    for lowered in (False, True):
        g = kernels.KERNELS[name].make()
        x = tirx.lower(g, target="cuda:sm_90a") if lowered else g
        count = 0
        for n in ir.nodes(x):
            got = ir.fields(n)
            inside = []
            for value in got.values():
                inside += value if isinstance(value, tuple) else [value]
            for child in n.children:
                assert any(map(lambda v, child=child: _same(v, child), inside))
            assert repr(n).startswith(f"<{ir.class_of(n).__name__}: ")
            count += 1
        assert count > 10


def _same(a, b):
    return isinstance(a, _core.Expr) and tirx.structural_equal(a, b)


# ---- walks -----------------------------------------------------------------------------------------------------------


def test_orders_of_a_walk():
    @T.prim_func
    def g(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = i + 1

    pre, post = [], []
    tirx.walk(g, lambda n: pre.append(text(n)))
    tirx.walk(g, lambda n: post.append(text(n)), order="post")
    body = "A[i] = i + 1"
    loop = f"for i in range(4):\n    {body}"
    assert pre == [loop, "0", "4", "1", body, "i + 1", "i", "1", "i"]
    assert post == ["0", "4", "1", "i", "1", "i + 1", "i", body, loop]
    some = []
    tirx.walk(g, lambda n: some.append(text(n)) or not isinstance(n, ir.BufferStore))
    assert some == [loop, "0", "4", "1", body]
    assert [text(n) for n in ir.nodes(g.body.body.value)] == ["i + 1", "i", "1"]
    with pytest.raises(ValueError, match='^walk: order is "pre" or "post", not \'in\'$'):
        tirx.walk(g, print, order="in")
    with pytest.raises(TypeError, match="^walk: expected a function"):
        tirx.walk(3, print)


def test_walk_of_a_module():
    g = kernels.module_of_two()
    stores = [n for n in ir.nodes(g, ir.BufferStore)]
    assert len(stores) >= 2


def test_what_a_walk_raises_passes():
    with pytest.raises(ZeroDivisionError):
        tirx.walk(f, lambda n: 1 // 0)


def test_deep_trees_need_no_deep_stack():
    @T.trace
    def deep(A: T.Buffer((4,), "int32")):
        x = A[0]
        for _ in range(900):
            x = x + A[1]
        A[0] = x

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(120)
    try:
        assert len(list(ir.nodes(deep))) == 900 * 3 + 4
    finally:
        sys.setrecursionlimit(limit)
    assert tirx.rewrite(deep, lambda n: None) is deep
    doubled = tirx.rewrite(deep, lambda n: 0 if isinstance(n, ir.BufferLoad) and n.indices[0].value == 1 else None)
    assert text(doubled.body) == "A[0] = A[0]"
    hash(deep.body)


# ---- equality ----------------------------------------------------------------------------------------------------


def make():
    @T.prim_func
    def g(A: T.Buffer((4,), "int32"), n: T.int32):
        for i in range(n):
            A[i] = i + n

    return g


def test_structural_equality_of_nodes():
    a, b = make(), make()
    assert a.body == a.body and not a.body != a.body and hash(a.body) == hash(a.body)
    assert a.body != b.body, "their parameters are different variables"
    assert tirx.structural_equal(a.body, b.body, map_free_vars=True)
    assert tirx.structural_hash(a.body, True) == tirx.structural_hash(b.body, True)
    assert tirx.structural_hash(a) == tirx.structural_hash(b)
    assert not tirx.structural_equal(a.body, f.body, map_free_vars=True)
    assert len({a.body, a.body, b.body}) == 2
    x, y = a.body.body.value, a.body.body.value
    assert tirx.structural_equal(x, y) and x.same_as(y)
    assert isinstance(x == y, (bool, ir.EQ, ir.IntImm)), "values compare to values"
    assert a.body != 3 and a.body != None and (a.body == "x") is False  # noqa: E711
    with pytest.raises(TypeError, match="a node is compared with a node, got Function"):
        tirx.structural_equal(a.body, a)


def test_a_statement_is_no_value():
    body = make().body
    uses = lambda: body + 1, lambda: 1 - body, lambda: -body, lambda: body < body, lambda: abs(body), lambda: int(body)
    for use in uses:
        with pytest.raises(tirx.DiagnosticError, match="a statement is not a value: for i in range"):
            use()


# ---- lifetime ----------------------------------------------------------------------------------------------------


def test_nodes_keep_their_function_alive():
    g = make()
    store, buffer, n = g.body.body, g.params[0][1], g.params[1][1]
    ctx = g.ctx
    before = sys.getrefcount(ctx)
    del g
    gc.collect()
    assert text(store) == "A[i] = i + n" and buffer.name == "A" and n.name == "n"
    assert sys.getrefcount(ctx) == before - 1, "the function has let go of the context"
    del ctx
    inner = store.value.a
    del store, buffer, n
    gc.collect()
    ctx, before = inner.ctx, sys.getrefcount(inner.ctx)
    assert inner.name == "i"
    del inner
    assert sys.getrefcount(ctx) < before


def test_cycles_are_collected():
    class Owner:
        pass

    g = make()
    owner = Owner()
    owner.me, owner.node, owner.seen = owner, g.body, [g]
    owner.fn = lambda n: owner
    tirx.rewrite(g, lambda n: owner.seen.append(n))
    dead = weakref.ref(owner)
    del owner, g
    gc.collect()
    assert dead() is None


def test_threads_may_look_at_one_function():
    g, errors = kernels.KERNELS["every_loop"].make(), []
    want = [repr(n) for n in ir.nodes(g)]

    def look():
        try:
            for _ in range(5):
                assert [repr(n) for n in ir.nodes(g)] == want
                assert tirx.structural_equal(tirx.rewrite(g, lambda n: n), g)
                tirx.rewrite(g, lambda n: n + 1 if isinstance(n, ir.IntImm) and n.value == 7 else None)
        except BaseException as e:  # noqa: B036
            errors.append(e)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_what_a_function_and_its_buffers_say():
    assert [name for name, _ in f.params] == ["A", "n", "s"]
    A = f.params[0][1]
    assert (A.name, A.dtype, A.shape, A.given_strides, A.elem_offset) == ("A", "float32", (64, 4), None, 0)
    assert A.scope() == "global"
    assert (A.data_alignment, A.offset_factor, A.layout, A.allocated_addr) == (0, 1, "default", [])
    assert A.data.dtype == "handle" and A.data.elem == "float32"
    S = f.params[2][1]
    assert isinstance(S.shape[0], ir.Var) and S.shape[0].name == "n"
    assert f.__name__ == f.symbol == "f" and f.dialect == "g1" and f.ret_type is None
    assert f.attrs["global_symbol"] == "f"
    file, line, *_ = f.ctx.span_info(only(ir.While).span)
    assert file == __file__ and "while n > 2:" in Path(file).read_text().splitlines()[line - 1]
    m = kernels.module_of_two()
    assert all(isinstance(m[name].body, ir.Stmt) for name in m.names)
