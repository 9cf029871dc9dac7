# SPDX-License-Identifier: Apache-2.0
"""Where threads meet: groups of threads that run in step, barriers, mbarriers, exchange between lanes.

A group executes a body statement by statement. Between the places where threads meet its threads run one after the
other; where they part, each part is a group of its own; who waits gives way to the other groups. Nothing of tirx.
"""

from __future__ import annotations

import ast
import functools

from . import scalars as S
from .machine import Buf, Ptr, as_int, is_T, number, ptx_tokens, truth
from .scalars import V

TURNS = 20_000  # of all loops of one thread
MEET = {
    "cuda.cta_sync", "cuda.warp_sync", "tvm_warp_shuffle", "tvm_warp_shuffle_up", "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_xor", "cuda.ballot_sync", "cuda.any_sync", "cuda.reduce_add_sync_u32", "cuda.reduce_min_sync_u32",
    "cuda.syncthreads_and", "cuda.syncthreads_or", "cuda.elect_sync", "cuda.warp_sum", "cuda.warp_min", "cuda.warp_max",
    "cuda.cta_sum", "cuda.cta_min", "cuda.cta_max", "cuda.warpgroup_sync", "cuda.cluster_sync", "cuda.mbarrier_wait",
}  # fmt: skip
WARP = {"shfl", "vote", "match", "redux", "elect"}
LAST = {name.rpartition(".")[2] for name in MEET}


class Barrier:
    __slots__ = ("here", "turn", "votes", "results")

    def __init__(self):
        self.here, self.turn, self.votes, self.results = 0, 0, [], {}


class Mbarrier:
    __slots__ = ("expected", "pending", "bytes", "phase")

    def __init__(self, count):
        self.expected = self.pending = count
        self.bytes = self.phase = 0

    def change(self, arrivals=0, bytes_=0):
        self.pending -= arrivals
        self.bytes += bytes_
        if self.pending < 0:
            raise S.Unsure("more arrivals than expected")
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.expected


class Cta:
    __slots__ = ("shared", "barriers", "threads", "rank", "cluster")

    def __init__(self, rank, cluster):
        self.shared, self.barriers, self.threads, self.rank, self.cluster = {}, {}, [], rank, cluster


class Cluster:
    __slots__ = ("ctas", "barrier")

    def __init__(self):
        self.ctas, self.barrier = [], Barrier()


def meets_at(name: str | None) -> bool:
    """Whether threads wait for each other, or exchange, in a call of T.name."""
    if name is None:
        return False
    if not name.startswith("ptx."):
        return name in MEET
    tokens = ptx_tokens(name)
    if tokens[0] in WARP or tokens[0] in ("bar", "barrier"):
        return True
    return tokens[0] == "mbarrier" and tokens[1] in ("try_wait", "test_wait")


