# SPDX-License-Identifier: Apache-2.0
"""Calls: functions of the T namespace, methods of buffers, @T.inline helpers, and what of Python stands in kernels."""

from __future__ import annotations

import ast
import functools
import math

from . import scalars as S
from .machine import Buf, Frame, Ptr, as_int, dtype_name, dtype_of, is_T, number, ptx_tokens
from .scalars import V
from .together import MEET, meets_at


class Calls:
    """Half of reference.Kernel."""

    def of_Call(self, n):
        name = is_T(n.func)
        if name is None:
            if isinstance(n.func, ast.Attribute):
                return self.method(n)
            return self.python_call(n)
        if name.startswith("ptx."):
            return self.met(n) if meets_at(name) else self.instruction(ptx_tokens(name), n)
        if name in MEET:
            return self.met(n)
        t = dtype_name(name)
        if t:
            return self.conversion(t, n)
        known = getattr(self, "t_" + name.replace(".", "_"), None)
        if known:
            return known(n)
        args = [self.expr(a) for a in n.args]
        f = FUNCTIONS.get(name)
        if f is None:
            raise S.Unsure(f"T.{name}")
        return lambda frame: f(*[number(a(frame)) for a in args])

    def met(self, n):
        """What the threads got when they met here."""
        key = id(n)
        return lambda frame: frame.thread.got.get(key)

    def conversion(self, t, n):
        a = self.expr(n.args[0])

        def run(frame):
            v = number(a(frame))
            if type(v) is str:
                return V(t, S.rounded(t, float(v)))
            return S.cast(t, v) if type(v) is V else S.literal(t, v)

        if any(isinstance(m, (ast.Name, ast.Attribute, ast.Call)) for m in ast.walk(n.args[0])):
            return run
        value = None

        def once(frame):
            nonlocal value
            if value is None:
                value = run(frame)
            return value

        return once

    def python_call(self, n):
        name = n.func.id
        if name in ("min", "max"):
            args = [self.expr(a) for a in n.args]
            return lambda frame: functools.reduce(lambda a, b: minimum(name, a, b), [number(a(frame)) for a in args])
        if name == "abs":
            a = self.expr(n.args[0])
            return lambda frame: S.absolute(number(a(frame)))
        if name == "round":
            a = self.expr(n.args[0])
            return lambda frame: exact("round", number(a(frame)))
        if name == "sum":
            a = self.expr(n.args[0])
            return lambda frame: functools.reduce(lambda x, y: self.binary("+", x, number(y)), a(frame), 0)
        args = [self.holder(a) for a in n.args]
        words = {k.arg: self.holder(k.value) for k in n.keywords}

        def run(frame):
            return self.call(frame.find(name), frame, [a(frame) for a in args], {k: a(frame) for k, a in words.items()})

        return run

    def call(self, f, frame, args, words):
        """@T.inline: arguments are the caller's variables themselves."""
        inside = Frame(frame.thread, f.frame)
        node = f.node
        inside.outer = frozenset(x for s in node.body if isinstance(s, ast.Nonlocal) for x in s.names)
        names = [a.arg for a in node.args.args]
        for name, default in zip(reversed(names), reversed(node.args.defaults), strict=False):
            inside.names[name] = default.value
        for name, value in [*zip(names, args, strict=False), *words.items()]:
            inside.names[name] = value
        inside.own = frozenset() if self.g1 else frozenset(names)
        inside.cells = self.find_cells(node.body)
        frame.thread.result = None
        self.block_of(tuple(node.body))(inside)
        return frame.thread.result

    def method(self, n):
        base, name = self.holder(n.func.value), n.func.attr
        if name == "astype":
            value, t = self.expr(n.func.value), dtype_of(n.args[0])
            return lambda frame: S.cast(t, number(value(frame)))
        if name == "ptr_to":
            element = self.element(ast.Subscript(n.func.value, ast.Tuple(n.args[0].elts, ast.Load()), ast.Load()))
            return lambda frame: Ptr(*element(frame))
        if name == "vload":
            element = self.element(ast.Subscript(n.func.value, ast.Tuple(n.args[0].elts, ast.Load()), ast.Load()))
            k = S.lanes(dtype_of(n.args[1]))

            def vload(frame):
                buf, at = element(frame)
                return self.load(buf, tuple(range(at, at + k)) if k > 1 else at)

            return vload
        if name == "vstore":
            element = self.element(ast.Subscript(n.func.value, ast.Tuple(n.args[0].elts, ast.Load()), ast.Load()))
            value = self.expr(n.args[1])

            def vstore(frame):
                buf, at = element(frame)
                v = number(value(frame))
                k = S.lanes(v.t)
                self.store(buf, tuple(range(at, at + k)) if k > 1 else at, v)

            return vstore
        raise S.Unsure(name, base)

    def shape_of(self, n):
        extents = [self.expr(e) for e in (n.elts if isinstance(n, (ast.Tuple, ast.List)) else [n])]
        return lambda frame: [as_int(e(frame)) for e in extents]

    def t_alloc_local(self, n):
        shape, t = self.shape_of(n.args[0]), dtype_of(n.args[1])
        return lambda frame: Buf(t, shape(frame))

    def t_alloc_shared(self, n):
        shape, t, key = self.shape_of(n.args[0]), dtype_of(n.args[1]), id(n)
        return lambda frame: frame.thread.cta.shared.setdefault(key, Buf(t, shape(frame)))

    def t_alloc_buffer(self, n):
        scope = next((k.value.value for k in n.keywords if k.arg == "scope"), "local")
        return self.t_alloc_local(n) if scope == "local" else self.t_alloc_shared(n)

    def t_decl_buffer(self, n):
        shape, t = self.shape_of(n.args[0]), dtype_of(n.args[1])
        data = next(self.expr(k.value) for k in n.keywords if k.arg == "data")

        def run(frame):
            p = data(frame)
            if p.buf.t != t:
                raise S.Unsure("another dtype over the same memory")
            return Buf(t, shape(frame), p.buf.data, p.at)

        return run

    def t_cta_id(self, n):
        k = len(n.args[0].elts) if isinstance(n.args[0], ast.List) else 1
        return lambda frame: coordinates(frame.thread.bid, k)

    def t_cluster_id(self, n):
        return lambda frame: V("int32", frame.thread.bid[0] // self.cluster)

    def t_cta_id_in_cluster(self, n):
        return lambda frame: V("int32", frame.thread.cta.rank)

    t_cuda_cluster_id, t_cuda_cluster_ctarank = t_cluster_id, t_cta_id_in_cluster

    def t_cuda_cvta_generic_to_shared(self, n):
        return self.expr(n.args[0])

    def t_thread_id(self, n):
        k = len(n.args[0].elts) if isinstance(n.args[0], ast.List) else 1
        return lambda frame: coordinates(frame.thread.tid, k)

    def t_lane_id(self, n):
        return lambda frame: V("int32", self.linear(frame.thread) % 32)

    def t_warp_id(self, n):
        return lambda frame: V("int32", self.linear(frame.thread) // 32)

    def t_warpgroup_id(self, n):
        return lambda frame: V("int32", self.linear(frame.thread) // 128)

    def t_warp_id_in_wg(self, n):
        return lambda frame: V("int32", self.linear(frame.thread) // 32 % 4)

    def t_thread_id_in_wg(self, n):
        return lambda frame: V("int32", self.linear(frame.thread) % 128)

    t_cuda_lane_id, t_cuda_warp_id, t_cuda_warpgroup_id = t_lane_id, t_warp_id, t_warpgroup_id
    t_cuda_warp_in_warpgroup, t_cuda_thread_in_warpgroup = t_warp_id_in_wg, t_thread_id_in_wg

    def t_cuda_linear_thread_id(self, n):
        return lambda frame: V("int32", self.linear(frame.thread))

    t_cuda_thread_rank = t_cuda_linear_thread_id

    def axis(self, n, of):
        k = "xyz".index(n.args[0].value)
        return lambda frame: V("int32", of(frame.thread)[k])

    def t_cuda_thread_idx(self, n):
        return self.axis(n, lambda t: t.tid)

    def t_cuda_block_idx(self, n):
        return self.axis(n, lambda t: t.bid)

    def t_cuda_block_dim(self, n):
        return self.axis(n, lambda t: self.block)

    def t_cuda_grid_dim(self, n):
        return self.axis(n, lambda t: self.grid)

    def t_cast(self, n):
        a, t = self.expr(n.args[0]), dtype_of(n.args[1])
        return lambda frame: S.cast(t, number(a(frame)))

    def t_Cast(self, n):
        a, t = self.expr(n.args[1]), dtype_of(n.args[0])
        return lambda frame: S.cast(t, number(a(frame)))

    def t_reinterpret(self, n):
        t = next((dtype_of(k.value) for k in n.keywords if k.arg == "ty"), None)
        a = self.expr(n.args[0 if t else 1])
        t = t or dtype_of(n.args[0])
        return lambda frame: S.reinterpret(t, number(a(frame)))

    def t_Select(self, n):
        test, a, b = (self.expr(x) for x in n.args)
        return lambda frame: self.choose(frame, test, a, b, lazy=False)

    def t_if_then_else(self, n):
        test, a, b = (self.expr(x) for x in n.args)
        return lambda frame: self.choose(frame, test, a, b)

    t_select = t_if_then_else

    def t_Let(self, n):
        body, where = self.expr(n.args[0]), n.keywords[0].value
        names, values = [k.id for k in where.keys], [self.expr(v) for v in where.values]

        def run(frame):
            mark = len(frame.trail)
            for name, v in zip(names, values, strict=True):
                frame.bind(name, S.cast(number(frame.find(name)).t, S.typed(number(v(frame)))))
            r = number(body(frame))
            frame.leave(mark)
            return r

        return run

    def t_Var(self, n):
        v = V(dtype_of(n.args[1]), 0)
        return lambda frame: v

    def dtype_argument(self, n):
        return next((dtype_of(k.value) for k in n.keywords if k.arg in ("ty", "dtype")), None) or dtype_of(n.args[-1])

    def t_infinity(self, n):
        t = self.dtype_argument(n)
        return lambda frame: V(t, math.inf)

    def t_max_value(self, n):
        t = self.dtype_argument(n)
        return lambda frame: V(t, S.limits(t)[1] if t in S.INTS else S.LARGEST[t])

    def t_min_value(self, n):
        t = self.dtype_argument(n)
        return lambda frame: V(t, S.limits(t)[0] if t in S.INTS else -S.LARGEST[t])

    def t_address_of(self, n):
        element = self.element(n.args[0])
        return lambda frame: Ptr(*element(frame))

    def t_ptr_byte_offset(self, n):
        p, k, t = self.expr(n.args[0]), self.expr(n.args[1]), self.dtype_argument(n)

        def run(frame):
            q = p(frame)
            return Ptr(q.buf, q.at + as_int(k(frame)) // (S.BITS[t] // 8))

        return run

    def t_isnullptr(self, n):
        p = self.expr(n.args[0])

        def run(frame):
            p(frame)
            return V("bool", 0)

        return run

    def t_cuda_ldg(self, n):
        p = self.expr(n.args[0])

        def run(frame):
            q = p(frame)
            return self.load(q.buf, q.at)

        return run

    def t_cuda_atomic_add(self, n):
        p, v = self.expr(n.args[0]), self.expr(n.args[1])

        def run(frame):
            q = p(frame)
            old = self.load(q.buf, q.at)
            q.buf.data[q.at] = S.arith("+", old.t, old.v, S.cast(old.t, number(v(frame))).v)
            return old

        return run

    def t_cuda_atomic_cas(self, n):
        p, want, new = (self.expr(a) for a in n.args)

        def run(frame):
            q = p(frame)
            old = self.load(q.buf, q.at)
            w, v = (S.cast(old.t, S.typed(number(e(frame)), old.t)).v for e in (want, new))
            if S.to_bits(old.t, old.v) == S.to_bits(old.t, w):
                q.buf.data[q.at] = v
            return old

        return run

    def t_evaluate(self, n):
        return self.expr(n.args[0])

    def t_Shuffle(self, n):
        vectors = [self.expr(e) for e in n.args[0].elts]
        indices = [e.value for e in n.args[1].elts]

        def run(frame):
            values = [number(v(frame)) for v in vectors]
            flat = [x for v in values for x in (v.v if type(v.v) is tuple else (v.v,))]
            t, out = S.scalar(values[0].t), tuple(flat[i] for i in indices)
            return V(f"{t}x{len(out)}", out) if len(out) > 1 else V(t, out[0])

        return run

    def t_ramp(self, n):
        base, stride, k = self.expr(n.args[0]), self.expr(n.args[1]), n.args[2].value

        def run(frame):
            a, b = S.pair(number(base(frame)), number(stride(frame)))
            t = S.promote(a.t, b.t)
            a, b = S.cast(t, a).v, S.cast(t, b).v
            return V(f"{t}x{k}", tuple(S.wrap(t, a + b * i) for i in range(k)))

        return run

    t_Ramp = t_ramp

    def t_broadcast(self, n):
        a, k = self.expr(n.args[0]), n.args[1].value

        def run(frame):
            v = S.typed(number(a(frame)))
            return V(f"{v.t}x{k}", (v.v,) * k)

        return run

    t_Broadcast = t_broadcast


def coordinates(xyz, k):
    values = [V("int32", x) for x in xyz[:k]]
    return values if k > 1 else values[0]


def minimum(op, a, b):
    if type(a) is not V and type(b) is not V:
        return min(a, b) if op == "min" else max(a, b)
    return S.binary(op, a, b)


def quotient(op, a, b):
    """Of plain numbers a plain number, which takes the dtype of what it meets."""
    r = S.binary(op, a, b)
    return r if type(a) is V or type(b) is V else r.v


def exact(name, a):
    a = S.to_float(a)
    t, f = S.scalar(a.t), S.EXACT[name]
    return S.map_lanes(t, lambda x: S.rounded(t, f(x)), a.v)


def near(name, a):
    a = S.to_float(a)
    t, f = S.scalar(a.t), S.NEAR[name]
    return S.map_lanes(t, lambda x: S.rounded(t, f(x)), a.v)


def of_two(f, a, b):
    a, b = S.pair(a, b)
    t = S.promote(S.scalar(a.t), S.scalar(b.t))
    t = t if t in S.FORMATS else "float32"
    a, b = S.cast(t, a), S.cast(t, b)
    return S.map_lanes(t, lambda x, y: S.rounded(t, f(x, y)), a.v, b.v)


def next_after(a, b):
    a, b = S.pair(a, b)
    t = S.promote(S.scalar(a.t), S.scalar(b.t))
    a, b = S.cast(t, a), S.cast(t, b)
    return S.map_lanes(t, lambda x, y: S.next_after(t, x, y), a.v, b.v)


def ldexp(a, n):
    a, t = S.to_float(a), None
    t = S.scalar(a.t)
    return S.map_lanes(t, lambda x, k: S.scale(t, x, k), a.v, S.cast("int32", n).v)


def test(f):
    def run(a):
        a = S.to_float(a)
        return S.map_lanes("bool", lambda x: int(f(x)), a.v)

    return run


def ffs(a):
    v = S.cast("uint32", a).v
    return V("int32", (v & -v).bit_length())


FUNCTIONS = {
    "truncdiv": lambda a, b: quotient("truncdiv", a, b),
    "truncmod": lambda a, b: quotient("truncmod", a, b),
    "floordiv": lambda a, b: quotient("//", a, b),
    "floormod": lambda a, b: quotient("%", a, b),
    "ceildiv": lambda a, b: S.binary("ceildiv", a, b) if type(a) is V or type(b) is V else -(-a // b),
    "Div": lambda a, b: S.binary("/" if S.scalar(a.t) in S.FORMATS else "truncdiv", a, b),
    "min": lambda a, b: minimum("min", a, b),
    "max": lambda a, b: minimum("max", a, b),
    "abs": S.absolute,
    "fabs": S.absolute,
    "fma": S.fma,
    "popcount": lambda a: S.count_bits("popcount", a),
    "clz": lambda a: S.count_bits("clz", a),
    "cuda.ffs_u32": ffs,
    "likely": lambda a: a,
    "isnan": test(math.isnan),
    "isinf": test(math.isinf),
    "isfinite": test(math.isfinite),
    "ldexp": ldexp,
    "nextafter": next_after,
    "copysign": lambda a, b: of_two(S.copy_sign, a, b),
    **{name: functools.partial(exact, name) for name in S.EXACT},
    **{name: functools.partial(near, name) for name in S.NEAR},
    **{name: functools.partial(of_two, f) for name, f in {**S.EXACT2, **S.NEAR2}.items()},
}
