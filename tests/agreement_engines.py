# SPDX-License-Identifier: Apache-2.0
"""Forms that need a protocol around them: barriers, copies by engines, clusters. One kernel each, written by hand."""

from __future__ import annotations

import re

import numpy as np
from agreement_forms import FLOOR, Batch, Form, Unit, choices_of, values
from ptx_variants import ORDER, Row, carrier

from tirx import _core

THREADS = 64
WORDS = 16  # of results a thread

HEAD = """from tirx.script import tirx as T

@T.prim_func
def k(I_: T.handle, G_: T.handle, O_: T.handle):
    I = T.match_buffer(I_, ({ctas}, {threads}, 16), "uint32", align=128)
    G = T.match_buffer(G_, ({ctas}, {threads}, 16), "uint32", align=128)
    O = T.match_buffer(O_, ({ctas}, {threads}, 16), "uint32", align=128)
    T.device_entry()
{ids}
    tx = T.thread_id([{threads}])
    sm = T.alloc_shared(({threads}, 16), "uint32", align=1024)
    to = T.alloc_shared(({threads}, 16), "uint32", align=1024)
    bar = T.alloc_shared((2,), "uint64", align=16)
    at = T.alloc_local((4,), "uint32")
    v: T.uint32
    n: T.uint32
    st: T.uint64
    wide: T.uint64
    for i in range(16):
        sm[tx, i] = I[rank, tx, i]
        to[tx, i] = I[rank, tx, 15 - i] ^ T.uint32({turn})
    if tx == 0:
        T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), {count})
        T.ptx.fence.mbarrier_init.release.cluster()
    T.ptx.fence.proxy.async_.shared__cta()
    {sync}
{body}
"""
SINGLE = "    bx = T.cta_id([1])\n    rank: T.let = T.int32(0)"
CLUSTER = (
    "    cl = T.cluster_id([1])\n    rank = T.cta_id_in_cluster([2])\n    next: T.let = T.cast(1 - rank, 'uint32')"
)


class Plan:
    """A kernel of one form: its body, and what lies around it."""

    def __init__(self, body: str, count=1, ctas=1, threads=THREADS, fill="b32", turn=0x5A5A5A5A):
        self.host: list[str] = []
        self.body, self.count, self.ctas, self.threads, self.fill, self.turn = body, count, ctas, threads, fill, turn

    def source(self) -> str:
        ids, sync = (SINGLE, "T.cuda.cta_sync()") if self.ctas == 1 else (CLUSTER, "T.cuda.cluster_sync()")
        body = "\n".join("    " + x for x in self.body.strip("\n").split("\n"))
        head = HEAD.replace(
            "    T.device_entry()", "".join(f"    {x}\n" for x in [*self.host, "T.device_entry()"])[:-1]
        )
        return head.format(ctas=self.ctas, threads=self.threads, ids=ids, sync=sync, body=body, count=self.count,
                           turn=self.turn)  # fmt: skip


