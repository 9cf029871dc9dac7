# SPDX-License-Identifier: Apache-2.0
"""Functions of T that make expressions: arithmetic, logic, conversions, choice, mathematics, vectors, pointers.

Most come straight from the rows of the core's op table. Plain Python numbers stay Python numbers where that is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import dtypes, state, symbols
from tirx.script.annotations import HandleType

Expr, Buffer = _core.Expr, _core.Buffer


def _row(name: str, spelling: str, operands: int) -> Callable[..., Any]:
    """The function of one row of the op table."""
    short = spelling.rpartition(".")[2]

    def call(*args: Any) -> Any:
        if len(args) != operands:
            raise TypeError(f"{spelling} takes {operands} operand(s), got {len(args)}")
        if state.parser() is None:
            if any(isinstance(a, (symbols.Deferred, Expr)) for a in args):
                return symbols.Operation(spelling, call, args)
            raise RuntimeError(f"{spelling} can only be used inside a kernel")
        return _core.op(state.context(spelling), name, *args)

    call.__name__ = call.__qualname__ = short
    call.__doc__ = f"{spelling}: row {name} of the op table."
    return call


def from_table() -> dict[str, Callable[..., Any]]:
    """T.exp, T.sqrt, ...: rows spelled T.x that are no statements and have a rule of their own."""
    found = {}
    for _, name, spelling, operands, rule, props in _core.ops():
        if (
            spelling.startswith("T.")
            and spelling.count(".") == 1
            and rule not in ("NONE", "VOID", "PTR")
            and operands > 0
        ):
            if not props & (32 | 128):
                found[spelling[2:]] = _row(name, spelling, operands)
    return found


def _binary(name: str, row: str, python: Callable[[Any, Any], Any] | None = None) -> Callable[[Any, Any], Any]:
    spelling = f"T.{name}"
    make = _row(row, spelling, 2)

    def call(a: Any, b: Any) -> Any:
        if python is not None and type(a) in (int, bool) and type(b) in (int, bool):
            return python(a, b)
        return make(a, b)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{spelling}(a, b): row {row} of the op table."
    return call


def _ceildiv(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return -(-a // b)


def _truncdiv(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _floordiv(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return a // b


def _floormod(a: int, b: int) -> int:
    if b == 0:
        raise ValueError("division by zero")
    return a % b


# The printed form of operators that the constructors would fold: T.Add(1, 2) is that node, not 3.
_NODES = {
    "Add": "ADD",
    "Sub": "SUB",
    "Mul": "MUL",
    "Div": "DIV",
    "Mod": "MOD",
    "FloorDiv": "FLOORDIV",
    "FloorMod": "FLOORMOD",
    "Min": "MIN",
    "Max": "MAX",
    "EQ": "EQ",
    "NE": "NE",
    "LT": "LT",
    "LE": "LE",
    "GT": "GT",
    "GE": "GE",
    "And": "AND",
    "Or": "OR",
    "Not": "NOT",
    "Neg": "NEG",
    "LShift": "SHL",
    "RShift": "SHR",
    "BitwiseAnd": "BAND",
    "BitwiseOr": "BOR",
    "BitwiseXor": "BXOR",
    "BitwiseNot": "BNOT",
}
_COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def _node(name: str, row: str) -> Callable[..., Any]:
    """The constructor of one node: operands of one dtype (a plain number takes the other's), and nothing is folded."""
    count = 1 if row in ("NOT", "NEG", "BNOT") else 2

    def call(*args: Any) -> Any:
        if len(args) != count:
            raise TypeError(f"T.{name} takes {count} operand(s), got {len(args)}")
        ctx = state.context(f"T.{name}")
        operands = [_core.as_expr(ctx, a) for a in args]
        typed = [a for a in operands if not a.weak]
        dtype = typed[0].dtype if typed else _core.promote(operands[0].dtype, operands[-1].dtype)
        if any(a.dtype != dtype for a in typed):
            state.fail("NODE_DTYPES", name, "operands of one dtype", " and ".join(a.dtype for a in operands))
        if row in ("AND", "OR", "NOT") and not dtype.startswith("bool"):
            state.fail("NODE_DTYPES", name, "booleans", dtype)
        operands = [_core.as_expr(ctx, a, dtype) if a.weak else a for a in operands]
        lanes = dtype.rpartition("x")[2] if "x" in dtype else ""
        result = (
            f"boolx{lanes}" if row in _COMPARISONS and lanes.isdigit() else "bool" if row in _COMPARISONS else dtype
        )
        return _core.make(ctx, row, result, tuple(operands))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The node {row}, as it stands."
    return call


def functions_of_two() -> dict[str, Callable[..., Any]]:
    """The function forms of operators, and the node constructors of the print form."""
    found = {
        "ceildiv": _binary("ceildiv", "CEILDIV", _ceildiv),
        "floordiv": _binary("floordiv", "FLOORDIV", _floordiv),
        "floormod": _binary("floormod", "FLOORMOD", _floormod),
        "truncdiv": _binary("truncdiv", "DIV", _truncdiv),
        "truncmod": _binary("truncmod", "MOD", lambda a, b: a - b * _truncdiv(a, b)),
        "min": _binary("min", "MIN", min),
        "max": _binary("max", "MAX", max),
    }
    for name, row in {
        "shift_left": "SHL",
        "shift_right": "SHR",
        "bitwise_and": "BAND",
        "bitwise_or": "BOR",
        "bitwise_xor": "BXOR",
    }.items():
        found[name] = _binary(name, row)
    for name, row in {"bitwise_not": "BNOT", "logical_not": "NOT"}.items():
        found[name] = _row(row, f"T.{name}", 1)
    for name, row in _NODES.items():
        found[name] = _node(name, row)
    return found


def logical_and(*values: Any) -> Any:
    """All of the conditions; the later ones are evaluated only if needed."""
    return _fold("AND", "T.logical_and", values)


def logical_or(*values: Any) -> Any:
    """One of the conditions; the later ones are evaluated only if needed."""
    return _fold("OR", "T.logical_or", values)


def _fold(row: str, what: str, values: tuple) -> Any:
    ctx = state.context(what)
    if not values:
        raise TypeError(f"{what} takes at least one operand")
    result = values[0]
    for v in values[1:]:
        result = _core.op(ctx, row, result, v)
    return result


# ---- conversions and choice ----------------------------------------------------------------------------------------


def cast(value: Any, dtype: Any = None, ty: Any = None) -> Any:
    """value as dtype: floats truncate toward zero and saturate, integers wrap."""
    if dtype is not None and ty is not None:
        raise TypeError("cast accepts only one of dtype and ty")
    if dtype is None and ty is None:
        raise TypeError("cast requires a dtype or ty argument")
    if dtypes.is_dtype(value) and not isinstance(value, Expr):
        value, dtype = dtype, value  # the print form has the dtype first
    return _core.cast(state.context("T.cast"), dtype if dtype is not None else ty, value)


def Cast(dtype: Any, value: Any) -> Any:
    """The print form of a conversion."""
    return _core.cast(state.context("T.Cast"), dtype, value)


def reinterpret(*args: Any, ty: Any = None, dtype: Any = None) -> Any:
    """T.reinterpret(dtype, x) or T.reinterpret(x, ty=dtype): the same bits as another dtype."""
    given = ty if ty is not None else dtype
    if given is not None:
        if len(args) != 1:
            raise TypeError("T.reinterpret(x, ty=...) takes one value")
        value = args[0]
    elif len(args) == 2:
        given, value = args if dtypes.is_dtype(args[0]) or isinstance(args[0], HandleType) else args[::-1]
    else:
        raise TypeError("T.reinterpret takes a dtype and a value")
    ctx = state.context("T.reinterpret")
    if isinstance(given, HandleType) and given.elem is not None:
        return _core.ptr_offset(ctx, _core.reinterpret(ctx, "handle", value), 0, given.elem)
    return _core.reinterpret(ctx, given, value)


def Select(condition: Any, true_value: Any, false_value: Any) -> Any:
    """Both sides are evaluated."""
    return _core.select(state.context("T.Select"), condition, true_value, false_value, False)


def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """Only the side that is taken is evaluated."""
    return _core.select(state.context("T.if_then_else"), cond, t, f, True)


def Let(expr: Any, where: dict[Any, Any]) -> Any:
    """expr with variables bound to values: T.Let(v + 1, where={v: x})."""
    p = state.need("T.Let")
    if not isinstance(where, dict):
        raise TypeError(f"T.Let takes where={{variable: value}}, got {type(where).__name__}")
    for variable, value in reversed(where.items()):
        p.forget_fresh(variable)
        expr = _core.let(p.ctx, variable, value, expr, True)
    return expr


# ---- literals ------------------------------------------------------------------------------------------------------


def _limit(name: str, make: Callable[[str], Any]) -> Callable[..., Any]:
    def call(dtype: Any = None, *, ty: Any = None) -> Any:
        text = _core.parse_dtype(dtype if dtype is not None else ty)
        value = make(text)
        p = state.parser()
        return symbols.Literal(text, value) if p is None else _core.literal(p.ctx, text, value)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"T.{name}(dtype)"
    return call


def _int_limits(text: str) -> tuple[int, int] | None:
    for name, _, cls, bits, _ in _core.dtypes():
        if name == text and cls in "IU":
            return (-(1 << bits - 1), (1 << bits - 1) - 1) if cls == "I" else (0, (1 << bits) - 1)
    return (0, 1) if text == "bool" else None


def _largest(text: str) -> Any:
    limits = _int_limits(text)
    return limits[1] if limits else _float_limit(text)


def _smallest(text: str) -> Any:
    limits = _int_limits(text)
    return limits[0] if limits else -_float_limit(text)


def _float_limit(text: str) -> float:
    bits = next(b for name, _, _, b, _ in _core.dtypes() if name == text)
    if bits > 16:
        return {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}[text]
    values = (_core.decode(text, k) for k in range(1 << bits))
    return max(v for v in values if v == v and v != float("inf"))


infinity = _limit("infinity", lambda text: "inf")
max_value = _limit("max_value", _largest)
min_value = _limit("min_value", _smallest)


def IntImm(dtype: Any, value: int) -> Any:
    """An integer constant of a dtype."""
    return _core.literal(state.context("T.IntImm"), dtype, value)


def FloatImm(dtype: Any, value: float) -> Any:
    """A float constant of a dtype."""
    return _core.literal(state.context("T.FloatImm"), dtype, value)


def StringImm(value: str) -> Any:
    """A text constant."""
    return _core.string(state.context("T.StringImm"), value)


# ---- vectors -------------------------------------------------------------------------------------------------------


def Ramp(base: Any, stride: Any, lanes: int) -> Any:
    """A vector base, base + stride, ... of `lanes` values."""
    return _core.ramp(state.context("T.Ramp"), base, stride, lanes)


def Broadcast(value: Any, lanes: int) -> Any:
    """A vector of `lanes` equal values."""
    return _core.broadcast(state.context("T.Broadcast"), value, lanes)


def Shuffle(vectors: Any, indices: Any) -> Any:
    return _core.shuffle(state.context("T.Shuffle"), list(vectors), [int(i) for i in indices])


def make_vector(*values: Any) -> Any:
    """A vector of scalars of one dtype."""
    ctx = state.context("T.make_vector")
    if not values:
        raise TypeError("T.make_vector takes at least one value")
    lanes = [_core.as_expr(ctx, v) for v in values]
    dtype = next((e.dtype for e in lanes if not e.weak), lanes[0].dtype)
    lanes = [_core.as_expr(ctx, e, dtype) if e.weak else e for e in lanes]
    if any(e.dtype != dtype for e in lanes):
        raise TypeError(f"T.make_vector takes scalars of one dtype, got {', '.join(e.dtype for e in lanes)}")
    return _core.make(ctx, "VECTOR", f"{dtype}x{len(lanes)}", tuple(lanes))


# ---- hints ---------------------------------------------------------------------------------------------------------


def fabs(x: Any) -> Any:
    """The absolute value; integers become float32."""
    ctx = state.context("T.fabs")
    e = _core.as_expr(ctx, x)
    return _core.op(ctx, "ABS", e if "float" in e.dtype else _core.cast(ctx, "float32", e))


def nearbyint(x: Any) -> Any:
    """The nearest whole number, ties to even."""
    return _core.op(state.context("T.nearbyint"), "ROUND", x)


def assume(condition: Any) -> Any:
    """A hint without effect."""
    state.context("T.assume")
    return None


# ---- pointers ------------------------------------------------------------------------------------------------------


def address_of(x: Any) -> Any:
    """Pointer to an element, or to the first one of a buffer."""
    return _core.address_of(state.context("T.address_of"), x)


def ptr_byte_offset(ptr: Any, nbytes: Any, dtype: Any = None, *, ty: Any = None) -> Any:
    """ptr moved by bytes, as a pointer to dtype."""
    given = dtype if dtype is not None else ty
    if isinstance(given, HandleType):
        given = given.elem
    if given is None:
        given = getattr(ptr, "elem", None) or "void"
    return _core.ptr_offset(state.context("T.ptr_byte_offset"), ptr, nbytes, given)


def handle_add_byte_offset(ptr: Any, nbytes: Any) -> Any:
    """The pointer, moved by a number of bytes."""
    return _core.ptr_offset(
        state.context("T.handle_add_byte_offset"), ptr, nbytes, getattr(ptr, "elem", None) or "void"
    )


# ---- calls ---------------------------------------------------------------------------------------------------------


def _extern(row: str, what: str, args: tuple, ty: Any, source: str | None = None) -> Any:
    """Sorts a dtype in first position (g1) from one behind (g2)."""
    if ty is None and len(args) >= 2 and dtypes.is_dtype(args[0]) and not isinstance(args[1], _core.Expr):
        ty, args = args[0], args[1:]
    if not args or not isinstance(args[0], str):
        raise TypeError(f"{what} needs the name of a function" + (f", got {args[0]!r}" if args else ""))
    if not args[0].replace("::", "_").isidentifier():
        raise ValueError(f"{what} needs the name of a function, got {args[0]!r}")
    return effect(what, row, "void" if ty is None else ty, args[1:], call=(args[0], source))


def call_extern(*args: Any, ty: Any = None, dtype: Any = None) -> Any:
    """T.call_extern(dtype, "f", *args) or T.call_extern("f", *args, ty=dtype)."""
    return _extern("CALL_EXTERN", "T.call_extern", args, ty if ty is not None else dtype)


def call_pure_extern(*args: Any, ty: Any = None, dtype: Any = None) -> Any:
    return _extern("CALL_PURE_EXTERN", "T.call_pure_extern", args, ty if ty is not None else dtype)


def call_packed(name: str, *args: Any) -> Any:
    """Calls a registered Python function from the host zone, with buffers, numbers and strings; gives its int32."""
    if state.need("T.call_packed").builder.zone == "device":
        state.fail("PACKED_IN_DEVICE", name)
    operands = [x.start if isinstance(x, _core.Buffer) and not x.is_cell else x for x in args]
    return effect("T.call_packed", "CALL_PACKED", "int32", operands, call=(name, None))


def tvm_struct_get(argument: Any, index: int, field: int, dtype: Any) -> Any:
    """A field of a call's argument, as the host half of a lowered kernel prints it."""
    return _core.make(state.context("T.tvm_struct_get"), "STRUCT_GET", dtype, (argument, index, field))


def call_intrin(*args: Any, ty: Any = None, dtype: Any = None) -> Any:
    """T.call_intrin(dtype, "op", *args): an op of the table by name."""
    given = ty if ty is not None else dtype
    if given is None and len(args) >= 2 and dtypes.is_dtype(args[0]):
        given, args = args[0], args[1:]
    name = str(args[0]).rpartition(".")[2] if args else ""
    if name.isupper() and given is not None:  # printed form: the row as it stands
        return _core.make(state.context("T.call_intrin"), name, given, tuple(args[1:]))
    rows = {row[2].rpartition(".")[2]: row for row in _core.ops() if row[2].startswith("T.")}
    rows.update({row[1].lower(): row for row in _core.ops()})
    row = rows.get(name)
    if row is None:
        raise ValueError(f"T.call_intrin: unknown operation {args[0] if args else None!r}")
    if row[4] == "NONE":
        return effect("T.call_intrin", row[1], given, args[1:])
    result = _core.op(state.context("T.call_intrin"), row[1], *args[1:])
    return emit(result) if row[4] == "VOID" else result


class Receipt:
    """What a call without value gives: it was emitted when it was made, and T.evaluate of it does nothing."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<call without value>"


RECEIPT = Receipt()


def emit(e: Any) -> Receipt:
    """Emits an effect without value at once."""
    state.builder("an effect").evaluate(e)
    return RECEIPT


def effect(
    what: str,
    row: str,
    dtype: Any,
    args: Any = (),
    *,
    i: int = 0,
    call: tuple[str, str | None] | None = None,
    statement: bool = False,
) -> Any:
    """A call with an effect. Without value it is emitted now. With one it is an expression; in plain Python code, where
    nobody would emit an expression that is dropped, it is bound to a variable first."""
    p = state.need(what)
    made = _core.make(p.ctx, row, dtype, tuple(args), i=i, call=call)
    if made.dtype == "void" or statement:
        return emit(made)
    if p.helper_depth:
        return p.bind_droppable(what, made)
    return made
