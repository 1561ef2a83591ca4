"""Batch normalization, by its formulas."""

from __future__ import annotations

from typing import Any

from jax import lax

from jaxtf.serialization._lift.registry import Bound, lifts


def _along(vector: Any, operand: Any, feature: int) -> Any:
    """A vector of features, broadcast against the operand."""
    return lax.broadcast_in_dim(vector, operand.shape, (feature,))


def _mean(operand: Any, axes: tuple[int, ...]) -> Any:
    total = lax.reduce_sum(operand, axes)
    count = 1
    for axis in axes:
        count = count * operand.shape[axis]
    return lax.div(total, lax.full_like(total, count))


def _others(operand: Any, feature: int) -> tuple[int, ...]:
    return tuple(i for i in range(operand.ndim) if i != feature)


def _normalized(bound: Bound, operand: Any, *vectors: Any) -> Any:
    feature = bound["feature_index"]
    scale, offset, mean, variance = (_along(vector, operand, feature) for vector in vectors)
    deviation = lax.sqrt(lax.add(variance, lax.full_like(variance, bound["epsilon"])))
    return lax.add(lax.mul(lax.div(lax.sub(operand, mean), deviation), scale), offset)


@lifts("stablehlo.batch_norm_inference")
def inference(bound: Bound, operand: Any, *vectors: Any) -> Any:
    """Normalizes with the given mean and variance.

    Source: StableHLO specification, `batch_norm_inference`.
    """
    return _normalized(bound, operand, *vectors)


@lifts("stablehlo.batch_norm_training")
def training(bound: Bound, operand: Any, scale: Any, offset: Any) -> tuple[Any, Any, Any]:
    """Normalizes with the batch's own mean and variance, and gives those too.

    Source: StableHLO specification, `batch_norm_training`.
    """
    feature = bound["feature_index"]
    others = _others(operand, feature)
    mean = _mean(operand, others)
    centred = lax.sub(operand, _along(mean, operand, feature))
    variance = _mean(lax.mul(centred, centred), others)
    return _normalized(bound, operand, scale, offset, mean, variance), mean, variance


@lifts("stablehlo.batch_norm_grad")
def gradient(bound: Bound, operand: Any, *rest: Any) -> tuple[Any, Any, Any]:
    """Cotangents of operand, scale and offset of the training form.

    Source: StableHLO specification, `batch_norm_grad`.
    """
    feature = bound["feature_index"]
    scale, mean, variance, cotangent = rest
    others = _others(operand, feature)
    spread = lax.add(variance, lax.full_like(variance, bound["epsilon"]))
    deviation = lax.sqrt(spread)
    centred = lax.sub(operand, _along(mean, operand, feature))
    product = lax.mul(cotangent, centred)
    scale_cotangent = lax.div(lax.reduce_sum(product, others), deviation)
    slope = lax.div(
        lax.mul(centred, _along(_mean(product, others), operand, feature)), _along(spread, operand, feature)
    )
    inner = lax.sub(lax.sub(cotangent, _along(_mean(cotangent, others), operand, feature)), slope)
    operand_cotangent = lax.mul(_along(lax.div(scale, deviation), operand, feature), inner)
    return operand_cotangent, scale_cotangent, lax.reduce_sum(cotangent, others)
