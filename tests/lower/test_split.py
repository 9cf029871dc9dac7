# SPDX-License-Identifier: Apache-2.0
"""SplitHostDevice: kernels, their parameters and attributes, the host half."""

import re

import numpy as np
import pytest

import tirx

HEAD = "T.device_entry()\nbx = T.cta_id([1])\ntx = T.thread_id([64])\n"


def signature(module, name):
    return re.search(rf"(?m)^    def {name}\((.*)\):$", module.script()).group(1)


def source(body, params='A: T.Buffer((64,), "float32")', decorator="T.prim_func", name="k"):
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return tirx.from_source(f"@{decorator}\ndef {name}({params}):\n{lines}")


def lowered(*args, **options):
    return tirx.lower(source(*args), target="cpu", **options)


def test_parameters_keep_the_users_order_then_symbols_as_needed():
    body = """
n = T.int32()
m = T.int32()
A = T.match_buffer(a, (n, m), "float32")
B = T.match_buffer(b, (m,), "float32")
T.device_entry()
bx = T.cta_id([n])
tx = T.thread_id([64])
if tx < m:
    if bx < n:
        B[tx] = A[bx, tx] * s
"""
    module = lowered(body, "s: T.float32, b: T.handle, unused: T.int32, a: T.handle")
    assert signature(module, "k_kernel") == (
        's: T.float32, B_ptr: T.handle("float32"), A_ptr: T.handle("float32"), m: T.int32, n: T.int32'
    )
    assert 'T.call_packed("k_kernel", s, B.data, A.data, m, n, n, 64)' in module.script()


def test_host_bindings_are_kernel_arguments():
    body = """
n = T.int32()
A = T.match_buffer(a, (n,), "float32")
half: T.let = n // 2
T.device_entry()
bx = T.cta_id([half])
tx = T.thread_id([64])
A[bx] = T.Cast("float32", half)
"""
    module = lowered(body, "a: T.handle")
    assert (
        'half: T.let[T.int32] = n // 2\n        T.call_packed("k_kernel", A.data, half, n, half, 64)' in module.script()
    )


def test_regions_make_kernels_in_order():
    body = """
with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64)):
    A[T.cuda.thread_idx("x")] = 1.0
with T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32)):
    A[T.cuda.block_idx("x") * 32 + T.cuda.thread_idx("x")] = 2.0
"""
    text = lowered(body, "A: T.Tensor((64,), T.float32)", "T.function").script()
    first = text.index('T.call_packed("k_kernel", A.data, 1, 64)')
    assert text.index('T.call_packed("k_kernel_1", A.data, 2, 32)') > first
    assert "def k_kernel(" in text
    assert "def k_kernel_1(" in text


def test_two_functions_of_one_name_have_kernels_of_two_names():
    f, g = source(HEAD + "A[tx] = 1.0"), source(HEAD + "A[tx] = 2.0")
    text = tirx.lower(tirx.IRModule({"one": f, "two": g}), target="cpu").script()
    assert text.count("def k_kernel(") == 1
    assert text.count("def k_kernel_1(") == 1


def test_a_second_split_changes_nothing():
    once = lowered(HEAD + "A[tx] = 1.0")
    assert tirx.transform.SplitHostDevice()(once).script() == once.script()


def test_multiply_and_add_is_one_rounding():
    text = lowered(HEAD + "A[tx] = A[tx] * 2.0 + 1.0").script()
    assert "A[tx] = T.fma(A[tx], T.float32(2.0), T.float32(1.0))" in text
    text = lowered(HEAD + "A[tx] = A[tx] * 2.0 + 1.0", contract=False).script()
    assert "A[tx] = A[tx] * T.float32(2.0) + T.float32(1.0)" in text


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("x * y + z", "T.fma(x, y, z)"),
        ("z + x * y", "T.fma(x, y, z)"),
        ("x * y - z", "T.fma(x, y, -z)"),
        ("z - x * y", "T.fma(-x, y, z)"),
        ("x * y + y * z", "T.fma(x, y, y * z)"),
        ("x * y + z + y * z", "T.fma(y, z, T.fma(x, y, z))"),
        ("x * y + x * y", "x * y + x * y"),
        ("(x + y) * z", "(x + y) * z"),
        ("x / y + z", "x / y + z"),
    ],
)
def test_contraction(expression, want):
    text = lowered(
        HEAD + f"A[0] = {expression}", 'A: T.Buffer((64,), "float32"), x: T.float32, y: T.float32, z: T.float32'
    )
    assert f"A[0] = {want}\n" in text.script(), text.script()


