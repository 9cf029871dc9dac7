# SPDX-License-Identifier: Apache-2.0
"""Every rule of the simplifier in both directions: it fires where it should, and not where a side condition fails."""

from __future__ import annotations

import time

import pytest

from tirx import _core


class World:
    """Expressions over int32 variables x, y, z, n (and byte: uint8, u: uint32, wide: int64), by their text."""

    def __init__(self):
        self.ctx = _core.Context()
        kinds = {
            "x": "int32",
            "y": "int32",
            "z": "int32",
            "n": "int32",
            "byte": "uint8",
            "u": "uint32",
            "wide": "int64",
        }
        self.names = {k: _core.var(self.ctx, "let", k, t) for k, t in kinds.items()}
        self.names["size"] = _core.var(self.ctx, "symbol", "size", "int32")
        for name in ("min", "max", "truncdiv", "truncmod", "ceildiv"):
            row = {"truncdiv": "DIV", "truncmod": "MOD"}.get(name, name.upper())
            self.names[name] = lambda *a, row=row: _core.op(self.ctx, row, *a)
        self.names["select"] = lambda c, a, b: _core.select(self.ctx, c, a, b, False)
        self.names["AND"] = lambda a, b: _core.op(self.ctx, "AND", a, b)
        self.names["OR"] = lambda a, b: _core.op(self.ctx, "OR", a, b)
        self.names["NOT"] = lambda a: _core.op(self.ctx, "NOT", a)
        self.names["i32"] = lambda a: _core.cast(self.ctx, "int32", a)
        self.names["i64"] = lambda a: _core.cast(self.ctx, "int64", a)
        self.names["u8"] = lambda a: _core.cast(self.ctx, "uint8", a)
        self.names["tid"] = _core.coord(self.ctx, "THREAD_IDX", 0)
        self.names["bid"] = _core.coord(self.ctx, "BLOCK_IDX", 0)

    def __call__(self, text):
        return eval(text, {"__builtins__": {}}, self.names) if isinstance(text, str) else text

    def facts(self, known: str) -> dict:
        """ "0<=x<8; y%4==0; x<n" """
        ranges, multiples, assume = {}, {}, []
        for part in filter(None, (p.strip() for p in known.split(";"))):
            if "<=" in part and part.count("<") == 2:
                lo, v, hi = part.replace("<=", "<").split("<")
                ranges[self(v)] = (self(lo), _core.simplify(self.ctx, self(f"({hi}) - 1")))
            elif "%" in part and part.endswith(("0", "1", "2", "3")) and "==" in part:
                v, rest = part.split("%")
                m, r = rest.split("==")
                multiples[self(v)] = (int(m), int(r))
            else:
                assume.append(self(part))
        return {"ranges": ranges, "multiples": multiples, "assume": assume}


@pytest.fixture(scope="module")
def world():
    return World()


SAME = "stays"


