# SPDX-License-Identifier: Apache-2.0
"""Expressions: one function per node of Python's ast.

Everything is evaluated by Python over the names of the scope; an operation with an IR value in it makes IR. Before
such an operation the context is told where it stands, so that whatever the core reports points at the right
characters. What needs Python's own scoping (lambdas, comprehensions, f-strings) is compiled and evaluated as it
stands, over the same names.

Operands are evaluated in Python's order. A value that depends on memory and is waiting while a later operand emits
statements (an inline function) is bound before those, so that it keeps the value it had.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

from tirx import _core
from tirx.script import libraries, symbols
from tirx.script.ops import Receipt
from tirx.script.recovery import Followed
from tirx.script.scope import MISSING, Failed, Lost, Names

Expr, Buffer, Region = _core.Expr, _core.Buffer, _core.Region
IR = (Expr, Buffer)

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}
# Bits of an integer, and items of a sequence, that an expression may make: what is larger is a slip, and would hold up
# or exhaust the interpreter.
_MOST_BITS = 1 << 20
_MOST_ITEMS = 1 << 24
_INPLACE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.BitAnd: operator.iand,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
}
_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ROWS = {ast.Eq: "EQ", ast.NotEq: "NE", ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE"}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PLAIN_TYPES = {int, float, bool, str, FunctionType, ModuleType, type, type(None), Expr, Buffer, Region}
_IMPURE = {op[1] for op in _core.ops() if not op[5] & 8} - {"VAR"}  # what depends on memory or has an effect

_MANY_NODES = 4096
_MOST_SPREAD = 256  # elements of one starred buffer


class MetaVar:
    """T.meta_var(x): an assignment binds x itself and makes no IR variable."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def is_impure(x: Any) -> bool:
    """Whether evaluating x later could give another value."""
    if isinstance(x, Buffer):
        return True
    if not isinstance(x, Expr):
        return False
    todo, seen = [x], 0
    while todo:
        e = todo.pop()
        seen += 1
        if e.op in _IMPURE or seen > _MANY_NODES:
            return True
        todo.extend(e.args)
    return False


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) or hasattr(x, "__tirx_expr__") or _is_numpy_scalar(x)


def _is_numpy_scalar(x: Any) -> bool:
    return type(x).__module__ == "numpy" and getattr(x, "ndim", 1) == 0 and hasattr(x, "item")


_LEAVES = frozenset((ast.Name, ast.Constant))  # what most operands are


def _has_call(node: ast.AST) -> bool:
    """Whether the expression holds a call; found once per node."""
    try:
        return node._tirx_call  # type: ignore[attr-defined]
    except AttributeError:
        kind = node.__class__
        found = kind is ast.Call or (kind not in _LEAVES and any(map(_has_call, ast.iter_child_nodes(node))))
        node._tirx_call = found  # type: ignore[attr-defined]
        return found


# expressions that a kernel may not hold: name, what to write instead
_REFUSED: dict[type, tuple[str, str | None]] = {
    ast.NamedExpr: ("':='", "assign in a statement of its own, before this one"),
    ast.Yield: ("yield", None),
    ast.YieldFrom: ("yield from", None),
    ast.Await: ("await", None),
}


