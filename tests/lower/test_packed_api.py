# SPDX-License-Identifier: Apache-2.0
"""MakePackedAPI: a call's checks as IR for reading."""

import tirx

TEXT = """
@T.prim_func
def scale(a: T.handle, b: T.handle, s: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n * 2,), "float32")
    B = T.match_buffer(b, (n, 4), "float16")
    T.device_entry()
    bx = T.cta_id([1])
    tx = T.thread_id([32])
    A[tx] = s + T.Cast("float32", B[tx, 0])
"""


def test_listing(golden):
    module = tirx.IRModule({"main": tirx.from_source(TEXT)})
    module = tirx.transform.MakePackedAPI()(tirx.lower(module, target="cpu"))
    golden("lower/packed_api.py.txt", module.script())
    assert tirx.transform.MakePackedAPI()(module).script() == module.script()


def test_it_needs_the_split():
    module = tirx.IRModule({"main": tirx.from_source(TEXT)})
    assert tirx.transform.MakePackedAPI()(module).script() == module.script()
