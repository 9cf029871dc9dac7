# SPDX-License-Identifier: Apache-2.0
"""What is printed parses back to the same function, as written and after every pass, and prints the same again."""

from __future__ import annotations

from pathlib import Path

import kernels
import odd_kernels
import program_kernels
import pytest
import seed_kernels

import tirx
from tirx import _core

PASSES = [name for name, _, _ in _core.passes()]
MAKERS = {name: k.make for name, k in kernels.KERNELS.items()}
MAKERS |= {f"seed_{name}": s.make for name, s in seed_kernels.SEEDS.items()}
MAKERS |= odd_kernels.ODD
MAKERS |= program_kernels.PROGRAMS


def assert_round_trip(f, text: str) -> None:
    try:
        again = tirx.from_source(text)
    except Exception as e:
        raise AssertionError(f"{e}\n{text}") from e
    assert tirx.structural_equal(f, again), f"{text}\n---- parsed back as ----\n{again.script()}"
    assert f.structural_hash() == again.structural_hash() if hasattr(f, "structural_hash") else True
    assert again.script() == text


def test_every_example_is_here():
    examples = Path(__file__).resolve().parents[2] / "examples"
    assert {p.stem for p in examples.glob("*.py")} - set(program_kernels.PROGRAMS) == set()


@pytest.mark.parametrize("name", MAKERS)
def test_functions_parse_back(name):
    f = MAKERS[name]()
    assert_round_trip(f, f.script())


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_other_dialect_means_the_same(name, dialect):
    f = MAKERS[name]()
    again = tirx.from_source(f.script(dialect=dialect))
    assert tirx.structural_equal(f, again), f"{f.script(dialect=dialect)}\n----\n{again.script()}"


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", kernels.KERNELS)
def test_the_other_dialect_computes_the_same(name, dialect):
    k = kernels.KERNELS[name]
    f = tirx.from_source(k.make().script(dialect=dialect))
    assert f.dialect == dialect
    kernels.check(k, tirx.compile(f, target="cpu", externs=k.externs))


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", seed_kernels.SEEDS)
def test_seeds_compute_the_same_in_the_other_dialect(name, dialect):
    s = seed_kernels.SEEDS[name]
    f = tirx.from_source(s.make().script(dialect=dialect))
    exe = tirx.compile(f, target="cpu", externs=s.externs)
    for n in s.sizes:
        seed_kernels.run(exe, s, n)


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", ["quickstart", "matmul", "softmax", "rmsnorm", "sum", "warp_allreduce"])
def test_examples_are_right_in_the_other_dialect(name, dialect, monkeypatch, capsys):
    """The example runs and checks its results, with each kernel by way of the other dialect's text."""
    compiled = tirx.compile
    seen = []

    def compile_other(f, **options):
        seen.append(tirx.from_source(f.script(dialect=dialect)))
        return compiled(seen[-1], **options)

    monkeypatch.setattr(tirx, "compile", compile_other)
    program_kernels.module(f"examples/{name}.py").main()
    assert "right" in capsys.readouterr().out
    assert {f.dialect for f in seen} == {dialect}


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("name", MAKERS)
def test_modules_parse_back_after_every_pass(name, target):
    f = MAKERS[name]()
    m = _core.Module({f.__name__: f})
    for p in PASSES:
        m = _core.run_pass(p, m, target, {})
        text = m.script()
        try:
            again = tirx.from_source(text)
        except Exception as e:
            raise AssertionError(f"after {p}: {e}\n{text}") from e
        assert tirx.structural_equal(m, again), f"after {p}\n{text}\n---- parsed back as ----\n{again.script()}"


def test_an_absent_parameter_keeps_its_place_in_either_dialect():
    text = "@T.function\ndef f(A: T.NoneType(), B: T.Tensor((4,), T.int32)):\n    pass\n"
    f = tirx.from_source(text)
    for dialect in ("g1", "g2"):
        again = tirx.from_source(f.script(dialect=dialect))
        assert "A: T.NoneType()" in again.script() and tirx.structural_equal(f, again)


@pytest.mark.parametrize("dialect", ["g1", "g2"])
def test_a_module_in_either_dialect(dialect):
    m = kernels.module_of_two()
    again = tirx.from_source(m.script(dialect=dialect))
    assert tirx.structural_equal(m, again)
    assert {again[name].dialect for name in again.names} == {dialect}


def test_an_unknown_dialect():
    with pytest.raises(ValueError, match="dialect is .g1. or .g2., not 'g3'"):
        MAKERS["quickstart"]().script(dialect="g3")


def test_a_module_parses_back():
    m = kernels.module_of_two()
    assert_round_trip(m, m.script())
    assert m.script().startswith(
        "# from tirx.script import ir as I\n# from tirx.script import tirx as T\n\n@I.ir_module\nclass Module:\n"
    )


STRIDED = """\
@T.prim_func
def f(a: T.handle, B: T.Buffer((1,), "float32")):
    A = T.match_buffer(a, (8,), "float32", strides=["s"])
    T.device_entry()
    tx = T.thread_id([1])
    B[0] = A[0]
"""
VIEWED = """\
@T.prim_func
def f(a: T.handle, B: T.Buffer((32,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    half: T.let = n // 2
    T.device_entry()
    tx = T.thread_id([32])
    V = T.decl_buffer((half * 2,), "float32", data=A.data)
    B[tx] = V[tx * 2 + 1]
"""
AFTER_JUMPS = """\
@T.prim_func
def f(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    for i in range(4):
        for j in T.unroll(2):
            if i > tx:
                if j < 1:
                    continue
                A[tx] = j
            A[tx] += i
    if tx > 3:
        T.Return()
        A[tx] = 7
    A[tx] += 1
"""
NAMES = """\
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def größe(x: T.int32) -> T.int32:
        return x

    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = Module.größe(tx)
"""


RARE = {"strided": STRIDED, "viewed": VIEWED, "after_jumps": AFTER_JUMPS, "names": NAMES}


@pytest.mark.parametrize("text", RARE.values(), ids=RARE)
def test_rare_things_parse_back_after_every_pass(text):
    """A stride that only the extent of a flat view needs; what stands behind a jump; names beyond ASCII."""
    f = tirx.from_source(text)
    assert_round_trip(f, f.script())
    m = _core.Module({f.__name__: f} if isinstance(f, _core.Function) else {name: f[name] for name in f.names})
    for p in PASSES:
        m = _core.run_pass(p, m, "cpu", {})
        assert tirx.structural_equal(m, tirx.from_source(m.script())), f"after {p}\n{m.script()}"
