# SPDX-License-Identifier: Apache-2.0
"""The copy engines: cp.async, bulk and tensor copies (tiles, im2col, reductions), proxies, maps made by the kernel, rings."""

import numpy as np
from expect import expect, ints, zeros

import tirx
from tirx.script import tirx as T

IN = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
OUT = "cp.async.bulk.global.shared::cta.bulk_group"
TILE = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


def hopper(block=64, grid=1):
    return dict(launch=dict(grid=grid, block=block), arch="sm_90a")


def at16(*shape, seed=0, fill=None):
    """An int32 array that begins at a multiple of 16 bytes, as maps ask for."""
    raw = np.zeros(int(np.prod(shape)) + 4, np.int32)
    first = -raw.ctypes.data % 16 // 4
    out = raw[first : first + int(np.prod(shape))].reshape(shape)
    out[...] = ints(*shape, seed=seed) if fill is None else fill
    return out


@T.inline
def init(bar, n):
    for s in range(n):
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))
    T.ptx.fence.mbarrier_init.release.cluster()


# ---- cp.async --------------------------------------------------------------------------------------------------------


@expect("async", cls="cp.async", buffer="sm", lines=("copy", "load"), source="own: three stages, the wait leaves one group too many",
        launch=dict(grid=2, block=64), args=lambda: (ints(2, 9, 64), zeros(2, 9, 64)), want=lambda A, B: {1: A[..., ::-1]})
