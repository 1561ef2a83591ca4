"""GPUs that JAX and TensorFlow both have: there DLPack carries values between them without a copy.

DLPack names a GPU by a number. To JAX it is the number of the hardware among the visible ones, to TensorFlow its own
number of the device, which is another one after `tf.config.set_visible_devices` and where a GPU is split into several
logical devices. A GPU that has not the same number in both is not shared.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import tensorflow as tf

from jaxtf.calltf._tf import eager_device

__all__ = ["is_on_gpu_of_both", "is_one_gpu_of_both", "numbers_of_both"]


@functools.lru_cache(1024)
def is_one_gpu_of_both(sharding: jax.sharding.Sharding) -> bool:
    """Whether arrays of this sharding are on one GPU, all of them, and TensorFlow has it too."""
    devices: list[Any] = list(sharding.device_set)
    is_gpu = len(devices) == 1 and devices[0].platform == "gpu"
    return is_gpu and devices[0].local_hardware_id in _shared()


def is_on_gpu_of_both(tensor: Any) -> bool:
    """Whether the elements of an eager tensor are on a GPU that JAX has too."""
    numbers = _shared()
    if not numbers:
        return False
    device = eager_device(tensor)
    return device is not None and any(device.endswith(f"/device:GPU:{number}") for number in numbers)


@functools.cache
def _shared() -> frozenset[int]:
    """The numbers of the shared GPUs, from when a value is first asked about: devices do not change after that."""
    try:
        of_jax = [device.local_hardware_id for device in jax.local_devices(backend="gpu")]
    except RuntimeError:  # JAX has no GPU here
        return frozenset()
    visible = [device.name for device in tf.config.get_visible_devices("GPU")]
    return numbers_of_both(of_jax, visible, len(tf.config.list_logical_devices("GPU")))


def numbers_of_both(of_jax: Sequence[int | None], visible: Sequence[str], logical: int) -> frozenset[int]:
    """The numbers that name the same GPU to JAX and to TensorFlow.

    Args:
      of_jax: The numbers of the hardware, of JAX's devices.
      visible: The names of TensorFlow's physical devices, as `/physical_device:GPU:0`, in the order of its numbers.
      logical: How many logical devices TensorFlow has made of them.
    """
    if logical != len(visible):
        return frozenset()
    alike = {number for number, name in enumerate(visible) if name.endswith(f":{number}")}
    return frozenset(alike.intersection(of_jax))