class Expressions:
    """The part of the Parser that evaluates."""

    ctx: Any
    builder: Any
    at: Callable[[ast.AST], int]
    scope: Any
    emitted: int
    operands: list[list[Any]]

    def eval(self, node: ast.expr) -> Any:
        try:
            visit = _EXPRESSIONS[node.__class__]
        except KeyError:
            self.refuse_expression(node)
        return visit(self, node)

    def refuse_expression(self, node: ast.expr) -> None:
        self.at(node)
        name, instead = _REFUSED.get(node.__class__, (type(node).__name__, None))
        self.ctx.fail("UNSUPPORTED_EXPRESSION", name, help=instead)

    def value(self, node: ast.expr) -> Any:
        """The same, where a meta_var means what it holds."""
        x = self.eval(node)
        return x.value if x.__class__ is MetaVar else x

    # ---- names and literals ----------------------------------------------------------------------------------------

    def constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bytes, complex)):
            self.at(node)
            self.ctx.fail("UNSUPPORTED_EXPRESSION", f"{type(node.value).__name__} literal")
        return node.value

    def name(self, node: ast.Name) -> Any:
        value = self.scope.names.get(node.id, MISSING)
        if value is MISSING:
            value = self.scope.get(node.id)
        cls = value.__class__
        if cls in _PLAIN_TYPES:
            return value
        if value is MISSING or cls is Lost or cls is Failed:
            self.at(node)
            self.undefined(node.id, value)
        return self.captured(value)

    def read(self, name: str, value: Any) -> Any:
        """A name in code that Python evaluates as it stands."""
        if value.__class__ in (Lost, Failed):
            self.undefined(name, value)
        return self.captured(value)

    def captured(self, value: Any) -> Any:
        """A Python value as the kernel sees it: symbols made outside become the kernel's, NumPy scalars numbers."""
        if isinstance(value, symbols.Deferred):
            return value.__tirx_expr__(self.ctx)
        if _is_numpy_scalar(value):
            return value.item()
        if isinstance(value, TypeVar):  # def f[n](...)
            return self.type_parameter(value)
        return value

    def undefined(self, name: str, value: Any) -> None:
        if value.__class__ is Failed:
            raise Followed
        if value.__class__ is Lost:
            self.ctx.fail("UNDEFINED_NAME", name, value.why)
        names = (self.scope.visible() | set(dir(builtins))) - {name}  # a name around may not be bound yet
        import difflib

        close = difflib.get_close_matches(name, names, 1, 0.75)
        help = self.called_directly(name) or (f"did you mean '{close[0]}'?" if close else None)
        self.ctx.fail("UNDEFINED_NAME", name, "", help=help)

    def called_directly(self, name: str) -> str | None:
        """A hint for the kernel's own name, and for those of functions that stand in the same module."""
        module = self.scope.get("cls")
        members = getattr(getattr(module, "_tirx_module", None), "members", {})
        if name in members:
            return f"a function of the same module is called by the class: {module._tirx_module.name}.{name}(...)"
        if name == self.function_name:
            return (
                "a kernel cannot call itself: use a loop, or an @T.inline function that ends while the kernel is built"
            )
        return None

    def attribute(self, node: ast.Attribute) -> Any:
        owner = self.value(node.value)
        if isinstance(owner, IR) or hasattr(owner.__class__, "_tirx_placed"):
            self.at(node)
        try:
            value = getattr(owner, self.private(node.attr) if node.attr[:2] == "__" else node.attr)
            return value if value.__class__ in _PLAIN_TYPES else self.captured(value)
        except AttributeError as e:
            self.at(node)
            if owner is None and isinstance(node.value, ast.Name):
                self.absent(node.value.id)
            from tirx.script import later

            text = str(e)
            self.ctx.fail("NO_ATTRIBUTE", text, help=later.suggestion(owner, node.attr))

    def private(self, name: str) -> str:
        """__name in a method of a class C is _C__name, as in Python; T.cuda knows its names with and without."""
        owner = None if self.inlined is None else self.inlined.function.owner
        return name if owner is None or name[-2:] == "__" else f"_{owner}{name}"

    def absent(self, name: str) -> None:
        self.ctx.fail("ABSENT_OPTIONAL", name, help=f"guard it: if {name} is not None")

    def tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self.elements(node.elts))

    def list(self, node: ast.List) -> list:
        return self.note_made(self.elements(node.elts))

    def set(self, node: ast.Set) -> set:
        return self.note_made(set(self.elements(node.elts)))

    def elements(self, nodes: list[ast.expr], cells: bool = False) -> list:
        if len(nodes) > 1 and any(map(_has_call, nodes[1:])):
            return self.in_order(nodes, self.eval, cells, cells)
        found: list[Any] = []
        for n in nodes:
            if n.__class__ is ast.Starred:
                found.extend(self.spread(n))  # type: ignore[arg-type]
            else:
                found.append(self.eval(n))
        return found

    def in_order(self, nodes: list[ast.expr], visit: Callable[[Any], Any], cells: bool, places: bool) -> list:
        """Values of several expressions, each as it is before the later ones are evaluated. With `cells` that goes for
        variables, too, with `places` for elements; else they stand for themselves and may be stored into."""
        slots: list[list[Any]] = []
        waiting = len(self.operands)
        try:
            for n in nodes:
                for x in self.spread(n) if n.__class__ is ast.Starred else (visit(n),):  # type: ignore[arg-type]
                    slots.append([x])
                    if (
                        x.__class__ is Expr
                        and (places or x.op != "LOAD")
                        or cells
                        and x.__class__ is Buffer
                        and x.is_cell
                    ):
                        if not self.is_fresh(x):
                            self.operands.append(slots[-1])
        finally:
            del self.operands[waiting:]
        return [slot[0] for slot in slots]

    def spread(self, node: ast.Starred) -> Any:
        """The values of *x. Of a buffer, or a region of one, its elements in row-major order: each is a place that can
        be written to."""
        x = self.value(node.value)
        if x.__class__ is Buffer:
            start, extent, x = None, x.shape, x
        elif x.__class__ is Region:
            start, extent, x = x.start, x.extent, x.buffer
        else:
            if isinstance(x, Expr) or not hasattr(x, "__iter__"):
                self.at(node)
                self.ctx.fail("UNPACK_VALUE", describe(x))
            return x
        self.at(node)
        lengths = [e if isinstance(e, int) else e.value if e.op == "INT" else None for e in extent]
        if None in lengths or math.prod(lengths) > _MOST_SPREAD:
            what = "has no constant length" if None in lengths else f"has more than {_MOST_SPREAD} elements"
            self.ctx.fail("BAD_CALL", f"'*' of buffer {x.name}, which {what}", help="spread a part: *x[0:64]")
        return [
            x[i if start is None else tuple(map(operator.add, start, i))]
            for i in itertools.product(*map(range, lengths))
        ]

    def dict(self, node: ast.Dict) -> dict:
        found: dict[Any, Any] = {}
        for k, v in zip(node.keys, node.values, strict=False):
            if k is None:
                found.update(self.value(v))
            else:
                found[self.value(k)] = self.value(v)
        return self.note_made(found)

    def starred(self, node: ast.Starred) -> Any:
        self.at(node)
        self.ctx.fail("UNSUPPORTED_EXPRESSION", "Starred")

    # ---- operators -------------------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp) -> Any:
        # a + b + c + ... is a tree that leans to the left; it is walked without recursion
        chain = [node]
        while chain[-1].left.__class__ is ast.BinOp:
            chain.append(chain[-1].left)  # type: ignore[arg-type]
        left = self.value(chain[-1].left)
        for n in reversed(chain):
            left, right = self.beside(left, n.right)
            left = self.operate(n, _BINARY[n.op.__class__], left, right)
        return self.note_made(left) if left.__class__ in (list, dict, set) else left

    def operate(self, node: Any, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        self.at(node)
        if node.op.__class__ in _GROWING:
            why = _too_large(node.op.__class__, left, right)
            if why:
                self.ctx.fail("BAD_PYTHON_OPERANDS", _SIGNS[node.op.__class__], _describe(left), _describe(right), why)
        try:
            return function(left, right)
        except SyntaxError:
            if node.__class__ is not ast.BinOp:
                raise
            placed = self.placed(left, node.left), self.placed(right, node.right)
            self.at(node)
            return function(*placed)
        except (TypeError, ZeroDivisionError) as e:
            for x in (left, right):
                if isinstance(x, IR):
                    self.ctx.fail("BAD_OPERAND", _SIGNS[node.op.__class__], _describe(x))
            self.ctx.fail("BAD_PYTHON_OPERANDS", _SIGNS[node.op.__class__], _describe(left), _describe(right), str(e))

    def placed(self, x: Any, node: ast.expr) -> Any:
        """A plain number as an operand that knows its place; only to tell better what the core has refused."""
        if x.__class__ not in (int, float):
            return x
        self.at(node)
        return _core.as_expr(self.ctx, x)

    def settle_operands(self) -> None:
        """Binds what waits in outer expressions and depends on memory; called before statements are emitted."""
        for slot in self.operands:
            if is_impure(slot[0]):
                slot[0] = self.builder.bind("v", slot[0])
                self.emitted += 1

    def unary(self, node: ast.UnaryOp) -> Any:
        x = self.value(node.operand)
        kind = node.op.__class__
        if kind is ast.Not:
            if isinstance(x, IR):
                self.need_bool(node.operand, "not", x)
                self.at(node)
                return _core.op(self.ctx, "NOT", x)
            return not x
        self.at(node)
        if kind is ast.USub:
            return -x
        if kind is ast.Invert:
            return ~x
        return +x if not isinstance(x, IR) else x

    def compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        if len(node.ops) == 1:
            right = self.beside(left, node.comparators[0])
            return self.compare_two(node, node.ops[0], right[0], right[1])
        return self.compare_chain(node, left)

    def beside(self, left: Any, node: ast.expr) -> list[Any]:
        """[left, value of node]; left is bound first if evaluating node emits statements."""
        if not (isinstance(left, IR) and _has_call(node)):
            return [left, self.value(node)]
        slot = [left]
        self.operands.append(slot)
        try:
            slot.append(self.value(node))
        finally:
            self.operands.pop()
        return slot

    def compare_chain(self, node: ast.Compare, left: Any) -> Any:
        """a < b < c: each side is evaluated once, and c only if a < b."""
        parts: list[Any] = []
        lets: dict[int, tuple[Any, Any]] = {}
        last = len(node.ops) - 1
        for k, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=False)):
            before = self.emitted
            left, right = self.beside(left, right_node)
            if k and self.emitted != before:
                self.at(right_node)
                self.ctx.fail("LAZY_EMITS", "a comparison chain")
            if k < last and is_impure(right):
                self.at(right_node)
                lets[k] = (_core.var(self.ctx, "let", "t", right.dtype), right)
                right = lets[k][0]
            parts.append(self.compare_two(node, op, left, right))
            if not isinstance(parts[-1], IR) and not parts[-1]:
                break
            left = right
        self.at(node)
        result = parts[-1]
        for k in range(len(parts) - 1, -1, -1):
            if k in lets and isinstance(result, IR):
                result = _core.let(self.ctx, *lets[k], result)
            if k and isinstance(parts[k - 1], IR):
                result = _core.op(self.ctx, "AND", parts[k - 1], result)
        return result

    def compare_two(self, node: ast.Compare, op: ast.cmpop, left: Any, right: Any) -> Any:
        kind = op.__class__
        function = _COMPARE.get(kind)
        runtime = isinstance(left, IR) or isinstance(right, IR)
        if function is not None:
            if runtime and not (_comparable(left) and _comparable(right)):
                self.at(node)
                other = right if isinstance(left, IR) else left
                self.ctx.fail("COMPARE_KINDS", _SIGNS[kind], _describe(other))
            self.at(node)
            if runtime and not isinstance(left, IR):
                # Python would ask the right side, with the sign turned round
                return _core.op(self.ctx, _ROWS[kind], left, right)
            try:
                return function(left, right)
            except SyntaxError:
                if len(node.ops) != 1:
                    raise
                placed = self.placed(right, node.comparators[0])
                self.at(node)
                return function(left, placed)
            except TypeError as e:
                self.ctx.fail("BAD_PYTHON_OPERANDS", _SIGNS[kind], _describe(left), _describe(right), str(e))
        if kind in (ast.Is, ast.IsNot):
            if runtime and left is not None and right is not None:
                self.at(node)
                self.ctx.fail("IDENTITY_AT_RUN_TIME", _SIGNS[kind])
            return (left is right) == (kind is ast.Is)
        if runtime:
            self.at(node)
            self.ctx.fail("MEMBER_AT_RUN_TIME", _SIGNS[kind])
        self.at(node)
        return (left in right) == (kind is ast.In)

    def logic(self, node: ast.BoolOp) -> Any:
        is_and = node.op.__class__ is ast.And
        row = "AND" if is_and else "OR"
        result: Any = MISSING
        for k, operand in enumerate(node.values):
            before = self.emitted
            x = self.value(operand)
            if k and isinstance(result, IR) and self.emitted != before:
                self.at(operand)
                self.ctx.fail("LAZY_EMITS", f"'{row.lower()}'")
            if isinstance(x, IR):
                self.need_bool(operand, row.lower(), x)
                self.at(node)
                result = _core.op(self.ctx, row, result, x) if isinstance(result, IR) else x
                continue
            if isinstance(result, IR):
                if not isinstance(x, (bool, int, float)):
                    self.at(operand)
                    self.ctx.fail("LOGIC_OPERAND", row.lower(), _describe(x))
                self.at(node)
                result = _core.op(self.ctx, row, result, x)
                if bool(x) != is_and:
                    return result  # the rest cannot be reached
                continue
            result = x
            if bool(x) != is_and:
                return x
        return result

    def need_bool(self, node: ast.expr, sign: str, x: Any) -> None:
        if not x.dtype.startswith("bool"):
            self.at(node)
            self.ctx.fail("LOGIC_OPERAND", sign, describe(x))

    def conditional(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        if not isinstance(test, IR):
            return self.value(node.body if test else node.orelse)
        before = self.emitted
        yes, no = self.value(node.body), self.value(node.orelse)
        if self.emitted != before:
            self.at(node)
            self.ctx.fail("LAZY_EMITS", "a conditional expression")
        self.at(node)
        for arm in (yes, no):
            if not (isinstance(arm, IR) or is_number(arm)):
                self.ctx.fail("CONDITIONAL_ARM", _describe(arm))
        return _core.select(self.ctx, test, yes, no, True)

    # ---- subscripts and calls --------------------------------------------------------------------------------------

    def subscript(self, node: ast.Subscript) -> Any:
        owner = self.value(node.value)
        index = self.value(node.slice)
        self.at(node)
        return self.item(node, owner, index)

    def item(self, node: ast.Subscript, owner: Any, index: Any) -> Any:
        try:
            value = owner[index]
            if value.__class__ in _PLAIN_TYPES:
                return value
            return self.note_made(value) if index.__class__ is slice else self.captured(value)
        except SyntaxError:
            if hasattr(owner.__class__, "_tirx_placed"):
                raise
            if not isinstance(owner, (Expr, Buffer, Region)):
                self.ctx.fail("RUN_TIME_SUBSCRIPT", _describe(owner))
            return owner[self.placed_indices(node, index)]
        except (TypeError, KeyError, IndexError) as e:
            if owner is None and isinstance(node.value, ast.Name):
                self.absent(node.value.id)
            if isinstance(index, IR) and not isinstance(owner, (Expr, Buffer, Region)):
                self.ctx.fail("RUN_TIME_SUBSCRIPT", _describe(owner))
            self.ctx.fail("BAD_SUBSCRIPT", _describe(owner), subscript_text(e))

    def placed_indices(self, node: ast.Subscript, index: Any) -> Any:
        if isinstance(node.slice, ast.Tuple) and isinstance(index, tuple) and len(index) == len(node.slice.elts):
            index = tuple(map(self.placed, index, node.slice.elts))
        else:
            index = self.placed(index, node.slice)
        self.at(node)
        return index

    def slice(self, node: ast.Slice) -> slice:
        return slice(
            None if node.lower is None else self.value(node.lower),
            None if node.upper is None else self.value(node.upper),
            None if node.step is None else self.value(node.step),
        )

    def call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args: list[Any] = []
        if len(node.args) > 1 and any(map(_has_call, node.args[1:])) and not _is_lazy(function):
            by_value = _takes_values(function)
            args = self.in_order(node.args, self.value, by_value, by_value)
        else:  # what is chosen from later is not taken before
            for a in node.args:
                if a.__class__ is ast.Starred:
                    args.extend(self.spread(a))
                else:
                    args.append(self.value(a))
        if node.keywords:
            keywords: dict[str, Any] = {}
            for k in node.keywords:
                if k.arg is None:
                    more = self.value(k.value)
                elif k.arg in keywords:
                    self.at(node)
                    self.ctx.fail("BAD_CALL", f"keyword argument repeated: {k.arg}")
                else:
                    more = {k.arg: self.value(k.value)}
                keywords.update(more)
        else:
            keywords = {}
        self.at(node)
        return self.invoke(function, args, keywords)

    def invoke(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        replaced = _REPLACED.get(id(function))
        if replaced is not None:
            return replaced(self, *args, **keywords)
        cls = function.__class__
        if cls is FunctionType:
            if not (function.__module__ or "").startswith("tirx."):
                return self.call_helper(function, args, keywords)
        elif _may_be_mathematics(cls) and libraries.is_mathematics(function):
            for a in args:
                if isinstance(a, (*IR, Region)):
                    what, instead = libraries.instead_of(function)
                    self.ctx.fail("BUILTIN_AT_RUN_TIME", what, describe(a), help=instead)
        expand = getattr(function, "_tirx_expand", None)
        if expand is not None:
            return expand(self, args, keywords)
        if not callable(function):
            self.ctx.fail("BAD_CALL", f"{_describe(function)} is not callable")
        if cls is _core.Function:
            help = "decorate it with @T.inline, or put both into a module, @I.ir_module, and call Module.%s(...)"
            name = function.__name__
            self.ctx.fail("BAD_CALL", f"'{name}' is a kernel of its own and not called in another", help=help % name)
        if function.__class__ is BuiltinFunctionType:
            self.check_method(function)
        try:
            value = function(*args, **keywords)
            if value.__class__ not in _PLAIN_TYPES:
                self.note_result(value, function, args, keywords)
            return value
        except TypeError as e:
            if "unexpected keyword argument" in str(e):
                self.unknown_keyword(function, keywords, e)
            raise

    def unknown_keyword(self, function: Any, keywords: dict[str, Any], e: TypeError) -> None:
        """The same fault with the names that the function takes."""
        import difflib

        # T.alloc_local hands its keywords on: what they may be says the function that has refused one
        function = getattr(function, "__globals__", {}).get(str(e).partition("(")[0], function)
        try:
            taken = inspect.signature(function).parameters
        except (TypeError, ValueError):
            return
        known = [n for n, p in taken.items() if p.kind is not p.VAR_POSITIONAL]
        for name in keywords:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.6)
                said = f"did you mean '{near[0]}'?" if near else f"it takes {', '.join(known)}"
                self.ctx.fail("PYTHON_TYPE", str(e), help=said)

    def call_helper(self, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        """A plain Python function: runs now, may emit through T."""
        if self.operands:
            self.settle_operands()
        self.helper_depth += 1
        try:
            result = function(*args, **keywords)
        finally:
            self.helper_depth -= 1
        if result.__class__ in _PLAIN_TYPES:
            return result
        self.note_result(result, function, args, keywords)
        return self.captured(result)

    # ---- what Python evaluates as it stands ------------------------------------------------------------------------

    def as_python(self, node: ast.expr) -> Any:
        """Lambdas, comprehensions and f-strings: compiled once, evaluated over the scope's names."""
        code = getattr(node, "_tirx_code", None)
        if code is None:
            for n in ast.walk(node):
                if isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
                    self.refuse_expression(n)
            code = compile(ast.Expression(node), self.file_name, "eval", dont_inherit=True)
            code = shifted(code, self.line_offset)
            node._tirx_code = code  # type: ignore[attr-defined]
        self.at(node)
        self.helper_depth += 1
        try:
            return self.note_made(eval(code, Names(self.scope, self.read)))
        except NameError as e:
            if e.name:
                self.undefined(e.name, MISSING)
            raise
        finally:
            self.helper_depth -= 1


def _is_lazy(function: Any) -> bool:
    """Whether an operand may be left alone when the kernel runs."""
    return getattr(function, "__name__", "") in ("if_then_else", "select", "logical_and", "logical_or")


def _takes_values(function: Any) -> bool:
    """Whether it computes a value of its operands, and can store into none of them."""
    if id(function) in _REPLACED or function.__class__ is BuiltinFunctionType:
        return True
    return function.__class__ is FunctionType and function.__module__ == "tirx.script.ops"


@functools.cache
def _may_be_mathematics(cls: type) -> bool:
    """Whether objects of the class may be functions of math or NumPy."""
    return cls is BuiltinFunctionType or cls is type or cls.__module__.partition(".")[0] == "numpy"


def shifted(code: CodeType, lines: int) -> CodeType:
    """The code with its line numbers in the file."""
    inner = tuple(shifted(c, lines) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=inner)


def subscript_text(e: Exception) -> str:
    return f"it has no key {e.args[0]!r}" if isinstance(e, KeyError) and e.args else str(e)


def _comparable(x: Any) -> bool:
    return isinstance(x, (Expr, Buffer, Region)) or is_number(x)


_GROWING = (ast.Pow, ast.LShift, ast.Mult)


def _too_large(sign: type, left: Any, right: Any) -> str | None:
    """Why the result of two Python values is not computed, or None."""
    if not isinstance(right, int):
        if sign is not ast.Mult or not isinstance(left, int):
            return None
        left, right = right, left
    if isinstance(left, int):
        if right <= 1 or left in (0, 1, -1):
            return None
        more = {ast.Pow: left.bit_length() * right, ast.LShift: left.bit_length() + right}
        bits = more.get(sign, left.bit_length() + right.bit_length())
        return None if bits <= _MOST_BITS else f"an integer of {bits} bits is more than a kernel can mean"
    if sign is ast.Mult and isinstance(left, (str, bytes, list, tuple)) and len(left) * right > _MOST_ITEMS:
        return f"{len(left) * right} items are more than a kernel can mean"
    return None


def _describe(x: Any) -> str:
    """A value in the words of a message."""
    if isinstance(x, int) and x.bit_length() > 1000:
        return f"an integer of {x.bit_length()} bits"
    if isinstance(x, Expr):
        return x.dtype
    if isinstance(x, Buffer):
        return x.dtype if x.is_cell else f"buffer {x.name}"
    if isinstance(x, Region):
        return f"a region of {x.buffer.name}"
    if isinstance(x, Receipt):
        return "the result of a call that gives no value"
    if x is None or isinstance(x, (bool, int, float, str)):
        text = repr(x)
        return text if len(text) <= 40 else text[:37] + "..."
    return type(x).__name__


describe = _describe


# ---- builtins that get another meaning with IR values ----------------------------------------------------------------


def _extreme(row: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(p: Expressions, *args: Any, **keywords: Any) -> Any:
        values = list(args[0]) if len(args) == 1 and not isinstance(args[0], IR) else list(args)
        if not any(isinstance(v, IR) for v in values) or keywords:
            return function(*args, **keywords)
        if len(values) == 1 and len(args) == 1 and isinstance(args[0], IR):
            p.ctx.fail("BAD_CALL", f"{name}() of a run-time value needs two operands", help=f"use T.{name}(a, b)")
        result = values[0]
        for v in values[1:]:
            result = _core.op(p.ctx, row, result, v)
        return result

    return call


def _no_runtime(name: str, instead: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(p: Expressions, *args: Any, **keywords: Any) -> Any:
        if args and isinstance(args[0], Expr) and args[0].op not in ("INT", "FLOAT"):
            p.ctx.fail("BUILTIN_AT_RUN_TIME", name, args[0].dtype, help=instead)
        if args and isinstance(args[0], Buffer):
            p.ctx.fail("BUILTIN_AT_RUN_TIME", name, _describe(args[0]), help=instead)
        return function(*args, **keywords)

    return call


def _bool(p: Expressions, *args: Any) -> Any:
    return _core.condition(p.ctx, args[0]) if args and isinstance(args[0], IR) else bool(*args)


def _super(p: Expressions, *args: Any) -> Any:
    """super() in a method: Python keeps the class in the method's closure, and the object is its first argument."""
    cell = p.scope.closure.get("__class__", MISSING)
    if args or cell is MISSING:
        return super(*args)
    return super(cell.cell_contents, next(iter(p.scope.names.values())))


def _pow(p: Expressions, *args: Any, **keywords: Any) -> Any:
    return pow(*args, **keywords)


_REPLACED: dict[int, Callable[..., Any]] = {
    id(min): _extreme("MIN", "min", min),
    id(max): _extreme("MAX", "max", max),
    id(int): _no_runtime("int", "use T.cast(x, 'int32')", int),
    id(float): _no_runtime("float", "use T.cast(x, 'float32')", float),
    id(len): _no_runtime("len", "use A.shape[0]", len),
    id(range): _no_runtime("range", "range(...) of a run-time value stands in the head of a for loop only", range),
    id(bool): _bool,
    id(super): _super,
}

_EXPRESSIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.Tuple: Expressions.tuple,
    ast.List: Expressions.list,
    ast.Set: Expressions.set,
    ast.Dict: Expressions.dict,
    ast.Starred: Expressions.starred,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.Compare: Expressions.compare,
    ast.BoolOp: Expressions.logic,
    ast.IfExp: Expressions.conditional,
    ast.Subscript: Expressions.subscript,
    ast.Slice: Expressions.slice,
    ast.Call: Expressions.call,
    ast.Lambda: Expressions.as_python,
    ast.ListComp: Expressions.as_python,
    ast.SetComp: Expressions.as_python,
    ast.DictComp: Expressions.as_python,
    ast.GeneratorExp: Expressions.as_python,
    ast.JoinedStr: Expressions.as_python,
    ast.FormattedValue: Expressions.as_python,
}
