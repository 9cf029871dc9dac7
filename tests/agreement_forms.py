# SPDX-License-Identifier: Apache-2.0
"""Small kernels for every form of the PTX table that an H200 can run, with operands that lie in wait.

A form is an instruction with its modifiers. `batches()` groups them: a batch is one kernel in which every form gets its
own operands and its own rows of the results, so that thousands of forms need a hundred kernels. tests/gpu/agreement.py
runs them on a GPU and on the emulator; tests/emu/test_agreement.py holds the emulator against recorded answers.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, field

import numpy as np
from ptx_variants import CARRIER, ORDER, Row, carrier, split

from tirx import _core

LANES = 256
WORDS = 8  # of 4 bytes, that each thread has in memory

# ---- numbers: a generator of our own, so that answers depend on nothing else ------------------------------


def bits(seed: str, n: int) -> np.ndarray:
    """n random words of 64 bits."""
    start = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "little")
    with np.errstate(over="ignore"):
        z = np.uint64(start) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# bits, exponent bits, bias
FLOATS = {
    "f64": (64, 11, 1023), "f32": (32, 8, 127), "tf32": (32, 8, 127), "bf16": (16, 8, 127), "f16": (16, 5, 15),
    "e4m3": (8, 4, 7), "e5m2": (8, 5, 15),
}  # fmt: skip
PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2"}
CORNERS_F32 = [
    0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x807FFFFF, 0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F000000,
    0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFC01234, 0x7FFFFFFF, 0xFFFFFFFF,
    0x4B000000, 0x4B7FFFFF, 0x4F000000, 0xCF000000, 0x4EFFFFFF, 0x5F000000, 0xDF000001, 0x477FE000, 0x477FF000,
    0x33000000, 0x43E00000, 0x43E80000, 0xC3F00000, 0x40200000, 0x3FC00000, 0xBF000000,
]  # fmt: skip
CORNERS_F64 = [
    0, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000,
    0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF0000000000001, 0x7FF8000000000000,
    0xFFF8000012345678, 0x41DFFFFFFFC00000, 0x41E0000000000000, 0xC1E0000000000000, 0x43E0000000000000,
    0xC3E0000000000000, 0x43F0000000000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x36A0000000000000,
    0x3690000000000000, 0x4004000000000000, 0x380FFFFFE0000000,
]  # fmt: skip


def pick(r: np.ndarray, values) -> np.ndarray:
    table = np.array(values, dtype=np.uint64)
    return table[(r % np.uint64(len(table))).astype(np.int64)]


def float_codes(fmt: str, seed: str, n: int, tame: bool = False) -> np.ndarray:
    """Codes of a float format: corner values, any bits, and numbers near one; tame: near one and zeros only."""
    size, exponent, bias = FLOATS[fmt]
    mantissa = size - 1 - exponent
    r, s, t = bits(seed, n), bits(seed + "'", n), bits(seed + "''", n)
    field = (s % np.uint64(7)) + np.uint64(bias - 3)
    near = (r >> np.uint64(64 - size) & np.uint64((1 << mantissa) - 1)) | field << np.uint64(mantissa)
    near |= (t >> np.uint64(40) & np.uint64(1)) << np.uint64(size - 1)
    if fmt == "f32":
        corners = pick(r, CORNERS_F32)
    elif fmt == "f64":
        corners = pick(r, CORNERS_F64)
    elif fmt == "tf32":
        corners = pick(r, CORNERS_F32)
    else:
        top = ((1 << exponent) - 1) << mantissa
        half = (1 << mantissa) - 1
        sign = 1 << (size - 1)
        one = bias << mantissa
        some = [0, 1, half, half + 1, one - 1, one, top - 1, top, top | half]
        corners = pick(r, [*some, *(sign | x for x in some), top | 1])
    anything = s >> np.uint64(64 - size) if size < 64 else s
    kind = t % np.uint64(16)
    if tame:
        return np.where(kind == 0, np.uint64(0), near)
    return np.where(kind < 6, corners, np.where(kind < 10, anything, near))


def int_codes(size: int, seed: str, n: int) -> np.ndarray:
    r, s, t = bits(seed, n), bits(seed + "'", n), bits(seed + "''", n)
    mask = (1 << size) - 1
    high = 1 << (size - 1)
    corners = pick(r, [0, 1, 2, 3, mask, mask - 1, high, high - 1, high + 1, 0x5555555555555555 & mask, 7, 31 & mask,
                       32 & mask, 63 & mask, 64 & mask])  # fmt: skip
    anything = s & np.uint64(mask)
    small = anything >> (r % np.uint64(size))
    kind = t % np.uint64(8)
    return np.where(kind < 3, corners, np.where(kind < 6, anything, small))


def values(t: str, seed: str, n: int) -> np.ndarray:
    """n operands of a PTX type, as the dtype that carries it."""
    dtype = carrier(t)
    if t in FLOATS:
        codes = float_codes(t, seed, n)
    elif t == "f32x2":
        codes = float_codes("f32", seed, n) | float_codes("f32", seed + "h", n) << np.uint64(32)
    elif t in PAIRS:
        size = np.uint64(FLOATS[PAIRS[t]][0])
        codes = float_codes(PAIRS[t], seed, n) | float_codes(PAIRS[t], seed + "h", n) << size
    elif t == "pred":
        codes = bits(seed, n) >> np.uint64(63)
    else:
        codes = int_codes(np.dtype(dtype).itemsize * 8, seed, n)
    size = np.dtype(dtype).itemsize
    return codes.astype(f"uint{8 * size}").view(dtype)


# ---- a kernel: rows of inputs, rows of results ---------------------------------------------------------------------


@dataclass
class Sheet:
    """The arrays of a kernel while its forms are written down."""

    ins: dict[str, list[np.ndarray]] = field(default_factory=dict)
    outs: dict[str, int] = field(default_factory=dict)
    memory: list[np.ndarray] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # helpers that the text needs
    locals: int = 0

    def take(self, array: np.ndarray) -> str:
        rows = self.ins.setdefault(array.dtype.name, [])
        rows.append(array)
        return f"I_{array.dtype.name}[{len(rows) - 1}, tx]"

    def give(self, dtype: str) -> tuple[str, int]:
        self.outs[dtype] = self.outs.get(dtype, 0) + 1
        return dtype, self.outs[dtype] - 1

    def local(self) -> str:
        self.locals += 1
        return f"v{self.locals}"


@dataclass
class Form:
    """`write(sheet, seed)` gives (lines of the kernel, result rows): rows are (dtype, row), or ("memory", row)."""

    name: str
    family: str  # forms of one family share kernels
    write: object
    near: str = ""  # how results may differ: a function of agreement_forms.NEAR, else not at all
    row: str = ""


@dataclass
class Batch:
    name: str
    forms: list[Form]
    source: str
    args: list[np.ndarray]
    where: list[list[tuple[int, int]]]  # of each form: (argument, row) of each result
    call: object = None  # options of the call for a target: dynamic sizes, clusters

    def options(self, target: str) -> dict:
        return self.call(target) if self.call else {}

    def results(self, args) -> list[list[np.ndarray]]:
        return [[args[a][row] for a, row in places] for places in self.where]


PROLOGUE = {
    "pol": ["pol: T.uint64", 'T.ptx["createpolicy.fractional.L2::evict_first.b64"](pol)'],
    "loc": [f'loc = T.alloc_local(({WORDS},), "uint32", align=32)'],
    "sm": [f'sm = T.alloc_shared(({LANES}, {WORDS}), "uint32", align=128)'],
}


def build(name: str, forms: list[Form], seed: str = "") -> Batch:
    sheet = Sheet()
    body: list[str] = []
    places = []
    for f in forms:
        lines, rows = f.write(sheet, f"{f.name}|{seed}")
        body += lines
        places.append(rows)
    args, params, order = [], [], {}

    def add(key, label, array):
        order[key] = len(args)
        args.append(array)
        params.append((label, array))

    for dtype in sorted(sheet.ins):
        add("I" + dtype, f"I_{dtype}", np.stack(sheet.ins[dtype]))
    if sheet.memory:
        add("memory", "M", np.stack(sheet.memory))
    for dtype in sorted(sheet.outs):
        size = np.dtype(dtype).itemsize
        add("O" + dtype, f"O_{dtype}", np.full((sheet.outs[dtype], LANES), 0, f"uint{8 * size}").view(dtype))
    lines = [
        "from tirx.script import tirx as T",
        "",
        "@T.prim_func",
        "def k(" + ", ".join(f"{p}_: T.handle" for p, _ in params) + "):",
    ]
    lines += [f'    {p} = T.match_buffer({p}_, {a.shape}, "{a.dtype.name}", align=32)' for p, a in params]
    lines += ["    T.device_entry()", "    bx = T.cta_id([1])", f"    tx = T.thread_id([{LANES}])"]
    for helper in ("pol", "loc", "sm"):
        if helper in sheet.used:
            lines += ["    " + x for x in PROLOGUE[helper]]
    lines += ["    " + x for x in body]
    where = [[(order[d if d == "memory" else "O" + d], row) for d, row in rows] for rows in places]
    return Batch(name, forms, "\n".join(lines) + "\n", args, where)


# ---- forms from the rows of the table ------------------------------------------------------------------------------

HINTS = {"hint", "pf", "l1", "l2", "cop", "sem", "scope", "weak", "ev", "level", "cta", "al", "s", "p", "ni"}
FLOOR = ORDER.index("90a")
# Assemblers before 13.5 refuse these.
NEWER = ("ld.volatile.local", "st.volatile.local", "s2f6x2")
# Not here: written by hand below, or they cannot run alone.
REGISTERS = set(
    """add sub mul fma mad div minmax unary bitop shift shf lop3 prmt bfind bitcount selp setp mov mov_pack mov_unpack
    cvt idiv sad copysign testp brev bfe bfi szext bmsk fns dp4a dp2a set slct cvt_pack
    shfl vote match redux elect activemask warp_sync movmatrix mma mma_sp""".split()
)
MEMORY = {"ld", "st", "atom", "red", "nop_hint", "discard"}
MATRICES = {"ldmatrix", "stmatrix"}


def choices_of(row: Row):
    """Every choice of the slots that change the meaning, with others at random, and what covers the rest."""
    slots = [(s, ([""] if optional else []) + c) for s, c, optional in row.parts if s]
    main = [(s, c) for s, c in slots if s not in HINTS]
    rest = [(s, c) for s, c in slots if s in HINTS]
    seen = set()
    for chosen in itertools.product(*[c for _, c in main]):
        m = dict(zip([s for s, _ in main], chosen, strict=True))
        r = bits(row.text + "|".join(chosen), 40 * max(1, len(rest)))
        for attempt in range(40 if rest else 1):
            for i, (s, c) in enumerate(rest):
                m[s] = c[int(r[attempt * len(rest) + i] % np.uint64(len(c)))]
            if row.holds(m) and ORDER.index(row.floor(m)) <= FLOOR and row.floor(m)[:3] != "100":
                seen.add(row.opcode(m))
                yield dict(m)
                break
    if rest:
        for m in row.combinations():
            if ORDER.index(row.floor(m)) <= FLOOR and row.opcode(m) not in seen:
                seen.add(row.opcode(m))
                yield dict(m)


def operand_values(row: Row, m: dict, o: str, t: str, seed: str) -> np.ndarray:
    """What fits the operand: counts, masks and selectors have their ranges."""
    name = o.strip("{").split(":")[0]
    n, u32 = LANES, lambda codes: codes.astype(np.uint32)
    if row.emu in ("shift", "shf", "bfe", "bfi", "szext", "bmsk") and name in ("b", "c", "d") and t in ("u32", "i32"):
        if not (row.emu == "bfi" and name == "b"):
            r = bits(seed, n)
            near = (r >> np.uint64(8)) % np.uint64(72)
            return u32(np.where(r % np.uint64(4) == 0, int_codes(32, seed, n), near)).view(carrier(t))
    if row.emu in ("shfl", "match", "redux", "vote", "elect", "warp_sync") and name == "m":
        return np.full(n, 0xFFFFFFFF, np.uint32)
    if row.emu == "shfl" and name == "b":
        return u32(bits(seed, n) % np.uint64(40))
    if row.emu == "shfl" and name == "c":
        r = np.repeat(bits(seed, n // 32), 32)
        return u32(pick(r, [0x1F, 0, 0x1800 | 0x1F, 0x1000 | 0x1F, 0x1C03, 0x181F, 0x1E00 | 0x0D, 0x0F]))
    if row.emu == "match" and name == "a":
        few = bits(seed, n) % np.uint64(3) * np.uint64(0x100000001)
        same = np.repeat(bits(seed + "w", n // 32) % np.uint64(2), 32) == 0
        return np.where(same, np.uint64(5), few).astype(f"u{np.dtype(carrier(t)).itemsize}")
    if row.emu == "vote" and name == "a":
        kind = np.repeat(bits(seed + "w", n // 32) % np.uint64(3), 32)
        return u32(np.where(kind == 0, 0, np.where(kind == 1, 1, bits(seed, n) >> np.uint64(63))))
    if row.emu == "fns":
        r = bits(seed, n)
        if name == "b":
            return u32(r % np.uint64(32))
        if name == "o":
            return (r % np.uint64(21)).astype(np.int32) - 10
    if row.emu in ("mma", "mma_sp") and name in "abc" and name:
        return matrix_values(row, m, name, seed, n)
    if row.emu == "mma_sp" and name == "e":
        return metadata(seed, n)
    if "oob" in row.text and name in "ab":  # what fills boxes beyond a tensor, and its neighbours
        codes, r = values(t, seed, n), bits(seed + "o", n)
        marks = pick(r >> np.uint64(8), [0x7FF7, 0xFFF7, 0x7FF6, 0x7FFF]).astype(codes.dtype)
        if codes.itemsize == 4:
            marks = marks | marks << 16 * (r.astype(codes.dtype) >> 7 & 1)
        return np.where(r % np.uint64(4) == 0, marks, codes).astype(codes.dtype)
    return values(t, seed, n)


def metadata(seed: str, n: int) -> np.ndarray:
    """Words of 8 pairs of places of what is not zero, in order."""
    r = bits(seed, 8 * n).reshape(8, n)
    nibbles = [pick(x, [0x4, 0x8, 0x9, 0xC, 0xD, 0xE]) << np.uint64(4 * i) for i, x in enumerate(r)]
    return np.bitwise_or.reduce(nibbles).astype(np.uint32)


def matrix_codes(fmt: str, seed: str, n: int) -> np.ndarray:
    """n words of 32 bits that hold elements: numbers near one, some zeros, in the last warp anything."""
    if fmt in ("u8", "s8", "s32", "b8"):
        return (bits(seed, n) >> np.uint64(32)).astype(np.uint32)
    size = FLOATS[fmt][0]
    per = 32 // size
    parts = []
    for i in range(per):
        tame, wild = float_codes(fmt, f"{seed}{i}", n, True), float_codes(fmt, f"{seed}{i}w", n)
        codes = np.where(np.arange(n) % LANES >= LANES - 32, wild, tame)
        parts.append(codes << np.uint64(size * i))
    return np.bitwise_or.reduce(parts).astype(np.uint32)


def matrix_values(row: Row, m: dict, name: str, seed: str, n: int) -> np.ndarray:
    tokens = row.opcode(m).split(".")
    types = [t for t in tokens if t in FLOATS or t in ("u8", "s8", "s32")]  # d a b c
    fmt = types[{"a": 1, "b": 2, "c": 3}[name]]
    if fmt == "f64":
        return values("f64", seed, n)
    words = matrix_codes(fmt, seed, n)
    return words.view("float32") if name == "c" and fmt == "f32" else words


APPROXIMATE = re.compile(r"(ex2|lg2|rcp|rsqrt|sqrt|tanh|sin|cos)\.approx|div\.(approx|full)")


def near_of(opcode: str) -> str:
    hit = APPROXIMATE.match(opcode)
    return (hit[1] or "div") + "." + re.search(r"(f16x2|bf16x2|f16|bf16|f32|f64)$", opcode)[1] if hit else ""


def immediate(spec: str, seed: str) -> str:
    """One of the operand's values; the same whatever the run's seed, so that a kernel serves many."""
    _, _, among = spec.partition("=")
    seed = seed.partition("|")[0]
    r = int(bits(seed, 1)[0] >> np.uint64(20))
    if not among:
        return str(r % 2)
    span = re.match(r"(-?\d+)\.\.(-?\d+)(?:/(\d+))?", among)
    if span:
        first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
        return str(first + step * (r % ((last - first) // step + 1)))
    options = among.split("|")
    return options[r % len(options)]


def automatic(row: Row, m: dict, free: bool, turn: int) -> Form:
    opcode = row.opcode(m)
    given = [o for o in (row.present(o, free, m) for o in row.operands) if o is not None and not o.startswith("'")]

    def write(sheet: Sheet, seed: str):
        lines, args, outs, n = [], [], [], 0
        memory = None
        for o in given:
            if o.startswith("#"):
                args.append(immediate(o, f"{o}{seed}"))
                continue
            if o.startswith("["):
                text, more = place(row, m, o, sheet, seed)
                args.append(text)
                lines += more
                memory = space_of(row, o, m)
                continue
            for piece in split(o, "|"):
                written, read = piece[0] in "=+", piece[0] != "="
                piece = piece.lstrip("=+")
                group = re.match(r"\{(\w+):([^}]*)\}\*(\S+)$", piece)
                t = row.type(group[2] if group else piece.split(":", 1)[1], m)
                for _ in range(row.count(group[3], m) if group else 1):
                    n += 1
                    dtype = carrier(t)
                    if written:
                        v = sheet.local()
                        lines.append(
                            f"{v}: T.{dtype}" + (f" = {sheet.take(values(t, f'{seed}{n}', LANES))}" if read else "")
                        )
                        outs.append((v, *sheet.give(dtype)))
                        args.append(v)
                    elif piece.startswith("pol:"):
                        sheet.used.add("pol")
                        args.append("pol")
                    elif t == "pred":
                        args.append(sheet.take(operand_values(row, m, piece, t, f"{seed}{n}")) + " != T.uint32(0)")
                    else:
                        args.append(sheet.take(operand_values(row, m, piece, t, f"{seed}{n}")))
        lines.append(f'T.ptx["{opcode}"]({", ".join(args)})')
        lines += [f"O_{dtype}[{r}, tx] = {v}" for v, dtype, r in outs]
        rows = [(dtype, r) for _, dtype, r in outs]
        if memory is not None:
            at = len(sheet.memory) - 1
            if memory == "shared":
                back = [f"for i in range({WORDS}):", f"    M[{at}, tx, i] = sm[tx, i]"]
                lines += ["T.cuda.cta_sync()", *back, "T.cuda.cta_sync()"]
            elif memory == "local":
                lines += [f"for i in range({WORDS}):", f"    M[{at}, tx, i] = loc[i]"]
            rows.append(("memory", at))
        return lines, rows

    name = f"{opcode} #{turn}" if turn else opcode
    family = "memory" if row.emu in MEMORY | MATRICES else row.emu
    return Form(name, family, write, near_of(opcode), row.text)


def space_of(row: Row, o: str, m: dict) -> str:
    if row.emu in MATRICES:
        return "shared"
    space = split(o[1:-1], ",")[0].split(":", 1)[1].rstrip("+")
    space = m.get(space[1:], "") if space.startswith("$") else space
    return "shared" if space.startswith("shared") else "local" if space == "local" else "global"


def place(row: Row, m: dict, o: str, sheet: Sheet, seed: str):
    """The address of what a thread has in memory, and the lines that fill it."""
    space = space_of(row, o, m)
    at = len(sheet.memory)
    words = np.zeros((LANES, WORDS), np.uint32)
    if row.emu in MATRICES:
        words[:] = (bits(seed + "m", LANES * WORDS) >> np.uint64(32)).astype(np.uint32).reshape(LANES, WORDS)
    else:
        t = m.get("type") or ("f32" if row.text.endswith(".f32") else "b32")
        size = np.dtype(carrier(t)).itemsize if t in CARRIER and t != "b128" or t in PAIRS else 4
        codes = values(t if t != "b128" else "b32", seed + "m", LANES * WORDS * 4 // size)
        words[:] = codes.view(np.uint32).reshape(LANES, WORDS)
    sheet.memory.append(words)
    fill = [f"for i in range({WORDS}):"]
    if space == "shared":
        sheet.used.add("sm")
        lines = [*fill, f"    sm[tx, i] = M[{at}, tx, i]", "T.cuda.cta_sync()"]
        if row.emu in MATRICES:  # rows of 16 bytes of the warp's 1024, in any order, each once
            r = bits(seed + "rows", LANES // 32 * 64).reshape(-1, 64)
            order = np.concatenate([64 * w + np.argsort(x, kind="stable")[:32] for w, x in enumerate(r)])
            index = sheet.take(order.astype(np.int32))
            return f"sm.ptr_to([{index} // 2, {index} % 2 * 4])", lines
        return "sm.ptr_to([tx, 0])", lines
    if space == "local":
        sheet.used.add("loc")
        return "T.address_of(loc[0])", [*fill, f"    loc[i] = M[{at}, tx, i]"]
    return f"M.ptr_to([{at}, tx, 0])", []


def table_forms():
    """Forms of all rows that need nothing but registers and a place in memory."""
    names = set()
    for args in _core.ptx_rows():
        row = Row(*args)
        if row.emu not in REGISTERS | MEMORY | MATRICES or skipped(row):
            continue
        repeat = 1
        if row.emu == "lop3":
            repeat = 8
        elif any(o.startswith("#") for o in row.operands):
            repeat = 2
        free = any("??" in o for o in row.operands)
        for m in choices_of(row):
            if any(x in row.opcode(m) for x in NEWER):
                continue
            for turn in range(repeat + free):
                f = automatic(row, m, turn % 2 == 0, turn)
                if f.name in names:  # another row spells the same opcode
                    f.name += f" ({', '.join(row.operands)})"
                names.add(f.name)
                yield f


# What has no answer to compare, or is no instruction of its own.
CANNOT = {
    r"^prefetch\.\{space\?=const\|param\}\.tensormap": "wants a tensor map; has no effect to compare",
    r"^prefetchu|^prefetch|applypriority": "a hint without a result",
    r"^discard": "leaves the bytes undefined",
    r"b128": "packed and unpacked by hand",
}


def skipped(row: Row) -> str:
    return next((why for pattern, why in CANNOT.items() if re.search(pattern, row.text)), "")


@dataclass
class Unit:
    """What becomes a kernel; the forms can be split when one of them does not compile."""

    name: str
    forms: list[Form]
    build: object = build

    def batch(self, seed: str = "") -> Batch:
        return self.build(self.name, self.forms, seed)


def units(forms, size: int = 40, make=build) -> list[Unit]:
    """Kernels of up to `size` forms of a family."""
    groups: dict[str, list[Form]] = {}
    for f in forms:
        groups.setdefault(f.family, []).append(f)
    return [
        Unit(f"{family}.{i // size}", of[i : i + size], make)
        for family, of in groups.items()
        for i in range(0, len(of), size)
    ]
