"""Telling XLA's partitioner how to split a TensorFlow value over devices."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ConversionOptionError

__all__ = ["split_to_logical_devices"]


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
    devices = np.arange(math.prod(parts)).reshape(parts)
    return _tf.annotate_tiles(tensor, devices)
