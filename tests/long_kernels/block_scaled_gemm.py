# SPDX-License-Identifier: Apache-2.0
"""A layer of experts in fp8 with block scales (sm_100a): arrange, quantise, multiply by groups, combine.

Numbers are fp8; each 32 neighbours along K share a scale, a power of two (ue8m0). Each token goes to several experts;
the rows of an expert lie together, beginning at a multiple of 128 rows.

`arrange`     counts the rows of each expert, lays out where they begin, and gives each (token, choice) its row
`quantise`    bfloat16 to fp8 and scales, and each token to its rows; a warp has a token
`multiply`    C[rows of g] = act(alpha[g] * A[rows of g] @ B[g].T) for all groups g in one launch; C is bfloat16, or fp8
              with scales that the next `multiply` reads. With GATED, B has 32 columns of a gate, then 32 to be
              gated, and so on, and C half the width: act(gate) * other
`combine`     the weighted sum of a token's rows

and beside them `pack` (scales from the row-major order of files), `quantise_columns` (the transposed matrix with scales
along its rows, for gradients of weights) and `widen` (back to bfloat16).

Scales lie as tensor memory wants them: 128 rows x 4 blocks of K are 512 bytes, in which row r has the 4 bytes at
16 * (r % 32) + 4 * (r // 32), one for each block. `tcgen05.cp` copies them beside the sums before the products.

`multiply` works by pairs of CTAs (cta_group::2): a tile is 256 rows x BN columns, of which each CTA has 128 rows of A
and of the sums, and half of the columns of B. Warps have roles:

    warp 0       asks the copy engine for A, B and scales; all report to the barrier of the pair's first CTA
    warp 1       of the first CTA: copies scales, multiplies for both, commits to both
    warp 2       allocates tensor memory
    warps 4..7   the epilogue: 32 rows each, 64 columns at a time. Whole pieces leave through shared memory by the copy
                 engine; where a group ends within them, lanes store their rows themselves, so that rows of the next
                 group are left alone

The grid is persistent. A tile's number tells its group: the sizes are read while the kernel runs, each role walks
through them by itself (`Tiles`). With BN = 128 there are two sets of sums, and the epilogue of one tile runs beside the
products of the next.
"""

from __future__ import annotations

import numpy as np

from tirx.lang import MBarrier, Pipeline, PipelineState, SmemDescriptor, WarpRole
from tirx.script import tirx as T

ALL = 0xFFFFFFFF
BM, BK = 128, 128  # rows of a CTA, bytes of K in a slot: the width of the swizzle
PAIR = 2
BLOCK = 32  # numbers that share a scale
THREADS = 256
COLUMNS = 512  # of tensor memory
SWIZZLE_128B = 3
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
PTX_TYPE = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
LOG2E = 1.4426950408889634
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"


# ---- numbers ---------------------------------------------------------------------------------------------------------


@T.inline
def scale_for(code, inverse, low, high, largest):
    """The scales of two blocks with these greatest magnitudes, rounded up so that nothing overflows; two bytes. And
    what numbers are multiplied with."""
    exponent: T.uint32
    pair: T.uint16
    T.ptx["mul.f32"](low, low, T.float32(1.0 / largest))
    T.ptx["mul.f32"](high, high, T.float32(1.0 / largest))
    T.ptx["cvt.rp.satfinite.ue8m0x2.f32"](pair, high, low)
    T.ptx["cvt.u32.u16"](code, pair)
    for half in (0, 1):
        T.ptx["bfe.u32"](exponent, code, 8 * half, 8)
        T.ptx["sub.u32"](exponent, 254, exponent)
        T.ptx["shl.b32"](inverse[half], exponent, 23)  # two to the power of 127 less the exponent


@T.inline
def narrow(word, x, first, inverse, dtype):
    """Four numbers times the inverse of their scale, as fp8, the first in the lowest byte."""
    scaled = T.alloc_local((4,), "float32")
    half = T.alloc_local((2,), "uint16")
    for j in T.unroll(4):
        T.ptx["mul.f32"](scaled[j], x[first + j], inverse)
    for j in T.unroll(2):
        T.ptx[f"cvt.rn.satfinite.{PTX_TYPE[dtype]}x2.f32"](half[j], scaled[2 * j + 1], scaled[2 * j])
    T.ptx["mov.b32"](word, half[0], half[1])


@T.inline
def greater_magnitude(most, x):
    size: T.float32
    T.ptx["abs.f32"](size, x)
    T.ptx["max.f32"](most, most, size)


@T.inline
def silu(x):
    power: T.float32
    T.ptx["mul.f32"](power, x, T.float32(-LOG2E))
    T.ptx["ex2.approx.ftz.f32"](power, power)
    T.ptx["add.f32"](power, power, T.float32(1.0))
    T.ptx["rcp.approx.ftz.f32"](power, power)
    T.ptx["mul.f32"](x, x, power)


@T.inline
def lanes_before(n, who, lane):
    """How many lanes of `who` have a lower number."""
    below: T.uint32
    T.ptx["bmsk.clamp.b32"](below, 0, T.cast(lane, "uint32"))
    T.ptx["lop3.b32"](below, below, who, 0, 0xC0)  # both
    T.ptx["popc.b32"](n, below)


# ---- rows for experts ------------------------------------------------------------------------------------------------


