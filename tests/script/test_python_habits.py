# SPDX-License-Identifier: Apache-2.0
"""What people who know Python write without thinking: super(), private names, NumPy's types, names of builtins."""

from __future__ import annotations

import numpy as np
import pytest
from script.kernels import kernel, run

import tirx
from tirx.script import tirx as T

tx = np.arange(64)


class Base:
    __scale = 3

    @T.inline
    def scaled(self, v):
        return v * self.__scale


class Derived(Base):
    __scale = 100  # another one: Python keeps the two apart

    @T.inline
    def scaled(self, v):
        return super().scaled(v) + 1

    @T.inline
    def swapped(self, v):
        return T.cuda.__shfl_xor_sync(0xFFFFFFFF, v, 1, 32) + self.__scale


@T.jit
def absent_first(A: T.Tensor((64,), "int32"), B: None | T.Tensor((64,), "int32")):
    T.device_entry()
    t = T.thread_id([64])
    A[t] = B[t] if B is not None else 5


@T.prim_func
def numpy_types(A: T.Buffer((64,), np.int32), s: np.float32):
    T.device_entry()
    t = T.thread_id([64])
    x: np.float16 = s
    A[t] = T.reinterpret(np.int32, T.cast(x, np.dtype("float32")))


@pytest.fixture(params=["g1", "g2"])
def dialect(request):
    return request.param


def values(text, dialect):
    return run(kernel(text, dialect, derived=Derived(), np=np))[1]


def test_super_and_private_names_are_those_of_the_class_around(dialect):
    assert (values("B[tx] = derived.scaled(tx)", dialect) == tx * 3 + 1).all()
    assert (values("B[tx] = derived.swapped(tx)", dialect) == (tx ^ 1) + 100).all()


def test_none_may_stand_before_the_bar():
    array = np.zeros(64, "int32")
    tirx.compile(absent_first.specialize(), target="cpu")(array, np.full(64, 7, "int32"))
    assert (array == 7).all()
    tirx.compile(absent_first.specialize(B=None), target="cpu")(array, None)
    assert (array == 5).all()


def test_numpys_types_are_dtypes_behind_a_colon_and_before_a_value():
    array = np.zeros(64, "int32")
    tirx.compile(numpy_types, target="cpu")(array, 1.5)
    assert (array == np.float32(1.5).view("int32")).all()


@pytest.mark.parametrize("made, taken", [("np.bool_(True)", True), ("np.bool_(False)", False), ("np.int8(0)", False)])
def test_numpys_scalars_decide_a_condition(dialect, made, taken):
    assert (values(f"if {made}:\n    B[tx] = 1\nelse:\n    B[tx] = 2", dialect) == (1 if taken else 2)).all()


