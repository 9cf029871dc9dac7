# SPDX-License-Identifier: Apache-2.0
"""Random kernels whose threads meet: Meetings(seed).text, .args, as programs.Program.

Shared memory in phases between barriers of every form, exchange between lanes, atomics, cp.async groups, mbarriers,
bulk copies in rings, clusters. Each cell has one writer a phase, or atomics of one kind that commute; nothing is read
before what orders it, so the result does not depend on the schedule and the emulator has nothing to report.

`self.depth` is 0 where all threads of the CTA execute alike.
"""

from __future__ import annotations

import math

from . import scalars as S
from .expressions import STORABLE, Array, Var
from .pipelines import Pipelines
from .programs import Program

ALL = "T.uint32(4294967295)"
COMMUTING = {  # operations whose order does not matter, by dtype; the types that T.ptx spells
    "uint32": [("add", "u32"), ("min", "u32"), ("max", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"),
               ("inc", "u32"), ("dec", "u32")],
    "int32": [("add", "s32"), ("min", "s32"), ("max", "s32")],
    "uint64": [("add", "u64"), ("min", "u64"), ("max", "u64"), ("and", "b64"), ("or", "b64"), ("xor", "b64")],
    "int64": [("min", "s64"), ("max", "s64")],
}  # fmt: skip


class Part(Array):
    """Shared memory of which a thread may read `size` elements from `base` on."""

    __slots__ = ("base", "size")

    def __init__(self, name, t, shape, base, size):
        super().__init__(name, t, shape, "part")
        self.base, self.size = base, size


class Meetings(Pipelines, Program):
    def shape(self):
        r = self.r
        self.block = r.choice(
            [*[(32,)] * 9, (16, 2), (8, 4), *[(64,)] * 5, (32, 2), (96,), (4, 4, 2), r.choice([(128,), (4, 8, 4)])]
        )
        self.grid = r.choice([*[(1,)] * 8, (2,), (2,), r.choice([(3,), (2, 2)])])
        if math.prod(self.block) * math.prod(self.grid) > 128:  # the reference is slow
            self.grid = (1,) if math.prod(self.block) > 64 or r.random() < 0.8 else (2,)
        self.cluster = 0
        if r.random() < 0.12:
            self.cluster = r.choice([2, 2, 4])
            self.block = r.choice([(32,), (32,), (32,), (64,)]) if self.cluster == 2 else (32,)
            self.grid = (self.cluster * r.choice([1, 1, 1, 2]),)
        self.per = math.prod(self.block)
        self.again = False  # a statement may be executed again by the same threads
        self.top = []  # declarations
        self.params: list[str] = []
        self.barrier_ids = list(range(8, 16))  # of some warps; another set of warps at the same number could meet them
        r.shuffle(self.barrier_ids)
        self.counts: dict = {}  # global results of atomics: (operation, type) -> Array

    # ---- names --------------------------------------------------------------------------------------------------

    def element(self, a):
        if isinstance(a, Part):
            e = self.r.choice([f"(tid + {self.r.randrange(a.size)}) % {a.size}", str(self.r.randrange(a.size)),
                               f"(tid * {self.r.choice([1, 3, 5])} + {self.r.randrange(9)}) % {a.size}"])  # fmt: skip
            return f"{a.name}[{e}]" if a.base == "0" else f"{a.name}[{a.base} + {e}]"
        return super().element(a)

    def place(self, n: int) -> str:
        """An index that each of n threads has for itself."""
        r = self.r
        k = r.randrange(5)
        if k == 0:
            return f"{n - 1} - tid"
        if k == 1:
            a = r.choice([x for x in (1, 3, 5, 7, 11, 13) if math.gcd(x, n) == 1])
            return f"(tid * {a} + {r.randrange(n)}) % {n}"
        if k == 2 and n & (n - 1) == 0:
            return f"tid ^ {r.randrange(n)}"
        return "tid"

    def uniform(self) -> str:
        """A condition that all threads of a CTA find alike."""
        r = self.r
        names = ["bid", *[v.name for v in self.scalars if v.t in ("int32", "int64", "uint8", "int16")]]
        names += [name for name, _ in self.uniform_loops] * 2
        a = r.choice(names)
        return r.choice([f"{a} {r.choice(['<', '>=', '!=', '=='])} {r.randrange(3)}", f"{a} % 2 == {r.randrange(2)}",
                         f"({a} & 3) < {r.randrange(1, 4)}"])  # fmt: skip

    def storable(self, pool=STORABLE) -> str:
        return self.r.choice([t for t in pool if t != "float8_e8m0fnu"])

    def shared(self, n, t, align=0) -> str:
        """A declaration of shared memory, by name."""
        name = self.fresh("S")
        dims = ", ".join(map(str, n)) if isinstance(n, tuple) else f"{n},"
        tail = f", align={align}" if align else ""
        forms = [f'T.alloc_shared(({dims}), "{t}"{tail})', f'T.alloc_buffer(({dims}), "{t}", scope="shared"{tail})']
        self.top.append(f"{name} = {self.r.choice(forms)}")
        return name

    def cell_of(self, t: str, value: str) -> tuple[str, list[str]]:
        name = self.fresh("c")
        return name, [f"{name}: T.{t} = {value}"]

    def keep(self, name: str, t: str) -> None:
        self.vars.append(Var(name, t, "cell", self.depth))

    def constant_word(self, n: int) -> str:
        return self.r.choice([f"T.uint32({n})", str(n)])

    # ---- barriers -----------------------------------------------------------------------------------------------

    def cta_barrier(self) -> list[str]:
        """All threads of the CTA."""
        r = self.r
        k = r.randrange(10)
        n, id_ = self.per, self.constant_word(self.r.randrange(8))
        if k < 4:
            return ["T.cuda.cta_sync()"]
        if k == 4:
            return [f"T.ptx.bar.sync({self.constant_word(0)})"]
        if k == 5:
            return [f"T.ptx.bar.sync({id_}, {self.constant_word(n)})"]
        if k == 6:
            form = r.choice(["barrier.cta.sync.aligned", "barrier.sync.aligned", "bar.cta.sync"])
            return [f'T.ptx["{form}"]({id_}, {self.constant_word(n)})']
        if k == 7:
            name, lines = self.cell_of("int32", f"T.cuda.syncthreads_{r.choice(['and', 'or'])}({self.condition(1)})")
            return [*lines, *self.stored(name)]
        if k == 8 and n == 128:
            return [f"T.cuda.warpgroup_sync({r.randrange(8)})"]
        if k == 8 and n == 32:
            return [r.choice(["T.cuda.warp_sync()", f"T.ptx.bar.warp.sync({ALL})"])]
        if k > 7:
            op, t = r.choice([("popc.u32", "uint32"), ("and.pred", "bool"), ("or.pred", "bool")])
            name, lines = self.cell_of(t, self.literal(t))
            count = r.choice(["", f"{self.constant_word(n)}, "])
            lines.append(f'T.ptx["bar.red.{op}"]({name}, {id_}, {count}{self.condition(1)})')
            return [*lines, *self.stored(name)]
        return ["T.cuda.cta_sync()"]

    def stored(self, name: str) -> list[str]:
        outs = [a for a in self.arrays if a.where == "out" and a.t != "float8_e8m0fnu"]
        return [f"{self.element(self.r.choice(outs))} = {name}"]

    def first(self) -> list[str]:
        """Before memory of an earlier turn is written again."""
        return self.cta_barrier() if self.again else []

    # ---- shared memory in phases --------------------------------------------------------------------------------

    def exchange_shared(self):
        if self.depth or self.r.random() < 0.2 and not self.again and not self.cluster:
            return super().exchange_shared()
        t = self.storable()
        name = self.shared(self.per, t)
        lines = [*self.first(), f"{name}[{self.place(self.per)}] = {self.any_value(t)}", *self.cta_barrier()]
        self.arrays.append(Array(name, t, (self.per,), "shared"))
        return lines

    def rewrite(self):
        found = [a for a in self.arrays if a.where == "shared" and a.shape == (self.per,)]
        if not found:
            return self.exchange_shared()
        a = self.r.choice(found)
        c, lines = self.cell_of(a.t, self.any_value(a.t))
        lines += [*self.cta_barrier(), f"{a.name}[{self.place(self.per)}] = {c}"]
        at = self.arrays.index(a)
        del self.arrays[at]  # what a barrier votes on is read before it
        lines += self.cta_barrier()
        self.arrays.insert(at, a)
        return lines

    def scan(self):
        """Sums of all before, or a tree of sums, in steps of twice the distance."""
        r = self.r
        t = r.choice(["int32", "uint32", "int64", "uint8", "int16"])
        n, name, i = self.per, self.shared(self.per, t), self.fresh("i")
        c, lines = self.cell_of(t, self.value(t))
        if r.random() < 0.5:
            op = r.choice(["+", "^", "|"])
            top = max(1, (n - 1).bit_length() - r.randrange(2))
            lines += [
                *self.first(), f"for {i} in range({top}):", f"    {name}[tid] = {c}",
                *["    " + x for x in self.cta_barrier()], f"    if tid >= (1 << {i}):",
                f"        {c} = {c} {op} {name}[tid - (1 << {i})]", *["    " + x for x in self.cta_barrier()],
            ]  # fmt: skip
        else:
            half = 1 << ((n - 1).bit_length() - 1)
            f = r.choice(["{0} + {1}", "T.min({0}, {1})", "T.max({0}, {1})", "{0} ^ {1}"])
            value = f.format(f"{name}[tid]", f"{name}[tid + ({half} >> {i})]")
            lines += [
                *self.first(), f"{name}[tid] = {c}", *self.cta_barrier(), f"for {i} in range({half.bit_length()}):",
                f"    if tid < ({half} >> {i}) and tid + ({half} >> {i}) < {n}:", f"        {name}[tid] = {value}",
                *["    " + x for x in self.cta_barrier()], f"{c} = {name}[0] + {self.value(t)}",
            ]  # fmt: skip
        self.keep(c, t)
        return lines

    def within_warps(self):
        """What lanes of a warp write for each other."""
        t = self.storable()
        name = self.shared(self.per, t)
        sync = ["T.cuda.warp_sync()", f"T.ptx.bar.warp.sync({ALL})", "T.cuda.warp_sync()"]
        lane = self.r.choice(["tid", "tid", "tid ^ 5", "tid ^ 31"])
        lines = [*self.first(), f"{name}[{lane}] = {self.any_value(t)}", self.r.choice(sync)]
        self.arrays.append(Part(name, t, (self.per,), "tid // 32 * 32", 32))
        lines += self.plain(2)
        self.arrays.pop()
        if self.r.random() < 0.4:
            c, more = self.cell_of(t, self.any_value(t))
            lines += [*more, self.r.choice(sync), f"{name}[tid] = {c}", self.r.choice(sync)]
            self.arrays.append(Part(name, t, (self.per,), "tid // 32 * 32", 32))
            lines += self.plain(1)
            self.arrays.pop()
        return lines

    def some_warps(self):
        """A barrier with a number and a count, for some of the warps; and another for the others."""
        if self.per < 64 or len(self.barrier_ids) < 2:
            return self.within_warps()
        cut = 32 * self.r.randrange(1, self.per // 32)
        t = self.storable()
        name = self.shared(self.per, t)
        lines = self.first()
        a, b = self.barrier_ids.pop(), self.barrier_ids.pop()
        sides = [(0, cut, a), (cut, self.per - cut, b)]
        for k, (base, size, id_) in enumerate(sides):
            if k and self.r.random() < 0.3:
                break
            lines.append("else:" if k else f"if tid < {cut}:")
            body = [f"{name}[tid] = {self.any_value(t)}",
                    f"T.ptx.bar.sync({self.constant_word(id_)}, {self.constant_word(size)})"]  # fmt: skip
            self.arrays.append(Part(name, t, (self.per,), str(base), size))
            body += self.plain(2)
            self.arrays.pop()
            lines += ["    " + x for x in body]
        return lines

    def one_side_waits(self):
        """Producers arrive at a barrier where consumers wait; in a loop with a second one for the way back."""
        if self.per < 64 or len(self.barrier_ids) < 2:
            return self.scan()
        r = self.r
        cut = 32 * r.randrange(1, self.per // 32)
        t, i, n = self.storable(), self.fresh("i"), self.constant_word(self.per)
        name = self.shared(self.per, t)
        full, empty = self.barrier_ids.pop(), self.barrier_ids.pop()
        turns = r.choice([1, 1, 3, 4])
        lines = [*self.first(), f"if tid < {cut}:"]
        store = f"{name}[tid] = {self.any_value(t)}"
        if turns == 1:
            lines += [f"    {store}", f"    T.ptx.bar.arrive({full}, {n})", "else:", f"    T.ptx.bar.sync({full}, {n})"]
            self.arrays.append(Part(name, t, (self.per,), "0", cut))
            lines += ["    " + x for x in self.plain(2)]
            self.arrays.pop()
            return lines
        self.loops.append((i, turns))
        store = f"{name}[tid] = {self.any_value(t)}"
        lines += [f"    for {i} in range({turns}):", f"        T.ptx.bar.sync({empty}, {n})", f"        {store}",
                  f"        T.ptx.bar.arrive({full}, {n})", "else:", f"    T.ptx.bar.arrive({empty}, {n})",
                  f"    for {i} in range({turns}):", f"        T.ptx.bar.sync({full}, {n})"]  # fmt: skip
        self.arrays.append(Part(name, t, (self.per,), "0", cut))
        lines += ["        " + x for x in self.plain(2)]
        self.arrays.pop()
        self.loops.pop()
        lines += [f"        if {i} + 1 < {turns}:", f"            T.ptx.bar.arrive({empty}, {n})"]
        return lines

    # ---- lanes --------------------------------------------------------------------------------------------------

    def collective(self):
        lines: list[str] = []
        for _ in range(self.r.choice([1, 2, 3, 4])):
            lines += self.exchange()
        return lines

    def exchange(self):
        r = self.r
        k = r.randrange(15)
        name = self.fresh("x")
        if k < 3:
            t = r.choice(["int32", "float32", "uint32", "int64", "float16", "uint8", "float64", "bfloat16", "uint64"])
            f = r.choice(["", "_up", "_down", "_xor"])
            width = r.choice([32, 32, 16, 8, 4, 2])
            by = str(r.randrange(width)) if r.random() < 0.6 else f"({self.value('int32')}) % {width}"
            call = f"T.tvm_warp_shuffle{f}({r.choice(['0xFFFFFFFF', ALL])}, {self.value(t)}, {by}, {width}, 32)"
        elif k < 5 or k == 13:
            return self.ptx_shuffle()
        elif k == 5:
            t, call = "uint32", f"T.cuda.ballot_sync(0xFFFFFFFF, {self.condition(2)})"
        elif k == 6:
            t, call = "int32", f"T.cuda.any_sync(0xFFFFFFFF, {self.condition(2)})"
        elif k == 7:
            t = "uint32"
            call = f"T.cuda.reduce_{r.choice(['add', 'min'])}_sync_u32(0xFFFFFFFF, {self.value('uint32')})"
        elif k == 8:
            t = r.choice(["int32", "uint32", "int64", "uint8", "int16"])
            width = r.choice(["", "", ", 16", ", 8", ", 2"])
            call = f"T.cuda.warp_{r.choice(['sum', 'min', 'max'])}({self.value(t)}{width})"
        elif k in (9, 14):
            return self.votes()
        elif k == 10:
            if r.random() < 0.5:
                t, call = "bool", "T.cuda.elect_sync()"
            else:
                x = self.target(("out",))
                if x is None:
                    return self.votes()
                return ["if T.cuda.elect_sync():", f"    {x[0]} = {self.any_value(x[1])}"]
        elif k == 11:
            return self.half_warps()
        elif self.per == 96:
            return self.half_warps()
        else:
            t = r.choice(["int32", "uint32", "int64"])
            n = self.per // 32
            scratch = self.shared(max(n, 1), t)
            call = f"T.cuda.cta_{r.choice(['sum', 'min', 'max'])}({self.value(t)}, {n}, {scratch}.ptr_to([0]))"
            if self.again:
                lines = self.cta_barrier()
                self.keep(name, t)
                return [*lines, f"{name}: T.{t} = {call}"]
        lines = [f"{name}: T.{t} = {call}"]
        if t not in ("bool",) and r.random() < 0.2 and t in S.INTS:  # inside a larger expression
            lines = [f"{name}: T.{t} = {call} {r.choice('+-^')} {self.leaf(t)}"]
        self.keep(name, t)
        outs = [a for a in self.arrays if a.where == "out" and a.t != "float8_e8m0fnu"]
        if outs and r.random() < 0.6:
            lines.append(f"{self.element(r.choice([a for a in outs if a.t == t] or outs))} = {name}")
        return lines

    def ptx_shuffle(self):
        r = self.r
        t, mode, width = (
            r.choice(["int32", "uint32", "float32"]),
            r.choice(["idx", "up", "down", "bfly"]),
            r.choice([32, 32, 16, 8, 4]),
        )
        name, lines = self.cell_of(t, self.literal(t))
        outs = name
        if r.random() < 0.4:
            p, more = self.cell_of("bool", "T.bool(False)")
            lines += more
            outs = f"{name}, {p}"
        c = (32 - width) << 8 | (0 if mode == "up" else 31)
        by = (
            f"T.uint32({r.randrange(32)})"
            if r.random() < 0.5
            else f'T.cast(({self.value("uint32")}) % T.uint32(32), "uint32")'
        )
        chain = r.choice([f'T.ptx["shfl.sync.{mode}.b32"]', f"T.ptx.shfl.sync.{mode}.b32"])
        lines.append(f"{chain}({outs}, {self.cast_text(t, self.value(t))}, {by}, {self.constant_word(c)}, {ALL})")
        self.keep(name, t)
        if "," in outs:
            self.keep(p, "bool")
        return lines

    def votes(self):
        r = self.r
        k = r.randrange(8)
        if k == 7:
            name, lines = self.cell_of("int32", "T.int32(7)")
            p, more = self.cell_of("bool", "T.bool(False)")
            lines += [*more, f'T.ptx["elect.sync"]({name}, {p}, {ALL})']
            self.keep(name, "int32")
            self.keep(p, "bool")
        elif k == 0:
            name, lines = self.cell_of("bool", "T.bool(False)")
            test = self.condition(2) if r.random() < 0.5 else self.uniform()
            lines.append(
                f'T.ptx["vote.sync.{r.choice(["all", "any", "uni"])}.pred"]({name}, {self.condition(2)}, {ALL})'
            )
            self.keep(name, "bool")
        elif k == 1:
            name, lines = self.cell_of("uint32", "T.uint32(7)")
            lines.append(f'T.ptx["vote.sync.ballot.b32"]({name}, {self.condition(2)}, {ALL})')
            self.keep(name, "uint32")
        elif k < 4:
            t = r.choice(["uint32", "uint64"])
            how = r.choice(["any", "all", "all2"])
            name, lines = self.cell_of("int32", "T.int32(7)")
            outs = name
            if how == "all2":
                p, more = self.cell_of("bool", "T.bool(False)")
                lines += more
                outs += f", {p}"
            v = r.choice([self.value(t), f'T.cast(({self.value(t)}) % T.{t}(4), "{t}")', f"T.{t}(3)"])
            lines.append(f'T.ptx["match.{how[:3]}.sync.b{S.BITS[t]}"]({outs}, T.cast({v}, "{t}"), {ALL})')
            self.keep(name, "int32")
            if how == "all2":
                self.keep(p, "bool")
        else:
            op, kind, t = r.choice([("add", "u32", "uint32"), ("min", "s32", "int32"), ("max", "u32", "uint32"),
                                    ("max", "s32", "int32"), ("add", "s32", "int32"), ("min", "u32", "uint32"),
                                    ("and", "b32", "int32"), ("or", "b32", "int32"),
                                    ("xor", "b32", "int32")])  # fmt: skip
            name, lines = self.cell_of(t, self.literal(t))
            lines.append(f'T.ptx["redux.sync.{op}.{kind}"]({name}, {self.cast_text(t, self.value(t))}, {ALL})')
            self.keep(name, t)
        return lines

    def half_warps(self):
        """Lanes that exchange among themselves while the others do something else."""
        r = self.r
        t = r.choice(["int32", "uint32", "float32", "int64"])
        c, lines = self.cell_of(t, self.value(t))
        cut = r.choice([16, 16, 8])
        low = (1 << cut) - 1
        for k, (head, mask) in enumerate([(f"if tid % 32 < {cut}:", low), ("else:", 0xFFFFFFFF ^ low)]):
            if k and r.random() < 0.4:
                break
            width = min(cut, 16) if k == 0 else 8
            f = r.choice(["", "_up", "_down", "_xor"])
            by = str(r.randrange(width))
            members = r.choice([hex(mask), f"T.uint32({mask})"])
            call = f"T.tvm_warp_shuffle{f}({members}, {self.value(t)}, {by}, {width}, 32)"
            if t != "int64" and t in S.INTS and r.random() < 0.3:
                call = f"T.cast(T.cuda.ballot_sync(T.uint32({mask}), {self.condition(1)}), T.{t})"
            lines += [head, f"    {c} = {call}"]
            if r.random() < 0.3:
                lines.append(f"    T.cuda.warp_sync({hex(mask)})")
        self.keep(c, t)
        if r.random() < 0.5:
            lines.append("T.cuda.warp_sync()")
        return lines

    # ---- atomics ------------------------------------------------------------------------------------------------

    def atomic_operand(self, op: str, t: str, limit: str) -> str:
        return limit if op in ("inc", "dec") else f'T.cast({self.value(t)}, "{t}")'

    def atomic_call(self, op, kind, t, space, pointer, limit) -> list[str]:
        """One operation whose old value nobody uses."""
        r = self.r
        v = self.atomic_operand(op, t, limit)
        k = r.random()
        if op == "add" and k < 0.3:
            return [f"T.cuda.atomic_add({pointer}, {v})"]
        sem = r.choice(["", "", ".relaxed.gpu" if space == "global" else ".relaxed.cta"])
        where = r.choice([space, space, ""]) if space == "global" else r.choice([space, space, "shared::cta", ""])
        where = "." + where if where else ""
        if k < 0.75:
            return [f'T.ptx["red{sem}{where}.{op}.{kind}"]({pointer}, {v})']
        name, lines = self.cell_of(t, "0")
        return [*lines, f'T.ptx["atom{sem}{where}.{op}.{kind}"]({name}, {pointer}, {v})']

    def perhaps(self, lines: list[str]) -> list[str]:
        """Some threads, or some times."""
        k = self.r.random()
        if k < 0.35:
            return [f"if {self.condition(1)}:", *("    " + x for x in lines)]
        if k < 0.55:
            i = self.fresh("i")
            return [f"for {i} in range({self.r.choice([2, 3])}):", *("    " + x for x in lines)]
        return lines

    def shared_atomics(self):
        r = self.r
        t = r.choice(list(COMMUTING))
        op, kind = r.choice(COMMUTING[t])
        m, limit = r.choice([1, 2, 4, 5, 32]), f"T.{t}({r.choice([2, 5, 9, 100])})"
        name = self.shared(m, t)
        lines = [*self.first(), f"if tid < {m}:", f"    {name}[tid] = {self.any_value(t)}", *self.cta_barrier()]
        for _ in range(r.choice([1, 1, 2])):
            lines += self.perhaps(self.atomic_call(op, kind, t, "shared", f"{name}.ptr_to([{self.index(m)}])", limit))
        if t == "uint32" and op == "add" and r.random() < 0.4:
            # tickets: who gets which is open, their sum is not
            other = self.shared(2, t)
            x, more = self.cell_of(t, f"T.cuda.atomic_add({other}.ptr_to([0]), T.uint32({r.choice([1, 3])}))")
            start = [
                f"if tid == {r.randrange(self.per)}:",
                f"    {other}[0] = {self.literal(t)}",
                f"    {other}[1] = 0",
            ]
            lines = [*self.first(), *start, *lines, *more, f'T.ptx["red.shared.add.u32"]({other}.ptr_to([1]), {x})']
            lines += self.cta_barrier()
            self.arrays.append(Array(other, t, (2,), "shared"))
        else:
            lines += self.cta_barrier()
        self.arrays.append(Array(name, t, (m,), "shared"))
        return lines

    def global_atomics(self):
        r = self.r
        t = r.choice(list(COMMUTING))
        op, kind = r.choice(COMMUTING[t])
        if (op, kind) not in self.counts:
            a = Array(self.fresh("U"), t, (r.choice([1, 3, 4]),), "sums")
            self.counts[op, kind] = a, f"T.{t}({r.choice([2, 5, 9, 100])})"
            self.params.append(self.buffer(a.name, a.shape, t))
        a, limit = self.counts[op, kind]
        return self.perhaps(
            self.atomic_call(op, kind, t, "global", f"{a.name}.ptr_to([{self.index(a.shape[0])}])", limit)
        )

    def own_atomics(self):
        """Cells that only this thread touches: the old value is defined."""
        r = self.r
        found = [
            a
            for a in self.arrays
            if a.where == "out" and a.t in ("uint32", "int32", "uint64", "int64") and len(a.shape) == 2
        ]
        if not found:
            return self.global_atomics()
        a = r.choice(found)
        s = "s" if a.t[0] == "i" else "u"
        bits = S.BITS[a.t]
        ops = [("add", f"{s}{bits}"), ("min", f"{s}{bits}"), ("max", f"{s}{bits}"), ("and", f"b{bits}"),
               ("or", f"b{bits}"), ("xor", f"b{bits}"), ("exch", f"b{bits}"), ("cas", f"b{bits}")]  # fmt: skip
        ops += [("inc", "u32"), ("dec", "u32")] if a.t == "uint32" else []
        op, kind = r.choice([o for o in ops if o != ("add", "s64")])
        x, lines = self.cell_of(a.t, "0")
        v = f'T.cast({self.value(a.t)}, "{a.t}")'
        if op == "cas":
            v = f'T.cast({self.leaf(a.t)}, "{a.t}"), {v}'
        lines.append(f'T.ptx["atom.global.{op}.{kind}"]({x}, {a.name}.ptr_to([gid, {self.index(a.shape[-1])}]), {v})')
        self.keep(x, a.t)
        return lines

    # ---- statements ---------------------------------------------------------------------------------------------

    def plain(self, n: int) -> list[str]:
        """Statements without meetings, which may read what is in scope now; their variables end with them."""
        kept = len(self.vars), len(self.arrays), len(self.helpers), self.in_loop
        self.depth += 2
        self.in_loop = False
        lines: list[str] = []
        for _ in range(n):
            lines += self.statement()
        lines += self.dump(kept[0], 2)
        self.depth -= 2
        del self.vars[kept[0] :], self.arrays[kept[1] :], self.helpers[kept[2] :]
        self.in_loop = kept[3]
        return lines or ["pass"]

    def store_near(self):
        return self.store()

    def value(self, t):
        """Less deep: there are many threads."""
        return self.expr(t, self.r.choice([0, 1, 1, 2]))

    def uniform_block(self, n: int) -> list[str]:
        kept = len(self.vars), len(self.arrays), len(self.helpers)
        self.level += 1
        lines = self.dump(kept[0], 1)
        for _ in range(n):
            lines += self.meeting()
            if self.r.random() < 0.2:
                lines += self.plain(1)
        lines += self.dump(kept[0], 2)
        self.level -= 1
        del self.vars[kept[0] :], self.arrays[kept[1] :], self.helpers[kept[2] :]
        return ["    " + x for x in lines]

    def uniform_loop(self):
        r = self.r
        i, n = self.fresh("i"), r.choice([2, 2, 3])
        was, self.again = self.again, True
        self.loops.append((i, n))
        self.uniform_loops.append((i, n))
        head = r.choice([f"range({n})", f"T.serial({n})", f"T.unroll({n})", f"range(0, {n}, 1)"])
        lines = [f"for {i} in {head}:", *self.uniform_block(r.choice([1, 2]))]
        self.loops.pop()
        self.uniform_loops.pop()
        self.again = was
        return lines

    def uniform_branch(self):
        lines = [f"if {self.uniform()}:", *self.uniform_block(1)]
        if self.r.random() < 0.5:
            lines += ["else:", *self.uniform_block(1)]
        return lines

    def meeting(self) -> list[str]:
        r = self.r
        kinds = [
            (self.exchange_shared, 6), (self.rewrite, 5), (self.scan, 4), (self.within_warps, 5), (self.some_warps, 4),
            (self.one_side_waits, 4), (self.collective, 12), (self.shared_atomics, 6), (self.global_atomics, 4),
            (self.own_atomics, 3), (self.copy_ring, 3),
        ]  # fmt: skip
        if self.level < 2:
            kinds += [(self.uniform_loop, 4), (self.uniform_branch, 4)]
        if self.level == 0:
            kinds += self.pipelines()
        return r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    # ---- the kernel ---------------------------------------------------------------------------------------------

    def kernel(self) -> str:
        r = self.r
        self.level, self.uniform_loops, self.scalars = 0, [], []
        self.turns = 4  # loops of plain statements are short
        self.near_arrays = []
        for k in range(r.choice([1, 2, 3])):
            t = self.dtype() if r.random() < 0.7 else r.choice(STORABLE)
            t = "float8_e5m2" if S.BITS[t] < 6 else t
            shape = r.choice([(4,), (8,), (5,), (3, 4), (2, 8), (32,)])
            self.arrays.append(Array(f"A{k}", t, shape, "in"))
            self.params.append(self.buffer(f"A{k}", shape, t))
        for k in range(r.choice([2, 3])):
            t = r.choice(["int32", "uint32", "float32", "int64"]) if k == 0 or r.random() < 0.3 else self.storable()
            shape = (self.threads, r.choice([2, 3, 4]))
            self.arrays.append(Array(f"O{k}", t, shape, "out"))
            self.params.append(self.buffer(f"O{k}", shape, t))
        self.sums = Array("U", "uint64", (4,), "sums")
        self.params.append(self.buffer("U", (4,), "uint64"))
        for k in range(r.choice([1, 2])):
            t = r.choice(["int32", "int32", "int64", "uint8", "float32"])
            self.args[f"s{k}"] = self.number(t)
            self.vars.append(Var(f"s{k}", t, "let", 0))
            self.params.append(f"s{k}: T.{t}")
        self.scalars = list(self.vars)
        lines = self.head()
        self.loops.append(("tid", self.per))
        body = []
        for t in ("int32", r.choice(["int32", "uint32", "int64"])):  # what statements of loops add to
            name, more = self.cell_of(t, self.any_value(t))
            self.keep(name, t)
            body += more
        for _ in range(r.choice([2, 2, 3])):
            body += self.meeting()
            if r.random() < 0.3:
                body += self.plain(1)
        body += self.dump(len(self.scalars) + 2, 4)
        if self.cluster:
            body.append("T.cuda.cluster_sync()")
        text = ["@T.prim_func" if self.g1 else "@T.function", f"def k({', '.join(self.params)}):"]
        return "\n".join([*text, *("    " + line for line in [*lines, *self.top, *body])]) + "\n"

    def head(self):
        if not self.cluster:
            return super().head()
        r = self.r
        n, size = self.grid[0] // self.cluster, self.cluster
        self.has_tx = False
        block = ", ".join(map(str, self.block))
        if self.g1 or r.random() < 0.3:
            lines = ["T.device_entry()", f"cl = T.cluster_id([{n}])", f"rank = T.cta_id_in_cluster([{size}])",
                     f"tx = T.thread_id([{block}])", "tid: T.let = tx", f"bid: T.let = cl * {size} + rank"]  # fmt: skip
            self.has_tx = True
        else:
            launch = f"T.cuda.LaunchConfig(grid=({n * size},), block=({block},), cluster=({size},))"
            lines = [f"T.device_entry(launch={launch})", 'tid: T.let = T.cuda.thread_idx("x")',
                     'bid: T.let = T.cuda.block_idx("x")', "rank: T.let = T.cuda.cluster_ctarank()"]  # fmt: skip
        lines.append(f"gid: T.let = bid * {self.per} + tid")
        self.vars += [Var("gid", "int32", "let", 0), Var("bid", "int32", "let", 0)]
        return lines
