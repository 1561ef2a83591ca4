"""Calls of TensorFlow functions that the exported function was given, with results of the sizes that were declared.

What a program says of the results of such a function, the user may have declared (`output_shape_dtype` of `call_tf`):
JAX has computed with these sizes. So sizes that TensorFlow does not know before are compared when the function has run.
"""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from jaxtf.convert._function.checked_sizes import compiled_if_constants
from jaxtf.convert._graph._support import refuse
from jaxtf.convert._graph.registry import Bound, translates
from jaxtf.convert._tf import asserted, evaluated, left_by_grappler
from jaxtf.serialization.interop import TensorType

__all__: list[str] = []

# What operations are named after that refuse to compile declared sizes that are known only when a program runs.
_DECLARED = "declared_sizes_depend_on_values/remedy_constant_sizes"

# No size: of it TensorFlow makes no array, compiled or not.
_NONE = -2

_OF_TRACES = re.compile(r"^__(?:inference|forward)_|_\d+$")


@translates("custom_call.tf.call_tf_function")
def call_tf_function(bound: Bound, *operands: tf.Tensor) -> list[tf.Tensor]:
    """A call of a TensorFlow function that the exported function was given, as it is, with what it captures.

    Operands after its arguments are the sizes of the results, where they are symbolic.
    """
    index = bound["tf.backend_config"]["called_index"]
    if index >= len(bound.functions):
        refuse(bound, "it calls a TensorFlow function that the module does not hold; convert the function it came from")
    function = bound.functions[index]
    count = len(function.inputs) - len(function.captured_inputs)
    name = _OF_TRACES.sub("", function.name.decode() if isinstance(function.name, bytes) else function.name)
    try:
        results: list[tf.Tensor] = tf.nest.flatten(function(*operands[:count]))
    except ValueError as error:  # of sizes that it compares itself, for native mode, and that the graph knows
        if f"used for shape: {_NONE}" not in str(error):
            raise
        message = f"call_tf: a result of {name} has another shape than output_shape_dtype declares"
        raise tf.errors.InvalidArgumentError(None, None, message) from error
    types = bound.result_types
    if not types:
        return results
    if bound.get("has_side_effect") and not tf.executing_eagerly():  # TensorFlow 1 runs what is asked for alone
        bound.effects.append(results[0].op)
    wanted = operands[count:] or [bound.constant(list(type_.shape)) for type_ in types]
    return [
        _as_declared(bound, result, type_, sizes, f"result[{i}] of {name}")
        for i, (result, type_, sizes) in enumerate(zip(results, types, wanted, strict=True))
    ]


def _as_declared(bound: Bound, result: tf.Tensor, type_: TensorType, wanted: tf.Tensor, name: str) -> tf.Tensor:
    """A result, which is there only if it has the declared sizes, and what fails if nobody asks for it.

    What is only to run before it TensorFlow may leave out; so the sizes that the result is given depend on what was
    found. An array of the same sizes is not copied.
    """
    if result.shape.rank is None:
        result = tf.ensure_shape(result, [None] * type_.rank)
    if result.shape.rank != type_.rank:
        result = tf.ensure_shape(result, type_.shape)  # raises
    found = tf.shape(result)
    agree = tf.equal(found, tf.cast(wanted, tf.int32))
    holds = tf.reduce_all(agree)
    message = f"call_tf: {name} has another shape than output_shape_dtype declares; found, and declared:"
    known = None if tf.executing_eagerly() else evaluated(holds)
    if known:
        return result
    if known is not None:
        raise tf.errors.InvalidArgumentError(None, None, f"{message} {evaluated(found)} {evaluated(wanted)}")
    assertion = asserted(holds, [message, found, wanted])
    if tf.executing_eagerly():
        return result
    checks: list[Any] = [assertion, *compiled_if_constants(lambda: tf.unstack(found), _DECLARED)]
    bound.effects.extend(checks)
    with tf.control_dependencies(checks):
        sizes = tf.where(agree, found, tf.fill([type_.rank], _NONE))
        made = tf.reshape(result, sizes, name="size_not_as_declared")
        left_by_grappler(made.op)  # a sum of all elements needs no shape
    made.set_shape(type_.shape)
    return made
