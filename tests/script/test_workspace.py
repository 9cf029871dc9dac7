# SPDX-License-Identifier: Apache-2.0
"""T.workspace: memory of the kernel's own, zero at first, kept from call to call, one piece a device and executable."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tirx
from tirx.errors import DiagnosticError
from tirx.script import tirx as T

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@T.prim_func
def last_block_adds(x: T.handle, out: T.handle):
    n = T.int32()
    X = T.match_buffer(x, (n,), "float32")
    OUT = T.match_buffer(out, (1,), "float32")
    partial = T.workspace(8, "float32")
    ticket = T.workspace(1)
    T.device_entry()
    bx = T.cta_id([8])
    tx = T.thread_id([32])
    last = T.alloc_shared((1,), "uint32")
    mine: T.float32 = 0.0
    for i in range(bx * 32 + tx, n, 8 * 32):
        mine += X[i]
    mine = T.cuda.warp_sum(mine)
    if tx == 0:
        partial[bx] = mine
        T.cuda.thread_fence()
        last[0] = T.cuda.atomic_add(ticket.ptr_to([0]), T.uint32(1))
    T.cuda.cta_sync()
    if last[0] == 7:
        T.cuda.thread_fence()
        if tx == 0:
            total: T.float32 = 0.0
            for i in range(8):
                total += partial[i]
            OUT[0] = total
            ticket[0] = 0


def on(target, *arrays):
    device = tirx.cuda(0) if target == "cuda" else tirx.cpu()
    return [tirx.runtime.tensor(a, device) for a in arrays]


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_in_one_launch(target):
    exe = tirx.compile(last_block_adds, target=target)
    for n in (1, 100, 5000, 100):
        x, out = on(target, np.arange(n, dtype="float32"), np.full(1, np.nan, "float32"))
        exe(x, out)
        assert out.numpy()[0] == np.arange(n).sum()
    exe(x=x, out=out)
    assert out.numpy()[0] == 4950


@T.prim_func
def count(a: T.handle):
    A = T.match_buffer(a, (1,), "uint32")
    calls = T.workspace(3)
    T.device_entry()
    tx = T.thread_id([1])
    calls[2] += 1
    A[0] = calls[2] * 100 + calls[0]


@pytest.mark.parametrize("target", TARGETS)
def test_it_is_kept_and_belongs_to_one_executable(target):
    one, other = (tirx.compile(count, target=target) for _ in range(2))
    (a,) = on(target, np.zeros(1, "uint32"))
    for exe, want in ((one, 100), (one, 200), (other, 100), (one, 300)):
        exe(a)
        assert a.numpy()[0] == want


def test_a_first_call_from_many_threads():
    exe = tirx.compile(count, target="cpu")
    made = set()

    def call():
        made.add(id(exe.workspace("count", ())[0]))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(made) == 1


def test_it_is_a_parameter_of_the_text():
    text = count.script()
    assert 'T.func_attr({"tirx.workspace": ["uint32", 3]})' in text
    assert "def count(A: " in text
    assert "workspace: T.Buffer((3,)" in text
    back = tirx.from_source(text)
    assert tirx.structural_equal(back, count)
    a = np.zeros(1, "uint32")
    tirx.compile(back, target="cpu")(a)
    assert a[0] == 100


def test_it_can_be_given():
    own, a = np.array([5, 0, 6], "uint32"), np.zeros(1, "uint32")
    tirx.compile(count, target="cpu")(a, own)
    assert a[0] == 705
    assert list(own) == [5, 0, 7]


def test_too_few_arguments_are_told():
    with pytest.raises(TypeError, match="A: Tensor"):
        tirx.compile(count, target="cpu")()


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("w = T.workspace(0)", "the size must be a positive number"),
        ("w = T.workspace(4, 'float8_e4m3fn')", "numbers of 8 to 64 bits"),
        ("T.device_entry(); w = T.workspace(4)", "T.workspace stands before T.device_entry()"),
    ],
)
def test_misuse(line, text):
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(f"@T.prim_func\ndef k(A: T.Buffer((32,), 'uint32')):\n    {line}\n    A[0] = 1\n")
    assert text in str(e.value)
