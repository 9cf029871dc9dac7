# SPDX-License-Identifier: Apache-2.0
"""Tensor maps in calls: encoded in the host zone or passed ready, and every fault that a call meets, whole.

The kernels copy the 128 bytes of their map into an output, so that the whole way is compared: parser, launch plan,
encoder, kernel argument.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

import tirx
from tirx import T, _core
from tirx.script import ir as I


def words(out: np.ndarray) -> tuple[int, dict]:
    """The address and the fields of the map that a kernel has copied."""
    address, fields = _core.tensormap_decode(out.tobytes())
    names = (
        "im2col dtype dims strides box element_strides lower upper channels pixels interleave swizzle l2 oob".split()
    )
    return address, dict(zip(names, fields, strict=True))


def aligned(shape: tuple[int, ...], dtype: str, at: int = 0) -> np.ndarray:
    """An array whose address is `at` bytes behind a multiple of 256."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 512, np.uint8)
    first = -raw.ctypes.data % 256 + at
    return raw[first : first + size].view(dtype).reshape(shape)


def run(kernel, *args) -> np.ndarray:
    out = np.zeros(16, np.uint64)
    tirx.compile(kernel, target="cpu")(*args, out)
    return out


def message(kernel, *args) -> str:
    with pytest.raises((ValueError, TypeError)) as e:
        run(kernel, *args)
    return str(e.value)


def copier(encode, shape=(32, 64), dtype="float16"):
    """A kernel that encodes a map of its first argument, and copies it."""

    @T.prim_func
    def k(A: T.Buffer(shape, dtype), out: T.Buffer((16,), "uint64")):
        m: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
        encode(m, A)
        T.device_entry()
        tx = T.thread_id([16])
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(T.address_of(m), 0, "uint64"))
        out[tx] = view[tx]

    return k


NUMBERS = (64, 32, 128, 32, 16, 1, 1)

SPELLINGS = {
    "packed": lambda m, A: T.call_packed(
        "runtime.cuTensorMapEncodeTiled", m, "float16", 2, A.data, *NUMBERS, 0, 2, 1, 1
    ),
    "tensormap_encode_tiled": lambda m, A: T.tensormap_encode_tiled(
        m, A.data, *NUMBERS, descriptor_dtype="float16", rank=2, swizzle=2, l2_promotion=1, oob_fill=1
    ),
    "cuda": lambda m, A: T.cuda.tensormap_encode_tiled(
        T.address_of(m), A, *NUMBERS, descriptor_dtype=T.float16, rank=2, swizzle=2, l2_promotion=1, oob_fill=1
    ),
}


SPELLINGS["names"] = lambda m, A: T.tensormap_encode_tiled(
    *(m, A, *NUMBERS), descriptor_dtype="float16", rank=2, swizzle="64B", l2_promotion="64B", oob_fill="nan"
)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(spelling):
    a = aligned((32, 64), "float16")
    kernel = copier(SPELLINGS[spelling])
    address, fields = words(run(kernel, a))
    assert address == a.ctypes.data
    assert fields == {
        "im2col": False, "dtype": 6, "dims": (64, 32), "strides": (128,), "box": (32, 16), "element_strides": (1, 1),
        "lower": (), "upper": (), "channels": 0, "pixels": 0, "interleave": 0, "swizzle": 2, "l2": 1, "oob": 1,
    }  # fmt: skip
    assert tirx.structural_equal(tirx.from_source(kernel.script()), kernel)


def test_im2col():
    def encode(m, A):
        T.tensormap_encode_im2col(
            m, A.data, 64, 8, 4, 2, 128, 1024, 4096, -1, -2, 1, 2, 64, 32, 1, 1, 2, 1,
            descriptor_dtype="float16", rank=4, swizzle=3,
        )  # fmt: skip

    a = aligned((2, 4, 8, 64), "float16")
    address, fields = words(run(copier(encode, (2, 4, 8, 64)), a))
    assert address == a.ctypes.data
    assert fields == {
        "im2col": True, "dtype": 6, "dims": (64, 8, 4, 2), "strides": (128, 1024, 4096), "box": (),
        "element_strides": (1, 1, 2, 1), "lower": (-1, -2), "upper": (1, 2), "channels": 64, "pixels": 32,
        "interleave": 0, "swizzle": 3, "l2": 0, "oob": 0,
    }  # fmt: skip


