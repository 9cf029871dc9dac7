# SPDX-License-Identifier: Apache-2.0
"""Runs random kernels on the emulator and in the reference, and shrinks what differs.

python -m fuzz.driver 0 1000              seeds 0 .. 999; in tests/
python -m fuzz.driver 42                  one seed: its text, and what is wrong with it
python -m fuzz.driver 0 100000 --table    with the table of what occurred
python -m fuzz.driver --sync 0 1000       kernels whose threads meet, under three schedules each
TIRX_FUZZ_PROCESSES=4                     in so many processes
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import os
import sys
import time
import warnings

import ml_dtypes
import numpy as np

import tirx
from tirx import _core

from . import machine, meetings, programs, reference, shrink
from . import scalars as S

NUMPY = {t: np.dtype(getattr(ml_dtypes, t, None) or t) for t in S.DTYPES if t != "float4_e2m1fn"}
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclasses.dataclass
class Outcome:
    """kind: "same", "refused" (text says why), "unsure" (the reference does not know), or a failure: "differs",
    "round trip", "report", "crash"."""

    kind: str
    text: str = ""
    function: object = None

    @property
    def failed(self) -> bool:
        return self.kind in ("differs", "round trip", "report", "crash", "lowered")


def array(t: str, shape, values) -> np.ndarray:
    words = np.array([S.to_bits(t, v) for v in values], WORD[NUMPY[t].itemsize])
    return words.view(NUMPY[t]).reshape(shape)


def close(t: str, a: int, b: int) -> bool:
    """Within the stated bound of a function: two units in the last place."""
    top = 1 << (S.BITS[t] - 1)
    a, b = (top - x if x & top else x for x in (a, b))
    return abs(a - b) <= 2


def compare(text: str, arrays: dict, want: dict, near: set) -> str | None:
    for name, buf in want.items():
        got = arrays[name]
        t = buf.t
        words = got.view(WORD[got.dtype.itemsize]).ravel().tolist()
        for i, (g, v) in enumerate(zip(words, buf.data, strict=True)):
            w = S.to_bits(t, v)
            if g == w or (S.BITS[t] == 6 and g & 63 == w):
                continue
            x = S.from_bits(t, g)
            if (v != v and x != x) or (name in near and close(t, g, w)):
                continue
            return f"{name}.flat[{i}] ({t}): got {x!r} ({g:#x}), want {v!r} ({w:#x})"
    return None


def fresh(args: dict, f) -> tuple[dict, list]:
    arrays, call = {}, []
    for name, t in parameters(f):
        v = args[name]
        if isinstance(v, tuple):
            arrays[name] = array(t, *v)
            call.append(arrays[name])
        else:
            call.append(bool(v) if t == "bool" else v)
    return arrays, call


def parameters(text: str):
    """(name, dtype) in order."""
    node = next(n for n in reversed(machine.parsed(text).body) if isinstance(n, ast.FunctionDef))
    for a in node.args.args:
        c = a.annotation
        yield a.arg, machine.dtype_of(c.args[1] if isinstance(c, ast.Call) else c)


def check(text: str, args: dict, near=frozenset({"N"}), seed: int = 0, level: int = 3, sync: bool = False) -> Outcome:
    """level 1: values; 2: and the printed form; 3: and checks, other options, the lowered text. sync: schedules too."""
    try:
        f = tirx.from_source(text)
    except tirx.DiagnosticError as e:
        return refusal(str(e))
    except Exception as e:
        return Outcome("crash", f"from_source: {type(e).__name__}: {e}")
    try:
        return check_function(f, text, args, near, seed, level, sync)
    except tirx.DiagnosticError as e:
        return refusal("later: " + str(e))


# What the generator may run into: constants that turn out as a fault, and names whose value depends on the way taken.
RIGHTLY = (
    "division by zero", "shift by", "was given another value inside", "makes statements",
    "negative value", "Literal value", "outside the shape",
)  # fmt: skip


def refusal(text: str) -> Outcome:
    return Outcome("refused" if any(t in text for t in RIGHTLY) else "crash", text)


def check_function(f, text, args, near, seed, level, sync) -> Outcome:
    if level > 1:
        printed = f.script()
        try:
            again = tirx.from_source(printed)
        except Exception as e:
            return Outcome("round trip", f"{type(e).__name__}: {e}\n{printed}", f)
        if not tirx.structural_equal(f, again):
            return Outcome("round trip", f"another function\n{printed}", f)
        if seed % 4 == 1:
            other = f.script(dialect="g2" if "@T.prim_func" in printed else "g1")
            try:
                tirx.from_source(other)
            except Exception as e:
                return Outcome("round trip", f"other dialect: {type(e).__name__}: {e}\n{other}", f)
    contract = seed % 3 == 0 and unambiguous(text)
    try:
        want = reference.run(text, args, contract)
    except (S.Unsure, S.Refused) as e:
        return Outcome("unsure", f"{type(e).__name__}: {e}", f)
    faults = set(S.faults)
    if "NaN" in faults:
        return Outcome("unsure", "bits of a NaN", f)
    exe = tirx.compile(f, target="cpu", contract=contract)
    if sync:
        return check_schedules(exe, f, text, args, want, faults, seed)
    arrays, call = fresh(args, text)
    try:
        exe(*call, check=False)
    except tirx.EmulationError as e:
        return Outcome("report", f"without checks: {e}", f)
    except Exception as e:
        return Outcome("crash", f"{type(e).__name__}: {e}", f)
    wrong = compare(text, arrays, want, near)
    if wrong:
        return Outcome("differs", wrong, f)
    if level < 3:
        return Outcome("same", "", f)
    if seed % 2 == 0:
        arrays, call = fresh(args, text)
        try:
            exe(*call, check=True)  # a fault in what nothing reads may be gone
            wrong = compare(text, arrays, want, near)
        except tirx.EmulationError as e:
            if not faults or e.kind != "arithmetic":
                return Outcome("report", f"{e}", f)
        if wrong:
            return Outcome("differs", "with checks: " + wrong, f)
    return check_lowered(f) if seed % 4 == 3 else Outcome("same", "", f)


def check_lowered(f) -> Outcome:
    lowered = tirx.lower(f, target="cuda:sm_90a")
    printed = lowered.script()
    try:
        again = tirx.from_source(printed)
    except Exception as e:
        return Outcome("lowered", f"{type(e).__name__}: {e}\n{printed}", f)
    if not tirx.structural_equal(lowered, again):
        return Outcome("lowered", f"another module\n{printed}", f)
    return Outcome("same", "", f)


def check_schedules(exe, f, text, args, want, faults, seed) -> Outcome:
    """Three schedules, with checks and without; the kernel is right, so nothing may be reported."""
    for schedule, checks in (("late", True), ("early", seed % 2 == 0), (seed & 0xFFFF, seed % 2 == 1)):
        arrays, call = fresh(args, text)
        said = f"schedule={schedule!r}, check={checks}: "
        try:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                exe(*call, check=checks, schedule=schedule)
            told = [w.message for w in told if getattr(w.message, "kind", "overflow") != "overflow"]
            if told:
                return Outcome("report", said + str(told[0]), f)
        except tirx.EmulationError as e:
            if faults and e.kind == "arithmetic":
                continue
            return Outcome("report", said + str(e), f)
        except Exception as e:
            return Outcome("crash", f"{said}{type(e).__name__}: {e}", f)
        wrong = compare(text, arrays, want, ())
        if wrong:
            return Outcome("differs", said + wrong, f)
    return check_lowered(f) if seed % 4 == 3 else Outcome("same", "", f)


def races(text: str, args: dict) -> bool:
    """Whether a checked run tells of anything but arithmetic."""
    _, call = fresh(args, text)
    try:
        tirx.compile(tirx.from_source(text), target="cpu")(*call, check=True)
    except tirx.EmulationError as e:
        return e.kind != "arithmetic"
    return False


def unambiguous(text: str) -> bool:
    """No product stands twice in one statement, none reaches a sum by a name: what contraction takes is then plain."""
    if "sum(" in text or "**" in text or "@T.inline" in text:
        return False
    for n in ast.walk(machine.parsed(text)):
        if isinstance(n, ast.stmt) and not hasattr(n, "body"):
            seen = set()
            for m in ast.walk(n):
                if isinstance(m, (ast.Call, ast.IfExp)) and any(
                    isinstance(k, ast.BinOp) and isinstance(k.op, ast.Mult) for k in ast.iter_child_nodes(m)
                ):
                    return False  # the call may fold away
                if isinstance(m, ast.BinOp) and isinstance(m.op, ast.Mult):
                    key = frozenset((ast.unparse(m.left), ast.unparse(m.right)))
                    if key in seen:
                        return False
                    seen.add(key)
    return True


# ---- what occurred -------------------------------------------------------------------------------------------------

NODES = {
    ast.Add: "ADD", ast.Sub: "SUB", ast.Mult: "MUL", ast.FloorDiv: "FLOORDIV", ast.Mod: "FLOORMOD", ast.LShift: "SHL",
    ast.RShift: "SHR", ast.BitAnd: "BAND", ast.BitOr: "BOR", ast.BitXor: "BXOR", ast.Div: "DIV", ast.Eq: "EQ",
    ast.NotEq: "NE", ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE", ast.And: "AND", ast.Or: "OR",
    ast.Not: "NOT", ast.USub: "NEG", ast.Invert: "BNOT", ast.For: "FOR", ast.While: "WHILE", ast.If: "IF",
    ast.Break: "BREAK", ast.Continue: "CONTINUE", ast.Return: "RETURN", ast.Assert: "ASSERT", ast.IfExp: "IF_THEN_ELSE",
}  # fmt: skip


def count(printed: str, text: str, table: collections.Counter, spellings: dict) -> None:
    """Rows of ops.def in a printed function (what was made of the text), dtypes, and forms of the text's statements."""
    for n in ast.walk(ast.parse(printed)):
        kind = NODES.get(type(n))
        if kind:
            table[f"op {kind}"] += 1
        if isinstance(n, ast.Call):
            name = machine.is_T(n.func)
            if name and name.startswith("ptx."):
                tokens = [
                    t for t in machine.ptx_tokens(name) if t not in ("relaxed", "cta", "release", "acquire", "gpu")
                ]
                table["ptx " + ".".join(tokens[:4])] += 1
            elif name:
                row = spellings.get("T." + name)
                if row:
                    table[f"op {row}"] += 1
                if machine.dtype_name(name):
                    table["op FLOAT" if "float" in name else "op INT"] += 1
                    table[f"dtype {S.scalar(machine.dtype_name(name))}"] += 1
                if name.startswith("alloc"):
                    table["op ALLOC"] += 1
            elif isinstance(n.func, ast.Attribute):
                for row in {"ptr_to": ["ADDRESS_OF"], "view": ["DECL", "BUFFER_DATA"]}.get(n.func.attr, []):
                    table[f"op {row}"] += 1
        elif isinstance(n, ast.Subscript):
            table["op LOAD" if isinstance(n.ctx, ast.Load) else "op STORE"] += 1
        elif isinstance(n, ast.Constant) and type(n.value) is str:
            t = machine.dtype_name(n.value)
            if t:
                table[f"dtype {S.scalar(t)}"] += 1
        elif isinstance(n, ast.Attribute):
            t = machine.is_T(n)
            t = t and machine.dtype_name(t)
            if t:
                table[f"dtype {S.scalar(t)}"] += 1
            elif n.attr == "data":
                table["op BUFFER_DATA"] += 1
        elif isinstance(n, ast.AnnAssign):
            table["op BIND" if "let" in ast.unparse(n.annotation) else "op ALLOC"] += 1
        elif isinstance(n, ast.Name):
            table["op VAR"] += 1
        elif isinstance(n, ast.Expr):
            table["op EVAL"] += 1
    for n in ast.walk(machine.parsed(text)):
        if isinstance(n, ast.stmt):
            head = type(n).__name__
            if isinstance(n, ast.For):
                it = n.iter
                head += " over " + (ast.unparse(it.func) if isinstance(it, ast.Call) else "a list")
                step = it.args[2] if isinstance(it, ast.Call) and len(it.args) > 2 else next(
                    (k.value for k in getattr(it, "keywords", ()) if k.arg == "step"), None)  # fmt: skip
                if step is not None:
                    head += " with a step" if not ast.unparse(step).startswith("-") else " downwards"
            elif isinstance(n, ast.Assign):
                t = n.targets[0]
                head += " to " + type(t).__name__.lower() + (", chained" if len(n.targets) > 1 else "")
                if isinstance(t, ast.Subscript) and (
                    "ramp" in ast.unparse(t) or any(isinstance(s, ast.Slice) for s in ast.walk(t))
                ):
                    head += " of a vector"
            elif isinstance(n, ast.AugAssign):
                head += " " + type(n.op).__name__
            elif isinstance(n, ast.AnnAssign):
                a = ast.unparse(n.annotation)
                head += " let" if a == "T.let" else " let[dtype]" if "let" in a else " array" if "[" in a else " cell"
                head += "" if n.value else ", no value"
            elif isinstance(n, ast.Expr):
                head += " " + (
                    ast.unparse(n.value.func).rpartition(".")[2] if isinstance(n.value, ast.Call) else "constant"
                )
            elif isinstance(n, ast.If) and n.orelse:
                head += " with else"
            table[f"form {head}"] += 1
        elif isinstance(n, ast.Compare) and len(n.ops) > 1:
            table["form chained comparison"] += 1
        elif isinstance(n, ast.Call) and not machine.is_T(n.func):
            if isinstance(n.func, ast.Name) and n.func.id.startswith("h"):
                table["form call of an inline helper"] += 1
            elif isinstance(n.func, ast.Name):
                table[f"form {n.func.id}()"] += 1
            elif isinstance(n.func, ast.Attribute):
                table[f"form .{n.func.attr}()"] += 1
        elif isinstance(n, ast.BinOp) and isinstance(n.op, ast.Pow):
            table["form **"] += 1
    table["form dialect " + ("g1" if "@T.prim_func" in text else "g2")] += 1