@pytest.mark.parametrize(
    ("text", "known", "want"),
    [
        # collect_terms
        ("x + y - x", "", "y"),
        ("x*2 + y + x*3 - y", "", "x*5"),
        ("(x + 3) - (x - y)", "", "y + 3"),
        ("x*4 + x*-4", "", "0"),
        ("x + y", "", SAME),
        ("x*2 + y*3", "", SAME),
        ("(x + 1)*4 - x*4", "", "4"),
        # known_value
        ("x", "5<=x<6", "5"),
        ("x // 8", "0<=x<8", "0"),
        ("x // 8", "0<=x<9", SAME),
        ("x * y", "2<=x<3; 3<=y<4", "6"),
        # divide_multiples
        ("(x*4 + y) // 4", "0<=x<100; 0<=y<4", "x"),
        ("(x*4 + y) // 4", "0<=x<100; 0<=y<5", "x + y//4"),
        ("(x*4 + y) // 4", "", SAME),  # the sum may wrap
        ("(x*4 + 7) // 4", "0<=x<100", "x + 1"),
        ("(x*4 - 1) // 4", "0<=x<100", "x - 1"),
        ("(x*8 + y*4 + z) // 4", "0<=x<100; 0<=y<100; 0<=z<4", "x*2 + y"),
        ("(x*4 + y) // -4", "0<=x<100; 0<=y<4", SAME),
        # divide_twice
        ("(x // 4) // 8", "", "x // 32"),
        ("(x // 4) // -8", "", SAME),
        ("(x // 1000000) // 1000000", "", SAME),  # the product does not fit
        # divide_common_factor
        ("(x*4) // 8", "0<=x<100", "x // 2"),
        ("(x*4 + 3) // 8", "0<=x<100", "x // 2"),
        ("(x*4 + 4) // 8", "0<=x<100", "(x + 1) // 2"),
        ("(x*4) // 8", "", SAME),
        # reduce_multiples
        ("x % 8", "0<=x<8", "x"),
        ("x % 8", "0<=x<9", SAME),
        ("x % 8", "-1<=x<8", SAME),
        ("x % 8", "8<=x<16", "x - 8"),
        ("(x*8 + y) % 8", "0<=y<8", "y"),  # modulo a power of two, wrapping does not matter
        ("(x*8 + y) % 8", "", "y % 8"),
        ("(x*6 + y) % 6", "", SAME),  # but here it does
        ("(x*6 + y) % 6", "0<=x<100; 0<=y<6", "y"),
        ("(x*6 + y) % 6", "0<=x<100; 0<=y<100", "y % 6"),
        ("(x*9) % 8", "", "x % 8"),
        ("x % 8", "x%16==3", "3"),
        ("x % 16", "x%8==3", SAME),
        # reduce_twice
        ("(x % 32) % 8", "", "x % 8"),
        ("(x % 12) % 8", "", SAME),
        # truncate_positive
        ("truncdiv(x, 4)", "0<=x<100", "x // 4"),
        ("truncmod(x, 4)", "0<=x<100", "x % 4"),
        ("truncdiv(x, 4)", "-1<=x<100", SAME),
        ("truncmod(x, y)", "0<=x<100; 0<=y<9", SAME),
        # divide_up_multiple
        ("ceildiv(x*4, 4)", "0<=x<100", "x"),
        ("ceildiv(x*4, 4)", "", SAME),
        ("ceildiv(x*4 + 1, 4)", "0<=x<100", SAME),
        # mask_low, mask_nothing
        ("x & 7", "0<=x<8", "x"),
        ("x & 7", "0<=x<9", SAME),
        ("(x*32 + y) & 31", "0<=y<32", "y"),
        ("(x*32 + y) & 31", "", "y & 31"),
        ("(x*16) & 12", "", "0"),
        ("(x*8) & 12", "", SAME),
        ("x & 12", "x%16==0", "0"),
        # join_disjoint
        ("(x*8) ^ 5", "", "x*8 + 5"),
        ("(x*8) | 5", "", "x*8 + 5"),
        ("(x*4) ^ 5", "", SAME),
        ("x ^ y", "", SAME),
        # shift_multiple
        ("(x*4 + y) >> 2", "0<=x<100; 0<=y<4", "x"),
        ("(x*4 + y) >> 2", "0<=x<100; 0<=y<5", SAME),
        # choose_proved
        ("min(x, 10)", "0<=x<10", "x"),
        ("min(x, 10)", "0<=x<12", SAME),
        ("max(x, y)", "x < y", "y"),
        ("max(x, y)", "", SAME),
        # choose_known
        ("select(x < 8, y, z)", "0<=x<8", "y"),
        ("select(x >= 8, y, z)", "0<=x<8", "z"),
        ("select(x < 8, y, z)", "", SAME),
        ("select(x < 8, y, y)", "", "y"),
        # drop_side
        ("AND(x < 8, y < 8)", "0<=x<8", "y < 8"),
        ("OR(x < 8, y < 8)", "8<=x<10", "y < 8"),
        ("AND(x < 8, y < 8)", "", SAME),
        # cast_once
        ("i32(i64(x))", "", "x"),
        ("i32(u8(x))", "", SAME),
        ("i32(u8(x))", "0<=x<100", "x"),
        ("i64(i32(wide))", "0<=wide<100", "wide"),
        ("i64(i32(wide))", "", SAME),
        # unsigned and narrow
        ("(u*4 + 3) % 4", "", "i32(u)*0 + 3"),
    ],
)
def test_rule(world, text, known, want):
    e = world(text)
    got = _core.simplify(world.ctx, e, **world.facts(known))
    if want == SAME:
        assert got.same_as(e), f"{text} became {got}"
    elif text.startswith("(u"):
        assert got.op == "INT" and got.value == 3
    else:
        wanted = world(want)
        if isinstance(wanted, int):
            assert got.op == "INT" and got.value == wanted, f"{text} became {got}"
        else:
            assert got.same_as(wanted), f"{text} became {got}, not {want}"


