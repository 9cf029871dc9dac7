# SPDX-License-Identifier: Apache-2.0
"""Functions of T that are written in T: parts of vectors, masked access, dp4a, printing of buffers, reductions."""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import buffers, control, cuda, dtypes, ops, state
from tirx.script.ptx import ptx

Expr, Buffer = _core.Expr, _core.Buffer


# ---- parts of vectors ------------------------------------------------------------------------------------------------


def lanes(dtype: str) -> int:
    """How many elements a value of this dtype has."""
    last = dtype.rpartition("x")
    return int(last[2]) if last[0] and last[2].isdigit() else 1


def _expr(what: str, x: Any) -> Expr:
    return _core.as_expr(state.context(what), x)


_ELEMENTWISE = frozenset(op[1] for op in _core.ops() if op[4] in ("ARITH", "COMPARE", "LOGIC", "SHIFT"))


def lane(what: str, x: Any, k: int) -> Any:
    """Element k of a vector; what is made of vectors element by element is made of their elements."""
    ctx = state.context(what)
    e = _core.as_expr(ctx, x)
    if lanes(e.dtype) == 1:
        return e
    if e.op == "RAMP":
        return e.args[0] + e.args[1] * k
    if e.op == "BROADCAST":
        return e.args[0]
    if e.op in _ELEMENTWISE:
        return _core.op(ctx, e.op, *(lane(what, a, k) for a in e.args))
    return _core.shuffle(ctx, [e], [k])


