# SPDX-License-Identifier: Apache-2.0
"""Copies that run beside the threads: cp.async groups, mbarriers, bulk copies, rings that wrap, clusters."""

from __future__ import annotations

from . import scalars as S
from .expressions import Array, Var

LOADED = (
    "int32",
    "uint32",
    "float32",
    "int32",
    "uint8",
    "int16",
    "float16",
    "int64",
    "float64",
    "bfloat16",
    "float8_e5m2",
)
BULK_IN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
BULK_IN_TOO = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
BULK_OUT = "cp.async.bulk.global.shared::cta.bulk_group"
BULK_OVER = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
MULTICAST = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
REDUCED = {"uint32": ("add.u32", "min.u32", "max.u32", "and.b32", "or.b32", "xor.b32", "inc.u32", "dec.u32"),
           "int32": ("add.s32", "min.s32", "max.s32"),
           "uint64": ("add.u64", "min.u64", "max.u64", "and.b64", "or.b64")}  # fmt: skip


class Pipelines:
    """Part of meetings.Meetings."""

    def pipelines(self):
        kinds = [
            (self.copy_ring, 6), (self.rounds, 5), (self.arriving_copies, 4), (self.bulk_ring, 7),
            (self.specialised, 7), (self.bulk_store, 6), (self.announced, 3),
        ]  # fmt: skip
        if self.cluster:
            kinds += [(self.next_cta, 14), (self.over_there, 14), (self.remote_rounds, 10), (self.bulk_over, 12),
                      (self.for_all, 8)]  # fmt: skip
        return kinds

    def source(self, tiles: int, n: int, t: str) -> str:
        """A parameter to copy from, a row a tile."""
        name = self.fresh("G")
        self.params.append(self.buffer(name, (tiles, n), t))
        self.arrays.append(Array(name, t, (tiles, n), "in"))
        return name

    def use(self, name: str, t: str, element: str) -> list[str]:
        """Statements that read an element of a stage."""
        x = self.fresh("x")
        form = self.r.choice([f"{x}: T.{t} = {element}", f"{x}: T.let = {element}"])
        self.vars.append(Var(x, t, "let", self.depth))
        outs = [a for a in self.arrays if a.where == "out" and a.t == t] or [a for a in self.arrays if a.where == "out"]
        a = self.r.choice([a for a in outs if a.t != "float8_e8m0fnu"] or outs)
        lines = [form]
        if t in S.INTS and a.t in S.INTS and self.r.random() < 0.6:
            lines.append(f"{self.element(a)} {self.r.choice('+^-')}= {self.cast_text(a.t, x)}")
        elif a.t != "float8_e8m0fnu":
            lines.append(f"{self.element(a)} = {x}")
        cells = [
            v for v in self.vars if v.kind == "cell" and v.t in ("int32", "uint32", "int64") and v.name.isidentifier()
        ]
        if cells and self.r.random() < 0.4:
            c = self.r.choice(cells)
            lines.append(f"{c.name} = {c.name} * 3 + {self.cast_text(c.t, x)}")
        if self.r.random() < 0.15:
            lines += self.plain(1)
        self.vars.pop()
        return lines

    def stages(self) -> tuple[int, int]:
        """Stages of a ring, and tiles: it wraps three times at least."""
        stages = self.r.choice([1, 2, 2, 2, 3, 4])
        return stages, 3 * stages + self.r.choice([1, 1, 2])

    def over(self, i, tiles) -> str:
        return self.r.choice(
            [f"for {i} in range({tiles}):", f"for {i} in range({tiles}):", f"for {i} in T.serial({tiles}):"]
        )

    # ---- cp.async -----------------------------------------------------------------------------------------------

    def copy_call(self, to: str, at: str, size: int, t: str) -> str:
        r = self.r
        step = S.BITS[t] // 8
        cache = "cg" if size == 16 and r.random() < 0.4 else "ca"
        ahead = r.choice(["", "", "", ".L2::128B", ".L2::64B"])
        tail = ""
        k = r.random()
        if k < 0.25:
            # another part of a stage each time it is filled
            tail = f', T.cast((tid + {{i}}) % {size // step + 1} * {step}, "uint32")'
        elif k < 0.4:
            tail = f", {self.condition(1)}"
        where = r.choice(["shared", "shared", "shared::cta"])
        form = f'T.ptx["cp.async.{cache}.{where}.global{ahead}"]'
        if not ahead and r.random() < 0.3:
            form = f"T.ptx.cp.async_.{cache}.{where.replace('::', '__')}.global_"
        return f"{form}({to}, {at}, {size}{tail})"

    def copy_ring(self):
        """Groups of cp.async in a ring: some stages ahead, a wait that leaves the last groups in flight."""
        r = self.r
        t = r.choice(LOADED)
        step = S.BITS[t] // 8
        size = r.choice([s for s in (4, 8, 16) if s >= step])
        per = size // step
        n = self.per * per
        stages, tiles = self.stages()
        ring = self.shared((stages, n), t, max(16, size))
        g, i = self.source(tiles, n, t), self.fresh("i")
        ahead = r.randrange(1, stages + 1)
        reach = r.choice(["cta", "cta", "warp", "own"])
        sync = {"cta": self.cta_barrier, "warp": lambda: ["T.cuda.warp_sync()"], "own": list}[reach]
        element = {
            "cta": f"(tid * {r.choice([1, 3, 5])} + {r.randrange(n)}) % {n}",
            "warp": f"tid // 32 * {32 * per} + (tid * {r.choice([1, 3])} + {r.randrange(32)}) % {32 * per}",
            "own": f"tid * {per} + {r.randrange(per)}",
        }[reach]
        copy = self.copy_call(f"{ring}.ptr_to([{{s}}, tid * {per}])", f"{g}.ptr_to([{{i}}, tid * {per}])", size, t)
        commit, j = "T.ptx.cp.async_.commit_group()", self.fresh("i")
        lines = self.first()
        lines += [f"for {j} in range({ahead}):", "    " + copy.format(s=j, i=j), f"    {commit}"]
        wait = f"T.ptx.cp.async_.wait_group({ahead - 1})"
        if ahead == 1 and r.random() < 0.3:
            wait = "T.ptx.cp.async_.wait_all()"
        lines.append(self.over(i, tiles))
        self.loops.append((i, tiles))
        body = [wait, *sync(), *self.use(ring, t, f"{ring}[{i} % {stages}, {element}]")]
        self.loops.pop()
        if ahead == stages:  # the stage that was just read is filled again
            body += sync()
        next_ = f"({i} + {ahead})"
        body += [f"if {i} + {ahead} < {tiles}:", "    " + copy.format(s=f"{next_} % {stages}", i=next_)]
        body.append(commit)
        lines += ["    " + x for x in body]
        if r.random() < 0.3:
            lines.append("T.ptx.cp.async_.wait_all()")
        return lines

    # ---- mbarriers ----------------------------------------------------------------------------------------------

    def barriers(self, *groups: tuple[int, int]) -> list:
        """Names of arrays of mbarriers, (how many, arrivals) each; and what initialises them."""
        r = self.r
        names, lines = [], []
        who = r.choice([0, 0, r.randrange(self.per)])
        for n, count in groups:
            name = self.fresh("M")
            self.top.append(f'{name} = T.alloc_shared(({n},), "uint64")')
            names.append(name)
            k = self.fresh("i")
            init = r.choice(["mbarrier.init.shared.b64", "mbarrier.init.shared::cta.b64", "mbarrier.init.b64"])
            if n == 1:
                lines.append(f'    T.ptx["{init}"]({name}.ptr_to([0]), T.uint32({count}))')
            else:
                lines += [
                    f"    for {k} in range({n}):",
                    f'        T.ptx["{init}"]({name}.ptr_to([{k}]), T.uint32({count}))',
                ]
        lines.append("    T.ptx.fence.mbarrier_init.release.cluster()")
        sync = ["T.cuda.cluster_sync()"] if self.cluster else self.cta_barrier()
        return [*names, [f"if tid == {who}:", *lines, *sync]]

    def wait(self, bar: str, parity: str) -> list[str]:
        """For the phase of that parity to complete."""
        r = self.r
        k = r.randrange(6)
        if k < 3:
            return [f"T.cuda.mbarrier_wait({bar}, {parity})"]
        word = f'T.cast({parity}, "uint32")'
        d = self.fresh("d")
        kind = r.choice(["try_wait", "try_wait", "test_wait"])
        where = r.choice(["shared", "shared::cta"])
        sem = r.choice(["", "", ".acquire.cta"])
        call = f'T.ptx["mbarrier.{kind}.parity{sem}.{where}.b64"]({d}[0], {bar}, {word})'
        lines = [f'{d} = T.alloc_local((1,), "bool")', f"{d}[0] = T.bool(False)", f"while not {d}[0]:", f"    {call}"]
        if r.random() < 0.2:
            lines.append("    T.cuda.nano_sleep(20)")
        return lines

    def arrive(self, bar: str, count: int = 1) -> str:
        r = self.r
        sem = r.choice(["", "", ".release.cta"])
        where = r.choice(["shared", "shared::cta"])
        tail = f", T.uint32({count})" if count > 1 or r.random() < 0.2 else ""
        if not sem and r.random() < 0.4:
            return f"T.ptx.mbarrier.arrive.{where.replace('::', '__')}.b64({bar}{tail})"
        return f'T.ptx["mbarrier.arrive{sem}.{where}.b64"]({bar}{tail})'

    def rounds(self):
        """All write, arrive, wait for the phase and read; three phases and more."""
        r = self.r
        t, i = self.storable(), self.fresh("i")
        s = self.shared((2, self.per), t)
        how = r.choice(["all", "all", "warps", "two", "some"])
        # two arrivals at one barrier order everything: a stage is written again two rounds later
        count = {"all": self.per, "warps": self.per // 32, "two": 2 * self.per, "some": self.per}[how]
        m, start = self.barriers((1, count))
        turns = r.choice([3, 4, 5])
        self.loops.append((i, turns))
        store = f"{s}[{i} % 2, {self.place(self.per)}] = {self.any_value(t)}"
        lines = [*start, f"for {i} in range({turns}):", f"    {store}"]
        parity = r.choice([f"{i} % 2", f"{i} & 1"])
        if how == "warps":
            body = ["T.cuda.warp_sync()", "if tid % 32 == 0:", "    " + self.arrive(f"{m}.ptr_to([0])")]
            body += self.wait(f"{m}.ptr_to([0])", parity)
        elif how == "two":
            body = [self.arrive(f"{m}.ptr_to([0])", 2), *self.wait(f"{m}.ptr_to([0])", parity)]
        elif how == "some":  # by the state that the arrival gave
            st, d = self.fresh("w"), self.fresh("d")
            kind = r.choice(["try_wait", "test_wait"])
            body = [f"{st}: T.int64 = 0", f'T.ptx["mbarrier.arrive.shared.b64"]({st}, {m}.ptr_to([0]))',
                    f'{d} = T.alloc_local((1,), "bool")', f"{d}[0] = T.bool(False)", f"while not {d}[0]:",
                    f'    T.ptx["mbarrier.{kind}.shared.b64"]({d}[0], {m}.ptr_to([0]), {st})']  # fmt: skip
        else:
            body = [self.arrive(f"{m}.ptr_to([0])"), *self.wait(f"{m}.ptr_to([0])", parity)]
        body += self.use(s, t, f"{s}[{i} % 2, (tid * {r.choice([1, 3])} + {r.randrange(self.per)}) % {self.per}]")
        self.loops.pop()
        return [*lines, *("    " + x for x in body)]

    def arriving_copies(self):
        """cp.async whose completion arrives at an mbarrier, in a ring; a barrier gives the stages back."""
        r = self.r
        t = r.choice([x for x in LOADED if S.BITS[x] >= 32])
        step = S.BITS[t] // 8
        size = r.choice([s for s in (4, 8, 16) if s >= step])
        per = size // step
        n = self.per * per
        stages, tiles = self.stages()
        ring, g, i, j = self.shared((stages, n), t, 16), self.source(tiles, n, t), self.fresh("i"), self.fresh("i")
        noinc = r.random() < 0.6
        m, start = self.barriers((stages, self.per))
        copy = self.copy_call(f"{ring}.ptr_to([{{s}}, tid * {per}])", f"{g}.ptr_to([{{i}}, tid * {per}])", size, t)
        bar = f"{m}.ptr_to([{{s}}])"
        tell = [f'T.ptx["cp.async.mbarrier.arrive{".noinc" if noinc else ""}.shared.b64"]({bar})']
        if not noinc:
            tell.append(self.arrive(bar))
        fill = [copy, *tell]
        lines = [
            *start,
            f"for {j} in range({stages}):",
            *("    " + x.format(s=j, i=j) for x in fill),
            self.over(i, tiles),
        ]
        self.loops.append((i, tiles))
        body = self.wait(f"{m}.ptr_to([{i} % {stages}])", r.choice([f"{i} // {stages} % 2", f"({i} // {stages}) & 1"]))
        body += self.use(ring, t, f"{ring}[{i} % {stages}, (tid * {r.choice([1, 3])} + {r.randrange(n)}) % {n}]")
        self.loops.pop()
        body += [*self.cta_barrier(), f"if {i} + {stages} < {tiles}:"]
        body += ["    " + x.format(s=f"{i} % {stages}", i=f"({i} + {stages})") for x in fill]
        return [*lines, *("    " + x for x in body)]

    # ---- bulk copies --------------------------------------------------------------------------------------------

    def tile(self) -> tuple[str, int, int]:
        """A dtype, elements of a tile, its bytes (a multiple of 16)."""
        t = self.r.choice(LOADED)
        step = S.BITS[t] // 8
        n = 16 // step * self.r.choice([1, 2, 3, 4, 5, 8])
        return t, n, n * step

    def fetch(self, ring, g, m, n, size, t) -> list[str]:
        """One thread announces a tile and issues its copies; {s} the stage, {i} the tile."""
        r = self.r
        bar, to, at = f"{m}.ptr_to([{{s}}])", f"{ring}.ptr_to([{{s}}, {{o}}])", f"{g}.ptr_to([{{i}}, {{o}}])"
        step = S.BITS[t] // 8
        parts = [(0, size)]
        if size > 16 and r.random() < 0.4:
            cut = 16 * r.randrange(1, size // 16)
            parts = [(0, cut), (cut, size - cut)]
        copies = []
        for at_byte, k in parts:
            form = r.choice([BULK_IN, BULK_IN, BULK_IN_TOO])
            o = at_byte // step
            where, source = to.replace("{o}", str(o)), at.replace("{o}", str(o))
            copies.append(f'T.ptx["{form}"]({where}, {source}, T.uint32({k}), {bar})')
        how = r.randrange(4)
        announce = f'T.ptx["mbarrier.arrive.expect_tx.shared.b64"]({bar}, T.uint32({size}))'
        if how == 0:
            return [*copies, announce]  # the bytes may come first
        if how == 1:
            expect = f'T.ptx["mbarrier.expect_tx.relaxed.cta.shared::cta.b64"]({bar}, T.uint32({size}))'
            return [expect, *copies, self.arrive(bar)]
        return [announce, *copies]

    def bulk_ring(self):
        """One thread fetches tiles stages ahead; all use them; stages come back by a barrier or an mbarrier."""
        r = self.r
        t, n, size = self.tile()
        stages, tiles = self.stages()
        ring, g, i, j = self.shared((stages, n), t, 128), self.source(tiles, n, t), self.fresh("i"), self.fresh("i")
        back = r.random() < 0.4
        if back:
            m, e, start = self.barriers((stages, 1), (stages, self.per))
        else:
            m, start = self.barriers((stages, 1))
        who = r.choice([0, r.randrange(self.per)])
        fill = self.fetch(ring, g, m, n, size, t)
        lines = [*start, f"if tid == {who}:", f"    for {j} in range({stages}):"]
        lines += ["        " + x.format(s=j, i=j) for x in fill]
        lines.append(self.over(i, tiles))
        self.loops.append((i, tiles))
        body = self.wait(f"{m}.ptr_to([{i} % {stages}])", f"{i} // {stages} % 2")
        body += self.use(ring, t, f"{ring}[{i} % {stages}, (tid * {r.choice([1, 3])} + {r.randrange(n)}) % {n}]")
        self.loops.pop()
        body += [self.arrive(f"{e}.ptr_to([{i} % {stages}])")] if back else self.cta_barrier()
        again = self.wait(f"{e}.ptr_to([{i} % {stages}])", f"{i} // {stages} % 2") if back else []
        again += [x.format(s=f"{i} % {stages}", i=f"({i} + {stages})") for x in fill]
        test = f"tid == {who} and {i} + {stages} < {tiles}"
        form = r.randrange(4)
        if form == 0:  # the others go on to the next turn
            body += [f"if not ({test}):", *("    " + x for x in self.plain(1)), "    continue", *again]
        else:
            body += [f"if {test}:", *("    " + x for x in again)]
            if form == 1:
                body += ["else:", *("    " + x for x in self.plain(1))]
        return [*lines, *("    " + x for x in body)]

    def specialised(self):
        """A producer warp and consumer warps, with stage and phase as variables."""
        if self.per < 64:
            return self.bulk_ring()
        r = self.r
        t, n, size = self.tile()
        stages, tiles = self.stages()
        ring, g, i = self.shared((stages, n), t, 128), self.source(tiles, n, t), self.fresh("i")
        warps = self.per // 32
        by_warp = r.random() < 0.6
        producer = r.randrange(warps)
        m, e, start = self.barriers((stages, 1), (stages, (warps - 1) * (1 if by_warp else 32)))
        variables = r.random() < 0.5
        s, ph = self.fresh("n"), self.fresh("n")
        stage, parity, other = (s, ph, f"{ph} ^ 1") if variables else (
            f"{i} % {stages}", f"{i} // {stages} % 2", f"({i} // {stages} + 1) % 2")  # fmt: skip
        step = [f"{s} += 1", f"if {s} == {stages}:", f"    {s} = 0", f"    {ph} ^= 1"] if variables else []
        head = [f"{s}: T.int32 = 0", f"{ph}: T.int32 = 0"] if variables else []
        fill = [x.format(s=stage, i=i) for x in self.fetch(ring, g, m, n, size, t)]
        one = f"if tid == {producer * 32 + r.choice([0, 0, 31])}:"
        loop = [f"for {i} in range({tiles}):", *("    " + x for x in self.wait(f"{e}.ptr_to([{stage}])", other)),
                *("    " + x for x in [*fill, *step])]  # fmt: skip
        lines = [*start, *head, f"if tid // 32 == {producer}:"]
        if r.random() < 0.2 and not variables:  # by an election every time
            loop = [f"for {i} in range({tiles}):", *("    " + x for x in self.wait(f"{e}.ptr_to([{stage}])", other)),
                    "    if T.cuda.elect_sync():", *("        " + x for x in fill)]  # fmt: skip
            lines += ["    " + x for x in loop]
        else:
            lines += ["    " + one, *("        " + x for x in loop)]
        self.loops.append((i, tiles))
        body = self.wait(f"{m}.ptr_to([{stage}])", parity)
        body += self.use(ring, t, f"{ring}[{stage}, (tid * {r.choice([1, 3])} + {r.randrange(n)}) % {n}]")
        self.loops.pop()
        if by_warp:
            body += ["T.cuda.warp_sync()", "if tid % 32 == 0:", "    " + self.arrive(f"{e}.ptr_to([{stage}])")]
        else:
            body.append(self.arrive(f"{e}.ptr_to([{stage}])"))
        lines += ["else:", f"    for {i} in range({tiles}):", *("        " + x for x in [*body, *step])]
        if r.random() < 0.5:
            lines += self.cta_barrier()
        return lines

    def bulk_store(self):
        """Written by threads, then copied or added to global memory by the engine."""
        r = self.r
        reduces = r.random() < 0.4
        if reduces:
            t = r.choice(list(REDUCED))
            step = S.BITS[t] // 8
            n = 16 // step * r.choice([1, 2, 4])
            op = r.choice([x for x in REDUCED[t] if self.threads == self.per or x[:3] not in ("inc", "dec")])
        else:
            t, n, _ = self.tile()
        step = S.BITS[t] // 8
        blocks = self.threads // self.per
        turns = r.choice([1, 1, 2, 3])
        name = self.fresh("P")
        rows = 1 if reduces else blocks * turns
        self.params.append(self.buffer(name, (rows, n), t))
        s, i, k, who = self.shared(n, t, 128), self.fresh("i"), self.fresh("i"), r.choice([0, r.randrange(self.per)])
        self.loops.append((i, turns))
        store = [f"for {k} in range({(n + self.per - 1) // self.per}):", f"    if {k} * {self.per} + tid < {n}:",
                 f"        {s}[{k} * {self.per} + tid] = {self.any_value(t)}"]  # fmt: skip
        self.loops.pop()
        fence = r.choice(["T.ptx.fence.proxy.async_.shared__cta()", 'T.ptx["fence.proxy.async"]()'])
        row = "0" if reduces else f"bid * {turns} + {i}"
        form = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}" if reduces else BULK_OUT
        copy = f'T.ptx["{form}"]({name}.ptr_to([{row}, 0]), {s}.ptr_to([0]), T.uint32({n * step}))'
        if not reduces and n * step > 16 and r.random() < 0.3:
            half = n * step // 32 * 16
            copy = [f'T.ptx["{form}"]({name}.ptr_to([{row}, {o // step}]), {s}.ptr_to([{o // step}]), T.uint32({k_}))'
                    for o, k_ in ((0, half), (half, n * step - half))]  # fmt: skip
        copies = copy if isinstance(copy, list) else [copy]
        last = r.choice(["T.ptx.cp.async_.bulk.wait_group(0)", "T.ptx.cp.async_.bulk.wait_group.read(0)"])
        body = [*store, fence, *self.cta_barrier(), f"if tid == {who}:", *("    " + x for x in copies),
                "    T.ptx.cp.async_.bulk.commit_group()", f"    {last}"]  # fmt: skip
        if turns > 1:
            body += self.cta_barrier()
        lines = [*self.first(), f"for {i} in range({turns}):", *("    " + x for x in body)]
        if "read" in last:
            lines += [f"if tid == {who}:", "    T.ptx.cp.async_.bulk.wait_group(0)"]
        return lines

    def announced(self):
        """Bytes that threads announce and take back themselves; arrivals that drop out."""
        r = self.r
        t, i = self.storable(), self.fresh("i")
        s = self.shared(self.per, t)
        drop = r.random() < 0.4
        m, start = self.barriers((1, self.per + (1 if drop else 0)))
        turns = r.choice([3, 4])
        bar = f"{m}.ptr_to([0])"
        self.loops.append((i, turns))
        lines = [*start]
        if drop:
            lines += ["if tid == 0:", f'    T.ptx["mbarrier.arrive_drop.shared.b64"]({bar})']
        body = [f"{s}[tid] = {self.any_value(t)}"]
        k = r.choice([16, 64, 256])
        if r.random() < 0.6:
            body += [f'T.ptx["mbarrier.expect_tx.relaxed.cta.shared::cta.b64"]({bar}, T.uint32({k}))',
                     f'T.ptx["mbarrier.complete_tx.relaxed.cta.shared::cta.b64"]({bar}, T.uint32({k}))']  # fmt: skip
        body += [self.arrive(bar), *self.wait(bar, f"{i} % 2")]
        body += self.use(s, t, f"{s}[(tid + {r.randrange(self.per)}) % {self.per}]")
        body += self.cta_barrier()
        self.loops.pop()
        return [*lines, f"for {i} in range({turns}):", *("    " + x for x in body)]

    # ---- clusters -----------------------------------------------------------------------------------------------

    def cluster_barrier(self) -> list[str]:
        r = self.r
        if r.random() < 0.6:
            return ["T.cuda.cluster_sync()"]
        al = r.choice(["", ".aligned"])
        between = self.plain(1) if r.random() < 0.5 else []
        return [f'T.ptx["barrier.cluster.arrive{r.choice(["", ".release"])}{al}"]()', *between,
                f'T.ptx["barrier.cluster.wait{r.choice(["", ".acquire"])}{al}"]()']  # fmt: skip

    def address(self, pointer: str, rank: str) -> tuple[str, list[str], str]:
        """The same place in another CTA: its name, how it is made, and the space that it is in."""
        p = self.fresh("q")
        word = f'T.cast({rank}, "uint32")'
        if self.r.random() < 0.5:
            return p, [f"{p}: T.uint64 = 0", f"T.ptx.mapa.u64({p}, {pointer}, {word})"], ""
        call = f"T.ptx.mapa.shared__cluster.u32({p}, T.cuda.cvta_generic_to_shared({pointer}), {word})"
        return p, [f"{p}: T.uint32 = 0", call], ".shared::cluster"

    def next_cta(self):
        """What other CTAs of the cluster have written is read."""
        r = self.r
        t = r.choice(["int32", "uint32", "float32", "uint64"])
        s = self.shared(self.per, t)
        lines = [f"{s}[{self.place(self.per)}] = {self.any_value(t)}", *self.cluster_barrier()]
        for _ in range(r.choice([1, 2])):
            p, how, space = self.address(
                f"{s}.ptr_to([{self.place(self.per)}])", f"(rank + {r.randrange(4)}) % {self.cluster}"
            )
            x, cell = self.cell_of(t, self.literal(t))
            lines += [*how, *cell, f'T.ptx["ld{space}.b{S.BITS[t]}"]({x}, {p})']
            self.keep(x, t)
        return [*lines, *self.cluster_barrier()]

    def over_there(self):
        """Stores, and atomics that commute, into another CTA."""
        r = self.r
        t = r.choice(["int32", "uint32"])
        s, to = self.shared(self.per, t), r.randrange(4)
        lines = []
        if r.random() < 0.5:
            p, how, space = self.address(f"{s}.ptr_to([{self.place(self.per)}])", f"(rank + {to}) % {self.cluster}")
            v = f'T.cast({self.value(t)}, "{t}")'
            lines += [*how, f'T.ptx["st{space}.b32"]({p}, {v})']
        else:
            m = r.choice([1, 2, 5])
            kind = r.choice(["add", "min", "max"])
            lines += [f"{s}[tid] = {self.any_value(t)}", *self.cluster_barrier()]
            p, how, space = self.address(f"{s}.ptr_to([tid % {m}])", f"(rank + {to}) % {self.cluster}")
            v = f'T.cast({self.value(t)}, "{t}")'
            op = r.choice(["red.relaxed.cluster", "red.relaxed.cluster", "red"])
            lines += [*how, f'T.ptx["{op}{space}.{kind}.{"s32" if t == "int32" else "u32"}"]({p}, {v})']
        lines += self.cluster_barrier()
        self.arrays.append(Array(s, t, (self.per,), "shared"))
        return lines

    def remote_rounds(self):
        """Each CTA stores into the next one and arrives at its mbarrier."""
        r = self.r
        i, turns = self.fresh("i"), 3
        s = self.shared((2, self.per), "uint32")
        m, start = self.barriers((1, self.per))
        self.loops.append((i, turns))
        value = f'T.cast({self.value("uint32")}, "uint32")'
        p, how, space = self.address(f"{s}.ptr_to([{i} % 2, {self.place(self.per)}])", f"(rank + 1) % {self.cluster}")
        q, more, bar_space = self.address(f"{m}.ptr_to([0])", f"(rank + 1) % {self.cluster}")
        while not bar_space:
            q, more, bar_space = self.address(f"{m}.ptr_to([0])", f"(rank + 1) % {self.cluster}")
        body = [*how, *more, f'T.ptx["st{space}.b32"]({p}, {value})',
                f'T.ptx["mbarrier.arrive.release.cluster.shared::cluster.b64"]({q})']  # fmt: skip
        d = self.fresh("d")
        body += [f'{d} = T.alloc_local((1,), "bool")', f"{d}[0] = T.bool(False)", f"while not {d}[0]:",
                 f'    T.ptx["mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64"]({d}[0], {m}.ptr_to([0]), '
                 f'T.cast({i} % 2, "uint32"))']  # fmt: skip
        body += self.use(s, "uint32", f"{s}[{i} % 2, (tid + {r.randrange(9)}) % {self.per}]")
        body += ["T.cuda.cluster_sync()"]
        self.loops.pop()
        return [*start, f"for {i} in range({turns}):", *("    " + x for x in body)]

    def bulk_over(self):
        """The engine copies, or single stores go, from one CTA's shared memory to another's."""
        r = self.r
        t, n, size = self.tile()
        s, to = self.shared(n, t, 128), self.shared(n, t, 128)
        if r.random() < 0.3:
            return self.stores_that_arrive()
        m, start = self.barriers((1, 1))
        k, shift = self.fresh("i"), r.randrange(self.cluster)
        store = [f"for {k} in range({(n + self.per - 1) // self.per}):", f"    if {k} * {self.per} + tid < {n}:",
                 f"        {s}[{k} * {self.per} + tid] = {self.any_value(t)}"]  # fmt: skip
        word = f'T.cast((rank + {shift}) % {self.cluster}, "uint32")'
        p, q = self.fresh("q"), self.fresh("q")
        announce = f'T.ptx["mbarrier.arrive.expect_tx.shared.b64"]({m}.ptr_to([0]), T.uint32({size}))'
        lines = [*store, "T.ptx.fence.proxy.async_.shared__cta()", *start, "if tid == 0:", f"    {announce}"]
        lines += [f"    {p}: T.uint32 = 0", f"    {q}: T.uint32 = 0",
                  f"    T.ptx.mapa.shared__cluster.u32({p}, T.cuda.cvta_generic_to_shared({to}.ptr_to([0])), {word})",
                  f"    T.ptx.mapa.shared__cluster.u32({q}, T.cuda.cvta_generic_to_shared({m}.ptr_to([0])), {word})",
                  f'    T.ptx["{BULK_OVER}"]({p}, {s}.ptr_to([0]), T.uint32({size}), {q})']  # fmt: skip
        lines += self.wait(f"{m}.ptr_to([0])", "0")
        lines += self.use(to, t, f"{to}[(tid + {r.randrange(n)}) % {n}]")
        return [*lines, "T.cuda.cluster_sync()"]

    def stores_that_arrive(self):
        r = self.r
        t = r.choice(["uint32", "int32", "float32", "uint64"])
        to, bits = self.shared(self.per, t, 16), S.BITS[t]
        m, start = self.barriers((1, 1))
        rank = f"(rank + {r.randrange(self.cluster)}) % {self.cluster}"
        word = f'T.cast({rank}, "uint32")'
        p, q = self.fresh("q"), self.fresh("q")
        v = self.cast_text(t, self.value(t))
        announce = f'T.ptx["mbarrier.arrive.expect_tx.shared.b64"]({m}.ptr_to([0]), T.uint32({self.per * bits // 8}))'
        kind = {"float32": "f32", "int32": "s32"}.get(t, f"b{bits}")
        adds = t in ("uint32", "int32") and r.random() < 0.4
        there = f"{to}.ptr_to([{self.place(self.per)}])"
        form = f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.{kind}"
        if adds:
            there = f"{to}.ptr_to([tid % {r.choice([1, 3, self.per])}])"
            kind = r.choice(["add", "min", "max"]) + (".s32" if t == "int32" else ".u32")
            form = f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{kind}"
            start = [f"{to}[tid] = {self.any_value(t)}", *start]
        lines = [*start, "if tid == 0:", f"    {announce}", f"{p}: T.uint32 = 0", f"{q}: T.uint32 = 0",
                 f"T.ptx.mapa.shared__cluster.u32({p}, T.cuda.cvta_generic_to_shared({there}), {word})",
                 f"T.ptx.mapa.shared__cluster.u32({q}, T.cuda.cvta_generic_to_shared({m}.ptr_to([0])), {word})",
                 f'T.ptx["{form}"]({p}, {v}, {q})', *self.wait(f"{m}.ptr_to([0])", "0")]  # fmt: skip
        lines += self.use(to, t, f"{to}[(tid + {r.randrange(self.per)}) % {self.per}]")
        return [*lines, "T.cuda.cluster_sync()"]

    def for_all(self):
        """Each CTA fetches a part for all of the cluster."""
        r = self.r
        t, n, size = self.tile()
        s = self.shared((self.cluster, n), t, 128)
        g = self.source(self.cluster, n, t)
        m, start = self.barriers((1, 1))
        mask = (1 << self.cluster) - 1
        announce = f'T.ptx["mbarrier.arrive.expect_tx.shared.b64"]({m}.ptr_to([0]), T.uint32({size * self.cluster}))'
        copy = (
            f'T.ptx["{MULTICAST}"]({s}.ptr_to([rank, 0]), {g}.ptr_to([rank, 0]), T.uint32({size}), {m}.ptr_to([0]), '
            f"T.uint16({mask}))"
        )
        lines = [*start, "if tid == 0:", f"    {announce}", f"    {copy}", *self.wait(f"{m}.ptr_to([0])", "0")]
        lines += self.use(s, t, f"{s}[(tid + {r.randrange(4)}) % {self.cluster}, (tid + {r.randrange(n)}) % {n}]")
        return [*lines, "T.cuda.cluster_sync()"]