def test_sizes_of_the_call_and_an_element_inside():
    @T.prim_func
    def k(a: T.handle, out: T.Buffer((16,), "uint64")):
        n = T.int32()
        h = T.int32()
        A = T.match_buffer(a, (h, n), "float32", strides=["s", 1])
        m: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
        T.call_packed(
            "runtime.cuTensorMapEncodeTiled", m, "float32", 2, A.ptr_to([h // 2, 4]), n - 4, h - h // 2,
            A.strides[0] * 4, T.min(n, 32), 4, 1, 1, 0, 0, 0, 0,
        )  # fmt: skip
        T.device_entry()
        tx = T.thread_id([16])
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
        out[tx] = view[tx]

    whole = aligned((10, 64), "float32")
    a = whole[:, :40]
    address, fields = words(run(k, a))
    assert address == a.ctypes.data + 5 * 256 + 16
    assert (fields["dims"], fields["strides"], fields["box"]) == ((36, 5), (256,), (32, 4))


@pytest.mark.parametrize(
    "dtype, force, number",
    [
        ("int8", -1, 0), ("uint8", -1, 0), ("float8_e4m3fn", -1, 0), ("float8_e5m2", -1, 0), ("float6_e3m2fn", -1, 0),
        ("uint16", -1, 1), ("int16", -1, 1), ("uint32", -1, 2), ("int32", -1, 3), ("uint64", -1, 4), ("int64", -1, 5),
        ("float16", -1, 6), ("float32", -1, 7), ("float64", -1, 8), ("bfloat16", -1, 9), ("float4_e2m1fn", -1, 14),
        ("float32", 10, 10), ("float32", 11, 11), ("float32", 12, 12), ("float4_e2m1fn", 13, 13),
        ("float6_e2m3fn", 15, 15), ("uint8", 15, 15), ("bfloat16", 1, 1), ("float32", 2, 2), ("bool", -1, 0),
        ("int128", -1, None), ("float32x4", -1, None), ("float16", 11, None), ("float32", 16, None),
        ("float32", 14, None),
        ("float16", 15, None), ("float4_e2m1fn", 0, None), ("handle", -1, None),
    ],
)  # fmt: skip
def test_element_types(dtype, force, number):
    assert _core.tensormap_dtype(dtype, force) == number


def test_two_maps_and_two_kernels():
    @T.function
    def k(A: T.Tensor((32, 64), T.float16), out: T.Tensor((3, 16), T.uint64)):
        m = T.stack_alloca("tensormap", 1)
        w = T.stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(m, A, *NUMBERS, descriptor_dtype="float16", rank=2)
        T.tensormap_encode_tiled(w, A, 64, 32, 128, 16, 8, 1, 1, descriptor_dtype="float16", rank=2, swizzle=1)
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16)):
            tx = T.cuda.thread_idx("x")
            first = T.decl_buffer((16,), T.uint64, data=T.ptr_byte_offset(m, 0, "uint64"))
            second = T.decl_buffer((16,), T.uint64, data=T.ptr_byte_offset(w, 0, "uint64"))
            out[0, tx] = first[tx]
            out[1, tx] = second[tx]
        T.tensormap_encode_tiled(m, A.ptr_to([16, 0]), 64, 16, 128, 64, 8, 1, 1, descriptor_dtype="float16", rank=2)
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16)):
            tx = T.cuda.thread_idx("x")
            third = T.decl_buffer((16,), T.uint64, data=T.ptr_byte_offset(m, 0, "uint64"))
            out[2, tx] = third[tx]

    a = aligned((32, 64), "float16")
    out = np.zeros((3, 16), np.uint64)
    tirx.compile(k, target="cpu")(a, out)
    got = [words(row) for row in out]
    assert [address - a.ctypes.data for address, _ in got] == [0, 0, 16 * 128]
    assert [f["box"] for _, f in got] == [(32, 16), (16, 8), (64, 8)]
    assert [f["swizzle"] for _, f in got] == [0, 1, 0]


def test_more_maps_than_fit_the_stack():
    @T.function
    def k(A: T.Tensor((32, 64), T.float16), out: T.Tensor((9, 16), T.uint64)):
        maps = T.meta_var([T.stack_alloca("tensormap", 1) for _ in range(9)])
        T.meta_var([
            T.tensormap_encode_tiled(m, A, 64, 32, 128, 16, i + 1, 1, 1, descriptor_dtype="float16", rank=2)
            for i, m in enumerate(maps)
        ])  # fmt: skip
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=16))
        tx = T.cuda.thread_idx("x")
        for i, m in enumerate(maps):
            view = T.decl_buffer((16,), T.uint64, data=T.ptr_byte_offset(m, 0, "uint64"))
            out[i, tx] = view[tx]

    out = np.zeros((9, 16), np.uint64)
    tirx.compile(k, target="cpu")(aligned((32, 64), "float16"), out)
    assert [words(row)[1]["box"] for row in out] == [(16, i + 1) for i in range(9)]


