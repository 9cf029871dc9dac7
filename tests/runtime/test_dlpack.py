# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules, well-formed and malformed, built field by field; and the C exchange table of a type.

A refused capsule stays as it was: its name, and its deleter uncalled. One that is taken over is renamed, and its
deleter runs exactly once.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_int, c_int32, c_uint32, c_void_p

import numpy as np
import pytest
from dlpack_capsules import Capsule, DLTensor, Managed, Versioned, new_capsule

from tirx import _core


def test_the_structs_are_laid_out_as_the_specification_says():
    assert (ctypes.sizeof(DLTensor), ctypes.sizeof(Managed), ctypes.sizeof(Versioned)) == (48, 64, 80)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("deleter", [True, False])
def test_a_good_capsule_is_taken_over_once(versioned, deleter):
    c = Capsule(versioned, deleter=deleter)
    got = _core.describe_arg(c.object)
    assert got == {
        "kind": "tensor",
        "dtype": "float32",
        "shape": (2, 3),
        "strides": (3, 1),
        "device": (1, 0),
        "data": ctypes.addressof(c.memory),
        "readonly": False,
        "known": True,
    }
    assert c.deleted == (1 if deleter else 0)
    assert c.name_now() == (b"used_dltensor_versioned" if versioned else b"used_dltensor")
    with pytest.raises(ValueError) as e:
        _core.describe_arg(c.object)
    assert str(e.value) == "Malformed DLPack tensor: the capsule has been consumed already"
    assert c.deleted == (1 if deleter else 0)


# what is legal although it is unusual
GOOD = {
    "no strides": (dict(strides=None), dict(strides=None)),
    "rank 0": (dict(shape=(), strides=()), dict(shape=(), strides=None)),
    "rank 0, null shape": (dict(shape=None, strides=None, ndim=0), dict(shape=(), strides=None)),
    "rank 16": (dict(shape=(1,) * 16, strides=(1,) * 16), dict(shape=(1,) * 16)),
    "empty": (dict(shape=(0, 3), data=None), dict(shape=(0, 3), data=0)),
    "empty beyond 64 bits": (dict(shape=(2**62, 0, 2**62), strides=None), dict(shape=(2**62, 0, 2**62))),
    "negative strides": (dict(strides=(-3, -1)), dict(strides=(-3, -1))),
    "broadcast": (dict(strides=(0, 0)), dict(strides=(0, 0))),
    "any stride of one element": (dict(shape=(1, 3), strides=(2**62, 1)), dict(strides=(2**62, 1))),
    "lanes": (dict(lanes=4), dict(dtype="float32x4")),
    "64 lanes": (dict(lanes=64), dict(dtype="float32x64")),
    "bfloat16": (dict(code=4, bits=16), dict(dtype="bfloat16")),
    "float4": (dict(code=17, bits=4, lanes=2), dict(dtype="float4_e2m1fnx2")),
    "float8": (dict(code=12, bits=8), dict(dtype="float8_e5m2")),
    "bool": (dict(code=6, bits=8), dict(dtype="bool")),
    "complex": (dict(code=5, bits=64), dict(dtype="complex64", known=False)),
    "int4": (dict(code=0, bits=4), dict(dtype="int4", known=False)),
    "unknown code": (dict(code=99, bits=7), dict(dtype="DLPack type 99 of 7 bits", known=False)),
    "cuda": (dict(device_type=2, device_id=3), dict(device=(2, 3))),
    "later minor version": (dict(minor=99), dict(dtype="float32")),
    "read-only": (dict(flags=1), dict(readonly=True)),
    "a copy": (dict(flags=2), dict(readonly=True)),
    "padded float4": (
        dict(code=17, bits=4, flags=4),
        dict(dtype="float4_e2m1fn, one to a byte", known=False),
    ),
    "flags of a later version": (dict(flags=1 << 40), dict(readonly=False)),
}


@pytest.mark.parametrize("case", GOOD)
def test_unusual_but_legal(case):
    change, want = GOOD[case]
    c = Capsule(**change)
    got = _core.describe_arg(c.object)
    assert {k: got[k] for k in want} == want
    assert c.deleted == 1


