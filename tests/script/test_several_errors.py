# SPDX-License-Identifier: Apache-2.0
"""Independent faults of one kernel are told in one go; what only follows from a fault is not told."""

import re

import pytest

import tirx

HEAD = """
@T.prim_func
def k(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32")):
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([64])
"""


def faults(body: str, **names) -> tirx.DiagnosticError:
    with pytest.raises(tirx.DiagnosticError) as caught:
        tirx.from_source(HEAD + body, extra_vars=names)
    return caught.value


def told(body: str, **names) -> list[str]:
    e = faults(body, **names)
    return [re.sub(r"^.*?: error: ", "", str(x.msg)) for x in (e, *e.others)]


def test_the_whole_message():
    e = faults("    A[tx] = zz\n    B[tx] = A[tx, 0]\n")
    assert re.sub(r"<tirx source \d+>", "kernel.py", str(e)) == (
        "kernel.py:7:13: error: Undefined variable: zz\n"
        "    A[tx] = zz\n"
        "            ^^\n"
        "\n"
        "kernel.py:8:13: error: Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices\n"
        "    B[tx] = A[tx, 0]\n"
        "            ^^^^^^^^\n"
        "\n"
        "2 errors"
    )
    assert (e.lineno, e.others[0].lineno) == (7, 8)
    assert e.__notes__ == [str(e.others[0]), "2 errors"]


def test_a_single_fault_stays_as_it_was():
    e = faults("    A[tx] = zz\n")
    assert e.others == () and "errors" not in str(e) and not hasattr(e, "__notes__")


def test_what_reads_a_name_of_a_failed_statement_is_not_told():
    body = "    x = A[tx, 0]\n    y = x + 1.0\n    z: T.float32 = y\n    A[tx] = z\n    A[tx] = zz\n"
    assert told(body) == [
        "Buffer A is 1-dimensional, cannot be indexed with the 2-dimensional indices",
        "Undefined variable: zz",
    ]


def test_names_bound_in_the_body_of_a_failed_loop_are_not_told():
    assert told("    for i in zz:\n        c = 1\n    A[tx] = c\n") == ["Undefined variable: zz"]


def test_faults_in_every_kind_of_block():
    body = (
        "    for i in range(4):\n        A[i] = z1\n"
        "    if tx < 3:\n        A[tx] = z2\n    else:\n        A[tx] = z3\n"
        "    while tx < z4:\n        A[tx] = z5\n"
        "    for i in T.unroll(2):\n        if i == 1:\n            A[i] = z6\n"
    )
    assert told(body) == [f"Undefined variable: z{k}" for k in (1, 2, 3, 4, 6)]


def test_the_same_fault_in_every_turn_of_a_python_loop_is_told_once():
    assert told("    for i in [1, 2, 3]:\n        A[i] = zz\n    A[tx] = yy\n") == [
        "Undefined variable: zz",
        "Undefined variable: yy",
    ]


def test_nothing_is_told_behind_what_changes_the_meaning_of_the_rest():
    assert told("    with zz:\n        A[tx] = z1\n    A[tx] = z2\n") == ["Undefined variable: zz"]
    assert told("    A[tx] = z1\n    T.attr(1)\n    A[tx] = z2\n")[0] == "Undefined variable: z1"
    assert len(told("    A[tx] = z1\n    T.attr(1)\n    A[tx] = z2\n")) == 2


def test_at_most_ten():
    e = faults("".join(f"    A[tx] = z{k}\n" for k in range(40)))
    assert len(e.others) == 9
    assert str(e).endswith("10 errors; more are not looked for")


def test_a_fault_inside_a_helper_names_the_call_and_the_rest_is_told():
    body = "    @T.inline\n    def f(i):\n        A[i] = zz\n        A[i] = z2\n    f(tx)\n    A[tx] = yy\n"
    assert told(body) == ["Undefined variable: zz", "Undefined variable: yy"]


def test_an_exception_of_the_users_own_code_behind_a_fault():
    def helper():
        raise OSError("mine")

    assert told("    A[tx] = zz\n    helper()\n    A[tx] = yy\n", helper=helper) == ["Undefined variable: zz"]
    with pytest.raises(OSError, match="mine"):
        tirx.from_source(HEAD + "    helper()\n    A[tx] = zz\n", extra_vars={"helper": helper})


def test_a_kernel_after_a_failed_one_is_whole():
    faults("    for i in range(4):\n        A[i] = zz\n")
    f = tirx.from_source(HEAD + "    A[tx] = 1.0\n")
    assert tirx.from_source(f.script()).script() == f.script()
