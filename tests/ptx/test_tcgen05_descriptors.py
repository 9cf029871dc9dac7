# SPDX-License-Identifier: Apache-2.0
"""T.cuda.tcgen05: matrix and instruction descriptors, against fields put together here from the tables of the ISA."""

from __future__ import annotations

import numpy as np
import pytest

import tirx
from tirx import DiagnosticError, T


def bits(**fields) -> int:
    """Fields by their lowest bit: b7=1 is a 1 at bit 7."""
    value = 0
    for name, v in fields.items():
        assert value & (v << int(name[1:])) == 0, "fields overlap"
        value |= v << int(name[1:])
    return value


def matrix(address: int, ldo: int, sdo: int, swizzle: int) -> int:
    code = {0: 0, 1: 6, 2: 4, 3: 2, 4: 1}[swizzle]
    return bits(b0=(address >> 4) % 2**14, b16=ldo, b32=sdo, b46=1, b61=code)


def stored(kernel, shape, dtype, *args) -> list[int]:
    out = np.zeros(shape, dtype)
    tirx.compile(kernel, target="cpu")(out, *args)
    return [int(x) for x in out.ravel()]


def test_matrix_descriptors():
    @T.prim_func
    def k(D: T.Buffer((7,), "uint64"), where: T.uint32, far: T.int32):
        T.device_entry()
        tx = T.thread_id([1])
        made: T.uint64
        for s in [0, 1, 2, 3, 4]:
            D[s] = T.cuda.tcgen05.matrix_descriptor(where, 3, 64, s)
        T.cuda.tcgen05.encode_matrix_descriptor(T.address_of(made), where, far, 1, 2)
        D[5] = made
        T.cuda.tcgen05_encode_matrix_descriptor(D.ptr_to([6]), where, 1, far, swizzle=3)

    at = 0x1C4A0
    want = [matrix(at, 3, 64, s) for s in range(5)] + [matrix(at, 100, 1, 2), matrix(at, 1, 100, 3)]
    assert stored(k, 7, "uint64", at, 100) == want


def test_matrix_descriptor_of_a_buffer():
    """The address of dynamic shared memory is known to be a multiple of 1024; the constant part is a constant."""

    @T.prim_func
    def k(D: T.Buffer((2,), "uint64")):
        T.device_entry()
        tx = T.thread_id([1])
        sm = T.alloc_shared((64, 64), "bfloat16", align=1024)
        D[0] = T.cuda.tcgen05.matrix_descriptor(sm, 1, 64, 3)
        D[1] = T.cuda.tcgen05.matrix_descriptor(sm.ptr_to([8, 0]), 1, 64, 3)

    first, second = stored(k, 2, "uint64")
    assert first & ~0x3FFF == matrix(0, 1, 64, 3)
    assert second - first == 8 * 64 * 2 >> 4
    assert f"{matrix(0, 1, 64, 3)}" in tirx.compile(k, target="cpu").source


