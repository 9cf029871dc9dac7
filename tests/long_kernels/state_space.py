# SPDX-License-Identifier: Apache-2.0
"""Selective state-space models: the scan over a sequence, the update by one token, and the convolution before both.

A channel d has N states that decay and are fed at every time t:

    h[n] = exp(dt * A[d, n]) * h[n] + dt * B[n, t] * u[d, t]
    y[d, t] = sum over n of C[n, t] * h[n] + D[d] * u[d, t]

with dt = softplus(delta[d, t] + bias[d]); the output is y * silu(z[d, t]). B and C belong to a group of channels.

`scan`: a warp has a channel, a lane has four times of a tile of 128. Steps compose: first (a, b), then (a', b') is
(a' a, a' b + b'), so a warp finds the states at all its times with five shuffles for each n, and the last lane hands
the state on to the next tile. With STARTS, several sequences lie one behind the other, and the states are cleared
where one starts. Tiles of all operands come through a ring of slots in shared memory, by one of three ways:

    "async"      all threads copy pieces of 16 bytes (cp.async) for the tile after the next, and then compute
    "bulk"       a warp of its own asks the copy engine for rows of tiles; mbarriers say when they have come and gone
    "tensor"     the same, but one request an operand: tensor maps describe boxes of rows

With CLUSTER > 1, the CTAs of a cluster share the sequence. Each first runs over its part from the state zero, just for
the sums of dt and the states at the end; reads those of the parts before from their shared memory; and runs once more.

`update` is for decoding: a warp takes several channels of a sequence, four states a lane, shifts the window of the
convolution, and moves the states on by one token in memory; sequences may lie anywhere in a cache of states.
`convolve` is the causal depthwise convolution over four times, with SiLU.
"""

from __future__ import annotations

import numpy as np

from tirx.lang import Pipeline, PipelineState
from tirx.script import tirx as T

ITEMS = 4  # times of a lane
TILE = 32 * ITEMS
WIDTH = 4  # of the convolution
ALL = 0xFFFFFFFF
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
PTX_TYPE = {"bfloat16": "bf16", "float16": "f16"}
NBYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
TENSOR = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"


# ---- values ----------------------------------------------------------------------------------------------------------


@T.inline
def unpack(low, high, word, dtype):
    """The two 16-bit numbers of a word as float32."""
    if dtype == "bfloat16":
        T.ptx["prmt.b32"](low, word, 0, 0x1044)  # two zero bytes, and the low half
        T.ptx["prmt.b32"](high, word, 0, 0x3244)
    else:
        half = T.alloc_local((2,), "uint16")
        T.ptx["mov.b32"](half[0], half[1], word)
        T.ptx["cvt.f32.f16"](low, T.reinterpret("float16", half[0]))
        T.ptx["cvt.f32.f16"](high, T.reinterpret("float16", half[1]))


@T.inline
def pack(word, low, high, dtype):
    T.ptx[f"cvt.rn.{PTX_TYPE[dtype]}x2.f32"](word, high, low)


@T.inline
def read(x, pointer, dtype, space):
    """Four numbers side by side, as float32."""
    if dtype == "float32":
        T.ptx[f"ld.{space}.v4.f32"](*x[0:4], pointer)
    else:
        word = T.alloc_local((2,), "uint32")
        T.ptx[f"ld.{space}.v2.b32"](*word, pointer)
        unpack(x[0], x[1], word[0], dtype)
        unpack(x[2], x[3], word[1], dtype)


@T.inline
def write_global(pointer, x, dtype):
    if dtype == "float32":
        T.ptx["st.global.cs.v4.f32"](pointer, *x[0:4])
    else:
        word = T.alloc_local((2,), "uint32")
        pack(word[0], x[0], x[1], dtype)
        pack(word[1], x[2], x[3], dtype)
        T.ptx["st.global.cs.v2.b32"](pointer, *word)


@T.inline
def read_one(x, pointer, dtype):
    if dtype == "float32":
        T.ptx["ld.global.nc.f32"](x, pointer)
    else:
        bits: T.uint16
        T.ptx["ld.global.nc.b16"](bits, pointer)
        T.ptx[f"cvt.f32.{PTX_TYPE[dtype]}"](x, T.reinterpret(dtype, bits))


@T.inline
def softplus(y, x):
    """log(1 + exp(x)), x itself where the difference is lost."""
    power: T.float32
    large: T.bool
    T.ptx["setp.gt.f32"](large, x, T.float32(20.0))
    T.ptx["mul.f32"](power, x, T.float32(LOG2E))
    T.ptx["ex2.approx.ftz.f32"](power, power)
    T.ptx["add.f32"](power, power, T.float32(1.0))
    T.ptx["lg2.approx.ftz.f32"](power, power)
    T.ptx["mul.f32"](power, power, T.float32(LN2))
    T.ptx["selp.f32"](y, x, power, large)


@T.inline
def silu(y, x):
    power: T.float32
    T.ptx["mul.f32"](power, x, T.float32(-LOG2E))
    T.ptx["ex2.approx.ftz.f32"](power, power)
    T.ptx["add.f32"](power, power, T.float32(1.0))
    T.ptx["rcp.approx.ftz.f32"](power, power)
    T.ptx["mul.f32"](y, x, power)


