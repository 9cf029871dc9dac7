# SPDX-License-Identifier: Apache-2.0
"""What may stand in `with` or in the head of a `for`: loops, branches, attributes, the device entry.

A frame does nothing when it is made. As a statement of its own it is flat: the rest of the enclosing block becomes its
body. In `with` its body is the block. Loops are also what `for` iterates over. The Building keeps the frames that are
open; each is entered once and left in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tirx import _core
from tirx.script import state

LOOPS_TEXT = (
    "Expect the for loop to be one of the following: range, T.serial, T.grid, T.parallel, T.vectorized, T.unroll, "
    "T.thread_binding"
)


class BlockFrame:
    """What `with` enters: a block of its own. Subclasses say what opens and what closes it."""

    __slots__ = ("callbacks", "is_flat", "used")
    what = "T.Frame"
    may_be_flat = True

    def __init__(self) -> None:
        self.used = False
        self.is_flat = False
        self.callbacks: list[Callable[[], object]] | None = None

    def add_callback(self, f: Callable[[], object]) -> None:
        """Calls f at the end of the block, while it still takes statements; the last one added comes first."""
        if not callable(f):
            raise TypeError(f"{self.what}: add_callback takes a function, got {type(f).__name__}")
        if self.used and self not in state.need(self.what).frames:
            state.fail("FRAME_NOT_OPEN", self.what, outside=RuntimeError)
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append(f)

    def run_callbacks(self) -> None:
        while self.callbacks:
            self.callbacks.pop()()

    def _begin(self) -> Any:
        if self.used:
            state.fail("FRAME_TWICE", self.what, outside=RuntimeError)
        self.used = True
        return state.builder(self.what)

    def _open(self, b: Any) -> Any:
        raise NotImplementedError

    def _close(self, b: Any) -> None:
        b.close()

    def __enter__(self) -> Any:
        value = self._open(self._begin())
        state.need(self.what).frames.append(self)
        return value

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            state.give_up(self)
            return
        b = state.builder(self.what)
        state.need(self.what).leave_frame(self)
        self._close(b)

    def __repr__(self) -> str:
        return f"<frame {self.what}>"


class Frame(BlockFrame):
    """One that may stand as a statement: `flat` opens it until the end of the enclosing block, if that is allowed."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        state.need(self.what).add_pending(self)

    def _begin(self) -> Any:
        p = state.need(self.what)
        if self in p.pending_frames:
            p.pending_frames.remove(self)
        return super()._begin()

    def _begin_flat(self) -> Any:
        b = self._begin()
        self.is_flat = True
        state.need(self.what).frames.append(self)
        return b

    def flat(self) -> Any:
        state.fail("FRAME_NEEDS_WITH", self.what, outside=TypeError)


class Attr(Frame):
    """T.attr({"key": value}) or T.attr(node, "key", value)."""

    __slots__ = ("items",)
    what = "T.attr"

    def __init__(self, items: list[tuple[str, Any]]):
        super().__init__()
        self.items = items

    def flat(self) -> None:
        b = self._begin_flat()
        for key, value in self.items:
            b.attr(key, value)

    def _open(self, b: Any) -> None:
        for key, value in self.items:
            b.open_attr(key, value)

    def _close(self, b: Any) -> None:
        for _ in self.items:
            b.close()


class DeviceEntry(Frame):
    """T.device_entry(...): from here on the code runs on the GPU."""

    __slots__ = ("launch",)
    what = "T.device_entry"

    def __init__(self, launch: dict[str, Any] | None):
        super().__init__()
        self.launch = launch

    def _enter_zone(self, b: Any, with_form: bool) -> None:
        p = state.need(self.what)
        if p.builder.zone == "device" or (p.entries and not (with_form and p.entries_closed)):
            state.fail("DEVICE_NESTED")
        p.entries += 1
        p.entries_closed = False
        b.device_entry(self.launch, with_form)

    def flat(self) -> None:
        self._enter_zone(self._begin_flat(), False)

    def _open(self, b: Any) -> None:
        self._enter_zone(b, True)

    def _close(self, b: Any) -> None:
        b.close()
        state.need(self.what).entries_closed = True


_AXES = {"blockIdx": "BLOCK_IDX", "threadIdx": "THREAD_IDX", "clusterCtaIdx": "CLUSTER_CTA"}


def thread_tag(p: Any, x: Any) -> str:
    """The tag of an axis: "threadIdx.x", or what T.env_thread gave for it."""
    if not isinstance(x, str):
        x = next((tag for made, tag in p.env_threads if made is x), x)
    kind, _, axis = x.partition(".") if isinstance(x, str) else ("", "", "")
    if kind not in _AXES or axis not in ("x", "y", "z"):
        state.fail("THREAD_TAG", repr(x))
    return x


def thread_index(p: Any, tag: str) -> Any:
    kind, _, axis = tag.partition(".")
    return _core.coord(p.ctx, _AXES[kind], "xyz".index(axis))


