# SPDX-License-Identifier: Apache-2.0
"""Functions and modules as objects: printing options, attributes, equality, the compile functions' arguments."""

from __future__ import annotations

import pytest

from tirx import _core


def make(name="k", ctx=None, value=1.0, names=("A", "i")):
    ctx = ctx or _core.Context()
    b = _core.Builder(ctx, name, "g1")
    a = _core.buffer(ctx, names[0], (64,), "float32")
    b.param(names[0], a)
    b.set_symbol(name)
    b.device_entry()
    (tx,) = b.scope_id("thread_id", ["tx"], [64])
    b.activate()
    i = b.bind(names[1], tx)
    a[i] = a[i] + value
    b.deactivate()
    return b.finish()


TEXT = """\
# from tirx.script import tirx as T

@T.prim_func
def k(A: T.Buffer((64,), "float32")):
    T.device_entry()
    tx = T.thread_id([64])
    i: T.let[T.int32] = tx
    A[i] = A[i] + T.float32(1.0)
"""


def test_script():
    f = make()
    assert f.script() == TEXT
    assert f.script(name="other").split("\n")[3].startswith("def other(")
    assert f.script(indent_spaces=2).split("\n")[4] == "  T.device_entry()"
    assert f.script(header=False) == TEXT.split("\n\n", 1)[1]
    assert "@T.function" in f.script(dialect="g2")
    assert f.script(print_line_numbers=True) != TEXT
    for options in ({"dialect": "g3"}, {"indent_spaces": 0}):
        with pytest.raises(ValueError):
            f.script(**options)
    with pytest.raises(TypeError):
        f.script(colour=True)


def test_structural_equality_ignores_names():
    f, g, h = make(), make(names=("B", "j")), make(value=2.0)
    assert _core.structural_equal(f, g) and f.structural_hash() == g.structural_hash()
    assert not _core.structural_equal(f, h)
    assert f != g and f == f and len({f, g}) == 2  # == is identity
    m, n = _core.Module({"main": f}), _core.Module({"main": g})
    assert _core.structural_equal(m, n)
    assert not _core.structural_equal(m, _core.Module({"main": h}))
    assert not _core.structural_equal(m, f)
    for args in ((f,), (f, 1), (f, g, h)):
        with pytest.raises(TypeError):
            _core.structural_equal(*args)


def test_attributes_make_copies():
    f = make()
    g = f.with_attr("x", 1).with_attr("y", [1, "b"]).with_attr("x", 2)
    assert g.attrs == {"x": 2, "y": [1, "b"], "global_symbol": "k"}
    assert f.attrs == {"global_symbol": "k"}
    assert g.without_attr("x").attrs == {"y": [1, "b"], "global_symbol": "k"}
    assert f.with_attr("global_symbol", "other").symbol == "other"
    assert f.without_attr("global_symbol").symbol is None
    with pytest.raises(TypeError):
        f.with_attr("x", object())


def test_modules():
    f, g = make("f"), make("g")
    m = _core.Module({"one": f, "two": g})
    assert m.names == ["one", "two"] and len(m) == 2
    assert m["two"].__name__ == "g" and _core.structural_equal(m["two"], g)
    assert m["one"].ctx is m.ctx is not f.ctx
    assert m.attrs == {}
    assert "def one(" in m.script() and "def two(" in m.script()
    with pytest.raises(KeyError):
        m["three"]
    with pytest.raises(KeyError):
        m[0]
    for functions in ({"a": 1}, {1: f}, [f]):
        with pytest.raises(TypeError):
            _core.Module(functions)


def test_a_function_outlives_its_context_object():
    f = make()
    m = _core.Module({"main": f})
    del f
    assert "def main(" in m.script()


def test_targets_and_options():
    assert _core.parse_target("cuda:sm_90a") == {"kind": "cuda", "arch": 90, "suffix": "a"}
    assert _core.parse_target("cpu")["kind"] == "cpu"
    for text in ("cuda:sm_9x", "rocm", ""):
        with pytest.raises(ValueError):
            _core.parse_target(text)
    f = make()
    with pytest.raises(ValueError, match="no compile option 'fast'"):
        _core.lower(f, "cpu", {"fast": True})
    with pytest.raises(TypeError):
        _core.lower(1, "cpu", {})
    with pytest.raises(ValueError, match="no pass 'NoSuchPass'"):
        _core.run_pass("NoSuchPass", f, "cpu", {})


