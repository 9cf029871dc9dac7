# SPDX-License-Identifier: Apache-2.0
"""Older forms of threads (T.thread_binding, T.env_thread, T.launch_thread), and the rules of scope ids by number."""

from __future__ import annotations

import numpy as np
import pytest

import tirx


def made(body: str, dialect: str = "prim_func", params: str = 'A: T.Buffer((64,), "int32"), n: T.int32'):
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return tirx.from_source(f"@T.{dialect}\ndef k({params}):\n{lines}")


def value(f, n: int = 32):
    assert tirx.structural_equal(f, tirx.from_source(f.script()))
    a = np.zeros(64, np.int32)
    tirx.compile(f, target="cpu")(a, n)
    return a


FORMS = {
    "loops": """
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(0, n, thread="threadIdx.x"):
        A[bx * 32 + tx] = tx
""",
    "loops in the device zone": """
T.device_entry()
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(0, 32, thread="threadIdx.x", annotations={"kept": 1}):
        A[bx * 32 + tx] = tx
""",
    "with": """
with T.thread_binding(2, thread="blockIdx.x") as bx:
    with T.thread_binding(32, thread="threadIdx.x") as tx:
        A[bx * 32 + tx] = tx
""",
    "env_thread": """
tx = T.env_thread("threadIdx.x")
bx = T.env_thread("blockIdx.x")
T.launch_thread(bx, 2)
T.launch_thread(tx, n)
A[bx * 32 + tx] = tx
""",
    "launch_thread": """
with T.launch_thread("blockIdx.x", 2) as bx, T.launch_thread("threadIdx.x", n) as tx:
    A[bx * 32 + tx] = tx
""",
}


@pytest.mark.parametrize("dialect", ["prim_func", "function"])
@pytest.mark.parametrize("form", FORMS)
def test_older_forms(form, dialect, nvrtc):
    f = made(FORMS[form], dialect)
    np.testing.assert_array_equal(value(f), np.arange(64) % 32)
    assert "A_ptr[" in tirx.compile(f, target="cuda:sm_90a").source


def test_a_start_and_several_loops_are_several_kernels():
    f = made("""
for tx in T.thread_binding(8, 40, thread="threadIdx.x"):
    A[tx] = tx
x = n
while x > 4:
    x = x // 2
for tx in T.thread_binding(x, thread="threadIdx.x"):
    A[tx] = 5
""")
    np.testing.assert_array_equal(value(f, 20), [5, 5] + [0] * 6 + list(range(8, 40)) + [0] * 24)
    assert "k_kernel_1" in tirx.lower(f).script()


def test_a_binding_needs_a_thread():
    with pytest.raises(tirx.DiagnosticValueError, match="Thread cannot be None for thread_binding"):
        made("for tx in T.thread_binding(8):\n    A[tx] = 1")
    with pytest.raises(tirx.DiagnosticValueError, match="unknown thread tag 'vthread'"):
        made('for tx in T.thread_binding(8, thread="vthread"):\n    A[tx] = 1')
    with pytest.raises(tirx.DiagnosticValueError, match="Inconsistent extents of environment thread threadIdx.x"):
        tirx.lower(
            made("""
T.device_entry()
for tx in T.thread_binding(8, thread="threadIdx.x"):
    A[tx] = 1
for tx in T.thread_binding(9, thread="threadIdx.x"):
    A[tx] = 1
""")
        )


# ---- the rules of scope ids, by their numbers in the language reference ---------------------------------------------


def launch_of(ids: str, *, uses: str = "0") -> str:
    """The printed launch: kernel arguments, grid, block, cluster."""
    text = tirx.lower(made(f"T.device_entry()\n{ids}\nA[0] = {uses}")).script()
    return text.partition('T.call_packed("k_kernel", A.data, ')[2].partition(")\n")[0]


