"""Ranks and sizes of operands as StableHLO requires them, and as TensorFlow's operations take them.

TensorFlow's elementwise operations broadcast a size of 1, its slices end where the array does, its transforms pad, its
convolutions make groups of features that are too many; StableHLO's operations do none of that. The modules that JAX
exports have the sizes that are required, by their shape assertions; a module of somebody else may be called with sizes
that are not. So what is known only at run time is compared then.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import tensorflow as tf

from jaxtf.convert._errors import ArgumentTypeError
from jaxtf.convert._function.checked_sizes import REQUIRED, refused_unless
from jaxtf.convert._graph._support import Size, as_shape, sizes
from jaxtf.convert._graph.accumulated import is_added_in_steps
from jaxtf.convert._graph.broadcasts import MOST_RUNS, most_runs
from jaxtf.convert._graph.errors import unsupported
from jaxtf.convert._graph.kernels import FEW_KERNELS
from jaxtf.convert._graph.ops.dynamic import listed
from jaxtf.convert._graph.ops.shapes import in_one_shape
from jaxtf.convert._graph.plan.agreed import SIZES_AGREE
from jaxtf.convert._graph.registry import Bound
from jaxtf.convert._graph.reshapes import RESHAPE
from jaxtf.convert._tf import asserted, evaluated, traces_compiled
from jaxtf.serialization.interop import Operation, Requirement, has_requirements, requirements

__all__ = ["at_broadcast_places", "of_own_sizes", "with_required_sizes"]

# What is computed from sizes in more steps counts as computed from values.
_MOST_LOOKED_AT = 256
_RESHAPES = ("stablehlo.reshape", "stablehlo.dynamic_reshape")
_SHAPED = tuple(f"stablehlo.dynamic_{name}" for name in ("broadcast_in_dim", "iota", "reshape"))
_CONVOLUTIONS = ("stablehlo.convolution", "stablehlo.dynamic_conv")


def with_required_sizes(
    operation: Operation, operands: Sequence[tf.Tensor], *, runs_always: bool = True
) -> list[tf.Tensor]:
    """The operands, which are there only if their sizes are as the operation requires.

    Compiled, XLA drops assertions; a reshape to another number of elements it refuses, if it knows that number.

    Args:
      operation: The operation.
      operands: What it is applied to.
      runs_always: Whether it runs whenever the program does; if not, other parts see sizes that may not agree.

    Raises:
      ArgumentTypeError: Sizes that are known do not agree.
    """
    is_known = operation.attributes.get(SIZES_AGREE, False)
    # Grappler takes a reshape to known sizes for nothing, and its operand, and what compares that, for of these sizes.
    is_apart = operation.name in _RESHAPES or not runs_always
    if not has_requirements(operation.name):
        is_open = operation.name == RESHAPE and not runs_always
        return [of_own_sizes(operand) for operand in operands] if is_open else list(operands)
    checks = [] if is_known else _of_required(operation, operands, runs_always=runs_always)
    if operation.name in _CONVOLUTIONS:
        checks += _of_some(operation, operands[0])
    if not checks:
        return list(operands) if runs_always or not is_known else [of_own_sizes(operand) for operand in operands]
    with tf.control_dependencies(checks):
        return [of_own_sizes(operand) if is_apart else tf.identity(operand) for operand in operands]


def _of_required(operation: Operation, operands: Sequence[tf.Tensor], *, runs_always: bool) -> list[tf.Operation]:
    """What fails where the sizes of the operands are not as the operation requires."""
    shapes = {id(operand): _wide(sizes(operand)) for operand in operands}  # one for an operand that is given twice
    required = requirements(
        operation,
        [shapes[id(operand)] for operand in operands],
        lambda index: _wide(listed(tf.reshape(operands[index], [-1]))),
    )
    return [check for one in required for check in _checked(operation, one, runs_always=runs_always)]


def of_own_sizes(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor, as one of which Grappler does not know that its open sizes are those of another.

    What operations of a branch, or of a loop, need of sizes Grappler (2.21) takes for true of the same sizes elsewhere,
    also where the branch is not taken. A slice that is the whole copies nothing. Of few dtypes there is none; branches
    with them run as functions, into which Grappler does not look.
    """
    if traces_compiled() or tensor.shape.is_fully_defined() or tensor.dtype in FEW_KERNELS:
        return tf.identity(tensor)
    extent = tf.maximum(tf.shape(tensor, tf.int64), tf.zeros([], tf.int64))  # of which Grappler knows nothing
    same = tf.slice(tensor, tf.zeros([tensor.shape.rank], tf.int64), extent)
    same.set_shape(tensor.shape)
    return same


