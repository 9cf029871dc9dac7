# SPDX-License-Identifier: Apache-2.0
"""T.ptx: instructions of the PTX table as chains of attributes.

    T.ptx.mbarrier.init.shared.b64(bar.ptr_to([0]), T.uint32(1))
    T.ptx["tcgen05.cp.cta_group::1.128x128b"](...)

The first token is the family, the rest are its modifiers in any order. `::` is written `__`, a lone `:` `__colon__`, a
Python keyword gets a trailing `_`. Everything else (operands, checks, text) follows from the row; see csrc/ir/ptx.def.
"""

from __future__ import annotations

import inspect
import keyword
from typing import Any

from tirx import _core
from tirx.errors import DiagnosticError
from tirx.script import state
from tirx.script.ops import Receipt, emit

# families that are two words in the ISA and one in the attribute form
_FOLDED = {
    "cp_async": ("cp", "async"),
    "shfl_sync": ("shfl", "sync"),
    "vote_sync": ("vote", "sync"),
    "redux_sync": ("redux", "sync"),
    "elect_sync": ("elect", "sync"),
    "st_async": ("st", "async"),
    "st_bulk": ("st", "bulk"),
    "red_async": ("red", "async"),
    "cvt_pack": ("cvt", "pack"),
    "multimem_ld_reduce": ("multimem", "ld_reduce"),
    "multimem_st": ("multimem", "st"),
    "multimem_red": ("multimem", "red"),
    "tensormap_replace": ("tensormap", "replace"),
    "tensormap_cp_fenceproxy": ("tensormap", "cp_fenceproxy"),
}
_accepted: set[tuple[str, ...]] = set()  # token tuples that the table knows; grows to the table's size at most


class Pred:
    """An integer that is meant as a predicate."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


class Addr:
    """An address and a displacement in bytes."""

    __slots__ = ("offset", "pointer")

    def __init__(self, pointer: Any, offset: Any):
        if isinstance(pointer, Addr):
            raise ValueError("T.ptx.addr: displacements do not nest; add them")
        self.pointer = pointer
        self.offset = offset


class Sink:
    """The bit bucket `_` in place of a destination lane."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "T.ptx.SINK"


SINK = Sink()


def _tagged(x: Any) -> Any:
    if isinstance(x, Pred):
        return ("pred", x.value)
    if isinstance(x, Addr):
        return ("addr", x.pointer, x.offset)
    return ("sink",) if x is SINK else x


def _token(name: str) -> str:
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    return name.replace("__colon__", ":").replace("__", "::")


def _aliases() -> Any:
    """The names of the function style; they are written over this module."""
    from tirx.script import ptx_aliases

    return ptx_aliases


def _takes(f: Any, operands: tuple[Any, ...], pred: Any) -> bool:
    try:
        inspect.signature(f).bind(*operands, **({} if pred is None else {"pred": pred}))
    except TypeError:
        return False
    return True


class Chain:
    """The tokens so far. A value like any other: it may be kept, extended and passed on."""

    __slots__ = ("tokens",)
    _tirx_placed = True  # the parser sets the place before it reads an attribute

    def __init__(self, tokens: tuple[str, ...]):
        self.tokens = tokens

    def _more(self, *tokens: str) -> Chain:
        chain = self.tokens + tokens
        if chain not in _accepted:
            p = state.parser()
            if p is not None:
                try:
                    _core.ptx_accepts(p.ctx, chain)
                    _accepted.add(chain)
                except DiagnosticError:
                    if ".".join(chain) not in _aliases().PREFIXES:
                        raise
        return Chain(chain)

    def __getattr__(self, name: str) -> Chain:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._more(_token(name))

    __iter__ = None  # subscripts take text, not 0, 1, 2, ...

    def __getitem__(self, text: str) -> Chain:
        return self._more(*text.split("."))

    def __call__(self, *operands: Any, pred: Any = None, preserve_dst: bool = False, **options: Any) -> Any:
        name = ".".join(self.tokens)
        p = state.need(f"T.ptx.{name}")
        if preserve_dst and pred is None:
            raise ValueError("preserve_dst=True needs pred=")
        alias = _aliases().TABLE.get(name)
        if options and alias is None:
            raise TypeError(f"T.ptx.{name} takes no argument named {next(iter(options))!r}")
        try:
            if options:
                return alias(*operands, **options, **({} if pred is None else {"pred": pred}))
            made = _core.ptx_call(p.ctx, self.tokens, tuple(map(_tagged, operands)), pred, preserve_dst)
        except DiagnosticError:
            if alias is None or not _takes(alias, operands, pred):
                raise
            return alias(*operands, **({} if pred is None else {"pred": pred}))
        return emit(made)

    def __dir__(self) -> list[str]:
        names = {choice.replace("::", "__").replace(":", "__colon__") for _, choice in _core.ptx_open(self.tokens)}
        return sorted(name + "_" * keyword.iskeyword(name) for name in names)

    def __repr__(self) -> str:
        return f'T.ptx["{".".join(self.tokens)}"]'


class Ptx(Chain):
    """T.ptx itself."""

    __slots__ = ()

    SINK = SINK
    pred = staticmethod(Pred)
    addr = staticmethod(Addr)

    def __init__(self) -> None:
        super().__init__(())

    def __getattr__(self, name: str) -> Chain:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._more(*_FOLDED.get(name, (_token(name),)))

    def __getitem__(self, text: str) -> Chain:
        first, *rest = text.split(".")
        return self._more(*_FOLDED.get(first, (first,)), *rest)

    def __call__(self, *operands: Any, **keywords: Any) -> Receipt:
        raise TypeError("T.ptx is not an instruction: write T.ptx.<family>.<modifiers>(...)")

    def __repr__(self) -> str:
        return "T.ptx"


ptx = Ptx()