def test_every_pass_runs_and_the_pipeline_lowers():
    f = make()
    rows = _core.passes()
    assert rows and all(isinstance(in_pipeline, bool) for _, _, in_pipeline in rows)
    lowered = _core.lower(f, "cpu", {})
    assert lowered.names == ["k", "k_kernel"]
    m = _core.Module({"k": f})
    for name, _, in_pipeline in rows:
        if in_pipeline:
            m = _core.run_pass(name, m, "cpu", {})
    assert _core.structural_equal(m, lowered)


def test_tables():
    ops, dtypes, diags = _core.ops(), _core.dtypes(), _core.diags()
    assert [row[0] for row in ops] == list(range(len(ops)))
    assert {row[1] for row in ops} >= {"VAR", "ADD", "LOAD", "STORE", "FOR"}
    assert ("int32", "i32", "I", 32, 4) in dtypes and ("float4_e2m1fn", None, "M", 4, 1) in dtypes
    assert len({row[0] for row in diags}) == len(diags)
    assert _core.scopes()[:2] == ["global", "shared"]
    assert _core.promote("int32", "uint32") == "uint32"
    assert _core.encode("float16", 1.0) == 0x3C00 and _core.decode("float16", 0x3C00) == 1.0
    with pytest.raises(ValueError):
        _core.encode("float99", 1.0)


def scaled():
    """A[i] * x for i < n, over A: [n]."""
    ctx = _core.Context()
    b = _core.Builder(ctx, "k", "g1")
    n = _core.var(ctx, "symbol", "n", "int32")
    a, x = _core.buffer(ctx, "A", (n,), "float32"), _core.var(ctx, "param", "x", "float32")
    b.add_symbol(n)
    b.param("A", a)
    b.param("x", x)
    b.device_entry()
    (tx,) = b.scope_id("thread_id", ["tx"], [64])
    b.activate()
    b.open_if(tx < n)
    a[tx] = a[tx] * x
    b.close()
    b.deactivate()
    return b.finish(), n, x


def test_specialize():
    f, n, x = scaled()
    g = f.specialize({n: 50, x: 2})
    assert g.script(header=False) == (
        "@T.prim_func\n"
        'def k(A: T.Buffer((50,), "float32")):\n'
        "    T.device_entry()\n"
        "    tx = T.thread_id([64])\n"
        "    if tx < 50:\n"
        "        A[tx] = A[tx] * T.float32(2.0)\n"
    )
    assert _core.structural_equal(f.specialize({"n": 50, "x": 2.0}), g)
    assert _core.structural_equal(f.specialize({}), f)
    assert [name for name, _ in f.params] == ["A", "x"]  # unchanged
    with pytest.raises(ValueError, match="k has no scalar parameter or symbol 'A'"):
        f.specialize({"A": 1})
    with pytest.raises(ValueError, match="Literal value 4294967296 exceeds maximum of int32"):
        f.specialize({"n": 2**32})
    for values in (1, None, {"x": x}):
        with pytest.raises((TypeError, ValueError)):
            f.specialize(values)


def test_bodies():
    f = make()
    assert f.body.op == "DEVICE"
    assert _core.structural_equal(f.with_body(f.body), f)
    with pytest.raises(TypeError):
        f.with_body(_core.literal(f.ctx, "int32", 1))
    with pytest.raises(ValueError, match="'the body' belongs to another kernel"):
        f.with_body(make().body)


def test_a_function_says_that_it_must_be_compiled():
    with pytest.raises(TypeError) as e:
        make()(1)
    assert str(e.value) == "'k' is not compiled; write exe = tirx.compile(k), then exe(...)"


def test_show_prints_the_script(capsys):
    f = make()
    f.show()
    assert capsys.readouterr().out == f.script() + "\n"
    f.show("light", header=False)
    assert capsys.readouterr().out == f.script(header=False) + "\n"
    assert str(f) == f.script()
    assert f.script(show_meta=False, int_dtype="int32", verbose_expr=True) == f.script()


def test_tirx_dump_prints_between_the_passes(monkeypatch, capsys):
    first = next(name for name, _, in_pipeline in _core.passes() if in_pipeline)
    monkeypatch.setenv("TIRX_DUMP", first)
    _core.lower(make(), "cpu", {})
    text = capsys.readouterr().err
    assert text.startswith(f"# after {first}\n") and text.count("# after ") == 1
    assert "def k(" in text
    monkeypatch.setenv("TIRX_DUMP", "all")
    _core.lower(make(), "cpu", {})
    assert capsys.readouterr().err.count("# after ") == sum(in_pipeline for _, _, in_pipeline in _core.passes())
