"""What JAX is set to in this process, by its backends and its flags, where an export depends on it. Imports JAX."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax.extend import backend as jax_backend

from jaxtf.serialization import _jax
from jaxtf.serialization._record.producer import Producer
from jaxtf.serialization._record.versions import RELEASE

__all__ = [
    "default_calling_convention_version",
    "default_export_platform",
    "partitioner_that_fits",
    "producer",
    "registered_platforms",
    "uses_shardy",
]


def default_export_platform() -> str:
    """The lowering platform of JAX's default backend: `cpu`, `tpu`, `cuda`, `rocm`, ..."""
    name = str(jax.default_backend())
    if name != "gpu":
        return name
    return "rocm" if "rocm" in jax_backend.get_backend().platform_version.lower() else "cuda"


def registered_platforms() -> frozenset[str]:
    """Names of the backends that this process has started, those of plugins included."""
    return frozenset(jax_backend.backends())


def default_calling_convention_version() -> int:
    """What `--jax_export_calling_convention_version` says."""
    return int(jax.config.jax_export_calling_convention_version)


def producer() -> Producer:
    """The releases that export functions in this process."""
    jax_release, jaxlib_release = _jax.releases()
    return Producer(jaxtf=RELEASE, jax=jax_release, jaxlib=jaxlib_release)


def uses_shardy() -> bool:
    """Whether JAX lowers shardings for the Shardy partitioner."""
    return bool(jax.config.jax_use_shardy_partitioner)


def partitioner_that_fits(calling_convention_version: int) -> AbstractContextManager[Any]:
    """A context in which shardings are lowered for a partitioner that consumers of this version know."""
    return _jax.without_shardy() if calling_convention_version < 10 else nullcontext()
