"""Sizes of arguments that are compared when a graph runs, whether or not a result is computed from the argument.

And those that XLA cannot compare when it compiles, because they depend on values: they are refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._values.names import in_graphs
from jaxtf.serialization import Aval, Exported
from jaxtf.shapepoly import is_symbolic_dim

__all__ = [
    "COMPARED",
    "REQUIRED",
    "checked_before",
    "checks_of",
    "compiled_if_constants",
    "mismatch",
    "refused_unless",
    "with_checked_sizes",
]

# The type of an operation that compares sizes, as `_tf.ensured` makes it.
_CHECK = "EnsureShape"

# What operations are named after that refuse to compare sizes that are known only when a program runs.
COMPARED = "compared_sizes_depend_on_values/remedy_constant_sizes"

# What assertions say of a module that JAX did not export.
REQUIRED = "another size than StableHLO requires"

# Whatever calls the graph, these have the sizes that the graph knows.
_OF_KNOWN_SIZES = frozenset(("Const", "ReadVariableOp"))


def with_checked_sizes(
    exported: Exported, arguments: Sequence[tf.Tensor], compared: Iterable[int], *, by_signature: bool, scope: str
) -> list[tf.Tensor]:
    """Arguments in a graph whose constant sizes are those that the function needs, or become an error when it runs.

    Args:
      exported: The function.
      arguments: One tensor for each of `exported.in_avals`.
      compared: The indices of those to be compared.
      by_signature: Whether the graph is of a signature, which TensorFlow calls with arrays of any shape.
      scope: Where a size is not known, the operation that compares it is named after this and the argument.

    Raises:
      tf.errors.InvalidArgumentError: Sizes that are known, and others.
    """
    checked = list(arguments)
    for index in compared:
        argument, name, aval = arguments[index], exported.in_names[index], exported.in_avals[index]
        is_open = by_signature and argument.op.type not in _OF_KNOWN_SIZES
        if is_open or not (argument.shape.is_fully_defined() and argument.shape == aval.shape):
            known = _known(exported, argument, name, aval)
            is_known = argument.shape.rank is not None and argument.shape.as_list() == known.as_list()
            if not is_known or (is_open and any(size is not None for size in known)):
                checked[index] = _tf.ensured(argument, known, f"{scope}/shape_of_{in_graphs(name).strip('_')}")
    return checked


def _known(exported: Exported, argument: tf.Tensor, name: str, aval: Aval) -> tf.TensorShape:
    """What is known of the sizes of an argument, and what the function needs."""
    needed = tf.TensorShape([None if is_symbolic_dim(size) else size for size in aval.shape])
    try:
        return needed.merge_with(argument.shape)
    except ValueError as error:
        raise mismatch(exported, name, aval.shape, argument.shape) from error


def mismatch(exported: Exported, name: str, expected: object, found: tf.TensorShape) -> tf.errors.InvalidArgumentError:
    """What says that an array has another shape than the function takes or gives."""
    message = f"Shape mismatch for {name} of the exported function '{exported.fun_name}': expected {expected} "
    return tf.errors.InvalidArgumentError(None, None, f"{message}and called with {found}")


def checks_of(arguments: Iterable[tf.Tensor]) -> list[tf.Operation]:
    """The operations that compare sizes of these arguments."""
    return [argument.op for argument in arguments if argument.op.type == _CHECK]


def checked_before(checks: Sequence[tf.Operation], results: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The results of a function in a graph, which are there only if the sizes of its arguments were right.

    Args:
      checks: The operations that compare sizes.
      results: Perhaps none: then an operation with an effect, which TensorFlow always runs, comes after the checks.
    """
    if not checks:
        return list(results)
    with tf.control_dependencies(checks):
        if not results:
            tf.raw_ops.Assert(condition=tf.constant(True, tf.bool), data=["sizes"])
        given = [tf.identity(result) for result in results]
    if not _tf.is_vectorized():  # there it would keep what nobody reads: there may be no element 0
        for result in given:  # of those that one operation takes with a constant Grappler forgets what they come after
            _tf.left_by_grappler(result.op)
    return given


def refused_unless(
    holds: tf.Tensor, assertion: tf.Operation, scope: str, *, is_compared: bool = True
) -> list[tf.Operation]:
    """What is to run after an assertion about sizes, so that XLA, which drops assertions, compiles nothing else.

    A reshape to another number of elements it refuses, if it knows that number. Results that are computed from sizes
    and constants alone TensorFlow replaces by constants before it compiles; of what they were to come after it keeps
    what has an effect. So another assertion takes the reshape.

    Args:
      holds: A truth value.
      assertion: The assertion.
      scope: What the reshape is named after.
      is_compared: Whether sizes that depend on values, which XLA cannot compare when it compiles, are refused there.
    """
    with tf.control_dependencies([assertion]):
        count = tf.reshape(tf.cast(holds, tf.int32), [1])
        refused = tf.reshape(tf.zeros([1], tf.int32), count, name=scope)
        operations = [refused.op, _tf.asserted(holds, [refused])]
    return operations + (compiled_if_constants(lambda: tf.unstack(count), COMPARED) if is_compared else [])


def compiled_if_constants(numbers: Callable[[], Iterable[tf.Tensor]], scope: str) -> list[tf.Operation]:
    """Operations that XLA compiles only if each of these numbers is a constant there; none where nothing is compiled.

    They take no time. XLA knows bounds of sizes that depend on values, as of `tf.boolean_mask`.

    Args:
      numbers: Gives scalars of the current graph, integers of 0 or more.
      scope: What the operations are named after, as TensorFlow's error shows it.
    """
    if not _tf.traces_compiled():
        return []
    with tf.name_scope(f"{scope}/"):
        return [tf.one_hot(tf.zeros([0], tf.int32), number).op for number in numbers()]
