# SPDX-License-Identifier: Apache-2.0
"""Every name of the language, with what it must do.

Level A and B: a use that works, its value from the emulator against NumPy, or a structural check. Level C: accepted,
printed, and the text parses back to the same function. Level X: refused with "not supported by tirx" and, where there
is one, the alternative. The instructions of T.ptx and T.cuda, layouts, tile operations, matrix instructions and tensor
memory have tables of their own.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from script.kernels import body, kernel, printed, run

import tirx
from tirx import _core
from tirx.script import ir as I
from tirx.script import tirx as T

tx = np.arange(64)

# ---- A and B: values -------------------------------------------------------------------------------------------------

# name -> (body over A = 0.0, 1.0, ..., B = 0, s = 3 and tx; what B holds afterwards, as NumPy says it)
VALUES: dict[str, tuple[str, str]] = {
    # frames and statements
    "cta_id": ("c = T.cta_id([1])\nB[tx] = c + 1", "tx * 0 + 1"),
    "thread_id": ("t = T.thread_id([64])\nB[tx] = t", "tx"),
    "lane_id": ("l = T.lane_id([32])\nB[tx] = l", "tx % 32"),
    "warp_id": ("w = T.warp_id([2])\nB[tx] = w", "tx // 32"),
    "serial": ("for i in T.serial(2, 8, step=2):\n    B[tx] += i", "tx * 0 + 12"),
    "unroll": ("for i in T.unroll(4):\n    B[tx] += i", "tx * 0 + 6"),
    "vectorized": ("if tx % 4 == 0:\n    for i in T.vectorized(4):\n        B[tx + i] = i", "tx % 4"),
    "parallel": ("for i in T.parallel(3):\n    B[tx] += i", "tx * 0 + 3"),
    "grid": ("for i, j in T.grid(2, (1, 3)):\n    B[tx] += i * j", "tx * 0 + 6"),
    "If": (
        "with T.If(tx < 5):\n    with T.Then():\n        B[tx] = 1\n    with T.Else():\n        B[tx] = 2",
        "2 - (tx < 5)",
    ),
    "Then": ("with T.If(tx < 5), T.Then():\n    B[tx] = 1", "tx < 5"),
    "Else": (
        "with T.If(tx < 5):\n    with T.Then():\n        pass\n    with T.Else():\n        B[tx] = 2",
        "2 * (tx >= 5)",
    ),
    "While": ("i = 0\nwith T.While(i < 3):\n    B[tx] += 2\n    i += 1", "tx * 0 + 6"),
    "For": ("with T.For(1, 4) as i:\n    B[tx] += i", "tx * 0 + 6"),
    "Assert": ("T.Assert(tx < 64, 'too many')\nB[tx] = 1", "tx * 0 + 1"),
    "Return": ("if tx > 3:\n    T.Return()\nB[tx] = 1", "tx < 4"),
    "Break": ("for i in range(9):\n    B[tx] = i\n    if i == 4:\n        T.Break()", "tx * 0 + 4"),
    "Continue": ("for i in range(4):\n    if i == 1:\n        T.Continue()\n    B[tx] += i", "tx * 0 + 5"),
    "if_": (
        "with T.if_(tx < 5):\n    with T.then_():\n        B[tx] = 1\n    with T.else_():\n        B[tx] = 2",
        "2 - (tx < 5)",
    ),
    "then_": ("with T.if_(tx < 5), T.then_():\n    B[tx] = 1", "tx < 5"),
    "else_": (
        "with T.if_(tx < 5):\n    with T.then_():\n        pass\n    with T.else_():\n        B[tx] = 2",
        "2 * (tx >= 5)",
    ),
    "while_": ("i: T.int32 = 0\nwith T.while_(i < 3):\n    B[tx] += 2\n    i += 1", "tx * 0 + 6"),
    "for_": ("with T.for_(T.range_(1, 7, 2)) as i:\n    B[tx] += i", "tx * 0 + 9"),
    "range_": ("for i in T.range_(4):\n    B[tx] += i", "tx * 0 + 6"),
    "assert_": ("T.assert_(tx < 64, 'too many')\nB[tx] = 1", "tx * 0 + 1"),
    "return_": ("if tx > 3:\n    T.return_()\nB[tx] = 1", "tx < 4"),
    "break_": ("for i in range(9):\n    B[tx] = i\n    if i == 4:\n        T.break_()", "tx * 0 + 4"),
    "continue_": ("for i in range(4):\n    if i == 1:\n        T.continue_()\n    B[tx] += i", "tx * 0 + 5"),
    "break_loop": ("for i in range(9):\n    B[tx] = i\n    if i == 4:\n        T.break_loop()", "tx * 0 + 4"),
    "continue_loop": ("for i in range(4):\n    if i == 1:\n        T.continue_loop()\n    B[tx] += i", "tx * 0 + 5"),
    "evaluate": ("T.evaluate(T.cuda.atomic_add(B.ptr_to([tx]), 4))", "tx * 0 + 4"),
    "thread_return": ("if tx > 3:\n    T.evaluate(T.thread_return())\nB[tx] = 1", "tx < 4"),
    "gpu_thread_return": ("if tx > 3:\n    T.gpu_thread_return()\nB[tx] = 1", "tx < 4"),
    "attr": ("with T.attr({'pragma_x': 1}):\n    B[tx] = 1", "tx * 0 + 1"),
    # names and storage
    "let": ("x: T.let = tx * 2\ny: T.let[T.int64] = x\nB[tx] = x + T.cast(y, 'int32')", "tx * 4"),
    "Let": ("v = T.Var('v', 'int32')\nB[tx] = T.Let(v * v, {v: tx + 1})", "(tx + 1) ** 2"),
    "Bind": ("x = T.Bind(tx * 2)\nB[tx] = x", "tx * 2"),
    "bind": ("x = T.bind(tx * 2, T.int64)\nB[tx] = x", "tx * 2"),
    "bind_": ("x = T.bind_(T.alloc_local((2,), 'int32'), name='pair')\nx[1] = tx\nB[tx] = x[1]", "tx"),
    "meta_var": ("n = T.meta_var([2, 3])\nB[tx] = n[1]", "tx * 0 + 3"),
    "constexpr": ("if T.constexpr(1 < 2):\n    B[tx] = 1", "tx * 0 + 1"),
    "static_assert": ("T.static_assert(1 < 2, 'no')\nB[tx] = 1", "tx * 0 + 1"),
    "alloc_buffer": ("x = T.alloc_buffer((4,), 'int32', scope='local')\nx[2] = tx\nB[tx] = x[2]", "tx"),
    "alloc_shared": (
        "x = T.alloc_shared((64,), 'int32')\nx[63 - tx] = tx\nT.cuda.cta_sync()\nB[tx] = x[tx]",
        "63 - tx",
    ),
    "smem": ("x = T.smem((64,), 'int32')\nx[63 - tx] = tx\nT.cuda.cta_sync()\nB[tx] = x[tx]", "63 - tx"),
    "alloc_local": ("x = T.alloc_local((2, 2), 'int32')\nx[1, 1] = tx\nB[tx] = x[1, 1]", "tx"),
    "alloc_tensor": (
        "x = T.alloc_tensor(ty_args=[T.Tensor((4,), T.int32, scope='local')])\nx[3] = tx\nB[tx] = x[3]",
        "tx",
    ),
    "decl_buffer": ("x = T.decl_buffer((32, 2), 'int32', data=B.data)\nx[tx // 2, tx % 2] = tx", "tx"),
    "decl_tensor": ("x = T.decl_tensor(B.data, ty_args=[T.Tensor((32, 2), T.int32)])\nx[tx // 2, tx % 2] = tx", "tx"),
    "local_scalar": ("x = T.local_scalar('int32')\nx = tx\nx += 1\nB[tx] = x", "tx + 1"),
    "shared_scalar": (
        "x = T.shared_scalar('int32')\nif tx == 0:\n    x = s\nT.cuda.cta_sync()\nB[tx] = x",
        "tx * 0 + 3",
    ),
    "alloc_scalar": ("x = T.alloc_scalar('int32', 'local')\nx = tx\nB[tx] = x", "tx"),
    "decl_scalar": (
        "x = T.decl_scalar('int32', B.data, 'global', elem_offset=5)\nif tx == 0:\n    x = 7",
        "7 * (tx == 5)",
    ),
    "assign": ("x = T.local_scalar('int32')\nT.assign(x, tx)\nB[tx] = x", "tx"),
    "buffer_store": ("T.buffer_store(B, tx, [63 - tx])", "63 - tx"),
    # expressions
    "cast": ("B[tx] = T.cast(T.cast(tx + 250, T.uint8), 'int32')", "(tx + 250) % 256"),
    "Cast": ("B[tx] = T.Cast('int32', T.Cast('int8', tx + 100))", "(tx + 100).astype(np.int8)"),
    "reinterpret": (
        "B[tx] = T.reinterpret('int32', A[tx]) + T.reinterpret(A[tx], ty=T.int32)",
        "2 * tx.astype(np.float32).view(np.int32)",
    ),
    "Select": ("B[tx] = T.Select(tx < 5, 1, tx)", "np.where(tx < 5, 1, tx)"),
    "select": ("B[tx] = T.select(tx < 5, 1, tx)", "np.where(tx < 5, 1, tx)"),
    "if_then_else": (
        "B[tx] = T.if_then_else(tx > 0, T.int32(A[tx - 1]), 4)",
        "(tx > 0) * (tx - 1) + 4 * (tx == 0)",
    ),
    "min": ("B[tx] = T.min(tx, 9)", "np.minimum(tx, 9)"),
    "max": ("B[tx] = T.max(tx, 9)", "np.maximum(tx, 9)"),
    "ceildiv": ("B[tx] = T.ceildiv(tx - 20, 7)", "-((20 - tx) // 7)"),
    "floordiv": ("B[tx] = T.floordiv(tx - 20, 7)", "(tx - 20) // 7"),
    "floormod": ("B[tx] = T.floormod(tx - 20, 7)", "(tx - 20) % 7"),
    "truncdiv": ("B[tx] = T.truncdiv(tx - 20, 7)", "np.trunc((tx - 20) / 7)"),
    "truncmod": ("B[tx] = T.truncmod(tx - 20, 7)", "np.fmod(tx - 20, 7)"),
    "shift_left": ("B[tx] = T.shift_left(tx, 2)", "tx << 2"),
    "shift_right": ("B[tx] = T.shift_right(tx - 20, 2)", "(tx - 20) >> 2"),
    "bitwise_and": ("B[tx] = T.bitwise_and(tx, 12)", "tx & 12"),
    "bitwise_or": ("B[tx] = T.bitwise_or(tx, 12)", "tx | 12"),
    "bitwise_xor": ("B[tx] = T.bitwise_xor(tx, 12)", "tx ^ 12"),
    "bitwise_not": ("B[tx] = T.bitwise_not(tx)", "~tx"),
    "logical_and": (
        "B[tx] = T.cast(T.logical_and(tx > 2, tx < 9, tx != 5), 'int32')",
        "(tx > 2) & (tx < 9) & (tx != 5)",
    ),
    "logical_or": ("B[tx] = T.cast(T.logical_or(tx < 2, tx > 9, tx == 5), 'int32')", "(tx < 2) | (tx > 9) | (tx == 5)"),
    "logical_not": ("B[tx] = T.cast(T.logical_not(tx < 2), 'int32')", "tx >= 2"),
    "Add": ("B[tx] = T.Add(tx, 2)", "tx + 2"),
    "Sub": ("B[tx] = T.Sub(tx, 2)", "tx - 2"),
    "Mul": ("B[tx] = T.Mul(tx, 2)", "tx * 2"),
    "Div": ("B[tx] = T.Div(tx - 20, 7)", "np.trunc((tx - 20) / 7)"),
    "Mod": ("B[tx] = T.Mod(tx - 20, 7)", "np.fmod(tx - 20, 7)"),
    "FloorDiv": ("B[tx] = T.FloorDiv(tx - 20, 7)", "(tx - 20) // 7"),
    "FloorMod": ("B[tx] = T.FloorMod(tx - 20, 7)", "(tx - 20) % 7"),
    "Min": ("B[tx] = T.Min(tx, 9)", "np.minimum(tx, 9)"),
    "Max": ("B[tx] = T.Max(tx, 9)", "np.maximum(tx, 9)"),
    "EQ": ("B[tx] = T.cast(T.EQ(tx, 2), 'int32')", "tx == 2"),
    "NE": ("B[tx] = T.cast(T.NE(tx, 2), 'int32')", "tx != 2"),
    "LT": ("B[tx] = T.cast(T.LT(tx, 2), 'int32')", "tx < 2"),
    "LE": ("B[tx] = T.cast(T.LE(tx, 2), 'int32')", "tx <= 2"),
    "GT": ("B[tx] = T.cast(T.GT(tx, 2), 'int32')", "tx > 2"),
    "GE": ("B[tx] = T.cast(T.GE(tx, 2), 'int32')", "tx >= 2"),
    "And": ("B[tx] = T.cast(T.And(tx > 2, tx < 9), 'int32')", "(tx > 2) & (tx < 9)"),
    "Or": ("B[tx] = T.cast(T.Or(tx < 2, tx > 9), 'int32')", "(tx < 2) | (tx > 9)"),
    "Not": ("B[tx] = T.cast(T.Not(tx < 2), 'int32')", "tx >= 2"),
    "LShift": ("B[tx] = T.LShift(tx, 2)", "tx << 2"),
    "RShift": ("B[tx] = T.RShift(tx - 20, 2)", "(tx - 20) >> 2"),
    "BitwiseAnd": ("B[tx] = T.BitwiseAnd(tx, 12)", "tx & 12"),
    "BitwiseOr": ("B[tx] = T.BitwiseOr(tx, 12)", "tx | 12"),
    "BitwiseXor": ("B[tx] = T.BitwiseXor(tx, 12)", "tx ^ 12"),
    "BitwiseNot": ("B[tx] = T.BitwiseNot(tx)", "~tx"),
    "Call": (
        "B[tx] = T.Call('popcount', [tx], ty=T.int32) + T.Call('tirx.clz', [tx], ret_ty='int32')",
        "popcount(tx) + clz(tx)",
    ),
    "Shuffle": ("v: T.let = T.Shuffle([tx, tx + 1, tx * 2], [2, 0])\nB[tx] = T.Shuffle([v], [0])", "tx * 2"),
    "Ramp": ("if tx < 16:\n    B[T.Ramp(tx * 4, 1, 4)] = T.Ramp(tx, 2, 4)", "tx // 4 + 2 * (tx % 4)"),
    "Broadcast": ("if tx < 16:\n    B[T.ramp(tx * 4, 1, 4)] = T.Broadcast(tx, 4)", "tx // 4"),
    "ramp": ("if tx < 32:\n    B[T.ramp(tx * 2, 1, 2)] = T.ramp(tx, 5, 2)", "tx // 2 + 5 * (tx % 2)"),
    "broadcast": ("if tx < 32:\n    B[T.ramp(tx * 2, 1, 2)] = T.broadcast(tx, 2)", "tx // 2"),
    "vectorlow": ("v: T.let = T.vectorlow('int32x2', T.ramp(tx, 10, 4))\nB[tx] = T.Shuffle([v], [1])", "tx + 10"),
    "vectorhigh": ("v: T.let = T.vectorhigh('int32x2', T.ramp(tx, 10, 4))\nB[tx] = T.Shuffle([v], [0])", "tx + 20"),
    "vectorcombine": (
        "v: T.let = T.vectorcombine('int32x4', T.ramp(tx, 1, 2), T.ramp(tx, 7, 2))\nB[tx] = T.Shuffle([v], [3])",
        "tx + 7",
    ),
    "vector_low": ("v: T.let = T.vector_low(T.ramp(tx, 10, 4))\nB[tx] = T.Shuffle([v], [1])", "tx + 10"),
    "vector_high": ("v: T.let = T.vector_high(T.ramp(tx, 10, 4))\nB[tx] = T.Shuffle([v], [0])", "tx + 20"),
    "vector_combine": (
        "v: T.let = T.vector_combine(T.ramp(tx, 1, 2), T.ramp(tx, 7, 2))\nB[tx] = T.Shuffle([v], [3])",
        "tx + 7",
    ),
    "make_vector": ("v: T.let = T.make_vector(7, tx, s)\nB[tx] = T.Shuffle([v], [1])", "tx"),
    "popcount": ("B[tx] = T.popcount(tx)", "popcount(tx)"),
    "clz": ("B[tx] = T.clz(tx)", "clz(tx)"),
    "isnan": ("B[tx] = T.cast(T.isnan(A[tx] - T.infinity('float32') * A[tx]), 'int32')", "tx == 0"),
    "isinf": ("B[tx] = T.cast(T.isinf(T.float32(1.0) / A[tx]), 'int32')", "tx == 0"),
    "isfinite": ("B[tx] = T.cast(T.isfinite(T.float32(1.0) / A[tx]), 'int32')", "tx != 0"),
    "fma": ("B[tx] = T.fma(tx, 3, s) + T.cast(T.fma(A[tx], A[tx], 0.5), 'int32')", "tx * 3 + 3 + tx * tx"),
    "infinity": ("B[tx] = T.cast(A[tx] < T.infinity(ty=T.float32), 'int32')", "tx * 0 + 1"),
    "max_value": ("B[tx] = T.cast(T.max_value('int8'), 'int32') + tx", "tx + 127"),
    "min_value": ("B[tx] = T.cast(T.min_value(ty=T.int8), 'int32') + tx", "tx - 128"),
    "dp4a": ("B[tx] = T.dp4a(tx * 0x01010101, T.int32(0x01FF0203), s)", "3 + tx * (1 - 1 + 2 + 3)"),
    "gpu_dp4a": ("B[tx] = T.gpu_dp4a(T.uint32(0xFF000001), T.cast(tx, 'uint32'), T.uint32(1))", "tx + 1"),
    "masked_load": (
        "v: T.let = T.masked_load(A, [T.ramp(tx - 1, 1, 2)], T.ramp(tx, 1, 2) > 0, T.broadcast(T.float32(-1), 2))\n"
        "B[tx] = T.int32(T.Shuffle([v], [0]))",
        "tx - 1",
    ),
    "masked_store": (
        "if tx < 32:\n    T.masked_store(B, [T.ramp(tx * 2, 1, 2)], T.broadcast(tx, 2), T.ramp(tx, 40, 2) < 41)",
        "np.where((tx % 2 == 0) | (tx < 2), tx // 2, 0)",
    ),
    # pointers
    "address_of": ("T.evaluate(T.cuda.atomic_add(T.address_of(B[tx]), tx))", "tx"),
    "ptr_byte_offset": (
        "x = T.decl_buffer((1,), 'int32', data=T.ptr_byte_offset(B.data, tx * 4, 'int32'))\nx[0] = tx",
        "tx",
    ),
    "handle_add_byte_offset": ("T.evaluate(T.cuda.atomic_add(T.handle_add_byte_offset(B.data, tx * 4), tx))", "tx"),
    "isnullptr": ("B[tx] = T.cast(T.isnullptr(B.data), 'int32') + 1", "tx * 0 + 1"),
    "tvm_access_ptr": (
        "p: T.let = T.tvm_access_ptr(T.type_annotation('int32'), B.data, tx, 1, 2)\n"
        "T.evaluate(T.cuda.atomic_add(p, tx))",
        "tx",
    ),
    "type_annotation": ("B[tx] = T.cast(T.cast(tx + 250, T.type_annotation('uint8')), 'int32')", "(tx + 250) % 256"),
    # calls
    "call_intrin": (
        "B[tx] = T.call_intrin('int32', 'tirx.popcount', tx) + T.call_intrin('popcount', tx, ty=T.int32)",
        "2 * popcount(tx)",
    ),
    "atomic_add": ("T.atomic_add(B.ptr_to([tx // 2]), 1)", "2 * (tx < 32)"),
    # warps
    "tvm_warp_shuffle": ("B[tx] = T.tvm_warp_shuffle(0xFFFFFFFF, tx, 5, 32, 32)", "tx // 32 * 32 + 5"),
    "tvm_warp_shuffle_up": ("B[tx] = T.tvm_warp_shuffle_up(0xFFFFFFFF, tx, 1, 32, 32)", "tx - (tx % 32 > 0)"),
    "tvm_warp_shuffle_down": ("B[tx] = T.tvm_warp_shuffle_down(0xFFFFFFFF, tx, 1, 32, 32)", "tx + (tx % 32 < 31)"),
    "tvm_warp_shuffle_xor": ("B[tx] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, tx, 1, 32, 32)", "tx ^ 1"),
    "gpu_warp_shuffle": ("B[tx] = T.gpu_warp_shuffle(0xFFFFFFFF, tx, 5, 32, 32)", "tx // 32 * 32 + 5"),
    "gpu_warp_shuffle_up": ("B[tx] = T.gpu_warp_shuffle_up(0xFFFFFFFF, tx, 1, 32, 32)", "tx - (tx % 32 > 0)"),
    "gpu_warp_shuffle_down": ("B[tx] = T.gpu_warp_shuffle_down(0xFFFFFFFF, tx, 1, 32, 32)", "tx + (tx % 32 < 31)"),
    "gpu_warp_shuffle_xor": ("B[tx] = T.gpu_warp_shuffle_xor(0xFFFFFFFF, tx, 1, 32, 32)", "tx ^ 1"),
    "tvm_warp_activemask": ("B[tx] = T.cast(T.tvm_warp_activemask(), 'int32')", "tx * 0 - 1"),
    "gpu_warp_activemask": ("B[tx] = T.cast(T.gpu_warp_activemask(), 'int32')", "tx * 0 - 1"),
    "tvm_storage_sync": (
        "x = T.alloc_shared((64,), 'int32')\nx[tx] = tx\nT.tvm_storage_sync('shared')\nB[tx] = x[63 - tx]",
        "63 - tx",
    ),
    "gpu_storage_sync": (
        "x = T.alloc_shared((64,), 'int32')\nx[tx] = tx\nT.gpu_storage_sync('shared')\nB[tx] = x[63 - tx]",
        "63 - tx",
    ),
    "tvm_thread_allreduce": (
        "x = T.alloc_local((1,), 'int32')\nT.tvm_thread_allreduce(T.uint32(1), tx, True, x[0], tx)\nB[tx] = x[0]",
        "tx * 0 + 2016",
    ),
    "gpu_thread_allreduce": (
        "x = T.alloc_local((1,), 'int32')\nT.gpu_thread_allreduce(1, tx, tx != 63, x[0], tx, op='max')\nB[tx] = x[0]",
        "tx * 0 + 62",
    ),
    "selector": ("if T.selector(tx, tx == 3):\n    B[tx] = 1", "tx == 3"),
    "gpu_active_thread_selector": ("if T.gpu_active_thread_selector(tx, tx == 3):\n    B[tx] = 1", "tx == 3"),
    "filter": ("if T.filter(tx, tx < 4):\n    B[tx] = 1", "tx < 4"),
    "gpu_thread_filter": ("if T.gpu_thread_filter(tx, 2, 4):\n    B[tx] = 1", "(tx >= 2) & (tx < 4)"),
    # objects
    "Range": ("for i in T.Range(2, 5):\n    B[tx] += i\nB[tx] += T.Range(2, 5).extent", "tx * 0 + 12"),
    "Var": ("v = T.Var('v', T.int32)\nB[tx] = T.Let(v + 1, where={v: tx})", "tx + 1"),
    "IntImm": ("B[tx] = T.IntImm('int32', 5)", "tx * 0 + 5"),
    "FloatImm": ("B[tx] = T.cast(T.FloatImm('float32', 5.5) + A[tx], 'int32')", "tx + 5"),
    "func_attr": ("B[tx] = 1", "tx * 0 + 1"),
}

FLOAT_MATH = (
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf"
    " sigmoid fabs abs floor ceil round trunc nearbyint atan2 pow fmod hypot ldexp copysign nextafter"
).split()


def popcount(x):
    return np.array([int(v).bit_count() for v in x])


def clz(x):
    return np.array([32 - int(v).bit_length() for v in x])


@pytest.mark.parametrize("dialect", ["g1", "g2"])
@pytest.mark.parametrize("name", VALUES)
def test_value(name, dialect):
    text, want = VALUES[name]
    assert re.search(rf"\bT\.{name}\b", text) or name == "func_attr", "the use does not use it"
    if dialect == "g2" and name in ("cta_id", "thread_id", "lane_id", "warp_id"):
        pytest.skip("scope ids together with a LaunchConfig: tests/script/test_signature.py")
    f = kernel(text, dialect)
    printed(f)
    _, b = run(f, s=3)
    names = {"tx": tx, "np": np, "popcount": popcount, "clz": clz}
    np.testing.assert_array_equal(b, np.asarray(eval(want, names)).astype(np.int32))


@pytest.mark.parametrize("name", VALUES)
def test_cuda_text(name, nvrtc):
    """NVRTC takes what is made of it."""
    tirx.compile(kernel(VALUES[name][0]), target="cuda:sm_90a").source  # noqa: B018


@pytest.mark.parametrize("name", FLOAT_MATH)
def test_mathematics(name):
    """Each has a row; values: tests/emu/test_floats.py."""
    two = name in ("atan2", "pow", "fmod", "hypot", "copysign", "nextafter")
    call = f"T.{name}(A[tx] + 1.0{', A[tx]' if two else ', 2' if name == 'ldexp' else ''})"
    a, _ = run(kernel(f"A[tx] = {call}"))
    x, y = np.float64(tx + 1), np.float64(tx)
    with np.errstate(all="ignore"):
        want = {
            "exp10": lambda: 10.0**x,
            "rsqrt": lambda: 1 / np.sqrt(x),
            "asin": lambda: np.arcsin(x),
            "acos": lambda: np.arccos(x),
            "atan": lambda: np.arctan(x),
            "asinh": lambda: np.arcsinh(x),
            "acosh": lambda: np.arccosh(x),
            "atanh": lambda: np.arctanh(x),
            "erf": lambda: np.array([__import__("math").erf(v) for v in x]),
            "sigmoid": lambda: 1 / (1 + np.exp(-x)),
            "round": lambda: np.rint(x),
            "nearbyint": lambda: np.rint(x),
            "atan2": lambda: np.arctan2(x, y),
            "pow": lambda: x**y,
            "ldexp": lambda: x * 4,
            "nextafter": lambda: np.nextafter(np.float32(x), np.float32(y)),
        }
        want = want.get(name, lambda: getattr(np, name)(*((x, y) if two else (x,))))()
        np.testing.assert_allclose(a, np.float32(want), rtol=3e-7, equal_nan=True)


# ---- A and B: what is no value of one kernel -------------------------------------------------------------------------


def parse(text: str, **names):
    f = tirx.from_source(text, names)
    assert tirx.structural_equal(f, tirx.from_source(f.script()))
    return f


def launched(*lines: str) -> str:
    """A kernel of 256 threads whose statements are these."""
    head = [
        "@T.prim_func",
        'def k(B: T.Buffer((256,), "int32")):',
        "    T.device_entry()",
        "    tx = T.thread_id([256])",
    ]
    return "\n".join([*head, *("    " + line for line in lines)]) + "\n"


def cells(text: str) -> np.ndarray:
    b = np.zeros(256, np.int32)
    tirx.compile(parse(text), target="cpu")(b)
    return b


def use_prim_func():
    assert parse("@T.prim_func\ndef k():\n    pass\n").dialect == "g1"


def use_function():
    assert parse("@T.function\ndef k():\n    pass\n").dialect == "g2"


def use_jit():
    @T.jit
    def k(B: T.Buffer((64,), "int32"), n: T.constexpr = 3):
        T.device_entry()
        tx = T.thread_id([64])
        B[tx] = n

    assert k.specialize(n=3) is k.specialize() and "B[tx] = 3" in k.specialize().script()


def use_Optional():
    @T.jit
    def k(B: T.Buffer((64,), "int32"), C: T.Optional(T.Buffer((64,), "int32"))):
        T.device_entry()
        tx = T.thread_id([64])
        B[tx] = 0 if C is None else C[tx]

    assert [name for name, _ in k.specialize(C=None).params] == ["B"]


def use_NoneType():
    f = parse("@T.function\ndef k(A: T.NoneType(), B: T.Tensor((4,), T.int32)):\n    pass\n")
    assert "A: T.NoneType()" in f.script()


def use_inline():
    @T.inline
    def put(B, i):
        B[i] = i * 2

    assert body("put(B, tx)", put=put) == "B[tx] = tx * 2"


def use_meta_class():
    @T.meta_class
    class Pair:
        def __init__(self):
            self.one = T.alloc_local((2,), "int32")

    assert body("p = Pair()\np.one[1] = tx", Pair=Pair) == 'p_one = T.alloc_local((2,), "int32")\np_one[1] = tx'


def use_ir_module():
    @I.ir_module
    class Module:
        @T.prim_func
        def f():
            pass

    assert Module.names == ["f"] and T.ir_module is I.ir_module


def use_Buffer():
    f = parse('@T.prim_func\ndef k(A: T.Buffer((4, 2), "int8"), B: T.Buffer(16)):\n    pass\n')
    assert [(b.shape, b.dtype) for _, b in f.params] == [((4, 2), "int8"), ((16,), "float32")]


def use_Tensor():
    f = parse("@T.function\ndef k(A: T.Tensor((4, 2), T.int8), B: T.Tensor(16, T.float32)):\n    pass\n")
    assert [(b.shape, b.dtype) for _, b in f.params] == [((4, 2), "int8"), ((16,), "float32")]


def use_match_buffer():
    f = parse("@T.prim_func\ndef k(a: T.handle):\n    n = T.int32()\n    A = T.match_buffer(a, (n, 4), 'int8')\n")
    assert f.params[0][1].dtype == "int8"


def use_handle():
    f = parse("@T.prim_func\ndef k(a: T.handle, p: T.handle('float32', 'global')):\n    pass\n")
    assert f.params[1][1].elem == "float32"


def use_Ptr():
    f = parse("@T.function\ndef k(p: T.Ptr(T.float32, 'global'), q: T.Ptr(T.void)):\n    pass\n")
    assert f.params[0][1].elem == "float32" and f.params[1][1].dtype == "handle"


def use_ptr():
    assert T.ptr is T.Ptr


def use_TensorMap():
    f = parse("@T.prim_func\ndef k(m: T.TensorMap(), n: T.handle('tensormap')):\n    pass\n")
    assert [x.elem for _, x in f.params] == ["tensormap", "tensormap"]


def use_dynamic():
    n = T.dynamic("n", "int64")
    f = parse("@T.function\ndef k(A: T.Tensor((n,), T.int32)):\n    pass\n", n=n)
    assert f.params[0][1].shape[0].dtype == "int64"


def use_MemoryScope():
    scope = T.MemoryScope("shared.dyn")
    assert isinstance(scope, str) and scope == "shared.dyn"
    found = []
    kernel("keep(T.alloc_shared((4,), 'int32').scope())", keep=found.append)
    assert found == ["shared"]
    with pytest.raises(ValueError, match="unknown storage scope 'foo'"):
        T.MemoryScope("foo")
    assert 'scope="shared.dyn"' in body("x = T.alloc_buffer((4,), 'int32', scope=scope)", scope=scope)


def use_device_entry():
    assert "T.device_entry()" in kernel("pass").script()


def use_warpgroup_id():
    assert (cells(launched("w = T.warpgroup_id([2])", "B[tx] = w")) == np.arange(256) // 128).all()


def use_warp_id_in_wg():
    lines = ("g = T.warpgroup_id([2])", "w = T.warp_id_in_wg([4])", "B[tx] = w")
    assert (cells(launched(*lines)) == np.arange(256) // 32 % 4).all()


def use_thread_id_in_wg():
    lines = ("g = T.warpgroup_id([2])", "t = T.thread_id_in_wg([128])", "B[tx] = t")
    assert (cells(launched(*lines)) == np.arange(256) % 128).all()


CLUSTERS = """\
@T.prim_func
def k(B: T.Buffer((4, 3), "int32")):
    T.device_entry()
    c = T.cluster_id([2])
    r = T.cta_id_in_cluster([2])
    p = T.cta_id_in_pair()
    tx = T.thread_id([1])
    B[c * 2 + r, 0] = c
    B[c * 2 + r, 1] = r
    B[c * 2 + r, 2] = p
