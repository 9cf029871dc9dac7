# SPDX-License-Identifier: Apache-2.0
"""Where a kernel's text comes from: files, registered texts, changed files, none; and tirx.from_source."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import re
import sys
import textwrap
import threading

import pytest
from script.kernels import printed

import tirx
from tirx.script import tirx as T

KERNEL = """\
@T.prim_func
def k(A: T.Buffer((32,), "int32")):
    T.device_entry()
    tx = T.thread_id([32])
    A[tx] = {}
"""


def note(fn=None, *, key=lambda x: (x, [x])):
    return functools.partial(note, key=key) if fn is None else fn


# fmt: off
def decorated():
    @note(key=lambda d: (d["a"] if isinstance(d, dict) else (d, ")", "(")))
    @note
    @T.prim_func
    def k(A: T.Buffer((32,), "int32"),   # ) not the end
          ):
        """def k(X): A[0] = 99  # only words
not indented
        """
        T.device_entry()
# a comment at the left margin
        tx = T.thread_id([32]); größe: T.int32 = \
            tx  # type: ignore
        A[tx] = (größe  # first
    + 1
                 # between
                 + 2)
        x: T.int32  # noqa: F842
        pass
        # the end
    return k


def one_line():
    @T.inline
    def f(x): return x + 1
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")): T.device_entry(); tx = T.thread_id([32]); A[tx] = f(tx)
    return k
# fmt: on


def test_decorators_comments_joins_and_odd_indentation():
    text = decorated().script()
    assert "A[tx] = " in text and "+ 1 + 2" in text and "99" not in text
    assert printed(one_line()) == "A[tx] = tx + 1"


def test_functions_on_neighbouring_lines_keep_apart():
    kernels = []
    for step in (1, 2):

        @T.prim_func
        def k(A: T.Buffer((32,), "int32")):
            T.device_entry()
            tx = T.thread_id([32])
            A[tx] = step  # noqa: B023

        kernels.append(k)

    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])
        A[tx] = 3

    assert [printed(f) for f in (*kernels, k)] == ["A[tx] = 1", "A[tx] = 2", "A[tx] = 3"]


def test_text_that_linecache_knows():
    text = KERNEL.format(8)
    name = "<registered by a test>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"T": T}
    exec(compile(text, name, "exec"), names)
    assert printed(names["k"]) == "A[tx] = 8"


def test_text_that_is_nowhere():
    for decorator in ("prim_func", "function", "jit", "inline"):
        text = KERNEL.format(8).replace("prim_func", decorator)
        with pytest.raises(tirx.DiagnosticError) as info:
            exec(compile(text, "<nowhere>", "exec"), {"T": T})
        assert "the source of 'k' cannot be read" in str(info.value)
        assert "put the kernel in a file, or use tirx.from_source(text)" in str(info.value)


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_file_that_changed_is_never_read_for_another_function(tmp_path):
    factory = "from tirx.script import tirx as T\n\n\ndef make():\n{}\n    return k\n"
    path = tmp_path / "kernels.py"
    path.write_text(factory.format(textwrap.indent(KERNEL.format(8), "    ")))
    make = load(path).make
    path.write_text("\n\n" + path.read_text().replace("def k", "def other"))
    os.utime(path, (1, 1))
    with pytest.raises(tirx.DiagnosticError, match="the source of 'k' cannot be read"):
        make()


def test_messages_name_the_line_of_the_file(tmp_path):
    path = tmp_path / "kernels.py"
    path.write_text(
        "from tirx.script import tirx as T\n\n\nif True:\n" + textwrap.indent(KERNEL.format("nosuch"), "    ")
    )
    with pytest.raises(tirx.DiagnosticError) as info:
        load(path)
    e = info.value
    assert (e.filename, e.lineno, e.offset, e.end_offset) == (str(path), 9, 17, 23)
    assert e.text.strip() == "A[tx] = nosuch"
    assert str(e).rstrip("\n").split("\n") == [
        f"{path}:9:17: error: Undefined variable: nosuch",
        "        A[tx] = nosuch",
        "                ^^^^^^",
    ]


def test_columns_count_characters_behind_other_alphabets():
    text = KERNEL.format("1").replace("A[tx] = 1", 'x = "größe"; A[tx] = nosuch')
    with pytest.raises(tirx.DiagnosticError) as info:
        tirx.from_source(text)
    line, caret = str(info.value).split("\n")[1:3]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "nosuch"


def test_the_walks_own_frames_are_not_shown(run_python):
    text = "from tirx import T\n\n" + KERNEL.format("nosuch")
    shown = run_python(text, fails=True)
    assert "expressions.py" not in shown and "parser.py" not in shown
    assert "A[tx] = nosuch" in shown


def test_from_source_takes_imports_of_the_language_only():
    imports = """\