def test_the_byte_offset_is_added():
    c = Capsule(byte_offset=8)
    assert _core.describe_arg(c.object)["data"] == ctypes.addressof(c.memory) + 8


# field changes, and the message after "Malformed DLPack tensor: "
BAD = {
    "version 0": (dict(major=0), "its version is 0.3, expected 1.x"),
    "version 2": (dict(major=2, minor=0), "its version is 2.0, expected 1.x"),
    "ndim -1": (dict(ndim=-1), "ndim is -1, expected 0..16"),
    "ndim 17": (dict(shape=(1,) * 17, strides=(1,) * 17), "ndim is 17, expected 0..16"),
    "ndim huge": (dict(ndim=2**31 - 1), "ndim is 2147483647, expected 0..16"),
    "null shape": (dict(shape=None), "shape is NULL"),
    "negative extent": (dict(shape=(2, -3)), "shape[1] is -3"),
    "negative extent beside 0": (dict(shape=(0, -3)), "shape[1] is -3"),
    "too many elements": (dict(shape=(2**32, 2**32)), "the number of bytes in its shape does not fit 64 bits"),
    "too many bytes": (dict(shape=(2**31, 2**31)), "the number of bytes in its shape does not fit 64 bits"),
    "strides too long": (
        dict(strides=(2**62, 1), shape=(3, 3)),
        "the number of bytes that its strides reach does not fit 64 bits",
    ),
    "strides too long in bytes": (
        dict(strides=(2**61, 1)),
        "the number of bytes that its strides reach does not fit 64 bits",
    ),
    "least stride": (dict(strides=(-(2**63), 1)), "the number of bytes that its strides reach does not fit 64 bits"),
    "no lanes": (dict(lanes=0), "the dtype has 0 lanes, expected 1..64"),
    "65 lanes": (dict(lanes=65), "the dtype has 65 lanes, expected 1..64"),
    "device type 0": (dict(device_type=0), "device type is 0"),
    "device type -1": (dict(device_type=-1), "device type is -1"),
    "device id -1": (dict(device_id=-1), "device id is -1"),
    "offset past the end of memory": (dict(byte_offset=2**64 - 1), "byte_offset is 18446744073709551615"),
}


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("case", BAD)
def test_malformed_capsules_are_refused_and_left_alone(case, versioned):
    change, text = BAD[case]
    if "major" in change and not versioned:
        return  # the older form has no version
    c = Capsule(versioned, **change)
    with pytest.raises(ValueError) as e:
        _core.describe_arg(c.object)
    assert str(e.value) == f"Malformed DLPack tensor: {text}"
    assert c.deleted == 0
    assert c.name_now() == (b"dltensor_versioned" if versioned else b"dltensor")


def test_capsules_of_another_name_are_refused():
    c = Capsule(name=b"something_else")
    with pytest.raises(ValueError) as e:
        _core.describe_arg(c.object)
    text = "the capsule is named 'something_else', expected 'dltensor_versioned' or 'dltensor'"
    assert str(e.value) == f"Malformed DLPack tensor: {text}"
    assert c.deleted == 0


def test_what_is_no_capsule_is_refused():
    class Producer:
        def __dlpack__(self, **keywords):
            return 42

    with pytest.raises(ValueError) as e:
        _core.describe_arg(Producer())
    assert str(e.value) == "Malformed DLPack tensor: __dlpack__ did not give a capsule"


# ---- the exchange table ----------------------------------------------------------------------------------------------

FROM_OBJECT = CFUNCTYPE(c_int, c_void_p, POINTER(DLTensor))
MANAGED_FROM_OBJECT = CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
CURRENT_STREAM = CFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))


class Table(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("prev", c_void_p),
        ("allocate", c_void_p),
        ("managed_from_object", c_void_p),
        ("managed_to_object", c_void_p),
        ("tensor_from_object", c_void_p),
        ("current_stream", c_void_p),
    ]