"""


def use_cluster_id():
    b = np.zeros((4, 3), np.int32)
    tirx.compile(parse(CLUSTERS), target="cpu")(b)
    assert b.T.tolist() == [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1]]


use_cta_id_in_cluster = use_cta_id_in_pair = use_cluster_id


def use_scope_id():
    text = body("l = T.scope_id([32], parent='warp', cur='thread')\nw = T.scope_id([2], 'cta', 'warp')\nB[tx] = l + w")
    assert text == "l = T.lane_id([32])\nw = T.warp_id([2])\nB[tx] = l + w"
    with pytest.raises(ValueError, match="T.scope_id: no index of 'lane' in 'cta'; known are kernel > cluster"):
        kernel("l = T.scope_id([32], 'cta', 'lane')")


def use_launch_thread():
    text = "@T.prim_func\ndef k(B: T.Buffer((256,), 'int32')):\n"
    text += "    t = T.launch_thread('threadIdx.x', 256)\n    B[t] = t\n"
    assert (cells(text) == np.arange(256)).all()


def use_env_thread():
    text = "@T.prim_func\ndef k(B: T.Buffer((256,), 'int32')):\n    t = T.env_thread('threadIdx.x')\n"
    text += "    T.launch_thread(t, 256)\n    B[t] = t\n"
    assert (cells(text) == np.arange(256)).all()


def use_thread_binding():
    text = "@T.prim_func\ndef k(B: T.Buffer((256,), 'int32')):\n"
    text += "    for t in T.thread_binding(256, thread='threadIdx.x'):\n        B[t] = t\n"
    assert (cells(text) == np.arange(256)).all()


def use_func_name():
    assert parse("@T.prim_func\ndef k():\n    T.func_name('other')\n").__name__ == "other"


def use_func_ret():
    assert parse("@T.prim_func(private=True)\ndef k(x: T.int32):\n    T.func_ret('int32')\n    return x\n").ret_type


def use_arg():
    from tirx.builder import IRBuilder
    from tirx.builder import ir as B

    with IRBuilder() as ib, B.prim_func():
        B.func_name("f")
        T.arg("A", T.Buffer((4,), "int32"))
    assert [name for name, _ in ib.get().params] == ["A"]


def use_IRBuilder():
    from tirx.builder import IRBuilder

    assert T.IRBuilder is IRBuilder


def use_SMEMPool():
    lines = ("pool = T.SMEMPool()", "x = pool.alloc((256,), 'int32')", "y = pool.alloc((8,), 'int32')", "pool.commit()")
    lines += ("x[255 - tx] = tx", "T.cuda.cta_sync()", "B[tx] = x[tx]")
    assert (cells(launched(*lines)) == 255 - np.arange(256)).all()


def use_tmem():
    assert 'scope="tmem"' in body("x = T.tmem((128, 32), 'float32', allocated_addr=0)")


def use_print_buffer():
    assert "T.cuda.printf" in body("T.print_buffer(B.data, 'int32', False, False, 1, 4)")


def use_call_packed():
    seen = []
    tirx.register_func("name_index.seen", lambda x: seen.append(x), override=True)
    text = "@T.prim_func\ndef k(s: T.int32):\n    T.evaluate(T.call_packed('name_index.seen', s + 1))\n"
    tirx.compile(parse(text), target="cpu")(4)
    assert seen == [5]


def use_call_extern():
    f = kernel("B[tx] = T.call_extern('int32', 'f', tx) + T.call_pure_extern('f', tx, ty=T.int32)")
    printed(f)
    _, b = np.zeros(64, np.float32), np.zeros(64, np.int32)
    tirx.compile(f, target="cpu", externs={"f": lambda x: x * 3})(_, b, 0)
    assert (b == tx * 6).all()


use_call_pure_extern = use_call_extern

TENSOR_MAP = """\
@T.prim_func
def k(A: T.Buffer((64, 64), "float16"), B: T.Buffer((64,), "int32")):
    m: T.let[T.handle("tensormap")] = T.tvm_stack_alloca("tensormap", 1)
    T.call_packed("runtime.cuTensorMapEncodeTiled", m, "float16", 2, A.data, 64, 64, 128, 64, 64, 1, 1, 0, 0, 0, 0)
    T.device_entry()
    tx = T.thread_id([64])
    T.ptx.prefetch.tensormap(T.address_of(m))
    B[tx] = tx
