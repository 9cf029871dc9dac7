# SPDX-License-Identifier: Apache-2.0
"""The K greatest of each row with their columns, in no order, by radix selection; a cluster of two blocks takes a row.

Bits of float32 are turned into numbers without sign that are ordered as the floats are. Then the greatest digit of 8
bits is found for which K numbers or more are at or above it, then the next digit among those that begin with that one,
and so on: four passes, each with 256 bins in shared memory, to which the bins of the other block are added. What is
above the number found is taken, and of those that equal it as many as are wanted still. Both blocks share the counters
of the first.

A thread keeps 32 numbers in registers of one element, so a row has 16,384 columns at most; absent ones are 0, which no
number but one of the NaNs is. One instruction a line, unrolled; radix_select.py has the general one.
"""

from __future__ import annotations

from tirx.script import tirx as T

THREADS = 256
BINS = 256
TOP_BIT = 1 << 31
ALL = 0xFFFFFFFF
FLIP = 0x1E  # a ^ (b | c)


@T.meta_class
class Selection:
    """Bins of four passes, and what each pass found."""

    def __init__(self, tid, warp, lane, rank):
        self.tid, self.warp, self.lane, self.rank = tid, warp, lane, rank
        self.bins = T.alloc_shared((4, BINS), "uint32", align=16)
        self.sums = T.alloc_shared((4, THREADS // 32), "uint32")
        self.found = T.alloc_shared((4, 2), "uint32")  # the digit; how many are wanted of those that have it
        self.counters = T.alloc_shared((2,), "uint32")  # how many were taken: above the number found; equal to it

    @T.inline
    def clear(self):
        nothing: T.uint32
        T.ptx.mov.u32(nothing, T.uint32(0))
        T.ptx.st.shared.v4.u32(
            self.bins.ptr_to([self.tid // 64, self.tid % 64 * 4]), nothing, nothing, nothing, nothing
        )
        T.ptx.st.shared.u32(self.counters.ptr_to([self.tid % 2]), nothing, pred=self.tid < 2)
        T.ptx.barrier.cluster.arrive.release.aligned()
        T.ptx.barrier.cluster.wait.acquire.aligned()

    @T.inline
    def choose(self, number, wanted, prefix):
        """Finds the digit of pass `number`: wanted becomes how many are needed of it, prefix gets it at its end."""
        T.ptx.barrier.cluster.arrive.release.aligned()
        T.ptx.barrier.cluster.wait.acquire.aligned()
        here: T.uint32 = T.cuda.cvta_generic_to_shared(self.bins.ptr_to([number, BINS - 1 - self.tid]))
        there: T.uint32
        many: T.uint32
        others: T.uint32
        T.ptx.mapa.shared__cluster.u32(there, here, T.cast(1 - self.rank, "uint32"))
        T.ptx.ld.shared.u32(many, here)
        T.ptx.ld.shared__cluster.u32(others, there)
        T.ptx.add.u32(many, many, others)
        upto: T.uint32  # numbers in this bin and in those above it
        got: T.uint32
        valid: T.uint32
        T.ptx.mov.u32(upto, many)
        for i in T.unroll(5):
            T.ptx.shfl.sync.up.b32(got, T.ptx.pred(valid), upto, T.uint32(1 << i), T.uint32(0), T.uint32(ALL))
            T.ptx.add.u32(upto, upto, got, pred=valid != 0, preserve_dst=True)
        T.ptx.st.shared.u32(self.sums.ptr_to([number, self.warp]), upto, pred=self.lane == 31)
        T.ptx.bar.sync(0)
        before: T.uint32
        T.ptx.mov.u32(before, T.uint32(0))
        T.ptx.ld.shared.u32(
            before, self.sums.ptr_to([number, self.lane % 8]), pred=self.lane < self.warp, preserve_dst=True
        )
        T.ptx.redux.sync.add.u32(before, before, T.uint32(ALL))
        T.ptx.add.u32(upto, upto, before)
        above: T.uint32
        reached: T.uint32
        T.ptx.sub.u32(above, upto, many)
        T.ptx.setp.ge.u32(reached, upto, wanted)
        T.ptx.setp.lt.and_.u32(reached, above, wanted, T.ptx.pred(reached))
        T.ptx.sub.u32(above, wanted, above)
        T.ptx.st.shared.v2.u32(
            self.found.ptr_to([number, 0]), T.cast(BINS - 1 - self.tid, "uint32"), above, pred=reached != 0
        )
        T.ptx.bar.sync(0)
        digit: T.uint32
        T.ptx.ld.shared.v2.u32(digit, wanted, self.found.ptr_to([number, 0]))
        T.ptx.mad.lo.u32(prefix, prefix, T.uint32(BINS), digit)


@T.inline
def fetch(source, there, *bits):
    """Four numbers of a row, where they are in it; nobody reads them again."""
    T.ptx["ld.global.nc.L1::no_allocate.v4.s32"](*bits, source, pred=there, preserve_dst=True)


@T.inline
def take(picked, bits, column, counter, first, limit, lane, row, values, columns):
    """Stores a picked number, if it is among the first `limit` to come; one atomic operation a warp."""
    votes: T.uint32
    T.ptx.vote.sync.ballot.b32(votes, T.ptx.pred(picked), T.uint32(ALL))
    if votes != 0:
        many: T.uint32
        place: T.uint32
        below: T.uint32
        T.ptx.popc.b32(many, votes)
        T.ptx.mov.u32(place, T.uint32(0))
        T.ptx["atom.relaxed.cluster.shared::cluster.add.u32"](place, counter, many, pred=lane == 0, preserve_dst=True)
        T.ptx.shfl.sync.idx.b32(place, place, T.uint32(0), T.uint32(31), T.uint32(ALL))
        T.ptx.bmsk.clamp.b32(below, T.int32(0), lane)
        T.ptx.and_.b32(below, below, votes)
        T.ptx.popc.b32(below, below)
        T.ptx.add.u32(place, place, below)
        stored: T.uint32
        T.ptx.setp.lt.and_.u32(stored, place, limit, T.ptx.pred(picked))
        if stored != 0:
            at: T.int32 = T.cast(first + place, "int32")
            T.ptx.st.global_.cs.b32(values.ptr_to([row, at]), bits)
            T.ptx.st.global_.cs.s32(columns.ptr_to([row, at]), column)


@T.prim_func
def unrolled_topk(x: T.handle, values: T.handle, columns: T.handle):
    rows, quads, K = T.int32(), T.int32(), T.int32()
    X = T.match_buffer(x, (rows, quads * 4), "float32", align=16)
    V = T.match_buffer(values, (rows, K), "float32")
    I = T.match_buffer(columns, (rows, K), "int32")
    assert quads <= 4096, "a row has 16384 columns at most"
    assert K <= quads * 4, "a row has fewer than K columns"
    T.device_entry()
    block = T.cta_id([rows * 2])
    rank = T.cta_id_in_cluster([2])
    warp = T.warp_id([THREADS // 32])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])
    row: T.int32 = block // 2
    quad: T.int32 = rank * (8 * THREADS) + tid  # the first of this thread's vectors of four
    selection = Selection(tid, warp, lane, rank)
    selection.clear()
    T.ptx.griddepcontrol.wait()

    # all bits set: the number 0
    bits_00: T.int32 = -1
    bits_01: T.int32 = -1
    bits_02: T.int32 = -1
    bits_03: T.int32 = -1
    bits_04: T.int32 = -1
    bits_05: T.int32 = -1
    bits_06: T.int32 = -1
    bits_07: T.int32 = -1
    bits_08: T.int32 = -1
    bits_09: T.int32 = -1
    bits_10: T.int32 = -1
    bits_11: T.int32 = -1
    bits_12: T.int32 = -1
    bits_13: T.int32 = -1
    bits_14: T.int32 = -1
    bits_15: T.int32 = -1
    bits_16: T.int32 = -1
    bits_17: T.int32 = -1
    bits_18: T.int32 = -1
    bits_19: T.int32 = -1
    bits_20: T.int32 = -1
    bits_21: T.int32 = -1
    bits_22: T.int32 = -1
    bits_23: T.int32 = -1
    bits_24: T.int32 = -1
    bits_25: T.int32 = -1
    bits_26: T.int32 = -1
    bits_27: T.int32 = -1
    bits_28: T.int32 = -1
    bits_29: T.int32 = -1
    bits_30: T.int32 = -1
    bits_31: T.int32 = -1
    key_00: T.uint32
    key_01: T.uint32
    key_02: T.uint32
    key_03: T.uint32
    key_04: T.uint32
    key_05: T.uint32
    key_06: T.uint32
    key_07: T.uint32
    key_08: T.uint32
    key_09: T.uint32
    key_10: T.uint32
    key_11: T.uint32
    key_12: T.uint32
    key_13: T.uint32
    key_14: T.uint32
    key_15: T.uint32
    key_16: T.uint32
    key_17: T.uint32
    key_18: T.uint32
    key_19: T.uint32
    key_20: T.uint32
    key_21: T.uint32
    key_22: T.uint32
    key_23: T.uint32
    key_24: T.uint32
    key_25: T.uint32
    key_26: T.uint32
    key_27: T.uint32
    key_28: T.uint32
    key_29: T.uint32
    key_30: T.uint32
    key_31: T.uint32
    sign_00: T.int32
    sign_01: T.int32
    sign_02: T.int32
    sign_03: T.int32
    sign_04: T.int32
    sign_05: T.int32
    sign_06: T.int32
    sign_07: T.int32
    sign_08: T.int32
    sign_09: T.int32
    sign_10: T.int32
    sign_11: T.int32
    sign_12: T.int32
    sign_13: T.int32
    sign_14: T.int32
    sign_15: T.int32
    sign_16: T.int32
    sign_17: T.int32
    sign_18: T.int32
    sign_19: T.int32
    sign_20: T.int32
    sign_21: T.int32
    sign_22: T.int32
    sign_23: T.int32
    sign_24: T.int32
    sign_25: T.int32
    sign_26: T.int32
    sign_27: T.int32
    sign_28: T.int32
    sign_29: T.int32
    sign_30: T.int32
    sign_31: T.int32
    digit_00: T.uint32
    digit_01: T.uint32
    digit_02: T.uint32
    digit_03: T.uint32
    digit_04: T.uint32
    digit_05: T.uint32
    digit_06: T.uint32
    digit_07: T.uint32
    digit_08: T.uint32
    digit_09: T.uint32
    digit_10: T.uint32
    digit_11: T.uint32
    digit_12: T.uint32
    digit_13: T.uint32
    digit_14: T.uint32
    digit_15: T.uint32
    digit_16: T.uint32
    digit_17: T.uint32
    digit_18: T.uint32
    digit_19: T.uint32
    digit_20: T.uint32
    digit_21: T.uint32
    digit_22: T.uint32
    digit_23: T.uint32
    digit_24: T.uint32
    digit_25: T.uint32
    digit_26: T.uint32
    digit_27: T.uint32
    digit_28: T.uint32
    digit_29: T.uint32
    digit_30: T.uint32
    digit_31: T.uint32
    same_00: T.uint32
    same_01: T.uint32
    same_02: T.uint32
    same_03: T.uint32
    same_04: T.uint32
    same_05: T.uint32
    same_06: T.uint32
    same_07: T.uint32
    same_08: T.uint32
    same_09: T.uint32
    same_10: T.uint32
    same_11: T.uint32
    same_12: T.uint32
    same_13: T.uint32
    same_14: T.uint32
    same_15: T.uint32
    same_16: T.uint32
    same_17: T.uint32
    same_18: T.uint32
    same_19: T.uint32
    same_20: T.uint32
    same_21: T.uint32
    same_22: T.uint32
    same_23: T.uint32
    same_24: T.uint32
    same_25: T.uint32
    same_26: T.uint32
    same_27: T.uint32
    same_28: T.uint32
    same_29: T.uint32
    same_30: T.uint32
    same_31: T.uint32

    there_0: T.bool = quad + 0 < quads
    fetch(X.ptr_to([row, (quad + 0) * 4]), there_0, bits_00, bits_01, bits_02, bits_03)
    there_1: T.bool = quad + 256 < quads
    fetch(X.ptr_to([row, (quad + 256) * 4]), there_1, bits_04, bits_05, bits_06, bits_07)
    there_2: T.bool = quad + 512 < quads
    fetch(X.ptr_to([row, (quad + 512) * 4]), there_2, bits_08, bits_09, bits_10, bits_11)
    there_3: T.bool = quad + 768 < quads
    fetch(X.ptr_to([row, (quad + 768) * 4]), there_3, bits_12, bits_13, bits_14, bits_15)
    there_4: T.bool = quad + 1024 < quads
    fetch(X.ptr_to([row, (quad + 1024) * 4]), there_4, bits_16, bits_17, bits_18, bits_19)
    there_5: T.bool = quad + 1280 < quads
    fetch(X.ptr_to([row, (quad + 1280) * 4]), there_5, bits_20, bits_21, bits_22, bits_23)
    there_6: T.bool = quad + 1536 < quads
    fetch(X.ptr_to([row, (quad + 1536) * 4]), there_6, bits_24, bits_25, bits_26, bits_27)
    there_7: T.bool = quad + 1792 < quads
    fetch(X.ptr_to([row, (quad + 1792) * 4]), there_7, bits_28, bits_29, bits_30, bits_31)
    T.ptx.griddepcontrol.launch_dependents()

    # ordered as the floats are: negative ones with all bits inverted, others with the top bit set
    T.ptx.shr.s32(sign_00, bits_00, T.uint32(31))
    T.ptx.shr.s32(sign_01, bits_01, T.uint32(31))
    T.ptx.shr.s32(sign_02, bits_02, T.uint32(31))
    T.ptx.shr.s32(sign_03, bits_03, T.uint32(31))
    T.ptx.shr.s32(sign_04, bits_04, T.uint32(31))
    T.ptx.shr.s32(sign_05, bits_05, T.uint32(31))
    T.ptx.shr.s32(sign_06, bits_06, T.uint32(31))
    T.ptx.shr.s32(sign_07, bits_07, T.uint32(31))
    T.ptx.shr.s32(sign_08, bits_08, T.uint32(31))
    T.ptx.shr.s32(sign_09, bits_09, T.uint32(31))
    T.ptx.shr.s32(sign_10, bits_10, T.uint32(31))
    T.ptx.shr.s32(sign_11, bits_11, T.uint32(31))
    T.ptx.shr.s32(sign_12, bits_12, T.uint32(31))
    T.ptx.shr.s32(sign_13, bits_13, T.uint32(31))
    T.ptx.shr.s32(sign_14, bits_14, T.uint32(31))
    T.ptx.shr.s32(sign_15, bits_15, T.uint32(31))
    T.ptx.shr.s32(sign_16, bits_16, T.uint32(31))
    T.ptx.shr.s32(sign_17, bits_17, T.uint32(31))
    T.ptx.shr.s32(sign_18, bits_18, T.uint32(31))
    T.ptx.shr.s32(sign_19, bits_19, T.uint32(31))
    T.ptx.shr.s32(sign_20, bits_20, T.uint32(31))
    T.ptx.shr.s32(sign_21, bits_21, T.uint32(31))
    T.ptx.shr.s32(sign_22, bits_22, T.uint32(31))
    T.ptx.shr.s32(sign_23, bits_23, T.uint32(31))
    T.ptx.shr.s32(sign_24, bits_24, T.uint32(31))
    T.ptx.shr.s32(sign_25, bits_25, T.uint32(31))
    T.ptx.shr.s32(sign_26, bits_26, T.uint32(31))
    T.ptx.shr.s32(sign_27, bits_27, T.uint32(31))
    T.ptx.shr.s32(sign_28, bits_28, T.uint32(31))
    T.ptx.shr.s32(sign_29, bits_29, T.uint32(31))
    T.ptx.shr.s32(sign_30, bits_30, T.uint32(31))
    T.ptx.shr.s32(sign_31, bits_31, T.uint32(31))
    T.ptx.lop3.b32(key_00, bits_00, sign_00, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_01, bits_01, sign_01, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_02, bits_02, sign_02, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_03, bits_03, sign_03, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_04, bits_04, sign_04, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_05, bits_05, sign_05, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_06, bits_06, sign_06, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_07, bits_07, sign_07, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_08, bits_08, sign_08, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_09, bits_09, sign_09, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_10, bits_10, sign_10, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_11, bits_11, sign_11, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_12, bits_12, sign_12, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_13, bits_13, sign_13, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_14, bits_14, sign_14, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_15, bits_15, sign_15, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_16, bits_16, sign_16, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_17, bits_17, sign_17, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_18, bits_18, sign_18, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_19, bits_19, sign_19, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_20, bits_20, sign_20, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_21, bits_21, sign_21, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_22, bits_22, sign_22, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_23, bits_23, sign_23, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_24, bits_24, sign_24, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_25, bits_25, sign_25, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_26, bits_26, sign_26, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_27, bits_27, sign_27, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_28, bits_28, sign_28, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_29, bits_29, sign_29, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_30, bits_30, sign_30, T.uint32(TOP_BIT), FLIP)
    T.ptx.lop3.b32(key_31, bits_31, sign_31, T.uint32(TOP_BIT), FLIP)

    wanted: T.uint32 = T.cast(K, "uint32")
    prefix: T.uint32 = 0

    # ---- pass 0: bits 24 to 31
    T.ptx.bfe.u32(digit_00, key_00, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_01, key_01, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_02, key_02, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_03, key_03, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_04, key_04, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_05, key_05, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_06, key_06, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_07, key_07, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_08, key_08, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_09, key_09, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_10, key_10, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_11, key_11, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_12, key_12, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_13, key_13, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_14, key_14, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_15, key_15, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_16, key_16, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_17, key_17, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_18, key_18, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_19, key_19, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_20, key_20, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_21, key_21, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_22, key_22, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_23, key_23, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_24, key_24, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_25, key_25, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_26, key_26, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_27, key_27, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_28, key_28, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_29, key_29, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_30, key_30, T.uint32(24), T.uint32(8))
    T.ptx.bfe.u32(digit_31, key_31, T.uint32(24), T.uint32(8))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_00]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_01]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_02]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_03]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_04]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_05]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_06]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_07]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_08]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_09]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_10]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_11]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_12]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_13]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_14]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_15]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_16]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_17]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_18]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_19]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_20]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_21]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_22]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_23]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_24]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_25]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_26]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_27]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_28]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_29]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_30]), T.uint32(1))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([0, digit_31]), T.uint32(1))
    selection.choose(0, wanted, prefix)

    # ---- pass 1: bits 16 to 23
    T.ptx.shr.u32(digit_00, key_00, T.uint32(24))
    T.ptx.shr.u32(digit_01, key_01, T.uint32(24))
    T.ptx.shr.u32(digit_02, key_02, T.uint32(24))
    T.ptx.shr.u32(digit_03, key_03, T.uint32(24))
    T.ptx.shr.u32(digit_04, key_04, T.uint32(24))
    T.ptx.shr.u32(digit_05, key_05, T.uint32(24))
    T.ptx.shr.u32(digit_06, key_06, T.uint32(24))
    T.ptx.shr.u32(digit_07, key_07, T.uint32(24))
    T.ptx.shr.u32(digit_08, key_08, T.uint32(24))
    T.ptx.shr.u32(digit_09, key_09, T.uint32(24))
    T.ptx.shr.u32(digit_10, key_10, T.uint32(24))
    T.ptx.shr.u32(digit_11, key_11, T.uint32(24))
    T.ptx.shr.u32(digit_12, key_12, T.uint32(24))
    T.ptx.shr.u32(digit_13, key_13, T.uint32(24))
    T.ptx.shr.u32(digit_14, key_14, T.uint32(24))
    T.ptx.shr.u32(digit_15, key_15, T.uint32(24))
    T.ptx.shr.u32(digit_16, key_16, T.uint32(24))
    T.ptx.shr.u32(digit_17, key_17, T.uint32(24))
    T.ptx.shr.u32(digit_18, key_18, T.uint32(24))
    T.ptx.shr.u32(digit_19, key_19, T.uint32(24))
    T.ptx.shr.u32(digit_20, key_20, T.uint32(24))
    T.ptx.shr.u32(digit_21, key_21, T.uint32(24))
    T.ptx.shr.u32(digit_22, key_22, T.uint32(24))
    T.ptx.shr.u32(digit_23, key_23, T.uint32(24))
    T.ptx.shr.u32(digit_24, key_24, T.uint32(24))
    T.ptx.shr.u32(digit_25, key_25, T.uint32(24))
    T.ptx.shr.u32(digit_26, key_26, T.uint32(24))
    T.ptx.shr.u32(digit_27, key_27, T.uint32(24))
    T.ptx.shr.u32(digit_28, key_28, T.uint32(24))
    T.ptx.shr.u32(digit_29, key_29, T.uint32(24))
    T.ptx.shr.u32(digit_30, key_30, T.uint32(24))
    T.ptx.shr.u32(digit_31, key_31, T.uint32(24))
    T.ptx.setp.eq.u32(same_00, digit_00, prefix)
    T.ptx.setp.eq.u32(same_01, digit_01, prefix)
    T.ptx.setp.eq.u32(same_02, digit_02, prefix)
    T.ptx.setp.eq.u32(same_03, digit_03, prefix)
    T.ptx.setp.eq.u32(same_04, digit_04, prefix)
    T.ptx.setp.eq.u32(same_05, digit_05, prefix)
    T.ptx.setp.eq.u32(same_06, digit_06, prefix)
    T.ptx.setp.eq.u32(same_07, digit_07, prefix)
    T.ptx.setp.eq.u32(same_08, digit_08, prefix)
    T.ptx.setp.eq.u32(same_09, digit_09, prefix)
    T.ptx.setp.eq.u32(same_10, digit_10, prefix)
    T.ptx.setp.eq.u32(same_11, digit_11, prefix)
    T.ptx.setp.eq.u32(same_12, digit_12, prefix)
    T.ptx.setp.eq.u32(same_13, digit_13, prefix)
    T.ptx.setp.eq.u32(same_14, digit_14, prefix)
    T.ptx.setp.eq.u32(same_15, digit_15, prefix)
    T.ptx.setp.eq.u32(same_16, digit_16, prefix)
    T.ptx.setp.eq.u32(same_17, digit_17, prefix)
    T.ptx.setp.eq.u32(same_18, digit_18, prefix)
    T.ptx.setp.eq.u32(same_19, digit_19, prefix)
    T.ptx.setp.eq.u32(same_20, digit_20, prefix)
    T.ptx.setp.eq.u32(same_21, digit_21, prefix)
    T.ptx.setp.eq.u32(same_22, digit_22, prefix)
    T.ptx.setp.eq.u32(same_23, digit_23, prefix)
    T.ptx.setp.eq.u32(same_24, digit_24, prefix)
    T.ptx.setp.eq.u32(same_25, digit_25, prefix)
    T.ptx.setp.eq.u32(same_26, digit_26, prefix)
    T.ptx.setp.eq.u32(same_27, digit_27, prefix)
    T.ptx.setp.eq.u32(same_28, digit_28, prefix)
    T.ptx.setp.eq.u32(same_29, digit_29, prefix)
    T.ptx.setp.eq.u32(same_30, digit_30, prefix)
    T.ptx.setp.eq.u32(same_31, digit_31, prefix)
    T.ptx.bfe.u32(digit_00, key_00, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_01, key_01, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_02, key_02, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_03, key_03, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_04, key_04, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_05, key_05, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_06, key_06, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_07, key_07, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_08, key_08, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_09, key_09, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_10, key_10, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_11, key_11, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_12, key_12, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_13, key_13, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_14, key_14, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_15, key_15, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_16, key_16, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_17, key_17, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_18, key_18, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_19, key_19, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_20, key_20, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_21, key_21, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_22, key_22, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_23, key_23, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_24, key_24, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_25, key_25, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_26, key_26, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_27, key_27, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_28, key_28, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_29, key_29, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_30, key_30, T.uint32(16), T.uint32(8))
    T.ptx.bfe.u32(digit_31, key_31, T.uint32(16), T.uint32(8))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_00]), T.uint32(1), pred=same_00 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_01]), T.uint32(1), pred=same_01 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_02]), T.uint32(1), pred=same_02 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_03]), T.uint32(1), pred=same_03 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_04]), T.uint32(1), pred=same_04 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_05]), T.uint32(1), pred=same_05 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_06]), T.uint32(1), pred=same_06 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_07]), T.uint32(1), pred=same_07 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_08]), T.uint32(1), pred=same_08 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_09]), T.uint32(1), pred=same_09 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_10]), T.uint32(1), pred=same_10 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_11]), T.uint32(1), pred=same_11 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_12]), T.uint32(1), pred=same_12 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_13]), T.uint32(1), pred=same_13 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_14]), T.uint32(1), pred=same_14 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_15]), T.uint32(1), pred=same_15 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_16]), T.uint32(1), pred=same_16 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_17]), T.uint32(1), pred=same_17 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_18]), T.uint32(1), pred=same_18 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_19]), T.uint32(1), pred=same_19 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_20]), T.uint32(1), pred=same_20 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_21]), T.uint32(1), pred=same_21 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_22]), T.uint32(1), pred=same_22 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_23]), T.uint32(1), pred=same_23 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_24]), T.uint32(1), pred=same_24 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_25]), T.uint32(1), pred=same_25 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_26]), T.uint32(1), pred=same_26 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_27]), T.uint32(1), pred=same_27 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_28]), T.uint32(1), pred=same_28 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_29]), T.uint32(1), pred=same_29 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_30]), T.uint32(1), pred=same_30 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([1, digit_31]), T.uint32(1), pred=same_31 != 0)
    selection.choose(1, wanted, prefix)

    # ---- pass 2: bits 8 to 15
    T.ptx.shr.u32(digit_00, key_00, T.uint32(16))
    T.ptx.shr.u32(digit_01, key_01, T.uint32(16))
    T.ptx.shr.u32(digit_02, key_02, T.uint32(16))
    T.ptx.shr.u32(digit_03, key_03, T.uint32(16))
    T.ptx.shr.u32(digit_04, key_04, T.uint32(16))
    T.ptx.shr.u32(digit_05, key_05, T.uint32(16))
    T.ptx.shr.u32(digit_06, key_06, T.uint32(16))
    T.ptx.shr.u32(digit_07, key_07, T.uint32(16))
    T.ptx.shr.u32(digit_08, key_08, T.uint32(16))
    T.ptx.shr.u32(digit_09, key_09, T.uint32(16))
    T.ptx.shr.u32(digit_10, key_10, T.uint32(16))
    T.ptx.shr.u32(digit_11, key_11, T.uint32(16))
    T.ptx.shr.u32(digit_12, key_12, T.uint32(16))
    T.ptx.shr.u32(digit_13, key_13, T.uint32(16))
    T.ptx.shr.u32(digit_14, key_14, T.uint32(16))
    T.ptx.shr.u32(digit_15, key_15, T.uint32(16))
    T.ptx.shr.u32(digit_16, key_16, T.uint32(16))
    T.ptx.shr.u32(digit_17, key_17, T.uint32(16))
    T.ptx.shr.u32(digit_18, key_18, T.uint32(16))
    T.ptx.shr.u32(digit_19, key_19, T.uint32(16))
    T.ptx.shr.u32(digit_20, key_20, T.uint32(16))
    T.ptx.shr.u32(digit_21, key_21, T.uint32(16))
    T.ptx.shr.u32(digit_22, key_22, T.uint32(16))
    T.ptx.shr.u32(digit_23, key_23, T.uint32(16))
    T.ptx.shr.u32(digit_24, key_24, T.uint32(16))
    T.ptx.shr.u32(digit_25, key_25, T.uint32(16))
    T.ptx.shr.u32(digit_26, key_26, T.uint32(16))
    T.ptx.shr.u32(digit_27, key_27, T.uint32(16))
    T.ptx.shr.u32(digit_28, key_28, T.uint32(16))
    T.ptx.shr.u32(digit_29, key_29, T.uint32(16))
    T.ptx.shr.u32(digit_30, key_30, T.uint32(16))
    T.ptx.shr.u32(digit_31, key_31, T.uint32(16))
    T.ptx.setp.eq.and_.u32(same_00, digit_00, prefix, T.ptx.pred(same_00))
    T.ptx.setp.eq.and_.u32(same_01, digit_01, prefix, T.ptx.pred(same_01))
    T.ptx.setp.eq.and_.u32(same_02, digit_02, prefix, T.ptx.pred(same_02))
    T.ptx.setp.eq.and_.u32(same_03, digit_03, prefix, T.ptx.pred(same_03))
    T.ptx.setp.eq.and_.u32(same_04, digit_04, prefix, T.ptx.pred(same_04))
    T.ptx.setp.eq.and_.u32(same_05, digit_05, prefix, T.ptx.pred(same_05))
    T.ptx.setp.eq.and_.u32(same_06, digit_06, prefix, T.ptx.pred(same_06))
    T.ptx.setp.eq.and_.u32(same_07, digit_07, prefix, T.ptx.pred(same_07))
    T.ptx.setp.eq.and_.u32(same_08, digit_08, prefix, T.ptx.pred(same_08))
    T.ptx.setp.eq.and_.u32(same_09, digit_09, prefix, T.ptx.pred(same_09))
    T.ptx.setp.eq.and_.u32(same_10, digit_10, prefix, T.ptx.pred(same_10))
    T.ptx.setp.eq.and_.u32(same_11, digit_11, prefix, T.ptx.pred(same_11))
    T.ptx.setp.eq.and_.u32(same_12, digit_12, prefix, T.ptx.pred(same_12))
    T.ptx.setp.eq.and_.u32(same_13, digit_13, prefix, T.ptx.pred(same_13))
    T.ptx.setp.eq.and_.u32(same_14, digit_14, prefix, T.ptx.pred(same_14))
    T.ptx.setp.eq.and_.u32(same_15, digit_15, prefix, T.ptx.pred(same_15))
    T.ptx.setp.eq.and_.u32(same_16, digit_16, prefix, T.ptx.pred(same_16))
    T.ptx.setp.eq.and_.u32(same_17, digit_17, prefix, T.ptx.pred(same_17))
    T.ptx.setp.eq.and_.u32(same_18, digit_18, prefix, T.ptx.pred(same_18))
    T.ptx.setp.eq.and_.u32(same_19, digit_19, prefix, T.ptx.pred(same_19))
    T.ptx.setp.eq.and_.u32(same_20, digit_20, prefix, T.ptx.pred(same_20))
    T.ptx.setp.eq.and_.u32(same_21, digit_21, prefix, T.ptx.pred(same_21))
    T.ptx.setp.eq.and_.u32(same_22, digit_22, prefix, T.ptx.pred(same_22))
    T.ptx.setp.eq.and_.u32(same_23, digit_23, prefix, T.ptx.pred(same_23))
    T.ptx.setp.eq.and_.u32(same_24, digit_24, prefix, T.ptx.pred(same_24))
    T.ptx.setp.eq.and_.u32(same_25, digit_25, prefix, T.ptx.pred(same_25))
    T.ptx.setp.eq.and_.u32(same_26, digit_26, prefix, T.ptx.pred(same_26))
    T.ptx.setp.eq.and_.u32(same_27, digit_27, prefix, T.ptx.pred(same_27))
    T.ptx.setp.eq.and_.u32(same_28, digit_28, prefix, T.ptx.pred(same_28))
    T.ptx.setp.eq.and_.u32(same_29, digit_29, prefix, T.ptx.pred(same_29))
    T.ptx.setp.eq.and_.u32(same_30, digit_30, prefix, T.ptx.pred(same_30))
    T.ptx.setp.eq.and_.u32(same_31, digit_31, prefix, T.ptx.pred(same_31))
    T.ptx.bfe.u32(digit_00, key_00, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_01, key_01, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_02, key_02, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_03, key_03, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_04, key_04, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_05, key_05, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_06, key_06, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_07, key_07, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_08, key_08, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_09, key_09, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_10, key_10, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_11, key_11, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_12, key_12, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_13, key_13, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_14, key_14, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_15, key_15, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_16, key_16, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_17, key_17, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_18, key_18, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_19, key_19, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_20, key_20, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_21, key_21, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_22, key_22, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_23, key_23, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_24, key_24, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_25, key_25, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_26, key_26, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_27, key_27, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_28, key_28, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_29, key_29, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_30, key_30, T.uint32(8), T.uint32(8))
    T.ptx.bfe.u32(digit_31, key_31, T.uint32(8), T.uint32(8))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_00]), T.uint32(1), pred=same_00 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_01]), T.uint32(1), pred=same_01 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_02]), T.uint32(1), pred=same_02 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_03]), T.uint32(1), pred=same_03 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_04]), T.uint32(1), pred=same_04 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_05]), T.uint32(1), pred=same_05 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_06]), T.uint32(1), pred=same_06 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_07]), T.uint32(1), pred=same_07 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_08]), T.uint32(1), pred=same_08 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_09]), T.uint32(1), pred=same_09 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_10]), T.uint32(1), pred=same_10 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_11]), T.uint32(1), pred=same_11 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_12]), T.uint32(1), pred=same_12 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_13]), T.uint32(1), pred=same_13 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_14]), T.uint32(1), pred=same_14 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_15]), T.uint32(1), pred=same_15 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_16]), T.uint32(1), pred=same_16 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_17]), T.uint32(1), pred=same_17 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_18]), T.uint32(1), pred=same_18 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_19]), T.uint32(1), pred=same_19 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_20]), T.uint32(1), pred=same_20 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_21]), T.uint32(1), pred=same_21 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_22]), T.uint32(1), pred=same_22 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_23]), T.uint32(1), pred=same_23 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_24]), T.uint32(1), pred=same_24 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_25]), T.uint32(1), pred=same_25 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_26]), T.uint32(1), pred=same_26 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_27]), T.uint32(1), pred=same_27 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_28]), T.uint32(1), pred=same_28 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_29]), T.uint32(1), pred=same_29 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_30]), T.uint32(1), pred=same_30 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([2, digit_31]), T.uint32(1), pred=same_31 != 0)
    selection.choose(2, wanted, prefix)

    # ---- pass 3: bits 0 to 7
    T.ptx.shr.u32(digit_00, key_00, T.uint32(8))
    T.ptx.shr.u32(digit_01, key_01, T.uint32(8))
    T.ptx.shr.u32(digit_02, key_02, T.uint32(8))
    T.ptx.shr.u32(digit_03, key_03, T.uint32(8))
    T.ptx.shr.u32(digit_04, key_04, T.uint32(8))
    T.ptx.shr.u32(digit_05, key_05, T.uint32(8))
    T.ptx.shr.u32(digit_06, key_06, T.uint32(8))
    T.ptx.shr.u32(digit_07, key_07, T.uint32(8))
    T.ptx.shr.u32(digit_08, key_08, T.uint32(8))
    T.ptx.shr.u32(digit_09, key_09, T.uint32(8))
    T.ptx.shr.u32(digit_10, key_10, T.uint32(8))
    T.ptx.shr.u32(digit_11, key_11, T.uint32(8))
    T.ptx.shr.u32(digit_12, key_12, T.uint32(8))
    T.ptx.shr.u32(digit_13, key_13, T.uint32(8))
    T.ptx.shr.u32(digit_14, key_14, T.uint32(8))
    T.ptx.shr.u32(digit_15, key_15, T.uint32(8))
    T.ptx.shr.u32(digit_16, key_16, T.uint32(8))
    T.ptx.shr.u32(digit_17, key_17, T.uint32(8))
    T.ptx.shr.u32(digit_18, key_18, T.uint32(8))
    T.ptx.shr.u32(digit_19, key_19, T.uint32(8))
    T.ptx.shr.u32(digit_20, key_20, T.uint32(8))
    T.ptx.shr.u32(digit_21, key_21, T.uint32(8))
    T.ptx.shr.u32(digit_22, key_22, T.uint32(8))
    T.ptx.shr.u32(digit_23, key_23, T.uint32(8))
    T.ptx.shr.u32(digit_24, key_24, T.uint32(8))
    T.ptx.shr.u32(digit_25, key_25, T.uint32(8))
    T.ptx.shr.u32(digit_26, key_26, T.uint32(8))
    T.ptx.shr.u32(digit_27, key_27, T.uint32(8))
    T.ptx.shr.u32(digit_28, key_28, T.uint32(8))
    T.ptx.shr.u32(digit_29, key_29, T.uint32(8))
    T.ptx.shr.u32(digit_30, key_30, T.uint32(8))
    T.ptx.shr.u32(digit_31, key_31, T.uint32(8))
    T.ptx.setp.eq.u32(same_00, prefix, digit_00)
    T.ptx.setp.eq.u32(same_01, prefix, digit_01)
    T.ptx.setp.eq.u32(same_02, prefix, digit_02)
    T.ptx.setp.eq.u32(same_03, prefix, digit_03)
    T.ptx.setp.eq.u32(same_04, prefix, digit_04)
    T.ptx.setp.eq.u32(same_05, prefix, digit_05)
    T.ptx.setp.eq.u32(same_06, prefix, digit_06)
    T.ptx.setp.eq.u32(same_07, prefix, digit_07)
    T.ptx.setp.eq.u32(same_08, prefix, digit_08)
    T.ptx.setp.eq.u32(same_09, prefix, digit_09)
    T.ptx.setp.eq.u32(same_10, prefix, digit_10)
    T.ptx.setp.eq.u32(same_11, prefix, digit_11)
    T.ptx.setp.eq.u32(same_12, prefix, digit_12)
    T.ptx.setp.eq.u32(same_13, prefix, digit_13)
    T.ptx.setp.eq.u32(same_14, prefix, digit_14)
    T.ptx.setp.eq.u32(same_15, prefix, digit_15)
    T.ptx.setp.eq.u32(same_16, prefix, digit_16)
    T.ptx.setp.eq.u32(same_17, prefix, digit_17)
    T.ptx.setp.eq.u32(same_18, prefix, digit_18)
    T.ptx.setp.eq.u32(same_19, prefix, digit_19)
    T.ptx.setp.eq.u32(same_20, prefix, digit_20)
    T.ptx.setp.eq.u32(same_21, prefix, digit_21)
    T.ptx.setp.eq.u32(same_22, prefix, digit_22)
    T.ptx.setp.eq.u32(same_23, prefix, digit_23)
    T.ptx.setp.eq.u32(same_24, prefix, digit_24)
    T.ptx.setp.eq.u32(same_25, prefix, digit_25)
    T.ptx.setp.eq.u32(same_26, prefix, digit_26)
    T.ptx.setp.eq.u32(same_27, prefix, digit_27)
    T.ptx.setp.eq.u32(same_28, prefix, digit_28)
    T.ptx.setp.eq.u32(same_29, prefix, digit_29)
    T.ptx.setp.eq.u32(same_30, prefix, digit_30)
    T.ptx.setp.eq.u32(same_31, prefix, digit_31)
    T.ptx.bfe.u32(digit_00, key_00, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_01, key_01, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_02, key_02, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_03, key_03, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_04, key_04, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_05, key_05, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_06, key_06, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_07, key_07, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_08, key_08, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_09, key_09, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_10, key_10, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_11, key_11, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_12, key_12, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_13, key_13, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_14, key_14, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_15, key_15, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_16, key_16, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_17, key_17, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_18, key_18, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_19, key_19, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_20, key_20, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_21, key_21, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_22, key_22, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_23, key_23, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_24, key_24, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_25, key_25, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_26, key_26, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_27, key_27, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_28, key_28, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_29, key_29, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_30, key_30, T.uint32(0), T.uint32(8))
    T.ptx.bfe.u32(digit_31, key_31, T.uint32(0), T.uint32(8))
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_00]), T.uint32(1), pred=same_00 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_01]), T.uint32(1), pred=same_01 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_02]), T.uint32(1), pred=same_02 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_03]), T.uint32(1), pred=same_03 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_04]), T.uint32(1), pred=same_04 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_05]), T.uint32(1), pred=same_05 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_06]), T.uint32(1), pred=same_06 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_07]), T.uint32(1), pred=same_07 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_08]), T.uint32(1), pred=same_08 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_09]), T.uint32(1), pred=same_09 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_10]), T.uint32(1), pred=same_10 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_11]), T.uint32(1), pred=same_11 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_12]), T.uint32(1), pred=same_12 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_13]), T.uint32(1), pred=same_13 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_14]), T.uint32(1), pred=same_14 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_15]), T.uint32(1), pred=same_15 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_16]), T.uint32(1), pred=same_16 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_17]), T.uint32(1), pred=same_17 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_18]), T.uint32(1), pred=same_18 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_19]), T.uint32(1), pred=same_19 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_20]), T.uint32(1), pred=same_20 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_21]), T.uint32(1), pred=same_21 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_22]), T.uint32(1), pred=same_22 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_23]), T.uint32(1), pred=same_23 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_24]), T.uint32(1), pred=same_24 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_25]), T.uint32(1), pred=same_25 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_26]), T.uint32(1), pred=same_26 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_27]), T.uint32(1), pred=same_27 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_28]), T.uint32(1), pred=same_28 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_29]), T.uint32(1), pred=same_29 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_30]), T.uint32(1), pred=same_30 != 0)
    T.ptx.red.relaxed.cta.shared.add.u32(selection.bins.ptr_to([3, digit_31]), T.uint32(1), pred=same_31 != 0)
    selection.choose(3, wanted, prefix)

    # prefix is the number that is K-th from the top; `wanted` of those equal to it are wanted
    certain: T.uint32
    T.ptx.sub.u32(certain, T.cast(K, "uint32"), wanted)
    of_above: T.uint32
    of_equal: T.uint32
    T.ptx.mapa.shared__cluster.u32(of_above, T.cuda.cvta_generic_to_shared(selection.counters.ptr_to([0])), T.uint32(0))
    T.ptx.mapa.shared__cluster.u32(of_equal, T.cuda.cvta_generic_to_shared(selection.counters.ptr_to([1])), T.uint32(0))
    column: T.let = quad * 4
    T.ptx.setp.gt.u32(same_00, key_00, prefix)
    take(same_00, bits_00, column + 0, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_01, key_01, prefix)
    take(same_01, bits_01, column + 1, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_02, key_02, prefix)
    take(same_02, bits_02, column + 2, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_03, key_03, prefix)
    take(same_03, bits_03, column + 3, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_04, key_04, prefix)
    take(same_04, bits_04, column + 1024, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_05, key_05, prefix)
    take(same_05, bits_05, column + 1025, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_06, key_06, prefix)
    take(same_06, bits_06, column + 1026, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_07, key_07, prefix)
    take(same_07, bits_07, column + 1027, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_08, key_08, prefix)
    take(same_08, bits_08, column + 2048, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_09, key_09, prefix)
    take(same_09, bits_09, column + 2049, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_10, key_10, prefix)
    take(same_10, bits_10, column + 2050, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_11, key_11, prefix)
    take(same_11, bits_11, column + 2051, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_12, key_12, prefix)
    take(same_12, bits_12, column + 3072, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_13, key_13, prefix)
    take(same_13, bits_13, column + 3073, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_14, key_14, prefix)
    take(same_14, bits_14, column + 3074, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_15, key_15, prefix)
    take(same_15, bits_15, column + 3075, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_16, key_16, prefix)
    take(same_16, bits_16, column + 4096, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_17, key_17, prefix)
    take(same_17, bits_17, column + 4097, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_18, key_18, prefix)
    take(same_18, bits_18, column + 4098, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_19, key_19, prefix)
    take(same_19, bits_19, column + 4099, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_20, key_20, prefix)
    take(same_20, bits_20, column + 5120, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_21, key_21, prefix)
    take(same_21, bits_21, column + 5121, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_22, key_22, prefix)
    take(same_22, bits_22, column + 5122, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_23, key_23, prefix)
    take(same_23, bits_23, column + 5123, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_24, key_24, prefix)
    take(same_24, bits_24, column + 6144, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_25, key_25, prefix)
    take(same_25, bits_25, column + 6145, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_26, key_26, prefix)
    take(same_26, bits_26, column + 6146, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_27, key_27, prefix)
    take(same_27, bits_27, column + 6147, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_28, key_28, prefix)
    take(same_28, bits_28, column + 7168, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_29, key_29, prefix)
    take(same_29, bits_29, column + 7169, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_30, key_30, prefix)
    take(same_30, bits_30, column + 7170, of_above, T.uint32(0), certain, lane, row, V, I)
    T.ptx.setp.gt.u32(same_31, key_31, prefix)
    take(same_31, bits_31, column + 7171, of_above, T.uint32(0), certain, lane, row, V, I)

    T.ptx.setp.eq.and_.u32(same_00, key_00, prefix, there_0)
    take(same_00, bits_00, column + 0, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_01, key_01, prefix, there_0)
    take(same_01, bits_01, column + 1, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_02, key_02, prefix, there_0)
    take(same_02, bits_02, column + 2, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_03, key_03, prefix, there_0)
    take(same_03, bits_03, column + 3, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_04, key_04, prefix, there_1)
    take(same_04, bits_04, column + 1024, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_05, key_05, prefix, there_1)
    take(same_05, bits_05, column + 1025, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_06, key_06, prefix, there_1)
    take(same_06, bits_06, column + 1026, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_07, key_07, prefix, there_1)
    take(same_07, bits_07, column + 1027, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_08, key_08, prefix, there_2)
    take(same_08, bits_08, column + 2048, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_09, key_09, prefix, there_2)
    take(same_09, bits_09, column + 2049, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_10, key_10, prefix, there_2)
    take(same_10, bits_10, column + 2050, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_11, key_11, prefix, there_2)
    take(same_11, bits_11, column + 2051, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_12, key_12, prefix, there_3)
    take(same_12, bits_12, column + 3072, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_13, key_13, prefix, there_3)
    take(same_13, bits_13, column + 3073, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_14, key_14, prefix, there_3)
    take(same_14, bits_14, column + 3074, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_15, key_15, prefix, there_3)
    take(same_15, bits_15, column + 3075, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_16, key_16, prefix, there_4)
    take(same_16, bits_16, column + 4096, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_17, key_17, prefix, there_4)
    take(same_17, bits_17, column + 4097, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_18, key_18, prefix, there_4)
    take(same_18, bits_18, column + 4098, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_19, key_19, prefix, there_4)
    take(same_19, bits_19, column + 4099, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_20, key_20, prefix, there_5)
    take(same_20, bits_20, column + 5120, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_21, key_21, prefix, there_5)
    take(same_21, bits_21, column + 5121, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_22, key_22, prefix, there_5)
    take(same_22, bits_22, column + 5122, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_23, key_23, prefix, there_5)
    take(same_23, bits_23, column + 5123, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_24, key_24, prefix, there_6)
    take(same_24, bits_24, column + 6144, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_25, key_25, prefix, there_6)
    take(same_25, bits_25, column + 6145, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_26, key_26, prefix, there_6)
    take(same_26, bits_26, column + 6146, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_27, key_27, prefix, there_6)
    take(same_27, bits_27, column + 6147, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_28, key_28, prefix, there_7)
    take(same_28, bits_28, column + 7168, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_29, key_29, prefix, there_7)
    take(same_29, bits_29, column + 7169, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_30, key_30, prefix, there_7)
    take(same_30, bits_30, column + 7170, of_equal, certain, wanted, lane, row, V, I)
    T.ptx.setp.eq.and_.u32(same_31, key_31, prefix, there_7)
    take(same_31, bits_31, column + 7171, of_equal, certain, wanted, lane, row, V, I)

    # the first block's counters, and bins, stay until the other has done with them
    T.ptx.barrier.cluster.arrive.release.aligned()
    T.ptx.barrier.cluster.wait.acquire.aligned()
