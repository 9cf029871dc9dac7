# SPDX-License-Identifier: Apache-2.0
"""Names of targets, and of passes."""

import pytest

import tirx
from tirx import _core


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("cpu", ("cpu", 0, "")),
        ("cuda", ("cuda", 0, "")),
        ("cuda:sm_80", ("cuda", 80, "")),
        ("cuda:sm_90a", ("cuda", 90, "a")),
        ("cuda:sm_100f", ("cuda", 100, "f")),
        ("cuda:sm_120", ("cuda", 120, "")),
    ],
)
def test_known_targets(text, want):
    got = _core.parse_target(text)
    assert (got["kind"], got["arch"], got["suffix"] or "") == want


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "cuda:",
        "cuda:80",
        "cuda:sm_",
        "cuda:sm_13",
        "cuda:sm_80a",
        "cuda:sm_90b",
        "cuda:sm_90ax",
        "CPU",
        "cuda:sm_90a\0x",
    ],
)
def test_unknown_targets(text):
    with pytest.raises(ValueError, match="unknown target") as info:
        _core.parse_target(text)
    assert repr(text) in str(info.value)


def test_public_names_of_passes():
    assert tirx.transform.names() == ["LowerTIRx", "FlattenBuffer", "UnrollLoop", "SplitHostDevice"]
    for alias, name in {
        "TilePrimitiveDispatch": "LowerTIRx",
        "NarrowDataType": "FlattenBuffer",
        "VectorizeLoop": "UnrollLoop",
        "StmtSimplify": "UnrollLoop",
        "CommonSubexprElim": "UnrollLoop",
        "LowerIntrin": "SplitHostDevice",
        "MakePackedAPI": "MakePackedAPI",
    }.items():
        assert repr(getattr(tirx.transform, alias)()) == f"tirx.transform.{name}()"


def test_dump_prints_the_module_after_a_pass(run_python):
    code = """
    import os
    import tirx
    from tirx.script import tirx as T

    @T.prim_func
    def k(A: T.Buffer((64,), "int32")):
        T.device_entry()
        tx = T.thread_id([64])
        A[tx] = tx

    os.dup2(1, 2)
    tirx.lower(k, target="cpu")
    """
    assert run_python(code) == ""
    text = run_python(code, env={"TIRX_DUMP": "LowerTIRx,SplitHostDevice"})
    assert text.count("LowerTIRx") == text.count("SplitHostDevice") == 1
    assert text.count("def k(") == 2
    assert text.count("def k_kernel(") == 1
    assert run_python(code, env={"TIRX_DUMP": "all"}).count("def k(") == 4
