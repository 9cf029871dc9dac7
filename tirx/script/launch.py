# SPDX-License-Identifier: Apache-2.0
"""Launch configurations of the g2 form: T.cuda.LaunchConfig and T.cuda.KernelAttributes.

What is constant is checked when the object is made; what is known at the call only, by the launcher. The field names
are those of the language; `to_launch` gives them the core's names.
"""

from __future__ import annotations

from typing import Any

from tirx import _core
from tirx.script import symbols

Expr, Buffer = _core.Expr, _core.Buffer
_U32 = 4294967295

_ENUMS: dict[str, tuple[str, ...]] = {
    "cluster_scheduling_policy": ("default", "spread", "load_balancing"),
    "mem_sync_domain": ("default", "remote"),
    "portable_cluster_size_mode": ("default", "require_portable", "allow_non_portable"),
    "shared_memory_mode": ("default", "require_portable", "allow_non_portable"),
}
_BOOLS = ("cooperative", "programmatic_stream_serialization", "nvlink_util_centric_scheduling")
_RANGES = {
    "dynamic_smem_bytes": (0, _U32),
    "priority": (-(2**31), 2**31 - 1),
    "preferred_shared_memory_carveout": (0, 100),
}
# fields that the launcher does not use yet; they are refused rather than dropped
_LATER = ("portable_cluster_size_mode", "shared_memory_mode")


def _is_expression(x: Any) -> bool:
    return isinstance(x, (Expr, Buffer, symbols.Deferred))


def _constant(x: Any) -> int | None:
    """The number, if x is one that is known now."""
    if isinstance(x, int):
        return x
    if isinstance(x, Expr) and x.op == "INT":
        return x.value
    return None


def _integer(field: str, x: Any) -> Any:
    if isinstance(x, bool):
        raise TypeError(f"{field} expects int, not bool")
    if type(x).__module__ == "numpy" and hasattr(x, "__index__"):
        x = int(x)
    if isinstance(x, int):
        return x
    if not _is_expression(x):
        raise TypeError(f"{field} must be a scalar int expression")
    if isinstance(x, (Expr, Buffer)) and (not x.dtype.lstrip("u").startswith("int") or "x" in x.dtype):
        raise TypeError(f"{field} has incompatible type {x.dtype}")
    return x


def _dimensions(field: str, value: Any) -> tuple:
    dims = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not 1 <= len(dims) <= 3:
        raise ValueError(f"{field} expects one to three dimensions")
    dims = tuple(_integer(field, d) for d in dims)
    for d in dims:
        n = _constant(d)
        if n is not None and not 0 < n <= _U32:
            raise ValueError(f"{field} dimensions must be positive uint32 values")
    return dims


def _padded(dims: tuple) -> tuple:
    return (*dims, *(1,) * (3 - len(dims)))


def _divisible(a: tuple, a_name: str, b: tuple, b_name: str) -> None:
    for x, y in zip(_padded(a), _padded(b), strict=False):
        m, n = _constant(x), _constant(y)
        if m is not None and n is not None and m % n:
            raise ValueError(f"{a_name} must be divisible by {b_name} in every dimension")


class _Record:
    """A launch attribute of several fields; `fields` is what the core keeps."""

    fields: list[Any]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.fields))})"


def _in_range(field: str, x: Any, low: int, high: int) -> Any:
    x = _integer(field, x)
    n = _constant(x)
    if n is not None and not low <= n <= high:
        raise ValueError(f"{field} must be between {low} and {high}")
    return x


class MemSyncDomainMap(_Record):
    """Which physical domains the two logical ones are."""

    def __init__(self, default: Any = 0, remote: Any = 1):
        self.fields = [
            _in_range(f"mem_sync_domain_map.{f}", x, 0, 255) for f, x in (("default", default), ("remote", remote))
        ]


class AccessPolicyWindow(_Record):
    """How the L2 cache treats a window of memory: a share of it one way, the rest another."""

    _PROPERTIES = ("normal", "streaming", "persisting")

    def __init__(
        self,
        base_ptr: Any,
        num_bytes: Any,
        hit_ratio: Any = 1.0,
        hit_prop: str = "persisting",
        miss_prop: str = "normal",
    ):
        if isinstance(base_ptr, Buffer):
            base_ptr = base_ptr.data
        if not (isinstance(base_ptr, Expr) and base_ptr.dtype == "handle"):
            raise TypeError("access_policy_window.base_ptr must be a buffer or a pointer parameter")
        num_bytes = _integer("access_policy_window.num_bytes", num_bytes)
        if isinstance(hit_ratio, Expr) and hit_ratio.op == "FLOAT":
            hit_ratio = hit_ratio.value
        if isinstance(hit_ratio, bool) or not isinstance(hit_ratio, (int, float)):
            raise TypeError("access_policy_window.hit_ratio must be a compile-time number")
        if not 0 <= hit_ratio <= 1:
            raise ValueError("access_policy_window.hit_ratio must be between 0 and 1")
        for field, value, allowed in (
            ("hit_prop", hit_prop, self._PROPERTIES),
            ("miss_prop", miss_prop, self._PROPERTIES[:2]),
        ):
            if value not in allowed:
                raise ValueError(f"access_policy_window.{field}: expected one of {allowed}, got {value!r}")
        self.fields = [base_ptr, num_bytes, float(hit_ratio), hit_prop, miss_prop]


