# SPDX-License-Identifier: Apache-2.0
"""Names of the language that tirx does not have, with what to write instead; and suggestions for mistyped ones."""

from __future__ import annotations

from types import ModuleType
from typing import Any

# name -> what to write instead ("" when there is nothing)
_REFUSED: dict[str, str] = {
    "ptx_legacy": "T.ptx",
    "s_tir": "T.device_entry() and scope ids",
    "metal": "",
    "webgpu": "",
    "nki": "",
    "trn": "",
    "opencl": "",
    "nvshmem": "",
    "elected": "if T.cuda.elect_sync(): ...",
    "sblock": "T.device_entry() and scope ids",
    "sblock_alloc_buffer": "T.alloc_buffer",
    "sblock_attr": "T.attr",
    "block": "T.device_entry() and scope ids",
    "init": "an assignment before the loop",
    "where": "an if",
    "reads": "",
    "writes": "",
    "block_name_suffix_context": "",
    "axis": "T.serial or T.thread_id",
    "iter_var": "T.serial or T.thread_id",
    "IterVar": "T.serial or T.thread_id",
    "Reduce": "T.cuda.cta_reduce or T.tvm_thread_allreduce",
    "CommReducer": "T.cuda.cta_reduce or T.tvm_thread_allreduce",
    "comm_reducer": "T.cuda.cta_reduce or T.tvm_thread_allreduce",
    "index_map": "buf.permute or buf.view",
    "tvm_load_matrix_sync": "T.ptx.mma",
    "tvm_mma_sync": "T.ptx.mma",
    "tvm_bmma_sync": "T.ptx.mma",
    "tvm_fill_fragment": "T.ptx.mma",
    "tvm_store_matrix_sync": "T.ptx.mma",
    "gpu_load_matrix_sync": "T.ptx.mma",
    "gpu_mma_sync": "T.ptx.mma",
    "gpu_bmma_sync": "T.ptx.mma",
    "gpu_fill_fragment": "T.ptx.mma",
    "gpu_store_matrix_sync": "T.ptx.mma",
    "q_multiply_shift": "",
    "q_multiply_shift_per_axis": "",
    "lookup_param": "",
    "vscale": "",
    "get_active_lane_mask": "",
    "call_llvm_intrin": "T.call_extern",
    "call_llvm_pure_intrin": "T.call_pure_extern",
    "llvm_lookup_intrinsic_id": "",
    "call_spirv_pure_glsl450": "T.exp, T.sqrt, ...",
    "start_profile_intrinsic": "",
    "end_profile_intrinsic": "",
}

# names that later versions will have
_LATER = frozenset(
    """tile warp wg cta cluster thread TMEMPool wg_reg_tile alloc_tcgen05_ldst_frag alloc_cast_frag S R
    TileLayout ComposeLayout Iter Layout Axis decl_tmem
    """.split()
)


def text(space: str, name: str, members: dict[str, Any]) -> str:
    """The text of the AttributeError for `space.name`."""
    if name == "elected":
        return "T.elected() is no longer available. Write explicitly: `if T.cuda.elect_sync(): ...`"
    if name in _REFUSED:
        instead = _REFUSED[name]
        return f"{space}.{name} is not supported by tirx" + (f": use {instead}" if instead else "")
    if name in _LATER:
        return f"{space}.{name} is not supported by tirx yet"
    return f"{space} has no attribute '{name}'"


def suggestion(owner: Any, name: str) -> str | None:
    """A help line for an attribute that is not there."""
    if name in _REFUSED or name in _LATER:
        return None
    import difflib

    names = vars(owner) if isinstance(owner, ModuleType) else dir(owner)
    close = difflib.get_close_matches(name, [n for n in names if not n.startswith("_")], 1, 0.75)
    return f"did you mean '{close[0]}'?" if close else None
