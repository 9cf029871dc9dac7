# SPDX-License-Identifier: Apache-2.0
"""@T.meta_class: a Python class whose objects hold buffers and cells while a kernel is built.

What its constructor allocates is named after the variable and the field: `first = Holder(...)` gives `first_buf`, and
must be reachable from the object. A value that is assigned to a field with a cell in it is stored into the cell, in
plain methods as in the kernel's text. Subclasses are meta classes, too.
"""

from __future__ import annotations

import functools
from typing import Any

from tirx import _core
from tirx.script import state


def meta_class(cls: Any) -> Any:
    """Marks a class: its objects may be made inside kernels and own what they allocate.

    Assigning to a field that holds a cell stores into the cell.
    """
    if not isinstance(cls, type):
        raise TypeError(f"T.meta_class decorates a class, got {cls!r}")
    if hasattr(cls, "_tirx_name_resources"):  # a subclass of one, or marked twice
        return cls
    _watch(cls)
    own = vars(cls).get("__init_subclass__")

    def init_subclass(sub: Any, **keywords: Any) -> None:
        if own is not None:
            own.__func__(sub, **keywords)
        else:
            super(cls, sub).__init_subclass__(**keywords)
        if "__init__" in vars(sub):
            _watch(sub)
        if "__setattr__" in vars(sub):
            _store_into_cells(sub)

    _store_into_cells(cls)
    cls.__init_subclass__ = classmethod(init_subclass)
    cls._tirx_name_resources = _name_resources
    return cls


def _watch(cls: Any) -> None:
    """Makes the constructor check that what it allocates is kept."""
    made = cls.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **keywords: Any) -> None:
        p = state.parser()
        if p is None or type(self).__init__ is not init:  # called by a subclass's
            made(self, *args, **keywords)
            return
        p.note_made(self)
        before = set(p.fresh)
        p.helper_depth += 1
        try:
            made(self, *args, **keywords)
        finally:
            p.helper_depth -= 1
        found = _resources(self)
        for path, x in found:  # until the object has a name itself
            if path and p.is_fresh(x):
                _core.rename(x, path)
        owned = [x for _, x in found]
        kept = set(map(id, owned))
        while owned:  # what an owned view is a view of was only a step on the way to it
            x = getattr(owned.pop(), "origin", None)
            if x is not None and id(x) not in kept:
                kept.add(id(x))
                owned.append(x)
        for key in list(p.fresh):
            if key not in before and key not in kept:
                state.fail("UNOWNED_RESOURCE", type(self).__name__)

    cls.__init__ = init


def _store_into_cells(cls: Any) -> None:
    set_it = cls.__setattr__

    def set_attribute(self: Any, name: str, value: Any) -> None:
        p: Any = state.parser()
        if p is None or not p.stores_into_field(getattr(self, name, None), value):
            set_it(self, name, value)

    cls.__setattr__ = set_attribute


def _name_resources(self: Any, p: Any, name: str) -> None:
    for path, x in _resources(self):
        if p.is_fresh(x):
            p.take_fresh(x, f"{name}_{path}")


def _fields(x: Any) -> list[tuple[str, Any]]:
    found = list(getattr(x, "__dict__", {}).items())
    for kind in type(x).__mro__:
        slots = vars(kind).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__") and hasattr(x, slot):
                found.append((slot.lstrip("_"), getattr(x, slot)))
    return found


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
        pairs = [(join + k, v) for k, v in _fields(x)]
    else:
        return []
    return [found for p, v in pairs for found in _resources(v, p, seen)]
