# SPDX-License-Identifier: Apache-2.0
"""T.SMEMPool: planning of dynamic shared memory.

A kernel has one dynamic arena. The pool hands out typed parts of it by a cursor that moves up, or is set back where
memory is used again; `commit` declares how many bytes the launch needs.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import buffers, control, state, views
from tirx.script.meta import meta_class

_ARENA_ALIGN = 1024  # what the generated text gives the arena


@meta_class
class SMEMPool:
    """Parts of one dynamic shared memory arena; over a given pointer the arena and its size are the caller's.

    pool = T.SMEMPool()
    a = pool.alloc((64, 32), "float16", align=128)
    pool.commit()
    """

    def __init__(self, ptr: Any = None):
        state.need("T.SMEMPool")
        self.offset = 0  # bytes: where the next part begins, before its alignment
        self.max_offset = 0  # the most that was ever in use
        self.committed = False
        self.own = ptr is None
        if self.own:
            self.arena = buffers.alloc_buffer((0,), "uint8", scope="shared.dyn")
            self.ptr = self.arena.data
        else:
            self.ptr = ptr.start if isinstance(ptr, _core.Buffer) else ptr
            if not isinstance(self.ptr, _core.Expr) or self.ptr.dtype != "handle":
                raise TypeError("T.SMEMPool takes a pointer into shared memory, or nothing")

    def alloc(
        self,
        shape: Any,
        dtype: Any = "float32",
        strides: Any = None,
        scope: str = "shared.dyn",
        align: int = 0,
        layout: Any = "default",
    ) -> Any:
        """The next part of the arena, as a buffer."""
        if scope != "shared.dyn":
            raise ValueError(f'SMEMPool.alloc gives scope "shared.dyn", not "{scope}"')
        if self.committed:
            raise ValueError("SMEMPool.alloc after commit(): the size of the arena is declared already")
        text = _core.parse_dtype(dtype)
        extents = self._constants("shape", shape)
        nbits = views.bits_of(text)
        steps = None if strides is None else self._constants("strides", strides)
        if steps is not None and len(steps) != len(extents):
            raise ValueError(f"SMEMPool.alloc: {len(steps)} strides for {len(extents)} dimensions")
        at = self._aligned(align, max(nbits // 8, 1))
        count = 1
        for k, d in enumerate(extents):
            count = count * d if steps is None else count + (d - 1) * steps[k]
        made = buffers.decl_buffer(
            extents,
            text,
            data=self.ptr,
            strides=steps,
            byte_offset=at or None,
            scope="shared.dyn",
            align=align,
            layout=layout,
        )
        self._take(at + (count * nbits + 7) // 8)
        return made

    def alloc_mma(self, shape: Any, dtype: Any = "float16", swizzle_mode: Any = "auto", align: int = 1024) -> Any:
        """An operand of a matrix instruction, swizzled in shared memory."""
        raise ValueError("SMEMPool.alloc_mma needs layouts, which are not supported by tirx yet: use alloc()")

    alloc_tcgen05_mma_AB = alloc_mma

    def move_base_to(self, offset: int) -> None:
        """The next part begins at `offset` bytes: what was there may be used again."""
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise ValueError(f"SMEMPool.move_base_to needs a constant number of bytes, got {offset}")
        self.offset = offset

    def commit(self, size: int | None = None) -> None:
        """Declares the bytes of the arena: the most that was in use, or `size`."""
        if not self.own:
            return
        if self.committed:
            raise ValueError("SMEMPool.commit() was called already")
        if size is None:
            size = self.max_offset
        if isinstance(size, bool) or not isinstance(size, int) or size < self.max_offset:
            raise ValueError(f"SMEMPool.commit({size}): {self.max_offset} bytes are in use")
        self.committed = True
        control.attr({"tirx.dyn_smem_bytes": size}).flat()

    def _aligned(self, align: int, least: int) -> int:
        if isinstance(align, bool) or not isinstance(align, int) or align < 0 or align & (align - 1):
            raise ValueError(f"SMEMPool.alloc: align must be a power of two, got {align}")
        if self.own and align > _ARENA_ALIGN:
            raise ValueError(f"SMEMPool.alloc: align={align}, but the arena itself is aligned to {_ARENA_ALIGN} bytes")
        step = max(align, least & -least)
        return -(-self.offset // step) * step

    def _take(self, end: int) -> None:
        self.offset = end
        self.max_offset = max(self.max_offset, end)

    def _constants(self, what: str, values: Any) -> list[int]:
        found = []
        for v in values if isinstance(values, (list, tuple)) else (values,):
            v = v.value if isinstance(v, _core.Expr) and v.op == "INT" else v
            if isinstance(v, bool) or not isinstance(v, int) or v < 0:
                raise ValueError(f"SMEMPool.alloc: the {what} must be constant, got {v}")
            found.append(v)
        return found
