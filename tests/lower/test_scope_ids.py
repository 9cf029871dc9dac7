# SPDX-License-Identifier: Apache-2.0
"""LowerTIRx: scope ids, launch configurations, coordinates (language.md 10)."""

import pytest


def test_ids_become_coordinates_bound_where_the_kernel_starts(after):
    got = after(
        "LowerTIRx",
        """
        T.device_entry()
        bx, by = T.cta_id([4, 2])
        tx = T.thread_id([64])
        if tx < 3:
            lane = T.lane_id([32])
            A[tx] = bx + by + lane
        """,
    )
    assert got["main"] == (
        'T.func_attr({"global_symbol": "k"})\n'
        "T.device_entry(launch=T.cuda.LaunchConfig(grid=(4, 2), block=64))\n"
        'bx: T.let[T.int32] = T.cuda.block_idx("x")\n'
        'by: T.let[T.int32] = T.cuda.block_idx("y")\n'
        'tx: T.let[T.int32] = T.cuda.thread_idx("x")\n'
        'lane: T.let[T.int32] = T.cuda.thread_idx("x") % 32\n'
        "if tx < 3:\n"
        "    A[tx] = bx + by + lane"
    )


def test_the_warp_id_is_one_shuffle_and_only_where_it_is_used(after):
    body = """
        T.device_entry()
        warp = T.warp_id([4])
        group = T.warpgroup_id([1])
        tx = T.thread_id([32, 4])
        A[tx[0]] = {}
    """
    used = after("LowerTIRx", body.format("warp"))["main"]
    assert used.count("T.tvm_warp_shuffle") == 1
    assert (
        "\nwarp_id_in_cta: T.let[T.int32] = T.tvm_warp_shuffle(T.uint32(4294967295), "
        'T.cuda.thread_idx("x") + T.cuda.thread_idx("y") * 32 >> 5, 0, 32, 32)\n'
    ) in used
    assert "T.tvm_warp_shuffle" not in after("LowerTIRx", body.format("tx[0]"))["main"]


@pytest.mark.parametrize(
    ("ids", "value", "text"),
    [
        ("T.thread_id([64])", "T.thread_id([64])", 'T.cuda.thread_idx("x")'),
        ("T.thread_id([64])", "T.lane_id()", 'T.cuda.thread_idx("x") % 32'),
        ("T.thread_id([256])", "T.thread_id_in_wg()", 'T.cuda.thread_idx("x") % 128'),
        ("T.thread_id([256])", "T.warpgroup_id()", "warp_id_in_cta // 4"),
        ("T.thread_id([256])", "T.warp_id_in_wg()", "warp_id_in_cta % 4"),
        ("T.thread_id([32])", "T.warp_id()", None),
        ("T.warp_id([2])", "T.thread_id()", None),
        ("T.thread_id([32])", "T.cta_id([1])", None),
    ],
)
def test_values(after, ids, value, text):
    got = after("LowerTIRx", f"T.device_entry()\nt = {ids}\nv = {value}\nA[0] = v + 1")["main"]
    if text is None:
        assert "v: T.let" not in got or 'v: T.let[T.int32] = T.cuda.thread_idx("x")' in got
    else:
        assert f"v: T.let[T.int32] = {text}\n" in got, got


@pytest.mark.parametrize(
    ("ids", "launch"),
    [
        ("T.thread_id([64])", "grid=1, block=64"),
        ("T.warp_id([4]); T.lane_id([32])", "grid=1, block=128"),
        ("T.warpgroup_id([2]); T.thread_id_in_wg([128])", "grid=1, block=256"),
        ("T.warpgroup_id([2])", "grid=1, block=256"),
        ("T.cta_id([4]); T.thread_id(64)", "grid=4, block=64"),
        ("T.cluster_id([4]); T.cta_id_in_cluster([2]); T.thread_id([32])", "grid=8, block=32, cluster=2"),
        ("T.cluster_id([4, 3]); T.cta_id_in_cluster([2]); T.thread_id([32])", "grid=(8, 3), block=32, cluster=2"),
        ("T.cta_id([8]); T.cta_id_in_cluster([2], preferred=[4]); T.thread_id([32])",
         "grid=8, block=32, cluster=2, preferred_cluster=4"),
        ("T.cta_id([8]); T.cta_id_in_cluster([1]); T.thread_id([32])", "grid=8, block=32"),
        ("T.cta_id_in_cluster([2]); T.thread_id([32])", "grid=2, block=32, cluster=2"),
    ],
)  # fmt: skip
def test_launch_shape(after, ids, launch):
    got = after("LowerTIRx", f"T.device_entry()\n{ids}\nA[0] = 1")["main"]
    assert f"T.device_entry(launch=T.cuda.LaunchConfig({launch}))" in got, got


def test_a_symbolic_grid_and_block(after):
    params = "a: T.handle, m: T.int32"
    body = """
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        T.device_entry()
        bx = T.cta_id([T.ceildiv(n, 64)])
        tx = T.thread_id([m])
        A[bx] = tx + T.cuda.block_dim("x") + T.cuda.grid_dim("x")
    """
    got = after("LowerTIRx", body, params)["main"]
    assert "T.device_entry(launch=T.cuda.LaunchConfig(grid=T.ceildiv(n, 64), block=m))" in got
    assert 'A[bx] = tx + T.cuda.block_dim("x") + T.cuda.grid_dim("x")' in got


def test_ids_and_configuration_may_be_mixed(after):
    body = """
        T.device_entry(launch=T.cuda.LaunchConfig(grid=4, block=128))
        tx = T.thread_id()
        warp = T.warp_id()
        A[tx] = warp + T.cuda.block_idx("x") + T.cuda.block_dim("x") + T.cuda.lane_id()
    """
    got = after("LowerTIRx", body, "A: T.Tensor((128,), T.int32)", "T.function")["main"]
    assert 'A[tx] = warp_id_in_cta + T.cuda.block_idx("x") + 128 + T.cuda.thread_idx("x") % 32' in got