@T.prim_func
def of_handles(a: T.handle, b: T.handle("float16"), n: T.int64, out: T.Buffer((2, 16), "uint64")):
    m: T.let = T.tvm_stack_alloca("tensormap", 1)
    w: T.let = T.tvm_stack_alloca("tensormap", 1)
    T.tensormap_encode_tiled(m, a, 64, n, 128, 32, 16, 1, 1, descriptor_dtype="float16", rank=2)
    T.tensormap_encode_tiled(
        w, T.ptr_byte_offset(b, n * 16, "float16"), 64, n - 1, 128, 32, 16, 1, 1, descriptor_dtype="float16", rank=2
    )
    T.device_entry()
    tx = T.thread_id([16])
    first = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
    second = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(w, 0, "uint64"))
    out[0, tx] = first[tx]
    out[1, tx] = second[tx]


def test_maps_over_pointers():
    a = aligned((32, 64), "float16")
    out = np.zeros((2, 16), np.uint64)
    tirx.compile(of_handles, target="cpu")(a, a, 32, out)
    assert [words(row)[0] - a.ctypes.data for row in out] == [0, 512]
    assert [words(row)[1]["dims"] for row in out] == [(64, 32), (64, 31)]
    with pytest.raises(ValueError) as e:
        tirx.compile(of_handles, target="cpu")(None, a, 32, out)
    assert str(e.value) == (
        "Invalid tensor map m when calling:\n"
        "  `of_handles(a: handle, b: handle, n: int64, out: Tensor([2, 16], uint64))`,\n  the address is NULL"
    )


def test_a_map_is_chosen_at_run_time():
    @T.prim_func
    def k(A: T.Buffer((32, 64), "float16"), out: T.Buffer((16,), "uint64"), which: T.int32):
        a: T.let = T.tvm_stack_alloca("tensormap", 1)
        b: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(a, A, 64, 32, 128, 32, 16, 1, 1, descriptor_dtype="float16", rank=2)
        T.tensormap_encode_tiled(b, A, 64, 32, 128, 16, 8, 1, 1, descriptor_dtype="float16", rank=2)
        T.device_entry()
        tx = T.thread_id([16])
        m: T.let = T.if_then_else(which == 0, a, b)
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
        out[tx] = view[tx]

    assert tirx.structural_equal(tirx.from_source(k.script()), k)
    assert "const CUtensorMap* m = which == 0 ? &a : &b;" in tirx.compile(k, target="cpu").source
    for which, box in ((0, (32, 16)), (1, (16, 8))):
        out = np.zeros(16, np.uint64)
        tirx.compile(k, target="cpu")(aligned((32, 64), "float16"), out, which)
        assert words(out)[1]["box"] == box


# ---- faults that a call meets --------------------------------------------------------------------------------------


def sized(**fields):
    """A kernel whose numbers come with the call."""

    @T.prim_func
    def k(
        A: T.Buffer((32, 64), "float16"),
        dim: T.int64,
        stride: T.int64,
        box: T.int32,
        es: T.int32,
        swizzle: T.int32,
        out: T.Buffer((16,), "uint64"),
    ):
        m: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)
        T.call_packed(
            "runtime.cuTensorMapEncodeTiled", m, "float16", 2, A.data, 64, dim, stride, box, 8, 1, es, 0, swizzle, 0, 0
        )
        T.device_entry()
        tx = T.thread_id([16])
        view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
        out[tx] = view[tx]

    return k


SIZED = (
    "k(A: Tensor([32, 64], float16), dim: int64, stride: int64, box: int32, es: int32, swizzle: int32, "
    "out: Tensor([16], uint64))"
)


ALONG = "strides[0] (bytes between neighbours along dimension 1)"
MODES = "none, 32B, 64B, 128B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B"


