"""Accelerators to compile for without having one: their topologies, and what their compilers refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
from jax.experimental import topologies

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """An accelerator.

    Attributes:
      platform: The lowering platform: "tpu" or "cuda".
      devices: Makes at least four devices of it that can be compiled for.
      refused: What its compiler says of entries of the battery that it refuses.
    """

    platform: str
    devices: Callable[[], Sequence[Any]]
    refused: Mapping[str, str] = field(default_factory=dict)


def _tpu(topology: str) -> Sequence[Any]:
    return topologies.get_topology_desc(platform="tpu", topology_name=topology).devices


# What XLA must know of a GPU to compile for it.
_GPU = """
platform_name: "CUDA"
device_description_str: "{name}"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 8 }}
gpu_device_info {{
  cuda_compute_capability {{ major: {major} minor: 0 }}
  core_count: {cores}
  fpus_per_core: {fpus_per_core}
  clock_rate_ghz: {clock_ghz}
  device_memory_size: {memory}
  memory_bandwidth: {bandwidth}
  l2_cache_size: {l2_cache}
  shared_memory_per_core: {shared_per_core}
  shared_memory_per_block_optin: {shared_per_block}
  shared_memory_per_block: 49152
  threads_per_core_limit: {threads_per_core}
  threads_per_block_limit: 1024
  threads_per_warp: 32
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
"""


def _gpu(**properties: Any) -> Sequence[Any]:
    config = _GPU.format(**properties)
    return topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=config, topology="1x1x4"
    ).devices


_A100 = partial(
    _gpu,
    name="NVIDIA A100-SXM4-80GB",
    major=8,
    cores=108,
    fpus_per_core=64,
    clock_ghz=1.41,
    memory=85100068864,
    bandwidth=2039040000000,
    l2_cache=41943040,
    shared_per_core=167936,
    shared_per_block=166912,
    threads_per_core=2048,
)
_H100 = partial(
    _gpu,
    name="NVIDIA H100 80GB HBM3",
    major=9,
    cores=132,
    fpus_per_core=128,
    clock_ghz=1.98,
    memory=84978434048,
    bandwidth=3352320000000,
    l2_cache=52428800,
    shared_per_core=233472,
    shared_per_block=232448,
    threads_per_core=2048,
)
_B200 = partial(
    _gpu,
    name="NVIDIA B200",
    major=10,
    cores=148,
    fpus_per_core=128,
    clock_ghz=1.965,
    memory=191514411008,
    bandwidth=7672320000000,
    l2_cache=132644864,
    shared_per_core=233472,
    shared_per_block=232448,
    threads_per_core=2048,
)
_RTX_PRO_6000 = partial(
    _gpu,
    name="NVIDIA RTX PRO 6000 Blackwell",
    major=12,
    cores=188,
    fpus_per_core=128,
    clock_ghz=2.6,
    memory=103079215104,
    bandwidth=1792000000000,
    l2_cache=134217728,
    shared_per_core=131072,
    shared_per_block=101376,
    threads_per_core=1536,
)

_SELECT_AND_SCATTER = "Encountered select-and-scatter with a window bound or window stride"
_OVERLAPPING = {"max pooling with overlap": _SELECT_AND_SCATTER, "max pooling SAME": _SELECT_AND_SCATTER}

# XLA of JAX 0.10.2 fails at a product in its VJP; that of 0.12 does not.
_TILES = (
    {"causal attention of several heads": "Couldn't find output tile sizes"} if jax.__version_info__ < (0, 11) else {}
)

TARGETS: Mapping[str, Target] = {
    "TPU v5e": Target("tpu", partial(_tpu, "v5e:2x2"), _OVERLAPPING),
    "TPU v4": Target("tpu", partial(_tpu, "v4:2x2x1"), _OVERLAPPING),
    "TPU v5p": Target("tpu", partial(_tpu, "v5p:2x2x1"), _OVERLAPPING),
    "TPU v6e": Target("tpu", partial(_tpu, "v6e:2x2"), _OVERLAPPING),
    "TPU7x": Target("tpu", partial(_tpu, "tpu7x:2x2x1"), _OVERLAPPING),
    "H100 (sm_90)": Target("cuda", _H100, _TILES),
    "A100 (sm_80)": Target("cuda", _A100, _TILES),
    "B200 (sm_100)": Target("cuda", _B200, _TILES),
    "RTX PRO 6000 (sm_120)": Target("cuda", _RTX_PRO_6000, _TILES),
}
