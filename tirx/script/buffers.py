# SPDX-License-Identifier: Apache-2.0
"""Functions of T that make buffers: bound parameters, storage, views, cells; and stores in function form."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import state, views
from tirx.script.annotations import HandleType, TensorType, check_layout

Expr, Buffer, Region = _core.Expr, _core.Buffer, _core.Region


def _make(what: str, name: str, shape: Any, dtype: Any, scope: str, **fields: Any) -> Any:
    p = state.need(what)
    if isinstance(shape, (list, tuple)):
        shape = [p.dimension(d, None) for d in shape] if any(isinstance(d, str) for d in shape) else list(shape)
    else:
        shape = [shape]
    shape = [views.settled(d) for d in shape]
    given = {k: v for k, v in fields.items() if v is not None or k == "layout"}
    for key in ("elem_offset", "byte_offset"):
        if key in given:
            given[key] = views.settled(given[key])
    if "strides" in given:
        given["strides"] = [views.settled(d) for d in given["strides"]]
    check_layout(given.get("layout"))
    _check_byte_offset(given.get("byte_offset"), dtype)
    if "align" in given:
        given["align"] = max(given["align"], 0)
    return _core.buffer(p.ctx, name, shape, dtype, scope, **given)


def _check_byte_offset(offset: Any, dtype: Any) -> None:
    offset = offset.value if isinstance(offset, Expr) and offset.op == "INT" else offset
    if not isinstance(offset, int):
        return
    nbytes = views.bits_of(_core.parse_dtype(dtype)) // 8
    if nbytes > 1 and offset % (nbytes & -nbytes):
        raise ValueError(f"byte_offset={offset} is not a multiple of the {nbytes} bytes of {_core.parse_dtype(dtype)}")


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    layout: Any = "default",
) -> Any:
    """The tensor behind a T.handle parameter; or a view of a region of a buffer."""
    p = state.need("T.match_buffer")
    if param is None:
        state.fail("ABSENT_OPTIONAL", "parameter", help="guard it: if param is not None")
    if isinstance(param, (Region, Buffer)):
        return _region_view(p, param, shape, dtype)
    if not isinstance(param, Expr) or not any(h is param for h in p.handles):
        state.fail("NOT_A_PARAM")
    if shape is None:
        raise ValueError("Shape must be specified when binding input param")
    if not p.in_head():
        state.fail("MATCH_IN_DEVICE")
    if strides is not None:
        strides = [p.dimension(s, None) for s in strides]
    dims = [p.dimension(d, None) for d in (shape if isinstance(shape, (list, tuple)) else (shape,))]
    made = _make(
        "T.match_buffer",
        param.name,
        dims,
        dtype,
        scope,
        strides=strides,
        elem_offset=elem_offset,
        align=align if align > 0 else None,
        offset_factor=offset_factor or None,
        layout=layout,
    )
    p.add_equations(dims, strides)
    state.builder("T.match_buffer").match(param, made)
    return p.add_fresh(made)


def _region_view(p: Any, region: Any, shape: Any, dtype: Any) -> Any:
    """The part of a buffer that a region names, in the region's or another shape."""
    if isinstance(region, Buffer):
        part = region
    else:
        part = region.buffer.sub[tuple(slice(s, s + e) for s, e in zip(region.start, region.extent, strict=True))]
    if shape is not None:
        part = views.view(part, *(shape if isinstance(shape, (list, tuple)) else (shape,)))
    return part if part is not region else views.declare("T.match_buffer", region, region.shape, region.strides)


def _alloc(what: str, shape: Any, dtype: Any, scope: str, **fields: Any) -> Any:
    p = state.need(what)
    made = _make(what, "buffer", shape, dtype, scope, **fields)
    state.builder(what).alloc(made)
    return p.add_fresh(made)


def alloc_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    byte_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    layout: Any = "default",
    allocated_addr: Any = None,
    annotations: dict[str, Any] | None = None,
) -> Any:
    """New storage in `scope`."""
    if data is not None:
        return decl_buffer(shape, dtype, data, strides, elem_offset, byte_offset, scope, align, offset_factor, layout)
    fields = {"strides": strides, "elem_offset": elem_offset, "byte_offset": byte_offset, "layout": layout}
    fields |= {"allocated_addr": allocated_addr, "annotations": annotations}
    fields |= {"align": align if align > 0 else None, "offset_factor": offset_factor or None}
    return _alloc("T.alloc_buffer", shape, dtype, scope, **fields)


def alloc_shared(shape: Any, dtype: Any = "float32", **fields: Any) -> Any:
    """An array in shared memory."""
    return alloc_buffer(shape, dtype, **{"scope": "shared", **fields})


def alloc_local(shape: Any, dtype: Any = "float32", **fields: Any) -> Any:
    """An array of this thread's own."""
    return alloc_buffer(shape, dtype, **{"scope": "local", **fields})


def tmem(shape: Any, dtype: Any = "float32", **fields: Any) -> Any:
    """An array in tensor memory."""
    return alloc_buffer(shape, dtype, **{"scope": "tmem", **fields})


def _one_type(what: str, ty_args: Any) -> TensorType:
    if not isinstance(ty_args, (list, tuple)) or len(ty_args) != 1 or not isinstance(ty_args[0], TensorType):
        raise TypeError(f"{what} takes ty_args=[T.Tensor(shape, dtype)], exactly one")
    return ty_args[0]