# Rows that no kernel of the generator can hold, and why.
ELSEWHERE = {
    name: why
    for why, names in {
        "text of messages: counted with ASSERT": "STR",
        "made by the vectoriser only": "VECTOR",
        "approximate": "FDIVIDEF",
        "an address": "CVTA_SHARED",
        "clusters: tests/emu": "CLUSTER_ID",
        "clusters": "CLUSTER_CTA CLUSTER_DIM CLUSTER_RANK CTA_PAIR CLUSTER_SYNC",
        "cooperative launches": "GRID_SYNC",
        "depends on the schedule": "ACTIVEMASK",
        "a clock": "CLOCK64",
        "asynchronous": "MBAR_WAIT",
        "tests/emu": "CTA_REDUCE TRAP_UNLESS WARPGROUP_SYNC WARPGROUP_ID WARP_IN_WG THREAD_IN_WG",
        "writes": "PRINTF",
        "injected CUDA": "FUNC_CALL CALL_EXTERN CALL_PURE_EXTERN",
        "host": "CALL_PACKED STACK_ALLOCA",
        "made by lowering": "STRUCT_GET LAUNCH",
        "a return, where it stands by itself": "THREAD_RETURN",
        "modules": "CALL_FUNC",
        "tests/ptx": "PTX",
        "tiles": "TILE",
        "tests/script": "MATCH",
        "every body": "SEQ",
        "wgmma": "FENCE_OPERAND KEPT",
    }.items()
    for name in names.split()
}


