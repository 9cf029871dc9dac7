# SPDX-License-Identifier: Apache-2.0
"""The K largest (or least) elements of each row, by radix selection over a cluster; and a router of experts by warps.

`topk`: a cluster of CTAs works on a row, each CTA on one slice of it that stays in shared memory. Elements become keys:
unsigned numbers in the order of the values, NaN the largest. The K-th largest key is found digit by digit from the top:

    count        each CTA counts the digits of its keys in a histogram in shared memory. Lanes with the same digit find
                 each other by match.any and send one addition
    reduce       CTA r adds up the bins r * 256 / CLUSTER and on of all CTAs through distributed shared memory, and
                 writes the sums into all of them
    find         the first warp of each CTA adds up the sums from the highest bin down and finds the one in which the
                 K-th key lies; its digit continues the prefix
    ...          until the bin holds exactly as many keys as are still needed, or all digits are known

Then the keys above the prefix are taken, in any order, and of those that equal it the first ones of the row, so that
the result does not depend on the order in which CTAs run. The first CTA sorts what was taken and writes it; with
SOFTMAX, it writes probabilities over the K instead of the values. The grid is persistent: a cluster takes every
CLUSTERS-th row.

`route`: a warp chooses K of a token's experts. Experts form groups; only the KEEP groups with the largest sum of their
two best experts take part. Weights are the chosen experts' scores before the bias, made to add up to SCALE.
"""

from __future__ import annotations

import numpy as np

import tirx
from tirx.lang import TMABar
from tirx.script import tirx as T

DIGIT = 8  # bits
BINS = 1 << DIGIT
COPIES = 2  # of the histogram: warps with odd numbers count in the second
ALL = 0xFFFFFFFF
SIGN = 0x80000000
LOG2E = 1.4426950408889634
KEY_BITS = {"float32": 32, "int32": 32, "bfloat16": 16}  # the digits below are the same in all keys
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"


# ---- keys ------------------------------------------------------------------------------------------------------------


@T.inline
def key_of_float(key, bits, largest):
    """The key of the float32 with these bits: negative numbers turn around, positive ones go above them."""
    sign: T.int32
    flip: T.uint32
    nan: T.bool
    T.ptx["testp.notanumber.f32"](nan, T.cuda.uint_as_float(bits))  # `key` may be where the bits are
    T.ptx["shr.s32"](sign, T.reinterpret("int32", bits), 31)  # all ones where negative
    T.ptx["or.b32"](flip, sign, SIGN)
    T.ptx["xor.b32"](key, bits, flip)
    T.ptx["selp.b32"](key, ALL, key, nan)
    if not largest:
        T.ptx["not.b32"](key, key)


@T.inline
def float_of_key(bits, key, largest):
    sign: T.int32
    flip: T.uint32
    straight: T.uint32 = key
    if not largest:
        T.ptx["not.b32"](straight, key)
    T.ptx["shr.s32"](sign, T.reinterpret("int32", straight), 31)  # all ones where the value was positive
    T.ptx["not.b32"](flip, sign)
    T.ptx["or.b32"](flip, flip, SIGN)
    T.ptx["xor.b32"](bits, straight, flip)


@T.inline
def key_of(key, bits, dtype, largest):
    if dtype == "int32":
        T.ptx["xor.b32"](key, bits, SIGN)
        if not largest:
            T.ptx["not.b32"](key, key)
    else:
        key_of_float(key, bits, largest)


@T.inline
def key_of_element(key, X, row, i, dtype, largest):
    """The key of an element that is not in shared memory."""
    word: T.uint32
    if dtype == "bfloat16":
        half: T.uint16
        T.ptx["ld.global.nc.L1::no_allocate.b16"](half, X.ptr_to([row, i]))
        T.ptx["cvt.u32.u16"](word, half)
        T.ptx["shl.b32"](word, word, 16)
    else:
        T.ptx["ld.global.nc.L1::no_allocate.b32"](word, X.ptr_to([row, i]))
    key_of(key, word, dtype, largest)


# ---- the cluster -----------------------------------------------------------------------------------------------------


@T.inline
def remote(address, pointer, rank):
    """Where the CTA `rank` of the cluster has what this one has at `pointer`."""
    T.ptx.mapa.shared__cluster.u32(address, T.cuda.cvta_generic_to_shared(pointer), T.cast(rank, "uint32"))


@T.inline
def meet(cluster):
    """All threads of the cluster wait for each other, and see what was written before."""
    if cluster == 1:
        T.cuda.cta_sync()
    else:
        T.ptx["barrier.cluster.arrive.release.aligned"]()
        T.ptx["barrier.cluster.wait.acquire.aligned"]()


# ---- state -----------------------------------------------------------------------------------------------------------