ACCEPTED = {
    "1 a bare extent": ("bx = T.cta_id(4)\ntx = T.thread_id(32)", "4, 32"),
    "1 three extents": ("a, b, c = T.cta_id([2, 3, 4])\nx, y = T.thread_id([8, 4])", "2, 3, 4, 8, 4"),
    "1 host expressions": ("bx = T.cta_id([T.ceildiv(n, 32)])\ntx = T.thread_id([32])", "T.ceildiv(n, 32), 32"),
    "2 deferred": ("w = T.warp_id()\nt = T.thread_id([64])", "1, 64"),
    "3 composed": ("g = T.warpgroup_id([2])\nw = T.warp_id_in_wg([4])\nl = T.lane_id([32])", "1, 256"),
    "3 twice the same": ("a = T.thread_id([64])\nb = T.thread_id([64])", "1, 64"),
    "4 seeded": ("t = T.thread_id([256])\nw = T.warp_id()\nl = T.lane_id()", "1, 256"),
    "4 small blocks without warps": ("t = T.thread_id([8])", "1, 8"),
    "5 from warps": ("w = T.warp_id([1])\nl = T.lane_id([32])", "1, 32"),
    "5 clusters": ("c = T.cluster_id([3])\nr = T.cta_id_in_cluster([2])\nt = T.thread_id([32])", "6, 32, 2"),
    "9 nested": ("if n > 3:\n    t = T.thread_id([64])\n    A[t] = 1", "n, 1, 64"),
}
REFUSED = {
    "1 four extents": ("a, b, c, d = T.cta_id([1, 2, 3, 4])", "T.cta_id takes 1 to 3 extents, got 4"),
    "1 two warps": ("a, b = T.warp_id([1, 2])\nt = T.thread_id([64])", "T.warp_id takes one extent, got 2"),
    "3 contradiction": ("a = T.thread_id([64])\nb = T.thread_id([32])", "Inconsistent extents for scope binding cta->"),
    "3 not divisible": ("t = T.thread_id([100])\nw = T.warp_id()", "non-divisible extents: 100 is not divisible by 32"),
    "4 unknown": ("t = T.thread_id([32])\nc = T.cluster_id()", "cannot infer extent of deferred ScopeIdDef"),
    "5 no threads": ("bx = T.cta_id([4])", "kernel has no thread launch parameters"),
    "6 not positive": ("t = T.thread_id([0])", "non-positive thread count 0"),
    "6 too many": ("t = T.thread_id([2048])", "block must contain at most 1024 threads, got 2048"),
    "6 not warps": ("t = T.thread_id([48])\nw = T.warp_id()", "non-divisible extents: 48 is not divisible by 32"),
    "6 half a warp": ("l = T.lane_id([16])\nw = T.warp_id([2])", "Inconsistent extents for scope binding warp->thread"),
    "6 grid of 0": ("bx = T.cta_id([0])\nt = T.thread_id([32])", "grid dimensions must be positive"),
    "7 alone": ("bx = T.cta_id([4], preferred=[2])\nt = T.thread_id([32])", "preferred_extents is only valid"),
    "7 rank": (
        "r = T.cta_id_in_cluster([2], preferred=[2, 1])\nt = T.thread_id([32])",
        "preferred_extents must have the same size as extents, got 1 vs 2",
    ),
    "8 pair": ("p = T.cta_id_in_pair()\nt = T.thread_id([32])", "T.cta_id_in_pair() requires T.cta_id_in_cluster(...)"),
}  # fmt: skip


@pytest.mark.parametrize("rule", ACCEPTED)
def test_rule(rule):
    ids, launch = ACCEPTED[rule]
    assert launch_of(ids) == launch


@pytest.mark.parametrize("rule", REFUSED)
def test_rule_refuses(rule):
    ids, text = REFUSED[rule]
    with pytest.raises(tirx.DiagnosticError) as e:
        launch_of(ids)
    assert text in str(e.value).split("\n")[0]


def test_rule_6_at_the_call():
    f = made("T.device_entry()\nbx = T.cta_id([n])\ntx = T.thread_id([32])\nA[tx] = 1")
    assert not value(f, 0).any()
    with pytest.raises(ValueError, match=r"grid.x of k_kernel is -1"):
        value(f, -1)


def test_rule_10_extents_of_one_are_the_constant_0():
    f = made("T.device_entry()\nbx = T.cta_id([1])\ntx = T.thread_id([32])\nA[bx * 100 + tx] = bx")
    assert "A[tx] = 0" in tirx.lower(f).script()