def _half(what: str, args: tuple, high: bool) -> Any:
    """(dtype, vector) or (vector): its lower or higher half."""
    if len(args) not in (1, 2):
        raise TypeError(f"{what} takes a vector, or a dtype and a vector, got {len(args)} argument(s)")
    v = _expr(what, args[-1])
    n = lanes(v.dtype)
    if n % 2:
        raise TypeError(f"{what} needs a vector with an even number of elements, got {v.dtype}")
    made = _core.shuffle(state.context(what), [v], list(range(n // 2, n) if high else range(n // 2)))
    return _checked(what, args[0] if len(args) == 2 else None, made)


def _checked(what: str, dtype: Any, made: Expr) -> Expr:
    if dtype is not None and _core.parse_dtype(dtype) != made.dtype:
        raise TypeError(f"{what} gives {made.dtype} here, not {_core.parse_dtype(dtype)}")
    return made


def vectorlow(*args: Any) -> Any:
    """T.vectorlow(dtype, vector), T.vector_low(vector): the first half."""
    return _half("T.vectorlow", args, False)


def vectorhigh(*args: Any) -> Any:
    """T.vectorhigh(dtype, vector), T.vector_high(vector): the second half."""
    return _half("T.vectorhigh", args, True)


def vectorcombine(*args: Any) -> Any:
    """T.vectorcombine(dtype, a, b), T.vector_combine(a, b): the elements of a, then those of b."""
    what = "T.vectorcombine"
    if len(args) not in (2, 3):
        raise TypeError(f"{what} takes two vectors, with a dtype before them or not, got {len(args)} argument(s)")
    a, b = _expr(what, args[-2]), _expr(what, args[-1])
    if a.dtype != b.dtype:
        raise TypeError(f"{what} needs two vectors of one dtype, got {a.dtype} and {b.dtype}")
    made = _core.shuffle(state.context(what), [a, b], list(range(2 * lanes(a.dtype))))
    return _checked(what, args[0] if len(args) == 3 else None, made)


# ---- masked access ---------------------------------------------------------------------------------------------------


def _masked(what: str, buffer: Any, indices: Any, mask: Any) -> tuple[list[Any], list[Any]]:
    """Of every element: its indices, and whether it is accessed."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"{what} needs a buffer, got {type(buffer).__name__}")
    where = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    if len(where) != len(buffer.shape):
        raise ValueError(f"{what}: {buffer.name} has {len(buffer.shape)} dimension(s), got {len(where)} index(es)")
    m = _expr(what, mask)
    if not m.dtype.startswith("bool"):
        raise TypeError(f"{what} needs a mask of booleans, got {m.dtype}")
    n = max([lanes(_expr(what, i).dtype) for i in where] + [lanes(m.dtype)])
    for x in (*where, m):
        count = lanes(_expr(what, x).dtype)
        if count not in (1, n):
            raise TypeError(f"{what}: {n} elements are indexed, got a mask or an index of {count}")
    return [tuple(lane(what, i, k) for i in where) for k in range(n)], [lane(what, m, k) for k in range(n)]


def masked_load(*args: Any, what: str = "T.masked_load") -> Any:
    """T.masked_load(dtype, buffer, indices, mask[, default]), T.masked_load(buffer, indices, mask[, default]): elements
    whose mask is false are not read and have the default's value, 0 if there is none."""
    dtype = None
    if args and dtypes.is_dtype(args[0]) and not state.is_ir(args[0]):
        dtype, args = args[0], args[1:]
    if len(args) not in (3, 4):
        raise TypeError(f"{what} takes a buffer, indices, a mask and a default, got {len(args)} argument(s)")
    buffer, indices, mask = args[:3]
    where, masks = _masked(what, buffer, indices, mask)
    ctx = state.context(what)
    default = _core.cast(ctx, buffer.dtype, 0) if len(args) == 3 else _expr(what, args[3])
    if lanes(default.dtype) not in (1, len(where)):
        raise TypeError(f"{what}: {len(where)} elements are read, got a default of {lanes(default.dtype)}")
    found = []
    for k, (at, on) in enumerate(zip(where, masks, strict=True)):
        other = _core.cast(ctx, buffer.dtype, lane(what, default, k))
        found.append(_core.select(ctx, on, buffer[at], other, True))
    made = found[0] if len(found) == 1 else _core.shuffle(ctx, found, list(range(len(found))))
    return _checked(what, dtype, made)


def masked_store(buffer: Any, indices: Any, value: Any, mask: Any, *, what: str = "T.masked_store") -> None:
    """T.masked_store(buffer, indices, value, mask): elements whose mask is false are not written."""
    where, masks = _masked(what, buffer, indices, mask)
    v = _expr(what, value)
    if lanes(v.dtype) not in (1, len(where)):
        raise TypeError(f"{what}: {len(where)} elements are written, got {lanes(v.dtype)} value(s)")
    b = state.builder(what)
    if len(where) > 1 and v.op != "VAR":
        v = b.bind("v", v)
    for k, (at, on) in enumerate(zip(where, masks, strict=True)):
        b.open_if(on)
        buffer[at] = lane(what, v, k)
        b.close()


# ---- integers --------------------------------------------------------------------------------------------------------


def dp4a(a: Any, b: Any, c: Any = 0) -> Any:
    """The sum of c and of the products of the four bytes of a and b, each four bytes of int32 or uint32, or an int8x4
    or uint8x4 vector."""
    what = "T.dp4a"
    p = state.need(what)
    words, signs = [], []
    for x in (a, b):
        e = _expr(what, x)
        if e.dtype not in ("int32", "uint32", "int8x4", "uint8x4"):
            raise TypeError(f"{what} needs int32, uint32, int8x4 or uint8x4, got {e.dtype}")
        word = "int32" if e.dtype.startswith("int") else "uint32"
        signs.append("s32" if word == "int32" else "u32")
        words.append(_core.reinterpret(p.ctx, word, e) if "x" in e.dtype else _core.cast(p.ctx, word, e))
    dtype = "uint32" if signs == ["u32", "u32"] else "int32"
    result = buffers.local_scalar(dtype)
    ptx.dp4a[signs[0]][signs[1]](result, *words, _core.cast(p.ctx, dtype, c))
    return _core.as_expr(p.ctx, result)


# ---- pointers --------------------------------------------------------------------------------------------------------


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> Any:
    """The pointer `data`, moved by `offset` elements of `ptype`."""
    if isinstance(data, Buffer):
        data = data.data
    if rw_mask not in (1, 2, 3):
        raise ValueError(f"Unknown access_mask {rw_mask}: 1 reads, 2 writes, 3 does both")
    dtype = _core.parse_dtype(ptype)
    bits = next(b for name, _, _, b, _ in _core.dtypes() if name == dtype.split("x")[0] or name == dtype)
    nbytes = max(bits * lanes(dtype) // 8, 1)
    return ops.ptr_byte_offset(data, offset * nbytes, dtype)


# ---- hints -----------------------------------------------------------------------------------------------------------


def undef(dtype: Any = "float32") -> Any:
    """Any value of the dtype: 0."""
    return _core.cast(state.context("T.undef"), dtype, 0)


def ignore_loop_partition(condition: Any) -> Any:
    """condition: loops are not partitioned."""
    return condition


def assume_aligned(tensor: Any, nbytes: Any = None) -> Any:
    """tensor: alignment is proved or checked, never assumed."""
    return tensor


def selector(var: Any, *predicate: Any) -> Any:
    """The condition under which the one thread that is selected by `var` is active."""
    return filter(var, *predicate)


def filter(var: Any, *predicate: Any) -> Any:
    """T.filter(var, condition), T.filter(var, index), T.filter(var, low, high): the condition under which threads are
    active."""
    ctx = state.context("T.filter")
    if len(predicate) == 2:
        low, high = predicate
        return _core.op(ctx, "AND", _core.op(ctx, "GE", var, low), _core.op(ctx, "LT", var, high))
    if len(predicate) != 1:
        raise TypeError("T.filter takes a variable and a condition, an index, or two bounds")
    e = _core.as_expr(ctx, predicate[0])
    return e if e.dtype == "bool" else _core.op(ctx, "EQ", var, e)


# ---- printing --------------------------------------------------------------------------------------------------------


def print_buffer(ptr: Any, dtype: Any, is_string: Any, is_scalar: Any, ndim: int, *shape: Any) -> None:
    """Prints what `ptr` points to: a text that ends with 0, one number, or an array of `shape`."""
    what = "T.print_buffer"
    text = _core.parse_dtype(dtype)
    if isinstance(ptr, Buffer):
        ptr = ptr.start
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    if len(shape) != ndim:
        raise ValueError(f"{what}: {ndim} dimension(s) are said, got {len(shape)} extent(s)")
    if text == "handle" or "x" in text.lstrip("float8_e"):
        raise TypeError(f"{what} prints numbers, got {text}")
    size = 1
    for d in shape:
        size = size * d
    data = buffers.decl_buffer((size if ndim else 1,), text, data=ptr)
    if is_string:
        i = buffers.local_scalar("int32", 0)
        with control.While(_core.op(state.context(what), "NE", data[i], 0)):
            cuda.printf("%c", ops.cast(data[i], "int32"))
            buffers.assign(i, i + 1)
    elif is_scalar or not ndim:
        _print_number(data[0], text)
    else:
        _print_dimension(data, text, list(shape), 0)
    cuda.printf("\n")


def _print_number(value: Any, dtype: str) -> None:
    if "float" in dtype:
        cuda.printf("%f", ops.cast(value, "float64"))
    elif dtype.endswith("64"):
        cuda.printf("%llu" if dtype.startswith("u") else "%lld", value)
    else:
        wide = "uint32" if dtype.startswith("u") else "int32"
        cuda.printf("%u" if dtype.startswith("u") else "%d", ops.cast(value, wide))


def _print_dimension(data: Any, dtype: str, shape: list[Any], at: Any) -> None:
    cuda.printf("[")
    with control.serial(shape[0]) as i:
        with control.If(i > 0), control.Then():
            cuda.printf(", ")
        if len(shape) == 1:
            _print_number(data[at + i], dtype)
        else:
            _print_dimension(data, dtype, shape[1:], (at + i) * shape[1])
    cuda.printf("]")


# ---- reductions over the threads of a block --------------------------------------------------------------------------


def tvm_thread_allreduce(size: Any, *operands: Any, op: str = "sum") -> None:
    """T.tvm_thread_allreduce(n, *values, condition, *results, *threads, op="sum"): the sum, "max" or "min" of each
    value over the threads for which the condition holds, stored into each thread's results.

    `threads` are the indices that are reduced over: all of the block's, or its first if that has at most 32 values."""
    what = "T.tvm_thread_allreduce"
    n = getattr(size, "value", size)
    if not isinstance(n, int) or not 1 <= n <= len(operands):
        raise TypeError(f"{what} needs the number of values first, a constant")
    if len(operands) < 2 * n + 2:
        raise TypeError(f"{what} takes {n} value(s), a condition, {n} result(s) and the threads")
    p = state.need(what)
    values, condition, results, threads = operands[:n], operands[n], operands[n + 1 : 2 * n + 1], operands[2 * n + 1 :]
    width = _reduced_threads(what, p, len(threads))
    for value, result in zip(values, results, strict=True):
        if not (isinstance(result, Expr) and result.op == "LOAD" or isinstance(result, Buffer)):
            raise TypeError(f"{what} stores into elements and variables, got {type(result).__name__}")
        e = _expr(what, value)
        if condition is not True:
            e = ops.Select(condition, e, _neutral(e.dtype, op))
        if width <= 32:
            reduced = cuda.warp_reduce(e, op, width)
        else:
            scratch = buffers.alloc_shared((width // 32,), e.dtype)
            reduced = cuda.cta_reduce(e, op, width // 32, scratch)
        if isinstance(result, Buffer):
            buffers.assign(result, reduced)
        else:
            buffers.buffer_store(result.buffer, reduced, list(result.args))


def _neutral(dtype: str, op: str) -> Any:
    if op == "sum":
        return ops.cast(0, dtype)
    is_float = "float" in dtype
    if is_float:
        return ops.cast(ops.infinity("float32") * (-1 if op == "max" else 1), dtype)
    return (ops.min_value if op == "max" else ops.max_value)(dtype)


def _reduced_threads(what: str, p: Any, count: int) -> int:
    block = [getattr(d, "value", d) for d in p.block_shape() or ()]
    if not block or not all(isinstance(d, int) for d in block):
        raise ValueError(f"{what} needs a block of constant size: declare T.thread_id([...]) before it")
    total = 1
    for d in block:
        total *= d
    used = [d for d in block if d > 1]
    width = block[0] if count < len(used) and count == 1 else total
    if count < len(used) and (count != 1 or width > 32 or width & (width - 1)):
        raise ValueError(
            f"{what} over {count} of the dimensions of a block of {tuple(block)} is not supported by tirx: "
            "reduce over all of them, or over a first one of 2, 4, 8, 16 or 32"
        )
    if width > 32 and width not in (64, 128, 256, 512, 1024) or width <= 32 and width not in (2, 4, 8, 16, 32):
        raise ValueError(f"{what} needs a power of 2 of threads, at most 1024, got {width}")
    return width