@pytest.mark.parametrize(
    ("text", "known", "want"),
    [
        ("x + y", "0<=x<8; -2<=y<3", (0 - 2, 9)),
        ("x - y", "0<=x<8; -2<=y<3", (-2, 9)),
        ("x * y", "-3<=x<8; -2<=y<3", (-14, 14)),
        ("x * x", "", (-(2**31), 2**31 - 1)),
        ("x + 1", "", (-(2**31), 2**31 - 1)),
        ("x // 3", "-7<=x<8", (-3, 2)),
        ("x // y", "0<=x<8; 0<=y<3", (-(2**31), 2**31 - 1)),
        ("x // y", "0<=x<8; 1<=y<3", (0, 7)),
        ("truncdiv(x, 3)", "-7<=x<8", (-2, 2)),
        ("ceildiv(x, 3)", "-7<=x<8", (-2, 3)),
        ("x % 5", "", (0, 4)),
        ("x % -5", "", (-4, 0)),
        ("truncmod(x, 5)", "-2<=x<90", (-2, 4)),
        ("x % 5", "1<=x<4", (1, 3)),
        ("x & 12", "", (0, 12)),
        ("x | 8", "0<=x<5", (8, 15)),
        ("x ^ y", "0<=x<5; 0<=y<9", (0, 15)),
        ("x << 3", "0<=x<5", (0, 32)),
        ("x >> 1", "-5<=x<5", (-3, 2)),
        ("min(x, y)", "0<=x<5; 3<=y<9", (0, 4)),
        ("select(n < 0, x, y)", "0<=x<5; 3<=y<9", (0, 8)),
        ("byte", "", (0, 255)),
        ("byte + byte", "", (0, 255)),
        ("i32(byte) + 1", "", (1, 256)),
        ("u8(x)", "", (0, 255)),
        ("u8(x)", "3<=x<9", (3, 8)),
        ("x < 8", "0<=x<8", (0, 1)),
        ("wide", "", (None, None)),
        ("size", "", (0, 2**31 - 1)),
        ("tid", "", (0, 1023)),
        ("tid", "0<=tid<256", (0, 255)),
        ("x", "x > 3; x <= 9", (4, 9)),
        ("x + 0*y", "x > y; 0<=y<4", (1, 2**31 - 1)),
    ],
)
def test_bounds(world, text, known, want):
    assert _core.bounds(world.ctx, world(text), **world.facts(known)) == want


@pytest.mark.parametrize(
    ("text", "known", "want"),
    [
        ("x * 12", "0<=x<100", (12, 0)),
        ("x * 12", "", (4, 0)),  # 2**32 is a multiple of 4 only
        ("x * 12 + 5", "0<=x<100", (12, 5)),
        ("x", "x%8==3", (8, 3)),
        ("x * 2 + 1", "0<=x<100; x%8==3", (16, 7)),
        ("x // 4", "x%8==0", (2, 0)),
        ("x % 4", "x%8==3", (0, 3)),
        ("x & -8", "", (8, 0)),
        ("x << 4", "", (16, 0)),
        ("select(y < 0, x*4, x*4 + 2)", "", (2, 0)),
        ("min(x*4, y*6)", "0<=x<9; 0<=y<9", (2, 0)),
        ("x + y", "", (1, 0)),
    ],
)
def test_divisor(world, text, known, want):
    assert _core.divisor(world.ctx, world(text), **world.facts(known)) == want


