# SPDX-License-Identifier: Apache-2.0
"""Functions of math and NumPy on run-time values: what to write instead."""

from __future__ import annotations

from typing import Any

# their name -> the function of T, where it is another one
_OTHER = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "fabs": "abs",
    "fmax": "max",
    "fmin": "min",
    "maximum": "max",
    "minimum": "min",
    "mod": "floormod",
    "power": "pow",
    "remainder": "floormod",
    "rint": "round",
    "where": "if_then_else",
}
_TWO = frozenset("atan2 copysign floormod fmod hypot ldexp max min nextafter pow".split())


def is_mathematics(function: Any) -> bool:
    """Whether it is a function of math, of NumPy, or one of NumPy's classes of scalars."""
    if type(function).__name__ == "ufunc":
        return True
    return getattr(function, "__module__", None) in ("math", "numpy")


def instead_of(function: Any) -> tuple[str, str]:
    """Its name as it is written, and the hint."""
    from tirx.script import dtypes, tirx

    name = getattr(function, "__name__", type(function).__name__)
    module = getattr(function, "__module__", None) or "numpy"
    what = f"{module}.{name}"
    if isinstance(function, type) and dtypes.is_dtype(function):
        return what, f"use T.{dtypes.of_annotation(function)}(x)"
    mine = _OTHER.get(name, name)
    if not hasattr(tirx, mine):
        return what, "loop over the elements, or use the functions of T"
    operands = "c, a, b" if mine == "if_then_else" else "a, b" if mine in _TWO else "x"
    return what, f"use T.{mine}({operands})"