@T.jit
def arrange(
    experts: T.handle,
    starts: T.handle,
    sizes: T.handle,
    places: T.handle,
    *,
    GROUPS: T.constexpr,
    WARPS: T.constexpr = 8,
):
    """One CTA. A warp has every WARPS-th expert, and looks at all choices in their order: twice, to count, and to
    number. A choice that is negative has no row."""
    n = T.int32()
    EXPERTS = T.match_buffer(experts, (n,), "int32")
    STARTS = T.match_buffer(starts, (GROUPS,), "int32")
    SIZES = T.match_buffer(sizes, (GROUPS,), "int32")
    PLACES = T.match_buffer(places, (n,), "int32")

    T.device_entry()
    T.cta_id([1])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    tid = T.thread_id([32 * WARPS])
    size = T.alloc_shared((GROUPS,), "uint32")
    start = T.alloc_shared((GROUPS,), "uint32")
    choice: T.int32
    mine: T.bool
    who: T.uint32
    many: T.uint32
    for i in range(tid, n, 32 * WARPS):
        PLACES[i] = -1

    for group in range(warp, GROUPS, WARPS):
        total: T.uint32 = 0
        for base in range(0, n, 32):
            choice = -1
            if base + lane < n:
                T.ptx["ld.global.ca.s32"](choice, EXPERTS.ptr_to([base + lane]))
            T.ptx["setp.eq.s32"](mine, choice, group)
            T.ptx["vote.sync.ballot.b32"](who, mine, ALL)
            T.ptx["popc.b32"](many, who)
            total += many
        if lane == 0:
            size[group] = total
    T.cuda.cta_sync()

    if warp == 0:
        carry: T.uint32 = 0
        for base in range(0, GROUPS, 32):
            padded: T.uint32 = 0
            through: T.uint32
            before: T.uint32
            inside: T.bool
            if base + lane < GROUPS:
                T.ptx["ld.shared.u32"](padded, size.ptr_to([base + lane]))
            T.ptx["add.u32"](padded, padded, BM - 1)
            T.ptx["and.b32"](padded, padded, 0xFFFFFFFF ^ (BM - 1))
            through = padded
            for distance in (1, 2, 4, 8, 16):
                T.ptx["shfl.sync.up.b32"](before, inside, through, distance, 0, ALL)
                T.ptx["add.u32"](through, through, before, pred=inside, preserve_dst=True)
            if base + lane < GROUPS:
                start[base + lane] = carry + through - padded
            T.ptx["redux.sync.max.u32"](before, through, ALL)
            carry += before
    T.cuda.cta_sync()

    for group in range(warp, GROUPS, WARPS):
        next: T.uint32 = start[group]
        if lane == 0:
            STARTS[group] = T.cast(next, "int32")
            SIZES[group] = T.cast(size[group], "int32")
        for base in range(0, n, 32):
            number: T.uint32
            choice = -1
            if base + lane < n:
                T.ptx["ld.global.ca.s32"](choice, EXPERTS.ptr_to([base + lane]))
            mine = choice == group
            T.ptx["vote.sync.ballot.b32"](who, mine, ALL)
            lanes_before(number, who, lane)
            if mine:
                T.ptx["st.global.u32"](PLACES.ptr_to([base + lane]), next + number)
            T.ptx["popc.b32"](many, who)
            T.ptx["add.u32"](next, next, many)


# ---- to fp8 ----------------------------------------------------------------------------------------------------------


