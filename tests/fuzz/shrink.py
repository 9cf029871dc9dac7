# SPDX-License-Identifier: Apache-2.0
"""Makes a failing kernel's text smaller while it still fails: statements go, blocks lose their heads, expressions
become one of their parts."""

from __future__ import annotations

import ast
import copy
import time
from collections.abc import Callable, Iterator


def candidates(tree: ast.Module) -> Iterator[ast.Module]:
    """Smaller trees, the boldest first."""
    blocks = [
        (n, field)
        for n in ast.walk(tree)
        for field in ("body", "orelse")
        if isinstance(getattr(n, field, None), list) and not isinstance(n, ast.Module)
    ]
    for number, (node, field) in enumerate(blocks):
        size = len(getattr(node, field))
        length = size
        while length:
            for at in range(0, size, length):
                yield changed(tree, number, field, at, at + length, None)
            length //= 2
        for at in range(size):
            if isinstance(getattr(node, field)[at], (ast.For, ast.While, ast.If, ast.With)):
                yield changed(tree, number, field, at, at + 1, "open")
    spots = list(expressions(tree))
    for number, (node, field, at) in enumerate(spots):
        old = getattr(node, field) if at is None else getattr(node, field)[at]
        parts = [c for c in ast.iter_child_nodes(old) if isinstance(c, ast.expr)]
        if isinstance(old, ast.Call):
            parts = list(old.args)
        for k in range(len(parts)):
            yield replaced(tree, number, k)


def expressions(tree):
    signature = {id(m) for n in ast.walk(tree) if isinstance(n, ast.arguments) for m in ast.walk(n)}
    for n in ast.walk(tree):
        if id(n) in signature:
            continue
        for field, value in ast.iter_fields(n):
            if field in ("annotation", "decorator_list", "func", "targets", "target", "returns"):
                continue
            if isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant)):
                yield n, field, None
            elif isinstance(value, list):
                for i, e in enumerate(value):
                    if isinstance(e, ast.expr) and not isinstance(e, (ast.Name, ast.Constant)):
                        yield n, field, i


def changed(tree, number, field, low, high, how):
    new = copy.deepcopy(tree)
    blocks = [
        (n, f)
        for n in ast.walk(new)
        for f in ("body", "orelse")
        if isinstance(getattr(n, f, None), list) and not isinstance(n, ast.Module)
    ]
    node, field = blocks[number]
    body = getattr(node, field)
    body[low:high] = body[low].body if how == "open" else []
    if not body and field == "body":
        body.append(ast.Pass())
    return new


def replaced(tree, number, part):
    new = copy.deepcopy(tree)
    node, field, at = list(expressions(new))[number]
    old = getattr(node, field) if at is None else getattr(node, field)[at]
    parts = (
        list(old.args)
        if isinstance(old, ast.Call)
        else [c for c in ast.iter_child_nodes(old) if isinstance(c, ast.expr)]
    )
    if at is None:
        setattr(node, field, parts[part])
    else:
        getattr(node, field)[at] = parts[part]
    return new


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 20) -> str:
    end = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < end:
        again = False
        for tree in candidates(ast.parse(text)):
            if time.monotonic() > end:
                break
            try:
                smaller = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            except Exception:
                continue
            if len(smaller) < len(text) and fails(smaller):
                text, again = smaller, True
                break
    return text
