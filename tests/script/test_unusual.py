# SPDX-License-Identifier: Apache-2.0
"""Forms of the language in combinations that nobody thought of: small programs and what Python says of them.

unusual.txt holds bodies of kernels, each under the value that it stores into B, an expression over the thread t and
the parameter s (5). Each runs in both dialects, also read back from its text and printed in the other dialect.
Whole functions are in unusual_functions.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import re
import textwrap
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16
from script.kernels import kernel, run
from script.unusual_functions import FUNCTIONS

import tirx
from tirx.script import tirx as T


@T.inline
def dbl(x):
    return x * 2


@T.inline
def addto(c, v):
    c += v


@T.inline
def setp(c, v):
    c = v


@T.inline
def two(x, y=3, *, z=1):
    return x + y, x * z


@T.inline
def star(*xs, **kw):
    r = 0
    for x in xs:
        r += x
    for k in kw:
        r += kw[k] * 10
    return r


@T.inline
def fact(n, x):
    if n == 0:
        return x
    return fact(n - 1, x) + n


@T.inline
def clamp(x, lo, hi):
    r = x
    if x < lo:
        r = lo
    elif x > hi:
        r = hi
    return r


@T.inline
def stat(k, x):
    if k:
        return x
    y = x + 100
    return y


@T.inline
def hof(f, x):
    return f(f(x))


@T.inline
def storeb(B, i, v):
    B[i] = v


def plain(x):
    return x * 3 + 1


def plain_store(B, i, v):
    T.buffer_store(B, v, [i])


def plain_if(B, i, c, v):
    with T.If(c):
        with T.Then():
            T.buffer_store(B, v, [i])
        with T.Else():
            T.buffer_store(B, -v, [i])


def plain_loop(B, i, n):
    with T.serial(n) as k:
        B[i] = B[i] + k


class Pt:
    k = 7

    def __init__(self, x, y):
        self.x, self.y = x, y

    def sum(self):
        return self.x + self.y

    @T.inline
    def dot(self, o):
        return self.x * o.x + self.y * o.y

    @property
    def p(self):
        return self.x * self.y

    def __add__(self, o):
        return Pt(self.x + o.x, self.y + o.y)

    def __getitem__(self, i):
        return (self.x, self.y)[i]


@T.meta_class
class St:
    def __init__(self, n):
        self.c = T.local_scalar("int32")
        self.c = n
        self.arr = T.alloc_local((4,), "int32")

    @T.inline
    def step(self):
        self.c += 1
        self.arr[self.c % 4] = self.c


class Mode(enum.Enum):
    A = 3
    B = 4


class IM(enum.IntEnum):
    X = 7


@dataclasses.dataclass
class Cfg:
    n: int = 4
    dtype: str = "int32"
    modes: tuple = (Mode.A, Mode.B)


cfg = Cfg()


@contextlib.contextmanager
def guarded(c):
    with T.If(c):
        with T.Then():
            yield 5


@T.inline
def dflt(x, f=lambda v: v + 1, k=(1, 2)):
    return f(x) + k[1]


@T.inline
def swap(a, b):
    t: T.let = a
    a = b
    b = t


@T.inline
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@T.inline
def tree(xs):
    if len(xs) == 1:
        return xs[0]
    h = T.meta_var(len(xs) // 2)
    return tree(xs[:h]) + tree(xs[h:])


@T.inline
def inner_def(x):
    @T.inline
    def g(y):
        return y * x

    return g(3) + g(4)


@T.inline
def make(n):
    return [T.local_scalar("int32") for _ in range(n)]


@T.inline
def retd(x):
    return {"a": x, "b": x + 1}


@T.inline
def loopret(B, t):
    for i in [1, 2, 3]:
        if i == 2:
            return i
        B[t] += i
    return 99


@T.inline
def wh(x):
    r = 0
    while r < x:
        r += 7
    return r


@T.inline
def cond_cell(c):
    x = 0
    if c:
        x = 5
    else:
        x = 7
    return x


@T.inline
def deflt_param(x=None):
    if x is None:
        return 1
    return x


@functools.cache
def cached(n):
    return n * 3


def kw(**k):
    return sum(k.values())


class Odd:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k

    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        return 2

    def __contains__(self, x):
        return x == 1

    def __eq__(self, o):
        return True

    def __bool__(self):
        return False


class Seq:
    def __getitem__(self, i):
        if i > 2:
            raise IndexError
        return i * 10


class CM:
    static = staticmethod(lambda x: x + 1)

    @classmethod
    def cm(cls, x):
        return x + 2

    @T.inline
    def im(self, x):
        return x + self.static(x)


class Sub(CM):
    @T.inline
    def im(self, x):
        return super().im(x) * 2


@T.inline
def bump(c):
    c.buffer[0] = c + 1
    return c.buffer[0]


@T.inline
def post(c):
    o: T.let = c
    c.buffer[0] = o + 1
    return o


@T.inline
def mk(x):
    y: T.int32 = x
    return y


@T.inline
def redeclared(c):
    c: T.int32 = 0
    for _ in range(3):
        c += 1
    return c


@T.inline
def rebound(c):
    c = c + 1
    for _ in range(3):
        c += 1
    return c


@T.inline
def rebound_if(c, t):
    if t > 3:
        c = c + 1
    return c


NAMES = {k: v for k, v in globals().items() if getattr(v, "__module__", None) == __name__ or isinstance(v, type(dbl))}
NAMES |= {
    "np": np,
    "T": T,
    "cfg": cfg,
    "functools": functools,
    "cached": cached,
    "Callable": Odd,
    "N": 4,
    "tab": [3, 1, 2],
    "dd": {"k": 5},
}
FILE = Path(__file__).with_name("unusual.txt")
BLOCKS = [b.split("\n", 1) for b in re.split(r"^==== ", FILE.read_text(), flags=re.M)[1:]]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize(("value", "body"), BLOCKS, ids=range(len(BLOCKS)))
def test_body(value, body, dialect):
    f = kernel(body, dialect, **NAMES)
    names = {"np": np, "reduce": reduce, "bfloat16": bfloat16, "s": 5, "g1": dialect == "g1"}
    code = compile(value, "value", "eval")
    want = [eval(code, {**names, "t": t}) for t in range(64)]
    np.testing.assert_array_equal(run(f, 5)[1], want)
    other = tirx.from_source(f.script(dialect="g2" if dialect == "g1" else "g1"))
    np.testing.assert_array_equal(run(other, 5)[1], want)
    assert tirx.structural_equal(tirx.from_source(f.script()), f)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    text, args, want = FUNCTIONS[name]
    f = tirx.from_source(textwrap.dedent(text), {"np": np})
    for g in (f, tirx.from_source(f.script())):
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        tirx.compile(g, target="cpu")(*copies)
        out = next(a for a in reversed(copies) if isinstance(a, np.ndarray))
        np.testing.assert_array_equal(out, np.array(want))
