# SPDX-License-Identifier: Apache-2.0
"""@T.meta_class: names of what constructors allocate, ownership, subclasses, fields that are cells; T.meta_var."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from script.kernels import body, kernel, printed, run

import tirx
from tirx.builder import IRBuilder
from tirx.builder import ir as I
from tirx.script import tirx as T


@T.meta_class
class Holder:
    def __init__(self, n=4):
        self.buf = T.alloc_local((n,), "int32")
        self.count = T.local_scalar("int32")
        self.parts = [T.local_scalar("float32"), {"k": T.alloc_local((2,), "float32").view(2, 1)}]

    @T.inline
    def step(self, by=1):
        self.count = self.count + by
        self.count += 1


class Sub(Holder):
    def __init__(self, cell):
        super().__init__(2)
        self.extra = T.alloc_local((2,), "int32")
        self.cell = cell


class Plain(Holder):
    pass


@T.meta_class
class Nest:
    def __init__(self, cell):
        self.inner = Sub(cell)
        self.again = self.inner


@T.meta_class
class Slots:
    __slots__ = ("_a", "b")

    def __init__(self):
        self._a = T.alloc_local((2,), "int32")


@T.meta_class
@dataclasses.dataclass
class Data:
    n: int
    buf: object = None

    def __post_init__(self):
        self.buf = T.alloc_local((self.n,), "int32")


class Leaky(Holder):
    def __init__(self):
        super().__init__()
        self.count = None  # what the base has allocated is lost


NAMES = {c.__name__: c for c in (Holder, Sub, Plain, Nest, Slots, Data, Leaky)}


def declared(text: str, **names) -> list[str]:
    """Names that are declared, in order."""
    return [line.partition(" ")[0].rstrip(":") for line in body(text, **NAMES, **names).split("\n")]


def test_names_follow_the_variable_and_the_field():
    assert declared("first = Holder()") == ["first_buf", "first_count", "first_parts_0", "buffer", "first_parts_1_k"]
    assert declared("x = Plain(3)")[0] == "x_buf"
    assert declared("d = Data(4)") == ["d_buf"]
    assert declared("s_ = Slots()") == ["s__a"]
    assert declared("x = Data(4)\ny = Data(4)") == ["x_buf", "y_buf"]


def test_what_comes_from_outside_keeps_its_name():
    found = declared("c = T.local_scalar('int32')\nx = Nest(c)\ny = x.inner")
    assert found[0] == "c" and "x_inner_cell" not in found
    assert {"x_inner_buf", "x_inner_count", "x_inner_extra"} < set(found)


def test_fields_that_are_cells_are_stored_into():
    text = "c: T.int32 = tx\nx = Nest(c)\nx.inner.cell = x.inner.cell + 1\nx.inner.cell += 2\nB[tx] = c"
    assert (run(kernel(text, **NAMES))[1] == np.arange(64) + 3).all()
    text = "x = Holder()\nx.count = tx\nx.step()\nx.step(by=5)\nB[tx] = x.count"
    for dialect in ("g1", "g2"):
        assert (run(kernel(text, dialect, **NAMES))[1] == np.arange(64) + 8).all()


def test_a_field_that_gets_storage_later_names_it():
    assert declared("x = Slots()\nx.b = T.alloc_local((4,), 'int32')") == ["x_a", "b"]
    assert "b_buf" in declared("x = Slots()\nx.b = Data(2)")


def test_each_subclass_checks_what_its_own_constructor_allocates():
    with pytest.raises(tirx.DiagnosticValueError, match="created an unowned resource in Leaky") as info:
        kernel("y = 1\nx = Leaky()", **NAMES)
    assert info.value.lineno == 7 and "x = Leaky()" in str(info.value) and "self.<field>" in str(info.value)


def test_marking_a_class_twice_or_something_else():
    assert T.meta_class(Holder) is Holder
    with pytest.raises(TypeError, match="T.meta_class decorates a class"):
        T.meta_class(3)


def test_outside_a_kernel_it_is_pythons():
    made = []

    @T.meta_class
    class Counted:
        def __init__(self, n):
            made.append(n)

    assert isinstance(Counted(3), Counted) and made == [3]


def test_init_subclass_is_still_called():
    seen = []

    @T.meta_class
    class Base:
        def __init_subclass__(cls, tag=None, **more):
            super().__init_subclass__(**more)
            seen.append((cls.__name__, tag))

    class One(Base, tag=1):
        pass

    class Two(One, tag=2):
        pass

    assert seen == [("One", 1), ("Two", 2)]


def test_without_a_parser_resources_have_the_names_of_their_fields():
    with IRBuilder() as ib, I.prim_func():
        I.func_name("f")
        I.device_entry()
        I.thread_id([32])
        x = Data(4)
        x.buf[0] = 1
    assert 'buf = T.alloc_local((4,), "int32")' in ib.get().script()


def test_meta_var_binds_the_value_itself():
    seen = []
    kernel("x = T.meta_var(thing)\nkeep(x)\na, b = T.meta_var((thing, 2))\nkeep(a)", keep=seen.append, thing=(1, [2]))
    assert seen == [(1, [2])] * 2
    assert I.meta_var is T.meta_var


def test_allocators_return_the_buffer_itself():
    assert declared("x = T.bind_(T.alloc_local((2,), 'int32').value)\nx[0] = 1")[0] == "x"
    assert declared("x = T.bind_(T.alloc_local((2,), 'int32'), 'named')\nx[0] = 1")[0] == "named"


# ---- Python attributes and items inside run-time blocks --------------------------------------------------------------


class Counter:
    n = 1

    def __init__(self):
        self.x = 1
        self.table = {"a": 1}

    @T.inline
    def put(self, v):
        self.x = v

    @T.inline
    def put_if(self, c, v):
        if c:
            self.x = v

    @T.inline
    def add(self, turns):
        for _ in range(turns):
            self.x += 1

    @T.inline
    def chosen(self, n):
        if n > 3:
            self.x = n
        for i in [1, 2]:
            self.x += i

    @T.inline
    def item(self, v):
        self.table["a"] = v

    @T.inline
    def declare(self, v):
        self.x: T.int32 = v

    @T.inline
    def new_number(self):
        self.y = 5


_counter = Counter()


def new_counter():
    return Counter()


def same_counter():
    return _counter


OBJECTS = {"Counter": Counter, "new_counter": new_counter, "same_counter": same_counter}

REFUSED_CHANGES = {  # the statements, and what the message calls that which may not change
    "if tx < 3:\n    p.put(4)": "self.x",
    "p.put_if(tx < 3, 4)": "self.x",
    "p.add(s)": "self.x",
    "for i in range(s):\n    p.chosen(4)": "self.x",
    "while B[0] < 3:\n    p.item(2)": "self.table",
    "if tx < 3:\n    p.declare(2)": "self.x",
    "if tx < 3:\n    p.new_number()": "self.y",
    "if tx < 3:\n    q = p\n    q.x = 2": "q.x",
    "if tx < 3:\n    q = same_counter()\n    q.put(2)": "self.x",
    "if tx < 3:\n    q = new_counter()\n    q.put_if(tx < 2, 4)": "self.x",
    "q = Counter()\nfor i in T.unroll(2):\n    q.x += i": "q.x",
    "xs = T.meta_var([])\nif tx < 3:\n    xs.append(1)": "the list of .append()",
    "xs = T.meta_var([[1]])\nif tx < 3:\n    xs[0][0] = 2": "xs[0]",
    "xs = T.meta_var([1])\nys = xs\nif tx < 3:\n    xs += [1]": "xs",
    "with T.If(tx < 3), T.Then():\n    p.put(4)": "self.x",
}


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("text", REFUSED_CHANGES)
def test_python_objects_do_not_change_in_run_time_blocks(text, dialect):
    p = Counter()
    with pytest.raises(tirx.DiagnosticError, match="cannot change inside a run-time block") as e:
        kernel(text, dialect, p=p, **OBJECTS)
    assert f"'{REFUSED_CHANGES[text]}' is a Python value" in str(e.value)
    assert p.x == 1 and p.table == {"a": 1}


CHANGES = {  # what may change, and the values of B with s = 3 for threads 0 and 63
    "p.put(4)\nB[tx] = p.x": (4, 4),
    "p.put_if(True, 4)\nB[tx] = p.x": (4, 4),
    "p.chosen(4)\nB[tx] = p.x": (7, 7),
    "p.item(6)\nB[tx] = p.table['a']": (6, 6),
    "p.declare(2)\nif tx < 3:\n    p.put(9)\nB[tx] = p.x": (9, 2),
    "p.declare(2)\np.add(s)\nB[tx] = p.x": (5, 5),
    "if tx < 3:\n    q = Counter()\n    q.put(4)\n    q.chosen(5)\n    B[tx] = q.x": (8, 0),
    "if tx < 3:\n    q = new_counter()\n    q.put(4)\n    B[tx] = q.x": (4, 0),
    "for i in range(s):\n    xs = [1, 2]\n    xs[0] = i\n    ys = [0] * 3\n    ys[1] = 5\n    B[tx] += xs[0] + ys[1]": (
        18,
        18,
    ),
    "with T.attr({'pragma_x': 1}):\n    p.put(4)\nB[tx] = p.x": (4, 4),
}


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("text", CHANGES)
def test_python_objects_that_may_change(text, dialect):
    _, b = run(kernel(text, dialect, p=Counter(), **OBJECTS), 3)
    assert (b[0], b[63]) == CHANGES[text]


# ---- cells in plain methods ------------------------------------------------------------------------------------------


@T.meta_class
class Plainly:
    """A cell made and assigned in a plain constructor; `turn` and `total` are methods that Python runs."""

    def __init__(self, value):
        self.cell = T.local_scalar("int32")
        self.cell = value
        self.cell += 1
        self.offset = 5

    def turn(self, by):
        self.cell = self.cell * 2 + by

    @property
    def total(self):
        return self.cell + self.offset

    @total.setter
    def total(self, value):
        self.cell = value


class PlainlySub(Plainly):
    __slots__ = ()

    def __init__(self, value):
        super().__init__(value + 10)
        self.cell = self.cell - 10
        self.array = T.alloc_local((1,), "int32")
        self.array = 3


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("cls", [Plainly, PlainlySub])
def test_plain_methods_store_into_cells(cls, dialect):
    text = """
        p = cls(tx)
        if tx < 2:
            p.turn(5)
            p.cell += 100
        B[tx] = p.total
        if tx == 63:
            p.total = 7
            B[tx] = p.cell
    """
    f = kernel(text, dialect, cls=cls)
    _, b = run(f)
    expected = [(i + 1) * 2 + 105 + 5 if i < 2 else i + 1 + 5 for i in range(64)]
    expected[63] = 7
    np.testing.assert_array_equal(b, expected)
    assert ("p_cell: T.int32 = tx" if dialect == "g1" else "p_cell[0] = tx") in printed(f)


def test_a_second_cell_for_a_field_is_told():
    class Twice(Plainly):
        def __init__(self):
            self.cell = T.local_scalar("int32")
            self.cell = T.local_scalar("int32")

    with pytest.raises(tirx.DiagnosticValueError, match="created an unowned resource in Twice"):
        kernel("p = cls()", cls=Twice)