def wait_leaves_the_group_of_this_turn(fixed):
    left = 1 if fixed else 2

    @T.prim_func
    def k(A: T.Buffer((2, 9, 64), "int32"), B: T.Buffer((2, 9, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((3, 64), "int32")
        for s in range(2):
            T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([s, tx]), A.ptr_to([bx, s, tx]), 4)  # <-- copy
            T.ptx.cp.async_.commit_group()
        for i in range(9):
            T.ptx.cp.async_.wait_group(left)
            T.cuda.cta_sync()
            B[bx, i, tx] = sm[i % 3, 63 - tx]       # <-- load
            if i + 2 < 9:
                T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([(i + 2) % 3, tx]), A.ptr_to([bx, i + 2, tx]), 4)
            T.ptx.cp.async_.commit_group()
    return k


@expect("async", cls="cp.async", also=("race",), buffer="sm", lines=("copy", "load"), source="own: own copies waited for, those of the other warp not",
        launch=dict(grid=1, block=64), args=lambda: (ints(6, 64), zeros(6, 64)), want=lambda A, B: {1: A[:, ::-1]})
def copies_of_the_other_warp_need_the_barrier(fixed):
    """wait_group is for the copies of the executing thread."""
    @T.prim_func
    def k(A: T.Buffer((6, 64), "int32"), B: T.Buffer((6, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32")
        for i in range(6):
            T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([i % 2, tx]), A.ptr_to([i, tx]), 4)  # <-- copy
            T.ptx.cp.async_.commit_group()
            T.ptx.cp.async_.wait_group(0)
            if fixed:
                T.cuda.cta_sync()
            B[i, tx] = sm[i % 2, 63 - tx]           # <-- load
            if not fixed:
                T.cuda.cta_sync()
    return k


@expect("async", cls="cp.async", also=("race",), buffer="sm", lines=("load", "copy"), source="own: prefetch distance equal to the number of stages",
        launch=dict(grid=1, block=64), args=lambda: (ints(8, 64), zeros(8, 64)), want=lambda A, B: {1: A[:, ::-1]})
def prefetch_into_the_stage_that_is_read(fixed):
    """Two stages; the copy of tile i + 2 is issued while other warps still read tile i of the same stage."""
    @T.prim_func
    def k(A: T.Buffer((8, 64), "int32"), B: T.Buffer((8, 64), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32")
        for s in range(2):
            T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([s, tx]), A.ptr_to([s, tx]), 4)
            T.ptx.cp.async_.commit_group()
        for i in range(8):
            T.ptx.cp.async_.wait_group(1)
            T.cuda.cta_sync()
            B[i, tx] = sm[i % 2, 63 - tx]           # <-- load
            if fixed:
                T.cuda.cta_sync()
            if i + 2 < 8:
                T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([i % 2, tx]), A.ptr_to([i + 2, tx]), 4)  # <-- copy
            T.ptx.cp.async_.commit_group()
    return k


@expect("async", cls="cp.async", buffer="sm", lines=("copy", "load"), source="own: arrival in front of the copies it is to speak for",
        args=lambda: (ints(6, 32), zeros(6, 32)), want=lambda A, B: {1: A[:, ::-1]}, **hopper())
def arrival_of_copies_issued_before_the_copy(fixed):
    """cp.async.mbarrier.arrive counts the copies that the thread has issued before it."""
    @T.prim_func
    def k(A: T.Buffer((6, 32), "int32"), B: T.Buffer((6, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 32), "int32")
        full = T.alloc_shared((2,), "uint64")
        empty = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(32))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(32))
        T.cuda.cta_sync()
        if tx < 32:
            for i in range(6):
                T.cuda.mbarrier_wait(empty.ptr_to([i % 2]), (i // 2 + 1) % 2)
                if not fixed:
                    T.ptx.cp.async_.mbarrier.arrive.noinc.shared.b64(full.ptr_to([i % 2]))
                T.ptx.cp.async_.ca.shared.global_(sm.ptr_to([i % 2, tx]), A.ptr_to([i, tx]), 4)  # <-- copy
                if fixed:
                    T.ptx.cp.async_.mbarrier.arrive.noinc.shared.b64(full.ptr_to([i % 2]))
            T.ptx.cp.async_.wait_all()
        else:
            for i in range(6):
                T.cuda.mbarrier_wait(full.ptr_to([i % 2]), i // 2 % 2)
                B[i, tx - 32] = sm[i % 2, 63 - tx]  # <-- load
                T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 2]))
    return k


# ---- bulk copies -----------------------------------------------------------------------------------------------------


@expect("async", cls="ring", also=("race",), buffer="sm", lines=("copy", "load"), source="own: stage handed back before it has been read",
        args=lambda: (ints(9, 32), zeros(9, 32)), want=lambda A, B: {1: A[:, ::-1] * 2}, **hopper())
def stage_released_before_its_last_read(fixed):
    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((9, 32), "int32")):
        A = T.match_buffer(A_ptr, (9, 32), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((3, 32), "int32", align=128)
        full = T.alloc_shared((3,), "uint64")
        empty = T.alloc_shared((3,), "uint64")
        if tx == 0:
            for s in range(3):
                T.ptx.mbarrier.init.shared.b64(full.ptr_to([s]), T.uint32(1))
                T.ptx.mbarrier.init.shared.b64(empty.ptr_to([s]), T.uint32(32))
            T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.cta_sync()
        if tx < 32:
            if tx == 0:
                for i in range(9):
                    T.cuda.mbarrier_wait(empty.ptr_to([i % 3]), (i // 3 + 1) % 2)
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(full.ptr_to([i % 3]), T.uint32(128))
                    T.ptx[IN](sm.ptr_to([i % 3, 0]), A.ptr_to([i, 0]), T.uint32(128), full.ptr_to([i % 3]))  # <-- copy
        else:
            for i in range(9):
                T.cuda.mbarrier_wait(full.ptr_to([i % 3]), i // 3 % 2)
                if not fixed:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 3]))
                B[i, tx - 32] = sm[i % 3, 63 - tx] * 2  # <-- load
                if fixed:
                    T.ptx.mbarrier.arrive.shared.b64(empty.ptr_to([i % 3]))
    return k


@expect("async", cls="bulk", also=("race",), buffer="sm", lines=("copy", "store"), source="own: two staging buffers, the wait leaves two stores unread",
        args=lambda: (ints(6, 64), zeros(6, 64)), want=lambda A, B: {1: A * 3}, **hopper())
def staging_buffer_refilled_too_soon(fixed):
    left = 1 if fixed else 2

    @T.prim_func
    def k(A: T.Buffer((6, 64), "int32"), B_ptr: T.handle):
        B = T.match_buffer(B_ptr, (6, 64), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32", align=128)
        for i in range(6):
            sm[i % 2, tx] = A[i, tx] * 3            # <-- store
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx[OUT](B.ptr_to([i, 0]), sm.ptr_to([i % 2, 0]), T.uint32(256))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group.read(left)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("async", cls="bulk", buffer="B", lines=("copy", "load"), source="own: result read back after .read only",
        args=lambda: (ints(2, 64), zeros(2, 64), zeros(2)), want=lambda A, B, S: {1: A + 1, 2: [A[0, 0] + 1, A[1, 0] + 1]}, **hopper())
def result_read_back_after_the_wait_for_the_source(fixed):
    """wait_group.read says that shared memory is free, not that global memory has been written."""
    @T.prim_func
    def k(A: T.Buffer((2, 64), "int32"), B_ptr: T.handle, S: T.Buffer((2,), "int32")):
        B = T.match_buffer(B_ptr, (2, 64), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32", align=128)
        for i in range(2):
            sm[tx] = A[i, tx] + 1
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx[OUT](B.ptr_to([i, 0]), sm.ptr_to([0]), T.uint32(256))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                if fixed:
                    T.ptx.cp.async_.bulk.wait_group(0)
                else:
                    T.ptx.cp.async_.bulk.wait_group.read(0)
                S[i] = B[i, 0]                      # <-- load
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("proxy", cls="bulk", buffer="sm", lines=("store", "copy"), source="own: reduction into global memory without the proxy fence",
        args=lambda: (ints(4, 64), at16(64, fill=0)), want=lambda A, B: {1: A.sum(0, dtype=np.int32)}, **hopper(grid=2))
def reduction_of_tiles_without_the_proxy_fence(fixed):
    """Two CTAs add two tiles each with cp.reduce."""
    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), B_ptr: T.handle):
        B = T.match_buffer(B_ptr, (64,), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32", align=128)
        for i in range(2):
            sm[tx] = A[bx * 2 + i, tx]              # <-- store
            if fixed:
                T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32"](B.ptr_to([0]), sm.ptr_to([0]), T.uint32(256))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group.read(0)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("async", cls="bulk", buffer="sm", lines=("copy",), source="own: last store of a persistent loop left open",
        args=lambda: (ints(4, 64), zeros(4, 64)), want=lambda A, B: {1: A * 5}, **hopper(grid=2))
def last_store_still_reads_when_the_cta_exits(fixed):
    """A warning: what is not waited for may read shared memory of the next CTA."""
    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), B_ptr: T.handle):
        B = T.match_buffer(B_ptr, (4, 64), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([2])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32", align=128)
        for i in range(2):
            sm[i, tx] = A[i * 2 + bx, tx] * 5
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx[OUT](B.ptr_to([i * 2 + bx, 0]), sm.ptr_to([i, 0]), T.uint32(256))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
        if fixed:
            if tx == 0:
                T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("proxy", cls="proxy", buffer="bar", also=("mbarrier",), lines=("init", "copy"), source="own: barriers of a pool initialised without the fence",
        args=lambda: (ints(4, 32), zeros(4, 32)), want=lambda A, B: {1: A}, **hopper(32))
def init_of_a_ring_without_its_fence(fixed):
    """The thread that initialises issues the copy itself: the copy engine is another proxy all the same."""
    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((4, 32), "int32")):
        A = T.match_buffer(A_ptr, (4, 32), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        sm = T.alloc_shared((2, 32), "int32", align=128)
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            for s in range(2):
                T.ptx.mbarrier.init.shared.b64(bar.ptr_to([s]), T.uint32(1))  # <-- init
            if fixed:
                T.ptx.fence.mbarrier_init.release.cluster()
        T.cuda.warp_sync()
        for i in range(4):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(128))
                T.ptx[IN](sm.ptr_to([i % 2, 0]), A.ptr_to([i, 0]), T.uint32(128), bar.ptr_to([i % 2]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([i % 2]), i // 2 % 2)
            B[i, tx] = sm[i % 2, tx]
            T.cuda.warp_sync()
    return k


@expect("proxy", cls="proxy", buffer="sm", lines=("store", "copy"), source="PTX ISA fence.proxy.async: the fence is for the state space it names",
        args=lambda: (ints(4, 64), zeros(4, 64)), want=lambda A, B: {1: A[:, ::-1] - 1}, **hopper())
def fence_of_global_memory_for_a_tile_in_shared(fixed):
    space = "shared::cta" if fixed else "global"

    @T.prim_func
    def k(A: T.Buffer((4, 64), "int32"), B_ptr: T.handle):
        B = T.match_buffer(B_ptr, (4, 64), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 64), "int32", align=128)
        for i in range(4):
            sm[i % 2, 63 - tx] = A[i, tx] - 1       # <-- store
            T.ptx[f"fence.proxy.async.{space}"]()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx[OUT](B.ptr_to([i, 0]), sm.ptr_to([i % 2, 0]), T.uint32(256))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group.read(1)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("proxy", cls="proxy", buffer="A", also=("race",), lines=("store", "copy"), source="own: tile written to global memory, then fetched by the copy engine",
        args=lambda: (at16(2, 64, fill=0), zeros(2, 64)), want=lambda A, B: {1: np.arange(128).reshape(2, 64)}, **hopper())
def global_tile_fetched_without_the_proxy_fence(fixed):
    @T.prim_func
    def k(A_ptr: T.handle, B: T.Buffer((2, 64), "int32")):
        A = T.match_buffer(A_ptr, (2, 64), "int32", align=16)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((64,), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            init(bar, 1)
        for i in range(2):
            A[i, tx] = i * 64 + tx                  # <-- store
            if fixed:
                T.ptx.fence.proxy.async_.global_()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(256))
                T.ptx[IN](sm.ptr_to([0]), A.ptr_to([i, 0]), T.uint32(256), bar.ptr_to([0]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            B[i, tx] = sm[tx]
            T.cuda.cta_sync()
    return k


# ---- tensor copies ---------------------------------------------------------------------------------------------------


def tiles():
    a = at16(24, 32)
    return tirx.tensor_map(a, (16, 8)), a, zeros(24, 32)


@expect("async", cls="tensor", buffer="sm", lines=("copy", "load"), source="own: the wait stands behind the first read",
        args=tiles, want=lambda m, A, B: {2: A + 1}, **hopper(128))
def tile_read_a_turn_before_its_wait(fixed):
    """Six boxes of 8 x 16, two stages; broken, the wait is that of the other stage."""
    other = 0 if fixed else 1

    @T.prim_func
    def k(m: T.TensorMap(), A: T.Buffer((24, 32), "int32"), B: T.Buffer((24, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((2, 8, 16), "int32", align=128)
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            init(bar, 2)
        T.cuda.cta_sync()
        for i in range(7):
            if i < 6:
                if tx == 0:
                    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(512))
                    T.ptx[TILE](sm.ptr_to([i % 2, 0, 0]), T.address_of(m), i % 2 * 16, i // 2 * 8, bar.ptr_to([i % 2]))  # <-- copy
            if i > 0:
                j: T.let = i - 1
                if other == 0:
                    T.cuda.mbarrier_wait(bar.ptr_to([j % 2]), j // 2 % 2)
                elif j > 0:
                    T.cuda.mbarrier_wait(bar.ptr_to([(j - 1) % 2]), (j - 1) // 2 % 2)
                B[j // 2 * 8 + tx // 16, j % 2 * 16 + tx % 16] = sm[j % 2, tx // 16, tx % 16] + 1  # <-- load
                T.cuda.cta_sync()
    return k


@expect("misaligned", cls="tensor", lines=("copy",), source="own: stages of a swizzled ring packed without padding",
        args=tiles, want=lambda m, A, B: {2: A}, **hopper(128))
def second_stage_off_by_a_row(fixed):
    """Stages of 512 + 64 bytes: the second one is no multiple of 128 bytes."""
    pitch = 128 if fixed else 144

    @T.prim_func
    def k(m: T.TensorMap(), A: T.Buffer((24, 32), "int32"), B: T.Buffer((24, 32), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((2, pitch), "int32", align=128)
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            init(bar, 2)
        T.cuda.cta_sync()
        for i in range(6):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(512))
                T.ptx[TILE](sm.ptr_to([i % 2, 0]), T.address_of(m), i % 2 * 16, i // 2 * 8, bar.ptr_to([i % 2]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([i % 2]), i // 2 % 2)
            B[i // 2 * 8 + tx // 16, i % 2 * 16 + tx % 16] = sm[i % 2, tx]
            T.cuda.cta_sync()
    return k


def windows():
    """An image (n, h, w, c) of 2 x 6 x 6 x 8 and its map: windows of 3 x 3 around each of 16 pixels."""
    a = at16(2, 6, 6, 8)
    m = tirx.tensor_map(a, channels=8, pixels=16, lower_corner=(-1, -1), upper_corner=(-1, -1))
    return m, a, zeros(4, 16, 8)


def shifted(A):
    padded = np.zeros((2, 8, 8, 8), np.int32)
    padded[:, 1:7, 1:7] = A
    out = []
    for i in range(4):
        pixels = [(i // 2, y, x) for y in range(6) for x in range(6)][:16]
        out.append([padded[n, y + i % 2, x + 1] for n, y, x in pixels])
    return np.array(out)


@expect("deadlock", cls="tensor", also=("mbarrier",), buffer="bar", lines=("wait",), source="own: bytes of an im2col load computed from the box of a tile",
        args=windows, want=lambda m, A, B: {2: shifted(A)}, **hopper(128))
def im2col_bytes_of_the_whole_window(fixed):
    """16 pixels of 8 channels come, whatever the window is; broken, the nine positions are counted."""
    nbytes = 512 if fixed else 512 * 9

    @T.prim_func
    def k(m: T.TensorMap(), A: T.Buffer((2, 6, 6, 8), "int32"), B: T.Buffer((4, 16, 8), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((16, 8), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            init(bar, 1)
        T.cuda.cta_sync()
        for i in range(4):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(nbytes))
                T.ptx["cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"](
                    sm.ptr_to([0, 0]), T.address_of(m), 0, -1, -1, i // 2, bar.ptr_to([0]), T.uint16(1), T.cast(i % 2, "uint16"))
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)  # <-- wait
            B[i, tx // 8, tx % 8] = sm[tx // 8, tx % 8]
            T.cuda.cta_sync()
    return k


@expect("async", cls="tensor", buffer="sm", also=("race",), lines=("copy", "load"), source="own: im2col stage fetched again while it is read",
        args=windows, want=lambda m, A, B: {2: shifted(A)}, **hopper(128))
def im2col_stage_without_release(fixed):
    @T.prim_func
    def k(m: T.TensorMap(), A: T.Buffer((2, 6, 6, 8), "int32"), B: T.Buffer((4, 16, 8), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((16, 8), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        if tx == 0:
            init(bar, 1)
        T.cuda.cta_sync()
        for i in range(4):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(512))
                T.ptx["cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"](
                    sm.ptr_to([0, 0]), T.address_of(m), 0, -1, -1, i // 2, bar.ptr_to([0]), T.uint16(1), T.cast(i % 2, "uint16"))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            B[i, tx // 8, tx % 8] = sm[tx // 8, tx % 8]  # <-- load
            if fixed:
                T.cuda.cta_sync()
    return k


def reduced():
    b = at16(8, 16, fill=100)
    return ints(4, 8, 16), tirx.tensor_map(b, (16, 8)), b


@expect("async", cls="tensor", buffer="sm", also=("race",), lines=("copy", "store"), source="own: tile of a reduction refilled before it has been read",
        args=reduced, want=lambda A, m, B: {2: A.sum(0, dtype=np.int32) + 100}, **hopper(128))
def tile_refilled_under_a_reduction(fixed):
    @T.prim_func
    def k(A: T.Buffer((4, 8, 16), "int32"), m: T.TensorMap(), B: T.Buffer((8, 16), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((8, 16), "int32", align=128)
        for i in range(4):
            sm[tx // 16, tx % 16] = A[i, tx // 16, tx % 16]  # <-- store
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx["cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"](T.address_of(m), 0, 0, sm.ptr_to([0, 0]))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                if fixed:
                    T.ptx.cp.async_.bulk.wait_group.read(0)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


@expect("out_of_bounds", cls="tensor", lines=("copy",), source="own: box stored in front of the tensor",
        args=lambda: (lambda b: (ints(3, 8, 16), tirx.tensor_map(b, (16, 8)), b))(at16(20, 16, fill=0)),
        want=lambda A, m, B: {2: np.concatenate(A)[:20]}, **hopper(128))
def rows_counted_from_the_end(fixed):
    """Rows beyond the end are dropped, rows in front of the tensor are a fault."""
    base, sign = (0, 1) if fixed else (12, -1)

    @T.prim_func
    def k(A: T.Buffer((3, 8, 16), "int32"), m: T.TensorMap(), B: T.Buffer((20, 16), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([128])
        sm = T.alloc_shared((2, 8, 16), "int32", align=128)
        for i in range(3):
            sm[i % 2, tx // 16, tx % 16] = A[i, tx // 16, tx % 16]
            T.ptx.fence.proxy.async_.shared__cta()
            T.cuda.cta_sync()
            if tx == 0:
                T.ptx["cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"](
                    T.address_of(m), 0, base + sign * i * 8, sm.ptr_to([i % 2, 0, 0]))  # <-- copy
                T.ptx.cp.async_.bulk.commit_group()
                T.ptx.cp.async_.bulk.wait_group.read(1)
            T.cuda.cta_sync()
        if tx == 0:
            T.ptx.cp.async_.bulk.wait_group(0)
    return k


def gathered():
    a = at16(32, 16)
    return tirx.tensor_map(a, (16, 1)), a, ints(3, 4, lo=0, hi=32, seed=4), zeros(3, 4, 16)


@expect("deadlock", cls="tensor", also=("mbarrier",), buffer="bar", lines=("wait",), source="own: one row announced, four gathered",
        launch=dict(grid=1, block=64), arch="sm_100a", args=gathered, want=lambda m, A, I, B: {3: A[I]})
def gather_of_four_rows_with_the_bytes_of_one_too_many(fixed):
    nbytes = 256 if fixed else 320

    @T.prim_func
    def k(m: T.TensorMap(), A: T.Buffer((32, 16), "int32"), I: T.Buffer((3, 4), "int32"), B: T.Buffer((3, 4, 16), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        sm = T.alloc_shared((2, 4, 16), "int32", align=128)
        bar = T.alloc_shared((2,), "uint64")
        if tx == 0:
            init(bar, 2)
        T.cuda.cta_sync()
        for i in range(3):
            if tx == 0:
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([i % 2]), T.uint32(nbytes))
                T.ptx["cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"](
                    sm.ptr_to([i % 2, 0, 0]), T.address_of(m), 0, I[i, 0], I[i, 1], I[i, 2], I[i, 3], bar.ptr_to([i % 2]))
            T.cuda.mbarrier_wait(bar.ptr_to([i % 2]), i // 2 % 2)  # <-- wait
            B[i, tx // 16, tx % 16] = sm[i % 2, tx // 16, tx % 16]
            T.cuda.cta_sync()
    return k


# ---- maps that the kernel makes --------------------------------------------------------------------------------------


def grouped():
    return at16(16, 16), at16(16, 16, seed=1), np.zeros((1, 16), np.uint64), zeros(2, 16, 16)


@expect("proxy", cls="proxy", buffer="room", lines=("publish", "copy"), alt_lines=(("copy",), ("again", "copy")),
        source="PTX ISA tensormap proxy: fence.proxy.tensormap acquire before the use", args=grouped,
        want=lambda A, B, R, O: {3: np.stack([A, B])}, **hopper(32))
def map_used_without_the_acquire_of_its_proxy(fixed):
    """A map is changed for the second tensor and published; the copy engine may still hold the old one."""
    @T.prim_func
    def k(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32"), room: T.Buffer((1, 16), "uint64"),
          O: T.Buffer((2, 16, 16), "int32")):
        template: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(template, A, 16, 16, 64, 16, 16, 1, 1, descriptor_dtype="int32", rank=2)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        s = T.alloc_shared((16,), "uint64", align=128)
        tile = T.alloc_shared((16, 16), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        words = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(template, 0, "uint64"))
        if tx < 16:
            s[tx] = words[tx]
        if tx == 0:
            init(bar, 1)
        T.cuda.warp_sync()
        for i in range(2):
            if tx == 0:
                if i == 1:
                    T.ptx["tensormap.replace.tile.global_address.shared::cta.b1024.b64"](
                        s.ptr_to([0]), T.reinterpret("uint64", B.data))  # <-- again
            T.cuda.warp_sync()
            T.ptx["tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"](
                room.ptr_to([0, 0]), s.ptr_to([0]))  # <-- publish
            if tx == 0:
                if fixed:
                    T.ptx["fence.proxy.tensormap::generic.acquire.gpu"](room.ptr_to([0, 0]))
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(1024))
                T.ptx[TILE](tile.ptr_to([0, 0]), room.ptr_to([0, 0]), 0, 0, bar.ptr_to([0]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            for j in range(8):
                O[i, j * 2 + tx // 16, tx % 16] = tile[j * 2 + tx // 16, tx % 16]
            T.cuda.warp_sync()
    return k


@expect("proxy", cls="proxy", buffer="room", lines=("change", "copy"), alt_lines=(("copy",),), source="own: a map changed in place in global memory",
        args=grouped, want=lambda A, B, R, O: {3: np.stack([A, B])}, **hopper(32))
def map_changed_in_place_without_release(fixed):
    """tensormap.replace works through the generic proxy; without fence.proxy.tensormap the engine does not see it."""
    @T.prim_func
    def k(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32"), room: T.Buffer((1, 16), "uint64"),
          O: T.Buffer((2, 16, 16), "int32")):
        template: T.let = T.tvm_stack_alloca("tensormap", 1)
        T.tensormap_encode_tiled(template, A, 16, 16, 64, 16, 16, 1, 1, descriptor_dtype="int32", rank=2)
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([32])
        tile = T.alloc_shared((16, 16), "int32", align=128)
        bar = T.alloc_shared((1,), "uint64")
        words = T.decl_buffer((16,), "uint64", data=T.ptr_byte_offset(template, 0, "uint64"))
        if tx == 0:
            init(bar, 1)
            for i in range(16):
                room[0, i] = words[i]
            T.ptx["fence.proxy.tensormap::generic.release.cta"]()
            T.ptx["fence.proxy.tensormap::generic.acquire.cta"](room.ptr_to([0, 0]))
        T.cuda.warp_sync()
        for i in range(2):
            if tx == 0:
                if i == 1:
                    T.ptx["tensormap.replace.tile.global_address.global.b1024.b64"](
                        room.ptr_to([0, 0]), T.reinterpret("uint64", B.data))  # <-- change
                    if fixed:
                        T.ptx["fence.proxy.tensormap::generic.release.cta"]()
                        T.ptx["fence.proxy.tensormap::generic.acquire.cta"](room.ptr_to([0, 0]))
                T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), T.uint32(1024))
                T.ptx[TILE](tile.ptr_to([0, 0]), room.ptr_to([0, 0]), 0, 0, bar.ptr_to([0]))  # <-- copy
            T.cuda.mbarrier_wait(bar.ptr_to([0]), i % 2)
            for j in range(8):
                O[i, j * 2 + tx // 16, tx % 16] = tile[j * 2 + tx // 16, tx % 16]
            T.cuda.warp_sync()
    return k