@T.inline
def of_lane(y, x, lane):
    """x of another lane; the whole warp asks."""
    T.ptx["shfl.sync.idx.b32"](y, x, T.cast(lane, "uint32"), 31, ALL)


# ---- the ring --------------------------------------------------------------------------------------------------------


@T.meta_class
class Operands:
    """The tensors in global memory, and which rows of them a CTA reads."""

    def __init__(self, U, DELTA, Z, B, C, batch, channel, group, length):
        self.U, self.DELTA, self.Z, self.B, self.C = U, DELTA, Z, B, C
        self.batch, self.channel, self.group, self.length = batch, channel, group, length

    def of_channel(self, tensor, row, t):
        return tensor.ptr_to([self.batch, self.channel + row, t])

    def of_group(self, tensor, row, t):
        return tensor.ptr_to([self.batch, self.group, row, t])


@T.inline
def row_map(out, tensor, rows, length, box_rows, dtype):
    """A map of rows of `length` numbers in boxes of box_rows x TILE; times behind the end read zeros."""
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled",
        *(out, dtype, 2, tensor.data),
        *(length, rows),  # sizes, innermost first
        length * NBYTES[dtype],  # bytes from row to row
        *(TILE, box_rows, 1, 1),
        *(0, 0, 2, 0),  # no interleave, no swizzle, L2 in pieces of 128 bytes, zeros outside
    )


@T.meta_class
class Boxes:
    """The maps of the operands, and the rows where a CTA's boxes begin."""

    def __init__(self, maps, channel_row, group_row):
        self.U, self.DELTA, self.Z, self.B, self.C = maps
        self.channel_row, self.group_row = channel_row, group_row


