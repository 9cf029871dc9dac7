# SPDX-License-Identifier: Apache-2.0
"""Parameters, sizes, @T.jit and launch configurations."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tirx
from tirx.script import tirx as T

BODY = "    T.device_entry()\n    tx = T.thread_id([32])\n"


def head(parameters: str, body: str = BODY, dialect: str = "prim_func", before: str = "", **names) -> str:
    """The printed `def` line; the whole text must parse back to the same function."""
    f = tirx.from_source(f"{before}@T.{dialect}\ndef k({parameters}):\n{body}", names)
    text = f.script()
    again = tirx.from_source(text)
    assert again.script() == text
    assert tirx.structural_equal(f, again)
    return next(line for line in text.split("\n") if line.startswith("def "))[len("def k(") : -len("):")]


# ---- parameters and sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        'A: T.Buffer((64, 4), "float16")',
        "s: T.float32",
        "p: T.handle",
        'p: T.handle("float32")',
        'p: T.handle("float32", "shared")',
        "m: T.TensorMap()",
        "b: T.bool, i: T.int64, u: T.uint8, h: T.float16",
    ],
)
def test_parameters_print_as_they_are_written(parameters):
    assert head(parameters) == parameters


def test_keyword_only_parameters_are_ordinary_ones():
    assert head("s: T.int32, *, t: T.float32") == "s: T.int32, t: T.float32"


def test_shapes_of_numbers_names_and_expressions():
    assert head('A: T.Buffer((n, 2), "int8")', n=8) == 'A: T.Buffer((8, 2), "int8")'
    assert head("A: T.Buffer(16)") == 'A: T.Buffer((16,), "float32")'
    assert head('A: T.Buffer(("n", "n * 2"), "int8")').startswith('A: T.Buffer(("n", "n * 2"), "int8")')
    # a name that a later scalar has is that scalar
    assert "m: T.int64" in head('A: T.Buffer(("m",), "int8"), m: T.int64')


def test_sizes_made_outside():
    text = "n = T.dynamic('n')\n"
    assert head("A: T.Tensor((n, n + 1), T.int8)", dialect="function", before=text) == "A: T.Tensor((n, n + 1), T.int8)"
    # one object is one size, two objects of one name are two
    two = "n = T.dynamic('n')\nm = T.dynamic('n')\n"
    found = head("A: T.Tensor((n, m), T.int8)", dialect="function", before=two)
    assert len(set(re.findall(r"\((\w+), (\w+)\)", found)[0])) == 2
    assert head("A: T.Tensor((n,), T.int8)", dialect="function", before="n = T.dynamic('n', dtype='int64')\n")


def test_type_parameters_are_sizes():
    f = tirx.from_source(
        "@T.function\ndef k[n, m: T.int64](A: T.Tensor((n, m), T.int8)):\n"
        "    T.device_entry(launch=T.cuda.LaunchConfig(grid=n, block=32))\n"
    )
    assert "A: T.Tensor((n, m), T.int8)" in f.script()


@pytest.mark.parametrize("shape", ['("n * n",)', '("n + m",)', '("n // 2",)'])
def test_a_size_that_the_call_cannot_tell_is_an_error_here(shape):
    with pytest.raises(tirx.DiagnosticValueError, match="symbol 'n' cannot be inferred: no parameter has a dimension"):
        head(f'A: T.Buffer({shape}, "int8")')


@pytest.mark.parametrize("shape", ['("n", "n * n")', '("2 * n + 1",)', '("n + m", "m")', '("m - 3 * n", "m * 2")'])
def test_sizes_that_follow_from_linear_equations(shape):
    head(f'A: T.Buffer({shape}, "int8")')


def test_match_buffer():
    body = '    n = T.int32()\n    A = T.match_buffer(a, (n, 4), "float16", align=16)\n' + BODY
    assert head("a: T.handle", body).startswith("A: T.Buffer((") and "align=16" in head("a: T.handle", body)
    for call, message in {
        "T.match_buffer(s, (4,))": "Can not bind non-input param to buffer.",
        "T.match_buffer(a)": "Shape must be specified when binding input param",
    }.items():
        with pytest.raises(tirx.DiagnosticValueError, match=re.escape(message)):
            head("a: T.handle, s: T.int32", f"    A = {call}\n{BODY}")


def test_annotations_that_python_did_not_evaluate():
    width = 12  # only the annotation names it

    @T.prim_func
    def k(A: T.Buffer((width,), "int8"), s: "T.int32"):
        T.device_entry()
        tx = T.thread_id([32])

    assert 'A: T.Buffer((12,), "int8"), s: T.int32' in k.script()


def test_decorator_forms():
    def f(A: T.Buffer((4,), "int8")):
        T.device_entry()
        tx = T.thread_id([32])

    alias = T.prim_func
    for decorate in (T.prim_func, alias, T.prim_func(), T.function(persistent=True), T.prim_func(private=True)):
        assert decorate(f).__name__ in ("f", "main")
    assert T.prim_func(private=True)(f).symbol is None
    assert "private=True" in T.prim_func(private=True)(f).script()
    assert "persistent=True" in T.function(persistent=True)(f).script()
    with pytest.raises(TypeError, match="Expect a function, but got: 3"):
        T.prim_func(3)
    with pytest.raises(TypeError, match="not supported"):
        T.prim_func(s_tir=True)(f)


# ---- jit -----------------------------------------------------------------------------------------------------------


@T.jit
def scaled(A: T.Buffer((N,), dtype), *, N: T.constexpr, dtype: T.constexpr = "float32", flag: T.constexpr = None):  # noqa: F821
    T.device_entry()
    tx = T.thread_id([N])
    if flag:
        A[tx] = A[tx] * 2


def test_specialize():
    k = scaled.specialize(N=8)
    assert k.__name__ == "scaled" and 'A: T.Buffer((8,), "float32")' in k.script()
    assert 'A: T.Buffer((8,), "int8")' in scaled.specialize(N=8, dtype="int8").script()


def test_same_values_give_the_same_object_and_types_count():
    assert scaled.specialize(N=8) is scaled.specialize(N=8) is scaled.specialize(N=8, dtype="float32")

    @T.jit
    def empty(s: T.int32, *, v: T.constexpr):
        T.device_entry()
        tx = T.thread_id([32])

    ones = [empty.specialize(v=v) for v in (1, True, 1.0, (1,), (True,), -0.0, 0.0, 0, False, "1", None)]
    assert len({id(k) for k in ones}) == len(ones)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"M": 3, "N": 3}, "scaled.specialize() got unexpected arg(s): ['M']; it takes ['N', 'dtype', 'flag']"),
        ({"A": None, "N": 3}, "scaled.specialize() got unexpected arg(s): ['A']"),
        ({}, "scaled.specialize() missing constexpr arg(s) (no default provided): ['N']"),
        ({"N": [3]}, "all constexpr values must be hashable"),
    ],
)
def test_specialize_refuses(values, message):
    with pytest.raises(TypeError, match=re.escape(message)) as info:
        scaled.specialize(**values)
    assert not isinstance(info.value, SyntaxError)


def test_a_jit_function_is_not_called():
    with pytest.raises(TypeError, match=re.escape("call .specialize(...) first, then compile")):
        scaled(1)


@T.jit
def optional_g1(A: T.Buffer((8,), "int32"), b: T.Optional(T.handle)):
    if b is not None:
        B = T.match_buffer(b, (8,), "int32")
    T.device_entry()
    tx = T.thread_id([8])
    A[tx] = 0 if b is None else B[tx]


@T.jit
def optional_g2(
    A: T.Tensor((8,), T.int32),
    b: T.Optional(T.Tensor((8,), T.int32)),
    c: T.Tensor((8,), T.int32) | None,
    d: T.Tensor((8,), T.int32) | None,
):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=8))
    i = T.cuda.thread_idx("x")
    for x in (b, c, d):
        if T.constexpr(x is not None):
            A[i] = A[i] + x[i]


def test_optional_parameters():
    assert [n for n, _ in optional_g1.specialize().params] == ["A", "b"]
    assert [n for n, _ in optional_g1.specialize(b=None).params] == ["A"]
    full, less = optional_g2.specialize(), optional_g2.specialize(b=None, d=None)
    assert [n for n, _ in full.params] == [n for n, _ in less.params] == ["A", "b", "c", "d"]
    assert "b: T.NoneType()" in less.script() and "A[i] + c[i]" in less.script() and "b[i]" not in less.script()
    assert tirx.structural_equal(tirx.from_source(less.script()), less)
    with pytest.raises(TypeError, match="optional parameters only accept None; pass actual tensors when calling"):
        optional_g1.specialize(b=3)


def test_optional_parameters_at_the_call():
    """An absent one is left out of the call in g1, and None in g2; a present one is a tensor."""
    a, b, c, d = (np.arange(8, dtype=np.int32) * 10**k for k in range(4))
    whole = tirx.compile(optional_g1.specialize(), target="cpu")
    whole(x := a.copy(), b)
    assert (x == b).all()
    with pytest.raises(TypeError, match="expected Tensor"):
        whole(x, None)
    tirx.compile(optional_g1.specialize(b=None), target="cpu")(x)
    assert (x == 0).all()
    full = tirx.compile(optional_g2.specialize(), target="cpu")
    full(x := a.copy(), b, c, d)
    assert (x == a + b + c + d).all()
    with pytest.raises(TypeError, match="expected Tensor"):
        full(x, b, None, d)
    less = tirx.compile(optional_g2.specialize(b=None, d=None), target="cpu")
    less(x := a.copy(), None, c, None)
    assert (x == a + c).all()
    with pytest.raises(TypeError):
        less(x, b, c, None)


def test_an_absent_parameter_used_without_a_guard():
    @T.jit
    def f(A: T.Buffer((8,), "int32"), b: T.Optional(T.Buffer((8,), "int32"))):
        T.device_entry()
        tx = T.thread_id([8])
        A[tx] = b[tx]

    f.specialize()
    with pytest.raises(tirx.DiagnosticTypeError, match="'b' is absent: this specialization gave None for it"):
        f.specialize(b=None)


# ---- launch configurations -----------------------------------------------------------------------------------------

LC, KA = T.cuda.LaunchConfig, T.cuda.KernelAttributes


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"grid": 0, "block": 1}, ValueError, "grid dimensions must be positive uint32 values"),
        ({"grid": 2**32, "block": 1}, ValueError, "grid dimensions must be positive uint32 values"),
        ({"grid": (1, 1, 1, 1), "block": 1}, ValueError, "grid expects one to three dimensions"),
        ({"grid": (), "block": 1}, ValueError, "grid expects one to three dimensions"),
        ({"grid": 1, "block": 1025}, ValueError, "block must contain at most 1024 threads"),
        ({"grid": 1, "block": (32, 33)}, ValueError, "block must contain at most 1024 threads"),
        ({"grid": 3, "block": 1, "cluster": 2}, ValueError, "grid must be divisible by cluster in every dimension"),
        (
            {"grid": 6, "block": 1, "cluster": 1, "preferred_cluster": 4},
            ValueError,
            "grid must be divisible by preferred_cluster in every dimension",
        ),
        (
            {"grid": 12, "block": 1, "cluster": 2, "preferred_cluster": 3},
            ValueError,
            "preferred_cluster must be divisible by cluster in every dimension",
        ),
        ({"grid": 1, "block": 1, "preferred_cluster": 1}, ValueError, "preferred_cluster requires an explicit cluster"),
        (
            {"grid": (4, 4, 4), "block": 1, "cluster": (1, 1, 1), "preferred_cluster": (1, 1, 2)},
            ValueError,
            "preferred_cluster.z must equal cluster.z",
        ),
        ({"grid": True, "block": 1}, TypeError, "grid expects int, not bool"),
        ({"grid": 1.5, "block": 1}, TypeError, "grid must be a scalar int expression"),
        ({"grid": 1, "block": "32"}, TypeError, "block must be a scalar int expression"),
        (
            {"grid": 1, "block": 1, "mem_sync_domain": "near"},
            ValueError,
            "expected one of ('default', 'remote'), got 'near'",
        ),
        (
            {"grid": 1, "block": 1, "dynamic_smem_bytes": -1},
            ValueError,
            "dynamic_smem_bytes must be between 0 and 4294967295",
        ),
        (
            {"grid": 1, "block": 1, "preferred_shared_memory_carveout": 101},
            ValueError,
            "preferred_shared_memory_carveout must be between 0 and 100",
        ),
        ({"grid": 1, "block": 1, "cooperative": 1}, TypeError, "cooperative expects bool, got int"),
        ({"grid": 1, "block": 1, "nosuch": 1}, TypeError, "unexpected keyword argument 'nosuch'"),
        ({"block": 1}, ValueError, "LaunchConfig.grid is required"),
        ({"grid": 1}, ValueError, "LaunchConfig.block is required"),
        ({"grid": 1, "block": 1, "shared_memory_mode": "default"}, ValueError, "not supported by tirx yet"),
        ({"grid": 1, "block": 1, "shared_memory_mode": "all"}, ValueError, "shared_memory_mode: expected one of ("),
        (
            {"grid": 1, "block": 1, "programmatic_event": 3},
            TypeError,
            "programmatic_event expects T.cuda.ProgrammaticEvent, got int",
        ),
        (
            {"grid": 1, "block": 1, "mem_sync_domain_map": (0, 1)},
            TypeError,
            "mem_sync_domain_map expects T.cuda.MemSyncDomainMap, got tuple",
        ),
        (
            {"grid": 1, "block": 1, "nvlink_util_centric_scheduling": 1},
            TypeError,
            "nvlink_util_centric_scheduling expects bool, got int",
        ),
    ],
)
def test_launch_configurations_that_are_refused(fields, error, message):
    with pytest.raises(error, match=re.escape(message)) as info:
        LC(**fields)
    assert not isinstance(info.value, SyntaxError)
    # inside a kernel the same fault is at its line
    arguments = ", ".join(f"{k}={v!r}" for k, v in fields.items())
    with pytest.raises(tirx.DiagnosticError, match=re.escape(message)) as info:
        head("s: T.int32", f"    T.device_entry(launch=T.cuda.LaunchConfig({arguments}))\n", "function")
    assert info.value.lineno == 3


@pytest.mark.parametrize(
    "made, error, message",
    [
        ("MemSyncDomainMap(0, 256)", ValueError, "mem_sync_domain_map.remote must be between 0 and 255"),
        ("MemSyncDomainMap(1.5)", TypeError, "mem_sync_domain_map.default must be a scalar int expression"),
        (
            "AccessPolicyWindow(3, 4)",
            TypeError,
            "access_policy_window.base_ptr must be a buffer or a pointer parameter",
        ),
        ("AccessPolicyWindow(A, 4, 1.5)", ValueError, "access_policy_window.hit_ratio must be between 0 and 1"),
        ("AccessPolicyWindow(A, 4, s)", TypeError, "access_policy_window.hit_ratio must be a compile-time number"),
        ("AccessPolicyWindow(A, 1.0)", TypeError, "access_policy_window.num_bytes must be a scalar int expression"),
        (
            "AccessPolicyWindow(A, 4, 1.0, 'all')",
            ValueError,
            "access_policy_window.hit_prop: expected one of ('normal', 'streaming', 'persisting'), got 'all'",
        ),
        (
            "AccessPolicyWindow(A, 4, 1.0, 'normal', 'persisting')",
            ValueError,
            "access_policy_window.miss_prop: expected one of ('normal', 'streaming'), got 'persisting'",
        ),
        ("ProgrammaticEvent(0, 0, 1)", TypeError, "programmatic_event.trigger_at_block_start expects bool"),
        ("ProgrammaticEvent(True)", TypeError, "programmatic_event.event expects int, not bool"),
        ("LaunchCompletionEvent(0, -1)", ValueError, "launch_completion_event.flags must be between 0 and 4294967295"),
    ],
)
def test_records_of_a_launch_that_are_refused(made, error, message):
    with pytest.raises(error, match=re.escape(message)) as info:
        head('A: T.Buffer((8,), "int32"), s: T.float32', f"    x = T.meta_var(T.cuda.{made})\n")
    assert info.value.lineno == 3


def test_records_of_a_launch_are_kept_printed_and_computed():
    config = (
        "grid=1, block=32, mem_sync_domain_map=T.cuda.MemSyncDomainMap(0, 1), access_policy_window="
        'T.cuda.AccessPolicyWindow(A.data, n * 4, T.float32(0.5), "persisting", "normal"), programmatic_event='
        "T.cuda.ProgrammaticEvent(event, 0, True), launch_completion_event=T.cuda.LaunchCompletionEvent(event, 0), "
        "nvlink_util_centric_scheduling=True"
    )
    f = tirx.from_source(
        '@T.prim_func\ndef k(A: T.Buffer(("n",), "int32"), event: T.int64):\n    n = T.int32()\n'
        f"    T.device_entry(launch=T.cuda.LaunchConfig({config}))\n"
        '    A[T.cuda.thread_idx("x")] = n\n'
    )
    assert f"T.cuda.LaunchConfig({config})" in f.script()
    assert tirx.structural_equal(tirx.from_source(f.script()), f)
    a = np.zeros(32, np.int32)
    tirx.compile(f, target="cpu")(a, 0)
    assert (a == 32).all()


def test_an_extent_that_is_no_integer():
    with pytest.raises(tirx.DiagnosticTypeError, match="grid has incompatible type float32"):
        head("s: T.float32", "    T.device_entry(launch=T.cuda.LaunchConfig(grid=s, block=32))\n", "function")


def test_replace():
    config = LC(grid=4, block=32).replace(block=64, cooperative=True)
    assert (config.grid, config.block, config.cooperative) == ((4,), (64,), True)
    with pytest.raises(ValueError, match="at most 1024 threads"):
        config.replace(block=2000)


@pytest.mark.parametrize(
    "fields, error, message",
    [
        ({"min_blocks_per_sm": 0}, ValueError, "min_blocks_per_sm must be positive"),
        ({"min_blocks_per_sm": 1.5}, TypeError, "min_blocks_per_sm must be a compile-time constant"),
        ({"max_blocks_per_cluster": 2}, ValueError, "max_blocks_per_cluster requires min_blocks_per_sm"),
        (
            {"max_registers_per_thread": 64, "min_blocks_per_sm": 2},
            ValueError,
            "max_registers_per_thread conflicts with launch bounds and required_block_size",
        ),
        (
            {"max_registers_per_thread": 64, "required_block_size": True},
            ValueError,
            "max_registers_per_thread conflicts with launch bounds and required_block_size",
        ),
    ],
)
def test_kernel_attributes_that_are_refused(fields, error, message):
    with pytest.raises(error, match=re.escape(message)):
        KA(**fields)


@pytest.mark.parametrize(
    "launch, attrs, message",
    [
        ("grid=1, block=s", "min_blocks_per_sm=2", "min_blocks_per_sm requires static block dimensions"),
        ("grid=1, block=s", "required_block_size=True", "required_block_size requires static block and cluster"),
        (
            "grid=4, block=32, cluster=2, preferred_cluster=4",
            "required_block_size=True",
            "required_block_size requires preferred_cluster to equal cluster",
        ),
    ],
)
def test_kernel_attributes_against_the_launch(launch, attrs, message):
    text = f"    T.device_entry(launch=T.cuda.LaunchConfig({launch}), kernel_attrs=T.cuda.KernelAttributes({attrs}))\n"
    with pytest.raises(tirx.DiagnosticError, match=message):
        head("s: T.int32", text, "function")


def test_kernel_attributes_need_a_launch():
    with pytest.raises(tirx.DiagnosticError, match="device_entry kernel_attrs require a launch configuration"):
        head(
            "s: T.int32", "    T.device_entry(kernel_attrs=T.cuda.KernelAttributes(min_blocks_per_sm=2))\n", "function"
        )


def test_the_launch_is_kept_and_printed():
    text = (
        "    T.device_entry(launch=T.cuda.LaunchConfig(grid=(s, 2), block=64, cooperative=True, "
        "programmatic_stream_serialization=True), kernel_attrs=T.cuda.KernelAttributes(min_blocks_per_sm=2))\n"
    )
    f = tirx.from_source("@T.function\ndef k(s: T.int32):\n" + text)
    for part in ("grid=(s, 2)", "block=64", "cooperative=True", "programmatic_stream_serialization=True"):
        assert part in f.script()
    assert tirx.structural_equal(f, tirx.from_source(f.script()))


def test_host_expressions_feed_the_launch():
    text = "    m: T.let = s * 2\n    T.device_entry(launch=T.cuda.LaunchConfig(grid=m, block=32))\n"
    f = tirx.from_source("@T.function\ndef k(s: T.int32):\n" + text)
    assert "grid=m" in f.script()


def test_several_device_regions():
    text = """