def test_launch_thread_is_an_older_form(after):
    body = """
        bx = T.launch_thread("blockIdx.x", 2)
        ty = T.launch_thread("threadIdx.y", 4)
        tx = T.launch_thread("threadIdx.x", 8)
        A[bx * 32 + ty * 8 + tx] = 1
    """
    got = after("LowerTIRx", body)["main"]
    assert "T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=(8, 4)))" in got
    assert 'A[T.cuda.block_idx("x") * 32 + T.cuda.thread_idx("y") * 8 + T.cuda.thread_idx("x")] = 1' in got


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "tx = T.thread_id([100])\nw = T.warp_id()\nA[w] = tx",
            "4:10: error: scope binding cta->warp has non-divisible extents: 100 is not divisible by 32\n"
            "    tx = T.thread_id([100])\n         ^^^^^^^^^^^^^^^^^^",
        ),
        (
            "tx = T.thread_id([64])\nw = T.warp_id([4])\nA[w] = tx",
            "4:10: error: Inconsistent extents for scope binding cta->thread: 64 and 128",
        ),
        (
            "tx = T.thread_id([64])\nty = T.thread_id([32])\nA[ty] = tx",
            "5:10: error: Inconsistent extents for scope binding cta->thread: 64 and 32",
        ),
        (
            "tx = T.thread_id([64])\nl = T.lane_id([16])\nA[l] = tx",
            "5:9: error: Inconsistent extents for scope binding warp->thread: 16 and 32",
        ),
        (
            "b = T.cta_id()\ntx = T.thread_id([64])\nA[b] = tx",
            "4:9: error: cannot infer extent of deferred ScopeIdDef for binding kernel->cta; declare it explicitly or "
            "add sibling ScopeIdDefs",
        ),
        (
            "b = T.cta_id([4])\nA[b] = 1",
            "3:5: error: kernel has no thread launch parameters. At minimum, declare cta->thread extent (e.g., "
            "T.thread_id([128]))",
        ),
        ("tx = T.thread_id([2048])\nA[0] = tx", "4:10: error: block must contain at most 1024 threads, got 2048"),
        ("tx, ty = T.thread_id([64, 32])\nA[0] = tx", "4:14: error: block must contain at most 1024 threads, got 2048"),
        ("tx = T.thread_id([0])\nA[0] = tx", "4:10: error: kernel k has non-positive thread count 0"),
        ("b = T.cta_id([0])\ntx = T.thread_id([32])\nA[0] = tx",
         "4:9: error: grid dimensions must be positive uint32 values, got 0"),
        (
            "b = T.cta_id([3])\nr = T.cta_id_in_cluster([2])\ntx = T.thread_id([32])\nA[b] = r",
            "4:9: error: scope binding kernel->cluster has non-divisible extents: 3 is not divisible by 2",
        ),
        (
            "b = T.cta_id([4, 2])\nr = T.cta_id_in_cluster([2, 4])\ntx = T.thread_id([32])\nA[b[0]] = r[0]",
            "4:9: error: grid must be divisible by cluster in every dimension: 2 is not divisible by 4",
        ),
        (
            "b = T.cta_id([32])\nr = T.cta_id_in_cluster([32])\ntx = T.thread_id([32])\nA[b] = r",
            "5:9: error: a cluster has 1 to 16 CTAs, got 32",
        ),
        ("p = T.cta_id_in_pair()\ntx = T.thread_id([32])\nA[p] = tx",
         "4:9: error: T.cta_id_in_pair() requires T.cta_id_in_cluster(...) in the same kernel"),
        ("tx = T.thread_id([A[0]])\nA[0] = tx",
         "4:10: error: A[0] cannot be an extent of T.thread_id: only integers known on the host can"),
        ("tx = T.thread_id([64])\nfor i in range(2):\n    b = T.cta_id([i + 1])\n    A[i] = tx",
         "6:13: error: i + 1 cannot be an extent of T.cta_id: only integers known on the host can"),
    ],
)  # fmt: skip
def test_refused(refused, body, message):
    got = refused("T.device_entry()\n" + body)
    assert (got + "\n").startswith(message + "\n"), got


def test_a_conflict_names_both_places(refused):
    got = refused(
        """
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        tx = T.thread_id([32])
        A[tx] = tx
        """,
        "A: T.Tensor((64,), T.int32)",
        "T.function",
    )
    assert got == (
        "4:10: error: T.thread_id declares 32, the launch's block says 64\n"
        "    tx = T.thread_id([32])\n"
        "         ^^^^^^^^^^^^^^^^^\n"
        "  and 3:5:\n"
        "    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: give the extent in one of the two places"
    )


@pytest.mark.parametrize(
    ("launch", "body", "message"),
    [
        ("grid=1, block=48", "A[T.cuda.warp_id()] = 1",
         "3:5: error: kernel k uses warp-granular bindings but has thread count 48 not a multiple of 32\n"),
        ("grid=1, block=64", 'A[T.cuda.cluster_dim("x")] = 1',
         "4:7: error: cluster_dim requires an explicit launch cluster\n"),
        ("grid=1, block=(1, 4, 128)", "A[0] = 1", "3:5: error: block dimension z must be at most 64, got 128\n"),
    ],
)  # fmt: skip
def test_refused_with_a_configuration(refused, launch, body, message):
    got = refused(
        f"T.device_entry(launch=T.cuda.LaunchConfig({launch}))\n{body}", "A: T.Tensor((64,), T.int32)", "T.function"
    )
    assert got.startswith(message), got
