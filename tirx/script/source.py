# SPDX-License-Identifier: Apache-2.0
"""The text and the tree of a Python function, for the function object itself and never by its name.

The code object says in which file and on which line its first decorator or its `def` stands; the lines come from
linecache, which knows files, notebooks, doctests and texts that were registered there. Where the function ends is
found by parsing up to the next line that is indented no deeper; a line inside a bracket or a long string does not
parse, and the next one is tried. Trees are kept by code object, so that a kernel made by a factory is parsed once.
"""

from __future__ import annotations

import ast
import linecache
import re
import threading
from typing import Any

_MAX_TREES = 4096
_WORD = re.compile(r"\w+")

_trees: dict[int, tuple[Any, Source]] = {}  # id of a code object -> (it, its tree); annotations are not in the code
_texts: dict[str, list[str]] = {}
_known: dict[str, dict[int, ast.FunctionDef]] = {}  # of a registered text: functions by their first lines
_lock = threading.Lock()


class NoSource(Exception):
    """The text cannot be had, or what stands there is another function."""


class Source:
    """A function's tree; a node at line n of the tree stands at line n + line_offset of the file."""

    __slots__ = ("file", "first_line", "line_offset", "name", "node", "text")

    def __init__(self, file: str, text: str, first_line: int, line_offset: int, node: ast.FunctionDef):
        self.file = file
        self.text = text
        self.first_line = first_line
        self.line_offset = line_offset
        self.node = node
        self.name = node.name


def of_function(function: Any) -> Source:
    """The source of a Python function; NoSource when there is none."""
    code = function.__code__
    kept = _trees.get(id(code))
    if kept is not None:
        return kept[1]
    found = _find(code, _lines(code.co_filename, function.__globals__))
    if code.co_filename not in _texts:  # else it is read once, under a name that does not come again
        with _lock:
            if len(_trees) >= _MAX_TREES:
                _trees.clear()
            _trees[id(code)] = (code, found)
    return found


def register(file: str, text: str, tree: ast.Module) -> None:
    """Makes a text known that is in no file (tirx.from_source), until `forget`, with the tree that was read of it."""
    _texts[file] = [line + "\n" for line in text.split("\n")]  # not splitlines(): Python ends lines at "\n" only
    _known[file] = found = {}
    todo: list[ast.stmt] = [*tree.body]
    for s in todo:
        if isinstance(s, ast.FunctionDef):
            found[min([s.lineno, *(d.lineno for d in s.decorator_list)])] = s
        elif isinstance(s, ast.ClassDef):
            todo.extend(s.body)


def forget(file: str) -> None:
    _texts.pop(file, None)
    _known.pop(file, None)


def lines_of(file: str) -> list[str]:
    return _texts.get(file) or linecache.getlines(file)


def _lines(file: str, module_globals: dict[str, Any]) -> list[str]:
    lines = _texts.get(file)
    if lines is None:
        linecache.checkcache(file)
        lines = linecache.getlines(file, module_globals)
    if not lines:
        raise NoSource
    return lines


def _find(code: Any, lines: list[str]) -> Source:
    start = code.co_firstlineno - 1
    if not 0 <= start < len(lines):
        raise NoSource
    known = _known.get(code.co_filename, {}).get(code.co_firstlineno)
    if known is not None:
        text = "".join(lines[start : known.end_lineno])
        if not _is_tree_of(known, code, text):
            raise NoSource
        return Source(code.co_filename, text, start + 1, 0, known)
    margin = _margin(lines[start])
    end = start + 1
    while True:
        # the next line that can be the first one behind the function
        while end < len(lines) and (_margin(lines[end]) > margin or _is_blank(lines[end])):
            end += 1
        node = _parse(lines[start:end])
        if node is not None:
            break
        if end >= len(lines):
            raise NoSource
        end += 1
    if not _is_tree_of(node, code, "".join(lines[start:end])):
        raise NoSource
    # the tree was read behind one line more than the text
    return Source(code.co_filename, "".join(lines[start:end]), start + 1, start - 1, node)


_reading = threading.Lock()


def read_tree(text: str, name: str = "<unknown>", mode: str = "exec") -> Any:
    """ast.parse, by one thread at a time: CPython 3.11 and 3.12 count the depth of trees for all threads together, and
    one that is interrupted by another raises SystemError (gh-106905)."""
    with _reading:
        return ast.parse(text, name, mode)


def _parse(lines: list[str]) -> ast.FunctionDef | None:
    """The one function in these lines, whatever their indentation; None when they do not parse."""
    text = "".join(lines)
    indented = text[:1].isspace()
    try:
        # a block may be indented as it likes, so nothing is cut off and columns stay true
        body = read_tree(("if 1:\n" if indented else "\n") + text).body
    except (SyntaxError, ValueError):
        return None
    if indented:
        body = body[0].body  # type: ignore[attr-defined]
    return body[0] if len(body) == 1 and isinstance(body[0], ast.FunctionDef) else None


def _is_tree_of(node: ast.FunctionDef, code: Any, text: str) -> bool:
    """Whether the tree can be what the code was compiled from: a file may have changed since."""
    if node.name != code.co_name:
        return False
    a = node.args
    args = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    if len(args) != count or (a.vararg is not None) != bool(code.co_flags & 4):
        return False
    words = set(_WORD.findall(text))  # much faster than a walk over the tree
    private = any(w.startswith("__") for w in words)  # Python adds the class's name to these
    rewritten = any(w.startswith("@") for w in code.co_names)  # pytest adds names of its own where it rewrites asserts
    return private or rewritten or all(set(w.split(".")) <= words for w in code.co_names)


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" \t\f"))


def _is_blank(line: str) -> bool:
    text = line.lstrip()
    return not text or text.startswith("#")
