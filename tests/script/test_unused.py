# SPDX-License-Identifier: Apache-2.0
"""Warnings of parameters that nothing uses and variables that are set and never read: told once, at the line."""

from __future__ import annotations

import importlib.util
import itertools
import textwrap
import warnings

import pytest

import tirx

_names = itertools.count()


@pytest.fixture
def told(tmp_path):
    """told(source): [(text, line)] of the UnusedWarnings that defining the kernels gives; they are in a file."""

    def run(source: str, how: str = "always") -> list[tuple[str, int]]:
        path = tmp_path / f"kernels_{next(_names)}.py"
        path.write_text("from tirx import T\nfrom tirx.script import ir as I\n" + textwrap.dedent(source))
        return load(path, how)

    return run


def load(path, how="always"):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(how, tirx.UnusedWarning)
        spec.loader.exec_module(module)
    assert all(w.filename == str(path) for w in caught)
    return [(str(w.message), w.lineno) for w in caught if w.category is tirx.UnusedWarning]


def test_parameters_that_nothing_uses(told):
    assert told("""
        @T.prim_func
        def k(A: T.Buffer((64,), "int32"),
              B: T.Buffer((64,), "int32"),
              n: T.int32, _m: T.int32,
              p: T.handle):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = 1
    """) == [
        ("parameter 'B' is not used", 6),
        ("parameter 'n' is not used", 7),
        ("parameter 'p' is not used", 8),
    ]


def test_variables_that_are_never_read(told):
    for dialect in ("prim_func", "function"):
        assert told(f"""
            @T.{dialect}
            def k(A: T.Buffer((64,), "int32")):
                T.device_entry()
                tx = T.thread_id([64])
                a = tx + 1
                b: T.int32 = tx * 2
                c: T.let = tx + 3
                v = T.alloc_local((4,), "int32")
                for i in range(4):
                    v[i] = i
                _d = tx - 1
                A[tx] = 1
        """) == [
            ("'a' is set, but never read", 8),
            ("'b' is set, but never read", 9),
            ("'c' is set, but never read", 10),
            ("'v' is set, but never read", 11),
        ], dialect


@pytest.mark.parametrize(
    "body",
    [
        "n = T.int32()\nA = T.match_buffer(a, (n,), 'int32')\nB = T.match_buffer(b, (n,), 'int32')\nT.device_entry()\n"
        "tx = T.thread_id([32])\nB[tx] = A[tx] + s",
        # tells a size only
        "n = T.int32()\nA = T.match_buffer(a, (n,), 'int32')\nB = T.match_buffer(b, (4,), 'int32')\nT.device_entry()\n"
        "bx = T.cta_id([n])\ntx = T.thread_id([32])\nB[tx] = s",
        # read through a pointer, in a condition, in an index, by a view
        "A = T.match_buffer(a, (s,), 'int32')\nB = T.match_buffer(b, (4,), 'int32')\nT.device_entry()\n"
        "tx = T.thread_id([32])\nV = T.decl_buffer((4,), 'int32', data=A.data)\nx: T.int32 = tx\n"
        "while V[0] > x:\n    x = x + 1\nT.evaluate(T.cuda.atomic_add(B.ptr_to([0]), 1))",
        # by the launch
        "A = T.match_buffer(a, (4,), 'int32')\nB = T.match_buffer(b, (32,), 'int32')\n"
        "window = T.meta_var(T.cuda.AccessPolicyWindow(A.data, 16))\nevent = T.meta_var(T.cuda.ProgrammaticEvent(s))\n"
        "T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32, access_policy_window=window, "
        "programmatic_event=event))\nB[T.cuda.thread_idx('x')] = 1",
    ],
)
def test_what_is_used_is_not_told(told, body):
    text = textwrap.indent(body, "    ")
    assert told(f"@T.prim_func\ndef k(a: T.handle, b: T.handle, s: T.int32):\n{text}\n") == []


def test_specialisations_texts_and_stubs_are_not_told(told):
    assert told("""
        @T.jit
        def k(A: T.Buffer((64,), "int32"), n: T.int32, N: T.constexpr):
            T.device_entry()
            tx = T.thread_id([64])
            A[tx] = N
        k.specialize(N=3)
        @T.prim_func
        def stub(A: T.Buffer((64,), "int32"), n: T.int32):
            ...
    """) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tirx.from_source("@T.prim_func\ndef k(A: T.Buffer((64,), 'int32'), n: T.int32):\n    T.evaluate(n)\n")


def test_once_and_nothing_is_removed(tmp_path):
    path = tmp_path / "kernels_once.py"
    path.write_text(
        "from tirx import T\ndef make():\n    @T.prim_func\n"
        "    def k(A: T.Buffer((64,), 'int32'), n: T.int32):\n        T.device_entry()\n"
        "        tx = T.thread_id([64])\n        a: T.int32 = tx\n        A[tx] = 1\n    return k\n"
        "kernels = [make() for _ in range(3)]\nassert 'a: T.int32 = tx' in kernels[0].script()\n"
        "assert 'n: T.int32' in kernels[0].script()\n"
    )
    assert load(path, "default") == [("'a' is set, but never read", 7), ("parameter 'n' is not used", 4)]
    assert load(path, "ignore") == []
    with pytest.raises(tirx.UnusedWarning):
        load(path, "error")
