# SPDX-License-Identifier: Apache-2.0
"""Calls that are parsed, printed and never compiled: the host interface of the originals, and foreign kernels.

tirx makes its launch plan itself, so that these names have nothing to do here; texts that contain them can be read,
inspected and printed. Compiling one is an error at its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import dtypes, state
from tirx.script.ops import emit

Expr, Buffer = _core.Expr, _core.Buffer

# name -> the dtype of the call where none is given
NAMES: dict[str, str] = {
    **dict.fromkeys(
        "tvm_stack_make_shape tvm_stack_make_array stack_make_shape stack_make_dltensor tvm_tuple"
        " TVMBackendAllocWorkspace alloc_workspace anylist_getitem device_context static_handle"
        " external_kernel".split(),
        "handle",
    ),
    **dict.fromkeys(
        "tvm_struct_set abi_field_set TVMBackendFreeWorkspace free_workspace anylist_resetitem"
        " anylist_setitem_call_packed anylist_setitem_call_cpacked call_cpacked call_packed_lowered"
        " call_cpacked_lowered tvm_call_packed tvm_call_cpacked tvm_call_packed_lowered tvm_call_cpacked_lowered"
        " tvm_call_trace_packed tvm_call_trace_packed_lowered call_kernel call_ffi_kernel abi_field_get"
        " tvm_throw_last_error throw_last_error tvm_thread_invariant".split(),
        "int32",
    ),
    **dict.fromkeys(
        "tvm_global_barrier_kinit tvm_kernel_replace_point cooperative_tensor_fill cooperative_tensor_load"
        " cooperative_tensor_store cooperative_tensor_multiply_accumulate prefetch device_scope compute_scope"
        " parallel_launch cpu_parallel_barrier".split(),
        "void",
    ),
}


def _operands(what: str, ctx: Any, values: Any) -> list[Any]:
    """The operands in one list: what stands in lists of the call is put in line."""
    found: list[Any] = []
    for x in values:
        if isinstance(x, (list, tuple)):
            found += _operands(what, ctx, x)
        elif isinstance(x, dict):
            found += _operands(what, ctx, x.values())
        elif isinstance(x, str):
            found.append(_core.string(ctx, x))
        elif isinstance(x, Buffer) and not x.is_cell:
            found.append(x.data)
        elif x is None or dtypes.is_dtype(x):
            found.append(_core.string(ctx, str(x)))
        elif isinstance(x, (Expr, Buffer, int, float)):
            found.append(x)
        else:
            raise TypeError(f"{what} takes expressions, strings and lists of them, got {type(x).__name__}")
    return found


def _kept(name: str, dtype_of_call: str) -> Callable[..., Any]:
    what = f"T.{name}"

    def call(*args: Any, dtype: Any = None, ty: Any = None, ret_ty: Any = None, **more: Any) -> Any:
        p = state.need(what)
        given = next((t for t in (dtype, ty, ret_ty) if t is not None), dtype_of_call)
        operands = _operands(what, p.ctx, (*args, *more.values()))
        made = _core.make(p.ctx, "KEPT", given, tuple(operands), call=(name, None))
        return emit(made) if made.dtype == "void" else made

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{what}: kept and printed, not compiled."
    return call


def functions() -> dict[str, Callable[..., Any]]:
    return {name: _kept(name, dtype) for name, dtype in NAMES.items()}
