# SPDX-License-Identifier: Apache-2.0
"""Functions made by calls, without a text that is read:

    from tirx.builder import IRBuilder, ir as I

    with IRBuilder() as ib:
        with I.prim_func():
            I.func_name("double")
            A = I.arg("A", I.buffer((256,), "float32"))
            I.device_entry()
            tx = I.thread_id([256])
            A[tx] = A[tx] * 2.0
    f = ib.get()

Every name of `ir` is here and in T, too, and is the same object.
"""

from __future__ import annotations

from typing import Any

from tirx.builder import ir
from tirx.builder.ir import *  # noqa: F403
from tirx.script.trace import IRBuilder

__all__ = ["IRBuilder", "ir", *ir.__all__]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(ir, name)