class ProgrammaticEvent(_Record):
    """An event (its address as an integer) that is recorded when every block has triggered it."""

    def __init__(self, event: Any, flags: Any = 0, trigger_at_block_start: bool = False):
        if not isinstance(trigger_at_block_start, bool):
            raise TypeError("programmatic_event.trigger_at_block_start expects bool")
        self.fields = [
            _integer("programmatic_event.event", event),
            _in_range("programmatic_event.flags", flags, 0, _U32),
            trigger_at_block_start,
        ]


class LaunchCompletionEvent(_Record):
    """An event that is recorded when every block has begun."""

    def __init__(self, event: Any, flags: Any = 0):
        self.fields = [
            _integer("launch_completion_event.event", event),
            _in_range("launch_completion_event.flags", flags, 0, _U32),
        ]


_RECORDS = {
    "mem_sync_domain_map": MemSyncDomainMap,
    "access_policy_window": AccessPolicyWindow,
    "programmatic_event": ProgrammaticEvent,
    "launch_completion_event": LaunchCompletionEvent,
}


class LaunchConfig:
    """How a kernel is launched: `T.device_entry(launch=T.cuda.LaunchConfig(grid=g, block=256))`."""

    _FIELDS = (
        "grid",
        "block",
        "cluster",
        "preferred_cluster",
        "dynamic_smem_bytes",
        "stream",
        "cooperative",
        "programmatic_stream_serialization",
        "cluster_scheduling_policy",
        "priority",
        "mem_sync_domain",
        "mem_sync_domain_map",
        "access_policy_window",
        "preferred_shared_memory_carveout",
        "nvlink_util_centric_scheduling",
        "portable_cluster_size_mode",
        "shared_memory_mode",
        "programmatic_event",
        "launch_completion_event",
    )

    def __init__(
        self,
        *,
        grid: Any = None,
        block: Any = None,
        cluster: Any = None,
        preferred_cluster: Any = None,
        dynamic_smem_bytes: Any = None,
        stream: Any = None,
        cooperative: bool | None = None,
        programmatic_stream_serialization: bool | None = None,
        cluster_scheduling_policy: str | None = None,
        priority: Any = None,
        mem_sync_domain: str | None = None,
        mem_sync_domain_map: Any = None,
        access_policy_window: Any = None,
        preferred_shared_memory_carveout: Any = None,
        nvlink_util_centric_scheduling: Any = None,
        portable_cluster_size_mode: Any = None,
        shared_memory_mode: Any = None,
        programmatic_event: Any = None,
        launch_completion_event: Any = None,
    ):
        given = locals()
        self._values = {f: given[f] for f in self._FIELDS}
        self._check(self._values)

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"LaunchConfig has no field '{name}'")

    def __repr__(self) -> str:
        return f"LaunchConfig({', '.join(f'{k}={v!r}' for k, v in self._values.items() if v is not None)})"

    def replace(self, **updates: Any) -> LaunchConfig:
        """The same configuration with other values for some fields."""
        return LaunchConfig(**{**self._values, **updates})

    @staticmethod
    def _check(v: dict[str, Any]) -> None:
        for field in ("grid", "block"):
            if v[field] is None:
                raise ValueError(f"LaunchConfig.{field} is required")
        for field in ("grid", "block", "cluster", "preferred_cluster"):
            if v[field] is not None:
                v[field] = _dimensions(field, v[field])
        threads = 1
        for d in v["block"]:
            n = _constant(d)
            threads = None if n is None or threads is None else threads * n
        if threads is not None and threads > 1024:
            raise ValueError("block must contain at most 1024 threads")
        cluster, preferred = v["cluster"], v["preferred_cluster"]
        if cluster is not None:
            _divisible(v["grid"], "grid", cluster, "cluster")
        if preferred is not None:
            if cluster is None:
                raise ValueError("preferred_cluster requires an explicit cluster")
            _divisible(v["grid"], "grid", preferred, "preferred_cluster")
            _divisible(preferred, "preferred_cluster", cluster, "cluster")
            z, pz = _constant(_padded(cluster)[2]), _constant(_padded(preferred)[2])
            if z is not None and pz is not None and z != pz:
                raise ValueError("preferred_cluster.z must equal cluster.z")
        for field in _BOOLS:
            if v[field] is not None and not isinstance(v[field], bool):
                raise TypeError(f"{field} expects bool, got {type(v[field]).__name__}")
        for field, allowed in _ENUMS.items():
            if v[field] is not None and v[field] not in allowed:
                raise ValueError(f"{field}: expected one of {allowed}, got {v[field]!r}")
        for field, (low, high) in _RANGES.items():
            if v[field] is not None:
                v[field] = _integer(field, v[field])
                n = _constant(v[field])
                if n is not None and not low <= n <= high:
                    raise ValueError(f"{field} must be between {low} and {high}")
        for field, kind in _RECORDS.items():
            if v[field] is not None and not isinstance(v[field], kind):
                raise TypeError(f"{field} expects T.cuda.{kind.__name__}, got {type(v[field]).__name__}")
        for field in _LATER:
            if v[field] is not None:
                raise ValueError(f"LaunchConfig.{field} is not supported by tirx yet")