def alloc_tensor(placement: Any = None, *, ty_args: Any = None, annotations: dict[str, Any] | None = None) -> Any:
    """The g2 form: T.alloc_tensor(ty_args=[T.Tensor((4,), T.float32, scope="local")])."""
    t = _one_type("T.alloc_tensor", ty_args)
    if placement is not None:
        raise ValueError(f"{t.fields.get('scope', 'global')} does not support allocation placement")
    fields = {k: v for k, v in t.fields.items() if k != "scope"}
    return _alloc(
        "T.alloc_tensor", t.shape, t.dtype, t.fields.get("scope", "global"), annotations=annotations, **fields
    )


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    byte_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    layout: Any = "default",
    allocated_addr: Any = None,
) -> Any:
    """A view over the pointer `data`; without one, new storage."""
    fields = {"strides": strides, "elem_offset": elem_offset, "byte_offset": byte_offset, "layout": layout}
    fields |= {"align": align if align > 0 else None, "offset_factor": offset_factor or None}
    fields |= {"allocated_addr": allocated_addr}
    if data is None:
        return _alloc("T.decl_buffer", shape, dtype, scope, **fields)
    p = state.need("T.decl_buffer")
    if isinstance(data, Buffer):
        data = data.data
    if not isinstance(data, Expr) or data.dtype != "handle":
        raise TypeError("Buffer data must be an Expr with PointerType")
    if scope == "global":
        scope = data.scope()
    elif data.op in ("BUFFER_DATA", "ADDRESS_OF") and scope.partition(".")[0] != data.scope().partition(".")[0]:
        raise ValueError(f"the pointer leads into {data.scope()} memory, which is not in scope '{scope}'")
    made = _make("T.decl_buffer", "buffer", shape, dtype, scope, data=data, **fields)
    state.builder("T.decl_buffer").decl(made, data)
    return p.add_fresh(made)


def decl_tensor(ptr: Any, *, ty_args: Any = None) -> Any:
    """The g2 form of a view over a pointer."""
    t = _one_type("T.decl_tensor", ty_args)
    return decl_buffer(t.shape, t.dtype, data=ptr, **t.fields)


# ---- cells ---------------------------------------------------------------------------------------------------------


def _cell(what: str, dtype: Any, scope: str, init: Any = None, name: str | None = None) -> Any:
    p = state.need(what)
    made = state.builder(what).cell(name or "v", dtype, init, scope)
    return made if name else p.add_fresh(made)


def local_scalar(dtype: Any = "float32", init: Any = None, *, name: str | None = None) -> Any:
    """A mutable scalar of this thread."""
    return _cell("T.local_scalar", dtype, "local", init, name)


def shared_scalar(dtype: Any = "float32") -> Any:
    """A mutable scalar in shared memory."""
    return _cell("T.shared_scalar", dtype, "shared")


def alloc_scalar(dtype: Any = "float32", scope: str = "local") -> Any:
    """A mutable scalar in `scope`."""
    return _cell("T.alloc_scalar", dtype, scope)


def decl_scalar(
    dtype: Any,
    data: Any,
    scope: str = "global",
    elem_offset: Any = None,
    byte_offset: Any = None,
    layout: Any = "default",
) -> Any:
    """One element behind a pointer, used by name."""
    return decl_buffer((1,), dtype, data, elem_offset=elem_offset, byte_offset=byte_offset, scope=scope, layout=layout)


def assign(cell: Any, value: Any) -> None:
    """Stores into a cell."""
    if not isinstance(cell, Buffer):
        raise TypeError(f"T.assign needs a cell, got {type(cell).__name__}")
    state.builder("T.assign").store(cell, (0,), value)


# ---- stores in function form ---------------------------------------------------------------------------------------


def buffer_store(buffer: Any, value: Any, indices: Any, predicate: Any = None) -> None:
    """buffer[indices] = value."""
    _store("T.buffer_store", buffer, indices, value, predicate)


def tensor_store(buffer: Any, indices: Any, value: Any, predicate: Any = None) -> None:
    """The g2 form, with the indices first."""
    _store("T.tensor_store", buffer, indices, value, predicate)


def _store(what: str, buffer: Any, indices: Any, value: Any, predicate: Any) -> None:
    if not isinstance(buffer, Buffer):
        raise TypeError(f"{what} needs a buffer, got {type(buffer).__name__}")
    if not isinstance(indices, (list, tuple)):
        indices = (indices,)
    state.builder(what)
    if predicate is None:
        buffer[tuple(indices)] = value
        return
    from tirx.script import derived

    derived.masked_store(buffer, indices, value, predicate, what=what)


def bind_(value: Any, name: str | None = None) -> Any:
    """value itself, with a name for the printed form."""
    p = state.need("T.bind_")
    if name is not None and p.is_fresh(value):
        p.take_fresh(value, name)
    return value


def Bind(value: Any, type: Any = None, *, var: Any = None) -> Any:
    """An immutable binding; gives the variable."""
    if isinstance(type, HandleType):
        type = None
    name = state.need("T.Bind").result_names("v")[0] if var is None else var.name
    return state.builder("T.Bind").bind(name, value, type)
