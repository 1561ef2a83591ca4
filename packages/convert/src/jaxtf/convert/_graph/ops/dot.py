"""Products of arrays summed over dimensions, as matrix products."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.convert._graph import nodes
from jaxtf.convert._graph._support import Size, as_shape, is_empty, product, sizes, widening
from jaxtf.convert._graph.grappler import after_matmul, before_matmul
from jaxtf.convert._graph.ops.conversion import cast, summed_in
from jaxtf.convert._graph.ops.shapes import as_shape_tensor
from jaxtf.convert._graph.ops.whole_terms import with_whole_terms
from jaxtf.convert._graph.registry import Bound, translates

# MatMul and BatchMatMulV2 have kernels for floating point, complex, int32 and int64. Products and sums modulo
# 2**bits are those of the wider type, cut; those of uint64 are those of int64, bit by bit.
INTEGERS_IN = widening(
    int32=("bool", "int2", "int4", "int8", "int16", "uint2", "uint4", "uint8", "uint16"), int64=("uint32", "uint64")
)


@translates("stablehlo.dot_general")
def dot_general(bound: Bound, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The sum of products over contracting dimensions; result: batching, then free dimensions of left and of right.

    Sums are in the dtype of the result or of an operand, the one of the more general kind or else the more precise,
    and are then converted. Integers are exact modulo 2**bits. Sums of 16-bit floats are rounded once, as with XLA for
    CPU; the order of adding is not promised. NaN and infinities take part as in any product, also with zeros.

    Differs: `precision_config` and `algorithm` are not heeded: TensorFlow has no such choice; a sum of nothing but -0
    may be 0 or -0; not compiled, sums of bfloat16 are rounded more than once by a TensorFlow without oneDNN, and of two
    constants by any; a complex sum whose real part an integer does not hold becomes the nearest, and in XLA nothing
    that is defined.
    Source: StableHLO specification, `dot_general`.
    """
    numbers: Mapping[str, Sequence[int]] = bound["dot_dimension_numbers"]
    return contract(
        left,
        right,
        batching=(numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]),
        contracting=(numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"]),
        dtype=bound.result_type.dtype,
        constant=bound.constant,
    )


@translates("stablehlo.dot")
def dot(bound: Bound, left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """The last dimension of the left with the first of the right.

    Source: XLA operation semantics, `Dot`.
    """
    contracting = ((left.shape.rank - 1,), (0,))
    dtype = bound.result_type.dtype
    return contract(left, right, batching=((), ()), contracting=contracting, dtype=dtype, constant=bound.constant)


def contract(
    left: tf.Tensor,
    right: tf.Tensor,
    *,
    batching: tuple[Sequence[int], Sequence[int]],
    contracting: tuple[Sequence[int], Sequence[int]],
    dtype: tf.DType,
    constant: Callable[[Any], tf.Tensor],
) -> tf.Tensor:
    """As `dot_general`, in the dtype that XLA sums in or a wider one that has kernels; `constant` is as in `Bound`."""
    summed = summed_in(dtype, left.dtype, right.dtype)
    computed = INTEGERS_IN.get(summed, summed)
    if summed.is_floating and summed.size < 2:
        computed = tf.float32
    left_free = _free(left.shape.rank, batching[0], contracting[0])
    right_free = _free(right.shape.rank, batching[1], contracting[1])
    # What oneDNN fuses with a sum does not take products where nothing is summed, or of which there is none.
    if is_empty(left.shape.as_list()) or is_empty(right.shape.as_list()):
        return cast(tf.zeros(_result_shape(left, right, [*batching[0], *left_free], right_free), computed), dtype)
    left, right = (cast(cast(x, summed), computed) for x in (left, right))
    a, transpose_a = _matrix(left, batching[0], left_free, contracting[0], contracted_last=True, constant=constant)
    b, transpose_b = _matrix(right, batching[1], right_free, contracting[1], contracted_last=False, constant=constant)
    before_matmul(a)
    a, b = with_whole_terms(a, -2 if transpose_a else -1, b, -1 if transpose_b else -2)
    contracted, columns = a.shape.as_list()[-2 if transpose_a else -1], b.shape.as_list()[-2 if transpose_b else -1]
    product = after_matmul(nodes.matmul(a, b, transpose_a, transpose_b), contracted, columns)
    if len(left_free) != 1 or len(right_free) != 1:
        of_left, of_right = sizes(left), sizes(right)
        shape = [*(of_left[i] for i in (*batching[0], *left_free)), *(of_right[i] for i in right_free)]
        product = nodes.reshape(product, as_shape_tensor(shape, constant))
    return cast(cast(product, summed), dtype)


def _result_shape(left: tf.Tensor, right: tf.Tensor, of_left: Sequence[int], of_right: Sequence[int]) -> Any:
    shapes = sizes(left), sizes(right)
    return as_shape([*(shapes[0][i] for i in of_left), *(shapes[1][i] for i in of_right)])


def _free(rank: int, *taken: Sequence[int]) -> list[int]:
    return [i for i in range(rank) if not any(i in dims for dims in taken)]


def _matrix(
    operand: tf.Tensor,
    batching: Sequence[int],
    free: Sequence[int],
    contracting: Sequence[int],
    *,
    contracted_last: bool,
    constant: Callable[[Any], tf.Tensor],
) -> tuple[tf.Tensor, bool]:
    """The operand as batches of matrices, and whether each is to be read transposed.

    It is left in the order it has where a transposing product reads it as well: no transposition is emitted then.
    """
    wanted = [*batching, *free, *contracting] if contracted_last else [*batching, *contracting, *free]
    other = [*batching, *contracting, *free] if contracted_last else [*batching, *free, *contracting]
    identity = list(range(len(wanted)))
    flips = wanted != identity and other == identity
    order = other if flips else wanted
    original = operand
    if order != identity:
        operand = nodes.transpose(operand, constant(order))
    if len(free) != 1 or len(contracting) != 1:
        shape = sizes(original)
        rows, columns = (product([shape[i] for i in dims]) for dims in (free, contracting))
        first, second = (rows, columns) if contracted_last != flips else (columns, rows)
        target: list[Size] = [*(shape[i] for i in batching), first, second]
        operand = nodes.reshape(operand, as_shape_tensor(target, constant))
    return operand, flips
