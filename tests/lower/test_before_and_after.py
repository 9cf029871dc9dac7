# SPDX-License-Identifier: Apache-2.0
"""Each pass on a kernel that shows what it is for: the printed module before and after it."""

from __future__ import annotations

import pytest

import tirx

FRAME = "@T.prim_func\ndef k({params}):\n{body}"
A64 = 'A: T.Buffer((64,), "int32")'

# pass -> what it shows -> (parameters, body); "@" at the start: the whole text
KERNELS = {
    "LowerTIRx": {
        "scope_ids": (
            'A: T.Buffer((4, 256), "int32")',
            """
T.device_entry()
bx = T.cta_id([4])
w = T.warp_id()
l = T.lane_id()
tx = T.thread_id([256])
unused = T.warpgroup_id()
A[bx, tx] = w * 32 + l
""",
        ),
        "host_variables": (
            A64 + ", n: T.int32",
            """
once: T.int32 = n * 2
x: T.int32 = n
while x > 8:
    x = x // 2
with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=x)):
    A[T.cuda.thread_idx("x")] = x + once
""",
        ),
        "launch_threads": (
            A64,
            """
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        A[bx * 32 + tx] = tx
""",
        ),
    },
    "FlattenBuffer": {
        "dimensions_and_strides": (
            'A: T.Buffer((4, 8), "int32"), B: T.Buffer(("n", 3), "int32", strides=(5, 1))',
            """
n = T.int32()
T.device_entry()
bx = T.cta_id([4])
tx = T.thread_id([8])
s = T.alloc_shared((2, 8), "int32")
s[bx % 2, tx] = A[bx, tx]
if bx < n and tx < 3:
    B[bx, tx] = s[bx % 2, tx]
""",
        ),
        "offsets_beyond_32_bits": (
            'A: T.Buffer((3, 1073741824), "int8"), B: T.Buffer((3, 1000), "int8")',
            """
T.device_entry()
bx = T.cta_id([3])
tx = T.thread_id([32])
A[bx, tx] = B[bx, tx]
""",
        ),
        "bounds_that_read_memory": (
            A64,
            """
T.device_entry()
tx = T.thread_id([64])
for i in range(A[tx]):
    A[tx] = i
""",
        ),
    },
    "UnrollLoop": {
        "vectorized": (
            'A: T.Buffer((64, 4), "float32"), B: T.Buffer((64, 4), "float32")',
            """
T.device_entry()
tx = T.thread_id([64])
for i in T.vectorized(4):
    B[tx, i] = A[tx, i] * 2
""",
        ),
        "vectorized_as_a_loop": (
            A64,
            """
T.device_entry()
tx = T.thread_id([64])
for i in T.vectorized(3):
    if A[tx] > i:
        A[tx] = i
""",
        ),
        "unrolled": (
            A64,
            """
T.device_entry()
tx = T.thread_id([64])
for i in T.unroll(6, 0, step=-2):
    v: T.let = A[tx] + i
    A[tx] = v
for i in T.unroll(4):
    if A[tx] == i:
        break
    A[tx] = i
for i in T.serial(4, unroll=2):
    A[tx] = A[tx] + i
""",
        ),
        "simplified": (
            A64 + ", n: T.int32",
            """
T.device_entry()
tx = T.thread_id([64])
if tx < 64:
    A[(tx * 4 + 3) // 4] = (tx + n) - tx
A[tx] = A[tx]
for i in range(1):
    A[tx] = tx // 64 + i + A[tx] * 1
if tx < 32:
    if tx >= 40:
        A[tx] = 0
""",
        ),
    },
    "SplitHostDevice": {
        "parameters": (
            's: T.float32, b: T.handle, unused: T.int32, a: T.handle, p: T.handle("float32")',
            """
n = T.int32()
m = T.int32()
A = T.match_buffer(a, (n, m), "float32")
B = T.match_buffer(b, (m,), "float32")
half: T.let = n // 2
T.device_entry()
bx = T.cta_id([half])
tx = T.thread_id([64])
P = T.decl_buffer((1,), "float32", data=p)
if tx < m:
    B[tx] = A[bx, tx] * s + P[0]
""",
        ),
        "bounds_and_dynamic_memory": (
            A64,
            """
T.device_entry()
T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2})
tx = T.thread_id([64])
s = T.alloc_buffer((64,), "int32", scope="shared.dyn")
s[tx] = A[tx]
T.cuda.cta_sync()
if tx > 32:
    return
A[tx] = s[63 - tx]
""",
        ),
        "intrinsics_and_contraction": (
            'A: T.Buffer((64,), "float32"), n: T.int32',
            """
T.device_entry()
tx = T.thread_id([64])
A[tx] = A[tx] * 2.0 + 1.0
A[T.ceildiv(tx, 2)] = T.Cast("float32", T.ceildiv(n, 3))
""",
        ),
    },
}
CASES = [(name, case) for name, cases in KERNELS.items() for case in cases]


def text_of(name: str, case: str) -> str:
    params, body = KERNELS[name][case]
    return FRAME.format(params=params, body="".join(f"    {line}\n" for line in body.strip("\n").split("\n")))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_before_and_after(golden, name, case):
    m = tirx.IRModule({"k": tirx.from_source(text_of(name, case))})
    for before in tirx.transform.names():
        if before == name:
            break
        m = getattr(tirx.transform, before)()(m, target="cuda:sm_90a")
    run = getattr(tirx.transform, name)()
    after = run(m, target="cuda:sm_90a")
    assert run(after, target="cuda:sm_90a").script() == after.script(), "the second run changed something"
    for stage in (m, after):
        assert tirx.structural_equal(tirx.from_source(stage.script()), stage)
    golden(
        f"lower/{name}.{case}.py.txt",
        f"# ==== before {name}\n{m.script(header=False)}\n# ==== after\n{after.script(header=False)}",
    )


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("TilePrimitiveDispatch", "LowerTIRx"),
        ("NarrowDataType", "FlattenBuffer"),
        ("VectorizeLoop", "UnrollLoop"),
        ("StmtSimplify", "UnrollLoop"),
        ("CommonSubexprElim", "UnrollLoop"),
        ("LowerIntrin", "SplitHostDevice"),
        ("MakePackedAPI", "MakePackedAPI"),
    ],
)
def test_every_name_of_a_walk(alias, name):
    assert getattr(tirx.transform, alias)().name == name


def test_faults_found_in_lowering_show_the_inline_calls():
    text = """
@T.inline
def inner(A, n):
    v = T.alloc_local((n,), "int32")
    A[0] = v[0]

@T.inline
def outer(A, n):
    inner(A, n)

@T.prim_func
def k(A: T.Buffer((64,), "int32"), n: T.int32):
    T.device_entry()
    tx = T.thread_id([64])
    outer(A, n)
"""
    with pytest.raises(tirx.DiagnosticError) as e:
        tirx.lower(tirx.from_source(text))
    file = e.value.filename
    assert str(e.value).replace(file, "k.py") == (
        "k.py:4:9: error: Can only handle constant size stack allocation for now: 'v' has extent n\n"
        '    v = T.alloc_local((n,), "int32")\n'
        "        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  in inner(), inlined from outer() at k.py:9\n"
        "  in outer(), inlined from k() at k.py:15"
    )
