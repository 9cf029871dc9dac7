# SPDX-License-Identifier: Apache-2.0
"""The namespace T: everything that a kernel may name.

    from tirx.script import tirx as T      # or: from tirx import T

Dtypes and mathematics come from the core's tables, the rest from the modules beside this one. A name that is not here
says what to use instead.
"""

from __future__ import annotations

from typing import Any

from tirx.script import annotations as _annotations
from tirx.script import cuda
from tirx.script import derived as _derived
from tirx.script import dtypes as _dtypes
from tirx.script import forms as _forms
from tirx.script import kept as _kept
from tirx.script import later as _later
from tirx.script import nodes as _nodes
from tirx.script import ops as _ops
from tirx.script.annotations import (
    Buffer,
    MemoryScope,
    NoneType,
    Optional,
    Ptr,
    Tensor,
    TensorMap,
    buffer,
    buffer_decl,
    buffer_var,
    constexpr,
    let,
)
from tirx.script.buffers import (
    Bind,
    alloc_buffer,
    alloc_local,
    alloc_scalar,
    alloc_shared,
    alloc_tensor,
    assign,
    bind_,
    buffer_store,
    decl_buffer,
    decl_scalar,
    decl_tensor,
    local_scalar,
    match_buffer,
    shared_scalar,
    tensor_store,
    tmem,
)
from tirx.script.control import (
    Assert,
    Break,
    Continue,
    Else,
    If,
    Return,
    Then,
    While,
    attr,
    cluster_id,
    cta_id,
    cta_id_in_cluster,
    cta_id_in_pair,
    device_entry,
    emit,
    env_thread,
    evaluate,
    func_attr,
    func_name,
    func_ret,
    grid,
    hint,
    lane_id,
    launch_thread,
    meta_var,
    parallel,
    scope_id,
    serial,
    static_assert,
    thread_binding,
    thread_id,
    thread_id_in_wg,
    thread_return,
    unroll,
    vectorized,
    warp_id,
    warp_id_in_wg,
    warpgroup_id,
)
from tirx.script.decorators import function, inline, jit, macro, prim_func, trace
from tirx.script.derived import (
    assume_aligned,
    dp4a,
    filter,
    ignore_loop_partition,
    masked_load,
    masked_store,
    print_buffer,
    selector,
    tvm_access_ptr,
    tvm_thread_allreduce,
    undef,
    vectorcombine,
    vectorhigh,
    vectorlow,
)
from tirx.script.forms import (
    For,
    add_to_parent,
    and_,
    arg_,
    at_,
    call_global_var_,
    check_well_formed_,
    decl_mutable_cell_,
    emit_,
    eq_,
    for_,
    frame_scope,
    function_,
    ge_,
    gt_,
    if_then_else_,
    le_,
    lt_,
    module_member_,
    ne_,
    not_,
    or_,
    range_,
    region,
    resolve_global_info_,
    scalar_wrapper,
    set_mutable_cell_,
    setattr_,
    setitem_,
    tensor_data_ptr,
    tensor_indices,
    unpack_,
    with_at_group_,
)
from tirx.script.frames import Attr as AttrFrame
from tirx.script.frames import DeviceEntry as DeviceEntryFrame
from tirx.script.frames import Else as ElseFrame
from tirx.script.frames import ForFrame
from tirx.script.frames import Hint as HintFrame
from tirx.script.frames import If as IfFrame
from tirx.script.frames import LaunchThread as LaunchThreadFrame
from tirx.script.frames import Then as ThenFrame
from tirx.script.frames import While as WhileFrame
from tirx.script.host import device, fastdiv, workspace
from tirx.script.meta import meta_class
from tirx.script.module import (
    decl_function,
    ir_module,
    module_attrs,
    module_get_attr,
    module_global_infos,
    module_set_attr,
    pyfunc,
)
from tirx.script.named_barriers import NamedBarrier, named_barrier
from tirx.script.nodes import (
    MISSING,
    BufferLoad,
    Call,
    CallEffectKind,
    DataTypeImm,
    GenericConst,
    Missing,
    MissingType,
    Op,
    PointerType,
    Prim,
    PrimType,
    PtrType,
    Range,
    TensorLoad,
    TensorRegion,
    Tuple,
    Var,
    make_node,
    type_annotation,
    var,
)
from tirx.script.ops import (
    Broadcast,
    Cast,
    FloatImm,
    IntImm,
    Let,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    address_of,
    assume,
    call_extern,
    call_intrin,
    call_packed,
    call_pure_extern,
    cast,
    fabs,
    handle_add_byte_offset,
    if_then_else,
    infinity,
    logical_and,
    logical_or,
    make_vector,
    max_value,
    min_value,
    nearbyint,
    ptr_byte_offset,
    reinterpret,
    tvm_struct_get,
)
from tirx.script.pools import SMEMPool
from tirx.script.ptx import ptx
from tirx.script.symbols import dynamic
from tirx.script.tensormaps import stack_alloca, tensormap_encode_im2col, tensormap_encode_tiled, tvm_stack_alloca
from tirx.script.trace import IRBuilder, PrimFuncFrame, arg


