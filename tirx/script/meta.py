# SPDX-License-Identifier: Apache-2.0
"""@T.meta_class: a Python class whose objects hold buffers and cells while a kernel is built.

What its constructor allocates is named after the variable and the field: `first = Holder(...)` gives `first_buf`.
"""

from __future__ import annotations

import functools
from typing import Any

from tirx.script import state


def meta_class(cls: Any) -> Any:
    """Marks a class: its objects may be made inside kernels and own what they allocate."""
    if not isinstance(cls, type):
        raise TypeError(f"T.meta_class decorates a class, got {cls!r}")
    made = cls.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **keywords: Any) -> None:
        p = state.parser()
        if p is None or type(self).__init__ is not init:
            made(self, *args, **keywords)
            return
        before = set(p.fresh)
        p.helper_depth += 1
        try:
            made(self, *args, **keywords)
        finally:
            p.helper_depth -= 1
        owned = {id(x) for _, x in _resources(self)}
        for key in list(p.fresh):
            if key not in before and key not in owned:
                state.fail("UNOWNED_RESOURCE", cls.__name__)

    cls.__init__ = init
    cls._tirx_name_resources = _name_resources
    return cls


def _name_resources(self: Any, p: Any, name: str) -> None:
    for path, x in _resources(self):
        if p.is_fresh(x):
            p.take_fresh(x, f"{name}_{path}")


def _resources(x: Any, path: str = "", seen: set[int] | None = None) -> list[tuple[str, Any]]:
    """What an object holds, through its fields, lists, tuples, dicts and other such objects, with the way to it."""
    seen = set() if seen is None else seen
    if id(x) in seen:
        return []
    seen.add(id(x))
    join = (path + "_") if path else ""
    if state.is_ir(x):
        return [(path, x)]
    if isinstance(x, (list, tuple)):
        pairs = [(f"{join}{k}", v) for k, v in enumerate(x)]
    elif isinstance(x, dict):
        pairs = [(f"{join}{k}", v) for k, v in x.items()]
    elif hasattr(type(x), "_tirx_name_resources"):
        pairs = [(join + k, v) for k, v in vars(x).items()]
    else:
        return []
    return [found for p, v in pairs for found in _resources(v, p, seen)]