def test_integers_are_not_contracted():
    text = lowered(HEAD + "A[tx] = A[tx] * m + m", 'A: T.Buffer((64,), "int32"), m: T.int32').script()
    assert "A[tx] = A[tx] * m + m" in text


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("T.ceildiv(m, 4)", 'm // 4 + T.Cast("int32", m % 4 != 0)'),
        ("T.ceildiv(tx, 4)", "(tx + 3) // 4"),
        ("T.ceildiv(m, m)", 'm // m + T.Cast("int32", m % m != 0)'),
    ],
)
def test_ceildiv_is_exact(expression, want):
    text = lowered(HEAD + f"A[tx] = {expression}", 'A: T.Buffer((64,), "int32"), m: T.int32').script()
    assert f"A[tx] = {want}\n" in text, text


def test_host_memory_is_refused(refused):
    message = refused(
        "A[0] = 1\nT.device_entry()\ntx = T.thread_id([32])\nA[tx] = 2", error=tirx.errors.DiagnosticRuntimeError
    )
    assert message == (
        "3:5: error: Memory verification failed with the following errors:\n"
        "    Variable `A` is directly accessed by host memory (it is not contained in a thread environment or in the "
        "function arguments.\n"
        "  Did you forget to bind?\n"
        "    A[0] = 1\n"
        "    ^^^^\n"
        "  help: only code after T.device_entry() can access elements"
    )


def test_a_host_variable_that_is_set_once_is_a_binding():
    body = (
        "y: T.int32 = m\nz: T.int32 = m\nif m > 3:\n    z = 4\nT.device_entry()\ntx = T.thread_id([32])\nA[tx] = y + z"
    )
    text = lowered(body, 'A: T.Buffer((64,), "int32"), m: T.int32').script()
    assert "y: T.let[T.int32] = m\n        z: T.int32 = m\n        if m > 3:\n            z = 4\n" in text
    assert 'z_1: T.let[T.int32] = z\n        T.call_packed("k_kernel", A.data, y, z_1, 1, 32)' in text


def line(text, message, *, row=6, column=5, help=None):
    out = f"{row}:{column}: error: {message}\n    {text}\n{' ' * (column - 1)}{'^' * (len(text) - column + 5)}"
    return out + (f"\n  help: {help}" if help else "")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('sm = T.alloc_shared((16384,), "float32")\nsm[tx] = A[tx]',
         line('sm = T.alloc_shared((16384,), "float32")',
              "static shared memory of 65536 bytes, at most 49152 are allowed",
              column=10, help='allocate with scope="shared.dyn": dynamic shared memory can be larger')),
        ("return 1",
         line("return 1", "CUDA device kernel may only contain a successful early return, return 0, got 1")),
        ('T.attr({"tirx.launch_bounds_min_blocks_per_sm": 0})',
         line('T.attr({"tirx.launch_bounds_min_blocks_per_sm": 0})',
              "tirx.launch_bounds_min_blocks_per_sm must be a positive compile-time constant, got 0")),
        ('T.attr({"tirx.launch_bounds_max_blocks_per_cluster": 4})',
         line('T.attr({"tirx.launch_bounds_max_blocks_per_cluster": 4})',
              "max_blocks_per_cluster requires min_blocks_per_sm")),
        ('T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2, "tirx.max_registers": 64})',
         line('T.attr({"tirx.launch_bounds_min_blocks_per_sm": 2, "tirx.max_registers": 64})',
              "tirx.max_registers cannot be combined with CUDA launch bounds")),
        ('T.attr({"tirx.dyn_smem_bytes": -4})',
         line('T.attr({"tirx.dyn_smem_bytes": -4})',
              "tirx.dyn_smem_bytes must be a non-negative compile-time constant, got -4")),
        ('sm = T.alloc_buffer((0,), "uint8", scope="shared.dyn")',
         line('sm = T.alloc_buffer((0,), "uint8", scope="shared.dyn")',
              "kernel k allocates dynamic shared memory with a placeholder extent but does not declare its size; "
              "annotate the kernel with tirx.dyn_smem_bytes (SMEMPool.commit() emits it)", column=10)),
    ],
)  # fmt: skip
def test_refused(refused, body, message):
    assert refused(HEAD + body, 'A: T.Buffer((64,), "float32")') == message


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ('T.attr({"tirx.max_registers": 64})', 'T.attr({"tirx.max_registers": 32})',
         "7:5: error: Conflicting tirx.max_registers values: 64 and 32"),
        ('T.attr({"tirx.dyn_smem_bytes": 64})', 'T.attr({"tirx.dyn_smem_bytes": 32})',
         "7:5: error: Conflicting tirx.dyn_smem_bytes values: 64 and 32"),
        ('s = T.alloc_buffer((4,), "uint8", scope="shared.dyn")',
         't = T.alloc_buffer((4,), "uint8", scope="shared.dyn")',
         "7:9: error: Only one dynamic shared memory allocation is allowed."),
    ],
)  # fmt: skip
def test_conflicts(refused, first, second, message):
    assert refused(HEAD + first + "\n" + second, 'A: T.Buffer((64,), "float32")').startswith(message + "\n")


