# SPDX-License-Identifier: Apache-2.0
"""What a call makes of its arguments: numbers, arrays, tensors of other libraries."""

from __future__ import annotations

import ctypes
import enum
import gc
import sys
from decimal import Decimal

import ml_dtypes
import numpy as np
import pytest

from tirx import _core

CPU, CUDA = 1, 2


def tensor(x):
    got = _core.describe_arg(x)
    assert got["kind"] == "tensor", got
    return got


# ---- numbers ---------------------------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    RED = 7


class Index:
    def __index__(self):
        return -(2**40)


@pytest.mark.parametrize(
    "x", [0, 1, -1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, np.int8(-5), np.uint64(2**64 - 1), Colour.RED, Index()]
)
def test_integers(x):
    assert _core.describe_arg(x) == {"kind": "int", "value": x.__index__()}


@pytest.mark.parametrize("x, side", [(2**64, "positive"), (-(2**63) - 1, "negative"), (10**400, "positive")])
def test_integers_beyond_64_bits_are_marked(x, side):
    assert _core.describe_arg(x) == {"kind": "int", "overflow": side}


@pytest.mark.parametrize(
    "x", [0.0, -1.5, float("inf"), 1e308, np.float16(2.5), np.float32(0.1), np.float64(0.1), ml_dtypes.bfloat16(1.5)]
)
def test_floats(x):
    assert _core.describe_arg(x) == {"kind": "float", "value": float(x)}


def test_nan_stays_nan():
    assert np.isnan(_core.describe_arg(float("nan"))["value"])


@pytest.mark.parametrize("x", [True, False, np.True_, np.False_])
def test_booleans(x):
    assert _core.describe_arg(x) == {"kind": "bool", "value": bool(x)}


@pytest.mark.parametrize("x", ["text", b"text", [1], (), {}, 1j, Decimal(1), object, print])
def test_other_objects_are_known_by_their_type(x):
    assert _core.describe_arg(x) == {"kind": "other", "type": type(x).__qualname__}


def test_none():
    assert _core.describe_arg(None) == {"kind": "none", "type": "None"}


def test_an_exception_of_the_argument_goes_through():
    class Angry:
        def __index__(self):
            raise OSError("not now")

    with pytest.raises(OSError, match="not now"):
        _core.describe_arg(Angry())


@pytest.mark.parametrize("x, address", [(ctypes.c_void_p(4096), 4096), (ctypes.c_void_p(None), 0)])
def test_pointers_of_ctypes(x, address):
    assert _core.describe_arg(x) == {"kind": "pointer", "value": address}


def test_arrays_and_typed_pointers_of_ctypes():
    memory = (ctypes.c_float * 4)()
    want = {"kind": "pointer", "value": ctypes.addressof(memory)}
    assert _core.describe_arg(memory) == want
    assert _core.describe_arg(ctypes.cast(memory, ctypes.POINTER(ctypes.c_float))) == want


# ---- NumPy -----------------------------------------------------------------------------------------------------------

PLAIN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
MINI = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
]


@pytest.mark.parametrize("name", PLAIN + MINI)
def test_array_of_every_dtype(name):
    a = np.zeros((2, 3), np.dtype(name) if name in PLAIN else getattr(ml_dtypes, name))
    assert tensor(a) == {
        "kind": "tensor",
        "dtype": name,
        "shape": (2, 3),
        "strides": None,
        "device": (CPU, 0),
        "data": a.ctypes.data,
        "readonly": False,
        "known": True,
    }


@pytest.mark.parametrize(
    "a, text",
    [
        (np.zeros(3, ">f4"), ">f4"),
        (np.array([1, "a"], object), "object"),
        (np.zeros(3, complex), "complex128"),
        (np.zeros(3, "U5"), "<U5"),
        (np.zeros(3, "M8[s]"), "datetime64[s]"),
        (np.zeros(3, [("a", "<i4")]), "[('a', '<i4')]"),
        (np.zeros(3, ml_dtypes.float4_e2m1fn), "float4_e2m1fn, one to a byte"),
    ],
)
def test_dtypes_that_are_none_of_ours(a, text):
    got = tensor(a)
    assert (got["known"], got["dtype"]) == (False, text)


def test_views_have_strides_in_elements_and_their_own_address():
    base = np.zeros((4, 6), np.float32)
    for view in (base[1:, 2:], base.T, base[::-1], base[:, ::2], np.broadcast_to(base[0], (3, 6))):
        got = tensor(view)
        assert got["shape"] == view.shape
        assert got["strides"] == tuple(s // 4 for s in view.strides)
        assert got["data"] == view.ctypes.data


def test_strides_that_are_no_whole_elements_are_refused():
    packed = np.zeros(4, [("a", "u1"), ("b", "<i4")])
    with pytest.raises(ValueError) as e:
        _core.describe_arg(packed["b"])
    assert str(e.value) == "Unusable array: strides[0] is 5 bytes, expected a multiple of the element's 4"


def test_read_only_arrays_are_marked():
    a = np.zeros(3)
    a.flags.writeable = False
    assert tensor(a)["readonly"] is True
    assert tensor(np.zeros(3))["readonly"] is False


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (1,) * 16])
def test_shapes_at_the_edges(shape):
    assert tensor(np.zeros(shape))["shape"] == shape


