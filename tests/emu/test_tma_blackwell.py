# SPDX-License-Identifier: Apache-2.0
"""What tensor copies of sm_100 add: swizzles with larger atoms, fp4 packed in both memories; there and back."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
import tirx.tensormap
from tirx import T


def aligned(shape, at=0):
    raw = np.zeros(int(np.prod(shape)) + 512, np.uint8)
    first = -raw.ctypes.data % 256 + at
    return raw[first : first + int(np.prod(shape))].reshape(shape)


def there_and_back(rows: int, x: int, y: int, packed: int):
    """Loads a box of rows x 128 bytes at byte x of row y, shows shared memory, stores the box with another map."""

    @T.prim_func
    def k(m: T.TensorMap(), w: T.TensorMap(), image: T.Buffer((rows * 128,), "uint8")):
        T.device_entry()
        tx = T.thread_id([128])
        sm = T.alloc_shared((rows * 128,), "uint8", align=1024)
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), rows * 128)
            T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
                sm.ptr_to([0]), T.address_of(m), x * packed, y, bar.ptr_to([0])
            )
        T.cuda.cta_sync()
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        for r in range(rows):
            image[r * 128 + tx] = sm[r * 128 + tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](
                T.address_of(w), x * packed, y, sm.ptr_to([0])
            )
            T.ptx.cp.async_.bulk.commit_group()
            T.ptx.cp.async_.bulk.wait_group(0)

    return k


def fp4_map(array, swizzle="none"):
    """A map of fp4 over the bytes of an array, which NumPy cannot call fp4."""
    number = tirx.tensormap.SWIZZLE.index(swizzle)
    fields = (False, 13, (512, 16), (256,), (256, 8), (1, 1), (), (), 0, 0, 0, number, 0, 0)
    return tirx.TensorMap(array, fields, 0, "a map of fp4")


SWIZZLES = {
    "none": lambda a: a,
    "128B": lambda a: a ^ (a >> 3) & 0x70,
    "128B_ATOM_32B": lambda a: a ^ (a >> 2) & 0x60,
    "128B_ATOM_64B": lambda a: a ^ (a >> 1) & 0x40,
}


@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("fp4", [False, True])
@pytest.mark.parametrize("x, y", [(0, 0), (64, 3), (192, 14)])
def test_images(swizzle, fp4, x, y):
    rows, a, b = 8, aligned((16, 256)), aligned((16, 256))
    a[...] = np.random.default_rng(0).integers(1, 256, a.shape)
    if fp4:
        maps = [fp4_map(t, swizzle) for t in (a, b)]
    else:
        maps = [tirx.tensor_map(t, (128, rows), swizzle=swizzle) for t in (a, b)]
    image = np.zeros(rows * 128, np.uint8)
    tirx.compile(there_and_back(rows, x, y, 2 if fp4 else 1), target="cpu")(*maps, image)
    inside = np.zeros((rows, 128), np.uint8)
    part = a[y : y + rows, x : x + 128]
    inside[: part.shape[0], : part.shape[1]] = part
    want = np.zeros(rows * 128, np.uint8)
    at = np.arange(rows * 128)
    want[SWIZZLES[swizzle](at)] = inside.ravel()
    np.testing.assert_array_equal(image, want)
    back = np.zeros_like(b)
    back[y : y + rows, x : x + 128] = part
    np.testing.assert_array_equal(b, back)


def padded(form: int, rows: int, x: int, y: int):
    """Loads a box of rows x 128 elements of 4 or 6 bits, shows shared memory, stores the box with another map."""
    nbytes = rows * 128 * form // 8

    @T.prim_func
    def k(m: T.TensorMap(), w: T.TensorMap(), image: T.Buffer((rows * 128,), "uint8")):
        T.device_entry()
        tx = T.thread_id([128])
        sm = T.alloc_shared((rows * 128,), "uint8", align=1024)
        bar = T.alloc_shared((1,), "uint64")
        for r in range(rows):
            sm[r * 128 + tx] = T.uint8(0xEE)
        T.ptx.fence.proxy.async_.shared__cta()
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), 1)
            T.ptx.fence.mbarrier_init.release.cluster()
            T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), nbytes)
            T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"](
                sm.ptr_to([0]), T.address_of(m), x, y, bar.ptr_to([0])
            )
        T.cuda.cta_sync()
        T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)
        for r in range(rows):
            image[r * 128 + tx] = sm[r * 128 + tx]
        T.cuda.cta_sync()
        if tx == 0:
            T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](T.address_of(w), x, y, sm.ptr_to([0]))
            T.ptx.cp.async_.bulk.commit_group()
            T.ptx.cp.async_.bulk.wait_group(0)

    return k


def padded_map(array, form, swizzle="none"):
    number, kind = tirx.tensormap.SWIZZLE.index(swizzle), {4: 14, 6: 15}[form]
    fields = (False, kind, (256, 16), (array.shape[1],), (128, 8), (1, 1), (), (), 0, 0, 0, number, 0, 0)
    return tirx.TensorMap(array, fields, 0, "a map of padded elements")


@pytest.mark.parametrize("form, swizzle", [(4, "none"), (4, "128B"), (4, "128B_ATOM_32B"), (6, "none"), (6, "128B")])
@pytest.mark.parametrize("x, y", [(0, 0), (128, 5), (128, 12), (256, 0)])
@pytest.mark.parametrize("schedule", ["late", "early"])
def test_padded_images(form, swizzle, x, y, schedule):
    rows, cell = 8, 2 * form
    a, b = (aligned((16, 16 * cell)) for _ in range(2))
    a[...] = np.random.default_rng(form).integers(1, 256, a.shape)
    image = np.zeros(rows * 128, np.uint8)
    maps = [padded_map(t, form, swizzle) for t in (a, b)]
    tirx.compile(padded(form, rows, x, y), target="cpu")(*maps, image, schedule=schedule)
    inside = np.zeros((rows, 8, cell), np.uint8)
    part = a.reshape(16, 16, cell)[y : y + rows, x // 16 : x // 16 + 8]
    inside[: part.shape[0], : part.shape[1]] = part
    cells = np.full((rows, 8, 16), 0xEE, np.uint8)  # the padding stays
    cells[:, :, :cell] = inside
    want = np.zeros(rows * 128, np.uint8)
    want[SWIZZLES[swizzle](np.arange(rows * 128))] = cells.ravel()
    np.testing.assert_array_equal(image, want)
    back = np.zeros_like(b)
    if x < 256:
        back[y : y + rows, x // 16 * cell : x // 16 * cell + 8 * cell] = part.reshape(len(part), -1)
    np.testing.assert_array_equal(b, back)


def test_coordinates_of_padded_elements():
    a = aligned((16, 128))
    m = padded_map(a, 4)
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(padded(4, 8, 64, 0), target="cpu")(m, m, np.zeros(1024, np.uint8))
    assert e.value.kind == "misaligned"
    assert "coordinate 0 is 64: it must be a multiple of 128 elements" in str(e.value)


def test_what_is_not_emulated_says_so():
    a = aligned((16, 256))
    m = tirx.TensorMap(a, (False, 0, (256, 16), (256,), (128, 8), (1, 1), (), (), 0, 0, 0, 5, 0, 0), 0, "a map")
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(there_and_back(8, 0, 0, 1), target="cpu")(m, m, np.zeros(1024, np.uint8))
    assert e.value.kind == "unsupported"
    assert "and swizzle 128B_ATOM_32B_FLIP_8B are not emulated" in str(e.value)


def test_coordinates_of_fp4_count_elements():
    a = aligned((16, 256))
    m = fp4_map(a)
    with pytest.raises(tirx.EmulationError) as e:
        tirx.compile(there_and_back(8, 8, 0, 2), target="cpu")(m, m, np.zeros(1024, np.uint8))
    assert e.value.kind == "misaligned"
    assert "coordinate 0 is 16: it must be a multiple of 16 bytes, 32 elements" in str(e.value)