class KernelAttributes:
    """Compile-time attributes of a kernel: `T.device_entry(launch=..., kernel_attrs=T.cuda.KernelAttributes(...))`."""

    def __init__(
        self,
        *,
        min_blocks_per_sm: Any = None,
        max_blocks_per_cluster: Any = None,
        max_registers_per_thread: Any = None,
        required_block_size: bool = False,
    ):
        numbers = {
            "min_blocks_per_sm": min_blocks_per_sm,
            "max_blocks_per_cluster": max_blocks_per_cluster,
            "max_registers_per_thread": max_registers_per_thread,
        }
        for field, value in numbers.items():
            if value is None:
                continue
            n = None if isinstance(value, bool) else _constant(value)
            if n is None:
                raise TypeError(f"{field} must be a compile-time constant")
            if n <= 0:
                raise ValueError(f"{field} must be positive")
            numbers[field] = n
        if not isinstance(required_block_size, bool):
            raise TypeError("required_block_size must be a compile-time constant")
        if numbers["max_blocks_per_cluster"] and not numbers["min_blocks_per_sm"]:
            raise ValueError("max_blocks_per_cluster requires min_blocks_per_sm")
        if numbers["max_registers_per_thread"] and (numbers["min_blocks_per_sm"] or required_block_size):
            raise ValueError("max_registers_per_thread conflicts with launch bounds and required_block_size")
        self.min_blocks_per_sm = numbers["min_blocks_per_sm"]
        self.max_blocks_per_cluster = numbers["max_blocks_per_cluster"]
        self.max_registers_per_thread = numbers["max_registers_per_thread"]
        self.required_block_size = required_block_size

    def check_against(self, launch: LaunchConfig) -> None:
        static_block = all(_constant(d) is not None for d in launch.block)
        if self.min_blocks_per_sm and not static_block:
            raise ValueError("min_blocks_per_sm requires static block dimensions")
        if self.required_block_size:
            cluster, preferred = launch.cluster or (), launch.preferred_cluster
            if not static_block or any(_constant(d) is None for d in cluster):
                raise ValueError("required_block_size requires static block and cluster dimensions")
            if preferred is not None and list(map(_constant, _padded(preferred))) != list(
                map(_constant, _padded(cluster))
            ):
                raise ValueError("required_block_size requires preferred_cluster to equal cluster")


def to_launch(launch: Any, kernel_attrs: Any) -> dict[str, Any] | None:
    """The core's dict for T.device_entry(launch=, kernel_attrs=)."""
    if launch is None:
        if kernel_attrs is not None:
            raise ValueError("device_entry kernel_attrs require a launch configuration")
        return None
    if not isinstance(launch, LaunchConfig):
        raise TypeError(f"device_entry launch must be a T.cuda.LaunchConfig, got {type(launch).__name__}")
    found: dict[str, Any] = {
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cluster": None if launch.cluster is None else list(launch.cluster),
        "preferred": None if launch.preferred_cluster is None else list(launch.preferred_cluster),
        "dyn_smem": launch.dynamic_smem_bytes,
        "stream": launch.stream,
        "priority": launch.priority,
        "cooperative": None if launch.cooperative is None else int(launch.cooperative),
        "pdl": None
        if launch.programmatic_stream_serialization is None
        else int(launch.programmatic_stream_serialization),
        "cluster_policy": _index("cluster_scheduling_policy", launch.cluster_scheduling_policy),
        "mem_sync_domain": _index("mem_sync_domain", launch.mem_sync_domain),
        "carveout": launch.preferred_shared_memory_carveout,
    }
    attrs: dict[str, Any] = {k: getattr(launch, k).fields for k in _RECORDS if getattr(launch, k) is not None}
    if launch.nvlink_util_centric_scheduling is not None:
        attrs["nvlink_util_centric_scheduling"] = launch.nvlink_util_centric_scheduling
    if attrs:
        found["attrs"] = attrs
    if kernel_attrs is not None:
        if not isinstance(kernel_attrs, KernelAttributes):
            raise TypeError(
                f"device_entry kernel_attrs must be a T.cuda.KernelAttributes, got {type(kernel_attrs).__name__}"
            )
        kernel_attrs.check_against(launch)
        found["min_blocks"] = kernel_attrs.min_blocks_per_sm
        found["max_blocks_per_cluster"] = kernel_attrs.max_blocks_per_cluster
        found["max_registers"] = kernel_attrs.max_registers_per_thread
        found["required_block_size"] = 1 if kernel_attrs.required_block_size else None
    return {k: v for k, v in found.items() if v is not None}


def _index(field: str, value: str | None) -> int | None:
    return None if value is None else _ENUMS[field].index(value)
