# SPDX-License-Identifier: Apache-2.0
"""Every shape and type of wgmma, dense and sparse, with operands in shared memory and in registers, of all layouts."""

from __future__ import annotations

import re

import numpy as np
from agreement_forms import Batch, Form, Unit, bits, choices_of, immediate, matrix_codes, metadata
from ptx_variants import Row

from tirx import _core

THREADS = 128
A_BYTES, B_BYTES = 8192, 32768
MODE = {0: 0, 128: 1, 64: 2, 32: 3}


def layout(k_bytes: int, rows: int, mn_major: bool, seed: str) -> tuple[int, int]:
    """(descriptor without its address, offset of the start) of one of the layouts that hold a matrix."""
    r = int(bits(seed, 1)[0] >> np.uint64(30))
    if mn_major:  # of 16-bit elements
        k = k_bytes // 2
        swizzle = (0, 32, 64, 128)[r % 4]
        lbo, sbo = (k * swizzle, 8 * swizzle) if swizzle else (128, k * 16)
        return lbo >> 4 << 16 | sbo >> 4 << 32 | MODE[swizzle] << 62, 0
    swizzles = [s for s in (0, 32, 64, 128) if not s or s >= k_bytes]
    swizzle = swizzles[r % len(swizzles)]
    lbo, sbo = (16, 8 * swizzle) if swizzle else (rows * 16, 128)
    start = (r >> 8) % (swizzle // k_bytes) * k_bytes if swizzle else 0
    return lbo >> 4 << 16 | sbo >> 4 << 32 | MODE[swizzle] << 62, start


def form(row: Row, m: dict, turn: int) -> Form:
    opcode = row.opcode(m)
    types = [t for t in opcode.split(".") if re.fullmatch(r"f16|bf16|f32|tf32|s32|s8|u8|e4m3|e5m2", t)]
    f = Form(
        f"{opcode} {'R' if '{a:u32}*4' in row.operands else 'S'}{turn or ''}",
        "wgmma " + " ".join(types),
        None,
        row=row.text,
    )
    f.write = (row, m, types)
    return f


def call(f: Form, index: int) -> list[str]:
    row, m, types = f.write
    sparse = row.emu == "wgmma_sp"
    n = int(re.search(r"n(\d+)k", m["shape"])[1])
    registers = "{a:u32}*4" in row.operands
    halves = types[1] in ("f16", "bf16")
    chosen = {name: immediate(o, f.name) for o in row.operands for name in [o[1:].split("=")[0]] if o.startswith("#")}
    if not halves:
        chosen.pop("ta", None)
    db, at_b = layout(64 if sparse else 32, n, chosen.get("tb") == "1", f.name + "b")
    regs = n // 4 if types[0] == "f16" else n // 2
    dtype = "float32" if types[0] == "f32" else "uint32"
    acc = f"acc{index}"
    a = "*ra"
    lines = [f"{acc} = T.alloc_local(({regs},), {dtype!r})", f"for i in range({regs}):", f"    {acc}[i] = C[tx, i]"]
    if not registers:
        da, at_a = layout(32, 64, chosen.get("ta") == "1", f.name + "a")
        lines.append(f"da{index}: T.let = T.uint64({da}) | T.cast((base + T.uint32({at_a})) >> T.uint32(4), 'uint64')")
        a = f"da{index}"
    lines.append(
        f"db{index}: T.let = T.uint64({db}) | T.cast((base + T.uint32({A_BYTES + at_b})) >> T.uint32(4), 'uint64')"
    )
    scale = int(bits(f.name + "d", 1)[0] >> np.uint64(61)) != 0
    args = [f"*{acc}", a, f"db{index}"]
    for o in row.operands[3:]:
        if o == "meta:u32":
            args.append("meta[0]")
        elif o == "sd:pred":
            args.append(f"T.bool({scale})")
        elif o.startswith("#"):
            args.append(chosen[o[1:].split("=")[0]])
    lines += [
        "T.ptx.wgmma.fence.sync.aligned()",
        f'T.ptx["{row.opcode(m)}"]({", ".join(args)})',
        "T.ptx.wgmma.commit_group.sync.aligned()",
        "T.ptx.wgmma.wait_group.sync.aligned(0)",
        f"for i in range({regs}):",
        f"    D[{index}, tx, i] = {acc}[i]",
    ]
    return lines


HEAD = """from tirx.script import tirx as T

@T.prim_func
def k(S_: T.handle, R_: T.handle, C_: T.handle, D_: T.handle):
    S = T.match_buffer(S_, ({words},), "uint32")
    R = T.match_buffer(R_, (128, 5), "uint32")
    C = T.match_buffer(C_, (128, 128), "{dtype}")
    D = T.match_buffer(D_, ({forms}, 128, 128), "{dtype}")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([128])
    sm = T.alloc_shared(({words},), "uint32", align=1024)
    ra = T.alloc_local((4,), "uint32")
    meta = T.alloc_local((1,), "uint32")
    for i in range({turns}):
        sm[i * 128 + tx] = S[i * 128 + tx]
    for i in range(4):
        ra[i] = R[tx, i]
    meta[0] = R[tx, 4]
    T.ptx.fence.proxy.async_.shared__cta()
    T.cuda.cta_sync()
    base: T.let = T.cuda.cvta_generic_to_shared(sm.ptr_to([0]))
"""


def build(name: str, forms: list[Form], seed: str = "") -> Batch:
    types = forms[0].write[2]
    floats = types[0] == "f32"
    words = (A_BYTES + B_BYTES) // 4
    key = f"{name} {seed}"

    def tame(fmt, tag, n):
        padded = np.concatenate([matrix_codes(fmt, f"{key}{tag}{i}", 256)[:224] for i in range(-(-n // 224))])
        return padded[:n]

    shared = np.concatenate([tame(types[1], "A", A_BYTES // 4), tame(types[2], "B", B_BYTES // 4)])
    regs = np.stack([*(tame(types[1], f"r{i}", THREADS) for i in range(4)), metadata(key + "e", THREADS)], 1)
    c = tame(types[0], "c", THREADS * 128).reshape(THREADS, 128)
    dtype = "float32" if floats else "uint32"
    source = HEAD.format(words=words, turns=words // 128, forms=len(forms), dtype=dtype)
    for i, f in enumerate(forms):
        source += "".join(f"    {line}\n" for line in call(f, i))
    args = [shared, regs, c.view(dtype), np.zeros((len(forms), THREADS, 128), dtype)]
    return Batch(name, forms, source, args, [[(3, i)] for i in range(len(forms))])


def wgmma_forms():
    for args in _core.ptx_rows():
        row = Row(*args)
        if row.emu in ("wgmma", "wgmma_sp"):
            for m in choices_of(row):
                yield form(row, m, 0)


def wgmma_units(size: int = 8) -> list[Unit]:
    groups: dict[str, list[Form]] = {}
    for f in wgmma_forms():
        groups.setdefault(f.family, []).append(f)
    out = []
    for family, of in groups.items():
        of = sorted(of, key=lambda f: f.name)
        out += [Unit(f"{family}.{i // size}", of[i : i + size], build) for i in range(0, len(of), size)]
    return out
