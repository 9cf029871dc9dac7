# SPDX-License-Identifier: Apache-2.0
"""A selective-scan update as if written by hand: registers of one element, one instruction a line, unrolled.

    delta = softplus(dt + bias)
    h = exp(delta * A) * h + delta * x * B          16 states a channel
    y = (sum of h * C + skip * x) * z / (1 + exp(-z))

A thread owns a channel and keeps its 16 states in registers; a block has 128 channels. Four steps of time are unrolled;
their rows of B and C, which all channels share, come through shared memory by bulk copies, two slots of them, so that
the next four are on their way while these are worked on.
"""

from __future__ import annotations

import math

from tirx.script import tirx as T

THREADS = 128
STATES = 16
STEPS = 4
SLOT = STEPS * STATES  # elements of B, and of C, in a slot
LOG2E = math.log2(math.e)
LN2 = math.log(2)


@T.meta_class
class Slots:
    """Two slots for rows of B and C, each with a barrier that counts the bytes which have come."""

    def __init__(self):
        self.rows_of_b = T.alloc_shared((2, SLOT), "float32", align=128)
        self.rows_of_c = T.alloc_shared((2, SLOT), "float32", align=128)
        self.full = T.alloc_shared((2,), "uint64")

    @T.inline
    def prepare(self):
        T.ptx.mbarrier.init.shared.b64(self.full.ptr_to([0]), 1)
        T.ptx.mbarrier.init.shared.b64(self.full.ptr_to([1]), 1)
        T.ptx.fence.mbarrier_init.release.cluster()

    @T.inline
    def ask(self, slot, chunk, b, c):
        barrier: T.let = self.full.ptr_to([slot])
        T.ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, 2 * 4 * SLOT)
        T.ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"](
            self.rows_of_b.ptr_to([slot, 0]), b.ptr_to([chunk * STEPS, 0]), 4 * SLOT, barrier
        )
        T.ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"](
            self.rows_of_c.ptr_to([slot, 0]), c.ptr_to([chunk * STEPS, 0]), 4 * SLOT, barrier
        )


@T.inline
def softplus(to, value):
    """log(1 + exp(value)), and value itself where that is the same number."""
    scaled: T.float32
    power: T.float32
    above: T.uint32
    T.ptx.mul.f32(scaled, value, LOG2E)
    T.ptx.ex2.approx.ftz.f32(power, scaled)
    T.ptx.add.f32(power, power, 1.0)
    T.ptx.lg2.approx.ftz.f32(power, power)
    T.ptx.mul.f32(power, power, LN2)
    T.ptx.setp.gt.f32(above, value, 20.0)
    T.ptx.selp.f32(to, value, power, T.ptx.pred(above))


@T.inline
def gate(to, value):
    """value / (1 + exp(-value))"""
    minus: T.float32
    T.ptx.neg.f32(minus, value)
    T.ptx.mul.f32(minus, minus, LOG2E)
    T.ptx.ex2.approx.ftz.f32(minus, minus)
    T.ptx.add.f32(minus, minus, 1.0)
    T.ptx.rcp.approx.ftz.f32(minus, minus)
    T.ptx.mul.f32(to, value, minus)