@pytest.mark.parametrize(
    "numbers, text",
    [
        ((2**32 + 1, 128, 16, 1, 0), "dims[1] is 4294967297, expected 1..4294967296"),
        ((-3, 128, 16, 1, 0), "dims[1] is -3, expected 1..4294967296"),
        ((32, 24, 16, 1, 0), f"{ALONG} is 24, expected a multiple of 16"),
        ((32, 2**40, 16, 1, 0), f"{ALONG} is 1099511627776, expected 0 to 2**40 - 16"),
        ((32, 128, 300, 1, 0), "box[0] is 300, expected 1..256"),
        ((32, 128, 12, 1, 0), "box[0] is 12, which is 24 bytes of F16, expected a multiple of 16 bytes"),
        ((32, 128, 128, 1, 3), "box[0] is 128, which is 256 bytes of F16, expected at most 128 bytes for swizzle 3"),
        ((32, 128, 16, 9, 0), "element_strides[1] is 9, expected 1..8"),
        ((32, 128, 16, 1, 7), f"swizzle is 7, expected 0..6 ({MODES})"),
    ],
)
def test_numbers_of_the_call(numbers, text):
    got = message(sized(), aligned((32, 64), "float16"), *numbers)
    assert got == f"Invalid tensor map m when calling:\n  `{SIZED}`,\n  {text}"


def test_numbers_of_the_call_that_are_right():
    _, fields = words(run(sized(), aligned((32, 64), "float16"), 2**32, 2**40 - 16, 64, 8, 3))
    assert (fields["dims"], fields["strides"], fields["box"]) == ((64, 2**32), (2**40 - 16,), (64, 8))


def test_address():
    got = message(copier(SPELLINGS["packed"]), aligned((32, 64), "float16", at=8))
    assert got == (
        "Invalid tensor map m when calling:\n  `k(A: Tensor([32, 64], float16), out: Tensor([16], uint64))`,\n"
        "  the address is a multiple of 8 bytes, expected a multiple of 16"
    )


def test_address_of_a_padded_type():
    def encode(m, A):
        T.tensormap_encode_tiled(m, A, 256, 32, 128, 128, 8, 1, 1, descriptor_dtype="float4_e2m1fn", rank=2)

    kernel = copier(encode, (32, 128), "uint8")
    assert message(kernel, aligned((32, 128), "uint8", at=16)) == (
        "Invalid tensor map m when calling:\n  `k(A: Tensor([32, 128], uint8), out: Tensor([16], uint64))`,\n"
        "  the address is a multiple of 16 bytes, expected a multiple of 32 (16U4_ALIGN16B)"
    )
    _, fields = words(run(kernel, aligned((32, 128), "uint8", at=32)))
    assert (fields["dtype"], fields["dims"], fields["box"]) == (14, (256, 32), (128, 8))


def test_empty_tensor():
    n = T.dynamic("n")

    @T.function
    def k(A: T.Tensor((n, 64), T.float16), blocks: T.int32, out: T.Tensor((16,), T.uint64)):
        m = T.stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(m, A, 64, n, 128, 64, 8, 1, 1, descriptor_dtype="float16", rank=2)
        T.device_entry(launch=T.cuda.LaunchConfig(grid=blocks, block=16))
        view = T.decl_buffer((16,), T.uint64, data=T.ptr_byte_offset(m, 0, "uint64"))
        out[T.cuda.thread_idx("x")] = view[T.cuda.thread_idx("x")]

    empty = np.zeros((0, 64), np.float16)
    out = np.zeros(16, np.uint64)
    exe = tirx.compile(k, target="cpu")
    exe(empty, 0, out)  # nothing runs on it
    assert not out.any()
    with pytest.raises(ValueError) as e:
        exe(empty, 1, out)
    assert str(e.value) == (
        "Invalid tensor map m when calling:\n"
        "  `k(A: Tensor([n, 64], float16), blocks: int32, out: Tensor([16], uint64))`,\n"
        "  it is over a tensor without elements, and the kernel would run on it"
    )


def test_map_that_nothing_encodes():
    assert message(copier(lambda m, A: None), aligned((32, 64), "float16")) == (
        "Tensor map #1 of k_kernel is not encoded when calling:\n"
        "  `k(A: Tensor([32, 64], float16), out: Tensor([16], uint64))`,\n"
        '  expected T.call_packed("runtime.cuTensorMapEncodeTiled", ...) before the launch'
    )


