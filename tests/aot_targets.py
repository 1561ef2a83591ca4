"""Accelerators to compile for without having one: their topologies, and what their compilers refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jax.experimental import topologies

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """An accelerator.

    Attributes:
      devices: Makes four devices of it that can be compiled for.
      refused: What its compiler says of entries of the battery that it refuses.
    """

    devices: Callable[[], Sequence[Any]]
    refused: Mapping[str, str] = field(default_factory=dict)


def _tpu() -> Sequence[Any]:
    return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices


# What XLA must know of the GPU to compile for it: an H100 with HBM3.
H100 = """
platform_name: "CUDA"
device_description_str: "NVIDIA H100 80GB HBM3"
dnn_version_info { major: 9 minor: 8 }
runtime_version { major: 12 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 9 minor: 0 }
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84978434048
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
"""


def _cuda() -> Sequence[Any]:
    return topologies.get_topology_desc(platform="cuda", topology_name="", target_config=H100, topology="1x1x4").devices


_SELECT_AND_SCATTER = "Encountered select-and-scatter with a window bound or window stride"

TARGETS = {
    "tpu": Target(
        _tpu, refused={"max pooling with overlap": _SELECT_AND_SCATTER, "max pooling SAME": _SELECT_AND_SCATTER}
    ),
    "cuda": Target(_cuda),
}
