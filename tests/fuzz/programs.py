# SPDX-License-Identifier: Apache-2.0
"""Random well-typed kernels as text, with the arguments to call them with: Program(seed).text, .args.

What is generated terminates, stays inside its arrays, reads nothing unwritten, and is free of races: a thread writes
its own row of each output, shared memory between barriers its own element. Functions with an error bound are only
stored, into the buffers named in `near`. Names of buffers start with a capital, of loop variables with i, of
helpers with h.
"""

from __future__ import annotations

import math
import random

from . import scalars as S
from .expressions import ATOMIC, STORABLE, Array, Expressions, Var


class Program(Expressions):
    def __init__(self, seed: int, size: int = 0):
        self.r = r = random.Random(seed)
        self.g1 = r.random() < 0.5
        self.size = size or r.choice([4, 6, 8, 10])
        self.n = 0
        self.vars: list[Var] = []
        self.arrays: list[Array] = []
        self.loops: list[tuple[str, int]] = []  # (name, values are 0 .. n-1)
        self.helpers: list = []
        self.depth = 0
        self.turns = 1
        self.in_loop = False
        self.near: set[str] = set()
        self.pure = False
        self.constant = False
        self.dynamic = False
        self.shape()
        self.threads = math.prod(self.block) * math.prod(self.grid)
        self.args: dict = {}
        self.text = self.kernel()

    def shape(self) -> None:
        r = self.r
        self.block = r.choice([(1,), (2,), (3,), (4,), (4,), (8,), (2, 2), (3, 2), (2, 1, 2)])
        self.grid = r.choice([(1,), (1,), (1,), (2,), (3,), (2, 2)])
        if r.random() < 0.1:
            self.block, self.grid = r.choice([(32,), (32,), (32,), (16, 2), (64,)]), (1,)

    # ---- statements -------------------------------------------------------------------------------------------

    def block_of(self, n: int) -> list[str]:
        vars_, arrays, helpers = len(self.vars), len(self.arrays), len(self.helpers)
        self.depth += 1
        lines: list[str] = []
        for _ in range(n):
            lines += self.statement()
        if self.chance(0.5):
            lines += self.dump(vars_, 2)
        self.depth -= 1
        del self.vars[vars_:], self.arrays[arrays:], self.helpers[helpers:]
        return ["    " + line for line in lines]

    def statement(self) -> list[str]:
        r = self.r
        kinds = [
            (self.store, 16), (self.new_let, 10), (self.new_cell, 10), (self.assign, 10), (self.augment, 8),
            (self.tuple_assign, 5), (self.new_array, 5), (self.vector, 6), (self.store_near, 7), (self.atomic, 3),
            (self.small, 3), (self.call_helper, 4 if self.helpers else 0), (self.leave_loop, 6 if self.in_loop else 0),
            (self.vector_loop, 3),
        ]  # fmt: skip
        if self.depth < 3:
            kinds += [
                (self.branch, 10),
                (self.loop, 12 if self.turns <= 12 else 0),
                (self.while_loop, 5 if self.turns <= 8 else 0),
            ]
        if self.depth == 0:
            kinds += [(self.exchange_shared, 4), (self.define_helper, 5), (self.shared_loop, 2), (self.view, 2)]
            if math.prod(self.block) % 32 == 0:
                kinds += [(self.collective, 200)]
        f = r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        return f()

    def dump(self, first: int, most: int) -> list[str]:
        """Stores what variables hold, lest nothing reads them."""
        made = self.vars[first:] + [Var(name, "int32", "loop", 0) for name, _ in self.loops[-1:]]
        lines = []
        for v in self.r.sample(made, min(most, len(made))):
            outs = [a for a in self.arrays if a.where == "out"]
            same = [a for a in outs if a.t == v.t] or [a for a in outs if a.t != "float8_e8m0fnu"]
            if same:
                lines.append(f"{self.element(self.r.choice(same))} = {v.name}")
        return lines

    def contracted(self) -> list[str]:
        """A product beside a sum: one rounding or two."""
        r = self.r
        outs = [a for a in self.arrays if a.where == "out" and a.t in S.FORMATS and a.t != "float8_e8m0fnu"]
        if not outs:
            return self.store()
        a = r.choice(outs)
        t = a.t if r.random() < 0.7 else self.float_dtype()
        x, y, z = self.leaf(t), self.leaf(t), self.leaf(t)
        product = f"{x} * {y}"
        e = r.choice(
            [f"{product} + {z}", f"{product} - {z}", f"{z} + {product}", f"{z} - {product}", f"-({product}) + {z}"]
        )
        return [f"{self.element(a)} {r.choice(['=', '=', '=', '+=', '-='])} {e}"]

    def dense(self, n: int) -> list[str]:
        """Many stores of small expressions."""
        lines: list[str] = []
        for _ in range(n):
            a = self.r.choice([a for a in self.arrays if a.where == "out"])
            k = self.r.random()
            if k < 0.1:
                lines += self.store_near()
            elif k < 0.14:
                lines += self.vector_loop()
            elif k < 0.2:
                i = self.fresh("i")
                heads = ["range(3)", "range(5, -2, -2)", "range(-1, 8, 3)", "T.unroll(2)", "T.serial(1, 9, step=4)"]
                sign = self.r.choice(["=", "+="]) if a.t not in ("float8_e8m0fnu", "bool") else "="
                self.vars.append(Var(i, "int32", "loop", 1))
                lines.append(f"for {i} in {self.r.choice(heads)}:")
                lines.append(f"    {a.name}[{self.row(a)}, {i} % {a.shape[-1]}] {sign} {self.any_value(a.t)}")
                self.vars.pop()
            else:
                self.constant = self.chance(0.3)
                t = a.t if self.chance(0.5) else self.dtype()
                e = self.expr(t, self.r.choice([1, 1, 2, 2, 3]))
                self.constant = False
                if a.t == "float8_e8m0fnu":
                    e = f"T.abs({self.expr('float32', 1)})"
                lines.append(f"{self.element(a)} = {e}")
        return lines

    def target(self, where=("out", "local")) -> tuple[str, str] | None:
        found = [a for a in self.arrays if a.where in where]
        if not found:
            return None
        a = self.r.choice(found)
        return self.element(a), a.t

    def any_value(self, t: str) -> str:
        """Something that is stored into dtype t: mostly of that dtype."""
        u = t if self.chance(0.65) else self.dtype()
        if t == "float8_e8m0fnu":
            return f"T.abs({self.value('float32')})"
        if self.chance(0.06) and (w := self.weak(t)) is not None:
            return w
        return self.value(u)

    def store(self):
        target = self.target()
        return [f"{target[0]} = {self.any_value(target[1])}"] if target else self.new_let()

    def new_let(self):
        r = self.r
        t, name = self.dtype(), self.fresh("x")
        e = self.value(t)
        k = r.randrange(3)
        if self.chance(0.1) and (self.vars or self.g1):
            u = self.dtype()
            if u != "float8_e8m0fnu":
                line = f"{name}: T.let[T.{u}] = {self.value(t)}"
                self.vars.append(Var(name, u, "let", self.depth))
                return [line]
        text = [f"{name}: T.let = {e}", f"{name}: T.let[T.{t}] = {e}", f"{name} = {e}"][k]
        kind = "let" if k < 2 or not self.g1 else "cell"
        lines = [text]
        self.vars.append(Var(name, t, kind, self.depth))
        if not self.g1 and k == 2 and self.chance(0.15):  # bound again: another variable
            u = self.dtype()
            lines.append(f"{name} = {self.value(u)}")
            self.vars[-1].t = u
        return lines

    def new_cell(self):
        r = self.r
        t, name = self.dtype(), self.fresh("c")
        k = r.random()
        if k < 0.6:
            lines = [f"{name}: T.{t} = {self.any_value(t)}"]
        elif k < 0.75:
            lines = [f"{name}: T.{t}", f"{name} = {self.any_value(t)}"]
        elif k < 0.85 and self.g1:
            lines = [f"{name} = {self.value(t)}"]
        elif k < 0.93:
            lines = [f'{name} = T.alloc_local((1,), "{t}")', f"{name}[0] = {self.any_value(t)}"]
            name += "[0]"  # by its name alone it would be bound itself, not its value
        else:
            # g2: an assignment in an inner block makes it a cell
            lines = [f"{name} = {self.value(t)}", f"if {self.condition(1)}:", f"    {name} = {self.any_value(t)}"]
        self.vars.append(Var(name, t, "cell", self.depth))
        return lines

    def cell(self) -> Var | None:
        cells = [v for v in self.vars if v.kind == "cell"]
        return self.r.choice(cells) if cells else None

    def assign(self):
        c = self.cell()
        if c is None:
            return self.new_cell()
        if c.name[-1] == "]" and self.chance(0.4):
            return [f"{c.name[:-3]} = {self.any_value(c.t)}"]
        if self.chance(0.3):
            d = self.cell()
            element = self.target()
            if element and self.chance(0.35) and element[1] != "float8_e8m0fnu" != c.t:
                return [f"{element[0]} = {c.name} = {self.any_value(c.t)}"]
            if d.name != c.name and "float8_e8m0fnu" not in (c.t, d.t):
                return [f"{c.name} = {d.name} = {self.any_value(c.t)}"]
        return [f"{c.name} = {self.any_value(c.t)}"]

    def augment(self):
        r = self.r
        c = self.cell()
        if c is not None and r.random() < 0.6:
            place, t = c.name, c.t
        else:
            target = self.target()
            if target is None:
                return self.new_cell()
            place, t = target
        if t == "float8_e8m0fnu":
            return [f"{place} = {self.any_value(t)}"]
        if t in S.INTS:
            op = r.choice(["+", "-", "*", "&", "|", "^", "//", "%", "<<", ">>"])
            if op in ("//", "%"):
                return [f"{place} {op}= {r.choice(['3', '7', f'({self.value(t)} | 1)'])}"]
            if op in ("<<", ">>"):
                return [f"{place} {op}= {r.choice(['1', '3', f'({self.value(t)} & 7)'])}"]
        elif t == "bool":
            return [f"{place} {r.choice('&|^')}= {self.value('bool')}"]
        else:
            op = r.choice(["+", "-", "*", "/"])
        return [f"{place} {op}= {self.value(t)}"]

    def tuple_assign(self):
        r = self.r
        cells = [v for v in self.vars if v.kind == "cell" and v.t != "float8_e8m0fnu"]
        if len(cells) >= 2:
            a, b = r.sample(cells, 2)
            if r.random() < 0.5:
                return [f"{a.name}, {b.name} = {b.name}, {a.name}"]
            return [f"{a.name}, {b.name} = {self.any_value(a.t)}, {self.any_value(b.t)}"]
        t, u = self.dtype(), self.dtype()
        a, b = self.fresh("x"), self.fresh("x")
        line = f"{a}, {b} = {self.value(t)}, {self.value(u)}"
        kind = "cell" if self.g1 else "let"
        self.vars += [Var(a, t, kind, self.depth), Var(b, u, kind, self.depth)]
        return [line]

    def new_array(self):
        r = self.r
        t = self.dtype() if self.chance(0.8) else r.choice(["float4_e2m1fn", "float6_e2m3fn", "float8_e4m3fn"])
        name = self.fresh("L")
        shape = r.choice([(2,), (3,), (4,), (4,), (2, 2), (8,)])
        form = r.randrange(3)
        dims = ", ".join(map(str, shape))
        if form == 0:
            lines = [f'{name} = T.alloc_local(({dims},), "{t}")']
        elif form == 1:
            lines = [f'{name} = T.alloc_buffer(({dims},), "{t}", scope="local")']
        else:
            lines = [f"{name}: T.{t}[{dims}]"]
        i = [self.fresh("i") for _ in shape]
        index = ", ".join(i)
        if len(shape) == 2:
            head = f"for {index} in T.grid({dims}):"
        else:
            f = r.choice(["range", "T.serial", "T.unroll", "T.parallel"])
            head = f"for {index} in {f}({dims}):"
        self.loops += list(zip(i, shape, strict=True))
        lines += [head, f"    {name}[{index}] = {self.any_value(t)}"]
        del self.loops[-len(i) :]
        self.arrays.append(Array(name, t, shape, "local"))
        return lines

    def vector(self):
        """Vector values: loads, arithmetic, stores."""
        r = self.r
        outs = [a for a in self.arrays if a.where == "out" and a.shape[-1] >= 2 and a.t not in ("float8_e8m0fnu",)]
        if not outs:
            return self.store()
        a = r.choice(outs)
        n = r.choice([k for k in (2, 4, 8) if k <= a.shape[-1]])
        e, t = self.vector_value(a.t, n, 2)
        at = r.randrange(a.shape[-1] - n + 1) // n * n
        target = r.choice([f"{a.name}[{self.row(a)}, {at}:{at + n}]", f"{a.name}[{self.row(a)}, T.ramp({at}, 1, {n})]"])
        if self.chance(0.3):
            name = self.fresh("v")
            return [f"{name}: T.let = {e}", f"{target} = {self.vector_op(t, n, name)}"]
        if self.chance(0.2) and t != "bool" and S.BITS[t] >= 8:
            name = self.fresh("v")
            lines = [f"{name}: T.{t}x{n} = {e}"]
            if self.chance(0.5):
                lines = [f'{name} = T.alloc_local((1,), "{t}x{n}")', f"{name}[0] = {e}"]
                return [*lines, f"{target} = {name}[0]"]
            return [*lines, f"{name} = {self.vector_op(t, n, name)}", f"{target} = {name}"]
        if self.chance(0.2):
            return [f"{a.name}.vstore([{self.row(a)}, {at}], {self.vector_exact(a.t, n)})"]
        return [f"{target} = {e}"]

    def vector_exact(self, t, n):
        return self.cast_text(f"{t}x{n}", self.vector_value(t, n, 1)[0])

    def vector_op(self, t, n, name):
        r = self.r
        if t == "bool":
            return name
        if t in S.INTS:
            return f"({name} {r.choice('+-*&|^')} {r.choice([name, self.leaf(t), '1', '3'])})"
        if t in S.MINI:
            return f"({name} + {name})" if t != "float8_e8m0fnu" else name
        return f"({name} {r.choice('+-*')} {r.choice([name, self.leaf(t), '2'])})"

    def vector_value(self, t: str, n: int, d: int) -> tuple[str, str]:
        """A vector of n lanes that may be stored into dtype t, and its dtype."""
        r = self.r
        k = r.random()
        if d <= 0 or k < 0.35:
            found = [
                a for a in self.arrays if a.shape[-1] >= n and a.symbol is None and a.where not in ("local", "part")
            ]
            if found:
                a = r.choice(found)
                at = r.randrange(a.shape[-1] - n + 1)
                head = ", ".join([*([self.row(a)] if a.where == "out" else [self.index(m) for m in a.shape[:-1]])])
                head = head + ", " if head else ""
                form = r.randrange(3)
                if form == 0:
                    return f"{a.name}[{head}{at}:{at + n}:1]", a.t
                if form == 1:
                    return f'{a.name}.vload([{head}{at}], "{a.t}x{n}")', a.t
                return f"{a.name}[{head}T.ramp({at}, 1, {n})]", a.t
        if k < 0.5:
            u = self.dtype()
            return f"T.broadcast({self.expr(u, 1)}, {n})", u
        if k < 0.6:
            u = r.choice(["int32", "int64", "int16"])
            return f"T.ramp({self.expr(u, 1)}, {self.literal(u)}, {n})", u
        if k < 0.7:
            e, u = self.vector_value(t, n, d - 1)
            order = ", ".join(str(r.randrange(n)) for _ in range(n))
            return f"T.Shuffle([{e}], [{order}])", u
        if k < 0.8:
            e, u = self.vector_value(t, n, d - 1)
            v = self.float_dtype() if r.random() < 0.5 else self.int_dtype()
            return f'T.cast({e}, "{v}x{n}")', v
        if k < 0.87:
            x, u = self.vector_value(t, n, d - 1)
            y, v = self.vector_value(t, n, d - 1)
            p = S.promote(u, v)
            return f"T.Select({self.condition(1)}, {x}, {y})", p
        x, u = self.vector_value(t, n, d - 1)
        y, v = self.vector_value(t, n, d - 1)
        p = S.promote(u, v)
        if p == "float8_e8m0fnu":
            return x, u
        if p == "bool":
            return f"({x} {r.choice('&|^')} {y})", "bool"
        if r.random() < 0.15:
            return f"({x} {r.choice(['<', '==', '>='])} {y})", "bool"
        if p in S.INTS:
            return f"({x} {r.choice('+-*&|^')} {y})", p
        if r.random() < 0.2:
            return f"T.{r.choice(['min', 'max'])}({x}, {y})", p
        return f"({x} {r.choice('+-*')} {y})", p

    def vector_loop(self):
        r = self.r
        outs = [a for a in self.arrays if a.where == "out" and a.shape[-1] >= 2]
        if not outs:
            return self.store()
        a = r.choice(outs)
        n = r.choice([k for k in (2, 4, 8) if k <= a.shape[-1]])
        i = self.fresh("i")
        self.loops.append((i, n))
        e = self.affine(3) if self.chance(0.35) and a.t != "float8_e8m0fnu" else self.any_value(a.t)
        self.loops.pop()
        return [f"for {i} in T.vectorized({n}):", f"    {a.name}[{self.row(a)}, {i}] = {e}"]

    def store_near(self):
        r = self.r
        a = r.choice([x for x in self.near_arrays])
        where = f"{a.name}[gid, {r.randrange(a.shape[-1])}]"
        if r.random() < 0.8:
            return [f"{where} = T.{r.choice(list(S.NEAR))}({self.value(a.t)})"]
        return [f"{where} = T.{r.choice(list(S.NEAR2))}({self.value(a.t)}, {self.value(a.t)})"]

    def atomic(self):
        r = self.r
        outs = [a for a in self.arrays if a.where == "out" and a.t in ATOMIC and len(a.shape) == 2]
        if outs and r.random() < 0.5:
            a = r.choice(outs)
            pointer = f"{a.name}.ptr_to([gid, {self.index(a.shape[-1])}])"
            name = self.fresh("x")
            if r.random() < 0.5:
                call = f"T.cuda.atomic_add({pointer}, {self.value(a.t)})"
            else:
                call = f"T.cuda.atomic_cas({pointer}, {self.leaf(a.t)}, {self.leaf(a.t)})"
            self.vars.append(Var(name, a.t, "cell", self.depth))
            return [f"{name}: T.{a.t} = {call}"]
        a = self.sums
        return [f"T.cuda.atomic_add({a.name}.ptr_to([{self.index(a.shape[0])}]), {self.value(a.t)})"]

    def small(self):
        k = self.r.randrange(10)
        if k == 0:
            return [f"T.evaluate({self.value('int32')})"]
        if k == 1:
            return [f"assert ({self.value('int32')} | 1) != 0, 'never'"]
        if k == 2:
            return [f"if {self.r.choice(['True', 'False', '1', 'None', '2 > 1'])}:", *self.block_of(1)]
        if k == 3:
            return self.let_expression()
        if k == 4:
            return self.starred()
        plain = ["pass", "T.cuda.thread_fence()", '"""text"""', 'T.attr({"pragma_test": 1})', "T.cuda.nano_sleep(5)"]
        return [plain[k - 5]]

    def let_expression(self):
        t = self.r.choice(["int32", "float32", "int64"])
        v, target = self.fresh("v"), self.target()
        if target is None:
            return ["pass"]
        return [
            f'{v} = T.Var("{v}", "{t}")',
            f"{target[0]} = T.Let({v} * {v} + {self.leaf(t)}, where={{{v}: {self.value(t)}}})",
        ]

    def starred(self):
        a, b, target = self.fresh("x"), self.fresh("y"), self.target()
        t = self.dtype()
        if target is None:
            return ["pass"]
        line = f"{a}, *{b} = {self.value(t)}, {self.value(target[1])}, {self.value(target[1])}"
        self.vars.append(Var(a, t, "let", self.depth))
        return [line, f"{target[0]} = {b}[{self.r.randrange(2)}]"]

    def leave_loop(self):
        c = self.condition(1)
        return [f"if {c}:", f"    {self.r.choice(['break', 'continue'])}"]

    def branch(self):
        r = self.r
        test = self.condition(2) if r.random() < 0.85 else self.value(r.choice(["int32", "float32", "uint8"]))
        lines = [f"if {test}:", *self.block_of(r.choice([1, 2]))]
        if r.random() < 0.25:
            lines += [f"elif {self.condition(1)}:", *self.block_of(1)]
        if r.random() < 0.5:
            lines += ["else:", *self.block_of(r.choice([1, 2]))]
        return lines

    def loop(self):
        r = self.r
        i = self.fresh("i")
        n = r.choice([1, 2, 3, 4])
        form = r.randrange(12)
        extent = n  # the variable is in 0 .. extent-1, if not None
        t = "int32"
        keep = self.in_loop
        if form < 3:
            head = r.choice([f"range({n})", f"range(0, {n})", f"T.serial({n})", f"T.serial(0, {n})",
                             f"T.serial({n}, unroll={r.choice(['True', 'False', '2'])})", f"T.parallel({n})",
                             f'T.serial({n}, annotations={{"pragma_unroll": 1}})'])  # fmt: skip
        elif form < 5:
            step = r.choice([1, 2, 3, -1, -1, -2])
            a, b = r.randrange(-3, 6), r.randrange(-3, 6)
            f = r.choice([f"range({a}, {b}, {step})", f"T.serial({a}, {b}, step={step})",
                          f"T.unroll({a}, {b}, step={step})"])  # fmt: skip
            head, extent, n = f, None, 5
        elif form < 7:
            head = f"T.unroll({n})"
        elif form < 8:
            e = self.value("int32")
            head, extent, n = f"range(({e}) % {n + 1})", n, n
        elif form < 9:
            a, b = self.value("int32"), self.value("int32")
            step = r.choice(["", ", 1", ", 2", ", -1"])
            head, extent, n = f"range(({a}) % 4 - 1, ({b}) % 4{step})", None, 4
        elif form < 10:
            t = r.choice(["int64", "uint32"])
            head, extent = f"range(T.{t}({n}))", n
            if t == "uint32" and r.random() < 0.5:
                head = f'T.serial({n}, dtype="uint32")'
        elif form < 11:
            j, m = self.fresh("i"), r.choice([1, 2, 3])
            second = r.choice([f"{m}", f"(1, {m})"])
            self.loops += [(i, n), (j, m + 1 if second[0] == "(" else m)]
            self.turns, was = self.turns * n * m, self.turns
            self.in_loop = False
            body = self.block_of(r.choice([1, 2]))
            self.in_loop, self.turns = keep, was
            del self.loops[-2:]
            return [f"for {i}, {j} in T.grid({n}, {second}):", *body]
        else:
            items = [r.randrange(-4, 9) for _ in range(n)]
            body_name = i
            self.turns, was = self.turns * n, self.turns
            self.in_loop = False
            body = self.block_of(1)
            self.in_loop, self.turns = keep, was
            return [f"for {body_name} in [{', '.join(map(str, items))}]:", *body]
        if extent is not None and t == "int32":
            self.loops.append((i, extent))
        var = Var(i, t, "loop", self.depth + 1)
        self.vars.append(var)
        self.turns, was = self.turns * n, self.turns
        self.in_loop = True
        body = self.block_of(r.choice([1, 2, 3]))
        self.in_loop, self.turns = keep, was
        self.vars.remove(var)
        if extent is not None and t == "int32":
            self.loops.pop()
        return [f"for {i} in {head}:", *body]

    def while_loop(self):
        r = self.r
        n = self.fresh("n")
        lines = [f"{n}: T.int32 = 0"]
        keep = self.in_loop
        self.turns, was = self.turns * 3, self.turns
        self.in_loop = True
        body = self.block_of(r.choice([1, 2]))
        self.in_loop, self.turns = keep, was
        bound = r.randrange(1, 4)
        test = f"{n} < {bound}" + (f" and {self.condition(1)}" if r.random() < 0.6 else "")
        if r.random() < 0.2:
            return [*lines, "while True:", f"    {n} += 1", f"    if {n} > {bound}:", "        break", *body]
        return [*lines, f"while {test}:", f"    {n} += 1", *body]

    # ---- helpers ----------------------------------------------------------------------------------------------

    def define_helper(self):
        r = self.r
        name = self.fresh("h")
        types = [self.dtype() for _ in range(r.choice([1, 2, 2]))]
        params = [self.fresh("p") for _ in types]
        outer = self.cell() if r.random() < 0.3 else None
        kept = self.vars, self.arrays, self.loops, self.helpers, self.in_loop, self.depth
        inputs = [a for a in self.arrays if a.where == "in"]
        self.vars = [Var(p, t, "let", 0) for p, t in zip(params, types, strict=True)]
        self.arrays, self.loops, self.helpers, self.in_loop, self.depth = inputs, [], [], False, 2
        body = []
        stores = False
        default = r.random() < 0.2
        if default:
            flag = self.fresh("f")
            result_early = None
        if outer is not None and outer.t != "float8_e8m0fnu" and outer.name.isidentifier():
            body += [f"nonlocal {outer.name}", f"{outer.name} = {self.any_value(outer.t)}"]
            stores = True
        elif self.g1 and r.random() < 0.25 and types[0] != "float8_e8m0fnu":
            body += [f"{params[0]} = {self.any_value(types[0])}"]  # the caller's variable, if that is one
            stores = True
        for _ in range(r.randrange(3)):
            body += self.new_let()
        if r.random() < 0.4:
            body += self.branch() if not stores else []
        t = self.dtype()
        if default:
            result_early = self.value(t)
            body += [f"if {flag}:", f"    return {result_early}"]
        body.append(f"return {self.value(t)}")
        self.vars, self.arrays, self.loops, self.helpers, self.in_loop, self.depth = kept
        head = ", ".join(params) + (f", {flag}={r.choice(['True', 'False'])}" if default else "")
        self.helpers.append((name, types, t, stores))
        return ["@T.inline", f"def {name}({head}):", *["    " + line for line in body]]

    def call_helper(self):
        r = self.r
        name, types, t, stores = r.choice(self.helpers)
        args = []
        before = []
        for u in types:
            cells = [v.name for v in self.vars if v.t == u and v.kind == "cell"]
            if cells and r.random() < 0.6:
                args.append(r.choice(cells))
            elif stores:
                x = self.fresh("x")
                before.append(f"{x}: T.{u} = {self.any_value(u)}")
                self.vars.append(Var(x, u, "cell", self.depth))
                args.append(x)
            else:
                args.append(self.leaf(u))
        x = self.fresh("x")
        self.vars.append(Var(x, t, "let", self.depth))
        return [*before, f"{x}: T.let = {name}({', '.join(args)})"]

    # ---- where threads meet -----------------------------------------------------------------------------------

    def exchange_shared(self):
        r = self.r
        t = r.choice([x for x in STORABLE if x != "float8_e8m0fnu"])
        n, name = math.prod(self.block), self.fresh("S")
        forms = [f'T.alloc_shared(({n},), "{t}")', f'T.alloc_buffer(({n},), "{t}", scope="shared")']
        if not self.dynamic:
            forms.append(f'T.alloc_buffer(({n},), "{t}", scope="shared.dyn")')
        scope = r.choice(forms)
        self.dynamic |= "dyn" in scope
        lines = [f"{name} = {scope}", f"{name}[tid] = {self.any_value(t)}", "T.cuda.cta_sync()"]
        self.arrays.append(Array(name, t, (n,), "shared"))
        return lines

    def shared_loop(self):
        r = self.r
        t = r.choice(["int32", "float32", "uint8", "float16", "int64"])
        n, name, i, c = math.prod(self.block), self.fresh("S"), self.fresh("i"), self.fresh("c")
        lines = [f'{name} = T.alloc_shared(({n},), "{t}")', f"{c}: T.{t} = {self.value(t)}"]
        self.vars.append(Var(c, t, "cell", self.depth))
        self.loops.append((i, 3))
        lines += [f"for {i} in range({r.randrange(1, 4)}):", f"    {name}[tid] = {self.value(t)}"]
        use = f"    {c} = {c} {r.choice('+-*')} {name}[(tid + {i}) % {n}]"
        lines += ["    T.cuda.cta_sync()", use, "    T.cuda.cta_sync()"]
        self.loops.pop()
        return lines

    def view(self):
        found = [a for a in self.arrays if a.where == "in" and a.symbol is None and S.BITS[a.t] >= 8]
        if not found:
            return self.store()
        a = self.r.choice(found)
        n = math.prod(a.shape)
        shape = self.r.choice([(n,), (2, n // 2)] if n % 2 == 0 else [(n,)])
        name = self.fresh("W")
        self.arrays.append(
            Array(
                name,
                a.t,
                shape,
                "in",
            )
        )
        self.arrays[-1].where = "view"
        return [f'{name} = T.decl_buffer(({", ".join(map(str, shape))},), "{a.t}", data={a.name}.data)']

    def collective(self):
        r = self.r
        name = self.fresh("x")
        k = r.choice([0, 1, 2, 3, 4, 4, 5, 6])
        if k < 3:
            t = r.choice(["int32", "float32", "uint32", "int64", "float16", "uint8", "float64", "bfloat16"])
            f = r.choice(["", "_up", "_down", "_xor"])
            width = r.choice([32, 32, 16, 8])
            by = str(r.randrange(width)) if r.random() < 0.6 else f"({self.value('int32')}) % {width}"
            call = f"T.tvm_warp_shuffle{f}(0xFFFFFFFF, {self.value(t)}, {by}, {width}, 32)"
        elif k == 3:
            t, call = "uint32", f"T.cuda.ballot_sync(0xFFFFFFFF, {self.condition(2)})"
        elif k == 4:
            t = "int32"
            call = r.choice([f"T.cuda.any_sync(0xFFFFFFFF, {self.condition(2)})",
                             f"T.cuda.syncthreads_and({self.condition(2)})",
                             f"T.cuda.syncthreads_or({self.condition(2)})"])  # fmt: skip
        elif k == 5:
            t = "uint32"
            call = f"T.cuda.reduce_{r.choice(['add', 'min'])}_sync_u32(0xFFFFFFFF, {self.value('uint32')})"
        else:
            t = r.choice(["int32", "uint32", "int64"])
            call = f"T.cuda.warp_{r.choice(['sum', 'min', 'max'])}({self.value(t)})"
            if r.random() < 0.4:
                t, call = "bool", "T.cuda.elect_sync()"
        self.vars.append(Var(name, t, "cell", 0))
        lines = [f"{name}: T.{t} = {call}"]
        outs = [a for a in self.arrays if a.where == "out" and a.t != "float8_e8m0fnu"]
        if outs:
            a = r.choice([a for a in outs if a.t == t] or outs)
            lines.append(f"{self.element(a)} = {name}")
        if r.random() < 0.3:
            lines.append(r.choice(["T.cuda.cta_sync()", "T.cuda.warp_sync()", "T.cuda.warp_sync()"]))
        return lines

    # ---- the kernel -------------------------------------------------------------------------------------------

    def data(self, t, n):
        return [self.number(t) for _ in range(n)]

    def buffer(self, name, shape, t, symbol=None):
        dims = [f'"{symbol}"' if self.g1 else symbol] if symbol else [str(n) for n in shape]
        text = ", ".join(dims) + ","
        self.args[name] = (shape, self.data(t, math.prod(shape)))
        return f'{name}: T.Buffer(({text}), "{t}")' if self.g1 else f"{name}: T.Tensor(({text}), T.{t})"

    def kernel(self) -> str:
        r = self.r
        params = []
        symbol = "n" if r.random() < 0.25 else None
        for k in range(r.choice([2, 3, 4])):
            t = self.dtype() if r.random() < 0.7 else r.choice(STORABLE)
            if S.BITS[t] < 6:
                t = "float8_e5m2"
            use = symbol if k == 0 else None
            shape = (r.randrange(3, 9),) if use else r.choice([(4,), (8,), (5,), (3, 4), (2, 8)])
            self.arrays.append(Array(f"A{k}", t, shape, "in", use))
            params.append(self.buffer(f"A{k}", shape, t, use))
        ins = len(self.arrays)
        for k in range(r.choice([2, 3])):
            t = self.dtype() if r.random() < 0.6 else r.choice(STORABLE)
            if S.BITS[t] < 6:
                t = "float8_e5m2"
            inner = r.choice([2, 3, 4, 8])
            blocks, per = math.prod(self.grid), math.prod(self.block)
            shape = (self.threads, inner) if r.random() < 0.7 else (blocks, per, inner)
            self.arrays.append(Array(f"O{k}", t, shape, "out"))
            params.append(self.buffer(f"O{k}", shape, t))
        t = self.float_dtype()
        self.near_arrays = [Array("N", t, (self.threads, 3), "near")]
        self.near.add("N")
        params.append(self.buffer("N", (self.threads, 3), t))
        self.sums = Array("U", r.choice(ATOMIC), (4,), "sums")
        params.append(self.buffer("U", (4,), self.sums.t))
        for k in range(r.choice([1, 2, 3])):
            t = r.choice([*S.INTS, *S.WIDE, "int32", "float32", "bool"])
            x = self.number(t)
            self.args[f"s{k}"] = x
            self.vars.append(Var(f"s{k}", t, "let", 0))
            params.append(f"s{k}: T.{t}")
        del ins
        self.scalars = list(self.vars)
        if symbol:
            self.vars.append(Var("n", "int32", "let", 0))
        head = [] if self.g1 or not symbol else ['n = T.dynamic("n")', ""]
        lines = self.head()
        self.loops += [("tid", math.prod(self.block))]
        body = []
        kind = r.random()
        if kind < 0.3 and math.prod(self.block) <= 8:
            body += self.dense(20)
        elif kind < 0.36:
            for _ in range(12):
                body += self.contracted()
        else:
            for _ in range(self.size):
                body += self.statement()
            body += self.dump(len(self.scalars) + 2, 4)
        if r.random() < 0.1:
            leave = r.choice(["return", "return", "T.evaluate(T.thread_return())", "T.thread_return()"])
            body += [f"if {self.condition(1)}:", f"    {leave}", *self.store()]
        text = [*head, "@T.prim_func" if self.g1 else "@T.function", f"def k({', '.join(params)}):"]
        return "\n".join([*text, *("    " + line for line in [*lines, *body])]) + "\n"

    def head(self) -> list[str]:
        r = self.r
        self.has_tx = False
        grid, block = ", ".join(map(str, self.grid)), ", ".join(map(str, self.block))
        bx, by = self.block[0], self.block[1] if len(self.block) > 1 else 1
        if self.g1 or r.random() < 0.2:
            names = ", ".join(["tx", "ty", "tz"][: len(self.block)]), ", ".join(["bx", "by"][: len(self.grid)])
            lines = ["T.device_entry()", f"{names[1]} = T.cta_id([{grid}])", f"{names[0]} = T.thread_id([{block}])"]
            x, y, z, b, c = "tx", "ty", "tz", "bx", "by"
            self.has_tx = True
        else:
            lines = [f"T.device_entry(launch=T.cuda.LaunchConfig(grid=({grid},), block=({block},)))"]
            x, y, z = (f'T.cuda.thread_idx("{a}")' for a in "xyz")
            b, c = (f'T.cuda.block_idx("{a}")' for a in "xy")
        tid = (
            x
            + (f" + {bx} * {y}" if len(self.block) > 1 else "")
            + (f" + {bx * by} * {z}" if len(self.block) > 2 else "")
        )
        bid = b + (f" + {self.grid[0]} * {c}" if len(self.grid) > 1 else "")
        lines += [f"tid: T.let = {tid}", f"bid: T.let = {bid}", f"gid: T.let = bid * {math.prod(self.block)} + tid"]
        self.vars += [Var("gid", "int32", "let", 0), Var("bid", "int32", "let", 0)]
        return lines