def make_type(tables, capsule, name=b"dlpack_exchange_api"):
    """A tensor type whose table describes what `capsule` holds. tables: (major, tensor_from_object?), newest first."""
    used = []

    def from_object(_, out):
        used.append("tensor")
        out[0] = capsule.m.tensor
        return 0

    def managed(_, out):
        used.append("managed")
        out[0] = ctypes.addressof(capsule.m)
        return 0

    def stream(kind, device, out):
        out[0] = 0
        return 0

    keep = [FROM_OBJECT(from_object), MANAGED_FROM_OBJECT(managed), CURRENT_STREAM(stream)]
    prev = None
    for major, direct in reversed(tables):
        t = Table(major=major, minor=3, prev=prev)
        t.managed_from_object = ctypes.cast(keep[1], c_void_p)
        t.tensor_from_object = ctypes.cast(keep[0], c_void_p) if direct else None
        t.current_stream = ctypes.cast(keep[2], c_void_p)
        keep.append(t)
        prev = ctypes.addressof(t)
    keep.append(name)
    table = new_capsule(prev, name, None)

    class Tensor:
        __dlpack_c_exchange_api__ = table

        def __dlpack__(self, **keywords):
            used.append("protocol")
            return np.zeros(5).__dlpack__(**keywords)

    Tensor.keep = keep
    return Tensor, used


@pytest.mark.parametrize(
    "tables, want",
    [
        ([(1, True)], "tensor"),
        ([(1, False)], "managed"),
        ([(2, True), (1, True)], "tensor"),
        ([(9, True), (2, True), (1, False)], "managed"),
        ([(2, True)], "protocol"),
        ([(0, True)], "protocol"),
    ],
)
def test_the_newest_table_that_is_understood_is_used(tables, want):
    c = Capsule()
    cls, used = make_type(tables, c)
    got = [_core.describe_arg(cls()) for _ in range(3)]
    assert used == [want] * 3
    assert {g["shape"] for g in got} == {(5,) if want == "protocol" else (2, 3)}
    assert c.deleted == (3 if want == "managed" else 0)


def test_a_table_of_another_name_is_ignored():
    cls, used = make_type([(1, True)], Capsule(), b"something_else")
    _core.describe_arg(cls())
    assert used == ["protocol"]


def test_a_table_that_is_no_capsule_is_ignored():
    class Tensor:
        __dlpack_c_exchange_api__ = 4096

        def __dlpack__(self, **keywords):
            return np.zeros(5).__dlpack__(**keywords)

    assert _core.describe_arg(Tensor())["shape"] == (5,)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("case", [c for c in BAD if "major" not in BAD[c][0]])
def test_malformed_tensors_of_a_table(case, direct):
    change, text = BAD[case]
    c = Capsule(**change)
    cls, used = make_type([(1, direct)], c)
    with pytest.raises(ValueError) as e:
        _core.describe_arg(cls())
    assert str(e.value) == f"Malformed DLPack tensor: {text}"
    assert c.deleted == (0 if direct else 1)  # what the table handed out as ours is given back


def test_a_table_that_fails_without_an_exception():
    c = Capsule()
    cls, _ = make_type([(1, True)], c)
    failing = FROM_OBJECT(lambda _, out: -1)
    cls.keep[-2].tensor_from_object = ctypes.cast(failing, c_void_p)
    with pytest.raises(BufferError) as e:
        _core.describe_arg(cls())
    assert str(e.value) == "the tensor's DLPack table cannot describe it"


# ---- out -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("versioned", [True, False])
def test_an_exported_capsule_keeps_its_owner_alive_and_lets_it_go(versioned):
    import sys

    a = np.arange(6, dtype=np.float32)
    before = sys.getrefcount(a)
    for used in (True, False):
        capsule = _core.export_dlpack(a, a.ctypes.data, 1, 0, "float32", (2, 3), False, versioned)
        assert sys.getrefcount(a) == before + 1
        if used:
            got = _core.describe_arg(capsule)
            assert (got["shape"], got["strides"], got["data"]) == ((2, 3), (3, 1), a.ctypes.data)
            assert sys.getrefcount(a) == before
        del capsule
        assert sys.getrefcount(a) == before


def test_dtypes_that_dlpack_lacks_are_refused():
    with pytest.raises(BufferError) as e:
        _core.export_dlpack(None, 0, 1, 0, "uint128", (1,), False, True)
    assert str(e.value) == "DLPack has no dtype uint128"
