"""Batch normalization, by its formulas."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import typed
from jaxtf.convert._graph.accumulated import accumulated
from jaxtf.convert._graph.registry import Bound, translates

Tensors = tuple[tf.Tensor, ...]


def _along(vector: tf.Tensor, operand: tf.Tensor, feature: int) -> tf.Tensor:
    """A vector of features so shaped that it broadcasts against the operand."""
    return tf.reshape(vector, [-1 if i == feature else 1 for i in range(operand.shape.rank)])


def _others(operand: tf.Tensor, feature: int) -> list[int]:
    return [i for i in range(operand.shape.rank) if i != feature]


def _sum(operand: tf.Tensor, axes: list[int]) -> tf.Tensor:
    return accumulated("add", operand, axes, lambda x: tf.reduce_sum(x, axes))


def _mean(operand: tf.Tensor, axes: list[int]) -> tf.Tensor:
    return accumulated("add", operand, axes, lambda x: tf.reduce_mean(x, axes))


@translates("stablehlo.batch_norm_inference")
def inference(bound: Bound, operand: tf.Tensor, *vectors: tf.Tensor) -> tf.Tensor:
    """Normalizes with the given mean and variance.

    Source: StableHLO specification, `batch_norm_inference`.
    """
    feature = bound["feature_index"]
    scale, offset, mean, variance = (_along(vector, operand, feature) for vector in vectors)
    epsilon = typed(bound["epsilon"], operand.dtype)
    return (operand - mean) / tf.sqrt(variance + epsilon) * scale + offset


@translates("stablehlo.batch_norm_training")
def training(bound: Bound, operand: tf.Tensor, scale: tf.Tensor, offset: tf.Tensor) -> Tensors:
    """Normalizes with the batch's own mean and variance, and gives those too.

    Source: StableHLO specification, `batch_norm_training`.
    """
    others = _others(operand, bound["feature_index"])
    mean = _mean(operand, others)
    centred = operand - _along(mean, operand, bound["feature_index"])
    variance = _mean(centred * centred, others)
    return inference(bound, operand, scale, offset, mean, variance), mean, variance


@translates("stablehlo.batch_norm_grad")
def gradient(bound: Bound, operand: tf.Tensor, *rest: tf.Tensor) -> Tensors:
    """Cotangents of operand, scale and offset of the training form.

    Source: StableHLO specification, `batch_norm_grad`.
    """
    scale, mean, variance, cotangent = rest
    feature = bound["feature_index"]
    others = _others(operand, feature)
    epsilon = typed(bound["epsilon"], operand.dtype)
    deviation = tf.sqrt(variance + epsilon)
    centred = operand - _along(mean, operand, feature)
    scale_cotangent = _sum(cotangent * centred, others) / deviation
    offset_cotangent = _sum(cotangent, others)
    mean_cotangent = _along(_mean(cotangent, others), operand, feature)
    mean_slope = _along(_mean(cotangent * centred, others), operand, feature)
    slope = _along(scale / deviation, operand, feature)
    spread = _along(variance + epsilon, operand, feature)
    return slope * (cotangent - mean_cotangent - centred * mean_slope / spread), scale_cotangent, offset_cotangent