def build(name: str, forms: list[Form], seed: str = "") -> Batch:
    (f,) = forms
    plan = f.write
    shape = (plan.ctas, plan.threads, 16)
    n = int(np.prod(shape))
    data = []
    for tag in "IG":
        t = plan.fill
        size = np.dtype(carrier(t)).itemsize
        data.append(values(t, f"{f.name}|{seed}{tag}", n * 4 // size).view(np.uint32).reshape(shape))
    return Batch(
        name, forms, plan.source(), [*data, np.zeros(shape, np.uint32)], [[(1, slice(None)), (2, slice(None))]]
    )


def arguments(row: Row, m: dict, free: bool, names: dict) -> str:
    """The operands of a form: what `names` says of each; its own immediates where it says nothing."""
    out = []
    for o in row.operands:
        o = row.present(o, free, m)
        if o is None or o.startswith("'"):
            continue
        name = o[1:].split("=")[0] if o.startswith("#") else re.search(r"\w+", o)[0]
        if name == "pol":
            out.append("pol")
        elif o.startswith("[") and "," in o:
            out += names[name]
        else:
            out.append(str(names[name]))
    return ", ".join(out)


BACK = "for i in range(16):\n    O[rank, tx, i] = {0}[tx, i]"
POL = 'pol: T.uint64\nT.ptx["createpolicy.fractional.L2::evict_first.b64"](pol)\n'


def pol(m: dict) -> str:
    return POL if m.get("hint") else ""


# ---- mbarriers: count 4; the form once, then one arrival after another until the phase ends, twice ---------------

DRAIN = """for phase in range(2):
    for j in range(5):
        {test}
        O[rank, 0, phase * 6 + j] = v | T.uint32(16)
        if v == T.uint32(0):
            T.ptx.mbarrier.arrive.shared.b64(st, bar.ptr_to([0]))
            T.ptx.mbarrier.pending_count.b64(n, st)
            O[rank, 1, phase * 6 + j] = n"""
TEST = "T.ptx.mbarrier.test_wait.parity.shared.b64(v, bar.ptr_to([0]), T.cast(phase, 'uint32'))"


def mbarrier(row: Row, m: dict, free: bool) -> Plan:
    op = row.opcode(m)
    a = "bar.ptr_to([0])"
    first, last, test = "", "", TEST
    if row.emu == "mbar_wait":
        token = "parity" not in op
        hint = "T.uint32(1000)"
        names = {"done": "v", "a": a, "ph": "T.cast(phase, 'uint32')", "st": "st", "hint": hint}
        call = f'T.ptx["{op}"]({arguments(row, m, free, names)})'
        if not token:
            return mbar(DRAIN.format(test=call))
        body = f"""for j in range(4):
    T.ptx.mbarrier.arrive.shared.b64(st, bar.ptr_to([0]))
    {call}
    O[rank, 0, j] = v | T.uint32(16)"""
        return mbar(body)
    if row.emu == "mbar_init":
        first = f'T.ptx["mbarrier.inval.shared.b64"]({a})\nT.ptx["{op}"]({a}, T.uint32(3))'
    elif row.emu == "mbar_inval":
        first = f'T.ptx["{op}"]({a})\nT.ptx["mbarrier.init.shared.b64"]({a}, T.uint32(2))'
    else:
        n = 2 if "noComplete" in op or free else 1
        names = {"st": "st", "a": a, "n": f"T.uint32({n})", "tx": "T.uint32(48)"}
        call = f'T.ptx["{op}"]({arguments(row, m, free, names)})'
        if "expect_tx" in op:
            last = f'T.ptx["mbarrier.complete_tx.relaxed.cta.shared::cta.b64"]({a}, T.uint32(48))'
        elif "complete_tx" in op:
            last = f'T.ptx["mbarrier.expect_tx.relaxed.cta.shared::cta.b64"]({a}, T.uint32(48))'
        first = f"{call}\n{last}"
        if row.operands[0] == "=st:i64":
            first += "\nT.ptx.mbarrier.pending_count.b64(n, st)\nO[rank, 2, 0] = n"
    return mbar(first + "\n" + DRAIN.format(test=test))


def mbar(body: str) -> Plan:
    lines = "\n".join("    " + x for x in body.strip("\n").split("\n"))
    return Plan("if tx == 0:\n" + lines, count=4)


# ---- fences and barriers -----------------------------------------------------------------------------------------


def fences(row: Row, m: dict, free: bool) -> Plan:
    a = "G.ptr_to([rank, 0, 0])"
    call = f'T.ptx["{row.opcode(m)}"]({arguments(row, m, free, {"a": a})})'
    return Plan(f"to[tx, 0] = sm[tx, 1]\n{call}\nT.cuda.cta_sync()\nO[rank, tx, 0] = to[63 - tx, 0]")


def barriers(row: Row, m: dict, free: bool) -> Plan:
    op = row.opcode(m)
    call = lambda more: f'T.ptx["{op}"]({arguments(row, m, free, {"a": "T.uint32(3)", "n": "T.uint32(64)", **more})})'  # noqa: E731
    if row.emu == "bar_red":
        reduce = call({"d": "v", "c": "sm[tx, i] % T.uint32(i * i + 2) != T.uint32(0)"})
        return Plan(f"for i in range(4):\n    {reduce}\n    O[rank, tx, i] = v")
    if row.emu == "bar_sync":
        return Plan(f"to[tx, 0] = sm[tx, 1]\n{call({})}\nO[rank, tx, 0] = to[63 - tx, 0]")
    wait = 'T.ptx["bar.sync"](T.uint32(3), T.uint32(64))'
    come = f"if tx < 32:\n    to[tx, 0] = sm[tx, 1]\n    {call({})}"
    return Plan(f"{come}\nelse:\n    {wait}\n    O[rank, tx, 0] = to[63 - tx, 0]")


def clusters(row: Row, m: dict, free: bool) -> Plan:
    op = row.opcode(m)
    if row.emu == "cluster_wait":
        pair = ['T.ptx["barrier.cluster.arrive.release.aligned"]()', f'T.ptx["{op}"]()']
    else:
        pair = [f'T.ptx["{op}"]()', 'T.ptx["barrier.cluster.wait.acquire.aligned"]()']
    if "relaxed" in op:  # orders what is behind a fence
        pair.insert(0, 'T.ptx["fence.acq_rel.cluster"]()')
    mapa = "T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([tx, 0])), next)"
    read = 'T.ptx["ld.shared::cluster.u32"](v, at[0])'
    end = "T.cuda.cluster_sync()"
    return Plan("\n".join(["to[tx, 0] = sm[tx, 1]", *pair, mapa, read, "O[rank, tx, 0] = v", end]), ctas=2)


def grid(row: Row, m: dict, free: bool) -> Plan:
    return Plan(f'T.ptx["{row.opcode(m)}"]()\nO[rank, tx, 0] = sm[tx, 1]')


# ---- cp.async ----------------------------------------------------------------------------------------------------


def cp_async(row: Row, m: dict, free: bool, size: int) -> Plan:
    names = {"d": "to.ptr_to([tx, 4])", "s": "G.ptr_to([rank, tx, 8])", "n": size,
             "z": f"sm[tx, 3] % T.uint32({size + 1})", "ign": "sm[tx, 3] % T.uint32(2) != T.uint32(0)"}  # fmt: skip
    call = f'T.ptx["{row.opcode(m)}"]({arguments(row, m, free, names)})'
    return Plan(
        pol(m) + f'{call}\nT.ptx["cp.async.commit_group"]()\nT.ptx["cp.async.wait_group"](0)\n' + BACK.format("to")
    )


def cp_waits(row: Row, m: dict, free: bool) -> Plan:
    copy = 'T.ptx["cp.async.ca.shared.global"](to.ptr_to([tx, {0}]), G.ptr_to([rank, tx, {1}]), 4)'
    lines = [
        copy.format(4, 8),
        'T.ptx["cp.async.commit_group"]()',
        copy.format(5, 2),
        'T.ptx["cp.async.commit_group"]()',
    ]
    op = row.opcode(m)
    if row.emu == "cp_mbar_arrive":
        arrive = f'T.ptx["{op}"](bar.ptr_to([0]))'
        rest = "" if "noinc" in op else "\nT.ptx.mbarrier.arrive.shared.b64(bar.ptr_to([0]))"
        wait = "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"
        return Plan("\n".join(lines) + f"\n{arrive}{rest}\n{wait}\n" + BACK.format("to"), count=THREADS)
    if op.endswith("wait_group"):
        lines += [f'T.ptx["{op}"](1)', "O[rank, tx, 0] = to[tx, 4]", f'T.ptx["{op}"](0)']
        return Plan("\n".join(lines) + "\nO[rank, tx, 1] = to[tx, 5]")
    return Plan("\n".join(lines) + '\nT.ptx["cp.async.wait_all"]()\n' + BACK.format("to"))


# ---- bulk copies and reductions ----------------------------------------------------------------------------------

WAIT = "T.cuda.mbarrier_wait(bar.ptr_to([0]), 0)"
EXPECT = "    T.ptx.mbarrier.arrive.expect_tx.shared.b64(bar.ptr_to([0]), {0})"
DONE = '    T.ptx["cp.async.bulk.commit_group"]()\n    T.ptx["cp.async.bulk.wait_group"](0)'
MAPA = """T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([0, 0])), next)
T.ptx.mapa.shared__cluster.u32(at[1], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), next)
"""


def bulk(row: Row, m: dict, free: bool, size: int = 2048) -> Plan:
    op = row.opcode(m)
    t = m.get("type") or "b32"
    if row.emu == "bulk_prefetch":
        return Plan(
            pol(m)
            + f'T.ptx["{op}"]({arguments(row, m, free, {"s": "G.ptr_to([0, 0, 0])", "n": size})})\n'
            + BACK.format("sm")
        )
    if row.emu in ("bulk_commit", "bulk_wait"):
        copy = (
            '    T.ptx["cp.async.bulk.global.shared::cta.bulk_group"](G.ptr_to([rank, 0, 0]), sm.ptr_to([0, 0]), 1024)'
        )
        wait = f'    T.ptx["{op}"](0)' if row.emu == "bulk_wait" else '    T.ptx["cp.async.bulk.wait_group.read"](0)'
        begin = f'if tx == 0:\n{copy}\n    T.ptx["cp.async.bulk.commit_group"]()\n{wait}\n'
        return Plan(begin + "    sm[0, 0] = T.uint32(1)\n"
                    '    T.ptx["cp.async.bulk.wait_group"](0)\n    O[rank, 0, 0] = sm[0, 0]')  # fmt: skip
    if "bulk_group" in op:
        names = {"d": "G.ptr_to([rank, 0, 0])", "s": "sm.ptr_to([0, 0])", "n": size}
        return Plan(pol(m) + f'if tx == 0:\n    T.ptx["{op}"]({arguments(row, m, free, names)})\n{DONE}', fill=t)
    if "shared::cluster.shared::cta" in op:  # to the other CTA, whose barrier knows
        names = {"d": "at[0]", "s": "sm.ptr_to([0, 0])", "n": size, "b": "at[1]"}
        call = f'    T.ptx["{op}"]({arguments(row, m, free, names)})'
        begin = "if tx == 0:\n" + EXPECT.format(size)
        end = f"{WAIT}\n{BACK.format('to')}\nT.cuda.cluster_sync()"
        return Plan(f"{begin}\nT.cuda.cluster_sync()\n{MAPA}if tx == 0:\n{call}\n{end}", ctas=2, fill=t)
    names = {
        "d": "to.ptr_to([0, 0])",
        "s": "G.ptr_to([rank, 0, 0])",
        "n": size,
        "b": "bar.ptr_to([0])",
        "mask": "T.uint16(3)",
    }
    if m.get("mc"):  # CTA 0 to both
        call = f'    T.ptx["{op}"]({arguments(row, m, free, names)})'
        begin = pol(m) + "if tx == 0:\n" + EXPECT.format(size) + "\nT.cuda.cluster_sync()\n"
        end = f"{WAIT}\n{BACK.format('to')}\nT.cuda.cluster_sync()"
        return Plan(f"{begin}if (tx == 0) & (rank == 0):\n{call}\n{end}", ctas=2)
    call = f'    T.ptx["{op}"]({arguments(row, m, free, names)})'
    return Plan(pol(m) + "if tx == 0:\n" + EXPECT.format(size) + f"\n{call}\n{WAIT}\n{BACK.format('to')}")


# ---- stores and reductions that a barrier of the other CTA counts ------------------------------------------------


def remote(row: Row, m: dict, free: bool) -> Plan:
    t = m["type"]
    dtype = carrier(t)
    n = int((m.get("vec") or "v1")[1:])
    size = np.dtype(dtype).itemsize
    view = f'mine = T.decl_buffer((1024 // {size} * 4,), "{dtype}", data=T.ptr_byte_offset(sm.data, 0, "{dtype}"))'
    mapa = """T.ptx.mapa.shared__cluster.u32(at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([tx, 0])), next)
T.ptx.mapa.shared__cluster.u32(at[1], T.cuda.cvta_generic_to_shared(bar.ptr_to([0])), next)"""
    a, b = "at[0]", "at[1]"
    if not m["space"]:
        mapa, a, b = (
            "T.ptx.mapa.u64(st, to.ptr_to([tx, 0]), next)\nT.ptx.mapa.u64(wide, bar.ptr_to([0]), next)",
            "st",
            "wide",
        )
    args = [a, *[f"mine[tx * {64 // size} + {i}]" for i in range(n)], b]
    begin = "if tx == 0:\n" + EXPECT.format(n * size * THREADS)
    return Plan(f'{view}\n{begin}\nT.cuda.cluster_sync()\n{mapa}\nT.ptx["{row.opcode(m)}"]({", ".join(args)})\n{WAIT}\n'
                f"{BACK.format('to')}\nT.cuda.cluster_sync()", ctas=2, fill=t)  # fmt: skip


# ---- addresses ---------------------------------------------------------------------------------------------------


def addresses(row: Row, m: dict, free: bool) -> Plan:
    op = row.opcode(m)
    if row.emu == "mapa":
        if op.endswith("cluster.u32"):
            calls = f'T.ptx["{op}"](at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([tx, 2])), next)'
            read = 'T.ptx["ld.shared::cluster.u32"](v, at[0])'
        else:
            calls = f'T.ptx["{op}"](wide, to.ptr_to([tx, 2]), next)'
            read = (
                'T.ptx["ld.u32"](v, wide)'
                if op == "mapa.u64"
                else 'T.ptx["ld.shared::cluster.u32"](v, T.cast(wide, "uint32"))'
            )
        return Plan(f"{calls}\n{read}\nO[rank, tx, 0] = v\nT.cuda.cluster_sync()", ctas=2)
    if row.emu == "getctarank":
        if op.endswith("u32"):
            give = 'T.ptx["mapa.shared::cluster.u32"](at[0], T.cuda.cvta_generic_to_shared(to.ptr_to([tx, 2])), next)'
            a = "at[0]"
        elif "shared" in op:
            give, a = 'T.ptx["mapa.shared::cluster.u64"](wide, to.ptr_to([tx, 2]), next)', "wide"
        else:
            give, a = 'T.ptx["mapa.u64"](wide, to.ptr_to([tx, 2]), next)', "wide"
        return Plan(f'{give}\nT.ptx["{op}"](v, {a})\nO[rank, tx, 0] = v', ctas=2)
    places = ["G.ptr_to([rank, tx, 0])", "to.ptr_to([tx, 0])", "T.address_of(at[0])"]
    if row.emu == "isspacep":
        return Plan("\n".join(f'T.ptx["{op}"](v, {p})\nO[rank, tx, {i}] = v' for i, p in enumerate(places)), ctas=2)
    i = {"global": 0, "shared": 1, "local": 2}[m["space"].split("::")[0]]
    if op.startswith("cvta.to"):  # the distance of two addresses of the space
        other = ["G.ptr_to([rank, tx, 5])", "to.ptr_to([tx, 5])", "T.address_of(at[3])"][i]
        both = f'T.ptx["{op}"](st, {places[i]})\nT.ptx["{op}"](wide, {other})\n'
        return Plan(both + 'O[rank, tx, 0] = T.cast(wide - st, "uint32")\n'
                    "at[0] = T.uint32(1)\nat[3] = T.uint32(2)\nO[rank, tx, 1] = at[0] + at[3]")  # fmt: skip
    return Plan(f'T.ptx["cvta.to.{m["space"]}.u64"](st, {places[i]})\nT.ptx["{op}"](wide, st)\n'
                f'v = T.cast(wide == T.reinterpret("uint64", {places[i]}), "uint32")\nO[rank, tx, 0] = v')  # fmt: skip


# ---- 128 bits ----------------------------------------------------------------------------------------------------


def wide(row: Row, m: dict, free: bool) -> Plan:
    op = row.opcode(m)
    half = 'T.cast({1}[tx, {2} + %d], "uint64")'
    pack = f'T.ptx["mov.b128"]({{0}}, {half % 0} << T.uint64(32) | {half % 1}, {half % 2})'
    unpack = """T.ptx["mov.b128"](st, wide, {0})
O[rank, tx, 0] = T.cast(st, "uint32")
O[rank, tx, 1] = T.cast(st >> T.uint64(32), "uint32")
O[rank, tx, 2] = T.cast(wide, "uint32")
O[rank, tx, 3] = T.cast(wide >> T.uint64(32), "uint32")"""
    shared = (m.get("space") or "").startswith("shared")
    a = "to.ptr_to([tx, 4])" if shared else "G.ptr_to([rank, tx, 4])"
    lines = ["q: T.uint128", "w: T.uint128", pack.format("q", "sm", 0)]
    if row.emu in ("mov_pack", "mov_unpack"):
        lines += [unpack.format("q")]
    elif row.emu == "ld":
        lines += [f'T.ptx["{op}"](w, {a})', unpack.format("w")]
    elif row.emu == "st":
        lines += [f'T.ptx["{op}"]({a}, q)']
    elif "cas" in op:  # even threads find what they compare with
        lines += ["c: T.uint128", f'T.ptx["ld.b128"](c, {a})', "if tx % 2 == 1:", "    " + pack.format("c", "sm", 8),
                  f'T.ptx["{op}"](w, {a}, c, q)', unpack.format("w")]  # fmt: skip
    else:
        lines += [f'T.ptx["{op}"](w, {a}, q)', unpack.format("w")]
    if shared:
        lines += ["for i in range(8):", "    O[rank, tx, 8 + i] = to[tx, i]"]
    return Plan("\n".join(x for y in lines for x in y.split("\n")))


# ---- policies and hints ------------------------------------------------------------------------------------------


def policies(row: Row, m: dict, free: bool) -> Plan:
    names = {
        "f": "T.float32(0.5)",
        "a": "G.ptr_to([0, 0, 0])" if "range" in row.text else "st",
        "n": "T.uint32(4096)",
        "t": "T.uint32(8192)",
    }
    first = 'T.ptx["createpolicy.fractional.L2::evict_first.b64"](st)'
    out = "wide" if row.operands[0] == "=pol:u64" else ""
    args = ", ".join(
        str(names[re.search(r"\w+", x)[0]]) for x in (row.present(o, free, m) for o in row.operands[1:]) if x
    )
    call = f'T.ptx["{row.opcode(m)}"]({", ".join(x for x in (out, args) if x)})'
    return Plan(
        f'{first}\n{call}\nT.ptx["ld.global.L2::cache_hint.u32"](v, G.ptr_to([rank, tx, 7]), wide)\nO[rank, tx, 0] = v'
    )


def hints(row: Row, m: dict, free: bool) -> Plan:
    args = arguments(
        row, m, free, {"a": "T.address_of(at[0])" if m.get("space") == "local" else "G.ptr_to([rank, 0, 0])"}
    )
    hint = f'if tx == 0:\n    T.ptx["{row.opcode(m)}"]({args})'
    return Plan(f"at[0] = T.uint32(5)\n{hint}\nT.cuda.cta_sync()\nO[rank, tx, 0] = G[rank, tx, 1] + at[0]")


# ---- tensor maps -------------------------------------------------------------------------------------------------

REPLACE = {
    "global_address": ["T.uint64(0x7f1234567890)"], "rank": ["T.uint32(1)", "T.uint32(4)"],
    "box_dim": ["T.int32(32)", "T.int32(200)"], "global_dim": ["T.int32(77)", "T.int32(100000)"],
    "element_stride": ["T.int32(3)", "T.int32(8)"], "global_stride": ["T.uint64(4096)", "T.uint64(1099511627760)"],
    "elemtype": range(13), "interleave_layout": range(1), "swizzle_mode": range(4), "fill_mode": range(2),
}  # fmt: skip
TEMPLATE = _core.tensormap_encode(
    0x100000, (False, 6, (64, 32, 5, 3, 2), (128, 4096, 20480, 61440), (32, 16, 2, 1, 1), (1, 1, 2, 1, 1), (), (), 0, 0,
               0, 2, 0, 0), 90, "rules")  # fmt: skip
MAP = [int(x) for x in np.frombuffer(TEMPLATE, np.uint32)]


def replace(row: Row, m: dict, free: bool, turn: int) -> Plan | None:
    field = m["f"]
    options = list(REPLACE[field])
    ords = {"box_dim": 5, "global_dim": 5, "element_stride": 5, "global_stride": 4}.get(field)
    total = len(options) * (ords or 1)
    if turn >= total:
        return None
    v, o = options[turn % len(options)], turn // len(options)
    if field == "element_stride" and o == 0:
        return None
    where = "sm" if "shared" in (m["space"] or "") else "G"
    a = "sm.ptr_to([0, 0])" if where == "sm" else "G.ptr_to([rank, 0, 0])"
    put = "\n".join(
        f"    {'sm[' if where == 'sm' else 'G[rank, '}{i // 16}, {i % 16}] = T.uint32({w})" for i, w in enumerate(MAP)
    )
    args = ", ".join(str(x) for x in ([a] + ([o] if ords else []) + [v]))
    back = "T.cuda.cta_sync()\nif tx < 2:\n    for i in range(16):\n        O[rank, tx, i] = " + (
        "sm[tx, i]" if where == "sm" else "G[rank, tx, i]"
    )
    return Plan(f'if tx == 0:\n{put}\n    T.ptx["{row.opcode(m)}"]({args})\n{back}')


def fenceproxy(row: Row, m: dict, free: bool) -> Plan:
    put = "\n".join(f"    sm[{i // 16}, {i % 16}] = T.uint32({w})" for i, w in enumerate(MAP))
    call = f'    T.ptx["{row.opcode(m)}"](G.ptr_to([rank, 0, 0]), sm.ptr_to([0, 0]))'
    return Plan(f"if tx == 0:\n{put}\nT.cuda.cta_sync()\nif tx < 32:\n{call}")


# name of the tensor's dtype -> type of the values that fill it
TYPES = {"uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64", "float16": "f16", "bfloat16": "bf16",
         "float32": "f32", "uint8": "u8", "uint16": "u16"}  # fmt: skip
REDUCED = {"add": "uint32 int32 uint64 float16 bfloat16 float32", "min": "uint32 int32 uint64 int64 float16 bfloat16",
           "inc": "uint32", "and": "uint32 uint64"}  # fmt: skip
REDUCED |= {"max": REDUCED["min"], "dec": "uint32", "or": REDUCED["and"], "xor": REDUCED["and"]}
SIDES = {1: (1,), 2: (1, 64), 3: (1, 8, 8), 4: (1, 4, 4, 4), 5: (1, 4, 4, 2, 2)}


def tensor(row: Row, m: dict, free: bool, turn: int) -> Plan | None:
    """The copy of a box between G, as a tensor of rows of 64 bytes, and shared memory; it hangs over the edges."""
    op, rank = row.opcode(m), int(m["dim"][0])
    store = "bulk_group" in op
    dtypes = REDUCED[m["op"]].split() if "reduce" in op else ["float16", "uint8", "uint64"]
    interleaved = turn == len(dtypes) and rank >= 3
    if turn >= len(dtypes) + interleaved or m.get("lm") == "im2col" or m.get("cg"):
        return None
    dtype = [*dtypes, "uint32"][turn]
    es = np.dtype({"bfloat16": "float16"}.get(dtype, dtype)).itemsize
    sides = [4096 // es if rank == 1 else 64 // es, *SIDES[rank][1:]]
    strides = [64 * int(np.prod(SIDES[rank][1:i])) for i in range(1, rank)]
    swizzle = (0, 1, 0, 2, 3)[(rank + turn) % 5] if rank > 1 else 0
    box = [128 // es if rank == 1 else 32 // es, *(max(1, s // 2) for s in sides[1:])]
    first = [16, 48, 0] if store else [16, -16, 48]  # bytes
    at = [first[turn % 3] // es, *([1, 2, 3, 1] if store else [1, -1, 2, 1])[: rank - 1]]
    if rank == 1:
        at = [4096 // es - 64 // es]
    size = int(np.prod(box)) * es
    if interleaved:  # pixels of 16 bytes, in slices: the last dimension but one, of which a box has one
        sides = [8, *{3: (), 4: (2,), 5: (2, 2)}[rank], 2 if rank == 5 else 4, 8 if rank == 3 else 4]
        strides = [16 * int(np.prod(sides[:i])) for i in range(1, rank)]
        box, swizzle = [4, *([2] * (rank - 3)), 1, 2], (1, 0, 3)[rank - 3]
        at = [6 if store else -1, *([1] * (rank - 3)), 1, sides[-1] - 1]
        size = 16 * int(np.prod(box))
    names = {"d": "to.ptr_to([0, 0])", "s": "sm.ptr_to([0, 0])", "t": ["T.address_of(m)", *map(str, at)],
             "b": "bar.ptr_to([0])", "mask": "T.uint16(1)"}  # fmt: skip
    call = f'    T.ptx["{op}"]({arguments(row, m, free, names)})'
    host = ["m: T.let = T.tvm_stack_alloca('tensormap', 1)",
            f"T.tensormap_encode_tiled(m, G.data, {', '.join(map(str, [*sides, *strides, *box, *[1] * rank]))}, "
            f"descriptor_dtype={dtype!r}, rank={rank}, interleave={int(interleaved)}, swizzle={swizzle})"]  # fmt: skip
    if store:
        body = f"if tx == 0:\n{call}\n{DONE}"
    elif "prefetch" in op:
        body = f"if tx == 0:\n{call}\n{BACK.format('sm')}"
    else:
        body = f"if tx == 0:\n{EXPECT.format(size)}\n{call}\n{WAIT}\n{BACK.format('to')}"
    plan = Plan(pol(m) + body, fill=TYPES[dtype])
    plan.host = host
    return plan


PLANS = {
    "mbar_init": mbarrier, "mbar_inval": mbarrier, "mbar_arrive": mbarrier, "mbar_tx": mbarrier, "mbar_wait": mbarrier,
    "fence": fences, "fence_proxy": fences, "bar_sync": barriers, "bar_arrive": barriers, "bar_red": barriers,
    "cluster_arrive": clusters, "cluster_wait": clusters, "griddep": grid, "cp_commit": cp_waits, "cp_wait": cp_waits,
    "cp_mbar_arrive": cp_waits, "bulk_copy": bulk, "bulk_prefetch": bulk, "bulk_reduce": bulk, "bulk_commit": bulk,
    "bulk_wait": bulk, "st_async": remote, "red_async": remote, "mapa": addresses, "getctarank": addresses,
    "cvta": addresses, "isspacep": addresses, "policy": policies, "nop_hint": hints, "tmap_cp": fenceproxy,
}  # fmt: skip


SEVERAL = {"tmap_replace": 30, "cp_async": 3, "tma_load": 4, "tma_store": 4, "tma_reduce": 7, "tma_prefetch": 4}


def engine_forms():
    names = set()
    for args in _core.ptx_rows():
        row = Row(*args)
        wide_row = "b128" in row.text and row.emu in ("ld", "st", "atom", "mov_pack", "mov_unpack")
        make = wide if wide_row else PLANS.get(row.emu)
        if make is None and row.emu not in SEVERAL or row.text.startswith("prefetch.{space?=const"):
            continue
        free = any("??" in o for o in row.operands)
        for m in every_choice(row):
            if m.get("space") == "const":
                continue
            for turn in range(SEVERAL.get(row.emu, 1 + free)):
                opcode = row.opcode(m)
                if row.emu == "tmap_replace":
                    plan = replace(row, m, True, turn)
                elif row.emu.startswith("tma_"):
                    plan = tensor(row, m, True, turn)
                elif row.emu == "cp_async":
                    size = (16, 8, 4)[turn]
                    plan = None if ".cg" in opcode and size < 16 else cp_async(row, m, True, size)
                else:
                    plan = make(row, m, turn == 0)
                if plan is None:
                    continue
                name = f"{opcode} @{turn}" if turn else opcode
                if name in names:
                    name += f" ({', '.join(row.operands)})"
                names.add(name)
                yield Form(name, row.emu, plan, row=row.text)


def every_choice(row: Row):
    """All choices of rows that have few, else those that change the meaning and cover the rest."""
    total = 1
    for s, c, optional in row.parts:
        total *= (len(c) + optional) if s else 1
    if total > 64:
        yield from choices_of(row)
        return
    import itertools

    slots = [(s, ([""] if optional else []) + c) for s, c, optional in row.parts if s]
    for chosen in itertools.product(*[c for _, c in slots]):
        m = dict(zip([s for s, _ in slots], chosen, strict=True))
        if row.holds(m) and ORDER.index(row.floor(m)) <= FLOOR:
            yield m


def engine_units() -> list[Unit]:
    return [Unit(f"{f.family} {i}", [f], build) for i, f in enumerate(engine_forms())]
