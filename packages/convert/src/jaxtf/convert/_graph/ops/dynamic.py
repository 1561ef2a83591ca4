"""Operations whose sizes are operands: what symbolic shapes are lowered to."""

from __future__ import annotations

import tensorflow as tf

from jaxtf.convert._graph._support import (
    MOVED,
    Size,
    as_shape,
    index_dtype,
    is_empty,
    one_by_one,
    refuse,
    same,
    sizes,
    sliced,
    typed,
)
from jaxtf.convert._graph.known import known_value
from jaxtf.convert._graph.ops.shapes import broadcast_by, counting, padded_by
from jaxtf.convert._graph.ops.sorting import greatest
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._graph.strided import strided


@translates("stablehlo.set_dimension_size")
def set_dimension_size(bound: Bound, operand: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    """The first elements along one dimension, up to the given size, if the type of the result leaves it open.

    Source: StableHLO specification, `set_dimension_size`.
    """
    axis, known = int(bound["dimension"]), known_value(size)
    whole = sizes(operand)[axis]
    if known is not None and same(whole, int(known)):
        return operand
    if bound.result_type.shape[axis] is not None:
        refuse(bound, f"not the whole of dimension {axis}: a TensorFlow tensor has no size apart from its shape")
    kept = int(known) if known is not None else tf.cast(size, tf.int32)
    return one_by_one(operand, [axis], lambda array, _: array[:, :kept])


@translates("stablehlo.get_dimension_size")
def get_dimension_size(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """One size of the operand, as int32.

    Source: StableHLO specification, `get_dimension_size`.
    """
    size = sizes(operand)[bound["dimension"]]
    if index_dtype(size) == tf.int64:
        refuse(bound, f"{size} elements are more than int32 counts")
    return typed(size, tf.int32) if isinstance(size, int) else size


def listed(vector: tf.Tensor, known: tuple[int | None, ...] | None = None) -> list[Size]:
    """The elements of a vector of sizes: integers where the graph or the type tells them, scalars otherwise."""
    value = known_value(vector, partial=True)
    count = vector.shape.as_list()[0]
    elements = [None] * count if value is None else list(value)
    if known is not None:
        elements = [k if k is not None else e for k, e in zip(known, elements, strict=True)]
    return [vector[i] if e is None else int(e) for i, e in enumerate(elements)]


@translates("stablehlo.dynamic_broadcast_in_dim", computed_in=MOVED)
def dynamic_broadcast_in_dim(bound: Bound, operand: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """As `broadcast_in_dim`, to a shape that is an operand.

    Source: StableHLO specification, `dynamic_broadcast_in_dim`.
    """
    wanted = listed(shape, bound.result_type.shape)
    return broadcast_by(bound, operand, wanted, bound["broadcast_dimensions"])


@translates("stablehlo.dynamic_reshape", computed_in=MOVED)
def dynamic_reshape(bound: Bound, operand: tf.Tensor, shape: tf.Tensor) -> tf.Tensor:
    """As `reshape`, to a shape that is an operand.

    Source: StableHLO specification, `dynamic_reshape`.
    """
    target = listed(shape, bound.result_type.shape)
    if sum(not isinstance(size, int) for size in target) == 1 and not is_empty(target):
        target = [size if isinstance(size, int) else -1 for size in target]
    return tf.reshape(operand, as_shape(target))


@translates("stablehlo.dynamic_iota")
def dynamic_iota(bound: Bound, shape: tf.Tensor) -> tf.Tensor:
    """As `iota`, in a shape that is an operand.

    Source: StableHLO specification, `dynamic_iota`.
    """
    return counting(bound, listed(shape, bound.result_type.shape))


@translates("stablehlo.dynamic_pad", computed_in=MOVED)
def dynamic_pad(bound: Bound, operand: tf.Tensor, value: tf.Tensor, *amounts: tf.Tensor) -> tf.Tensor:
    """As `pad`, with amounts that are operands; those between elements have to be known.

    Source: StableHLO specification, `dynamic_pad`.
    """
    low, high, interior = amounts
    between = known_value(interior)
    if between is None:
        refuse(bound, "interior padding that is known only at run time")
    return padded_by(bound, operand, value, listed(low), listed(high), [int(n) for n in between])


@translates("stablehlo.real_dynamic_slice", computed_in=MOVED)
def real_dynamic_slice(
    bound: Bound, operand: tf.Tensor, start: tf.Tensor, limit: tf.Tensor, stride: tf.Tensor
) -> tf.Tensor:
    """As `slice`, with bounds that are operands.

    Source: StableHLO specification, `real_dynamic_slice`.
    """
    steps = known_value(stride)
    if steps is None:
        return tf.strided_slice(operand, *(as_shape(listed(vector)) for vector in (start, limit, stride)))
    if (steps != 1).any():
        parts = [slice(*part) for part in zip(*map(listed, (start, limit, stride)), strict=True)]
        return strided(operand, parts, is_differentiated=bound.is_differentiated)
    # Compiled, TensorFlow knows the sizes of a slice only if they are given.
    extent = listed(limit - start, bound.result_type.shape)
    return sliced(operand, listed(start), extent)


@translates("custom_call.stablehlo.dynamic_top_k")
def dynamic_top_k(bound: Bound, operand: tf.Tensor, count: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """As `chlo.top_k`, with a count that is an operand.

    Source: StableHLO, experimental operations, `dynamic_top_k`.
    """
    known = known_value(count)
    return greatest(bound, operand, int(known) if known is not None else tf.cast(tf.reshape(count, []), tf.int32))
