"""Operations that no module has: forms that `patterns` finds, what is left of broadcasts and reshapes, and `rounds`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import tensorflow as tf

from jaxtf.convert._function.saved_gradients import refused_when_computed
from jaxtf.convert._graph import grappler, nodes
from jaxtf.convert._graph._support import MOVED, one_by_one, typed
from jaxtf.convert._graph.broadcasts import EXPAND
from jaxtf.convert._graph.derivatives import differentiated, differentiated_as
from jaxtf.convert._graph.plan.bits import OF_BITS
from jaxtf.convert._graph.plan.complex_functions import DIFFERENTIATED_AS
from jaxtf.convert._graph.plan.rounds import APART
from jaxtf.convert._graph.plan.sums import SUM_OF_SEVERAL
from jaxtf.convert._graph.registry import Bound, registered, translates
from jaxtf.convert._graph.reshapes import RESHAPE
from jaxtf.convert._tf import has_only_cpu

__all__: list[str] = []

# Of TensorFlow's kernel for CPU with oneDNN (2.21).
MOST_DIMENSIONS_OF_SOFTMAX = 5

_OF_BITS = (
    "graph mode has no derivative of a float that a module puts together of the bits of another (bitcast_convert), as "
    "exports write out lgamma\n  remedy: differentiate with the rule of JAX: convert_exported of an artifact with a VJP"
)

MEAN = nodes.reduction("Mean", tf.reduce_mean)


@translates("jaxtf.relu")
def relu(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The larger of each element and 0; NaN where it is."""
    return grappler.relu(operand)


@translates(SUM_OF_SEVERAL)
def sum_of_several(bound: Bound, *operands: tf.Tensor) -> tf.Tensor:
    """The sum of the first two, and of that and each further one, each rounded."""
    return grappler.sum_of_several(operands)


@translates("jaxtf.mean")
def mean(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The mean over some dimensions."""
    return MEAN(operand, bound.constant(list(bound["dimensions"])), bound["keeps"])


@translates("jaxtf.softmax", differs="of a row with NaN or infinity, CPU gives NaN there and 0 elsewhere, XLA only NaN")
def softmax(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """Softmax along one dimension."""
    rank, axis = operand.shape.rank, bound["axis"]
    if rank <= MOST_DIMENSIONS_OF_SOFTMAX:
        return tf.nn.softmax(operand, axis=axis)
    return one_by_one(operand, [axis], lambda array, _: tf.nn.softmax(array, axis=1))


@translates("jaxtf.log_softmax")
def log_softmax(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The logarithm of softmax along one dimension."""
    return tf.nn.log_softmax(operand, axis=bound["axis"])


@translates("jaxtf.gelu")
def gelu(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """`x / 2 * erfc(-x / sqrt(2))`, as this TensorFlow writes it: its TFLite converter knows it only so."""
    return tf.nn.gelu(operand, approximate=False)


@translates(RESHAPE, computed_in=MOVED)
def reshape(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The same elements in the shape of the result, of which one size may be unknown."""
    return nodes.reshape(operand, bound.constant([-1 if size is None else size for size in bound.result_type.shape]))


@translates(EXPAND)
def expand(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The operand with dimensions of size 1 put where `axes` says, in the result."""
    for axis in bound["axes"]:
        operand = tf.expand_dims(operand, axis)
    return operand


@translates(APART, computed_in=MOVED)
def apart(bound: Bound, operand: tf.Tensor) -> tf.Tensor:
    """The operand, from a loop of two turns; XLA does not see that the second changes nothing.

    A graph may be compiled later, from a SavedModel, so that it is as one that is compiled.
    """
    if tf.executing_eagerly() or not has_only_cpu():
        return operand

    def step(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.where(i > 1, tf.zeros([], x.dtype), x)

    _, made = tf.while_loop(lambda i, _: i < 2, step, (typed(0, tf.int32), operand))
    return made


@translates(DIFFERENTIATED_AS)
def with_derivative(bound: Bound, result: tf.Tensor, argument: tf.Tensor) -> tf.Tensor:
    """What operations on the parts of complex numbers have computed, with the derivative of the function that it is."""
    name, entry = bound["function"], registered()[bound["function"]]
    inner = replace(bound, operation=replace(bound.operation, name=name, operands=bound.operation.operands[1:]))
    assert entry.emit is not None, "such functions are translated"
    return differentiated_as(bound, result, partial(entry.emit, inner), argument)


@translates(OF_BITS)
def of_bits(bound: Bound, result: tf.Tensor, *floats: tf.Tensor) -> tf.Tensor:
    """A float that is made of the bits of others, without a derivative by these."""

    def gradient(upwards: tf.Tensor, *arguments: tf.Tensor) -> list[tf.Tensor | None]:
        return refused_when_computed(_OF_BITS, "no_derivative_of_floats_made_of_bits", [upwards], arguments)

    return differentiated(bound, result, gradient, *floats)
