# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules built field by field with ctypes, for tests of what is taken and what is refused."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = c_char_p, [py_object]


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(Structure):
    _fields_ = [("tensor", DLTensor), ("manager", c_void_p), ("deleter", c_void_p)]


class Versioned(Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", DLTensor),
    ]


class Capsule:
    """A capsule over a float32 tensor of shape (2, 3), with some fields changed. Counts the calls of its deleter."""

    def __init__(self, versioned=True, name=None, deleter=True, shape=(2, 3), strides=(3, 1), **fields):
        self.deleted = 0
        self.memory = (ctypes.c_float * 6)()
        self.shape = (c_int64 * max(len(shape), 1))(*shape) if shape is not None else None
        self.strides = (c_int64 * max(len(strides), 1))(*strides) if strides is not None else None
        self.m = Versioned(major=1, minor=3) if versioned else Managed()
        t = self.m.tensor
        t.data, t.device_type, t.ndim = ctypes.addressof(self.memory), 1, len(shape) if shape is not None else 2
        t.code, t.bits, t.lanes = 2, 32, 1
        if self.shape is not None:
            t.shape = self.shape
        if self.strides is not None:
            t.strides = self.strides
        for field, value in fields.items():
            setattr(self.m if hasattr(self.m, field) else t, field, value)
        self.keep = CFUNCTYPE(None, c_void_p)(self._delete)
        self.m.deleter = ctypes.cast(self.keep, c_void_p) if deleter else None
        self.name = name or (b"dltensor_versioned" if versioned else b"dltensor")  # the capsule borrows the text
        self.object = new_capsule(ctypes.addressof(self.m), self.name, None)

    def _delete(self, address):
        assert address == ctypes.addressof(self.m)
        self.deleted += 1

    def name_now(self):
        return capsule_name(self.object)
