# SPDX-License-Identifier: Apache-2.0
"""What a kernel's text means, in plain Python: the text is read with `ast` and run thread by thread. Nothing of tirx.

The kernel must be free of races: threads of a CTA run one after the other between the places where they meet (barriers,
shuffles, votes), which stand in the body or in loops and branches that all threads take alike.

    run(text, {"A": (shape, [numbers]), "s": 3}) -> {"A": Buf, ...}

scalars.faults then tells what a checked run would report.
"""

from __future__ import annotations

import ast
import functools
import operator

from . import scalars as S
from .calls import Calls
from .instructions import Instructions
from .machine import SIGNS, Buf, Cell, Frame, Func, Ptr, Thread, as_int, dtype_of, is_T, number, parsed, truth
from .scalars import V
from .together import LAST, TURNS, Cluster, Cta, Together

PLAIN = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_,
    "^": operator.xor,
}  # fmt: skip


LARGE = 1 << 31
QUICK = {  # int32 operands that are no vectors; None, or beyond int32: the long way
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "//": lambda a, b: a // b if b > 0 else None, "%": lambda a, b: a % b if b > 0 else None,
}  # fmt: skip


class Kernel(Together, Instructions, Calls):
    def __init__(self, text: str, args: dict, contract=False):
        tree = parsed(text)
        self.may_meet = "T.ptx" in text or any("." + name in text for name in LAST)
        self.known_meetings, self.meeting_calls = {}, {}
        self.contract = contract
        self.node = next(n for n in reversed(tree.body) if isinstance(n, ast.FunctionDef))
        self.g1 = any("prim_func" in ast.unparse(d) for d in self.node.decorator_list)
        self.args = args
        self.host = {}
        self.parameters = {}
        self.cells = self.find_cells(self.node.body)
        self.helpers = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n is not self.node]
        self.compiled = {}
        self.bind_parameters()
        self.grid, self.block, self.cluster = [1, 1, 1], [1, 1, 1], 1

    # ---- names --------------------------------------------------------------------------------------------------

    def find_cells(self, body) -> frozenset:
        """g2 [D 1]: names that are cells: those assigned in an inner block while bound outside."""
        if self.g1:
            return frozenset()
        first, cells = {}, set()

        def targets(t):
            return [n.id for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]

        def visit(statements, path):
            for n in statements:
                if isinstance(n, (ast.Assign, ast.AugAssign)):
                    for name in (x for t in getattr(n, "targets", None) or [n.target] for x in targets(t)):
                        before = first.setdefault(name, [])
                        if any(p == path[: len(p)] and p != path for p in before):
                            cells.add(name)
                        before.append(path)
                elif isinstance(n, ast.AnnAssign):
                    for name in targets(n.target):
                        first.setdefault(name, []).append(path)
                elif isinstance(n, ast.FunctionDef):
                    outer = {x for s in n.body if isinstance(s, ast.Nonlocal) for x in s.names}
                    cells.update(outer)
                for field in ("body", "orelse"):
                    if not isinstance(n, ast.FunctionDef) and getattr(n, field, None):
                        visit(getattr(n, field), (*path, (id(n), field)))

        visit(body, ())
        return frozenset(cells)

    def bind_parameters(self):
        for a in self.node.args.args:
            call, value = a.annotation, self.args[a.arg]
            if isinstance(call, ast.Call):
                shape, data = value
                t = dtype_of(call.args[1])
                extents = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else [call.args[0]]
                for e, n in zip(extents, shape, strict=True):
                    if isinstance(e, ast.Constant) and type(e.value) is str:
                        self.host[e.value] = V("int32", n)
                    elif isinstance(e, ast.Name):
                        self.host[e.id] = V("int32", n)
                self.parameters[a.arg] = Buf(t, shape, list(data))
            else:
                self.parameters[a.arg] = V(dtype_of(call), value)

    # ---- the launch ---------------------------------------------------------------------------------------------

    def run(self) -> dict:
        probe = self.thread((0, 0, 0), (0, 0, 0))

        by_clusters = False

        def extents(e):
            found = [
                as_int(self.expr(x)(probe.frame)) for x in (e.elts if isinstance(e, (ast.List, ast.Tuple)) else [e])
            ]
            return found + [1] * (3 - len(found))

        for n in ast.walk(self.node):
            if not isinstance(n, ast.Call):
                continue
            name = is_T(n.func)
            if name == "cta_id":
                self.grid = extents(n.args[0])
            elif name == "thread_id":
                self.block = extents(n.args[0])
            elif name == "cta_id_in_cluster":
                self.cluster = extents(n.args[0])[0]
            elif name == "cluster_id":
                self.grid = extents(n.args[0])
            elif name == "cuda.LaunchConfig":
                words = {k.arg: extents(k.value) for k in n.keywords}
                self.grid, self.block = words.get("grid", self.grid), words.get("block", self.block)
                self.cluster = words.get("cluster", [1])[0]
            if name == "cluster_id":
                by_clusters = True
        if by_clusters:
            self.grid = [self.grid[0] * self.cluster, 1, 1]
        gx, gy, gz = self.grid
        blocks = [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
        bx, by, bz = self.block
        for first in range(0, len(blocks), self.cluster):
            cluster = Cluster()
            for rank, bid in enumerate(blocks[first : first + self.cluster]):
                cta = Cta(rank, cluster)
                cta.threads = [
                    self.thread((x, y, z), bid, cta) for z in range(bz) for y in range(by) for x in range(bx)
                ]
                cluster.ctas.append(cta)
            self.drive(self.together(self.node.body, cta.threads) for cta in cluster.ctas)
        return {k: v for k, v in self.parameters.items() if type(v) is Buf}

    def thread(self, tid, bid, cta=None) -> Thread:
        t = Thread()
        t.kernel, t.tid, t.bid, t.done, t.turns, t.cta = self, tid, bid, False, 0, cta
        t.got, t.pending, t.groups, t.skips = {}, [], [], None
        t.frame = Frame(t)
        t.frame.names.update(self.host)
        t.frame.names.update(self.parameters)
        t.frame.cells = self.cells
        for n in self.helpers:
            self.define(n, t.frame)
        return t

    def linear(self, t: Thread) -> int:
        return t.tid[0] + self.block[0] * (t.tid[1] + self.block[1] * t.tid[2])

    # ---- statements ---------------------------------------------------------------------------------------------

    def block_of(self, statements):
        """frame -> None, "break", "continue" or "return"."""
        run = self.compiled.get(statements)
        if run is None:
            steps = [self.statement(s) for s in statements]
            steps = [s for s in steps if s]

            def run(frame):
                for step in steps:
                    way = step(frame)
                    if way is not None:
                        return way
                return None

            self.compiled[statements] = run
        return run

    def inner(self, statements):
        run = self.block_of(tuple(statements))

        def scoped(frame):
            mark = len(frame.trail)
            way = run(frame)
            frame.leave(mark)
            return way

        return scoped

    def statement(self, n):
        return getattr(self, "do_" + type(n).__name__)(n)

    def do_Pass(self, n):
        return None

    def do_Nonlocal(self, n):
        return None

    def do_Break(self, n):
        return lambda frame: "break"

    def do_Continue(self, n):
        return lambda frame: "continue"

    def do_Return(self, n):
        value = self.expr(n.value) if n.value else None

        def run(frame):
            if value:
                frame.thread.result = value(frame)
            return "return"

        return run

    def do_Expr(self, n):
        if isinstance(n.value, ast.Constant):
            return None
        name = is_T(n.value.func) if isinstance(n.value, ast.Call) else None
        if name in ("device_entry", "cuda.thread_fence", "attr", "func_attr", "cuda.nano_sleep"):
            return None
        if name in ("thread_return", "gpu_thread_return") or (
            name == "evaluate" and is_T(getattr(n.value.args[0], "func", None)) == "thread_return"
        ):
            return lambda frame: "return"
        value = self.expr(n.value)

        def run(frame):
            value(frame)

        return run

    def do_Assert(self, n):
        test = self.expr(n.test)

        def run(frame):
            if not truth(test(frame)):
                S.faults.append("assert")
                raise S.Unsure("assert")

        return run

    def do_If(self, n):
        test, then, other = self.expr(n.test), self.inner(n.body), self.inner(n.orelse) if n.orelse else None

        def run(frame):
            if truth(test(frame)):
                return then(frame)
            return other(frame) if other else None

        return run

    def do_With(self, n):
        return self.inner(n.body)

    def do_While(self, n):
        test, body = self.expr(n.test), self.inner(n.body)

        def run(frame):
            while truth(test(frame)):
                frame.thread.turns += 1
                if frame.thread.turns > TURNS:
                    raise S.Unsure("endless")
                way = body(frame)
                if way == "break":
                    return None
                if way == "return":
                    return way
            return None

        return run

    def turns(self, n):
        """frame -> the values of the loop variables, in order."""
        it = n.iter
        if isinstance(it, (ast.List, ast.Tuple)):
            items = [self.expr(e) for e in it.elts]
            return lambda frame: [e(frame) for e in items]
        name = is_T(it.func) or it.func.id
        if name == "grid":
            sides = []
            for a in it.args:
                pair = a.elts if isinstance(a, ast.Tuple) else [None, a]
                sides.append([self.expr(e) if e else None for e in pair])

            def nest(frame):
                ends = [(as_int(s(frame)) if s else 0, as_int(e(frame)), e) for s, e in sides]
                values = [()]
                for start, extent, _ in ends:
                    values = [(*v, V("int32", start + k)) for v in values for k in range(extent)]
                return values if len(ends) > 1 else [v[0] for v in values]

            return nest
        bounds = [self.expr(a) for a in it.args]
        step = next((self.expr(k.value) for k in it.keywords if k.arg == "step"), None)
        forced = next((k.value.value for k in it.keywords if k.arg == "dtype"), None)

        def run(frame):
            values = [number(b(frame)) for b in bounds]
            if len(values) == 1:
                values.insert(0, 0)
            if len(values) == 2:
                values.append(number(step(frame)) if step else 1)
            a, b = S.pair(values[0], values[1])
            t = forced or S.promote(a.t, b.t)
            t = "int32" if t == "bool" else t
            start, stop, k = (S.cast(t, x).v for x in (a, b)), None, as_int(values[2])
            start, stop = start
            frame.thread.turns += max(0, (stop - start) // k)
            if frame.thread.turns > TURNS:
                raise S.Unsure("endless")
            return [V(t, x) for x in range(start, stop, k)]

        return run

    def bind_target(self, target, value, frame):
        if isinstance(target, ast.Tuple):
            for e, v in zip(target.elts, value, strict=True):
                frame.bind(e.id, v)
        else:
            frame.bind(target.id, value)

    def do_For(self, n):
        turns, body, target = self.turns(n), self.block_of(tuple(n.body)), n.target

        def run(frame):
            mark = len(frame.trail)
            for value in turns(frame):
                frame.thread.turns += 1
                if frame.thread.turns > TURNS:
                    raise S.Unsure("endless")
                self.bind_target(target, value, frame)
                way = body(frame)
                frame.leave(mark)
                if way == "break":
                    break
                if way == "return":
                    return way
            return None

        return run

    def do_FunctionDef(self, n):
        return lambda frame: self.define(n, frame)

    def define(self, n, frame):
        f = Func()
        f.node, f.frame = n, frame
        frame.bind(n.name, f)

    # ---- assignment ---------------------------------------------------------------------------------------------

    def do_Assign(self, n):
        if isinstance(n.value, (ast.Tuple, ast.List)) and isinstance(n.targets[0], ast.Tuple):
            return self.unpack(n.targets[0], n.value.elts)
        value, stores = self.value(n.value), [self.assign(t) for t in n.targets]
        if isinstance(n.value, ast.Call) and is_T(n.value.func) == "Var":
            return lambda frame: frame.bind(n.targets[0].id, value(frame))

        def run(frame):
            v = value(frame)
            for store in stores:
                store(frame, v)

        return run

    def unpack(self, target, elts):
        values, targets = [self.value(e) for e in elts], target.elts
        star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
        if star is not None:
            first = [self.assign(t) for t in targets[:star]]
            rest = targets[star].value.id

            def spread(frame):
                got = [number(v(frame)) for v in values]
                for store, v in zip(first, got, strict=False):
                    store(frame, v)
                frame.bind(rest, got[star:])

            return spread
        stores = [self.assign(t) for t in targets]

        def run(frame):
            got = [number(v(frame)) for v in values]
            for store, v in zip(stores, got, strict=True):
                store(frame, v)

        return run

    def value(self, n):
        """The right side of an assignment."""
        return self.root(n)

    def assign(self, target):
        """(frame, value) -> store into a name or an element."""
        if isinstance(target, ast.Tuple):
            stores = [self.assign(t) for t in target.elts]

            def each(frame, value):
                for store, v in zip(stores, value, strict=True):
                    store(frame, v)

            return each
        if isinstance(target, ast.Subscript):
            element = self.element(target)

            def store_element(frame, value):
                buf, at = element(frame)
                self.store(buf, at, number(value))

            return store_element
        name = target.id

        def store_name(frame, value):
            if type(value) in (Func, Ptr, Buf, list, tuple):
                frame.bind(name, value)
                return
            value = number(value)
            old = frame.names.get(name)
            if old is None:
                if name in frame.outer:
                    old = frame.parent.find(name)
                elif frame.parent is not None:  # an outer cell is stored into without nonlocal too
                    try:
                        outer = frame.parent.find(name)
                    except S.Refused:
                        outer = None
                    old = outer if type(outer) is Cell else None
            if type(old) is Cell and name not in frame.own:
                old.v = S.stored(old.t, value).v
            elif type(old) is Buf:
                old.data[old.at] = S.stored(old.t, value).v
            else:
                v = S.typed(value)
                frame.bind(name, Cell(v.t, v.v) if self.g1 or name in frame.cells else v)

        return store_name

    def store(self, buf, at, value):
        n = S.lanes(buf.t)
        if type(at) is tuple:
            v = S.stored(S.scalar(buf.t), value).v
            for k, i in enumerate(at):
                buf.data[i] = v[k] if type(v) is tuple else v
        elif n > 1:
            v = S.cast(buf.t, value)
            buf.data[at] = v.v
        else:
            buf.data[at] = S.stored(buf.t, value).v

    def do_AnnAssign(self, n):
        return self.annotated(n, self.value(n.value) if n.value else None)

    def annotated(self, n, value):
        a, name = n.annotation, n.target.id
        if isinstance(a, ast.Subscript) and is_T(a.value) != "let":
            t = dtype_of(a.value)
            extents = [self.expr(e) for e in (a.slice.elts if isinstance(a.slice, ast.Tuple) else [a.slice])]
            return lambda frame: frame.bind(name, Buf(t, [as_int(e(frame)) for e in extents]))
        let = is_T(a.value if isinstance(a, ast.Subscript) else a) == "let"
        t = dtype_of(a.slice) if isinstance(a, ast.Subscript) else None if let else dtype_of(a)

        def run(frame):
            v = value(frame) if callable(value) else value
            if let and type(v) in (Ptr, Buf, Func):
                frame.bind(name, v)
                return
            v = number(v)
            if let:
                frame.bind(name, S.cast(t, S.typed(v, t)) if t else S.typed(v))
            elif v is None:
                frame.bind(name, Cell(t))
            else:
                frame.bind(name, Cell(t, S.stored(t, v).v))

        return run

    def do_AugAssign(self, n):
        op, value = SIGNS[type(n.op)], self.root(n.value)
        factors = None
        if self.contract and op in ("+", "-") and self.product(n.value):
            factors = self.expr(n.value.left), self.expr(n.value.right)

        def result(frame, old):
            if factors:
                x, y = (number(f(frame)) for f in factors)
                return self.fused(op, x, y, old, "right", lambda g: self.binary(op, old, number(value(g))), frame)
            return self.binary(op, old, number(value(frame)))

        if isinstance(n.target, ast.Subscript):
            element = self.element(n.target)

            def run(frame):
                buf, at = element(frame)
                self.store(buf, at, result(frame, self.load(buf, at)))

            return run
        name, store = n.target.id, self.assign(ast.Name(n.target.id, ast.Store()))

        def run_name(frame):
            store(frame, result(frame, number(frame.find(name))))

        return run_name

    # ---- expressions --------------------------------------------------------------------------------------------

    def root(self, n):
        return self.expr(n)

    def expr(self, n):
        """frame -> value."""
        return getattr(self, "of_" + type(n).__name__)(n)

    def of_Constant(self, n):
        v = n.value
        return lambda frame: v

    def of_Name(self, n):
        name = n.id

        def run(frame):
            v = frame.names.get(name)
            if v is None:
                v = frame.find(name)
            if type(v) is Cell:
                if v.v is None:
                    raise S.Unsure("uninitialised")
                return V(v.t, v.v)
            if type(v) is Buf and v.shape == (1,):
                return self.load(v, v.at)
            return v

        return run

    def of_Tuple(self, n):
        items = [self.expr(e) for e in n.elts]
        return lambda frame: [e(frame) for e in items]

    of_List = of_Tuple

    def of_ListComp(self, n):
        g, item = n.generators[0], self.expr(n.elt)
        bounds = [self.expr(a) for a in g.iter.args]
        name = g.target.id

        def run(frame):
            out, mark = [], len(frame.trail)
            for k in range(*(as_int(b(frame)) for b in bounds)):
                frame.bind(name, k)
                out.append(item(frame))
                frame.leave(mark)
            return out

        return run

    of_GeneratorExp = of_ListComp

    def binary(self, op, a, b):
        if type(a) is not V and type(b) is not V:
            return PLAIN[op](a, b)
        return S.binary(op, a, b)

    def of_BinOp(self, n):
        if isinstance(n.op, ast.Pow):
            base, power = self.expr(n.left), n.right.value
            return lambda frame: functools.reduce(lambda a, b: S.binary("*", a, b), [number(base(frame))] * power)
        op, left, right = SIGNS[type(n.op)], self.expr(n.left), self.expr(n.right)
        quick = QUICK.get(op)

        def run(frame):
            a, b = left(frame), right(frame)
            if quick and type(a) is V and a.t == "int32":  # what indices are made of
                if type(b) is int:
                    r = quick(a.v, b) if -LARGE <= b < LARGE else None
                else:
                    r = quick(a.v, b.v) if type(b) is V and b.t == "int32" else None
                if r is not None and -LARGE <= r < LARGE:
                    return V("int32", r)
            return self.binary(op, number(a), number(b))

        if not self.contract or op not in ("+", "-"):
            return run
        if self.product(n.left):
            x, y = self.expr(n.left.left), self.expr(n.left.right)
            return lambda frame: self.fused(
                op, number(x(frame)), number(y(frame)), number(right(frame)), "left", run, frame
            )
        if self.product(n.right):
            x, y = self.expr(n.right.left), self.expr(n.right.right)
            return lambda frame: self.fused(
                op, number(x(frame)), number(y(frame)), number(left(frame)), "right", run, frame
            )
        return run

    @staticmethod
    def product(n):
        """A product that no folder has computed."""
        return (
            isinstance(n, ast.BinOp)
            and isinstance(n.op, ast.Mult)
            and any(isinstance(m, ast.Subscript) or isinstance(m, ast.Name) and m.id != "T" for m in ast.walk(n))
        )

    def fused(self, op, x, y, z, side, plain, frame):
        """x*y + z (left), z + x*y (right), rounded once, where the product has the sum's dtype, a wide float."""
        if type(x) is not V and type(y) is not V:
            return plain(frame)
        p, q = S.pair(x, y)
        t = S.promote(S.scalar(p.t), S.scalar(q.t))
        zt = S.typed(z, t)
        if t not in S.WIDE or S.promote(t, S.scalar(zt.t)) != t:
            return plain(frame)
        if op == "-" and side == "left":
            return S.fma(p, q, S.negate(S.cast(t, zt)))
        if op == "-":
            return S.fma(S.negate(S.cast(t, p)), q, zt)
        return S.fma(p, q, zt)

    def of_UnaryOp(self, n):
        a, op = self.expr(n.operand), type(n.op)

        def run(frame):
            v = number(a(frame))
            if op is ast.Not:
                return V("bool", int(not truth(v))) if type(v) is V else not v
            if type(v) is not V:
                return -v if op is ast.USub else ~v if op is ast.Invert else +v
            return S.negate(v) if op is ast.USub else S.invert(v) if op is ast.Invert else v

        return run

    def of_BoolOp(self, n):
        items, decides = [self.expr(v) for v in n.values], isinstance(n.op, ast.Or)

        def run(frame):
            some = False
            for e in items:
                v = number(e(frame))
                some |= type(v) is V
                if truth(v) == decides:
                    return V("bool", int(decides)) if some else v
            return V("bool", int(not decides)) if some else v

        return run

    def of_Compare(self, n):
        items = [self.expr(v) for v in [n.left, *n.comparators]]
        ops = [SIGNS[type(op)] for op in n.ops]

        def run(frame):
            a, plain = number(items[0](frame)), True
            for op, e in zip(ops, items[1:], strict=True):
                b = number(e(frame))
                if type(a) is not V and type(b) is not V:
                    r = S.COMPARE[op](a, b)
                else:
                    r = S.compare(op, a, b)
                    plain = False
                    if type(r.v) is tuple:
                        return r
                if not truth(r):
                    return r if plain or type(r) is V else V("bool", 0)
                a = b
            return r

        return run

    def dry(self, e, frame):
        """The dtype of what would not be evaluated."""
        n, turns, was = len(S.faults), frame.thread.turns, self.is_dry
        self.is_dry = True
        try:
            v = number(e(frame))
        except S.Unsure:
            raise S.Unsure("dtype of a branch not taken") from None
        finally:
            self.is_dry = was
            del S.faults[n:]
            frame.thread.turns = turns
        return v

    is_dry = False

    def choose(self, frame, test, a, b, lazy=True, python=False):
        c = number(test(frame))
        if type(c) is not V:
            if python:
                return (a if c else b)(frame)
            c = S.typed(bool(c))
        if type(c.v) is tuple:
            x, y = (number(e(frame)) for e in (a, b))
            x, y = S.pair(x, y)
            t = S.promote(S.scalar(x.t), S.scalar(y.t))
            n = len(c.v)
            x, y = S.cast(f"{t}x{n}", x), S.cast(f"{t}x{n}", y)
            return V(f"{t}x{n}", tuple(p if k else q for k, p, q in zip(c.v, x.v, y.v, strict=True)))
        if lazy:
            taken = number((a if c.v else b)(frame))
            other = self.dry(b if c.v else a, frame)
            x, y = (taken, other) if c.v else (other, taken)
        else:
            x, y = number(a(frame)), number(b(frame))
        x, y = S.pair(x, y)
        t = S.promote(S.scalar(x.t), S.scalar(y.t))
        n = max(S.lanes(x.t), S.lanes(y.t))
        return S.cast(t if n == 1 else f"{t}x{n}", x if c.v else y)

    def of_IfExp(self, n):
        test, a, b = self.expr(n.test), self.expr(n.body), self.expr(n.orelse)
        return lambda frame: self.choose(frame, test, a, b, python=True)

    # ---- memory -------------------------------------------------------------------------------------------------

    def holder(self, n):
        """A buffer by name, without its value."""
        if isinstance(n, ast.Name):
            return lambda frame: frame.find(n.id)
        return self.expr(n)

    def element(self, n):
        """frame -> (buffer, position or a tuple of them)."""
        base = self.holder(n.value)
        dims = n.slice.elts if isinstance(n.slice, ast.Tuple) else [n.slice]
        indices = [
            tuple(self.expr(e) if e else None for e in (d.lower, d.upper, d.step))
            if isinstance(d, ast.Slice) else self.expr(d) for d in dims
        ]  # fmt: skip

        plain = all(type(index) is not tuple for index in indices)

        def run(frame):
            buf = base(frame)
            if type(buf) is Buf and plain:
                at = buf.at
                for index, stride, extent in zip(indices, buf.strides, buf.shape, strict=True):
                    i = index(frame)
                    if type(i) is V:
                        i = i.v
                    if type(i) is not int or not 0 <= i < extent:
                        break
                    at += i * stride
                else:
                    return buf, at
            if type(buf) in (list, tuple):
                return buf, as_int(indices[0](frame))
            if type(buf) is Cell:
                return buf, 0
            at, vector = buf.at, None
            for k, (index, stride, extent) in enumerate(zip(indices, buf.strides, buf.shape, strict=True)):
                if type(index) is tuple:
                    lo = as_int(index[0](frame)) if index[0] else 0
                    hi = as_int(index[1](frame)) if index[1] else extent
                    step = as_int(index[2](frame)) if index[2] else 1
                    vector = range(lo, hi, step)
                else:
                    i = number(index(frame))
                    i = i.v if type(i) is V else i
                    if type(i) is tuple:
                        vector = i
                        continue
                    if not 0 <= i < extent:
                        if self.is_dry:
                            i = 0
                        else:
                            raise S.Unsure(f"index {i} of {extent}")
                    at += i * stride
            if vector is None:
                return buf, at
            if not self.is_dry and not all(0 <= i < buf.shape[-1] for i in vector):
                raise S.Unsure("vector index")
            return buf, tuple(at + i for i in vector)

        return run

    def load(self, buf, at):
        if type(buf) is Cell:
            return V(buf.t, buf.v)
        if type(at) is tuple:
            v = tuple(buf.data[i] for i in at)
            if None in v:
                raise S.Unsure("uninitialised")
            return V(f"{buf.t}x{len(v)}", v) if len(v) > 1 else V(buf.t, v[0])
        v = buf.data[at]
        if v is None:
            raise S.Unsure("uninitialised")
        return V(buf.t, v)

    def of_Subscript(self, n):
        element = self.element(n)

        def run(frame):
            buf, at = element(frame)
            return buf[at] if type(buf) in (list, tuple) else self.load(buf, at)

        return run

    def of_Attribute(self, n):
        name = is_T(n)
        if name:
            raise S.Unsure(f"T.{name}")
        base, attr = self.holder(n.value), n.attr

        def run(frame):
            buf = base(frame)
            if attr == "shape":
                return [x for x in buf.shape]
            if attr == "data":
                return Ptr(buf, buf.at)
            raise S.Unsure(attr)

        return run


def run(text: str, args: dict, contract: bool = False) -> dict:
    S.faults.clear()
    return Kernel(text, args, contract).run()