@pytest.mark.parametrize(
    ("text", "known", "want"),
    [
        ("x < 8", "0<=x<8", True),
        ("x < 8", "8<=x<9", False),
        ("x < 8", "0<=x<9", None),
        ("x < n", "x < n", True),
        ("x <= n", "x < n", True),
        ("x >= n", "x < n", False),
        ("x == n", "x < n", False),
        ("x != n", "x < n", True),
        ("x < z", "x < y; y < z", True),
        ("x + 1 < z", "x < y; y < z", True),
        ("x + 1 < z", "x < y; y < z; -100<=x<100", True),
        ("x < y", "NOT(x >= y)", True),
        ("AND(x < y, y < z)", "AND(x < y, y < z)", True),
        ("OR(x < y, x >= y)", "", None),
        ("x*2 == y*2 + 1", "0<=x<100; 0<=y<100", False),
        ("x*2 == y*2 + 1", "", False),  # wrapping keeps parity
        ("x*3 == y*3 + 1", "", None),  # wrapping does not keep multiples of 3
        ("x*3 == y*3 + 1", "0<=x<100; 0<=y<100", False),
        ("x - x == 0", "", True),
        ("x + 1 > x", "", None),  # not where it wraps
        ("x + 1 > x", "0<=x<100", True),
        ("x % 8 < 8", "", True),
        ("x % 8 == 3", "x%16==3", True),
        ("i64(x) * 1000 < 5000", "0<=x<5", True),
        ("x != 0", "0<=x<9; x != 0", True),
        ("x >= 1", "0<=x<9; x != 0", True),
        ("size >= 0", "", True),
    ],
)
def test_prove(world, text, known, want):
    e = world(text)
    facts = world.facts(known)
    if e.op == "INT":
        assert bool(e.value) is want
        return
    assert _core.prove(world.ctx, e, **facts) is want


@pytest.mark.parametrize(
    ("text", "extent", "known", "want"),
    [
        ("x", "8", "0<=x<8", True),
        ("x", "8", "0<=x<9", False),
        ("x", "8", "x < 8", False),  # not below 0?
        ("x", "n", "0<=x<100; x < n", True),
        ("x", "size", "0<=x<100; x < size", True),
        ("x + 1", "n", "0<=x<100; x + 1 < n", True),
        ("x + 1", "n", "0<=x<100; x < n", False),
        ("x - 1", "n", "1<=x<100; x < n", True),
        ("x*4 + y", "32", "0<=x<8; 0<=y<4", True),
        ("x*4 + y", "n*4", "0<=x<100; 0<=n<100; x < n; 0<=y<4", True),
        ("x*4 + y", "n*4", "0<=x<100; 0<=n<100; x < n; 0<=y<5", False),
        ("bid*256 + tid", "size", "0<=tid<256", False),
        ("bid*256 + tid", "size", "0<=tid<256; 0<=bid<1000; bid*256 + tid < size", True),
        ("n - 1 - x", "n", "0<=x<100; x < n", True),
        ("x % 8", "8", "", True),
        ("x // 4", "8", "0<=x<32", True),
        ("wide", "size", "0<=wide<100; wide < i64(size)", True),
    ],
)
def test_in_range(world, text, extent, known, want):
    assert _core.prove(world.ctx, world(text), **world.facts(known), extent=world(eval_int(extent))) is want


def eval_int(text):
    return int(text) if text.isdigit() else text