class Together:
    """Part of reference.Kernel."""

    progress = 0

    def drive(self, groups) -> None:
        """Generators of groups, in turn, until all have ended."""
        groups = list(groups)
        while groups:
            before = self.progress
            groups = [g for g in groups if next(g, "end") != "end"]
            if groups and self.progress == before:
                raise S.Unsure("dead lock")

    def together(self, body, threads):
        """Statements that all threads execute; apart only between those where they meet."""
        i = 0
        while i < len(body):
            j = i
            while j < len(body) and not self.meets(body[j]):
                j += 1
            if j > i:
                run = self.block_of(tuple(body[i:j]))
                for t in threads:
                    if not t.done and not t.skips:
                        way = run(t.frame)
                        if way == "return":
                            t.done = True
                        elif way:
                            t.skips = way
                self.progress += 1
            if j < len(body):
                yield from self.meet(body[j], [t for t in threads if not t.done and not t.skips])
                j += 1
            i = j

    def meets(self, node) -> bool:
        if not self.may_meet:
            return False
        known = self.known_meetings.get(id(node))
        if known is None:
            known = any(isinstance(n, ast.Call) and meets_at(is_T(n.func)) for n in ast.walk(node))
            self.known_meetings[id(node)] = known
        return known

    def calls_of(self, node) -> list:
        """The calls of an expression or a simple statement where threads meet, inner ones first."""
        found = self.meeting_calls.get(id(node))
        if found is None:
            found = [n for n in ast.walk(node) if isinstance(n, ast.Call) and meets_at(is_T(n.func))]
            found.reverse()
            self.meeting_calls[id(node)] = found
        return found

    def meet(self, n, threads):
        if not threads:
            return
        if isinstance(n, ast.For):
            inside = threads
            for value in list(self.turns(n)(threads[0].frame)):
                marks = [len(t.frame.trail) for t in inside]
                for t in inside:
                    self.bind_target(n.target, value, t.frame)
                yield from self.together(n.body, inside)
                for t, mark in zip(inside, marks, strict=True):
                    t.frame.leave(mark)
                inside = self.next_turn(inside)
            for t in threads:
                t.skips = None
            return
        if isinstance(n, ast.While):
            test, inside = self.expr(n.test), threads
            while inside := [t for t in inside if not t.done and truth(test(t.frame))]:
                for t in inside:
                    t.turns += 1
                    if t.turns > TURNS:
                        raise S.Unsure("endless")
                yield from self.inside(n.body, inside)
                inside = self.next_turn(inside)
            for t in threads:
                t.skips = None
            return
        if isinstance(n, ast.If):
            for call in self.calls_of(n.test):
                yield from self.gather(call, threads)
            test = self.expr(n.test)
            ways = ([], [])
            for t in threads:
                ways[truth(test(t.frame))].append(t)
            groups = [self.inside(n.body if k else n.orelse, ways[k]) for k in (1, 0) if ways[k]]
            while groups:
                groups = [g for g in groups if next(g, "end") != "end"]
                if groups:
                    yield
            return
        for call in self.calls_of(n):
            yield from self.gather(call, threads)
        run = self.block_of((n,))
        for t in threads:
            run(t.frame)

    @staticmethod
    def next_turn(threads):
        """Those that have not left the loop."""
        for t in threads:
            if t.skips == "continue":
                t.skips = None
        return [t for t in threads if not t.skips]

    def inside(self, body, threads):
        marks = [len(t.frame.trail) for t in threads]
        yield from self.together(body, threads)
        for t, mark in zip(threads, marks, strict=True):
            t.frame.leave(mark)

    # ---- who waits ----------------------------------------------------------------------------------------------

    def gather(self, call, threads):
        """One call by all threads of a group; the values are kept for the statement that holds it."""
        name = is_T(call.func)
        if name.startswith("ptx."):
            yield from self.ptx_meet(ptx_tokens(name), call, threads)
            return
        key = id(call)
        args = self.compiled_arguments(call)
        rows = [[number(a(t.frame)) for a in args] for t in threads]
        cta = threads[0].cta
        if name == "cuda.cta_sync":
            yield from self.barrier(cta, 0, threads)
        elif name == "cuda.warpgroup_sync":
            yield from self.barrier(cta, as_int(rows[0][0]), threads, 128)
        elif name == "cuda.cluster_sync":
            self.arrive_at_cluster(threads)
            yield from self.wait_for_cluster(threads)
        elif name in ("cuda.syncthreads_and", "cuda.syncthreads_or"):
            got = yield from self.barrier(cta, 0, threads, None, [truth(r[0]) for r in rows])
            v = all(got) if name.endswith("and") else any(got)
            for t in threads:
                t.got[key] = V("int32", int(v))
        elif name == "cuda.mbarrier_wait":
            yield from self.wait([(self.mbarrier(r[0]), as_int(r[1]), True) for r in rows])
        elif name != "cuda.warp_sync":
            for t, v in zip(threads, self.exchange(name, threads, rows), strict=True):
                t.got[key] = v

    def compiled_arguments(self, call):
        found = self.compiled.get(id(call))
        if found is None:
            found = self.compiled[id(call)] = [self.expr(a) for a in call.args]
        return found

    def barrier(self, cta, number_, threads, count=None, votes=(), waits=True):
        """Gives the votes of all that came."""
        b = cta.barriers.setdefault(number_, Barrier())
        if count is None:
            count = sum(not t.done for t in cta.threads)
        turn = b.turn
        b.here += len(threads)
        b.votes += votes
        self.progress += 1
        if b.here > count:
            raise S.Unsure("more threads than a barrier's count")
        if b.here == count:
            b.results[turn] = b.votes
            b.here, b.votes = 0, []
            b.turn += 1
        elif waits:
            while b.turn == turn:
                yield
            self.progress += 1
        return b.results.get(turn)

    def arrive_at_cluster(self, threads):
        cluster = threads[0].cta.cluster
        b = cluster.barrier
        for t in threads:
            t.arrived = b.turn
        b.here += len(threads)
        self.progress += 1
        if b.here == sum(not t.done for c in cluster.ctas for t in c.threads):
            b.here = 0
            b.turn += 1

    def wait_for_cluster(self, threads):
        b = threads[0].cta.cluster.barrier
        while b.turn == threads[0].arrived:
            yield
        self.progress += 1

    def mbarrier(self, p) -> Mbarrier:
        if type(p) is not Ptr or type(p.buf.data[p.at]) is not Mbarrier:
            raise S.Unsure("no mbarrier")
        return p.buf.data[p.at]

    def wait(self, waits):
        """(mbarrier, parity or phase, is it a parity) of each thread."""
        while waits := [(m, p, by) for m, p, by in waits if (m.phase & 1 == p & 1 if by else m.phase <= p)]:
            yield
        self.progress += 1

    # ---- exchange between lanes ---------------------------------------------------------------------------------

    def by_warps(self, threads, rows):
        """For each thread: its lane, and the rows of the lanes of its warp that take part."""
        warps = {}
        for t, r in zip(threads, rows, strict=True):
            warps.setdefault(self.linear(t) // 32, {})[self.linear(t) % 32] = r
        return [(self.linear(t) % 32, warps[self.linear(t) // 32]) for t in threads]

    def exchange(self, name, threads, rows):
        """The values that the threads get from an operation of all of them."""
        if name in ("cuda.cta_sum", "cuda.cta_min", "cuda.cta_max"):
            return [self.total(name[-3:], [S.typed(r[0]) for r in rows])] * len(threads)
        out = []
        for (lane, warp), r in zip(self.by_warps(threads, rows), rows, strict=True):
            if name.startswith("tvm_warp_shuffle"):
                mode = {"tvm_warp_shuffle": "idx"}.get(name, name.rpartition("_")[2])
                self.named(r[0], warp)
                out.append(S.typed(warp[source(mode, lane, as_int(r[2]), as_int(r[3]))[0]][1]))
            elif name == "cuda.ballot_sync":
                self.named(r[0], warp)
                out.append(V("uint32", sum(1 << k for k, q in warp.items() if truth(q[1]))))
            elif name == "cuda.any_sync":
                self.named(r[0], warp)
                out.append(V("int32", int(any(truth(q[1]) for q in warp.values()))))
            elif name == "cuda.reduce_add_sync_u32":
                out.append(V("uint32", S.wrap("uint32", sum(S.cast("uint32", q[1]).v for q in warp.values()))))
            elif name == "cuda.reduce_min_sync_u32":
                out.append(V("uint32", min(S.cast("uint32", q[1]).v for q in warp.values())))
            elif name == "cuda.elect_sync":
                out.append(V("bool", int(lane == min(warp))))
            else:
                width = as_int(r[1]) if len(r) > 1 else 32
                part = [q for k, q in sorted(warp.items()) if k // width == lane // width]
                out.append(self.total(name[-3:], [S.typed(q[0]) for q in part]))
        return out

    def named(self, mask, warp):
        if as_int(mask) & 0xFFFFFFFF != sum(1 << k for k in warp):
            raise S.Unsure("a mask that does not name the lanes")

    def total(self, op, values):
        t = values[0].t
        if op == "sum" and t in S.FORMATS:
            raise S.Unsure("order of a sum")
        return functools.reduce(lambda a, b: S.binary("+" if op == "sum" else op, a, b), values)

    def ptx_meet(self, tokens, call, threads):
        """An instruction; outputs come first among its operands."""
        head = tokens[0]
        outs = self.outputs_of(tokens, len(call.args))
        args = self.compiled.get(id(call))
        if args is None:
            targets = [self.output(a) for a in call.args[:outs]]
            args = self.compiled[id(call)] = targets, [self.expr(a) for a in call.args[outs:]]
        targets, sources = args
        rows = [[number(a(t.frame)) for a in sources] for t in threads]
        cta = threads[0].cta
        results = None
        if head == "mbarrier":
            parity = "parity" in tokens
            yield from self.wait([(self.mbarrier(r[0]), as_int(r[1]), parity) for r in rows])
            results = [[V("bool", 1)]] * len(threads)
        elif head == "barrier" and "cluster" in tokens:
            if "arrive" in tokens:
                self.arrive_at_cluster(threads)
            else:
                yield from self.wait_for_cluster(threads)
        elif head in ("bar", "barrier") and "warp" not in tokens:
            votes = "red" in tokens
            count = as_int(rows[0][1]) if len(rows[0]) > 1 + votes else None
            cast = [truth(r[-1]) for r in rows] if votes else ()
            got = yield from self.barrier(cta, as_int(rows[0][0]), threads, count, cast, "arrive" not in tokens)
            if votes:
                v = (
                    V("uint32", sum(got))
                    if "popc" in tokens
                    else V("bool", int((all if "and" in tokens else any)(got)))
                )
                results = [[v]] * len(threads)
        elif head in WARP:
            results = [self.lanes(tokens, lane, warp, r, outs)
                       for (lane, warp), r in zip(self.by_warps(threads, rows), rows, strict=True)]  # fmt: skip
        for t, values in zip(threads, results or (), strict=bool(results)):
            for target, v in zip(targets, values, strict=True):
                target(t.frame, v)

    def lanes(self, tokens, lane, warp, r, outs):
        """What one lane gets from shfl, vote, match, redux, elect."""
        self.named(r[-1], warp)
        head, op = tokens[0], tokens[1] if tokens[1] != "sync" else tokens[2] if len(tokens) > 2 else ""
        if head == "shfl":
            c = as_int(r[2])
            width = 32 - (c >> 8 & 31)
            mode = {"bfly": "xor"}.get(op, op)
            j, inside = source(mode, lane, as_int(r[1]), width)
            return [V("bits", bits_of(warp[j][0])), V("bool", int(inside))][:outs]
        if head == "vote":
            votes = {k: truth(q[0]) for k, q in warp.items()}
            if op == "ballot":
                return [V("bits", sum(1 << k for k, v in votes.items() if v))]
            if op == "uni":
                return [V("bool", int(len(set(votes.values())) == 1))]
            return [V("bool", int((all if op == "all" else any)(votes.values())))]
        if head == "match":
            same = sum(1 << k for k, q in warp.items() if bits_of(q[0]) == bits_of(r[0]))
            if op == "any":
                return [V("bits", same)]
            agree = same == sum(1 << k for k in warp)
            return [V("bits", same if agree else 0), V("bool", int(agree))][:outs]
        if head == "elect":
            return [V("bits", min(warp)), V("bool", int(lane == min(warp)))]
        t = {"u32": "uint32", "s32": "int32", "b32": "uint32"}[tokens[-1]]
        sign = {"add": "+", "and": "&", "or": "|", "xor": "^"}.get(op, op)
        values = [S.from_bits(t, bits_of(q[0])) for _, q in sorted(warp.items())]
        return [V("bits", S.to_bits(t, functools.reduce(lambda a, b: S.arith(sign, t, a, b), values)))]

    def peer(self, p: Ptr, cta: Cta, rank: int) -> Ptr:
        """The same place in the shared memory of another CTA of the cluster."""
        key = next(k for k, b in cta.shared.items() if b is p.buf)
        return Ptr(cta.cluster.ctas[rank].shared.setdefault(key, Buf(p.buf.t, p.buf.shape)), p.at)


def bits_of(v) -> int:
    v = S.typed(v)
    return S.to_bits(v.t, v.v)


def source(mode, lane, b, width):
    """The lane that a shuffle reads, and whether that is not itself for want of another."""
    low = lane & ~(width - 1)
    high = low | (width - 1)
    b &= 31
    if mode == "up":
        return (lane - b, True) if lane - b >= low else (lane, False)
    if mode == "down":
        return (lane + b, True) if lane + b <= high else (lane, False)
    if mode == "xor":
        return (lane ^ b, True) if lane ^ b <= high else (lane, False)
    return low | (b & (width - 1)), True
