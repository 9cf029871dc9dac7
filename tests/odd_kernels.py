# SPDX-License-Identifier: Apache-2.0
"""Functions with rare forms, to be parsed, printed and lowered but not run. ODD: name -> maker."""

from __future__ import annotations

from tirx.script import tirx as T


def loop_dtypes_and_let():
    @T.prim_func
    def f(A: T.Buffer((64,), "int64"), n: T.int64, u: T.uint32):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        for i in T.serial(4, dtype="uint32"):
            A[i] = T.Cast("int64", i)
        for i in range(n):
            A[i] = i
        for i in range(T.int64(2), n):
            A[i] = i
        for i in range(u):
            A[i] = 1
        for i in T.serial(u, dtype="int32"):
            A[i] = 1
        v = T.int32()
        A[0] = T.Let(v + 1, where={v: tx * 2})

    return f


def attributes_of_regions():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32")):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        with T.attr({"pragma_x": 1}):
            A[tx] = 1
        T.attr({"pragma_y": "z"})
        if tx < 3:
            T.attr({"pragma_z": 5})
            A[tx] = 2
        A[tx] = 3

    return f


def pointers_and_vectors():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32", align=16), p: T.handle("float32"), q: T.handle):
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        r: T.let[T.handle("float32")] = A.ptr_to([4])
        V = T.decl_buffer((4,), "float32", data=r)
        W = T.decl_buffer((4,), "float32", data=p)
        V[tx % 4] = W[tx % 4] + T.cuda.ldg(A.ptr_to([tx]), "float32")
        T.evaluate(T.address_of(A[0]))
        y: T.float32x4
        z = T.alloc_local((2,), "float32x4")
        z[0] = T.Broadcast(T.float32(1), 4)
        z[1] = A[0:4]
        A[4:8] = z[1] + z[0]
        A[0:8:2] = z[1]
        A[T.Ramp(tx, 2, 4)] = z[1]
        A[tx * 4 : tx * 4 + 4] = T.Shuffle([z[0], z[1]], [0, 1, 6, 7])
        y = z[0]
        A[8:12] = y

    return f


def levels_of_threads():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((), "int32")):
        T.device_entry()
        cid = T.cluster_id([4])
        rank = T.cta_id_in_cluster([2], preferred=[2])
        wg = T.warpgroup_id([1])
        w = T.warp_id_in_wg([4])
        lane = T.lane_id()
        tx = T.thread_id_in_wg([128])
        B[()] = 3
        if T.cuda.elect_sync():
            A[lane] = T.cuda.cta_sum(A[lane], 4, A.ptr_to([0]))
        T.cuda.printf("x %d\n", lane)
        T.evaluate(T.cuda.ballot_sync(T.uint32(0xFFFFFFFF), lane < 3))
        T.cuda.cluster_sync()
        T.cuda.thread_fence()
        A[0] = T.call_extern("float32", "foo", A[1])
        T.call_extern("void", "bar", A.data)
        T.thread_return()

    return f


def host_zone_and_half_floats():
    @T.prim_func
    def f(A: T.Buffer((64,), "float32"), B: T.Buffer((4, 64), "float16", strides=[128, 2], elem_offset=4)):
        m: T.let = T.int32(64) * 2
        T.call_packed("hello", A.data, 1, "text")
        T.device_entry()
        bx = T.cta_id([1])
        tx = T.thread_id([64])
        s = T.alloc_buffer((64,), "float32", scope="shared.dyn", align=128)
        t = T.alloc_shared((1,), "int32")
        B[0, tx] = T.float16(1)
        while tx < 3:
            pass
        for i in range(3):
            pass
        x: T.bool = True
        if x:
            pass
        y = not x
        h = T.float16(1.5)
        A[tx] = T.Cast("float32", h * 2) + h * 2.0
        A[tx] = T.max(A[tx], 0)

    return f


def launch_threads():
    @T.prim_func
    def f(A: T.Buffer((64,), "int32")):
        bx = T.launch_thread("blockIdx.x", 4)
        tx = T.launch_thread("threadIdx.x", 16)
        A[bx * 16 + tx] = 1

    return f


ODD = {
    make.__name__: make
    for make in (
        loop_dtypes_and_let,
        attributes_of_regions,
        pointers_and_vectors,
        levels_of_threads,
        host_zone_and_half_floats,
        launch_threads,
    )
}
