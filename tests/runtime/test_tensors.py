# SPDX-License-Identifier: Apache-2.0
"""tirx.runtime.tensor: copies that speak DLPack."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tirx


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint64, np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_there_and_back(dtype, shape):
    x = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    t = tirx.runtime.tensor(x, tirx.cpu())
    assert (t.shape, t.dtype, t.ndim, t.nbytes) == (shape, np.dtype(dtype).name, len(shape), x.nbytes)
    got = t.numpy()
    assert (got.dtype, got.shape) == (x.dtype, x.shape)
    np.testing.assert_array_equal(got, x)


def test_it_is_a_copy_both_ways():
    x = np.arange(4.0)
    t = tirx.tensor(x)
    x[:] = 0
    got = t.numpy()
    got[:] = 7
    np.testing.assert_array_equal(t.numpy(), [0, 1, 2, 3])


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[1:, 1:]])
def test_views_are_made_compact(view):
    x = np.arange(24, dtype=np.int16).reshape(4, 6)[view]
    np.testing.assert_array_equal(tirx.tensor(x).numpy(), x)


def test_lists_and_numbers():
    np.testing.assert_array_equal(tirx.tensor([[1, 2], [3, 4]]).numpy(), [[1, 2], [3, 4]])
    assert tirx.tensor(2.5).shape == ()


def test_numpy_and_torch_take_it_without_a_copy(torch):
    t = tirx.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    a, b = np.from_dlpack(t), torch.from_dlpack(t)
    b[0, 0] = 9
    assert a[0, 0] == 9 and t.numpy()[0, 0] == 9
    del t
    assert a[1, 2] == 5
    assert torch.from_dlpack(tirx.tensor(np.ones(3, ml_dtypes.bfloat16))).dtype == torch.bfloat16


def test_it_takes_torch(torch):
    t = tirx.tensor(torch.arange(6).reshape(2, 3).t().to(torch.bfloat16))
    assert (t.dtype, t.shape) == ("bfloat16", (3, 2))
    np.testing.assert_array_equal(t.numpy().astype(int), [[0, 3], [1, 4], [2, 5]])


def test_devices():
    assert repr(tirx.cuda()) == "tirx.cuda(0)" and repr(tirx.cpu()) == "tirx.cpu(0)"
    assert tirx.cuda(1) == tirx.cuda(1) != tirx.cuda(0)
    assert len({tirx.cuda(0), tirx.cuda(0), tirx.cpu()}) == 2
    assert tirx.cpu().exist
    with pytest.raises(ValueError) as e:
        tirx.cuda(-1)
    assert str(e.value) == "device: expected an index of 0 or more, below 2**31, got -1"
    with pytest.raises(TypeError) as e:
        tirx.tensor([1], 0)
    assert str(e.value) == "tensor: expected a device as of tirx.cuda(0), got int"
    with pytest.raises(TypeError) as e:
        tirx.tensor(np.zeros(2, complex))
    assert str(e.value) == "a tensor of dtype complex128 is not supported"


def test_a_missing_gpu_is_said():
    if tirx._core.driver_available()[0]:
        pytest.skip("there is a GPU")
    with pytest.raises(tirx.CUDAError) as e:
        tirx.tensor([1.0], tirx.cuda(0))
    assert str(e.value).startswith("there is no CUDA d")
    assert str(e.value).endswith('use target="cpu" for the emulator')