def _wide(shape: Sequence[Size]) -> list[Size]:
    """Sizes of which products fit."""
    return [size if isinstance(size, int) else tf.cast(size, tf.int64) for size in shape]


def _checked(operation: Operation, required: Requirement, *, runs_always: bool) -> Sequence[tf.Operation]:
    """What fails where sizes that are known only at run time do not agree."""
    if required.size is required.limit:
        return ()
    if isinstance(required.size, int) and isinstance(required.limit, int):
        if not required.is_met():
            raise ArgumentTypeError(required.refusal(operation))
        return ()
    size, limit = (tf.convert_to_tensor(n, tf.int64) for n in (required.size, required.limit))
    holds = size <= limit if required.is_most else tf.equal(size, limit)
    known = evaluated(holds)
    if known:
        return ()
    if known is not None and runs_always:
        raise ArgumentTypeError(required._replace(size=evaluated(size), limit=evaluated(limit)).refusal(operation))
    message = f"{operation.name}: an operand has {REQUIRED}; found, and "
    message += "at most:" if required.is_most else "required:"
    assertion = asserted(holds, [message, size, limit])
    is_constant = traces_compiled() and operation.name in _SHAPED  # XLA compiles these of no other numbers
    if known is not None or not (is_constant or _is_of_sizes(holds)):
        return (assertion,)
    return assertion, *refused_unless(holds, assertion, "operands_of_different_sizes")


def _is_of_sizes(tensor: tf.Tensor) -> bool:
    """Whether a tensor of the graph is computed from sizes and constants alone, which XLA knows when it compiles."""
    left: list[tf.Tensor] = [tensor]
    seen: set[tf.Operation] = set()
    while left:
        operation = left.pop().op
        if operation in seen or operation.type in ("Shape", "ShapeN", "Size", "Const"):
            continue
        if not operation.inputs or len(seen) > _MOST_LOOKED_AT:
            return False
        seen.add(operation)
        left += operation.inputs
    return True


def _of_some(operation: Operation, operand: tf.Tensor) -> Sequence[tf.Operation]:
    """What fails where the batch of a convolution is empty: the result of TensorFlow's has the shape of the operand."""
    batch = sizes(operand)[operation.attributes["dimension_numbers"]["input_batch_dimension"]]
    if isinstance(batch, int):
        return ()
    message = f"{operation.name}: the batch is empty, of which TensorFlow has no convolution"
    return (asserted(batch > 0, [message]),)


def at_broadcast_places(bound: Bound, operands: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The operands of an operation of CHLO that broadcasts, of equal rank, as TensorFlow broadcasts them.

    Raises:
      GraphModeUnsupported: The dimensions at which an operand is to be are not in order.
    """
    given = bound.broadcast_places
    if given is None:
        dimensions = list(bound["broadcast_dimensions"])
        raise unsupported(bound.operation, f"broadcast_dimensions {dimensions} are not different ones in order")
    rank = max(map(len, given))
    placed = [
        operand if list(places) == list(range(rank - len(places), rank)) else _spread(operand, places, rank)
        for operand, places in zip(operands, given, strict=True)
    ]
    if bound.is_differentiated and any(_is_added_in_float16(operand, rank, placed) for operand in placed):
        wide = [tf.cast(x, tf.float32) if x.dtype == tf.float16 else x for x in placed]
        in_one = in_one_shape(wide, bound.constant)
        return [tf.cast(x, operand.dtype) for x, operand in zip(in_one, placed, strict=True)]
    if rank <= MOST_RUNS or traces_compiled():
        return placed
    whole = reduce(tf.broadcast_static_shape, (x.shape for x in placed)).as_list()
    if most_runs([x.shape.as_list() for x in placed], whole) <= MOST_RUNS:
        return placed
    return in_one_shape(placed, bound.constant)


def _is_added_in_float16(operand: tf.Tensor, rank: int, placed: Sequence[tf.Tensor]) -> bool:
    """Whether TensorFlow's gradient of what broadcasts an operand is a sum of float16 that rounds each step."""
    if operand.dtype != tf.float16:
        return False
    whole = reduce(tf.broadcast_static_shape, (x.shape for x in placed)).as_list()
    sizes_of = [*[1] * (rank - operand.shape.rank), *operand.shape.as_list()]
    return is_added_in_steps(whole, [axis for axis in range(rank) if sizes_of[axis] in (1, None) and whole[axis] != 1])


def _spread(operand: tf.Tensor, places: Sequence[int], rank: int) -> tf.Tensor:
    """An operand with dimensions of size 1 between its own."""
    shape: list[Size] = [1] * rank
    for place, size in zip(places, sizes(operand), strict=True):
        shape[place] = size
    return tf.reshape(operand, as_shape(shape))
