# SPDX-License-Identifier: Apache-2.0
# Written by tools/stubs.py from T itself. Do not edit.
"""The namespace T, for type checkers."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from tirx._core import Function as _Function
from tirx.script import cuda as cuda
from tirx.script.decorators import JitFunction as _JitFunction
from tirx.script.dtypes import DType as _DType

from tirx.script.ops import Receipt as AlreadyEmitted
from tirx.script.frames import Attr as AttrFrame
from tirx.script.nodes import CallEffectKind as CallEffectKind
from tirx.script.nodes import CallFFIKernelAttr as CallFFIKernelAttr
from tirx.script.frames import DeviceEntry as DeviceEntryFrame
from tirx.script.dtypes import DType as DtypeConstructor
from tirx.script.frames import Else as ElseFrame
from tirx.script.nodes import ExecScope as ExecScope
from tirx.script.frames import ForFrame as ForFrame
from tirx.script.nodes import Func as Func
from tirx.script.nodes import FuncType as FuncType
from tirx.script.frames import Hint as HintFrame
from tirx.script.trace import IRBuilder as IRBuilder
from tirx.script.nodes import IRModuleFrame as IRModuleFrame
from tirx.script.frames import If as IfFrame
from tirx.script.nodes import Lambda as Lambda
from tirx.script.frames import LaunchThread as LaunchThreadFrame
from tirx.script.annotations import LetType as LetAnnotation
from tirx.script.dtypes import ArrayAnnotation as LocalVectorAnnotation
from tirx.script.annotations import MemoryScope as MemoryScope
from tirx.script.nodes import MissingType as MissingType
from tirx.script.named_barriers import NamedBarrier as NamedBarrier
from tirx.script.annotations import NoneType as NoneType
from tirx.script.nodes import Op as Op
from tirx.script.nodes import Opaque as Opaque
from tirx.script.nodes import OpaqueType as OpaqueType
from tirx.script.trace import PrimFuncFrame as PrimFuncFrame
from tirx.script.nodes import Range as Range
from tirx.script.pools import SMEMPool as SMEMPool
from tirx.script.nodes import ScopeIdDef as ScopeIdDef
from tirx.script.nodes import String as String
from tirx.script.nodes import StringType as StringType
from tirx.script.nodes import TensorRegionType as TensorRegionType
from tirx.script.frames import Then as ThenFrame
from tirx.script.nodes import Type as Type
from tirx.script.frames import While as WhileFrame

__all__ = [
    "Add",
    "AlreadyEmitted",
    "And",
    "Assert",
    "AttrFrame",
    "Bind",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Break",
    "Broadcast",
    "Buffer",
    "BufferLoad",
    "Call",
    "CallEffectKind",
    "CallFFIKernelAttr",
    "Cast",
    "Continue",
    "DataTypeImm",
    "DeviceEntryFrame",
    "Div",
    "DtypeConstructor",
    "EQ",
    "Else",
    "ElseFrame",
    "ExecScope",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "For",
    "ForFrame",
    "Func",
    "FuncType",
    "GE",
    "GT",
    "GenericConst",
    "HintFrame",
    "IRBuilder",
    "IRModuleFrame",
    "If",
    "IfFrame",
    "IntImm",
    "LE",
    "LShift",
    "LT",
    "Lambda",
    "LaunchThreadFrame",
    "Let",
    "LetAnnotation",
    "LocalVectorAnnotation",
    "MISSING",
    "Max",
    "MemoryScope",
    "Min",
    "Missing",
    "MissingType",
    "Mod",
    "Mul",
    "NE",
    "NamedBarrier",
    "Neg",
    "NoneType",
    "Not",
    "Op",
    "Opaque",
    "OpaqueType",
    "Optional",
    "Or",
    "PointerType",
    "Prim",
    "PrimFuncFrame",
    "PrimType",
    "Ptr",
    "PtrType",
    "RShift",
    "Ramp",
    "Range",
    "Return",
    "SMEMPool",
    "ScopeIdDef",
    "Select",
    "Shuffle",
    "String",
    "StringImm",
    "StringType",
    "Sub",
    "TVMBackendAllocWorkspace",
    "TVMBackendFreeWorkspace",
    "Tensor",
    "TensorLoad",
    "TensorMap",
    "TensorRegion",
    "TensorRegionType",
    "Then",
    "ThenFrame",
    "Tuple",
    "Type",
    "Var",
    "While",
    "WhileFrame",
    "abi_field_get",
    "abi_field_set",
    "abs",
    "acos",
    "acosh",
    "add_to_parent",
    "address_of",
    "alloc_buffer",
    "alloc_local",
    "alloc_scalar",
    "alloc_shared",
    "alloc_tensor",
    "alloc_workspace",
    "and_",
    "anylist_getitem",
    "anylist_resetitem",
    "anylist_setitem_call_cpacked",
    "anylist_setitem_call_packed",
    "arg",
    "arg_",
    "asin",
    "asinh",
    "assert_",
    "assign",
    "assume",
    "assume_aligned",
    "assume_always",
    "at_",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "attr",
    "bf16",
    "bfloat16",
    "bind",
    "bind_",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "boolean",
    "break_",
    "break_loop",
    "broadcast",
    "buffer",
    "buffer_decl",
    "buffer_store",
    "buffer_var",
    "call_cpacked",
    "call_cpacked_lowered",
    "call_extern",
    "call_ffi_kernel",
    "call_global_var_",
    "call_intrin",
    "call_kernel",
    "call_packed",
    "call_packed_lowered",
    "call_pure_extern",
    "cast",
    "ceil",
    "ceildiv",
    "check_well_formed_",
    "cluster_id",
    "clz",
    "compute_scope",
    "constexpr",
    "continue_",
    "continue_loop",
    "cooperative_tensor_fill",
    "cooperative_tensor_load",
    "cooperative_tensor_multiply_accumulate",
    "cooperative_tensor_store",
    "copysign",
    "cos",
    "cosh",
    "cpu_parallel_barrier",
    "cta_id",
    "cta_id_in_cluster",
    "cta_id_in_pair",
    "cuda",
    "decl_buffer",
    "decl_function",
    "decl_mutable_cell_",
    "decl_scalar",
    "decl_tensor",
    "device",
    "device_context",
    "device_entry",
    "device_scope",
    "dp4a",
    "dynamic",
    "else_",
    "emit",
    "emit_",
    "env_thread",
    "eq_",
    "erf",
    "evaluate",
    "exp",
    "exp10",
    "exp2",
    "expose_script_op",
    "expose_script_type",
    "external_kernel",
    "f16",
    "f32",
    "f64",
    "fabs",
    "fastdiv",
    "filter",
    "float16",
    "float32",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "for_",
    "frame_scope",
    "free_workspace",
    "func_attr",
    "func_name",
    "func_name_",
    "func_ret",
    "func_ret_type_",
    "function",
    "function_",
    "ge_",
    "gpu_active_thread_selector",
    "gpu_dp4a",
    "gpu_storage_sync",
    "gpu_thread_allreduce",
    "gpu_thread_filter",
    "gpu_thread_return",
    "gpu_warp_activemask",
    "gpu_warp_shuffle",
    "gpu_warp_shuffle_down",
    "gpu_warp_shuffle_up",
    "gpu_warp_shuffle_xor",
    "grid",
    "gt_",
    "handle",
    "handle_add_byte_offset",
    "hint",
    "hypot",
    "i16",
    "i32",
    "i64",
    "i8",
    "if_",
    "if_then_else",
    "if_then_else_",
    "ignore_loop_partition",
    "infinity",
    "inline",
    "int128",
    "int16",
    "int32",
    "int64",
    "int8",
    "ir_module",
    "isfinite",
    "isinf",
    "isnan",
    "isnullptr",
    "jit",
    "lane_id",
    "launch_thread",
    "ldexp",
    "le_",
    "let",
    "likely",
    "local_scalar",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt_",
    "macro",
    "make_node",
    "make_vector",
    "masked_load",
    "masked_store",
    "match_buffer",
    "max",
    "max_value",
    "meta_class",
    "meta_var",
    "min",
    "min_value",
    "module_attrs",
    "module_get_attr",
    "module_global_infos",
    "module_member_",
    "module_set_attr",
    "named_barrier",
    "ne_",
    "nearbyint",
    "nextafter",
    "not_",
    "or_",
    "parallel",
    "parallel_launch",
    "popcount",
    "pow",
    "prefetch",
    "prim_func",
    "print_buffer",
    "ptr",
    "ptr_byte_offset",
    "ptx",
    "pyfunc",
    "ramp",
    "range_",
    "region",
    "register_script_namespace",
    "reinterpret",
    "resolve_global_info_",
    "return_",
    "round",
    "rsqrt",
    "scalar_wrapper",
    "scope_id",
    "select",
    "selector",
    "serial",
    "set_mutable_cell_",
    "setattr_",
    "setitem_",
    "shared_scalar",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "smem",
    "sqrt",
    "stack_alloca",
    "stack_make_dltensor",
    "stack_make_shape",
    "static_assert",
    "static_handle",
    "tan",
    "tanh",
    "target",
    "tensor_data_ptr",
    "tensor_indices",
    "tensor_store",
    "tensormap_encode_im2col",
    "tensormap_encode_tiled",
    "then_",
    "thread_binding",
    "thread_id",
    "thread_id_in_wg",
    "thread_return",
    "throw_last_error",
    "tmem",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
    "tvm_access_ptr",
    "tvm_call_cpacked",
    "tvm_call_cpacked_lowered",
    "tvm_call_packed",
    "tvm_call_packed_lowered",
    "tvm_call_trace_packed",
    "tvm_call_trace_packed_lowered",
    "tvm_global_barrier_kinit",
    "tvm_kernel_replace_point",
    "tvm_stack_alloca",
    "tvm_stack_make_array",
    "tvm_stack_make_shape",
    "tvm_storage_sync",
    "tvm_struct_get",
    "tvm_struct_set",
    "tvm_thread_allreduce",
    "tvm_thread_invariant",
    "tvm_throw_last_error",
    "tvm_tuple",
    "tvm_warp_activemask",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "tvm_warp_shuffle_xor",
    "type_annotation",
    "u16",
    "u32",
    "u64",
    "u8",
    "uint128",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "undef",
    "unpack_",
    "unroll",
    "var",
    "vector_combine",
    "vector_high",
    "vector_low",
    "vectorcombine",
    "vectorhigh",
    "vectorized",
    "vectorlow",
    "void",
    "warp_id",
    "warp_id_in_wg",
    "warpgroup_id",
    "while_",
    "with_at_group_",
]

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

def Add(*args: Any) -> Any: ...
def And(*args: Any) -> Any: ...
def Assert(condition: Any, message: Any = ...) -> Any: ...
def Bind(value: Any, type: Any = ..., *, var: Any = ...) -> Any: ...
def BitwiseAnd(*args: Any) -> Any: ...
def BitwiseNot(*args: Any) -> Any: ...
def BitwiseOr(*args: Any) -> Any: ...
def BitwiseXor(*args: Any) -> Any: ...
def Break() -> Any: ...
def Broadcast(value: Any, lanes: int) -> Any: ...
Buffer: Any
def BufferLoad(buffer: Any, indices: Any) -> Any: ...
def Call(callee: Any, args: Any = ..., attrs: Any = ..., *, ty: Any = ..., ret_ty: Any = ..., dtype: Any = ...) -> Any: ...
def Cast(dtype: Any, value: Any) -> Any: ...
def Continue() -> Any: ...
def DataTypeImm(dtype: Any) -> Any: ...
def Div(*args: Any) -> Any: ...
def EQ(*args: Any) -> Any: ...
def Else() -> Any: ...
def FloatImm(dtype: Any, value: float) -> Any: ...
def FloorDiv(*args: Any) -> Any: ...
def FloorMod(*args: Any) -> Any: ...
def For(start: Any, stop: Any = ..., *, step: Any = ..., kind: str = ..., annotations: Any = ..., dtype: Any = ...) -> Any: ...
def GE(*args: Any) -> Any: ...
def GT(*args: Any) -> Any: ...
def GenericConst(value: Any, ty: Any = ...) -> Any: ...
def If(condition: Any) -> Any: ...
def IntImm(dtype: Any, value: int) -> Any: ...
def LE(*args: Any) -> Any: ...
def LShift(*args: Any) -> Any: ...
def LT(*args: Any) -> Any: ...
def Let(expr: Any, where: Any) -> Any: ...
MISSING: Any
def Max(*args: Any) -> Any: ...
def Min(*args: Any) -> Any: ...
Missing: Any
def Mod(*args: Any) -> Any: ...
def Mul(*args: Any) -> Any: ...
def NE(*args: Any) -> Any: ...
def Neg(*args: Any) -> Any: ...
def Not(*args: Any) -> Any: ...
def Optional(inner: Any) -> Any: ...
def Or(*args: Any) -> Any: ...
PointerType: Any
def Prim(dtype: Any) -> Any: ...
def PrimType(dtype: Any) -> Any: ...
Ptr: Any
PtrType: Any
def RShift(*args: Any) -> Any: ...
def Ramp(base: Any, stride: Any, lanes: int) -> Any: ...
def Return(value: Any = ...) -> Any: ...
def Select(condition: Any, true_value: Any, false_value: Any) -> Any: ...
def Shuffle(vectors: Any, indices: Any) -> Any: ...
def StringImm(value: str) -> Any: ...
def Sub(*args: Any) -> Any: ...
def TVMBackendAllocWorkspace(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def TVMBackendFreeWorkspace(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
Tensor: Any
def TensorLoad(buffer: Any, indices: Any) -> Any: ...
def TensorMap() -> Any: ...
def TensorRegion(buffer: Any, ranges: Any) -> Any: ...
def Then() -> Any: ...
def Tuple(*values: Any) -> Any: ...
def Var(name: str, ty: Any = ..., *, dtype: Any = ...) -> Any: ...
def While(condition: Any) -> Any: ...
def abi_field_get(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def abi_field_set(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def abs(a: Any, /) -> Any: ...
def acos(a: Any, /) -> Any: ...
def acosh(a: Any, /) -> Any: ...
def add_to_parent(statement: Any) -> Any: ...
def address_of(x: Any) -> Any: ...
def alloc_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., byte_offset: Any = ..., scope: str = ..., align: int = ..., offset_factor: int = ..., layout: Any = ..., allocated_addr: Any = ..., annotations: dict[str, Any] | None = ...) -> Any: ...
def alloc_local(shape: Any, dtype: Any = ..., **fields: Any) -> Any: ...
def alloc_scalar(dtype: Any = ..., scope: str = ...) -> Any: ...
def alloc_shared(shape: Any, dtype: Any = ..., **fields: Any) -> Any: ...
def alloc_tensor(placement: Any = ..., *, ty_args: Any = ..., annotations: dict[str, Any] | None = ...) -> Any: ...
def alloc_workspace(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def and_(*values: Any) -> Any: ...
def anylist_getitem(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def anylist_resetitem(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def anylist_setitem_call_cpacked(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def anylist_setitem_call_packed(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def arg(name: str, annotation: Any) -> Any: ...
def arg_(name: str, annotation: Any) -> Any: ...
def asin(a: Any, /) -> Any: ...
def asinh(a: Any, /) -> Any: ...
def assert_(condition: Any, message: Any = ...) -> Any: ...
def assign(cell: Any, value: Any) -> Any: ...
def assume(condition: Any) -> Any: ...
def assume_aligned(tensor: Any, nbytes: Any = ...) -> Any: ...
def assume_always(condition: Any) -> Any: ...
def at_(span: Any = ..., value: Any = ...) -> Any: ...
def atan(a: Any, /) -> Any: ...
def atan2(a: Any, b: Any, /) -> Any: ...
def atanh(a: Any, /) -> Any: ...
def atomic_add(ptr: Any, value: Any) -> Any: ...
def attr(*args: Any) -> Any: ...
bf16: _DType
bfloat16: _DType
def bind(value: Any, type: Any = ..., *, var: Any = ...) -> Any: ...
def bind_(value: Any, name: str | None = ...) -> Any: ...
def bitwise_and(a: Any, b: Any) -> Any: ...
def bitwise_not(*args: Any) -> Any: ...
def bitwise_or(a: Any, b: Any) -> Any: ...
def bitwise_xor(a: Any, b: Any) -> Any: ...
bool: _DType
boolean: _DType
def break_() -> Any: ...
def break_loop() -> Any: ...
def broadcast(value: Any, lanes: int) -> Any: ...
buffer: Any
buffer_decl: Any
def buffer_store(buffer: Any, value: Any, indices: Any, predicate: Any = ...) -> Any: ...
buffer_var: Any
def call_cpacked(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def call_cpacked_lowered(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def call_extern(*args: Any, ty: Any = ..., dtype: Any = ...) -> Any: ...
def call_ffi_kernel(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def call_global_var_(function: Any, *args: Any) -> Any: ...
def call_intrin(*args: Any, ty: Any = ..., dtype: Any = ...) -> Any: ...
def call_kernel(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def call_packed(name: str, *args: Any) -> Any: ...
def call_packed_lowered(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def call_pure_extern(*args: Any, ty: Any = ..., dtype: Any = ...) -> Any: ...
def cast(value: Any, dtype: Any = ..., ty: Any = ...) -> Any: ...
def ceil(a: Any, /) -> Any: ...
def ceildiv(a: Any, b: Any, /) -> Any: ...
def check_well_formed_(function: Any = ...) -> Any: ...
def cluster_id(extents: Any = ..., dtype: Any = ...) -> Any: ...
def clz(a: Any, /) -> Any: ...
def compute_scope(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
constexpr: Any
def continue_() -> Any: ...
def continue_loop() -> Any: ...
def cooperative_tensor_fill(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def cooperative_tensor_load(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def cooperative_tensor_multiply_accumulate(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def cooperative_tensor_store(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def copysign(a: Any, b: Any, /) -> Any: ...
def cos(a: Any, /) -> Any: ...
def cosh(a: Any, /) -> Any: ...
def cpu_parallel_barrier(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def cta_id(extents: Any = ..., dtype: Any = ..., *, preferred: Any = ...) -> Any: ...
def cta_id_in_cluster(extents: Any = ..., dtype: Any = ..., *, preferred: Any = ...) -> Any: ...
def cta_id_in_pair(extents: Any = ..., dtype: Any = ...) -> Any: ...
def decl_buffer(shape: Any, dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., byte_offset: Any = ..., scope: str = ..., align: int = ..., offset_factor: int = ..., layout: Any = ..., allocated_addr: Any = ...) -> Any: ...
def decl_function(name: str, function: Any) -> Any: ...
def decl_mutable_cell_(value: Any, name: str | None = ...) -> Any: ...
def decl_scalar(dtype: Any, data: Any, scope: str = ..., elem_offset: Any = ..., byte_offset: Any = ..., layout: Any = ...) -> Any: ...
def decl_tensor(ptr: Any, *, ty_args: Any = ...) -> Any: ...
device: Any
def device_context(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def device_entry(*operands: Any, launch: Any = ..., kernel_attrs: Any = ..., backend_config: Any = ..., attrs: Any = ...) -> Any: ...
def device_scope(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def dp4a(a: Any, b: Any, c: Any = ...) -> Any: ...
def dynamic(name: str, dtype: Any = ...) -> Any: ...
def else_() -> Any: ...
def emit(value: Any) -> Any: ...
def emit_(value: Any) -> Any: ...
def env_thread(tag: str) -> Any: ...
def eq_(a: Any, b: Any) -> Any: ...
def erf(a: Any, /) -> Any: ...
def evaluate(value: Any) -> Any: ...
def exp(a: Any, /) -> Any: ...
def exp10(a: Any, /) -> Any: ...
def exp2(a: Any, /) -> Any: ...
def expose_script_op(name: str, obj: Any) -> Any: ...
def expose_script_type(name: str, obj: Any) -> Any: ...
def external_kernel(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
f16: _DType
f32: _DType
f64: _DType
def fabs(x: Any) -> Any: ...
def fastdiv(divisor: Any) -> Any: ...
def filter(var: Any, *predicate: Any) -> Any: ...
float16: _DType
float32: _DType
float4_e2m1fn: _DType
float64: _DType
float6_e2m3fn: _DType
float6_e3m2fn: _DType
float8_e3m4: _DType
float8_e4m3: _DType
float8_e4m3b11fnuz: _DType
float8_e4m3fn: _DType
float8_e4m3fnuz: _DType
float8_e5m2: _DType
float8_e5m2fnuz: _DType
float8_e8m0fnu: _DType
def floor(a: Any, /) -> Any: ...
def floordiv(a: Any, b: Any) -> Any: ...
def floormod(a: Any, b: Any) -> Any: ...
def fma(a: Any, b: Any, c: Any, /) -> Any: ...
def fmod(a: Any, b: Any, /) -> Any: ...
def for_(iterable: Any) -> Any: ...
def frame_scope(opened: Any) -> Any: ...
def free_workspace(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def func_attr(attrs: Any) -> Any: ...
def func_name(name: str) -> Any: ...
def func_name_(name: str) -> Any: ...
def func_ret(dtype: Any) -> Any: ...
def func_ret_type_(dtype: Any) -> Any: ...
@overload
def function(func: Callable[..., Any]) -> _Function: ...
@overload
def function(func: None = None, *, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., kernel: bool = ...) -> PrimFuncFrame: ...
def function_(*args: Any, **options: Any) -> Any: ...
def ge_(a: Any, b: Any) -> Any: ...
def gpu_active_thread_selector(var: Any, *predicate: Any) -> Any: ...
def gpu_dp4a(a: Any, b: Any, c: Any = ...) -> Any: ...
def gpu_storage_sync(scope: str, is_load: bool = ..., num_blocks: int = ...) -> Any: ...
def gpu_thread_allreduce(size: Any, *operands: Any, op: str = ...) -> Any: ...
def gpu_thread_filter(var: Any, *predicate: Any) -> Any: ...
def gpu_thread_return() -> Any: ...
def gpu_warp_activemask() -> Any: ...
def gpu_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any, warp_size: Any = ...) -> Any: ...
def gpu_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = ...) -> Any: ...
def gpu_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = ...) -> Any: ...
def gpu_warp_shuffle_xor(mask: Any, value: Any, lane_mask: Any, width: Any, warp_size: Any = ...) -> Any: ...
def grid(*extents: Any, dtype: Any = ...) -> Any: ...
def gt_(a: Any, b: Any) -> Any: ...
handle: Any
def handle_add_byte_offset(ptr: Any, nbytes: Any) -> Any: ...
def hint(message: str = ..., **attrs: Any) -> Any: ...
def hypot(a: Any, b: Any, /) -> Any: ...
i16: _DType
i32: _DType
i64: _DType
i8: _DType
def if_(condition: Any) -> Any: ...
def if_then_else(cond: Any, t: Any, f: Any) -> Any: ...
def if_then_else_(condition: Any, yes: Any, no: Any) -> Any: ...
def ignore_loop_partition(condition: Any) -> Any: ...
def infinity(dtype: Any = ..., *, ty: Any = ...) -> Any: ...
@overload
def inline(func: _F) -> _F: ...
@overload
def inline(func: None = None) -> Callable[[_F], _F]: ...
int128: _DType
int16: _DType
int32: _DType
int64: _DType
int8: _DType
def ir_module(cls: Any = ..., **_: Any) -> Any: ...
def isfinite(a: Any, /) -> Any: ...
def isinf(a: Any, /) -> Any: ...
def isnan(a: Any, /) -> Any: ...
def isnullptr(a: Any, /) -> Any: ...
@overload
def jit(func: Callable[..., Any]) -> _JitFunction: ...
@overload
def jit(func: None = None, *, private: bool = ..., check_well_formed: bool = ..., is_stir: bool = ..., persistent: bool = ...) -> Callable[[Callable[..., Any]], _JitFunction]: ...
def lane_id(extents: Any = ..., dtype: Any = ...) -> Any: ...
def launch_thread(tag: Any, extent: Any) -> Any: ...
def ldexp(a: Any, b: Any, /) -> Any: ...
def le_(a: Any, b: Any) -> Any: ...
let: Any
def likely(a: Any, /) -> Any: ...
def local_scalar(dtype: Any = ..., init: Any = ..., *, name: str | None = ...) -> Any: ...
def log(a: Any, /) -> Any: ...
def log10(a: Any, /) -> Any: ...
def log1p(a: Any, /) -> Any: ...
def log2(a: Any, /) -> Any: ...
def logical_and(*values: Any) -> Any: ...
def logical_not(*args: Any) -> Any: ...
def logical_or(*values: Any) -> Any: ...
def lt_(a: Any, b: Any) -> Any: ...
@overload
def macro(func: _F, *, hygienic: bool = ...) -> _F: ...
@overload
def macro(func: None = None, *, hygienic: bool = ...) -> Callable[[_F], _F]: ...
def make_node(name: str, *args: Any, **fields: Any) -> Any: ...
def make_vector(*values: Any) -> Any: ...
def masked_load(*args: Any, what: str = ...) -> Any: ...
def masked_store(buffer: Any, indices: Any, value: Any, mask: Any, *, what: str = ...) -> Any: ...
def match_buffer(param: Any, shape: Any = ..., dtype: Any = ..., data: Any = ..., strides: Any = ..., elem_offset: Any = ..., scope: str = ..., align: int = ..., offset_factor: int = ..., layout: Any = ...) -> Any: ...
def max(a: Any, b: Any, /) -> Any: ...
def max_value(dtype: Any = ..., *, ty: Any = ...) -> Any: ...
def meta_class(cls: _C) -> _C: ...
def meta_var(value: Any) -> Any: ...
def min(a: Any, b: Any, /) -> Any: ...
def min_value(dtype: Any = ..., *, ty: Any = ...) -> Any: ...
def module_attrs(attrs: Any, allow_overwrite: bool = ...) -> Any: ...
def module_get_attr(key: str) -> Any: ...
def module_global_infos(infos: Any) -> Any: ...
def module_member_(module: Any, name: str) -> Any: ...
def module_set_attr(key: str, value: Any, allow_overwrite: bool = ...) -> Any: ...
def named_barrier(threads: int) -> Any: ...
def ne_(a: Any, b: Any) -> Any: ...
def nearbyint(x: Any) -> Any: ...
def nextafter(a: Any, b: Any, /) -> Any: ...
def not_(value: Any) -> Any: ...
def or_(*values: Any) -> Any: ...
def parallel(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., dtype: Any = ...) -> Any: ...
def parallel_launch(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def popcount(a: Any, /) -> Any: ...
def pow(a: Any, b: Any, /) -> Any: ...
def prefetch(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
@overload
def prim_func(func: Callable[..., Any]) -> _Function: ...
@overload
def prim_func(func: None = None, private: bool = ..., check_well_formed: bool = ..., s_tir: bool = ..., persistent: bool = ..., kernel: bool = ...) -> PrimFuncFrame: ...
def print_buffer(ptr: Any, dtype: Any, is_string: Any, is_scalar: Any, ndim: int, *shape: Any) -> Any: ...
ptr: Any
def ptr_byte_offset(ptr: Any, nbytes: Any, dtype: Any = ..., *, ty: Any = ...) -> Any: ...
ptx: Any
def pyfunc(function: Any = ...) -> Any: ...
def ramp(base: Any, stride: Any, lanes: int) -> Any: ...
def range_(*args: Any) -> Any: ...
def region(value: Any, *mask_and_extents: Any) -> Any: ...
def register_script_namespace(name: str, obj: Any) -> Any: ...
def reinterpret(*args: Any, ty: Any = ..., dtype: Any = ...) -> Any: ...
def resolve_global_info_(infos: Any, name: str) -> Any: ...
def return_(value: Any = ...) -> Any: ...
def round(a: Any, /) -> Any: ...
def rsqrt(a: Any, /) -> Any: ...
def scalar_wrapper(value: Any) -> Any: ...
def scope_id(extents: Any, parent: str, cur: str, dtype: Any = ...) -> Any: ...
def select(cond: Any, t: Any, f: Any) -> Any: ...
def selector(var: Any, *predicate: Any) -> Any: ...
def serial(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., unroll: Any = ..., dtype: Any = ...) -> Any: ...
def set_mutable_cell_(cell: Any, value: Any) -> Any: ...
def setattr_(owner: Any, name: str, value: Any) -> Any: ...
def setitem_(owner: Any, index: Any, value: Any) -> Any: ...
def shared_scalar(dtype: Any = ...) -> Any: ...
def shift_left(a: Any, b: Any) -> Any: ...
def shift_right(a: Any, b: Any) -> Any: ...
def sigmoid(a: Any, /) -> Any: ...
def sin(a: Any, /) -> Any: ...
def sinh(a: Any, /) -> Any: ...
def smem(shape: Any, dtype: Any = ..., **fields: Any) -> Any: ...
def sqrt(a: Any, /) -> Any: ...
def stack_alloca(dtype: str, n: int = ...) -> Any: ...
def stack_make_dltensor(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def stack_make_shape(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def static_assert(condition: Any, message: str = ...) -> Any: ...
def static_handle(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tan(a: Any, /) -> Any: ...
def tanh(a: Any, /) -> Any: ...
def target(config: Any, host: Any = ...) -> Any: ...
def tensor_data_ptr(tensor: Any) -> Any: ...
def tensor_indices(element: Any) -> Any: ...
def tensor_store(buffer: Any, indices: Any, value: Any, predicate: Any = ...) -> Any: ...
def tensormap_encode_im2col(*args: Any, descriptor_dtype: Any, rank: int, interleave: Any = ..., swizzle: Any = ..., l2_promotion: Any = ..., oob_fill: Any = ..., force_cu_dtype: int = ...) -> Any: ...
def tensormap_encode_tiled(*args: Any, descriptor_dtype: Any, rank: int, interleave: Any = ..., swizzle: Any = ..., l2_promotion: Any = ..., oob_fill: Any = ..., force_cu_dtype: int = ...) -> Any: ...
def then_() -> Any: ...
def thread_binding(start: Any, stop: Any = ..., thread: Any = ..., *, annotations: Any = ...) -> Any: ...
def thread_id(extents: Any = ..., dtype: Any = ...) -> Any: ...
def thread_id_in_wg(extents: Any = ..., dtype: Any = ...) -> Any: ...
def thread_return() -> Any: ...
def throw_last_error(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tmem(shape: Any, dtype: Any = ..., **fields: Any) -> Any: ...
@overload
def trace(func: Callable[..., Any], *, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., dialect: str = ..., name: str | None = ..., annotations: dict[str, Any] | None = ...) -> _Function: ...
@overload
def trace(func: None = None, *, private: bool = ..., check_well_formed: bool = ..., persistent: bool = ..., dialect: str = ..., name: str | None = ..., annotations: dict[str, Any] | None = ...) -> Callable[[Callable[..., Any]], _Function]: ...
def trunc(a: Any, /) -> Any: ...
def truncdiv(a: Any, b: Any, /) -> Any: ...
def truncmod(a: Any, b: Any, /) -> Any: ...
def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> Any: ...
def tvm_call_cpacked(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_call_cpacked_lowered(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_call_packed(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_call_packed_lowered(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_call_trace_packed(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_call_trace_packed_lowered(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_global_barrier_kinit(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_kernel_replace_point(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_stack_alloca(dtype: str, n: int = ...) -> Any: ...
def tvm_stack_make_array(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_stack_make_shape(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_storage_sync(scope: str, is_load: bool = ..., num_blocks: int = ...) -> Any: ...
def tvm_struct_get(argument: Any, index: int, field: int, dtype: Any) -> Any: ...
def tvm_struct_set(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_thread_allreduce(size: Any, *operands: Any, op: str = ...) -> Any: ...
def tvm_thread_invariant(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_throw_last_error(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_tuple(*args: Any, dtype: Any = ..., ty: Any = ..., ret_ty: Any = ..., **more: Any) -> Any: ...
def tvm_warp_activemask() -> Any: ...
def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any, warp_size: Any = ...) -> Any: ...
def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = ...) -> Any: ...
def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = ...) -> Any: ...
def tvm_warp_shuffle_xor(mask: Any, value: Any, lane_mask: Any, width: Any, warp_size: Any = ...) -> Any: ...
def type_annotation(dtype: Any) -> Any: ...
u16: _DType
u32: _DType
u64: _DType
u8: _DType
uint128: _DType
uint16: _DType
uint32: _DType
uint64: _DType
uint8: _DType
def undef(dtype: Any = ...) -> Any: ...
def unpack_(value: Any, count: int) -> Any: ...
def unroll(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., dtype: Any = ...) -> Any: ...
def var(dtype: Any, name: str = ...) -> Any: ...
def vector_combine(*args: Any) -> Any: ...
def vector_high(*args: Any) -> Any: ...
def vector_low(*args: Any) -> Any: ...
def vectorcombine(*args: Any) -> Any: ...
def vectorhigh(*args: Any) -> Any: ...
def vectorized(start: Any, stop: Any = ..., *, annotations: Any = ..., step: Any = ..., dtype: Any = ...) -> Any: ...
def vectorlow(*args: Any) -> Any: ...
void: _DType
def warp_id(extents: Any = ..., dtype: Any = ...) -> Any: ...
def warp_id_in_wg(extents: Any = ..., dtype: Any = ...) -> Any: ...
def warpgroup_id(extents: Any = ..., dtype: Any = ...) -> Any: ...
def while_(condition: Any) -> Any: ...
def with_at_group_(span: Any, body: Any) -> Any: ...
boolx2: _DType
boolx3: _DType
boolx4: _DType
boolx8: _DType
boolx16: _DType
boolx32: _DType
boolx64: _DType
booleanx2: _DType
booleanx3: _DType
booleanx4: _DType
booleanx8: _DType
booleanx16: _DType
booleanx32: _DType
booleanx64: _DType
int8x2: _DType
int8x3: _DType
int8x4: _DType
int8x8: _DType
int8x16: _DType
int8x32: _DType
int8x64: _DType
i8x2: _DType
i8x3: _DType
i8x4: _DType
i8x8: _DType
i8x16: _DType
i8x32: _DType
i8x64: _DType
int16x2: _DType
int16x3: _DType
int16x4: _DType
int16x8: _DType
int16x16: _DType
int16x32: _DType
int16x64: _DType
i16x2: _DType
i16x3: _DType
i16x4: _DType
i16x8: _DType
i16x16: _DType
i16x32: _DType
i16x64: _DType
int32x2: _DType
int32x3: _DType
int32x4: _DType
int32x8: _DType
int32x16: _DType
int32x32: _DType
int32x64: _DType
i32x2: _DType
i32x3: _DType
i32x4: _DType
i32x8: _DType
i32x16: _DType
i32x32: _DType
i32x64: _DType
int64x2: _DType
int64x3: _DType
int64x4: _DType
int64x8: _DType
int64x16: _DType
int64x32: _DType
int64x64: _DType
i64x2: _DType
i64x3: _DType
i64x4: _DType
i64x8: _DType
i64x16: _DType
i64x32: _DType
i64x64: _DType
int128x2: _DType
int128x3: _DType
int128x4: _DType
int128x8: _DType
int128x16: _DType
int128x32: _DType
int128x64: _DType
uint8x2: _DType
uint8x3: _DType
uint8x4: _DType
uint8x8: _DType
uint8x16: _DType
uint8x32: _DType
uint8x64: _DType
u8x2: _DType
u8x3: _DType
u8x4: _DType
u8x8: _DType
u8x16: _DType
u8x32: _DType
u8x64: _DType
uint16x2: _DType
uint16x3: _DType
uint16x4: _DType
uint16x8: _DType
uint16x16: _DType
uint16x32: _DType
uint16x64: _DType
u16x2: _DType
u16x3: _DType
u16x4: _DType
u16x8: _DType
u16x16: _DType
u16x32: _DType
u16x64: _DType
uint32x2: _DType
uint32x3: _DType
uint32x4: _DType
uint32x8: _DType
uint32x16: _DType
uint32x32: _DType
uint32x64: _DType
u32x2: _DType
u32x3: _DType
u32x4: _DType
u32x8: _DType
u32x16: _DType
u32x32: _DType
u32x64: _DType
uint64x2: _DType
uint64x3: _DType
uint64x4: _DType
uint64x8: _DType
uint64x16: _DType
uint64x32: _DType
uint64x64: _DType
u64x2: _DType
u64x3: _DType
u64x4: _DType
u64x8: _DType
u64x16: _DType
u64x32: _DType
u64x64: _DType
uint128x2: _DType
uint128x3: _DType
uint128x4: _DType
uint128x8: _DType
uint128x16: _DType
uint128x32: _DType
uint128x64: _DType
float16x2: _DType
float16x3: _DType
float16x4: _DType
float16x8: _DType
float16x16: _DType
float16x32: _DType
float16x64: _DType
f16x2: _DType
f16x3: _DType
f16x4: _DType
f16x8: _DType
f16x16: _DType
f16x32: _DType
f16x64: _DType
float32x2: _DType
float32x3: _DType
float32x4: _DType
float32x8: _DType
float32x16: _DType
float32x32: _DType
float32x64: _DType
f32x2: _DType
f32x3: _DType
f32x4: _DType
f32x8: _DType
f32x16: _DType
f32x32: _DType
f32x64: _DType
float64x2: _DType
float64x3: _DType
float64x4: _DType
float64x8: _DType
float64x16: _DType
float64x32: _DType
float64x64: _DType
f64x2: _DType
f64x3: _DType
f64x4: _DType
f64x8: _DType
f64x16: _DType
f64x32: _DType
f64x64: _DType
bfloat16x2: _DType
bfloat16x3: _DType
bfloat16x4: _DType
bfloat16x8: _DType
bfloat16x16: _DType
bfloat16x32: _DType
bfloat16x64: _DType
bf16x2: _DType
bf16x3: _DType
bf16x4: _DType
bf16x8: _DType
bf16x16: _DType
bf16x32: _DType
bf16x64: _DType
float8_e3m4x2: _DType
float8_e3m4x3: _DType
float8_e3m4x4: _DType
float8_e3m4x8: _DType
float8_e3m4x16: _DType
float8_e3m4x32: _DType
float8_e3m4x64: _DType
float8_e4m3x2: _DType
float8_e4m3x3: _DType
float8_e4m3x4: _DType
float8_e4m3x8: _DType
float8_e4m3x16: _DType
float8_e4m3x32: _DType
float8_e4m3x64: _DType
float8_e4m3b11fnuzx2: _DType
float8_e4m3b11fnuzx3: _DType
float8_e4m3b11fnuzx4: _DType
float8_e4m3b11fnuzx8: _DType
float8_e4m3b11fnuzx16: _DType
float8_e4m3b11fnuzx32: _DType
float8_e4m3b11fnuzx64: _DType
float8_e4m3fnx2: _DType
float8_e4m3fnx3: _DType
float8_e4m3fnx4: _DType
float8_e4m3fnx8: _DType
float8_e4m3fnx16: _DType
float8_e4m3fnx32: _DType
float8_e4m3fnx64: _DType
float8_e4m3fnuzx2: _DType
float8_e4m3fnuzx3: _DType
float8_e4m3fnuzx4: _DType
float8_e4m3fnuzx8: _DType
float8_e4m3fnuzx16: _DType
float8_e4m3fnuzx32: _DType
float8_e4m3fnuzx64: _DType
float8_e5m2x2: _DType
float8_e5m2x3: _DType
float8_e5m2x4: _DType
float8_e5m2x8: _DType
float8_e5m2x16: _DType
float8_e5m2x32: _DType
float8_e5m2x64: _DType
float8_e5m2fnuzx2: _DType
float8_e5m2fnuzx3: _DType
float8_e5m2fnuzx4: _DType
float8_e5m2fnuzx8: _DType
float8_e5m2fnuzx16: _DType
float8_e5m2fnuzx32: _DType
float8_e5m2fnuzx64: _DType
float8_e8m0fnux2: _DType
float8_e8m0fnux3: _DType
float8_e8m0fnux4: _DType
float8_e8m0fnux8: _DType
float8_e8m0fnux16: _DType
float8_e8m0fnux32: _DType
float8_e8m0fnux64: _DType
float6_e2m3fnx2: _DType
float6_e2m3fnx3: _DType
float6_e2m3fnx4: _DType
float6_e2m3fnx8: _DType
float6_e2m3fnx16: _DType
float6_e2m3fnx32: _DType
float6_e2m3fnx64: _DType
float6_e3m2fnx2: _DType
float6_e3m2fnx3: _DType
float6_e3m2fnx4: _DType
float6_e3m2fnx8: _DType
float6_e3m2fnx16: _DType
float6_e3m2fnx32: _DType
float6_e3m2fnx64: _DType
float4_e2m1fnx2: _DType
float4_e2m1fnx3: _DType
float4_e2m1fnx4: _DType
float4_e2m1fnx8: _DType
float4_e2m1fnx16: _DType
float4_e2m1fnx32: _DType
float4_e2m1fnx64: _DType
