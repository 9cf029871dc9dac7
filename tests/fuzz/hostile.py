# SPDX-License-Identifier: Apache-2.0
"""Kernels' text, spoilt: each is parsed and printed, or raises tirx.DiagnosticError, or an exception of the Python
expressions in it.

    python -m fuzz.hostile 100000             texts from seed 0; in tests/
    python -m fuzz.hostile 100000 7           other texts
    TIRX_FUZZ_PROCESSES=4                     in so many processes

What must not happen: the end of the process, tirx.InternalError, SystemError, AssertionError, an exception that our own
code raised by mistake, a text that takes longer than SLOW, and memory that grows.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import io
import os
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings

import tirx

SLOW = 5.0  # seconds for one text
TOKENS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|[+\-*/%&|^<>=!~]+|[()\[\]{},:.@#\\;]|\n *|.")
ODD = [
    "", "0", "-1", "1 << 70", "10 ** 400", "9" * 400, "1e400", "-0.0", "float('nan')", "None", "True", "...", "''",
    "'\\0'", '"n +"', "b''", "()", "[]", "{}", "(((((", ")))))", "lambda: 0", "x := 1", "*[1]", "**{}", "yield",
    "await", "not", "is None", "in [1]", "if 1 else", "for _ in ()", "T", "T.int32", "T.float99", "T.Buffer", "T.let",
    "T.handle", "T.float8_e4m3fn(3)", "T.infinity('float32')", "T.cast", "'float4_e2m1fn'", "'int32x0'", "'int32x65'",
    "\\", "\t", "\x00", "é", "ﬁ", "𝒯", "\u202e", "\ufeff", "⟨", "٣", "print", "object()", "int", "type", "len",
    "range", "__import__('sys')", "A", "A0.shape", "A0.data", "[0:4]", "[::0]", "[-1]", ".vload([0], 'int32x4')",
    ".astype", "@T.inline", "del", "global q", "nonlocal q", "import os", "raise", "try:", "with T.attr({}):",
    "while True:", "return 1", "break", "continue", "pass;", "class C: pass", "async", "match 1:",
    "assert False, (1, 2, 3)", "2 ** 31", "-2 ** 63", "0x8000000000000000", "T.ramp(0, 1, 4)",
    "T.ramp(0, 1, 10 ** 9)", "T.broadcast(1, 65)", "T.Shuffle([], [])", "T.evaluate", "T.cuda.cta_sync()",
    "T.ptx.bar.sync(0)", "T.device_entry()", "T.thread_id([2000])", "T.cta_id([0])",
    "T.alloc_local((10 ** 12,), 'int8')", "T.alloc_shared((0,), 'bool')",
]  # fmt: skip
RENAMED = (
    "cast let int32 float32 Buffer Tensor alloc_local device_entry cta_id thread_id serial unroll "
    "vectorized inline prim_func function Select reinterpret abs min"
).split()


@functools.cache
def corpus() -> list[str]:
    """Texts to spoil: printed kernels of the tests, and random programs."""
    import kernels
    from fuzz import programs

    texts = [programs.Program(seed, size=4).text for seed in range(60)]
    for k in kernels.KERNELS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(tirx.Error):
                texts.append(k.make().script())
    return [t for t in texts if len(t) < 6000]


def deep(r: random.Random) -> str:
    n = r.choice([50, 98, 99, 100, 101, 150, 199, 200, 201, 1000, 5000])
    k = r.randrange(8)
    if k == 0:
        e = "(" * n + "tx" + ")" * n
    elif k == 1:
        e = "-" * n + "tx"
    elif k == 2:
        e = " + ".join(["tx"] * n)
    elif k == 3:
        e = "T.abs(" * n + "tx" + ")" * n
    elif k == 4:
        e = "B[" * n + "tx" + "]" * n
    elif k == 5:
        e = "[" * n + "]" * n
    elif k == 6:
        depth = min(n, 95)
        lines = [" " * (4 + i) + r.choice(["if tx > 1:", "for i in range(2):", "while tx < 0:"]) for i in range(depth)]
        return HEAD + "\n".join(lines) + "\n" + " " * (4 + depth) + "B[tx] = 1\n"
    else:
        e = "1 if tx else " * n + "0"
    return HEAD + f"    B[tx] = {e}\n"


HEAD = """@T.prim_func
def k(B: T.Buffer((64,), "int32")):
    T.device_entry()
    tx = T.thread_id([64])