@pytest.mark.parametrize(
    ("body", "launch"),
    [
        ('sm = T.alloc_buffer((1024,), "float32", scope="shared.dyn")', "1, 64, 4096"),
        ('T.attr({"tirx.dyn_smem_bytes": 100})\nsm = T.alloc_buffer((0,), "uint8", scope="shared.dyn")', "1, 64, 100"),
    ],
)
def test_dynamic_shared_memory_is_part_of_the_launch(body, launch):
    text = lowered(HEAD + body + "\nA[tx] = 1.0").script()
    assert f'T.call_packed("k_kernel", A.data, {launch})' in text, text


def test_a_kernel_takes_a_limited_number_of_parameters():
    params = ", ".join(f"p{i}: T.int32" for i in range(511)) + ', A: T.Buffer((64,), "int32")'
    used = " + ".join(f"p{i}" for i in range(511))
    host = "half: T.let = p0 // 2\n"
    with pytest.raises(tirx.DiagnosticError, match="a kernel takes at most 512 parameters"):
        tirx.lower(source(host + HEAD + f"A[tx] = half + {used}", params), target="cpu")
    tirx.lower(source(HEAD + f"A[tx] = {used}", params), target="cpu")


def test_a_size_that_only_checks_need_is_no_parameter_of_the_cuda_text():
    body = 'n = T.int32()\nA = T.match_buffer(a, (n,), "float32")\n' + HEAD + "A[tx] = 1.0"
    exe = tirx.compile(source(body, "a: T.handle"), target="cpu")
    assert "k_kernel(float* __restrict__ A_ptr) {" in exe.source
    a = np.zeros(64, np.float32)
    exe(a)
    assert a.all()
    with pytest.raises(tirx.EmulationError) as info:
        exe(np.zeros(40, np.float32))
    assert info.value.kind == "out_of_bounds"


def test_launch_bounds_and_attributes_reach_the_text():
    attrs = '{"tirx.launch_bounds_min_blocks_per_sm": 2, "tirx.launch_bounds_max_blocks_per_cluster": 4}'
    assert (
        "__launch_bounds__(64, 2, 4) k_kernel("
        in tirx.compile(source(HEAD + f"T.attr({attrs})\nA[tx] = 1.0"), target="cpu").source
    )
    assert (
        "__maxnreg__(64) k_kernel("
        in tirx.compile(source(HEAD + 'with T.attr({"tirx.max_registers": 64}):\n    A[tx] = 1.0'), target="cpu").source
    )


def test_assertions_can_be_left_out():
    f = source(HEAD + 'assert A[tx] > 0.0, "positive"\nA[tx] = 1.0')
    assert "assert A[tx] > T.float32(0.0)" in tirx.lower(f, target="cpu").script()
    assert "assert" not in tirx.lower(f, target="cpu", disable_assert=True).script()
