# SPDX-License-Identifier: Apache-2.0
"""The names that running Python code is about to give to what a call gives, read from its bytecode.

Only for the printed form: where the code does something else with the result, there is no name.
"""

from __future__ import annotations

from opcode import opmap as _OP
from types import CodeType, FrameType

_CACHE = _OP.get("CACHE", -1)
_EXTENDED = _OP["EXTENDED_ARG"]
_STORES = {_OP[n]: n for n in ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF") if n in _OP}
_UNPACK = _OP["UNPACK_SEQUENCE"]
_STORE_ATTR = _OP["STORE_ATTR"]
_STORE_TWO = _OP.get("STORE_FAST_STORE_FAST", -1)  # of Python 3.13, as the next
_STORE_LOAD = _OP.get("STORE_FAST_LOAD_FAST", -1)
_LOADS = {_OP[n] for n in _OP if n.startswith(("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF"))}
_LOADS = {op for op in _LOADS if op != _OP.get("LOAD_FAST_LOAD_FAST")}


class Targets:
    """What is known of the code objects met so far."""

    def __init__(self) -> None:
        self.raw: dict[CodeType, bytes] = {}

    def of(self, frame: FrameType) -> list[str]:
        """The names that the results of the call that the frame is at are stored under."""
        code = frame.f_code
        raw = self.raw.get(code)
        if raw is None:
            raw = self.raw[code] = code.co_code
        try:
            return _names(code, raw, frame.f_lasti)
        except (IndexError, KeyError):
            return []


def _next(raw: bytes, at: int) -> tuple[int, int, int]:
    """The instruction behind the one at `at`: operation, argument, place."""
    at += 2
    while raw[at] == _CACHE:
        at += 2
    arg = 0
    while raw[at] == _EXTENDED:
        arg = (arg | raw[at + 1]) << 8
        at += 2
    return raw[at], arg | raw[at + 1], at


def _stored(code: CodeType, op: int, arg: int) -> list[str]:
    kind = _STORES.get(op)
    if kind in ("STORE_NAME", "STORE_GLOBAL"):
        return [code.co_names[arg]]
    if kind == "STORE_DEREF":
        return [code._varname_from_oparg(arg)]  # type: ignore[attr-defined]
    if kind == "STORE_FAST":
        return [code.co_varnames[arg]]
    if op == _STORE_TWO:
        return [code.co_varnames[arg >> 4], code.co_varnames[arg & 15]]
    return [code.co_varnames[arg >> 4]] if op == _STORE_LOAD else []


def _names(code: CodeType, raw: bytes, at: int) -> list[str]:
    op, arg, at = _next(raw, at)
    if op == _UNPACK:
        count, found = arg, []
        while len(found) < count:
            op, arg, at = _next(raw, at)
            some = _stored(code, op, arg)
            if not some:
                return []
            found += some
        return found
    if op in _LOADS:  # self.name = ...
        op, arg, at = _next(raw, at)
        return [code.co_names[arg]] if op == _STORE_ATTR else []
    return _stored(code, op, arg)[:1]