"""


def spoil(text: str, other: str, r: random.Random) -> str:
    tokens = TOKENS.findall(text)
    for _ in range(r.choice([1, 1, 1, 2, 3, 8])):
        i, j = r.randrange(len(tokens)), r.randrange(len(tokens))
        k = r.randrange(12)
        if k == 0:
            del tokens[i]
        elif k == 1:
            tokens.insert(i, tokens[j])
        elif k == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif k < 6:
            tokens[i] = r.choice(ODD)
        elif k == 6:
            tokens.insert(i, r.choice(ODD))
        elif k == 7:
            del tokens[min(i, j) : min(i, j) + r.randrange(1, 8)]
        elif k == 8:
            rest = TOKENS.findall(other)
            a = r.randrange(len(rest))
            tokens[i : i + r.randrange(3)] = rest[a : a + r.randrange(1, 12)]
        elif k == 9:
            same = [n for n, t in enumerate(tokens) if t.isidentifier()]
            tokens[r.choice(same)] = tokens[r.choice(same)] if same else ""
        elif k == 10:
            numbers = [n for n, t in enumerate(tokens) if t[:1].isdigit()]
            if numbers:
                tokens[r.choice(numbers)] = r.choice(
                    ["0", "-1", "4294967296", "2147483648", "1.5", "1e999", "9" * 5000, "0x", "1_0", "7j"]
                )
        else:
            names = [n for n in range(1, len(tokens)) if tokens[n - 1] == "." and tokens[n] in RENAMED]
            if names:
                n = r.choice(names)
                tokens[n] = r.choice([tokens[n] + "x", tokens[n][:-1], r.choice(RENAMED), tokens[n].upper()])
        if not tokens:
            return ""
    return "".join(tokens)


OURS = os.path.dirname(os.path.abspath(tirx.__file__))
ALLOWED = (SyntaxError, RecursionError, MemoryError, OverflowError, ZeroDivisionError, StopIteration, UnicodeError)


def of_the_user(e: BaseException) -> bool:
    """An exception that Python raised in evaluating the text: its innermost frame is the text, or one of our functions
    was called with what it cannot take (its signature did not fit, or it says so itself with a raise)."""
    if isinstance(e, (tirx.Error, *ALLOWED)):
        return not isinstance(e, tirx.InternalError)
    if isinstance(e, AssertionError):
        return traceback.extract_tb(e.__traceback__)[-1].filename.startswith("<tirx source")  # a module's own assert
    if isinstance(e, SystemError):
        return False
    last = traceback.extract_tb(e.__traceback__)[-1]
    if not last.filename.startswith(OURS):
        return True
    line = (last.line or "").strip()
    return (
        line.startswith("raise ")
        or "TypeError" == type(e).__name__
        and "argument" in str(e)
        or PLAIN.search(line) is not None
    )


# where the parser evaluates what the user wrote: operators, calls, subscripts and attributes of the user's values
PLAIN = re.compile(r"getattr\(|operator|f\(\*|function\(|value\(|\(\*args|eval\(|exec\(|compile\(|parse_dtype\(")


class TooLongError(Exception):
    """The text runs on; `ours` tells whether it was in a function of tirx."""

    def __init__(self, frame):
        self.ours = frame is not None and frame.f_code.co_filename.startswith(OURS)


def alarm(_, frame):
    raise TooLongError(frame)


def try_one(text: str) -> str | None:
    """What went wrong, or None. What the text's own Python takes is the text's: a module's loops are not run."""
    if re.search(r"^while\b", text, re.MULTILINE):
        return None
    start = time.monotonic()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, alarm)
        signal.setitimer(signal.ITIMER_REAL, 10 * SLOW)
    try:
        f = tirx.from_source(text, {})
        for g in [f] if hasattr(f, "script") else []:
            g.script()
    except KeyboardInterrupt:
        raise
    except TooLongError as e:
        return f"still running after {10 * SLOW} s" if e.ours else None
    except BaseException as e:
        if isinstance(e, SystemExit):
            return f"SystemExit: {e}"
        if not of_the_user(e):
            last = traceback.extract_tb(e.__traceback__)[-1]
            return f"{type(e).__name__}: {str(e)[:200]} at {os.path.basename(last.filename)}:{last.lineno}: {last.line}"
    finally:
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    took = time.monotonic() - start
    return f"took {took:.1f} s" if took > SLOW else None