def test_grid_that_covers_the_size_needs_its_guard(world):
    """bx*256 + tx with ceildiv(n, 256) blocks passes n in the last block."""
    bx, tx, n = world("x"), world("y"), world("size")
    ctx = world.ctx
    ranges = {tx: (0, 255), bx: (0, world("ceildiv(size, 256) - 1"))}
    i = bx * 256 + tx
    assert _core.prove(ctx, i, ranges, extent=n) is False
    assert _core.prove(ctx, i, ranges, assume=[i < n], extent=n) is True
    assert _core.bounds(ctx, i, ranges) == (0, 2**31 - 1)


def test_loops_to_a_size_stay_below_it(world):
    x, n = world("x"), world("size")
    assert _core.prove(world.ctx, x, {x: (0, n - 1)}, extent=n) is True
    assert _core.prove(world.ctx, x + 1, {x: (0, n - 1)}, extent=n) is False


def test_floats_are_left_alone():
    ctx = _core.Context()
    x = _core.var(ctx, "let", "x", "float32")
    for e in (x - x, x * 0.0, x + 0.0, x / x):
        assert _core.simplify(ctx, e).same_as(e)
    assert _core.prove(ctx, x == x) is None
    assert _core.prove(ctx, x < 1.0, assume=[_core.op(ctx, "NOT", x >= 1.0)]) is None  # NaN


def test_large_unsigned_constants_are_no_negative_numbers():
    ctx = _core.Context()
    big = _core.literal(ctx, "uint64", 2**64 - 5)
    x = _core.var(ctx, "let", "x", "uint64")
    e = _core.select(ctx, x < 3, _core.literal(ctx, "uint64", 127), big, False)
    m, r = _core.divisor(ctx, e)
    assert 127 % m == r and (2**64 - 5) % m == r
    assert _core.bounds(ctx, e) == (127, None)


def test_loads_are_kept():
    ctx = _core.Context()
    A = _core.buffer(ctx, "A", (8,), "int32")
    x = _core.var(ctx, "let", "x", "int32")
    e = A[x * 2 + 1 - x * 2] - A[0]
    assert str(_core.simplify(ctx, e)) == "A[1] - A[0]"
    same = A[0]
    assert str(_core.simplify(ctx, same * 0 + x)) == "A[0] * 0 + x"


def test_time_is_linear():
    """A sum, a nest of selects and a chain of conditions, each twice as long: about twice the time."""

    def build(n):
        ctx = _core.Context()
        v = [_core.var(ctx, "let", f"v{i}", "int32") for i in range(8)]
        sums = [v[i % 8] * (i + 1) + v[(i + 3) % 8] % 4 for i in range(n)]
        e = sums[0]
        for i, s in enumerate(sums[1:]):
            e = (
                _core.select(ctx, s < i, s, e // 3 + 1, False)
                if i % 50 == 49
                else _core.op(ctx, "MAX", e, s)
                if i % 7
                else e + s
            )
        return ctx, e, {x: (0, 100) for x in v}

    def cost(n):
        best = 1e9
        for _ in range(3):
            ctx, e, ranges = build(n)
            t = time.process_time()
            _core.simplify(ctx, e, ranges)
            best = min(best, time.process_time() - t)
        return best

    cost(50)
    assert cost(320) < 12 * cost(80) + 0.002


def test_a_run_of_bindings_is_linear():
    """Each binding builds on the one before; proofs about the last must not walk through all of them every time."""

    def cost(n):
        ctx = _core.Context()
        b = _core.Builder(ctx, "f", "g1")
        A = _core.buffer(ctx, "A", (1024,), "int32")
        b.param("A", A)
        b.device_entry()
        (tx,) = b.scope_id("thread_id", ["tx"], [64], None, "int32")
        x = tx
        for k in range(n):
            x = b.bind("x", (x * 3 + k) % 1000)
            b.store(A, (x,), x + k)
        m = _core.Module({"f": b.finish()})
        best = 1e9
        for _ in range(3):
            t = time.process_time()
            _core.lower(m, "cpu", {})
            best = min(best, time.process_time() - t)
        return best

    cost(50)
    assert cost(1600) < 12 * cost(400) + 0.005
