"""Telling XLA's partitioner how to split a TensorFlow value over devices.

The arguments and results of a converted function that `jax.jit` was given shardings for carry an XlaSharding op
each. The module says the same; whoever reads the graph need not look into it. XLA heeds them where TensorFlow
compiles for several devices, as for TPUs. On CPU and GPU the function computes the same on one device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionOptionError, ConversionStateError
from jaxtf.serialization import NamedSharding

__all__ = ["annotate_shardings", "split_to_logical_devices"]


def annotate_shardings(
    tensors: Sequence[tf.Tensor], shardings: Sequence[NamedSharding | None], uses_shardy: bool
) -> list[tf.Tensor]:
    """The tensors, each with an XlaSharding op where it is sharded over several devices.

    Args:
      tensors: The tensors.
      shardings: Of each of them.
      uses_shardy: Whether that partitioner is to read it.

    Raises:
      ConversionStateError: In eager mode, where there is no computation to be split, for an array in parts.
    """
    if tf.executing_eagerly():
        _check_whole(shardings)
        return list(tensors)
    return [
        tensor
        if sharding is None or math.prod(sharding.mesh.axis_sizes) == 1
        else _tf.annotate_tiles(tensor, _devices(sharding), uses_shardy)
        for tensor, sharding in zip(tensors, shardings, strict=True)
    ]


def _check_whole(shardings: Sequence[NamedSharding | None]) -> None:
    """Refuses arrays that are in parts."""
    split = [str(sharding) for sharding in shardings if sharding is not None and not _devices(sharding).hold_all]
    if split:
        raise ConversionStateError(
            "A jit function with sharded arguments or results must be used under a `tf.function` context\n"
            f"  found:  a call in eager mode, with arrays split as {', '.join(dict.fromkeys(split))}\n"
            "  remedy: call it in a tf.function, or convert the function without its shardings"
        )


def _devices(sharding: NamedSharding) -> _tf.TiledDevices:
    """Which device holds which tile of an array."""
    mesh = sharding.mesh
    sizes = dict(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
    used = [name for names in sharding.partitions for name in names]
    unused = [name for name in mesh.axis_names if name not in used]
    tiles = [math.prod(sizes[name] for name in names) for names in sharding.partitions]
    copies = math.prod(sizes[name] for name in unused)
    return _tf.TiledDevices(
        tiles=(*tiles, copies) if copies > 1 else tuple(tiles),
        mesh=mesh.axis_sizes,
        order=tuple(mesh.axis_names.index(name) for name in (*used, *unused)),
        is_partial=copies > 1,
    )


def split_to_logical_devices(tensor: tf.Tensor, partition_dimensions: Sequence[int]) -> tf.Tensor:
    """The same values, annotated as split over logical devices, for arguments of a compiled computation.

    It adds an XlaSharding op, which XLA reads where the value is compiled for several devices, as for
    TPUs; elsewhere, and in eager mode, it changes nothing.

    Args:
      tensor: What to annotate.
      partition_dimensions: The number of parts along each axis. Their product is the number of
        logical devices, which take the parts in row-major order.

    Raises:
      ConversionOptionError: Not one positive number for each axis.

    >>> import tensorflow as tf
    >>> split_to_logical_devices(tf.ones([4, 2]), [2, 1]).shape
    TensorShape([4, 2])
    """
    parts = list(partition_dimensions)
    if any(isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 1 for part in parts) or (
        tensor.shape.rank not in (None, len(parts))
    ):
        raise ConversionOptionError(
            f"partition_dimensions must give a number of parts, at least 1, for each axis of the tensor of shape "
            f"{tensor.shape}; found {partition_dimensions!r}"
        )
    if tf.executing_eagerly():
        return tensor  # there is no computation to be split
    devices = _tf.TiledDevices(tuple(parts), mesh=(math.prod(parts),), order=(0,))
    return _tf.annotate_tiles(tensor, devices, uses_shardy=False)