def spellings() -> dict:
    table = {s: name for _, name, s, _, _, _ in _core.ops() if s.startswith("T.")}
    table |= {"T.alloc_local": "ALLOC", "T.alloc_shared": "ALLOC", "T.alloc_buffer": "ALLOC", "T.cta_id": "SCOPE_ID"}
    table |= {"T.thread_id": "SCOPE_ID", "T.decl_buffer": "DECL", "T.ramp": "RAMP", "T.broadcast": "BROADCAST"}
    table |= {f"T.cuda.warp_{op}": "WARP_REDUCE" for op in ("sum", "min", "max")}
    table |= {"T.cast": "CAST", "T.Ramp": "RAMP", "T.Broadcast": "BROADCAST", "T.gpu_thread_return": "THREAD_RETURN"}
    return table


# ---- many ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Tally:
    kinds: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    reasons: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    table: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failures: list = dataclasses.field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.kinds += other.kinds
        self.reasons += other.reasons
        self.table += other.table
        self.failures += other.failures


def program(seed: int, sync: bool) -> programs.Program:
    return meetings.Meetings(seed) if sync else programs.Program(seed)


def one(seed: int, level: int = 3, sync: bool = False) -> tuple[programs.Program, Outcome]:
    p = program(seed, sync)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return p, check(p.text, p.args, p.near, seed, level, sync)