SWIZZLES = MODES.split(", ")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: T.tvm_stack_alloca("float32", 1), "T.tvm_stack_alloca makes room for a \"tensormap\", got 'float32'"),
        (
            lambda: T.tvm_stack_alloca("tensormap", 2),
            "T.tvm_stack_alloca makes room for 1 tensor map, got 2: call it once for each map",
        ),
        (
            lambda: T.tensormap_encode_tiled(0, 1, 2, descriptor_dtype="float16", rank=2),
            "tensormap_encode_tiled takes a map, an address and 4 * rank - 1 numbers, for rank 2 that is 7, got 3 "
            "operand(s) in all",
        ),
        (
            lambda: T.tensormap_encode_im2col(0, 1, 2, descriptor_dtype="float16", rank=3),
            "tensormap_encode_im2col takes a map, an address and 5 * rank - 3 numbers, for rank 3 that is 12, got 3 "
            "operand(s) in all",
        ),
        (
            lambda: T.tensormap_encode_tiled(0, 1, 2, descriptor_dtype="float16", rank=2.0),
            "tensormap_encode_tiled: rank must be a Python int, got 2.0",
        ),
        (
            lambda: T.tensormap_encode_tiled(*range(9), descriptor_dtype="float16", rank=2, swizzle="16B"),
            f"tensormap_encode_tiled: swizzle must be one of {', '.join(map(repr, SWIZZLES))}, got '16B'",
        ),
    ],
)
def test_front_end(call, text):
    with pytest.raises(tirx.DiagnosticError) as e:

        @T.prim_func
        def k(A: T.Buffer((32, 64), "float16")):
            call()

    assert text in str(e.value)


def test_no_map_of_another_type():
    with pytest.raises(tirx.DiagnosticError, match="does not take a pointer"):

        @T.prim_func
        def k(A: T.Buffer((32, 64), "float16")):
            m: T.let[T.int32] = T.tvm_stack_alloca("tensormap", 1)


def test_no_map_on_the_device():
    with pytest.raises(tirx.DiagnosticError, match="tensor maps are made on the host"):

        @T.prim_func
        def k(A: T.Buffer((32, 64), "float16")):
            T.device_entry()
            m: T.let[T.TensorMap()] = T.tvm_stack_alloca("tensormap", 1)


# ---- ready maps ----------------------------------------------------------------------------------------------------


@T.prim_func
def of_ready(m: T.TensorMap(), out: T.Buffer((16,), "uint64")):
    T.device_entry()
    tx = T.thread_id([16])
    view = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(m, 0, "uint64"))
    out[tx] = view[tx]


READY = "of_ready(m: TensorMap, out: Tensor([16], uint64))"


def test_ready_map():
    a = aligned((4, 32, 64), "float16")
    m = tirx.tensor_map(
        a[:, 1:, 8:], (32, 16, 2), swizzle="64B", l2_promotion="128B", oob_fill="nan", element_strides=(1, 2, 1)
    )
    assert repr(m) == "<tirx.TensorMap of float16 (56, 31, 4), box (32, 16, 2)>"
    assert m.tensor.base is not None
    out = run(of_ready, m)
    assert out.tobytes() == bytes(m)
    address, fields = words(out)
    assert address == a.ctypes.data + 128 + 16
    assert (fields["dims"], fields["strides"], fields["box"]) == ((56, 31, 4), (128, 4096), (32, 16, 2))
    assert (fields["swizzle"], fields["l2"], fields["oob"], fields["element_strides"]) == (2, 2, 1, (1, 2, 1))
    assert run(of_ready, np.frombuffer(bytes(m), np.uint8)).tobytes() == bytes(m)


def test_ready_map_of_given_sizes():
    a = aligned((64, 64), "float32")
    m = tirx.tensor_map(a, (16, 4), dims=(32, 10), strides=(512,), offset=64, dtype="TF32")
    address, fields = words(np.frombuffer(bytes(m), np.uint64))
    assert address == a.ctypes.data + 64
    assert (fields["dims"], fields["strides"], fields["dtype"]) == ((32, 10), (512,), 11)


def test_ready_im2col_map():
    a = aligned((2, 8, 8, 64), "float16")
    m = tirx.tensor_map(a, channels=64, pixels=32, lower_corner=(-1, -1), upper_corner=(0, 1), swizzle="128B")
    assert repr(m) == "<tirx.TensorMap of float16 (64, 8, 8, 2), im2col, 64 channels, 32 pixels>"
    _, fields = words(np.frombuffer(bytes(m), np.uint64))
    assert (fields["im2col"], fields["lower"], fields["upper"]) == (True, (-1, -1), (0, 1))