@T.meta_class
class Shared:
    """What a CTA has in shared memory."""

    def __init__(self, pool, capacity, chunk, best, warps, cluster):
        self.keys = pool.alloc((capacity,), "uint32", align=128)
        self.best = pool.alloc((best,), "uint64", align=16)  # of the cluster's first CTA: key, not index
        self.histogram = pool.alloc((COPIES, BINS), "uint32", align=16)
        self.total = pool.alloc((BINS,), "uint32", align=16)  # of the cluster
        self.found = pool.alloc((4,), "uint32", align=16)  # digit, keys above it, keys with it
        self.of_warp = pool.alloc((warps,), "uint32")
        self.scratch = pool.alloc((warps,), "float32")
        self.ties = pool.alloc((cluster,), "uint32")  # how many each CTA has
        self.taken = pool.alloc((1,), "uint32")  # of the first CTA: how many are in `best`
        self.arrived = TMABar(pool, capacity // chunk)

    @T.inline
    def clear(self, tid, threads):
        for i in range(tid, COPIES * BINS // 4, threads):
            T.ptx["st.shared.v4.u32"](T.address_of(self.histogram[i * 4 // BINS, i * 4 % BINS]), 0, 0, 0, 0)

    @T.inline
    def count(self, digit, live, lane, warp):
        """One more of `digit` for each lane where `live`; the whole warp comes here."""
        label: T.uint32
        same: T.uint32
        alike: T.uint32
        first: T.uint32
        T.ptx["selp.u32"](label, digit, BINS, live)  # those who do not count are alike, too
        T.ptx["match.any.sync.b32"](same, label, ALL)
        T.ptx["popc.b32"](alike, same)
        T.ptx["brev.b32"](first, same)
        T.ptx["bfind.shiftamt.u32"](first, first)  # how many zeros stand below the lowest one
        leads: T.let = live and first == T.cast(lane, "uint32")
        T.ptx["red.shared.add.u32"](
            self.histogram.ptr_to([warp % COPIES, T.cast(label % BINS, "int32")]), alike, pred=leads
        )

    @T.inline
    def reduce(self, rank, tid, cluster):
        """`total` becomes the sum of the histograms of all CTAs, in all of them."""
        part: T.uint32
        sum: T.uint32 = 0
        address: T.uint32
        share = T.meta_var(BINS // cluster)
        meet(cluster)
        if tid < share:
            bin: T.let = rank * share + tid
            for r in T.unroll(cluster):
                for copy in T.unroll(COPIES):
                    remote(address, self.histogram.ptr_to([copy, bin]), r)
                    T.ptx["ld.shared::cluster.u32"](part, address)
                    T.ptx["add.u32"](sum, sum, part)
            for r in T.unroll(cluster):
                remote(address, self.total.ptr_to([bin]), r)
                T.ptx["st.shared::cluster.u32"](address, sum)
        meet(cluster)

    @T.inline
    def find(self, need, lane):
        """A warp finds the bin of the need-th largest key. Lane l has eight bins, those of lane 0 are the highest."""
        own = T.alloc_local((8,), "uint32")
        sum: T.uint32
        through: T.uint32
        other: T.uint32
        inside: T.bool
        lowest: T.let = BINS - 8 - 8 * lane
        T.ptx["ld.shared.v4.u32"](*own[0:4], self.total.ptr_to([lowest]))
        T.ptx["ld.shared.v4.u32"](*own[4:8], self.total.ptr_to([lowest + 4]))
        sum = own[0]
        for j in T.unroll(7):
            sum += own[j + 1]
        through = sum
        for step in (1, 2, 4, 8, 16):
            T.ptx["shfl.sync.up.b32"](other, inside, through, step, 0, ALL)
            T.ptx["add.u32"](through, through, other, pred=inside, preserve_dst=True)
        above: T.uint32 = through - sum
        for j in T.unroll(8):
            here: T.let = own[7 - j]
            if above < need and need <= above + here:
                T.ptx["st.shared.v4.u32"](self.found.ptr_to([0]), T.cast(lowest + 7 - j, "uint32"), above, here, 0)
            above += here

    @T.inline
    def put(self, slot, key, index, live):
        """A key and its index go into the first CTA's list."""
        address: T.uint32
        low: T.uint32
        remote(address, self.best.ptr_to([0]), 0)
        T.ptx["mad.lo.u32"](address, slot, 8, address)
        T.ptx["not.b32"](low, index)  # of equal keys, the first in the row is the greater
        T.ptx["st.shared::cluster.v2.b32"](address, low, key, pred=live)

    @T.inline
    def take(self, key, index, live, lane):
        """Room in the first CTA's list for each lane where `live`: one addition a warp."""
        address: T.uint32
        who: T.uint32
        many: T.uint32
        before: T.uint32
        first: T.uint32 = 0
        T.ptx["vote.sync.ballot.b32"](who, live, ALL)
        T.ptx["popc.b32"](many, who)
        remote(address, self.taken.ptr_to([0]), 0)
        asks: T.let = lane == 0 and many != 0
        T.ptx["atom.relaxed.cluster.shared::cluster.add.u32"](first, address, many, pred=asks, preserve_dst=True)
        T.ptx["shfl.sync.idx.b32"](first, first, 0, 31, ALL)
        lanes_before(before, who, lane)
        self.put(first + before, key, index, live)


@T.inline
def lanes_before(n, who, lane):
    """How many lanes of `who` have a lower number."""
    mask: T.uint32
    T.ptx["bmsk.clamp.b32"](mask, 0, T.cast(lane, "uint32"))
    T.ptx["and.b32"](mask, mask, who)
    T.ptx["popc.b32"](n, mask)


@T.meta_class
class Selection:
    """What is known of the K-th largest key: its first `known` bits are `prefix`; `need` of the keys that begin so are
    among the K; `exact` where these are all that there are."""

    def __init__(self):
        self.prefix = T.local_scalar("uint32", 0)
        self.need = T.local_scalar("uint32", 0)
        self.exact = T.local_scalar("bool", False)
        self.rest = T.local_scalar("uint32", 32)  # how many bits are not known yet

    @T.inline
    def begin(self, k, n):
        self.prefix = T.uint32(0)
        self.rest = T.uint32(32)
        T.ptx["min.u32"](self.need, T.uint32(k), T.cast(n, "uint32"))
        self.exact = self.need == T.cast(n, "uint32")  # all of the row

    @T.inline
    def next(self, sm):
        """The bin that was found continues the prefix."""
        digit: T.uint32
        above: T.uint32
        inside: T.uint32
        unused: T.uint32
        T.ptx["ld.shared.v4.u32"](digit, above, inside, unused, sm.found.ptr_to([0]))
        T.ptx["bfi.b32"](self.prefix, self.prefix, digit, DIGIT, 32 - DIGIT)  # the digit below, the prefix above
        self.need = self.need - above
        self.exact = self.need == inside
        self.rest = self.rest - DIGIT

    @T.inline
    def head(self, h, key):
        """The bits of a key that are known of the K-th; none are known at first."""
        T.ptx["shf.r.clamp.b32"](h, key, 0, self.rest)

    @T.inline
    def digit(self, d, key):
        """The first digit that is not known."""
        T.ptx["bfe.u32"](d, key, self.rest - DIGIT, DIGIT)


@T.meta_class
class Slice:
    """The part of the row that a CTA has: elements `start` and on, `length` of them, the first `kept` as keys in shared
    memory."""

    def __init__(self, X, n, rank, cluster, capacity, dtype, largest):
        self.X = X
        self.dtype = dtype
        self.largest = largest
        self.start = T.local_scalar("int32", 0)
        self.length = T.local_scalar("int32", 0)
        self.kept = T.local_scalar("int32", 0)
        share = T.ceildiv(T.ceildiv(n, cluster), 8) * 8  # slices begin at multiples of 16 bytes
        T.assign(self.start, T.min(rank * share, n))
        T.assign(self.length, T.min(share, n - self.start))
        T.assign(self.kept, T.min(self.length, capacity))

    @T.inline
    def key(self, k, sm, row, i):
        if i < self.kept:
            T.ptx["ld.shared.u32"](k, sm.keys.ptr_to([i]))
        else:
            key_of_element(k, self.X, row, self.start + i, self.dtype, self.largest)

    @T.inline
    def look(self, key, head, sm, row, known, i):
        """A key, zero behind the end, and the bits of it that are known of the K-th."""
        key = T.uint32(0)
        if i < self.length:
            self.key(key, sm, row, i)
        known.head(head, key)

    @T.inline
    def request(self, sm, row, policy, chunk):
        """One thread asks for all that is to be kept; each chunk reports to a barrier of its own."""
        T.ptx["fence.proxy.async.shared::cta"]()  # the keys of the row before were written by threads
        for c in range(T.ceildiv(self.kept, chunk)):
            nbytes: T.uint32 = T.cast(T.min(chunk, self.kept - c * chunk) * 4, "uint32")
            sm.arrived.arrive(c, nbytes)
            T.ptx[BULK](
                sm.keys.ptr_to([c * chunk]),
                self.X.ptr_to([row, self.start + c * chunk]),
                nbytes,
                sm.arrived.ptr_to(c),
                policy,
            )

    @T.inline
    def convert(self, sm, tid, lane, warp, phase, chunk, threads):
        """What arrives becomes keys, where it lies; their first digits are counted."""
        word = T.alloc_local((4,), "uint32")
        digit: T.uint32
        for c in range(T.ceildiv(self.kept, chunk)):
            sm.arrived.wait(c, phase)
            for part in T.unroll(chunk // (4 * threads)):
                i: T.let = c * chunk + (part * threads + tid) * 4
                live: T.let = i < self.kept
                for j in T.unroll(4):
                    word[j] = T.uint32(0)
                if live:
                    T.ptx["ld.shared.v4.b32"](*word, sm.keys.ptr_to([i]))
                for j in T.unroll(4):
                    key_of(word[j], word[j], self.dtype, self.largest)
                    T.ptx["shr.u32"](digit, word[j], 32 - DIGIT)
                    sm.count(digit, live, lane, warp)
                if live:
                    T.ptx["st.shared.v4.b32"](sm.keys.ptr_to([i]), *word)

    @T.inline
    def load(self, sm, row, tid, lane, warp, threads):
        """The same by loads of single elements: 16-bit types, and rows that begin anywhere."""
        key: T.uint32
        digit: T.uint32
        for base in range(0, self.kept, threads):
            i: T.let = base + tid
            live: T.let = i < self.kept
            key = T.uint32(0)
            if live:
                key_of_element(key, self.X, row, self.start + i, self.dtype, self.largest)
                T.ptx["st.shared.u32"](sm.keys.ptr_to([i]), key)
            T.ptx["shr.u32"](digit, key, 32 - DIGIT)
            sm.count(digit, live, lane, warp)

    @T.inline
    def count_rest(self, sm, row, tid, lane, warp, threads):
        """The first digits of what is not kept."""
        key: T.uint32
        digit: T.uint32
        for base in range(self.kept, self.length, threads):
            live: T.let = base + tid < self.length
            key = T.uint32(0)
            if live:
                key_of_element(key, self.X, row, self.start + base + tid, self.dtype, self.largest)
            T.ptx["shr.u32"](digit, key, 32 - DIGIT)
            sm.count(digit, live, lane, warp)

    @T.inline
    def count_next(self, sm, row, known, tid, lane, warp, threads):
        """The next digits of the keys that begin with the prefix."""
        key: T.uint32
        head: T.uint32
        digit: T.uint32
        for base in range(0, self.length, threads):
            inside: T.let = base + tid < self.length
            self.look(key, head, sm, row, known, base + tid)
            known.digit(digit, key)
            sm.count(digit, inside and head == known.prefix, lane, warp)

    @T.inline
    def take_above(self, sm, row, known, tid, lane, threads):
        """Keys above the prefix, and those that begin with it if all of them are needed."""
        key: T.uint32
        head: T.uint32
        for base in range(0, self.length, threads):
            inside: T.let = base + tid < self.length
            self.look(key, head, sm, row, known, base + tid)
            greater: T.let = head > known.prefix or (known.exact and head == known.prefix)
            sm.take(key, T.cast(self.start + base + tid, "uint32"), inside and greater, lane)

    @T.inline
    def take_ties(self, sm, row, known, first, tid, lane, warp, warps, k):
        """Of the keys that begin with the prefix, the ones with numbers below `need` in the order of the row; this
        CTA's first one has the number `first`."""
        key: T.uint32
        head: T.uint32
        who: T.uint32
        number: T.uint32
        mine: T.uint32
        before: T.uint32
        through: T.uint32
        base: T.int32 = 0
        while base < self.length and first < known.need:
            inside: T.let = base + tid < self.length
            self.look(key, head, sm, row, known, base + tid)
            tie: T.let = inside and head == known.prefix
            T.ptx["vote.sync.ballot.b32"](who, tie, ALL)
            T.ptx["popc.b32"](number, who)
            if lane == 0:
                T.ptx["st.shared.u32"](sm.of_warp.ptr_to([warp]), number)
            T.cuda.cta_sync()
            mine = T.uint32(0)
            if lane < warps:
                T.ptx["ld.shared.u32"](mine, sm.of_warp.ptr_to([lane]))
            T.ptx["redux.sync.add.u32"](through, mine, ALL)  # of all warps
            if lane >= warp:
                mine = T.uint32(0)
            T.ptx["redux.sync.add.u32"](before, mine, ALL)  # of those before this one
            lanes_before(number, who, lane)
            number = number + before + first
            sm.put(
                T.uint32(k) - known.need + number,
                key,
                T.cast(self.start + base + tid, "uint32"),
                tie and number < known.need,
            )
            first += through
            base += 32 * warps
            T.cuda.cta_sync()


# ---- sorting ---------------------------------------------------------------------------------------------------------


@T.inline
def exchange(mine, other, wants_greater):
    """The greater of the two, or the lesser."""
    greater: T.bool
    T.ptx["setp.gt.u64"](greater, other, mine)
    swap: T.let = greater == wants_greater
    T.ptx["selp.b64"](mine, other, mine, swap)


@T.inline
def of_lane_xor(other, mine, distance):
    """The other lane's 64 bits, in two halves."""
    low: T.uint32
    high: T.uint32
    T.ptx["mov.b64"](low, high, mine)
    T.ptx["shfl.sync.bfly.b32"](low, low, distance, 31, ALL)
    T.ptx["shfl.sync.bfly.b32"](high, high, distance, 31, ALL)
    T.ptx["mov.b64"](other, low, high)


@T.inline
def sort(sm, tid, size, threads):
    """A bitonic network over `best`, the greatest first. Steps over less than 32 places stay in registers. All threads
    have met before."""
    per_thread = T.meta_var(max(size // threads, 1))
    mine = T.alloc_local((per_thread,), "uint64")
    other: T.uint64
    runs = T.meta_var([1 << i for i in range(1, size.bit_length())])
    for run in runs:
        for distance in [run >> i for i in range(1, run.bit_length()) if run >> i >= 32]:
            T.cuda.cta_sync()
            for j in T.unroll(per_thread):
                i: T.let = j * threads + tid
                if i < size:
                    T.ptx["ld.shared.b64"](mine[j], sm.best.ptr_to([i]))
                    T.ptx["ld.shared.b64"](other, sm.best.ptr_to([i ^ distance]))
                    exchange(mine[j], other, (i & distance == 0) == (i & run == 0))
            T.cuda.cta_sync()
            for j in T.unroll(per_thread):
                if j * threads + tid < size:
                    T.ptx["st.shared.b64"](sm.best.ptr_to([j * threads + tid]), mine[j])
        if run == 2:  # afterwards the values are in registers
            for j in T.unroll(per_thread):
                mine[j] = T.uint64(0)
                if j * threads + tid < size:
                    T.ptx["ld.shared.b64"](mine[j], sm.best.ptr_to([j * threads + tid]))
        for distance in [d for d in (16, 8, 4, 2, 1) if d < run]:
            for j in T.unroll(per_thread):
                i: T.let = j * threads + tid
                of_lane_xor(other, mine[j], distance)
                exchange(mine[j], other, (i & distance == 0) == (i & run == 0))
        if run >= 32 or run == size:
            for j in T.unroll(per_thread):
                if j * threads + tid < size:
                    T.ptx["st.shared.b64"](sm.best.ptr_to([j * threads + tid]), mine[j])
    T.cuda.cta_sync()


# ---- results ---------------------------------------------------------------------------------------------------------


@T.inline
def write(sm, VALUES, INDICES, row, count, tid, dtype, largest, k, threads):
    key: T.uint32
    low: T.uint32
    bits: T.uint32
    for i in range(tid, k, threads):
        if i < count:
            T.ptx["ld.shared.v2.b32"](low, key, sm.best.ptr_to([i]))
            T.ptx["not.b32"](low, low)
            T.ptx["st.global.b32"](INDICES.ptr_to([row, i]), low)
            if dtype == "int32":
                key_of(bits, key, dtype, largest)  # its own inverse
                T.ptx["st.global.b32"](VALUES.ptr_to([row, i]), bits)
            elif dtype == "bfloat16":
                float_of_key(bits, key, largest)
                T.ptx["st.global.b16"](VALUES.ptr_to([row, i]), T.cast(bits >> 16, "uint16"))
            else:
                float_of_key(bits, key, largest)
                T.ptx["st.global.b32"](VALUES.ptr_to([row, i]), bits)
        else:
            INDICES[row, i] = -1
            VALUES[row, i] = T.cast(0, dtype)


@T.inline
def value(v, sm, i):
    """The float32 of entry i of the sorted list of the largest."""
    low: T.uint32
    key: T.uint32
    bits: T.uint32
    T.ptx["ld.shared.v2.b32"](low, key, sm.best.ptr_to([i]))
    float_of_key(bits, key, True)
    v = T.cuda.uint_as_float(bits)


@T.inline
def write_softmax(sm, VALUES, INDICES, row, count, tid, lane, warp, k, threads):
    """Probabilities over the K: the first of the list is the maximum."""
    top: T.float32
    v: T.float32
    sum: T.float32 = 0.0
    part: T.float32
    scaled: T.float32
    per_thread = T.meta_var((k + threads - 1) // threads)
    power = T.alloc_local((per_thread,), "float32")
    value(top, sm, 0)
    T.ptx["mul.f32"](scaled, top, T.float32(-LOG2E))
    for j in T.unroll(per_thread):
        i: T.let = j * threads + tid
        power[j] = 0.0
        if i < count:
            value(v, sm, i)
            T.ptx["fma.rn.f32"](v, v, T.float32(LOG2E), scaled)
            T.ptx["ex2.approx.ftz.f32"](power[j], v)
        T.ptx["add.f32"](sum, sum, power[j])
    for distance in (16, 8, 4, 2, 1):
        T.ptx["shfl.sync.bfly.b32"](part, sum, distance, 31, ALL)
        T.ptx["add.f32"](sum, sum, part)
    if lane == 0:
        T.ptx["st.shared.f32"](sm.scratch.ptr_to([warp]), sum)
    T.cuda.cta_sync()
    sum = T.float32(0)
    for w in range(threads // 32):
        T.ptx["ld.shared.f32"](part, sm.scratch.ptr_to([w]))
        T.ptx["add.f32"](sum, sum, part)
    T.ptx["rcp.rn.f32"](sum, sum)
    for j in T.unroll(per_thread):
        i: T.let = j * threads + tid
        if i < k:
            if i < count:
                low: T.uint32
                T.ptx["ld.shared.b32"](low, sm.best.ptr_to([i]))
                INDICES[row, i] = T.cast(~low, "int32")
            else:
                INDICES[row, i] = -1
            VALUES[row, i] = power[j] * sum


# ---- the kernel ------------------------------------------------------------------------------------------------------


@T.jit
def topk(
    x: T.handle,
    values: T.handle,
    indices: T.handle,
    *,
    K: T.constexpr,
    dtype: T.constexpr = "float32",
    LARGEST: T.constexpr = True,
    SOFTMAX: T.constexpr = False,
    BULK_COPY: T.constexpr = True,
    CLUSTER: T.constexpr = 4,
    CLUSTERS: T.constexpr = 33,
    THREADS: T.constexpr = 256,
    CAPACITY: T.constexpr = 32768,
):
    rows, n = T.int32(), T.int32()
    X = T.match_buffer(x, (rows, n), dtype, align=16)
    VALUES = T.match_buffer(values, (rows, K), dtype)
    INDICES = T.match_buffer(indices, (rows, K), "int32")

    CHUNK = T.meta_var(min(8 * THREADS, CAPACITY))
    WARPS = T.meta_var(THREADS // 32)
    SIZE = T.meta_var(max(1 << (K - 1).bit_length(), 2))  # of the list that is sorted
    T.static_assert(BINS % CLUSTER == 0 and BINS // CLUSTER <= THREADS)
    T.static_assert(CAPACITY % CHUNK == 0 and CHUNK % (4 * THREADS) == 0)
    T.static_assert(SIZE <= THREADS or SIZE % THREADS == 0)
    T.static_assert(not SOFTMAX or (LARGEST and dtype == "float32"))

    T.device_entry()
    block = T.cta_id([CLUSTER * CLUSTERS])
    rank = T.cta_id_in_cluster([CLUSTER])
    tid = T.thread_id([THREADS])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    pool = T.SMEMPool()
    sm = Shared(pool, CAPACITY, CHUNK, SIZE, WARPS, CLUSTER)
    pool.commit()
    sm.arrived.init(1)
    T.ptx.fence.mbarrier_init.release.cluster()
    sm.clear(tid, THREADS)

    part = Slice(X, n, rank, CLUSTER, CAPACITY, dtype, LARGEST)
    known = Selection()
    bulk: T.let = n % 4 == 0  # else rows begin at any multiple of four bytes
    phase: T.int32 = 0
    policy: T.uint64
    T.ptx["createpolicy.fractional.L2::evict_first.b64"](policy, T.float32(1.0))
    for row in range(block // CLUSTER, rows, CLUSTERS):
        # the list of the first CTA is empty; nobody is still reading the one of the row before
        if rank == 0:
            for i in range(tid, SIZE, THREADS):
                T.ptx["st.shared.b64"](sm.best.ptr_to([i]), T.uint64(0))
            if tid == 0:
                sm.taken[0] = T.uint32(0)
        T.cuda.cta_sync()

        # the first digit
        known.begin(K, n)
        if BULK_COPY and KEY_BITS[dtype] == 32:
            if bulk:
                if tid == 0:
                    part.request(sm, row, policy, CHUNK)
                part.convert(sm, tid, lane, warp, phase, CHUNK, THREADS)
                phase = phase ^ 1
            else:
                part.load(sm, row, tid, lane, warp, THREADS)
        else:
            part.load(sm, row, tid, lane, warp, THREADS)
        part.count_rest(sm, row, tid, lane, warp, THREADS)

        # the digits one by one
        first: T.bool = True
        while not known.exact and known.rest > 32 - KEY_BITS[dtype]:
            if not first:
                T.cuda.cta_sync()  # the histogram is clear
                part.count_next(sm, row, known, tid, lane, warp, THREADS)
            first = False
            sm.reduce(rank, tid, CLUSTER)
            if warp == 0:
                sm.find(known.need, lane)
            T.cuda.cta_sync()
            known.next(sm)
            if known.exact or known.rest > 32 - KEY_BITS[dtype]:
                sm.clear(tid, THREADS)
        if known.exact:
            meet(CLUSTER)  # the list of the first CTA is ready to be filled
        else:
            # how many ties each CTA has is what its histogram says of the last digit
            if tid < CLUSTER:
                mine: T.uint32 = 0
                address: T.uint32
                for copy in T.unroll(COPIES):
                    some: T.uint32
                    T.ptx["ld.shared.u32"](some, sm.histogram.ptr_to([copy, T.cast(known.prefix % BINS, "int32")]))
                    mine += some
                remote(address, sm.ties.ptr_to([rank]), tid)
                T.ptx["st.shared::cluster.u32"](address, mine)
            meet(CLUSTER)
            sm.clear(tid, THREADS)

        # what was found
        part.take_above(sm, row, known, tid, lane, THREADS)
        if not known.exact:
            number: T.uint32 = 0
            for r in range(rank):
                more: T.uint32
                T.ptx["ld.shared.u32"](more, sm.ties.ptr_to([r]))
                number += more
            part.take_ties(sm, row, known, number, tid, lane, warp, WARPS, K)
        meet(CLUSTER)
        if rank == 0:
            sort(sm, tid, SIZE, THREADS)
            if SOFTMAX:
                write_softmax(sm, VALUES, INDICES, row, T.min(n, K), tid, lane, warp, K, THREADS)
            else:
                write(sm, VALUES, INDICES, row, T.min(n, K), tid, dtype, LARGEST, K, THREADS)
        meet(CLUSTER)  # histograms are clear, all memory may be written again


# ---- the router ------------------------------------------------------------------------------------------------------


@T.inline
def sigmoid(y, x):
    power: T.float32
    T.ptx["mul.f32"](power, x, T.float32(-LOG2E))
    T.ptx["ex2.approx.f32"](power, power)
    T.ptx["add.f32"](power, power, T.float32(1.0))
    T.ptx["rcp.approx.f32"](y, power)


@T.inline
def best_two(first, second, other_first, other_second):
    """The two largest of four, where each pair is in order."""
    less: T.float32
    T.ptx["min.f32"](less, first, other_first)
    T.ptx["max.f32"](first, first, other_first)
    T.ptx["max.f32"](second, second, other_second)
    T.ptx["max.f32"](second, second, less)


@T.inline
def arg_max(key, best, item, keys, lane, items):
    """The largest key of the warp and the lane that has it, from which it goes: `item` is its number there, and `items`
    in all other lanes."""
    here: T.uint32 = keys[0]
    who: T.uint32
    low: T.uint32
    for j in T.unroll(items - 1):
        T.ptx["max.u32"](here, here, keys[j + 1])
    T.ptx["redux.sync.max.u32"](key, here, ALL)
    T.ptx["vote.sync.ballot.b32"](who, here == key, ALL)
    T.ptx["brev.b32"](low, who)
    T.ptx["clz.b32"](best, low)  # the first lane
    item = T.int32(items)
    if best == T.cast(lane, "uint32"):
        for j in T.unroll(items):
            if item == items and keys[j] == key:
                item = T.int32(j)
                keys[j] = T.uint32(0)


@T.jit
def route(
    logits: T.handle,
    bias: T.handle,
    weights: T.handle,
    experts: T.handle,
    loads: T.handle,
    *,
    EXPERTS: T.constexpr = 256,
    GROUPS: T.constexpr = 8,
    KEEP: T.constexpr = 4,
    K: T.constexpr = 8,
    SCALE: T.constexpr = 2.5,
    WARPS: T.constexpr = 4,
):
    tokens = T.int32()
    LOGITS = T.match_buffer(logits, (tokens, EXPERTS), "float32", align=16)
    BIAS = T.match_buffer(bias, (EXPERTS,), "float32", align=16)
    WEIGHTS = T.match_buffer(weights, (tokens, K), "float32")
    CHOSEN = T.match_buffer(experts, (tokens, K), "int32")
    LOADS = T.match_buffer(loads, (EXPERTS,), "uint32")  # how many tokens each expert has; zero before

    ITEMS = T.meta_var(EXPERTS // 32)  # experts of a lane, side by side
    LANES = T.meta_var(32 // GROUPS)  # of a group
    T.static_assert(ITEMS % 4 == 0 and GROUPS * LANES == 32 and K <= 32 and ITEMS >= 2)

    T.device_entry()
    block = T.cta_id([T.ceildiv(tokens, WARPS)])
    warp = T.warp_id([WARPS])
    lane = T.lane_id([32])
    tid = T.thread_id([32 * WARPS])
    count = T.alloc_shared((EXPERTS,), "uint32")
    for e in range(tid, EXPERTS, 32 * WARPS):
        count[e] = T.uint32(0)
    T.cuda.cta_sync()

    token: T.let = block * WARPS + warp
    if token < tokens:
        score = T.alloc_local((ITEMS,), "float32")
        chance = T.alloc_local((ITEMS,), "float32")  # with the bias
        keys = T.alloc_local((ITEMS,), "uint32")
        for j in T.unroll(ITEMS // 4):
            at: T.let = lane * ITEMS + 4 * j
            T.ptx["ld.global.nc.v4.f32"](*score[4 * j : 4 * j + 4], LOGITS.ptr_to([token, at]))
            T.ptx["ld.global.ca.v4.f32"](*chance[4 * j : 4 * j + 4], BIAS.ptr_to([at]))
        for j in T.unroll(ITEMS):
            sigmoid(score[j], score[j])
            T.ptx["add.f32"](chance[j], chance[j], score[j])

        # the two best of this lane, then of its group
        first: T.float32 = chance[0]
        second: T.float32 = T.min_value("float32")
        for j in T.unroll(ITEMS - 1):
            best_two(first, second, chance[j + 1], T.min_value("float32"))
        for distance in [d for d in (16, 8, 4, 2, 1) if d < LANES]:
            their_first: T.float32
            their_second: T.float32
            T.ptx["shfl.sync.bfly.b32"](their_first, first, distance, 31, ALL)
            T.ptx["shfl.sync.bfly.b32"](their_second, second, distance, 31, ALL)
            best_two(first, second, their_first, their_second)
        group_score: T.float32
        T.ptx["add.f32"](group_score, first, second)

        # a group stays if fewer than KEEP groups are better, or as good and before it
        better: T.int32 = 0
        group: T.let = lane // LANES
        for g in T.unroll(GROUPS):
            rival: T.float32
            ahead: T.bool
            T.ptx["shfl.sync.idx.b32"](rival, group_score, T.cast(g * LANES, "uint32"), 31, ALL)
            T.ptx["setp.eq.and.f32"](ahead, rival, group_score, group > g)
            if ahead or rival > group_score:
                better += 1
        for j in T.unroll(ITEMS):
            key_of_float(keys[j], T.cuda.float_as_uint(chance[j]), True)
            if better >= KEEP:
                keys[j] = T.uint32(0)

        # K times the best of the rest; lane r keeps the r-th
        key: T.uint32
        best: T.uint32
        item: T.int32
        chosen: T.int32 = 0
        weight: T.float32 = 0.0
        for r in T.unroll(K):
            arg_max(key, best, item, keys, lane, ITEMS)
            of_best: T.float32 = 0.0
            for j in T.unroll(ITEMS):
                T.ptx["selp.f32"](of_best, score[j], of_best, item == j)
            T.ptx["shfl.sync.idx.b32"](item, item, best, 31, ALL)
            T.ptx["shfl.sync.idx.b32"](of_best, of_best, best, 31, ALL)
            if lane == r:
                weight = of_best
                chosen = T.cast(best, "int32") * ITEMS + item
        sum: T.float32 = weight
        other: T.float32
        for distance in (16, 8, 4, 2, 1):
            T.ptx["shfl.sync.bfly.b32"](other, sum, distance, 31, ALL)
            T.ptx["add.f32"](sum, sum, other)
        T.ptx["div.full.f32"](weight, weight, sum)
        T.ptx["mul.f32"](weight, weight, T.float32(SCALE))
        if lane < K:
            T.ptx["st.global.cs.f32"](WEIGHTS.ptr_to([token, lane]), weight)
            T.ptx["st.global.cs.s32"](CHOSEN.ptr_to([token, lane]), chosen)
            T.ptx["red.relaxed.cta.shared.add.u32"](count.ptr_to([chosen]), 1)
    T.cuda.cta_sync()
    for e in range(tid, EXPERTS, 32 * WARPS):
        if count[e] != 0:
            T.ptx["red.relaxed.gpu.global.add.u32"](LOADS.ptr_to([e]), count[e])


# ---- references ------------------------------------------------------------------------------------------------------


def order(x: np.ndarray, largest: bool = True) -> np.ndarray:
    """For each row the indices of its elements, best first, of equal ones the first in the row; NaN is above all."""
    x = x.astype("float64")
    rank = np.where(np.isnan(x), np.inf, x)
    above = np.isnan(x)
    at = np.arange(x.shape[1])
    sign = -1 if largest else 1
    return np.stack([np.lexsort((at, sign * r, sign * a.astype(int))) for r, a in zip(rank, above, strict=True)])


def routed(logits, bias, groups, keep, k, scale):
    """Weights and experts of each token in float64."""
    score = 1 / (1 + np.exp(-logits.astype("float64")))
    chance = score + bias.astype("float64")
    grouped = chance.reshape(len(chance), groups, -1)
    of_group = np.sort(grouped, axis=2)[:, :, -2:].sum(axis=2)
    kept = np.argsort(-of_group, axis=1, kind="stable")[:, :keep]
    allowed = np.zeros(of_group.shape, bool)
    np.put_along_axis(allowed, kept, True, axis=1)
    chance = np.where(np.repeat(allowed, grouped.shape[2], axis=1), chance, -np.inf)
    experts = np.argsort(-chance, axis=1, kind="stable")[:, :k]
    weights = np.take_along_axis(score, experts, axis=1)
    return scale * weights / weights.sum(axis=1, keepdims=True), experts


def compile_all(target: str):
    """Every variant that is worth assembling."""
    for dtype in KEY_BITS:
        yield tirx.compile(topk.specialize(K=64, dtype=dtype), target=target)
    yield tirx.compile(topk.specialize(K=1000, THREADS=512, CLUSTER=8, LARGEST=False), target=target)
    yield tirx.compile(topk.specialize(K=100, SOFTMAX=True, CLUSTER=1), target=target)
    yield tirx.compile(route.specialize(), target=target)
