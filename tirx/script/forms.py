# SPDX-License-Identifier: Apache-2.0
"""Names that generated code of the originals calls: builder forms in lower case and the hooks behind a statement.

Each is a thin form of what the language has under another name; only `bind_`, `emit` and `region` stand in users' code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tirx import _core
from tirx.script import buffers, control, dtypes, frames, ops, state
from tirx.script.ops import Receipt

Expr, Buffer, Region = _core.Expr, _core.Buffer, _core.Region


# ---- loops and branches ----------------------------------------------------------------------------------------------


def For(
    start: Any,
    stop: Any = None,
    *,
    step: Any = None,
    kind: str = "serial",
    annotations: Any = None,
    dtype: Any = None,
) -> frames.Loop:
    """with T.For(0, n) as i: a loop of the kind "serial", "unroll", "vectorized" or "parallel"."""
    if kind not in ("serial", "unroll", "vectorized", "parallel"):
        raise ValueError(f"T.For: kind must be serial, unroll, vectorized or parallel, got {kind!r}")
    return frames.loop(kind, start, stop, step, None, annotations, dtype)


def for_(iterable: Any) -> Any:
    """A loop as what `with` takes: with T.for_(T.range_(4)) as i."""
    if isinstance(iterable, (frames.Loop, frames.Grid)):
        return iterable
    if isinstance(iterable, range):
        return range_(iterable.start, iterable.stop, iterable.step)
    raise TypeError(f"T.for_ takes a loop, got {type(iterable).__name__}")


def range_(*args: Any) -> frames.Loop:
    """range(...) as a loop of the kernel."""
    if not 1 <= len(args) <= 3:
        state.fail("RANGE_ARITY", outside=TypeError)
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    return frames.Loop("serial", start, stop, args[2] if len(args) == 3 else 1)


@contextlib.contextmanager
def frame_scope(opened: Any) -> Iterator[tuple]:
    """Several frames at once; gives what each gives."""
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(f) for f in opened)


# ---- logic -----------------------------------------------------------------------------------------------------------


def _given(x: Any) -> Any:
    """A value, or what a function without parameters gives."""
    return x() if callable(x) and not state.is_ir(x) and not dtypes.is_dtype(x) else x


def _logic(row: str, name: str) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        return ops._fold(row, f"T.{name}", tuple(_given(v) for v in values))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The hook of '{name.rstrip('_')}'; an operand may be a function without parameters."
    return call


def _two(row: str, name: str) -> Callable[[Any, Any], Any]:
    def call(a: Any, b: Any) -> Any:
        return _core.op(state.context(f"T.{name}"), row, a, b)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "The hook of a comparison."
    return call


and_, or_ = _logic("AND", "and_"), _logic("OR", "or_")
eq_, ne_, lt_ = _two("EQ", "eq_"), _two("NE", "ne_"), _two("LT", "lt_")
le_, gt_, ge_ = _two("LE", "le_"), _two("GT", "gt_"), _two("GE", "ge_")


def not_(value: Any) -> Any:
    """The hook of 'not'."""
    return _core.op(state.context("T.not_"), "NOT", _given(value))


def if_then_else_(condition: Any, yes: Any, no: Any) -> Any:
    """The hook of a conditional expression; an arm may be a function without parameters."""
    return ops.if_then_else(condition, _given(yes), _given(no))


# ---- names and storage -----------------------------------------------------------------------------------------------


def decl_mutable_cell_(value: Any, name: str | None = None) -> Any:
    """A mutable scalar: of a dtype, or of the dtype of a value that it holds first."""
    p = state.need("T.decl_mutable_cell_")
    if dtypes.is_dtype(value) and not isinstance(value, Expr):
        return buffers.local_scalar(value, name=name)
    e = _core.as_expr(p.ctx, value)
    return buffers.local_scalar(e.dtype, e, name=name)


def set_mutable_cell_(cell: Any, value: Any) -> None:
    """Stores into a mutable scalar."""
    buffers.assign(cell, value)


def setattr_(owner: Any, name: str, value: Any) -> None:
    """owner.name = value; stores where the attribute is a mutable scalar."""
    before = getattr(owner, name, None)
    if isinstance(before, Buffer) and before.is_cell:
        buffers.assign(before, value)
    else:
        setattr(owner, name, value)


def setitem_(owner: Any, index: Any, value: Any) -> None:
    """owner[index] = value."""
    if isinstance(owner, Buffer):
        state.builder("T.setitem_")
    owner[index] = value


def unpack_(value: Any, count: int) -> tuple:
    """The elements of a value that stands on the right of `a, b = value`."""
    found = tuple(value)
    if len(found) != count:
        raise ValueError(f"cannot take {len(found)} value(s) apart into {count}")
    return found


def at_(span: Any = None, value: Any = None) -> Any:
    """value; the place is known already."""
    return value


def with_at_group_(span: Any, body: Callable[[], Any]) -> Any:
    """What body() gives; the place is known already."""
    return body()


def emit_(value: Any) -> Receipt:
    """Emits a call."""
    return control.evaluate(value)


def add_to_parent(statement: Any) -> Receipt:
    """Emits a call where the kernel being built stands."""
    return control.evaluate(statement)


def scalar_wrapper(value: Any) -> Any:
    """value: a mutable scalar needs no wrapper."""
    return value


# ---- regions ---------------------------------------------------------------------------------------------------------


def region(value: Any, *mask_and_extents: Any) -> Any:
    """Part of a buffer: a region as it is, or an element and the extents from there (behind an access mask)."""
    if isinstance(value, (Region, Buffer)):
        return value
    if not isinstance(value, Expr) or value.op != "LOAD":
        raise TypeError(f"T.region needs an element or a region of a buffer, got {type(value).__name__}")
    extents = mask_and_extents[1:]
    if len(extents) != len(value.args):
        raise ValueError(f"T.region needs {len(value.args)} extent(s), got {len(extents)}")
    return value.buffer[tuple(slice(i, i + e) for i, e in zip(value.args, extents, strict=True))]


def tensor_indices(element: Any) -> tuple:
    """The indices of an element."""
    if not isinstance(element, Expr) or element.op != "LOAD":
        raise TypeError("T.tensor_indices needs an element of a tensor")
    return element.args


def tensor_data_ptr(tensor: Any) -> Any:
    """Pointer to the first element."""
    if not isinstance(tensor, Buffer):
        raise TypeError(f"T.tensor_data_ptr needs a tensor, got {type(tensor).__name__}")
    return tensor.data


# ---- functions and modules -------------------------------------------------------------------------------------------


def arg_(name: str, annotation: Any) -> Any:
    """A parameter of the function being built."""
    from tirx import builder

    return builder.ir.arg(name, annotation)


def function_(*args: Any, **options: Any) -> Any:
    """The frame of a function being built."""
    from tirx import builder

    return builder.ir.prim_func(*args, **options)


def call_global_var_(function: Any, *args: Any) -> Any:
    """Calls another function of the module."""
    return function(*args)


def module_member_(module: Any, name: str) -> Any:
    """A function of a module."""
    return module[name]


def resolve_global_info_(infos: Any, name: str) -> Any:
    """An entry of a module's global infos."""
    return infos[name]


def check_well_formed_(function: Any = None) -> Any:
    """function: what is built is checked when it is finished."""
    return function
