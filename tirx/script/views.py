# SPDX-License-Identifier: Apache-2.0
"""Views: the methods of a buffer that give another shape, order, part or element type of the same storage.

A view is a declaration over the data of what it views and changes nothing but metadata. Shapes and strides are Python
numbers where they are known and expressions else. Products that may pass 2**31 are made in 64 bits: those of sizes
known at the call, and those of constant ones whose storage is that large. What depends on memory (a cell as an index)
is bound when the view is made, so that the view stays where it is.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from tirx import _core
from tirx.script import dtypes, state
from tirx.script.annotations import MemoryScope, check_layout
from tirx.script.expressions import is_impure

Expr, Buffer = _core.Expr, _core.Buffer

_BITS = {text: 4 if bits == 4 else 8 * nbytes for text, _, _, bits, nbytes in _core.dtypes()}  # in memory
_LANES = re.compile(r"^(.*[a-z][0-9a-z_]*?)x(\d+)$")
_EFFECTS = {op[1] for op in _core.ops() if op[5] & 32}
_SMALL = 2**28  # elements; whatever the element type, offsets and products of smaller storage fit int32
_NO_LAYOUT = (None, "default")


def bits_of(dtype: str) -> int:
    """Bits that an element takes in memory, lanes included."""
    found = _BITS.get(dtype)
    if found is not None:
        return found
    parts = _LANES.match(dtype)
    if parts is None or parts[1] not in _BITS:
        raise ValueError(f"unknown dtype '{dtype}'")
    return _BITS[parts[1]] * int(parts[2])


# ---- numbers that may be expressions -------------------------------------------------------------------------------


def _number(what: str, x: Any) -> Any:
    """An extent, index or offset: an int where it is known."""
    p = state.need(what)
    if isinstance(x, bool) or isinstance(x, (float, str)) or x is None:
        state.fail("PYTHON_TYPE", f"{what.removeprefix('.')}: an integer is expected, got {x!r}")
    if isinstance(x, int):
        return x
    e = _core.as_expr(p.ctx, x)
    if not e.dtype.startswith(("int", "uint")) or "x" in e.dtype:
        state.fail("PYTHON_TYPE", f"{what.removeprefix('.')}: an integer is expected, got {e.dtype}")
    return e.value if e.op == "INT" else e


def settled(x: Any) -> Any:
    """x, bound to a value if it depends on memory."""
    if isinstance(x, Buffer):
        x = _core.as_expr(x.ctx, x)
    if not isinstance(x, Expr) or not is_impure(x):
        return x
    return state.builder("a view").bind("v", x)


def _simple(x: Any) -> Any:
    if not isinstance(x, Expr):
        return x
    x = _core.simplify(x.ctx, x)
    return x.value if x.op == "INT" else x


def _same(a: Any, b: Any) -> bool | None:
    """Whether two numbers are equal; None when that is not known."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    d = _simple(a - b)
    return d == 0 if isinstance(d, int) else None


def distance(start: Any, stop: Any) -> Any:
    """stop - start, an int where it is known; both are evaluated at the same time, so equal loads are equal."""
    (x, a), (y, b) = _split(start), _split(stop)
    if isinstance(x, Expr) and isinstance(y, Expr) and _core.equal(x, y):
        return b - a
    return _simple(stop - start)


def _has_effect(x: Any) -> bool:
    return isinstance(x, Expr) and (x.op in _EFFECTS or any(map(_has_effect, x.args)))


def _split(x: Any) -> tuple[Any, int]:
    if isinstance(x, Expr) and x.op == "ADD":
        for one, other in (x.args, x.args[::-1]):
            if other.op == "INT":
                return one, other.value
    return (x, 0) if isinstance(x, Expr) else (None, x)


def _times(a: Any, b: Any, narrow: bool) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if (isinstance(a, int) and a == 1) or (isinstance(b, int) and b == 1):
        return b if isinstance(a, int) and a == 1 else a
    if isinstance(a, int) and a == 0 or isinstance(b, int) and b == 0:
        return 0
    if not narrow:
        a = _core.cast(a.ctx, "int64", a) if isinstance(a, Expr) else a
        b = _core.cast(b.ctx, "int64", b) if isinstance(b, Expr) else b
    return a * b


