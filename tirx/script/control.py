# SPDX-License-Identifier: Apache-2.0
"""Functions of T that are statements or open blocks: loops, branches, attributes, the device entry, scope ids."""

from __future__ import annotations

import builtins
from typing import Any

from tirx import _core
from tirx.script import frames, state
from tirx.script import launch as launches
from tirx.script.expressions import MetaVar
from tirx.script.ops import RECEIPT, Receipt

Expr, Buffer = _core.Expr, _core.Buffer


# ---- loops -----------------------------------------------------------------------------------------------------------


def serial(
    start: Any, stop: Any = None, *, annotations: Any = None, step: Any = None, unroll: Any = None, dtype: Any = None
) -> Any:
    """A loop; unroll=True or a count adds `#pragma unroll`."""
    return frames.loop("serial", start, stop, step, unroll, annotations, dtype)


def unroll(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """A loop that becomes straight-line code; its bounds must be constant."""
    return frames.loop("unroll", start, stop, step, None, annotations, dtype)


def vectorized(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """A loop whose turns become lanes."""
    return frames.loop("vectorized", start, stop, step, None, annotations, dtype)


def parallel(start: Any, stop: Any = None, *, annotations: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """A loop whose turns are independent; serial on a GPU."""
    return frames.loop("parallel", start, stop, step, None, annotations, dtype)


def grid(*extents: Any, dtype: Any = None) -> Any:
    """Loops in each other: `for i, j in T.grid(8, 16)`. An extent may be (start, extent)."""
    loops = []
    for e in extents:
        if isinstance(e, tuple) and len(e) != 2:
            raise TypeError(f"an extent of T.grid is a number or (start, extent), got {len(e)} values in a tuple")
        start, extent = e if isinstance(e, tuple) else (0, e)
        stop = extent if isinstance(start, int) and start == 0 else start + extent
        loops.append(frames.loop("serial", start, stop, None, None, None, dtype))
    if not loops:
        raise TypeError("T.grid takes at least one extent")
    return frames.Grid(loops)


def thread_binding(start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None) -> Any:
    """A loop whose turns are threads."""
    if thread is None:
        raise ValueError("Thread cannot be None for thread_binding")
    return frames.ThreadLoop(start, stop, thread, annotations)


def If(condition: Any) -> Any:
    """with T.If(c): with T.Then(): ... with T.Else(): ..."""
    return frames.If(condition)


def Then() -> Any:
    """The branch of a T.If that runs where its condition holds."""
    return frames.Then()


def Else() -> Any:
    """The branch of a T.If that runs where its condition does not hold."""
    return frames.Else()


def While(condition: Any) -> Any:
    """A loop that goes on while the condition holds: with T.While(i < n): ..."""
    return frames.While(condition)


def Break() -> Receipt:
    """Leave the innermost loop."""
    state.builder("T.Break").break_()
    return RECEIPT


def Continue() -> Receipt:
    """Go on with the next turn of the innermost loop."""
    state.builder("T.Continue").continue_()
    return RECEIPT


def Return(value: Any = None) -> Receipt:
    """Leave the function; a kernel returns nothing."""
    state.builder("T.Return").return_(value)
    return RECEIPT


def check_kind(kind: str) -> None:
    """The kind of an assertion is the name of an exception of Python's own: host code raises it."""
    found = getattr(builtins, kind, None) if isinstance(kind, str) else None
    if isinstance(found, type) and issubclass(found, BaseException):
        return
    import difflib

    known = [n for n, x in vars(builtins).items() if isinstance(x, type) and issubclass(x, Exception)]
    close = difflib.get_close_matches(kind, known, 1, 0.7)
    help = f"did you mean '{close[0]}'?" if close else 'such as "ValueError"'
    state.fail("ASSERT_KIND_UNKNOWN", kind, help=help)


def Assert(condition: Any, message: Any = "") -> Receipt:
    """A check at run time."""
    kind, parts = message if isinstance(message, tuple) else ("AssertionError", [message] if message else [])
    check_kind(kind)
    if state.is_ir(condition):
        state.builder("T.Assert").assert_(condition, kind, list(parts))
    elif not condition:
        state.fail("STATIC_ASSERT", ": " + "".join(parts) if parts else "")
    return RECEIPT


# ---- attributes ----------------------------------------------------------------------------------------------------


def attr(*args: Any) -> Any:
    """T.attr({"key": value, ...}) or T.attr(node, "key", value)."""
    if len(args) == 1 and isinstance(args[0], dict):
        items = list(args[0].items())
    elif len(args) == 3:
        items = [(args[1], args[2])]
    else:
        raise ValueError("T.attr(node, attr_key, value) requires all three arguments")
    for key, _ in items:
        if not isinstance(key, str):
            raise TypeError(f"the key of an attribute must be a str, got {type(key).__name__}")
    entry = [k for k, _ in items if k == "tirx.device_entry"]
    if entry:
        if len(items) > 1:
            raise ValueError("tirx.device_entry stands alone in T.attr")
        return device_entry()
    return frames.Attr(items)


def func_attr(attrs: dict[str, Any]) -> Receipt:
    """Attributes of the function; first in its body."""
    p = state.need("T.func_attr")
    if p.builder.depth > 1:
        state.fail("FUNC_ATTR_PLACE")
    for key, value in attrs.items():
        if key == "global_symbol":
            p.set_symbol(value)
        else:
            p.builder.set_attr(key, str(value) if key == "target" else value)
    return RECEIPT


def func_name(name: str) -> Receipt:
    """The function's name, while it is built by calls."""
    state.need("T.func_name").set_name(name)
    return RECEIPT


def func_ret(dtype: Any) -> Receipt:
    """The dtype of what the function returns."""
    state.need("T.func_ret").return_once(dtype)
    return RECEIPT


def hint(message: str = "", **attrs: Any) -> Any:
    """A hint that is kept and printed."""
    return frames.Hint(message, attrs)


# ---- the device zone -----------------------------------------------------------------------------------------------


def device_entry(
    *operands: Any, launch: Any = None, kernel_attrs: Any = None, backend_config: Any = None, attrs: Any = None
) -> Any:
    """From here on the code runs on the GPU. With `launch=` the g2 form; as a statement or in `with`."""
    p = state.need("T.device_entry")
    if operands:
        # the g2 print form: three of the grid, three of the block
        if len(operands) != 6 or launch is not None:
            raise TypeError("T.device_entry takes keyword arguments")
        launch = launches.LaunchConfig(grid=list(operands[:3]), block=list(operands[3:]))
    p.launch = launch
    return frames.DeviceEntry(launches.to_launch(launch, kernel_attrs))


def env_thread(tag: str) -> Any:
    """The index of a thread axis by its tag; T.launch_thread(it, n) gives its extent."""
    p = state.need("T.env_thread")
    index = frames.thread_index(p, frames.thread_tag(p, tag))
    p.env_threads.append((index, tag))
    return meta_var(index)


def launch_thread(tag: Any, extent: Any) -> Any:
    """T.launch_thread("threadIdx.x", 128): an older form of scope ids."""
    return frames.LaunchThread(tag, extent)


def _scope_id(call: str, extents: Any, preferred: Any, dtype: Any) -> Any:
    p = state.need(f"T.{call}")
    b = state.builder(f"T.{call}")
    if b.zone != "device":
        state.fail("SCOPE_ID_EARLY", call)
    if p.is_device_function:
        state.fail("MEMBER_SCOPE_ID", call, p.function_name)
    if extents is not None:
        extents = list(extents) if isinstance(extents, (list, tuple)) else [extents]
    if preferred is not None:
        preferred = list(preferred) if isinstance(preferred, (list, tuple)) else [preferred]
    if call == "thread_id" and extents is not None:
        p.thread_extents = extents
    count = 1 if extents is None else len(extents)
    found = b.scope_id(call, ["v"] * count, extents, preferred, dtype)
    p.add_results(*found)
    return found[0] if count == 1 else found


def cta_id(extents: Any = None, dtype: Any = "int32", *, preferred: Any = None) -> Any:
    """Index of the CTA in the grid: bx, by = T.cta_id([gx, gy])."""
    return _scope_id("cta_id", extents, preferred, dtype)


def thread_id(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the thread in its CTA."""
    return _scope_id("thread_id", extents, None, dtype)


def lane_id(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the thread in its warp."""
    return _scope_id("lane_id", extents, None, dtype)


def warp_id(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the warp in its CTA."""
    return _scope_id("warp_id", extents, None, dtype)


def warpgroup_id(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the warpgroup in its CTA."""
    return _scope_id("warpgroup_id", extents, None, dtype)


def warp_id_in_wg(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the warp in its warpgroup."""
    return _scope_id("warp_id_in_wg", extents, None, dtype)


def thread_id_in_wg(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the thread in its warpgroup."""
    return _scope_id("thread_id_in_wg", extents, None, dtype)


def cluster_id(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the cluster in the grid."""
    return _scope_id("cluster_id", extents, None, dtype)


def cta_id_in_cluster(extents: Any = None, dtype: Any = "int32", *, preferred: Any = None) -> Any:
    """Index of the CTA in its cluster."""
    return _scope_id("cta_id_in_cluster", extents, preferred, dtype)


def cta_id_in_pair(extents: Any = None, dtype: Any = "int32") -> Any:
    """Index of the CTA in its pair, 0 or 1."""
    if extents not in (None, 2, [2], (2,)):
        raise ValueError(f"a CTA pair has 2 CTAs, got {extents!r}")
    return _scope_id("cta_id_in_pair", [2], None, dtype)


_LEVELS = {
    ("kernel", "cluster"): cluster_id,
    ("kernel", "cta"): cta_id,
    ("cluster", "cta"): cta_id_in_cluster,
    ("cluster", "cta_pair"): cta_id_in_pair,
    ("cta", "warpgroup"): warpgroup_id,
    ("cta", "warp"): warp_id,
    ("cta", "thread"): thread_id,
    ("warpgroup", "warp"): warp_id_in_wg,
    ("warpgroup", "thread"): thread_id_in_wg,
    ("warp", "thread"): lane_id,
}


def scope_id(extents: Any, parent: str, cur: str, dtype: Any = "int32") -> Any:
    """The index of a `cur` in its `parent`, by their names: T.scope_id([32], "warp", "thread") is T.lane_id([32])."""
    made = _LEVELS.get((parent, cur))
    if made is None:
        known = "kernel > cluster > cta > warpgroup > warp > thread, and cta_pair in cluster"
        raise ValueError(f"T.scope_id: no index of {cur!r} in {parent!r}; known are {known}")
    return made(extents, dtype)


# ---- statements ----------------------------------------------------------------------------------------------------


def evaluate(value: Any) -> Receipt:
    """The value for its effect."""
    b = state.builder("T.evaluate")
    if id(value) in state.need("T.evaluate").effects:
        return RECEIPT  # it was emitted when it was made
    if isinstance(value, (Expr, Buffer, int, float)):
        b.evaluate(value)
    elif not isinstance(value, (Receipt, type(None))):
        raise TypeError(f"T.evaluate needs a call or an expression, got {type(value).__name__}")
    return RECEIPT


emit = evaluate


def thread_return() -> Receipt:
    """This thread ends here."""
    state.builder("T.thread_return").return_(None)
    return RECEIPT


def static_assert(condition: Any, message: str = "") -> None:
    """A check while the kernel is built."""
    if state.is_ir(condition):
        state.fail("CONSTEXPR_AT_RUN_TIME", condition.dtype, outside=TypeError)
    if not condition:
        state.fail("STATIC_ASSERT", f": {message}" if message else "")


def meta_var(value: Any) -> MetaVar | Any:
    """Binds the Python value itself: `shapes = T.meta_var([(64, 32), (32, 16)])`."""
    p = state.parser()
    return value if p is None or p.helper_depth else MetaVar(value)