def note_threads(p: Any, tag: str, extent: Any) -> None:
    kind, _, axis = tag.partition(".")
    if kind == "threadIdx":
        p.thread_extents = [*((p.thread_extents or []) + [1, 1, 1])[:3]]
        p.thread_extents["xyz".index(axis)] = extent


class LaunchThread(Frame):
    """T.launch_thread("threadIdx.x", 128): an index with its extent."""

    __slots__ = ("extent", "tag")
    what = "T.launch_thread"

    def __init__(self, tag: Any, extent: Any):
        super().__init__()
        self.tag = thread_tag(state.need(self.what), tag)
        self.extent = extent

    def flat(self) -> Any:
        return self._bind_thread(self._begin_flat())

    def _bind_thread(self, b: Any) -> Any:
        p = state.need(self.what)
        if b.zone == "host":
            DeviceEntry(None).flat()
        note_threads(p, self.tag, self.extent)
        b.attr(self.tag, self.extent)
        return thread_index(p, self.tag)

    def _open(self, b: Any) -> Any:
        return self._bind_thread(b)

    def _close(self, b: Any) -> None:
        pass


class Hint(Frame):
    """T.hint("message"): kept and printed, without effect."""

    __slots__ = ("attrs", "message")
    what = "T.hint"

    def __init__(self, message: str, attrs: dict[str, Any]):
        super().__init__()
        self.message = message
        self.attrs = attrs

    def _items(self) -> list[tuple[str, Any]]:
        more = [(f"tirx_hint.{k}", v) for k, v in self.attrs.items()]
        return more if more and not self.message else [("tirx_hint", self.message), *more]

    def flat(self) -> None:
        b = self._begin_flat()
        for key, value in self._items():
            b.attr(key, value)

    def _open(self, b: Any) -> None:
        for key, value in self._items():
            b.open_attr(key, value)

    def _close(self, b: Any) -> None:
        for _ in self._items():
            b.close()


def enclosing_if() -> If | None:
    """The T.If that the next arm belongs to: the innermost open frame."""
    frames = state.need("T.If").frames
    return frames[-1] if frames and isinstance(frames[-1], If) else None


class If(Frame):
    """with T.If(c): with T.Then(): ... with T.Else(): ..."""

    __slots__ = ("condition", "count", "done")
    what = "T.If"
    may_be_flat = False

    def __init__(self, condition: Any):
        super().__init__()
        self.condition = condition
        self.done = ""  # "then", "else"
        self.count = 0  # statements in the block around, the branch itself included

    def _open(self, b: Any) -> If:
        self.count = b.count
        return self

    def _close(self, b: Any) -> None:
        if not self.done:
            state.fail("IF_WITHOUT_THEN")
        self.check_stray(b)

    def check_stray(self, b: Any) -> None:
        if b.count != self.count:
            state.fail("IF_STRAY")


class Then(Frame):
    __slots__ = ()
    what = "T.Then"
    may_be_flat = False

    def _open(self, b: Any) -> None:
        around = enclosing_if()
        if around is None or around.done:
            state.fail("THEN_OUTSIDE_IF", self.what)
        around.check_stray(b)
        around.done = "then"
        around.count += 1
        b.open_if(around.condition)


class Else(Frame):
    __slots__ = ()
    what = "T.Else"
    may_be_flat = False

    def _open(self, b: Any) -> None:
        around = enclosing_if()
        if around is None or around.done != "then":
            state.fail("THEN_OUTSIDE_IF", self.what)
        around.check_stray(b)
        around.done = "else"
        b.open_else()


class While(Frame):
    __slots__ = ("condition",)
    what = "T.While"
    may_be_flat = False

    def __init__(self, condition: Any):
        super().__init__()
        self.condition = condition

    def _open(self, b: Any) -> None:
        b.open_while(self.condition)


class ForFrame(BlockFrame):
    """Loops. They never stand as statements: a loop that is never entered was only an argument."""

    __slots__ = ()

    def __iter__(self) -> Any:
        state.fail("FRAME_ITERATED", self.what, self.what, outside=TypeError)


