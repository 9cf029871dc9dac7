# SPDX-License-Identifier: Apache-2.0
"""Devices, tensors of our own, and Python functions that the host half of a kernel calls.

The tensors exist so that kernels can be run without PyTorch or CuPy: a copy of an array on a GPU or on the host, which
speaks DLPack and comes back with .numpy(). They do no arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tirx import _core

_CPU, _CUDA = 1, 2  # DLPack's numbers


class Device:
    """A device of this machine: tirx.cuda(0), tirx.cpu()."""

    __slots__ = ("kind", "index")

    kind: str
    index: int

    def __init__(self, kind: str, index: int = 0) -> None:
        if kind not in ("cpu", "cuda"):
            raise ValueError(f'device: expected "cpu" or "cuda", got {kind!r}')
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < 2**31:
            raise ValueError(f"device: expected an index of 0 or more, below 2**31, got {index!r}")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Device cannot be changed")

    def __reduce__(self) -> Any:
        return Device, (self.kind, self.index)

    def __repr__(self) -> str:
        return f"tirx.{self.kind}({self.index})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))

    @property
    def exist(self) -> bool:
        return self.kind == "cpu" or self.index < _core.device_count()

    def sync(self) -> None:
        """Wait for everything that the device has been given to do."""
        if self.kind == "cuda":
            _core.synchronize(self.index)


def cuda(index: int = 0) -> Device:
    """A CUDA device: tirx.cuda(0). Its properties are read when they are asked for."""
    return Device("cuda", index)


def cpu(index: int = 0) -> Device:
    """The host, where the emulator runs."""
    return Device("cpu", index)


def _numpy_dtype(name: str) -> Any:
    import numpy

    try:
        return numpy.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        raise TypeError(f"NumPy has no dtype {name}; the package ml_dtypes may: pip install ml_dtypes") from None


def device_of(args: Any) -> Device:
    """The GPU of the first argument that is on one; the first GPU if none is."""
    for x in args:
        where = getattr(x, "__dlpack_device__", None)
        if where is not None:
            kind, index = where()
            if int(kind) == _CUDA:
                return Device("cuda", int(index))
    return Device("cuda", 0)


def zeros(size: int, dtype: str, device: Device) -> Tensor:
    """A one-dimensional tensor of zeros."""
    width = re.fullmatch(r"(?:u?int|b?float)(8|16|32|64)", dtype)
    if width is None:
        raise TypeError(f"zeros: expected a dtype of numbers of 8 to 64 bits, got {dtype}")
    return Tensor(bytearray(size * int(width[1]) // 8), (size,), dtype, device)


class Tensor:
    """A contiguous tensor on a device, with its own memory. Made by tirx.runtime.tensor()."""

    __slots__ = ("shape", "dtype", "device", "_memory", "__weakref__")

    shape: tuple[int, ...]
    dtype: str
    device: Device

    def __init__(self, data: bytearray, shape: tuple[int, ...], dtype: str, device: Device) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device
        if device.kind == "cuda":
            self._memory = _core.DeviceMemory(device.index, len(data))
            self._memory.upload(data)
        else:
            import numpy

            self._memory = numpy.frombuffer(data, numpy.uint8)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self._memory.nbytes

    def numpy(self) -> Any:
        """A copy as a NumPy array; waits for the device."""
        import numpy

        if self.device.kind == "cuda":
            self.device.sync()
            data = numpy.empty(self.nbytes, numpy.uint8)
            self._memory.download(data)
        else:
            data = self._memory.copy()
        return data.view(_numpy_dtype(self.dtype)).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("a tirx tensor is copied when it becomes a NumPy array")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CUDA if self.device.kind == "cuda" else _CPU, self.device.index)

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor is on {self.device!r} and is not copied to another device")
        if copy:
            raise BufferError("the tensor is not copied: use .numpy()")
        pointer = self._memory.pointer if self.device.kind == "cuda" else self._memory.ctypes.data
        versioned = max_version is not None and max_version[0] >= 1
        kind, index = self.__dlpack_device__()
        return _core.export_dlpack(self._memory, pointer, kind, index, self.dtype, self.shape, False, versioned)

    def __repr__(self) -> str:
        return f"<tirx.runtime.Tensor {self.dtype}{list(self.shape)} on {self.device!r}>"


def tensor(x: Any, device: Device | str | None = None) -> Tensor:
    """A copy of a NumPy array or of any tensor that speaks DLPack; without a device, where x is."""
    if isinstance(device, str):
        kind, _, index = device.partition(":")
        device = Device(kind, int(index or 0))
    if device is None:
        where = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else (_CPU, 0)
        device = Device("cuda", int(where[1])) if int(where[0]) == _CUDA else cpu()
    if not isinstance(device, Device):
        raise TypeError(f"tensor: expected a device as of tirx.cuda(0), got {type(device).__name__}")
    if not hasattr(x, "__dlpack__") and not hasattr(x, "__cuda_array_interface__"):
        import numpy

        x = numpy.asarray(x)
    data, shape, dtype = _core.read_tensor(x)
    return Tensor(data, shape, dtype, device)


def register_func(name: str, f: Callable | None = None, override: bool = False) -> Callable:
    """Let `T.call_packed(name, ...)` of a kernel's host half call a Python function; also as a decorator."""
    if not isinstance(name, str):
        raise TypeError(f"register_func: expected a name, got {name!r}")

    def register(f: Callable) -> Callable:
        if not callable(f):
            raise TypeError(f"register_func: expected a function, got {f!r}")
        if name in _core.packed_functions and not override:
            raise ValueError(f"register_func: '{name}' is registered already; override=True replaces it")
        _core.packed_functions[name] = f
        return f

    return register if f is None else register(f)