@T.jit
def quantise(
    x: T.handle,
    places: T.handle,
    a: T.handle,
    scales: T.handle,
    *,
    CHOICES: T.constexpr,
    dtype: T.constexpr = "float8_e4m3fn",
    WARPS: T.constexpr = 4,
):
    """A lane has four neighbours, eight lanes a scale, a warp 128 numbers of a row at a time."""
    tokens, blocks, row_blocks = T.int32(), T.int32(), T.int32()
    X = T.match_buffer(x, (tokens, blocks * BK), "bfloat16", align=16)
    PLACES = T.match_buffer(places, (tokens, CHOICES), "int32")
    A = T.match_buffer(a, (row_blocks * BM, blocks * BK), dtype, align=16)
    SCALES = T.match_buffer(scales, (row_blocks, blocks, BM), "uint32", align=16)

    T.device_entry()
    block = T.cta_id([T.ceildiv(tokens, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    token: T.let = block * WARPS + warp
    if token >= tokens:
        return
    place = T.alloc_local((CHOICES,), "int32")
    for j in T.unroll(CHOICES):
        T.ptx["ld.global.nc.s32"](place[j], PLACES.ptr_to([token, j]))
    raw = T.alloc_local((2,), "uint32")
    v = T.alloc_local((4,), "float32")
    inverse = T.alloc_local((2,), "uint32")
    most: T.float32
    other: T.float32
    code: T.uint32
    word: T.uint32
    for k in range(blocks):
        T.ptx["ld.global.nc.L1::no_allocate.v2.b32"](*raw, X.ptr_to([token, k * BK + lane * 4]))
        most = 0.0
        for j in T.unroll(2):
            T.ptx["prmt.b32"](v[2 * j], raw[j], 0, 0x1044)
            T.ptx["prmt.b32"](v[2 * j + 1], raw[j], 0, 0x3244)
        for j in T.unroll(4):
            greater_magnitude(most, v[j])
        for distance in (4, 2, 1):
            T.ptx["shfl.sync.bfly.b32"](other, most, distance, 31, ALL)
            T.ptx["max.f32"](most, most, other)
        other = most
        scale_for(code, inverse, most, other, LARGEST[dtype])
        narrow(word, v, 0, T.cuda.uint_as_float(inverse[0]), dtype)
        # the four scales of the warp make a word: lanes of a scale say the same
        T.ptx["and.b32"](code, code, 0xFF)
        T.ptx["shl.b32"](code, code, T.cast(lane // 8 * 8, "uint32"))
        T.ptx["redux.sync.or.b32"](code, code, ALL)
        for j in T.unroll(CHOICES):
            if place[j] >= 0:
                T.ptx["st.global.b32"](A.ptr_to([place[j], k * BK + lane * 4]), word)
                if lane == j % 32:
                    SCALES[place[j] // BM, k, place[j] % 32 * 4 + place[j] // 32 % 4] = code


@T.jit
def quantise_columns(
    x: T.handle,
    a: T.handle,
    scales: T.handle,
    *,
    dtype: T.constexpr = "float8_e4m3fn",
):
    """A is x transposed. A CTA takes 128 rows and 32 columns of x through shared memory; a thread has 32 rows of a
    column, which are the 32 neighbours of a scale in A."""
    row_blocks, column_blocks = T.int32(), T.int32()
    X = T.match_buffer(x, (row_blocks * BK, column_blocks * BM), "bfloat16", align=16)
    A = T.match_buffer(a, (column_blocks * BM, row_blocks * BK), dtype, align=16)
    SCALES = T.match_buffer(scales, (column_blocks, row_blocks, 32, 4, 4), "uint8", align=16)

    T.device_entry()
    strip, k = T.cta_id([column_blocks * 4, row_blocks])
    warp = T.warp_id([4])
    lane = T.lane_id([32])
    tid = T.thread_id([128])
    tile = T.alloc_shared((BK, 40), "uint16", align=16)  # rows of 80 bytes: no two threads of a store meet in a bank
    for i in T.unroll(4):  # four pieces of 16 bytes a row
        piece: T.let = i * 128 + tid
        T.ptx["cp.async.ca.shared.global.L2::128B"](
            *(tile.ptr_to([piece // 4, piece % 4 * 8]), X.ptr_to([k * BK + piece // 4, strip * 32 + piece % 4 * 8]), 16)
        )
    T.ptx["cp.async.commit_group"]()
    T.ptx["cp.async.wait_group"](0)
    T.cuda.cta_sync()

    v = T.alloc_local((BLOCK,), "float32")
    inverse = T.alloc_local((2,), "uint32")
    word = T.alloc_local((BLOCK // 4,), "uint32")
    bits: T.uint16
    wide: T.uint32
    code: T.uint32
    most: T.float32 = 0.0
    again: T.float32
    for j in T.unroll(BLOCK):
        T.ptx["ld.shared.b16"](bits, tile.ptr_to([warp * BLOCK + j, lane]))
        T.ptx["cvt.u32.u16"](wide, bits)
        T.ptx["shl.b32"](v[j], wide, 16)
        greater_magnitude(most, v[j])
    again = most
    scale_for(code, inverse, most, again, LARGEST[dtype])
    for j in T.unroll(BLOCK // 4):
        narrow(word[j], v, 4 * j, T.cuda.uint_as_float(inverse[0]), dtype)
    column: T.let = strip * 32 + lane
    for j in T.unroll(2):
        T.ptx["st.global.v4.b32"](A.ptr_to([column, k * BK + warp * BLOCK + 16 * j]), *word[4 * j : 4 * j + 4])
    T.ptx["st.global.b8"](SCALES.ptr_to([column // BM, k, column % 32, column // 32 % 4, warp]), T.cast(code, "uint8"))


@T.jit
def widen(
    a: T.handle,
    scales: T.handle,
    out: T.handle,
    *,
    dtype: T.constexpr = "float8_e4m3fn",
    WARPS: T.constexpr = 4,
):
    """Back to bfloat16: each number exactly, and times its scale, both in bfloat16. A warp has a row."""
    row_blocks, blocks = T.int32(), T.int32()
    A = T.match_buffer(a, (row_blocks * BM, blocks * BK), dtype, align=16)
    SCALES = T.match_buffer(scales, (row_blocks, blocks, BM), "uint32", align=16)
    OUT = T.match_buffer(out, (row_blocks * BM, blocks * BK), "bfloat16", align=16)

    T.device_entry()
    block = T.cta_id([row_blocks * (BM // WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    row: T.let = block * WARPS + warp
    word: T.uint32
    code: T.uint32
    scale: T.uint32
    pair = T.alloc_local((2,), "uint16")
    halves = T.alloc_local((2,), "uint32")
    half = T.alloc_local((2,), "uint16")
    low: T.float32
    high: T.float32
    for k in range(blocks):
        T.ptx["ld.global.nc.b32"](word, A.ptr_to([row, k * BK + lane * 4]))
        T.ptx["ld.global.nc.b32"](code, SCALES.ptr_to([row // BM, k, row % 32 * 4 + row // 32 % 4]))
        T.ptx["bfe.u32"](code, code, T.cast(lane // 8 * 8, "uint32"), 8)
        T.ptx["mad.lo.u32"](code, code, 0x100, code)  # the same scale twice
        T.ptx["cvt.rn.bf16x2.ue8m0x2"](scale, T.cast(code, "uint16"))
        T.ptx["mov.b32"](pair[0], pair[1], word)
        for j in T.unroll(2):
            T.ptx[f"cvt.rn.f16x2.{PTX_TYPE[dtype]}x2"](halves[j], pair[j])
            T.ptx["mov.b32"](half[0], half[1], halves[j])
            T.ptx["cvt.f32.f16"](low, T.reinterpret("float16", half[0]))
            T.ptx["cvt.f32.f16"](high, T.reinterpret("float16", half[1]))
            T.ptx["cvt.rn.bf16x2.f32"](halves[j], high, low)
            T.ptx["mul.rn.bf16x2"](halves[j], halves[j], scale)
        T.ptx["st.global.v2.b32"](OUT.ptr_to([row, k * BK + lane * 4]), *halves)


@T.jit
def pack(codes: T.handle, scales: T.handle):
    """codes: a byte for each 32 numbers, row-major; scales: as `multiply` reads them. A CTA has 128 rows; a thread
    writes the same word of every 512 bytes, so it reads one row, four words at a time while there are four."""
    row_blocks, blocks = T.int32(), T.int32()
    CODES = T.match_buffer(codes, (row_blocks * BM, blocks), "uint32", align=16)
    SCALES = T.match_buffer(scales, (row_blocks, blocks, BM), "uint32", align=16)
    T.device_entry()
    block = T.cta_id([row_blocks])
    tid = T.thread_id([BM])
    row: T.let = block * BM + tid % 4 * 32 + tid // 4
    word = T.alloc_local((4,), "uint32")
    fours: T.int32 = 0
    if blocks % 4 == 0:  # rows begin at multiples of 16 bytes
        fours = blocks
    for k in range(0, fours, 4):
        T.ptx["ld.global.nc.L1::evict_last.v4.b32"](*word, CODES.ptr_to([row, k]))
        for j in T.unroll(4):
            T.ptx["st.global.b32"](SCALES.ptr_to([block, k + j, tid]), word[j])
    for k in range(fours, blocks):
        T.ptx["ld.global.nc.b32"](word[0], CODES.ptr_to([row, k]))
        T.ptx["st.global.b32"](SCALES.ptr_to([block, k, tid]), word[0])


# ---- products --------------------------------------------------------------------------------------------------------


@T.inline
def tensor_map(out, tensor, rows, columns, box_rows, box_columns, dtype, nbytes, swizzle):
    """A map of a row-major matrix; edges read zeros."""
    T.call_packed(
        "runtime.cuTensorMapEncodeTiled",
        *(out, dtype, 2, tensor.data),
        *(columns, rows),  # sizes, innermost first
        columns * nbytes,  # bytes from row to row
        *(box_columns, box_rows, 1, 1),
        *(0, swizzle, 2, 0),  # not interleaved, L2 in pieces of 128 bytes, zeros outside
    )


@T.meta_class
class Tiles:
    """Walks over the tiles of a pair of CTAs: `number` grows by `step`, `group` follows it. While `more`: the tile's
    first row in A and C, its first column, and how many rows of the group there are from there on."""

    def __init__(self, STARTS, SIZES, groups, columns, width, first, step):
        self.STARTS, self.SIZES = STARTS, SIZES
        self.groups, self.columns, self.width, self.step = groups, columns, width, step
        self.number = T.local_scalar("int32", first)
        self.group = T.local_scalar("int32", 0)
        self.before = T.local_scalar("int32", 0)  # tiles of the groups before
        self.size = T.local_scalar("int32", 0)
        self.high = T.local_scalar("int32", 0)  # tiles of the group, one above the other
        self.row = T.local_scalar("int32", 0)
        self.column = T.local_scalar("int32", 0)
        self.rows = T.local_scalar("int32", 0)
        self.more = T.local_scalar("bool", True)

    @T.inline
    def look(self):
        """The group that the number lies in."""
        wide: T.let = T.ceildiv(self.columns, self.width)
        found: T.bool = False
        while self.group < self.groups and not found:
            T.ptx["ld.global.nc.s32"](self.size, self.SIZES.ptr_to([self.group]))
            self.high = T.ceildiv(self.size, PAIR * BM)
            if self.number < self.before + self.high * wide:
                found = True
            else:
                self.before = self.before + self.high * wide
                self.group = self.group + 1
        self.more = found
        if found:
            start: T.int32
            inside: T.let = self.number - self.before
            T.ptx["ld.global.nc.s32"](start, self.STARTS.ptr_to([self.group]))
            self.row = start + inside % self.high * (PAIR * BM)
            self.column = inside // self.high * self.width
            self.rows = self.size - inside % self.high * (PAIR * BM)

    @T.inline
    def advance(self):
        self.number = self.number + self.step
        self.look()


@T.meta_class
class Slots:
    """The ring in shared memory: tiles of A and B, 128 bytes of K wide and swizzled, and their scales."""

    def __init__(self, pool, stages, width):
        self.width = width
        self.a = pool.alloc((stages, BM, BK), "uint8", align=1024)
        self.b = pool.alloc((stages, width // PAIR, BK), "uint8", align=1024)
        self.scales_a = pool.alloc((stages, BM), "uint32", align=128)
        self.scales_b = pool.alloc((stages, width // BM, BM), "uint32", align=128)
        self.pipe = Pipeline(pool, stages, full="tma", empty="tcgen05", init_full=1, init_empty=1, empty_phase_offset=1)

    def nbytes(self):
        """Of a slot of both CTAs; each has all scales of B."""
        return PAIR * (BM * BK + self.width // PAIR * BK + 4 * BM + 4 * self.width)

    @T.inline
    def request(self, at, maps, k, blocks, tile, row_block, column_block, rank):
        """What this CTA has of a slot; the bytes of both are reported to the first one's barrier."""
        A_map, B_map, SA_map, SB_map = maps
        self.pipe.empty.wait(at.stage, at.phase)
        if rank == 0:
            self.pipe.full.arrive(at.stage, self.nbytes())
        leader: T.uint32 = T.cuda.sm100_2sm_leader_smem_addr(self.pipe.full.ptr_to(at.stage))
        T.ptx[LOAD](
            *(self.a.ptr_to([at.stage, 0, 0]), T.address_of(A_map), k * BK, tile.row + rank * BM),
            leader,
        )
        T.ptx[LOAD](
            *(self.b.ptr_to([at.stage, 0, 0]), T.address_of(B_map), k * BK),
            tile.group * tile.columns + tile.column + rank * (self.width // PAIR),
            leader,
        )
        T.ptx[LOAD](
            *(self.scales_a.ptr_to([at.stage, 0]), T.address_of(SA_map), 0, (row_block + rank) * blocks + k), leader
        )
        for i in T.unroll(self.width // BM):
            T.ptx[LOAD](
                *(self.scales_b.ptr_to([at.stage, i, 0]), T.address_of(SB_map), 0, (column_block + i) * blocks + k),
                leader,
            )
        at.advance()


@T.meta_class
class Multiplier:
    """What the multiplying thread needs: descriptors of slot 0, the instruction's, and where things lie in tensor
    memory."""

    def __init__(self, slots, memory, sets, width, dtype):
        self.slots, self.memory, self.width = slots, memory, width
        self.scales_at = sets * width
        self.dtype = dtype
        self.of_a = SmemDescriptor()
        self.of_b = SmemDescriptor()
        self.of_scales_a = SmemDescriptor()
        self.of_scales_b = SmemDescriptor()
        self.instruction = T.local_scalar("uint32")

    @T.inline
    def begin(self):
        self.of_a.init(self.slots.a.ptr_to([0, 0, 0]), 1, 64, SWIZZLE_128B)
        self.of_b.init(self.slots.b.ptr_to([0, 0, 0]), 1, 64, SWIZZLE_128B)
        self.of_scales_a.init(self.slots.scales_a.ptr_to([0, 0]), 32, 8, 0)  # 32 rows of 16 bytes
        self.of_scales_b.init(self.slots.scales_b.ptr_to([0, 0, 0]), 32, 8, 0)
        T.cuda.tcgen05.encode_instr_descriptor_block_scaled(
            T.address_of(self.instruction),
            d_dtype="float32",
            a_dtype=self.dtype,
            b_dtype=self.dtype,
            sfa_dtype="float8_e8m0fnu",
            sfb_dtype="float8_e8m0fnu",
            sfa_tmem_addr=0,
            sfb_tmem_addr=0,
            M=PAIR * BM,
            N=self.width,
            K=32,
            trans_a=False,
            trans_b=False,
            n_cta_groups=PAIR,
        )

    @T.inline
    def multiply(self, at, set, first):
        """A slot: scales to tensor memory, then four products of 32 along K. They run in this order."""
        scales_a: T.let = self.memory + T.uint32(self.scales_at)
        scales_b: T.let = self.memory + T.uint32(self.scales_at + BM // 32)
        T.ptx["tcgen05.cp.cta_group::2.32x128b.warpx4"](scales_a, self.of_scales_a.add_16B_offset(at.stage * 32))
        for i in T.unroll(self.width // BM):
            T.ptx["tcgen05.cp.cta_group::2.32x128b.warpx4"](
                scales_b + T.cast(i * (BM // 32), "uint32"),
                self.of_scales_b.add_16B_offset(at.stage * (self.width // 4) + i * 32),
            )
        for kk in T.unroll(BK // 32):
            T.cuda.runtime_instr_desc(T.address_of(self.instruction), kk)  # which byte of the scales
            T.ptx["tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X"](
                self.memory + T.cast(set * self.width, "uint32"),
                self.of_a.add_16B_offset(at.stage * (BM * BK // 16) + kk * 2),
                self.of_b.add_16B_offset(at.stage * (self.width // PAIR * BK // 16) + kk * 2),
                self.instruction,
                scales_a,
                scales_b,
                not first or kk != 0,  # the first one overwrites
            )
        self.slots.pipe.empty.arrive(at.stage, cta_group=PAIR, cta_mask=3)


@T.meta_class
class Epilogue:
    """A warp's 32 rows of sums: 64 columns at a time in registers."""

    def __init__(self, pool, memory, quarter, lane, C, SCALES, columns, activation):
        self.memory, self.quarter, self.lane = memory, quarter, lane
        self.C, self.SCALES, self.columns, self.activation = C, SCALES, columns, activation
        self.piece = pool.alloc((4, 2, 32, 128), "uint8", align=1024)  # two for each warp
        self.x = T.alloc_local((64,), "float32")
        self.y = T.alloc_local((64,), "float32")  # what was read, with GATED
        self.packed = T.alloc_local((32,), "uint32")
        self.turn = T.local_scalar("int32", 0)

    @T.inline
    def read(self, to, column):
        """64 columns of this warp's window of tensor memory."""
        for h in T.unroll(2):
            T.ptx["tcgen05.ld.sync.aligned.32x32b.x32.b32"](
                *to[32 * h : 32 * h + 32], T.cuda.get_tmem_addr(self.memory, self.quarter * 32, column + 32 * h)
            )
        T.ptx["tcgen05.wait::ld.sync.aligned"]()
        T.cuda.wgmma.fence_operand(*to)

    @T.inline
    def load(self, column, alpha):
        """64 results, from as many sums."""
        self.read(self.x, column)
        for j in T.unroll(64):
            T.ptx["mul.f32"](self.x[j], self.x[j], alpha)
            if self.activation == "silu":
                silu(self.x[j])

    @T.inline
    def load_gated(self, column, alpha):
        """64 results, from twice as many sums."""
        for part in T.unroll(2):
            self.read(self.y, column + part * 64)
            for j in T.unroll(64):
                T.ptx["mul.f32"](self.y[j], self.y[j], alpha)
            for j in T.unroll(32):
                if self.activation == "silu":
                    silu(self.y[j])
                T.ptx["mul.f32"](self.x[part * 32 + j], self.y[j], self.y[32 + j])

    @T.inline
    def wide(self, map, row, column, rows):
        """As bfloat16: by the copy engine where all 32 rows belong to the group."""
        for j in T.unroll(32):
            T.ptx["cvt.rn.bf16x2.f32"](self.packed[j], self.x[2 * j + 1], self.x[2 * j])
        if rows >= 32:
            if self.lane == 0:
                T.ptx["cp.async.bulk.wait_group.read"](1)  # the store before the last has read its piece
            T.cuda.warp_sync()
            for p in T.unroll(8):
                T.ptx["st.shared.v4.b32"](
                    self.piece.ptr_to([self.quarter, self.turn, self.lane, (p ^ self.lane % 8) * 16]),
                    *self.packed[4 * p : 4 * p + 4],
                )
            T.ptx["fence.proxy.async.shared::cta"]()
            T.cuda.warp_sync()
            if self.lane == 0:
                T.ptx[STORE](T.address_of(map), column, row, self.piece.ptr_to([self.quarter, self.turn, 0, 0]))
                T.ptx["cp.async.bulk.commit_group"]()
            self.turn = self.turn ^ 1
        elif self.lane < rows:
            for p in T.unroll(8):
                T.ptx["st.global.v4.b32"](
                    self.C.ptr_to([row + self.lane, column + 8 * p]), *self.packed[4 * p : 4 * p + 4]
                )

    @T.inline
    def narrow(self, row, column, rows, dtype):
        """As fp8, each lane its row: two blocks, two scales."""
        most = T.alloc_local((2,), "float32")
        inverse = T.alloc_local((2,), "uint32")
        code: T.uint32
        for h in T.unroll(2):
            most[h] = 0.0
            for j in T.unroll(32):
                greater_magnitude(most[h], self.x[32 * h + j])
        scale_for(code, inverse, most[0], most[1], LARGEST[dtype])
        for h in T.unroll(2):
            for j in T.unroll(8):
                narrow(self.packed[8 * h + j], self.x, 32 * h + 4 * j, T.cuda.uint_as_float(inverse[h]), dtype)
        if self.lane < rows:
            r: T.let = row + self.lane
            for p in T.unroll(4):
                T.ptx["st.global.v4.b32"](self.C.ptr_to([r, column + 16 * p]), *self.packed[4 * p : 4 * p + 4])
            T.ptx["st.global.b16"](
                self.SCALES.ptr_to([r // BM, column // BM, r % 32, r // 32 % 4, column // BLOCK % 4]),
                T.cast(code, "uint16"),
            )


@T.jit
def multiply(
    a: T.handle,
    scales_a: T.handle,
    b: T.handle,
    scales_b: T.handle,
    starts: T.handle,
    sizes: T.handle,
    alpha: T.handle,
    c: T.handle,
    scales_c: T.handle,
    *,
    dtype: T.constexpr = "float8_e4m3fn",
    OUT: T.constexpr = "bfloat16",
    ACTIVATION: T.constexpr = None,
    GATED: T.constexpr = False,
    BN: T.constexpr = 128,
    STAGES: T.constexpr = 4,
    SMS: T.constexpr = 148,
):
    """a is (rows, K), b is (groups, columns, K), both of `dtype`, with their scales; starts and sizes say which rows
    belong to a group, each start a multiple of 128; alpha has a factor for each group, as global scales of operands.

    c is (rows, columns), or half as many columns with GATED, of OUT; rows of no group are left as they are. scales_c
    gets the scales of c where OUT is fp8: (rows / 128, columns / 128, 32, 4, 4) bytes, which are the words that
    scales_a is made of. K, the rows and the columns are multiples of 128.

    BN = 128 is for groups of few rows, where tiles are short and the epilogue counts; BN = 256 reads A half as
    often."""
    groups, column_blocks, blocks, row_blocks = T.int32(), T.int32(), T.int32(), T.int32()
    M = T.meta_var(row_blocks * BM)
    N = T.meta_var(column_blocks * BM)
    K = T.meta_var(blocks * BK)
    WIDTH = T.meta_var(column_blocks * (BM // (2 if GATED else 1)))  # of C
    A = T.match_buffer(a, (M, K), dtype, align=16)
    SCALES_A = T.match_buffer(scales_a, (row_blocks, blocks, BM), "uint32", align=16)
    B = T.match_buffer(b, (groups, N, K), dtype, align=16)
    SCALES_B = T.match_buffer(scales_b, (groups, column_blocks, blocks, BM), "uint32", align=16)
    STARTS = T.match_buffer(starts, (groups,), "int32")
    SIZES = T.match_buffer(sizes, (groups,), "int32")
    ALPHA = T.match_buffer(alpha, (groups,), "float32")
    C = T.match_buffer(c, (M, WIDTH), OUT, align=16)
    SCALES_C = T.match_buffer(scales_c, (row_blocks, T.ceildiv(WIDTH, BM), 32, 4, 4), "uint8", align=16)  # of fp8
    T.static_assert(BN in (128, 256))
    A_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    B_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    SA_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    SB_map: T.let = T.tvm_stack_alloca("tensormap", 1)
    tensor_map(A_map, A, M, K, BM, BK, "uint8", 1, SWIZZLE_128B)
    tensor_map(B_map, B, groups * N, K, BN // PAIR, BK, "uint8", 1, SWIZZLE_128B)
    tensor_map(SA_map, SCALES_A, row_blocks * blocks, BM, 1, BM, "uint32", 4, 0)
    tensor_map(SB_map, SCALES_B, groups * column_blocks * blocks, BM, 1, BM, "uint32", 4, 0)
    if OUT == "bfloat16":
        C_map: T.let = T.tvm_stack_alloca("tensormap", 1)
        tensor_map(C_map, C, M, WIDTH, 32, 64, "bfloat16", 2, SWIZZLE_128B)

    SETS = T.meta_var(2 if BN == 128 else 1)  # of sums
    T.device_entry()
    block = T.cta_id([SMS // PAIR * PAIR])
    rank = T.cta_id_in_cluster([PAIR])
    warp = T.warp_id([THREADS // 32])
    lane = T.lane_id([32])
    tid = T.thread_id([THREADS])

    pool = T.SMEMPool()
    slots = Slots(pool, STAGES, BN)
    sums = Pipeline(pool, SETS, full="tcgen05", empty="mbar", init_full=1, init_empty=4 * PAIR, empty_phase_offset=1)
    ended = MBarrier(pool, 1)
    held = pool.alloc((1,), "uint32", align=16)
    ended.init(PAIR)
    if warp == 2:
        T.ptx["tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"](held.ptr_to([0]), T.uint32(COLUMNS))
    if warp == 3:
        if T.cuda.elect_sync():
            for map in (A_map, B_map, SA_map, SB_map):
                T.ptx["prefetch.tensormap"](T.address_of(map))
    T.ptx["fence.mbarrier_init.release.cluster"]()
    T.ptx["tcgen05.fence::before_thread_sync"]()
    T.cuda.cluster_sync()
    T.ptx["tcgen05.fence::after_thread_sync"]()
    memory: T.uint32 = held[0]
    read = sums.empty.remote_view(0)  # the first CTA's: there one waits for the epilogues of both
    T.ptx["griddepcontrol.wait"]()

    out = Epilogue(pool, memory, warp % 4, lane, C, SCALES_C, N, ACTIVATION)
    pool.commit()
    tile = Tiles(STARTS, SIZES, groups, N, BN, block // PAIR, SMS // PAIR)
    at = PipelineState(STAGES, 0)
    set = PipelineState(SETS, 0)
    tile.look()

    with WarpRole(warp, 0):
        if T.cuda.elect_sync():
            while tile.more:
                row_block: T.let = tile.row // BM
                column_block: T.let = tile.group * column_blocks + tile.column // BM
                for k in range(blocks):
                    slots.request(at, (A_map, B_map, SA_map, SB_map), k, blocks, tile, row_block, column_block, rank)
                tile.advance()
    with WarpRole(warp, 1):
        if rank == 0:
            if T.cuda.elect_sync():
                tensor = Multiplier(slots, memory, SETS, BN, dtype)
                tensor.begin()
                while tile.more:
                    sums.empty.wait(set.stage, set.phase)
                    T.ptx["tcgen05.fence::after_thread_sync"]()
                    for k in range(blocks):
                        slots.pipe.full.wait(at.stage, at.phase)
                        T.ptx["tcgen05.fence::after_thread_sync"]()
                        tensor.multiply(at, set.stage, k == 0)
                        at.advance()
                    sums.full.arrive(set.stage, cta_group=PAIR, cta_mask=3)
                    set.advance()
                    tile.advance()
    if warp >= 4:
        while tile.more:
            row: T.int32 = tile.row + rank * BM + warp % 4 * 32
            rows: T.int32 = T.min(tile.rows - rank * BM - warp % 4 * 32, 32)
            scale: T.float32
            T.ptx["ld.global.nc.f32"](scale, ALPHA.ptr_to([tile.group]))
            sums.full.wait(set.stage, set.phase)
            T.ptx["tcgen05.fence::after_thread_sync"]()
            for s in T.unroll(BN // (128 if GATED else 64)):
                column: T.let = tile.column // (2 if GATED else 1) + s * 64
                if GATED:
                    out.load_gated(set.stage * BN + s * 128, scale)
                else:
                    out.load(set.stage * BN + s * 64, scale)
                if column < WIDTH and rows > 0:
                    if OUT == "bfloat16":
                        out.wide(C_map, row, column, rows)
                    else:
                        out.narrow(row, column, rows, OUT)
            T.ptx["tcgen05.fence::before_thread_sync"]()
            T.cuda.warp_sync()
            if lane == 0:
                read.arrive(set.stage)
            set.advance()
            tile.advance()
        if lane == 0:
            T.ptx["cp.async.bulk.wait_group"](0)
    T.ptx["tcgen05.fence::before_thread_sync"]()
    T.cuda.cta_sync()
    # the pair leaves together: tensor memory is given back when both are done with it
    if tid == 0:
        ended.arrive(0, remote=0)
        ended.arrive(0, remote=1)
    ended.wait(0, 0)
    if warp == 2:
        T.ptx["tcgen05.fence::after_thread_sync"]()
        T.ptx["tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned"]()
        T.ptx["tcgen05.dealloc.cta_group::2.sync.aligned.b32"](memory, T.uint32(COLUMNS))
    T.ptx["griddepcontrol.launch_dependents"]()


# ---- back to tokens --------------------------------------------------------------------------------------------------


@T.jit
def combine(
    c: T.handle,
    places: T.handle,
    weights: T.handle,
    out: T.handle,
    *,
    CHOICES: T.constexpr,
    THREADS_A_TOKEN: T.constexpr = 128,
):
    """Eight columns a thread; a choice without a row counts nothing. Additions are in the order of the choices."""
    rows, tokens, pieces = T.int32(), T.int32(), T.int32()
    C = T.match_buffer(c, (rows, pieces * 8), "bfloat16", align=16)
    PLACES = T.match_buffer(places, (tokens, CHOICES), "int32")
    WEIGHTS = T.match_buffer(weights, (tokens, CHOICES), "float32")
    OUT = T.match_buffer(out, (tokens, pieces * 8), "bfloat16", align=16)

    T.device_entry()
    token = T.cta_id([tokens])
    tid = T.thread_id([THREADS_A_TOKEN])
    place = T.alloc_local((CHOICES,), "int32")
    weight = T.alloc_local((CHOICES,), "float32")
    words = T.alloc_local((CHOICES * 4,), "uint32")
    sum = T.alloc_local((8,), "float32")
    low: T.float32
    high: T.float32
    policy: T.uint64
    T.ptx["createpolicy.fractional.L2::evict_first.b64"](policy, T.float32(1.0))
    T.ptx["griddepcontrol.wait"]()
    for j in T.unroll(CHOICES):
        T.ptx["ld.global.nc.s32"](place[j], PLACES.ptr_to([token, j]))
        T.ptx["ld.global.nc.f32"](weight[j], WEIGHTS.ptr_to([token, j]))
    for piece in range(tid, pieces, THREADS_A_TOKEN):
        for j in T.unroll(CHOICES):  # all loads before the first sum
            for i in T.unroll(4):
                words[4 * j + i] = T.uint32(0)
            if place[j] >= 0:
                T.ptx["ld.global.L2::cache_hint.v4.b32"](
                    *words[4 * j : 4 * j + 4], C.ptr_to([place[j], piece * 8]), policy
                )
        for i in T.unroll(8):
            sum[i] = 0.0
        for j in T.unroll(CHOICES):
            for i in T.unroll(4):
                T.ptx["shl.b32"](low, words[4 * j + i], 16)
                T.ptx["and.b32"](high, words[4 * j + i], 0xFFFF0000)
                T.ptx["fma.rn.f32"](sum[2 * i], weight[j], low, sum[2 * i])
                T.ptx["fma.rn.f32"](sum[2 * i + 1], weight[j], high, sum[2 * i + 1])
        for i in T.unroll(4):
            T.ptx["cvt.rn.bf16x2.f32"](words[i], sum[2 * i + 1], sum[2 * i])
        T.ptx["st.global.cs.v4.b32"](OUT.ptr_to([token, piece * 8]), *words[0:4])


# ---- references ------------------------------------------------------------------------------------------------------


def pack_scales(codes: np.ndarray) -> np.ndarray:
    """Codes (..., rows, K // 32), a byte each, as `multiply` reads them: (..., rows // 128, K // 128, 128) words."""
    *more, rows, blocks = codes.shape
    x = codes.reshape(*more, rows // 128, 4, 32, blocks // 4, 4)  # row // 32, row % 32, block // 4, block % 4
    x = np.moveaxis(x, -2, -4)  # block // 4, row // 32, row % 32, block % 4
    x = np.swapaxes(x, -3, -2)
    return np.ascontiguousarray(x).view("uint32").reshape(*more, rows // 128, blocks // 4, 128)


def unpack_scales(words: np.ndarray) -> np.ndarray:
    *more, row_blocks, blocks, _ = words.shape
    x = np.ascontiguousarray(words).view("uint8").reshape(*more, row_blocks, blocks, 32, 4, 4)
    x = np.moveaxis(np.swapaxes(x, -3, -2), -4, -2)
    return np.ascontiguousarray(x).reshape(*more, row_blocks * 128, blocks * 4)


def wide(numbers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """What fp8 numbers and the codes of their scales mean, in float64."""
    return numbers.astype("float64") * np.repeat(2.0 ** (codes.astype("float64") - 127), BLOCK, axis=-1)


def multiplied(a, codes_a, b, codes_b, starts, sizes, alpha, activation=None, gated=False):
    """Rows that belong to no group are NaN."""
    out = np.full((a.shape[0], b.shape[1] // (2 if gated else 1)), np.nan)
    a, b = wide(a, codes_a), wide(b, codes_b)
    for g, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        y = alpha[g] * (a[start : start + size] @ b[g].T)
        other = 1
        if gated:
            y, other = np.moveaxis(y.reshape(size, -1, 2, 32), 2, 0).reshape(2, size, -1)
        out[start : start + size] = (y / (1 + np.exp(-y)) if activation == "silu" else y) * other
    return out