class Loop(ForFrame):
    """One loop."""

    __slots__ = ("annotations", "dtype", "kind", "start", "step", "stop", "unroll")

    def __init__(
        self,
        kind: str,
        start: Any,
        stop: Any,
        step: Any = None,
        unroll: int = 0,
        annotations: dict[str, Any] | None = None,
        dtype: Any = None,
    ):
        if stop is None:
            start, stop = 0, start
        self.used = self.is_flat = False
        self.callbacks = None
        self.kind = kind
        self.start = start
        self.stop = stop
        self.step = 1 if step is None else step
        self.unroll = unroll
        self.annotations = annotations
        self.dtype = dtype

    def open(self, b: Any, name: str) -> Any:
        if self.kind == "unroll":
            for bound in (self.start, self.stop, self.step):
                if (
                    not isinstance(bound, int)
                    and getattr(bound, "op", "") != "INT"
                    and "float" not in getattr(bound, "dtype", "")
                ):
                    state.fail("UNROLL_DYNAMIC")
        downwards = self._unsigned_downwards()
        if downwards is not None:
            # the turns are Python's also where the step has no place in the dtype
            start, stop = (x if isinstance(x, int) else _core.cast(b.ctx, "int64", x) for x in (self.start, self.stop))
            turn = self._open_for(b, name + "_down", start, stop, None)
            return b.bind(name, turn, downwards)
        return self._open_for(b, name, self.start, self.stop, self.dtype)

    def _open_for(self, b: Any, name: str, start: Any, stop: Any, dtype: Any) -> Any:
        more = {"kind": self.kind, "unroll": self.unroll, "annotations": self.annotations, "dtype": dtype}
        return b.open_for(name, start, stop, self.step, **more)

    def _unsigned_downwards(self) -> str | None:
        """The dtype of the variable of a loop that counts down over unsigned bounds of up to 32 bits."""
        step = getattr(self.step, "value", None) if isinstance(self.step, _core.Expr) else self.step
        if not isinstance(step, int) or step >= 0:
            return None
        bounds = [x.dtype for x in (self.start, self.stop) if isinstance(x, (_core.Expr, _core.Buffer))]
        dtypes = {_core.parse_dtype(self.dtype)} if self.dtype is not None else set(bounds)
        if not dtypes or not dtypes <= {"uint8", "uint16", "uint32"}:
            return None
        bits = max(int(t[4:]) for t in dtypes)
        if (
            isinstance(self.start, int)
            and not 0 <= self.start < 2**bits
            or isinstance(self.stop, int)
            and self.stop < -1
        ):
            return None  # a number that does not fit is told
        return f"uint{bits}"

    @property
    def what(self) -> str:  # type: ignore[override]
        return f"T.{self.kind}"

    def _open(self, b: Any) -> Any:
        return self.open(b, state.need(self.what).result_names("i")[0])

    def close(self, b: Any) -> None:
        b.close()


class ThreadLoop(Loop):
    """T.thread_binding(128, thread="threadIdx.x"): a loop whose turns are threads or blocks. In the host zone it is a
    device region of its own."""

    __slots__ = ("region", "tag")

    def __init__(self, start: Any, stop: Any, tag: Any, annotations: Any):
        super().__init__("thread_binding", start, stop, annotations=annotations)
        self.tag = thread_tag(state.need(self.what), tag)
        self.region: Any = None

    def open(self, b: Any, name: str) -> Any:
        p = state.need(self.what)
        if b.zone == "host":
            self.region = DeviceEntry(None)
            self.region.__enter__()
        extent = self.stop if isinstance(self.start, int) and self.start == 0 else self.stop - self.start
        note_threads(p, self.tag, extent)
        b.open_attr(self.tag, extent)
        index = thread_index(p, self.tag)
        return index if extent is self.stop else b.bind(name, index + self.start)

    def close(self, b: Any) -> None:
        b.close()
        if self.region is not None:
            self.region.__exit__(None, None, None)

    def _close(self, b: Any) -> None:
        self.close(b)


class Grid(ForFrame):
    """T.grid(n, m, ...): loops in each other, with one variable each."""

    __slots__ = ("loops",)
    what = "T.grid"

    def __init__(self, loops: list[Loop]):
        super().__init__()
        self.loops = loops

    def _open(self, b: Any) -> Any:
        defaults = ["ijk"[k] if k < 3 else f"i{k}" for k in range(len(self.loops))]
        names = state.need(self.what).result_names(*defaults)
        found = [loop.open(b, name) for loop, name in zip(self.loops, names, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    def _close(self, b: Any) -> None:
        for _ in self.loops:
            b.close()


def loop(kind: str, start: Any, stop: Any, step: Any, unroll: Any, annotations: Any, dtype: Any) -> Loop:
    """A loop as the functions of T make it: checks what no IR is needed for."""
    count = 0
    if unroll is not None:
        if unroll is True:
            count = -1
        elif unroll is False:
            count = 1
        elif not isinstance(unroll, int):
            raise TypeError(f"unroll must be True, False or a positive int, got {type(unroll).__name__}")
        elif unroll < 1:
            raise ValueError(f"unroll must be at least 1, got {unroll}")
        else:
            count = unroll
    kept: dict[str, Any] = {}
    if annotations is not None and not isinstance(annotations, dict):
        raise TypeError(f"annotations must be a dict of names to values, got {type(annotations).__name__}")
    for key, value in (annotations or {}).items():
        plain = key.removeprefix("tirx.")
        if plain == "pragma_unroll":
            count = -1 if value is True else int(value)
        elif plain == "disable_unroll":
            count = 1
        else:
            kept[key] = value
    if dtype is not None and _core.parse_dtype(dtype) not in ("int32", "uint32"):
        raise ValueError('dtype of a loop/scope-id var must be "int32" or "uint32"')
    return Loop(kind, start, stop, step, count, kept or None, dtype)