@pytest.mark.parametrize(
    "given, text",
    [
        (None, "Mismatched type on argument #0 when calling:\n  `{}`,\n  expected TensorMap, got None"),
        (64, "Mismatched type on argument #0 when calling:\n  `{}`,\n  expected TensorMap, got int"),
        (
            np.zeros(3),
            "Mismatched tensor map on argument #0 when calling:\n  `{}`,\n"
            "  expected a map of tirx.tensor_map(...), or a vector of 128 bytes on the host",
        ),
        (
            np.zeros(128, np.uint8),
            "Mismatched tensor map on argument #0 when calling:\n  `{}`,\n  the 128 bytes are no tensor map",
        ),
    ],
)
def test_what_is_no_map(given, text):
    assert message(of_ready, given) == text.format(READY)


def quoted(names) -> str:
    return ", ".join(map(repr, names))


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda a: tirx.tensor_map(3, (8,)), "tensor_map: expected a tensor, got int"),
        (
            lambda a: tirx.tensor_map(a[:, ::2], (8, 8)),
            "tensor_map: the innermost dimension must be contiguous, its stride is 2 elements",
        ),
        (
            lambda a: tirx.tensor_map(a, (8, 8), dims=(64,)),
            "tensor_map: strides are needed for 1 dimensions of a tensor of 2",
        ),
        (lambda a: tirx.tensor_map(a, (8,)), "box has 1 entries, expected 2"),
        (lambda a: tirx.tensor_map(a, (8, 257)), "tensor map: box[1] is 257, expected 1..256"),
        (
            lambda a: tirx.tensor_map(a, (8, 8), swizzle="256B"),
            f"tensor_map: swizzle must be one of {quoted(SWIZZLES)}, got '256B'",
        ),
        (
            lambda a: tirx.tensor_map(a, (8, 8), dtype="TF32"),
            "tensor_map: dtype 'TF32' does not go with elements of dtype float16",
        ),
        (
            lambda a: tirx.tensor_map(a, (8, 8), offset=2),
            "tensor map: the address is a multiple of 2 bytes, expected a multiple of 16",
        ),
        (lambda a: tirx.tensor_map(a.reshape((1,) * 4 + (32, 64)), (8,) * 6), "dims has 6 entries, expected at most 5"),
    ],
)
def test_faults_of_tensor_map(make, text):
    with pytest.raises((ValueError, TypeError)) as e:
        make(aligned((32, 64), "float16"))
    assert str(e.value) == text


@I.ir_module
class WithHelper:
    @T.prim_func(private=True)
    def word(m: T.TensorMap(), i: T.int32) -> T.uint64:
        words = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(T.address_of(m), 0, "uint64"))
        return words[i]

    @T.prim_func
    def main(A: T.Buffer((32, 64), "float16"), ready: T.TensorMap(), out: T.Buffer((2, 16), "uint64")):
        m: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(m, A, *NUMBERS, descriptor_dtype="float16", rank=2)
        T.device_entry()
        tx = T.thread_id([16])
        out[0, tx] = WithHelper.word(m, tx)
        out[1, tx] = WithHelper.word(ready, tx)


def test_device_functions_take_maps():
    a = aligned((32, 64), "float16")
    m, out = tirx.tensor_map(a, (8, 8)), np.zeros((2, 16), np.uint64)
    exe = tirx.compile(WithHelper, target="cpu")
    exe(a, m, out)
    assert words(out[0])[1]["box"] == (32, 16)
    assert out[1].tobytes() == bytes(m)
    assert "word(const CUtensorMap* m, int i)" in exe.source


def test_device_functions_take_maps_on_cuda(nvrtc):
    assert tirx.compile(WithHelper, target="cuda:sm_90a").cubin


def test_kernel_text():
    source = tirx.compile(of_ready, target="cpu").source
    assert "struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };" in source
    assert "of_ready_kernel(const __grid_constant__ CUtensorMap m, uint64_t* __restrict__ out_ptr)" in source
    assert "#include" not in source


def test_plan_text():
    plan = tirx.compile(copier(SPELLINGS["packed"]), target="cpu").plan
    assert "tensor map m from A\n" in plan


def test_maps_are_the_size_of_the_struct():
    assert struct.calcsize("16Q") == 128 == len(bytes(tirx.tensor_map(aligned((4, 64), "float16"), (8, 4))))
