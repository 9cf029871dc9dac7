# SPDX-License-Identifier: Apache-2.0
"""Contexts: places, inlining, diagnostics by name and the exceptions they become."""

from __future__ import annotations

import ast
import traceback

import pytest

import tirx.errors as errors
from tirx import _core


def test_the_table_of_errors_is_one_tree():
    assert issubclass(errors.DiagnosticError, errors.Error) and issubclass(errors.DiagnosticError, SyntaxError)
    for cls, base in [
        (errors.DiagnosticValueError, ValueError),
        (errors.DiagnosticTypeError, TypeError),
        (errors.DiagnosticRuntimeError, RuntimeError),
        (errors.DiagnosticKeyError, KeyError),
        (errors.DispatchError, RuntimeError),
    ]:
        assert issubclass(cls, errors.DiagnosticError) and issubclass(cls, base)
    for cls in (errors.CompileError, errors.CUDAError, errors.InternalError, errors.EmulationError):
        assert issubclass(cls, errors.Error) and issubclass(cls, RuntimeError)
    assert issubclass(errors.NvrtcError, errors.CompileError)
    assert issubclass(errors.EmulationWarning, UserWarning)


def test_spans(ctx):
    span = ctx.at_pos(2, 6, 2, 16)
    assert ctx.span == span
    assert ctx.span_info(span) == ("kernel.py", 2, 6, 2, 16, 0)
    assert ctx.at_pos(2, 6, 2, 16) == span
    node = ast.parse("one = a + b").body[0].value
    assert ctx.span_info(ctx.at(node)) == ("kernel.py", 1, 6, 1, 11, 0)
    here = ctx.span
    assert ctx.at(ast.Load()) == here  # a node without a place
    assert _core.as_expr(ctx, 1).span == here
    ctx.span = 0
    assert ctx.span_info(0) == ("", 0, 0, 0, 0, 0)
    for bad in (10**6, -1):
        with pytest.raises((ValueError, OverflowError)):
            ctx.span = bad


def test_offsets_of_dedented_text(ctx):
    f = ctx.add_file("other.py", "        x = 1\n", 40)
    ctx.set_place(f, "g", col_offset=8, line_offset=39)
    assert ctx.span_info(ctx.at(ast.parse("x = 1").body[0].value)) == ("other.py", 40, 12, 40, 13, 0)


def test_inlined_places(ctx):
    call = ctx.at_pos(2, 6, 2, 16)
    f = ctx.add_file("inline.py", "def f():\n    bad\n", 10)
    ctx.push_inline(f, "f")
    span = ctx.at_pos(11, 4, 11, 7)
    assert ctx.span_info(span)[5] == call
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.fail("UNSUPPORTED_STATEMENT", "Try")
    assert str(e.value) == (
        "inline.py:11:5: error: Unsupported statement: Try\n    bad\n    ^^^\n  in f(), inlined from k() at kernel.py:2"
    )
    ctx.pop_inline()
    assert ctx.span == call
    with pytest.raises(RuntimeError):
        ctx.pop_inline()


def test_the_depth_of_inlining_is_limited(ctx):
    for _ in range(200):
        ctx.push_inline(1, "f")
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.push_inline(1, "f")
    text = str(e.value)
    assert text.split("\n")[0].endswith("error: calls of inline functions are nested deeper than 200")
    assert "  help: an inline function that calls itself needs an end that is known while the kernel is built" in text


def test_a_diagnostic_says_where(ctx):
    ctx.at_pos(2, 6, 2, 19)
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.fail("UNDEFINED_NAME", "zz", "")
    x = e.value
    assert str(x) == "kernel.py:2:7: error: Undefined variable: zz\ntwo = f(a, 'ä', b)\n      ^^^^^^^^^^^^"
    assert (x.filename, x.lineno, x.offset, x.end_lineno, x.end_offset) == ("kernel.py", 2, 7, 2, 19)
    assert (x.text, x.msg) == ("two = f(a, 'ä', b)", "Undefined variable: zz")


def test_python_shows_an_uncaught_one_with_its_help(ctx):
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.fail("UNDEFINED_NAME", "zz", "", help="did you mean 'z'?")
    shown = traceback.format_exception_only(e.value)
    assert "".join(shown).split("\n") == [
        '  File "kernel.py", line 1',
        "    one = a + b",
        "          ^^^^^",
        "tirx.errors.DiagnosticError: Undefined variable: zz",
        "help: did you mean 'z'?",
        "",
    ]


def test_recorded_diagnostics_are_raised_together(ctx):
    ctx.raise_if_failed()
    ctx.record("UNDEFINED_NAME", "x", "")
    second = ctx.at_pos(3, 0, 3, 5)
    ctx.at_pos(1, 6, 1, 11)
    ctx.record("NOT_A_VALUE", "that", span=second)
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.raise_if_failed()
    assert type(e.value) is errors.DiagnosticError
    assert str(e.value).split("\n") == [
        "kernel.py:1:7: error: Undefined variable: x",
        "one = a + b",
        "      ^^^^^",
        "kernel.py:3:1: error: a number or an expression is expected, got that",
        "three",
        "^^^^^",
    ]
    ctx.raise_if_failed()  # forgotten


def test_classes_of_diagnostics(ctx):
    classes = {name: cls for name, cls, _, _ in _core.diags()}
    for name, args, cls in [
        ("UNDEFINED_NAME", ("x", ""), errors.DiagnosticError),
        ("BAD_LITERAL", ("x", "int32"), errors.DiagnosticValueError),
        ("NOT_A_VALUE", ("x",), errors.DiagnosticTypeError),
        ("NO_BUILDER", (), errors.DiagnosticRuntimeError),
        ("INTERNAL", ("x",), errors.InternalError),
    ]:
        assert name in classes
        with pytest.raises(cls) as e:
            ctx.fail(name, *args)
        assert type(e.value) is cls
    with pytest.raises(MemoryError):
        ctx.fail("NO_MEMORY")


def test_diagnostics_that_cannot_be_told(ctx):
    for args in [("NO_SUCH_ROW",), ("UNDEFINED_NAME",), ("UNDEFINED_NAME", "a", "b", "c"), ("TOO_DEEP", "1")]:
        with pytest.raises(ValueError, match="no diagnostic"):
            ctx.fail(*args)
    for args in [(), (3,)]:
        with pytest.raises(TypeError):
            ctx.fail(*args)
    with pytest.raises(ValueError):
        ctx.fail("UNDEFINED_NAME", "x", "", span=10**6)


def test_texts_may_hold_anything(ctx):
    with pytest.raises(errors.DiagnosticError) as e:
        ctx.fail("UNDEFINED_NAME", "%s%n\x00tail ä", "")
    assert str(e.value).split("\n")[0].startswith("kernel.py:1:7: error: Undefined variable: %s%n")


def test_a_context_stays_usable_after_an_error(ctx):
    for _ in range(3):
        with pytest.raises(errors.DiagnosticError):
            ctx.fail("UNDEFINED_NAME", "x", "")
        assert (_core.as_expr(ctx, 2) + 3).dtype == "int32"


def test_files_and_places_are_checked(ctx):
    for args in [(99, "f"), (-1, "f"), (0, "f")]:
        with pytest.raises(ValueError):
            ctx.set_place(*args)
    for args, kwargs in [((), {}), ((1,), {}), ((1, 2), {}), ((1, "f"), {"x": 1}), ((1, "f", 0, 0, 0), {})]:
        with pytest.raises(TypeError):
            ctx.set_place(*args, **kwargs)
    with pytest.raises(TypeError):
        _core.Context(1)