@T.function
def k(A: T.Tensor((32,), T.int32)):
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
        A[T.cuda.thread_idx("x")] = 1
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
        A[T.cuda.thread_idx("x")] = 2
"""
    f = tirx.from_source(text)
    assert f.script().count("with T.device_entry(") == 2
    flat = text.replace("    with T.device", "    T.device").replace("32)):\n        A", "32))\n    A")
    with pytest.raises(tirx.DiagnosticError, match=re.escape("T.device_entry() inside a device region")):
        tirx.from_source(flat)


@pytest.mark.parametrize(
    "call",
    "cta_id thread_id lane_id warp_id warpgroup_id warp_id_in_wg thread_id_in_wg cluster_id cta_id_in_cluster".split(),
)
def test_scope_ids_stand_behind_the_entry(call):
    with pytest.raises(tirx.DiagnosticError, match=re.escape(f"T.{call}(...) must stand after T.device_entry()")):
        head("s: T.int32", f"    x = T.{call}([32])\n{BODY}")
    f = tirx.from_source(f"@T.prim_func\ndef k(s: T.int32):\n{BODY}    x = T.{call}([32])\n")
    assert f"x = T.{call}([32])" in f.script()


def test_scope_ids_take_a_bare_extent_and_none():
    text = BODY + "    bx = T.cta_id(4)\n    gx, gy = T.cluster_id([2, s])\n    w = T.warp_id()\n"
    script = tirx.from_source("@T.prim_func\ndef k(s: T.int32):\n" + text).script()
    for line in ("bx = T.cta_id([4])", "gx, gy = T.cluster_id([2, s])", "w = T.warp_id()"):
        assert line in script


def test_axes():
    text = "    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))\n    x = T.cuda.thread_idx({})\n"
    with pytest.raises(tirx.DiagnosticError, match="CUDA index axis must be x, y, or z"):
        head("s: T.int32", text.format('"w"'), "function")
    with pytest.raises(tirx.DiagnosticError, match="missing operand 'axis'"):
        head("s: T.int32", text.format(""), "function")
    with pytest.raises(tirx.DiagnosticError, match="cluster_dim requires an explicit launch cluster"):
        head("s: T.int32", text.format('"x"').replace("thread_idx", "cluster_dim"), "function")