@T.meta_class
class Ring:
    """Slots of tiles: rows of TILE times of u, delta and z for each channel, of B and C for each state."""

    def __init__(self, pool, stages, channels, states, dtype, gate):
        self.stages = stages
        self.u = pool.alloc((stages, channels, TILE), dtype, align=128)
        self.delta = pool.alloc((stages, channels, TILE), dtype, align=128)
        self.B = pool.alloc((stages, states, TILE), dtype, align=128)
        self.C = pool.alloc((stages, states, TILE), dtype, align=128)
        self.z = pool.alloc((stages, channels, TILE), dtype, align=128) if gate else None
        self.channels, self.states, self.dtype = channels, states, dtype

    def parts(self, source, whole):
        """What a slot takes: rows in shared memory, rows in global memory, how many. z and C only for outputs."""
        yield self.u, lambda row, t: source.of_channel(source.U, row, t), self.channels
        yield self.delta, lambda row, t: source.of_channel(source.DELTA, row, t), self.channels
        yield self.B, lambda row, t: source.of_group(source.B, row, t), self.states
        if whole:
            yield self.C, lambda row, t: source.of_group(source.C, row, t), self.states
            if self.z is not None:
                yield self.z, lambda row, t: source.of_channel(source.Z, row, t), self.channels

    def rows(self, whole):
        gated = self.z is not None
        return 2 * self.channels + self.states + (self.states + gated * self.channels if whole else 0)

    @T.inline
    def copy(self, source, slot, t, whole, tid, threads):
        """cp.async: pieces of 16 bytes; what is behind the end of the sequence becomes zero."""
        per_piece = T.meta_var(16 // NBYTES[self.dtype])
        pieces = T.meta_var(TILE // per_piece)
        for to, origin, rows in self.parts(source, whole):
            for i in range(tid, rows * pieces, threads):
                row: T.let = i // pieces
                column: T.let = i % pieces * per_piece
                inside: T.let = t + column < source.length
                nbytes: T.uint32 = 0
                if inside:
                    nbytes = T.uint32(16)
                T.ptx["cp.async.cg.shared.global.L2::128B"](
                    to.ptr_to([slot, row, column]),
                    origin(row, T.min(t + column, source.length - per_piece)),
                    16,
                    nbytes,
                )

    @T.inline
    def request(self, source, slot, t, whole, full, lane):
        """A warp asks the copy engine for the rows; they report to `full`."""
        times: T.let = T.min(TILE, source.length - t)
        nbytes: T.uint32 = T.cast(times * NBYTES[self.dtype], "uint32")
        if lane == 0:
            full.arrive(slot, nbytes * T.uint32(self.rows(whole)))
        T.cuda.warp_sync()
        for to, origin, rows in self.parts(source, whole):
            for row in range(lane, rows, 32):
                T.ptx[BULK](to.ptr_to([slot, row, 0]), origin(row, t), nbytes, full.ptr_to(slot))

    def boxes(self, maps, whole):
        """The same parts for the copy engine: where to, which map, which row."""
        yield self.u, maps.U, maps.channel_row
        yield self.delta, maps.DELTA, maps.channel_row
        yield self.B, maps.B, maps.group_row
        if whole:
            yield self.C, maps.C, maps.group_row
            if self.z is not None:
                yield self.z, maps.Z, maps.channel_row

    @T.inline
    def request_boxes(self, maps, slot, t, whole, full):
        """One thread of the warp asks for all; whole boxes arrive, also where they reach behind the end."""
        if T.cuda.elect_sync():
            full.arrive(slot, T.uint32(self.rows(whole) * TILE * NBYTES[self.dtype]))
            for to, tensor, row in self.boxes(maps, whole):
                T.ptx[TENSOR](to.ptr_to([slot, 0, 0]), T.address_of(tensor), t, row, full.ptr_to(slot))


# ---- a channel -------------------------------------------------------------------------------------------------------


@T.meta_class
class Channel:
    """What a warp knows of its channel. Lane n has the n-th state, and A for it times the logarithm to base 2 of e."""

    def __init__(self, A, D, bias, channel, lane, states):
        self.states = states
        self.state = T.local_scalar("float32", T.float32(0))
        self.A = T.local_scalar("float32", T.float32(0))
        self.D = T.local_scalar("float32", D[channel])
        self.bias = T.local_scalar("float32", bias[channel])
        self.time = T.local_scalar("float32", T.float32(0))  # the sum of dt
        with T.If(lane < states), T.Then():
            T.assign(self.A, A[channel, lane] * T.float32(LOG2E))

    @T.inline
    def clear_at_starts(self, a, starts, valid):
        """starts: a byte for each of the lane's times, not zero where a sequence starts; there nothing is kept."""
        one: T.uint32
        if valid:
            for j in T.unroll(ITEMS):
                T.ptx["bfe.u32"](one, starts, T.cast(8 * j, "uint32"), 8)
                T.ptx["selp.f32"](a[j], T.float32(0), a[j], one != 0)

    @T.inline
    def steps(self, u, dt, fed, y, ring, slot, row, lane, valid):
        """u, dt and dt * u at the lane's times, and what y begins with. A time that does not exist changes nothing."""
        if valid:
            read(u, ring.u.ptr_to([slot, row, lane * ITEMS]), ring.dtype, "shared")
            read(dt, ring.delta.ptr_to([slot, row, lane * ITEMS]), ring.dtype, "shared")
            for j in T.unroll(ITEMS):
                T.ptx["add.f32"](dt[j], dt[j], self.bias)
                softplus(dt[j], dt[j])
        else:
            for j in T.unroll(ITEMS):
                u[j] = 0.0
                dt[j] = 0.0
        for j in T.unroll(ITEMS):
            T.ptx["mul.f32"](fed[j], dt[j], u[j])
            T.ptx["mul.f32"](y[j], u[j], self.D)

    @T.inline
    def scan_lanes(self, a, b, lane):
        """(a, b) of this lane and all before it, composed."""
        their_a: T.float32
        their_b: T.float32
        inside: T.bool
        for distance in (1, 2, 4, 8, 16):
            T.ptx["shfl.sync.up.b32"](their_a, a, distance, 0, ALL)
            T.ptx["shfl.sync.up.b32"](their_b, inside, b, distance, 0, ALL)
            T.ptx["fma.rn.f32"](b, a, their_b, b, pred=inside, preserve_dst=True)
            T.ptx["mul.f32"](a, a, their_a, pred=inside, preserve_dst=True)

    @T.inline
    def state_at(self, h, a, b, n, lane):
        """The n-th state before the lane's first time, from the scanned steps of the lane before."""
        before: T.float32
        their_a: T.float32
        their_b: T.float32
        of_lane(before, self.state, n)
        T.ptx["shfl.sync.up.b32"](their_a, a, 1, 0, ALL)
        T.ptx["shfl.sync.up.b32"](their_b, b, 1, 0, ALL)
        T.ptx["fma.rn.f32"](h, their_a, before, their_b)
        T.ptx["selp.f32"](h, before, h, lane == 0)

    @T.inline
    def tile(self, y, ring, slot, row, lane, valid, starts, whole, packed):
        """Moves the states over a tile; with `whole`, y is what they give. starts: None, or see clear_at_starts."""
        u = T.alloc_local((ITEMS,), "float32")
        dt = T.alloc_local((ITEMS,), "float32")
        fed = T.alloc_local((ITEMS,), "float32")
        a = T.alloc_local((ITEMS,), "float32")
        b = T.alloc_local((ITEMS,), "float32")
        c = T.alloc_local((ITEMS,), "float32")
        h = T.alloc_local((ITEMS + 1,), "float32")
        decay: T.float32
        all_a: T.float32
        all_b: T.float32
        self.steps(u, dt, fed, y, ring, slot, row, lane, valid)
        for j in T.unroll(ITEMS):
            T.ptx["add.f32"](self.time, self.time, dt[j])
        if starts is not None:
            T.ptx["selp.f32"](self.time, T.infinity("float32"), self.time, starts != 0)  # all states decay to nothing
        for n in range(self.states):
            of_lane(decay, self.A, n)
            for j in T.unroll(ITEMS):
                b[j] = 0.0
                c[j] = 0.0
            if valid:
                read(b, ring.B.ptr_to([slot, n, lane * ITEMS]), ring.dtype, "shared")
                if whole:
                    read(c, ring.C.ptr_to([slot, n, lane * ITEMS]), ring.dtype, "shared")
            for j in T.unroll(ITEMS):
                T.ptx["mul.f32"](a[j], dt[j], decay)
                T.ptx["ex2.approx.ftz.f32"](a[j], a[j])
            if starts is not None:
                self.clear_at_starts(a, starts, valid)
            if packed:
                multiply_pairs(b, b, fed)
            else:
                for j in T.unroll(ITEMS):
                    T.ptx["mul.f32"](b[j], b[j], fed[j])
            all_a = a[0]
            all_b = b[0]
            for j in T.unroll(ITEMS - 1):
                T.ptx["mul.f32"](all_a, all_a, a[j + 1])
                T.ptx["fma.rn.f32"](all_b, a[j + 1], all_b, b[j + 1])
            self.scan_lanes(all_a, all_b, lane)
            self.state_at(h[0], all_a, all_b, n, lane)
            for j in T.unroll(ITEMS):
                T.ptx["fma.rn.f32"](h[j + 1], a[j], h[j], b[j])
            if whole:
                if packed:
                    add_products_of_pairs(y, c, h)
                else:
                    for j in T.unroll(ITEMS):
                        T.ptx["fma.rn.f32"](y[j], c[j], h[j + 1], y[j])
            last: T.float32
            of_lane(last, h[ITEMS], 31)
            if lane == n:
                self.state = last

    @T.inline
    def finish(self, OUT, y, ring, slot, row, lane, batch, channel, t, gate):
        """The gate, and the output."""
        if gate:
            z = T.alloc_local((ITEMS,), "float32")
            read(z, ring.z.ptr_to([slot, row, lane * ITEMS]), ring.dtype, "shared")
            for j in T.unroll(ITEMS):
                silu(z[j], z[j])
                T.ptx["mul.f32"](y[j], y[j], z[j])
        write_global(OUT.ptr_to([batch, channel, t]), y, ring.dtype)


@T.inline
def multiply_pairs(out, x, y):
    """out = x * y, two numbers an instruction (sm_100)."""
    pair: T.uint64
    for j in T.unroll(ITEMS // 2):
        at = T.meta_var(2 * j)
        T.ptx["mul.rn.f32x2"](pair, T.cuda.make_float2(x[at], x[at + 1]), T.cuda.make_float2(y[at], y[at + 1]))
        out[at] = T.cuda.float2_x(pair)
        out[at + 1] = T.cuda.float2_y(pair)


@T.inline
def add_products_of_pairs(sum, c, h):
    """sum += c * h[1:], two numbers an instruction (sm_100)."""
    pair: T.uint64
    for j in T.unroll(ITEMS // 2):
        at = T.meta_var(2 * j)
        pair = T.cuda.make_float2(sum[at], sum[at + 1])
        T.ptx["fma.rn.f32x2"](
            pair, T.cuda.make_float2(c[at], c[at + 1]), T.cuda.make_float2(h[at + 1], h[at + 2]), pair
        )
        sum[at] = T.cuda.float2_x(pair)
        sum[at + 1] = T.cuda.float2_y(pair)


# ---- the cluster -----------------------------------------------------------------------------------------------------


@T.meta_class
class Parts:
    """What the CTAs of a cluster tell each other: a channel's sum of dt, and its states at the end of the part."""

    def __init__(self, pool, channels, states):
        self.time = pool.alloc((channels,), "float32", align=16)
        self.state = pool.alloc((channels, states), "float32", align=16)

    @T.inline
    def tell(self, mine, row, lane):
        """The times of the lanes add up; a butterfly leaves the same sum in all of them."""
        other: T.float32
        for distance in (16, 8, 4, 2, 1):
            T.ptx["shfl.sync.bfly.b32"](other, mine.time, distance, 31, ALL)
            T.ptx["add.f32"](mine.time, mine.time, other)
        if lane == 0:
            T.ptx["st.shared.f32"](self.time.ptr_to([row]), mine.time)
        if lane < mine.states:
            T.ptx["st.shared.f32"](self.state.ptr_to([row, lane]), mine.state)

    @T.inline
    def arrive(self):
        T.ptx["barrier.cluster.arrive.release.aligned"]()

    @T.inline
    def wait(self):
        T.ptx["barrier.cluster.wait.acquire.aligned"]()

    @T.inline
    def hear(self, mine, row, lane, rank):
        """The state before this part: `mine.state` comes as the state before the sequence."""
        address: T.uint32
        time: T.float32
        fed: T.float32
        decay: T.float32
        for r in range(rank):
            T.ptx["mapa.shared::cluster.u32"](
                address, T.cuda.cvta_generic_to_shared(self.time.ptr_to([row])), T.cast(r, "uint32")
            )
            T.ptx["ld.shared::cluster.f32"](time, address)
            T.ptx["mul.f32"](decay, time, mine.A)
            T.ptx["ex2.approx.ftz.f32"](decay, decay)
            if lane < mine.states:
                T.ptx["mapa.shared::cluster.u32"](
                    address, T.cuda.cvta_generic_to_shared(self.state.ptr_to([row, lane])), T.cast(r, "uint32")
                )
                T.ptx["ld.shared::cluster.f32"](fed, address)
                T.ptx["fma.rn.f32"](mine.state, decay, mine.state, fed)


@T.inline
def hand_over(parts, of_warp, STATES, batch, channel, row, lane, rank, cluster):
    """Between the two runs: the states before the sequence, and what the parts before make of them."""
    if cluster > 1:
        parts.tell(of_warp, row, lane)
        parts.arrive()
        parts.wait()
    if lane < of_warp.states:
        of_warp.state = STATES[batch, channel, lane]
    if cluster > 1:
        parts.hear(of_warp, row, lane, rank)


@T.inline
def starts_of(START, batch, t, length, wanted):
    """Four bytes, zero behind the end; None where nobody asks."""
    if not wanted:
        return None
    bytes: T.uint32 = 0
    if t < length:
        T.ptx["ld.global.nc.b32"](bytes, START.ptr_to([batch, t]))
    return bytes


# ---- the scan --------------------------------------------------------------------------------------------------------


@T.jit
def scan(
    u: T.handle,
    delta: T.handle,
    z: T.handle,
    a: T.handle,
    b: T.handle,
    c: T.handle,
    d: T.handle,
    bias: T.handle,
    states: T.handle,
    out: T.handle,
    starts: T.handle,
    *,
    dtype: T.constexpr = "bfloat16",
    N: T.constexpr = 16,
    GROUPS: T.constexpr = 1,
    STARTS: T.constexpr = False,
    GATE: T.constexpr = True,
    LOAD: T.constexpr = "bulk",
    CLUSTER: T.constexpr = 1,
    WARPS: T.constexpr = 4,
    STAGES: T.constexpr = 2,
    PACKED: T.constexpr = False,
):
    """u, delta, z and out are (batch, channel, time); b and c are (batch, group, state, time), where a group is that
    many neighbouring channels; a is (channel, state), negative; d and bias are (channel). states, (batch, channel,
    state), are those before the sequence, and afterwards those behind it. starts is (batch, time). The number of times
    is a multiple of 8, so that each row begins at a multiple of 16 bytes; there are enough CTAs if batches * channels /
    WARPS are more than the GPU has SMs, else CLUSTER should be raised."""
    batches, blocks, pieces = T.int32(), T.int32(), T.int32()
    DIM = T.meta_var(blocks * (GROUPS * WARPS))  # a CTA's channels lie in one group
    L = T.meta_var(pieces * 8)
    U = T.match_buffer(u, (batches, DIM, L), dtype, align=16)
    DELTA = T.match_buffer(delta, (batches, DIM, L), dtype, align=16)
    Z = T.match_buffer(z, (batches, DIM, L), dtype, align=16)
    A = T.match_buffer(a, (DIM, N), "float32")
    B = T.match_buffer(b, (batches, GROUPS, N, L), dtype, align=16)
    C = T.match_buffer(c, (batches, GROUPS, N, L), dtype, align=16)
    D = T.match_buffer(d, (DIM,), "float32")
    BIAS = T.match_buffer(bias, (DIM,), "float32")
    STATES = T.match_buffer(states, (batches, DIM, N), "float32")
    OUT = T.match_buffer(out, (batches, DIM, L), dtype, align=16)
    START = T.match_buffer(starts, (batches, L), "uint8", align=8)  # read with STARTS only
    T.static_assert(N <= 32 and LOAD in ("async", "bulk", "tensor") and STAGES >= 2)
    if LOAD == "tensor":
        U_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        DELTA_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        Z_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        C_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        row_map(U_map, U, batches * DIM, L, WARPS, dtype)
        row_map(DELTA_map, DELTA, batches * DIM, L, WARPS, dtype)
        row_map(Z_map, Z, batches * DIM, L, WARPS, dtype)
        row_map(B_map, B, batches * (GROUPS * N), L, N, dtype)
        row_map(C_map, C, batches * (GROUPS * N), L, N, dtype)

    COPIER = T.meta_var(WARPS)  # the warp that does nothing else
    THREADS = T.meta_var(32 * (WARPS + (LOAD != "async")))
    T.device_entry()
    block, batch = T.cta_id([blocks * GROUPS * CLUSTER, batches])
    rank, _ = T.cta_id_in_cluster([CLUSTER, 1])
    warp = T.warp_id([THREADS // 32])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])

    pool = T.SMEMPool()
    ring = Ring(pool, STAGES, WARPS, N, dtype, GATE)
    parts = Parts(pool, WARPS, N)
    if LOAD != "async":
        pipe = Pipeline(pool, STAGES, full="tma", empty="mbar", init_full=1, init_empty=WARPS, empty_phase_offset=1)
    pool.commit()
    if LOAD != "async":
        T.ptx.fence.mbarrier_init.release.cluster()
    T.cuda.cta_sync()

    channel: T.let = block // CLUSTER * WARPS
    group: T.let = channel // (blocks * WARPS)
    source = Operands(U, DELTA, Z, B, C, batch, channel, group, L)
    if LOAD == "tensor":
        maps = Boxes((U_map, DELTA_map, Z_map, B_map, C_map), batch * DIM + channel, (batch * GROUPS + group) * N)
    # this CTA's part of the sequence, in tiles
    tiles: T.int32 = T.ceildiv(L, TILE)
    share: T.int32 = T.ceildiv(tiles, CLUSTER)
    first: T.int32 = T.min(rank * share, tiles)
    mine: T.int32 = T.min(share, tiles - first)
    y = T.alloc_local((ITEMS,), "float32")
    at = PipelineState(STAGES, 0)

    if LOAD != "async":
        if warp == COPIER:
            for whole in (False, True):
                if whole or CLUSTER > 1:
                    for i in range(mine):
                        pipe.empty.wait(at.stage, at.phase)
                        if LOAD == "tensor":
                            ring.request_boxes(maps, at.stage, (first + i) * TILE, whole, pipe.full)
                        else:
                            ring.request(source, at.stage, (first + i) * TILE, whole, pipe.full, lane)
                        at.advance()
                if CLUSTER > 1:
                    parts.arrive()
                    parts.wait()
        else:
            of_warp = Channel(A, D, BIAS, channel + warp, lane, N)
            for whole in (False, True):
                if whole or CLUSTER > 1:
                    for i in range(mine):
                        t: T.let = (first + i) * TILE + lane * ITEMS
                        begin = starts_of(START, batch, t, L, STARTS)
                        pipe.full.wait(at.stage, at.phase)
                        of_warp.tile(y, ring, at.stage, warp, lane, t < L, begin, whole, PACKED)
                        if whole:
                            if t < L:
                                of_warp.finish(OUT, y, ring, at.stage, warp, lane, batch, channel + warp, t, GATE)
                        T.cuda.warp_sync()
                        if lane == 0:
                            pipe.empty.arrive(at.stage)
                        at.advance()
                if not whole:
                    hand_over(parts, of_warp, STATES, batch, channel + warp, warp, lane, rank, CLUSTER)
                elif CLUSTER > 1:
                    parts.arrive()  # nobody leaves, or overwrites the states, while others read
                    parts.wait()
            if rank == CLUSTER - 1:
                if lane < N:
                    STATES[batch, channel + warp, lane] = of_warp.state
    else:
        of_warp = Channel(A, D, BIAS, channel + warp, lane, N)
        for whole in (False, True):
            if whole or CLUSTER > 1:
                at.init(0)
                ahead = PipelineState(STAGES, 0)
                for i in T.unroll(STAGES - 1):
                    if i < mine:
                        ring.copy(source, ahead.stage, (first + i) * TILE, whole, tid, THREADS)
                    T.ptx["cp.async.commit_group"]()
                    ahead.advance()
                for i in range(mine):
                    t: T.let = (first + i) * TILE + lane * ITEMS
                    if i + STAGES - 1 < mine:
                        ring.copy(source, ahead.stage, (first + i + STAGES - 1) * TILE, whole, tid, THREADS)
                    T.ptx["cp.async.commit_group"]()
                    ahead.advance()
                    T.ptx["cp.async.wait_group"](STAGES - 1)
                    T.cuda.cta_sync()
                    begin = starts_of(START, batch, t, L, STARTS)
                    of_warp.tile(y, ring, at.stage, warp, lane, t < L, begin, whole, PACKED)
                    if whole:
                        if t < L:
                            of_warp.finish(OUT, y, ring, at.stage, warp, lane, batch, channel + warp, t, GATE)
                    at.advance()
                    T.cuda.cta_sync()
                T.ptx["cp.async.wait_all"]()
            if not whole:
                hand_over(parts, of_warp, STATES, batch, channel + warp, warp, lane, rank, CLUSTER)
        if CLUSTER > 1:
            parts.arrive()
            parts.wait()
        if rank == CLUSTER - 1:
            if lane < N:
                STATES[batch, channel + warp, lane] = of_warp.state


# ---- one token -------------------------------------------------------------------------------------------------------


@T.inline
def noise(r, seed, x, y):
    """32 bits that look random: a few rounds of multiplication, folding and rotation over three numbers."""
    high: T.uint32
    low: T.uint32
    wide: T.uint64
    r = T.cast(seed, "uint32")
    for key in (0x9E3779B9, 0xBB67AE85, 0xD2511F53):
        T.ptx["mad.lo.u32"](r, T.cast(x, "uint32"), key, r)
        T.ptx["mul.wide.u32"](wide, r, 0xCD9E8D57)
        T.ptx["mov.b64"](low, high, wide)
        T.ptx["lop3.b32"](r, high, low, T.cast(y, "uint32"), 0x96)  # exclusive or of the three
        T.ptx["shf.l.wrap.b32"](r, r, r, 13)


@T.inline
def round_with_noise(word, low, high, random):
    """To bfloat16, up or down by chance, so that small changes of a state are not always lost (sm_100a)."""
    T.ptx["cvt.rs.satfinite.bf16x2.f32"](word, high, low, random)


@T.jit
def update(
    x: T.handle,
    delta: T.handle,
    z: T.handle,
    a: T.handle,
    b: T.handle,
    c: T.handle,
    d: T.handle,
    bias: T.handle,
    cache: T.handle,
    slots: T.handle,
    out: T.handle,
    seed: T.int32,
    *,
    dtype: T.constexpr = "bfloat16",
    STATE: T.constexpr = "float32",
    N: T.constexpr = 16,
    GROUPS: T.constexpr = 1,
    WARPS: T.constexpr = 4,
    NOISE: T.constexpr = False,
):
    """Sequence i has its states at cache[slots[i]]; a negative slot is no sequence, its output is zero."""
    batches, blocks, places = T.int32(), T.int32(), T.int32()
    LANES = T.meta_var(N // 4)  # of a channel
    CHANNELS = T.meta_var(WARPS * 32 // LANES)  # of a CTA
    DIM = T.meta_var(blocks * (GROUPS * CHANNELS))
    X = T.match_buffer(x, (batches, DIM), dtype)
    DELTA = T.match_buffer(delta, (batches, DIM), dtype)
    Z = T.match_buffer(z, (batches, DIM), dtype)
    A = T.match_buffer(a, (DIM, N), "float32", align=16)
    B = T.match_buffer(b, (batches, GROUPS, N), dtype, align=16)
    C = T.match_buffer(c, (batches, GROUPS, N), dtype, align=16)
    D = T.match_buffer(d, (DIM,), "float32")
    BIAS = T.match_buffer(bias, (DIM,), "float32")
    CACHE = T.match_buffer(cache, (places, DIM, N), STATE, align=16)
    SLOTS = T.match_buffer(slots, (batches,), "int32")
    OUT = T.match_buffer(out, (batches, DIM), dtype)
    T.static_assert(N % 4 == 0 and 32 % LANES == 0)
    T.static_assert(not NOISE or STATE == "bfloat16")

    T.device_entry()
    block, batch = T.cta_id([blocks * GROUPS, batches])
    tid = T.thread_id([32 * WARPS])
    channel: T.let = block * CHANNELS + tid // LANES
    quarter: T.let = tid % LANES * 4  # the first of the lane's four states
    group: T.let = block // blocks

    rate = T.alloc_local((4,), "float32")
    state = T.alloc_local((4,), "float32")
    feed = T.alloc_local((4,), "float32")
    see = T.alloc_local((4,), "float32")
    dt: T.float32
    own: T.float32
    gate: T.float32
    y: T.float32 = 0.0
    other: T.float32
    # what no kernel before this one has made
    T.ptx["ld.global.nc.L1::evict_last.v4.f32"](*rate, A.ptr_to([channel, quarter]))
    T.ptx["griddepcontrol.wait"]()
    slot: T.let = SLOTS[batch]
    read_one(dt, DELTA.ptr_to([batch, channel]), dtype)
    read_one(own, X.ptr_to([batch, channel]), dtype)
    read_one(gate, Z.ptr_to([batch, channel]), dtype)
    read(feed, B.ptr_to([batch, group, quarter]), dtype, "global")
    read(see, C.ptr_to([batch, group, quarter]), dtype, "global")
    T.ptx["griddepcontrol.launch_dependents"]()
    if slot >= 0:
        read(state, CACHE.ptr_to([slot, channel, quarter]), STATE, "global")
        softplus(dt, dt + BIAS[channel])
        step: T.let = dt * own
        for j in T.unroll(4):
            power: T.float32
            T.ptx["mul.f32"](power, rate[j], T.float32(LOG2E))
            T.ptx["mul.f32"](power, power, dt)
            T.ptx["ex2.approx.ftz.f32"](power, power)
            T.ptx["mul.f32"](feed[j], feed[j], step)
            T.ptx["fma.rn.f32"](state[j], state[j], power, feed[j])
            T.ptx["fma.rn.f32"](y, see[j], state[j], y)
        if NOISE:
            random: T.uint32
            word = T.alloc_local((2,), "uint32")
            noise(random, seed, (batch * DIM + channel) * N + quarter, batch)
            round_with_noise(word[0], state[0], state[1], random)
            noise(random, seed, random, channel)
            round_with_noise(word[1], state[2], state[3], random)
            T.ptx["st.global.v2.b32"](CACHE.ptr_to([slot, channel, quarter]), *word)
        else:
            write_global(CACHE.ptr_to([slot, channel, quarter]), state, STATE)
    for distance in [k for k in (16, 8, 4, 2, 1) if k < LANES]:
        T.ptx["shfl.sync.bfly.b32"](other, y, distance, 31, ALL)
        T.ptx["add.f32"](y, y, other)
    if quarter == 0:
        if slot >= 0:
            silu(gate, gate)
            T.ptx["fma.rn.f32"](y, own, D[channel], y)
            OUT[batch, channel] = T.cast(y * gate, dtype)
        else:
            OUT[batch, channel] = T.cast(0, dtype)


# ---- the convolution -------------------------------------------------------------------------------------------------


@T.jit
def convolve(
    x: T.handle,
    weight: T.handle,
    bias: T.handle,
    window: T.handle,
    out: T.handle,
    *,
    dtype: T.constexpr = "bfloat16",
    WARPS: T.constexpr = 4,
    TILES: T.constexpr = 8,
):
    """window: the three inputs before the sequence, afterwards its last three. A warp has TILES tiles of a channel."""
    batches, blocks, pieces = T.int32(), T.int32(), T.int32()
    DIM = T.meta_var(blocks * WARPS)
    L = T.meta_var(pieces * 8)
    BEFORE = T.meta_var(WIDTH - 1)
    X = T.match_buffer(x, (batches, DIM, L), dtype, align=16)
    WEIGHT = T.match_buffer(weight, (DIM, WIDTH), "float32", align=16)
    BIAS = T.match_buffer(bias, (DIM,), "float32")
    WINDOW = T.match_buffer(window, (batches, 2, DIM, BEFORE), dtype)  # read from 0, written to 1
    OUT = T.match_buffer(out, (batches, DIM, L), dtype, align=16)

    T.device_entry()
    block, batch = T.cta_id([blocks * T.ceildiv(pieces, TILES * TILE // 8), batches])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    channel: T.let = block % blocks * WARPS + warp
    start: T.let = block // blocks * (TILES * TILE)

    tap = T.alloc_local((WIDTH,), "float32")
    now = T.alloc_local((ITEMS,), "float32")
    soon = T.alloc_local((ITEMS,), "float32")
    line = T.alloc_local((BEFORE + ITEMS,), "float32")
    edge = T.alloc_local((BEFORE,), "float32")  # the last inputs of the tile before
    y = T.alloc_local((ITEMS,), "float32")
    T.ptx["ld.global.nc.v4.f32"](*tap, WEIGHT.ptr_to([channel, 0]))
    for j in T.unroll(BEFORE):
        if start == 0:
            read_one(edge[j], WINDOW.ptr_to([batch, 0, channel, j]), dtype)
        else:
            read_one(edge[j], X.ptr_to([batch, channel, start - BEFORE + j]), dtype)
    for j in T.unroll(ITEMS):
        soon[j] = 0.0
    if start + lane * ITEMS < L:
        read(soon, X.ptr_to([batch, channel, start + lane * ITEMS]), dtype, "global")
    for i in range(TILES):
        t: T.let = start + i * TILE + lane * ITEMS
        if start + i * TILE >= L:
            break
        for j in T.unroll(ITEMS):
            now[j] = soon[j]
        if i + 1 < TILES and t + TILE < L:
            read(soon, X.ptr_to([batch, channel, t + TILE]), dtype, "global")
        # the lane before has what comes before
        for j in T.unroll(BEFORE):
            T.ptx["shfl.sync.up.b32"](line[j], now[ITEMS - BEFORE + j], 1, 0, ALL)
            T.ptx["selp.f32"](line[j], edge[j], line[j], lane == 0)
        for j in T.unroll(ITEMS):
            line[BEFORE + j] = now[j]
        for j in T.unroll(BEFORE):
            of_lane(edge[j], now[ITEMS - BEFORE + j], 31)
        for j in T.unroll(ITEMS):
            y[j] = BIAS[channel]
            for k in T.unroll(WIDTH):
                T.ptx["fma.rn.f32"](y[j], tap[k], line[j + k], y[j])
            silu(y[j], y[j])
        if t < L:
            write_global(OUT.ptr_to([batch, channel, t]), y, dtype)
    if block // blocks == 0 and lane < BEFORE:
        WINDOW[batch, 1, channel, lane] = X[batch, channel, L - BEFORE + lane]


# ---- references ------------------------------------------------------------------------------------------------------


def scanned(u, delta, z, A, B, C, D, bias, states, gate=True, starts=None):
    """Outputs and last states in float64, time by time."""
    u, delta, z, A, B, C, D, bias, h = (np.asarray(t, "float64") for t in (u, delta, z, A, B, C, D, bias, states))
    per_group = u.shape[1] // B.shape[1]
    B, C = (np.repeat(t, per_group, axis=1) for t in (B, C))
    out = np.zeros_like(u)
    for t in range(u.shape[2]):
        dt = np.log1p(np.exp(delta[:, :, t] + bias))
        if starts is not None:
            h = np.where(starts[:, t, None, None] != 0, 0, h)
        h = np.exp(dt[:, :, None] * A) * h + dt[:, :, None] * B[..., t] * u[:, :, t, None]
        out[:, :, t] = (h * C[..., t]).sum(-1) + D * u[:, :, t]
    return (out * z / (1 + np.exp(-z)) if gate else out), h


def convolved(x, weight, bias, window):
    """In float64; and the last inputs."""
    x, weight, bias, window = (np.asarray(t, "float64") for t in (x, weight, bias, window))
    line = np.concatenate([window, x], axis=2)
    y = sum(weight[:, k, None] * line[:, :, k : k + x.shape[2]] for k in range(WIDTH)) + bias[:, None]
    return y / (1 + np.exp(-y)), line[:, :, -(WIDTH - 1) :]