def _plus(a: Any, b: Any) -> Any:
    if isinstance(a, int) and a == 0:
        return b
    return a if isinstance(b, int) and b == 0 else a + b


def _is_small(b: Any) -> bool:
    """Whether offsets into the storage that b is a view of surely fit int32."""
    while b.origin is not None:
        b = b.origin
    shape = b.shape
    return all(isinstance(d, int) for d in shape) and prod(shape) < _SMALL and b.given_strides is None


def strides_of(b: Any) -> list[Any]:
    """Strides of a buffer, where it has none those of the dense order."""
    if b.given_strides is not None:
        return list(b.given_strides)
    return _dense(list(b.shape), _is_small(b))


def _dense(shape: list[Any], narrow: bool) -> list[Any]:
    strides: list[Any] = []
    step: Any = 1
    for d in reversed(shape):
        strides.insert(0, step)
        step = _times(step, d, narrow)
    return strides


def _text(shape: Any) -> str:
    return "(" + ", ".join(str(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"


# ---- making one ----------------------------------------------------------------------------------------------------


def declare(
    what: str, source: Any, shape: Any, strides: Any = None, offset: Any = None, dtype: Any = None, **fields: Any
) -> Any:
    """A view of `source`; strides None means dense, offset (elements) None that of the source."""
    p = state.need(what)
    builder = state.builder(what)
    narrow = _is_small(source)
    shape = list(shape)
    if strides is not None and all(_same(a, b) is True for a, b in zip(strides, _dense(shape, narrow), strict=True)):
        strides = None
    if offset is None:
        offset = source.elem_offset
    made = _core.buffer(
        p.ctx,
        source.name,
        shape,
        source.dtype if dtype is None else dtype,
        source.scope(),
        data=source.data,
        strides=None if strides is None else list(strides),
        elem_offset=None if isinstance(offset, int) and offset == 0 else offset,
        **fields,
    )
    builder.decl(made, source.data)
    return p.add_fresh(made)


def _layout(what: str, layout: Any) -> None:
    if layout not in _NO_LAYOUT:
        check_layout(layout)
        raise ValueError(f"{what}: a layout is not supported by tirx yet: give a shape")


def _extents(what: str, shape: tuple) -> list[Any]:
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = tuple(shape[0])
    found = [settled(_number(f".{what}", d)) for d in shape]
    for d in found:
        if isinstance(d, int) and d < -1:
            raise ValueError(f"{what}: an extent of {d} in {_text(found)}")
    if sum(isinstance(d, int) and d == -1 for d in found) > 1:
        raise ValueError(f"{what}: at most one extent can be -1, got {_text(found)}")
    return found


def _count(shape: Any) -> Any:
    total: Any = 1
    for d in shape:
        total = _times(total, d, True)
    return total


def _fill(what: str, shape: list[Any], total: Any, whole: Any) -> list[Any]:
    """shape with its -1 found from the number of elements, which must agree."""
    unknown = [k for k, d in enumerate(shape) if isinstance(d, int) and d == -1]
    rest = _count([d for k, d in enumerate(shape) if k not in unknown])
    if unknown:
        if isinstance(rest, int) and isinstance(total, int):
            if rest == 0 or total % rest:
                raise ValueError(
                    f"{what}: source and result must have equal element counts: {_text(whole)} has {total} elements, "
                    f"which {_text(shape)} does not divide"
                )
            found = total // rest
        elif _same(total, rest) is True:
            found = 1
        else:
            found = _simple(total // rest)
        return [found if k in unknown else d for k, d in enumerate(shape)]
    d = total - rest if isinstance(total, int) and isinstance(rest, int) else _simple(total - rest)
    if isinstance(d, int) and d != 0:
        raise ValueError(
            f"{what}: source and result must have equal element counts: {_text(whole)} has {_words(total)}, "
            f"{_text(shape)} has {_words(rest)}"
        )
    return shape


def _words(count: Any) -> str:
    return f"{count} elements" if isinstance(count, int) else f"({count}) elements"


def _restride(what: str, b: Any, shape: list[Any]) -> list[Any] | None:
    """Strides under which the elements of b, in order, have this shape."""
    if b.given_strides is None:
        return None
    if not shape:
        return []
    narrow = _is_small(b)
    old, strides = list(b.shape), list(b.given_strides)
    kept = [k for k, d in enumerate(old) if not (isinstance(d, int) and d == 1)]
    old, strides = [old[k] for k in kept], [strides[k] for k in kept]
    made: list[Any] = [1] * len(shape)
    v = len(shape) - 1
    k = len(old) - 1
    while k >= 0:
        # a run of dimensions of b that follow each other without a gap
        base, size = strides[k], old[k]
        while k > 0 and _same(strides[k - 1], _times(base, size, narrow)) is True:
            k -= 1
            size = _times(size, old[k], True)
        k -= 1
        taken: Any = 1
        while v >= 0 and (k < 0 or _same(taken, size) is not True or shape[v] == 1):
            made[v] = _times(base, taken, narrow)
            taken = _times(taken, shape[v], True)
            v -= 1
        if k >= 0 and _same(taken, size) is not True:
            state.fail("VIEW_STRIDES", what, b.name, _text(b.shape), _text(b.given_strides), _text(shape))
    return made


# ---- methods of a buffer -------------------------------------------------------------------------------------------


def view(b: Any, *shape: Any, layout: Any = "default", dtype: Any = None) -> Any:
    """The same storage with another shape (one -1 is found), or with another element type."""
    _layout("view", layout)
    if len(shape) == 1 and dtype is None and (dtypes.is_dtype(shape[0]) or isinstance(shape[0], str)):
        shape, dtype = (), shape[0]
    if dtype is not None:
        b = _retyped(b, _core.parse_dtype(dtype))
        if not shape:
            return b
    elif not shape:
        raise TypeError("view: a shape or a dtype is expected")
    extents = _fill("view", _extents("view", shape), _count(b.shape), b.shape)
    return declare(".view", b, extents, _restride("view", b, extents))


def _retyped(b: Any, dtype: str) -> Any:
    old, new = bits_of(b.dtype), bits_of(dtype)
    shape, offset = list(b.shape), b.elem_offset
    strides = None if b.given_strides is None else list(b.given_strides)
    if old == new:
        return declare(".view", b, shape, strides, offset, dtype)
    if not shape:
        raise ValueError(f"view: an element of {b.dtype} has {old} bits, one of {dtype} {new}")
    if strides is not None and _same(strides[-1], 1) is not True:
        raise ValueError(f"view: elements of {b.name} do not follow each other, so they cannot be read as {dtype}")
    narrow = _is_small(b)
    if old % new == 0:
        k = old // new
        shape[-1] = _times(shape[-1], k, narrow)
        offset = _times(offset, k, narrow)
        strides = None if strides is None else [_times(s, k, narrow) for s in strides[:-1]] + [1]
    elif new % old == 0:
        k = new // old
        why = f"as {dtype} needs it"
        shape[-1] = _divided(f"view: the last extent of {b.name}", shape[-1], k, why)
        offset = _divided(f"view: the offset of {b.name}", offset, k, why)
        if strides is not None:
            strides = [_divided(f"view: a stride of {b.name}", s, k, why) for s in strides[:-1]] + [1]
    else:
        raise ValueError(f"view: elements of {old} bits cannot be read as {dtype} of {new} bits")
    return declare(".view", b, shape, strides, offset, dtype)


def _divided(name: str, x: Any, k: int, why: str) -> Any:
    if isinstance(x, int):
        if x % k:
            raise ValueError(f"{name} is {x}, not a multiple of {k}, {why}")
        return x // k
    m, r = _core.divisor(x.ctx, x)
    if r % k or m % k:
        raise ValueError(f"{name} is {x}, not provably a multiple of {k}, {why}")
    return _simple(x // k)


def permute(b: Any, *dims: Any) -> Any:
    """The dimensions in another order."""
    if len(dims) == 1 and isinstance(dims[0], (list, tuple)):
        dims = tuple(dims[0])
    rank = len(b.shape)
    order = [d + rank if isinstance(d, int) and d < 0 else d for d in dims]
    if sorted(order, key=str) != sorted(range(rank), key=str):
        raise ValueError(f"permute: {_text(dims)} is not an order of the {rank} dimensions of {b.name}")
    strides = strides_of(b)
    return declare(".permute", b, [b.shape[d] for d in order], [strides[d] for d in order])


_TOKEN = re.compile(r"\s*([()]|[A-Za-z_]\w*|1)")


def _groups(side: str) -> list[list[str]]:
    groups: list[list[str]] = []
    inside = False
    at = 0
    side = side.strip()
    while at < len(side):
        token = _TOKEN.match(side, at)
        if token is None:
            raise ValueError(f"rearrange: '{side[at:].strip()[:1]}' in '{side}' is neither an axis nor a bracket")
        at = token.end()
        word = token[1]
        if word in "()":
            if inside == (word == "("):
                raise ValueError(f"rearrange: the brackets of '{side}' do not match")
            inside = word == "("
            if inside:
                groups.append([])
        elif inside:
            groups[-1] += [] if word == "1" else [word]
        else:
            groups.append([] if word == "1" else [word])
    if inside:
        raise ValueError(f"rearrange: the brackets of '{side}' do not match")
    return groups


def rearrange(b: Any, pattern: str, /, **sizes: Any) -> Any:
    """Splits, orders and merges dimensions: rearrange("(a b) c -> b a c", b=4)."""
    if not isinstance(pattern, str):
        raise TypeError(f"rearrange: a pattern such as '(a b) -> b a' is needed, got {type(pattern).__name__}")
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: '{pattern}' must have one '->'")
    left, right = map(_groups, sides)
    if len(left) != len(b.shape):
        raise ValueError(f"rearrange: '{sides[0].strip()}' has {len(left)} dimensions, {b.name} has {len(b.shape)}")
    axes, wanted = sum(left, []), sum(right, [])
    for name in (*axes, *wanted):
        if axes.count(name) > 1 or wanted.count(name) > 1:
            raise ValueError(f"rearrange: axis '{name}' stands twice on one side of '{pattern}'")
    if set(axes) != set(wanted):
        names = ", ".join(sorted(set(axes) ^ set(wanted)))
        raise ValueError(f"rearrange: the axes of both sides of '{pattern}' differ: {names}")
    for name in sizes:
        if name not in axes:
            raise ValueError(f"rearrange: a size is given for unknown axis '{name}'")
    extents: dict[str, Any] = {}
    split: list[Any] = []
    for group, d in zip(left, b.shape, strict=True):
        known = [settled(_number(".rearrange", sizes[name])) if name in sizes else -1 for name in group]
        if known.count(-1) > 1:
            unknown = [name for name in group if name not in sizes]
            raise ValueError(f"rearrange: the sizes of {', '.join(unknown)} are not known: give all but one")
        try:
            known = _fill("rearrange", known, d, (d,))
        except ValueError:
            given = " * ".join(f"{name}={'?' if s == -1 else s}" for name, s in zip(group, known, strict=True)) or "1"
            raise ValueError(f"rearrange: an extent of {d} is not {given}") from None
        extents.update(zip(group, known, strict=True))
        split += known
    steps = _Steps(b)
    steps.reshape("rearrange", split)
    steps.permute([axes.index(name) for name in wanted])
    steps.reshape("rearrange", [_count([extents[name] for name in group]) for group in right])
    return declare(".rearrange", b, steps.shape, steps.given_strides)


class _Steps:
    """Views of views that are not declared one by one."""

    def __init__(self, b: Any):
        self.name = b.name
        self.origin = b
        self.shape = list(b.shape)
        self.given_strides = None if b.given_strides is None else list(b.given_strides)

    def reshape(self, what: str, shape: list[Any]) -> None:
        self.given_strides = _restride(what, self, shape)
        self.shape = shape

    def permute(self, order: list[int]) -> None:
        strides = strides_of(self)
        self.shape = [self.shape[d] for d in order]
        self.given_strides = [strides[d] for d in order]
        if all(
            _same(a, b) is True for a, b in zip(self.given_strides, _dense(self.shape, _is_small(self)), strict=True)
        ):
            self.given_strides = None


class _Part:
    """What a subscript behind .sub, .tile(...) or .chunk(...) applies to."""

    __slots__ = ("_buffer", "_extents", "_what")
    _tirx_placed = True  # its faults are its own

    def __init__(self, what: str, buffer: Any):
        self._what = what
        self._buffer = buffer

    def __repr__(self) -> str:
        return f"{self._buffer.name}.{self._what}"


class Sub(_Part):
    """A.sub[2, 4:8, ::4]: an integer takes a dimension away, a slice narrows it."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        b = self._buffer
        return _part("sub", b, list(b.shape), strides_of(b), index)


def _part(what: str, b: Any, shape: list[Any], strides: list[Any], index: Any) -> Any:
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise ValueError(f"{what}: '...' stands twice")
    for k in dots:
        items[k : k + 1] = [slice(None)] * (len(shape) - len(items) + 1)
    if len(items) > len(shape):
        raise ValueError(f"{what}: {len(items)} indices for {len(shape)} dimensions of {b.name}")
    items += [slice(None)] * (len(shape) - len(items))
    narrow = _is_small(b)
    offset = b.elem_offset
    new_shape: list[Any] = []
    new_strides: list[Any] = []
    for k, (item, d, s) in enumerate(zip(items, shape, strides, strict=True)):
        if isinstance(item, slice):
            start, length, step = _slice(what, b, k, item, d)
            new_shape.append(length)
            new_strides.append(_times(s, step, narrow))
        else:
            start = _number(f".{what}", item)
            if isinstance(start, int) and (start < 0 or isinstance(d, int) and start >= d):
                raise ValueError(f"{what}: index {start} is outside dimension {k} of {b.name}, which has extent {d}")
        offset = _plus(offset, _times(settled(start), s, narrow))
    return declare(f".{what}", b, new_shape, new_strides, offset)


def _slice(what: str, b: Any, k: int, item: slice, extent: Any) -> tuple[Any, Any, int]:
    start = 0 if item.start is None else _number(f".{what}", item.start)
    stop = extent if item.stop is None else _number(f".{what}", item.stop)
    step = 1 if item.step is None else _number(f".{what}", item.step)
    shown = f"{start}:{'' if item.stop is None else stop}" + ("" if item.step is None else f":{step}")
    if not isinstance(step, int) or step < 1:
        raise ValueError(f"{what}: the step of {shown} must be a positive constant")
    if item.stop is None and step > 1:
        if isinstance(start, int) and start >= step:
            raise ValueError(f"{what}: {shown} of dimension {k} of {b.name} does not start below {step}")
        name = f"{what}: the extent of dimension {k} of {b.name}"
        return start, _divided(name, extent, step, f"as the step of {shown} needs it"), step
    if isinstance(start, int) and isinstance(stop, int):
        if start < 0 or stop < start or isinstance(extent, int) and stop > extent:
            raise ValueError(f"{what}: {shown} is outside dimension {k} of {b.name}, which has extent {extent}")
        return start, -((start - stop) // step), step
    if _has_effect(start) or _has_effect(stop):
        start, stop = settled(start), settled(stop)
    length = distance(start, stop)
    if isinstance(length, int):
        if length < 0 or isinstance(extent, int) and length > extent:
            raise ValueError(f"{what}: {shown} is outside dimension {k} of {b.name}, which has extent {extent}")
        return start, -(-length // step), step
    length = settled(length)
    if step != 1:
        raise ValueError(f"{what}: the length of {shown} must be constant where a step is given")
    return start, length, 1


class Tile(_Part):
    """A.tile(dim, factors)[picks], A.chunk(spec)[picks]: the split dimensions with a pick for each."""

    __slots__ = ("_rest", "_shape", "_strides")

    def __init__(self, what: str, buffer: Any, shape: list[Any], strides: list[Any], rest: int):
        super().__init__(what, buffer)
        self._shape = shape
        self._strides = strides
        self._rest = rest  # dimensions in front of those that are picked

    def __getitem__(self, picks: Any) -> Any:
        items = picks if isinstance(picks, tuple) else (picks,)
        index = (*[slice(None)] * self._rest, *items)
        return _part(self._what, self._buffer, self._shape, self._strides, index)


def tile(b: Any, dim: int, factors: Any) -> Tile:
    """Splits dimension `dim` into `factors` (one may be -1), outermost first; [picks] then indexes them: an integer
    takes a factor away, a slice keeps it as a dimension, and factors without a pick are kept."""
    rank = len(b.shape)
    if isinstance(dim, bool) or not isinstance(dim, int) or not -rank <= dim < rank:
        raise ValueError(f"tile: {b.name} has no dimension {dim}: it has {rank}")
    dim %= rank
    if not isinstance(factors, (list, tuple)):
        factors = (factors, -1)
    d = b.shape[dim]
    try:
        split = _fill("tile", _extents("tile", tuple(factors)), d, (d,))
    except ValueError as e:
        if "equal element counts" not in str(e):
            raise
        which = f"dimension {dim} of {b.name}, which has extent {d}"
        raise ValueError(f"tile: the factors {_text(factors)} do not make {which}") from None
    narrow = _is_small(b)
    old = strides_of(b)
    inner = [_times(s, old[dim], narrow) for s in _dense(split, narrow)]
    return Tile("tile", b, [*b.shape[:dim], *split, *b.shape[dim + 1 :]], [*old[:dim], *inner, *old[dim + 1 :]], dim)


class Chunk(_Part):
    """A.chunk(spec)[picks]: the part with the chosen number in every dimension."""

    __slots__ = ("_spec",)

    def __init__(self, buffer: Any, spec: tuple):
        super().__init__("chunk", buffer)
        self._spec = spec

    def __getitem__(self, picks: Any) -> Any:
        b, spec = self._buffer, self._spec
        items = picks if isinstance(picks, tuple) else (picks,)
        wanted = [k for k, n in enumerate(spec) if n != 1]
        if len(items) == len(wanted) != len(spec):
            items = tuple(items[wanted.index(k)] if k in wanted else 0 for k in range(len(spec)))
        if len(items) != len(spec):
            raise ValueError(f"chunk: {len(items)} picks for {len(spec)} dimensions of {b.name}")
        narrow = _is_small(b)
        old, shape, offset = strides_of(b), [], b.elem_offset
        for k, (n, pick, d, s) in enumerate(zip(spec, items, b.shape, old, strict=True)):
            size = d // n if isinstance(d, int) else _simple(d // n)
            pick = settled(_number(".chunk", pick))
            if isinstance(pick, int) and not 0 <= pick < n:
                raise ValueError(f"chunk: dimension {k} of {b.name} has {n} chunks, there is no chunk {pick}")
            shape.append(size)
            offset = _plus(offset, _times(pick, _times(size, s, narrow), narrow))
        return declare(".chunk", b, shape, old, offset)


def chunk(b: Any, spec: Any) -> Chunk:
    """Cuts every dimension into as many equal parts as `spec` says; [picks] gives the part with these numbers."""
    spec = tuple(spec) if isinstance(spec, (list, tuple)) else (spec,)
    spec += (1,) * (len(b.shape) - len(spec))
    if len(spec) > len(b.shape):
        raise ValueError(f"chunk: {_text(spec)} has {len(spec)} numbers, {b.name} has {len(b.shape)} dimensions")
    for k, (n, d) in enumerate(zip(spec, b.shape, strict=True)):
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ValueError(f"chunk: the number of chunks must be a positive constant, got {n}")
        _divided(f"chunk: the extent of dimension {k} of {b.name}", d, n, f"so it cannot be cut into {n} equal parts")
    return Chunk(b, spec)


def local(b: Any, *shape: Any, layout: Any = "default") -> Any:
    """What this thread holds, flat or with a shape."""
    _layout("local", layout)
    whole = _count(b.shape)
    if not shape:
        return declare(".local", b, [whole], _restride("local", b, [whole]))
    extents = _extents("local", shape)
    try:
        extents = _fill("local", extents, whole, b.shape)
    except ValueError:
        raise ValueError(
            f"Local view shape {_text(extents)} has {_count(d for d in extents if d != -1)} elements, "
            f"but the buffer has physical storage span {whole} per thread"
        ) from None
    return declare(".local", b, extents, _restride("local", b, extents))


def with_dtype(b: Any, dtype: Any) -> Any:
    """The same shape over the same storage, with elements of another type of the same or a smaller size."""
    new = _core.parse_dtype(dtype)
    if bits_of(new) == bits_of(b.dtype):
        return declare(".with_dtype", b, b.shape, b.given_strides, None, new)
    if bits_of(new) > bits_of(b.dtype):
        raise ValueError(f"with_dtype: {new} is wider than {b.dtype}, the elements of {b.name}: use .view")
    narrow = _is_small(b)
    offset = _times(b.elem_offset, bits_of(b.dtype) // bits_of(new), narrow)
    return declare(".with_dtype", b, b.shape, b.given_strides, offset, new)


def with_allocated_addr(b: Any, addr: Any) -> Any:
    """The same declaration at a column of tensor memory."""
    if isinstance(addr, (list, tuple)):
        if len(addr) != 1:
            raise ValueError(f"with_allocated_addr: one address is expected, got {len(addr)}")
        addr = addr[0]
    column = settled(_number(".with_allocated_addr", addr))
    return declare(".with_allocated_addr", b, b.shape, b.given_strides, None, allocated_addr=column)


def get_flattened_buffer(b: Any) -> Any:
    """The storage as one dimension; of a strided buffer all that lies between its first and its last element."""
    if b.given_strides is None:
        return declare(".get_flattened_buffer", b, [_count(b.shape)])
    span: Any = 1
    for d, s in zip(b.shape, b.given_strides, strict=True):
        span = _plus(span, _times(d - 1, s, _is_small(b)))
    return declare(".get_flattened_buffer", b, [span])


# ---- positions and pointers ----------------------------------------------------------------------------------------


def _indices(what: str, b: Any, indices: Any) -> list[Any]:
    items = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    if len(items) != len(b.shape):
        state.fail("RANK_MISMATCH", b.name, len(b.shape), len(items))
    return [_number(what, i) for i in items]


def elem_offset_of(b: Any, indices: Any) -> Any:
    """Elements from the base pointer to the element at `indices`."""
    offset: Any = b.elem_offset
    narrow = _is_small(b)
    for i, s in zip(_indices(".elem_offset_of", b, indices), strides_of(b), strict=True):
        offset = _plus(offset, _times(i, s, narrow))
    return offset


def offset_of(b: Any, indices: Any) -> list[Any]:
    """The same, in a list."""
    return [elem_offset_of(b, indices)]


_ACCESS = {"r": 1, "w": 2, "rw": 3, "wr": 3}


def access_ptr(
    b: Any, access_mask: Any, ptr_type: Any = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None
) -> Any:
    """A pointer to the element `offset` behind the first one, for reading ("r"), writing ("w") or both ("rw")."""
    p = state.need(".access_ptr")
    mask = _ACCESS.get(access_mask, 0) if isinstance(access_mask, str) else access_mask
    if isinstance(mask, bool) or mask not in (1, 2, 3):
        raise ValueError(f"Unknown access_mask {access_mask}")
    start = _number(".access_ptr", offset)
    whole = _count(b.shape)
    if isinstance(start, int) and isinstance(whole, int):
        end = start + (extent if isinstance(extent, int) else 0)
        if start < 0 or end > whole or start == whole != 0:
            which = f"elements {start} to {end - 1} are" if end > start else f"element {start} is"
            raise ValueError(f"access_ptr: {which} outside {b.name}, which has {whole} elements")
    elem = getattr(ptr_type, "elem", None) or b.dtype
    if content_lanes != 1 and elem == b.dtype:
        elem = f"{b.dtype}x{content_lanes}"
    bits = bits_of(b.dtype)
    nbytes = _times(_plus(b.elem_offset, start), bits, _is_small(b))
    nbytes = nbytes // 8 if isinstance(nbytes, int) else _simple(nbytes // 8)
    return _core.ptr_offset(p.ctx, b.data, nbytes, elem)


def _vector_index(b: Any, begin: Any, lanes: int) -> tuple:
    p = state.need(".vload")
    items = tuple(begin) if isinstance(begin, (list, tuple)) else (begin,)
    if lanes == 1:
        return items
    if not items or len(items) != len(b.shape):
        state.fail("RANK_MISMATCH", b.name, len(b.shape), len(items))
    last = items[-1]
    if isinstance(last, Expr) and last.op in ("RAMP", "BROADCAST"):
        return items
    return (*items[:-1], _core.ramp(p.ctx, last, 1, lanes))


def _lanes(dtype: str) -> int:
    parts = _LANES.match(dtype)
    return int(parts[2]) if parts is not None and dtype not in _BITS else 1


def astype(b: Any, dtype: Any) -> Any:
    """The value of a variable (a buffer of one element) in another dtype."""
    return _core.cast(state.need(".astype").ctx, dtype, b)


def vload(b: Any, begin: Any, dtype: Any = None, predicate: Any = None) -> Any:
    """The elements from `begin` on, as many as `dtype` has lanes; 0 where a lane of `predicate` is false."""
    wanted = b.dtype if dtype is None else _core.parse_dtype(dtype)
    own = _lanes(b.dtype)
    if wanted.removesuffix(f"x{_lanes(wanted)}") != b.dtype.removesuffix(f"x{own}") or _lanes(wanted) % own:
        raise ValueError(f"vload: {wanted} cannot be loaded from {b.name}, whose elements are {b.dtype}: use .view")
    where = _vector_index(b, begin, _lanes(wanted) // own)
    if predicate is None:
        return b[where]
    from tirx.script import derived

    return derived.masked_load(b, where, predicate, what="vload")


def vstore(b: Any, begin: Any, value: Any, predicate: Any = None) -> None:
    """Stores the lanes of `value` from `begin` on, those for which `predicate` holds."""
    p = state.need(".vstore")
    value = _core.as_expr(p.ctx, value)
    state.builder(".vstore")
    where = _vector_index(b, begin, max(_lanes(value.dtype) // _lanes(b.dtype), 1))
    if predicate is None:
        b[where] = value
        return
    from tirx.script import derived

    derived.masked_store(b, where, value, predicate, what="vstore")


_scope = Buffer.scope


def _scope_of(b: Any) -> MemoryScope:
    """The memory space, a str."""
    return MemoryScope(_scope(b))


def _install() -> None:
    for method in (
        view,
        permute,
        rearrange,
        tile,
        chunk,
        local,
        with_dtype,
        with_allocated_addr,
        get_flattened_buffer,
        elem_offset_of,
        offset_of,
        access_ptr,
        astype,
        vload,
        vstore,
    ):
        setattr(Buffer, method.__name__, method)
    Buffer.sub = property(lambda b: Sub("sub", b), doc="A.sub[2, 4:8, ::4]: a part of the buffer")
    Buffer.scope = _scope_of


_install()