def tvm_warp_shuffle(mask: Any, value: Any, lane: Any, width: Any, warp_size: Any = 32) -> Any:
    """The value of another lane."""
    return cuda.shuffle("SHFL", "T.tvm_warp_shuffle", mask, value, lane, width, warp_size)


def tvm_warp_shuffle_up(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = 32) -> Any:
    """The value of the lane `delta` below."""
    return cuda.shuffle("SHFL_UP", "T.tvm_warp_shuffle_up", mask, value, delta, width, warp_size)


def tvm_warp_shuffle_down(mask: Any, value: Any, delta: Any, width: Any, warp_size: Any = 32) -> Any:
    """The value of the lane `delta` above."""
    return cuda.shuffle("SHFL_DOWN", "T.tvm_warp_shuffle_down", mask, value, delta, width, warp_size)


def tvm_warp_shuffle_xor(mask: Any, value: Any, lane_mask: Any, width: Any, warp_size: Any = 32) -> Any:
    """The value of the lane whose index differs by `lane_mask`."""
    return cuda.shuffle("SHFL_XOR", "T.tvm_warp_shuffle_xor", mask, value, lane_mask, width, warp_size)


def tvm_storage_sync(scope: str, is_load: bool = False, num_blocks: int = -1) -> Any:
    """A barrier over the threads that share `scope`: "warp", "shared" or "shared.dyn"."""
    if scope in ("shared", "shared.dyn"):
        return cuda.cta_sync()
    if scope == "warp":
        return cuda.warp_sync()
    raise ValueError(f"tvm_storage_sync: scope must be 'warp', 'shared' or 'shared.dyn', got {scope!r}")


tvm_warp_activemask = cuda.activemask
gpu_warp_shuffle = tvm_warp_shuffle
gpu_warp_shuffle_up = tvm_warp_shuffle_up
gpu_warp_shuffle_down = tvm_warp_shuffle_down
gpu_warp_shuffle_xor = tvm_warp_shuffle_xor
gpu_warp_activemask = tvm_warp_activemask
gpu_storage_sync = tvm_storage_sync
gpu_thread_return = thread_return
timer_init_cuda = cuda.timer_init
timer_start_cuda = cuda.timer_start
timer_end_cuda = cuda.timer_end
timer_finalize_cuda = cuda.timer_finalize
atomic_add = cuda.atomic_add
smem = alloc_shared
select = if_then_else
bind = Bind
break_loop = Break
continue_loop = Continue
if_, then_, else_, while_ = If, Then, Else, While
assert_, return_, break_, continue_ = Assert, Return, Break, Continue
func_name_, func_ret_type_ = func_name, func_ret
vector_low, vector_high, vector_combine = vectorlow, vectorhigh, vectorcombine
gpu_dp4a = dp4a
gpu_thread_allreduce = tvm_thread_allreduce
gpu_active_thread_selector, gpu_thread_filter = selector, filter
assume_always = assume
broadcast = Broadcast
ramp = Ramp
likely: Any
ptr = Ptr


def target(config: Any, host: Any = None) -> Any:
    """A target, for the attribute of that name; `host` is always this machine."""
    from tirx.target import Target

    return config if isinstance(config, Target) else Target(config)


def register_script_namespace(name: str, obj: Any) -> Any:
    """Makes `obj` known as T.<name>."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"T.register_script_namespace needs a name that is an identifier, got {name!r}")
    if name in globals():
        raise ValueError(f"T.{name} exists already")
    globals()[name] = obj
    return obj


expose_script_op = expose_script_type = register_script_namespace
globals().update(_kept.functions())
globals().update(_nodes.TYPES)
globals().update(_ops.from_table())
globals().update(_ops.functions_of_two())
globals().update(_dtypes.names())
handle = _annotations.handle  # the dtype's name, but also an annotation with a pointee
globals().pop("tensormap", None)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = _dtypes.of_name(name)
    if found is not None:
        globals()[name] = found
        return found
    raise AttributeError(_later.text("T", name, globals()))
