# SPDX-License-Identifier: Apache-2.0
"""T.ptx for the reference: memory, atomics, copies, mbarriers; those where threads meet are in together.py.

A bulk copy is made when it is issued, cp.async when the thread waits for its group: a kernel that is right cannot tell.
"""

from __future__ import annotations

import ast

from . import scalars as S
from .machine import Ptr, as_int, number, truth
from .scalars import V
from .together import Mbarrier, bits_of

SIGNS = {"add": "+", "and": "&", "or": "|", "xor": "^", "min": "min", "max": "max"}
TYPES = {f"{a}{b}": f"{n}{b}" for a, n in (("s", "int"), ("u", "uint"), ("b", "uint")) for b in (8, 16, 32, 64)}
TYPES |= {"f16": "float16", "f32": "float32", "f64": "float64"}
NOTHING = {"fence", "griddepcontrol", "nanosleep", "membar", "prefetch"}


class Instructions:
    """Part of reference.Kernel."""

    @staticmethod
    def outputs_of(tokens, n: int) -> int:
        """How many of n operands are written."""
        head = tokens[0]
        if head == "ld":
            return next((int(t[1:]) for t in tokens if t in ("v2", "v4")), 1)
        if head == "shfl":
            return n - 4
        if head == "match":
            return n - 2
        if head == "elect":
            return 2
        if head == "mbarrier":
            if tokens[1] in ("try_wait", "test_wait"):
                return 1
            return 0
        return int(head in ("atom", "mapa", "vote", "redux") or (head == "bar" and "red" in tokens))

    def output(self, target):
        """(frame, value) -> store; bits take the dtype of what they are stored into."""
        plain = self.assign(target)
        holder = self.holder(target.value if isinstance(target, ast.Subscript) else target)

        def run(frame, value):
            if type(value) is V and value.t == "bits":
                t = holder(frame).t
                value = V(t, S.from_bits(t, value.v & ((1 << S.BITS[t]) - 1)))
            plain(frame, value)

        return run

    def instruction(self, tokens, n):
        """frame -> what T.ptx.…(…) does."""
        head = tokens[0]
        if head in NOTHING or tokens[-1] == "commit_group" and "bulk" in tokens or "prefetch" in tokens:
            return lambda frame: None
        if head == "addr":
            p, k = self.expr(n.args[0]), self.expr(n.args[1])

            def moved(frame):
                q = p(frame)
                return Ptr(q.buf, q.at + as_int(k(frame)) // (S.BITS[q.buf.t] // 8))

            return moved
        run = getattr(self, "ptx_" + head, None)
        if run is None:
            raise S.Unsure("T.ptx." + ".".join(tokens))
        k = self.outputs_of(tokens, len(n.args))
        if head == "mbarrier" and len(n.args) > 1 and getattr(getattr(n.args[1], "func", None), "attr", "") == "ptr_to":
            k, tokens = 1, [*tokens, "state"]  # an arrival that gives its state
        targets, sources = [self.output(a) for a in n.args[:k]], [self.expr(a) for a in n.args[k:]]

        def step(frame):
            got = run(tokens, frame.thread, [number(a(frame)) for a in sources])
            for target, v in zip(targets, got or (), strict=k > 0):
                target(frame, v)

        return step

    # ---- memory -------------------------------------------------------------------------------------------------

    def ptx_mapa(self, tokens, thread, args):
        return [self.peer(args[0], thread.cta, as_int(args[1]))]

    def ptx_ld(self, tokens, thread, args):
        p, t = args[0], TYPES[tokens[-1]]
        k = next((int(x[1:]) for x in tokens if x in ("v2", "v4")), 1)
        return [V("bits", self.word(p, i, t)) for i in range(k)]

    def word(self, p, i, t) -> int:
        if S.BITS[p.buf.t] != S.BITS[t]:
            raise S.Unsure("an access of another size")
        v = self.load(p.buf, p.at + i)
        return S.to_bits(v.t, v.v)

    def ptx_st(self, tokens, thread, args):
        p, t = args[0], TYPES[tokens[-1]]
        if "async" in tokens:
            values, bar = args[1:-1], args[-1]
        else:
            values, bar = args[1:], None
        for i, v in enumerate(values):
            if S.BITS[p.buf.t] != S.BITS[t]:
                raise S.Unsure("an access of another size")
            v = v if type(v) is V and S.BITS[v.t] == S.BITS[t] else S.cast(t, S.typed(v, t))
            p.buf.data[p.at + i] = S.from_bits(p.buf.t, bits_of(v))
        if bar is not None:
            self.mbarrier(bar).change(0, -len(values) * S.BITS[t] // 8)

    def ptx_atom(self, tokens, thread, args):
        p, op, t = args[0], next(x for x in tokens if x in (*SIGNS, "inc", "dec", "exch", "cas")), TYPES[tokens[-1]]
        old = self.word(p, 0, t)
        x = S.from_bits(t, old)
        v = [S.cast(t, S.typed(a, t)).v for a in args[1:]]
        if op == "cas":
            new = v[1] if x == v[0] else x
        elif op == "exch":
            new = v[0]
        elif op == "inc":
            new = 0 if x >= v[0] else x + 1
        elif op == "dec":
            new = v[0] if x == 0 or x > v[0] else x - 1
        else:
            new = S.arith(SIGNS[op], t, x, v[0])
        p.buf.data[p.at] = S.from_bits(p.buf.t, S.to_bits(t, new))
        return [V("bits", old)]

    def ptx_red(self, tokens, thread, args):
        if "async" in tokens:
            self.mbarrier(args[2]).change(0, -S.BITS[TYPES[tokens[-1]]] // 8)
        self.ptx_atom(tokens, thread, args[:2])
        return ()

    # ---- copies -------------------------------------------------------------------------------------------------

    def move(self, to: Ptr, at: Ptr, size: int, given: int | None = None) -> None:
        """size bytes; zeros behind the first `given`."""
        step = S.BITS[to.buf.t] // 8
        if to.buf.t != at.buf.t or size % step or (given or 0) % step:
            raise S.Unsure("a copy of parts of elements")
        given = size if given is None else given
        for k in range(size // step):
            if k * step < given:
                to.buf.data[to.at + k] = self.load(at.buf, at.at + k).v
            else:
                to.buf.data[to.at + k] = 0 if to.buf.t in S.INTS or to.buf.t == "bool" else 0.0

    def ptx_cp(self, tokens, thread, args):
        if "bulk" in tokens:
            return self.bulk(tokens, thread, args)
        if tokens[2] == "mbarrier":
            self.finish(thread, 0, everything=True)
            if "noinc" in tokens:
                self.mbarrier(args[0]).change(1)
            self.progress += 1
        elif tokens[2] == "commit_group":
            thread.groups.append(thread.pending)
            thread.pending = []
        elif tokens[2] == "wait_group":
            self.finish(thread, as_int(args[0]))
        elif tokens[2] == "wait_all":
            self.finish(thread, 0, everything=True)
        else:
            given = None
            if len(args) > 3:
                extra = S.typed(args[3])
                given = (0 if truth(extra) else as_int(args[2])) if extra.t == "bool" else as_int(extra)
            thread.pending.append((args[0], args[1], as_int(args[2]), given))
        return ()

    def finish(self, thread, leave: int, everything=False) -> None:
        """All groups but the last few are complete."""
        done = thread.groups[: max(0, len(thread.groups) - leave)]
        del thread.groups[: len(done)]
        if everything:
            done.append(thread.pending)
            thread.pending = []
        for group in done:
            for copy in group:
                self.move(*copy)

    def bulk(self, tokens, thread, args):
        if "wait_group" in tokens:
            return ()
        to, at, size = args[0], args[1], as_int(args[2])
        reduces = tokens[1] == "reduce"
        if tokens[3 + reduces] == "global":
            if reduces:
                self.reduce(tokens, to, at, size)
            else:
                self.move(to, at, size)
            return ()
        bar = args[3]
        if "multicast::cluster" in tokens:
            for rank in range(len(thread.cta.cluster.ctas)):
                if as_int(args[4]) >> rank & 1:
                    self.move(self.peer(to, thread.cta, rank), at, size)
                    self.mbarrier(self.peer(bar, thread.cta, rank)).change(0, -size)
        else:
            if reduces:
                self.reduce(tokens, to, at, size)
            else:
                self.move(to, at, size)
            self.mbarrier(bar).change(0, -size)
        self.progress += 1
        return ()

    def reduce(self, tokens, to, at, size):
        t = TYPES[tokens[-1]]
        for k in range(size * 8 // S.BITS[t]):
            v = V(t, S.from_bits(t, self.word(Ptr(at.buf, at.at + k), 0, t)))
            self.ptx_atom(tokens, None, [Ptr(to.buf, to.at + k), v])

    # ---- mbarriers ----------------------------------------------------------------------------------------------

    def ptx_mbarrier(self, tokens, thread, args):
        op, p = tokens[1], args[0]
        self.progress += 1
        if op == "init":
            p.buf.data[p.at] = Mbarrier(as_int(args[1]))
            return ()
        m = self.mbarrier(p)
        n = as_int(args[1]) if len(args) > 1 else 1
        state = V("int64", m.phase)
        if op == "inval":
            p.buf.data[p.at] = None
        elif op == "expect_tx":
            m.change(0, n)
        elif op == "complete_tx":
            m.change(0, -n)
        elif "expect_tx" in tokens:
            m.bytes += n
            m.expected -= op == "arrive_drop"
            m.change(1)
        else:
            m.expected -= n * (op == "arrive_drop")
            m.change(n)
        return [state] if "state" in tokens else ()
