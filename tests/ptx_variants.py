# SPDX-License-Identifier: Apache-2.0
"""Spelled instructions for every row of the PTX table: each choice of each slot, with and without free operands.

The rows are read here from their text, independently of the reader in C. A variant is the statement of a kernel, and
the architecture that the row claims for it.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from tirx import _core

LETS = {
    "SCOPE": "cta|cluster|gpu|sys",
    "SSP": "shared|shared::cta",
    "SSC": "shared|shared::cta|shared::cluster",
    "GSP": "global|shared|shared::cta|shared::cluster|local",
    "ASP": "global|shared|shared::cta|shared::cluster",
    "CG": "cta_group::1|cta_group::2",
    "CMPI": "eq|ne|lt|le|gt|ge|lo|ls|hi|hs",
    "CMPF": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "RND": "rn|rz|rm|rp",
    "INT": "u16|u32|u64|s16|s32|s64",
    "ALLT": "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64",
    "MEMT": "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64",
    "L1E": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
    "L2E": "L2::evict_first|L2::evict_last|L2::evict_normal",
    "PF": "L2::64B|L2::128B|L2::256B",
    "CPH": "L2::cache_hint",
    "DIM": "1d|2d|3d|4d|5d",
    "CT": "mbarrier::complete_tx::bytes",
    "COLLECT": "collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard",
    "N128": "x1|x2|x4|x8|x16|x32|x64|x128",
}
# PTX type -> dtype that carries it
CARRIER = {
    "b8": "uint8",
    "u8": "uint8",
    "s8": "int8",
    "e2m1x2": "uint8",
    "b16": "uint16",
    "u16": "uint16",
    "s16": "int16",
    "f16": "uint16",
    "bf16": "uint16",
    "b32": "uint32",
    "u32": "uint32",
    "s32": "int32",
    "i32": "int32",
    "f32": "float32",
    "tf32": "uint32",
    "b64": "uint64",
    "u64": "uint64",
    "s64": "int64",
    "i64": "int64",
    "f64": "float64",
    "f32x2": "uint64",
    "b128": "uint128",
    "pred": "uint32",
}
ORDER = ["50", "70", "75", "80", "86", "89", "90", "90a", "100", "100a"]


def carrier(t: str) -> str:
    if t in CARRIER:
        return CARRIER[t]
    return "uint32" if t in ("f16x2", "bf16x2", "u16x2", "s16x2") or t.endswith("x4") and t != "e2m1x4" else "uint16"


def split(text: str, sep: str) -> list[str]:
    """Split outside brackets."""
    out, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        depth += ch in "[{(" and 1 or (ch in ")}]" and -1) or 0
        if ch == sep and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    return [x for x in [*out, text[start:].strip()] if x]


def choices(text: str) -> list[str]:
    out = []
    for word in text.split("|"):
        if word in LETS:
            out += LETS[word].split("|")
        elif word.startswith("@m64nNk"):
            out += [f"m64n{n}{word[6:]}" for n in range(8, 257, 8)]
        else:
            out.append(word)
    return out


def number(token: str) -> int:
    digits = re.search(r"\d+$", token)
    return int(digits.group()) if digits else 1


WIDE = ("b64", "u64", "s64", "f64")


def op_types(table: dict[str, str]):
    words = {op: types.split() for ops, types in table.items() for op in ops.split()}
    return lambda m: m("type") in words[m("op")]


def ld_rules(m) -> bool:
    everywhere = m("space") in ("", "global", None)
    if m("vec") == "v8" or m("vec") == "v4" and m("type") in WIDE:
        return False
    if m("sem") == "volatile" and (m("cop") or m("l1") or m("hint")) or m("cop") and m("l1"):
        return False
    return everywhere or not (m("l1") or m("hint") or m("pf"))


def cvt_rules(m) -> bool:
    d, s, rnd, sat = m("dt"), m("st"), m("rnd") or "", m("sat")
    bits = {t: int(re.search(r"\d+", t).group()) for t in (d, s)}
    d_int, s_int, brain = d[0] in "us", s[0] in "us", "bf16" in (d, s)
    if d == s or m("ftz") and "f32" not in (d, s) or sat and brain or brain and 8 in bits.values():
        return False
    if d_int and s_int:
        covers = d[0] == s[0] and bits[d] >= bits[s] or (d[0], s[0]) == ("s", "u") and bits[d] > bits[s]
        return not rnd and not (sat and covers)
    if d_int:
        return rnd in ("rni", "rzi", "rmi", "rpi")
    if s_int:
        return rnd in ("rn", "rz", "rm", "rp")
    loses = bits[d] < bits[s] or bits[d] == bits[s] == 16
    return rnd in ("rn", "rz", "rm", "rp") if loses else not rnd


def compare_types(m) -> bool:
    if m("type")[0] == "b":
        return m("cmp") in ("eq", "ne")
    return m("type")[0] != "s" or m("cmp") not in ("lo", "ls", "hi", "hs")


_ATOM = {"and or xor": "b32 b64", "inc dec": "u32", "min max": "u32 s32 u64 s64", "add": "u32 s32 u64 f32 f64"}
PREDICATES = {
    "@v128": lambda m: not (m("vec") == "v4" and m("type") in WIDE),
    "@v256": lambda m: m("vec") == "v8" and m("type") not in WIDE or m("vec") == "v4" and m("type") in WIDE,
    "@ldrules": ld_rules,
    "@atomtype": op_types(_ATOM),
    "@redtype": op_types({**_ATOM, "min max": "u32 s32 u64"}),
    "@mmtype": op_types({"and or xor": "b32 b64", "min max": "u32 s32 u64 s64", "add": "u32 s32 u64"}),
    "@sametype": lambda m: m("type") == m("st"),
    "@hintspace": lambda m: not m("hint") or m("space") in ("", "global", None),
    "@cmptype": compare_types,
    "@cvtrules": cvt_rules,
}


class Row:
    def __init__(self, opcode: str, operands: str, flags: str, sm: str, emu: str, rules: str):
        self.text = opcode
        self.parts: list[tuple[str, list[str], bool]] = []  # slot ("" for a literal), choices, optional
        for token in split(opcode, "."):
            slot = re.match(r"\{(\w+)(\??)=(.*)\}$", token)
            self.parts.append((slot[1], choices(slot[3]), bool(slot[2])) if slot else ("", [token], False))
        self.operands = split(operands, ",")
        self.sm = sm
        self.emu = emu
        self.rules = split(rules, ",")

    def holds(self, m: dict[str, str]) -> bool:
        return all(self.rule(r, m) for r in self.rules)

    def rule(self, r: str, m: dict[str, str]) -> bool:
        if "<=>" in r:
            a, b = r.split("<=>")
            return bool(m.get(a)) == bool(m.get(b))
        if "=>" in r:
            a, b = r.split("=>", 1)
            return not self.atom(a, m) or self.atom(b, m)
        return self.atom(r, m)

    def atom(self, a: str, m: dict[str, str]) -> bool:
        if a.startswith("@"):
            name, _, limit = a.partition("<=")
            return self.count(name, m) <= int(limit) if limit else PREDICATES[name](m.get)
        if a.startswith("!"):
            return not m.get(a[1:])
        if "=" in a:
            slot, want = a.split("=", 1)
            return m.get(slot, "") in want.split("|")
        return bool(m.get(a))

    def floor(self, m: dict[str, str]) -> str:
        first, *more = self.sm.split(",")
        if any(x.startswith("kind=alias:") for x in more) and m.get("kind") == "alias":
            return "70"
        for x in more:
            cond, arch = x.rsplit(":", 1)
            if self.atom(cond, m) and ORDER.index(arch) > ORDER.index(first):
                first = arch
        return first

    def count(self, n: str, m: dict[str, str]) -> int:
        shape = m.get("shape", "")
        k = int(shape.rsplit("k", 1)[1]) if re.search(r"k\d+$", shape) else 0
        if n.startswith("$"):
            return number(m.get(n[1:], ""))
        if n.isdigit():
            return int(n)
        scatter = "gather4" in m.get("lm", "") or "scatter4" in m.get("lm", "")
        tmem = {"16x64b": 1, "32x32b": 1, "16x128b": 2, "16x256b": 4}.get(shape, 0)
        return {
            "@tma": lambda: 5 if scatter else int(m["dim"][0]),
            "@im2col": lambda: int(m["dim"][0]) - 2,
            "@ldm": lambda: 2 * number(m["num"]),
            "@mma_a": lambda: k // 4,
            "@mma_a16": lambda: k // 4,
            "@mma_a32": lambda: k // 2,
            "@mma_a8": lambda: k // 8,
            "@mma_b": lambda: k // 8,
            "@mma_b16": lambda: k // 8,
            "@mma_b32": lambda: k // 4,
            "@mma_b8": lambda: k // 16,
            "@acc": lambda: int(re.search(r"n(\d+)", shape)[1]) // 2,
            "@acc16": lambda: int(re.search(r"n(\d+)", shape)[1]) // 4,
            "@tcreg": lambda: number(m["num"]) * tmem,
            "@tcmask": lambda: 8 if m["cg"].endswith("2") else 4,
        }[n]()

    def type(self, t: str, m: dict[str, str]) -> str:
        t = t.rstrip("~")
        if t.startswith("$"):
            return m[t[1:]]
        if t == "@wide":
            return {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}[m["type"]]
        if t == "@dp":
            return "u32" if (m["at"], m["bt"]) == ("u32", "u32") else "s32"
        return t

    # ---- operands as the text of arguments ---------------------------------------------------------------------------

    def register(self, spec: str, written: bool, m: dict[str, str], used: dict[str, int]) -> list[str]:
        group = re.match(r"\{(\w+):([^}]*)\}\*(\S+)$", spec)
        t, n = (self.type(group[2], m), self.count(group[3], m)) if group else (self.type(spec.split(":", 1)[1], m), 1)
        if t == "ptr":
            return ["G.data"] * n
        if t == "pred" and not written:
            return ["tx < 3"] * n
        dtype = carrier(t)
        start = used.get(dtype, 0)
        used[dtype] = start + n
        return [f"r_{dtype}[{start + i}]" for i in range(n)]

    def address(self, spec: str, m: dict[str, str], used: dict[str, int]) -> list[str]:
        first, *more = split(spec[1:-1], ",")
        space = first.split(":", 1)[1].rstrip("+")
        space = m.get(space[1:], "") if space.startswith("$") else space
        if space == "tmem":
            used["uint32"] = used.get("uint32", 0) + 1
            out = [f"r_uint32[{used['uint32'] - 1}]"]
        elif space.startswith("shared"):
            out = ["sm.ptr_to([16])"]
        elif space == "local":
            out = ["T.address_of(loc[0])"]
        else:
            out = ["G.ptr_to([16])"]
        for x in more:
            out += self.register(x, False, m, used)
        return out

    def immediate(self, spec: str, turn: int) -> str:
        _, _, among = spec.partition("=")
        if not among:
            return str(turn % 2)
        span = re.match(r"(-?\d+)\.\.(-?\d+)", among)
        values = [span[1], span[2]] if span else among.split("|")
        return values[turn % len(values)]

    def present(self, o: str, free: bool, m: dict[str, str]) -> str | None:
        if o.startswith("'"):
            return o
        body, mark, cond = o.partition("?")
        if not mark:
            return o
        if cond.startswith("?"):
            return body if free and (not cond[1:] or self.atom(cond[1:], m)) else None
        return body if self.atom(cond, m) else None

    def arguments(self, m: dict[str, str], free: bool, turn: int) -> tuple[list[str], dict[str, int]]:
        out: list[str] = []
        used: dict[str, int] = {}
        for o in self.operands:
            o = self.present(o, free, m)
            if o is None or o.startswith("'"):
                continue
            if o.startswith("#"):
                out.append(self.immediate(o, turn))
            elif o.startswith("["):
                out += self.address(o, m, used)
            else:
                for piece in split(o, "|"):
                    written = piece[0] in "=+"
                    out += self.register(piece[1:] if written else piece, written, m, used)
        return out, used

    def combinations(self):
        """Choices that cover every token of every slot, few at a time."""
        slots = [(s, ([""] if optional else []) + c) for s, c, optional in self.parts if s]
        total = 1
        for _, c in slots:
            total *= len(c)
        if total <= 5000:
            every = (
                dict(zip([s for s, _ in slots], c, strict=True)) for c in itertools.product(*[c for _, c in slots])
            )
        else:  # each token with what stands first elsewhere, and pairs of neighbours
            every = self.sparse(slots)
        need = {(s, t) for s, c in slots for t in c}
        if not slots:
            yield {}
        for m in every:
            hit = need.intersection(m.items())
            if hit and self.holds(m):
                need -= hit
                yield m

    @staticmethod
    def sparse(slots):
        import random

        r = random.Random(1)
        for _ in range(40000):
            yield {s: r.choice(c) for s, c in slots}

    def opcode(self, m: dict[str, str]) -> str:
        return ".".join(t for t in ((m[s] if s else c[0]) for s, c, _ in self.parts) if t)


@dataclass
class Variant:
    row: str
    statement: str
    arch: str
    used: dict[str, int]


def variants():
    for row in map(lambda r: Row(*r), _core.ptx_rows()):
        free = any("??" in o for o in row.operands)
        for turn, m in enumerate(row.combinations()):
            for with_free in (True, False) if free and turn < 4 else (True,):
                args, used = row.arguments(m, with_free, turn)
                yield Variant(row.text, f'T.ptx["{row.opcode(m)}"]({", ".join(args)})', row.floor(m), used)


def kernel(name: str, batch: list[Variant]) -> str:
    """Source of a kernel that executes all variants of a batch."""
    need: dict[str, int] = {}
    for v in batch:
        for dtype, n in v.used.items():
            need[dtype] = max(need.get(dtype, 0), n)
    lines = [
        "@T.prim_func",
        f'def {name}(G: T.Buffer((4096,), "uint8"), O: T.Buffer((1024,), "uint64")):',
        "    T.device_entry()",
        "    bx = T.cta_id([1])",
        "    tx = T.thread_id([128])",
        '    sm = T.alloc_shared((4096,), "uint8", align=1024)',
        '    loc = T.alloc_local((16,), "uint64")',
        *[f'    r_{dtype} = T.alloc_local(({n},), "{dtype}")' for dtype, n in need.items()],
        *[f"    {v.statement}" for v in batch],
    ]
    return "\n".join(lines) + "\n"