@pytest.mark.parametrize("name", ["int", "len", "T_", "max", "id"])
def test_a_size_may_have_the_name_of_a_builtin(name):
    n = T.dynamic(name)

    @T.function
    def f(A: T.Tensor((n,), "int32"), B: T.Tensor((n + 1,), "int32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        A[T.cuda.thread_idx("x")] = n

    for dialect in ("g1", "g2"):
        assert tirx.structural_equal(tirx.from_source(f.script(dialect=dialect)), f)
    array = np.zeros(64, "int32")
    tirx.compile(f, target="cpu")(array, np.zeros(65, "int32"))
    assert (array == 64).all()


@pytest.mark.parametrize("dtype", ["void", "float32x4"])
def test_a_parameter_is_a_number(dtype):
    with pytest.raises(tirx.DiagnosticError, match=f"parameter 's' cannot be annotated with {dtype}"):
        tirx.from_source(f"@T.prim_func\ndef f(s: T.{dtype}):\n    T.device_entry()\n    tx = T.thread_id([32])\n")


def test_a_pattern_is_a_text(dialect):
    with pytest.raises(TypeError, match="rearrange: a pattern such as '.*' is needed, got int"):
        kernel("w = A.rearrange(3)", dialect)


def test_annotations_of_a_loop_are_a_dict(dialect):
    with pytest.raises(TypeError, match="annotations must be a dict of names to values, got list"):
        kernel("for i in T.serial(4, annotations=[1]):\n    B[tx] = i", dialect)


def test_values_in_a_list_or_a_dict_are_those_of_the_time(dialect):
    for made, read in (("[B[tx] + 1, 2]", "x[0]"), ("(B[tx] + 1, 2)", "x[0]"), ("{'a': B[tx] + 1}", "x['a']")):
        assert (values(f"x = {made}\nB[tx] = 5\nB[tx] = {read}", dialect) == 1).all()


@pytest.mark.parametrize("name", ["é", "变量", "µ"])
def test_kernels_with_names_beyond_ascii_are_compiled_by_nvrtc(name):
    f = tirx.from_source(
        f"@T.prim_func\ndef {name}({name}: T.Buffer((64,), 'int32')):\n"
        f"    T.device_entry()\n    tx = T.thread_id([64])\n    {name}[tx] = tx\n"
    )
    assert tirx.compile(f, target="cuda:sm_90a").source.isascii()
    array = np.zeros(64, "int32")
    tirx.compile(f, target="cpu")(array)
    assert (array == tx).all()


@pytest.mark.parametrize(
    "arms, want",
    [
        ("if tx > 3:\n    return\nelse:\n    y = tx", np.where(tx > 3, 0, tx)),
        ("if tx > 3:\n    y = tx + 1\nelse:\n    return", np.where(tx > 3, tx + 1, 0)),
        (
            "if tx > 3:\n    return\nelif tx > 1:\n    y = 7\nelse:\n    y = 8",
            np.where(tx > 3, 0, np.where(tx > 1, 7, 8)),
        ),
    ],
)
def test_an_arm_that_is_left_need_not_bind_what_the_other_does(dialect, arms, want):
    assert (values(f"{arms}\nB[tx] = y", dialect) == want).all()


def test_a_turn_that_is_left_need_not_bind_either(dialect):
    text = "for i in range(4):\n    if i == tx:\n        continue\n    else:\n        z = i\n    B[tx] += z"
    assert (values(text, dialect) == 6 - np.where(tx < 4, tx, 0)).all()


@pytest.mark.parametrize(
    "arms", ["if tx > 3:\n    return\nelse:\n    return", "if tx > 3:\n    return", "if tx > 3:\n    y = 1"]
)
def test_what_no_arm_or_one_of_two_binds_is_unknown(dialect, arms):
    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: y"):
        values(f"{arms}\nB[tx] = y", dialect)


def test_a_name_that_is_bound_later_is_not_proposed_for_itself():
    def make():
        @T.prim_func
        def f(B: T.Buffer((64,), "int32")):
            T.device_entry()
            B[T.thread_id([64])] = assigned_afterwards

        assigned_afterwards = 3
        return f, assigned_afterwards

    with pytest.raises(tirx.DiagnosticError, match="Undefined variable: assigned_afterwards") as e:
        make()
    assert "did you mean" not in str(e.value)


class Held:
    """A plain object whose attributes a kernel sets."""

    def __init__(self):
        self.x = 1


@pytest.mark.parametrize(
    "store, read", [("l[0] = B[tx] + 1", "l[0]"), ("d['a'] = B[tx] + 1", "d['a']"), ("o.x = B[tx] + 1", "o.x")]
)
def test_what_an_assignment_puts_into_a_python_object_is_the_value_of_its_time(dialect, store, read):
    text = f"l = [1, 2]\nd = {{}}\n{store}\nB[tx] = 5\nB[tx] = {read}"
    assert (run(kernel(text, dialect, o=Held()))[1] == 1).all()


@pytest.mark.parametrize(
    "block", ["if tx > 3:\n    o.x = 2", "for i in range(3):\n    o.x = i", "for i in range(3):\n    o.x += 1"]
)
def test_an_attribute_cannot_change_in_a_run_time_block(dialect, block):
    for made in ("", "o = T.meta_var(make())\n"):  # captured, and made in the kernel
        with pytest.raises(tirx.DiagnosticError, match=r"'o\.x' is a Python value"):
            kernel(f"{made}{block}\nB[tx] = o.x", dialect, o=Held(), make=Held)
    text = "o = T.meta_var(make())\nfor i in (1, 2, 3):\n    o.x = i\nB[tx] = o.x"
    assert (run(kernel(text, dialect, make=Held))[1] == 3).all()


def test_the_with_block_of_an_entry_runs_once():
    held, table = Held(), [1]

    @T.function
    def f(B: T.Tensor((64,), "int32")):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
            t: T.let = T.cuda.thread_idx("x")
            with T.attr({"pragma_x": 1}):
                held.x = t + 1
                table[0] = t * 100
                B[t] = held.x + table[0]

    b = np.zeros(64, "int32")
    tirx.compile(f, target="cpu")(b)
    assert (b == tx * 101 + 1).all()


def test_an_unknown_keyword_is_answered_with_those_of_the_function_that_refuses_it(dialect):
    with pytest.raises(TypeError, match="unexpected keyword argument 'name'") as e:
        kernel("P = T.alloc_local((1,), 'int32', name='x')", dialect)
    assert "it takes shape, dtype, data, strides, elem_offset" in str(e.value)
    with pytest.raises(TypeError, match="did you mean 'scope'"):
        kernel("P = T.alloc_local((1,), 'int32', scoope='x')", dialect)