from __future__ import annotations
import tirx, tvm
from tvm.script import tirx as T; from tvm.script import (
    ir as I,
)
from tvm_tirx.script import tirx as T
"""
    assert printed(tirx.from_source(imports + KERNEL.format(8))) == "A[tx] = 8"
    with pytest.raises(tirx.DiagnosticError, match="import of 'os.path' in a kernel's text"):
        tirx.from_source("from os.path import join\n" + KERNEL.format(8))


def test_from_source_with_variables():
    f = tirx.from_source(KERNEL.format("helper(N)"), {"N": 4, "helper": T.inline(plain)})
    assert printed(f) == "A[tx] = 5"


def plain(x):
    return x + 1


def test_from_source_of_several_functions_is_a_module():
    m = tirx.from_source(KERNEL.format(1) + KERNEL.format(2).replace("def k", "def k2"))
    assert isinstance(m, tirx.IRModule) and m.names == ["k", "k2"]


def test_from_source_gives_a_jit_function():
    f = tirx.from_source(
        "@T.jit\ndef k(s: T.int32, *, N: T.constexpr):\n    T.device_entry()\n    tx = T.thread_id([N])\n"
    )
    assert "T.thread_id([64])" in f.specialize(N=64).script()


@pytest.mark.parametrize(
    "text, message",
    [
        ("x = 3", "the text defines no kernel"),
        ("def f(:\n  pass", "invalid syntax"),
        ("x = nosuch", "Undefined variable: nosuch"),
        (KERNEL.format("1\n    break"), "'break' outside loop"),
    ],
)
def test_from_source_refuses(text, message):
    with pytest.raises(tirx.DiagnosticError, match=re.escape(message)):
        tirx.from_source(text)
    with pytest.raises(TypeError, match="from_source takes text, got int"):
        tirx.from_source(3)


HOSTILE = {
    "'\ud800'": "5:14: error: U+D800, half of a surrogate pair, cannot stand in source text",
    "é + '\udfff'": "5:18: error: U+DFFF, half of a surrogate pair, cannot stand in source text",
    "1\0": "5:14: error: a null character cannot stand in source text",
    "(" * 300 + "1" + ")" * 300: "too many nested parentheses",
    "-" * 5000 + "1": "the kernel is nested too deeply",
    "9" * 5000: "Exceeds the limit",
    "0x" + "f" * 100: "exceeds maximum of uint64",
    "1\n\tA[tx] = 2": "inconsistent use of tabs and spaces",
    "min(*tx)": "int32 cannot be unpacked",
    "A[*3]": "3 cannot be unpacked",
    "'\x0b\x1c\u2028\x85'\n    B[tx] = 1": "6:5: error: Undefined variable: B",  # none of these ends a line
}


@pytest.mark.parametrize("value", HOSTILE, ids=lambda v: ascii(v[:20]))
def test_hostile_text(value):
    text = "@T.prim_func\ndef f(A: T.Buffer((32,), 'int32')):\n    T.device_entry()\n    tx = T.thread_id([32])\n"
    name = "x" if "B[tx]" in value else "A[tx]"
    with pytest.raises(tirx.DiagnosticError, match=re.escape(HOSTILE[value])):
        tirx.from_source(text + f"    {name} = {value}\n")


@pytest.mark.parametrize("text", ["\0", "\ud800", "\udfff" * 3, "", " ", "\n" * 100, "\ufeff", "\f"])
def test_text_that_is_hardly_any(text):
    with pytest.raises(tirx.DiagnosticError):
        tirx.from_source(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "# -*- coding: latin-1 -*-\n", "\f\n"])
def test_line_ends_and_beginnings(start, end):
    text = "@T.prim_func\ndef f(A: T.Buffer((32,), 'int32')):\n    T.device_entry()\n    A[0] = 1\n    A[1] = nosuch\n"
    line = 5 + start.count("\n")
    with pytest.raises(tirx.DiagnosticError, match=f":{line}:12: error: Undefined variable: nosuch"):
        tirx.from_source((start + text).replace("\n", end))


def test_from_source_keeps_no_text():
    before = len(linecache.cache)
    for k in range(5):
        tirx.from_source(KERNEL.format(k))
    assert len(linecache.cache) == before


def make(n):
    @T.prim_func
    def k(A: T.Buffer((32,), "int32")):
        T.device_entry()
        tx = T.thread_id([32])

        @T.inline
        def deep(m):
            if m > 0:
                deep(m - 1)
            else:
                A[tx] = n

        deep(30)

    return k


def test_threads_parse_their_own_kernels():
    limit = sys.getrecursionlimit()
    found, threads = {}, []

    def work(n):
        found[n] = [printed(make(n * 100 + i)) for i in range(10)]

    for n in range(8):
        threads.append(threading.Thread(target=work, args=(n,)))
        threads[-1].start()
    for t in threads:
        t.join()
    assert found == {n: [f"A[tx] = {n * 100 + i}" for i in range(10)] for n in range(8)}
    assert sys.getrecursionlimit() == limit


def test_a_fault_leaves_no_kernel_open():
    with pytest.raises(tirx.DiagnosticError):
        tirx.from_source(KERNEL.format("nosuch"))
    with pytest.raises(RuntimeError, match="can only be used inside a kernel"):
        T.cuda.cta_sync()
    assert printed(make(1)) == "A[tx] = 1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_parses():
    make(1)
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if printed(make(7)) == "A[tx] = 7" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_helper_may_build_another_kernel():
    inner = []

    def build():
        inner.append(make(5))
        return 3

    f = tirx.from_source(KERNEL.format("build()"), {"build": build})
    assert printed(f) == "A[tx] = 3" and printed(inner[0]) == "A[tx] = 5"


def test_a_module_that_is_loaded_again_is_read_again(tmp_path):
    path = tmp_path / "again.py"
    text = "from tirx.script import tirx as T\n\n\n" + KERNEL.format("x").replace("    A", "    x: T.int32 = tx\n    A")
    path.write_text(text)
    assert "x: T.int32 = tx" in load(path).k.script()
    # only an annotation differs, so the compiled code is the same
    path.write_text(text.replace("x: T.int32", "x: T.int64"))
    os.utime(path, (2, 2))
    assert "x: T.int64 = " in load(path).k.script()


def test_a_name_error_of_a_helper_passes_as_it_is():
    def helper(x):
        return x + undefined_name  # noqa: F821

    text = KERNEL.format("helper(tx)")
    with pytest.raises(NameError, match="'undefined_name' is not defined") as e:
        tirx.from_source(text, {"helper": helper})
    assert not isinstance(e.value, tirx.DiagnosticError)
    assert e.traceback[-1].name == "helper"
    with pytest.raises(tirx.DiagnosticError, match=r":1:1: error: Undefined variable: nosuch"):
        tirx.from_source("nosuch\n" + text)


async def coroutine(A):
    pass


@pytest.mark.parametrize("decorator", [T.prim_func, T.function, T.jit, T.inline])
@pytest.mark.parametrize(
    "thing, message",
    [
        (lambda A: 1, "Expect a function with statements, but got: <function <lambda>"),
        (coroutine, "Expect a plain function, but got an async one: <function coroutine"),
        (len, "Expect a function, but got: <built-in function len>"),
        (int, "Expect a function, but got: <class 'int'>"),
        ("text", "Expect a function, but got: 'text'"),
    ],
)
def test_what_is_no_function_with_a_body(decorator, thing, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        decorator(thing)


def test_kernels_in_blocks_classes_and_behind_other_decorators():
    def same(f):
        return f

    for _ in range(1):
        try:

            class Holder:
                @staticmethod
                @same
                @T.prim_func(
                    private=False,
                )
                def k(
                    A: T.Buffer((32,), "int32"),
                ) -> None:
                    """Text
                not indented as the rest."""
                    T.device_entry()
                    tx = T.thread_id([32])
                    # fmt: off
# a comment at the margin
                    A[tx] = \
     4
                    # fmt: on
        finally:
            pass
    assert printed(Holder.k) == "A[tx] = 4"


def test_a_cell_of_a_notebook_that_is_edited():
    """IPython registers each cell with linecache; the kernel of the old text stays what it was."""
    name = "<ipython-input-1-a-test>"

    def cell(value):
        text = KERNEL.format(value)
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        names = {"T": T}
        exec(compile(text, name, "exec"), names)
        return names["k"]

    first, second = cell(1), cell(2)
    assert (printed(first), printed(second)) == ("A[tx] = 1", "A[tx] = 2")