def many(count: int, seed: int = 0, seconds: float = 0) -> tuple[int, list[tuple[str, str]]]:
    """(texts tried, [(what went wrong, text)])"""
    texts, r = corpus(), random.Random(seed)
    wrong: dict[str, tuple[str, str]] = {}
    end = time.monotonic() + seconds if seconds else 0
    quiet = io.StringIO()
    kept, sys.stdout = sys.stdout, quiet  # print(...) in a kernel runs
    n = 0
    namespaces = [(x, dict(vars(x))) for x in (tirx.T, tirx.T.cuda) if hasattr(x, "__dict__")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for n in range(1, count + 1):
                text = deep(r) if r.random() < 0.01 else spoil(r.choice(texts), r.choice(texts), r)
                said = try_one(text)
                for space, was in namespaces:  # T.abs = 3 outside a kernel is Python
                    if len(vars(space)) != len(was) or any(v is not was.get(k) for k, v in vars(space).items()):
                        for name in set(vars(space)) - set(was):
                            delattr(space, name)
                        for name, value in was.items():
                            setattr(space, name, value)
                if said:
                    wrong.setdefault(re.sub(r"\d+|'[^']*'", "#", said)[:120], (said, text))
                if n % 1000 == 0:
                    quiet.seek(0)
                    quiet.truncate()
                    gc.collect()
                if end and time.monotonic() > end:
                    break
    finally:
        sys.stdout = kept
    return n, list(wrong.values())


def shortened(text: str, said: str) -> str:
    """Fewer lines with the same fault."""
    head = said.split(":")[0]
    lines = text.split("\n")
    i = len(lines) - 1
    while i >= 0:
        less = lines[:i] + lines[i + 1 :]
        again = try_one("\n".join(less))
        if again and again.split(":")[0] == head:
            lines = less
        i -= 1
    return "\n".join(lines)


def job(args):
    faulthandler.enable()
    return many(*args), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    count, seed = (*map(int, sys.argv[1:]), 0, 0)[:2]
    processes = int(os.environ.get("TIRX_FUZZ_PROCESSES", "1"))
    start, total, wrong, most = time.monotonic(), 0, {}, 0
    per = max(1, min(20_000, count // processes))
    jobs = [(per, seed + k) for k in range(count // per)]
    if processes > 1:
        import multiprocessing

        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            results = pool.imap_unordered(job, jobs)
            results = list(results)
    else:
        results = [job(j) for j in jobs]
    for (n, found), memory in results:
        total += n
        most = max(most, memory)
        for said, text in found:
            wrong.setdefault(said.split("\n")[0][:80], (said, text))
    print(f"{total} texts in {time.monotonic() - start:.0f} s, at most {most // 1024} MB, {len(wrong)} kinds of fault")
    for said, text in wrong.values():
        print("-" * 100)
        print(said)
        print(shortened(text, said)[:1500])
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