def many(
    first: int, count_: int, seconds: float = 0, table: bool = False, most: int = 20, level: int = 3, sync: bool = False
) -> Tally:
    tally, end, names = Tally(), time.monotonic() + seconds if seconds else 0, spellings()
    for seed in range(first, first + count_):
        p, o = one(seed, level, sync)
        tally.kinds[o.kind] += 1
        if o.kind in ("unsure", "refused"):
            tally.reasons[f"{o.kind}: {reason(o.text)}"] += 1
        if table and o.function is not None and o.kind != "refused":
            count(o.function.script(), p.text, tally.table, names)
        if o.failed:
            tally.failures.append((seed, o.kind, o.text))
            if len(tally.failures) >= most:
                break
        if end and time.monotonic() > end:
            break
    return tally


def reason(text: str) -> str:
    """The kind of a message: its first line without numbers and names."""
    line = text.split("\n")[0]
    return " ".join(w for w in line.split() if w.isalpha())[:70]


def shrunk(seed: int, kind: str, level: int = 3, sync: bool = False) -> str:
    """What is wrong with it must stay wrong; a kernel that has races by now is another matter."""
    p = program(seed, sync)
    first = check(p.text, p.args, p.near, seed, level, sync)

    lines = ast.unparse(ast.parse(p.text)).split("\n")
    head = lines[: next(i for i, line in enumerate(lines) if "gid: T.let" in line) + 1]

    def fails(text: str) -> bool:
        """The same kind of failure, and still a kernel without races."""
        if text.split("\n")[: len(head)] != head:
            return False
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                o = check(text, p.args, p.near, seed, level, sync)
                if kind == "report" and sync:
                    return o.kind == kind and reason(o.text) == reason(first.text)
                return o.kind == kind and (kind != "differs" or not races(text, p.args))
        except Exception:
            return False

    return shrink.shrink(p.text, fails)