def test_subclasses_of_arrays_are_arrays(tmp_path):
    m = np.memmap(tmp_path / "data", np.float32, "w+", shape=(4,))
    assert tensor(m)["data"] == m.ctypes.data


# ---- other tensors ---------------------------------------------------------------------------------------------------


class Producer:
    """Speaks DLPack and nothing else."""

    def __init__(self, array, new=True):
        self.array, self.new, self.calls = array, new, []

    def __dlpack__(self, **keywords):
        self.calls.append(keywords)
        if not self.new and "max_version" in keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("new", [True, False])
def test_producers_with_and_without_versions(new):
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    p = Producer(a, new)
    got = tensor(p)
    assert (got["data"], got["shape"], got["strides"], got["dtype"]) == (a.ctypes.data, (2, 3), (3, 1), "int32")
    assert p.calls == [{"max_version": (1, 3)}] + ([] if new else [{}])


def test_a_producer_on_a_gpu_is_asked_to_synchronise_with_the_default_stream():
    asked = []

    class Fake:
        def __dlpack__(self, **keywords):
            asked.append(keywords)
            raise BufferError("enough")

        def __dlpack_device__(self):
            return (CUDA, 0)

    with pytest.raises(BufferError, match="enough"):
        _core.describe_arg(Fake())
    assert asked == [{"max_version": (1, 3), "stream": 1}]


def test_exceptions_of_a_producer_go_through():
    class Closed:
        def __dlpack__(self, **keywords):
            raise BufferError("closed")

    with pytest.raises(BufferError, match="closed"):
        _core.describe_arg(Closed())


class CudaArray:
    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "strides": None,
            "version": 3,
            **changes,
        }


def test_cuda_array_interface():
    assert tensor(CudaArray()) == {
        "kind": "tensor",
        "dtype": "float32",
        "shape": (2, 3),
        "strides": None,
        "device": (CUDA, 0),
        "data": 4096,
        "readonly": False,
        "known": True,
    }
    got = tensor(CudaArray(strides=(4, 8), data=(4096, True), typestr="|u1", shape=(2, 1)))
    assert (got["strides"], got["readonly"], got["dtype"]) == ((4, 8), True, "uint8")
    assert tensor(CudaArray(typestr="<c8"))["known"] is False


@pytest.mark.parametrize(
    "field, value",
    [
        ("shape", [2, 3]),
        ("shape", (-1,)),
        ("shape", ("a",)),
        ("shape", (1,) * 17),
        ("typestr", 4),
        ("typestr", "f"),
        ("typestr", "<f0"),
        ("strides", (4,)),
        ("strides", (3, 4)),
        ("data", 4096),
        ("data", ("a", False)),
    ],
)
def test_malformed_cuda_array_interface(field, value):
    with pytest.raises(ValueError) as e:
        _core.describe_arg(CudaArray(**{field: value}))
    assert str(e.value) == f"Malformed __cuda_array_interface__: field '{field}' is missing or not as specified"


# ---- PyTorch ---------------------------------------------------------------------------------------------------------


def test_torch_tensors_of_every_dtype(torch):
    names = [*(n for n in PLAIN if n not in ("uint16", "uint32", "uint64")), "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    for name in names:
        t = torch.zeros(2, 3, dtype=getattr(torch, name))
        got = tensor(t)
        assert got["dtype"] == name
        assert (got["data"], got["shape"], got["strides"]) == (t.data_ptr(), (2, 3), (3, 1))
    assert tensor(torch.zeros(2, dtype=torch.complex64))["dtype"] == "complex64"


def test_torch_views_parameters_and_subclasses(torch):
    base = torch.arange(24.0).reshape(4, 6)
    view = base[1:, 2::2]
    got = tensor(view)
    assert (got["data"], got["shape"], got["strides"]) == (view.data_ptr(), (3, 2), (6, 2))
    assert tensor(torch.nn.Parameter(base))["data"] == base.data_ptr()

    class Sub(torch.Tensor):
        pass

    assert tensor(base.as_subclass(Sub))["data"] == base.data_ptr()
    assert tensor(torch.zeros(()))["shape"] == ()


def test_torch_tensors_come_in_without_numpy(torch, run_python):
    out = run_python(
        """
        import sys
        sys.modules["numpy"] = None  # torch works without it, and so do we
        import warnings
        warnings.simplefilter("ignore")
        import torch
        from tirx import _core
        print(_core.describe_arg(torch.zeros(3))["dtype"], _core.describe_arg(3)["kind"])
        """
    )
    assert out == "float32 int\n"


# ---- references ------------------------------------------------------------------------------------------------------


def test_nothing_keeps_a_reference():
    a = np.zeros((3, 4), np.float32)
    strange = np.zeros(3, "U5")
    cases = [a, a[:, ::2], strange, Producer(a, False), CudaArray(), [1], 2**70, ctypes.c_void_p(1), float("1.5")]
    for x in cases:
        _core.describe_arg(x)
    before = [sys.getrefcount(x) for x in cases]
    for x in cases:
        for _ in range(1000):
            _core.describe_arg(x)
        if isinstance(x, Producer):
            x.calls.clear()
    gc.collect()
    assert [sys.getrefcount(x) for x in cases] == before


def test_torch_keeps_no_reference(torch):
    t = torch.zeros(3)
    _core.describe_arg(t)
    before = sys.getrefcount(t)
    for _ in range(1000):
        _core.describe_arg(t)
    assert sys.getrefcount(t) == before
