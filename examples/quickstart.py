# SPDX-License-Identifier: Apache-2.0
"""Vector addition: on a GPU if there is one, else on the emulator. It says which, and checks the result."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tirx
from tirx.script import tirx as T


@T.prim_func
def add(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()  # the size of the tensors, known when the kernel is called
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([T.ceildiv(n, 256)])
    tx = T.thread_id([256])
    i: T.let = bx * 256 + tx
    if i < n:
        C[i] = A[i] + B[i]


def place():
    """Where to run: the target, its name for people, how an array gets there, and how it comes back."""
    try:
        import torch

        if torch.cuda.is_available():
            name = torch.cuda.get_device_name(0)
            return "cuda", name, lambda x: torch.from_numpy(x).cuda(), lambda t: t.cpu().numpy()
    except ImportError:
        pass
    if Path("/dev/nvidia0").exists():
        device = tirx.cuda(0)
        return "cuda", "the first GPU", lambda x: tirx.runtime.tensor(x, device), lambda t: t.numpy()
    return "cpu", "the emulator (no GPU found)", lambda x: x, lambda x: x


def main():
    target, name, put, get = place()
    exe = tirx.compile(add, target=target)

    rng = np.random.default_rng(0)
    x = rng.standard_normal(1_000_003, dtype=np.float32)
    y = rng.standard_normal(1_000_003, dtype=np.float32)
    a, b, c = put(x), put(y), put(np.zeros_like(x))
    exe(a, b, c)

    np.testing.assert_array_equal(get(c), x + y)
    print(exe.source)
    print(f"Added two vectors of {x.size:,} floats on {name}: the result is right.")


if __name__ == "__main__":
    main()