def report(seed: int, kind: str, text: str, sync: bool = False) -> str:
    small = shrunk(seed, kind, sync=sync)
    p = program(seed, sync)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o = check(small, p.args, p.near, seed, sync=sync)
    body = small[small.index("device_entry") :]
    used = {k: v for k, v in p.args.items() if k in body}
    replay = f"(replay: cd tests && python -m fuzz.driver {'--sync ' * sync}{seed})"
    return f"seed {seed}: {kind}: {o.text}\n\n{small}\narguments: {used}\n{replay}"


def job(args) -> Tally:
    return many(*args)


def main() -> int:
    numbers = [int(a) for a in sys.argv[1:] if a.lstrip("-").isdigit()]
    sync = "--sync" in sys.argv
    if len(numbers) == 1:
        p, o = one(numbers[0], sync=sync)
        print(p.text)
        print(o.kind, o.text)
        if o.failed:
            print(report(numbers[0], o.kind, o.text, sync))
        return o.failed
    first, n = numbers
    table = "--table" in sys.argv
    processes = int(os.environ.get("TIRX_FUZZ_PROCESSES", "1"))
    start = time.monotonic()
    tally = Tally()
    if processes > 1:
        import multiprocessing

        chunk = max(1, min(2000, n // processes))
        jobs = [(k, min(chunk, first + n - k), 0, table, 20, 3, sync) for k in range(first, first + n, chunk)]
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for t in pool.imap_unordered(job, jobs):
                tally.add(t)
    else:
        tally = many(first, n, 0, table, sync=sync)
    print(f"{sum(tally.kinds.values())} kernels in {time.monotonic() - start:.0f} s:", dict(tally.kinds))
    for r, k in tally.reasons.most_common(20):
        print(f"  {k:7} {r}")
    if table:
        for _, name, *_ in _core.ops():
            if name not in ELSEWHERE and f"op {name}" not in tally.table:
                tally.table[f"op {name}"] = 0
        for k, v in sorted(tally.table.items(), key=lambda kv: (kv[0].split()[0], kv[1])):
            print(f"{v:9} {k}")
    for f in tally.failures[:5]:
        print(report(*f, sync) if "--raw" not in sys.argv else f)
        print("-" * 100)
    print("failing seeds:", [f[0] for f in tally.failures])
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main())