@T.prim_func
def selective_scan(
    x: T.handle,
    dt: T.handle,
    z: T.handle,
    a: T.handle,
    b: T.handle,
    c: T.handle,
    skip: T.handle,
    bias: T.handle,
    states: T.handle,
    y: T.handle,
):
    length, channels = T.int32(), T.int32()
    X = T.match_buffer(x, (length, channels), "bfloat16")
    DT = T.match_buffer(dt, (length, channels), "bfloat16")
    Z = T.match_buffer(z, (length, channels), "bfloat16")
    A = T.match_buffer(a, (channels, STATES), "float32", align=16)
    B = T.match_buffer(b, (length, STATES), "float32", align=16)
    C = T.match_buffer(c, (length, STATES), "float32", align=16)
    SKIP = T.match_buffer(skip, (channels,), "float32")
    BIAS = T.match_buffer(bias, (channels,), "float32")
    H = T.match_buffer(states, (channels, STATES), "float32", align=16)
    Y = T.match_buffer(y, (length, channels), "bfloat16")
    T.device_entry()
    block = T.cta_id([T.ceildiv(channels, THREADS)])
    warp = T.warp_id([THREADS // 32])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])
    slots = Slots()
    chunks: T.int32 = length // STEPS
    channel: T.int32 = T.min(block * THREADS + tid, channels - 1)  # threads beyond the end repeat the last channel
    mine: T.bool = block * THREADS + tid < channels
    if warp == 0:
        if T.cuda.elect_sync():
            slots.prepare()
    T.cuda.cta_sync()
    T.ptx.griddepcontrol.wait()
    if warp == 0:
        if T.cuda.elect_sync():
            slots.ask(0, 0, B, C)

    # what belongs to the channel
    skipped: T.float32
    shifted: T.float32
    a0: T.float32
    a1: T.float32
    a2: T.float32
    a3: T.float32
    a4: T.float32
    a5: T.float32
    a6: T.float32
    a7: T.float32
    a8: T.float32
    a9: T.float32
    a10: T.float32
    a11: T.float32
    a12: T.float32
    a13: T.float32
    a14: T.float32
    a15: T.float32
    h0: T.float32
    h1: T.float32
    h2: T.float32
    h3: T.float32
    h4: T.float32
    h5: T.float32
    h6: T.float32
    h7: T.float32
    h8: T.float32
    h9: T.float32
    h10: T.float32
    h11: T.float32
    h12: T.float32
    h13: T.float32
    h14: T.float32
    h15: T.float32
    T.ptx.ld.global_.nc.f32(skipped, SKIP.ptr_to([channel]))
    T.ptx.ld.global_.nc.f32(shifted, BIAS.ptr_to([channel]))
    T.ptx["ld.global.nc.L1::no_allocate.v4.f32"](a0, a1, a2, a3, A.ptr_to([channel, 0]))
    T.ptx["ld.global.nc.L1::no_allocate.v4.f32"](a4, a5, a6, a7, A.ptr_to([channel, 4]))
    T.ptx["ld.global.nc.L1::no_allocate.v4.f32"](a8, a9, a10, a11, A.ptr_to([channel, 8]))
    T.ptx["ld.global.nc.L1::no_allocate.v4.f32"](a12, a13, a14, a15, A.ptr_to([channel, 12]))
    T.ptx.ld.global_.v4.f32(h0, h1, h2, h3, H.ptr_to([channel, 0]))
    T.ptx.ld.global_.v4.f32(h4, h5, h6, h7, H.ptr_to([channel, 4]))
    T.ptx.ld.global_.v4.f32(h8, h9, h10, h11, H.ptr_to([channel, 8]))
    T.ptx.ld.global_.v4.f32(h12, h13, h14, h15, H.ptr_to([channel, 12]))
    # exp(delta * A) is a power of two
    T.ptx.mul.f32(a0, a0, LOG2E)
    T.ptx.mul.f32(a1, a1, LOG2E)
    T.ptx.mul.f32(a2, a2, LOG2E)
    T.ptx.mul.f32(a3, a3, LOG2E)
    T.ptx.mul.f32(a4, a4, LOG2E)
    T.ptx.mul.f32(a5, a5, LOG2E)
    T.ptx.mul.f32(a6, a6, LOG2E)
    T.ptx.mul.f32(a7, a7, LOG2E)
    T.ptx.mul.f32(a8, a8, LOG2E)
    T.ptx.mul.f32(a9, a9, LOG2E)
    T.ptx.mul.f32(a10, a10, LOG2E)
    T.ptx.mul.f32(a11, a11, LOG2E)
    T.ptx.mul.f32(a12, a12, LOG2E)
    T.ptx.mul.f32(a13, a13, LOG2E)
    T.ptx.mul.f32(a14, a14, LOG2E)
    T.ptx.mul.f32(a15, a15, LOG2E)

    for chunk in range(chunks):
        slot: T.int32 = chunk % 2
        if T.And(warp == 0, chunk + 1 < chunks):
            if T.cuda.elect_sync():
                slots.ask(1 - slot, chunk + 1, B, C)
        T.cuda.mbarrier_wait(slots.full.ptr_to([slot]), chunk // 2 % 2)

        # ---- step 0 of the four
        row0: T.int32 = chunk * STEPS + 0
        x_bits0: T.uint16
        dt_bits0: T.uint16
        z_bits0: T.uint16
        x0: T.float32
        z0: T.float32
        delta0: T.float32
        T.ptx["ld.global.nc.L1::no_allocate.b16"](x_bits0, X.ptr_to([row0, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](dt_bits0, DT.ptr_to([row0, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](z_bits0, Z.ptr_to([row0, channel]))
        T.ptx.cvt.f32.bf16(x0, x_bits0)
        T.ptx.cvt.f32.bf16(delta0, dt_bits0)
        T.ptx.cvt.f32.bf16(z0, z_bits0)
        T.ptx.add.f32(delta0, delta0, shifted)
        softplus(delta0, delta0)
        fed0: T.float32  # delta * x
        T.ptx.mul.f32(fed0, delta0, x0)
        e0_0: T.float32
        e0_1: T.float32
        e0_2: T.float32
        e0_3: T.float32
        e0_4: T.float32
        e0_5: T.float32
        e0_6: T.float32
        e0_7: T.float32
        e0_8: T.float32
        e0_9: T.float32
        e0_10: T.float32
        e0_11: T.float32
        e0_12: T.float32
        e0_13: T.float32
        e0_14: T.float32
        e0_15: T.float32
        T.ptx.mul.f32(e0_0, delta0, a0)
        T.ptx.mul.f32(e0_1, delta0, a1)
        T.ptx.mul.f32(e0_2, delta0, a2)
        T.ptx.mul.f32(e0_3, delta0, a3)
        T.ptx.mul.f32(e0_4, delta0, a4)
        T.ptx.mul.f32(e0_5, delta0, a5)
        T.ptx.mul.f32(e0_6, delta0, a6)
        T.ptx.mul.f32(e0_7, delta0, a7)
        T.ptx.mul.f32(e0_8, delta0, a8)
        T.ptx.mul.f32(e0_9, delta0, a9)
        T.ptx.mul.f32(e0_10, delta0, a10)
        T.ptx.mul.f32(e0_11, delta0, a11)
        T.ptx.mul.f32(e0_12, delta0, a12)
        T.ptx.mul.f32(e0_13, delta0, a13)
        T.ptx.mul.f32(e0_14, delta0, a14)
        T.ptx.mul.f32(e0_15, delta0, a15)
        T.ptx.ex2.approx.ftz.f32(e0_0, e0_0)
        T.ptx.ex2.approx.ftz.f32(e0_1, e0_1)
        T.ptx.ex2.approx.ftz.f32(e0_2, e0_2)
        T.ptx.ex2.approx.ftz.f32(e0_3, e0_3)
        T.ptx.ex2.approx.ftz.f32(e0_4, e0_4)
        T.ptx.ex2.approx.ftz.f32(e0_5, e0_5)
        T.ptx.ex2.approx.ftz.f32(e0_6, e0_6)
        T.ptx.ex2.approx.ftz.f32(e0_7, e0_7)
        T.ptx.ex2.approx.ftz.f32(e0_8, e0_8)
        T.ptx.ex2.approx.ftz.f32(e0_9, e0_9)
        T.ptx.ex2.approx.ftz.f32(e0_10, e0_10)
        T.ptx.ex2.approx.ftz.f32(e0_11, e0_11)
        T.ptx.ex2.approx.ftz.f32(e0_12, e0_12)
        T.ptx.ex2.approx.ftz.f32(e0_13, e0_13)
        T.ptx.ex2.approx.ftz.f32(e0_14, e0_14)
        T.ptx.ex2.approx.ftz.f32(e0_15, e0_15)
        b0_0: T.float32
        b0_1: T.float32
        b0_2: T.float32
        b0_3: T.float32
        b0_4: T.float32
        b0_5: T.float32
        b0_6: T.float32
        b0_7: T.float32
        b0_8: T.float32
        b0_9: T.float32
        b0_10: T.float32
        b0_11: T.float32
        b0_12: T.float32
        b0_13: T.float32
        b0_14: T.float32
        b0_15: T.float32
        T.ptx.ld.shared.v4.f32(b0_0, b0_1, b0_2, b0_3, slots.rows_of_b.ptr_to([slot, 0]))
        T.ptx.ld.shared.v4.f32(b0_4, b0_5, b0_6, b0_7, slots.rows_of_b.ptr_to([slot, 4]))
        T.ptx.ld.shared.v4.f32(b0_8, b0_9, b0_10, b0_11, slots.rows_of_b.ptr_to([slot, 8]))
        T.ptx.ld.shared.v4.f32(b0_12, b0_13, b0_14, b0_15, slots.rows_of_b.ptr_to([slot, 12]))
        T.ptx.mul.f32(b0_0, b0_0, fed0)
        T.ptx.mul.f32(b0_1, b0_1, fed0)
        T.ptx.mul.f32(b0_2, b0_2, fed0)
        T.ptx.mul.f32(b0_3, b0_3, fed0)
        T.ptx.mul.f32(b0_4, b0_4, fed0)
        T.ptx.mul.f32(b0_5, b0_5, fed0)
        T.ptx.mul.f32(b0_6, b0_6, fed0)
        T.ptx.mul.f32(b0_7, b0_7, fed0)
        T.ptx.mul.f32(b0_8, b0_8, fed0)
        T.ptx.mul.f32(b0_9, b0_9, fed0)
        T.ptx.mul.f32(b0_10, b0_10, fed0)
        T.ptx.mul.f32(b0_11, b0_11, fed0)
        T.ptx.mul.f32(b0_12, b0_12, fed0)
        T.ptx.mul.f32(b0_13, b0_13, fed0)
        T.ptx.mul.f32(b0_14, b0_14, fed0)
        T.ptx.mul.f32(b0_15, b0_15, fed0)
        T.ptx.fma.rn.f32(h0, e0_0, h0, b0_0)
        T.ptx.fma.rn.f32(h1, e0_1, h1, b0_1)
        T.ptx.fma.rn.f32(h2, e0_2, h2, b0_2)
        T.ptx.fma.rn.f32(h3, e0_3, h3, b0_3)
        T.ptx.fma.rn.f32(h4, e0_4, h4, b0_4)
        T.ptx.fma.rn.f32(h5, e0_5, h5, b0_5)
        T.ptx.fma.rn.f32(h6, e0_6, h6, b0_6)
        T.ptx.fma.rn.f32(h7, e0_7, h7, b0_7)
        T.ptx.fma.rn.f32(h8, e0_8, h8, b0_8)
        T.ptx.fma.rn.f32(h9, e0_9, h9, b0_9)
        T.ptx.fma.rn.f32(h10, e0_10, h10, b0_10)
        T.ptx.fma.rn.f32(h11, e0_11, h11, b0_11)
        T.ptx.fma.rn.f32(h12, e0_12, h12, b0_12)
        T.ptx.fma.rn.f32(h13, e0_13, h13, b0_13)
        T.ptx.fma.rn.f32(h14, e0_14, h14, b0_14)
        T.ptx.fma.rn.f32(h15, e0_15, h15, b0_15)
        even0: T.float32  # two sums, so that an addition need not wait for the one before it
        odd0: T.float32
        T.ptx.mul.f32(even0, skipped, x0)
        T.ptx.mov.f32(odd0, T.float32(0.0))
        c0_0: T.float32
        c0_1: T.float32
        c0_2: T.float32
        c0_3: T.float32
        c0_4: T.float32
        c0_5: T.float32
        c0_6: T.float32
        c0_7: T.float32
        c0_8: T.float32
        c0_9: T.float32
        c0_10: T.float32
        c0_11: T.float32
        c0_12: T.float32
        c0_13: T.float32
        c0_14: T.float32
        c0_15: T.float32
        T.ptx.ld.shared.v4.f32(c0_0, c0_1, c0_2, c0_3, slots.rows_of_c.ptr_to([slot, 0]))
        T.ptx.ld.shared.v4.f32(c0_4, c0_5, c0_6, c0_7, slots.rows_of_c.ptr_to([slot, 4]))
        T.ptx.ld.shared.v4.f32(c0_8, c0_9, c0_10, c0_11, slots.rows_of_c.ptr_to([slot, 8]))
        T.ptx.ld.shared.v4.f32(c0_12, c0_13, c0_14, c0_15, slots.rows_of_c.ptr_to([slot, 12]))
        T.ptx.fma.rn.f32(even0, h0, c0_0, even0)
        T.ptx.fma.rn.f32(odd0, h1, c0_1, odd0)
        T.ptx.fma.rn.f32(even0, h2, c0_2, even0)
        T.ptx.fma.rn.f32(odd0, h3, c0_3, odd0)
        T.ptx.fma.rn.f32(even0, h4, c0_4, even0)
        T.ptx.fma.rn.f32(odd0, h5, c0_5, odd0)
        T.ptx.fma.rn.f32(even0, h6, c0_6, even0)
        T.ptx.fma.rn.f32(odd0, h7, c0_7, odd0)
        T.ptx.fma.rn.f32(even0, h8, c0_8, even0)
        T.ptx.fma.rn.f32(odd0, h9, c0_9, odd0)
        T.ptx.fma.rn.f32(even0, h10, c0_10, even0)
        T.ptx.fma.rn.f32(odd0, h11, c0_11, odd0)
        T.ptx.fma.rn.f32(even0, h12, c0_12, even0)
        T.ptx.fma.rn.f32(odd0, h13, c0_13, odd0)
        T.ptx.fma.rn.f32(even0, h14, c0_14, even0)
        T.ptx.fma.rn.f32(odd0, h15, c0_15, odd0)
        T.ptx.add.f32(even0, even0, odd0)
        gated0: T.float32
        gate(gated0, z0)
        T.ptx.mul.f32(even0, even0, gated0)
        y_bits0: T.uint16
        T.ptx.cvt.rn.bf16.f32(y_bits0, even0)
        T.ptx.st.global_.cs.b16(Y.ptr_to([row0, channel]), y_bits0, pred=mine)

        # ---- step 1 of the four
        row1: T.int32 = chunk * STEPS + 1
        x_bits1: T.uint16
        dt_bits1: T.uint16
        z_bits1: T.uint16
        x1: T.float32
        z1: T.float32
        delta1: T.float32
        T.ptx["ld.global.nc.L1::no_allocate.b16"](x_bits1, X.ptr_to([row1, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](dt_bits1, DT.ptr_to([row1, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](z_bits1, Z.ptr_to([row1, channel]))
        T.ptx.cvt.f32.bf16(x1, x_bits1)
        T.ptx.cvt.f32.bf16(delta1, dt_bits1)
        T.ptx.cvt.f32.bf16(z1, z_bits1)
        T.ptx.add.f32(delta1, delta1, shifted)
        softplus(delta1, delta1)
        fed1: T.float32  # delta * x
        T.ptx.mul.f32(fed1, delta1, x1)
        e1_0: T.float32
        e1_1: T.float32
        e1_2: T.float32
        e1_3: T.float32
        e1_4: T.float32
        e1_5: T.float32
        e1_6: T.float32
        e1_7: T.float32
        e1_8: T.float32
        e1_9: T.float32
        e1_10: T.float32
        e1_11: T.float32
        e1_12: T.float32
        e1_13: T.float32
        e1_14: T.float32
        e1_15: T.float32
        T.ptx.mul.f32(e1_0, delta1, a0)
        T.ptx.mul.f32(e1_1, delta1, a1)
        T.ptx.mul.f32(e1_2, delta1, a2)
        T.ptx.mul.f32(e1_3, delta1, a3)
        T.ptx.mul.f32(e1_4, delta1, a4)
        T.ptx.mul.f32(e1_5, delta1, a5)
        T.ptx.mul.f32(e1_6, delta1, a6)
        T.ptx.mul.f32(e1_7, delta1, a7)
        T.ptx.mul.f32(e1_8, delta1, a8)
        T.ptx.mul.f32(e1_9, delta1, a9)
        T.ptx.mul.f32(e1_10, delta1, a10)
        T.ptx.mul.f32(e1_11, delta1, a11)
        T.ptx.mul.f32(e1_12, delta1, a12)
        T.ptx.mul.f32(e1_13, delta1, a13)
        T.ptx.mul.f32(e1_14, delta1, a14)
        T.ptx.mul.f32(e1_15, delta1, a15)
        T.ptx.ex2.approx.ftz.f32(e1_0, e1_0)
        T.ptx.ex2.approx.ftz.f32(e1_1, e1_1)
        T.ptx.ex2.approx.ftz.f32(e1_2, e1_2)
        T.ptx.ex2.approx.ftz.f32(e1_3, e1_3)
        T.ptx.ex2.approx.ftz.f32(e1_4, e1_4)
        T.ptx.ex2.approx.ftz.f32(e1_5, e1_5)
        T.ptx.ex2.approx.ftz.f32(e1_6, e1_6)
        T.ptx.ex2.approx.ftz.f32(e1_7, e1_7)
        T.ptx.ex2.approx.ftz.f32(e1_8, e1_8)
        T.ptx.ex2.approx.ftz.f32(e1_9, e1_9)
        T.ptx.ex2.approx.ftz.f32(e1_10, e1_10)
        T.ptx.ex2.approx.ftz.f32(e1_11, e1_11)
        T.ptx.ex2.approx.ftz.f32(e1_12, e1_12)
        T.ptx.ex2.approx.ftz.f32(e1_13, e1_13)
        T.ptx.ex2.approx.ftz.f32(e1_14, e1_14)
        T.ptx.ex2.approx.ftz.f32(e1_15, e1_15)
        b1_0: T.float32
        b1_1: T.float32
        b1_2: T.float32
        b1_3: T.float32
        b1_4: T.float32
        b1_5: T.float32
        b1_6: T.float32
        b1_7: T.float32
        b1_8: T.float32
        b1_9: T.float32
        b1_10: T.float32
        b1_11: T.float32
        b1_12: T.float32
        b1_13: T.float32
        b1_14: T.float32
        b1_15: T.float32
        T.ptx.ld.shared.v4.f32(b1_0, b1_1, b1_2, b1_3, slots.rows_of_b.ptr_to([slot, 16]))
        T.ptx.ld.shared.v4.f32(b1_4, b1_5, b1_6, b1_7, slots.rows_of_b.ptr_to([slot, 20]))
        T.ptx.ld.shared.v4.f32(b1_8, b1_9, b1_10, b1_11, slots.rows_of_b.ptr_to([slot, 24]))
        T.ptx.ld.shared.v4.f32(b1_12, b1_13, b1_14, b1_15, slots.rows_of_b.ptr_to([slot, 28]))
        T.ptx.mul.f32(b1_0, b1_0, fed1)
        T.ptx.mul.f32(b1_1, b1_1, fed1)
        T.ptx.mul.f32(b1_2, b1_2, fed1)
        T.ptx.mul.f32(b1_3, b1_3, fed1)
        T.ptx.mul.f32(b1_4, b1_4, fed1)
        T.ptx.mul.f32(b1_5, b1_5, fed1)
        T.ptx.mul.f32(b1_6, b1_6, fed1)
        T.ptx.mul.f32(b1_7, b1_7, fed1)
        T.ptx.mul.f32(b1_8, b1_8, fed1)
        T.ptx.mul.f32(b1_9, b1_9, fed1)
        T.ptx.mul.f32(b1_10, b1_10, fed1)
        T.ptx.mul.f32(b1_11, b1_11, fed1)
        T.ptx.mul.f32(b1_12, b1_12, fed1)
        T.ptx.mul.f32(b1_13, b1_13, fed1)
        T.ptx.mul.f32(b1_14, b1_14, fed1)
        T.ptx.mul.f32(b1_15, b1_15, fed1)
        T.ptx.fma.rn.f32(h0, e1_0, h0, b1_0)
        T.ptx.fma.rn.f32(h1, e1_1, h1, b1_1)
        T.ptx.fma.rn.f32(h2, e1_2, h2, b1_2)
        T.ptx.fma.rn.f32(h3, e1_3, h3, b1_3)
        T.ptx.fma.rn.f32(h4, e1_4, h4, b1_4)
        T.ptx.fma.rn.f32(h5, e1_5, h5, b1_5)
        T.ptx.fma.rn.f32(h6, e1_6, h6, b1_6)
        T.ptx.fma.rn.f32(h7, e1_7, h7, b1_7)
        T.ptx.fma.rn.f32(h8, e1_8, h8, b1_8)
        T.ptx.fma.rn.f32(h9, e1_9, h9, b1_9)
        T.ptx.fma.rn.f32(h10, e1_10, h10, b1_10)
        T.ptx.fma.rn.f32(h11, e1_11, h11, b1_11)
        T.ptx.fma.rn.f32(h12, e1_12, h12, b1_12)
        T.ptx.fma.rn.f32(h13, e1_13, h13, b1_13)
        T.ptx.fma.rn.f32(h14, e1_14, h14, b1_14)
        T.ptx.fma.rn.f32(h15, e1_15, h15, b1_15)
        even1: T.float32  # two sums, so that an addition need not wait for the one before it
        odd1: T.float32
        T.ptx.mul.f32(even1, skipped, x1)
        T.ptx.mov.f32(odd1, T.float32(0.0))
        c1_0: T.float32
        c1_1: T.float32
        c1_2: T.float32
        c1_3: T.float32
        c1_4: T.float32
        c1_5: T.float32
        c1_6: T.float32
        c1_7: T.float32
        c1_8: T.float32
        c1_9: T.float32
        c1_10: T.float32
        c1_11: T.float32
        c1_12: T.float32
        c1_13: T.float32
        c1_14: T.float32
        c1_15: T.float32
        T.ptx.ld.shared.v4.f32(c1_0, c1_1, c1_2, c1_3, slots.rows_of_c.ptr_to([slot, 16]))
        T.ptx.ld.shared.v4.f32(c1_4, c1_5, c1_6, c1_7, slots.rows_of_c.ptr_to([slot, 20]))
        T.ptx.ld.shared.v4.f32(c1_8, c1_9, c1_10, c1_11, slots.rows_of_c.ptr_to([slot, 24]))
        T.ptx.ld.shared.v4.f32(c1_12, c1_13, c1_14, c1_15, slots.rows_of_c.ptr_to([slot, 28]))
        T.ptx.fma.rn.f32(even1, h0, c1_0, even1)
        T.ptx.fma.rn.f32(odd1, h1, c1_1, odd1)
        T.ptx.fma.rn.f32(even1, h2, c1_2, even1)
        T.ptx.fma.rn.f32(odd1, h3, c1_3, odd1)
        T.ptx.fma.rn.f32(even1, h4, c1_4, even1)
        T.ptx.fma.rn.f32(odd1, h5, c1_5, odd1)
        T.ptx.fma.rn.f32(even1, h6, c1_6, even1)
        T.ptx.fma.rn.f32(odd1, h7, c1_7, odd1)
        T.ptx.fma.rn.f32(even1, h8, c1_8, even1)
        T.ptx.fma.rn.f32(odd1, h9, c1_9, odd1)
        T.ptx.fma.rn.f32(even1, h10, c1_10, even1)
        T.ptx.fma.rn.f32(odd1, h11, c1_11, odd1)
        T.ptx.fma.rn.f32(even1, h12, c1_12, even1)
        T.ptx.fma.rn.f32(odd1, h13, c1_13, odd1)
        T.ptx.fma.rn.f32(even1, h14, c1_14, even1)
        T.ptx.fma.rn.f32(odd1, h15, c1_15, odd1)
        T.ptx.add.f32(even1, even1, odd1)
        gated1: T.float32
        gate(gated1, z1)
        T.ptx.mul.f32(even1, even1, gated1)
        y_bits1: T.uint16
        T.ptx.cvt.rn.bf16.f32(y_bits1, even1)
        T.ptx.st.global_.cs.b16(Y.ptr_to([row1, channel]), y_bits1, pred=mine)

        # ---- step 2 of the four
        row2: T.int32 = chunk * STEPS + 2
        x_bits2: T.uint16
        dt_bits2: T.uint16
        z_bits2: T.uint16
        x2: T.float32
        z2: T.float32
        delta2: T.float32
        T.ptx["ld.global.nc.L1::no_allocate.b16"](x_bits2, X.ptr_to([row2, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](dt_bits2, DT.ptr_to([row2, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](z_bits2, Z.ptr_to([row2, channel]))
        T.ptx.cvt.f32.bf16(x2, x_bits2)
        T.ptx.cvt.f32.bf16(delta2, dt_bits2)
        T.ptx.cvt.f32.bf16(z2, z_bits2)
        T.ptx.add.f32(delta2, delta2, shifted)
        softplus(delta2, delta2)
        fed2: T.float32  # delta * x
        T.ptx.mul.f32(fed2, delta2, x2)
        e2_0: T.float32
        e2_1: T.float32
        e2_2: T.float32
        e2_3: T.float32
        e2_4: T.float32
        e2_5: T.float32
        e2_6: T.float32
        e2_7: T.float32
        e2_8: T.float32
        e2_9: T.float32
        e2_10: T.float32
        e2_11: T.float32
        e2_12: T.float32
        e2_13: T.float32
        e2_14: T.float32
        e2_15: T.float32
        T.ptx.mul.f32(e2_0, delta2, a0)
        T.ptx.mul.f32(e2_1, delta2, a1)
        T.ptx.mul.f32(e2_2, delta2, a2)
        T.ptx.mul.f32(e2_3, delta2, a3)
        T.ptx.mul.f32(e2_4, delta2, a4)
        T.ptx.mul.f32(e2_5, delta2, a5)
        T.ptx.mul.f32(e2_6, delta2, a6)
        T.ptx.mul.f32(e2_7, delta2, a7)
        T.ptx.mul.f32(e2_8, delta2, a8)
        T.ptx.mul.f32(e2_9, delta2, a9)
        T.ptx.mul.f32(e2_10, delta2, a10)
        T.ptx.mul.f32(e2_11, delta2, a11)
        T.ptx.mul.f32(e2_12, delta2, a12)
        T.ptx.mul.f32(e2_13, delta2, a13)
        T.ptx.mul.f32(e2_14, delta2, a14)
        T.ptx.mul.f32(e2_15, delta2, a15)
        T.ptx.ex2.approx.ftz.f32(e2_0, e2_0)
        T.ptx.ex2.approx.ftz.f32(e2_1, e2_1)
        T.ptx.ex2.approx.ftz.f32(e2_2, e2_2)
        T.ptx.ex2.approx.ftz.f32(e2_3, e2_3)
        T.ptx.ex2.approx.ftz.f32(e2_4, e2_4)
        T.ptx.ex2.approx.ftz.f32(e2_5, e2_5)
        T.ptx.ex2.approx.ftz.f32(e2_6, e2_6)
        T.ptx.ex2.approx.ftz.f32(e2_7, e2_7)
        T.ptx.ex2.approx.ftz.f32(e2_8, e2_8)
        T.ptx.ex2.approx.ftz.f32(e2_9, e2_9)
        T.ptx.ex2.approx.ftz.f32(e2_10, e2_10)
        T.ptx.ex2.approx.ftz.f32(e2_11, e2_11)
        T.ptx.ex2.approx.ftz.f32(e2_12, e2_12)
        T.ptx.ex2.approx.ftz.f32(e2_13, e2_13)
        T.ptx.ex2.approx.ftz.f32(e2_14, e2_14)
        T.ptx.ex2.approx.ftz.f32(e2_15, e2_15)
        b2_0: T.float32
        b2_1: T.float32
        b2_2: T.float32
        b2_3: T.float32
        b2_4: T.float32
        b2_5: T.float32
        b2_6: T.float32
        b2_7: T.float32
        b2_8: T.float32
        b2_9: T.float32
        b2_10: T.float32
        b2_11: T.float32
        b2_12: T.float32
        b2_13: T.float32
        b2_14: T.float32
        b2_15: T.float32
        T.ptx.ld.shared.v4.f32(b2_0, b2_1, b2_2, b2_3, slots.rows_of_b.ptr_to([slot, 32]))
        T.ptx.ld.shared.v4.f32(b2_4, b2_5, b2_6, b2_7, slots.rows_of_b.ptr_to([slot, 36]))
        T.ptx.ld.shared.v4.f32(b2_8, b2_9, b2_10, b2_11, slots.rows_of_b.ptr_to([slot, 40]))
        T.ptx.ld.shared.v4.f32(b2_12, b2_13, b2_14, b2_15, slots.rows_of_b.ptr_to([slot, 44]))
        T.ptx.mul.f32(b2_0, b2_0, fed2)
        T.ptx.mul.f32(b2_1, b2_1, fed2)
        T.ptx.mul.f32(b2_2, b2_2, fed2)
        T.ptx.mul.f32(b2_3, b2_3, fed2)
        T.ptx.mul.f32(b2_4, b2_4, fed2)
        T.ptx.mul.f32(b2_5, b2_5, fed2)
        T.ptx.mul.f32(b2_6, b2_6, fed2)
        T.ptx.mul.f32(b2_7, b2_7, fed2)
        T.ptx.mul.f32(b2_8, b2_8, fed2)
        T.ptx.mul.f32(b2_9, b2_9, fed2)
        T.ptx.mul.f32(b2_10, b2_10, fed2)
        T.ptx.mul.f32(b2_11, b2_11, fed2)
        T.ptx.mul.f32(b2_12, b2_12, fed2)
        T.ptx.mul.f32(b2_13, b2_13, fed2)
        T.ptx.mul.f32(b2_14, b2_14, fed2)
        T.ptx.mul.f32(b2_15, b2_15, fed2)
        T.ptx.fma.rn.f32(h0, e2_0, h0, b2_0)
        T.ptx.fma.rn.f32(h1, e2_1, h1, b2_1)
        T.ptx.fma.rn.f32(h2, e2_2, h2, b2_2)
        T.ptx.fma.rn.f32(h3, e2_3, h3, b2_3)
        T.ptx.fma.rn.f32(h4, e2_4, h4, b2_4)
        T.ptx.fma.rn.f32(h5, e2_5, h5, b2_5)
        T.ptx.fma.rn.f32(h6, e2_6, h6, b2_6)
        T.ptx.fma.rn.f32(h7, e2_7, h7, b2_7)
        T.ptx.fma.rn.f32(h8, e2_8, h8, b2_8)
        T.ptx.fma.rn.f32(h9, e2_9, h9, b2_9)
        T.ptx.fma.rn.f32(h10, e2_10, h10, b2_10)
        T.ptx.fma.rn.f32(h11, e2_11, h11, b2_11)
        T.ptx.fma.rn.f32(h12, e2_12, h12, b2_12)
        T.ptx.fma.rn.f32(h13, e2_13, h13, b2_13)
        T.ptx.fma.rn.f32(h14, e2_14, h14, b2_14)
        T.ptx.fma.rn.f32(h15, e2_15, h15, b2_15)
        even2: T.float32  # two sums, so that an addition need not wait for the one before it
        odd2: T.float32
        T.ptx.mul.f32(even2, skipped, x2)
        T.ptx.mov.f32(odd2, T.float32(0.0))
        c2_0: T.float32
        c2_1: T.float32
        c2_2: T.float32
        c2_3: T.float32
        c2_4: T.float32
        c2_5: T.float32
        c2_6: T.float32
        c2_7: T.float32
        c2_8: T.float32
        c2_9: T.float32
        c2_10: T.float32
        c2_11: T.float32
        c2_12: T.float32
        c2_13: T.float32
        c2_14: T.float32
        c2_15: T.float32
        T.ptx.ld.shared.v4.f32(c2_0, c2_1, c2_2, c2_3, slots.rows_of_c.ptr_to([slot, 32]))
        T.ptx.ld.shared.v4.f32(c2_4, c2_5, c2_6, c2_7, slots.rows_of_c.ptr_to([slot, 36]))
        T.ptx.ld.shared.v4.f32(c2_8, c2_9, c2_10, c2_11, slots.rows_of_c.ptr_to([slot, 40]))
        T.ptx.ld.shared.v4.f32(c2_12, c2_13, c2_14, c2_15, slots.rows_of_c.ptr_to([slot, 44]))
        T.ptx.fma.rn.f32(even2, h0, c2_0, even2)
        T.ptx.fma.rn.f32(odd2, h1, c2_1, odd2)
        T.ptx.fma.rn.f32(even2, h2, c2_2, even2)
        T.ptx.fma.rn.f32(odd2, h3, c2_3, odd2)
        T.ptx.fma.rn.f32(even2, h4, c2_4, even2)
        T.ptx.fma.rn.f32(odd2, h5, c2_5, odd2)
        T.ptx.fma.rn.f32(even2, h6, c2_6, even2)
        T.ptx.fma.rn.f32(odd2, h7, c2_7, odd2)
        T.ptx.fma.rn.f32(even2, h8, c2_8, even2)
        T.ptx.fma.rn.f32(odd2, h9, c2_9, odd2)
        T.ptx.fma.rn.f32(even2, h10, c2_10, even2)
        T.ptx.fma.rn.f32(odd2, h11, c2_11, odd2)
        T.ptx.fma.rn.f32(even2, h12, c2_12, even2)
        T.ptx.fma.rn.f32(odd2, h13, c2_13, odd2)
        T.ptx.fma.rn.f32(even2, h14, c2_14, even2)
        T.ptx.fma.rn.f32(odd2, h15, c2_15, odd2)
        T.ptx.add.f32(even2, even2, odd2)
        gated2: T.float32
        gate(gated2, z2)
        T.ptx.mul.f32(even2, even2, gated2)
        y_bits2: T.uint16
        T.ptx.cvt.rn.bf16.f32(y_bits2, even2)
        T.ptx.st.global_.cs.b16(Y.ptr_to([row2, channel]), y_bits2, pred=mine)

        # ---- step 3 of the four
        row3: T.int32 = chunk * STEPS + 3
        x_bits3: T.uint16
        dt_bits3: T.uint16
        z_bits3: T.uint16
        x3: T.float32
        z3: T.float32
        delta3: T.float32
        T.ptx["ld.global.nc.L1::no_allocate.b16"](x_bits3, X.ptr_to([row3, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](dt_bits3, DT.ptr_to([row3, channel]))
        T.ptx["ld.global.nc.L1::no_allocate.b16"](z_bits3, Z.ptr_to([row3, channel]))
        T.ptx.cvt.f32.bf16(x3, x_bits3)
        T.ptx.cvt.f32.bf16(delta3, dt_bits3)
        T.ptx.cvt.f32.bf16(z3, z_bits3)
        T.ptx.add.f32(delta3, delta3, shifted)
        softplus(delta3, delta3)
        fed3: T.float32  # delta * x
        T.ptx.mul.f32(fed3, delta3, x3)
        e3_0: T.float32
        e3_1: T.float32
        e3_2: T.float32
        e3_3: T.float32
        e3_4: T.float32
        e3_5: T.float32
        e3_6: T.float32
        e3_7: T.float32
        e3_8: T.float32
        e3_9: T.float32
        e3_10: T.float32
        e3_11: T.float32
        e3_12: T.float32
        e3_13: T.float32
        e3_14: T.float32
        e3_15: T.float32
        T.ptx.mul.f32(e3_0, delta3, a0)
        T.ptx.mul.f32(e3_1, delta3, a1)
        T.ptx.mul.f32(e3_2, delta3, a2)
        T.ptx.mul.f32(e3_3, delta3, a3)
        T.ptx.mul.f32(e3_4, delta3, a4)
        T.ptx.mul.f32(e3_5, delta3, a5)
        T.ptx.mul.f32(e3_6, delta3, a6)
        T.ptx.mul.f32(e3_7, delta3, a7)
        T.ptx.mul.f32(e3_8, delta3, a8)
        T.ptx.mul.f32(e3_9, delta3, a9)
        T.ptx.mul.f32(e3_10, delta3, a10)
        T.ptx.mul.f32(e3_11, delta3, a11)
        T.ptx.mul.f32(e3_12, delta3, a12)
        T.ptx.mul.f32(e3_13, delta3, a13)
        T.ptx.mul.f32(e3_14, delta3, a14)
        T.ptx.mul.f32(e3_15, delta3, a15)
        T.ptx.ex2.approx.ftz.f32(e3_0, e3_0)
        T.ptx.ex2.approx.ftz.f32(e3_1, e3_1)
        T.ptx.ex2.approx.ftz.f32(e3_2, e3_2)
        T.ptx.ex2.approx.ftz.f32(e3_3, e3_3)
        T.ptx.ex2.approx.ftz.f32(e3_4, e3_4)
        T.ptx.ex2.approx.ftz.f32(e3_5, e3_5)
        T.ptx.ex2.approx.ftz.f32(e3_6, e3_6)
        T.ptx.ex2.approx.ftz.f32(e3_7, e3_7)
        T.ptx.ex2.approx.ftz.f32(e3_8, e3_8)
        T.ptx.ex2.approx.ftz.f32(e3_9, e3_9)
        T.ptx.ex2.approx.ftz.f32(e3_10, e3_10)
        T.ptx.ex2.approx.ftz.f32(e3_11, e3_11)
        T.ptx.ex2.approx.ftz.f32(e3_12, e3_12)
        T.ptx.ex2.approx.ftz.f32(e3_13, e3_13)
        T.ptx.ex2.approx.ftz.f32(e3_14, e3_14)
        T.ptx.ex2.approx.ftz.f32(e3_15, e3_15)
        b3_0: T.float32
        b3_1: T.float32
        b3_2: T.float32
        b3_3: T.float32
        b3_4: T.float32
        b3_5: T.float32
        b3_6: T.float32
        b3_7: T.float32
        b3_8: T.float32
        b3_9: T.float32
        b3_10: T.float32
        b3_11: T.float32
        b3_12: T.float32
        b3_13: T.float32
        b3_14: T.float32
        b3_15: T.float32
        T.ptx.ld.shared.v4.f32(b3_0, b3_1, b3_2, b3_3, slots.rows_of_b.ptr_to([slot, 48]))
        T.ptx.ld.shared.v4.f32(b3_4, b3_5, b3_6, b3_7, slots.rows_of_b.ptr_to([slot, 52]))
        T.ptx.ld.shared.v4.f32(b3_8, b3_9, b3_10, b3_11, slots.rows_of_b.ptr_to([slot, 56]))
        T.ptx.ld.shared.v4.f32(b3_12, b3_13, b3_14, b3_15, slots.rows_of_b.ptr_to([slot, 60]))
        T.ptx.mul.f32(b3_0, b3_0, fed3)
        T.ptx.mul.f32(b3_1, b3_1, fed3)
        T.ptx.mul.f32(b3_2, b3_2, fed3)
        T.ptx.mul.f32(b3_3, b3_3, fed3)
        T.ptx.mul.f32(b3_4, b3_4, fed3)
        T.ptx.mul.f32(b3_5, b3_5, fed3)
        T.ptx.mul.f32(b3_6, b3_6, fed3)
        T.ptx.mul.f32(b3_7, b3_7, fed3)
        T.ptx.mul.f32(b3_8, b3_8, fed3)
        T.ptx.mul.f32(b3_9, b3_9, fed3)
        T.ptx.mul.f32(b3_10, b3_10, fed3)
        T.ptx.mul.f32(b3_11, b3_11, fed3)
        T.ptx.mul.f32(b3_12, b3_12, fed3)
        T.ptx.mul.f32(b3_13, b3_13, fed3)
        T.ptx.mul.f32(b3_14, b3_14, fed3)
        T.ptx.mul.f32(b3_15, b3_15, fed3)
        T.ptx.fma.rn.f32(h0, e3_0, h0, b3_0)
        T.ptx.fma.rn.f32(h1, e3_1, h1, b3_1)
        T.ptx.fma.rn.f32(h2, e3_2, h2, b3_2)
        T.ptx.fma.rn.f32(h3, e3_3, h3, b3_3)
        T.ptx.fma.rn.f32(h4, e3_4, h4, b3_4)
        T.ptx.fma.rn.f32(h5, e3_5, h5, b3_5)
        T.ptx.fma.rn.f32(h6, e3_6, h6, b3_6)
        T.ptx.fma.rn.f32(h7, e3_7, h7, b3_7)
        T.ptx.fma.rn.f32(h8, e3_8, h8, b3_8)
        T.ptx.fma.rn.f32(h9, e3_9, h9, b3_9)
        T.ptx.fma.rn.f32(h10, e3_10, h10, b3_10)
        T.ptx.fma.rn.f32(h11, e3_11, h11, b3_11)
        T.ptx.fma.rn.f32(h12, e3_12, h12, b3_12)
        T.ptx.fma.rn.f32(h13, e3_13, h13, b3_13)
        T.ptx.fma.rn.f32(h14, e3_14, h14, b3_14)
        T.ptx.fma.rn.f32(h15, e3_15, h15, b3_15)
        even3: T.float32  # two sums, so that an addition need not wait for the one before it
        odd3: T.float32
        T.ptx.mul.f32(even3, skipped, x3)
        T.ptx.mov.f32(odd3, T.float32(0.0))
        c3_0: T.float32
        c3_1: T.float32
        c3_2: T.float32
        c3_3: T.float32
        c3_4: T.float32
        c3_5: T.float32
        c3_6: T.float32
        c3_7: T.float32
        c3_8: T.float32
        c3_9: T.float32
        c3_10: T.float32
        c3_11: T.float32
        c3_12: T.float32
        c3_13: T.float32
        c3_14: T.float32
        c3_15: T.float32
        T.ptx.ld.shared.v4.f32(c3_0, c3_1, c3_2, c3_3, slots.rows_of_c.ptr_to([slot, 48]))
        T.ptx.ld.shared.v4.f32(c3_4, c3_5, c3_6, c3_7, slots.rows_of_c.ptr_to([slot, 52]))
        T.ptx.ld.shared.v4.f32(c3_8, c3_9, c3_10, c3_11, slots.rows_of_c.ptr_to([slot, 56]))
        T.ptx.ld.shared.v4.f32(c3_12, c3_13, c3_14, c3_15, slots.rows_of_c.ptr_to([slot, 60]))
        T.ptx.fma.rn.f32(even3, h0, c3_0, even3)
        T.ptx.fma.rn.f32(odd3, h1, c3_1, odd3)
        T.ptx.fma.rn.f32(even3, h2, c3_2, even3)
        T.ptx.fma.rn.f32(odd3, h3, c3_3, odd3)
        T.ptx.fma.rn.f32(even3, h4, c3_4, even3)
        T.ptx.fma.rn.f32(odd3, h5, c3_5, odd3)
        T.ptx.fma.rn.f32(even3, h6, c3_6, even3)
        T.ptx.fma.rn.f32(odd3, h7, c3_7, odd3)
        T.ptx.fma.rn.f32(even3, h8, c3_8, even3)
        T.ptx.fma.rn.f32(odd3, h9, c3_9, odd3)
        T.ptx.fma.rn.f32(even3, h10, c3_10, even3)
        T.ptx.fma.rn.f32(odd3, h11, c3_11, odd3)
        T.ptx.fma.rn.f32(even3, h12, c3_12, even3)
        T.ptx.fma.rn.f32(odd3, h13, c3_13, odd3)
        T.ptx.fma.rn.f32(even3, h14, c3_14, even3)
        T.ptx.fma.rn.f32(odd3, h15, c3_15, odd3)
        T.ptx.add.f32(even3, even3, odd3)
        gated3: T.float32
        gate(gated3, z3)
        T.ptx.mul.f32(even3, even3, gated3)
        y_bits3: T.uint16
        T.ptx.cvt.rn.bf16.f32(y_bits3, even3)
        T.ptx.st.global_.cs.b16(Y.ptr_to([row3, channel]), y_bits3, pred=mine)

        T.cuda.cta_sync()  # nobody reads this slot any more

    T.ptx.griddepcontrol.launch_dependents()
    T.ptx.st.global_.v4.f32(H.ptr_to([channel, 0]), h0, h1, h2, h3, pred=mine)
    T.ptx.st.global_.v4.f32(H.ptr_to([channel, 4]), h4, h5, h6, h7, pred=mine)
    T.ptx.st.global_.v4.f32(H.ptr_to([channel, 8]), h8, h9, h10, h11, pred=mine)
    T.ptx.st.global_.v4.f32(H.ptr_to([channel, 12]), h12, h13, h14, h15, pred=mine)