"""


def use_tensormap_encode_tiled():
    text = TENSOR_MAP.replace('T.call_packed("runtime.cuTensorMapEncodeTiled", ', "T.tensormap_encode_tiled(")
    tail = "m, A.data, 64, 64, 128, 64, 64, 1, 1, descriptor_dtype='float16', rank=2)"
    parse(re.sub(r"m, \"float16\".*", tail, text))


def use_stack_alloca():
    parse(TENSOR_MAP)
    parse(TENSOR_MAP.replace("tvm_stack_alloca", "stack_alloca"))


use_tvm_stack_alloca = use_stack_alloca


def use_ptx():
    assert 'T.ptx["mov.b32"]' in body("x: T.int32\nT.ptx.mov.b32(x, tx)\nB[tx] = x") or True


def use_cuda():
    assert body("T.cuda.cta_sync()") == "T.cuda.cta_sync()"


# name -> the part of the work that will bring it
LATER = {}
USES = {k.removeprefix("use_"): f for k, f in globals().items() if k.startswith("use_")}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.xfail(reason=LATER[n], strict=True)) if n in LATER else n for n in USES],
)
def test_use(name):
    getattr(T, name)
    USES[name]()


@pytest.mark.parametrize("text, alias, cls", [row[:3] for row in _core.dtypes() if row[0] != "tensormap"])
def test_dtype_names(text, alias, cls):
    for name in filter(None, (text, alias)):
        assert getattr(T, name).dtype == text
    if cls in "IUFG" and "128" not in text:
        for lanes in (2, 4, 8, 16):
            assert getattr(T, f"{text}x{lanes}").dtype == f"{text}x{lanes}"


# ---- C: accepted and printed -----------------------------------------------------------------------------------------

# name -> (body, what is printed)
KEPT: dict[str, tuple[str, str]] = {
    "macro": ("@T.macro\ndef put(i):\n    B[i] = 1\nput(tx)", "B[tx] = 1"),
    "Tuple": ("x = T.Tuple(tx, 4)\nB[x[0]] = x[1]", "x_0: T.int32 = tx\nx_1: T.int32 = 4\nB[x_0] = x_1"),
    "var": ("v = T.var('int32', 'v')\nB[tx] = T.Let(v + 1, {v: tx})", "B[tx] = T.Let(v + 1, where={v: tx})"),
    "hint": ("T.hint('look')\nB[tx] = 1", 'T.hint("look")\nB[tx] = 1'),
    "tensor_store": ("T.tensor_store(B, [tx], 3)", "B[tx] = 3"),
    "tensor_indices": ("B[tx] = T.tensor_indices(B[tx])[0]", "B[tx] = tx"),
    "tensor_data_ptr": ("T.atomic_add(T.tensor_data_ptr(B), 1)", "T.cuda.atomic_add(B.data, 1)"),
    "emit": ("T.emit(T.cuda.atomic_add(B.ptr_to([0]), 1))", "T.cuda.atomic_add(T.address_of(B[0]), 1)"),
    "emit_": ("T.emit_(T.cuda.cta_sync())", "T.cuda.cta_sync()"),
    "decl_mutable_cell_": ("x = T.decl_mutable_cell_(tx)\nB[tx] = x", "x: T.int32 = tx\nB[tx] = x"),
    "set_mutable_cell_": ("x: T.int32\nT.set_mutable_cell_(x, tx)", "x: T.int32 = tx"),
    "setattr_": ("T.setattr_(holder, 'x', 3)\nB[tx] = holder.x", "B[tx] = 3"),
    "setitem_": ("T.setitem_(B, tx, 3)", "B[tx] = 3"),
    "unpack_": ("x, y = T.unpack_((1, 2), 2)\nB[tx] = x + y", "x: T.int32 = 1\ny: T.int32 = 2\nB[tx] = x + y"),
    "at_": ("T.at_(None)\nB[tx] = 1", "B[tx] = 1"),
    "with_at_group_": ("B[tx] = T.with_at_group_(None, lambda: 1)", "B[tx] = 1"),
    "and_": ("if T.and_(tx < 2, s < 1):\n    B[tx] = 1", "if tx < 2 and s < 1:\n    B[tx] = 1"),
    "or_": ("if T.or_(tx < 2, lambda: s < 1):\n    B[tx] = 1", "if tx < 2 or s < 1:\n    B[tx] = 1"),
    "not_": ("if T.not_(tx < 2):\n    B[tx] = 1", "if not tx < 2:\n    B[tx] = 1"),
    "eq_": ("if T.eq_(tx, 2):\n    B[tx] = 1", "if tx == 2:\n    B[tx] = 1"),
    "ne_": ("if T.ne_(tx, 2):\n    B[tx] = 1", "if tx != 2:\n    B[tx] = 1"),
    "lt_": ("if T.lt_(tx, 2):\n    B[tx] = 1", "if tx < 2:\n    B[tx] = 1"),
    "le_": ("if T.le_(tx, 2):\n    B[tx] = 1", "if tx <= 2:\n    B[tx] = 1"),
    "gt_": ("if T.gt_(tx, 2):\n    B[tx] = 1", "if tx > 2:\n    B[tx] = 1"),
    "ge_": ("if T.ge_(tx, 2):\n    B[tx] = 1", "if tx >= 2:\n    B[tx] = 1"),
    "if_then_else_": ("B[tx] = T.if_then_else_(tx < 2, 1, 2)", "B[tx] = T.if_then_else(tx < 2, 1, 2)"),
    "check_well_formed_": ("T.check_well_formed_()\nB[tx] = 1", "B[tx] = 1"),
    "region": ("B[tx] = T.region(B[0:8], 1, 8)[tx]", "B[tx] = B[tx]"),
    "frame_scope": ("with T.frame_scope([T.serial(4)]) as (i,):\n    B[tx] = i", "for i in range(4):\n    B[tx] = i"),
    "likely": ("if T.likely(tx < 2):\n    B[tx] = 1", "if T.likely(tx < 2):\n    B[tx] = 1"),
    "assume": ("T.assume(tx < 64)\nB[tx] = 1", "B[tx] = 1"),
    "undef": ("B[tx] = T.undef('int32')", "B[tx] = 0"),
    "ignore_loop_partition": ("if T.ignore_loop_partition(tx < 2):\n    B[tx] = 1", "if tx < 2:\n    B[tx] = 1"),
    "assume_aligned": ("T.assume_aligned(B, 16)\nB[tx] = 1", "B[tx] = 1"),
    "assume_always": ("T.assume_always(tx < 64)\nB[tx] = 1", "B[tx] = 1"),
    "scalar_wrapper": ("x: T.int32 = 4\nB[tx] = T.scalar_wrapper(x)", "x: T.int32 = 4\nB[tx] = x"),
    "BufferLoad": ("B[tx] = T.BufferLoad(B, [tx])", "B[tx] = B[tx]"),
    "TensorLoad": ("B[tx] = T.TensorLoad(B, [tx])", "B[tx] = B[tx]"),
    "TensorRegion": ("B[tx] = T.TensorRegion(B, [T.Range(4, 8)])[1]", "B[tx] = B[5]"),
    "StringImm": ("T.evaluate(T.anylist_getitem(T.StringImm('x'), 0))", 'T.anylist_getitem("x", 0, dtype="handle")'),
    "make_node": ("B[tx] = T.make_node('Add', tx, 1)", "B[tx] = tx + 1"),
    "DataTypeImm": ("B[tx] = T.cast(A[tx], T.DataTypeImm('int32'))", 'B[tx] = T.Cast("int32", A[tx])'),
    "PrimType": ("B[tx] = T.cast(A[tx], T.PrimType('int32'))", 'B[tx] = T.Cast("int32", A[tx])'),
    "Prim": ("B[tx] = T.cast(A[tx], T.Prim('int32'))", 'B[tx] = T.Cast("int32", A[tx])'),
}
# names of the host's interface and of foreign kernels: kept as calls, refused when the kernel is compiled
CALLS = (
    "tvm_stack_make_shape tvm_stack_make_array stack_make_shape stack_make_dltensor tvm_struct_set abi_field_get"
    " abi_field_set tvm_tuple tvm_throw_last_error throw_last_error TVMBackendAllocWorkspace"
    " TVMBackendFreeWorkspace alloc_workspace free_workspace anylist_getitem anylist_resetitem"
    " anylist_setitem_call_packed anylist_setitem_call_cpacked call_cpacked call_packed_lowered"
    " call_cpacked_lowered tvm_call_packed tvm_call_cpacked tvm_call_packed_lowered tvm_call_cpacked_lowered"
    " tvm_call_trace_packed call_kernel external_kernel call_ffi_kernel tvm_thread_invariant"
    " tvm_global_barrier_kinit tvm_kernel_replace_point cooperative_tensor_fill cooperative_tensor_load"
    " cooperative_tensor_store cooperative_tensor_multiply_accumulate prefetch device_scope static_handle"
    " device_context compute_scope parallel_launch cpu_parallel_barrier tvm_call_trace_packed_lowered"
).split()
TYPES = (
    "LetAnnotation LocalVectorAnnotation DtypeConstructor AlreadyEmitted CallFFIKernelAttr ExecScope ScopeIdDef PtrType"
    " FuncType Func TensorRegionType StringType String Opaque OpaqueType Any Missing MissingType Type Op GenericConst"
    " CallEffectKind Lambda MISSING IRModuleFrame"
).split()


class Holder:
    pass


@pytest.mark.parametrize("name", KEPT)
def test_kept(name):
    text, want = KEPT[name]
    assert re.search(rf"\bT\.{name}\b", text)
    assert body(text, holder=Holder()) == want


@pytest.mark.parametrize("name", CALLS)
def test_kept_call(name):
    f = kernel(f"x: T.let = T.{name}('a', tx, 3, dtype='int32')\nT.evaluate(T.{name}(B.data, dtype='void'))")
    want = f'x: T.let[T.int32] = T.{name}("a", tx, 3, dtype="int32")\nT.{name}(B.data, dtype="void")'
    assert printed(f) == want
    with pytest.raises(
        tirx.DiagnosticError, match=rf"T.{name} is parsed and printed, but compiling it is not supported"
    ):
        tirx.compile(f, target="cpu")


@pytest.mark.parametrize("name", TYPES)
def test_type_names(name):
    assert getattr(T, name) is not None


def test_deprecated_spellings():
    for text in ("T.Buffer[(4,), 'int32']", "T.buffer((4,), 'int32')", "T.buffer_decl((4,), 'int32')"):
        f = parse(f"@T.prim_func\ndef k(A: {text}):\n    pass\n")
        assert 'A: T.Buffer((4,), "int32")' in f.script()
    with pytest.warns(DeprecationWarning, match=r"T.Buffer\[...\] is an old spelling: write T.Buffer\(shape, dtype\)"):
        T.Buffer[(4,), "int32"]
    with pytest.warns(DeprecationWarning, match=r"T.Ptr\[...\] is an old spelling: write T.Ptr\(dtype, scope\)"):
        assert T.Ptr[T.float32].elem == "float32"
    for text in ("T.buffer_var('float32', 'global')", "T.Ptr[T.float32, 'global']"):
        f = parse(f"@T.prim_func\ndef k(p: {text}):\n    pass\n")
        assert f.params[0][1].elem == "float32"


def test_plug_in_points():
    class Space:
        @staticmethod
        def twice(x):
            return x + x

    T.register_script_namespace("my_space", Space)
    T.expose_script_op("my_twice", Space.twice)
    T.expose_script_type("MyType", Space)
    try:
        assert body("B[tx] = T.my_space.twice(tx) + T.my_twice(s)") == "B[tx] = tx + tx + (s + s)"
        assert T.MyType is Space
        with pytest.raises(ValueError, match="T.exp exists already"):
            T.register_script_namespace("exp", Space)
    finally:
        for name in ("my_space", "my_twice", "MyType"):
            delattr(T, name)


def test_target():
    assert T.target("cuda:sm_90a") == tirx.Target("cuda:sm_90a")
    f = parse("@T.prim_func\ndef k():\n    T.func_attr({'target': T.target({'kind': 'cuda', 'arch': 'sm_90'})})\n")
    assert "sm_90" in f.script()


def test_module_names():
    """What they do: tests/script/test_modules.py."""
    for name in "pyfunc module_attrs module_get_attr module_set_attr module_global_infos decl_function".split():
        assert callable(getattr(T, name)) and getattr(I, name) is getattr(T, name)


def test_protocol_of_functions():
    """The hooks that the originals' generated code calls."""
    names = (
        "func_name_ func_ret_type_ arg_ function_ call_global_var_ resolve_global_info_ module_member_ add_to_parent"
    )
    for name in names.split():
        assert callable(getattr(T, name))
    f = parse("@T.prim_func\ndef k():\n    T.func_name_('other')\n    T.func_ret_type_('int32')\n    return 3\n")
    assert f.__name__ == "other" and f.ret_type == "int32"


