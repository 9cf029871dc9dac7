# SPDX-License-Identifier: Apache-2.0
"""The formats of T.cuda.printf. A device's printf believes its format: a value that is missing, or of another kind or
width, would print garbage or stop the kernel, and the emulator, which knows what it prints, would not show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_CONVERSION = re.compile(r"%(?:%|[-+ #0]*(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|[Lqjzt])?(.?))", re.S)
_WIDE = ("l", "ll", "j", "z", "t", "q")
_INTEGERS = "diouxX"
_KINDS = {
    **dict.fromkeys(_INTEGERS, r"u?int(8|16|32|64)|bool"),
    **dict.fromkeys("eEfFgGaA", r"b?float.*"),
    "c": r"u?int(8|16|32)",
    "p": r"handle",
    "s": r"handle|a string",
}


def check_format(fmt: str, dtypes: Sequence[str]) -> None:
    """Refuses a format that does not fit the values."""
    want: list[tuple[str, str, str]] = []  # conversion, length, as written
    for m in _CONVERSION.finditer(fmt):
        if m.group() != "%%":
            want += [("d", "", "*")] * [m.group(1), m.group(2)].count("*")
            want.append((m.group(4), m.group(3) or "", m.group()))
    if len(want) != len(dtypes):
        raise ValueError(f"T.cuda.printf: the format has {len(want)} conversion(s), got {len(dtypes)} value(s)")
    for (conversion, length, written), dtype in zip(want, dtypes, strict=True):
        kinds = _KINDS.get(conversion)
        if kinds is None:
            raise ValueError(f"T.cuda.printf: '{written}' is not a conversion that a device has")
        if not re.fullmatch(kinds, dtype):
            raise TypeError(f"T.cuda.printf: '{written}' does not print {dtype}")
        wide = dtype.endswith("64")
        if conversion in _INTEGERS and wide != (length in _WIDE):
            fit = written[: len(written) - 1 - len(length)] + ("ll" if wide else "") + conversion
            raise TypeError(f"T.cuda.printf: '{written}' does not print {dtype}: write '{fit}'")
