"""Sizes of arrays in a graph that are compared when it runs, compiled or not.

TensorFlow may leave out what is only to run before an array; so the sizes that the array is given depend on those that
were found. Compiled, these have to be constants: XLA compiles no `tf.one_hot` of another depth.

Knows TensorFlow alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from jaxtf.calltf._tf import hidden_from_debuggers, outside_of_graphs

__all__ = ["compared", "if_like"]

# No size: of it TensorFlow makes no array.
_NONE = -2
_SCOPE = "declared_sizes_depend_on_values/remedy_constant_sizes/"


def compared(name: str, concrete: Any, specs: Sequence[Any], wanted: Callable[[Sequence[Any]], Sequence[Any]]) -> Any:
    """A concrete function whose results are there only if they have the shapes that are wanted.

    Args:
      name: Of what is made.
      concrete: The function; what it captures, the new one does.
      specs: The shapes and dtypes of its arguments.
      wanted: From the arguments to the shape of each result, of known rank: sizes, or a tensor of them.
    """

    def body(*tensors: Any) -> list[Any]:
        results = tf.nest.flatten(concrete(*tensors))
        return [_if_of(result, shape) for result, shape in zip(results, wanted(tensors), strict=True)]

    body.__name__ = name
    with outside_of_graphs(), hidden_from_debuggers():
        return tf.function(body, autograph=False).get_concrete_function(*specs)


def if_like(tensor: Any, like: Any) -> Any:
    """A tensor of a graph, which is there only if another one has its sizes.

    Args:
      tensor: Of known rank.
      like: Of the same shape, as far as it is known.
    """
    if tensor.shape.is_fully_defined() and tensor.shape == like.shape:
        return tensor
    like = _of_rank(like, tensor.shape.rank)
    same = _in_sizes(tensor, _agreed(tf.shape(like), tf.shape(tensor)))
    same.set_shape(tensor.shape)
    return same


def _if_of(tensor: Any, shape: Any) -> Any:
    """A tensor of a graph, which is there only if it has these sizes; the graph does not know them.

    Graph mode compares them again, also where nobody uses the tensor.
    """
    if not tf.is_tensor(shape) and tensor.shape == tf.TensorShape(shape):
        return tensor
    wanted = tf.convert_to_tensor(shape, tf.int32)
    tensor = _of_rank(tensor, wanted.shape[0])
    return _in_sizes(tensor, _agreed(tf.shape(tensor), wanted))


def _of_rank(tensor: Any, rank: int) -> Any:
    return tensor if tensor.shape.rank == rank else tf.ensure_shape(tensor, [None] * rank)


def _in_sizes(tensor: Any, sizes: Any) -> Any:
    return tf.reshape(tensor, sizes, name="size_not_as_declared")


def _agreed(found: Any, wanted: Any) -> Any:
    """The sizes, if they are equal; otherwise those of no array. Both are of one known rank."""
    rank = found.shape[0]
    if not rank:
        return found
    text = "call_tf: a result has another shape than output_shape_dtype declares; found, and declared:"
    assertion = tf.debugging.Assert(tf.reduce_all(tf.equal(found, wanted)), [text, found, wanted])
    nothing = tf.zeros([0], tf.int32)
    with tf.control_dependencies([assertion]), tf.name_scope(_SCOPE):
        constants = tf.stack([tf.shape(tf.one_hot(nothing, size))[1] for size in tf.unstack(found, rank)])
        return tf.where(tf.equal(constants, wanted), constants, tf.fill([rank], _NONE))