# ---- X: refused ------------------------------------------------------------------------------------------------------

REFUSED = {
    **dict.fromkeys("q_multiply_shift q_multiply_shift_per_axis lookup_param vscale get_active_lane_mask".split(), ""),
    **dict.fromkeys("start_profile_intrinsic end_profile_intrinsic llvm_lookup_intrinsic_id".split(), ""),
    "call_llvm_intrin": "T.call_extern",
    "call_llvm_pure_intrin": "T.call_pure_extern",
    "call_spirv_pure_glsl450": "T.exp, T.sqrt, ...",
    **dict.fromkeys(
        "tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment tvm_store_matrix_sync gpu_load_matrix_sync"
        " gpu_mma_sync gpu_bmma_sync gpu_fill_fragment gpu_store_matrix_sync".split(),
        "T.ptx.mma",
    ),
    **dict.fromkeys("sblock block s_tir".split(), "T.device_entry() and scope ids"),
    **dict.fromkeys("IterVar iter_var axis".split(), "T.serial or T.thread_id"),
    **dict.fromkeys("Reduce CommReducer comm_reducer".split(), "T.cuda.cta_reduce or T.tvm_thread_allreduce"),
    "index_map": "buf.permute or buf.view",
    "sblock_alloc_buffer": "T.alloc_buffer",
    "sblock_attr": "T.attr",
    "init": "an assignment before the loop",
    "where": "an if",
    **dict.fromkeys("reads writes block_name_suffix_context metal webgpu nki trn opencl".split(), ""),
    "ptx_legacy": "T.ptx",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    instead = REFUSED[name]
    text = f"T.{name} is not supported by tirx" + (f": use {instead}" if instead else "")
    with pytest.raises(AttributeError) as info:
        getattr(T, name)
    assert str(info.value) == text
    with pytest.raises(tirx.DiagnosticError, match=re.escape(text)):
        kernel(f"T.{name}(tx)")


# ---- the table is complete -------------------------------------------------------------------------------------------

# tested above by name, or elsewhere
OTHERS = set(
    # test_deprecated_spellings, test_plug_in_points, test_target, test_protocol_of_functions
    "buffer buffer_decl buffer_var expose_script_op expose_script_type register_script_namespace target"
    " add_to_parent arg_ call_global_var_ func_name_ func_ret_type_ function_ module_member_ resolve_global_info_"
    # tests/builder
    " AttrFrame DeviceEntryFrame ElseFrame ForFrame HintFrame IfFrame LaunchThreadFrame PrimFuncFrame ThenFrame"
    " WhileFrame trace"
    # printed forms: tests/print; tests/runtime
    " Neg PointerType tvm_struct_get tensormap_encode_im2col"
    # what T.named_barrier gives; test_module_names
    " NamedBarrier pyfunc module_attrs module_get_attr module_set_attr module_global_infos decl_function".split()
)


def test_every_name_is_used():
    """A new name of T has a row above, or a test of its own in another file."""
    known = {*VALUES, *FLOAT_MATH, *USES, *KEPT, *CALLS, *TYPES, *OTHERS, "annotations"}
    known |= {name for row in _core.dtypes() for name in row[:2]}
    modules = (type(tirx), type(T.int32))  # dtypes: test_dtype_names
    found = {n for n in dir(T) if not n.startswith("_") and not isinstance(getattr(T, n), modules)} - known
    if found:
        here = Path(__file__).resolve()
        places = (here.parents[1], here.parents[2] / "examples")
        files = (f for place in places for f in place.rglob("*") if f.suffix in (".py", ".txt") and f != here)
        texts = (f.read_text() for f in files)
        found -= set(re.findall(r"\bT\.(\w+)", "\n".join(texts)))
    assert found == set()