def instr(d, a, b, m, n, **more) -> int:
    return bits(b4=d, b7=a, b10=b, b17=n // 8, b24=m // 16, **more)


F8 = ("float8_e4m3fn", "float8_e5m2", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
CODES = (0, 1, 3, 4, 5)  # of F8: 2 is not used
PLAIN = [
    (dict(d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=256, K=16), instr(1, 0, 0, 128, 256)),
    (dict(d_dtype="float16", a_dtype="float16", b_dtype="float16", M=64, N=8, K=16), instr(0, 0, 0, 64, 8)),
    (dict(d_dtype="float32", a_dtype="bfloat16", b_dtype="float16", M=128, N=16, K=16), instr(1, 1, 0, 128, 16)),
    (dict(d_dtype="float32", a_dtype="tf32", b_dtype="tf32", M=128, N=64, K=8), instr(1, 2, 2, 128, 64)),
    (dict(d_dtype="float32", a_dtype="float32", b_dtype="float32", M=64, N=24, K=8), instr(1, 2, 2, 64, 24)),
    (dict(d_dtype="int32", a_dtype="uint8", b_dtype="int8", M=128, N=24, K=32), instr(2, 0, 1, 128, 24)),
    (
        dict(d_dtype="int32", a_dtype="int8", b_dtype="int8", M=64, N=240, K=32, sat_d=True),
        instr(2, 1, 1, 64, 240, b3=1),
    ),
    *[
        (dict(d_dtype="float32", a_dtype=x, b_dtype=y, M=128, N=48, K=32), instr(1, i, j, 128, 48))
        for i, x in zip(CODES, F8, strict=True)
        for j, y in zip(CODES, F8, strict=True)
    ],
    (
        dict(d_dtype="float16", a_dtype="float8_e5m2", b_dtype="float8_e4m3fn", M=64, N=56, K=32, trans_b=True),
        instr(0, 1, 0, 64, 56, b16=1),
    ),
    (
        dict(
            d_dtype="float32", a_dtype="bfloat16", b_dtype="bfloat16", M=256, N=224, K=16, n_cta_groups=2, trans_a=True,
            trans_b=True, neg_a=True, neg_b=True,
        ),
        instr(1, 1, 1, 256, 224, b13=1, b14=1, b15=1, b16=1),
    ),
    (
        dict(d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=32, K=32, n_cta_groups=2,
             is_sparse=True),
        instr(1, 0, 0, 128, 32, b2=1),
    ),
]  # fmt: skip


def scaled(a, b, m, n, scale, **more) -> int:
    return bits(b7=a, b10=b, b17=n // 8, b23=scale, b24=m // 16, **more)


UE8, UE4 = "float8_e8m0fnu", "float8_e4m3fn"
SCALED = [
    (dict(a_dtype=F8[0], b_dtype=F8[3], sfa_dtype=UE8, sfb_dtype=UE8, M=128, N=8, K=32), scaled(0, 4, 128, 8, 1)),
    (dict(a_dtype=F8[4], b_dtype=F8[1], sfa_dtype=UE8, sfb_dtype=UE8, M=128, N=256, K=32), scaled(5, 1, 128, 256, 1)),
    (dict(a_dtype=F8[4], b_dtype=F8[4], sfa_dtype=UE8, sfb_dtype=UE8, M=128, N=120, K=64), scaled(1, 1, 128, 120, 1)),
    (dict(a_dtype=F8[4], b_dtype=F8[4], sfa_dtype=UE4, sfb_dtype=UE4, M=128, N=64, K=64), scaled(1, 1, 128, 64, 0)),
    (
        dict(a_dtype=F8[4], b_dtype=F8[4], sfa_dtype=UE4, sfb_dtype=UE4, M=128, N=64, K=96),
        scaled(1, 1, 128, 64, 0, b31=1),
    ),
    (
        dict(
            a_dtype=F8[0], b_dtype=F8[0], sfa_dtype=UE8, sfb_dtype=UE8, M=256, N=240, K=64, n_cta_groups=2,
            is_sparse=True, trans_a=True, trans_b=True, neg_a=True, neg_b=True,
        ),
        scaled(0, 0, 256, 240, 1, b2=1, b13=1, b14=1, b15=1, b16=1),
    ),
]  # fmt: skip


@pytest.mark.parametrize("fields, want", PLAIN)
def test_instruction_descriptors(fields, want):
    @T.prim_func
    def k(D: T.Buffer((3,), "uint32")):
        T.device_entry()
        tx = T.thread_id([1])
        made: T.uint32
        T.cuda.tcgen05.encode_instr_descriptor(T.address_of(made), **fields)
        D[0] = made
        T.cuda.tcgen05_encode_instr_descriptor(
            D.ptr_to([1]), attrs=T.meta_var(T.cuda.TCGen05InstrDescriptorAttrs(**fields))
        )
        D[2] = T.uint32(T.cuda.tcgen05.instr_descriptor(**fields))

    assert stored(k, 3, "uint32") == [want] * 3


@pytest.mark.parametrize("fields, want", SCALED)
def test_block_scaled_instruction_descriptors(fields, want):
    fields = {"d_dtype": "float32", **fields}

    @T.prim_func
    def k(D: T.Buffer((4,), "uint32"), taddr: T.uint32, sf: T.int32):
        T.device_entry()
        tx = T.thread_id([1])
        made: T.uint32
        T.cuda.tcgen05.encode_instr_descriptor_block_scaled(
            T.address_of(made), **fields, sfa_tmem_addr=taddr, sfb_tmem_addr=taddr
        )
        D[0] = made
        T.cuda.runtime_instr_desc(T.address_of(made), 3)
        D[1] = made
        T.cuda.runtime_instr_desc(T.address_of(made), sf)
        D[2] = made
        T.cuda.tcgen05_encode_instr_descriptor_block_scaled(
            D.ptr_to([3]), attrs=T.meta_var(T.cuda.TCGen05BlockScaledInstrDescriptorAttrs(**fields))
        )

    got = stored(k, 4, "uint32", 0, 2)
    assert got == [want, want | bits(b4=3, b29=3), want | bits(b4=2, b29=2), want]


def test_a_published_descriptor():
    """float16 x float16 into float32, 128 x 128."""
    fields = dict(d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=128, K=16)
    assert T.cuda.tcgen05.instr_descriptor(**fields) == 136314896


F16 = dict(d_dtype="float32", a_dtype="float16", b_dtype="float16", M=128, N=256, K=16)
I8 = dict(d_dtype="int32", a_dtype="int8", b_dtype="int8", M=128, N=32, K=32)
MX = dict(
    d_dtype="float32", a_dtype=F8[0], b_dtype=F8[0], sfa_dtype=UE8, sfb_dtype=UE8, M=128, N=64, K=32
)  # fmt: skip
SHAPE = "Invalid matrix shape for Tcgen05 MMA, check failed for kind: "


@pytest.mark.parametrize(
    "fields, text",
    [
        (
            F16 | {"a_dtype": "int8"},
            "Invalid multiplicand data types for Tcgen05 MMA, got d: float32, a: int8, b: float16",
        ),
        (
            F16 | {"d_dtype": "float16", "b_dtype": "bfloat16"},
            "Invalid multiplicand data types for Tcgen05 MMA, got d: float16, a: float16, b: bfloat16",
        ),
        (
            F16 | {"M": 64, "N": 4},
            SHAPE + "f16, M: 64, N: 4, K: 16, n_cta_groups: 1, is_sparse: False; K must be 16",
        ),
        (F16 | {"N": 24}, SHAPE + "f16, M: 128, N: 24, K: 16, n_cta_groups: 1, is_sparse: False; K must be 16"),
        (F16 | {"M": 256}, SHAPE + "f16, M: 256, N: 256, K: 16, n_cta_groups: 1, is_sparse: False; K must be 16"),
        (F16 | {"K": 32}, SHAPE + "f16, M: 128, N: 256, K: 32, n_cta_groups: 1, is_sparse: False; K must be 16"),
        (
            F16 | {"N": 48, "n_cta_groups": 2},
            SHAPE + "f16, M: 128, N: 48, K: 16, n_cta_groups: 2, is_sparse: False; K must be 16",
        ),
        (I8 | {"N": 40}, SHAPE + "i8, M: 128, N: 40, K: 32, n_cta_groups: 1, is_sparse: False; K must be 32"),
        (I8 | {"neg_a": True}, "neg_a and neg_b are not allowed in Tcgen05 MMA of kind i8"),
        (F16 | {"sat_d": True}, "sat_d is only allowed in Tcgen05 MMA of kind i8, not f16"),
        (
            F16 | {"a_dtype": F8[4], "b_dtype": F8[0], "K": 32, "trans_a": True},
            "trans_a is not allowed for float4_e2m1fn in Tcgen05 MMA of kind f8f6f4",
        ),
        (MX | {"M": 64}, SHAPE + "mxf8f6f4, M: 64, N: 64, K: 32, n_cta_groups: 1, is_sparse: False; K must be 32"),
        (
            MX | {"is_sparse": True, "K": 64, "n_cta_groups": 2},
            SHAPE + "mxf8f6f4, M: 128, N: 64, K: 64, n_cta_groups: 2, is_sparse: True; K must be 64",
        ),
        (
            MX | {"a_dtype": F8[4], "b_dtype": F8[4]},
            SHAPE + "mxf4, M: 128, N: 64, K: 32, n_cta_groups: 1, is_sparse: False; K must be 64 or 96",
        ),
        (
            MX | {"sfa_dtype": UE4, "sfb_dtype": UE4},
            "Invalid multiplicand data types for Tcgen05 MMA, got d: float32, a: float8_e4m3fn, b: float8_e4m3fn, "
            "sfa: float8_e4m3fn, sfb: float8_e4m3fn",
        ),
        (
            MX | {"b_dtype": F8[2], "trans_b": True},
            "trans_b is not allowed for float6_e2m3fn in Tcgen05 MMA of kind mxf8f6f4",
        ),
    ],
)
def test_misuse_of_instruction_descriptors(fields, text):
    make = T.cuda.tcgen05.instr_descriptor_block_scaled if "sfa_dtype" in fields else T.cuda.tcgen05.instr_descriptor
    with pytest.raises(ValueError) as e:
        make(**fields)
    assert str(e.value) == text


@pytest.mark.parametrize(
    "line, text",
    [
        ("D[0] = T.cuda.tcgen05.matrix_descriptor(D, 1, 64, 5)", "swizzle must be 0, 1, 2, 3 or 4"),
        (
            "D[0] = T.cuda.tcgen05.matrix_descriptor(D, 1 << 14, 64, 3)",
            "ldo is in units of 16 bytes, 0..16383, got 16384",
        ),
        ("T.cuda.tcgen05.encode_matrix_descriptor(tx, D, 1, 64, 3)", "pass T.address_of(x), where x: T.uint64"),
        ("T.cuda.runtime_instr_desc(T.address_of(d), 4)", "a scale-factor id is in 0..3, got 4"),
        ("T.cuda.runtime_instr_desc(tx, 1)", "pass T.address_of(x), where x: T.uint32"),
        (
            "T.cuda.tcgen05.encode_instr_descriptor(T.address_of(d), M=tx)",
            "M must be known while the kernel is built, got a run-time value",
        ),
        (
            "T.cuda.tcgen05.encode_instr_descriptor(T.address_of(d), attrs=1, M=128)",
            "takes attrs= or single fields, not both",
        ),
    ],
)
def test_misuse(line, text):
    source = f"""
@T.prim_func
def k(D: T.Buffer((4,), "uint64")):
    T.device_entry()
    tx = T.thread_id([1])
    d: T.uint32
    {line}
"""
    with pytest.raises(DiagnosticError) as e:
        tirx.from_source(source)
    assert text in str(e.value)
